//! The server's functions that give tables: `sys.dm_exec_sql_text(..)` and its like. Each is a view, of which the arguments
//! choose rows.

use pellucid_tsql::ast::{FunctionArguments, FunctionCall, ObjectName, TableAlias, TablePrimary};

use super::from::add;
use super::scope::{same, Clause, Level, ScopeColumn, ScopeTable};
use super::{quoted, typed, Table, TableColumn, View, Work};
use crate::message::{table, Message, Result};
use crate::values::types::{Length, SqlType};

/// What a missing argument stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Null {
    /// No row.
    Nothing,
    /// The database that the session is in.
    CurrentDatabase,
}

/// A column that an argument is compared with.
type Key = (&'static str, SqlType, Null);

/// Its rows, what they are called, and the columns with what each has to be.
type Rows = (Table, ObjectName, Vec<(&'static str, String)>);

struct Function {
    /// Its name within `sys`.
    name: &'static str,
    keys: &'static [Key],
    /// The column that is a key and no column of the function's.
    hidden: Option<&'static str>,
    /// The one row's columns are the bits of what this function of SQLite's gives for the argument.
    bits_of: Option<&'static str>,
}

const FUNCTIONS: [Function; 4] = [
    Function {
        name: "dm_db_log_stats",
        keys: &[("database_id", SqlType::Int, Null::CurrentDatabase)],
        hidden: None,
        bits_of: None,
    },
    Function {
        name: "dm_exec_sql_text",
        keys: &[("sql_handle", SqlType::VarBinary(Length::Of(64)), Null::Nothing)],
        hidden: Some("sql_handle"),
        bits_of: None,
    },
    Function {
        name: "dm_os_file_exists",
        keys: &[("path", SqlType::nvarchar(4000), Null::Nothing)],
        hidden: None,
        bits_of: Some("tsql_look"),
    },
    Function {
        name: "dm_os_volume_stats",
        keys: &[
            ("database_id", SqlType::Int, Null::Nothing),
            ("file_id", SqlType::Int, Null::Nothing),
        ],
        hidden: None,
        bits_of: None,
    },
];

fn find(name: &ObjectName) -> Option<&'static Function> {
    let is_sys = name.schema.as_ref().is_some_and(|schema| same(schema.as_str(), "sys"));
    FUNCTIONS.iter().find(|function| is_sys && same(name.object.as_str(), function.name))
}

/// Whether a name within `sys` is such a function's.
pub(crate) fn is_table_function(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| same(name, function.name))
}

/// Their names within `sys`, each with how many arguments it takes.
pub(crate) fn table_functions() -> impl Iterator<Item = (&'static str, usize)> {
    FUNCTIONS.iter().map(|function| (function.name, function.keys.len()))
}

/// The call, if `table` is one of such a function.
pub(super) fn called(table: &TablePrimary) -> Option<(&FunctionCall, Option<&TableAlias>)> {
    match table {
        TablePrimary::Function { call, alias } if find(&call.name).is_some() => {
            Some((call, alias.as_ref()))
        }
        _ => None,
    }
}

/// 216 for a name that is such a function's and stands without arguments.
pub(super) fn refuse_without_arguments(name: &ObjectName) -> Result<()> {
    match find(name) {
        Some(_) => {
            let name = super::scope::object_text(name);
            Err(Message::of(table::PARAMETERS_NOT_SUPPLIED, [&name]))
        }
        None => Ok(()),
    }
}

/// The columns with their bits of `number`, the first the lowest.
fn bits<'t>(
    rows: &'t Table,
    number: &'t str,
) -> impl Iterator<Item = (&'t TableColumn, String)> + 't {
    rows.columns.iter().enumerate().map(move |(at, column)| {
        let bit = format!("(({number} >> {at}) & 1)");
        (column, bit)
    })
}

impl Work<'_> {
    /// Its rows as a table; `None` for another function.
    pub(super) fn server_table(
        &mut self,
        call: &FunctionCall,
        alias: Option<&TableAlias>,
        level: &mut Level,
        outer: View<'_>,
    ) -> Result<Option<String>> {
        let Some(function) = find(&call.name) else { return Ok(None) };
        let (rows, called, keys) = self.rows_and_keys(function, call, alias, outer)?;
        if let Some(look) = function.bits_of {
            let bits: Vec<String> = bits(&rows, "n")
                .map(|(column, bit)| format!("{bit} AS {}", quoted(&column.sqlite)))
                .collect();
            let of: Vec<&str> = keys.iter().map(|(_, value)| value.as_str()).collect();
            let of = of.join(", ");
            let sqlite = format!("(SELECT {} FROM (SELECT {look}({of}) AS n))", bits.join(", "));
            return self.stored(Table { sqlite, row: None, ..rows }, called, level).map(Some);
        }
        let chosen: Vec<String> =
            keys.iter().map(|(column, value)| format!("{} = {value}", quoted(column))).collect();
        let sqlite = format!("(SELECT * FROM {} WHERE {})", rows.sqlite, chosen.join(" AND "));
        self.stored(Table { sqlite, row: None, ..rows }, called, level).map(Some)
    }

    /// The same behind APPLY: a join on what the left side names.
    pub(super) fn server_table_applied(
        &mut self,
        (call, alias): (&FunctionCall, Option<&TableAlias>),
        word: &str,
        level: &mut Level,
        outer: View<'_>,
        text: &mut String,
    ) -> Result<()> {
        let Some(function) = find(&call.name) else { return Ok(()) };
        let mut added = Level::default();
        let view = View::inner(&outer, level, Clause::Other);
        let (rows, called, keys) = self.rows_and_keys(function, call, alias, view)?;
        if let Some(look) = function.bits_of {
            let of: Vec<&str> = keys.iter().map(|(_, value)| value.as_str()).collect();
            let number = format!("{look}({})", of.join(", "));
            let column = |(column, bit): (&TableColumn, String)| ScopeColumn {
                name: column.name.clone(),
                value: typed(bit, column.data_type),
            };
            let columns = bits(&rows, &number).map(column).collect();
            return add(
                level,
                ScopeTable { name: called, columns, computed: true, row: None, is_prefixed: false },
            );
        }
        let rows = self.stored(Table { row: None, ..rows }, called, &mut added)?;
        let t = rows.rsplit(' ').next().unwrap_or_default();
        let chosen: Vec<String> = keys
            .iter()
            .map(|(column, value)| format!("{t}.{} = {value}", quoted(column)))
            .collect();
        text.push_str(&format!(" {word} {rows} ON {}", chosen.join(" AND ")));
        added.tables.into_iter().try_for_each(|table| add(level, table))
    }

    fn rows_and_keys(
        &mut self,
        function: &'static Function,
        call: &FunctionCall,
        alias: Option<&TableAlias>,
        outer: View<'_>,
    ) -> Result<Rows> {
        let FunctionArguments::Values(values) = &call.arguments else {
            return Err(Message::of(table::INCORRECT_SYNTAX, [&"*"]));
        };
        let count = function.keys.len();
        super::function::counted(function.name, values.len(), count, count)?;
        let mut keys = Vec::with_capacity(count);
        for (value, (column, data_type, null)) in values.iter().zip(function.keys) {
            let value = self.expression(value, outer)?;
            let value = self.coerced(value, *data_type)?.sql;
            keys.push(match null {
                Null::Nothing => (*column, value),
                Null::CurrentDatabase => {
                    (*column, format!("coalesce({value}, tsql_server('DB_ID'))"))
                }
            });
        }
        let mut rows = self.catalog.table(&self.placed(&call.name))?.ok_or_else(|| {
            Message::of(table::UNKNOWN_OBJECT, [&super::scope::object_text(&call.name)])
        })?;
        rows.columns.retain(|column| Some(column.name.as_str()) != function.hidden);
        let called = match alias {
            Some(alias) => alias.name.clone().into(),
            None => call.name.object.clone().into(),
        };
        Ok((rows, called, keys))
    }
}

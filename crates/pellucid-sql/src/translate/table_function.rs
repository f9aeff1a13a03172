//! The server's functions that give tables: `sys.dm_exec_sql_text(..)` and its like. Each is a view, of which the arguments
//! choose rows.

use pellucid_tsql::ast::{
    Expression, FunctionArguments, FunctionCall, Name, ObjectName, TableAlias, TablePrimary,
};

use super::from::add;
use super::scope::{same, Clause, Level, ScopeColumn, ScopeTable};
use super::{quoted, typed, RowKey, Table, TableColumn, View, Work};
use crate::message::{table, Message, Result};
use crate::values::types::{Length, SqlType};

/// What a missing argument stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Null {
    /// No row.
    Nothing,
    /// The database that the session is in.
    CurrentDatabase,
    /// All, as this number does.
    All(i64),
    /// As anything else: it chooses no rows.
    Ignored,
}

/// A column that an argument is compared with.
type Key = (&'static str, SqlType, Null);

/// Its rows, what they are called, and the keys with what each has to be.
type Rows = (Table, ObjectName, Vec<(&'static Key, String)>);

struct Function {
    /// Its name within `sys`.
    name: &'static str,
    keys: &'static [Key],
    /// How many of the keys, the last ones, are no columns of the function's.
    hidden: usize,
    /// The one row's columns are the bits of what this function of SQLite's gives for the argument.
    bits_of: Option<&'static str>,
}

const fn of(name: &'static str, keys: &'static [Key], hidden: usize) -> Function {
    Function { name, keys, hidden, bits_of: None }
}

const HANDLE: SqlType = SqlType::VarBinary(Length::Of(64));
const PATH: SqlType = SqlType::nvarchar(4000);
const DATABASE: Key = ("database_id", SqlType::Int, Null::Nothing);
const CURRENT_DATABASE: Key = ("database_id", SqlType::Int, Null::CurrentDatabase);
const ANY_DATABASE: Key = ("database_id", SqlType::Int, Null::All(0));
const ANY_OBJECT: Key = ("object_id", SqlType::Int, Null::All(0));
const ANY_INDEX: Key = ("index_id", SqlType::Int, Null::All(-1));
const ANY_PARTITION: Key = ("partition_number", SqlType::Int, Null::All(0));
const FILE: Key = ("file_id", SqlType::Int, Null::Nothing);
const PLAN: Key = ("plan_handle", HANDLE, Null::Nothing);
const TEXT: &[Key] = &[("sql_handle", HANDLE, Null::Nothing)];

const FUNCTIONS: [Function; 16] = [
    of("dm_db_index_operational_stats", &[ANY_DATABASE, ANY_OBJECT, ANY_INDEX, ANY_PARTITION], 0),
    of(
        "dm_db_index_physical_stats",
        &[
            ANY_DATABASE,
            ANY_OBJECT,
            ANY_INDEX,
            ANY_PARTITION,
            ("mode", SqlType::nvarchar(20), Null::Ignored),
        ],
        0,
    ),
    of("dm_db_log_info", &[CURRENT_DATABASE], 0),
    of("dm_db_log_stats", &[CURRENT_DATABASE], 0),
    of("dm_db_missing_index_columns", &[("index_handle", SqlType::Int, Null::Nothing)], 1),
    of("dm_exec_plan_attributes", &[PLAN], 1),
    of("dm_exec_query_plan", &[PLAN], 1),
    of("dm_exec_sql_text", TEXT, 1),
    of(
        "dm_exec_text_query_plan",
        &[
            PLAN,
            ("statement_start_offset", SqlType::Int, Null::Nothing),
            ("statement_end_offset", SqlType::Int, Null::Nothing),
        ],
        3,
    ),
    of("dm_io_virtual_file_stats", &[DATABASE, FILE], 0),
    Function {
        name: "dm_os_file_exists",
        keys: &[("path", PATH, Null::Nothing)],
        hidden: 0,
        bits_of: Some("tsql_look"),
    },
    of("dm_os_volume_stats", &[DATABASE, FILE], 0),
    of("fn_get_sql", TEXT, 1),
    of("fn_trace_getinfo", &[("trace_id", SqlType::Int, Null::Nothing)], 1),
    of(
        "fn_trace_gettable",
        &[("trace_file", PATH, Null::Nothing), ("number_files", SqlType::Int, Null::Nothing)],
        2,
    ),
    of(
        "fn_virtualfilestats",
        &[("DbId", SqlType::Int, Null::Nothing), ("FileId", SqlType::Int, Null::Nothing)],
        0,
    ),
];

fn find(name: &ObjectName) -> Option<&'static Function> {
    let object = name.object.as_str();
    // Old functions are found without it, too.
    let is_sys = match &name.schema {
        Some(schema) => same(schema.as_str(), "sys"),
        None => name.database.is_none() && object.get(..3).is_some_and(|start| same(start, "fn_")),
    };
    FUNCTIONS.iter().find(|function| is_sys && same(object, function.name))
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

/// The condition on rows, whose columns stand behind `prefix`.
fn chosen(keys: &[(&'static Key, String)], prefix: &str) -> String {
    let condition = |((column, _, null), value): &(&'static Key, String)| {
        let column = format!("{prefix}{}", quoted(column));
        match null {
            Null::Nothing => format!("{column} = {value}"),
            Null::CurrentDatabase => {
                format!("{column} = coalesce({value}, tsql_server('DB_ID'))")
            }
            Null::All(all) => format!("(coalesce({value}, {all}) = {all} OR {column} = {value})"),
            Null::Ignored => "1".to_owned(),
        }
    };
    let conditions: Vec<String> = keys.iter().map(condition).collect();
    conditions.join(" AND ")
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
        let chosen = chosen(&keys, "");
        let sqlite = format!("(SELECT * FROM {} WHERE {chosen})", rows.sqlite);
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
        let chosen = chosen(&keys, &format!("{t}."));
        text.push_str(&format!(" {word} {rows} ON {chosen}"));
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
        for (value, key) in values.iter().zip(function.keys) {
            let (_, data_type, _) = key;
            let value = match value {
                Expression::Default => "NULL".to_owned(),
                value => {
                    let value = self.expression(value, outer)?;
                    self.coerced(value, *data_type)?.sql
                }
            };
            keys.push((key, value));
        }
        let key = match (values.first(), function.keys.first()) {
            (Some(value), Some(("database_id", _, null))) => {
                self.argument_key(value).map(|key| match null {
                    Null::All(_) => RowKey::OrAll(Box::new(key)),
                    _ => RowKey::OrCurrent(Box::new(key)),
                })
            }
            _ => None,
        };
        let mut name = call.name.clone();
        name.schema = name.schema.or_else(|| Name::new("sys"));
        let name = self.placed(&name);
        let found = match key {
            Some(key) => self.catalog.table_of(&name, &key)?,
            None => self.catalog.table(&name)?,
        };
        let mut rows = found.ok_or_else(|| {
            Message::of(table::UNKNOWN_OBJECT, [&super::scope::object_text(&call.name)])
        })?;
        let hidden = &function.keys[function.keys.len() - function.hidden..];
        rows.columns.retain(|column| !hidden.iter().any(|(name, ..)| *name == column.name));
        let called = match alias {
            Some(alias) => alias.name.clone().into(),
            None => call.name.object.clone().into(),
        };
        Ok((rows, called, keys))
    }
}

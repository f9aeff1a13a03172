//! OUTPUT clauses of INSERT, UPDATE and DELETE.
//!
//! What a clause may name is kept in a table of its own, the stage, while the rows are changed: of UPDATE and DELETE the
//! rows that were found, with their key, as they were before; of INSERT the rows that SQLite says it has put in. The
//! clause is a query of the stage, asked behind the change. Whoever executes it makes one transaction of all of it.

use pellucid_tsql::ast::{Delete, Insert, Name, OutputClause, SelectItem, Update};

use super::change::Target;
use super::from::read;
use super::scope::{Clause, Column, Level, ScopeColumn, ScopeTable, View};
use super::{quoted, typed, visit, Statement, Translator, Work};
use crate::message::{table, Message, Result};

/// A change whose rows are given out: statements of SQLite in the order of their execution.
#[derive(Debug, Clone)]
pub struct OutputChange {
    /// The table that is changed, as SQLite calls it.
    pub(crate) target: String,
    /// Makes the stage; a batch.
    pub stage: Statement,
    /// Fills it; `None` for INSERT.
    pub fill: Option<Statement>,
    /// The change. That of an INSERT gives rows.
    pub change: Statement,
    /// Puts such a row into the stage.
    pub keep: Option<Statement>,
    /// What the clauses give, side by side.
    pub rows: Statement,
    /// How many columns each clause has of them.
    pub widths: Vec<usize>,
}

/// What the clauses have become.
struct Outputs {
    /// The select list.
    list: String,
    columns: Vec<Column>,
    widths: Vec<usize>,
}

impl Translator<'_> {
    /// INSERT with OUTPUT; `stage` is a name for the stage, quoted.
    ///
    /// # Errors
    /// As [`Self::select`]; 158 and 10705 for what OUTPUT does not have.
    pub fn insert_output(self, insert: &Insert, stage: &str) -> Result<OutputChange> {
        let mut work = self.work();
        let sql = work.insert(insert)?;
        let (table, _, _) = work.executed_columns(insert)?;
        let columns = table.columns.iter().enumerate().map(|(at, column)| {
            let sql = read(format!("s.\"n{}\"", at + 1), column.data_type, column.stored);
            ScopeColumn { name: column.name.clone(), value: typed(sql, column.data_type) }
        });
        let level = level_of(vec![("inserted", columns.collect())], Vec::new())?;
        let outputs = work.outputs(&insert.output, &level)?;
        let kept: Vec<String> = (1..=table.columns.len()).map(|at| format!("\"n{at}\"")).collect();
        let returned: Vec<String> = table.columns.iter().map(|one| quoted(&one.sqlite)).collect();
        let (kept, places) = (kept.join(", "), vec!["?"; table.columns.len()].join(", "));
        Ok(OutputChange {
            target: table.sqlite.clone(),
            stage: plain(format!("CREATE TABLE {stage}(k INTEGER PRIMARY KEY, {kept})")),
            fill: None,
            change: work.also(format!("{sql} RETURNING {}", returned.join(", "))),
            keep: Some(plain(format!("INSERT INTO {stage}({kept}) VALUES ({places})"))),
            widths: outputs.widths,
            rows: work.finish(
                format!("SELECT {} FROM {stage} AS s ORDER BY s.k", outputs.list),
                &outputs.columns,
            ),
        })
    }

    /// UPDATE with OUTPUT.
    ///
    /// # Errors
    /// As [`Self::insert_output`].
    pub fn update_output(self, update: &Update, stage: &str) -> Result<OutputChange> {
        let mut work = self.work();
        let updated = work.updated(update)?;
        let found = &updated.found;
        let (table, key) = (&found.table, found.table.row.clone().unwrap_or_default());
        let numbers_rows = |name: &&String| {
            table.columns.iter().any(|column| column.is_row && quoted(&column.sqlite) == **name)
        };
        if updated.names.iter().any(|name| numbers_rows(&name)) {
            return Err(Message::unsupported("OUTPUT of an UPDATE of what identifies the rows"));
        }
        // Those of a common table expression alone are no columns of the table.
        let own = table.columns.iter().filter(|column| !column.derived);
        let inserted = own.map(|column| {
            let sql = format!("u.{}", quoted(&column.sqlite));
            let sql = read(sql, column.data_type, column.stored);
            ScopeColumn { name: column.name.clone(), value: typed(sql, column.data_type) }
        });
        let (deleted, others, before) = before(found);
        let level = level_of(vec![("inserted", inserted.collect()), ("deleted", deleted)], others)?;
        let outputs = work.outputs(&update.output, &level)?;
        let set: Vec<String> = updated.set("s");
        let values = updated.values.iter().enumerate();
        let values = values.map(|(at, value)| (format!("\"v{}\"", at + 1), value.clone()));
        let kept: Vec<(String, String)> =
            values.chain(before.into_iter().filter(|(name, _)| outputs.names(name))).collect();
        Ok(OutputChange {
            target: table.sqlite.clone(),
            stage: stage_of(stage, &table.sqlite, &kept),
            fill: Some(work.also(fill(
                stage,
                &updated.with,
                &updated.row,
                &kept,
                found,
                &updated.limit,
            ))),
            change: plain(format!(
                "UPDATE {} AS u SET {} FROM {stage} AS s WHERE u.{key} = s.k",
                table.sqlite,
                set.join(", ")
            )),
            keep: None,
            widths: outputs.widths,
            rows: work.finish(
                format!(
                    "SELECT {} FROM {stage} AS s JOIN {} AS u ON u.{key} = s.k ORDER BY s.k",
                    outputs.list, table.sqlite
                ),
                &outputs.columns,
            ),
        })
    }

    /// DELETE with OUTPUT.
    ///
    /// # Errors
    /// As [`Self::insert_output`].
    pub fn delete_output(self, delete: &Delete, stage: &str) -> Result<OutputChange> {
        let mut work = self.work();
        let deleted = work.deleted(delete)?;
        let found = &deleted.found;
        let key = found.table.row.clone().unwrap_or_default();
        let (columns, others, before) = before(found);
        let level = level_of(vec![("deleted", columns)], others)?;
        let outputs = work.outputs(&delete.output, &level)?;
        let kept: Vec<(String, String)> =
            before.into_iter().filter(|(name, _)| outputs.names(name)).collect();
        Ok(OutputChange {
            target: found.table.sqlite.clone(),
            stage: stage_of(stage, &found.table.sqlite, &kept),
            fill: Some(work.also(fill(
                stage,
                &deleted.with,
                &deleted.row,
                &kept,
                found,
                &deleted.limit,
            ))),
            change: plain(format!(
                "DELETE FROM {} WHERE {key} IN (SELECT k FROM {stage})",
                found.table.sqlite
            )),
            keep: None,
            widths: outputs.widths,
            rows: work.finish(
                format!(
                    "SELECT {} FROM {stage} AS s WHERE s.k IS NOT NULL ORDER BY s.k",
                    outputs.list
                ),
                &outputs.columns,
            ),
        })
    }
}

impl Outputs {
    /// Whether a column of the stage, quoted, may be among them.
    fn names(&self, column: &str) -> bool {
        self.list.contains(column)
    }
}

impl Work<'_> {
    fn outputs(&mut self, clauses: &[OutputClause], level: &Level) -> Result<Outputs> {
        let view = View::inner(&View::EMPTY, level, Clause::Where);
        let mut outputs = Outputs { list: String::new(), columns: Vec::new(), widths: Vec::new() };
        self.in_output = true;
        for clause in clauses {
            let aggregates = |item: &SelectItem| match item {
                SelectItem::Value { value, .. } => visit::has(value),
                _ => false,
            };
            if clause.items.iter().any(aggregates) {
                return Err(Message::of(table::AGGREGATE_IN_OUTPUT, []));
            }
            let selected = self.selected(&clause.items, level, view)?;
            outputs.widths.push(selected.len());
            for one in selected {
                let at = outputs.columns.len() + 1;
                let between = if at > 1 { ", " } else { "" };
                outputs.list += &format!("{between}{} AS c{at}", one.value.sql);
                outputs.columns.push(one.column());
            }
        }
        self.in_output = false;
        Ok(outputs)
    }

    /// A statement among others that have the same parameters.
    fn also(&self, sql: String) -> Statement {
        let gives_identity = self.gives_identity;
        Statement { sql, parameters: self.parameters.clone(), columns: Vec::new(), gives_identity }
    }
}

fn plain(sql: String) -> Statement {
    Statement { sql, ..Statement::default() }
}

/// The names that a clause has: rows of the changed table before and after, and what stands beside it in FROM.
fn level_of(own: Vec<(&str, Vec<ScopeColumn>)>, others: Vec<ScopeTable>) -> Result<Level> {
    let mut level = Level::default();
    for (name, columns) in own {
        let name = Name::new(name).ok_or_else(Message::nameless_column)?;
        level.tables.push(ScopeTable {
            name: name.into(),
            columns,
            computed: false,
            row: None,
            is_prefixed: true,
        });
    }
    level.tables.extend(others);
    Ok(level)
}

/// Columns of the stage, quoted, and what each of them holds of the rows that are found.
type Kept = Vec<(String, String)>;

/// The rows that are changed as they were, what stands beside them, and the columns of the stage for both.
fn before(found: &Target) -> (Vec<ScopeColumn>, Vec<ScopeTable>, Kept) {
    let (mut deleted, mut others, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for (number, one) in found.level.tables.iter().enumerate() {
        let mut columns = Vec::new();
        for (at, column) in one.columns.iter().enumerate() {
            let name = format!("\"f{number}_{at}\"");
            kept.push((name.clone(), column.value.sql.clone()));
            let mut column = column.clone();
            column.value.sql = format!("s.{name}");
            columns.push(column);
        }
        match number == found.at {
            true => deleted = columns,
            false => others.push(ScopeTable { columns, ..one.clone() }),
        }
    }
    (deleted, others, kept)
}

/// The stage, behind a change of no row: what is to be written is locked before it is read, so that nobody writes
/// between the two.
fn stage_of(stage: &str, table: &str, kept: &[(String, String)]) -> Statement {
    let columns: String = kept.iter().map(|(name, _)| format!(", {name}")).collect();
    plain(format!("DELETE FROM {table} WHERE 0; CREATE TABLE {stage}(k PRIMARY KEY{columns})"))
}

/// Of several joined rows that belong to one row, the first.
fn fill(
    stage: &str,
    with: &str,
    row: &str,
    kept: &[(String, String)],
    found: &Target,
    limit: &str,
) -> String {
    let values: String = kept.iter().map(|(_, value)| format!(", {value}")).collect();
    format!("{with}INSERT OR IGNORE INTO {stage} SELECT {row}{values}{}{limit}", found.tail)
}

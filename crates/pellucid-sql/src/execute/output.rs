//! INSERT, UPDATE and DELETE with OUTPUT: the change, what it gives, and where that goes, all or nothing.

use pellucid_tsql::ast::{Insert, InsertSource, OutputClause};
use rusqlite::Connection;

use super::query::owned;
use super::{Done, Raised};
use crate::message::{Message, Result};
use crate::savepoint::in_savepoint;
use crate::session::{Frame, Session};
use crate::translate::{OutputChange, ResultColumn, Statement, Translator};
use crate::values::convert::Value;

/// The table that rows are kept in meanwhile, in memory as all temporary ones are.
pub(super) const STAGE: &str = "temp.\"@output\"";

/// What a change has done.
struct Gave {
    /// How many rows it has changed.
    count: u64,
    /// The number of the last row that it has put in.
    identity: i64,
    /// What the clauses give of them, side by side.
    rows: Vec<Vec<Value>>,
}

/// A clause with the columns of its rows that are its own, and what puts them into its table.
struct Part<'c> {
    begin: usize,
    columns: &'c [ResultColumn],
    into: Option<Statement>,
}

impl Session {
    pub(super) fn change_with_output(
        &mut self,
        clauses: &[OutputClause],
        is_insert: bool,
        translate: impl FnOnce(Translator<'_>) -> Result<OutputChange>,
    ) -> Done {
        self.check_row_count()?;
        for into in clauses.iter().filter_map(|clause| clause.into.as_ref()) {
            self.check_writable(&into.target)?;
        }
        let change = self.translated(translate)?;
        let parts = self.parts_of(clauses, &change)?;
        for statement in [&change.change, &change.rows].into_iter().chain(&change.fill) {
            self.databases.refresh(&statement.sql)?;
        }
        let Some(frame) = self.frames.last() else { return Err(Raised::cancelled()) };
        let done: Gave = in_savepoint(&self.databases.connection, |connection| {
            let done = changed(connection, frame, &change)?;
            parts.iter().try_for_each(|part| put_into(connection, part, &done.rows))?;
            connection.execute_batch(&format!("DROP TABLE {STAGE}"))?;
            Done::Ok(done)
        })?;
        if is_insert && done.count > 0 && change.change.gives_identity {
            self.shared.set_identity(done.identity);
        }
        for part in parts.iter().filter(|part| part.into.is_none()) {
            self.output().columns(part.columns);
            for row in &done.rows {
                self.output().row(part.of(row).to_vec());
            }
        }
        self.count(done.count);
        Ok(())
    }

    fn parts_of<'c>(
        &mut self,
        clauses: &[OutputClause],
        change: &'c OutputChange,
    ) -> Done<Vec<Part<'c>>> {
        let (mut parts, mut begin) = (Vec::new(), 0);
        for (clause, width) in clauses.iter().zip(&change.widths) {
            let columns = &change.rows.columns[begin..begin + width];
            let into = match &clause.into {
                None => None,
                Some(into) => {
                    let insert = Insert {
                        with: Vec::new(),
                        top: None,
                        target: into.target.clone(),
                        columns: into.columns.clone(),
                        output: Vec::new(),
                        source: InsertSource::DefaultValues,
                    };
                    let into =
                        self.translated(|translator| translator.insert_row(&insert, columns))?;
                    let name = into.sql.strip_prefix("INSERT INTO ").unwrap_or_default();
                    let (own, other) = (schema_of(&change.target), schema_of(name));
                    if own != other && own != "temp" && other != "temp" {
                        // Each database commits by itself: a crash between them would lose the rows.
                        let what = "OUTPUT INTO a table of another database";
                        return Err(Message::unsupported(what).into());
                    }
                    Some(into)
                }
            };
            parts.push(Part { begin, columns, into });
            begin += width;
        }
        Ok(parts)
    }
}

/// What stands before the point in SQLite's name of a table.
fn schema_of(table: &str) -> &str {
    match table.strip_prefix('"') {
        Some(quoted) => quoted.split("\".").next().unwrap_or_default(),
        None => table.split('.').next().unwrap_or_default(),
    }
}

impl Part<'_> {
    fn of<'r>(&self, row: &'r [Value]) -> &'r [Value] {
        row.get(self.begin..self.begin + self.columns.len()).unwrap_or_default()
    }
}

fn changed(connection: &Connection, frame: &Frame, change: &OutputChange) -> Done<Gave> {
    connection.execute_batch(&format!("DROP TABLE IF EXISTS {STAGE}; {}", change.stage.sql))?;
    if let Some(fill) = &change.fill {
        fill.prepare(connection, frame)?.raw_execute()?;
    }
    let (count, identity) = match &change.keep {
        None => (change.change.prepare(connection, frame)?.raw_execute()? as u64, 0),
        Some(keep) => {
            let made = all_rows(connection, frame, &change.change)?;
            let identity = connection.last_insert_rowid();
            let mut keep = connection.prepare(&keep.sql)?;
            for row in &made {
                keep.execute(rusqlite::params_from_iter(row))?;
            }
            (made.len() as u64, identity)
        }
    };
    Ok(Gave { count, identity, rows: all_rows(connection, frame, &change.rows)? })
}

fn all_rows(
    connection: &Connection,
    frame: &Frame,
    statement: &Statement,
) -> Done<Vec<Vec<Value>>> {
    let mut prepared = statement.prepare(connection, frame)?;
    let columns = prepared.column_count();
    let mut rows = prepared.raw_query();
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let values = (0..columns).map(|at| row.get_ref(at).map(owned));
        all.push(values.collect::<rusqlite::Result<_>>()?);
    }
    Ok(all)
}

fn put_into(connection: &Connection, part: &Part<'_>, rows: &[Vec<Value>]) -> Done {
    let Some(into) = &part.into else { return Ok(()) };
    let mut prepared = connection.prepare(&into.sql)?;
    for row in rows {
        for (at, value) in part.of(row).iter().enumerate().take(prepared.parameter_count()) {
            prepared.raw_bind_parameter(at + 1, value)?;
        }
        prepared.raw_execute()?;
    }
    Ok(())
}

//! INSERT .. EXECUTE: the rows of every result that a string or procedure gives go into a table.
//!
//! They are kept until it has ended, as SQL Server does, so that it may read the table. Messages are told meanwhile.

use pellucid_tsql::ast::{Execute, Insert};

use super::violation::Change;
use super::Done;
use crate::message::{table, Message};
use crate::savepoint::in_savepoint;
use crate::session::{Session, Sink};
use crate::translate::{ResultColumn, Statement};
use crate::values::convert::Value;

/// The results that are kept.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    results: Vec<(Vec<ResultColumn>, Vec<Vec<Value>>)>,
    /// How many columns each has to have.
    width: usize,
    /// One that was just given has not, and nobody has said so.
    is_wrong: bool,
    /// Whether the count that comes next is that of a result.
    is_given: bool,
    /// The transactions that were open before.
    transactions: u32,
}

/// Where results go: to the sink, or to an INSERT .. EXECUTE around.
pub(super) struct Output<'s> {
    pub kept: &'s mut Option<Kept>,
    pub sink: &'s mut dyn Sink,
}

impl Output<'_> {
    /// A result begins.
    pub fn columns(&mut self, columns: &[ResultColumn]) {
        match self.kept {
            Some(kept) => {
                kept.results.push((columns.to_vec(), Vec::new()));
                kept.is_given = true;
                kept.is_wrong |= columns.len() != kept.width;
            }
            None => self.sink.columns(columns),
        }
    }

    /// A row of it.
    pub fn row(&mut self, row: Vec<Value>) {
        match self.kept {
            Some(kept) => {
                if let Some((_, rows)) = kept.results.last_mut() {
                    rows.push(row);
                }
            }
            None => self.sink.row(row),
        }
    }
}

/// The state of 213 where the values are those of a result.
const OF_RESULT: u8 = 7;

impl Message {
    fn width_of_insert_execute() -> Self {
        Self::of(table::VALUES_DO_NOT_MATCH, []).with_state(OF_RESULT)
    }

    /// Whether it is that, which ends the batch and its transaction.
    pub(super) fn is_of_insert_execute(&self) -> bool {
        self.number == table::VALUES_DO_NOT_MATCH.number && self.state == OF_RESULT
    }
}

impl Session {
    pub(super) fn insert_execute(&mut self, insert: &Insert, execute: &Execute) -> Done {
        if self.kept.is_some() {
            return Err(Message::of(table::INSERT_EXEC_NESTED, []).into());
        }
        self.check_row_count()?;
        let width = self.translated(|translator| translator.inserted_columns(insert))?;
        self.kept = Some(Kept { width, transactions: self.transactions, ..Kept::default() });
        let done = self.execute_procedure(execute);
        let kept = self.kept.take().unwrap_or_default();
        done?;
        if kept.results.iter().any(|(columns, _)| columns.len() != width) {
            return Err(Message::width_of_insert_execute().into());
        }
        let mut statements = Vec::new();
        for (columns, rows) in kept.results {
            let statement =
                self.translated(|translator| translator.insert_row(insert, &columns))?;
            statements.push((statement, rows));
        }
        let change = Change::of("INSERT", &insert.target, &[]);
        let done = self.insert_rows(&statements);
        let rows = done.map_err(|raised| self.with_constraint(raised, change))?;
        let gives_identity = statements.iter().any(|(statement, _)| statement.gives_identity);
        if rows > 0 && gives_identity {
            self.shared.set_identity(self.databases.connection.last_insert_rowid());
        }
        self.count(rows);
        Ok(())
    }

    /// 213 as soon as a result has come that does not fit: nothing of what was to follow it is executed, as there.
    pub(super) fn fits_kept(&mut self) -> Done {
        match self.kept.as_mut().is_some_and(|kept| std::mem::take(&mut kept.is_wrong)) {
            true => Err(Message::width_of_insert_execute().into()),
            false => Ok(()),
        }
    }

    /// All rows or none.
    fn insert_rows(&mut self, statements: &[(Statement, Vec<Vec<Value>>)]) -> Done<u64> {
        in_savepoint(&self.databases.connection, |connection| {
            let mut count = 0;
            for (statement, rows) in statements {
                let mut prepared = connection.prepare(&statement.sql)?;
                for row in rows {
                    for (at, value) in row.iter().enumerate().take(prepared.parameter_count()) {
                        prepared.raw_bind_parameter(at + 1, value)?;
                    }
                    count += prepared.raw_execute()? as u64;
                }
            }
            Ok(count)
        })
    }

    /// Where results go.
    pub(super) fn output(&mut self) -> Output<'_> {
        Output { kept: &mut self.kept, sink: &mut *self.sink }
    }

    /// Whether the count that comes next belongs to a result that is kept.
    pub(super) fn ends_kept_result(&mut self) -> bool {
        self.kept.as_mut().is_some_and(|kept| std::mem::take(&mut kept.is_given))
    }

    /// Whether COMMIT ends a transaction that was begun within what is executed.
    pub(super) fn may_commit(&self) -> bool {
        self.kept.as_ref().is_none_or(|kept| self.transactions > kept.transactions)
    }
}

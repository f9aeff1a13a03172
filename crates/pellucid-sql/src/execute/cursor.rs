//! DECLARE CURSOR, OPEN, FETCH, CLOSE, DEALLOCATE.
//!
//! Source: Microsoft's "DECLARE CURSOR" and "FETCH". Every cursor is static: its rows are those of the moment when it was
//! opened. What it could not keep of a promise is refused by name: FOR UPDATE.

use std::cell::RefCell;
use std::rc::Rc;

use pellucid_tsql::ast::{
    self, CursorName, CursorOption, CursorStatement, Expression, Fetch, FetchDirection, Query,
    QueryBody, Variable,
};

use super::{query, Done, Raised};
use crate::message::{table, Message};
use crate::session::{Cursor, CursorHandle, Frame, OpenCursor, Session};
use crate::translate::{Parameter, VariableTypes, Variables};
use crate::values::convert::{convert, Value};

/// What @@FETCH_STATUS says.
const FETCHED: i64 = 0;
const NO_ROW: i64 = -1;

impl Session {
    pub(super) fn cursor(&mut self, statement: &CursorStatement) -> Done {
        match statement {
            CursorStatement::Declare { name, cursor } => {
                let is_local = self.is_local(&cursor.options)?;
                let key = name.as_str().to_lowercase();
                let exists = match is_local {
                    true => self.frame().cursors.contains_key(&key),
                    false => self.cursors.contains_key(&key),
                };
                if exists {
                    return Err(Message::of(table::CURSOR_EXISTS, [&name.as_str()]).into());
                }
                let cursor = self.declared_cursor(cursor)?;
                match is_local {
                    true => self.frame().cursors.insert(key, cursor),
                    false => self.cursors.insert(key, cursor),
                };
            }
            CursorStatement::Assign { variable, cursor } => {
                self.check_cursor_variable(variable)?;
                let cursor = self.declared_cursor(cursor)?;
                self.frame().cursor_variables.insert(variable.0.to_lowercase(), Some(cursor));
            }
            CursorStatement::Open(name) => {
                let cursor = self.named(name)?;
                self.open_cursor(&cursor)?;
            }
            CursorStatement::Fetch(fetch) => self.fetch(fetch)?,
            CursorStatement::Close(name) => {
                let cursor = self.named(name)?;
                let was_open = cursor.borrow_mut().open.take();
                if was_open.is_none() {
                    return Err(Message::of(table::CURSOR_NOT_OPEN, []).into());
                }
            }
            CursorStatement::Deallocate(name) => self.deallocate(name)?,
        }
        self.tell_cursors();
        Ok(())
    }

    /// The cursor that `SET @c = ..` names, where the variable is of the type CURSOR.
    pub(super) fn cursor_of(
        &mut self,
        variable: &Variable,
        value: &Expression,
    ) -> Option<CursorName> {
        if !self.frame().cursor_variables.contains_key(&variable.0.to_lowercase()) {
            return None;
        }
        match value {
            Expression::Variable(other) => Some(CursorName::Variable(other.clone())),
            Expression::Column(column) if column.table.is_none() => {
                Some(CursorName::Named { global: false, name: column.column.clone() })
            }
            _ => None,
        }
    }

    /// `SET @c = c`
    pub(super) fn set_cursor_variable(&mut self, variable: &str, name: &CursorName) -> Done {
        let cursor = self.named(name)?;
        self.frame().cursor_variables.insert(variable.to_lowercase(), Some(cursor));
        self.tell_cursors();
        Ok(())
    }

    fn is_local(&mut self, options: &[CursorOption]) -> Done<bool> {
        let scope = options.iter().find_map(|option| match option {
            CursorOption::Local => Some(true),
            CursorOption::Global => Some(false),
            _ => None,
        });
        match scope {
            Some(is_local) => Ok(is_local),
            // CURSOR_DEFAULT of the database.
            None => {
                let known = self.databases.current()?;
                Ok(self.databases.instance.option(&known, "LOCAL_CURSORS")? == Some(1))
            }
        }
    }

    /// A cursor whose query is translated and whose variables are what they are now.
    fn declared_cursor(&mut self, cursor: &ast::Cursor) -> Done<CursorHandle> {
        if cursor.update.is_some() {
            return Err(Message::unsupported("cursor FOR UPDATE").into());
        }
        let has = |wanted: &[CursorOption]| cursor.options.iter().any(|one| wanted.contains(one));
        let is_forward_only = has(&[CursorOption::ForwardOnly, CursorOption::FastForward])
            || !has(&[
                CursorOption::Scroll,
                CursorOption::Static,
                CursorOption::Keyset,
                CursorOption::Dynamic,
            ]);
        let survives_rollback = has(&[CursorOption::Static]) || is_made_static(&cursor.query);
        let statement = self.translated(|translator| translator.query(&cursor.query))?;
        let databases = self.databases.in_use();
        let mut variables = Frame::default();
        for parameter in &statement.parameters {
            if let Parameter::Variable(name) = parameter {
                let frame = self.frame();
                if let Some(data_type) = frame.variable_type(name) {
                    let value = frame.get(name);
                    variables.declare(name, data_type, value);
                }
            }
        }
        let batch = self.batch;
        let cursor = Cursor {
            statement,
            variables,
            is_forward_only,
            survives_rollback,
            batch,
            databases,
            open: None,
        };
        Ok(Rc::new(RefCell::new(cursor)))
    }

    fn check_cursor_variable(&mut self, variable: &Variable) -> Done {
        match self.frame().cursor_variables.contains_key(&variable.0.to_lowercase()) {
            true => Ok(()),
            false if self.frame().has(&variable.0) => {
                Err(Message::of(table::NO_CURSOR_VARIABLE, [&variable.0]).into())
            }
            false => Err(Message::undeclared(&variable.0).into()),
        }
    }

    /// The cursor of this name: one of the batch or procedure before one of the session.
    fn named(&mut self, name: &CursorName) -> Done<CursorHandle> {
        match name {
            CursorName::Variable(variable) => {
                self.check_cursor_variable(variable)?;
                let held = self.frame().cursor_variables.get(&variable.0.to_lowercase());
                let missing = || Message::of(table::NO_CURSOR_ALLOCATED, [&variable.0]);
                Ok(held.cloned().flatten().ok_or_else(missing)?)
            }
            CursorName::Named { global, name } => {
                let key = name.as_str().to_lowercase();
                let local = self.frame().cursors.get(&key).filter(|_| !global).cloned();
                let found = local.or_else(|| self.cursors.get(&key).cloned());
                let missing = || Message::of(table::UNKNOWN_CURSOR, [&name.as_str()]);
                Ok(found.ok_or_else(missing)?)
            }
        }
    }

    fn open_cursor(&mut self, cursor: &CursorHandle) -> Done {
        let mut cursor = cursor.borrow_mut();
        if cursor.open.is_some() {
            return Err(Message::of(table::CURSOR_IS_OPEN, []).into());
        }
        self.databases.attach_again(&cursor.databases)?;
        let statement = &cursor.statement;
        self.databases.refresh(&statement.sql)?;
        let mut prepared = statement.prepare(&self.databases.connection, &cursor.variables)?;
        let count = statement.columns.len();
        let mut rows = Vec::new();
        let mut found = prepared.raw_query();
        while let Some(row) = found.next()? {
            if self.cancel.is_asked() {
                return Err(Raised::cancelled());
            }
            let values = (0..count).map(|at| row.get_ref(at).map(query::owned));
            rows.push(values.collect::<rusqlite::Result<Vec<_>>>()?);
        }
        drop(found);
        drop(prepared);
        self.shared.set_cursor_rows(rows.len());
        let columns = statement.columns.clone();
        cursor.open = Some(OpenCursor { columns, rows, at: 0 });
        Ok(())
    }

    fn fetch(&mut self, fetch: &Fetch) -> Done {
        let (word, number) = match &fetch.direction {
            FetchDirection::Next => ("next", None),
            FetchDirection::Prior => ("prior", None),
            FetchDirection::First => ("first", None),
            FetchDirection::Last => ("last", None),
            FetchDirection::Absolute(number) => ("absolute", Some(number)),
            FetchDirection::Relative(number) => ("relative", Some(number)),
        };
        let number = match number {
            Some(number) => self.integer(number)?,
            None => 0,
        };
        let cursor = self.named(&fetch.cursor)?;
        let mut cursor = cursor.borrow_mut();
        let is_forward_only = cursor.is_forward_only;
        let Some(open) = &mut cursor.open else {
            return Err(Message::of(table::CURSOR_NOT_OPEN, []).into());
        };
        if is_forward_only && fetch.direction != FetchDirection::Next {
            return Err(Message::of(table::FORWARD_ONLY, [&word]).into());
        }
        if !fetch.into.is_empty() && fetch.into.len() != open.columns.len() {
            return Err(Message::of(table::FETCH_INTO_COUNT, []).into());
        }
        let count = i64::try_from(open.rows.len()).unwrap_or(i64::MAX);
        let at = match fetch.direction {
            FetchDirection::Next => open.at + 1,
            FetchDirection::Prior => open.at - 1,
            FetchDirection::First => 1,
            FetchDirection::Last => count.max(1),
            FetchDirection::Absolute(_) if number < 0 => {
                count.saturating_add(1).saturating_add(number)
            }
            FetchDirection::Absolute(_) => number,
            FetchDirection::Relative(_) => open.at.saturating_add(number),
        };
        let row = open.go_to(at).map(<[Value]>::to_vec);
        let status = if row.is_some() { FETCHED } else { NO_ROW };
        self.shared.set_fetch_status(status);
        let rows = u64::from(row.is_some());
        if fetch.into.is_empty() {
            self.output().columns(&open.columns);
            if let Some(row) = row {
                self.output().row(row);
            }
            self.count(rows);
            return Ok(());
        }
        let types: Vec<_> = open.columns.iter().map(|column| column.data_type).collect();
        drop(cursor);
        for ((variable, value), from) in fetch.into.iter().zip(row.into_iter().flatten()).zip(types)
        {
            let Some(to) = self.frame().variable_type(&variable.0) else {
                return Err(Message::undeclared(&variable.0).into());
            };
            let value = convert(value, from, to, None)?;
            self.frame().set(&variable.0, value);
        }
        self.shared.set_row_count(rows);
        Ok(())
    }

    fn deallocate(&mut self, name: &CursorName) -> Done {
        self.named(name)?;
        match name {
            CursorName::Variable(variable) => {
                self.frame().cursor_variables.insert(variable.0.to_lowercase(), None);
            }
            CursorName::Named { global, name } => {
                let key = name.as_str().to_lowercase();
                let was_local = !global && self.frame().cursors.remove(&key).is_some();
                if !was_local {
                    self.cursors.remove(&key);
                }
            }
        }
        Ok(())
    }

    /// ROLLBACK closes cursors that are not static.
    ///
    /// Source: Microsoft's "ROLLBACK TRANSACTION", on cursors with CURSOR_CLOSE_ON_COMMIT OFF.
    pub(super) fn close_for_rollback(&mut self) {
        let local = self.frames.iter().flat_map(|frame| {
            frame.cursors.values().chain(frame.cursor_variables.values().flatten())
        });
        for cursor in self.cursors.values().chain(local) {
            let mut cursor = cursor.borrow_mut();
            if !cursor.survives_rollback {
                cursor.open = None;
            }
        }
        self.tell_cursors();
    }

    /// The batch ends with an error that rolls back: what it has declared goes, of whatever kind.
    pub(super) fn drop_cursors_of_batch(&mut self) {
        let batch = self.batch;
        self.cursors.retain(|_, cursor| cursor.borrow().batch != batch);
        self.tell_cursors();
    }

    /// Tells the functions what CURSOR_STATUS finds from here.
    pub(super) fn tell_cursors(&mut self) {
        let global = self.cursors.clone();
        let all = self.frame().cursor_statuses(&global);
        self.shared.set_cursors(all);
    }
}

/// Whether SQL Server makes a cursor static whose query this is: its rows are none of a table's.
///
/// Source: Microsoft's "Implicit Cursor Conversions".
fn is_made_static(query: &Query) -> bool {
    match &query.body {
        QueryBody::Sets(_) => true,
        QueryBody::Select(select) => {
            select.distinct
                || !select.group.is_empty()
                || select.having.is_some()
                || select.from.is_empty()
        }
    }
}

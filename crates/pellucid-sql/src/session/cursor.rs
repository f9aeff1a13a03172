//! Cursors: what is kept between their statements.
//!
//! OPEN reads all rows, whatever kind of cursor was asked for: it is static.

use std::cell::RefCell;
use std::rc::Rc;

use super::Frame;
use crate::translate::{ResultColumn, Statement};
use crate::values::convert::Value;

/// A cursor as the names that it has share it.
pub(crate) type CursorHandle = Rc<RefCell<Cursor>>;

/// A cursor.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// Its query.
    pub statement: Statement,
    /// The variables of the query, as they were when it was declared.
    pub variables: Frame,
    /// Whether FETCH takes NEXT alone.
    pub is_forward_only: bool,
    /// Whether ROLLBACK leaves it open: STATIC was asked for, or SQL Server would make it static of itself.
    pub survives_rollback: bool,
    /// The batch that declares it.
    pub batch: u64,
    /// The databases of its query.
    pub databases: Vec<i64>,
    /// Its rows; none while it is closed.
    pub open: Option<OpenCursor>,
}

/// The rows of an open cursor.
#[derive(Debug)]
pub(crate) struct OpenCursor {
    pub columns: Vec<ResultColumn>,
    pub rows: Vec<Vec<Value>>,
    /// The row at hand, from 1; 0 before the first, one more than there are behind the last.
    pub at: i64,
}

impl OpenCursor {
    /// Goes to a row; none if there is none.
    pub fn go_to(&mut self, at: i64) -> Option<&[Value]> {
        let count = i64::try_from(self.rows.len()).unwrap_or(i64::MAX);
        self.at = at.clamp(0, count.saturating_add(1));
        let index = usize::try_from(self.at.checked_sub(1)?).ok()?;
        self.rows.get(index).map(Vec::as_slice)
    }
}

impl Cursor {
    /// What CURSOR_STATUS says: 1 open with rows, 0 open without, -1 closed.
    pub fn status(&self) -> i64 {
        self.open.as_ref().map_or(-1, |open| i64::from(!open.rows.is_empty()))
    }
}

/// What CURSOR_STATUS finds by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CursorStatus {
    /// `local`, `global` or `variable`.
    pub scope: &'static str,
    /// In lower case; of a variable with its `@`.
    pub name: String,
    pub status: i64,
}

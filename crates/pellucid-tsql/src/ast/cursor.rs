//! Cursors.

use super::{ColumnName, Expression, Name, Query, Variable};
use crate::keyword::words;

/// Statements on cursors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CursorStatement {
    /// `DECLARE c CURSOR ..`, also in the spelling of ISO: INSENSITIVE is STATIC.
    Declare { name: Name, cursor: Box<Cursor> },
    /// `SET @c = CURSOR ..`
    Assign { variable: Variable, cursor: Box<Cursor> },
    /// `OPEN`
    Open(CursorName),
    /// `FETCH`
    Fetch(Box<Fetch>),
    /// `CLOSE`
    Close(CursorName),
    /// `DEALLOCATE`
    Deallocate(CursorName),
}

/// `CURSOR [options] FOR query [FOR UPDATE [OF ..]]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// What is said of it, in order; `FOR READ ONLY` is READ_ONLY.
    pub options: Vec<CursorOption>,
    /// Its rows.
    pub query: Query,
    /// `FOR UPDATE [OF ..]`; empty: all columns.
    pub update: Option<Vec<ColumnName>>,
}

words! {
    /// Options of a cursor.
    pub enum CursorOption {
        Local = LOCAL,
        Global = GLOBAL,
        ForwardOnly = FORWARD_ONLY,
        Scroll = SCROLL,
        Static = STATIC,
        Keyset = KEYSET,
        Dynamic = DYNAMIC,
        FastForward = FAST_FORWARD,
        ReadOnly = READ_ONLY,
        ScrollLocks = SCROLL_LOCKS,
        Optimistic = OPTIMISTIC,
        TypeWarning = TYPE_WARNING,
    }
}

/// Which cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CursorName {
    /// `[GLOBAL] c`
    Named { global: bool, name: Name },
    /// `@c`
    Variable(Variable),
}

/// `FETCH [direction FROM] c [INTO @v, ..]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// Which row.
    pub direction: FetchDirection,
    /// Of which cursor.
    pub cursor: CursorName,
    /// Where its values go; empty: to the client.
    pub into: Vec<Variable>,
}

/// Which row FETCH gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchDirection {
    /// `NEXT`
    Next,
    /// `PRIOR`
    Prior,
    /// `FIRST`
    First,
    /// `LAST`
    Last,
    /// `ABSOLUTE n`: from the end if it is negative.
    Absolute(Expression),
    /// `RELATIVE n`
    Relative(Expression),
}

//! INSERT, UPDATE and DELETE.

use super::{
    ColumnName, CommonTable, Condition, Execute, Expression, Name, ObjectName, Query, QueryOption,
    SelectItem, TableHint, TableSource, Top, Variable,
};

/// What is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeTarget {
    /// A table, a view, or an alias of the FROM clause.
    Table { name: ObjectName, hints: Vec<TableHint> },
    /// A table variable.
    Variable(Variable),
}

/// `INSERT`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insert {
    /// `WITH`
    pub with: Vec<CommonTable>,
    /// `TOP`
    pub top: Option<Top>,
    /// `INTO`
    pub target: ChangeTarget,
    /// Its columns; empty: all.
    pub columns: Vec<Name>,
    /// `OUTPUT`
    pub output: Vec<OutputClause>,
    /// What is put in.
    pub source: InsertSource,
}

/// What is put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InsertSource {
    /// `VALUES`; `None`: `DEFAULT`
    Values(Vec<Vec<Option<Expression>>>),
    /// A query. Its own WITH is empty: that of the INSERT counts.
    Query(Box<Query>),
    /// `EXECUTE`
    Execute(Box<Execute>),
    /// `DEFAULT VALUES`
    DefaultValues,
}

/// `UPDATE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// `WITH`
    pub with: Vec<CommonTable>,
    /// `TOP`
    pub top: Option<Top>,
    /// What is changed.
    pub target: ChangeTarget,
    /// `SET`
    pub set: Vec<SetClause>,
    /// `OUTPUT`
    pub output: Vec<OutputClause>,
    /// `FROM`
    pub from: Vec<TableSource>,
    /// `WHERE`
    pub filter: Option<Condition>,
    /// `OPTION`
    pub options: Vec<QueryOption>,
}

/// `OUTPUT inserted.a, deleted.b [INTO table (columns)]`: there is none, one, or one with INTO before one without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputClause {
    /// What is given of each row.
    pub items: Vec<SelectItem>,
    /// `INTO`; `None`: to whoever has sent the statement.
    pub into: Option<OutputInto>,
}

/// `INTO table (columns)` of an OUTPUT clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputInto {
    /// The table.
    pub target: ChangeTarget,
    /// Its columns; empty: all.
    pub columns: Vec<Name>,
}

/// One assignment of UPDATE: `column = value`, `@v = value`, `@v = column = value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetClause {
    /// What is assigned to.
    pub target: SetTarget,
    /// How.
    pub operator: AssignmentOperator,
    /// What is assigned; `None`: `DEFAULT`
    pub value: Option<Expression>,
}

/// What UPDATE assigns to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetTarget {
    /// `column`
    Column(ColumnName),
    /// `@v`
    Variable(Variable),
    /// `@v = column`
    Both(Variable, ColumnName),
}

/// How something is assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignmentOperator {
    /// `=`
    Set,
    /// `+=`
    Add,
    /// `-=`
    Subtract,
    /// `*=`
    Multiply,
    /// `/=`
    Divide,
    /// `%=`
    Modulo,
    /// `&=`
    BitAnd,
    /// `|=`
    BitOr,
    /// `^=`
    BitXor,
}

/// `DELETE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    /// `WITH`
    pub with: Vec<CommonTable>,
    /// `TOP`
    pub top: Option<Top>,
    /// What is changed.
    pub target: ChangeTarget,
    /// `OUTPUT`
    pub output: Vec<OutputClause>,
    /// `FROM`, the second one
    pub from: Vec<TableSource>,
    /// `WHERE`
    pub filter: Option<Condition>,
    /// `OPTION`
    pub options: Vec<QueryOption>,
}

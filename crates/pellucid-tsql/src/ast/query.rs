//! SELECT and what it is made of.

use super::{
    AssignmentOperator, ColumnName, Condition, Expression, FunctionCall, Name, ObjectName,
    StringLiteral, Variable,
};
use crate::keyword::words;

/// `[WITH ..] SELECT .. [ORDER BY ..] [OFFSET ..] [OPTION ..]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// `WITH`
    pub with: Vec<CommonTable>,
    /// What is selected.
    pub body: QueryBody,
    /// `ORDER BY`
    pub order: Vec<OrderItem>,
    /// `OFFSET .. FETCH`
    pub offset: Option<Offset>,
    /// `FOR XML`
    pub xml: Option<ForXml>,
    /// `OPTION`
    pub options: Vec<QueryOption>,
}

/// `FOR XML {PATH | RAW} [('element')] [, TYPE] [, ROOT [('root')]] [, ELEMENTS]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForXml {
    /// The element of each row, `row` if none is written; empty: none.
    pub element: String,
    /// `TYPE`: the result is xml, not text.
    pub typed: bool,
    /// The element around all rows, `root` if none is written.
    pub root: Option<String>,
    /// What a column becomes.
    pub mode: XmlMode,
}

/// What `FOR XML` makes of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XmlMode {
    /// `PATH`: its name says where it stands.
    Path,
    /// `RAW`: an attribute of its name.
    Raw,
    /// `RAW` with `ELEMENTS`: an element of its name.
    RawElements,
}

/// `name [(columns)] AS (query)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommonTable {
    /// Its name.
    pub name: Name,
    /// Its columns; empty: those of the query.
    pub columns: Vec<Name>,
    /// What it stands for.
    pub query: Query,
}

/// One SELECT, or several under set operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryBody {
    /// One SELECT.
    Select(Box<Select>),
    /// `a UNION b EXCEPT c`, `a INTERSECT b`
    Sets(Box<SetChain>),
}

/// Queries under set operators of one level, from left to right: INTERSECT binds more than the others.
///
/// `first` is never a chain of the same level, and `rest` never empty: [`QueryBody::set`] sees to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetChain {
    /// The first.
    pub first: QueryBody,
    /// The others, each with the operator before it.
    pub rest: Vec<(SetOperator, QueryBody)>,
}

impl SetChain {
    /// Whether its operators are INTERSECT.
    pub fn is_intersect(&self) -> bool {
        self.rest.first().is_some_and(|(operator, _)| *operator == SetOperator::Intersect)
    }
}

impl QueryBody {
    /// `left operator right`, as part of `left` if that is a chain of the same level.
    pub fn set(left: QueryBody, operator: SetOperator, right: QueryBody) -> Self {
        match left {
            QueryBody::Sets(mut chain)
                if chain.is_intersect() == (operator == SetOperator::Intersect) =>
            {
                chain.rest.push((operator, right));
                QueryBody::Sets(chain)
            }
            first => QueryBody::Sets(Box::new(SetChain { first, rest: vec![(operator, right)] })),
        }
    }
}

/// Between queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOperator {
    /// `UNION`
    Union,
    /// `UNION ALL`
    UnionAll,
    /// `EXCEPT`
    Except,
    /// `INTERSECT`
    Intersect,
}

/// `SELECT`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Select {
    /// `DISTINCT`
    pub distinct: bool,
    /// `TOP`
    pub top: Option<Top>,
    /// What is selected, at least one thing.
    pub items: Vec<SelectItem>,
    /// `INTO`
    pub into: Option<ObjectName>,
    /// `FROM`
    pub from: Vec<TableSource>,
    /// `WHERE`
    pub filter: Option<Condition>,
    /// `GROUP BY`
    pub group: Vec<Expression>,
    /// `HAVING`
    pub having: Option<Condition>,
}

/// `TOP (n) [PERCENT] [WITH TIES]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Top {
    /// How many.
    pub count: Expression,
    /// Of a hundred.
    pub percent: bool,
    /// `WITH TIES`
    pub with_ties: bool,
}

/// One thing that is selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectItem {
    /// `*`, `t.*`
    Star(Option<ObjectName>),
    /// `value [AS alias]`, `alias = value`
    Value { value: Expression, alias: Option<Name> },
    /// `@v = value`, `@v += value`
    Assign { variable: Variable, operator: AssignmentOperator, value: Expression },
}

/// Something to select from, and what is joined to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSource {
    /// The first.
    pub table: TablePrimary,
    /// The others, in order.
    pub joins: Vec<Join>,
}

/// One thing to select from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TablePrimary {
    /// `t [AS a] [WITH (hints)]`
    Table { name: ObjectName, alias: Option<Name>, hints: Vec<TableHint> },
    /// `@t [AS a]`
    Variable { variable: Variable, alias: Option<Name> },
    /// `f(..) [AS a [(columns)]]`
    Function { call: FunctionCall, alias: Option<TableAlias> },
    /// `@x.nodes('path') AS a (column)`; of a column it is a function.
    Nodes { variable: Variable, path: StringLiteral, alias: TableAlias },
    /// `(SELECT ..) AS a [(columns)]`
    Query { query: Box<Query>, alias: TableAlias },
    /// `(VALUES (..), ..) AS a (columns)`
    Values { rows: Vec<Vec<Expression>>, alias: TableAlias },
    /// `(a JOIN b ON ..)`
    Joined(Box<TableSource>),
    /// `a PIVOT (..) AS b`
    Pivot(Box<Pivot>),
    /// `a UNPIVOT (..) AS b`
    Unpivot(Box<Unpivot>),
}

/// `source PIVOT (aggregate(value) FOR column IN (a, b)) AS alias`: a column for each of some values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pivot {
    /// What is turned.
    pub source: TableSource,
    /// The aggregate.
    pub aggregate: Name,
    /// What it is of.
    pub value: ColumnName,
    /// What the columns are made of.
    pub column: ColumnName,
    /// Its values, each a column's name.
    pub values: Vec<Name>,
    /// What it is called.
    pub alias: TableAlias,
}

/// `source UNPIVOT (value FOR name IN (a, b)) AS alias`: a row for each of some columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpivot {
    /// What is turned.
    pub source: TableSource,
    /// The column that has the values.
    pub value: Name,
    /// The column that has the names.
    pub name: Name,
    /// The columns that become rows.
    pub columns: Vec<ColumnName>,
    /// What it is called.
    pub alias: TableAlias,
}

/// `a [(columns)]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableAlias {
    /// Its name.
    pub name: Name,
    /// Its columns; empty: as they are.
    pub columns: Vec<Name>,
}

words! {
    /// How a table is locked.
    pub enum TableHint {
        HoldLock = HOLDLOCK,
        NoExpand = NOEXPAND,
        NoLock = NOLOCK,
        NoWait = NOWAIT,
        PageLock = PAGLOCK,
        ReadCommitted = READCOMMITTED,
        ReadCommittedLock = READCOMMITTEDLOCK,
        ReadPast = READPAST,
        ReadUncommitted = READUNCOMMITTED,
        RepeatableRead = REPEATABLEREAD,
        RowLock = ROWLOCK,
        Serializable = SERIALIZABLE,
        TabLock = TABLOCK,
        TabLockX = TABLOCKX,
        UpdLock = UPDLOCK,
        XLock = XLOCK,
    }
}

/// What is joined, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// How, and on what.
    pub kind: JoinKind,
    /// What.
    pub right: TablePrimary,
}

/// How two tables are joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JoinKind {
    /// `[INNER] JOIN`
    Inner(Condition),
    /// `LEFT [OUTER] JOIN`
    Left(Condition),
    /// `RIGHT [OUTER] JOIN`
    Right(Condition),
    /// `FULL [OUTER] JOIN`
    Full(Condition),
    /// `CROSS JOIN`
    Cross,
    /// `CROSS APPLY`
    CrossApply,
    /// `OUTER APPLY`
    OuterApply,
}

/// `value [ASC | DESC]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderItem {
    /// By what.
    pub value: Expression,
    /// `DESC`
    pub descending: bool,
}

/// `OFFSET n ROWS [FETCH NEXT m ROWS ONLY]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offset {
    /// Rows left out.
    pub skip: Expression,
    /// Rows given.
    pub fetch: Option<Expression>,
}

/// `OPTION (..)`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryOption {
    /// `RECOMPILE`
    Recompile,
    /// `MAXRECURSION n`
    MaxRecursion(u64),
    /// `MAXDOP n`
    MaxDop(u64),
}

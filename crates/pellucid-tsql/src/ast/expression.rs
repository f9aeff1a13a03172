//! Values and conditions, which T-SQL keeps apart.

use super::{DataType, Name, ObjectName, OrderItem, Query, StringLiteral, Variable};
use crate::keyword::words;

/// Something that has a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// A constant.
    Literal(Literal),
    /// A column, maybe behind the name of its table.
    Column(Box<ColumnName>),
    /// `@v`
    Variable(Variable),
    /// `@@v`, without the `@@`
    SystemVariable(String),
    /// `-x`, `+x`, `~x`
    Unary { operator: UnaryOperator, operand: Box<Expression> },
    /// `a + b - c`, `a * b / c`
    Chain(Box<Chain>),
    /// `DEFAULT`, as an argument of a function that a script has made.
    Default,
    /// `CASE`
    Case(Box<Case>),
    /// `IIF(condition, then, otherwise)`
    Iif(Box<Iif>),
    /// `CAST(x AS type)`, `CONVERT(type, x, style)`
    Convert(Box<Convert>),
    /// `f(..)`
    Function(Box<FunctionCall>),
    /// `CURRENT_TIMESTAMP` and other functions without parentheses.
    Niladic(Niladic),
    /// `(SELECT ..)`
    Subquery(Box<Query>),
    /// `x.value('path', 'type')`
    XmlMethod(Box<XmlMethod>),
    /// `x COLLATE c`
    Collate { operand: Box<Expression>, collation: Name },
}

/// `x.value('path', 'type')` and its like. Of a column it is a [`FunctionCall`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XmlMethod {
    /// The xml.
    pub operand: Expression,
    /// What is asked.
    pub asked: XmlAsked,
    /// The path, as it is written.
    pub path: StringLiteral,
}

/// What xml is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum XmlAsked {
    /// `value`, with the type as it is written.
    Value(StringLiteral),
    /// `query`
    Query,
    /// `exist`
    Exist,
}

/// A constant. Numbers are kept as they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// `NULL`
    Null,
    /// `'..'`
    String(StringLiteral),
    /// `12`
    Integer(String),
    /// `1.5`
    Decimal(String),
    /// `1.5e3`
    Float(String),
    /// `$1.50`, without the `$`
    Money(String),
    /// `0x..`
    Binary(Vec<u8>),
}

/// `[table.]column`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnName {
    /// The table or its alias.
    pub table: Option<ObjectName>,
    /// The column.
    pub column: Name,
}

/// Operators before their operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `-`, which binds less than `*`: `-a % b` is `-(a % b)`.
    Minus,
    /// `+`, likewise
    Plus,
    /// `~`
    Not,
}

/// Operands of one level of precedence, computed from left to right.
///
/// `first` is never a chain of the same level, and `rest` never empty: [`Expression::binary`] sees to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The first operand.
    pub first: Expression,
    /// The others, each with the operator before it; all operators are of one level.
    pub rest: Vec<(BinaryOperator, Expression)>,
}

/// Operators between values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOperator {
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
    /// `+`, of numbers and of strings
    Add,
    /// `-`
    Subtract,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
}

impl BinaryOperator {
    /// Whether it binds like `*` rather than like `+`.
    pub fn is_product(self) -> bool {
        matches!(self, Self::Multiply | Self::Divide | Self::Modulo)
    }
}

impl Expression {
    /// `left operator right`, as part of `left` if that is a chain of the same level.
    pub fn binary(left: Expression, operator: BinaryOperator, right: Expression) -> Self {
        match left {
            Expression::Chain(mut chain) if chain.is_product() == operator.is_product() => {
                chain.rest.push((operator, right));
                Expression::Chain(chain)
            }
            first => Expression::Chain(Box::new(Chain { first, rest: vec![(operator, right)] })),
        }
    }
}

impl Chain {
    /// Whether its operators bind like `*`.
    pub fn is_product(&self) -> bool {
        self.rest.first().is_some_and(|(operator, _)| operator.is_product())
    }
}

/// `CASE .. END`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Its branches, in order, at least one.
    pub branches: CaseBranches,
    /// `ELSE`
    pub otherwise: Option<Expression>,
}

/// Branches of `CASE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseBranches {
    /// `CASE x WHEN value THEN ..`
    Simple { operand: Expression, branches: Vec<(Expression, Expression)> },
    /// `CASE WHEN condition THEN ..`
    Searched(Vec<(Condition, Expression)>),
}

/// `IIF(condition, then, otherwise)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iif {
    /// What decides.
    pub condition: Condition,
    /// If it is true.
    pub then: Expression,
    /// If it is not.
    pub otherwise: Expression,
}

/// `CAST`, `CONVERT` and those that give NULL instead of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Convert {
    /// What is converted.
    pub operand: Expression,
    /// To what.
    pub data_type: DataType,
    /// Third argument of `CONVERT`.
    pub style: Option<Expression>,
    /// `TRY_`: NULL instead of an error.
    pub or_null: bool,
}

/// `name(..) [WITHIN GROUP (..)] [OVER (..)]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionCall {
    /// Its name.
    pub name: ObjectName,
    /// `DISTINCT`
    pub distinct: bool,
    /// What stands in the parentheses.
    pub arguments: FunctionArguments,
    /// `WITHIN GROUP (ORDER BY ..)`, empty without
    pub within_group: Vec<OrderItem>,
    /// `OVER (..)`
    pub over: Option<Over>,
}

/// What stands in a call's parentheses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionArguments {
    /// `COUNT(*)`
    Star,
    /// Values; a date part such as `SECOND` is a column of that name.
    Values(Vec<Expression>),
}

/// `OVER (PARTITION BY .. ORDER BY .. ROWS ..)`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Over {
    /// `PARTITION BY`
    pub partition: Vec<Expression>,
    /// `ORDER BY`
    pub order: Vec<OrderItem>,
    /// `ROWS`, `RANGE`
    pub frame: Option<Frame>,
}

/// Rows that a window function looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Of what.
    pub unit: FrameUnit,
    /// From here.
    pub start: FrameBound,
    /// To there; `None`: the current row.
    pub end: Option<FrameBound>,
}

words! {
    /// What a frame is measured in.
    pub enum FrameUnit {
        Rows = ROWS,
        Range = RANGE,
    }
}

/// One end of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameBound {
    /// `UNBOUNDED PRECEDING`
    UnboundedPreceding,
    /// `n PRECEDING`
    Preceding(u64),
    /// `CURRENT ROW`
    CurrentRow,
    /// `n FOLLOWING`
    Following(u64),
    /// `UNBOUNDED FOLLOWING`
    UnboundedFollowing,
}

words! {
    /// Functions without parentheses.
    pub enum Niladic {
        CurrentTimestamp = CURRENT_TIMESTAMP,
        CurrentUser = CURRENT_USER,
        SessionUser = SESSION_USER,
        SystemUser = SYSTEM_USER,
        User = USER,
    }
}

/// Something that is true, false or unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// `a AND b AND ..`, at least two, none of them an `And`
    And(Vec<Condition>),
    /// `a OR b OR ..`, at least two, none of them an `Or`
    Or(Vec<Condition>),
    /// `NOT a`
    Not(Box<Condition>),
    /// `a < b`
    Compare { left: Expression, comparison: Comparison, right: Expression },
    /// `a < ALL (SELECT ..)`
    Quantified {
        left: Expression,
        comparison: Comparison,
        quantifier: Quantifier,
        query: Box<Query>,
    },
    /// `a [NOT] BETWEEN b AND c`
    Between { operand: Expression, negated: bool, low: Expression, high: Expression },
    /// `a [NOT] IN (..)`
    In { operand: Expression, negated: bool, list: InList },
    /// `a [NOT] LIKE b [ESCAPE c]`
    Like { operand: Expression, negated: bool, pattern: Expression, escape: Option<Expression> },
    /// `a IS [NOT] NULL`
    IsNull { operand: Expression, negated: bool },
    /// `a IS [NOT] DISTINCT FROM b`
    IsDistinct { left: Expression, negated: bool, right: Expression },
    /// `EXISTS (SELECT ..)`
    Exists(Box<Query>),
}

impl Condition {
    /// `left AND right`, flat.
    pub fn and(left: Condition, right: Condition) -> Self {
        match left {
            Condition::And(mut all) => {
                all.push(right);
                Condition::And(all)
            }
            first => Condition::And(vec![first, right]),
        }
    }

    /// `left OR right`, flat.
    pub fn or(left: Condition, right: Condition) -> Self {
        match left {
            Condition::Or(mut all) => {
                all.push(right);
                Condition::Or(all)
            }
            first => Condition::Or(vec![first, right]),
        }
    }
}

/// What two values are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`, `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`, `!>`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`, `!<`
    GreaterOrEqual,
}

impl Comparison {
    /// How the operator is written, in T-SQL and in SQLite's SQL alike.
    pub fn sign(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::NotEqual => "<>",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

words! {
    /// How many rows of a query have to compare so.
    pub enum Quantifier {
        All = ALL,
        Any = ANY,
        Some = SOME,
    }
}

/// What stands in the parentheses of `IN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InList {
    /// Values, at least one.
    Values(Vec<Expression>),
    /// A query.
    Query(Box<Query>),
}

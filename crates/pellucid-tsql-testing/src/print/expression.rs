//! Values and conditions, with as few parentheses as keep their meaning.

use pellucid_tsql::ast::{
    BinaryOperator, CaseBranches, ColumnName, Comparison, Condition, Expression, Frame, FrameBound,
    FunctionArguments, FunctionCall, InList, Literal, OrderItem, Over, UnaryOperator, XmlAsked,
};

use super::name::Called;
use super::{put, If, List, Listed, Maybe, One, Print, Printer};

/// How tightly an expression holds together.
#[derive(PartialEq, PartialOrd, Clone, Copy)]
enum Level {
    Sum,
    Product,
    Primary,
}

fn level(expression: &Expression) -> Level {
    match expression {
        Expression::Chain(chain) if chain.is_product() => Level::Product,
        Expression::Chain(_) => Level::Sum,
        // `~-a * b` is `~(-(a * b))`.
        Expression::Unary { operator: UnaryOperator::Not, operand } => match **operand {
            Expression::Unary { .. } => level(operand),
            _ => Level::Primary,
        },
        // A sign takes a whole product.
        Expression::Unary { .. } => Level::Sum,
        _ => Level::Primary,
    }
}

/// An expression, in parentheses if it holds together less than is needed.
struct At<'a>(Level, &'a Expression);

impl Print for At<'_> {
    fn print(&self, to: &mut Printer) {
        match level(self.1) < self.0 {
            true => put!(to, "(", self.1, ")"),
            false => self.1.print(to),
        }
    }
}

/// An operand after which no product goes on: what stands before it may take all of the rest, and needs no parentheses.
struct Last<'a>(Level, &'a Expression);

impl Print for Last<'_> {
    fn print(&self, to: &mut Printer) {
        match self.1 {
            Expression::Unary { .. } => self.1.print(to),
            _ => At(self.0, self.1).print(to),
        }
    }
}

impl Print for Expression {
    fn print(&self, to: &mut Printer) {
        match self {
            Expression::Literal(literal) => literal.print(to),
            Expression::Column(column) => column.print(to),
            Expression::Variable(variable) => variable.print(to),
            Expression::Default => put!(to, "DEFAULT"),
            Expression::SystemVariable(name) => put!(to, "@@", name.as_str()),
            Expression::Unary { operator, operand } => {
                let (sign, needed) = match operator {
                    UnaryOperator::Minus => ("-", Level::Product),
                    UnaryOperator::Plus => ("+", Level::Product),
                    UnaryOperator::Not => ("~", Level::Primary),
                };
                // Two minus signs together begin a comment.
                let apart = matches!(**operand, Expression::Unary { .. });
                put!(to, sign, If(apart, " "), Last(needed, operand));
            }
            Expression::Chain(chain) => {
                let (first, rest) = match chain.is_product() {
                    true => (Level::Product, Level::Primary),
                    false => (Level::Sum, Level::Product),
                };
                put!(to, At(first, &chain.first));
                let last = chain.rest.len().saturating_sub(1);
                for (place, (operator, operand)) in chain.rest.iter().enumerate() {
                    put!(to, " ", operator, " ");
                    match chain.is_product() && place < last {
                        true => At(rest, operand).print(to),
                        false => Last(rest, operand).print(to),
                    }
                }
            }
            Expression::Case(case) => {
                put!(to, "CASE");
                match &case.branches {
                    CaseBranches::Simple { operand, branches } => {
                        put!(to, " ", operand);
                        for (when, then) in branches {
                            put!(to, " WHEN ", when, " THEN ", then);
                        }
                    }
                    CaseBranches::Searched(branches) => {
                        for (when, then) in branches {
                            put!(to, " WHEN ", when, " THEN ", then);
                        }
                    }
                }
                put!(to, Maybe(" ELSE ", &case.otherwise), " END");
            }
            Expression::Iif(iif) => {
                put!(to, "IIF(", iif.condition, ", ", iif.then, ", ", iif.otherwise, ")");
            }
            Expression::Convert(convert) => {
                put!(to, If(convert.or_null, "TRY_"));
                match &convert.style {
                    None => {
                        put!(to, "CAST(", convert.operand, " AS ", convert.data_type, ")");
                    }
                    Some(style) => {
                        put!(to, "CONVERT(", convert.data_type, ", ", convert.operand);
                        put!(to, ", ", style, ")");
                    }
                }
            }
            Expression::Function(call) => call.print(to),
            Expression::Niladic(word) => One(*word).print(to),
            Expression::Subquery(query) => put!(to, "(", query, ")"),
            Expression::XmlMethod(xml) => match &xml.asked {
                XmlAsked::Value(to_type) => {
                    put!(to, xml.operand, ".value(", xml.path, ", ", to_type, ")");
                }
                XmlAsked::Query => put!(to, xml.operand, ".query(", xml.path, ")"),
                XmlAsked::Exist => put!(to, xml.operand, ".exist(", xml.path, ")"),
            },
            Expression::Collate { operand, collation } => {
                let bare = level(operand) == Level::Primary
                    && !matches!(**operand, Expression::Unary { .. } | Expression::Collate { .. });
                match bare {
                    true => put!(to, operand),
                    false => put!(to, "(", operand, ")"),
                }
                put!(to, " COLLATE ", collation);
            }
        }
    }
}

impl Print for Literal {
    fn print(&self, to: &mut Printer) {
        match self {
            Literal::Null => put!(to, "NULL"),
            Literal::String(text) => text.print(to),
            Literal::Integer(digits) | Literal::Decimal(digits) | Literal::Float(digits) => {
                put!(to, digits.as_str());
            }
            Literal::Money(digits) => put!(to, "$", digits.as_str()),
            Literal::Binary(bytes) => {
                put!(to, "0x");
                to.text.extend(bytes.iter().map(|byte| format!("{byte:02X}")));
            }
        }
    }
}

impl Print for ColumnName {
    fn print(&self, to: &mut Printer) {
        put!(to, Maybe("", &self.table), If(self.table.is_some(), "."), self.column);
    }
}

impl Print for BinaryOperator {
    fn print(&self, to: &mut Printer) {
        let text = match self {
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Modulo => "%",
            BinaryOperator::Add => "+",
            BinaryOperator::Subtract => "-",
            BinaryOperator::BitAnd => "&",
            BinaryOperator::BitOr => "|",
            BinaryOperator::BitXor => "^",
        };
        put!(to, text);
    }
}

/// Whether it is one of the functions whose names are reserved words.
fn is_built_in(name: &str) -> bool {
    ["LEFT", "RIGHT", "COALESCE", "NULLIF"].iter().any(|word| word.eq_ignore_ascii_case(name))
}

impl Print for FunctionCall {
    fn print(&self, to: &mut Printer) {
        match self.name.is_bare() && is_built_in(self.name.object.as_str()) {
            true => put!(to, self.name.object.as_str(), Arguments(self)),
            false => put!(to, Called(&self.name), Arguments(self)),
        }
    }
}

/// A call without its name.
pub(super) struct Arguments<'a>(pub &'a FunctionCall);

impl Print for Arguments<'_> {
    fn print(&self, to: &mut Printer) {
        let call = self.0;
        put!(to, "(", If(call.distinct, "DISTINCT "));
        match &call.arguments {
            FunctionArguments::Star => put!(to, "*"),
            FunctionArguments::Values(values) => List(values).print(to),
        }
        put!(to, ")", Listed(" WITHIN GROUP (ORDER BY ", &call.within_group, ")"));
        if let Some(over) = &call.over {
            put!(to, " OVER (", over, ")");
        }
    }
}

impl Print for Over {
    fn print(&self, to: &mut Printer) {
        put!(to, Listed("PARTITION BY ", &self.partition, ""));
        put!(to, If(!self.partition.is_empty() && !self.order.is_empty(), " "));
        put!(to, Listed("ORDER BY ", &self.order, ""), Maybe(" ", &self.frame));
    }
}

impl Print for Frame {
    fn print(&self, to: &mut Printer) {
        match &self.end {
            None => put!(to, One(self.unit), " ", self.start),
            Some(end) => put!(to, One(self.unit), " BETWEEN ", self.start, " AND ", end),
        }
    }
}

impl Print for FrameBound {
    fn print(&self, to: &mut Printer) {
        match self {
            FrameBound::UnboundedPreceding => put!(to, "UNBOUNDED PRECEDING"),
            FrameBound::Preceding(rows) => put!(to, rows, " PRECEDING"),
            FrameBound::CurrentRow => put!(to, "CURRENT ROW"),
            FrameBound::Following(rows) => put!(to, rows, " FOLLOWING"),
            FrameBound::UnboundedFollowing => put!(to, "UNBOUNDED FOLLOWING"),
        }
    }
}

impl Print for OrderItem {
    fn print(&self, to: &mut Printer) {
        put!(to, self.value, If(self.descending, " DESC"));
    }
}

/// An operand of AND, OR or NOT.
struct Term<'a> {
    condition: &'a Condition,
    /// Whether AND may stand in it without parentheses.
    and: bool,
}

impl Print for Term<'_> {
    fn print(&self, to: &mut Printer) {
        match self.condition {
            Condition::And(_) if !self.and => put!(to, "(", self.condition, ")"),
            Condition::Or(_) => put!(to, "(", self.condition, ")"),
            condition => condition.print(to),
        }
    }
}

impl Print for Condition {
    fn print(&self, to: &mut Printer) {
        match self {
            Condition::And(all) => {
                for (at, condition) in all.iter().enumerate() {
                    put!(to, If(at > 0, " AND "), Term { condition, and: false });
                }
            }
            Condition::Or(all) => {
                for (at, condition) in all.iter().enumerate() {
                    put!(to, If(at > 0, " OR "), Term { condition, and: true });
                }
            }
            Condition::Not(condition) => put!(to, "NOT ", Term { condition, and: false }),
            Condition::Compare { left, comparison, right } => {
                put!(to, left, " ", comparison, " ", right);
            }
            Condition::Quantified { left, comparison, quantifier, query } => {
                put!(to, left, " ", comparison, " ", One(*quantifier), " (", query, ")");
            }
            Condition::Between { operand, negated, low, high } => {
                put!(to, operand, If(*negated, " NOT"), " BETWEEN ", low, " AND ", high);
            }
            Condition::In { operand, negated, list } => {
                put!(to, operand, If(*negated, " NOT"), " IN (");
                match list {
                    InList::Values(values) => List(values).print(to),
                    InList::Query(query) => query.print(to),
                }
                put!(to, ")");
            }
            Condition::Like { operand, negated, pattern, escape } => {
                put!(to, operand, If(*negated, " NOT"), " LIKE ", pattern);
                put!(to, Maybe(" ESCAPE ", escape));
            }
            Condition::IsNull { operand, negated } => {
                put!(to, operand, " IS ", If(*negated, "NOT "), "NULL");
            }
            Condition::IsDistinct { left, negated, right } => {
                put!(to, left, " IS ", If(*negated, "NOT "), "DISTINCT FROM ", right);
            }
            Condition::Exists(query) => put!(to, "EXISTS (", query, ")"),
        }
    }
}

impl Print for Comparison {
    fn print(&self, to: &mut Printer) {
        put!(to, self.sign());
    }
}

//! What a select list holds, sub-queries left aside.

use pellucid_tsql::ast::{
    CaseBranches, Condition, Expression, FunctionArguments, FunctionCall, InList, Select,
    SelectItem,
};

use super::aggregate::is_aggregate;

/// Whether a SELECT without GROUP BY is of one group all the same.
pub(super) fn aggregates(select: &Select) -> bool {
    select.having.is_some()
        || select.items.iter().any(|item| match item {
            SelectItem::Star(_) => false,
            SelectItem::Value { value, .. } | SelectItem::Assign { value, .. } => has(value),
        })
}

/// What a call is looked for by.
type Sought = fn(&FunctionCall) -> bool;

/// Whether an expression has an aggregate that is no window's.
pub(super) fn has(expression: &Expression) -> bool {
    calls(expression, |call| call.over.is_none() && is_of_rows(call))
}

/// Whether it has an aggregate or a window's function, which is of the rows of its query.
pub(super) fn has_of_rows(expression: &Expression) -> bool {
    calls(expression, |call| call.over.is_some() || is_of_rows(call))
}

fn is_of_rows(call: &FunctionCall) -> bool {
    call.name.is_bare() && is_aggregate(&call.name.object.as_str().to_uppercase())
}

fn calls(expression: &Expression, sought: Sought) -> bool {
    let has = |expression: &Expression| calls(expression, sought);
    let in_condition = |condition: &Condition| in_condition(condition, sought);
    match expression {
        Expression::Literal(_)
        | Expression::Column(_)
        | Expression::Variable(_)
        | Expression::Default
        | Expression::SystemVariable(_)
        | Expression::Niladic(_)
        | Expression::Subquery(_) => false,
        Expression::Unary { operand, .. } | Expression::Collate { operand, .. } => has(operand),
        Expression::XmlMethod(xml) => has(&xml.operand),
        Expression::Chain(chain) => {
            has(&chain.first) || chain.rest.iter().any(|(_, right)| has(right))
        }
        Expression::Case(case) => {
            let branches = match &case.branches {
                CaseBranches::Simple { operand, branches } => {
                    has(operand) || branches.iter().any(|(when, then)| has(when) || has(then))
                }
                CaseBranches::Searched(branches) => {
                    branches.iter().any(|(when, then)| in_condition(when) || has(then))
                }
            };
            branches || case.otherwise.as_ref().is_some_and(has)
        }
        Expression::Iif(iif) => {
            in_condition(&iif.condition) || has(&iif.then) || has(&iif.otherwise)
        }
        Expression::Convert(convert) => {
            has(&convert.operand) || convert.style.as_ref().is_some_and(has)
        }
        Expression::Function(call) => {
            let within = match &call.arguments {
                FunctionArguments::Star => false,
                FunctionArguments::Values(values) => values.iter().any(has),
            };
            let over = call.over.as_ref().is_some_and(|over| {
                over.partition.iter().any(has) || over.order.iter().any(|item| has(&item.value))
            });
            sought(call) || within || over
        }
    }
}

fn in_condition(condition: &Condition, sought: Sought) -> bool {
    let has = |expression: &Expression| calls(expression, sought);
    let in_condition = |condition: &Condition| in_condition(condition, sought);
    match condition {
        Condition::And(all) | Condition::Or(all) => all.iter().any(in_condition),
        Condition::Not(inner) => in_condition(inner),
        Condition::Compare { left, right, .. } | Condition::IsDistinct { left, right, .. } => {
            has(left) || has(right)
        }
        Condition::Quantified { left, .. } => has(left),
        Condition::Between { operand, low, high, .. } => has(operand) || has(low) || has(high),
        Condition::In { operand, list, .. } => {
            has(operand)
                || match list {
                    InList::Values(values) => values.iter().any(has),
                    InList::Query(_) => false,
                }
        }
        Condition::Like { operand, pattern, escape, .. } => {
            has(operand) || has(pattern) || escape.as_ref().is_some_and(has)
        }
        Condition::IsNull { operand, .. } => has(operand),
        Condition::Exists(_) => false,
    }
}

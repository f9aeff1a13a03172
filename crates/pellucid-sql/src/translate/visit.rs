//! What a select list holds, sub-queries left aside.

use pellucid_tsql::ast::{
    CaseBranches, Condition, Expression, FunctionArguments, InList, Select, SelectItem,
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

/// Whether an expression has an aggregate that is no window's.
pub(super) fn has(expression: &Expression) -> bool {
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
            let name = call.name.object.as_str().to_uppercase();
            let own = call.over.is_none() && call.name.is_bare() && is_aggregate(&name);
            let within = match &call.arguments {
                FunctionArguments::Star => false,
                FunctionArguments::Values(values) => values.iter().any(has),
            };
            let over = call.over.as_ref().is_some_and(|over| {
                over.partition.iter().any(has) || over.order.iter().any(|item| has(&item.value))
            });
            own || within || over
        }
    }
}

fn in_condition(condition: &Condition) -> bool {
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

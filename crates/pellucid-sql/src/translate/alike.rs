//! Whether two expressions are the same to GROUP BY, although they are written differently.

use pellucid_tsql::ast::{Expression, FunctionArguments, FunctionCall};

use super::scope::{same, View};
use crate::functions::DatePart;

/// The same but for the case of names, a table left out before a column, and the name of a date part.
pub(super) fn alike(left: &Expression, right: &Expression, view: View<'_>) -> bool {
    match (left, right) {
        (Expression::Column(left), Expression::Column(right)) => {
            left == right || view.place(left).is_some_and(|place| view.place(right) == Some(place))
        }
        (Expression::Function(left), Expression::Function(right)) => calls(left, right, view),
        (Expression::Convert(left), Expression::Convert(right)) => {
            alike(&left.operand, &right.operand, view)
                && (&left.data_type, &left.style, left.or_null)
                    == (&right.data_type, &right.style, right.or_null)
        }
        (Expression::Chain(left), Expression::Chain(right)) => {
            let pairs = left.rest.iter().zip(&right.rest);
            left.rest.len() == right.rest.len()
                && alike(&left.first, &right.first, view)
                && pairs
                    .into_iter()
                    .all(|((by, left), (other, right))| by == other && alike(left, right, view))
        }
        _ => left == right,
    }
}

fn calls(left: &FunctionCall, right: &FunctionCall, view: View<'_>) -> bool {
    let plain = |call: &FunctionCall| call.within_group.is_empty() && call.over.is_none();
    if !plain(left) || !plain(right) {
        return left == right;
    }
    let (FunctionArguments::Values(values), FunctionArguments::Values(others)) =
        (&left.arguments, &right.arguments)
    else {
        return left == right;
    };
    let is_dated = left.name.object.as_str().to_uppercase().starts_with("DATE");
    same(left.name.object.as_str(), right.name.object.as_str())
        && left.name.schema == right.name.schema
        && left.distinct == right.distinct
        && values.len() == others.len()
        && values.iter().zip(others).enumerate().all(|(at, (value, other))| {
            let parts = (part(value), part(other));
            match (is_dated && at == 0, parts) {
                (true, (Some(part), Some(other))) => part == other,
                _ => alike(value, other, view),
            }
        })
}

/// A date part is written as a column is.
fn part(expression: &Expression) -> Option<DatePart> {
    match expression {
        Expression::Column(column) if column.table.is_none() => {
            DatePart::named(column.column.as_str())
        }
        _ => None,
    }
}

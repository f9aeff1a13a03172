//! LIKE, CHARINDEX, PATINDEX and REPLACE, which compare text as the default collation does: without case.

use pellucid_tsql::secret::redact;

use super::like::{letters, Pattern};
use super::{bounded, int, scalar, text_at, text_value, Scalar};
use crate::message::{table, Message, Result};
use crate::values::convert::Value;

/// Flag of `tsql_like`: upper and lower case differ.
pub(crate) const SENSITIVE: i64 = 1;
/// Flag of `tsql_like`: an operand is nchar or nvarchar, so that spaces at the end of the text count.
pub(crate) const NATIONAL: i64 = 2;

pub(super) const SCALARS: &[Scalar] = &[
    scalar("tsql_like", like),
    scalar("tsql_charindex", char_index),
    scalar("tsql_patindex", |a| {
        let pattern = Pattern::new(text_at(a, 0)?, None, int(a, 2)? != 0);
        Ok(Value::Integer(pattern.position(text_at(a, 1)?) as i64))
    }),
    scalar("tsql_replace", replace),
];

/// `tsql_like(text, pattern, flags [, escape])`, flags of [`SENSITIVE`] and [`NATIONAL`]
fn like(arguments: &[Value]) -> Result<Value> {
    let escape = match arguments.get(3) {
        None => None,
        Some(_) => {
            let text = text_at(arguments, 3)?;
            let mut letters = text.chars();
            match (letters.next(), letters.next()) {
                (Some(only), None) => Some(only),
                _ => return Err(Message::of(table::BAD_ESCAPE, [&redact(text)])),
            }
        }
    };
    let flags = int(arguments, 2)?;
    let pattern = Pattern::new(text_at(arguments, 1)?, escape, flags & SENSITIVE != 0);
    let exact = flags & NATIONAL != 0;
    Ok(Value::Integer(pattern.matches(text_at(arguments, 0)?, exact).into()))
}

fn find(wanted: &[char], within: &[char], from: usize) -> Option<usize> {
    if wanted.is_empty() || wanted.len() > within.len() {
        return None;
    }
    (from..=within.len() - wanted.len()).find(|at| within[*at..].starts_with(wanted))
}

/// `tsql_charindex(wanted, text, sensitive [, start])`
fn char_index(arguments: &[Value]) -> Result<Value> {
    let sensitive = int(arguments, 2)? != 0;
    let start = arguments.get(3).map_or(Ok(1), |_| int(arguments, 3))?.max(1);
    let wanted = letters(text_at(arguments, 0)?, sensitive);
    let within = letters(text_at(arguments, 1)?, sensitive);
    let start = usize::try_from(start - 1).unwrap_or(usize::MAX);
    let found = match start < within.len() {
        true => find(&wanted, &within, start).map_or(0, |at| at as i64 + 1),
        false => 0,
    };
    Ok(Value::Integer(found))
}

/// `tsql_replace(text, wanted, replacement, sensitive)`
fn replace(arguments: &[Value]) -> Result<Value> {
    let sensitive = int(arguments, 3)? != 0;
    let text = text_at(arguments, 0)?;
    let wanted = letters(text_at(arguments, 1)?, sensitive);
    let replacement = text_at(arguments, 2)?;
    let (shown, within): (Vec<char>, _) = (text.chars().collect(), letters(text, sensitive));
    let mut result = String::new();
    let mut at = 0;
    while let Some(found) = find(&wanted, &within, at) {
        bounded(result.len().saturating_add(replacement.len()))?;
        result.extend(&shown[at..found]);
        result.push_str(replacement);
        at = found + wanted.len();
    }
    result.extend(&shown[at..]);
    text_value(result)
}

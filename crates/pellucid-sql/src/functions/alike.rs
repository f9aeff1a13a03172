//! GREATEST, LEAST and SOUNDEX: which value is the largest, and how a word sounds.

use std::cmp::Ordering;

use super::{int, scalar, text_at, text_value, unexpected, with_nulls, Scalar};
use crate::message::{Message, Result};
use crate::values::convert::Value;

pub(super) const SCALARS: &[Scalar] = &[
    with_nulls("tsql_greatest", |a| extreme(a, Ordering::Greater)),
    with_nulls("tsql_least", |a| extreme(a, Ordering::Less)),
    scalar("tsql_soundex", |a| soundex(text_at(a, 0)?)),
];

/// `tsql_greatest(folds, a, b, ..)` of values of one type. The first one of several that are equal.
fn extreme(arguments: &[Value], wanted: Ordering) -> Result<Value> {
    let folds = int(arguments, 0)? != 0;
    let mut found: Option<&Value> = None;
    for value in arguments[1..].iter().filter(|value| **value != Value::Null) {
        let better = match found {
            None => true,
            Some(so_far) => compared(value, so_far, folds)? == wanted,
        };
        if better {
            found = Some(value);
        }
    }
    Ok(found.cloned().unwrap_or(Value::Null))
}

/// Numerics are bytes, dates text, both in their order.
fn compared(left: &Value, right: &Value, folds: bool) -> Result<Ordering> {
    Ok(match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => left.cmp(right),
        (Value::Real(left), Value::Real(right)) => left.total_cmp(right),
        (Value::Blob(left), Value::Blob(right)) => left.cmp(right),
        (Value::Text(left), Value::Text(right)) => {
            let (left, right) = (left.trim_end_matches(' '), right.trim_end_matches(' '));
            match folds {
                true => left.to_ascii_lowercase().cmp(&right.to_ascii_lowercase()),
                false => left.cmp(right),
            }
        }
        _ => return Err(unexpected(1)),
    })
}

/// The first letter and three digits. What SQL Server does with other characters than the letters A to Z is not written
/// down.
///
/// Source: Microsoft's "SOUNDEX", compatibility level 110 and above.
fn soundex(text: &str) -> Result<Value> {
    let text = text.trim_end_matches(' ');
    if text.is_empty() || !text.bytes().all(|letter| letter.is_ascii_alphabetic()) {
        return Err(Message::unsupported("SOUNDEX of other text than letters from A to Z"));
    }
    let mut code = String::new();
    let mut before = None;
    for letter in text.bytes().map(|letter| letter.to_ascii_uppercase()) {
        let digit = match letter {
            b'B' | b'F' | b'P' | b'V' => Some('1'),
            b'C' | b'G' | b'J' | b'K' | b'Q' | b'S' | b'X' | b'Z' => Some('2'),
            b'D' | b'T' => Some('3'),
            b'L' => Some('4'),
            b'M' | b'N' => Some('5'),
            b'R' => Some('6'),
            _ => None,
        };
        match digit {
            _ if code.is_empty() => code.push(letter.into()),
            Some(digit) if before != Some(digit) => code.push(digit),
            _ => {}
        }
        // H and W do not part what sounds alike, vowels do.
        if !matches!(letter, b'H' | b'W') {
            before = digit;
        }
    }
    text_value(format!("{code:0<4}").chars().take(4).collect::<String>())
}

//! Operators and conversions: `tsql_add(a, type, b, type)` and its like.

use pellucid_tsql::ast::BinaryOperator;
use pellucid_tsql::secret::redact;

use super::{int, scalar, type_at, unexpected, value_at, with_nulls, Scalar};
use crate::message::{table, Message, Result};
use crate::values::convert::Value;
use crate::values::convert::{
    convert, decimal_of, decimal_value, is_same, moment_of, read_stored, write_stored,
};
use crate::values::decimal::{Decimal, Rounding};
use crate::values::moment::{Moment, TICKS_DAY};
use crate::values::types::{arithmetic, Family, Length, SqlType};

pub(super) const SCALARS: &[Scalar] = &[
    scalar("tsql_add", |a| binary(BinaryOperator::Add, a)),
    scalar("tsql_subtract", |a| binary(BinaryOperator::Subtract, a)),
    scalar("tsql_multiply", |a| binary(BinaryOperator::Multiply, a)),
    scalar("tsql_divide", |a| binary(BinaryOperator::Divide, a)),
    scalar("tsql_modulo", |a| binary(BinaryOperator::Modulo, a)),
    scalar("tsql_bit_and", |a| Ok(Value::Integer(int(a, 0)? & int(a, 1)?))),
    scalar("tsql_bit_or", |a| Ok(Value::Integer(int(a, 0)? | int(a, 1)?))),
    scalar("tsql_bit_xor", |a| Ok(Value::Integer(int(a, 0)? ^ int(a, 1)?))),
    scalar("tsql_bit_not", bit_not),
    scalar("tsql_negate", negate),
    with_nulls("tsql_nullif", null_if),
    with_nulls("tsql_convert", converted),
    with_nulls("tsql_try_convert", |a| converted_or_null(a, converted)),
    scalar("tsql_stored", |a| Ok(read_stored(value_at(a, 0)?.clone(), type_at(a, 1)?)?)),
    scalar("tsql_store", |a| Ok(write_stored(value_at(a, 0)?.clone(), type_at(a, 1)?)?)),
    scalar("tsql_fitting", fitting),
    with_nulls("tsql_identity", identity),
    scalar("tsql_rows", rows),
    scalar("tsql_guid_key", guid_key),
    scalar("tsql_recursion", recursion),
];

/// `tsql_identity(value)`: the value that is given to an identity; 339 for NULL, of which SQLite would make the next number.
fn identity(arguments: &[Value]) -> Result<Value> {
    match value_at(arguments, 0)? {
        Value::Null => Err(Message::of(table::IDENTITY_NULL, [])),
        value => Ok(value.clone()),
    }
}

fn converted(arguments: &[Value]) -> Result<Value> {
    let value = value_at(arguments, 0)?.clone();
    if value == Value::Null {
        return Ok(value);
    }
    let style = match arguments.get(3) {
        None => None,
        Some(Value::Null) => return Ok(Value::Null),
        Some(_) => Some(int(arguments, 3)?),
    };
    Ok(convert(value, type_at(arguments, 1)?, type_at(arguments, 2)?, style)?)
}

/// `tsql_nullif(a, type, b, type, as, sensitive)`: NULL if both are equal as values of the type `as`.
fn null_if(arguments: &[Value]) -> Result<Value> {
    let to = type_at(arguments, 4)?;
    let side = |at: usize| -> Result<Value> {
        let (value, from) = (value_at(arguments, at)?.clone(), type_at(arguments, at + 1)?);
        if is_same(from, to) {
            Ok(value)
        } else {
            Ok(convert(value, from, to, None)?)
        }
    };
    let equal = match (side(0)?, side(2)?) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Text(a), Value::Text(b)) => {
            let trim = |text: &str| match to.family() {
                Family::Text => text.trim_end_matches(' ').len(),
                _ => text.len(),
            };
            let (a, b) = (&a[..trim(&a)], &b[..trim(&b)]);
            let folds = matches!(to.family(), Family::Text | Family::Variant);
            if folds && int(arguments, 5)? == 0 {
                a.eq_ignore_ascii_case(b)
            } else {
                a == b
            }
        }
        (Value::Integer(a), Value::Real(b)) | (Value::Real(b), Value::Integer(a)) => a as f64 == b,
        (a, b) => a == b,
    };
    if equal {
        Ok(Value::Null)
    } else {
        value_at(arguments, 0).cloned()
    }
}

/// `tsql_fitting(x, from, to, table, column)`: text or bytes for a column that may be too short. Spaces at the end of text
/// and zeros at the end of bytes may be cut off.
fn fitting(arguments: &[Value]) -> Result<Value> {
    let (from, to) = (type_at(arguments, 1)?, type_at(arguments, 2)?);
    let value = value_at(arguments, 0)?;
    let length = match value {
        Value::Text(text) => text.trim_end_matches(' ').chars().count(),
        Value::Blob(bytes) => bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1),
        _ => 0,
    };
    match to.length() {
        Some(Length::Of(most)) if length > usize::from(most) => {
            let (table, column) = (super::text_at(arguments, 3)?, super::text_at(arguments, 4)?);
            // Masked before it is cut: a part of a statement would not show that a secret follows.
            let shown = match value {
                Value::Text(text) => redact(text),
                Value::Blob(bytes) => format!("0x{}", crate::values::convert::to_hex(bytes)).into(),
                _ => "".into(),
            };
            let cut: String = shown.chars().take(most.into()).collect();
            Err(Message::of(table::TRUNCATED, [&table, &column, &cut]))
        }
        _ => Ok(convert(value.clone(), from, to, None)?),
    }
}

/// A value that does not convert is NULL; a conversion that there is not stays an error.
fn converted_or_null(arguments: &[Value], run: fn(&[Value]) -> Result<Value>) -> Result<Value> {
    match run(arguments) {
        Err(message) if message.number != 529 && message.number < 50_000 => Ok(Value::Null),
        other => other,
    }
}

/// `left operator right`; the types say what they become first.
fn binary(operator: BinaryOperator, arguments: &[Value]) -> Result<Value> {
    let (left_type, right_type) = (type_at(arguments, 1)?, type_at(arguments, 3)?);
    let result = arithmetic(operator, left_type, right_type)?;
    let (left, right) = (value_at(arguments, 0)?, value_at(arguments, 2)?);
    let is_zero = |value: &Value| match value {
        Value::Integer(number) => *number == 0,
        Value::Real(number) => *number == 0.0,
        _ => false,
    };
    match result.family() {
        Family::Integer => {
            let left = as_type(left, left_type, result)?;
            let right = as_type(right, right_type, result)?;
            if matches!(operator, BinaryOperator::Divide | BinaryOperator::Modulo)
                && is_zero(&right)
            {
                return Err(Message::of(table::DIVISION_BY_ZERO, []));
            }
            let (Value::Integer(a), Value::Integer(b)) = (left, right) else {
                return Err(unexpected(0));
            };
            integers(operator, a, b, result)
        }
        Family::Float => {
            let left = as_type(left, left_type, SqlType::Float)?;
            let right = as_type(right, right_type, SqlType::Float)?;
            if operator == BinaryOperator::Divide && is_zero(&right) {
                return Err(Message::of(table::DIVISION_BY_ZERO, []));
            }
            let (Value::Real(a), Value::Real(b)) = (left, right) else {
                return Err(unexpected(0));
            };
            let number = match operator {
                BinaryOperator::Add => a + b,
                BinaryOperator::Subtract => a - b,
                BinaryOperator::Multiply => a * b,
                _ => a / b,
            };
            Ok(convert(Value::Real(number), SqlType::Float, result, None)?)
        }
        Family::Decimal => decimals(operator, (left, left_type), (right, right_type), result),
        Family::Moment => moments(operator, (left, left_type), (right, right_type), result),
        Family::Binary => match (left, right) {
            (Value::Blob(a), Value::Blob(b)) => Ok(Value::Blob([&a[..], b].concat())),
            _ => Err(unexpected(0)),
        },
        _ => Err(unexpected(1)),
    }
}

fn as_type(value: &Value, from: SqlType, to: SqlType) -> Result<Value> {
    match (value, from.family(), to.family()) {
        (Value::Integer(_), Family::Integer, Family::Integer)
        | (Value::Real(_), Family::Float, Family::Float) => Ok(value.clone()),
        _ => Ok(convert(value.clone(), from, to, None)?),
    }
}

fn integers(operator: BinaryOperator, a: i64, b: i64, result: SqlType) -> Result<Value> {
    let number = match operator {
        BinaryOperator::Add => a.checked_add(b),
        BinaryOperator::Subtract => a.checked_sub(b),
        BinaryOperator::Multiply => a.checked_mul(b),
        BinaryOperator::Divide => a.checked_div(b),
        _ => Some(a.wrapping_rem(b)),
    };
    let (low, high) = result.integer_range().unwrap_or((i64::MIN, i64::MAX));
    number
        .filter(|number| (low..=high).contains(number))
        .map(Value::Integer)
        .ok_or_else(|| Message::overflow("expression", result.name()))
}

fn decimals(
    operator: BinaryOperator,
    left: (&Value, SqlType),
    right: (&Value, SqlType),
    result: SqlType,
) -> Result<Value> {
    // Text takes the type of the other operand.
    let operand = |(value, from): (&Value, SqlType), other: SqlType| match from.family() {
        Family::Text | Family::Binary => {
            decimal_of(&convert(value.clone(), from, other, None)?, other)
        }
        _ => decimal_of(value, from),
    };
    let (a, b) = (operand(left, right.1)?, operand(right, left.1)?);
    let (_, scale) = result.as_numeric().unwrap_or((38, 0));
    let exact = match operator {
        BinaryOperator::Add => a.plus(b),
        BinaryOperator::Subtract => a.plus(b.negated()),
        BinaryOperator::Multiply => a.multiply(b, scale),
        _ if b.unscaled() == 0 => return Err(Message::of(table::DIVISION_BY_ZERO, [])),
        BinaryOperator::Divide => a.divide(b, scale),
        _ => a.remainder(b),
    };
    fitted(exact, result, Rounding::Nearest)
}

/// A datetime is days and parts of days since 1900.
fn moments(
    operator: BinaryOperator,
    left: (&Value, SqlType),
    right: (&Value, SqlType),
    result: SqlType,
) -> Result<Value> {
    let ticks = |(value, from): (&Value, SqlType)| -> Result<i128> {
        let moment = match from.family() {
            Family::Moment => moment_of(value, from)?,
            _ => moment_of(
                &convert(value.clone(), from, SqlType::DateTime, None)?,
                SqlType::DateTime,
            )?,
        };
        Ok(i128::from(moment.days()) * i128::from(TICKS_DAY) + i128::from(moment.ticks))
    };
    let (a, b) = (ticks(left)?, ticks(right)?);
    let ticks = if operator == BinaryOperator::Add { a + b } else { a - b };
    let day = i128::from(TICKS_DAY);
    let (days, rest) = (ticks.div_euclid(day) as i64, ticks.rem_euclid(day) as i64);
    Moment::of_days(days, rest)
        .and_then(|moment| moment.rounded(result))
        .map(|moment| Value::Text(moment.to_iso(result)))
        .ok_or_else(|| Message::overflow("expression", result.name()))
}

fn negate(arguments: &[Value]) -> Result<Value> {
    let data_type = type_at(arguments, 1)?;
    match value_at(arguments, 0)? {
        Value::Integer(number) => integers(BinaryOperator::Subtract, 0, *number, data_type),
        Value::Real(number) => Ok(Value::Real(-number)),
        value => Ok(decimal_value(decimal_of(value, data_type)?.negated())),
    }
}

fn bit_not(arguments: &[Value]) -> Result<Value> {
    let number = int(arguments, 0)?;
    Ok(Value::Integer(match type_at(arguments, 1)? {
        SqlType::Bit => 1 - number,
        SqlType::TinyInt => 255 - number,
        _ => !number,
    }))
}

/// `tsql_rows(count, which)`: 0 for TOP, 1 for OFFSET, 2 for FETCH.
fn rows(arguments: &[Value]) -> Result<Value> {
    let count = int(arguments, 0)?;
    match int(arguments, 1)? {
        0 if count < 0 => Err(Message::of(table::NEGATIVE_TOP, [])),
        1 if count < 0 => Err(Message::of(table::NEGATIVE_OFFSET, [])),
        2 if count < 1 => Err(Message::of(table::FETCH_NOT_POSITIVE, [])),
        _ => Ok(Value::Integer(count)),
    }
}

/// What orders a uniqueidentifier: its last group first.
fn guid_key(arguments: &[Value]) -> Result<Value> {
    let Value::Text(text) = value_at(arguments, 0)? else { return Err(unexpected(0)) };
    let groups: Vec<&str> = text.split('-').collect();
    let [a, b, c, d, e] = groups[..] else { return Ok(Value::Text(text.clone())) };
    // The first three are compared from their last byte on.
    let turned = |group: &str| -> String {
        let pairs: Vec<&str> =
            (0..group.len()).step_by(2).filter_map(|at| group.get(at..at + 2)).collect();
        pairs.into_iter().rev().collect()
    };
    let first = [turned(c), turned(b), turned(a)].concat();
    Ok(Value::Text(format!("{e}{d}{first}")))
}

/// `tsql_recursion(depth, most)`: the depth, unless it is too deep; `most` of 0 is no limit.
fn recursion(arguments: &[Value]) -> Result<Value> {
    let (depth, most) = (int(arguments, 0)?, int(arguments, 1)?);
    match most != 0 && depth > most {
        true => Err(Message::of(table::RECURSION_EXHAUSTED, [&most])),
        false => Ok(Value::Integer(depth)),
    }
}

/// A number as a value of a decimal type; 8115 if there is none or it does not fit.
pub(super) fn fitted(number: Option<Decimal>, to: SqlType, rounding: Rounding) -> Result<Value> {
    let (precision, scale) = to.as_numeric().unwrap_or((38, 0));
    let (low, high) = to.money_range().unwrap_or((i128::MIN, i128::MAX));
    number
        .and_then(|number| number.fit(precision, scale, rounding))
        .filter(|number| (low..=high).contains(&number.unscaled()))
        .map(decimal_value)
        .ok_or_else(|| Message::overflow("expression", to.name()))
}

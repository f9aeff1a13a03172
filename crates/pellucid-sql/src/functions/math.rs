//! Mathematical functions.
//!
//! Source: Microsoft's "Mathematical Functions (Transact-SQL)".

use super::{float, int, scalar, type_at, value_at, Scalar};
use crate::message::{table, Message, Result};
use crate::values::convert::{convert, decimal_of, decimal_value, parse_float, Value};
use crate::values::decimal::{Decimal, Rounding};
use crate::values::types::{Family, SqlType, PRECISION_MOST};

pub(super) const SCALARS: &[Scalar] = &[
    scalar("tsql_abs", abs),
    scalar("tsql_sign", sign),
    scalar("tsql_floor", |a| whole(a, f64::floor, -1)),
    scalar("tsql_ceiling", |a| whole(a, f64::ceil, 1)),
    scalar("tsql_round", round),
    scalar("tsql_power", power),
    scalar("tsql_sqrt", |a| domain(float(a, 0)?.sqrt())),
    scalar("tsql_square", |a| finite(float(a, 0)?.powi(2))),
    scalar("tsql_exp", |a| finite(float(a, 0)?.exp())),
    scalar("tsql_log", log),
    scalar("tsql_log10", |a| log_of(float(a, 0)?, f64::log10)),
    scalar("tsql_pi", |_| Ok(Value::Real(std::f64::consts::PI))),
    scalar("tsql_sin", |a| finite(float(a, 0)?.sin())),
    scalar("tsql_cos", |a| finite(float(a, 0)?.cos())),
    scalar("tsql_tan", |a| finite(float(a, 0)?.tan())),
    scalar("tsql_asin", |a| domain(float(a, 0)?.asin())),
    scalar("tsql_acos", |a| domain(float(a, 0)?.acos())),
    scalar("tsql_atan", |a| finite(float(a, 0)?.atan())),
    scalar("tsql_atn2", |a| finite(float(a, 0)?.atan2(float(a, 1)?))),
    scalar("tsql_radians", |a| finite(float(a, 0)?.to_radians())),
    scalar("tsql_degrees", |a| finite(float(a, 0)?.to_degrees())),
    super::with_nulls("tsql_isnumeric", is_numeric),
];

fn finite(number: f64) -> Result<Value> {
    match number.is_finite() {
        true => Ok(Value::Real(number)),
        false => Err(Message::overflow("expression", "float")),
    }
}

fn domain(number: f64) -> Result<Value> {
    match number.is_nan() {
        true => Err(Message::of(table::BAD_FLOAT_OPERATION, [])),
        false => finite(number),
    }
}

fn log_of(number: f64, run: fn(f64) -> f64) -> Result<Value> {
    match number > 0.0 {
        true => domain(run(number)),
        false => domain(f64::NAN),
    }
}

fn log(arguments: &[Value]) -> Result<Value> {
    let number = float(arguments, 0)?;
    match arguments.get(1) {
        None => log_of(number, f64::ln),
        Some(_) => {
            let base = float(arguments, 1)?;
            match number > 0.0 && base > 0.0 && base != 1.0 {
                true => domain(number.log(base)),
                false => domain(f64::NAN),
            }
        }
    }
}

/// A value of the type that is told behind it.
enum Number {
    Integer(i64, SqlType),
    Decimal(Decimal, SqlType),
    Float(f64),
}

fn number(arguments: &[Value]) -> Result<Number> {
    let (value, data_type) = (value_at(arguments, 0)?, type_at(arguments, 1)?);
    Ok(match data_type.family() {
        Family::Integer => Number::Integer(int(arguments, 0)?, data_type),
        Family::Decimal => Number::Decimal(decimal_of(value, data_type)?, data_type),
        _ => Number::Float(float(arguments, 0)?),
    })
}

fn fitted(number: Option<Decimal>, to: SqlType) -> Result<Value> {
    super::operator::fitted(number, to, Rounding::Nearest)
}

/// The type of SIGN and POWER of a decimal: a numeric with 38 digits, so many of them before the point at least.
pub(crate) fn widened(of: SqlType, whole: u8) -> SqlType {
    match of {
        SqlType::Numeric { scale, .. } => {
            SqlType::numeric(PRECISION_MOST, scale.min(PRECISION_MOST - whole))
        }
        SqlType::SmallMoney => SqlType::Money,
        other => other,
    }
}

fn integer(number: Option<i64>, to: SqlType) -> Result<Value> {
    let (low, high) = to.integer_range().unwrap_or((i64::MIN, i64::MAX));
    number
        .filter(|number| (low..=high).contains(number))
        .map(Value::Integer)
        .ok_or_else(|| Message::overflow("expression", to.name()))
}

fn abs(arguments: &[Value]) -> Result<Value> {
    match number(arguments)? {
        Number::Integer(n, t) => integer(n.checked_abs(), t),
        Number::Decimal(d, _) if d.unscaled() >= 0 => Ok(decimal_value(d)),
        Number::Decimal(d, _) => Ok(decimal_value(d.negated())),
        Number::Float(f) => finite(f.abs()),
    }
}

fn sign(arguments: &[Value]) -> Result<Value> {
    match number(arguments)? {
        Number::Integer(n, t) => integer(Some(n.signum()), t),
        Number::Decimal(d, t) => {
            let sign = Decimal::from(d.unscaled().signum() as i64);
            fitted(Some(sign), widened(t, 1))
        }
        Number::Float(0.0) => finite(0.0),
        Number::Float(f) => finite(f.signum()),
    }
}

/// To a whole number in the direction of `side`. A numeric's result has scale 0, money stays money.
fn whole(arguments: &[Value], run: fn(f64) -> f64, side: i64) -> Result<Value> {
    match number(arguments)? {
        Number::Integer(n, t) => integer(Some(n), t),
        Number::Float(f) => finite(run(f)),
        Number::Decimal(d, t) => {
            let cut = d.with_scale(0, Rounding::Truncate);
            let moved = cut.and_then(|cut| {
                let beyond = cut.with_scale(d.scale(), Rounding::Truncate) != Some(d);
                let outward = (d.unscaled() > 0) == (side > 0);
                match beyond && outward {
                    true => cut.plus(Decimal::from(side)),
                    false => Some(cut),
                }
            });
            match t {
                SqlType::Numeric { precision, .. } => fitted(moved, SqlType::numeric(precision, 0)),
                _ => fitted(moved, t),
            }
        }
    }
}

/// `tsql_round(x, type, length, mode)`; a mode other than 0 cuts off.
fn round(arguments: &[Value]) -> Result<Value> {
    let length = int(arguments, 2)?.clamp(-400, 400);
    let rounding = match arguments.get(3) {
        Some(_) if int(arguments, 3)? != 0 => Rounding::Truncate,
        _ => Rounding::Nearest,
    };
    match number(arguments)? {
        Number::Integer(n, t) => {
            let rounded = round_decimal(Decimal::from(n), length, rounding);
            integer(rounded.and_then(Decimal::to_integer), t)
        }
        Number::Decimal(d, t) => fitted(round_decimal(d, length, rounding), t),
        Number::Float(f) => {
            let unit = 10_f64.powi(length.clamp(-300, 300) as i32);
            let scaled = f * unit;
            let rounded = match rounding {
                Rounding::Nearest => scaled.round(),
                Rounding::Truncate => scaled.trunc(),
            };
            match scaled.is_finite() && unit != 0.0 {
                true => finite(rounded / unit),
                false => finite(f),
            }
        }
    }
}

fn round_decimal(number: Decimal, length: i64, rounding: Rounding) -> Option<Decimal> {
    if length >= i64::from(number.scale()) {
        return Some(number);
    }
    if length >= 0 {
        return number.with_scale(length as u8, rounding);
    }
    let digits = u32::try_from(-length).ok().filter(|digits| *digits <= 37);
    let Some(digits) = digits else { return Some(Decimal::ZERO) };
    // Moved to the right, rounded, and back.
    let unit = Decimal::new(10_i128.pow(digits), 0)?;
    let moved = match rounding {
        Rounding::Truncate => number.divide(unit, 0)?,
        Rounding::Nearest => {
            let half = Decimal::new(5 * 10_i128.pow(digits - 1), 0)?;
            let half = if number.unscaled() < 0 { half.negated() } else { half };
            number.plus(half)?.divide(unit, 0)?
        }
    };
    moved.multiply(unit, 0)
}

/// `tsql_power(x, type, y)`: the result is of the type of `x`; a numeric has 38 digits.
fn power(arguments: &[Value]) -> Result<Value> {
    let exponent = float(arguments, 2)?;
    let base = number(arguments)?;
    let as_float = match &base {
        Number::Integer(n, _) => *n as f64,
        Number::Decimal(d, _) => d.to_float(),
        Number::Float(f) => *f,
    };
    if as_float == 0.0 && exponent < 0.0 {
        return Err(Message::of(table::DIVISION_BY_ZERO, []));
    }
    if exponent.fract() == 0.0 && (0.0..=200.0).contains(&exponent) {
        // Exact, as far as it fits.
        let (exact, to) = match base {
            Number::Integer(n, t) => (Decimal::from(n).power(exponent as u8, 0), t),
            Number::Decimal(d, t) => (d.power(exponent as u8, d.scale()), widened(t, 0)),
            Number::Float(f) => return domain(f.powf(exponent)),
        };
        return match to.family() {
            Family::Integer => integer(exact.and_then(Decimal::to_integer), to),
            _ => fitted(exact, to),
        };
    }
    let result = as_float.powf(exponent);
    if result.is_nan() {
        return domain(result);
    }
    match base {
        Number::Integer(_, t) | Number::Decimal(_, t) => {
            let t = widened(t, 0);
            convert(finite(result)?, SqlType::Float, t, None)
                .map_err(|_| Message::overflow("expression", t.name()))
        }
        Number::Float(_) => finite(result),
    }
}

/// `tsql_isnumeric(x, type)`
fn is_numeric(arguments: &[Value]) -> Result<Value> {
    let is = match (value_at(arguments, 0)?, type_at(arguments, 1)?.family()) {
        (Value::Null, _) => false,
        (Value::Text(text), Family::Text | Family::Variant) => {
            let text = text.trim();
            let symbols: String =
                text.chars().filter(|letter| !matches!(letter, ',' | '$' | '€' | '£')).collect();
            let lone = matches!(symbols.as_str(), "" | "+" | "-" | ".") && !text.is_empty();
            let number = !symbols.is_empty()
                && (parse_float(&symbols).is_some()
                    || parse_float(&symbols.replace(['d', 'D'], "e")).is_some());
            lone || number
        }
        (_, family) => matches!(family, Family::Integer | Family::Decimal | Family::Float),
    };
    Ok(Value::Integer(is.into()))
}

//! Conversion to numbers.

use pellucid_tsql::secret::redact;

use super::{decimal_of, moment_of, Value};
use crate::values::decimal::{Decimal, Rounding};
use crate::values::moment::TICKS_DAY;
use crate::values::types::{Family, SqlType};
use crate::values::{Error, Result};

pub(super) fn to_integer(value: Value, from: SqlType, to: SqlType) -> Result<i64> {
    let wide = match (from.family(), &value) {
        (Family::Text, Value::Text(text)) => return integer_of_text(text, from, to),
        (Family::Float, Value::Real(number)) => {
            if to == SqlType::Bit {
                return Ok((*number != 0.0).into());
            }
            let whole = number.trunc();
            if !whole.is_finite() || whole.abs() >= 9.3e18 {
                return Err(float_overflow(to, *number));
            }
            let inside = to
                .integer_range()
                .is_some_and(|(low, high)| whole >= low as f64 && whole <= high as f64);
            if !inside {
                return Err(float_overflow(to, *number));
            }
            whole as i128
        }
        (Family::Integer, Value::Integer(number)) => i128::from(*number),
        (Family::Decimal, value) => {
            let decimal = decimal_of(value, from)?;
            if to == SqlType::Bit {
                return Ok((decimal.unscaled() != 0).into());
            }
            let rounding = match from {
                SqlType::Money | SqlType::SmallMoney => Rounding::Nearest,
                _ => Rounding::Truncate,
            };
            let whole = decimal.with_scale(0, rounding).map(Decimal::unscaled);
            whole.ok_or_else(|| Error::Overflow(from.name(), to.name()))?
        }
        (Family::Moment, value) => {
            let moment = moment_of(value, from)?;
            i128::from(moment.days() + i64::from(moment.ticks * 2 >= TICKS_DAY))
        }
        (Family::Binary, Value::Blob(bytes)) => {
            let width = match to {
                SqlType::TinyInt | SqlType::Bit => 1,
                SqlType::SmallInt => 2,
                SqlType::Int => 4,
                _ => 8,
            };
            let mut wide = [0_u8; 8];
            let kept = &bytes[bytes.len().saturating_sub(width)..];
            wide[8 - kept.len()..].copy_from_slice(kept);
            let number = i64::from_be_bytes(wide);
            match to {
                SqlType::SmallInt => i128::from(number as i16),
                SqlType::Int => i128::from(number as i32),
                _ => i128::from(number),
            }
        }
        // What the columns of a plain SQLite database hold need not be what they are declared as.
        (_, Value::Integer(number)) => i128::from(*number),
        (_, Value::Real(number)) => *number as i128,
        (_, Value::Text(text)) => return integer_of_text(text, SqlType::NVARCHAR_MAX, to),
        _ => return Err(Error::ErrorConverting(from, to)),
    };
    if to == SqlType::Bit {
        return Ok((wide != 0).into());
    }
    let (low, high) = to.integer_range().unwrap_or((i64::MIN, i64::MAX));
    match i64::try_from(wide) {
        Ok(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(match (from.family(), to) {
            (Family::Integer, SqlType::TinyInt | SqlType::SmallInt) => {
                Error::IntegerOverflow(to, wide)
            }
            (Family::Decimal, _) => Error::Overflow(from.name(), to.name()),
            _ => Error::Overflow("expression", to.name()),
        }),
    }
}

fn float_overflow(to: SqlType, value: f64) -> Error {
    Error::FloatOverflow(to, format!("{value:.6}"))
}

fn integer_of_text(text: &str, from: SqlType, to: SqlType) -> Result<i64> {
    let trimmed = text.trim_matches([' ', '\t', '\r', '\n']);
    if to == SqlType::Bit {
        if trimmed.eq_ignore_ascii_case("true") {
            return Ok(1);
        }
        if trimmed.eq_ignore_ascii_case("false") {
            return Ok(0);
        }
    }
    if trimmed.is_empty() {
        return Ok(0);
    }
    let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number {
        return Err(match to {
            SqlType::BigInt => Error::ErrorConverting(from, to),
            _ => Error::NotConvertible(from, redact(text).into_owned(), to),
        });
    }
    let number = trimmed.parse::<i64>().ok();
    if to == SqlType::Bit {
        return Ok((number != Some(0)).into());
    }
    let (low, high) = to.integer_range().unwrap_or((i64::MIN, i64::MAX));
    number.filter(|number| (low..=high).contains(number)).ok_or_else(|| match to {
        SqlType::Int => Error::OverflowedInt(from, redact(text).into_owned()),
        SqlType::BigInt => Error::Overflow("expression", to.name()),
        _ => Error::OverflowedSmall(
            from,
            redact(text).into_owned(),
            if to == SqlType::SmallInt { "INT2" } else { "INT1" },
        ),
    })
}

pub(super) fn to_decimal(value: Value, from: SqlType, to: SqlType) -> Result<Decimal> {
    let (precision, scale) = to.as_numeric().unwrap_or((38, 0));
    let overflow = || Error::Overflow(from.name(), to.name());
    let money = matches!(to, SqlType::Money | SqlType::SmallMoney);
    let exact = match (from.family(), &value) {
        (Family::Text, Value::Text(text)) if money => money_of_text(text, to)?,
        (Family::Text, Value::Text(text)) => {
            let trimmed = text.trim();
            // A numeric takes no exponent.
            let plain = !trimmed.contains(['e', 'E']);
            let decimal = Decimal::parse(trimmed).filter(|_| plain);
            decimal.ok_or(Error::ErrorConverting(from, to))?
        }
        (_, Value::Real(number)) => Decimal::of_float(*number, scale).ok_or_else(overflow)?,
        (Family::Moment, value) => {
            Decimal::of_float(moment_of(value, from)?.to_float(), scale).ok_or_else(overflow)?
        }
        (Family::Binary, Value::Blob(_)) => {
            Decimal::from(to_integer(value, from, SqlType::BigInt)?)
        }
        (_, value) => decimal_of(value, from)?,
    };
    let fitted = exact.fit(precision, scale, Rounding::Nearest);
    let (low, high) = to.money_range().unwrap_or((i128::MIN, i128::MAX));
    fitted.filter(|d| (low..=high).contains(&d.unscaled())).ok_or_else(overflow)
}

fn money_of_text(text: &str, to: SqlType) -> Result<Decimal> {
    let mut digits: String =
        text.trim().chars().filter(|letter| !matches!(letter, ',' | ' ')).collect();
    if let Some(at) = digits.find(['$', '€', '£', '¥']) {
        digits.remove(at);
    }
    if digits.is_empty() || digits == "-" || digits == "+" {
        return Ok(Decimal::ZERO);
    }
    Decimal::parse(&digits).filter(|_| !digits.contains(['e', 'E'])).ok_or(match to {
        SqlType::SmallMoney => Error::NotSmallMoney,
        _ => Error::NotMoney,
    })
}

/// A float as T-SQL writes one.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Some(0.0);
    }
    let plain = trimmed
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    trimmed.parse().ok().filter(|number: &f64| plain && number.is_finite())
}

pub(super) fn to_float(value: Value, from: SqlType, to: SqlType) -> Result<f64> {
    let number = match (from.family(), &value) {
        (Family::Text, Value::Text(text)) => {
            parse_float(text).ok_or(Error::ErrorConverting(from, to))?
        }
        (_, Value::Real(number)) => *number,
        (_, Value::Integer(number)) => *number as f64,
        (Family::Moment, value) => moment_of(value, from)?.to_float(),
        (Family::Decimal, value) => decimal_of(value, from)?.to_float(),
        _ => return Err(Error::NoConversion(from, to)),
    };
    let number = match to {
        SqlType::Real => f64::from(number as f32),
        _ => number,
    };
    match number.is_finite() {
        true => Ok(number),
        false => Err(Error::Overflow("expression", to.name())),
    }
}

//! CAST and CONVERT: a value of one type as a value of another.
//!
//! Source: Microsoft's "CAST and CONVERT". Bytes of char and varchar are UTF-8, as under a `_UTF8` collation; those of
//! nchar and nvarchar UTF-16.

mod binary;
mod number;
mod stored;
mod text;

pub use rusqlite::types::Value;

use crate::values::decimal::Decimal;
use crate::values::moment::Moment;
use crate::values::types::{Family, SqlType};
use crate::values::{Error, Result};

pub use binary::{from_hex, to_hex, utf16_bytes};
pub(crate) use number::parse_float;
pub use stored::{read_stored, write_stored};
pub(crate) use text::grouped;

/// Whether a conversion is ever allowed, asked for or not.
pub fn allowed(from: SqlType, to: SqlType) -> bool {
    use Family as F;
    if crate::values::types::implicit(from, to) {
        return true;
    }
    match (from.family(), to.family()) {
        (F::Text, F::Binary) => true,
        (F::Moment, F::Integer | F::Decimal | F::Float) => {
            matches!(from, SqlType::DateTime | SqlType::SmallDateTime)
        }
        (F::Moment, F::Binary) => false,
        (F::Xml, F::Text | F::Binary) => true,
        (F::Variant, F::Xml) => false,
        (F::Variant, _) => true,
        (F::Float, F::Binary) => false,
        _ => false,
    }
}

/// `value`, of type `from`, as one of type `to`. `style` is that of CONVERT, 0 where none is written.
///
/// # Errors
/// What SQL Server says of a value that does not become one: 220, 232, 235, 241, 242, 244, 245, 248, 295, 529, 8114, 8115,
/// 8169.
pub fn convert(value: Value, from: SqlType, to: SqlType, style: Option<i64>) -> Result<Value> {
    if value == Value::Null {
        return Ok(value);
    }
    let from = match from {
        SqlType::Variant | SqlType::Null => natural_type(&value),
        other => other,
    };
    if !allowed(from, to) {
        return Err(Error::NoConversion(from, to));
    }
    match to.family() {
        Family::Null => Ok(value),
        Family::Integer => number::to_integer(value, from, to).map(Value::Integer),
        Family::Decimal => number::to_decimal(value, from, to).map(decimal_value),
        Family::Float => number::to_float(value, from, to).map(Value::Real),
        Family::Text => text::to_text(value, from, to, style).map(Value::Text),
        Family::Binary => binary::to_binary(value, from, to, style).map(Value::Blob),
        Family::Guid => binary::to_guid(value, from).map(Value::Text),
        Family::Moment => {
            to_moment(&value, from, to, style.unwrap_or(0)).map(|m| Value::Text(m.to_iso(to)))
        }
        Family::Xml => text::to_xml(value, from, style.unwrap_or(0)).map(Value::Text),
        Family::Variant => match from.family() {
            Family::Decimal => Ok(Value::Text(decimal_of(&value, from)?.to_string())),
            _ => Ok(value),
        },
    }
}

/// Whether values of one type are values of the other as they are.
pub fn is_same(from: SqlType, to: SqlType) -> bool {
    if from == to || from == SqlType::Null || to == SqlType::Null {
        return true;
    }
    match (from.family(), to.family()) {
        (Family::Integer, Family::Integer) => match (from.integer_range(), to.integer_range()) {
            (Some((low, high)), Some((least, most))) => {
                to != SqlType::Bit && least <= low && high <= most
            }
            _ => false,
        },
        (Family::Decimal, Family::Decimal) => match (from.as_numeric(), to.as_numeric()) {
            (Some((p, s)), Some((to_p, to_s))) => s == to_s && p <= to_p,
            _ => false,
        },
        (Family::Text, Family::Text) => {
            from.length() <= to.length() && !matches!(to, SqlType::Char(_) | SqlType::NChar(_))
        }
        (Family::Binary, Family::Binary) => {
            from.length() <= to.length() && !matches!(to, SqlType::Binary(_))
        }
        (Family::Float, Family::Float) => to == SqlType::Float,
        (Family::Integer | Family::Text | Family::Float, Family::Variant) => true,
        _ => false,
    }
}

/// What a value of sql_variant is.
pub fn natural_type(value: &Value) -> SqlType {
    match value {
        Value::Null => SqlType::Null,
        Value::Integer(_) => SqlType::BigInt,
        Value::Real(_) => SqlType::Float,
        Value::Text(_) => SqlType::NVARCHAR_MAX,
        Value::Blob(_) => SqlType::VarBinary(crate::values::types::Length::Max),
    }
}

/// A decimal as it travels through SQLite.
pub fn decimal_value(decimal: Decimal) -> Value {
    Value::Blob(decimal.to_key().to_vec())
}

/// The decimal in a value of type numeric or money.
pub fn decimal_of(value: &Value, data_type: SqlType) -> Result<Decimal> {
    let decimal = match value {
        Value::Blob(bytes) => Decimal::of_key(bytes, data_type.scale()),
        Value::Integer(number) => Some(Decimal::from(*number)),
        Value::Text(text) => Decimal::parse(text.trim()),
        Value::Real(number) => Decimal::of_float(*number, data_type.scale()),
        Value::Null => None,
    };
    decimal.ok_or_else(|| Error::Overflow("expression", data_type.name()))
}

/// The date or time in a value of such a type.
pub fn moment_of(value: &Value, data_type: SqlType) -> Result<Moment> {
    match value {
        Value::Text(text) => Moment::parse(text, 0).ok_or(Error::NotADate),
        _ => to_moment(value, data_type, SqlType::DateTime, 0),
    }
}

fn to_moment(value: &Value, from: SqlType, to: SqlType, style: i64) -> Result<Moment> {
    let out_of_range = || Error::DateOutOfRange(from, to);
    let moment = match (from.family(), value) {
        (Family::Text, Value::Text(text)) => {
            check_style(style, from)?;
            Moment::parse(text, style).ok_or_else(|| match looks_like_date(text) {
                true => out_of_range(),
                false if to == SqlType::SmallDateTime => Error::NotASmallDateTime,
                false => Error::NotADate,
            })?
        }
        (_, Value::Text(text)) => {
            let moment = Moment::parse(text, 0).ok_or(Error::NotADate)?;
            match from {
                SqlType::DateTime => moment.exact(),
                _ => moment,
            }
        }
        (Family::Integer, Value::Integer(days)) => {
            Moment::of_days(*days, 0).ok_or_else(|| Error::Overflow("expression", to.name()))?
        }
        (Family::Decimal | Family::Float, value) => {
            let days = match value {
                Value::Real(days) => *days,
                value => decimal_of(value, from)?.to_float(),
            };
            let ticks = (days.fract() * crate::values::moment::TICKS_DAY as f64).round();
            Moment::of_days(days.trunc() as i64, ticks as i64)
                .ok_or_else(|| Error::Overflow("expression", to.name()))?
        }
        _ => return Err(Error::NoConversion(from, to)),
    };
    match (from, to) {
        (SqlType::Time(_), SqlType::Date) | (SqlType::Date, SqlType::Time(_)) => {
            Err(Error::NoConversion(from, to))
        }
        _ => moment.rounded(to).ok_or_else(out_of_range),
    }
}

/// Whether CONVERT between text and dates takes the style; 130 and 131, of the Hijri calendar, are not done.
fn check_style(style: i64, from: SqlType) -> Result<()> {
    match style {
        130 | 131 => Err(Error::Unsupported(format!("CONVERT style {style}"))),
        style if crate::values::moment::is_style(style) => Ok(()),
        style => Err(Error::BadStyle(style, from)),
    }
}

/// Whether a text that is no date has the form of one: 2021-02-30.
fn looks_like_date(text: &str) -> bool {
    let parts: Vec<&str> =
        text.trim().split(['-', '/', '.', ' ', ':', 'T']).filter(|part| !part.is_empty()).collect();
    let digits = |part: &&str| part.bytes().all(|b| b.is_ascii_digit());
    let sizes = parts.iter().all(|part| part.len() <= 4)
        || matches!(parts.first(), Some(first) if first.len() == 8);
    !parts.is_empty()
        && parts.iter().all(digits)
        && sizes
        && (parts.len() >= 3 || parts[0].len() == 8)
}

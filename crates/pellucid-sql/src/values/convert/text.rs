//! Conversion to text.

use super::{binary, decimal_of, moment_of, natural_type, Value};
use crate::values::decimal::{Decimal, Rounding};
use crate::values::types::{Family, Length, SqlType};
use crate::values::{Error, Result};

pub(super) fn to_text(
    value: Value,
    from: SqlType,
    to: SqlType,
    style: Option<i64>,
) -> Result<String> {
    let room = match to.length() {
        Some(Length::Of(n)) => usize::from(n),
        _ => usize::MAX,
    };
    let number = style.unwrap_or(0);
    let text = match (from.family(), &value) {
        (Family::Integer, Value::Integer(integer)) => {
            let text = integer.to_string();
            if text.len() > room {
                // An integer that does not fit is a star, unless the text is national.
                return match to.is_national() {
                    true => Err(Error::Overflow("expression", to.name())),
                    false => Ok(padded("*".to_owned(), to)),
                };
            }
            text
        }
        (Family::Decimal, value) => {
            let decimal = decimal_of(value, from)?;
            let text = match from {
                SqlType::Money | SqlType::SmallMoney => {
                    money_text(decimal, number).ok_or(Error::BadStyle(number, from))?
                }
                _ => decimal.to_string(),
            };
            fitting(text, room, from, to)?
        }
        (Family::Float, Value::Real(float)) => {
            fitting(float_text(*float, number, from), room, from, to)?
        }
        (Family::Moment, value) => {
            let moment = moment_of(value, from)?;
            let default = match from {
                SqlType::DateTime | SqlType::SmallDateTime => 0,
                _ => 121,
            };
            let number = style.unwrap_or(default);
            super::check_style(number, from)?;
            moment.styled(from, number).ok_or(Error::BadStyle(number, from))?
        }
        (Family::Binary, Value::Blob(bytes)) => match number {
            0 if to.is_national() => {
                let units: Vec<u16> = bytes
                    .chunks(2)
                    .map(|pair| u16::from_le_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
                    .collect();
                String::from_utf16_lossy(&units)
            }
            0 => String::from_utf8_lossy(bytes).into_owned(),
            1 => format!("0x{}", binary::to_hex(bytes)),
            2 => binary::to_hex(bytes),
            _ => return Err(Error::BadStyle(number, from)),
        },
        (Family::Guid, Value::Text(text)) => {
            if room < 36 {
                return Err(Error::NoRoomForGuid);
            }
            text.clone()
        }
        // A part of xml is none.
        (Family::Xml, Value::Text(text)) if text.chars().nth(room).is_some() => {
            return Err(Error::NoRoomForXml)
        }
        (_, Value::Text(_)) => match value {
            Value::Text(text) => text,
            _ => String::new(),
        },
        // A column of a plain SQLite database that holds another type than it is declared as.
        (_, other) => match natural_type(other) {
            found if found.family() == Family::Text => {
                return Err(Error::ErrorConverting(from, to))
            }
            found => return to_text(value, found, to, style),
        },
    };
    Ok(padded(cut(text, room), to))
}

/// At most so many characters.
fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        if let Some((at, _)) = text.char_indices().nth(most) {
            text.truncate(at);
        }
    }
    text
}

/// Char and nchar are filled up with spaces.
fn padded(mut text: String, to: SqlType) -> String {
    if let SqlType::Char(n) | SqlType::NChar(n) = to {
        let missing = usize::from(n).saturating_sub(text.chars().count());
        text.extend(std::iter::repeat_n(' ', missing));
    }
    text
}

fn fitting(text: String, room: usize, from: SqlType, to: SqlType) -> Result<String> {
    match text.len() <= room {
        true => Ok(text),
        false if from.family() == Family::Float => Err(Error::Overflow("expression", to.name())),
        false => Err(Error::Overflow(from.name(), to.name())),
    }
}

/// Styles 0: two digits behind the point; 1: with commas; 2 and 126: four digits.
fn money_text(money: Decimal, style: i64) -> Option<String> {
    let digits = match style {
        0 | 1 => 2,
        2 | 126 => 4,
        _ => return None,
    };
    let text = money.with_scale(digits, Rounding::Nearest)?.to_string();
    Some(match style {
        1 => grouped(&text),
        _ => text,
    })
}

/// With a comma before each third digit of the whole part.
pub(crate) fn grouped(text: &str) -> String {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let (whole, fraction) = match digits.find('.') {
        Some(at) => digits.split_at(at),
        None => (digits, ""),
    };
    let mut text = sign.to_owned();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

/// Styles 0: six digits at most; 1: eight; 2: sixteen; 3: seventeen, the last three always with exponent.
fn float_text(value: f64, style: i64, from: SqlType) -> String {
    match style {
        1 => exponential(value, 7),
        2 => exponential(value, 15),
        3 => exponential(value, if from == SqlType::Real { 8 } else { 16 }),
        _ => shortest(value),
    }
}

/// As `%g` of C does.
fn shortest(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{value:.5e}");
    let exponent: i32 =
        scientific.rsplit_once('e').and_then(|(_, digits)| digits.parse().ok()).unwrap_or(0);
    let strip = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match (-5..6).contains(&exponent) && exponent >= -4 {
        true => strip(&format!("{value:.*}", (5 - exponent).max(0) as usize)),
        false => {
            let mantissa = scientific.split('e').next().unwrap_or_default();
            format!("{}{}", strip(mantissa), exponent_text(exponent))
        }
    }
}

fn exponential(value: f64, digits: usize) -> String {
    let scientific = format!("{value:.digits$e}");
    let (mantissa, exponent) = scientific.rsplit_once('e').unwrap_or((&scientific, "0"));
    format!("{mantissa}{}", exponent_text(exponent.parse().unwrap_or(0)))
}

fn exponent_text(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:03}", exponent.abs())
}

/// Text as XML.
pub(super) fn to_xml(value: Value, from: SqlType, style: i64) -> Result<String> {
    match value {
        // With the white space, or with the entities of a document type definition.
        Value::Text(_) if style != 0 => {
            Err(Error::Unsupported(format!("CONVERT to xml with style {style}")))
        }
        Value::Text(text) if from == SqlType::Xml => Ok(text),
        Value::Text(text) => crate::values::xml::normal(&text),
        _ => Err(Error::NoConversion(from, SqlType::Xml)),
    }
}

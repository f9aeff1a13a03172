//! Conversion to binary types and to uniqueidentifier.

use super::{decimal_of, Value};
use crate::values::types::{Family, Length, SqlType};
use crate::values::{Error, Result};

/// Bytes as hexadecimal digits in capitals.
pub fn to_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push_str(&format!("{byte:02X}"));
    }
    text
}

/// Bytes of hexadecimal digits; `None` if it is something else.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    if text.len() % 2 != 0 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// Bytes of national text.
pub fn utf16_bytes(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

pub(super) fn to_binary(
    value: Value,
    from: SqlType,
    to: SqlType,
    style: Option<i64>,
) -> Result<Vec<u8>> {
    let failed = || Error::ErrorConverting(from, to);
    let mut from_left = true;
    let mut bytes = match (from.family(), value) {
        (Family::Binary, Value::Blob(bytes)) => bytes,
        (Family::Text, Value::Text(text)) => match style.unwrap_or(0) {
            0 if from.is_national() => utf16_bytes(&text),
            0 => text.into_bytes(),
            1 => {
                let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
                digits.and_then(from_hex).ok_or_else(failed)?
            }
            2 => from_hex(&text).ok_or_else(failed)?,
            style => return Err(Error::BadStyle(style, from)),
        },
        (Family::Integer, Value::Integer(number)) => {
            from_left = false;
            let width = match from {
                SqlType::Bit | SqlType::TinyInt => 1,
                SqlType::SmallInt => 2,
                SqlType::Int => 4,
                _ => 8,
            };
            number.to_be_bytes()[8 - width..].to_vec()
        }
        (Family::Decimal, value) => {
            let decimal = decimal_of(&value, from)?;
            match from {
                SqlType::Numeric { precision, scale } => {
                    let mut bytes = vec![precision, scale, 0, u8::from(decimal.unscaled() >= 0)];
                    let width = match precision {
                        0..=9 => 4,
                        10..=19 => 8,
                        20..=28 => 12,
                        _ => 16,
                    };
                    let digits = decimal.unscaled().unsigned_abs().to_le_bytes();
                    bytes.extend_from_slice(&digits[..width]);
                    bytes
                }
                _ => {
                    from_left = false;
                    (decimal.unscaled() as i64).to_be_bytes().to_vec()
                }
            }
        }
        (Family::Guid, Value::Text(text)) => guid_bytes(&text).ok_or_else(failed)?,
        _ => return Err(Error::NoConversion(from, to)),
    };
    if let Some(Length::Of(most)) = to.length() {
        let most = usize::from(most);
        let fixed = matches!(to, SqlType::Binary(_));
        match from_left {
            true => {
                bytes.truncate(most);
                if fixed {
                    bytes.resize(most, 0);
                }
            }
            false => {
                if bytes.len() > most {
                    bytes.drain(..bytes.len() - most);
                }
                if fixed {
                    let missing = most - bytes.len();
                    drop(bytes.splice(0..0, std::iter::repeat_n(0, missing)));
                }
            }
        }
    }
    Ok(bytes)
}

/// The 16 bytes of a uniqueidentifier: the first three groups little-endian.
fn guid_bytes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = from_hex(&text.replace('-', ""))?;
    if bytes.len() != 16 {
        return None;
    }
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    Some(bytes)
}

fn guid_text(bytes: &[u8]) -> String {
    let mut bytes: Vec<u8> = bytes.iter().copied().chain(std::iter::repeat(0)).take(16).collect();
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    let hex = to_hex(&bytes);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

pub(super) fn to_guid(value: Value, from: SqlType) -> Result<String> {
    let failed = || Error::NotAGuid;
    match value {
        Value::Blob(bytes) => Ok(guid_text(&bytes)),
        Value::Text(text) => {
            let text = text.strip_prefix('{').unwrap_or(&text);
            // What follows 36 characters is not looked at.
            let text = text.get(..36).ok_or_else(failed)?;
            let dashes = [8, 13, 18, 23];
            let fits = text.bytes().enumerate().all(|(at, byte)| match dashes.contains(&at) {
                true => byte == b'-',
                false => byte.is_ascii_hexdigit(),
            });
            fits.then(|| text.to_ascii_uppercase()).ok_or_else(failed)
        }
        _ => Err(Error::NoConversion(from, SqlType::UniqueIdentifier)),
    }
}

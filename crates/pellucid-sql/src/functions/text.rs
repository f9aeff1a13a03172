//! Functions of text. A position counts characters, from 1.
//!
//! Source: Microsoft's "String Functions (Transact-SQL)".

use super::{
    bounded, float, int, scalar, text_at, text_value, type_at, value_at, with_nulls, Scalar,
};
use crate::message::{table, Message, Result};
use crate::values::convert::{decimal_of, utf16_bytes, Value};
use crate::values::types::{Family, Length, SqlType};

/// Bytes that a function makes at most where its type is not `max`.
const BYTES_MOST: usize = 8000;

pub(super) const SCALARS: &[Scalar] = &[
    scalar("tsql_len", |a| Ok(count(text_at(a, 0)?.trim_end_matches(' ')))),
    scalar("tsql_left", |a| left(text_at(a, 0)?, length(a, 1, "left")?)),
    scalar("tsql_right", |a| right(text_at(a, 0)?, length(a, 1, "right")?)),
    scalar("tsql_substring", substring),
    scalar("tsql_stuff", stuff),
    scalar("tsql_replicate", replicate),
    scalar("tsql_space", |a| text_value(" ".repeat(int(a, 0)?.clamp(0, 8000) as usize))),
    scalar("tsql_ltrim", |a| text_value(text_at(a, 0)?.trim_start_matches(|c| trimmed(a, c)))),
    scalar("tsql_rtrim", |a| text_value(text_at(a, 0)?.trim_end_matches(|c| trimmed(a, c)))),
    scalar("tsql_trim", |a| text_value(text_at(a, 0)?.trim_matches(' '))),
    scalar("tsql_upper", |a| text_value(text_at(a, 0)?.to_uppercase())),
    scalar("tsql_lower", |a| text_value(text_at(a, 0)?.to_lowercase())),
    scalar("tsql_reverse", |a| text_value(text_at(a, 0)?.chars().rev().collect::<String>())),
    scalar("tsql_str", str),
    with_nulls("tsql_concat_ws", concat_ws),
    scalar("tsql_quotename", quote_name),
    scalar("tsql_ascii", |a| {
        Ok(text_at(a, 0)?.bytes().next().map_or(Value::Null, |b| Value::Integer(b.into())))
    }),
    scalar("tsql_unicode", |a| {
        Ok(text_at(a, 0)?.chars().next().map_or(Value::Null, |c| Value::Integer((c as u32).into())))
    }),
    scalar("tsql_char", |a| character(int(a, 0)?, 255)),
    scalar("tsql_nchar", |a| character(int(a, 0)?, 0x10_ffff)),
    scalar("tsql_datalength", data_length),
    scalar("tsql_parsename", parse_name),
    scalar("tsql_translate", translate),
    scalar("tsql_split", split),
];

fn count(text: &str) -> Value {
    Value::Integer(text.chars().count() as i64)
}

fn trimmed(arguments: &[Value], letter: char) -> bool {
    match arguments.get(1) {
        Some(Value::Text(set)) => set.contains(letter),
        _ => letter == ' ',
    }
}

/// A length of 0 or more.
fn length(arguments: &[Value], at: usize, function: &str) -> Result<usize> {
    usize::try_from(int(arguments, at)?).map_err(|_| invalid_length(function))
}

fn invalid_length(function: &str) -> Message {
    match function.eq_ignore_ascii_case("right") {
        true => Message::of(table::BAD_RIGHT, []),
        false => Message::of(table::BAD_LENGTH, []),
    }
}

fn left(text: &str, most: usize) -> Result<Value> {
    text_value(text.chars().take(most).collect::<String>())
}

fn right(text: &str, most: usize) -> Result<Value> {
    let skip = text.chars().count().saturating_sub(most);
    text_value(text.chars().skip(skip).collect::<String>())
}

/// A start before the text takes away from the length.
fn range(start: i64, length: i64) -> (usize, usize) {
    let end = start.saturating_add(length).max(1);
    let start = start.max(1);
    ((start - 1) as usize, (end - start).max(0) as usize)
}

fn substring(arguments: &[Value]) -> Result<Value> {
    let (start, length) = (int(arguments, 1)?, int(arguments, 2)?);
    if length < 0 {
        return Err(invalid_length("substring"));
    }
    let (skip, take) = range(start, length);
    match value_at(arguments, 0)? {
        Value::Blob(bytes) => {
            Ok(Value::Blob(bytes.iter().copied().skip(skip).take(take).collect()))
        }
        _ => text_value(text_at(arguments, 0)?.chars().skip(skip).take(take).collect::<String>()),
    }
}

/// NULL as the inserted text deletes only, so it is handed in as ''.
fn stuff(arguments: &[Value]) -> Result<Value> {
    let letters: Vec<char> = text_at(arguments, 0)?.chars().collect();
    let (start, length) = (int(arguments, 1)?, int(arguments, 2)?);
    if start < 1 || length < 0 || start > letters.len() as i64 {
        return Ok(Value::Null);
    }
    let start = (start - 1) as usize;
    let end = start.saturating_add(length as usize).min(letters.len());
    let mut text: String = letters[..start].iter().collect();
    text.push_str(text_at(arguments, 3)?);
    text.extend(&letters[end..]);
    text_value(text)
}

/// `tsql_replicate(text, count, type)`
fn replicate(arguments: &[Value]) -> Result<Value> {
    let (text, times) = (text_at(arguments, 0)?, int(arguments, 1)?);
    let Ok(times) = usize::try_from(times) else { return Ok(Value::Null) };
    let data_type = type_at(arguments, 2)?;
    if data_type.length() == Some(Length::Max) {
        bounded(text.len().saturating_mul(times))?;
        return text_value(text.repeat(times));
    }
    // 8000 bytes, and no part of a character.
    let size = |letter: char| match data_type.is_national() {
        true => letter.len_utf16() * 2,
        false => letter.len_utf8(),
    };
    let mut room = BYTES_MOST;
    let mut result = String::new();
    let passes = if text.is_empty() { 0 } else { times };
    for letter in (0..passes).flat_map(|_| text.chars()) {
        match room.checked_sub(size(letter)) {
            Some(rest) => room = rest,
            None => break,
        }
        result.push(letter);
    }
    text_value(result)
}

/// `STR(float, length, decimals)`
fn str(arguments: &[Value]) -> Result<Value> {
    let number = float(arguments, 0)?;
    let width = arguments.get(1).map_or(Ok(10), |_| int(arguments, 1))?;
    let digits = arguments.get(2).map_or(Ok(0), |_| int(arguments, 2))?;
    if width <= 0 || width > BYTES_MOST as i64 || digits < 0 {
        return Ok(Value::Null);
    }
    let (width, mut digits) = (width as usize, digits.min(16) as usize);
    // Halves go away from zero, not to the even one.
    let shown = |digits: usize| {
        crate::values::decimal::Decimal::of_float(number, digits as u8)
            .map_or_else(|| format!("{number:.digits$}"), |decimal| decimal.to_string())
    };
    let mut text = shown(digits);
    while text.len() > width && digits > 0 {
        digits -= 1;
        text = shown(digits);
    }
    match text.len() > width {
        true => text_value("*".repeat(width)),
        false => text_value(format!("{text:>width$}")),
    }
}

fn concat_ws(arguments: &[Value]) -> Result<Value> {
    let separator = match arguments.first() {
        Some(Value::Text(text)) => text.as_str(),
        _ => "",
    };
    let texts: Vec<&str> = arguments
        .iter()
        .skip(1)
        .filter_map(|value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    text_value(texts.join(separator))
}

fn quote_name(arguments: &[Value]) -> Result<Value> {
    let name = text_at(arguments, 0)?;
    let mark = arguments.get(1).map_or(Ok("["), |_| text_at(arguments, 1))?;
    let (open, close) = match mark.chars().next() {
        Some('[' | ']') => ('[', ']'),
        Some('(' | ')') => ('(', ')'),
        Some('<' | '>') => ('<', '>'),
        Some('{' | '}') => ('{', '}'),
        Some(mark @ ('\'' | '"' | '`')) => (mark, mark),
        _ => return Ok(Value::Null),
    };
    if name.chars().count() > 128 {
        return Ok(Value::Null);
    }
    let doubled = name.replace(close, &format!("{close}{close}"));
    text_value(format!("{open}{doubled}{close}"))
}

fn character(code: i64, most: i64) -> Result<Value> {
    let found = (0..=most).contains(&code).then(|| char::from_u32(code as u32)).flatten();
    Ok(found.map_or(Value::Null, |letter| Value::Text(letter.to_string())))
}

/// Bytes that SQL Server stores a value in.
fn data_length(arguments: &[Value]) -> Result<Value> {
    let data_type = type_at(arguments, 1)?;
    let value = value_at(arguments, 0)?;
    let bytes = match (data_type, value) {
        (SqlType::Bit | SqlType::TinyInt, _) => 1,
        (SqlType::SmallInt, _) => 2,
        (SqlType::Int | SqlType::Real | SqlType::SmallMoney | SqlType::SmallDateTime, _) => 4,
        (SqlType::BigInt | SqlType::Float | SqlType::Money | SqlType::DateTime, _) => 8,
        (SqlType::Numeric { precision, .. }, value) => {
            decimal_of(value, data_type)?;
            match precision {
                0..=9 => 5,
                10..=19 => 9,
                20..=28 => 13,
                _ => 17,
            }
        }
        (SqlType::Date, _) => 3,
        (SqlType::Time(digits), _) => clock_bytes(digits),
        (SqlType::DateTime2(digits), _) => clock_bytes(digits) + 3,
        (SqlType::UniqueIdentifier, _) => 16,
        (_, Value::Text(text)) if data_type.is_national() || data_type.family() != Family::Text => {
            utf16_bytes(text).len()
        }
        (_, Value::Text(text)) => text.len(),
        (_, Value::Blob(bytes)) => bytes.len(),
        (_, Value::Integer(_)) => 4,
        _ => 8,
    };
    Ok(Value::Integer(bytes as i64))
}

fn clock_bytes(digits: u8) -> usize {
    match digits {
        0..=2 => 3,
        3 | 4 => 4,
        _ => 5,
    }
}

/// Part 1 is the last; quotes around a part are taken off.
fn parse_name(arguments: &[Value]) -> Result<Value> {
    let name = text_at(arguments, 0)?;
    let mut parts = vec![String::new()];
    let mut quote = None;
    for letter in name.chars() {
        match (quote, letter) {
            (Some(end), letter) if letter == end => quote = None,
            (None, '[') => quote = Some(']'),
            (None, '"') => quote = Some('"'),
            (None, '.') => parts.push(String::new()),
            (_, letter) => {
                if let Some(part) = parts.last_mut() {
                    part.push(letter);
                }
            }
        }
    }
    let wanted = int(arguments, 1)?;
    if parts.len() > 4 || quote.is_some() || !(1..=4).contains(&wanted) {
        return Ok(Value::Null);
    }
    let part = parts.into_iter().rev().nth((wanted - 1) as usize);
    Ok(part.filter(|part| !part.is_empty()).map_or(Value::Null, Value::Text))
}

fn translate(arguments: &[Value]) -> Result<Value> {
    let from: Vec<char> = text_at(arguments, 1)?.chars().collect();
    let to: Vec<char> = text_at(arguments, 2)?.chars().collect();
    if from.len() != to.len() {
        return Err(Message::of(table::TRANSLATE_LENGTHS_DIFFER, []));
    }
    let replaced = text_at(arguments, 0)?.chars().map(|letter| {
        from.iter()
            .position(|other| *other == letter)
            .and_then(|at| to.get(at))
            .copied()
            .unwrap_or(letter)
    });
    text_value(replaced.collect::<String>())
}

/// The parts of STRING_SPLIT, as a JSON array for `json_each`.
fn split(arguments: &[Value]) -> Result<Value> {
    let separator = text_at(arguments, 1)?;
    let mut letters = separator.chars();
    let (Some(separator), None) = (letters.next(), letters.next()) else {
        return Err(Message::separator_not_one_letter());
    };
    let parts: Vec<String> = text_at(arguments, 0)?.split(separator).map(json_string).collect();
    text_value(format!("[{}]", parts.join(",")))
}

pub(super) fn json_string(text: &str) -> String {
    let mut json = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => json.extend(['\\', letter]),
            letter if letter.is_control() && (letter as u32) < 0x20 => {
                json.push_str(&format!("\\u{:04x}", letter as u32));
            }
            letter => json.push(letter),
        }
    }
    json.push('"');
    json
}

//! FORMATMESSAGE, and the texts with places that RAISERROR has too.

use super::{value_at, with_nulls, Scalar};
use crate::message::Result;
use crate::values::convert::Value;

pub(super) const SCALARS: &[Scalar] = &[with_nulls("tsql_formatmessage", format_message)];

/// A longer text is cut off, with three dots at its end.
const CHARS_MOST: usize = 2047;

fn format_message(arguments: &[Value]) -> Result<Value> {
    let Value::Text(text) = value_at(arguments, 0)? else { return Ok(Value::Null) };
    let text = formatted(text, &arguments[1..]);
    if text.chars().count() <= CHARS_MOST {
        return Ok(Value::Text(text));
    }
    let cut: String = text.chars().take(CHARS_MOST - 3).collect();
    Ok(Value::Text(cut + "..."))
}

/// RAISERROR's format: `%d`, `%i`, `%u`, `%o`, `%x`, `%X`, `%s`, with flags, width and precision.
pub(crate) fn formatted(text: &str, arguments: &[Value]) -> String {
    const WIDTH_MOST: usize = 2048;
    let mut out = String::new();
    let mut arguments = arguments.iter();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let flags = rest.len() - rest.trim_start_matches(['-', '+', '0', '#', ' ']).len();
        let digits =
            |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let width_end = flags + digits(&rest[flags..]);
        let width = rest[flags..width_end].parse::<usize>().unwrap_or(0).min(WIDTH_MOST);
        let (precision, mut end) = match rest[width_end..].strip_prefix('.') {
            Some(after) => {
                let length = digits(after);
                (after[..length].parse::<usize>().ok(), width_end + 1 + length)
            }
            None => (None, width_end),
        };
        end += if rest[end..].starts_with("I64") {
            3
        } else {
            usize::from(rest[end..].starts_with(['l', 'h']))
        };
        let Some(kind) = rest[end..].chars().next() else { break };
        let argument = arguments.next().unwrap_or(&Value::Null);
        let shown = match (kind, argument) {
            ('d' | 'i' | 'u', Value::Integer(number)) => number.to_string(),
            ('o', Value::Integer(number)) => format!("{number:o}"),
            ('x', Value::Integer(number)) => format!("{number:x}"),
            ('X', Value::Integer(number)) => format!("{number:X}"),
            ('s', Value::Text(text)) => match precision {
                Some(precision) => text.chars().take(precision).collect(),
                None => text.clone(),
            },
            _ => "(null)".to_owned(),
        };
        let missing = width.saturating_sub(shown.chars().count());
        let flags = &rest[..flags];
        if flags.contains('-') {
            out.push_str(&shown);
            out.extend(std::iter::repeat_n(' ', missing));
        } else {
            let fill = if flags.contains('0') && kind != 's' { '0' } else { ' ' };
            out.extend(std::iter::repeat_n(fill, missing));
            out.push_str(&shown);
        }
        rest = &rest[end + kind.len_utf8()..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raiserror_formats_as_printf_does() {
        let arguments = [Value::Integer(7), Value::Text("abc".to_owned())];
        assert_eq!(formatted("%d of %s%%", &arguments), "7 of abc%");
        assert_eq!(formatted("[%5d][%-6s]", &arguments), "[    7][abc   ]");
        assert_eq!(formatted("%05d %.2s", &arguments), "00007 ab");
        assert_eq!(formatted("%s %d", &[]), "(null) (null)");
        assert_eq!(formatted("100%", &[]), "100");
        assert_eq!(formatted("%I64d", &arguments), "7");
    }
}

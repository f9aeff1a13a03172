//! What a token's spelling stands for.

use std::borrow::Cow;

/// The text of `'..'`, `N'..'` or `".."`: doubled quotes are one, a backslash before a line's end joins two lines.
pub fn string_value(spelling: &str) -> Cow<'_, str> {
    let body = spelling.trim_start_matches(['N', 'n']);
    let (quote, doubled) = if body.starts_with('"') { ("\"", "\"\"") } else { ("'", "''") };
    let body = body.strip_prefix(quote).and_then(|s| s.strip_suffix(quote)).unwrap_or(body);
    let mut value = Cow::Borrowed(body);
    if body.contains(doubled) {
        value = Cow::Owned(body.replace(doubled, quote));
    }
    if value.contains("\\\n") || value.contains("\\\r\n") {
        value = Cow::Owned(value.replace("\\\r\n", "").replace("\\\n", ""));
    }
    value
}

/// The text of a name in brackets or double quotes; any other is as it is written.
pub fn name_value(spelling: &str) -> Cow<'_, str> {
    let (body, close) = match spelling.as_bytes().first() {
        Some(b'[') => (&spelling[1..spelling.len() - 1], "]"),
        Some(b'"') => (&spelling[1..spelling.len() - 1], "\""),
        _ => return Cow::Borrowed(spelling),
    };
    match body.contains(close) {
        true => Cow::Owned(body.replace(&close.repeat(2), close)),
        false => Cow::Borrowed(body),
    }
}

/// The bytes of `0x..`; an odd first digit is a byte of its own, as in SQL Server.
pub fn binary_value(spelling: &str) -> Vec<u8> {
    let digits = spelling.as_bytes().get(2..).unwrap_or_default();
    let digit = |digit: &u8| (*digit as char).to_digit(16).unwrap_or_default() as u8;
    let (odd, pairs) = digits.split_at(digits.len() % 2);
    odd.iter()
        .map(digit)
        .chain(pairs.chunks(2).map(|two| digit(&two[0]) << 4 | digit(&two[1])))
        .collect()
}

//! FORMAT of numbers: `N2`, `C`, `P1`, `#,##0.00`.

use crate::values::convert::grouped;
use crate::values::decimal::{Decimal, Rounding};
use crate::values::types::{Family, SqlType};

pub(super) fn format_number(number: Decimal, data_type: SqlType, pattern: &str) -> Option<String> {
    let mut letters = pattern.chars();
    let first = letters.next();
    let digits = letters.as_str();
    let standard = digits.len() <= 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
    match first {
        None => Some(number.to_string()),
        Some(letter) if letter.is_ascii_alphabetic() && standard => {
            formatted(number, data_type, letter.to_ascii_uppercase(), letter, digits.parse().ok())
        }
        _ => custom(number, pattern),
    }
}

fn formatted(
    number: Decimal,
    data_type: SqlType,
    kind: char,
    written: char,
    digits: Option<u8>,
) -> Option<String> {
    let integer = data_type.family() == Family::Integer;
    let fixed = |number: Decimal, digits: u8| {
        let rounded = number.with_scale(digits, Rounding::Nearest)?;
        Some((rounded.unscaled() < 0, rounded.to_string().trim_start_matches('-').to_owned()))
    };
    let signed = |(negative, text): (bool, String)| match negative {
        true => format!("-{text}"),
        false => text,
    };
    match kind {
        'N' => fixed(number, digits.unwrap_or(2)).map(|(n, text)| signed((n, grouped(&text)))),
        'F' => fixed(number, digits.unwrap_or(2)).map(signed),
        'C' => fixed(number, digits.unwrap_or(2)).map(|(negative, text)| match negative {
            true => format!("-${}", grouped(&text)),
            false => format!("${}", grouped(&text)),
        }),
        'P' => {
            let hundred = number.multiply(Decimal::from(100), number.scale())?;
            fixed(hundred, digits.unwrap_or(2))
                .map(|(n, text)| format!("{}%", signed((n, grouped(&text)))))
        }
        'D' if integer => {
            let (negative, text) = fixed(number, 0)?;
            let width = usize::from(digits.unwrap_or(0));
            Some(signed((negative, format!("{text:0>width$}"))))
        }
        'X' if integer => {
            let value = number.to_integer()?;
            let text = match data_type {
                SqlType::BigInt => format!("{value:X}"),
                SqlType::SmallInt => format!("{:X}", value as i16),
                _ => format!("{:X}", value as i32),
            };
            let width = usize::from(digits.unwrap_or(0));
            let text = format!("{text:0>width$}");
            Some(if written == 'x' { text.to_lowercase() } else { text })
        }
        'E' => {
            let digits = usize::from(digits.unwrap_or(6));
            let scientific = format!("{:.digits$e}", number.to_float());
            let (mantissa, exponent) = scientific.split_once('e')?;
            let exponent: i32 = exponent.parse().ok()?;
            let sign = if exponent < 0 { '-' } else { '+' };
            Some(format!("{mantissa}{written}{sign}{:03}", exponent.abs()))
        }
        'G' if digits.is_none_or(|digits| digits == 0) => Some(number.to_string()),
        _ => None,
    }
}

/// `0`, `#`, `.`, `,`, `%`, texts in quotes and up to three sections divided by `;`.
fn custom(number: Decimal, pattern: &str) -> Option<String> {
    let sections: Vec<&str> = pattern.split(';').collect();
    let (section, number, sign) = match (&sections[..], number.unscaled()) {
        ([_, _, zero, ..], 0) if !zero.is_empty() => (*zero, number, ""),
        ([_, negative, ..], ..0) if !negative.is_empty() => (*negative, number.negated(), ""),
        ([only, ..], ..0) => (*only, number.negated(), "-"),
        ([only, ..], _) => (*only, number, ""),
        _ => return None,
    };
    let letters: Vec<char> = section.chars().collect();
    let placeholder = |letter: &char| matches!(letter, '0' | '#');
    let outside = outside_quotes(&letters);
    let point = (0..letters.len()).find(|at| outside[*at] && letters[*at] == '.');
    let end = point.unwrap_or(letters.len());
    let places = |range: std::ops::Range<usize>| -> Vec<usize> {
        range.filter(|at| outside[*at] && placeholder(&letters[*at])).collect()
    };
    let (before, behind) = (places(0..end), places(end..letters.len()));
    let comma = |at: &usize| outside[*at] && letters[*at] == ',';
    let thousands = match (before.first(), before.last()) {
        (Some(first), Some(last)) => (*first..*last).any(|at| comma(&at)),
        _ => false,
    };
    // Commas right before the point divide by a thousand each.
    let scaling = before.last().map_or(0, |last| (*last..end).filter(comma).count());
    let mut number = number;
    if (0..letters.len()).any(|at| outside[at] && letters[at] == '%') {
        number = number.multiply(Decimal::from(100), number.scale())?;
    }
    for _ in 0..scaling {
        number = number.divide(Decimal::from(1000), (number.scale() + 3).min(38))?;
    }
    let rounded = number.with_scale(behind.len().min(38) as u8, Rounding::Nearest)?.to_string();
    let (whole, fraction) = rounded.split_once('.').unwrap_or((&rounded, ""));
    let zeros = before.iter().position(|at| letters[*at] == '0').map_or(0, |at| before.len() - at);
    let whole = format!("{:0>zeros$}", whole.trim_start_matches('0'));
    let kept = behind.iter().rposition(|at| letters[*at] == '0').map_or(0, |at| at + 1);
    let fraction = {
        let shown = fraction.trim_end_matches('0').len().max(kept).min(fraction.len());
        &fraction[..shown]
    };
    let mut text = String::from(sign);
    let mut fraction = fraction.chars();
    let mut at = 0;
    while at < letters.len() {
        let letter = letters[at];
        match letter {
            '\\' if outside[at] => {
                at += 1;
                text.extend(letters.get(at));
            }
            '\'' | '"' if outside[at] => {}
            _ if !outside[at] => text.push(letter),
            '0' | '#' if at < end => {
                text.push_str(&digits_at(&before, at, &whole, thousands));
            }
            '0' | '#' => text.extend(fraction.next()),
            '.' if Some(at) == point => {
                if before.is_empty() {
                    text.push_str(&whole);
                }
                if !fraction.as_str().is_empty() {
                    text.push('.');
                }
            }
            ',' => {}
            other => text.push(other),
        }
        at += 1;
    }
    Some(text)
}

/// The digits that a placeholder stands for: its own, and at the first one those that have none.
fn digits_at(places: &[usize], at: usize, whole: &str, thousands: bool) -> String {
    let index = places.iter().position(|place| *place == at).unwrap_or(0);
    let right = places.len() - 1 - index;
    let mut text = String::new();
    for (number, digit) in whole.chars().enumerate() {
        let behind = whole.len() - 1 - number;
        if behind == right || (index == 0 && behind > right) {
            text.push(digit);
            if thousands && behind > 0 && behind % 3 == 0 {
                text.push(',');
            }
        }
    }
    text
}

/// Which characters are not within quotes. The quotes themselves count as outside.
fn outside_quotes(letters: &[char]) -> Vec<bool> {
    let mut quote = None;
    let mut escaped = false;
    letters
        .iter()
        .map(|letter| match (quote, letter) {
            _ if escaped => {
                escaped = false;
                false
            }
            (None, '\\') => {
                escaped = true;
                true
            }
            (None, '\'' | '"') => {
                quote = Some(*letter);
                true
            }
            (Some(end), letter) if end == *letter => {
                quote = None;
                true
            }
            (None, _) => true,
            (Some(_), _) => false,
        })
        .collect()
}

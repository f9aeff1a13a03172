//! FORMAT: .NET's patterns for dates and numbers, in the culture en-US.
//!
//! Source: Microsoft's "FORMAT (Transact-SQL)", ".. standard and custom date and time format strings". A format that
//! .NET refuses gives NULL.

use super::format_number::format_number;
use crate::message::{Message, Result};
use crate::values::convert::{decimal_of, moment_of, Value};
use crate::values::decimal::Decimal;
use crate::values::moment::{Moment, DAYS, MONTHS, TICKS_SECOND};
use crate::values::types::{Family, SqlType};

/// Characters of a pattern at most: those of nvarchar(4000). No width is larger.
const PATTERN_MOST: usize = 4000;

pub(super) fn format(value: &Value, data_type: SqlType, pattern: &str) -> Result<Option<String>> {
    if pattern.chars().count() > PATTERN_MOST {
        return Err(Message::unsupported(format!(
            "FORMAT with a pattern of more than {PATTERN_MOST} characters"
        )));
    }
    match data_type.family() {
        Family::Moment => {
            let moment = moment_of(value, data_type)?;
            // A time takes only patterns whose signs are escaped.
            Ok(format_moment(moment, pattern))
        }
        Family::Integer | Family::Decimal => {
            Ok(format_number(decimal_of(value, data_type)?, data_type, pattern))
        }
        Family::Float => {
            let Value::Real(number) = value else {
                return Err(Message::bad_argument(data_type, 1, "format"));
            };
            let decimal = (0..=15).rev().find_map(|scale| Decimal::of_float(*number, scale));
            let decimal = decimal.ok_or_else(|| Message::unsupported("FORMAT of such a float"))?;
            Ok(format_number(shortened(decimal), data_type, pattern))
        }
        _ => Err(Message::bad_argument(data_type, 1, "format")),
    }
}

/// Without zeros at the end.
fn shortened(decimal: Decimal) -> Decimal {
    let (mut unscaled, mut scale) = (decimal.unscaled(), decimal.scale());
    while scale > 0 && unscaled % 10 == 0 {
        unscaled /= 10;
        scale -= 1;
    }
    Decimal::new(unscaled, scale).unwrap_or(decimal)
}

fn format_moment(moment: Moment, pattern: &str) -> Option<String> {
    let standard = match pattern {
        "d" => "M/d/yyyy",
        "D" => "dddd, MMMM d, yyyy",
        "f" => "dddd, MMMM d, yyyy h:mm tt",
        "F" | "U" => "dddd, MMMM d, yyyy h:mm:ss tt",
        "g" => "M/d/yyyy h:mm tt",
        "G" | "" => "M/d/yyyy h:mm:ss tt",
        "m" | "M" => "MMMM d",
        "o" | "O" => "yyyy-MM-ddTHH:mm:ss.fffffff",
        "r" | "R" => "ddd, dd MMM yyyy HH:mm:ss 'GMT'",
        "s" => "yyyy-MM-ddTHH:mm:ss",
        "t" => "h:mm tt",
        "T" => "h:mm:ss tt",
        "u" => "yyyy-MM-dd HH:mm:ss'Z'",
        "y" | "Y" => "MMMM yyyy",
        one if one.chars().count() == 1 => return None,
        custom => custom,
    };
    custom_moment(moment, standard)
}

fn custom_moment(moment: Moment, pattern: &str) -> Option<String> {
    let letters: Vec<char> = pattern.chars().collect();
    let mut text = String::new();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let run = letters[at..].iter().take_while(|other| **other == letter).count();
        at += 1;
        match letter {
            '\'' | '"' => {
                let end = letters[at..].iter().position(|other| *other == letter)?;
                text.extend(&letters[at..at + end]);
                at += end + 1;
            }
            '\\' => {
                text.push(*letters.get(at)?);
                at += 1;
            }
            '%' => {}
            _ => match part(moment, letter, run) {
                Some(part) => {
                    at += run - 1;
                    // A fraction that is left out takes the point before it along.
                    if part.is_empty() && letter == 'F' && text.ends_with('.') {
                        text.pop();
                    }
                    text.push_str(&part);
                }
                None if letter == 'K' || letter == 'z' => return None,
                None => text.push(letter),
            },
        }
    }
    Some(text)
}

fn part(moment: Moment, letter: char, run: usize) -> Option<String> {
    let (year, month, day) = moment.ymd();
    let (hour, minute, second, ticks) = moment.hms();
    let number = |number: i64| match run {
        1 => number.to_string(),
        _ => format!("{number:02}"),
    };
    let name = |names: &[&str], at: i64| {
        let name = names.get(at as usize).copied().unwrap_or_default();
        if run == 3 {
            name[..3].to_owned()
        } else {
            name.to_owned()
        }
    };
    Some(match (letter, run) {
        ('d', 1 | 2) => number(day),
        ('d', _) => name(&DAYS, moment.weekday()),
        ('M', 1 | 2) => number(month),
        ('M', _) => name(&MONTHS, month - 1),
        ('y', 1 | 2) => number(year % 100),
        ('y', width) => format!("{year:0width$}"),
        ('h', _) => number((hour + 11) % 12 + 1),
        ('H', _) => number(hour),
        ('m', _) => number(minute),
        ('s', _) => number(second),
        ('t', 1) => (if hour < 12 { "A" } else { "P" }).to_owned(),
        ('t', _) => (if hour < 12 { "AM" } else { "PM" }).to_owned(),
        ('f' | 'F', digits @ 1..=7) => {
            let unit = TICKS_SECOND / 10_i64.pow(digits as u32);
            let fraction = format!("{:0digits$}", ticks / unit);
            match letter {
                'F' => fraction.trim_end_matches('0').to_owned(),
                _ => fraction,
            }
        }
        ('g', _) => "A.D.".to_owned(),
        _ => return None,
    })
}

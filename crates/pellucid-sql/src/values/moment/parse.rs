//! Dates and times out of text, in the forms that SQL Server takes.
//!
//! Source: Microsoft's "CAST and CONVERT" (styles), "datetime" and "time" (string literal formats). Language
//! us_english: month before day unless the style says otherwise. A UTC offset is taken where it is zero or `Z`.

use super::{Moment, MONTHS, TICKS_SECOND};

/// Order of day, month and year in a date of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    MonthDayYear,
    DayMonthYear,
    YearMonthDay,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'t> {
    Digits(&'t str),
    Word(&'t str),
    Sign(u8),
    Space,
}

impl Moment {
    /// What `text` says, read as `style` of CONVERT says; text without a date is on 1900-01-01.
    pub fn parse(text: &str, style: i64) -> Option<Self> {
        let order = match style {
            3 | 4 | 5 | 103..=105 => Order::DayMonthYear,
            2 | 11 | 102 | 111 => Order::YearMonthDay,
            _ => Order::MonthDayYear,
        };
        let text = text.trim();
        if text.is_empty() {
            return Some(Self::epoch());
        }
        let tokens = tokens(text)?;
        // A colon or a letter behind digits begins the time; what stands before them is the date.
        let clock = clock_start(&tokens);
        let (date, clock) = tokens.split_at(clock.unwrap_or(tokens.len()));
        let day = match date.iter().all(|token| *token == Token::Space) {
            true => Self::epoch(),
            false => parse_date(date, order)?,
        };
        match clock.is_empty() {
            true => Some(day),
            false => parse_clock(clock, day),
        }
    }
}

fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let run = |belongs: fn(&u8) -> bool| {
            bytes[at..].iter().position(|b| !belongs(b)).map_or(bytes.len(), |n| at + n)
        };
        let (token, end) = match byte {
            b'0'..=b'9' => {
                let end = run(u8::is_ascii_digit);
                (Token::Digits(&text[at..end]), end)
            }
            b'a'..=b'z' | b'A'..=b'Z' => {
                let end = run(u8::is_ascii_alphabetic);
                (Token::Word(&text[at..end]), end)
            }
            b' ' | b'\t' => (Token::Space, run(|b| matches!(b, b' ' | b'\t'))),
            b'-' | b'/' | b'.' | b':' | b',' | b'+' => (Token::Sign(byte), at + 1),
            _ => return None,
        };
        tokens.push(token);
        at = end;
    }
    Some(tokens)
}

/// Where the time begins: at `T`, or at the digits before the first colon or AM, PM.
fn clock_start(tokens: &[Token<'_>]) -> Option<usize> {
    let is_half = |token: &Token<'_>| matches!(token, Token::Word(word) if half(word).is_some());
    if let Some(at) =
        tokens.iter().position(|t| matches!(t, Token::Word(w) if w.eq_ignore_ascii_case("T")))
    {
        return Some(at);
    }
    let mark = tokens.iter().position(|token| *token == Token::Sign(b':') || is_half(token))?;
    let before = tokens[..mark].iter().rposition(|token| matches!(token, Token::Digits(_)))?;
    Some(before)
}

fn half(word: &str) -> Option<i64> {
    match word.to_ascii_uppercase().as_str() {
        "AM" | "A" => Some(0),
        "PM" | "P" => Some(12),
        _ => None,
    }
}

fn number(digits: &str) -> Option<i64> {
    (digits.len() <= 9).then(|| digits.parse().ok())?
}

/// A year of two digits is between 1950 and 2049.
fn year(digits: &str) -> Option<i64> {
    let year = number(digits)?;
    match digits.len() {
        4 => Some(year),
        1 | 2 if year < 50 => Some(2000 + year),
        1 | 2 => Some(1900 + year),
        _ => None,
    }
}

fn parse_date(tokens: &[Token<'_>], order: Order) -> Option<Moment> {
    let mut numbers = Vec::new();
    let mut month = None;
    for token in tokens {
        match token {
            Token::Digits(digits) => numbers.push(*digits),
            Token::Word(word) if month.is_none() => month = Some(month_number(word)?),
            Token::Word(_) => return None,
            Token::Sign(b'-' | b'/' | b'.' | b',') | Token::Space => {}
            Token::Sign(_) => return None,
        }
    }
    match (month, &numbers[..]) {
        (None, [only]) => match only.len() {
            8 => Moment::new(number(&only[..4])?, number(&only[4..6])?, number(&only[6..])?),
            6 => Moment::new(year(&only[..2])?, number(&only[2..4])?, number(&only[4..])?),
            4 => Moment::new(number(only)?, 1, 1),
            _ => None,
        },
        (None, [a, b, c]) if a.len() == 4 => Moment::new(year(a)?, number(b)?, number(c)?),
        (None, [a, b, c]) => match order {
            Order::MonthDayYear => Moment::new(year(c)?, number(a)?, number(b)?),
            Order::DayMonthYear => Moment::new(year(c)?, number(b)?, number(a)?),
            Order::YearMonthDay => Moment::new(year(a)?, number(b)?, number(c)?),
        },
        (Some(month), [only]) => Moment::new(year(only)?, month, 1),
        (Some(month), [a, b]) if a.len() == 4 => Moment::new(year(a)?, month, number(b)?),
        (Some(month), [a, b]) => Moment::new(year(b)?, month, number(a)?),
        _ => None,
    }
}

fn month_number(word: &str) -> Option<i64> {
    let found = MONTHS.iter().position(|name| {
        word.eq_ignore_ascii_case(name) || word.eq_ignore_ascii_case(&name[..3])
    })?;
    Some(found as i64 + 1)
}

fn parse_clock(tokens: &[Token<'_>], day: Moment) -> Option<Moment> {
    let mut fields: Vec<(u8, &str)> = Vec::new();
    let mut sign = b':';
    let mut afternoon = None;
    let mut rest = tokens.iter();
    while let Some(token) = rest.next() {
        match token {
            Token::Word(word) if word.eq_ignore_ascii_case("T") && fields.is_empty() => {}
            Token::Word(word) if word.eq_ignore_ascii_case("Z") => break,
            Token::Word(word) => afternoon = Some(half(word)?),
            Token::Digits(digits) if afternoon.is_none() => fields.push((sign, digits)),
            Token::Sign(b'+' | b'-') => {
                // An offset, which has to be none.
                let zero = rest.all(|token| match token {
                    Token::Digits(digits) => digits.bytes().all(|b| b == b'0'),
                    token => *token == Token::Sign(b':'),
                });
                return match zero {
                    true => clock_of(&fields, afternoon, day),
                    false => None,
                };
            }
            Token::Sign(found @ (b':' | b'.')) => sign = *found,
            Token::Space => {}
            _ => return None,
        }
    }
    match rest.next() {
        None => clock_of(&fields, afternoon, day),
        Some(_) => None,
    }
}

fn clock_of(fields: &[(u8, &str)], afternoon: Option<i64>, day: Moment) -> Option<Moment> {
    let (hour, fields) = fields.split_first()?;
    let (minute, fields) = match fields {
        [] if afternoon.is_some() => ("0", fields),
        [(b':', minute), fields @ ..] => (*minute, fields),
        _ => return None,
    };
    let (second, fields) = match fields {
        [(b':', second), fields @ ..] => (*second, fields),
        fields => ("0", fields),
    };
    let ticks = match fields {
        [] => 0,
        // Behind a colon: milliseconds; behind a point: a fraction.
        [(b':', millis)] if millis.len() <= 3 => number(millis)? * (TICKS_SECOND / 1000),
        [(b'.', fraction)] if fraction.len() <= 7 => {
            number(fraction)? * 10_i64.pow(7 - fraction.len() as u32)
        }
        _ => return None,
    };
    let hour = number(hour.1)?;
    let hour = match afternoon {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(0) if hour == 0 => 0,
        Some(12) if (13..24).contains(&hour) => hour,
        Some(_) => return None,
        None => hour,
    };
    day.at(hour, number(minute)?, number(second)?, ticks)
}

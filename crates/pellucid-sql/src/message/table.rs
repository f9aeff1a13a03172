//! The table of messages: number, severity and text of each, under a name.
//!
//! A text has its places in braces, by the name of what fills them: `Invalid column name '{name}'.` The values come in
//! the order of the places (`Message::of`). The compiler counts them, so that none is missing.
//!
//! Source: Microsoft's "Database engine events and errors", SQL Server 2022. The messages that the program shares with
//! the statements stand in [`pellucid::message`].

use std::fmt::{Display, Write};

/// A message without its values; `PLACES` is how many it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row<const PLACES: usize> {
    /// As in `sys.messages`; from 50000, one of our own.
    pub(crate) number: u32,
    /// 0 to 10 inform, 11 to 16 are the user's, 17 and more the server's.
    pub(crate) severity: u8,
    text: &'static str,
}

impl<const PLACES: usize> Row<PLACES> {
    /// The text with its values, in the order of the places.
    pub(super) fn filled(self, values: [&dyn Display; PLACES]) -> String {
        let mut parts = self.text.split('{');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for (part, value) in parts.zip(values) {
            // A string takes whatever is written to it.
            let _ = write!(text, "{value}");
            text += part.split_once('}').map_or(part, |(_, rest)| rest);
        }
        text
    }
}

/// How many places a text has.
const fn places(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut count) = (0, 0);
    while at < bytes.len() {
        if bytes[at] == b'{' {
            count += 1;
        }
        at += 1;
    }
    count
}

/// Makes a constant of each row, and the list of them.
macro_rules! rows {
    ($($number:expr, $severity:literal, $name:ident = $text:literal;)*) => {
        $(
            #[doc = $text]
            pub(crate) const $name: $crate::message::table::Row<{ super::places($text) }> =
                $crate::message::table::Row { number: $number, severity: $severity, text: $text };
        )*

        /// Number, severity and text of each row.
        pub(super) const ROWS: &[(u32, u8, &str)] = &[$(($number, $severity, $text)),*];
    };
}

mod backup;
mod cursor;
mod database;
mod job;
mod key;
mod product;
mod query;
mod script;

pub(crate) use backup::*;
pub(crate) use cursor::*;
pub(crate) use database::*;
pub(crate) use job::*;
pub(crate) use key::*;
pub(crate) use product::*;
pub(crate) use query::*;
pub(crate) use script::*;

/// A number, its severity and its text.
type Told = (u32, u8, &'static str);

const FILES: &[&[Told]] = &[
    backup::ROWS,
    cursor::ROWS,
    database::ROWS,
    job::ROWS,
    key::ROWS,
    product::ROWS,
    query::ROWS,
    script::ROWS,
];

/// All of them by number, the first of those that have one number.
pub(crate) fn every() -> Vec<Told> {
    let mut all = FILES.concat();
    all.sort_by_key(|(number, ..)| *number);
    all.dedup_by_key(|(number, ..)| *number);
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::message::product::{MISUSE, NO_LOG_BACKUPS, REMARK};
    use crate::message::{Message, OF_SQLITE};
    use crate::values::Error;

    /// Numbers that have several texts, and why.
    const SEVERAL: &[u32] = &[
        // A word that is wrong, or a keyword.
        102,
        // A foreign key that is violated, and one of several.
        547,
        // What CHECKDB found, or did not check.
        8928,
        // A function without OVER, or one that takes none.
        10753,
        // A filegroup, or a file, that is not there.
        15325,
        // From here on a number is a kind of message of Pellucid's own.
        OF_SQLITE,
        MISUSE,
        NO_LOG_BACKUPS,
        REMARK,
    ];

    #[test]
    fn each_number_has_one_text() {
        let mut texts: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        for (number, _, text) in FILES.concat() {
            texts.entry(number).or_default().push(text);
        }
        let several = texts.iter().filter(|(_, texts)| texts.len() > 1).map(|(number, _)| *number);
        assert_eq!(several.collect::<Vec<_>>(), SEVERAL);
        for (number, texts) in &mut texts {
            let count = texts.len();
            texts.sort_unstable();
            texts.dedup();
            assert_eq!(texts.len(), count, "{number} has a text twice");
        }
    }

    #[test]
    fn rows_are_sorted_by_number() {
        for rows in FILES {
            assert!(rows.is_sorted_by_key(|(number, ..)| number));
        }
    }

    #[test]
    fn values_are_refused_in_the_words_of_the_table() {
        let max = Message::from(Error::Max("max".to_owned()));
        assert_eq!(max, Message::of(INCORRECT_SYNTAX, [&"max"]));
        let unsupported = Message::from(Error::Unsupported("geometry".to_owned()));
        assert_eq!(unsupported, Message::of(NOT_SUPPORTED, [&"geometry"]));
    }

    #[test]
    fn a_place_is_a_name_in_braces() {
        for (number, _, text) in FILES.concat() {
            let mut parts = text.split('{');
            assert!(!parts.next().unwrap_or_default().contains('}'), "{number}");
            for part in parts {
                let (name, rest) = part.split_once('}').unwrap_or_default();
                assert!(!name.is_empty() && !rest.contains('}'), "{number}");
                assert!(
                    name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                    "{number}"
                );
            }
        }
    }

    #[test]
    fn values_fill_the_places_in_order() {
        const TEXT: &str = "{a} of {b}, 100 %s.";
        let row = Row::<{ places(TEXT) }> { number: 1, severity: 16, text: TEXT };
        assert_eq!(row.filled([&"{b}", &2]), "{b} of 2, 100 %s.");
    }
}

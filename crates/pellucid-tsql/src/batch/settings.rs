//! The scripting variables that sqlcmd has of its own, and the values that they can have.

use super::error::ScriptErrorKind;

/// What a script may set one to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing: an option or the environment sets it.
    ReadOnly,
    /// A number between these two.
    Number(i64, i64),
    /// No number, or one between these two.
    Width(i64, i64),
    /// Any text.
    Text,
}

/// Each with the value that it has where nobody sets it.
const ALL: &[(&str, Kind, &str)] = &[
    ("SQLCMDCOLSEP", Kind::Text, " "),
    ("SQLCMDCOLWIDTH", Kind::Width(9, 65535), "0"),
    ("SQLCMDDBNAME", Kind::ReadOnly, ""),
    ("SQLCMDEDITOR", Kind::Text, ""),
    ("SQLCMDERRORLEVEL", Kind::Number(-1, 25), "0"),
    ("SQLCMDFORMAT", Kind::Text, "horizontal"),
    ("SQLCMDHEADERS", Kind::Number(-1, i32::MAX as i64), "0"),
    ("SQLCMDINI", Kind::ReadOnly, ""),
    ("SQLCMDLOGINTIMEOUT", Kind::Number(0, 65534), "8"),
    ("SQLCMDMAXFIXEDTYPEWIDTH", Kind::Number(0, 65535), "0"),
    ("SQLCMDMAXVARTYPEWIDTH", Kind::Number(0, 65535), "256"),
    ("SQLCMDPACKETSIZE", Kind::ReadOnly, "4096"),
    ("SQLCMDSERVER", Kind::ReadOnly, ""),
    ("SQLCMDSTATTIMEOUT", Kind::Number(0, 65534), "0"),
    ("SQLCMDUSEAAD", Kind::Text, ""),
    ("SQLCMDUSER", Kind::ReadOnly, ""),
    ("SQLCMDWORKSTATION", Kind::ReadOnly, ""),
];

/// Their names and first values.
pub fn defaults() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALL.iter().map(|(name, _, value)| (*name, *value))
}

/// Whether only an option or the environment sets it.
pub fn is_read_only(name: &str) -> bool {
    matches!(find(name), Some((_, Kind::ReadOnly, _)))
}

/// Whether the variable can have the value; `true` for a variable of the script's own.
pub fn may_be(name: &str, value: &str) -> bool {
    let number = |least, most| {
        value.trim().parse::<i64>().is_ok_and(|number| (least..=most).contains(&number))
    };
    match find(name) {
        Some((_, Kind::Number(least, most), _)) => number(*least, *most),
        Some((_, Kind::Width(least, most), _)) => number(0, 0) || number(*least, *most),
        Some(("SQLCMDFORMAT", ..)) => Layout::of(value).is_some(),
        _ => true,
    }
}

/// How rows stand: SQLCMDFORMAT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A row a line.
    Horizontal,
    /// A column a line.
    Vertical,
    /// A row a line, in boxes.
    Ascii,
}

impl Layout {
    /// The one of that name.
    pub fn of(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "" | "horiz" | "horizontal" => Some(Self::Horizontal),
            "vert" | "vertical" => Some(Self::Vertical),
            "ascii" => Some(Self::Ascii),
            _ => None,
        }
    }
}

/// What `:setvar name value` sets a variable of sqlcmd's own to, if `name` is one.
///
/// # Errors
/// The variable is read-only, or cannot have the value.
pub(super) fn set<'v>(
    name: &str,
    value: Option<&'v str>,
) -> Result<Option<&'v str>, ScriptErrorKind> {
    match find(name) {
        None => Ok(value),
        Some((name, Kind::ReadOnly, _)) => Err(ScriptErrorKind::ReadOnly { name }),
        // Taken away, it has its first value again.
        Some((_, _, first)) if value.is_none() => Ok(Some(first)),
        Some((known, ..)) => match value.is_some_and(|value| may_be(name, value)) {
            true => Ok(value),
            false => Err(ScriptErrorKind::Value { name: known }),
        },
    }
}

fn find(name: &str) -> Option<&'static (&'static str, Kind, &'static str)> {
    ALL.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name))
}

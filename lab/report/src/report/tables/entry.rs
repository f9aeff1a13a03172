//! What a table is: columns, and entries that know which number they show.

use crate::report::figures::Word;
use crate::report::text;
use crate::statistics::Interval;

/// A table, whichever way it is shown.
#[derive(Debug, Clone)]
pub struct Table {
    /// Names it on the page.
    pub id: String,
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Entry>>,
}

/// The head of a column.
#[derive(Debug, Clone)]
pub struct Column {
    pub title: String,
    pub numeric: bool,
}

/// What a table shows in one place, and the number behind it to the last bit.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    pub text: String,
    pub value: Option<f64>,
    /// Of its interval, where it has one.
    pub ends: Option<(f64, f64)>,
    pub origin: Option<Origin>,
    pub word: Option<Word>,
}

/// Where a number comes from.
#[derive(Debug, Clone)]
pub struct Origin {
    pub session: String,
    pub cell: String,
    pub side: String,
    pub what: String,
    /// What was made of the runs: `mean`, `low`, `median`; of one run `run-3`.
    pub statistic: String,
}

impl From<String> for Entry {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for Entry {
    fn from(text: &str) -> Self {
        text.to_string().into()
    }
}

impl Entry {
    pub(super) fn number(text: String, value: f64, origin: Origin) -> Self {
        Self { text, value: Some(value), ends: None, origin: Some(origin), word: None }
    }

    /// A change and its interval, in one place: apart they would be two columns that are read as one.
    pub(super) fn change(value: f64, ends: Option<(f64, f64)>, origin: Origin) -> Self {
        let text = match ends {
            Some((low, high)) => text::estimate(value, low, high),
            None => text::change(value),
        };
        Self { ends, ..Self::number(text, value, origin) }
    }

    /// The same of an interval of ratios.
    pub(super) fn ratio(interval: &Interval, origin: Origin) -> Self {
        let Interval { mean, low, high, .. } = interval;
        Self::change(mean - 1.0, Some((low - 1.0, high - 1.0)), origin)
    }

    pub(super) fn or_dash(entry: Option<Self>) -> Self {
        entry.unwrap_or_else(|| "–".into())
    }
}

impl Table {
    /// A table without rows; a title that ends with a tab is that of a column of words.
    pub fn new(id: String, title: &str, columns: &[&str]) -> Self {
        // A column whose title ends with a tab holds words.
        let column = |title: &&str| Column {
            title: title.trim_end_matches('\t').into(),
            numeric: !title.ends_with('\t'),
        };
        let columns = columns.iter().map(column).collect();
        Self { id, title: title.into(), columns, rows: Vec::new() }
    }
}

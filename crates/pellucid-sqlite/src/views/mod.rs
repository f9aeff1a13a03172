//! Tables that any SQLite client can select from: the databases, certificates and keys at hand and what state they are in.
//!
//! `pellucid_databases`, `pellucid_certificates` and `pellucid_encryption_keys` have the columns of SQL Server's
//! `sys.databases`, `sys.certificates` and `sys.dm_database_encryption_keys`, as far as those have a source here, and
//! some of their own. They show what lies in clear and what the keyring knows; no key is among it. What is wrong with one
//! row stands in its column `error` and hides no other.

mod certificates;
mod databases;
mod encryption_keys;
mod known;
mod module;

use std::ffi::{c_int, CStr};
use std::path::Path;

use pellucid_keyring::Keyring;

use crate::api::Api;
use crate::ffi::{self, Connection};
use known::Source;

/// A table: what it is called, its columns, where its rows come from.
#[derive(Debug)]
pub struct View {
    name: &'static CStr,
    schema: &'static CStr,
    rows: fn(&Source<'_>) -> Vec<Row>,
}

/// The values of a row, in the order of the columns.
pub type Row = Vec<Cell>;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

static VIEWS: [View; 3] = [databases::VIEW, certificates::VIEW, encryption_keys::VIEW];

/// Gives the connection its tables.
///
/// # Safety
/// `db` is an open connection of the SQLite behind `api`.
pub unsafe fn define(api: Api, db: *mut Connection) -> c_int {
    VIEWS
        .iter()
        // SAFETY: by contract.
        .map(|view| unsafe { module::define(api, db, view) })
        .find(|code| *code != ffi::OK)
        .unwrap_or(ffi::OK)
}

impl Cell {
    fn text(value: impl ToString) -> Self {
        Cell::Text(value.to_string())
    }

    fn path(path: &Path) -> Self {
        Cell::Text(path.display().to_string())
    }

    /// Seconds since 1970 as SQLite writes a date and a time: `YYYY-MM-DD HH:MM:SS`, UTC.
    fn time(seconds: i64) -> Self {
        let Ok(at) = time::OffsetDateTime::from_unix_timestamp(seconds) else { return Cell::Null };
        let (hour, minute, second) = at.to_hms();
        Cell::Text(format!("{} {hour:02}:{minute:02}:{second:02}", at.date()))
    }

    /// The same; NULL for 0, which stands for never.
    fn time_unless_never(seconds: u64) -> Self {
        match i64::try_from(seconds) {
            Ok(seconds) if seconds > 0 => Self::time(seconds),
            _ => Cell::Null,
        }
    }
}

/// The keyring, or what is wrong with it and where it lies; none if there is none.
fn keyring() -> Option<Result<Keyring, (std::path::PathBuf, String)>> {
    let home = Keyring::locate().ok().filter(|home| Keyring::is_at(home))?;
    Some(Keyring::open(&home).map_err(|error| (home, error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_sqlite_writes_them() {
        assert_eq!(Cell::time(1_700_000_000), Cell::text("2023-11-14 22:13:20"));
        assert_eq!(Cell::time(-1), Cell::text("1969-12-31 23:59:59"));
        assert_eq!(Cell::time(i64::MAX), Cell::Null);
        assert_eq!(Cell::time_unless_never(0), Cell::Null);
        assert_eq!(Cell::time_unless_never(u64::MAX), Cell::Null);
    }

    #[test]
    fn each_schema_says_how_many_columns_it_has() {
        for view in &VIEWS {
            let text = view.schema.to_str().unwrap();
            assert!(text.starts_with("CREATE TABLE x(") && text.contains("error TEXT"), "{text}");
        }
    }
}

//! What a conversion has to know of the schema: names only the application has, and the order of its
//! rows, which `VACUUM INTO` changes and dumps show.

use std::path::Path;

use super::connection::Handle;
use super::{ConvertError, Options};
use crate::ffi;

/// Builds the schema's tables and indexes in memory, where SQLite resolves every name in them.
///
/// # Errors
/// [`ConvertError::Schema`] with SQLite's words for each object that cannot be built.
pub fn check(path: &Path, source: &Handle<'_>, options: &Options) -> Result<(), ConvertError> {
    let trial = Handle::open(path, ":memory:", ffi::OPEN_READWRITE | ffi::OPEN_CREATE)?;
    for extension in &options.load {
        trial.load(extension)?;
    }
    let encoding = source.text("PRAGMA encoding")?;
    trial.run(&format!("PRAGMA encoding={}", super::connection::literal(&encoding)))?;
    let mut objects = Vec::new();
    source.rows(
        "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND rootpage > 0 \
         AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type DESC",
        |row| objects.push((row.text(0), row.text(1), row.text(2))),
    )?;
    let mut missing = Vec::new();
    for (kind, name, sql) in objects {
        if let Err(ConvertError::Sqlite { message, .. }) = trial.run(&sql) {
            let names_missing = message.starts_with("no such collation sequence")
                || message.starts_with("no such function")
                || message.starts_with("unknown function");
            if names_missing {
                missing.push(format!("{message} ({kind} `{name}`)"));
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(ConvertError::Schema { file: path.display().to_string(), missing })
}

/// More than any rowid of the schema table.
const ASIDE: i64 = 1 << 40;

/// The schema's rows in their order: `(rowid, type, name)`.
pub type Order = Vec<(i64, String, String)>;

/// Reads the order of the schema's rows.
///
/// # Errors
/// SQLite's.
pub fn order(source: &Handle<'_>) -> Result<Order, ConvertError> {
    let mut order = Vec::new();
    source.rows("SELECT rowid, type, name FROM sqlite_schema", |row| {
        order.push((row.number(0), row.text(1), row.text(2)));
    })?;
    Ok(order)
}

/// Puts the rows of the copy under `uri` into that order: `VACUUM INTO` writes virtual tables, views
/// and triggers last.
///
/// # Errors
/// SQLite's.
pub fn restore_order(path: &Path, uri: &str, order: &Order) -> Result<(), ConvertError> {
    use super::connection::literal;
    let copy = Handle::open(path, uri, ffi::OPEN_READWRITE)?;
    copy.run("PRAGMA synchronous=OFF")?;
    copy.run("PRAGMA journal_mode=MEMORY")?;
    copy.run("PRAGMA writable_schema=ON")?;
    copy.run("BEGIN")?;
    for (rowid, kind, name) in order {
        copy.run(&format!(
            "UPDATE sqlite_schema SET rowid={} WHERE type={} AND name={}",
            rowid + ASIDE,
            literal(kind),
            literal(name)
        ))?;
    }
    copy.run(&format!("UPDATE sqlite_schema SET rowid=rowid-{ASIDE} WHERE rowid>{ASIDE}"))?;
    copy.run("COMMIT")
}

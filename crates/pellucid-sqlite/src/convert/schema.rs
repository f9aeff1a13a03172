//! Finds collations and functions that only the application has, before anything is written.

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

//! Errors of a database that was used through the host's SQLite.

use pellucid::shown::printable;
use pellucid::Error;

use crate::holders;

/// The error, and the state of the file after it.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// An error of this project's own.
    #[error(transparent)]
    Typed(#[from] Error),
    /// SQLite refused; nothing was changed.
    #[error("`{}`: {} (SQLite code {code})", printable(file), printable(message))]
    Sqlite {
        /// The file.
        file: String,
        /// SQLite's extended result code.
        code: i32,
        /// SQLite's message.
        message: String,
    },
    /// Other connections did not give way in time; nothing was changed.
    #[error("`{}` is in use{}", printable(file), printable(&holders::describe(holders)))]
    InUse {
        /// The file.
        file: String,
        /// The processes that hold locks on it.
        holders: Vec<holders::Holder>,
    },
    /// Another process scans it.
    #[error("`{}`: a scan of it is running already", printable(file))]
    Scanned {
        /// The file.
        file: String,
    },
    /// The schema needs collations or functions of an application; nothing was changed.
    #[error(
        "the schema of `{}` needs what only the application has: {}",
        printable(file),
        printable(&missing.join(", "))
    )]
    Schema {
        /// The file.
        file: String,
        /// SQLite's message about each object.
        missing: Vec<String>,
    },
    /// Not enough room; nothing was changed.
    #[error("`{}`: {needed} bytes are needed beside it and {free} are free", printable(file))]
    Space {
        /// The file.
        file: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
}

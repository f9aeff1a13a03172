//! What is wrong with a database that was used through the host's SQLite.

use pellucid::Error;

use crate::holders;

/// What went wrong, and what state the file is in.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// An error of ours.
    #[error(transparent)]
    Typed(#[from] Error),
    /// SQLite refused; nothing was changed.
    #[error("`{file}`: {message} (SQLite code {code})")]
    Sqlite {
        /// Which file.
        file: String,
        /// SQLite's extended result code.
        code: i32,
        /// SQLite's message.
        message: String,
    },
    /// Other connections did not give way in time; nothing was changed.
    #[error("`{file}` is in use{}", holders::describe(holders))]
    InUse {
        /// Which file.
        file: String,
        /// Who holds locks on it.
        holders: Vec<holders::Holder>,
    },
    /// Another process scans it.
    #[error("`{file}`: a scan of it is running already")]
    Scanned {
        /// Which file.
        file: String,
    },
    /// The schema needs collations or functions of an application; nothing was changed.
    #[error("the schema of `{file}` needs what only the application has: {}", missing.join(", "))]
    Schema {
        /// Which file.
        file: String,
        /// What SQLite said about each object.
        missing: Vec<String>,
    },
    /// Not enough room; nothing was changed.
    #[error("`{file}`: {needed} bytes are needed beside it and {free} are free")]
    Space {
        /// Which file.
        file: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
}

//! What can go wrong in the lab: the machine, SQLite, a run that did not do what it had to, or its records.

use std::io;

/// What a function of the lab gives, or why it does not.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a measurement ends without its figures.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Of a file, a process or a stream.
    #[error("{what}: {source}")]
    Io {
        /// Its name.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// Of a database.
    #[error("{what}: {source}")]
    Sqlite {
        /// The statement or the database.
        what: String,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// A run whose figures mean nothing: an operation failed, a row is missing, a side is not what
    /// it claims to be.
    #[error("{0}")]
    Invalid(String),
    /// Of its records.
    #[error(transparent)]
    Report(#[from] pellucid_lab_report::error::Error),
}

impl Error {
    /// Adds the name of the file or process to what the system says of it.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// Adds the statement or the database to what SQLite says of it.
    pub fn sqlite(what: impl Into<String>) -> impl FnOnce(rusqlite::Error) -> Self {
        let what = what.into();
        move |source| Self::Sqlite { what, source }
    }

    /// The error with this text.
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid(what.into())
    }
}

//! What can go wrong in the lab: the machine, SQLite, or a run that did not do what it had to.

use std::io;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    #[error("{what}: {source}")]
    Sqlite { what: String, source: rusqlite::Error },
    /// A run whose figures mean nothing: an operation failed, a row is missing, a side is not what
    /// it claims to be.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    pub fn sqlite(what: impl Into<String>) -> impl FnOnce(rusqlite::Error) -> Self {
        let what = what.into();
        move |source| Self::Sqlite { what, source }
    }

    pub fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid(what.into())
    }
}

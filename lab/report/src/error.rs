//! What can go wrong with records: a file that cannot be read or written, or records that say nothing.

use std::io;

/// What a function of this crate gives, or why it does not.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Of a file or a stream.
    #[error("{what}: {source}")]
    Io {
        /// Its name.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// Records that cannot be what they claim to be, or from which nothing follows.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// Adds the name of the file to what the system says of it.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// The error with this text.
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid(what.into())
    }
}

//! The options of the library's own connections.

use std::path::PathBuf;
use std::time::Duration;

use crate::connection::Handle;
use crate::{lending, DatabaseError};

/// The options of encryption and decryption.
#[derive(Debug, Clone)]
pub struct Options<'call> {
    /// How long to wait for other connections to give way.
    pub timeout: Duration,
    /// Extensions to load first, for collations and functions the schema needs.
    pub load: Vec<PathBuf>,
    /// The application's connection, if the application itself asks.
    pub lender: Option<lending::Lender<'call>>,
    /// Whether the database is to be in WAL mode afterwards, although it is not now.
    pub was_wal: bool,
    /// Whether another database takes the place of this one, and its chain of log backups ends.
    pub ends_chain: bool,
}

impl Options<'_> {
    /// Makes the options of a program without a connection of its own.
    pub fn new(timeout: Duration, load: Vec<PathBuf>) -> Self {
        Self { timeout, load, lender: None, was_wal: false, ends_chain: false }
    }

    /// The timeout in milliseconds, as SQLite takes it.
    pub fn timeout_ms(&self) -> std::ffi::c_int {
        self.timeout.as_millis().try_into().unwrap_or(std::ffi::c_int::MAX)
    }

    /// Gives a connection the collations and functions that the schema may need: the extensions,
    /// and those that the application lends.
    ///
    /// # Errors
    /// SQLite's.
    pub fn equip(&self, handle: &Handle<'_>) -> Result<(), DatabaseError> {
        for extension in &self.load {
            handle.load(extension)?;
        }
        self.lender.as_ref().map_or(Ok(()), |lender| lender.lend(handle))
    }
}

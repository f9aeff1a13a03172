//! What a connection of the library's own is given along.

use std::path::PathBuf;
use std::time::Duration;

use crate::connection::Handle;
use crate::{lending, DatabaseError};

/// What both directions take.
#[derive(Debug, Clone)]
pub struct Options<'call> {
    /// How long to wait for other connections to give way.
    pub timeout: Duration,
    /// Extensions to load first, for collations and functions the schema needs.
    pub load: Vec<PathBuf>,
    /// The application's connection, where it is that which asks.
    pub lender: Option<lending::Lender<'call>>,
    /// The database is to be in WAL mode afterwards, although it is not now.
    pub was_wal: bool,
}

impl Options<'_> {
    /// What a program takes that has no connection of its own.
    pub fn new(timeout: Duration, load: Vec<PathBuf>) -> Self {
        Self { timeout, load, lender: None, was_wal: false }
    }

    /// The timeout as SQLite takes it.
    pub fn timeout_ms(&self) -> std::ffi::c_int {
        self.timeout.as_millis().try_into().unwrap_or(std::ffi::c_int::MAX)
    }

    /// Gives a connection what the schema may need besides SQLite's own: the extensions, and what the application lends.
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

//! What SQLite does with an open file, whichever of five kinds it is: a main database, its log, its journal, a temporary file,
//! or one that is passed on unchanged.

use std::ffi::c_int;

use pellucid_host::code::Outcome;

use crate::lower::ReadEnd;

/// An open file, at the offsets and sizes in bytes that SQLite knows. Errors are codes for SQLite.
pub trait SqliteFile {
    /// Reads; what lies behind the end comes as zeros.
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd>;

    /// Writes.
    fn write(&mut self, bytes: &[u8], offset: u64) -> Outcome<()>;

    /// Cuts or extends the file.
    fn truncate(&mut self, size: u64) -> Outcome<()>;

    /// Forces the file to disk.
    fn sync(&mut self, flags: c_int) -> Outcome<()>;

    /// The size of the file.
    fn size(&mut self) -> Outcome<u64>;

    /// Writes what is held, before the lower file is closed.
    fn close(&mut self) -> Outcome<()>;
}

//! Where a database has its wal-index: the change between the file `-shm` and the machine's memory, under EXCLUSIVE.
//!
//! Only the header changes. A connection in WAL mode holds SHARED as long as it is open, so under EXCLUSIVE nobody has an index
//! mapped; the index of the connection that makes the change is in its own memory.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use pellucid::header::Header;
use pellucid::memory_index::Place;
use pellucid::{Error, Subject};
use pellucid_files::paths::{assert_one_name, full_name, look, resolved};
use pellucid_host::code::Code;
use pellucid_host::{ffi, DatabaseError};
use pellucid_keyring::{Action, Event};
use pellucid_vfs::opened;
use pellucid_vfs::seal_request::{later_sequence, remember};
use pellucid_vfs::shared_memory::remove_left_over;

use crate::header_change::{busy, cannot_write};
use crate::version::{alone, empty_log};

/// Has the wal-index of the database at `path` in memory, or in the file `-shm`. Waits up to `patience` for every other connection
/// to close. Returns whether that was a change.
///
/// # Errors
/// [`Error::Unsupported`] for a database of version 1; [`DatabaseError`] else. The header was not changed then, or one copy of it
/// is whole and the newest.
pub fn change(path: &Path, in_memory: bool, patience: Duration) -> Result<bool, DatabaseError> {
    let path = &resolved(path)?;
    // By another name of the file another `-shm` may be in use.
    assert_one_name(path)?;
    let handle = alone(path, patience)?;
    let (file, container) = opened::sealed(&handle)?.ok_or_else(|| {
        Error::misuse(Subject::File(path.to_owned()), "not an encrypted database")
    })?;
    let failed = |code| cannot_write(path, code);
    let mut next = container.header().ok_or_else(|| failed(Code(ffi::IOERR)))?;
    let was_in_memory = is_in_memory(&next);
    let mut second = next.second.take().ok_or_else(|| of_version_1(path))?;
    second.index_in_memory = in_memory;
    next.second = Some(second);
    let is_change = was_in_memory != in_memory;
    if is_change {
        empty_log(path, &handle)?;
        next.sequence = later_sequence(&next)?;
        let keys = container.keys().map_err(failed)?;
        let dek = keys.dek().ok_or_else(|| failed(Code(ffi::IOERR)))?;
        // For a typed error before anything is recorded.
        next.encode(keys.header_key())?;
        let action = if in_memory { Action::IndexToMemory } else { Action::IndexToFile };
        Event::new(action, "database").of(full_name(path)).record_here()?;
        let write = || container.write_header(next, dek);
        if !container.with_header_locks(file, write).map_err(failed)? {
            return Err(busy(path));
        }
        let header = container.header().ok_or_else(|| failed(Code(ffi::IOERR)))?;
        remember(&header, container.path());
        container.keep();
    }
    if !in_memory {
        // What a killed process has left: under EXCLUSIVE nobody has it.
        let found = look(path).map_err(|error| Error::io(Subject::File(path.to_owned()), error))?;
        remove_left_over(Place { device: found.dev(), inode: found.ino() });
    }
    Ok(is_change)
}

/// Whether the header asks for an index in memory.
pub fn is_in_memory(header: &Header) -> bool {
    header.second.as_ref().is_some_and(|second| second.index_in_memory)
}

/// The error of a database whose header has no room for the flag.
pub fn of_version_1(path: &Path) -> Error {
    Error::unsupported(
        Subject::File(path.to_owned()),
        "format version 1 has its wal-index in the file `-shm`; `pellucid upgrade` gives the database version 2",
    )
}

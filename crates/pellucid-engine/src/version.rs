//! Another format version for a database: what refuses it, and the change, under EXCLUSIVE.
//!
//! Order: docs/format.md, "Another version". Each step is on disk before the next one begins, so that a kill or a power cut leaves a
//! database of one version or the other, with an empty log.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::header::Header;
use pellucid::shown::Shown;
use pellucid::{Error, Subject};
use pellucid_files::paths::{
    assert_one_name, beside, full_name, look_at_name, names_in, resolved, sync_directory,
};
use pellucid_host::code::Code;
use pellucid_host::connection::{uri, Handle};
use pellucid_host::folder::{name_of, Folder};
use pellucid_host::{ffi, DatabaseError};
use pellucid_keyring::{Action, Event};
use pellucid_vfs::container::Container;
use pellucid_vfs::open_file::OpenFile;
use pellucid_vfs::seal_request::{later_sequence, remember};
use pellucid_vfs::{lost_log, opened};

use crate::header_change::{busy, cannot_write, in_use};
use crate::page_source::HotJournal;
use crate::scan::Turn;

/// Why a database keeps the version that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// A scan is under way, suspended or aborted: a log of the other version could not be searched
    /// for the older key's units.
    Scan,
    /// Rests of damaged logs lie beside the database, accepted ones too. They are of its version.
    LostLog(PathBuf),
    /// The archive of logs beside the database is not empty.
    Archive(PathBuf),
    /// An interrupted transaction is in a journal that could not be rolled back.
    HotJournal(PathBuf),
    /// It uses what version 1 does not have, in words that follow its name.
    Uses(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scan => f.write_str("a scan of it is under way, or was not finished"),
            Self::LostLog(log) => write!(
                f,
                "`{}` is the rest of a damaged log, and of the version that it was made in",
                log.shown()
            ),
            Self::Archive(folder) => {
                write!(f, "`{}` has logs of the version that they were made in", folder.shown())
            }
            Self::HotJournal(journal) => {
                write!(f, "an interrupted transaction is in `{}`", journal.shown())
            }
            Self::Uses(what) => write!(f, "it {what}, which version 1 does not have"),
        }
    }
}

/// Why the version was not changed.
#[derive(Debug)]
pub enum Unchanged {
    /// It must not be changed now.
    Refused(Refused),
    /// The change could not be made.
    Failed(DatabaseError),
}

impl<T: Into<DatabaseError>> From<T> for Unchanged {
    fn from(error: T) -> Self {
        Self::Failed(error.into())
    }
}

/// Whether a database with this header may get the format version `version`. Asked before a key is,
/// and again under EXCLUSIVE.
///
/// # Errors
/// [`Unchanged`]; [`Error::LimitReached`] where the header has no room.
pub fn check(path: &Path, header: &Header, version: u32) -> Result<(), Unchanged> {
    if header.is_being_scanned() {
        return Err(Unchanged::Refused(Refused::Scan));
    }
    if let (1, Some(what)) = (version, header.needs_second()) {
        return Err(Unchanged::Refused(Refused::Uses(what)));
    }
    header.in_version(version)?;
    if let Some(log) = lost_log::all(path)?.into_iter().next() {
        return Err(Unchanged::Refused(Refused::LostLog(log)));
    }
    let archive = beside(path, "-log");
    match names_in(&archive) {
        Ok(names) if names.is_empty() => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(_) => Err(Unchanged::Refused(Refused::Archive(archive))),
        // A file of that name is in the place of an archive.
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            Err(Unchanged::Refused(Refused::Archive(archive)))
        }
        Err(error) => Err(Error::io(Subject::File(archive), error).into()),
    }
}

/// Gives the database at `path` the format version `version`. Waits up to `patience` for every other
/// connection to close. Returns its header.
///
/// # Errors
/// [`Unchanged`]. Where the header could not be written, one copy is whole and the newest.
pub fn change(path: &Path, version: u32, patience: Duration) -> Result<Header, Unchanged> {
    let path = &resolved(path)?;
    // By another name of the file another log may be in use.
    assert_one_name(path)?;
    let Some(_turn) = Turn::take(path)? else {
        return Err(DatabaseError::Scanned { file: path.shown().to_string() }.into());
    };
    let handle = alone(path, patience)?;
    let (file, container) = opened::sealed(&handle)?.ok_or_else(|| {
        Error::misuse(Subject::File(path.to_owned()), "not an encrypted database")
    })?;
    let failed = |code| cannot_write(path, code);
    let header = container.header().ok_or_else(|| failed(Code(ffi::IOERR)))?;
    if header.version() == version {
        return Ok(header);
    }
    check(path, &header, version)?;
    empty_log(path, &handle)?;
    remove_journal(path, &container)?;
    // The cut log and the removed journal would come back by a power cut else, of the other version.
    sync_directory(path)?;
    let mut next = header.in_version(version)?;
    next.sequence = later_sequence(&next)?;
    let keys = container.keys().map_err(failed)?;
    let dek = keys.dek().ok_or_else(|| failed(Code(ffi::IOERR)))?;
    // For a typed error before anything is recorded.
    next.encode(keys.header_key())?;
    let action = if version > header.version() { Action::Upgraded } else { Action::Downgraded };
    Event::new(action, "database").of(full_name(path)).record_here()?;
    write(path, &container, file, || container.write_version(next, dek))?;
    let header = container.header().ok_or_else(|| failed(Code(ffi::IOERR)))?;
    remember(&header, container.path());
    container.keep();
    Ok(header)
}

/// Opens the database and takes EXCLUSIVE, which is held until the connection closes. A connection
/// in WAL mode holds SHARED as long as it is open, so no other one is there; its wal-index is in its
/// own memory.
pub(crate) fn alone(path: &Path, patience: Duration) -> Result<Handle<'static>, DatabaseError> {
    // Nothing else maps the file, or has a page of it in a cache.
    let uri = uri(path, "vfs=pellucid&require=container&pellucid_mmap=0");
    let handle = Handle::open(path, &uri, ffi::OPEN_READWRITE)?;
    handle.run("PRAGMA locking_mode=EXCLUSIVE")?;
    handle.begin("BEGIN EXCLUSIVE", patience).map_err(|error| in_use(path, error))?;
    handle.run("COMMIT")?;
    // It reads the schema, and so needs a lock.
    handle.run("PRAGMA synchronous=FULL")?;
    Ok(handle)
}

/// Brings the log into the database, cuts it to nothing and syncs it.
pub(crate) fn empty_log(path: &Path, handle: &Handle<'_>) -> Result<(), DatabaseError> {
    if handle.text("PRAGMA journal_mode")? == "wal" {
        if handle.number("PRAGMA wal_checkpoint(TRUNCATE)")? != 0 {
            return Err(busy(path));
        }
        if let Some(wal) = opened::wal(handle)? {
            wal.sync().map_err(|code| cannot_write(path, code))?;
        }
    }
    let log = beside(path, "-wal");
    match look_at_name(&log) {
        Ok(found) if found.len() > 0 => Err(Error::misuse(
            Subject::File(log),
            "the log is not empty, although it was brought into the database",
        )
        .into()),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::io(Subject::File(log), error).into())
        }
        _ => Ok(()),
    }
}

/// Removes a journal that nothing plays back: it was ended (`journal_mode=PERSIST`). One that counts
/// was rolled back when the database was opened.
fn remove_journal(path: &Path, container: &Container) -> Result<(), Unchanged> {
    let journal = beside(path, "-journal");
    if HotJournal::open(&journal, container)?.is_some() {
        return Err(Unchanged::Refused(Refused::HotJournal(journal)));
    }
    let removed = Folder::of(&journal).and_then(|folder| folder.remove_name(&name_of(&journal)));
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::io(Subject::File(journal), error).into())
        }
        _ => Ok(()),
    }
}

fn write(
    path: &Path,
    container: &opened::OpenDatabase<'_>,
    file: OpenFile<'_>,
    change: impl FnOnce() -> pellucid_host::code::Outcome<()>,
) -> Result<(), DatabaseError> {
    match container.with_header_locks(file, change).map_err(|code| cannot_write(path, code))? {
        true => Ok(()),
        false => Err(busy(path)),
    }
}

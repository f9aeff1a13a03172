//! The parts that both directions share: locking the database, and the commit point.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use pellucid::sector::SECTOR_BYTES;
use pellucid::shown::Shown;
use pellucid::{Error, Subject};
use pellucid_files::paths::{copy_path, resolved};
use pellucid_host::code::{note, Code};
use pellucid_host::connection::{literal, Handle};
use pellucid_host::ffi;
use pellucid_host::patience::Patience;
use pellucid_host::{DatabaseError, Options};
use pellucid_vfs::copy::CopyFile;
use pellucid_vfs::laying::{replace_sector_zero, Laying};
use pellucid_vfs::open_file::OpenFile;
use pellucid_vfs::opened;

use crate::convert::original::Original;
use crate::convert::{Progress, Stage};
use crate::header_change::{busy, in_use};

/// Tries to put a database back into WAL mode where its conversion failed: the call that failed may fail again.
const BACK_TO_WAL: u32 = 5;
const RETRY: Duration = Duration::from_millis(20);

/// A locked database. If its journal mode was WAL, it becomes WAL again, whatever happens.
#[derive(Debug)]
pub struct Source<'a> {
    pub handle: Handle<'a>,
    pub was_wal: bool,
    patience: Patience,
    path: &'a Path,
    original: Original,
    done: Cell<bool>,
}

impl<'a> Source<'a> {
    /// Opens the database under `uri` and takes RESERVED: readers go on, no connection commits. A
    /// WAL database leaves WAL mode first, for which every other connection has to close.
    pub fn reserve(path: &'a Path, uri: &str, options: &Options) -> Result<Self, DatabaseError> {
        Self::reserve_held(Original::hold(&resolved(path)?)?, path, uri, options)
    }

    /// Like [`Source::reserve`], for a file that is held already, and for no other.
    pub fn reserve_held(
        original: Original,
        path: &'a Path,
        uri: &str,
        options: &Options,
    ) -> Result<Self, DatabaseError> {
        let patience = Patience::new(options.timeout, RETRY);
        let connect = || original.connect(|| Handle::open(path, uri, ffi::OPEN_READWRITE));
        let handle = loop {
            match connect() {
                // Another process finishes what a conversion left.
                Err(error) if Handle::is_busy(&error) && patience.wait() => {}
                opened => break opened.map_err(|error| in_use(path, error))?,
            }
        };
        options.equip(&handle)?;
        if let (true, Some((_, container))) = (options.ends_chain, opened::sealed(&handle)?) {
            container.leaves_wal.set(true);
        }
        let mut source =
            Self { handle, was_wal: false, patience, path, original, done: Cell::new(false) };
        source.wait(|handle| handle.number("SELECT count(*) FROM sqlite_schema").map(|_| true))?;
        source.was_wal = options.was_wal;
        if source.handle.text("PRAGMA journal_mode")? == "wal" {
            source.was_wal = true;
            source.wait(|handle| Ok(handle.text("PRAGMA journal_mode=DELETE")? == "delete"))?;
        }
        source.wait(|handle| handle.run("BEGIN IMMEDIATE").map(|()| true))?;
        Ok(source)
    }

    /// Whether the commit point was reached: the next connection that may write finishes the conversion.
    pub fn is_done(&self) -> bool {
        self.done.get()
    }

    /// Tries until it works or the time is up. Then it names the processes in the way.
    fn wait(
        &self,
        mut attempt: impl FnMut(&Handle<'a>) -> Result<bool, DatabaseError>,
    ) -> Result<(), DatabaseError> {
        loop {
            match attempt(&self.handle) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if Handle::is_busy(&error) => {}
                Err(error) => return Err(error),
            }
            self.pause()?;
        }
    }

    fn pause(&self) -> Result<(), DatabaseError> {
        if self.patience.wait() {
            return Ok(());
        }
        Err(busy(self.path))
    }

    /// Makes the empty file of the copy, with the owner of the original.
    ///
    /// The copy is removed when it is dropped. It has to be dropped before the locks are released:
    /// after that a copy of that name may be another conversion's, and its only one.
    pub fn make_copy(&self) -> Result<CopyFile, DatabaseError> {
        let copy = CopyFile::create(copy_path(self.path), self.path)?;
        copy.give_to_owner_of(&self.original.metadata()?);
        Ok(copy)
    }

    /// Takes EXCLUSIVE, removes what is left of a rollback journal, replaces sector 0, which is the commit point, and lays the copy over the file.
    pub fn switch(
        &self,
        lower: OpenFile<'_>,
        sector: &[u8; SECTOR_BYTES],
        mut laying: Laying,
        progress: &mut Progress<'_>,
    ) -> Result<(), DatabaseError> {
        loop {
            match lower.lock(ffi::LOCK_EXCLUSIVE) {
                Ok(()) => break,
                Err(Code(ffi::BUSY)) => self.pause()?,
                Err(code) => return Err(failed(self.path, code, "cannot be locked")),
            }
        }
        laying.remove_dead_journal(self.path)?;
        laying.assert_named()?;
        self.original.assert_named()?;
        if let Err(unwritten) = replace_sector_zero(lower, sector) {
            self.done.set(!unwritten.put_back);
            if self.done.get() {
                laying.begin();
            }
            return Err(failed(self.path, unwritten.code, "its first sector cannot be written"));
        }
        // A written sector 0 counts as done, even if it cannot be synced: without the copy the
        // database would be lost.
        self.done.set(true);
        laying.begin();
        let io = |code| failed(self.path, code, "the switch was interrupted and can be finished");
        lower.sync(ffi::SYNC_NORMAL).map_err(io)?;
        laying.lay(lower, &mut |at, all| progress(Stage::Laying, at, all)).map_err(io)?;
        laying.remove()?;
        Ok(())
    }
}

impl Drop for Source<'_> {
    fn drop(&mut self) {
        // This transaction changed nothing; ROLLBACK only releases the locks.
        let _ = self.handle.run("ROLLBACK");
        if self.was_wal && !self.done.get() {
            // In the mode that was only for the conversion a commit promises less after a power cut.
            let is_wal =
                || self.handle.text("PRAGMA journal_mode=WAL").is_ok_and(|mode| mode == "wal");
            if !(0..BACK_TO_WAL).any(|_| is_wal()) {
                let what = "it was in WAL mode, and could not be put back into it: `PRAGMA journal_mode=WAL` does that";
                note(ffi::NOTICE, self.path, what);
            }
        }
    }
}

fn failed(path: &Path, Code(code): Code, message: &str) -> DatabaseError {
    DatabaseError::Sqlite { file: path.shown().to_string(), code, message: message.to_owned() }
}

/// Refuses to start if there is no room for the copy.
pub fn check_space(path: &Path, needed: u64) -> Result<(), DatabaseError> {
    let free = free_bytes(path)?;
    if free < needed {
        return Err(DatabaseError::Space { file: path.shown().to_string(), needed, free });
    }
    Ok(())
}

/// The free bytes on the file system of a file.
///
/// # Errors
/// [`Error::Io`], which names the directory.
pub fn free_bytes(path: &Path) -> Result<u64, Error> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let found = rustix::fs::statvfs(directory)
        .map_err(|error| Error::io(Subject::File(directory.to_owned()), error.into()))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Fills the lent copy from the database `from`, which is the file that `source` has locked. `to`
/// says of which kind the copy is. Both are URIs.
pub fn fill_copy(
    source: &Source<'_>,
    from: &str,
    copy: &CopyFile,
    to: &str,
    options: &Options,
    expected: u64,
    progress: &mut Progress<'_>,
) -> Result<(), DatabaseError> {
    // The connection may write, although it does not: SQLite 3.40 cannot VACUUM INTO from a
    // read-only connection if an index uses a function of the application.
    let connect = || Handle::open(source.path, from, ffi::OPEN_READWRITE);
    let mut reader =
        source.original.connect(connect).map_err(|error| in_use(source.path, error))?;
    options.equip(&reader)?;
    reader.busy_timeout(options.timeout_ms());
    reader.on_progress(|| {
        let done = copy.file().metadata().map_or(0, |metadata| metadata.len());
        progress(Stage::Copying, done, expected);
    });
    let filled = reader.run(&format!("VACUUM INTO {}", literal(to)));
    filled.map_err(|error| in_use(source.path, error))
}

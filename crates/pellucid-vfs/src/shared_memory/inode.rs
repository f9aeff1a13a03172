//! What this process has open of each database file: how many connections, the lock that says which `-shm` they use, and the
//! object that they share.
//!
//! The lock belongs to an open file of its own. Closing it drops every lock that SQLite has on the database in this process
//! (howtocorrupt.html, 2.2), so it is closed when no connection to the file is left, and connections are counted from before
//! their first lock on.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pellucid::memory_index::Place;
use pellucid::{Error, Result, Subject};
use pellucid_host::byte_lock;

use super::object::Object;
use super::unusable;
use crate::lower::Lower;
use crate::names::{Folder, OpenedIndex};

/// The byte of the database that says which `-shm` its openers use: shared by them, taken alone while one makes the object. It
/// lies behind the end of every possible file, beside those of the scan (`pellucid-engine`).
const BYTE: i64 = (1 << 62) + 2;

/// One database file.
#[derive(Debug, Default)]
pub struct Inode {
    /// Connections to it.
    present: usize,
    /// Those that use the object.
    attached: usize,
    /// Those for which the lower VFS has `-shm` open.
    opened: usize,
    lock: Option<Lock>,
    index: Option<OpenedIndex>,
    object: Weak<Object>,
}

/// An open file of its own, for the lock.
#[derive(Debug)]
pub struct Lock {
    file: File,
    is_writable: bool,
}

struct Table {
    process: u32,
    /// Connections of which it is not known to which file.
    unknown: usize,
    inodes: BTreeMap<Place, Inode>,
}

static TABLE: Mutex<Table> = Mutex::new(Table { process: 0, unknown: 0, inodes: BTreeMap::new() });

fn with_table<T>(call: impl FnOnce(&mut Table) -> T) -> T {
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if table.process != process {
        // A child's copy. Its descriptors are the parent's open files: nothing is released by them.
        std::mem::forget(std::mem::take(&mut table.inodes));
        table.unknown = 0;
        table.process = process;
    }
    call(&mut table)
}

/// Runs `call` on a database file, while no other thread attaches to it or leaves it.
pub fn with<T>(place: Place, call: impl FnOnce(&mut Inode) -> T) -> T {
    with_table(|table| call(table.inodes.entry(place).or_default()))
}

/// A connection that is open, and may have locks on its database.
#[derive(Debug)]
pub struct Presence {
    place: Option<Place>,
    process: u32,
}

impl Presence {
    /// Counts a connection whose lower file was opened just now.
    pub fn of(folder: Option<&Folder>, name: Option<&OsStr>, lower: Lower) -> Self {
        let found = folder.zip(name).and_then(|(folder, name)| folder.look(name).ok());
        let place = found.filter(|_| lower.has_moved() == Some(false));
        with_table(|table| match place {
            Some(place) => table.inodes.entry(place).or_default().present += 1,
            None => table.unknown += 1,
        });
        Self { place, process: std::process::id() }
    }

    /// The database file, if it is known.
    pub fn place(&self) -> Option<Place> {
        self.place
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        with_table(|table| {
            if table.process != self.process {
                return;
            }
            match self.place.and_then(|place| table.inodes.get_mut(&place)) {
                Some(inode) => inode.present = inode.present.saturating_sub(1),
                None => table.unknown = table.unknown.saturating_sub(1),
            }
            // One of which it is not known to which file may have its locks on any.
            if table.unknown == 0 {
                table.inodes.retain(|_, inode| inode.present > 0);
            }
        });
    }
}

impl Inode {
    /// Notes what a call of the lower VFS has opened as `-shm`, for a connection more or for one that it has it open for already.
    pub fn index_opened(&mut self, opened: Option<OpenedIndex>, is_new: bool) {
        if opened.is_some() {
            self.index = opened;
        }
        self.opened += usize::from(is_new);
    }

    /// Notes that a connection gives `-shm` up. With the last one the lower VFS closes it.
    pub fn index_closed(&mut self) {
        self.opened = self.opened.saturating_sub(1);
        if self.opened == 0 {
            self.index = None;
        }
    }

    /// The file `-shm` that SQLite has open in this process.
    pub fn index(&self) -> Option<OpenedIndex> {
        self.index
    }

    /// The open file for the lock; `folder` and `name` lead to it.
    pub fn lock(&mut self, folder: &Folder, name: &OsStr, place: Place) -> Result<&Lock> {
        if self.lock.is_none() {
            let opened = folder.open(name);
            let (file, is_writable) =
                opened.map_err(|error| Error::io(Subject::Container, error))?;
            let lock = Lock { file, is_writable };
            if lock.place()? != place {
                // Another database, on which this process may have locks: closing it would drop them.
                std::mem::forget(lock);
                return Err(unusable("another file has the database's name by now"));
            }
            self.lock = Some(lock);
        }
        self.lock.as_ref().ok_or_else(|| unusable("it is not open"))
    }

    /// Makes the lock that this process has alone one that others may share.
    pub fn share(&self) -> Result<()> {
        match self.lock.as_ref().map(Lock::share) {
            Some(Ok(true)) => Ok(()),
            Some(Err(error)) => Err(error),
            _ => Err(super::another_index()),
        }
    }

    /// Gives the lock back that no connection of this process needs.
    pub fn release_unused(&mut self) {
        if let (0, Some(lock)) = (self.attached, &self.lock) {
            // The release of a held lock cannot fail, and the end of the process releases it too.
            let _ = byte_lock::give_back(&lock.file, BYTE);
        }
    }

    /// The object that other connections of this process use.
    pub fn object(&self) -> Option<Arc<Object>> {
        self.object.upgrade()
    }

    /// Whether a connection of this process uses the object.
    pub fn is_attached(&self) -> bool {
        self.attached > 0
    }

    /// Counts a connection that uses the object. The lock is held.
    pub fn attach(&mut self, object: &Arc<Object>) {
        self.object = Arc::downgrade(object);
        self.attached += 1;
    }

    /// Counts a connection that no longer does.
    pub fn detach(&mut self) {
        self.attached = self.attached.saturating_sub(1);
        self.release_unused();
    }
}

impl Lock {
    /// Shares the lock with other openers. False if one makes an object, for another `-shm`.
    pub fn share(&self) -> Result<bool> {
        self.hold(false)
    }

    /// Takes the lock alone. False if others have it: openers by another `-shm`.
    pub fn take_alone(&self) -> Result<bool> {
        self.hold(true)
    }

    /// Whether the lock can be taken alone.
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// What the system says of the database file.
    pub fn database(&self) -> Result<Metadata> {
        self.file.metadata().map_err(|error| Error::io(Subject::Container, error))
    }

    fn place(&self) -> Result<Place> {
        use std::os::unix::fs::MetadataExt;
        let found = self.database()?;
        Ok(Place { device: found.dev(), inode: found.ino() })
    }

    fn hold(&self, alone: bool) -> Result<bool> {
        byte_lock::hold(&self.file, BYTE, alone).map_err(|error| {
            unusable(&format!("the file system has no locks of open files: {error}"))
        })
    }
}

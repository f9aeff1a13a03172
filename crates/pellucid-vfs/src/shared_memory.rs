//! The wal-index in the machine's memory: where the header asks for it, SQLite gets regions of an object in `/dev/shm` in the
//! place of regions of the file `-shm`.
//!
//! Layout: docs/format.md, "Wal-index in memory". Locks and SQLite's dead-man switch stay in `-shm`, which SQLite cuts when
//! its first connection opens it. So a token in that file says which object its openers share: where there is none, whoever
//! has the write lock makes token and object. A lock on a byte of the database keeps those out who come by another `-shm`.
//! Nothing is guessed: an opener that cannot show that it sees what the others see is refused.
//!
//! `-shm` is read by the descriptor that SQLite has of it and never mapped here: it stays shorter than a region, and whoever
//! writes the storage could cut it under a mapping.

mod inode;
mod object;

use std::ffi::{c_int, c_void, OsStr, OsString};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use pellucid::memory_index::{record, token_of, Place, Token, RECORD_AT, RECORD_BYTES};
use pellucid::{Error, Result, Subject};
use pellucid_host::ffi;

use crate::lower::Lower;
use crate::names::{take_opened_index, Folder, OpenedIndex, INDEX_END};
use crate::wal_index::REGION_BYTES;

use object::Object;

pub use inode::Presence;

/// What to do about an index that cannot be used.
const WAY_BACK: &str = "Close every connection to it; `pellucid index DB file` then keeps the wal-index in the file `-shm`";

/// The error of an opener that does not see what the others see.
fn elsewhere(why: &str) -> Error {
    Error::index_in_memory(format!(
        "another machine, container or account has this database open: {why}. {WAY_BACK}"
    ))
}

/// The error of an index that cannot be had.
fn unusable(why: &str) -> Error {
    Error::index_in_memory(format!("its wal-index in memory cannot be used: {why}. {WAY_BACK}"))
}

/// Where one connection has its wal-index.
#[derive(Debug, Default)]
pub enum IndexPlace {
    /// SQLite has not asked for it.
    #[default]
    Unasked,
    /// In the file `-shm`.
    File,
    /// In memory.
    Memory(Box<InMemory>),
}

/// The wal-index in memory of one connection.
#[derive(Debug)]
pub struct InMemory {
    folder: Arc<Folder>,
    /// The database's name, and that of its `-shm`.
    names: [OsString; 2],
    database: Place,
    process: u32,
    /// Whether the lower VFS has `-shm` open for this connection.
    is_open: bool,
    attached: Option<Attached>,
}

/// What a connection has found once that it sees what the others see.
#[derive(Debug)]
struct Attached {
    object: Arc<Object>,
    index: OpenedIndex,
}

/// A region as SQLite gets it: SQLite's code, and null where there is none yet.
pub type Region = (c_int, *mut c_void);

impl IndexPlace {
    /// Whether it is in memory, decided at the first question by what the header says then.
    ///
    /// # Errors
    /// [`Error::IndexInMemory`] if it cannot be there for this connection.
    pub fn decide(
        &mut self,
        asked: bool,
        folder: Option<&Arc<Folder>>,
        presence: Option<&Presence>,
        path: &Path,
    ) -> Result<Option<&mut InMemory>> {
        if matches!(self, IndexPlace::Unasked) {
            *self = match asked {
                false => IndexPlace::File,
                true => IndexPlace::Memory(Box::new(InMemory::new(folder, presence, path)?)),
            };
        }
        match self {
            IndexPlace::Memory(memory) => Ok(Some(memory)),
            _ => Ok(None),
        }
    }

    /// Checks that this connection sees what the others see, and what the header asks for. Called under a lock, before anything is
    /// sealed.
    ///
    /// # Errors
    /// [`Error::IndexInMemory`].
    pub fn check(&self, asked: bool) -> Result<()> {
        match (self, asked) {
            (IndexPlace::Memory(memory), true) => memory.check(),
            (IndexPlace::File, true) | (IndexPlace::Memory(_), false) => {
                Err(unusable("it was moved while this connection had it open"))
            }
            _ => Ok(()),
        }
    }

    /// Gives the index up, because SQLite does. `is_last` is said under EXCLUSIVE: nobody else has the database open.
    pub fn unmap(&mut self, is_last: bool) {
        if let IndexPlace::Memory(mut memory) = std::mem::take(self) {
            memory.unmap(is_last);
        }
    }
}

impl InMemory {
    fn new(folder: Option<&Arc<Folder>>, presence: Option<&Presence>, path: &Path) -> Result<Self> {
        let place = presence.and_then(Presence::place);
        let (Some(folder), Some(database), Some(name)) = (folder, place, path.file_name()) else {
            return Err(unusable("the VFS below does not say which file the database is"));
        };
        let mut index = name.to_owned();
        index.push(INDEX_END);
        Ok(Self {
            folder: folder.clone(),
            names: [name.to_owned(), index],
            database,
            process: std::process::id(),
            is_open: false,
            attached: None,
        })
    }

    /// Gives a region to SQLite. With `extend`, which SQLite asks for under the write lock alone, it is made where it is not
    /// there. `is_free` says that this connection holds no lock of the wal-index.
    ///
    /// # Errors
    /// [`Error::IndexInMemory`].
    pub fn region(
        &mut self,
        lower: Lower,
        number: usize,
        extend: bool,
        is_free: bool,
    ) -> Result<Region> {
        self.check_process()?;
        let code = match self.ask_lower(lower) {
            code @ (ffi::OK | ffi::READONLY) => code,
            code => return Ok((code, std::ptr::null_mut())),
        };
        if self.attached.is_none() {
            if let Err(error) = self.attach(extend, code == ffi::OK) {
                if is_free {
                    self.give_up(lower);
                }
                return Err(error);
            }
        }
        let Some(attached) = &self.attached else { return Ok((code, std::ptr::null_mut())) };
        self.check()?;
        let start = attached.object.region(number, extend).map_err(|error| told(&error))?;
        Ok((code, start.unwrap_or(std::ptr::null_mut())))
    }

    /// Has the lower VFS open `-shm`, and find out whether it is the first that does. It is asked each time: once it said that the
    /// file cannot be written, SQLite wants to hear when that changes.
    fn ask_lower(&mut self, lower: Lower) -> c_int {
        inode::with(self.database, |inode| {
            let _ = take_opened_index();
            let mut region = std::ptr::null_mut();
            // SAFETY: `region` is valid for a write; nothing is extended, so nothing is mapped of a file that is shorter.
            let code = unsafe { lower.shm_map(0, REGION_BYTES as c_int, 0, &mut region) };
            let opened = take_opened_index();
            if matches!(code, ffi::OK | ffi::READONLY | ffi::READONLY_CANTINIT) {
                inode.index_opened(opened, !self.is_open);
                self.is_open = true;
            }
            code
        })
    }

    /// Finds the object that the other openers share, or makes it where `extend` says that this connection has the write lock.
    fn attach(&mut self, extend: bool, to_write: bool) -> Result<()> {
        let found = inode::with(self.database, |inode| {
            let index = inode.index().ok_or_else(|| {
                unusable("the VFS below has not opened `-shm` by its name for this process")
            })?;
            pellucid::sabotage!(IndexPlace => return self.any(inode, index).map(Some));
            self.check_names(index.place)?;
            match read_token(index)? {
                Some(token) => {
                    self.find(inode, index, token, to_write).map(|object| Some((object, index)))
                }
                None if extend => self.make(inode, index).map(|object| Some((object, index))),
                None => Ok(None),
            }
        })?;
        self.attached = found.map(|(object, index)| Attached { object, index });
        Ok(())
    }

    /// Whatever object is at hand, for tests that show what happens then.
    #[cfg(feature = "sabotage")]
    fn any(
        &self,
        inode: &mut inode::Inode,
        index: OpenedIndex,
    ) -> Result<(Arc<Object>, OpenedIndex)> {
        let lock = inode.lock(&self.folder, &self.names[0], self.database)?;
        let database = lock.database()?;
        let object = Object::find(self.database, &database, true)
            .or_else(|_| Object::make(self.database, index.place, &database))?;
        let object = Arc::new(object);
        inode.attach(&object);
        Ok((object, index))
    }

    /// Has the lower VFS close `-shm` again, so that a connection that is refused does not keep the dead-man switch: once
    /// the others are gone, it is the first that opens the file.
    fn give_up(&mut self, lower: Lower) {
        inode::with(self.database, |inode| {
            if std::mem::take(&mut self.is_open) {
                inode.index_closed();
                lower.shm_unmap(0);
            }
        });
    }

    fn find(
        &self,
        inode: &mut inode::Inode,
        index: OpenedIndex,
        token: Token,
        to_write: bool,
    ) -> Result<Arc<Object>> {
        let lock = inode.lock(&self.folder, &self.names[0], self.database)?;
        if !lock.share()? {
            return Err(another_index());
        }
        let database = lock.database()?;
        let object = match inode.object() {
            Some(object) => Ok(object),
            None => Object::find(self.database, &database, to_write).map(Arc::new),
        };
        let found = object.and_then(|object| {
            let head = object.head();
            match head.token == token && head.index == index.place {
                true if to_write && !object.is_writable() => {
                    Err(unusable("it was opened to be read alone"))
                }
                true => Ok(object),
                false => Err(elsewhere("the index in memory is not the one that `-shm` names")),
            }
        });
        match found {
            Ok(object) => {
                inode.attach(&object);
                Ok(object)
            }
            Err(error) => {
                inode.release_unused();
                Err(error)
            }
        }
    }

    fn make(&self, inode: &mut inode::Inode, index: OpenedIndex) -> Result<Arc<Object>> {
        if inode.is_attached() {
            return Err(elsewhere("the token in `-shm` is gone"));
        }
        let lock = inode.lock(&self.folder, &self.names[0], self.database)?;
        if !lock.is_writable() {
            return Err(unusable(
                "this account may only read the database, and nobody else has it open",
            ));
        }
        if !lock.take_alone()? {
            return Err(another_index());
        }
        let database = lock.database()?;
        let made = Object::make(self.database, index.place, &database).and_then(|object| {
            // Shared first: whoever reads the token asks for a share of the lock.
            let shared = inode.share().and_then(|()| write_token(index, &object.head().token));
            shared.map(|()| object).inspect_err(|_| Object::remove(self.database, None))
        });
        match made {
            Ok(object) => {
                let object = Arc::new(object);
                inode.attach(&object);
                Ok(object)
            }
            Err(error) => {
                inode.release_unused();
                Err(error)
            }
        }
    }

    fn check(&self) -> Result<()> {
        pellucid::sabotage!(IndexPlace => return Ok(()));
        self.check_process()?;
        let Some(attached) = &self.attached else { return Ok(()) };
        let head = attached.object.head();
        self.check_names(attached.index.place)?;
        match read_token(attached.index)? == Some(head.token) && attached.object.has_token() {
            true => Ok(()),
            false => Err(elsewhere("the token in `-shm` was changed")),
        }
    }

    /// Checks that the names lead to what this connection has open: whoever opens the database next goes by them.
    fn check_names(&self, index: Place) -> Result<()> {
        let is =
            |name: &OsStr, place: Place| self.folder.look(name).is_ok_and(|found| found == place);
        if !is(&self.names[1], index) {
            return Err(elsewhere("its file `-shm` was removed, or exchanged for another one"));
        }
        if !is(&self.names[0], self.database) {
            return Err(elsewhere("another file has its name by now"));
        }
        Ok(())
    }

    /// A child has none of its parent's locks.
    fn check_process(&self) -> Result<()> {
        match std::process::id() == self.process {
            true => Ok(()),
            false => {
                Err(unusable("the connection belongs to the process that this one was forked from"))
            }
        }
    }

    fn unmap(&mut self, is_last: bool) {
        if self.check_process().is_err() {
            // The parent's, with all that it holds.
            std::mem::forget(self.attached.take());
            return;
        }
        let attached = self.attached.take();
        if attached.is_none() && !self.is_open {
            return;
        }
        inode::with(self.database, |inode| {
            if let Some(attached) = &attached {
                if is_last {
                    Object::remove(self.database, Some(&attached.object));
                }
                inode.detach();
            }
            if std::mem::take(&mut self.is_open) {
                inode.index_closed();
            }
        });
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        self.unmap(false);
    }
}

/// Removes the object of a database, which nobody has open but the caller: it holds EXCLUSIVE.
pub fn remove_left_over(database: Place) {
    Object::remove(database, None);
}

fn another_index() -> Error {
    elsewhere("under another name, or in another place, with a file `-shm` of its own")
}

fn told(error: &std::io::Error) -> Error {
    unusable(&format!("`{}`: {error}", pellucid_files::machine_memory::PLACE))
}

/// The token in `-shm`. `None` where SQLite has cut the file since.
fn read_token(index: OpenedIndex) -> Result<Option<Token>> {
    let mut found = [0; RECORD_BYTES];
    let mut read = 0;
    while read < found.len() {
        let file = borrowed(index);
        match file.read_at(&mut found[read..], RECORD_AT + read as u64) {
            Ok(0) => return Ok(None),
            Ok(bytes) => read += bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io(Subject::Container, error)),
        }
    }
    Ok(token_of(&found))
}

fn write_token(index: OpenedIndex, token: &Token) -> Result<()> {
    let written = borrowed(index).write_all_at(&record(token), RECORD_AT);
    written.map_err(|error| unusable(&format!("`-shm`: {error}")))
}

/// SQLite's own file, which is open as long as the lower VFS has the index of a connection of this process open.
fn borrowed(index: OpenedIndex) -> ManuallyDrop<File> {
    // SAFETY: the descriptor is open (`Inode::index` forgets it before the last connection gives the index up), and stays
    // SQLite's: it is not closed here.
    ManuallyDrop::new(unsafe { File::from_raw_fd(index.descriptor) })
}

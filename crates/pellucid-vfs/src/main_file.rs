//! A main database file: plain and handed through, or sealed, and how one becomes the other.

use std::ffi::c_int;
use std::path::PathBuf;
use std::rc::Rc;

use pellucid::header::REGION_BYTES;
use pellucid::sector::{SectorZero, SECTOR_BYTES, SQLITE_MAGIC};
use pellucid::{Error, Subject};
use pellucid_host::code::{report, Code, Outcome};
use pellucid_host::ffi;

use crate::database::Database;
use crate::laying;
use crate::link::{Failure, Link, Phase};
use crate::lower::Lower;
use crate::lower::ReadEnd;
use crate::seal_request::{Birth, Credentials, Request};

/// A main database file of one connection.
#[derive(Debug)]
pub struct MainFile {
    link: Rc<Link>,
    lower: Lower,
    database: Database,
    require: bool,
}

impl MainFile {
    /// Looks at the file behind `lower` and decides what it is.
    ///
    /// # Errors
    /// A code after a line in the log: no key, damage, or a plain file where a sealed one is required.
    pub fn open(path: PathBuf, lower: Lower, read_only: bool, request: Request) -> Outcome<Self> {
        let typed = |error: Error| report(&path, &error);
        let mut size = lower.size()?;
        let mut first = [0; SECTOR_BYTES];
        lower.read(&mut first, 0)?;
        if size > 0 && laying::is_unfinished(lower, &path)? {
            laying::roll_forward(lower, &path, read_only)?;
            lower.read(&mut first, 0)?;
            size = lower.size()?;
        }
        let credentials = Credentials::gather(&request).map_err(typed)?;
        let interrupted = crate::link::is_unfinished_birth(lower, &first)?;
        let kind = match interrupted {
            true => FileClass::Empty,
            false => classify(lower, size, &first).map_err(typed)?,
        };
        let phase = match kind {
            FileClass::Sealed => Phase::Sealed,
            FileClass::Empty if request.plain => Phase::Plain,
            FileClass::Empty => match Birth::requested(&request).map_err(typed)? {
                Some(birth) if !read_only => Phase::Unborn(Box::new(birth)),
                _ => Phase::Plain,
            },
            FileClass::Plain => Phase::Plain,
        };
        if matches!(phase, Phase::Plain) {
            if interrupted && crate::link::has_trace_of_birth(lower)? {
                return Err(typed(Error::corrupt(
                    Subject::Container,
                    "its birth was interrupted and it holds nothing; name a key to begin it again, \
                     or remove it",
                )));
            }
            refuse_plain(kind, &request).map_err(typed)?;
        }
        let sealed = matches!(phase, Phase::Sealed);
        let link = Rc::new(Link::new(path.clone(), lower, credentials, phase).map_err(typed)?);
        if sealed {
            link.load()?;
        }
        let database = Database::new(link.clone(), lower, !request.unmapped);
        Ok(Self { link, lower, database, require: request.require })
    }

    /// What this file shares with its journal and WAL.
    pub fn link(&self) -> &Rc<Link> {
        &self.link
    }

    /// Whether pages are sealed or will be.
    pub fn is_sealing(&self) -> bool {
        self.link.is_sealing()
    }

    /// Reads at SQLite's offset. SQLite takes what is not there for zeros: rightly of pages that a transaction is about to
    /// add, never of those of a snapshot.
    ///
    /// # Errors
    /// A code.
    pub fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        let read = match self.link.is_sealing() {
            false => self.lower.read(buffer, offset),
            true => self.database.read(buffer, offset),
        };
        if read == Ok(ReadEnd::Short) && self.link.is_whole.get() {
            self.link.was_cut.set(true);
            let cause = "the file ends before it, and did not when it was begun to be read";
            let page = Subject::Page((offset / buffer.len().max(1) as u64) as u32 + 1);
            return Err(self.link.report(&Error::corrupt(page, cause)));
        }
        read
    }

    /// Writes at SQLite's offset.
    ///
    /// # Errors
    /// A code.
    pub fn write(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        if !self.link.is_sealing() {
            return self.lower.write(bytes, offset);
        }
        self.link.check_writable()?;
        self.database.write(bytes, offset)
    }

    /// Cuts or extends the file.
    ///
    /// # Errors
    /// A code.
    pub fn truncate(&mut self, size: u64) -> Outcome<()> {
        if !self.link.is_sealing() {
            return self.lower.truncate(size);
        }
        self.link.check_writable()?;
        self.database.truncate(size)
    }

    /// Forces the file to disk.
    ///
    /// # Errors
    /// A code.
    pub fn sync(&mut self, flags: c_int) -> Outcome<()> {
        if !self.link.is_sealing() {
            return self.lower.sync(flags);
        }
        self.link.flush()?;
        self.database.sync(flags)
    }

    /// Bytes as SQLite counts them.
    ///
    /// # Errors
    /// A code.
    pub fn size(&mut self) -> Outcome<u64> {
        if !self.link.is_sealing() {
            return self.lower.size();
        }
        self.link.flush()?;
        self.database.logical_size()
    }

    /// Takes a lock; true if the database is empty and must be given its reserve.
    ///
    /// # Errors
    /// A code; the lock is given back if the file is no longer what it was.
    pub fn lock(&mut self, level: c_int) -> Outcome<bool> {
        let before = self.link.lock_level.get();
        self.lower.lock(level)?;
        if level <= before {
            return Ok(false);
        }
        self.database.forget();
        self.link.lock_level.set(level);
        // Under RESERVED nobody else changes the header. In WAL mode there is none: a connection that closes, or keeps the
        // database for itself, comes from SHARED, and may have looked last long ago.
        if before >= ffi::LOCK_RESERVED {
            return Ok(false);
        }
        let looked = self.look_under_lock(level);
        if looked.is_err() {
            // What cannot be trusted is not left locked.
            let unlocked = if before == ffi::LOCK_NONE { before } else { ffi::LOCK_SHARED };
            self.lower.unlock(unlocked)?;
            self.link.lock_level.set(unlocked);
        }
        looked
    }

    fn look_under_lock(&mut self, level: c_int) -> Outcome<bool> {
        self.database.refresh()?;
        if level >= ffi::LOCK_RESERVED && self.link.is_sealing() {
            self.link.check_remembered()?;
        }
        self.check_required()?;
        if level >= ffi::LOCK_RESERVED {
            self.link.check_writable()?;
        }
        let shared = level == ffi::LOCK_SHARED && self.link.is_sealing();
        Ok(shared && self.database.logical_size()? == 0)
    }

    /// An empty plain file that another process filled in the meantime may be refused here.
    fn check_required(&self) -> Outcome<()> {
        if self.require && !self.link.is_sealing() {
            return Err(self.link.report(&plain_where_sealed_is_required()));
        }
        Ok(())
    }

    /// Gives a lock back. Whatever is held back goes out first.
    ///
    /// # Errors
    /// A code.
    pub fn unlock(&mut self, level: c_int) -> Outcome<()> {
        let flushed = if self.link.is_sealing() { self.link.flush_untold() } else { Ok(()) };
        let settled = self.database.settle();
        self.database.forget();
        if level < ffi::LOCK_RESERVED {
            self.link.drop_nonces();
        }
        self.lower.unlock(level)?;
        self.link.lock_level.set(level.min(self.link.lock_level.get()));
        // A journal's failed write was told when it happened; the lock has to go all the same.
        flushed.or(Ok(()))?;
        settled
    }

    /// Takes or gives back locks of the WAL index; the raw code.
    pub fn shm_lock(&mut self, first: c_int, count: c_int, flags: c_int) -> c_int {
        if !self.link.is_sealing() {
            return self.lower.shm_lock(first, count, flags);
        }
        let taken = flags & ffi::SHM_LOCK != 0;
        let flushed = if taken { self.link.flush() } else { self.link.flush_untold() };
        if let (true, Err(Code(code))) = (taken, flushed) {
            return code;
        }
        self.database.forget();
        self.link.forget_log();
        let mask = ((1 << count) - 1) << first;
        let exclusive = flags & ffi::SHM_EXCLUSIVE != 0;
        if !taken && exclusive {
            self.before_release(mask);
        }
        let to_write = taken && exclusive && mask & WRITE_MASK != 0;
        if to_write {
            self.link.draw_nonces();
        }
        let code = self.lower.shm_lock(first, count, flags);
        if code != ffi::OK && to_write {
            self.link.drop_nonces();
        }
        if !taken && !exclusive {
            self.link.begin_write_out();
        }
        if code != ffi::OK || !taken {
            return code;
        }
        let held = &self.link.shm_exclusive;
        if exclusive {
            held.set(held.get() | mask);
        }
        if to_write {
            // In an exclusive locking mode no lock was given back at the end of the one before.
            self.link.end_transaction();
        }
        // A reader needs no fresh header: a generation it has not seen makes it look again
        // (`Database`, `WalFile`), and a WAL database cannot change its page size or become plain
        // while this connection is open. Who may seal looks before anything else.
        let seals = exclusive && mask & (WRITE_MASK | CKPT_MASK) != 0;
        let looked = match seals {
            true => self.database.refresh().and_then(|()| self.link.check_remembered()),
            // A reader that has its mark compares the index's header with the copy that it goes by (`walTryBeginRead`).
            false if exclusive => Ok(()),
            false => self.link.page_size().map_or(Ok(()), |bytes| self.link.check_index(bytes)),
        };
        match looked {
            Ok(()) => ffi::OK,
            Err(Code(code)) => {
                if exclusive {
                    held.set(held.get() & !mask);
                    self.link.drop_nonces();
                }
                let unlock = flags & !ffi::SHM_LOCK | ffi::SHM_UNLOCK;
                self.lower.shm_lock(first, count, unlock);
                code
            }
        }
    }

    fn before_release(&self, mask: c_int) {
        let held = &self.link.shm_exclusive;
        held.set(held.get() & !mask);
        if mask & (WRITE_MASK | CKPT_MASK) != 0 {
            self.link.drop_nonces();
        }
        if mask & WRITE_MASK != 0 {
            self.link.end_transaction();
        }
    }

    /// Flushes before other processes may see the WAL index. Nothing that a commit needs is held
    /// then (`WalFile`), so a failure here is told by the next call of the transaction.
    pub fn barrier(&mut self) {
        let _ = self.link.flush_untold();
    }

    /// Seals a database whose page size changed.
    ///
    /// # Errors
    /// A code.
    pub fn settle(&mut self) -> Outcome<()> {
        self.database.settle()
    }

    /// What is known of the file may be stale.
    pub fn forget(&mut self) {
        self.database.forget();
    }

    /// Last calls before the lower file closes.
    ///
    /// # Errors
    /// A code.
    pub fn close(&mut self) -> Outcome<()> {
        let flushed = if self.link.is_sealing() { self.link.flush() } else { Ok(()) };
        self.link.close();
        flushed
    }
}

const WRITE_MASK: c_int = 1 << ffi::WAL_WRITE_LOCK;
const CKPT_MASK: c_int = 1 << ffi::WAL_CKPT_LOCK;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileClass {
    Empty,
    /// A plain database, or something SQLite itself will refuse.
    Plain,
    Sealed,
}

fn classify(lower: Lower, size: u64, first: &[u8]) -> Result<FileClass, Error> {
    if size == 0 {
        return Ok(FileClass::Empty);
    }
    if first[..16] == SQLITE_MAGIC[..] {
        return Ok(FileClass::Plain);
    }
    let sector = SectorZero::parse(first);
    // Birth writes the whole region with one call. What is shorter was cut, and its pages with it: it
    // must not pass for an empty database.
    let whole = size >= REGION_BYTES;
    if whole && matches!(sector, Ok(Some(_))) {
        return Ok(FileClass::Sealed);
    }
    // Not a sector 0 of ours, or a damaged one: the header copies behind it still tell, and those of a newer version do.
    if whole {
        match crate::link::ReadHeader::read(lower) {
            Ok(_) => return Ok(FileClass::Sealed),
            Err(Failure::Typed(error @ Error::Unsupported { .. })) => return Err(error),
            Err(_) => {}
        }
    }
    if first.starts_with(b"Pellucid ") {
        return Err(match sector {
            Err(error) if whole => error,
            _ => truncated(size),
        });
    }
    Ok(FileClass::Plain)
}

/// The file ends inside its header region.
pub fn truncated(size: u64) -> Error {
    Error::corrupt(
        Subject::Container,
        format!("truncated: {size} of its first {REGION_BYTES} bytes are there"),
    )
}

/// `require=sealed` or `PELLUCID_REQUIRE`, and a database that is not.
pub fn plain_where_sealed_is_required() -> Error {
    Error::misuse(Subject::Container, "a plain database, where a sealed one is required")
}

fn refuse_plain(class: FileClass, request: &Request) -> Result<(), Error> {
    if request.require {
        return Err(plain_where_sealed_is_required());
    }
    if class == FileClass::Plain && request.names_a_key() {
        return Err(Error::misuse(
            Subject::Container,
            "a key is named, but this is a plain database; encrypt it with `pellucid encrypt`",
        ));
    }
    Ok(())
}

//! A main database file: a plain one, whose calls go to the lower VFS, or a sealed one; and the
//! locks of both.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use pellucid::header::REGION_BYTES;
use pellucid::media::MediaHeader;
use pellucid::sector::{SectorZero, SECTOR_BYTES, SQLITE_MAGIC};
use pellucid::{Error, Subject};
use pellucid_host::code::{Code, Outcome};
use pellucid_host::ffi;

use crate::attached::Attached;
use crate::container::{self, Container, Failure, Phase, Written};
use crate::database::Database;
use crate::files::Files;
use crate::laying;
use crate::lower::{Lower, ReadEnd};
use crate::names::Folder;
use crate::newcomer::{self, Choice};
use crate::pins::{Expectation, Lesser};
use crate::seal_request::{Birth, Credentials, Request};
use crate::shared_memory::{IndexPlace, Presence};
use crate::sqlite_file::SqliteFile;
use crate::wal_file::{Restart, WalFile};

/// How often an opening begins again because the file became one of another kind.
const ATTEMPTS: usize = 4;

/// A main database file of one connection.
#[derive(Debug)]
pub struct MainFile {
    container: Rc<Container>,
    files: Rc<Files>,
    lower: Lower,
    database: Database,
    attached: Attached,
    require: bool,
    /// Why the log is not used after its recovery, until SQLite was given it.
    recovery_failed: Cell<Option<Code>>,
    /// Why commits behind the end of the last recovery are not kept aside.
    unkept: Cell<Option<Code>>,
    /// Where this connection has its wal-index.
    index_place: IndexPlace,
    /// What the URI asks for, if a new file has to be sealed whatever is open then.
    seal_new: Option<Request>,
}

impl MainFile {
    /// Opens the file behind `lower`: finishes an interrupted laying, decides whether the file is
    /// plain or sealed, and loads the header of a sealed one. Begins again where a conversion by another process made the file
    /// one of another kind meanwhile.
    ///
    /// # Errors
    /// A code after a line in the log: no key, damage, or a plain file where a sealed one is required.
    pub fn open(
        path: PathBuf,
        attached: Attached,
        lower: Lower,
        read_only: bool,
        mut request: Request,
        expected: Expectation,
    ) -> Outcome<Self> {
        // What is sealed like an open database needs no keys of the environment.
        request.encrypt_new |= request.seal_new && !newcomer::is_any();
        let sector = || {
            let mut sector = [0; SECTOR_BYTES];
            lower.read(&mut sector, 0).map(|_| sector)
        };
        let mut before = sector()?;
        let mut attempt = 0;
        loop {
            let opened =
                Self::open_as_it_is(&path, attached, lower, read_only, &request, &expected);
            let failure = match opened {
                Ok(file) => return Ok(file),
                Err(failure) => failure,
            };
            attempt += 1;
            let now = sector()?;
            if now == before || attempt == ATTEMPTS {
                return Err(failure.report(&path));
            }
            before = now;
        }
    }

    fn open_as_it_is(
        path: &Path,
        attached: Attached,
        lower: Lower,
        read_only: bool,
        request: &Request,
        expected: &Expectation,
    ) -> Result<Self, Failure> {
        let mut size = lower.size()?;
        let mut first = [0; SECTOR_BYTES];
        lower.read(&mut first, 0)?;
        if size > 0 && laying::is_unfinished(lower, path)? {
            if let Some(over) = request.over {
                let instead = "copy it, and the file `-pellucid` beside it, to a directory of this machine, and open it there";
                return Err(over.refuse("to finish an interrupted conversion", instead).into());
            }
            laying::roll_forward(lower, path, read_only, expected)?;
            lower.read(&mut first, 0)?;
            size = lower.size()?;
        }
        let credentials = Credentials::gather(request)?;
        let interrupted = container::is_unfinished_birth(lower, &first)?;
        let kind = match interrupted {
            true => FileClass::Empty,
            false => classify(lower, size, &first)?,
        };
        let phase = match kind {
            FileClass::Sealed => Phase::Sealed,
            FileClass::Empty if request.plain => Phase::Plain,
            FileClass::Empty => match Birth::requested(request)? {
                Some(birth) if !read_only => Phase::Unborn(Box::new(birth)),
                None if !read_only && !interrupted && !request.plain_copies => Phase::New,
                _ => Phase::Plain,
            },
            FileClass::Plain => Phase::Plain,
        };
        if matches!(phase, Phase::Plain) {
            if interrupted && container::has_trace_of_birth(lower)? {
                return Err(Error::corrupt(
                    Subject::Container,
                    "its birth was interrupted and it holds nothing; name a key to begin it again, \
                     or remove it",
                )
                .into());
            }
            refuse_plain(kind, request)?;
            expected.refuse_plain(kind.lesser(), || lower.sha256(size))?;
        }
        match phase {
            Phase::New if !newcomer::is_any() => {
                refuse_plain(kind, request)?;
                expected.refuse_lesser(kind.lesser())?;
            }
            Phase::New | Phase::Unborn(_) => expected.refuse_birth(kind.lesser())?,
            Phase::Plain | Phase::Sealed => {}
        }
        let sealed = matches!(phase, Phase::Sealed);
        let (expected, how) = (expected.clone(), (request.plain_copies, request.over));
        let container = Container::new(path.to_owned(), lower, credentials, phase, expected, how);
        let container = Rc::new(container?);
        if sealed {
            container.begin(size)?;
        }
        if request.require_fresh {
            container.assert_fresh().map_err(|error| container.report(&error))?;
        }
        let files = Rc::new(Files::new(container.clone()));
        let database = Database::new(files.clone(), lower, !request.unmapped);
        let seal_new = (request.seal_new && container.is_new())
            .then(|| Request { encrypt_new: true, ..request.clone() });
        let require = request.require;
        let [recovery_failed, unkept] = [(); 2].map(|()| Cell::new(None));
        Ok(Self {
            container,
            files,
            lower,
            database,
            attached,
            require,
            recovery_failed,
            unkept,
            index_place: IndexPlace::default(),
            seal_new,
        })
    }

    /// The file with its journal and its WAL.
    pub fn files(&self) -> &Rc<Files> {
        &self.files
    }

    /// The connection that the file is attached to.
    pub fn attached(&mut self) -> &mut Attached {
        &mut self.attached
    }

    /// Whether this file's pages are sealed, or will be from its first write on.
    pub fn is_sealing(&self) -> bool {
        self.container.is_sealing()
    }

    /// Writes to a new file that no lock made a sealed one. Refuses every write once a sealed
    /// database is open, until page 1 has made the file a plain database.
    fn write_undecided(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        match newcomer::choose(&self.attached.databases()) {
            Choice::Plain if self.seal_new.is_some() => {
                return Err(self.container.report(&newcomer::begun_in_clear()))
            }
            Choice::Plain => {
                self.check_required(ffi::LOCK_RESERVED)?;
                self.container.refuse_lesser()?;
            }
            Choice::Like(_) => return Err(self.container.report(&newcomer::begun_in_clear())),
            Choice::Unclear(paths) => {
                return Err(self.container.report(&newcomer::unclear(&paths)))
            }
        }
        self.lower.write(bytes, offset)?;
        if offset == 0 {
            self.container.settle_plain();
        }
        Ok(())
    }

    /// Decides what a new file becomes. Called when SQLite takes the lock for its first write: it
    /// has opened no journal yet.
    fn decide(&self) -> Outcome<()> {
        match (newcomer::choose(&self.attached.databases()), &self.seal_new) {
            (Choice::Unclear(paths), _) => {
                return Err(self.container.report(&newcomer::unclear(&paths)));
            }
            (Choice::Like(sealed), _) => self.container.seal_like(&sealed)?,
            (Choice::Plain, Some(request)) => self.container.seal_as(request)?,
            (Choice::Plain, None) => return self.container.refuse_lesser(),
        }
        self.lower.forget_chunks();
        Ok(())
    }

    /// Takes a lock and then reads the header again. True if the database is empty and SQLite must
    /// be given its reserved bytes.
    ///
    /// # Errors
    /// A code; the lock is released if the file is no longer of the kind it was.
    pub fn lock(&mut self, level: c_int) -> Outcome<bool> {
        let before = self.container.transaction.lock_level();
        // A connection that closes takes the whole file, recovers the log once more, without a lock, and removes it.
        if let Some(code) = self.unkept.get().filter(|_| level == ffi::LOCK_EXCLUSIVE) {
            return Err(code);
        }
        self.lower.lock(level)?;
        if level <= before {
            return Ok(false);
        }
        self.database.forget();
        self.container.transaction.set_lock_level(level);
        // Under RESERVED no other connection changes the header. WAL mode has no RESERVED: a
        // connection that closes, or takes the database for itself alone, comes from SHARED and may
        // have read the header long ago.
        if before >= ffi::LOCK_RESERVED {
            return Ok(false);
        }
        let looked = self.look_under_lock(level);
        if looked.is_err() {
            // A file that cannot be trusted does not stay locked.
            let unlocked = if before == ffi::LOCK_NONE { before } else { ffi::LOCK_SHARED };
            self.lower.unlock(unlocked)?;
            self.container.transaction.set_lock_level(unlocked);
        }
        looked
    }

    fn look_under_lock(&mut self, level: c_int) -> Outcome<bool> {
        self.database.refresh()?;
        if level >= ffi::LOCK_RESERVED {
            match self.container.written() {
                Written::Undecided => self.decide()?,
                Written::Plain => {
                    self.container
                        .transaction
                        .set_by_backup(newcomer::is_any() && self.attached.databases().is_idle);
                }
                Written::Sealed => {}
            }
        }
        if level >= ffi::LOCK_RESERVED && self.container.is_sealing() {
            self.container.check_remembered()?;
        }
        self.check_required(level)?;
        if level == ffi::LOCK_SHARED && !(self.container.is_new() && newcomer::is_any()) {
            self.container.refuse_lesser()?;
        }
        if level >= ffi::LOCK_RESERVED {
            self.container.check_writable()?;
        }
        if level == ffi::LOCK_EXCLUSIVE {
            self.container.log_chain.is_alone(self.container.index.run());
            // No further lock is asked for in an exclusive locking mode, and by a connection that closes.
            self.check_index_place()?;
        }
        Ok(level == ffi::LOCK_SHARED && self.may_be_sealed() && self.database.logical_size()? == 0)
    }

    /// Maps a region of the wal-index, from the file `-shm` or from memory, and returns SQLite's code.
    ///
    /// # Safety
    /// `out` is valid for a write.
    pub unsafe fn shm_map(
        &mut self,
        (folder, presence): (Option<&Arc<Folder>>, Option<&Presence>),
        region: c_int,
        bytes: c_int,
        extend: c_int,
        out: *mut *mut c_void,
    ) -> c_int {
        let Ok(number) = usize::try_from(region) else { return ffi::IOERR };
        let asked = self.container.has_index_in_memory();
        let found = match self.index_place.decide(asked, folder, presence, self.container.path()) {
            // SAFETY: by contract.
            Ok(None) => return unsafe { self.lower.shm_map(region, bytes, extend, out) },
            Ok(Some(memory)) => {
                let transaction = &self.container.transaction;
                let is_locked =
                    transaction.writes_wal() || transaction.lock_level() == ffi::LOCK_EXCLUSIVE;
                let is_free = transaction.shm_exclusive() == 0;
                memory.region(self.lower, number, extend != 0 && is_locked, is_free)
            }
            Err(error) => Err(error),
        };
        let (code, start) = found.unwrap_or_else(|error| {
            let Code(code) = self.container.report(&error);
            (code, std::ptr::null_mut())
        });
        // SAFETY: by contract.
        unsafe { *out = start };
        code
    }

    /// Gives the wal-index up, because SQLite does.
    pub fn shm_unmap(&mut self) {
        self.container.index.unmap();
        let is_last = self.container.transaction.lock_level() == ffi::LOCK_EXCLUSIVE;
        self.index_place.unmap(is_last);
    }

    /// Checks that this connection has the wal-index that the others have, before it seals anything.
    fn check_index_place(&self) -> Outcome<()> {
        let asked = self.container.has_index_in_memory();
        self.index_place.check(asked).map_err(|error| self.container.report(&error))
    }

    /// Whether the file is sealed, or a new one that may have to be.
    pub fn may_be_sealed(&self) -> bool {
        match self.container.written() {
            Written::Sealed => true,
            Written::Plain => false,
            Written::Undecided => self.seal_new.is_some() || newcomer::is_any(),
        }
    }

    /// Refuses a plain file where a sealed one is required. Another process may have filled a file
    /// that was empty at open. A new file is decided by the time of its first write.
    fn check_required(&self, level: c_int) -> Outcome<()> {
        let undecided = level < ffi::LOCK_RESERVED && self.may_be_sealed();
        if self.require && !self.container.is_sealing() && !undecided {
            return Err(self.container.report(&plain_where_sealed_is_required()));
        }
        Ok(())
    }

    /// Writes the held units, then releases a lock.
    ///
    /// # Errors
    /// A code.
    pub fn unlock(&mut self, level: c_int) -> Outcome<()> {
        let flushed = if self.container.is_sealing() { self.files.flush_untold() } else { Ok(()) };
        let handed_over = self.database.hand_over();
        let settled = self.database.settle();
        self.database.forget();
        self.database.end_new();
        if level < ffi::LOCK_RESERVED {
            self.container.transaction.drop_nonces();
        }
        let container = &self.container;
        let was_alone = container.transaction.lock_level() == ffi::LOCK_EXCLUSIVE;
        if was_alone && level < ffi::LOCK_EXCLUSIVE && container.log_chain.take_refused_alone() {
            // The index says that the log is empty, and its commits are in the file and in no chain: whoever comes next reads it.
            container.index.take_back();
        }
        self.lower.unlock(level)?;
        self.container
            .transaction
            .set_lock_level(level.min(self.container.transaction.lock_level()));
        // SQLite got the error of a journal's failed write when it happened, and the lock has to be
        // released all the same.
        flushed.or(Ok(()))?;
        handed_over.and(settled)
    }

    /// Takes or releases locks of the wal-index, and returns SQLite's code.
    ///
    /// Before the write lock the shim draws nonces; after it, or after the checkpoint lock, it
    /// reads the header again, because this connection may seal then.
    pub fn shm_lock(&mut self, first: c_int, count: c_int, flags: c_int) -> c_int {
        if !self.container.is_sealing() {
            self.note_backup(first, flags);
            return self.lower.shm_lock(first, count, flags);
        }
        let taken = flags & ffi::SHM_LOCK != 0;
        if taken {
            // SQLite hears of it by the lock that it reads by. Where its recovery failed by itself, it asks for none of these,
            // and begins anew with one of the others.
            let failed = self.recovery_failed.take();
            if let Some(Code(code)) = failed.filter(|_| first > ffi::WAL_RECOVER_LOCK) {
                return code;
            }
        }
        let flushed = if taken { self.files.flush() } else { self.files.flush_untold() };
        if let (true, Err(Code(code))) = (taken, flushed) {
            return code;
        }
        let handed_over = self.database.hand_over();
        if let (true, Err(Code(code))) = (taken, handed_over) {
            return code;
        }
        let mask = ((1 << count) - 1) << first;
        let exclusive = flags & ffi::SHM_EXCLUSIVE != 0;
        match exclusive {
            // The read mark, which a writer keeps, answers for the file's size.
            true if mask != WRITE_MASK => self.database.forget(),
            true => self.database.next_writer(),
            false => self.database.next_reader(),
        }
        self.files.with_wal(WalFile::forget);
        if !taken && exclusive {
            self.before_release(mask);
        }
        let to_write = taken && exclusive && mask & WRITE_MASK != 0;
        if taken && exclusive {
            match self.chain_allows(mask) {
                ffi::OK => {}
                code => return code,
            }
        }
        if to_write {
            self.container.transaction.draw_nonces();
        }
        let code = self.lower.shm_lock(first, count, flags);
        if code != ffi::OK && to_write {
            self.container.transaction.drop_nonces();
        }
        if !taken && !exclusive {
            self.files.with_wal(WalFile::begin_write_out);
        }
        if code != ffi::OK || !taken {
            return code;
        }
        let transaction = &self.container.transaction;
        if exclusive {
            transaction.took_shm(mask);
        }
        // Before anything is sealed, or the index made anew.
        let changes = exclusive && mask & (WRITE_MASK | CKPT_MASK | RECOVER_MASK) != 0;
        let placed = if changes { self.check_index_place() } else { Ok(()) };
        if exclusive && mask & RECOVER_MASK != 0 && placed.is_ok() {
            // SQLite recovers where no index is made, so there is none to lose.
            self.container.index.take_back();
            self.files.with_wal(WalFile::begin_recovery);
        }
        if to_write {
            // In an exclusive locking mode no lock was released at the end of the transaction
            // before.
            self.files.with_wal(WalFile::end_transaction);
        }
        // A reader needs no fresh header. A generation that it does not know makes it read the
        // header again (`Database`, `WalFile`), and a WAL database cannot change its page size or
        // become plain while this connection is open. A connection that may seal reads the header
        // before anything else.
        let seals = exclusive && mask & (WRITE_MASK | CKPT_MASK) != 0;
        let looked = placed.and_then(|()| match seals {
            true => self.database.refresh().and_then(|()| self.container.check_remembered()),
            // A reader with a read mark compares the index's header with the copy that it uses
            // (`walTryBeginRead`).
            false if exclusive => Ok(()),
            false => {
                self.container.page_size().map_or(Ok(()), |bytes| self.container.check_index(bytes))
            }
        });
        match looked {
            Ok(()) => ffi::OK,
            Err(Code(code)) => {
                if exclusive {
                    transaction.gave_shm(mask);
                    transaction.drop_nonces();
                }
                let unlock = flags & !ffi::SHM_LOCK | ffi::SHM_UNLOCK;
                self.lower.shm_lock(first, count, unlock);
                code
            }
        }
    }

    /// Answers for the chain of log backups, before a lock is taken by which the log may begin anew, or by which SQLite checkpoints
    /// after each commit of a log that must not.
    fn chain_allows(&self, mask: c_int) -> c_int {
        if mask & (CKPT_MASK | WRITE_MASK) == 0 && mask != RESTART_MASK
            || self.container.chain().is_none()
        {
            return ffi::OK;
        }
        let chain = &self.container.log_chain;
        if mask & WRITE_MASK != 0 {
            chain.begins_write();
            return ffi::OK;
        }
        let index = &self.container.index;
        if mask & CKPT_MASK != 0 {
            let frames = index.frames().zip(index.brought_in());
            return match chain.is_checkpoint_of_nothing(index.salts(), frames) {
                true => ffi::BUSY,
                false => ffi::OK,
            };
        }
        let must = self.container.transaction.shm_exclusive() & CKPT_MASK != 0;
        match self.files.with_wal(|wal| wal.before_restart(must)) {
            None | Some(Restart::Goes) => ffi::OK,
            Some(Restart::Full) => ffi::FULL,
            Some(_) => chain.refused(index.salts(), must),
        }
    }

    /// Refuses a page that is written past the log while each commit goes into a chain of log backups: it would be missing there. The
    /// page by which a database comes to the journal mode WAL is none.
    fn check_chain(&self, bytes: &[u8], offset: u64) -> Outcome<()> {
        let has_log = self.files.with_wal(|_| ()).is_some();
        // The change to WAL by which a killed process left a journal is undone, like any other.
        let is_undone = self.files.with_journal(|journal| journal.is_found()).unwrap_or(false);
        if has_log
            || is_undone
            || self.container.leaves_wal.get()
            || self.container.chain().is_none()
        {
            return Ok(());
        }
        let enters_wal = offset == 0 && bytes.get(18..20) == Some(&[2, 2]);
        if enters_wal {
            return Ok(());
        }
        let said = "it is not in the journal mode WAL, and its commits would be missing from its chain of log backups: nothing is \
                    written until `PRAGMA journal_mode=WAL`, or until its recovery model is SIMPLE";
        self.container.note(ffi::READONLY, said);
        Err(Code(ffi::READONLY))
    }

    /// Keeps the log before the last connection removes it. False if it has to stay.
    pub fn may_remove_log(&self) -> bool {
        let is_last = self.container.transaction.lock_level() == ffi::LOCK_EXCLUSIVE;
        let kept = || self.files.with_wal(|wal| wal.keep_before_end().is_ok()).unwrap_or(true);
        !is_last || kept() || self.container.leaves_wal.get()
    }

    /// Notes that a checkpoint is asked for by a statement.
    pub fn is_asked_to_checkpoint(&self) {
        self.container.log_chain.begins_write();
    }

    /// Notes at the write lock of a plain database's log whether a backup writes the transaction.
    fn note_backup(&self, first: c_int, flags: c_int) {
        if flags == ffi::SHM_LOCK | ffi::SHM_EXCLUSIVE && first == ffi::WAL_WRITE_LOCK {
            self.container
                .transaction
                .set_by_backup(newcomer::is_any() && self.attached.databases().is_idle);
        }
    }

    /// Looks behind the end that a recovery has found, before anybody writes there. SQLite hears of no error while it gives a
    /// lock back: the next lock is refused then, and whoever comes next has to recover the log again.
    fn after_recovery(&self) {
        // One that failed by itself says nothing of the log.
        if !self.container.index.is_made() {
            return;
        }
        let Some(counted) = self.container.index.frames() else { return };
        let kept = self.files.with_wal(|wal| {
            wal.keep_lost_behind(counted)?;
            wal.end_recovery(counted)
        });
        let failed = kept.and_then(Result::err);
        self.unkept.set(failed);
        if failed.is_some() {
            self.container.index.take_back();
            self.recovery_failed.set(failed);
        }
    }

    fn before_release(&mut self, mask: c_int) {
        if mask & RECOVER_MASK != 0 {
            self.after_recovery();
        }
        if mask & (READ0_MASK | CKPT_MASK) != 0 {
            self.database.end_checkpoint();
        }
        self.container.transaction.gave_shm(mask);
        if mask & (WRITE_MASK | CKPT_MASK) != 0 {
            self.container.transaction.drop_nonces();
        }
        if mask & WRITE_MASK != 0 {
            self.files.with_wal(WalFile::end_transaction);
            self.container.mark.take();
            self.container.log_chain.ended_write();
        }
        if mask & CKPT_MASK != 0 {
            self.container.log_chain.ended_checkpoint();
        }
    }

    /// Writes the held units before other processes may see the wal-index. No unit that a commit
    /// needs is held then (`WalFile`), so the transaction's next call returns an error of this
    /// write.
    pub fn barrier(&mut self) {
        let _ = self.files.flush_untold();
        let _ = self.database.hand_over();
    }

    /// Seals the database again if its page size changed.
    ///
    /// # Errors
    /// A code.
    pub fn settle(&mut self) -> Outcome<()> {
        self.database.settle()
    }

    /// Notes that a checkpoint begins to write pages.
    pub fn begin_checkpoint(&mut self) {
        self.files.with_wal(WalFile::begin_checkpoint);
        self.database.begin_checkpoint();
    }

    /// Notes that a checkpoint has written its last page.
    pub fn wrote_checkpoint(&mut self) {
        self.database.wrote_checkpoint();
    }

    /// Drops what is known of the file, because it may be stale.
    pub fn forget(&mut self) {
        self.database.forget();
    }
}

impl SqliteFile for MainFile {
    /// Reads at SQLite's offset.
    ///
    /// SQLite takes bytes behind the file's end for zeros. That is right for pages that a
    /// transaction is about to add. It is wrong for pages of a snapshot, so a short read of a
    /// snapshot is an error.
    ///
    /// # Errors
    /// A code.
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        let read = match self.container.is_sealing() {
            false => self.lower.read(buffer, offset),
            true => self.database.read(buffer, offset),
        };
        if read == Ok(ReadEnd::Short) && self.container.is_whole.get() {
            self.container.was_cut.set(true);
            let cause = "the file ends before it, and did not when it was begun to be read";
            let page = Subject::Page((offset / buffer.len().max(1) as u64) as u32 + 1);
            return Err(self.container.report(&Error::corrupt(page, cause)));
        }
        read
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        match self.container.written() {
            Written::Plain => {
                if offset == 0 && self.container.transaction.is_by_backup() {
                    self.container.refuse_copied_over(bytes)?;
                }
                return self.lower.write(bytes, offset);
            }
            Written::Undecided => return self.write_undecided(bytes, offset),
            Written::Sealed => {}
        }
        self.container.check_writable()?;
        self.check_chain(bytes, offset)?;
        self.database.write(bytes, offset)
    }

    fn truncate(&mut self, size: u64) -> Outcome<()> {
        if !self.container.is_sealing() {
            return self.lower.truncate(size);
        }
        self.container.check_writable()?;
        self.database.truncate(size)
    }

    fn sync(&mut self, flags: c_int) -> Outcome<()> {
        if !self.container.is_sealing() {
            return self.lower.sync(flags);
        }
        self.files.flush()?;
        self.database.sync(flags)
    }

    fn size(&mut self) -> Outcome<u64> {
        if !self.container.is_sealing() {
            return self.lower.size();
        }
        self.files.flush()?;
        match self.database.logical_size()? {
            0 => self.container.refuse_cut().map(|()| 0),
            bytes => Ok(bytes),
        }
    }

    fn close(&mut self) -> Outcome<()> {
        let flushed = if self.container.is_sealing() { self.files.flush() } else { Ok(()) };
        let handed_over = self.database.hand_over();
        self.container.close();
        flushed.and(handed_over)
    }
}

const WRITE_MASK: c_int = 1 << ffi::WAL_WRITE_LOCK;
const CKPT_MASK: c_int = 1 << ffi::WAL_CKPT_LOCK;
const READ0_MASK: c_int = 1 << ffi::WAL_READ0_LOCK;
/// All read marks but the first: whoever takes them begins the log anew.
const RESTART_MASK: c_int = 0b11110 << ffi::WAL_READ0_LOCK;
const RECOVER_MASK: c_int = 1 << ffi::WAL_RECOVER_LOCK;

/// What a file is by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileClass {
    Empty,
    /// A plain database, or a file that SQLite itself will refuse.
    Plain,
    Sealed,
}

impl FileClass {
    fn lesser(self) -> Lesser {
        match self {
            FileClass::Empty => Lesser::Empty,
            FileClass::Plain | FileClass::Sealed => Lesser::Plain,
        }
    }
}

fn classify(lower: Lower, size: u64, first: &[u8]) -> Result<FileClass, Error> {
    if size == 0 {
        return Ok(FileClass::Empty);
    }
    if first[..16] == SQLITE_MAGIC[..] {
        return Ok(FileClass::Plain);
    }
    let sector = SectorZero::parse(first);
    // A birth writes the whole header region before sector 0. A shorter file was cut, and its pages
    // with it, so it must not pass for an empty database.
    let whole = size >= REGION_BYTES;
    if whole && matches!(sector, Ok(Some(_))) {
        return Ok(FileClass::Sealed);
    }
    // Sector 0 is of another kind or damaged. The header copies behind it still say what the file
    // is, those of a newer version too.
    if whole {
        match container::ReadHeader::read(lower) {
            Ok(_) => return Ok(FileClass::Sealed),
            Err(Failure::Typed(error @ Error::Unsupported { .. })) => return Err(error),
            Err(_) => {}
        }
    }
    if MediaHeader::begins(first) {
        return Err(Error::wrong_kind(Subject::Container, "a backup, not a database"));
    }
    if first.starts_with(b"Pellucid ") {
        return Err(match sector {
            Err(error) if whole => error,
            _ => truncated(size),
        });
    }
    Ok(FileClass::Plain)
}

/// Makes the error for a file that ends inside its header region.
pub fn truncated(size: u64) -> Error {
    Error::corrupt(
        Subject::Container,
        format!("truncated: {size} of its first {REGION_BYTES} bytes are there"),
    )
}

/// Makes the error for a plain database under `require=sealed` or `PELLUCID_REQUIRE`.
pub fn plain_where_sealed_is_required() -> Error {
    Error::misuse(Subject::Container, "a plain database, where a sealed one is required")
}

fn refuse_plain(class: FileClass, request: &Request) -> Result<(), Error> {
    if request.require {
        return Err(plain_where_sealed_is_required());
    }
    if class == FileClass::Plain && request.names_a_key() {
        if let Some(over) = request.over {
            return Err(over.refuse_in_place());
        }
        return Err(Error::misuse(
            Subject::Container,
            "a key is named, but this is a plain database; encrypt it with `pellucid encrypt`",
        ));
    }
    Ok(())
}

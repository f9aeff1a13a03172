//! The state that the files of one sealed database share in one connection: keys, header, nonces,
//! locks.
//!
//! The database file owns a [`Link`]; its WAL and its journal hold the same one. SQLite serialises
//! all calls of one connection, so plain `Rc` and `RefCell` are enough. No borrow is held across a
//! call that could come back into the shim.

mod first_write;

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pellucid::header::{Header, COPY_BYTES, COPY_OFFSETS, REGION_BYTES};
use pellucid::keys::{ContainerKeys, GENERATION_WRITES};
use pellucid::sector::{
    SectorZero, Wear, SECTOR_BYTES, SQLITE_MAGIC, WEAR_LOG_OFFSET, WEAR_PAGES_OFFSET,
};
use pellucid::unit::{FileKind, Place, TAIL_BYTES};
use pellucid::{Dek, Error, Result, Subject};
use pellucid_files::paths::copy_path;
use pellucid_files::trusted;
use pellucid_host::code::{note, report, Code, Outcome};
use pellucid_host::ffi;
use pellucid_keyring::Pin;

use crate::journal_file::JournalFile;
use crate::laying;
use crate::lost_log;
use crate::lower::{Lower, ReadEnd};
use crate::newcomer;
use crate::pins::{Expectation, Lesser};
use crate::pool::{Pool, WearKind};
use crate::seal_request::{check_state, Birth, Credentials};
use crate::wal_file::WalFile;
use crate::wal_index::WalIndex;

pub use first_write::Written;

/// Bytes of header copy 0 that are compared whenever a lock is taken: magic, version, sequence and
/// file id. The file id is among them because a container may have become plain and then another
/// container.
const HEAD_BYTES: usize = 48;
/// Bytes at the start of sector 0 that name its kind.
const MAGIC_BYTES: usize = 16;
/// Reads of the header before it counts as damaged: another process may be writing it.
const ATTEMPTS: usize = 4;
/// The error's text if the wal-index and a frame's tag disagree: the cause and what to do.
pub const INDEX_CHANGED: &str = "the wal-index (the file `-shm`) was changed by somebody else than SQLite; close every \
                                 connection to the database, and the next one makes the index anew from the log";
/// How long a connection that stays open may go on under a key that was retired meanwhile. Each look is a system call, which a
/// transaction of some 20 us would notice.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
const RESERVE_FIRST: u64 = 64;
const RESERVE_MOST: u64 = 65536;

/// What kind of file the database file is.
#[derive(Debug)]
pub enum Phase {
    /// A plain database, or a file that SQLite will refuse. Its calls go to the lower VFS
    /// unchanged.
    Plain,
    /// An empty file without a request. It is decided under the lock for its first write whether
    /// it becomes a container (`newcomer`).
    New,
    /// An empty file that becomes a container with its first write.
    Unborn(Box<Birth>),
    /// A container with its header on disk.
    Sealed,
}

/// The container's state as last read from its header.
#[derive(Debug)]
struct Container {
    phase: Phase,
    keys: Option<Arc<ContainerKeys>>,
    header: Option<Header>,
    head: [u8; HEAD_BYTES],
    /// Header copy 0 is damaged. [`Link::mend_header`] writes it again once a lock allows it.
    mend: bool,
    /// Header copy 1 differs from copy 0, because a header change was interrupted between the two
    /// writes.
    behind: bool,
    /// Why nothing may be written under this header, by what is expected of it.
    forbidden: Option<&'static str>,
}

/// The state shared by the files of one database in one connection.
#[derive(Debug)]
pub struct Link {
    path: PathBuf,
    credentials: Arc<Credentials>,
    expected: Expectation,
    /// Whether copies of this database are asked to be plain.
    plain_copies: bool,
    /// Whether the file was [`Phase::New`] at open.
    was_new: bool,
    /// The keys of the sealed database because of which the file became [`Phase::Unborn`].
    copied_with: RefCell<Option<Arc<Credentials>>>,
    /// Whether a backup writes over this plain database.
    is_backed_up_over: Cell<bool>,
    container: RefCell<Container>,
    pool: RefCell<Pool>,
    reserve_next: Cell<[u64; 2]>,
    /// When the keyring was last asked whether the key is retired.
    looked: Cell<Option<Instant>>,
    /// Whether a conversion or restore had announced what takes the database's place when the header was read.
    announced: Cell<bool>,
    /// Whether the keyring has seen pages in the file; `None` if it expects nothing here.
    seen_pages: Cell<Option<bool>>,
    /// Whether the WAL or the journal may hold unwritten units or an error, so that [`Link::flush`]
    /// has work.
    holding: Cell<bool>,
    lower: Cell<Option<Lower>>,
    /// Pages opened so far.
    opened: Cell<u64>,
    /// The level of the file lock that this connection holds.
    pub(crate) lock_level: Cell<i32>,
    /// The exclusive locks of the wal-index that this connection holds, one bit each.
    pub(crate) shm_exclusive: Cell<i32>,
    /// The open WAL.
    pub(crate) wal: RefCell<Option<Rc<RefCell<WalFile>>>>,
    /// The wal-index, as far as SQLite has mapped it.
    pub index: WalIndex,
    /// The open rollback journal.
    pub(crate) journal: RefCell<Option<Rc<RefCell<JournalFile>>>>,
    /// The tail of the first record in the journal that this connection ended last and synced.
    pub(crate) journal_end: Cell<Option<[u8; TAIL_BYTES]>>,
    /// Whether this connection reads a state of which every page is in the file. A missing page was
    /// cut off then.
    pub is_whole: Cell<bool>,
    /// Whether SQLite asked for a page that was cut off.
    pub was_cut: Cell<bool>,
}

impl Link {
    /// Makes the link for the database `path`, whose lower file is open.
    ///
    /// # Errors
    /// [`Error::Io`] if no memory can be had for the pool.
    pub fn new(
        path: PathBuf,
        lower: Lower,
        credentials: Credentials,
        phase: Phase,
        expected: Expectation,
        plain_copies: bool,
    ) -> Result<Self> {
        let was_new = matches!(phase, Phase::New);
        let keys = match &phase {
            Phase::Unborn(birth) => Some(birth.keys()?),
            _ => None,
        };
        Ok(Self {
            path,
            credentials: Arc::new(credentials),
            expected,
            plain_copies,
            was_new,
            copied_with: RefCell::new(None),
            is_backed_up_over: Cell::new(false),
            container: RefCell::new(Container {
                phase,
                keys,
                header: None,
                head: [0; HEAD_BYTES],
                mend: false,
                behind: false,
                forbidden: None,
            }),
            pool: RefCell::new(Pool::new()?),
            reserve_next: Cell::new([RESERVE_FIRST; 2]),
            looked: Cell::new(None),
            announced: Cell::new(false),
            seen_pages: Cell::new(None),
            holding: Cell::new(false),
            lower: Cell::new(Some(lower)),
            opened: Cell::new(0),
            lock_level: Cell::new(0),
            shm_exclusive: Cell::new(0),
            wal: RefCell::new(None),
            index: WalIndex::default(),
            journal: RefCell::new(None),
            journal_end: Cell::new(None),
            is_whole: Cell::new(false),
            was_cut: Cell::new(false),
        })
    }

    /// The database's file name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Forgets the lower file, which the caller closes next.
    pub fn close(&self) {
        self.lower.set(None);
        newcomer::withdraw(self.address());
    }

    /// The address of this link, by which `newcomer` and the registry know it.
    pub fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// Logs an error about the database and returns SQLite's code for it.
    pub fn report(&self, error: &Error) -> Code {
        report(&self.path, error)
    }

    /// Logs a line about the database.
    pub fn note(&self, code: i32, what: &str) {
        note(code, &self.path, what);
    }

    /// Whether this file's pages are sealed: it is a container, or becomes one with its first
    /// write.
    pub fn is_sealing(&self) -> bool {
        matches!(self.container.borrow().phase, Phase::Unborn(_) | Phase::Sealed)
    }

    /// Whether the container's header is on disk.
    pub fn is_born(&self) -> bool {
        matches!(self.container.borrow().phase, Phase::Sealed)
    }

    /// Whether the file waits for its first write to become a container.
    pub fn is_unborn(&self) -> bool {
        matches!(self.container.borrow().phase, Phase::Unborn(_))
    }

    /// The page size that the header states. `None` before birth and for a plain file.
    pub fn page_size(&self) -> Option<usize> {
        self.container.borrow().header.as_ref().map(|header| header.page_size as usize)
    }

    /// The keys of the container.
    ///
    /// # Errors
    /// `SQLITE_IOERR` if there are none, because the file is plain.
    pub fn keys(&self) -> Outcome<Arc<ContainerKeys>> {
        self.container.borrow().keys.clone().ok_or(Code(ffi::IOERR))
    }

    /// The keys, or the ways to keys, that this connection was opened with.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The header as last read.
    pub fn header(&self) -> Option<Header> {
        self.container.borrow().header.clone()
    }

    /// Refuses to write if the header has a flag that forbids it to this version, which newer versions
    /// set, or if what is expected of the database forbids it.
    ///
    /// # Errors
    /// `SQLITE_READONLY` after a line in the log that names the unknown flag, or the reason.
    pub fn check_writable(&self) -> Outcome<()> {
        let flags = self.container.borrow().header.as_ref().map(|header| header.flags);
        let checked = flags.map_or(Ok(()), |flags| flags.check_writable(Subject::Container));
        let forbidden = || match self.container.borrow().forbidden {
            Some(why) => Err(Error::misuse(Subject::Container, why)),
            None => Ok(()),
        };
        checked.and_then(|()| forbidden()).map_err(|error| {
            self.note(ffi::READONLY, &error.to_string());
            Code(ffi::READONLY)
        })
    }

    /// Refuses a plain file where a container is expected. Another process may have put it there since it was opened.
    ///
    /// # Errors
    /// A code after a line in the log.
    pub fn refuse_lesser(&self) -> Outcome<()> {
        if self.is_sealing() {
            return Ok(());
        }
        let lower = self.lower()?;
        let hash = || lower.size().ok().and_then(|size| lower.sha256(size));
        self.expected.refuse_plain(Lesser::Plain, hash).map_err(|error| self.report(&error))
    }

    /// Whether commits behind a damaged frame of the log are an error, by the caller's wish.
    pub fn is_strict_about_logs(&self) -> bool {
        self.expected.is_strict_about_logs()
    }

    /// Tells of a damaged log whose rest is kept beside the database, at each opening until that is accepted.
    ///
    /// # Errors
    /// A code, if the caller wishes that.
    fn tell_of_lost_log(&self) -> Outcome<()> {
        if !lost_log::is_kept(&self.path) {
            return Ok(());
        }
        let what = format!(
            "commits of a damaged log do not count and are kept in `{}`: {}",
            lost_log::kept(&self.path)
                .first()
                .map_or_else(String::new, |one| one.display().to_string()),
            lost_log::TO_DO
        );
        if self.is_strict_about_logs() {
            return Err(self.report(&Error::unauthentic(Subject::WalHeader, what)));
        }
        self.note(ffi::NOTICE, &what);
        Ok(())
    }

    /// Takes back what a conversion or restore announced that is not under way any more: it would hold RESERVED.
    fn end_announced(&self) {
        if !self.announced.get() {
            return;
        }
        if let (Ok(pins), Ok(lower)) = (self.expected.pins(), self.lower()) {
            if !lower.is_reserved() {
                self.expected.end_announced(&pins);
            }
        }
    }

    /// Reads the header of a file of `size` bytes that is being opened, and tells what there is to tell of it.
    ///
    /// # Errors
    /// [`Failure`]: of the header, a typed error that is not in the log yet.
    pub fn begin(&self, size: u64) -> std::result::Result<(), Failure> {
        self.load_from(self.lower()?)?;
        self.check_pages(size)?;
        self.tell_of_lost_log()?;
        self.end_announced();
        Ok(())
    }

    /// Refuses a file of `size` bytes that is a header alone, where the keyring has seen pages. Where there are some that it has
    /// not seen yet, it remembers them.
    ///
    /// # Errors
    /// A code after a line in the log.
    fn check_pages(&self, size: u64) -> Outcome<()> {
        let seen = self.seen_pages.get();
        if size > REGION_BYTES {
            if seen != Some(true) && self.expected.expect_pages(&self.path) {
                self.seen_pages.set(Some(true));
            }
            return Ok(());
        }
        // Another process may have made the database meanwhile.
        match self.lower()?.size()? {
            now if now > REGION_BYTES => Ok(()),
            _ => self.expected.refuse_cut().map_err(|error| self.report(&error)),
        }
    }

    /// Refuses a file without a page, where the keyring has seen some. SQLite never cuts a database so, but for one that it takes back as
    /// it is made.
    ///
    /// # Errors
    /// A code after a line in the log.
    pub fn refuse_cut(&self) -> Outcome<()> {
        match self.seen_pages.get() {
            Some(true) => self.expected.refuse_cut().map_err(|error| self.report(&error)),
            _ => Ok(()),
        }
    }

    /// Lets the keyring expect this connection's header at the database's path. The header is on disk.
    pub fn keep(&self) {
        if let (Some(header), Ok(pins)) = (self.header(), self.expected.pins()) {
            self.expected.keep(&header, &pins);
        }
    }

    fn lower(&self) -> Outcome<Lower> {
        self.lower.get().ok_or(Code(ffi::IOERR))
    }

    /// Whether `generation` is newer than the header as last read, so that the header has to be
    /// read again.
    pub fn is_newer(&self, generation: u32) -> bool {
        self.container.borrow().keys.as_ref().is_some_and(|keys| generation > keys.generation())
    }

    /// Counts one unit against its generation, then seals it with `seal`.
    ///
    /// # Errors
    /// A code; no unit was sealed then.
    pub fn seal_with<T>(
        &self,
        kind: WearKind,
        seal: impl FnOnce(&ContainerKeys, &mut Pool) -> Result<T>,
    ) -> Outcome<T> {
        if !self.pool.borrow_mut().take_reserved(kind) {
            self.reserve(kind)?;
            self.pool.borrow_mut().take_reserved(kind);
        }
        let container = self.container.borrow();
        let keys = container.keys.as_ref().ok_or(Code(ffi::IOERR))?;
        seal(keys, &mut self.pool.borrow_mut()).map_err(|error| self.report(&error))
    }

    /// Opens page `page` from `unit` into `content`, which is shorter than the unit by its tail.
    ///
    /// # Errors
    /// `SQLITE_IOERR_DATA` after a line in the log.
    pub fn open_page(&self, page: u32, unit: &[u8], content: &mut [u8]) -> Outcome<()> {
        let opened = self.try_open_page(page, unit, content);
        opened.map_err(|error| self.report(&error))
    }

    /// Like [`Link::open_page`], but returns the typed error and writes no line in the log.
    ///
    /// # Errors
    /// [`Error::Unauthentic`], which names the page.
    pub fn try_open_page(&self, page: u32, unit: &[u8], content: &mut [u8]) -> Result<()> {
        let container = self.container.borrow();
        let Some(keys) = container.keys.as_ref() else {
            return Err(Error::misuse(Subject::Container, "no keys"));
        };
        self.opened.set(self.opened.get() + 1);
        let place = Place::page(keys.file_id(), page);
        keys.open(FileKind::Database, &place, unit, content, || Subject::Page(page))
    }

    /// Whether the database file has page `page` with this content, whose last bytes are those of the tail.
    ///
    /// # Errors
    /// A code, if the file cannot be read.
    pub fn has_page(&self, page: u32, content: &[u8]) -> Outcome<bool> {
        let mut unit = vec![0; content.len()];
        let at = REGION_BYTES + u64::from(page.saturating_sub(1)) * content.len() as u64;
        if self.lower()?.read(&mut unit, at)? == ReadEnd::Short {
            return Ok(false);
        }
        let mut opened = vec![0; content.len() - TAIL_BYTES];
        let opens = self.try_open_page(page, &unit, &mut opened).is_ok();
        Ok(opens && content.starts_with(&opened))
    }

    /// Counts the pages opened so far, for a caller that measures progress.
    pub fn opened(&self) -> u64 {
        self.opened.get()
    }

    /// Whether this connection holds the WAL's write lock.
    pub fn writes_wal(&self) -> bool {
        self.shm_exclusive.get() & (1 << ffi::WAL_WRITE_LOCK) != 0
    }

    /// Draws nonces ahead. Called before the write lock is taken, so that the draw does not
    /// lengthen the lock.
    pub fn draw_nonces(&self) {
        self.pool.borrow_mut().draw_ahead();
    }

    /// Drops the drawn nonces, which must not outlive the write or checkpoint lock.
    pub fn drop_nonces(&self) {
        self.pool.borrow_mut().drop_nonces();
    }

    /// Writes the units that the WAL and the journal hold. The caller returns an error to SQLite.
    ///
    /// # Errors
    /// The failed write's code.
    pub fn flush(&self) -> Outcome<()> {
        let flushed = self.flush_untold();
        if let (Err(_), Some(wal)) = (flushed, self.wal.borrow().as_ref()) {
            if let Ok(mut wal) = wal.try_borrow_mut() {
                wal.tell();
            }
        }
        flushed
    }

    /// Like [`Link::flush`], for callers that cannot return an error to SQLite (unlock, barrier).
    /// The WAL keeps the error, and the transaction's next call returns it.
    ///
    /// # Errors
    /// The failed write's code, in each call until SQLite was given the error or the transaction is
    /// over.
    pub fn flush_untold(&self) -> Outcome<()> {
        if !self.holding.get() {
            return Ok(());
        }
        self.flush_journal()?;
        if let Some(wal) = self.wal.borrow().as_ref() {
            // The WAL is borrowed if it is at work itself and asks for its keys.
            let Ok(mut wal) = wal.try_borrow_mut() else { return Ok(()) };
            wal.flush()?;
        }
        self.holding.set(self.journal.borrow().as_ref().is_some_and(|j| j.try_borrow().is_err()));
        Ok(())
    }

    /// Marks that the WAL or the journal holds a unit, or may have an error to return.
    pub fn holds(&self) {
        self.holding.set(true);
    }

    /// Writes the records that the journal holds. They have to be in the file before the database
    /// file changes.
    ///
    /// # Errors
    /// The failed write's code.
    pub fn flush_journal(&self) -> Outcome<()> {
        if !self.holding.get() {
            return Ok(());
        }
        match self.journal.borrow().as_ref() {
            Some(journal) => journal.try_borrow_mut().map_or(Ok(()), |mut journal| journal.flush()),
            None => Ok(()),
        }
    }

    /// Forgets the WAL's failed write, because its transaction is over.
    pub fn end_transaction(&self) {
        if let Some(wal) = self.wal.borrow().as_ref() {
            if let Ok(mut wal) = wal.try_borrow_mut() {
                wal.end_transaction();
            }
        }
    }

    /// Checks that a checkpoint writes a page to the place that the page's frame is authenticated
    /// for.
    ///
    /// While the log is open SQLite writes to the database file by a checkpoint alone, and reads
    /// each frame right before it writes its page. The wal-index says the place too, but any
    /// process with access to it can change it.
    ///
    /// # Errors
    /// `SQLITE_IOERR_DATA` after a line in the log; the page must not be written then.
    pub fn check_checkpoint(&self, bytes: &[u8], offset: u64) -> Outcome<()> {
        let wal = self.wal.borrow();
        let Some(wal) = wal.as_ref() else { return Ok(()) };
        let page_bytes = self.page_size().ok_or(Code(ffi::IOERR_WRITE))? as u64;
        let number = u32::try_from(offset / page_bytes + 1).unwrap_or(0);
        let is_place = offset % page_bytes == 0 && bytes.len() as u64 == page_bytes;
        if is_place && wal.try_borrow().is_ok_and(|wal| wal.opened_last(number, bytes)) {
            return Ok(());
        }
        Err(self.report(&Error::unauthentic(
            Subject::Page(number),
            format!("a checkpoint would write what no frame of it has: {INDEX_CHANGED}"),
        )))
    }

    /// Refuses a wal-index that states another page size than the log. SQLite computes the places
    /// of frames from it.
    ///
    /// # Errors
    /// `SQLITE_IOERR_DATA` after a line in the log.
    pub fn check_index(&self, page_bytes: usize) -> Outcome<()> {
        match self.index.page_bytes() {
            Some(stated) if stated != page_bytes => {
                let cause = format!("pages of {stated} bytes in its log: {INDEX_CHANGED}");
                Err(self.report(&Error::unauthentic(Subject::Container, cause)))
            }
            _ => Ok(()),
        }
    }

    /// Drops what was read from the log. Called when a lock of the wal-index changes, because the
    /// log may have changed too.
    pub fn forget_log(&self) {
        if let Some(wal) = self.wal.borrow().as_ref() {
            if let Ok(mut wal) = wal.try_borrow_mut() {
                wal.forget();
            }
        }
    }

    /// Keeps the rest of the log aside if a recovery ended before commits without having met damage.
    ///
    /// # Errors
    /// A code.
    pub fn keep_lost_behind(&self, counted: u32) -> Outcome<()> {
        match self.wal.borrow().as_ref() {
            Some(wal) => {
                wal.try_borrow_mut().map_or(Ok(()), |mut wal| wal.keep_lost_behind(counted))
            }
            None => Ok(()),
        }
    }

    /// Starts the kernel's write-out of the log. Called after the WAL's write lock was released.
    pub fn begin_write_out(&self) {
        if let Some(wal) = self.wal.borrow().as_ref() {
            if let Ok(mut wal) = wal.try_borrow_mut() {
                wal.begin_write_out();
            }
        }
    }

    /// Like [`Link::refresh`], but compares the bytes by `mapped` first, which saves a system call.
    /// `mapped` copies bytes of the lower VFS's mapping and returns false if it cannot. The
    /// comparison decides only that nothing changed; in every other case the header is read from
    /// the file.
    ///
    /// # Errors
    /// As [`Link::refresh`].
    pub fn refresh_mapped(&self, mapped: impl Fn(&mut [u8], u64) -> bool) -> Outcome<()> {
        let unchanged = {
            let container = self.container.borrow();
            let (mut magic, mut head) = ([0; MAGIC_BYTES], [0; HEAD_BYTES]);
            matches!(container.phase, Phase::Sealed)
                && mapped(&mut magic, 0)
                && mapped(&mut head, COPY_OFFSETS[0])
                && !SectorZero::begins_laying(&magic)
                && head == container.head
        };
        if unchanged {
            return Ok(());
        }
        self.refresh()
    }

    /// Reads the header again if it changed. Called after a lock was taken; one short read if
    /// nothing changed.
    ///
    /// # Errors
    /// A code if the file is no longer of the kind it was, or its header cannot be opened.
    pub fn refresh(&self) -> Outcome<()> {
        let lower = self.lower()?;
        match self.is_born() {
            true => {
                // One read for both. A file whose decryption was killed in the middle must not be
                // written to.
                let mut start = [0; COPY_OFFSETS[0] as usize + HEAD_BYTES];
                lower.read(&mut start, 0)?;
                if SectorZero::begins_laying(&start) {
                    return Err(self.report(&was_decrypted()));
                }
                if start[COPY_OFFSETS[0] as usize..] == self.container.borrow().head {
                    return Ok(());
                }
            }
            false => {
                let mut sector = [0; SECTOR_BYTES];
                if lower.read(&mut sector, 0)? == ReadEnd::Short && lower.size()? == 0 {
                    self.watch_again();
                    return Ok(());
                }
                match SectorZero::parse(&sector) {
                    Ok(None) if self.is_unborn() && is_unfinished_birth(lower, &sector)? => {
                        return Ok(())
                    }
                    Ok(None) if self.is_unborn() => return self.refuse_plain(),
                    Ok(None) => {
                        self.settle_plain();
                        return Ok(());
                    }
                    Ok(Some(_)) => {}
                    Err(error) => return Err(self.report(&error)),
                }
            }
        }
        self.load()
    }

    fn refuse_plain(&self) -> Outcome<()> {
        Err(self.report(&Error::misuse(
            Subject::Container,
            "another program made a plain database here while a sealed one was asked for; encrypt \
             it with `pellucid encrypt`",
        )))
    }

    /// Reads and authenticates the header.
    ///
    /// # Errors
    /// A code after a line in the log.
    pub fn load(&self) -> Outcome<()> {
        let lower = self.lower()?;
        self.load_from(lower).map_err(|failure| failure.report(&self.path))
    }

    fn load_from(&self, lower: Lower) -> std::result::Result<(), Failure> {
        let _moment = trusted::Moment::begin();
        let known = self.container.borrow().keys.clone();
        let mut read = self.read_whole_header(lower)?;
        let mut attempt = 0;
        let (keys, pins) = loop {
            self.refuse_older(&read.header)?;
            let keys = self
                .credentials
                .unlock(&read.header, &read.bytes, read.copy, known.as_ref())
                .and_then(|keys| Ok((keys, self.expected.check(&read.header)?)));
            attempt += 1;
            match keys {
                // The keyring was read after the header; another process may have changed both in
                // between.
                Err(error) if attempt < ATTEMPTS => {
                    let again = self.read_whole_header(lower)?;
                    if again.bytes == read.bytes {
                        return Err(error.into());
                    }
                    read = again;
                }
                keys => break keys?,
            }
        };
        if read.first_damaged {
            self.note(ffi::CORRUPT, "header copy 0 is damaged; using copy 1");
        }
        if read.sector_damaged {
            self.note(ffi::CORRUPT, "sector 0 is damaged; the header behind it is whole");
        }
        if read.second_behind {
            // The header may not be on disk yet, and the keyring is never ahead of that.
            lower.sync(ffi::SYNC_NORMAL)?;
        }
        self.expected.keep(&read.header, &pins);
        self.note_pins(&pins);
        let forbidden = self.expected.forbids_writing(&read.header)?;
        let mut container = self.container.borrow_mut();
        container.forbidden = forbidden;
        let same = container
            .keys
            .as_ref()
            .is_some_and(|k| k.generation() == keys.generation() && k.file_id() == keys.file_id());
        if !same {
            self.pool.borrow_mut().drop_reserved();
        }
        container.phase = Phase::Sealed;
        container.keys = Some(keys);
        container.header = Some(read.header);
        container.head = read.head;
        container.mend = read.first_damaged;
        container.behind = read.second_behind;
        drop(container);
        self.announce();
        Ok(())
    }

    fn note_pins(&self, pins: &[Pin]) {
        self.announced.set(pins.iter().any(|pin| pin.plain.is_some() || pin.next.is_some()));
        self.seen_pages.set(pins.iter().map(|pin| pin.has_pages).max());
    }

    /// Compares the header with the remembered state again before this connection writes. While the
    /// connection was idle, the header it knows may have become an older one that was put back.
    /// Costs nothing while units are being sealed. Asks the keyring at most each 50 ms whether a rekey has retired the key.
    ///
    /// # Errors
    /// A code after a line in the log.
    pub fn check_remembered(&self) -> Outcome<()> {
        let forbidden = {
            let container = self.container.borrow();
            let Some(header) = &container.header else { return Ok(()) };
            check_state(header).map_err(|error| self.report(&error))?;
            if self.looked.get().is_some_and(|looked| looked.elapsed() < BETWEEN_LOOKS) {
                return Ok(());
            }
            // A rekey of a copy may have retired the key meanwhile.
            self.expected.forbids_writing(header).map_err(|error| self.report(&error))?
        };
        self.looked.set(Some(Instant::now()));
        self.container.borrow_mut().forbidden = forbidden;
        Ok(())
    }

    fn read_whole_header(&self, lower: Lower) -> std::result::Result<ReadHeader, Failure> {
        let mut attempt = 0;
        loop {
            let read = self.read_header(lower)?;
            attempt += 1;
            // Another process may be writing the copy right now.
            if !read.first_damaged || attempt == ATTEMPTS {
                return Ok(read);
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    fn read_header(&self, lower: Lower) -> std::result::Result<ReadHeader, Failure> {
        match ReadHeader::read(lower) {
            Err(Failure::Typed(error)) => {
                let mut magic = [0; 16];
                lower.read(&mut magic, 0)?;
                if magic == *SQLITE_MAGIC {
                    return Err(was_decrypted().into());
                }
                // An unfinished laying has a sealed copy beside it; without that the file is
                // damaged.
                let has_copy = copy_path(self.path()).exists();
                if has_copy && laying::is_unfinished(lower, self.path())? {
                    return Err(was_interrupted().into());
                }
                Err(error.into())
            }
            read => read,
        }
    }

    /// Refuses a header with a lower sequence number than one this connection has read from the
    /// same container.
    fn refuse_older(&self, header: &Header) -> Result<()> {
        let container = self.container.borrow();
        let known = container.header.as_ref().filter(|known| known.file_id == header.file_id);
        match known {
            Some(known) if known.sequence > header.sequence => Err(Error::unauthentic(
                Subject::Container,
                format!(
                    "header {} was put back after header {} was seen",
                    header.sequence, known.sequence
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Makes the container: writes and syncs the header region without sector 0, then sector 0. The
    /// first page follows.
    ///
    /// # Errors
    /// A code; the file is then still empty or an unfinished birth.
    pub fn give_birth(&self, page_size: u32) -> Outcome<()> {
        let lower = self.lower()?;
        let (header, keys) = {
            let container = self.container.borrow();
            let (Phase::Unborn(birth), Some(keys)) = (&container.phase, &container.keys) else {
                return Ok(());
            };
            let header = birth.header(page_size);
            (header.map_err(|error| self.report(&error))?, keys.clone())
        };
        let encoded = header.encode(keys.header_key()).map_err(|error| self.report(&error))?;
        let mut region = vec![0; REGION_BYTES as usize];
        let sector = SectorZero::Sealed { file_id: header.file_id }.encode(page_size);
        region[..SECTOR_BYTES].copy_from_slice(&sector);
        for offset in [WEAR_PAGES_OFFSET, WEAR_LOG_OFFSET] {
            let wear = Wear { generation: header.generation, reserved: RESERVE_MOST };
            let at = offset as usize;
            region[at..at + 64].copy_from_slice(&wear.encode(keys.header_key(), offset));
        }
        for offset in COPY_OFFSETS {
            region[offset as usize..offset as usize + COPY_BYTES].copy_from_slice(&encoded[..]);
        }
        crate::seal_request::remember(&header, &self.path);
        // Sector 0 last: without it the file counts as empty, so a birth can be interrupted
        // anywhere.
        lower.write(&region[SECTOR_BYTES..], SECTOR_BYTES as u64)?;
        lower.sync(ffi::SYNC_NORMAL)?;
        lower.write(&region[..SECTOR_BYTES], 0)?;
        lower.sync(ffi::SYNC_NORMAL)?;
        self.credentials.remember(&encoded, &keys);
        self.expected.put_if_writable(&self.path, &header);
        self.adopt(header, keys, &encoded[..HEAD_BYTES]);
        Ok(())
    }

    fn adopt(&self, header: Header, keys: Arc<ContainerKeys>, head: &[u8]) {
        let mut container = self.container.borrow_mut();
        container.phase = Phase::Sealed;
        container.keys = Some(keys);
        container.header = Some(header);
        container.head.copy_from_slice(head);
        container.mend = false;
        container.behind = false;
        container.forbidden = None;
        drop(container);
        self.announce();
    }

    /// Changes the header and keeps the DEK. The caller holds the locks that a header change needs.
    ///
    /// # Errors
    /// As [`Link::write_header`].
    pub fn change_header(&self, change: impl FnOnce(&mut Header)) -> Outcome<()> {
        let mut header = self.header().ok_or(Code(ffi::IOERR))?;
        change(&mut header);
        let keys = self.keys()?;
        self.write_header(header, keys.dek().ok_or(Code(ffi::IOERR))?)
    }

    /// Writes `header` as the next one, under `dek`: copy 0, sync, copy 1, sync. The caller holds
    /// the locks that a header change needs.
    ///
    /// If copy 1 differs from copy 0, it is first made equal. While copy 0 is being written, copy 1
    /// is the only whole one and has to be the newest.
    ///
    /// # Errors
    /// A code; one copy is then whole and the newest.
    pub fn write_header(&self, mut header: Header, dek: &Dek) -> Outcome<()> {
        let lower = self.lower()?;
        let typed = |error: Error| self.report(&error);
        self.refuse_stale(lower)?;
        self.bring_up_second_copy(lower)?;
        self.name_in_sector_zero(lower)?;
        header.sequence += 1;
        let keys = Arc::new(ContainerKeys::new(&header, dek).map_err(typed)?);
        let encoded = header.encode(keys.header_key()).map_err(typed)?;
        let rekeyed = self.keys()?.dek() != Some(dek);
        if let Err(code) = lower.write(&encoded[..], COPY_OFFSETS[0]) {
            // Copy 0 may be half written, so copy 1 is the newest whole one.
            self.container.borrow_mut().mend = true;
            return Err(code);
        }
        // Every connection now reads copy 0, synced or not, so this one uses it too.
        self.credentials.remember(&encoded, &keys);
        self.adopt(header, keys.clone(), &encoded[..HEAD_BYTES]);
        self.pool.borrow_mut().drop_reserved();
        self.container.borrow_mut().behind = true;
        lower.sync(ffi::SYNC_NORMAL)?;
        lower.write(&encoded[..], COPY_OFFSETS[1])?;
        lower.sync(ffi::SYNC_NORMAL)?;
        self.container.borrow_mut().behind = false;
        if rekeyed {
            self.begin_wear(lower, &keys)?;
        }
        self.name_in_sector_zero(lower)
    }

    /// Refuses to change a header that is no longer the one on disk: a newer header may have keys
    /// that would be lost.
    fn refuse_stale(&self, lower: Lower) -> Outcome<()> {
        let mut head = [0; HEAD_BYTES];
        lower.read(&mut head, COPY_OFFSETS[0])?;
        let container = self.container.borrow();
        // Copy 0 may be anything after this connection's failed write.
        if container.mend || head == container.head {
            return Ok(());
        }
        self.note(ffi::IOERR, "the header changed since it was read, and is left as it is");
        Err(Code(ffi::IOERR))
    }

    /// Writes the container's new file id into sector 0, once both header copies name it. A scan
    /// that changes the file id needs this. Until then the header names the older id that sector 0
    /// may have, so this comes before every header change that makes the header forget that id.
    fn name_in_sector_zero(&self, lower: Lower) -> Outcome<()> {
        let Some(header) = self.header().filter(|header| header.scan.older_id.is_some()) else {
            return Ok(());
        };
        let mut sector = [0; SECTOR_BYTES];
        lower.read(&mut sector, 0)?;
        let named = SectorZero::Sealed { file_id: header.file_id }.encode(header.page_size);
        if sector == named {
            return Ok(());
        }
        lower.write(&named, 0)?;
        lower.sync(ffi::SYNC_NORMAL)
    }

    /// Makes header copy 1 equal to copy 0. They differ when a header change was interrupted
    /// between the two writes.
    ///
    /// # Errors
    /// A code.
    pub fn bring_up_second_copy(&self, lower: Lower) -> Outcome<()> {
        let (header, keys) = {
            let container = self.container.borrow();
            match (&container.header, &container.keys) {
                (Some(_), Some(_)) if !container.behind => return Ok(()),
                (Some(header), Some(keys)) => (header.clone(), keys.clone()),
                _ => return Err(Code(ffi::IOERR)),
            }
        };
        // The process that wrote copy 0 may have been killed before its sync; then only copy 1 is
        // on disk.
        lower.sync(ffi::SYNC_NORMAL)?;
        let encoded = header.encode(keys.header_key()).map_err(|error| self.report(&error))?;
        lower.write(&encoded[..], COPY_OFFSETS[1])?;
        lower.sync(ffi::SYNC_NORMAL)?;
        self.container.borrow_mut().behind = false;
        Ok(())
    }

    /// Writes both wear counts as 0 for a new DEK. The old counts do not authenticate under it, and
    /// each would cost a generation.
    fn begin_wear(&self, lower: Lower, keys: &ContainerKeys) -> Outcome<()> {
        let wear = Wear { generation: keys.generation(), reserved: 0 };
        for offset in [WEAR_PAGES_OFFSET, WEAR_LOG_OFFSET] {
            lower.write(&wear.encode(keys.header_key(), offset), offset)?;
        }
        Ok(())
    }

    /// Writes the damaged header copy 0 again. The caller holds the locks that a header change
    /// needs.
    ///
    /// # Errors
    /// A code.
    pub fn mend_header(&self) -> Outcome<()> {
        let due = self.container.borrow().mend;
        if !due {
            return Ok(());
        }
        self.note(ffi::OK, "writing the damaged header copy again");
        self.change_header(|_| ())
    }

    /// Reserves writes of the current generation in the wear count on disk. Moves to the next
    /// generation if this one is worn.
    fn reserve(&self, kind: WearKind) -> Outcome<()> {
        if !self.is_born() {
            // The birth writes the count that covers these.
            self.pool.borrow_mut().add_reserved(kind, RESERVE_MOST);
            return Ok(());
        }
        let lower = self.lower()?;
        if self.container.borrow().behind {
            // The process that changed the header may have been killed before its sync. No unit may
            // be sealed under a generation that is not on disk.
            lower.sync(ffi::SYNC_NORMAL)?;
        }
        let keys = self.keys()?;
        let offset = match kind {
            WearKind::Pages => WEAR_PAGES_OFFSET,
            WearKind::Log => WEAR_LOG_OFFSET,
        };
        let mut bytes = [0; 64];
        lower.read(&mut bytes, offset)?;
        let mut next = self.reserve_next.get();
        let limit = generation_writes();
        let block = next[kind as usize].min((limit / 4).max(1));
        // A count that cannot be read counts as worn out. A count of a later generation means that
        // an older header came back: a disk lost a write, or somebody put the header back. No
        // generation that was in use is used again from its start.
        let (reserved, known) = match Wear::parse(&bytes, keys.header_key(), offset) {
            Ok(wear) if wear.generation == keys.generation() => (wear.reserved, wear.generation),
            Ok(wear) if wear.generation < keys.generation() => (0, keys.generation()),
            Ok(wear) => (limit, wear.generation),
            Err(_) => (limit, keys.generation()),
        };
        let worn = reserved.saturating_add(block) > limit;
        let rolled = worn && self.with_header_locks(lower, || self.roll_generation(known))?;
        let (keys, used) = if rolled { (self.keys()?, 0) } else { (keys, reserved) };
        let wear = Wear { generation: keys.generation(), reserved: used + block };
        lower.write(&wear.encode(keys.header_key(), offset), offset)?;
        next[kind as usize] = (block * 2).min(RESERVE_MOST);
        self.reserve_next.set(next);
        self.pool.borrow_mut().add_reserved(kind, block);
        Ok(())
    }

    fn roll_generation(&self, from: u32) -> Outcome<()> {
        if from >= u32::MAX - 1 {
            return Err(self.report(&Error::limit(Subject::Container, "no generation is left")));
        }
        self.note(ffi::OK, "moving to the next generation of keys");
        self.change_header(|header| header.generation = from + 1)
    }

    /// Runs `change` if this connection may write the header: under EXCLUSIVE, or with the WAL's
    /// write and checkpoint locks together. If it holds one of those two, it takes the other for
    /// the change.
    ///
    /// Returns false if the locks cannot be had now. The change of a generation can wait, because
    /// the generation changes at 2^30 writes and the limit is 2^32.
    ///
    /// # Errors
    /// A code.
    pub fn with_header_locks(
        &self,
        lower: Lower,
        change: impl FnOnce() -> Outcome<()>,
    ) -> Outcome<bool> {
        if self.lock_level.get() == ffi::LOCK_EXCLUSIVE {
            change()?;
            return Ok(true);
        }
        let held = self.shm_exclusive.get();
        let has = |lock: i32| held & (1 << lock) != 0;
        let missing = match (has(ffi::WAL_WRITE_LOCK), has(ffi::WAL_CKPT_LOCK)) {
            (true, true) => None,
            (true, false) => Some(ffi::WAL_CKPT_LOCK),
            (false, true) => Some(ffi::WAL_WRITE_LOCK),
            (false, false) => return Ok(false),
        };
        let Some(missing) = missing else {
            change()?;
            return Ok(true);
        };
        match lower.shm_lock(missing, 1, ffi::SHM_LOCK | ffi::SHM_EXCLUSIVE) {
            ffi::OK => {}
            ffi::BUSY => return Ok(false),
            code => return Err(Code(code)),
        }
        let changed = change();
        let given_back = lower.shm_lock(missing, 1, ffi::SHM_UNLOCK | ffi::SHM_EXCLUSIVE);
        changed?;
        Code::check(given_back)?;
        Ok(true)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        newcomer::withdraw(self.address());
    }
}

/// Whether a birth was interrupted before it wrote sector 0. The file has no page then.
///
/// # Errors
/// The lower VFS's code.
pub fn is_unfinished_birth(lower: Lower, first: &[u8]) -> Outcome<bool> {
    let blank = first[..SECTOR_BYTES].iter().all(|byte| *byte == 0);
    Ok(blank && (1..=REGION_BYTES).contains(&lower.size()?))
}

/// Whether a wear sector or a header copy follows the blank sector 0, as a birth leaves it. A plain
/// database can begin with zeros too, if a power cut tore its first page; its journal restores that
/// page.
///
/// # Errors
/// The lower VFS's code.
pub fn has_trace_of_birth(lower: Lower) -> Outcome<bool> {
    let mut region = vec![0; REGION_BYTES as usize];
    lower.read(&mut region, 0)?;
    let begins = |offset: u64, magic: &[u8]| region[offset as usize..].starts_with(magic);
    let wear = [WEAR_PAGES_OFFSET, WEAR_LOG_OFFSET];
    Ok(wear.iter().any(|offset| begins(*offset, pellucid::sector::MAGIC_WEAR))
        || COPY_OFFSETS.iter().any(|offset| begins(*offset, pellucid::header::MAGIC)))
}

fn was_interrupted() -> Error {
    Error::misuse(
        Subject::Container,
        "an encryption of it was interrupted while this connection was open; open it again",
    )
}

fn was_decrypted() -> Error {
    Error::misuse(
        Subject::Container,
        "it was decrypted while this connection was open; open it again",
    )
}

fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. })
}

/// Writes allowed under one generation. `PELLUCID_GENERATION_WRITES` can only lower the number.
fn generation_writes() -> u64 {
    std::env::var("PELLUCID_GENERATION_WRITES")
        .ok()
        .and_then(|limit| limit.parse::<u64>().ok())
        .map_or(GENERATION_WRITES, |limit| limit.min(GENERATION_WRITES))
}

/// A code of the lower VFS, or a typed error of this project.
#[derive(Debug)]
pub enum Failure {
    /// The lower VFS returned this code.
    Code(Code),
    /// A typed error that is not in the log yet.
    Typed(Error),
}

impl Failure {
    /// The code for SQLite, after a line in the log about `path`.
    pub fn report(self, path: &Path) -> Code {
        match self {
            Failure::Code(code) => code,
            Failure::Typed(error) => report(path, &error),
        }
    }
}

impl From<Code> for Failure {
    fn from(code: Code) -> Self {
        Failure::Code(code)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Typed(error)
    }
}

/// The newest whole header copy of a file.
#[derive(Debug)]
pub struct ReadHeader {
    pub header: Header,
    pub bytes: Box<[u8; COPY_BYTES]>,
    pub copy: u8,
    pub first_damaged: bool,
    /// Copy 0 is the newest, and copy 1 is damaged or differs from it.
    pub second_behind: bool,
    pub sector_damaged: bool,
    pub head: [u8; HEAD_BYTES],
}

impl ReadHeader {
    /// Reads sector 0 and both header copies from the file.
    ///
    /// # Errors
    /// The fault of sector 0 or, if no copy is whole, of copy 0.
    pub fn read(lower: Lower) -> std::result::Result<Self, Failure> {
        let mut region = vec![0; REGION_BYTES as usize];
        lower.read(&mut region, 0)?;
        Ok(Self::from_region(&region)?)
    }

    /// Parses sector 0 and both header copies from the bytes of the header region.
    ///
    /// # Errors
    /// As [`ReadHeader::read`].
    pub fn from_region(region: &[u8]) -> Result<Self> {
        let sector = SectorZero::parse(&region[..SECTOR_BYTES]);
        let copies = COPY_OFFSETS.map(|at| &region[at as usize..at as usize + COPY_BYTES]);
        let parsed = [Header::parse(copies[0], 0), Header::parse(copies[1], 1)];
        let first_damaged = matches!(parsed[0], Err(Error::Corrupt { .. }));
        let (header, copy) = match parsed {
            [Ok(first), Ok(second)] if second.sequence > first.sequence => (second, 1),
            [Ok(first), Ok(_) | Err(Error::Corrupt { .. })] => (first, 0),
            [Err(Error::Corrupt { .. }), Ok(second)] => (second, 1),
            // A whole copy that this version cannot read is an error, whatever the other copy says.
            [Err(Error::Corrupt { .. }), Err(error)] if !is_damage(&error) => return Err(error),
            [Ok(_), Err(error)] | [Err(error), _] => return Err(error),
        };
        let sector_damaged = match sector {
            Ok(Some(SectorZero::Sealed { file_id })) => {
                // A scan that changes the file id names the older one in the header first.
                if file_id != header.file_id && Some(file_id) != header.scan.older_id {
                    return Err(Error::corrupt(
                        Subject::SectorZero,
                        "it names another file id than the header",
                    ));
                }
                false
            }
            Err(error @ Error::Unsupported { .. }) => return Err(error),
            _ => true,
        };
        let second_behind = copy == 0 && copies[0] != copies[1];
        let mut bytes = Box::new([0; COPY_BYTES]);
        bytes.copy_from_slice(copies[usize::from(copy)]);
        let mut head = [0; HEAD_BYTES];
        head.copy_from_slice(&copies[0][..HEAD_BYTES]);
        Ok(Self { header, bytes, copy, first_damaged, second_behind, sector_damaged, head })
    }
}

//! A sealed database as one connection knows it: keys, header, wear, and what is expected at its path.
//!
//! The database file, its WAL and its journal share a [`Container`]. SQLite serialises all calls of one connection, so plain
//! `Rc` and `RefCell` are enough. No borrow is held across a call that could come back into the shim.

mod change;
mod expected;
mod first_write;
mod load;
mod log_sector;
mod read_header;
mod version;
mod wear;

use std::cell::{Cell, Ref, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use pellucid::header::{Header, COPY_OFFSETS, REGION_BYTES};
use pellucid::keys::ContainerKeys;
use pellucid::log_archive::Mark;
use pellucid::log_sector::{LogSector, LOG_SECTOR_BYTES};
use pellucid::sector::{SectorZero, SECTOR_BYTES};
use pellucid::unit::{FileKind, Place, TAIL_BYTES};
use pellucid::{Error, Result, Subject};
use pellucid_host::code::{note, report, Code, Outcome};
use pellucid_host::ffi;
use pellucid_host::over::Over;

use crate::log_chain::LogChain;
use crate::lower::{Lower, ReadEnd};
use crate::newcomer;
use crate::pins::Expectation;
use crate::seal_request::{Birth, Credentials};
use crate::transaction::Transaction;
use crate::wal_index::WalIndex;
use crate::witness;

use load::was_decrypted;
use wear::RESERVE_FIRST;

pub use first_write::Written;
pub use read_header::{has_trace_of_birth, is_unfinished_birth, Failure, ReadHeader};

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
struct State {
    phase: Phase,
    keys: Option<Arc<ContainerKeys>>,
    header: Option<Header>,
    head: [u8; HEAD_BYTES],
    /// Header copy 0 is damaged. [`Container::mend_header`] writes it again once a lock allows it.
    mend: bool,
    /// Header copy 1 differs from copy 0, because a header change was interrupted between the two
    /// writes.
    behind: bool,
    /// Why nothing may be written under this header, by what is expected of it.
    forbidden: Option<&'static str>,
}

/// A database of one connection, sealed or not.
#[derive(Debug)]
pub struct Container {
    path: PathBuf,
    lower: Cell<Option<Lower>>,
    credentials: Arc<Credentials>,
    expected: Expectation,
    /// The lower VFS, if it was named.
    over: Option<&'static Over>,
    /// Whether copies of this database are asked to be plain.
    plain_copies: bool,
    /// Whether the file was [`Phase::New`] at open.
    was_new: bool,
    /// The keys of the sealed database because of which the file became [`Phase::Unborn`].
    copied_with: RefCell<Option<Arc<Credentials>>>,
    state: RefCell<State>,
    /// Writes that are reserved with the next block, of pages and of the log.
    reserve_next: Cell<[u64; 2]>,
    /// When the keyring was last asked whether the key is retired.
    looked: Cell<Option<Instant>>,
    /// Whether a conversion or restore had announced what takes the database's place when the header was read.
    announced: Cell<bool>,
    /// Whether the keyring has seen pages in the file; `None` if it expects nothing here.
    seen_pages: Cell<Option<bool>>,
    /// Sector 2 as it was read or written last under the current key, and what it says.
    sector: RefCell<Option<([u8; LOG_SECTOR_BYTES], LogSector)>>,
    /// Pages opened so far.
    opened: Cell<u64>,
    /// What this connection has under way.
    pub transaction: Transaction,
    /// The wal-index, as far as SQLite has mapped it.
    pub index: WalIndex,
    /// Whether this connection only seals pages anew: a scan's.
    pub reseals: Cell<bool>,
    /// Whether this connection leaves the journal mode WAL although there is a chain of log backups, because another database takes
    /// the place of this one.
    pub leaves_wal: Cell<bool>,
    /// The mark of the commit of the transaction under way. It goes with the write lock.
    pub mark: RefCell<Option<Mark>>,
    /// What the chain of log backups has refused to this connection.
    pub log_chain: LogChain,
    /// Whether this connection reads a state of which every page is in the file. A missing page was
    /// cut off then.
    pub is_whole: Cell<bool>,
    /// Whether SQLite asked for a page that was cut off.
    pub was_cut: Cell<bool>,
}

impl Container {
    /// Makes the container of the database `path`, whose lower file is open.
    ///
    /// # Errors
    /// [`Error::Io`] if no memory can be had for the pool.
    pub fn new(
        path: PathBuf,
        lower: Lower,
        credentials: Credentials,
        phase: Phase,
        expected: Expectation,
        (plain_copies, over): (bool, Option<&'static Over>),
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
            over,
            plain_copies,
            was_new,
            copied_with: RefCell::new(None),
            state: RefCell::new(State {
                phase,
                keys,
                header: None,
                head: [0; HEAD_BYTES],
                mend: false,
                behind: false,
                forbidden: None,
            }),
            reserve_next: Cell::new([RESERVE_FIRST; 2]),
            looked: Cell::new(None),
            announced: Cell::new(false),
            seen_pages: Cell::new(None),
            lower: Cell::new(Some(lower)),
            sector: RefCell::new(None),
            opened: Cell::new(0),
            transaction: Transaction::new()?,
            index: WalIndex::default(),
            reseals: Cell::new(false),
            leaves_wal: Cell::new(false),
            mark: RefCell::new(None),
            log_chain: LogChain::default(),
            is_whole: Cell::new(false),
            was_cut: Cell::new(false),
        })
    }

    /// The database's file name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The lower VFS, if it is one that was named and not the platform's.
    pub fn over(&self) -> Option<&'static Over> {
        self.over
    }

    /// Forgets the lower file, which the caller closes next.
    pub fn close(&self) {
        self.lower.set(None);
        newcomer::withdraw(self.address());
    }

    /// The address of this container, by which `newcomer` and the registry know it.
    pub fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// Logs an error about the database and returns SQLite's code for it.
    pub fn report(&self, error: &Error) -> Code {
        report(&self.path, error)
    }

    /// Whether the database may be as new as the keyring knows it.
    ///
    /// # Errors
    /// Those of [`witness::assert_fresh`].
    pub fn assert_fresh(&self) -> Result<()> {
        let keys = self.state.borrow().keys.clone();
        let state = witness::assert_fresh(&self.path, self.chain(), keys.as_deref())?;
        // Whether a log is there is not looked at: then it is the live run's.
        match self.is_behind(&state, Some(state.live.salts)) {
            Ok(false) => Ok(()),
            _ => Err(Error::misuse(
                Subject::Container,
                "it is older than its archive of logs: somebody put it back; `pellucid check --against MEDIA` names the pages",
            )),
        }
    }

    /// Logs a line about the database.
    pub fn note(&self, code: i32, what: &str) {
        note(code, &self.path, what);
    }

    /// Whether this file's pages are sealed: it is a container, or becomes one with its first
    /// write.
    pub fn is_sealing(&self) -> bool {
        matches!(self.state.borrow().phase, Phase::Unborn(_) | Phase::Sealed)
    }

    /// Whether the container's header is on disk.
    pub fn is_born(&self) -> bool {
        matches!(self.state.borrow().phase, Phase::Sealed)
    }

    /// Whether the file waits for its first write to become a container.
    pub fn is_unborn(&self) -> bool {
        matches!(self.state.borrow().phase, Phase::Unborn(_))
    }

    /// The page size that the header states. `None` before birth and for a plain file.
    pub fn page_size(&self) -> Option<usize> {
        self.state.borrow().header.as_ref().map(|header| header.page_size as usize)
    }

    /// The keys of the container.
    ///
    /// # Errors
    /// `SQLITE_IOERR` if there are none, because the file is plain.
    pub fn keys(&self) -> Outcome<Arc<ContainerKeys>> {
        self.state.borrow().keys.clone().ok_or(Code(ffi::IOERR))
    }

    /// The keys, or the ways to keys, that this connection was opened with.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The header as last read.
    pub fn header(&self) -> Option<Header> {
        self.state.borrow().header.clone()
    }

    /// Whether the header, as last read, asks for a wal-index in the machine's memory.
    pub fn has_index_in_memory(&self) -> bool {
        let state = self.state.borrow();
        let second = state.header.as_ref().and_then(|header| header.second.as_ref());
        second.is_some_and(|second| second.index_in_memory)
    }

    /// The recovery fork, if each commit goes into a chain of log backups.
    pub fn chain(&self) -> Option<[u8; 16]> {
        let state = self.state.borrow();
        let second = state.header.as_ref().and_then(|header| header.second.as_ref())?;
        second.keeps_log().then_some(second.fork)
    }

    /// Refuses to write if the header has a flag that forbids it to this version, which newer versions
    /// set, or if what is expected of the database forbids it.
    ///
    /// # Errors
    /// `SQLITE_READONLY` after a line in the log that names the unknown flag, or the reason.
    pub fn check_writable(&self) -> Outcome<()> {
        let check = |header: &Header| match self.expected.obeys_marks() {
            true => header.check_writable(),
            false => header.flags.check_writable(Subject::Container),
        };
        let checked = self.state.borrow().header.as_ref().map_or(Ok(()), check);
        let forbidden = || match self.state.borrow().forbidden {
            Some(why) => Err(Error::misuse(Subject::Container, why)),
            None => Ok(()),
        };
        checked.and_then(|()| forbidden()).map_err(|error| {
            self.note(ffi::READONLY, &error.to_string());
            Code(ffi::READONLY)
        })
    }

    /// Whether SQLite repeats a commit's last frame to the end of a sector. It asks the database's file.
    pub fn pads(&self) -> bool {
        let promises = self.lower.get().map_or(0, |lower| lower.device_characteristics());
        promises & ffi::IOCAP_POWERSAFE_OVERWRITE == 0
    }

    pub(crate) fn lower(&self) -> Outcome<Lower> {
        self.lower.get().ok_or(Code(ffi::IOERR))
    }

    /// Whether `generation` is newer than the header as last read, so that the header has to be
    /// read again.
    pub fn is_newer(&self, generation: u32) -> bool {
        self.state.borrow().keys.as_ref().is_some_and(|keys| generation > keys.generation())
    }

    /// Opens page `page` from `unit` into `content`, which is shorter than the unit by its tail.
    ///
    /// # Errors
    /// `SQLITE_IOERR_DATA` after a line in the log.
    pub fn open_page(&self, page: u32, unit: &[u8], content: &mut [u8]) -> Outcome<()> {
        let opened = self.try_open_page(page, unit, content);
        opened.map_err(|error| self.report(&error))
    }

    /// Opens page `page` in its own place: its content takes the ciphertext's place, and its tail becomes zeros.
    ///
    /// # Errors
    /// `SQLITE_IOERR_DATA` after a line in the log; all of `unit` is zeroed then.
    pub fn open_page_in_place(&self, page: u32, unit: &mut [u8]) -> Outcome<()> {
        let opened = self.keys_to_open().and_then(|keys| {
            let place = Place::page(keys.file_id(), page);
            keys.open_in_place(FileKind::Database, &place, unit, || Subject::Page(page))
        });
        opened.map_err(|error| {
            unit.fill(0);
            self.report(&error)
        })
    }

    /// Like [`Container::open_page`], but returns the typed error and writes no line in the log.
    ///
    /// # Errors
    /// [`Error::Unauthentic`], which names the page.
    pub fn try_open_page(&self, page: u32, unit: &[u8], content: &mut [u8]) -> Result<()> {
        let keys = self.keys_to_open()?;
        let place = Place::page(keys.file_id(), page);
        keys.open(FileKind::Database, &place, unit, content, || Subject::Page(page))
    }

    /// The keys, to open one more page.
    fn keys_to_open(&self) -> Result<Ref<'_, ContainerKeys>> {
        self.opened.set(self.opened.get() + 1);
        Ref::filter_map(self.state.borrow(), |state| state.keys.as_deref())
            .map_err(|_| Error::misuse(Subject::Container, "no keys"))
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

    /// Like [`Container::refresh`], but compares the bytes by `mapped` first, which saves a system call.
    /// `mapped` copies bytes of the lower VFS's mapping and returns false if it cannot. The
    /// comparison decides only that nothing changed; in every other case the header is read from
    /// the file.
    ///
    /// # Errors
    /// As [`Container::refresh`].
    pub fn refresh_mapped(&self, mapped: impl Fn(&mut [u8], u64) -> bool) -> Outcome<()> {
        let unchanged = {
            let state = self.state.borrow();
            let (mut magic, mut head) = ([0; MAGIC_BYTES], [0; HEAD_BYTES]);
            matches!(state.phase, Phase::Sealed)
                && mapped(&mut magic, 0)
                && mapped(&mut head, COPY_OFFSETS[0])
                && !SectorZero::begins_laying(&magic)
                && head == state.head
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
                if start[COPY_OFFSETS[0] as usize..] == self.state.borrow().head {
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
}

impl Drop for Container {
    fn drop(&mut self) {
        newcomer::withdraw(self.address());
    }
}

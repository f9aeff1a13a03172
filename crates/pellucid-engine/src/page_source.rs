//! Authenticated pages of a sealed database, in the state in which SQLite would read them, but
//! without SQLite: a damaged page costs only itself.
//!
//! A page comes from the WAL if a frame of it counts, else from a hot journal, else from the file.
//! Nothing is written: an interrupted transaction is not rolled back either. While it is open,
//! locks keep the pages as they are: a read transaction if other processes may use a WAL, else
//! SHARED.

mod journal;
mod log;
mod lost;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::header::{Header, REGION_BYTES};
use pellucid::shown::Shown;
use pellucid::sqlite::{lock_page, Source};
use pellucid::unit::TAIL_BYTES;
use pellucid::{Error, Subject};
use pellucid_files::paths::beside;
use pellucid_host::code::{Code, Outcome};
use pellucid_host::connection::{uri, Handle};
use pellucid_host::ffi;
use pellucid_host::patience::Patience;
use pellucid_host::DatabaseError;
use pellucid_vfs::open_file::OpenFile;
use pellucid_vfs::opened::OpenContainer;
use pellucid_vfs::seal_request::Birth;
use pellucid_vfs::ReadEnd;

use crate::header_change::busy;
use crate::units::catch_up;

pub use journal::has_dead_pages_in_clear;
pub(crate) use journal::HotJournal;
use log::Log;
use lost::LostLog;
pub use lost::Taken;

/// How long to wait for a connection that has the database locked for itself.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);
/// Reads of a page before it counts as damaged, because it may be half written while it is read.
const ATTEMPTS: usize = 5;
/// The multiple of the file's pages up to which the missing pages of a cut file are listed one by
/// one. Up to [`COUNTED_LEAST`] pages they always are. A damaged count must not cost memory for
/// 2^32 pages.
const BEHIND: u32 = 8;
const COUNTED_LEAST: u32 = 65_536;

/// The pages of one database.
#[derive(Debug)]
pub struct Pages {
    path: PathBuf,
    open: OpenContainer,
    page_bytes: usize,
    pages: u32,
    log: Option<Log>,
    /// A log that SQLite did not count, where the caller wants its commits.
    lost: Option<LostLog>,
    journal: Option<HotJournal>,
    damage: RefCell<BTreeMap<u32, String>>,
    /// The page count of the last commit, if it is too large for the missing pages to be listed.
    too_many: Option<u32>,
}

impl Pages {
    /// Opens the sealed database at `path` to read its pages one by one.
    ///
    /// # Errors
    /// [`DatabaseError`] if there is no key or no whole header, or another connection has the
    /// database for itself.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        Self::open_with(path, None)
    }

    /// Like [`Pages::open`], with the pages of the commits in `lost_log`, the rest of a damaged log of this database, before those of
    /// the database: the state at the end of that log, as far as it opens.
    ///
    /// # Errors
    /// As [`Pages::open`]; [`DatabaseError`] if no commit in that log opens with the database's key.
    pub fn open_with(path: &Path, lost_log: Option<&Path>) -> Result<Self, DatabaseError> {
        let handle =
            Handle::open(path, &uri(path, "vfs=pellucid&require=container"), ffi::OPEN_READONLY)?;
        handle.busy_timeout(PATIENCE.as_millis() as std::ffi::c_int);
        let open = OpenContainer::of(handle)?.ok_or_else(|| {
            Error::misuse(Subject::File(path.to_owned()), "not an encrypted database")
        })?;
        let (lower, container) = (open.file(), open.container());
        let in_transaction = beside(path, "-shm").exists() && begins(open.handle())?;
        if !in_transaction {
            lock(path, lower)?;
        }
        // Reads must not use a mapping that SQLite's own reads may have made.
        lower.drop_mapping();
        let page_bytes = container.page_size().unwrap_or(4096);
        let failed = |code: Code| io(path, code);
        let journal = match in_transaction || lower.is_reserved() {
            true => None,
            false => HotJournal::open(&beside(path, "-journal"), container)?,
        };
        let log = Log::open(&beside(path, "-wal"), container, page_bytes)?;
        let lost = lost_log.map(|lost| LostLog::open(lost, container, page_bytes)).transpose()?;
        let mut found = Self {
            path: path.to_owned(),
            open,
            page_bytes,
            pages: u32::MAX,
            log,
            lost,
            journal,
            damage: RefCell::default(),
            too_many: None,
        };
        let in_file = found.in_file().map_err(failed)?;
        let counted = found.count(in_file);
        let known =
            [found.log.as_ref().map(Log::last), found.journal.as_ref().map(HotJournal::last)];
        let lost = found.lost.as_ref().map(|lost| lost.log.last());
        let last = known.into_iter().chain([lost]).flatten().fold(in_file, u32::max);
        found.pages = counted.min(last.saturating_mul(BEHIND).max(COUNTED_LEAST));
        found.too_many = (found.pages < counted).then_some(counted);
        found.damage.borrow_mut().clear();
        Ok(found)
    }

    /// The number of pages that the file has room for.
    fn in_file(&self) -> Outcome<u32> {
        let size = self.open.file().size()?.saturating_sub(REGION_BYTES);
        Ok(size.div_ceil(self.page_bytes as u64).min(u64::from(u32::MAX - 1)) as u32)
    }

    /// The number of pages of the database: from its last commit, or from the length of the file.
    fn count(&self, in_file: u32) -> u32 {
        let lost = self.lost.as_ref().and_then(|lost| lost.log.pages());
        let committed = lost.or(self.log.as_ref().and_then(Log::pages));
        if let Some(pages) = committed.or(self.journal.as_ref().map(HotJournal::pages)) {
            return pages;
        }
        // The count in SQLite's header is valid if it has this change counter (SQLite file format,
        // 1.3.8).
        let Ok(first) = self.read(1) else { return in_file };
        let word = |at: usize| first.get(at..at + 4).and_then(|b| b.try_into().ok());
        let number = |at| word(at).map_or(0, u32::from_be_bytes);
        if number(24) == number(92) && number(28) != 0 {
            number(28)
        } else {
            in_file
        }
    }

    /// The header, authenticated under the key.
    ///
    /// # Errors
    /// [`DatabaseError`], in practice never.
    pub fn header(&self) -> Result<Header, DatabaseError> {
        self.open.container().header().ok_or_else(|| io(&self.path, Code(ffi::IOERR)))
    }

    /// Makes the birth of another container under the same protectors. Returns also an error for
    /// each protector that could not be made again.
    ///
    /// # Errors
    /// [`DatabaseError`] if no protector could be made.
    pub fn birth(&self) -> Result<(Birth, Vec<Error>), DatabaseError> {
        Ok(Birth::like(&self.header()?, self.open.container().credentials())?)
    }

    /// The damaged pages among those that were read, each with its cause.
    pub fn damage(&self) -> BTreeMap<u32, String> {
        self.damage.borrow().clone()
    }

    /// Remarks about damage of the WAL or the journal that loses commits, and about a page count
    /// that cannot be right.
    pub fn remarks(&self) -> Vec<String> {
        let log = self.log.as_ref().and_then(Log::remark);
        let journal = self.journal.iter().flat_map(HotJournal::remarks);
        let too_many = self.too_many.map(|counted| {
            format!(
                "the database says that it has {counted} pages: those behind page {} are not there",
                self.pages
            )
        });
        let lost = self.lost.iter().flat_map(LostLog::remarks);
        log.into_iter().chain(lost).chain(journal).chain(too_many).collect()
    }

    /// What was taken out of a log that SQLite did not count, where the caller wanted that.
    pub fn taken(&self) -> Option<Taken> {
        self.lost.as_ref().map(LostLog::taken)
    }

    fn read(&self, number: u32) -> Result<Vec<u8>, String> {
        let lost = self.lost.as_ref();
        if let Some(found) = lost.and_then(|log| log.page(self.open.container(), number)) {
            return found;
        }
        if let Some(found) =
            self.log.as_ref().and_then(|log| log.page(self.open.container(), number))
        {
            return found;
        }
        if let Some(found) =
            self.journal.as_ref().and_then(|j| j.page(self.open.container(), number))
        {
            return found;
        }
        self.read_file(number)
    }

    fn read_file(&self, number: u32) -> Result<Vec<u8>, String> {
        let mut unit = vec![0; self.page_bytes];
        let mut content = vec![0; self.page_bytes - TAIL_BYTES];
        let at = REGION_BYTES + u64::from(number - 1) * self.page_bytes as u64;
        let mut cause = String::new();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
            match self.open.file().read(&mut unit, at) {
                Ok(ReadEnd::Full) => {}
                Ok(ReadEnd::Short) => {
                    return Err(format!("page {number}: the file ends before it"))
                }
                Err(Code(code)) => {
                    cause = format!("page {number}: cannot be read (SQLite code {code})");
                    continue;
                }
            }
            catch_up(self.open.container(), &unit);
            match self.open.container().try_open_page(number, &unit, &mut content) {
                Ok(()) => return Ok(content),
                Err(error) => cause = error.to_string(),
            }
        }
        Err(cause)
    }
}

impl Source for Pages {
    fn pages(&self) -> u32 {
        self.pages
    }

    fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    fn page(&self, number: u32) -> Option<Vec<u8>> {
        let is_one = (1..=self.pages).contains(&number) && number != lock_page(self.page_bytes);
        if !is_one || self.damage.borrow().contains_key(&number) {
            return None;
        }
        self.read(number)
            .map_err(|cause| {
                self.damage.borrow_mut().insert(number, cause);
            })
            .ok()
    }
}

/// Whether a read transaction can be begun. A page that it needs may be damaged.
fn begins(handle: &Handle<'_>) -> Result<bool, DatabaseError> {
    match handle.run("BEGIN").and_then(|()| handle.run("SELECT 1 FROM sqlite_schema")) {
        Ok(()) => Ok(true),
        Err(error) if Handle::is_busy(&error) => Err(error),
        Err(_) => Ok(false),
    }
}

fn lock(path: &Path, lower: OpenFile<'_>) -> Result<(), DatabaseError> {
    let patience = Patience::new(PATIENCE, PAUSE);
    loop {
        match lower.lock(ffi::LOCK_SHARED) {
            Ok(()) => return Ok(()),
            Err(Code(code)) if code & 0xff != ffi::BUSY => return Err(io(path, Code(code))),
            Err(_) if patience.wait() => {}
            Err(_) => return Err(busy(path)),
        }
    }
}

fn io(path: &Path, code: Code) -> DatabaseError {
    DatabaseError::Sqlite {
        file: path.shown().to_string(),
        code: code.0,
        message: "cannot be read".to_owned(),
    }
}

//! One moment of a database, page by page: what a backup reads.
//!
//! A read transaction is held meanwhile. In WAL mode nobody notices; in the other modes nobody commits, so that
//! whoever needs long has to copy the pages first ([`crate::set::Spool`]).

use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::header::{Header, REGION_BYTES};
use pellucid::lsn::Lsn;
use pellucid::shown::Shown;
use pellucid::unit::{generation, TAIL_BYTES};
use pellucid::{Error, Result, Subject};
use pellucid_engine::header_change::in_use;
use pellucid_engine::log_chain;
use pellucid_engine::look::look;
use pellucid_host::code::Code;
use pellucid_host::connection::{uri, Handle};
use pellucid_host::ffi;
use pellucid_host::patience::Patience;
use pellucid_host::statement::Prepared;
use pellucid_host::{DatabaseError, Options};
use pellucid_vfs::opened;
use pellucid_vfs::ReadEnd;

use crate::set::PageSource;

/// Pages SQLite keeps for itself while all are read once: few.
const CACHE_PAGES: &str = "PRAGMA cache_size = 50";
const RETRY: Duration = Duration::from_millis(1);
const PAGE: &str = "SELECT data FROM sqlite_dbpage WHERE pgno = ?1";
/// A checkpoint may be writing page 1 while it is read.
const ATTEMPTS: usize = 16;
/// What no commit and no checkpoint changes in page 1 while somebody reads in WAL mode: page size, reserve, schema format
/// and encoding (SQLite file format, 1.3).
const LASTING: [std::ops::Range<usize>; 4] = [0..18, 20..24, 44..48, 56..60];
/// What only grows: change counter and schema cookie.
const GROWING: [usize; 2] = [24, 40];

/// A database in a read transaction.
#[derive(Debug)]
pub struct Snapshot {
    handle: Handle<'static>,
    path: PathBuf,
    page_size: u32,
    pages: u32,
    wal: bool,
    /// Page 1 of it, and as it lay in the file when it was begun: a checkpoint may have been behind.
    first: Vec<u8>,
    first_in_file: Option<Vec<u8>>,
}

impl Snapshot {
    /// Begins it. A transaction that was interrupted is rolled back first, as by any program that opens the database.
    ///
    /// # Errors
    /// [`DatabaseError`] if it cannot be read.
    pub fn begin(path: &Path, timeout: Duration) -> std::result::Result<Self, DatabaseError> {
        // SQLite's own waiting sleeps longer and longer: a writer that never rests would starve it.
        let patience = Patience::new(timeout, RETRY);
        let handle = loop {
            match attempt(path) {
                Err(error) if Handle::is_busy(&error) && patience.wait() => {}
                attempted => break attempted.map_err(|error| in_use(path, error))?,
            }
        };
        let page_size = handle.number("PRAGMA page_size")?.try_into().unwrap_or(0);
        let pages = handle.number("PRAGMA page_count")?.try_into().unwrap_or(0);
        let wal = handle.text("PRAGMA journal_mode")? == "wal";
        let (first, first_in_file) = (Vec::new(), None);
        let path = path.to_owned();
        let mut begun = Self { handle, path, page_size, pages, wal, first, first_in_file };
        if pages > 0 {
            if let Some((_, container)) = opened::main(&begun.handle)? {
                container.is_whole.set(true);
            }
            let mut first = vec![0; page_size as usize];
            begun.reader()?.read_page(1, &mut first)?;
            begun.first = first;
            // Damaged there, it may be whole in the log, and then nothing tells later whose it is.
            begun.first_in_file = begun.first_now().ok();
        }
        Ok(begun)
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> u32 {
        self.page_size
    }

    /// Pages of the database.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Whether writers go on: the database is in WAL mode.
    pub fn lets_write(&self) -> bool {
        self.wal
    }

    /// The header of a sealed database as it is while this is held; none of a plain one. Read through the file object that
    /// holds the locks.
    ///
    /// # Errors
    /// [`DatabaseError`] if it cannot be read.
    pub fn sealed_header(&self) -> std::result::Result<Option<Header>, DatabaseError> {
        let Some((_, container)) = opened::sealed(&self.handle)? else {
            return Ok(None);
        };
        // In WAL mode somebody may have changed who opens it since the transaction began.
        let failed = |Code(code): Code| DatabaseError::Sqlite {
            file: self.path.shown().to_string(),
            code,
            message: "its header cannot be read".to_owned(),
        };
        container.refresh().map_err(failed)?;
        Ok(Some(container.header().ok_or(failed(Code(ffi::IOERR)))?))
    }

    /// The last commit of its chain of log backups, which is not before this snapshot, once it is on disk. None where there is no
    /// chain.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn moment(&self) -> std::result::Result<Option<Lsn>, DatabaseError> {
        log_chain::hand_out(&self.path, &self.handle)
    }

    /// Whether the file still is the one that the snapshot is of. Locks keep SQLite from changing it under a reader; what
    /// copies another file over it asks for none, and a plain page of that tells nobody where it comes from.
    ///
    /// In rollback mode every commit changes page 1, and none can be made meanwhile. In WAL mode a checkpoint may bring
    /// page 1 as far as this snapshot, and no further; an older state of the same database that has the same page 1 is not
    /// told from it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] naming the file.
    pub fn assert_same(&self) -> Result<()> {
        let Some(then) = &self.first_in_file else { return Ok(()) };
        let now = self.first_now()?;
        let is_same = match self.wal {
            false => self.first.starts_with(&now),
            true => {
                now == *then
                    || self.first.starts_with(&now)
                    || lies_between(then, &now, &self.first)
            }
        };
        if is_same {
            return Ok(());
        }
        let cause = "page 1 is another one than when the backup began: something wrote to the file past SQLite while \
                     it was being backed up, and there is no backup; `pellucid check` says whether it is whole, and \
                     then begin again, else restore an earlier backup";
        Err(Error::corrupt(Subject::File(self.path.clone()), cause))
    }

    /// Whether page 1 lies in the file and opens.
    pub fn has_first(&self) -> bool {
        self.first_now().is_ok()
    }

    /// Page 1 as it lies in the file, opened, without the tail of a sealed one.
    fn first_now(&self) -> Result<Vec<u8>> {
        let io = |code: Code| {
            let cause = std::io::Error::other(format!("SQLite code {}", code.0));
            Error::io(Subject::File(self.path.clone()), cause)
        };
        let Some((lower, container)) =
            opened::main(&self.handle).map_err(|error| self.told(1, error))?
        else {
            return Err(Error::misuse(
                Subject::File(self.path.clone()),
                "it is no file of the VFS",
            ));
        };
        let mut page = vec![0; self.page_size as usize];
        if !container.is_born() {
            return match lower.read(&mut page, 0).map_err(io)? {
                ReadEnd::Full => Ok(page),
                ReadEnd::Short => Err(self.cut(1)),
            };
        }
        let mut content = vec![0; page.len() - TAIL_BYTES];
        let mut opened = Ok(());
        for _ in 0..ATTEMPTS {
            if lower.read(&mut page, REGION_BYTES).map_err(io)? == ReadEnd::Short {
                return Err(self.cut(1));
            }
            if generation(&page).is_some_and(|named| container.is_newer(named)) {
                container.refresh().map_err(io)?;
            }
            opened = container.try_open_page(1, &page, &mut content);
            if opened.is_ok() {
                return Ok(content);
            }
            std::thread::yield_now();
        }
        let told =
            |error: Error| Error::corrupt(Subject::File(self.path.clone()), error.to_string());
        opened.map_err(told).map(|()| content)
    }

    fn cut(&self, page: u32) -> Error {
        let cause = format!(
            "page {page}: the file ends before it: it was cut or written over while it was being backed up, and there \
             is no backup; `pellucid check` says what is left, and an earlier backup has the rest"
        );
        Error::corrupt(Subject::File(self.path.clone()), cause)
    }

    /// Why page `number` was not read.
    fn told(&self, number: u32, error: DatabaseError) -> Error {
        if let Ok(Some((lower, container))) = opened::main(&self.handle) {
            let region = if container.is_born() { REGION_BYTES } else { 0 };
            let end = region + u64::from(number) * u64::from(self.page_size);
            let is_short = lower.size().is_ok_and(|size| size < end);
            if container.was_cut.take() || (is_short && is_damage(&error)) {
                return self.cut(number);
            }
        }
        match error {
            DatabaseError::Typed(error) => error,
            error => {
                let message = format!("{error}: `{}`", self.path.shown());
                Error::corrupt(Subject::Page(number), message)
            }
        }
    }

    /// What reads its pages.
    ///
    /// # Errors
    /// [`DatabaseError`] if this SQLite has no `sqlite_dbpage`.
    pub fn reader(&self) -> std::result::Result<Reader<'_>, DatabaseError> {
        Ok(Reader { page: self.handle.prepared(PAGE)?, snapshot: self })
    }
}

fn attempt(path: &Path) -> std::result::Result<Handle<'static>, DatabaseError> {
    let options = Options::new(Duration::ZERO, Vec::new());
    // Out of a mapping the whole file would in time count as memory of this process.
    let handle = look(path, &uri(path, "vfs=pellucid&pellucid_mmap=0"), &options)?;
    handle.run(CACHE_PAGES)?;
    handle.number("SELECT count(*) FROM sqlite_schema")?;
    Ok(handle)
}

/// Reads the pages of a snapshot.
#[derive(Debug)]
pub struct Reader<'a> {
    page: Prepared<'a>,
    snapshot: &'a Snapshot,
}

impl Reader<'_> {
    fn read_page(&mut self, number: u32, page: &mut [u8]) -> Result<()> {
        match self.page.blob(i64::from(number), page) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::corrupt(Subject::Page(number), "it is not in the database")),
            Err(error) => Err(self.snapshot.told(number, error)),
        }
    }
}

impl PageSource for Reader<'_> {
    fn read(&mut self, first: u32, into: &mut [u8]) -> Result<()> {
        for (number, page) in (first..).zip(into.chunks_exact_mut(self.snapshot.page_size as usize))
        {
            self.read_page(number, page)?;
            if number == self.snapshot.pages {
                // Before anything commits the set.
                self.snapshot.assert_same()?;
            }
        }
        Ok(())
    }
}

fn is_damage(error: &DatabaseError) -> bool {
    matches!(error, DatabaseError::Sqlite { code, .. } if code & 0xff == ffi::CORRUPT || *code == ffi::IOERR_DATA)
}

/// Whether a checkpoint that began at the first of these pages 1 and goes to the last can have come to the one between.
fn lies_between(from: &[u8], now: &[u8], to: &[u8]) -> bool {
    let word = |page: &[u8], at: usize| {
        let bytes = page.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_be_bytes)
    };
    LASTING.into_iter().all(|range| from.get(range.clone()) == now.get(range))
        && GROWING.into_iter().all(|at| {
            let way = |page| word(page, at).wrapping_sub(word(from, at));
            way(now) <= way(to)
        })
}

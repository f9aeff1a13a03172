//! One moment of a database, page by page: what a backup reads.
//!
//! A read transaction is held meanwhile. In WAL mode nobody notices; in the other modes nobody commits, so that
//! whoever needs long has to copy the pages first ([`pellucid::backup::Spool`]).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pellucid::backup::PageSource;
use pellucid::header::Header;
use pellucid::{Error, Result, Subject};

use crate::code::Code;
use crate::convert::connection::{uri, Handle};
use crate::convert::statement::Prepared;
use crate::convert::{ConvertError, Options};
use crate::ffi;
use crate::file::lower_of_open;

/// Pages SQLite keeps for itself while all are read once: few.
const CACHE_PAGES: &str = "PRAGMA cache_size = 50";
const RETRY: Duration = Duration::from_millis(1);
const PAGE: &str = "SELECT data FROM sqlite_dbpage WHERE pgno = ?1";

/// A database in a read transaction.
#[derive(Debug)]
pub struct Snapshot {
    handle: Handle<'static>,
    path: PathBuf,
    page_size: u32,
    pages: u32,
    wal: bool,
}

impl Snapshot {
    /// Begins it. A transaction that was interrupted is rolled back first, as by any program that opens the database.
    ///
    /// # Errors
    /// [`ConvertError`] if it cannot be read.
    pub fn begin(path: &Path, timeout: Duration) -> std::result::Result<Self, ConvertError> {
        // SQLite's own waiting sleeps longer and longer: a writer that never rests would starve it.
        let deadline = Instant::now() + timeout;
        let handle = loop {
            match attempt(path) {
                Err(error) if Handle::is_busy(&error) && Instant::now() < deadline => {
                    std::thread::sleep(RETRY);
                }
                attempted => break attempted?,
            }
        };
        let page_size = handle.number("PRAGMA page_size")?.try_into().unwrap_or(0);
        let pages = handle.number("PRAGMA page_count")?.try_into().unwrap_or(0);
        let wal = handle.text("PRAGMA journal_mode")? == "wal";
        Ok(Self { handle, path: path.to_owned(), page_size, pages, wal })
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
    /// [`ConvertError`] if it cannot be read.
    pub fn sealed_header(&self) -> std::result::Result<Option<Header>, ConvertError> {
        // SAFETY: the file object of an open connection, used before that closes.
        let Some((_, link)) = (unsafe { lower_of_open(self.handle.file()?) }) else {
            return Ok(None);
        };
        // In WAL mode somebody may have changed who opens it since the transaction began.
        let failed = |Code(code): Code| ConvertError::Sqlite {
            file: self.path.display().to_string(),
            code,
            message: "its header cannot be read".to_owned(),
        };
        link.refresh().map_err(failed)?;
        Ok(Some(link.header().ok_or(failed(Code(ffi::IOERR)))?))
    }

    /// What reads its pages.
    ///
    /// # Errors
    /// [`ConvertError`] if this SQLite has no `sqlite_dbpage`.
    pub fn reader(&self) -> std::result::Result<Reader<'_>, ConvertError> {
        Ok(Reader { page: self.handle.prepared(PAGE)?, snapshot: self })
    }
}

fn attempt(path: &Path) -> std::result::Result<Handle<'static>, ConvertError> {
    let options = Options::new(Duration::ZERO, Vec::new());
    // Out of a mapping the whole file would in time count as memory of this process.
    let handle = Handle::look(path, &uri(path, "vfs=pellucid&pellucid_mmap=0"), &options)?;
    handle.run(CACHE_PAGES)?;
    handle.run("BEGIN")?;
    handle.number("SELECT count(*) FROM sqlite_schema")?;
    Ok(handle)
}

/// Reads the pages of a snapshot.
#[derive(Debug)]
pub struct Reader<'a> {
    page: Prepared<'a>,
    snapshot: &'a Snapshot,
}

impl PageSource for Reader<'_> {
    fn read(&mut self, first: u32, into: &mut [u8]) -> Result<()> {
        for (number, page) in (first..).zip(into.chunks_exact_mut(self.snapshot.page_size as usize))
        {
            match self.page.blob(i64::from(number), page) {
                Ok(true) => {}
                Ok(false) => {
                    return Err(Error::corrupt(Subject::Page(number), "it is not in the database"))
                }
                Err(ConvertError::Typed(error)) => return Err(error),
                Err(error) => {
                    let message = format!("{error}: `{}`", self.snapshot.path.display());
                    return Err(Error::corrupt(Subject::Page(number), message));
                }
            }
        }
        Ok(())
    }
}

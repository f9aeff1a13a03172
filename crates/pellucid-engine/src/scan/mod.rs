//! The scan: every page of a database is rewritten under the current key while the database is in use.
//!
//! Pages go through ordinary short SQLite transactions, so crash safety, readers, writers and other
//! processes are SQLite's business. The key of a page is not its content, so a scan changes no
//! content. The pages themselves say what is left to do: each names the generation that sealed it.
//! A killed scan therefore goes on by starting again. From the switch (`switch`) on no connection
//! seals under an older key, so the number of older units only falls. When none is left (`proof`),
//! the older key is dropped. Described in docs/design/scan.md, "State and scan".

mod checkpointer;
mod pace;
mod pages;
mod proof;
mod rewrite;
mod switch;
mod turn;

use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::clock::now;
use pellucid::header::Header;
use pellucid::scan::{Progress, ScanState};
use pellucid::shown::Shown;
use pellucid::{Error, Subject};
use pellucid_host::code::Code;
use pellucid_host::connection::{uri, Handle};
use pellucid_host::ffi;
use pellucid_host::patience::Patience;
use pellucid_host::DatabaseError;
use pellucid_vfs::opened;

use crate::log_chain;

pub use pellucid::transition::Target;
pub use switch::{change_state, rekey, rekey_as_new, set};
pub(crate) use turn::is_taken;
pub use turn::{Turn, RESERVED_BYTE};

/// The options of a scan.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The time for which the write lock is held at once. It is left free at least as long after
    /// each. Zero means one page at a time.
    pub hold: Duration,
    /// The most bytes a second.
    pub throttle: Option<u64>,
    /// Whether the scan keeps every other connection out until it ends.
    pub exclusive: bool,
    /// How long to wait for a lock before the scan reports that it waits.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hold: Duration::from_millis(4),
            throttle: None,
            exclusive: false,
            patience: Duration::from_secs(60),
        }
    }
}

/// The end of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The proof holds, and the older keys are gone.
    Complete,
    /// The scan was suspended.
    Suspended,
    /// No scan was due.
    NothingToDo,
}

/// The step of a scan, to show its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Rewriting pages.
    Rewriting,
    /// All pages are rewritten; a connection still reads an earlier state, or holds a lock.
    WaitingForReaders,
    /// Reading every tail.
    Proving,
}

/// The progress callback, called now and then with the step, the pages done and the pages in all.
pub type Watch<'a> = dyn FnMut(Doing, u32, u32) + 'a;

/// The interval at which progress is written to the file and the header is read for a suspension.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// The most passes. A planted or forgotten unit is rewritten by one more pass; an older unit that
/// is left after that has another cause.
const PASSES: usize = 3;

/// Scans the database at `path` to its end, from where an earlier scan stopped.
///
/// # Errors
/// [`DatabaseError::Scanned`] if another process scans it. After other errors the scan can be
/// resumed. Damage is named, and the state becomes `aborted` then.
pub fn run(path: &Path, options: &Options, watch: &mut Watch<'_>) -> Result<Ended, DatabaseError> {
    let path = &followed(path)?;
    let Some(_turn) = Turn::take(path)? else {
        return Err(DatabaseError::Scanned { file: path.shown().to_string() });
    };
    let scanned = Scanner::open(path, options)?.run(watch);
    if let Err(error) = &scanned {
        if is_damage(error) {
            // The error is returned even if the state cannot be written.
            let _ = change_state(path, ScanState::Aborted);
        }
    }
    scanned
}

/// The units of a database that are under an older key, by the generations that they name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Survey {
    /// Pages of the file.
    pub pages: u64,
    /// Pages that are not under the current key.
    pub older: u64,
    /// The first of them.
    pub first: Option<u32>,
    /// Whether another unit is under an older key: a frame of the WAL, a journal, a rest of a page.
    pub beside: bool,
}

impl Survey {
    /// Whether no unit is left that an older key opens.
    pub fn is_current(&self) -> bool {
        self.older == 0 && !self.beside
    }
}

/// Reads every tail and changes nothing: the work that a scan would have to do.
///
/// # Errors
/// [`DatabaseError`] if it cannot be read.
pub fn survey(path: &Path, watch: &mut Watch<'_>) -> Result<Survey, DatabaseError> {
    let options = Options::default();
    let path = &followed(path)?;
    let scanner = Scanner::open(path, &options)?;
    let header = scanner.header()?;
    scanner.lower(|lower, _| proof::survey(lower, path, &header, watch))?
}

/// The path with symbolic links followed. SQLite keeps WAL and journal beside it.
fn followed(path: &Path) -> Result<PathBuf, DatabaseError> {
    Ok(path.canonicalize().map_err(|error| Error::io(Subject::File(path.to_owned()), error))?)
}

/// Opens a connection that reads and writes pages. It waits for a lock as long as `patience`.
fn open(path: &Path, patience: Duration) -> Result<Handle<'static>, DatabaseError> {
    // A scan reads the whole file without a lock. Another process may cut the file, and a read
    // behind the end of a mapping is a SIGBUS.
    let uri = uri(path, "vfs=pellucid&require=container&pellucid_mmap=0");
    let handle = Handle::open(path, &uri, ffi::OPEN_READWRITE)?;
    handle.busy_timeout(patience.as_millis().try_into().unwrap_or(i32::MAX));
    if handle.text("PRAGMA journal_mode")? == "wal" {
        // A power cut may undo the rewriting of pages; the next scan rewrites them again.
        handle.run("PRAGMA synchronous=NORMAL")?;
    }
    Ok(handle)
}

fn is_damage(error: &DatabaseError) -> bool {
    match error {
        DatabaseError::Sqlite { code, .. } => {
            matches!(*code, ffi::IOERR_DATA) || code & 0xff == ffi::CORRUPT
        }
        DatabaseError::Typed(error) => {
            matches!(error, Error::Corrupt { .. } | Error::Unauthentic { .. })
        }
        _ => false,
    }
}

/// One run over one database.
struct Scanner<'a> {
    path: &'a Path,
    options: &'a Options,
    handle: Handle<'static>,
    /// Whether the database is in WAL mode.
    wal: bool,
}

impl<'a> Scanner<'a> {
    fn open(path: &'a Path, options: &'a Options) -> Result<Self, DatabaseError> {
        let handle = open(path, options.patience)?;
        let wal = handle.text("PRAGMA journal_mode")? == "wal";
        handle.run("PRAGMA cache_size=-8192")?;
        Ok(Self { path, options, handle, wal })
    }

    fn run(&self, watch: &mut Watch<'_>) -> Result<Ended, DatabaseError> {
        let header = self.header()?;
        if !header.scan.state.is_under_way() {
            return Ok(Ended::NothingToDo);
        }
        watch(Doing::Rewriting, 0, 0);
        let (mut passes, mut row) = (0, header.current_dek()?.clone());
        while passes < PASSES {
            passes += 1;
            if rewrite::pass(self, watch)? == Ended::Suspended {
                return Ok(Ended::Suspended);
            }
            if self.settle(watch)? {
                return Ok(Ended::Complete);
            }
            // If encryption was switched back, all pages are older ones, and that is no error.
            let header = self.header()?;
            if *header.current_dek()? != row {
                (passes, row) = (0, header.current_dek()?.clone());
            }
        }
        Err(Error::corrupt(
            Subject::Container,
            "units of an older key come back as fast as they are rewritten; another program writes to the file",
        )
        .into())
    }

    /// Empties WAL, journal and physical tail, proves that no older unit is left, and drops the
    /// older keys. False if an older unit is left in a page that can be rewritten, or if encryption
    /// was switched back meanwhile.
    fn settle(&self, watch: &mut Watch<'_>) -> Result<bool, DatabaseError> {
        self.empty_logs(watch)?;
        watch(Doing::WaitingForReaders, 1, 1);
        self.cut_physical_tail()?;
        let header = self.header()?;
        if let Some(copy) = proof::older_copy(self.path, &header)? {
            return Err(Error::misuse(
                Subject::File(copy),
                "it is the rest of a damaged log, under an older key, which would open it after the rekey: salvage it if it is wanted \
                 (`pellucid salvage --lost-log`), then remove it or move it away, and go on with `pellucid scan resume`",
            )
            .into());
        }
        watch(Doing::Proving, 0, 0);
        let found = self.lower(|lower, _| proof::search(lower, self.path, &header, watch))??;
        match found {
            None => {
                // Another connection may have written the pages that the proof read with
                // `synchronous=OFF`. A power cut could restore an older form of such a page, and
                // that is lost once the older key is dropped.
                self.lower(|lower, _| lower.sync(ffi::SYNC_NORMAL))?
                    .map_err(|code| self.failed(code, "it cannot be synced"))?;
                self.lower(|_, container| log_chain::renew(self.path, container))??;
                switch::settle(self.path, &header)
            }
            Some(proof::Left::Page(_)) => Ok(false),
            Some(left) => Err(Error::corrupt(
                Subject::File(self.path.to_owned()),
                format!(
                    "{left} is of an older key and is in no transaction's way: it was put there"
                ),
            )
            .into()),
        }
    }

    fn begin(&self, begin: &str) -> Result<(), DatabaseError> {
        let begun = self.handle.begin(begin, self.options.patience);
        begun.map_err(|error| crate::header_change::in_use(self.path, error))
    }

    /// Returns the present header. A read transaction makes the shim read it.
    fn header(&self) -> Result<Header, DatabaseError> {
        self.handle.run("SELECT 1 FROM sqlite_schema")?;
        self.lower(|_, container| container.refresh().map(|()| container.header()))?
            .map_err(|code| self.failed(code, "the header cannot be read"))?
            .ok_or_else(|| self.failed(Code(ffi::IOERR), "the header is not known"))
    }

    fn lower<T>(
        &self,
        look: impl FnOnce(
            pellucid_vfs::open_file::OpenFile<'_>,
            &pellucid_vfs::container::Container,
        ) -> T,
    ) -> Result<T, DatabaseError> {
        let (lower, container) = opened::sealed(&self.handle)?.ok_or_else(|| {
            Error::misuse(Subject::File(self.path.to_owned()), "not an encrypted database")
        })?;
        Ok(look(lower, &container))
    }

    fn failed(&self, code: Code, what: &str) -> DatabaseError {
        DatabaseError::Sqlite {
            file: self.path.shown().to_string(),
            code: code.0,
            message: what.to_owned(),
        }
    }

    /// Writes the scan's progress to the file, for `status` and the views. Called under the lock
    /// that a transaction holds.
    fn keep_progress(&self, done: u32, pages: u32) -> Result<(), DatabaseError> {
        let kept = self.lower(|lower, container| {
            let (header, keys) = (container.header(), container.keys()?);
            let generation = header.map_or(0, |header| header.generation);
            let progress = Progress { generation, done, pages, at: now() };
            let bytes = progress.encode(keys.header_key());
            lower.write(&bytes, pellucid::scan::PROGRESS_OFFSET)
        })?;
        kept.map_err(|code| self.failed(code, "the progress cannot be written"))
    }

    /// Syncs the log that a checkpoint has cut to nothing.
    fn sync_log(&self) -> Result<(), DatabaseError> {
        let failed = |code: Code| DatabaseError::Sqlite {
            file: self.path.shown().to_string(),
            code: code.0,
            message: "its log cannot be synced".to_owned(),
        };
        match opened::wal(&self.handle)? {
            Some(wal) => wal.sync().map_err(failed),
            None => Ok(()),
        }
    }

    /// Checkpoints all of the WAL, or removes the journal.
    fn empty_logs(&self, watch: &mut Watch<'_>) -> Result<(), DatabaseError> {
        watch(Doing::WaitingForReaders, 1, 1);
        if !self.wal {
            // In DELETE mode a commit removes the journal, even one that another connection kept.
            self.handle.run("PRAGMA journal_mode=DELETE")?;
            self.begin("BEGIN EXCLUSIVE")?;
            rewrite::first_page(&self.handle)?;
            return self.handle.run("COMMIT");
        }
        const EACH: Duration = Duration::from_millis(100);
        const FREE: Duration = Duration::from_millis(200);
        let patience = Patience::new(self.options.patience, FREE);
        // This moves most frames while writers go on, so that the locked part is short.
        self.handle.run("PRAGMA wal_checkpoint(PASSIVE)")?;
        self.handle.busy_timeout(EACH.as_millis() as std::ffi::c_int);
        let emptied = loop {
            match self.handle.number("PRAGMA wal_checkpoint(TRUNCATE)") {
                // SQLite does not sync the cut, and frames under a key that is gone would come back by a power cut.
                Ok(0) => break self.sync_log(),
                Ok(_) => {}
                Err(error) if Handle::is_busy(&error) => {}
                Err(error) => break Err(error),
            }
            if patience.left().is_zero() {
                break Err(crate::header_change::busy(self.path));
            }
            watch(Doing::WaitingForReaders, 1, 1);
            patience.wait();
        };
        self.handle.busy_timeout(self.options.patience.as_millis().try_into().unwrap_or(i32::MAX));
        emptied
    }

    /// Cuts off what lies behind the last page, which is no page any more and is never rewritten.
    /// In WAL mode it also removes a left-over journal, which was ended before the mode changed.
    ///
    /// In WAL mode `BEGIN EXCLUSIVE` is only the write lock, so another connection may have
    /// committed since the log was emptied. Such a commit counts only as long as its log is there,
    /// so the pages that the file has without the log stay too.
    fn cut_physical_tail(&self) -> Result<(), DatabaseError> {
        self.begin("BEGIN EXCLUSIVE")?;
        let pages = self.handle.number("PRAGMA page_count")? as u64;
        let cut = self.lower(|lower, container| {
            let without_log =
                if self.wal { pages::without_log(lower, container)? } else { Some(0) };
            match without_log {
                Some(others) => pages::cut(lower, container, pages.max(others)),
                // The proof finds the older units that are left, and there is another pass.
                None => Ok(()),
            }
        })?;
        let removed = if self.wal { pages::remove_ended_journal(self.path) } else { Ok(()) };
        self.handle.run("COMMIT")?;
        removed?;
        cut.map_err(|code| self.failed(code, "what lies behind the last page cannot be cut off"))
    }
}

//! The scan: every page of a database is rewritten under the current key while the database is in use.
//!
//! Pages go through ordinary short SQLite transactions, so crash safety, readers, writers and other processes
//! are SQLite's own business; the key of a page is not its content, so a scan changes nothing anybody reads.
//! What is left to do is read off the pages themselves: each names the generation it was sealed under. A scan
//! that was killed therefore goes on by beginning again. From the moment of the switch (`switch`) nobody
//! seals under an older key, so the number of older units only falls; when none is left anywhere (`proof`)
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
use pellucid::{Error, Subject};
use pellucid_host::code::Code;
use pellucid_host::connection::{uri, Handle};
use pellucid_host::ffi;
use pellucid_host::patience::Patience;
use pellucid_host::DatabaseError;
use pellucid_vfs::opened;

pub use pellucid::transition::Target;
pub use switch::{change_state, rekey, rekey_as_new, set};
pub(crate) use turn::is_taken;
pub use turn::{Turn, RESERVED_BYTE};

/// How a scan goes about it.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How long the write lock is held at a time; it is left free at least as long after each. Zero is a page at a time.
    pub hold: Duration,
    /// At most so many bytes a second.
    pub throttle: Option<u64>,
    /// Nobody else gets in before it is done.
    pub exclusive: bool,
    /// How long to wait for a lock before somebody is told.
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

/// How a scan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The proof holds, and the older keys are gone.
    Complete,
    /// Somebody suspended it.
    Suspended,
    /// There was none to be done.
    NothingToDo,
}

/// What a scan is doing, for whoever looks on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Rewriting pages.
    Rewriting,
    /// All pages are rewritten; somebody reads on in a state of before, or holds a lock.
    WaitingForReaders,
    /// Reading every tail.
    Proving,
}

/// Told now and then: what, pages done, pages in all.
pub type Watch<'a> = dyn FnMut(Doing, u32, u32) + 'a;

/// How often progress is kept in the file and the header is looked at for a suspension.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// A planted or forgotten unit is rewritten once more; what then is left has another cause.
const PASSES: usize = 3;

/// Scans the database at `path` to its end, from wherever an earlier one stopped.
///
/// # Errors
/// [`DatabaseError::Scanned`] if somebody scans it already. Others: the scan can be resumed; damage is named, and the
/// state says `aborted` then.
pub fn run(path: &Path, options: &Options, watch: &mut Watch<'_>) -> Result<Ended, DatabaseError> {
    let path = &followed(path)?;
    let Some(_turn) = Turn::take(path)? else {
        return Err(DatabaseError::Scanned { file: path.display().to_string() });
    };
    let scanned = Scanner::open(path, options)?.run(watch);
    if let Err(error) = &scanned {
        if is_damage(error) {
            // What cannot be noted here is told all the same.
            let _ = change_state(path, ScanState::Aborted);
        }
    }
    scanned
}

/// What of a database is under which key, by the generations that its units name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Survey {
    /// Pages of the file.
    pub pages: u64,
    /// Pages that are not under the current key.
    pub older: u64,
    /// The first of them.
    pub first: Option<u32>,
    /// What else is not: a frame of the WAL, a journal, a rest of a page.
    pub beside: bool,
}

impl Survey {
    /// Whether nothing is left that an older key opens.
    pub fn is_current(&self) -> bool {
        self.older == 0 && !self.beside
    }
}

/// Looks at every tail and changes nothing: what a scan would have to do, or that none has to be done.
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

/// The name beside which SQLite keeps WAL and journal.
fn followed(path: &Path) -> Result<PathBuf, DatabaseError> {
    Ok(path.canonicalize().map_err(|error| Error::io(Subject::File(path.to_owned()), error))?)
}

/// A connection that reads and writes pages, and waits for a lock as long as `patience`.
fn open(path: &Path, patience: Duration) -> Result<Handle<'static>, DatabaseError> {
    // A scan reads the whole file, under no lock: another process may cut off what is mapped (SIGBUS).
    let uri = uri(path, "vfs=pellucid&require=sealed&pellucid_mmap=0");
    let handle = Handle::open(path, &uri, ffi::OPEN_READWRITE)?;
    handle.busy_timeout(patience.as_millis().try_into().unwrap_or(i32::MAX));
    if handle.text("PRAGMA journal_mode")? == "wal" {
        // A power cut may take rewritten pages back: they are rewritten again then.
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
            // Who turns back makes all pages older ones, and that is nobody's fault.
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

    /// Empties WAL, journal and physical tail, proves that no older unit is left, and drops the older keys.
    /// False if one is left, in a page that can be rewritten, or if somebody has turned back meanwhile.
    fn settle(&self, watch: &mut Watch<'_>) -> Result<bool, DatabaseError> {
        self.empty_logs(watch)?;
        watch(Doing::WaitingForReaders, 1, 1);
        self.cut_physical_tail()?;
        let header = self.header()?;
        watch(Doing::Proving, 0, 0);
        let found = self.lower(|lower, _| proof::search(lower, self.path, &header, watch))??;
        match found {
            None => {
                // Others may have brought what the proof saw to the file with `synchronous=OFF`. What a power cut takes
                // back to its older form is lost once the older key is dropped.
                self.lower(|lower, _| lower.sync(ffi::SYNC_NORMAL))?
                    .map_err(|code| self.failed(code, "it cannot be synced"))?;
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

    /// The header as it is now: a read transaction looks at it.
    fn header(&self) -> Result<Header, DatabaseError> {
        self.handle.run("SELECT 1 FROM sqlite_schema")?;
        self.lower(|_, link| link.refresh().map(|()| link.header()))?
            .map_err(|code| self.failed(code, "the header cannot be read"))?
            .ok_or_else(|| self.failed(Code(ffi::IOERR), "the header is not known"))
    }

    fn lower<T>(
        &self,
        look: impl FnOnce(pellucid_vfs::open_file::OpenFile<'_>, &pellucid_vfs::link::Link) -> T,
    ) -> Result<T, DatabaseError> {
        let (lower, link) = opened::sealed(&self.handle)?.ok_or_else(|| {
            Error::misuse(Subject::File(self.path.to_owned()), "not an encrypted database")
        })?;
        Ok(look(lower, &link))
    }

    fn failed(&self, code: Code, what: &str) -> DatabaseError {
        DatabaseError::Sqlite {
            file: self.path.display().to_string(),
            code: code.0,
            message: what.to_owned(),
        }
    }

    /// Keeps in the file how far the scan is, for whoever looks on; under the lock that a transaction holds.
    fn keep_progress(&self, done: u32, pages: u32) -> Result<(), DatabaseError> {
        let kept = self.lower(|lower, link| {
            let (header, keys) = (link.header(), link.keys()?);
            let generation = header.map_or(0, |header| header.generation);
            let progress = Progress { generation, done, pages, at: now() };
            let bytes = progress.encode(keys.header_key());
            lower.write(&bytes, pellucid::scan::PROGRESS_OFFSET)
        })?;
        kept.map_err(|code| self.failed(code, "the progress cannot be written"))
    }

    /// Brings everything out of the WAL, or makes the journal vanish.
    fn empty_logs(&self, watch: &mut Watch<'_>) -> Result<(), DatabaseError> {
        watch(Doing::WaitingForReaders, 1, 1);
        if !self.wal {
            // In DELETE mode a commit unlinks the journal, also one that another connection kept.
            self.handle.run("PRAGMA journal_mode=DELETE")?;
            self.begin("BEGIN EXCLUSIVE")?;
            rewrite::first_page(&self.handle)?;
            return self.handle.run("COMMIT");
        }
        const EACH: Duration = Duration::from_millis(100);
        const FREE: Duration = Duration::from_millis(200);
        let patience = Patience::new(self.options.patience, FREE);
        // Most of it while writers go on; what is left is short.
        self.handle.run("PRAGMA wal_checkpoint(PASSIVE)")?;
        self.handle.busy_timeout(EACH.as_millis() as std::ffi::c_int);
        let emptied = loop {
            match self.handle.number("PRAGMA wal_checkpoint(TRUNCATE)") {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(error) if Handle::is_busy(&error) => {}
                Err(error) => break Err(error),
            }
            watch(Doing::WaitingForReaders, 1, 1);
            if !patience.wait() {
                break Err(crate::header_change::busy(self.path));
            }
        };
        self.handle.busy_timeout(self.options.patience.as_millis().try_into().unwrap_or(i32::MAX));
        emptied
    }

    /// What lies behind the last page is no page any more, and nothing rewrites it. Nor does a database in WAL mode
    /// have a journal: one that is left over was ended before the mode changed.
    ///
    /// In WAL mode `BEGIN EXCLUSIVE` is the write lock and no more: somebody may have committed since the log was emptied.
    /// Such a commit counts only as long as its log is there, so what the file is without it stays too.
    fn cut_physical_tail(&self) -> Result<(), DatabaseError> {
        self.begin("BEGIN EXCLUSIVE")?;
        let pages = self.handle.number("PRAGMA page_count")? as u64;
        let cut = self.lower(|lower, link| {
            let without_log = if self.wal { pages::without_log(lower, link)? } else { Some(0) };
            match without_log {
                Some(others) => pages::cut(lower, link, pages.max(others)),
                // The proof finds what is left, and there is another pass.
                None => Ok(()),
            }
        })?;
        let removed = if self.wal { pages::remove_ended_journal(self.path) } else { Ok(()) };
        self.handle.run("COMMIT")?;
        removed?;
        cut.map_err(|code| self.failed(code, "what lies behind the last page cannot be cut off"))
    }
}

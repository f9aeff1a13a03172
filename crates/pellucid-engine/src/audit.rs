//! Authenticates every page of a sealed database, its WAL and its hot journal, then lets SQLite
//! check the structure and the foreign keys.
//!
//! Pages are read without a lock, so that writers go on. A page that does not open is read again
//! under a read transaction before it counts as damaged: another process may have been writing it,
//! or the log may have it whole. SQLite's own checks run in one read transaction, over one state of
//! the database.

mod logs;
mod memory;
mod owners;
mod physical;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pellucid_host::connection::{literal, uri, Handle};
use pellucid_host::ffi;
use pellucid_host::{DatabaseError, Options as Equipment};
use pellucid_vfs::laying::is_copy_beside;
use pellucid_vfs::opened;

use crate::convert::schema::is_of_the_application;
pub use crate::convert::schema::is_told_of_the_application;

pub use memory::available;
pub use owners::Owner;

/// The options of an audit.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Leaves SQLite's checks out.
    pub physical_only: bool,
    /// The number of threads that authenticate pages.
    pub cores: usize,
}

/// The step of an audit, to show its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Authenticating pages.
    Authenticating,
    /// SQLite checks the structure. The progress of this step is an estimate.
    Structure,
    /// SQLite checks the foreign keys.
    ForeignKeys,
}

/// The progress callback, called now and then with the step, the bytes done and the bytes in all.
pub type Watch<'a> = dyn FnMut(Doing, u64, u64) + 'a;

/// The findings of an audit.
#[derive(Debug, Default)]
pub struct Audit {
    /// The file id of the database that was read. Its path may lead to another one by now.
    pub file_id: [u8; 16],
    /// Pages read.
    pub pages: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// How long the reading of the pages took.
    pub took: Duration,
    /// Frames authenticated.
    pub frames: u64,
    /// Records of a hot journal authenticated, before they were played back.
    pub records: u64,
    /// Damaged pages.
    pub damaged_pages: Vec<DamagedPage>,
    /// Damaged frames: number and cause. A number behind the authenticated frames means that
    /// commits behind it no longer count; 0 is the log's header.
    pub damaged_frames: Vec<(u32, String)>,
    /// Damaged parts of a hot journal. The journal was not played back then.
    pub damaged_records: Vec<String>,
    /// Whether a journal of the plain database that it was lies beside it, with pages in clear.
    pub journal_in_clear: bool,
    /// Findings of SQLite's check. Empty if it was left out or found nothing.
    pub integrity: Vec<String>,
    /// Rows whose parent is missing.
    pub orphans: Vec<OrphanRow>,
    /// The parts that SQLite could not check, because the schema needs collations or functions that
    /// only the application has: SQLite's words for each.
    pub unchecked: Vec<String>,
}

/// A page that does not open.
#[derive(Debug)]
pub struct DamagedPage {
    /// Its number.
    pub page: u32,
    /// The cause of the damage.
    pub cause: String,
    /// The table or index that it belongs to, if that can be found.
    pub owner: Option<Owner>,
}

/// A row whose foreign key names a missing parent.
#[derive(Debug, PartialEq, Eq)]
pub struct OrphanRow {
    /// Its table.
    pub table: String,
    /// Its rowid; none in a table WITHOUT ROWID.
    pub rowid: Option<i64>,
    /// The table that should have the parent.
    pub parent: String,
}

impl Audit {
    /// Whether the audit found nothing wrong in the parts that it checked.
    pub fn is_clean(&self) -> bool {
        !self.is_damaged() && self.integrity.is_empty() && self.orphans.is_empty()
    }

    /// Whether a page, frame or record does not authenticate.
    pub fn is_damaged(&self) -> bool {
        !self.damaged_pages.is_empty()
            || !self.damaged_frames.is_empty()
            || !self.damaged_records.is_empty()
    }
}

/// Checks the sealed database at `path`.
///
/// # Errors
/// [`DatabaseError`] if it cannot be opened at all.
pub fn audit(path: &Path, options: Options, watch: &mut Watch<'_>) -> Result<Audit, DatabaseError> {
    audit_with(path, options, &[], watch)
}

/// Like [`audit`], with extensions that have the collations and functions that the schema needs.
///
/// # Errors
/// Those of [`audit`], and one for an extension that cannot be loaded.
pub fn audit_with(
    path: &Path,
    options: Options,
    load: &[PathBuf],
    watch: &mut Watch<'_>,
) -> Result<Audit, DatabaseError> {
    let mut audit = Audit::default();
    let (handle, began) = begin(path, load, &mut audit)?;
    let began = not_of_the_index(began)?;
    let (lower, container) = opened::sealed(&handle)?.ok_or_else(|| {
        pellucid::Error::misuse(
            pellucid::Subject::File(path.to_owned()),
            "not an encrypted database",
        )
    })?;
    // The log of a later version than the database is no damage, and belongs to another state of it.
    let log = pellucid_files::paths::beside(path, "-wal");
    pellucid_vfs::refuse_other_at(&log, container.version())?;
    audit.file_id = container.header().map_or([0; 16], |header| header.file_id);
    if began.is_ok() {
        handle.run("COMMIT")?;
    }
    let started = Instant::now();
    let suspects = physical::read(path, lower, &container, options.cores, &mut audit, watch)?;
    audit.took = started.elapsed();
    let began = not_of_the_index(began.and_then(|()| read_transaction(&handle)))?;
    physical::confirm(&handle, lower, &container, began.is_ok(), suspects, &mut audit)?;
    if let Some(wal) = opened::wal(&handle)?.filter(|_| began.is_ok()) {
        logs::check_frames(&wal, &container, &mut audit)?;
    }
    owners::name(path, &mut audit);
    if options.physical_only || !audit.damaged_records.is_empty() {
        return Ok(audit);
    }
    match began {
        Ok(()) => check_content(&handle, &container, &mut audit, watch),
        Err(error) => audit.integrity.push(error.to_string()),
    }
    Ok(audit)
}

type Outcome = Result<(), DatabaseError>;

/// A wal-index in memory that is not to be had here is no damage: what the log has is not known then.
fn not_of_the_index(began: Outcome) -> Result<Outcome, DatabaseError> {
    match began {
        Err(error @ DatabaseError::Sqlite { code: ffi::CANTOPEN_INDEX, .. }) => Err(error),
        began => Ok(began),
    }
}

fn read_transaction(handle: &Handle<'_>) -> Outcome {
    handle.run("BEGIN").and_then(|()| handle.run("SELECT 1 FROM sqlite_schema"))
}

/// Opens a connection in a read transaction. The schema may be unreadable; its damage is found
/// later, page by page.
///
/// An interrupted transaction is rolled back first, as by any program that opens the database. A
/// damaged journal is not played back, because it would restore only a part of the pages.
fn begin<'a>(
    path: &Path,
    load: &[PathBuf],
    audit: &mut Audit,
) -> Result<(Handle<'a>, Outcome), DatabaseError> {
    let equipment = Equipment::new(Duration::ZERO, load.to_vec());
    let open = |flags| -> Result<(Handle<'a>, Outcome), DatabaseError> {
        let handle = Handle::open(path, &uri(path, "vfs=pellucid"), flags)?;
        handle.busy_timeout(10_000);
        equipment.equip(&handle)?;
        let began = read_transaction(&handle);
        Ok((handle, began))
    };
    let interrupted = |began: &Outcome| matches!(began, Err(DatabaseError::Sqlite { code, .. }) if code & 0xff == ffi::READONLY);
    let mut opened = open(ffi::OPEN_READONLY);
    if !matches!(opened, Ok((_, Ok(())))) && is_copy_beside(path) {
        drop(opened);
        // This connection finishes an interrupted conversion or restore.
        let (finisher, finished) = open(ffi::OPEN_READWRITE)?;
        finished?;
        drop(finisher);
        opened = open(ffi::OPEN_READONLY);
    }
    let (handle, began) = opened?;
    logs::check_journal(path, &handle, audit)?;
    if !interrupted(&began) || !audit.damaged_records.is_empty() {
        return Ok((handle, began));
    }
    drop(handle);
    let (handle, began) = open(ffi::OPEN_READWRITE)?;
    if interrupted(&began) {
        return Err(began.err().unwrap_or_else(|| io(pellucid_host::code::Code(ffi::READONLY))));
    }
    Ok((handle, began))
}

/// Runs SQLite's checks. The pages that they have read so far give their approximate progress.
fn check_content(
    handle: &Handle<'_>,
    container: &pellucid_vfs::container::Container,
    audit: &mut Audit,
    watch: &mut Watch<'_>,
) {
    let page_bytes = audit.page_bytes;
    let bytes = audit.pages * page_bytes;
    if let Err(error) = handle
        .run(&format!("PRAGMA cache_size={}", memory::cache_pages(audit.pages, audit.page_bytes)))
    {
        audit.integrity.push(error.to_string());
    }
    let before = container.opened();
    let mut told = |doing| {
        watch(doing, ((container.opened() - before) * page_bytes).min(bytes), bytes);
    };
    let done = handle.watched(&mut || told(Doing::Structure), |handle| {
        let whole = rows_of_check(handle, "PRAGMA integrity_check", &mut audit.integrity);
        match whole {
            Err(error) if is_of_the_application(&error) => check_tables(handle, audit),
            whole => whole,
        }
    });
    if let Err(error) = done {
        audit.integrity.push(error.to_string());
        return;
    }
    let mut orphans = Vec::new();
    let done = handle.watched(&mut || told(Doing::ForeignKeys), |handle| {
        handle.rows("PRAGMA foreign_key_check", |row| {
            let rowid = (!row.is_null(1)).then(|| row.number(1));
            orphans.push(OrphanRow { table: row.text(0), rowid, parent: row.text(2) });
        })
    });
    audit.orphans = orphans;
    match done {
        Ok(()) => {}
        Err(error) if is_of_the_application(&error) => {
            audit.unchecked.push(format!("foreign keys: {}", words(&error)));
        }
        // A foreign key whose parent has no unique index: SQLite's message names it.
        Err(error) => audit.integrity.push(format!("foreign keys: {error}")),
    }
}

fn rows_of_check(handle: &Handle<'_>, sql: &str, found: &mut Vec<String>) -> Outcome {
    handle.rows(sql, |row| found.extend(Some(row.text(0)).filter(|line| line != "ok")))
}

/// Checks table by table. If one table needs a name that SQLite does not know, the check of all
/// tables does not begin. Of such a table this checks the parts that need no index.
fn check_tables(handle: &Handle<'_>, audit: &mut Audit) -> Outcome {
    let mut tables = Vec::new();
    handle.rows("SELECT name FROM sqlite_schema WHERE type = 'table'", |row| {
        tables.push(row.text(0));
    })?;
    for table in tables {
        let name = literal(&table);
        let whole = format!("PRAGMA integrity_check({name})");
        match rows_of_check(handle, &whole, &mut audit.integrity) {
            Err(error) if is_of_the_application(&error) => {
                audit.unchecked.push(format!("table `{table}`: {}", words(&error)));
            }
            done => {
                done?;
                continue;
            }
        }
        let quick = format!("PRAGMA quick_check({name})");
        match rows_of_check(handle, &quick, &mut audit.integrity) {
            Err(error) if !is_of_the_application(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// SQLite's message, without the file that it is about.
fn words(error: &DatabaseError) -> String {
    match error {
        DatabaseError::Sqlite { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

fn io(code: pellucid_host::code::Code) -> DatabaseError {
    DatabaseError::Sqlite {
        file: String::new(),
        code: code.0,
        message: "cannot be read".to_owned(),
    }
}

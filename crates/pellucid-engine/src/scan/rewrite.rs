//! One pass over the pages: each page of an older key goes through a transaction that does not
//! change its content.

use std::time::Instant;

use pellucid::scan::ScanState;
use pellucid_host::connection::Handle;
use pellucid_host::statement::Prepared;
use pellucid_host::DatabaseError;

use super::checkpointer::Checkpointer;
use super::pace::Pace;
use super::pages::{self, Stretch};
use super::{Doing, Ended, Scanner, Watch, PROGRESS_EVERY};

/// Writes a page as it was read. `sqlite_dbpage` is in the program's own SQLite (dbpage vtab).
const REWRITE: &str = "UPDATE sqlite_dbpage SET data = data WHERE pgno = ?1";

/// Rewrites every page of an older key, in order. Returns whether it was suspended under way.
pub fn pass(scanner: &Scanner<'_>, watch: &mut Watch<'_>) -> Result<Ended, DatabaseError> {
    std::thread::scope(|scope| {
        let (path, patience) = (scanner.path, scanner.options.patience);
        let apart = scanner.options.exclusive && scanner.wal;
        let checkpointer = apart.then(|| Checkpointer::start(scope, path, patience)).flatten();
        checkpoint_here(scanner, checkpointer.is_none())?;
        rewrite(scanner, checkpointer, watch)
    })
}

/// Switches the checkpoints of the scan's own connection on or off.
fn checkpoint_here(scanner: &Scanner<'_>, here: bool) -> Result<(), DatabaseError> {
    // SQLite's default (SQLITE_DEFAULT_WAL_AUTOCHECKPOINT).
    let pages = if here { 1000 } else { 0 };
    scanner.handle.number(&format!("PRAGMA wal_autocheckpoint={pages}")).map(|_| ())
}

fn rewrite(
    scanner: &Scanner<'_>,
    mut checkpointer: Option<Checkpointer>,
    watch: &mut Watch<'_>,
) -> Result<Ended, DatabaseError> {
    let options = scanner.options;
    let mut pace = Pace::new(options.hold, scanner.wal, options.exclusive, options.throttle);
    let mut stretch = Stretch::default();
    let rewrite = scanner.handle.prepared(REWRITE)?;
    let mut header = scanner.header()?;
    let mut next = 1;
    let mut waiting: Vec<u32> = Vec::new();
    let mut kept = Instant::now();
    loop {
        let last = scanner
            .lower(|lower, _| pages::in_file(lower, &header))?
            .map_err(|code| scanner.failed(code, "its size cannot be read"))?;
        while waiting.len() < pace.batch() && next <= last {
            let (older, read) = scanner
                .lower(|lower, _| stretch.older(lower, &header, next, last))?
                .map_err(|code| scanner.failed(code, "its pages cannot be read"))?;
            waiting.extend(older);
            next += read;
        }
        let done = (next - 1).min(last) as u32;
        if waiting.is_empty() && next > last {
            watch(Doing::Rewriting, done, last as u32);
            return Ok(Ended::Complete);
        }
        // SQLite changes the change counter of page 1 with it: that commit does more than seal again, and is alone.
        let has_first = waiting.first() == Some(&1);
        let most = if has_first { 1 } else { pace.batch() };
        let batch: Vec<u32> = waiting.drain(..waiting.len().min(most)).collect();
        scanner.lower(|_, container| container.reseals.set(!has_first))?;
        let begin = if options.exclusive { "BEGIN EXCLUSIVE" } else { "BEGIN IMMEDIATE" };
        scanner.begin(begin)?;
        let held = Instant::now();
        let rewritten = write_batch(scanner, &rewrite, &batch, &mut kept, (done, last as u32));
        if let Err(error) = rewritten {
            // The first error is returned; an error of the rollback is not.
            let _ = scanner.handle.run("ROLLBACK");
            return Err(error);
        }
        scanner.handle.run("COMMIT")?;
        let bytes = batch.len() as u64 * u64::from(header.page_size);
        let pause = pace.after(batch.len(), bytes, held.elapsed());
        if checkpointer.as_mut().is_some_and(|one| !one.committed(bytes)) {
            checkpointer = None;
            checkpoint_here(scanner, true)?;
        }
        watch(Doing::Rewriting, done, last as u32);
        // The shim read the header when the transaction took its lock.
        if let Some(now) = scanner.lower(|_, container| container.header())? {
            header = now;
        }
        if header.scan.state == ScanState::Suspended {
            return Ok(Ended::Suspended);
        }
        std::thread::sleep(pause);
    }
}

fn write_batch(
    scanner: &Scanner<'_>,
    rewrite: &Prepared<'_>,
    batch: &[u32],
    kept: &mut Instant,
    (done, pages): (u32, u32),
) -> Result<(), DatabaseError> {
    let there = scanner.handle.number("PRAGMA page_count")?;
    for page in batch.iter().filter(|page| i64::from(**page) <= there) {
        rewrite.run(i64::from(*page))?;
    }
    if kept.elapsed() >= PROGRESS_EVERY {
        *kept = Instant::now();
        scanner.keep_progress(done, pages)?;
    }
    Ok(())
}

/// Rewrites page 1, so that a transaction has something to commit.
pub fn first_page(handle: &Handle<'_>) -> Result<(), DatabaseError> {
    handle.prepared(REWRITE)?.run(1)
}

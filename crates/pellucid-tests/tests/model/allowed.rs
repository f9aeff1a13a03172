//! What may differ between plain and sealed, each with its reason. Everything else has to be equal.

use crate::connection::{Outcome, Value};
use crate::script::Step;

/// Answers that state how many pages or frames there are. With ordinary pages on the plain side they
/// differ: a sealed page holds 32 bytes less.
const COUNTS: [&str; 6] =
    ["page_count", "freelist_count", "wal_checkpoint", "dbstat", "rootpage", "incremental_vacuum"];

/// Takes out of an outcome what may differ.
///
/// Never compared, because scripts have no such step: the time, random numbers and the compile
/// options; bytes and sizes of files. Of `data_version` only the changes are (`world.rs`).
pub fn neutral(step: &Step, mut outcome: Outcome, same_pages: bool) -> Outcome {
    match step {
        // The shim declines SQLite's own mapping, which would show it sealed bytes, and says 0.
        Step::Sql(_, sql) if sql.contains("mmap_size") => outcome.rows.clear(),
        Step::Sql(_, sql) if !same_pages && COUNTS.iter().any(|count| sql.contains(count)) => {
            outcome.rows.clear();
        }
        // Pages left and pages in all; pages.
        Step::Copy(..) | Step::Serialize(..) if !same_pages => outcome.rows.clear(),
        _ => {}
    }
    outcome
}

/// Codes that say that SQLite found its own file damaged, or could not use it. No step does that, so
/// they are faults even where both sides agree.
pub fn is_fault(outcome: &Outcome) -> bool {
    use rusqlite::ffi::{
        SQLITE_CORRUPT, SQLITE_INTERNAL, SQLITE_IOERR, SQLITE_MISUSE, SQLITE_NOMEM, SQLITE_NOTADB,
    };
    const FAULTS: [i32; 6] =
        [SQLITE_CORRUPT, SQLITE_INTERNAL, SQLITE_IOERR, SQLITE_MISUSE, SQLITE_NOMEM, SQLITE_NOTADB];
    // FTS5 tells `SQLITE_CORRUPT_VTAB` when another connection has changed what it remembers; the check
    // with a new connection at the end of a script has to find nothing. `SQLITE_IOERR_SHMLOCK` is what a
    // checkpoint answers on a connection that could not leave WAL mode because another one is there.
    let quirks = [rusqlite::ffi::SQLITE_CORRUPT_VTAB, rusqlite::ffi::SQLITE_IOERR_SHMLOCK];
    FAULTS.contains(&outcome.primary()) && !quirks.contains(&outcome.code)
}

/// Whether an integrity check found something, other than FTS5's for the reason in [`is_fault`].
pub fn is_broken(step: &Step, outcome: &Outcome) -> bool {
    matches!(step, Step::Sql(_, sql) if sql.contains("integrity_check") || sql.contains("quick_check"))
        && outcome.is_ok()
        && outcome.rows.iter().flatten().any(|row| match row {
            Value::Text(text) => text != b"ok" && !text.starts_with(b"fts5: "),
            _ => true,
        })
}

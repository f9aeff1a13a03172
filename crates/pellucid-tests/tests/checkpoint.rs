//! Goal: a checkpoint hands neighbouring pages over with one call, and a call that fails leaves the log in charge of them:
//! where SQLite is told of it, and where another connection goes on with the log and SQLite is not.
//!
//! Method: the file's length is limited (EFBIG), so that the pages behind the limit cannot be written. Afterwards each row has
//! to be there for every connection, and after the next checkpoint in the file alone.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Mutex;

use pellucid_tests::content::{self, directory_in_memory, seal_new_databases};
use pellucid_tests::file_objects::{writes, FileObjects};
use pellucid_tests::limits::Limit;
use rusqlite::{ffi, Connection};

// Where the number of frames, `nBackfill`, `nBackfillAttempted` and the pages of the first frames lie in `-shm` (SQLite's WAL-mode
// file format, 2).
const FRAMES_AT: u64 = 16;
const BROUGHT_IN_AT: u64 = 96;
const TO_BRING_IN_AT: u64 = 128;
const PAGES_AT: u64 = 136;
const CKPT_LOCK: c_int = 1;
const READ0_LOCK: c_int = 3;
const PAGE_BYTES: usize = 4096;
const ROW_BYTES: usize = 3000;

/// The limit is the process's.
static ONE: Mutex<()> = Mutex::new(());

struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        pellucid_bundled::register().unwrap();
        seal_new_databases();
        Self { directory: directory_in_memory() }
    }

    fn path(&self, end: &str) -> PathBuf {
        self.directory.path().join(format!("a.db{end}"))
    }

    fn open(&self) -> Connection {
        let uri = format!("file:{}?vfs=pellucid", self.path("").display());
        let connection = content::open(&uri).unwrap();
        connection.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
        connection
    }

    /// A database of `rows` rows in its file, with an empty log.
    fn filled(&self, rows: usize) -> Connection {
        let connection = self.open();
        connection.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t(a, b)").unwrap();
        insert(&connection, rows);
        checkpoint(&connection, "TRUNCATE").unwrap();
        connection
    }

    fn brought_in(&self) -> u32 {
        let mut word = [0; 4];
        let index = fs::File::open(self.path("-shm")).unwrap();
        index.read_exact_at(&mut word, BROUGHT_IN_AT).unwrap();
        u32::from_ne_bytes(word)
    }

    fn length(&self) -> u64 {
        fs::metadata(self.path("")).unwrap().len()
    }
}

fn insert(connection: &Connection, rows: usize) {
    let sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         INSERT INTO t SELECT (SELECT count(*) FROM t) + i, randomblob({ROW_BYTES}) FROM n"
    );
    connection.execute_batch(&sql).unwrap();
}

/// Busy, frames of the log, frames brought in.
fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<(i32, i32, i32)> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    connection.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
}

fn has(connection: &Connection, rows: usize) {
    let found = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(found("SELECT count(*) FROM t WHERE length(b) = 3000"), rows as i64);
    assert_eq!(found("SELECT max(a) FROM t"), rows as i64);
    let whole: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
}

#[test]
fn a_write_that_fails_leaves_the_log_in_charge() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // Up to a limit in the middle of pages that are written together, too.
    for (over, mode) in (0..8).flat_map(|n| ["PASSIVE", "FULL", "TRUNCATE"].map(|mode| (n, mode))) {
        let bench = Bench::new();
        let writer = bench.filled(300);
        insert(&writer, 100);
        let limit = bench.length() + 64 * 1024 + over * 4096 + over * 100;
        let limited = Limit::of(limit);
        let failed = checkpoint(&writer, mode);
        drop(limited);
        assert!(failed.is_err(), "{mode}: {failed:?}");
        assert_eq!(bench.brought_in(), 0);
        has(&writer, 400);
        has(&bench.open(), 400);
        assert_eq!(checkpoint(&writer, "TRUNCATE").unwrap(), (0, 0, 0));
        drop(writer);
        fs::remove_file(bench.path("-wal")).unwrap_or(());
        has(&bench.open(), 400);
    }
}

/// A checkpoint as SQLite makes it, whose pages cannot be written, while another connection appends to the log. Returns the code of the write of the last page.
///
/// The file objects are called as SQLite calls them (`walCheckpoint`), because the other connection has to come in between.
fn checkpoint_beside_a_writer(bench: &Bench) -> c_int {
    let writer = bench.filled(100);
    // Fewer pages than wait for one call.
    insert(&writer, 8);
    let other = bench.open();
    has(&other, 108);
    let files = FileObjects::of(&writer);
    let index = OpenOptions::new().read(true).write(true).open(bench.path("-shm")).unwrap();
    let word = |at: u64| {
        let mut word = [0; 4];
        index.read_exact_at(&mut word, at).unwrap();
        u32::from_ne_bytes(word)
    };
    let frames = word(FRAMES_AT);
    let mut last: BTreeMap<u32, u32> = BTreeMap::new();
    last.extend((1..=frames).map(|frame| (word(PAGES_AT + 4 * u64::from(frame - 1)), frame)));
    let exclusive = ffi::SQLITE_SHM_EXCLUSIVE;
    for lock in [CKPT_LOCK, READ0_LOCK] {
        assert_eq!(files.shm_lock(lock, exclusive | ffi::SQLITE_SHM_LOCK), ffi::SQLITE_OK);
    }
    index.write_all_at(&frames.to_ne_bytes(), TO_BRING_IN_AT).unwrap();
    let limited = Limit::of(bench.length() + 4096);
    files.control(ffi::SQLITE_FCNTL_CKPT_START);
    let mut code = ffi::SQLITE_OK;
    let highest = *last.keys().last().unwrap();
    for (page, frame) in &last {
        assert_eq!(code, ffi::SQLITE_OK, "page {page} of {highest}");
        let content = files.read_frame(*frame, PAGE_BYTES);
        code = files.write(&content, (*page as usize - 1) * PAGE_BYTES);
    }
    insert(&other, 1);
    files.control(ffi::SQLITE_FCNTL_CKPT_DONE);
    drop(limited);
    if code == ffi::SQLITE_OK {
        // What it does where it hears of nothing.
        index.write_all_at(&frames.to_ne_bytes(), BROUGHT_IN_AT).unwrap();
    }
    // Whoever begins to read now goes by the note, and waits for none of these locks.
    let reader = bench.open();
    has(&reader, 109);
    for lock in [READ0_LOCK, CKPT_LOCK] {
        files.shm_lock(lock, exclusive | ffi::SQLITE_SHM_UNLOCK);
    }
    assert_eq!(bench.brought_in(), 0);
    has(&writer, 109);
    has(&bench.open(), 109);
    drop(reader);
    assert_eq!(checkpoint(&writer, "TRUNCATE").unwrap(), (0, 0, 0));
    drop((writer, other));
    has(&bench.open(), 109);
    code
}

#[test]
fn sqlite_hears_of_it_where_another_connection_appends_meanwhile() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    assert_ne!(checkpoint_beside_a_writer(&Bench::new()), ffi::SQLITE_OK);
}

#[test]
fn neighbours_are_written_with_one_call() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let bench = Bench::new();
    let writer = bench.filled(10);
    insert(&writer, 400);
    let before = writes();
    let (_, frames, done) = checkpoint(&writer, "PASSIVE").unwrap();
    let taken = writes() - before;
    assert!(frames > 300 && frames == done, "{frames} {done}");
    assert!(taken < 60, "{taken} writes of {frames} pages");
    has(&writer, 410);
}

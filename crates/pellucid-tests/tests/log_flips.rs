//! Goal: a flipped bit in any frame of a log never gets into the database file, and never costs a commit that nobody keeps.
//!
//! Method: a log of several commits, as a killed process leaves it. In each frame one bit of each field is flipped, before the
//! database is opened or while a connection has it open, and the log is then brought into the file in each way there is. Each
//! page of the file has to be one that a commit wrote. What is flipped before is read up to the commit before the damage, and
//! the log has to lie beside the database from there on before anything is written over it; what is flipped later is an error of
//! the checkpoint, and with the bit put right every commit is there. All that for both versions of the format.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use pellucid_tests::content::{self, directory_in_memory, seal_new_databases};
use rusqlite::{ffi, Connection};

const PAGE: usize = 1024;
const FRAME: usize = PAGE + 24;
const LOG_HEADER: usize = 32;
/// A place in each field of a frame: page, commit size, what version 2 has as a stamp (flags, time, count), checksum, content,
/// nonce, generation, tag.
const FIELDS: [usize; 11] = [3, 6, 8, 12, 15, 17, 24, 600, FRAME - 30, FRAME - 17, FRAME - 1];

/// A way to bring a log into the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Auto,
    Passive,
    Full,
    Restart,
    Truncate,
    Close,
    Exclusive,
}

impl Way {
    const ALL: [Self; 7] = [
        Self::Auto,
        Self::Passive,
        Self::Full,
        Self::Restart,
        Self::Truncate,
        Self::Close,
        Self::Exclusive,
    ];

    /// What is said before the log is read.
    fn first(self) -> &'static str {
        match self {
            Self::Exclusive => "PRAGMA locking_mode=EXCLUSIVE",
            _ => "",
        }
    }

    fn sql(self) -> &'static str {
        match self {
            Self::Auto => "PRAGMA wal_autocheckpoint=1; INSERT INTO later VALUES(1)",
            Self::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
            Self::Full => "PRAGMA wal_checkpoint(FULL)",
            Self::Restart => "PRAGMA wal_checkpoint(RESTART); INSERT INTO later VALUES(1)",
            Self::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
            Self::Close => "",
            Self::Exclusive => "PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO later VALUES(1)",
        }
    }
}

/// What reads everything but the rows that trials write.
const READ: &str = "SELECT group_concat(id || body) FROM (SELECT * FROM t ORDER BY id)";

struct Bench {
    directory: tempfile::TempDir,
    /// What a killed process leaves.
    database: Vec<u8>,
    log: Vec<u8>,
    /// What is read after each commit; the first is what the file has.
    rows: Vec<String>,
    /// The pages of the file when everything up to a commit is in it.
    pages: Vec<Vec<Vec<u8>>>,
}

impl Bench {
    fn new() -> Self {
        let directory = directory_in_memory();
        let nothing = Vec::new;
        let (database, log, rows, pages) = (nothing(), nothing(), Vec::new(), Vec::new());
        let mut bench = Self { directory, database, log, rows, pages };
        let connection = bench.open();
        connection
            .execute_batch(&format!(
                "PRAGMA page_size={PAGE}; PRAGMA journal_mode=WAL;
                 CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT); CREATE TABLE later(n);
                 WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 12)
                 INSERT INTO t SELECT x, hex(zeroblob(120)) FROM c;
                 PRAGMA wal_checkpoint(TRUNCATE);"
            ))
            .unwrap();
        let mut lefts = Vec::new();
        for commit in 0..5 {
            if commit > 0 {
                let sql = "UPDATE t SET body = ?1 || substr(body, 2) WHERE id % 4 IN (0, ?1 % 4)";
                connection.execute(sql, [commit]).unwrap();
            }
            bench.rows.push(connection.query_row(READ, [], |row| row.get(0)).unwrap());
            let log = fs::read(bench.path("-wal")).unwrap();
            lefts.push((fs::read(bench.path("")).unwrap(), log));
        }
        drop(connection);
        for (database, log) in &lefts {
            (bench.database, bench.log) = (database.clone(), log.clone());
            bench.put();
            drop(bench.open());
            bench.pages.push(bench.pages());
        }
        assert!(bench.commit_frames().len() == 4 && bench.frames() > 8, "{}", bench.frames());
        bench
    }

    fn path(&self, end: &str) -> PathBuf {
        self.directory.path().join(format!("a.db{end}"))
    }

    fn open(&self) -> Connection {
        self.open_so("")
    }

    /// Opened and read, without a checkpoint of its own.
    fn open_so(&self, first: &str) -> Connection {
        let connection =
            content::open(&format!("file:{}?vfs=pellucid", self.path("").display())).unwrap();
        connection.execute_batch("PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=FULL").unwrap();
        connection.execute_batch(first).unwrap();
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).unwrap();
        connection
    }

    fn put(&self) {
        for entry in fs::read_dir(self.directory.path()).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        fs::write(self.path(""), &self.database).unwrap();
        fs::write(self.path("-wal"), &self.log).unwrap();
    }

    fn frames(&self) -> usize {
        (self.log.len() - LOG_HEADER) / FRAME
    }

    /// The frames that end commits.
    fn commit_frames(&self) -> Vec<usize> {
        let ends = |frame: &usize| self.log[start(*frame) + 4..start(*frame) + 8] != [0; 4];
        (1..=self.frames()).filter(ends).collect()
    }

    /// The pages that lie in the file, without the log.
    fn pages(&self) -> Vec<Vec<u8>> {
        let alone = self.directory.path().join("alone.db");
        fs::copy(self.path(""), &alone).unwrap();
        let uri = format!("file:{}?vfs=pellucid", alone.display());
        let connection = content::open(&uri).unwrap();
        connection.execute_batch("PRAGMA locking_mode=EXCLUSIVE; BEGIN IMMEDIATE").unwrap();
        let count: usize = connection
            .query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0))
            .unwrap() as usize;
        let pages = (0..count).map(|at| read_page(&connection, at)).collect();
        drop(connection);
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(self.directory.path().join(format!("alone.db{end}")));
        }
        pages
    }

    /// Each page of the file is one that a commit up to this one wrote.
    fn has_pages_of(&self, last: usize, what: &str) {
        for (at, page) in self.pages().iter().enumerate() {
            // The trial's own row, and what counts changes.
            let same = |known: &Vec<u8>| at == 0 && known[100..] == page[100..] || known == page;
            let is_known = self.pages[..=last].iter().any(|pages| pages.get(at).is_some_and(same));
            assert!(is_known || self.is_later(page), "{what}: page {} is of no commit", at + 1);
        }
    }

    /// The page that trials write to: a leaf with one row.
    fn is_later(&self, page: &[u8]) -> bool {
        page[0] == 13 && page[3..5] == [0, 1] && page.len() == PAGE
    }
}

fn start(frame: usize) -> usize {
    LOG_HEADER + (frame - 1) * FRAME
}

/// A page as the shim gives it to SQLite.
fn read_page(connection: &Connection, at: usize) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    let mut file: *mut ffi::sqlite3_file = std::ptr::null_mut();
    // SAFETY: the connection is open, with a transaction; the file is its own, and lives as long.
    let code = unsafe {
        ffi::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_FILE_POINTER,
            (&raw mut file).cast(),
        );
        let read = (*(*file).pMethods).xRead.unwrap();
        read(file, page.as_mut_ptr().cast(), PAGE as i32, (at * PAGE) as i64)
    };
    assert_eq!(code, ffi::SQLITE_OK, "page {} does not open", at + 1);
    page
}

/// Before the database is opened: what counts ends before the damage, and the rest is kept if commits lie behind it.
fn flipped_before(bench: &Bench, way: Way, frame: usize, at: usize) {
    let version = content::version();
    let what = format!("version {version}, before, {way:?}, frame {frame}, byte {at}");
    let at = if frame == 0 { at } else { start(frame) + at };
    let mut log = bench.log.clone();
    log[at] ^= 1 << (at % 8);
    bench.put();
    fs::write(bench.path("-wal"), &log).unwrap();
    let connection = bench.open_so(way.first());
    connection.execute_batch(way.sql()).unwrap_or_else(|error| panic!("{what}: {error}"));
    drop(connection);
    let ends = bench.commit_frames();
    let before = ends.iter().filter(|end| **end < frame).count();
    let behind = ends.len() - before - usize::from(frame > 0);
    let is_kept = |end: &str| fs::read(bench.path(end)).is_ok();
    let (lost, may_be) = ("-wal-lost-1", "-wal-maybe-lost-1");
    let kept = match (version, frame, behind) {
        (2, 0, _) => Some(may_be),
        // Of a torn transaction, or of one that was committed: version 1 cannot tell.
        (1, _, 0 | 1) => [lost].into_iter().find(|end| is_kept(end)),
        (_, _, 0) => None,
        _ => Some(lost),
    };
    for end in [lost, may_be] {
        assert_eq!(is_kept(end), kept == Some(end), "{what}: `{end}`");
    }
    if let Some(end) = kept {
        let from = start(frame.max(1));
        let kept = fs::read(bench.path(end)).unwrap();
        assert!(kept.len() == log.len() && kept[from..] == log[from..], "{what}: not the rest");
    }
    let found: String = bench.open().query_row(READ, [], |row| row.get(0)).unwrap();
    assert!(found == bench.rows[before], "{what}: not the rows of commit {before}");
    bench.has_pages_of(before, &what);
}

/// While a connection has it open: nothing gets into the file by the damaged frame, and nothing is written over it.
fn flipped_later(bench: &Bench, way: Way, frame: usize, at: usize) {
    let what = format!("version {}, later, {way:?}, frame {frame}, byte {at}", content::version());
    let at = start(frame) + at;
    bench.put();
    let connection = bench.open_so(way.first());
    let flip = || {
        let Ok(file) = File::options().read(true).write(true).open(bench.path("-wal")) else {
            return;
        };
        let mut unit = vec![0; FRAME];
        // As long as the frame lies there.
        if file.read_exact_at(&mut unit, start(frame) as u64).is_ok() {
            let mut known = bench.log[start(frame)..start(frame + 1)].to_vec();
            let is_it = unit == known;
            known[at - start(frame)] ^= 1 << (at % 8);
            if is_it || unit == known {
                file.write_all_at(&[unit[at - start(frame)] ^ (1 << (at % 8))], at as u64).unwrap();
            }
        }
    };
    flip();
    let _ = connection.execute_batch(way.sql());
    drop(connection);
    bench.has_pages_of(bench.rows.len() - 1, &what);
    flip();
    let found: String = bench.open().query_row(READ, [], |row| row.get(0)).unwrap();
    assert!(found == *bench.rows.last().unwrap(), "{what}: commits are lost");
    for end in ["-wal-lost-1", "-wal-maybe-lost-1"] {
        assert!(fs::read(bench.path(end)).is_err(), "{what}: a log that was healed is kept");
    }
}

#[test]
fn no_flipped_bit_of_a_log_gets_into_the_file_or_costs_a_commit() {
    pellucid_bundled::register().unwrap();
    seal_new_databases();
    for version in ["1", "2"] {
        std::env::set_var("PELLUCID_FORMAT", version);
        let bench = Bench::new();
        for way in Way::ALL {
            for frame in 1..=bench.frames() {
                for at in FIELDS {
                    flipped_before(&bench, way, frame, at);
                    flipped_later(&bench, way, frame, at);
                }
            }
            (0..LOG_HEADER).for_each(|at| flipped_before(&bench, way, 0, at));
        }
    }
}

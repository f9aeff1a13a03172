//! Leak test: no plain byte of a sealed database is ever handed to the disk, whatever SQLite does with it.
//!
//! One workload, full of a marker of 64 random hex digits, runs in stock `sqlite3` four times: sealed and plain,
//! recorded by a VFS below the shim (`tools/recordvfs.c`) and by a preload library at the process's own write calls
//! (`tools/capture.c`). Sealed, no 8-byte window of the marker (UTF-8 or UTF-16) may appear in any write or in any
//! file left; plain, it must appear in every kind of file, which proves that the recorder sees each of them.
//! Both runs must answer the same, so the sealed one did the same work.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::process::Command;

use crate::place::{compile, extension, feed, text, Place};
use crate::random::Random;

const WINDOW: usize = 8;

/// All windows of the marker, with a table of first bytes in front, because most bytes match nothing.
struct Needles {
    windows: HashSet<[u8; WINDOW]>,
    starts: Vec<bool>,
}

impl Needles {
    fn of(marker: &str) -> Self {
        let utf16: Vec<u8> = marker.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut windows = HashSet::new();
        for form in [marker.as_bytes(), &utf16] {
            windows.extend(form.windows(WINDOW).map(|w| <[u8; WINDOW]>::try_from(w).unwrap()));
        }
        let mut starts = vec![false; 1 << 16];
        for window in &windows {
            starts[usize::from(u16::from_le_bytes([window[0], window[1]]))] = true;
        }
        Self { windows, starts }
    }

    fn find(&self, bytes: &[u8]) -> Option<usize> {
        bytes.windows(WINDOW).position(|window| {
            self.starts[usize::from(u16::from_le_bytes([window[0], window[1]]))]
                && self.windows.contains(window)
        })
    }
}

/// What one kind of file received.
#[derive(Debug, Default, Clone)]
struct Tally {
    bytes: u64,
    hits: u64,
    /// Where the marker was seen first.
    first: Option<String>,
}

/// SQLite's flags of xOpen, or for writes caught at the process what the name says.
fn kind(flags: u32, name: &str) -> &'static str {
    for (bit, kind) in [
        (0x100, "database"),
        (0x200, "temporary database"),
        (0x400, "transient table"),
        (0x800, "journal"),
        (0x1000, "sorter or temporary journal"),
        (0x2000, "statement journal"),
        (0x4000, "super-journal"),
        (0x80000, "WAL"),
    ] {
        if flags & bit != 0 {
            return kind;
        }
    }
    let file = name.rsplit('/').next().unwrap_or(name);
    match file {
        _ if file.contains("-mj") => "super-journal",
        _ if file.ends_with("-journal") => "journal",
        _ if file.ends_with("-wal") => "WAL",
        _ if file.ends_with("-shm") => "WAL index",
        _ if file.ends_with(".db") => "database",
        _ if file.contains("etilqs_") => "temporary",
        // The shim's own, while a page size changes.
        _ if file.starts_with("pellucid-") => "overlay",
        _ => "other",
    }
}

fn tally(capture: &Path, needles: &Needles) -> BTreeMap<&'static str, Tally> {
    let bytes = std::fs::read(capture).unwrap();
    let mut tallies: BTreeMap<&'static str, Tally> = BTreeMap::new();
    let mut at = 0;
    while at < bytes.len() {
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let (flags, name_bytes) = (word(at), word(at + 4) as usize);
        let length = u64::from_ne_bytes(bytes[at + 8..at + 16].try_into().unwrap()) as usize;
        let name = text(&bytes[at + 16..at + 16 + name_bytes]);
        let start = at + 16 + name_bytes;
        let tally = tallies.entry(kind(flags, &name)).or_default();
        tally.bytes += length as u64;
        if let Some(within) = needles.find(&bytes[start..start + length]) {
            tally.hits += 1;
            tally
                .first
                .get_or_insert_with(|| format!("{name}, byte {within} of a write of {length}"));
        }
        at = start + length;
    }
    tallies
}

/// The work in one journal mode; `$M` is the mode, `$K` the marker.
const EACH_MODE: &str = "
.open $M.db
PRAGMA page_size=2048; PRAGMA auto_vacuum=incremental;
PRAGMA journal_mode=$M;
PRAGMA temp_store=1; PRAGMA cache_size=5; PRAGMA temp.cache_size=5;
CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, body BLOB, u INTEGER UNIQUE);
CREATE INDEX by_name ON t(name, body);
CREATE TABLE w(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
CREATE VIRTUAL TABLE f USING fts5(words);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<600)
INSERT INTO t SELECT i, '$K'||i, CAST(i||'$K' AS BLOB), i FROM n;
INSERT INTO w SELECT i.id||'$K', name FROM t AS i WHERE id<150;
INSERT INTO f SELECT id||' $K '||id||'$K' FROM t WHERE id<150;
INSERT INTO t SELECT 5000+id, replace(hex(zeroblob(60)),'00','$K'), zeroblob(5000), 5000+id FROM t WHERE id<20;
-- Spills in a transaction, savepoints, a rollback.
BEGIN; UPDATE t SET name=name||'x$K'; SAVEPOINT a; UPDATE t SET body=body||'$K'; DELETE FROM t WHERE id%3=0;
ROLLBACK TO a; RELEASE a; COMMIT;
BEGIN; UPDATE t SET name='$K'; INSERT INTO f SELECT 'again $K' FROM t WHERE id<200; ROLLBACK;
-- A statement that fails late, inside a transaction: a statement journal.
BEGIN; UPDATE t SET name=name||'$K', u=CASE WHEN id=590 THEN 3 ELSE u END;
COMMIT;
-- Temporary and transient tables.
CREATE TEMP TABLE tt AS SELECT name, body FROM t; CREATE INDEX temp.ti ON tt(name);
BEGIN; UPDATE tt SET name=name||'$K'; ROLLBACK;
SELECT count(*) FROM (SELECT DISTINCT name||id AS d, body FROM t ORDER BY body);
SELECT count(*) FROM (SELECT name||u, count(*) FROM t GROUP BY 1);
SELECT count(*) FROM (SELECT name, body FROM t UNION SELECT name||'$K', body FROM t);
DROP TABLE tt;
-- Several files in one transaction.
ATTACH '$M-other.db' AS o;
PRAGMA o.journal_mode=$M; PRAGMA o.cache_size=5;
CREATE TABLE o.t(id INTEGER PRIMARY KEY, name);
BEGIN; INSERT INTO o.t SELECT id, name FROM t; UPDATE t SET body=body||'$K' WHERE id<100; COMMIT;
BEGIN; UPDATE o.t SET name=name||'$K'; UPDATE t SET body=body||'$K' WHERE id<100; COMMIT;
DETACH o;
-- Making room, other page sizes, copies.
DELETE FROM t WHERE id BETWEEN 200 AND 400; PRAGMA incremental_vacuum(20);
VACUUM;
VACUUM INTO '$M-into.db';
.backup main $M-backup.db
.restore main $M-into.db
PRAGMA wal_checkpoint(TRUNCATE);
PRAGMA journal_mode=DELETE; PRAGMA page_size=512; VACUUM; PRAGMA journal_mode=$M;
UPDATE t SET name=name||'$K' WHERE id<50;
SELECT count(*), sum(length(name)), sum(length(body)) FROM t;
SELECT count(*) FROM f WHERE f MATCH '$K';
PRAGMA integrity_check;
";

/// Sorts of more than 10 MB, and a database in UTF-16; `$K` is the marker.
const LARGE: &str = "
.open sorter.db
PRAGMA temp_store=1; PRAGMA cache_size=5; PRAGMA journal_mode=WAL;
CREATE TABLE big(id INTEGER PRIMARY KEY, s TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<40000)
INSERT INTO big SELECT i, (i*7919%40000)||'$K$K$K$K$K' FROM n;
CREATE INDEX by_s ON big(s);
DROP INDEX by_s;
SELECT count(*) FROM (SELECT s FROM big ORDER BY s DESC LIMIT -1 OFFSET 1);
WITH RECURSIVE q(i,s) AS (SELECT 1,'$K' UNION SELECT i+1,'$K'||i FROM q WHERE i<15000) SELECT count(*) FROM q;
.open utf16.db
PRAGMA encoding='UTF-16le'; PRAGMA cache_size=5;
CREATE TABLE t(s TEXT PRIMARY KEY);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<500) INSERT INTO t SELECT i||'$K' FROM n;
BEGIN; UPDATE t SET s=s||'$K'; COMMIT;
SELECT count(*) FROM t;
";

fn workload(marker: &str) -> String {
    let modes = ["DELETE", "WAL", "TRUNCATE", "PERSIST", "MEMORY"];
    let mut script: String = modes.iter().map(|mode| EACH_MODE.replace("$M", mode)).collect();
    script.push_str(LARGE);
    script.replace("$K", marker)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recorder {
    Vfs,
    Process,
}

struct Run {
    place: Place,
    stdout: String,
    stderr: String,
    tallies: BTreeMap<&'static str, Tally>,
    /// Files left that hold the marker.
    left: BTreeSet<String>,
}

fn run(recorder: Recorder, sealed: bool, marker: &str) -> Run {
    let place = Place::new();
    let capture = place.path("tmp").join("capture");
    let mut command = place.stock();
    match recorder {
        Recorder::Vfs => {
            let library = compile(&place, "recordvfs");
            command.env("RECORD_TO", &capture);
            command.arg("-cmd").arg(format!(".load {}", library.display()));
        }
        Recorder::Process => {
            let library = compile(&place, "capture");
            command.env("CAPTURE_TO", &capture).env("LD_PRELOAD", &library);
        }
    }
    if sealed {
        load_shim(&place, &mut command);
    }
    let output = feed(&mut command, &workload(marker));
    assert!(output.status.code().is_some(), "sqlite3 died: {}", text(&output.stderr));
    let needles = Needles::of(marker);
    let tallies = tally(&capture, &needles);
    std::fs::remove_file(&capture).unwrap();
    let holds = |path: &&std::path::PathBuf| needles.find(&std::fs::read(path).unwrap()).is_some();
    let name = |path: &std::path::PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let left = place.files().iter().filter(holds).map(name).collect();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let run = Run { place, stdout, stderr, tallies, left };
    println!("{recorder:?}, {}:", if sealed { "sealed" } else { "plain" });
    for (kind, tally) in &run.tallies {
        println!("  {kind}: {} bytes, {} writes with the marker", tally.bytes, tally.hits);
    }
    run
}

/// What stays in memory is not looked for: temporary files are sealed from their first block on.
fn load_shim(place: &Place, command: &mut Command) {
    command.env("PELLUCID_TEMP_MEMORY", "0");
    command.arg("-cmd").arg(format!(".load {}", extension().display()));
    place.sealing(command);
}

/// From `PELLUCID_TEST_SEED`, else from the clock; printed.
fn seed() -> u64 {
    let given = std::env::var("PELLUCID_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.unwrap().as_nanos() as u64
    });
    println!("PELLUCID_TEST_SEED={seed}");
    seed
}

fn compare(recorder: Recorder, kinds: &[&str]) {
    let mut random = Random(seed());
    let marker: String = (0..4).map(|_| format!("{:016x}", random.draw())).collect();
    let plain = run(recorder, false, &marker);
    for kind in kinds {
        let seen = plain.tallies.get(kind).map_or(0, |tally| tally.hits);
        assert!(seen > 0, "the workload puts no marker into a {kind}: this test could not fail");
    }
    for file in ["DELETE.db", "WAL-backup.db", "PERSIST-into.db", "PERSIST.db-journal", "utf16.db"]
    {
        assert!(
            plain.left.contains(file),
            "plain {file} holds no marker: this test could not fail"
        );
    }
    let sealed = run(recorder, true, &marker);
    assert_eq!(plain.stdout, sealed.stdout, "sealed: {}", sealed.stderr);
    // One UNIQUE conflict in each mode is meant; nothing else may fail.
    let errors = |run: &Run| run.stderr.lines().filter(|l| l.contains("rror")).count();
    assert_eq!(errors(&plain), errors(&sealed), "{}\n{}", plain.stderr, sealed.stderr);
    assert_eq!(errors(&plain), 5, "{}", plain.stderr);
    for file in sealed.place.files().iter().filter(|path| path.extension() == Some("db".as_ref())) {
        let bytes = std::fs::read(file).unwrap();
        assert!(bytes.starts_with(b"Pellucid sealed\0"), "{} is not sealed", file.display());
    }
    for kind in kinds {
        let written = sealed.tallies.get(kind).map_or(0, |tally| tally.bytes);
        assert!(written > 0, "sealed, nothing was written to a {kind}");
    }
    let leaks: Vec<_> = sealed.tallies.iter().filter(|(_, tally)| tally.hits > 0).collect();
    assert!(leaks.is_empty(), "plain bytes of a sealed database reach the disk: {leaks:?}");
    assert!(sealed.left.is_empty(), "files with plain bytes: {:?}", sealed.left);
}

#[test]
fn nothing_plain_goes_through_the_vfs_below() {
    let kinds = [
        "database",
        "WAL",
        "journal",
        "temporary database",
        "transient table",
        "sorter or temporary journal",
        "statement journal",
    ];
    compare(Recorder::Vfs, &kinds);
}

#[test]
fn nothing_plain_leaves_the_process() {
    compare(Recorder::Process, &["database", "WAL", "journal", "temporary"]);
}

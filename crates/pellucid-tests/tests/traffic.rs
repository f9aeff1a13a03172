//! Goal: a sealed database moves about as many bytes as a plain one, whatever SQLite does between two reads.
//!
//! Method: the same large transactions, in a cache that is far too small, on a plain and on a sealed database; what
//! the thread has read and written by system calls (proc(5), /proc/pid/io) is compared. SQLite then writes pages that
//! it reads again, goes through them in their order while it changes them, and in WAL mode rewrites the checksum of
//! each frame of the transaction: whoever reads ahead and forgets it at each write reads everything many times.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

const ROWS: u32 = 20_000;
/// Of plain's bytes. A sealed page holds a little less; and a frame is written whole where plain rewrites its header.
const MOST_READ: f64 = 1.25;
const MOST_WRITTEN: f64 = 1.25;

const WORK: [(&str, &str); 3] = [
    ("entries at random", "UPDATE t SET k = hex(id * 2654435761 % 4294967296) || substr(k, 9)"),
    ("rows in their order", "UPDATE t SET body = replace(body, '0', 'o')"),
    ("half of the rows", "DELETE FROM t WHERE id % 2"),
];

/// Bytes that this thread has read and written.
fn moved() -> [f64; 2] {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    let number = |name: &str| -> f64 {
        let line = io.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.parse().unwrap()
    };
    [number("rchar: "), number("wchar: ")]
}

fn open(path: &Path, parameters: &str) -> Connection {
    let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(format!("file:{}?{parameters}", path.display()), flags).unwrap()
}

/// Of each piece of work, and what the database holds at the end.
fn work(connection: &Connection, mode: &str) -> (Vec<[f64; 2]>, String) {
    let make = format!(
        "PRAGMA page_size=4096; PRAGMA journal_mode={mode}; PRAGMA synchronous=OFF;
         CREATE TABLE t(id INTEGER PRIMARY KEY, k TEXT, body TEXT); CREATE INDEX i ON t(k);
         WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < {ROWS})
         INSERT INTO t SELECT id, printf('%08x', id) || 'keys to find rows by', printf('%0200d', id) FROM n;
         PRAGMA wal_checkpoint=TRUNCATE; PRAGMA cache_size=20; PRAGMA cache_spill=20"
    );
    connection.execute_batch(&make).unwrap();
    let took = WORK.map(|(_, statement)| {
        let before = moved();
        connection.execute_batch(statement).unwrap();
        let after = moved();
        [0, 1].map(|at| after[at] - before[at])
    });
    let sum = "SELECT count(*) || ' ' || sum(id) || ' ' || min(k) || ' ' || max(k) || ' ' || max(body) FROM t";
    let all = connection.query_row(sum, [], |row| row.get(0)).unwrap();
    let check = "PRAGMA integrity_check";
    let checked: String = connection.query_row(check, [], |row| row.get(0)).unwrap();
    assert_eq!(checked, "ok");
    (took.to_vec(), all)
}

fn compare(mode: &str) {
    pellucid_bundled::register().unwrap();
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let key = directory.path().join("key");
    fs::write(&key, [7; 32]).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let sealed = format!("vfs=pellucid&key_file={}", key.display());
    let (plain, expected) = work(&open(&directory.path().join("plain.db"), "vfs=unix"), mode);
    let (sealed, found) = work(&open(&directory.path().join("sealed.db"), &sealed), mode);
    assert_eq!(found, expected);
    for ((name, _), (plain, sealed)) in WORK.iter().zip(plain.iter().zip(&sealed)) {
        let [read, written] = [0, 1].map(|at| sealed[at] / plain[at]);
        println!("{mode}, {name}: {plain:?} plain, {sealed:?} sealed: {read:.2} {written:.2}");
        assert!(plain[0] > 1e6 && plain[1] > 1e6, "{name}: the cache was large enough");
        assert!(read < MOST_READ, "{mode}, {name}: reads {read:.2} of what plain reads");
        assert!(written < MOST_WRITTEN, "{mode}, {name}: writes {written:.2} of what plain writes");
    }
}

#[test]
fn a_transaction_larger_than_the_cache_moves_as_much_in_wal_mode() {
    compare("WAL");
}

#[test]
fn a_transaction_larger_than_the_cache_moves_as_much_in_rollback_mode() {
    compare("DELETE");
}

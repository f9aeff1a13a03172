//! Goal: a sealed database moves about as many bytes as a plain one, whatever SQLite does between two reads.
//!
//! Method: the same large transactions, in a cache that is far too small, on a plain and on a sealed database; what
//! the thread has read and written by system calls (proc(5), /proc/pid/io) is compared. SQLite then writes pages that
//! it reads again, goes through them in their order while it changes them, and in WAL mode rewrites the checksum of
//! each frame of the transaction: whoever reads ahead and forgets it at each write reads everything many times.
//! Read transactions that miss the cache are compared by how often they look at the file's size: the `fstat` of SQLite's
//! `unix` VFS is exchanged for one that counts (`xSetSystemCall`).
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::{ffi, Connection, OpenFlags};

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

thread_local! {
    static LOOKS: Cell<u32> = const { Cell::new(0) };
}

unsafe extern "C" {
    #[link_name = "fstat"]
    fn system_fstat(descriptor: c_int, out: *mut c_void) -> c_int;
}

unsafe extern "C" fn counting_fstat(descriptor: c_int, out: *mut c_void) -> c_int {
    LOOKS.set(LOOKS.get() + 1);
    // SAFETY: as SQLite calls it.
    unsafe { system_fstat(descriptor, out) }
}

/// Counts the looks of each thread from now on.
fn count_looks() {
    // SAFETY: SQLite's own VFS, which stays; the function has the type that SQLite calls by this name.
    unsafe {
        let unix = ffi::sqlite3_vfs_find(c"unix".as_ptr());
        let counting: unsafe extern "C" fn(c_int, *mut c_void) -> c_int = counting_fstat;
        let call = std::mem::transmute::<
            unsafe extern "C" fn(c_int, *mut c_void) -> c_int,
            unsafe extern "C" fn(),
        >(counting);
        assert_eq!((*unix).xSetSystemCall.unwrap()(unix, c"fstat".as_ptr(), Some(call)), 0);
    }
}

const READERS: u32 = 2000;

/// Looks at a file's size in [`READERS`] transactions, each of which reads a row that the cache does not have.
fn looks(connection: &Connection, mode: &str, between: &str) -> u32 {
    let make = format!(
        "PRAGMA journal_mode={mode}; PRAGMA synchronous=OFF; CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT);
         WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < {READERS})
         INSERT INTO t SELECT id, printf('%01500d', id) FROM n; PRAGMA wal_checkpoint=TRUNCATE; {between};
         PRAGMA cache_size=20"
    );
    connection.execute_batch(&make).unwrap();
    let mut read = connection.prepare("SELECT length(body) FROM t WHERE id = ?1").unwrap();
    let before = LOOKS.get();
    for at in 0..READERS {
        let id = 1 + at * 797 % READERS;
        assert_eq!(read.query_row([id], |row| row.get::<_, u32>(0)).unwrap(), 1500);
    }
    LOOKS.get() - before
}

/// It was one look more for each transaction in WAL mode, two more in rollback mode.
#[test]
fn a_reader_that_misses_the_cache_looks_at_the_size_as_seldom_as_plain() {
    pellucid_bundled::register().unwrap();
    count_looks();
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let key = directory.path().join("key");
    fs::write(&key, [7; 32]).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let sealed = format!("vfs=pellucid&key_file={}", key.display());
    // A log in which nobody has committed yet does not say how many pages there are, so SQLite asks the file.
    for (mode, between, most) in [
        ("DELETE", "", READERS),
        ("WAL", "UPDATE t SET body = body WHERE id = 7", READERS / 2),
        ("WAL", "UPDATE t SET body = body WHERE id = 7; PRAGMA wal_checkpoint", READERS / 2),
    ] {
        let named = |name: &str| directory.path().join(format!("{name}{}.db", LOOKS.get()));
        let plain = looks(&open(&named("plain"), "vfs=unix"), mode, between);
        let sealed = looks(&open(&named("sealed"), &sealed), mode, between);
        println!("{mode}, {between}: {plain} plain, {sealed} sealed");
        assert!(plain <= most, "{mode}: plain looks {plain} times");
        assert!(sealed <= most.max(plain) + 20, "{mode}, {between}: {sealed} looks, plain {plain}");
    }
}

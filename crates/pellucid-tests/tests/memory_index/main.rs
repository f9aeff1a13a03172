//! Goal: where a header asks for the wal-index in memory, all that use the database at once use one index, or are refused in words;
//! no row is wrong, no commit is lost, and no object outlives the opening after a kill.
//!
//! Method: processes with a connection each are led line by line, in mount namespaces with a `/dev/shm` that is private, full,
//! missing or read-only, under two accounts, by a second name of the file, killed, forked, with a token that is exchanged while
//! they use it. What one commits the others have to read, or to be refused; at the end the database has each commit.
//!
//! tests/campaigns/memory-index draws the same at random. It can fail: `two_indexes_would_lose_commits_and_that_is_noticed`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod child;
mod drawn;
mod namespaces;

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::header::Second;
use pellucid::memory_index::{object_name, token_of, Place, RECORD_AT, RECORD_BYTES};
use pellucid_engine::{header_change, index_place};
use pellucid_files::machine_memory::boot_id;
use pellucid_tests::content::{open, seal_new_databases};
use rusqlite::Connection;

use child::Child;

const PATIENCE: Duration = Duration::from_secs(10);
const ELSEWHERE: &str = "another machine, container or account has this database open";
const UNUSABLE: &str = "its wal-index in memory cannot be used";

#[test]
fn child_entry() {
    child::entry();
}

struct Bench {
    directory: tempfile::TempDir,
    /// The accounts' own folders.
    homes: tempfile::TempDir,
}

impl Bench {
    /// A database with one row, in WAL mode, closed, whose header asks for an index in memory.
    fn new() -> Self {
        pellucid_bundled::register().unwrap();
        seal_new_databases();
        // Not in `/dev/shm`, which some tests cover.
        let bench =
            Self { directory: tempfile::tempdir().unwrap(), homes: tempfile::tempdir().unwrap() };
        fs::set_permissions(bench.homes.path(), Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(bench.directory.path(), Permissions::from_mode(0o777)).unwrap();
        let connection = bench.connect();
        connection
            .execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t(x); INSERT INTO t VALUES(1);")
            .unwrap();
        drop(connection);
        let second = |header: &pellucid::header::Header| {
            let second = Some(Second::default());
            pellucid::header::Header { second, ..header.clone() }
        };
        header_change::change(
            &bench.database(),
            |_, header, _| Ok(Some(second(header).into())),
            || Ok(()),
        )
        .unwrap();
        assert!(index_place::change(&bench.database(), true, PATIENCE).unwrap());
        bench
    }

    fn database(&self) -> PathBuf {
        self.path("a.db")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn connect(&self) -> Connection {
        let connection = open(&format!("file:{}?vfs=pellucid", self.database().display())).unwrap();
        connection.busy_timeout(PATIENCE).unwrap();
        connection
    }

    /// Where the object of the database lies, whether it is there or not.
    fn object(&self) -> PathBuf {
        let found = fs::metadata(self.database()).unwrap();
        let place = Place { device: found.dev(), inode: found.ino() };
        Path::new("/dev/shm").join(object_name(place, &boot_id().unwrap()))
    }

    fn token(&self) -> Option<[u8; 16]> {
        let mut found = [0; RECORD_BYTES];
        let index = fs::File::open(self.path("a.db-shm")).unwrap();
        index.read_exact_at(&mut found, RECORD_AT).ok()?;
        token_of(&found)
    }

    /// The rows, read by an opener of now.
    fn rows(&self) -> Vec<i64> {
        rows(&self.connect())
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // A connection that was refused has a lock on the database, and keeps the others from being the last.
        let _ = fs::remove_file(self.object());
    }
}

fn rows(connection: &Connection) -> Vec<i64> {
    let mut statement = connection.prepare("SELECT x FROM t ORDER BY x").unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

#[track_caller]
fn refused(answer: Result<String, String>, words: &str) {
    let told = answer.expect_err("it was not refused");
    assert!(told.contains(words), "{told}");
}

#[test]
fn one_object_is_shared_and_goes_with_the_last_connection() {
    let bench = Bench::new();
    assert!(!bench.object().exists());
    let mut first = Child::start();
    first.open(&bench.database()).unwrap();
    first.sql("INSERT INTO t VALUES(2)").unwrap();
    assert!(bench.object().exists());
    // The file has the token alone.
    let index = fs::metadata(bench.path("a.db-shm")).unwrap();
    assert_eq!((index.len(), bench.token().is_some()), (RECORD_AT + RECORD_BYTES as u64, true));
    let (object, database) =
        (fs::metadata(bench.object()).unwrap(), fs::metadata(bench.database()).unwrap());
    let whose = |found: &fs::Metadata| (found.uid(), found.gid(), found.mode() & 0o777);
    assert_eq!(whose(&object), whose(&database));
    let mut second = Child::start();
    second.open(&bench.database()).unwrap();
    assert_eq!(second.sql("SELECT sum(x) FROM t").unwrap(), "3");
    second.sql("INSERT INTO t VALUES(3)").unwrap();
    assert_eq!(first.sql("SELECT sum(x) FROM t").unwrap(), "6");
    first.tell("close").unwrap();
    assert!(bench.object().exists());
    // Two connections of one process, and one that is attached.
    let (one, two) = (bench.connect(), bench.connect());
    one.execute_batch("INSERT INTO t VALUES(4)").unwrap();
    let attached = format!("ATTACH 'file:{}?vfs=pellucid' AS b", bench.database().display());
    let outer = open("file::memory:?vfs=pellucid").unwrap();
    outer.execute_batch(&attached).unwrap();
    let sum: i64 = outer.query_row("SELECT sum(x) FROM b.t", [], |row| row.get(0)).unwrap();
    assert_eq!((rows(&two), sum), (vec![1, 2, 3, 4], 10));
    drop((one, two, outer));
    second.tell("close").unwrap();
    assert!(!bench.object().exists() && !bench.path("a.db-shm").exists());
    assert!(!bench.path("a.db-wal").exists());
    assert_eq!(bench.rows(), [1, 2, 3, 4]);
}

#[test]
fn a_long_log_has_many_regions() {
    let bench = Bench::new();
    let mut writer = Child::start();
    writer.open(&bench.database()).unwrap();
    writer.sql("PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=50").unwrap();
    let many = "WITH RECURSIVE c(x) AS (SELECT 10 UNION ALL SELECT x + 1 FROM c WHERE x < 9009) \
                INSERT INTO t SELECT zeroblob(3900) FROM c";
    writer.sql(many).unwrap();
    assert!(fs::metadata(bench.object()).unwrap().len() >= 64 * 1024 + 3 * 32 * 1024);
    let mut reader = Child::start();
    reader.open(&bench.database()).unwrap();
    assert_eq!(reader.sql("SELECT count(*) FROM t; PRAGMA integrity_check").unwrap(), "9001 ok");
    // All are killed: the next opener finds the log again, and the object is its own.
    let old = fs::metadata(bench.object()).unwrap().ino();
    writer.kill();
    reader.kill();
    assert!(bench.object().exists());
    let connection = bench.connect();
    let count: i64 = connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 9001);
    assert_ne!(fs::metadata(bench.object()).unwrap().ino(), old);
    drop(connection);
    assert!(!bench.object().exists());
}

#[test]
fn no_object_outlives_the_opening_after_a_kill() {
    let bench = Bench::new();
    let kills: i64 =
        std::env::var("PELLUCID_INDEX_KILLS").map_or(40, |kills| kills.parse().unwrap());
    for number in 0..kills {
        let mut child = Child::start();
        child.open(&bench.database()).unwrap();
        child.sql(&format!("INSERT INTO t VALUES({})", number + 2)).unwrap();
        if number % 3 == 0 {
            child.sql("BEGIN IMMEDIATE").unwrap();
            child.sql("INSERT INTO t VALUES(-1)").unwrap();
        }
        child.kill();
        assert!(bench.object().exists());
        if number % 4 == 0 {
            // As after a start of the machine, or as `RemoveIPC` does.
            fs::remove_file(bench.object()).unwrap();
        }
    }
    assert_eq!(bench.rows(), (1..=kills + 1).collect::<Vec<_>>());
    assert!(!bench.object().exists());
    println!("RESULT {kills} {kills} 1 0 {kills} 0");
}

#[test]
fn a_token_that_is_exchanged_stops_writers_and_loses_nothing() {
    let bench = Bench::new();
    let connection = bench.connect();
    connection.execute_batch("INSERT INTO t VALUES(2)").unwrap();
    let index = OpenOptions::new().write(true).read(true).open(bench.path("a.db-shm")).unwrap();
    let mut right = [0; RECORD_BYTES];
    index.read_exact_at(&mut right, RECORD_AT).unwrap();
    for round in 0..50u8 {
        let mut wrong = right;
        wrong[8 + usize::from(round) % 16] ^= 1 + round;
        if round % 5 == 0 {
            wrong = [0; RECORD_BYTES];
        }
        index.write_all_at(&wrong, RECORD_AT).unwrap();
        assert!(connection.execute_batch("INSERT INTO t VALUES(-1)").is_err(), "{round}");
        let mut other = Child::start();
        other.open(&bench.database()).unwrap();
        refused(other.sql("SELECT * FROM t"), ELSEWHERE);
        drop(other);
        index.write_all_at(&right, RECORD_AT).unwrap();
        connection.execute_batch(&format!("INSERT INTO t VALUES({})", round + 3)).unwrap();
    }
    // And gone for good: a connection that closes brings nothing in, and the log has it all.
    index.write_all_at(&[0; RECORD_BYTES], RECORD_AT).unwrap();
    drop(connection);
    assert!(bench.path("a.db-wal").exists());
    drop(index);
    assert_eq!(bench.rows(), (1..=52).collect::<Vec<_>>());
}

#[test]
fn a_file_shm_that_is_removed_or_exchanged_lets_nobody_in() {
    let bench = Bench::new();
    let mut first = Child::start();
    first.open(&bench.database()).unwrap();
    first.sql("INSERT INTO t VALUES(2)").unwrap();
    for exchanged in [false, true] {
        fs::rename(bench.path("a.db-shm"), bench.path("kept")).unwrap();
        if exchanged {
            fs::copy(bench.path("kept"), bench.path("a.db-shm")).unwrap();
        }
        let mut second = Child::start();
        second.open(&bench.database()).unwrap();
        refused(second.sql("SELECT * FROM t"), ELSEWHERE);
        refused(first.sql("INSERT INTO t VALUES(-1)"), "its file `-shm` was removed");
        drop(second);
        fs::rename(bench.path("kept"), bench.path("a.db-shm")).unwrap();
    }
    first.sql("INSERT INTO t VALUES(3)").unwrap();
    drop(first);
    // One of an older opening, put back while nobody has the database open.
    let mut first = Child::start();
    first.open(&bench.database()).unwrap();
    first.sql("INSERT INTO t VALUES(4)").unwrap();
    fs::copy(bench.path("a.db-shm"), bench.path("old")).unwrap();
    first.kill();
    let mut second = Child::start();
    second.open(&bench.database()).unwrap();
    second.sql("INSERT INTO t VALUES(5)").unwrap();
    second.kill();
    fs::copy(bench.path("old"), bench.path("a.db-shm")).unwrap();
    assert_eq!(bench.rows(), [1, 2, 3, 4, 5]);
}

#[test]
fn a_second_name_of_the_file_is_refused() {
    let bench = Bench::new();
    // Whoever may write to the folder can give a file a second name: the shim refuses that by itself.
    fs::set_permissions(bench.directory.path(), Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(bench.path("other")).unwrap();
    let other = bench.path("other/b.db");
    fs::hard_link(bench.database(), &other).unwrap();
    let mut first = Child::start();
    first.open(&bench.database()).unwrap();
    first.sql("INSERT INTO t VALUES(2)").unwrap();
    let mut second = Child::start();
    let opened = second.open(&other).and_then(|_| second.sql("SELECT * FROM t"));
    refused(opened, ELSEWHERE);
    // In one process too, where SQLite has one `-shm` for both.
    first.tell("close").unwrap();
    let one = bench.connect();
    one.execute_batch("INSERT INTO t VALUES(3)").unwrap();
    let two = open(&format!("file:{}?vfs=pellucid", other.display())).unwrap();
    assert!(two.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).is_err());
    drop(two);
    one.execute_batch("INSERT INTO t VALUES(4)").unwrap();
    drop(one);
    assert_eq!(bench.rows(), [1, 2, 3, 4]);
}

#[test]
fn an_exclusive_locking_mode_keeps_or_needs_no_object() {
    let bench = Bench::new();
    // From the start: the index is SQLite's own.
    let connection = bench.connect();
    connection.execute_batch("PRAGMA locking_mode=EXCLUSIVE; INSERT INTO t VALUES(2);").unwrap();
    assert!(!bench.object().exists());
    drop(connection);
    // Later.
    let connection = bench.connect();
    connection
        .execute_batch(
            "INSERT INTO t VALUES(3); PRAGMA locking_mode=EXCLUSIVE; INSERT INTO t VALUES(4);",
        )
        .unwrap();
    assert!(bench.object().exists());
    connection.execute_batch("PRAGMA locking_mode=NORMAL; INSERT INTO t VALUES(5);").unwrap();
    assert_eq!(bench.rows(), [1, 2, 3, 4, 5]);
    // Other journal modes have none.
    for mode in ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "OFF"] {
        connection
            .execute_batch(&format!("PRAGMA journal_mode={mode}; UPDATE t SET x = x;"))
            .unwrap();
        assert!(!bench.object().exists(), "{mode}");
    }
    connection.execute_batch("PRAGMA journal_mode=WAL; UPDATE t SET x = x;").unwrap();
    assert!(bench.object().exists());
    drop(connection);
    assert_eq!(bench.rows(), [1, 2, 3, 4, 5]);
}

#[test]
fn the_flag_moves_while_nobody_has_the_database_open() {
    let bench = Bench::new();
    let mut idle = Child::start();
    idle.open(&bench.database()).unwrap();
    idle.sql("INSERT INTO t VALUES(2)").unwrap();
    let short = Duration::from_millis(200);
    assert!(index_place::change(&bench.database(), false, short).is_err());
    idle.kill();
    assert!(bench.object().exists());
    assert!(index_place::change(&bench.database(), false, PATIENCE).unwrap());
    assert!(!bench.object().exists());
    assert!(!index_place::change(&bench.database(), false, PATIENCE).unwrap());
    let connection = bench.connect();
    connection.execute_batch("INSERT INTO t VALUES(3)").unwrap();
    assert_eq!(fs::metadata(bench.path("a.db-shm")).unwrap().len(), 32768);
    assert!(!bench.object().exists());
    drop(connection);
    // Another connection of this process, which was open before and held no lock.
    let waiting = bench.connect();
    assert!(index_place::change(&bench.database(), true, PATIENCE).unwrap());
    waiting.execute_batch("INSERT INTO t VALUES(4)").unwrap();
    assert!(bench.object().exists());
    assert_eq!(rows(&waiting), [1, 2, 3, 4]);
}

#[test]
fn a_child_uses_no_connection_of_its_parent() {
    let bench = Bench::new();
    let mut parent = Child::start();
    parent.open(&bench.database()).unwrap();
    parent.sql("INSERT INTO t VALUES(2)").unwrap();
    let uri = format!("file:{}?vfs=pellucid", bench.database().display());
    assert_eq!(parent.tell(&format!("fork {uri}")).unwrap(), "0", "what the child wrote");
    parent.sql("INSERT INTO t VALUES(3)").unwrap();
    assert_eq!(parent.sql("SELECT x FROM t ORDER BY x").unwrap(), "1 2 3");
    let mut other = Child::start();
    other.open(&bench.database()).unwrap();
    other.sql("INSERT INTO t VALUES(4)").unwrap();
    drop((parent, other));
    assert_eq!(bench.rows(), [1, 2, 3, 4]);
}

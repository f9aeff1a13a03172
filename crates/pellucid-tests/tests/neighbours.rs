//! Goal: without a log, pages that are neighbours go out with one call, and a call that fails takes its whole transaction with it:
//! what SQLite calls committed is there, and of what it does not call so nothing is.
//!
//! Method: the cache is small, so that pages go out in the middle of a transaction. The file's length is limited (EFBIG) in one of
//! its statements, in steps that end in the middle of pages that are written together, and is free again before the next one.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;
use std::sync::Mutex;

use pellucid_tests::content::{self, directory_in_memory, seal_new_databases};
use pellucid_tests::limits::Limit;
use rusqlite::Connection;

/// The limit is the process's.
static ONE: Mutex<()> = Mutex::new(());

/// Statements of one transaction: what is added, what is read in between, and what is changed where it lies.
const STATEMENTS: [&str; 6] = [
    "INSERT INTO t SELECT a + 1000, randomblob(3000), 1 FROM t WHERE a <= 100",
    "SELECT sum(length(b)) FROM t",
    "UPDATE t SET b = randomblob(3000), c = 1 WHERE a < 60",
    "INSERT INTO t SELECT a + 2000, randomblob(3000), 1 FROM t WHERE a <= 50",
    "SELECT max(length(b)) FROM t WHERE a > 1020",
    "DELETE FROM t WHERE a BETWEEN 61 AND 70",
];
const OLD: &str = "200 0 20100";
const NEW: &str = "340 209 225770";

struct Bench(tempfile::TempDir);

impl Bench {
    /// A database of 200 rows.
    fn new(journal: &str) -> Self {
        pellucid_bundled::register().unwrap();
        seal_new_databases();
        let bench = Self(directory_in_memory());
        let sql = "CREATE TABLE t(a INTEGER PRIMARY KEY, b, c);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
            INSERT INTO t SELECT i, randomblob(3000), 0 FROM n";
        bench.open(journal, "FULL").execute_batch(sql).unwrap();
        bench
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("a.db")
    }

    fn open(&self, journal: &str, synchronous: &str) -> Connection {
        let connection =
            content::open(&format!("file:{}?vfs=pellucid", self.path().display())).unwrap();
        let settings = format!(
            "PRAGMA journal_mode={journal}; PRAGMA synchronous={synchronous}; PRAGMA cache_size=8"
        );
        connection.execute_batch(&settings).unwrap();
        connection
    }
}

fn facts(connection: &Connection) -> String {
    let sql = "SELECT count(*) || ' ' || sum(c) || ' ' || sum(a) FROM t";
    let found: String = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    let whole: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok", "{found}");
    found
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// Runs the transaction with the limit in statement `at` alone, the commit being the last one. Returns whether it was committed.
fn transact(connection: &Connection, at: usize, limit: u64) -> bool {
    run(connection, "BEGIN").unwrap();
    let mut outcome = Ok(());
    for (number, sql) in STATEMENTS.iter().chain(&["COMMIT"]).enumerate() {
        let limited = (number == at).then(|| Limit::of(limit));
        // An application that goes on after an error: SQLite alone says what is committed.
        let told = run(connection, sql);
        drop(limited);
        outcome = match connection.is_autocommit() {
            true => told,
            false => continue,
        };
        break;
    }
    if !connection.is_autocommit() {
        // The rollback of a commit that failed.
        let _ = run(connection, "ROLLBACK");
        return false;
    }
    outcome.is_ok()
}

#[test]
fn a_write_that_fails_takes_its_transaction_with_it() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (mut committed, mut failed) = (0, 0);
    for journal in ["DELETE", "TRUNCATE", "PERSIST", "MEMORY"] {
        for synchronous in ["FULL", "OFF"] {
            for at in 0..=STATEMENTS.len() {
                for pages in [0, 1, 7, 40, 90] {
                    let bench = Bench::new(journal);
                    let what = format!("{journal} {synchronous} {at} {pages}");
                    let length = std::fs::metadata(bench.path()).unwrap().len();
                    let connection = bench.open(journal, synchronous);
                    let is_committed =
                        transact(&connection, at, length + pages * 4096 + pages * 100);
                    *(if is_committed { &mut committed } else { &mut failed }) += 1;
                    let expected = if is_committed { NEW } else { OLD };
                    assert_eq!(facts(&connection), expected, "{what}");
                    assert_eq!(facts(&bench.open(journal, "FULL")), expected, "{what}");
                    // And what comes next is not disturbed.
                    run(&connection, "UPDATE t SET c = c + 1 WHERE a = 1").unwrap();
                    drop(connection);
                    assert_ne!(facts(&bench.open(journal, "FULL")), expected, "{what}");
                }
            }
        }
    }
    println!("{committed} committed, {failed} failed");
    assert!(committed > 50 && failed > 50, "{committed} {failed}");
}

#[test]
fn a_copy_that_has_no_room_is_an_error() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for pages in [1, 7, 40, 90, 400] {
        let bench = Bench::new("DELETE");
        let connection = bench.open("DELETE", "FULL");
        let to = bench.0.path().join("copy.db");
        let limited = Limit::of(16384 + pages * 4096 + 100);
        let told = run(&connection, &format!("VACUUM INTO '{}'", to.display()));
        drop(limited);
        assert_eq!(told.is_ok(), pages == 400, "{pages}: {told:?}");
        if told.is_ok() {
            let copy = content::open(&format!("file:{}?vfs=pellucid", to.display())).unwrap();
            assert_eq!(facts(&copy), OLD);
        }
        assert_eq!(facts(&connection), OLD);
    }
}

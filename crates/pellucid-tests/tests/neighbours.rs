//! Goal: pages of a new database that are neighbours go out with one call, and a call that fails takes its whole transaction with
//! it: what SQLite calls committed is there, and of what it does not call so nothing is. Until then SQLite reads what it wrote.
//!
//! Method: the cache is small, so that pages go out in the middle of the database's first transaction. The file's length is limited
//! (EFBIG) in one of its statements, in steps that end in the middle of pages that are written together, and is free again before
//! the next one. Rows are changed, flushed, forgotten and read again by a seed, with the mapping and without it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use pellucid_tests::content::{self, directory_in_memory, seal_new_databases};
use pellucid_tests::file_objects::writes;
use pellucid_tests::limits::Limit;
use pellucid_tests::random::Random;
use rusqlite::{Connection, ErrorCode};

/// The limit is the process's.
static ONE: Mutex<()> = Mutex::new(());

/// Statements of one transaction: what is added, what is read in between, and what is changed where it lies.
const STATEMENTS: [&str; 8] = [
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b, c)",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
        INSERT INTO t SELECT i, randomblob(3000), 0 FROM n",
    "INSERT INTO t SELECT a + 1000, randomblob(3000), 1 FROM t WHERE a <= 100",
    "SELECT sum(length(b)) FROM t",
    "UPDATE t SET b = randomblob(3000), c = 1 WHERE a < 60",
    "INSERT INTO t SELECT a + 2000, randomblob(3000), 1 FROM t WHERE a <= 50",
    "SELECT max(length(b)) FROM t WHERE a > 1020",
    "DELETE FROM t WHERE a BETWEEN 61 AND 70",
];
const ALL: &str = "340 209 225770";

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        pellucid_bundled::register().unwrap();
        seal_new_databases();
        Self(directory_in_memory())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("a.db")
    }

    fn open(&self, settings: &str, more: &str) -> Connection {
        let uri = format!("file:{}?vfs=pellucid{more}", self.path().display());
        let connection = content::open(&uri).unwrap();
        connection.execute_batch(&format!("PRAGMA cache_size=8; {settings}")).unwrap();
        connection
    }
}

fn facts(connection: &Connection) -> rusqlite::Result<String> {
    let whole: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    let sql = "SELECT count(*) || ' ' || sum(c) || ' ' || sum(a) FROM t";
    connection.query_row(sql, [], |row| row.get(0))
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
    let mut all_went = true;
    for (number, sql) in STATEMENTS.iter().chain(&["COMMIT"]).enumerate() {
        let limited = (number == at).then(|| Limit::of(limit));
        // An application that goes on after an error: SQLite alone says what is committed.
        outcome = run(connection, sql);
        drop(limited);
        all_went &= outcome.is_ok();
        if connection.is_autocommit() {
            break;
        }
    }
    if !connection.is_autocommit() {
        // The rollback of a commit that failed.
        let _ = run(connection, "ROLLBACK");
        return false;
    }
    assert!(outcome.is_err() || all_went, "a statement failed, and the rest was committed");
    outcome.is_ok()
}

#[test]
fn a_write_that_fails_takes_its_transaction_with_it() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (mut committed, mut failed) = (0, 0);
    for (journal, more) in [
        ("DELETE", ""),
        ("TRUNCATE", "&pellucid_mmap=0"),
        ("MEMORY", "&pellucid_mmap=0"),
        ("MEMORY", ""),
        ("DELETE; PRAGMA locking_mode=EXCLUSIVE", "&pellucid_mmap=0"),
    ] {
        for synchronous in ["FULL", "OFF"] {
            let settings =
                format!("PRAGMA journal_mode={journal}; PRAGMA synchronous={synchronous}");
            for at in 1..=STATEMENTS.len() {
                for pages in [9, 40, 210] {
                    let bench = Bench::new();
                    let what = format!("{journal} {more} {synchronous} {at} {pages}");
                    let connection = bench.open(&settings, more);
                    let limit = 16384 + pages * 4096 + pages * 13;
                    let is_committed = transact(&connection, at, limit);
                    *(if is_committed { &mut committed } else { &mut failed }) += 1;
                    let found = facts(&connection);
                    assert_eq!(found.ok(), is_committed.then(|| ALL.to_owned()), "{what}");
                    // And what comes next is not disturbed.
                    run(&connection, "CREATE TABLE next AS SELECT 7 AS x").unwrap();
                    drop(connection);
                    let connection = bench.open("", more);
                    let found = facts(&connection);
                    assert_eq!(found.ok(), is_committed.then(|| ALL.to_owned()), "{what}");
                    run(&connection, "SELECT x FROM next").unwrap();
                }
            }
        }
    }
    println!("{committed} committed, {failed} failed");
    assert!(committed > 50 && failed > 50, "{committed} {failed}");
}

#[test]
fn what_was_written_is_read() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for seed in 0..40u64 {
        let mut random = Random(seed + 1);
        let mut draw = |below: u64| random.below(below) as i64;
        let bench = Bench::new();
        let more = if seed % 2 == 0 { "&pellucid_mmap=0" } else { "" };
        let connection = bench.open("PRAGMA cache_size=20; PRAGMA locking_mode=EXCLUSIVE", more);
        let mut model: BTreeMap<i64, i64> = (1..=200).map(|key| (key, 0)).collect();
        run(&connection, "BEGIN").unwrap();
        run(&connection, STATEMENTS[0]).unwrap();
        run(&connection, STATEMENTS[1]).unwrap();
        for step in 1..=300 {
            match draw(if step < 200 { 8 } else { 9 }) {
                0 | 1 => {
                    let key = draw(200) + 1;
                    run(&connection, &format!("UPDATE t SET c = {step} WHERE a = {key}")).unwrap();
                    model.insert(key, step);
                }
                2 => connection.cache_flush().unwrap(),
                3 => run(&connection, "PRAGMA shrink_memory").unwrap(),
                4 => {
                    // Read ahead over a page that waits, which then goes out, and is read again.
                    let (key, other) = (draw(150) + 30, draw(20) + 1);
                    for (changed, before) in [(key, draw(14) + 3), (other, 0)] {
                        run(&connection, "PRAGMA shrink_memory").unwrap();
                        run(&connection, &format!("UPDATE t SET c = {step} WHERE a = {changed}"))
                            .unwrap();
                        model.insert(changed, step);
                        connection.cache_flush().unwrap();
                        let (from, to) = (changed - before, changed - before / 2 - 1);
                        let sql = format!("SELECT sum(c) FROM t WHERE a BETWEEN {from} AND {to}");
                        run(&connection, &sql).unwrap();
                    }
                    run(&connection, "PRAGMA shrink_memory").unwrap();
                    let sql = format!("SELECT c FROM t WHERE a = {key}");
                    let value: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
                    assert_eq!(model[&key], value, "seed {seed}, step {step}, row {key}");
                }
                8 => connection.execute_batch("COMMIT; BEGIN").unwrap(),
                _ => {
                    // In the order of the pages, so that pages are read ahead.
                    let from = draw(200) + 1;
                    let sql = format!("SELECT a, c FROM t WHERE a BETWEEN {from} AND {from} + 12");
                    let mut statement = connection.prepare(&sql).unwrap();
                    let mut rows = statement.query([]).unwrap();
                    while let Some(row) = rows.next().unwrap() {
                        let (key, value): (i64, i64) = (row.get(0).unwrap(), row.get(1).unwrap());
                        assert_eq!(model[&key], value, "seed {seed}, step {step}, row {key}");
                    }
                }
            }
        }
        run(&connection, "COMMIT").unwrap();
        drop(connection);
        let connection = bench.open("", more);
        assert!(facts(&connection).unwrap().starts_with("200 "));
        let sum: i64 = connection.query_row("SELECT sum(c) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(sum, model.values().sum::<i64>());
    }
}

/// Without a journal nothing is rolled back, and what waits still waits in the next transaction.
#[test]
fn a_connection_goes_on_after_an_error_that_it_rolled_back_without_a_journal() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for pages in [1, 2, 5, 9, 40] {
        let bench = Bench::new();
        let connection = bench.open("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=OFF", "");
        run(&connection, "BEGIN").unwrap();
        run(&connection, STATEMENTS[0]).unwrap();
        run(&connection, "INSERT INTO t VALUES (1, randomblob(20000), 0)").unwrap();
        connection.cache_flush().unwrap();
        let _ = run(&connection, "ROLLBACK");
        let limited = Limit::of(16384 + pages * 4096 + 100);
        let _ = run(&connection, "SELECT count(*) FROM sqlite_schema");
        drop(limited);
        // What it reads is undefined (PRAGMA journal_mode=OFF); it has to be something that the file says.
        let told = run(&connection, "SELECT count(*) FROM sqlite_schema");
        let code = told.err().and_then(|error| error.sqlite_error_code());
        let ends = [ErrorCode::SystemIoFailure, ErrorCode::DiskFull, ErrorCode::CannotOpen];
        assert!(code.is_none_or(|code| !ends.contains(&code)), "{pages}: {code:?}");
    }
}

#[test]
fn a_copy_takes_few_calls_and_is_an_error_where_it_has_no_room() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for pages in [1, 7, 40, 90, 200, 400] {
        let bench = Bench::new();
        let connection = bench.open("", "");
        for sql in STATEMENTS {
            run(&connection, sql).unwrap();
        }
        let to = bench.0.path().join("copy.db");
        let limited = Limit::of(16384 + pages * 4096 + 100);
        let before = writes();
        let told = run(&connection, &format!("VACUUM INTO '{}'", to.display()));
        let taken = writes() - before;
        drop(limited);
        assert_eq!(told.is_ok(), pages == 400, "{pages}: {told:?}");
        if told.is_ok() {
            let copy = content::open(&format!("file:{}?vfs=pellucid", to.display())).unwrap();
            assert_eq!(facts(&copy).unwrap(), ALL);
            assert!(taken < 120, "{taken} writes of 340 pages");
        }
        assert_eq!(facts(&connection).unwrap(), ALL);
    }
}

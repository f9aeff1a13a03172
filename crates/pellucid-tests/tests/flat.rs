//! Goal: a process that stays does not grow: after a million transactions it has the file descriptors, the
//! mappings, the memory and the shared memory that it had after the first tenth of them.
//!
//! Method: in one process one connection writes and another reads, and each hundredth transaction has a
//! connection of its own; now and then one is rolled back or finds a constraint broken. /proc is asked after
//! a tenth, a half and all. It is a child, so that nothing else is in the process.
//!
//! CI: 20,000 transactions in each mode; PELLUCID_FLAT_TRANSACTIONS and PELLUCID_SOAK_MODE choose other runs
//! (tests/campaigns/ten-processes). It can fail: `growth_is_noticed`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use pellucid_tests::processes;

use std::path::{Path, PathBuf};
use std::process::Output;

use rusqlite::Connection;

use processes::footprint::Footprint;
use processes::{child, number, role, rows, scratch, told, Over, Random};

const ROWS: u64 = 400;
/// A page of memory here and there is no growth; one byte for each of a million transactions is.
const LIMIT: Footprint = Footprint { descriptors: 0, mappings: 2, memory_kib: 512, shared_kib: 0 };

#[test]
fn child_entry() {
    let Some(role) = role() else { return };
    let (mode, leak) = role.split_once(' ').unwrap_or((&role, "nothing"));
    let database = PathBuf::from(told("CRASH_DATABASE"));
    let transactions = told("CRASH_TRANSACTIONS").parse().unwrap();
    let footprints = work(&database, mode, leak, transactions);
    for one in &footprints {
        println!("{mode}: {one}");
    }
    let growth = footprints[2].growth(&footprints[0], &LIMIT);
    println!(
        "\nRESULT {mode} {transactions} {} {}",
        Footprint::columns(&footprints),
        if growth.is_none() { "ok" } else { "FAILED" }
    );
    assert_eq!(growth, None);
}

fn open(database: &Path) -> Connection {
    let connection = Over::Sealed.open(database);
    connection.execute_batch("PRAGMA synchronous=OFF; PRAGMA wal_autocheckpoint=50").unwrap();
    connection
}

/// The figures after a tenth, a half and all of the transactions.
fn work(database: &Path, mode: &str, leak: &str, transactions: u64) -> Vec<Footprint> {
    let mut random = Random(20_261_121);
    let writer = open(database);
    rows::create(&writer);
    writer.execute_batch(&format!("PRAGMA journal_mode={mode}")).unwrap();
    let reader = open(database);
    let mut footprints = Vec::new();
    for at in 1..=transactions {
        match at % 100 {
            0 => write(&open(database), &mut random, at),
            50 => {
                let error = writer.execute("INSERT INTO t(id) SELECT id FROM t LIMIT 1", []);
                assert!(at < 100 || error.is_err());
                writer.execute_batch("BEGIN; DELETE FROM t WHERE id % 7 = 1; ROLLBACK").unwrap();
                write(&writer, &mut random, at);
            }
            _ => write(&writer, &mut random, at),
        }
        let sql = "SELECT count(*), max(version) FROM t WHERE id <= ?1";
        let mut statement = reader.prepare_cached(sql).unwrap();
        statement.query_row([random.below(ROWS) as i64], |row| row.get::<_, i64>(0)).unwrap();
        drop(statement);
        if at % 100 == 0 && leak == "descriptors" {
            std::mem::forget(std::fs::File::open("/dev/null").unwrap());
        }
        if leak == "memory" {
            std::mem::forget(std::hint::black_box(vec![1u8; 300]));
        }
        if [transactions / 10, transactions / 2, transactions].contains(&at) {
            footprints.push(Footprint::of(std::process::id()).unwrap());
        }
    }
    rows::check_integrity(&writer);
    footprints
}

fn write(connection: &Connection, random: &mut Random, version: u64) {
    let transaction = connection.unchecked_transaction().unwrap();
    for _ in 0..1 + random.below(2u64) {
        rows::put(&transaction, 1 + random.below(ROWS) as i64, version as i64).unwrap();
    }
    transaction.commit().unwrap();
}

fn run(role: &str, transactions: u64) -> Output {
    let scratch = scratch();
    let database = scratch.path().join("live/x.db");
    std::fs::create_dir_all(database.parent().unwrap()).unwrap();
    child(role)
        .env("CRASH_DATABASE", &database)
        .env("CRASH_TRANSACTIONS", transactions.to_string())
        .output()
        .unwrap()
}

fn stays_flat(mode: &str) {
    if std::env::var("PELLUCID_SOAK_MODE").is_ok_and(|only| only != mode) {
        return;
    }
    let ended = run(mode, number("PELLUCID_FLAT_TRANSACTIONS", 20_000));
    let (out, errors) =
        (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    println!("{out}");
    assert!(ended.status.success() && out.contains("\nRESULT "), "{out}{errors}");
}

#[test]
fn wal() {
    stays_flat("wal");
}

#[test]
fn delete() {
    stays_flat("delete");
}

#[test]
fn growth_is_noticed() {
    for leak in ["descriptors", "memory"] {
        let ended = run(&format!("wal {leak}"), 5000);
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success(), "{leak} went unnoticed");
        assert!(errors.contains(leak) && errors.contains("became"), "{errors}");
    }
}

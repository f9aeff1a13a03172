//! Each call that changes the archive fails, or is the last one that the program makes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use pellucid_tests::processes::{child, extension, load_extension, preload, told};
use rusqlite::Connection;

use super::{note, Acknowledged, Bench};

/// Commits that the script makes.
const COMMITS: i64 = 58;

/// What the child does: each way in which a log begins anew.
pub fn script() {
    let database = PathBuf::from(told("CRASH_DATABASE"));
    load_extension();
    let open = |settings: &str| {
        let uri = format!("file:{}?vfs=pellucid", database.display());
        let connection = pellucid_tests::content::open(&uri).unwrap();
        connection.busy_timeout(std::time::Duration::from_millis(300)).unwrap();
        connection.execute_batch(settings).unwrap();
        connection
    };
    let connection = open("PRAGMA wal_autocheckpoint=0");
    commits(&connection, 12);
    checkpoint(&connection, "TRUNCATE");
    commits(&connection, 6);
    checkpoint(&connection, "RESTART");
    commits(&connection, 2);
    drop(connection);
    let connection = open("PRAGMA wal_autocheckpoint=4");
    commits(&connection, 25);
    let reader = open("");
    commits(&connection, 3);
    drop((connection, reader));
    let connection = open("PRAGMA locking_mode=EXCLUSIVE; PRAGMA wal_autocheckpoint=0");
    commits(&connection, 6);
    checkpoint(&connection, "TRUNCATE");
    commits(&connection, 4);
    drop(connection);
}

fn commits(connection: &Connection, count: usize) {
    for _ in 0..count {
        let done = connection.execute_batch(
            "BEGIN IMMEDIATE; UPDATE counter SET n = n + 1; UPDATE t SET v = v + 1 WHERE id % 7 = 0; COMMIT",
        );
        let one = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        match done {
            Ok(()) => println!(
                "\ncommitted {} {}",
                one("SELECT n FROM counter"),
                one("SELECT sum(v) FROM t")
            ),
            Err(error) => println!("\nrefused {error}"),
        }
        std::io::stdout().flush().unwrap();
    }
}

/// It may be told to wait, and nothing else.
pub fn checkpoint(connection: &Connection, mode: &str) {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    match connection.query_row(&sql, [], |row| row.get::<_, i64>(0)) {
        Ok(_) => {}
        Err(rusqlite::Error::SqliteFailure(error, _))
            if matches!(
                error.code,
                rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DiskFull
            ) => {}
        Err(error) => println!("\nfailed {error}"),
    }
}

fn run(database: &Path, count: &Path, change: impl FnOnce(&mut Command)) -> String {
    run_as("script", database, count, change)
}

/// Runs the child of that role, which may be killed or fail at a call that changes the archive.
pub fn run_as(
    role: &str,
    database: &Path,
    count: &Path,
    change: impl FnOnce(&mut Command),
) -> String {
    let mut command = child(role);
    command
        .env("CRASH_DATABASE", database)
        .env("CRASH_EXTENSION", extension())
        .env("PELLUCID_LOG_LIMIT", "60000")
        .env("LD_PRELOAD", preload("killat.c"))
        .env("KILL_DIR", pellucid_vfs::log_archive::path_of(database))
        .env("KILL_COUNT_FILE", count);
    change(&mut command);
    let ended = command.output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr))
}

pub fn calls(count: &Path) -> usize {
    std::fs::read_to_string(count).unwrap().trim().parse().unwrap()
}

/// Runs the script with something wrong at a call; everything that was acknowledged is in the chain.
fn tried(what: &str, change: impl FnOnce(&mut Command)) -> (Acknowledged, usize) {
    let bench = Bench::new(4096);
    let mut chain = bench.begin();
    chain.look_at_each(3);
    let count = bench.path("count");
    let said = run(&bench.database(), &count, change);
    let mut acknowledged = Acknowledged::new();
    said.lines().for_each(|line| note(line, &mut acknowledged));
    let refused = said.lines().filter(|line| line.starts_with("refused ")).count();
    chain.take(&bench.database());
    let connection = bench.open();
    let counter: i64 = connection.query_row("SELECT n FROM counter", [], |row| row.get(0)).unwrap();
    assert_eq!(
        chain.commits() as i64,
        counter,
        "{what}: commits in the chain, and in the database; {said}"
    );
    assert!(acknowledged.len() as i64 <= counter, "{what}: a commit is gone");
    chain.assert_states(&acknowledged);
    chain.assert_last(&connection);
    (acknowledged, refused)
}

fn all_calls() -> usize {
    let bench = Bench::new(4096);
    let _chain = bench.begin();
    let count = bench.path("count");
    let said = run(&bench.database(), &count, |_| ());
    assert_eq!(
        said.lines().filter(|line| line.starts_with("committed ")).count() as i64,
        COMMITS,
        "{said}"
    );
    let calls = calls(&count);
    assert!(calls > 40, "{calls} calls of the archive show nothing");
    println!("{calls} calls change the archive");
    calls
}

/// Each of them, or as many as a run has time for.
pub fn chosen(calls: usize) -> impl Iterator<Item = usize> {
    let stride = std::env::var("PELLUCID_FAULT_STRIDE").map_or(5, |text| text.parse().unwrap());
    (1..=calls).step_by(stride)
}

#[test]
fn a_program_that_is_killed_at_a_call_of_the_archive_takes_no_commit_with_it() {
    for at in chosen(all_calls()) {
        tried(&format!("killed at call {at}"), |command| {
            command.env("KILL_AT", at.to_string());
        });
    }
}

#[test]
fn a_call_of_the_archive_that_fails_fails_no_commit() {
    let calls = all_calls();
    for (error, goes_on) in [(libc::ENOSPC, false), (libc::EIO, false), (libc::ENOSPC, true)] {
        for at in chosen(calls) {
            let what = format!(
                "error {error} at call {at}{}",
                if goes_on { " and all later ones" } else { "" }
            );
            let (acknowledged, refused) = tried(&what, |command| {
                command.env("KILL_AT", at.to_string()).env("KILL_ERRNO", error.to_string());
                if goes_on {
                    command.env("KILL_ON", "1");
                }
            });
            // In an exclusive locking mode nothing but a transaction can be refused where the log would begin anew.
            assert!(
                acknowledged.len() as i64 + refused as i64 == COMMITS,
                "{what}: {}",
                acknowledged.len()
            );
            let is_exclusive_alone =
                acknowledged.keys().filter(|n| **n <= COMMITS - 10).count() as i64 == COMMITS - 10;
            assert!(refused == 0 || is_exclusive_alone, "{what}: {refused} refused");
        }
    }
}

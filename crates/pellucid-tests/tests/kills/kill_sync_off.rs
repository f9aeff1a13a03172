//! Goal: a process killed at any moment leaves the database before or after its transaction, never
//! between; as safe as plain SQLite, also with `synchronous=OFF`.
//!
//! Method: a child does one piece of work under tests/tools/killat.c, once to count the calls that
//! change files, then once for each call, killed before it, and once for each killed in the middle of
//! a write. After each the parent opens what is left, proves every row, runs `integrity_check` and
//! compares with the states before and after. The same loop over plain SQLite is the reference: kill
//! -9 loses nothing of the page cache, so both hold without exception.
//!
//! It can fail: `a_deleted_journal_is_noticed` takes the journal away after the kill, and the same
//! check finds the mixture.

use std::path::{Path, PathBuf};
use std::time::Instant;

use rusqlite::Connection;

use crate::processes::{child, copy_files, rows, run_counted, scratch, told, Over};

/// A piece of work and how its database is prepared.
struct Work {
    name: &'static str,
    /// Run on each connection, before anything else.
    settings: &'static str,
    /// The journal mode of the prepared database.
    journal: &'static str,
    does: fn(&Connection),
}

const SMALL_CACHE: &str = "PRAGMA cache_size=10; PRAGMA cache_spill=10; PRAGMA synchronous=OFF;";
const WAL_SETTINGS: &str =
    "PRAGMA cache_size=10; PRAGMA cache_spill=10; PRAGMA synchronous=NORMAL;";

const WORKS: &[Work] = &[
    Work { name: "delete", settings: SMALL_CACHE, journal: "DELETE", does: change_many },
    Work { name: "truncate", settings: SMALL_CACHE, journal: "TRUNCATE", does: change_many },
    Work { name: "persist", settings: SMALL_CACHE, journal: "PERSIST", does: change_many },
    Work { name: "wal", settings: WAL_SETTINGS, journal: "WAL", does: change_many },
    Work { name: "wal-checkpoint", settings: WAL_SETTINGS, journal: "WAL", does: restart_log },
    Work { name: "vacuum", settings: SMALL_CACHE, journal: "DELETE", does: vacuum },
    Work { name: "page-size", settings: SMALL_CACHE, journal: "DELETE", does: other_page_size },
    Work { name: "larger-pages", settings: SMALL_CACHE, journal: "DELETE", does: larger_pages },
    Work { name: "wal-vacuum", settings: WAL_SETTINGS, journal: "WAL", does: vacuum },
    Work { name: "mode-to-wal", settings: SMALL_CACHE, journal: "DELETE", does: to_wal },
    Work { name: "mode-to-delete", settings: WAL_SETTINGS, journal: "WAL", does: to_delete },
];

const ROWS: i64 = 240;

fn change_many(connection: &Connection) {
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    for id in 1..=ROWS {
        match id % 5 {
            0 => {
                connection.execute("DELETE FROM t WHERE id = ?1", [id]).unwrap();
                rows::put(connection, ROWS + id, 2).unwrap();
            }
            _ => rows::put(connection, id, 2).unwrap(),
        }
    }
    connection.execute_batch("COMMIT").unwrap();
}

/// The log is cut and begun again, and then holds what changes no row.
fn restart_log(connection: &Connection) {
    change_many(connection);
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    connection.query_row(checkpoint, [], |_| Ok(())).unwrap();
    connection.execute_batch("CREATE INDEX t_version ON t(version, payload)").unwrap();
    connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
    connection.execute_batch("DROP INDEX t_version").unwrap();
}

fn vacuum(connection: &Connection) {
    connection.execute_batch("VACUUM").unwrap();
}

fn other_page_size(connection: &Connection) {
    connection.execute_batch("PRAGMA page_size=1024; VACUUM").unwrap();
}

/// The new database is shorter than the place of rows that were there before it.
fn larger_pages(connection: &Connection) {
    connection.execute_batch("BEGIN").unwrap();
    connection.execute("DELETE FROM t WHERE id <= ?1", [ROWS * 3 / 4]).unwrap();
    connection.execute_batch("COMMIT; PRAGMA page_size=8192; VACUUM").unwrap();
}

fn to_wal(connection: &Connection) {
    connection.execute_batch("PRAGMA journal_mode=WAL").unwrap();
    rows::put(connection, 1, 2).unwrap();
}

fn to_delete(connection: &Connection) {
    rows::put(connection, 1, 2).unwrap();
    connection.execute_batch("PRAGMA journal_mode=DELETE").unwrap();
}

fn work(name: &str) -> &'static Work {
    WORKS.iter().find(|work| work.name == name).unwrap()
}

/// The process that is killed; `role` is the work it does.
pub fn at_work(role: &str) {
    let over = Over::parse(&told("CRASH_OVER"));
    let database = PathBuf::from(told("CRASH_DATABASE"));
    if role == "birth" {
        return birth(&over.open(&database));
    }
    let work = work(role);
    let connection = over.open(&database);
    connection.execute_batch(work.settings).unwrap();
    let mode = if work.journal == "WAL" { "" } else { work.journal };
    if !mode.is_empty() {
        connection.execute_batch(&format!("PRAGMA journal_mode={mode}")).unwrap();
    }
    (work.does)(&connection);
}

fn birth(connection: &Connection) {
    connection.execute_batch("PRAGMA synchronous=OFF; BEGIN").unwrap();
    rows::create(connection);
    for id in 1..=20 {
        rows::put(connection, id, 1).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
}

/// A database of rows at version 1 with holes in it, so that VACUUM moves pages.
fn prepare(over: Over, work: &Work, database: &Path) {
    std::fs::create_dir_all(database.parent().unwrap()).unwrap();
    let connection = over.open(database);
    rows::create(&connection);
    connection.execute_batch("BEGIN").unwrap();
    for id in 1..=ROWS * 2 {
        rows::put(&connection, id, 1).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
    connection.execute("DELETE FROM t WHERE id > ?1", [ROWS]).unwrap();
    connection.execute_batch(&format!("PRAGMA journal_mode={}", work.journal)).unwrap();
}

/// The rows of what is left, after SQLite's own recovery and check; it must take a write too.
fn state(over: Over, database: &Path) -> Vec<(i64, i64)> {
    let connection = over.open(database);
    let found = rows::read(&connection).unwrap();
    rows::check_integrity(&connection);
    rows::put(&connection, 999_999, 3).unwrap();
    rows::check_integrity(&connection);
    found
}

fn starter(role: &str, over: Over, database: &Path) -> std::process::Command {
    let mut command = child(role);
    command.env("CRASH_OVER", over.name()).env("CRASH_DATABASE", database);
    command
}

/// The whole loop for one work; the number of kills.
fn kill_everywhere(over: Over, work: &Work) {
    let begun = Instant::now();
    let scratch = scratch();
    let (model, live) = (scratch.path().join("model"), scratch.path().join("live"));
    prepare(over, work, &model.join("x.db"));
    let database = live.join("x.db");
    copy_files(&model, &live);
    let before = state(over, &database);
    copy_files(&model, &live);
    let calls = run_counted(starter(work.name, over, &database), &live, None, 0).whole();
    let after = state(over, &database);
    assert!(calls > 5, "{}: only {calls} calls: nothing to be killed at", work.name);
    let (mut old, mut new) = (0, 0);
    for torn in [0, 1] {
        for at in 1..=calls {
            copy_files(&model, &live);
            let ended = run_counted(starter(work.name, over, &database), &live, Some(at), torn);
            assert!(ended.killed, "{}: call {at} of {calls} did not kill", work.name);
            let found = state(over, &database);
            let place = format!("{} {} killed at {at}, torn {torn}", over.name(), work.name);
            assert!(found == before || found == after, "{place}: a mixture: {found:?}");
            old += u64::from(found == before);
            new += u64::from(found == after);
        }
    }
    println!(
        "{:6} {:15} {calls} calls, {} kills: {old} before, {new} after; {:.1} s",
        over.name(),
        work.name,
        calls * 2,
        begun.elapsed().as_secs_f64()
    );
}

macro_rules! killed_at_each_call {
    ($($test:ident: $work:literal;)*) => {
        $(#[test]
        fn $test() {
            for over in Over::BOTH {
                kill_everywhere(over, work($work));
            }
        })*
    };
}

killed_at_each_call! {
    rollback_delete: "delete";
    rollback_truncate: "truncate";
    rollback_persist: "persist";
    wal_normal: "wal";
    wal_with_checkpoint: "wal-checkpoint";
    vacuum_delete: "vacuum";
    vacuum_to_other_page_size: "page-size";
    vacuum_to_larger_pages: "larger-pages";
    vacuum_wal: "wal-vacuum";
    change_of_mode_to_wal: "mode-to-wal";
    change_of_mode_to_delete: "mode-to-delete";
}

/// A new database is empty or complete, and its own process or another can begin again.
#[test]
fn birth_of_a_database() {
    for over in Over::BOTH {
        let scratch = scratch();
        let live = scratch.path().join("live");
        let database = live.join("x.db");
        let fresh = || {
            let _ = std::fs::remove_dir_all(&live);
            std::fs::create_dir_all(&live).unwrap();
        };
        fresh();
        let calls = run_counted(starter("birth", over, &database), &live, None, 0).whole();
        let whole: Vec<_> = (1..=20).map(|id| (id, 1)).collect();
        for torn in [0, 1] {
            for at in 1..=calls {
                fresh();
                let ended = run_counted(starter("birth", over, &database), &live, Some(at), torn);
                assert!(ended.killed);
                let place = format!("{} birth killed at {at}, torn {torn}", over.name());
                let connection =
                    over.try_open(&database).unwrap_or_else(|e| panic!("{place}: {e}"));
                let tables: i64 = connection
                    .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
                    .unwrap_or_else(|error| panic!("{place}: {error}"));
                if tables == 0 {
                    birth(&connection);
                }
                assert_eq!(rows::read(&connection).unwrap(), whole, "{place}");
                rows::check_integrity(&connection);
            }
        }
        println!("{:6} birth: {calls} calls", over.name());
    }
}

/// The check can fail: without its journal a database killed in the middle is a mixture or damaged.
#[test]
fn a_deleted_journal_is_noticed() {
    for over in Over::BOTH {
        let scratch = scratch();
        let (model, live) = (scratch.path().join("model"), scratch.path().join("live"));
        let database = live.join("x.db");
        prepare(over, work("delete"), &model.join("x.db"));
        copy_files(&model, &live);
        let before = state(over, &database);
        copy_files(&model, &live);
        let calls = run_counted(starter("delete", over, &database), &live, None, 0).whole();
        let after = state(over, &database);
        let mut noticed = 0;
        for at in 1..=calls {
            copy_files(&model, &live);
            run_counted(starter("delete", over, &database), &live, Some(at), 0);
            let _ = std::fs::remove_file(live.join("x.db-journal"));
            let found = std::panic::catch_unwind(|| state(over, &database));
            noticed += usize::from(!found.is_ok_and(|found| found == before || found == after));
        }
        println!("{:6} {noticed} of {calls} kills noticed without the journal", over.name());
        assert!(noticed > 3);
    }
}

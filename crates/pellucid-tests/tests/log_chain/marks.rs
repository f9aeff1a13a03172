//! Goal: a restore finds the commit that a program has named, and no other.
//! Method: programs set marks by SQL, end their transactions in every way, and what log backups and the archive have is compared.
//! A program whose every commit has a mark is killed at each call that changes the archive, and each of these calls fails: a commit
//! that counts has its own mark.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pellucid::header::RecoveryModel;
use pellucid_backup::job::Point;
use pellucid_engine::log_chain::{self, KeptLog};
use pellucid_engine::scan;
use pellucid_tests::processes::{load_extension, told};
use rusqlite::Connection;

use super::faults::{calls, checkpoint, chosen, run_as};
use super::points::{full, log, restored};
use super::{archived, Bench};

fn count(connection: &Connection) -> i64 {
    connection.query_row("SELECT n FROM counter", [], |row| row.get(0)).unwrap()
}

/// A transaction that counts, with a mark, and ends as `end` says.
fn marked(connection: &Connection, name: &str, end: &str) {
    connection
        .execute_batch(&format!(
            "BEGIN; UPDATE counter SET n = n + 1; SELECT pellucid_mark('{name}', 'about {name}'); {end}"
        ))
        .unwrap();
}

fn plain(connection: &Connection) {
    connection.execute_batch("UPDATE counter SET n = n + 1").unwrap();
}

fn chained(page_bytes: usize) -> (Bench, Connection, PathBuf) {
    let bench = Bench::new(page_bytes);
    log_chain::set_model(&bench.database(), RecoveryModel::Full).unwrap();
    let connection = bench.open();
    let full = full(&bench, "full.bak");
    (bench, connection, full)
}

/// The counter behind `point`, or what the restore says.
fn at(bench: &Bench, media: &[PathBuf], point: Point) -> Result<i64, String> {
    let to = bench.path("db/restored.db");
    restored(media, point, to.clone()).map_err(|error| error.to_string())?;
    Ok(count(&super::points::open(&to)))
}

fn names(database: &Path) -> Vec<String> {
    let kept = KeptLog::open(database, Duration::from_secs(10)).unwrap();
    let name = |one: &log_chain::Marked| one.mark.as_ref().unwrap().name().to_owned();
    kept.marked().iter().map(name).collect()
}

#[test]
fn a_restore_stops_behind_a_mark_or_before_it() {
    for page_bytes in [512, 4096, 65536] {
        let (bench, connection, full) = chained(page_bytes);
        let mark = |name: &str| Point::Mark(name.into());
        let before = |name: &str| Point::BeforeMark(name.into());
        marked(&connection, "first", "COMMIT");
        plain(&connection);
        marked(&connection, "two words, ä", "COMMIT");
        let one = log(&bench, "1.bak");
        assert_eq!(archived(&bench.database(), ".mark"), 0, "the log backup has them");
        // A checkpoint and a close in between: the log begins anew, and the mark's frame is in the archive alone.
        marked(&connection, "third", "COMMIT");
        connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE); VACUUM").unwrap();
        plain(&connection);
        drop(connection);
        let connection = bench.open();
        marked(&connection, "fourth", "COMMIT");
        plain(&connection);
        let two = log(&bench, "2.bak");
        let media = [full.clone(), one, two];
        let is = |point: Point| at(&bench, &media, point).unwrap();
        assert_eq!((is(before("first")), is(mark("first"))), (0, 1), "{page_bytes}");
        assert_eq!((is(before("two words, ä")), is(mark("two words, ä"))), (2, 3));
        assert_eq!((is(before("third")), is(mark("third"))), (3, 4));
        assert_eq!((is(before("fourth")), is(mark("fourth"))), (5, 6));
        assert_eq!(is(Point::Last), 7);
        let none = at(&bench, &media, mark("fifth")).unwrap_err();
        assert!(none.contains("no commit of these media has the mark `fifth`"), "{none}");
        assert!(none.contains("`third`, `fourth`"), "{none}");
        let none = at(&bench, &[full], mark("first")).unwrap_err();
        assert!(none.contains("none of them has a mark"), "{none}");
    }
}

#[test]
fn of_two_marks_of_one_name_the_first_counts_and_the_other_is_told() {
    let (bench, connection, full) = chained(4096);
    marked(&connection, "nightly", "COMMIT");
    marked(&connection, "nightly", "COMMIT");
    let media = [full, log(&bench, "log.bak")];
    let to = bench.path("db/restored.db");
    let done = restored(&media, Point::Mark("nightly".into()), to.clone()).unwrap();
    assert_eq!((count(&super::points::open(&to)), done.same_mark.len()), (1, 1));
    let (first, again) = (done.reached.unwrap().0, done.same_mark[0].0);
    assert!(first < again);
    assert_eq!(at(&bench, &media, Point::Lsn(again)), Ok(2));
}

#[test]
fn a_mark_is_that_of_its_own_transaction_alone() {
    let (bench, connection, full) = chained(4096);
    let other = bench.open();
    marked(&connection, "taken back", "ROLLBACK");
    plain(&connection);
    // One that spills its frames into the log before it is taken back.
    connection.execute_batch("PRAGMA cache_size = 5").unwrap();
    marked(&connection, "spilled", "UPDATE t SET b = randomblob(3000); ROLLBACK");
    plain(&connection);
    // A savepoint that is taken back is not the transaction.
    marked(&connection, "kept", "SAVEPOINT s; UPDATE t SET v = 0; ROLLBACK TO s; COMMIT");
    marked(&other, "other", "COMMIT");
    plain(&connection);
    assert_eq!(names(&bench.database()), ["kept", "other"]);
    // Nothing is changed: there is no commit, and no mark.
    connection.execute_batch("BEGIN IMMEDIATE; SELECT pellucid_mark('nothing'); COMMIT").unwrap();
    plain(&connection);
    assert_eq!(names(&bench.database()), ["kept", "other"]);
    let media = [full, log(&bench, "log.bak")];
    assert_eq!(at(&bench, &media, Point::Mark("kept".into())), Ok(3));
    assert_eq!(at(&bench, &media, Point::Mark("other".into())), Ok(4));
    assert!(at(&bench, &media, Point::Mark("spilled".into())).is_err());
    assert_eq!(archived(&bench.database(), ".mark"), 0);
}

#[test]
fn a_mark_that_nothing_could_find_is_refused() {
    let (bench, connection, _) = chained(4096);
    let refused = |connection: &Connection, sql: &str| {
        let error = connection.execute_batch(sql).unwrap_err().to_string();
        let _ = connection.execute_batch("ROLLBACK");
        error
    };
    let none = refused(&connection, "SELECT pellucid_mark('alone')");
    assert!(none.contains("no transaction is open"), "{none}");
    let early = refused(&connection, "BEGIN; SELECT pellucid_mark('early')");
    assert!(early.contains("has changed no encrypted database yet"), "{early}");
    let twice = "BEGIN IMMEDIATE; SELECT pellucid_mark('a'); SELECT pellucid_mark('b')";
    let twice = refused(&connection, twice);
    assert!(twice.contains("has a mark already"), "{twice}");
    for text in ["''", "NULL", "printf('%0129d', 1)", "char(27)", "'a', printf('%0256d', 1)"] {
        let sql = format!("BEGIN IMMEDIATE; SELECT pellucid_mark({text})");
        let wrong = refused(&connection, &sql);
        assert!(wrong.contains("control characters"), "{text}: {wrong}");
    }
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE; UPDATE counter SET n = 0").unwrap();
    let alone = refused(&connection, "BEGIN IMMEDIATE; SELECT pellucid_mark('alone')");
    assert!(alone.contains("exclusive locking mode"), "{alone}");
    drop(connection);
    log_chain::set_model(&bench.database(), RecoveryModel::Simple).unwrap();
    let simple = refused(&bench.open(), "BEGIN IMMEDIATE; SELECT pellucid_mark('simple')");
    assert!(simple.contains("has no chain of log backups"), "{simple}");
}

#[test]
fn every_attached_database_that_the_transaction_changes_has_the_mark() {
    let (bench, connection, _) = chained(4096);
    let (second, _, _) = chained(4096);
    let path = second.database();
    connection
        .execute_batch(&format!("ATTACH 'file:{}?vfs=pellucid' AS o", path.display()))
        .unwrap();
    connection
        .execute_batch(
            "BEGIN; UPDATE counter SET n = 1; UPDATE o.counter SET n = 1; SELECT pellucid_mark('both'); COMMIT;
             BEGIN; UPDATE o.counter SET n = 2; SELECT pellucid_mark('one'); COMMIT",
        )
        .unwrap();
    assert_eq!(names(&bench.database()), ["both"]);
    assert_eq!(names(&path), ["both", "one"]);
}

#[test]
fn a_commit_whose_mark_cannot_be_kept_fails_and_the_next_one_works() {
    let (bench, connection, full) = chained(4096);
    plain(&connection);
    let archive = pellucid_vfs::log_archive::path_of(&bench.database());
    let away = bench.path("away");
    std::fs::rename(&archive, &away).unwrap();
    let failed = connection
        .execute_batch("BEGIN; UPDATE counter SET n = n + 1; SELECT pellucid_mark('lost'); COMMIT");
    assert!(failed.is_err());
    let _ = connection.execute_batch("ROLLBACK");
    plain(&connection);
    std::fs::rename(&away, &archive).unwrap();
    marked(&connection, "found", "COMMIT");
    assert_eq!(names(&bench.database()), ["found"]);
    let media = [full, log(&bench, "log.bak")];
    assert_eq!(at(&bench, &media, Point::Mark("found".into())), Ok(3));
}

#[test]
fn a_mark_is_nowhere_in_clear_and_a_lost_one_is_told() {
    let (bench, connection, full) = chained(4096);
    let text = "Qu1xotic-mark";
    marked(&connection, text, "COMMIT");
    let archive = pellucid_vfs::log_archive::path_of(&bench.database());
    let marks = || -> Vec<PathBuf> {
        let files = std::fs::read_dir(&archive).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|end| end == "mark")).collect()
    };
    assert_eq!(marks().len(), 1);
    let media = log(&bench, "log.bak");
    marked(&connection, text, "COMMIT");
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    marked(&connection, text, "COMMIT");
    let mut looked = 0;
    let database = bench.database();
    let directory = database.parent().unwrap();
    let folders = [directory, &archive].map(|folder| std::fs::read_dir(folder).unwrap());
    let files = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
    for path in files.chain([media.clone()]).filter(|path| path.is_file()) {
        let bytes = std::fs::read(&path).unwrap();
        let is_there = |wanted: &[u8]| bytes.windows(wanted.len()).any(|one| one == wanted);
        assert!(!is_there(&text.as_bytes()[..8]), "{}", path.display());
        looked += bytes.len();
    }
    assert!(looked > 20_000 && marks().len() == 2);
    // One is damaged and one removed: the commits are backed up without them, and both are told.
    let [one, two] = [marks()[0].clone(), marks()[1].clone()];
    let mut bytes = std::fs::read(&one).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&one, bytes).unwrap();
    std::fs::remove_file(&two).unwrap();
    let kept = KeptLog::open(&bench.database(), Duration::from_secs(10)).unwrap();
    assert!(kept.commits().len() == 2 && kept.marked().iter().all(|one| one.mark.is_err()));
    drop(kept);
    let (done, second) = super::points::log_done(&bench, "second.bak");
    assert_eq!(done.told.len(), 2, "{:?}", done.told);
    assert!(done.told[0].contains("has a mark that is lost"), "{}", done.told[0]);
    let media = [full, media, second];
    assert_eq!(at(&bench, &media, Point::Last), Ok(3));
    assert_eq!(at(&bench, &media, Point::Mark(text.into())), Ok(1));
}

#[test]
fn marks_outlive_a_new_key() {
    let (bench, connection, full) = chained(4096);
    marked(&connection, "before the new key", "COMMIT");
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    marked(&connection, "in the log", "COMMIT");
    for _ in 0..2 {
        scan::rekey(&bench.database(), None).unwrap();
        let ended = scan::run(&bench.database(), &scan::Options::default(), &mut |_, _, _| ());
        assert_eq!(ended.unwrap(), scan::Ended::Complete);
    }
    marked(&connection, "behind it", "COMMIT");
    assert_eq!(names(&bench.database()), ["before the new key", "in the log", "behind it"]);
    let media = [full, log(&bench, "log.bak")];
    assert_eq!(at(&bench, &media, Point::Mark("before the new key".into())), Ok(1));
    assert_eq!(at(&bench, &media, Point::BeforeMark("behind it".into())), Ok(2));
}

/// Transactions that the child makes.
const TRANSACTIONS: usize = 24;

/// What the child does: each transaction has a mark of its own, some are taken back, and logs begin anew.
pub fn script() {
    let database = PathBuf::from(told("CRASH_DATABASE"));
    load_extension();
    let uri = format!("file:{}?vfs=pellucid", database.display());
    let connection = pellucid_tests::content::open(&uri).unwrap();
    connection.busy_timeout(Duration::from_millis(300)).unwrap();
    connection.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
    for number in 0..TRANSACTIONS {
        let end = if number % 5 == 4 { "ROLLBACK" } else { "COMMIT" };
        let done = connection.execute_batch(&format!(
            "BEGIN; UPDATE counter SET n = n + 1; UPDATE t SET v = v + 1 WHERE id % 7 = 0;
             SELECT pellucid_mark('number {number}'); {end}"
        ));
        if done.is_err() {
            let _ = connection.execute_batch("ROLLBACK");
        } else if end == "COMMIT" {
            println!("\nmarked {} {number}", count(&connection));
        }
        match number {
            9 => checkpoint(&connection, "TRUNCATE"),
            15 => checkpoint(&connection, "RESTART"),
            _ => {}
        }
    }
}

/// Runs the script with something wrong at a call. Each commit that counts has its own mark.
fn marks_are_right(what: &str, change: impl FnOnce(&mut Command)) -> (usize, usize) {
    let bench = Bench::new(4096);
    let _chain = bench.begin();
    let times = bench.path("count");
    let said = run_as("marks", &bench.database(), &times, change);
    let mut acknowledged = BTreeMap::new();
    for line in said.lines().filter_map(|line| line.strip_prefix("marked ")) {
        let (counter, number) = line.split_once(' ').unwrap();
        acknowledged.insert(counter.parse::<usize>().unwrap(), format!("number {number}"));
    }
    let found = names(&bench.database());
    let kept = KeptLog::open(&bench.database(), Duration::from_secs(10)).unwrap();
    assert_eq!(found.len(), kept.commits().len(), "{what}: each commit has a mark; {said}");
    let connection = bench.open();
    assert_eq!(found.len() as i64, count(&connection), "{what}: {said}");
    for (counter, name) in &acknowledged {
        assert_eq!(found.get(counter - 1), Some(name), "{what}: {said}");
    }
    (acknowledged.len(), if times.exists() { calls(&times) } else { 0 })
}

#[test]
fn a_commit_has_its_own_mark_wherever_the_program_is_killed_or_a_call_fails() {
    let (all, calls) = marks_are_right("nothing is wrong", |_| ());
    assert_eq!(all, TRANSACTIONS - TRANSACTIONS / 5);
    assert!(calls > 60, "{calls} calls of the archive show nothing");
    for at in chosen(calls) {
        marks_are_right(&format!("killed at call {at}"), |command| {
            command.env("KILL_AT", at.to_string());
        });
        let (some, _) = marks_are_right(&format!("error at call {at}"), |command| {
            command.env("KILL_AT", at.to_string()).env("KILL_ERRNO", libc::ENOSPC.to_string());
        });
        assert!(some + 1 >= all, "an error at call {at} fails {} commits", all - some);
    }
}

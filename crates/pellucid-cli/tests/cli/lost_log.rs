//! Goal: a flipped bit in the log costs no synced commit in silence.
//!
//! Method: a program is killed with forty synced commits in its log, and a bit of the log is flipped. Whoever opens the database then
//! keeps the rest of the log aside and says so, until that is accepted; where that cannot be kept, nothing is opened for writing.

use crate::support::{edit, Place, Said};

const COMMITS: &str = "import sqlite3, os
c = sqlite3.connect('app.db', isolation_level=None)
c.execute('PRAGMA wal_autocheckpoint=0'); c.execute('PRAGMA synchronous=FULL')
for i in range(40): c.execute('INSERT INTO t VALUES(?, 0)', (1000 + i,))
os._exit(0)";

fn flipped(at: usize) -> Place {
    let place = Place::new();
    place.sealed("app.db", &[]);
    query(&place, "PRAGMA journal_mode=WAL").succeeded();
    place.pellucid(&["run", "--", "/usr/bin/python3", "-c", COMMITS]).succeeded();
    edit(&place.path("app.db-wal"), |log| log[at] ^= 1);
    place
}

fn query(place: &Place, sql: &str) -> Said {
    place.pellucid(&["run", "--", "/usr/bin/sqlite3", "app.db", sql])
}

#[test]
fn the_rest_of_a_damaged_log_is_kept_and_told_until_it_is_accepted() {
    // In the log's header, in its first frame, and in the middle.
    for at in [17, 32 + 2000, 32 + 20 * (4096 + 24) + 100] {
        let place = flipped(at);
        let log = std::fs::read(place.path("app.db-wal")).unwrap();
        let told = query(&place, "INSERT INTO t VALUES(5000, 0)");
        assert!(told.code == 0 && told.stderr.contains("app.db-wal-lost-1"), "{at}: {told:?}");
        let kept = std::fs::read(place.path("app.db-wal-lost-1")).unwrap();
        assert_eq!(kept.len(), log.len());
        assert!(kept[log.len() - 4096..] == log[log.len() - 4096..], "{at}");
        for again in 0..2 {
            let told = query(&place, "SELECT count(*) FROM t");
            assert!(told.stderr.contains("app.db-wal-lost-1"), "{at}, {again}: {told:?}");
            assert!(!place.path("app.db-wal-lost-2").exists(), "{at}, {again}");
        }
        for words in [&["status", "app.db", "--check"][..], &["check", "app.db"], &["doctor"]] {
            let told = place.pellucid(words);
            assert!(
                told.code == 4 && told.all().contains("app.db-wal-lost-1"),
                "{words:?}: {told:?}"
            );
        }
        let strict = said_strictly(&place, "SELECT count(*) FROM t");
        assert!(strict.code != 0 && strict.stderr.contains("app.db-wal-lost-1"), "{strict:?}");
        assert!(place.pellucid(&["events"]).succeeded().contains("rest of a damaged log"));
        place.pellucid(&["accept", "app.db"]).succeeded();
        assert!(query(&place, "SELECT count(*) FROM t").stderr.is_empty(), "{at}");
        assert!(place.path("app.db-wal-accepted-1").exists());
        place.pellucid(&["check", "app.db"]).succeeded();
    }
}

fn said_strictly(place: &Place, sql: &str) -> Said {
    let mut command = place.command(crate::support::PELLUCID);
    command.args(["run", "--", "/usr/bin/sqlite3", "app.db", sql]).env("PELLUCID_STRICT_LOG", "1");
    crate::support::said(&mut command)
}

#[test]
fn strictly_a_damaged_log_is_an_error_and_stays_as_it_is() {
    let place = flipped(32 + 2000);
    let before = std::fs::read(place.path("app.db-wal")).unwrap();
    let told = said_strictly(&place, "INSERT INTO t VALUES(5000, 0)");
    assert!(told.code != 0 && told.stderr.contains("strict_log"), "{told:?}");
    assert!(std::fs::read(place.path("app.db-wal")).unwrap() == before);
    assert!(!place.path("app.db-wal-lost-1").exists());
    assert_eq!(place.pellucid(&["check", "app.db"]).code, 3);
}

#[test]
fn with_no_room_for_it_nothing_is_opened() {
    let place = flipped(32 + 2000);
    for number in 1..=4 {
        std::fs::write(place.path(&format!("app.db-wal-lost-{number}")), "another").unwrap();
    }
    let before = std::fs::read(place.path("app.db-wal")).unwrap();
    let told = query(&place, "INSERT INTO t VALUES(5000, 0)");
    assert!(told.code != 0 && told.stderr.contains("4 copies of damaged logs"), "{told:?}");
    assert!(std::fs::read(place.path("app.db-wal")).unwrap() == before);
}

/// The rows of the forty commits, as `salvage` brings them back.
fn salvaged(place: &Place, log: &str, to: &str) -> (Said, Vec<String>) {
    let told = place.pellucid(&["salvage", "app.db", "--to", to, "--lost-log", log]);
    let sql = "SELECT count(*) FROM t WHERE a >= 1000 AND a < 1040; SELECT count(*) FROM t WHERE a = 5000; PRAGMA integrity_check";
    let rows = place.pellucid(&["run", "--", "/usr/bin/sqlite3", to, sql]).succeeded();
    (told, rows.lines().map(str::to_owned).collect())
}

#[test]
fn salvage_brings_back_the_commits_behind_a_damaged_frame() {
    // In the log's header, in its first frame, and in the middle.
    for at in [17, 32 + 2000, 32 + 20 * (4096 + 24) + 100] {
        let place = flipped(at);
        query(&place, "INSERT INTO t VALUES(5000, 0)").succeeded();
        let without = place.pellucid(&["salvage", "app.db", "--to", "without.db"]);
        assert!(without.stderr.contains("--lost-log"), "{at}: {without:?}");
        let (told, rows) = salvaged(&place, "app.db-wal-lost-1", "with.db");
        // The page that the damaged frame wrote is in later commits, too.
        assert_eq!(rows, ["40", "0", "ok"], "{at}: {told:?}");
        assert!(told.stdout.contains(" are those of `app.db-wal-lost-1`"), "{at}: {told:?}");
        // What was accepted is still the caller's.
        place.pellucid(&["accept", "app.db"]).succeeded();
        assert_eq!(salvaged(&place, "app.db-wal-accepted-1", "again.db").1, ["40", "0", "ok"]);
    }
}

/// Strictly the log stays where it is: it is read from there.
#[test]
fn salvage_takes_no_commit_of_another_database_and_reads_a_log_in_place() {
    let place = flipped(32 + 2000);
    assert_ne!(said_strictly(&place, "SELECT 1 FROM t").code, 0);
    assert_eq!(salvaged(&place, "app.db-wal", "with.db").1[0], "40");
    let other = flipped(32 + 2000);
    std::fs::copy(other.path("app.db-wal"), place.path("other-wal")).unwrap();
    for name in ["other-wal", "app.db", "none"] {
        let told = place.pellucid(&["salvage", "app.db", "--to", "none.db", "--lost-log", name]);
        assert!(told.code == 1 && told.stderr.contains(name), "{name}: {told:?}");
        assert!(!place.path("none.db").exists());
    }
}

/// Who has the old key would read the rows in it.
#[test]
fn a_rekey_does_not_end_beside_a_copy_under_the_old_key() {
    for accepted in [false, true] {
        let place = flipped(32 + 2000);
        query(&place, "INSERT INTO t VALUES(5000, 0)").succeeded();
        let mut copy = "app.db-wal-lost-1";
        if accepted {
            place.pellucid(&["accept", "app.db"]).succeeded();
            copy = "app.db-wal-accepted-1";
        }
        let told = place.pellucid(&["rekey", "app.db"]);
        assert!(told.code != 0 && told.stderr.contains(copy), "{told:?}");
        std::fs::remove_file(place.path(copy)).unwrap();
        place.pellucid(&["scan", "resume", "app.db"]).succeeded();
        place.pellucid(&["scan", "verify", "app.db"]).succeeded();
        place.pellucid(&["check", "app.db"]).succeeded();
    }
}

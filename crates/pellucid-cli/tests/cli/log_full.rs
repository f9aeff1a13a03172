//! Goal: a log whose commits cannot go into the archive is no larger than `log-limit` lets it be, and then comes what `log-full` says.
//!
//! Method: the archive is away while a program commits. Without the policy it goes on; with `fail` it is told that the log is full, and
//! nothing of what it was told is lost; with `break` it goes on, and the chain says that it is broken, wherever the archive came back.

use std::fs;

use crate::log_backups::{count, facts, refused, second, sql};
use crate::support::{said_with, Place, Said, PELLUCID};

/// Transactions, of some 90 KB each.
const TRANSACTIONS: usize = 60;
const MIB: u64 = 1 << 20;

fn begun(policies: &[&str]) -> Place {
    let place = Place::new();
    second(&place);
    place.pellucid(&["recovery", "app.db", "full"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
    for policy in policies {
        let words: Vec<&str> = policy.split(' ').collect();
        place.pellucid(&[&["policy", "set"], &words[..]].concat()).succeeded();
    }
    place
}

fn away(place: &Place) {
    fs::rename(place.path("app.db-log"), place.path("aside")).unwrap();
}

fn back(place: &Place) {
    fs::rename(place.path("aside"), place.path("app.db-log")).unwrap();
}

/// What one program says that commits and goes on after an error, and how large the log was in the end.
fn commits(place: &Place, begins: &str) -> (Said, u64) {
    let mut script = format!("PRAGMA busy_timeout=10000;\n{begins}\n");
    for number in 0..TRANSACTIONS {
        let first = 10_000 + number * 50;
        script += &format!(
            "WITH RECURSIVE c(x) AS (SELECT {first} UNION ALL SELECT x + 1 FROM c WHERE x < {first} + 44)
             INSERT INTO t SELECT x, hex(randomblob(1000)) FROM c;\n"
        );
    }
    // The log stays as long as somebody has the database.
    script += ".system stat -c 'log %s' app.db-wal\n";
    let mut command = place.command(PELLUCID);
    let uri = format!("file:{}?vfs=pellucid", place.path("app.db").display());
    let said = said_with(command.args(["run", "--", "sqlite3", "-batch", &uri]), &script);
    let bytes = said.stdout.lines().find_map(|line| line.strip_prefix("log ")).unwrap();
    let bytes = bytes.parse().unwrap();
    (said, bytes)
}

fn rows(place: &Place) -> usize {
    count(place, "app.db").parse().unwrap()
}

/// The chain has every row.
fn assert_whole(place: &Place, media: &str) {
    facts(place, &format!("restore {media} --at last --to new.db --replace"));
    assert_eq!(count(place, "new.db"), count(place, "app.db"));
}

#[test]
fn without_a_limit_the_log_grows() {
    let place = begun(&[]);
    let before = rows(&place);
    away(&place);
    let (said, bytes) = commits(&place, "");
    assert!(!said.stderr.contains("disk is full"), "{said:?}");
    assert!(bytes > 5 * MIB, "{bytes}");
    back(&place);
    assert_eq!(rows(&place), before + TRANSACTIONS * 45);
    place.pellucid(&["backup", "app.db", "--log", "--to", "one.bak"]).succeeded();
    assert_whole(&place, "full.bak one.bak");
}

#[test]
fn at_the_limit_commits_fail_and_none_is_lost() {
    for begins in ["", "PRAGMA locking_mode=EXCLUSIVE;"] {
        let place = begun(&["log-limit 1m"]);
        let before = rows(&place);
        away(&place);
        let (said, bytes) = commits(&place, begins);
        assert!(said.stderr.contains("database or disk is full"), "{said:?}");
        // A checkpoint comes once a thousand frames do.
        assert!(bytes < 6 * MIB, "{bytes}");
        back(&place);
        let there = rows(&place);
        let (more, odd) = ((there - before) / 45, (there - before) % 45);
        assert!(odd == 0 && more > 5 && more < TRANSACTIONS, "{more} and {odd}, {begins}");
        sql(&place, "INSERT INTO t VALUES (9000, 'it goes on');");
        place.pellucid(&["backup", "app.db", "--log", "--to", "one.bak"]).succeeded();
        assert_whole(&place, "full.bak one.bak");
    }
}

#[test]
fn at_the_limit_the_chain_breaks_if_that_is_wanted_and_says_so() {
    for (begins, closes_without) in
        [("", true), ("", false), ("PRAGMA locking_mode=EXCLUSIVE;", true)]
    {
        let place = begun(&["log-limit 1m", "log-full break"]);
        let before = rows(&place);
        // Nothing of the next run is handed out: that some of it is gone, the archive cannot know by itself.
        sql(
            &place,
            "PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO t VALUES (9000, 'not backed up');",
        );
        away(&place);
        let (said, bytes) = commits(&place, begins);
        assert!(!said.stderr.contains("disk is full"), "{said:?}");
        assert!(bytes < 6 * MIB, "{bytes}");
        if closes_without {
            // The archive comes back behind the next run of the log, too.
            assert_eq!(rows(&place), before + TRANSACTIONS * 45 + 1);
        }
        back(&place);
        assert_eq!(rows(&place), before + TRANSACTIONS * 45 + 1);
        refused(
            &place,
            "backup app.db --log --to one.bak",
            "chain-broken",
            "missing from its chain",
        );
        let status = place.pellucid(&["status", "--check", "app.db"]);
        assert!(status.code == 4 && status.all().contains("is broken"), "{}", status.all());
        place.pellucid(&["backup", "app.db", "--to", "again.bak"]).succeeded();
        sql(&place, "INSERT INTO t VALUES (9001, 'and on');");
        place.pellucid(&["backup", "app.db", "--log", "--to", "two.bak"]).succeeded();
        assert_whole(&place, "again.bak two.bak");
    }
}

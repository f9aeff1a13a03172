//! Goal: an administrator takes log backups and restores a database to a moment, by the commands alone.
//!
//! Method: a database of version 2 under the recovery model FULL, changed by `sqlite3` under `run`; `recovery`, `backup --log`,
//! `restore --at`, `status`, `doctor`, `history`. What cannot be is refused with SQL Server's numbers.

use serde_json::Value;

use crate::support::{said_with, Place, PELLUCID};

/// A database of version 2 in the journal mode WAL.
pub fn second(place: &Place) {
    place.sealed("app.db", &[]);
    place.pellucid(&["upgrade", "app.db"]).succeeded();
    sql(place, "PRAGMA journal_mode=WAL;");
}

pub fn sql(place: &Place, script: &str) -> String {
    let mut command = place.command(PELLUCID);
    said_with(command.args(["run", "--", "sqlite3", "-batch", "-bail", "app.db"]), script)
        .succeeded()
}

pub fn facts(place: &Place, words: &str) -> Value {
    let words: Vec<&str> = std::iter::once("--json").chain(words.split(' ')).collect();
    serde_json::from_str(&place.pellucid(&words).succeeded()).unwrap()
}

pub fn count(place: &Place, database: &str) -> String {
    let mut command = place.command(PELLUCID);
    let script = "SELECT count(*) FROM t;\n";
    let said =
        said_with(command.args(["run", "--", "sqlite3", "-batch", "-bail", database]), script);
    said.succeeded().trim().to_owned()
}

pub fn refused(place: &Place, words: &str, number: &str, says: &str) {
    let said = place.pellucid(&words.split(' ').collect::<Vec<_>>());
    let told = said.all();
    assert!(
        [1, 3].contains(&said.code) && told.contains(number) && told.contains(says),
        "{words}: {told}"
    );
}

#[test]
fn a_database_is_restored_to_a_moment_between_two_log_backups() {
    let place = Place::new();
    second(&place);
    let told = facts(&place, "recovery app.db full");
    assert_eq!(
        (told["recovery_model"].as_str(), told["chain"].as_bool()),
        (Some("FULL"), Some(false))
    );
    refused(&place, "backup app.db --log --to early.bak", "4214", "no current database backup");
    place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
    assert_eq!(facts(&place, "recovery app.db")["chain"], true);
    let rows: u64 = count(&place, "app.db").parse().unwrap();
    sql(&place, "INSERT INTO t VALUES (2001, 'one');");
    let log = facts(&place, "backup app.db --log --to one.log.bak");
    assert_eq!(log["type"], "log");
    sql(&place, "INSERT INTO t VALUES (2002, 'two'); INSERT INTO t VALUES (2003, 'three');");
    let between = facts(&place, "backup app.db --log --to two.log.bak --copy-only");
    sql(&place, "DELETE FROM t;");
    place.pellucid(&["backup", "app.db", "--log", "--to", "three.log.bak"]).succeeded();
    assert_eq!(count(&place, "app.db"), "0");
    let media = "full.bak one.log.bak two.log.bak three.log.bak";
    let last = facts(&place, &format!("restore {media} --at last --to last.db"));
    assert_eq!(count(&place, "last.db"), "0");
    assert!(last["last_lsn"].as_str().is_some_and(|lsn| lsn.len() > 15), "{last}");
    assert_eq!(between["pages"], 2);
    let before = facts(&place, "restore full.bak one.log.bak two.log.bak --at last --to before.db");
    assert_eq!(count(&place, "before.db"), (rows + 3).to_string());
    // The moment of the last commit before, in the words that a restore has said it in.
    let moment = before["last_commit"].as_str().unwrap().to_owned();
    facts(&place, &format!("restore {media} --at {moment} --to at.db"));
    assert_eq!(count(&place, "at.db"), (rows + 3).to_string());
    let lsn = before["last_lsn"].as_str().unwrap();
    facts(&place, &format!("restore {media} --at lsn:{lsn} --to lsn.db"));
    assert_eq!(count(&place, "lsn.db"), (rows + 3).to_string());
    refused(
        &place,
        "restore full.bak three.log.bak --at last --to gap.db",
        "misuse",
        "are missing",
    );
    let one = facts(&place, "restore full.bak one.log.bak --at last --to one.db");
    sql(&place, "INSERT INTO t VALUES (2004, 'four');");
    place.pellucid(&["backup", "app.db", "--log", "--to", "four.log.bak"]).succeeded();
    refused(
        &place,
        "restore full.bak one.log.bak four.log.bak --at last --to gap.db",
        &format!("behind LSN {} and up to LSN ", one["last_lsn"].as_str().unwrap()),
        "are missing",
    );
    what_is_damaged_is_named(&place);
    refused(
        &place,
        &format!("restore {media} --at 2099-01-01T00:00:00Z --to late.db"),
        "misuse",
        "the last log backup was begun",
    );
    assert!(!place.path("gap.db").exists() && !place.path("late.db").exists());
    place.pellucid(&["check", "at.db"]).succeeded();
    place.pellucid(&["verify", "--open", "two.log.bak"]).succeeded();
    let listed = place.pellucid(&["history"]).succeeded();
    assert!(listed.contains("log"), "{listed}");
    place.pellucid(&["recovery", "app.db", "simple"]).succeeded();
    assert!(!place.path("app.db-log").exists());
    refused(&place, "backup app.db --log --to late.bak", "4208", "recovery model is SIMPLE");
    let events = place.pellucid(&["events"]).succeeded();
    assert!(
        events.contains("recovery model set") && events.contains("chain of log backups begun"),
        "{events}"
    );
}

/// Of several media the one that is damaged, and not the first.
fn what_is_damaged_is_named(place: &Place) {
    let whole = std::fs::read(place.path("one.log.bak")).unwrap();
    for (name, at) in [("cut.log.bak", whole.len() / 2), ("short.log.bak", whole.len() - 1)] {
        std::fs::write(place.path(name), &whole[..at]).unwrap();
    }
    let flips = (1..24).map(|part| whole.len() * part / 24);
    for at in flips {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        std::fs::write(place.path("flip.log.bak"), flipped).unwrap();
        let words = "restore full.bak flip.log.bak three.log.bak --at last --to gap.db --replace";
        let said = place.pellucid(&words.split(' ').collect::<Vec<_>>());
        // Some bytes are there twice, and some are padding.
        assert!(said.code == 0 || said.all().contains("`flip.log.bak`"), "{at}: {}", said.all());
        let _ = std::fs::remove_file(place.path("gap.db"));
    }
    for name in ["cut.log.bak", "short.log.bak"] {
        let words = format!("restore full.bak {name} three.log.bak --at last --to gap.db");
        refused(place, &words, &format!("`{name}`"), "");
    }
}

#[test]
fn what_has_no_log_backups_is_told_why_and_what_to_do() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    refused(&place, "recovery app.db full", "needs-upgrade", "pellucid upgrade");
    refused(&place, "backup app.db --log --to x.bak", "unsupported", "pellucid upgrade");
    place.plain("plain.db");
    refused(
        &place,
        "backup plain.db --log --to x.bak",
        "misuse",
        "a plain database has no log backups",
    );
    refused(&place, "recovery plain.db full", "plain", "plain.db");
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.pellucid(&["upgrade", "app.db"]).succeeded();
    // In a rollback journal mode no chain begins.
    sql(&place, "PRAGMA journal_mode=DELETE;");
    place.pellucid(&["recovery", "app.db", "bulk-logged"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
    refused(&place, "backup app.db --log --to x.bak", "4214", "no current database backup");
}

#[test]
fn an_archive_that_is_gone_is_told_by_status_and_doctor() {
    let place = Place::new();
    second(&place);
    place.pellucid(&["recovery", "app.db", "full"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
    let quiet = place.pellucid(&["status", "app.db"]).all();
    assert!(!quiet.contains("chain of log backups"), "{quiet}");
    std::fs::rename(place.path("app.db-log"), place.path("elsewhere")).unwrap();
    let told = place.pellucid(&["status", "--check", "app.db"]);
    assert!(
        told.code == 4 && told.all().contains("its chain of log backups is broken"),
        "{}",
        told.all()
    );
    let told = place.pellucid(&["doctor"]).all();
    assert!(told.contains("its chain of log backups is broken"), "{told}");
    // Programs go on, and nothing is lost once the folder is back.
    sql(&place, "INSERT INTO t VALUES (3001, 'one');");
    refused(
        &place,
        "backup app.db --log --to x.bak",
        "chain-broken",
        "chain of log backups is broken",
    );
    std::fs::rename(place.path("elsewhere"), place.path("app.db-log")).unwrap();
    let log = facts(&place, "backup app.db --log --to x.bak");
    assert_eq!(log["type"], "log");
    facts(&place, "restore full.bak x.bak --at last --to new.db");
    assert_eq!(count(&place, "new.db"), count(&place, "app.db"));
}

#[test]
fn the_tail_of_a_database_that_is_gone_and_of_one_that_nobody_commits_to_any_more() {
    let place = Place::new();
    second(&place);
    facts(&place, "recovery app.db full");
    place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
    let rows: u64 = count(&place, "app.db").parse().unwrap();
    sql(&place, "INSERT INTO t VALUES (2001, 'one');");
    // Nobody writes behind the tail.
    let tail = facts(&place, "backup app.db --log --no-recovery --to one.log.bak");
    assert_eq!(tail["type"], "log");
    let closed = |words: &str| refused(&place, words, "", "is being restored");
    closed("backup app.db --to again.bak");
    closed("run -- sqlite3 app.db .schema");
    closed("recovery app.db simple");
    let ended = facts(&place, "restore --online --to app.db");
    assert_eq!(
        (ended["recovered"].as_bool(), ended["standing"].as_str()),
        (Some(true), Some("online"))
    );
    assert_eq!(facts(&place, "restore --online --to app.db")["recovered"], false);
    sql(&place, "INSERT INTO t VALUES (2002, 'two');");
    // What a restore leaves restoring, or as a standby, the next one goes on with.
    let media = "full.bak one.log.bak";
    let left = facts(&place, "restore full.bak --no-recovery --to new.db");
    assert_eq!(left["standing"], "restoring");
    closed("run -- sqlite3 new.db .schema");
    let left = facts(&place, &format!("restore {media} --at last --standby --to new.db"));
    assert_eq!(left["standing"], "standby");
    assert_eq!(count(&place, "new.db"), (rows + 1).to_string());
    let said = place.pellucid(&["run", "--", "sqlite3", "-batch", "new.db", "VACUUM"]);
    assert!(said.code != 0 && said.all().contains("it is a standby"), "{}", said.all());
    // The file is gone, and with it nothing.
    std::fs::remove_file(place.path("app.db")).unwrap();
    refused(&place, "backup app.db --log --to two.log.bak", "", "app.db");
    let tail =
        place.pellucid(&["backup", "app.db", "--log", "--no-truncate", "--to", "two.log.bak"]);
    assert!(tail.all().contains("without the database file"), "{}", tail.all());
    assert_eq!(tail.code, 0);
    facts(&place, &format!("restore {media} two.log.bak --at last --to new.db"));
    assert_eq!(count(&place, "new.db"), (rows + 2).to_string());
    sql_of(&place, "new.db", "INSERT INTO t VALUES (2003, 'three');");
    refused(
        &place,
        &format!("restore {media} --at last --standby --to new.db"),
        "3154",
        "other than",
    );
}

#[test]
fn a_damaged_page_is_rolled_forward() {
    let place = Place::new();
    second(&place);
    facts(&place, "recovery app.db full");
    place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
    sql(&place, "UPDATE t SET b = b || '!' WHERE a % 7 = 0;");
    let rows = sql(&place, "SELECT * FROM t;");
    let mut bytes = std::fs::read(place.path("app.db")).unwrap();
    bytes[16384 + 4096 + 100] ^= 1;
    std::fs::write(place.path("app.db"), bytes).unwrap();
    refused(&place, "restore full.bak --page 2 --to app.db", "", "take a log backup");
    place.pellucid(&["backup", "app.db", "--log", "--to", "one.log.bak"]).succeeded();
    let mend = ["restore", "full.bak", "one.log.bak", "--page", "2", "--to", "app.db"];
    assert!(place.pellucid(&mend).succeeded().contains("restored page 2"));
    assert_eq!(sql(&place, "SELECT * FROM t;"), rows);
    place.pellucid(&["check", "app.db"]).succeeded();
}

fn sql_of(place: &Place, database: &str, script: &str) -> String {
    let mut command = place.command(PELLUCID);
    said_with(command.args(["run", "--", "sqlite3", "-batch", "-bail", database]), script)
        .succeeded()
}

#[test]
fn a_limit_of_the_log_that_is_no_number_is_told() {
    let place = Place::new();
    second(&place);
    facts(&place, "recovery app.db full");
    place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
    let told = |limit: &str| {
        let mut command = place.command(PELLUCID);
        command.env("PELLUCID_LOG_LIMIT", limit).env("PELLUCID_LOG", "stderr");
        let script = "INSERT INTO t VALUES (9001, 'a'); PRAGMA wal_checkpoint; \
                      INSERT INTO t VALUES (9002, 'b'); DELETE FROM t WHERE rowid > 9000;";
        let command = command.args(["run", "--", "sqlite3", "-batch", "-bail", "app.db"]);
        said_with(command, script).all()
    };
    let line = "PELLUCID_LOG_LIMIT: says no number of bytes";
    for wrong in ["16M", "-1", "ten"] {
        assert!(told(wrong).contains(line), "{wrong}: {}", told(wrong));
    }
    for right in ["", "0", "16777216"] {
        assert!(!told(right).contains(line), "{right}");
    }
}

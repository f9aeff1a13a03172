//! Goal: `lab yours` measures somebody's SQL on somebody's database, leaves the database alone, and does not accept a
//! sealed side that answers differently.
//!
//! Method: databases made here, in WAL mode with a log that another connection holds, and in rollback mode; five rounds.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::records::{lab, said, sessions};
use rusqlite::Connection;

const SQL: &str = "
-- a report, and some work
SELECT kind, count(*), sum(length(note)) FROM item GROUP BY kind ORDER BY kind;
CREATE INDEX item_kind ON item (kind);
BEGIN;
UPDATE item SET note = upper(note) WHERE id <= 100;
DELETE FROM item WHERE id > 1900;
COMMIT;
SELECT count(*) FROM item WHERE note = upper(note);
";

/// 2000 rows, the last 500 of them in the log if it is in WAL mode; whoever holds the connection keeps it there.
fn database(path: &Path, journal: &str) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(&format!(
            "PRAGMA journal_mode = {journal}; PRAGMA wal_autocheckpoint = 0;
             CREATE TABLE item(id INTEGER PRIMARY KEY, kind INTEGER, note TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
             INSERT INTO item SELECT i, i % 7, 'a note of item ' || i || hex(zeroblob(200)) FROM n;
             PRAGMA wal_checkpoint;
             WITH RECURSIVE n(i) AS (SELECT 1501 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
             INSERT INTO item SELECT i, i % 7, 'a note of item ' || i || hex(zeroblob(200)) FROM n;"
        ))
        .unwrap();
    connection
}

/// A folder of the user's with database and SQL.
struct Users {
    dir: tempfile::TempDir,
}

impl Users {
    fn new(sql: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("work.sql"), sql).unwrap();
        Self { dir }
    }

    fn database(&self) -> PathBuf {
        self.dir.path().join("app.db")
    }

    fn line(&self, more: &str) -> String {
        let (database, sql) = (self.database(), self.dir.path().join("work.sql"));
        let (database, sql) = (database.display(), sql.display());
        format!("yours --rounds 5 --database {database} --sql {sql} {more}")
    }

    /// Names and contents, but for the index of the log, which holds locks.
    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut files: Vec<_> = fs::read_dir(self.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| {
                (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
            })
            .filter(|(name, _)| !name.ends_with("-shm"))
            .collect();
        files.sort();
        files
    }
}

#[test]
fn every_statement_is_measured_and_the_database_is_left_alone() {
    for (journal, files) in [("WAL", 3), ("DELETE", 2)] {
        let users = Users::new(SQL);
        let open = database(&users.database(), journal);
        let before = users.files();
        assert_eq!(before.len(), files, "the log is there");
        let dir = tempfile::tempdir().unwrap();
        let found = sessions(dir.path(), &users.line("--sides plain,again,sealed"));
        assert!(users.files() == before, "{journal}: something was written");
        let rows: i64 = open.query_row("SELECT count(*) FROM item", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 2000);

        let [session] = &found[..] else { panic!("{} sessions", found.len()) };
        assert_eq!(session.sides(), ["plain", "again", "sealed"]);
        assert_eq!(session.parameter("statements"), 7);
        assert_eq!(session.parameter("journal"), if journal == "WAL" { "WAL" } else { "rollback" });
        let cells: Vec<&str> = session.cells().into_iter().collect();
        assert_eq!(cells.len(), 8, "{cells:?}");
        assert!(cells[0].starts_with("1: SELECT kind, count(*), sum(length(note))"), "{cells:?}");
        for (cell, returned, changed) in [
            (cells[0], 7.0, 0.0),
            ("2: CREATE INDEX item_kind ON item (kind)", 0.0, 0.0),
            ("4: UPDATE item SET note = upper(note) WHERE id <= 100", 0.0, 100.0),
            // Also of the rows that only the log held.
            ("5: DELETE FROM item WHERE id > 1900", 0.0, 100.0),
            ("7: SELECT count(*) FROM item WHERE note = upper(note)", 1.0, 0.0),
        ] {
            for side in session.sides() {
                // Each run begins with a fresh copy: the same is done every time.
                for round in 0..=5 {
                    let of = |what| session.value(cell, side, what, round);
                    assert_eq!(
                        (of("returned_rows"), of("changed_rows")),
                        (returned, changed),
                        "{cell}"
                    );
                    assert!(of("elapsed_s") > 0.0);
                }
            }
        }
        for side in session.sides() {
            let of = |cell: &str| session.value(cell, side, "elapsed_s", 3);
            let sum: f64 = cells.iter().filter(|cell| **cell != "all").map(|cell| of(cell)).sum();
            assert!(of("all") > sum, "closing comes with it");
        }
        // No name of the user's folder is in the records.
        let text = fs::read_to_string(dir.path().join("records.jsonl")).unwrap();
        assert!(!text.contains(users.dir.path().to_str().unwrap()));
        let records = dir.path().join("records.jsonl");
        let report = Command::new(env!("CARGO_BIN_EXE_lab"))
            .args(["report".as_ref(), records.as_os_str()])
            .output()
            .unwrap();
        let told = said(&report).0;
        assert!(told.contains("On this machine: a given database"), "{told}");
        assert!(told.contains("a given database, 7 statements, "), "{told}");
    }
}

#[test]
fn a_sealed_side_that_answers_differently_is_an_error() {
    // What is free in the pages is another sum where each has a tag.
    let users =
        Users::new("SELECT count(*) FROM item; SELECT sum(unused) FROM dbstat; SELECT random();");
    drop(database(&users.database(), "DELETE"));
    let dir = tempfile::tempdir().unwrap();
    let output = lab(dir.path(), &users.line(""));
    let (_, err) = said(&output);
    assert_eq!(output.status.code(), Some(1));
    let differs = "`2: SELECT sum(unused) FROM dbstat`: sealed answers otherwise than plain";
    assert!(err.contains(differs), "{err}");
    assert!(err.contains("`3: SELECT random()` does not answer alike twice"), "{err}");
    assert!(!err.contains("`1: "), "{err}");
}

#[test]
fn what_is_refused_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |users: &Users| {
        let output = lab(dir.path(), &users.line(""));
        assert_eq!(output.status.code(), Some(1), "{:?}", said(&output));
        said(&output).1
    };
    let users = Users::new("SELECT 1; SELECT missing FROM item;");
    drop(database(&users.database(), "WAL"));
    let err = refused(&users);
    assert!(err.contains("statement 2") && err.contains("missing"), "{err}");
    assert!(refused_sql(&users, " -- nothing\n", dir.path()).contains("no statement"));

    // A sealed one, as the program makes it.
    let key = users.dir.path().join("key");
    fs::write(&key, [7; 32]).unwrap();
    let mut permissions = fs::metadata(&key).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o600);
    fs::set_permissions(&key, permissions).unwrap();
    let pellucid = Path::new(env!("CARGO_BIN_EXE_lab")).with_file_name("pellucid");
    let sealed = Command::new(pellucid)
        .env("PELLUCID_HOME", users.dir.path().join("home"))
        .args(["encrypt".as_ref(), "--key-file".as_ref(), key.as_os_str()])
        .arg(users.database())
        .output()
        .unwrap();
    assert!(sealed.status.success(), "{:?}", said(&sealed));
    let err = refused(&users);
    assert!(err.contains("is sealed") && err.contains("pellucid decrypt"), "{err}");
    fs::write(users.database(), "no database").unwrap();
    assert!(refused(&users).contains("no SQLite database"));
}

fn refused_sql(users: &Users, sql: &str, dir: &Path) -> String {
    fs::write(users.dir.path().join("work.sql"), sql).unwrap();
    let output = lab(dir, &users.line(""));
    assert_eq!(output.status.code(), Some(1), "{:?}", said(&output));
    said(&output).1
}

#[test]
fn an_estimate_is_a_number_and_leaves_nothing() {
    let users = Users::new(SQL);
    drop(database(&users.database(), "WAL"));
    let (before, dir) = (users.files(), tempfile::tempdir().unwrap());
    let output = lab(dir.path(), &users.line("--estimate"));
    let seconds: f64 =
        said(&output).0.trim().parse().unwrap_or_else(|_| panic!("{:?}", said(&output)));
    assert!(seconds > 0.0);
    assert!(users.files() == before);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

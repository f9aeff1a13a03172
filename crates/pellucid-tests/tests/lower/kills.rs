//! Processes that are killed in the middle of a transaction.

use std::io::BufRead;
use std::process::{Command, Stdio};

use pellucid_tests::random::Random;

use crate::place::{alone_over, instance, number, open_uri, talker, text, Place, MARK};

const CHILD: &str = "PELLUCID_LOWER_CHILD";

/// Not a test: the child, which commits until it is killed.
#[test]
fn commits_until_it_is_killed() {
    let Ok(uri) = std::env::var(CHILD) else { return };
    let _extension = talker_of_parent();
    let db = open_uri(&uri).unwrap();
    db.execute_batch("PRAGMA cache_size=4").unwrap();
    loop {
        let insert = format!(
            "BEGIN; INSERT INTO t SELECT '{MARK}' || hex(randomblob(2000)) FROM (VALUES (1),(2),(3),(4));
             UPDATE n SET n = n + 1; COMMIT"
        );
        db.execute_batch(&insert).unwrap();
        println!("COMMITTED {}", number(&db, "SELECT n FROM n"));
    }
}

fn talker_of_parent() -> rusqlite::Connection {
    // The parent's instance is in the environment: it is not made anew.
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    // SAFETY: the library is this repository's own, built for the tests.
    unsafe {
        connection.load_extension_enable().unwrap();
        connection.load_extension(pellucid_tests::processes::extension(), None::<&str>).unwrap();
    }
    connection
}

#[test]
fn no_commit_is_lost_when_a_process_is_killed() {
    let _talker = talker();
    let place = Place::new();
    let mut random = Random(33);
    for (vfs, mode) in [
        ("unix-dotfile", "delete"),
        ("unix-dotfile", "persist"),
        ("unix-none", "truncate"),
        ("unix-none", "wal"),
    ] {
        let name = format!("{vfs}-{mode}.db");
        let uri = format!("file:{}?{}", place.path(&name).display(), alone_over(vfs));
        let db = open_uri(&uri).unwrap();
        assert_eq!(text(&db, &format!("PRAGMA journal_mode={mode}")), mode);
        db.execute_batch("CREATE TABLE t(a); CREATE TABLE n(n); INSERT INTO n VALUES (0)").unwrap();
        db.close().unwrap();
        let mut kept = 0;
        for _ in 0..4 {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "kills::commits_until_it_is_killed", "--nocapture"])
                .env(CHILD, &uri)
                .env("PELLUCID_HOME", instance().join("keys"))
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
            let told = lines.map_while(Result::ok);
            let told = told.filter_map(|line| {
                line.split_once("COMMITTED ").map(|(_, n)| n.parse::<i64>().unwrap())
            });
            let mut told = told.inspect(|n| kept = *n);
            let most = 3 + (random.draw() % 20) as usize;
            assert!(told.by_ref().nth(most).is_some(), "{name}: the child ended by itself");
            child.kill().unwrap();
            // What it had said before it died.
            told.for_each(drop);
            child.wait().unwrap();
            assert!(place.in_clear().is_empty(), "{name}");
            // A lock of this VFS outlives its owner, by SQLite's own design.
            let _ = std::fs::remove_dir(place.path(&format!("{name}.lock")));
            let db = open_uri(&uri).unwrap();
            let found = number(&db, "SELECT n FROM n");
            assert!(found == kept || found == kept + 1, "{name}: {found} of {kept}");
            assert_eq!(number(&db, "SELECT count(*) FROM t"), found * 4, "{name}");
            assert_eq!(text(&db, "PRAGMA integrity_check"), "ok", "{name}");
            db.close().unwrap();
        }
    }
}

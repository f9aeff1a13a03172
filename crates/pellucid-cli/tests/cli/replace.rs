//! Goal: a restore over a database that is there gives the old one or the new one, never a mix, whoever has it open and
//! whenever it is killed.
//!
//! Method: the program from outside, over databases of every kind with idle connections beside; killed before each of its
//! calls that change a file (tests/tools/killat.c).

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::support::{edit, said, Place, PELLUCID};

fn query(place: &Place, name: &str, sql: &str) -> String {
    place.pellucid(&["run", "--", "sqlite3", "-batch", name, sql]).succeeded()
}

/// A database whose every row says `word`, so that a mix would show.
fn database(place: &Place, name: &str, word: &str, page_size: u32, journal: &str, sealed: bool) {
    let sql = format!(
        "PRAGMA page_size = {page_size}; PRAGMA journal_mode = {journal};
         CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 700)
         INSERT INTO t SELECT i, '{word} ' || hex(randomblob(100)) FROM n;"
    );
    place.sqlite3(name, &sql).succeeded();
    if sealed {
        // There may have been a sealed one.
        place.pellucid(&["accept", name]).succeeded();
        place.pellucid(&["encrypt", name]).succeeded();
    }
}

const WORDS: &str = "SELECT group_concat(DISTINCT substr(b, 1, 3)) FROM t; PRAGMA integrity_check";

fn inode(place: &Place, name: &str) -> u64 {
    std::fs::metadata(place.path(name)).unwrap().ino()
}

/// A program that has a database open and asks it when it is told to.
struct Idle {
    child: Child,
    ask: ChildStdin,
    hear: BufReader<ChildStdout>,
}

impl Idle {
    fn start(place: &Place, name: &str) -> Self {
        let program = "import sqlite3, sys
c = sqlite3.connect(sys.argv[1], timeout=5, isolation_level=None)
for sql in sys.stdin:
    try:
        print(c.execute(sql).fetchall(), flush=True)
    except sqlite3.Error as error:
        print('error', error, flush=True)
";
        let mut command = place.command(PELLUCID);
        command.args(["run", "--", "python3", "-c", program, name]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let ask = child.stdin.take().unwrap();
        let hear = BufReader::new(child.stdout.take().unwrap());
        Self { child, ask, hear }
    }

    fn ask(&mut self, sql: &str) -> String {
        writeln!(self.ask, "{sql}").unwrap();
        let mut line = String::new();
        self.hear.read_line(&mut line).unwrap();
        line
    }

    fn end(mut self) {
        drop(self.ask);
        self.child.wait().unwrap();
    }
}

#[test]
fn without_leave_nothing_is_replaced_and_sql_servers_message_says_why() {
    let place = Place::new();
    database(&place, "app.db", "new", 4096, "DELETE", true);
    database(&place, "other.db", "old", 4096, "DELETE", true);
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    std::fs::write(place.path("text"), "no database at all").unwrap();
    for (name, number) in [("app.db", "(3159)"), ("other.db", "(3154)"), ("text", "(3142)")] {
        let before = std::fs::read(place.path(name)).unwrap();
        let refused = place.pellucid(&["restore", "app.bak", "--to", name]);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains(number), "{refused:?}");
        assert!(refused.stderr.contains("--replace"), "{refused:?}");
        assert_eq!(std::fs::read(place.path(name)).unwrap(), before);
    }
    // A log that is left of a database that is gone would be played into the new one.
    std::fs::write(place.path("gone.db-wal"), "a log").unwrap();
    let refused = place.pellucid(&["restore", "app.bak", "--to", "gone.db"]);
    assert!(refused.stderr.contains("belonged to another database"), "{refused:?}");
    place.pellucid(&["restore", "app.bak", "--to", "gone.db", "--replace"]).succeeded();
    assert_eq!(query(&place, "gone.db", WORDS), "new\nok\n");
    // What is encrypted does not become plain by the way.
    database(&place, "plain.db", "new", 4096, "DELETE", false);
    place.pellucid(&["backup", "plain.db", "--to", "plain.bak"]).succeeded();
    let over = ["restore", "plain.bak", "--to", "other.db", "--replace"];
    let refused = place.pellucid(&over);
    assert!(refused.stderr.contains("--decrypted"), "{refused:?}");
    assert_eq!(query(&place, "other.db", WORDS), "old\nok\n");
    // And that it may be plain is not that a set which anybody can have made is believed.
    let refused = place.pellucid(&[&over[..], &["--decrypted"]].concat());
    assert!(refused.code == 1 && refused.stderr.contains("NOT sealed"), "{refused:?}");
    assert_eq!(query(&place, "other.db", WORDS), "old\nok\n");
    place.pellucid(&[&over[..], &["--decrypted", "--allow-clear"]].concat()).succeeded();
    assert_eq!(place.sqlite3("other.db", WORDS).succeeded(), "new\nok\n");
}

#[test]
fn an_idle_connection_sees_the_new_content_or_a_clear_error_and_the_inode_stays() {
    for (sealed, decrypted, sizes) in
        [(true, false, [4096, 4096]), (true, false, [4096, 512]), (false, false, [1024, 4096])]
    {
        let place = Place::new();
        database(&place, "new.db", "new", sizes[0], "DELETE", sealed);
        database(&place, "app.db", "old", sizes[1], "DELETE", sealed);
        place.pellucid(&["backup", "new.db", "--to", "new.bak"]).succeeded();
        let before = inode(&place, "app.db");
        let mut idle = Idle::start(&place, "app.db");
        assert!(idle.ask("SELECT count(*), min(b) FROM t").contains("old"));
        let mut restore = vec!["restore", "new.bak", "--to", "app.db", "--replace"];
        restore.extend(decrypted.then_some("--decrypted"));
        place.pellucid(&restore).succeeded();
        let heard = idle.ask("SELECT group_concat(DISTINCT substr(b, 1, 3)) FROM t");
        assert_eq!(heard, "[('new',)]\n", "sealed {sealed}, pages {sizes:?}");
        idle.ask("UPDATE t SET b = 'new again' WHERE a = 7");
        idle.end();
        assert_eq!(inode(&place, "app.db"), before);
        let said = query(&place, "app.db", "SELECT b FROM t WHERE a = 7; PRAGMA integrity_check");
        assert_eq!(said, "new again\nok\n");
        for left in ["app.db-pellucid", "app.db.pellucid-new", "app.db-journal"] {
            assert!(!place.path(left).exists(), "{left}");
        }
    }
}

#[test]
fn a_sealed_one_becomes_plain_under_an_idle_connection_and_a_plain_one_sealed() {
    let place = Place::new();
    database(&place, "new.db", "new", 4096, "DELETE", true);
    database(&place, "app.db", "old", 4096, "DELETE", true);
    place.pellucid(&["backup", "new.db", "--to", "new.bak"]).succeeded();
    let mut idle = Idle::start(&place, "app.db");
    assert!(idle.ask("SELECT min(b) FROM t").contains("old"));
    let over = ["restore", "new.bak", "--to", "app.db", "--replace"];
    place.pellucid(&[&over[..], &["--decrypted"]].concat()).succeeded();
    let heard = idle.ask("SELECT min(b) FROM t");
    assert!(heard.starts_with("error"), "{heard}");
    idle.end();
    assert_eq!(place.sqlite3("app.db", WORDS).succeeded(), "new\nok\n");
    let mut idle = Idle::start(&place, "app.db");
    idle.ask("UPDATE t SET b = 'old'");
    place.pellucid(&over).succeeded();
    assert_eq!(idle.ask("SELECT DISTINCT substr(b, 1, 3) FROM t"), "[('new',)]\n");
    idle.end();
    assert_ne!(place.sqlite3("app.db", "SELECT 1 FROM t").code, 0);
    place.pellucid(&["check", "app.db"]).succeeded();
}

#[test]
fn in_wal_mode_the_programs_have_to_close_it_and_are_named() {
    let place = Place::new();
    database(&place, "app.db", "new", 4096, "WAL", true);
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    let mut idle = Idle::start(&place, "app.db");
    idle.ask("UPDATE t SET b = 'old'");
    let over = ["restore", "app.bak", "--to", "app.db", "--replace"];
    let refused = place.pellucid(&[&over[..], &["--timeout", "0"]].concat());
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("Exclusive access could not be obtained"), "{refused:?}");
    assert!(refused.stderr.contains("(3101)") && refused.stderr.contains("python3"), "{refused:?}");
    assert_eq!(idle.ask("SELECT DISTINCT b FROM t"), "[('old',)]\n");
    idle.end();
    assert_eq!(query(&place, "app.db", WORDS), "old\nok\n");
    place.pellucid(&over).succeeded();
    assert_eq!(query(&place, "app.db", WORDS), "new\nok\n");
    assert_eq!(query(&place, "app.db", "PRAGMA journal_mode"), "wal\n");
}

#[test]
fn what_nobody_can_read_any_more_is_replaced_with_its_logs() {
    let place = Place::new();
    database(&place, "new.db", "new", 4096, "DELETE", true);
    place.pellucid(&["backup", "new.db", "--to", "new.bak"]).succeeded();
    let over = ["restore", "new.bak", "--to", "app.db", "--replace"];
    for damage in ["header", "key", "text"] {
        database(&place, "app.db", "old", 4096, "DELETE", true);
        match damage {
            "header" => edit(&place.path("app.db"), |bytes| bytes[..16384].fill(7)),
            "key" => {
                place.secret("k", &[9; 32]);
                let more = ["protector", "add", "app.db", "--new-key-file", "k"];
                place.pellucid(&more).succeeded();
                place.pellucid(&["protector", "drop", "app.db", "--number", "1"]).succeeded();
            }
            _ => std::fs::write(place.path("app.db"), "text").unwrap(),
        }
        std::fs::write(place.path("app.db-wal"), [5; 9000]).unwrap();
        let before = inode(&place, "app.db");
        place.pellucid(&over).succeeded();
        assert_eq!(query(&place, "app.db", WORDS), "new\nok\n", "{damage}");
        assert_eq!(inode(&place, "app.db"), before);
        assert!(!place.path("app.db-wal.pellucid-old").exists());
        std::fs::remove_file(place.path("app.db")).unwrap();
    }
}

#[test]
fn killed_anywhere_it_is_the_old_one_or_the_new_one_and_the_next_restore_is_whole() {
    let tool = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools/killat.c");
    for (from_sealed, to_sealed, journal) in [
        (true, true, "DELETE"),
        (true, true, "WAL"),
        (false, true, "DELETE"),
        (false, false, "WAL"),
    ] {
        let model = Place::new();
        database(&model, "new.db", "new", 4096, "DELETE", to_sealed);
        database(&model, "app.db", "old", 4096, journal, from_sealed);
        model.pellucid(&["backup", "new.db", "--to", "new.bak"]).succeeded();
        let preload = model.compile_library(&tool, "killat.so");
        let (mut at, mut old, mut new) = (0, 0, 0);
        loop {
            at += 1;
            let live = Place::new();
            model.copy_to(&live);
            let mut command = live.command(PELLUCID);
            command.env("LD_PRELOAD", &preload).env("KILL_DIR", live.path("app.db"));
            command.env("KILL_AT", at.to_string());
            command.args(["restore", "new.bak", "--to", "app.db", "--replace", "--quiet"]);
            let told = said(&mut command);
            let what = format!("{from_sealed} {to_sealed} {journal}, killed at {at}");
            assert!(told.code == 0 || told.code == 128 + 9, "{what}: {told:?}");
            match query(&live, "app.db", WORDS).as_str() {
                "old\nok\n" => old += 1,
                "new\nok\n" => new += 1,
                said => panic!("{what}: {said}"),
            }
            if at % 4 == 0 || told.code == 0 {
                live.pellucid(&["restore", "new.bak", "--to", "app.db", "--replace"]).succeeded();
                assert_eq!(query(&live, "app.db", WORDS), "new\nok\n", "{what}");
            }
            if told.code == 0 {
                break;
            }
        }
        println!("{from_sealed} {to_sealed} {journal}: {at} calls, {old} old, {new} new");
        assert!(old > 5 && new > 5, "{old} {new}");
    }
}

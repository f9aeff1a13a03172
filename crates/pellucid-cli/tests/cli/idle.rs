//! Goal: a program that has had a database open since before its keys changed, and has done nothing since, reads and
//! writes right afterwards.
//!
//! Method: a process of its own for each change, with all rows read once, so that its cache is full. The change is made and
//! ended, another process writes, and then the idle one is asked: for all rows, and for a row of its own.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

use crate::rekey::query;
use crate::support::{Place, PELLUCID};

const IDLE: &str = "import sqlite3, sys
db = sqlite3.connect('app.db', isolation_level=None, timeout=300)
db.execute('PRAGMA cache_size = -32768')
print(db.execute('SELECT count(*), sum(length(b)) FROM t').fetchone(), flush=True)
for line in sys.stdin:
    print(db.execute('SELECT count(*), sum(length(b)), (SELECT b FROM t ORDER BY a DESC LIMIT 1) FROM t').fetchone(), flush=True)
    db.execute('INSERT INTO t VALUES (NULL, ?)', (line.strip(),))
    print(db.execute('PRAGMA integrity_check').fetchone(), flush=True)
";

/// One that is idle, and what it says.
struct Idle(Child, BufReader<ChildStdout>);

impl Idle {
    fn new(place: &Place) -> Self {
        let mut command = place.command(PELLUCID);
        command.args(["run", "--", "python3", "-c", IDLE]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut idle = Self(child, out);
        idle.line();
        idle
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, word: &str) {
        writeln!(self.0.stdin.as_mut().unwrap(), "{word}").unwrap();
    }
}

#[test]
fn who_was_idle_since_before_a_change_reads_and_writes_right() {
    for mode in ["wal", "delete"] {
        let place = Place::new();
        place.sealed("app.db", &[]);
        query(&place, "app.db", &format!("PRAGMA journal_mode = {mode}"));
        place.pellucid(&["cert", "create", "C2"]).succeeded();
        // Since before all of them, too.
        let mut first = Idle::new(&place);
        let (mut rows, mut writes) = (200, 0);
        for change in [
            "decrypt app.db --keep-container",
            "encrypt app.db",
            "rekey app.db",
            "rekey app.db --algorithm AES_128",
            "rewrap app.db --certificate C2",
            "cert drop pellucid",
            "rekey app.db --new-id",
        ] {
            let mut idle = Idle::new(&place);
            place.pellucid(&change.split(' ').collect::<Vec<_>>()).succeeded();
            query(&place, "app.db", &format!("INSERT INTO t VALUES (NULL, 'zz {change}')"));
            rows += 1;
            idle.ask("an idle one");
            let seen = idle.line();
            let wanted = format!("'zz {change}')");
            assert!(seen.starts_with(&format!("({rows}, ")), "{mode}, {change}: {seen}");
            assert!(seen.ends_with(&wanted), "{mode}, {change}: {seen}");
            assert_eq!(idle.line(), "('ok',)", "{mode}, {change}");
            (rows, writes) = (rows + 1, writes + 1);
            drop(idle.0.stdin.take());
            assert!(idle.0.wait().unwrap().success(), "{mode}, {change}");
        }
        first.ask("the first one");
        let seen = first.line();
        assert!(seen.starts_with(&format!("({rows}, ")), "{mode}: {seen}");
        assert_eq!(first.line(), "('ok',)", "{mode}");
        drop(first.0.stdin.take());
        assert!(first.0.wait().unwrap().success(), "{mode}");
        let sql = "SELECT count(*), sum(b = 'an idle one'), sum(b = 'the first one') FROM t";
        let wanted = format!("{}|{writes}|1", rows + 1);
        assert_eq!(query(&place, "app.db", sql).trim_end(), wanted, "{mode}");
        place.pellucid(&["check", "app.db"]).succeeded();
    }
}

/// A header of another container may have the same sequence. In WAL mode nobody decrypts what somebody has open.
#[test]
fn who_was_idle_since_before_another_container_reads_and_writes_right() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    query(&place, "app.db", "PRAGMA journal_mode = delete");
    place.pellucid(&["decrypt", "app.db"]).succeeded();
    place.pellucid(&["encrypt", "app.db"]).succeeded();
    let mut idle = Idle::new(&place);
    place.pellucid(&["decrypt", "app.db"]).succeeded();
    place.pellucid(&["encrypt", "app.db"]).succeeded();
    query(&place, "app.db", "INSERT INTO t VALUES (NULL, 'of another')");
    idle.ask("an idle one");
    let seen = idle.line();
    assert!(seen.starts_with("(201, ") && seen.ends_with("'of another')"), "{seen}");
    assert_eq!(idle.line(), "('ok',)");
    drop(idle.0.stdin.take());
    assert!(idle.0.wait().unwrap().success());
    assert_eq!(query(&place, "app.db", "SELECT count(*) FROM t").trim_end(), "202");
    place.pellucid(&["check", "app.db"]).succeeded();
}

//! Stranger test: stock `sqlite3` without the shim, let loose on a sealed database, gets errors and harms nothing.
//!
//! Each situation (a live process, what kill -9 leaves: a WAL, hot journals, a shared transaction) is set up by a
//! shimmed `sqlite3`; commits are acknowledged by a file that it appends to after each. Then every command of
//! [`COMMANDS`] runs in a stock process of its own: it must fail and print nothing, and where nobody else is at work
//! database, WAL and journal must be byte for byte as before. Afterwards the shim must find every acknowledged
//! commit. [`strangers_get_their_way_with_a_plain_database`] runs the same commands over a plain database, where
//! each of them works: that is the proof that the tests can fail.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::place::{compile, feed, text, Place};

/// What strangers do. None ends by itself, all touch `s.db`.
const COMMANDS: [&str; 16] = [
    "SELECT * FROM t LIMIT 3;",
    ".tables",
    ".schema",
    ".dump",
    "PRAGMA wal_checkpoint(TRUNCATE);",
    "PRAGMA wal_checkpoint(PASSIVE);",
    "PRAGMA journal_mode=DELETE;",
    "PRAGMA journal_mode=WAL;",
    "PRAGMA locking_mode=EXCLUSIVE; SELECT count(*) FROM t;",
    "INSERT INTO t(v) VALUES('stranger');",
    "CREATE TABLE strange(a);",
    "PRAGMA user_version=99;",
    "PRAGMA integrity_check;",
    "VACUUM;",
    "VACUUM INTO 'copy.db';",
    ".backup copy2.db",
];

/// The same from a plain database of the stranger's own, which shares its transaction.
const ATTACHED: &str = "
ATTACH 's.db' AS s;
BEGIN; CREATE TABLE own(a); INSERT INTO own VALUES(1); INSERT INTO s.t(v) VALUES('stranger'); COMMIT;
";

fn stranger(place: &Place, file: &str, input: &str) -> (String, String) {
    let mut command = place.stock();
    let output = feed(command.args(["-batch", file]), &format!(".timeout 50\n{input}\n"));
    assert!(output.status.code().is_some(), "stock sqlite3 died of {input}");
    (text(&output.stdout), text(&output.stderr))
}

/// All strangers in turn; every one of them must fail.
fn strangers(place: &Place) {
    for input in COMMANDS {
        let (out, errors) = stranger(place, "s.db", input);
        // `.dump` prints its frame and then what went wrong.
        let told = errors.contains("rror") || out.contains("/**** ERROR");
        assert!(told, "no error for `{input}`: {out}{errors}");
        let printed = out.lines().any(|l| l.contains("row") || l.contains("INSERT") || l == "ok");
        assert!(!printed, "`{input}` printed {out}");
        // The locking mode is the stranger's own.
        let frame = input == ".dump" || out == "exclusive\n";
        assert!(frame || out.is_empty(), "`{input}` printed {out}");
    }
    let (out, errors) = stranger(place, "own.db", ATTACHED);
    assert!(out.is_empty() && errors.contains("rror"), "no error: {out}{errors}");
    let (out, errors) = stranger(place, "file:s.db?immutable=1", "SELECT * FROM t LIMIT 3;");
    assert!(out.is_empty() && errors.contains("rror"), "no error: {out}{errors}");
}

/// The database's files and what is in them; the WAL index is not content.
fn files(place: &Place) -> BTreeMap<PathBuf, Vec<u8>> {
    let ours = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("s.db") && !name.ends_with("-shm")
    };
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).unwrap());
    place.files().into_iter().filter(ours).map(read).collect()
}

/// A script that makes `s.db` in `mode` and commits `commits` rows, acknowledging each.
fn committing(mode: &str, commits: usize) -> String {
    let mut script = format!(
        ".open s.db\nPRAGMA page_size=1024; PRAGMA journal_mode={mode};\n\
         PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=2;\n\
         CREATE TABLE t(id INTEGER PRIMARY KEY, v);\n",
    );
    script += &(1..=commits).map(insert).collect::<String>();
    script
}

fn insert(id: usize) -> String {
    format!(
        "INSERT INTO t VALUES({id}, 'row {id} '||hex(zeroblob(100)));\n.system echo {id} >> acks\n"
    )
}

/// A transaction over every page, which spills and is never committed.
const OPEN_TRANSACTION: &str =
    ".system cp s.db before\nBEGIN; UPDATE t SET v='never committed '||v;\n";
const SUICIDE: &str = ".system kill -9 $PPID\n";

fn acknowledged(place: &Place) -> usize {
    std::fs::read_to_string(place.path("acks")).map_or(0, |acks| acks.lines().count())
}

/// The shim finds every acknowledged commit, nothing else, and no damage.
fn all_is_there(place: &Place) {
    let query = "SELECT count(*), max(id), sum(v LIKE 'row '||id||' 000%') FROM t;\n\
                 PRAGMA integrity_check;\nPRAGMA user_version;\n";
    let output = feed(place.shimmed().args(["-cmd", ".open s.db"]), query);
    let n = acknowledged(place);
    assert!(n > 0, "nothing was acknowledged: this test could not fail");
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(out, format!("{n}|{n}|{n}\nok\n0\n"), "{errors}");
    let sealed = std::fs::read(place.path("s.db")).unwrap();
    assert!(sealed.starts_with(b"Pellucid sealed\0"));
}

/// What kill -9 in a transaction leaves, in one journal mode, with strangers and then the shim.
fn killed(mode: &str, leftover: &str) {
    let place = Place::new();
    let script = committing(mode, 40) + OPEN_TRANSACTION + SUICIDE;
    let output = feed(place.shimmed().arg("-batch"), &script);
    assert_eq!(output.status.code(), None, "it was to be killed: {}", text(&output.stderr));
    let before = files(&place);
    let left = &before[&place.path(leftover)];
    assert!(left.len() > 2048, "{leftover} holds nothing: this test could not fail");
    if mode != "WAL" {
        let written = std::fs::read(place.path("before")).unwrap() != before[&place.path("s.db")];
        assert!(written, "no page was written before the kill: this test could not fail");
    }
    strangers(&place);
    assert_eq!(before.keys().collect::<Vec<_>>(), files(&place).keys().collect::<Vec<_>>());
    assert!(before == files(&place), "{mode}: a stranger changed a file");
    all_is_there(&place);
}

#[test]
fn after_a_kill_with_a_wal() {
    killed("WAL", "s.db-wal");
}

#[test]
fn after_a_kill_with_a_hot_journal() {
    for mode in ["DELETE", "PERSIST", "TRUNCATE"] {
        killed(mode, "s.db-journal");
    }
}

/// A shimmed `sqlite3` that stays, and takes commands.
struct Live(Child);

impl Live {
    fn start(place: &Place) -> Self {
        let mut command = place.shimmed();
        command.arg("-batch").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::inherit());
        Self(command.spawn().unwrap())
    }

    /// Sends a script and waits until it is done with it.
    fn does(&mut self, place: &Place, script: &str) {
        let done = place.path("done");
        let script = format!("{script}.system touch done\n");
        self.0.stdin.as_mut().unwrap().write_all(script.as_bytes()).unwrap();
        let start = Instant::now();
        while !done.exists() {
            assert!(start.elapsed() < Duration::from_secs(300), "the live process hangs");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::remove_file(done).unwrap();
    }

    fn ends(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }
}

#[test]
fn beside_a_live_process() {
    for mode in ["WAL", "DELETE", "TRUNCATE", "PERSIST"] {
        let place = Place::new();
        let mut live = Live::start(&place);
        live.does(&place, &committing(mode, 20));
        strangers(&place);
        live.does(&place, &(21..=30).map(insert).collect::<String>());
        live.does(&place, OPEN_TRANSACTION);
        strangers(&place);
        live.does(&place, "ROLLBACK;\n");
        live.does(&place, &(31..=40).map(insert).collect::<String>());
        strangers(&place);
        live.ends();
        all_is_there(&place);
        strangers(&place);
        all_is_there(&place);
    }
}

/// A sealed and a plain database in one transaction, killed before and after its commit point (the removal of the
/// super-journal). Stock SQLite then recovers the plain one, and both must agree.
#[test]
fn a_plain_database_in_the_same_transaction() {
    for (kill_at, committed) in [(1, false), (2, true), (3, true)] {
        for sealed_first in [true, false] {
            let place = Place::new();
            let made = feed(
                place.stock().arg("plain.db"),
                "CREATE TABLE p(v); INSERT INTO p VALUES('old');",
            );
            assert!(made.status.success());
            let made = feed(
                place.shimmed().args(["-cmd", ".open s.db"]),
                "CREATE TABLE t(v); INSERT INTO t VALUES('old');",
            );
            assert!(made.status.success(), "{}", text(&made.stderr));
            let killer = compile(&place, "killer");
            let mut command = place.shimmed();
            command.env("LD_PRELOAD", killer).env("KILL_AT_UNLINK", kill_at.to_string());
            let (first, second) = match sealed_first {
                true => ("s.db", "plain.db"),
                false => ("plain.db", "s.db"),
            };
            let script = format!(
                ".open {first}\nATTACH '{second}' AS o;\n\
                 BEGIN; UPDATE t SET v='new'; UPDATE p SET v='new'; COMMIT;\n"
            );
            let output = feed(command.arg("-batch"), &script);
            assert_eq!(output.status.code(), None, "{kill_at}: {}", text(&output.stderr));
            let expected = if committed { "new\nok\n" } else { "old\nok\n" };
            let (out, errors) =
                stranger(&place, "plain.db", "SELECT v FROM p; PRAGMA integrity_check;");
            assert_eq!(out, expected, "plain, killed at {kill_at}: {errors}");
            let output = feed(
                place.shimmed().args(["-cmd", ".open s.db"]),
                "SELECT v FROM t; PRAGMA integrity_check;",
            );
            let (out, errors) = (text(&output.stdout), text(&output.stderr));
            assert_eq!(out, expected, "sealed, killed at {kill_at}, first {first}: {errors}");
        }
    }
}

#[test]
fn strangers_get_their_way_with_a_plain_database() {
    let place = Place::new();
    let output = feed(place.stock().arg("-batch"), &(committing("WAL", 40) + SUICIDE));
    assert_eq!(output.status.code(), None);
    let before = files(&place);
    for input in COMMANDS {
        let (out, errors) = stranger(&place, "s.db", input);
        assert!(errors.is_empty(), "{input}: {out}{errors}");
    }
    let (out, errors) = stranger(&place, "own.db", ATTACHED);
    assert!(errors.is_empty(), "{out}{errors}");
    assert!(before != files(&place));
}

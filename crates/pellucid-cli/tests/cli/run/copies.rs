//! Copies that SQLite makes of a sealed database are sealed, or refused.
//!
//! Each row of a table is what a program does beside `app.db`, which is sealed and has a marker in its rows. Afterwards
//! no file in clear has the marker, and the copy opens with the rows and passes SQLite's check; or the program got an
//! error that says how to ask for plain copies, and the copy has no page. The same rows with `--plain-copies` show that
//! the marker would be found.

use std::path::PathBuf;
use std::process::Output;

use super::package::wheel;
use super::workplace::{answer, need, text, Workplace};

const MARKER: &str = "a marker that no file in clear has";
const OPTION: &str = "--plain-copies";

fn sqlite3() -> PathBuf {
    need("/usr/bin/sqlite3", "sqlite3")
}

fn python() -> PathBuf {
    need("/usr/bin/python3", "python3")
}

/// A place with `app.db`, sealed under the default certificate: 2000 rows with the marker in `t`.
fn place() -> Workplace {
    let place = Workplace::new();
    sealed(&place, "app.db", &[]);
    place
}

fn sealed(place: &Workplace, name: &str, options: &[&str]) {
    let rows = format!(
        "CREATE TABLE t(a); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000)
         INSERT INTO t SELECT n || '{MARKER}' FROM c"
    );
    let made = place.command(sqlite3()).args([name, &rows]).output().unwrap();
    assert!(made.status.success(), "{}", text(&made));
    let output = place.pellucid(&["encrypt", name]).args(options).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

fn secret(place: &Workplace, name: &str, content: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(place.path(name), content).unwrap();
    std::fs::set_permissions(place.path(name), PermissionsExt::from_mode(0o600)).unwrap();
}

fn run(place: &Workplace, options: &[&str], words: &[&str]) -> Output {
    place.run(options, &sqlite3(), words)
}

/// The files in the place that have the marker in clear.
fn in_clear(place: &Workplace) -> Vec<PathBuf> {
    let files = std::fs::read_dir(place.path(".")).unwrap().map(|entry| entry.unwrap().path());
    let has = |path: &PathBuf| {
        path.is_file() && contains(&std::fs::read(path).unwrap(), MARKER.as_bytes())
    };
    files.filter(has).collect()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn assert_sealed(place: &Workplace, name: &str, what: &str) {
    assert_eq!(in_clear(place), [] as [PathBuf; 0], "{what}");
    assert!(place.is_sealed(name), "{what}");
    let asked = "PRAGMA integrity_check; SELECT count(*), count(DISTINCT a) FROM t";
    assert_eq!(answer(&run(place, &[], &[name, asked])), "ok\n2000|2000", "{what}");
}

fn assert_refused(place: &Workplace, name: &str, output: &Output, what: &str) {
    assert_eq!(in_clear(place), [] as [PathBuf; 0], "{what}");
    assert!(!output.status.success(), "{what}: {}", text(output));
    assert!(text(output).contains(OPTION), "{what}: {}", text(output));
    // The shell ends without closing its connection: the next one rolls back.
    assert_eq!(answer(&run(place, &[], &[name, "SELECT count(*) FROM sqlite_schema"])), "0");
    let bytes = std::fs::read(place.path(name)).unwrap();
    assert!(bytes.is_empty() || bytes.starts_with(b"Pellucid "), "{what}");
}

/// Words of `sqlite3` by which it makes `copy.db`.
const COPIES: [&[&str]; 16] = [
    &["app.db", "VACUUM INTO 'copy.db'"],
    &["app.db", ".backup copy.db"],
    &["app.db", ".save copy.db"],
    &["app.db", ".clone copy.db"],
    &["app.db", "ATTACH 'copy.db' AS c; CREATE TABLE c.t AS SELECT * FROM t"],
    // The new file is older than the sealed database in the connection.
    &["copy.db", "ATTACH 'app.db' AS s; CREATE TABLE t AS SELECT * FROM s.t"],
    &["copy.db", "SELECT count(*) FROM sqlite_schema; ATTACH 'app.db' AS s; CREATE TABLE t AS SELECT * FROM s.t"],
    &[
        ":memory:",
        "ATTACH 'copy.db' AS c; ATTACH 'app.db' AS s; CREATE TABLE c.t AS SELECT * FROM s.t",
    ],
    // The rows wait in a temporary table, or in memory, until the sealed database is detached.
    &[
        ":memory:",
        "ATTACH 'app.db' AS s; CREATE TEMP TABLE x AS SELECT * FROM s.t; DETACH s; \
         ATTACH 'copy.db' AS c; CREATE TABLE c.t AS SELECT * FROM x",
    ],
    &[
        "copy.db",
        "ATTACH 'app.db' AS s; CREATE TEMP TABLE x AS SELECT * FROM s.t; DETACH s; CREATE TABLE t AS SELECT * FROM x",
    ],
    &[
        ":memory:",
        "ATTACH 'app.db' AS s; CREATE TABLE t AS SELECT * FROM s.t; DETACH s; VACUUM INTO 'copy.db'",
    ],
    // Pages of a database in memory have room for their tails.
    &[":memory:", "ATTACH 'app.db' AS s; CREATE TABLE t AS SELECT * FROM s.t", ".backup copy.db"],
    &[
        ":memory:",
        "ATTACH 'app.db' AS s; CREATE TABLE t AS SELECT * FROM s.t; DETACH s",
        ".save copy.db",
    ],
    // Pages are written before page 1.
    &[
        "app.db",
        "ATTACH 'copy.db' AS c; PRAGMA c.cache_size = 2; PRAGMA c.cache_spill = 2; BEGIN; \
         CREATE TABLE c.t AS SELECT * FROM t; COMMIT",
    ],
    &[
        "app.db",
        "ATTACH 'copy.db' AS c; PRAGMA c.page_size = 16384; CREATE TABLE c.t AS SELECT * FROM t",
    ],
    &["file:app.db?mode=ro", "VACUUM INTO 'copy.db'"],
];

#[test]
fn a_copy_is_sealed() {
    for words in COPIES {
        let place = place();
        let output = run(&place, &[], words);
        let what = format!("{words:?}: {}", text(&output));
        assert!(output.status.success(), "{what}");
        assert_sealed(&place, "copy.db", &what);
        assert_eq!(text(&output).matches("so it is sealed").count(), 1, "{what}");
        let ids = [place.path("app.db"), place.path("copy.db")]
            .map(|path| std::fs::read(path).unwrap()[16384..].to_vec());
        assert_ne!(ids[0], ids[1], "{what}: under one key");
    }
}

#[test]
fn asked_for_plain_copies_the_same_copies_are_plain() {
    for words in COPIES {
        let place = place();
        let output = run(&place, &[OPTION], words);
        assert!(output.status.success(), "{words:?}: {}", text(&output));
        assert_eq!(in_clear(&place), [place.path("./copy.db")], "{words:?}");
    }
    let place = place();
    for (name, words) in [
        ("target.db", ["app.db", "VACUUM INTO 'file:target.db?plain_copies=1'"]),
        ("source.db", ["file:app.db?plain_copies=1", "VACUUM INTO 'source.db'"]),
        // The shim is not asked there.
        ("unix.db", ["app.db", "VACUUM INTO 'file:unix.db?vfs=unix'"]),
    ] {
        answer(&run(&place, &[], &words));
        assert!(!place.is_sealed(name), "{name}");
    }
}

#[test]
fn a_copy_is_sealed_in_every_journal_mode() {
    for mode in ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "OFF", "WAL"] {
        let place = place();
        let statements = format!(
            "ATTACH 'copy.db' AS c; PRAGMA c.journal_mode = {mode}; PRAGMA c.cache_size = 2;
             CREATE TABLE c.t AS SELECT * FROM t"
        );
        let output = run(&place, &[], &["app.db", &statements]);
        assert_sealed(&place, "copy.db", &format!("{mode}: {}", text(&output)));
    }
}

/// What cannot be sealed has no page afterwards.
#[test]
fn a_copy_that_cannot_be_sealed_is_refused() {
    let spill = "PRAGMA cache_size = 2; BEGIN; CREATE TABLE t(a); \
                 WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000) \
                 INSERT INTO t SELECT 'filler' || n FROM c; \
                 ATTACH 'app.db' AS s; INSERT INTO t SELECT a FROM s.t; COMMIT";
    let rows: [&[&str]; 4] = [
        // SQLite has fixed the reserved bytes in a transaction that was rolled back.
        &["copy.db", "BEGIN; CREATE TABLE x(a); ROLLBACK; ATTACH 'app.db' AS s; CREATE TABLE t AS SELECT * FROM s.t"],
        // The first transaction began in clear.
        &["copy.db", "BEGIN; CREATE TABLE t(a); ATTACH 'app.db' AS s; INSERT INTO t SELECT a FROM s.t; COMMIT"],
        &["copy.db", spill],
        // No lock is taken at which it could be decided.
        &["app.db", "ATTACH 'file:copy.db?nolock=1' AS c; CREATE TABLE c.t AS SELECT * FROM t"],
    ];
    for words in rows {
        let place = place();
        let output = run(&place, &[], words);
        assert_refused(&place, "copy.db", &output, &format!("{words:?}"));
    }
}

#[test]
fn of_databases_with_different_keys_the_main_one_decides() {
    let place = place();
    let made = place.pellucid(&["cert", "create", "other"]).output().unwrap();
    assert!(made.status.success(), "{}", text(&made));
    sealed(&place, "other.db", &["--certificate", "other"]);
    let copy = |main: &str, attached: &[&str], name: &str| {
        let attach = |(n, name): (usize, &&str)| format!("ATTACH '{name}' AS s{n};");
        let attached: String = attached.iter().enumerate().map(attach).collect();
        let fill =
            format!("{attached} ATTACH '{name}' AS c; CREATE TABLE c.t AS SELECT * FROM s0.t");
        run(&place, &[], &[main, &fill])
    };
    let certificate = |name: &str| {
        let output = place.pellucid(&["protector", "list", name]).output().unwrap();
        text(&output)
    };
    assert_refused(&place, "1.db", &copy(":memory:", &["app.db", "other.db"], "1.db"), "no main");
    copy("other.db", &["app.db"], "2.db");
    assert_sealed(&place, "2.db", "other.db is main");
    assert!(certificate("2.db").contains("`other`"), "{}", certificate("2.db"));
    copy("app.db", &["other.db"], "3.db");
    assert_sealed(&place, "3.db", "app.db is main");
    assert!(certificate("3.db").contains("`pellucid`"), "{}", certificate("3.db"));
    // Of one kind: it does not matter which.
    sealed(&place, "like.db", &[]);
    copy(":memory:", &["app.db", "like.db"], "4.db");
    assert_sealed(&place, "4.db", "the same certificate");
}

#[test]
fn plain_databases_beside_a_sealed_one_go_on() {
    let place = place();
    let plain = place.command(sqlite3()).args(["plain.db", "CREATE TABLE u(a)"]).status().unwrap();
    assert!(plain.success());
    let insert = "ATTACH 'app.db' AS s; INSERT INTO u VALUES (1)";
    answer(&run(&place, &[], &["plain.db", insert]));
    assert_eq!(answer(&run(&place, &[], &["plain.db", "VACUUM; SELECT * FROM u"])), "1");
    // Where no sealed database is open, a new one is plain as before.
    answer(&run(&place, &[], &["new.db", "CREATE TABLE u(a); SELECT 'made'"]));
    for name in ["plain.db", "new.db"] {
        assert!(!place.is_sealed(name), "{name}");
    }
}

/// Over a database with reserved bytes, too, as a plain copy of before has them.
#[test]
fn a_sealed_database_is_not_copied_over_a_plain_one() {
    let place = place();
    let plain = place.command(sqlite3()).args(["plain.db", "CREATE TABLE u(a)"]).status().unwrap();
    assert!(plain.success());
    answer(&run(&place, &[OPTION], &["app.db", ".backup before.db"]));
    let emptied = "DELETE FROM t; VACUUM; CREATE TABLE u(a)";
    answer(&run(&place, &[], &["before.db", emptied]));
    for name in ["plain.db", "before.db"] {
        let wal = format!("{name}.wal");
        std::fs::copy(place.path(name), place.path(&wal)).unwrap();
        answer(&run(&place, &[], &[&wal, "PRAGMA journal_mode = WAL"]));
    }
    for name in ["plain.db", "before.db", "plain.db.wal", "before.db.wal"] {
        let back_up = format!(".backup {name}");
        let output = run(&place, &[], &["app.db", &back_up]);
        assert!(!output.status.success() && text(&output).contains(OPTION), "{}", text(&output));
        assert_eq!(in_clear(&place), [] as [PathBuf; 0], "{name}");
        // It goes on, beside a sealed one.
        let ways = [
            "INSERT INTO u VALUES (1)",
            "BEGIN EXCLUSIVE; INSERT INTO u VALUES (2); COMMIT",
            "VACUUM",
        ];
        for way in ways {
            let both = format!("ATTACH 'app.db' AS s; {way}; SELECT 'done'");
            assert_eq!(answer(&run(&place, &[], &[name, &both])), "done", "{name}: {way}");
        }
        assert_eq!(answer(&run(&place, &[], &[name, "SELECT count(*) FROM u"])), "2");
        // A plain database is copied over it.
        let script = format!(
            "import sqlite3
s = sqlite3.connect('app.db'); s.execute('SELECT * FROM t').fetchone()
p = sqlite3.connect('other.db'); c = sqlite3.connect('{name}'); p.backup(c); print(*c.execute('SELECT * FROM w'))"
        );
        let fill = "CREATE TABLE IF NOT EXISTS w AS SELECT 3 AS a";
        assert!(place.command(sqlite3()).args(["other.db", fill]).status().unwrap().success());
        assert_eq!(answer(&place.run(&[], &python(), &["-c", &script])), "(3,)", "{name}");
        answer(&run(&place, &[OPTION], &["app.db", &back_up]));
        assert!(!place.is_sealed(name), "{name}");
        std::fs::remove_file(place.path(name)).unwrap();
    }
}

#[test]
fn the_other_options_go_on() {
    for option in ["--encrypt-new", "--require-sealed"] {
        for words in [["app.db", "VACUUM INTO 'copy.db'"], ["app.db", ".backup copy.db"]] {
            let place = place();
            let output = run(&place, &[option], &words);
            assert_sealed(&place, "copy.db", &format!("{option} {words:?}: {}", text(&output)));
        }
        let both = place().pellucid(&["run", option, OPTION, "--", "true"]).output().unwrap();
        assert_eq!(both.status.code(), Some(2), "{}", text(&both));
    }
}

/// A protector whose key is not at hand is left out of the copy, and the line says so. Where there is no other, there is
/// no copy.
#[test]
fn protectors_without_their_key_are_left_out() {
    let place = Workplace::new();
    secret(&place, "pass", "a long enough passphrase");
    secret(&place, "more", "another long passphrase");
    sealed(&place, "app.db", &["--passphrase-file", "pass"]);
    let added = [
        "protector",
        "add",
        "app.db",
        "--passphrase-file",
        "pass",
        "--new-passphrase-file",
        "more",
    ];
    let added = place.pellucid(&added).output().unwrap();
    assert!(added.status.success(), "{}", text(&added));
    let copy = |variables: &[(&str, &str)], words: &[&str]| {
        let mut command = place.pellucid(&["run", "--", "sqlite3"]);
        command.args(words).envs(variables.iter().copied()).output().unwrap()
    };
    let key = [("PELLUCID_PASSPHRASE_FILE", "more")];
    let output = copy(&key, &["app.db", "VACUUM INTO 'copy.db'"]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("left out: protector 1"), "{}", text(&output));
    let count = copy(&key, &["copy.db", "SELECT count(*) FROM t"]);
    assert!(String::from_utf8_lossy(&count.stdout).starts_with("2000"), "{}", text(&count));
    assert_eq!(in_clear(&place), [] as [PathBuf; 0]);
}

/// The keyring is gone, and the program has the database still open.
#[test]
fn without_its_certificate_a_copy_is_refused_and_a_plain_one_is_made() {
    let place = place();
    let copy = |name: &str| {
        format!(
            "import os, sqlite3
c = sqlite3.connect('file:app.db', uri=True); c.execute('SELECT * FROM t').fetchone()
os.path.exists('instance') and os.rename('instance', 'gone')
c.execute(\"VACUUM INTO '{name}'\")"
        )
    };
    let output = place.run(&[], &python(), &["-c", &copy("copy.db")]);
    assert!(!output.status.success(), "{}", text(&output));
    for part in ["no protector of", "plain_copies=1", OPTION] {
        assert!(text(&output).contains(part), "{}", text(&output));
    }
    assert_eq!(in_clear(&place), [] as [PathBuf; 0]);
    std::fs::rename(place.path("gone"), place.path("instance")).unwrap();
    answer(&place.run(&[], &python(), &["-c", &copy("file:plain.db?plain_copies=1")]));
    assert!(!place.is_sealed("plain.db"));
}

#[test]
fn a_copy_of_a_database_whose_encryption_is_switched_off_is_plain() {
    let place = place();
    let output = place.pellucid(&["decrypt", "--keep-container", "app.db"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    answer(&run(&place, &[], &["app.db", "VACUUM INTO 'copy.db'"]));
    assert!(!place.is_sealed("copy.db"));
}

/// Rows of Python: its backup interface, two connections, a shared cache.
#[test]
fn a_copy_made_by_python_is_sealed() {
    let rows = [
        "s = sqlite3.connect('app.db'); c = sqlite3.connect('copy.db'); s.backup(c)",
        "c = sqlite3.connect('copy.db'); s = sqlite3.connect('app.db'); s.backup(c, pages=3)",
        "c = sqlite3.connect('copy.db'); c.execute('SELECT * FROM sqlite_schema').fetchall()
s = sqlite3.connect('app.db'); s.backup(c)",
        "s = sqlite3.connect('file:app.db?cache=shared', uri=True)
c = sqlite3.connect('file:copy.db?cache=shared', uri=True)
d = sqlite3.connect('file:copy.db?cache=shared', uri=True); d.close(); s.backup(c)",
        // Rows that the program carries over itself.
        "s = sqlite3.connect('app.db'); c = sqlite3.connect('copy.db')
c.execute('CREATE TABLE t(a)'); c.executemany('INSERT INTO t VALUES(?)', s.execute('SELECT a FROM t')); c.commit()",
        // Into a file that was opened before, by a thread of its own.
        "import threading
c = sqlite3.connect('copy.db', check_same_thread=False); s = sqlite3.connect('app.db', check_same_thread=False)
t = threading.Thread(target=lambda: s.backup(c)); t.start(); t.join()",
    ];
    for row in rows {
        let place = place();
        let script = format!("import sqlite3\n{row}\ns.close(); c.close()");
        let output = place.run(&[], &python(), &["-c", &script]);
        let what = format!("{row}: {}", text(&output));
        assert!(output.status.success(), "{what}");
        assert_sealed(&place, "copy.db", &what);
    }
}

#[test]
fn the_python_package_makes_sealed_databases_and_copies() {
    let place = place();
    secret(&place, "pass", "a long enough passphrase");
    let fill = "c.execute('CREATE TABLE t(a)'); c.execute('INSERT INTO t VALUES(1)'); c.commit(); c.close()";
    for (name, script) in [
        ("new.db", format!("c = pellucid.connect('new.db'); {fill}")),
        ("key.db", format!("c = pellucid.connect('key.db', passphrase_file='pass'); {fill}")),
        ("backup.db", "pellucid.connect('app.db').backup(pellucid.connect('backup.db'))".into()),
        ("other.db", "pellucid.connect('app.db').backup(sqlite3.connect('other.db'))".into()),
        ("into.db", "pellucid.connect('app.db').execute(\"VACUUM INTO 'into.db'\")".into()),
        // Like the database that is open, not under the keyring's default certificate.
        (
            "like.db",
            "pellucid.connect('key.db', passphrase_file='pass').backup(pellucid.connect('like.db'))".into(),
        ),
        // Nothing is open any more when it gets its first page.
        (
            "later.db",
            format!("s = pellucid.connect('app.db'); c = pellucid.connect('later.db'); s.close(); {fill}"),
        ),
    ] {
        let output = wheel(&place, &script);
        assert!(output.status.success(), "{name}: {}", text(&output));
        assert!(place.is_sealed(name), "{name}");
        assert_eq!(in_clear(&place), [] as [PathBuf; 0], "{name}");
    }
    let listed = place.pellucid(&["protector", "list", "like.db"]).output().unwrap();
    assert!(text(&listed).contains("passphrase"), "{}", text(&listed));
    for (name, script) in [
        ("plain.db", format!("c = pellucid.connect('plain.db', plain_copies=True); {fill}")),
        (
            "copy.db",
            "pellucid.connect('app.db', plain_copies=True).execute(\"VACUUM INTO 'copy.db'\")"
                .into(),
        ),
    ] {
        let output = wheel(&place, &script);
        assert!(output.status.success(), "{name}: {}", text(&output));
        assert!(!place.is_sealed(name), "{name}");
    }
    // A plain database that is there stays one.
    let script =
        "c = pellucid.connect('plain.db'); c.execute('INSERT INTO t VALUES(2)'); c.commit()";
    assert!(wheel(&place, script).status.success());
    assert!(!place.is_sealed("plain.db"));
}

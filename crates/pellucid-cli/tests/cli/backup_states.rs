//! Goal: what `backup` makes without a warning and `verify` calls valid is what `restore` gives back, in every state that a
//! database or a set can be in.
//!
//! Method: a table of states of a database, plain and sealed, and one of sets. Of each state a backup is made, verified in three
//! depths and restored; the exit statuses are those of the table, 0 where it names none, and what is restored has the dump of what
//! was backed up.

use std::path::Path;

use crate::support::{edit, said, Place, Said};

pub const ROWS: &str = "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
    INSERT INTO t SELECT i, printf('row %d %s', i, hex(zeroblob(60))) FROM n;";

/// Exit statuses of `backup`, `verify` with and without `--open`, `verify --check`, `restore`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codes {
    pub backup: i32,
    pub verify: i32,
    pub check: i32,
    pub restore: i32,
}

const FINE: Codes = Codes { backup: 0, verify: 0, check: 0, restore: 0 };
/// SQLite finds in it what was there before: the set has what the database had.
const AS_BAD_AS_IT_WAS: Codes = Codes { check: 3, ..FINE };

/// The states of a database: a name, what the shell makes it with before and behind the rows, and what comes of it.
pub const STATES: [(&str, &str, &str, Codes); 40] = [
    ("nothing special", "", "", FINE),
    ("page size 512", "PRAGMA page_size = 512;", "", FINE),
    ("page size 1024", "PRAGMA page_size = 1024;", "", FINE),
    ("page size 2048", "PRAGMA page_size = 2048;", "", FINE),
    ("page size 8192", "PRAGMA page_size = 8192;", "", FINE),
    ("page size 16384", "PRAGMA page_size = 16384;", "", FINE),
    ("page size 32768", "PRAGMA page_size = 32768;", "", FINE),
    ("page size 65536", "PRAGMA page_size = 65536;", "", FINE),
    ("auto_vacuum full", "PRAGMA auto_vacuum = 1;", "", FINE),
    ("auto_vacuum incremental", "PRAGMA auto_vacuum = 2;", "DELETE FROM t WHERE a < 250;", FINE),
    ("free pages", "", "DELETE FROM t WHERE a < 299;", FINE),
    ("UTF-16le", "PRAGMA encoding = 'UTF-16le';", "", FINE),
    ("UTF-16be", "PRAGMA encoding = 'UTF-16be';", "", FINE),
    ("legacy format", "PRAGMA legacy_file_format = 1;", "", FINE),
    ("WAL", "PRAGMA journal_mode = WAL;", "", FINE),
    ("persistent journal", "PRAGMA journal_mode = PERSIST;", "", FINE),
    ("schema alone", "", "DELETE FROM t; VACUUM;", FINE),
    ("no table", "", "DROP TABLE t; VACUUM;", FINE),
    ("application id", "", "PRAGMA application_id = 0x47504B47; PRAGMA user_version = -7;", FINE),
    ("WITHOUT ROWID", "", "CREATE TABLE w(a TEXT, b, PRIMARY KEY(a, b)) WITHOUT ROWID; INSERT INTO w SELECT b, a FROM t;", FINE),
    ("STRICT and generated", "", "CREATE TABLE s(a INT, b INT AS (a * 2) STORED, c TEXT AS (a || 'x')) STRICT; INSERT INTO s SELECT a FROM t;", FINE),
    ("full-text search 5", "", "CREATE VIRTUAL TABLE f USING fts5(b); INSERT INTO f SELECT b FROM t;", FINE),
    ("full-text search 4", "", "CREATE VIRTUAL TABLE f USING fts4(b); INSERT INTO f SELECT b FROM t;", FINE),
    ("R-tree", "", "CREATE VIRTUAL TABLE r USING rtree(i, x, y); INSERT INTO r SELECT a, a, a + 1 FROM t;", FINE),
    ("views and triggers", "", "CREATE VIEW v AS SELECT b FROM t; CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM t WHERE a = 1; END;", FINE),
    ("names with signs", "", "CREATE TABLE \"a'\"\"; %?#\n-\"(\"x y\" TEXT); INSERT INTO \"a'\"\"; %?#\n-\" VALUES ('z');", FINE),
    ("collation and function of the application", "", "CREATE TABLE o(a TEXT COLLATE odd UNIQUE, b CHECK (odd(b) > 0)); INSERT INTO o SELECT b, a FROM t; CREATE INDEX o2 ON o(odd(b));", FINE),
    ("statistics", "", "CREATE INDEX i ON t(b); ANALYZE;", FINE),
    ("a foreign key without its parent", "", "CREATE TABLE c(p REFERENCES t(a)); INSERT INTO c VALUES (7777);", FINE),
    ("a row against a CHECK", "", "CREATE TABLE c(x CHECK (x > 0)); PRAGMA ignore_check_constraints = 1; INSERT INTO c VALUES (-1);", AS_BAD_AS_IT_WAS),
    ("an index that lies", "", "CREATE TABLE c(x, y); CREATE INDEX i ON c(x); INSERT INTO c SELECT a, -a FROM t; PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = 'CREATE INDEX i ON c(y)' WHERE name = 'i';", AS_BAD_AS_IT_WAS),
    ("0 reserved bytes", ".filectrl reserve_bytes 0\n", "VACUUM;", FINE),
    ("1 reserved byte", ".filectrl reserve_bytes 1\n", "VACUUM;", FINE),
    ("8 reserved bytes", ".filectrl reserve_bytes 8\n", "VACUUM;", FINE),
    ("12 reserved bytes", ".filectrl reserve_bytes 12\n", "VACUUM;", FINE),
    ("31 reserved bytes", ".filectrl reserve_bytes 31\n", "VACUUM;", FINE),
    ("32 reserved bytes", ".filectrl reserve_bytes 32\n", "VACUUM;", FINE),
    ("33 reserved bytes", ".filectrl reserve_bytes 33\n", "VACUUM;", FINE),
    ("64 reserved bytes", ".filectrl reserve_bytes 64\n", "VACUUM;", FINE),
    ("255 reserved bytes", ".filectrl reserve_bytes 255\n", "VACUUM;", FINE),
];

/// A place with the extension that the schema of some states needs.
pub fn place() -> Place {
    let place = Place::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/odd.c");
    place.compile_library(&source, "odd.so");
    place
}

/// A dump through the shim. A sealed database has reserved bytes that a plain one of the same content has not, so that no page
/// is compared.
pub fn dump(place: &Place, name: &str) -> String {
    let load = place.path("odd.so");
    let mut command = place.command(crate::support::PELLUCID);
    command
        .args(["run", "--", "sqlite3", "-batch", "-cmd"])
        .arg(format!(".load {}", load.display()));
    let facts = "PRAGMA page_size; PRAGMA encoding; PRAGMA auto_vacuum; PRAGMA application_id; PRAGMA user_version;";
    said(command.args([name, facts, ".dump"])).succeeded()
}

fn backup(place: &Place, more: &[&str]) -> Said {
    place.pellucid(&[&["backup", "app.db", "--to", "app.bak"], more].concat())
}

/// Verifies a set in three depths and restores it. `more` is what both take besides the medium.
fn told(place: &Place, media: &[&str], more: &[&str]) -> Vec<(&'static str, Said)> {
    let load = ["--check", "--load", "./odd.so"];
    let mut told = Vec::new();
    for (name, words) in
        [("verify", &[][..]), ("verify --open", &["--open"]), ("verify --check", &load)]
    {
        told.push((name, place.pellucid(&[&["verify"], media, words, more].concat())));
    }
    told.push((
        "restore",
        place.pellucid(&[&["restore"], media, &["--to", "back.db"], more].concat()),
    ));
    told
}

fn are(what: &str, codes: Codes, told: &[(&'static str, Said)]) {
    let wanted = [codes.verify, codes.verify, codes.check, codes.restore];
    for ((name, said), wanted) in told.iter().zip(wanted) {
        assert_eq!(said.code, wanted, "{what}: {name}: {said:?}");
    }
}

#[test]
fn whatever_a_database_is_like_what_is_called_valid_is_restored() {
    for (state, before, behind, codes) in STATES {
        for sealed in [false, true] {
            let (what, place) = (format!("{state}, sealed: {sealed}"), place());
            let script = format!(".load ./odd\n{before}\n{ROWS}\n{behind}\n");
            let mut shell = place.command("/usr/bin/sqlite3");
            let made = crate::support::said_with(shell.args(["-batch", "app.db"]), &script);
            assert!(made.code == 0 && made.stderr.is_empty(), "{what}: {made:?}");
            if sealed {
                let done = place.pellucid(&["encrypt", "app.db", "--load", "./odd.so"]);
                // What SQLite cannot copy is refused, and the plain one has its turn above.
                if codes.check != 0 && done.code != 0 {
                    continue;
                }
                assert_eq!(done.code, 0, "{what}: {done:?}");
            }
            let made = backup(&place, &[]);
            assert_eq!(made.code, codes.backup, "{what}: {made:?}");
            are(&what, codes, &told(&place, &["app.bak"], &[]));
            assert_eq!(dump(&place, "back.db"), dump(&place, "app.db"), "{what}");
        }
    }
}

/// The words of a set: its media, then what `verify` and `restore` take besides.
type Set = (Vec<&'static str>, Vec<&'static str>);

const fn codes(backup: i32, verify: i32, check: i32, restore: i32) -> Codes {
    Codes { backup, verify, check, restore }
}

fn one(place: &Place, more: &[&str]) -> (i32, Set) {
    (backup(place, more).code, (vec!["app.bak"], vec![]))
}

fn change(place: &Place, row: u32) {
    let sql = format!("UPDATE t SET b = 'changed' WHERE a = {row}");
    place.pellucid(&["run", "--", "sqlite3", "app.db", &sql]).succeeded();
}

/// A damaged page of the rows, of a database that is sealed or not.
fn damage(place: &Place) {
    edit(&place.path("app.db"), |bytes| {
        let at = bytes.len() - 4096 - 2000;
        bytes[at] ^= 1;
    });
}

/// What is done to a sealed database, and how it is backed up.
type Make = fn(&Place) -> (i32, Set);

const SETS: [(&str, Codes, Make); 31] = [
    ("as it is", FINE, |place| one(place, &[])),
    ("not compressed", FINE, |place| one(place, &["--compression", "none"])),
    ("LZ4", FINE, |place| one(place, &["--compression", "lz4"])),
    ("zstd at 22", FINE, |place| one(place, &["--compression", "zstd:22"])),
    ("AES_128", FINE, |place| one(place, &["--algorithm", "AES_128"])),
    ("TRIPLE_DES_3KEY", FINE, |place| one(place, &["--algorithm", "TRIPLE_DES_3KEY"])),
    ("copy-only", FINE, |place| one(place, &["--copy-only"])),
    ("expired", FINE, |place| one(place, &["--expires", "2001-01-01"])),
    ("not expired", FINE, |place| one(place, &["--retain-days", "99999"])),
    ("a name of 128 letters and a description of 255", FINE, |place| {
        let (name, text) = ("\u{e4}".repeat(128), "\u{e4}".repeat(255));
        let words = [
            "--name",
            &name,
            "--description",
            &text,
            "--media-name",
            &name,
            "--media-description",
            &text,
        ];
        one(place, &words)
    }),
    ("striped over four", FINE, |place| {
        let media = vec!["1.bak", "2.bak", "3.bak", "4.bak"];
        let made = place.pellucid(&[&["backup", "app.db", "--to"], &media[..]].concat());
        (made.code, (media, vec![]))
    }),
    ("striped, a stripe missing", codes(0, 1, 1, 1), |place| {
        let made = place.pellucid(&["backup", "app.db", "--to", "1.bak", "2.bak"]);
        (made.code, (vec!["2.bak"], vec![]))
    }),
    ("the mirror alone", FINE, |place| {
        let made = place.pellucid(&["backup", "app.db", "--to", "1.bak", "--mirror", "2.bak"]);
        std::fs::remove_file(place.path("1.bak")).unwrap();
        (made.code, (vec!["2.bak"], vec![]))
    }),
    ("a differential beside its full set", FINE, |place| {
        backup(place, &[]);
        change(place, 7);
        let made = backup(place, &["--append", "--differential"]);
        (made.code, (vec!["app.bak"], vec![]))
    }),
    ("a differential with its full set elsewhere", FINE, |place| {
        place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
        change(place, 7);
        let made = backup(place, &["--differential", "--base", "full.bak"]);
        (made.code, (vec!["app.bak"], vec!["--base", "full.bak"]))
    }),
    // `verify` says of it that it needs the full set.
    ("a differential without its full set", codes(0, 0, 1, 1), |place| {
        place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
        change(place, 7);
        let made = backup(place, &["--differential", "--base", "full.bak"]);
        (made.code, (vec!["app.bak"], vec![]))
    }),
    ("an empty differential", FINE, |place| {
        backup(place, &[]);
        let made = backup(place, &["--append", "--differential"]);
        (made.code, (vec!["app.bak"], vec![]))
    }),
    ("the last of three", FINE, |place| {
        backup(place, &[]);
        change(place, 1);
        backup(place, &["--append"]);
        change(place, 2);
        one(place, &["--append"])
    }),
    ("the first of two", FINE, |place| {
        let first = backup(place, &[]);
        backup(place, &["--append"]).succeeded();
        (first.code, (vec!["app.bak"], vec!["--position", "1"]))
    }),
    ("an uncheckpointed log", FINE, |place| {
        let sql = "PRAGMA journal_mode = WAL";
        place.pellucid(&["run", "--", "sqlite3", "app.db", sql]).succeeded();
        let kept = ".dbconfig no_ckpt_on_close on\nUPDATE t SET b = 'in the log';\n";
        let mut shell = place.command(crate::support::PELLUCID);
        crate::support::said_with(shell.args(["run", "--", "sqlite3", "-batch", "app.db"]), kept)
            .succeeded();
        assert!(std::fs::metadata(place.path("app.db-wal")).unwrap().len() > 4096);
        one(place, &[])
    }),
    ("switched off", FINE, |place| {
        place.pellucid(&["decrypt", "app.db", "--keep-container"]).succeeded();
        one(place, &[])
    }),
    ("switched off and on", FINE, |place| {
        place.pellucid(&["decrypt", "app.db", "--keep-container"]).succeeded();
        place.pellucid(&["encrypt", "app.db"]).succeeded();
        one(place, &[])
    }),
    ("rekeyed", FINE, |place| {
        place.pellucid(&["rekey", "app.db"]).succeeded();
        one(place, &[])
    }),
    ("amid a rekey that a damaged page has ended", FINE, |place| {
        damage(place);
        assert_eq!(place.pellucid(&["rekey", "app.db"]).code, 3);
        damage(place);
        one(place, &[])
    }),
    ("a suspended scan", FINE, |place| {
        damage(place);
        assert_eq!(place.pellucid(&["decrypt", "app.db", "--keep-container"]).code, 3);
        damage(place);
        place.pellucid(&["scan", "suspend", "app.db"]);
        one(place, &[])
    }),
    ("a damaged page", codes(3, 1, 1, 1), |place| {
        damage(place);
        one(place, &[])
    }),
    ("a damaged page, all the same", codes(3, 3, 3, 3), |place| {
        damage(place);
        one(place, &["--continue-after-error"])
    }),
    ("the backup of a restored database", FINE, |place| {
        place.pellucid(&["backup", "app.db", "--to", "1.bak"]).succeeded();
        place.pellucid(&["restore", "1.bak", "--to", "app.db", "--replace"]).succeeded();
        one(place, &[])
    }),
    // Without the key it is only known that it is as it was written, and `verify` says so.
    ("another instance's certificate", codes(0, 0, 1, 1), |place| {
        let made = backup(place, &[]);
        std::fs::remove_dir_all(place.path("keys")).unwrap();
        (made.code, (vec!["app.bak"], vec![]))
    }),
    ("a plain database, sealed for a certificate", FINE, |place| {
        place.pellucid(&["decrypt", "app.db"]).succeeded();
        one(place, &["--certificate", "pellucid"])
    }),
    ("a read-only file", FINE, |place| {
        let mut mode = std::fs::metadata(place.path("app.db")).unwrap().permissions();
        mode.set_readonly(true);
        std::fs::set_permissions(place.path("app.db"), mode).unwrap();
        one(place, &[])
    }),
];

#[test]
fn whatever_a_set_is_like_what_is_called_valid_is_restored() {
    let mut wrong = Vec::new();
    for (state, codes, make) in SETS {
        let place = place();
        place.sqlite3("app.db", ROWS).succeeded();
        place.pellucid(&["encrypt", "app.db"]).succeeded();
        let (made, (media, more)) = make(&place);
        let told = told(&place, &media, &more);
        let found: Vec<_> = told.iter().map(|(_, said)| said.code).collect();
        // Without the key nothing is opened.
        let opened = if state.contains("instance") { codes.check } else { codes.verify };
        if made != codes.backup || found != [codes.verify, opened, codes.check, codes.restore] {
            wrong.push(format!("{state}: {made}, {told:#?}"));
        }
        let is_last = !more.contains(&"--position") && !state.contains("damaged page,");
        if codes.restore == 0 && is_last && place.path("back.db").exists() {
            assert_eq!(dump(&place, "back.db"), dump(&place, "app.db"), "{state}");
        }
        if codes.verify == 0 && codes.restore != 0 {
            let note = told[0].1.stdout.contains("full backup")
                || told[0].1.stdout.contains("Without the key");
            assert!(note, "{state}: `verify` says nothing of it: {told:#?}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is done to the bytes of a plain database of pages of 4096 bytes.
type Damage = fn(&mut Vec<u8>);

/// Files that SQLite itself does not, or hardly, take for a database: either `backup` says so, or they come back as they are.
const ODD_FILES: [(&str, Damage); 9] = [
    ("empty", |bytes| bytes.clear()),
    ("a page behind the end", |bytes| bytes.resize(bytes.len() + 4096, 0)),
    ("bytes behind the end", |bytes| bytes.resize(bytes.len() + 100, 7)),
    ("the last page missing", |bytes| bytes.truncate(bytes.len() - 4096)),
    ("the last page cut", |bytes| bytes.truncate(bytes.len() - 100)),
    ("a file format of the future", |bytes| bytes[18..20].fill(3)),
    ("a schema format of the future", |bytes| bytes[47] = 9),
    ("another magic", |bytes| bytes[0] ^= 1),
    ("a page of noise", |bytes| {
        let end = bytes.len() - 4096;
        bytes[end - 4096..end].fill(0xa5);
    }),
];

#[test]
fn an_odd_file_is_refused_by_backup_or_comes_back_as_it_is() {
    for (state, damage) in ODD_FILES {
        let place = place();
        place.sqlite3("app.db", ROWS).succeeded();
        edit(&place.path("app.db"), damage);
        let before = std::fs::read(place.path("app.db")).unwrap();
        let made = backup(&place, &[]);
        println!(
            "{state}: backup {}: {}",
            made.code,
            made.stderr.lines().next().unwrap_or_default()
        );
        if made.code != 0 {
            assert!(
                !made.stderr.is_empty() && !place.path("app.bak").exists(),
                "{state}: {made:?}"
            );
            continue;
        }
        let told = told(&place, &["app.bak"], &[]);
        assert_ne!(told[2].1.code, 1, "damage is exit 3: {told:#?}");
        println!("{state}: {:?}", told.iter().map(|(_, said)| said.code).collect::<Vec<_>>());
        let (verified, restored) = (&told[0].1, &told[3].1);
        assert_eq!(verified.code, 0, "{state}: {told:#?}");
        assert_eq!(restored.code, 0, "{state}: {told:#?}");
        let after = std::fs::read(place.path("back.db")).unwrap();
        let pages = before.len() / 4096 * 4096;
        assert_eq!(after.len() / 4096, pages.min(after.len()) / 4096, "{state}");
        // The change counter is a new one.
        assert_eq!(after.get(100..), before.get(100..after.len()), "{state}");
    }
}

#[test]
fn a_check_of_a_backup_leaves_nothing_that_is_expected_anywhere() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    let before = place.pellucid(&["--json", "status"]).succeeded();
    place.pellucid(&["verify", "--check", "app.bak"]).succeeded();
    assert_eq!(place.pellucid(&["--json", "status"]).succeeded(), before);
    let told = place.pellucid(&["doctor"]);
    assert!(!told.stdout.contains("image.db"), "{told:?}");
}

//! Goal: one damaged page does not cost the rest. `salvage` writes every row that does not lie on it into a new database,
//! says what is lost and with which exit status, and never changes the damaged one.
//!
//! Method: a generated database is damaged page by page, and stock Python compares what is in the new one with the
//! original, row by row. Which row lies on which page is found by a walk of Python's own over the plain original
//! (salvage/rows.py); the sealed one, made page by page through SQLite's backup, has the same pages.
//! `SALVAGE_BYTES` makes the large test larger.

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::support::{edit, said, Place, Said, PELLUCID};

const REGION: u64 = 16384;
const KEY: [&str; 2] = ["--key-file", "right.key"];
const ROWS: &str = include_str!("salvage/rows.py");

/// A sealed database and the plain one it was made of, with pages of the same content at the same places.
struct Bench {
    place: Place,
    page_bytes: u64,
}

impl Bench {
    /// `sql` makes a plain database with 32 reserved bytes a page, which is then sealed page by page.
    fn new(make: impl FnOnce(&Place)) -> Self {
        let place = Place::new();
        place.secret("right.key", &[7; 32]);
        make(&place);
        let script = "import sqlite3\n\
            source = sqlite3.connect('plain.db')\n\
            target = sqlite3.connect('file:app.db?vfs=pellucid&key_file=right.key', uri=True)\n\
            source.backup(target)";
        let mut run = place.command(PELLUCID);
        said(run.args(["run", "--", "/usr/bin/python3", "-c", script])).succeeded();
        let size = place.sqlite3("plain.db", "PRAGMA page_size").succeeded();
        Self { place, page_bytes: size.trim().parse().unwrap() }
    }

    fn sql(sql: &str) -> Self {
        Self::new(|place| reserved(place, sql))
    }

    fn damage(&self, pages: &[u32]) {
        let file = std::fs::OpenOptions::new().write(true).open(self.place.path("app.db")).unwrap();
        for page in pages {
            let at = REGION + u64::from(page - 1) * self.page_bytes + 100;
            file.write_all_at(b"a bad spot", at).unwrap();
        }
    }

    fn salvage(&self) -> (Said, serde_json::Value) {
        let before = std::fs::read(self.place.path("app.db")).unwrap();
        let _ = std::fs::remove_file(self.place.path("new.db"));
        let asked = [&["--json", "salvage", "app.db", "--to", "new.db"], &KEY[..]].concat();
        let told = self.place.pellucid(&asked);
        assert!(before == std::fs::read(self.place.path("app.db")).unwrap(), "it was changed");
        let facts = serde_json::from_str(&told.stdout).unwrap_or_default();
        (told, facts)
    }

    /// Runs SQL over the new database, after its own check has found nothing.
    fn new_db(&self, sql: &str) -> String {
        let run = |sql: &str| {
            let mut run = self.place.command(PELLUCID);
            run.env("PELLUCID_KEY_FILE", "right.key");
            said(run.args(["run", "--", "sqlite3", "-batch", "new.db", sql])).succeeded()
        };
        assert_eq!(run("PRAGMA integrity_check").trim(), "ok");
        run(sql)
    }

    /// Compares old and new: of rows with a part on one of the pages all may be missing, of others none, and none
    /// may differ. Returns what Python counted.
    fn compare(&self, damaged: &[u32]) -> serde_json::Value {
        let pages: Vec<String> = damaged.iter().map(u32::to_string).collect();
        let mut run = self.place.command(PELLUCID);
        run.env("PELLUCID_KEY_FILE", "right.key");
        run.args(["run", "--", "/usr/bin/python3", "-c", ROWS, "plain.db", "new.db"]);
        let told = said(run.arg(pages.join(",")));
        assert_eq!(told.code, 0, "{told:?}");
        serde_json::from_str(&told.stdout).unwrap()
    }

    /// Pages by what they are: `dbstat`'s words.
    fn pages(&self, name: &str, kind: &str) -> Vec<u32> {
        let sql = format!(
            "SELECT pageno FROM dbstat WHERE name = '{name}' AND pagetype = '{kind}' ORDER BY path"
        );
        let told = self.place.sqlite3("plain.db", &sql).succeeded();
        told.lines().map(|line| line.parse().unwrap()).collect()
    }
}

/// A plain database of small pages that have room for a tail; with a pointer map if the first line asks for it.
fn reserved(place: &Place, sql: &str) {
    let vacuum = u8::from(sql.starts_with(VACUUM));
    let settings = format!("PRAGMA page_size = 1024; PRAGMA auto_vacuum = {vacuum};");
    let mut make = place.command("/usr/bin/sqlite3");
    make.args(["-batch", "plain.db", ".filectrl reserve_bytes 32", &settings, sql]);
    said(&mut make).succeeded();
}

const VACUUM: &str = "/* auto_vacuum */ ";

const SAMPLE: &str = "
    CREATE TABLE a(id INTEGER PRIMARY KEY, body TEXT);
    CREATE TABLE b(x INT, y TEXT UNIQUE, z REAL DEFAULT 1.5);
    CREATE TABLE w(k TEXT, v BLOB, n INT, PRIMARY KEY(k)) WITHOUT ROWID;
    CREATE TABLE long(id INTEGER PRIMARY KEY, body BLOB);
    CREATE INDEX a_body ON a(body);
    CREATE VIEW many AS SELECT count(*) FROM a;
    CREATE TRIGGER added AFTER INSERT ON b BEGIN UPDATE a SET body = body WHERE id = new.x; END;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
      INSERT INTO a SELECT i, printf('row %d %s', i, hex(zeroblob(i % 40))) FROM n;
    INSERT INTO b SELECT id, 'y' || id, id / 4.0 FROM a WHERE id <= 3000;
    INSERT INTO w SELECT 'key ' || id, zeroblob(id % 50), id FROM a WHERE id <= 4000;
    INSERT INTO long SELECT id, randomblob(5000) FROM a WHERE id <= 20;";

#[test]
fn what_is_not_damaged_is_all_there() {
    let bench = Bench::sql(SAMPLE);
    let (told, facts) = bench.salvage();
    assert_eq!((told.code, &facts["whole"]), (0, &true.into()), "{told:?}");
    let counted = bench.compare(&[]);
    assert_eq!((&counted["missing"], &counted["rows"]), (&0.into(), &16020.into()), "{counted}");
    let schema =
        "SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_auto%' ORDER BY 1, 2";
    assert_eq!(bench.new_db(schema), bench.place.sqlite3("plain.db", schema).stdout);
}

#[test]
fn leaf_pages_cost_their_own_rows_and_name_them() {
    let bench = Bench::sql(SAMPLE);
    let leaves = [&bench.pages("a", "leaf")[40..43], &bench.pages("w", "leaf")[7..8]].concat();
    bench.damage(&leaves);
    let (told, facts) = bench.salvage();
    assert_eq!(told.code, 3, "{told:?}");
    let counted = bench.compare(&leaves);
    assert!(counted["missing"].as_u64().unwrap() > 60, "{counted}");
    assert_eq!(counted["missing"], counted["on_damaged"], "{counted}");
    let listed = facts["damaged_pages"].as_array().unwrap();
    assert_eq!(listed.len(), 4, "{facts}");
    for page in listed {
        assert_eq!((&page["lost"], &page["role"]), (&true.into(), &"leaf".into()), "{page}");
        if page["owner"] == "table `a`" {
            let (above, upto) = (page["rowids_above"].as_i64(), page["rowids_up_to"].as_i64());
            let lost = format!(
                "SELECT count(*) FROM a WHERE id > {} AND id <= {}",
                above.unwrap(),
                upto.unwrap()
            );
            assert_eq!(bench.new_db(&lost).trim(), "0", "{page}");
        } else {
            assert_eq!(page["owner"], "table `w`", "{page}");
        }
    }
}

#[test]
fn rows_below_a_damaged_interior_page_are_found() {
    for vacuum in ["", VACUUM] {
        let bench = Bench::sql(&format!("{vacuum}{SAMPLE}"));
        // The page that leads to every leaf of `a`, unless the tree is deeper; one of an index beside it.
        let interior = bench.pages("a", "internal");
        let index = bench.pages("a_body", "internal");
        let damaged = [&interior[..1], &index[..1]].concat();
        bench.damage(&damaged);
        let (told, facts) = bench.salvage();
        assert_eq!((told.code, &facts["whole"]), (0, &true.into()), "{vacuum}{told:?}");
        let counted = bench.compare(&damaged);
        assert_eq!(
            (&counted["missing"], &counted["rows"]),
            (&0.into(), &16020.into()),
            "{counted}"
        );
    }
}

#[test]
fn rows_whose_table_cannot_be_told_are_set_aside() {
    // Two tables of the same form have lost the pages above their leaves: any leaf may be of either.
    let bench = Bench::sql(
        "CREATE TABLE one(id INTEGER PRIMARY KEY, body TEXT); CREATE TABLE two(id INTEGER PRIMARY KEY, body TEXT);
         CREATE TABLE other(a, b, c, d);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
           INSERT INTO one SELECT i, 'one ' || hex(zeroblob(i % 30)) FROM n;
         INSERT INTO two SELECT id, replace(body, 'one', 'two') FROM one;
         INSERT INTO other SELECT id, id, id, body FROM one;",
    );
    let damaged = ["one", "two", "other"].map(|table| bench.pages(table, "internal")[0]);
    bench.damage(&damaged);
    let (told, facts) = bench.salvage();
    assert_eq!((told.code, &facts["rows_set_aside"]), (3, &6000.into()), "{told:?}");
    assert_eq!(bench.new_db("SELECT count(*), count(DISTINCT a) FROM other").trim(), "3000|3000");
    let aside =
        "SELECT guess, fields, substr(c1, 1, 3), count(DISTINCT id) FROM lost_and_found GROUP BY 3";
    assert_eq!(
        bench.new_db(aside).trim(),
        "one, two, other|2|one|3000\none, two, other|2|two|3000"
    );
}

#[test]
fn a_damaged_overflow_page_costs_one_row() {
    let bench = Bench::sql(SAMPLE);
    let damaged = bench.pages("long", "overflow")[9];
    bench.damage(&[damaged]);
    let (told, facts) = bench.salvage();
    assert_eq!(told.code, 3, "{told:?}");
    let rows = facts["lost_rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{facts}");
    assert_eq!((&rows[0]["table"], &rows[0]["overflow_page"]), (&"long".into(), &damaged.into()));
    let gone = format!("SELECT count(*) FROM long WHERE id = {}", rows[0]["rowid"]);
    assert_eq!(bench.new_db(&gone).trim(), "0");
    let counted = bench.compare(&[damaged]);
    assert_eq!((&counted["missing"], &counted["rows"]), (&1.into(), &16019.into()), "{counted}");
}

#[test]
fn without_page_1_rows_are_found_all_the_same() {
    // The schema is on page 1 alone: nothing says what the tables were.
    let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i FROM n";
    let bench = Bench::sql(&format!(
        "CREATE TABLE a(x, y); INSERT INTO a SELECT i, 'text ' || i FROM ({fill})"
    ));
    bench.damage(&[1]);
    let (told, facts) = bench.salvage();
    assert_eq!((told.code, &facts["rows_set_aside"]), (3, &500.into()), "{told:?}");
    assert_eq!(
        bench.new_db("SELECT count(*), count(DISTINCT root), max(c1) FROM lost_and_found").trim(),
        "500|1|text 99"
    );

    // A larger schema is on pages of its own, and is found by its rows: every table is back.
    for vacuum in ["", VACUUM] {
        let tables: String = (0..40)
            .map(|n| format!("CREATE TABLE t{n}(id INTEGER PRIMARY KEY, some_column TEXT, another_column REAL);\n"))
            .collect();
        let bench = Bench::sql(&format!(
            "{vacuum}{tables} INSERT INTO t7 SELECT i, 'text ' || i, i FROM ({fill})"
        ));
        bench.damage(&[1]);
        let (told, facts) = bench.salvage();
        assert_eq!((told.code, &facts["rows"]), (3, &500.into()), "{told:?}");
        assert_eq!(bench.new_db("SELECT count(*), max(some_column) FROM t7").trim(), "500|text 99");
    }
}

#[test]
fn what_holds_no_rows_costs_nothing() {
    let bench = Bench::sql(&format!(
        "{VACUUM}{SAMPLE}
        CREATE TABLE passing AS SELECT * FROM a; DROP TABLE passing;"
    ));
    // The pointer map, and a leaf of an index.
    let damaged = [2, bench.pages("a_body", "leaf")[3]];
    bench.damage(&damaged);
    let (told, facts) = bench.salvage();
    assert_eq!((told.code, &facts["whole"]), (0, &true.into()), "{told:?}");
    assert_eq!(bench.compare(&damaged)["missing"], 0);

    let bench = Bench::sql(&format!(
        "PRAGMA secure_delete = OFF; {SAMPLE} CREATE TABLE passing AS SELECT * FROM a; DROP TABLE passing;"
    ));
    let first = |at: usize| {
        let bytes = std::fs::read(bench.place.path("plain.db")).unwrap();
        u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
    };
    let trunk = first(32);
    let free = first((trunk as usize - 1) * 1024 + 8);
    bench.damage(&[free]);
    let (told, facts) = bench.salvage();
    assert_eq!((told.code, &facts["whole"]), (0, &true.into()), "{told:?}");
    // Without the list of free pages what is on them may be rows: they were deleted, and are not put into any table.
    bench.damage(&[trunk]);
    let (told, facts) = bench.salvage();
    assert_eq!((told.code, &facts["rows"]), (3, &16020.into()), "{told:?}");
    assert!(facts["rows_set_aside"].as_u64().unwrap() > 1000, "{facts}");
}

#[test]
fn committed_frames_of_the_log_are_salvaged_and_the_rest_is_not() {
    let bench = Bench::sql("CREATE TABLE a(id INTEGER PRIMARY KEY, body TEXT)");
    // Killed with commits in the log only.
    let script = "import os, sqlite3\n\
        db = sqlite3.connect('file:app.db?vfs=pellucid&key_file=right.key', uri=True, isolation_level=None)\n\
        db.execute('PRAGMA journal_mode=WAL'); db.execute('PRAGMA wal_autocheckpoint=0')\n\
        db.execute('PRAGMA cache_size=5')\n\
        for n in range(3): db.execute(\"INSERT INTO a(body) SELECT hex(zeroblob(value)) FROM \
        (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 200) SELECT value FROM n)\")\n\
        db.execute('BEGIN'); db.execute(\"UPDATE a SET body = 'not committed' || body\"); os.kill(os.getpid(), 9)";
    let mut run = bench.place.command(PELLUCID);
    said(run.args(["run", "--", "/usr/bin/python3", "-c", script]));
    let log = std::fs::read(bench.place.path("app.db-wal")).unwrap();
    let (told, facts) = bench.salvage();
    assert_eq!((told.code, &facts["rows"]), (0, &600.into()), "{told:?}");
    assert_eq!(bench.new_db("SELECT count(*) FROM a WHERE body LIKE 'not%'").trim(), "0");
    assert!(log == std::fs::read(bench.place.path("app.db-wal")).unwrap(), "the log was changed");

    // A frame in the middle: what SQLite would still read is there, and that commits are lost is said.
    let _ = std::fs::remove_file(bench.place.path("app.db-shm"));
    edit(&bench.place.path("app.db-wal"), |bytes| bytes[32 + 60 * 1048 + 500] ^= 1);
    let (told, facts) = bench.salvage();
    assert_eq!(told.code, 3, "{told:?}");
    assert_eq!(facts["lost_commits"].as_array().unwrap().len(), 1, "{told:?}");
    let rows = facts["rows"].as_u64().unwrap();
    assert!(rows % 200 == 0 && rows < 600, "{rows}");
}

#[test]
fn an_interrupted_transaction_is_left_out_without_a_change_to_the_database() {
    let bench = Bench::sql(SAMPLE);
    let script = "import os, sqlite3\n\
        db = sqlite3.connect('file:app.db?vfs=pellucid&key_file=right.key', uri=True, isolation_level=None)\n\
        db.execute('PRAGMA cache_size=5'); db.execute('BEGIN')\n\
        db.execute(\"UPDATE a SET body = 'half' || id\"); db.execute('DELETE FROM w'); os.kill(os.getpid(), 9)";
    let mut run = bench.place.command(PELLUCID);
    said(run.args(["run", "--", "/usr/bin/python3", "-c", script]));
    let journal = std::fs::read(bench.place.path("app.db-journal")).unwrap();
    assert!(journal.len() > 100_000);
    let (told, facts) = bench.salvage();
    assert_eq!((told.code, &facts["whole"]), (0, &true.into()), "{told:?}");
    assert_eq!(bench.compare(&[])["missing"], 0);
    assert!(journal == std::fs::read(bench.place.path("app.db-journal")).unwrap());

    // A record that is damaged: `check` does not play the others back, and `salvage` says which page is lost.
    let before = std::fs::read(bench.place.path("app.db")).unwrap();
    edit(&bench.place.path("app.db-journal"), |bytes| bytes[512 + 400] ^= 1);
    let checked = bench.place.pellucid(&[&["--json", "check", "app.db"], &KEY[..]].concat());
    let found: serde_json::Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!(
        (checked.code, found["damaged_journal"].as_array().unwrap().len()),
        (3, 1),
        "{checked:?}"
    );
    assert!(
        before == std::fs::read(bench.place.path("app.db")).unwrap(),
        "half of it was played back"
    );
    let (told, facts) = bench.salvage();
    assert_eq!(told.code, 3, "{told:?}");
    assert_eq!(facts["damaged_pages"].as_array().unwrap().len(), 1, "{told:?}");
}

#[test]
fn what_cannot_be_salvaged_is_refused_and_nothing_is_written_over() {
    let bench = Bench::sql("CREATE TABLE a(x); INSERT INTO a VALUES(1)");
    let place = &bench.place;
    let ask = |to: &str, options: &[&str]| {
        let told =
            place.pellucid(&[&["--json", "salvage", "app.db", "--to", to], options].concat());
        let facts: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
        (told.code, facts["kind"].as_str().unwrap_or_default().to_owned())
    };
    let before = place.snapshot();
    assert_eq!(ask("plain.db", &KEY), (1, "exists".into()));
    assert_eq!(ask("app.db", &KEY), (1, "exists".into()));
    assert_eq!(ask("new.db", &[]), (1, "missing-key".into()));
    assert_eq!(ask("no/such/new.db", &KEY), (1, "io".into()));
    assert_eq!(before, place.snapshot());
    place.secret("wrong.key", &[8; 32]);
    assert_eq!(ask("new.db", &["--key-file", "wrong.key"]), (1, "missing-key".into()));
    let told = place.pellucid(&["--json", "salvage", "plain.db", "--to", "new.db"]);
    assert!(told.code == 1 && told.stdout.contains("\"kind\":\"plain\""), "{told:?}");
    // One header copy is enough; none is not.
    edit(&place.path("app.db"), |bytes| bytes[2048 + 200] ^= 1);
    assert_eq!(ask("new.db", &KEY).0, 0);
    std::fs::remove_file(place.path("new.db")).unwrap();
    edit(&place.path("app.db"), |bytes| bytes[2048 + 7168 + 200] ^= 1);
    assert_eq!(ask("new.db", &KEY), (3, "corrupt".into()));
    assert!(!place.path("new.db").exists() && !place.path("new.db-salvage").exists());
}

#[test]
fn the_new_database_is_protected_as_the_old_one_or_plain_where_that_is_asked_for() {
    let place = Place::new();
    place.secret("pass.txt", b"correct horse\n");
    place.sealed("app.db", &["--passphrase-file", "pass.txt"]);
    place.secret("right.key", &[7; 32]);
    let add = [
        "protector",
        "add",
        "app.db",
        "--new-key-file",
        "right.key",
        "--passphrase-file",
        "pass.txt",
    ];
    place.pellucid(&add).succeeded();
    let both = [
        "salvage",
        "app.db",
        "--to",
        "both.db",
        "--passphrase-file",
        "pass.txt",
        "--key-file",
        "right.key",
    ];
    place.pellucid(&both).succeeded();
    for option in [["--passphrase-file", "pass.txt"], KEY] {
        place.pellucid(&[&["check", "both.db"], &option[..]].concat()).succeeded();
    }
    let identity = |name: &str| std::fs::read(place.path(name)).unwrap()[24..40].to_vec();
    assert_ne!(identity("app.db"), identity("both.db"));
    // What is not at hand cannot be made again, and that is said.
    let told = place.pellucid(&["salvage", "app.db", "--to", "one.db", "--key-file", "right.key"]);
    assert!(told.code == 0 && told.stderr.contains("its passphrase is not at hand"), "{told:?}");
    place.pellucid(&[&["check", "one.db"], &KEY[..]].concat()).succeeded();

    let plain = ["salvage", "app.db", "--to", "plain.db", "--decrypted", "--key-file", "right.key"];
    let told = place.pellucid(&plain).succeeded();
    assert!(told.contains("PLAIN"), "{told}");
    assert_eq!(place.sqlite3("plain.db", "SELECT count(*) FROM t").succeeded().trim(), "200");
}

#[test]
fn an_index_over_values_that_are_not_unique_leaves_nothing_behind() {
    // As stale rows would make them: the index is told to be unique only when there is every value twice.
    let bench = Bench::sql(
        "CREATE TABLE a(id INTEGER PRIMARY KEY, k TEXT); CREATE INDEX a_k ON a(k); CREATE INDEX a_id ON a(k, id);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
           INSERT INTO a SELECT i, 'key ' || min(i, 3999) FROM n;
         PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = 'CREATE UNIQUE INDEX a_k ON a(k)' WHERE name = 'a_k';",
    );
    let (told, facts) = bench.salvage();
    assert_eq!((told.code, &facts["rows"]), (3, &4000.into()), "{told:?}");
    let not_made = facts["not_made"].as_array().unwrap();
    assert_eq!((not_made.len(), &not_made[0]["object"]), (1, &"index `a_k`".into()), "{told:?}");
    // Behind SQLite's own check of the whole database.
    let indexes = "SELECT group_concat(name) FROM sqlite_schema WHERE type = 'index'";
    assert_eq!(bench.new_db(indexes).trim(), "a_id");
    assert_eq!(bench.new_db("SELECT count(*) FROM a WHERE k IN ('key 7', 'key 3999')").trim(), "3");
}

#[test]
fn a_row_that_conflicts_takes_no_other_row_back() {
    let bench = Bench::sql(
        "CREATE TABLE a(id INTEGER PRIMARY KEY, k TEXT); INSERT INTO a VALUES(1, 'one'), (2, NULL), (3, 'three');
         PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = 'CREATE TABLE a(id INTEGER PRIMARY KEY, k TEXT NOT NULL ON CONFLICT ROLLBACK)';",
    );
    let (told, facts) = bench.salvage();
    assert_eq!((told.code, &facts["rows_set_aside"]), (3, &1.into()), "{told:?}");
    assert_eq!(bench.new_db("SELECT group_concat(k) FROM a").trim(), "one,three");
    assert_eq!(bench.new_db("SELECT id FROM lost_and_found").trim(), "2");
}

/// Whoever can write to a database has chosen the text of its schema, and another account may salvage it.
#[test]
fn no_text_of_a_schema_reaches_beyond_the_new_database() {
    const TAKE: &str =
        "ATTACH 'file:victim.db?vfs=unix' AS v; UPDATE v.u SET x = 'taken'; DETACH v";
    const LEAK: &str = "VACUUM INTO 'file:leak.db?vfs=unix'";
    let whole = |name: &str| match name {
        "a" => "CREATE TABLE a(id INTEGER PRIMARY KEY, k TEXT)",
        "i" => "CREATE INDEX i ON a(k)",
        "v" => "CREATE VIEW v AS SELECT k FROM a",
        _ => "CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM a WHERE id = 0; END",
    };
    let mut tried = 0;
    for name in ["a", "i", "v", "t"] {
        for then in [TAKE, LEAK] {
            for text in [
                format!("{}; COMMIT; {then}; BEGIN", whole(name)),
                format!("{}; {then}", whole(name)),
                format!("COMMIT; {then}; BEGIN; {}", whole(name)),
                format!("COMMIT;{then}"),
                format!("/* CREATE */ {then}"),
                "CREATE TEMP TABLE a AS SELECT 1".to_owned(),
                "CREATE VIRTUAL TABLE a USING fts5(k)".to_owned(),
                "PRAGMA writable_schema = RESET".to_owned(),
                "DROP TABLE a".to_owned(),
            ] {
                let all = ["a", "i", "v", "t"].map(whole).join("; ");
                let bench = Bench::sql(&format!(
                    "{all}; INSERT INTO a VALUES(1, 'a row in clear'); PRAGMA writable_schema = ON;
                     UPDATE sqlite_schema SET sql = '{}' WHERE name = '{name}';",
                    text.replace('\'', "''")
                ));
                let victim = "CREATE TABLE u(x); INSERT INTO u VALUES('its own')";
                bench.place.sqlite3("victim.db", victim).succeeded();
                let (told, facts) = bench.salvage();
                let about = format!("{name}: {text}: {told:?}");
                let rows = bench.place.sqlite3("victim.db", "SELECT x FROM u").succeeded();
                assert_eq!(rows.trim(), "its own", "{about}");
                assert!(!bench.place.path("leak.db").exists(), "{about}");
                assert_eq!(told.code, 3, "{about}");
                assert_eq!(
                    facts["not_made"][0]["object"].as_str().unwrap().split('`').nth(1),
                    Some(name)
                );
                // Its rows are there all the same.
                let table = if name == "a" { "lost_and_found" } else { "a" };
                assert_eq!(
                    bench.new_db(&format!("SELECT count(*) FROM {table}")).trim(),
                    "1",
                    "{about}"
                );
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 72);
}

/// Salvages into `new.db` while some of the machine's calls fail.
fn with_failing(place: &Place, calls: &[&str]) -> Said {
    let _ = std::fs::remove_file(place.path("new.db"));
    let mut command = place.command("strace");
    command.args(["-f", "-o", "trace"]);
    for call in calls {
        command.args(["-e", &format!("inject={call}")]);
    }
    said(command.arg(PELLUCID).args(["salvage", "app.db", "--to", "new.db"]).args(KEY))
}

#[test]
fn the_result_gets_its_name_where_a_rename_cannot_refuse_and_is_kept_where_nothing_can() {
    let bench = Bench::sql("CREATE TABLE a(x); INSERT INTO a VALUES(1)");
    let building = bench.place.path("new.db-salvage");
    let told = with_failing(&bench.place, &["renameat2:error=EINVAL"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(bench.new_db("SELECT x FROM a").trim(), "1");
    assert!(!building.exists());

    let told = with_failing(&bench.place, &["renameat2:error=EINVAL", "link,linkat:error=EPERM"]);
    assert!(told.code == 1 && told.stderr.contains("`new.db-salvage` is whole"), "{told:?}");
    assert!(!bench.place.path("new.db").exists());
    std::fs::rename(building, bench.place.path("new.db")).unwrap();
    assert_eq!(bench.new_db("SELECT x FROM a").trim(), "1");
}

#[test]
fn nobody_may_read_more_than_the_original_where_its_group_cannot_be_given() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let bench = Bench::sql("CREATE TABLE a(x); INSERT INTO a VALUES(1)");
    let salvaged = |mode: u32, calls: &[&str]| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(bench.place.path("app.db"), permissions).unwrap();
        let told = with_failing(&bench.place, calls);
        assert_eq!(told.code, 0, "{told:?}");
        std::fs::metadata(bench.place.path("new.db")).unwrap().mode() & 0o7777
    };
    assert_eq!(salvaged(0o660, &[]), 0o660);
    // Only the owner cannot be given, as to everybody but root; then the group neither.
    assert_eq!(salvaged(0o660, &["fchown:error=EPERM:when=1"]), 0o660);
    assert_eq!(salvaged(0o660, &["fchown:error=EPERM"]), 0o600);
    assert_eq!(salvaged(0o664, &["fchown:error=EPERM"]), 0o644);
}

#[test]
fn a_file_that_sqlite_does_not_open_is_not_left() {
    let bench = Bench::sql("CREATE TABLE a(x); INSERT INTO a VALUES(1)");
    // Longer than the paths that SQLite takes (512 bytes), shorter than the system's.
    let deep = ["d".repeat(200), "d".repeat(200), "d".repeat(200)].join("/");
    std::fs::create_dir_all(bench.place.path(&deep)).unwrap();
    let to = format!("{deep}/new.db");
    let told = bench.place.pellucid(&[&["salvage", "app.db", "--to", &to], &KEY[..]].concat());
    assert_eq!(told.code, 1, "{told:?}");
    assert_eq!(std::fs::read_dir(bench.place.path(&deep)).unwrap().count(), 0, "{told:?}");
}

#[test]
fn a_salvage_that_is_killed_leaves_the_database_and_says_what_it_left() {
    let bench = generated(20 << 20, &[]);
    let before = std::fs::read(bench.place.path("app.db")).unwrap();
    let building = bench.place.path("new.db-salvage");
    // One that was done before it was killed is done again.
    let killed = (0..50).any(|_| {
        let _ = std::fs::remove_file(bench.place.path("new.db"));
        let mut run = bench.place.command(PELLUCID);
        run.args(["salvage", "app.db", "--to", "new.db"]).args(KEY);
        let mut child = run.stdout(std::process::Stdio::null()).spawn().unwrap();
        while !building.exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap().code().is_none() && !bench.place.path("new.db").exists()
    });
    assert!(killed, "it was always done before it could be killed");
    assert!(before == std::fs::read(bench.place.path("app.db")).unwrap());
    let told = bench.place.pellucid(&[&["salvage", "app.db", "--to", "new.db"], &KEY[..]].concat());
    assert!(told.code == 1 && told.stderr.contains("was interrupted"), "{told:?}");
    std::fs::remove_file(building).unwrap();
    let (told, _) = bench.salvage();
    assert_eq!(told.code, 0, "{told:?}");
}

/// Page 1 is authentic and says what cannot be: the count costs neither memory nor time for what is not there, and what
/// is there is salvaged.
#[test]
fn a_number_of_pages_that_cannot_be_right_is_told_and_not_believed() {
    use pellucid_vfs::seal_request::{offer, Offer};
    let bench =
        Bench::sql("CREATE TABLE a(id INTEGER PRIMARY KEY, body); INSERT INTO a VALUES(1, 'one');");
    let count = |count: u32| {
        pellucid_bundled::register().unwrap();
        let key = pellucid::protector::KeyFile::parse(&[7; 32]).unwrap();
        offer(Offer::KeyFile(key));
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
        let path = bench.place.path("app.db");
        let open = rusqlite::Connection::open_with_flags_and_vfs(path, flags, c"pellucid").unwrap();
        let select = "SELECT data FROM sqlite_dbpage WHERE pgno = 1";
        let mut page: Vec<u8> = open.query_row(select, [], |row| row.get(0)).unwrap();
        page[28..32].copy_from_slice(&count.to_be_bytes());
        open.execute("UPDATE sqlite_dbpage SET data = ?1 WHERE pgno = 1", [page]).unwrap();
    };
    count(u32::MAX - 1);
    let (told, facts) = bench.salvage();
    assert_eq!(told.code, 3, "{told:?}");
    let remark = facts["lost_commits"][0].as_str().unwrap();
    assert!(remark.contains("has 4294967294 pages: those behind page 65536"), "{remark}");
    assert_eq!(facts["damaged_pages"].as_array().unwrap().len(), 65536 - 2);
    assert_eq!(bench.new_db("SELECT body FROM a").trim(), "one");
}

/// Every kind of object, of about that size.
fn generated(bytes: u64, options: &[&str]) -> Bench {
    Bench::new(|place| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/generate.py");
        let mut make = place.command("/usr/bin/python3");
        make.arg(script).args(["--size", &bytes.to_string(), "--quiet", "plain.db"]);
        said(make.args(options)).succeeded();
        let mut make = place.command("/usr/bin/sqlite3");
        said(make.args(["-batch", "plain.db", ".filectrl reserve_bytes 32", "VACUUM"])).succeeded();
    })
}

#[test]
fn a_hundred_damaged_pages_cost_what_was_on_them() {
    let bytes = std::env::var("SALVAGE_BYTES").map_or(20 << 20, |text| text.parse().unwrap());
    for options in
        [&["--auto-vacuum", "none"][..], &["--auto-vacuum", "full", "--encoding", "UTF-16le"]]
    {
        let bench = generated(bytes, options);
        let pages =
            std::fs::metadata(bench.place.path("plain.db")).unwrap().len() / bench.page_bytes;
        // Spread, by a step that has nothing in common with the file's own order; never page 1.
        let damaged: Vec<u32> = (1..=100)
            .map(|n| (n * pages / 101 + n * 7 % 13) as u32 + 1)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        assert_eq!(damaged.len(), 100);
        bench.damage(&damaged);
        let (told, facts) = bench.salvage();
        assert_eq!(told.code, 3, "{}", told.stderr);
        assert_eq!(facts["damaged_pages"].as_array().unwrap().len(), 100);
        let counted = bench.compare(&damaged);
        println!(
            "{bytes} bytes, {pages} pages, {options:?}: {} rows salvaged in {:.1} s; {counted}",
            facts["rows"],
            facts["seconds"].as_f64().unwrap()
        );
        assert_eq!(bench.new_db("SELECT 1").trim(), "1");
    }
}

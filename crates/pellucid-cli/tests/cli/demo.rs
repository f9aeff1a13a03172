//! Goal: `pellucid demo` shows what it says, works on a copy, and gives away nothing that the sealed file hides.
//!
//! Method: the real program with the distribution's `sqlite3` and `python3`, on Northwind, on a small UTF-16
//! database and on databases at the edges of the format. Its picture is searched for key material, the sealed file
//! for the text that was shown; the original has to be the same afterwards, with nothing beside it.

use std::path::Path;

use crate::support::{edit, extension, said, Place, Said, PELLUCID};

/// `pellucid demo ARGUMENTS`, with settings in force that must not matter.
fn demo(place: &Place, arguments: &[&str]) -> Said {
    let mut command = place.command(PELLUCID);
    command.env("PELLUCID_REQUIRE", "1").env("PELLUCID_KEY_FILE", "nowhere.key");
    said(command.arg("demo").args(arguments))
}

fn has(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

/// The facts of a demo that succeeded.
fn facts(told: &Said) -> serde_json::Value {
    assert_eq!(told.code, 0, "{told:?}");
    let facts: serde_json::Value = serde_json::from_str(&told.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", told.stdout));
    assert!(facts.is_object());
    facts
}

/// Every file below `directory`, with what it holds.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
    files
}

/// The picture has both maps and no key; the sealed file does not have the text.
fn picture_is_right(place: &Place, directory: &str, needle: &[u8]) -> String {
    let at = |name: &str| place.path(directory).join(name);
    let picture = std::fs::read_to_string(at("picture.html")).unwrap();
    for map in ["Pages of the plain file", "Pages of the sealed file"] {
        assert!(picture.contains(map), "{map}");
    }
    assert!(picture.contains("class=\"k-sealed\"") && picture.contains("class=\"k-schema\""));
    assert!(picture.contains("data:image/png;base64,") && picture.contains("not found"));
    assert!(!picture.contains("{{") && picture.ends_with("</html>\n"), "a filled template");
    // Nothing is loaded from elsewhere, and the picture may be passed on.
    // A colon is no digit of base64, in which the picture has random bytes.
    assert!(!picture.contains("http:") && !picture.contains("https:"), "a link");
    assert!(!picture.contains(place.path("").to_str().unwrap()));

    let hex_only: String = picture.chars().filter(char::is_ascii_hexdigit).collect();
    let keys = files(&at("keys"));
    assert!(keys.len() >= 3, "{keys:?}");
    for (name, bytes) in &keys {
        // Long enough that nothing stands there by chance; the header's public parts are not in these files alone.
        for piece in bytes.chunks_exact(24) {
            assert!(!has(picture.as_bytes(), piece), "{name}");
            let hex: String = piece.iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(!hex_only.contains(&hex), "{name}");
        }
    }
    assert!(has(&std::fs::read(at("before.db")).unwrap(), needle));
    for sealed in ["app.db", "flipped.db"] {
        assert!(!has(&std::fs::read(at(sealed)).unwrap(), needle), "{sealed}");
    }
    picture
}

#[test]
fn northwind_is_shown_in_order_and_again_in_the_same_place() {
    let place = Place::new();
    extension(&place);
    for _ in 0..2 {
        let said = demo(&place, &[]).succeeded();
        let mut rest = said.as_str();
        for step in [
            "1. A database",
            "2. What a thief sees",
            "$ strings app.db | grep -F 'Alfreds Futterkiste'\n##ALFKIAlfreds Futterkiste",
            "|SQLite format 3.|",
            "$ pellucid encrypt app.db\n",
            "(nothing)\n",
            "file is not a database",
            "$ pellucid run -- sqlite3 app.db ",
            "Alfreds Futterkiste|Maria Anders|Berlin\n",
            "$ pellucid run -- python3 query.py app.db ",
            "Alfreds Futterkiste|Maria Anders|Berlin\n",
            "byte for byte",
            "where table Customers begins",
            "(belongs to table `Customers`)",
            "(exit 3: damage found)",
            "app.db: clean",
            "$ pellucid decrypt back.db\n",
            "integrity_check'\nok\n",
            "file:///",
        ] {
            let at = rest.find(step).unwrap_or_else(|| panic!("{step} in {said}"));
            rest = &rest[at + step.len()..];
        }
        assert!(!said.contains('\x1b'), "no colours outside a terminal");
    }
    let picture = picture_is_right(&place, "pellucid-demo", b"Alfreds Futterkiste");
    assert!(picture.contains("table rows · Customers"), "owners come from SQLite");
    assert!(picture.contains("found 3 times"));
}

#[test]
fn a_utf16_database_is_copied_and_its_text_found() {
    let place = Place::new();
    extension(&place);
    let name = "it's a \"shop\" ü.db";
    let sql = "PRAGMA encoding = 'UTF-16le'; CREATE TABLE \"o'ne \"\"two\"\" <b>\"(a, b);
        CREATE INDEX i ON \"o'ne \"\"two\"\" <b>\"(a);
        INSERT INTO \"o'ne \"\"two\"\" <b>\" VALUES (1, 'Gr\u{fc}n'), (2, 'Plum & <i>jam</i>');";
    place.sqlite3(name, sql).succeeded();
    let before = place.snapshot();
    let facts = facts(&demo(&place, &["--json", name, "--directory", "shown here"]));
    let needle: Vec<u8> = "Plum & <i>jam</i>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let picture = picture_is_right(&place, "shown here", &needle);
    assert!(picture.contains("Plum &amp; &lt;i&gt;jam") && !picture.contains("<i>jam"));
    assert!(picture.contains("it&#39;s a &quot;shop&quot; ü.db"));
    assert_eq!(facts["table"], "o'ne \"two\" <b>");
    assert_eq!(facts["plain_figures"]["found"], 1);
    assert_eq!(facts["sealed_figures"]["found"], 0);
    assert!(facts["url"].as_str().unwrap().ends_with("/shown%20here/picture.html"));
    let mut after = place.snapshot();
    after.retain(|path, _| !path.starts_with(place.path("shown here")));
    assert_eq!(before, after, "the original is not written to");
}

#[test]
fn quiet_prints_the_pictures_path_alone() {
    let place = Place::new();
    extension(&place);
    place.plain("app.db");
    let said = demo(&place, &["--quiet", "app.db"]).succeeded();
    let path = Path::new(said.trim_end());
    assert!(path.is_absolute() && path.is_file(), "{said}");
    assert_eq!(path.file_name().unwrap(), "picture.html");
}

#[test]
fn databases_at_the_edges_of_the_format_are_shown() {
    let place = Place::new();
    extension(&place);
    for (name, sql) in [
        ("small pages", "PRAGMA page_size = 512; CREATE TABLE t(a); INSERT INTO t VALUES (randomblob(99999))"),
        ("large pages", "PRAGMA page_size = 65536; CREATE TABLE t(a); INSERT INTO t VALUES ('some words of text')"),
        ("big endian", "PRAGMA encoding = 'UTF-16be'; CREATE TABLE t(a); INSERT INTO t VALUES ('some words of text')"),
        ("no text", "CREATE TABLE t(a); INSERT INTO t VALUES (1), (x'00ff'), (NULL)"),
        ("no rows", "CREATE TABLE t(a)"),
        ("no rowid", "CREATE TABLE t(a PRIMARY KEY, b) WITHOUT ROWID; INSERT INTO t VALUES ('some words of text', 2)"),
        ("free pages", "CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(99999)); DELETE FROM t; INSERT INTO t VALUES ('some words of text')"),
        ("auto vacuum", "PRAGMA auto_vacuum = FULL; CREATE TABLE t(a); INSERT INTO t VALUES ('some words of text')"),
    ] {
        place.sqlite3(name, sql).succeeded();
        let facts = facts(&demo(&place, &["--json", name]));
        let text = facts["text"].as_str().unwrap();
        assert!(text == "some words of text" || text.starts_with("CREATE TABLE t"), "{name}: {text}");
    }
}

#[test]
fn a_wal_is_copied_with_its_database_and_left_alone() {
    let place = Place::new();
    extension(&place);
    place.sqlite3("app.db", "PRAGMA journal_mode = WAL; CREATE TABLE t(a)").succeeded();
    // As a program leaves it that was killed: rows in the WAL only.
    let sql = ".filectrl persist_wal 1\nPRAGMA wal_autocheckpoint = 0;\nINSERT INTO t VALUES ('only in the WAL');\n\
        .shell cp app.db one.db; cp app.db-wal one.db-wal\n";
    crate::support::said_with(place.command("/usr/bin/sqlite3").arg("app.db"), sql).succeeded();
    assert!(place.path("one.db-wal").metadata().unwrap().len() > 0);
    let before = place.snapshot();
    let facts = facts(&demo(&place, &["--json", "one.db"]));
    assert_eq!(facts["text"], "only in the WAL");
    let mut after = place.snapshot();
    after.retain(|path, _| !path.starts_with(place.path("pellucid-demo")));
    assert_eq!(before, after);
}

#[test]
fn what_is_not_a_demos_is_refused_and_left() {
    let place = Place::new();
    extension(&place);
    place.plain("app.db");
    place.sealed("sealed.db", &[]);
    std::fs::write(place.path("empty.db"), b"").unwrap();
    std::fs::write(place.path("text.db"), b"not a database, but long enough for a header").unwrap();
    place.sqlite3("bare.db", "PRAGMA user_version = 1").succeeded();
    place.plain("cut.db");
    edit(&place.path("cut.db"), |bytes| bytes.truncate(5000));
    std::fs::create_dir(place.path("foreign")).unwrap();
    std::fs::write(place.path("foreign/app.db"), b"somebody's").unwrap();
    demo(&place, &["--quiet", "--directory", "former"]).succeeded();
    let before = place.snapshot();
    for (arguments, says) in [
        (&["--directory", "foreign"][..], "`foreign` exists, and no demo made it"),
        (&["--directory", "app.db"][..], "`app.db` exists, and no demo made it"),
        (&["former/before.db", "--directory", "former"][..], "is in the demo's own directory"),
        (&["sealed.db", "--directory", "new"][..], "`sealed.db`: it is encrypted already"),
        (&["empty.db", "--directory", "new"][..], "`empty.db`: it is empty"),
        (&["text.db", "--directory", "new"][..], "`text.db`: not an SQLite database"),
        (&["nowhere.db", "--directory", "new"][..], "`nowhere.db`"),
    ] {
        let told = demo(&place, arguments);
        assert_eq!(told.code, 1, "{told:?}");
        assert!(told.stderr.contains(says), "{told:?}");
        assert!(told.stderr.contains("pellucid: hint: "), "{told:?}");
        assert_eq!(before, place.snapshot(), "{arguments:?}");
    }
    for (name, says) in [("bare.db", "the database has no table"), ("cut.db", "`")] {
        let told = demo(&place, &["--json", name]);
        assert_eq!(told.code, 1, "{told:?}");
        assert!(told.stderr.contains(says) && told.stdout.contains("\"error\""), "{told:?}");
    }
}

#[test]
fn a_schema_that_needs_its_application_gets_it() {
    let place = Place::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/odd.c");
    place.compile_library(&source, "odd.so");
    let script = ".load ./odd
        CREATE TABLE o(a TEXT COLLATE odd UNIQUE, b CHECK (odd(b) > 0)); INSERT INTO o VALUES('x', 1);
        CREATE TABLE t(a); INSERT INTO t VALUES('a text that is recognised'), ('another text');
    ";
    let mut shell = place.command("/usr/bin/sqlite3");
    crate::support::said_with(shell.args(["-batch", "own.db"]), script).succeeded();
    let told = demo(&place, &["own.db"]);
    assert!(told.code == 1 && told.stderr.contains("--load FILE"), "{told:?}");
    let told = demo(&place, &["own.db", "--load", "./odd.so"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(!told.stdout.contains("not checked"), "{told:?}");
}

//! Goal: docs/languages.md shows the programs that were run, in the versions that were run.
//!
//! Method: each driver's program is a block of the document, byte for byte; its versions in the table are those that its
//! directory pins and those of its last good line in the campaign's record.

use std::path::{Path, PathBuf};

/// Directory, program, the file that pins the version, and what stands in front of the version there.
const DRIVERS: [(&str, &str, &str, &str); 6] = [
    ("apsw", "program.py", "requirements.txt", "apsw=="),
    ("pysqlite3", "program.py", "requirements.txt", "pysqlite3=="),
    ("better-sqlite3", "program.js", "package.json", "\"better-sqlite3\": \""),
    ("go-sqlite3", "program.go", "go.mod", "github.com/mattn/go-sqlite3 v"),
    ("rusqlite", "src/main.rs", "Cargo.toml", "rusqlite = { version = \"="),
    (
        "sqlite-jdbc",
        "Program.java",
        "pom.xml",
        "<artifactId>sqlite-jdbc</artifactId>\n      <version>",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_document_shows_every_program_as_it_is() {
    let document = read("docs/languages.md");
    let mut found: Vec<_> = std::fs::read_dir(root().join("tests/languages"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut known = DRIVERS.map(|(driver, ..)| driver);
    found.sort();
    known.sort();
    assert_eq!(found, known, "drivers in tests/languages");
    for (driver, program, ..) in DRIVERS {
        let path = format!("tests/languages/{driver}/{program}");
        let (_, after) = document.split_once(&format!("`{path}`:\n\n```")).expect(&path);
        let (_, block) = after.split_once('\n').unwrap();
        let (block, _) = block.split_once("```\n").unwrap();
        assert!(block == read(&path), "docs/languages.md and {path} differ");
    }
}

#[test]
fn the_versions_are_those_that_were_run() {
    let document = read("docs/languages.md");
    let record = read("tests/campaigns/records/languages.tsv");
    for (driver, _, manifest, before) in DRIVERS {
        let pins = read(&format!("tests/languages/{driver}/{manifest}"));
        let (_, version) = pins.split_once(before).expect(driver);
        let end = |c: char| !c.is_ascii_digit() && c != '.';
        let version = version.split(end).next().unwrap();
        let last = record
            .lines()
            .map(|line| line.split('\t').collect::<Vec<_>>())
            .rfind(|fields| fields[3] == driver && fields[6] == "ok")
            .expect(driver);
        assert_eq!(version, last[4], "{driver}: pinned, and in the record");
        let row = document
            .lines()
            .find(|line| line.starts_with(&format!("| [{driver}](")))
            .expect(driver);
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[2..4], last[4..6], "{driver}: in the document, and in the record");
        assert!(document.matches(version).count() > 1, "{driver}: installed in another version");
    }
}

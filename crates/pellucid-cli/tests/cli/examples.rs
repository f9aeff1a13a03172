//! Goal: each program of examples/ is as short as its page says, is run by the campaign, and has the versions that were run.
//!
//! Method: the lines of code of each directory are counted; the campaign's list is the directories; the page's table has, for each
//! directory, the versions and the SQLite of its last good line in the campaign's record, and the directory pins those versions.

use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// What says the versions, and what tools write: not code.
const PINS: [&str; 5] = ["requirements.txt", "package.json", "go.mod", "Cargo.toml", "pom.xml"];
const CODE: [&str; 6] = ["py", "js", "go", "rs", "java", "sql"];
const BUILT: [&str; 5] = ["target", "node_modules", "venv", "lib", "__pycache__"];
const MOST_LINES: usize = 60;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn examples() -> BTreeSet<String> {
    let entries = std::fs::read_dir(root().join("examples")).unwrap().map(Result::unwrap);
    entries
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

/// Lines of code that are not blank, comments and migrations among them.
fn lines(directory: &Path) -> usize {
    let mut lines = 0;
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            if !BUILT.iter().any(|built| path.ends_with(built)) {
                lines += self::lines(&path);
            }
        } else if path.extension().is_some_and(|end| CODE.iter().any(|code| end == *code)) {
            lines += read(&path).lines().filter(|line| !line.trim().is_empty()).count();
        }
    }
    lines
}

#[test]
fn every_example_is_short() {
    let found = examples();
    assert!(found.len() >= 10, "{found:?}");
    for example in found {
        let lines = lines(&root().join("examples").join(&example));
        assert!((10..=MOST_LINES).contains(&lines), "examples/{example}: {lines} lines");
    }
}

#[test]
fn the_campaign_runs_every_example() {
    let campaign = read("tests/campaigns/examples");
    let (_, list) = campaign.split_once("\nall=(").unwrap();
    let (list, _) = list.split_once(')').unwrap();
    assert_eq!(list.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>(), examples());
}

#[test]
fn the_versions_are_those_that_were_run() {
    let page = read("examples/README.md");
    let record = read("tests/campaigns/records/examples.tsv");
    let lines: Vec<Vec<_>> = record.lines().map(|line| line.split('\t').collect()).collect();
    let column = |name| lines[0].iter().position(|title| *title == name).expect(name);
    let (example_at, versions_at, sqlite_at) =
        (column("example"), column("versions"), column("SQLite"));
    for example in examples() {
        let last = lines
            .iter()
            .rfind(|fields| fields[example_at] == example && fields.last() == Some(&"ok"));
        let last = last.unwrap_or_else(|| panic!("{example}: no good line in the record"));
        let row = page.lines().find(|line| line.contains(&format!("]({example}/")));
        let row = row.unwrap_or_else(|| panic!("{example}: no row in examples/README.md"));
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        assert_eq!(
            [cells[2], cells[3]],
            [last[versions_at], last[sqlite_at]],
            "{example}: on the page, and in the record"
        );

        let pins: String = PINS
            .iter()
            .filter_map(|pins| {
                read_to_string(root().join("examples").join(&example).join(pins)).ok()
            })
            .collect();
        for library in last[versions_at].split(", ") {
            let (name, version) = library.split_once(' ').unwrap();
            // In pom.xml the version stands below the name.
            let two: Vec<_> = pins.lines().chain([""]).collect();
            let pinned = two
                .windows(2)
                .map(<[&str]>::concat)
                .any(|both| both.contains(name) && both.contains(version));
            assert!(pinned, "{example}: {library} was run, its directory pins another version");
        }
    }
}

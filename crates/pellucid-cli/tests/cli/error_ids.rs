//! Goal: whoever meets an error can look it up: each has an id, and docs/guide/errors.md has one row for each id.
//!
//! Method: the list of the source (`src/output/id.rs`), the numbers of SQL Server's messages that the program has
//! (`crates/pellucid/src/message.rs`) are compared with the rows of the page, in both directions, and the own numbers of
//! statements with the rows of docs/statements.md; each name of the list has to stand somewhere in the source. Then errors of
//! commands are looked up as their reader would.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use crate::support::Place;

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn text(path: &str) -> String {
    read_to_string(source(path)).unwrap()
}

/// The first cells of the page's rows under a head that begins with `head`, taken apart, with their lines.
fn rows(head: &str) -> Vec<(String, String)> {
    let mut is_inside = false;
    let mut found = Vec::new();
    for line in text("docs/guide/errors.md").lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        match line.starts_with('|') {
            false => is_inside = false,
            true if cells[0] == head => is_inside = true,
            true if is_inside && !line.starts_with("|-") => {
                assert!(cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()), "{line}");
                let ids = cells[0].split(", ").map(|id| id.trim_matches('`').to_owned());
                found.extend(ids.map(|id| (id, line.to_owned())));
            }
            true => {}
        }
    }
    found
}

/// Names and words of the list in the source.
fn list() -> BTreeMap<String, String> {
    let list = text("crates/pellucid-cli/src/output/id.rs");
    let list = list.split_once("\nids! {\n").unwrap().1.split_once("\n}\n").unwrap().0;
    let entries = list.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let entry = |line: &str| {
        let (name, rest) = line.split_once(' ').unwrap();
        (name.to_owned(), rest.split('"').nth(1).unwrap().to_owned())
    };
    entries.map(entry).collect()
}

/// All numbers from 1,000 in the code of `path`, without its comments and texts.
fn numbers(path: &str) -> BTreeSet<String> {
    let all = text(path);
    let lines = all.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let code = lines.map(|line| line.split('"').next().unwrap());
    let words =
        code.flat_map(|line| line.split(|byte: char| !byte.is_ascii_alphanumeric() && byte != '_'));
    let words = words.map(|word| word.replace('_', ""));
    words.filter(|word| word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

fn assert_once(rows: &[(String, String)]) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for (id, row) in rows {
        assert!(seen.insert(id.clone()), "a second row for `{id}`: {row}");
    }
    seen
}

#[test]
fn each_id_has_a_row_and_each_row_an_id() {
    let list = list();
    assert!(list.len() > 80, "the list is not read: {list:?}");
    let words: BTreeSet<String> = list.values().cloned().collect();
    assert_eq!(words.len(), list.len(), "two errors have one id");
    let rows = assert_once(&rows("Id"));
    assert_eq!(rows.difference(&words).collect::<Vec<_>>(), Vec::<&String>::new(), "rows of no id");
    assert_eq!(words.difference(&rows).collect::<Vec<_>>(), Vec::<&String>::new(), "without a row");
}

#[test]
fn each_number_has_a_row_and_each_row_a_number() {
    let known = numbers("crates/pellucid/src/message.rs");
    assert!(known.contains("33111"), "the numbers are not read: {known:?}");
    let rows = assert_once(&rows("Number"));
    assert_eq!(
        rows.difference(&known).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "rows of no number"
    );
    assert_eq!(known.difference(&rows).collect::<Vec<_>>(), Vec::<&String>::new(), "without a row");
}

#[test]
fn each_own_number_of_a_statement_has_a_row() {
    let mut known = numbers("crates/pellucid-sql/src/message/product.rs");
    known.extend(numbers("crates/pellucid-sql/src/message/table/product.rs"));
    known.retain(|number| number.starts_with("500"));
    assert!(known.contains("50003"), "the numbers are not read: {known:?}");
    let page = text("docs/statements.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| 500"));
    let rows =
        rows.filter_map(|line| line.split_once(" |")).map(|(first, _)| format!("500{first}"));
    let rows: Vec<String> =
        rows.flat_map(|cell| cell.split(", ").map(str::to_owned).collect::<Vec<_>>()).collect();
    let without: Vec<_> = known.iter().filter(|number| !rows.contains(number)).collect();
    assert_eq!(without, Vec::<&String>::new(), "without a row");
}

fn all_sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all_sources(&path, text),
            false if path.ends_with("output/id.rs") => {}
            false => *text += &read_to_string(&path).unwrap(),
        }
    }
}

#[test]
fn no_id_is_left_over_and_none_is_made_beside_the_list() {
    let mut all = String::new();
    all_sources(&source("crates/pellucid-cli/src"), &mut all);
    for name in list().keys() {
        let used = format!("Id::{name}");
        let is_whole = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
        assert!(all.split(&used).skip(1).any(is_whole), "no error is called {used} any more");
    }
    // Whatever says that it is an error goes through the list.
    for line in
        all.lines().filter(|line| line.contains("\"pellucid: error: ") && line.contains("\\n"))
    {
        assert!(line.contains(" [{}]\\n"), "an error without an id: {line}");
    }
}

/// What a command says: the id in words and in JSON has to be the one, and has a row.
#[test]
fn an_error_is_looked_up_by_what_it_ends_with() {
    let place = Place::new();
    place.plain("plain.db");
    place.secret("empty.db", b"");
    place.secret("text.db", &[b'x'; 4096]);
    place.pellucid(&["cert", "create", "one"]).succeeded();
    for (line, id) in [
        ("check plain.db", "plain"),
        ("check empty.db", "empty"),
        ("check text.db", "not-a-database"),
        ("check none.db", "not-found"),
        ("header s3://backups/", "bad-name"),
        ("rekey plain.db", "33104"),
        ("verify text.db", "not-a-backup"),
        ("cert drop two --yes", "15151"),
        ("run -- no-such-program", "program-not-found"),
        ("run", ""),
        ("backup plain.db --to plain.db", "misuse"),
        ("key backup service --file one.pem --password-file none", "not-found"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let told = place.pellucid(&words);
        let said = told.stderr.lines().find(|line| line.starts_with("pellucid: error: "));
        if id.is_empty() {
            assert!(told.code == 2 && said.is_none(), "{line}: {told:?}");
            continue;
        }
        let end = match id.bytes().all(|byte| byte.is_ascii_digit()) {
            true => format!(" ({id})"),
            false => format!(" [{id}]"),
        };
        assert!(said.is_some_and(|said| said.ends_with(&end)), "{line}: {told:?}");
        let told = place.pellucid(&[&["--json"], &words[..]].concat());
        let facts: serde_json::Value =
            serde_json::from_str(told.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(facts["id"], id, "{line}: {facts}");
        let all: Vec<_> = rows("Id").into_iter().chain(rows("Number")).collect();
        assert_eq!(all.iter().filter(|(there, _)| there == id).count(), 1, "{id}");
    }
}

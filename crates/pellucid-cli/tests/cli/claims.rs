//! Goal: no claim of the threat model stands without its test.
//!
//! Method: every test that the table of docs/design/threats.md names has to be in the file it is said to be in, as
//! a test.

use std::path::Path;

/// Files and tests that a table row names: `path` `test`, `test`, .. `path` `test`.
fn named(row: &str) -> Vec<(String, String)> {
    let mut file = String::new();
    let mut tests = Vec::new();
    for word in row.split('`').skip(1).step_by(2) {
        if word.contains('/') && !word.contains(' ') {
            file = word.to_owned();
        } else if !file.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
            tests.push((file.clone(), word.to_owned()));
        }
    }
    tests
}

fn is_test(source: &str, name: &str) -> bool {
    let function = format!("fn {name}(");
    source.split("#[test]").skip(1).any(|after| {
        let first = after.lines().map(str::trim_start).find(|line| line.starts_with("fn "));
        first.is_some_and(|line| line.starts_with(&function))
    })
}

#[test]
fn every_test_that_a_claim_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let design = std::fs::read_to_string(root.join("docs/design/threats.md")).unwrap();
    let section = design.split("## Claims").nth(1).unwrap();
    let section = section.split("## Risks that remain").next().unwrap();
    let rows: Vec<_> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 10, "{rows:?}");
    for row in rows {
        let tests = named(row);
        assert!(!tests.is_empty(), "no test: {row}");
        for (file, test) in tests {
            let source = std::fs::read_to_string(root.join(&file)).unwrap_or_default();
            assert!(is_test(&source, &test), "{file} has no test `{test}`: {row}");
        }
    }
}

#[test]
fn a_test_that_is_gone_is_noticed() {
    let source = "#[test]\nfn there() {}\nfn helper() {}";
    assert!(is_test(source, "there"));
    assert!(!is_test(source, "helper") && !is_test(source, "gone"));
}

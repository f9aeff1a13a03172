//! docs/design/refusals.md names each vector that fails once, with its kind, and none that there is not.

use std::collections::BTreeMap;
use std::path::Path;

/// Names of vectors in backticks: an object and a kind with an underscore between them.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let is_one = |name: &&str| {
        name.contains('_') && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    let is_option = |name: &str| name == "strict_log";
    text.split('`').skip(1).step_by(2).filter(is_one).filter(move |name| !is_option(name))
}

#[test]
fn the_page_of_refusals_has_each_vector_that_fails() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/design/refusals.md")).unwrap();
    let mut expects = BTreeMap::new();
    for entry in std::fs::read_dir(root.join("vectors")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let Some((_, expect)) = text.split_once("\nexpect: ").filter(|_| !name.contains('.'))
        else {
            continue;
        };
        expects.insert(name, expect.lines().next().unwrap_or_default().to_owned());
    }
    let mut rows: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let kind = if cells.len() == 5 { cells[2] } else { "success" };
        named(line).for_each(|name| rows.entry(name).or_default().push(kind));
    }
    for (name, kinds) in &rows {
        let expected = expects.get(*name).unwrap_or_else(|| panic!("no vector `{name}`"));
        assert_eq!(kinds, &[expected.as_str()], "{name}");
    }
    let fail = expects.iter().filter(|(_, expect)| *expect != "success");
    let missing: Vec<_> = fail.filter(|(name, _)| !rows.contains_key(name.as_str())).collect();
    assert!(missing.is_empty(), "not on the page: {missing:#?}");
}

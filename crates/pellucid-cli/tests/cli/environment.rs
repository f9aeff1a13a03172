//! Goal: one page has every variable that the product reads, and none besides.
//!
//! Method: the names in the sources of the crates and of the Python package are compared with those of the page.

use std::collections::BTreeSet;
use std::path::Path;

/// Variables that only tests and the lab set.
const OF_TESTS: [&str; 8] = [
    "PELLUCID_BIN",
    "PELLUCID_PLUGIN_TEST_SECRET",
    "PELLUCID_SABOTAGE",
    "PELLUCID_TCL_EXTENSION",
    "PELLUCID_TEST_FORKS_ALONE",
    "PELLUCID_TEST_PROCESSES",
    "PELLUCID_TEST_SEED",
    "PELLUCID_UPDATE",
];

/// The words that begin with `PELLUCID_` in a text, between `before` and `before`.
fn names(text: &str, before: char) -> BTreeSet<String> {
    let is_of_name = |letter: &char| letter.is_ascii_uppercase() || *letter == '_';
    let begin = format!("{before}PELLUCID_");
    let found = text.match_indices(&begin).map(|(at, _)| &text[at + before.len_utf8()..]);
    let found = found.map(|rest| rest.chars().take_while(is_of_name).collect::<String>());
    found.filter(|name| !name.ends_with('_')).collect()
}

fn of_sources(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let ends = |end: &str| path.extension().is_some_and(|own| own == end);
        if path.is_dir() {
            let is_product = !path.ends_with("tests") && !path.ends_with("pellucid-tests");
            is_product.then(|| of_sources(&path, found));
        } else if ends("rs") || ends("py") {
            found.append(&mut names(&std::fs::read_to_string(&path).unwrap(), '"'));
        }
    }
}

#[test]
fn every_variable_is_on_the_page_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/guide/environment.md")).unwrap();
    let told = names(&page, '`');
    let mut read = BTreeSet::new();
    of_sources(&root.join("crates"), &mut read);
    for name in OF_TESTS {
        read.remove(name);
    }
    assert!(read.len() > 15, "{read:?}");
    assert_eq!(told, read);
}

//! Goal: the manual pages have what a manual page has, and lead to pages that are there.

use std::collections::BTreeMap;

use crate::support::Place;

/// The pages by name, as `pellucid manual` writes them.
fn pages() -> BTreeMap<String, String> {
    let place = Place::new();
    place.pellucid(&["manual", "share"]).succeeded();
    let entries = std::fs::read_dir(place.path("share/man/man1")).unwrap();
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(&path).unwrap())
    };
    entries.map(read).collect()
}

#[test]
fn each_page_has_its_sections_and_leads_to_pages_that_are_there() {
    let pages = pages();
    assert!(pages.len() > 50, "{:?}", pages.keys());
    for (name, page) in &pages {
        for section in
            ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "\"EXIT STATUS\"", "\"SEE ALSO\""]
        {
            assert!(page.contains(&format!(".SH {section}\n")), "{name}: {section}\n{page}");
        }
        let (_, also) = page.rsplit_once("\"SEE ALSO\"").unwrap();
        let named = also.split("\\fB").skip(1).filter_map(|bold| bold.split_once("\\fR"));
        let mut own = 0;
        for to in named.map(|(name, _)| name.replace('\\', "")) {
            let is_there = to == "sqlite3" || to == "ld.so" || pages.contains_key(&to);
            assert!(is_there, "{name}: {to}");
            own += usize::from(to.starts_with("pellucid"));
        }
        assert!(own > 0, "{name} leads to none of the others");
    }
}

#[test]
fn the_programs_page_has_every_variable_of_the_guide() {
    let pages = pages();
    let page = pages["pellucid"].replace('\\', "");
    let guide = include_str!("../../../../docs/guide/environment.md");
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| `"));
    let names: Vec<_> = rows.filter_map(|row| row.split(['`', '=']).next()).collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("fB{name}")), "{name}\n{page}");
    }
    assert!(page.contains(".SH FILES") && page.contains("/etc/pellucid.conf"), "{page}");
    let (_, environment) = page.split_once(".SH ENVIRONMENT").unwrap();
    assert!(!environment.contains("](") && !environment.contains('`'), "marks: {environment}");
}

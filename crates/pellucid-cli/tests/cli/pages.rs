//! Goal: single pages come back from a backup where they belong among the others, and only there; SQLite's own check of a
//! backup finds what no tag can.
//!
//! Method: the program from outside, on databases that are damaged byte by byte, before and after more commits.

use std::path::Path;

use crate::support::{edit, Place};

fn query(place: &Place, name: &str, sql: &str) -> String {
    place.pellucid(&["run", "--", "sqlite3", "-batch", name, sql]).succeeded()
}

fn database(place: &Place, journal: &str, sealed: bool) -> String {
    let sql = format!(
        "PRAGMA journal_mode = {journal}; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
         CREATE INDEX i ON t(b);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)
         INSERT INTO t SELECT i, 'marked ' || hex(randomblob(100)) FROM n;"
    );
    place.sqlite3("app.db", &sql).succeeded();
    if sealed {
        place.pellucid(&["encrypt", "app.db"]).succeeded();
    }
    rows(place)
}

fn rows(place: &Place) -> String {
    query(place, "app.db", "SELECT * FROM t; PRAGMA integrity_check")
}

/// Overwrites the middle of a page.
fn damage(place: &Place, page: usize, sealed: bool) {
    let at = if sealed { 16384 } else { 0 } + (page - 1) * 4096 + 1000;
    edit(&place.path("app.db"), |bytes| bytes[at..at + 64].fill(0xa5));
}

const MEND: [&str; 6] = ["restore", "app.bak", "--to", "app.db", "--page", "7,4"];

#[test]
fn damaged_pages_come_back_if_nothing_was_committed_since() {
    for sealed in [true, false] {
        let place = Place::new();
        let before = database(&place, "DELETE", sealed);
        place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
        damage(&place, 4, sealed);
        damage(&place, 7, sealed);
        if sealed {
            assert_eq!(place.pellucid(&["check", "app.db"]).code, 3);
            let one = place.pellucid(&["restore", "app.bak", "--to", "app.db", "--page", "4"]);
            assert!(one.stderr.contains("page 7") && one.code == 1, "the other one: {one:?}");
        }
        let said = place.pellucid(&MEND).succeeded();
        assert!(said.contains("restored page 4, 7"), "{said}");
        assert_eq!(rows(&place), before);
        if sealed {
            place.pellucid(&["check", "app.db"]).succeeded();
        }
        // Used on, and then the backup is too old.
        query(&place, "app.db", "UPDATE t SET b = 'later' WHERE a = 1");
        damage(&place, 7, sealed);
        let bytes = std::fs::read(place.path("app.db")).unwrap();
        let refused = place.pellucid(&MEND);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains("have changed since the backup"), "{refused:?}");
        assert_eq!(std::fs::read(place.path("app.db")).unwrap(), bytes);
    }
}

#[test]
fn a_differential_brings_its_own_pages_and_its_full_sets() {
    let place = Place::new();
    database(&place, "DELETE", true);
    place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
    query(&place, "app.db", "UPDATE t SET b = 'changed' WHERE a BETWEEN 100 AND 103");
    let before = rows(&place);
    let more = ["--differential", "--base", "full.bak"];
    place.pellucid(&[&["backup", "app.db", "--to", "app.bak"], &more[..]].concat()).succeeded();
    let pages = std::fs::metadata(place.path("app.db")).unwrap().len() as usize / 4096 - 4;
    for page in 2..=pages {
        damage(&place, page, true);
    }
    let all: Vec<String> = (2..=pages).map(|page| page.to_string()).collect();
    let (all, base) = (all.join(","), ["--base", "full.bak"]);
    let mend = ["restore", "app.bak", "--to", "app.db", "--page", &all];
    place.pellucid(&[&mend[..], &base].concat()).succeeded();
    assert_eq!(rows(&place), before);
}

#[test]
fn in_wal_mode_nothing_proves_it_and_somebody_has_to_say_so() {
    let place = Place::new();
    let before = database(&place, "WAL", true);
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    damage(&place, 4, true);
    damage(&place, 7, true);
    let refused = place.pellucid(&MEND);
    assert!(refused.stderr.contains("--unproven") && refused.code == 1, "{refused:?}");
    place.pellucid(&[&MEND[..], &["--unproven"]].concat()).succeeded();
    assert_eq!(rows(&place), before);
    assert_eq!(query(&place, "app.db", "PRAGMA journal_mode"), "wal\n");
}

#[test]
fn what_cannot_be_asked_for_is_refused() {
    let place = Place::new();
    database(&place, "DELETE", true);
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    for (pages, why) in
        [("1", "page 1"), ("0", "counted from 1"), ("99999", "it has no page 99999")]
    {
        let refused = place.pellucid(&["restore", "app.bak", "--to", "app.db", "--page", pages]);
        assert!(refused.stderr.contains(why) && refused.code == 1, "{refused:?}");
    }
}

fn files_in(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

#[test]
fn sqlite_checks_what_a_backup_would_give_and_nothing_of_it_is_left() {
    for (journal, sealed) in [("WAL", true), ("DELETE", true), ("WAL", false)] {
        let place = Place::new();
        database(&place, journal, sealed);
        std::fs::create_dir(place.path("tmp")).unwrap();
        place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
        query(&place, "app.db", "DELETE FROM t WHERE a > 500; VACUUM");
        let more = ["--differential", "--base", "full.bak"];
        place
            .pellucid(&[&["backup", "app.db", "--to", "diff.bak"], &more[..]].concat())
            .succeeded();
        for media in [&["full.bak"][..], &["diff.bak", "--base", "full.bak"]] {
            let mut command = place.command(crate::support::PELLUCID);
            command.env("TMPDIR", place.path("tmp")).arg("verify").args(media).arg("--check");
            let said = crate::support::said(&mut command).succeeded();
            assert!(said.contains("which SQLite finds whole"), "{said}");
            assert_eq!(files_in(&place.path("tmp")), 0);
        }
    }
    // An index that says something else than its table: every tag is right, and every checksum.
    let place = Place::new();
    database(&place, "DELETE", false);
    let root =
        place.sqlite3("app.db", "SELECT rootpage FROM sqlite_schema WHERE name = 'i'").succeeded();
    let root: usize = root.trim().parse().unwrap();
    edit(&place.path("app.db"), |bytes| {
        let page = &mut bytes[(root - 1) * 4096..root * 4096];
        let at = page.windows(7).position(|window| window == b"marked ").unwrap();
        page[at..at + 7].copy_from_slice(b"MARKED ");
    });
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    place.pellucid(&["verify", "app.bak", "--open"]).succeeded();
    let found = place.pellucid(&["verify", "app.bak", "--check"]);
    assert_eq!(found.code, 3, "{found:?}");
    assert!(found.stderr.contains("SQLite finds in it"), "{found:?}");
}

//! Goal: a rollback journal that nothing plays back any more keeps no page in clear beside an encrypted database.
//!
//! SQLite leaves one in two ways: `journal_mode=PERSIST` ends a journal by zeros over its header, and a process that is killed
//! before the journal's first sync has written a header that does not count yet.

use std::os::unix::fs::symlink;

use crate::support::{said, Place, PELLUCID};

const SECRET: &str = "a name that nobody else may read";

/// A plain database with a journal that was ended, and the journal's bytes.
fn persistent(place: &Place) -> Vec<u8> {
    let sql = format!(
        "PRAGMA journal_mode = persist; CREATE TABLE t(a, b); INSERT INTO t VALUES (1, '{SECRET}'); \
         UPDATE t SET b = 'another'"
    );
    place.sqlite3("app.db", &sql).succeeded();
    let journal = std::fs::read(place.path("app.db-journal")).unwrap();
    assert!(contains(&journal, SECRET.as_bytes()), "SQLite kept the page");
    journal
}

/// As the journal was before it was synced: no magic and no count of records.
fn unsynced(ended: &[u8]) -> Vec<u8> {
    let mut journal = ended.to_vec();
    journal[20..24].copy_from_slice(&512u32.to_be_bytes());
    journal[24..28].copy_from_slice(&4096u32.to_be_bytes());
    journal
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn encryption_leaves_no_journal_with_pages_in_clear() {
    for is_unsynced in [false, true] {
        let place = Place::new();
        let ended = persistent(&place);
        if is_unsynced {
            std::fs::write(place.path("app.db-journal"), unsynced(&ended)).unwrap();
        }
        place.pellucid(&["encrypt", "app.db"]).succeeded();
        for entry in std::fs::read_dir(place.path("")).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let bytes = std::fs::read(&path).unwrap();
                assert!(!contains(&bytes, SECRET.as_bytes()), "{}", path.display());
            }
        }
        let said = place.pellucid(&["check", "app.db"]).succeeded();
        assert!(!said.contains("in clear"), "{said}");
    }
}

#[test]
fn an_encryption_that_cannot_remove_the_journal_does_not_begin() {
    let place = Place::new();
    persistent(&place);
    std::fs::remove_file(place.path("app.db-journal")).unwrap();
    // SQLite takes no directory for a journal, and nobody removes one by its name.
    std::fs::create_dir(place.path("app.db-journal")).unwrap();
    let before = std::fs::read(place.path("app.db")).unwrap();
    let said = place.pellucid(&["encrypt", "app.db"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(std::fs::read(place.path("app.db")).unwrap(), before);
}

#[test]
fn encryption_removes_a_link_under_the_journals_name_and_not_what_it_leads_to() {
    let place = Place::new();
    persistent(&place);
    std::fs::rename(place.path("app.db-journal"), place.path("kept")).unwrap();
    symlink("kept", place.path("app.db-journal")).unwrap();
    let said = place.pellucid(&["encrypt", "app.db"]);
    assert!(place.path("kept").exists(), "{said:?}");
    assert!(said.code == 1 || !place.path("app.db-journal").is_symlink(), "{said:?}");
}

#[test]
fn a_journal_that_an_earlier_encryption_left_is_told_and_is_no_damage() {
    let place = Place::new();
    let ended = persistent(&place);
    place.pellucid(&["encrypt", "app.db"]).succeeded();
    let mut hot = unsynced(&ended);
    hot[..8].copy_from_slice(&pellucid::journal::MAGIC);
    for journal in [&ended, &unsynced(&ended), &hot] {
        std::fs::write(place.path("app.db-journal"), journal).unwrap();
        let said = place.pellucid(&["check", "app.db"]).succeeded();
        assert!(
            said.contains("clean") && said.contains("`app.db-journal` has pages in clear"),
            "{said}"
        );
        let said = place.pellucid(&["doctor"]);
        assert!(
            said.code == 4 && said.stdout.contains("app.db-journal` has pages in clear"),
            "{said:?}"
        );
        let json = place.pellucid(&["--json", "check", "app.db"]).succeeded();
        assert!(json.contains("\"journal_in_clear\":true"), "{json}");
    }
    // What is neither may have been this database's own.
    std::fs::write(place.path("app.db-journal"), [0x5a; 4096]).unwrap();
    let said = place.pellucid(&["check", "app.db"]);
    assert!(said.code == 3 && said.stdout.contains("DAMAGED"), "{said:?}");
}

#[test]
fn decryption_leaves_no_sealed_journal_beside_the_plain_database() {
    let place = Place::new();
    persistent(&place);
    place.pellucid(&["encrypt", "app.db"]).succeeded();
    place
        .pellucid(&[
            "run",
            "--",
            "sqlite3",
            "app.db",
            "PRAGMA journal_mode = persist; UPDATE t SET b = 1",
        ])
        .succeeded();
    assert!(place.path("app.db-journal").exists());
    place.pellucid(&["decrypt", "app.db"]).succeeded();
    assert!(!place.path("app.db-journal").exists());
    let told = place.sqlite3("app.db", "SELECT b FROM t").succeeded();
    assert_eq!(told.trim(), "1");
}

/// It has to be rolled back by whoever opens the database next: without it the database is damaged.
#[test]
fn no_journal_that_counts_is_called_dead_because_encryption_was_switched_off() {
    const KILLED: &str = "import os, sqlite3\n\
        db = sqlite3.connect('app.db', isolation_level=None)\n\
        db.execute('PRAGMA cache_size = 5')\n\
        db.execute('BEGIN')\n\
        db.execute(\"UPDATE t SET b = 'changed' || b\")\n\
        os._exit(0)";
    let place = Place::new();
    let run = |program: &[&str]| {
        place.pellucid(&[&["run", "--"], program].concat()).succeeded().trim().to_owned()
    };
    let never_dead = |place: &Place| {
        let told = place.pellucid(&["doctor"]).all();
        assert!(!told.contains("journal"), "{told}");
        told
    };
    place.sealed("app.db", &[]);
    place.pellucid(&["decrypt", "--keep-container", "app.db"]).succeeded();
    run(&["/usr/bin/python3", "-c", KILLED]);
    let hot = std::fs::read(place.path("app.db-journal")).unwrap();
    assert!(contains(&hot, b"SQLite format 3") && contains(&hot, b"row 7"), "in clear");
    never_dead(&place);
    let changed = ["sqlite3", "app.db", "SELECT count(*) FROM t WHERE b LIKE 'changed%'"];
    let cut = Place::new();
    place.copy_to(&cut);
    assert_eq!(run(&changed), "0");

    // Switched on again meanwhile by its header alone, as a process that is killed at the first step leaves it.
    place.pellucid(&["encrypt", "app.db"]).succeeded();
    std::fs::write(place.path("app.db-journal"), &hot).unwrap();
    never_dead(&place);

    // One that was ended while it was switched off is of use to nobody afterwards.
    let mut ended = hot;
    ended[..512].fill(0);
    std::fs::write(cut.path("app.db-journal"), &ended).unwrap();
    never_dead(&cut);
    std::fs::write(place.path("app.db-journal"), &ended).unwrap();
    let told = place.pellucid(&["doctor"]).all();
    assert!(told.contains("app.db-journal` has pages in clear"), "{told}");
    let told = place.pellucid(&["check", "app.db"]).succeeded();
    assert!(told.contains("`app.db-journal` has pages in clear"), "{told}");
}

/// A decryption that is killed has written pages in clear, and may never be tried again.
#[test]
fn what_a_killed_decryption_left_in_clear_is_told_by_each_that_looks() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.pellucid(&["policy", "set", "certificate-backup-age", "off"]).succeeded();
    let looks = |place: &Place| {
        ["status --check", "doctor"].map(|words| {
            let told = place.pellucid(&words.split(' ').collect::<Vec<_>>());
            (told.code, told.all().contains("app.db-pellucid` is left over"))
        })
    };
    assert_eq!(looks(&place), [(0, false); 2]);
    // Killed where the copy is whole and is to be synced, before anything of the database is changed.
    let mut killed = place.command("strace");
    killed.args(["-f", "-qq", "-o", "trace", "-P"]).arg(place.path("app.db-pellucid"));
    killed.args(["-e", "trace=fsync", "-e", "inject=fsync:signal=KILL:when=1"]);
    let told = said(killed.args([PELLUCID, "decrypt", "app.db"]));
    assert!(place.path("app.db-pellucid").exists(), "{told:?}");
    assert_eq!(looks(&place), [(4, true); 2]);
    place.pellucid(&["decrypt", "app.db"]).succeeded();
    assert!(!place.path("app.db-pellucid").exists());
}

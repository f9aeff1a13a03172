//! Goal: `index` moves the wal-index of a database into memory and back, while nobody else has it open; `status` and `doctor` say
//! where it is, and programs under `run` use it there.
//!
//! Method: a database whose header is of version 2, the command with and without another program that has it open, and `sqlite3`
//! under `run`, which leaves in `/dev/shm` what it should.

use std::path::Path;

use pellucid::header::Second;

use crate::support::{plant, said, said_with, Place, Said, PELLUCID};

fn second(place: &Place) {
    place.sealed("app.db", &[]);
    plant::rewrite_header(place, "app.db", 0, |header| header.second = Some(Second::default()));
}

/// What `sqlite3` under `run` says to a script.
fn sqlite3(place: &Place, script: &str) -> Said {
    let mut command = place.command(PELLUCID);
    said_with(command.args(["run", "--", "sqlite3", "-batch", "-bail", "app.db"]), script)
}

fn index_of(place: &Place) -> String {
    let told = place.pellucid(&["--json", "status", "app.db"]).succeeded();
    let facts: serde_json::Value = serde_json::from_str(&told).unwrap();
    let found = facts.pointer("/databases/0/index").unwrap_or(&facts["index"]);
    found.as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
}

#[test]
fn it_moves_into_memory_and_back_and_programs_use_it_there() {
    let place = Place::new();
    second(&place);
    assert_eq!(index_of(&place), "file");
    let told = place.pellucid(&["index", "app.db", "file"]).succeeded();
    assert!(told.contains("already"), "{told}");
    let told = place.pellucid(&["index", "app.db", "memory"]).succeeded();
    assert!(told.contains("wal-index in memory"), "{told}");
    assert_eq!(index_of(&place), "memory");
    assert!(place.pellucid(&["status", "app.db"]).stdout.contains("index in memory"));
    assert!(place.pellucid(&["doctor"]).all().contains("has its wal-index in memory"));
    let script = "PRAGMA journal_mode=WAL;\nINSERT INTO t VALUES (1000, 'in the log');\n\
                  .shell ls /dev/shm; wc -c < app.db-shm\n";
    let told = sqlite3(&place, script).succeeded();
    assert!(told.contains("pellucid-index-") && told.contains("160"), "{told}");
    let told = place.pellucid(&["check", "app.db"]).succeeded();
    assert!(told.contains("ok") || !told.contains("damage"), "{told}");
    place.pellucid(&["--json", "index", "app.db", "file"]).succeeded();
    assert_eq!(index_of(&place), "file");
    let rows = sqlite3(&place, "SELECT count(*) FROM t WHERE a = 1000;\n");
    assert_eq!(rows.succeeded().trim(), "1");
    let events = place.pellucid(&["events"]).succeeded();
    assert!(events.contains("index moved into memory"), "{events}");
    assert!(events.contains("index moved into the file"), "{events}");
}

#[test]
fn it_stays_where_it_is_while_another_program_has_the_database_open() {
    let place = Place::new();
    second(&place);
    let script = format!(
        "PRAGMA journal_mode=WAL;\nSELECT count(*) FROM t;\n\
         .shell '{PELLUCID}' index app.db memory --timeout 1 2>&1 || echo refused\n"
    );
    let told = sqlite3(&place, &script).all();
    assert!(told.contains("[in-use]") && told.contains("refused"), "{told}");
    assert_eq!(index_of(&place), "file");
}

#[test]
fn a_database_of_version_1_is_told_to_upgrade() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    let refused = place.pellucid(&["index", "app.db", "memory"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("[needs-upgrade]"), "{}", refused.stderr);
    assert!(refused.stderr.contains("pellucid upgrade"), "{}", refused.stderr);
}

#[test]
fn a_memory_that_cannot_be_used_is_said_by_each_command() {
    let place = Place::new();
    second(&place);
    place.pellucid(&["index", "app.db", "memory"]).succeeded();
    sqlite3(&place, "PRAGMA journal_mode=WAL;\n").succeeded();
    let inside = |words: &str| {
        let mut command = place.command("unshare");
        let script = format!("mount -t tmpfs -o ro none /dev/shm && exec '{PELLUCID}' {words}");
        said(command.args(["--mount", "--propagation", "private", "sh", "-c", &script]))
    };
    let refused = inside("check app.db");
    if refused.stderr.contains("unshare") || refused.stderr.contains("mount:") {
        return println!("SKIP: no mount namespaces here");
    }
    assert!(refused.stderr.contains("[index-in-memory]"), "{refused:?}");
    assert!(refused.stderr.contains("pellucid index DB file"), "{refused:?}");
    inside("index app.db file").succeeded();
    inside("check app.db").succeeded();
}

#[test]
fn the_release_of_before_refuses_the_database_by_its_version_and_touches_nothing() {
    let place = Place::new();
    second(&place);
    place.pellucid(&["index", "app.db", "memory"]).succeeded();
    sqlite3(&place, "PRAGMA journal_mode=WAL;\nINSERT INTO t VALUES (1000, 'x');\n").succeeded();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/releases/0.1.0");
    let archive = root.join(format!("program-{}.tar.xz", std::env::consts::ARCH));
    let released = tempfile::tempdir().unwrap();
    let mut unpack = place.command("tar");
    unpack.arg("-xJf").arg(&archive).arg("-C").arg(released.path());
    let program = released.path().join("pellucid");
    if said(&mut unpack).code != 0 || !program.exists() {
        return println!("SKIP: no program of 0.1.0 for this machine");
    }
    let before = place.snapshot();
    let program = program.to_str().unwrap();
    for words in [&["check", "app.db"][..], &["run", "--", "sqlite3", "app.db", "SELECT 1 FROM t"]]
    {
        let refused = said(place.command(program).args(words));
        assert_ne!(refused.code, 0, "{refused:?}");
        assert!(refused.all().contains("format version 2 is newer"), "{refused:?}");
    }
    let after = place.snapshot();
    let app = |found: &crate::support::Snapshot| {
        found
            .iter()
            .filter(|(path, _)| path.starts_with("app.db"))
            .map(|(_, of)| *of)
            .collect::<Vec<_>>()
    };
    assert_eq!(app(&before), app(&after));
}

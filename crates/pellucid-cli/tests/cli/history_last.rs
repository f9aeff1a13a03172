//! Goal: whatever age and clock say, `history prune` leaves of each database what it can be restored from.
//!
//! Method: a table of backups and of what happens to them afterwards; every set is old, as after a clock that jumped ahead.
//! What is left is compared with the row, in the history and on the disk, and restored.

use std::collections::BTreeSet;

use crate::support::{history, Place};

struct Row {
    what: &'static str,
    /// Words for `pellucid`; after `rm` a file that goes, after `cut` one that loses its end, after `sql` a statement for
    /// the history.
    steps: &'static [&'static str],
    /// More words for `prune`.
    more: &'static [&'static str],
    /// The files of media that are left.
    left: &'static [&'static str],
    /// What is restored of them: the last one, based on the first.
    restores: &'static [&'static str],
    code: i32,
}

const A: &str = "backup app.db --to a.bak";
const B: &str = "backup app.db --to b.bak";
const ON_A: &str = "backup app.db --to d.bak --differential --base a.bak";
const DIFFERENT: &str = "run -- sqlite3 app.db UPDATE__t__SET__b='x'__WHERE__a=5";

const TABLE: &[Row] = &[
    Row { what: "one", steps: &[A], more: &[], left: &["a"], restores: &["a"], code: 0 },
    Row { what: "two", steps: &[A, B], more: &[], left: &["b"], restores: &["b"], code: 0 },
    Row {
        what: "a chain before a full one",
        steps: &[A, DIFFERENT, ON_A, B],
        more: &[],
        left: &["b"],
        restores: &["b"],
        code: 0,
    },
    Row {
        what: "a chain behind a full one",
        steps: &[B, A, DIFFERENT, ON_A],
        more: &[],
        left: &["a", "d"],
        restores: &["a", "d"],
        code: 0,
    },
    Row {
        what: "a differential of the older full one",
        steps: &[A, B, DIFFERENT, ON_A],
        more: &[],
        left: &["a", "b", "d"],
        restores: &["a", "d"],
        code: 0,
    },
    Row {
        what: "the last one is not there",
        steps: &[A, B, "rm b.bak"],
        more: &[],
        left: &["a"],
        restores: &["a"],
        code: 1,
    },
    Row {
        what: "the last one was removed",
        steps: &[A, B, "rm b.bak"],
        more: &["--missing"],
        left: &["a"],
        restores: &["a"],
        code: 0,
    },
    Row {
        what: "the last differential was removed",
        steps: &[A, DIFFERENT, ON_A, "rm d.bak"],
        more: &["--missing"],
        left: &["a"],
        restores: &["a"],
        code: 0,
    },
    Row {
        what: "the last one lost its end",
        steps: &[A, B, "cut b.bak"],
        more: &[],
        left: &["a"],
        restores: &["a"],
        code: 0,
    },
    Row {
        what: "the last one was overwritten by another database's",
        steps: &[A, "backup app.db --to b.bak", "backup other.db --to b.bak --format"],
        more: &[],
        left: &["a", "b"],
        restores: &["a"],
        code: 0,
    },
    Row {
        what: "dated in the future, then the clock was put right",
        steps: &[
            A,
            "sql UPDATE backupset SET backup_start_date = '2099-01-01 00:00:00.000000', backup_finish_date = '2099-01-01 \
             00:00:01.000000'",
            B,
        ],
        more: &[],
        left: &["a", "b"],
        restores: &["b"],
        code: 0,
    },
    Row {
        what: "stripes, of which one is not there",
        steps: &[A, "backup app.db --to s.bak t.bak", "rm t.bak"],
        more: &["--missing"],
        left: &["a"],
        restores: &["a"],
        code: 0,
    },
    Row {
        what: "mirrors, of which one is not there",
        steps: &[A, "backup app.db --to s.bak --mirror t.bak", "rm s.bak"],
        more: &[],
        left: &["t"],
        restores: &["t"],
        code: 0,
    },
    Row {
        what: "several sets in one file",
        steps: &[A, "backup app.db --to b.bak", "backup app.db --to b.bak --append"],
        more: &[],
        left: &["b"],
        restores: &["b"],
        code: 0,
    },
    Row {
        what: "a database that was dropped",
        steps: &[A, B, "rm app.db"],
        more: &[],
        left: &["b"],
        restores: &["b"],
        code: 0,
    },
    Row {
        what: "another one of the same name",
        steps: &[A, "backup far/app.db --to b.bak"],
        more: &[],
        left: &["a", "b"],
        restores: &["a"],
        code: 0,
    },
    Row {
        what: "the history forgot the full one",
        steps: &[A, DIFFERENT, ON_A, "sql DELETE FROM backupset WHERE type = 'D'"],
        more: &[],
        left: &["a", "d"],
        restores: &["a", "d"],
        code: 0,
    },
    Row {
        what: "asked for by name",
        steps: &[A, DIFFERENT, ON_A, "backup other.db --to b.bak"],
        more: &["--last", "app"],
        left: &["b"],
        restores: &["b"],
        code: 0,
    },
    Row {
        what: "of a plain database",
        steps: &["backup other.db --to a.bak", "backup other.db --to b.bak"],
        more: &[],
        left: &["b"],
        restores: &["b"],
        code: 0,
    },
];

fn scene() -> Place {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.plain("other.db");
    std::fs::create_dir(place.path("far")).unwrap();
    place.sealed("far/app.db", &[]);
    place
}

fn step(place: &Place, step: &str) {
    match step.split_once(' ') {
        Some(("rm", name)) => std::fs::remove_file(place.path(name)).unwrap(),
        Some(("cut", name)) => {
            let bytes = std::fs::read(place.path(name)).unwrap();
            std::fs::write(place.path(name), &bytes[..bytes.len() - 200]).unwrap();
        }
        Some(("sql", sql)) => assert!(history(place).execute(sql, []).unwrap() > 0, "{sql}"),
        _ => {
            let words: Vec<_> = step.split(' ').map(|word| word.replace("__", " ")).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            place.pellucid(&words).succeeded();
        }
    }
}

fn media(place: &Place) -> Vec<String> {
    let mut names = crate::backup_guards::names(place);
    names.retain(|name| name.ends_with(".bak"));
    names.iter().map(|name| name.replace(".bak", "")).collect()
}

/// The media whose sets the history has.
fn known(place: &Place) -> Vec<String> {
    let said = place.pellucid(&["--json", "history"]).succeeded();
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let name = |set: &serde_json::Value| {
        let file = set["files"][0].as_str().unwrap().rsplit('/').next().unwrap();
        set["overwritten_date"].is_null().then(|| file.replace(".bak", ""))
    };
    let names: BTreeSet<_> = said["backups"].as_array().unwrap().iter().filter_map(name).collect();
    names.into_iter().collect()
}

#[test]
fn what_a_database_can_be_restored_from_stays_whatever_the_clock_says() {
    for row in TABLE {
        let place = scene();
        row.steps.iter().for_each(|one| step(&place, one));
        let words =
            [&["history", "prune", "--older-than", "0", "--files", "--apply"], row.more].concat();
        let said = place.pellucid(&words);
        assert_eq!(said.code, row.code, "{}: {said:?}", row.what);
        assert_eq!(media(&place), row.left, "{}: {said:?}", row.what);
        let from = format!("{}.bak", row.restores.last().unwrap());
        let base = format!("{}.bak", row.restores[0]);
        let mut words = vec!["restore", from.as_str(), "--to", "back.db"];
        if from != base {
            words.extend(["--base", base.as_str()]);
        }
        place.pellucid(&words).succeeded();
        // Once more takes nothing more.
        let left = media(&place);
        place.pellucid(&["history", "prune", "--older-than", "0", "--files", "--apply"]);
        assert_eq!(media(&place), left, "{}", row.what);
    }
}

#[test]
fn the_history_alone_keeps_it_too_and_says_why() {
    let place = scene();
    [A, DIFFERENT, ON_A, B].iter().for_each(|one| step(&place, one));
    let said = place.pellucid(&["history", "prune", "--older-than", "0", "--apply"]).succeeded();
    assert!(said.contains("the last backups") && said.contains("--last app"), "{said}");
    assert_eq!(known(&place), ["b"]);
    place
        .pellucid(&["history", "prune", "--older-than", "0", "--last", "other", "--apply"])
        .succeeded();
    assert_eq!(known(&place), ["b"], "of another one");
    place
        .pellucid(&["history", "prune", "--older-than", "0", "--last", "app", "--apply"])
        .succeeded();
    assert!(known(&place).is_empty());
    assert_eq!(media(&place), ["a", "b", "d"]);
}

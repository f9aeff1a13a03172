//! Goal: whoever owns a folder in which root runs a command gets nothing by exchanging names there at the right moment.
//!
//! Method: tests/tools/races stops each command before each of its system calls that take a path in the folder, and exchanges
//! that name: for a link to a file of root's, another name of it, a FIFO, another file, or the folder itself for a link to
//! root's. Here a few dozen of these cases are drawn; `make campaign NAME=races` takes all. That the tool finds what it looks
//! for is shown on a command that follows names.

use std::os::unix::fs::{chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{said, Place, Said, PELLUCID};

/// An account that is nobody's.
const USER: u32 = 12345;

fn races(arguments: &[&str]) -> Said {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools/races/races.py");
    let programs: PathBuf = Path::new(PELLUCID).parent().unwrap().to_owned();
    said(Command::new("python3").arg(tool).arg("--programs").arg(programs).args(arguments))
}

/// The exit status of a machine on which nothing can be stopped.
const SKIPPED: i32 = 77;

#[test]
fn names_exchanged_at_drawn_calls_harm_no_file_of_roots() {
    let seed = std::env::var("PELLUCID_RACES_SEED").unwrap_or_else(|_| "1".to_owned());
    println!("seed {seed} (PELLUCID_RACES_SEED)");
    let told = races(&["--seed", &seed, "--draw", "5", "--some", "6"]);
    assert!(told.code == 0 || told.code == SKIPPED, "seed {seed}: {told:?}");
}

#[test]
fn a_command_that_follows_names_is_found_out() {
    for (options, what) in [
        (["--exchanges", "link-text", "--limit", "60"], "root's file text was changed"),
        (["--exchanges", "name-text", "--limit", "60"], "root's file text was changed"),
        (["--exchanges", "folder", "--limit", "60"], "root's file folder/copy was changed"),
        (["--exchanges", "fifo", "--limit", "1"], "did not end in time"),
    ] {
        let told = races(&[&options[..], &["careless"]].concat());
        if told.code == SKIPPED {
            return;
        }
        assert!(told.code == 1 && told.stdout.contains(what), "{what}: {told:?}");
    }
}

/// Without a race: the link is there before the command begins.
#[test]
fn another_users_link_leads_to_that_users_files_alone() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    place.sealed("own.db", &[]);
    place.pellucid(&["backup", "own.db", "--to", "own.bak"]).succeeded();
    std::fs::create_dir(place.path("theirs")).unwrap();
    for name in ["own.db", "own.bak"] {
        std::fs::copy(place.path(name), place.path("theirs").join(name)).unwrap();
        std::fs::rename(
            place.path("theirs").join(name),
            place.path("theirs").join(format!("real-{name}")),
        )
        .unwrap();
        chown(place.path("theirs").join(format!("real-{name}")), Some(USER), Some(USER)).unwrap();
    }
    chown(place.path("theirs"), Some(USER), Some(USER)).unwrap();
    let link = |name: &str, to: &str| {
        let path = place.path("theirs").join(name);
        let _ = std::fs::remove_file(&path);
        symlink(to, &path).unwrap();
        lchown(path, Some(USER), Some(USER)).unwrap();
    };
    let before = std::fs::read(place.path("own.db")).unwrap();
    let commands: &[&[&str]] = &[
        &["check", "theirs/app.db"],
        &["decrypt", "theirs/app.db"],
        &["rekey", "theirs/app.db"],
        &["backup", "theirs/app.db", "--to", "new.bak"],
        &["verify", "theirs/app.bak"],
        &["restore", "theirs/app.bak", "--to", "theirs/new.db"],
        &["restore", "own.bak", "--to", "theirs/app.db", "--replace"],
        &["backup", "own.db", "--to", "theirs/app.bak", "--append"],
        &["salvage", "theirs/app.db", "--to", "new.db"],
        &["run", "--", "/usr/bin/sqlite3", "theirs/app.db", "DELETE FROM t"],
        &["run", "--", "/usr/bin/sqlite3", "theirs/folder/own.db", "DELETE FROM t"],
        &["sql", "-b", "-Q", "SELECT 1", "-o", "theirs/folder/out"],
    ];
    link("app.db", "../own.db");
    link("app.bak", "../own.bak");
    link("folder", "..");
    let media = std::fs::read(place.path("own.bak")).unwrap();
    for command in commands {
        let told = place.pellucid(command);
        assert_ne!(told.code, 0, "{command:?}: {told:?}");
        assert_eq!(std::fs::read(place.path("own.db")).unwrap(), before, "{command:?}: {told:?}");
        assert_eq!(std::fs::read(place.path("own.bak")).unwrap(), media, "{command:?}: {told:?}");
        assert!(!place.path("out").exists() && !place.path("new.bak").exists(), "{command:?}");
    }
    let told = place.pellucid(&["verify", "theirs/app.bak"]);
    assert!(told.stderr.contains("is not followed"), "{told:?}");
    // To files of their own it leads as ever.
    link("app.db", "real-own.db");
    link("app.bak", "real-own.bak");
    place.pellucid(&["check", "theirs/app.db"]).succeeded();
    place.pellucid(&["verify", "theirs/app.bak"]).succeeded();
}

//! Goal: what the machine denies the program, a reader of what it says or threads of its own, stops no change half way.
//!
//! Method: two databases are encrypted with standard error closed at its other end; one is checked, whole and damaged,
//! while no thread can be started; one is written to with every number of files that may be open.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use crate::support::{edit, said, Place, PELLUCID};

#[test]
fn where_nobody_reads_what_is_said_work_goes_on() {
    let place = Place::new();
    let unread = || {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        OwnedFd::from(theirs)
    };
    for name in ["a.db", "b.db"] {
        place.plain(name);
    }
    // It warns after the first: the certificate has no backup.
    let mut command = place.command(PELLUCID);
    let status = command
        .args(["encrypt", "a.db", "b.db"])
        .stdout(Stdio::null())
        .stderr(unread())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    for name in ["a.db", "b.db"] {
        place.pellucid(&["check", name]).succeeded();
    }
    let status = place
        .command(PELLUCID)
        .args(["check", "none.db"])
        .stdout(Stdio::null())
        .stderr(unread())
        .status();
    assert_eq!(status.unwrap().code(), Some(1), "an error nobody reads keeps its exit status");
    let program = ["run", "--encrypt-new", "--", "/usr/bin/perl", "-e", "1"];
    let status = place
        .command(PELLUCID)
        .args(program)
        .stdout(Stdio::null())
        .stderr(unread())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1), "and so does one of `run`");
}

#[test]
fn a_check_does_without_threads() {
    let place = Place::new();
    let path = place.sealed("app.db", &[]);
    let denied = place.compile_preload("no_threads.c");
    let check = || {
        let mut command = place.command(PELLUCID);
        said(command.args(["--json", "check", "app.db"]).env("LD_PRELOAD", &denied))
    };
    let whole: serde_json::Value = serde_json::from_str(&check().succeeded()).unwrap();
    assert!(whole["clean"] == true && whole["pages"].as_u64() > Some(5), "{whole}");
    edit(&path, |bytes| bytes[16384 + 3 * 4096 + 100] ^= 1);
    let told = check();
    assert_eq!(told.code, 3, "{told:?}");
}

#[test]
fn a_backup_without_threads_is_an_error_and_leaves_nothing() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.pellucid(&["backup", "app.db", "--to", "whole.bak"]).succeeded();
    let denied = place.compile_preload("no_threads.c");
    for (words, made) in
        [("backup app.db --to app.bak", "app.bak"), ("restore whole.bak --to new.db", "new.db")]
    {
        let mut command = place.command(PELLUCID);
        let told = said(command.args(words.split(' ')).env("LD_PRELOAD", &denied));
        assert_eq!(told.code, 1, "{words}: {told:?}");
        assert!(told.stderr.contains("thread") && !told.stderr.contains("panicked"), "{told:?}");
        let left = place.snapshot().into_keys().find(|path| path.to_string_lossy().contains(made));
        assert!(left.is_none(), "{words}: {left:?}");
    }
}

/// SQLite's word for it is that it cannot open the file: nobody looks for a broken disk, or for a key.
#[test]
fn with_too_few_open_files_a_database_cannot_be_opened_and_is_not_called_anything_else() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    let library = place.pellucid(&["extension"]).succeeded();
    let mut told = [0; 2];
    for files in 4..24 {
        let insert = "CREATE TABLE IF NOT EXISTS few(a); BEGIN; INSERT INTO few VALUES(1); COMMIT; SELECT 'written';";
        let script = format!("ulimit -n {files}; exec sqlite3 -batch app.db \"{insert}\"");
        let mut command = place.command("bash");
        command
            .args(["-c", &script])
            .env("LD_PRELOAD", library.trim())
            .env("PELLUCID_PRELOAD", "1");
        let said = said(&mut command);
        let is_written = said.stdout.contains("written");
        told[usize::from(is_written)] += 1;
        let says_so = said.stderr.contains("unable to open database file");
        // Below that not even the program starts.
        let is_unstarted = said.stderr.contains("error while loading")
            || said.stderr.contains("cannot open shared object");
        assert!(is_written || says_so || is_unstarted, "{files}: {said:?}");
    }
    assert!(told[0] > 3 && told[1] > 3, "{told:?}");
    place.pellucid(&["check", "app.db"]).succeeded();
}

//! Goal: what changes between two looks of one opening is not taken for damage or an attack.
//!
//! Method: interleavings that the kills of `kills` came to, made to happen each time: a preloaded library makes a program
//! wait between the header and the keyring; a conversion is left as a kill leaves it, under an open connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::time::Duration;

use pellucid::header::EncryptionState;

use crate::support::{header, said, Place, PELLUCID};

/// It reads the header, which says that encryption is off; then somebody switches it on; then it asks the keyring, which
/// knows of the later header only.
#[test]
fn a_header_that_changes_while_it_is_opened_is_no_older_one_put_back() {
    let place = Place::new();
    let path = place.sealed("app.db", &[]);
    place.pellucid(&["decrypt", "app.db", "--keep-container"]).succeeded();
    assert_eq!(header(&path).state, EncryptionState::Unencrypted);
    let late = place.compile_preload("late_open.c");
    let mut command = place.command(PELLUCID);
    command.args(["check", "app.db"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let waits = place.path("waits");
    command
        .env("LD_PRELOAD", late)
        .env("LATE_NAME", "keyring/databases/")
        .env("LATE_WAITS", &waits);
    let mut check = command.spawn().unwrap();
    while !waits.exists() {
        assert!(check.try_wait().unwrap().is_none(), "it asked nothing of the keyring");
        std::thread::sleep(Duration::from_millis(1));
    }
    place.pellucid(&["encrypt", "app.db"]).succeeded();
    std::fs::remove_file(waits).expect("it has waited until now");
    let told = check.wait_with_output().unwrap();
    let told = (told.status.code(), String::from_utf8_lossy(&told.stderr).into_owned());
    assert!(!told.1.contains("an older header was put back"), "{told:?}");
    assert_eq!(told.0, Some(0), "{told:?}");
}

/// A program has opened a plain database and read nothing yet; an encryption of it is killed right after its commit point.
#[test]
fn an_encryption_that_was_killed_under_an_open_connection_is_finished_or_named() {
    let place = Place::new();
    let path = place.plain("app.db");
    let program = "import sqlite3, sys
db = sqlite3.connect('app.db', isolation_level=None)
print('open', flush=True)
sys.stdin.readline()
try:
    print(db.execute('SELECT count(*) FROM t').fetchone()[0])
except sqlite3.OperationalError as error:
    db.close()
    assert 'access permission denied' in str(error), error
    print(sqlite3.connect('app.db').execute('SELECT count(*) FROM t').fetchone()[0])";
    let plain = std::fs::read(&path).unwrap();
    place.pellucid(&["encrypt", "app.db"]).succeeded();
    let sealed = std::fs::read(&path).unwrap();
    // One inode, as the conversion has it.
    std::fs::write(&path, &plain).unwrap();
    place.pellucid(&["accept", "app.db"]).succeeded();
    let mut command = place.command(PELLUCID);
    command.args(["run", "--", "python3", "-c", program]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "open\n");
    // docs/format.md, "Laying": the copy beside it, and sector 0 in its place.
    std::fs::write(place.path("app.db-pellucid"), &sealed).unwrap();
    std::fs::write(&path, [&sealed[..512], &plain[512..]].concat()).unwrap();
    writeln!(child.stdin.take().unwrap(), "now").unwrap();
    let told = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&told.stderr);
    line.clear();
    out.read_to_string(&mut line).unwrap();
    assert!(told.status.success() && line.trim() == "200", "{line} {err}");
    let seen = said(place.command(PELLUCID).args(["check", "app.db"]));
    seen.succeeded();
}

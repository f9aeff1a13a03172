//! Goal: what could not be printed is never taken for printed, and half an answer not for a whole one.
//!
//! Method: commands that show something, and commands that change something, each with standard output on a full device,
//! closed, and read by a program that has left. What a command has to change is changed all the same.

use crate::support::{said, Place, Said, PELLUCID};

/// Runs a command line with standard output as `redirection` says.
fn shown(place: &Place, arguments: &str, redirection: &str) -> Said {
    let mut command = place.command("sh");
    command.env("PROGRAM", PELLUCID);
    command.args(["-c", &format!("\"$PROGRAM\" {arguments} {redirection}")]);
    said(&mut command)
}

const SHOW: &[&str] = &[
    "--help",
    "--version",
    "encrypt --help",
    "status",
    "status --json",
    "status --prometheus",
    "check app.db",
    "check --json app.db",
    "cert list",
    "cert show pellucid",
    "key status",
    "events",
    "events verify",
    "history",
    "header app.bak",
    "files app.bak",
    "label --json app.bak",
    "verify app.bak",
    "protector list app.db",
    "scan status app.db",
    "policy show",
    "extension",
    "sql -Q 'SELECT 1'",
    "sql -i one.sql",
    "sql -i one.sql -e",
    "sql --json -Q 'SELECT 1'",
    "sql -Q 'PRINT 1'",
    "sql --help",
    "run --help",
    "cert create --help",
    "status app.db",
    "status --check app.db",
    "doctor",
    "doctor --json app.db",
    "header --json app.bak",
    "files --json app.bak",
    "label app.bak",
    "verify --json app.bak",
    "verify --open --check app.bak",
    "history --json",
    "events --json",
    "events verify --json",
    "protector list --json app.db",
    "scan status --json app.db",
    "scan verify app.db",
    "policy show --json",
    "policy run",
    "cert list --json",
    "cert show --json pellucid",
    "key status --json",
    "extension --json",
    "check --physical-only app.db",
    "backup --quiet app.db --to -",
    "backup --json app.db --to -",
];

/// Commands that change something and say what; `@` is another word each time.
const CHANGE: &[&str] = &[
    "backup app.db --to @.bak",
    "backup --json app.db --to @.bak",
    "restore app.bak --to app.db --replace",
    "restore --json app.bak --to app.db --replace",
    "salvage app.db --to @.db",
    "salvage --json app.db --to @.db",
    "check app.db",
    "rekey app.db",
    "rewrap app.db --certificate pellucid",
    "upgrade app.db",
    "upgrade app.db --to 1",
    "accept app.db",
    "cert create c@",
    "cert export pellucid --cert-file @.pem",
    "cert export --json pellucid --cert-file @.pem",
    "key backup service --file @.key --password-file word",
    "instance export --to @.bundle --password-file word",
    "history rebuild app.bak",
    "init",
];

#[test]
fn what_cannot_be_written_is_an_error() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    std::fs::write(place.path("one.sql"), "SELECT name FROM sys.databases;\nGO\n").unwrap();
    let mut wrong = Vec::new();
    for arguments in SHOW {
        let whole = shown(&place, arguments, "");
        if !matches!(whole.code, 0 | 4) || whole.stdout.is_empty() {
            wrong.push(format!("{arguments}: {whole:?}"));
            continue;
        }
        for (redirection, says) in
            [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
        {
            let told = shown(&place, arguments, redirection);
            if told.code == 0 || !told.stderr.contains(says) {
                wrong.push(format!("{arguments} {redirection}: {told:?}"));
            }
        }
        if shown(&place, arguments, ">/dev/null").code != whole.code {
            wrong.push(format!("{arguments} >/dev/null"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_done_and_cannot_be_told_is_an_error() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.secret("word", b"a long enough passphrase");
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    let mut wrong = Vec::new();
    for (number, arguments) in CHANGE.iter().enumerate() {
        for (redirection, says) in
            [("", ""), (">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
        {
            let word = format!("{number}-{}", redirection.len());
            let told = shown(&place, &arguments.replace('@', &word), redirection);
            if told.code != i32::from(!says.is_empty()) || !told.stderr.contains(says) {
                wrong.push(format!("{arguments} {redirection}: {told:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_reader_that_left_hears_nothing_and_the_status_says_it() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    let left = "| true; echo ${PIPESTATUS[0]}";
    let mut command = place.command("bash");
    command.env("PROGRAM", PELLUCID);
    // The pipe's reader is gone before the first line is written.
    command.args(["-c", &format!("(sleep 0.3; exec \"$PROGRAM\" cert list) {left}")]);
    let told = said(&mut command);
    assert_eq!((told.stdout.trim(), told.stderr.as_str()), ("1", ""), "{told:?}");
}

#[test]
fn what_a_command_changes_is_changed_all_the_same() {
    let place = Place::new();
    place.plain("app.db");
    let told = shown(&place, "encrypt app.db", ">/dev/full");
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.stderr.contains("what was printed is not whole"), "{told:?}");
    place.pellucid(&["check", "app.db"]).succeeded();
    let told = shown(&place, "backup app.db --to app.bak", ">&-");
    assert_eq!(told.code, 1, "{told:?}");
    place.pellucid(&["verify", "app.bak"]).succeeded();
}

//! Goal: what SQL Server has a message for is told by it, number and words, to whoever meets it.
//!
//! Method: a table. Each row says what is done and which message is told, word for word from SQL Server's list, and that
//! nothing was changed then. What a table of commands cannot bring about has a test of its own.

use std::process::Stdio;

use pellucid::header::{EncryptionState, COPY_OFFSETS};
use pellucid::scan::ScanState;
use serde_json::Value;

use crate::rekey::query;
use crate::support::plant::rewrite_header;
use crate::support::{edit, header, said, Place, PELLUCID};

/// Which message a command tells.
struct Row {
    /// What is done, one command after the other; the last one tells it.
    commands: &'static [&'static str],
    number: u16,
    fails: bool,
    text: &'static str,
}

const fn error(commands: &'static [&'static str], number: u16, text: &'static str) -> Row {
    Row { commands, number, fails: true, text }
}

const NO_KEY: &str = "A database encryption key does not exist for this database.";
const NO_KEY_SET: &str =
    "Cannot change database encryption state because no database encryption key is set.";
const NOT_RECOVERED: &str = "Cannot enable or modify database encryption on a database that is read-only, has read-only files \
                             or is not recovered.";
const UNREADABLE: &str = "Database encryption key is corrupted and cannot be read.";
const PROTECTOR_CHANGES: &str =
    "Cannot update database encryption key protector while protector change is already in progress.";

/// In this order, on one instance. `key.db` is in the middle of a key change, aborted; `lost.db` has no whole header,
/// `half.db` was left in the middle of a conversion, and the header of `six.db` says that its protectors are being changed.
const ROWS: &[Row] = &[
    Row {
        commands: &["cert create C1", "encrypt app.db --certificate C1"],
        number: 33091,
        fails: false,
        text: "The certificate used for encrypting the database encryption key has not been backed up. You should \
               immediately back up the certificate and the private key associated with the certificate. If the \
               certificate ever becomes unavailable or if you must restore or attach the database on another server, \
               you must have backups of both the certificate and the private key or you will not be able to open the \
               database.",
    },
    error(
        &["encrypt app.db"],
        33107,
        "Cannot enable database encryption because it is already enabled.",
    ),
    error(
        &["decrypt off.db --keep-container", "decrypt off.db --keep-container"],
        33108,
        "Cannot disable database encryption because it is already disabled.",
    ),
    error(
        &["encrypt key.db"],
        33109,
        "Cannot enable database encryption while an encryption, decryption, or key change scan is in progress.",
    ),
    error(
        &["decrypt key.db --keep-container"],
        33109,
        "Cannot disable database encryption while an encryption, decryption, or key change scan is in progress.",
    ),
    error(
        &["rekey key.db"],
        33110,
        "Cannot change database encryption key while an encryption, decryption, or key change scan is in progress.",
    ),
    error(
        &["cert drop C1 --yes"],
        33127,
        "The certificate cannot be dropped because it is used by one or more databases to encrypt a Database \
         Encryption Key.",
    ),
    error(
        &["encrypt plain.db --certificate nowhere"],
        15151,
        "Cannot find the certificate 'nowhere', because it does not exist or you do not have permission.",
    ),
    error(
        &["rewrap app.db --certificate nowhere"],
        15151,
        "Cannot find the certificate 'nowhere', because it does not exist or you do not have permission.",
    ),
    error(
        &["cert create C1"],
        15232,
        "A certificate with name 'C1' already exists or this certificate already has been added to the database.",
    ),
    error(
        &["cert create C3", "cert export C3 --cert-file C3.pem", "cert drop C3 --yes", "cert import C3 --cert-file C3.pem",
          "encrypt plain.db --certificate C3"],
        33101,
        "Cannot use certificate 'C3', because its private key is not present or it is not protected by the database \
         master key. SQL Server requires the ability to automatically access the private key of the certificate used \
         for this operation.",
    ),
    error(
        &["rewrap app.db --certificate C3"],
        33101,
        "Cannot use certificate 'C3', because its private key is not present or it is not protected by the database \
         master key. SQL Server requires the ability to automatically access the private key of the certificate used \
         for this operation.",
    ),
    error(&["rekey plain.db"], 33104, NO_KEY),
    error(&["rewrap plain.db --certificate C1"], 33104, NO_KEY),
    error(&["protector add plain.db --certificate C1"], 33104, NO_KEY),
    error(&["protector drop plain.db --number 1"], 33104, NO_KEY),
    error(&["decrypt plain.db"], 33106, NO_KEY_SET),
    error(&["decrypt plain.db --keep-container"], 33106, NO_KEY_SET),
    error(&["scan suspend plain.db"], 33106, NO_KEY_SET),
    error(&["scan resume plain.db"], 33106, NO_KEY_SET),
    error(&["encrypt half.db"], 33118, NOT_RECOVERED),
    error(&["rekey half.db"], 33118, NOT_RECOVERED),
    error(&["rewrap half.db --certificate C1"], 33118, NOT_RECOVERED),
    error(&["scan resume half.db"], 33118, NOT_RECOVERED),
    error(&["encrypt lost.db"], 33126, UNREADABLE),
    error(&["decrypt lost.db"], 33126, UNREADABLE),
    error(&["decrypt lost.db --keep-container"], 33126, UNREADABLE),
    error(&["rekey lost.db"], 33126, UNREADABLE),
    error(&["rewrap lost.db --certificate C1"], 33126, UNREADABLE),
    error(&["protector list lost.db"], 33126, UNREADABLE),
    error(&["scan status lost.db"], 33126, UNREADABLE),
    Row { commands: &["status lost.db"], number: 33126, fails: false, text: UNREADABLE },
    error(&["rewrap six.db --certificate C1"], 33145, PROTECTOR_CHANGES),
    error(&["protector add six.db --certificate C1"], 33145, PROTECTOR_CHANGES),
    error(&["protector drop six.db --number 1"], 33145, PROTECTOR_CHANGES),
];

#[test]
fn every_refusal_has_sql_servers_number_and_words() {
    let place = Place::new();
    place.plain("plain.db");
    place.plain("app.db");
    let path = place.sealed("key.db", &[]);
    place.sealed("off.db", &[]);
    place.sealed("six.db", &[]);
    rewrite_header(&place, "six.db", 0, |header| header.state = EncryptionState::ProtectionChange);
    for name in ["lost.db", "half.db"] {
        edit(&place.sealed(name, &[]), |bytes| {
            COPY_OFFSETS.iter().for_each(|at| bytes[*at as usize + 40] ^= 1);
        });
    }
    std::fs::write(place.path("half.db-pellucid"), "").unwrap();
    // Stopped by a damaged page, and so in the middle of it.
    edit(&path, |bytes| bytes[16384 + 3 * 4096 + 100] ^= 1);
    assert_eq!(place.pellucid(&["rekey", "key.db"]).code, 3);
    assert_eq!(header(&path).scan.state, ScanState::Aborted);
    for row in ROWS {
        let (last, first) = row.commands.split_last().unwrap();
        for command in first {
            place.pellucid(&command.split(' ').collect::<Vec<_>>()).succeeded();
        }
        let before = header(&path);
        let told = place.pellucid(&last.split(' ').collect::<Vec<_>>());
        assert_eq!(told.code != 0, row.fails, "{last}: {told:?}");
        let line = format!("{} ({})", row.text, row.number);
        assert!(told.stderr.contains(&line), "{last}: {told:?}");
        assert_eq!(header(&path), before, "{last}: refused, and something was changed");
    }
    // The same for machines.
    let told = place.pellucid(&["--json", "rekey", "key.db"]);
    let facts: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(facts["message"], 33110);
}

/// Those of the scan itself, and the one of a keyring that lacks the certificate.
#[test]
fn a_scan_and_a_missing_certificate_have_sql_servers_words() {
    let place = Place::new();
    let path = place.sealed("app.db", &[]);
    let lines = place.pellucid(&["rekey", "app.db"]).succeeded();
    assert!(
        lines.contains("\nBeginning database encryption scan for database 'app.db'.\n"),
        "{lines}"
    );
    assert!(
        lines.contains("\nDatabase encryption scan for database 'app.db' is complete. ("),
        "{lines}"
    );
    edit(&path, |bytes| bytes[16384 + 3 * 4096 + 100] ^= 1);
    let told = place.pellucid(&["rekey", "app.db"]);
    let text = "Database encryption scan for database 'app.db' was aborted. Reissue ALTER DB to resume the scan. (33114)";
    assert!(told.code == 3 && told.stderr.contains(text), "{told:?}");
    edit(&path, |bytes| bytes[16384 + 3 * 4096 + 100] ^= 1);
    place.pellucid(&["scan", "resume", "app.db"]).succeeded();

    let stranger = Place::new();
    stranger.sealed_anew("own.db", &[]);
    let facts = place.pellucid(&["--json", "status", "app.db"]).succeeded();
    let facts: Value = serde_json::from_str(&facts).unwrap();
    let thumbprint = facts["keyring"]["certificates"][0]["thumbprint_sha256"].as_str().unwrap();
    for command in [&["check"][..], &["rekey"], &["decrypt"], &["scan", "verify"]] {
        let told = said(stranger.command(PELLUCID).args(command).arg(&path));
        let text = "Cannot find server certificate with thumbprint '";
        assert!(told.code == 1 && told.stderr.contains(text), "{told:?}");
        assert!(told.stderr.to_lowercase().contains(&thumbprint[..16].to_lowercase()), "{told:?}");
        assert!(told.stderr.contains("(33111)"), "{told:?}");
    }
}

/// A writer that does not end: whoever changes keys waits 20 s for it, and is told who it is.
#[test]
fn a_key_cannot_be_changed_while_somebody_holds_the_lock() {
    let place = Place::new();
    let path = place.sealed("app.db", &[]);
    place.pellucid(&["cert", "create", "C2"]).succeeded();
    let holder = "import sqlite3, sys
db = sqlite3.connect('app.db', isolation_level=None)
db.execute('BEGIN IMMEDIATE')
print('ready', flush=True)
sys.stdin.read()";
    let mut command = place.command(PELLUCID);
    command
        .args(["run", "--", "python3", "-c", holder])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut ready = [0; 5];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
    let before = header(&path);
    std::thread::scope(|scope| {
        for words in ["rekey", "rewrap --certificate C2", "protector add --certificate C2"] {
            let place = &place;
            scope.spawn(move || {
                let mut words: Vec<&str> = words.split(' ').collect();
                words.insert(if words[0] == "protector" { 2 } else { 1 }, "app.db");
                let told = place.pellucid(&words);
                let text = "CREATE/ALTER/DROP DATABASE ENCRYPTION KEY failed because a lock could not be placed on \
                            database 'app.db'. Try again later. (33116)";
                assert!(told.code == 1 && told.stderr.contains(text), "{words:?}: {told:?}");
                assert!(told.stderr.contains("held by python3 ("), "{words:?}: {told:?}");
            });
        }
    });
    assert_eq!(header(&path), before);
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// What need not be refused while a scan is under way is not: SQL Server's own list has backups and restores on it.
#[test]
fn what_does_not_touch_the_keys_goes_on_during_a_scan() {
    let place = Place::new();
    let path = place.sealed("app.db", &[]);
    let damage = || edit(&path, |bytes| bytes[16384 + 3 * 4096 + 100] ^= 1);
    let rows = query(&place, "app.db", "SELECT count(*), sum(length(b)) FROM t");
    damage();
    assert_eq!(place.pellucid(&["rekey", "app.db"]).code, 3);
    damage();
    let before = header(&path);
    assert_eq!((before.state, before.scan.state), (EncryptionState::KeyChange, ScanState::Aborted));
    for words in [
        "check app.db",
        "backup app.db --to app.bak",
        "verify app.bak --open",
        "restore app.bak --to back.db",
        "scan verify app.db",
        "protector list app.db",
    ] {
        place.pellucid(&words.split(' ').collect::<Vec<_>>()).succeeded();
        assert_eq!(header(&path), before, "{words}");
    }
    assert_eq!(query(&place, "back.db", "SELECT count(*), sum(length(b)) FROM t"), rows);
    place.pellucid(&["cert", "create", "C2"]).succeeded();
    place.pellucid(&["rewrap", "app.db", "--certificate", "C2"]).succeeded();
    assert_eq!(header(&path).state, EncryptionState::KeyChange);
    place.pellucid(&["scan", "resume", "app.db"]).succeeded();
    place.pellucid(&["cert", "drop", "pellucid", "--force"]);
    assert_eq!(query(&place, "app.db", "SELECT count(*), sum(length(b)) FROM t"), rows);
}

/// Off and on in mid-scan do not wait for its end, and say that it turns back.
#[test]
fn who_turns_a_scan_back_is_told_so() {
    let place = Place::new();
    let path = place.sealed("app.db", &[]);
    let off: &[&str] = &["decrypt", "app.db", "--keep-container"];
    let on: &[&str] = &["encrypt", "app.db"];
    let damage = || edit(&path, |bytes| bytes[16384 + 3 * 4096 + 100] ^= 1);
    for (first, under_way, back, told, end) in [
        (
            off,
            EncryptionState::Decrypting,
            on,
            "turns back, and seals what it has opened",
            EncryptionState::Encrypted,
        ),
        (off, EncryptionState::Decrypting, off, "", EncryptionState::Unencrypted),
        (
            on,
            EncryptionState::Encrypting,
            off,
            "turns back, and opens what it has sealed",
            EncryptionState::Unencrypted,
        ),
    ] {
        damage();
        let aborted = place.pellucid(first);
        assert!(aborted.code == 3 && !aborted.stdout.contains("turns back"), "{aborted:?}");
        damage();
        assert_eq!(header(&path).state, under_way);
        let last = if told.is_empty() { &["scan", "resume", "app.db"][..] } else { back };
        let said = place.pellucid(last).succeeded();
        assert!(said.contains(told), "{said}");
        assert_eq!(header(&path).state, end);
        place.pellucid(&["check", "app.db"]).succeeded();
    }
}

/// After a rotation backups go on, and after a decryption nothing needs a certificate. A differential is compared with a
/// full backup that is under the old one: it says which file lacks which key.
#[test]
fn backups_go_on_after_a_rotation_and_after_a_decryption() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    let works = |words: &str| place.pellucid(&words.split(' ').collect::<Vec<_>>()).succeeded();
    works("backup app.db --to full.bak");
    works("cert create C2");
    works("rewrap app.db --certificate C2");
    let kept = place.pellucid(&["cert", "drop", "pellucid"]);
    assert!(kept.code == 1 && kept.stderr.contains("full.bak"), "{kept:?}");
    assert!(kept.stderr.contains("(15352)"), "{kept:?}");
    works("cert drop pellucid --force");
    let told = place.pellucid(&[
        "backup",
        "app.db",
        "--to",
        "d.bak",
        "--differential",
        "--base",
        "full.bak",
    ]);
    assert_eq!(told.code, 1, "{told:?}");
    for text in [
        "the full backup in `full.bak` does not open",
        "certificate `pellucid`",
        "(33111)",
        "take a full backup",
    ] {
        assert!(told.stderr.contains(text), "{text}: {told:?}");
    }
    assert!(!place.path("d.bak").exists());
    works("backup app.db --to new.bak");
    works("backup app.db --to new.diff --differential --base new.bak");

    works("decrypt app.db");
    works("cert drop C2 --force");
    works("backup app.db --to plain.bak");
    works("restore plain.bak --to back.db");
    assert_eq!(place.sqlite3("back.db", "SELECT count(*) FROM t").succeeded().trim(), "200");
}

//! Goal: an administrator changes keys while programs use the database; the old ones open nothing afterwards.
//!
//! Method: the program from outside, its messages word by word; the header as it lies on disk. Kills are in `kills`.

use std::time::{Duration, Instant};

use pellucid::header::{EncryptionState, COPY_OFFSETS};
use pellucid::scan::ScanState;
use pellucid::Algorithm;

use crate::support::{edit, header, said, Place, PELLUCID};

pub fn query(place: &Place, name: &str, sql: &str) -> String {
    place.pellucid(&["run", "--", "sqlite3", "-batch", name, sql]).succeeded()
}

/// A sealed database of some megabytes in WAL mode.
pub fn large(place: &Place) {
    of_rows(place, 8000);
}

/// One that takes half a minute at 1 MB a second: whoever looks at a scan of it finds it under way, on a busy machine too.
pub fn slow(place: &Place) {
    of_rows(place, SLOW_ROWS);
}

pub const SLOW_ROWS: u32 = 30_000;

fn of_rows(place: &Place, rows: u32) {
    place.plain("app.db");
    let sql = format!("PRAGMA journal_mode = WAL; {}", more_rows(rows));
    place.sqlite3("app.db", &sql).succeeded();
    place.pellucid(&["encrypt", "app.db"]).succeeded();
}

/// So many rows of a thousand bytes.
pub fn more_rows(rows: u32) -> String {
    format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         INSERT INTO t SELECT NULL, hex(randomblob(500)) FROM n;"
    )
}

pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(300), "{what} does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_rekey_says_what_sql_server_says_and_changes_the_key() {
    let place = Place::new();
    let path = place.sealed("app.db", &[]);
    let before = header(&path);
    let rows = query(&place, "app.db", "SELECT count(*), sum(length(b)) FROM t");
    let said = place.pellucid(&["rekey", "app.db", "--algorithm", "AES_192"]).succeeded();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[1], "Beginning database encryption scan for database 'app.db'.");
    assert!(
        lines[2].starts_with("Database encryption scan for database 'app.db' is complete."),
        "{said}"
    );
    let after = header(&path);
    assert_eq!((after.state, after.scan.state), (EncryptionState::Encrypted, ScanState::Complete));
    assert_eq!(after.algorithm().unwrap().name(), "AES_192");
    assert_eq!(after.deks.len(), 1);
    assert_ne!(after.deks[0].commitment, before.deks[0].commitment);
    assert!(after.scan.regenerated > 0 && after.scan.modified >= after.scan.regenerated);
    assert_eq!(query(&place, "app.db", "SELECT count(*), sum(length(b)) FROM t"), rows);
    place.pellucid(&["check", "app.db"]).succeeded();
    let events = place.pellucid(&["events"]).succeeded();
    assert!(events.contains("rekeyed"), "{events}");
}

/// The keyring remembers a database by its whole path, whatever it was called when its keys changed: otherwise nobody looks
/// after it from another directory, and its certificate may be dropped there.
#[test]
fn a_database_is_known_from_everywhere_after_its_keys_changed() {
    let place = Place::new();
    let path = place.sealed("app.db", &[]);
    place.secret("pass", b"a long passphrase");
    let elsewhere = |words: &str| {
        let mut command = place.command(PELLUCID);
        said(command.current_dir("/").args(words.split(' ')))
    };
    for change in [
        "rekey app.db",
        "protector add ./app.db --new-passphrase-file pass",
        "protector drop app.db --number 2",
        "rewrap app.db --certificate pellucid",
        "decrypt --keep-container app.db",
        "encrypt app.db",
    ] {
        place.pellucid(&change.split(' ').collect::<Vec<_>>()).succeeded();
        let facts: serde_json::Value =
            serde_json::from_str(&elsewhere("--json status").succeeded()).unwrap();
        let known = facts["databases"][0]["database"].as_str();
        assert_eq!(known, path.to_str(), "{change}");
        let refused = elsewhere("cert drop pellucid");
        assert!(refused.stderr.contains("(33127)"), "{change}: {refused:?}");
    }
}

#[test]
fn a_scan_in_the_background_is_seen_suspended_and_resumed() {
    let place = Place::new();
    slow(&place);
    let path = place.path("app.db");
    place.pellucid(&["rekey", "app.db", "--background", "--throttle", "1"]).succeeded();
    let status = || -> serde_json::Value {
        let said = place.pellucid(&["--json", "scan", "status", "app.db"]).succeeded();
        serde_json::from_str::<serde_json::Value>(&said).unwrap()["scans"][0].clone()
    };
    wait_for("progress", || {
        status()["percent_complete"].as_f64().is_some_and(|percent| percent > 0.0)
    });
    let seen = status();
    assert_eq!(
        (seen["state"].as_str(), seen["scan"].as_str()),
        (Some("key change"), Some("running"))
    );
    assert!(seen["percent_complete"].as_f64().unwrap() < 100.0, "{seen}");

    place.pellucid(&["scan", "suspend", "app.db"]).succeeded();
    assert_eq!(header(&path).scan.state, ScanState::Suspended);
    let refused = place.pellucid(&["rekey", "app.db"]);
    assert_eq!(refused.code, 1);
    let text = "Cannot change database encryption key while an encryption, decryption, or key change scan is in progress.";
    assert!(refused.stderr.contains(text) && refused.stderr.contains("(33110)"), "{refused:?}");
    let verify = || place.pellucid(&["scan", "verify", "app.db"]);
    let told = verify().succeeded();
    assert!(told.contains("pages are under an older key; the scan is suspended"), "{told}");
    // Suspended is not slowed down: nothing of it goes on.
    wait_for("the end of its process", || status()["process"]["running"] == false);
    let far = status()["percent_complete"].clone();
    query(&place, "app.db", "UPDATE t SET b = b || 'x' WHERE a < 50");
    std::thread::sleep(Duration::from_millis(1300));
    assert_eq!(status()["percent_complete"], far);

    place.pellucid(&["scan", "resume", "app.db"]).succeeded();
    let after = header(&path);
    assert_eq!((after.state, after.deks.len()), (EncryptionState::Encrypted, 1));
    place.pellucid(&["check", "app.db"]).succeeded();
    let told = verify().succeeded();
    assert!(told.contains("pages are under the current key") && told.contains("all of"), "{told}");
    edit(&path, |bytes| {
        let generation = bytes.len() - 20;
        bytes[generation..][..4].copy_from_slice(&1u32.to_be_bytes());
    });
    let told = verify();
    assert!(told.code == 3 && told.stdout.contains("1 of"), "{told:?}");
    let again = place.pellucid(&["scan", "suspend", "app.db"]);
    assert!(again.code == 1 && again.stderr.contains("no scan of it is under way"), "{again:?}");
}

/// The process in the background has the key that was named, and a suspension at once is not undone by its start.
#[test]
fn a_scan_in_the_background_brings_its_key_and_stays_suspended() {
    let place = Place::new();
    let key = place.secret("raw.key", &[9; 32]).display().to_string();
    let path = place.sealed("app.db", &["--key-file", &key]);
    for _ in 0..5 {
        let rekey = ["rekey", "app.db", "--key-file", &key, "--background", "--throttle", "1"];
        place.pellucid(&rekey).succeeded();
        place.pellucid(&["scan", "suspend", "app.db", "--key-file", &key]);
        std::thread::sleep(Duration::from_millis(300));
        let state = header(&path).scan.state;
        if state != ScanState::Complete {
            assert_eq!(state, ScanState::Suspended);
            let resume = ["scan", "resume", "app.db", "--key-file", &key, "--background"];
            let resumed = place.pellucid(&resume);
            // Whose last batch was written has nothing left to stop, and ends.
            let has_ended = resumed.stderr.contains("no scan of it is under way");
            assert!(resumed.code == 0 || has_ended, "{resumed:?}");
        }
        wait_for("the end", || header(&path).scan.state == ScanState::Complete);
    }
}

#[test]
fn a_copy_is_separated_from_what_it_was_copied_from() {
    let place = Place::new();
    let path = place.sealed("app.db", &[]);
    std::fs::copy(&path, place.path("copy.db")).unwrap();
    let told =
        place.pellucid(&["rekey", "copy.db", "--new-id", "--algorithm", "AES_128"]).succeeded();
    let (one, other) = (header(&path), header(&place.path("copy.db")));
    assert_ne!(one.file_id, other.file_id);
    assert_eq!(other.algorithm().unwrap(), Algorithm::Aes128);
    let id = pellucid::hash::hex(&other.file_id);
    assert!(told.contains(&format!("a new file id, {id}")), "{told}");
    assert!(told.contains("scan for database 'copy.db' is complete"), "{told}");
    let events = place.pellucid(&["events", "--last", "1"]).succeeded();
    assert!(events.contains("copy.db` separated from its copies"), "{events}");
    // The keyring knows both; each is in the way of dropping their certificate.
    let listed = place.pellucid(&["status"]).succeeded();
    assert!(listed.contains("/app.db") && listed.contains("/copy.db"), "{listed}");
    for name in ["app.db", "copy.db"] {
        let refused = place.pellucid(&["cert", "drop", "pellucid"]);
        assert!(refused.stderr.contains("(33127)"), "{name}: {refused:?}");
        place.pellucid(&["check", name]).succeeded();
        std::fs::remove_file(place.path(name)).unwrap();
    }
    place.pellucid(&["cert", "drop", "pellucid", "--force"]).succeeded();

    // The file that the keyring knew: its older identity is in nobody's way afterwards.
    let path = place.sealed("moved.db", &[]);
    place.pellucid(&["rekey", "moved.db", "--new-id"]).succeeded();
    place.pellucid(&["cert", "create", "C2"]).succeeded();
    place.pellucid(&["rewrap", "--all-under", "pellucid", "--certificate", "C2"]).succeeded();
    place.pellucid(&["cert", "drop", "pellucid"]).succeeded();
    place.pellucid(&["check", "moved.db"]).succeeded();
    assert_eq!(header(&path).scan.older_id, None);
}

#[test]
fn a_rekey_needs_the_key_of_every_protector() {
    let place = Place::new();
    let path = place.sealed("app.db", &[]);
    let passphrase = place.secret("pass", b"a long passphrase").display().to_string();
    let key = place.secret("raw.key", &[9; 32]).display().to_string();
    let add = ["protector", "add", "app.db"];
    place.pellucid(&[&add[..], &["--new-passphrase-file", &passphrase]].concat()).succeeded();
    place.pellucid(&[&add[..], &["--new-key-file", &key]].concat()).succeeded();
    let before = header(&path);
    let refused = place.pellucid(&["rekey", "app.db", "--key-file", &key]);
    assert!(
        refused.code == 1 && refused.stderr.contains("protector 2: its passphrase is not at hand"),
        "{refused:?}"
    );
    assert_eq!(header(&path), before, "nothing was changed");
    place
        .pellucid(&["rekey", "app.db", "--key-file", &key, "--passphrase-file", &passphrase])
        .succeeded();
    let keyring = place.path("keys");
    place.pellucid(&["check", "app.db"]).succeeded();
    std::fs::rename(&keyring, place.path("elsewhere")).unwrap();
    place.pellucid(&["check", "app.db", "--key-file", &key]).succeeded();
    place.pellucid(&["check", "app.db", "--passphrase-file", &passphrase]).succeeded();
    assert_ne!(place.pellucid(&["check", "app.db"]).code, 0);
}

#[test]
fn after_a_rewrap_the_old_certificate_opens_nothing() {
    let place = Place::new();
    let path = place.sealed("app.db", &[]);
    place.sealed("other.db", &[]);
    place.pellucid(&["cert", "create", "C2"]).succeeded();
    let before = header(&path);
    let refused = place.pellucid(&["cert", "drop", "pellucid"]);
    assert!(refused.stderr.contains("(33127)"), "{refused:?}");
    place.pellucid(&["rewrap", "--all-under", "pellucid", "--certificate", "C2"]).succeeded();
    let after = header(&path);
    assert_eq!(after.deks, before.deks, "the key is the same, and so are the pages");
    assert_ne!(after.protectors, before.protectors);
    assert!(after.scan.keys_modified > 0);
    for name in ["app.db", "other.db"] {
        place.pellucid(&["check", name]).succeeded();
    }
    // A keyring with the old certificate alone.
    let stranger = Place::new();
    place.copy_to(&stranger);
    stranger.pellucid(&["cert", "drop", "C2", "--force", "--yes"]);
    std::fs::remove_file(stranger.path("keys/keyring/certificates/C2")).ok();
    let file = std::fs::read(stranger.path("app.db")).unwrap();
    for old in &before.protectors {
        let found = file.windows(old.len()).position(|window| window == old);
        assert_eq!(found, None, "what the old certificate protected is still in the file");
    }
    // Whichever copy of the header is the newer one: damaged by hand, the other one is read.
    for damaged in [None, Some(0), Some(1)] {
        std::fs::write(stranger.path("app.db"), &file).unwrap();
        if let Some(copy) = damaged {
            edit(&stranger.path("app.db"), |bytes| bytes[COPY_OFFSETS[copy] as usize + 40] ^= 1);
        }
        for command in
            [&["check", "app.db"][..], &["rekey", "app.db", "--yes"], &["decrypt", "app.db"]]
        {
            let refused = stranger.pellucid(command);
            assert!(refused.stderr.contains("(33111)"), "copy {damaged:?} damaged: {refused:?}");
        }
    }
    place.pellucid(&["cert", "drop", "pellucid", "--yes"]).succeeded();
}

#[test]
fn a_database_that_cannot_be_seen_needs_its_certificate_as_much() {
    let place = Place::new();
    place.sealed("here.db", &[]);
    std::fs::create_dir(place.path("disk")).unwrap();
    place.sealed("disk/far.db", &[]);
    place.pellucid(&["cert", "create", "C2"]).succeeded();
    std::fs::rename(place.path("disk"), place.path("away")).unwrap();
    let told = place.pellucid(&["rewrap", "--all-under", "pellucid", "--certificate", "C2"]);
    assert!(told.code == 1 && told.stdout.contains("here.db: protected anew"), "{told:?}");
    assert!(told.stderr.contains("disk/far.db`: skipped"), "{told:?}");
    let refused = place.pellucid(&["cert", "drop", "pellucid"]);
    assert!(refused.code == 1 && refused.stderr.contains("(33127)"), "{refused:?}");
    assert!(refused.stderr.contains("disk/far.db` (cannot be seen now)"), "{refused:?}");
    std::fs::rename(place.path("away"), place.path("disk")).unwrap();
    place.pellucid(&["rewrap", "--all-under", "pellucid", "--certificate", "C2"]).succeeded();
    place.pellucid(&["cert", "drop", "pellucid"]).succeeded();
    place.pellucid(&["check", "disk/far.db"]).succeeded();
}

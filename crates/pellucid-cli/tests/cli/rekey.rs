//! Goal: an administrator changes keys while programs use the database; the old ones open nothing afterwards, and
//! whatever is killed on the way, nothing is lost.
//!
//! Method: the program from outside, its messages word by word; the header as it lies on disk; writers that note what was
//! acknowledged, killed together with the scan at random moments.
//!
//! More kills: PELLUCID_REKEY_KILLS=300 cargo test --release --workspace --test cli rekey -- --nocapture

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use pellucid::header::EncryptionState;
use pellucid::scan::ScanState;

use crate::support::{edit, header, said, Place, PELLUCID};

fn query(place: &Place, name: &str, sql: &str) -> String {
    place.pellucid(&["run", "--", "sqlite3", "-batch", name, sql]).succeeded()
}

/// A sealed database of some megabytes in WAL mode.
fn large(place: &Place) {
    let sql = "PRAGMA journal_mode = WAL;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000)
        INSERT INTO t SELECT NULL, hex(randomblob(500)) FROM n;";
    place.plain("app.db");
    place.sqlite3("app.db", sql).succeeded();
    place.pellucid(&["encrypt", "app.db"]).succeeded();
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} does not come");
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

#[test]
fn a_scan_in_the_background_is_seen_suspended_and_resumed() {
    let place = Place::new();
    large(&place);
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
    std::thread::sleep(Duration::from_millis(300));
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
        if header(&path).scan.state != ScanState::Complete {
            assert_eq!(header(&path).scan.state, ScanState::Suspended);
            let resume = ["scan", "resume", "app.db", "--key-file", &key, "--background"];
            place.pellucid(&resume).succeeded();
        }
        wait_for("the end", || header(&path).scan.state == ScanState::Complete);
    }
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
    for damaged in [false, true] {
        if damaged {
            edit(&stranger.path("app.db"), |bytes| bytes[2048 + 40] ^= 1);
        }
        let refused = stranger.pellucid(&["check", "app.db"]);
        assert!(refused.stderr.contains("(33111)"), "copy 0 damaged: {damaged}: {refused:?}");
    }
    place.pellucid(&["cert", "drop", "pellucid", "--yes"]).succeeded();
}

/// Inserts rows with numbers of its own and notes each once it is committed.
const WRITER: &str = r"
import os, sqlite3, sys
name, first, noted = sys.argv[1], int(sys.argv[2]), open(sys.argv[3], 'ab', 0)
db = sqlite3.connect(name, timeout=20, isolation_level=None)
number = first
while True:
    db.execute('BEGIN IMMEDIATE')
    db.execute('INSERT INTO noted VALUES (?, ?)', (number, os.urandom(300)))
    db.execute('UPDATE t SET b = b || ? WHERE a = ?', ('.', number % 7000))
    db.execute('COMMIT')
    noted.write(b'%d\n' % number)
    number += 1
";

struct Writers<'a> {
    place: &'a Place,
    begun: u64,
    running: Vec<Child>,
}

impl Writers<'_> {
    fn start(&mut self) {
        self.begun += 1;
        let first = (self.begun * 1_000_000).to_string();
        let mut command = self.place.command(PELLUCID);
        command.args(["run", "--", "python3", "-c", WRITER, "app.db", &first, "noted"]);
        command.stderr(Stdio::null());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        self.running.push(command.spawn().unwrap());
    }

    /// Kills one as if the machine's memory had run out, and starts another.
    fn kill_one(&mut self) {
        kill(&mut self.running.remove(0));
        self.start();
    }
}

/// The process and those it has started.
fn kill(child: &mut Child) {
    let group = rustix::process::Pid::from_child(child);
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    child.wait().unwrap();
}

fn scanner(place: &Place, path: &Path) -> Child {
    let mut command = place.command(PELLUCID);
    match header(path).scan.state.is_under_way() {
        true => command.args(["--quiet", "scan", "resume", "app.db"]),
        false => command.args(["--quiet", "rekey", "app.db"]),
    };
    command.stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().unwrap()
}

#[test]
fn kills_of_scan_and_writers_lose_nothing() {
    let kills: u64 = std::env::var("PELLUCID_REKEY_KILLS").map_or(12, |text| text.parse().unwrap());
    for mode in ["wal", "delete"] {
        let place = Place::new();
        large(&place);
        let path = place.path("app.db");
        query(
            &place,
            "app.db",
            &format!("PRAGMA journal_mode = {mode}; CREATE TABLE noted(a INTEGER PRIMARY KEY, b)"),
        );
        let mut writers = Writers { place: &place, begun: 0, running: Vec::new() };
        writers.start();
        writers.start();
        let (mut random, mut ended, mut rekeys) = (0x9e37_79b9_u64, 0, 0);
        let mut scan = scanner(&place, &path);
        for turn in 0..kills {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            std::thread::sleep(Duration::from_millis(random >> 33 & 255));
            if scan.try_wait().unwrap().is_some() {
                ended += 1;
                rekeys += u64::from(header(&path).scan.state == ScanState::Complete);
                scan = scanner(&place, &path);
            }
            if turn % 3 != 0 {
                kill(&mut scan);
                scan = scanner(&place, &path);
            }
            if turn % 3 != 1 {
                writers.kill_one();
            }
        }
        kill(&mut scan);
        writers.running.iter_mut().for_each(kill);
        if header(&path).scan.state.is_under_way() {
            place.pellucid(&["scan", "resume", "app.db"]).succeeded();
        }
        let last = header(&path);
        assert_eq!((last.state, last.deks.len()), (EncryptionState::Encrypted, 1), "{mode}");
        place.pellucid(&["check", "app.db"]).succeeded();
        let found = query(&place, "app.db", "SELECT a FROM noted");
        let found: std::collections::HashSet<&str> = found.lines().collect();
        let noted = std::fs::read_to_string(place.path("noted")).unwrap();
        let lost: Vec<&str> = noted.lines().filter(|line| !found.contains(line)).collect();
        println!(
            "{mode}: {kills} kills, {ended} scans ended, {rekeys} complete, {} commits noted",
            noted.lines().count()
        );
        assert_eq!(lost, [""; 0], "{mode}");
        assert!(noted.lines().count() > 20, "{mode}: the writers did nothing");
        let rows = said(place.command(PELLUCID).args([
            "run",
            "--",
            "sqlite3",
            "app.db",
            "SELECT count(*) FROM t",
        ]));
        assert_eq!(rows.succeeded().trim(), "8200", "{mode}");
    }
}

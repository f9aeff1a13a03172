//! Goal: every encryption state and scan state of SQL Server's, as an administrator meets it.
//!
//! Method: tables. Each row says what is done and what `status --json` has to say then, under the names of
//! `sys.dm_database_encryption_keys`. A damaged page stops a scan where it is wanted, a throttle keeps it running. Then
//! every state with every scan state, in headers that are made for it. Messages are in `messages`.

use pellucid::header::EncryptionState;
use pellucid::scan::ScanState;
use pellucid::sector::SECTOR_BYTES;
use serde_json::Value;

use crate::rekey::{slow, wait_for};
use crate::support::plant::{put_progress, rewrite_header};
use crate::support::{edit, extension, said, Place};

/// In a page that the first batches of a scan come to.
const DAMAGED_AT: usize = 16384 + 99 * 4096 + 100;

fn seen(place: &Place, name: &str) -> Value {
    let said = place.pellucid(&["--json", "status", name]).succeeded();
    let facts: Value = serde_json::from_str(&said).unwrap();
    facts["databases"][0]["encryption"].clone()
}

/// States and their words, and whether the percentage is 0, between, or not looked at.
fn is(seen: &Value, state: (u8, &str), scan: (u8, &str)) {
    let told = [
        seen["encryption_state"].clone(),
        seen["encryption_state_desc"].clone(),
        seen["encryption_scan_state"].clone(),
        seen["encryption_scan_state_desc"].clone(),
    ];
    let wanted = [state.0.into(), state.1.into(), scan.0.into(), Value::from(scan.1)];
    assert_eq!(told, wanted, "{seen}");
    let percent = seen["percent_complete"].as_f64().unwrap();
    match scan.0 {
        // Nothing is going on.
        0 | 4 => assert_eq!(percent, 0.0, "{seen}"),
        _ => assert!((0.0..100.0).contains(&percent), "{seen}"),
    }
    assert_eq!(seen["encryption_scan_modify_date"].is_string(), scan.0 != 0, "{seen}");
}

/// A date, of a century in which this was made.
fn date(seen: &Value, name: &str) -> String {
    let date = seen[name].as_str().unwrap_or_else(|| panic!("{name}: {seen}"));
    assert!(date.len() == 20 && date.starts_with("20") && date.ends_with('Z'), "{date}");
    date.to_owned()
}

const DATES: [&str; 4] = ["create_date", "regenerate_date", "modify_date", "set_date"];

/// Damages a page, or mends it.
fn flip(place: &Place) {
    edit(&place.path("app.db"), |bytes| bytes[DAMAGED_AT] ^= 1);
}

#[test]
fn every_state_is_told_with_its_words_percentage_and_dates() {
    let place = Place::new();
    place.plain("app.db");
    is(&seen(&place, "app.db"), (0, "NONE"), (0, "NONE"));
    std::fs::remove_file(place.path("app.db")).unwrap();
    slow(&place);
    let fresh = seen(&place, "app.db");
    is(&fresh, (3, "ENCRYPTED"), (0, "NONE"));
    let made = DATES.map(|name| date(&fresh, name));
    assert!(made.iter().all(|one| *one == made[0]), "all of them with the container: {fresh}");

    // Three ways through the same states: which command, which state while it goes on, and which one at its end.
    type Told = (u8, &'static str);
    let changes: [(&[&str], Told, Told); 3] = [
        (&["rekey", "app.db"], (4, "KEY_CHANGE_IN_PROGRESS"), (3, "ENCRYPTED")),
        (
            &["decrypt", "app.db", "--keep-container"],
            (5, "DECRYPTION_IN_PROGRESS"),
            (1, "UNENCRYPTED"),
        ),
        (&["encrypt", "app.db"], (2, "ENCRYPTION_IN_PROGRESS"), (3, "ENCRYPTED")),
    ];
    let mut before = fresh;
    for (command, state, end) in changes {
        // Later than whatever was before, by a second at least.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        flip(&place);
        assert_eq!(place.pellucid(command).code, 3, "{command:?}");
        let aborted = seen(&place, "app.db");
        is(&aborted, state, (3, "ABORTED"));
        assert_eq!(aborted["scan_process"]["running"], false);
        for name in ["regenerate_date", "modify_date"] {
            assert!(date(&aborted, name) > date(&before, name), "{name}: {aborted}");
        }
        assert_eq!(date(&aborted, "create_date"), made[0]);
        let switched = date(&aborted, "set_date") > date(&before, "set_date");
        assert_eq!(switched, command[0] != "rekey", "{aborted}");

        flip(&place);
        let resume = ["scan", "resume", "app.db", "--background", "--throttle", "1"];
        place.pellucid(&resume).succeeded();
        wait_for("progress", || seen(&place, "app.db")["percent_complete"].as_f64() > Some(0.0));
        let running = seen(&place, "app.db");
        is(&running, state, (1, "RUNNING"));
        assert_eq!(running["scan_process"]["running"], true, "{running}");

        place.pellucid(&["scan", "suspend", "app.db"]).succeeded();
        is(&seen(&place, "app.db"), state, (2, "SUSPENDED"));
        wait_for("the end of it", || seen(&place, "app.db")["scan_process"]["running"] == false);
        place.pellucid(&["scan", "resume", "app.db"]).succeeded();
        let complete = seen(&place, "app.db");
        is(&complete, end, (4, "COMPLETE"));
        assert_eq!(complete["scan_process"], Value::Null);
        assert_eq!(date(&complete, "set_date"), date(&aborted, "set_date"));
        before = complete;
    }

    // A rewrap is one change of the header, so nobody ever sees it half done; a file that says so is told as that.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    place.pellucid(&["cert", "create", "C2"]).succeeded();
    place.pellucid(&["rewrap", "app.db", "--certificate", "C2"]).succeeded();
    let after = seen(&place, "app.db");
    is(&after, (3, "ENCRYPTED"), (4, "COMPLETE"));
    assert!(date(&after, "modify_date") > date(&before, "modify_date"));
    assert_eq!(date(&after, "regenerate_date"), date(&before, "regenerate_date"));
    // Sealed as a version that has such a change would seal it: one edited by hand is refused for that alone.
    rewrite_header(&place, "app.db", 0, |header| header.state = EncryptionState::ProtectionChange);
    let says = seen(&place, "app.db");
    is(&says, (6, "PROTECTION_CHANGE_IN_PROGRESS"), (4, "COMPLETE"));
    let refused = place.pellucid(&["check", "app.db"]);
    assert!(
        refused.stderr.contains("state `protection change` needs a newer version"),
        "{refused:?}"
    );
}

const STATES: [(EncryptionState, &str, &str); 6] = [
    (EncryptionState::Unencrypted, "UNENCRYPTED", "unencrypted"),
    (EncryptionState::Encrypting, "ENCRYPTION_IN_PROGRESS", "encrypting"),
    (EncryptionState::Encrypted, "ENCRYPTED", "encrypted"),
    (EncryptionState::KeyChange, "KEY_CHANGE_IN_PROGRESS", "key change"),
    (EncryptionState::Decrypting, "DECRYPTION_IN_PROGRESS", "decrypting"),
    (EncryptionState::ProtectionChange, "PROTECTION_CHANGE_IN_PROGRESS", "protection change"),
];
const SCANS: [(ScanState, &str, &str); 5] = [
    (ScanState::None, "NONE", "none"),
    (ScanState::Running, "RUNNING", "running"),
    (ScanState::Suspended, "SUSPENDED", "suspended"),
    (ScanState::Aborted, "ABORTED", "aborted"),
    (ScanState::Complete, "COMPLETE", "complete"),
];
/// 2026-03-04 05:06:07 and each a day later.
const AT: u64 = 1_772_600_767;
const TOLD: [&str; 5] = [
    "2026-03-04T05:06:07Z",
    "2026-03-05T05:06:07Z",
    "2026-03-06T05:06:07Z",
    "2026-03-07T05:06:07Z",
    "2026-03-08T05:06:07Z",
];

/// Also those that follow one another never: whoever looks is told what the file says, by `status`, by `scan status`, for
/// monitoring and from SQL.
#[test]
fn every_state_with_every_scan_state_is_told_by_each_that_tells() {
    let place = Place::new();
    let path = place.sealed("app.db", &[]);
    put_progress(&place, "app.db", 25, 100);
    let load = format!(".load {}", extension(&place));
    for (state, description, word) in STATES {
        for (scan, scan_description, scan_word) in SCANS {
            rewrite_header(&place, "app.db", 0, |header| {
                const DAY: u64 = 86_400;
                (header.state, header.scan.state) = (state, scan);
                (header.created, header.scan.regenerated) = (AT, AT + DAY);
                (header.scan.keys_modified, header.scan.set) = (AT + 2 * DAY, AT + 3 * DAY);
                header.scan.modified = if scan == ScanState::None { 0 } else { AT + 4 * DAY };
            });
            let row = seen(&place, "app.db");
            is(&row, (state as u8, description), (scan as u8, scan_description));
            let under_way = (1..=3).contains(&(scan as u8));
            assert_eq!(row["percent_complete"], if under_way { 25.0 } else { 0.0 }, "{row}");
            let names = ["create_date", "regenerate_date", "modify_date", "set_date"];
            let dates = names.map(|name| date(&row, name));
            assert_eq!(dates, TOLD.map(str::to_owned)[..4], "{row}");
            let changed = (scan != ScanState::None).then_some(TOLD[4]);
            assert_eq!(row["encryption_scan_modify_date"].as_str(), changed, "{row}");

            let told = place.pellucid(&["status", "app.db"]).succeeded();
            let shown = if under_way { format!("{word}, 25 %") } else { format!("{word} ") };
            assert!(told.contains(&shown), "{word}, {scan_word}: {told}");
            assert_eq!(told.contains(&TOLD[4].replace(['T', 'Z'], " ")[..19]), changed.is_some());
            let told = place.pellucid(&["scan", "status", "app.db"]).succeeded();
            let cells: Vec<&str> =
                told.lines().last().unwrap().split("   ").map(str::trim).collect();
            let done = if under_way { "25.0 %" } else { "-" };
            assert_eq!(
                cells.iter().filter(|cell| !cell.is_empty()).copied().take(4).collect::<Vec<_>>(),
                ["app.db", word, scan_word, done],
                "{told}"
            );
            let told = place.pellucid(&["status", "--prometheus", "app.db"]).succeeded();
            let metric = format!(
                "pellucid_database_encryption_state{{database=\"app.db\"}} {}\n",
                state as u8
            );
            assert!(told.contains(&metric), "{told}");
            let sql = format!(
                "SELECT encryption_state, encryption_state_desc, encryption_scan_state, encryption_scan_state_desc, \
                 percent_complete, encryption_scan_modify_date FROM pellucid_encryption_keys WHERE path = '{}'",
                path.display()
            );
            let mut command = place.command("/usr/bin/sqlite3");
            let told = said(command.args(["-batch", "-cmd", &load, ":memory:", &sql])).succeeded();
            let percent = if under_way { "25.0" } else { "0.0" };
            let changed = changed
                .map_or_else(String::new, |at| at.replace(['T', 'Z'], " ").trim().to_owned());
            let wanted = format!(
                "{}|{description}|{}|{scan_description}|{percent}|{changed}",
                state as u8, scan as u8
            );
            assert_eq!(told.trim_end(), wanted);
        }
    }
}

/// A database of one page, of less than a header and of more, killed when its first sector was a container's and the rest
/// still lay in the copy.
#[test]
fn an_encryption_that_was_killed_is_told_as_interrupted_at_any_size() {
    for pages in [1, 2, 3, 4, 9] {
        let place = Place::new();
        let path = place.path("app.db");
        let fill = match pages {
            1 => "PRAGMA user_version = 1",
            2 => "CREATE TABLE t(a)",
            _ => "CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(2000 * (SELECT 2 * pages FROM p)))",
        };
        let fill = fill.replace("(SELECT 2 * pages FROM p)", &(2 * (pages - 2)).to_string());
        place.sqlite3("app.db", &fill).succeeded();
        let plain = std::fs::read(&path).unwrap();
        place.pellucid(&["encrypt", "app.db"]).succeeded();
        let sealed = std::fs::read(&path).unwrap();
        std::fs::write(place.path("app.db-pellucid"), &sealed).unwrap();
        let begun = [&sealed[..SECTOR_BYTES], &plain[SECTOR_BYTES..]].concat();
        std::fs::write(&path, begun).unwrap();
        let said = place.pellucid(&["--json", "status", "app.db"]).succeeded();
        let facts: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(facts["databases"][0]["kind"], "interrupted", "{pages} pages: {said}");
        let read = ["run", "--", "/usr/bin/sqlite3", "app.db", "PRAGMA integrity_check"];
        assert!(place.pellucid(&read).succeeded().contains("ok"), "{pages} pages");
        let said = place.pellucid(&["--json", "status", "app.db"]).succeeded();
        let facts: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(facts["databases"][0]["kind"], "encrypted", "{pages} pages: {said}");
    }
}

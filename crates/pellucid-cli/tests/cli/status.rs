//! Goal: `status` tells what is behind each date, and is quick over a thousand databases.
//!
//! Method: each change that a date stands for is made, a second later than the one before; all dates are compared before
//! and after. The thousand are copies of one sealed database, each known to the keyring under an id of its own.

use std::time::{Duration, Instant};

use pellucid_keyring::Keyring;

use crate::support::{header, Place};

/// Names as `sys.dm_database_encryption_keys` has them.
const DATES: [&str; 6] = [
    "create_date",
    "regenerate_date",
    "modify_date",
    "set_date",
    "opened_date",
    "encryption_scan_modify_date",
];

fn dates(place: &Place) -> [serde_json::Value; 6] {
    let said = place.pellucid(&["--json", "status", "app.db"]).succeeded();
    let facts: serde_json::Value = serde_json::from_str(&said).unwrap();
    DATES.map(|name| facts["databases"][0][name].clone())
}

#[test]
fn each_date_moves_with_what_it_stands_for() {
    let place = Place::new();
    place.secret("pass", b"a long passphrase");
    place.sealed("app.db", &[]);
    let mut before = dates(&place);
    let made = before[0].as_str().unwrap();
    assert!(made.len() == 20 && made.ends_with('Z'), "{made}");
    assert!(before[..4].iter().all(|date| date == made), "as old as the container: {before:?}");
    assert!(before[4].is_null(), "opening writes nothing");
    assert!(before[5].is_null(), "there was no scan");
    for (change, moves) in [
        ("protector add app.db --new-passphrase-file pass", vec!["modify_date"]),
        (
            "rekey app.db --passphrase-file pass",
            vec!["regenerate_date", "modify_date", "encryption_scan_modify_date"],
        ),
        (
            "decrypt --keep-container app.db --passphrase-file pass",
            vec!["regenerate_date", "modify_date", "set_date", "encryption_scan_modify_date"],
        ),
        (
            "encrypt app.db --passphrase-file pass",
            vec!["regenerate_date", "modify_date", "set_date", "encryption_scan_modify_date"],
        ),
        ("protector drop app.db --number 2", vec!["modify_date"]),
        ("check app.db", vec![]),
    ] {
        // A date is a whole second.
        std::thread::sleep(Duration::from_millis(1100));
        place.pellucid(&change.split(' ').collect::<Vec<_>>()).succeeded();
        let after = dates(&place);
        let moved: Vec<&str> =
            (0..6).filter(|at| before[*at] != after[*at]).map(|at| DATES[at]).collect();
        assert_eq!(moved, moves, "{change}");
        assert!((0..6).all(|at| before[at].as_str() <= after[at].as_str()), "{after:?}");
        before = after;
    }
    // For people, the same.
    let shown = place.pellucid(&["status", "app.db"]).succeeded();
    let told = |date: &serde_json::Value| date.as_str().unwrap().replace(['T', 'Z'], " ");
    for date in [&before[0], &before[1], &before[2], &before[3], &before[5]] {
        assert!(shown.contains(told(date).trim()), "{date} is not in {shown}");
    }
    let never = place.pellucid(&["status"]).succeeded();
    assert!(!never.contains("dates (UTC)"), "named databases only: {never}");
}

/// Far above what it takes (`PELLUCID_STATUS_LIMIT_MS` for a measurement), so that a busy machine does not fail it.
const LIMIT: Duration = Duration::from_secs(300);
const DATABASES: u32 = 1000;

#[test]
fn the_state_of_a_thousand_databases_is_told_at_once() {
    let place = Place::new();
    let first = place.sealed("0000.db", &[]);
    let keyring = Keyring::open(&place.path("keys")).unwrap();
    let memory = keyring.recall_database(&header(&first).file_id).unwrap().unwrap();
    for number in 1..DATABASES {
        let path = place.path(&format!("{number:04}.db"));
        std::fs::copy(&first, &path).unwrap();
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        let memory = pellucid_keyring::DatabaseMemory { path, ..memory.clone() };
        keyring.remember_database(&id, &memory).unwrap();
    }
    for words in [
        &["status"][..],
        &["status", "--check", "--quiet"],
        &["--json", "status"],
        &["status", "--prometheus"],
        &["doctor"],
    ] {
        let begun = Instant::now();
        let said = place.pellucid(words);
        let took = begun.elapsed();
        println!("{DATABASES} databases, pellucid {}: {} ms", words.join(" "), took.as_millis());
        assert!(matches!(said.code, 0 | 4), "{said:?}");
        if words == ["status"] {
            let rows = said.stdout.lines().filter(|line| line.contains(".db ")).count();
            assert_eq!(rows, DATABASES as usize);
        }
        let limit = std::env::var("PELLUCID_STATUS_LIMIT_MS").ok().and_then(|ms| ms.parse().ok());
        assert!(took < limit.map_or(LIMIT, Duration::from_millis), "{words:?}: {took:?}");
    }
}

//! Goal: the metrics are the same for the same facts, tell backups by the path of the database, and have what the alerts that
//! come with the package ask for.
//!
//! The rules themselves are tried by `promtool test rules packaging/prometheus/pellucid.rules.test.yml`.

use std::collections::BTreeSet;

use crate::support::{said, Place, PELLUCID};

/// The value of a metric of a database.
fn value(metrics: &str, name: &str, database: &str) -> Option<i64> {
    let mut lines = metrics.lines().filter(|line| line.starts_with(&format!("pellucid_{name}{{")));
    let line = lines.find(|line| line.contains(&format!("{database}\"")))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

#[test]
fn a_backup_counts_for_the_database_at_its_path() {
    let place = Place::new();
    for folder in ["one", "two"] {
        std::fs::create_dir(place.path(folder)).unwrap();
        place.sealed(&format!("{folder}/data.db"), &[]);
    }
    let metrics = || place.pellucid(&["status", "--prometheus"]).succeeded();
    let last = "database_last_backup_timestamp_seconds";
    let before = metrics();
    for folder in ["one", "two"] {
        assert_eq!(value(&before, last, &format!("{folder}/data.db")), Some(0), "{before}");
    }
    let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
    let began = now();
    place.pellucid(&["backup", "one/data.db", "--to", "one.bak"]).succeeded();
    let after = metrics();
    let at = value(&after, last, "one/data.db").unwrap();
    assert!((began..=now()).contains(&at), "{began} {at}\n{after}");
    place.pellucid(&["backup", "two/data.db", "--to", "NUL"]).succeeded();
    assert_eq!(value(&metrics(), last, "two/data.db"), Some(0), "it was thrown away");
    assert_eq!(value(&after, last, "two/data.db"), Some(0), "{after}");
    assert!(after.contains("\npellucid_history_unreadable 0\n"), "{after}");
    // A history that is no database any more says nothing of backups, and that it does.
    std::fs::write(place.path("keys/msdb.db"), b"not a database").unwrap();
    let lost = metrics();
    assert_eq!(value(&lost, last, "one/data.db"), None, "{lost}");
    assert!(lost.contains("\npellucid_history_unreadable 1\n"), "{lost}");
}

#[test]
fn the_same_facts_are_the_same_text() {
    let place = Place::new();
    for number in 0..8 {
        place.sealed(&format!("{number}.db"), &[]);
        place.pellucid(&["cert", "create", &format!("cert{number}")]).succeeded();
    }
    // Ages count in seconds, and of a certificate that was just made the last day ends with any of them.
    let of_the_clock = ["_age_seconds{", "_expiry_days{"];
    let metrics = || {
        let text = place.pellucid(&["status", "--prometheus"]).succeeded();
        let lines = text.lines();
        let lines = lines.filter(|line| !of_the_clock.iter().any(|name| line.contains(name)));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let first = metrics();
    for _ in 0..5 {
        assert_eq!(metrics(), first);
    }
    let sizes: Vec<_> =
        first.iter().filter(|line| line.starts_with("pellucid_database_size_bytes{")).collect();
    assert_eq!(sizes.len(), 8);
    assert!(sizes.is_sorted());
}

#[test]
fn each_metric_of_the_alerts_is_there_and_on_the_page() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.pellucid(&["upgrade", "app.db"]).succeeded();
    let wal = ["run", "--", "sqlite3", "app.db", "PRAGMA journal_mode=WAL"];
    place.pellucid(&wal).succeeded();
    place.pellucid(&["recovery", "app.db", "full"]).succeeded();
    std::fs::create_dir(place.path("out")).unwrap();
    let archive = ["archive", "app.db", "--to", "out", "--once", "--full-every", "1d"];
    place.pellucid(&archive).succeeded();
    let metrics = place.pellucid(&["status", "--prometheus"]).succeeded();
    let guide = include_str!("../../../../docs/guide/watching.md");
    let rules = include_str!("../../../../packaging/prometheus/pellucid.rules.yml");
    let is_of_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let names: BTreeSet<_> = rules
        .match_indices("pellucid_")
        .map(|(at, _)| rules[at..].split(|letter| !is_of_name(letter)).next().unwrap())
        .collect();
    assert!(names.len() > 7, "{names:?}");
    for name in &names {
        assert!(metrics.contains(&format!("\n{name}")), "{name} is in no metric\n{metrics}");
    }
    for line in metrics.lines().filter_map(|line| line.strip_prefix("# HELP ")) {
        let name = line.split(' ').next().unwrap();
        assert!(guide.contains(&format!("| `{name}` |")), "{name} is not on the page");
    }
}

/// Whoever may make files beside a database must not hide it behind another one of the same look.
#[test]
fn each_database_has_samples_of_its_own() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    const NAMES: [&[u8]; 7] = [
        b"a\xff.db",
        b"a\xfe.db",
        b"a\\xff.db",
        "a\u{fffd}.db".as_bytes(),
        b"a\r.db",
        b"a\\r.db",
        b"a\"} 3\npellucid_forged{b=\"",
    ];
    let place = Place::new();
    place.plain("app.db");
    for name in NAMES {
        let path = place.path("").join(OsStr::from_bytes(name));
        std::fs::copy(place.path("app.db"), &path).unwrap();
    }
    // One of them is no database.
    std::fs::write(place.path("").join(OsStr::from_bytes(NAMES[1])), b"a bad spot").unwrap();
    let mut asked = place.command(PELLUCID);
    asked.args(["status", "--prometheus"]).args(NAMES.map(OsStr::from_bytes));
    let metrics = said(&mut asked).stdout;
    let states = |is: &str| {
        let states = metrics.lines().filter(|line| line.contains("_encryption_state{"));
        states.filter(|line| line.ends_with(is)).collect::<BTreeSet<_>>().len()
    };
    assert_eq!((states("} 0"), states("} -1")), (NAMES.len() - 1, 1), "{metrics}");
    assert!(!metrics.lines().any(|line| line.starts_with("pellucid_forged")), "{metrics}");
}

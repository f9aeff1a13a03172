//! Goal: `lab side-effects`, from the command line to records that a report is made of.
//!
//! Method: databases of a few megabytes, one round after the warm-up. The lab itself ends the session if a temporary file
//! of plain SQLite cannot be read or one of the shim's can, if sides answer differently, if a backup does not restore, or
//! if a scan fails. No figure is judged, only how they belong together.
use std::process::Command;

use crate::records::{lab, said, sessions, Records};

const SMALL: &str = "
rounds = 1
[loaded]
database_kib = 16384
mixes = [\"4/3/3\", \"10/0/0\"]
processes = 2
synchronous = \"FULL\"
seconds = 0.2
[backups]
database_kib = 8192
compression = [\"zstd\", \"none\"]
[scans]
database_kib = 8192
";

/// A plain database in a process with the library: it spills as much, and answers alike.
fn check_loaded(session: &Records) {
    assert_eq!(session.sides(), ["plain", "loaded"]);
    let spills = ["sort that spills", "GROUP BY that spills", "DISTINCT that spills", "temp table"];
    let mut cells = spills.to_vec();
    cells.extend(["4/3/3", "10/0/0"]);
    assert_eq!(session.cells(), cells.iter().copied().collect());
    let rows = session.parameter("database_rows").as_f64().unwrap();
    for cell in spills {
        for round in 0..=1 {
            let of = |side, what| session.value(cell, side, what, round);
            for side in session.sides() {
                assert!(of(side, "elapsed_s") > 0.0, "{cell}");
            }
            // More than SQLite's page cache, else nothing would spill.
            assert!(of("plain", "temporary_bytes") > 1e6, "{cell}");
            assert_eq!(of("plain", "returned_rows"), of("loaded", "returned_rows"), "{cell}");
            // Sealed blocks are longer by their tags; those that fit stay in memory.
            let ratio = of("loaded", "temporary_bytes") / of("plain", "temporary_bytes");
            assert!(ratio < 2.0, "{cell}: {ratio}");
        }
    }
    assert_eq!(session.value("sort that spills", "loaded", "returned_rows", 1), rows);
    for side in session.sides() {
        for cell in ["4/3/3", "10/0/0"] {
            assert!(session.value(cell, side, "ops_per_s", 1) > 0.0, "{cell}");
            let p50 = session.value(cell, side, "p50_us", 1);
            assert!(p50 <= session.value(cell, side, "p99_us", 1), "{cell}");
        }
    }
    let described = &session.session["sides"];
    assert_eq!(described[0]["extension"], serde_json::Value::Null);
    assert_eq!(described[1]["kind"], "loaded");
    assert!(described[1]["extension_sha256"].as_str().unwrap().len() == 64);
}

/// The same database is as long and packs as well.
fn check_backups(session: &Records) {
    assert_eq!(session.sides(), ["plain", "sealed"]);
    assert_eq!(session.cells(), ["backup none", "backup zstd"].into());
    for side in session.sides() {
        let bytes = |cell| session.value(cell, side, "media_bytes", 1);
        assert!(bytes("backup zstd") < 0.8 * bytes("backup none"), "{side} lost its compression");
        let source = session.value("backup none", side, "source_bytes", 1);
        assert!((0.9..1.2).contains(&(bytes("backup none") / source)), "{side}");
        for cell in session.cells() {
            let (seconds, speed) = (
                session.value(cell, side, "elapsed_s", 1),
                session.value(cell, side, "speed_mb_per_s", 1),
            );
            assert!((seconds * speed * 1e6 / source - 1.0).abs() < 1e-9);
            assert!(session.value(cell, side, "cpu_s", 1) > 0.0, "{cell}");
        }
    }
}

/// Maintenance is done while keys are changed, and they are changed to the end.
fn check_scans(session: &Records) {
    assert_eq!(session.sides(), ["sealed", "scanned"]);
    assert_eq!(session.cells(), ["ANALYZE", "backup", "integrity_check"].into());
    for cell in session.cells() {
        for round in 0..=1 {
            assert!(session.value(cell, "sealed", "elapsed_s", round) > 0.0, "{cell}");
            assert!(session.value(cell, "scanned", "elapsed_s", round) > 0.0, "{cell}");
            assert!(session.value(cell, "scanned", "done_scans", round) >= 1.0, "{cell}");
            assert!(session.value(cell, "scanned", "scan_mb_per_s", round) > 0.0, "{cell}");
        }
    }
    assert_eq!(session.session["sides"][0]["kind"], "sealed");
}

#[test]
fn what_others_notice_is_measured_in_three_sessions() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let scenario = elsewhere.path().join("small.toml");
    std::fs::write(&scenario, SMALL).unwrap();
    let line = format!("side-effects --scenario {}", scenario.display());
    let found = sessions(dir.path(), &line);
    let [loaded, backups, scans] = &found[..] else { panic!("{} sessions", found.len()) };
    for session in &found {
        assert_eq!(session.session["scenario"], "side-effects");
        assert_eq!(session.parameter("article"), 3);
    }
    check_loaded(loaded);
    check_backups(backups);
    check_scans(scans);

    // The report has the article's caveats beside our numbers.
    let records = dir.path().join("records.jsonl");
    let report = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["report".as_ref(), records.as_os_str(), "--markdown".as_ref()])
        .output()
        .unwrap();
    let (text, err) = said(&report);
    assert!(report.status.success(), "{err}");
    let line = |start: &str| {
        let found = text.lines().find(|line| line.contains(start));
        found.unwrap_or_else(|| panic!("no {start}: {text}")).to_owned()
    };
    for claim in ["tempdb is encrypted", "Compression will not make", "Maintenance during a re-enc"]
    {
        let line = line(claim);
        assert!(!line.contains("not measured"), "{line}");
    }
}

#[test]
fn a_piece_that_is_left_out_is_not_measured_and_an_estimate_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let seconds = |line: &str| -> f64 {
        let output = lab(dir.path(), line);
        said(&output).0.trim().parse().unwrap_or_else(|_| panic!("{:?}", said(&output)))
    };
    let all = seconds("side-effects --estimate");
    assert!(all > seconds("side-effects --estimate --rounds 1"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let elsewhere = tempfile::tempdir().unwrap();
    let scenario = elsewhere.path().join("one.toml");
    let with = |text: &str| {
        std::fs::write(&scenario, text).unwrap();
        format!("side-effects --scenario {}", scenario.display())
    };
    let one = "rounds = 1\n[backups]\ndatabase_kib = 1024\ncompression = [\"lz4\"]";
    let found = sessions(dir.path(), &with(one));
    assert_eq!((found.len(), found[0].cells()), (1, ["backup lz4"].into()));
    let output = lab(dir.path(), &with("rounds = 1"));
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).1.contains("[loaded], [backups], [scans]"), "{:?}", said(&output));
}

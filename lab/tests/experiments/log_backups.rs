//! `log-backups`.

use crate::records::{lab, said, Records};

const SIDES: [&str; 3] = ["no ENCRYPTION", "AES_128", "TRIPLE_DES_3KEY"];
const TINY: &str = r#"
rounds = 1
choices = ["none", "AES_128", "TRIPLE_DES_3KEY"]
compression = ["COMPRESSION", "NO_COMPRESSION"]
database_kib = 1024
log_kib = 256
log_commits = 4
restores = true
restore_logs = [2]
restore_log_kib = 64
restore_choices = ["none", "AES_128"]
restore_by = ["statements", "command"]
"#;

#[test]
fn logs_are_backed_up_restored_and_found_in_msdb() {
    let records = Records::of("log-backups", Some(TINY));
    let restored = ["full", "full and 2 logs", "full and 2 logs, a point", "full and differential"];
    let named = |verb: &str| restored.map(|what| format!("{verb}, {what}"));
    let logs = ["COMPRESSION, disk to disk", "NO_COMPRESSION, disk to disk"].map(String::from);
    let mut expected = [&logs[..], &named("restore --at"), &named("restore")].concat();
    expected.sort();
    assert_eq!(Vec::from_iter(records.cells()), expected);
    assert_eq!(records.sides(), SIDES);
    // Sealed, whatever the statement says.
    for (side, algorithm) in SIDES.iter().zip(["AES_256", "AES_128", "TRIPLE_DES_3KEY"]) {
        let place = SIDES.iter().position(|one| one == side).unwrap();
        let described = &records.session["sides"][place];
        assert_eq!(
            (&described["kind"], &described["algorithm"]),
            (&"sealed backup".into(), &algorithm.into())
        );
    }
    assert_eq!(records.session["scenario"], "log-backups");
    assert_eq!(*records.parameter("same_device"), true);
    assert_eq!(*records.parameter("statements_in_msdb"), 40);
    assert_eq!(*records.parameter("restore_logs"), serde_json::json!([2]));

    let pages = records.last(&logs[0], SIDES[0], "processed_pages");
    // Rows of 256 KiB, and a page more where two transactions meet.
    assert!((64.0..90.0).contains(&pages), "{pages}");
    for cell in &logs {
        for side in SIDES {
            let of = |what: &str| records.last(cell, side, what);
            assert!(records.rounds(cell, side, "elapsed_s").keys().eq(&[0, 1]));
            assert!(records.rounds(cell, side, "cpu_s").keys().eq(&[0, 1]));
            // All logs of a round have the same pages, and the article's query says what the runs say.
            assert_eq!((of("processed_pages"), of("natural_bytes")), (pages, pages * 4096.0));
            let mib = |what| of(what) / 1048576.0;
            assert!((of("article_natural_size_mb") - mib("natural_bytes")).abs() < 1e-6);
            assert!((of("article_compressed_size_mb") - mib("compressed_bytes")).abs() < 1e-6);
            assert!((of("article_avg_duration_s") - of("msdb_whole_s")).abs() < 1e-5);
            assert!(records.rounds(cell, side, "article_avg_duration_s").keys().eq(&[1]));
            assert!(of("msdb_s") <= of("elapsed_s") + 0.001);
            assert!(of("said_s") <= of("elapsed_s") + 0.001);
            let is_packed = of("media_bytes") < 0.8 * of("natural_bytes");
            assert_eq!(is_packed, cell.starts_with("COMPRESSION"), "{cell} {side}");
        }
        // Both are sealed.
        let grown = records.last(cell, SIDES[1], "media_bytes")
            / records.last(cell, SIDES[0], "media_bytes");
        assert!((0.98..1.02).contains(&grown), "{cell}: {grown}");
    }
    let bytes = records.session["sides"][0]["file_bytes"].as_f64().unwrap();
    for cell in expected.iter().filter(|cell| cell.starts_with("restore")) {
        for side in &SIDES[..2] {
            assert!(records.rounds(cell, side, "elapsed_s").keys().eq(&[0, 1]), "{cell}");
            assert!(records.last(cell, side, "said_s") <= records.last(cell, side, "elapsed_s"));
            let pages = records.last(cell, side, "processed_pages");
            assert!(pages * 4096.0 >= bytes, "{cell}: {pages}");
        }
    }
    let shown = &records.shown;
    assert_eq!(shown.matches("restore, full and 2 logs: AES_128").count(), 1, "{shown}");
}

#[test]
fn an_estimate_and_what_is_refused_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let seconds = |line: &str| -> f64 {
        let output = lab(dir.path(), line);
        said(&output).0.trim().parse().unwrap()
    };
    let all = seconds("log-backups --estimate");
    assert!(all > 2.0 * seconds("log-backups --estimate --scale 0.1"));
    assert!(all > 2.0 * seconds("log-backups --estimate --rounds 3"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);

    let elsewhere = tempfile::tempdir().unwrap();
    let scenario = elsewhere.path().join("scenario.toml");
    let line = format!("log-backups --scenario {}", scenario.display());
    for (good, bad, word) in [
        ("restore_logs = [2]", "restore_logs = [2, 1]", "restore_logs"),
        ("restore_logs = [2]", "restore_logs = []", "restore_logs"),
        (
            r#"restore_choices = ["none", "AES_128"]"#,
            r#"restore_choices = ["none", "AES_192"]"#,
            "AES_192",
        ),
        ("log_commits = 4", "log_commits = 0", "log_commits"),
        (r#"choices = ["none","#, "choices = [", "`none` first"),
        ("database_kib = 1024", "database_kib = 1024000000000", "MiB are needed"),
    ] {
        let text = TINY.replacen(good, bad, 1);
        assert_ne!(text, TINY);
        std::fs::write(&scenario, text).unwrap();
        let output = lab(dir.path(), &line);
        let (_, err) = said(&output);
        assert!(output.status.code() == Some(1) && err.contains(word), "{bad}: {err}");
    }
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().collect();
    assert!(left.iter().all(|file| file.file_name() == "records.jsonl"), "{left:?}");
}

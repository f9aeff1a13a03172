//! `backup-matrix` and `backup-overhead`.

use crate::records::{lab, Records};

const CHOICES: [&str; 5] = ["none", "AES_128", "AES_192", "AES_256", "TRIPLE_DES_3KEY"];

/// Every round is there, on every side, in an order; times and speeds say the same.
fn check(records: &Records, rounds: u64) {
    let bytes = records.session["sides"][0]["file_bytes"].as_f64().unwrap();
    assert_eq!(records.sides(), CHOICES);
    for cell in records.cells() {
        for side in CHOICES {
            let elapsed = records.rounds(cell, side, "elapsed_s");
            assert!(elapsed.keys().copied().eq(0..=rounds), "{cell} {side}: {elapsed:?}");
            for (round, elapsed) in elapsed {
                let speed = records.rounds(cell, side, "speed_mb_per_s")[round];
                assert!((speed * elapsed - bytes / 1e6).abs() < 1e-6 * bytes / 1e6);
                // The message has milliseconds.
                assert!(records.rounds(cell, side, "said_s")[round] <= elapsed + 0.001);
                assert!(records.rounds(cell, side, "processed_pages")[round] > 0.0);
            }
            assert!(records.rounds(cell, side, "cpu_s").keys().copied().eq(0..=rounds));
        }
    }
    for (round, places) in &records.places {
        let mut sorted = places.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4], "{round:?}");
    }
}

#[test]
fn the_matrix_is_run_restored_and_found_in_msdb() {
    let records = Records::of("backup-matrix --scale 0.0005 --rounds 2", None);
    assert_eq!(
        Vec::from_iter(records.cells()),
        [
            "COMPRESSION, disk to disk",
            "NO_COMPRESSION, disk to disk",
            "differential, COMPRESSION, disk to disk",
            "differential, NO_COMPRESSION, disk to disk",
            "restore, COMPRESSION, disk to disk",
            "restore, NO_COMPRESSION, disk to disk",
        ]
    );
    check(&records, 2);
    let shown = &records.shown;
    assert_eq!(shown.matches("restore, COMPRESSION, disk to disk: AES_192").count(), 1, "{shown}");
    let parameters = &records.session["parameters"];
    assert_eq!(records.session["scenario"], "backup-matrix");
    assert_eq!(parameters["same_device"], true);
    assert_eq!(parameters["statements_in_msdb"], 40);
    assert_eq!(
        (&parameters["sources"][0]["name"], &parameters["scale"]),
        (&"disk".into(), &0.0005.into())
    );

    let pages = records.last("NO_COMPRESSION, disk to disk", "none", "processed_pages");
    let bytes = records.session["sides"][0]["file_bytes"].as_f64().unwrap();
    assert_eq!(pages * 4096.0, bytes);
    for side in CHOICES {
        let of = |cell: &str, what: &str| {
            let cell = format!("{cell}, disk to disk");
            records.last(&cell, side, what)
        };
        for cell in ["COMPRESSION", "NO_COMPRESSION"] {
            let named = format!("{cell}, disk to disk");
            let seconds = records.rounds(&named, side, "msdb_whole_s");
            let mean = (seconds[&1] + seconds[&2]) / 2.0;
            assert!((of(cell, "article_avg_duration_s") - mean).abs() < 1e-5);
            assert!(records.rounds(&named, side, "article_avg_duration_s").keys().eq([&2]));
            let mib = |what| of(cell, what) / 1048576.0;
            assert!((of(cell, "article_natural_size_mb") - mib("natural_bytes")).abs() < 1e-6);
            let stored = of(cell, "article_compressed_size_mb");
            assert!((stored - mib("compressed_bytes")).abs() < 1e-6);
            assert_eq!(of(cell, "natural_bytes"), bytes);
            // Both ends are cut to milliseconds.
            assert!(of(cell, "msdb_s") <= of(cell, "elapsed_s") + 0.001);
            let differential = format!("differential, {cell}");
            assert!(of(&differential, "media_bytes") < of(cell, "media_bytes") / 2.0);
            assert!(of(&differential, "processed_pages") < pages / 2.0);
            assert_eq!(of(&format!("restore, {cell}"), "processed_pages"), pages);
            // Sealed media are longer, by tags and keys.
            let plain = records.last(&named, "none", "media_bytes");
            let more = of(cell, "media_bytes") - plain;
            assert!(side == "none" || more > 0.0 && more < 16384.0, "{cell} {side}: {more}");
        }
        assert!(of("COMPRESSION", "media_bytes") < 0.8 * bytes);
        assert!(of("NO_COMPRESSION", "media_bytes") > bytes);
    }
}

#[test]
fn the_statement_of_article_1_is_run_with_each_algorithm() {
    let records = Records::of("backup-overhead --scale 0.0005", None);
    assert_eq!(Vec::from_iter(records.cells()), ["backup"]);
    check(&records, 3);
    assert_eq!(records.session["parameters"]["article_database_kib"], 1_835_008);
    let plain = records.last("backup", "none", "media_bytes");
    for side in CHOICES {
        let media = records.rounds("backup", side, "media_bytes");
        assert!(media.values().all(|bytes| *bytes == media[&0]), "{side}: {media:?}");
        assert!(side == "none" || media[&0] > plain, "{side}: {media:?}");
    }
}

#[test]
fn an_estimate_and_what_is_refused_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let seconds = |line: &str| -> f64 {
        let output = lab(dir.path(), line);
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
    };
    for experiment in ["backup-matrix", "backup-overhead"] {
        let all = seconds(&format!("{experiment} --estimate"));
        assert!(all > 2.0 * seconds(&format!("{experiment} --estimate --scale 0.1")));
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(lab(dir.path(), "backup-matrix --source /mnt").status.code(), Some(2));
    assert_eq!(lab(dir.path(), "backup-overhead --scale 0").status.code(), Some(2));

    let scenario = dir.path().join("huge.toml");
    let text = include_str!("../../scenarios/backup-overhead.toml");
    std::fs::write(&scenario, text.replace("1835008", "1835008000000")).unwrap();
    let output = lab(dir.path(), &format!("backup-overhead --scenario {}", scenario.display()));
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains("MiB are needed") && err.contains("MiB are free"), "{err}");
}

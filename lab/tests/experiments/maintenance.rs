//! `maintenance` and `acceleration`.

use std::collections::BTreeSet;

use crate::records::{lab, Records};

#[test]
fn maintenance_is_done_on_both_databases_with_the_articles_statements() {
    let records = Records::of("maintenance --scale 0.002 --rounds 1", None);
    assert_eq!(records.sides(), ["plain", "sealed"]);
    let parameters = &records.session["parameters"];
    let number = |name: &str| parameters[name].as_f64().unwrap();
    assert_eq!((number("article_database_kib"), number("scale")), (3_355_443.0, 0.002));
    let share = number("database_kib") / (number("article_database_kib") * 0.002);
    assert!((0.9..1.1).contains(&share), "{share}");
    assert_eq!(number("range_rows"), (number("order_lines") / 100.0).ceil());

    let cells = records.cells();
    let start = |word: &str| cells.iter().filter(|cell| cell.starts_with(word)).count();
    assert_eq!((cells.len(), start("REBUILD "), start("UPDATE STATISTICS ")), (18, 5, 5));
    for cell in &cells {
        for side in records.sides() {
            for round in 0..=1 {
                let of = |what: &str| records.value(cell, side, what, round);
                // What is printed has milliseconds.
                assert!(of("elapsed_s") <= of("wall_s") + 0.001, "{cell} {side}");
                assert!(of("cpu_s") <= of("process_cpu_s") + 0.02, "{cell} {side}");
                if *cell == "BACKUP" || *cell == "RESTORE" {
                    assert!(of("processed_pages") > 0.0 && of("said_mb_per_s") > 0.0);
                    assert_eq!(
                        of("processed_pages"),
                        records.value("BACKUP", side, "processed_pages", round)
                    );
                    assert!(of("media_bytes") > 0.0);
                }
            }
        }
    }
    for (cell, rows) in [
        ("SELECT, scan", "order_lines"),
        ("SELECT, range", "range_rows"),
        ("UPDATE", "range_rows"),
        ("INSERT", "range_rows"),
        ("DELETE", "range_rows"),
    ] {
        assert_eq!(records.value(cell, "sealed", "done_rows", 1), number(rows), "{cell}");
    }
    // The work was done: a scan of every row takes time.
    let whole = records.value("CHECKDB", "sealed", "elapsed_s", 1);
    assert!(whole > 0.0);
}

const SMALL: &str = "
rounds = 1
algorithms = [\"AES_128\"]
sizes_mib = [1, 2, 3, 4]
projected_gb = 1000
probe_mib = 32
";

#[test]
fn acceleration_is_measured_with_hardware_aes_and_without_and_projected() {
    let records = Records::of("acceleration", Some(SMALL));
    assert_eq!(records.sides(), ["hardware", "software"]);
    let parameters = &records.session["parameters"];
    assert!(parameters["switch"].as_str().unwrap().starts_with("OPENSSL_"), "{parameters}");
    let works = [
        "encrypt AES_128",
        "decrypt AES_128",
        "CHECKDB AES_128",
        "CHECKDB PHYSICAL_ONLY AES_128",
        "CHECKDB plain",
        "CHECKDB PHYSICAL_ONLY plain",
    ];
    let mut expected: BTreeSet<String> = ["probe".to_owned()].into();
    for work in works {
        expected.extend([1, 2, 3, 4].map(|mib| format!("{work}, {mib} MiB")));
        expected.insert(format!("projection to 1000 GB: {work}"));
    }
    assert_eq!(records.cells(), expected.iter().map(String::as_str).collect());
    // The better of two: where a host takes processors away, some of what it took is counted as work.
    let cpu = |side: &str| {
        let of = |round| records.value("probe", side, "cpu_s", round);
        of(0).min(of(1))
    };
    let (software, hardware) = (cpu("software"), cpu("hardware"));
    assert!(software >= 2.0 * hardware, "{software} {hardware}");
    // Sums of the points of round 1: the normal equations, solved anew.
    let bytes: Vec<f64> =
        parameters["sizes_bytes"].as_array().unwrap().iter().map(|b| b.as_f64().unwrap()).collect();
    assert!(bytes.windows(2).all(|pair| pair[0] < pair[1]), "{bytes:?}");
    for work in works {
        for side in records.sides() {
            let points: Vec<(f64, f64)> = (1..=4)
                .zip(&bytes)
                .map(|(mib, bytes)| {
                    (
                        bytes / 1e9,
                        records.value(&format!("{work}, {mib} MiB"), side, "elapsed_s", 1),
                    )
                })
                .collect();
            let sum = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
            let (x, y, xx, xy) =
                (sum(|p| p.0), sum(|p| p.1), sum(|p| p.0 * p.0), sum(|p| p.0 * p.1));
            let rise = (4.0 * xy - x * y) / (4.0 * xx - x * x);
            let projected = (y - rise * x) / 4.0 + rise * 1000.0;
            let found =
                records.value(&format!("projection to 1000 GB: {work}"), side, "elapsed_s", 1);
            assert!((found - projected).abs() < 1e-6 * projected.abs().max(1.0), "{work} {side}");
        }
    }
}

#[test]
fn what_is_refused_says_why_and_an_estimate_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let seconds = |line: &str| -> f64 {
        let output = lab(dir.path(), line);
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
    };
    for experiment in ["maintenance", "acceleration"] {
        let all = seconds(&format!("{experiment} --estimate"));
        assert!(
            all > 1.5 * seconds(&format!("{experiment} --estimate --scale 0.1")),
            "{experiment}"
        );
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let scenario = dir.path().join("three.toml");
    std::fs::write(&scenario, SMALL.replace("[1, 2, 3, 4]", "[1, 2, 3]")).unwrap();
    let output = lab(dir.path(), &format!("acceleration --scenario {}", scenario.display()));
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains("sizes_mib: at least 4"), "{err}");
}

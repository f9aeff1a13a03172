//! Goal: `backup-matrix` and `backup-overhead`, from the command line to records that a report can be made of.
//!
//! Method: a database of less than a megabyte, two rounds; the program `pellucid` lies beside the lab. What the lab checks
//! itself (rows of a restore, the 40 backups of the article, no row's text in a sealed medium) ends the session if it is
//! not so. No figure is judged, only how they belong together.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const CHOICES: [&str; 5] = ["none", "AES_128", "AES_192", "AES_256", "TRIPLE_DES_3KEY"];

fn lab(dir: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(line.split_whitespace())
        .args(["--dir".as_ref(), dir.as_os_str()])
        .args(["--records".as_ref(), dir.join("records.jsonl").as_os_str()])
        .output()
        .unwrap()
}

/// Values by cell, side, quantity and round.
type Observed = BTreeMap<(String, String, String), BTreeMap<u64, f64>>;

struct Records {
    session: Value,
    observed: Observed,
    /// Places by cell and round, in the order of the records.
    places: BTreeMap<(String, u64), Vec<u64>>,
}

impl Records {
    fn read(dir: &Path) -> Self {
        let text = std::fs::read_to_string(dir.join("records.jsonl")).unwrap();
        let mut records =
            Self { session: Value::Null, observed: Observed::new(), places: BTreeMap::new() };
        for line in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            let word = |name: &str| line[name].as_str().unwrap().to_owned();
            let number = |name: &str| line[name].as_u64().unwrap();
            match line["record"].as_str().unwrap() {
                "session" => records.session = line.clone(),
                "observation" => {
                    let key = (word("cell"), word("side"), word("what"));
                    let value = line["value"].as_f64().unwrap();
                    if key.2 == "elapsed_s" {
                        let round = (word("cell"), number("round"));
                        records.places.entry(round).or_default().push(number("place"));
                    }
                    let rounds = records.observed.entry(key).or_default();
                    assert_eq!(rounds.insert(number("round"), value), None, "twice: {line}");
                }
                _ => {}
            }
        }
        records
    }

    fn rounds(&self, cell: &str, side: &str, what: &str) -> &BTreeMap<u64, f64> {
        let key = (cell.to_owned(), side.to_owned(), what.to_owned());
        self.observed.get(&key).unwrap_or_else(|| panic!("no {key:?}"))
    }

    fn last(&self, cell: &str, side: &str, what: &str) -> f64 {
        *self.rounds(cell, side, what).last_key_value().unwrap().1
    }

    fn cells(&self) -> Vec<&str> {
        let mut cells: Vec<_> = self.observed.keys().map(|(cell, ..)| &**cell).collect();
        cells.dedup();
        cells
    }

    /// Every round is there, on every side, in an order; times and speeds say the same.
    fn check(&self, rounds: u64) {
        let bytes = self.session["sides"][0]["file_bytes"].as_f64().unwrap();
        let names: Vec<_> =
            self.session["sides"].as_array().unwrap().iter().map(|side| &side["side"]).collect();
        assert_eq!(names, CHOICES);
        for cell in self.cells() {
            for side in CHOICES {
                let elapsed = self.rounds(cell, side, "elapsed_s");
                assert!(elapsed.keys().copied().eq(0..=rounds), "{cell} {side}: {elapsed:?}");
                for (round, elapsed) in elapsed {
                    let speed = self.rounds(cell, side, "speed_mb_per_s")[round];
                    assert!((speed * elapsed - bytes / 1e6).abs() < 1e-6 * bytes / 1e6);
                    // The message has milliseconds.
                    assert!(self.rounds(cell, side, "said_s")[round] <= elapsed + 0.001);
                    assert!(self.rounds(cell, side, "processed_pages")[round] > 0.0);
                }
                assert!(self.rounds(cell, side, "cpu_s").keys().copied().eq(0..=rounds));
            }
        }
        for (round, places) in &self.places {
            let mut sorted = places.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4], "{round:?}");
        }
    }
}

fn only_records_are_left(dir: &Path) {
    let left: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["records.jsonl"]);
}

#[test]
fn the_matrix_is_run_restored_and_found_in_msdb() {
    let dir = tempfile::tempdir().unwrap();
    let output = lab(dir.path(), "backup-matrix --scale 0.0005 --rounds 2");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("restore, COMPRESSION, disk to disk: AES_192"), "{out}");
    let records = Records::read(dir.path());
    assert_eq!(
        records.cells(),
        [
            "COMPRESSION, disk to disk",
            "NO_COMPRESSION, disk to disk",
            "differential, COMPRESSION, disk to disk",
            "differential, NO_COMPRESSION, disk to disk",
            "restore, COMPRESSION, disk to disk",
            "restore, NO_COMPRESSION, disk to disk",
        ]
    );
    records.check(2);
    let parameters = &records.session["parameters"];
    assert_eq!(records.session["scenario"], "backup-matrix");
    assert_eq!(parameters["same_device"], true);
    assert_eq!(parameters["statements_in_msdb"], 40);
    assert_eq!(parameters["log_backups"], "not built yet");
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
            assert!(of(cell, "msdb_s") <= of(cell, "elapsed_s"));
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
    only_records_are_left(dir.path());
}

#[test]
fn the_statement_of_article_1_is_run_with_each_algorithm() {
    let dir = tempfile::tempdir().unwrap();
    let output = lab(dir.path(), "backup-overhead --scale 0.0005");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let records = Records::read(dir.path());
    assert_eq!(records.cells(), ["backup"]);
    records.check(3);
    assert_eq!(records.session["parameters"]["article_database_kib"], 1_835_008);
    let plain = records.last("backup", "none", "media_bytes");
    for side in CHOICES {
        let media = records.rounds("backup", side, "media_bytes");
        assert!(media.values().all(|bytes| *bytes == media[&0]), "{side}: {media:?}");
        assert!(side == "none" || media[&0] > plain, "{side}: {media:?}");
    }
    only_records_are_left(dir.path());
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
    let text = include_str!("../scenarios/backup-overhead.toml");
    std::fs::write(&scenario, text.replace("1835008", "1835008000000")).unwrap();
    let output = lab(dir.path(), &format!("backup-overhead --scenario {}", scenario.display()));
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains("MiB are needed") && err.contains("MiB are free"), "{err}");
}

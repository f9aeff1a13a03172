//! Goal: the bench `log_sets` writes what the report and the verdict need to say what sealing adds to a log set.
//!
//! Method: a log of four megabytes, two rounds, its records and the report of them. No figure is judged but that of the sizes, which
//! no machine changes.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::process::Command;

use clap::Parser;
use serde_json::Value;

#[path = "../benches/log_sets/measure.rs"]
mod measure;

#[test]
fn the_report_says_what_sealing_adds_to_a_log_set() {
    let dir = tempfile::tempdir().unwrap();
    let (place, records) = (dir.path(), dir.path().join("records.jsonl"));
    let words = ["log_sets", "--mib", "4", "--rounds", "2", "--algorithms", "AES_256"];
    let mut options = measure::Options::parse_from(words);
    (options.dir, options.records) = (Some(place.into()), records.clone());
    measure::run(&options).unwrap();
    let left: Vec<_> = std::fs::read_dir(place).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["records.jsonl"]);

    let mut bytes = BTreeMap::new();
    let text = std::fs::read_to_string(&records).unwrap();
    for line in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        if line["what"] == "media_bytes" {
            let word = |name: &str| line[name].as_str().unwrap().to_owned();
            let sizes: &mut Vec<f64> = bytes.entry((word("cell"), word("side"))).or_default();
            sizes.push(line["value"].as_f64().unwrap());
        }
    }
    assert_eq!(bytes.len(), 4);
    for cell in ["compressed", "not compressed"] {
        let of = |side: &str| &bytes[&(cell.to_owned(), side.to_owned())];
        assert_eq!((of(measure::CLEAR).len(), of("AES_256").len()), (3, 3), "the warm-up, too");
        for (sealed, clear) in of("AES_256").iter().zip(of(measure::CLEAR)) {
            assert!(sealed > clear && sealed / clear < 1.005, "{cell}: {sealed} of {clear}");
        }
    }
    let report = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["report", "--markdown", records.to_str().unwrap()])
        .output()
        .unwrap();
    let report = String::from_utf8(report.stdout).unwrap();
    for claim in ["Sealing of a log backup: time", "Sealing of a log backup: size"] {
        let line = report.lines().find(|line| line.contains(claim)).unwrap();
        assert!(!line.contains("not measured"), "{line}");
    }
    let verdict = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["verdict", records.to_str().unwrap()])
        .output()
        .unwrap();
    let verdict = String::from_utf8(verdict.stdout).unwrap();
    for cell in ["compressed", "not compressed"] {
        let goal = |line: &&str| line.contains(&format!(" {cell}, media"));
        let line = verdict.lines().find(goal).unwrap();
        assert!(line.contains("1.0010") && line.contains("passed"), "{line}");
    }
}

//! Goal: the whole way from the command line to records, through real worker processes.
//!
//! Method: plain against plain, small and short; the sealed sides are in `make bench`. No figure is judged: other work on the machine must
//! not fail a test; what is judged is that each run did what it was asked to and said so.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn lab(dir: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab"))
        .arg("purchase")
        .env("PELLUCID_FORMAT", "2")
        .args(line.split_whitespace())
        .args(["--vendors", "40", "--cards", "400", "--purchases", "2000"])
        .args(["--dir".as_ref(), dir.as_os_str()])
        .args(["--records".as_ref(), dir.join("records.jsonl").as_os_str()])
        .output()
        .unwrap()
}

fn records(dir: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.join("records.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind<'a>(records: &'a [Value], kind: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["record"] == kind).collect()
}

#[test]
fn plain_against_plain_for_a_fifth_of_a_second() {
    let dir = tempfile::tempdir().unwrap();
    let plan = "--processes 1,3 --mix 4/3/3 --sync NORMAL --journal DELETE --page-size 1024";
    let output =
        lab(dir.path(), &format!("--sides plain,again,plain --seconds 0.2 --rounds 5 {plan}"));
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("again / plain") && out.contains("plain-3 / plain"), "{out}");
    assert!(out.contains("1-NORMAL-4/3/3-DELETE-page1024-rows40.400.2000"), "{out}");

    let records = records(dir.path());
    let session = of_kind(&records, "session")[0];
    assert_eq!((&session["schema"], &session["scenario"]), (&2.into(), &"purchase".into()));
    assert_eq!(session["sides"].as_array().unwrap().len(), 3);
    assert_eq!(session["sides"][0]["file_bytes"], session["sides"][1]["file_bytes"]);
    assert_eq!(session["sides"][0]["page_size_bytes"], 1024);
    assert_eq!(session["setting"]["journal"], "DELETE");
    assert!(session["machine"]["cores"].as_u64().unwrap() > 0);

    let runs = of_kind(&records, "run");
    assert_eq!(runs.len(), 2 * 6 * 3);
    let sides = |runs: &[&Value]| -> Vec<String> {
        runs.iter().map(|run| run["side"].as_str().unwrap().into()).collect()
    };
    let mut orders: Vec<_> = runs.chunks(3).map(sides).collect();
    for order in &orders {
        let mut order = order.clone();
        order.sort();
        assert_eq!(order, ["again", "plain", "plain-3"], "each side once in a round");
    }
    orders.sort();
    orders.dedup();
    assert!(orders.len() > 1, "{orders:?}");
    for run in &runs {
        assert_eq!(run["session"], session["session"]);
        let count = |kind: &str| run[kind]["operations"].as_u64().unwrap();
        assert_eq!(count("all"), count("read") + count("update") + count("insert"));
        assert!(count("all") > 0, "{run}");
        assert!(run["all"]["p99_us"].as_f64() >= run["all"]["p50_us"].as_f64());
    }
    // Not in each run: on a machine whose processors are taken away a fifth of a second can be a handful of operations.
    for kind in ["read", "update", "insert"] {
        assert!(runs.iter().any(|run| run[kind]["operations"].as_u64() > Some(0)), "no {kind}");
    }
    let cells = of_kind(&records, "cell");
    assert_eq!(cells.len(), 4);
    for cell in cells {
        assert_eq!(cell["ratios"].as_array().unwrap().len(), 5);
        let ratio = |name: &str| cell["ratio"][name].as_f64().unwrap();
        assert!(ratio("min") <= ratio("median") && ratio("median") <= ratio("max"));
        assert_eq!(cell["sides"][0]["side"], "plain");
    }
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["records.jsonl"], "databases are removed");
}

#[test]
fn a_verdict_follows_from_the_records_alone() {
    let dir = tempfile::tempdir().unwrap();
    let measured = lab(
        dir.path(),
        "--json --sides plain,again --operations 50 --rounds 5 --processes 1 --mix 4/3/3,0/1/0",
    );
    assert!(measured.status.success(), "{}", String::from_utf8_lossy(&measured.stderr));
    let records = records(dir.path());
    let written = of_kind(&records, "verdict")[0];

    let verdict = |line: &str| {
        let file = dir.path().join("records.jsonl");
        let words = line.split_whitespace();
        let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
        command.arg("verdict").arg(file).args(words).output().unwrap()
    };
    let again: Value = serde_json::from_slice(&verdict("--json").stdout).unwrap();
    assert_eq!(&again, written);
    assert_eq!(written["families"][0]["cells"].as_array().unwrap().len(), 4);
    let table = verdict("");
    assert!(String::from_utf8_lossy(&table.stdout).contains("again / plain, purchase"));
    let unknown = verdict("--session none");
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no session none"));
}

#[test]
fn a_fixed_number_of_operations_is_done_by_each_process() {
    let dir = tempfile::tempdir().unwrap();
    let output = lab(
        dir.path(),
        "--sides plain,again --json --operations 200 --rounds 5 --processes 2 --mix 0/5/5 --sync FULL",
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let records = records(dir.path());
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed.lines().count(), records.len());
    for run in of_kind(&records, "run") {
        assert_eq!(run["all"]["operations"], 400);
        assert_eq!(run["insert"]["operations"], 200);
    }
}

#[test]
fn a_minimum_that_is_not_met_is_exit_1() {
    let dir = tempfile::tempdir().unwrap();
    let output = lab(
        dir.path(),
        "--sides plain,again --operations 50 --rounds 5 --processes 1 --mix 1/0/0 --sync NORMAL --minimum 1000",
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("below 1000"));
}

#[test]
fn sides_under_the_recovery_model_full_have_a_chain_and_an_archiver() {
    let dir = tempfile::tempdir().unwrap();
    let plan = "--processes 1 --mix 0/5/5 --sync NORMAL --seconds 0.2 --rounds 5";
    let output = lab(dir.path(), &format!("--sides full,archived {plan}"));
    let said = String::from_utf8_lossy(&output.stderr);
    // Each run fails whose archiver ships nothing.
    assert!(output.status.success(), "{said}");
    let records = records(dir.path());
    let sides = &of_kind(&records, "session")[0]["sides"];
    assert_eq!((&sides[0]["side"], &sides[1]["side"]), (&"full".into(), &"archived".into()));
    assert_eq!(of_kind(&records, "run").len(), 2 * 6);

    let turns = lab(dir.path(), &format!("--sides full,archived {plan} --turn-ms 5"));
    let said = String::from_utf8_lossy(&turns.stderr);
    assert!(!turns.status.success() && said.contains("--turn-ms: an archiver works"), "{said}");
    let elsewhere = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["opening", "--sides", "plain,full", "--dir"])
        .arg(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&elsewhere.stderr);
    assert!(!elsewhere.status.success() && said.contains("`lab purchase` alone"), "{said}");
}

#[test]
fn a_missing_extension_is_named_and_leaves_no_record() {
    let dir = tempfile::tempdir().unwrap();
    let output = lab(dir.path(), "--extension /nowhere/libpellucid.so");
    assert_eq!(output.status.code(), Some(1));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("/nowhere/libpellucid.so") && err.contains("--extension"), "{err}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn too_few_rounds_are_a_usage_error() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(lab(dir.path(), "--rounds 2").status.code(), Some(2));
}

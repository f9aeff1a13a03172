//! Goal: whole-database work, opening, speedtest1 and the scans, from the command line to records.
//!
//! Method: plain against plain, a few MiB, warm: whether a cold file was cold is judged by the lab
//! itself, and not every file system can tell. No figure is judged.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn lab(dir: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(line.split_whitespace())
        .args(["--sides", "plain,again", "--rounds", "5"])
        .args(["--dir".as_ref(), dir.as_os_str()])
        .args(["--records".as_ref(), dir.join("records.jsonl").as_os_str()])
        .output()
        .unwrap()
}

fn records(dir: &Path, kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.join("records.jsonl")).unwrap();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|record| record["record"] == kind).collect()
}

#[test]
fn every_operation_is_done_on_both_sides_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let output = lab(dir.path(), "whole --size-mib 2 --cache warm");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("vacuum-into-warm-2MiB"), "{out}");

    let session = &records(dir.path(), "session")[0];
    assert_eq!((&session["scenario"], &session["size"]), (&"whole".into(), &2.into()));
    let bytes = session["sides"][0]["file_bytes"].as_u64().unwrap();
    assert!((1 << 20..4 << 20).contains(&bytes), "{bytes}");
    let work = records(dir.path(), "work");
    assert_eq!(work.len(), 7 * 2 * (1 + 5));
    for run in &work {
        assert!(run["wall_s"].as_f64().unwrap() > 0.0, "{run}");
        assert!(run["read_bytes"].as_u64().unwrap_or(0) <= bytes / 10, "{run}");
    }
    let cells = records(dir.path(), "cell");
    let names: Vec<_> = cells.iter().map(|cell| cell["cell"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 7);
    assert!(names.contains(&"integrity-check-warm-2MiB"), "{names:?}");
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["records.jsonl"]);
}

#[test]
fn what_made_a_file_cold_is_recorded_and_told() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let run = |line: &str| {
        let output = lab(dir.path(), &format!("whole --size-mib 2 --operations scan {line}"));
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        // A file system without a device proves nothing: the lab says so, and nothing else.
        let unproved = ["the file was not cold", "can be called cold"];
        let proved = output.status.success() || unproved.iter().any(|why| err.contains(why));
        (proved, err)
    };
    let (warm, err) = run("--cache warm");
    assert!(warm, "{err}");
    assert!(records(dir.path(), "session")[0]["parameters"]["cold"].is_null());
    let (proved, err) = run("--cache cold");
    assert!(proved, "{err}");
    assert_eq!(records(dir.path(), "session")[1]["parameters"]["cold"], "POSIX_FADV_DONTNEED");
    let report = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["report", "--markdown", "--all"])
        .arg(dir.path().join("records.jsonl"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&report.stdout);
    let session = &records(dir.path(), "session")[1];
    let is_virtual =
        session["machine"]["cpu_flags"].as_array().unwrap().contains(&"hypervisor".into());
    let word = if is_virtual { "Guest cold: " } else { "Cold: " };
    assert!(said.contains(word) && said.contains("DONTNEED"), "{said}");

    // Root may, and then the record says so; for anybody else it names the switch and makes nothing of it.
    let (proved, err) = run("--cache cold --drop-caches");
    assert!(proved || err.contains("/proc/sys/vm/drop_caches") && err.contains("root"), "{err}");
    if proved {
        let sessions = records(dir.path(), "session");
        assert_eq!(sessions[2]["parameters"]["cold"], "drop_caches");
    }
}

/// Waits for `is_so`, for as long as a busy machine may take.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Workers of sessions in `dir`: it is in their environment.
fn workers(dir: &Path) -> usize {
    let of_process = |process: &Path| {
        let read = |name| std::fs::read(process.join(name)).unwrap_or_default();
        let (command, environment) = (read("cmdline"), read("environ"));
        let text = String::from_utf8_lossy(&environment);
        command.ends_with(b"\0worker\0") && text.contains(&dir.display().to_string())
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|process| of_process(&process.path())).count()
}

/// Killed when a test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn one_that_is_interrupted_leaves_its_records_and_nothing_else() {
    // While the templates are made, and while it measures.
    for (signal, status, begun) in [("INT", 130, 0), ("TERM", 143, 1)] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("records.jsonl");
        let lab = Command::new(env!("CARGO_BIN_EXE_lab"))
            .args(["whole", "--size-mib", "64", "--cache", "warm", "--sides", "plain,again"])
            .args(["--dir".as_ref(), dir.path().as_os_str()])
            .args(["--records".as_ref(), file.as_os_str()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lab = Running(lab);
        let lines = || std::fs::read_to_string(&file).unwrap_or_default().lines().count();
        wait_until("a worker at work", || lines() >= begun && workers(dir.path()) > 0);
        let id = lab.0.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        let ended = lab.0.wait().unwrap();
        let said = std::io::read_to_string(lab.0.stderr.take().unwrap()).unwrap();
        assert_eq!(
            (ended.code(), &*said),
            (Some(status), &*format!("lab: stopped by SIG{signal}\n"))
        );
        assert_eq!(workers(dir.path()), 0);
        let left: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["records.jsonl"]);
        assert!(lines() >= begun);
    }
}

#[test]
fn an_opening_is_timed_to_the_first_row() {
    let dir = tempfile::tempdir().unwrap();
    let output = lab(dir.path(), "opening --opens 2");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let work = records(dir.path(), "work");
    assert_eq!(work.len(), 2 * 6);
    assert!(work.iter().all(|run| run["cell"] == "process-to-first-row"));
    // With the process's own start, as its time is: the first row alone takes a tenth of a millisecond.
    let started = |run: &Value| run["cpu_s"].as_f64().is_some_and(|seconds| seconds > 0.0003);
    assert!(work.iter().all(started), "{work:?}");
    assert_eq!(records(dir.path(), "verdict")[0]["families"][0]["judged"], false);
}

#[test]
fn a_plain_rewrite_under_load_loses_no_row_and_is_told_phase_by_phase() {
    let dir = tempfile::tempdir().unwrap();
    for journal in ["WAL", "DELETE"] {
        let load = "--writers 2 --readers 2 --write-pause-us 2000 --quiet-s 0.1";
        let line = format!("scan-load --size-mib 2 --journal {journal} {load}");
        let output = lab(dir.path(), &line);
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{out}{err}");
        assert!(out.contains("to AES_128") && out.contains("integrity_check: ok"), "{out}");
    }
    let phases = records(dir.path(), "phase");
    assert_eq!(phases.len(), 2 * 2 * 9);
    for phase in &phases {
        let quiet = ["before", "suspended", "after"].contains(&phase["phase"].as_str().unwrap());
        assert_eq!(phase["scan"].is_null(), quiet, "{phase}");
        for kind in ["write", "read"] {
            let calls = &phase[kind];
            assert!(calls["latency"]["operations"].as_u64().unwrap() > 0, "{phase}");
            assert!(calls["longest_call_us"].as_f64() <= calls["latency"]["max_us"].as_f64());
        }
    }
    for account in records(dir.path(), "account") {
        assert!(account["acknowledged"].as_u64().unwrap() > 0, "{account}");
        assert_eq!((&account["wrong"], &account["integrity"]), (&0.into(), &"ok".into()));
    }
    let loads = &records(dir.path(), "verdict")[1]["loads"];
    assert_eq!((&loads[0]["side"], &loads[0]["judged"]), (&"plain".into(), &false.into()));
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["records.jsonl"]);
}

#[test]
fn a_plain_rewrite_alone_is_counted_in_megabytes() {
    let dir = tempfile::tempdir().unwrap();
    let output = lab(dir.path(), "scan-speed --size-mib 2 --algorithms AES_256");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let cell = &records(dir.path(), "cell")[0];
    assert_eq!(cell["cell"], "rekey-AES_256-2MiB");
    let megabytes =
        records(dir.path(), "session")[0]["sides"][0]["file_bytes"].as_f64().unwrap() / 1e6;
    let fastest = records(dir.path(), "work")
        .iter()
        .filter(|run| run["round"] != 0)
        .map(|run| run["wall_s"].as_f64().unwrap())
        .fold(1e9, f64::min);
    let most = cell["sides"]
        .as_array()
        .unwrap()
        .iter()
        .map(|side| side["ops_per_s"]["max"].as_f64().unwrap());
    assert!((most.fold(0.0, f64::max) - megabytes / fastest).abs() < 0.01 * megabytes / fastest);
}

#[test]
fn a_database_that_does_not_fit_is_refused_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let output = lab(dir.path(), "whole --size-mib 1000000");
    assert_eq!(output.status.code(), Some(1));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("MiB are needed") && err.contains("MiB are free"), "{err}");
    assert!(records(dir.path(), "session").is_empty());
}

#[test]
fn a_missing_speedtest1_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let output = lab(dir.path(), "speedtest1 --program /nowhere/speedtest1");
    assert_eq!(output.status.code(), Some(1));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("/nowhere/speedtest1") && err.contains("lab/speedtest1.sh"), "{err}");
}

#[test]
fn an_estimate_is_a_number_and_measures_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for line in [
        "whole --estimate",
        "opening --estimate",
        "speedtest1 --estimate",
        "purchase --estimate",
        "scan-load --estimate",
        "scan-speed --estimate",
    ] {
        let output = lab(dir.path(), line);
        let seconds: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
        assert!(output.status.success() && seconds > 0.0, "{line}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

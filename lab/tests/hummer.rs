//! Goal: the test of article 3 from the command line to records, and what is said to it while it runs.
//!
//! Method: three processes, sixty loops, plain and sealed. No time is judged but one: a change of the control table
//! takes effect long before the DELAY that it finds is over, which is an age that the processes themselves tell.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{kill_process_group, Pid, Signal};
use serde_json::Value;

const SCENARIO: &str = r#"
processes = 3
loops = 60
creating_loops = 20
start_delay_ms = 20
delay_every_loops = 20
delay_ms = 5
cpu_at_loop = 40
cpu_series_rounds = 1
journal = "WAL"
synchronous = "NORMAL"
page_size_bytes = 4096
cache_kib = 2000
mixes = ["4/3/3", "10/0/0"]
principal_mixes = ["4/3/3", "10/0/0", "0/5/5"]
[settings]
journal = ["DELETE"]
synchronous = ["FULL"]
cache_kib = [256]
[rate]
loops_per_s = 600
seconds = 0.2
"#;
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// Where the machine has time for its processes, as it has in one of two runs at least.
const EFFECT_MS: f64 = 1_000.0;
/// On any machine: a tenth of the DELAY.
const LONGEST_EFFECT_MS: f64 = 60_000.0;

fn lab(dir: &Path, scenario: &str, line: &str) -> Command {
    let file = dir.join("scenario.toml");
    std::fs::write(&file, scenario).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
    command
        .arg("hummer")
        .args(line.split_whitespace())
        .args(["--scenario".as_ref(), file.as_os_str()])
        .args(["--dir".as_ref(), dir.as_os_str()])
        .args(["--records".as_ref(), dir.join("records.jsonl").as_os_str()]);
    command
}

fn good(output: &Output) -> String {
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    format!("{out}{err}")
}

fn records(dir: &Path, kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.join("records.jsonl")).unwrap();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|record| record["record"] == kind).collect()
}

/// Cell, round and side; and everything observed of it.
type Runs = BTreeMap<(String, u64, String), BTreeMap<String, f64>>;

fn runs(dir: &Path) -> Runs {
    let mut runs = Runs::new();
    for one in records(dir, "observation") {
        let text = |name: &str| one[name].as_str().unwrap().to_string();
        let run = (text("cell"), one["round"].as_u64().unwrap(), text("side"));
        let value = one["value"].as_f64().unwrap();
        let before = runs.entry(run).or_default().insert(text("what"), value);
        assert_eq!(before, None, "a number is there twice: {one}");
    }
    runs
}

fn nothing_left(dir: &Path) {
    let mut left: Vec<_> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["records.jsonl", "scenario.toml"]);
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        // Not every process is ours to look at, and some end meanwhile.
        for open in std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
            let file = std::fs::read_link(open.path()).unwrap_or_default();
            let command = std::fs::read_to_string(process.path().join("cmdline"));
            assert!(!file.starts_with(dir), "{file:?} is open in {command:?}");
        }
    }
}

#[test]
fn what_the_records_say_was_done_was_done() {
    let dir = tempfile::tempdir().unwrap();
    let first = "--rounds 5 --cells elapsed-4/3/3,rate-4/3/3";
    good(&lab(dir.path(), SCENARIO, first).output().unwrap());
    nothing_left(dir.path());

    let session = &records(dir.path(), "session")[0];
    assert_eq!(session["scenario"], "hummer");
    assert_eq!(
        (&session["sides"][0]["side"], &session["sides"][1]["side"]),
        (&"plain".into(), &"sealed".into())
    );
    assert!(session["sides"][1]["extension_sha256"].is_string());
    assert_eq!(session["sides"][1]["engine"], session["sides"][0]["engine"]);
    let parameters = &session["parameters"];
    assert_eq!((&parameters["scale"], &parameters["processes"]), (&1.0.into(), &3.into()));
    assert!(parameters["estimate_s"].as_f64().unwrap() > 0.0);
    assert_eq!(parameters["principal_mixes"][2], "0/5/5");
    assert!(parameters["whole_estimate_s"].is_null());

    let all = runs(dir.path());
    assert_eq!(all.len(), 2 * 6 * 2);
    for ((cell, round, side), run) in &all {
        let one = |what: &str| *run.get(what).unwrap_or_else(|| panic!("{cell} {side}: {what}"));
        let rate = cell.starts_with("rate");
        // Three processes do 40 loops of the mix each, four times its ten.
        assert_eq!(one("done_loops"), if rate { 120.0 } else { 180.0 }, "{cell}");
        let [read, update, insert] =
            ["read", "update", "insert"].map(|name| one(&format!("{name}_operations")));
        assert_eq!([read, update, insert], [48.0, 36.0, 36.0]);
        let created = if rate { 0.0 } else { 60.0 };
        assert_eq!((one("vendor_rows"), one("card_rows")), (created, created));
        assert_eq!(one("purchase_rows"), created + insert);
        assert_eq!(run.get("create_operations").copied().unwrap_or(0.0), 3.0 * created);
        assert_eq!(one("control_operations"), one("done_loops"));
        assert!(one("read_p50_us") <= one("read_p999_us") && one("insert_mean_us") > 0.0);
        let delays_s = if rate { 0.0 } else { 0.015 };
        assert!(one("delay_s") >= delays_s && one("busy_s") <= one("elapsed_s") - delays_s);
        assert!(one("loop_passed_s") < one("elapsed_s"));
        // Counted in ticks of 10 ms, of which runs this short have few: rounded up they can be more than the machine has.
        for percent in ["workers_at_loop_percent_cpu", "machine_percent_cpu"].map(one) {
            assert!((0.0..=150.0).contains(&percent), "{cell} {side}: {percent} %");
        }
        let series = run.contains_key("workers_second_0_percent_cpu");
        assert_eq!(series, *round == 1, "{cell} {round}");
        assert!(!run.contains_key("seen_changes"));
        if rate {
            // 40 loops at 200 a second.
            assert!(one("elapsed_s") > 0.195, "{}", one("elapsed_s"));
        }
    }
    let last = records(dir.path(), "observation").pop().unwrap();
    assert_eq!(last["what"], "elapsed_s", "a run without it is not complete");

    // What is there is left out, of the same parameters.
    let more = "--resume --rounds 5 --cells elapsed-4/3/3,busy-0/5/5-DELETE";
    let said = good(&lab(dir.path(), SCENARIO, more).output().unwrap());
    assert!(said.contains("1 cells are in the records, 1 are not"), "{said}");
    assert!(!said.contains("elapsed-4/3/3, round"), "{said}");
    let sessions = records(dir.path(), "session");
    assert_eq!(sessions[1]["parameters"]["cells"], serde_json::json!(["busy-0/5/5-DELETE"]));
    assert_eq!(runs(dir.path()).len(), 3 * 6 * 2);
    let estimate = |line: &str| -> f64 {
        let output = lab(dir.path(), SCENARIO, line).output().unwrap();
        good(&output);
        String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
    };
    assert_eq!(estimate(&format!("{more} --estimate")), 0.0);
    assert!(estimate("--resume --rounds 6 --cells rate-4/3/3 --estimate") > 0.0);
    assert_eq!(records(dir.path(), "session").len(), 2);
    nothing_left(dir.path());
}

/// A hummer whose processes make five rows of each table and then sleep for ten minutes.
struct Running {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
    /// As it says itself: --database FILE --key-file FILE.
    reached: Vec<String>,
}

impl Running {
    fn start(dir: &Path, sides: &str) -> Self {
        let scenario = SCENARIO
            .replace("\nloops = 60", "\nloops = 200_000")
            .replace("creating_loops = 20", "creating_loops = 5")
            .replace("delay_every_loops = 20", "delay_every_loops = 500")
            .replace("delay_ms = 5\n", "delay_ms = 600_000\n");
        let line = format!("--rounds 5 --cells elapsed-10/0/0 --sides {sides}");
        let mut child =
            lab(dir, &scenario, &line).process_group(0).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        let (_, reached) = line.split_once("min left, ").unwrap_or_else(|| panic!("{line}"));
        let reached: Vec<String> = reached.split_whitespace().map(str::to_string).collect();
        assert_eq!(reached[0], "--database");
        let running = Self { child, errors, reached };
        running.wait_for_work(64 << 10);
        running
    }

    fn database(&self) -> PathBuf {
        PathBuf::from(&self.reached[1])
    }

    /// Until the processes have written so much to the WAL; what comes before them writes two pages.
    fn wait_for_work(&self, bytes: u64) {
        let wal = self.database().with_extension("db-wal");
        let start = Instant::now();
        while std::fs::metadata(&wal).map_or(0, |meta| meta.len()) < bytes {
            assert!(start.elapsed() < LONGEST_WAIT, "nobody works");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn control(&self, line: &str) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
        command.args(["hummer", "control"]).args(&self.reached).args(line.split_whitespace());
        good(&command.output().unwrap())
    }

    /// The status, and what was said after the first line.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.errors.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

#[test]
fn a_mix_changed_live_takes_effect_during_a_delay_and_stop_leaves_nothing() {
    let mut effects_ms = Vec::new();
    // A busy machine is late; it is not late ten times.
    let in_time = |seen: &[f64]| seen.iter().any(|effect_ms| *effect_ms <= EFFECT_MS);
    for (round, sides) in ["plain,again", "sealed,sealed"].into_iter().cycle().take(10).enumerate()
    {
        if round >= 2 && in_time(&effects_ms) {
            break;
        }
        let dir = tempfile::tempdir().unwrap();
        let running = Running::start(dir.path(), sides);
        let mut head = [0; 16];
        std::fs::File::open(running.database()).unwrap().read_exact(&mut head).unwrap();
        assert_eq!(&head == b"SQLite format 3\0", sides == "plain,again");

        // Asleep or not, from now on they insert: megabytes, where 45 rows took half of one.
        let said = running.control("--mix 0/0/10 --delay-ms 0");
        assert!(said.contains("mix 0/0/10, DELAY 0 ms"), "{said}");
        running.wait_for_work(2 << 20);
        assert!(running.control("--stop").contains("stop"));
        let (code, said) = running.end();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("stopped in elapsed-10/0/0-stopped"), "{said}");
        nothing_left(dir.path());

        let all = runs(dir.path());
        assert_eq!(all.len(), 1);
        let ((cell, ..), run) = all.iter().next().unwrap();
        assert_eq!(cell, "elapsed-10/0/0-stopped", "it is in no figure of the cell");
        assert!(run["seen_changes"] >= 4.0, "three saw the stop, and who inserted saw the mix");
        let effect_ms = run["longest_effect_ms"];
        assert!(effect_ms <= LONGEST_EFFECT_MS, "{effect_ms}");
        effects_ms.push(effect_ms);
        assert!(run["insert_operations"] > 0.0);
        assert_eq!(run["purchase_rows"], 15.0 + run["insert_operations"]);
    }
    assert!(in_time(&effects_ms), "{effects_ms:?}");
}

#[test]
fn a_signal_stops_as_the_control_table_does() {
    let dir = tempfile::tempdir().unwrap();
    let running = Running::start(dir.path(), "plain,again");
    // As a terminal does: to the lab and its processes.
    kill_process_group(Pid::from_child(&running.child), Signal::INT).unwrap();
    let (code, said) = running.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("stopped in elapsed-10/0/0-stopped"), "{said}");
    nothing_left(dir.path());
}

#[test]
fn control_needs_something_to_say_and_a_hummer_to_say_it_to() {
    let control = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
        command.args(["hummer", "control"]).args(line.split_whitespace()).output().unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.db");
    let database = format!("--database {}", path.display());
    assert_eq!(control(&database).status.code(), Some(2));
    let missing = control(&format!("{database} --stop"));
    assert_eq!(missing.status.code(), Some(1));
    assert!(!path.exists());
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE t(a)").unwrap();
    let other = control(&format!("{database} --stop"));
    assert_eq!(other.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&other.stderr).contains("no control table"));
}

#[test]
fn a_smaller_run_says_what_the_whole_would_take() {
    let dir = tempfile::tempdir().unwrap();
    good(&lab(dir.path(), SCENARIO, "--rounds 5 --scale 0.5 --cells busy-4/3/3").output().unwrap());
    let parameters = &records(dir.path(), "session")[0]["parameters"];
    let seconds = |name: &str| parameters[name].as_f64().unwrap();
    assert_eq!(seconds("scale"), 0.5);
    // Of all cells, and this was one.
    assert!(seconds("whole_estimate_s") > 2.0 * seconds("estimate_s"), "{parameters}");
}

#[test]
fn an_estimate_is_of_what_was_asked_for_and_measures_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let estimate = |line: &str| -> f64 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
        let dir = ["--dir".as_ref(), dir.path().as_os_str()];
        let output =
            command.arg("hummer").args(line.split_whitespace()).args(dir).output().unwrap();
        good(&output);
        String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
    };
    let (all, elapsed) = (estimate("--estimate"), estimate("--estimate --cells elapsed"));
    // Three mixes, two sides, eleven rounds: a hundred DELAYs of a second each and five seconds before.
    assert!(elapsed > 3.0 * 2.0 * 11.0 * 105.0 && all > elapsed, "{all} {elapsed}");
    assert!(estimate("--estimate --scale 0.1") < all / 5.0);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

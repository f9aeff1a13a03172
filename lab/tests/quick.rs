//! Goal: `lab quick` and `lab full` from the command line: what they say is what the records say, and a piece that is done
//! is not done again.
//!
//! Method: databases of a megabyte or two and runs of a twentieth of a second. No time is judged.
#![allow(clippy::unwrap_used)]

#[path = "report/elements.rs"]
mod elements;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use elements::{numbers, Element};
use rustix::fs::statvfs;
use rustix::process::{kill_process, Pid, Signal};
use serde_json::Value;

const TINY: &str = "--scale 0.01";
const LONGEST_WAIT: Duration = Duration::from_secs(900);

fn lab(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
    command.args(line.split_whitespace()).stdin(Stdio::null());
    command
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn good(command: &mut Command) -> (String, String) {
    let output = command.output().unwrap();
    let (out, err) = said(&output);
    assert!(output.status.success(), "{out}{err}");
    (out, err)
}

fn lines(records: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(records).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn sessions(records: &Path) -> Vec<Value> {
    lines(records).into_iter().filter(|line| line["record"] == "session").collect()
}

/// The files and directories below `dir`, by their names.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The page's numbers of `statistic`, by session, cell, side and quantity.
fn of_page(page: &str, statistic: &str) -> BTreeMap<[String; 4], f64> {
    let of = |element: &Element| {
        let keys = ["session", "cell", "side", "what"].map(|key| element[key].clone());
        (keys, element["value"].parse().unwrap())
    };
    let known = |element: &&Element| element.get("statistic").is_some_and(|it| it == statistic);
    numbers(page).iter().filter(known).map(of).collect()
}

/// Median of the ratios of one side to the base, by other code than the lab's.
fn median(lines: &[Value], session: &str, cell: &str, (base, side): (&str, &str)) -> f64 {
    let values = |wanted: &str| -> BTreeMap<u64, f64> {
        lines
            .iter()
            .filter(|line| line["record"] == "run" && line["session"] == session)
            .filter(|line| line["cell"] == cell && line["side"] == wanted)
            .map(|line| (line["round"].as_u64().unwrap(), line["ops_per_s"].as_f64().unwrap()))
            .filter(|(round, _)| *round > 0)
            .collect()
    };
    let (base, side) = (values(base), values(side));
    assert!(base.len() >= 5 && base.keys().eq(side.keys()), "{base:?} {side:?}");
    let mut ratios: Vec<_> = side.iter().map(|(round, value)| value / base[round]).collect();
    ratios.sort_by(f64::total_cmp);
    let half = ratios.len() / 2;
    match ratios.len() % 2 {
        1 => ratios[half],
        _ => (ratios[half - 1] + ratios[half]) / 2.0,
    }
}

#[test]
fn a_quick_answer_is_measured_and_page_and_records_agree() {
    let dir = tempfile::tempdir().unwrap();
    let databases = tempfile::tempdir().unwrap();
    let records = dir.path().join("quick.jsonl");
    let line = format!("quick {TINY} --budget-s 600 --estimate");
    let seconds: f64 = good(&mut lab(&line)).0.trim().parse().unwrap();
    assert!(seconds > 0.0 && seconds < 600.0);
    let quick = || {
        let mut command = lab(&format!("quick {TINY} --rounds 5 --budget-s 6000"));
        command.arg("--records").arg(&records).arg("--dir").arg(databases.path());
        command
    };
    let (out, err) = good(&mut quick());
    assert!(out.starts_with("About ") && out.contains("5 rounds of each"), "{out}");
    assert!(err.contains("OLTP, one process and ten, 1 of 4, 5 rounds; "), "{err}");
    assert!(out.contains("On this machine: OLTP ") && out.contains("`lab full` measures"), "{out}");
    assert_eq!(names(dir.path()), ["quick.html", "quick.jsonl"]);
    assert!(names(databases.path()).is_empty(), "databases are removed");

    let lines = lines(&records);
    let scenarios: Vec<_> = lines
        .iter()
        .filter(|line| line["record"] == "session")
        .map(|line| line["scenario"].as_str().unwrap())
        .collect();
    assert_eq!(scenarios, ["purchase", "backup-matrix", "whole", "opening"]);
    let measured: BTreeSet<_> = lines.iter().filter_map(|line| line["cell"].as_str()).collect();
    for cell in [
        "1-NORMAL-4/3/3",
        "10-NORMAL-4/3/3",
        "COMPRESSION, disk to disk",
        "restore, COMPRESSION, disk to disk",
        "integrity-check-warm-1MiB",
        "process-to-first-row",
    ] {
        assert!(measured.contains(cell), "{cell}: {measured:?}");
    }

    // The page's medians are those of the runs.
    let page = std::fs::read_to_string(dir.path().join("quick.html")).unwrap();
    let medians = of_page(&page, "median");
    let session = sessions(&records)[0]["session"].as_str().unwrap().to_string();
    let mut compared = 0;
    for ([of, cell, side, what], value) in &medians {
        if *of == session && what == "ops_per_s" {
            let ratio = median(&lines, &session, cell, ("plain", side));
            assert!((ratio - value).abs() <= 1e-12 * ratio, "{cell} {side}: {ratio} {value}");
            compared += 1;
        }
    }
    assert_eq!(compared, 4, "two cells, two sides: {medians:?}");

    // The sentence of the page is printed, and what it does not resolve is named once more.
    let (_, sentence) = page.split_once("<h1>").unwrap();
    let sentence = sentence.split_once("</h1>").unwrap().0;
    assert!(out.contains(sentence), "{sentence}\n{out}");
    let open = page.split_once("Not resolved: ").map_or("", |(_, open)| open);
    let open: Vec<&str> = open.split(".</p>").next().unwrap().split(", ").collect();
    let open: Vec<&str> = open.into_iter().filter(|name| !name.is_empty()).collect();
    for name in ["OLTP", "encrypted backups", "restores"] {
        let told = sentence.contains(&format!("{name} not resolved"));
        assert!(!told || open.contains(&name), "{name}: {open:?}\n{sentence}");
    }
    let expected = match open.is_empty() {
        true => "Resolved: each kind of work".to_string(),
        false => format!("Not resolved at this length: {}. ", open.join(", ")),
    };
    assert!(out.contains(&expected), "{expected}\n{out}");

    // What is there is not written to.
    let again = quick().output().unwrap();
    assert_eq!(again.status.code(), Some(1));
    assert!(said(&again).1.contains("is there already"), "{again:?}");
}

#[test]
fn too_little_time_is_refused_with_what_it_takes() {
    let dir = tempfile::tempdir().unwrap();
    let output =
        lab("quick --budget-s 10").arg("--records").arg(dir.path().join("q.jsonl")).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).1.contains("5 rounds take about"), "{output:?}");
    assert!(names(dir.path()).is_empty());
}

/// `lab full` of two small pieces: one that is done at once, one that never ends by itself.
struct Full {
    records: PathBuf,
    databases: tempfile::TempDir,
    _dir: tempfile::TempDir,
}

impl Full {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let databases = tempfile::tempdir().unwrap();
        Self { records: dir.path().join("records"), databases, _dir: dir }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = lab("full --rounds 5");
        command.args(line.split_whitespace());
        command.arg("--records").arg(&self.records).arg("--dir").arg(self.databases.path());
        command
    }

    fn file(&self, piece: &str) -> PathBuf {
        self.records.join(format!("{piece}.jsonl"))
    }

    /// Starts it, and waits until `piece` has its session's line.
    fn until(&self, line: &str, piece: &str) -> Child {
        let mut command = self.command(line);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let errors = child.stderr.take().unwrap();
        // Read to its end, so that it never waits for a reader.
        std::thread::spawn(move || BufReader::new(errors).lines().for_each(drop));
        let since = Instant::now();
        while std::fs::metadata(self.file(piece)).map_or(0, |file| file.len()) == 0 {
            assert!(since.elapsed() < LONGEST_WAIT && child.try_wait().unwrap().is_none());
            std::thread::sleep(Duration::from_millis(20));
        }
        child
    }
}

#[test]
fn a_piece_that_is_stopped_is_run_again_and_one_that_is_done_is_not() {
    let full = Full::new();
    let pieces = "--scale 0.0005 --pieces opening,scan-speed,backup-overhead";
    let mut child = full.until(pieces, "scan-speed");
    assert!(!names(full.databases.path()).is_empty());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(names(full.databases.path()).is_empty(), "databases are removed");
    assert!(!full.records.join("report.html").exists());
    let first = std::fs::read(full.file("opening")).unwrap();
    let stopped = std::fs::read(full.file("scan-speed")).unwrap();
    assert!(!full.file("backup-overhead").exists());

    // Not by accident.
    let refused = full.command(pieces).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).1.contains("`--resume` goes on"), "{refused:?}");
    let (plan, _) = good(&mut full.command(&format!("{pieces} --resume --estimate")));
    assert_eq!(plan.matches("complete: left out").count(), 1, "{plan}");

    let (out, err) = good(&mut full.command(&format!("{pieces} --resume")));
    assert!(err.contains("full: scan-speed, 2 of 3") && !err.contains("full: opening"), "{err}");
    assert_eq!(std::fs::read(full.file("opening")).unwrap(), first, "it was not run again");
    assert_eq!(std::fs::read(full.records.join("aside/scan-speed-1.jsonl")).unwrap(), stopped);
    assert_eq!(sessions(&full.file("scan-speed")).len(), 1);
    assert!(out.contains("On this machine: ") && out.contains("report.html"), "{out}");
    let page = std::fs::read_to_string(full.records.join("report.html")).unwrap();
    for piece in ["opening", "scan-speed", "backup-overhead"] {
        let session = sessions(&full.file(piece))[0]["session"].as_str().unwrap().to_string();
        assert!(page.contains(&session), "{piece}");
    }

    // With other options it is another piece.
    let (plan, _) = good(&mut full.command("--scale 0.1 --pieces opening --resume --estimate"));
    assert!(!plan.contains("complete"), "{plan}");
}

/// At a scale of a tenth.
const HUMMER: &str = r#"
processes = 3
loops = 600
creating_loops = 200
start_delay_ms = 20
delay_every_loops = 20
delay_ms = 5
cpu_at_loop = 400
cpu_series_rounds = 1
journal = "WAL"
synchronous = "NORMAL"
page_size_bytes = 4096
cache_kib = 2000
mixes = ["4/3/3"]
principal_mixes = ["4/3/3"]
[settings]
journal = []
synchronous = []
cache_kib = []
[rate]
loops_per_s = 600
seconds = 2
"#;

#[test]
fn hummer_is_a_piece_from_its_estimate_to_the_page() {
    let full = Full::new();
    let scenarios = tempfile::tempdir().unwrap();
    let file = scenarios.path().join("hummer.toml");
    std::fs::write(&file, HUMMER).unwrap();
    let pieces = format!("--scale 0.1 --pieces hummer --scenarios {}", scenarios.path().display());
    let (out, err) = good(&mut full.command(&pieces));
    assert!(out.lines().any(|line| line.starts_with("hummer ")), "{out}");
    assert!(
        err.contains("full: hummer, 1 of 1") && err.contains("full: hummer: done in "),
        "{err}"
    );
    assert_eq!(names(&full.records), ["hummer.jsonl", "pieces.json", "report.html"]);
    assert!(names(full.databases.path()).is_empty(), "databases are removed");

    let lines = lines(&full.file("hummer"));
    let session = &sessions(&full.file("hummer"))[0];
    assert_eq!((&session["parameters"]["scale"], &session["rounds"]), (&0.1.into(), &5.into()));
    // Three cells, two sides, five rounds and the warm-up: in each every loop and every row.
    let told = |what: &str| -> Vec<(&str, f64)> {
        let of = lines.iter().filter(|line| line["what"] == what);
        of.map(|line| (line["cell"].as_str().unwrap(), line["value"].as_f64().unwrap())).collect()
    };
    let cells: BTreeSet<_> = told("done_loops").iter().map(|one| one.0).collect();
    assert_eq!(cells, BTreeSet::from(["busy-4/3/3", "elapsed-4/3/3", "rate-4/3/3"]));
    let (loops, rows) = (told("done_loops"), told("purchase_rows"));
    assert_eq!((loops.len(), rows.len()), (36, 36));
    for ((cell, loops), (_, rows)) in loops.iter().zip(&rows) {
        let expected = if cell.starts_with("rate") { (120.0, 36.0) } else { (180.0, 96.0) };
        assert_eq!((*loops, *rows), expected, "{cell}");
    }

    let page = std::fs::read_to_string(full.records.join("report.html")).unwrap();
    let means = of_page(&page, "mean");
    let of_cells: BTreeSet<_> = means.keys().map(|[_, cell, _, _]| cell.as_str()).collect();
    assert_eq!(of_cells, cells);
    assert!(out.contains("On this machine: OLTP ") && page.contains("On this machine: OLTP "));

    // Complete under these parameters, and not under others.
    let estimate = || good(&mut full.command(&format!("{pieces} --resume --estimate"))).0;
    assert!(estimate().contains("complete: left out"), "{}", estimate());
    std::fs::write(&file, HUMMER.replace("delay_ms = 5\n", "delay_ms = 6\n")).unwrap();
    assert!(!estimate().contains("complete: left out"), "{}", estimate());
}

#[test]
fn an_estimate_names_each_piece_and_does_nothing() {
    let full = Full::new();
    let (plan, _) = good(&mut full.command("--estimate"));
    for piece in ["cells", "cells-peers", "backup-load-delete", "hummer", "all"] {
        assert!(plan.lines().any(|line| line.starts_with(&format!("{piece} "))), "{plan}");
    }
    let all = plan.lines().last().unwrap();
    assert!(all.contains(" h ") && all.contains(" MiB") && all.ends_with(" UTC"), "{all}");
    assert!(!full.records.exists() && names(full.databases.path()).is_empty());
    let unknown = full.command("--pieces cels").output().unwrap();
    assert!(said(&unknown).1.contains("no piece `cels`"), "{unknown:?}");
}

#[test]
fn what_does_not_fit_is_refused_with_the_numbers() {
    let full = Full::new();
    let (plan, _) = good(&mut full.command("--scale 100 --pieces acceleration,opening --estimate"));
    let line = |piece: &str| plan.lines().find(|line| line.starts_with(piece)).unwrap();
    let (before, _) = line("acceleration").split_once(" MiB").unwrap();
    let needed: u64 = before.rsplit(' ').next().unwrap().parse().unwrap();
    let disk = statvfs(full.databases.path()).unwrap();
    let free = (disk.f_bavail * disk.f_frsize) >> 20;
    let refused =
        line("acceleration").contains(&format!("does not fit: {needed} MiB are needed in "));
    assert_eq!(refused, needed > free, "{free} MiB are free: {plan}");
    assert!(!line("opening").contains("does not fit"), "{plan}");
}

/// A build that nobody has built peers for: `release/lab` in it.
fn without_peers() -> tempfile::TempDir {
    let target = tempfile::tempdir().unwrap();
    let release = target.path().join("release");
    std::fs::create_dir(&release).unwrap();
    let built = Path::new(env!("CARGO_BIN_EXE_lab"));
    // By another process: what a thread of this one forks meanwhile would have it open for writing, and the system runs no
    // such file (execve(2), ETXTBSY).
    let copied = Command::new("cp").args([built, &release.join("lab")]).status();
    assert!(copied.unwrap().success());
    for name in ["pellucid", "libpellucid.so"] {
        std::os::unix::fs::symlink(built.with_file_name(name), release.join(name)).unwrap();
    }
    target
}

#[test]
fn peers_is_one_word_and_names_those_that_are_not_built() {
    let (help, _) = good(&mut lab("--help"));
    assert!(help.lines().any(|line| line.trim_start().starts_with("peers ")), "{help}");
    let target = without_peers();
    let plan = || {
        let mut command = Command::new(target.path().join("release/lab"));
        command.args(["peers", "--estimate", "--records"]).arg(target.path().join("records"));
        good(command.arg("--dir").arg(target.path())).0
    };
    let first = |line: &str| line.split(' ').next().unwrap().to_string();
    let nothing = plan();
    let pieces: Vec<_> = nothing.lines().map(first).collect();
    assert_eq!(pieces, ["cells-peers", "whole-peers", "scan-peers", "backup-speed", "all"]);
    let told = "not built here: SQLite, SQLCipher, SQLite3 Multiple Ciphers (AEGIS, ChaCha20), ";
    assert_eq!(nothing.matches(told).count(), 3, "{nothing}");
    assert_eq!(nothing.matches("`make peers` (lab/peers/build.sh)").count(), 3, "{nothing}");

    // What is there is not named.
    for file in ["lab", "plain/libsqlite3.so.0", "aegis/libsqlite3.so.0"] {
        let file = target.path().join("peers").join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "").unwrap();
    }
    let some = plan();
    assert_eq!(some.matches("not built here: SQLCipher; ").count(), 3, "{some}");
}

#[test]
fn what_cannot_be_run_is_told_at_the_end_and_is_no_success() {
    let full = Full::new();
    let target = without_peers();
    let mut command = Command::new(target.path().join("release/lab"));
    command.args(full.command("--scale 0.0005 --pieces opening,scan-peers").get_args());
    let output = command.output().unwrap();
    let (out, err) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(
        err.contains("not measured: scan-peers: ") && err.contains("lab/peers/build.sh"),
        "{err}"
    );
    assert_eq!(sessions(&full.file("opening")).len(), 1);
    assert!(full.records.join("report.html").exists() && !full.file("scan-peers").exists());
}

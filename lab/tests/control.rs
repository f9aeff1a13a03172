//! Goal: a session in turns, one that ends when its interval is narrow, and the control that is made of them, through real
//! worker processes.
//!
//! Method: plain against plain, and against the double (lab/tests/double) that takes half more time, in turns of 5 ms: a
//! slow minute of the machine is in both sides of a pair. On a busy machine one session of seconds may tell nothing, so
//! what has to be found may take several; what must not be found is asked for once. How little can be told is the
//! campaign's, `lab-control`.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// Sessions of which one has to find what is there: few, since one in 64 finds six slower pairs by chance.
const SESSIONS: usize = 6;
/// Sessions of which one has to have a narrow interval: a busy machine has few of those.
const NARROW_SESSIONS: usize = 40;

/// The tests of this file measure, and take turns.
static MEASURES: Mutex<()> = Mutex::new(());

const SMALL: &str = "--vendors 40 --cards 400 --purchases 2000 --cells 1-NORMAL-10/0/0 --turn-ms 5";

fn lab(dir: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(line.split_whitespace())
        .args(SMALL.split_whitespace())
        .args(["--dir".as_ref(), dir.as_os_str()])
        .args(["--records".as_ref(), dir.join("records.jsonl").as_os_str()])
        .output()
        .unwrap()
}

fn alone() -> MutexGuard<'static, ()> {
    MEASURES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks until the answer is found, and how many sessions that took.
fn find(dir: &Path, line: &str, sessions: usize) -> (Output, usize) {
    let ask = |asked| (lab(dir, line), asked);
    let mut answers = (1..=sessions).map(ask);
    let answer = answers.find(|(output, asked)| output.status.success() || *asked == sessions);
    let (output, asked) = answer.unwrap();
    assert!(output.status.success(), "{}", said(&output));
    (output, asked)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn records(dir: &Path, kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.join("records.jsonl")).unwrap();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|record| record["record"] == kind).collect()
}

/// Which takes so many thousandths more time than plain SQLite.
fn double(dir: &Path, per_mille: u32) -> PathBuf {
    let (source, made) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/double/slow.c"), dir.join("slow.so"));
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let status = Command::new(compiler)
        .args(["-O2", "-fPIC", "-shared", &format!("-DPER_MILLE={per_mille}"), "-o"])
        .args([&made, &source])
        .status();
    assert!(status.unwrap().success());
    made
}

#[test]
fn the_double_is_found_in_turns_and_plain_is_not() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let made = double(dir.path(), 500);
    let control = "control --runs 1 --at-least 1 --seconds 0.2 --rounds 6";
    let line = format!("{control} --sides plain,loaded --slower --extension {}", made.display());
    let (found, for_slower) = find(dir.path(), &line, SESSIONS);
    assert!(said(&found).contains("1 of 1 runs find the side slower, each of 6 pairs of 0.2 s"));

    // What is not there is not called slower by as much; and is asked for in vain.
    let line = format!("{control} --sides plain,again --less-than-percent 25");
    let (_, for_less) = find(dir.path(), &line, NARROW_SESSIONS);
    let line = format!(
        "{control} --sides plain,loaded --less-than-percent 25 --extension {}",
        made.display()
    );
    let wrong = lab(dir.path(), &line);
    assert_eq!(wrong.status.code(), Some(1), "{}", said(&wrong));
    assert!(said(&wrong).contains("0 of 1 runs find the side slower by less than 25.0 %"));

    let sessions = records(dir.path(), "session");
    assert!(sessions.iter().all(|session| session["parameters"]["turn_ms"] == 5));
    // Each side of each round has a run of about its length: turns end with an operation.
    let runs = records(dir.path(), "run");
    assert_eq!(runs.len(), (for_slower + for_less + 1) * 2 * 7);
    assert!(runs.iter().all(|run| run["all"]["operations"].as_u64().unwrap() > 0), "{runs:?}");
}

#[test]
fn a_session_ends_when_its_interval_is_narrow_or_says_that_it_is_not() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let purchase = "purchase --sides plain,again --seconds 0.05";
    let rounds = || {
        let last = records(dir.path(), "cell").pop().unwrap();
        last["ratios"].as_array().unwrap().len()
    };
    let wide = lab(dir.path(), &format!("{purchase} --rounds 60 --until-percent 100"));
    assert!(wide.status.success() && !said(&wide).contains("narrow"), "{}", said(&wide));
    assert!((10..60).contains(&rounds()), "{}", rounds());
    assert_eq!(records(dir.path(), "session")[0]["parameters"]["until_percent"], 100.0);

    let never = lab(dir.path(), &format!("{purchase} --rounds 11 --until-percent 0.01"));
    assert!(never.status.success(), "{}", said(&never));
    assert!(
        said(&never).contains("11 rounds did not make its interval narrow"),
        "{}",
        said(&never)
    );
    assert_eq!(rounds(), 11);

    // Where no cell can end early, nothing is measured.
    let before = records(dir.path(), "session").len();
    let useless = lab(dir.path(), &format!("{purchase} --until-percent 1"));
    assert_eq!(useless.status.code(), Some(1));
    assert!(said(&useless).contains("--rounds"), "{}", said(&useless));
    assert_eq!(records(dir.path(), "session").len(), before);
}

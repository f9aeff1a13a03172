//! Goal: a sealed database answers every statement as a plain one does, and holds the same at the end.
//!
//! Method: a seed makes up a script of statements, settings, backups, kills and reopenings on up to
//! four connections. The same SQLite runs each step on a plain and on a sealed database; rows, types,
//! codes, messages and counters are compared after each, and at the end the content of every file by
//! its dump, its integrity check and its bytes as SQLite sees them. What may differ is `allowed.rs`,
//! and nothing else. A script that shows a difference is made small and written to a file.
//!
//! CI: fixed seeds. `PELLUCID_MODEL_SEED` and `PELLUCID_MODEL_SECONDS` choose other runs
//! (tests/campaigns/model), `PELLUCID_MODEL_REPLAY` runs a script again, with `PELLUCID_MODEL_CONTROL` on two plain
//! databases: what differs there as well is not the shim's. It can fail: `faults.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod alike;
mod allowed;
mod changes;
mod connection;
mod faults;
mod generator;
mod knowledge;
use pellucid_tests::limits;
mod queries;
use pellucid_tests::random;
mod replaced;
mod run;
mod schema;
mod script;
mod settings;
mod shrink;
mod values;
mod world;

use std::time::{Duration, Instant};

use generator::Generator;
use random::Random;
use run::Bench;
use script::Script;
use shrink::{shrink, Found};

/// Steps of one script.
const STEPS: usize = 250;
/// Scripts that are run however long they take.
const LEAST_SCRIPTS: usize = 21;
/// How long a script is made smaller.
const SHRINKING: Duration = Duration::from_secs(90);

/// Scripts run so far, and what they showed.
#[derive(Debug, Default)]
struct Tally {
    scripts: usize,
    statements: usize,
    succeeded: usize,
    differences: usize,
}

/// One script made up from `seed`; a difference is shown, made small, and written to a file.
fn script(bench: &Bench, seed: u64, tally: &mut Tally) {
    // One in eight runs against ordinary pages, without room for what sealing needs.
    let same_pages = seed % 8 != 7;
    let run = bench.run(&mut Generator::new(seed, same_pages, STEPS), same_pages);
    tally.scripts += 1;
    tally.statements += run.steps.len();
    tally.succeeded += run.succeeded;
    if let Some(difference) = run.difference {
        tally.differences += 1;
        println!("seed {seed}: {difference}");
        let script = Script { same_pages, steps: run.steps };
        let found = shrink(bench, Found { script, difference }, SHRINKING);
        let file = std::env::temp_dir().join(format!("pellucid-model-{seed}.script"));
        let text = format!("# seed {seed}: {}\n{}", found.difference.kind, found.script);
        std::fs::write(&file, &text).unwrap();
        println!("{text}{}\nPELLUCID_MODEL_REPLAY={}", found.difference, file.display());
    }
}

/// Runs scripts until the time is over, and some at least, or a difference was found.
fn scripts(seeds: &mut dyn FnMut() -> u64, limit: Duration, most: usize) -> Tally {
    let bench = Bench::new("pellucid");
    let (start, mut tally) = (Instant::now(), Tally::default());
    let goes_on = |tally: &Tally| start.elapsed() < limit || tally.scripts < LEAST_SCRIPTS;
    while goes_on(&tally) && tally.scripts < most && tally.differences == 0 {
        script(&bench, seeds(), &mut tally);
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{tally:?}, {:.0} statements/s", tally.statements as f64 / seconds);
    tally
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[test]
fn sealed_answers_as_plain_does() {
    if let Some(file) = variable("PELLUCID_MODEL_REPLAY") {
        return replay(&file);
    }
    let number = |name| variable(name).and_then(|value| value.parse().ok());
    if let Some(seed) = number("PELLUCID_MODEL_SEED") {
        let seconds = number("PELLUCID_MODEL_SECONDS").unwrap_or(0);
        println!("model, seed {seed}, {seconds} s");
        let mut random = Random(seed);
        let (mut seeds, limit, most) = match seconds {
            // One script, to look at.
            0 => (Box::new(move || seed) as Box<dyn FnMut() -> u64>, 600, 1),
            seconds => (Box::new(move || random.draw() >> 16) as _, seconds, usize::MAX),
        };
        let tally = scripts(&mut seeds, Duration::from_secs(limit), most);
        let result = if tally.differences == 0 { "ok" } else { "FAILED" };
        println!("RESULT {} {} {result}", tally.statements, tally.differences);
        assert_eq!(tally.differences, 0);
        return;
    }
    let mut seed = 0;
    let mut next = || {
        seed += 1;
        seed
    };
    let tally = scripts(&mut next, Duration::from_secs(60), 2500);
    assert_eq!(tally.differences, 0);
    assert!(
        tally.succeeded * 5 > tally.statements * 3,
        "{tally:?}: most steps have to do something"
    );
    assert!(tally.scripts >= LEAST_SCRIPTS, "{tally:?}: nothing was tested");
}

/// Small scripts of defects that were found here and mended.
#[test]
fn scripts_that_once_differed() {
    for entry in
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/model/scripts")).unwrap()
    {
        let file = entry.unwrap().path();
        println!("{}", file.display());
        replay(&file.display().to_string());
    }
}

/// Runs a script from a file again.
fn replay(file: &str) {
    let script: Script = std::fs::read_to_string(file).unwrap().parse().unwrap();
    let run = Bench::new("pellucid").replay(&script);
    println!("{} of {} steps", run.steps.len(), script.steps.len());
    if let Some(difference) = run.difference {
        panic!("{difference}");
    }
}

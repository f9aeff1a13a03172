//! The lab: what encryption costs on this machine, by paired runs of shipped artefacts.
//!
//! The extension is loaded into the SQLite that is linked here; the sides run the same SQLite and
//! the same code, in processes of their own. Exit status: 0 done, 1 failed, below `--minimum` or a
//! verdict that is not passed, 2 usage.
#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod arguments;
mod blocks;
mod error;
mod extension;
mod fixture;
mod goals;
mod histogram;
mod machine;
mod pieces;
mod plan;
mod pool;
mod random;
mod record;
mod scenario;
mod side;
mod statistics;
mod table;
mod verdict;
mod worker;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

use arguments::{Arguments, Command, Options};
use blocks::Blocks;
use error::{Error, Result};
use fixture::Fixture;
use goals::Goals;
use machine::Machine;
use pieces::Pieces;
use plan::Cell;
use record::{CellResult, Record, Session, Sink};
use verdict::Verdict;

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Worker => worker::serve().map(|()| true),
        Command::Purchase(options) => purchase(&options),
        Command::Verdict { files, session, json } => {
            Pieces::read(&files, &session).and_then(|pieces| judge(&pieces, json))
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("lab: error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures every cell of the plan; false if one is below the minimum.
fn purchase(options: &Options) -> Result<bool> {
    let scenario = "purchase";
    let plan = options.plan()?;
    let dir = options.dir();
    let dir = dir.canonicalize().map_err(Error::io(dir.display().to_string()))?;
    let dir = tempfile::Builder::new()
        .prefix("pellucid-lab-")
        .tempdir_in(&dir)
        .map_err(Error::io(dir.display().to_string()))?;
    let key_file = dir.path().join("key");
    let sides = options.sides(&key_file)?;
    let mut sink = Sink::open(&options.records(scenario), options.json)?;
    side::write_key_file(&key_file)?;

    let (setting, seed) = (options.setting(), options.seed);
    let fixtures: Vec<Fixture> = sides
        .into_iter()
        .map(|side| {
            let home = dir.path().join(&side.name);
            Fixture::prepare(side, setting, seed, home)
        })
        .collect::<Result<_>>()?;
    let (schema, name, started_unix_s) = Session::stamp();
    let session = Session {
        schema,
        session: name.clone(),
        started_unix_s,
        scenario: scenario.into(),
        sides: fixtures.iter().map(Fixture::describe).collect::<Result<_>>()?,
        rounds: options.rounds,
        warm_up_rounds: blocks::WARM_UP_ROUNDS,
        limit: options.limit(),
        seed,
        setting,
        machine: Machine::describe(dir.path())?,
    };
    sink.write(&Record::Session(&session))?;

    let (rounds, limit) = (options.rounds, options.limit());
    let blocks = Blocks { session: name, fixtures, setting, rounds, limit, seed };
    let cells = measure_all(&blocks, plan, &mut sink)?;
    let sessions = [session];
    let verdict = Verdict::of(&sessions, &cells, &Goals::read())?;
    sink.write(&Record::Verdict(&verdict))?;
    if !options.json {
        println!("{}", table::render(&sessions, &cells, &verdict));
    }
    Ok(at_least(options.minimum, &cells))
}

fn measure_all(blocks: &Blocks, plan: Vec<Cell>, sink: &mut Sink) -> Result<Vec<CellResult>> {
    let rounds = blocks::WARM_UP_ROUNDS + blocks.rounds;
    let progress = progress(plan.len() * rounds * blocks.fixtures.len());
    let mut results = Vec::new();
    for cell in plan {
        progress.set_message(cell.to_string());
        let of_cell = blocks.measure(cell, |run| {
            progress.inc(1);
            sink.write(&Record::Run(run))
        })?;
        of_cell.iter().try_for_each(|result| sink.write(&Record::Cell(result)))?;
        results.extend(of_cell);
    }
    progress.finish_and_clear();
    Ok(results)
}

/// On standard error, and only on a terminal.
fn progress(runs: usize) -> ProgressBar {
    let progress = ProgressBar::new(runs as u64);
    if let Ok(style) = ProgressStyle::with_template(
        "{bar:30} run {pos} of {len}  {msg}  {elapsed_precise}, {eta} left",
    ) {
        progress.set_style(style);
    }
    progress.enable_steady_tick(Duration::from_millis(500));
    progress
}

fn at_least(minimum: Option<f64>, results: &[CellResult]) -> bool {
    let Some(minimum) = minimum else { return true };
    let below: Vec<_> = results.iter().filter(|result| result.ratio.median < minimum).collect();
    for result in &below {
        let side = &result.sides[1].side;
        eprintln!("lab: below {minimum}: {side}, {}: {:.3}", result.cell, result.ratio.median);
    }
    below.is_empty()
}

/// False if a goal is not reached.
fn judge(pieces: &Pieces, json: bool) -> Result<bool> {
    let verdict = Verdict::of(&pieces.sessions, &pieces.cells, &Goals::read())?;
    if json {
        let line = serde_json::to_string(&Record::Verdict(&verdict))
            .map_err(|error| Error::invalid(format!("the verdict: {error}")))?;
        println!("{line}");
    } else {
        println!("{}", table::render(&pieces.sessions, &pieces.cells, &verdict));
    }
    Ok(verdict.passed())
}

//! The lab: what encryption costs on this machine, by paired runs of shipped artefacts.
//!
//! The extension is loaded into the SQLite that is linked here; both sides run the same SQLite and
//! the same code, in processes of their own. Exit status: 0 done, 1 failed or below `--minimum`,
//! 2 usage.
#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod arguments;
mod error;
mod extension;
mod fixture;
mod machine;
mod paired;
mod pool;
mod random;
mod record;
mod scenario;
mod side;
mod statistics;
mod table;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

use arguments::{Arguments, Command, Options};
use error::{Error, Result};
use fixture::Fixture;
use machine::Machine;
use paired::Pair;
use record::{CellResult, Record, Session, Sink};
use side::Side;

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Worker => worker::serve().map(|()| true),
        Command::Purchase { extension, options } => arguments::extension(extension)
            .and_then(|path| compare("purchase", Some(path), &options)),
        Command::Null { options } => compare("null", None, &options),
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
fn compare(scenario: &'static str, extension: Option<PathBuf>, options: &Options) -> Result<bool> {
    let dir = options.dir();
    let dir = dir.canonicalize().map_err(Error::io(dir.display().to_string()))?;
    let dir = tempfile::Builder::new()
        .prefix("pellucid-lab-")
        .tempdir_in(&dir)
        .map_err(Error::io(dir.display().to_string()))?;
    let mut sink = Sink::open(&options.records(scenario), options.json)?;

    let sides = match &extension {
        Some(extension) => {
            let key_file = dir.path().join("key");
            side::write_key_file(&key_file)?;
            [Side::plain("plain"), Side::sealed("sealed", extension.clone(), key_file)]
        }
        None => [Side::plain("plain"), Side::plain("again")],
    };
    let (size, seed) = (options.size(), options.seed);
    let [a, b] = sides;
    let fixtures = [
        Fixture::prepare(a, size, seed, dir.path().join("a"))?,
        Fixture::prepare(b, size, seed, dir.path().join("b"))?,
    ];
    let (schema, name, started_unix_s) = Session::stamp();
    let session = Session {
        schema,
        session: name.clone(),
        started_unix_s,
        scenario,
        sides: fixtures.each_ref().map(|fixture| fixture.side.name.clone()),
        extension: extension.map(|path| path.display().to_string()),
        rounds: options.rounds,
        warm_up_rounds: paired::WARM_UP_ROUNDS,
        limit: options.limit(),
        seed,
        size,
        file_bytes: fixtures.each_ref().map(|fixture| fixture.file_bytes),
        page_size_bytes: fixtures.each_ref().map(|fixture| fixture.page_size_bytes),
        machine: Machine::describe(dir.path())?,
    };
    sink.write(&Record::Session(&session))?;

    let pair =
        Pair { session: name, fixtures, rounds: options.rounds, limit: options.limit(), seed };
    let results = measure_all(&pair, options, &mut sink)?;
    if !options.json {
        println!("{}", table::render(&session, &results));
    }
    Ok(at_least(options.minimum, &results))
}

fn measure_all(pair: &Pair, options: &Options, sink: &mut Sink) -> Result<Vec<CellResult>> {
    let cells = options.cells();
    let progress = progress(cells.len() * pair.runs_per_cell());
    let mut results = Vec::new();
    for cell in cells {
        progress.set_message(format!(
            "{} x {} {}",
            cell.processes,
            cell.mix,
            cell.synchronous.name()
        ));
        let result = pair.measure(cell, |run| {
            progress.inc(1);
            sink.write(&Record::Run(run))
        })?;
        sink.write(&Record::Cell(&result))?;
        results.push(result);
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
        eprintln!(
            "lab: below {minimum}: {} processes, {}, {}: {:.3}",
            result.cell.processes,
            result.cell.synchronous.name(),
            result.cell.mix,
            result.ratio.median
        );
    }
    below.is_empty()
}

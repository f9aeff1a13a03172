//! The lab: what encryption costs on this machine, by paired runs of shipped artefacts.
//!
//! The extension is loaded into the SQLite that is linked here; the sides run the same SQLite and
//! the same code, in processes of their own. Exit status: 0 done, 1 failed, below `--minimum` or a
//! verdict that is not passed, 2 usage.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

mod arguments;
mod quoted;

use std::process::ExitCode;

use clap::Parser;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::sink::Record;
use pellucid_lab_measure::{interrupt, pipeline};
use pellucid_lab_report::goals::Goals;
use pellucid_lab_report::recorded::Recorded;
use pellucid_lab_report::verdict::Verdict;
use pellucid_lab_report::{compare, error, report, statistics, table};
use pellucid_lab_work::{backup_speed, full, quick, worker};

use arguments::{Arguments, Command, Other, Several};

fn main() -> ExitCode {
    let done = perform(Arguments::parse().command);
    interrupt::give_way();
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("lab: error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Does what the command says; false if what it asks for was not reached.
fn perform(command: Command) -> Result<bool> {
    match command {
        Command::Several(several) => match several {
            Several::Quick(options) => quick::measure(&options),
            Several::Full(options) => full::measure(&options.pieces, &options.run),
            Several::Peers(options) => full::measure(&[full::PEERS], &options),
        },
        Command::One(measurement) => measurement.perform(),
        Command::Other(other) => match other {
            Other::Verdict { files, session, json } => {
                judge(&Recorded::read(&files, &session)?, json)
            }
            Other::Report { files, out, markdown, all } => {
                Ok(report::report(&files, out.as_deref(), markdown, all)?)
            }
            Other::Compare { a, b, all } => Ok(compare::compare(&a, &b, all)?),
            Other::Figures { documents, root } => Ok(quoted::check(&documents, &root)?),
            Other::Worker => worker::serve().map(|()| true),
            Other::Pipeline => pipeline::serve().map(|()| true),
            Other::VacuumInto { from, to } => backup_speed::vacuum_into(&from, &to).map(|()| true),
        },
    }
}

/// False if a goal is not reached.
fn judge(recorded: &Recorded, json: bool) -> Result<bool> {
    let Recorded { sessions, cells, loads, observations } = recorded;
    let verdict = Verdict::of(sessions, cells, &Goals::read())?.with(sessions, loads, observations);
    if json {
        let line = serde_json::to_string(&Record::Verdict(&verdict))
            .map_err(|error| Error::invalid(format!("the verdict: {error}")))?;
        println!("{line}");
    } else {
        println!("{}", table::render(sessions, cells, loads, observations, &verdict));
    }
    Ok(verdict.passed())
}

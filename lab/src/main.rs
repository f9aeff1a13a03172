//! The lab: what encryption costs on this machine, by paired runs of shipped artefacts.
//!
//! The extension is loaded into the SQLite that is linked here; the sides run the same SQLite and
//! the same code, in processes of their own. Exit status: 0 done, 1 failed, below `--minimum` or a
//! verdict that is not passed, 2 usage.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

mod arguments;
mod full;
mod quick;
mod quoted;

use std::process::ExitCode;

use clap::Parser;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::sink::Record;
use pellucid_lab_measure::{interrupt, pipeline};
use pellucid_lab_report::goals::Goals;
use pellucid_lab_report::pieces::Pieces;
use pellucid_lab_report::verdict::Verdict;
use pellucid_lab_report::{compare, report, table};
use pellucid_lab_work::experiment::{
    self, acceleration, backup_matrix, backup_overhead, maintenance, side_effects, yours,
};
use pellucid_lab_work::{
    backup_speed, control, opening, purchase, scan_load, scan_speed, speedtest1, whole, worker,
};

use arguments::{Arguments, Command};

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Worker => worker::serve().map(|()| true),
        Command::Pipeline => pipeline::serve().map(|()| true),
        Command::VacuumInto { from, to } => backup_speed::vacuum_into(&from, &to).map(|()| true),
        Command::Quick(options) => quick::measure(&options),
        Command::Full(options) => full::measure(&options.pieces, &options.run),
        Command::Peers(options) => full::measure(&[full::PEERS], &options),
        Command::Purchase(options) => purchase::measure(&options),
        Command::Control(options) => control::measure(&options),
        Command::Whole(options) => whole::measure(&options),
        Command::Speedtest1(options) => speedtest1::measure(&options),
        Command::Opening(options) => opening::measure(&options),
        Command::ScanLoad(options) => scan_load::measure(&options),
        Command::BackupLoad(options) => scan_load::measure_backups(&options),
        Command::ScanSpeed(options) => scan_speed::measure(&options),
        Command::BackupSpeed(options) => backup_speed::measure(&options),
        Command::BackupMatrix(options) => backup_matrix::measure(&options),
        Command::BackupOverhead(options) => backup_overhead::measure(&options),
        Command::Hummer(options) => experiment::hummer::measure(&options),
        Command::Maintenance(options) => maintenance::measure(&options),
        Command::SideEffects(options) => side_effects::measure(&options),
        Command::Yours(options) => yours::measure(&options),
        Command::Acceleration(options) => acceleration::measure(&options),
        Command::Verdict { files, session, json } => Pieces::read(&files, &session)
            .map_err(Error::from)
            .and_then(|pieces| judge(&pieces, json)),
        Command::Report { files, out, markdown, all } => {
            report::report(&files, out.as_deref(), markdown, all).map_err(Error::from)
        }
        Command::Compare { a, b, all } => compare::compare(&a, &b, all).map_err(Error::from),
        Command::Figures { documents, root } => {
            quoted::check(&documents, &root).map_err(Error::from)
        }
    };
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

/// False if a goal is not reached.
fn judge(pieces: &Pieces, json: bool) -> Result<bool> {
    let Pieces { sessions, cells, loads, observations } = pieces;
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

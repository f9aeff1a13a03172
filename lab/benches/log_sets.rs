//! What sealing adds to a log set: the same commits in clear and with each algorithm, written as a backup writes them.
//!
//! `pellucid` never backs an encrypted database up in clear, and no other one has log backups. So `lab log-backups` has no such
//! base, and this calls the writer of sets itself. `lab report` shows its records, `lab verdict` judges them.
#![allow(missing_docs)]

#[path = "log_sets/measure.rs"]
mod measure;

use clap::Parser;

fn main() {
    let options = measure::Options::parse();
    if let Err(error) = measure::run(&options) {
        eprintln!("log_sets: {error}");
        std::process::exit(1);
    }
}

//! Options that every measurement takes, and the values that several of them read in one way.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::choice::SideOptions;

/// What every measurement takes.
#[derive(Debug, Clone, Args)]
pub struct Common {
    #[command(flatten)]
    pub sides: SideOptions,
    /// Rounds of each cell, at least 5.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = rounds)]
    pub rounds: usize,
    /// Where the databases are made, and removed again; its file system is part of the answer.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// File that the records are appended to [default: lab/records/SCENARIO.jsonl].
    #[arg(long, value_name = "FILE")]
    pub records: Option<PathBuf>,
    /// Print the records instead of the table.
    #[arg(long)]
    pub json: bool,
    /// Seed of data, operations and the order of runs.
    #[arg(long, default_value_t = 2008)]
    pub seed: u64,
    /// Print about how many seconds it takes, and do nothing.
    #[arg(long)]
    pub estimate: bool,
}

impl Common {
    /// The file of records that was given, or that of the scenario.
    pub fn records(&self, scenario: &str) -> PathBuf {
        self.records
            .clone()
            .unwrap_or_else(|| Path::new("lab/records").join(format!("{scenario}.jsonl")))
    }

    /// As [`base`] has it.
    pub fn dir(&self) -> PathBuf {
        base(self.dir.as_ref())
    }
}

/// The directory that was given, else `target` of a source tree, else the system's.
pub fn base(given: Option<&PathBuf>) -> PathBuf {
    let target = PathBuf::from("target");
    let default = || if target.is_dir() { target } else { std::env::temp_dir() };
    given.cloned().unwrap_or_else(default)
}

/// Reads a number of rounds.
///
/// # Errors
/// For a number that is none of rounds.
pub fn rounds(text: &str) -> std::result::Result<usize, String> {
    text.parse().ok().filter(|n| (5..=1000).contains(n)).ok_or_else(|| "not 5 to 1000".into())
}

/// Reads a number of processes.
///
/// # Errors
/// For a number that is none of processes.
pub fn processes(text: &str) -> std::result::Result<usize, String> {
    text.parse().ok().filter(|n| (1..=1000).contains(n)).ok_or_else(|| "not 1 to 1000".into())
}

/// Reads a length of time.
///
/// # Errors
/// For a length that makes no sense.
pub fn seconds(text: &str) -> std::result::Result<f64, String> {
    let seconds = text.parse().ok().filter(|s| (0.05..=86_400.0).contains(s));
    seconds.ok_or_else(|| "not 0.05 to 86400 seconds".into())
}

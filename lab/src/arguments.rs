//! The command line.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

use crate::error::{Error, Result};
use crate::record::Cell;
use crate::scenario::mix::Mix;
use crate::scenario::purchase::Size;
use crate::worker::{Limit, Synchronous};

const MAX_ROWS: u64 = 1_000_000_000;

/// What encryption costs on this machine: paired workloads, plain SQLite against Pellucid.
#[derive(Debug, Parser)]
#[command(name = "lab", version)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Vendor, Card, Purchase: plain SQLite against a sealed database.
    ///
    /// Example: lab purchase --processes 1 --mix 4/3/3 --sync NORMAL
    Purchase {
        /// libpellucid.so; by default the one beside this program.
        #[arg(long, value_name = "FILE", env = "PELLUCID_EXTENSION")]
        extension: Option<PathBuf>,
        #[command(flatten)]
        options: Options,
    },
    /// The same work, plain against plain: the noise below which nothing can be told.
    Null {
        #[command(flatten)]
        options: Options,
    },
    /// One worker process; for the lab itself.
    #[command(hide = true)]
    Worker,
}

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Pairs of runs for each cell, beside one of warm-up; at least 5.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = rounds)]
    pub rounds: usize,
    /// Length of a run.
    #[arg(long, value_name = "S", default_value_t = 3.0, value_parser = seconds)]
    pub seconds: f64,
    /// Instead of a length: operations of each process.
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    pub operations: Option<std::num::NonZeroU64>,
    /// Numbers of processes.
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,10",
          value_parser = processes)]
    pub processes: Vec<usize>,
    /// Mixes of reads, updates and inserts.
    #[arg(
        long,
        value_name = "R/U/I,..",
        value_delimiter = ',',
        default_value = "10/0/0,4/3/3,0/5/5"
    )]
    pub mix: Vec<Mix>,
    /// PRAGMA synchronous.
    #[arg(long, value_delimiter = ',', ignore_case = true, default_value = "NORMAL,FULL")]
    pub sync: Vec<Synchronous>,
    /// Where the databases are made, and removed again; its file system is part of the answer.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// File that the records are appended to [default: lab/records/SCENARIO.jsonl].
    #[arg(long, value_name = "FILE")]
    pub records: Option<PathBuf>,
    /// Print the records instead of the table.
    #[arg(long)]
    pub json: bool,
    /// Exit with 1 if the median ratio of any cell is below this.
    #[arg(long, value_name = "RATIO")]
    pub minimum: Option<f64>,
    /// Seed of data and operations.
    #[arg(long, default_value_t = 2008)]
    pub seed: u64,
    /// Vendors of a fresh database.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=MAX_ROWS))]
    pub vendors: u64,
    /// Cards of a fresh database.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=MAX_ROWS))]
    pub cards: u64,
    /// Purchases of a fresh database.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(..=MAX_ROWS))]
    pub purchases: u64,
}

impl Options {
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &processes in &self.processes {
            for &synchronous in &self.sync {
                cells.extend(self.mix.iter().map(|&mix| Cell { processes, synchronous, mix }));
            }
        }
        cells
    }

    pub fn limit(&self) -> Limit {
        self.operations.map_or(Limit::Seconds(self.seconds), |n| Limit::Operations(n.get()))
    }

    pub fn size(&self) -> Size {
        Size { vendors: self.vendors, cards: self.cards, purchases: self.purchases }
    }

    pub fn records(&self, scenario: &str) -> PathBuf {
        self.records
            .clone()
            .unwrap_or_else(|| Path::new("lab/records").join(format!("{scenario}.jsonl")))
    }

    /// The given directory, else `target` of a source tree, else the system's.
    pub fn dir(&self) -> PathBuf {
        let target = PathBuf::from("target");
        let default = || if target.is_dir() { target } else { std::env::temp_dir() };
        self.dir.clone().unwrap_or_else(default)
    }
}

/// The extension at `given`, else the one beside this program, as an absolute path.
///
/// # Errors
/// [`Error::Io`] if there is none.
pub fn extension(given: Option<PathBuf>) -> Result<PathBuf> {
    let beside = || {
        let program = std::env::current_exe().unwrap_or_default();
        program.with_file_name(format!("libpellucid{}", std::env::consts::DLL_SUFFIX))
    };
    let path = given.unwrap_or_else(beside);
    path.canonicalize().map_err(Error::io(format!(
        "extension `{}` (build it with `cargo build --release`, or name it with `--extension`)",
        path.display()
    )))
}

fn rounds(text: &str) -> std::result::Result<usize, String> {
    text.parse().ok().filter(|n| (5..=1000).contains(n)).ok_or_else(|| "not 5 to 1000".into())
}

fn processes(text: &str) -> std::result::Result<usize, String> {
    text.parse().ok().filter(|n| (1..=1000).contains(n)).ok_or_else(|| "not 1 to 1000".into())
}

fn seconds(text: &str) -> std::result::Result<f64, String> {
    let seconds = text.parse().ok().filter(|s| (0.05..=86_400.0).contains(s));
    seconds.ok_or_else(|| "not 0.05 to 86400 seconds".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn options(line: &str) -> std::result::Result<Options, clap::Error> {
        let words = ["lab", "null"].into_iter().chain(line.split_whitespace());
        Arguments::try_parse_from(words).map(|arguments| match arguments.command {
            Command::Null { options } => options,
            _ => unreachable!(),
        })
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_default_plan_is_the_issues() {
        let options = options("").unwrap();
        assert_eq!((options.cells().len(), options.rounds), (12, 7));
    }

    #[test]
    fn lists_make_cells_and_nonsense_is_refused() {
        let options = options("--processes 2 --mix 4/3/3,1/0/0 --sync full").unwrap();
        assert_eq!(options.cells().len(), 2);
        assert_eq!(options.cells()[1].synchronous, Synchronous::Full);
    }

    #[test]
    fn too_little_to_mean_anything_is_refused() {
        for line in ["--rounds 4", "--seconds 0", "--seconds NaN", "--processes 0", "--mix 1/2"] {
            assert!(options(line).is_err(), "{line}");
        }
    }
}

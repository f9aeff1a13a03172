//! Options of `lab hummer`, and of the command that changes one that is running.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use pellucid_lab_measure::common::Common;
use pellucid_lab_report::plan::Mix;

/// Article 3: ten processes loop over Vendor, Card and Purchase, in sixteen mixes, with and without its DELAYs.
///
/// Example: lab hummer --cells elapsed,busy-4/3/3 --resume
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Hummer {
    #[command(subcommand)]
    pub command: Option<HummerCommand>,
    #[command(flatten)]
    pub common: Common,
    /// Share of the scenario's loops and rows.
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    pub scale: f64,
    /// Instead of lab/scenarios/hummer.toml.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Cells by name, or whole pieces: elapsed (with the DELAYs), busy (without), settings, rate, all.
    #[arg(long, value_name = "CELL,..", value_delimiter = ',', default_value = "all")]
    pub cells: Vec<String>,
    /// Leave out the cells that the file of records has already, of the same tree, machine and parameters.
    #[arg(long)]
    pub resume: bool,
}

/// What is done instead of measuring.
#[derive(Debug, Clone, Subcommand)]
pub enum HummerCommand {
    /// Change mix or DELAY of a hummer that is running, or stop it.
    ///
    /// Example: lab hummer control --database FILE --mix 0/5/5 --delay-ms 0
    Control(ControlOptions),
}

/// Which hummer is changed, and how.
#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub struct ControlOptions {
    /// The database, as hummer names it on standard error.
    #[arg(long, value_name = "FILE")]
    pub database: PathBuf,
    /// Reads/updates/inserts from now on.
    #[arg(long, value_name = "R/U/I", group = "what")]
    pub mix: Option<Mix>,
    /// Length of each DELAY from now on; one that is under way ends.
    #[arg(long, value_name = "MS", group = "what", value_parser = clap::value_parser!(u64).range(..=86_400_000))]
    pub delay_ms: Option<u64>,
    /// Let every process end after its loop.
    #[arg(long, group = "what")]
    pub stop: bool,
    /// Of a sealed database.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// libpellucid.so; by default the one beside this program.
    #[arg(long, value_name = "FILE", env = "PELLUCID_EXTENSION")]
    pub extension: Option<PathBuf>,
}

fn scale(text: &str) -> std::result::Result<f64, String> {
    let scale = text.parse().ok().filter(|s| (0.000_01..=100.0).contains(s));
    scale.ok_or_else(|| "not 0.00001 to 100".into())
}

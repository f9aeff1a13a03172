//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_work::backup_speed::{self, BackupSpeedOptions};
use pellucid_lab_work::control::{self, ControlledOptions};
use pellucid_lab_work::estimate::Estimate;
use pellucid_lab_work::experiment::backup_matrix::MatrixOptions;
use pellucid_lab_work::experiment::hummer::HummerOptions;
use pellucid_lab_work::experiment::yours::YoursOptions;
use pellucid_lab_work::experiment::{
    self, acceleration, backup_matrix, backup_overhead, hummer, maintenance, side_effects,
};
use pellucid_lab_work::opening::{self, OpeningOptions};
use pellucid_lab_work::purchase::{self, PurchaseOptions};
use pellucid_lab_work::scan_load::{self, ScanLoadOptions};
use pellucid_lab_work::scan_speed::{self, ScanSpeedOptions};
use pellucid_lab_work::speedtest1::{self, Speedtest1Options};
use pellucid_lab_work::whole::{self, WholeOptions};

use crate::full::{FullOptions, RunOptions};
use crate::quick::QuickOptions;

/// What encryption costs on this machine: paired workloads, plain SQLite against Pellucid.
#[derive(Debug, Parser)]
#[command(name = "lab", version)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// A first answer in three minutes: OLTP, backups, restores, checks, opening; a summary and a page.
    ///
    /// Example: lab quick --dir /mnt/data
    Quick(QuickOptions),
    /// Everything, piece by piece, into a directory of records; pieces can be stopped and gone on with.
    ///
    /// Example: lab full --estimate; lab full; lab full --resume
    Full(FullOptions),
    /// The peers: the same work on SQLCipher and SQLite3 Multiple Ciphers, and backups beside restic, borg and age.
    ///
    /// The pieces of `lab full --pieces peers`; says which peers are not built or installed here, and how they are.
    /// Example: lab peers --estimate; lab peers; lab peers --resume
    Peers(RunOptions),
    /// Vendor, Card, Purchase: the same work on every side, in rounds of random order.
    ///
    /// Example: lab purchase --sides plain,again,sealed --cells 1-NORMAL-4/3/3,10-FULL-0/5/5
    Purchase(Box<PurchaseOptions>),
    /// Whether this machine tells apart what is apart: one short session of a cell, again and again.
    ///
    /// Example: lab control --sides plain,again --cells 1-NORMAL-10/0/0 --rounds 20 --seconds 0.2
    Control(Box<ControlledOptions>),
    /// Scan, check, REINDEX, ANALYZE, VACUUM, CREATE INDEX on a large database, warm and cold.
    Whole(Box<WholeOptions>),
    /// SQLite's own speedtest1, plain and over the shim.
    Speedtest1(Box<Speedtest1Options>),
    /// From the start of a process to its first row.
    Opening(Box<OpeningOptions>),
    /// Keys and algorithms changed under a constant load of writers and readers; the control is a plain rewrite.
    ///
    /// Example: lab scan-load --journal DELETE
    ScanLoad(Box<ScanLoadOptions>),
    /// Backups under a constant load of writers and readers, of a plain and of a sealed database.
    ///
    /// Example: lab backup-load --journal DELETE --busy-timeout-ms 10000
    BackupLoad(Box<ScanLoadOptions>),
    /// A scan with nobody else there, beside a plain rewrite of each page, and beside peers.
    ///
    /// Example: lab scan-speed --sides plain,again,sealed
    ScanSpeed(Box<ScanSpeedOptions>),
    /// Backups and restores beside VACUUM INTO, zstd, age, restic and borg: time, processor time, memory, size.
    ///
    /// Example: lab backup-speed --methods "pellucid zstd AES_256" --methods "VACUUM INTO + zstd + age"
    BackupSpeed(Box<BackupSpeedOptions>),
    /// Article 0: backups by encryption, compression, source and target; restores and differentials beside them.
    ///
    /// Example: lab backup-matrix --source hdd=/mnt/a --source ssd=/mnt/b --target hdd=/mnt/a --target ssd=/mnt/b
    BackupMatrix(Box<MatrixOptions>),
    /// Article 1: what four algorithms add to the time of a backup.
    ///
    /// Example: lab backup-overhead --rounds 10
    BackupOverhead(Box<experiment::Options>),
    /// Article 3: ten processes loop over Vendor, Card and Purchase, in sixteen mixes, with and without its DELAYs.
    ///
    /// Example: lab hummer --cells elapsed,busy-4/3/3 --resume
    Hummer(Box<HummerOptions>),
    /// Article 2: CHECKDB, backup, restore, index rebuilds, statistics, and SELECT and DML, plain against sealed.
    ///
    /// Example: lab maintenance --scale 0.1
    Maintenance(Box<experiment::Options>),
    /// Article 3's caveats: plain databases beside the library, compressed backups, maintenance during a scan.
    ///
    /// Example: lab side-effects --estimate
    SideEffects(Box<experiment::Options>),
    /// Your database and your SQL: each statement, plain against sealed. The database is copied.
    ///
    /// Example: lab yours --database app.db --sql report.sql --sides plain,again,sealed
    Yours(Box<YoursOptions>),
    /// Article 4: encryption, decryption and CHECKDB with hardware AES and without it.
    ///
    /// Example: lab acceleration --estimate
    Acceleration(Box<experiment::Options>),
    /// Table and verdict from records alone; exit 1 if a goal is not reached.
    Verdict {
        /// Files of records; their sessions must be of one tree and machine.
        #[arg(required = true, value_name = "RECORDS")]
        files: Vec<PathBuf>,
        /// Only these sessions.
        #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
        session: Vec<String>,
        /// Print the verdict as JSON.
        #[arg(long)]
        json: bool,
    },
    /// A page, Markdown or a summary of records: charts, intervals, and the articles' figures beside ours.
    ///
    /// Example: lab report lab/records/*.jsonl --out report.html
    Report {
        /// Files of records, of any experiment.
        #[arg(required = true, value_name = "RECORDS")]
        files: Vec<PathBuf>,
        /// Write one HTML file that needs nothing else.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Print the same numbers as Markdown.
        #[arg(long)]
        markdown: bool,
        /// Print the tables of each experiment too, not only what comes first, the goals and the articles' figures.
        #[arg(long)]
        all: bool,
    },
    /// Two files of records side by side: the same figure from each, and the difference with its interval.
    Compare {
        #[arg(value_name = "A")]
        a: PathBuf,
        #[arg(value_name = "B")]
        b: PathBuf,
        /// Quantities as well that are not a time or a speed.
        #[arg(long)]
        all: bool,
    },
    /// Recomputes the figures that documents quote from records; exit 1 if one differs.
    Figures {
        /// Documents with `<!-- figure: RECORDS | EXPERIMENT | CELL | WHAT -->` before each figure.
        #[arg(required = true, value_name = "DOCUMENT")]
        documents: Vec<PathBuf>,
        /// Where the records' names start from.
        #[arg(long, value_name = "DIR", default_value = ".")]
        root: PathBuf,
    },
    /// One worker process; for the lab itself.
    #[command(hide = true)]
    Worker,
    /// Programs after each other, as standard input says; for the lab itself.
    #[command(hide = true)]
    Pipeline,
    /// A consistent copy of a plain database; for the lab itself.
    #[command(hide = true)]
    VacuumInto { from: PathBuf, to: PathBuf },
}

impl Command {
    /// What a command that measures will take.
    ///
    /// # Errors
    /// Of its own options; [`Error::Invalid`] for a command that measures nothing.
    pub fn estimate(&self) -> Result<Estimate> {
        match self {
            Self::Purchase(options) => purchase::estimate(options),
            Self::Control(options) => control::estimate(options),
            Self::Whole(options) => Ok(whole::estimate(options)),
            Self::Speedtest1(options) => Ok(speedtest1::estimate(options)),
            Self::Opening(options) => Ok(opening::estimate(options)),
            Self::ScanLoad(options) => Ok(scan_load::estimate(options)),
            Self::BackupLoad(options) => Ok(scan_load::estimate_backups(options)),
            Self::ScanSpeed(options) => Ok(scan_speed::estimate(options)),
            Self::BackupSpeed(options) => backup_speed::estimate(options),
            Self::BackupMatrix(options) => backup_matrix::estimate(options),
            Self::BackupOverhead(options) => backup_overhead::estimate(options),
            Self::Hummer(options) => hummer::estimate(options),
            Self::Maintenance(options) => maintenance::estimate(options),
            Self::Acceleration(options) => acceleration::estimate(options),
            Self::SideEffects(options) => side_effects::estimate(options),
            _ => Err(Error::invalid("a command that measures nothing has no estimate")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use pellucid_lab_report::plan;

    fn options(line: &str) -> std::result::Result<PurchaseOptions, clap::Error> {
        let words = ["lab", "purchase"].into_iter().chain(line.split_whitespace());
        Arguments::try_parse_from(words).map(|arguments| match arguments.command {
            Command::Purchase(options) => *options,
            _ => unreachable!(),
        })
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_default_plan_is_the_24_cells_in_ten_rounds() {
        let options = options("").unwrap();
        assert_eq!((options.plan().unwrap(), options.common.rounds), (plan::standard_cells(), 10));
        assert_eq!(options.setting().suffix(), "");
        assert_eq!(plan::standard_cells().len(), 24);
    }

    #[test]
    fn lists_make_cells_and_nonsense_is_refused() {
        let options = options("--processes 2 --mix 4/3/3,1/0/0 --sync full").unwrap();
        let plan = options.plan().unwrap();
        assert_eq!(plan.len(), 2);
        assert_eq!(plan[1].to_string(), "2-FULL-1/0/0");
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for line in [
            "--rounds 4",
            "--seconds 0",
            "--seconds NaN",
            "--turn-ms 1",
            "--turn-ms 5 --operations 100",
            "--until-percent 0",
            "--until-percent NaN",
            "--processes 0",
            "--mix 1/2",
            "--page-size 1000",
            "--sides plain,other",
            "--sides plain,sealed=",
            "--cells all --mix 4/3/3",
        ] {
            assert!(options(line).is_err(), "{line}");
        }
    }
}

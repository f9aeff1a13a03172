//! The command line.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

use crate::choice::SideOptions;
use crate::cold::ColdOptions;
use crate::error::Result;
use crate::experiment;
use crate::experiment::backup_matrix::MatrixOptions;
use crate::experiment::yours::YoursOptions;
use crate::full::{FullOptions, RunOptions};
use crate::goals::Goals;
use crate::plan::{self, Cell, Journal, Setting, Synchronous};
use crate::quick::QuickOptions;
use crate::scenario::application::{self, Role};
use crate::scenario::mix::Mix;
use crate::scenario::purchase::Size;
use crate::scenario::whole::{Cache, Operation};
use crate::worker::Limit;

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
        /// Documents whose figures `docs/figures.toml` leads to their records.
        #[arg(required = true, value_name = "DOCUMENT")]
        documents: Vec<PathBuf>,
        /// Where `docs/figures.toml` and the names of pages and records start from.
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

#[derive(Debug, Clone, Args)]
pub struct PurchaseOptions {
    #[command(flatten)]
    pub common: Common,
    /// Cells by name (1-NORMAL-4/3/3), `all` of the standard ones, or `peers`: the six of the goals.
    #[arg(long, value_name = "CELL,..", value_delimiter = ',',
          conflicts_with_all = ["processes", "mix", "sync"])]
    pub cells: Vec<String>,
    /// Length of a run.
    #[arg(long, value_name = "S", default_value_t = 3.0, value_parser = seconds)]
    pub seconds: f64,
    /// A cell ends before the last of its --rounds, but not before its tenth, when the intervals of 99 % are no wider than
    /// this either way.
    #[arg(long, value_name = "PERCENT", value_parser = width)]
    pub until_percent: Option<f64>,
    /// The sides of a round work in turns of this length, in an order that is drawn, and not a whole run one behind the
    /// other: what others on the machine cost then hurts all sides alike. With one process, under taskset(1): processors differ too.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(2..=1000))]
    pub turn_ms: Option<u64>,
    /// Instead of a length: operations of each process.
    #[arg(long, value_name = "N", conflicts_with_all = ["seconds", "turn_ms"])]
    pub operations: Option<std::num::NonZeroU64>,
    /// Numbers of processes.
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_values_t = plan::PROCESSES,
          value_parser = processes)]
    pub processes: Vec<usize>,
    /// Mixes of reads, updates and inserts.
    #[arg(long, value_name = "R/U/I,..", value_delimiter = ',', default_values_t = plan::MIXES)]
    pub mix: Vec<Mix>,
    /// PRAGMA synchronous.
    #[arg(long, value_delimiter = ',', ignore_case = true, default_value = "NORMAL,FULL")]
    pub sync: Vec<Synchronous>,
    /// PRAGMA journal_mode.
    #[arg(long, ignore_case = true, default_value = "WAL")]
    pub journal: Journal,
    /// PRAGMA page_size, bytes.
    #[arg(long, value_name = "BYTES", default_value_t = plan::PAGE_SIZE_BYTES, value_parser = page_size)]
    pub page_size: u32,
    /// PRAGMA cache_size of every connection.
    #[arg(long, value_name = "KIB", default_value_t = plan::CACHE_KIB,
          value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    pub cache_kib: u32,
    /// Exit with 1 if the median ratio of any cell is below this.
    #[arg(long, value_name = "RATIO")]
    pub minimum: Option<f64>,
    /// Vendors of a fresh database.
    #[arg(long, default_value_t = plan::SIZE.vendors, value_parser = clap::value_parser!(u64).range(1..=MAX_ROWS))]
    pub vendors: u64,
    /// Cards of a fresh database.
    #[arg(long, default_value_t = plan::SIZE.cards, value_parser = clap::value_parser!(u64).range(1..=MAX_ROWS))]
    pub cards: u64,
    /// Purchases of a fresh database.
    #[arg(long, default_value_t = plan::SIZE.purchases, value_parser = clap::value_parser!(u64).range(..=MAX_ROWS))]
    pub purchases: u64,
}

#[derive(Debug, Clone, Args)]
pub struct ControlledOptions {
    #[command(flatten)]
    pub purchase: PurchaseOptions,
    /// Sessions, each with the next seed.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = processes)]
    pub runs: usize,
    /// Runs that have to come out as wanted.
    #[arg(long, value_name = "N", default_value_t = 19)]
    pub at_least: usize,
    /// The second side has to be found slower; without, nothing has to be found.
    #[arg(long)]
    pub slower: bool,
    /// The second side has to be found slower by less than this.
    #[arg(long, value_name = "PERCENT", conflicts_with = "slower")]
    pub less_than_percent: Option<f64>,
}

#[derive(Debug, Clone, Args)]
pub struct WholeOptions {
    #[command(flatten)]
    pub common: Common,
    /// Length of the database.
    #[arg(long, value_name = "MIB", default_value_t = plan::WHOLE_MIB, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub size_mib: u64,
    /// What is done with it.
    #[arg(long, value_delimiter = ',', default_values_t = Operation::ALL)]
    pub operations: Vec<Operation>,
    /// With the file in the system's page cache, or with none of it there.
    #[arg(long, value_delimiter = ',', default_value = "warm,cold")]
    pub cache: Vec<Cache>,
    #[command(flatten)]
    pub cold: ColdOptions,
}

#[derive(Debug, Clone, Args)]
pub struct Speedtest1Options {
    #[command(flatten)]
    pub common: Common,
    /// speedtest1, as lab/speedtest1.sh builds it; by default speedtest1/speedtest1 in `target`.
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Its own --size.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub size: u64,
}

#[derive(Debug, Clone, Args)]
pub struct OpeningOptions {
    #[command(flatten)]
    pub common: Common,
    /// Openings of a run, one after the other.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub opens: u64,
}

#[derive(Debug, Clone, Args)]
pub struct ScanLoadOptions {
    /// --rounds does nothing here: each phase is once on each side.
    #[command(flatten)]
    pub common: Common,
    /// Length of the database.
    #[arg(long, value_name = "MIB", default_value_t = plan::LOAD_MIB, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub size_mib: u64,
    /// PRAGMA journal_mode.
    #[arg(long, ignore_case = true, default_value = "WAL")]
    pub journal: Journal,
    /// Algorithms that the key is changed to, one after the other.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', default_value = "AES_128,AES_256")]
    pub algorithms: Vec<String>,
    /// Processes that write.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = processes)]
    pub writers: usize,
    /// Processes that read.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = processes)]
    pub readers: usize,
    /// What a writer waits between two transactions, on average.
    #[arg(long, value_name = "US", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(..=10_000_000))]
    pub write_pause_us: u64,
    /// What a reader waits between two reads, on average.
    #[arg(long, value_name = "US", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(..=10_000_000))]
    pub read_pause_us: u64,
    /// Of every client.
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(..=600_000))]
    pub busy_timeout_ms: u64,
    /// Length of a phase without a scan.
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = seconds)]
    pub quiet_s: f64,
    /// Share of the database after which the first scan is suspended.
    #[arg(long, value_name = "SHARE", default_value_t = 0.4, value_parser = share)]
    pub suspend_at: f64,
    /// How long the plain rewrite holds the write lock at a time: as a scan does.
    #[arg(long, value_name = "US", default_value_t = 4_000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    pub hold_us: u64,
}

#[derive(Debug, Clone, Args)]
pub struct ScanSpeedOptions {
    #[command(flatten)]
    pub common: Common,
    /// Length of the database.
    #[arg(long, value_name = "MIB", default_value_t = plan::WHOLE_MIB, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub size_mib: u64,
    /// PRAGMA journal_mode.
    #[arg(long, ignore_case = true, default_value = "WAL")]
    pub journal: Journal,
    /// Algorithms of the new key; the old one is of --algorithm.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', default_value = "AES_256,AES_128")]
    pub algorithms: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub struct BackupSpeedOptions {
    #[command(flatten)]
    pub common: Common,
    /// Length of the database.
    #[arg(long, value_name = "MIB", default_value_t = plan::WHOLE_MIB, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub size_mib: u64,
    /// Algorithms of Pellucid's media, beside none; the last also of a sealed database's.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', default_value = "AES_128,AES_256")]
    pub algorithms: Vec<String>,
    /// Only this method, by its name in the table, and the base; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub methods: Vec<String>,
}

#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct HummerOptions {
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

#[derive(Debug, Clone, Subcommand)]
pub enum HummerCommand {
    /// Change mix or DELAY of a hummer that is running, or stop it.
    ///
    /// Example: lab hummer control --database FILE --mix 0/5/5 --delay-ms 0
    Control(ControlOptions),
}

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

impl ScanLoadOptions {
    /// Writers first.
    pub fn tasks(&self, orders: u64) -> Vec<application::Task> {
        let writers = std::iter::repeat_n((Role::Writer, self.write_pause_us), self.writers);
        let readers = std::iter::repeat_n((Role::Reader, self.read_pause_us), self.readers);
        let (seed, busy_timeout_ms) = (self.common.seed, self.busy_timeout_ms);
        (0..)
            .zip(writers.chain(readers))
            .map(|(client, (role, pause_us))| application::Task {
                role,
                client,
                seed,
                orders,
                pause_us,
                busy_timeout_ms,
            })
            .collect()
    }
}

impl PurchaseOptions {
    /// # Errors
    /// [`Error::Invalid`] for a name that no cell has.
    pub fn plan(&self) -> Result<Vec<Cell>> {
        if self.cells.is_empty() {
            Ok(plan::grid(&self.processes, &self.sync, &self.mix))
        } else {
            plan::choose(&plan::standard_cells(), &self.cells, &Goals::read())
        }
    }

    pub fn limit(&self) -> Limit {
        self.operations.map_or(Limit::Seconds(self.seconds), |n| Limit::Operations(n.get()))
    }

    pub fn setting(&self) -> Setting {
        Setting {
            journal: self.journal,
            page_size_bytes: self.page_size,
            cache_kib: self.cache_kib,
            size: Size { vendors: self.vendors, cards: self.cards, purchases: self.purchases },
        }
    }
}

impl Common {
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

/// # Errors
/// For a number that is none of rounds.
pub fn rounds(text: &str) -> std::result::Result<usize, String> {
    text.parse().ok().filter(|n| (5..=1000).contains(n)).ok_or_else(|| "not 5 to 1000".into())
}

fn processes(text: &str) -> std::result::Result<usize, String> {
    text.parse().ok().filter(|n| (1..=1000).contains(n)).ok_or_else(|| "not 1 to 1000".into())
}

/// # Errors
/// For a length that makes no sense.
pub fn seconds(text: &str) -> std::result::Result<f64, String> {
    let seconds = text.parse().ok().filter(|s| (0.05..=86_400.0).contains(s));
    seconds.ok_or_else(|| "not 0.05 to 86400 seconds".into())
}

fn width(text: &str) -> std::result::Result<f64, String> {
    let percent = text.parse().ok().filter(|percent| (0.01..=100.0).contains(percent));
    percent.ok_or_else(|| "not 0.01 to 100 percent".into())
}

fn share(text: &str) -> std::result::Result<f64, String> {
    let share = text.parse().ok().filter(|s| (0.0..=0.9).contains(s));
    share.ok_or_else(|| "not 0 to 0.9".into())
}

fn scale(text: &str) -> std::result::Result<f64, String> {
    let scale = text.parse().ok().filter(|s| (0.000_01..=100.0).contains(s));
    scale.ok_or_else(|| "not 0.00001 to 100".into())
}

fn page_size(text: &str) -> std::result::Result<u32, String> {
    let good = |bytes: &u32| bytes.is_power_of_two() && (512..=65_536).contains(bytes);
    text.parse().ok().filter(good).ok_or_else(|| "not a power of two from 512 to 65536".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

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

//! The command line.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::error::{Error, Result};
use crate::goals::Goals;
use crate::plan::{self, Cell, Journal, Setting, Synchronous};
use crate::scenario::mix::Mix;
use crate::scenario::purchase::Size;
use crate::side::{Kind, Side};
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
    /// Vendor, Card, Purchase: the same work on every side, in rounds of random order.
    ///
    /// Example: lab purchase --sides plain,again,sealed --cells 1-NORMAL-4/3/3,10-FULL-0/5/5
    Purchase(Box<Options>),
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
    /// One worker process; for the lab itself.
    #[command(hide = true)]
    Worker,
}

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// What is compared, the first with each other: plain, again (plain once more, the control),
    /// sealed, sealed=LIBPELLUCID.SO; and sqlcipher, aegis in the lab that lab/peers/build.sh makes.
    #[arg(long, value_name = "SIDE,..", value_delimiter = ',', default_value = "plain,sealed")]
    pub sides: Vec<SideChoice>,
    /// libpellucid.so of sides that name none; by default the one beside this program.
    #[arg(long, value_name = "FILE", env = "PELLUCID_EXTENSION")]
    pub extension: Option<PathBuf>,
    /// Of the sealed sides.
    #[arg(long, ignore_case = true, default_value = "AES_256")]
    pub algorithm: Algorithm,
    /// Cells by name (1-NORMAL-4/3/3), `all` of the standard ones, or `peers`: the six of the goals.
    #[arg(long, value_name = "CELL,..", value_delimiter = ',',
          conflicts_with_all = ["processes", "mix", "sync"])]
    pub cells: Vec<String>,
    /// Rounds of each cell, beside one of warm-up; at least 5.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = rounds)]
    pub rounds: usize,
    /// Length of a run.
    #[arg(long, value_name = "S", default_value_t = 3.0, value_parser = seconds)]
    pub seconds: f64,
    /// Instead of a length: operations of each process.
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
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
    /// Seed of data, operations and the order of runs.
    #[arg(long, default_value_t = 2008)]
    pub seed: u64,
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SideChoice {
    Plain,
    Again,
    /// With the extension that `--extension` names, or with this one.
    Sealed(Option<PathBuf>),
    Sqlcipher,
    Aegis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Algorithm {
    #[value(name = "AES_128")]
    Aes128,
    #[value(name = "AES_192")]
    Aes192,
    #[value(name = "AES_256")]
    Aes256,
    #[value(name = "TRIPLE_DES_3KEY")]
    TripleDes3Key,
}

impl Options {
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

    /// The sides, with a name for each; `key_file` is theirs.
    ///
    /// The sealed side of the goals is called `sealed`; with another algorithm that is part of its
    /// name, and a second one has a number.
    ///
    /// # Errors
    /// [`Error::Io`] if an extension is not there, [`Error::Invalid`] for fewer than two sides.
    pub fn sides(&self, key_file: &Path) -> Result<Vec<Side>> {
        if self.sides.len() < 2 {
            return Err(Error::invalid("--sides: a comparison takes two at least"));
        }
        let mut sides: Vec<Side> = Vec::new();
        for choice in &self.sides {
            let key_file = key_file.to_path_buf();
            let (name, kind) = match choice {
                SideChoice::Plain => ("plain".to_string(), Kind::Plain),
                SideChoice::Again => ("again".to_string(), Kind::Plain),
                SideChoice::Sqlcipher => ("sqlcipher".to_string(), Kind::Sqlcipher { key_file }),
                SideChoice::Aegis => ("aegis".to_string(), Kind::Aegis { key_file }),
                SideChoice::Sealed(path) => {
                    let algorithm = self.algorithm.name();
                    let extension = extension(path.as_ref().or(self.extension.as_ref()))?;
                    let name = match self.algorithm {
                        Algorithm::Aes256 => "sealed".to_string(),
                        _ => format!("sealed-{algorithm}"),
                    };
                    (name, Kind::Sealed { extension, key_file, algorithm })
                }
            };
            let same = sides.iter().filter(|side| side.kind.name() == kind.name()).count();
            let taken = sides.iter().any(|side| side.name == name);
            let name = if taken { format!("{name}-{}", same + 1) } else { name };
            let library = library(&kind)?;
            sides.push(Side { name, kind, library });
        }
        Ok(sides)
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

impl Algorithm {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
    }
}

impl FromStr for SideChoice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.split_once('=') {
            None if text == "plain" => Ok(Self::Plain),
            None if text == "again" => Ok(Self::Again),
            None if text == "sealed" => Ok(Self::Sealed(None)),
            None if text == "sqlcipher" => Ok(Self::Sqlcipher),
            None if text == "aegis" => Ok(Self::Aegis),
            Some(("sealed", path)) if !path.is_empty() => Ok(Self::Sealed(Some(path.into()))),
            _ => Err("not plain, again, sealed, sealed=FILE, sqlcipher or aegis".into()),
        }
    }
}

/// The extension at `given`, else the one beside this program, as an absolute path.
fn extension(given: Option<&PathBuf>) -> Result<PathBuf> {
    let beside = || {
        let program = std::env::current_exe().unwrap_or_default();
        program.with_file_name(format!("libpellucid{}", std::env::consts::DLL_SUFFIX))
    };
    let path = given.cloned().unwrap_or_else(beside);
    path.canonicalize().map_err(Error::io(format!(
        "extension `{}` (build it with `cargo build --release`, or name it with `--extension`)",
        path.display()
    )))
}

/// Where the SQLite of a side lies: built in, or beside this program, as lab/peers/build.sh puts it.
fn library(kind: &Kind) -> Result<Option<PathBuf>> {
    let name = match kind {
        Kind::Plain | Kind::Sealed { .. } => "plain",
        Kind::Sqlcipher { .. } | Kind::Aegis { .. } => kind.name(),
    };
    if cfg!(not(feature = "bundled")) {
        let program = std::env::current_exe().unwrap_or_default();
        let library = program.with_file_name(name).join("libsqlite3.so.0");
        std::fs::metadata(&library).map_err(Error::io(library.display().to_string()))?;
        Ok(Some(program.with_file_name(name)))
    } else if name == "plain" {
        Ok(None)
    } else {
        Err(Error::invalid(format!(
            "side {name}: this lab has its SQLite built in; lab/peers/build.sh makes target/peers/lab"
        )))
    }
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

fn page_size(text: &str) -> std::result::Result<u32, String> {
    let good = |bytes: &u32| bytes.is_power_of_two() && (512..=65_536).contains(bytes);
    text.parse().ok().filter(good).ok_or_else(|| "not a power of two from 512 to 65536".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn options(line: &str) -> std::result::Result<Options, clap::Error> {
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
        assert_eq!((options.plan().unwrap(), options.rounds), (plan::standard_cells(), 10));
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
    fn sides_have_names_of_their_own() {
        let this = std::env::current_exe().unwrap();
        let names = |line: &str| -> Vec<String> {
            let line = format!("{line} --extension {}", this.display());
            let sides = options(&line).unwrap().sides(Path::new("/key")).unwrap();
            sides.into_iter().map(|side| side.name).collect()
        };
        assert_eq!(names("--sides plain,again,sealed"), ["plain", "again", "sealed"]);
        let twice = format!("--sides sealed={0},sealed={0},sealed", this.display());
        assert_eq!(names(&twice), ["sealed", "sealed-2", "sealed-3"]);
        let other = names("--sides plain,sealed --algorithm triple_des_3key");
        assert_eq!(other, ["plain", "sealed-TRIPLE_DES_3KEY"]);
        let peer = options("--sides plain,aegis").unwrap().sides(Path::new("/key"));
        assert!(peer.unwrap_err().to_string().contains("lab/peers/build.sh"));
        assert!(options("--sides plain").unwrap().sides(Path::new("/key")).is_err());
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for line in [
            "--rounds 4",
            "--seconds 0",
            "--seconds NaN",
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

//! Whole-database work: each operation in a process of its own, with the file in the system's page
//! cache or with none of it there.
//!
//! An operation that changes the file gets a copy; the others work on the template. That a cold file
//! was cold is proved by what the process had to fetch from the device.

use std::path::{Path, PathBuf};

use clap::Args;
use pellucid_lab_measure::cold::{self, ColdOptions};
use pellucid_lab_measure::common::Common;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{copy_whole, length, read_through, remove, room};
use pellucid_lab_measure::machine::Load;
use pellucid_lab_measure::session::{Conditions, Place};
use pellucid_lab_measure::side::Side;
use pellucid_lab_measure::work::Done;
use pellucid_lab_report::plan::{self, Setting};
use pellucid_lab_report::record::{parameter, SideDescription};

use crate::estimate::Estimate;
use crate::fixture::settle;
use crate::measurement::Measurement;
use crate::piece::{Needs, Piece, Scaled, PEER_SIDES};
use crate::pool;
use crate::scenario::whole::{Cache, Operation, MARKER};
use crate::worker::{Order, Report, Task, Worked};

/// Names the command and the sessions.
const NAME: &str = "whole";
/// What `lab full` runs of it.
const PIECES: &[Piece] = &[
    Piece::new("whole", NAME, Scaled::Mib(1024), &["--sides", "plain,again,sealed"]),
    Piece::new("whole-peers", NAME, Scaled::Mib(256), &["--sides", PEER_SIDES, "--cache", "warm"])
        .with(Needs::Peers),
];
const MIB: u64 = 1 << 20;
/// At once: a template for each side, and beside them a copy, its WAL, a temporary file of VACUUM
/// and a little of everything.
const FILES_BESIDE_TEMPLATES: u64 = 4;
/// For an estimate: a run on this much takes about a second, its copy included.
const MIB_PER_SECOND: f64 = 200.0;
const WARM_UP_ROUNDS: usize = 1;
/// A warm operation fetches less than this share of the file from the device: a temporary file that
/// was written and pushed out may have to be read again.
const WARM_SHARE: f64 = 0.10;
/// Fetched when a cold file was opened, before anybody counts: the first pages, and what is read ahead behind them.
const OPENING_BYTES: u64 = 512 << 10;

/// Scan, check, REINDEX, ANALYZE, VACUUM, CREATE INDEX on a large database, warm and cold.
#[derive(Debug, Clone, Args)]
pub struct Whole {
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

impl Measurement for Whole {
    fn name() -> &'static str {
        NAME
    }

    fn pieces() -> &'static [Piece] {
        PIECES
    }

    fn only_estimates(&self) -> bool {
        self.common.estimate
    }

    fn estimate(&self) -> Result<Estimate> {
        let (cells, sides) =
            (self.operations.len() * self.cache.len(), self.common.sides.sides.len());
        let runs = (cells * sides * (WARM_UP_ROUNDS + self.common.rounds) + 5 * sides) as f64;
        Ok(Estimate {
            seconds: runs * (self.size_mib as f64 / MIB_PER_SECOND + 0.5),
            bytes: (sides as u64 + FILES_BESIDE_TEMPLATES) * self.size_mib * MIB,
        })
    }

    fn run(&self) -> Result<bool> {
        let common = &self.common;
        let cells: Vec<(Operation, Cache)> = self
            .operations
            .iter()
            .flat_map(|&operation| self.cache.iter().map(move |&cache| (operation, cache)))
            .collect();
        let estimate = self.estimate()?;
        let scenario = if common.sides.has_peers() { "whole-peers" } else { "whole" };
        let mut place = Place::open(scenario, common)?;
        room(place.path(), estimate.bytes)?;
        let templates: Vec<Template> = place
            .sides
            .iter()
            .map(|side| {
                let dir = place.path().join(&side.name);
                Template::prepare(side.clone(), self.size_mib * MIB, common.seed, dir, self.cold)
            })
            .collect::<Result<_>>()?;
        let is_cold = self.cache.contains(&Cache::Cold);
        let conditions = Conditions {
            sides: templates.iter().map(Template::describe).collect::<Result<_>>()?,
            warm_up_rounds: WARM_UP_ROUNDS,
            limit: None,
            until_percent: None,
            setting: Some(plan::STANDARD),
            size: Some(self.size_mib),
            parameters: is_cold
                .then(|| (parameter::COLD.to_string(), self.cold.name().into()))
                .into_iter()
                .collect(),
        };
        let rounds = place.begin(conditions, cells.len())?;
        for (operation, cache) in cells {
            let mut cell = format!("{operation}-{cache}");
            if self.size_mib != plan::WHOLE_MIB {
                cell.push_str(&format!("-{}MiB", self.size_mib));
            }
            place.measure_work(&rounds, &cell, |side| templates[side].run(operation, cache))?;
        }
        place.finish()?;
        Ok(true)
    }
}

/// The database of one side.
#[derive(Debug)]
struct Template {
    side: Side,
    dir: PathBuf,
    path: PathBuf,
    rows: u64,
    description: SideDescription,
    cold: ColdOptions,
}

impl Template {
    fn prepare(side: Side, bytes: u64, seed: u64, dir: PathBuf, cold: ColdOptions) -> Result<Self> {
        std::fs::create_dir(&dir).map_err(Error::io(dir.display().to_string()))?;
        let path = dir.join("template.db");
        let made = single(&side, &dir, &path, Task::PrepareWhole { bytes, seed })?;
        let Report::Rows { rows, engine } = made else {
            return Err(Error::invalid(format!(
                "{}: the new database answers {made:?}",
                side.name
            )));
        };
        side.check_file(&path, MARKER)?;
        let description = SideDescription {
            engine: Some(engine),
            file_bytes: Some(length(&path)?),
            page_size_bytes: Some(plan::PAGE_SIZE_BYTES),
            ..side.describe()?
        };
        Ok(Self { side, dir, path, rows, description, cold })
    }

    fn describe(&self) -> Result<SideDescription> {
        Ok(self.description.clone())
    }

    fn run(&self, operation: Operation, cache: Cache) -> Result<Done> {
        let (copy, into) = (self.dir.join("run.db"), self.dir.join("into.db"));
        let file = if operation.changes_file() { &copy } else { &self.path };
        if operation.changes_file() {
            copy_whole(&self.path, &copy)?;
        }
        let dirty_kib = settle();
        match cache {
            Cache::Warm => read_through(file)?,
            Cache::Cold => self.cold.make_cold(file)?,
        }
        let load = Load::begin();
        let task = Task::Whole { operation, into: into.clone() };
        let report = single(&self.side, &self.dir, file, task)?;
        let load = load.end();
        let Report::Worked(worked) = report else {
            return Err(Error::invalid(format!("{operation} answers {report:?}")));
        };
        self.check_cache(operation, cache, &worked)?;
        if operation.changes_file() {
            self.check_rows(&copy)?;
            remove(&copy)?;
        }
        if operation == Operation::VacuumInto {
            self.check_rows(&into)?;
            self.side.check_magic(&into)?;
            remove(&into)?;
        }
        let Worked { wall_s, cpu_s, read_bytes } = worked;
        Ok(Done {
            operations: 1.0,
            wall_s,
            cpu_s,
            read_bytes,
            shares: load.shares(cpu_s),
            dirty_kib,
        })
    }

    /// The work is worth nothing if rows are missing afterwards.
    fn check_rows(&self, path: &Path) -> Result<()> {
        match single(&self.side, &self.dir, path, Task::Rows)? {
            Report::Rows { rows, .. } if rows == self.rows => Ok(()),
            other => Err(Error::invalid(format!(
                "{}: of {} rows, {other:?} are left",
                self.side.name, self.rows
            ))),
        }
    }

    fn check_cache(&self, operation: Operation, cache: Cache, worked: &Worked) -> Result<()> {
        let file = self.description.file_bytes.unwrap_or_default();
        check_cache(operation, cache, worked.read_bytes, file)
    }
}

/// Makes sure that of the `file` bytes as many came from the device as the state of the cache says.
fn check_cache(operation: Operation, cache: Cache, read: Option<u64>, file: u64) -> Result<()> {
    let Some(read) = read else {
        return match cache {
            Cache::Warm => Ok(()),
            Cache::Cold => Err(Error::invalid(format!("{operation}: {}", cold::UNTOLD))),
        };
    };
    let good = match cache {
        Cache::Cold => {
            read as f64 >= operation.cold_share() * file.saturating_sub(OPENING_BYTES) as f64
        }
        Cache::Warm => (read as f64) < WARM_SHARE * file as f64,
    };
    if good {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{operation}: the file was not {cache}: {read} of {file} bytes came from the device"
    )))
}

fn single(side: &Side, dir: &Path, path: &Path, task: Task) -> Result<Report> {
    let setting: Setting = plan::STANDARD;
    pool::single(&Order { side: side.clone(), path: path.into(), setting, task }, dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_cold_that_was_fetched_as_far_as_it_is_read() {
        use Operation::*;
        let good = |operation, cache, per_mille: Option<u64>| {
            check_cache(operation, cache, per_mille.map(|read| read * MIB), 1000 * MIB).is_ok()
        };
        // Thousandths, in the worst run that the records have of 1 GiB.
        let seen = [
            (Scan, 665),
            (IntegrityCheck, 999),
            (Reindex, 999),
            (Analyze, 346),
            (Vacuum, 999),
            (VacuumInto, 999),
            (CreateIndex, 665),
        ];
        for (operation, read) in seen {
            assert!(good(operation, Cache::Cold, Some(read)), "{operation}");
            assert!(!good(operation, Cache::Cold, Some(read * 8 / 10)), "{operation}");
            assert!(!good(operation, Cache::Cold, None), "{operation}");
            assert!(!good(operation, Cache::Warm, Some(read)), "{operation}");
            assert!(good(operation, Cache::Warm, Some(60)) && good(operation, Cache::Warm, None));
        }
        // A small one, sealed: its first sixth was fetched when it was opened.
        assert!(check_cache(IntegrityCheck, Cache::Cold, Some(1_757_184), 2_084_864).is_ok());
    }
}

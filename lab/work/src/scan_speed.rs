//! How fast a scan is with nobody else there: a new key, plain rewrite of every page, and peers' change of their key.
//!
//! Each run has a fresh, warm copy of the database. An operation is a megabyte, from the start of the process that does
//! the work to its end.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use pellucid_lab_measure::common::Common;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{copy_whole, length, read_through, remove, room};
use pellucid_lab_measure::machine::Load;
use pellucid_lab_measure::program::Program;
use pellucid_lab_measure::session::{Conditions, Place};
use pellucid_lab_measure::side::{self, Kind, Side};
use pellucid_lab_measure::work::Done;
use pellucid_lab_report::plan::{self, Journal, Setting};
use pellucid_lab_report::record::SideDescription;

use crate::estimate::Estimate;
use crate::fixture::settle;
use crate::measurement::Measurement;
use crate::piece::{Needs, Piece, Scaled, PEER_SIDES};
use crate::pool;
use crate::scenario::rewrite;
use crate::scenario::whole::MARKER;
use crate::worker::{Order, Report, Task};

/// Names the command and the sessions.
const NAME: &str = "scan-speed";
/// What `lab full` runs of it.
const PIECES: &[Piece] = &[
    Piece::new(NAME, NAME, Scaled::Mib(1024), &["--sides", "plain,again,sealed"]),
    Piece::new(
        "scan-peers",
        NAME,
        Scaled::Mib(256),
        &["--sides", PEER_SIDES, "--journal", "DELETE", "--algorithms", "AES_256"],
    )
    .with(Needs::Peers),
];
const MIB: u64 = 1 << 20;
const MB: f64 = 1e6;
/// Beside the templates: a copy, and a WAL or a journal of its length.
const FILES_BESIDE: u64 = 3;
const WARM_UP_ROUNDS: usize = 1;
/// For an estimate: a run, its copy and its check.
const MB_PER_S: f64 = 110.0;

/// A scan with nobody else there, beside a plain rewrite of each page, and beside peers.
///
/// Example: lab scan-speed --sides plain,again,sealed
#[derive(Debug, Clone, Args)]
pub struct ScanSpeed {
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

impl Measurement for ScanSpeed {
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
        let (sides, bytes) = (self.common.sides.sides.len(), self.size_mib * MIB);
        let rounds = WARM_UP_ROUNDS + self.common.rounds;
        let runs = self.algorithms.len() * sides * rounds + 4 * sides;
        Ok(Estimate {
            seconds: runs as f64 * (bytes as f64 / MB / MB_PER_S + 0.3),
            bytes: (sides as u64 + FILES_BESIDE) * bytes,
        })
    }

    fn run(&self) -> Result<bool> {
        let common = &self.common;
        let bytes = self.size_mib * MIB;
        let estimate = self.estimate()?;
        let peers = common.sides.has_peers();
        let mut place = Place::open(if peers { "scan-peers" } else { "scan-speed" }, common)?;
        room(place.path(), estimate.bytes)?;
        side::write_key_file(&side::next_key_file(&place.path().join("key")))?;
        let setting = Setting { journal: self.journal, ..plan::STANDARD };
        let templates: Vec<Template> = place
            .sides
            .iter()
            .map(|side| {
                let dir = place.path().join(&side.name);
                Template::prepare(side.clone(), setting, bytes, common.seed, dir)
            })
            .collect::<Result<_>>()?;
        let conditions = Conditions {
            sides: templates.iter().map(|template| template.description.clone()).collect(),
            warm_up_rounds: WARM_UP_ROUNDS,
            limit: None,
            setting: Some(setting),
            size: Some(self.size_mib),
            ..Conditions::default()
        };
        let rounds = place.begin(conditions, self.algorithms.len())?;
        for algorithm in &self.algorithms {
            let mut cell = format!("rekey-{algorithm}{}", setting.suffix());
            if self.size_mib != plan::WHOLE_MIB {
                cell.push_str(&format!("-{}MiB", self.size_mib));
            }
            place.measure_work(&rounds, &cell, |side| templates[side].run(algorithm))?;
        }
        place.finish()?;
        Ok(true)
    }
}

/// The database of one side.
#[derive(Debug)]
struct Template {
    side: Side,
    setting: Setting,
    program: Option<Program>,
    dir: PathBuf,
    path: PathBuf,
    rows: u64,
    description: SideDescription,
}

impl Template {
    fn prepare(side: Side, setting: Setting, bytes: u64, seed: u64, dir: PathBuf) -> Result<Self> {
        std::fs::create_dir(&dir).map_err(Error::io(dir.display().to_string()))?;
        let path = dir.join("template.db");
        let order = Order {
            side: side.clone(),
            path: path.clone(),
            setting,
            task: Task::PrepareWhole { bytes, seed },
        };
        let made = pool::single(&order, &dir)?;
        let Report::Rows { rows, engine } = made else {
            return Err(Error::invalid(format!(
                "{}: the new database answers {made:?}",
                side.name
            )));
        };
        side.check_file(&path, MARKER)?;
        let change = match &side.kind {
            Kind::Plain | Kind::Loaded { .. } => "each page through sqlite_dbpage in the scan's transactions, --exclusive",
            Kind::Sealed { .. } => "pellucid rekey --exclusive; without it others go on",
            Kind::Sqlcipher { .. } | Kind::Ciphers { .. } => {
                "PRAGMA rekey, one transaction: nobody else writes until it ends, and its end waits for readers"
            }
        };
        let description = SideDescription {
            change: Some(change.into()),
            engine: Some(engine),
            file_bytes: Some(length(&path)?),
            page_size_bytes: Some(setting.page_size_bytes),
            ..side.describe()?
        };
        let program = Program::of(&side, &dir)?;
        Ok(Self { side, setting, program, dir, path, rows, description })
    }

    fn run(&self, algorithm: &str) -> Result<Done> {
        let copy = self.dir.join("run.db");
        copy_whole(&self.path, &copy)?;
        read_through(&copy)?;
        let bytes = length(&copy)?;
        let dirty_kib = settle();
        let order = |side: &Side, task| Order {
            side: side.clone(),
            path: copy.clone(),
            setting: self.setting,
            task,
        };
        let (load, start) = (Load::begin(), Instant::now());
        let (cpu_s, after) = match &self.program {
            Some(program) => {
                let words = ["rekey", "--exclusive", "--algorithm", algorithm];
                let said = program.run(&words, &copy)?;
                said.scan_is("complete")?;
                (said.cpu_s, self.side.clone())
            }
            None => {
                let task = match &self.side.kind {
                    Kind::Plain | Kind::Loaded { .. } => {
                        Task::Rewrite(rewrite::Task { from: 0.0, to: 1.0, hold_us: None })
                    }
                    _ => Task::Rekey,
                };
                match pool::single(&order(&self.side, task), &self.dir)? {
                    Report::Worked(worked) => (worked.cpu_s, self.side.next()),
                    other => return Err(Error::invalid(format!("a rewrite answers {other:?}"))),
                }
            }
        };
        let wall_s = start.elapsed().as_secs_f64();
        let shares = load.end().shares(cpu_s);
        match pool::single(&order(&after, Task::Rows), &self.dir)? {
            Report::Rows { rows, .. } if rows == self.rows => {}
            other => {
                return Err(Error::invalid(format!(
                    "{}: of {} rows, {other:?} are left",
                    self.side.name, self.rows
                )));
            }
        }
        self.side.check_magic(&copy)?;
        remove(&copy)?;
        Ok(Done {
            operations: bytes as f64 / MB,
            wall_s,
            cpu_s,
            read_bytes: None,
            shares,
            dirty_kib,
        })
    }
}

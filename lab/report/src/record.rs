//! Records: what was measured, with its conditions, one JSON line each.
//!
//! A session has one `session` line, then a `run` line for each run and a `cell` line for each
//! cell and side when it is complete. `lab/README.md` describes the fields; tables are made from
//! the same values.

mod load;
mod machine;
mod observation;
pub mod parameter;
mod read;

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::plan::{Cell, Setting};
use crate::statistics::{Interval, Summary};

pub use load::{Account, Alone, Calls, Phase, Scanned};
pub use machine::Machine;
pub use observation::{once, Observation, Parameters};
pub use read::read;

/// Version of the fields below.
pub const SCHEMA: u32 = 2;

/// The conditions of a session: what was compared, how often, and where.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Session {
    pub schema: u32,
    /// Names the lines that belong together.
    pub session: String,
    pub started_unix_s: u64,
    pub scenario: String,
    /// The first is the base.
    pub sides: Vec<SideDescription>,
    pub rounds: usize,
    pub warm_up_rounds: usize,
    pub seed: u64,
    pub limit: Option<Limit>,
    pub setting: Option<Setting>,
    /// Of the database, for whole-database work; speedtest1's own `--size`; openings of a run.
    pub size: Option<u64>,
    /// Of an experiment: scale, estimate and what else it was asked for.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    pub parameters: Parameters,
    pub machine: Machine,
}

/// What a side was, in a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SideDescription {
    pub side: String,
    pub kind: String,
    pub algorithm: Option<String>,
    pub extension: Option<String>,
    pub extension_sha256: Option<String>,
    /// Where its SQLite is, if it is not built in.
    pub library: Option<String>,
    /// What a scan or a rewrite is on this side, and what others can do meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    pub engine: Option<Engine>,
    /// Of the template.
    pub file_bytes: Option<u64>,
    pub page_size_bytes: Option<u32>,
}

/// One run of the workload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    pub session: String,
    pub cell: String,
    pub plan: Cell,
    /// From 1; 0 is the warm-up, which no figure contains.
    pub round: usize,
    /// From 0: the place in its round, which was drawn.
    pub place: usize,
    pub side: String,
    pub ops_per_s: f64,
    pub all: Latency,
    pub read: Latency,
    pub update: Latency,
    pub insert: Latency,
    /// Processor time of the workers.
    pub cpu_us_per_op: Option<f64>,
    pub busy: u64,
    /// Share of the machine's processor time that went to others during the run, 0 to 1.
    pub others_share: f64,
    /// The same for what the hypervisor gave to other guests.
    pub stolen_share: f64,
    /// Unwritten data on the machine when the run began.
    pub dirty_kib: u64,
    pub file_bytes_after: u64,
}

/// One run of a scenario that does one thing: whole-database work, speedtest1, opening.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Work {
    pub session: String,
    pub cell: String,
    /// As in [`Run`].
    pub round: usize,
    pub place: usize,
    pub side: String,
    pub wall_s: f64,
    pub cpu_s: Option<f64>,
    /// From the device, by the process that did the work (proc(5), /proc/pid/io).
    pub read_bytes: Option<u64>,
    pub others_share: f64,
    pub stolen_share: f64,
    pub dirty_kib: u64,
}

/// One cell of one side, against the base.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CellResult {
    pub session: String,
    /// The same in every session that measures the same.
    pub cell: String,
    /// Operations per second of the side over those of the base, one for each round.
    pub ratios: Vec<f64>,
    pub ratio: Summary,
    /// Of this cell alone; the verdict's is corrected for the number of cells.
    pub ratio_mean: Option<Interval>,
    /// Processor time per operation, side over base.
    pub cpu_ratio: Option<Summary>,
    /// Base, side.
    pub sides: [SideResult; 2],
    pub others_share: Summary,
    pub stolen_share: Summary,
}

/// One side of a cell, over all its rounds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SideResult {
    pub side: String,
    pub ops_per_s: Summary,
    /// Over all operations of all rounds.
    pub latency: Latency,
    pub cpu_us_per_op: Option<Summary>,
    pub busy: u64,
}

/// When a worker stops.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Seconds(f64),
    /// For each worker.
    Operations(u64),
}

/// What answered, in its own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    pub sqlite: String,
    pub sqlite_source: String,
    /// Of a peer.
    pub cipher: Option<String>,
}

/// Percentiles of operations, microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub operations: u64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
}

impl Session {
    /// The version, name and time of a session that starts now.
    pub fn stamp() -> (u32, String, u64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (SCHEMA, format!("{}-{}", now.as_millis(), std::process::id()), now.as_secs())
    }
}

//! Records: what was measured, with its conditions, one JSON line each, appended to a file.
//!
//! A session has one `session` line, then a `run` line for each run and a `cell` line for each
//! cell and side when it is complete. `lab/README.md` describes the fields; tables are made from
//! the same values.

mod load;
mod observation;
mod read;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::histogram::Latency;
use crate::machine::Machine;
use crate::plan::{Cell, Setting};
use crate::side::Engine;
use crate::statistics::{Interval, Summary};
use crate::verdict::Verdict;
use crate::worker::Limit;

pub use load::{Account, Alone, Calls, Phase, Scanned};
pub use observation::{once, Observation, Parameters};
pub use read::read;

/// Version of the fields below.
pub const SCHEMA: u32 = 2;

#[derive(Debug, Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record<'a> {
    Session(&'a Session),
    Run(&'a Run),
    Work(&'a Work),
    Cell(&'a CellResult),
    Phase(&'a Phase),
    Alone(&'a Alone),
    Account(&'a Account),
    Observation(&'a Observation),
    Verdict(&'a Verdict),
}

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

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SideResult {
    pub side: String,
    pub ops_per_s: Summary,
    /// Over all operations of all rounds.
    pub latency: Latency,
    pub cpu_us_per_op: Option<Summary>,
    pub busy: u64,
}

impl Session {
    /// The version, name and time of a session that starts now.
    pub fn stamp() -> (u32, String, u64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (SCHEMA, format!("{}-{}", now.as_millis(), std::process::id()), now.as_secs())
    }
}

/// Where records go.
#[derive(Debug)]
pub struct Sink {
    file: File,
    path: String,
    echo: bool,
}

impl Sink {
    /// Opens the file at `path` for appending; with `echo`, each line also goes to standard output.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn open(path: &Path, echo: bool) -> Result<Self> {
        let name = path.display().to_string();
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(Error::io(parent.display().to_string()))?;
        }
        let file = OpenOptions::new().append(true).create(true).open(path);
        Ok(Self { file: file.map_err(Error::io(name.clone()))?, path: name, echo })
    }

    /// Appends one line, at once and whole.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn write(&mut self, record: &Record<'_>) -> Result<()> {
        let mut line = serde_json::to_string(record)
            .map_err(|error| Error::invalid(format!("a record: {error}")))?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(Error::io(self.path.clone()))?;
        if self.echo {
            std::io::stdout().write_all(line.as_bytes()).map_err(Error::io("standard output"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_appended_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new").join("records.jsonl");
        let latency = Latency { operations: 1, p50_us: 1.0, p99_us: 2.0, max_us: 3.0 };
        let (processes, synchronous) = (1, crate::plan::Synchronous::Normal);
        let plan = Cell { processes, synchronous, mix: "4/3/3".parse().unwrap() };
        let run = Run {
            session: "1-1".into(),
            cell: plan.to_string(),
            plan,
            round: 1,
            place: 0,
            side: "plain".into(),
            ops_per_s: 1.5,
            all: latency,
            read: latency,
            update: latency,
            insert: latency,
            cpu_us_per_op: None,
            busy: 0,
            others_share: 0.0,
            stolen_share: 0.0,
            dirty_kib: 0,
            file_bytes_after: 4096,
        };
        for _ in 0..2 {
            Sink::open(&path, false).unwrap().write(&Record::Run(&run)).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2);
        let value: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(value["record"], "run");
        assert_eq!(value["cell"], "1-NORMAL-4/3/3");
        assert_eq!(value["plan"]["mix"], "4/3/3");
        assert_eq!(value["plan"]["synchronous"], "NORMAL");
    }
}

//! Records: what was measured, with its conditions, one JSON line each, appended to a file.
//!
//! A session has one `session` line, then a `run` line for each run and a `cell` line for each
//! cell when it is complete. `lab/README.md` describes the fields; tables are made from the same values.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::scenario::mix::Mix;
use crate::scenario::purchase::Size;
use crate::statistics::{GeometricMean, Latency, Summary};
use crate::worker::{Limit, Synchronous};

/// Version of the fields below.
const SCHEMA: u32 = 1;

#[derive(Debug, Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record<'a> {
    Session(&'a Session),
    Run(&'a Run),
    Cell(&'a CellResult),
}

#[derive(Debug, Serialize)]
pub struct Session {
    pub schema: u32,
    /// Names the lines that belong together.
    pub session: String,
    pub started_unix_s: u64,
    pub scenario: &'static str,
    pub sides: [String; 2],
    pub extension: Option<String>,
    pub rounds: usize,
    pub warm_up_rounds: usize,
    pub limit: Limit,
    pub seed: u64,
    pub size: Size,
    pub file_bytes: [u64; 2],
    pub page_size_bytes: [u32; 2],
    pub machine: Machine,
}

/// One point of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cell {
    pub processes: usize,
    pub synchronous: Synchronous,
    /// Reads, updates, inserts.
    pub mix: Mix,
}

#[derive(Debug, Clone, Serialize)]
pub struct Run {
    pub session: String,
    pub cell: Cell,
    /// From 1; 0 is the warm-up, which no figure contains.
    pub round: usize,
    /// 0 or 1: first or second of its round.
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

#[derive(Debug, Clone, Serialize)]
pub struct CellResult {
    pub session: String,
    pub cell: Cell,
    /// Operations per second of the second side over those of the first, one for each round.
    pub ratios: Vec<f64>,
    pub ratio: Summary,
    pub ratio_mean: Option<GeometricMean>,
    /// Processor time per operation, second side over first.
    pub cpu_ratio: Option<Summary>,
    pub sides: [SideResult; 2],
    pub others_share: Summary,
    pub stolen_share: Summary,
}

#[derive(Debug, Clone, Serialize)]
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
        let run = Run {
            session: "1-1".into(),
            cell: Cell {
                processes: 1,
                synchronous: Synchronous::Normal,
                mix: "4/3/3".parse().unwrap(),
            },
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
        assert_eq!(value["cell"]["mix"], "4/3/3");
        assert_eq!(value["cell"]["synchronous"], "NORMAL");
    }
}

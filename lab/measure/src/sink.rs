//! Where records go: lines that are appended to a file.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use pellucid_lab_report::record::{
    Account, Alone, CellResult, Observation, Phase, Run, Session, Work,
};
use pellucid_lab_report::verdict::Verdict;
use serde::Serialize;

use crate::error::{Error, Result};

/// One line of a file of records.
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
    use pellucid_lab_report::plan::{Cell, Synchronous};
    use pellucid_lab_report::record::Latency;

    #[test]
    fn lines_are_appended_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new").join("records.jsonl");
        let latency = Latency { operations: 1, p50_us: 1.0, p99_us: 2.0, max_us: 3.0 };
        let (processes, synchronous) = (1, Synchronous::Normal);
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

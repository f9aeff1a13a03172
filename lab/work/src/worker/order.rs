//! What the lab orders a worker to do, and what the worker reports.

use std::path::PathBuf;

use pellucid_lab_measure::error::Result;
use pellucid_lab_measure::histogram::SparseHistogram;
use pellucid_lab_measure::side::Side;
use pellucid_lab_report::plan::{Mix, Setting, Synchronous};
use pellucid_lab_report::record::{Engine, Limit};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::scenario::{application, hummer, rewrite, statements, whole};

/// What a worker is to do, and with which database.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub side: Side,
    pub path: PathBuf,
    pub setting: Setting,
    pub task: Task,
}

/// What is to be done.
#[derive(Debug, Serialize, Deserialize)]
pub enum Task {
    /// Make the database and fill it.
    Prepare {
        seed: u64,
    },
    Run(Run),
    /// Check the database and count its purchases.
    Check,
    /// Make a large database.
    PrepareWhole {
        bytes: u64,
        seed: u64,
    },
    /// Fill the tables of WideWorldImporters, which are there.
    FillWorld {
        bytes: u64,
        seed: u64,
    },
    /// One operation on it; `into` is the file of VACUUM INTO.
    Whole {
        operation: whole::Operation,
        into: PathBuf,
    },
    /// Count the rows of a large database.
    Rows,
    /// Open the database and read a row.
    FirstRow,
    /// A large database with the tables of a constant load.
    PrepareApplication {
        bytes: u64,
        seed: u64,
    },
    /// One client of it: works from each `go` to the next `stop`, until `end`.
    Application(application::Task),
    /// What is there of the commits that each writer was told of.
    Account {
        orders: u64,
        acknowledged: Vec<u64>,
    },
    /// Every page through `sqlite_dbpage`, plain.
    Rewrite(rewrite::Task),
    /// A peer's own change of its key.
    Rekey,
    /// What belongs to the test of article 3.
    Hummer(hummer::Task),
    /// Copy somebody's plain database, which is in WAL mode or not.
    Adopt {
        from: PathBuf,
        wal: bool,
    },
    /// Statements, each timed.
    Statements(statements::Task),
}

/// A run of the workload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    pub mix: Mix,
    pub synchronous: Synchronous,
    pub limit: Limit,
    /// Works this long from each `go` on, and says `rest`; until `end`.
    pub turn_s: Option<f64>,
    /// Names the sequence of rows; both sides of a round get the same.
    pub seed: Vec<u64>,
    pub worker: u64,
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub enum Report {
    Prepared,
    Ran(Ran),
    Rows {
        rows: u64,
        engine: Engine,
    },
    Worked(Worked),
    Checked {
        purchases: u64,
        page_size_bytes: u32,
        engine: Engine,
    },
    /// Rows that are wrong, and what integrity_check said.
    Accounted {
        wrong: u64,
        integrity: String,
    },
    Ended,
    Hummer(hummer::Answer),
    Adopted(Engine),
    Statements(Performed),
}

/// Statements that were executed, one behind the other.
#[derive(Debug, Serialize, Deserialize)]
pub struct Performed {
    pub statements: Vec<statements::Done>,
    /// Of all of them and of closing the database.
    pub wall_s: f64,
    pub cpu_s: Option<f64>,
    pub read_bytes: Option<u64>,
}

/// One thing that was done.
#[derive(Debug, Serialize, Deserialize)]
pub struct Worked {
    /// Of the work alone, closing included; 0 where the lab takes the time from outside.
    pub wall_s: f64,
    pub cpu_s: Option<f64>,
    pub read_bytes: Option<u64>,
}

/// What one worker did in a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ran {
    /// Operations that ended within the limit, in the order of `Operation::ALL`; of a process that ended none,
    /// the one that it had begun.
    pub latencies: [SparseHistogram; 3],
    /// Inserts that were committed, also after the limit.
    pub committed_inserts: u64,
    pub elapsed_s: f64,
    /// Of this process from start to end of the work, all threads.
    pub cpu_s: Option<f64>,
    pub busy: u64,
}

impl Order {
    /// The database, made if `create` says so.
    ///
    /// # Errors
    /// Of SQLite, or of what stands before it.
    pub fn open(&self, create: bool) -> Result<Connection> {
        self.side.open(&self.path, self.setting.page_size_bytes, create)
    }
}

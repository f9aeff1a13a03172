//! Records of `lab scan-load` and `lab backup-load`: a phase under load, what was done with nobody else there, and the count at the end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Latency;

/// One phase of one side: what its clients got done, and what else was going on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Phase {
    pub session: String,
    /// The same on every side: `before`, `encrypt`, `rekey` and so on.
    pub phase: String,
    /// From 0: the place of the side within its phase, which was drawn.
    pub place: usize,
    pub side: String,
    /// That the clients worked.
    pub wall_s: f64,
    /// The scan, or the backup.
    pub scan: Option<Scanned>,
    /// The WAL at its longest during a backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
    /// Transactions.
    pub write: Calls,
    /// Single statements.
    pub read: Calls,
    pub others_share: f64,
    pub stolen_share: f64,
}

/// A scan, or a plain rewrite, from the start of its process to its end.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Scanned {
    pub wall_s: f64,
    pub cpu_s: Option<f64>,
    /// Of the database, 0 to 1: a scan that is suspended does a part.
    pub share: f64,
    pub mb_per_s: f64,
}

/// What the clients of one kind noticed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Calls {
    pub per_s: f64,
    pub latency: Latency,
    /// Of one statement; a transaction has four.
    pub longest_call_us: f64,
    /// Statements that ended with an error, by statement and SQLite's code.
    pub failed: BTreeMap<String, u64>,
}

impl Calls {
    /// How many statements ended with an error, of any kind.
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }
}

/// What was done while nobody else had the database open.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Alone {
    pub session: String,
    pub side: String,
    pub what: String,
    pub bytes: u64,
    /// Of the process, from its start to its end; one for each time.
    pub wall_s: Vec<f64>,
    /// The work alone, as the program itself says.
    pub work_s: Vec<f64>,
}

/// Every row accounted for, after the last phase.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Account {
    pub session: String,
    pub side: String,
    /// Transactions whose COMMIT came back without an error.
    pub acknowledged: u64,
    /// Rows of them that are not there, or twice, or with another content; and rows that nobody acknowledged.
    pub wrong: u64,
    /// What PRAGMA integrity_check said.
    pub integrity: String,
}

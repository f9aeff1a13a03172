//! The goals, from `lab/goals.json`: what the project promises, in one place.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What the project promises, and when an interval resolves something.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goals {
    /// Speed of sealed over plain, geometric mean over the standard cells, at least.
    pub cells_geometric_mean: f64,
    /// No cell's interval lies wholly below this.
    pub cell: f64,
    /// Speed of sealed over plain, for each operation on a whole database, at least.
    pub whole_database: f64,
    /// Time of sealed over plain, at most.
    pub speedtest1_time: f64,
    /// Speed of a scan over a plain rewrite of each page, at least.
    pub scan_speed: f64,
    pub scan_load: ScanLoad,
    /// An interval wider than this factor either way resolves nothing.
    pub resolution: f64,
    /// Speed of sealed over a peer, geometric mean over the cells run on it, at least.
    pub peers_geometric_mean: BTreeMap<String, f64>,
    /// The standard cells that peers are run on.
    pub peer_cells: Vec<String>,
    /// Of experiments: one side beside another, or a number alone.
    pub pairs: Vec<PairGoal>,
}

/// What an application may notice of a scan, at most.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanLoad {
    /// To the p99 of before, by journal mode.
    pub p99_added_ms: BTreeMap<String, f64>,
    /// Of one statement.
    pub longest_call_ms: f64,
    /// A new protector, whatever the size: the whole process, with its syncs.
    pub rewrap_ms: f64,
}

/// Something that may be so large and no larger.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairGoal {
    pub scenario: String,
    pub side: String,
    /// What it is divided by, round by round; without it the largest value of all rounds counts.
    pub base: Option<String>,
    pub what: String,
    pub at_most: f64,
}

impl Goals {
    /// Reads the goals that are compiled in.
    #[expect(clippy::expect_used, reason = "the file is compiled in, and a test reads it")]
    pub fn read() -> Self {
        serde_json::from_str(include_str!("../../goals.json")).expect("lab/goals.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_holds_goals() {
        let goals = Goals::read();
        assert!(goals.cell < goals.cells_geometric_mean && goals.resolution > 1.0);
        assert_eq!(goals.peer_cells.len(), 6);
        assert!(goals.peers_geometric_mean.keys().eq(["aegis", "sqlcipher"]));
    }
}

//! What experiments write: single numbers of single runs. Reports follow from nothing else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What an experiment was asked for, by name: `scale`, `estimate_s`, sizes and counts with their unit in the name.
pub type Parameters = BTreeMap<String, Value>;

/// One number of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    pub session: String,
    /// What was done; the same on every side.
    pub cell: String,
    /// From 1; 0 is the warm-up, which no figure contains.
    pub round: usize,
    /// From 0: the place in its round, which was drawn.
    pub place: usize,
    pub side: String,
    /// The quantity, with its unit as the last word of its name: `elapsed_s`, `cpu_s`, `media_bytes`, `p99_us`.
    pub what: String,
    pub value: f64,
}

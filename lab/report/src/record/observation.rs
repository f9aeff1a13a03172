//! What experiments write: single numbers of single runs. Reports follow from nothing else.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::record::Session;

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

/// Makes sure that nothing is there twice: a session, or a number of one of its runs. Doubled records would look like more
/// runs, and make intervals narrower.
///
/// # Errors
/// [`Error::Invalid`] with what is.
pub fn once(sessions: &[Session], observations: &[Observation]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for session in sessions {
        if !seen.insert(&session.session) {
            let twice = format!("session {} is in these records twice", session.session);
            return Err(Error::invalid(twice));
        }
    }
    let mut seen = BTreeSet::new();
    for one in observations {
        if !seen.insert((&one.session, &one.cell, one.round, &one.side, &one.what)) {
            let Observation { session, cell, round, side, what, .. } = one;
            return Err(Error::invalid(format!(
                "session {session}: {what} of `{cell}`, {side}, round {round}, is there twice"
            )));
        }
    }
    Ok(())
}

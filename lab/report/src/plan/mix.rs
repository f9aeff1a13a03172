//! How many of some operations are reads, updates and inserts, as article 3 writes it: `4/3/3`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Of each of the three numbers.
const MOST: u32 = 1000;

/// Shares of reads, updates and inserts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Mix {
    reads: u32,
    updates: u32,
    inserts: u32,
}

/// One operation of the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Read,
    Update,
    Insert,
}

impl Operation {
    /// All of them, in the order of a mix.
    pub const ALL: [Operation; 3] = [Operation::Read, Operation::Update, Operation::Insert];
}

impl Mix {
    /// At least one of the numbers is not 0.
    pub const fn of(reads: u32, updates: u32, inserts: u32) -> Self {
        assert!(reads + updates + inserts > 0);
        Self { reads, updates, inserts }
    }

    /// Reads, updates, inserts; none if all are 0 or one is out of reach.
    pub fn new(parts: [u32; 3]) -> Option<Self> {
        let [reads, updates, inserts] = parts;
        let good = parts.iter().all(|part| *part <= MOST) && parts.iter().any(|part| *part > 0);
        good.then_some(Self { reads, updates, inserts })
    }

    /// Reads, updates, inserts.
    pub fn parts(self) -> [u32; 3] {
        [self.reads, self.updates, self.inserts]
    }

    /// The operation of loop `turn`: of every ten loops the first four read, and so on.
    pub fn operation(self, turn: u64) -> Operation {
        let place = turn % u64::from(self.reads + self.updates + self.inserts);
        if place < u64::from(self.reads) {
            Operation::Read
        } else if place < u64::from(self.reads + self.updates) {
            Operation::Update
        } else {
            Operation::Insert
        }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.reads, self.updates, self.inserts)
    }
}

impl From<Mix> for String {
    fn from(mix: Mix) -> Self {
        mix.to_string()
    }
}

impl TryFrom<String> for Mix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Option<Vec<u32>> = text.split('/').map(|part| part.parse().ok()).collect();
        parts
            .and_then(|parts| Self::new(parts.try_into().ok()?))
            .ok_or_else(|| "not READS/UPDATES/INSERTS, such as 4/3/3".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_ten_loops_each_kind_has_its_share() {
        for (text, shares) in [("4/3/3", [4, 3, 3]), ("10/0/0", [10, 0, 0]), ("0/5/5", [0, 5, 5])] {
            let mix: Mix = text.parse().unwrap();
            assert_eq!(mix.to_string(), text);
            let count = |kind| (70..80).filter(|turn| mix.operation(*turn) == kind).count();
            assert_eq!(Operation::ALL.map(count), shares);
        }
    }

    #[test]
    fn what_is_no_mix_is_refused() {
        for text in ["", "4/3", "4/3/3/1", "0/0/0", "a/b/c", "-1/1/1", "4294967295/1/1"] {
            assert!(text.parse::<Mix>().is_err(), "{text}");
        }
    }
}

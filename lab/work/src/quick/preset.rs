//! The few measurements of `lab quick`, with their small options, and how many rounds of them a time allows.

use std::path::Path;

use pellucid_lab_measure::error::Result;

use crate::estimate::Estimate;
use crate::registry;

/// An interval of fewer rounds says little.
pub const LEAST_ROUNDS: usize = 5;
/// For more rounds `lab full` is the better way.
pub const MOST_ROUNDS: usize = 30;
/// Of the databases; and what share of the article's that is.
pub const MIB: f64 = 64.0;
const SHARE: f64 = 65_536.0 / 1_553_408.0;

/// One measurement of the few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Oltp,
    Backups,
    Whole,
    Opening,
}

/// What was asked for, and the scenario's file.
#[derive(Debug)]
pub struct Preset<'a> {
    pub scale: f64,
    pub scenario: &'a Path,
    pub most_rounds: usize,
}

impl Part {
    /// What is asked most comes first: what the time is too short for is at the end.
    pub const ALL: [Self; 4] = [Self::Oltp, Self::Backups, Self::Whole, Self::Opening];

    /// What the part is about, for its user.
    pub fn name(self) -> &'static str {
        match self {
            Self::Oltp => "OLTP, one process and ten",
            Self::Backups => "backups and restores, encrypted and not",
            Self::Whole => "scan, check, index and statistics of a whole database",
            Self::Opening => "opening",
        }
    }
}

impl Preset<'_> {
    /// The part's command line.
    pub fn words(&self, part: Part, rounds: usize) -> Vec<String> {
        let mib = (MIB * self.scale).ceil();
        let line = match part {
            Part::Oltp => format!(
                "purchase --sides plain,again,sealed --cells 1-NORMAL-4/3/3,10-NORMAL-4/3/3 --seconds {}",
                self.scale.max(0.05)
            ),
            Part::Backups => format!("backup-matrix --scale {:.5}", SHARE * self.scale),
            Part::Whole => format!(
                "whole --sides plain,sealed --size-mib {mib} --cache warm \
                 --operations scan,integrity-check,reindex,analyze"
            ),
            Part::Opening => "opening --opens 5".to_string(),
        };
        let mut words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        words.extend(["--rounds".into(), rounds.to_string()]);
        if part == Part::Backups {
            words.extend(["--scenario".into(), self.scenario.display().to_string()]);
        }
        words
    }

    /// What the part will take in so many rounds.
    ///
    /// # Errors
    /// Of the scenario.
    pub fn estimate(&self, part: Part, rounds: usize) -> Result<Estimate> {
        registry::estimate(&self.words(part, rounds))
    }

    /// What all `parts` will take together.
    ///
    /// # Errors
    /// Of the scenario.
    pub fn seconds(&self, parts: &[Part], rounds: usize) -> Result<f64> {
        parts.iter().map(|part| self.estimate(*part, rounds).map(|one| one.seconds)).sum()
    }

    /// The most rounds of all `parts` that fit `left_s`; none if not even the fewest do.
    ///
    /// # Errors
    /// Of the scenario.
    pub fn rounds(&self, parts: &[Part], left_s: f64) -> Result<Option<usize>> {
        let mut most = None;
        for rounds in LEAST_ROUNDS..=self.most_rounds {
            if self.seconds(parts, rounds)? > left_s {
                break;
            }
            most = Some(rounds);
        }
        Ok(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECONDS: f64 = 175.0;

    #[test]
    fn the_estimates_add_up_to_the_budget_and_no_further() {
        let scenario = Path::new("../scenarios/quick-backups.toml");
        let preset = Preset { scale: 1.0, scenario, most_rounds: MOST_ROUNDS };
        let rounds = preset.rounds(&Part::ALL, SECONDS).unwrap().unwrap();
        assert!(preset.seconds(&Part::ALL, rounds).unwrap() <= SECONDS);
        assert!(preset.seconds(&Part::ALL, rounds + 1).unwrap() > SECONDS);
        let fewer = preset.rounds(&Part::ALL, SECONDS * 0.9).unwrap();
        assert!(fewer.is_none_or(|fewer| fewer < rounds));
        assert_eq!(preset.rounds(&Part::ALL, 10.0).unwrap(), None);
        // Of one part alone more rounds fit.
        assert!(preset.rounds(&[Part::Opening], 60.0).unwrap() > Some(rounds));
    }
}

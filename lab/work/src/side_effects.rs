//! What encryption does to others, by article 3's caveats: to plain databases of a process that has loaded the library,
//! to the compression of backups, and to maintenance while a scan goes on.
//!
//! Each is a session of its own, because each compares other sides.

mod backups;
mod loaded;
mod scanner;
mod scans;

use std::path::Path;

use clap::Args;
use pellucid_lab_measure::choice::{Algorithm, SideChoice, SideOptions};
use pellucid_lab_measure::common::Common;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::program::Program;
use pellucid_lab_measure::session::Place;
use pellucid_lab_measure::side::Side;
use pellucid_lab_report::record::Parameters;
use serde::Deserialize;
use serde_json::{json, Value};

use crate::estimate::Estimate;
use crate::experiment::Options;
use crate::measurement::Measurement;
use crate::piece::Piece;

/// Names the command and the sessions.
const NAME: &str = "side-effects";
/// What `lab full` runs of it.
const PIECES: &[Piece] = &[Piece::experiment(NAME)];
const SCENARIO: &str = include_str!("../../scenarios/side-effects.toml");

/// Parameters, as lab/scenarios/side-effects.toml has them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    rounds: usize,
    loaded: Option<loaded::Scenario>,
    backups: Option<backups::Scenario>,
    scans: Option<scans::Scenario>,
}

/// What all pieces share.
#[derive(Debug)]
struct Asked<'a> {
    options: &'a Options,
    rounds: usize,
    /// Of this piece.
    estimate_s: f64,
}

/// Article 3's caveats: plain databases beside the library, compressed backups, maintenance during a scan.
///
/// Example: lab side-effects --estimate
#[derive(Debug, Clone, Args)]
pub struct SideEffects {
    #[command(flatten)]
    options: Options,
}

impl Measurement for SideEffects {
    fn name() -> &'static str {
        NAME
    }

    fn pieces() -> &'static [Piece] {
        PIECES
    }

    fn only_estimates(&self) -> bool {
        self.options.estimate
    }

    fn check(&self) -> Result<()> {
        let Scenario { loaded, backups, scans, .. } = self.options.scenario(SCENARIO)?;
        match loaded.is_some() || backups.is_some() || scans.is_some() {
            true => Ok(()),
            false => {
                Err(Error::invalid("side-effects: one of [loaded], [backups], [scans] at least"))
            }
        }
    }

    fn estimate(&self) -> Result<Estimate> {
        let options = &self.options;
        let scenario: Scenario = options.scenario(SCENARIO)?;
        let pieces = scenario.estimates(options, options.rounds(scenario.rounds));
        Ok(Estimate {
            seconds: pieces.iter().map(|piece| piece.seconds).sum(),
            bytes: pieces.iter().map(|piece| piece.bytes).max().unwrap_or(0),
        })
    }

    fn run(&self) -> Result<bool> {
        let options = &self.options;
        let scenario: Scenario = options.scenario(SCENARIO)?;
        let Scenario { loaded, backups, scans, .. } = &scenario;
        let rounds = options.rounds(scenario.rounds);
        let estimates = scenario.estimates(options, rounds);
        let asked = |piece: usize| Asked { options, rounds, estimate_s: estimates[piece].seconds };
        if let Some(piece) = loaded {
            loaded::measure(&asked(0), piece)?;
        }
        if let Some(piece) = backups {
            backups::measure(&asked(1), piece)?;
        }
        if let Some(piece) = scans {
            scans::measure(&asked(2), piece)?;
        }
        Ok(true)
    }
}

impl Scenario {
    /// Of each piece; of one that is left out nothing.
    fn estimates(&self, options: &Options, rounds: usize) -> [Estimate; 3] {
        let Self { loaded, backups, scans, .. } = self;
        let loaded =
            loaded.as_ref().map(|one| (one.estimate(options, rounds), one.needed_bytes(options)));
        let backups =
            backups.as_ref().map(|one| (one.estimate(options, rounds), one.needed_bytes(options)));
        let scans =
            scans.as_ref().map(|one| (one.estimate(options, rounds), one.needed_bytes(options)));
        [loaded, backups, scans].map(|piece| {
            let (seconds, bytes) = piece.unwrap_or_default();
            Estimate { seconds, bytes }
        })
    }
}

impl Asked<'_> {
    fn place(&self, sides: Vec<SideChoice>) -> Result<Place> {
        let extension = self.options.extension.clone();
        let sides = SideOptions { sides, extension, algorithm: Algorithm::Aes256 };
        Place::open(NAME, &Common { sides, ..self.options.common(self.rounds) })
    }

    fn parameters<const N: usize>(&self, own: [(&str, Value); N]) -> Parameters {
        let common = [
            ("scale", json!(self.options.scale)),
            ("estimate_s", json!(self.estimate_s.round())),
            ("article", json!(3)),
            ("cache", json!("warm")),
        ];
        let all = common.into_iter().chain(own);
        all.map(|(name, value)| (name.to_string(), value)).collect()
    }
}

/// The program of a sealed side, whose instance is in `home`.
fn program(side: &Side, home: &Path) -> Result<Program> {
    let found = Program::of(side, home)?;
    found.ok_or_else(|| Error::invalid(format!("{}: a side without its program", side.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_is_read_and_a_piece_may_be_left_out() {
        let all: Scenario = toml::from_str(SCENARIO).unwrap();
        assert!(all.rounds == 10 && all.loaded.is_some() && all.backups.is_some());
        let one: Scenario = toml::from_str("rounds = 5\n[scans]\ndatabase_kib = 1024").unwrap();
        assert!(one.loaded.is_none() && one.backups.is_none() && one.scans.is_some());
        assert!(toml::from_str::<Scenario>("rounds = 5\n[scan]\ndatabase_kib = 1024").is_err());
    }
}

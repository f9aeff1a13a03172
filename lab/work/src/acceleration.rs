//! What hardware AES is worth: article 4's encryption and decryption of whole databases, and its CHECKDB, with the
//! processor's AES instructions and without them.
//!
//! The switch is the crypto library's own, a variable of the environment that it reads when a process starts. In every
//! round a sealed database of one length is authenticated on both sides; if that takes not much more processor time
//! without the instructions, the switch did nothing and the session fails.

mod bench;
mod line;
mod projection;
mod switch;

use clap::Args;
use pellucid_lab_measure::blocks::{round_of, shuffled};
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::room;
use pellucid_lab_measure::random::Random;
use pellucid_lab_measure::session::{Conditions, Place};
use serde::Deserialize;
use serde_json::json;

use self::bench::Bench;
use self::projection::project;
use crate::estimate::Estimate;
use crate::experiment::medium::{seconds, CHOICES};
use crate::experiment::notes::Notes;
use crate::experiment::Options;
use crate::measurement::Measurement;
use crate::piece::Piece;

/// Names the command and the sessions.
const NAME: &str = "acceleration";
/// What `lab full` runs of it.
const PIECES: &[Piece] = &[Piece::experiment(NAME)];
const SCENARIO: &str = include_str!("../../scenarios/acceleration.toml");

/// With the processor's AES instructions, and without.
const SIDES: [&str; 2] = ["hardware", "software"];
/// What is done with a sealed database, in this order.
const ENCRYPT: &str = "encrypt";
const CHECKS: [&str; 2] = ["CHECKDB", "CHECKDB PHYSICAL_ONLY"];
const DECRYPT: &str = "decrypt";
const PLAIN: &str = "plain";
const PROBE: &str = "probe";
const PROBED: &str = "AES_256";
/// How much more processor time the probe takes at least without the instructions; measured, it is ten times.
const LEAST_RATIO: f64 = 2.0;
/// A line through fewer sizes says nothing of how straight it is.
const LEAST_SIZES: usize = 4;
const MB: f64 = 1e6;
/// Beside the templates: the largest one, and the copy that encryption builds.
const FILES_BESIDE: f64 = 3.0;

/// Parameters, as lab/scenarios/acceleration.toml has them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    rounds: usize,
    algorithms: Vec<String>,
    sizes_mib: Vec<f64>,
    projected_gb: f64,
    probe_mib: u64,
}

/// What is done with one database, on one side behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block<'a> {
    Probe,
    /// CHECKDB of the plain database; the number of its size.
    Plain(usize),
    Sealed(usize, &'a str),
}

#[derive(Debug, Clone, Copy)]
struct Run<'a> {
    round: usize,
    block: Block<'a>,
    place: usize,
    side: usize,
}

/// Article 4: encryption, decryption and CHECKDB with hardware AES and without it.
///
/// Example: lab acceleration --estimate
#[derive(Debug, Clone, Args)]
pub struct Acceleration {
    #[command(flatten)]
    options: Options,
}

impl Measurement for Acceleration {
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
        let scenario: Scenario = self.options.scenario(SCENARIO)?;
        scenario.checked().map(drop)
    }

    fn estimate(&self) -> Result<Estimate> {
        let options = &self.options;
        let scenario: Scenario = options.scenario(SCENARIO)?;
        let sizes: Vec<f64> = scenario.sizes_mib.iter().map(|mib| mib * options.scale).collect();
        Ok(estimated(&scenario, &sizes, options.rounds(scenario.rounds)))
    }

    fn run(&self) -> Result<bool> {
        let options = &self.options;
        let scenario: Scenario = options.scenario(SCENARIO)?;
        let algorithms = scenario.checked()?;
        let rounds = options.rounds(scenario.rounds);
        let sizes: Vec<f64> = scenario.sizes_mib.iter().map(|mib| mib * options.scale).collect();
        let estimate = estimated(&scenario, &sizes, rounds);
        let program = options.program()?;
        let off = switch::off()?;
        let mut place = Place::open(NAME, &options.common(rounds))?;
        room(place.path(), estimate.bytes)?;
        let bench =
            Bench::prepare(&program, place.path(), &sizes, scenario.probe_mib, options.seed)?;
        let parameters = [
            ("scale", json!(options.scale)),
            ("estimate_s", json!(estimate.seconds.round())),
            ("article", json!(4)),
            ("algorithms", json!(algorithms)),
            ("sizes_mib", json!(sizes)),
            ("article_sizes_mib", json!(scenario.sizes_mib)),
            ("sizes_bytes", json!(bench.sizes.iter().map(|size| size.bytes).collect::<Vec<_>>())),
            ("projected_gb", json!(scenario.projected_gb)),
            (
                "projection",
                json!("a line through the sizes of each round, least squares; not measured"),
            ),
            ("probe", json!(format!("check --physical-only --cores 1, {PROBED}"))),
            ("probe_mib", json!(scenario.probe_mib)),
            ("switch", json!(switch::shown(off))),
            ("cache", json!("warm")),
        ];
        let conditions = Conditions {
            sides: bench.describe(&program, off)?,
            warm_up_rounds: 1,
            size: Some(bench.sizes.iter().map(|size| size.bytes >> 20).max().unwrap_or(0)),
            parameters: parameters.map(|(name, value)| (name.into(), value)).into(),
            ..Conditions::default()
        };
        let plan = plan(bench.sizes.len(), &algorithms, rounds, options.seed);
        let session = place.begin(conditions, plan.len() / ((rounds + 1) * SIDES.len()))?;
        let mut notes = Notes::new(place, session.session);
        let mut probed = [None; 2];
        for run in plan {
            notes.place.step(&format!("round {}: {:?}, {}", run.round, run.block, SIDES[run.side]));
            let on_side = bench.on(if run.side == 0 { switch::ON } else { off });
            match run.block {
                Block::Probe => {
                    probed[run.side] = on_side.probe(&mut notes, run)?;
                    if run.place + 1 == SIDES.len() {
                        works(probed)?;
                    }
                }
                Block::Plain(size) => on_side.plain(&mut notes, run, &bench.sizes[size])?,
                Block::Sealed(size, algorithm) => {
                    on_side.sealed(&mut notes, run, &bench.sizes[size], algorithm)?;
                }
            }
        }
        project(&mut notes, &bench.sizes, &algorithms, rounds, scenario.projected_gb)?;
        notes.finish()?;
        Ok(true)
    }
}

impl Scenario {
    /// The algorithms, if all is as it should be.
    fn checked(&self) -> Result<Vec<&'static str>> {
        let known = |name: &String| CHOICES[1..].iter().copied().find(|known| known == name);
        let found: Vec<_> = self.algorithms.iter().filter_map(known).collect();
        let twice = (1..found.len()).any(|at| found[..at].contains(&found[at]));
        if found.len() != self.algorithms.len() || found.is_empty() || twice {
            let known = CHOICES[1..].join(", ");
            return Err(Error::invalid(format!("algorithms: some of {known}, each once")));
        }
        let grow = self.sizes_mib.windows(2).all(|pair| pair[0] < pair[1]);
        if self.sizes_mib.len() < LEAST_SIZES || !grow || self.sizes_mib[0] <= 0.0 {
            let wanted =
                format!("sizes_mib: at least {LEAST_SIZES}, each larger than the one before");
            return Err(Error::invalid(wanted));
        }
        Ok(found)
    }
}

/// The probe first in every round; then every block once, in an order that is drawn; and every block both sides one behind
/// the other, in an order that is drawn.
fn plan<'a>(sizes: usize, algorithms: &[&'a str], rounds: usize, seed: u64) -> Vec<Run<'a>> {
    let mut blocks: Vec<_> = (0..sizes).map(Block::Plain).collect();
    for algorithm in algorithms {
        blocks.extend((0..sizes).map(|size| Block::Sealed(size, algorithm)));
    }
    let mut plan = Vec::new();
    for round in 0..=rounds {
        let probe = shuffled(SIDES.len(), &mut Random::of(&[seed, round as u64]));
        let probe = probe.into_iter().enumerate();
        plan.extend(probe.map(|(place, side)| Run { round, block: Block::Probe, place, side }));
        plan.extend(round_of(blocks.len(), SIDES.len(), round, seed).into_iter().map(|planned| {
            let (place, side) = (planned.place, planned.side);
            Run { round, block: blocks[planned.group], place, side }
        }));
    }
    plan
}

/// Whether the switch did anything: processor seconds of the probe on both sides.
fn works(probed: [Option<f64>; 2]) -> Result<()> {
    match probed {
        // Nothing against nothing tells nothing either.
        [Some(hardware), Some(software)]
            if hardware <= 0.0 || software < LEAST_RATIO * hardware =>
        {
            Err(Error::invalid(format!(
                "without AES instructions the probe takes {software} s of processor time and with them {hardware} s: \
                 this machine has none, or they cannot be switched off"
            )))
        }
        [Some(_), Some(_)] => Ok(()),
        _ => Err(Error::invalid("this system does not tell processor time: the switch is not shown to work")),
    }
}

fn estimated(scenario: &Scenario, sizes_mib: &[f64], rounds: usize) -> Estimate {
    /// Encryption, both checks and decryption of one sealed database together, AES: with hardware and without.
    const AES_MB_PER_S: [f64; 2] = [35.0, 20.0];
    const TRIPLE_DES_MB_PER_S: f64 = 4.5;
    const PLAIN_MB_PER_S: f64 = 150.0;
    /// Of one sealed database or one plain one, on one side: copies, processes, and waiting for a quiet machine.
    const EACH_S: [f64; 2] = [1.2, 0.5];
    let mb: f64 = sizes_mib.iter().sum::<f64>() * 1.048576;
    let slow = scenario.algorithms.iter().filter(|name| Some(&name.as_str()) == CHOICES.last());
    let (slow, all) = (slow.count() as f64, scenario.algorithms.len() as f64);
    let blocks = sizes_mib.len() as f64;
    let aes = (all - slow) * AES_MB_PER_S.iter().map(|speed| mb / speed).sum::<f64>();
    let plain = 2.0 * mb / PLAIN_MB_PER_S + 2.0 * blocks * EACH_S[1];
    let round =
        aes + slow * 2.0 * mb / TRIPLE_DES_MB_PER_S + plain + 2.0 * all * blocks * EACH_S[0];
    let bytes = ((mb + scenario.probe_mib as f64) * MB) as u64;
    let largest = sizes_mib.iter().copied().fold(scenario.probe_mib as f64, f64::max);
    let needed_mib = sizes_mib.iter().sum::<f64>() * 2.0 + FILES_BESIDE * largest;
    Estimate {
        seconds: seconds::made(bytes) + 10.0 + (rounds + 1) as f64 * (round + 2.0),
        bytes: (needed_mib * 1048576.0) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_that_does_nothing_is_found() {
        assert!(works([Some(0.03), Some(0.3)]).is_ok());
        assert!(works([Some(0.03), Some(0.05)]).is_err());
        assert!(works([None, Some(0.3)]).is_err());
        assert!(works([Some(0.0), Some(0.0)]).is_err());
    }

    #[test]
    fn every_round_has_every_block_on_both_sides_and_begins_with_the_probe() {
        let plan = plan(4, &["AES_128", "AES_256"], 2, 1);
        let blocks = 1 + 4 + 2 * 4;
        assert_eq!(plan.len(), 3 * blocks * 2);
        for round in 0..3 {
            let of_round: Vec<_> = plan.iter().filter(|run| run.round == round).collect();
            assert_eq!(of_round.len(), blocks * 2);
            assert!(of_round[..2].iter().all(|run| run.block == Block::Probe));
            let twice = of_round
                .chunks(2)
                .all(|both| both[0].block == both[1].block && both[0].side + both[1].side == 1);
            assert!(twice, "{of_round:?}");
        }
    }

    #[test]
    fn the_scenario_is_the_articles_and_another_has_four_sizes_too() {
        let mut scenario: Scenario = toml::from_str(SCENARIO).unwrap();
        assert_eq!(scenario.checked().unwrap(), CHOICES[1..]);
        assert_eq!((scenario.rounds, scenario.projected_gb), (10, 1000.0));
        scenario.sizes_mib.pop();
        assert!(scenario.checked().is_err());
        let mut scenario: Scenario = toml::from_str(SCENARIO).unwrap();
        scenario.algorithms[1] = scenario.algorithms[0].clone();
        assert!(scenario.checked().is_err());
        scenario.sizes_mib = vec![1.0, 2.0, 2.0, 3.0];
        assert!(scenario.checked().is_err());
    }
}

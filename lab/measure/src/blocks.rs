//! Randomised complete blocks: every round runs each side once, in an order drawn from the seed; a
//! ratio to the base for each round, never a time alone.
//!
//! What drifts slowly then hurts all sides alike, and nothing that comes in step with the rounds
//! can favour one. A warm-up round comes first, is recorded, and is part of no figure.

use pellucid_lab_report::record::{CellResult, SideResult};
use pellucid_lab_report::statistics::{LogMean, Summary, CELLS_OF_99_PERCENT};

use crate::error::{Error, Result};
use crate::histogram::Histogram;
use crate::random::Random;

/// What the cells of a session share.
#[derive(Debug)]
pub struct Rounds {
    pub session: String,
    /// Names; the first is the base.
    pub sides: Vec<String>,
    pub rounds: usize,
    pub warm_up_rounds: usize,
    pub seed: u64,
    /// A cell ends before its last round when each interval of 99 % is no wider than by this factor either way: a
    /// matter of its width alone, never of where it lies.
    pub until: Option<f64>,
}

/// Fewer say too little of how much they differ.
pub const LEAST_ROUNDS_UNTIL: usize = 10;

/// Where a run stands.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// From 1 after the warm-up, which is 0.
    pub round: usize,
    pub place: usize,
    pub side: usize,
}

/// What one run gave.
#[derive(Debug)]
pub struct Sample {
    pub ops_per_s: f64,
    pub cpu_us_per_op: Option<f64>,
    pub latency: Histogram,
    pub busy: u64,
    pub others_share: f64,
    pub stolen_share: f64,
}

impl Rounds {
    /// Runs that `cells` cells take.
    pub fn runs(&self, cells: usize) -> usize {
        cells * self.sides.len() * (self.warm_up_rounds + self.rounds)
    }

    /// Measures one cell; a result for each side but the base.
    ///
    /// # Errors
    /// Of the first run that failed, and [`Error::Invalid`] if a run did no operation.
    pub fn measure(
        &self,
        cell: &str,
        mut run: impl FnMut(Turn) -> Result<Sample>,
    ) -> Result<Vec<CellResult>> {
        let mut samples: Vec<Vec<Sample>> = self.sides.iter().map(|_| Vec::new()).collect();
        let mut narrow = self.until.is_none();
        for round in 1 - self.warm_up_rounds.min(1)..=self.rounds {
            for (place, side) in self.order(cell, round).into_iter().enumerate() {
                let sample = run(Turn { round, place, side })?;
                if round > 0 {
                    samples[side].push(sample);
                }
            }
            if round >= LEAST_ROUNDS_UNTIL
                && self.until.is_some_and(|factor| are_narrow(&samples, factor))
            {
                narrow = true;
                break;
            }
        }
        if !narrow {
            eprintln!(
                "lab: {cell}: {} rounds did not make its interval narrow enough",
                self.rounds
            );
        }
        (1..self.sides.len())
            .map(|side| self.result(cell, [(0, &samples[0]), (side, &samples[side])]))
            .collect::<Option<_>>()
            .ok_or_else(|| Error::invalid("a run without operations: give it more time"))
    }

    /// The sides of a round as they come: every order is as likely as any other.
    fn order(&self, cell: &str, round: usize) -> Vec<usize> {
        let mut name = vec![self.seed, round as u64];
        name.extend(cell.bytes().map(u64::from));
        shuffled(self.sides.len(), &mut Random::of(&name))
    }

    /// `None` if a run did nothing.
    fn result(&self, cell: &str, both: [(usize, &[Sample]); 2]) -> Option<CellResult> {
        let [(_, base), (_, other)] = both;
        let ratios = |of: fn(&Sample) -> Option<f64>| -> Option<Vec<f64>> {
            base.iter().zip(other).map(|(a, b)| Some(of(b)? / of(a)?)).collect()
        };
        let shares = |of: fn(&Sample) -> f64| {
            Summary::of(&base.iter().chain(other).map(of).collect::<Vec<_>>())
        };
        let speed_ratios = ratios(|run| Some(run.ops_per_s))?;
        let side = |(side, samples): (usize, &[Sample])| side_result(&self.sides[side], samples);
        Some(CellResult {
            session: self.session.clone(),
            cell: cell.into(),
            ratio: Summary::of(&speed_ratios)?,
            ratio_mean: LogMean::of(&speed_ratios).map(|mean| mean.interval(1)),
            ratios: speed_ratios,
            cpu_ratio: ratios(|run| run.cpu_us_per_op).and_then(|us| Summary::of(&us)),
            sides: [side(both[0])?, side(both[1])?],
            others_share: shares(|run| run.others_share)?,
            stolen_share: shares(|run| run.stolen_share)?,
        })
    }
}

/// Whether every side's interval of 99 % is within this factor of its middle.
fn are_narrow(samples: &[Vec<Sample>], factor: f64) -> bool {
    let Some((base, others)) = samples.split_first() else { return false };
    others.iter().all(|side| {
        let ratios: Vec<f64> =
            base.iter().zip(side).map(|(a, b)| b.ops_per_s / a.ops_per_s).collect();
        LogMean::of(&ratios)
            .is_some_and(|mean| mean.interval(CELLS_OF_99_PERCENT).half_width() <= factor)
    })
}

fn side_result(side: &str, samples: &[Sample]) -> Option<SideResult> {
    let numbers =
        |of: fn(&Sample) -> Option<f64>| samples.iter().map(of).collect::<Option<Vec<_>>>();
    let mut latency = Histogram::default();
    samples.iter().for_each(|sample| latency.merge(&sample.latency));
    Some(SideResult {
        side: side.into(),
        ops_per_s: Summary::of(&numbers(|run| Some(run.ops_per_s))?)?,
        latency: latency.latency(),
        cpu_us_per_op: numbers(|run| run.cpu_us_per_op).and_then(|us| Summary::of(&us)),
        busy: samples.iter().map(|sample| sample.busy).sum(),
    })
}

/// Where a run stands in a plan of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// From 1; 0 is the warm-up.
    pub round: usize,
    pub group: usize,
    pub place: usize,
    pub side: usize,
}

/// The warm-up and `rounds` more, each as [`round_of`] has it.
pub fn plan(groups: usize, sides: usize, rounds: usize, seed: u64) -> Vec<Planned> {
    (0..=rounds).flat_map(|round| round_of(groups, sides, round, seed)).collect()
}

/// Every group once, in an order that is drawn, and of every group every side one behind the other, in an order that is
/// drawn: runs that are compared are close to each other.
pub fn round_of(groups: usize, sides: usize, round: usize, seed: u64) -> Vec<Planned> {
    let order = |count, of: u64| shuffled(count, &mut Random::of(&[seed, round as u64, of]));
    let mut planned = Vec::new();
    for group in order(groups, 0) {
        let sides = order(sides, group as u64 + 1).into_iter().enumerate();
        planned.extend(sides.map(|(place, side)| Planned { round, group, place, side }));
    }
    planned
}

/// 0 to `n` - 1 in a random order (Fisher and Yates).
pub fn shuffled(n: usize, random: &mut Random) -> Vec<usize> {
    let mut places: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        places.swap(last, random.below(last as u64 + 1) as usize);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_order_of_a_round_is_as_likely_as_any_other() {
        let mut seen: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        for round in 0..6000 {
            *seen.entry(shuffled(3, &mut Random::of(&[2008, round]))).or_default() += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|count| (850..1150).contains(count)), "{seen:?}");
    }

    #[test]
    fn the_warm_up_is_run_and_is_in_no_figure() {
        let sides = vec!["a".into(), "b".into()];
        let measure = |warm_up_rounds| {
            let rounds = Rounds {
                session: "1".into(),
                sides: sides.clone(),
                rounds: 5,
                warm_up_rounds,
                seed: 1,
                until: None,
            };
            let mut turns = 0;
            let cells = rounds.measure("cell", |turn| {
                turns += 1;
                let speed = if turn.round == 0 { 1e9 } else { 1.0 + turn.side as f64 };
                Ok(Sample {
                    ops_per_s: speed,
                    cpu_us_per_op: None,
                    latency: Histogram::default(),
                    busy: 0,
                    others_share: 0.0,
                    stolen_share: 0.0,
                })
            });
            assert_eq!(rounds.runs(1), turns);
            (turns, cells.unwrap().remove(0).ratios)
        };
        assert_eq!(measure(1), (12, vec![2.0; 5]));
        assert_eq!(measure(0), (10, vec![2.0; 5]));
    }

    /// Rounds that a cell takes whose sides differ by `share`, with a noise of `spread`.
    fn rounds_until(percent: f64, share: f64, spread: f64) -> usize {
        let rounds = Rounds {
            session: "1".into(),
            sides: vec!["a".into(), "b".into()],
            rounds: 300,
            warm_up_rounds: 1,
            seed: 1,
            until: Some(1.0 + percent / 100.0),
        };
        let cells = rounds.measure("cell", |turn| {
            let noise = Random::of(&[turn.round as u64, turn.side as u64]).below(1001) as f64;
            let speed = 1.0 + share * turn.side as f64 + spread * (noise / 500.0 - 1.0);
            Ok(Sample {
                ops_per_s: speed,
                cpu_us_per_op: None,
                latency: Histogram::default(),
                busy: 0,
                others_share: 0.0,
                stolen_share: 0.0,
            })
        });
        cells.unwrap().remove(0).ratios.len()
    }

    #[test]
    fn a_cell_ends_when_its_interval_is_narrow_and_wherever_it_lies() {
        assert_eq!(rounds_until(1.0, 0.0, 1e-4), LEAST_ROUNDS_UNTIL);
        // Uniform in 1 +- 0.05: the ratio's log has 0.041; (2.7 * 0.041 / 0.01)^2 rounds are 121.
        let noisy = rounds_until(1.0, 0.0, 0.05);
        assert!((80..170).contains(&noisy), "{noisy}");
        assert!(rounds_until(1.0, 1.0, 0.1).abs_diff(rounds_until(1.0, 1.0001, 0.1)) <= 1);
        assert_eq!(rounds_until(1.0, 0.0, 0.3), 300);
    }

    #[test]
    fn a_round_has_every_group_on_every_side_one_behind_the_other() {
        let plan = plan(3, 5, 2, 1);
        assert_eq!(plan.len(), 3 * 3 * 5);
        for (round, of_round) in plan.chunks(3 * 5).enumerate() {
            assert!(of_round.iter().all(|run| run.round == round));
            let mut groups = Vec::new();
            for of_group in of_round.chunks(5) {
                assert!(of_group.iter().all(|run| run.group == of_group[0].group), "{of_group:?}");
                assert!(of_group.iter().enumerate().all(|(place, run)| run.place == place));
                let mut sides: Vec<_> = of_group.iter().map(|run| run.side).collect();
                sides.sort_unstable();
                assert_eq!(sides, [0, 1, 2, 3, 4]);
                groups.push(of_group[0].group);
            }
            groups.sort_unstable();
            assert_eq!(groups, [0, 1, 2]);
        }
        let sides = |round: usize| -> Vec<_> {
            plan.iter().filter(|run| run.round == round).map(|run| run.side).collect()
        };
        assert_ne!(sides(1), sides(2));
    }

    #[test]
    fn an_order_is_the_seeds() {
        let order = |seed| shuffled(9, &mut Random::of(&[seed]));
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }
}

//! Randomised complete blocks: every round runs each side once, on a fresh copy, in an order drawn
//! from the seed; a ratio to the base for each round, never a time alone.
//!
//! What drifts slowly then hurts all sides alike, and nothing that comes in step with the rounds
//! can favour one. A warm-up round comes first, is recorded, and is part of no figure.

use std::time::Instant;

use crate::error::{Error, Result};
use crate::fixture::Fixture;
use crate::histogram::Histogram;
use crate::machine::Busy;
use crate::plan::{Cell, Setting};
use crate::pool;
use crate::random::Random;
use crate::record::{CellResult, Run, SideResult};
use crate::scenario::mix::Operation;
use crate::statistics::{LogMean, Summary};
use crate::worker::{self, Limit, Order, Ran, Report, Task};

pub const WARM_UP_ROUNDS: usize = 1;

/// What all cells of a session share.
#[derive(Debug)]
pub struct Blocks {
    pub session: String,
    /// One for each side; the first is the base.
    pub fixtures: Vec<Fixture>,
    pub setting: Setting,
    pub rounds: usize,
    pub limit: Limit,
    pub seed: u64,
}

impl Blocks {
    /// Measures one cell; a result for each side but the base. `after_run` sees each run, also those
    /// of the warm-up.
    ///
    /// # Errors
    /// Of the first run that failed, and [`Error::Invalid`] if a run did no operation.
    pub fn measure(
        &self,
        cell: Cell,
        mut after_run: impl FnMut(&Run) -> Result<()>,
    ) -> Result<Vec<CellResult>> {
        let mut measured: Vec<Measured> =
            self.fixtures.iter().map(|_| Measured::default()).collect();
        for round in 0..WARM_UP_ROUNDS + self.rounds {
            for (place, side) in self.order(cell, round).into_iter().enumerate() {
                let (run, latency) = self.run(cell, round, place, side)?;
                after_run(&run)?;
                if round >= WARM_UP_ROUNDS {
                    measured[side].latency.merge(&latency);
                    measured[side].runs.push(run);
                }
            }
        }
        let results = |(base, others): (&Measured, &[Measured])| {
            others.iter().map(|other| result(base, other)).collect::<Option<Vec<_>>>()
        };
        measured
            .split_first()
            .and_then(results)
            .ok_or_else(|| Error::invalid("a run without operations: give it more time"))
    }

    /// The sides of a round as they come: every order is as likely as any other.
    fn order(&self, cell: Cell, round: usize) -> Vec<usize> {
        let mut name = vec![self.seed, round as u64];
        name.extend(cell.to_string().bytes().map(u64::from));
        shuffled(self.fixtures.len(), &mut Random::of(&name))
    }

    fn run(&self, cell: Cell, round: usize, place: usize, side: usize) -> Result<(Run, Histogram)> {
        let fixture = &self.fixtures[side];
        let (path, dirty_kib) = fixture.copy()?;
        let task = |worker| worker::Run {
            mix: cell.mix,
            synchronous: cell.synchronous,
            limit: self.limit,
            seed: vec![self.seed, round as u64],
            worker,
        };
        let orders: Vec<Order> = (0..cell.processes as u64)
            .map(|worker| Order {
                side: fixture.side.clone(),
                path: path.clone(),
                setting: self.setting,
                task: Task::Run(task(worker)),
            })
            .collect();
        let mut before = None;
        let reports = pool::together(&orders, fixture.home(), || {
            before = Some((Busy::now(), Instant::now()));
        })?;
        let load = before.map(|(busy, start)| (busy.elapsed(), start.elapsed().as_secs_f64()));
        let ran: Vec<Ran> = reports
            .into_iter()
            .map(|report| match report {
                Report::Ran(ran) => Ok(ran),
                other => Err(Error::invalid(format!("a run's worker answers {other:?}"))),
            })
            .collect::<Result<_>>()?;

        let mut kinds = Operation::ALL.map(|_| Histogram::default());
        for one in &ran {
            kinds.iter_mut().zip(&one.latencies).for_each(|(sum, one)| sum.merge_sparse(one));
        }
        let mut all = Histogram::default();
        kinds.iter().for_each(|kind| all.merge(kind));
        let inserted = ran.iter().map(|one| one.committed_inserts).sum();
        let file_bytes_after = fixture.verify(&path, inserted)?;

        let operations = all.count() as f64;
        let wall_s = match self.limit {
            Limit::Seconds(seconds) => seconds,
            Limit::Operations(_) => ran.iter().map(|one| one.elapsed_s).fold(0.0, f64::max),
        };
        let cpu_s: Option<f64> = ran.iter().map(|one| one.cpu_s).sum();
        let (others_share, stolen_share) = load.map_or((0.0, 0.0), |((busy, stolen), seconds)| {
            let all = seconds * cores();
            (((busy - cpu_s.unwrap_or(busy)) / all).max(0.0), stolen / all)
        });
        let run = Run {
            session: self.session.clone(),
            cell: format!("{cell}{}", self.setting.suffix()),
            plan: cell,
            round,
            place,
            side: fixture.side.name.clone(),
            ops_per_s: operations / wall_s,
            all: all.latency(),
            read: kinds[Operation::Read as usize].latency(),
            update: kinds[Operation::Update as usize].latency(),
            insert: kinds[Operation::Insert as usize].latency(),
            cpu_us_per_op: cpu_s.map(|seconds| seconds / operations * 1e6),
            busy: ran.iter().map(|one| one.busy).sum(),
            others_share,
            stolen_share,
            dirty_kib,
            file_bytes_after,
        };
        Ok((run, all))
    }
}

/// The runs of one side in one cell, by round.
#[derive(Debug, Default)]
struct Measured {
    runs: Vec<Run>,
    latency: Histogram,
}

/// `None` if a run did nothing.
fn result(base: &Measured, other: &Measured) -> Option<CellResult> {
    let pairs = || base.runs.iter().zip(&other.runs);
    let (first, _) = pairs().next()?;
    let ratios = |of: fn(&Run) -> Option<f64>| -> Option<Vec<f64>> {
        pairs().map(|(a, b)| Some(of(b)? / of(a)?)).collect()
    };
    let shares = |of: fn(&Run) -> f64| {
        Summary::of(&base.runs.iter().chain(&other.runs).map(of).collect::<Vec<_>>())
    };
    let speed_ratios = ratios(|run| Some(run.ops_per_s))?;
    Some(CellResult {
        session: first.session.clone(),
        cell: first.cell.clone(),
        ratio: Summary::of(&speed_ratios)?,
        ratio_mean: LogMean::of(&speed_ratios).map(|mean| mean.interval(1)),
        ratios: speed_ratios,
        cpu_ratio: ratios(|run| run.cpu_us_per_op).and_then(|us| Summary::of(&us)),
        sides: [side_result(base)?, side_result(other)?],
        others_share: shares(|run| run.others_share)?,
        stolen_share: shares(|run| run.stolen_share)?,
    })
}

fn side_result(measured: &Measured) -> Option<SideResult> {
    let runs = &measured.runs;
    let numbers = |of: fn(&Run) -> Option<f64>| runs.iter().map(of).collect::<Option<Vec<_>>>();
    Some(SideResult {
        side: runs.first()?.side.clone(),
        ops_per_s: Summary::of(&numbers(|run| Some(run.ops_per_s))?)?,
        latency: measured.latency.latency(),
        cpu_us_per_op: numbers(|run| run.cpu_us_per_op).and_then(|us| Summary::of(&us)),
        busy: runs.iter().map(|run| run.busy).sum(),
    })
}

/// 0 to `n` - 1 in a random order (Fisher and Yates).
pub fn shuffled(n: usize, random: &mut Random) -> Vec<usize> {
    let mut places: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        places.swap(last, random.below(last as u64 + 1) as usize);
    }
    places
}

fn cores() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |cores| usize::from(cores) as f64)
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
    fn an_order_is_the_seeds() {
        let order = |seed| shuffled(9, &mut Random::of(&[seed]));
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }
}

//! Paired runs: two sides, in turn, on fresh copies; a ratio for each round, never a time alone.
//!
//! The order is A B, B A, A B, ..: what drifts slowly hurts both sides alike. A warm-up round comes
//! first, is recorded, and is part of no figure.

use std::time::Instant;

use crate::error::{Error, Result};
use crate::fixture::Fixture;
use crate::machine::Busy;
use crate::pool;
use crate::record::{Cell, CellResult, Run, SideResult};
use crate::scenario::mix::Operation;
use crate::statistics::{GeometricMean, Histogram, Summary};
use crate::worker::{self, Limit, Order, Ran, Report, Task};

pub const WARM_UP_ROUNDS: usize = 1;

/// What all cells of a session share.
#[derive(Debug)]
pub struct Pair {
    pub session: String,
    /// A, the base, and B.
    pub fixtures: [Fixture; 2],
    pub rounds: usize,
    pub limit: Limit,
    pub seed: u64,
}

impl Pair {
    /// Runs that one cell takes.
    pub fn runs_per_cell(&self) -> usize {
        2 * (WARM_UP_ROUNDS + self.rounds)
    }

    /// Measures one cell; `after_run` sees each run, also those of the warm-up.
    ///
    /// # Errors
    /// Of the first run that failed, and [`Error::Invalid`] if a run did no operation.
    pub fn measure(
        &self,
        cell: Cell,
        mut after_run: impl FnMut(&Run) -> Result<()>,
    ) -> Result<CellResult> {
        let mut latencies = [Histogram::default(), Histogram::default()];
        let mut runs: [Vec<Run>; 2] = [Vec::new(), Vec::new()];
        for round in 0..WARM_UP_ROUNDS + self.rounds {
            for (place, side) in order(round).into_iter().enumerate() {
                let (run, latency) = self.run(cell, round, place, side)?;
                after_run(&run)?;
                if round >= WARM_UP_ROUNDS {
                    latencies[side].merge(&latency);
                    runs[side].push(run);
                }
            }
        }
        self.result(cell, &runs, &latencies)
            .ok_or_else(|| Error::invalid("a run without operations: give it more time"))
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
                size: fixture.size,
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
            cell,
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

    fn result(
        &self,
        cell: Cell,
        runs: &[Vec<Run>; 2],
        latencies: &[Histogram; 2],
    ) -> Option<CellResult> {
        let ratios = |of: &dyn Fn(&Run) -> Option<f64>| -> Option<Vec<f64>> {
            runs[0].iter().zip(&runs[1]).map(|(a, b)| Some(of(b)? / of(a)?)).collect()
        };
        let speed_ratios = ratios(&|run| Some(run.ops_per_s))?;
        let side = |side: usize| -> Option<SideResult> {
            let numbers = |of: &dyn Fn(&Run) -> Option<f64>| -> Option<Vec<f64>> {
                runs[side].iter().map(of).collect()
            };
            Some(SideResult {
                side: self.fixtures[side].side.name.clone(),
                ops_per_s: Summary::of(&numbers(&|run| Some(run.ops_per_s))?)?,
                latency: latencies[side].latency(),
                cpu_us_per_op: numbers(&|run| run.cpu_us_per_op).and_then(|us| Summary::of(&us)),
                busy: runs[side].iter().map(|run| run.busy).sum(),
            })
        };
        let shares =
            |of: fn(&Run) -> f64| Summary::of(&runs.iter().flatten().map(of).collect::<Vec<_>>());
        Some(CellResult {
            session: self.session.clone(),
            cell,
            ratio: Summary::of(&speed_ratios)?,
            ratio_mean: GeometricMean::of(&speed_ratios),
            ratios: speed_ratios,
            cpu_ratio: ratios(&|run| run.cpu_us_per_op).and_then(|us| Summary::of(&us)),
            sides: [side(0)?, side(1)?],
            others_share: shares(|run| run.others_share)?,
            stolen_share: shares(|run| run.stolen_share)?,
        })
    }
}

/// A B in even rounds, B A in odd ones.
fn order(round: usize) -> [usize; 2] {
    if round % 2 == 0 {
        [0, 1]
    } else {
        [1, 0]
    }
}

fn cores() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |cores| usize::from(cores) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_is_as_often_first_as_second() {
        let places: Vec<_> = (0..4).flat_map(order).collect();
        assert_eq!(places, [0, 1, 1, 0, 0, 1, 1, 0]);
    }
}

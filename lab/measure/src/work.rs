//! Runs that do one thing: whole-database work, opening, speedtest1.

use pellucid_lab_report::record::Work;

use crate::blocks::{Rounds, Sample};
use crate::error::Result;
use crate::histogram::Histogram;
use crate::machine::as_ns;
use crate::session::Place;
use crate::sink::Record;

/// What one run gave; its record says more of each.
#[derive(Debug)]
pub struct Done {
    /// What speeds are counted in: 1, or megabytes.
    pub operations: f64,
    pub wall_s: f64,
    pub cpu_s: Option<f64>,
    pub read_bytes: Option<u64>,
    /// Of others and stolen, as [`crate::machine::Load::shares`] has them.
    pub shares: (f64, f64),
    pub dirty_kib: u64,
}

impl Place {
    /// Measures one cell and writes its records; `run` is told the number of its side.
    ///
    /// # Errors
    /// As [`Place::measure`].
    pub fn measure_work(
        &mut self,
        rounds: &Rounds,
        cell: &str,
        mut run: impl FnMut(usize) -> Result<Done>,
    ) -> Result<()> {
        self.measure(rounds, cell, |turn, sink| {
            let Done { operations, wall_s, cpu_s, read_bytes, shares, dirty_kib } = run(turn.side)?;
            let (others_share, stolen_share) = shares;
            let work = Work {
                session: rounds.session.clone(),
                cell: cell.into(),
                round: turn.round,
                place: turn.place,
                side: rounds.sides[turn.side].clone(),
                wall_s,
                cpu_s,
                read_bytes,
                others_share,
                stolen_share,
                dirty_kib,
            };
            sink.write(&Record::Work(&work))?;
            Ok(Sample::of(&work, operations))
        })
    }
}

impl Sample {
    fn of(work: &Work, operations: f64) -> Self {
        let mut latency = Histogram::default();
        latency.add(as_ns(std::time::Duration::from_secs_f64(work.wall_s)));
        Self {
            ops_per_s: operations / work.wall_s,
            cpu_us_per_op: work.cpu_s.map(|seconds| seconds / operations * 1e6),
            latency,
            busy: 0,
            others_share: work.others_share,
            stolen_share: work.stolen_share,
        }
    }
}

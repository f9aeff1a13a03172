//! The workload Vendor, Card, Purchase: worker processes on fresh copies, cell by cell.

use crate::arguments::PurchaseOptions;
use crate::blocks::{Sample, Turn};
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::fixture::Fixture;
use crate::histogram::Histogram;
use crate::machine::Load;
use crate::plan::{Cell, Setting};
use crate::pool;
use crate::record::{CellResult, Record, Run};
use crate::scenario::mix::Operation;
use crate::session::{Conditions, Place};
use crate::side::Side;
use crate::worker::{self, Limit, Order, Ran, Report, Task};

const WARM_UP_ROUNDS: usize = 1;
/// What a run takes beside its length: copying, starting workers, the check afterwards.
const AROUND_A_RUN_S: f64 = 0.8;
/// For an estimate, of each side: its template, and the bytes of a row, indexes included.
const TEMPLATE_S: f64 = 1.5;
const BYTES_PER_ROW: u64 = 100;
/// What a run may add to its copy, its WAL included.
const BYTES_OF_A_RUN: u64 = 32 << 20;

/// Measures every cell of the plan; false if one is below the minimum.
///
/// # Errors
/// Of the first run that failed.
pub fn measure(options: &PurchaseOptions) -> Result<bool> {
    if options.common.estimate {
        return estimate(options)?.print();
    }
    let cells = run(options)?.finish()?;
    Ok(at_least(options.minimum, &cells))
}

/// Measures every cell of the plan.
///
/// # Errors
/// Of the first run that failed.
pub fn run(options: &PurchaseOptions) -> Result<Place> {
    let plan = options.plan()?;
    // Peers run some of the standard cells again: those results are not the workload's.
    let peers = options.common.sides.has_peers();
    let mut place = Place::open(if peers { "peers" } else { "purchase" }, &options.common)?;
    let (setting, seed, limit) = (options.setting(), options.common.seed, options.limit());
    let prepare =
        |side: &Side| Fixture::prepare(side.clone(), setting, seed, place.path().join(&side.name));
    let fixtures: Vec<Fixture> = place.sides.iter().map(prepare).collect::<Result<_>>()?;
    let conditions = Conditions {
        sides: fixtures.iter().map(Fixture::describe).collect::<Result<_>>()?,
        warm_up_rounds: WARM_UP_ROUNDS,
        limit: Some(limit),
        until_percent: options.until_percent,
        setting: Some(setting),
        size: None,
        ..Conditions::default()
    };
    let rounds = place.begin(conditions, plan.len())?;
    let purchase = Purchase { session: rounds.session.clone(), fixtures, setting, limit, seed };
    for cell in plan {
        let name = format!("{cell}{}", setting.suffix());
        place.measure(&rounds, &name, |turn, sink| {
            let (run, latency) = purchase.run(cell, turn)?;
            sink.write(&Record::Run(&run))?;
            Ok(Sample {
                ops_per_s: run.ops_per_s,
                cpu_us_per_op: run.cpu_us_per_op,
                latency,
                busy: run.busy,
                others_share: run.others_share,
                stolen_share: run.stolen_share,
            })
        })?;
    }
    Ok(place)
}

/// What it will take.
///
/// # Errors
/// [`Error::Invalid`] for a name that no cell has.
pub fn estimate(options: &PurchaseOptions) -> Result<Estimate> {
    let sides = options.common.sides.sides.len();
    let runs = options.plan()?.len() * sides * (options.common.rounds + WARM_UP_ROUNDS);
    let size = options.setting().size;
    let template = (size.vendors + size.cards + size.purchases) * BYTES_PER_ROW;
    Ok(Estimate {
        seconds: runs as f64 * (options.seconds + AROUND_A_RUN_S) + sides as f64 * TEMPLATE_S,
        bytes: sides as u64 * (2 * template + BYTES_OF_A_RUN),
    })
}

/// What all cells of a session share.
#[derive(Debug)]
pub struct Purchase {
    pub session: String,
    pub fixtures: Vec<Fixture>,
    pub setting: Setting,
    pub limit: Limit,
    pub seed: u64,
}

impl Purchase {
    /// One run on a fresh copy, and the latency of all its operations.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a worker failed, or if a purchase that was acknowledged is not there.
    pub fn run(&self, cell: Cell, turn: Turn) -> Result<(Run, Histogram)> {
        let fixture = &self.fixtures[turn.side];
        let (path, dirty_kib) = fixture.copy()?;
        let task = |worker| worker::Run {
            mix: cell.mix,
            synchronous: cell.synchronous,
            limit: self.limit,
            seed: vec![self.seed, turn.round as u64],
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
        let mut load = Load::begin();
        let reports = pool::together(&orders, fixture.home(), || load = Load::begin())?;
        let load = load.end();
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
        let (others_share, stolen_share) = load.shares(cpu_s);
        let run = Run {
            session: self.session.clone(),
            cell: format!("{cell}{}", self.setting.suffix()),
            plan: cell,
            round: turn.round,
            place: turn.place,
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

fn at_least(minimum: Option<f64>, results: &[CellResult]) -> bool {
    let Some(minimum) = minimum else { return true };
    let below: Vec<_> = results.iter().filter(|result| result.ratio.median < minimum).collect();
    for result in &below {
        let side = &result.sides[1].side;
        eprintln!("lab: below {minimum}: {side}, {}: {:.3}", result.cell, result.ratio.median);
    }
    below.is_empty()
}

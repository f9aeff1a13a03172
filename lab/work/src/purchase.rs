//! The workload Vendor, Card, Purchase: worker processes on fresh copies, cell by cell.

mod options;

use std::path::{Path, PathBuf};

use pellucid_lab_measure::blocks::{Sample, Turn, LEAST_ROUNDS_UNTIL};
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::histogram::Histogram;
use pellucid_lab_measure::machine::Load;
use pellucid_lab_measure::random::Random;
use pellucid_lab_measure::session::{Conditions, Place};
use pellucid_lab_measure::side::{Recovery, Side};
use pellucid_lab_measure::sink::Record;
use pellucid_lab_report::plan::{Cell, Operation, Setting};
use pellucid_lab_report::record::{CellResult, Limit, Run};

use crate::estimate::Estimate;
use crate::fixture::Fixture;
use crate::measurement::Measurement;
use crate::piece::{Needs, Piece, Scaled, PEER_SIDES};
use crate::pool;
use crate::worker::{self, Order, Ran, Report, Task};

pub use options::Purchase;

/// Names the command and the sessions.
const NAME: &str = "purchase";
/// What `lab full` runs of it.
const PIECES: &[Piece] = &[
    Piece::new(
        "cells",
        NAME,
        Scaled::Seconds(3.0),
        &["--sides", "plain,again,sealed", "--cells", "all"],
    ),
    Piece::new(
        "cells-peers",
        NAME,
        Scaled::Seconds(3.0),
        &["--sides", PEER_SIDES, "--cells", "peers"],
    )
    .with(Needs::Peers),
    Piece::new(
        "delete",
        NAME,
        Scaled::Seconds(3.0),
        &["--sides", "plain,sealed", "--journal", "DELETE", "--cells", MIX],
    ),
    Piece::new(
        "large",
        NAME,
        Scaled::Seconds(3.0),
        &["--sides", "plain,sealed", "--cards", "100000", "--cells", LARGE],
    ),
    Piece::new(
        "page1024",
        NAME,
        Scaled::Seconds(3.0),
        &["--sides", "plain,sealed", "--page-size", "1024", "--cells", MIX],
    ),
    Piece::new(
        "page16384",
        NAME,
        Scaled::Seconds(3.0),
        &["--sides", "plain,sealed", "--page-size", "16384", "--cells", MIX],
    ),
    Piece::new(
        "3des",
        NAME,
        Scaled::Seconds(3.0),
        &["--sides", "plain,sealed", "--algorithm", "TRIPLE_DES_3KEY", "--cells", MIX],
    ),
];
/// Reads, updates and inserts, in every combination that the goals speak of.
const MIX: &str = "1-NORMAL-4/3/3,1-FULL-4/3/3,10-NORMAL-4/3/3,10-FULL-4/3/3";
const LARGE: &str =
    "1-NORMAL-10/0/0,10-NORMAL-10/0/0,1-NORMAL-4/3/3,1-FULL-4/3/3,10-NORMAL-4/3/3,10-FULL-4/3/3";
const WARM_UP_ROUNDS: usize = 1;
/// What a run takes beside its length: copying, starting workers, the check afterwards.
const AROUND_A_RUN_S: f64 = 0.8;
/// Of the numbers that a seed is made of.
const ORDER_OF_TURNS: u64 = 3;
/// For an estimate, of each side: its template, and the bytes of a row, indexes included.
const TEMPLATE_S: f64 = 1.5;
const BYTES_PER_ROW: u64 = 100;
/// What a run may add to its copy, its WAL included.
const BYTES_OF_A_RUN: u64 = 32 << 20;

impl Measurement for Purchase {
    fn name() -> &'static str {
        NAME
    }

    fn pieces() -> &'static [Piece] {
        PIECES
    }

    fn only_estimates(&self) -> bool {
        self.common.estimate
    }

    fn estimate(&self) -> Result<Estimate> {
        let sides = self.common.sides.sides.len();
        let runs = self.plan()?.len() * sides * (self.common.rounds + WARM_UP_ROUNDS);
        let size = self.setting().size;
        let template = (size.vendors + size.cards + size.purchases) * BYTES_PER_ROW;
        Ok(Estimate {
            seconds: runs as f64 * (self.seconds + AROUND_A_RUN_S) + sides as f64 * TEMPLATE_S,
            bytes: sides as u64 * (2 * template + BYTES_OF_A_RUN),
        })
    }

    fn run(&self) -> Result<bool> {
        let cells = self.session()?.finish()?;
        Ok(at_least(self.minimum, &cells))
    }
}

impl Purchase {
    /// Measures every cell of the plan, in a session that is not at its end yet.
    ///
    /// # Errors
    /// Of the first run that failed.
    pub fn session(&self) -> Result<Place> {
        let plan = self.plan()?;
        if self.until_percent.is_some() && self.common.rounds <= LEAST_ROUNDS_UNTIL {
            return Err(Error::invalid(format!(
            "--until-percent: no cell ends before its round {LEAST_ROUNDS_UNTIL}; name more with --rounds, the most that a cell may take"
        )));
        }
        // Peers run some of the standard cells again: those results are not the workload's.
        let peers = self.common.sides.has_peers();
        let mut place = Place::open(if peers { "peers" } else { "purchase" }, &self.common)?;
        let (setting, seed, limit) = (self.setting(), self.common.seed, self.limit());
        let turn_s = self.turn_ms.map(|ms| ms as f64 / 1e3);
        let prepare = |side: &Side| {
            Fixture::prepare(side.clone(), setting, seed, place.path().join(&side.name))
        };
        let fixtures: Vec<Fixture> = place.sides.iter().map(prepare).collect::<Result<_>>()?;
        let conditions = Conditions {
            sides: fixtures.iter().map(Fixture::describe).collect::<Result<_>>()?,
            warm_up_rounds: WARM_UP_ROUNDS,
            limit: Some(limit),
            until_percent: self.until_percent,
            parameters: self.turn_ms.map(|ms| ("turn_ms".into(), ms.into())).into_iter().collect(),
            setting: Some(setting),
            size: None,
        };
        let rounds = place.begin(conditions, plan.len())?;
        let workload = Workload { session: rounds.session.clone(), fixtures, setting, limit, seed };
        for cell in plan {
            let name = format!("{cell}{}", setting.suffix());
            let mut round: Vec<Option<(Run, Histogram)>> = Vec::new();
            place.measure(&rounds, &name, |turn, sink| {
                let (run, latency) = match turn_s {
                    None => workload.run(cell, turn)?,
                    Some(turn_s) => {
                        if turn.place == 0 {
                            let all = workload.round(cell, turn.round, self.seconds, turn_s)?;
                            round = all.into_iter().map(Some).collect();
                        }
                        let one = round.get_mut(turn.side).and_then(Option::take);
                        one.ok_or_else(|| Error::invalid("a side that is twice in a round"))?
                    }
                };
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
}

/// What all cells of a session share.
#[derive(Debug)]
pub struct Workload {
    pub session: String,
    pub fixtures: Vec<Fixture>,
    pub setting: Setting,
    pub limit: Limit,
    pub seed: u64,
}

impl Workload {
    /// One run on a fresh copy, and the latency of all its operations.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a worker failed, or if a purchase that was acknowledged is not there.
    pub fn run(&self, cell: Cell, turn: Turn) -> Result<(Run, Histogram)> {
        let fixture = &self.fixtures[turn.side];
        let (path, dirty_kib) = fixture.copy()?;
        let orders = self.orders(cell, turn, &path, None);
        let archiver = fixture.archiver(&path)?;
        let mut load = Load::begin();
        let reports = pool::together(&orders, fixture.home(), || load = Load::begin())?;
        let load = load.end();
        fixture.end(archiver)?;
        let ran = ran(reports)?;
        let wall_s = match self.limit {
            Limit::Seconds(seconds) => seconds,
            Limit::Operations(_) => longest(&ran),
        };
        let shares = load.shares(ran.iter().map(|one| one.cpu_s).sum());
        self.account(cell, turn, &path, &ran, Around { dirty_kib, wall_s, shares })
    }

    /// A round: one run of each side on its fresh copy, in turns of `turn_s`, and the latencies of all their operations. What
    /// others took of the machine is that of the round.
    ///
    /// # Errors
    /// As [`Workload::run`].
    pub fn round(
        &self,
        cell: Cell,
        round: usize,
        seconds: f64,
        turn_s: f64,
    ) -> Result<Vec<(Run, Histogram)>> {
        let is_archived = |fixture: &Fixture| fixture.side.recovery == Recovery::Archived;
        if self.fixtures.iter().any(is_archived) {
            return Err(Error::invalid("--turn-ms: an archiver works in the turns of others, too"));
        }
        let mut copies = Vec::new();
        for fixture in &self.fixtures {
            copies.push(fixture.copy()?);
        }
        // All sides of a round begin with its first turn.
        let turn = |side| Turn { round, place: 0, side };
        let groups: Vec<_> = self
            .fixtures
            .iter()
            .zip(&copies)
            .enumerate()
            .map(|(side, (fixture, (path, _)))| {
                (self.orders(cell, turn(side), path, Some(turn_s)), fixture.home())
            })
            .collect();
        let mut random = Random::of(&[self.seed, round as u64, ORDER_OF_TURNS]);
        let turns = (seconds / turn_s).ceil() as usize;
        let mut load = Load::begin();
        let reports = pool::in_turns(&groups, turns, &mut random, || load = Load::begin())?;
        let load = load.end();
        let sides: Vec<Vec<Ran>> = reports.into_iter().map(ran).collect::<Result<_>>()?;
        let shares = load.shares(sides.iter().flatten().map(|one| one.cpu_s).sum());
        let of_side = |(side, (ran, (path, dirty_kib))): (usize, (&Vec<Ran>, &(PathBuf, u64)))| {
            let around = Around { dirty_kib: *dirty_kib, wall_s: longest(ran), shares };
            self.account(cell, turn(side), path, ran, around)
        };
        sides.iter().zip(&copies).enumerate().map(of_side).collect()
    }

    /// What the workers of a run are to do.
    fn orders(&self, cell: Cell, turn: Turn, path: &Path, turn_s: Option<f64>) -> Vec<Order> {
        let task = |worker| worker::Run {
            mix: cell.mix,
            synchronous: cell.synchronous,
            limit: self.limit,
            turn_s,
            seed: vec![self.seed, turn.round as u64],
            worker,
        };
        (0..cell.processes as u64)
            .map(|worker| Order {
                side: self.fixtures[turn.side].side.clone(),
                path: path.into(),
                setting: self.setting,
                task: Task::Run(task(worker)),
            })
            .collect()
    }

    /// The record of a run, whose database is checked.
    fn account(
        &self,
        cell: Cell,
        turn: Turn,
        path: &Path,
        ran: &[Ran],
        around: Around,
    ) -> Result<(Run, Histogram)> {
        let fixture = &self.fixtures[turn.side];
        let mut kinds = Operation::ALL.map(|_| Histogram::default());
        for one in ran {
            kinds.iter_mut().zip(&one.latencies).for_each(|(sum, one)| sum.merge_sparse(one));
        }
        let mut all = Histogram::default();
        kinds.iter().for_each(|kind| all.merge(kind));
        let inserted = ran.iter().map(|one| one.committed_inserts).sum();
        let file_bytes_after = fixture.verify(path, inserted)?;

        let operations = all.count() as f64;
        let cpu_s: Option<f64> = ran.iter().map(|one| one.cpu_s).sum();
        let (others_share, stolen_share) = around.shares;
        let run = Run {
            session: self.session.clone(),
            cell: format!("{cell}{}", self.setting.suffix()),
            plan: cell,
            round: turn.round,
            place: turn.place,
            side: fixture.side.name.clone(),
            ops_per_s: operations / around.wall_s,
            all: all.latency(),
            read: kinds[Operation::Read as usize].latency(),
            update: kinds[Operation::Update as usize].latency(),
            insert: kinds[Operation::Insert as usize].latency(),
            cpu_us_per_op: cpu_s.map(|seconds| seconds / operations * 1e6),
            busy: ran.iter().map(|one| one.busy).sum(),
            others_share,
            stolen_share,
            dirty_kib: around.dirty_kib,
            file_bytes_after,
        };
        Ok((run, all))
    }
}

/// What is around a run.
struct Around {
    dirty_kib: u64,
    wall_s: f64,
    /// Of the machine: others' and stolen.
    shares: (f64, f64),
}

fn ran(reports: Vec<Report>) -> Result<Vec<Ran>> {
    let ran = |report| match report {
        Report::Ran(ran) => Ok(ran),
        other => Err(Error::invalid(format!("a run's worker answers {other:?}"))),
    };
    reports.into_iter().map(ran).collect()
}

/// Seconds.
fn longest(ran: &[Ran]) -> f64 {
    ran.iter().map(|one| one.elapsed_s).fold(0.0, f64::max)
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

//! Opening: from the start of a process to its first row, loading of the extension included.

use std::time::Instant;

use crate::arguments::OpeningOptions;
use crate::blocks::{Sample, Turn};
use crate::error::{Error, Result};
use crate::fixture::Fixture;
use crate::machine::Load;
use crate::plan::{self, Setting};
use crate::pool;
use crate::record::{Record, Work};
use crate::scenario::purchase::Size;
use crate::session::{Conditions, Place};
use crate::worker::{Order, Report, Task};

/// Small: what is opened is all in memory.
const SIZE: Size = Size { vendors: 100, cards: 1000, purchases: 1000 };
const WARM_UP_ROUNDS: usize = 1;
/// For an estimate.
const OPENING_S: f64 = 0.01;

/// # Errors
/// Of the first run that failed.
pub fn measure(options: &OpeningOptions) -> Result<bool> {
    let common = &options.common;
    if common.estimate {
        let runs = common.sides.sides.len() * (common.rounds + WARM_UP_ROUNDS);
        println!("{:.0}", runs as f64 * options.opens as f64 * OPENING_S + 5.0);
        return Ok(true);
    }
    let mut place = Place::open("opening", common)?;
    let setting = Setting { size: SIZE, ..plan::STANDARD };
    let fixtures: Vec<Fixture> = place
        .sides
        .iter()
        .map(|side| {
            let dir = place.path().join(&side.name);
            Fixture::prepare(side.clone(), setting, common.seed, dir)
        })
        .collect::<Result<_>>()?;
    let conditions = Conditions {
        sides: fixtures.iter().map(Fixture::describe).collect::<Result<_>>()?,
        warm_up_rounds: WARM_UP_ROUNDS,
        limit: None,
        setting: Some(setting),
        size: Some(options.opens),
    };
    let rounds = place.begin(conditions, 1)?;
    let cell = "process-to-first-row";
    place.measure(&rounds, cell, |turn, sink| {
        let fixture = &fixtures[turn.side];
        let (path, dirty_kib) = fixture.copy()?;
        let order = Order { side: fixture.side.clone(), path, setting, task: Task::FirstRow };
        let (load, start) = (Load::begin(), Instant::now());
        let mut cpu_s = Some(0.0);
        for _ in 0..options.opens {
            let report = pool::single(&order, fixture.home())?;
            let Report::Worked(worked) = report else {
                return Err(Error::invalid(format!("an opening answers {report:?}")));
            };
            cpu_s = cpu_s.zip(worked.cpu_s).map(|(sum, one)| sum + one);
        }
        let opens = options.opens as f64;
        let wall_s = start.elapsed().as_secs_f64() / opens;
        let (others_share, stolen_share) = load.end().shares(cpu_s);
        let Turn { round, place, .. } = turn;
        let work = Work {
            session: rounds.session.clone(),
            cell: cell.into(),
            round,
            place,
            side: fixture.side.name.clone(),
            wall_s,
            cpu_s: cpu_s.map(|seconds| seconds / opens),
            read_bytes: None,
            others_share,
            stolen_share,
            dirty_kib,
        };
        sink.write(&Record::Work(&work))?;
        Ok(Sample::of(&work))
    })?;
    place.finish()?;
    Ok(true)
}

//! Opening: from the start of a process to its first row, loading of the extension included.

use std::time::Instant;

use clap::Args;
use pellucid_lab_measure::common::Common;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::machine::{children_cpu_seconds, own_cpu_seconds, Load};
use pellucid_lab_measure::session::{Conditions, Place};
use pellucid_lab_measure::work::Done;
use pellucid_lab_report::plan::{self, Setting, Size};

use crate::estimate::Estimate;
use crate::fixture::Fixture;
use crate::measurement::Measurement;
use crate::piece::{Piece, Scaled};
use crate::pool;
use crate::worker::{Order, Report, Task};

/// Names the command and the sessions.
const NAME: &str = "opening";
/// What `lab full` runs of it.
const PIECES: &[Piece] =
    &[Piece::new(NAME, NAME, Scaled::Opens(20), &["--sides", "plain,again,sealed"])];
/// Small: what is opened is all in memory.
const SIZE: Size = Size { vendors: 100, cards: 1000, purchases: 1000 };
const WARM_UP_ROUNDS: usize = 1;
/// For an estimate.
const OPENING_S: f64 = 0.01;
const BYTES_OF_A_SIDE: u64 = 2 << 20;

/// From the start of a process to its first row.
#[derive(Debug, Clone, Args)]
pub struct Opening {
    #[command(flatten)]
    pub common: Common,
    /// Openings of a run, one after the other.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub opens: u64,
}

impl Measurement for Opening {
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
        let runs = sides * (self.common.rounds + WARM_UP_ROUNDS);
        Ok(Estimate {
            seconds: runs as f64 * self.opens as f64 * OPENING_S + 5.0,
            bytes: sides as u64 * BYTES_OF_A_SIDE,
        })
    }

    fn run(&self) -> Result<bool> {
        let common = &self.common;
        let mut place = Place::open(NAME, common)?;
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
            size: Some(self.opens),
            ..Conditions::default()
        };
        let rounds = place.begin(conditions, 1)?;
        place.measure_work(&rounds, "process-to-first-row", |side| {
            let fixture = &fixtures[side];
            let (path, dirty_kib) = fixture.copy()?;
            let order = Order { side: fixture.side.clone(), path, setting, task: Task::FirstRow };
            let (load, children_s, own_s) =
                (Load::begin(), children_cpu_seconds(), own_cpu_seconds());
            let start = Instant::now();
            for _ in 0..self.opens {
                let report = pool::single(&order, fixture.home())?;
                let Report::Worked(_) = report else {
                    return Err(Error::invalid(format!("an opening answers {report:?}")));
                };
            }
            let (opens, wall_s) = (self.opens as f64, start.elapsed().as_secs_f64());
            let since = |end: Option<f64>, start| {
                end.zip(start).map(|(end, start): (f64, f64)| end - start)
            };
            let cpu_s = since(children_cpu_seconds(), children_s);
            // The lab starts them and reads what they say: no one else's time either.
            let all_cpu_s =
                cpu_s.zip(since(own_cpu_seconds(), own_s)).map(|(one, other)| one + other);
            Ok(Done {
                operations: 1.0,
                wall_s: wall_s / opens,
                cpu_s: cpu_s.map(|seconds| seconds / opens),
                read_bytes: None,
                shares: load.end().shares(all_cpu_s),
                dirty_kib,
            })
        })?;
        place.finish()?;
        Ok(true)
    }
}

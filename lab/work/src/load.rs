//! Encryption switched on and off, keys and algorithms changed, while four writers and four readers go on.
//!
//! Every side has the same database under the same load, and its clients stay connected from the first phase to the last.
//! Where the sealed side scans, the plain one has each page rewritten through `sqlite_dbpage` at the same pace: what an
//! application notices of that, it would notice of any rewrite. A phase runs on one side after the other, in an order drawn
//! from the seed. First encryption and the way back rebuild the file and need it for themselves; they are timed without a
//! load.
//!
//! Backups are measured in the same way: of a plain and of a sealed database, packed and not.

mod arm;
mod options;

use std::path::{Path, PathBuf};

use pellucid_lab_measure::blocks::shuffled;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::room;
use pellucid_lab_measure::random::Random;
use pellucid_lab_measure::session::{Conditions, Place};
use pellucid_lab_measure::side::{Kind, Side};
use pellucid_lab_report::plan::{self, Setting};
use pellucid_lab_report::record::{Account, Alone, Phase};

use crate::estimate::Estimate;
use crate::pool;
use crate::scenario::step::Step;
use crate::worker::{Order, Report, Task};

use arm::Arm;

pub use options::LoadOptions;

const MIB: u64 = 1 << 20;
const MB: f64 = 1e6;
/// Beside the databases: the copies of a first encryption, WAL and journal, what a backup is restored to.
const FILES_BESIDE: u64 = 3;
/// For an estimate: MB/s of filling, copying, encrypting and checking together, and of a scan under load.
const MB_PER_S_AROUND: f64 = 30.0;
const MB_PER_S_OF_SCAN: f64 = 45.0;

/// Measures `steps` on every side.
///
/// # Errors
/// Of the first thing that went wrong; failed statements of the load are no error.
pub fn measure(scenario: &'static str, options: &LoadOptions, steps: &[Step]) -> Result<bool> {
    let mut common = options.common.clone();
    // Each phase is once on each side.
    common.rounds = 1;
    let estimate = estimate(options, steps);
    let mut place = Place::open(scenario, &common)?;
    if !matches!(place.sides.first(), Some(Side { kind: Kind::Plain, .. })) {
        return Err(Error::invalid(format!("{scenario}: the first side is the control, plain")));
    }
    let bytes = options.size_mib * MIB;
    room(place.path(), estimate.bytes)?;
    let setting = Setting { journal: options.journal, ..plan::STANDARD };

    let sides = place.sides.clone();
    let (template, orders) = fill(&sides[0], setting, bytes, common.seed, place.path())?;
    let sealed = sides.iter().find(|side| matches!(side.kind, Kind::Sealed { .. }));
    let (mut arms, mut alone) = (Vec::new(), Vec::new());
    for side in &sides {
        let dir = place.path().join(&side.name);
        let (arm, noted) =
            Arm::prepare(side.clone(), sealed, steps, (setting, orders), &template, dir)?;
        arms.push(arm);
        alone.extend(noted);
    }
    std::fs::remove_file(&template).map_err(Error::io(template.display().to_string()))?;
    let conditions = Conditions {
        sides: arms.iter().map(|arm| arm.describe(steps)).collect::<Result<_>>()?,
        warm_up_rounds: 0,
        limit: None,
        setting: Some(setting),
        size: Some(options.size_mib),
        ..Conditions::default()
    };
    let session = place.begin(conditions, steps.len())?.session;
    alone
        .into_iter()
        .try_for_each(|alone| place.alone(Alone { session: session.clone(), ..alone }))?;

    for arm in &mut arms {
        arm.employ(&options.tasks(orders))?;
    }
    for (number, step) in steps.iter().enumerate() {
        let order = shuffled(arms.len(), &mut Random::of(&[common.seed, number as u64]));
        for (drawn, arm) in order.into_iter().enumerate() {
            let phase = arms[arm].run(step, options)?;
            place.phase(Phase { session: session.clone(), place: drawn, ..phase })?;
        }
    }
    for arm in arms {
        let (account, noted) = arm.account(&sides[0], orders)?;
        noted
            .into_iter()
            .try_for_each(|alone| place.alone(Alone { session: session.clone(), ..alone }))?;
        place.account(Account { session: session.clone(), ..account })?;
    }
    place.finish()?;
    Ok(true)
}

/// What the phases will take.
pub fn estimate(options: &LoadOptions, steps: &[Step]) -> Estimate {
    let sides = options.common.sides.sides.len();
    let quiet = steps.iter().filter(|step| matches!(step, Step::Quiet(_))).count();
    // Two of the others do one scan between them.
    let scans = steps.len() - quiet - usize::from(steps.contains(&Step::Resume));
    let megabytes = options.size_mib as f64 * MIB as f64 / MB;
    let around = megabytes / MB_PER_S_AROUND;
    let side =
        quiet as f64 * options.quiet_s + around + scans as f64 * megabytes / MB_PER_S_OF_SCAN;
    // Every side has its database and, where backups are made, its media.
    let of_side = if steps.contains(&Step::Encrypt) { 1 } else { 2 };
    Estimate {
        seconds: sides as f64 * side,
        bytes: (of_side * sides as u64 + FILES_BESIDE) * options.size_mib * MIB,
    }
}

/// The plain database that every side gets a copy of, and its orders.
fn fill(
    side: &Side,
    setting: Setting,
    bytes: u64,
    seed: u64,
    dir: &Path,
) -> Result<(PathBuf, u64)> {
    let path = dir.join("template.db");
    let task = Task::PrepareApplication { bytes, seed };
    match pool::single(&Order { side: side.clone(), path: path.clone(), setting, task }, dir)? {
        Report::Rows { rows, .. } => Ok((path, rows)),
        other => Err(Error::invalid(format!("the new database answers {other:?}"))),
    }
}

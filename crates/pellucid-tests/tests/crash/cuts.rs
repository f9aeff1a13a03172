//! Power cuts: a workload is recorded, and the power goes at each of its events, in several ways each.

use std::fmt::Debug;
use std::ops::RangeBounds;
use std::path::Path;

use pellucid_engine::audit::{audit, Options};

use crate::bench::Bench;
use crate::bounds::{is_unprotected, Bounds};
use crate::chained::{After, Chained};
use crate::disk::{Disk, Image, Loss, Syncs};
use crate::rows::{self, Wrong};
use crate::scans;
use crate::scenario::{Level, Mode, Over, Scenario, State, Step, Theme};
use crate::tally::Tally;
use crate::trace::Trace;
use crate::watch;
use crate::work::{open, Work};
use crate::Random;

/// How a run goes about it.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub steps: usize,
    /// Every event of so many is a cut; which ones, the seed says.
    pub every: usize,
    /// Images for each cut, besides the two where nothing and where everything is lost.
    pub images: u64,
    /// One of so many images is recovered under a record of its own, and the power cut again.
    pub again: u64,
    pub syncs: Syncs,
    /// Only this cut, and this image of it.
    pub only: Option<(usize, u64)>,
}

/// A recorded workload: what happened, and the state after each commit.
pub struct Recorded {
    pub trace: Trace,
    pub states: Vec<State>,
    pub chained: Chained,
}

/// Runs the steps; each must succeed.
pub fn record(bench: &Bench, scenario: Scenario, steps: &[Step]) -> Recorded {
    let directory = bench.fresh();
    bench.settle(&scenario);
    watch::begin(&directory);
    let mut work = Work::new(scenario, &directory, None);
    for (number, step) in steps.iter().enumerate() {
        work.step(step)
            .unwrap_or_else(|error| panic!("{scenario}, step {number} {step:?}: {error:?}"));
    }
    work.close();
    Recorded { trace: watch::end(), states: work.history, chained: work.chained }
}

/// Records a scenario and cuts its power everywhere.
pub fn cut(bench: &Bench, scenario: Scenario, plan: &Plan) -> Tally {
    let steps = steps_for(&scenario, plan.steps);
    let recorded = record(bench, scenario, &steps);
    let mut tally = Tally::default();
    let bounds = Bounds::new(scenario, &recorded);
    cut_recorded(bench, plan, &recorded, (0, bounds), &mut tally, "");
    tally
}

/// Without powersafe overwrite SQLite pads the WAL to a whole sector at each commit; after a cut the padding
/// may be gone, and recovery goes on in the sector that the last commit ends in. A second cut there takes
/// that commit along, with plain SQLite too.
fn loses_twice(scenario: &Scenario) -> bool {
    !scenario.powersafe
}

/// Killed before it synced the end of its journal, plain SQLite goes on over that journal in PERSIST mode; a
/// cut may bring the old header back over a part of the old records, in FULL as well.
fn writes_over_an_unsettled_end(scenario: &Scenario) -> bool {
    scenario.over == Over::Plain && scenario.mode == Mode::Persist
}

/// Without a journal on disk only whole commits can be asked for.
fn steps_for(scenario: &Scenario, count: usize) -> Vec<Step> {
    let mut steps = scenario.steps(count);
    if is_unprotected(scenario) {
        steps.retain(|step| matches!(step, Step::Commit { .. } | Step::Reopen));
    }
    steps
}

/// Cuts at the events from `start` on, where the bounds are known.
fn cut_recorded(
    bench: &Bench,
    plan: &Plan,
    recorded: &Recorded,
    (start, mut bounds): (usize, Bounds),
    tally: &mut Tally,
    before: &str,
) {
    let scenario = bounds.scenario;
    let mut disk = Disk::new(&recorded.trace, plan.syncs);
    disk.page_bytes = scenario.page_bytes;
    disk.powersafe = scenario.powersafe;
    disk.sealed = scenario.over == Over::Sealed;
    for (at, event) in recorded.trace.events.iter().enumerate() {
        disk.apply(event);
        if at < start {
            continue;
        }
        bounds.follow(event, &recorded.trace);
        let chosen = match plan.only {
            Some((cut, _)) if before.is_empty() => cut == at,
            _ => (at + scenario.seed as usize) % plan.every == 0,
        };
        if !chosen {
            continue;
        }
        if is_unprotected(&scenario) && bounds.begun != bounds.acknowledged {
            continue;
        }
        for number in 0..plan.images + 2 {
            if plan.only.is_some_and(|(_, image)| before.is_empty() && image != number) {
                continue;
            }
            // A settled disk has one image.
            if number > 0 && disk.is_settled() {
                break;
            }
            let mut random = Random(scenario.seed ^ (at as u64) << 20 ^ number << 52);
            let loss = match number {
                0 => Loss::Nothing,
                1 => Loss::Everything,
                _ => Loss::draw(&mut random),
            };
            if scenario.level == Level::Off && loss != Loss::Nothing {
                break;
            }
            let image = disk.image(loss, &mut random);
            if plan.only.is_some() && before.is_empty() {
                explain(&recorded.trace, at, &image);
            }
            let name = format!("{before}{scenario}, cut {at}, image {number} ({loss:?})");
            let twice = plan.again > 0
                && before.is_empty()
                && !loses_twice(&scenario)
                && !(loss == Loss::Nothing && writes_over_an_unsettled_end(&scenario))
                && random.below(plan.again) == 0;
            let allowed = bounds.least(loss)..=bounds.begun;
            for class in &image.hit {
                tally.lost_from.add(*class);
            }
            tally.images += 1;
            let is_state = |number, found: &State| recorded.states.get(number) == Some(found);
            check_alarm(bench, &scenario, &image, false, &name, tally);
            judge(bench, &scenario, &image, allowed, is_state, &name, tally);
            let after = After { chained: &recorded.chained, at, begun: bounds.begun };
            after.judge(bench, &scenario, &image, &name, tally);
            if twice {
                let cut =
                    Cut { image: &image, bounds, recorded, at, killed: loss == Loss::Nothing };
                cut_recovery(bench, plan, &cut, &name, tally);
            }
        }
    }
}

/// What led to one image, for whoever looks into it.
fn explain(trace: &Trace, at: usize, image: &Image) {
    trace.explain(at.saturating_sub(60), at + 1);
    for (name, content) in &image.files {
        println!("left: {name}, {} bytes", content.len());
    }
    println!("lost from: {:?}", image.hit);
}

/// A first cut, for a second one.
struct Cut<'a> {
    image: &'a Image,
    bounds: Bounds,
    recorded: &'a Recorded,
    at: usize,
    /// It was no power cut: what the process wrote is in the system's memory, synced or not.
    killed: bool,
}

/// The power goes a second time, or for the first time after the process was killed, while SQLite recovers
/// and goes on.
fn cut_recovery(bench: &Bench, plan: &Plan, cut: &Cut, name: &str, tally: &mut Tally) {
    let scenario = cut.bounds.scenario;
    let directory = bench.lay(cut.image);
    // Opened once to know what it holds.
    let Ok(connection) = open(&scenario, &directory.join("a.db"), disk_is_sealed(&scenario)) else {
        return;
    };
    let Ok(found) = rows::read(&connection, "main", scenario.page_bytes) else { return };
    drop(connection);
    let directory = bench.lay(cut.image);
    watch::begin(&directory);
    let mut work = Work::new(scenario, &directory, found.clone());
    let number = work.begun;
    let mut follow_up = vec![Step::Commit { changes: vec![(1, 2000), (3, 0)], spill: true }];
    match scenario.theme {
        Theme::Protectors if number > 0 => follow_up.insert(0, Step::AddProtector),
        Theme::Versions if number > 0 => {
            follow_up.extend([Step::Version(2), Step::Version(1), Step::Version(2)]);
        }
        Theme::LogChain => {
            if let Some(chained) = cut.recorded.chained.before_cut(cut.at, cut.killed) {
                work.chained = chained;
                follow_up.extend([Step::LogBackup, Step::Checkpoint("TRUNCATE")]);
                // Whoever comes first recovers the log.
                if cut.at % 2 == 0 {
                    follow_up.insert(0, Step::LogBackup);
                }
            }
        }
        theme if theme.scans() => follow_up.push(Step::Scan { commits: Vec::new(), stop: None }),
        Theme::Encrypt if work.step(&follow_up[0]).is_ok() => follow_up = vec![Step::Encrypt],
        Theme::Decrypt if work.step(&follow_up[0]).is_ok() => follow_up = vec![Step::Decrypt],
        _ => {}
    }
    for step in &follow_up {
        // What is converted already cannot be converted again.
        if let Err(error) = work.step(step) {
            if !matches!(step, Step::Encrypt | Step::Decrypt) {
                tally.refused += 1;
                tally.find(format!("REFUSED {name}: after recovery {step:?}: {error:?}"));
            }
        }
    }
    work.close();
    let second = watch::end();
    let mut states = cut.recorded.states[..=number].to_vec();
    states.push(work.candidates[0].clone());
    let plan = Plan { again: 0, ..*plan };
    if plan.only.is_some() {
        second.explain(0, 40);
    }
    let (trace, start) = match cut.killed {
        true => (cut.recorded.trace.up_to(cut.at).and_then(&second), cut.at + 1),
        false => (second, 0),
    };
    let recorded = Recorded { trace, states, chained: work.chained };
    let mut bounds = Bounds::from(scenario, number);
    if cut.killed {
        bounds.floor = cut.bounds.floor.min(number);
    }
    cut_recorded(bench, &plan, &recorded, (start, bounds), tally, &format!("{name}, then "));
}

fn disk_is_sealed(scenario: &Scenario) -> bool {
    scenario.over == Over::Sealed && scenario.theme != Theme::Encrypt
}

/// Opens an image, recovers, proves every row, commits once more. The state found has to be one, as `is_state` says of it
/// and its number, and of the numbers `allowed`.
pub fn judge(
    bench: &Bench,
    scenario: &Scenario,
    image: &Image,
    allowed: impl RangeBounds<usize> + Debug,
    is_state: impl Fn(usize, &State) -> bool,
    name: &str,
    tally: &mut Tally,
) {
    let directory = bench.lay(image);
    match look(scenario, &directory) {
        Ok(Found::State(found)) => {
            let number = found.as_ref().map_or(0, |rows| rows.get(&0).map_or(0, |n| *n as usize));
            if !is_state(number, &found) {
                tally.mixed += 1;
                tally.find(format!("MIXED {name}: says {number}, and is not that state"));
            } else if !allowed.contains(&number) {
                tally.lost += 1;
                tally.find(format!("LOST {name}: state {number}, allowed {allowed:?}"));
            }
        }
        other => tally.blame(name, other),
    }
}

/// Damage is no crash's doing where each commit is synced, and `check` does not say so. Of a commit that had failed after it was
/// written whole it may say that it may be lost: SQLite has taken it back, and a cut takes that back.
pub fn check_alarm(
    bench: &Bench,
    scenario: &Scenario,
    image: &Image,
    a_commit_failed: bool,
    name: &str,
    tally: &mut Tally,
) {
    // A scan syncs no commit by itself (`synchronous=NORMAL`).
    let synced = matches!(scenario.level, Level::Full | Level::Extra) && !scenario.theme.scans();
    if scenario.mode != Mode::Wal || !disk_is_sealed(scenario) || !synced {
        return;
    }
    let may_be =
        |what: &str| what.contains("or a crash took it") || what.contains("or a commit failed");
    let found = alarm(&bench.lay(image));
    if let Some(what) = found.filter(|what| !(a_commit_failed && may_be(what))) {
        tally.mixed += 1;
        tally.find(format!("ALARM {name}: {what}"));
    }
}

/// What `check` calls damaged of the log.
fn alarm(directory: &Path) -> Option<String> {
    let database = directory.join("a.db");
    let has_log = std::fs::metadata(directory.join("a.db-wal")).is_ok_and(|log| log.len() > 32);
    if !has_log || !database.exists() {
        return None;
    }
    let options = Options { physical_only: true, cores: 1 };
    let found = audit(&database, options, &mut |_, _, _| ()).ok()?;
    (!found.damaged_frames.is_empty()).then(|| format!("{:?}", found.damaged_frames))
}

/// What an image holds.
#[derive(Debug)]
pub enum Found {
    State(State),
    Damaged(String),
}

fn look(scenario: &Scenario, directory: &Path) -> Result<Found, Wrong> {
    let scale = scenario.page_bytes;
    let connection = open(scenario, &directory.join("a.db"), disk_is_sealed(scenario))?;
    connection.execute_batch("PRAGMA synchronous=OFF")?;
    let found = rows::read(&connection, "main", scale)?;
    if scenario.theme == Theme::Pair {
        let beside = rows::read(&connection, "b", scale)?;
        if beside != found {
            return Ok(Found::Damaged("the two databases are at different states".into()));
        }
    }
    if let Some(what) = rows::damage(&connection, "main")? {
        return Ok(Found::Damaged(what));
    }
    // It can be written to.
    connection.execute_batch("BEGIN IMMEDIATE")?;
    rows::create(&connection, "main")?;
    rows::change(&connection, "main", (999, 1), scale)?;
    connection.execute_batch("COMMIT")?;
    let mut expected = found.clone().unwrap_or_default();
    expected.insert(999, 1);
    if rows::read(&connection, "main", scale)? != Some(expected) {
        return Ok(Found::Damaged("a commit after recovery changed something else".into()));
    }
    if let Some(what) = rows::damage(&connection, "main")? {
        return Ok(Found::Damaged(format!("after a commit: {what}")));
    }
    if let (true, Some(rows)) = (scenario.theme.scans(), &found) {
        drop(connection);
        let mut rows = rows.clone();
        rows.insert(999, 1);
        if let Some(other) = scans::go_on(scenario, directory, &Some(rows))? {
            return Ok(other);
        }
    }
    Ok(Found::State(found))
}

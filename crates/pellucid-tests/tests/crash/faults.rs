//! Faults: a workload is run again and again, each time with another of its calls failing.
//!
//! Whatever fails, it is told; once it works again so does the same connection; no commit that was
//! acknowledged is missing, neither then nor after a power cut at the moment of the fault.

use crate::bench::Bench;
use crate::bounds::Bounds;
use crate::class::{Class, Role};
use crate::cuts::{check_alarm, judge};
use crate::disk::{Disk, Image, Loss, Syncs};
use crate::memory;
use crate::rows;
use crate::scenario::{Mode, Over, Scenario, State, Step, Theme};
use crate::tally::Tally;
use crate::watch::{self, Call, Fault, Kind, Struck};
use crate::work::{open, Failed, Work};
use crate::Random;

/// What fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Call(Kind),
    Allocation,
}

impl What {
    pub const ALL: [Self; 5] = [
        Self::Call(Kind::ALL[0]),
        Self::Call(Kind::ALL[1]),
        Self::Call(Kind::ALL[2]),
        Self::Call(Kind::ALL[3]),
        Self::Allocation,
    ];
}

/// One injection.
#[derive(Debug, Clone, Copy)]
pub struct Injection {
    pub what: What,
    pub at: u64,
    pub persistent: bool,
}

/// A database to begin with: its files, and its state.
pub struct Begin {
    image: Image,
    state: State,
}

/// The database after its first commit.
pub fn begin(bench: &Bench, scenario: Scenario) -> Begin {
    let directory = bench.fresh();
    bench.settle(&scenario);
    watch::begin(&directory);
    let mut work = Work::new(scenario, &directory, None);
    work.step(&scenario.steps(1)[0]).unwrap();
    work.close();
    let state = work.candidates[0].clone();
    let trace = watch::end();
    let mut disk = Disk::new(&trace, Syncs::All);
    trace.events.iter().for_each(|event| disk.apply(event));
    Begin { image: disk.image(Loss::Nothing, &mut Random(0)), state }
}

/// The steps under fault.
pub fn steps(scenario: &Scenario) -> Vec<Step> {
    let small = |version| Step::Commit { changes: vec![(2, version), (5, version)], spill: false };
    let large = |version| Step::Commit {
        changes: (1..=12).map(|id| (id, if id == 4 { 0 } else { version })).collect(),
        spill: true,
    };
    let mut steps = vec![small(10)];
    match scenario.theme {
        Theme::Encrypt => steps.push(Step::Encrypt),
        Theme::Decrypt => steps.push(Step::Decrypt),
        Theme::Protectors => steps.extend([Step::AddProtector, Step::DropProtector]),
        Theme::Versions => steps.extend([Step::Version(2), Step::Version(1)]),
        Theme::Rebuild => {
            steps.extend([Step::Vacuum, Step::PageSize(512), Step::Journal(Mode::Wal)]);
            steps.extend([small(11), Step::Journal(Mode::Persist)]);
        }
        _ => {
            steps.push(large(11));
            if scenario.mode != Mode::Off {
                let changes: Vec<_> = (1..=16).map(|id| (id, 12)).collect();
                steps.extend([Step::TakenBack(changes.clone()), Step::Savepoint(changes)]);
            }
            steps.push(Step::Temporary);
            if scenario.mode == Mode::Wal {
                steps.extend([
                    Step::Checkpoint("RESTART"),
                    large(13),
                    Step::Checkpoint("TRUNCATE"),
                ]);
            }
            steps.push(Step::Reopen);
        }
    }
    steps.push(small(14));
    steps
}

/// Makes one injection; false if the workload has no such call any more.
pub fn inject(
    bench: &Bench,
    scenario: Scenario,
    begin: &Begin,
    injection: Injection,
    tally: &mut Tally,
) -> bool {
    let mut name = format!("{scenario}, {injection:?}");
    let directory = bench.lay(&begin.image);
    watch::begin(&directory);
    arm(injection);
    let mut work = Work::new(scenario, &directory, begin.state.clone());
    let mut told = Vec::new();
    let talks = std::env::var_os("CRASH_AT").is_some();
    for step in steps(&scenario) {
        let done = work.step(&step);
        if talks {
            println!("event {}: {step:?}: {:?}", watch::events(), done.as_ref().err());
        }
        if let Err(error) = done {
            told.push((step, error));
        }
    }
    let (struck, failed_allocations) = (watch::disarm(), memory::disarm());
    let events = watch::events();
    if struck.first().is_some_and(|first| mixes_in_plain_too(&scenario, first)) {
        work.close();
        watch::end();
        return true;
    }
    let reached = !struck.is_empty() || failed_allocations > 0;
    if reached {
        if let Some(Struck { call, name: file, offset, length }) = struck.first() {
            name += &format!(" ({call:?} {file} {offset}+{length})");
        }
        tally.injections += 1;
        count(&scenario, &struck, failed_allocations, tally);
        check_told(&name, injection, &struck, &told, tally);
    }
    check_next_try(&name, &mut work, &struck, tally);
    let settled = check_whole(&name, &work, tally);
    work.close();
    if let Some(state) = settled {
        check_reopened(&name, &scenario, &directory, &state, tally);
    }
    let trace = watch::end();
    if !reached {
        return false;
    }
    let mut disk = Disk::new(&trace, Syncs::All);
    let mut bounds =
        Bounds::from(scenario, begin.state.as_ref().map_or(0, |rows| rows[&0] as usize));
    for event in &trace.events[..events] {
        disk.apply(event);
        bounds.follow(event, &trace);
    }
    if talks {
        println!("{name}");
        trace.explain(0, trace.events.len());
    }
    let commits =
        |step: &Step| matches!(step, Step::Commit { .. } | Step::TakenBack(_) | Step::Savepoint(_));
    let a_commit_failed = told.iter().any(|(step, _)| commits(step));
    let mut random = Random(injection.at);
    for loss in [Loss::Everything, Loss::Nothing, Loss::draw(&mut random)] {
        if loss == Loss::Nothing || bounds.promises_anything() {
            let image = disk.image(loss, &mut random);
            let name = format!("{name}, then a power cut ({loss:?})");
            tally.images += 1;
            // A commit that failed may be in or not.
            let is_state = |_, found: &State| work.history.contains(found);
            check_alarm(bench, &scenario, &image, a_commit_failed, &name, tally);
            judge(bench, &scenario, &image, bounds.least(loss).., is_state, &name, tally);
        }
    }
    true
}

/// Where a transaction over two databases in PERSIST mode ends, their journals are cut. If that fails at a rollback,
/// SQLite tells nobody and leaves half of it in one of them, sealed or plain. Its own tests let no call fail there.
fn mixes_in_plain_too(scenario: &Scenario, struck: &Struck) -> bool {
    let pair = scenario.theme == Theme::Pair && scenario.mode == Mode::Persist;
    pair && struck.call == Call::Truncate && struck.name.ends_with("-journal")
}

fn arm(Injection { what, at, persistent }: Injection) {
    match what {
        What::Call(kind) => watch::arm(Fault { kind, at, persistent }),
        What::Allocation => memory::arm(at, persistent),
    }
}

fn count(scenario: &Scenario, struck: &[Struck], failed_allocations: u64, tally: &mut Tally) {
    // A persistent fault is counted where it begins.
    if let Some(first) = struck.first() {
        let role = Role::of(&first.name);
        let sealed = scenario.over == Over::Sealed;
        tally.struck.add(match first.call {
            Call::Open | Call::Unlink | Call::Look => Class::DirectoryEntry,
            Call::Truncate => Class::FileSize,
            _ if role == Role::Index => Class::WalIndex,
            Call::Lock | Call::Map => Class::Lock,
            _ => role.class(sealed, first.offset, first.length, scenario.page_bytes),
        });
    }
    if failed_allocations > 0 {
        tally.struck.add(Class::Memory);
    }
}

/// Codes that blame the file for what the system did: NOTADB, AUTH, PERM, MISUSE, INTERNAL. CORRUPT is
/// not among them: the Unix VFS makes it out of EIO from a read (`SQLITE_IOERR_CORRUPTFS`).
const WRONG_CODES: [i32; 5] = [26, 23, 3, 21, 2];

fn check_told(
    name: &str,
    injection: Injection,
    struck: &[Struck],
    told: &[(Step, Failed)],
    tally: &mut Tally,
) {
    // What SQLite repeats by itself is no error: half a read or write, and an interrupted call, but for
    // a sync.
    let repeats = match injection.what {
        What::Call(Kind::Short) => true,
        What::Call(Kind::Interrupted) => !struck.iter().any(|struck| struck.call == Call::Sync),
        _ => false,
    };
    for (step, error) in told {
        if repeats || error.code().is_some_and(|code| WRONG_CODES.contains(&code)) {
            tally.untold += 1;
            tally.find(format!("TOLD {name}: {step:?}: {error:?}"));
        }
    }
}

fn check_next_try(name: &str, work: &mut Work, struck: &[Struck], tally: &mut Tally) {
    if work.is_to_convert() {
        let step = match work.scenario.theme {
            Theme::Encrypt => Step::Encrypt,
            _ => Step::Decrypt,
        };
        if let Err(error) = work.step(&step) {
            tally.untold += 1;
            tally.find(format!("STUCK {name}: the next {step:?}: {error:?}"));
        }
    }
    let step = Step::Commit { changes: vec![(7, 99)], spill: false };
    let mut tried = work.step(&step);
    if tried.is_err() && struck.iter().any(|struck| struck.call == Call::Open) {
        // The Unix VFS opens a file for reading that it cannot open for writing, and SQLite keeps it.
        work.close();
        tried = work.step(&step);
    }
    if let Err(error) = tried {
        tally.untold += 1;
        tally.find(format!("STUCK {name}: the next commit: {error:?}"));
    }
}

/// What the connection that met the fault sees.
fn check_whole(name: &str, work: &Work, tally: &mut Tally) -> Option<State> {
    let connection = work.open_connection()?;
    let scale = work.scenario.page_bytes;
    let found = match rows::read(connection, "main", scale) {
        Ok(found) => found,
        Err(wrong) => {
            tally.refused += 1;
            tally.find(format!("REFUSED {name}: {wrong:?}"));
            return None;
        }
    };
    if !work.candidates.contains(&found) {
        tally.mixed += 1;
        tally.find(format!("MIXED {name}: {found:?} is none of {:?}", work.candidates));
    }
    Some(found)
}

fn check_reopened(
    name: &str,
    scenario: &Scenario,
    directory: &std::path::Path,
    state: &State,
    tally: &mut Tally,
) {
    let sealed = scenario.over == Over::Sealed;
    let looked = open(scenario, &directory.join("a.db"), sealed)
        .map_err(rows::Wrong::from)
        .and_then(|connection| {
            let found = rows::read(&connection, "main", scenario.page_bytes)?;
            let beside = match scenario.theme {
                Theme::Pair => rows::read(&connection, "b", scenario.page_bytes)?,
                _ => found.clone(),
            };
            Ok((found, beside, rows::damage(&connection, "main")?))
        });
    match looked {
        Ok((found, beside, None)) if found == *state && beside == found => {}
        other => {
            tally.mixed += 1;
            tally.find(format!("MIXED {name}: opened again: {other:?}, it was {state:?}"));
        }
    }
}

//! Goal: whatever a power cut or a failing system call does, a sealed database keeps every commit that
//! was acknowledged and durable, and never shows a mixture of two; as plain SQLite does.
//!
//! Method, power cuts: a workload is recorded below the VFS, call by call (`syscalls`, `watch`); then the
//! power goes after each event, and a model of a disk (`disk`) says what is left: of what was not synced
//! any part, in any order, torn between sectors. Each image is opened, every row proved, and the state
//! compared with what was committed (`cuts`). Some images are recovered under a record of their own, and
//! the power goes again. Faults: a workload runs again and again, each time with another of its calls
//! failing, once or from then on (`faults`): the error is told, the next try works, nothing is lost.
//! Plain SQLite goes the same way beside it, as the control.
//!
//! The record is taken at the system calls and not in a VFS, because a conversion writes its copy around
//! the VFS, and because half writes and EINTR are the Unix VFS's to deal with.
//!
//! It can fail: `ignored_syncs_are_noticed` takes one kind of sync after the other away, those between the
//! copies of the header and behind sector 0 among them, as if the shim did not make them.
//!
//! A finding names its scenario, cut and image, or its call. To look at it alone:
//! `CRASH_SCENARIO='Sealed/Rows/Wal/Full/4096/psow/seed 1' CRASH_CUT=12 CRASH_IMAGE=3 cargo test --workspace
//! --test crash -- --ignored --nocapture piece`, with the CRASH_IMAGES it was found
//! with; for a fault CRASH_PART=faults and CRASH_AT, for a chain CRASH_PART=chain. Campaigns: tests/campaigns/crash, crash-log.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bench;
mod bounds;
mod chained;
mod class;
mod cuts;
mod disk;
mod faults;
mod grid;
use pellucid_tests::limits;
mod memory;
mod mended;
use pellucid_tests::random;
mod rows;
mod scans;
mod scenario;
mod syscalls;
mod tally;
mod trace;
mod watch;
mod work;

use bench::Bench;
use class::Role;
use cuts::{cut, Plan};
use disk::Syncs;
use faults::{Injection, What};
use random::Random;
use scenario::{Level, Mode, Over, Scenario, Theme};
use tally::Tally;
use watch::Kind;

const SMALL: Plan =
    Plan { steps: 10, every: 11, images: 1, again: 300, syncs: Syncs::All, only: None };

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// All injections of one scenario, every `stride`-th call, beginning with call `from`.
fn inject_all(
    bench: &Bench,
    scenario: Scenario,
    whats: &[What],
    from: u64,
    stride: usize,
) -> Tally {
    let begin = faults::begin(bench, scenario);
    let mut tally = Tally::default();
    for what in whats {
        // A journal in memory has nothing to come back to once the file cannot be written any more.
        let lasting = scenario.mode != Mode::Memory;
        for persistent in [false, true].into_iter().filter(|persistent| !persistent || lasting) {
            for at in (from..).step_by(stride) {
                let injection = Injection { what: *what, at, persistent };
                if !faults::inject(bench, scenario, &begin, injection, &mut tally) {
                    break;
                }
            }
        }
    }
    tally
}

/// Plain and sealed apart; nothing may be wrong with either.
#[derive(Default)]
struct Both {
    plain: Tally,
    sealed: Tally,
}

impl Both {
    fn add(&mut self, scenario: &Scenario, tally: Tally) {
        match scenario.over {
            Over::Plain => self.plain.merge(tally),
            Over::Sealed => self.sealed.merge(tally),
        }
    }

    fn check(&self) {
        self.plain.table("plain");
        self.sealed.table("sealed");
        assert_eq!(self.plain.findings, [""; 0], "the harness finds fault with plain SQLite");
        assert_eq!(self.sealed.findings, [""; 0]);
    }
}

#[test]
fn power_cuts_leave_what_was_committed() {
    let bench = Bench::new();
    let mut both = Both::default();
    for scenario in grid::scenarios(1) {
        both.add(&scenario, cut(&bench, scenario, &SMALL));
    }
    both.check();
}

/// A scan has many events, and each image of it is scanned to its end.
#[test]
fn power_cuts_over_a_scan_leave_what_goes_on() {
    let bench = Bench::new();
    let mut both = Both::default();
    for scenario in grid::scan_scenarios(1) {
        let plan = Plan { every: 151, again: 100, ..SMALL };
        both.add(&scenario, cut(&bench, scenario, &plan));
    }
    both.check();
}

/// A change of version has few events, and each is a cut.
#[test]
fn power_cuts_over_another_version_leave_one_or_the_other() {
    let bench = Bench::new();
    let mut both = Both::default();
    for scenario in grid::version_scenarios(1) {
        let plan = Plan { every: 3, again: 40, ..SMALL };
        both.add(&scenario, cut(&bench, scenario, &plan));
    }
    both.check();
}

/// Of a chain of log backups each image has every commit that the database has, and says so.
#[test]
fn power_cuts_leave_the_chain_of_log_backups_whole() {
    let bench = Bench::new();
    let mut both = Both::default();
    for scenario in grid::chain_scenarios(1) {
        let plan = Plan { steps: 20, every: 17, again: 40, ..SMALL };
        both.add(&scenario, cut(&bench, scenario, &plan));
    }
    both.check();
}

/// Without powersafe overwrite a write may spoil what lies beside it, synced or not: the last of the frames by which SQLite pads a
/// commit to a sector, in FULL. In NORMAL it pads none, and a write may take the commit before it.
#[test]
fn power_cuts_without_powersafe_overwrite_leave_the_chain_whole() {
    let bench = Bench::new();
    let mut both = Both::default();
    let full = |scenario: &Scenario| scenario.level == Level::Full;
    for scenario in grid::chain_scenarios(1).into_iter().filter(full) {
        let scenario = Scenario { powersafe: false, ..scenario };
        let plan = Plan { steps: 20, every: 7, images: 2, again: 0, ..SMALL };
        both.add(&scenario, cut(&bench, scenario, &plan));
    }
    both.check();
}

/// A process is killed before it has synced the header of a run that has nothing, another one begins the next run, and the power
/// goes: the header of the run before both is on the disk.
#[test]
fn a_run_whose_header_never_came_to_the_disk_leaves_the_chain_whole() {
    let bench = Bench::new();
    let mut both = Both::default();
    let small = |scenario: &Scenario| scenario.level == Level::Full && scenario.page_bytes == 512;
    for scenario in grid::chain_scenarios(4).into_iter().filter(small) {
        let plan = Plan { steps: 20, every: 1, again: 1, only: Some((213, 0)), ..SMALL };
        both.add(&scenario, cut(&bench, scenario, &plan));
    }
    assert!(both.sealed.images > 50, "{} images show nothing", both.sealed.images);
    both.check();
}

/// Each sync that the archive needs is needed, and the chain shows it.
#[test]
fn ignored_syncs_of_the_archive_are_noticed() {
    let bench = Bench::new();
    let broken = [
        Syncs::NoneOf(Role::KeptFrames),
        Syncs::NoneOf(Role::ArchiveState),
        Syncs::NoneOfFolders,
        Syncs::NoneBeforeKeeping,
    ];
    for syncs in broken {
        let mut tally = Tally::default();
        // With a commit before a log backup that nobody has synced.
        for scenario in grid::chain_scenarios(3) {
            if syncs == Syncs::NoneBeforeKeeping && scenario.level == Level::Full {
                continue;
            }
            let plan = Plan { steps: 16, every: 5, images: 2, again: 0, syncs, only: None };
            tally.merge(cut(&bench, scenario, &plan));
            if tally.chain > 0 {
                break;
            }
        }
        println!("{syncs:?}: {} of {} images wrong", tally.chain, tally.images);
        assert!(tally.chain > 0, "{syncs:?} went unnoticed");
    }
}

#[test]
fn faults_are_told_and_pass() {
    const STRIDE: usize = 47;
    let bench = Bench::new();
    let mut both = Both::default();
    for (turn, scenario) in grid::fault_scenarios(1).into_iter().enumerate() {
        let from = (turn * 7 % STRIDE) as u64;
        both.add(&scenario, inject_all(&bench, scenario, &What::ALL, from, STRIDE));
    }
    both.check();
}

#[test]
fn faults_over_another_version_are_told_and_pass() {
    let bench = Bench::new();
    let mut both = Both::default();
    for scenario in grid::version_scenarios(1) {
        both.add(&scenario, inject_all(&bench, scenario, &What::ALL, 0, 23));
    }
    both.check();
}

/// A persistent journal has what an earlier transaction left. A header that a full disk lets be written by half lies over
/// it, and is still a header: what it begins is rolled back.
#[test]
fn a_header_half_written_over_an_earlier_journal_costs_nothing() {
    let bench = Bench::new();
    let mut both = Both::default();
    let begins_as = |scenario: &Scenario| {
        matches!(scenario.theme, Theme::Rows) && matches!(scenario.mode, Mode::Persist)
    };
    for scenario in grid::fault_scenarios(1).into_iter().filter(begins_as) {
        let begin = faults::begin(&bench, scenario);
        let mut tally = Tally::default();
        for at in 0..60 {
            let injection = Injection { what: What::Call(Kind::Full), at, persistent: false };
            faults::inject(&bench, scenario, &begin, injection, &mut tally);
        }
        both.add(&scenario, tally);
    }
    both.check();
}

const SECTOR_0: u64 = 0;
const HEADER_COPY_0: u64 = 2048;

/// Each kind of sync is needed, and the images show it.
#[test]
fn ignored_syncs_are_noticed() {
    let bench = Bench::new();
    let base = Scenario {
        over: Over::Plain,
        mode: Mode::Delete,
        level: Level::Extra,
        page_bytes: 512,
        powersafe: true,
        theme: Theme::Rows,
        seed: 1,
    };
    let wal = Scenario { mode: Mode::Wal, ..base };
    let pair = Scenario { theme: Theme::Pair, ..base };
    let encrypt = Scenario { theme: Theme::Encrypt, ..base };
    let decrypt = Scenario { theme: Theme::Decrypt, ..base };
    let broken = [
        (base, Syncs::NoneOf(Role::Journal), 6),
        (base, Syncs::NoneOf(Role::Main), 6),
        (base, Syncs::NoneOfDirectory, 6),
        (wal, Syncs::NoneOf(Role::Wal), 6),
        (wal, Syncs::NoneOf(Role::Main), 8),
        (pair, Syncs::NoneOf(Role::Super), 5),
        (encrypt, Syncs::NoneOf(Role::Copy), 4),
        (decrypt, Syncs::NoneOf(Role::Copy), 4),
        // Pages of the copy may be there without the sector that tells of them.
        (encrypt, Syncs::NoneAfter(SECTOR_0), 4),
        (decrypt, Syncs::NoneAfter(SECTOR_0), 4),
    ];
    for (scenario, syncs, steps) in broken {
        for over in [Over::Plain, Over::Sealed] {
            let scenario = Scenario { over, ..scenario };
            if over == Over::Plain && !scenario.theme.has_control() {
                continue;
            }
            let plan = Plan { steps, every: 1, images: 6, again: 0, syncs, only: None };
            let tally = cut(&bench, scenario, &plan);
            println!("{scenario}, {syncs:?}: {} of {} images wrong", tally.wrong(), tally.images);
            assert!(tally.wrong() > 0, "{scenario}: {syncs:?} went unnoticed");
        }
    }
    // Copy 0 of the header and copy 1 may be torn together.
    let tally = mended::kill_between_header_copies(&bench, Syncs::NoneAfter(HEADER_COPY_0));
    println!("header copies: {} of {} images wrong", tally.wrong(), tally.images);
    assert!(tally.wrong() > 0, "no sync between the copies of the header went unnoticed");
}

/// A piece of the campaign, or one finding alone.
#[test]
#[ignore = "tests/campaigns/crash runs it"]
fn piece() {
    let bench = Bench::new();
    let seed = number("CRASH_SEED", 1);
    let of = std::env::var("CRASH_SCENARIO").unwrap_or_default();
    let only = std::env::var("CRASH_CUT")
        .is_ok()
        .then(|| (number("CRASH_CUT", 0) as usize, number("CRASH_IMAGE", 0)));
    let plan = Plan {
        steps: number("CRASH_STEPS", 12) as usize,
        every: number("CRASH_EVERY", 1) as usize,
        images: number("CRASH_IMAGES", 2),
        again: number("CRASH_AGAIN", 60),
        syncs: Syncs::All,
        only,
    };
    let part = std::env::var("CRASH_PART").unwrap_or_default();
    let faults = part == "faults";
    let scenarios = match part.as_str() {
        "faults" => grid::fault_scenarios(seed),
        "scans" => grid::scan_scenarios(seed),
        "chain" => grid::chain_scenarios(seed),
        _ => grid::scenarios(seed),
    };
    let mut both = Both::default();
    for scenario in scenarios.into_iter().filter(|one| one.to_string().contains(&of)) {
        let stride = number("CRASH_STRIDE", 1) as usize;
        let tally = match faults {
            true => {
                let from = number("CRASH_AT", seed % stride as u64);
                inject_all(&bench, scenario, &What::ALL, from, stride)
            }
            false => cut(&bench, scenario, &plan),
        };
        println!("{scenario}: {} images, {} injections", tally.images, tally.injections);
        both.add(&scenario, tally);
    }
    let Tally { images, injections, lost, mixed, refused, untold, .. } = both.sealed;
    let control = both.plain.images + both.plain.injections;
    println!("RESULT {images} {injections} {control} {lost} {mixed} {refused} {untold}");
    both.check();
}

//! Goal: a clock that steps, forward or back, by little or by much, loses no commit, and no moment leads to another state than the one
//! that was there: it is the right state, or an error that names the numbers between which it is ambiguous.
//!
//! Method: a child has the clock that a file says (tests/tools/clock.c), and commits at moments of its own choosing: it goes on by
//! microseconds and by minutes, is set back by less than two seconds and by more, and jumps ahead and back again, with checkpoints,
//! closes, log backups and differentials anywhere between. An oracle that knows the moments alone, and nothing of the product,
//! says what each boundary, one microsecond before and behind, has to give. Each is restored and compared.
//!
//! PELLUCID_CLOCKS_SEED (1) and PELLUCID_CLOCKS_COMMITS (60) choose others.

use std::path::PathBuf;
use std::time::Duration;

use pellucid::header::RecoveryModel;
use pellucid::lsn::Lsn;
use pellucid_backup::job::Point;
use pellucid_engine::log_chain::{self, KeptLog};
use pellucid_tests::processes::{child, number, preload, scratch, told, Random};
use rusqlite::Connection;

use super::points::{differential, full, log, open, restored};
use super::Bench;

/// Microseconds since 1970: November 2026.
const BEGIN: u64 = 1_795_000_000_000_000;
const SECOND: u64 = 1_000_000;
/// Of a commit's time, in microseconds.
const UNIT: u64 = 64;

/// The clock of this process.
struct Clock {
    file: PathBuf,
    now: u64,
}

impl Clock {
    fn set(&mut self, micros: u64) {
        self.now = micros;
        // In place: it is mapped.
        let file = std::fs::OpenOptions::new().write(true).open(&self.file).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &micros.to_le_bytes(), 0).unwrap();
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(since.as_micros(), u128::from(micros), "the clock does not obey");
    }

    /// The next moment. Of the tempers the first one never goes back by as much as is marked, the second one seldom.
    fn step(&mut self, random: &mut Random, temper: u64) {
        let by = |random: &mut Random, from: u64, to: u64| from + random.below(to - from);
        let is_large = temper == 2 || temper == 1 && random.below(12u64) == 0;
        let next = match random.below(12u64) {
            // The same moment, the same unit, a step over the unit's end.
            0 => self.now,
            1 => self.now + 1,
            2 | 3 => self.now + by(random, 30, 200),
            4 | 5 => self.now + by(random, 1000, 3 * SECOND),
            6 => self.now + by(random, 60 * SECOND, 4000 * SECOND),
            // Back: hardly, by less than is marked, at the border, by more, by hours.
            7 => self.now - by(random, 1, 3 * UNIT),
            9 if is_large => self.now - by(random, 2 * SECOND - 2 * UNIT, 2 * SECOND + 3 * UNIT),
            10 if is_large => self.now - by(random, 2 * SECOND + 1000, 30 * SECOND),
            11 if is_large => self.now - by(random, 60 * SECOND, 8000 * SECOND),
            _ => self.now - by(random, 1000, 2 * SECOND - 1000),
        };
        self.set(next);
    }
}

/// A commit as the oracle has it: its moment by the rules of docs/design/log-backups.md, and the counter behind it.
#[derive(Debug, Clone, Copy)]
struct Moment {
    time: u64,
    is_set_back: bool,
}

/// What a time has to lead to.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    /// The state behind so many commits.
    State(usize),
    /// An error that names the commit with which the clock had not come there, and the one with which it had again.
    SetBack(usize, usize),
    /// Commits of that moment may be in no log backup yet.
    NotYet,
}

/// `begun` is when the last log backup was.
fn judge(commits: &[Moment], begun: u64, time: u64) -> Wanted {
    if begun < time {
        return Wanted::NotYet;
    }
    let first_later = commits.iter().position(|one| one.time > time).unwrap_or(commits.len());
    let again = commits[first_later..].iter().position(|one| one.time <= time);
    match again {
        Some(behind) => Wanted::SetBack(first_later, first_later + behind),
        None => Wanted::State(first_later),
    }
}

/// The moment that a commit gets, behind one of another time.
fn moment(clock: u64, before: u64) -> Moment {
    let time = clock / UNIT * UNIT;
    let is_set_back = time < before && before - time > 2 * SECOND;
    Moment { time: if is_set_back { time } else { time.max(before) }, is_set_back }
}

fn count(connection: &Connection) -> usize {
    let n: i64 = connection.query_row("SELECT n FROM counter", [], |row| row.get(0)).unwrap();
    n as usize
}

/// The child: its clock is the file's.
pub fn run() {
    let seed = number("PELLUCID_CLOCKS_SEED", 1u64);
    let commits = number("PELLUCID_CLOCKS_COMMITS", 60usize);
    let mut random = Random(seed);
    let mut clock = Clock { file: told("CLOCK_FILE").into(), now: 0 };
    clock.set(BEGIN);
    let bench = Bench::new([512, 4096, 65536][random.below(3usize)]);
    log_chain::set_model(&bench.database(), RecoveryModel::Full).unwrap();
    let mut connection = bench.open();
    let mut media = vec![full(&bench, "full.bak")];
    let (mut moments, mut lsns, mut begun) = (Vec::<Moment>::new(), Vec::<Lsn>::new(), 0);
    while moments.len() < commits {
        match moments.is_empty() {
            // What was before the chain is none of this.
            true => clock.set(BEGIN + SECOND),
            false => clock.step(&mut random, seed % 3),
        }
        connection.execute_batch("UPDATE counter SET n = n + 1").unwrap();
        moments.push(moment(clock.now, moments.last().map_or(0, |one| one.time)));
        match random.below(9u64) {
            0 => connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap(),
            1 => {
                drop(connection);
                connection = bench.open();
            }
            _ => {}
        }
        if random.below(6u64) == 0 || moments.len() == commits {
            if random.below(4u64) == 0 {
                let name = format!("differential-{}.bak", media.len());
                media.push(differential(&bench, &name, &media[0]));
            }
            // The clock may have been set, too, since the commit.
            if random.below(3u64) == 0 {
                clock.step(&mut random, seed % 3);
            }
            let kept = KeptLog::open(&bench.database(), Duration::from_secs(10)).unwrap();
            for one in kept.commits() {
                let wanted = moments[lsns.len()];
                assert_eq!((one.time, one.stepped_back), (wanted.time, wanted.is_set_back));
                lsns.push(one.lsn);
            }
            drop(kept);
            media.push(log(&bench, &format!("log-{}.bak", media.len())));
            begun = clock.now;
        }
    }
    assert_eq!(lsns.len(), commits);
    let to = bench.path("db/restored.db");
    let is = |point: &Point, state: usize| {
        restored(&media, point.clone(), to.clone())
            .unwrap_or_else(|error| panic!("{point}: {error}"));
        assert_eq!(count(&open(&to)), state, "{point}");
    };
    let mut came = [0; 3];
    for (at, lsn) in lsns.iter().enumerate() {
        is(&Point::Lsn(*lsn), at + 1);
        for time in [moments[at].time - 1, moments[at].time, moments[at].time + 1] {
            let point = Point::Time(time);
            let told = |words: &[String]| {
                let error = restored(&media, point.clone(), to.clone()).unwrap_err().to_string();
                assert!(
                    words.iter().all(|word| error.contains(word)),
                    "{point}: {error}, {words:?}"
                );
                assert!(!to.exists());
            };
            match judge(&moments, begun, time) {
                // Behind the snapshot of the full backup, whose commits are none of these.
                Wanted::State(0) => came[0] += 1,
                Wanted::State(state) => {
                    is(&point, state);
                    came[0] += 1;
                }
                Wanted::SetBack(next, again) => {
                    let words = [
                        "the clock was set back".to_owned(),
                        lsns[next].to_string(),
                        lsns[again].to_string(),
                    ];
                    told(&words);
                    came[1] += 1;
                }
                Wanted::NotYet => {
                    told(&["a log backup of now has the rest".to_owned()]);
                    came[2] += 1;
                }
            }
        }
    }
    is(&Point::Last, commits);
    println!("RESULT {seed} {commits} {} {} {}", came[0], came[1], came[2]);
}

#[test]
fn a_clock_that_steps_leads_to_no_other_state() {
    let directory = scratch();
    let file = directory.path().join("clock");
    let mut came = [0; 3];
    for seed in 0..6 {
        std::fs::write(&file, 0u64.to_le_bytes()).unwrap();
        let ended = child("clocks")
            .env("CLOCK_FILE", &file)
            .env("LD_PRELOAD", preload("clock.c"))
            .env("PELLUCID_CLOCKS_SEED", (number("PELLUCID_CLOCKS_SEED", 1u64) + seed).to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        let complained = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{said}{complained}");
        let line = said.lines().find_map(|line| line.split_once("RESULT ")).expect("a result").1;
        println!("seed, commits, restores of each kind: {line}");
        for (sum, one) in came.iter_mut().zip(line.split(' ').skip(2)) {
            *sum += one.parse::<u64>().unwrap();
        }
    }
    println!("RESULT clocks {} {} {}", came[0], came[1], came[2]);
    assert!(came.iter().all(|count| *count > 20), "a kind that hardly ever came: {came:?}");
}

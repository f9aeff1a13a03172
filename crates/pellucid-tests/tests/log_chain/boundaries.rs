//! Goal: every commit is a point that a database can be restored to, by its number and by its time: a microsecond before its time
//! is the state before, its time and a microsecond later the state behind it.
//!
//! Method: commits of every kind, with checkpoints, log backups and differentials in between. What the database held behind each is
//! kept as a hash, and each boundary is restored and compared. The threads share the boundaries; of the commits of one moment the last
//! one is its state.
//!
//! PELLUCID_POINTS_COMMITS (52), PELLUCID_POINTS_LOGS (20, at most), PELLUCID_POINTS_PAGE (each), PELLUCID_POINTS_FIRST and
//! PELLUCID_POINTS_COUNT (all) choose others (tests/campaigns/log-points).

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pellucid::hash::Sha256;
use pellucid::header::RecoveryModel;
use pellucid::lsn::Lsn;
use pellucid_backup::job::{restore, Point, Restored};
use pellucid_engine::log_chain::{self, KeptLog};
use pellucid_tests::processes::number;
use rusqlite::Connection;

use super::points::{commit, differential, dump, full, log, open, restoring};
use super::Bench;

/// Commits between two log backups, at least.
const LEAST_IN_A_LOG: usize = 13;
/// Log backups of a run, at most.
const LOGS: usize = 20;
/// Every so many log backups a differential is made before one.
const DIFFERENTIAL_EVERY: usize = 3;
/// Of so many rounds of eleven commits one has large ones, in a run of more than a few.
const LARGE_EVERY: usize = 16;
const FEW: usize = 100;

/// A commit, and what the database held behind it.
struct State {
    lsn: Lsn,
    time: u64,
    hash: [u8; 32],
}

/// A boundary: a point, and the state that is there.
struct Boundary {
    point: Point,
    state: usize,
}

fn hash(connection: &Connection) -> [u8; 32] {
    let mut hash = Sha256::new();
    for (id, v, b) in dump(connection) {
        hash.update(&id.to_le_bytes());
        hash.update(&v.to_le_bytes());
        hash.update(&(b.len() as u64).to_le_bytes());
        hash.update(&b);
    }
    hash.finish()
}

/// A run: the media, and each state.
fn write(bench: &Bench, commits: usize) -> (Vec<PathBuf>, Vec<State>) {
    log_chain::set_model(&bench.database(), RecoveryModel::Full).unwrap();
    let connection = bench.open();
    connection.execute_batch("PRAGMA auto_vacuum = FULL; PRAGMA wal_autocheckpoint = 37").unwrap();
    let mut media = vec![full(bench, "full.bak")];
    let mut states = Vec::new();
    let each = LEAST_IN_A_LOG.max(commits.div_ceil(number("PELLUCID_POINTS_LOGS", LOGS)));
    let mut round = 0;
    while states.len() < commits {
        let mut hashes = Vec::new();
        for at in states.len()..commits.min(states.len() + each) {
            let is_large = commits <= FEW || at / 11 % LARGE_EVERY == 0;
            commit(&connection, if is_large { at } else { 0 });
            hashes.push(hash(&connection));
        }
        // One of them was made by a commit more: VACUUM and the like are one commit each.
        let kept = KeptLog::open(&bench.database(), Duration::from_secs(10)).unwrap();
        assert_eq!(kept.commits().len(), hashes.len());
        let both = kept.commits().iter().zip(hashes);
        states.extend(both.map(|(one, hash)| State { lsn: one.lsn, time: one.time, hash }));
        drop(kept);
        if round % DIFFERENTIAL_EVERY == DIFFERENTIAL_EVERY - 1 {
            media.push(differential(bench, &format!("differential-{round}.bak"), &media[0]));
        }
        media.push(log(bench, &format!("log-{round}.bak")));
        round += 1;
    }
    (media, states)
}

/// What has to be where, around one commit.
fn around(states: &[State], at: usize) -> Vec<Boundary> {
    let (state, time) = (&states[at], states[at].time);
    let mut found = vec![Boundary { point: Point::Lsn(state.lsn), state: at }];
    // Commits of one moment belong together.
    let last = states.iter().rposition(|other| other.time == time).unwrap();
    found.push(Boundary { point: Point::Time(time), state: last });
    found.push(Boundary { point: Point::Time(time + 1), state: last });
    if let Some(before) = states.iter().position(|other| other.time == time).unwrap().checked_sub(1)
    {
        found.push(Boundary { point: Point::Time(time - 1), state: before });
    }
    found
}

/// Restores each boundary of a run; how many there were.
fn boundaries(page_bytes: usize) -> usize {
    let bench = Bench::new(page_bytes);
    let commits = number("PELLUCID_POINTS_COMMITS", 52);
    let (media, states) = write(&bench, commits);
    let first = number("PELLUCID_POINTS_FIRST", 0);
    let last = commits.min(number("PELLUCID_POINTS_COUNT", commits).saturating_add(first));
    let wanted: Vec<_> = (first..last).flat_map(|at| around(&states, at)).collect();
    let next = AtomicUsize::new(0);
    let work = |worker: usize| {
        let to = bench.path(&format!("db/restored-{worker}.db"));
        while let Some(boundary) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (point, state) = (&boundary.point, &states[boundary.state]);
            restored(&media, point, &to);
            let connection = open(&to);
            assert!(hash(&connection) == state.hash, "{point}, for LSN {}", state.lsn);
            let whole: String =
                connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
            assert_eq!(whole, "ok", "{point}");
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(2, usize::from);
        for worker in 0..workers {
            scope.spawn(move || work(worker));
        }
    });
    let done = restored(&media, &Point::Last, &bench.path("db/last.db"));
    assert_eq!(done.reached.map(|(lsn, _)| lsn), states.last().map(|state| state.lsn));
    // A differential spares the logs before it.
    let kinds: Vec<_> = done.sets.iter().map(|(_, kind)| kind.name()).collect();
    assert!(kinds.len() <= 2 + DIFFERENTIAL_EVERY, "{kinds:?}");
    assert!(media.len() < 4 || kinds[..2] == ["full", "differential"], "{kinds:?}");
    wanted.len()
}

/// Over the one before.
fn restored(media: &[PathBuf], point: &Point, to: &std::path::Path) -> Restored {
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(pellucid_files::paths::beside(to, end));
    }
    let job = restoring(media, point.clone(), to.to_owned());
    restore(&pellucid_backup::job::Restoring { workers: 1, ..job }, &mut |_, _| ())
        .unwrap_or_else(|error| panic!("{point}: {error}"))
}

#[test]
fn every_commit_is_a_point() {
    let pages = match number("PELLUCID_POINTS_PAGE", 0) {
        0 => vec![512, 4096, 65536],
        one => vec![one],
    };
    for page_bytes in pages {
        let tried = boundaries(page_bytes);
        println!("RESULT {page_bytes} {tried} 0 0");
    }
}

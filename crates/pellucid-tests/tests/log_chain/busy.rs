//! Nobody waits for an answer that does not change: a checkpoint that must end with an empty log holds the write lock while SQLite asks
//! its busy handler. What counts is how often it is asked, and not for how long: a test goes by no clock.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::{write, Bench};

static ASKED: AtomicU32 = AtomicU32::new(0);

fn wait(_: i32) -> bool {
    ASKED.fetch_add(1, Ordering::Relaxed);
    true
}

fn checkpoint(connection: &Connection, mode: &str) -> (rusqlite::Result<i64>, u32) {
    ASKED.store(0, Ordering::Relaxed);
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    let done = connection.query_row(&sql, [], |row| row.get(0));
    (done, ASKED.load(Ordering::Relaxed))
}

#[test]
fn a_checkpoint_that_cannot_have_its_empty_log_is_told_once() {
    let bench = Bench::new(4096);
    let mut chain = bench.begin();
    let mut connection = bench.open();
    connection.busy_handler(Some(wait)).unwrap();
    write(&connection, 20);
    for mode in ["RESTART", "TRUNCATE"] {
        assert_eq!(checkpoint(&connection, mode), (Ok(0), 0), "{mode}: the archive takes it");
        write(&connection, 20);
    }
    let folder = pellucid_vfs::log_archive::path_of(&bench.database());
    let aside = folder.with_extension("aside");
    std::fs::rename(&folder, &aside).unwrap();
    for mode in ["RESTART", "TRUNCATE"] {
        let (done, asked) = checkpoint(&connection, mode);
        assert!(done.is_err() || done == Ok(1), "{mode}: {done:?}");
        assert_eq!(asked, 1, "{mode}: a busy handler without end is asked once");
        write(&connection, 5);
    }
    // Others are not asked: these end with what could be done.
    for mode in ["PASSIVE", "FULL"] {
        assert_eq!(checkpoint(&connection, mode), (Ok(0), 0), "{mode}");
    }
    std::fs::rename(&aside, &folder).unwrap();
    assert_eq!(checkpoint(&connection, "TRUNCATE"), (Ok(0), 0));
    chain.take(&bench.database());
    assert_eq!(chain.commits(), 70);
    chain.assert_last(&connection);
}

/// How long a checkpoint keeps ten writers waiting, beside the same without a chain. For a campaign: it goes by the clock.
#[test]
fn writers_do_not_stand_still() {
    let Ok(most) = std::env::var("PELLUCID_BUSY_MOST_MS") else { return };
    let most = Duration::from_millis(most.parse().unwrap());
    for patience in [0, 1000, 60_000] {
        for archive in ["none", "there", "gone"] {
            let bench = Bench::new(4096);
            let _chain = (archive != "none").then(|| bench.begin());
            let folder = pellucid_vfs::log_archive::path_of(&bench.database());
            if archive == "gone" {
                std::fs::rename(&folder, folder.with_extension("aside")).unwrap();
            }
            let (checkpoint, writer) = contended(&bench, patience);
            println!(
                "chain {archive}, patience {patience} ms: a checkpoint took {checkpoint:?} at most, a commit {writer:?}"
            );
            assert!(archive != "gone" || checkpoint <= most, "{checkpoint:?}");
        }
    }
}

/// The longest checkpoint and the longest commit.
fn contended(bench: &Bench, patience: u64) -> (Duration, Duration) {
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = || {
            let connection = bench.open();
            let mut longest = Duration::ZERO;
            while !done.load(Ordering::Relaxed) {
                let begun = Instant::now();
                write(&connection, 1);
                longest = longest.max(begun.elapsed());
                std::thread::sleep(Duration::from_millis(5));
            }
            longest
        };
        let writers: Vec<_> = (0..10).map(|_| scope.spawn(writer)).collect();
        let connection = bench.open();
        connection.busy_timeout(Duration::from_millis(patience)).unwrap();
        let (begun, mut longest) = (Instant::now(), Duration::ZERO);
        while begun.elapsed() < Duration::from_secs(5) {
            for mode in ["RESTART", "TRUNCATE"] {
                let asked = Instant::now();
                let sql = format!("PRAGMA wal_checkpoint({mode})");
                let _ = connection.query_row(&sql, [], |_| Ok(()));
                longest = longest.max(asked.elapsed());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        done.store(true, Ordering::Relaxed);
        let writer = writers.into_iter().map(|writer| writer.join().unwrap()).max();
        (longest, writer.unwrap_or_default())
    })
}

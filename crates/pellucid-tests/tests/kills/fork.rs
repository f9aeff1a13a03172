//! Goal: a process that has used the shim may fork, also in the middle of a write transaction: no
//! nonce seals two units under one key.
//!
//! Method: a process writes, then forks eight children. They and it go on with the connection they
//! all inherited, and each child writes through connections of its own. tests/tools/tails.c notes the
//! tail of every unit that reaches a file: 100,000 here, 10^6 with PELLUCID_FORK_UNITS=1000000. An
//! inherited connection has lost its locks (howtocorrupt.html, 2.6), so its database may be damaged,
//! and its errors are ignored; what a thief could make of two units with one nonce is not.
//!
//! It can fail: the same run without the guard must find nonces used twice. That takes the feature `sabotage`, with which
//! .ci/steps builds.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rusqlite::Connection;

use crate::processes::{child, number, preload, rows, scratch, told, Over};

const CHILDREN: usize = 8;
const PAGE: u64 = 1024;
const NOTE_BYTES: u64 = 33;

/// How a round begins.
struct Round {
    mode: &'static str,
    /// Rows written by the transaction that is open at the fork; 0: none is.
    open_rows: i64,
}

/// Different amounts, so that nonces are left ahead in most of them whatever the batches are.
const ROUNDS: [Round; 6] = [
    Round { mode: "WAL", open_rows: 0 },
    Round { mode: "DELETE", open_rows: 0 },
    Round { mode: "WAL", open_rows: 70 },
    Round { mode: "DELETE", open_rows: 75 },
    Round { mode: "WAL", open_rows: 111 },
    Round { mode: "PERSIST", open_rows: 140 },
];

/// The process that forks.
pub fn forking() {
    let dir = PathBuf::from(told("TAILS_DIR"));
    let target: u64 = told("CRASH_UNITS").parse().unwrap();
    for (n, round) in ROUNDS.iter().enumerate() {
        let until = target * (n as u64 + 1) / ROUNDS.len() as u64;
        fork_and_write(&dir, n, round, until);
    }
}

fn units_noted() -> u64 {
    std::fs::metadata(told("TAILS_FILE")).map_or(0, |about| about.len() / NOTE_BYTES)
}

fn open(database: &Path, mode: &str) -> Connection {
    let connection = Over::Sealed.open(database);
    let settings = format!(
        "PRAGMA page_size={PAGE}; PRAGMA journal_mode={mode}; PRAGMA synchronous=OFF;
         PRAGMA cache_size=10; PRAGMA cache_spill=10;"
    );
    connection.execute_batch(&settings).unwrap();
    connection
}

fn fork_and_write(dir: &Path, n: usize, round: &Round, until: u64) {
    let own = dir.join(format!("own{n}.db"));
    // Used and closed: SQLite's own table of files must not know it in the children.
    rows::create(&open(&own, round.mode));
    let inherited = open(&dir.join(format!("inherited{n}.db")), round.mode);
    rows::create(&inherited);
    for id in 1..=50 {
        rows::put(&inherited, id, 1).unwrap();
    }
    if round.open_rows > 0 {
        inherited.execute_batch("BEGIN IMMEDIATE").unwrap();
        for id in 1..=round.open_rows {
            rows::put(&inherited, id, 2).unwrap();
        }
    }
    let mut children = Vec::new();
    for me in 0..CHILDREN as i64 {
        // SAFETY: the other threads of this process wait for this test; the child calls no libtest
        // code and leaves with _exit.
        match unsafe { libc::fork() } {
            0 => {
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    go_on(&inherited, me);
                    write_own(&own, round.mode, me, until);
                }));
                // SAFETY: ends this process without its destructors, which belong to the parent.
                unsafe { libc::_exit(i32::from(done.is_err())) }
            }
            -1 => panic!("fork: {}", std::io::Error::last_os_error()),
            pid => children.push(pid),
        }
    }
    go_on(&inherited, CHILDREN as i64);
    for pid in children {
        let mut status = 0;
        // SAFETY: waits for a child of this process.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert_eq!(status, 0, "a forked child failed");
    }
}

/// Writes through the connection all processes have; what it says does not matter.
fn go_on(inherited: &Connection, me: i64) {
    let _ = inherited.busy_timeout(std::time::Duration::from_millis(50));
    for id in 1..=100 {
        let _ = rows::put(inherited, id, 10 + me);
    }
    let _ = inherited.execute_batch("COMMIT");
    for id in 1..=20 {
        let _ = rows::put(inherited, id, 30 + me);
    }
}

fn write_own(own: &Path, mode: &str, me: i64, until: u64) {
    let connection = Over::Sealed.open(own);
    let settings = "PRAGMA synchronous=OFF; PRAGMA cache_size=10; PRAGMA cache_spill=10";
    connection.execute_batch(settings).unwrap();
    if mode != "WAL" {
        connection.execute_batch(&format!("PRAGMA journal_mode={mode}")).unwrap();
    }
    let mut version = 0;
    // At least two transactions each, so that all of them write.
    while version < 2 || units_noted() < until {
        version += 1;
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        for id in 1..=60 {
            rows::put(&connection, me * 100 + id, version).unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
    }
}

/// What the tails say.
#[derive(Debug)]
struct Found {
    units: usize,
    /// Units by kind of file: database, WAL, journal.
    kinds: [usize; 3],
    /// Nonces that sealed more than one unit under one generation and kind of file.
    twice: usize,
}

fn examine(notes: &[u8]) -> Found {
    let mut found = Found { units: 0, kinds: [0; 3], twice: 0 };
    let mut seen: HashMap<[u8; 17], [u8; 16]> = HashMap::new();
    for note in notes.chunks_exact(NOTE_BYTES as usize) {
        let kind = b"DWJ".iter().position(|kind| *kind == note[0]);
        let kind = kind.expect("a write of unknown shape: tails.c does not know the format");
        found.units += 1;
        found.kinds[kind] += 1;
        let key: [u8; 17] = note[..17].try_into().unwrap();
        let tag: [u8; 16] = note[17..].try_into().unwrap();
        if seen.insert(key, tag).is_some_and(|known| known != tag) {
            found.twice += 1;
        }
    }
    found
}

/// `sabotage`: what the library is to do without; nothing if empty.
fn run(units: u64, sabotage: &str) -> Found {
    let begun = Instant::now();
    let scratch = scratch();
    let live = scratch.path().join("live");
    std::fs::create_dir_all(&live).unwrap();
    let notes = scratch.path().join("tails");
    let output = child("fork")
        .env("LD_PRELOAD", preload("tails.c"))
        .env("TAILS_DIR", live.join(""))
        .env("TAILS_PAGE", PAGE.to_string())
        .env("TAILS_FILE", &notes)
        .env("CRASH_UNITS", units.to_string())
        .env("PELLUCID_SABOTAGE", sabotage)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let found = examine(&std::fs::read(&notes).unwrap());
    println!("{found:?} in {:.1} s", begun.elapsed().as_secs_f64());
    assert!(found.kinds.iter().all(|count| *count > 1000), "a kind of file was not written");
    found
}

#[test]
fn no_nonce_twice_after_fork() {
    let units = number("PELLUCID_FORK_UNITS", 100_000);
    let found = run(units, "");
    assert!(found.units as u64 >= units);
    assert_eq!(found.twice, 0);
}

#[test]
#[cfg(feature = "sabotage")]
fn without_the_guard_nonces_repeat() {
    let found = run(20_000, "fork-guard");
    assert!(found.twice > 0, "the guard is gone and nothing was noticed: the test shows nothing");
}

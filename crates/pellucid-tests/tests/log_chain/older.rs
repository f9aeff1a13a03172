//! Pages and files that are put back to an older state: each is told by its number, and nothing else is.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use pellucid::header::{RecoveryModel, REGION_BYTES};
use pellucid_backup::job::{compare, Compared, Comparing};
use pellucid_engine::log_chain;
use pellucid_engine::scan::{self, Options};
use pellucid_host::DatabaseError;
use rusqlite::Connection;

use super::points::{differential, full, log};
use super::{write, Bench};

fn compared(bench: &Bench, media: &[PathBuf]) -> Result<Compared, DatabaseError> {
    let timeout = Duration::from_secs(60);
    compare(
        &Comparing { database: bench.database(), media: media.to_vec(), timeout },
        &mut |_, _| (),
    )
}

fn assert_newest(bench: &Bench, media: &[PathBuf], when: &str) {
    let found = compared(bench, media).unwrap();
    assert!(found.older.is_empty(), "{when}: {:?}", found.older);
    assert!(found.unread.is_empty(), "{when}: {:?}", found.unread);
}

fn checkpoint(connection: &Connection) {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

fn begun(page_bytes: usize) -> (Bench, Connection) {
    let bench = Bench::new(page_bytes);
    log_chain::set_model(&bench.database(), RecoveryModel::Full).unwrap();
    let connection = bench.open();
    (bench, connection)
}

#[test]
fn what_no_commit_wrote_is_not_told_from_what_is_the_newest_falsely() {
    for page_bytes in [512, 4096] {
        let (bench, connection) = begun(page_bytes);
        write(&connection, 2);
        let mut media = vec![full(&bench, "full.bak")];
        assert_newest(&bench, &media, "full alone");
        write(&connection, 3);
        assert_newest(&bench, &media, "full, and commits in the log");
        media.push(log(&bench, "one.bak"));
        assert_newest(&bench, &media, "one log backup");
        connection
            .execute_batch("DELETE FROM t WHERE id > 50; VACUUM; UPDATE t SET b = randomblob(900) WHERE id < 9")
            .unwrap();
        assert_newest(&bench, &media, "a rebuilt database in the log");
        media.push(log(&bench, "two.bak"));
        checkpoint(&connection);
        assert_newest(&bench, &media, "brought in");
        write(&connection, 1);
        media.push(differential(&bench, "differential.bak", &media[0]));
        write(&connection, 1);
        assert_newest(&bench, &media, "a differential");
        media.push(log(&bench, "three.bak"));
        assert_newest(&bench, &media, "a log behind it");
        assert_newest(&bench, &[media[0].clone(), media[3].clone(), media[4].clone()], "fewer");
        let told = compared(&bench, &media[..2]).unwrap_err().to_string();
        assert!(told.contains("name those too"), "{told}");
    }
}

/// Writers go on while pages are compared.
#[test]
fn commits_in_between_are_no_older_states() {
    let (bench, connection) = begun(4096);
    let media = [full(&bench, "full.bak")];
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let writer = std::thread::spawn(move || {
        while stopped.try_recv().is_err() {
            write(&connection, 1);
        }
    });
    for round in 0..12 {
        assert_newest(&bench, &media, &format!("round {round}"));
    }
    stop.send(()).unwrap();
    writer.join().unwrap();
}

/// Each page alone, each two neighbours, and all of them.
#[test]
fn every_page_that_is_put_back_is_told() {
    for page_bytes in [512, 4096, 65536] {
        let (bench, connection) = begun(page_bytes);
        let mut media = vec![full(&bench, "full.bak")];
        write(&connection, 1);
        checkpoint(&connection);
        let older = fs::read(bench.database()).unwrap();
        write(&connection, 2);
        connection.execute_batch("UPDATE t SET b = randomblob(100) WHERE id % 40 = 0").unwrap();
        media.push(log(&bench, "one.bak"));
        write(&connection, 1);
        checkpoint(&connection);
        drop(connection);
        let newer = fs::read(bench.database()).unwrap();
        let of = |number: u32| {
            let at = REGION_BYTES as usize + (number as usize - 1) * page_bytes;
            at..at + page_bytes
        };
        let pages = ((newer.len() - REGION_BYTES as usize) / page_bytes) as u32;
        let changed: BTreeSet<u32> = (1..=pages)
            .filter(|number| older.get(of(*number)) != Some(&newer[of(*number)]))
            .filter(|number| older.len() >= of(*number).end)
            .collect();
        assert!(changed.len() > 2, "{changed:?}");
        let alone = changed.iter().map(|page| vec![*page]);
        let neighbours = changed.iter().zip(changed.iter().skip(1)).map(|(a, b)| vec![*a, *b]);
        let all = [changed.iter().copied().collect()];
        for put_back in alone.chain(neighbours).chain(all) {
            // Page 1 has the tree of the schema: SQLite reads it before anybody compares.
            let file = fs::OpenOptions::new().write(true).open(bench.database()).unwrap();
            for page in &put_back {
                file.write_all_at(&older[of(*page)], of(*page).start as u64).unwrap();
            }
            let found = compared(&bench, &media).unwrap();
            assert_eq!(found.older, put_back, "{page_bytes}");
            for page in &put_back {
                file.write_all_at(&newer[of(*page)], of(*page).start as u64).unwrap();
            }
        }
        assert_newest(&bench, &media, "as it was");
    }
}

/// A scan seals pages again, which changes none, but for the change counter of page 1: that is a commit like any other one.
#[test]
fn a_scan_makes_no_page_another_one() {
    let (bench, connection) = begun(4096);
    write(&connection, 3);
    let base = full(&bench, "full.bak");
    // Nobody commits in between.
    scan::rekey(&bench.database(), None).unwrap();
    scan::run(&bench.database(), &Options::default(), &mut |_, _, _| ()).unwrap();
    assert_newest(&bench, std::slice::from_ref(&base), "sealed again");
    let logged = log(&bench, "one.bak");
    assert_newest(&bench, &[base, logged], "and logged");
}

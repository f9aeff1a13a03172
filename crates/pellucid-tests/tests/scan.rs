//! Goal: a new key goes through a database that is in use, nobody notices, and the old key opens nothing
//! afterwards.
//!
//! Method: databases with content that can be compared, rekeyed while other connections are idle, read an old
//! snapshot or write; then every unit of the file is tried under the old key. What a proof has to find is
//! planted while it is under way.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use pellucid::header::EncryptionState;
use pellucid::scan::ScanState;
use pellucid::{unit, Algorithm};
use pellucid_engine::scan;
use pellucid_engine::scan::{Doing, Ended, Options, Target};
use pellucid_host::code::last_report;
use pellucid_host::DatabaseError;
use rusqlite::Connection;

#[path = "scan/bench.rs"]
mod bench;
#[path = "scan/beside.rs"]
mod beside;
#[path = "scan/identity.rs"]
mod identity;
#[path = "scan/shrinking.rs"]
mod shrinking;

use bench::{dump, Bench};

fn quick() -> Options {
    Options { patience: Duration::from_secs(60), ..Options::default() }
}

fn scan(bench: &Bench) -> Ended {
    scan::run(&bench.path(), &quick(), &mut |_, _, _| ()).unwrap()
}

#[test]
fn the_old_key_opens_nothing_after_a_rekey() {
    for (mode, page_bytes) in
        [("wal", 512), ("delete", 4096), ("persist", 1024), ("truncate", 65536)]
    {
        let bench = Bench::new();
        let connection = bench.make(mode, page_bytes, 900);
        let content = dump(&connection);
        let (old, old_header) = (bench.keys(), bench.headers()[0].clone());
        let header = scan::rekey(&bench.path(), Some(Algorithm::Aes128)).unwrap();
        assert_eq!((header.state, header.deks.len()), (EncryptionState::KeyChange, 2));
        assert_eq!(dump(&connection), content, "{mode}: in between");
        assert_eq!(scan(&bench), Ended::Complete);
        bench.is_free_of(&old, &old_header);
        assert_eq!(bench.headers()[0].algorithm().unwrap(), Algorithm::Aes128);
        assert_eq!(dump(&connection), content, "{mode}: a connection from before");
        assert_eq!(dump(&bench.open()), content, "{mode}: a new connection");
        assert_eq!(scan(&bench), Ended::NothingToDo);
        if mode == "wal" {
            assert_eq!(fs::metadata(bench.beside("-wal")).unwrap().len(), 0);
        }
        // Once more, and back to another algorithm.
        scan::rekey(&bench.path(), Some(Algorithm::TripleDes3Key)).unwrap();
        let exclusive = Options { exclusive: true, ..quick() };
        drop(connection);
        assert_eq!(
            scan::run(&bench.path(), &exclusive, &mut |_, _, _| ()).unwrap(),
            Ended::Complete
        );
        assert_eq!(dump(&bench.open()), content);
    }
}

/// It checkpoints on another thread, and waits for it now and then: the log would become as long as the database.
#[test]
fn an_exclusive_scan_empties_its_log_as_it_goes() {
    const MIB: u64 = 1 << 20;
    let bench = Bench::new();
    let connection = bench.make("wal", 4096, 400);
    connection
        .execute_batch(
            "CREATE TABLE large(body);
             WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 140)
             INSERT INTO large SELECT zeroblob(1 << 20) FROM c;
             PRAGMA wal_checkpoint(TRUNCATE);",
        )
        .unwrap();
    let content = dump(&connection);
    let (old, old_header) = (bench.keys(), bench.headers()[0].clone());
    scan::rekey(&bench.path(), None).unwrap();
    let length = |suffix| fs::metadata(bench.beside(suffix)).unwrap().len();
    // A state of before: what is added to the log stays there until its reader is done, and the scan waits for nobody.
    let reader = bench.open();
    reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
    let (mut longest, mut batches) = (0, 0);
    let exclusive = Options { exclusive: true, ..quick() };
    let ended = scan::run(&bench.path(), &exclusive, &mut |_, _, _| {
        batches += 1;
        if batches == 3 {
            reader.execute_batch("COMMIT").unwrap();
        }
        longest = longest.max(length("-wal"));
    });
    assert_eq!(ended.unwrap(), Ended::Complete);
    assert!((20 * MIB..100 * MIB).contains(&longest), "{longest} bytes of log");
    assert!(length("") > 140 * MIB && length("-wal") == 0);
    bench.is_free_of(&old, &old_header);
    assert_eq!(dump(&connection), content);
}

#[test]
fn a_connection_that_was_idle_reads_and_writes_on() {
    for mode in ["wal", "delete"] {
        let bench = Bench::new();
        let idle = bench.make(mode, 1024, 400);
        let content = dump(&idle);
        let writer = bench.open();
        writer.execute("UPDATE t SET body = body || '!' WHERE id = 7", []).unwrap();
        scan::rekey(&bench.path(), None).unwrap();
        // Everybody seals under the new key from now on, whoever checkpoints.
        idle.execute("UPDATE t SET body = body || '?' WHERE id = 8", []).unwrap();
        let checkpointed: i64 =
            idle.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(0)).unwrap();
        assert_eq!(checkpointed, 0);
        let current = bench.headers()[0].generation;
        assert_eq!(unit::generation(&bench.unit(1)).unwrap(), current, "{mode}");
        assert_eq!(scan(&bench), Ended::Complete);
        writer.execute("UPDATE t SET body = rtrim(body, '!?') WHERE id IN (7, 8)", []).unwrap();
        assert_eq!(dump(&idle), content, "{mode}");
        idle.execute("INSERT INTO t VALUES (100000, 'after')", []).unwrap();
        assert_eq!(dump(&writer), dump(&bench.open()), "{mode}");
    }
}

/// The last connection to close brings the log to the file, and may have looked at the header last before the switch.
#[test]
fn a_connection_that_was_idle_closes_under_the_new_key() {
    let bench = Bench::new();
    let content = dump(&bench.make("wal", 512, 300));
    let old_header = bench.headers()[0].clone();
    let old = bench.keys();
    // It has counted no page yet, and begins with that when it closes.
    let idle = bench.open();
    idle.execute("UPDATE t SET body = body || '!' WHERE id < 90", []).unwrap();
    let switched = scan::rekey(&bench.path(), None).unwrap();
    drop(idle);
    assert!(!bench.beside("-wal").exists());
    let left = &bench.headers()[0];
    assert_eq!((&left.deks, left.state), (&switched.deks, switched.state));
    let current = |page: &u32| left.is_current(unit::generation(&bench.unit(*page)).unwrap());
    assert!(
        (1..=bench.pages()).any(|page| current(&page)),
        "all of the log went under the old key"
    );
    assert_eq!(scan(&bench), Ended::Complete);
    bench.is_free_of(&old, &old_header);
    let after = bench.open();
    after.execute("UPDATE t SET body = rtrim(body, '!') WHERE id < 90", []).unwrap();
    assert_eq!(dump(&after), content);
}

/// The same where a connection keeps the database for itself from then on.
#[test]
fn a_connection_that_was_idle_excludes_others_under_the_new_key() {
    for mode in ["wal", "delete"] {
        let bench = Bench::new();
        let content = dump(&bench.make(mode, 512, 300));
        let idle = bench.open();
        assert_eq!(dump(&idle), content);
        let switched = scan::rekey(&bench.path(), None).unwrap();
        idle.execute_batch(
            "PRAGMA locking_mode=EXCLUSIVE; UPDATE t SET body = body || '!' WHERE id < 90;
             PRAGMA wal_checkpoint; UPDATE t SET body = rtrim(body, '!') WHERE id < 90",
        )
        .unwrap();
        assert_eq!(dump(&idle), content, "{mode}");
        drop(idle);
        let left = &bench.headers()[0];
        assert_eq!((&left.deks, left.state), (&switched.deks, switched.state), "{mode}");
        assert_eq!(scan(&bench), Ended::Complete);
        assert_eq!(dump(&bench.open()), content, "{mode}");
    }
}

#[test]
fn an_old_snapshot_is_read_to_its_end_and_delays_only_the_end() {
    let bench = Bench::new();
    let reader = bench.make("wal", 1024, 300);
    reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
    let writer = bench.open();
    scan::rekey(&bench.path(), None).unwrap();
    writer.execute("DELETE FROM t WHERE id % 2", []).unwrap();
    let options = Options { patience: Duration::from_millis(400), ..Options::default() };
    let mut waited = false;
    let refused = scan::run(&bench.path(), &options, &mut |doing, _, _| {
        waited |= doing == Doing::WaitingForReaders;
    });
    assert!(matches!(refused, Err(DatabaseError::InUse { .. })), "{refused:?}");
    assert!(waited);
    assert_eq!(bench.headers()[0].state, EncryptionState::KeyChange);
    let count = |connection: &Connection| -> i64 {
        connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    };
    assert_eq!((count(&reader), count(&writer)), (300, 150));
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(scan(&bench), Ended::Complete);
    assert_eq!(count(&reader), 150);
}

#[test]
fn a_scan_is_suspended_and_goes_on() {
    let bench = Bench::new();
    let connection = bench.make("wal", 512, 2000);
    let content = dump(&connection);
    let (old, old_header) = (bench.keys(), bench.headers()[0].clone());
    let none = scan::change_state(&bench.path(), ScanState::Suspended).unwrap_err().to_string();
    assert!(none.contains("no scan of it is under way"), "{none}");
    scan::rekey(&bench.path(), None).unwrap();
    let path = bench.path();
    let mut seen = Vec::new();
    let ended = scan::run(&path, &quick(), &mut |_, done, _| {
        if seen.is_empty() {
            scan::change_state(&path, ScanState::Suspended).unwrap();
        }
        seen.push(done);
    })
    .unwrap();
    assert_eq!(ended, Ended::Suspended);
    assert!(seen.len() < 4, "it stops with its next batch: {seen:?}");
    assert_eq!(scan(&bench), Ended::Suspended);
    let refused = scan::rekey(&path, None).unwrap_err().to_string();
    assert!(refused.contains("Cannot change database encryption key while"), "{refused}");
    assert_eq!(dump(&connection), content);
    scan::change_state(&path, ScanState::Running).unwrap();
    assert_eq!(scan(&bench), Ended::Complete);
    bench.is_free_of(&old, &old_header);
    assert_eq!(dump(&connection), content);
}

/// Plants something at the moment before the proof, and counts how often pages were rewritten again.
fn plant(
    bench: &Bench,
    times: usize,
    mut put: impl FnMut(&Bench),
) -> (Result<Ended, DatabaseError>, usize) {
    let (mut planted, mut passes, mut before) = (0, 0, Doing::WaitingForReaders);
    let ended = scan::run(&bench.path(), &quick(), &mut |doing, _, _| {
        passes += usize::from(doing == Doing::Rewriting && before != Doing::Rewriting);
        if doing == Doing::Proving && before != Doing::Proving && planted < times {
            planted += 1;
            put(bench);
        }
        before = doing;
    });
    (ended, passes)
}

#[test]
fn the_proof_finds_what_is_of_the_old_key() {
    for mode in ["wal", "delete"] {
        let bench = Bench::new();
        let connection = bench.make(mode, 512, 5000);
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        let content = dump(&connection);
        let last = bench.pages();
        let free: u32 =
            connection.query_row("PRAGMA freelist_count", [], |row| row.get(0)).unwrap();
        assert!(free > 10, "{free}");
        // The first page of the freelist's trunk.
        let head: u32 = connection
            .query_row(
                "SELECT substr(hex(data), 65, 8) FROM sqlite_dbpage WHERE pgno = 1",
                [],
                |row| {
                    let hex: String = row.get(0)?;
                    Ok(u32::from_str_radix(&hex, 16).unwrap())
                },
            )
            .unwrap();
        let of_freelist = bench.unit(head);
        let of_last = bench.unit(last);
        connection.execute_batch("BEGIN; UPDATE t SET body = body || '.' WHERE id < 9").unwrap();
        let journal = fs::read(bench.beside("-journal"));
        connection.execute_batch("ROLLBACK").unwrap();
        let old_header = bench.headers()[0].clone();
        let old = bench.keys();
        let rekeyed = || drop(scan::rekey(&bench.path(), None).unwrap());

        rekeyed();
        let (ended, passes) = plant(&bench, 1, |bench| bench.put(bench.offset(head), &of_freelist));
        assert_eq!(
            (ended.unwrap(), passes),
            (Ended::Complete, 2),
            "{mode}: a page of the freelist"
        );
        bench.is_free_of(&old, &old_header);
        assert_eq!(dump(&connection), content);

        rekeyed();
        let (ended, passes) = plant(&bench, 1, |bench| bench.put(bench.offset(last), &of_last));
        assert_eq!((ended.unwrap(), passes), (Ended::Complete, 2), "{mode}: in the last page");
        assert_eq!(dump(&connection), content);

        // Less than a page behind the last one: nothing rewrites that, and the next scan cuts it off.
        rekeyed();
        let put = |bench: &Bench| bench.put(bench.offset(last + 1), &of_last[212..]);
        let (ended, _) = plant(&bench, 1, put);
        let told = ended.unwrap_err().to_string();
        assert!(told.contains("what lies in the last 300 bytes is of an older key"), "{told}");
        assert_eq!(bench.headers()[0].deks.len(), 2, "the older key is still there");
        assert_eq!(scan(&bench), Ended::Complete);
        assert_eq!(bench.pages(), last);

        // Behind the last page: cut off, and not more often than three times.
        rekeyed();
        let (ended, passes) = plant(&bench, 1, |bench| bench.put(bench.offset(last + 1), &of_last));
        assert_eq!((ended.unwrap(), passes), (Ended::Complete, 2), "{mode}: behind the last page");
        assert_eq!(bench.pages(), last);
        rekeyed();
        let (ended, passes) = plant(&bench, 9, |bench| bench.put(bench.offset(last + 1), &of_last));
        assert!(ended.is_err(), "{mode}: {ended:?}");
        assert_eq!(passes, 3);
        assert_eq!(bench.headers()[0].scan.state, ScanState::Aborted);
        assert_eq!(bench.headers()[0].deks.len(), 2, "the older key is still there");
        assert_eq!(scan(&bench), Ended::Complete, "aborted is not for ever");

        if let Ok(journal) = &journal {
            assert_eq!(mode, "delete");
            rekeyed();
            let (ended, _) =
                plant(&bench, 1, |bench| fs::write(bench.beside("-journal"), journal).unwrap());
            let told = ended.unwrap_err().to_string();
            assert!(told.contains("the rollback journal is of an older key"), "{told}");
            assert_eq!(bench.headers()[0].deks.len(), 2, "the older key is still there");
            fs::remove_file(bench.beside("-journal")).unwrap();
            assert_eq!(scan(&bench), Ended::Complete);
        }
        if mode == "wal" {
            rekeyed();
            let mut frame = vec![0; 32 + 24 + 512];
            frame[56..].copy_from_slice(&of_last);
            let (ended, _) =
                plant(&bench, 1, |bench| fs::write(bench.beside("-wal"), &frame).unwrap());
            let told = ended.unwrap_err().to_string();
            assert!(told.contains("frame 1 of the WAL is of an older key"), "{told}");
            assert_eq!(scan(&bench), Ended::Complete);
        }
        assert_eq!(dump(&connection), content, "{mode}");
    }
}

/// Where the first record of an ended journal begins depends on the sector size of the connection that wrote it.
#[test]
fn an_ended_journal_is_told_from_one_of_the_old_key() {
    for (psow, sector) in [(1, 512), (0, 4096)] {
        let bench = Bench::new();
        drop(bench.make("delete", 4096, 500));
        let writer = bench.open_with(&format!("&psow={psow}")).unwrap();
        writer.execute_batch("PRAGMA journal_mode=PERSIST").unwrap();
        let commit = || {
            writer.execute_batch("UPDATE t SET body = body || 'x' WHERE id % 3 = 0").unwrap();
            let journal = fs::read(bench.beside("-journal")).unwrap();
            // A record begins with the number of its page.
            let page = u32::from_be_bytes(journal[sector..sector + 4].try_into().unwrap());
            assert!((1..=bench.pages()).contains(&page), "psow={psow}: no record at {sector}");
            journal
        };
        let old = commit();

        scan::rekey(&bench.path(), None).unwrap();
        let (ended, passes) = plant(&bench, 1, |_| drop(commit()));
        assert_eq!((ended.unwrap(), passes), (Ended::Complete, 1), "psow={psow}");
        let content = dump(&writer);

        scan::rekey(&bench.path(), None).unwrap();
        let (ended, _) =
            plant(&bench, 1, |bench| fs::write(bench.beside("-journal"), &old).unwrap());
        let told = ended.unwrap_err().to_string();
        assert!(told.contains("the rollback journal is of an older key"), "{told}");
        assert_eq!(scan(&bench), Ended::Complete);
        assert_eq!(dump(&writer), content);
    }
}

#[test]
fn a_damaged_page_aborts_the_scan_and_is_named() {
    let bench = Bench::new();
    drop(bench.make("delete", 512, 500));
    let page = bench.pages() / 2;
    scan::rekey(&bench.path(), None).unwrap();
    let right = bench.unit(page);
    bench.put(bench.offset(page) + 100, &[right[100] ^ 1]);
    let told = scan::run(&bench.path(), &quick(), &mut |_, _, _| ()).unwrap_err();
    assert!(matches!(told, DatabaseError::Sqlite { code: 8202 | 11, .. }), "{told:?}");
    assert_eq!(bench.headers()[0].scan.state, ScanState::Aborted);
    bench.put(bench.offset(page), &right);
    assert_eq!(scan(&bench), Ended::Complete);
}

/// Whichever of its threads meets the frame, who started it is told which one it is.
#[test]
fn a_damaged_frame_aborts_an_exclusive_scan_and_is_named() {
    let bench = Bench::new();
    let connection = bench.make("wal", 4096, 500);
    let sql = "PRAGMA wal_checkpoint(TRUNCATE); UPDATE t SET body = body || 'x' WHERE id > 400";
    connection.execute_batch(sql).unwrap();
    scan::rekey(&bench.path(), None).unwrap();
    let log = fs::OpenOptions::new().read(true).write(true).open(bench.beside("-wal")).unwrap();
    let (at, mut byte) = (32 + (24 + 4096) + 24 + 100, [0]);
    log.read_exact_at(&mut byte, at).unwrap();
    log.write_all_at(&[byte[0] ^ 1], at).unwrap();
    let exclusive = Options { exclusive: true, ..quick() };
    last_report();
    scan::run(&bench.path(), &exclusive, &mut |_, _, _| ()).unwrap_err();
    let told = last_report().unwrap();
    assert!(told.line.contains("frame 2"), "{told:?}");
    assert_eq!(bench.headers()[0].scan.state, ScanState::Aborted);
    log.write_all_at(&byte, at).unwrap();
    assert_eq!(scan(&bench), Ended::Complete);
}

/// Whether a piece of the content can be read off the file by anybody.
fn is_readable(bench: &Bench) -> bool {
    let mut file = vec![0; bench.file().metadata().unwrap().len() as usize];
    bench.file().read_exact_at(&mut file, 0).unwrap();
    file.windows(8).any(|window| window == b"row 42 0")
}

#[test]
fn encryption_is_switched_off_and_on_while_others_use_it() {
    for (mode, page_bytes) in [("wal", 1024), ("delete", 4096), ("persist", 512)] {
        let bench = Bench::new();
        let connection = bench.make(mode, page_bytes, 700);
        let idle = bench.open();
        let content = dump(&connection);
        assert_eq!(dump(&idle), content);
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        assert!(!is_readable(&bench));

        scan::set(&bench.path(), Target::Off).unwrap();
        assert_eq!(dump(&idle), content, "{mode}: in between");
        assert_eq!(scan(&bench), Ended::Complete);
        assert!(is_readable(&bench), "{mode}: it is not off");
        let header = bench.headers()[0].clone();
        assert_eq!(header.state, EncryptionState::Unencrypted);
        assert_eq!(dump(&idle), content, "{mode}: off");
        idle.execute("INSERT INTO t VALUES (90000, 'while off')", []).unwrap();
        // In clear, and authentic all the same.
        let page = bench.pages() - 1;
        let right = bench.unit(page);
        bench.put(bench.offset(page) + 7, &[right[7] ^ 1]);
        let damaged = {
            let options = pellucid_engine::audit::Options { physical_only: true, cores: 2 };
            pellucid_engine::audit::audit(&bench.path(), options, &mut |_, _, _| ()).unwrap()
        };
        assert!(!damaged.is_clean(), "{mode}: a changed byte of a plain page passes");
        bench.put(bench.offset(page), &right);

        let (old, old_header) = (bench.keys(), bench.headers()[0].clone());
        scan::set(&bench.path(), Target::On(Algorithm::Aes192)).unwrap();
        assert_eq!(scan(&bench), Ended::Complete);
        bench.is_free_of(&old, &old_header);
        assert!(!is_readable(&bench), "{mode}: content is left in clear");
        assert_eq!(bench.headers()[0].algorithm().unwrap(), Algorithm::Aes192);
        idle.execute("DELETE FROM t WHERE id = 90000", []).unwrap();
        assert_eq!(dump(&connection), content, "{mode}: on");
    }
}

#[test]
fn a_scan_turns_back_in_the_middle() {
    let bench = Bench::new();
    let connection = bench.make("wal", 512, 2000);
    let content = dump(&connection);
    let (old, old_header) = (bench.keys(), bench.headers()[0].clone());
    for target in
        [Target::Off, Target::On(Algorithm::Aes256), Target::Off, Target::On(Algorithm::Aes256)]
    {
        scan::set(&bench.path(), target).unwrap();
        let path = bench.path();
        let mut calls = 0;
        let ended = scan::run(&path, &quick(), &mut |_, _, _| {
            calls += 1;
            if calls == 2 {
                scan::change_state(&path, ScanState::Suspended).unwrap();
            }
        });
        assert_eq!(ended.unwrap(), Ended::Suspended);
        assert_eq!(dump(&connection), content);
    }
    assert_eq!(
        (bench.headers()[0].state, bench.headers()[0].deks.len()),
        (EncryptionState::Encrypting, 5)
    );
    scan::change_state(&bench.path(), ScanState::Running).unwrap();
    assert_eq!(scan(&bench), Ended::Complete);
    bench.is_free_of(&old, &old_header);
    assert_eq!(dump(&connection), content);
}

/// A proof is of one key. Who turns back while it is made has made another one current, and the pages need the
/// one that was proved.
#[test]
fn a_proof_drops_no_key_that_somebody_made_an_older_one_meanwhile() {
    for mode in ["wal", "delete"] {
        let bench = Bench::new();
        let connection = bench.make(mode, 512, 9000);
        // More than the cache of a scan holds: it would read pages whose key is gone from there.
        let content = dump(&connection);
        scan::rekey(&bench.path(), None).unwrap();
        assert_eq!(scan(&bench), Ended::Complete);
        scan::set(&bench.path(), Target::Off).unwrap();
        let path = bench.path();
        let mut turned = false;
        let ended = scan::run(&path, &quick(), &mut |doing, done, _| {
            // The last page has been looked at; nothing is dropped yet.
            if doing == Doing::Proving && done > 0 && !turned {
                turned = true;
                scan::set(&path, Target::On(Algorithm::Aes256)).unwrap();
            }
        });
        assert!(turned);
        assert_eq!(ended.unwrap(), Ended::Complete, "{mode}");
        assert_eq!(bench.headers()[0].state, EncryptionState::Encrypted, "{mode}");
        assert_eq!(dump(&connection), content, "{mode}");
        assert_eq!(dump(&bench.open()), content, "{mode}");
    }
}

/// Each turn makes all pages older ones, which takes a pass each; only what comes back under one key wears a scan out.
#[test]
fn a_scan_may_be_turned_back_as_often_as_one_likes() {
    let bench = Bench::new();
    let connection = bench.make("wal", 512, 300);
    let content = dump(&connection);
    let (old, old_header) = (bench.keys(), bench.headers()[0].clone());
    scan::set(&bench.path(), Target::Off).unwrap();
    let path = bench.path();
    let on = Target::On(Algorithm::Aes256);
    let mut turns = [on, Target::Off, on, Target::Off, on].into_iter();
    let mut turned = false;
    let ended = scan::run(&path, &quick(), &mut |doing, done, _| {
        let due = doing == Doing::Proving && done > 0;
        if due && !turned {
            if let Some(target) = turns.next() {
                scan::set(&path, target).unwrap();
            }
        }
        turned = due || (turned && doing == Doing::Proving);
    });
    assert_eq!(ended.unwrap(), Ended::Complete);
    assert_eq!(turns.next(), None);
    bench.is_free_of(&old, &old_header);
    assert_eq!(dump(&connection), content);
}

#[test]
fn one_at_a_time_scans_a_database() {
    let bench = Bench::new();
    let connection = bench.make("delete", 512, 300);
    let content = dump(&connection);
    scan::rekey(&bench.path(), None).unwrap();
    let path = bench.path();
    let mut refused = None;
    let ended = scan::run(&path, &quick(), &mut |_, _, _| {
        if refused.is_none() {
            refused = Some(scan::run(&path, &quick(), &mut |_, _, _| ()));
            // The descriptor that the refusal had is not closed, and so takes no lock of SQLite's along.
            assert_eq!(dump(&connection), content);
        }
    });
    assert_eq!(ended.unwrap(), Ended::Complete);
    assert!(matches!(refused, Some(Err(DatabaseError::Scanned { .. }))), "{refused:?}");
    assert_eq!(scan(&bench), Ended::NothingToDo);
    assert_eq!(dump(&connection), content);
}

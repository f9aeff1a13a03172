//! Another connection, or another program, makes the database smaller: what the file loses then nobody may need, and nobody may read by a mapping.

use std::fs;

use pellucid_engine::scan;
use pellucid_engine::scan::{Doing, Ended};
use rusqlite::Connection;

use super::bench::Bench;
use super::quick;

/// Half of its pages can be given back with `PRAGMA incremental_vacuum`: those behind the rows of `t`. All are in the file.
fn make(bench: &Bench) -> Connection {
    let connection = bench.open();
    connection
        .execute_batch(
            "PRAGMA page_size=4096; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL;
             CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT); CREATE TABLE gone(body);
             WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 4000)
             INSERT INTO t SELECT x, printf('row %d %s', x, hex(zeroblob(400))) FROM c;
             INSERT INTO gone SELECT body FROM t; DELETE FROM gone;
             PRAGMA wal_autocheckpoint=0; PRAGMA wal_checkpoint(TRUNCATE)",
        )
        .unwrap();
    connection
}

fn shrink(connection: &Connection) {
    let mut statement = connection.prepare("PRAGMA incremental_vacuum").unwrap();
    let mut rows = statement.query([]).unwrap();
    while rows.next().unwrap().is_some() {}
}

fn checkpoint(connection: &Connection) {
    let sql = "PRAGMA wal_checkpoint(PASSIVE)";
    assert_eq!(connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

/// It was read ahead behind the last page of the reader's state, out of a mapping: SIGBUS.
#[test]
fn a_reader_goes_on_while_a_checkpoint_cuts_what_lies_behind_its_state() {
    let bench = Bench::new();
    let writer = make(&bench);
    shrink(&writer);
    let (whole, reader) = (bench.pages(), bench.open());
    reader.execute_batch("PRAGMA cache_size=-40; BEGIN").unwrap();
    let mut statement = reader.prepare("SELECT id, body FROM t").unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut read = 0;
    while let Some(row) = rows.next().unwrap() {
        read += 1;
        assert_eq!(row.get::<_, i64>(0).unwrap(), read);
        if read == 400 {
            checkpoint(&writer);
            assert!(bench.pages() < whole * 6 / 10, "the file was not cut");
        }
    }
    assert_eq!(read, 4000);
}

/// A look at the file's size serves a reader for a millisecond: here no two transactions are that far apart, and the file
/// becomes shorter and longer between them.
#[test]
fn short_transactions_go_on_while_checkpoints_cut_and_lengthen_the_file() {
    let bench = Bench::new();
    let writer = make(&bench);
    let reader = bench.open();
    reader.execute_batch("PRAGMA cache_size=-40").unwrap();
    let mut rows = reader.prepare("SELECT body FROM t WHERE id = ?1").unwrap();
    let mut read = |from: i64, to: i64| {
        for id in (from..=to).rev() {
            let body: String = rows.query_row([id], |row| row.get(0)).unwrap();
            assert!(body.starts_with(&format!("row {id} ")), "{id}: {body:.20}");
        }
    };
    let mut last = 4000;
    for round in 0..20 {
        read(1, 300);
        writer.execute_batch("DELETE FROM t WHERE id > 2000").unwrap();
        shrink(&writer);
        read(1701, 2000);
        checkpoint(&writer);
        let short = bench.pages();
        read(1701, 2000);
        last += round;
        let grow = format!(
            "WITH RECURSIVE c(x) AS (SELECT 2001 UNION ALL SELECT x + 1 FROM c WHERE x < {last})
             INSERT INTO t SELECT x, printf('row %d %s', x, hex(zeroblob(400))) FROM c"
        );
        writer.execute_batch(&grow).unwrap();
        read(last - 300, last);
        checkpoint(&writer);
        assert!(bench.pages() > short, "round {round}: the file was neither cut nor lengthened");
        read(last - 300, last);
    }
}

/// Another program keeps no locks. After a moment its cut is an error and no SIGBUS.
#[test]
fn a_reader_of_the_log_notices_a_cut_by_another_program() {
    let bench = Bench::new();
    drop(make(&bench));
    let whole = bench.file().metadata().unwrap().len();
    for pages_left in [0, 1, 20] {
        let reader = bench.open();
        reader.execute_batch("PRAGMA cache_size=-40").unwrap();
        let body = |id: i64| {
            let sql = "SELECT body FROM t WHERE id = ?1";
            reader.query_row(sql, [id], |row| row.get::<_, String>(0))
        };
        (1..=400).for_each(|id| assert!(body(id * 10).is_ok()));
        let kept = bench.whole();
        std::thread::sleep(std::time::Duration::from_millis(5));
        bench.file().set_len(16384 + 4096 * pages_left).unwrap();
        assert!(body(3990).is_err(), "{pages_left} pages are left");
        bench.put(0, &kept);
        assert_eq!(bench.file().metadata().unwrap().len(), whole);
    }
}

#[test]
fn a_scan_goes_on_while_a_checkpoint_cuts_the_file() {
    let bench = Bench::new();
    let writer = make(&bench);
    let whole = bench.pages();
    let mut cut = false;
    let survey = scan::survey(&bench.path(), &mut |_, _, _| {
        if !cut {
            shrink(&writer);
            checkpoint(&writer);
            cut = true;
        }
    });
    let survey = survey.unwrap();
    assert!(bench.pages() < whole * 6 / 10 && survey.pages == u64::from(whole), "{survey:?}");
}

/// The scan cut the file to the size of a commit that was only in the log: without the log, which a power cut may take,
/// the rest was no database.
#[test]
fn a_scan_leaves_what_the_file_is_without_its_log() {
    let bench = Bench::new();
    let writer = make(&bench);
    let whole = bench.pages();
    writer.execute_batch("UPDATE t SET body = body || '.' WHERE id = 1").unwrap();
    scan::rekey(&bench.path(), None).unwrap();
    let log_bytes = || fs::metadata(bench.beside("-wal")).unwrap().len();
    let mut shrunk = false;
    let ended = scan::run(&bench.path(), &quick(), &mut |doing, _, _| {
        // The scan has emptied the log and is about to cut the file.
        if doing == Doing::WaitingForReaders && log_bytes() == 0 && !shrunk {
            shrink(&writer);
            shrunk = true;
        }
    });
    assert_eq!(ended.unwrap(), Ended::Complete);
    assert!(shrunk && log_bytes() > 0);
    let pages: u32 = writer.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    assert!(pages < whole * 6 / 10, "{pages} of {whole}");
    let alone = Bench::new();
    fs::write(alone.path(), bench.whole()).unwrap();
    let sql = "PRAGMA integrity_check";
    let found: String = alone.open().query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
}

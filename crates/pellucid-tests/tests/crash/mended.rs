//! What these tests have found: each has to stay mended.

use pellucid::Algorithm;
use pellucid_engine::scan;
use pellucid_engine::scan::{Doing, Ended, Target};
use rusqlite::{Connection, ErrorCode};

use crate::bench::Bench;
use crate::cuts::{check_alarm, cut, judge, record, Plan};
use crate::disk::{Image, Syncs};
use crate::faults::What;
use crate::inject_all;
use crate::scans;
use crate::scenario::{Level, Mode, Over, Scenario, State, Step, Theme};
use crate::tally::Tally;
use crate::trace::Event;
use crate::watch::{self, Call, Fault, Kind};
use crate::work::{open, Work};

const SEALED: Scenario = Scenario {
    over: Over::Sealed,
    mode: Mode::Delete,
    level: Level::Full,
    page_bytes: 4096,
    powersafe: true,
    theme: Theme::Rows,
    seed: 1,
};

const ALL: Plan = Plan { steps: 12, every: 1, images: 3, again: 0, syncs: Syncs::All, only: None };

/// File, offset and length of a write.
type Place = (&'static str, u64, usize);
const SECTOR_0: Place = ("a.db", 0, 512);
const HEADER_COPY_0: Place = ("a.db", 2048, 7168);
const JOURNAL_HEADER: Place = ("a.db-journal", 0, 332);

fn check(tally: &Tally) {
    assert!(tally.images > 0);
    assert_eq!(tally.findings, [""; 0]);
}

/// After a spill the headers of a transaction's frames are written once more, and in NORMAL nothing
/// followed that brought the last one to the file.
#[test]
fn a_commit_in_normal_is_in_the_log_when_it_is_told() {
    let bench = Bench::new();
    let scenario = Scenario { mode: Mode::Wal, level: Level::Normal, ..SEALED };
    check(&cut(&bench, scenario, &Plan { images: 0, ..ALL }));
}

/// The rest of a frame that SQLite began before a sync was written into the sector of the commit.
#[test]
fn a_commit_in_the_log_has_its_sector_to_itself_without_powersafe_overwrite() {
    let bench = Bench::new();
    for page_bytes in [512, 4096] {
        let scenario = Scenario { mode: Mode::Wal, powersafe: false, page_bytes, ..SEALED };
        check(&cut(&bench, scenario, &ALL));
    }
}

/// A torn page 1 of a plain database was taken for the interrupted birth of a container.
#[test]
fn a_plain_database_with_a_torn_first_page_is_recovered_through_the_shim() {
    let bench = Bench::new();
    let scenario = Scenario { theme: Theme::Encrypt, page_bytes: 512, ..SEALED };
    check(&cut(&bench, scenario, &Plan { steps: 2, images: 30, ..ALL }));
}

/// With copy 1 of the header torn by one cut, a second one tore copy 0.
#[test]
fn a_header_survives_two_cuts() {
    let bench = Bench::new();
    let scenario = Scenario { theme: Theme::Protectors, ..SEALED };
    let directory = bench.fresh();
    bench.settle(&scenario);
    let mut work = Work::new(scenario, &directory, None);
    work.step(&scenario.steps(1)[0]).unwrap();
    work.close();
    let path = directory.join("a.db");
    let mut database = std::fs::read(&path).unwrap();
    database[9216 + 3000..9216 + 7168].fill(0);
    std::fs::write(&path, &database).unwrap();

    watch::begin(&directory);
    work.step(&Step::AddProtector).unwrap();
    let trace = watch::end();
    let mut tally = Tally::default();
    let mut torn = 0;
    for event in &trace.events {
        let Event::Write { offset, bytes, .. } = event else { continue };
        // Torn in the middle, over what was there.
        let half = bytes.len() / 1024 * 512;
        let mut left = database.clone();
        left[*offset as usize..][..half].copy_from_slice(&bytes[..half]);
        let image =
            Image { files: [("a.db".into(), left)].into(), folders: [].into(), hit: [].into() };
        let name = format!("torn at {offset}");
        // A commit that failed may be in or not.
        let is_state = |_, found: &State| work.history.contains(found);
        check_alarm(&bench, &scenario, &image, false, &name, &mut tally);
        judge(&bench, &scenario, &image, 1.., is_state, &name, &mut tally);
        database[*offset as usize..][..bytes.len()].copy_from_slice(bytes);
        torn += 1;
    }
    assert_eq!(torn, 3, "copy 1 as it should be, copy 0, copy 1");
    assert_eq!(tally.findings, [""; 0]);
}

/// Held records that could not be written were dropped, and a rollback had nothing to go by.
#[test]
fn a_rollback_finds_records_that_could_not_be_written() {
    let bench = Bench::new();
    check(&inject_all(&bench, SEALED, &[What::Call(Kind::Full)], 0, 1));
}

/// A journal that stays open went on failing for ever.
#[test]
fn a_kept_journal_works_after_a_fault() {
    let bench = Bench::new();
    for mode in [Mode::Truncate, Mode::Persist] {
        let scenario = Scenario { theme: Theme::Exclusive, mode, page_bytes: 512, ..SEALED };
        check(&inject_all(&bench, scenario, &[What::Call(Kind::Full)], 0, 2));
    }
    // From the middle of it on: the last commits' journal, and SQLite goes back by it when the file can be written again.
    let scenario = Scenario { theme: Theme::Exclusive, page_bytes: 512, ..SEALED };
    check(&inject_all(&bench, scenario, &[What::Call(Kind::Broken)], 150, 1));
}

/// A sync that could not complete a frame left its beginning, and the next transaction was refused.
#[test]
fn a_log_works_after_padding_failed() {
    let bench = Bench::new();
    let scenario = Scenario {
        mode: Mode::Wal,
        level: Level::Extra,
        page_bytes: 512,
        powersafe: false,
        ..SEALED
    };
    check(&inject_all(&bench, scenario, &[What::Call(Kind::Broken)], 1, 3));
}

/// In an exclusive locking mode no lock ended the transaction whose frames could not be written.
#[test]
fn a_log_works_after_a_fault() {
    let bench = Bench::new();
    let scenario = Scenario { theme: Theme::Exclusive, mode: Mode::Wal, page_bytes: 512, ..SEALED };
    check(&inject_all(&bench, scenario, &[What::Call(Kind::Full)], 0, 2));
}

const SIXTY_ROWS: &str =
    "PRAGMA page_size=4096; PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;
    CREATE TABLE t(id INTEGER PRIMARY KEY, k INTEGER UNIQUE, v TEXT);
    WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 60)
    INSERT INTO t SELECT id, id, printf('%03000d', 1) FROM n;
    UPDATE t SET v = printf('%03000d', 2);";

/// Which versions the rows of `SIXTY_ROWS` have.
fn versions(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    let mut statement =
        connection.prepare("SELECT DISTINCT CAST(v AS INTEGER) FROM t WHERE id <= 32")?;
    let rows = statement.query_map([], |row| row.get(0))?;
    rows.collect()
}

/// Frames that were held and could not be written when a statement came to read them: SQLite takes back that statement
/// alone, its index still has the frames of those before, and older ones lay in their places.
#[test]
fn lost_frames_of_an_open_transaction_are_not_read_from_what_lay_there() {
    let bench = Bench::new();
    let scenario = Scenario { mode: Mode::Wal, ..SEALED };
    let mut open_still = 0;
    for first in 1..32 {
        let directory = bench.fresh();
        bench.settle(&scenario);
        watch::begin(&directory);
        let connection = open(&scenario, &directory.join("a.db"), true).unwrap();
        connection.execute_batch(SIXTY_ROWS).unwrap();
        let spill =
            "PRAGMA wal_checkpoint=RESTART; PRAGMA cache_size=10; PRAGMA cache_spill=10; BEGIN;
                     UPDATE t SET v = printf('%03000d', 3) WHERE id <= 32";
        connection.execute_batch(spill).unwrap();
        watch::arm(Fault { kind: Kind::Full, at: 0, persistent: false });
        let changed = connection
            .execute("UPDATE t SET k = k + 100 WHERE id BETWEEN ? AND ? + 1", [first, first]);
        watch::disarm();
        let is_open = !connection.is_autocommit();
        let version = if is_open { 3 } else { 2 };
        // Reading then gives no page away, which would be a write and fail.
        connection.execute_batch("PRAGMA cache_size=1000; PRAGMA shrink_memory").unwrap();
        // The last of them lies behind the torn one; the first error takes all of it back.
        for id in (1..=32).rev() {
            let sql = "SELECT sum(CAST(v AS INTEGER)) FROM t WHERE id = ?";
            match connection.query_row(sql, [id], |row| row.get::<_, Option<i64>>(0)) {
                Ok(found) => assert_eq!(found, Some(version), "row {id} when row {first} failed"),
                Err(_) => break,
            }
        }
        open_still += usize::from(changed.is_err() && is_open);
        let committed = connection.execute_batch("COMMIT").is_ok();
        if !connection.is_autocommit() {
            connection.execute_batch("ROLLBACK").unwrap();
        }
        let version = if committed { 3 } else { 2 };
        assert_eq!(versions(&connection), Ok(vec![version]), "row {first}");
        connection.execute_batch("UPDATE t SET v = printf('%03000d', 4)").unwrap();
        let check = "PRAGMA integrity_check";
        assert_eq!(connection.query_row(check, [], |row| row.get(0)), Ok("ok".to_string()));
        assert_eq!(versions(&connection), Ok(vec![4]), "row {first}");
        watch::end();
    }
    assert!(open_still > 0, "no statement failed alone");
}

/// In an exclusive locking mode no lock tells the end of a transaction whose frames could not be written. Back in normal
/// mode another connection writes in their places, and the next transaction was told again that the disk is full.
#[test]
fn a_transaction_begins_without_the_failures_of_an_exclusive_one() {
    let bench = Bench::new();
    for over in [Over::Plain, Over::Sealed] {
        let scenario = Scenario { over, mode: Mode::Wal, ..SEALED };
        let directory = bench.fresh();
        bench.settle(&scenario);
        watch::begin(&directory);
        let connect = || open(&scenario, &directory.join("a.db"), over == Over::Sealed).unwrap();
        let update = |connection: &Connection, version: i64| {
            connection.execute_batch(&format!("UPDATE t SET v = printf('%03000d', {version})"))
        };
        let first = connect();
        first.execute_batch(SIXTY_ROWS).unwrap();
        first.execute_batch("PRAGMA locking_mode=EXCLUSIVE; UPDATE t SET k = k").unwrap();
        watch::arm(Fault { kind: Kind::Full, at: 0, persistent: false });
        let failed = update(&first, 3).unwrap_err();
        let struck = watch::disarm();
        assert_eq!(failed.sqlite_error_code(), Some(ErrorCode::DiskFull));
        assert!(struck.iter().all(|call| call.name == "a.db-wal"), "{struck:?}");
        // The end of a statement gives the lock back.
        first.execute_batch("PRAGMA locking_mode=NORMAL; SELECT 1 FROM t").unwrap();
        let second = connect();
        update(&second, 4).unwrap();
        // Only the pages that it changes lie in the second one's frames; it takes the lock to write before it reads them.
        assert_eq!(update(&first, 5), Ok(()), "{over:?}");
        for connection in [&first, &second] {
            assert_eq!(versions(connection), Ok(vec![5]), "{over:?}");
        }
        let check = "PRAGMA integrity_check";
        assert_eq!(first.query_row(check, [], |row| row.get(0)), Ok("ok".to_string()));
        watch::end();
    }
}

/// A connection in an exclusive locking mode, and a transaction of it whose frames could not be written.
fn fail_in_exclusive(scenario: &Scenario, directory: &std::path::Path) -> Connection {
    let connection = open(scenario, &directory.join("a.db"), true).unwrap();
    connection.execute_batch(SIXTY_ROWS).unwrap();
    connection.execute_batch("PRAGMA locking_mode=EXCLUSIVE; UPDATE t SET k = k").unwrap();
    watch::arm(Fault { kind: Kind::Full, at: 0, persistent: false });
    connection.execute_batch("UPDATE t SET v = printf('%03000d', 3)").unwrap_err();
    watch::disarm();
    connection
}

/// Whoever only reads takes no lock to write, and was told for ever that the disk is full.
#[test]
fn a_reader_is_not_told_of_the_failure_of_an_exclusive_transaction() {
    let bench = Bench::new();
    let scenario = Scenario { mode: Mode::Wal, ..SEALED };
    let directory = bench.fresh();
    bench.settle(&scenario);
    watch::begin(&directory);
    let first = fail_in_exclusive(&scenario, &directory);
    first.execute_batch("PRAGMA locking_mode=NORMAL; SELECT 1 FROM t").unwrap();
    let second = open(&scenario, &directory.join("a.db"), true).unwrap();
    second.execute_batch("UPDATE t SET v = printf('%03000d', 4)").unwrap();
    assert_eq!(versions(&first), Ok(vec![4]));
    watch::end();
}

/// What makes room on a full disk was told that the disk is full.
#[test]
fn a_checkpoint_is_not_told_of_the_failure_of_an_exclusive_transaction() {
    let bench = Bench::new();
    let scenario = Scenario { mode: Mode::Wal, ..SEALED };
    let directory = bench.fresh();
    bench.settle(&scenario);
    watch::begin(&directory);
    let connection = fail_in_exclusive(&scenario, &directory);
    let checkpoint = "PRAGMA wal_checkpoint=TRUNCATE";
    assert_eq!(connection.query_row(checkpoint, [], |row| row.get::<_, i64>(0)), Ok(0));
    assert_eq!(std::fs::metadata(directory.join("a.db-wal")).unwrap().len(), 0);
    watch::end();
}

/// A read that came upon held frames failed and took the transaction back, and the next one failed as well.
#[test]
fn a_failed_read_of_an_exclusive_transaction_ends_with_it() {
    let bench = Bench::new();
    let scenario = Scenario { mode: Mode::Wal, ..SEALED };
    for first in 1..32 {
        let directory = bench.fresh();
        bench.settle(&scenario);
        watch::begin(&directory);
        let connection = open(&scenario, &directory.join("a.db"), true).unwrap();
        connection.execute_batch(SIXTY_ROWS).unwrap();
        let spill =
            "PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=10; PRAGMA cache_spill=10; BEGIN;
                     UPDATE t SET v = printf('%03000d', 3) WHERE id <= 32";
        connection.execute_batch(spill).unwrap();
        watch::arm(Fault { kind: Kind::Full, at: 0, persistent: false });
        let sql = "SELECT max(v) FROM t WHERE id BETWEEN ?1 AND ?1 + 1";
        let _ = connection.query_row(sql, [first], |row| row.get::<_, String>(0));
        watch::disarm();
        if !connection.is_autocommit() {
            connection.execute_batch("ROLLBACK").unwrap();
        }
        let next = connection.execute_batch("UPDATE t SET v = printf('%03000d', 4)");
        assert_eq!(next, Ok(()), "row {first}");
        assert_eq!(versions(&connection), Ok(vec![4]), "row {first}");
        watch::end();
    }
}

/// A sector that cannot be read failed the reading of what comes before it, which had been read ahead with it.
#[test]
fn what_cannot_be_read_ahead_fails_nothing_before_it() {
    let bench = Bench::new();
    let scenario = Scenario { mode: Mode::Wal, ..SEALED };
    let directory = bench.fresh();
    bench.settle(&scenario);
    watch::begin(&directory);
    let connection = open(&scenario, &directory.join("a.db"), true).unwrap();
    connection.execute_batch(SIXTY_ROWS).unwrap();
    let mut ahead = 0;
    for at in 0..40 {
        connection
            .execute_batch("PRAGMA cache_size=0; PRAGMA shrink_memory; PRAGMA cache_size=10")
            .unwrap();
        watch::arm(Fault { kind: Kind::Broken, at, persistent: false });
        let found = versions(&connection);
        let struck = watch::disarm();
        if struck.iter().any(|call| call.call == Call::Read && call.length > 2 * 4200) {
            assert_eq!(found, Ok(vec![2]), "call {at}");
            ahead += 1;
        }
    }
    watch::end();
    assert!(ahead > 0, "nothing was read ahead");
}

/// Kills the process after each such write; the power goes while the next process goes on
/// from there.
fn kill_after(bench: &Bench, scenario: Scenario, plan: Plan, write: Place) -> Tally {
    let recorded = record(bench, scenario, &scenario.steps(plan.steps));
    let wanted = |event: &Event| match event {
        Event::Write { file, offset: at, bytes } => {
            (recorded.trace.files[*file].as_str(), *at, bytes.len()) == write
        }
        _ => false,
    };
    let events = recorded.trace.events.iter().enumerate();
    let mut tally = Tally::default();
    for (at, _) in events.filter(|(_, event)| wanted(event)).take(12) {
        let plan = Plan { again: 1, only: Some((at, 0)), ..plan };
        tally.merge(cut(bench, scenario, &plan));
    }
    tally
}

/// Frames were sealed under a generation that the header on disk did not know yet.
#[test]
fn a_generation_is_on_disk_before_it_seals() {
    let scenario =
        Scenario { theme: Theme::Generations, mode: Mode::Wal, page_bytes: 512, ..SEALED };
    let plan = Plan { steps: 6, images: 4, ..ALL };
    check(&kill_after(&Bench::new(), scenario, plan, HEADER_COPY_0));
}

/// A change of the header killed between its copies, and another one that loses power. With three
/// protectors more than one sector of a header changes, so that it can be torn.
pub fn kill_between_header_copies(bench: &Bench, syncs: Syncs) -> Tally {
    let scenario = Scenario { theme: Theme::Protectors, ..SEALED };
    kill_after(bench, scenario, Plan { steps: 3, images: 120, syncs, ..ALL }, HEADER_COPY_0)
}

/// Copy 1 was mended while copy 0 was not on disk: both could be torn.
#[test]
fn a_header_copy_is_on_disk_before_the_other_is_mended() {
    check(&kill_between_header_copies(&Bench::new(), Syncs::All));
}

/// A hot journal was played back whose name was not on disk: pages that were sealed again, and torn, had
/// nothing to come back from.
#[test]
fn a_journal_that_is_played_back_has_its_name_on_disk() {
    let scenario = Scenario { level: Level::Normal, ..SEALED };
    let plan = Plan { steps: 4, images: 12, ..ALL };
    check(&kill_after(&Bench::new(), scenario, plan, JOURNAL_HEADER));
}

/// A journal was written over whose end was not on disk, and a cut brought its old header back: a part of a
/// commit was undone, as with plain SQLite.
#[test]
fn an_ended_journal_is_on_disk_before_another_is_written_over_it() {
    for level in [Level::Normal, Level::Full] {
        let scenario = Scenario { mode: Mode::Persist, level, page_bytes: 512, ..SEALED };
        let plan = Plan { images: 12, ..ALL };
        check(&kill_after(&Bench::new(), scenario, plan, JOURNAL_HEADER));
    }
}

/// Pages were laid over a database whose sector 0 did not tell so on disk yet.
#[test]
fn a_switch_is_on_disk_before_another_lays_on() {
    let bench = Bench::new();
    for theme in [Theme::Encrypt, Theme::Decrypt] {
        let plan = Plan { steps: 4, images: 4, ..ALL };
        check(&kill_after(&bench, Scenario { theme, ..SEALED }, plan, SECTOR_0));
    }
}

/// A sector 0 that was written and could not be synced: the copy was deleted, and all was lost.
#[test]
fn a_switch_that_cannot_be_synced_keeps_its_copy() {
    let bench = Bench::new();
    for theme in [Theme::Encrypt, Theme::Decrypt] {
        let scenario = Scenario { theme, page_bytes: 512, ..SEALED };
        check(&inject_all(&bench, scenario, &[What::Call(Kind::Full)], 0, 1));
    }
}

/// A checkpoint of a connection with `synchronous=OFF` brings pages to the file and syncs nothing. What comes back in
/// its older form after a cut is lost once the older key is dropped.
#[test]
fn what_others_have_not_synced_is_on_disk_before_a_key_is_dropped() {
    let bench = Bench::new();
    let scenario = Scenario {
        theme: Theme::Rekey,
        mode: Mode::Wal,
        level: Level::Off,
        page_bytes: 512,
        ..SEALED
    };
    let directory = bench.fresh();
    bench.settle(&scenario);
    watch::begin(&directory);
    let mut work = Work::new(scenario, &directory, None);
    let first = Step::Commit { changes: (1..=20).map(|id| (id, 1)).collect(), spill: false };
    work.step(&first).unwrap();
    work.step(&Step::Checkpoint("TRUNCATE")).unwrap();
    work.step(&Step::Switch(Target::NewKey(Algorithm::Aes128))).unwrap();
    let (path, mut checkpointed) = (work.path(), false);
    let ended = scan::run(&path, &scans::slow(), &mut |doing, _, _| {
        if doing == Doing::WaitingForReaders && !checkpointed {
            checkpointed = true;
            work.step(&Step::Checkpoint("PASSIVE")).unwrap();
        }
    });
    assert_eq!(ended.unwrap(), Ended::Complete);
    work.close();
    let trace = watch::end();
    let is_main = |file: &usize| trace.files[*file] == "a.db";
    let place = |wanted: &dyn Fn(&Event) -> bool| trace.events.iter().rposition(wanted).unwrap();
    let dropped =
        place(&|event| matches!(event, Event::Write { file, offset: 2048, .. } if is_main(file)));
    let page = place(
        &|event| matches!(event, Event::Write { file, offset, .. } if is_main(file) && *offset >= 16384),
    );
    let synced = trace.events[page..dropped]
        .iter()
        .any(|event| matches!(event, Event::Sync { file } if is_main(file)));
    assert!(page < dropped && synced, "page {page}, header {dropped}: not synced in between");
}

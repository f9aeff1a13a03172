//! Goal: many processes read and write one sealed database while random ones are killed; no
//! acknowledged commit is lost and the database stays whole.
//!
//! Method: the parent runs ten children that write and read in random transactions, and ten that only
//! read. A writer says over its pipe what it is about to commit, and again after COMMIT returned; so what
//! is acknowledged lies outside of the process that is killed with SIGKILL at a random moment. After each
//! kill, and at the end, every row is compared with what was acknowledged: a row is at its last
//! acknowledged version, or at the one that was on its way when its writer was killed. A row has one
//! writer, so both are known. A reader proves each row, that a snapshot stays as it is, and that no row
//! ever goes back to an older version.
//!
//! CI: 20 s in each mode from the first commits on, some six kills a second; PELLUCID_SOAK_SECONDS, PELLUCID_SOAK_MODE,
//! PELLUCID_SOAK_SEED, PELLUCID_SOAK_PAUSE_MS (between kills, in the mean) and PELLUCID_SOAK_OVER
//! choose other runs (tests/campaigns/ten-processes). It can fail: `a_lost_commit_is_noticed`, `a_row_that_goes_back_is_noticed`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use pellucid_tests::processes;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{channel, Sender};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use processes::footprint::Footprint;
use processes::{child, number, role, rows, scratch, told, Over, Random};

const WRITERS: i64 = 10;
/// With the readers, whose numbers follow those of the writers.
const PROCESSES: i64 = 20;
/// Row ids of one writer.
const ROWS_EACH: i64 = 40;
/// A run with fewer has tested nothing.
const LEAST_KILLS: u64 = 6;
const LEAST_COMMITS: u64 = 51;
/// However busy the machine is.
const LONGEST_START: Duration = Duration::from_secs(600);

/// Version 0 stands for "no such row".
type State = BTreeMap<i64, i64>;

/// One change: row and new version, 0 deletes.
type Change = (i64, i64);

#[test]
fn child_entry() {
    let Some(mode) = role() else { return };
    let database = PathBuf::from(told("CRASH_DATABASE"));
    let me: i64 = told("CRASH_ME").parse().unwrap();
    let mut random = Random(told("CRASH_SEED").parse().unwrap());
    let mut version: i64 = told("CRASH_VERSION").parse().unwrap();
    let connection = over().open(&database);
    settle(&connection, &mode);
    let mut out = std::io::stdout();
    let mut newest = State::new();
    loop {
        match random.below(10u64) {
            0..=2 => read_some(&connection, &mut random, &mut newest),
            3 => read_all(&connection, &mut newest),
            4 => read_twice(&connection, &mut random, &mut newest),
            _ if me >= WRITERS => read_some(&connection, &mut random, &mut newest),
            _ => write_some(&connection, me, &mut version, &mut random, &mut out),
        }
        // Among readers that overlap for ever a log begins anew only where somebody waits for them.
        if me < WRITERS && mode == "wal" && random.below(100u64) == 0 {
            let how = ["RESTART", "TRUNCATE"][random.below(2usize)];
            let sql = format!("PRAGMA wal_checkpoint({how})");
            retried(|| connection.query_row(&sql, [], |_| Ok(())));
        }
        // Some die and come back by themselves, in the ordinary way.
        if random.below(400u64) == 0 {
            return;
        }
    }
}

/// PELLUCID_SOAK_OVER=plain runs the control.
fn over() -> Over {
    std::env::var("PELLUCID_SOAK_OVER").map_or(Over::Sealed, |name| Over::parse(&name))
}

fn settle(connection: &Connection, mode: &str) {
    let settings = match mode {
        "wal" => "PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=50; PRAGMA cache_size=20;",
        _ => "PRAGMA synchronous=OFF; PRAGMA cache_size=20;",
    };
    retried(|| connection.execute_batch(settings));
}

/// Busy is no failure; whatever else is.
fn retried<T>(mut call: impl FnMut() -> rusqlite::Result<T>) -> Option<T> {
    for _ in 0..1000 {
        match call() {
            Ok(done) => return Some(done),
            Err(rusqlite::Error::SqliteFailure(error, _))
                if matches!(error.code, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {}
            Err(error) => fail(&error.to_string()),
        }
    }
    fail("busy for ever");
}

fn fail(what: &str) -> ! {
    println!("\nfailed {what}");
    panic!("{what}");
}

/// A row that was seen is never seen older.
fn went_back(newest: &mut State, found: &[(i64, i64)]) -> Option<String> {
    for (id, version) in found {
        let before = newest.insert(*id, *version).unwrap_or(0);
        if *version < before {
            return Some(format!("row {id} went back from version {before} to {version}"));
        }
    }
    None
}

fn look(newest: &mut State, found: &[(i64, i64)]) {
    if let Some(what) = went_back(newest, found) {
        fail(&what);
    }
}

fn read_all(connection: &Connection, newest: &mut State) {
    look(newest, &retried(|| rows::read(connection)).unwrap());
}

/// A snapshot is the same after a while.
fn read_twice(connection: &Connection, random: &mut Random, newest: &mut State) {
    let pause = Duration::from_millis(random.below(10u64));
    let (first, second) = retried(|| {
        let snapshot = connection.unchecked_transaction()?;
        let first = rows::read(&snapshot)?;
        std::thread::sleep(pause);
        Ok((first, rows::read(&snapshot)?))
    })
    .unwrap();
    if first != second {
        fail("a snapshot changed");
    }
    look(newest, &first);
}

fn read_some(connection: &Connection, random: &mut Random, newest: &mut State) {
    let id = 1 + random.below((WRITERS * ROWS_EACH) as u64) as i64;
    let found = retried(|| {
        let mut statement =
            connection.prepare_cached("SELECT version, payload, sum FROM t WHERE id = ?1")?;
        let mut found = statement.query([id])?;
        let Some(row) = found.next()? else { return Ok(None) };
        let (version, payload, sum): (i64, Vec<u8>, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if payload != rows::payload(id, version) || sum != rows::sum(id, version, &payload) {
            fail(&format!("row {id} has wrong content"));
        }
        Ok(Some((id, version)))
    });
    look(newest, found.unwrap().as_slice());
}

fn write_some(
    connection: &Connection,
    me: i64,
    version: &mut i64,
    random: &mut Random,
    out: &mut impl Write,
) {
    let mut changes: Vec<Change> = Vec::new();
    for _ in 0..1 + random.below(12u64) {
        let id = 1 + me * ROWS_EACH + random.below(ROWS_EACH as u64) as i64;
        *version += 1;
        let to = if random.below(6u64) == 0 { 0 } else { *version };
        changes.retain(|(known, _)| *known != id);
        changes.push((id, to));
    }
    let keeps = random.below(8u64) != 0;
    let wrote = retried(|| {
        let transaction =
            rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        for (id, to) in &changes {
            match to {
                0 => drop(transaction.execute("DELETE FROM t WHERE id = ?1", [id])?),
                _ => rows::put(&transaction, *id, *to)?,
            }
        }
        if !keeps {
            return transaction.rollback();
        }
        let list: Vec<String> = changes.iter().map(|(id, to)| format!("{id}={to}")).collect();
        // libtest's own lines never begin so; the newline ends whatever it left open.
        writeln!(out, "\nabout {}", list.join(" ")).unwrap();
        out.flush().unwrap();
        transaction.commit()
    });
    if keeps && wrote.is_some() {
        writeln!(out, "\ndone").unwrap();
        out.flush().unwrap();
    }
}

enum Event {
    About(i64, Vec<Change>),
    Done(i64),
    Failed(i64, String),
    Gone(i64),
}

/// What the parent knows of one writer.
#[derive(Default)]
struct Writer {
    acknowledged: State,
    /// Said to be about to be committed, and not acknowledged.
    on_its_way: Option<Vec<Change>>,
    version: i64,
}

impl Writer {
    fn acknowledge(&mut self) {
        for (id, to) in self.on_its_way.take().unwrap_or_default() {
            self.acknowledged.insert(id, to);
        }
    }

    /// Its rows after its process is gone: all of the change on its way is there, or nothing.
    fn settle(&mut self, found: &State) -> Result<(), String> {
        let there = |expected: &State| {
            expected.iter().all(|(id, to)| found.get(id).copied().unwrap_or(0) == *to)
        };
        if there(&self.acknowledged) {
            self.on_its_way = None;
            return Ok(());
        }
        let before = self.acknowledged.clone();
        let way = self.on_its_way.clone();
        self.acknowledge();
        if there(&self.acknowledged) {
            return Ok(());
        }
        let wrong: Vec<_> = before
            .iter()
            .filter(|(id, to)| found.get(id).copied().unwrap_or(0) != **to)
            .map(|(id, to)| (id, to, found.get(id)))
            .collect();
        Err(format!(
            "acknowledged but not found (row, version, there): {wrong:?}; on its way {way:?}"
        ))
    }
}

fn start(
    database: &Path,
    mode: &str,
    me: i64,
    version: i64,
    seed: u64,
    to: Sender<Event>,
) -> Child {
    let mut child = child(mode)
        .env("CRASH_DATABASE", database)
        .env("CRASH_ME", me.to_string())
        .env("CRASH_VERSION", version.to_string())
        .env("CRASH_SEED", seed.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let event = match line.split_once(' ').unwrap_or((&line, "")) {
                ("about", list) => {
                    let pair = |text: &str| {
                        let (id, to) = text.split_once('=')?;
                        Some((id.parse().ok()?, to.parse().ok()?))
                    };
                    match list.split(' ').map(pair).collect() {
                        Some(changes) => Event::About(me, changes),
                        None => continue, // cut off by the kill
                    }
                }
                ("done", _) => Event::Done(me),
                ("failed", what) => Event::Failed(me, what.to_owned()),
                _ => continue,
            };
            to.send(event).unwrap();
        }
        to.send(Event::Gone(me)).unwrap();
    });
    child
}

fn rows_now(database: &Path) -> State {
    let connection = over().open(database);
    retried(|| rows::read(&connection)).unwrap().into_iter().collect()
}

/// The most that any of the children holds. All of them together tell less: some are always just born, and how many
/// depends on the machine.
fn footprint(children: &[Child]) -> Footprint {
    let each = children.iter().filter_map(|child| Footprint::of(child.id()));
    each.reduce(Footprint::most).unwrap_or_default()
}

/// One run: kills, commits.
fn soak(mode: &str, seconds: u64, seed: u64) -> (u64, u64) {
    let pause = number("PELLUCID_SOAK_PAUSE_MS", 160);
    println!("ten writers, ten readers, {mode}, {seconds} s, a kill in {pause} ms, seed {seed}");
    let scratch = scratch();
    let database = scratch.path().join("live/x.db");
    std::fs::create_dir_all(database.parent().unwrap()).unwrap();
    {
        let connection = over().open(&database);
        rows::create(&connection);
        connection.execute_batch(&format!("PRAGMA journal_mode={mode}")).unwrap();
    }
    let mut random = Random(seed);
    let (to, events) = channel();
    let mut writers: Vec<Writer> = (0..PROCESSES).map(|_| Writer::default()).collect();
    let mut children: Vec<Child> =
        (0..PROCESSES).map(|me| start(&database, mode, me, 0, random.draw(), to.clone())).collect();
    let length = Duration::from_secs(seconds);
    let mut next_kill = Instant::now();
    let (begun, mut ran, mut looked) = (Instant::now(), Duration::ZERO, Instant::now());
    let mut footprints: Vec<Footprint> = Vec::new();
    let (mut kills, mut commits, mut gone, mut ending) = (0, 0, 0, false);
    while gone < PROCESSES {
        // A time for which all of this was stopped does not count, nor one in which processes are only born.
        if commits >= LEAST_COMMITS {
            ran += looked.elapsed().min(Duration::from_secs(5));
        } else {
            assert!(begun.elapsed() < LONGEST_START, "{commits} commits in {:?}", begun.elapsed());
        }
        looked = Instant::now();
        let looks = [length / 10, length / 2, length * 19 / 20];
        if looks.get(footprints.len()).is_some_and(|look| ran >= *look) {
            let one = footprint(&children);
            println!("after {} s, {commits} commits: {one}", ran.as_secs());
            footprints.push(one);
        }
        let wait = next_kill.saturating_duration_since(Instant::now());
        match events.recv_timeout(wait.min(Duration::from_millis(200))) {
            Ok(Event::About(me, changes)) => {
                let writer = &mut writers[me as usize];
                let newest = changes.iter().map(|(_, to)| *to).max().unwrap_or(0);
                writer.version = writer.version.max(newest);
                writer.on_its_way = Some(changes);
            }
            Ok(Event::Done(me)) => {
                commits += 1;
                writers[me as usize].acknowledge();
            }
            Ok(Event::Failed(me, what)) => panic!("process {me} failed: {what}"),
            Ok(Event::Gone(me)) => {
                let status = children[me as usize].wait().unwrap();
                let killed = status.signal() == Some(libc::SIGKILL);
                assert!(killed || status.success(), "process {me}: {status}");
                if let Err(lost) = writers[me as usize].settle(&rows_now(&database)) {
                    panic!("writer {me}: {lost}");
                }
                if ending {
                    gone += 1;
                } else {
                    let version = writers[me as usize].version + 100;
                    let seed = random.draw();
                    children[me as usize] = start(&database, mode, me, version, seed, to.clone());
                }
            }
            Err(_) => {}
        }
        if !ending && ran >= length && kills >= LEAST_KILLS && footprints.len() == looks.len() {
            ending = true;
            children.iter_mut().for_each(|child| child.kill().unwrap());
        } else if !ending && Instant::now() >= next_kill {
            children[random.below(PROCESSES as u64) as usize].kill().unwrap();
            kills += 1;
            next_kill = Instant::now() + Duration::from_millis(1 + random.below(2 * pause));
        }
    }
    let connection = over().open(&database);
    rows::check_integrity(&connection);
    let found: State = rows::read(&connection).unwrap().into_iter().collect();
    let expected: State = writers
        .iter()
        .flat_map(|writer| writer.acknowledged.clone())
        .filter(|(_, version)| *version != 0)
        .collect();
    assert_eq!(found, expected);
    // Room for what a transaction has open, and more where a log's length moves too.
    let start = footprints[0];
    let limit = Footprint {
        descriptors: start.descriptors / 2 + 2,
        mappings: start.mappings / 2,
        memory_kib: start.memory_kib / 2,
        shared_kib: 3 * start.shared_kib + 1024,
    };
    assert_eq!(footprints[2].growth(&start, &limit), None);
    let footprints = Footprint::columns(&footprints);
    println!("RESULT {mode} {seconds} {seed} {kills} {commits} {footprints} ok");
    (kills, commits)
}

fn run(mode: &str) {
    if std::env::var("PELLUCID_SOAK_MODE").is_ok_and(|only| only != mode) {
        return;
    }
    let seed = number("PELLUCID_SOAK_SEED", 1);
    let (kills, commits) = soak(mode, number("PELLUCID_SOAK_SECONDS", 20), seed);
    let enough = kills >= LEAST_KILLS && commits >= LEAST_COMMITS;
    assert!(enough, "{kills} kills, {commits} commits: nothing was tested");
}

#[test]
fn wal() {
    run("wal");
}

#[test]
fn delete() {
    run("delete");
}

#[test]
fn a_row_that_goes_back_is_noticed() {
    let mut newest = State::new();
    assert_eq!(went_back(&mut newest, &[(1, 5), (2, 7)]), None);
    assert_eq!(went_back(&mut newest, &[(2, 7), (1, 6)]), None);
    assert!(went_back(&mut newest, &[(1, 5)]).is_some());
}

/// The comparison can fail.
#[test]
fn a_lost_commit_is_noticed() {
    let mut writer = Writer { on_its_way: Some(vec![(1, 5), (2, 6)]), ..Writer::default() };
    writer.acknowledge();
    assert!(writer.settle(&State::from([(1, 5), (2, 6)])).is_ok());
    assert!(writer.settle(&State::from([(1, 5), (2, 4)])).is_err());
    writer.on_its_way = Some(vec![(1, 7), (2, 0)]);
    assert!(writer.settle(&State::from([(1, 7), (2, 6)])).is_err());
}

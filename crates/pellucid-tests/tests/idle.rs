//! Goal: first encryption and decryption lose nothing, wherever they are killed and whoever has the
//! database open: it opens complete, and an idle connection gets an error or right data, never
//! writing where nobody will read.
//!
//! Method: the `pellucid` program converts under tests/tools/killat.c, once for each of its calls that
//! change files, whole and torn. After each kill the database is opened through the shim, which finishes
//! what is unfinished; every row is proved, and the conversion is run again to its end. The same with an
//! idle connection of this process, shimmed or plain, that then reads and writes. With two writers: 8 MiB
//! and some steps here, more by PELLUCID_CONVERT_MIB and PELLUCID_CONVERT_KILLS.
//!
//! It can fail: `a_lost_row_is_noticed`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use pellucid_tests::processes;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use processes::{
    built, child, copy_files, key_beside, key_in_environment, load_extension, number, role, rows,
    run_counted, scratch, told, Ended, Over, Random,
};

/// Opens whatever is there through the shim; the key comes from the environment, so that a plain
/// database is no mistake.
fn open_any(database: &Path) -> rusqlite::Result<Connection> {
    load_extension();
    key_in_environment();
    let uri = format!("file:{}?vfs=pellucid", database.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri, flags)?;
    connection.busy_timeout(Duration::from_secs(300))?;
    Ok(connection)
}

fn is_plain(database: &Path) -> bool {
    let mut magic = [0; 16];
    std::fs::File::open(database).unwrap().read_exact(&mut magic).unwrap();
    &magic == b"SQLite format 3\0"
}

fn pellucid(what: &str, database: &Path) -> Command {
    pellucid_for(what, database, "300")
}

fn pellucid_for(what: &str, database: &Path, seconds: &str) -> Command {
    let mut command = Command::new(built("pellucid"));
    command
        .args([what, "--quiet", "--timeout", seconds, "--key-file"])
        .args([&key_beside(database), database])
        .env("PELLUCID_HOME", database.parent().unwrap().with_file_name("home"))
        .stdin(Stdio::null());
    command
}

/// Plain or sealed, with rows 1 to `count` at version 1.
fn prepare(over: Over, mode: &str, database: &Path, count: i64) {
    std::fs::create_dir_all(database.parent().unwrap()).unwrap();
    let connection = over.open(database);
    connection
        .execute_batch(&format!("PRAGMA journal_mode={mode}; PRAGMA synchronous=OFF"))
        .unwrap();
    rows::create(&connection);
    connection.execute_batch("BEGIN").unwrap();
    for id in 1..=count {
        rows::put(&connection, id, 1).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
}

/// The rows, after SQLite's own check.
fn content(database: &Path) -> Vec<(i64, i64)> {
    let connection = open_any(database).unwrap();
    rows::check_integrity(&connection);
    rows::read(&connection).unwrap()
}

/// The conversion once more, if it is still due. A copy may be left only by one that was killed when
/// all but its removal was done; the next conversion takes it away.
fn finish(what: &str, database: &Path) {
    if is_plain(database) == (what == "encrypt") {
        let output = pellucid(what, database).output().unwrap();
        assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
        let copy = database.with_file_name("x.db-pellucid");
        assert!(!copy.exists(), "{what} left its copy behind");
    }
    assert_eq!(is_plain(database), what == "decrypt");
}

const SMALL: i64 = 40;
/// The commit point is a write of one sector, which a disk writes whole or not at all.
const SECTOR: u32 = 512;

fn from(what: &str) -> Over {
    if what == "encrypt" {
        Over::Plain
    } else {
        Over::Sealed
    }
}

/// Kills `what` at each call; `with` has the database open, if it wants, before and after.
fn kill_everywhere(what: &str, mode: &str, idle: Option<Over>, torn: u32) {
    let begun = Instant::now();
    let scratch = scratch();
    let (model, live) = (scratch.path().join("model"), scratch.path().join("live"));
    let database = live.join("x.db");
    prepare(from(what), mode, &model.join("x.db"), SMALL);
    copy_files(&model, &live);
    let calls = run_counted(pellucid(what, &database), &live, None, 0).whole();
    let expected: Vec<(i64, i64)> = (1..=SMALL).map(|id| (id, 1)).collect();
    assert_eq!(content(&database), expected);
    let mut told = BTreeMap::new();
    for at in 1..=calls {
        copy_files(&model, &live);
        let place = format!("{what} {mode} killed at {at} of {calls}, torn {torn}, idle {idle:?}");
        let watch = idle.map(|over| Idle::new(over, &database));
        let ended = run_counted(pellucid(what, &database), &live, Some(at), torn);
        // The last calls depend on what SQLite finds; a conversion that came to its end is fine too.
        assert!(ended.killed || ended.output.status.success(), "{place}: {ended:?}");
        let mut expected = expected.clone();
        if let Some(watch) = watch {
            let (word, wrote) = watch.go_on(&expected, &place);
            expected.extend(wrote);
            *told.entry(word).or_insert(0) += 1;
        }
        let found = std::panic::catch_unwind(|| content(&database));
        assert!(found.is_ok(), "{place}: does not open");
        assert_eq!(found.unwrap(), expected, "{place}");
        finish(what, &database);
        assert_eq!(content(&database), expected, "{place}");
    }
    println!(
        "{what} {mode} torn {torn} idle {idle:?}: {calls} calls, {told:?}, {:.1} s",
        begun.elapsed().as_secs_f64()
    );
}

/// A connection that has read everything once and holds no lock.
struct Idle {
    connection: Connection,
}

impl Idle {
    fn new(over: Over, database: &Path) -> Self {
        let connection = match over {
            Over::Plain => Over::Plain.open(database),
            Over::Sealed => open_any(database).unwrap(),
        };
        connection.busy_timeout(Duration::from_millis(50)).unwrap();
        rows::read(&connection).unwrap();
        Self { connection }
    }

    /// Writes, then reads; what happened, and the row that was acknowledged.
    fn go_on(self, expected: &[(i64, i64)], place: &str) -> (String, Option<(i64, i64)>) {
        let wrote = rows::put(&self.connection, 5000, 7).map(|()| (5000, 7));
        let mut right = expected.to_vec();
        right.extend(wrote.as_ref().ok());
        let read = rows::read(&self.connection);
        if let Ok(found) = &read {
            assert_eq!(found, &right, "{place}: the idle connection read wrong data");
        }
        let word = |ok| if ok { "works" } else { "error" };
        (format!("write {}, read {}", word(wrote.is_ok()), word(read.is_ok())), wrote.ok())
    }
}

#[test]
fn child_entry() {
    if role().as_deref() != Some("writer") {
        return;
    }
    let database = PathBuf::from(told("CRASH_DATABASE"));
    let me: i64 = told("CRASH_ME").parse().unwrap();
    let mut out = std::io::stdout();
    let mut version = 1;
    loop {
        let Ok(connection) = open_any(&database) else {
            std::thread::sleep(Duration::from_millis(2));
            continue;
        };
        let _ = connection.execute_batch("PRAGMA synchronous=OFF");
        loop {
            version += 1;
            let id = 1_000_000 * (me + 1) + version % 50;
            if rows::put(&connection, id, version).is_err() {
                break;
            }
            writeln!(out, "\ndone {id} {version}").unwrap();
            out.flush().unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A writer and what it acknowledged.
struct Writer {
    child: Child,
    lines: Receiver<(i64, i64)>,
}

impl Writer {
    fn start(database: &Path, me: i64) -> Self {
        let mut child = child("writer")
            .env("CRASH_DATABASE", database)
            .env("CRASH_ME", me.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (to, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let mut words = line.split(' ');
                if words.next() == Some("done") {
                    let mut next = || words.next()?.parse().ok();
                    if let (Some(id), Some(version)) = (next(), next()) {
                        let _ = to.send((id, version));
                    }
                }
            }
        });
        lines.recv_timeout(Duration::from_secs(300)).expect("the writer does not write");
        Self { child, lines }
    }

    /// Lets it write on for a moment, then ends it; the newest acknowledged version of each row.
    fn end(mut self) -> BTreeMap<i64, i64> {
        std::thread::sleep(Duration::from_millis(30));
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.lines.iter().collect()
    }
}

/// Every acknowledged version is there, or a newer one of the same row that was on its way.
fn check_acknowledged(found: &BTreeMap<i64, i64>, acknowledged: &BTreeMap<i64, i64>) -> bool {
    acknowledged.iter().all(|(id, version)| found.get(id).is_some_and(|there| there >= version))
}

fn convert_with_writers(what: &str) {
    let mib: i64 = number("PELLUCID_CONVERT_MIB", 8);
    let kills = number("PELLUCID_CONVERT_KILLS", 12);
    let seed = number("PELLUCID_CONVERT_SEED", 20_261_121);
    println!("{what} {mib} MiB with two writers, {kills} kills, seed {seed}");
    let mut random = Random(seed);
    let scratch = scratch();
    let (model, live) = (scratch.path().join("model"), scratch.path().join("live"));
    let database = live.join("x.db");
    let rows_of_model = mib * 1024 * 1024 / 600;
    prepare(from(what), "DELETE", &model.join("x.db"), rows_of_model);
    copy_files(&model, &live);
    let calls = run_counted(pellucid(what, &database), &live, None, 0).whole();
    for n in 0..=kills {
        copy_files(&model, &live);
        // Half of them anywhere, half near the end, where the switch is; the last one runs through.
        let at = match n {
            n if n == kills => None,
            n if n % 2 == 0 => Some(1 + random.below(calls)),
            _ => Some(calls - random.below(calls.min(mib as u64 * 6))),
        };
        let place = format!("{what} killed at {at:?} of {calls}");
        let writers: Vec<Writer> = (0..2).map(|me| Writer::start(&database, me)).collect();
        let ended: Ended =
            run_counted(pellucid(what, &database), &live, at, if n % 3 == 0 { SECTOR } else { 0 });
        assert!(ended.killed || ended.output.status.success(), "{place}: {ended:?}");
        let acknowledged: BTreeMap<i64, i64> = writers.into_iter().flat_map(Writer::end).collect();
        let found: BTreeMap<i64, i64> = content(&database).into_iter().collect();
        assert!(check_acknowledged(&found, &acknowledged), "{place}: acknowledged rows are lost");
        assert!((1..=rows_of_model).all(|id| found.get(&id) == Some(&1)), "{place}: rows are lost");
        finish(what, &database);
        assert_eq!(content(&database).into_iter().collect::<BTreeMap<_, _>>(), found, "{place}");
    }
}

macro_rules! each {
    ($($test:ident: $call:expr;)*) => {
        $(#[test]
        fn $test() {
            $call;
        })*
    };
}

each! {
    encrypt_killed_rollback: kill_everywhere("encrypt", "DELETE", None, 0);
    encrypt_killed_torn: kill_everywhere("encrypt", "DELETE", None, SECTOR);
    encrypt_killed_wal: kill_everywhere("encrypt", "WAL", None, 0);
    decrypt_killed_rollback: kill_everywhere("decrypt", "DELETE", None, 0);
    decrypt_killed_torn: kill_everywhere("decrypt", "DELETE", None, SECTOR);
    decrypt_killed_wal: kill_everywhere("decrypt", "WAL", None, 0);
    encrypt_killed_idle_plain: kill_everywhere("encrypt", "DELETE", Some(Over::Plain), 0);
    encrypt_killed_idle_shimmed: kill_everywhere("encrypt", "DELETE", Some(Over::Sealed), 0);
    decrypt_killed_idle_shimmed: kill_everywhere("decrypt", "DELETE", Some(Over::Sealed), 0);
    encrypt_with_two_writers: convert_with_writers("encrypt");
    decrypt_with_two_writers: convert_with_writers("decrypt");
}

/// An idle connection across a whole conversion, also one that only reads afterwards.
#[test]
fn idle_across_the_whole_switch() {
    for (what, over) in
        [("encrypt", Over::Plain), ("encrypt", Over::Sealed), ("decrypt", Over::Sealed)]
    {
        let scratch = scratch();
        let database = scratch.path().join("live/x.db");
        prepare(from(what), "DELETE", &database, SMALL);
        let mut expected: Vec<(i64, i64)> = (1..=SMALL).map(|id| (id, 1)).collect();
        let reader = Idle::new(over, &database);
        let writer = Idle::new(over, &database);
        finish(what, &database);
        let read = rows::read(&reader.connection);
        assert!(
            read.as_ref().map_or(true, |found| *found == expected),
            "{what} {over:?}: wrong data"
        );
        let (word, wrote) = writer.go_on(&expected, what);
        expected.extend(wrote);
        println!("{what} idle {over:?}: {word}, first read {}", read.is_ok());
        drop(reader);
        assert_eq!(content(&database), expected, "{what} {over:?}");
        assert_eq!(is_plain(&database), what == "decrypt");
    }
}

/// A connection inside a read transaction is waited for, named, and nothing is changed.
#[test]
fn a_reader_is_named_and_nothing_changes() {
    let scratch = scratch();
    let database = scratch.path().join("live/x.db");
    prepare(Over::Plain, "DELETE", &database, SMALL);
    let before = std::fs::read(&database).unwrap();
    let reader = Over::Plain.open(&database);
    reader.execute_batch("BEGIN").unwrap();
    rows::read(&reader).unwrap();
    let output = pellucid_for("encrypt", &database, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains(&std::process::id().to_string()), "the holder is not named: {said}");
    rows::read(&reader).unwrap();
    reader.execute_batch("COMMIT").unwrap();
    drop(reader);
    assert!(before == std::fs::read(&database).unwrap(), "the database was changed");
    finish("encrypt", &database);
}

/// The comparison can fail.
#[test]
fn a_lost_row_is_noticed() {
    let acknowledged = BTreeMap::from([(1, 5), (2, 3)]);
    assert!(check_acknowledged(&BTreeMap::from([(1, 5), (2, 4), (3, 1)]), &acknowledged));
    assert!(!check_acknowledged(&BTreeMap::from([(1, 5)]), &acknowledged));
    assert!(!check_acknowledged(&BTreeMap::from([(1, 4), (2, 3)]), &acknowledged));
}

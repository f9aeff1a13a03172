//! Goal: under the recovery model FULL no commit of any process is missing from the chain of log backups, whoever begins the log
//! anew, closes last or is killed.
//!
//! Method: children write with whatever SQLite offers: checkpoints of every kind, small and large caches, exclusive locking,
//! closes and reopens; random ones are killed. Each transaction adds one to a counter and says over a pipe what it has committed: the
//! counter and a sum. The parent takes what no backup has, again and again, and builds the database after each commit out of the state
//! at the beginning. The number of commits in the chain is the counter's; each one that was acknowledged is there with its sum; what
//! is built last equals the database.
//!
//! `faults`: the same with each call of the archive failing, or being the last one of the program.
//! `points`: the same with backups and restores. `pages`: damaged pages are
//! rolled forward. `tails`: the same once the database file is gone.
//! `standings`: a database that a tail or a restore leaves is opened by nobody, or for reading alone. `busy`: nobody waits for an answer that does not change.
//!
//! It can fail: without the question at the restart lock (`PELLUCID_SABOTAGE=log-kept`) it does.
//!
//! PELLUCID_SOAK_SECONDS, PELLUCID_SOAK_SEED, PELLUCID_SOAK_MODE, PELLUCID_SOAK_PAGE and PELLUCID_SOAK_EVERY (states that are looked
//! at) choose other runs (tests/campaigns/log-chain).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::type_complexity)]

mod boundaries;
mod busy;
mod chain;
mod changed;
mod clocks;
mod escapes;
mod faults;
mod marks;
mod older;
mod pages;
mod points;
mod put_back;
mod standings;
mod tails;
mod writer;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::time::{Duration, Instant};

use pellucid::header::RecoveryModel;
use pellucid::log_archive::SEGMENT_HEAD_BYTES;
use pellucid_engine::log_chain;
use pellucid_tests::content::seal_new_databases;
use pellucid_tests::processes::{child, extension, leave_instance_alone, role, scratch, Random};
use rusqlite::Connection;

use chain::Chain;

/// Commits of a run below which it has shown nothing.
const LEAST_COMMITS: usize = 300;

#[test]
fn child_entry() {
    match role().as_deref() {
        Some("writer") => writer::run(),
        Some("clocks") => clocks::run(),
        Some("script") => faults::script(),
        Some("marks") => marks::script(),
        Some("commits") => escapes::commits(),
        Some("restarts") => escapes::restarts(),
        _ => {}
    }
}

struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    fn new(page_bytes: usize) -> Self {
        leave_instance_alone();
        seal_new_databases();
        std::env::set_var("PELLUCID_FORMAT", "2");
        pellucid_bundled::register().unwrap();
        let bench = Self { directory: scratch() };
        std::fs::create_dir(bench.directory.path().join("db")).unwrap();
        let connection = bench.open();
        connection
            .execute_batch(&format!(
                "PRAGMA page_size={page_bytes}; PRAGMA journal_mode=WAL;
                 CREATE TABLE counter(n INTEGER); INSERT INTO counter VALUES(0);
                 CREATE TABLE t(id INTEGER PRIMARY KEY, v INTEGER, b BLOB); CREATE INDEX i ON t(v);
                 WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 200)
                 INSERT INTO t SELECT x, x, randomblob(100) FROM c;"
            ))
            .unwrap();
        drop(connection);
        bench
    }

    fn database(&self) -> PathBuf {
        self.directory.path().join("db/a.db")
    }

    fn open(&self) -> Connection {
        let uri = format!("file:{}?vfs=pellucid", self.database().display());
        let connection = pellucid_tests::content::open(&uri).unwrap();
        connection.busy_timeout(Duration::from_secs(60)).unwrap();
        connection
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Begins a chain, and returns the state that it begins with.
    fn begin(&self) -> Chain {
        log_chain::set_model(&self.database(), RecoveryModel::Full).unwrap();
        assert!(log_chain::begin(&self.database()).unwrap().is_some());
        Chain::begin(&self.open())
    }
}

/// What a child has committed: the counter, and the sum behind it.
type Acknowledged = BTreeMap<i64, i64>;

struct Writers {
    database: PathBuf,
    mode: &'static str,
    children: Vec<(Child, Receiver<String>)>,
    started: u64,
}

impl Writers {
    fn start(&mut self, random: &mut Random) {
        let mut started = child("writer")
            .env("CRASH_DATABASE", &self.database)
            .env("CRASH_SEED", random.below(u64::MAX).to_string())
            .env("CRASH_MODE", self.mode)
            .env("CRASH_EXTENSION", extension())
            .env("PELLUCID_LOG_LIMIT", ["60000", "300000", "67108864"][random.below(3usize)])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(started.stdout.take().unwrap()).lines();
        let (send, told) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        self.started += 1;
        self.children.push((started, told));
    }

    /// Ends one of them: at once, or when it has done what it is at.
    fn end(&mut self, at: usize, acknowledged: &mut Acknowledged) {
        let (mut child, told) = self.children.swap_remove(at);
        let _ = child.kill();
        child.wait().unwrap();
        for line in told {
            note(&line, acknowledged);
        }
    }

    fn collect(&mut self, acknowledged: &mut Acknowledged) {
        for at in (0..self.children.len()).rev() {
            for line in self.children[at].1.try_iter() {
                note(&line, acknowledged);
            }
            if self.children[at].0.try_wait().unwrap().is_some() {
                self.end(at, acknowledged);
            }
        }
    }
}

fn note(line: &str, acknowledged: &mut Acknowledged) {
    if let Some(what) = line.strip_prefix("failed ") {
        panic!("a writer failed: {what}");
    }
    let Some(rest) = line.strip_prefix("committed ") else { return };
    let (n, sum) = rest.split_once(' ').unwrap();
    acknowledged.insert(n.parse().unwrap(), sum.parse().unwrap());
}

fn soak(mode: &'static str, page_bytes: usize, seconds: u64) {
    let seconds =
        std::env::var("PELLUCID_SOAK_SECONDS").map_or(seconds, |text| text.parse().unwrap());
    let seed = std::env::var("PELLUCID_SOAK_SEED").map_or(7, |text| text.parse().unwrap());
    let mut random = Random(seed + page_bytes as u64);
    let bench = Bench::new(page_bytes);
    let mut chain = bench.begin();
    chain.look_at_each(
        std::env::var("PELLUCID_SOAK_EVERY").map_or(211, |text| text.parse().unwrap()),
    );
    let most = if mode == "exclusive" { 1 } else { 3usize };
    let mut writers =
        Writers { database: bench.database(), mode, children: Vec::new(), started: 0 };
    let mut acknowledged = Acknowledged::new();
    let mut kills = 0;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(seconds)
        || (acknowledged.len() < LEAST_COMMITS && begun.elapsed() < Duration::from_secs(600))
    {
        // Now and then the last one closes the database.
        while writers.children.len() < 1 + random.below(most) {
            writers.start(&mut random);
        }
        std::thread::sleep(Duration::from_millis(random.below(400u64)));
        writers.collect(&mut acknowledged);
        if random.below(3u64) == 0 && !writers.children.is_empty() {
            let at = random.below(writers.children.len());
            writers.end(at, &mut acknowledged);
            kills += 1;
        }
        // In an exclusive locking mode nobody else gets in.
        if mode == "exclusive" {
            while !writers.children.is_empty() {
                writers.end(0, &mut acknowledged);
            }
        }
        if random.below(3u64) == 0 {
            chain.take(&bench.database());
        }
    }
    while !writers.children.is_empty() {
        writers.end(0, &mut acknowledged);
    }
    chain.take(&bench.database());
    let n = chain.commits() as i64;
    let connection = bench.open();
    let counter: i64 = connection.query_row("SELECT n FROM counter", [], |row| row.get(0)).unwrap();
    assert_eq!(n, counter, "commits in the chain, and the counter of the database");
    assert!(acknowledged.len() >= LEAST_COMMITS, "{} commits show nothing", acknowledged.len());
    chain.assert_states(&acknowledged);
    chain.assert_last(&connection);
    println!(
        "RESULT {mode} {page_bytes} {} {kills} {n} {} {} {} ok",
        writers.started,
        acknowledged.len(),
        chain.pieces(),
        chain.looked_at()
    );
}

fn mode(name: &'static str) -> bool {
    std::env::var("PELLUCID_SOAK_MODE").map_or(true, |mode| mode == name)
}

#[test]
fn every_commit_of_several_programs_is_in_the_chain() {
    let chosen = std::env::var("PELLUCID_SOAK_PAGE").ok().map(|text| text.parse().unwrap());
    for page_bytes in [4096, 512, 65536] {
        if mode("wal") && chosen.is_none_or(|chosen: usize| chosen == page_bytes) {
            soak("wal", page_bytes, 4);
        }
    }
}

#[test]
fn a_commit_that_escapes_is_noticed() {
    if std::env::var_os("PELLUCID_SABOTAGE").is_some() {
        return;
    }
    let ended = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "every_commit_of_several_programs_is_in_the_chain", "--test-threads=1"])
        .env("PELLUCID_SABOTAGE", "log-kept")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    let found = ["commits in the chain, and the counter", "is broken", "a commit is missing"];
    let told = ["are missing from its chain of log backups"];
    let noticed = found.iter().chain(&told).any(|what| said.contains(what));
    assert!(
        !ended.status.success() && noticed,
        "logs begin anew as they like, and nothing is missed: {said}"
    );
}

#[test]
fn every_commit_under_an_exclusive_locking_mode_is_in_the_chain() {
    if mode("exclusive") {
        soak("exclusive", 4096, 6);
    }
}

/// Whether the archive has a file of this kind.
fn archived(database: &Path, end: &str) -> usize {
    let folder = pellucid_vfs::log_archive::path_of(database);
    let names = std::fs::read_dir(folder).unwrap();
    names.filter(|name| name.as_ref().unwrap().file_name().to_string_lossy().ends_with(end)).count()
}

#[test]
fn a_small_log_stays_the_active_log_and_a_checkpoint_that_truncates_empties_it() {
    let bench = Bench::new(4096);
    let mut chain = bench.begin();
    let connection = bench.open();
    connection.execute_batch("PRAGMA wal_autocheckpoint=20").unwrap();
    let write = |count: usize| {
        for _ in 0..count {
            connection
                .execute_batch("BEGIN IMMEDIATE; UPDATE counter SET n = n + 1; UPDATE t SET v = v + 1 WHERE id % 9 = 0; COMMIT")
                .unwrap();
        }
    };
    write(200);
    assert_eq!(archived(&bench.database(), ".frames"), 0, "nothing was copied");
    let log = pellucid_files::paths::beside(&bench.database(), "-wal");
    assert!(std::fs::metadata(&log).unwrap().len() > 400 * 4096, "the log was not begun anew");
    let checkpoint = |mode: &str| {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        connection
            .query_row(&sql, [], |row| Ok([0, 1, 2].map(|at| row.get::<_, i64>(at).unwrap())))
            .unwrap()
    };
    assert_eq!(checkpoint("TRUNCATE"), [0, 0, 0]);
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
    assert_eq!(archived(&bench.database(), ".frames"), 1);
    write(50);
    assert_eq!(checkpoint("RESTART")[0], 0);
    write(50);
    chain.take(&bench.database());
    assert_eq!(archived(&bench.database(), ".frames"), 0, "a backup has them");
    write(3);
    drop(connection);
    assert!(!log.exists(), "the last connection removes the log");
    assert_eq!(archived(&bench.database(), ".frames"), 1);
    chain.take(&bench.database());
    assert_eq!(chain.commits(), 303);
    chain.assert_last(&bench.open());
}

#[test]
fn a_chain_needs_wal_and_ends_with_the_model_simple() {
    let bench = Bench::new(4096);
    let _chain = bench.begin();
    let connection = bench.open();
    for statement in ["PRAGMA journal_mode=DELETE", "PRAGMA main.journal_mode=OFF"] {
        let told = connection.query_row(statement, [], |_| Ok(())).unwrap_err().to_string();
        assert!(told.contains("chain of log backups"), "{told}");
    }
    drop(connection);
    assert!(log_chain::set_model(&bench.database(), RecoveryModel::Simple).unwrap());
    assert!(!pellucid_vfs::log_archive::path_of(&bench.database()).exists());
    let connection = bench.open();
    let mode: String =
        connection.query_row("PRAGMA journal_mode=DELETE", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "delete");
}

/// One transaction that is counted.
fn write(connection: &Connection, count: usize) {
    for _ in 0..count {
        connection
            .execute_batch("BEGIN IMMEDIATE; UPDATE counter SET n = n + 1; UPDATE t SET v = v + 1 WHERE id % 5 = 0; COMMIT")
            .unwrap();
    }
}

#[test]
fn a_new_key_and_encryption_switched_off_and_on_leave_the_chain_whole() {
    use pellucid_engine::scan::{self, Options, Target};
    let bench = Bench::new(4096);
    let mut chain = bench.begin();
    let (connection, path) = (bench.open(), bench.database());
    let all = |path: &Path| {
        assert_eq!(
            scan::run(path, &Options::default(), &mut |_, _, _| ()).unwrap(),
            scan::Ended::Complete
        );
    };
    write(&connection, 30);
    // Frames under the key of before are in the archive, and in the log.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    write(&connection, 30);
    scan::rekey(&path, None).unwrap();
    all(&path);
    write(&connection, 10);
    let changes: [fn(&Path) -> Result<pellucid::header::Header, pellucid_host::DatabaseError>; 3] = [
        |path| scan::set(path, Target::Off),
        |path| scan::set(path, Target::On(pellucid::Algorithm::Aes256)),
        |path| scan::rekey(path, None),
    ];
    for change in changes {
        change(&path).unwrap();
        write(&connection, 5);
        all(&path);
        write(&connection, 5);
    }
    chain.take(&path);
    // What only seals pages anew is no commit of the chain.
    assert_eq!(chain.commits(), 100);
    assert_eq!(chain.looked_at(), 100);
    let told = scan::rekey_as_new(&path, None).unwrap_err().to_string();
    assert!(told.contains("chain of log backups"), "{told}");
    connection.query_row("PRAGMA integrity_check", [], |_| Ok(())).unwrap();
}

#[test]
fn an_archive_that_cannot_be_written_fails_no_commit_and_everything_is_kept_later() {
    let bench = Bench::new(4096);
    let mut chain = bench.begin();
    let folder = pellucid_vfs::log_archive::path_of(&bench.database());
    let aside = folder.with_extension("aside");
    let write = |connection: &Connection, count: usize| {
        for _ in 0..count {
            connection
                .execute_batch("BEGIN IMMEDIATE; UPDATE counter SET n = n + 1; UPDATE t SET v = v + 1 WHERE id % 5 = 0; COMMIT")
                .unwrap();
        }
    };
    std::fs::rename(&folder, &aside).unwrap();
    let connection = bench.open();
    connection.execute_batch("PRAGMA wal_autocheckpoint=30").unwrap();
    write(&connection, 300);
    let began = Instant::now();
    let told =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    assert!(told.is_err() || told == Ok(1), "{told:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "it did not wait for its whole patience");
    drop(connection);
    let log = pellucid_files::paths::beside(&bench.database(), "-wal");
    assert!(log.exists(), "the log stays when the last connection closes");
    write(&bench.open(), 20);
    std::fs::rename(&aside, &folder).unwrap();
    let connection = bench.open();
    write(&connection, 20);
    let busy: i64 =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert_eq!(busy, 0);
    chain.take(&bench.database());
    assert_eq!(chain.commits(), 340);
    chain.assert_last(&connection);
}

#[test]
fn a_flipped_bit_in_what_is_kept_is_found_before_it_is_backed_up() {
    let bench = Bench::new(512);
    let mut chain = bench.begin();
    write(&bench.open(), 3);
    let folder = pellucid_vfs::log_archive::path_of(&bench.database());
    let names = std::fs::read_dir(&folder).unwrap().map(|name| name.unwrap().path());
    let kept = names.filter(|path| path.extension().is_some_and(|end| end == "frames"));
    let kept = kept.collect::<Vec<_>>();
    assert_eq!(kept.len(), 1);
    let whole = std::fs::read(&kept[0]).unwrap();
    let frames = (whole.len() - SEGMENT_HEAD_BYTES) / 536;
    assert!(frames > 3);
    for frame in 0..frames {
        // The clear bytes one by one, and some of what is sealed.
        for bit in (0..128).chain((128..8 * 536).step_by(533)) {
            let mut flipped = whole.clone();
            flipped[SEGMENT_HEAD_BYTES + frame * 536 + bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&kept[0], &flipped).unwrap();
            let told = log_chain::KeptLog::open(&bench.database(), Duration::from_secs(10));
            let told = told.map(|_| ()).unwrap_err().to_string();
            let named = ["authentication tag", "no key", "generation", "other frames"];
            let is_told = named.iter().any(|what| told.contains(what));
            assert!(is_told, "frame {frame}, bit {bit}: {told}");
        }
    }
    std::fs::write(&kept[0], &whole).unwrap();
    chain.take(&bench.database());
    assert_eq!(chain.commits(), 3);
}

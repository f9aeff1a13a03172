//! Goal: whatever is killed while a key or an encryption state changes, no row is lost, the scan goes on, and it ends
//! with the proof; in each direction, in WAL mode and with a rollback journal.
//!
//! Method: two writers note every commit that was acknowledged. The scan, the writers or both are killed at random
//! moments and started again; a scan that ends by itself has to have succeeded, and no writer is told an error. In the end the scan is gone on with, the
//! header has to have one key, every page has to be under it, and every row that was noted has to be there.
//!
//! More kills, all of them or those of one direction: PELLUCID_REKEY_KILLS=300 PELLUCID_KILLS_SEED=2 cargo test --release
//! --workspace --test cli kills::key_change -- --nocapture. Campaign: tests/campaigns/scan-kills.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use pellucid::header::{EncryptionState, Header, COPY_BYTES, COPY_OFFSETS};
use pellucid::scan::ScanState;

use crate::rekey::{large, query};
use crate::support::{Place, Said, PELLUCID};

/// Rows of the table that is there from the beginning.
const ROWS: &str = "8200";
/// A header has room for about fifty keys; who turns back more often has to let a scan end.
const MANY_KEYS: usize = 30;

/// Where a database is on its way to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    KeyChange,
    Algorithm,
    On,
    Off,
    /// Off and on, in mid-scan.
    Turning,
    /// From a plain database to a container and back.
    First,
}

#[test]
fn key_change() {
    kills(Direction::KeyChange);
}

#[test]
fn algorithm() {
    kills(Direction::Algorithm);
}

#[test]
fn on() {
    kills(Direction::On);
}

#[test]
fn off() {
    kills(Direction::Off);
}

#[test]
fn turning() {
    kills(Direction::Turning);
}

#[test]
fn first() {
    kills(Direction::First);
}

/// Inserts rows with numbers of its own and notes each once it is committed. With `each` it opens the database for
/// each: what becomes a container or a plain file has to be free for a moment. What was decrypted between the opening and
/// the first statement says so (SQLITE_PERM), and is opened again.
const WRITER: &str = r"
import os, sqlite3, sys
name, first, noted = sys.argv[1], int(sys.argv[2]), open(sys.argv[3], 'ab', 0)
each = sys.argv[4] == 'each'
def connect():
    return sqlite3.connect(name, timeout=300, isolation_level=None)
db = connect()
number, parent = first, os.getppid()
# Not longer than the test, however that ends.
while os.getppid() == parent:
    if each:
        db.close()
        db = connect()
    try:
        db.execute('BEGIN IMMEDIATE')
    except sqlite3.OperationalError as error:
        if each and 'access permission denied' in str(error):
            continue
        raise
    db.execute('INSERT INTO noted VALUES (?, ?)', (number, os.urandom(300)))
    db.execute('UPDATE t SET b = b || ? WHERE a = ?', ('.', number % 7000))
    db.execute('COMMIT')
    noted.write(b'%d\n' % number)
    number += 1
";

struct Writers<'a> {
    place: &'a Place,
    how: &'static str,
    begun: u64,
    running: Vec<Child>,
}

impl Writers<'_> {
    fn start(&mut self) {
        self.begun += 1;
        let first = (self.begun * 1_000_000).to_string();
        let mut command = self.place.command(PELLUCID);
        command.args(["run", "--", "python3", "-c", WRITER, "app.db", &first, "noted", self.how]);
        let told = File::options().create(true).append(true).open(self.place.path("told")).unwrap();
        command.stderr(told);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        self.running.push(command.spawn().unwrap());
    }

    fn kill_all(&mut self) {
        self.running.drain(..).for_each(kill);
    }

    /// Kills one as if the machine's memory had run out, and starts another.
    fn kill_one(&mut self) {
        kill(self.running.remove(0));
        self.start();
    }
}

impl Drop for Writers<'_> {
    fn drop(&mut self) {
        self.kill_all();
    }
}

impl Drop for Scans<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The process and those it has started.
fn kill(mut child: Child) {
    let group = rustix::process::Pid::from_child(&child);
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    child.wait().unwrap();
}

/// The header, of whichever copy is whole: a process may have been killed while it wrote one. None: a plain database,
/// or one that is just becoming one or the other.
fn header(path: &Path) -> Option<Header> {
    let file = File::open(path).unwrap();
    let mut sector = [0; 16];
    file.read_exact_at(&mut sector, 0).unwrap();
    if sector.starts_with(b"SQLite format 3") {
        return None;
    }
    let copies = (0..2u8).filter_map(|copy| {
        let mut bytes = vec![0; COPY_BYTES];
        file.read_exact_at(&mut bytes, COPY_OFFSETS[usize::from(copy)]).ok()?;
        Header::parse(&bytes, copy).ok()
    });
    copies.max_by_key(|header| header.sequence)
}

struct Scans<'a> {
    place: &'a Place,
    direction: Direction,
    random: u64,
    running: Option<Child>,
    ended: u64,
    complete: u64,
}

impl Scans<'_> {
    fn below(&mut self, end: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % end
    }

    fn path(&self) -> std::path::PathBuf {
        self.place.path("app.db")
    }

    /// What is due, from the state that the database is in.
    fn command(&mut self) -> Vec<&'static str> {
        use EncryptionState::*;
        const OFF: [&str; 3] = ["decrypt", "app.db", "--keep-container"];
        const ON: [&str; 2] = ["encrypt", "app.db"];
        const RESUME: [&str; 3] = ["scan", "resume", "app.db"];
        let Some(header) = header(&self.path()) else {
            return ON.to_vec();
        };
        if self.direction == Direction::First {
            return vec!["decrypt", "app.db"];
        }
        let under_way = header.scan.state.is_under_way();
        let turns = self.direction == Direction::Turning && self.below(2) == 0;
        match (self.direction, header.state) {
            (Direction::Turning, Encrypting) if turns && header.deks.len() < MANY_KEYS => {
                OFF.to_vec()
            }
            (Direction::Turning, Decrypting) if turns && header.deks.len() < MANY_KEYS => {
                ON.to_vec()
            }
            _ if under_way => RESUME.to_vec(),
            (Direction::Turning, Encrypted) => OFF.to_vec(),
            (Direction::Turning, _) => ON.to_vec(),
            // The way back is killed as well: under these writers it takes longer than anybody waits.
            (Direction::On, Encrypted) => OFF.to_vec(),
            (Direction::On, _) => ON.to_vec(),
            (Direction::Off, Unencrypted) => ON.to_vec(),
            (Direction::Off, _) => OFF.to_vec(),
            (Direction::Algorithm, _) => {
                let now = header.algorithm().unwrap().name();
                let next = if now == "AES_128" { "AES_256" } else { "AES_128" };
                vec!["rekey", "app.db", "--algorithm", next]
            }
            _ => vec!["rekey", "app.db"],
        }
    }

    fn start(&mut self) {
        let arguments = self.command();
        // Such a scan writes and checkpoints on two threads.
        let exclusive = ["rekey", "scan"].contains(&arguments[0]) && self.below(2) == 0;
        let mut command = self.place.command(PELLUCID);
        command.arg("--quiet").args(arguments).args(exclusive.then_some("--exclusive"));
        // A first encryption or decryption gives way soon; a scan waits for as long as a busy machine keeps it waiting.
        if self.direction != Direction::First {
            command.args(["--timeout", "600"]);
        }
        command.stdout(Stdio::null());
        command.stderr(File::create(self.place.path("said")).unwrap());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        self.running = Some(command.spawn().unwrap());
    }

    /// Notes whether it has ended by itself, and starts the next one then.
    fn look(&mut self) {
        let Some(status) = self.running.as_mut().and_then(|child| child.try_wait().unwrap()) else {
            return;
        };
        let said = std::fs::read_to_string(self.place.path("said")).unwrap();
        // A first encryption asks others to give way, and may be told no; and whoever opens what was laid half ends it,
        // perhaps before this one does.
        let known = ["is in use", "was interrupted", "is not encrypted", "it is already enabled"];
        let gave_way = known.iter().any(|known| said.contains(known));
        let may = self.direction == Direction::First && gave_way;
        assert!(status.success() || may, "{:?}: {status}: {said}", self.direction);
        self.ended += u64::from(status.success());
        let complete = |header: Header| header.scan.state == ScanState::Complete;
        self.complete += u64::from(header(&self.path()).is_some_and(complete));
        self.start();
    }

    fn kill(&mut self) {
        self.running.take().into_iter().for_each(kill);
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

fn kills(direction: Direction) {
    let only = std::env::var("PELLUCID_KILLS_MODE").unwrap_or_default();
    for mode in ["wal", "delete"] {
        if only.is_empty() || only == mode {
            kills_in(direction, mode);
        }
    }
}

fn kills_in(direction: Direction, mode: &str) {
    let kills = number("PELLUCID_REKEY_KILLS", 6);
    let seed = number("PELLUCID_KILLS_SEED", 1);
    let name = format!("{direction:?}, {mode}, seed {seed}");
    let place = Place::new();
    large(&place);
    let path = place.path("app.db");
    if direction == Direction::On {
        place.pellucid(&["decrypt", "app.db", "--keep-container"]).succeeded();
    }
    let sql = format!("PRAGMA journal_mode = {mode}; CREATE TABLE noted(a INTEGER PRIMARY KEY, b)");
    query(&place, "app.db", &sql);
    let how = if direction == Direction::First { "each" } else { "once" };
    let mut writers = Writers { place: &place, how, begun: 0, running: Vec::new() };
    writers.start();
    writers.start();
    let random = 0x9e37_79b9 ^ seed << 32 ^ direction as u64;
    let mut scans =
        Scans { place: &place, direction, random, running: None, ended: 0, complete: 0 };
    scans.start();
    let (mut of_scans, mut of_writers) = (0, 0);
    for turn in 0..kills {
        let pause = scans.below(400);
        std::thread::sleep(Duration::from_millis(pause));
        scans.look();
        // The scan, the writers, both.
        if turn % 3 != 0 {
            scans.kill();
            of_scans += 1;
        }
        if turn % 3 != 1 {
            writers.kill_one();
            of_writers += 1;
        }
        if turn % 3 != 0 {
            scans.start();
        }
    }
    scans.kill();
    // On a busy machine they may have come to nothing yet.
    let begun = Instant::now();
    let noted = || std::fs::read_to_string(place.path("noted")).unwrap_or_default().lines().count();
    while noted() <= 10 && begun.elapsed() < Duration::from_secs(600) {
        std::thread::sleep(Duration::from_millis(10));
    }
    writers.kill_all();

    // Opens it, and so ends what was laid half.
    assert_eq!(query(&place, "app.db", "SELECT count(*) FROM t").trim(), ROWS, "{name}");
    if let Some(found) = header(&path) {
        if found.scan.state.is_under_way() {
            place.pellucid(&["scan", "resume", "app.db"]).succeeded();
        }
        let last = header(&path).unwrap();
        let settled = [EncryptionState::Encrypted, EncryptionState::Unencrypted];
        assert!(settled.contains(&last.state) && last.deks.len() == 1, "{name}: {last:?}");
        let proved = place.pellucid(&["scan", "verify", "app.db"]).succeeded();
        assert!(proved.contains("are under the current key"), "{name}: {proved}");
        place.pellucid(&["check", "app.db"]).succeeded();
    }
    let integrity = query(&place, "app.db", "PRAGMA integrity_check");
    assert_eq!(integrity.trim(), "ok", "{name}");
    let found = query(&place, "app.db", "SELECT a FROM noted");
    let found: std::collections::HashSet<&str> = found.lines().collect();
    let noted = std::fs::read_to_string(place.path("noted")).unwrap();
    let lost: Vec<&str> = noted.lines().filter(|line| !found.contains(line)).collect();
    let commits = noted.lines().count();
    let (ended, complete) = (scans.ended, scans.complete);
    let told = std::fs::read_to_string(place.path("told")).unwrap();
    let errors = told.lines().filter(|line| line.starts_with("sqlite3.")).collect::<Vec<_>>();
    println!("{name}: {kills} kills, {ended} ended, {complete} complete, {commits} commits noted");
    assert_eq!(lost, [""; 0], "{name}");
    assert!(commits > 10, "{name}: the writers did nothing");
    // What becomes a container or a plain file keeps others waiting for longer than they may want to.
    let gave_up =
        direction == Direction::First && errors.iter().all(|line| line.contains("locked"));
    assert!(errors.is_empty() || gave_up, "{name}: a writer was refused: {told}");
    let left: Said = place.pellucid(&["scan", "status", "app.db"]);
    assert!(!left.stdout.contains("running"), "{name}: {left:?}");
    println!(
        "RESULT {direction:?} {mode} {seed} {of_scans} {of_writers} {ended} {complete} {commits}"
    );
}

//! Goal: whoever can write `-shm` cannot have one page read as another, nor brought into the database file as another.
//!
//! Method: entries of the wal-index are exchanged in the file (SQLite's "WAL-mode file format", 2.2), as somebody with the
//! storage and no key can, while connections have it mapped: each read and each kind of checkpoint has to refuse, in every
//! locking mode, and the pages of the database file stay as they were. Then all connections are closed, and the log still
//! has everything. Frames that never counted, of what was rolled back or of an earlier run of the log, are entered in it as well. What a checkpoint may write is tried by the file objects themselves, without SQLite between.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use pellucid_host::code::last_report;
use rusqlite::{ffi, Connection};

use pellucid_tests::content::{self, directory_in_memory, seal_new_databases};
use pellucid_tests::file_objects::FileObjects;

const PAGE: usize = 1024;
const REGION: u64 = 16384;
/// Frames in the first part of the index, and in each further one.
const FIRST: u32 = 4062;
const EACH: u32 = 4096;
const PART_BYTES: u64 = 32768;
const INDEX_HEADER: u64 = 136;

struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        pellucid_bundled::register().unwrap();
        seal_new_databases();
        Self { directory: directory_in_memory() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn open(&self) -> Connection {
        content::open(&format!("file:{}?vfs=pellucid", self.path("a.db").display())).unwrap()
    }

    /// A database in WAL mode whose tables `users` and `admins` have a page each, in the log alone, behind so many other
    /// frames; with the frames of the two pages.
    fn filled(&self, setting: &str, before: u32) -> (Connection, [u32; 2]) {
        let connection = self.open();
        connection
            .execute_batch(&format!(
                "PRAGMA page_size={PAGE}; CREATE TABLE users(name); CREATE TABLE admins(name);
                 CREATE TABLE other(body); PRAGMA journal_mode=WAL;"
            ))
            .unwrap();
        connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        drop(connection);
        let connection = self.open();
        connection.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
        // The index is mapped before an exclusive locking mode: otherwise it would be memory of the connection's own.
        connection.execute_batch("INSERT INTO other VALUES('x')").unwrap();
        connection.execute_batch(setting).unwrap();
        if before > 0 {
            connection
                .execute_batch(&format!(
                    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < {before})
                     INSERT INTO other SELECT zeroblob({}) FROM c;",
                    PAGE - 100
                ))
                .unwrap();
        }
        connection
            .execute_batch(
                "INSERT INTO users VALUES('mallory'); INSERT INTO admins VALUES('alice');",
            )
            .unwrap();
        let root = |name: &str| -> u32 {
            let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?";
            connection.query_row(sql, [name], |row| row.get(0)).unwrap()
        };
        let index = self.index();
        let frames = ["users", "admins"].map(|name| index.last_frame(root(name)));
        (connection, frames)
    }

    fn index(&self) -> Index {
        let path = self.path("a.db-shm");
        Index(OpenOptions::new().read(true).write(true).open(path).unwrap())
    }

    /// The pages of the database file, as they lie there.
    fn pages(&self) -> Vec<u8> {
        fs::read(self.path("a.db")).unwrap()[REGION as usize..].to_vec()
    }
}

/// The wal-index as a file.
struct Index(fs::File);

impl Index {
    fn word(&self, at: u64) -> u32 {
        let mut word = [0; 4];
        self.0.read_exact_at(&mut word, at).unwrap();
        u32::from_ne_bytes(word)
    }

    fn frames(&self) -> u32 {
        self.word(16)
    }

    /// Which part of the index a frame is in, and where in it.
    fn place(frame: u32) -> (u64, u64) {
        match frame.checked_sub(FIRST + 1) {
            None => (0, INDEX_HEADER + 4 * u64::from(frame - 1)),
            Some(behind) => {
                let part = u64::from(1 + behind / EACH);
                (part, part * PART_BYTES + 4 * u64::from(behind % EACH))
            }
        }
    }

    fn page_of(&self, frame: u32) -> u32 {
        self.word(Self::place(frame).1)
    }

    fn last_frame(&self, page: u32) -> u32 {
        (1..=self.frames()).rev().find(|frame| self.page_of(*frame) == page).unwrap()
    }

    fn set_page(&self, frame: u32, page: u32) {
        self.0.write_all_at(&page.to_ne_bytes(), Self::place(frame).1).unwrap();
    }

    /// Exchanges what two frames of one part are said to be, so that SQLite finds each page by the other's frame.
    fn exchange(&self, frames: [u32; 2]) {
        let [part, other] = frames.map(|frame| Self::place(frame).0);
        assert_eq!(part, other);
        let pages = frames.map(|frame| self.page_of(frame));
        let first = if part == 0 { 0 } else { FIRST + (part as u32 - 1) * EACH };
        let slots = frames.map(|frame| {
            let number = ((frame - first) as u16).to_ne_bytes();
            let at = |slot: u64| part * PART_BYTES + 16384 + 2 * slot;
            let is_it = |slot: &u64| {
                let mut found = [0; 2];
                self.0.read_exact_at(&mut found, at(*slot)).unwrap();
                found == number
            };
            (at((0..8192).find(is_it).unwrap()), number)
        });
        self.set_page(frames[0], pages[1]);
        self.set_page(frames[1], pages[0]);
        self.0.write_all_at(&slots[1].1, slots[0].0).unwrap();
        self.0.write_all_at(&slots[0].1, slots[1].0).unwrap();
    }

    /// Says another page size, in both copies of the header, with the checksums of that.
    fn set_page_size(&self, size: u16) {
        self.set_in_header(14, &size.to_ne_bytes());
    }

    fn set_in_header(&self, at: usize, bytes: &[u8]) {
        let mut header = [0; 48];
        self.0.read_exact_at(&mut header, 0).unwrap();
        header[at..at + bytes.len()].copy_from_slice(bytes);
        // What is otherwise is looked at: it is another count of changes too.
        header[8] = header[8].wrapping_add(1);
        let (mut first, mut second) = (0u32, 0u32);
        for pair in header[..40].chunks_exact(8) {
            let word = |at: usize| u32::from_ne_bytes(pair[at..at + 4].try_into().unwrap());
            first = first.wrapping_add(word(0)).wrapping_add(second);
            second = second.wrapping_add(word(4)).wrapping_add(first);
        }
        header[40..44].copy_from_slice(&first.to_ne_bytes());
        header[44..48].copy_from_slice(&second.to_ne_bytes());
        self.0.write_all_at(&header, 0).unwrap();
        self.0.write_all_at(&header, 48).unwrap();
    }
}

impl Index {
    /// Says that the log goes up to `last`, and finds the pages of the frames that it did not have by what the log says.
    fn append(&self, log: &[u8], last: u32) {
        for frame in self.frames() + 1..=last {
            let at = 32 + (frame as usize - 1) * (PAGE + 24);
            let page = u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
            let (part, place) = Self::place(frame);
            assert_eq!(part, 0);
            self.0.write_all_at(&page.to_ne_bytes(), place).unwrap();
            let mut slot = u64::from(page * 383) & 8191;
            let at = |slot: u64| 16384 + 2 * slot;
            let is_taken = |slot: u64| {
                let mut found = [0; 2];
                self.0.read_exact_at(&mut found, at(slot)).unwrap();
                found != [0; 2]
            };
            while is_taken(slot) {
                slot = (slot + 1) & 8191;
            }
            self.0.write_all_at(&(frame as u16).to_ne_bytes(), at(slot)).unwrap();
        }
        self.set_in_header(16, &last.to_ne_bytes());
    }
}

fn names(connection: &Connection, table: &str) -> rusqlite::Result<String> {
    connection.query_row(&format!("SELECT group_concat(name) FROM {table}"), [], |row| row.get(0))
}

/// Refused as what does not authenticate, with a line in the log that names the thing.
fn refused<T: std::fmt::Debug>(found: rusqlite::Result<T>, thing: &str, what: &str) {
    let logged = last_report();
    let error = found.unwrap_err();
    let code = error.sqlite_error().map(|error| error.extended_code);
    assert_eq!(code, Some(ffi::SQLITE_IOERR_DATA), "{what}: {error}");
    let line = logged.unwrap().line;
    // In version 2 a frame of an earlier run of the log does not open, as one that is damaged.
    let is_of_earlier_run = content::version() == 2 && line.contains("tag does not match");
    assert!(line.contains(thing), "{what}: {line}");
    assert!(line.contains("-shm") || is_of_earlier_run, "{what}: {line}");
}

/// Everybody has closed it: the log is read anew, and has every commit.
fn is_whole_after_all(bench: &Bench, what: &str) {
    let connection = bench.open();
    let found = ["users", "admins"].map(|table| names(&connection, table).unwrap());
    assert_eq!(found, ["mallory", "alice"], "{what}");
    let sound: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok", "{what}");
}

#[test]
fn a_page_is_not_read_out_of_the_frame_of_another() {
    for (setting, before) in [
        ("", 0),
        ("", 4100),
        ("PRAGMA locking_mode=EXCLUSIVE; SELECT * FROM users", 0),
        ("PRAGMA mmap_size=1000000", 0),
    ] {
        let what = format!("`{setting}`, {before} frames before");
        let bench = Bench::new();
        let (writer, frames) = bench.filled(setting, before);
        let reader = if setting.contains("EXCLUSIVE") { None } else { Some(bench.open()) };
        bench.index().exchange(frames);
        last_report();
        match &reader {
            Some(reader) => refused(names(reader, "admins"), "WAL frame", &what),
            None => {
                writer.execute_batch("PRAGMA shrink_memory").unwrap();
                refused(names(&writer, "admins"), "WAL frame", &what);
            }
        }
        drop((reader, writer));
        is_whole_after_all(&bench, &what);
    }
}

#[test]
fn a_page_is_not_read_by_another_page_size_of_the_index() {
    for size in [512, 2048, 32768, 1] {
        let bench = Bench::new();
        let (writer, _) = bench.filled("", 60);
        bench.index().set_page_size(size);
        let reader = bench.open();
        last_report();
        for table in ["admins", "users", "other"] {
            let sql = format!("SELECT count(*) FROM {table}");
            let found: rusqlite::Result<u32> = reader.query_row(&sql, [], |row| row.get(0));
            refused(found, "-shm", &format!("page size {size}"));
        }
        drop((reader, writer));
        is_whole_after_all(&bench, &format!("page size {size}"));
    }
}

#[test]
fn a_checkpoint_brings_no_page_to_the_place_of_another() {
    let checkpoint = |kind: &'static str| {
        move |connection: &Connection| {
            let sql = format!("PRAGMA wal_checkpoint({kind})");
            connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).map(|_| ())
        }
    };
    type Way = Box<dyn Fn(&Connection) -> rusqlite::Result<()>>;
    let ways: Vec<(&str, Way)> = vec![
        ("passive", Box::new(checkpoint("PASSIVE"))),
        ("full", Box::new(checkpoint("FULL"))),
        ("restart", Box::new(checkpoint("RESTART"))),
        ("truncate", Box::new(checkpoint("TRUNCATE"))),
        (
            "journal mode",
            Box::new(|connection| {
                let sql = "PRAGMA journal_mode=DELETE";
                connection.query_row(sql, [], |row| row.get::<_, String>(0)).map(|_| ())
            }),
        ),
    ];
    for setting in ["", "PRAGMA locking_mode=EXCLUSIVE", "PRAGMA mmap_size=1000000"] {
        for (name, way) in &ways {
            let what = format!("{name}, `{setting}`");
            let bench = Bench::new();
            let (writer, frames) = bench.filled(setting, 0);
            let before = bench.pages();
            bench.index().exchange(frames);
            last_report();
            refused(way(&writer), "WAL frame", &what);
            assert_eq!(differing(&before, &bench.pages(), &bench, frames), 0, "{what}");
            drop(writer);
            assert_eq!(differing(&before, &bench.pages(), &bench, frames), 0, "{what}, closed");
            is_whole_after_all(&bench, &what);
        }
        let what = format!("the last close, `{setting}`");
        let bench = Bench::new();
        let (writer, frames) = bench.filled(setting, 0);
        let before = bench.pages();
        bench.index().exchange(frames);
        drop(writer);
        assert_eq!(differing(&before, &bench.pages(), &bench, frames), 0, "{what}");
        assert!(bench.path("a.db-wal").exists(), "{what}: the log is gone");
        is_whole_after_all(&bench, &what);
    }
}

/// How many of the pages of these frames have changed.
fn differing(before: &[u8], after: &[u8], bench: &Bench, frames: [u32; 2]) -> usize {
    let log = fs::read(bench.path("a.db-wal")).unwrap();
    let changed = |frame: &u32| {
        let at = 32 + (*frame as usize - 1) * (PAGE + 24);
        let page = u32::from_be_bytes(log[at..at + 4].try_into().unwrap()) as usize;
        let range = (page - 1) * PAGE..page * PAGE;
        before.get(range.clone()) != after.get(range)
    };
    frames.iter().filter(|frame| changed(frame)).count()
}

/// A page that a transaction spills again goes over its frame; not over that of another page.
#[test]
fn a_page_is_not_written_over_the_frame_of_another() {
    let bench = Bench::new();
    let (writer, _) = bench.filled("PRAGMA cache_size=10", 0);
    let committed = bench.index().frames();
    writer
        .execute_batch(
            "BEGIN; WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 60)
             INSERT INTO other SELECT zeroblob(900) FROM c;",
        )
        .unwrap();
    // Two pages that are in the log since, and in no cache any more.
    let index = bench.index();
    let frames = [committed + 8, committed + 9];
    assert!(frames.iter().all(|frame| index.page_of(*frame) > 1));
    index.exchange(frames);
    last_report();
    let changed = writer.execute_batch("UPDATE other SET body = zeroblob(901)");
    refused(changed, "WAL frame", "spilled again");
    drop(writer);
    is_whole_after_all(&bench, "spilled again");
}

#[test]
fn check_names_a_frame_that_the_index_says_is_of_another_page() {
    let bench = Bench::new();
    let (writer, frames) = bench.filled("", 0);
    bench.index().exchange(frames);
    let options = pellucid_engine::audit::Options { physical_only: true, cores: 1 };
    let audit =
        pellucid_engine::audit::audit(&bench.path("a.db"), options, &mut |_, _, _| ()).unwrap();
    let mut named: Vec<u32> = audit.damaged_frames.iter().map(|(frame, _)| *frame).collect();
    named.sort_unstable();
    assert_eq!(named, frames, "{audit:?}");
    drop(writer);
}

#[test]
fn only_the_page_of_the_frame_read_last_is_written_while_a_log_is_open() {
    let bench = Bench::new();
    let (writer, [users, admins]) = bench.filled("", 0);
    let files = FileObjects::of(&writer);
    let index = bench.index();
    let [of_users, of_admins] =
        [users, admins].map(|frame| (index.page_of(frame) as usize - 1) * PAGE);
    let before = bench.pages();
    let page = files.read_frame(users, PAGE);
    let other = files.read_frame(admins, PAGE);
    let is_refused = |bytes: &[u8], at: usize, what: &str| {
        last_report();
        assert_eq!(files.write(bytes, at), ffi::SQLITE_IOERR_DATA, "{what}");
        assert!(last_report().unwrap().line.contains("-shm"), "{what}");
        assert!(bench.pages() == before, "{what}: the file has changed");
    };
    is_refused(&page, of_users, "the frame before the last");
    is_refused(&page, of_admins, "another page's content");
    is_refused(&other, of_users, "in another page's place");
    let mut changed = other.clone();
    changed[PAGE / 2] ^= 1;
    is_refused(&changed, of_admins, "another content");
    is_refused(&other[..PAGE / 2], of_admins, "half of it");
    is_refused(&[&other[..], &page[..]].concat(), of_admins, "more than it");
    is_refused(&other, of_admins + PAGE / 2, "between two places");
    assert_eq!(files.write(&other, of_admins), ffi::SQLITE_OK);
    assert!(bench.pages() != before);
    drop(writer);
    is_whole_after_all(&bench, "written as by a checkpoint");
}

/// A log that has frames behind its last commit which never counted: of a transaction that was rolled back after its pages
/// were spilled, or of the run of the log before. All of them set `body` to 9 in a part of the rows.
fn with_frames_behind(bench: &Bench, rolled_back: bool) -> (Connection, u32) {
    let (writer, _) = bench.filled("PRAGMA cache_size=5", 0);
    let rows = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 80)";
    writer
        .execute_batch(&format!(
            "CREATE TABLE rows(body, pad); CREATE TABLE small(body);
             {rows} INSERT INTO rows SELECT 1, zeroblob(300) FROM c;"
        ))
        .unwrap();
    if !rolled_back {
        writer.execute_batch("UPDATE rows SET body = 9; UPDATE rows SET body = 1").unwrap();
    }
    writer.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
    writer.execute_batch("INSERT INTO small VALUES(1)").unwrap();
    let before = fs::read(bench.path("a.db-wal")).unwrap();
    if rolled_back {
        writer.execute_batch("BEGIN; UPDATE rows SET body = 9; ROLLBACK").unwrap();
    }
    let log = fs::read(bench.path("a.db-wal")).unwrap();
    let there = ((log.len() - 32) / (PAGE + 24)) as u32;
    let committed = bench.index().frames();
    // What a rolled-back transaction wrote, or what is left of the run before.
    let is_it = |frame: &u32| {
        let at = 32 + (*frame as usize - 1) * (PAGE + 24);
        (before.get(at..at + 64) != log.get(at..at + 64)) == rolled_back
    };
    let last = (committed + 1..=there).take_while(is_it).last().unwrap();
    assert!(last > committed + 5, "{committed} {last} {there}");
    (writer, last)
}

fn nines(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("SELECT count(*) FROM rows WHERE body = 9", [], |row| row.get(0))
}

/// Closed by everybody, the log is read anew: nothing of what never counted is there.
fn has_no_nines(bench: &Bench, what: &str) {
    let connection = bench.open();
    assert_eq!(nines(&connection).unwrap(), 0, "{what}");
    drop(connection);
    is_whole_after_all(bench, what);
}

#[test]
fn what_never_counted_is_not_read_nor_brought_in() {
    for rolled_back in [true, false] {
        for way in ["read", "checkpoint", "close"] {
            let what = format!("{way}, rolled back: {rolled_back}");
            let bench = Bench::new();
            let (writer, last) = with_frames_behind(&bench, rolled_back);
            let log = fs::read(bench.path("a.db-wal")).unwrap();
            let before = bench.pages();
            bench.index().append(&log, last);
            last_report();
            match way {
                "read" => refused(nines(&bench.open()), "WAL frame", &what),
                "checkpoint" => {
                    let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
                    let found = bench.open().query_row(sql, [], |row| row.get::<_, i64>(0));
                    refused(found, "WAL frame", &what);
                }
                _ => {}
            }
            drop(writer);
            // Only what was committed may have been brought in: a page of `small`.
            let after = bench.pages();
            let changed = before.chunks(PAGE).zip(after.chunks(PAGE)).filter(|(a, b)| a != b);
            assert!(changed.count() <= 1, "{what}");
            has_no_nines(&bench, &what);
        }
    }
}

/// A writer that reads none of it would make it count by a commit behind it.
#[test]
fn nothing_is_committed_behind_what_never_counted() {
    for rolled_back in [true, false] {
        for is_new in [true, false] {
            let what = format!("rolled back: {rolled_back}, another connection: {is_new}");
            let bench = Bench::new();
            let (writer, last) = with_frames_behind(&bench, rolled_back);
            let log = fs::read(bench.path("a.db-wal")).unwrap();
            bench.index().append(&log, last);
            last_report();
            let written =
                |connection: &Connection| connection.execute_batch("UPDATE small SET body = 2");
            let written = if is_new { written(&bench.open()) } else { written(&writer) };
            refused(written, "WAL frame", &what);
            drop(writer);
            has_no_nines(&bench, &what);
        }
    }
}

/// What counts is read, brought in and written behind by every connection, whoever has written it.
#[test]
fn what_other_connections_commit_counts() {
    for setting in ["", "PRAGMA cache_size=5"] {
        let bench = Bench::new();
        let (writer, _) = with_frames_behind(&bench, true);
        let (other, reader) = (bench.open(), bench.open());
        for connection in [&writer, &other] {
            connection.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
            connection.execute_batch(setting).unwrap();
        }
        for turn in 0..20u32 {
            let connection = if turn % 2 == 0 { &writer } else { &other };
            connection
                .execute_batch(&format!(
                    "BEGIN; UPDATE rows SET body = 9; UPDATE rows SET body = 8; ROLLBACK;
                     BEGIN; UPDATE rows SET body = 9; UPDATE rows SET body = {turn}; SAVEPOINT s;
                     UPDATE rows SET body = 9; ROLLBACK TO s; UPDATE small SET body = {turn}; COMMIT"
                ))
                .unwrap();
            let sql = "SELECT count(*) FROM rows WHERE body = ?";
            for connection in [&reader, &other, &writer] {
                let found: u32 = connection.query_row(sql, [turn], |row| row.get(0)).unwrap();
                assert_eq!(found, 80, "`{setting}`, turn {turn}");
            }
            if turn % 7 == 6 {
                let kind = ["PASSIVE", "RESTART", "TRUNCATE"][turn as usize / 7 % 3];
                let sql = format!("PRAGMA wal_checkpoint({kind})");
                let busy: u32 = reader.query_row(&sql, [], |row| row.get(0)).unwrap();
                assert_eq!(busy, 0, "{kind}");
            }
        }
        drop((writer, other, reader));
        is_whole_after_all(&bench, setting);
    }
}

/// SQLite leaves the salts of frames zero that it wrote after it went back to a savepoint, if it had written over a frame of the
/// transaction before. They count like any other.
#[test]
fn frames_that_sqlite_left_without_salts_count() {
    for round in 0..30 {
        let bench = Bench::new();
        let connection = bench.open();
        let fill = "INSERT INTO t SELECT randomblob(900) FROM t;";
        connection
            .execute_batch(&format!(
                "PRAGMA page_size={PAGE}; PRAGMA journal_mode=WAL; CREATE TABLE t(a PRIMARY KEY);
                 INSERT INTO t VALUES(randomblob(900)); PRAGMA wal_checkpoint(TRUNCATE);
                 PRAGMA cache_size=10;
                 BEGIN; {fill} SAVEPOINT here; {fill}{fill}{fill} ROLLBACK TO here; COMMIT;"
            ))
            .unwrap_or_else(|error| panic!("round {round}: {error}: {:?}", last_report()));
        for other in [bench.open(), connection] {
            let rows = other.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, u32>(0));
            assert_eq!(rows.unwrap(), 2, "round {round}");
            other.execute_batch("PRAGMA wal_checkpoint(PASSIVE)").unwrap();
        }
        let whole = bench.open().query_row("PRAGMA integrity_check", [], |row| row.get(0));
        assert_eq!(whole, Ok("ok".to_owned()), "round {round}");
    }
}

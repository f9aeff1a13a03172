//! Goal: no flipped bit, no moved page and no torn header ever gives wrong data or a crash.
//!
//! Method: a small container, its WAL and its hot journal; each byte is changed bit by bit and the
//! whole content read. Allowed are the right data, or an error with a line in the log that names the
//! thing. For a WAL: also the state after an earlier commit, for a journal: also the very state plain
//! SQLite reaches when it finds the same record broken; both with a line in the log.
//! Where a journal's header sectors have zeros, only the error.
//! That nobody looks at tags (`PELLUCID_SABOTAGE=authentication`, step `caught` of .ci/steps) has to be caught.
//! `PELLUCID_FLIP=all` tries each bit; without it each byte has one of its bits flipped.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use pellucid_host::code::last_report;
use rusqlite::Connection;

use pellucid_tests::content;

use content::{caught, commits, dump, open, parts, plain, spill};

const PAGE: usize = 512;
const REGION: usize = 16384;

struct Bench {
    directory: tempfile::TempDir,
    key: PathBuf,
}

impl Bench {
    fn new() -> Self {
        pellucid_bundled::register().unwrap();
        // In memory where that is to be had: each of some ten thousand trials syncs.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let key = directory.path().join("key");
        fs::write(&key, [7; 32]).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        Self { directory, key }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn sealed(&self, name: &str) -> rusqlite::Result<Connection> {
        let (path, key) = (self.path(name), self.key.display());
        open(&format!("file:{}?vfs=pellucid&key_file={key}", path.display()))
    }
}

fn fill(connection: &Connection) {
    content::fill(connection, PAGE, 40, 0);
}

fn patch(path: &Path, at: usize, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, at as u64).unwrap();
}

/// All bits, or one that is another for each byte.
fn bits(at: usize) -> Vec<u8> {
    if std::env::var_os("PELLUCID_FLIP").is_some_and(|v| v == "all") {
        return (0..8).collect();
    }
    vec![(at % 8) as u8]
}

/// Right data, or an error with its line in the log.
fn judge(found: rusqlite::Result<String>, right: &str, what: &str) -> bool {
    let logged = last_report();
    match found {
        Ok(found) => {
            assert!(found == right, "{what}: WRONG DATA");
            true
        }
        Err(error) => {
            let logged = logged.unwrap_or_else(|| panic!("{what}: {error}, and nothing logged"));
            assert!(logged.line.contains(": "), "{what}: {}", logged.line);
            false
        }
    }
}

#[test]
fn every_byte_of_a_container() {
    caught(" bit ", flip_a_container);
}

fn flip_a_container() {
    let bench = Bench::new();
    let connection = bench.sealed("a.db").unwrap();
    fill(&connection);
    let right = dump(&connection).unwrap();
    drop(connection);
    let path = bench.path("a.db");
    let good = fs::read(&path).unwrap();
    let read = || bench.sealed("a.db").and_then(|connection| dump(&connection));
    let (mut rights, mut errors) = (0, 0);
    for (at, byte) in good.iter().enumerate() {
        for bit in bits(at) {
            patch(&path, at, &[byte ^ (1 << bit)]);
            last_report();
            if judge(read(), &right, &format!("byte {at} bit {bit}")) {
                rights += 1;
            } else {
                errors += 1;
            }
            patch(&path, at, &[*byte]);
            assert!(fs::metadata(&path).unwrap().len() as usize == good.len(), "byte {at}");
        }
    }
    println!("{} bytes: {rights} times the right data, {errors} times an error", good.len());
    assert!(errors > 1000 && rights > 1000);
    assert_eq!(read().unwrap(), right);
}

#[test]
fn pages_moved_and_headers_torn() {
    let bench = Bench::new();
    for name in ["a.db", "b.db"] {
        fill(&bench.sealed(name).unwrap());
    }
    let right = dump(&bench.sealed("a.db").unwrap()).unwrap();
    let path = bench.path("a.db");
    let (good, other) = (fs::read(&path).unwrap(), fs::read(bench.path("b.db")).unwrap());
    let page = |file: &[u8], n: usize| file[REGION + (n - 1) * PAGE..REGION + n * PAGE].to_vec();
    let at = |n: usize| REGION + (n - 1) * PAGE;
    let try_it = |what: &str, change: &dyn Fn(), opens: bool| {
        fs::write(&path, &good).unwrap();
        change();
        last_report();
        let found = bench.sealed("a.db").and_then(|connection| dump(&connection));
        assert_eq!(judge(found, &right, what), opens, "{what}");
    };
    try_it("nothing", &|| (), true);
    try_it(
        "pages 2 and 3 swapped",
        &|| {
            patch(&path, at(2), &page(&good, 3));
            patch(&path, at(3), &page(&good, 2));
        },
        false,
    );
    try_it("page 2 from another file", &|| patch(&path, at(2), &page(&other, 2)), false);
    try_it("page 3 zeroed", &|| patch(&path, at(3), &[0; PAGE]), false);
    try_it("header copy 0 torn", &|| patch(&path, 2048 + 3000, &[1; 500]), true);
    try_it("header copy 1 torn", &|| patch(&path, 9216 + 3000, &[1; 500]), true);
    try_it(
        "both torn",
        &|| {
            patch(&path, 2048 + 3000, &[1; 500]);
            patch(&path, 9216 + 3000, &[1; 500]);
        },
        false,
    );
    try_it("sector 0 wiped", &|| patch(&path, 0, &[0; 512]), true);
    try_it(
        "header of another file",
        &|| {
            patch(&path, 2048, &other[2048..REGION]);
        },
        false,
    );
    try_it("the whole header region of another file", &|| patch(&path, 0, &other[..REGION]), false);
    try_it(
        "cut in the middle of a page",
        &|| {
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len((good.len() - 100) as u64).unwrap();
        },
        false,
    );
    try_it(
        "cut within the header",
        &|| {
            OpenOptions::new().write(true).open(&path).unwrap().set_len(9000).unwrap();
        },
        false,
    );
}

/// Copies of the files a killed process would leave.
fn leave(bench: &Bench, from: &str, suffix: &str) -> (Vec<u8>, Vec<u8>) {
    let log = bench.path(&format!("{from}{suffix}"));
    (fs::read(bench.path(from)).unwrap(), fs::read(log).unwrap())
}

fn put(bench: &Bench, name: &str, suffix: &str, files: &(Vec<u8>, Vec<u8>)) {
    for rest in ["-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(bench.path(&format!("{name}{rest}")));
    }
    fs::write(bench.path(name), &files.0).unwrap();
    fs::write(bench.path(&format!("{name}{suffix}")), &files.1).unwrap();
}

#[test]
fn every_byte_of_a_wal() {
    let bench = Bench::new();
    let connection = bench.sealed("a.db").unwrap();
    fill(&connection);
    let mut states = commits(&connection);
    let files = leave(&bench, "a.db", "-wal");
    let right = states.pop().unwrap();
    let read = || bench.sealed("w.db").and_then(|connection| dump(&connection));
    put(&bench, "w.db", "-wal", &files);
    assert_eq!(read().unwrap(), right);
    let mut counts = [0; 3];
    for at in 0..files.1.len() {
        for bit in bits(at) {
            let mut damaged = (files.0.clone(), files.1.clone());
            damaged.1[at] ^= 1 << bit;
            put(&bench, "w.db", "-wal", &damaged);
            last_report();
            let found = read();
            match &found {
                Ok(data) if states.contains(data) => {
                    assert!(last_report().is_some(), "byte {at} bit {bit}: nothing logged");
                    counts[1] += 1;
                }
                _ => {
                    let right = judge(found, &right, &format!("WAL byte {at} bit {bit}"));
                    counts[if right { 0 } else { 2 }] += 1;
                }
            }
        }
    }
    println!(
        "{} bytes of WAL: right {}, earlier commit {}, error {}",
        files.1.len(),
        counts[0],
        counts[1],
        counts[2]
    );
    assert!(counts[1] > 1000);
}

#[test]
fn every_byte_of_a_hot_journal() {
    let bench = Bench::new();
    let sealed = bench.sealed("a.db").unwrap();
    fill(&sealed);
    let right = dump(&sealed).unwrap();
    spill(&sealed);
    let files = leave(&bench, "a.db", "-journal");
    let plain = plain(&bench.path("p.db"));
    fill(&plain);
    spill(&plain);
    let reference = leave(&bench, "p.db", "-journal");
    let (_, records) = parts(&reference.1, PAGE);
    // What docs/format.md calls zero in a header's sector: not played back, whoever set it. The last header counts no
    // records yet, and may lie torn over anything.
    let mut headers: Vec<usize> = (0..files.1.len())
        .step_by(512)
        .filter(|at| files.1[*at..].starts_with(b"\0PELJRNL"))
        .collect();
    assert!(headers.len() > 1, "one more header than the first");
    headers.pop();
    let zeros: Vec<usize> = headers
        .iter()
        .flat_map(|at| (8..32).chain(108..256).chain(332..512).map(move |byte| at + byte))
        .collect();
    let records: Vec<_> = records.into_iter().map(|start| (start, start + PAGE + 8)).collect();
    assert_eq!(files.1.len(), reference.1.len(), "the same workload writes the same journal");
    assert!(records.len() > 5, "the transaction has to spill");

    // What plain SQLite makes of each broken record.
    let of_plain: Vec<Option<String>> = records
        .iter()
        .map(|(_, end)| {
            let mut broken = (reference.0.clone(), reference.1.clone());
            broken.1[end - 1] ^= 1;
            put(&bench, "q.db", "-journal", &broken);
            dump(&Connection::open(bench.path("q.db")).unwrap()).ok()
        })
        .collect();

    let read = || bench.sealed("j.db").and_then(|connection| dump(&connection));
    put(&bench, "j.db", "-journal", &files);
    assert_eq!(read().unwrap(), right, "a hot journal is played back");
    let (mut counts, mut refused) = ([0; 3], 0);
    for at in 0..files.1.len() {
        for bit in bits(at) {
            let mut damaged = (files.0.clone(), files.1.clone());
            damaged.1[at] ^= 1 << bit;
            put(&bench, "j.db", "-journal", &damaged);
            last_report();
            let found = read();
            let logged = last_report();
            let what = format!("journal byte {at} bit {bit}");
            if zeros.contains(&at) {
                let logged = logged.unwrap_or_else(|| panic!("{what}: nothing logged"));
                assert!(found.is_err() && logged.line.contains("is not zero"), "{what}: {found:?}");
                assert!(bench.path("j.db-journal").exists(), "{what}: the journal is gone");
                refused += 1;
                continue;
            }
            if found.as_ref().is_ok_and(|data| *data == right) {
                counts[0] += 1;
                continue;
            }
            assert!(logged.is_some(), "{what}: {found:?}, and nothing logged");
            let hit = records.iter().position(|(start, end)| *start <= at && at < *end);
            let Some(hit) = hit else { panic!("{what} lies in no record: {found:?}") };
            assert!(found.ok() == of_plain[hit], "{what}: not what plain SQLite makes of it");
            counts[if of_plain[hit].is_some() { 1 } else { 2 }] += 1;
        }
    }
    println!(
        "{} bytes of journal: refused {refused}, right {}, as plain {}, error as plain {}",
        files.1.len(),
        counts[0],
        counts[1],
        counts[2]
    );
    assert!(counts[0] > 100 && counts[1] + counts[2] > 1000);
}

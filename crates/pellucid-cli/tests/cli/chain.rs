//! Goal: a database that is written to all the time is backed up in full and three times by what changed, and each of the
//! four comes back on another machine, which has nothing but the media and the certificate, as it was at its moment.
//!
//! Method: of the database each moment can be recomputed from the number of its last transaction (support/chain.py): every row
//! is compared. It has pages that were never written; a sealed one gets a new key on the way.
//!
//! A database of 2 GiB: PELLUCID_CHAIN_MIB=2048 cargo test --workspace --test cli chain::sealed_wal_4096 -- --nocapture.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{said, Place, PELLUCID};

/// Transactions of the writer between two backups, at least.
const BETWEEN: u64 = 40;
const ROW_BYTES: u64 = 970;

#[test]
fn sealed_wal_512() {
    chain(true, "WAL", 512);
}

#[test]
fn sealed_wal_4096() {
    chain(true, "WAL", 4096);
}

#[test]
fn sealed_wal_65536() {
    chain(true, "WAL", 65536);
}

#[test]
fn sealed_delete_512() {
    chain(true, "DELETE", 512);
}

#[test]
fn sealed_delete_4096() {
    chain(true, "DELETE", 4096);
}

#[test]
fn sealed_delete_65536() {
    chain(true, "DELETE", 65536);
}

#[test]
fn plain_wal_512() {
    chain(false, "WAL", 512);
}

#[test]
fn plain_wal_4096() {
    chain(false, "WAL", 4096);
}

#[test]
fn plain_delete_4096() {
    chain(false, "DELETE", 4096);
}

#[test]
fn plain_delete_65536() {
    chain(false, "DELETE", 65536);
}

/// support/chain.py at work, with the shim for a sealed database.
fn script(place: &Place, words: &[&str]) -> std::process::Command {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/chain.py");
    let mut command = place.command(PELLUCID);
    command.args(["run", "--", "python3"]).arg(path).args(words);
    command
}

struct Writer {
    child: Child,
    committed: Arc<AtomicU64>,
}

impl Writer {
    fn start(place: &Place, rows: &str) -> Self {
        let mut command = script(place, &["write", "app.db", rows]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let committed = Arc::new(AtomicU64::new(0));
        let noted = Arc::clone(&committed);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                noted.store(line.parse().unwrap(), Relaxed);
            }
        });
        Self { child, committed }
    }

    /// Waits for so many transactions more.
    fn goes_on(&mut self, more: u64) {
        let enough = self.committed.load(Relaxed) + more;
        while self.committed.load(Relaxed) < enough {
            assert!(self.child.try_wait().unwrap().is_none(), "the writer ended");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn chain(sealed: bool, journal: &str, page_size: u32) {
    let mib: u64 = std::env::var("PELLUCID_CHAIN_MIB").map_or(3, |text| text.parse().unwrap());
    let rows = (mib << 20).div_euclid(ROW_BYTES).to_string();
    let what = format!("sealed {sealed}, {journal}, pages of {page_size}, {mib} MiB");
    let here = Place::new();
    let size = page_size.to_string();
    said(&mut script(&here, &["make", "app.db", &size, journal, &rows])).succeeded();
    if sealed {
        here.pellucid(&["encrypt", "app.db"]).succeeded();
    }
    let begun = Instant::now();
    let mut writer = Writer::start(&here, &rows);
    let mut backup = |more: &[&str]| {
        writer.goes_on(BETWEEN);
        let at = begun.elapsed();
        let words = [&["--quiet", "backup", "app.db", "--to", "one.bak", "two.bak"], more].concat();
        here.pellucid(&words).succeeded();
        println!("{what}: backup {more:?} in {:.1?}", begun.elapsed() - at);
    };
    backup(&[]);
    backup(&["--append", "--differential"]);
    if sealed {
        here.pellucid(&["--quiet", "rekey", "app.db", "--algorithm", "AES_128"]).succeeded();
    }
    backup(&["--append", "--differential"]);
    backup(&["--append", "--differential"]);
    drop(writer);

    let there = Place::new();
    for name in ["one.bak", "two.bak"] {
        std::fs::copy(here.path(name), there.path(name)).unwrap();
    }
    if sealed {
        move_certificate(&here, &there);
    }
    drop(here);
    let mut last = 0;
    for position in ["1", "2", "3", "4"] {
        let name = format!("moment-{position}.db");
        let words = ["--quiet", "restore", "two.bak", "one.bak", "--position", position];
        there.pellucid(&[&words[..], &["--to", &name]].concat()).succeeded();
        let number = said(&mut script(&there, &["check", &name, &rows])).succeeded();
        let number: u64 = number.trim().parse().unwrap();
        println!("{what}: {position} is the moment after transaction {number}");
        assert!(
            number >= last + BETWEEN,
            "{what}: {position} is of {number}, the one before {last}"
        );
        last = number;
        std::fs::remove_file(there.path(&name)).unwrap();
    }
}

fn move_certificate(here: &Place, there: &Place) {
    for place in [here, there] {
        place.secret("password", b"a long enough password");
    }
    let words = |what, name| ["cert", what, name, "--cert-file", "c.pem", "--key-file", "c.key"];
    let password = ["--password-file", "password"];
    here.pellucid(&[&words("export", "pellucid")[..], &password].concat()).succeeded();
    for name in ["c.pem", "c.key"] {
        std::fs::copy(here.path(name), there.path(name)).unwrap();
    }
    there.pellucid(&["init"]).succeeded();
    there.pellucid(&[&words("import", "moved")[..], &password].concat()).succeeded();
}

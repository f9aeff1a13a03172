//! Goal: encryption is not switched off by an older header, whatever a process has opened before, whatever was run against
//! an older file in between, and whatever cannot be read.
//!
//! Method: a database is encrypted (its file is kept as A), switched off (kept as B) and on again, in one process that has
//! opened each of them; then files are put back by hand. B has to be refused before a byte of it is written, and a
//! database that an administrator switches off must open afterwards.
#![allow(clippy::unwrap_used)]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pellucid::hash::hex;
use pellucid::header::EncryptionState;
use pellucid::protector::Passphrase;
use pellucid::Algorithm;
use pellucid_engine::inspect::{inspect, Kind};
use pellucid_engine::scan;
use pellucid_engine::scan::{Ended, Target};
use pellucid_engine::{audit, protectors};
use pellucid_host::code::last_report;
use pellucid_keyring::Keyring;
use pellucid_vfs::pins::Expectation;
use pellucid_vfs::seal_request::{adopt, Protection};
use rusqlite::{ffi, Connection, OpenFlags};

const ON: Target = Target::On(Algorithm::Aes256);

/// The keyring of all these tests.
fn home() -> &'static Path {
    static HOME: OnceLock<tempfile::TempDir> = OnceLock::new();
    HOME.get_or_init(|| {
        pellucid_bundled::register().unwrap();
        let home = tempfile::tempdir().unwrap();
        std::env::set_var("PELLUCID_HOME", home.path().join("keys"));
        std::env::set_var("PELLUCID_ENCRYPT_NEW", "1");
        home
    })
    .path()
}

struct Bench {
    directory: tempfile::TempDir,
    mode: &'static str,
    /// While it was encrypted at first, and while it was not.
    a: Vec<u8>,
    b: Vec<u8>,
}

impl Bench {
    fn new(mode: &'static str) -> Self {
        home();
        let mut bench =
            Self { directory: tempfile::tempdir().unwrap(), mode, a: Vec::new(), b: Vec::new() };
        let connection = bench.open().unwrap();
        connection.execute_batch("CREATE TABLE note(t); INSERT INTO note VALUES('x')").unwrap();
        drop(connection);
        bench.a = fs::read(bench.path()).unwrap();
        bench.set(Target::Off);
        bench.b = fs::read(bench.path()).unwrap();
        bench.read().unwrap();
        bench
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("app.db")
    }

    /// Puts file A back, as an administrator does on purpose: the path is no longer pinned.
    fn take_back(&self) {
        self.put(&self.a);
        self.expect_nothing();
    }

    /// Nothing is expected at the path, so that the memory by the file id alone decides.
    fn expect_nothing(&self) {
        Expectation::at(&self.path()).unwrap().release().unwrap();
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        let uri = format!("file:{}?vfs=pellucid", self.path().display());
        let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(uri, flags)?;
        connection.execute_batch(&format!("PRAGMA journal_mode={}", self.mode))?;
        Ok(connection)
    }

    fn read(&self) -> rusqlite::Result<i64> {
        self.open()?.query_row("SELECT count(*) FROM note", [], |row| row.get(0))
    }

    fn write(&self) -> rusqlite::Result<()> {
        write(&self.open()?)
    }

    fn set(&self, target: Target) {
        scan::set(&self.path(), target).unwrap();
        let ended = scan::run(&self.path(), &scan::Options::default(), &mut |_, _, _| ()).unwrap();
        assert_eq!(ended, Ended::Complete);
    }

    /// In the place of what is there, the inode kept, as `cat` does.
    fn put(&self, bytes: &[u8]) {
        for end in ["-wal", "-shm", "-journal"] {
            let _ = fs::remove_file(self.directory.path().join(format!("app.db{end}")));
        }
        OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(self.path())
            .unwrap()
            .write_all(bytes)
            .unwrap();
    }

    fn file_id(&self) -> [u8; 16] {
        self.header().file_id
    }

    fn header(&self) -> pellucid::header::Header {
        match inspect(&self.path()).unwrap().kind {
            Kind::Sealed(sealed) => sealed.header,
            other => panic!("{other:?}"),
        }
    }

    fn memory(&self) -> PathBuf {
        home().join("keys/keyring/databases").join(hex(&self.file_id()))
    }

    fn is_clean(&self, what: &str) {
        let found = ["", "-wal", "-journal"].iter().any(|end| {
            let file = fs::read(self.directory.path().join(format!("app.db{end}")));
            file.unwrap_or_default().windows(6).any(|bytes| bytes == b"SECRET")
        });
        assert!(!found, "{what}: the secret lies in clear");
    }

    fn is_refused(&self, what: &str) {
        last_report();
        refused(self.write(), what);
        self.is_clean(what);
    }
}

fn write(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("INSERT INTO note VALUES('SECRET')")
}

fn refused<T: std::fmt::Debug>(found: rusqlite::Result<T>, what: &str) {
    let logged = last_report();
    let error = found.unwrap_err();
    let code = error.sqlite_error().map(|error| error.extended_code);
    assert_eq!(code, Some(ffi::SQLITE_IOERR_DATA), "{what}: {error}");
    let line = logged.unwrap().line;
    assert!(line.contains("an older header was put back"), "{what}: {line}");
}

#[test]
fn a_header_that_this_process_has_opened_before_is_refused() {
    for mode in ["delete", "wal"] {
        let bench = Bench::new(mode);
        bench.set(ON);
        bench.read().unwrap();
        bench.put(&bench.b);
        bench.is_refused(mode);
    }
}

/// Its header is the one that the connection knows: nothing is read anew.
#[test]
fn a_connection_that_was_idle_meanwhile_writes_nothing() {
    for mode in ["delete", "truncate"] {
        let bench = Bench::new(mode);
        let idle = bench.open().unwrap();
        let rows: i64 = idle.query_row("SELECT count(*) FROM note", [], |row| row.get(0)).unwrap();
        bench.set(ON);
        bench.put(&bench.b);
        last_report();
        refused(write(&idle), mode);
        bench.is_clean(mode);
        bench.put(&bench.b);
        assert_eq!(rows, 1);
    }
}

/// SQLite would take it for an empty database. Also of a connection that was open, and read it, before.
#[test]
fn a_file_that_was_cut_to_its_header_is_no_empty_database() {
    const REGION: u64 = pellucid::header::REGION_BYTES;
    for mode in ["delete", "truncate", "persist"] {
        let bench = Bench::new(mode);
        bench.set(ON);
        let idle = bench.open().unwrap();
        assert_eq!(bench.read().unwrap(), 1);
        let cut = |bytes| {
            OpenOptions::new().write(true).open(bench.path()).unwrap().set_len(bytes).unwrap();
        };
        let refused = |found: rusqlite::Result<()>, what: &str| {
            let error = found.unwrap_err();
            let code = error.sqlite_error().map(|error| error.extended_code);
            assert_eq!(code, Some(ffi::SQLITE_AUTH | 1 << 8), "{mode}, {what}: {error}");
        };
        let make = "CREATE TABLE IF NOT EXISTS note(t); INSERT INTO note VALUES('SECRET')";
        for bytes in [REGION, REGION - 5000] {
            cut(bytes);
            refused(idle.execute_batch(make), "idle");
            refused(idle.query_row("SELECT count(*) FROM note", [], |_| Ok(())), "idle, reads");
        }
        cut(REGION);
        refused(bench.write(), "opened");
        assert_eq!(fs::metadata(bench.path()).unwrap().len(), REGION, "{mode}: it was written to");
    }
}

/// In WAL mode SQLite deletes the log of a database without a page.
#[test]
fn the_log_beside_a_file_that_was_cut_to_its_header_stays() {
    let bench = Bench::new("wal");
    bench.set(ON);
    bench.read().unwrap();
    let connection = bench.open().unwrap();
    write(&connection).unwrap();
    let log = bench.directory.path().join("app.db-wal");
    let (file, kept) = (fs::read(bench.path()).unwrap(), fs::read(&log).unwrap());
    drop(connection);
    bench.put(&file[..pellucid::header::REGION_BYTES as usize]);
    fs::write(&log, &kept).unwrap();
    bench.write().unwrap_err();
    assert!(fs::read(&log).unwrap() == kept);
    bench.put(&file);
    fs::write(&log, &kept).unwrap();
    assert_eq!(bench.read().unwrap(), 2);
}

#[test]
fn nothing_that_is_run_against_an_older_file_lowers_the_memory() {
    type Run = fn(&Bench);
    let runs: [(&str, Run); 7] = [
        ("nothing", |_| ()),
        ("a protector added", |bench| {
            let passphrase = Passphrase::new(b"a Pa55word");
            protectors::add(&bench.path(), &Protection::Passphrase(passphrase)).unwrap();
        }),
        ("protectors exchanged", |bench| {
            protectors::exchange(&bench.path(), None, &Protection::Certificate(None)).unwrap();
        }),
        ("a rekey", |bench| {
            scan::rekey(&bench.path(), None).unwrap();
        }),
        ("adopted", |bench| {
            // It is not where it is known: a check of a file elsewhere makes that the place.
            let elsewhere = bench.directory.path().join("elsewhere.db");
            fs::rename(bench.path(), &elsewhere).unwrap();
            let options = audit::Options { physical_only: true, cores: 1 };
            audit::audit(&elsewhere, options, &mut |_, _, _| ()).unwrap();
            let Kind::Sealed(sealed) = inspect(&elsewhere).unwrap().kind else { panic!() };
            adopt(&sealed.header, &elsewhere);
            fs::rename(&elsewhere, bench.path()).unwrap();
        }),
        ("a copy decrypted", |bench| {
            let copy = bench.directory.path().join("copy.db");
            fs::copy(bench.path(), &copy).unwrap();
            decrypt(&copy);
        }),
        ("decrypted and put back", |bench| decrypt(&bench.path())),
    ];
    for (what, run) in runs {
        let bench = Bench::new("delete");
        bench.set(ON);
        bench.take_back();
        run(&bench);
        bench.expect_nothing();
        bench.put(&bench.b);
        bench.is_refused(what);
    }
}

fn decrypt(path: &Path) {
    let options = pellucid_host::Options::new(std::time::Duration::from_secs(10), Vec::new());
    pellucid_engine::convert::decrypt::decrypt(path, &options, &mut |_, _, _| ()).unwrap();
}

/// What is written by an administrator's command is later than whatever is remembered.
#[test]
fn an_older_copy_that_was_taken_back_can_be_switched_off() {
    let bench = Bench::new("delete");
    bench.set(ON);
    bench.take_back();
    assert_eq!(bench.read().unwrap(), 1);
    bench.set(Target::Off);
    assert_eq!(bench.header().state, EncryptionState::Unencrypted);
    bench.write().unwrap();
    bench.set(ON);
    assert_eq!(bench.read().unwrap(), 2);
    bench.put(&bench.b);
    bench.is_refused("older than both");
}

#[test]
fn a_memory_that_cannot_be_read_refuses_and_one_that_is_not_there_does_not() {
    let bench = Bench::new("delete");
    let memory = bench.memory();
    let kept = fs::read(&memory).unwrap();
    let told = |what: &str| {
        last_report();
        let error = bench.write().unwrap_err();
        let code = error.sqlite_error().map(|error| error.extended_code);
        assert_eq!(code, Some(ffi::SQLITE_AUTH), "{what}: {error}");
        let line = last_report().unwrap().line;
        assert!(line.contains(&*memory.to_string_lossy()), "{what}: {line}");
    };
    let mut damaged = kept.clone();
    *damaged.last_mut().unwrap() ^= 1;
    for (what, bytes) in [("damaged", &damaged[..]), ("cut", &kept[..20]), ("empty", &[])] {
        fs::write(&memory, bytes).unwrap();
        told(what);
        // What it must not be replaced by either.
        let change = scan::set(&bench.path(), ON);
        assert!(change.is_err() && fs::read(&memory).unwrap() == bytes, "{what}");
    }
    fs::remove_file(&memory).unwrap();
    fs::create_dir(&memory).unwrap();
    told("a directory");
    fs::remove_dir(&memory).unwrap();
    bench.write().unwrap();
    fs::write(&memory, &kept).unwrap();
    bench.write().unwrap();
    // An encrypted one asks for nothing.
    bench.set(ON);
    fs::write(&memory, &damaged).unwrap();
    bench.write().unwrap();
    fs::set_permissions(&memory, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(Keyring::open(&home().join("keys"))
        .unwrap()
        .recall_database(&bench.file_id())
        .is_err());
}

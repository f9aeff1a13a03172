//! An instance, databases over a named VFS, and the built program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use pellucid_tests::processes::{built, extension};
use rusqlite::{Connection, OpenFlags};

/// What no file may have in clear.
pub const MARK: &str = "MARK-in-clear-MARK";

/// VFSes of SQLite's that are not the platform's and whose databases lie in files, so that a test can look at them.
pub const NAMED: [&str; 2] = ["unix-dotfile", "unix-none"];

/// The instance of this test's processes, with the certificate `pellucid`.
pub fn instance() -> &'static Path {
    static MADE: OnceLock<tempfile::TempDir> = OnceLock::new();
    MADE.get_or_init(|| {
        let home = tempfile::tempdir().unwrap();
        std::env::set_var("PELLUCID_HOME", home.path().join("keys"));
        said_ok(&pellucid(&["init"]));
        said_ok(&pellucid(&["cert", "create", "pellucid"]));
        home
    })
    .path()
}

/// Runs the built program.
pub fn pellucid(arguments: &[&str]) -> Output {
    let mut command = Command::new(built("pellucid"));
    // New databases are of version 2, which has recovery models and an index in memory.
    command.env("PELLUCID_FORMAT", "2").env_remove("PELLUCID_OVER");
    command.arg("--quiet").args(arguments).output().unwrap()
}

/// What a command said that ended well.
pub fn said_ok(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A connection that has the extension, which makes it this process's, and answers for the thread's last error.
pub fn talker() -> Connection {
    instance();
    let connection = Connection::open_in_memory().unwrap();
    // SAFETY: the library is this repository's own, built for the tests.
    unsafe {
        connection.load_extension_enable().unwrap();
        connection.load_extension(extension(), None::<&str>).unwrap();
    }
    connection
}

/// A folder, and the connection that tells of errors.
#[derive(Debug)]
pub struct Place {
    folder: tempfile::TempDir,
    talker: Connection,
}

impl Place {
    pub fn new() -> Self {
        let talker = talker();
        Self { folder: tempfile::tempdir().unwrap(), talker }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Opens `name` with these parameters, and reads it.
    pub fn open(&self, name: &str, parameters: &str) -> Result<Connection, String> {
        open_uri(&format!("file:{}?{parameters}", self.path(name).display()))
            .map_err(|error| format!("{error}; {}", self.last_error()))
    }

    /// A sealed database over `vfs`, with a row.
    pub fn born(&self, name: &str, vfs: &str) -> Connection {
        let db = self.open(name, &over(vfs)).unwrap();
        db.execute_batch(&format!("CREATE TABLE t(a); INSERT INTO t VALUES ('{MARK}')")).unwrap();
        db
    }

    /// What the shim said last on this thread.
    pub fn last_error(&self) -> String {
        self.talker.query_row("SELECT pellucid_last_error()", [], |row| row.get(0)).unwrap()
    }

    /// Files of the folder that have the mark in clear.
    pub fn in_clear(&self) -> Vec<PathBuf> {
        let files =
            std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let has = |bytes: &[u8]| bytes.windows(MARK.len()).any(|part| part == MARK.as_bytes());
        files.filter(|path| path.is_file() && has(&std::fs::read(path).unwrap())).collect()
    }
}

/// The parameters that open, or bear, a sealed database over `vfs`.
pub fn over(vfs: &str) -> String {
    format!("vfs=pellucid&pellucid_over={vfs}&certificate=pellucid")
}

/// The same for a connection that has the database for itself alone, as a log needs it where there is no shared memory.
pub fn alone_over(vfs: &str) -> String {
    format!("{}&alone=1", over(vfs))
}

/// Opens a URI and reads the database. With `alone` in it, in an exclusive locking mode from the start.
pub fn open_uri(uri: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(uri, flags)?;
    if uri.contains("alone") {
        db.execute_batch("PRAGMA locking_mode=EXCLUSIVE")?;
    }
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(db)
}

/// The number that a query gives.
pub fn number(db: &Connection, sql: &str) -> i64 {
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// The text that a query gives.
pub fn text(db: &Connection, sql: &str) -> String {
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Whether a file begins as a sealed database does.
pub fn is_sealed(path: &Path) -> bool {
    std::fs::read(path).unwrap().starts_with(b"Pellucid ")
}

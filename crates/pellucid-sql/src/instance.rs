//! An instance as sessions see it: the keyring, the databases behind their names, folders and settings.
//!
//! All of it lies in the instance directory; what is not a key lies in `msdb`, the sealed database of the history
//! ([`pellucid_backup::history`]), in tables of its own.

pub(crate) mod files;
pub(crate) mod folders;
mod import;
mod modules;
mod options;
pub(crate) mod paths;
pub(crate) mod registry;
mod settings;

use std::path::{Path, PathBuf};

use pellucid_backup::history::{History, FILE, MASTER_FILE, OWN};
use pellucid_keyring::Keyring;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::message::Result;

pub(crate) use files::{DatabaseFile, FileKind};
pub(crate) use modules::{Module, ModuleKind};
pub(crate) use options::{Setting, SETTINGS};
pub(crate) use registry::{Known, PendingKey, State, MASTER, MODEL, MSDB, TEMPDB};

/// The name of the tables that hold what is known of databases, before all of them.
const SCHEMA: &str = include_str!("instance/schema.sql");
/// The tables of jobs.
const JOBS: &str = include_str!("instance/jobs.sql");
/// What a keyring says that only a password opens.
const MASTER_KEY_MISSING: u32 = 15581;
/// How long to wait for another session that changes the same.
const WAIT: std::time::Duration = std::time::Duration::from_secs(10);

/// An instance.
pub(crate) struct Instance {
    home: PathBuf,
    msdb: Connection,
    /// Only a password opens the database master key, so that `msdb` is not at hand: what is said of it is not kept.
    is_closed: bool,
    drives: Vec<(char, PathBuf)>,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").field("home", &self.home).finish_non_exhaustive()
    }
}

impl Instance {
    /// Opens the instance of this process; makes it if there is none, or one that was only begun. Then nobody has asked
    /// for a database master key yet, and CREATE MASTER KEY is not refused.
    ///
    /// # Errors
    /// What keeps keyring or `msdb` from being opened.
    pub fn open(drives: Vec<(char, PathBuf)>) -> Result<Self> {
        let home = Keyring::locate()?;
        let is_new = Keyring::is_to_be_made(&home)
            && Keyring::open_or_create(&home)?.1.database_master_key.is_some();
        let (msdb, is_closed) = match open_msdb(&home) {
            Ok(msdb) => (msdb, false),
            // OPEN MASTER KEY and ALTER MASTER KEY are to be had all the same.
            Err(error) if error.number == MASTER_KEY_MISSING => (empty_msdb()?, true),
            Err(error) => return Err(error),
        };
        let instance = Self { home, msdb, is_closed, drives };
        if is_new {
            instance.set_master_key_declared(false)?;
        }
        // Names are given by whoever may write them.
        let _ = instance.register_known();
        Ok(instance)
    }

    /// Opens `msdb` once the database master key opens by itself again.
    ///
    /// # Errors
    /// What keeps it from being opened now.
    pub fn open_msdb_if_closed(&mut self) -> Result<()> {
        if self.is_closed && Keyring::open(&self.home).is_ok() {
            self.msdb = open_msdb(&self.home)?;
            self.is_closed = false;
            self.register_known()?;
        }
        Ok(())
    }

    /// Whether only a password opens the database master key, so that `msdb` is not at hand.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The keyring.
    ///
    /// # Errors
    /// As [`Keyring::open`].
    pub fn keyring(&self) -> Result<Keyring> {
        Ok(Keyring::open(&self.home)?)
    }

    /// The instance directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// `msdb` as a file.
    pub fn msdb_path(&self) -> PathBuf {
        self.home.join(FILE)
    }

    /// What scripts keep in `master`, as a file.
    pub fn master_path(&self) -> PathBuf {
        self.home.join(MASTER_FILE)
    }

    /// Reads `msdb` as it is now, whatever others write meanwhile: its file is locked and looked at once, not for each query.
    ///
    /// # Errors
    /// SQLite's; those of `read`.
    pub fn as_of_now<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        if !self.msdb.is_autocommit() {
            return read();
        }
        self.msdb.execute_batch("BEGIN")?;
        let done = read();
        if !self.msdb.is_autocommit() {
            self.msdb.execute_batch("COMMIT")?;
        }
        done
    }

    /// The connection to `msdb`.
    pub fn msdb(&self) -> &Connection {
        &self.msdb
    }
}

/// Makes it if it is not there, and offers its key to every connection of this process.
fn open_msdb(home: &Path) -> Result<Connection> {
    History::open_or_begin()?;
    let msdb = Connection::open_with_flags(
        own_uri(&home.join(FILE)),
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI,
    )?;
    msdb.busy_timeout(WAIT)?;
    import::harden(&msdb)?;
    // Whoever may only read the instance finds them made.
    let last = "SELECT count(*) FROM sqlite_schema WHERE name IN ('pellucid_module', 'pellucid_request_text', \
                'pellucid_agent_session', 'pellucid_sets_of')";
    let found: i64 = msdb.query_row(last, [], |row| row.get(0))?;
    // The index alone is nothing that anybody misses.
    let (has_tables, has_all) = (found >= 3, found == 4);
    if !has_all || !modules::tells_kinds(&msdb)? {
        match make_tables(&msdb) {
            // Procedures of before are there all the same.
            Err(error) if has_tables && is_read_only(&error) => {}
            made => made?,
        }
    }
    Ok(msdb)
}

fn make_tables(msdb: &Connection) -> rusqlite::Result<()> {
    let made = Transaction::new_unchecked(msdb, TransactionBehavior::Immediate)?;
    make_all(&made)?;
    made.commit()
}

fn make_all(msdb: &Connection) -> rusqlite::Result<()> {
    msdb.execute_batch(SCHEMA)?;
    msdb.execute_batch(JOBS)?;
    modules::tell_kinds(msdb)
}

fn is_read_only(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::ReadOnly)
}

fn empty_msdb() -> Result<Connection> {
    let msdb = Connection::open_in_memory()?;
    msdb.execute_batch("PRAGMA temp_store = MEMORY")?;
    msdb.execute_batch(pellucid_backup::history::SCHEMA)?;
    make_all(&msdb)?;
    Ok(msdb)
}

/// The name of a database as SQLite's URI, through the shim (uri.html).
pub(crate) fn uri(path: &Path) -> String {
    uri_with(path, "vfs=pellucid")
}

/// The same for a database of the instance's own.
pub(crate) fn own_uri(path: &Path) -> String {
    uri_with(path, OWN)
}

fn uri_with(path: &Path, parameters: &str) -> String {
    use std::os::unix::ffi::OsStrExt;
    // An empty authority: two slashes at the path's own beginning would be taken for one.
    let mut text = String::from(if path.is_absolute() { "file://" } else { "file:" });
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                text.push(char::from(*byte))
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text + "?" + parameters
}

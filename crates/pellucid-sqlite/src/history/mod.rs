//! The history of an instance: which backups were made and restored, in SQL Server's tables of `msdb`.
//!
//! A sealed database in the instance directory, under a key of the keyring. Nothing needs it to restore, and it can be
//! made again from media; so whoever cannot write it says so and goes on.

mod list;
mod prune;
mod record;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use pellucid::keyring::Keyring;
use pellucid::{Algorithm, Error, Subject};

use crate::convert::connection::{uri, Handle};
use crate::convert::ConvertError;
use crate::ffi;
use crate::seal_request::{offer, prepare_birth, Birth, Offer, Protection};

pub use list::{KnownRestore, KnownSet};
pub use prune::{Plan, PlannedFile};
pub use record::{files_of, whole_name, FamilyFile, RestoreRecord, SetRecord};

/// The name of the database in the instance directory.
pub const FILE: &str = "msdb.db";
const WAIT_MS: i32 = 10_000;

/// SQL Server's tables, with its columns. Times are UTC, to the microsecond. Three tables of our own: who can open a set,
/// where a restore went, and which sets were overwritten.
const SCHEMA: &str = include_str!("schema.sql");
/// The last of them, which a history may be too old to have.
const GONE: &str = "CREATE TABLE IF NOT EXISTS pellucid_gone(";

/// An open history.
#[derive(Debug)]
pub struct History {
    handle: Handle<'static>,
}

impl History {
    /// The history of the instance that this process uses; none if none was begun.
    ///
    /// # Errors
    /// [`ConvertError`] if it is there and cannot be read.
    pub fn open() -> std::result::Result<Option<Self>, ConvertError> {
        let home = Keyring::locate()?;
        let path = home.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let key = Keyring::open(&home)?.history_key()?;
        let lost =
            || Error::missing_key(Subject::File(path.clone()), "the keyring has no key for it");
        offer_once(&key.ok_or_else(lost)?);
        let handle = Handle::open(&path, &uri(&path, "vfs=pellucid"), ffi::OPEN_READWRITE)?;
        handle.busy_timeout(WAIT_MS);
        handle.run("SELECT count(*) FROM backupset")?;
        for statement in SCHEMA.split(';').filter(|text| text.trim().starts_with(GONE)) {
            handle.run(statement)?;
        }
        Ok(Some(Self { handle }))
    }

    /// The same, begun if there is an instance and no history yet.
    ///
    /// # Errors
    /// As [`History::open`].
    pub fn open_or_begin() -> std::result::Result<Option<Self>, ConvertError> {
        let home = Keyring::locate()?;
        if !Keyring::is_at(&home) {
            return Ok(None);
        }
        let path = home.join(FILE);
        if !path.exists() {
            begin(&home, &path)?;
        }
        Self::open()
    }

    /// Begins a new one; one that is there is kept under another name, which is given back.
    ///
    /// # Errors
    /// As [`History::open`].
    pub fn begin_anew() -> std::result::Result<(Self, Option<PathBuf>), ConvertError> {
        let home = Keyring::locate()?;
        let path = home.join(FILE);
        let mut kept = None;
        if path.exists() {
            let older = home.join(format!("{FILE}.{}", crate::seal_request::now()));
            std::fs::rename(&path, &older)
                .map_err(|error| Error::io(Subject::File(path.clone()), error))?;
            kept = Some(older);
        }
        let keyring = Keyring::open(&home)?;
        if keyring.history_key().is_err() {
            keyring.renew_history_key()?;
        }
        let begun = Self::open_or_begin()?;
        let none = || Error::misuse(Subject::File(home), "there is no instance");
        Ok((begun.ok_or_else(none)?, kept))
    }

    /// Runs `work` in one transaction.
    fn transaction<T>(
        &self,
        work: impl FnOnce() -> std::result::Result<T, ConvertError>,
    ) -> std::result::Result<T, ConvertError> {
        self.handle.run("BEGIN IMMEDIATE")?;
        match work() {
            Ok(done) => {
                self.handle.run("COMMIT")?;
                Ok(done)
            }
            Err(error) => {
                // The first error is the one to tell.
                let _ = self.handle.run("ROLLBACK");
                Err(error)
            }
        }
    }

    /// The number that a query gives, if it gives one.
    fn find(&self, sql: &str) -> std::result::Result<Option<i64>, ConvertError> {
        let mut found = None;
        self.handle.rows(sql, |row| found = (!row.is_null(0)).then(|| row.number(0)))?;
        Ok(found)
    }
}

/// Makes the database whole before it has its name.
fn begin(home: &Path, path: &Path) -> std::result::Result<(), ConvertError> {
    let key = Keyring::open(home)?.ensure_history_key()?;
    offer_once(&key);
    let mut random = [0; 8];
    pellucid::secret::fill_random(&mut random)?;
    let new = home.join(format!(".{FILE}.{:016x}", u64::from_ne_bytes(random)));
    let birth = Birth::new(Algorithm::Aes256, &[Protection::KeyFile(key)])?;
    let token = prepare_birth(birth)?;
    {
        let uri = uri(&new, &format!("vfs=pellucid&pellucid_birth={token}"));
        let handle = Handle::open(&new, &uri, ffi::OPEN_READWRITE | ffi::OPEN_CREATE)?;
        handle.run("BEGIN")?;
        for statement in SCHEMA.split(';').filter(|text| !text.trim().is_empty()) {
            handle.run(statement)?;
        }
        handle.run("COMMIT")?;
    }
    let io = |error| Error::io(Subject::File(path.to_owned()), error);
    // Another process may have been faster; then its history is the one.
    let linked = std::fs::hard_link(&new, path);
    std::fs::remove_file(&new).map_err(io)?;
    match linked {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(io(error).into()),
        _ => Ok(crate::convert::laying::sync_directory(path)?),
    }
}

/// The key goes to every connection of this process, as other keys do; once.
fn offer_once(key: &pellucid::protector::KeyFile) {
    static OFFERED: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
    let identity = key.identity().to_vec();
    let mut offered = OFFERED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !offered.contains(&identity) {
        offer(Offer::KeyFile(key.clone()));
        offered.push(identity);
    }
}

/// A time on media as the tables have it; NULL for 0.
fn time_of(micros: u64) -> String {
    if micros == 0 {
        return "NULL".to_owned();
    }
    let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
    format!("strftime('%Y-%m-%d %H:%M:%S', {seconds}, 'unixepoch') || '.{rest:06}'")
}

/// Bytes as an SQL literal of their hexadecimal digits; NULL for zeros.
fn hex_of(bytes: &[u8]) -> String {
    match bytes.iter().all(|byte| *byte == 0) {
        true => "NULL".to_owned(),
        false => format!("'{}'", pellucid::certificate::hex(bytes)),
    }
}

/// An error of the history, for somebody who goes on without it.
pub fn told(outcome: std::result::Result<(), ConvertError>) -> Option<String> {
    outcome.err().map(|error| format!("the history was not written: {error}"))
}

//! The history of an instance: which backups were made and restored, in SQL Server's tables of `msdb`.
//!
//! A sealed database in the instance directory, under a key of the keyring. Nothing needs it to restore, and it can be
//! made again from media; so whoever cannot write it says so and goes on.

mod archiver;
mod begun;
mod found;
mod last;
mod link;
mod list;
mod logs;
mod prune;
mod record;
mod standby;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use pellucid::header::Header;
use pellucid::shown::Shown;
use pellucid::{Algorithm, Error, Subject};
use pellucid_engine::inspect::{inspect, Kind};
use pellucid_files::paths::{self, full_name};
use pellucid_host::connection::{uri, Handle};
use pellucid_host::ffi;
use pellucid_host::DatabaseError;
use pellucid_keyring::{Keyring, Making};
use pellucid_vfs::pins::Expectation;
use pellucid_vfs::seal_request::{
    offer, prepare_birth, Birth, Credentials, Offer, Protection, Request,
};

pub use archiver::ArchiverRecord;
pub use begun::Begun;
pub use found::{look_at, Origin};
pub use link::{chain_at, chain_of, names, KnownManifest, Link};
pub use list::{KnownOf, KnownRestore, KnownSet};
pub use logs::MarkRecord;
pub use prune::{Plan, Pruning};
pub use record::{files_of, whole_name, FamilyFile, RestoreRecord, SetRecord};
pub use standby::{Reached, StandbyRecord};

/// The name of the database in the instance directory.
pub const FILE: &str = "msdb.db";
/// The file of what scripts keep in `master`, under the same key.
pub const MASTER_FILE: &str = "master.db";
/// What is written at once: a file without a page would be no sealed one yet.
const MASTER_SCHEMA: &str = "PRAGMA user_version = 1";
/// How the instance's own files are opened: sealed, by the history's key alone, and no other database in their place than the
/// pinned one. No new database is sealed like them.
pub const OWN: &str = "vfs=pellucid&plain_copies=1&require=sealed&pellucid_own=1";
const WAIT_MS: i32 = 10_000;

/// SQL Server's tables, with its columns. Times are UTC, to the microsecond. Its marks are those of log backups. Eight tables of our own: who can open a set,
/// where a restore went, which sets were overwritten, the manifests of sets, which stay when a set is pruned, the files
/// of sets that were begun, the places of sets in chains of log backups, how far archivers are,
/// and where standbys are.
pub const SCHEMA: &str = include_str!("schema.sql");
/// The marks and the last six of our own, which a history may be too old to have.
const LATER: &str = "CREATE TABLE IF NOT EXISTS ";

/// An open history.
#[derive(Debug)]
pub struct History {
    handle: Handle<'static>,
}

/// Which file was the history, if one was.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen(Option<(u64, u64)>);

impl History {
    /// Which file is the history now. Asked before it is opened, it says whether what failed is what is there later.
    ///
    /// # Errors
    /// What is wrong with the home.
    pub fn seen() -> pellucid::Result<Seen> {
        let path = Keyring::locate()?.join(FILE);
        Ok(Seen(paths::look_at_name(&path).ok().map(|found| (found.dev(), found.ino()))))
    }

    /// The history of the instance that this process uses; none if none was begun.
    ///
    /// # Errors
    /// [`DatabaseError`] if it is there and cannot be read.
    pub fn open() -> std::result::Result<Option<Self>, DatabaseError> {
        let home = Keyring::locate()?;
        let path = home.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let key = Keyring::open(&home)?.history_key()?;
        let lost =
            || Error::missing_key(Subject::File(path.clone()), "the keyring has no key for it");
        offer_once(&key.ok_or_else(lost)?);
        let open = || {
            let handle = Handle::open(&path, &uri(&path, OWN), ffi::OPEN_READWRITE)?;
            handle.busy_timeout(WAIT_MS);
            handle.run("SELECT count(*) FROM backupset")?;
            Ok(handle)
        };
        let handle = open().map_err(|error| why_not_own(&path).unwrap_or(error))?;
        for statement in SCHEMA.split(';').filter(|text| text.trim().starts_with(LATER)) {
            handle.run(statement)?;
        }
        Ok(Some(Self { handle }))
    }

    /// The same, begun if there is an instance and no history yet.
    ///
    /// # Errors
    /// As [`History::open`].
    pub fn open_or_begin() -> std::result::Result<Option<Self>, DatabaseError> {
        let home = Keyring::locate()?;
        if !Keyring::is_at(&home) {
            return Ok(None);
        }
        make_if_missing(&home, FILE, SCHEMA)?;
        let seen = Self::seen()?;
        let opened = Self::open();
        if opened.is_ok() || Self::seen()? == seen {
            return opened;
        }
        // Somebody else put a new one in its place meanwhile, and may not have ended.
        make_if_missing(&home, FILE, SCHEMA)?;
        Self::open()
    }

    /// The file of `master`, made if it is not there; its key is offered to each connection of this process.
    ///
    /// # Errors
    /// As [`History::open`].
    pub fn master_file() -> std::result::Result<PathBuf, DatabaseError> {
        let home = Keyring::locate()?;
        make_if_missing(&home, MASTER_FILE, MASTER_SCHEMA)
    }

    /// Offers the key of the history where `path` is a file under it: the instance's own.
    ///
    /// # Errors
    /// What is wrong with the keyring.
    pub fn offer_key_of(path: &Path) -> pellucid::Result<()> {
        let home = Keyring::locate()?;
        let given = full_name(path);
        if [FILE, MASTER_FILE].iter().any(|file| full_name(&home.join(file)) == given) {
            if let Some(key) = Keyring::open(&home)?.history_key()? {
                offer_once(&key);
            }
        }
        Ok(())
    }

    /// Lets the keyring expect nothing any more at the names that a file of the instance's own had until it was whole: another
    /// file is about to take its place, and the one that had them is nowhere then.
    ///
    /// # Errors
    /// What is wrong with the keyring.
    pub fn forget_working_names(file: &str) -> pellucid::Result<()> {
        let home = Keyring::locate()?;
        let keyring = Keyring::open(&home)?;
        let (start, own) = (format!(".{file}."), full_name(&home));
        let is_working_name = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&start) && path.parent().is_some_and(|folder| full_name(folder) == own)
        };
        for pin in keyring.each_pin()?.into_iter().filter_map(|(_, pin)| pin.ok()) {
            if is_working_name(&pin.path) {
                keyring.change_pin(&pin.path, |_| None)?;
            }
        }
        Ok(())
    }

    /// Begins a new one in the place of one that is lost ([`is_lost`]), which is kept under another name with what lies
    /// beside it. Where it went is given back: nowhere if somebody else has begun one in the place of `lost` meanwhile.
    ///
    /// # Errors
    /// As [`History::open`]; nothing was changed if the keyring does not open or the new one cannot be made.
    pub fn begin_anew(lost: &Seen) -> std::result::Result<(Self, Option<PathBuf>), DatabaseError> {
        let home = Keyring::locate()?;
        let path = home.join(FILE);
        // Whoever finds none in between waits for the new one.
        let _making = Making::begin(&home)?;
        if Self::seen()? != *lost {
            if let Ok(Some(begun)) = Self::open() {
                return Ok((begun, None));
            }
        }
        let keyring = Keyring::open(&home)?;
        // What is under a key that is lost opens no more. It goes first: a crash behind it finds the key as lost as before.
        let leave_master = || set_aside(&home.join(MASTER_FILE), &["-journal", "-wal", "-shm"]);
        match keyring.history_key().map_err(DatabaseError::from) {
            Ok(Some(_)) => {}
            Ok(None) => drop(leave_master()?),
            Err(error) if is_lost(&error) => {
                leave_master()?;
                set_aside(&home.join("keyring/history"), &[])?;
                keyring.renew_history_key()?;
            }
            Err(error) => return Err(error),
        }
        let new = make(&home, FILE, SCHEMA)?;
        let kept = set_aside(&path, &["-journal", "-wal", "-shm"])
            .inspect_err(|_| drop(std::fs::remove_file(&new)))?;
        if let Err(error) = give_name(&new, &path) {
            let told = |kept: &PathBuf| format!("{error}; the older one is `{}`", kept.shown());
            let cause = kept.as_ref().map_or_else(|| error.to_string(), told);
            return Err(Error::io(Subject::File(path), std::io::Error::other(cause)).into());
        }
        let none = || Error::misuse(Subject::File(home), "there is no instance");
        Ok((Self::open()?.ok_or_else(none)?, kept))
    }

    /// Runs `work` in one transaction.
    fn transaction<T>(
        &self,
        work: impl FnOnce() -> std::result::Result<T, DatabaseError>,
    ) -> std::result::Result<T, DatabaseError> {
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
    fn find(&self, sql: &str) -> std::result::Result<Option<i64>, DatabaseError> {
        let mut found = None;
        self.handle.rows(sql, |row| found = (!row.is_null(0)).then(|| row.number(0)))?;
        Ok(found)
    }
}

/// Whether the history is there and nothing opens it any more: damaged, changed, or without its key. Whatever else went
/// wrong may go right the next time.
pub fn is_lost(error: &DatabaseError) -> bool {
    match error {
        DatabaseError::Typed(error) => matches!(
            error,
            Error::Corrupt { .. } | Error::Unauthentic { .. } | Error::MissingKey { .. }
        ),
        DatabaseError::Sqlite { code, .. } => {
            *code == ffi::IOERR_DATA
                || [ffi::CORRUPT, ffi::NOTADB, ffi::AUTH].contains(&(code & 0xff))
        }
        _ => false,
    }
}

/// What is wrong with a file that is no sealed database at all, or that the history's key does not open, whatever SQLite says of
/// it.
pub fn why_not_own(path: &Path) -> Option<DatabaseError> {
    let is_keyless = |header: &Header| {
        let own = Credentials::gather(&Request { own: true, ..Request::default() });
        own.is_ok_and(|own| matches!(header.unwrap(&own), Err(Error::MissingKey { .. })))
    };
    match inspect(path).ok()?.kind {
        Kind::Plain | Kind::Empty | Kind::NotADatabase => Some(lost(path).into()),
        Kind::Sealed(found) if is_keyless(&found.header) => {
            let cause = match path.file_name().is_some_and(|name| name == FILE) {
                true => "it is not sealed under the key of this instance's history: `pellucid history rebuild` begins a new one and \
                         keeps this one under another name; RESTORE DATABASE puts a backup there",
                false => "it is not sealed under the key of this instance's history: RESTORE DATABASE puts a backup there",
            };
            Some(Error::missing_key(Subject::File(path.to_owned()), cause).into())
        }
        _ => None,
    }
}

fn lost(path: &Path) -> Error {
    Error::corrupt(
        Subject::File(path.to_owned()),
        "it is not the sealed database that was made there",
    )
}

/// The path of the database, which is made if it is not there. Of processes that do so at once one makes it, and the others wait for
/// it: the keyring lets one new file at a time take the name.
fn make_if_missing(
    home: &Path,
    file: &str,
    schema: &str,
) -> std::result::Result<PathBuf, DatabaseError> {
    let path = home.join(file);
    if !path.exists() {
        // First, because a keyring that is being made is waited for.
        Keyring::open(home)?;
        let _making = Making::begin(home)?;
        if !path.exists() {
            give_name(&make(home, file, schema)?, &path)?;
        }
    }
    Ok(path)
}

/// Makes the database whole before it has its name, under another one, which is given back.
fn make(home: &Path, file: &str, schema: &str) -> std::result::Result<PathBuf, DatabaseError> {
    let key = Keyring::open(home)?.ensure_history_key()?;
    offer_once(&key);
    let mut random = [0; 8];
    pellucid::secret::fill_random(&mut random)?;
    let new = home.join(format!(".{file}.{:016x}", u64::from_ne_bytes(random)));
    let birth = Birth::new(Algorithm::Aes256, &[Protection::KeyFile(key)])?;
    let token = prepare_birth(birth)?;
    let fill = || {
        let uri = uri(&new, &format!("vfs=pellucid&pellucid_birth={token}"));
        let handle = Handle::open(&new, &uri, ffi::OPEN_READWRITE | ffi::OPEN_CREATE)?;
        handle.run("BEGIN")?;
        for statement in schema.split(';').filter(|text| !text.trim().is_empty()) {
            handle.run(statement)?;
        }
        handle.run("COMMIT")
    };
    fill().inspect_err(|_| drop(std::fs::remove_file(&new)))?;
    Ok(new)
}

/// A process of an older version may have been faster; then its history is the one.
fn give_name(new: &Path, path: &Path) -> std::result::Result<(), DatabaseError> {
    let io = |error| Error::io(Subject::File(path.to_owned()), error);
    let expected = Expectation::at_all_names(path)?;
    let Kind::Sealed(made) = inspect(new)?.kind else { return Err(lost(path).into()) };
    // A crash behind the link finds it expected.
    expected.announce(Some(made.header.file_id))?;
    let linked = std::fs::hard_link(new, path);
    std::fs::remove_file(new).map_err(io)?;
    match linked {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(io(error).into()),
        // From its beginning, and whatever slower processes announce.
        Ok(()) => expected.put_if_writable(path, &made.header),
    }
    Ok(pellucid_files::paths::sync_directory(path)?)
}

/// Gives a file, and those beside it, a name that none of them has: its own and the time. None if it is not there.
fn set_aside(path: &Path, beside: &[&str]) -> pellucid::Result<Option<PathBuf>> {
    let with = |path: &Path, end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let io = |error| Error::io(Subject::File(path.to_owned()), error);
    let now = pellucid::clock::now();
    for number in 0..u32::MAX {
        let kept = match number {
            0 => with(path, &format!(".{now}")),
            _ => with(path, &format!(".{now}-{number}")),
        };
        if beside.iter().any(|end| with(&kept, end).symlink_metadata().is_ok()) {
            continue;
        }
        // A link, unlike a rename, takes no name that another file has.
        match std::fs::hard_link(path, &kept) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            linked => linked.map_err(io)?,
        }
        for end in beside {
            match std::fs::rename(with(path, end), with(&kept, end)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(io(error))
                }
                _ => {}
            }
        }
        std::fs::remove_file(path).map_err(io)?;
        return Ok(Some(kept));
    }
    Err(Error::limit(Subject::File(path.to_owned()), "no name is left to keep it under"))
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

/// The end of the year 9999, in microseconds since 1970: SQLite's times go no further.
const LAST_MICROS: u64 = 253_402_300_799_999_999;

/// A time on media as the tables have it; NULL for 0, and the last one there is for any after it.
fn time_of(micros: u64) -> String {
    if micros == 0 {
        return "NULL".to_owned();
    }
    let micros = micros.min(LAST_MICROS);
    let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
    format!("strftime('%Y-%m-%d %H:%M:%S', {seconds}, 'unixepoch') || '.{rest:06}'")
}

/// Bytes as an SQL literal of their hexadecimal digits; NULL for zeros.
fn hex_of(bytes: &[u8]) -> String {
    match bytes.iter().all(|byte| *byte == 0) {
        true => "NULL".to_owned(),
        false => format!("'{}'", pellucid::hash::hex(bytes)),
    }
}

/// An error of the history, for somebody who goes on without it.
pub fn told(outcome: std::result::Result<(), DatabaseError>) -> Option<String> {
    outcome.err().map(|error| format!("the history was not written: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_beyond_sqlites() {
        assert_eq!(time_of(0), "NULL");
        let last = "strftime('%Y-%m-%d %H:%M:%S', 253402300799, 'unixepoch') || '.999999'";
        assert_eq!(time_of(LAST_MICROS), last);
        assert_eq!(time_of(u64::MAX), last, "SQLite gives NULL for it, which is never");
        assert!(time_of(LAST_MICROS - 1_000_000).contains("253402300798"));
    }

    #[test]
    fn only_what_cannot_be_opened_any_more_is_lost() {
        let sqlite =
            |code| DatabaseError::Sqlite { file: String::new(), code, message: String::new() };
        for code in [ffi::CORRUPT, ffi::NOTADB, ffi::AUTH, ffi::IOERR_DATA] {
            assert!(is_lost(&sqlite(code)), "{code}");
        }
        // SQLITE_BUSY, SQLITE_LOCKED, SQLITE_READONLY, SQLITE_FULL, SQLITE_CANTOPEN.
        for code in [5, 6, 8, ffi::IOERR, 13, 14] {
            assert!(!is_lost(&sqlite(code)), "{code}");
        }
        let io = Error::io(Subject::Container, std::io::Error::other("x"));
        assert!(!is_lost(&io.into()));
        assert!(is_lost(&Error::corrupt(Subject::Container, "x").into()));
    }
}

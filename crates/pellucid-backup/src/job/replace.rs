//! A restored database takes the place of an existing one, on the same inode: idle connections keep
//! the file open and would go on with a file that is no longer the database.
//!
//! The restored file is laid over the old one as a decryption lays its plain copy, whether it is
//! sealed or plain: docs/format.md, "Laying". Until sector 0 says `laying` the old database is
//! there; from then on the next connection that may write finishes the new one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::keys::ContainerKeys;
use pellucid::media::{Description, SetHeader};
use pellucid::message;
use pellucid::secret::fill_random;
use pellucid::sector::{SectorZero, SECTOR_BYTES};
use pellucid::shown::Shown;
use pellucid::{Error, Subject};
use pellucid_engine::convert::encrypt::next_counter;
use pellucid_engine::convert::switch::Source;
use pellucid_engine::inspect::{inspect, Kind as Found};
use pellucid_files::paths::rename_new;
use pellucid_files::paths::sync_directory;
use pellucid_files::paths::{copy_path, full_name};
use pellucid_host::code::Code;
use pellucid_host::connection::{uri, Handle};
use pellucid_host::ffi;
use pellucid_host::patience::Patience;
use pellucid_host::{holders, DatabaseError, Options};
use pellucid_vfs::copy::CopyFile;
use pellucid_vfs::laying::{plain_sector, replace_sector_zero, Laying};
use pellucid_vfs::open_file::OpenFile;
use pellucid_vfs::opened;
use pellucid_vfs::pins::Expectation;

use crate::restore::set_change_counter;

const RETRY: Duration = Duration::from_millis(20);
/// The suffix under which the logs of an unreadable database are set aside.
const ASIDE: &str = ".pellucid-old";

/// A restored database that is to replace another one.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// The header of the set.
    pub set: &'a SetHeader,
    /// The names of the set.
    pub description: &'a Description,
    /// Whether the restored database is sealed.
    pub sealed: bool,
}

/// Checks that the file at `to` may be replaced. Returns the file id if it is a container.
///
/// # Errors
/// SQL Server's messages 3154, 3159 and 3142 without `replace`; [`Error::Misuse`] if an encrypted
/// database would become a plain one although the caller did not ask for that.
pub fn check(
    to: &Path,
    incoming: &Incoming<'_>,
    replace: bool,
    decrypted: bool,
) -> std::result::Result<Option<[u8; 16]>, DatabaseError> {
    let found = inspect(to)?.kind;
    if !replace {
        let message = match &found {
            Found::Empty | Found::NotADatabase => message::FILE_IN_THE_WAY,
            found if is_same(to, found, incoming) => message::TAIL_NOT_BACKED_UP,
            _ => message::ANOTHER_DATABASE,
        };
        let name = match message.number {
            3142 => to.shown().to_string(),
            _ => to.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        };
        return Err(Error::Message { message, text: message.with_all(&[&name, &name]) }.into());
    }
    let Found::Sealed(sealed) = &found else { return Ok(None) };
    if sealed.is_scanned == Some(true) {
        return Err(DatabaseError::Scanned { file: to.shown().to_string() });
    }
    if !incoming.sealed && !decrypted && !sealed.header.is_switched_off() {
        return Err(Error::misuse(
            Subject::File(to.to_owned()),
            "it is encrypted, and the backup is of a plain database; `--decrypted` says that a \
             plain one may take its place",
        )
        .into());
    }
    Ok(Some(sealed.header.file_id))
}

/// Whether the set was made of the database at `to`.
fn is_same(to: &Path, found: &Found, incoming: &Incoming<'_>) -> bool {
    let same_id = match found {
        Found::Sealed(sealed) => sealed.header.file_id == incoming.set.source,
        _ => false,
    };
    same_id || incoming.description.path == full_name(to)
}

/// A complete restored file.
#[derive(Debug)]
pub struct Whole<'a> {
    /// The file.
    pub file: CopyFile,
    /// Bytes of its pages.
    pub page_bytes: usize,
    /// The keys of the file, if it is sealed.
    pub keys: Option<&'a ContainerKeys>,
    /// What the keyring expects at the place.
    pub expected: &'a Expectation,
}

/// Lays `new` over the database `to`, which programs may have open, and removes `new`.
///
/// # Errors
/// [`DatabaseError::InUse`], which names the processes that did not give way in time; nothing was
/// changed then. After the commit point the next connection that may write finishes the work.
pub fn take_place(
    new: Whole<'_>,
    to: &Path,
    timeout: Duration,
) -> std::result::Result<(), DatabaseError> {
    let options = Options::new(timeout, Vec::new());
    match Source::reserve(to, &uri(to, "vfs=pellucid&plain_copies=1"), &options) {
        Ok(source) => {
            let counter = next_counter(&source.handle)?;
            let (sector, laying) = prepare(new, to, counter)?;
            let lower = opened::on_disk(&source.handle)?;
            source.switch(lower, &sector, laying, &mut |_, _, _| ())
        }
        Err(busy @ DatabaseError::InUse { .. }) => Err(busy),
        Err(DatabaseError::Typed(taken @ Error::Misuse { .. })) => Err(taken.into()),
        // The database is damaged or its key is lost, which is why it is being replaced.
        Err(_) => over_unreadable(new, to, timeout),
    }
}

/// Gives the new file the name from which an interrupted laying is finished, and the old file's
/// owner.
fn prepare(
    new: Whole<'_>,
    to: &Path,
    counter: u32,
) -> std::result::Result<([u8; SECTOR_BYTES], Laying), DatabaseError> {
    let Whole { mut file, page_bytes, keys, expected } = new;
    // Sets a change counter that no connection to the old database has seen.
    set_change_counter(file.file(), file.path(), keys, page_bytes, counter)?;
    if let Ok(original) = std::fs::metadata(to) {
        file.give_to_owner_of(&original);
    }
    file.become_copy(copy_path(to), to)?;
    sync_directory(file.path())?;
    let mut id = [0; 16];
    fill_random(&mut id)?;
    let sector = plain_sector(id, &file)?;
    // The database is locked by now, so that no opening takes it back.
    match (keys, &sector) {
        (Some(keys), _) => expected.announce(Some(*keys.file_id()))?,
        (None, SectorZero::LayingPlain { copy_sha256, .. }) => {
            expected.let_go(Some(*copy_sha256))?
        }
        (None, _) => {}
    }
    Ok((sector.encode(page_bytes as u32), Laying::of(file, false)?))
}

/// Lays the file over a database that SQLite cannot open. It is locked as SQLite would lock it, and
/// its logs are set aside first, because SQLite would take them for the new database's.
fn over_unreadable(
    new: Whole<'_>,
    to: &Path,
    timeout: Duration,
) -> std::result::Result<(), DatabaseError> {
    let handle = Handle::open(to, &uri(to, "vfs=unix"), ffi::OPEN_READWRITE)?;
    let lower = OpenFile::of(&handle)?;
    lock_exclusive(lower, to, timeout)?;
    let mut counter = [0; 4];
    fill_random(&mut counter)?;
    let (sector, mut laying) = prepare(new, to, u32::from_be_bytes(counter))?;
    let aside = set_logs_aside(to, &logs(to))?;
    if let Err(error) = laying.assert_named() {
        return Err(aside.put_back(error));
    }
    if let Err(unwritten) = replace_sector_zero(lower, &sector) {
        let mut error = failed(to, unwritten.code, "its first sector cannot be written");
        match unwritten.put_back {
            true => error = aside.put_back(error),
            false => laying.begin(),
        }
        return Err(error);
    }
    laying.begin();
    let interrupted = |code| failed(to, code, "the restore was interrupted and can be finished");
    lower.sync(ffi::SYNC_NORMAL).map_err(interrupted)?;
    laying.lay(lower, &mut |_, _| ()).map_err(interrupted)?;
    laying.remove()?;
    aside.remove();
    lower.unlock(ffi::LOCK_NONE).map_err(interrupted)
}

/// Waits until no other process holds a lock, and takes EXCLUSIVE. A lock that this process holds
/// already is kept.
///
/// # Errors
/// [`DatabaseError::InUse`], which names the processes that did not give way.
pub fn lock_exclusive(
    lower: OpenFile<'_>,
    to: &Path,
    timeout: Duration,
) -> std::result::Result<(), DatabaseError> {
    let patience = Patience::new(timeout, RETRY);
    for level in [ffi::LOCK_SHARED, ffi::LOCK_RESERVED, ffi::LOCK_EXCLUSIVE] {
        loop {
            match lower.lock(level) {
                Ok(()) => break,
                Err(Code(ffi::BUSY)) if patience.wait() => {}
                Err(Code(ffi::BUSY)) => {
                    return Err(DatabaseError::InUse {
                        file: to.shown().to_string(),
                        holders: holders::find(to),
                    })
                }
                Err(code) => return Err(failed(to, code, "cannot be locked")),
            }
        }
    }
    Ok(())
}

fn failed(path: &Path, Code(code): Code, message: &str) -> DatabaseError {
    DatabaseError::Sqlite { file: path.shown().to_string(), code, message: message.to_owned() }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// A WAL and a journal that were set aside under other names.
#[derive(Debug, Default)]
pub struct Aside {
    moved: Vec<(PathBuf, PathBuf)>,
    /// Files that an interrupted restore left under those names.
    left: Vec<PathBuf>,
}

impl Aside {
    /// Gives the logs their names back. If another file has such a name by now, the log stays
    /// aside, and the returned error says so.
    pub fn put_back(self, error: impl Into<DatabaseError>) -> DatabaseError {
        let mut error = error.into();
        for (name, aside) in self.moved {
            let Err(why) = rename_new(&aside, &name) else { continue };
            let cause = format!("{error}; `{}` stays under this name: {why}", name.shown());
            error = Error::io(Subject::File(aside), std::io::Error::other(cause)).into();
        }
        error
    }

    /// Removes the logs, because their database is gone.
    pub fn remove(self) {
        for aside in self.moved.into_iter().map(|(_, aside)| aside).chain(self.left) {
            // No program reads them under that name, so an error does not matter.
            let _ = std::fs::remove_file(aside);
        }
    }
}

/// Sets `which` of the logs of the database at `to` aside: all of them, or none.
///
/// # Errors
/// [`Error::Io`].
pub fn set_logs_aside(to: &Path, which: &[PathBuf]) -> std::result::Result<Aside, DatabaseError> {
    let mut aside = Aside::default();
    let mut outcome = Ok(());
    for name in log_names(to) {
        let other = with_suffix(&name, ASIDE);
        if !which.contains(&name) || !name.exists() {
            aside.left.extend(Some(other).filter(|other| other.exists()));
            continue;
        }
        outcome = std::fs::rename(&name, &other)
            .map_err(|error| Error::io(Subject::File(name.clone()), error));
        if outcome.is_err() {
            break;
        }
        aside.moved.push((name, other));
    }
    if outcome.is_ok() && !aside.moved.is_empty() {
        outcome = sync_directory(to);
    }
    match outcome {
        Ok(()) => Ok(aside),
        Err(error) => Err(aside.put_back(error)),
    }
}

/// Returns the files that SQLite would take for the logs of a database at `to`.
pub fn logs(to: &Path) -> Vec<PathBuf> {
    log_names(to).into_iter().filter(|name| name.exists()).collect()
}

fn log_names(to: &Path) -> [PathBuf; 3] {
    ["-wal", "-journal", "-shm"].map(|suffix| with_suffix(to, suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_moved_all_or_none_and_come_back() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("app.db");
        let [wal, journal, shm] = log_names(&to);
        std::fs::write(&wal, "the log").unwrap();
        std::fs::write(&journal, "the journal").unwrap();
        // A rename does not replace a directory that is not empty.
        let in_the_way = with_suffix(&journal, ASIDE);
        std::fs::create_dir_all(in_the_way.join("x")).unwrap();
        let all = || logs(&to);
        assert!(set_logs_aside(&to, &all()).is_err());
        assert_eq!(std::fs::read(&wal).unwrap(), b"the log");
        assert_eq!(std::fs::read(&journal).unwrap(), b"the journal");

        std::fs::remove_dir_all(in_the_way).unwrap();
        std::fs::write(with_suffix(&shm, ASIDE), "left by another restore").unwrap();
        let aside = set_logs_aside(&to, &all()).unwrap();
        assert_eq!(logs(&to), Vec::<PathBuf>::new());
        assert_eq!(aside.put_back(the_error()).to_string(), the_error().to_string());
        assert_eq!(logs(&to), [wal, journal]);
        set_logs_aside(&to, &all()).unwrap().remove();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    fn the_error() -> Error {
        Error::misuse(Subject::Container, "the first error")
    }

    #[test]
    fn a_log_that_a_program_has_begun_is_neither_moved_nor_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("app.db");
        let [wal, journal, _] = log_names(&to);
        std::fs::write(&wal, "of a database that is gone").unwrap();
        std::fs::write(&journal, "begun after the look").unwrap();
        let aside = set_logs_aside(&to, std::slice::from_ref(&wal)).unwrap();
        assert!(!wal.exists());
        assert_eq!(std::fs::read(&journal).unwrap(), b"begun after the look");
        std::fs::write(&wal, "the program's").unwrap();
        let told = aside.put_back(the_error()).to_string();
        let stays = with_suffix(&wal, ASIDE);
        for said in ["the first error", wal.to_str().unwrap(), stays.to_str().unwrap()] {
            assert!(told.contains(said), "{told}");
        }
        assert_eq!(std::fs::read(&wal).unwrap(), b"the program's");
        assert_eq!(std::fs::read(&stays).unwrap(), b"of a database that is gone");
    }
}

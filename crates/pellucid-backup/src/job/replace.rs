//! A restored database takes the place of an existing one, on the same inode: idle connections keep
//! the file open and would go on with a file that is no longer the database.
//!
//! The restored file is laid over the old one as a decryption lays its plain copy, whether it is
//! sealed or plain: docs/format.md, "Laying". Until sector 0 says `laying` the old database is
//! there; from then on the next connection that may write finishes the new one.

use std::path::Path;
use std::time::Duration;

use pellucid::header::Standing;
use pellucid::keys::ContainerKeys;
use pellucid::media::{Description, SetHeader};
use pellucid::message;
use pellucid::secret::fill_random;
use pellucid::sector::{SectorZero, SECTOR_BYTES};
use pellucid::shown::Shown;
use pellucid::{Error, Subject};
use pellucid_engine::convert::encrypt::next_counter;
use pellucid_engine::convert::original::Original;
use pellucid_engine::convert::switch::Source;
use pellucid_engine::inspect::{inspect, Kind as Found};
use pellucid_files::paths::{copy_path, full_name};
use pellucid_host::code::Code;
use pellucid_host::connection::{uri, Handle};
use pellucid_host::ffi;
use pellucid_host::folder::Folder;
use pellucid_host::patience::Patience;
use pellucid_host::{holders, DatabaseError, Options};
use pellucid_vfs::copy::CopyFile;
use pellucid_vfs::laying::{plain_sector, replace_sector_zero, Laying};
use pellucid_vfs::names::Held;
use pellucid_vfs::open_file::OpenFile;
use pellucid_vfs::opened;
use pellucid_vfs::pins::Expectation;

use super::aside::{logs, set_logs_aside};
use crate::restore::set_change_counter;

const RETRY: Duration = Duration::from_millis(20);

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
    if !replace && !goes_on(to, &found, incoming) {
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

/// Whether a restore of the database at `to` is under way, which this one goes on with: its own, or one that a backup of its tail
/// has begun.
fn goes_on(to: &Path, found: &Found, incoming: &Incoming<'_>) -> bool {
    let Found::Sealed(sealed) = found else { return false };
    let header = &sealed.header;
    let had_chain = header.second.as_ref().is_some_and(|second| second.has_chain);
    header.standing() != Standing::Online && (!had_chain || is_same(to, found, incoming))
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

/// Lays `new` over the database `to`, which programs may have open, and removes `new`. The database
/// is the file `original`, which was looked at before, and no other that has its name by now.
///
/// # Errors
/// [`DatabaseError::InUse`], which names the processes that did not give way in time; nothing was
/// changed then. After the commit point the next connection that may write finishes the work.
pub fn take_place(
    new: Whole<'_>,
    to: &Path,
    original: &Original,
    timeout: Duration,
) -> std::result::Result<(), DatabaseError> {
    let options = Options { ends_chain: true, ..Options::new(timeout, Vec::new()) };
    let how = uri(to, "vfs=pellucid&plain_copies=1&pellucid_recover=1");
    match Source::reserve_held(original.clone(), to, &how, &options) {
        Ok(source) => {
            let counter = next_counter(&source.handle)?;
            let (sector, laying) = prepare(new, to, original, counter)?;
            let lower = opened::on_disk(&source.handle)?;
            source.switch(lower, &sector, laying, &mut |_, _, _| ())
        }
        Err(busy @ DatabaseError::InUse { .. }) => Err(busy),
        Err(DatabaseError::Typed(taken @ Error::Misuse { .. })) => Err(taken.into()),
        // The database is damaged or its key is lost, which is why it is being replaced.
        Err(_) => over_unreadable(new, to, original, timeout),
    }
}

/// Gives the new file the name from which an interrupted laying is finished, and the old file's
/// owner.
fn prepare(
    new: Whole<'_>,
    to: &Path,
    original: &Original,
    counter: u32,
) -> std::result::Result<([u8; SECTOR_BYTES], Laying), DatabaseError> {
    let Whole { mut file, page_bytes, keys, expected } = new;
    // Sets a change counter that no connection to the old database has seen.
    set_change_counter(file.file(), file.path(), keys, page_bytes, counter)?;
    file.give_to_owner_of(&original.metadata()?);
    file.become_copy(copy_path(to), to)?;
    file.sync_folder()?;
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
    original: &Original,
    timeout: Duration,
) -> std::result::Result<(), DatabaseError> {
    let io = |error| Error::io(Subject::File(to.to_owned()), error);
    let _names = Held::of(to).map_err(io)?;
    let plain = uri(to, "vfs=unix");
    let handle = original.connect(|| Handle::open(to, &plain, ffi::OPEN_READWRITE))?;
    let lower = OpenFile::of(&handle)?;
    lock_exclusive(lower, to, timeout)?;
    let mut counter = [0; 4];
    fill_random(&mut counter)?;
    let (sector, mut laying) = prepare(new, to, original, u32::from_be_bytes(counter))?;
    let folder = Folder::of(to).map_err(io)?;
    let aside = set_logs_aside(&folder, to, &logs(&folder, to))?;
    if let Err(error) = laying.assert_named().and_then(|()| original.assert_named()) {
        return Err(aside.put_back(&folder, error));
    }
    if let Err(unwritten) = replace_sector_zero(lower, &sector) {
        let mut error = failed(to, unwritten.code, "its first sector cannot be written");
        match unwritten.put_back {
            true => error = aside.put_back(&folder, error),
            false => laying.begin(),
        }
        return Err(error);
    }
    laying.begin();
    let interrupted = |code| failed(to, code, "the restore was interrupted and can be finished");
    lower.sync(ffi::SYNC_NORMAL).map_err(interrupted)?;
    laying.lay(lower, &mut |_, _| ()).map_err(interrupted)?;
    laying.remove()?;
    aside.remove(&folder);
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

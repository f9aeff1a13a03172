//! Protectors of a sealed database, added and dropped while it is in use: only its header changes.

use std::path::Path;

use pellucid::header::Header;
use pellucid::keyring::{Action, Event};
use pellucid::protector::{Binding, Protector, Purpose};
use pellucid::secret::Dek;
use pellucid::{Error, Result, Subject};

use crate::convert::connection::{uri, Handle};
use crate::convert::{full_name, holders, ConvertError};
use crate::ffi;
use crate::file::lower_of_open;
use crate::seal_request::{remember, Protection};

/// How long to wait for the short moment that the change takes.
const TIMEOUT_MS: std::ffi::c_int = 20_000;

/// Adds a protector; what opened the database before opens it still.
///
/// # Errors
/// [`ConvertError`]; nothing was changed then.
pub fn add(path: &Path, protection: &Protection) -> std::result::Result<(), ConvertError> {
    change(path, Action::Added, |header, dek| {
        let encoded = wrap(header, dek, protection)?;
        header.protectors.push(encoded);
        Ok(())
    })
}

/// Drops the protector at `index`, from 0.
///
/// # Errors
/// [`Error::Misuse`] if there is none there, or it is the last one.
pub fn drop(path: &Path, index: usize) -> std::result::Result<(), ConvertError> {
    change(path, Action::Dropped, |header, _| {
        let refuse = |why: &'static str| Err(Error::misuse(Subject::Protector(index), why));
        match header.protectors.len() {
            count if index >= count => refuse("there is none of that number"),
            1 => refuse("it is the last one: without it nobody opens the database"),
            _ => {
                header.protectors.remove(index);
                Ok(())
            }
        }
    })
}

fn wrap(header: &Header, dek: &Dek, protection: &Protection) -> Result<Vec<u8>> {
    let row = header.current_dek()?;
    let binding = Binding {
        purpose: Purpose::Database,
        id: &header.file_id,
        algorithm: row.algorithm,
        commitment: &row.commitment,
    };
    let mut encoded = Vec::new();
    let protector: Protector = protection.wrap(dek, &binding)?;
    protector.encode(&mut encoded);
    Ok(encoded)
}

fn change(
    path: &Path,
    action: Action,
    edit: impl FnOnce(&mut Header, &Dek) -> Result<()>,
) -> std::result::Result<(), ConvertError> {
    let uri = uri(path, "vfs=pellucid&require=sealed");
    let handle = Handle::open(path, &uri, ffi::OPEN_READWRITE)?;
    handle.busy_timeout(TIMEOUT_MS);
    // The locks under which a header may change: in rollback mode EXCLUSIVE, in WAL mode that of the writer.
    handle.run("BEGIN EXCLUSIVE").map_err(|error| in_use(path, error))?;
    // SAFETY: the file object of an open connection, used before that closes.
    let (lower, link) = unsafe { lower_of_open(handle.file()?) }.ok_or_else(|| {
        Error::misuse(Subject::File(path.to_owned()), "not an encrypted database")
    })?;
    let code = |code: crate::code::Code| ConvertError::Sqlite {
        file: path.display().to_string(),
        code: code.0,
        message: "the header cannot be written".to_owned(),
    };
    let keys = link.keys().map_err(code)?;
    let (Some(mut header), Some(dek)) = (link.header(), keys.dek()) else {
        return Err(Error::misuse(Subject::File(path.to_owned()), "its header is not known").into());
    };
    edit(&mut header, dek)?;
    // An earlier look, for a typed error: too many protectors.
    header.encode(keys.header_key())?;
    let protectors = header.protectors.clone();
    Event::new(action, "protector of database").of(full_name(path)).record_here()?;
    let changed = link
        .with_header_locks(lower, || {
            link.change_header(|header| header.protectors.clone_from(&protectors))
        })
        .map_err(code)?;
    if !changed {
        return Err(busy(path));
    }
    if let Some(header) = link.header() {
        remember(&header, path);
    }
    handle.run("COMMIT")
}

fn in_use(path: &Path, error: ConvertError) -> ConvertError {
    if Handle::is_busy(&error) {
        return busy(path);
    }
    error
}

fn busy(path: &Path) -> ConvertError {
    ConvertError::InUse { file: path.display().to_string(), holders: holders::find(path) }
}

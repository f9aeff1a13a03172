//! Adds, drops and exchanges the protectors of a sealed database in use. Only its header changes.

use std::path::Path;

use pellucid::clock::now;
use pellucid::header::{DekRow, Header};
use pellucid::protector::Protector;
use pellucid::secret::Dek;
use pellucid::{Error, Result, Subject};
use pellucid_files::paths::full_name;
use pellucid_host::DatabaseError;
use pellucid_keyring::{Action, Event};
use pellucid_vfs::seal_request::{Credentials, Protection};

use crate::header_change;
use crate::header_change::Next;

/// Adds a protector. The present protectors stay.
///
/// # Errors
/// [`DatabaseError`]; the header was not changed then.
pub fn add(path: &Path, protection: &Protection) -> std::result::Result<(), DatabaseError> {
    change(path, Action::Added, |header, dek| {
        header.protectors.push(wrap(header, dek, protection)?);
        Ok(())
    })
}

/// Drops the protector at `index`, from 0.
///
/// # Errors
/// [`Error::Misuse`] if there is none at `index`, or it is the last one.
pub fn drop(path: &Path, index: usize) -> std::result::Result<(), DatabaseError> {
    change(path, Action::Dropped, |header, _| {
        let refuse = |why: &'static str| Err(Error::misuse(Subject::Protector(index + 1), why));
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

/// Exchanges the certificate with the SHA-256 thumbprint `old`, or all protectors if `old` is
/// `None`, for `protection`. The pages are not touched.
///
/// # Errors
/// [`Error::Misuse`] if no protector has that certificate.
pub fn exchange(
    path: &Path,
    old: Option<&[u8; 32]>,
    protection: &Protection,
) -> std::result::Result<(), DatabaseError> {
    change(path, Action::Reprotected, |header, dek| {
        let new = wrap(header, dek, protection)?;
        let goes = |bytes: &Vec<u8>| match (old, Protector::decode(bytes)) {
            (None, _) => true,
            (Some(old), Ok((Protector::Certificate(found), _))) => found.thumbprint() == old,
            _ => false,
        };
        if !header.protectors.iter().any(goes) {
            return Err(Error::misuse(
                Subject::Container,
                "the certificate that is to be replaced does not protect it",
            ));
        }
        header.protectors.retain(|bytes| !goes(bytes));
        header.protectors.push(new);
        Ok(())
    })
}

fn wrap(header: &Header, dek: &Dek, protection: &Protection) -> Result<Vec<u8>> {
    let protector = protection.wrap(dek, &header.current_dek()?.binding(&header.file_id))?;
    Ok(protector.encoded())
}

fn change(
    path: &Path,
    action: Action,
    edit: impl Fn(&mut Header, &Dek) -> Result<()>,
) -> std::result::Result<(), DatabaseError> {
    let event = Event::new(action, "protector of database").of(full_name(path));
    header_change::change(
        path,
        |_, header, keys| {
            let mut next = header.clone();
            let dek = keys.dek().ok_or_else(|| Error::misuse(Subject::Container, "no key"))?;
            edit(&mut next, dek)?;
            next.scan.keys_modified = now();
            Ok(Some(Next::from(next)))
        },
        || event.record_here(),
    )
    .map(|_| ())
}

/// Makes each protector of `header` again for the new DEK `dek` with the row `row`, in the
/// container `file_id`.
///
/// # Errors
/// [`Error::MissingKey`], which names a protector that could not be made again because its key is
/// not at hand.
pub fn of_new_dek(
    header: &Header,
    dek: &Dek,
    row: &DekRow,
    file_id: &[u8; 16],
    credentials: &Credentials,
) -> Result<Vec<Vec<u8>>> {
    let old = header.current_dek()?.binding(&header.file_id);
    let new = row.binding(file_id);
    let each = header.protectors.iter().enumerate();
    each.map(|(index, bytes)| {
        let (protector, _) = Protector::decode(bytes)?;
        match protector.again(&old, &new, dek, credentials) {
            Ok(made) => Ok(made.encoded()),
            Err(Error::MissingKey { cause, .. }) => {
                Err(Error::missing_key(Subject::Protector(index + 1), cause))
            }
            Err(error) => Err(error),
        }
    })
    .collect()
}

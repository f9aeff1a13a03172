//! The header changes around a scan: a new DEK, suspended, resumed, settled.

use std::io::ErrorKind;
use std::path::Path;

use pellucid::clock::now;
use pellucid::header::{EncryptionState, Header};
use pellucid::nonce::SystemNonces;
use pellucid::scan::ScanState;
use pellucid::secret::fill_random;
use pellucid::transition::Target;
use pellucid::{Algorithm, Dek, Error, Subject};
use pellucid_files::paths::full_name;
use pellucid_host::code::note;
use pellucid_host::{ffi, DatabaseError};
use pellucid_keyring::{Action, Event, Keyring};
use pellucid_vfs::pins::Expectation;
use pellucid_vfs::seal_request::leave;

use crate::header_change::{change, Next};
use crate::inspect::{inspect, Kind};
use crate::protectors;

/// Gives the database a new DEK; `None` keeps its algorithm. From now on every connection seals
/// under it, and a scan is due. Every protector protects the new DEK, and the older one is wrapped
/// under it until the scan ends.
///
/// # Errors
/// [`DatabaseError`]; the header was not changed then. During a scan SQL Server's message 33110.
pub fn rekey(path: &Path, algorithm: Option<Algorithm>) -> Result<Header, DatabaseError> {
    switch(path, Action::Rekeyed, None, |header| new_key(header, algorithm))
}

/// Gives a copy of a database an identity of its own: another file id together with a new DEK. Once
/// the scan is complete, no page of one opens in the other.
///
/// # Errors
/// As [`rekey`].
pub fn rekey_as_new(path: &Path, algorithm: Option<Algorithm>) -> Result<Header, DatabaseError> {
    let mut file_id = [0; 16];
    fill_random(&mut file_id)?;
    switch(path, Action::Separated, Some(file_id), |header| {
        if header.second.as_ref().is_some_and(|second| second.has_chain) {
            return Err(Error::misuse(
                Subject::File(path.to_owned()),
                "it has a chain of log backups, which is of its present id; the recovery model SIMPLE ends the chain",
            ));
        }
        new_key(header, algorithm)
    })
}

fn new_key(header: &Header, algorithm: Option<Algorithm>) -> pellucid::Result<Target> {
    Ok(Target::NewKey(algorithm.map_or_else(|| header.algorithm(), Ok)?))
}

/// Switches encryption on or off, as SQL Server's `SET ENCRYPTION`. Units written from now on are
/// sealed, or are not, and a scan is due for the others. During a scan it switches back.
///
/// # Errors
/// [`DatabaseError`]; the header was not changed then. SQL Server's messages 33107, 33108, 33109.
pub fn set(path: &Path, target: Target) -> Result<Header, DatabaseError> {
    let action = if target == Target::Off { Action::Decrypted } else { Action::Encrypted };
    switch(path, action, None, |_| Ok(target))
}

fn switch(
    path: &Path,
    action: Action,
    file_id: Option<[u8; 16]>,
    target: impl Fn(&Header) -> pellucid::Result<Target>,
) -> Result<Header, DatabaseError> {
    let dek = Dek::random()?;
    let pins = Expectation::at_all_names(path)?;
    let is_off = action == Action::Decrypted;
    // What the header will say is expected before it is written: another process may read it at once.
    let announce = |on: bool| -> pellucid::Result<()> {
        if is_off {
            pins.let_off(on)?;
        }
        file_id.map_or(Ok(()), |id| pins.announce(on.then_some(id)))
    };
    let changed = change(
        path,
        |container, header, keys| {
            let target = target(header)?;
            let own = file_id.map_or_else(|| Ok(header.clone()), |id| header.renamed(id))?;
            let row = own.next_row(&dek, target)?;
            let (id, credentials) = (&own.file_id, container.credentials());
            let wrapped = protectors::of_new_dek(header, &dek, &row, id, credentials)?;
            let next = own.rekeyed(keys, &dek, row, wrapped, now(), &mut SystemNonces)?;
            Ok(Some(Next { header: next, dek: Some(dek.clone()) }))
        },
        || {
            Event::new(action, "database").of(full_name(path)).record_here()?;
            announce(true)
        },
    );
    if let Err(error) = changed {
        // A header that was written in spite of it is expected all the same, once it was opened.
        let is_old = inspect(path).is_ok_and(|found| matches!(found.kind, Kind::Sealed(sealed)
            if file_id != Some(sealed.header.file_id) && !(is_off && sealed.header.is_switched_off())));
        if is_old {
            announce(false)?;
        }
        return Err(error);
    }
    changed
}

/// Suspends a scan, resumes it, or notes that it met damage. It is no error if the state is the
/// same already.
///
/// # Errors
/// [`Error::Misuse`] if no scan is under way; [`DatabaseError`] otherwise.
pub fn change_state(path: &Path, state: ScanState) -> Result<Header, DatabaseError> {
    let event = match state {
        ScanState::Suspended => Some(Action::Suspended),
        ScanState::Running => Some(Action::Resumed),
        _ => None,
    };
    change(
        path,
        |_, header, _| {
            if !header.scan.state.is_under_way() {
                return Err(Error::misuse(Subject::Container, "no scan of it is under way"));
            }
            Ok(header.with_scan(state, now()).map(Next::from))
        },
        || match event {
            Some(action) => {
                Event::new(action, "scan of database").of(full_name(path)).record_here()
            }
            None => Ok(()),
        },
    )
}

/// Drops the older DEKs, if the current DEK is still the one that the proof was made for. If
/// encryption was switched back since, every page is under a key that is now an older one. Returns
/// whether they were dropped.
///
/// # Errors
/// [`DatabaseError`]; nothing was changed then.
pub fn settle(path: &Path, proved: &Header) -> Result<bool, DatabaseError> {
    let row = proved.current_dek()?;
    if let Some(older) = &proved.scan.older_id {
        leave(older, path);
    }
    let header = change(
        path,
        |_, header, _| match header.current_dek()? == row {
            true => Ok(Some(Next::from(header.settled(now())?))),
            false => Ok(None),
        },
        || Ok(()),
    )?;
    let is_dropped = header.deks.len() == 1 && header.current_dek()? == row;
    if is_dropped {
        retire(path, proved)?;
    }
    Ok(is_dropped)
}

/// Lets the keyring remember the keys that the rekey proved by `proved` has replaced. A copy that got a file id of its own leaves
/// its key to the original, and encryption that was switched off or on replaced no key on purpose.
///
/// An account that may only read the keyring cannot retire a key; a line in the log says so.
fn retire(path: &Path, proved: &Header) -> Result<(), DatabaseError> {
    if proved.state != EncryptionState::KeyChange || proved.scan.older_id.is_some() {
        return Ok(());
    }
    let Some(home) = Keyring::locate().ok().filter(|home| Keyring::is_at(home)) else {
        return Ok(());
    };
    let current = proved.current_dek()?.commitment;
    let retired = Keyring::open(&home).and_then(|keyring| {
        let older = proved.deks.iter().map(|row| &row.commitment).filter(|old| **old != current);
        older.into_iter().try_for_each(|old| keyring.retire(old))
    });
    match retired {
        Err(Error::Io { source, .. })
            if matches!(source.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
        {
            let what = "this account cannot write the keyring, which does not remember that the earlier key is retired";
            note(ffi::NOTICE, path, what);
            Ok(())
        }
        Err(error) => Err(Error::misuse(
            Subject::File(path.to_owned()),
            format!(
                "every page is under the new key, but the keyring could not remember that the earlier one is retired: {error}; the next \
                 opening by its path does"
            ),
        )
        .into()),
        Ok(()) => Ok(()),
    }
}

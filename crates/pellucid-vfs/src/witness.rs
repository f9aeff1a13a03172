//! What the keyring remembers of a chain of log backups, beside what the archive says: an archive that knows less was put back.
//!
//! A witness is written behind what it tells of, by whoever makes backups; whoever cannot write to the keyring writes none.

use std::path::Path;

use pellucid::header::Header;
use pellucid::keys::ContainerKeys;
use pellucid::log_archive::ArchiveState;
use pellucid::lsn::Lsn;
use pellucid::shown::Shown;
use pellucid::{Error, Result, Subject};
use pellucid_keyring::{Keyring, Witness};

use crate::log_archive::{Archive, Locked};
use crate::pins::names::Names;

/// The witness of the database at `path` that is ahead of what its archive says.
///
/// # Errors
/// What keeps the keyring from being read: nobody knows then.
pub fn ahead(path: &Path, state: &ArchiveState) -> Result<Option<Witness>> {
    let is_ahead = |one: &Witness| one.is_ahead_of(state);
    Ok(recall(path)?.into_iter().filter(is_ahead).max_by_key(|one| one.archive_sequence))
}

/// The witnesses of the database at `path`, by whichever of its names: a link in the place of the file is one of them.
fn recall(path: &Path) -> Result<Vec<Witness>> {
    let home = Keyring::locate()?;
    if !Keyring::is_at(&home) {
        return Ok(Vec::new());
    }
    let is_same = |other: &Path| {
        let mut names = Names::default();
        names.extend_by_those_of_the_same_file(path, std::iter::once(other.to_owned()));
        !names.all.is_empty()
    };
    Keyring::witnesses_in(&home, &Names::of(path).all, &is_same)
}

/// How far backups of a recovery fork have come, as far as a witness knows, whatever database that is of. None where none can be
/// read: what a restore is told by it is a warning.
pub fn furthest(fork: &[u8; 16]) -> Option<Lsn> {
    let home = Keyring::locate().ok().filter(|home| Keyring::is_at(home))?;
    let known = Keyring::witnesses_in(&home, &[], &|_| true).ok()?;
    known
        .into_iter()
        .filter(|witness| witness.fork == *fork)
        .map(|witness| witness.in_backups())
        .max()
}

/// Remembers what the archive of the database at `path` says, which is synced. False if there is no keyring.
///
/// # Errors
/// What keeps the keyring from being written. That is no reason for a backup to fail.
pub fn remember(path: &Path, header: &Header, state: &ArchiveState) -> Result<bool> {
    let home = Keyring::locate()?;
    if !Keyring::is_at(&home) {
        return Ok(false);
    }
    Keyring::open(&home)?.remember_witness(&Witness {
        path: path.to_owned(),
        file_id: state.file_id,
        fork: state.fork,
        header_sequence: header.sequence,
        archive_sequence: state.sequence,
        lsn: state.backed_up,
        base: state.base,
        last_set: state.last_set,
        at: pellucid::clock::now(),
    })?;
    Ok(true)
}

/// Remembers a witness that was kept elsewhere. False if there is no keyring.
///
/// # Errors
/// As [`remember`].
pub fn remember_other(witness: &Witness) -> Result<bool> {
    let home = Keyring::locate()?;
    match Keyring::is_at(&home) {
        true => Keyring::open(&home)?.remember_witness(witness).map(|()| true),
        false => Ok(false),
    }
}

/// Forgets it, because the chain of the database at `path` has ended.
///
/// # Errors
/// What keeps the keyring from being written. A witness of another fork is none, so nothing waits for that.
pub fn forget(path: &Path) -> Result<()> {
    let home = Keyring::locate()?;
    match Keyring::is_at(&home) {
        true => Keyring::open(&home)?.forget_witness(path),
        false => Ok(()),
    }
}

/// The error of a database whose archive knows less than its witness.
pub fn put_back(path: &Path, witness: &Witness) -> Error {
    let what = format!(
        "its archive of logs, and perhaps the database with it, was put back: the keyring knows of a later backup, with commits up to \
         LSN {}; restore from the backups what is missing, or accept it as it is with a full backup, which begins the chain anew",
        witness.in_backups()
    );
    Error::corrupt(Subject::LogArchive, format!("`{}`: {what}", path.shown()))
}

/// Breaks the chain of an archive that knows less than its witness: what it gave numbers to, and to whom, is not known. It counts on
/// behind the witness, which is none against it any more.
///
/// # Errors
/// [`Error::Io`].
pub fn break_behind(
    locked: &Locked<'_>,
    witness: &Witness,
    keys: &ContainerKeys,
) -> Result<ArchiveState> {
    let mut state = locked.archive().state(keys)?;
    if !witness.is_ahead_of(&state) {
        return Ok(state);
    }
    let place = state.place();
    state.goes_on_behind_older(witness.in_backups().epoch, state.live.salts);
    state.sequence = state.sequence.max(witness.archive_sequence);
    // The state is written over the older one of both sectors.
    if (ArchiveState { sequence: state.sequence + 1, ..state }).place() == place {
        state.sequence += 1;
    }
    locked.write(&state, keys)
}

/// Whether the database at `path` may be as new as the keyring knows it, for whoever asks for that. What its archive says.
///
/// # Errors
/// [`put_back`]; [`Error::Misuse`] if no chain of log backups is known of it; what keeps the keyring or the archive from being read.
pub fn assert_fresh(
    path: &Path,
    chain: Option<[u8; 16]>,
    keys: Option<&ContainerKeys>,
) -> Result<ArchiveState> {
    let refuse = |what: &str| Err(Error::misuse(Subject::File(path.to_owned()), what.to_owned()));
    let (Some(fork), Some(keys)) = (chain, keys) else {
        return refuse(
            "no chain of log backups has begun, so nobody knows whether it is the newest",
        );
    };
    let known = recall(path)?;
    if known.is_empty() {
        return refuse("the keyring has no witness of it: a backup of the chain writes one");
    }
    if known.iter().all(|witness| witness.fork != fork) {
        return refuse("the keyring knows of another recovery fork: it was put back, or its chain has begun anew and no backup was made");
    }
    let state = Archive::open(path)?.state(keys)?;
    if !state.broken_at.is_none() {
        return refuse("its chain of log backups is broken, so nobody knows whether it is the newest; a full backup lets it go on");
    }
    match ahead(path, &state)? {
        Some(witness) => Err(put_back(path, &witness)),
        None => Ok(state),
    }
}

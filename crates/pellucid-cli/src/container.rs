//! What every command asks first of an encrypted database: what its header says, without a key, and where it lies.

use std::path::Path;

use pellucid::message;
use pellucid::shown::Shown;
use pellucid::Error;
use pellucid_engine::inspect::{self, inspect, Kind, SealedHeader};

use crate::output::{Failure, Id, Output};
use crate::seems::seems;

/// Starts the program's own SQLite with the shim.
pub fn begin() -> Result<(), Failure> {
    pellucid_bundled::register().map_err(|error| {
        Failure::new(Id::SqliteNotStarted, error, "the bundled SQLite could not start")
    })
}

/// An encrypted database's header, which needs no key.
pub fn sealed(database: &Path) -> Result<Box<SealedHeader>, Failure> {
    let found = inspect(database).map_err(|error| Failure::from(error).about(database))?;
    refuse_unexpected(database, &found.kind)?;
    match found.kind {
        Kind::Sealed(header) => Ok(header),
        Kind::Plain => Err(Failure::new(
            Id::Plain,
            "the database is not encrypted",
            "`pellucid encrypt` encrypts a database",
        )),
        Kind::Damaged(error) => Err(Failure::of_header(error)),
        Kind::Unfinished => Err(interrupted()),
        _ => Err(not_a_database(database)),
    }
    .map_err(|failure: Failure| failure.about(database))
}

/// Refuses a file without a container at a path where the keyring expects one.
pub fn refuse_unexpected(database: &Path, kind: &Kind) -> Result<(), Failure> {
    kind.refuse_unexpected(database).map_err(|error| Failure::from(error).about(database))
}

/// Neither the one nor the other yet.
pub fn interrupted() -> Failure {
    Failure::new(
        Id::Interrupted,
        "its encryption or decryption was interrupted",
        "`pellucid check` opens the database, which finishes the interrupted work",
    )
}

/// The file at `path` is neither plain nor sealed. What it seems to be is the hint.
pub fn not_a_database(path: &Path) -> Failure {
    let failure = Failure::from(inspect::not_a_database(path));
    match seems(path) {
        Some(seems) => {
            Failure { hint: Some(format!("it {}. {}", seems.told, seems.todo)), ..failure }
        }
        None => failure,
    }
}

/// In words: where both copies of the header are damaged, no key is in it any more.
pub fn unreadable(error: &Error) -> String {
    let lost = &message::KEY_UNREADABLE;
    match error {
        Error::Corrupt { .. } => format!("{error}: {} ({})", lost.text, lost.number),
        _ => error.to_string(),
    }
}

/// A database that is mounted as a file by itself has another name, beside which nobody finds the copy.
pub fn tell_of_mount(database: &Path, output: &Output) {
    if is_mounted_alone(database).unwrap_or_default() {
        output.warning(format!(
            "`{}` is mounted as a single file: if this is interrupted, only who opens it by this name finishes it, from \
             `{0}-pellucid`; do not remove that",
            database.shown()
        ));
    }
}

fn is_mounted_alone(database: &Path) -> Option<bool> {
    use rustix::fs::{statx, AtFlags, StatxFlags, CWD};
    let whole = database.canonicalize().ok()?;
    let mount = |path: &Path| {
        let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
        (found.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(found.stx_mnt_id)
    };
    Some(mount(&whole)? != mount(whole.parent()?)?)
}

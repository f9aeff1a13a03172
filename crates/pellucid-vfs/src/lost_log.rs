//! The rest of a damaged log, kept beside the database before SQLite writes over it.
//!
//! Recovery ends at a frame that does not authenticate, as at one that a crash tore. Whole commits behind it were thrown away
//! then by the next transaction. So their part of the log is copied first, under the recovery lock, as it lies: sealed, at its own
//! offsets. A copy has the log's header, a hole for the frames that count, and the rest.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{fchown, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pellucid::wal::HEADER_BYTES;
use pellucid::{Error, Result, Subject};
use pellucid_files::paths::{beside, look_at_name, names_in, own_name};
use pellucid_files::way::Way;
use pellucid_host::folder::{name_of, Folder};
use pellucid_keyring::{Action, Event};

use crate::log_end::{Certainty, Lost, Read};

/// The most copies that are kept of one database's logs.
const COPIES_MOST: u32 = 4;
const PIECE_BYTES: usize = 65536;
const LOST: &str = "-wal-lost-";
const MAY_BE: &str = "-wal-maybe-lost-";
/// The number of a copy that is being written, and takes the place of another one.
const NEW: &str = "new";
const ACCEPTED: &str = "-wal-accepted-";
const ENDS: [&str; 3] = [LOST, MAY_BE, ACCEPTED];

/// The copies that lie beside the database `path`, unaccepted.
pub fn kept(path: &Path) -> Vec<PathBuf> {
    let is_there = |name: &PathBuf| look_at_name(name).is_ok();
    names(path).filter(is_there).collect()
}

/// The copies that lie beside the database, accepted ones included: each has pages under the keys of its time.
///
/// # Errors
/// [`Error::Io`] if the directory cannot be read.
pub fn all(path: &Path) -> Result<Vec<PathBuf>> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(Vec::new());
    };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let failed = |error| Error::io(Subject::File(directory.to_owned()), error);
    let mut found = Vec::new();
    for other in names_in(directory).map_err(failed)? {
        let rest = other.as_bytes().strip_prefix(name.as_bytes()).unwrap_or_default();
        let number = ENDS.iter().find_map(|end| rest.strip_prefix(end.as_bytes()));
        let is_number = |end: &[u8]| {
            !end.is_empty() && end.iter().all(u8::is_ascii_digit) || end == NEW.as_bytes()
        };
        if number.is_some_and(is_number) {
            found.push(directory.join(other));
        }
    }
    Ok(found)
}

/// Whether there is one.
pub(crate) fn is_kept(path: &Path) -> bool {
    names(path).any(|name| name.symlink_metadata().is_ok())
}

/// What to do about copies of a log.
pub const TO_DO: &str =
    "`pellucid salvage --lost-log` with it makes a database that has them; `pellucid accept` goes on without them and renames the file";

fn name(path: &Path, certainty: Certainty, number: u32) -> PathBuf {
    beside(path, &suffix(certainty, number))
}

fn suffix(certainty: Certainty, number: u32) -> String {
    let end = match certainty {
        Certainty::Attacked | Certainty::Lost => LOST,
        Certainty::MayBe | Certainty::PutBack => MAY_BE,
    };
    format!("{end}{number}")
}

/// The names of all copies that may be there, unaccepted.
fn names(path: &Path) -> impl DoubleEndedIterator<Item = PathBuf> {
    let own = own_name(path).into_os_string();
    let name = move |suffix: String| {
        let mut name = own.clone();
        name.push(suffix);
        PathBuf::from(name)
    };
    let of = |certainty| (1..=COPIES_MOST).map(move |number| suffix(certainty, number));
    of(Certainty::Attacked).chain(of(Certainty::MayBe)).map(name)
}

/// Accepts the copies beside the database: from now on nothing is told of them. Returns their new names; they are the
/// caller's to remove.
///
/// # Errors
/// [`Error::Io`].
pub fn accept(path: &Path) -> Result<Vec<PathBuf>> {
    let mut accepted = Vec::new();
    let io = |path: &Path, error| Error::io(Subject::File(path.to_owned()), error);
    let folder = Folder::of(path).map_err(|error| io(path, error))?;
    for from in names(path).rev() {
        if !folder.has(&name_of(&from)) {
            continue;
        }
        let to = (1..)
            .map(|number: u32| beside(path, &format!("{ACCEPTED}{number}")))
            .find(|to| !folder.has(&name_of(to)));
        let Some(to) = to else { break };
        folder.rename_new(&name_of(&from), &name_of(&to)).map_err(|error| io(&from, error))?;
        accepted.push(to);
    }
    folder.sync().map_err(|error| io(path, error))?;
    Ok(accepted)
}

/// Copies the log of `size` bytes from the damaged frame at `offset` on, synced with its directory, unless the same copy is
/// there. Returns the copy. One of commits that may be lost takes the place of the oldest of its kind.
///
/// # Errors
/// [`Error::Io`] if it cannot be written; [`Error::LimitReached`] if there are too many of commits that are lost: nothing may be
/// written to the log then.
pub(crate) fn keep(
    path: &Path,
    lost: &Lost,
    read: &Read<'_>,
    (offset, size): (u64, u64),
) -> Result<PathBuf> {
    let mut free = None;
    let io = |path: &Path, error| Error::io(Subject::File(path.to_owned()), error);
    let folder = Folder::of(path).map_err(|error| io(path, error))?;
    let mut oldest: Option<(SystemTime, PathBuf)> = None;
    for number in 1..=COPIES_MOST {
        let name = name(path, lost.certainty, number);
        match folder.open(&name_of(&name)) {
            Ok(there) => {
                if is_same(&there, read, (offset, size)).unwrap_or(false) {
                    return Ok(name);
                }
                let modified = there.metadata().and_then(|there| there.modified());
                let modified = modified.unwrap_or(SystemTime::UNIX_EPOCH);
                if oldest.as_ref().is_none_or(|(of_oldest, ..)| modified < *of_oldest) {
                    oldest = Some((modified, name));
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                free = Some(name);
                break;
            }
            Err(error) => return Err(io(&name, error)),
        }
    }
    let makes_room = matches!(lost.certainty, Certainty::MayBe | Certainty::PutBack);
    let replaces = free.is_none() && makes_room;
    let oldest = oldest.filter(|_| replaces).map(|(_, name)| name);
    let Some(name) = free.or(oldest) else {
        return Err(Error::limit(
            Subject::WalHeader,
            format!("{lost}; {COPIES_MOST} copies of damaged logs are there: {TO_DO}"),
        ));
    };
    let event = Event::new(Action::Kept, "rest of a damaged log").of(name.display().to_string());
    // What is kept matters more than the line about it.
    let _ = event.record_here();
    // What it replaces stays until it is written.
    let first = if replaces { beside(path, &format!("{MAY_BE}{NEW}")) } else { name.clone() };
    if replaces {
        // One that a killed process has left.
        let _ = folder.remove_name(&name_of(&first));
    }
    let file = folder.create(&name_of(&first)).map_err(|error| io(&first, error))?;
    let written = write(&file, path, read, (offset, size)).and_then(|()| match replaces {
        true => folder.rename(&name_of(&first), &name_of(&name), &file),
        false => Ok(()),
    });
    if let Err(error) = written {
        let _ = folder.remove(&name_of(&first), &file);
        return Err(io(&name, error));
    }
    folder.sync().map_err(|error| io(&name, error))?;
    Ok(name)
}

fn write(
    file: &File,
    database: &Path,
    read: &Read<'_>,
    (offset, size): (u64, u64),
) -> std::io::Result<()> {
    let original = Way::of(database).and_then(|way| way.look());
    if let Ok(original) = original {
        // Only root can give a file away, and a file made by its owner has the right owner already.
        let _ = fchown(file, Some(original.uid()), Some(original.gid()));
    }
    each_piece(read, (offset, size), |piece, at| file.write_all_at(piece, at).map(|()| true))?;
    file.set_len(size)?;
    file.sync_all()
}

fn is_same(there: &File, read: &Read<'_>, (offset, size): (u64, u64)) -> std::io::Result<bool> {
    if there.metadata()?.len() != size {
        return Ok(false);
    }
    let mut other = vec![0; PIECE_BYTES];
    each_piece(read, (offset, size), |piece, at| {
        let other = &mut other[..piece.len()];
        there.read_exact_at(other, at)?;
        Ok(other == piece)
    })
}

/// Calls `each` with the log's header and what lies from `offset` on, until it returns false.
fn each_piece(
    read: &Read<'_>,
    (offset, size): (u64, u64),
    mut each: impl FnMut(&[u8], u64) -> std::io::Result<bool>,
) -> std::io::Result<bool> {
    let mut buffer = vec![0; PIECE_BYTES];
    let header = (0, HEADER_BYTES as u64);
    for (from, to) in [header, (offset.max(HEADER_BYTES as u64), size)] {
        let mut at = from;
        while at < to {
            let part = (to - at).min(PIECE_BYTES as u64) as usize;
            read(&mut buffer[..part], at)
                .map_err(|code| std::io::Error::other(format!("SQLite's code {}", code.0)))?;
            if !each(&buffer[..part], at)? {
                return Ok(false);
            }
            at += part as u64;
        }
    }
    Ok(true)
}

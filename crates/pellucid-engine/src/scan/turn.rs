//! Whose turn it is to scan a database: one process at a time, by a lock on a byte that nobody reads or writes.
//!
//! The lock is of the open file and not of the process (fcntl_locking(2), open file description locks), so that no close of
//! another descriptor gives it back, and the kernel gives it back with the process, however that ends. Its own
//! descriptor stays open for as long as the process lives: to close it would drop the locks that SQLite has
//! (howtocorrupt.html, 2.2). Of a file that is gone there is nothing to keep.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use pellucid::{Error, Result, Subject};
use pellucid_host::byte_lock;

/// Behind every file that there can be, and far from the bytes that SQLite locks (os.h, PENDING_BYTE).
const BYTE: i64 = 1 << 62;

/// Its neighbour, kept free for whoever archives a log; nothing of this version takes it.
pub const RESERVED_BYTE: i64 = BYTE + 1;

/// The turn, given back on drop.
#[derive(Debug)]
pub struct Turn {
    id: Id,
}

type Id = (u64, u64);

/// A database that this process has scanned.
struct Known {
    id: Id,
    file: File,
    /// A thread of this process has the turn: its own lock would not keep another one out.
    taken: bool,
}

static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

impl Turn {
    /// Takes it; none if somebody has it. Where the file system has no such locks, nobody ever has.
    ///
    /// # Errors
    /// [`Error::Io`] if the database cannot be opened for writing.
    pub fn take(database: &Path) -> Result<Option<Self>> {
        let failed = |error| Error::io(Subject::File(database.to_owned()), error);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|one| one.taken || one.file.metadata().is_ok_and(|found| found.nlink() > 0));
        let id = std::fs::metadata(database).map(|found| id_of(&found)).map_err(failed)?;
        let at = match known.iter().position(|one| one.id == id) {
            Some(at) => at,
            None => {
                let file = pellucid_files::regular::open_to_write(database).map_err(failed)?;
                // Of what was opened: a name may lead elsewhere a moment later.
                let id = file.metadata().map(|found| id_of(&found)).map_err(failed)?;
                known.push(Known { id, file, taken: false });
                known.len() - 1
            }
        };
        let one = &mut known[at];
        if one.taken || !byte_lock::take(&one.file, BYTE).map_err(failed)? {
            return Ok(None);
        }
        one.taken = true;
        Ok(Some(Self { id: one.id }))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = known.iter_mut().find(|one| one.taken && one.id == self.id) {
            one.taken = false;
            // What is unlocked cannot fail, and the end of the process does it as well.
            let _ = byte_lock::give_back(&one.file, BYTE);
        }
    }
}

fn id_of(found: &std::fs::Metadata) -> Id {
    (found.dev(), found.ino())
}

/// Whether somebody has the turn; none where that cannot be known.
pub fn is_taken(database: &File) -> Option<bool> {
    byte_lock::is_taken(database, BYTE)
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn one_has_the_turn_and_everybody_sees_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let other = File::open(file.path()).unwrap();
        assert_eq!(is_taken(&other), Some(false));
        let turn = Turn::take(file.path()).unwrap();
        assert!(turn.is_some());
        assert_eq!(is_taken(&other), Some(true));
        assert!(Turn::take(file.path()).unwrap().is_none(), "another thread of this process");
        // What drops the locks of SQLite does not drop this one.
        drop(File::open(file.path()).unwrap());
        assert_eq!(is_taken(&other), Some(true));
        drop(turn);
        assert_eq!(is_taken(&other), Some(false));
        let theirs = OpenOptions::new().write(true).open(file.path()).unwrap();
        assert!(byte_lock::take(&theirs, BYTE).unwrap());
        assert!(Turn::take(file.path()).unwrap().is_none());
        drop(theirs);
        assert!(Turn::take(file.path()).unwrap().is_some());
    }
}

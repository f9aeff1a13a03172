//! The turn to scan a database: one process at a time, by a lock on a byte that no process reads or
//! writes.
//!
//! The lock belongs to the open file and not to the process (fcntl_locking(2), open file
//! description locks). So closing another descriptor does not release it, and the kernel releases
//! it when the process ends in any way. The lock's own descriptor stays open as long as the process
//! lives, because closing it would drop SQLite's locks (howtocorrupt.html, 2.2). The descriptor of
//! a removed file is not kept.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use pellucid::{Error, Result, Subject};
use pellucid_host::byte_lock;

/// The byte, behind the end of every possible file and far from the bytes that SQLite locks (os.h,
/// PENDING_BYTE).
const BYTE: i64 = 1 << 62;

/// The byte after it, reserved for a program that archives a log. This version does not lock it.
pub const RESERVED_BYTE: i64 = BYTE + 1;

/// The turn, released on drop.
#[derive(Debug)]
pub struct Turn {
    id: Id,
}

type Id = (u64, u64);

/// A database that this process has scanned.
struct Known {
    id: Id,
    file: File,
    /// Whether a thread of this process has the turn. The process's own lock would not keep another
    /// thread out.
    taken: bool,
}

static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

impl Turn {
    /// Takes the turn. `None` if another process or thread has it. On a file system without such
    /// locks it always succeeds.
    ///
    /// # Errors
    /// [`Error::Io`] if the database cannot be opened for writing.
    pub fn take(database: &Path) -> Result<Option<Self>> {
        let failed = |error| Error::io(Subject::File(database.to_owned()), error);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|one| one.taken || one.file.metadata().is_ok_and(|found| found.nlink() > 0));
        let id =
            pellucid_files::paths::look(database).map(|found| id_of(&found)).map_err(failed)?;
        let at = match known.iter().position(|one| one.id == id) {
            Some(at) => at,
            None => {
                let file = pellucid_files::regular::open_to_write(database).map_err(failed)?;
                // The identity of the opened file, because the name may lead elsewhere a moment
                // later.
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
            // The release of a held lock cannot fail, and the end of the process releases it too.
            let _ = byte_lock::give_back(&one.file, BYTE);
        }
    }
}

fn id_of(found: &std::fs::Metadata) -> Id {
    (found.dev(), found.ino())
}

/// Whether a process has the turn. `None` if the system cannot say.
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

//! Advisory locks on open files (flock(2)) that are given back whatever was forked meanwhile.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;

/// A file that is locked as long as this lives.
///
/// It is given back by a call and not by closing: a child that was forked meanwhile has the same open file, and would keep the lock from
/// everybody, itself included. The child gives back nothing.
#[derive(Debug)]
pub struct Locked {
    file: File,
    /// The process that took it.
    process: u32,
}

impl Locked {
    /// Locks a file without waiting, alone or beside others; the file comes back where another process has it.
    ///
    /// # Errors
    /// The system's, such as of a file system without locks.
    pub fn take(file: File, shared: bool) -> std::io::Result<Result<Self, File>> {
        let how = match shared {
            true => FlockOperation::NonBlockingLockShared,
            false => FlockOperation::NonBlockingLockExclusive,
        };
        loop {
            match flock(&file, how) {
                Ok(()) => return Ok(Ok(Self { file, process: std::process::id() })),
                Err(Errno::WOULDBLOCK) => return Ok(Err(file)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether the name still leads to it: another file may have taken the name since it was opened.
    pub fn is_at(&self, path: &Path) -> bool {
        let (Ok(named), Ok(held)) = (path.symlink_metadata(), self.file.metadata()) else {
            return false;
        };
        (named.dev(), named.ino()) == (held.dev(), held.ino())
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            let _ = flock(&self.file, FlockOperation::Unlock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a child has that is forked meanwhile: another descriptor of the same open file.
    #[test]
    fn a_descriptor_that_a_child_got_keeps_the_lock_from_nobody() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lock");
        let open = || File::options().write(true).create(true).truncate(false).open(&path).unwrap();
        let held = Locked::take(open(), false).unwrap().unwrap();
        let inherited = held.file().try_clone().unwrap();
        assert!(Locked::take(open(), false).unwrap().is_err());
        drop(held);
        assert!(Locked::take(open(), false).unwrap().is_ok());
        drop(inherited);
    }

    /// And what that child may not do: give back what its parent holds.
    #[test]
    fn a_child_gives_back_nothing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lock");
        let open = || File::options().write(true).create(true).truncate(false).open(&path).unwrap();
        let held = Locked::take(open(), false).unwrap().unwrap();
        let process = std::process::id() + 1;
        drop(Locked { file: held.file().try_clone().unwrap(), process });
        assert!(Locked::take(open(), false).unwrap().is_err());
    }

    #[test]
    fn a_file_that_lost_its_name_is_noticed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lock");
        let held = Locked::take(File::create(&path).unwrap(), true).unwrap().unwrap();
        assert!(held.is_at(&path));
        std::fs::remove_file(&path).unwrap();
        assert!(!held.is_at(&path));
        File::create(&path).unwrap();
        assert!(!held.is_at(&path));
    }
}

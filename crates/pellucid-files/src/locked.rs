//! Advisory locks on open files (flock(2)) that are given back whatever was forked meanwhile.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{flock, FlockOperation, OFlags};
use rustix::io::Errno;

/// Between two looks whether a lock is free.
const PAUSE: Duration = Duration::from_millis(2);

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

    /// Locks the file `path` alone, which is made for its owner if it is not there, and waits until nobody else has it; none if somebody has
    /// it for longer than `patience`. No symbolic link is followed at the end of the path.
    ///
    /// # Errors
    /// The system's.
    pub fn wait_for(path: &Path, patience: Duration) -> std::io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
        let begun = Instant::now();
        loop {
            match Self::take(options.open(path)?, false)? {
                Ok(held) if held.is_at(path) => return Ok(Some(held)),
                // Another file has taken its name since it was opened.
                Ok(_) => {}
                Err(_) if begun.elapsed() < patience => std::thread::sleep(PAUSE),
                Err(_) => return Ok(None),
            }
        }
    }

    /// Waits until nobody has the file `path` locked, for `patience` at most. It is not made, and need not be writable.
    ///
    /// # Errors
    /// The system's; one that is not there is locked by nobody.
    pub fn wait_until_free(path: &Path, patience: Duration) -> std::io::Result<()> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
        let begun = Instant::now();
        loop {
            let file = match options.open(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                opened => opened?,
            };
            match Self::take(file, true)? {
                Err(_) if begun.elapsed() < patience => std::thread::sleep(PAUSE),
                _ => return Ok(()),
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
    fn whoever_waits_gets_it_from_the_one_before() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lock");
        Locked::wait_until_free(&path, Duration::ZERO).unwrap();
        assert!(!path.exists(), "who only waits makes nothing");
        let held = Locked::wait_for(&path, Duration::ZERO).unwrap().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(Locked::wait_for(&path, Duration::ZERO).unwrap().is_none());
        std::thread::scope(|scope| {
            let next = scope.spawn(|| {
                Locked::wait_until_free(&path, Duration::from_secs(60)).unwrap();
                Locked::wait_for(&path, Duration::from_secs(60)).unwrap().is_some()
            });
            std::thread::sleep(Duration::from_millis(20));
            assert!(!next.is_finished());
            drop(held);
            assert!(next.join().unwrap());
        });
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        assert!(Locked::wait_for(&path, Duration::ZERO).is_err());
        assert!(!place.path().join("elsewhere").exists());
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

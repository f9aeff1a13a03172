//! One writer at a time: whoever changes a keyring holds an advisory lock. Readers take none.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pellucid::error::{Error, Result, Subject};
use pellucid_files::locked::Locked;

/// As long as anybody waits. A change of a keyring takes less than a second, an exchange of a master key a few.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(2);

/// The lock, given back on drop.
#[derive(Debug)]
pub(super) struct Lock(#[allow(dead_code, reason = "dropping it gives the lock back")] Locked);

impl Lock {
    /// Waits for it.
    pub(super) fn take(home: &Path) -> Result<Self> {
        let path = path(home);
        let io = |error| Error::io(Subject::File(path.clone()), error);
        let begun = Instant::now();
        loop {
            let file = open(&path).map_err(io)?;
            // A group that may read may wait for changes, too.
            if let Some(group) = super::instance::group_of(&home.join("keyring")) {
                let _ = std::os::unix::fs::fchown(&file, None, Some(group));
                let _ = file.set_permissions(PermissionsExt::from_mode(0o660));
            }
            match Locked::take(file, false).map_err(io)? {
                Ok(held) if held.is_at(&path) => return Ok(Self(held)),
                // Another file has taken its name since it was opened: who has this one holds nothing up.
                Ok(_) => {}
                Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                Err(_) => {
                    let told = "another process holds it for a minute: `fuser` names it; end that, and do this again";
                    return Err(io(std::io::Error::new(ErrorKind::TimedOut, told)));
                }
            }
        }
    }

    /// Puts another file in the place of the one that is held: whoever had the old one open can hold up nobody any more.
    pub(super) fn renew(&self, home: &Path) -> Result<()> {
        let path = path(home);
        let new = home.join("keyring/.lock.new");
        let io = |error| Error::io(Subject::File(path.clone()), error);
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(io(error)),
            _ => {}
        }
        drop(open(&new).map_err(io)?);
        std::fs::rename(&new, &path).map_err(io)
    }
}

fn path(home: &Path) -> PathBuf {
    home.join("keyring/lock")
}

fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

//! One writer at a time: whoever changes a keyring holds an advisory lock. Readers take none.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use pellucid::error::{Error, Result, Subject};

/// The lock, given back on drop.
#[derive(Debug)]
pub(super) struct Lock(#[allow(dead_code, reason = "closing it gives the lock back")] File);

impl Lock {
    /// Waits for it.
    pub(super) fn take(home: &Path) -> Result<Self> {
        let path = home.join("keyring/lock");
        let io = |error| Error::io(Subject::File(path.clone()), error);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(io)?;
        // A group that may read may wait for changes, too.
        if let Some(group) = super::instance::group_of(&home.join("keyring")) {
            let _ = std::os::unix::fs::fchown(&file, None, Some(group));
            let _ = file.set_permissions(PermissionsExt::from_mode(0o660));
        }
        rustix::io::retry_on_intr(|| {
            rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)
        })
        .map_err(|error| io(error.into()))?;
        Ok(Self(file))
    }
}

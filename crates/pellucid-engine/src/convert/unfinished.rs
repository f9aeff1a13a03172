//! A new database that has not got its name yet: a file beside it, locked by the process that writes it, with a mode that no
//! other file has.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pellucid::{Error, Result, Subject};
use pellucid_host::folder::{name_of, Folder};
use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;

/// The mode of a file that is not finished.
const MODE: u32 = 0o1600;

/// Where the new database `to` is written: with `.pellucid-encrypting` behind its name.
pub fn beside(to: &Path) -> PathBuf {
    pellucid_files::paths::beside(to, ".pellucid-encrypting")
}

/// Makes the file `path` in `folder`, after it has removed one that a killed process left.
///
/// # Errors
/// [`Error::Misuse`] if another process writes it, or something else has the name; [`Error::Io`].
pub fn create(folder: &Folder, path: &Path) -> Result<File> {
    let io = |error: std::io::Error| Error::io(Subject::File(path.to_owned()), error);
    let misuse = |cause| Error::misuse(Subject::File(path.to_owned()), cause);
    let name = name_of(path);
    match folder.open(&name) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(io(error)),
        Ok(held) => {
            match flock(&held, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => {
                    return Err(misuse("another process is writing it: wait until it has ended"))
                }
                locked => locked.map_err(|error| io(error.into()))?,
            }
            let found = held.metadata().map_err(io)?;
            if found.mode() & 0o7777 != MODE || found.nlink() != 1 {
                return Err(misuse(
                    "it has the name that is needed, and no interrupted encryption has left it: move it away, or remove it \
                     if nobody needs it; nothing was changed",
                ));
            }
            folder.remove(&name, &held).map_err(io)?;
        }
    }
    let file = folder.create_with(&name, MODE).map_err(io)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| io(error.into()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_what_a_killed_process_left_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let path = beside(&place.path().join("new.db"));
        let folder = Folder::of(&path).unwrap();
        let running = create(&folder, &path).unwrap();
        assert!(create(&folder, &path).unwrap_err().to_string().contains("another process"));
        drop(running);
        drop(create(&folder, &path).unwrap());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(create(&folder, &path).unwrap_err().to_string().contains("move it away"));
        assert!(path.exists());
    }
}

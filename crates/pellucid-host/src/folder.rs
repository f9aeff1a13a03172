//! A directory by its descriptor, in which a backup's file gets its name. It is opened once, and
//! all changes of names go by the descriptor: the owner of a directory above may put another one in
//! its place meanwhile.

use std::ffi::{c_int, CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pellucid_files::paths::directory_of;
use rustix::fs::{openat, statat, AtFlags, Mode, OFlags, CWD};

/// An open directory.
#[derive(Debug)]
pub struct Folder(File);

/// The identity of a file: device and inode.
pub type Identity = (u64, u64);

impl Folder {
    /// Opens the directory that `path` lies in.
    ///
    /// # Errors
    /// The system's.
    pub fn of(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, directory_of(path), flags, Mode::empty())?.into()))
    }

    /// Makes a file under a name that no file has yet. Only its owner may read it.
    ///
    /// # Errors
    /// The system's.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags =
            libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let name = terminated(name)?;
        // SAFETY: the directory is open, the name terminated; with O_CREAT a mode is given (openat(2)).
        let descriptor = unsafe { libc::openat(self.raw(), name.as_ptr(), flags, 0o600 as c_int) };
        done(descriptor)?;
        // SAFETY: it was opened just now, and nobody else has it.
        Ok(unsafe { File::from_raw_fd(descriptor) })
    }

    /// Returns the identity of the file that has a name. A link is a file itself unless it is
    /// followed.
    ///
    /// # Errors
    /// The system's.
    pub fn identity(&self, name: &OsStr, follow: bool) -> io::Result<Identity> {
        let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let found = statat(&self.0, name, flags)?;
        Ok((found.st_dev, found.st_ino))
    }

    /// Removes a name, if `file` has it and no other file.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self, name: &OsStr, file: &File) -> io::Result<()> {
        self.assert_is(name, file)?;
        let name = terminated(name)?;
        // SAFETY: the directory is open, the name terminated.
        done(unsafe { libc::unlinkat(self.raw(), name.as_ptr(), 0) })
    }

    /// Gives a file another name that no file has. It keeps the first one.
    ///
    /// # Errors
    /// The system's.
    pub fn link(&self, from: &OsStr, to: &OsStr, file: &File) -> io::Result<()> {
        self.assert_is(from, file)?;
        let (from, to) = (terminated(from)?, terminated(to)?);
        // SAFETY: the directory is open, the names terminated.
        done(unsafe { libc::linkat(self.raw(), from.as_ptr(), self.raw(), to.as_ptr(), 0) })
    }

    /// Renames a file, and replaces the file that has the name.
    ///
    /// # Errors
    /// The system's.
    pub fn rename(&self, from: &OsStr, to: &OsStr, file: &File) -> io::Result<()> {
        self.assert_is(from, file)?;
        let (from, to) = (terminated(from)?, terminated(to)?);
        // SAFETY: the directory is open, the names terminated.
        done(unsafe { libc::renameat(self.raw(), from.as_ptr(), self.raw(), to.as_ptr()) })
    }

    /// Forces the names to disk.
    ///
    /// # Errors
    /// The system's.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn raw(&self) -> c_int {
        self.0.as_raw_fd()
    }

    /// Checks that `file` has the name. If another file has it, that file stays.
    fn assert_is(&self, name: &OsStr, file: &File) -> io::Result<()> {
        match self.identity(name, false)? == identity(file)? {
            true => Ok(()),
            false => Err(io::Error::other("it is another file by now")),
        }
    }
}

/// Turns the result of a call of the C library into an error. The calls go by the library and not
/// by the system, so that tests can stop a program before each change (tests/tools/killat.c).
fn done(code: c_int) -> io::Result<()> {
    if code < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn terminated(name: &OsStr) -> io::Result<CString> {
    Ok(CString::new(name.as_bytes())?)
}

/// Returns the identity of an open file.
///
/// # Errors
/// The system's.
pub fn identity(file: &File) -> io::Result<Identity> {
    identity_of(&file.metadata()?)
}

/// Returns the identity in a file's metadata.
///
/// # Errors
/// None.
pub fn identity_of(found: &Metadata) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt;
    Ok((found.dev(), found.ino()))
}

/// Returns the last part of a path.
pub fn name_of(path: &Path) -> OsString {
    path.file_name().unwrap_or(path.as_os_str()).to_owned()
}

/// Opens a file of media to append to it. A link under its name is followed once, and not again.
///
/// # Errors
/// The system's.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    pellucid_files::regular::open_named_to_write(&path.canonicalize()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_the_name_by_now_is_neither_removed_nor_renamed() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::of(&place.path().join("a")).unwrap();
        let (a, b) = (OsStr::new("a"), OsStr::new("b"));
        let file = folder.create(a).unwrap();
        assert!(folder.create(a).is_err());
        std::fs::rename(place.path().join("a"), place.path().join("moved")).unwrap();
        std::fs::write(place.path().join("other"), "somebody's").unwrap();
        std::os::unix::fs::symlink("moved", place.path().join("a")).unwrap();
        for _ in 0..2 {
            assert!(folder.remove(a, &file).is_err());
            assert!(folder.rename(a, b, &file).is_err() && folder.link(a, b, &file).is_err());
            // A link to the file itself is not it either, nor is another file.
            std::fs::rename(place.path().join("other"), place.path().join("a")).unwrap();
            std::fs::write(place.path().join("other"), "another's").unwrap();
        }
        assert!(!place.path().join("b").exists());
        // The directory itself is another one by now.
        std::fs::rename(place.path().join("moved"), place.path().join("a")).unwrap();
        folder.link(a, b, &file).unwrap();
        assert!(folder.link(a, b, &file).is_err(), "it clobbers nothing");
        folder.remove(b, &file).unwrap();
        folder.rename(a, b, &file).unwrap();
        assert_eq!(folder.identity(b, false).unwrap(), identity(&file).unwrap());
    }
}

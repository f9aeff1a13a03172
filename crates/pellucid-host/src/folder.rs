//! A directory by its descriptor, in which files are made, found, renamed and removed. It is opened
//! once, and all names go by the descriptor: the owner of a directory above may put another one in
//! its place meanwhile.

use std::ffi::{c_int, CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use pellucid_files::open_at::open_at;
use pellucid_files::regular;
use pellucid_files::way::Way;
use rustix::fs::{linkat, renameat_with, statat, AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// An open directory.
#[derive(Debug)]
pub struct Folder(File);

/// The identity of a file: device and inode.
pub type Identity = (u64, u64);

impl Folder {
    /// Opens the directory that the name `path` lies in.
    ///
    /// # Errors
    /// Those of [`Way::to_name`].
    pub fn of(path: &Path) -> io::Result<Self> {
        Self::at_end_of(&Way::to_name(path)?)
    }

    /// Opens the directory that a way has led to.
    ///
    /// # Errors
    /// The system's.
    pub fn at_end_of(way: &Way) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(open_at(way.directory(), ".", flags, Mode::empty())?.into()))
    }

    /// Opens the directory that has a name itself, and no symbolic link.
    ///
    /// # Errors
    /// The system's.
    pub fn folder(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(open_at(&self.0, name, flags, Mode::empty())?.into()))
    }

    /// The names in it.
    ///
    /// # Errors
    /// The system's.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.0)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if ![&b"."[..], b".."].contains(&&name[..]) {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    /// Makes another handle on the same directory.
    ///
    /// # Errors
    /// The system's.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// Makes a file under a name that no file has yet. Only its owner may read it.
    ///
    /// # Errors
    /// The system's.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        self.create_with(name, 0o600)
    }

    /// Like [`Folder::create`], with another mode.
    ///
    /// # Errors
    /// The system's.
    pub fn create_with(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags =
            libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let name = terminated(name)?;
        // SAFETY: the directory is open, the name terminated; with O_CREAT a mode is given (openat(2)).
        let open = || unsafe { libc::openat(self.raw(), name.as_ptr(), flags, mode as c_int) };
        let descriptor = loop {
            let descriptor = open();
            match done(descriptor) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                opened => break opened.map(|()| descriptor)?,
            }
        };
        // SAFETY: it was opened just now, and nobody else has it.
        Ok(unsafe { File::from_raw_fd(descriptor) })
    }

    /// Makes a directory under a name that nothing has yet.
    ///
    /// # Errors
    /// The system's.
    pub fn make_folder(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        let name = terminated(name)?;
        // SAFETY: the directory is open, the name terminated.
        done(unsafe { libc::mkdirat(self.raw(), name.as_ptr(), mode) })
    }

    /// Removes an empty directory by its name.
    ///
    /// # Errors
    /// The system's.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        let name = terminated(name)?;
        // SAFETY: the directory is open, the name terminated.
        done(unsafe { libc::unlinkat(self.raw(), name.as_ptr(), libc::AT_REMOVEDIR) })
    }

    /// Gives the directory itself owner and mode.
    ///
    /// # Errors
    /// The system's.
    pub fn give(&self, (user, group): (u32, u32), mode: u32) -> io::Result<()> {
        give(&self.0, (user, group), mode)
    }

    /// Returns what has a name, a symbolic link itself: its metadata can be read, and nothing else
    /// (`O_PATH`).
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::NotFound`] if nothing has the name.
    pub fn look(&self, name: &OsStr) -> io::Result<Metadata> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        File::from(open_at(&self.0, name, flags, Mode::empty())?).metadata()
    }

    /// Opens the regular file that has a name itself, for reading.
    ///
    /// # Errors
    /// Those of [`regular::open_in`].
    pub fn open(&self, name: &OsStr) -> io::Result<File> {
        regular::open_in(&self.0, name, false)
    }

    /// Like [`Folder::open`], for writing too.
    ///
    /// # Errors
    /// Those of [`regular::open_in`].
    pub fn open_to_write(&self, name: &OsStr) -> io::Result<File> {
        regular::open_in(&self.0, name, true)
    }

    /// Whether anything has a name. What cannot be looked at counts as there.
    pub fn has(&self, name: &OsStr) -> bool {
        // No file has a name that is too long: whoever makes one is told.
        !matches!(self.look(name), Err(error) if error.kind() == io::ErrorKind::NotFound
            || error.raw_os_error() == Some(libc::ENAMETOOLONG))
    }

    /// Makes a symbolic link that says `text`.
    ///
    /// # Errors
    /// The system's.
    pub fn symlink(&self, text: &str, name: &OsStr) -> io::Result<()> {
        let (text, name) = (terminated(OsStr::new(text))?, terminated(name)?);
        // SAFETY: the directory is open, both texts terminated.
        done(unsafe { libc::symlinkat(text.as_ptr(), self.raw(), name.as_ptr()) })
    }

    /// Returns what a symbolic link says. `None` if there is none, or its text is no UTF-8.
    pub fn read_link(&self, name: &OsStr) -> Option<String> {
        rustix::fs::readlinkat(&self.0, name, Vec::new()).ok()?.into_string().ok()
    }

    /// Removes a name, whatever has it by now.
    ///
    /// # Errors
    /// The system's.
    pub fn remove_name(&self, name: &OsStr) -> io::Result<()> {
        let name = terminated(name)?;
        // SAFETY: the directory is open, the name terminated.
        done(unsafe { libc::unlinkat(self.raw(), name.as_ptr(), 0) })
    }

    /// Gives what has a name another one, which may be taken.
    ///
    /// # Errors
    /// The system's.
    pub fn rename_name(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let (from, to) = (terminated(from)?, terminated(to)?);
        // SAFETY: the directory is open, the names terminated.
        done(unsafe { libc::renameat(self.raw(), from.as_ptr(), self.raw(), to.as_ptr()) })
    }

    /// Gives what has a name another one that nothing has.
    ///
    /// # Errors
    /// The system's.
    pub fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        match renameat_with(&self.0, from, &self.0, to, RenameFlags::NOREPLACE) {
            // Not every file system can (renameat2(2), EINVAL). NFS cannot, but it can link.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                linkat(&self.0, from, &self.0, to, AtFlags::empty())?;
                self.remove_name(from)
            }
            renamed => Ok(renamed?),
        }
    }

    /// Gives an open file a name that nothing has. `from` is the name that it has.
    ///
    /// # Errors
    /// The system's.
    pub fn link_file(&self, file: &File, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let held = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let (name, flags) = (terminated(to)?, libc::AT_SYMLINK_FOLLOW);
        // SAFETY: the directory is open, both names terminated.
        let linked = done(unsafe {
            libc::linkat(libc::AT_FDCWD, held.as_ptr(), self.raw(), name.as_ptr(), flags)
        });
        match linked {
            // Without /proc, or if /proc is not of this file system, the link is made by the name.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EXDEV)) => {
                self.link(from, to, file)
            }
            linked => linked,
        }
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
        self.remove_name(name)
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
        self.rename_name(from, to)
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

/// Gives an open file owner and mode, as far as it has others.
///
/// # Errors
/// The system's.
pub fn give(file: &File, (user, group): (u32, u32), mode: u32) -> io::Result<()> {
    use std::os::unix::fs::{fchown, MetadataExt, PermissionsExt};
    let found = file.metadata()?;
    if (found.uid(), found.gid()) != (user, group) {
        fchown(file, Some(user), Some(group))?;
    }
    if found.mode() & 0o7777 != mode {
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Opens a file of media to append to it.
///
/// # Errors
/// The system's.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    regular::open_to_write(path)
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

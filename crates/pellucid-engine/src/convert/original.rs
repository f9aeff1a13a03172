//! The database that a conversion is of: one file, held from the beginning.
//!
//! SQLite opens by name, and whoever may write the directory can give the database's name to another file at any moment, for
//! example to a link to a database that only the converter may read. So the file is held, and each connection that the
//! conversion reads or writes the database by has to have opened that file and no other.

use std::fs::{File, Metadata};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pellucid::{Error, Result, Subject};
use pellucid_host::connection::Handle;
use pellucid_host::{DatabaseError, Options};
use pellucid_vfs::named_file::{open_files, Identity};
use rustix::fs::{open, Mode, OFlags};

use crate::look::look_by;

/// Other threads of an application open files of their own meanwhile; then it is opened once more.
const TRIES: u32 = 20;

/// The file that a database's name led to.
#[derive(Debug)]
pub struct Original {
    path: PathBuf,
    /// Opened for nothing but to keep the inode (`O_PATH`): its end gives back none of the locks that SQLite has on the file.
    held: File,
}

impl Original {
    /// Holds the file that `path` leads to, without a symbolic link at its end.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn hold(path: &Path) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held: OwnedFd = open(path, flags, Mode::empty())
            .map_err(|error| Error::io(Subject::File(path.to_owned()), error.into()))?;
        let original = Self { path: path.to_owned(), held: File::from(held) };
        // A link itself can be held.
        original.assert_named().map(|()| original)
    }

    /// What the system knows of it, whatever has its name by now.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn metadata(&self) -> Result<Metadata> {
        self.held.metadata().map_err(|error| Error::io(Subject::File(self.path.clone()), error))
    }

    /// That the name is still this file's.
    ///
    /// # Errors
    /// [`Error::Misuse`].
    pub fn assert_named(&self) -> Result<()> {
        let named = self.path.symlink_metadata();
        match named.is_ok_and(|named| !named.is_symlink() && self.is(identity(&named))) {
            true => Ok(()),
            false => Err(self.taken()),
        }
    }

    /// A connection to look at it by, as [`Handle::look`] has it.
    ///
    /// # Errors
    /// As [`Original::connect`].
    pub fn look<'a>(
        &self,
        path: &Path,
        uri: &str,
        options: &Options,
    ) -> std::result::Result<Handle<'a>, DatabaseError> {
        // What is read by then opens logs, which are other files.
        look_by(path, options, |flags| self.connect(|| Handle::open(path, uri, flags)))
    }

    /// A connection that `connect` opens by the name, if what it has opened is this file. SQLite opens a database when it
    /// connects, by a descriptor of its own, and tells nobody which; but it is among those that the process has since then.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it is another file, or it cannot be told; else those of `connect`.
    pub fn connect<'a>(
        &self,
        connect: impl Fn() -> std::result::Result<Handle<'a>, DatabaseError>,
    ) -> std::result::Result<Handle<'a>, DatabaseError> {
        // SQLite opens none anew where it has one left of a connection that was closed while the file was locked.
        let mut unproven = Vec::new();
        for _ in 0..TRIES {
            let before = open_files();
            let handle = connect()?;
            let mut since = open_files();
            since.retain(|descriptor, file| before.get(descriptor) != Some(file));
            if !since.is_empty() && since.values().all(|file| self.is(*file)) {
                return Ok(handle);
            }
            unproven.push(handle);
        }
        Err(self.taken().into())
    }

    fn is(&self, file: Identity) -> bool {
        self.held.metadata().is_ok_and(|held| identity(&held) == file)
    }

    fn taken(&self) -> Error {
        Error::misuse(
            Subject::File(self.path.clone()),
            "another file had its name while it was being converted: nothing was changed; run it again when nobody exchanges \
             files in that directory",
        )
    }
}

fn identity(found: &Metadata) -> Identity {
    (found.dev(), found.ino())
}

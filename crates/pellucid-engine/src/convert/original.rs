//! The database file of a conversion: one file, held from the beginning.
//!
//! SQLite opens by name, and a process that may write the directory can give the database's name to
//! another file at any moment, for example to a link to a database that only the converting user
//! may read. So the file is held, and each connection of the conversion has to have opened that
//! file and no other.

use std::fs::{File, Metadata};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pellucid::{Error, Result, Subject};
use pellucid_host::connection::Handle;
use pellucid_host::{DatabaseError, Options};
use pellucid_vfs::named_file::{open_files, Identity};
use rustix::fs::{open, Mode, OFlags};

use crate::look::look_by;

/// The most tries to open the file. Other threads of an application may open files at the same
/// time, so that the opened file cannot be identified.
const TRIES: u32 = 20;

/// The file that a database's name led to. A clone holds the same file.
#[derive(Debug, Clone)]
pub struct Original {
    path: PathBuf,
    /// The descriptor that keeps the inode (`O_PATH`). Closing it releases none of the locks that
    /// SQLite has on the file.
    held: Arc<File>,
}

impl Original {
    /// Holds the file at `path`. A symbolic link at its end is not followed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn hold(path: &Path) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held: OwnedFd = open(path, flags, Mode::empty())
            .map_err(|error| Error::io(Subject::File(path.to_owned()), error.into()))?;
        let original = Self { path: path.to_owned(), held: Arc::new(File::from(held)) };
        // `O_PATH` can hold a link itself, so the name is checked.
        original.assert_named().map(|()| original)
    }

    /// The file's metadata, whichever file has its name by now.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn metadata(&self) -> Result<Metadata> {
        self.held.metadata().map_err(|error| Error::io(Subject::File(self.path.clone()), error))
    }

    /// Checks that the name still leads to this file.
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

    /// Opens a read-only connection to this file, as [`Handle::look`] does.
    ///
    /// # Errors
    /// Those of [`Original::connect`].
    pub fn look<'a>(
        &self,
        path: &Path,
        uri: &str,
        options: &Options,
    ) -> std::result::Result<Handle<'a>, DatabaseError> {
        // The first read opens the logs, which are other files.
        look_by(path, options, |flags| self.connect(|| Handle::open(path, uri, flags)))
    }

    /// Returns the connection that `connect` opens by the name, if it has opened this file.
    ///
    /// SQLite opens a database when it connects, by a descriptor of its own, and does not say
    /// which. But that descriptor is among those that the process has got since.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it is another file, or the opened file cannot be identified; else the
    /// error of `connect`.
    pub fn connect<'a>(
        &self,
        connect: impl Fn() -> std::result::Result<Handle<'a>, DatabaseError>,
    ) -> std::result::Result<Handle<'a>, DatabaseError> {
        // SQLite opens no new descriptor if it still has one of a connection that was closed while
        // the file was locked.
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

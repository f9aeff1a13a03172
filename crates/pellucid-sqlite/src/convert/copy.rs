//! The copy that a conversion lays: one file, held by the descriptor that made it.
//!
//! Whoever may write the directory can give the copy's name to another file at any moment. So it is hashed, finished,
//! given away, laid and removed by its descriptor, or after a look whether the name is still its own. SQLite opens by name:
//! while a copy is being filled, what the shim opens under its name has to prove that it is this file before anything is
//! written, and its journal has no name at all (`vfs.rs`).

use std::ffi::{CStr, OsStr};
use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{fchown, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use pellucid::secret::fill_random;
use pellucid::{Error, Result, Subject};

use super::laying::sync_directory;
use crate::lower::{Lower, ReadEnd};

/// The copy of a conversion, removed on drop unless it is needed.
#[derive(Debug)]
pub struct CopyFile {
    file: Arc<File>,
    path: PathBuf,
    is_needed: bool,
}

impl CopyFile {
    /// Makes the file, with the mode of a secret.
    ///
    /// # Errors
    /// [`Error::Io`], also if there is anything at `path`.
    pub fn create(path: PathBuf) -> Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path);
        match file {
            Ok(file) => Ok(Self { file: Arc::new(file), path, is_needed: false }),
            Err(error) => Err(Error::io(Subject::File(path), error)),
        }
    }

    /// Takes over a file that was made at `path`.
    pub fn made(file: File, path: PathBuf) -> Self {
        Self { file: Arc::new(file), path, is_needed: false }
    }

    /// What an interrupted conversion of the database at `database` has left at `path`; none if there is nothing.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it is something else: a link, no file, one with other names, or a stranger's. The file's content
    /// becomes the database's, so it has to be of somebody who may decide that.
    pub fn left(path: PathBuf, database: &Path) -> Result<Option<Self>> {
        let io = |error| Error::io(Subject::File(path.clone()), error);
        let foreign = |why: String| Err(Error::misuse(Subject::File(path.clone()), why));
        match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
            Ok(found) if !found.is_file() => {
                return foreign("a copy of an interrupted conversion is a regular file".to_owned())
            }
            Ok(_) => {}
        }
        let file = pellucid::regular::open_named(&path).map_err(io)?;
        let found = file.metadata().map_err(io)?;
        if found.nlink() > 1 {
            return foreign("it has another name, as a copy of a conversion never has".to_owned());
        }
        let owner = std::fs::metadata(database).map_err(io)?.uid();
        let trusted = [0, owner, rustix::process::geteuid().as_raw()];
        if !trusted.contains(&found.uid()) {
            return foreign(format!(
                "it belongs to user {}, not to the database's owner; nothing of it is used",
                found.uid()
            ));
        }
        Ok(Some(Self { file: Arc::new(file), path, is_needed: true }))
    }

    /// Its descriptor.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The name that it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// From here on only [`CopyFile::remove`] removes it.
    pub fn keep(&mut self) {
        self.is_needed = true;
    }

    /// Gives it owner and group of the original: another user's opener has to be able to finish an interrupted switch.
    pub fn give_to_owner_of(&self, original: &Metadata) {
        // Only root can give a file away, and an own file has the right owner already.
        let _ = fchown(&*self.file, Some(original.uid()), Some(original.gid()));
    }

    /// Gives it another name.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Misuse`] if another file has taken one of the names.
    pub fn rename(&mut self, to: PathBuf) -> Result<()> {
        self.assert_named()?;
        std::fs::rename(&self.path, &to)
            .map_err(|error| Error::io(Subject::File(to.clone()), error))?;
        self.path = to;
        self.assert_named()
    }

    /// Gives it one more name, which nothing has yet.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Misuse`] if another file has taken its name.
    pub fn link(&self, to: &Path) -> Result<()> {
        use rustix::fs::{linkat, AtFlags, CWD};
        use std::os::fd::AsRawFd;
        let io = |error| Error::io(Subject::File(to.to_owned()), error);
        self.assert_named()?;
        let held = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        match linkat(CWD, &held, CWD, to, AtFlags::SYMLINK_FOLLOW) {
            // Where there is no /proc, or not this file in it, by its name.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::XDEV) => {
                std::fs::hard_link(&self.path, to).map_err(io)?;
            }
            linked => linked.map_err(|error| io(error.into()))?,
        }
        match same(to.symlink_metadata(), self.file.metadata()) {
            true => Ok(()),
            false => Err(taken(&self.path)),
        }
    }

    /// That the name is still this file's.
    ///
    /// # Errors
    /// [`Error::Misuse`].
    pub fn assert_named(&self) -> Result<()> {
        match self.has_name() {
            true => Ok(()),
            false => Err(taken(&self.path)),
        }
    }

    fn has_name(&self) -> bool {
        same(self.path.symlink_metadata(), self.file.metadata())
    }

    /// Removes it, which nobody needs any more. Another file that has its name by now stays.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove(mut self) -> Result<()> {
        self.is_needed = true;
        if !self.has_name() {
            return Ok(());
        }
        std::fs::remove_file(&self.path)
            .map_err(|error| Error::io(Subject::File(self.path.clone()), error))?;
        sync_directory(&self.path)
    }

    /// Lets SQLite fill it under its name for as long as the result lives. `plain`: with pages in clear.
    pub fn lend(&self, plain: bool) -> Lent {
        let (path, file) = (self.path.clone(), self.file.clone());
        lent().push(Loan { path: path.clone(), file, plain });
        Lent(path)
    }
}

impl Drop for CopyFile {
    fn drop(&mut self) {
        if !self.is_needed && self.has_name() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn same(one: std::io::Result<Metadata>, other: std::io::Result<Metadata>) -> bool {
    let identity = |found: std::io::Result<Metadata>| found.ok().map(|m| (m.dev(), m.ino()));
    let one = identity(one);
    one.is_some() && one == identity(other)
}

fn taken(path: &Path) -> Error {
    Error::misuse(
        Subject::File(path.to_owned()),
        "another file has taken its name while it was being made: nothing was changed",
    )
}

/// A copy that SQLite may open by its name.
#[derive(Debug, Clone)]
struct Loan {
    path: PathBuf,
    file: Arc<File>,
    plain: bool,
}

static LENT: Mutex<Vec<Loan>> = Mutex::new(Vec::new());

fn lent() -> MutexGuard<'static, Vec<Loan>> {
    LENT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Ends a loan on drop.
#[derive(Debug)]
pub struct Lent(PathBuf);

impl Drop for Lent {
    fn drop(&mut self) {
        let mut lent = lent();
        if let Some(at) = lent.iter().position(|loan| loan.path == self.0) {
            lent.swap_remove(at);
        }
    }
}

/// What the shim's VFS needs to know of a name.
#[derive(Debug)]
pub enum Name {
    /// A copy that is being filled.
    Copy(Opening),
    /// Its journal or WAL, which it does not need: it is rubbish until it is whole.
    Log,
}

/// Looks whether `name` belongs to a copy that is being filled.
pub fn lookup(name: &CStr) -> Option<Name> {
    let name = Path::new(OsStr::from_bytes(name.to_bytes()));
    let is_log = |loan: &Loan| {
        let rest = name.as_os_str().as_bytes().strip_prefix(loan.path.as_os_str().as_bytes());
        rest == Some(b"-journal") || rest == Some(b"-wal")
    };
    lent().iter().find_map(|loan| match loan.path == name {
        true => Some(Name::Copy(Opening(loan.clone()))),
        false => is_log(loan).then_some(Name::Log),
    })
}

/// A copy that SQLite opens by its name.
#[derive(Debug)]
pub struct Opening(Loan);

impl Opening {
    /// Whether its pages are in clear.
    pub fn is_plain(&self) -> bool {
        self.0.plain
    }

    /// Shows that what was opened is the copy: what is written by the copy's descriptor behind its end, and nobody knows
    /// beforehand, is read there.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it is another file, of which nothing but those bytes was read.
    pub fn prove(&self, opened: Lower) -> Result<()> {
        let Loan { path, file, .. } = &self.0;
        let io = |error| Error::io(Subject::File(path.clone()), error);
        let end = file.metadata().map_err(io)?.len();
        let (mut written, mut read) = ([0; 32], [0; 32]);
        fill_random(&mut written)?;
        let is_same = file
            .write_all_at(&written, end)
            .map(|()| opened.read(&mut read, end) == Ok(ReadEnd::Full) && read == written);
        file.set_len(end).map_err(io)?;
        match is_same.map_err(io)? {
            true => Ok(()),
            false => Err(taken(path)),
        }
    }
}

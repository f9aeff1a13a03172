//! The copy that a conversion lays: one file, held by the descriptor that made it.
//!
//! Whoever may write the directory can give the copy's name to another file at any moment. So it is hashed, finished,
//! given away, laid and removed by its descriptor, or after a look whether the name is still its own. SQLite opens by name:
//! while a copy is being filled, what the shim opens under its name has to prove that it is this file before anything is
//! written, and its journal has no name at all (`vfs.rs`).
//!
//! Beside a copy lies its record, a symbolic link that leads nowhere: its text says which inode is a copy of which. A link is
//! made whole or not at all, and nobody reads through it by mistake. By the record the next conversion knows what a killed one
//! has left from somebody else's file of that name, which it never removes.

use std::ffi::{CStr, OsStr};
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{fchown, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::UNIX_EPOCH;

use pellucid::secret::fill_random;
use pellucid::{Error, Result, Subject};
use pellucid_files::paths::rename_new;
use pellucid_files::paths::sync_directory;

use crate::lower::{Lower, ReadEnd};

/// The copy of a conversion, removed on drop unless it is needed.
#[derive(Debug)]
pub struct CopyFile {
    file: Arc<File>,
    path: PathBuf,
    is_needed: bool,
}

impl CopyFile {
    /// Makes the copy of `database`, whose RESERVED lock is held, at `path`, with the mode of a secret.
    ///
    /// # Errors
    /// [`Error::Misuse`] if there is anything that no killed conversion of this database has left; [`Error::Io`].
    pub fn create(path: PathBuf, database: &Path) -> Result<Self> {
        clear(&path, database)?;
        let io = |error| Error::io(Subject::File(path.clone()), error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(UNRECORDED);
        let file = Arc::new(options.open(&path).map_err(io)?);
        let copy = Self { file, path: path.clone(), is_needed: false };
        copy.record(&path, database)?;
        copy.file.set_permissions(Permissions::from_mode(0o600)).map_err(io)?;
        Ok(copy)
    }

    /// Says under which name this is going to be the copy of `database`.
    fn record(&self, name: &Path, database: &Path) -> Result<()> {
        let io = |error| Error::io(Subject::File(record_path(name)), error);
        let text = Record::of(&self.file.metadata().map_err(io)?).of_database(database)?;
        match std::os::unix::fs::symlink(text, record_path(name)) {
            // Not every file system has links: then what a kill leaves has to be moved away by hand.
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map_err(io),
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
        let file = pellucid_files::regular::open_named(&path).map_err(io)?;
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

    /// Gives it the name of the copy of `database`, whose RESERVED lock is held.
    ///
    /// # Errors
    /// As [`CopyFile::create`]; [`Error::Misuse`] also if another file has taken one of the names.
    pub fn become_copy(&mut self, to: PathBuf, database: &Path) -> Result<()> {
        clear(&to, database)?;
        self.assert_named()?;
        self.record(&to, database)?;
        if let Err(error) = rename_new(&self.path, &to) {
            let _ = std::fs::remove_file(record_path(&to));
            return Err(Error::io(Subject::File(to), error));
        }
        self.path = to;
        let io = |error| Error::io(Subject::File(self.path.clone()), error);
        self.file.set_permissions(Permissions::from_mode(0o600)).map_err(io)?;
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
            true => self.file.set_permissions(Permissions::from_mode(0o600)).map_err(io),
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
        self.remove_record();
        sync_directory(&self.path)
    }

    fn remove_record(&self) {
        let Ok(found) = self.file.metadata() else { return };
        let record = record_path(&self.path);
        if read_record(&record).is_some_and(|text| Record::of(&found).begins(&text)) {
            let _ = std::fs::remove_file(record);
        }
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
            self.remove_record();
        }
    }
}

/// The mode of a copy that has no record yet. No other file has it, and such a copy is empty.
const UNRECORDED: u32 = 0o1600;
const WORDS: &str = "pellucid: inode";

/// What is said of a copy.
struct Record(String);

impl Record {
    /// With the time at which the inode was made, where the file system knows it: numbers are given again.
    fn of(copy: &Metadata) -> Self {
        Self(format!("{WORDS} {} is the copy of ", identity(copy)))
    }

    fn of_database(self, database: &Path) -> Result<String> {
        let found = std::fs::metadata(database)
            .map_err(|error| Error::io(Subject::File(database.to_owned()), error))?;
        Ok(format!("{}inode {}", self.0, identity(&found)))
    }

    fn begins(&self, text: &str) -> bool {
        text.starts_with(&self.0)
    }
}

fn identity(found: &Metadata) -> String {
    let born = found.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    format!("{} of {}", found.ino(), born.map_or(0, |at| at.as_nanos()))
}

fn record_path(copy: &Path) -> PathBuf {
    let mut name = copy.as_os_str().to_owned();
    name.push("-of");
    PathBuf::from(name)
}

fn read_record(path: &Path) -> Option<String> {
    std::fs::read_link(path).ok()?.into_os_string().into_string().ok()
}

/// Removes what a killed conversion of `database` has left under the name of its copy, and nothing else.
fn clear(copy: &Path, database: &Path) -> Result<()> {
    let record = record_path(copy);
    let io = |error| Error::io(Subject::File(copy.to_owned()), error);
    let found = match copy.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        found => Some(found.map_err(io)?),
    };
    let text = read_record(&record);
    if record.symlink_metadata().is_ok()
        && !text.as_ref().is_some_and(|text| text.starts_with(WORDS))
    {
        return Err(somebodys(&record));
    }
    if let Some(found) = found {
        let is_new = found.mode() & 0o7777 == UNRECORDED && found.len() == 0;
        let is_recorded = text == Some(Record::of(&found).of_database(database)?);
        if !found.is_file() || found.nlink() != 1 || !(is_new || is_recorded) {
            return Err(somebodys(copy));
        }
        std::fs::remove_file(copy).map_err(io)?;
    }
    match text {
        Some(_) => std::fs::remove_file(&record)
            .map_err(|error| Error::io(Subject::File(record.clone()), error)),
        None => Ok(()),
    }
}

fn somebodys(path: &Path) -> Error {
    Error::misuse(
        Subject::File(path.to_owned()),
        "it has the name that is needed, and no interrupted conversion of this database has left it: move it away, or \
         remove it if nobody needs it; nothing was changed",
    )
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
        let found = file.write_all_at(&written, end).map(|()| opened.read(&mut read, end));
        file.set_len(end).map_err(io)?;
        match found.map_err(io)? {
            Ok(ReadEnd::Full) if read == written => Ok(()),
            Ok(_) => Err(taken(path)),
            Err(_) => Err(io(std::io::Error::other("it cannot be read"))),
        }
    }
}

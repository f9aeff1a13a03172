//! The copy that a conversion lays: one file, held by the descriptor that made it.
//!
//! A process that may write the directory can give the copy's name to another file at any moment.
//! So the copy is hashed, finished, given to its owner, laid and removed by its descriptor, or
//! after a check that the name is still its own. SQLite opens by name: while a copy is being
//! filled, the file that the shim opens under its name has to prove that it is this copy before
//! anything is written. The copy's journal has no name at all (`vfs.rs`).
//!
//! Beside a copy lies its record, a symbolic link that leads nowhere. Its text says which inode is
//! a copy of which. A link is made completely or not at all, and no program reads through it by
//! mistake. By the record the next conversion distinguishes the copy of a killed conversion from
//! another file of that name, which it never removes.

use std::ffi::{CStr, OsStr};
use std::fs::{File, Metadata, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{fchown, FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::UNIX_EPOCH;

use pellucid::secret::fill_random;
use pellucid::{Error, Result, Subject};
use pellucid_files::way::Way;
use pellucid_host::folder::{name_of, Folder};

use crate::lower::{Lower, ReadEnd};

/// The copy of a conversion, removed on drop unless it is needed.
#[derive(Debug)]
pub struct CopyFile {
    file: Arc<File>,
    /// The folder of all its names.
    folder: Folder,
    path: PathBuf,
    is_needed: bool,
}

impl CopyFile {
    /// Makes the copy of `database` at `path`, with the mode of a secret. The caller holds the
    /// RESERVED lock of `database`.
    ///
    /// # Errors
    /// [`Error::Misuse`] if a file is there that no killed conversion of this database has left;
    /// [`Error::Io`].
    pub fn create(path: PathBuf, database: &Path) -> Result<Self> {
        let io = |error| Error::io(Subject::File(path.clone()), error);
        let folder = Folder::of(&path).map_err(io)?;
        clear(&folder, &path, database)?;
        let file = folder.create_with(&name_of(&path), UNRECORDED).map_err(io)?;
        let copy = Self { file: Arc::new(file), folder, path: path.clone(), is_needed: false };
        copy.record(&path, database)?;
        copy.file.set_permissions(Permissions::from_mode(0o600)).map_err(io)?;
        Ok(copy)
    }

    /// Writes the record that this file is the copy of `database` under `name`.
    fn record(&self, name: &Path, database: &Path) -> Result<()> {
        let io = |error| Error::io(Subject::File(record_path(name)), error);
        let text = Record::of(&self.file.metadata().map_err(io)?).of_database(database)?;
        match self.folder.symlink(&text, &name_of(&record_path(name))) {
            // Not every file system has links. There an administrator has to move away the copy
            // that a kill leaves.
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map_err(io),
        }
    }

    /// Makes the copy of a file that the caller made at `path`, in the folder `folder`.
    pub fn made(file: File, folder: Folder, path: PathBuf) -> Self {
        Self { file: Arc::new(file), folder, path, is_needed: false }
    }

    /// Opens the copy that an interrupted conversion of `database` left at `path`. `None` if no
    /// file is there.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it is something else: a link, no regular file, a file with other names,
    /// or one that belongs to another user than root, the database's owner and this process's user.
    /// The copy's content becomes the database's, so its owner has to be allowed to decide that.
    pub fn left(path: PathBuf, database: &Path) -> Result<Option<Self>> {
        let io = |error| Error::io(Subject::File(path.clone()), error);
        let foreign = |why: String| Err(Error::misuse(Subject::File(path.clone()), why));
        let folder = Folder::of(&path).map_err(io)?;
        match folder.look(&name_of(&path)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
            Ok(found) if !found.is_file() => {
                return foreign("a copy of an interrupted conversion is a regular file".to_owned())
            }
            Ok(_) => {}
        }
        let file = folder.open(&name_of(&path)).map_err(io)?;
        let found = file.metadata().map_err(io)?;
        if found.nlink() > 1 {
            return foreign("it has another name, as a copy of a conversion never has".to_owned());
        }
        let owner = metadata_of(database)?.uid();
        let trusted = [0, owner, rustix::process::geteuid().as_raw()];
        if !trusted.contains(&found.uid()) {
            return foreign(format!(
                "it belongs to user {}, not to the database's owner; nothing of it is used",
                found.uid()
            ));
        }
        Ok(Some(Self { file: Arc::new(file), folder, path, is_needed: true }))
    }

    /// The copy's descriptor.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The name that the copy was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the copy on drop: from here on only [`CopyFile::remove`] removes it.
    pub fn keep(&mut self) {
        self.is_needed = true;
    }

    /// Gives the copy the owner and group of the original, so that another user who opens the
    /// database can finish an interrupted laying.
    pub fn give_to_owner_of(&self, original: &Metadata) {
        // Only root can give a file away, and a file made by its owner has the right owner already.
        let _ = fchown(&*self.file, Some(original.uid()), Some(original.gid()));
    }

    /// Gives the file the owner and permissions of the original; where that cannot be, nobody more may read it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn permit_as(&self, original: &Metadata) -> Result<()> {
        let (user, group) = (original.uid(), original.gid());
        let mut mode = original.mode() & 0o777;
        // Only root can give a file away; a group can be given by those who are in it.
        let is_groups = fchown(&*self.file, Some(user), Some(group))
            .or_else(|_| fchown(&*self.file, None, Some(group)));
        if is_groups.is_err() {
            // The group is another one: it may do what everybody may.
            mode &= 0o707 | ((mode & 0o007) << 3);
        }
        let io = |error| Error::io(Subject::File(self.path.clone()), error);
        self.file.set_permissions(Permissions::from_mode(mode)).map_err(io)
    }

    /// Renames the file to the copy of `database`. The caller holds the RESERVED lock of
    /// `database`.
    ///
    /// # Errors
    /// As [`CopyFile::create`]; [`Error::Misuse`] also if another file has taken one of the names.
    pub fn become_copy(&mut self, to: PathBuf, database: &Path) -> Result<()> {
        clear(&self.folder, &to, database)?;
        self.assert_named()?;
        self.record(&to, database)?;
        if let Err(error) = self.folder.rename_new(&name_of(&self.path), &name_of(&to)) {
            let _ = self.folder.remove_name(&name_of(&record_path(&to)));
            return Err(Error::io(Subject::File(to), error));
        }
        self.path = to;
        let io = |error| Error::io(Subject::File(self.path.clone()), error);
        self.file.set_permissions(Permissions::from_mode(0o600)).map_err(io)?;
        self.assert_named()
    }

    /// Gives the copy the additional name `to`, which no file has yet.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Misuse`] if another file has taken its name.
    pub fn link(&self, to: &Path) -> Result<()> {
        let io = |error| Error::io(Subject::File(to.to_owned()), error);
        self.assert_named()?;
        let (from, name) = (name_of(&self.path), name_of(to));
        self.folder.link_file(&self.file, &from, &name).map_err(io)?;
        match same(self.folder.look(&name), self.file.metadata()) {
            true => self.file.set_permissions(Permissions::from_mode(0o600)).map_err(io),
            false => Err(taken(&self.path)),
        }
    }

    /// Gives the file the name `to` in its folder, which nothing has yet, in the place of its own.
    /// From here on it is no copy but a file of its own.
    ///
    /// # Errors
    /// [`Error::Io`], with which the file keeps its name; [`Error::Misuse`] if another file has taken
    /// one of the names.
    pub fn become_file(mut self, to: &Path) -> Result<()> {
        let io = |error| Error::io(Subject::File(to.to_owned()), error);
        self.is_needed = true;
        self.assert_named()?;
        self.folder.rename_new(&name_of(&self.path), &name_of(to)).map_err(io)?;
        self.path = to.to_owned();
        self.assert_named()?;
        self.sync_folder()
    }

    /// Checks that the copy's name still leads to this file.
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
        same(self.folder.look(&name_of(&self.path)), self.file.metadata())
    }

    /// Removes the copy, which is no longer needed. If another file has its name by now, that file
    /// stays.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove(mut self) -> Result<()> {
        self.is_needed = true;
        if !self.has_name() {
            return Ok(());
        }
        let io = |error| Error::io(Subject::File(self.path.clone()), error);
        self.folder.remove_name(&name_of(&self.path)).map_err(io)?;
        self.remove_record();
        self.sync_folder()
    }

    /// Removes the rollback journal that lies beside the database under the name `journal`, in the copy's folder, for a caller who
    /// holds the database exclusively: nothing plays it back any more.
    ///
    /// # Errors
    /// [`Error::Io`], which names the journal.
    pub fn remove_journal(&self, journal: &Path) -> Result<()> {
        match self.folder.remove_name(&name_of(journal)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::io(Subject::File(journal.to_owned()), error)),
            Ok(()) => self.sync_folder(),
        }
    }

    /// Forces the copy's names to disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync_folder(&self) -> Result<()> {
        self.folder.sync().map_err(|error| Error::io(Subject::File(self.path.clone()), error))
    }

    fn remove_record(&self) {
        let Ok(found) = self.file.metadata() else { return };
        let record = name_of(&record_path(&self.path));
        let text = self.folder.read_link(&record);
        if text.is_some_and(|text| Record::of(&found).begins(&text)) {
            let _ = self.folder.remove_name(&record);
        }
    }

    /// Lets SQLite fill the copy by its name for as long as the result lives. If `plain`, its pages
    /// are in clear.
    pub fn lend(&self, plain: bool) -> Lent {
        let (path, file) = (self.path.clone(), self.file.clone());
        lent().push(Loan { path: path.clone(), file, plain });
        Lent(path)
    }
}

impl Drop for CopyFile {
    fn drop(&mut self) {
        if !self.is_needed && self.has_name() {
            let _ = self.folder.remove_name(&name_of(&self.path));
            self.remove_record();
        }
    }
}

/// The mode of a copy that has no record yet. No other file has this mode, and such a copy is
/// empty.
const UNRECORDED: u32 = 0o1600;
const WORDS: &str = "pellucid: inode";

/// The text of a copy's record.
struct Record(String);

impl Record {
    /// Begins the text, with the time at which the inode was made if the file system knows it:
    /// inode numbers are used again.
    fn of(copy: &Metadata) -> Self {
        Self(format!("{WORDS} {} is the copy of ", identity(copy)))
    }

    fn of_database(self, database: &Path) -> Result<String> {
        let found = metadata_of(database)?;
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

/// What lies at a database's path, through no link of another user's.
fn metadata_of(database: &Path) -> Result<Metadata> {
    let io = |error| Error::io(Subject::File(database.to_owned()), error);
    let way = Way::of(database).map_err(io)?;
    way.look().map_err(io)
}

/// Removes the copy and the record that a killed conversion of `database` left, and nothing else.
fn clear(folder: &Folder, copy: &Path, database: &Path) -> Result<()> {
    let record = record_path(copy);
    let (name, record_name) = (name_of(copy), name_of(&record));
    let io = |error| Error::io(Subject::File(copy.to_owned()), error);
    let found = match folder.look(&name) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        found => Some(found.map_err(io)?),
    };
    let text = folder.read_link(&record_name);
    if folder.has(&record_name) && !text.as_ref().is_some_and(|text| text.starts_with(WORDS)) {
        return Err(somebodys(&record));
    }
    if let Some(found) = found {
        let is_new = found.mode() & 0o7777 == UNRECORDED && found.len() == 0;
        let is_recorded = text == Some(Record::of(&found).of_database(database)?);
        if !found.is_file() || found.nlink() != 1 || !(is_new || is_recorded) {
            return Err(somebodys(copy));
        }
        folder.remove_name(&name).map_err(io)?;
    }
    match text {
        Some(_) => folder
            .remove_name(&record_name)
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

/// A loan of a copy to SQLite; its drop ends the loan.
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

/// What a file name that SQLite opens means for a copy.
#[derive(Debug)]
pub enum Name {
    /// The name of a copy that is being filled.
    Copy(Opening),
    /// The name of a copy's journal or WAL. A copy needs neither, because an incomplete copy is
    /// thrown away.
    Log,
}

/// Looks up whether `name` belongs to a copy that is being filled.
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
    /// Whether the copy's pages are in clear.
    pub fn is_plain(&self) -> bool {
        self.0.plain
    }

    /// Proves that the file that SQLite opened is the copy: writes random bytes behind the copy's
    /// end by its own descriptor and reads them by the opened file.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it is another file. Nothing but those bytes was read from it.
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

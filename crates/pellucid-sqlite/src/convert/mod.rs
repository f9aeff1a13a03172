//! First encryption and decryption of a database in place, keeping the file's inode.
//!
//! A copy of the other kind is built beside the file while readers go on; then, under EXCLUSIVE, the
//! first sector is replaced (the only commit point) and the rest laid over the file. From then on any
//! opener can finish the work. Described in docs/format.md, "Laying".

pub mod connection;
pub(crate) mod copy;
pub mod decrypt;
pub mod encrypt;
pub mod holders;
pub mod laying;
pub(crate) mod lending;
pub(crate) mod original;
pub(crate) mod schema;
pub(crate) mod statement;
pub(crate) mod switch;

use std::path::PathBuf;
use std::time::Duration;

use pellucid::Error;

/// What both directions take.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long to wait for other connections to give way.
    pub timeout: Duration,
    /// Extensions to load first, for collations and functions the schema needs.
    pub load: Vec<PathBuf>,
    /// The application's connection, where it is that which asks.
    pub(crate) lender: Option<lending::Lender>,
    /// The database is to be in WAL mode afterwards, although it is not now.
    pub(crate) was_wal: bool,
}

impl Options {
    /// What a program takes that has no connection of its own.
    pub fn new(timeout: Duration, load: Vec<PathBuf>) -> Self {
        Self { timeout, load, lender: None, was_wal: false }
    }

    /// The timeout as SQLite takes it.
    fn timeout_ms(&self) -> std::ffi::c_int {
        self.timeout.as_millis().try_into().unwrap_or(std::ffi::c_int::MAX)
    }
}

/// Which part of the work is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Building the copy; readers go on.
    Copying,
    /// Laying it over the file; everybody waits.
    Laying,
}

/// Told now and then how far the work is, in bytes.
pub type Progress<'a> = dyn FnMut(Stage, u64, u64) + 'a;

/// What went wrong, and what state the file is in.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// An error of ours.
    #[error(transparent)]
    Typed(#[from] Error),
    /// SQLite refused; nothing was changed.
    #[error("`{file}`: {message} (SQLite code {code})")]
    Sqlite {
        /// Which file.
        file: String,
        /// SQLite's extended result code.
        code: i32,
        /// SQLite's message.
        message: String,
    },
    /// Other connections did not give way in time; nothing was changed.
    #[error("`{file}` is in use{}", holders::describe(holders))]
    InUse {
        /// Which file.
        file: String,
        /// Who holds locks on it.
        holders: Vec<holders::Holder>,
    },
    /// Another process scans it.
    #[error("`{file}`: a scan of it is running already")]
    Scanned {
        /// Which file.
        file: String,
    },
    /// The schema needs collations or functions of an application; nothing was changed.
    #[error("the schema of `{file}` needs what only the application has: {}", missing.join(", "))]
    Schema {
        /// Which file.
        file: String,
        /// What SQLite said about each object.
        missing: Vec<String>,
    },
    /// Not enough room; nothing was changed.
    #[error("`{file}`: {needed} bytes are needed beside it and {free} are free")]
    Space {
        /// Which file.
        file: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
}

/// The whole path of a database, of a copy that of the database it belongs to: what it is called in one directory means
/// nothing in another.
pub(crate) fn original_path(path: &std::path::Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let bytes = path.as_os_str().as_bytes();
    let original = bytes.strip_suffix(b"-pellucid").unwrap_or(bytes);
    let original = std::path::Path::new(std::ffi::OsStr::from_bytes(original));
    let whole = original.canonicalize().or_else(|_| std::path::absolute(original));
    whole.unwrap_or_else(|_| original.to_owned())
}

/// Why a database has no name of which [`belongs_beside`] is true.
pub const BELONGS_BESIDE: &str =
    "a file of this name would be taken for a part of another database: take another name";

/// Whether a file of this name would be taken for another database's: its journal, log, super-journal, or one of Pellucid's
/// own beside it.
pub fn belongs_beside(path: &std::path::Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    const ENDS: [&[u8]; 6] =
        [b"-journal", b"-wal", b"-shm", b"-pellucid", b"-pellucid-of", b".pellucid-new"];
    let name = path.file_name().unwrap_or_default().as_bytes();
    ENDS.iter().any(|end| name.ends_with(end)) || crate::super_journal::has_suffix(name)
}

/// A database's whole path, through symbolic links as SQLite goes through them: openers look for its side files there.
pub(crate) fn resolved(path: &std::path::Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(|error| Error::io(pellucid::Subject::File(path.to_owned()), error))
}

/// The file's own name, where `path` is a symbolic link: its side files lie beside that. As it was given where it is none.
pub(crate) fn own_name(path: &std::path::Path) -> PathBuf {
    let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let own = if is_link { path.canonicalize().ok() } else { None };
    own.unwrap_or_else(|| path.to_owned())
}

/// Refuses a database that has several names: who opens it by another one than this would look for the copy of an interrupted
/// conversion beside that, and for its journal (howtocorrupt.html, 2.5).
///
/// # Errors
/// [`Error::Misuse`].
pub(crate) fn assert_one_name(path: &std::path::Path) -> Result<(), Error> {
    use std::os::unix::fs::MetadataExt;
    let subject = || pellucid::Subject::File(path.to_owned());
    let names = std::fs::metadata(path).map_err(|error| Error::io(subject(), error))?.nlink();
    if names > 1 {
        return Err(Error::misuse(
            subject(),
            format!(
                "it has {names} names (hard links), and who opens it by another one could not finish what is interrupted: \
                 remove the others first, or make a copy; `find -samefile` finds them"
            ),
        ));
    }
    Ok(())
}

/// A database's whole path, for the event log.
pub(crate) fn full_name(path: &std::path::Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// The copy beside a database: its name with `-pellucid` behind.
pub fn copy_path(database: &std::path::Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-pellucid");
    PathBuf::from(name)
}

//! Names beside a database, and what they lead to.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};

use crate::open_at::open_at;
use pellucid::{Error, Result, Subject};
use rustix::fs::{renameat_with, Mode, OFlags, RenameFlags, CWD};
use rustix::io::Errno;

use crate::way::Way;

/// How the place of a database begins that lies over a lower VFS that was named: the VFS's name and the database's follow. No file of
/// this machine has such a path.
pub const OVER: &str = "/pellucid-over";

/// The VFS that a database lies over, if `path` is the place of one that is no file of this machine.
pub fn over_of(path: &Path) -> Option<&str> {
    path.strip_prefix(OVER).ok()?.components().next()?.as_os_str().to_str()
}

/// The whole path of a database, of a copy that of the database it belongs to: what it is called in one directory means
/// nothing in another.
pub fn original_path(path: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let bytes = path.as_os_str().as_bytes();
    let original = bytes.strip_suffix(b"-pellucid").unwrap_or(bytes);
    let original = Path::new(std::ffi::OsStr::from_bytes(original));
    let whole = original.canonicalize().or_else(|_| std::path::absolute(original));
    whole.unwrap_or_else(|_| original.to_owned())
}

/// Why a database has no name of which [`belongs_beside`] is true.
pub const BELONGS_BESIDE: &str =
    "a file of this name would be taken for a part of another database: take another name";

/// Whether a file of this name would be taken for another database's: its journal, log, super-journal, or one of Pellucid's
/// own beside it.
pub fn belongs_beside(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    const ENDS: [&[u8]; 6] =
        [b"-journal", b"-wal", b"-shm", b"-pellucid", b"-pellucid-of", b".pellucid-new"];
    let name = path.file_name().unwrap_or_default().as_bytes();
    is_kept_log(name) || ENDS.iter().any(|end| name.ends_with(end)) || is_super_journal(name)
}

/// Whether a name is that of the rest of a damaged log, kept beside its database.
fn is_kept_log(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let ends = ["-wal-lost-", "-wal-maybe-lost-", "-wal-accepted-"];
    let digits = ends.iter().find_map(|end| name.rsplit_once(end));
    digits.is_some_and(|(_, digits)| {
        digits == "new" || !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// A database's whole path, through symbolic links as far as [`Way::of`] follows them: openers look for its side files there.
///
/// # Errors
/// [`Error::Io`] if there is no file, or the way leads over another user's link.
pub fn resolved(path: &Path) -> Result<PathBuf> {
    let io = |error| Error::io(Subject::File(path.to_owned()), error);
    let way = Way::of(path).map_err(io)?;
    match way.is_there() {
        true => Ok(way.path().to_owned()),
        false => Err(io(Errno::NOENT.into())),
    }
}

/// What lies at a path, through symbolic links as far as [`Way::of`] follows them.
///
/// # Errors
/// The system's, and those of [`Way::of`].
pub fn look(path: &Path) -> std::io::Result<Metadata> {
    Way::of(path)?.look()
}

/// What has this name itself, which may be a symbolic link.
///
/// # Errors
/// The system's, and those of [`Way::to_name`].
pub fn look_at_name(path: &Path) -> std::io::Result<Metadata> {
    Way::to_name(path)?.look()
}

/// Whether anything lies at a path, as far as the way to it is gone.
pub fn is_there(path: &Path) -> bool {
    look(path).is_ok()
}

/// Whether a regular file lies at a path, as far as the way to it is gone.
pub fn is_file(path: &Path) -> bool {
    look(path).is_ok_and(|found| found.is_file())
}

/// The file's own name, where `path` is a symbolic link that is followed ([`Way::of`]): its side files lie beside that. As it
/// was given where it is none.
pub fn own_name(path: &Path) -> PathBuf {
    let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let own = if is_link { resolved(path).ok() } else { None };
    own.unwrap_or_else(|| path.to_owned())
}

/// Refuses a database that has several names: who opens it by another one than this would look for the copy of an interrupted
/// conversion beside that, and for its journal (howtocorrupt.html, 2.5).
///
/// # Errors
/// [`Error::Misuse`].
pub fn assert_one_name(path: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let subject = || Subject::File(path.to_owned());
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
pub fn full_name(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// The copy beside a database: its name with `-pellucid` behind.
pub fn copy_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-pellucid");
    PathBuf::from(name)
}

/// A file beside a database.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = own_name(path).into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// The directory `path` lies in.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The names in a directory, in order. Whatever has one of them is opened by its own way.
///
/// # Errors
/// The system's.
pub fn names_in(directory: &Path) -> std::io::Result<Vec<OsString>> {
    let names = std::fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name()));
    let mut names = names.collect::<std::io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// Syncs the directory `path` lies in.
///
/// # Errors
/// [`Error::Io`].
pub fn sync_directory(path: &Path) -> Result<()> {
    let sync = || {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let way = Way::to_name(path)?;
        File::from(open_at(way.directory(), ".", flags, Mode::empty())?).sync_all()
    };
    sync().map_err(|error| Error::io(Subject::File(directory_of(path).to_owned()), error))
}

/// Gives a file another name that nothing has yet.
pub fn rename_new(from: &Path, to: &Path) -> std::io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system can (renameat2(2), EINVAL). NFS cannot, but it can link.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        renamed => renamed.map_err(Into::into),
    }
}

/// Whether a name ends as those of super-journals do.
pub fn is_super_journal(name: &[u8]) -> bool {
    let Some((_, suffix)) = name.split_last_chunk::<12>() else { return false };
    let hexadecimal = |byte: &u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
    suffix.starts_with(b"-mj") && suffix[3..].iter().all(hexadecimal) && suffix[9] == b'9'
}

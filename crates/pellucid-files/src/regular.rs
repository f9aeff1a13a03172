//! Files opened by a name that somebody else may have given to something else: never waits for a FIFO, touches no device.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::open_at::open_at;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::way::{has_foreign_name, Way};

/// Opens the regular file `path` for reading, through symbolic links as far as [`Way::of`] follows them.
///
/// # Errors
/// Those of [`Way::of`]; [`io::ErrorKind::Other`] if it is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(OFlags::RDONLY, path, Way::of)
}

/// Opens what whoever starts a program names: a regular file, or a stream by the name of a descriptor of the program's own
/// (`/dev/stdin`, and what `<(command)` becomes), which nobody else has put there.
///
/// # Errors
/// As [`open`].
pub fn open_given(path: &Path) -> io::Result<File> {
    if is_descriptor(path) {
        return File::open(path);
    }
    open(path)
}

/// Opens the regular file `path` for reading and writing, through symbolic links.
///
/// # Errors
/// As [`open`].
pub fn open_to_write(path: &Path) -> io::Result<File> {
    open_with(OFlags::RDWR, path, Way::of)
}

/// Opens the regular file that has this name itself: a symbolic link is refused.
///
/// # Errors
/// As [`open`].
pub fn open_named(path: &Path) -> io::Result<File> {
    open_with(OFlags::RDONLY, path, Way::to_name)
}

/// Opens the regular file that has this name itself for reading and writing.
///
/// # Errors
/// As [`open`].
pub fn open_named_to_write(path: &Path) -> io::Result<File> {
    open_with(OFlags::RDWR, path, Way::to_name)
}

/// Opens the regular file that has a name in an open directory.
///
/// # Errors
/// As [`open_named`].
pub fn open_in(directory: &File, name: &OsStr, to_write: bool) -> io::Result<File> {
    open_as(if to_write { OFlags::RDWR } else { OFlags::RDONLY }, directory, name)
}

/// Opens for writing what whoever starts a program names: a descriptor of the program's own by its name, a terminal or
/// `/dev/null`, or a regular file, which is made or emptied.
///
/// # Errors
/// Those of [`Way::of`]; [`io::ErrorKind::Other`] if something else is there, or a file that another user may have put there.
pub fn create_given(path: &Path) -> io::Result<File> {
    if is_descriptor(path) {
        return File::create(path);
    }
    let way = Way::of(path)?;
    if !way.is_there() {
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        return Ok(open_at(way.directory(), way.name(), flags, mode)?.into());
    }
    if way.look()?.file_type().is_char_device() {
        return way.open(OFlags::WRONLY | OFlags::NOCTTY);
    }
    let file = open_as(OFlags::WRONLY, way.directory(), way.name())?;
    file.set_len(0)?;
    Ok(file)
}

fn is_descriptor(path: &Path) -> bool {
    ["/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/proc/self/fd"]
        .iter()
        .any(|own| path.starts_with(own))
}

fn open_with(access: OFlags, path: &Path, way: fn(&Path) -> io::Result<Way>) -> io::Result<File> {
    let way = way(path)?;
    open_as(access, way.directory(), way.name())
}

fn open_as(access: OFlags, directory: &File, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = open_at(directory, name, access | flags, Mode::empty());
    let file: File = opened
        .map_err(|error| match error {
            // A FIFO opened for writing that nobody reads, and a socket (open(2), ENXIO).
            Errno::NXIO => not_regular(),
            Errno::LOOP => io::Error::other("a symbolic link, which is not followed here"),
            _ => error.into(),
        })?
        .into();
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(not_regular());
    }
    if access != OFlags::RDONLY {
        if let Some(why) = has_foreign_name(directory, &found)? {
            return Err(io::Error::other(why));
        }
    }
    // It says nothing about a regular file; but a program that inherits nothing of it need not know of it.
    rustix::fs::fcntl_setfl(&file, rustix::fs::fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

fn not_regular() -> io::Error {
    io::Error::other("not a regular file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("file"), "bytes").unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        std::os::unix::fs::symlink("nothing", at("dangling")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for opened in [open, open_to_write, open_named, open_named_to_write] {
            assert!(opened(&at("file")).is_ok());
            for name in ["fifo", "socket", "dangling"] {
                assert!(opened(&at(name)).is_err(), "{name}");
            }
            assert!(opened(directory.path()).is_err());
            assert!(opened(Path::new("/dev/null")).is_err());
        }
        assert!(open(&at("link")).is_ok());
        assert!(open_given(&at("fifo")).is_err() && open_given(&at("link")).is_ok());
        let (reader, mut writer) = std::io::pipe().unwrap();
        io::Write::write_all(&mut writer, b"given").unwrap();
        drop(writer);
        let name = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        let mut given = String::new();
        io::Read::read_to_string(&mut open_given(Path::new(&name)).unwrap(), &mut given).unwrap();
        assert_eq!(given, "given");
        assert!(open_named(&at("link")).unwrap_err().to_string().contains("symbolic link"));
    }
}

//! Files opened by a name that somebody else may have given to something else: never waits for a FIFO, touches no device.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens the regular file `path` for reading, through symbolic links.
///
/// # Errors
/// The system's; [`io::ErrorKind::Other`] if it is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path, OFlags::empty())
}

/// Opens what whoever starts a program names: a regular file, or a stream by the name of a descriptor of the program's own
/// (`/dev/stdin`, and what `<(command)` becomes), which nobody else has put there.
///
/// # Errors
/// As [`open`].
pub fn open_given(path: &Path) -> io::Result<File> {
    let is_descriptor =
        ["/dev/fd", "/dev/stdin", "/proc/self/fd"].iter().any(|own| path.starts_with(own));
    if is_descriptor {
        return File::open(path);
    }
    open(path)
}

/// Opens the regular file `path` for reading and writing, through symbolic links.
///
/// # Errors
/// As [`open`].
pub fn open_to_write(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true).write(true), path, OFlags::empty())
}

/// Opens the regular file that has this name itself: a symbolic link is refused.
///
/// # Errors
/// As [`open`].
pub fn open_named(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path, OFlags::NOFOLLOW)
}

/// Opens the regular file that has this name itself for reading and writing.
///
/// # Errors
/// As [`open`].
pub fn open_named_to_write(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true).write(true), path, OFlags::NOFOLLOW)
}

fn open_with(options: &mut OpenOptions, path: &Path, more: OFlags) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | more;
    let file = options.custom_flags(flags.bits() as i32).open(path).map_err(|error| {
        match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            // A FIFO opened for writing that nobody reads, and a socket (open(2), ENXIO).
            Some(rustix::io::Errno::NXIO) => not_regular(),
            Some(rustix::io::Errno::LOOP) if more.contains(OFlags::NOFOLLOW) => {
                io::Error::other("a symbolic link, which is not followed here")
            }
            _ => error,
        }
    })?;
    if !file.metadata()?.is_file() {
        return Err(not_regular());
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

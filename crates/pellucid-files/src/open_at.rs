//! openat(2), begun again when a signal interrupts it, as the standard library's functions are.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{openat, statat, AtFlags, Mode, OFlags};
use rustix::io::{retry_on_intr, Result};
use rustix::path::Arg;

/// Opens `name` in `directory`.
///
/// # Errors
/// The system's, but for EINTR.
pub fn open_at(
    directory: impl AsFd,
    name: impl Arg + Copy,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd> {
    retry_on_intr(|| openat(directory.as_fd(), name, flags, mode))
}

/// Device and number of the file that `name` is in `directory`; of a symbolic link its own.
///
/// # Errors
/// The system's.
pub fn look_at(directory: impl AsFd, name: impl Arg) -> Result<(u64, u64)> {
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((found.st_dev, found.st_ino))
}

/// Opens `name` in `directory` to be read and, where this process may, written; says which. A symbolic link is not followed.
///
/// # Errors
/// The system's.
pub fn writable_or_not(
    directory: impl AsFd,
    name: impl Arg + Copy,
) -> std::io::Result<(File, bool)> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let open = |access| open_at(directory.as_fd(), name, access | flags, Mode::empty());
    match open(OFlags::RDWR) {
        Ok(file) => Ok((File::from(file), true)),
        Err(_) => Ok((File::from(open(OFlags::RDONLY)?), false)),
    }
}

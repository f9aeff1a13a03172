//! openat(2), begun again when a signal interrupts it, as the standard library's functions are.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{openat, Mode, OFlags};
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

//! Locks on one byte of a file that belong to the open file and not to the process
//! (fcntl_locking(2), open file description locks). Closing another descriptor does not release
//! them, and the kernel releases them when the process ends in any way.

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;

/// Takes the lock on byte `at` for `file`. False if another open file has it. On a file system
/// without such locks it always succeeds.
///
/// # Errors
/// The system's.
pub fn take(file: &File, at: i64) -> std::io::Result<bool> {
    set(file, libc::F_WRLCK, at)
}

/// Takes the lock on byte `at` for `file` alone, or with others that share it; what the open file had of it before becomes that.
/// False if another open file has it otherwise. Unlike [`take`] it fails on a file system without such locks.
///
/// # Errors
/// The system's.
pub fn hold(file: &File, at: i64, alone: bool) -> std::io::Result<bool> {
    match try_set(file, if alone { libc::F_WRLCK } else { libc::F_RDLCK }, at) {
        Ok(()) => Ok(true),
        Err(error)
            if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::PermissionDenied) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Releases the lock on byte `at`.
///
/// # Errors
/// The system's.
pub fn give_back(file: &File, at: i64) -> std::io::Result<bool> {
    set(file, libc::F_UNLCK, at)
}

fn set(file: &File, kind: libc::c_int, at: i64) -> std::io::Result<bool> {
    match try_set(file, kind, at) {
        Ok(()) => Ok(true),
        Err(error)
            if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::PermissionDenied) =>
        {
            Ok(false)
        }
        Err(error) if has_no_locks(&error) => Ok(true),
        Err(error) => Err(error),
    }
}

fn try_set(file: &File, kind: libc::c_int, at: i64) -> std::io::Result<()> {
    let mut range = range(kind, at);
    // SAFETY: the descriptor is open, and the range lives across the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut range) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Whether another open file has locked byte `at`. `None` if the system cannot say.
pub fn is_taken(file: &File, at: i64) -> Option<bool> {
    let mut range = range(libc::F_WRLCK, at);
    // SAFETY: the descriptor is open, and the range lives across the call.
    let asked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut range) };
    (asked == 0).then_some(libc::c_int::from(range.l_type) != libc::F_UNLCK)
}

fn has_no_locks(error: &std::io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINVAL | libc::ENOLCK | libc::ENOSYS | libc::EOPNOTSUPP | libc::EOVERFLOW)
    )
}

fn range(kind: libc::c_int, at: i64) -> libc::flock {
    libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: at,
        l_len: 1,
        // Open file description locks require a zero.
        l_pid: 0,
    }
}

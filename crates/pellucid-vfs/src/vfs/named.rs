//! Finds the lower VFS of a name that SQLite hands over: `pellucid_over=NAME` in a URI, or `PELLUCID_OVER=NAME`.
//!
//! A name that leads nowhere is an error: nothing falls back to the platform's VFS.

use std::ffi::{c_char, c_int, CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use pellucid_host::api::Api;
use pellucid_host::code::{note, report, Code};
use pellucid_host::ffi::{self, File, Vfs};
use pellucid_host::over::{find, is_any, of_shim, Over};

use super::{lower_vfs, shim_over};
use crate::lower::{Lower, ReadEnd};
use crate::registry;

const PARAMETER: &CStr = c"pellucid_over";
/// Zero bytes before each name that SQLite makes of a URI or a path (main.c, `sqlite3ParseUri`).
const MARK: [u8; 4] = [0; 4];

/// Why a call that comes out of a named VFS is refused.
const WITHIN: &str = "the VFS that was named lies over Pellucid's own: name the one below it";

static BY_DEFAULT: OnceLock<Vec<u8>> = OnceLock::new();

/// Names the lower VFS of what is opened without `pellucid_over=`, once in a process. Not in one that has another account's rights
/// than the caller's, whose environment this is.
pub fn by_default(name: &OsStr) {
    use rustix::process::{getegid, geteuid, getgid, getuid};
    if !name.is_empty() && getuid() == geteuid() && getgid() == getegid() {
        let _ = BY_DEFAULT.set(name.as_bytes().to_vec());
    }
}

/// The VFS that a main database is to be opened over. `None` is the platform's.
///
/// # Errors
/// A code, after a line in the log that says which name cannot be used.
///
/// # Safety
/// `name` is terminated; if `is_marked`, SQLite made it of a URI or a path, and its parameters follow.
unsafe fn of_name(
    shim: *mut Vfs,
    name: *const c_char,
    is_marked: bool,
) -> Result<Option<&'static Over>, c_int> {
    // SAFETY: by contract.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()));
    if Over::is_inside() {
        note(ffi::CANTOPEN, path, WITHIN);
        return Err(ffi::CANTOPEN);
    }
    if let Some(over) = below(shim, path)? {
        return Ok(Some(over));
    }
    let asked = Api::get().filter(|_| is_marked).and_then(|api| {
        // SAFETY: by contract; the value lives as long as the name, and is terminated.
        unsafe {
            let value = api.uri_parameter()(name, PARAMETER.as_ptr());
            (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes())
        }
    });
    let Some(asked) = asked.or_else(|| BY_DEFAULT.get().map(Vec::as_slice)) else {
        return Ok(None);
    };
    find(asked, lower_vfs(), shim_over).map_err(|error| {
        report(path, &error);
        ffi::CANTOPEN
    })
}

/// The VFS that a main database is opened over. `None` is the platform's.
///
/// # Errors
/// As [`of_name`].
///
/// # Safety
/// `name` is one of SQLite's filename objects.
pub unsafe fn of_main(shim: *mut Vfs, name: *const c_char) -> Result<Option<&'static Over>, c_int> {
    // SAFETY: by contract.
    unsafe { of_name(shim, name, true) }
}

/// The same for a name that SQLite resolves. One without SQLite's mark has no parameters. Only SQLite's own callers are sure to have
/// room for one: a program that calls `xFullPathname` itself names `pellucid-NAME` (docs/design/sqlite.md).
///
/// # Errors
/// As [`of_name`].
///
/// # Safety
/// `name` is terminated; unless the shim lies over a named VFS, four bytes before it can be read: SQLite's names have their mark there.
pub unsafe fn of_resolved(
    shim: *mut Vfs,
    name: *const c_char,
) -> Result<Option<&'static Over>, c_int> {
    // SAFETY: by contract.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()));
    // One that lies over a named VFS already has no use for the parameter.
    let is_marked = below(shim, path)?.is_none() && {
        // SAFETY: by contract.
        unsafe { name.cast::<[u8; 4]>().sub(1).read_unaligned() == MARK }
    };
    // SAFETY: by contract.
    unsafe { of_name(shim, name, is_marked) }
}

/// The VFS below a shim.
///
/// # Errors
/// A code, after a line in the log.
pub fn below(shim: *mut Vfs, path: &Path) -> Result<Option<&'static Over>, c_int> {
    // SAFETY: SQLite, or a VFS above, calls with a shim's structure.
    unsafe { of_shim(shim, lower_vfs()) }.map_err(|error| {
        report(path, &error);
        ffi::CANTOPEN
    })
}

/// Where a journal, a log, or a name that is looked for or removed lies.
#[derive(Debug, Clone, Copy)]
pub enum Beside {
    /// In a VFS: that of the database it belongs to, or the platform's.
    In(Option<&'static Over>),
    /// It belongs to no database of this process by its address, and by its name to one over this VFS.
    Perhaps(&'static Over),
}

/// Where the file of a name lies that belongs to a database.
///
/// # Errors
/// A code, after a line in the log: a call that comes back from the named VFS itself.
///
/// # Safety
/// `name` is terminated.
pub unsafe fn of_beside(shim: *mut Vfs, name: *const c_char) -> Result<Beside, c_int> {
    if !is_any() {
        return Ok(Beside::In(None));
    }
    // SAFETY: by contract.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()));
    if Over::is_inside() {
        note(ffi::CANTOPEN, path, WITHIN);
        return Err(ffi::CANTOPEN);
    }
    Ok(match below(shim, path)? {
        Some(over) => Beside::In(Some(over)),
        None => match registry::over_of(name) {
            registry::Lies::In(over) => Beside::In(over),
            registry::Lies::Perhaps(over) => Beside::Perhaps(over),
        },
    })
}

/// Refuses to have a log removed that a later version wrote, as the platform's are.
///
/// # Errors
/// A code, after a line in the log.
///
/// # Safety
/// `name` is SQLite's.
pub unsafe fn refuse_newer_log(over: &'static Over, name: *const c_char) -> Result<(), Code> {
    // SAFETY: by contract.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    let (lower_vfs, lower) = over.lower();
    // SAFETY: by contract.
    let is_there = bytes.ends_with(b"-wal") && unsafe { over.has(name) };
    let Some(open) = lower.open.filter(|_| is_there) else { return Ok(()) };
    let mut memory = over.memory();
    let file: *mut File = memory.as_mut_ptr().cast();
    let mut header = [0; 32];
    // SAFETY: `memory` has room for a file object of the lower VFS, which is closed before it goes.
    unsafe {
        (*file).methods = std::ptr::null();
        let inside = over.enter();
        let flags = ffi::OPEN_WAL | ffi::OPEN_READONLY;
        let code = open(lower_vfs, name, file, flags, std::ptr::null_mut());
        let read = match code {
            ffi::OK => Lower::new(file).read(&mut header, 0).map(Some),
            _ => Ok(None),
        };
        crate::file::discard(file);
        drop(inside);
        if !matches!(read?, Some(ReadEnd::Full)) {
            return Ok(());
        }
    }
    pellucid::wal::refuse_newer(&header).map_err(|error| report(&over.place(bytes), &error))
}

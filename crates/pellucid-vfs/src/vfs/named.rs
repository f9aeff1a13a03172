//! Finds the lower VFS of a name that SQLite hands over: `pellucid_over=NAME` in a URI, or `PELLUCID_OVER=NAME`.
//!
//! A name that leads nowhere is an error: nothing falls back to the platform's VFS.

use std::ffi::{c_char, c_int, CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use pellucid_host::api::Api;
use pellucid_host::code::{note, report};
use pellucid_host::ffi::{self, Vfs};
use pellucid_host::over::{find, is_any, of_shim, Over};

use super::{lower_vfs, shim_over};
use crate::registry;

const PARAMETER: &CStr = c"pellucid_over";
/// Zero bytes before each name that SQLite makes of a URI or a path (main.c, `sqlite3ParseUri`).
const MARK: [u8; 4] = [0; 4];

static BY_DEFAULT: OnceLock<Vec<u8>> = OnceLock::new();

/// Names the lower VFS of what is opened without `pellucid_over=`, once in a process.
pub fn by_default(name: &OsStr) {
    if !name.is_empty() {
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
        let why = "the VFS that was named lies over Pellucid's own: name the one below it";
        note(ffi::CANTOPEN, path, why);
        return Err(ffi::CANTOPEN);
    }
    if let Some(over) = of_shim(shim) {
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

/// The same for a name that SQLite resolves. One without SQLite's mark has no parameters that could be read.
///
/// # Errors
/// As [`of_name`].
///
/// # Safety
/// `name` is terminated, and four bytes before it can be read: SQLite's names have their mark there.
pub unsafe fn of_resolved(
    shim: *mut Vfs,
    name: *const c_char,
) -> Result<Option<&'static Over>, c_int> {
    // SAFETY: by contract.
    unsafe {
        let before = name.cast::<u8>().sub(MARK.len()).cast::<[u8; 4]>().read_unaligned();
        of_name(shim, name, before == MARK)
    }
}

/// The VFS of a journal, a log, or a name that is looked for or removed: that of the database it belongs to.
pub fn of_beside(shim: *mut Vfs, name: *const c_char) -> Option<&'static Over> {
    match is_any() {
        true => of_shim(shim).or_else(|| registry::over_of(name)),
        false => None,
    }
}

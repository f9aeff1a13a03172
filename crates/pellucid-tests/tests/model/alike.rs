//! The platform's VFS without SQLITE_IOCAP_SUBPAGE_READ, which the shim takes away.
//!
//! With it SQLite reads overflow pages past its page cache. A cache of five pages is then full one page later, so that a
//! transaction writes to the database a statement later, and who reads then waits or does not: a difference between any two
//! file systems of which one has it, and none of the shim's. With the same pages both sides go through the cache.

use std::ffi::{c_char, c_int};

use rusqlite::ffi;

use crate::replaced::Replaced;

/// As URIs name it.
pub const NAME: &str = "alike";
const SUBPAGE_READ: c_int = 0x8000;

static PLATFORM: Replaced = Replaced::new();

pub fn register() {
    PLATFORM.register(c"unix", c"alike", open);
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite's arguments go through.
    unsafe {
        PLATFORM.open((vfs, name, file), flags, out, |methods| {
            methods.xDeviceCharacteristics = Some(characteristics);
        })
    }
}

unsafe extern "C" fn characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    let Some(honest) = PLATFORM.honest() else { return 0 };
    // SAFETY: SQLite's argument goes through.
    unsafe { honest.xDeviceCharacteristics.unwrap()(file) & !SUBPAGE_READ }
}

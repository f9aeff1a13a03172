//! The platform's VFS without SQLITE_IOCAP_SUBPAGE_READ, which the shim takes away.
//!
//! With it SQLite reads overflow pages past its page cache. A cache of five pages is then full one page later, so that a
//! transaction writes to the database a statement later, and who reads then waits or does not: a difference between any two
//! file systems of which one has it, and none of the shim's. With the same pages both sides go through the cache.

use std::ffi::{c_char, c_int, CStr};
use std::sync::OnceLock;

use rusqlite::ffi;

/// As URIs name it.
pub const NAME: &str = "alike";
const NAME_C: &CStr = c"alike";
const PLATFORM: &CStr = c"unix";
const SUBPAGE_READ: c_int = 0x8000;

type Open = unsafe extern "C" fn(
    *mut ffi::sqlite3_vfs,
    *const c_char,
    *mut ffi::sqlite3_file,
    c_int,
    *mut c_int,
) -> c_int;

static OPEN: OnceLock<Open> = OnceLock::new();
static METHODS: OnceLock<(ffi::sqlite3_io_methods, ffi::sqlite3_io_methods)> = OnceLock::new();

pub fn register() {
    OPEN.get_or_init(|| {
        // SAFETY: a registered VFS is valid for ever, and so is the leaked copy of it.
        unsafe {
            let mut vfs = *ffi::sqlite3_vfs_find(PLATFORM.as_ptr());
            let platform = vfs.xOpen.unwrap();
            vfs.zName = NAME_C.as_ptr();
            vfs.pNext = std::ptr::null_mut();
            vfs.xOpen = Some(open);
            ffi::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 0);
            platform
        }
    });
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let Some(platform) = OPEN.get() else { return ffi::SQLITE_ERROR };
    // SAFETY: SQLite's arguments go through; a file that was opened has methods, the same for every database.
    unsafe {
        let code = platform(vfs, name, file, flags, out);
        if code == ffi::SQLITE_OK && flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
            let (_, alike) = METHODS.get_or_init(|| {
                let honest = *(*file).pMethods;
                let mut alike = honest;
                alike.xDeviceCharacteristics = Some(characteristics);
                (honest, alike)
            });
            (*file).pMethods = alike;
        }
        code
    }
}

unsafe extern "C" fn characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    let Some((honest, _)) = METHODS.get() else { return 0 };
    // SAFETY: SQLite's argument goes through.
    unsafe { honest.xDeviceCharacteristics.unwrap()(file) & !SUBPAGE_READ }
}

//! The few types, codes and table slots of SQLite's C interface that this library needs.

use std::ffi::{c_char, c_int, c_void, CString};

pub use pellucid_host::ffi::{Connection, Vfs};

pub const SQLITE_OK: c_int = 0;
pub const SQLITE_ERROR: c_int = 1;
pub const SQLITE_CANTOPEN: c_int = 14;
pub const SQLITE_OK_LOAD_PERMANENTLY: c_int = 256;

pub const SQLITE_OPEN_READWRITE: c_int = 0x02;
pub const SQLITE_OPEN_CREATE: c_int = 0x04;
pub const SQLITE_OPEN_MEMORY: c_int = 0x80;
/// Asks a connection for the VFS of one of its databases; answered by SQLite itself, never by a VFS.
pub const SQLITE_FCNTL_VFS_POINTER: c_int = 27;

/// `sqlite3_open` and `sqlite3_open16`, by the type of the name's characters.
pub type OpenFn<C> = unsafe extern "C" fn(*const C, *mut *mut Connection) -> c_int;
pub type OpenV2Fn =
    unsafe extern "C" fn(*const c_char, *mut *mut Connection, c_int, *const c_char) -> c_int;
pub type CloseFn = unsafe extern "C" fn(*mut Connection) -> c_int;
/// What `sqlite3_auto_extension` runs at each open; declared there as `void (*)(void)`.
pub type AutoFn = unsafe extern "C" fn(*mut Connection, *mut *mut c_char, *const c_void) -> c_int;
pub type AutoExtensionFn = unsafe extern "C" fn(AutoFn) -> c_int;
pub type FileControlFn =
    unsafe extern "C" fn(*mut Connection, *const c_char, c_int, *mut c_void) -> c_int;

/// The largest single allocation, for [`StatusFn`].
pub const SQLITE_STATUS_MALLOC_SIZE: c_int = 5;
pub type StatusFn = unsafe extern "C" fn(c_int, *mut c_int, *mut c_int, c_int) -> c_int;
pub type MallocFn = unsafe extern "C" fn(c_int) -> *mut c_void;
pub type FreeFn = unsafe extern "C" fn(*mut c_void);

/// `mprintf`'s place among the pointers of `sqlite3_api_routines`; the table only ever grows at its end.
const SLOT_MPRINTF: usize = 69;

/// Gives SQLite an error message that it may free.
///
/// # Safety
/// `api` is SQLite's table of functions; `error` is null or can take a pointer.
pub unsafe fn set_message(api: *const c_void, error: *mut *mut c_char, text: &str) {
    type Mprintf = unsafe extern "C" fn(*const c_char, ...) -> *mut c_char;
    let Ok(text) = CString::new(text) else { return };
    if error.is_null() {
        return;
    }
    // SAFETY: the slot is `mprintf` in every SQLite that has loadable extensions, and `text` is a C string.
    unsafe {
        if let Some(mprintf) = api.cast::<Option<Mprintf>>().add(SLOT_MPRINTF).read() {
            error.write(mprintf(c"%s".as_ptr(), text.as_ptr()));
        }
    }
}

//! The few types, codes and table slots of SQLite's C interface that this library needs.

use std::ffi::{c_char, c_int, c_void, CString};

pub use pellucid_host::ffi::{Connection, Vfs};

/// No error.
pub const SQLITE_OK: c_int = 0;
/// Any other error.
pub const SQLITE_ERROR: c_int = 1;
/// The file cannot be opened.
pub const SQLITE_CANTOPEN: c_int = 14;
/// The extension stays loaded when its connection closes.
pub const SQLITE_OK_LOAD_PERMANENTLY: c_int = 256;

/// Open for reading and writing.
pub const SQLITE_OPEN_READWRITE: c_int = 0x02;
/// Make the file if there is none.
pub const SQLITE_OPEN_CREATE: c_int = 0x04;
/// A database in memory.
pub const SQLITE_OPEN_MEMORY: c_int = 0x80;
/// Asks a connection for the VFS of one of its databases; answered by SQLite itself, never by a VFS.
pub const SQLITE_FCNTL_VFS_POINTER: c_int = 27;

/// `sqlite3_open` and `sqlite3_open16`, by the type of the name's characters.
pub type OpenFn<C> = unsafe extern "C" fn(*const C, *mut *mut Connection) -> c_int;
/// `sqlite3_open_v2`.
pub type OpenV2Fn =
    unsafe extern "C" fn(*const c_char, *mut *mut Connection, c_int, *const c_char) -> c_int;
/// `sqlite3_close` and `sqlite3_close_v2`.
pub type CloseFn = unsafe extern "C" fn(*mut Connection) -> c_int;
/// What `sqlite3_auto_extension` runs at each open; declared there as `void (*)(void)`.
pub type AutoFn = unsafe extern "C" fn(*mut Connection, *mut *mut c_char, *const c_void) -> c_int;
/// `sqlite3_auto_extension`.
pub type AutoExtensionFn = unsafe extern "C" fn(AutoFn) -> c_int;
/// `sqlite3_file_control`.
pub type FileControlFn =
    unsafe extern "C" fn(*mut Connection, *const c_char, c_int, *mut c_void) -> c_int;

/// The largest single allocation, for [`StatusFn`].
pub const SQLITE_STATUS_MALLOC_SIZE: c_int = 5;
/// `sqlite3_status`.
pub type StatusFn = unsafe extern "C" fn(c_int, *mut c_int, *mut c_int, c_int) -> c_int;
/// `sqlite3_malloc`.
pub type MallocFn = unsafe extern "C" fn(c_int) -> *mut c_void;
/// `sqlite3_free`.
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

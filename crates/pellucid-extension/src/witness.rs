//! The witness: tells `pellucid run` that a connection of this process, or of a child, uses the shim.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::api::{
    AutoExtensionFn, Connection, FileControlFn, Vfs, SQLITE_FCNTL_VFS_POINTER, SQLITE_OK,
};
use crate::guarded;
use crate::library::Library;
use crate::mode::settings;

/// `sqlite3_file_control` of the library that is listened to.
static FILE_CONTROL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static DONE: AtomicBool = AtomicBool::new(false);

/// Has every open of `library` looked at from now on, if a witness is asked for and has not spoken yet.
pub fn listen(library: &Library) -> Result<(), &'static str> {
    if settings().witness.is_none() || DONE.load(Ordering::Relaxed) {
        return Ok(());
    }
    const MISSING: &str = "the SQLite library lacks a function";
    // SAFETY: the types are those of sqlite3.h; the second is kept as an address only.
    let (auto, control) = unsafe {
        (
            library.symbol::<AutoExtensionFn>(c"sqlite3_auto_extension").ok_or(MISSING)?,
            library.symbol::<*mut c_void>(c"sqlite3_file_control").ok_or(MISSING)?,
        )
    };
    FILE_CONTROL.store(control, Ordering::Release);
    // SAFETY: an automatic extension of the type SQLite calls; adding it twice does nothing.
    match unsafe { auto(opened) } {
        SQLITE_OK => Ok(()),
        _ => Err("SQLite takes no automatic extension"),
    }
}

/// Runs at the end of each open; never makes it fail.
unsafe extern "C" fn opened(
    connection: *mut Connection,
    _error: *mut *mut c_char,
    _api: *const c_void,
) -> c_int {
    guarded((), || {
        // SAFETY: SQLite calls with the connection it is opening.
        if !DONE.load(Ordering::Relaxed) && unsafe { uses_the_shim(connection) } {
            speak();
        }
    });
    SQLITE_OK
}

/// Whether the main database was opened by the VFS `pellucid`.
///
/// # Safety
/// `connection` is a live connection.
unsafe fn uses_the_shim(connection: *mut Connection) -> bool {
    let control = FILE_CONTROL.load(Ordering::Acquire);
    if control.is_null() {
        return false;
    }
    // SAFETY: `listen` stored a `sqlite3_file_control`.
    let control = unsafe { std::mem::transmute::<*mut c_void, FileControlFn>(control) };
    let mut vfs: *mut Vfs = null_mut();
    let out = (&raw mut vfs).cast();
    // SAFETY: the connection is live, and this file control writes one pointer to a VFS.
    unsafe {
        control(connection, c"main".as_ptr(), SQLITE_FCNTL_VFS_POINTER, out) == SQLITE_OK
            && !vfs.is_null()
            && !(*vfs).name.is_null()
            && CStr::from_ptr((*vfs).name) == pellucid_sqlite::NAME
    }
}

/// Adds one byte to the witness's file; the file is `run`'s, so it is never made here.
fn speak() {
    let Some(path) = &settings().witness else { return };
    let flags =
        libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NOCTTY;
    // SAFETY: a C string; the descriptor is ours and closed here; one byte of a live buffer is written.
    unsafe {
        let file = libc::open(path.as_ptr(), flags);
        if file < 0 {
            return;
        }
        if libc::write(file, b"+".as_ptr().cast(), 1) == 1 {
            DONE.store(true, Ordering::Relaxed);
        }
        libc::close(file);
    }
}

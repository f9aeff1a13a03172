//! The witness: tells `pellucid run` that a connection of this process, or of a child, uses the shim (`+`), or at the end
//! of a process that it had SQLite and made no connection (`-`), or made one that does not use the shim (`!`).

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::api::{
    AutoExtensionFn, Connection, FileControlFn, FreeFn, MallocFn, StatusFn, Vfs,
    SQLITE_FCNTL_VFS_POINTER, SQLITE_OK, SQLITE_STATUS_MALLOC_SIZE,
};
use crate::guarded;
use crate::library::{self, Library};
use crate::mode::{settings, Mode};

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
            DONE.store(speak(b"+"), Ordering::Relaxed);
        }
    });
    SQLITE_OK
}

/// Runs when the process ends by `exit`. One that is killed says nothing, and then nothing is confirmed.
#[used]
#[link_section = ".fini_array"]
static DESTRUCTOR: extern "C" fn() = {
    extern "C" fn destruct() {
        guarded((), || {
            let settings = settings();
            let asked = settings.witness.is_some() && settings.mode != Mode::Off;
            if !asked || DONE.load(Ordering::Relaxed) {
                return;
            }
            let libraries = library::all();
            if !libraries.is_empty() {
                let unused = libraries.iter().all(|library| never_opened(library));
                speak(if unused { b"-" } else { b"!" });
            }
        });
    }
    destruct
};

/// Whether no connection was ever made with `library`: none is made without an allocation of more than that.
fn never_opened(library: &Library) -> bool {
    const LARGEST_BYTES: c_int = 256;
    // SAFETY: the types are those of sqlite3.h.
    let functions = unsafe {
        (
            library.symbol::<StatusFn>(c"sqlite3_status"),
            library.symbol::<MallocFn>(c"sqlite3_malloc"),
            library.symbol::<FreeFn>(c"sqlite3_free"),
        )
    };
    let (Some(status), Some(malloc), Some(free)) = functions else { return false };
    let largest = || {
        let (mut now, mut most) = (0, 0);
        // SAFETY: writes two numbers to live places.
        match unsafe { status(SQLITE_STATUS_MALLOC_SIZE, &mut now, &mut most, 0) } {
            SQLITE_OK => most,
            _ => c_int::MAX,
        }
    };
    if largest() > LARGEST_BYTES {
        return false;
    }
    // A program may have switched these statistics off: they mean something only if they see this.
    // SAFETY: what is allocated is given back at once; null is allowed.
    unsafe { free(malloc(LARGEST_BYTES + 1)) };
    largest() > LARGEST_BYTES
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
            && CStr::from_ptr((*vfs).name) == pellucid_vfs::NAME
    }
}

/// Adds one byte to the witness's file; the file is `run`'s, so it is never made here. Whether it was heard.
fn speak(word: &[u8; 1]) -> bool {
    let Some(path) = &settings().witness else { return false };
    let flags =
        libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NOCTTY;
    // SAFETY: a C string; the descriptor is ours and closed here; one byte of a live buffer is written.
    unsafe {
        let file = libc::open(path.as_ptr(), flags);
        if file < 0 {
            return false;
        }
        let heard = libc::write(file, word.as_ptr().cast(), word.len()) == 1;
        libc::close(file);
        heard
    }
}

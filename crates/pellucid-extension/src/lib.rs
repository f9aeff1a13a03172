//! `libpellucid.so`: the ways into a process that has its own SQLite.
//!
//! Loaded as an extension (`.load`, `load_extension`), it registers the VFS `pellucid` and makes it the default
//! for what is opened afterwards. Preloaded by `pellucid run`, it interposes `sqlite3_open*` and does the same
//! before the first open (see [`preload`]). Preloaded or loaded without `PELLUCID_PRELOAD`, the interposed
//! functions only pass calls on.
//!
//! It links no SQLite and imports no `sqlite3_*` symbol: everything comes from the table that the host's SQLite
//! hands over. Its exports are the four functions below and nothing else.
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

mod api;
mod library;
mod mode;
mod preload;
mod registration;
mod witness;

use std::ffi::{c_char, c_int, c_void, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};

use pellucid_engine::functions::FUNCTIONS;
use pellucid_engine::views::VIEWS;
use pellucid_host::function::define;

use api::{
    Connection, OpenFn, OpenV2Fn, SQLITE_CANTOPEN, SQLITE_ERROR, SQLITE_OK,
    SQLITE_OK_LOAD_PERMANENTLY,
};

/// Keys lie in memory that core dumps do not get, whatever the application does with its own.
#[global_allocator]
static MEMORY: pellucid_vfs::memory::Guarded = pellucid_vfs::memory::Guarded;

/// The entry point that SQLite derives from the file name `libpellucid.so`.
///
/// Registers again after each `sqlite3_shutdown()`, as SQLite asks of an entry point.
///
/// # Safety
/// Called by SQLite: `error` is null or takes one message, `api` is SQLite's table of functions.
#[no_mangle]
pub unsafe extern "C" fn sqlite3_pellucid_init(
    connection: *mut Connection,
    error: *mut *mut c_char,
    api: *const c_void,
) -> c_int {
    guarded(SQLITE_ERROR, || {
        if api.is_null() {
            return SQLITE_ERROR;
        }
        // SAFETY: `api` is not null, so it is the table SQLite hands to its entry points.
        match unsafe { registration::register(api) } {
            // SAFETY: the connection is the one that loads the extension.
            Ok(()) => match unsafe { define(connection, &FUNCTIONS, &VIEWS) } {
                SQLITE_OK => {
                    // SAFETY: the same connection.
                    unsafe { pellucid_vfs::reserve_in_memory(connection) };
                    SQLITE_OK_LOAD_PERMANENTLY
                }
                code => code,
            },
            Err(why) => {
                // SAFETY: `error` and `api` are SQLite's, as above.
                unsafe { api::set_message(api, error, why) };
                SQLITE_ERROR
            }
        }
    })
}

/// Interposed `sqlite3_open`.
///
/// # Safety
/// As SQLite's own.
#[no_mangle]
pub unsafe extern "C" fn sqlite3_open(name: *const c_char, out: *mut *mut Connection) -> c_int {
    // SAFETY: the type is that of sqlite3.h, and the caller keeps SQLite's contract.
    unsafe {
        match real::<OpenFn<c_char>>(c"sqlite3_open") {
            Ok(open) => open(name, out),
            Err(code) => nothing_opened(out, code),
        }
    }
}

/// Interposed `sqlite3_open16`.
///
/// # Safety
/// As SQLite's own.
#[no_mangle]
pub unsafe extern "C" fn sqlite3_open16(name: *const c_void, out: *mut *mut Connection) -> c_int {
    // SAFETY: the type is that of sqlite3.h, and the caller keeps SQLite's contract.
    unsafe {
        match real::<OpenFn<c_void>>(c"sqlite3_open16") {
            Ok(open) => open(name, out),
            Err(code) => nothing_opened(out, code),
        }
    }
}

/// Interposed `sqlite3_open_v2`.
///
/// # Safety
/// As SQLite's own.
#[no_mangle]
pub unsafe extern "C" fn sqlite3_open_v2(
    name: *const c_char,
    out: *mut *mut Connection,
    flags: c_int,
    vfs: *const c_char,
) -> c_int {
    // SAFETY: the type is that of sqlite3.h, and the caller keeps SQLite's contract.
    unsafe {
        match real::<OpenV2Fn>(c"sqlite3_open_v2") {
            Ok(open) => open(name, out, flags, vfs),
            Err(code) => nothing_opened(out, code),
        }
    }
}

/// SQLite's own function `name`, once the shim is in place where it has to be.
///
/// It is called outside the panic guard, so that nothing of ours stands between the program and SQLite.
///
/// # Safety
/// `F` is an `extern "C"` function pointer type, and the right one for `name`.
unsafe fn real<F: Copy>(name: &CStr) -> Result<F, c_int> {
    guarded(Err(SQLITE_CANTOPEN), || {
        let library = preload::prepare()?;
        // SAFETY: the caller vouches for the type.
        unsafe { library.symbol(name) }.ok_or(SQLITE_CANTOPEN)
    })
}

/// What SQLite leaves behind when it cannot even make a connection: null and an error code.
///
/// # Safety
/// `out` is null or can take a pointer.
unsafe fn nothing_opened(out: *mut *mut Connection, code: c_int) -> c_int {
    if !out.is_null() {
        // SAFETY: the caller says that `out` can take a pointer.
        unsafe { out.write(std::ptr::null_mut()) };
    }
    code
}

/// Runs `work`; a panic becomes `fallback` and never reaches C.
fn guarded<T>(fallback: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(fallback)
}

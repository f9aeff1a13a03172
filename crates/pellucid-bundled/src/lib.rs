//! Registers the VFS in a program that carries its own SQLite, as `pellucid` does.
//!
//! A crate of its own because of linkage: `libpellucid.so` must never link an SQLite, and Cargo
//! unifies the features of a workspace.
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

use std::ffi::{c_char, c_int};
use std::path::Path;

use rusqlite::ffi;

unsafe extern "C" fn entry(
    db: *mut ffi::sqlite3,
    _message: *mut *mut c_char,
    api: *const ffi::sqlite3_api_routines,
) -> c_int {
    // SAFETY: SQLite calls an automatic extension with its API table, and the connection that is being opened.
    unsafe {
        match pellucid_vfs::register(api.cast(), false) {
            ffi::SQLITE_OK => pellucid_vfs::mark::define_on(db.cast()),
            code => code,
        }
    }
}

/// The version of the bundled SQLite, as `3.40.1`.
pub fn version() -> &'static str {
    rusqlite::version()
}

/// Registers the VFS `pellucid` in the bundled SQLite; not as default.
///
/// # Errors
/// SQLite's error if the automatic extension could not run.
pub fn register() -> rusqlite::Result<()> {
    // SAFETY: `entry` is an extension's entry point (auto_extension.html) and lives for ever.
    let code = unsafe { ffi::sqlite3_auto_extension(Some(entry)) };
    if code != ffi::SQLITE_OK {
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
    }
    rusqlite::Connection::open_in_memory().map(|_| ())
}

/// Loads an extension into one connection. Statements still load none. Whether its file is to be trusted is the caller's to know.
///
/// # Errors
/// SQLite's, saying why it cannot be loaded.
pub fn load(connection: &rusqlite::Connection, extension: &Path) -> rusqlite::Result<()> {
    // SAFETY: no statement runs while loading is enabled, which ends with the guard.
    let _enabled = unsafe { rusqlite::LoadExtensionGuard::new(connection)? };
    // SAFETY: the caller names the library, whose code the process trusts as its own.
    unsafe { connection.load_extension(extension, None::<&str>) }
}

/// Makes a function known that asks the connection it is called on, within the statement that calls it.
///
/// It may read; SQLite runs statements within statements of one connection. It must neither close the connection nor reset the
/// statement that calls it (<https://sqlite.org/c3ref/create_function.html>), for which a borrowed connection has no means.
///
/// # Errors
/// SQLite's, if it has no memory for it.
pub fn create_nested_function<F, T>(
    connection: &rusqlite::Connection,
    name: &str,
    function: F,
) -> rusqlite::Result<()>
where
    F: Fn(&rusqlite::functions::Context<'_>, &rusqlite::Connection) -> rusqlite::Result<T>
        + Send
        + 'static,
    T: rusqlite::functions::SqlFnOutput,
{
    use rusqlite::functions::FunctionFlags;
    let function = std::panic::AssertUnwindSafe(function);
    connection.create_scalar_function(name, -1, FunctionFlags::SQLITE_UTF8, move |context| {
        // SAFETY: the handle is that of the connection whose statement is at work, on this thread and until this call ends;
        // what is borrowed here does not outlive it, and does not close it.
        let nested = unsafe { context.get_connection()? };
        function(context, &nested)
    })
}

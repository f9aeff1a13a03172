//! Loads `libpellucid.so` into the SQLite that is linked into this process.
//!
//! The only unsafe code of the lab. The extension registers the VFS `pellucid` and stays loaded
//! after the connection is gone (SQLITE_OK_LOAD_PERMANENTLY, sqlite.org/loadext.html, "Persistent
//! Loadable Extensions"), so databases that are opened later can name it.
#![allow(unsafe_code)]

use std::path::Path;

use rusqlite::{Connection, LoadExtensionGuard};

use crate::error::{Error, Result};

/// Loads the extension at `path` and makes sure that the VFS `pellucid` is there.
///
/// # Errors
/// [`Error::Sqlite`] if the library cannot be loaded or registers no such VFS.
pub fn load(path: &Path) -> Result<()> {
    let what = || format!("extension `{}`", path.display());
    let host = Connection::open_in_memory().map_err(Error::sqlite(what()))?;
    // SAFETY: no SQL runs on `host` while loading is enabled (rusqlite's clause for the guard),
    // and the library is the artefact under test, named by the person who runs the lab, who
    // trusts it with this process (rusqlite's clause for `load_extension`).
    unsafe {
        LoadExtensionGuard::new(&host).and_then(|_guard| host.load_extension(path, None::<&str>))
    }
    .map_err(Error::sqlite(what()))?;
    Connection::open_with_flags(
        "file:lab?vfs=pellucid&mode=memory",
        rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE | rusqlite::OpenFlags::SQLITE_OPEN_URI,
    )
    .map_err(Error::sqlite(format!("{} registers no VFS `pellucid`", what())))?;
    Ok(())
}

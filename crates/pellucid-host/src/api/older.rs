//! Schema names of a connection's databases in SQLite 3.37 and 3.38, which have no `sqlite3_db_name`.
//!
//! Without them the reserved bytes of a new attached database could not be set. Those releases are
//! finished, so the beginning of their `struct sqlite3` does not change (sqliteInt.h; no
//! compile-time option changes it). It is believed only if its mutex is the one that
//! `sqlite3_db_mutex` returns.

use std::ffi::{c_char, c_int, c_void, CStr, CString};

use super::Api;
use crate::ffi::Connection;

/// The most databases that `SQLITE_LIMIT_ATTACHED` allows, with main and temp.
const MOST_DATABASES: c_int = 127;

/// The beginning of `struct sqlite3`.
#[repr(C)]
struct Head {
    vfs: *const c_void,
    statements: *const c_void,
    collation: *const c_void,
    mutex: *const c_void,
    databases: *const Database,
    count: c_int,
}

/// `struct Db`.
#[repr(C)]
struct Database {
    name: *const c_char,
    btree: *const c_void,
    levels: [u8; 2],
    schema: *const c_void,
}

/// Returns the schema name of the n-th database. `None` past the end.
///
/// # Safety
/// `db` is an open connection of SQLite 3.37 or 3.38 whose mutex the caller holds.
pub(super) unsafe fn db_name(api: Api, db: *mut Connection, n: c_int) -> Option<CString> {
    // SAFETY: by contract the connection begins like this, and nobody changes it while its mutex is held; the array
    // has `count` elements, whose names are null or terminated.
    unsafe {
        let head = &*db.cast::<Head>();
        let known = head.mutex == api.db_mutex()(db).cast_const();
        if !known || !(1..=MOST_DATABASES).contains(&head.count) || !(0..head.count).contains(&n) {
            return None;
        }
        let name = (*head.databases.add(n as usize)).name;
        (!name.is_null()).then(|| CStr::from_ptr(name).to_owned())
    }
}

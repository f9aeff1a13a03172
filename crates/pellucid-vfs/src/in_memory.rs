//! Room for tails in databases in memory.
//!
//! Programs fill a database in memory and save it by SQLite's backup interface, which copies page by page: the shell's `.save`,
//! Python's `Connection.backup`. Into a sealed file that works only if the pages have the reserved bytes already, and SQLite
//! gives them to a database only while it is empty. So each connection to a database in memory, or to a temporary one without
//! a name, gets them when it is opened.

use std::ffi::{c_char, c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};

use pellucid_host::api::Api;
use pellucid_host::ffi;
use pellucid_host::ffi::Connection;

/// Lets SQLite reserve the bytes at each open from now on. Asked again, SQLite goes on with the first time.
pub fn reserve_from_now_on(api: Api) {
    // SAFETY: the function has the type that SQLite calls, and lives for ever. Where SQLite has no memory for it, a copy into
    // a sealed file is refused as before.
    unsafe { api.auto_extension()(opened) };
}

unsafe extern "C" fn opened(
    connection: *mut Connection,
    _message: *mut *mut c_char,
    _table: *const c_void,
) -> c_int {
    // SAFETY: SQLite hands over the connection that it has just opened.
    let _ = catch_unwind(AssertUnwindSafe(|| unsafe { reserve(connection) }));
    ffi::OK
}

/// Reserves the room for tails in the main database of a connection, if that is in memory and empty.
///
/// # Safety
/// `connection` is an open connection that no other thread closes meanwhile.
pub unsafe fn reserve(connection: *mut Connection) {
    let Some(api) = Api::get() else { return };
    let mut bytes = pellucid::unit::TAIL_BYTES as c_int;
    // SAFETY: by contract; the name of a database in memory is empty or null, any other ends with a zero byte. SQLite leaves
    // a database alone whose pages have their size already.
    unsafe {
        let name = api.db_filename()(connection, c"main".as_ptr());
        if name.is_null() || *name == 0 {
            let argument = std::ptr::addr_of_mut!(bytes).cast();
            api.file_control()(connection, c"main".as_ptr(), ffi::FCNTL_RESERVE_BYTES, argument);
        }
    }
}

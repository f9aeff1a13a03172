//! libpellucid.so.
use std::ffi::{c_char, c_int, c_void};
/// # Safety
/// Called by SQLite.
#[no_mangle]
pub unsafe extern "C" fn sqlite3_pellucid_init(
    _db: *mut c_void,
    _err: *mut *mut c_char,
    api: *const c_void,
) -> c_int {
    // SAFETY: SQLite's table.
    match unsafe { pellucid_sqlite::register(api, true) } {
        0 => 256,
        c => c,
    }
}

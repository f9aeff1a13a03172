//! Registers the shim, once for all: with one SQLite in each process.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::api::SQLITE_OK;

/// The table of the SQLite that the shim works with; null before.
static TABLE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Registers the VFS and makes it the default; any number of times with one SQLite.
///
/// The shim has one table of functions and one VFS below it: two SQLites that shared it would hand each other's
/// structures about. So a second one is refused.
///
/// # Errors
/// A line for the user.
///
/// # Safety
/// `table` is the table that SQLite handed to an extension.
pub unsafe fn register(table: *const c_void) -> Result<(), &'static str> {
    pellucid_sqlite::memory::guard();
    let table = table.cast_mut();
    let before = TABLE.compare_exchange(null_mut(), table, Ordering::AcqRel, Ordering::Acquire);
    if before.is_err_and(|other| other != table) {
        return Err("this process has two SQLites, and the shim already works with the other one");
    }
    // SAFETY: the caller says that it is SQLite's table.
    if unsafe { pellucid_sqlite::register(table, true) } == SQLITE_OK {
        return Ok(());
    }
    if before.is_ok() {
        TABLE.store(null_mut(), Ordering::Release);
    }
    Err("the shim could not be registered; it needs SQLite 3.37 or later")
}

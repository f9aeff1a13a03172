//! Registers the shim, once for all: with one SQLite in each process.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

use crate::api::SQLITE_OK;
use crate::mode::settings;

/// The address of the table of the SQLite that the shim works with. Held while the shim is registered, so that a thread
/// that fails takes back nothing of one that did not.
static TABLE: Mutex<Option<usize>> = Mutex::new(None);

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
    if !dynamically_linked() {
        return Err("this program is statically linked: a library loaded into it gets a second C library that was never started; use a dynamically linked build");
    }
    pellucid_vfs::memory::guard();
    pellucid_vfs::over_by_default(&settings().over);
    let mut registered = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    if registered.is_some_and(|other| other != table.addr()) {
        return Err("this process has two SQLites, and the shim already works with the other one");
    }
    // SAFETY: the caller says that it is SQLite's table.
    if unsafe { pellucid_vfs::register(table, true) } == SQLITE_OK {
        *registered = Some(table.addr());
        return Ok(());
    }
    Err("the shim could not be registered; it needs SQLite 3.37 or later")
}

/// Whether this process was started by the dynamic linker that this library belongs to.
///
/// A static program that loads libraries has a linker of its own inside. The library's linker and C library come
/// along as mere files: nobody prepares them for threads, and the first use of one ends the process. Such a linker
/// knows of no loaded objects.
fn dynamically_linked() -> bool {
    /// The beginning of `struct r_debug` of glibc's `<link.h>`.
    #[repr(C)]
    struct Debug {
        version: c_int,
        objects: *const c_void,
    }
    extern "C" {
        static _r_debug: Debug;
    }
    // SAFETY: the dynamic linker fills it in before the program starts; here only whether it did is read.
    let debug = unsafe { (&raw const _r_debug).read_volatile() };
    debug.version != 0 && !debug.objects.is_null()
}

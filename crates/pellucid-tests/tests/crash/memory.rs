//! SQLite's allocator, counted, and failing where a test wants it.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use rusqlite::ffi;

struct Original(ffi::sqlite3_mem_methods);

// SAFETY: a table of functions that are safe to call from every thread.
unsafe impl Send for Original {}
// SAFETY: as above.
unsafe impl Sync for Original {}

static ORIGINAL: OnceLock<Original> = OnceLock::new();

#[derive(Clone, Copy, Default)]
struct Plan {
    armed: bool,
    at: u64,
    persistent: bool,
    counted: u64,
    failed: u64,
}

thread_local! {
    static PLAN: Cell<Plan> = const {
        Cell::new(Plan { armed: false, at: 0, persistent: false, counted: 0, failed: 0 })
    };
}

/// Puts the counting allocator in front of SQLite's own; before SQLite is used.
pub fn install() {
    // SAFETY: an all-zero table is valid; SQLite fills it, and takes a copy of the other.
    unsafe {
        let mut methods: ffi::sqlite3_mem_methods = std::mem::zeroed();
        assert_eq!(ffi::sqlite3_config(ffi::SQLITE_CONFIG_GETMALLOC, &mut methods), ffi::SQLITE_OK);
        let _ = ORIGINAL.set(Original(methods));
        methods.xMalloc = Some(allocate);
        methods.xRealloc = Some(reallocate);
        assert_eq!(ffi::sqlite3_config(ffi::SQLITE_CONFIG_MALLOC, &mut methods), ffi::SQLITE_OK);
    }
}

/// Lets allocation number `at` fail, from 0, and with `persistent` all that follow.
pub fn arm(at: u64, persistent: bool) {
    PLAN.set(Plan { armed: true, at, persistent, counted: 0, failed: 0 });
}

/// Ends it; how many allocations failed.
pub fn disarm() -> u64 {
    PLAN.replace(Plan::default()).failed
}

fn fails() -> bool {
    PLAN.try_with(|cell| {
        let mut plan = cell.get();
        if !plan.armed {
            return false;
        }
        let number = plan.counted;
        plan.counted += 1;
        let fails = number == plan.at || (plan.persistent && number > plan.at);
        plan.failed += u64::from(fails);
        cell.set(plan);
        fails
    })
    .unwrap_or(false)
}

fn original() -> &'static ffi::sqlite3_mem_methods {
    &ORIGINAL.get().unwrap().0
}

unsafe extern "C" fn allocate(bytes: c_int) -> *mut c_void {
    match original().xMalloc {
        // SAFETY: SQLite's own function with its own argument.
        Some(allocate) if !fails() => unsafe { allocate(bytes) },
        _ => std::ptr::null_mut(),
    }
}

unsafe extern "C" fn reallocate(old: *mut c_void, bytes: c_int) -> *mut c_void {
    match original().xRealloc {
        // SAFETY: as above.
        Some(reallocate) if !fails() => unsafe { reallocate(old, bytes) },
        _ => std::ptr::null_mut(),
    }
}

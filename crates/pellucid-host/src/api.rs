//! The functions of the host's SQLite, taken from the table that SQLite hands to an extension.
//!
//! The table (`sqlite3_api_routines`, sqlite3ext.h) only ever grows at its end, so a slot's number is
//! fixed; a slot beyond the host's version is never touched.

mod older;

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::ffi::{Connection, Context, Module, Opaque, Statement, Value, Vfs};

static TABLE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The oldest SQLite the shim works with.
pub const MINIMUM_VERSION: c_int = 3_037_000;
const VERSION_WITH_DB_NAME: c_int = 3_039_000;

/// The functions of the host's SQLite.
#[derive(Debug, Clone, Copy)]
pub struct Api(*const Opaque);

/// Declares safe-to-call getters for slots: `name @ slot: signature`.
macro_rules! slots {
    ($($(#[$doc:meta])* $name:ident @ $slot:literal: $signature:ty;)*) => {
        impl Api {
            $($(#[$doc])*
            pub fn $name(self) -> $signature {
                // SAFETY: the table came from SQLite 3.37 or later (`Api::install`), which fills
                // every slot below 252; the slot's signature is that of sqlite3ext.h.
                unsafe { std::mem::transmute::<Opaque, $signature>(*self.0.add($slot)) }
            })*
        }
    };
}

type Function = unsafe extern "C" fn(*mut Context, c_int, *mut *mut Value);
type Final = unsafe extern "C" fn(*mut Context);
type Collation =
    unsafe extern "C" fn(*mut c_void, c_int, *const c_void, c_int, *const c_void) -> c_int;
/// What SQLite runs at each open: connection, place for a message, table of functions (auto_extension.html).
pub type AutoExtension =
    unsafe extern "C" fn(*mut Connection, *mut *mut c_char, *const c_void) -> c_int;
type Destructor = unsafe extern "C" fn(*mut c_void);

slots! {
    bind_blob @ 2: unsafe extern "C" fn(
        *mut Statement, c_int, *const c_void, c_int, Option<Destructor>) -> c_int;
    bind_int64 @ 5: unsafe extern "C" fn(*mut Statement, c_int, i64) -> c_int;
    bind_text @ 10: unsafe extern "C" fn(
        *mut Statement, c_int, *const c_char, c_int, Option<Destructor>) -> c_int;
    bind_value @ 12: unsafe extern "C" fn(*mut Statement, c_int, *const Value) -> c_int;
    busy_timeout @ 14: unsafe extern "C" fn(*mut Connection, c_int) -> c_int;
    column_blob @ 19: unsafe extern "C" fn(*mut Statement, c_int) -> *const c_void;
    column_bytes @ 20: unsafe extern "C" fn(*mut Statement, c_int) -> c_int;
    column_int64 @ 29: unsafe extern "C" fn(*mut Statement, c_int) -> i64;
    column_text @ 36: unsafe extern "C" fn(*mut Statement, c_int) -> *const c_char;
    column_value @ 39: unsafe extern "C" fn(*mut Statement, c_int) -> *mut Value;
    declare_vtab @ 50: unsafe extern "C" fn(*mut Connection, *const c_char) -> c_int;
    errmsg @ 53: unsafe extern "C" fn(*mut Connection) -> *const c_char;
    finalize @ 57: unsafe extern "C" fn(*mut Statement) -> c_int;
    free @ 58: unsafe extern "C" fn(*mut c_void);
    get_autocommit @ 60: unsafe extern "C" fn(*mut Connection) -> c_int;
    libversion_number @ 67: unsafe extern "C" fn() -> c_int;
    progress_handler @ 75: unsafe extern "C" fn(
        *mut Connection, c_int, Option<unsafe extern "C" fn(*mut c_void) -> c_int>, *mut c_void);
    reset @ 77: unsafe extern "C" fn(*mut Statement) -> c_int;
    /// The destructor as a number: -1 stands for `SQLITE_TRANSIENT`.
    result_blob @ 78: unsafe extern "C" fn(*mut Context, *const c_void, c_int, isize);
    result_double @ 79: unsafe extern "C" fn(*mut Context, f64);
    result_error @ 80: unsafe extern "C" fn(*mut Context, *const c_char, c_int);
    result_int64 @ 83: unsafe extern "C" fn(*mut Context, i64);
    /// The destructor as a number: -1 stands for `SQLITE_TRANSIENT`.
    result_text @ 85: unsafe extern "C" fn(*mut Context, *const c_char, c_int, isize);
    result_value @ 89: unsafe extern "C" fn(*mut Context, *mut Value);
    step @ 94: unsafe extern "C" fn(*mut Statement) -> c_int;
    user_data @ 101: unsafe extern "C" fn(*mut Context) -> *mut c_void;
    value_text @ 109: unsafe extern "C" fn(*mut Value) -> *const c_char;
    prepare_v2 @ 116: unsafe extern "C" fn(
        *mut Connection, *const c_char, c_int, *mut *mut Statement, *mut *const c_char) -> c_int;
    clear_bindings @ 118: unsafe extern "C" fn(*mut Statement) -> c_int;
    create_module_v2 @ 119: unsafe extern "C" fn(
        *mut Connection, *const c_char, *const Module, *mut c_void, Option<Destructor>) -> c_int;
    create_collation_v2 @ 126: unsafe extern "C" fn(
        *mut Connection, *const c_char, c_int, *mut c_void, Option<Collation>,
        Option<Destructor>) -> c_int;
    file_control @ 127:
        unsafe extern "C" fn(*mut Connection, *const c_char, c_int, *mut c_void) -> c_int;
    open_v2 @ 135: unsafe extern "C" fn(
        *const c_char, *mut *mut Connection, c_int, *const c_char) -> c_int;
    vfs_find @ 141: unsafe extern "C" fn(*const c_char) -> *mut Vfs;
    vfs_register @ 142: unsafe extern "C" fn(*mut Vfs, c_int) -> c_int;
    context_db_handle @ 149: unsafe extern "C" fn(*mut Context) -> *mut Connection;
    next_stmt @ 152: unsafe extern "C" fn(*mut Connection, *mut Statement) -> *mut Statement;
    create_function_v2 @ 162: unsafe extern "C" fn(
        *mut Connection, *const c_char, c_int, c_int, *mut c_void, Option<Function>,
        Option<Function>, Option<Final>, Option<Destructor>) -> c_int;
    db_mutex @ 164: unsafe extern "C" fn(*mut Connection) -> *mut c_void;
    extended_errcode @ 166: unsafe extern "C" fn(*mut Connection) -> c_int;
    log_raw @ 167: unsafe extern "C" fn(c_int, *const c_char, ...);
    vtab_config @ 177: unsafe extern "C" fn(*mut Connection, c_int, ...) -> c_int;
    close_v2 @ 179: unsafe extern "C" fn(*mut Connection) -> c_int;
    db_filename @ 180: unsafe extern "C" fn(*mut Connection, *const c_char) -> *const c_char;
    stmt_busy @ 184: unsafe extern "C" fn(*mut Statement) -> c_int;
    stmt_readonly @ 185: unsafe extern "C" fn(*mut Statement) -> c_int;
    uri_parameter @ 189: unsafe extern "C" fn(*const c_char, *const c_char) -> *const c_char;
    auto_extension @ 192: unsafe extern "C" fn(AutoExtension) -> c_int;
    load_extension @ 196: unsafe extern "C" fn(
        *mut Connection, *const c_char, *const c_char, *mut *mut c_char) -> c_int;
    malloc64 @ 197: unsafe extern "C" fn(u64) -> *mut c_void;
    filename_database @ 246: unsafe extern "C" fn(*const c_char) -> *const c_char;
    filename_journal @ 247: unsafe extern "C" fn(*const c_char) -> *const c_char;
    filename_wal @ 248: unsafe extern "C" fn(*const c_char) -> *const c_char;
    db_name_raw @ 264:
        unsafe extern "C" fn(*mut Connection, c_int) -> *const c_char;
}

impl Api {
    /// A copy of a text that SQLite frees. Null if there is no memory for it.
    pub fn text(self, text: &[u8]) -> *mut c_char {
        // SAFETY: the room that was asked for is written to, and no more.
        unsafe {
            let copy = self.malloc64()(text.len() as u64 + 1).cast::<u8>();
            if !copy.is_null() {
                std::ptr::copy_nonoverlapping(text.as_ptr(), copy, text.len());
                *copy.add(text.len()) = 0;
            }
            copy.cast()
        }
    }

    /// Takes the host's table. `None` if its SQLite is too old.
    ///
    /// # Safety
    /// `table` is the `sqlite3_api_routines` pointer SQLite gave to an extension's entry point.
    pub unsafe fn install(table: *const c_void) -> Option<Self> {
        let api = Self(table.cast());
        if table.is_null() {
            return None;
        }
        // SAFETY: the slot exists since SQLite 3.3; the table outlives the process' use of SQLite.
        if unsafe { api.libversion_number()() } < MINIMUM_VERSION {
            return None;
        }
        TABLE.store(table.cast_mut(), Ordering::Release);
        Some(api)
    }

    /// Returns the table that was taken before.
    pub fn get() -> Option<Self> {
        let table = TABLE.load(Ordering::Acquire);
        (!table.is_null()).then_some(Self(table.cast_const().cast()))
    }

    /// The version of the host, as 3_040_001 for 3.40.1.
    pub fn version(self) -> c_int {
        // SAFETY: takes no argument and reads a constant.
        unsafe { self.libversion_number()() }
    }

    /// Writes a line to the host's error log (errlog.html).
    pub fn log(self, code: c_int, line: &str) {
        let Ok(line) = CString::new(line) else { return };
        // SAFETY: both strings are terminated and live across the call; "%s" takes exactly one.
        unsafe { self.log_raw()(code, c"%s".as_ptr(), line.as_ptr()) };
    }

    /// Whether no statement of a connection that may write is being executed. If the connection
    /// writes nevertheless, a function of SQLite's interface does: the backup's.
    ///
    /// # Safety
    /// `db` is an open connection whose mutex the caller holds.
    pub unsafe fn writes_nothing(self, db: *mut Connection) -> bool {
        // SAFETY: `db` by contract; a statement that SQLite returns lives as long as the mutex is held.
        unsafe {
            let mut statement = self.next_stmt()(db, std::ptr::null_mut());
            while !statement.is_null() {
                if self.stmt_busy()(statement) != 0 && self.stmt_readonly()(statement) == 0 {
                    return false;
                }
                statement = self.next_stmt()(db, statement);
            }
        }
        true
    }

    /// Returns the schema name of the n-th database of a connection. `None` past the end.
    ///
    /// # Safety
    /// `db` is an open connection whose mutex the caller holds.
    pub unsafe fn db_name(self, db: *mut Connection, n: c_int) -> Option<CString> {
        if self.version() < VERSION_WITH_DB_NAME {
            // SAFETY: by contract, and not older than 3.37 (`Api::install`).
            return unsafe { older::db_name(self, db, n) };
        }
        // SAFETY: `db` by contract; the slot exists since 3.39.
        let name = unsafe { self.db_name_raw()(db, n) };
        if name.is_null() {
            return None;
        }
        // SAFETY: SQLite returns a terminated string that lives until the schema changes.
        Some(unsafe { CStr::from_ptr(name) }.to_owned())
    }
}

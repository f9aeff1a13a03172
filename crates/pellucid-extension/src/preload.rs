//! The preload: puts the shim in front of the program's own SQLite, at its first open or, eagerly, at once.
//!
//! Not in a constructor by default, because programs call `sqlite3_config()` first and SQLite refuses it once it
//! is initialized. Eagerly where interposing does not reach: PHP loads its modules with `RTLD_DEEPBIND`.
//!
//! Fails closed: where the shim cannot be put in place the open is an error, and an eager start ends the process.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::api::{
    AutoExtensionFn, CloseFn, Connection, OpenV2Fn, SQLITE_CANTOPEN, SQLITE_OK, SQLITE_OPEN_CREATE,
    SQLITE_OPEN_MEMORY, SQLITE_OPEN_READWRITE,
};
use crate::library::{self, Library};
use crate::mode::{settings, Mode};
use crate::{guarded, registration, witness};

/// What a process gets as exit status whose eager start failed; as a shell says "cannot be executed".
const EXIT_NOT_STARTED: c_int = 126;

/// Base address of the library that the shim is registered with; 0 before.
static REGISTERED: AtomicUsize = AtomicUsize::new(0);
/// SQLite's table of functions, as [`take_table`] got it.
static TABLE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Finds the library that an interposed call is for, with the shim as its default VFS.
///
/// # Errors
/// The result code for the caller: the shim is not in place, and the database must not be opened.
pub fn prepare() -> Result<&'static Library, c_int> {
    let library = library::of_caller().map_err(refuse)?;
    if settings().mode != Mode::Off {
        put_in_place(library).map_err(refuse)?;
    }
    Ok(library)
}

/// Registers the shim if it is not yet, and makes it the default again, which `sqlite3_shutdown` undoes.
fn put_in_place(library: &Library) -> Result<(), &'static str> {
    if REGISTERED.load(Ordering::Acquire) == 0 {
        register(library)?;
    }
    if REGISTERED.load(Ordering::Acquire) != library.base {
        return Err("this process has two SQLite libraries; only the first can be protected");
    }
    if pellucid_vfs::make_default() != SQLITE_OK {
        return Err("SQLite does not take the shim as its default VFS");
    }
    witness::listen(library)
}

/// Registers the shim with `library`; waits where another thread is at it.
fn register(library: &Library) -> Result<(), &'static str> {
    static REGISTERING: Mutex<()> = Mutex::new(());
    thread_local!(static INSIDE: Cell<bool> = const { Cell::new(false) });

    // The connection below runs the program's own automatic extensions, and those may open databases.
    if INSIDE.get() {
        return Err("an automatic extension opens a database before the shim is in place");
    }
    // Looked up before the lock is taken: see `library::all` about locks and the dynamic linker.
    let functions = Functions::of(library).ok_or("the SQLite library lacks a function")?;
    let _lock = REGISTERING.lock().unwrap_or_else(PoisonError::into_inner);
    if REGISTERED.load(Ordering::Acquire) != 0 {
        return Ok(());
    }
    INSIDE.set(true);
    let table = functions.table();
    INSIDE.set(false);
    // SAFETY: the table is the one that `library` handed to an automatic extension.
    unsafe { registration::register(table?) }?;
    REGISTERED.store(library.base, Ordering::Release);
    Ok(())
}

/// What it takes to have SQLite hand over its table.
struct Functions {
    auto_extension: AutoExtensionFn,
    cancel_auto_extension: AutoExtensionFn,
    open: OpenV2Fn,
    close: CloseFn,
}

impl Functions {
    fn of(library: &Library) -> Option<Self> {
        // SAFETY: the types are those of sqlite3.h.
        unsafe {
            Some(Functions {
                auto_extension: library.symbol(c"sqlite3_auto_extension")?,
                cancel_auto_extension: library.symbol(c"sqlite3_cancel_auto_extension")?,
                open: library.symbol(c"sqlite3_open_v2")?,
                close: library.symbol(c"sqlite3_close")?,
            })
        }
    }

    /// The table, by an automatic extension and one connection in memory that runs it.
    fn table(&self) -> Result<*const c_void, &'static str> {
        let mut connection = null_mut();
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY;
        // SAFETY: C strings, a place for the connection, and an automatic extension of the type SQLite calls.
        let opened = unsafe {
            if (self.auto_extension)(take_table) != SQLITE_OK {
                return Err("SQLite takes no automatic extension");
            }
            let opened =
                (self.open)(c":memory:".as_ptr(), &mut connection, flags, std::ptr::null());
            // SQLite hands out a connection even with an error; null is allowed.
            (self.close)(connection);
            (self.cancel_auto_extension)(take_table);
            opened
        };
        let table = TABLE.load(Ordering::Acquire);
        match (opened, table.is_null()) {
            (SQLITE_OK, false) => Ok(table),
            (SQLITE_OK, true) => Err("the SQLite library was built without loadable extensions"),
            _ => Err("the SQLite library cannot open a database in memory"),
        }
    }
}

/// The automatic extension that remembers the table.
unsafe extern "C" fn take_table(
    _connection: *mut Connection,
    _error: *mut *mut c_char,
    api: *const c_void,
) -> c_int {
    TABLE.store(api.cast_mut(), Ordering::Release);
    SQLITE_OK
}

/// Says once why nothing is opened (a null connection has no message of its own), and gives the code for it.
fn refuse(why: &str) -> c_int {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        say(why);
    }
    SQLITE_CANTOPEN
}

/// One line, one system call, no locks: the program may be anywhere.
fn say(why: &str) {
    let line = format!("pellucid: error: {why}; nothing is opened without encryption\n");
    // SAFETY: writes from a live buffer; a standard error that is closed is no reason to fail.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

/// Runs while the library is loaded, before the program's `main`.
#[used]
#[link_section = ".init_array"]
static CONSTRUCTOR: extern "C" fn() = {
    extern "C" fn construct() {
        let outcome = guarded(Err("panic"), || match settings().mode {
            Mode::Off | Mode::FirstOpen => Ok(()),
            Mode::Eager => match library::load() {
                Some(library) => put_in_place(library),
                None => Err("`libsqlite3.so.0` cannot be loaded"),
            },
        });
        if let Err(why) = outcome {
            say(why);
            // SAFETY: ends the process without running anything of the program's.
            unsafe { libc::_exit(EXIT_NOT_STARTED) };
        }
    }
    construct
};

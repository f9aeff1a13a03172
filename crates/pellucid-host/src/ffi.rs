//! SQLite's C interface, as far as a VFS shim meets it (sqlite3.h, "OS Interface").
//!
//! Declared here and not taken from a bindings crate: the shim must never link an SQLite of its own.

use std::ffi::{c_char, c_int, c_void};

/// `sqlite3_file`: what every file object begins with.
#[repr(C)]
#[derive(Debug)]
pub struct File {
    pub methods: *const IoMethods,
}

/// `sqlite3_io_methods`, versions 1 to 3.
#[repr(C)]
#[derive(Debug)]
pub struct IoMethods {
    pub version: c_int,
    pub close: Option<unsafe extern "C" fn(*mut File) -> c_int>,
    pub read: Option<unsafe extern "C" fn(*mut File, *mut c_void, c_int, i64) -> c_int>,
    pub write: Option<unsafe extern "C" fn(*mut File, *const c_void, c_int, i64) -> c_int>,
    pub truncate: Option<unsafe extern "C" fn(*mut File, i64) -> c_int>,
    pub sync: Option<unsafe extern "C" fn(*mut File, c_int) -> c_int>,
    pub file_size: Option<unsafe extern "C" fn(*mut File, *mut i64) -> c_int>,
    pub lock: Option<unsafe extern "C" fn(*mut File, c_int) -> c_int>,
    pub unlock: Option<unsafe extern "C" fn(*mut File, c_int) -> c_int>,
    pub check_reserved_lock: Option<unsafe extern "C" fn(*mut File, *mut c_int) -> c_int>,
    pub file_control: Option<unsafe extern "C" fn(*mut File, c_int, *mut c_void) -> c_int>,
    pub sector_size: Option<unsafe extern "C" fn(*mut File) -> c_int>,
    pub device_characteristics: Option<unsafe extern "C" fn(*mut File) -> c_int>,
    pub shm_map:
        Option<unsafe extern "C" fn(*mut File, c_int, c_int, c_int, *mut *mut c_void) -> c_int>,
    pub shm_lock: Option<unsafe extern "C" fn(*mut File, c_int, c_int, c_int) -> c_int>,
    pub shm_barrier: Option<unsafe extern "C" fn(*mut File)>,
    pub shm_unmap: Option<unsafe extern "C" fn(*mut File, c_int) -> c_int>,
    pub fetch: Option<unsafe extern "C" fn(*mut File, i64, c_int, *mut *mut c_void) -> c_int>,
    pub unfetch: Option<unsafe extern "C" fn(*mut File, i64, *mut c_void) -> c_int>,
}

/// A function whose signature the shim only hands on.
pub type Opaque = Option<unsafe extern "C" fn()>;

/// `sqlite3_vfs`, versions 1 to 3.
#[repr(C)]
#[derive(Debug)]
pub struct Vfs {
    pub version: c_int,
    pub file_bytes: c_int,
    pub max_pathname: c_int,
    pub next: *mut Vfs,
    pub name: *const c_char,
    pub app_data: *mut c_void,
    pub open: Option<
        unsafe extern "C" fn(*mut Vfs, *const c_char, *mut File, c_int, *mut c_int) -> c_int,
    >,
    pub delete: Option<unsafe extern "C" fn(*mut Vfs, *const c_char, c_int) -> c_int>,
    pub access: Option<unsafe extern "C" fn(*mut Vfs, *const c_char, c_int, *mut c_int) -> c_int>,
    pub full_pathname:
        Option<unsafe extern "C" fn(*mut Vfs, *const c_char, c_int, *mut c_char) -> c_int>,
    pub dl_open: Option<unsafe extern "C" fn(*mut Vfs, *const c_char) -> *mut c_void>,
    pub dl_error: Option<unsafe extern "C" fn(*mut Vfs, c_int, *mut c_char)>,
    pub dl_sym: Option<unsafe extern "C" fn(*mut Vfs, *mut c_void, *const c_char) -> Opaque>,
    pub dl_close: Option<unsafe extern "C" fn(*mut Vfs, *mut c_void)>,
    pub randomness: Option<unsafe extern "C" fn(*mut Vfs, c_int, *mut c_char) -> c_int>,
    pub sleep: Option<unsafe extern "C" fn(*mut Vfs, c_int) -> c_int>,
    pub current_time: Option<unsafe extern "C" fn(*mut Vfs, *mut f64) -> c_int>,
    pub get_last_error: Option<unsafe extern "C" fn(*mut Vfs, c_int, *mut c_char) -> c_int>,
    pub current_time_int64: Option<unsafe extern "C" fn(*mut Vfs, *mut i64) -> c_int>,
    pub set_system_call: Option<unsafe extern "C" fn(*mut Vfs, *const c_char, Opaque) -> c_int>,
    pub get_system_call: Option<unsafe extern "C" fn(*mut Vfs, *const c_char) -> Opaque>,
    pub next_system_call: Option<unsafe extern "C" fn(*mut Vfs, *const c_char) -> *const c_char>,
}

/// `sqlite3_module`, version 1, of a table that is only read; what it has no use for is null.
#[repr(C)]
#[derive(Debug)]
pub struct Module {
    pub version: c_int,
    pub create: Opaque,
    pub connect: Option<
        unsafe extern "C" fn(
            *mut Connection,
            *mut c_void,
            c_int,
            *const *const c_char,
            *mut *mut VirtualTable,
            *mut *mut c_char,
        ) -> c_int,
    >,
    pub best_index: Option<unsafe extern "C" fn(*mut VirtualTable, *mut c_void) -> c_int>,
    pub disconnect: Option<unsafe extern "C" fn(*mut VirtualTable) -> c_int>,
    pub destroy: Opaque,
    pub open: Option<unsafe extern "C" fn(*mut VirtualTable, *mut *mut Cursor) -> c_int>,
    pub close: Option<unsafe extern "C" fn(*mut Cursor) -> c_int>,
    pub filter: Option<
        unsafe extern "C" fn(*mut Cursor, c_int, *const c_char, c_int, *mut *mut Value) -> c_int,
    >,
    pub next: Option<unsafe extern "C" fn(*mut Cursor) -> c_int>,
    pub eof: Option<unsafe extern "C" fn(*mut Cursor) -> c_int>,
    pub column: Option<unsafe extern "C" fn(*mut Cursor, *mut Context, c_int) -> c_int>,
    pub rowid: Option<unsafe extern "C" fn(*mut Cursor, *mut i64) -> c_int>,
    /// Update, transactions, functions, renaming; savepoints, shadow tables and checks of later versions.
    pub others: [Opaque; 12],
}

/// `sqlite3_vtab`: what every virtual table begins with.
#[repr(C)]
#[derive(Debug)]
pub struct VirtualTable {
    pub module: *const Module,
    pub references: c_int,
    pub error: *mut c_char,
}

/// `sqlite3_vtab_cursor`: what every cursor of one begins with.
#[repr(C)]
#[derive(Debug)]
pub struct Cursor {
    pub table: *mut VirtualTable,
}

/// Keeps a virtual table out of triggers and views of a schema.
pub const VTAB_DIRECTONLY: c_int = 3;

/// `sqlite3`, a connection; only ever handed on.
#[repr(C)]
#[derive(Debug)]
pub struct Connection {
    _private: [u8; 0],
}

/// `sqlite3_stmt`, a prepared statement; only ever handed on.
#[repr(C)]
#[derive(Debug)]
pub struct Statement {
    _private: [u8; 0],
}

/// `sqlite3_context`, a running SQL function; only ever handed on.
#[repr(C)]
#[derive(Debug)]
pub struct Context {
    _private: [u8; 0],
}

/// `sqlite3_value`; only ever handed on.
#[repr(C)]
#[derive(Debug)]
pub struct Value {
    _private: [u8; 0],
}

/// No error.
pub const OK: c_int = 0;
/// Any other error.
pub const ERROR: c_int = 1;
/// Access was refused.
pub const PERM: c_int = 3;
/// Another connection holds a lock.
pub const BUSY: c_int = 5;
/// Out of memory.
pub const NOMEM: c_int = 7;
/// The file may not be written.
pub const READONLY: c_int = 8;
/// A hot journal has to be played back, and this connection may not.
pub const READONLY_ROLLBACK: c_int = READONLY | 3 << 8;
/// A disk I/O error.
pub const IOERR: c_int = 10;
/// The database is malformed.
pub const CORRUPT: c_int = 11;
/// An unknown file control.
pub const NOTFOUND: c_int = 12;
/// The disk, or what a key may seal, is full.
pub const FULL: c_int = 13;
/// The file cannot be opened.
pub const CANTOPEN: c_int = 14;
/// The interface was used wrongly.
pub const MISUSE: c_int = 21;
/// Not authorized: a key is missing.
pub const AUTH: c_int = 23;
/// `SQLITE_AUTH` with the first extension (SQLite's `SQLITE_AUTH_USER`): another file than the expected one.
pub const AUTH_REPLACED: c_int = AUTH | 1 << 8;
/// The file `-shm` cannot be written, and nobody who can has it open.
pub const READONLY_CANTINIT: c_int = READONLY | 5 << 8;
/// `SQLITE_CANTOPEN` with an extension of the shim's own: the wal-index in memory is not to be had, or is not this one.
pub const CANTOPEN_INDEX: c_int = CANTOPEN | 64 << 8;
/// `SQLITE_NOTICE`: a line in the error log, and no error.
pub const NOTICE: c_int = 27;
/// The file is not a database.
pub const NOTADB: c_int = 26;
/// A statement has a row.
pub const ROW: c_int = 100;
/// A statement has ended.
pub const DONE: c_int = 101;
/// An extension stays loaded.
pub const OK_LOAD_PERMANENTLY: c_int = 256;
/// A read failed.
pub const IOERR_READ: c_int = IOERR | (1 << 8);
/// A read came to the end of the file.
pub const IOERR_SHORT_READ: c_int = IOERR | (2 << 8);
/// A write failed.
pub const IOERR_WRITE: c_int = IOERR | (3 << 8);
/// What was read does not authenticate.
pub const IOERR_DATA: c_int = IOERR | (32 << 8);

/// Open for reading.
pub const OPEN_READONLY: c_int = 0x1;
/// `SQLITE_OPEN_SUPER_JOURNAL`
pub const OPEN_SUPER_JOURNAL: c_int = 0x4000;
/// `SQLITE_ACCESS_EXISTS`
pub const ACCESS_EXISTS: c_int = 0;
/// Open for reading and writing.
pub const OPEN_READWRITE: c_int = 0x2;
/// Make the file if there is none.
pub const OPEN_CREATE: c_int = 0x4;
/// The name may be a URI.
pub const OPEN_URI: c_int = 0x40;
/// A main database.
pub const OPEN_MAIN_DB: c_int = 0x100;
/// The database of temporary tables.
pub const OPEN_TEMP_DB: c_int = 0x200;
/// A database that a statement needs.
pub const OPEN_TRANSIENT_DB: c_int = 0x400;
/// The rollback journal of a main database.
pub const OPEN_MAIN_JOURNAL: c_int = 0x800;
/// Delete the file when it is closed.
pub const OPEN_DELETEONCLOSE: c_int = 0x8;
/// The file must not be there.
pub const OPEN_EXCLUSIVE: c_int = 0x10;
/// The journal of a temporary database.
pub const OPEN_TEMP_JOURNAL: c_int = 0x1000;
/// A statement's journal.
pub const OPEN_SUBJOURNAL: c_int = 0x2000;
/// A write-ahead log.
pub const OPEN_WAL: c_int = 0x80000;

/// No lock.
pub const LOCK_NONE: c_int = 0;
/// Other connections may read.
pub const LOCK_SHARED: c_int = 1;
/// Other connections may read; this connection is going to write.
pub const LOCK_RESERVED: c_int = 2;
/// No other connection may read or write.
pub const LOCK_EXCLUSIVE: c_int = 4;

/// An ordinary sync.
pub const SYNC_NORMAL: c_int = 2;

/// Release a lock of the wal-index.
pub const SHM_UNLOCK: c_int = 1;
/// Take a lock of the wal-index.
pub const SHM_LOCK: c_int = 2;
/// The lock keeps every other connection out.
pub const SHM_EXCLUSIVE: c_int = 8;
/// The write lock byte of a wal-index (walformat.html, 2.3.1).
pub const WAL_WRITE_LOCK: c_int = 0;
/// The checkpoint lock byte of a wal-index.
pub const WAL_CKPT_LOCK: c_int = 1;
/// The lock of readers of the database file alone, `WAL_READ_LOCK(0)` of wal.c.
pub const WAL_READ0_LOCK: c_int = 3;
/// Its lock for recovery (`WAL_RECOVER_LOCK` of wal.c).
pub const WAL_RECOVER_LOCK: c_int = 2;

/// A checkpoint begins to write pages.
pub const FCNTL_CKPT_START: c_int = 39;
/// A checkpoint has written its pages, and has not yet noted that in the wal-index.
pub const FCNTL_CKPT_DONE: c_int = 37;
/// How large the file is going to be.
pub const FCNTL_SIZE_HINT: c_int = 5;
/// By how much the file grows.
pub const FCNTL_CHUNK_SIZE: c_int = 6;
/// The names of the VFSes behind a file.
pub const FCNTL_VFSNAME: c_int = 12;
/// Asks or says whether the log stays when the last connection closes.
pub const FCNTL_PERSIST_WAL: c_int = 10;
/// Shows a PRAGMA before it is carried out.
pub const FCNTL_PRAGMA: c_int = 14;
/// How much of the file may be mapped.
pub const FCNTL_MMAP_SIZE: c_int = 18;
/// Whether the name leads to another file by now: `int *`.
pub const FCNTL_HAS_MOVED: c_int = 20;
/// A commit is about to be synced.
pub const FCNTL_SYNC: c_int = 21;
/// A commit is durable.
pub const FCNTL_COMMIT_PHASETWO: c_int = 22;
/// The connection that a file belongs to.
pub const FCNTL_PDB: c_int = 30;
/// A batch of writes begins.
pub const FCNTL_BEGIN_ATOMIC_WRITE: c_int = 31;
/// The bytes reserved at the end of each page.
pub const FCNTL_RESERVE_BYTES: c_int = 38;
/// Forget the cached pages.
pub const FCNTL_RESET_CACHE: c_int = 42;

/// Promises the shim takes back: an atomic write of SQLite's would be a longer one on disk or none,
/// and a read of part of a page would go around SQLite's page cache.
pub const IOCAP_REMOVED: c_int = 0x1ff | IOCAP_BATCH_ATOMIC | IOCAP_SUBPAGE_READ;
/// The file is on read-only media: nothing changes it.
pub const IOCAP_IMMUTABLE: c_int = 0x2000;
/// A write changes no byte around it, also if the power goes.
pub const IOCAP_POWERSAFE_OVERWRITE: c_int = 0x1000;
const IOCAP_BATCH_ATOMIC: c_int = 0x4000;
const IOCAP_SUBPAGE_READ: c_int = 0x8000;

//! A VFS of another name over one that there is, in which the methods of databases are changed.

use std::ffi::{c_char, c_int, CStr};
use std::sync::OnceLock;

use rusqlite::ffi;

pub type Open = unsafe extern "C" fn(
    *mut ffi::sqlite3_vfs,
    *const c_char,
    *mut ffi::sqlite3_file,
    c_int,
    *mut c_int,
) -> c_int;

/// What lies below, and the changed methods; one for each such VFS, in a static.
pub struct Replaced {
    open: OnceLock<Open>,
    methods: OnceLock<(ffi::sqlite3_io_methods, ffi::sqlite3_io_methods)>,
}

impl Replaced {
    pub const fn new() -> Self {
        Self { open: OnceLock::new(), methods: OnceLock::new() }
    }

    /// Registers a copy of the VFS `of` as `name`, whose files are opened by `open`.
    pub fn register(&self, of: &CStr, name: &'static CStr, open: Open) {
        self.open.get_or_init(|| {
            // SAFETY: a registered VFS is valid for ever, and so is the leaked copy of it.
            unsafe {
                let mut vfs = *ffi::sqlite3_vfs_find(of.as_ptr());
                let below = vfs.xOpen.unwrap();
                vfs.zName = name.as_ptr();
                vfs.pNext = std::ptr::null_mut();
                vfs.xOpen = Some(open);
                ffi::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 0);
                below
            }
        });
    }

    /// Opens the file below; a database gets its methods as `change` makes them, the same for every one.
    ///
    /// # Safety
    /// The arguments are those of SQLite's call.
    pub unsafe fn open(
        &'static self,
        (vfs, name, file): (*mut ffi::sqlite3_vfs, *const c_char, *mut ffi::sqlite3_file),
        flags: c_int,
        out: *mut c_int,
        change: fn(&mut ffi::sqlite3_io_methods),
    ) -> c_int {
        let Some(below) = self.open.get() else { return ffi::SQLITE_ERROR };
        // SAFETY: SQLite's arguments go through; a file that was opened has methods.
        unsafe {
            let code = below(vfs, name, file, flags, out);
            if code == ffi::SQLITE_OK && flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
                let (_, changed) = self.methods.get_or_init(|| {
                    let honest = *(*file).pMethods;
                    let mut changed = honest;
                    change(&mut changed);
                    (honest, changed)
                });
                (*file).pMethods = changed;
            }
            code
        }
    }

    /// The methods as they were.
    pub fn honest(&self) -> Option<&ffi::sqlite3_io_methods> {
        self.methods.get().map(|(honest, _)| honest)
    }
}

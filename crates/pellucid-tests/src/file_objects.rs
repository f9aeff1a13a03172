//! The file objects of a connection's database and of its log, called as SQLite calls them.

use std::ffi::{c_int, c_void};

use rusqlite::{ffi, Connection};

/// The calls that this thread has made to write.
///
/// # Panics
/// If the system does not count them.
pub fn writes() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    told.lines().find_map(|line| line.strip_prefix("syscw: ")).unwrap().parse().unwrap()
}

/// Of a connection that is open as long as they are used.
#[derive(Debug)]
pub struct FileObjects {
    database: *mut ffi::sqlite3_file,
    log: *mut ffi::sqlite3_file,
}

impl FileObjects {
    /// Those of `main`.
    ///
    /// # Panics
    /// If it has none.
    pub fn of(connection: &Connection) -> Self {
        let file = |op: c_int| {
            let mut file: *mut ffi::sqlite3_file = std::ptr::null_mut();
            let argument: *mut c_void = std::ptr::addr_of_mut!(file).cast();
            // SAFETY: both operations give a pointer to a file object of an open connection.
            let code = unsafe {
                ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), op, argument)
            };
            assert!(code == ffi::SQLITE_OK && !file.is_null());
            file
        };
        Self {
            database: file(ffi::SQLITE_FCNTL_FILE_POINTER),
            log: file(ffi::SQLITE_FCNTL_JOURNAL_POINTER),
        }
    }

    /// Reads the page of a frame, as a checkpoint does.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn read_frame(&self, frame: u32, page_bytes: usize) -> Vec<u8> {
        let mut page = vec![0u8; page_bytes];
        let at = 32 + i64::from(frame - 1) * (page_bytes as i64 + 24) + 24;
        // SAFETY: the file is open, and the buffer has room.
        let code = unsafe {
            let read = (*(*self.log).pMethods).xRead.unwrap();
            read(self.log, page.as_mut_ptr().cast(), page_bytes as c_int, at)
        };
        assert_eq!(code, ffi::SQLITE_OK);
        page
    }

    /// Writes to the database. Returns SQLite's code.
    pub fn write(&self, bytes: &[u8], at: usize) -> c_int {
        // SAFETY: the file is open, and the bytes are there.
        unsafe {
            let write = (*(*self.database).pMethods).xWrite.unwrap();
            write(self.database, bytes.as_ptr().cast(), bytes.len() as c_int, at as i64)
        }
    }

    /// Takes or gives back a lock of the index. Returns SQLite's code.
    pub fn shm_lock(&self, lock: c_int, flags: c_int) -> c_int {
        // SAFETY: the file is open, and its index is mapped.
        unsafe { (*(*self.database).pMethods).xShmLock.unwrap()(self.database, lock, 1, flags) }
    }

    /// Tells the database's file something that has no argument.
    pub fn control(&self, op: c_int) {
        // SAFETY: the file is open.
        unsafe {
            let control = (*(*self.database).pMethods).xFileControl.unwrap();
            control(self.database, op, std::ptr::null_mut());
        }
    }
}

//! A file object of the lower VFS, with safe calls.

use std::ffi::{c_int, c_void};

use pellucid_host::code::{Code, Outcome};
use pellucid_host::ffi;
use pellucid_host::ffi::{File, IoMethods};

/// How far a read came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadEnd {
    /// Every byte was there.
    Full,
    /// The file ends before; the rest was filled with zeros.
    Short,
}

/// An open file of the lower VFS. Copies are handles on the same object, which lies inside the
/// shim's own file object. An owner of a handle drops it when the shim's file closes.
#[derive(Debug, Clone, Copy)]
pub struct Lower(*mut File);

/// The most bytes that one call moves: SQLite's `unix` VFS keeps only 17 bits of a size.
pub const CALL_BYTES: usize = 64 * 1024;

/// The code of a write that failed, as one for which SQLite ends the transaction: it does so for a full disk and an I/O error alone
/// (`pager_error`), and a lower VFS may return any.
pub fn code_that_ends(code: Code) -> Code {
    match matches!(code.0 & 0xff, ffi::IOERR | ffi::FULL) {
        true => code,
        false => Code(ffi::IOERR_WRITE),
    }
}

impl Lower {
    /// # Safety
    /// `file` was opened by the lower VFS, has methods, and is used by one thread at a time until it
    /// is closed; after that no copy of the handle is used.
    pub(crate) unsafe fn new(file: *mut File) -> Self {
        Self(file)
    }

    fn methods(&self) -> &IoMethods {
        // SAFETY: an open file has methods (`Lower::new`); they are static.
        unsafe { &*(*self.0).methods }
    }

    /// The version of the lower file's methods.
    pub(crate) fn version(&self) -> c_int {
        self.methods().version
    }

    /// Reads at `offset`. Bytes behind the file's end come as zeros.
    ///
    /// # Errors
    /// The lower VFS's code.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        let mut end = ReadEnd::Full;
        for (index, part) in buffer.chunks_mut(CALL_BYTES).enumerate() {
            let at = offset + (index * CALL_BYTES) as u64;
            let read = self.methods().read.ok_or(Code(ffi::IOERR_READ))?;
            // SAFETY: `part` is valid for its length; the file is open.
            let code =
                unsafe { read(self.0, part.as_mut_ptr().cast(), part.len() as c_int, at as i64) };
            match code {
                ffi::OK => {}
                ffi::IOERR_SHORT_READ => end = ReadEnd::Short,
                code => return Err(Code(code)),
            }
        }
        Ok(end)
    }

    /// SHA-256 of the first `size` bytes. `None` if they cannot be read.
    pub(crate) fn sha256(&self, size: u64) -> Option<[u8; 32]> {
        let mut hash = pellucid::hash::Sha256::new();
        let mut buffer = vec![0; CALL_BYTES];
        let mut at = 0;
        while at < size {
            let part = (size - at).min(CALL_BYTES as u64) as usize;
            self.read(&mut buffer[..part], at).ok()?;
            hash.update(&buffer[..part]);
            at += part as u64;
        }
        Some(hash.finish())
    }

    /// Copies from the lower VFS's mapping, if it has one that reaches so far. Always a copy,
    /// because bytes in a shared mapping may change between authentication and use.
    pub(crate) fn read_mapped(&self, buffer: &mut [u8], offset: u64) -> bool {
        let (Some(fetch), Some(unfetch)) = (self.methods().fetch, self.methods().unfetch) else {
            return false;
        };
        let mut page = std::ptr::null_mut();
        // SAFETY: `page` is valid for a write; methods of version 3 have both functions.
        let code = unsafe { fetch(self.0, offset as i64, buffer.len() as c_int, &mut page) };
        if code != ffi::OK || page.is_null() {
            return false;
        }
        // SAFETY: the lower VFS gives `buffer.len()` readable bytes until they are given back. The
        // copy is the only access, and SQLite's locks keep the file from being cut meanwhile.
        unsafe {
            std::ptr::copy_nonoverlapping(page.cast::<u8>(), buffer.as_mut_ptr(), buffer.len());
            unfetch(self.0, offset as i64, page);
        }
        true
    }

    /// Lets the lower VFS map up to `bytes` of the file.
    pub(crate) fn allow_mapping(&self, mut bytes: i64) {
        if self.version() >= 3 {
            // SAFETY: the operation takes an `sqlite3_int64 *`.
            unsafe {
                self.file_control(ffi::FCNTL_MMAP_SIZE, std::ptr::addr_of_mut!(bytes).cast());
            }
        }
    }

    /// Lets the file grow by what is written to it alone, whatever SQLite asked for before.
    pub(crate) fn forget_chunks(&self) {
        let mut bytes: c_int = 0;
        // SAFETY: the operation takes an `int *`.
        unsafe {
            self.file_control(ffi::FCNTL_CHUNK_SIZE, std::ptr::addr_of_mut!(bytes).cast());
        }
    }

    /// Drops the mapping, so that the next read maps the file in its length at that time.
    pub(crate) fn drop_mapping(&self) {
        if let Some(unfetch) = self.methods().unfetch.filter(|_| self.version() >= 3) {
            // SAFETY: a null page asks for just that (`sqlite3_io_methods.xUnfetch`).
            unsafe { unfetch(self.0, 0, std::ptr::null_mut()) };
        }
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// The lower VFS's code.
    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> Outcome<()> {
        let write = self.methods().write.ok_or(Code(ffi::IOERR_WRITE))?;
        for (index, part) in bytes.chunks(CALL_BYTES).enumerate() {
            let at = offset + (index * CALL_BYTES) as u64;
            // SAFETY: `part` is valid for its length; the file is open.
            Code::check(unsafe {
                write(self.0, part.as_ptr().cast(), part.len() as c_int, at as i64)
            })?;
        }
        Ok(())
    }

    /// Cuts the file to `size` bytes.
    ///
    /// # Errors
    /// The lower VFS's code.
    pub(crate) fn truncate(&self, size: u64) -> Outcome<()> {
        let truncate = self.methods().truncate.ok_or(Code(ffi::IOERR))?;
        // SAFETY: the file is open.
        Code::check(unsafe { truncate(self.0, size as i64) })
    }

    /// Forces the file to disk.
    ///
    /// # Errors
    /// The lower VFS's code.
    pub(crate) fn sync(&self, flags: c_int) -> Outcome<()> {
        let sync = self.methods().sync.ok_or(Code(ffi::IOERR))?;
        // SAFETY: the file is open.
        Code::check(unsafe { sync(self.0, flags) })
    }

    /// The size of the file on disk in bytes.
    ///
    /// # Errors
    /// The lower VFS's code.
    pub(crate) fn size(&self) -> Outcome<u64> {
        let file_size = self.methods().file_size.ok_or(Code(ffi::IOERR))?;
        let mut size = 0i64;
        // SAFETY: `size` is valid for the call; the file is open.
        Code::check(unsafe { file_size(self.0, &mut size) })?;
        u64::try_from(size).map_err(|_| Code(ffi::IOERR))
    }

    /// Takes a lock of the database file.
    ///
    /// # Errors
    /// The lower VFS's code, `SQLITE_BUSY` among them.
    pub(crate) fn lock(&self, level: c_int) -> Outcome<()> {
        let lock = self.methods().lock.ok_or(Code(ffi::IOERR))?;
        // SAFETY: the file is open.
        Code::check(unsafe { lock(self.0, level) })
    }

    /// Releases a lock of the database file.
    ///
    /// # Errors
    /// The lower VFS's code.
    pub(crate) fn unlock(&self, level: c_int) -> Outcome<()> {
        let unlock = self.methods().unlock.ok_or(Code(ffi::IOERR))?;
        // SAFETY: the file is open.
        Code::check(unsafe { unlock(self.0, level) })
    }

    /// Whether another connection holds RESERVED; the raw call.
    /// Whether another connection holds RESERVED. False if the lower VFS cannot say.
    pub(crate) fn is_reserved(&self) -> bool {
        let mut reserved: c_int = 0;
        self.check_reserved_lock(&mut reserved) == ffi::OK && reserved != 0
    }

    pub(crate) fn check_reserved_lock(&self, out: &mut c_int) -> c_int {
        match self.methods().check_reserved_lock {
            // SAFETY: `out` is valid for the call; the file is open.
            Some(check) => unsafe { check(self.0, out) },
            None => ffi::IOERR,
        }
    }

    /// Hands a file control on; the raw call.
    ///
    /// # Safety
    /// `argument` is what `op` requires.
    pub(crate) unsafe fn file_control(&self, op: c_int, argument: *mut c_void) -> c_int {
        match self.methods().file_control {
            // SAFETY: by contract; the file is open.
            Some(control) => unsafe { control(self.0, op, argument) },
            None => ffi::NOTFOUND,
        }
    }

    /// Whether the file's name leads to another file by now. `None` if the lower VFS cannot say.
    pub(crate) fn has_moved(&self) -> Option<bool> {
        let mut moved: c_int = 1;
        // SAFETY: the operation takes an `int *`.
        let code = unsafe {
            self.file_control(ffi::FCNTL_HAS_MOVED, std::ptr::addr_of_mut!(moved).cast())
        };
        (code == ffi::OK).then_some(moved != 0)
    }

    /// The sector size in bytes: the bytes that reach the disk together.
    pub(crate) fn sector_size(&self) -> c_int {
        match self.methods().sector_size {
            // SAFETY: the file is open.
            Some(sector_size) => unsafe { sector_size(self.0) },
            None => 4096,
        }
    }

    /// The device characteristics: what the device promises about its writes.
    pub(crate) fn device_characteristics(&self) -> c_int {
        match self.methods().device_characteristics {
            // SAFETY: the file is open.
            Some(characteristics) => unsafe { characteristics(self.0) },
            None => 0,
        }
    }

    /// Maps a region of the WAL index; the raw call.
    ///
    /// # Safety
    /// `out` is valid for a write.
    pub(crate) unsafe fn shm_map(
        &self,
        region: c_int,
        bytes: c_int,
        extend: c_int,
        out: *mut *mut c_void,
    ) -> c_int {
        match self.methods().shm_map {
            // SAFETY: by contract; the file is open.
            Some(map) => unsafe { map(self.0, region, bytes, extend, out) },
            None => ffi::IOERR,
        }
    }

    /// Takes or releases locks of the wal-index; the raw call.
    pub(crate) fn shm_lock(&self, first: c_int, count: c_int, flags: c_int) -> c_int {
        match self.methods().shm_lock {
            // SAFETY: the file is open.
            Some(lock) => unsafe { lock(self.0, first, count, flags) },
            None => ffi::IOERR,
        }
    }

    /// A memory barrier between processes.
    pub(crate) fn shm_barrier(&self) {
        if let Some(barrier) = self.methods().shm_barrier {
            // SAFETY: the file is open.
            unsafe { barrier(self.0) }
        }
    }

    /// Whether the file can have a wal-index.
    pub(crate) fn has_shared_memory(&self) -> bool {
        self.methods().shm_map.is_some()
    }

    /// Unmaps the wal-index; the raw call.
    pub(crate) fn shm_unmap(&self, delete: c_int) -> c_int {
        match self.methods().shm_unmap {
            // SAFETY: the file is open.
            Some(unmap) => unsafe { unmap(self.0, delete) },
            None => ffi::OK,
        }
    }

    /// Closes the file; no copy of the handle may be used afterwards.
    pub(crate) fn close(self) -> c_int {
        match self.methods().close {
            // SAFETY: the file is open; the caller drops every copy of the handle.
            Some(close) => unsafe { close(self.0) },
            None => ffi::OK,
        }
    }
}

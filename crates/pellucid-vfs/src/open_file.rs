//! A file of an open connection, for work on databases: reached past SQLite through SQLite's own
//! file object, under SQLite's locks. It borrows the connection, so that no file object is used
//! after SQLite has closed it.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

use pellucid_host::code::{Code, Outcome};
use pellucid_host::connection::Handle;
use pellucid_host::{ffi, DatabaseError};

use crate::lower::{Lower, ReadEnd};

/// The first bytes of a file, and its size.
pub type Beginning = (Vec<u8>, u64);

/// A file of an open connection.
#[derive(Debug, Clone, Copy)]
pub struct OpenFile<'a> {
    lower: Lower,
    is_sealed: bool,
    _open: PhantomData<&'a ()>,
}

impl<'a> OpenFile<'a> {
    /// The main database of `handle` as its VFS reads it: by the shim pages in clear, by another
    /// VFS the bytes of the file.
    ///
    /// # Errors
    /// SQLite's error, if the connection has no file.
    pub fn of(handle: &'a Handle<'_>) -> Result<Self, DatabaseError> {
        // SAFETY: the file object of an open connection, which the result borrows.
        Ok(Self::within(unsafe { Lower::new(handle.file()?) }))
    }

    /// Makes the file of `lower`, which the caller keeps open.
    pub(crate) fn within(lower: Lower) -> Self {
        Self { lower, is_sealed: false, _open: PhantomData }
    }

    /// The same of a sealed main database.
    pub(crate) fn of_sealed(lower: Lower) -> Self {
        Self { lower, is_sealed: true, _open: PhantomData }
    }

    pub(crate) fn lower(self) -> Lower {
        self.lower
    }

    /// As [`Lower::read`].
    ///
    /// # Errors
    /// The lower VFS's code.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        self.lower.read(buffer, offset)
    }

    /// The first bytes, `most` of them or all, and the size.
    ///
    /// # Errors
    /// The lower VFS's code.
    pub fn beginning(&self, most: u64) -> Outcome<Beginning> {
        let size = self.size()?;
        let mut bytes = vec![0; size.min(most) as usize];
        self.read(&mut bytes, 0)?;
        Ok((bytes, size))
    }

    /// As [`Lower::write`].
    ///
    /// # Errors
    /// The lower VFS's code.
    pub fn write(&self, bytes: &[u8], offset: u64) -> Outcome<()> {
        self.lower.write(bytes, offset)
    }

    /// As [`Lower::truncate`].
    ///
    /// # Errors
    /// The lower VFS's code.
    pub fn truncate(&self, size: u64) -> Outcome<()> {
        self.lower.truncate(size)
    }

    /// As [`Lower::sync`].
    ///
    /// # Errors
    /// The lower VFS's code.
    pub fn sync(&self, flags: c_int) -> Outcome<()> {
        self.lower.sync(flags)
    }

    /// As [`Lower::size`].
    ///
    /// # Errors
    /// The lower VFS's code.
    pub fn size(&self) -> Outcome<u64> {
        self.lower.size()
    }

    /// As [`Lower::lock`].
    ///
    /// # Errors
    /// The lower VFS's code, `SQLITE_BUSY` among them.
    pub fn lock(&self, level: c_int) -> Outcome<()> {
        self.lower.lock(level)
    }

    /// As [`Lower::unlock`].
    ///
    /// # Errors
    /// The lower VFS's code.
    pub fn unlock(&self, level: c_int) -> Outcome<()> {
        self.lower.unlock(level)
    }

    /// Whether another connection holds RESERVED. False if the lower VFS cannot say.
    pub fn is_reserved(&self) -> bool {
        self.lower.is_reserved()
    }

    /// As [`Lower::drop_mapping`].
    pub fn drop_mapping(&self) {
        // SQLite gets no page of a sealed database out of a mapping. Of another one it may hold some.
        if self.is_sealed {
            self.lower.drop_mapping();
        }
    }

    /// The number of frames in the WAL that SQLite counts, from the wal-index that all connections
    /// share (SQLite's WAL-mode file format, 2.1). A checkpoint would return it too, but SQLite
    /// refuses every checkpoint to a connection in a transaction, even one that only counts.
    ///
    /// # Errors
    /// The lower VFS's code; `SQLITE_BUSY` if the index keeps changing.
    pub fn frames_counted(&self) -> Outcome<u32> {
        const REGION: c_int = 32 * 1024;
        const COPY_BYTES: usize = 48;
        const FRAMES: usize = 16;
        let mut index: *mut c_void = std::ptr::null_mut();
        // SAFETY: `index` takes a pointer, and nothing is extended: the region is there or the call says so.
        let code = unsafe { self.lower.shm_map(0, REGION, 0, &mut index) };
        if index.is_null() || !matches!(code, ffi::OK | ffi::READONLY) {
            return Err(Code(if code == ffi::OK { ffi::IOERR } else { code }));
        }
        for _ in 0..1000 {
            let mut copies = [[0u8; COPY_BYTES]; 2];
            for (number, copy) in copies.iter_mut().enumerate() {
                // SAFETY: both copies of the header lie in the mapped region, which stays mapped while the file is
                // open. Others may write to it: bytes are read, and used only if both copies are the same.
                unsafe {
                    let from = index.cast::<u8>().add(number * COPY_BYTES);
                    for (at, byte) in copy.iter_mut().enumerate() {
                        *byte = from.add(at).read_volatile();
                    }
                }
                self.lower.shm_barrier();
            }
            if copies[0] == copies[1] {
                let frames = &copies[0][FRAMES..FRAMES + 4];
                return Ok(u32::from_ne_bytes([frames[0], frames[1], frames[2], frames[3]]));
            }
            std::thread::yield_now();
        }
        Err(Code(ffi::BUSY))
    }
}

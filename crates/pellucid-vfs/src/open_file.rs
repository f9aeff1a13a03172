//! A file of an open connection, for work on databases: reached past SQLite through SQLite's own
//! file object, under SQLite's locks. It borrows the connection, so that no file object is used
//! after SQLite has closed it.

use std::ffi::c_int;
use std::marker::PhantomData;

use pellucid_host::code::Outcome;
use pellucid_host::connection::Handle;
use pellucid_host::DatabaseError;

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
}

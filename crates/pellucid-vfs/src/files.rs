//! The files of one database in one connection: where a call on one of them needs another.
//!
//! SQLite opens the database, its log and its journal as three files. What it asks of the database file may be due in the log
//! first: what that holds is written before a lock is given back, and a page is checked against its frame before a checkpoint
//! writes it. The log and the journal know the [`Container`] alone, and nothing of each other.

use std::cell::RefCell;
use std::ffi::c_int;
use std::rc::Rc;

use pellucid::{Error, Subject};
use pellucid_host::code::{Code, Outcome};
use pellucid_host::ffi;

use crate::container::{Container, INDEX_CHANGED};
use crate::journal_file::JournalFile;
use crate::lower::{Lower, ReadEnd};
use crate::sqlite_file::SqliteFile;
use crate::wal_file::WalFile;

/// The open files of one database.
#[derive(Debug)]
pub struct Files {
    /// What they share.
    pub container: Rc<Container>,
    /// The open write-ahead log.
    wal: RefCell<Option<WalFile>>,
    /// The open rollback journal.
    journal: RefCell<Option<JournalFile>>,
}

impl Files {
    /// The database alone.
    pub fn new(container: Rc<Container>) -> Self {
        Self { container, wal: RefCell::new(None), journal: RefCell::new(None) }
    }

    /// Runs `call` on the log, if one is open.
    pub fn with_wal<T>(&self, call: impl FnOnce(&mut WalFile) -> T) -> Option<T> {
        self.wal.borrow_mut().as_mut().map(call)
    }

    /// Runs `call` on the journal, if one is open.
    pub fn with_journal<T>(&self, call: impl FnOnce(&mut JournalFile) -> T) -> Option<T> {
        self.journal.borrow_mut().as_mut().map(call)
    }

    /// Writes the units that the WAL and the journal hold. The caller returns an error to SQLite.
    ///
    /// # Errors
    /// The failed write's code.
    pub fn flush(&self) -> Outcome<()> {
        let flushed = self.flush_untold();
        if flushed.is_err() {
            self.with_wal(WalFile::tell);
        }
        flushed
    }

    /// Like [`Files::flush`], for callers that cannot return an error to SQLite (unlock, barrier).
    /// The WAL keeps the error, and the transaction's next call returns it.
    ///
    /// # Errors
    /// The failed write's code, in each call until SQLite was given the error or the transaction is
    /// over.
    pub fn flush_untold(&self) -> Outcome<()> {
        self.flush_journal()?;
        self.with_wal(WalFile::flush).unwrap_or(Ok(()))
    }

    /// Writes the records that the journal holds. They have to be in the file before the database
    /// file changes.
    ///
    /// # Errors
    /// The failed write's code.
    pub fn flush_journal(&self) -> Outcome<()> {
        self.with_journal(JournalFile::flush).unwrap_or(Ok(()))
    }

    /// Checks that a checkpoint writes a page to the place that the page's frame is authenticated
    /// for.
    ///
    /// While the log is open SQLite writes to the database file by a checkpoint alone, and reads
    /// each frame right before it writes its page. The wal-index says the place too, but any
    /// process with access to it can change it.
    ///
    /// # Errors
    /// `SQLITE_IOERR_DATA` after a line in the log; the page must not be written then.
    pub fn check_checkpoint(&self, bytes: &[u8], offset: u64) -> Outcome<()> {
        if self.wal.borrow().is_none() {
            return Ok(());
        }
        let page_bytes = self.container.page_size().ok_or(Code(ffi::IOERR_WRITE))? as u64;
        let number = u32::try_from(offset / page_bytes + 1).unwrap_or(0);
        let is_place = offset % page_bytes == 0 && bytes.len() as u64 == page_bytes;
        if is_place && self.with_wal(|wal| wal.opened_last(number, bytes)) == Some(true) {
            return Ok(());
        }
        Err(self.container.report(&Error::unauthentic(
            Subject::Page(number),
            format!("a checkpoint would write what no frame of it has: {INDEX_CHANGED}"),
        )))
    }
}

/// The log, as SQLite's file object has it.
#[derive(Debug)]
pub struct Log(Rc<Files>);

impl Log {
    /// Takes the log that was opened.
    pub fn open(files: Rc<Files>, wal: WalFile) -> Self {
        *files.wal.borrow_mut() = Some(wal);
        Self(files)
    }

    fn call<T>(&self, call: impl FnOnce(&mut WalFile) -> Outcome<T>) -> Outcome<T> {
        self.0.with_wal(call).unwrap_or(Err(Code(ffi::IOERR)))
    }
}

impl SqliteFile for Log {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        self.call(|wal| wal.read(buffer, offset))
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        self.call(|wal| wal.write(bytes, offset))
    }

    fn truncate(&mut self, size: u64) -> Outcome<()> {
        self.call(|wal| wal.truncate(size))
    }

    fn sync(&mut self, flags: c_int) -> Outcome<()> {
        self.call(|wal| wal.sync(flags))
    }

    fn size(&mut self) -> Outcome<u64> {
        self.call(WalFile::size)
    }

    fn close(&mut self) -> Outcome<()> {
        let flushed = self.call(WalFile::flush);
        self.0.wal.borrow_mut().take();
        flushed
    }
}

/// The rollback journal, as SQLite's file object has it.
#[derive(Debug)]
pub struct Journal(Rc<Files>);

impl Journal {
    /// Takes the journal that was opened.
    pub fn open(files: Rc<Files>, journal: JournalFile) -> Self {
        *files.journal.borrow_mut() = Some(journal);
        Self(files)
    }

    fn call<T>(&self, call: impl FnOnce(&mut JournalFile) -> Outcome<T>) -> Outcome<T> {
        self.0.with_journal(call).unwrap_or(Err(Code(ffi::IOERR)))
    }
}

impl SqliteFile for Journal {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        self.call(|journal| journal.read(buffer, offset))
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        self.call(|journal| journal.write(bytes, offset))
    }

    fn truncate(&mut self, size: u64) -> Outcome<()> {
        self.call(|journal| journal.truncate(size))
    }

    fn sync(&mut self, flags: c_int) -> Outcome<()> {
        self.call(|journal| journal.sync(flags))
    }

    fn size(&mut self) -> Outcome<u64> {
        self.call(JournalFile::size)
    }

    fn close(&mut self) -> Outcome<()> {
        let flushed = self.call(JournalFile::flush);
        self.0.journal.borrow_mut().take();
        flushed
    }
}

/// A file that is passed on unchanged: a plain journal or WAL, or a super-journal.
#[derive(Debug)]
pub struct Through {
    lower: Lower,
    /// The plain database that it is the log of.
    log_of: Option<Rc<Files>>,
}

impl Through {
    /// Passes on what is asked of `lower`.
    pub fn new(lower: Lower, log_of: Option<Rc<Files>>) -> Self {
        Self { lower, log_of }
    }
}

impl SqliteFile for Through {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        self.lower.read(buffer, offset)
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        match self.log_of.as_ref().map(|files| &files.container) {
            Some(plain) if plain.transaction.is_by_backup() => plain.refuse_copied_over(bytes)?,
            _ => {}
        }
        self.lower.write(bytes, offset)
    }

    fn truncate(&mut self, size: u64) -> Outcome<()> {
        self.lower.truncate(size)
    }

    fn sync(&mut self, flags: c_int) -> Outcome<()> {
        self.lower.sync(flags)
    }

    fn size(&mut self) -> Outcome<u64> {
        self.lower.size()
    }

    fn close(&mut self) -> Outcome<()> {
        Ok(())
    }
}

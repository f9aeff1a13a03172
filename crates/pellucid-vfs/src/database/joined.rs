//! Pages that SQLite writes one by one and in their order, in a checkpoint or in the first transaction of a new database: sealed,
//! and handed over with one call where they are neighbours.
//!
//! **A new database** is one that nobody has read yet, as what VACUUM INTO writes, and whose first transaction has nothing to keep.
//! Under EXCLUSIVE nobody reads it but this connection, which finds here what waits. That is handed over before the file is cut,
//! synced or unlocked, and at `SQLITE_FCNTL_SYNC`, which ends every transaction that wrote before its journal goes
//! (`sqlite3PagerSync`), with `synchronous=OFF` too. For a write that fails there SQLite rolls the whole transaction back
//! (`pager_error`, `sqlite3VdbeHalt`), and its rollback can write again. So a read hands nothing over: SQLite need not roll back for
//! it (`sqlite3Prepare`).
//!
//! **In a checkpoint** what was not handed over yet is still in the log, and the log counts until SQLite notes in the wal-index how
//! far it was brought in. Nobody waits for the checkpoint's locks to believe that note. So pages wait only where it brings in all
//! of the log, which tells its last page beforehand, and that page's write hands all of them over: SQLite hears of a write that
//! fails, and notes nothing.

use pellucid::header::REGION_BYTES;
use pellucid::unit::TAIL_BYTES;
use pellucid_host::code::{Code, Outcome};
use pellucid_host::ffi;

use super::Database;
use crate::container::Container;
use crate::held::Held;
use crate::lower::{code_that_ends, Lower, ReadEnd};

/// The wal-index's locks that a checkpoint has while it writes pages: nobody else checkpoints, and nobody begins to read the
/// database file alone.
const LOCKS: i32 = 1 << ffi::WAL_CKPT_LOCK | 1 << ffi::WAL_READ0_LOCK;

/// The pages that wait, and how the checkpoint goes.
#[derive(Debug, Default)]
pub struct Joined {
    held: Held,
    /// Whether the database was made in the transaction under way.
    is_new: bool,
    /// Whether SQLite has said that it begins to write pages, and will say when it has written them.
    begun: bool,
    /// How a write of them failed. The checkpoint, or the transaction, ends with it.
    failed: Option<Code>,
    /// The last page of the checkpoint under way.
    last: Option<u32>,
}

impl Joined {
    /// Hands over what waits.
    ///
    /// # Errors
    /// The lower VFS's code, again and again until the checkpoint ends, or SQLite rolls the transaction back. It does so at the first.
    pub fn hand_over(&mut self, lower: Lower) -> Outcome<()> {
        if let Some(code) = self.failed {
            return Err(code);
        }
        if !self.held.is_empty() {
            self.failed = self.held.write(lower).err().map(code_that_ends);
            self.held.clear();
        }
        self.failed.map_or(Ok(()), Err)
    }

    /// Whether a page waits for any of `length` bytes of the file at `start`.
    pub fn waits(&self, start: u64, length: usize) -> bool {
        self.held.overlaps(start, length)
    }

    /// Forgets the pages behind `end`, because the file is cut there.
    pub fn cut(&mut self, end: u64) {
        self.held.cut(end);
    }

    /// Where the file ends once what waits is handed over; 0 if nothing waits.
    pub fn end(&self) -> u64 {
        if self.held.is_empty() {
            0
        } else {
            self.held.end()
        }
    }
}

impl Database {
    /// Reads from the pages that wait. `None` if none of them is asked for. SQLite reads pages, and parts of the first one.
    pub(super) fn read_joined(
        &mut self,
        buffer: &mut [u8],
        offset: u64,
    ) -> Option<Outcome<ReadEnd>> {
        if !self.joined.held.overlaps(REGION_BYTES + offset, buffer.len()) {
            return self.joined.failed.map(Err);
        }
        let page_bytes = self.container.page_size().unwrap_or(buffer.len());
        let (number, within) = (offset / page_bytes as u64, (offset % page_bytes as u64) as usize);
        let unit = self.joined.held.unit(REGION_BYTES + number * page_bytes as u64, page_bytes);
        let Some(unit) = unit.filter(|_| within + buffer.len() <= page_bytes) else {
            return self.hand_over().err().map(Err);
        };
        let (number, content) = (number as u32 + 1, page_bytes - TAIL_BYTES);
        if buffer.len() == page_bytes {
            buffer[content..].fill(0);
            let opened = self.container.open_page(number, unit, &mut buffer[..content]);
            return Some(opened.map(|()| ReadEnd::Full));
        }
        let mut page = vec![0; page_bytes];
        let opened = self.container.open_page(number, unit, &mut page[..content]);
        buffer.copy_from_slice(&page[within..within + buffer.len()]);
        Some(opened.map(|()| ReadEnd::Full))
    }

    /// Whether SQLite writes pages that may wait.
    pub(super) fn joins(&self) -> bool {
        self.overlay.is_none() && (self.is_alone() || self.brings_all_in())
    }

    /// Notes that the database is made, in the transaction under way.
    pub(super) fn begin_new(&mut self) {
        self.joined.is_new = true;
    }

    /// Whether this connection has a new database for itself.
    fn is_alone(&self) -> bool {
        let transaction = &self.container.transaction;
        self.joined.is_new
            && transaction.lock_level() == ffi::LOCK_EXCLUSIVE
            && transaction.shm_exclusive() == 0
            && self.files.with_wal(|_| ()).is_none()
    }

    /// Whether SQLite writes the pages of a checkpoint that brings all of the log in.
    fn brings_all_in(&self) -> bool {
        let (held, index) = (self.container.transaction.shm_exclusive(), &self.container.index);
        let is_checkpoint = self.joined.begun && held & LOCKS == LOCKS;
        is_checkpoint && index.to_bring_in().is_some_and(|frames| index.frames() == Some(frames))
    }

    /// Notes that a checkpoint begins to write pages.
    pub fn begin_checkpoint(&mut self) {
        self.joined.begun = true;
    }

    /// Notes that it has written the last one, or ends early. Nothing waits any more where it has brought in what it aimed at.
    pub fn wrote_checkpoint(&mut self) {
        let _ = self.hand_over();
        self.joined.begun = false;
    }

    /// Seals page `number` for its place `start` of the file, and hands it over if it is a checkpoint's last one. Returns its tail.
    ///
    /// # Errors
    /// The code of `seal`, or as [`Joined::hand_over`].
    pub(super) fn seal_joined(
        &mut self,
        number: u32,
        start: u64,
        page_bytes: usize,
        seal: impl FnOnce(&Container, &mut [u8]) -> Outcome<()>,
    ) -> Outcome<[u8; TAIL_BYTES]> {
        if self.joined.failed.is_some() || !self.joined.held.takes(start, page_bytes) {
            self.hand_over()?;
        }
        let unit = self.joined.held.add(start, page_bytes);
        let sealed = seal(&self.container, unit);
        let mut tail = [0; TAIL_BYTES];
        tail.copy_from_slice(&unit[page_bytes - TAIL_BYTES..]);
        if sealed.is_err() {
            self.joined.held.take_back(page_bytes);
        }
        sealed?;
        if !self.is_alone() && number >= self.last_of_checkpoint() {
            self.hand_over()?;
        }
        Ok(tail)
    }

    /// The last page that the checkpoint under way writes: none waits behind it. SQLite writes the pages of the frames that were not
    /// brought in yet, in their order, and none that the database no longer has (`walCheckpoint`).
    fn last_of_checkpoint(&mut self) -> u32 {
        let index = &self.container.index;
        let find = || {
            // Another connection has just committed: from here on no page waits.
            let of_it = |counted: &(u32, u32)| index.to_bring_in() == Some(counted.0);
            let (frames, pages) = index.counted().filter(of_it)?;
            let written = index.pages_behind(index.brought_in()?, frames);
            written.filter(|page| *page <= pages).max()
        };
        *self.joined.last.get_or_insert_with(|| find().unwrap_or(0))
    }

    /// Hands the pages of a checkpoint over, before anything else is done with the file.
    ///
    /// # Errors
    /// As [`Joined::hand_over`].
    pub fn hand_over(&mut self) -> Outcome<()> {
        let handed_over = self.joined.hand_over(self.lower);
        if handed_over.is_err() {
            self.size = None;
        }
        handed_over
    }

    /// Ends the transaction that made the database, once nothing waits: after `SQLITE_FCNTL_SYNC`, or before the lock is given back.
    pub fn end_new(&mut self) {
        if std::mem::take(&mut self.joined.is_new) {
            self.joined.failed = None;
        }
    }

    /// Notes that SQLite gets `outcome` of a call for whose error it rolls the transaction back: the rollback can write.
    pub(super) fn told<T>(&mut self, outcome: Outcome<T>) -> Outcome<T> {
        if outcome.is_err() && self.is_alone() {
            self.joined.failed = None;
        }
        outcome
    }

    /// Ends a checkpoint, before its locks are given back.
    pub fn end_checkpoint(&mut self) {
        let _ = self.hand_over();
        self.joined.failed = None;
        self.joined.begun = false;
        self.joined.last = None;
    }
}

//! Pages of a checkpoint, which SQLite writes in their order, page by page: sealed, and handed over with one call.
//!
//! What was not handed over yet is still in the log, and the log counts until SQLite notes in the wal-index how far it was
//! brought in. Between its last page and that note it says that it is done (`SQLITE_FCNTL_CKPT_DONE`), and nothing waits from
//! there on: a kill finds all of it handed over.
//!
//! When the whole log was brought in, SQLite cuts the file before the note, and hears there of a write that failed. Pages wait
//! only in such a checkpoint. Another connection may append to the log just then, and no call follows that could tell SQLite;
//! then the note is taken back, before the lock is given back that keeps everybody from believing it.

use pellucid::unit::TAIL_BYTES;
use pellucid_host::code::{Code, Outcome};
use pellucid_host::ffi;

use super::Database;
use crate::container::Container;
use crate::held::Held;
use crate::lower::Lower;

/// The wal-index's locks that a checkpoint has while it writes pages: nobody else checkpoints, and nobody begins to read the
/// database file alone.
const LOCKS: i32 = 1 << ffi::WAL_CKPT_LOCK | 1 << ffi::WAL_READ0_LOCK;

/// The pages that wait, and how the checkpoint goes.
#[derive(Debug, Default)]
pub struct Joined {
    held: Held,
    /// Whether SQLite has said that it begins to write pages, and will say when it has written them.
    begun: bool,
    /// How a write of them failed. The checkpoint ends with it.
    failed: Option<Code>,
    /// The frames that had been brought in before this checkpoint.
    before: Option<u32>,
}

impl Joined {
    /// Hands over what waits.
    ///
    /// # Errors
    /// The lower VFS's code, again and again until the checkpoint ends. SQLite ends it at the first.
    pub fn hand_over(&mut self, lower: Lower) -> Outcome<()> {
        if let Some(code) = self.failed {
            return Err(code);
        }
        if !self.held.is_empty() {
            self.failed = self.held.write(lower).err();
            self.held.clear();
        }
        self.failed.map_or(Ok(()), Err)
    }
}

impl Database {
    /// Whether SQLite writes the pages of a checkpoint that brings all of the log in.
    pub(super) fn joins(&self) -> bool {
        let (held, index) = (self.container.transaction.shm_exclusive(), &self.container.index);
        let is_checkpoint = self.joined.begun && held & LOCKS == LOCKS && self.overlay.is_none();
        is_checkpoint && index.to_bring_in().is_some_and(|frames| index.frames() == Some(frames))
    }

    /// Notes that a checkpoint begins to write pages.
    pub fn begin_checkpoint(&mut self) {
        self.joined.begun = true;
    }

    /// Notes that it has written the last one. SQLite hears of an error with its next call.
    pub fn wrote_checkpoint(&mut self) {
        let _ = self.hand_over();
        self.joined.begun = false;
    }

    /// Seals a page for the place `start` of the file. Returns its tail.
    ///
    /// # Errors
    /// The code of `seal`, or as [`Joined::hand_over`].
    pub(super) fn seal_joined(
        &mut self,
        start: u64,
        page_bytes: usize,
        seal: impl FnOnce(&Container, &mut [u8]) -> Outcome<()>,
    ) -> Outcome<[u8; TAIL_BYTES]> {
        if self.joined.failed.is_some() || !self.joined.held.takes(start, page_bytes) {
            self.joined.hand_over(self.lower)?;
        }
        if self.joined.before.is_none() {
            self.joined.before = self.container.index.brought_in();
        }
        let unit = self.joined.held.add(start, page_bytes);
        let sealed = seal(&self.container, unit);
        let mut tail = [0; TAIL_BYTES];
        tail.copy_from_slice(&unit[page_bytes - TAIL_BYTES..]);
        if sealed.is_err() {
            self.joined.held.take_back(page_bytes);
        }
        sealed.map(|()| tail)
    }

    /// Hands the pages of a checkpoint over, before anything else is done with the file.
    ///
    /// # Errors
    /// As [`Joined::hand_over`].
    pub fn hand_over(&mut self) -> Outcome<()> {
        self.joined.hand_over(self.lower)
    }

    /// Ends a checkpoint, before its locks are given back. If pages of it could not be written, the wal-index says again what
    /// it said before.
    pub fn end_checkpoint(&mut self) {
        let failed = self.hand_over().is_err();
        let before = self.joined.before.take();
        self.joined.failed = None;
        self.joined.begun = false;
        if let (true, Some(before)) = (failed, before) {
            self.container.index.bring_back(before);
        }
    }
}

//! What one connection has under way in a database: the locks that it holds, the nonces drawn and the writes reserved for it,
//! and how its last journal ended.

use std::cell::{Cell, RefCell, RefMut};

use pellucid::unit::TAIL_BYTES;
use pellucid::Result;
use pellucid_host::ffi;

use crate::pool::Pool;

/// The transaction of one connection, and what outlives it.
#[derive(Debug)]
pub struct Transaction {
    pool: RefCell<Pool>,
    lock_level: Cell<i32>,
    shm_exclusive: Cell<i32>,
    /// Whether a backup writes over this plain database.
    by_backup: Cell<bool>,
    /// The tail of the first record in the journal that this connection ended last and synced.
    journal_end: Cell<Option<[u8; TAIL_BYTES]>>,
}

impl Transaction {
    /// Nothing held.
    ///
    /// # Errors
    /// [`pellucid::Error::Io`] if no memory can be had for the pool.
    pub fn new() -> Result<Self> {
        Ok(Self {
            pool: RefCell::new(Pool::new()?),
            lock_level: Cell::new(ffi::LOCK_NONE),
            shm_exclusive: Cell::new(0),
            by_backup: Cell::new(false),
            journal_end: Cell::new(None),
        })
    }

    /// The nonces drawn and the writes reserved.
    pub fn pool(&self) -> RefMut<'_, Pool> {
        self.pool.borrow_mut()
    }

    /// Draws nonces ahead. Called before the write lock is taken, so that the draw does not
    /// lengthen the lock.
    pub fn draw_nonces(&self) {
        self.pool().draw_ahead();
    }

    /// Drops the drawn nonces, which must not outlive the write or checkpoint lock.
    pub fn drop_nonces(&self) {
        self.pool().drop_nonces();
    }

    /// The level of the file lock that this connection holds.
    pub fn lock_level(&self) -> i32 {
        self.lock_level.get()
    }

    /// Notes the level of the file lock.
    pub fn set_lock_level(&self, level: i32) {
        self.lock_level.set(level);
    }

    /// The exclusive locks of the wal-index that this connection holds, one bit each.
    pub fn shm_exclusive(&self) -> i32 {
        self.shm_exclusive.get()
    }

    /// Notes exclusive locks of the wal-index that were taken, one bit each.
    pub fn took_shm(&self, mask: i32) {
        self.shm_exclusive.set(self.shm_exclusive() | mask);
    }

    /// Notes exclusive locks of the wal-index that are given back, one bit each.
    pub fn gave_shm(&self, mask: i32) {
        self.shm_exclusive.set(self.shm_exclusive() & !mask);
    }

    /// Whether this connection holds the WAL's write lock.
    pub fn writes_wal(&self) -> bool {
        self.shm_exclusive() & (1 << ffi::WAL_WRITE_LOCK) != 0
    }

    /// Notes whether a backup writes the transaction.
    pub fn set_by_backup(&self, by_backup: bool) {
        self.by_backup.set(by_backup);
    }

    /// Whether a backup writes the transaction.
    pub fn is_by_backup(&self) -> bool {
        self.by_backup.get()
    }

    /// Notes how a journal ended that was synced: the tail of its first record.
    pub fn journal_ended(&self, first_tail: Option<[u8; TAIL_BYTES]>) {
        self.journal_end.set(first_tail);
    }

    /// How the last journal ended. Told once.
    pub fn take_journal_end(&self) -> Option<[u8; TAIL_BYTES]> {
        self.journal_end.take()
    }
}

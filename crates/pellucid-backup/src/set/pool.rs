//! The chunks under way. Their number is fixed, and with it the memory of a backup.

use std::sync::mpsc::{channel, Receiver, Sender};

use pellucid::media::{ChunkPrefix, PREFIX_BYTES};

/// Room for one chunk, used again and again.
#[derive(Debug, Default)]
pub struct Slot {
    /// Its place in the order of the database.
    pub order: u64,
    /// The pages that were read, ascending; of a log set the page of each version.
    pub numbers: Vec<u32>,
    /// Their content.
    pub content: Vec<u8>,
    /// Of a differential: the numbers of the pages that are stored, then these pages.
    pub listed: Vec<u8>,
    /// What is stored of them; empty if nothing is.
    pub body: Vec<u8>,
    /// The hashes of the pages.
    pub hashes: Vec<u8>,
    /// The prefix of what is stored, and its bytes.
    pub prefix: Option<(ChunkPrefix, [u8; PREFIX_BYTES])>,
}

/// Slots that nobody uses.
#[derive(Debug)]
pub struct Pool {
    back: Sender<Slot>,
    free: Receiver<Slot>,
}

impl Pool {
    /// So many.
    pub fn new(slots: usize) -> Self {
        let (back, free) = channel();
        for _ in 0..slots {
            // The receiver is right here.
            let _ = back.send(Slot::default());
        }
        Self { back, free }
    }

    /// Where slots are given back.
    pub fn back(&self) -> Sender<Slot> {
        self.back.clone()
    }

    /// A slot; waits until one is given back.
    pub fn take(&self) -> Option<Slot> {
        self.free.recv().ok()
    }
}

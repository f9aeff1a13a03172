//! Blocks of temporary files that stay in memory, in clear as in SQLite's own cache, and never reach a disk.
//!
//! SQLite gives its cache up to a temporary file long before memory is short, and reads the pages again in any order. So a
//! block goes into memory as long as all files of the process together have room there, and stays until its file ends or is
//! cut; what has no room is sealed. No block is moved out for another one: spilled pages are read evenly.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use pellucid_host::ffi;

use super::BLOCK_BYTES;
use crate::memory::Slab;

/// 32 MiB, in blocks.
const DEFAULT_BLOCKS: usize = (32 << 20) / BLOCK_BYTES;
/// Blocks behind the first 4 GiB of a file are sealed at once, so that the table of places stays small.
const NUMBER_MOST: u64 = (4 << 30) / BLOCK_BYTES as u64;
const PER_SLAB: usize = Slab::BYTES / BLOCK_BYTES;
const NOWHERE: u32 = u32::MAX;

/// How many blocks may be in memory, and are.
#[derive(Debug)]
pub struct Budget {
    most: OnceLock<usize>,
    used: AtomicUsize,
}

static PROCESS: Budget = Budget { most: OnceLock::new(), used: AtomicUsize::new(0) };

impl Budget {
    /// The process's: `PELLUCID_TEMP_MEMORY` bytes.
    pub fn of_process() -> &'static Self {
        &PROCESS
    }

    /// One of so many blocks.
    #[cfg(test)]
    pub fn of(blocks: usize) -> &'static Self {
        Box::leak(Box::new(Self { most: OnceLock::from(blocks), used: AtomicUsize::new(0) }))
    }

    /// The number of blocks that are in memory.
    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self) -> bool {
        let most = *self.most.get_or_init(said);
        let more = |used: usize| (used < most).then_some(used + 1);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self, blocks: usize) {
        self.used.fetch_sub(blocks, Ordering::Relaxed);
    }
}

/// What the environment says, in whole blocks. What says no number keeps nothing in memory, and is told once.
fn said() -> usize {
    let name = "PELLUCID_TEMP_MEMORY";
    let Some(said) = std::env::var_os(name).filter(|said| !said.is_empty()) else {
        return DEFAULT_BLOCKS;
    };
    match said.to_str().and_then(|said| said.parse::<usize>().ok()) {
        Some(bytes) => bytes / BLOCK_BYTES,
        None => {
            let line = "says no number of bytes: temporary files keep nothing in memory";
            pellucid_host::code::note(ffi::MISUSE, std::path::Path::new(name), line);
            0
        }
    }
}

/// The blocks of one file that are in memory.
#[derive(Debug)]
pub struct Blocks {
    budget: &'static Budget,
    slabs: Vec<Slab>,
    /// How many blocks of each are in use.
    in_use: Vec<usize>,
    /// The place of each block, by its number.
    places: Vec<u32>,
    free: Vec<u32>,
    /// Places that were given out so far.
    given: u32,
}

impl Blocks {
    /// None yet.
    pub fn new(budget: &'static Budget) -> Self {
        Self {
            budget,
            slabs: Vec::new(),
            in_use: Vec::new(),
            places: Vec::new(),
            free: Vec::new(),
            given: 0,
        }
    }

    /// A block that is in memory.
    pub fn get(&self, number: u64) -> Option<&[u8]> {
        let (slab, from) = place(self.place(number)?);
        self.slabs.get(slab).map(|slab| slab.bytes(from..from + BLOCK_BYTES))
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut [u8]> {
        let (slab, from) = place(self.place(number)?);
        self.slabs.get_mut(slab).map(|slab| slab.bytes_mut(from..from + BLOCK_BYTES))
    }

    /// Takes a new block into memory, of zeros. `None` if there is no room.
    pub fn take(&mut self, number: u64) -> Option<&mut [u8]> {
        if number >= NUMBER_MOST || !self.budget.take() {
            return None;
        }
        let at = match self.free.pop() {
            Some(at) => at,
            None if self.given as usize == self.slabs.len() * PER_SLAB => match Slab::map() {
                Some(slab) => {
                    self.slabs.push(slab);
                    self.in_use.push(0);
                    self.next()
                }
                None => {
                    self.budget.give_back(1);
                    return None;
                }
            },
            None => self.next(),
        };
        let number = number as usize;
        if self.places.len() <= number {
            self.places.resize(number + 1, NOWHERE);
        }
        self.places[number] = at;
        self.in_use[place(at).0] += 1;
        self.get_mut(number as u64)
    }

    /// Forgets blocks from a number on.
    pub fn cut(&mut self, from: u64) {
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(self.places.len());
        let before = self.free.len();
        for at in self.places.split_off(from).into_iter().filter(|at| *at != NOWHERE) {
            let (slab, within) = place(at);
            self.in_use[slab] -= 1;
            match self.in_use[slab] {
                0 => self.slabs[slab].discard(),
                _ => self.slabs[slab].bytes_mut(within..within + BLOCK_BYTES).fill(0),
            }
            self.free.push(at);
        }
        self.budget.give_back(self.free.len() - before);
        if self.free.len() == self.given as usize {
            // None is left: the system gets the memory back.
            self.free.clear();
            self.slabs.clear();
            self.in_use.clear();
            self.given = 0;
        }
    }

    fn next(&mut self) -> u32 {
        self.given += 1;
        self.given - 1
    }

    fn place(&self, number: u64) -> Option<u32> {
        let at = self.places.get(usize::try_from(number).ok()?).copied();
        at.filter(|at| *at != NOWHERE)
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.budget.give_back(self.given as usize - self.free.len());
    }
}

/// The slab of a place, and where in it.
fn place(at: u32) -> (usize, usize) {
    (at as usize / PER_SLAB, at as usize % PER_SLAB * BLOCK_BYTES)
}

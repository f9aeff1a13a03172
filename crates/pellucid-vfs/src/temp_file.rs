//! Temporary files: sorter spills, statement journals, temporary and transient databases.
//!
//! Sealed in blocks under a random key that exists only in memory, while SQLite reads and writes at
//! any offset and length. The first blocks stay in memory ([`blocks`]). Of the others, whole ones
//! are sealed from SQLite's memory and opened into it; blocks written in parts are kept opened. No block has to survive a crash, so sealed blocks wait until a
//! run of them can be written with one call. Layout: docs/format.md, "Temporary file".

mod algorithm;
mod blocks;
mod store;

use std::cell::RefCell;
use std::ffi::c_int;

use pellucid::keys::TemporaryKey;
use pellucid::unit::TAIL_BYTES;
use pellucid::{Algorithm, Result};
use pellucid_host::code::{code_of, Code, Outcome};
use pellucid_host::ffi;

use crate::held::Held;
use crate::lower::{Lower, ReadEnd};
use crate::pool::Pool;
use crate::read_ahead::ReadAhead;
use crate::sqlite_file::SqliteFile;

pub use algorithm::saw;
use blocks::{Blocks, Budget};
pub use store::{Scratch, Store};

/// Plaintext bytes of a block.
pub const BLOCK_BYTES: usize = pellucid::unit::TEMPORARY_BLOCK_BYTES;
const UNIT_BYTES: usize = BLOCK_BYTES + TAIL_BYTES;
/// The number of blocks kept opened. One is sealed when another needs its place.
const KEPT_BLOCKS: usize = 16;

/// A sealed byte store with any offset and length.
#[derive(Debug)]
pub struct TempStore<S> {
    store: S,
    key: TemporaryKey,
    /// The algorithm of the next block; [`algorithm::algorithm`] but in tests.
    algorithm: fn() -> Algorithm,
    inner: RefCell<Inner>,
}

#[derive(Debug)]
struct Inner {
    pool: Pool,
    size: u64,
    /// Blocks that no other place has.
    memory: Blocks,
    /// One bit for each block that was ever sealed. A block that was not reads as zeros.
    sealed: Vec<u64>,
    kept: Vec<Block>,
    /// Sealed blocks that are not written to the store yet; they are newer than the store's.
    held: Held,
    ahead: ReadAhead,
    clock: u64,
}

#[derive(Debug)]
struct Block {
    number: u64,
    bytes: Vec<u8>,
    changed: bool,
    used: u64,
}

impl<S: Store> TempStore<S> {
    /// Makes an empty store with a key of its own.
    ///
    /// # Errors
    /// [`pellucid::Error::Io`] if no randomness or memory can be had.
    pub fn new(store: S) -> Result<Self> {
        Self::within(Budget::of_process(), store)
    }

    fn within(budget: &'static Budget, store: S) -> Result<Self> {
        let inner = Inner {
            pool: Pool::new()?,
            size: 0,
            memory: Blocks::new(budget),
            sealed: Vec::new(),
            kept: Vec::new(),
            held: Held::default(),
            ahead: ReadAhead::default(),
            clock: 0,
        };
        let algorithm = algorithm::algorithm;
        let key = TemporaryKey::random(algorithm())?;
        Ok(Self { store, key, algorithm, inner: RefCell::new(inner) })
    }

    /// Reads at `offset`. Bytes behind the file's end come as zeros.
    ///
    /// # Errors
    /// `SQLITE_IOERR_DATA` for a block that does not authenticate, or the store's code.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        let mut inner = self.inner.borrow_mut();
        let there = inner.size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let (inside, behind) = buffer.split_at_mut(there);
        behind.fill(0);
        let mut done = 0;
        while done < inside.len() {
            let (number, within) = place(offset + done as u64);
            let part = (BLOCK_BYTES - within).min(inside.len() - done);
            let bytes = &mut inside[done..done + part];
            if let Some(block) = inner.memory.get(number) {
                bytes.copy_from_slice(&block[within..within + part]);
            } else if part == BLOCK_BYTES && !inner.keeps(number) {
                self.open(&mut inner, number, bytes)?;
            } else {
                let block = self.block(&mut inner, number)?;
                bytes.copy_from_slice(&block.bytes[within..within + part]);
            }
            done += part;
        }
        Ok(if behind.is_empty() { ReadEnd::Full } else { ReadEnd::Short })
    }

    /// Writes at `offset`, and extends the file where needed.
    ///
    /// # Errors
    /// The store's code.
    pub fn write(&self, bytes: &[u8], offset: u64) -> Outcome<()> {
        let mut inner = self.inner.borrow_mut();
        let mut done = 0;
        while done < bytes.len() {
            let (number, within) = place(offset + done as u64);
            let part = (BLOCK_BYTES - within).min(bytes.len() - done);
            let bytes = &bytes[done..done + part];
            if let Some(block) = inner.in_memory(number) {
                block[within..within + part].copy_from_slice(bytes);
            } else if part == BLOCK_BYTES {
                self.seal(&mut inner, number, bytes)?;
                inner.kept.retain(|block| block.number != number);
            } else {
                let block = self.block(&mut inner, number)?;
                block.bytes[within..within + part].copy_from_slice(bytes);
                block.changed = true;
            }
            done += part;
        }
        inner.size = inner.size.max(offset + bytes.len() as u64);
        Ok(())
    }

    /// The size of the file in bytes as SQLite sees it.
    pub fn size(&self) -> u64 {
        self.inner.borrow().size
    }

    /// Cuts or extends the file. Added bytes read as zeros.
    ///
    /// # Errors
    /// The store's code.
    pub fn truncate(&self, size: u64) -> Outcome<()> {
        let mut inner = self.inner.borrow_mut();
        if size < inner.size {
            let (last, within) = place(size);
            if let Some(block) = inner.memory.get_mut(last) {
                block[within..].fill(0);
            } else if within > 0 {
                let block = self.block(&mut inner, last)?;
                block.bytes[within..].fill(0);
                block.changed = true;
            }
            let blocks = size.div_ceil(BLOCK_BYTES as u64);
            let end = blocks * UNIT_BYTES as u64;
            if inner.held.at() < end {
                self.flush(&mut inner)?;
            }
            inner.held.clear();
            inner.kept.retain(|block| block.number < blocks);
            inner.forget_sealed(blocks);
            inner.memory.cut(blocks);
            self.store.cut(end)?;
        }
        inner.size = size;
        Ok(())
    }

    /// Returns an opened block, to read or change a part of it.
    fn block<'a>(&self, inner: &'a mut Inner, number: u64) -> Outcome<&'a mut Block> {
        inner.clock += 1;
        let used = inner.clock;
        let at = match inner.kept.iter().position(|block| block.number == number) {
            Some(at) => at,
            None => {
                let mut bytes = self.make_room(inner)?;
                self.open(inner, number, &mut bytes)?;
                inner.kept.push(Block { number, bytes, changed: false, used });
                inner.kept.len() - 1
            }
        };
        inner.kept[at].used = used;
        Ok(&mut inner.kept[at])
    }

    /// Makes room for one more opened block: seals another if all places are taken.
    fn make_room(&self, inner: &mut Inner) -> Outcome<Vec<u8>> {
        let oldest = inner.kept.iter().enumerate().min_by_key(|(_, block)| block.used);
        let Some((at, _)) = oldest.filter(|_| inner.kept.len() == KEPT_BLOCKS) else {
            return Ok(vec![0; BLOCK_BYTES]);
        };
        let block = inner.kept.swap_remove(at);
        if block.changed {
            if let Err(code) = self.seal(inner, block.number, &block.bytes) {
                inner.kept.push(block);
                return Err(code);
            }
        }
        Ok(block.bytes)
    }

    /// Seals a whole block and holds it.
    fn seal(&self, inner: &mut Inner, number: u64, bytes: &[u8]) -> Outcome<()> {
        let at = number * UNIT_BYTES as u64;
        let again = inner.held.unit(at, UNIT_BYTES).is_some();
        if !again && !inner.held.takes(at, UNIT_BYTES) {
            self.flush(inner)?;
        }
        let Inner { pool, held, .. } = inner;
        let unit = match again {
            true => held.unit_mut(at, UNIT_BYTES).ok_or(Code(ffi::IOERR_WRITE))?,
            false => held.add(at, UNIT_BYTES),
        };
        if let Err(error) = self.key.seal((self.algorithm)(), number, pool, bytes, unit) {
            if !again {
                held.take_back(UNIT_BYTES);
            }
            return Err(code_of(&error));
        }
        inner.mark_sealed(number);
        Ok(())
    }

    /// Writes the held blocks. They stay held after an error.
    fn flush(&self, inner: &mut Inner) -> Outcome<()> {
        if !inner.held.is_empty() {
            self.store.write_units(inner.held.bytes(), inner.held.at())?;
            // An older content of these blocks may have been read ahead.
            let [from, to] = [inner.held.at(), inner.held.end()].map(|at| at / UNIT_BYTES as u64);
            inner.ahead.changed(from, to);
            inner.held.clear();
        }
        Ok(())
    }

    /// Opens a whole block, which is not among the opened ones, into `bytes`.
    fn open(&self, inner: &mut Inner, number: u64, bytes: &mut [u8]) -> Outcome<()> {
        if !inner.is_sealed(number) {
            bytes.fill(0);
            return Ok(());
        }
        let at = number * UNIT_BYTES as u64;
        if inner.held.unit(at, UNIT_BYTES).is_none() {
            self.read_ahead(inner, number)?;
        }
        let unit = inner.held.unit(at, UNIT_BYTES).or_else(|| inner.ahead.unit(number));
        let unit = unit.ok_or(Code(ffi::IOERR_DATA))?;
        let opened = self.key.open(number, unit, bytes);
        opened.map_err(|error| {
            // The next try reads the block from the file again.
            inner.ahead.drop_units();
            let code = code_of(&error);
            pellucid_host::code::note(
                code.0,
                std::path::Path::new("temporary file"),
                &error.to_string(),
            );
            code
        })
    }

    /// Reads a block from the store, and the ones behind it if SQLite reads the blocks in their
    /// order.
    fn read_ahead(&self, inner: &mut Inner, number: u64) -> Outcome<()> {
        if inner.ahead.unit(number).is_some() {
            inner.ahead.took(number);
            return Ok(());
        }
        let wanted = inner.ahead.wants(number, UNIT_BYTES) as u64;
        let stored = |number| {
            inner.is_sealed(number)
                && inner.held.unit(number * UNIT_BYTES as u64, UNIT_BYTES).is_none()
        };
        let count = (number + 1..number + wanted).take_while(|number| stored(*number)).count() + 1;
        let mut fill = |count| {
            let read = |units: &mut [u8]| self.store.read_units(units, number * UNIT_BYTES as u64);
            inner.ahead.fill(number, count, UNIT_BYTES, read)
        };
        let filled = match fill(count) {
            // An error of a later block must not fail this one, which is then read alone.
            Err(_) if count > 1 => fill(1),
            filled => filled,
        };
        match filled? {
            true => Ok(()),
            false => Err(Code(ffi::IOERR_DATA)),
        }
    }
}

impl SqliteFile for TempStore<Lower> {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        TempStore::read(self, buffer, offset)
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        TempStore::write(self, bytes, offset)
    }

    fn truncate(&mut self, size: u64) -> Outcome<()> {
        TempStore::truncate(self, size)
    }

    /// It need not survive a crash.
    fn sync(&mut self, _flags: c_int) -> Outcome<()> {
        Ok(())
    }

    fn size(&mut self) -> Outcome<u64> {
        Ok(TempStore::size(self))
    }

    fn close(&mut self) -> Outcome<()> {
        Ok(())
    }
}

impl Inner {
    /// A block in memory, to write it. One that lies nowhere yet is taken there, if there is room.
    fn in_memory(&mut self, number: u64) -> Option<&mut [u8]> {
        let is_new = self.memory.get(number).is_none();
        match is_new {
            false => self.memory.get_mut(number),
            true if self.is_sealed(number) || self.keeps(number) => None,
            true => self.memory.take(number),
        }
    }

    fn keeps(&self, number: u64) -> bool {
        self.kept.iter().any(|block| block.number == number)
    }

    fn is_sealed(&self, number: u64) -> bool {
        let word = self.sealed.get((number / 64) as usize);
        word.is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    fn mark_sealed(&mut self, number: u64) {
        let word = (number / 64) as usize;
        if self.sealed.len() <= word {
            self.sealed.resize(word + 1, 0);
        }
        self.sealed[word] |= 1 << (number % 64);
    }

    fn forget_sealed(&mut self, from: u64) {
        let word = (from / 64) as usize;
        self.sealed.truncate(word + 1);
        if let Some(last) = self.sealed.get_mut(word) {
            *last &= (1 << (from % 64)) - 1;
        }
    }
}

fn place(offset: u64) -> (u64, usize) {
    (offset / BLOCK_BYTES as u64, (offset % BLOCK_BYTES as u64) as usize)
}

#[cfg(test)]
mod tests;

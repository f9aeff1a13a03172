//! Temporary files: sorter spills, statement journals, temporary and transient databases.
//!
//! Sealed in blocks under a random key that exists only in memory; what SQLite reads and writes has
//! any offset and length. Layout: docs/format.md, "Temporary file".

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;

use pellucid::keys::TemporaryKey;
use pellucid::unit::TAIL_BYTES;
use pellucid::{Error, Result, Subject};

use crate::code::{code_of, Code, Outcome};
use crate::ffi;
use crate::lower::{Lower, ReadEnd};
use crate::pool::Pool;

/// Plaintext bytes of a block.
pub const BLOCK_BYTES: usize = pellucid::unit::TEMPORARY_BLOCK_BYTES;
const UNIT_BYTES: usize = BLOCK_BYTES + TAIL_BYTES;
/// Blocks kept opened, and written back when another needs the place.
const KEPT_BLOCKS: usize = 16;

/// What sealed blocks are stored in.
pub trait Store {
    /// Reads a unit; false if the file ends before it.
    ///
    /// # Errors
    /// The store's code.
    fn read_unit(&self, unit: &mut [u8], offset: u64) -> Outcome<bool>;
    /// Writes a unit.
    ///
    /// # Errors
    /// The store's code.
    fn write_unit(&self, unit: &[u8], offset: u64) -> Outcome<()>;
    /// Cuts the store.
    ///
    /// # Errors
    /// The store's code.
    fn cut(&self, size: u64) -> Outcome<()>;
}

impl Store for Lower {
    fn read_unit(&self, unit: &mut [u8], offset: u64) -> Outcome<bool> {
        Ok(self.read(unit, offset)? == ReadEnd::Full)
    }

    fn write_unit(&self, unit: &[u8], offset: u64) -> Outcome<()> {
        self.write(unit, offset)
    }

    fn cut(&self, size: u64) -> Outcome<()> {
        self.truncate(size)
    }
}

/// An unlinked file of the shim's own.
#[derive(Debug)]
pub struct Scratch(File);

impl Scratch {
    /// Makes one in the directory for temporary files.
    ///
    /// # Errors
    /// [`Error::Io`] if that fails.
    pub fn create() -> Result<Self> {
        let directory = std::env::var_os("SQLITE_TMPDIR")
            .map(std::path::PathBuf::from)
            .unwrap_or_else(std::env::temp_dir);
        let mut random = [0; 8];
        pellucid::secret::fill_random(&mut random)?;
        let path = directory.join(format!("pellucid-{:016x}", u64::from_ne_bytes(random)));
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .and_then(|file| std::fs::remove_file(&path).map(|()| file));
        file.map(Self).map_err(|error| Error::io(Subject::File(path), error))
    }
}

impl Store for Scratch {
    fn read_unit(&self, unit: &mut [u8], offset: u64) -> Outcome<bool> {
        match self.0.read_exact_at(unit, offset) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
            Err(_) => Err(Code(ffi::IOERR_READ)),
        }
    }

    fn write_unit(&self, unit: &[u8], offset: u64) -> Outcome<()> {
        self.0.write_all_at(unit, offset).map_err(|error| {
            let full = error.raw_os_error() == Some(libc::ENOSPC);
            Code(if full { ffi::FULL } else { ffi::IOERR_WRITE })
        })
    }

    fn cut(&self, size: u64) -> Outcome<()> {
        self.0.set_len(size).map_err(|_| Code(ffi::IOERR))
    }
}

/// A sealed byte store with any offset and length.
#[derive(Debug)]
pub struct TempStore<S> {
    store: S,
    key: TemporaryKey,
    inner: RefCell<Inner>,
}

#[derive(Debug)]
struct Inner {
    pool: Pool,
    size: u64,
    /// Blocks ever written to the store; one that was not reads as zeros.
    stored: Vec<u64>,
    kept: Vec<Block>,
    unit: Vec<u8>,
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
    /// An empty store with a key of its own.
    ///
    /// # Errors
    /// [`Error::Io`] if no randomness or memory can be had.
    pub fn new(store: S) -> Result<Self> {
        let inner = Inner {
            pool: Pool::new()?,
            size: 0,
            stored: Vec::new(),
            kept: Vec::new(),
            unit: vec![0; UNIT_BYTES],
            clock: 0,
        };
        Ok(Self { store, key: TemporaryKey::random()?, inner: RefCell::new(inner) })
    }

    /// Reads; zeros behind the end.
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
            let block = self.block(&mut inner, number, false)?;
            inside[done..done + part].copy_from_slice(&block.bytes[within..within + part]);
            done += part;
        }
        Ok(if behind.is_empty() { ReadEnd::Full } else { ReadEnd::Short })
    }

    /// Writes, extending the file where needed.
    ///
    /// # Errors
    /// The store's code.
    pub fn write(&self, bytes: &[u8], offset: u64) -> Outcome<()> {
        let mut inner = self.inner.borrow_mut();
        let mut done = 0;
        while done < bytes.len() {
            let (number, within) = place(offset + done as u64);
            let part = (BLOCK_BYTES - within).min(bytes.len() - done);
            let block = self.block(&mut inner, number, part == BLOCK_BYTES)?;
            block.bytes[within..within + part].copy_from_slice(&bytes[done..done + part]);
            block.changed = true;
            done += part;
        }
        inner.size = inner.size.max(offset + bytes.len() as u64);
        Ok(())
    }

    /// Logical bytes.
    pub fn size(&self) -> u64 {
        self.inner.borrow().size
    }

    /// Cuts or extends the file; what is added reads as zeros.
    ///
    /// # Errors
    /// The store's code.
    pub fn truncate(&self, size: u64) -> Outcome<()> {
        let mut inner = self.inner.borrow_mut();
        if size < inner.size {
            let (last, within) = place(size);
            if within > 0 {
                let block = self.block(&mut inner, last, false)?;
                block.bytes[within..].fill(0);
                block.changed = true;
            }
            let blocks = size.div_ceil(BLOCK_BYTES as u64);
            inner.kept.retain(|block| block.number < blocks);
            inner.forget_stored(blocks);
            self.store.cut(blocks * UNIT_BYTES as u64)?;
        }
        inner.size = size;
        Ok(())
    }

    fn block<'a>(&self, inner: &'a mut Inner, number: u64, whole: bool) -> Outcome<&'a mut Block> {
        inner.clock += 1;
        let used = inner.clock;
        let at = match inner.kept.iter().position(|block| block.number == number) {
            Some(at) => at,
            None => {
                let at = self.make_room(inner)?;
                let block = &mut inner.kept[at];
                block.number = number;
                block.changed = false;
                if whole || !inner.is_stored(number) {
                    inner.kept[at].bytes.fill(0);
                } else if let Err(code) = self.load(inner, at) {
                    inner.kept.swap_remove(at);
                    return Err(code);
                }
                at
            }
        };
        inner.kept[at].used = used;
        Ok(&mut inner.kept[at])
    }

    fn make_room(&self, inner: &mut Inner) -> Outcome<usize> {
        if inner.kept.len() < KEPT_BLOCKS {
            let bytes = vec![0; BLOCK_BYTES];
            inner.kept.push(Block { number: u64::MAX, bytes, changed: false, used: 0 });
            return Ok(inner.kept.len() - 1);
        }
        let oldest = inner.kept.iter().enumerate().min_by_key(|(_, block)| block.used);
        let at = oldest.map_or(0, |(at, _)| at);
        if inner.kept[at].changed {
            let Inner { pool, kept, unit, .. } = inner;
            let block = &mut kept[at];
            self.key
                .seal(block.number, pool, &block.bytes, unit)
                .map_err(|error| code_of(&error))?;
            self.store.write_unit(unit, block.number * UNIT_BYTES as u64)?;
            block.changed = false;
            let number = block.number;
            inner.mark_stored(number);
        }
        inner.kept[at].bytes.fill(0);
        Ok(at)
    }

    fn load(&self, inner: &mut Inner, at: usize) -> Outcome<()> {
        let Inner { kept, unit, .. } = inner;
        let block = &mut kept[at];
        if !self.store.read_unit(unit, block.number * UNIT_BYTES as u64)? {
            return Err(Code(ffi::IOERR_DATA));
        }
        self.key.open(block.number, unit, &mut block.bytes).map_err(|error| {
            let code = code_of(&error);
            crate::code::note(code.0, std::path::Path::new("temporary file"), &error.to_string());
            code
        })
    }
}

impl Inner {
    fn is_stored(&self, number: u64) -> bool {
        let word = self.stored.get((number / 64) as usize);
        word.is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    fn mark_stored(&mut self, number: u64) {
        let word = (number / 64) as usize;
        if self.stored.len() <= word {
            self.stored.resize(word + 1, 0);
        }
        self.stored[word] |= 1 << (number % 64);
    }

    fn forget_stored(&mut self, from: u64) {
        let word = (from / 64) as usize;
        self.stored.truncate(word + 1);
        if let Some(last) = self.stored.get_mut(word) {
            *last &= (1 << (from % 64)) - 1;
        }
    }
}

fn place(offset: u64) -> (u64, usize) {
    (offset / BLOCK_BYTES as u64, (offset % BLOCK_BYTES as u64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the store behaves as a plain file for any offset, length and truncation. Method: the
    /// same seeded operations on a `Vec`.
    #[test]
    fn behaves_as_a_plain_file() {
        let store = TempStore::new(Scratch::create().unwrap()).unwrap();
        let mut model: Vec<u8> = Vec::new();
        let mut seed = 0x5eed_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        for step in 0..20_000u32 {
            let offset = random(300_000);
            let length = random(9_000) as usize;
            match random(10) {
                0 => {
                    store.truncate(offset).unwrap();
                    model.resize(offset as usize, 0);
                }
                1..=5 => {
                    let bytes: Vec<u8> = (0..length).map(|i| (i as u32 ^ step) as u8).collect();
                    let end = offset as usize + length;
                    if model.len() < end {
                        model.resize(end, 0);
                    }
                    model[offset as usize..end].copy_from_slice(&bytes);
                    store.write(&bytes, offset).unwrap();
                }
                _ => {
                    let mut read = vec![1; length];
                    store.read(&mut read, offset).unwrap();
                    let expected: Vec<u8> = (offset as usize..offset as usize + length)
                        .map(|at| model.get(at).copied().unwrap_or(0))
                        .collect();
                    assert!(read == expected, "seed 0x5eed, step {step}");
                }
            }
            assert_eq!(store.size(), model.len() as u64, "step {step}");
        }
    }
}

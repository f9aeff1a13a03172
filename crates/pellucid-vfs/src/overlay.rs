//! The new image of a database whose page size is being changed.
//!
//! `VACUUM` after `PRAGMA page_size` writes pages of the new size in pieces of the old one, and no
//! piece has room for a tail. The overlay gathers them, sealed in a temporary file, until page 1
//! states the new size and the whole database can be sealed under it.

use std::collections::BTreeMap;
use std::ops::Range;

use pellucid::Result;
use pellucid_host::code::Outcome;

use crate::temp_file::{Scratch, TempStore};

/// The bytes written over a database, and the database's new size.
#[derive(Debug)]
pub struct Overlay {
    store: TempStore<Scratch>,
    /// The start and end of each written range. No two ranges touch.
    ranges: BTreeMap<u64, u64>,
    size: u64,
}

/// Bytes of the pieces in which unwritten ranges are given.
const PIECE_BYTES: u64 = 1 << 20;

impl Overlay {
    /// Makes an empty overlay over a database of `size` bytes.
    ///
    /// # Errors
    /// [`pellucid::Error::Io`] if no temporary file can be made.
    pub fn new(size: u64) -> Result<Self> {
        Ok(Self { store: TempStore::new(Scratch::create()?)?, ranges: BTreeMap::new(), size })
    }

    /// The size of the new image in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Writes over the image.
    ///
    /// # Errors
    /// The temporary file's code.
    pub fn write(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        self.store.write(bytes, offset)?;
        let mut added = offset..offset + bytes.len() as u64;
        self.size = self.size.max(added.end);
        let touching: Vec<u64> = self
            .ranges
            .range(..=added.end)
            .rev()
            .take_while(|(_, end)| **end >= added.start)
            .map(|(start, _)| *start)
            .collect();
        for start in touching {
            if let Some(end) = self.ranges.remove(&start) {
                added = added.start.min(start)..added.end.max(end);
            }
        }
        self.ranges.insert(added.start, added.end);
        Ok(())
    }

    /// Whether any byte of a range was written.
    pub fn is_written(&self, range: Range<u64>) -> bool {
        let before_end = self.ranges.range(..range.end).next_back();
        before_end.is_some_and(|(_, end)| *end > range.start)
    }

    /// Reads from the image. `base` reads the bytes that were not overwritten.
    ///
    /// # Errors
    /// The temporary file's code, or that of `base`.
    pub fn read(
        &self,
        buffer: &mut [u8],
        offset: u64,
        mut base: impl FnMut(&mut [u8], u64) -> Outcome<()>,
    ) -> Outcome<()> {
        let end = offset + buffer.len() as u64;
        let mut at = offset;
        while at < end {
            let written = self.ranges.range(..=at).next_back().filter(|(_, stop)| **stop > at);
            let stop = match written {
                Some((_, stop)) => *stop,
                None => self.ranges.range(at..).next().map_or(end, |(start, _)| *start),
            };
            let stop = stop.min(end);
            let part = &mut buffer[(at - offset) as usize..(stop - offset) as usize];
            match written {
                Some(_) => self.store.read(part, at).map(|_| ())?,
                None => base(part, at)?,
            }
            at = stop;
        }
        Ok(())
    }

    /// Cuts or extends the image. Added bytes read as zeros.
    ///
    /// # Errors
    /// The temporary file's code.
    pub fn truncate(&mut self, size: u64) -> Outcome<()> {
        while self.size < size {
            let piece = (size - self.size).min(PIECE_BYTES);
            self.write(&vec![0; piece as usize], self.size)?;
        }
        self.size = size;
        self.ranges.split_off(&size);
        if let Some((_, end)) = self.ranges.iter_mut().next_back() {
            *end = (*end).min(size);
        }
        Ok(())
    }

    /// The ranges that were not overwritten, in pieces.
    pub fn missing(&self) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut at = 0;
        let ends = self.ranges.iter().map(|(start, end)| (*start, *end));
        for (start, end) in ends.chain([(self.size, self.size)]) {
            while at < start {
                let stop = start.min(at + PIECE_BYTES);
                missing.push(at..stop);
                at = stop;
            }
            at = end;
        }
        missing
    }
}

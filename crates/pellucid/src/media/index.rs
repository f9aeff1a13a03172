//! The index of a backup set: the place of each chunk, and the pages that could not be read.
//!
//! A differential is made by the chunks of page hashes. Page tags would not do, because checkpoints
//! and scans seal pages again without changing them.

use crate::error::{Error, Result, Subject};
use crate::fields::Fields;
use crate::flags::check_zeros;

/// Bytes of a page's hash.
pub const PAGE_HASH_BYTES: usize = 16;

/// Bytes of the counts before the entries.
const HEAD_BYTES: usize = 12;
/// Bytes of an entry.
pub const ENTRY_BYTES: usize = 44;

/// The place of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The family, from 1.
    pub family: u16,
    /// The offset of its prefix from the start of the set in that family, in bytes.
    pub offset: u64,
    /// Bytes behind the prefix.
    pub stored_bytes: u32,
    /// Its first page.
    pub first_page: u32,
    /// The number of pages.
    pub pages: u32,
    /// The checksum in its prefix.
    pub checksum: [u8; 16],
}

/// The index of a set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// The chunks of pages in the order of their numbers.
    pub chunks: Vec<Entry>,
    /// The chunks of page hashes, in a log set of commits, in the order of their numbers; empty in a differential.
    pub hashes: Vec<Entry>,
    /// Pages that could not be read; the set has zeros instead.
    pub missing: Vec<u32>,
}

impl Index {
    /// Encodes the bytes of the index chunks.
    pub fn encode(&self) -> Vec<u8> {
        let entries = self.chunks.len() + self.hashes.len();
        let mut out =
            Vec::with_capacity(HEAD_BYTES + entries * ENTRY_BYTES + self.missing.len() * 4);
        for count in [self.chunks.len(), self.hashes.len(), self.missing.len()] {
            out.extend_from_slice(&(count as u32).to_be_bytes());
        }
        for entry in self.chunks.iter().chain(&self.hashes) {
            out.extend_from_slice(&entry.family.to_be_bytes());
            out.extend_from_slice(&[0; 6]);
            out.extend_from_slice(&entry.offset.to_be_bytes());
            for number in [entry.stored_bytes, entry.first_page, entry.pages] {
                out.extend_from_slice(&number.to_be_bytes());
            }
            out.extend_from_slice(&entry.checksum);
        }
        for page in &self.missing {
            out.extend_from_slice(&page.to_be_bytes());
        }
        out
    }

    /// Parses an index.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if its fields do not fit, [`Error::Unsupported`] for a byte in use that is zero in this version.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let index = Self::parse_fields(&mut Fields::new(bytes))
            .ok_or_else(|| Error::corrupt(Subject::Index, "its fields are malformed"))?;
        let entries = index.chunks.len() + index.hashes.len();
        let starts = (0..entries).map(|entry| HEAD_BYTES + entry * ENTRY_BYTES);
        check_zeros(bytes, starts.map(|at| at + 2..at + 8), || Subject::Index)?;
        Ok(index)
    }

    fn parse_fields(fields: &mut Fields<'_>) -> Option<Self> {
        let (chunks, hashes, missing) = (fields.u32()?, fields.u32()?, fields.u32()?);
        // The counts are checked before memory is allocated for them.
        let bytes =
            (u64::from(chunks) + u64::from(hashes)) * ENTRY_BYTES as u64 + u64::from(missing) * 4;
        if bytes != fields.rest().len() as u64 {
            return None;
        }
        let mut entries = |count| (0..count).map(|_| Entry::parse(fields)).collect::<Option<_>>();
        let (chunks, hashes) = (entries(chunks)?, entries(hashes)?);
        let missing = (0..missing).map(|_| fields.u32()).collect::<Option<_>>()?;
        Some(Self { chunks, hashes, missing })
    }
}

impl Entry {
    fn parse(fields: &mut Fields<'_>) -> Option<Self> {
        let family = fields.u16()?;
        fields.take(6)?;
        Some(Self {
            family,
            offset: fields.u64()?,
            stored_bytes: fields.u32()?,
            first_page: fields.u32()?,
            pages: fields.u32()?,
            checksum: fields.array()?,
        })
    }
}

/// Computes the hash of a page, by which a differential finds the changed pages.
pub fn page_hash(key: &[u8; 32], page: &[u8]) -> [u8; PAGE_HASH_BYTES] {
    let mut hash = [0; PAGE_HASH_BYTES];
    blake3::Hasher::new_keyed(key).update(page).finalize_xof().fill(&mut hash);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back_and_no_length_is_believed() {
        let entry = Entry {
            family: 2,
            offset: 9,
            stored_bytes: 8,
            first_page: 1,
            pages: 256,
            checksum: [3; 16],
        };
        let index = Index { chunks: vec![entry; 3], hashes: vec![entry], missing: vec![17] };
        let bytes = index.encode();
        assert_eq!(Index::parse(&bytes).unwrap(), index);
        for length in 0..bytes.len() {
            assert!(Index::parse(&bytes[..length]).is_err(), "{length}");
        }
        assert!(Index::parse(&[0xff; 12]).is_err());
    }
}

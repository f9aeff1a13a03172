//! Which pages commits have changed since the last full backup: what a differential reads in the place of every page.

use crate::error::{Error, Result, Subject};
use crate::fields::Fields;
use crate::flags::check_zeros;
use crate::hash::Sha256;
use crate::keys::HeaderKey;
use crate::lsn::Lsn;

/// Bytes before the bits.
pub const CHANGED_HEAD_BYTES: usize = 512;

const MAGIC: &[u8; 8] = b"PELPAGE\0";
const VERSION: u32 = 1;
const FIELDS_END: usize = 136;
const MAC_AT: usize = CHANGED_HEAD_BYTES - 32;

/// The pages that log sets behind a full backup have. More may be among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPages {
    /// The file id of the database.
    pub file_id: [u8; 16],
    /// The recovery fork.
    pub fork: [u8; 16],
    /// SHA-256 of the full backup's manifest.
    pub base: [u8; 32],
    /// Commits behind this one are counted.
    pub from: Lsn,
    /// Commits up to this one are.
    pub upto: Lsn,
    /// The fewest pages that the database had meanwhile: what lay behind them was cut off.
    pub least: u32,
    /// A bit for each page, page 1 first, from the highest bit of a byte on.
    bits: Vec<u8>,
}

impl ChangedPages {
    /// No page is changed since the full backup with this manifest, which has all up to `from`.
    pub fn none(file_id: [u8; 16], fork: [u8; 16], base: [u8; 32], from: Lsn) -> Self {
        Self { file_id, fork, base, from, upto: from, least: u32::MAX, bits: Vec::new() }
    }

    /// Adds a page.
    pub fn add(&mut self, page: u32) {
        let Some(at) = page.checked_sub(1) else { return };
        let byte = (at / 8) as usize;
        if byte >= self.bits.len() {
            self.bits.resize(byte + 1, 0);
        }
        self.bits[byte] |= 0x80 >> (at % 8);
    }

    /// Whether a page may be another one than in the full backup. One that was cut off in between is not what it was.
    pub fn has(&self, page: u32) -> bool {
        let Some(at) = page.checked_sub(1) else { return false };
        let byte = self.bits.get((at / 8) as usize).copied().unwrap_or(0);
        page > self.least || byte & (0x80 >> (at % 8)) != 0
    }

    /// How many were added.
    pub fn count(&self) -> u32 {
        self.bits.iter().map(|byte| byte.count_ones()).sum()
    }

    /// Encodes it.
    pub fn encode(&self, key: &HeaderKey) -> Vec<u8> {
        let mut out = Vec::with_capacity(CHANGED_HEAD_BYTES + self.bits.len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&(self.bits.len() as u32).to_be_bytes());
        out.extend_from_slice(&self.file_id);
        out.extend_from_slice(&self.fork);
        out.extend_from_slice(&self.base);
        out.extend_from_slice(&self.upto.encode());
        out.extend_from_slice(&self.least.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        let mut of_bits = Sha256::new();
        of_bits.update(&self.bits);
        out.extend_from_slice(&of_bits.finish());
        out.extend_from_slice(&self.from.encode());
        out.resize(MAC_AT, 0);
        let mac = key.sign(&[&out]);
        out.extend_from_slice(&mac);
        out.extend_from_slice(&self.bits);
        out
    }

    /// Parses it. It has to be authentic under one of the keys.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if it is not, [`Error::Unsupported`] if a newer version wrote it.
    pub fn parse<'a>(bytes: &[u8], keys: impl IntoIterator<Item = &'a HeaderKey>) -> Result<Self> {
        let other = |what: &'static str| Error::unauthentic(Subject::LogArchive, what);
        let (head, bits) = bytes
            .split_first_chunk::<CHANGED_HEAD_BYTES>()
            .ok_or_else(|| other("its list of changed pages is cut"))?;
        let is_authentic =
            keys.into_iter().any(|key| key.verify(&[&head[..MAC_AT]], &head[MAC_AT..]));
        if !is_authentic || head[..8] != MAGIC[..] {
            return Err(other("its list of changed pages is not authentic"));
        }
        let mut fields = Fields::new(&head[8..]);
        let version = fields.u32().unwrap_or(0);
        if version != VERSION {
            return Err(Error::unsupported(
                Subject::LogArchive,
                format!("version {version} of a list of changed pages is not known to this version of pellucid"),
            ));
        }
        check_zeros(head, [92..96, FIELDS_END..MAC_AT], || Subject::LogArchive)?;
        let mut read = || {
            let length = fields.u32()?;
            let file_id = fields.array()?;
            let (fork, base) = (fields.array()?, fields.array()?);
            let (upto, least) = (Lsn::decode(fields.array()?), fields.u32()?);
            fields.take(4)?;
            let of_bits: [u8; 32] = fields.array()?;
            let from = Lsn::decode(fields.array()?);
            let mut found = Sha256::new();
            found.update(bits);
            let is_whole = length as usize == bits.len() && found.finish() == of_bits;
            is_whole.then(|| Self { file_id, fork, base, from, upto, least, bits: bits.to_vec() })
        };
        read().ok_or_else(|| other("its list of changed pages is not the one that was written"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::{Dek, Secret32};

    fn key(byte: u8) -> HeaderKey {
        HeaderKey::derive(&Dek::from_secret(Secret32::new(&mut [byte; 32])), &[9; 16]).unwrap()
    }

    #[test]
    fn it_reads_back_under_any_key_of_the_header_and_each_flip_is_seen() {
        let mut changed = ChangedPages::none([1; 16], [2; 16], [3; 32], Lsn::new(4, 5));
        [1, 9, 30].into_iter().for_each(|page| changed.add(page));
        changed.least = 40;
        changed.upto = Lsn::new(6, 7);
        let bytes = changed.encode(&key(1));
        let parse = |bytes: &[u8]| ChangedPages::parse(bytes, [&key(2), &key(1)]);
        assert_eq!(parse(&bytes).unwrap(), changed);
        assert!(ChangedPages::parse(&bytes, [&key(2)]).is_err());
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&flipped).is_err(), "bit {bit}");
        }
        for end in [0, 511, bytes.len() - 1] {
            assert!(parse(&bytes[..end]).is_err(), "{end}");
        }
        assert!(parse(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn a_page_that_was_cut_off_in_between_is_not_what_it_was() {
        let mut changed = ChangedPages::none([1; 16], [2; 16], [3; 32], Lsn::NONE);
        [1, 8, 9].into_iter().for_each(|page| changed.add(page));
        let all =
            |changed: &ChangedPages| (0..=12).filter(|page| changed.has(*page)).collect::<Vec<_>>();
        assert_eq!(all(&changed), [1, 8, 9]);
        changed.least = 10;
        assert_eq!((all(&changed), changed.count()), (vec![1, 8, 9, 11, 12], 3));
    }
}

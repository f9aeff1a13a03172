//! A chunk: a prefix in clear, then a stretch of pages or a part of the index, compressed, then sealed.

use super::keys::SetKeys;
use super::MediaVersion;
use crate::cipher::{Cipher, NONCE_BYTES, TAG_BYTES};
use crate::error::{Error, Result, Subject};
use crate::fields::Fields;

/// Bytes of a chunk's prefix.
pub const PREFIX_BYTES: usize = 48;
/// Bytes of pages in a chunk, before compression.
pub const CHUNK_BYTES: usize = 1 << 20;
/// The most bytes of a chunk, before compression or as stored: what a reader allocates memory for.
pub const MOST_CHUNK_BYTES: usize = 4 << 20;

const MAGIC: &[u8; 4] = b"PCHK";
const SUM_AT: usize = 32;
const SUM_BYTES: usize = PREFIX_BYTES - SUM_AT;

/// The kind of a chunk's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ChunkKind {
    /// Pages one after the other.
    Pages = 1,
    /// A list of page numbers, then these pages.
    ListedPages = 2,
    /// A part of the index.
    Index = 3,
    /// The hashes of a stretch of pages ([`super::page_hash`]).
    PageHashes = 4,
    /// A list of page numbers, each with the place of a commit among the set's, then these pages. Only log sets have it.
    LogPages = 5,
    /// A part of the list of commits ([`super::LogCommit`]). Only log sets have it.
    Commits = 6,
    /// Zeros, so that the set has the length of a size class. Only sets of version 2 that say so have it.
    Padding = 7,
}

impl ChunkKind {
    /// Each of them.
    pub const ALL: [Self; 7] = [
        Self::Pages,
        Self::ListedPages,
        Self::Index,
        Self::PageHashes,
        Self::LogPages,
        Self::Commits,
        Self::Padding,
    ];

    /// Whether its content has pages, which may be compressed and without tails.
    pub const fn has_pages(self) -> bool {
        matches!(self, Self::Pages | Self::ListedPages | Self::LogPages)
    }

    /// Whether sets of `version` may have it: version 1 has no log sets.
    const fn is_in(self, version: MediaVersion) -> bool {
        matches!(version, MediaVersion::Two) || !matches!(self, Self::LogPages | Self::Commits)
    }
}

/// Kinds that no version uses yet. They are refused by name.
pub const RESERVED_KINDS: [u8; 1] = [8];
/// Those of version 1.
const RESERVED_KINDS_1: [u8; 3] = [ChunkKind::LogPages as u8, ChunkKind::Commits as u8, 8];

/// How a chunk's content is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stored {
    /// As it is.
    Raw = 0,
    /// A Zstandard frame.
    Zstd = 1,
    /// An LZ4 block.
    Lz4 = 2,
}

/// The prefix of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkPrefix {
    /// The kind of its content.
    pub kind: ChunkKind,
    /// How the content is stored.
    pub stored: Stored,
    /// Whether the tails of its pages are left out. They are zeros in sealed pages.
    pub without_tails: bool,
    /// Its number among the set's chunks of pages, of page hashes, of commits or of the index; from 0. A differential leaves out
    /// numbers.
    pub number: u64,
    /// Its first page.
    pub first_page: u32,
    /// How many pages it has.
    pub pages: u32,
    /// Bytes of its content.
    pub content_bytes: u32,
    /// Bytes stored behind the prefix, the tag included.
    pub stored_bytes: u32,
}

impl ChunkPrefix {
    /// Seals the compressed content in `body`, in place. Returns the prefix with the checksum of
    /// both.
    ///
    /// # Errors
    /// [`Error::LimitReached`] for a chunk that no reader would take.
    pub fn seal(
        &mut self,
        keys: Option<&SetKeys>,
        body: &mut Vec<u8>,
    ) -> Result<[u8; PREFIX_BYTES]> {
        let tail = if keys.is_some() { TAG_BYTES } else { 0 };
        if body.len() + tail > MOST_CHUNK_BYTES {
            return Err(Error::limit(
                self.subject(),
                format!(
                    "it has {} bytes; at most {MOST_CHUNK_BYTES} are allowed",
                    body.len() + tail
                ),
            ));
        }
        self.stored_bytes = (body.len() + tail) as u32;
        let mut prefix = [0; PREFIX_BYTES];
        self.encode(&mut prefix);
        if let Some(keys) = keys {
            let tag = self.cipher(keys).seal_in_place(&self.nonce(), &aad(keys, &prefix), body)?;
            body.extend_from_slice(&tag);
        }
        let sum = checksum(&prefix, body);
        prefix[SUM_AT..].copy_from_slice(&sum);
        Ok(prefix)
    }

    /// Opens a stored body in place, to the compressed content. The caller has checked the
    /// checksum.
    ///
    /// # Errors
    /// [`Error::Unauthentic`], which names the chunk; `body` is emptied then.
    pub fn open(
        &self,
        keys: Option<&SetKeys>,
        prefix: &[u8; PREFIX_BYTES],
        body: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(keys) = keys else { return Ok(()) };
        let unauthentic =
            || Error::unauthentic(self.subject(), "authentication tag does not match");
        let tag: [u8; TAG_BYTES] = *body.last_chunk().ok_or_else(unauthentic)?;
        body.truncate(body.len() - TAG_BYTES);
        let opened = self.cipher(keys).open_in_place(&self.nonce(), &aad(keys, prefix), body, &tag);
        opened.map_err(|_| {
            body.clear();
            unauthentic()
        })
    }

    /// Checks that the stored bytes are those that were written. This does not say who wrote them.
    ///
    /// # Errors
    /// [`Error::Corrupt`], which names the chunk.
    pub fn check(&self, prefix: &[u8; PREFIX_BYTES], body: &[u8]) -> Result<()> {
        if body.len() == self.stored_bytes as usize && checksum(prefix, body) == prefix[SUM_AT..] {
            return Ok(());
        }
        Err(Error::corrupt(self.subject(), "damaged: its checksum does not match"))
    }

    fn encode(&self, prefix: &mut [u8; PREFIX_BYTES]) {
        prefix[..4].copy_from_slice(MAGIC);
        prefix[4] = self.kind as u8;
        prefix[5] = self.stored as u8;
        prefix[6] = self.without_tails.into();
        prefix[8..16].copy_from_slice(&self.number.to_be_bytes());
        let numbers = [self.first_page, self.pages, self.content_bytes, self.stored_bytes];
        for (field, number) in prefix[16..32].chunks_exact_mut(4).zip(numbers) {
            field.copy_from_slice(&number.to_be_bytes());
        }
    }

    /// Whether a chunk begins with `bytes`.
    pub fn begins(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// Parses a prefix. `None` if it is damaged or no prefix of a chunk. Its checksum is checked
    /// with the body.
    pub fn parse(prefix: &[u8; PREFIX_BYTES]) -> Option<Self> {
        let mut fields = Fields::new(prefix);
        if fields.array().as_ref() != Some(MAGIC) {
            return None;
        }
        let [kind, stored, without_tails] = fields.array()?;
        fields.zeros(1)?;
        let forms = [Stored::Raw, Stored::Zstd, Stored::Lz4];
        let parsed = Self {
            kind: ChunkKind::ALL.into_iter().find(|known| *known as u8 == kind)?,
            stored: forms.into_iter().find(|known| *known as u8 == stored)?,
            without_tails: without_tails == 1,
            number: fields.u64()?,
            first_page: fields.u32()?,
            pages: fields.u32()?,
            content_bytes: fields.u32()?,
            stored_bytes: fields.u32()?,
        };
        let most = MOST_CHUNK_BYTES as u32;
        if without_tails > u8::from(parsed.kind.has_pages()) {
            return None;
        }
        (parsed.content_bytes <= most && parsed.stored_bytes <= most).then_some(parsed)
    }

    /// Parses the prefix of a chunk of a set of `version`. `None` also for a kind that this version does not have.
    pub fn parse_in(version: MediaVersion, prefix: &[u8; PREFIX_BYTES]) -> Option<Self> {
        Self::parse(prefix).filter(|parsed| parsed.kind.is_in(version))
    }

    /// The stored bytes of a chunk that [`ChunkPrefix::parse_in`] refuses, if it may be a newer version's.
    pub fn newer_bytes(version: MediaVersion, prefix: &[u8; PREFIX_BYTES]) -> Option<usize> {
        let stored = u32::from_be_bytes(*prefix[28..].first_chunk()?) as usize;
        let is_refused = Self::parse_in(version, prefix).is_none();
        (Self::begins(prefix) && is_refused && stored <= MOST_CHUNK_BYTES).then_some(stored)
    }

    /// The error of a chunk that [`ChunkPrefix::parse_in`] refuses although its checksum is right, so
    /// that it is no damage.
    pub fn newer(version: MediaVersion, prefix: &[u8; PREFIX_BYTES], body: &[u8]) -> Option<Error> {
        if checksum(prefix, body) != prefix[SUM_AT..] {
            return None;
        }
        let subject =
            || Subject::Chunk(u64::from_be_bytes(*prefix[8..].first_chunk().unwrap_or(&[0; 8])));
        let kind = prefix[4];
        let reserved: &[u8] = match version {
            MediaVersion::One => &RESERVED_KINDS_1,
            MediaVersion::Two => &RESERVED_KINDS,
        };
        let known = |known: &ChunkKind| known.is_in(version) && *known as u8 == kind;
        Some(match ChunkKind::ALL.iter().any(known) {
            false => Error::unknown(subject(), "kind", kind, reserved),
            true => Error::unsupported(
                subject(),
                "its prefix has values that this version does not know: a newer version of \
                 pellucid made it",
            ),
        })
    }

    /// Reads the checksum in `prefix`.
    pub fn checksum_of(prefix: &[u8; PREFIX_BYTES]) -> [u8; SUM_BYTES] {
        let mut sum = [0; SUM_BYTES];
        sum.copy_from_slice(&prefix[SUM_AT..]);
        sum
    }

    /// The subject of errors about the chunk.
    pub fn subject(&self) -> Subject {
        match self.kind {
            ChunkKind::Pages | ChunkKind::ListedPages | ChunkKind::LogPages => {
                Subject::Chunk(self.number)
            }
            ChunkKind::Index | ChunkKind::PageHashes => Subject::Index,
            ChunkKind::Commits => Subject::Commits,
            ChunkKind::Padding => Subject::Padding,
        }
    }

    fn cipher<'a>(&self, keys: &'a SetKeys) -> &'a Cipher {
        match self.kind.has_pages() {
            true => keys.pages(),
            false => keys.index(),
        }
    }

    /// Makes the nonce. A set key seals each number once for each kind, whose byte is in the nonce.
    fn nonce(&self) -> [u8; NONCE_BYTES] {
        let mut nonce = [0; NONCE_BYTES];
        nonce[0] = self.kind as u8;
        nonce[4..].copy_from_slice(&self.number.to_be_bytes());
        nonce
    }
}

/// Makes the AAD: the set and all of the prefix but its checksum.
fn aad(keys: &SetKeys, prefix: &[u8; PREFIX_BYTES]) -> [u8; 16 + SUM_AT] {
    let mut aad = [0; 16 + SUM_AT];
    aad[..16].copy_from_slice(keys.set());
    aad[16..].copy_from_slice(&prefix[..SUM_AT]);
    aad
}

fn checksum(prefix: &[u8; PREFIX_BYTES], body: &[u8]) -> [u8; SUM_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&prefix[..SUM_AT]).update(body);
    let mut sum = [0; SUM_BYTES];
    hasher.finalize_xof().fill(&mut sum);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::{Dek, Secret32};
    use crate::Algorithm;

    fn keys(algorithm: Algorithm) -> SetKeys {
        let key = Dek::from_secret(Secret32::new(&mut [9; 32]));
        SetKeys::derive(&key, &[2; 16], algorithm).unwrap()
    }

    fn prefix(kind: ChunkKind) -> ChunkPrefix {
        ChunkPrefix {
            kind,
            stored: Stored::Raw,
            without_tails: false,
            number: 7,
            first_page: 1793,
            pages: 1,
            content_bytes: 100,
            stored_bytes: 0,
        }
    }

    #[test]
    fn a_chunk_opens_and_every_flipped_bit_of_it_is_seen_with_the_key_and_without() {
        for algorithm in Algorithm::OF_SETS {
            let keys = keys(algorithm);
            let mut body = vec![5; 100];
            let bytes = prefix(ChunkKind::Pages).seal(Some(&keys), &mut body).unwrap();
            let parsed = ChunkPrefix::parse(&bytes).unwrap();
            parsed.check(&bytes, &body).unwrap();
            let mut opened = body.clone();
            parsed.open(Some(&keys), &bytes, &mut opened).unwrap();
            assert_eq!(opened, vec![5; 100]);
            for bit in 0..(PREFIX_BYTES + body.len()) * 8 {
                let (mut bytes, mut body) = (bytes, body.clone());
                match bit / 8 {
                    byte if byte < PREFIX_BYTES => bytes[byte] ^= 1 << (bit % 8),
                    byte => body[byte - PREFIX_BYTES] ^= 1 << (bit % 8),
                }
                let Some(parsed) = ChunkPrefix::parse(&bytes) else { continue };
                assert!(parsed.check(&bytes, &body).is_err(), "bit {bit}: checksum");
                let sum_only = bit / 8 >= SUM_AT && bit / 8 < PREFIX_BYTES;
                let opened = parsed.open(Some(&keys), &bytes, &mut body);
                assert_eq!(opened.is_ok(), sum_only, "{algorithm}, bit {bit}: tag");
            }
        }
    }

    #[test]
    fn pages_and_index_and_two_sets_have_keys_of_their_own() {
        let one = keys(Algorithm::Aes256);
        let key = Dek::from_secret(Secret32::new(&mut [9; 32]));
        let other = SetKeys::derive(&key, &[3; 16], Algorithm::Aes256).unwrap();
        let mut sealed = Vec::new();
        for (keys, kind) in
            [(&one, ChunkKind::Pages), (&one, ChunkKind::Index), (&other, ChunkKind::Pages)]
        {
            let mut body = vec![0; 64];
            prefix(kind).seal(Some(keys), &mut body).unwrap();
            assert!(!sealed.contains(&body[..64].to_vec()));
            sealed.push(body[..64].to_vec());
        }
    }
}

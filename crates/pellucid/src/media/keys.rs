//! The keys of one backup set, all derived from its set key.
//!
//! Derivations: docs/format.md, "Backup media". A set key seals one set and nothing else, so that
//! chunk numbers can be nonces. A repeated backup makes a new set with a key of its own.

use zeroize::Zeroizing;

use crate::algorithm::Algorithm;
use crate::cipher::Cipher;
use crate::derive::hkdf_sha256;
use crate::error::Result;
use crate::keys::HeaderKey;
use crate::secret::Dek;

/// The ciphers of one backup set.
#[derive(Debug)]
pub struct SetKeys {
    set: [u8; 16],
    header: HeaderKey,
    pages: Cipher,
    index: Cipher,
    description: Cipher,
    page_hash: Zeroizing<[u8; 32]>,
}

impl SetKeys {
    /// Derives the ciphers.
    ///
    /// # Errors
    /// None in practice: the lengths are constant.
    pub fn derive(key: &Dek, set: &[u8; 16], algorithm: Algorithm) -> Result<Self> {
        let cipher = |what: &[u8], algorithm: Algorithm| {
            let mut derived = Zeroizing::new([0u8; 32]);
            let derived = &mut derived[..Cipher::key_bytes(algorithm)];
            hkdf_sha256(key.expose(), set, &[what, &[algorithm.id()]], derived)?;
            Cipher::new(algorithm, derived)
        };
        let mut page_hash = Zeroizing::new([0u8; 32]);
        hkdf_sha256(key.expose(), set, &[b"pellucid/1 backup page hash"], &mut page_hash[..])?;
        let mut header = Zeroizing::new([0u8; 32]);
        hkdf_sha256(key.expose(), set, &[b"pellucid/1 backup header"], &mut header[..])?;
        Ok(Self {
            set: *set,
            header: HeaderKey::new(&header[..]),
            pages: cipher(b"pellucid/1 backup pages", algorithm)?,
            index: cipher(b"pellucid/1 backup index", algorithm)?,
            description: cipher(b"pellucid/1 backup description", algorithm)?,
            page_hash,
        })
    }

    /// The set that the keys belong to.
    pub fn set(&self) -> &[u8; 16] {
        &self.set
    }

    /// The key that authenticates set headers and manifests.
    pub fn header(&self) -> &HeaderKey {
        &self.header
    }

    /// The cipher of chunks of pages.
    pub(super) fn pages(&self) -> &Cipher {
        &self.pages
    }

    /// The cipher of the index.
    pub(super) fn index(&self) -> &Cipher {
        &self.index
    }

    /// The cipher of the description.
    pub(super) fn description(&self) -> &Cipher {
        &self.description
    }

    /// The key of page hashes.
    pub fn page_hash(&self) -> &[u8; 32] {
        &self.page_hash
    }
}

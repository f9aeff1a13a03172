//! Nonces: where they come from, and what a unit's is made of.

use crate::cipher::NONCE_BYTES;
use crate::error::Result;
use crate::secret::fill_random;

/// Draws nonces that were never drawn before under the same key.
///
/// An implementation that prepares nonces ahead has to drop them in a forked child and whenever the
/// write or checkpoint lock is released: the same nonce twice under one key ends GCM's authenticity.
pub trait NonceSource {
    /// Returns the next nonce: 96 random bits, or the one before counted up (NIST SP 800-38D,
    /// 8.2.2).
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the system's generator fails.
    fn next_nonce(&mut self) -> Result<[u8; NONCE_BYTES]>;
}

/// A source that calls the system's generator for each nonce; right for rare seals.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemNonces;

impl NonceSource for SystemNonces {
    fn next_nonce(&mut self) -> Result<[u8; NONCE_BYTES]> {
        let mut nonce = [0; NONCE_BYTES];
        fill_random(&mut nonce)?;
        Ok(nonce)
    }
}

/// The nonce of one unit: the bytes in its tail, and its place.
///
/// The AES algorithms and 3DES take the drawn bytes alone. AEGIS_256 takes 32 bytes, so that two units repeat one only
/// where both have the same place, generation and drawn bytes.
#[derive(Debug, Clone, Copy)]
pub struct UnitNonce {
    /// The bytes in the tail.
    pub drawn: [u8; NONCE_BYTES],
    /// The generation of the unit.
    pub generation: u32,
    /// The kind of the unit's file.
    pub kind: u8,
    /// Page number, frame number, offset or block number.
    pub position: u64,
}

impl UnitNonce {
    /// The nonce of AEGIS_256: drawn 12, generation 4, kind 1, zero 3, position 8, zero 4 (docs/format.md, "Sealed unit").
    pub(crate) fn aegis(&self) -> [u8; pellucid_aegis::NONCE_BYTES] {
        let mut nonce = [0; pellucid_aegis::NONCE_BYTES];
        nonce[..12].copy_from_slice(&self.drawn);
        nonce[12..16].copy_from_slice(&self.generation.to_be_bytes());
        nonce[16] = self.kind;
        nonce[20..28].copy_from_slice(&self.position.to_be_bytes());
        nonce
    }
}

//! The source of nonces.

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

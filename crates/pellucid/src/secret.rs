//! Secret bytes: zeroized on drop, never printed, compared in constant time.

use std::fmt;
use std::sync::OnceLock;

use aws_lc_rs::hmac;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::error::{Error, Result, Subject};

/// Fills `bytes` from the system's generator.
///
/// # Errors
/// [`Error::Io`] if the generator fails; nothing may be sealed then.
pub fn fill_random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes)
        .map_err(|error| Error::io(Subject::Key("random generator"), std::io::Error::other(error)))
}

/// A value that distinguishes secrets within this process and says nothing about them outside it.
pub(crate) fn identity(secret: &[u8]) -> [u8; 32] {
    static KEY: OnceLock<hmac::Key> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut bytes = Zeroizing::new([0u8; 32]);
        // Without randomness nothing is sealed or opened, so the error is met there.
        let _ = fill_random(&mut bytes[..]);
        hmac::Key::new(hmac::HMAC_SHA256, &bytes[..])
    });
    let mut out = [0; 32];
    out.copy_from_slice(hmac::sign(key, secret).as_ref());
    out
}

/// A 32-byte secret key. `Debug` prints no byte of it; equality takes constant time.
///
/// It is boxed, so that a move leaves no copy behind: the key lies once, where the program's
/// allocator keeps keys.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Secret32(Box<[u8; 32]>);

impl Secret32 {
    /// Takes over `bytes`, and wipes the caller's copy.
    pub fn new(bytes: &mut [u8; 32]) -> Self {
        let mut secret = Self(Box::new([0; 32]));
        secret.0.copy_from_slice(bytes);
        bytes.zeroize();
        secret
    }

    /// Makes a random key.
    ///
    /// # Errors
    /// [`Error::Io`] if the generator fails.
    pub fn random() -> Result<Self> {
        let mut secret = Self(Box::new([0; 32]));
        fill_random(&mut secret.0[..])?;
        Ok(secret)
    }

    /// Copies a slice of exactly 32 bytes. `None` for any other length.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        let mut secret = Self(Box::new([0; 32]));
        if bytes.len() != 32 {
            return None;
        }
        secret.0.copy_from_slice(bytes);
        Some(secret)
    }

    /// Returns the bytes, for a cipher or a derivation only.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Secret32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret32(..)")
    }
}

impl PartialEq for Secret32 {
    fn eq(&self, other: &Self) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(&self.0[..], &other.0[..]).is_ok()
    }
}

impl Eq for Secret32 {}

/// The data encryption key of one database; pages are sealed under keys derived from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dek(Secret32);

impl Dek {
    /// Makes a random DEK.
    ///
    /// # Errors
    /// [`Error::Io`] if the generator fails.
    pub fn random() -> Result<Self> {
        Secret32::random().map(Self)
    }

    /// Makes a DEK of bytes that a protector has just unwrapped.
    pub fn from_secret(secret: Secret32) -> Self {
        Self(secret)
    }

    /// Returns the bytes, for a derivation or for wrapping only.
    pub fn expose(&self) -> &[u8; 32] {
        self.0.expose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_byte_of_a_key() {
        let dek = Dek::from_secret(Secret32::new(&mut [0xAB; 32]));
        let shown = format!("{dek:?}");
        assert!(!shown.to_lowercase().contains("ab,"), "{shown}");
        assert!(!shown.contains("171"), "{shown}");
    }

    #[test]
    fn the_callers_copy_is_wiped() {
        let mut bytes = [7u8; 32];
        let _secret = Secret32::new(&mut bytes);
        assert_eq!(bytes, [0; 32]);
    }
}

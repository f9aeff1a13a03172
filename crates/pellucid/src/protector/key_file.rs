//! A DEK under a raw key from a file.

use zeroize::Zeroizing;

use super::missing::{Closed, Missing};
use super::{unwrap_symmetric, wrap_symmetric, Binding, Wrapped, TYPE_KEY_FILE};
use crate::derive::hkdf_sha256;
use crate::error::Result;
use crate::secret::{fill_random, Dek, Secret32};

const SALT_BYTES: usize = 16;

/// A raw 32-byte key, from a file that only its owner can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFile(Secret32);

impl KeyFile {
    /// Parses the content of a key file: 32 raw bytes, or 64 hexadecimal digits and at most one line
    /// end. `None` for any other content.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if let Some(secret) = Secret32::from_slice(bytes) {
            return Some(Self(secret));
        }
        let digits = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let digits = digits.strip_suffix(b"\r").unwrap_or(digits);
        if digits.len() != 64 {
            return None;
        }
        let mut key = Zeroizing::new([0u8; 32]);
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = (high * 16 + low) as u8;
        }
        Some(Self(Secret32::new(&mut key)))
    }

    /// Makes a random key.
    ///
    /// # Errors
    /// [`Error::Io`] if the generator fails.
    pub fn random() -> Result<Self> {
        Secret32::random().map(Self)
    }

    /// Returns the bytes, to write a new key file.
    pub fn expose(&self) -> &[u8; 32] {
        self.0.expose()
    }

    /// Returns a value that distinguishes key files within this process and does not contain the key.
    pub fn identity(&self) -> [u8; 32] {
        crate::secret::identity(self.0.expose())
    }

    fn kek(&self, salt: &[u8]) -> Result<Secret32> {
        let mut kek = [0; 32];
        hkdf_sha256(self.0.expose(), salt, &[b"pellucid/1 key-file"], &mut kek)?;
        Ok(Secret32::new(&mut kek))
    }
}

/// The payload of a key file protector: salt, wrapped DEK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFileProtector {
    salt: [u8; SALT_BYTES],
    wrapped: Wrapped,
}

impl KeyFileProtector {
    pub(super) fn wrap(dek: &Dek, binding: &Binding<'_>, key: &KeyFile) -> Result<Self> {
        let mut salt = [0; SALT_BYTES];
        fill_random(&mut salt)?;
        let wrapped = wrap_symmetric(&key.kek(&salt)?, TYPE_KEY_FILE, binding, dek)?;
        Ok(Self { salt, wrapped })
    }

    pub(super) fn unwrap(
        &self,
        binding: &Binding<'_>,
        keys: &[KeyFile],
    ) -> std::result::Result<Dek, Closed> {
        for key in keys {
            let kek = key.kek(&self.salt)?;
            if let Some(dek) = unwrap_symmetric(&kek, TYPE_KEY_FILE, binding, &self.wrapped) {
                return Ok(dek);
            }
        }
        Err(Closed::Missing(match keys {
            [] => Missing::KeyFile,
            _ => Missing::WrongKeyFile,
        }))
    }

    pub(super) fn payload(&self) -> Vec<u8> {
        [&self.salt[..], &self.wrapped].concat()
    }

    pub(super) fn parse(payload: &[u8]) -> Option<Self> {
        let (salt, wrapped) = payload.split_at_checked(SALT_BYTES)?;
        Some(Self { salt: salt.try_into().ok()?, wrapped: wrapped.try_into().ok()? })
    }
}

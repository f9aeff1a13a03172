//! The companion of a certificate: an ML-KEM-768 key (FIPS 203) beside its RSA key, so that a key wrapped for both stays secret
//! as long as either holds.
//!
//! Layout: docs/format.md, "Companion key". The certificate's RSA key signs the companion's public half.

use std::fmt;

use zeroize::Zeroizing;

use super::{kem, sha256, Certificate, PublicCertificate};
use crate::error::{Error, Result};
use crate::secret::Secret32;

/// Bytes of the public half (FIPS 203, table 3).
pub const COMPANION_BYTES: usize = 1184;
/// Bytes of the private half, expanded (FIPS 203, table 3).
pub const COMPANION_PRIVATE_BYTES: usize = 2400;
/// Bytes of a ciphertext (FIPS 203, table 3).
pub const COMPANION_CIPHERTEXT_BYTES: usize = 1088;

/// The public half of a companion, signed by the certificate's RSA key.
#[derive(Clone, PartialEq, Eq)]
pub struct Companion {
    added: u64,
    key: Vec<u8>,
    signature: Vec<u8>,
    thumbprint: [u8; 32],
}

impl fmt::Debug for Companion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Companion").field("added", &self.added).finish_non_exhaustive()
    }
}

impl Companion {
    /// Takes a companion apart from its certificate. Nothing is verified before [`PublicCertificate::with_companion`]. `None` if
    /// the key has another length.
    pub fn new(added: u64, key: &[u8], signature: &[u8]) -> Option<Self> {
        (key.len() == COMPANION_BYTES).then(|| Self {
            added,
            key: key.to_vec(),
            signature: signature.to_vec(),
            thumbprint: sha256(key),
        })
    }

    /// When it was added to the certificate, in seconds since 1970.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// The ML-KEM-768 encapsulation key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// RSA-PSS-SHA256 of the certificate.
    pub fn signature(&self) -> &[u8] {
        &self.signature
    }

    /// SHA-256 of the encapsulation key.
    pub fn thumbprint(&self) -> &[u8; 32] {
        &self.thumbprint
    }

    fn signed(&self, certificate: &PublicCertificate) -> Vec<u8> {
        let added = self.added.to_be_bytes();
        [b"pellucid/1 companion", &certificate.thumbprint()[..], &added, &self.key].concat()
    }

    /// Makes a ciphertext and its shared secret.
    pub(crate) fn encapsulate(&self) -> Option<(Vec<u8>, Secret32)> {
        kem::encapsulate(&self.key)
    }
}

impl PublicCertificate {
    /// The companion; `None` for a certificate that wraps by RSA alone.
    pub fn companion(&self) -> Option<&Companion> {
        self.companion.as_deref()
    }

    /// Returns the certificate with this companion.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if the certificate's RSA key did not sign it.
    pub fn with_companion(mut self, companion: Companion) -> Result<Self> {
        self.companion = Some(Box::new(companion));
        self.check_companion()?;
        Ok(self)
    }

    pub(crate) fn check_companion(&self) -> Result<()> {
        match &self.companion {
            Some(own) if !self.verify(&own.signed(self), &own.signature) => {
                Err(Error::unauthentic(
                    self.as_subject(),
                    "its companion key was not signed by it: somebody has put another one there",
                ))
            }
            _ => Ok(()),
        }
    }
}

impl Certificate {
    /// Returns the certificate with a new companion. It counts as not backed up: no backup holds the companion.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it has one, or the key cannot be made.
    pub fn add_companion(self, added: u64) -> Result<Self> {
        if self.public.companion.is_some() {
            return Err(self.public.misuse("it has a companion key"));
        }
        if self.place().is_some() {
            let told =
                "its private key is elsewhere: a companion key beside it would lie in the keyring";
            return Err(self.public.misuse(told));
        }
        let refused = || self.public.misuse("an ML-KEM-768 key cannot be made");
        let (key, private_key) = kem::generate().ok_or_else(refused)?;
        let mut companion = Companion::new(added, &key, b"").ok_or_else(refused)?;
        companion.signature = self.sign(&companion.signed(&self.public))?;
        let mut made = self.with_companion(companion, &private_key)?;
        made.backed_up = None;
        Ok(made)
    }

    /// Returns the certificate with both halves of its companion.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] as [`PublicCertificate::with_companion`]; [`Error::Corrupt`] for a private half of another length.
    pub fn with_companion(mut self, companion: Companion, private_key: &[u8]) -> Result<Self> {
        if private_key.len() != COMPANION_PRIVATE_BYTES {
            let told = "the private half of its companion key is malformed";
            return Err(Error::corrupt(self.public.as_subject(), told));
        }
        self.public = self.public.with_companion(companion)?;
        self.companion_key = Some(Zeroizing::new(private_key.to_vec()));
        Ok(self)
    }

    /// The private half of the companion, expanded. The caller may seal it or export it under a password, and nothing else.
    pub fn companion_key(&self) -> Option<&[u8]> {
        self.companion_key.as_ref().map(|key| &key[..])
    }

    /// The shared secret of `ciphertext`. One that is not of this companion gives another secret and no error (FIPS 203,
    /// implicit rejection).
    pub(crate) fn decapsulate(&self, ciphertext: &[u8]) -> Option<Secret32> {
        kem::decapsulate(self.companion_key()?, ciphertext)
    }

    /// Whether both halves of the companion belong together; true without one.
    pub(super) fn companion_fits(&self) -> bool {
        let Some(companion) = self.public.companion() else { return true };
        let made = companion.encapsulate();
        made.is_some_and(|(ciphertext, secret)| self.decapsulate(&ciphertext) == Some(secret))
    }
}

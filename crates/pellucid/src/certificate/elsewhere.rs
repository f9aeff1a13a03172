//! Private keys that never leave what holds them: a token, a TPM, a key service.
//!
//! They are SQL Server's asymmetric keys of a provider (Extensible Key Management): a public key without a certificate around it,
//! and a name for what signs and decrypts with the other half.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::rsa::PublicEncryptingKey;

use super::{given, sha256, Certificate, Private, PublicCertificate};
use crate::error::{Error, Result, Subject};
use crate::secret::Secret32;
use crate::shown::Shown;

/// The most bytes of a provider's name.
pub const MOST_PROVIDER_BYTES: usize = 32;
/// The most bytes of a key's name.
pub const MOST_KEY_BYTES: usize = 512;
/// 9999-12-31 23:59:59 in seconds since 1970: no end (RFC 5280, 4.1.2.5).
const NO_END: i64 = 253_402_300_799;

/// Where a private key lies: which provider, and how that calls it. Neither is secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPlace {
    provider: String,
    key: String,
}

impl KeyPlace {
    /// A place with a provider of 1 to 32 lower-case letters, digits and `-`, and a key of 1 to 512 printable ASCII characters.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other names.
    pub fn new(provider: &str, key: &str) -> Result<Self> {
        let is_name = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
        let fits = (1..=MOST_PROVIDER_BYTES).contains(&provider.len())
            && provider.bytes().all(is_name)
            && (1..=MOST_KEY_BYTES).contains(&key.len())
            && key.bytes().all(|c| c == b' ' || c.is_ascii_graphic());
        match fits {
            true => Ok(Self { provider: provider.to_owned(), key: key.to_owned() }),
            false => Err(Error::misuse(
                Subject::Key("provider key"),
                "a provider has 1 to 32 lower-case letters, digits or `-`, a key of it 1 to 512 printable ASCII characters",
            )),
        }
    }

    /// The same for people: what stands behind a `?` of a URI, such as where its PIN lies, is nobody's who reads a header.
    pub fn without_query(&self) -> Self {
        let key = self.key.split('?').next().filter(|key| !key.is_empty()).unwrap_or(&self.key);
        Self { provider: self.provider.clone(), key: key.to_owned() }
    }

    /// The provider's name.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The key's name, as the provider takes it.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// `[provider length 1][provider][key length 2][key]`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.provider.len() as u8);
        out.extend_from_slice(self.provider.as_bytes());
        out.extend_from_slice(&(self.key.len() as u16).to_be_bytes());
        out.extend_from_slice(self.key.as_bytes());
    }

    /// Decodes all of `bytes`. None if they do not fit.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first()?;
        let (provider, rest) = rest.split_at_checked(usize::from(*length))?;
        let (length, key) = rest.split_first_chunk::<2>()?;
        if key.len() != usize::from(u16::from_be_bytes(*length)) {
            return None;
        }
        Self::new(std::str::from_utf8(provider).ok()?, std::str::from_utf8(key).ok()?).ok()
    }
}

impl fmt::Display for KeyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in provider `{}`, key `{}`", self.provider, self.key.shown())
    }
}

/// An RSA private key that is elsewhere.
pub trait PrivateKey: fmt::Debug + Send + Sync {
    /// Where.
    fn place(&self) -> &KeyPlace;

    /// Signs by RSA-PSS-SHA256 with a salt of 32 bytes (RFC 8017, 8.1).
    ///
    /// # Errors
    /// [`Error::MissingKey`] where somebody has to act, such as for a PIN or a token that is out; [`Error::Io`] for other trouble.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>>;

    /// Decrypts 32 bytes by RSA-OAEP-SHA256 (RFC 8017, 7.1).
    ///
    /// # Errors
    /// Those of [`PrivateKey::sign`]; [`Error::Unauthentic`] if the key does not open them.
    fn decrypt(&self, wrapped: &[u8], label: &[u8]) -> Result<Secret32>;
}

impl PublicCertificate {
    /// A public key alone, a SubjectPublicKeyInfo in DER (RFC 5280, 4.1.2.7): its thumbprint is the SHA-256 of these bytes.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if it is no RSA key of 2048 to 4096 bits.
    pub fn from_key(name: &str, public_key: &[u8]) -> Result<Self> {
        let subject = || Subject::Certificate(name.to_owned());
        let rsa = PublicEncryptingKey::from_der(public_key)
            .map_err(|_| Error::unsupported(subject(), "its public key is no RSA key"))?;
        let rsa_bits = rsa.key_size_bits();
        given::check_bits(rsa_bits, &subject())?;
        Ok(Self {
            name: name.to_owned(),
            der: public_key.to_vec(),
            thumbprint: sha256(public_key),
            public_key: public_key.to_vec(),
            subject: String::new(),
            not_before: 0,
            not_after: NO_END,
            rsa_bits,
            is_key_alone: true,
            companion: None,
        })
    }

    /// Whether it is a public key without a certificate around it: it has no subject, no issuer and no end.
    pub fn is_key_alone(&self) -> bool {
        self.is_key_alone
    }
}

impl Certificate {
    /// A public key whose private half is elsewhere.
    ///
    /// # Errors
    /// As [`PublicCertificate::from_key`].
    pub fn elsewhere(name: &str, public_key: &[u8], key: Arc<dyn PrivateKey>) -> Result<Self> {
        let public = PublicCertificate::from_key(name, public_key)?;
        Ok(Self { public, private: Private::Elsewhere(key), backed_up: None, companion_key: None })
    }

    /// Where its private key is, if that is not in the keyring.
    pub fn place(&self) -> Option<&KeyPlace> {
        match &self.private {
            Private::Here(..) => None,
            Private::Elsewhere(key) => Some(key.place()),
        }
    }
}

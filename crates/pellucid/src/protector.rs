//! Protectors: how the DEK of a database is wrapped in its container header.
//!
//! Layout: docs/format.md, "Protectors". A header may have several; one is enough to open the
//! database.

mod again;
mod budget;
mod certificate;
mod hybrid;
mod key_file;
mod missing;
mod passphrase;

use std::sync::atomic::AtomicU64;

use aws_lc_rs::constant_time;

pub use budget::{Budget, OPTION as ALLOW_COST};
pub use certificate::CertificateProtector;
pub use key_file::{KeyFile, KeyFileProtector};
pub use passphrase::{Argon2Cost, Passphrase, PassphraseProtector, PASSPHRASE_CHARS_LEAST};

use crate::algorithm::Algorithm;
use crate::certificate::{Certificate, PublicCertificate};
use crate::cipher::Cipher;
use crate::derive::commitment;
use crate::error::{Error, Result, Subject};
use crate::header::{DekRow, Header};
use crate::secret::{fill_random, Dek, Secret32};
use missing::Closed;

/// The most protectors of a header.
pub use crate::header::MAX_PROTECTORS;

/// The purpose of a wrapped key. A protector of one purpose opens for no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// The DEK of a database.
    Database = 1,
    /// The key of a backup set.
    Backup = 2,
    /// The key of an instance's bundle.
    Bundle = 3,
}

/// The facts that a protector is bound to.
#[derive(Debug, Clone, Copy)]
pub struct Binding<'a> {
    /// The purpose of the key.
    pub purpose: Purpose,
    /// The file id, set id or bundle id.
    pub id: &'a [u8; 16],
    /// The algorithm the key is used with.
    pub algorithm: Algorithm,
    /// The commitment to the key ([`commitment`]).
    pub commitment: &'a [u8; 32],
}

impl Binding<'_> {
    /// `purpose ‖ id ‖ algorithm ‖ commitment`.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.purpose as u8];
        bytes.extend_from_slice(self.id);
        bytes.push(self.algorithm.id());
        bytes.extend_from_slice(self.commitment);
        bytes
    }
}

impl DekRow {
    /// The binding of this DEK's protectors in the database with this file id.
    pub fn binding<'a>(&'a self, file_id: &'a [u8; 16]) -> Binding<'a> {
        Binding {
            purpose: Purpose::Database,
            id: file_id,
            algorithm: self.algorithm,
            commitment: &self.commitment,
        }
    }
}

impl Header {
    /// Unwraps the current DEK by the first protector that opens. The caller has to authenticate
    /// the header under it.
    ///
    /// # Errors
    /// As [`unwrap`], and [`Protector::decode`].
    pub fn unwrap(&self, keys: &dyn KeySource) -> Result<Dek> {
        let decode = |bytes: &Vec<u8>| Protector::decode(bytes).map(|(protector, _)| protector);
        let protectors = self.protectors.iter().map(decode).collect::<Result<Vec<_>>>()?;
        unwrap(&protectors, &self.current_dek()?.binding(&self.file_id), keys)
    }
}

/// One wrapped DEK.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protector {
    /// A DEK under a raw key from a file.
    KeyFile(KeyFileProtector),
    /// A DEK under a passphrase, by Argon2id.
    Passphrase(PassphraseProtector),
    /// A DEK under a certificate's public key, or under that and its companion's, signed by its private key.
    Certificate(CertificateProtector),
}

const TYPE_KEY_FILE: u8 = 1;
const TYPE_PASSPHRASE: u8 = 2;
const TYPE_CERTIFICATE: u8 = 3;
const TYPE_PROVIDER_KEY: u8 = 4;
/// A certificate and its companion.
const TYPE_HYBRID: u8 = 5;

/// The only flag. No tag or signature covers the flags, so any other one is refused.
const FLAG_RECOVERY: u8 = 1;

impl Protector {
    /// Appends `[type 1][flags 1][length 2][payload]`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (kind, flags, payload) = match self {
            Protector::KeyFile(p) => (TYPE_KEY_FILE, 0, p.payload()),
            Protector::Passphrase(p) => (TYPE_PASSPHRASE, 0, p.payload()),
            Protector::Certificate(p) if p.place().is_some() => (TYPE_PROVIDER_KEY, 0, p.payload()),
            Protector::Certificate(p) => {
                let kind = if p.is_hybrid() { TYPE_HYBRID } else { TYPE_CERTIFICATE };
                (kind, if p.is_recovery() { FLAG_RECOVERY } else { 0 }, p.payload())
            }
        };
        out.extend_from_slice(&[kind, flags]);
        out.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        out.extend_from_slice(&payload);
    }

    /// Returns the protector's bytes.
    pub fn encoded(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    /// Decodes one protector. The second value is its length in bytes.
    ///
    /// # Errors
    /// [`Error::Unsupported`] naming an unknown type or flag, [`Error::Corrupt`] if the fields do not
    /// fit.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize)> {
        let corrupt = || Error::corrupt(Subject::Container, "a protector's fields are malformed");
        let [kind, flags, high, low, rest @ ..] = bytes else { return Err(corrupt()) };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let payload = rest.get(..length).ok_or_else(corrupt)?;
        let unknown = |what: &str, value: u8, reserved: &[u8]| {
            Error::unknown(Subject::Container, what, value, reserved)
        };
        let protector = match (*kind, *flags) {
            (TYPE_KEY_FILE, 0) => KeyFileProtector::parse(payload).map(Protector::KeyFile),
            (TYPE_PASSPHRASE, 0) => PassphraseProtector::parse(payload).map(Protector::Passphrase),
            (TYPE_CERTIFICATE | TYPE_HYBRID, 0 | FLAG_RECOVERY) => {
                CertificateProtector::parse(payload, *kind, *flags == FLAG_RECOVERY)
                    .map(Protector::Certificate)
            }
            (TYPE_PROVIDER_KEY, 0) => {
                CertificateProtector::parse(payload, *kind, false).map(Protector::Certificate)
            }
            (
                TYPE_KEY_FILE | TYPE_PASSPHRASE | TYPE_CERTIFICATE | TYPE_PROVIDER_KEY
                | TYPE_HYBRID,
                flags,
            ) => return Err(unknown("protector flag", flags, &[])),
            (kind, _) => return Err(unknown("protector type", kind, &[])),
        };
        Ok((protector.ok_or_else(corrupt)?, 4 + length))
    }

    /// The kind's name: `certificate`, `hybrid certificate`, `asymmetric key`, `passphrase` or `key file`.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Protector::KeyFile(_) => "key file",
            Protector::Passphrase(_) => "passphrase",
            Protector::Certificate(p) => p.kind_name(),
        }
    }

    /// Describes the protector in one line for people, without a secret.
    pub fn describe(&self) -> String {
        match self {
            Protector::KeyFile(_) => "a key file".to_owned(),
            Protector::Passphrase(p) => format!("a passphrase ({})", p.cost()),
            Protector::Certificate(p) => p.describe(),
        }
    }
}

/// The key that a DEK is to be wrapped with.
#[derive(Debug)]
pub enum Wrapping<'a> {
    /// A raw key.
    KeyFile(&'a KeyFile),
    /// A passphrase, with the cost of Argon2id.
    Passphrase(&'a Passphrase, Argon2Cost),
    /// A certificate with its private key.
    Certificate(&'a Certificate),
    /// The public half alone: a recovery protector, used only on request.
    Recovery(&'a PublicCertificate),
}

/// Wraps `dek` in a new protector.
///
/// # Errors
/// [`Error::Io`] if no randomness can be had, [`Error::Unsupported`] for a cost above the limits, message 33062 for a
/// passphrase that is too short.
pub fn wrap(dek: &Dek, binding: &Binding<'_>, with: &Wrapping<'_>) -> Result<Protector> {
    match with {
        Wrapping::KeyFile(key) => KeyFileProtector::wrap(dek, binding, key).map(Protector::KeyFile),
        Wrapping::Passphrase(passphrase, cost) => {
            passphrase.check_new()?;
            PassphraseProtector::wrap(dek, binding, passphrase, *cost).map(Protector::Passphrase)
        }
        Wrapping::Certificate(certificate) => {
            CertificateProtector::wrap(dek, binding, certificate).map(Protector::Certificate)
        }
        Wrapping::Recovery(certificate) => {
            CertificateProtector::wrap_recovery(dek, binding, certificate)
                .map(Protector::Certificate)
        }
    }
}

/// The source of keys that open protectors. A function that is not implemented has no key.
pub trait KeySource {
    /// Returns the raw keys at hand.
    fn key_files(&self) -> &[KeyFile] {
        &[]
    }
    /// Returns the passphrases at hand.
    fn passphrases(&self) -> &[Passphrase] {
        &[]
    }
    /// Returns the certificate with this SHA-256 thumbprint, with its private key.
    ///
    /// # Errors
    /// The keyring's error.
    fn certificate(&self, thumbprint_sha256: &[u8; 32]) -> Result<Option<Certificate>> {
        let _ = thumbprint_sha256;
        Ok(None)
    }
    /// Returns the certificate with this SHA-256 thumbprint, with or without its private key.
    ///
    /// # Errors
    /// The keyring's error.
    fn public_certificate(
        &self,
        thumbprint_sha256: &[u8; 32],
    ) -> Result<Option<PublicCertificate>> {
        let found = self.certificate(thumbprint_sha256)?;
        Ok(found.map(|certificate| certificate.public().clone()))
    }
    /// Whether recovery protectors may be used.
    fn allow_recovery(&self) -> bool {
        false
    }
    /// Whether backup sets and bundles by RSA alone open that were made after their certificate got its companion.
    fn allow_classical(&self) -> bool {
        false
    }
    /// Whether passphrases may cost more than a file that is not authentic yet may ask for.
    fn allow_cost(&self) -> bool {
        false
    }
    /// Where the work of passphrases that opened nothing is counted, for a source that is asked about many headers.
    fn wasted_kib(&self) -> Option<&AtomicU64> {
        None
    }
}

/// A source of key files alone.
impl KeySource for Vec<KeyFile> {
    fn key_files(&self) -> &[KeyFile] {
        self
    }
}

/// Unwraps a DEK by one of the protectors. Tries the cheap kinds first, and passphrases by their cost: a dear one that
/// somebody put in keeps none of the others from opening.
///
/// # Errors
/// [`Error::MissingKey`], which names each wrong key and each other way to open the file.
/// [`Error::Unauthentic`] for a protector that was not made by its certificate. The keyring's own
/// error, and [`Error::Unsupported`] for a passphrase above the [`Budget`], only if no other protector opens either.
pub fn unwrap(
    protectors: &[Protector],
    binding: &Binding<'_>,
    keys: &dyn KeySource,
) -> Result<Dek> {
    unwrap_made(protectors, binding, keys, 0)
}

/// Unwraps the key of a backup set or bundle that says it was `made` then, in seconds since 1970. It is refused under a
/// certificate that has had a companion before, if it is wrapped by RSA alone.
///
/// # Errors
/// As [`unwrap`], and [`Error::Unauthentic`] for such a downgrade.
pub fn unwrap_made(
    protectors: &[Protector],
    binding: &Binding<'_>,
    keys: &dyn KeySource,
    made: u64,
) -> Result<Dek> {
    let mut missing = Vec::new();
    let mut trouble = None;
    let mut budget = Budget::shared(keys.allow_cost(), keys.wasted_kib());
    let mut order: Vec<(usize, &Protector)> = (1..).zip(protectors).collect();
    order.sort_by_key(|(_, protector)| match protector {
        Protector::KeyFile(_) => (0, 0),
        Protector::Certificate(_) => (1, 0),
        Protector::Passphrase(p) => (2, p.cost().work_kib()),
    });
    for (number, protector) in order {
        let opened = match protector {
            Protector::KeyFile(p) => p.unwrap(binding, keys.key_files()),
            Protector::Certificate(p) => match p.find(keys) {
                Ok(certificate) => {
                    p.unwrap(binding, &certificate, Some(made).filter(|_| !keys.allow_classical()))
                }
                Err(closed @ Closed::Missing(_)) => Err(closed),
                // The other protectors may still open if the keyring is broken.
                Err(Closed::Trouble(error) | Closed::Failed(error)) => {
                    trouble.get_or_insert(error);
                    continue;
                }
            },
            Protector::Passphrase(p) => {
                // Where there is no passphrase, nothing is derived.
                if !keys.passphrases().is_empty() {
                    let spent = p
                        .check_cost()
                        .and_then(|()| budget.spend(p.cost(), || Subject::Protector(number)));
                    if let Err(error) = spent {
                        trouble.get_or_insert(error);
                        continue;
                    }
                }
                let opened = p.unwrap(binding, keys.passphrases());
                if opened.is_err() && !keys.passphrases().is_empty() {
                    budget.waste(p.cost());
                }
                opened
            }
        };
        match opened {
            Ok(dek) => return check_commitment(dek, binding),
            Err(Closed::Missing(key)) => missing.push(key),
            Err(Closed::Trouble(error)) => {
                trouble.get_or_insert(error);
            }
            Err(Closed::Failed(error)) => return Err(error),
        }
    }
    if let Some(trouble) = trouble {
        return Err(trouble);
    }
    Err(Error::missing_key(Subject::Container, missing::text(&missing, binding.purpose)))
}

fn check_commitment(dek: Dek, binding: &Binding<'_>) -> Result<Dek> {
    let found = commitment(&dek, binding.id)?;
    constant_time::verify_slices_are_equal(&found, binding.commitment).map_err(|_| {
        Error::unauthentic(
            Subject::Container,
            "a protector holds another key than the one the header commits to",
        )
    })?;
    Ok(dek)
}

/// A DEK under a symmetric KEK: nonce 12, ciphertext 32, tag 16.
type Wrapped = [u8; 60];

fn wrap_symmetric(kek: &Secret32, kind: u8, binding: &Binding<'_>, dek: &Dek) -> Result<Wrapped> {
    let cipher = Cipher::new(Algorithm::Aes256, kek.expose())?;
    let mut wrapped = [0; 60];
    let (mut nonce, mut tag) = ([0; 12], [0; 16]);
    fill_random(&mut nonce)?;
    let aad = [&[kind][..], &binding.bytes()].concat();
    cipher.seal(&nonce, &aad, dek.expose(), &mut wrapped[12..44], &mut tag)?;
    wrapped[..12].copy_from_slice(&nonce);
    wrapped[44..].copy_from_slice(&tag);
    Ok(wrapped)
}

fn unwrap_symmetric(
    kek: &Secret32,
    kind: u8,
    binding: &Binding<'_>,
    wrapped: &Wrapped,
) -> Option<Dek> {
    let cipher = Cipher::new(Algorithm::Aes256, kek.expose()).ok()?;
    let (nonce, tag) = (wrapped.first_chunk::<12>()?, wrapped.last_chunk::<16>()?);
    let aad = [&[kind][..], &binding.bytes()].concat();
    let mut dek = [0; 32];
    cipher.open(nonce, &aad, &wrapped[12..44], tag, &mut dek).ok()?;
    Some(Dek::from_secret(Secret32::new(&mut dek)))
}

#[cfg(test)]
mod tests;

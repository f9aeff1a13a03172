//! Protectors: how the DEK of a database is wrapped in its container header.
//!
//! Layout: docs/format.md, "Protectors". Several stand side by side; one is enough to open.

mod again;
mod certificate;
mod key_file;
mod passphrase;

use aws_lc_rs::constant_time;

pub use certificate::CertificateProtector;
pub use key_file::{KeyFile, KeyFileProtector};
pub use passphrase::{Argon2Cost, Passphrase, PassphraseProtector};

use crate::algorithm::Algorithm;
use crate::certificate::{Certificate, PublicCertificate};
use crate::cipher::Cipher;
use crate::derive::commitment;
use crate::error::{Error, Result, Subject};
use crate::header::{DekRow, Header};
use crate::secret::{fill_random, Dek, Secret32};

/// At most so many protectors in a header.
pub use crate::header::MAX_PROTECTORS;

/// What a wrapped key is for; a protector of one purpose opens for no other.
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

/// What a protector is bound to.
#[derive(Debug, Clone, Copy)]
pub struct Binding<'a> {
    /// What the key is for.
    pub purpose: Purpose,
    /// The file id, set id or bundle id.
    pub id: &'a [u8; 16],
    /// The algorithm the key is used with.
    pub algorithm: Algorithm,
    /// What commits to the key ([`commitment`]).
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
    /// What the protectors of this DEK are bound to, in the database with this file id.
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
    /// The current DEK, by the first protector that opens. It authenticates the header, or does not.
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
    /// Under a raw key from a file.
    KeyFile(KeyFileProtector),
    /// Under a passphrase, by Argon2id.
    Passphrase(PassphraseProtector),
    /// Under a certificate's public key, signed by its private key.
    Certificate(CertificateProtector),
}

const TYPE_KEY_FILE: u8 = 1;
const TYPE_PASSPHRASE: u8 = 2;
const TYPE_CERTIFICATE: u8 = 3;
/// Types that no version has given a meaning yet; refused by name.
pub const RESERVED_TYPES: [u8; 2] = [4, 5];

/// The one flag there is; no tag or signature covers it, so any other is refused.
const FLAG_RECOVERY: u8 = 1;

impl Protector {
    /// Appends `[type 1][flags 1][length 2][payload]`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (kind, flags, payload) = match self {
            Protector::KeyFile(p) => (TYPE_KEY_FILE, 0, p.payload()),
            Protector::Passphrase(p) => (TYPE_PASSPHRASE, 0, p.payload()),
            Protector::Certificate(p) => {
                (TYPE_CERTIFICATE, if p.is_recovery() { FLAG_RECOVERY } else { 0 }, p.payload())
            }
        };
        out.extend_from_slice(&[kind, flags]);
        out.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        out.extend_from_slice(&payload);
    }

    /// Its bytes alone.
    pub fn encoded(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    /// Reads one; the second value is its length.
    ///
    /// # Errors
    /// [`Error::Unsupported`] naming an unknown type or flag, [`Error::Corrupt`] if the fields do not
    /// fit.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize)> {
        let corrupt = || Error::corrupt(Subject::Container, "a protector's fields do not fit");
        let [kind, flags, high, low, rest @ ..] = bytes else { return Err(corrupt()) };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let payload = rest.get(..length).ok_or_else(corrupt)?;
        let unknown = |what: &str, value: u8, reserved: &[u8]| {
            Error::unknown(Subject::Container, what, value, reserved)
        };
        let protector = match (*kind, *flags) {
            (TYPE_KEY_FILE, 0) => KeyFileProtector::parse(payload).map(Protector::KeyFile),
            (TYPE_PASSPHRASE, 0) => PassphraseProtector::parse(payload).map(Protector::Passphrase),
            (TYPE_CERTIFICATE, 0 | FLAG_RECOVERY) => {
                CertificateProtector::parse(payload, *flags == FLAG_RECOVERY)
                    .map(Protector::Certificate)
            }
            (TYPE_KEY_FILE | TYPE_PASSPHRASE | TYPE_CERTIFICATE, flags) => {
                return Err(unknown("protector flag", flags, &[]))
            }
            (kind, _) => return Err(unknown("protector type", kind, &RESERVED_TYPES)),
        };
        Ok((protector.ok_or_else(corrupt)?, 4 + length))
    }

    /// `certificate`, `passphrase` or `key file`.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Protector::KeyFile(_) => "key file",
            Protector::Passphrase(_) => "passphrase",
            Protector::Certificate(_) => "certificate",
        }
    }

    /// One line for people; no secret in it.
    pub fn describe(&self) -> String {
        match self {
            Protector::KeyFile(_) => "a key file".to_owned(),
            Protector::Passphrase(p) => format!("a passphrase ({})", p.cost()),
            Protector::Certificate(p) => p.describe(),
        }
    }
}

/// With what a DEK is to be wrapped.
#[derive(Debug)]
pub enum Wrapping<'a> {
    /// A raw key.
    KeyFile(&'a KeyFile),
    /// A passphrase at a cost.
    Passphrase(&'a Passphrase, Argon2Cost),
    /// A certificate with its private key.
    Certificate(&'a Certificate),
    /// The public half alone: a recovery protector, used only when asked for.
    Recovery(&'a PublicCertificate),
}

/// Wraps `dek`.
///
/// # Errors
/// [`Error::Io`] if no randomness can be had, [`Error::Unsupported`] for a cost above the limits.
pub fn wrap(dek: &Dek, binding: &Binding<'_>, with: &Wrapping<'_>) -> Result<Protector> {
    match with {
        Wrapping::KeyFile(key) => KeyFileProtector::wrap(dek, binding, key).map(Protector::KeyFile),
        Wrapping::Passphrase(passphrase, cost) => {
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

/// Where the keys to open a protector come from; what it does not say it has, it does not have.
pub trait KeySource {
    /// Raw keys at hand.
    fn key_files(&self) -> &[KeyFile] {
        &[]
    }
    /// Passphrases at hand.
    fn passphrases(&self) -> &[Passphrase] {
        &[]
    }
    /// The certificate with this SHA-256 thumbprint, with its private key.
    ///
    /// # Errors
    /// What is wrong with the keyring.
    fn certificate(&self, thumbprint_sha256: &[u8; 32]) -> Result<Option<Certificate>> {
        let _ = thumbprint_sha256;
        Ok(None)
    }
    /// The certificate with this SHA-256 thumbprint, with or without its private key.
    ///
    /// # Errors
    /// What is wrong with the keyring.
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
}

/// Key files and nothing else.
impl KeySource for Vec<KeyFile> {
    fn key_files(&self) -> &[KeyFile] {
        self
    }
}

/// Opens one of the protectors, the cheap kinds first.
///
/// # Errors
/// [`Error::MissingKey`] saying for each protector what was missing or wrong;
/// [`Error::Unauthentic`] for a protector that was not made by its certificate. What is wrong with
/// the keyring itself only if no other protector opens either.
pub fn unwrap(
    protectors: &[Protector],
    binding: &Binding<'_>,
    keys: &dyn KeySource,
) -> Result<Dek> {
    let mut reasons = Vec::new();
    let mut trouble = None;
    let mut order: Vec<&Protector> = protectors.iter().collect();
    order.sort_by_key(|protector| match protector {
        Protector::KeyFile(_) => 0,
        Protector::Certificate(_) => 1,
        Protector::Passphrase(_) => 2,
    });
    for protector in order {
        let opened = match protector {
            Protector::KeyFile(p) => p.unwrap(binding, keys.key_files()),
            Protector::Certificate(p) => match p.find(keys) {
                Ok(certificate) => p.unwrap(binding, &certificate),
                Err(missing @ Error::MissingKey { .. }) => Err(missing),
                // A broken keyring is what the other protectors are there for.
                Err(error) => {
                    trouble.get_or_insert(error);
                    continue;
                }
            },
            Protector::Passphrase(p) => p.unwrap(binding, keys.passphrases()),
        };
        match opened {
            Ok(dek) => return check_commitment(dek, binding),
            Err(Error::MissingKey { cause, .. }) => reasons.push(cause.into_owned()),
            Err(error) => return Err(error),
        }
    }
    if let Some(trouble) = trouble {
        return Err(trouble);
    }
    if reasons.is_empty() {
        reasons.push("the header has no protector".to_owned());
    }
    Err(Error::missing_key(Subject::Container, reasons.join("; ")))
}

fn check_commitment(dek: Dek, binding: &Binding<'_>) -> Result<Dek> {
    let found = commitment(&dek, binding.id)?;
    constant_time::verify_slices_are_equal(&found, binding.commitment).map_err(|_| {
        Error::unauthentic(Subject::Container, "a protector brings another key than the header's")
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

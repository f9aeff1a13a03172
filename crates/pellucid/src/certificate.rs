//! X.509 certificates with RSA keys: made here or imported, they wrap DEKs.
//!
//! Libraries implement RSA and X.509 (aws-lc-rs, rcgen, x509-parser). `pellucid-keyring` stores
//! certificates, and `pellucid-exchange` reads and writes other programs' files of them.

mod companion;
mod elsewhere;
mod given;
pub(crate) mod kem;

use std::fmt;
use std::sync::{Arc, OnceLock};

pub use elsewhere::{KeyPlace, PrivateKey};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::rsa::{
    OaepPrivateDecryptingKey, OaepPublicEncryptingKey, PrivateDecryptingKey, PublicEncryptingKey,
    OAEP_SHA256_MGF1SHA256,
};
use aws_lc_rs::signature::{
    RsaKeyPair, UnparsedPublicKey, RSA_PSS_2048_8192_SHA256, RSA_PSS_SHA256,
};
use aws_lc_rs::{digest, rand};
use x509_parser::prelude::{FromDer, X509Certificate};
use zeroize::Zeroizing;

pub use kem::enable_hybrid;

pub use companion::{
    Companion, COMPANION_BYTES, COMPANION_CIPHERTEXT_BYTES, COMPANION_PRIVATE_BYTES,
};

use crate::error::{Error, Result, Subject};
use crate::message;
use crate::secret::{fill_random, Secret32};

/// Bits of a new key.
pub const RSA_BITS_DEFAULT: usize = 3072;
/// Bits SQL Server accepts for an imported key.
pub const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=4096;
/// The longest common name (RFC 5280, ub-common-name).
pub const SUBJECT_CHARS_MOST: usize = 64;
/// Days for which a certificate is valid by default: a year, as SQL Server's.
pub const VALID_DAYS_DEFAULT: i64 = 365;

/// A certificate without its private key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicCertificate {
    name: String,
    der: Vec<u8>,
    thumbprint: [u8; 32],
    /// SubjectPublicKeyInfo, DER.
    pub(crate) public_key: Vec<u8>,
    subject: String,
    not_before: i64,
    not_after: i64,
    rsa_bits: usize,
    /// Whether it is a key alone, without a certificate around it.
    is_key_alone: bool,
    companion: Option<Box<Companion>>,
}

impl PublicCertificate {
    /// Parses a certificate from DER.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is not one; [`Error::Unsupported`] if its key is not RSA of 2048 to
    /// 4096 bits.
    pub fn from_der(name: &str, der: &[u8]) -> Result<Self> {
        let subject = || Subject::Certificate(name.to_owned());
        let (rest, parsed) = X509Certificate::from_der(der)
            .map_err(|_| Error::corrupt(subject(), "not an X.509 certificate in DER"))?;
        if !rest.is_empty() {
            return Err(Error::corrupt(subject(), "bytes behind the certificate"));
        }
        given::check_key(&parsed, &subject())?;
        let public_key = parsed.public_key().raw.to_vec();
        let rsa = PublicEncryptingKey::from_der(&public_key)
            .map_err(|_| Error::unsupported(subject(), "its RSA key cannot be used"))?;
        let rsa_bits = rsa.key_size_bits();
        given::check_bits(rsa_bits, &subject())?;
        Ok(Self {
            name: name.to_owned(),
            der: der.to_vec(),
            thumbprint: sha256(der),
            public_key,
            subject: parsed.subject().to_string(),
            not_before: parsed.validity().not_before.timestamp(),
            not_after: parsed.validity().not_after.timestamp(),
            rsa_bits,
            is_key_alone: false,
            companion: None,
        })
    }

    /// Its name in the keyring.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The certificate, DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// SHA-256 of the DER bytes.
    pub fn thumbprint(&self) -> &[u8; 32] {
        &self.thumbprint
    }

    /// The subject's distinguished name.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The issuer's distinguished name, and the serial number's bytes.
    ///
    /// # Errors
    /// None in practice: the bytes were read as a certificate before.
    pub fn issuer_and_serial(&self) -> Result<(String, Vec<u8>)> {
        if self.is_key_alone {
            return Ok((String::new(), Vec::new()));
        }
        let (_, parsed) = X509Certificate::from_der(&self.der)
            .map_err(|_| Error::corrupt(self.as_subject(), "not an X.509 certificate in DER"))?;
        Ok((parsed.issuer().to_string(), parsed.raw_serial().to_vec()))
    }

    /// Valid from and to, in seconds since 1970.
    pub fn validity(&self) -> (i64, i64) {
        (self.not_before, self.not_after)
    }

    /// SHA-1 of the DER bytes: the thumbprint SQL Server shows. For showing only, never for looking up.
    pub fn sha1_thumbprint(&self) -> [u8; 20] {
        let mut out = [0; 20];
        let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, &self.der);
        out.copy_from_slice(hash.as_ref());
        out
    }

    pub(crate) fn as_subject(&self) -> Subject {
        Subject::Certificate(self.name.clone())
    }

    /// Bits of its RSA key.
    pub fn rsa_bits(&self) -> usize {
        self.rsa_bits
    }

    /// Encrypts `secret` by RSA-OAEP-SHA256 (RFC 8017, 7.1).
    pub(crate) fn encrypt(&self, secret: &[u8], label: &[u8]) -> Result<Vec<u8>> {
        let refused = || self.misuse("its public key refuses to encrypt");
        let key = PublicEncryptingKey::from_der(&self.public_key).map_err(|_| refused())?;
        let key = OaepPublicEncryptingKey::new(key).map_err(|_| refused())?;
        let mut out = vec![0; key.ciphertext_size()];
        key.encrypt(&OAEP_SHA256_MGF1SHA256, secret, &mut out, Some(label))
            .map_err(|_| refused())?;
        Ok(out)
    }

    /// Whether `signature` was made by this certificate's private key, RSA-PSS-SHA256 (RFC 8017,
    /// 8.1).
    pub(crate) fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, &self.public_key)
            .verify(message, signature)
            .is_ok()
    }

    fn misuse(&self, cause: &'static str) -> Error {
        Error::misuse(Subject::Certificate(self.name.clone()), cause)
    }
}

/// A certificate with its private key.
#[derive(Clone)]
pub struct Certificate {
    public: PublicCertificate,
    private: Private,
    /// When the private key was last backed up, in seconds since 1970.
    backed_up: Option<u64>,
    /// The private half of the companion, expanded.
    companion_key: Option<Zeroizing<Vec<u8>>>,
}

/// Where the private key is.
#[derive(Clone)]
enum Private {
    /// PKCS#8, DER. And as it signs, once it has signed: to read it takes a third of the time of a signature, and the first signature
    /// as long as the next two.
    Here(Zeroizing<Vec<u8>>, Arc<OnceLock<RsaKeyPair>>),
    Elsewhere(Arc<dyn PrivateKey>),
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("name", &self.public.name).finish_non_exhaustive()
    }
}

/// The fields of a new certificate.
#[derive(Debug, Clone)]
pub struct CertificateRequest {
    /// Its common name.
    pub subject: String,
    /// Valid from, in seconds since 1970.
    pub not_before: i64,
    /// Valid to, in seconds since 1970.
    pub not_after: i64,
    /// Bits of its RSA key: 2048, 3072 or 4096.
    pub rsa_bits: usize,
    /// Whether it gets a companion, an ML-KEM-768 key.
    pub hybrid: bool,
}

impl CertificateRequest {
    /// Requests an RSA-3072 certificate, valid from now for `days`.
    pub fn new(subject: &str, days: i64) -> Self {
        let now = time::OffsetDateTime::now_utc().unix_timestamp();
        Self {
            subject: subject.to_owned(),
            not_before: now,
            not_after: now.saturating_add(days.saturating_mul(24 * 3600)),
            rsa_bits: RSA_BITS_DEFAULT,
            hybrid: false,
        }
    }
}

impl Certificate {
    /// Makes a self-signed certificate with a new RSA key.
    ///
    /// # Errors
    /// Messages 15213 for a validity that ends before it starts; [`Error::Misuse`] for a subject or key size that is
    /// not possible; [`Error::Io`] if the key cannot be generated.
    pub fn generate(name: &str, request: &CertificateRequest) -> Result<Self> {
        let failed = |cause: rcgen::Error| {
            Error::io(Subject::Certificate(name.to_owned()), std::io::Error::other(cause))
        };
        let misuse =
            |cause: &'static str| Err(Error::misuse(Subject::Certificate(name.to_owned()), cause));
        let size = match request.rsa_bits {
            2048 => rcgen::RsaKeySize::_2048,
            3072 => rcgen::RsaKeySize::_3072,
            4096 => rcgen::RsaKeySize::_4096,
            _ => return misuse("its RSA key can only have 2048, 3072 or 4096 bits"),
        };
        if request.not_after < request.not_before {
            return Err(Error::message(message::VALIDITY_REVERSED, ""));
        }
        let instant = |seconds| time::OffsetDateTime::from_unix_timestamp(seconds);
        let (Ok(not_before), Ok(not_after)) =
            (instant(request.not_before), instant(request.not_after))
        else {
            return misuse("its validity lies outside of the years that a certificate can state");
        };
        let subject_chars = request.subject.chars().count();
        if subject_chars == 0 || subject_chars > SUBJECT_CHARS_MOST {
            return misuse("its subject can only have 1 to 64 characters");
        }
        let pair =
            rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, size).map_err(failed)?;
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, request.subject.as_str());
        params.not_before = not_before;
        params.not_after = not_after;
        let mut serial = [0; 16];
        fill_random(&mut serial)?;
        serial[0] &= 0x7f;
        params.serial_number = Some(rcgen::SerialNumber::from_slice(&serial));
        let certificate = params.self_signed(&pair).map_err(failed)?;
        let private_key = Zeroizing::new(pair.serialize_der());
        let made = Self::from_parts(name, certificate.der(), &private_key, None)?;
        match request.hybrid {
            true => made.add_companion(crate::clock::now()),
            false => Ok(made),
        }
    }

    /// Makes a certificate from DER and PKCS#8 that belong together.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the private key is another certificate's; those of
    /// [`PublicCertificate::from_der`].
    pub fn from_parts(
        name: &str,
        der: &[u8],
        private_key: &[u8],
        backed_up: Option<u64>,
    ) -> Result<Self> {
        let public = PublicCertificate::from_der(name, der)?;
        let private = Private::Here(Zeroizing::new(private_key.to_vec()), Arc::default());
        Ok(Self { public, private, backed_up, companion_key: None })
    }

    /// Refuses a private key that is not this certificate's, or a companion whose halves do not belong together.
    ///
    /// # Errors
    /// Message 15474.
    pub fn check_pair(&self) -> Result<()> {
        if self.place().is_some() {
            self.sign(b"pellucid/1 pair")?;
            let secret = Secret32::random()?;
            return self.proves(secret.expose(), b"pellucid/1 pair").map(|_| ());
        }
        let signature = self.sign(b"pellucid/1 pair").unwrap_or_default();
        if self.public.verify(b"pellucid/1 pair", &signature) && self.companion_fits() {
            return Ok(());
        }
        Err(Error::message(message::KEYS_DO_NOT_MATCH, "certificate"))
    }

    /// Encrypts `secret`; where the private half is elsewhere, it has proved then that it decrypts.
    pub(crate) fn proves(&self, secret: &[u8; 32], label: &[u8]) -> Result<Vec<u8>> {
        let wrapped = self.public.encrypt(secret, label)?;
        if self.place().is_none() {
            return Ok(wrapped);
        }
        match self.decrypt(&wrapped, label) {
            Ok(found) if verify_slices_are_equal(found.expose(), secret).is_ok() => Ok(wrapped),
            Ok(_) | Err(Error::Unauthentic { .. }) => Err(self.is_another()),
            Err(error) => Err(error),
        }
    }

    fn is_another(&self) -> Error {
        let place = self.place().map(|place| format!(" {place}")).unwrap_or_default();
        let cause = format!(
            "the private key{place} is not the one that belongs to it: nothing was protected by it"
        );
        Error::misuse(self.public.as_subject(), cause)
    }

    /// The public half.
    pub fn public(&self) -> &PublicCertificate {
        &self.public
    }

    /// The private key, PKCS#8 in DER. The caller may seal it or export it under a password, and
    /// nothing else.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it is elsewhere: it never leaves that.
    pub fn private_key(&self) -> Result<&[u8]> {
        match &self.private {
            Private::Here(key, _) => Ok(key),
            Private::Elsewhere(key) => {
                let cause = format!("its private key is {}, which it never leaves", key.place());
                Err(Error::misuse(self.public.as_subject(), cause))
            }
        }
    }

    /// When the private key was last backed up. `None` means that a lost keyring loses every
    /// database under it.
    pub fn backed_up(&self) -> Option<u64> {
        self.backed_up
    }

    /// Whether only this keyring has the private key: nobody has backed it up, and it is not elsewhere.
    pub fn needs_backup(&self) -> bool {
        self.backed_up.is_none() && self.place().is_none()
    }

    /// Returns this certificate, marked as backed up just now.
    pub fn backed_up_now(mut self) -> Self {
        let now = time::OffsetDateTime::now_utc().unix_timestamp();
        self.backed_up = u64::try_from(now).ok();
        self
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        let (key, known) = match &self.private {
            Private::Here(key, known) => (key, known),
            Private::Elsewhere(key) => {
                let signature = key.sign(message)?;
                // What has its place may have another key under the name by now: nothing would open what it signs.
                return match self.public.verify(message, &signature) {
                    true => Ok(signature),
                    false => Err(self.is_another()),
                };
            }
        };
        let refused = || self.public.misuse("its private key refuses to sign");
        let pair = match known.get() {
            Some(pair) => pair,
            None => {
                let pair = RsaKeyPair::from_pkcs8(key).map_err(|_| refused())?;
                known.get_or_init(|| pair)
            }
        };
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign(&RSA_PSS_SHA256, &rand::SystemRandom::new(), message, &mut signature)
            .map_err(|_| refused())?;
        Ok(signature)
    }

    pub(crate) fn decrypt(&self, wrapped: &[u8], label: &[u8]) -> Result<Secret32> {
        let key = match &self.private {
            Private::Here(key, _) => key,
            Private::Elsewhere(key) => return key.decrypt(wrapped, label),
        };
        let refused = || {
            let cause = "its private key does not open the wrapped key";
            Error::unauthentic(self.public.as_subject(), cause)
        };
        let key = PrivateDecryptingKey::from_pkcs8(key).map_err(|_| refused())?;
        let key = OaepPrivateDecryptingKey::new(key).map_err(|_| refused())?;
        let mut out = Zeroizing::new(vec![0; key.min_output_size()]);
        let secret = key
            .decrypt(&OAEP_SHA256_MGF1SHA256, wrapped, &mut out, Some(label))
            .map_err(|_| refused())?;
        Secret32::from_slice(secret).ok_or_else(refused)
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    out
}

//! The hybrid half of a certificate protector: ML-KEM-768 beside RSA-OAEP, so that what is copied today stays closed when RSA
//! falls.
//!
//! Layout and equations: docs/format.md, "Protectors", "Hybrid certificate". Neither half opens alone: the KEK is derived from
//! both secrets.

use aws_lc_rs::digest;
use zeroize::Zeroizing;

use super::{unwrap_symmetric, wrap_symmetric, Binding, Wrapped, TYPE_HYBRID};
use crate::certificate::kem;
use crate::certificate::{Certificate, Companion, PublicCertificate, COMPANION_CIPHERTEXT_BYTES};
use crate::derive::hkdf_sha256;
use crate::error::{Error, Result, Subject};
use crate::secret::{Dek, Secret32};

/// What a hybrid protector has beside the RSA ciphertext.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hybrid {
    /// SHA-256 of the companion's public half.
    pub companion: [u8; 32],
    /// The ML-KEM-768 ciphertext.
    pub ciphertext: Vec<u8>,
    /// The DEK under the KEK of both halves.
    pub wrapped: Wrapped,
}

/// Wraps `dek` for the certificate and its companion: the RSA ciphertext, and the rest.
///
/// # Errors
/// [`Error::Unauthentic`] for a companion that the certificate did not sign.
pub(super) fn wrap(
    dek: &Dek,
    binding: &Binding<'_>,
    certificate: &PublicCertificate,
    companion: &Companion,
) -> Result<(Vec<u8>, Hybrid)> {
    let (ciphertext, shared) = companion.encapsulate().ok_or_else(|| {
        let told = match kem::is_here() {
            true => "its companion key refuses to encrypt",
            false => NOT_HERE,
        };
        Error::misuse(Subject::Certificate(certificate.name().to_owned()), told)
    })?;
    certificate.check_companion()?;
    let secret = Secret32::random()?;
    let encrypted = certificate.encrypt(secret.expose(), &label(binding))?;
    let mut hybrid = Hybrid { companion: *companion.thumbprint(), ciphertext, wrapped: [0; 60] };
    let kek = hybrid.kek(binding, certificate.thumbprint(), &encrypted, &secret, &shared)?;
    hybrid.wrapped = wrap_symmetric(&kek, TYPE_HYBRID, binding, dek)?;
    Ok((encrypted, hybrid))
}

impl Hybrid {
    /// Unwraps the DEK with both private keys. `None` if any part does not fit, whichever: both halves are always tried, and a
    /// half that fails gives a random secret, as ML-KEM does of itself.
    pub(super) fn unwrap(
        &self,
        binding: &Binding<'_>,
        certificate: &Certificate,
        encrypted: &[u8],
    ) -> Result<Option<Dek>> {
        if !kem::is_here() {
            let subject = Subject::Certificate(certificate.public().name().to_owned());
            return Err(Error::unsupported(subject, NOT_HERE));
        }
        let secret = match certificate.decrypt(encrypted, &label(binding)) {
            Ok(secret) => secret,
            Err(error @ (Error::MissingKey { .. } | Error::Io { .. })) => return Err(error),
            Err(_) => Secret32::random()?,
        };
        let shared = match certificate.decapsulate(&self.ciphertext) {
            Some(shared) => shared,
            None => Secret32::random()?,
        };
        let print = certificate.public().thumbprint();
        let kek = self.kek(binding, print, encrypted, &secret, &shared)?;
        Ok(unwrap_symmetric(&kek, TYPE_HYBRID, binding, &self.wrapped))
    }

    /// Derives the KEK. The thumbprint stands for the certificate's public key, which is in the bytes that it is the hash of.
    fn kek(
        &self,
        binding: &Binding<'_>,
        thumbprint: &[u8; 32],
        encrypted: &[u8],
        secret: &Secret32,
        shared: &Secret32,
    ) -> Result<Secret32> {
        let mut hash = digest::Context::new(&digest::SHA256);
        for part in [thumbprint, &self.companion[..], &self.ciphertext, encrypted] {
            hash.update(part);
        }
        let mut both = Zeroizing::new([0; 64]);
        both[..32].copy_from_slice(secret.expose());
        both[32..].copy_from_slice(shared.expose());
        let purpose = [binding.purpose as u8];
        let info: [&[u8]; 3] = [b"pellucid/1 hybrid", &purpose, binding.id];
        let mut kek = Zeroizing::new([0; 32]);
        hkdf_sha256(&both[..], hash.finish().as_ref(), &info, &mut kek[..])?;
        Ok(Secret32::new(&mut kek))
    }

    /// Appends `companion ‖ ciphertext ‖ wrapped DEK`.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.companion);
        out.extend_from_slice(&self.ciphertext);
        out.extend_from_slice(&self.wrapped);
    }

    /// Parses what [`Self::encode`] appends.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (companion, rest) = bytes.split_first_chunk()?;
        let (ciphertext, wrapped) = rest.split_at_checked(COMPANION_CIPHERTEXT_BYTES)?;
        let wrapped = wrapped.try_into().ok()?;
        Some(Self { companion: *companion, ciphertext: ciphertext.to_vec(), wrapped })
    }
}

const NOT_HERE: &str = "this program has not enabled ML-KEM-768: use `pellucid`, which has";

/// Bytes that [`Hybrid::parse`] takes.
pub(super) const HYBRID_BYTES: usize = 32 + COMPANION_CIPHERTEXT_BYTES + 60;

/// Makes the OAEP label. It differs from that of a certificate protector, so that no RSA ciphertext serves in both.
fn label(binding: &Binding<'_>) -> Vec<u8> {
    [b"pellucid/1 hybrid", &[binding.purpose as u8][..], binding.id].concat()
}

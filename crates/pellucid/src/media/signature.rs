//! The block of a manifest of version 2 that says who made the set, and that anybody who has the certificate can check.
//!
//! Every holder of a set's key can make all its HMACs and tags right. The signature is by the private key of a certificate
//! that protects the set, over everything in the manifest before it: with the roots of the families, all of the set.

use aws_lc_rs::digest;

use crate::certificate::{Certificate, PublicCertificate};
use crate::error::{Error, Result, Subject};
use crate::fields::Fields;

/// The most bytes of a signature: one by an RSA key of 4096 bits.
pub const MOST_SIGNATURE_BYTES: usize = 512;
/// A kind of signature that no version makes yet: by a day key. It is refused by name.
pub const RESERVED_SIGNATURE: u8 = 2;

/// Bytes before the signature: kind, its length, thumbprint.
const HEAD_BYTES: usize = 35;
/// Bytes behind it: the lengths of the block and of the manifest.
const LENGTHS_BYTES: usize = 8;
/// The bytes of a block without a signature.
pub(super) const LEAST_BYTES: usize = HEAD_BYTES + LENGTHS_BYTES;
const KIND_NONE: u8 = 0;
const KIND_CERTIFICATE: u8 = 1;

/// A certificate's signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// SHA-256 thumbprint of the certificate.
    pub thumbprint: [u8; 32],
    /// RSA-PSS-SHA256.
    pub bytes: Vec<u8>,
}

/// What a manifest says of who made the set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signing {
    /// Nothing: it is of version 1.
    Version1,
    /// That nobody has signed it.
    Unsigned,
    /// That a certificate has.
    Signed(Signature),
}

impl Signing {
    /// Bytes of the block; 0 in version 1.
    pub(super) fn block_bytes(&self) -> usize {
        match self {
            Self::Version1 => 0,
            Self::Unsigned => LEAST_BYTES,
            Self::Signed(own) => LEAST_BYTES + own.bytes.len(),
        }
    }

    /// The signature, if there is one.
    pub fn signature(&self) -> Option<&Signature> {
        match self {
            Self::Signed(own) => Some(own),
            _ => None,
        }
    }

    /// Appends what stands before the signature.
    pub(super) fn encode_head(&self, out: &mut Vec<u8>) {
        let (kind, length, thumbprint) = match self {
            Self::Version1 => return,
            Self::Unsigned => (KIND_NONE, 0, [0; 32]),
            Self::Signed(own) => (KIND_CERTIFICATE, own.bytes.len() as u16, own.thumbprint),
        };
        out.push(kind);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&thumbprint);
    }

    /// Appends the rest of the block of a manifest of `manifest` bytes.
    pub(super) fn encode_rest(&self, manifest: usize, out: &mut Vec<u8>) {
        if *self == Self::Version1 {
            return;
        }
        if let Self::Signed(own) = self {
            out.extend_from_slice(&own.bytes);
        }
        out.extend_from_slice(&(self.block_bytes() as u32).to_be_bytes());
        out.extend_from_slice(&(manifest as u32).to_be_bytes());
    }

    /// Parses the block of a manifest of `manifest` bytes. None if its fields do not fit.
    pub(super) fn parse(fields: &mut Fields<'_>, manifest: usize) -> Result<Option<Self>> {
        let (Some(kind), Some(length)) = (fields.u8(), fields.u16()) else { return Ok(None) };
        let (length, Some(thumbprint)) = (usize::from(length), fields.array()) else {
            return Ok(None);
        };
        let signing = match kind {
            KIND_NONE if length == 0 && thumbprint == [0; 32] => Self::Unsigned,
            KIND_CERTIFICATE if (1..=MOST_SIGNATURE_BYTES).contains(&length) => {
                let Some(bytes) = fields.take(length) else { return Ok(None) };
                Self::Signed(Signature { thumbprint, bytes: bytes.to_vec() })
            }
            KIND_NONE | KIND_CERTIFICATE => return Ok(None),
            kind => {
                let reserved = [RESERVED_SIGNATURE];
                return Err(Error::unknown(Subject::Manifest, "signature kind", kind, &reserved));
            }
        };
        let lengths = (fields.u32(), fields.u32());
        let fits = lengths == (Some(signing.block_bytes() as u32), Some(manifest as u32));
        Ok(fits.then_some(signing))
    }
}

/// Where the manifest begins whose last bytes before its HMAC are `lengths`: how many bytes it has, if that is possible.
pub(super) fn length_by(
    lengths: &[u8; LENGTHS_BYTES],
    rest: impl Fn(usize) -> bool,
) -> Option<usize> {
    let mut fields = Fields::new(lengths);
    let (block, manifest) = (fields.u32()? as usize, fields.u32()? as usize);
    let fits = (LEAST_BYTES..=LEAST_BYTES + MOST_SIGNATURE_BYTES).contains(&block);
    (fits && rest(manifest.checked_sub(block)?)).then_some(manifest)
}

/// What is signed: a domain, and the SHA-256 of all bytes of the manifest before the signature.
fn message(before: &[u8]) -> Vec<u8> {
    let mut message = b"pellucid/2 set".to_vec();
    message.extend_from_slice(digest::digest(&digest::SHA256, before).as_ref());
    message
}

/// Signs what stands before the signature.
pub(super) fn sign(certificate: &Certificate, before: &[u8]) -> Result<Vec<u8>> {
    certificate.sign(&message(before))
}

/// Whether `signature` is this certificate's for what stands before it.
pub(super) fn verify(certificate: &PublicCertificate, before: &[u8], signature: &[u8]) -> bool {
    certificate.verify(&message(before), signature)
}

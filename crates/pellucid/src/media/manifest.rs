//! The manifest: the last part of a backup set in each of its families. It commits the set.
//!
//! It names the length and the root of every family, so that one authentic manifest authenticates
//! the whole set.

use super::chunk::PREFIX_BYTES;
use super::header::check_known;
use super::keys::SetKeys;
use super::set_header::{authenticate, check_sum, finish};
use super::signature::{length_by, sign, verify, Signature, Signing};
use super::signature::{LEAST_BYTES as LEAST_BLOCK_BYTES, MOST_SIGNATURE_BYTES};
use super::{ChunkPrefix, MediaVersion, MOST_FAMILIES};
use crate::certificate::{Certificate, PublicCertificate};
use crate::error::{Error, Result, Subject};
use crate::fields::Fields;
use crate::flags::check_zeros;
use crate::hash::Sha256;

/// The first 16 bytes of a manifest.
pub const MAGIC: &[u8; 16] = b"Pellucid set end";
/// Bytes before the rows of families.
pub const FIXED_BYTES: usize = 96;
/// Bytes of a family's row.
pub const ROW_BYTES: usize = 40;

const SUMS_BYTES: usize = 64;
/// Bytes at the end of a manifest of version 2 by which its length is known: two lengths, then the sums.
pub const END_BYTES: usize = 8 + SUMS_BYTES;
const FLAG_DAMAGED: u8 = 1;

/// The part of a set in one family, without the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FamilyEnd {
    /// Bytes from the set header's first to the last chunk's last.
    pub bytes: u64,
    /// BLAKE3 over the set header, then the prefix of each chunk in the order they lie in.
    pub root: [u8; 32],
}

/// The fields of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The set it commits.
    pub set: [u8; 16],
    /// Whether pages are missing.
    pub damaged: bool,
    /// When the set was finished, in microseconds since 1970.
    pub finished: u64,
    /// Bytes of all pages in it: SQL Server's `backup_size`.
    pub content_bytes: u64,
    /// Bytes in all families, set headers to the last chunks: SQL Server's `compressed_backup_size`.
    pub stored_bytes: u64,
    /// How many chunks of pages.
    pub chunks: u32,
    /// How many index chunks; all in the first family, behind its chunks of pages.
    pub index_chunks: u32,
    /// How many pages are in it.
    pub pages: u32,
    /// How many pages are missing.
    pub missing: u32,
    /// Where the first index chunk begins, from the start of the set in the first family.
    pub index_offset: u64,
    /// Its families.
    pub families: Vec<FamilyEnd>,
    /// Its version, and who signed it.
    pub signing: Signing,
}

impl Manifest {
    /// How many bytes a manifest of version 1 of so many families has.
    pub const fn bytes_of(families: usize) -> usize {
        FIXED_BYTES + families * ROW_BYTES + SUMS_BYTES
    }

    /// Its format version.
    pub fn version(&self) -> MediaVersion {
        match self.signing {
            Signing::Version1 => MediaVersion::One,
            Signing::Unsigned | Signing::Signed(_) => MediaVersion::Two,
        }
    }

    /// Its length.
    fn bytes(&self) -> usize {
        Self::bytes_of(self.families.len()) + self.signing.block_bytes()
    }

    /// Makes it of version 2, signed by the private key of `certificate` if there is one.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a private key that refuses to sign.
    pub fn sign(&mut self, certificate: Option<&Certificate>) -> Result<()> {
        self.signing = Signing::Unsigned;
        let Some(certificate) = certificate else { return Ok(()) };
        let bytes = vec![0; certificate.public().rsa_bits().div_ceil(8)];
        let thumbprint = *certificate.public().thumbprint();
        // The length of the signature is among what is signed.
        self.signing = Signing::Signed(Signature { thumbprint, bytes });
        let signature = sign(certificate, &self.before_signature())?;
        self.signing = Signing::Signed(Signature { thumbprint, bytes: signature });
        Ok(())
    }

    /// Encodes the manifest.
    ///
    /// # Errors
    /// None in practice.
    pub fn encode(&self, keys: Option<&SetKeys>) -> Result<Vec<u8>> {
        let mut out = self.before_signature();
        self.signing.encode_rest(self.bytes(), &mut out);
        finish(out, keys)
    }

    fn before_signature(&self) -> Vec<u8> {
        let bytes = self.bytes();
        let mut out = Vec::with_capacity(bytes);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&self.version().encode());
        out.extend_from_slice(&(bytes as u32).to_be_bytes());
        out.extend_from_slice(&self.set);
        out.extend_from_slice(&(self.families.len() as u16).to_be_bytes());
        out.push(if self.damaged { FLAG_DAMAGED } else { 0 });
        out.extend_from_slice(&[0; 5]);
        for number in [self.finished, self.content_bytes, self.stored_bytes] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        for number in [self.chunks, self.index_chunks, self.pages, self.missing] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(&self.index_offset.to_be_bytes());
        for family in &self.families {
            out.extend_from_slice(&family.bytes.to_be_bytes());
            out.extend_from_slice(&family.root);
        }
        self.signing.encode_head(&mut out);
        out
    }

    /// Whether `certificate` signed it.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if it has no signature of this certificate, or one of something else.
    pub fn check_signature(&self, certificate: &PublicCertificate) -> Result<()> {
        let signed = self.signing.signature().is_some_and(|own| {
            own.thumbprint == *certificate.thumbprint()
                && verify(certificate, &self.before_signature(), &own.bytes)
        });
        match signed {
            true => Ok(()),
            false => Err(Error::unauthentic(
                Subject::Manifest,
                "its signature is not one of the certificate that it names",
            )),
        }
    }

    /// The hash of a manifest's bytes, which the next set of the chain has.
    pub fn hash(bytes: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(bytes);
        hash.finish()
    }

    /// How many bytes a manifest of version 2 has that ends with `end`. None if none does.
    pub fn length_by_end(end: &[u8; END_BYTES]) -> Option<usize> {
        let lengths = end.first_chunk()?;
        length_by(lengths, |bytes| Self::rows(bytes).is_some())
    }

    /// The number of families of a manifest that has so many bytes without its block.
    fn rows(bytes: usize) -> Option<usize> {
        let rows = bytes.checked_sub(FIXED_BYTES + SUMS_BYTES)?;
        let fits = rows % ROW_BYTES == 0;
        let rows = rows / ROW_BYTES;
        (fits && (1..=usize::from(MOST_FAMILIES)).contains(&rows)).then_some(rows)
    }

    /// Whether a manifest begins with `bytes`.
    pub fn begins(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// How many bytes the manifest that begins with `bytes` has.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if none begins there.
    pub fn length(bytes: &[u8; 24]) -> Result<usize> {
        let corrupt = || Error::corrupt(Subject::Manifest, "its length is not possible");
        let version = MediaVersion::of(bytes)?;
        let length = Fields::new(&bytes[20..]).u32().ok_or_else(corrupt)? as usize;
        let fits = match version {
            MediaVersion::One => Self::rows(length).is_some(),
            MediaVersion::Two => {
                let least = Self::bytes_of(1) + LEAST_BLOCK_BYTES;
                let most = Self::bytes_of(usize::from(MOST_FAMILIES)) + LEAST_BLOCK_BYTES;
                (least..=most + MOST_SIGNATURE_BYTES).contains(&length)
            }
        };
        if Self::begins(bytes) && fits {
            Ok(length)
        } else {
            Err(corrupt())
        }
    }

    /// Where the length of its signature lies in a manifest of version 2.
    pub const fn signature_length_at(families: usize) -> usize {
        FIXED_BYTES + families * ROW_BYTES + 1
    }

    /// Whether a manifest of version 2 with a signature of so many bytes has `length` bytes.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if not: one whose length was changed is no manifest that was cut.
    pub fn check_length(length: usize, families: usize, signature: u16) -> Result<()> {
        let bytes = Self::bytes_of(families) + LEAST_BLOCK_BYTES + usize::from(signature);
        match length == bytes {
            true => Ok(()),
            false => Err(Error::corrupt(Subject::Manifest, "its length is not possible")),
        }
    }

    /// Parses a manifest without a key.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a damaged one, [`Error::Unsupported`] for a newer version's.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let corrupt = |cause: &'static str| Error::corrupt(Subject::Manifest, cause);
        let fields =
            check_sum(bytes).ok_or_else(|| corrupt("damaged: its checksum does not match"))?;
        let version = MediaVersion::of(bytes)?;
        let manifest = Self::parse_fields(&mut Fields::new(fields), version, bytes.len())?;
        let manifest = manifest.ok_or_else(|| corrupt("its fields are malformed"))?;
        check_known(Subject::Manifest, bytes[42], FLAG_DAMAGED)?;
        check_zeros(bytes, std::iter::once(43..48), || Subject::Manifest)?;
        Ok(manifest)
    }

    /// Checks that the manifest in `bytes` has no HMAC, as that of a set in clear.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if it has.
    pub fn check_unsealed(bytes: &[u8]) -> Result<()> {
        let mac = bytes.len().saturating_sub(SUMS_BYTES);
        check_zeros(bytes, std::iter::once(mac..mac + 32), || Subject::Manifest)
    }

    fn parse_fields(
        fields: &mut Fields<'_>,
        version: MediaVersion,
        bytes: usize,
    ) -> Result<Option<Self>> {
        let Some(mut manifest) = Self::parse_rows(fields) else { return Ok(None) };
        if version == MediaVersion::Two {
            let Some(signing) = Signing::parse(fields, bytes)? else { return Ok(None) };
            manifest.signing = signing;
        }
        let fits = fields.rest().is_empty() && manifest.bytes() == bytes;
        Ok(fits.then_some(manifest))
    }

    fn parse_rows(fields: &mut Fields<'_>) -> Option<Self> {
        let (set, count, flags) = (fields.array()?, fields.u16()?, fields.u8()?);
        fields.take(5)?;
        let mut manifest = Self {
            set,
            damaged: flags & FLAG_DAMAGED != 0,
            finished: fields.u64()?,
            content_bytes: fields.u64()?,
            stored_bytes: fields.u64()?,
            chunks: fields.u32()?,
            index_chunks: fields.u32()?,
            pages: fields.u32()?,
            missing: fields.u32()?,
            index_offset: fields.u64()?,
            families: Vec::new(),
            signing: Signing::Version1,
        };
        for _ in 0..count {
            manifest.families.push(FamilyEnd { bytes: fields.u64()?, root: fields.array()? });
        }
        Some(manifest)
    }

    /// Checks that the manifest in `bytes` was written with the set key.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if not.
    pub fn authenticate(bytes: &[u8], keys: &SetKeys) -> Result<()> {
        authenticate(bytes, keys).ok_or_else(|| {
            Error::unauthentic(Subject::Manifest, "authentication tag does not match")
        })
    }
}

/// The running hash of a family's root.
#[derive(Clone)]
pub struct Root(blake3::Hasher);

impl std::fmt::Debug for Root {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Root(..)")
    }
}

impl Root {
    /// Begins with the set header.
    pub fn new(set_header: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(set_header);
        Self(hasher)
    }

    /// Takes the next chunk's prefix, whose checksum stands for its body.
    pub fn update(&mut self, prefix: &[u8; PREFIX_BYTES]) {
        debug_assert!(ChunkPrefix::begins(prefix), "a prefix");
        self.0.update(prefix);
    }

    /// The root.
    pub fn finish(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::{Dek, Secret32};
    use crate::Algorithm;

    fn keys() -> SetKeys {
        let key = Dek::from_secret(Secret32::new(&mut [9; 32]));
        SetKeys::derive(&key, &[2; 16], Algorithm::Aes256).unwrap()
    }

    fn manifest() -> Manifest {
        Manifest {
            set: [2; 16],
            damaged: true,
            finished: 1,
            content_bytes: 2,
            stored_bytes: 3,
            chunks: 4,
            index_chunks: 5,
            pages: 6,
            missing: 7,
            index_offset: 8,
            families: vec![FamilyEnd { bytes: 9, root: [1; 32] }; 2],
            signing: Signing::Version1,
        }
    }

    #[test]
    fn it_reads_back_and_every_flipped_bit_is_seen() {
        let request = crate::certificate::CertificateRequest {
            rsa_bits: 2048,
            ..crate::certificate::CertificateRequest::new("signer", 10)
        };
        let signer = Certificate::generate("signer", &request).unwrap();
        flipped(&manifest());
        let mut unsigned = manifest();
        unsigned.sign(None).unwrap();
        assert!(unsigned.check_signature(signer.public()).is_err());
        flipped(&unsigned);
        let mut signed = manifest();
        signed.sign(Some(&signer)).unwrap();
        flipped(&signed);
        signed.check_signature(signer.public()).unwrap();
        let other = Certificate::generate("signer", &request).unwrap();
        assert!(signed.check_signature(other.public()).is_err());
        for change in [
            |one: &mut Manifest| one.families[1].root[0] ^= 1,
            |one: &mut Manifest| one.finished ^= 1,
            |one: &mut Manifest| one.set[0] ^= 1,
        ] {
            let mut forged = signed.clone();
            change(&mut forged);
            let told = forged.check_signature(signer.public()).unwrap_err();
            assert!(matches!(told, Error::Unauthentic { .. }), "{told}");
        }
    }

    fn flipped(manifest: &Manifest) {
        let keys = keys();
        let mut bytes = manifest.encode(Some(&keys)).unwrap();
        if manifest.version() == MediaVersion::Two {
            let end = bytes.last_chunk().unwrap();
            assert_eq!(Manifest::length_by_end(end), Some(bytes.len()));
        }
        assert_eq!(Manifest::length(bytes.first_chunk().unwrap()).unwrap(), bytes.len());
        assert_eq!(&Manifest::parse(&bytes).unwrap(), manifest);
        Manifest::authenticate(&bytes, &keys).unwrap();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::parse(&bytes).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

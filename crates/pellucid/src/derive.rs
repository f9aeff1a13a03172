//! Derivations that belong to no single object: HKDF-SHA256 and the key commitment.
//!
//! Equations: docs/format.md, "Derivations".

use aws_lc_rs::hkdf;

use crate::error::{Error, Result, Subject};
use crate::secret::Dek;

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Computes HKDF-SHA256 of `key` with `salt` and the joined `info` into `out` (RFC 5869).
pub fn hkdf_sha256(key: &[u8], salt: &[u8], info: &[&[u8]], out: &mut [u8]) -> Result<()> {
    let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(key);
    prk.expand(info, Length(out.len()))
        .and_then(|okm| okm.fill(out))
        .map_err(|_| Error::misuse(Subject::Key("derived key"), "length not possible"))
}

/// Computes the commitment to a DEK that a header states, so that no protector can bring another
/// DEK.
///
/// # Errors
/// None in practice: the lengths are constant.
pub fn commitment(dek: &Dek, id: &[u8; 16]) -> Result<[u8; 32]> {
    let mut out = [0; 32];
    hkdf_sha256(dek.expose(), id, &[b"pellucid/1 commitment"], &mut out)?;
    Ok(out)
}

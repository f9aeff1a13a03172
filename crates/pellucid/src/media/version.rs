//! The format version of media, of the sets on them and of their manifests: one number for all three.

use crate::error::{Error, Result, Subject};

/// The version of a media family. Its sets and their manifests have the same, so that nobody can put a set of an older
/// version, which has no signature, behind those that have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum MediaVersion {
    /// Sets without a signature, a chain or padding, which 0.1.0 reads.
    One = 1,
    /// Sets that may have them.
    Two = 2,
}

impl MediaVersion {
    /// The four bytes of a header.
    pub(super) fn encode(self) -> [u8; 4] {
        (self as u32).to_be_bytes()
    }

    /// Reads the version in bytes 16 to 19 of a media header, set header or manifest.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for one that this build does not read.
    pub(super) fn of(bytes: &[u8]) -> Result<Self> {
        let field = bytes.get(16..20).and_then(|field| field.try_into().ok()).unwrap_or([0; 4]);
        match u32::from_be_bytes(field) {
            1 => Ok(Self::One),
            2 => Ok(Self::Two),
            other => Err(Error::unsupported(
                Subject::MediaHeader,
                format!(
                    "format version {other} is not known to this version, which reads 1 and 2: a newer version of \
                     pellucid may read it"
                ),
            )),
        }
    }
}

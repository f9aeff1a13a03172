//! Keys of the fuzz targets, and the checksum that a fuzzer cannot guess.
#![forbid(unsafe_code)]
#![cfg(feature = "core")]

use aws_lc_rs::digest;
use pellucid::derive::commitment;
use pellucid::header::{DekRow, EncryptionState, Header};
use pellucid::keys::ContainerKeys;
use pellucid::protector::{KeyFile, KeySource};
use pellucid::scan::Scan;
use pellucid::secret::Secret32;
use pellucid::{Algorithm, Dek, Result};

pub const FILE_ID: [u8; 16] = *b"pellucid-vectors";

/// The DEK of `vectors/`, so that its files are a corpus.
pub fn dek() -> Dek {
    Dek::from_secret(Secret32::new(&mut std::array::from_fn(|at| at as u8)))
}

/// The container of `vectors/`.
///
/// # Errors
/// None in practice.
pub fn container() -> Result<ContainerKeys> {
    let dek = dek();
    let row = DekRow {
        first_generation: 1,
        last_generation: u32::MAX,
        algorithm: Algorithm::Aes256,
        commitment: commitment(&dek, &FILE_ID)?,
        plain: false,
        wrapped: None,
    };
    let header = Header {
        sequence: 1,
        file_id: FILE_ID,
        page_size: 512,
        state: EncryptionState::Encrypted,
        generation: 3,
        created: 0,
        scan: Scan::default(),
        flags: pellucid::flags::Flags::default(),
        deks: vec![row],
        protectors: vec![],
    };
    ContainerKeys::new(&header, &dek)
}

/// Puts the SHA-256 of what is before them into the last 32 bytes.
pub fn checksum(bytes: &mut [u8]) {
    if let Some(at) = bytes.len().checked_sub(32) {
        let sum = digest::digest(&digest::SHA256, &bytes[..at]);
        bytes[at..].copy_from_slice(sum.as_ref());
    }
}

/// The key file of `vectors/`, and nothing else: Argon2 and RSA would only be slow.
#[derive(Debug)]
pub struct OneKeyFile(Vec<KeyFile>);

impl Default for OneKeyFile {
    fn default() -> Self {
        let bytes: [u8; 32] = std::array::from_fn(|at| 64 + at as u8);
        Self(KeyFile::parse(&bytes).into_iter().collect())
    }
}

impl KeySource for OneKeyFile {
    fn key_files(&self) -> &[KeyFile] {
        &self.0
    }

}

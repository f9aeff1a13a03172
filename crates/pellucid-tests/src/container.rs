//! The header and the keys of a container, as tests make them.

use pellucid::derive::commitment;
use pellucid::header::{DekRow, EncryptionState, Header};
use pellucid::keys::ContainerKeys;
use pellucid::secret::Secret32;
use pellucid::{Algorithm, Dek};

/// The file id of containers that need one.
pub const FILE_ID: [u8; 16] = [6; 16];

/// The key of containers that need one.
pub fn dek() -> Dek {
    Dek::from_secret(Secret32::new(&mut [0x42; 32]))
}

/// The header of an encrypted container without protectors.
pub fn header(algorithm: Algorithm, file_id: [u8; 16]) -> Header {
    Header {
        sequence: 1,
        file_id,
        page_size: 4096,
        state: EncryptionState::Encrypted,
        generation: 1,
        created: 1_700_000_000,
        scan: pellucid::scan::Scan::default(),
        flags: pellucid::flags::Flags::default(),
        second: None,
        deks: vec![DekRow {
            first_generation: 1,
            last_generation: u32::MAX,
            algorithm,
            commitment: commitment(&dek(), &file_id).unwrap(),
            plain: false,
            wrapped: None,
        }],
        protectors: vec![],
    }
}

/// The keys of that container.
pub fn container(algorithm: Algorithm, file_id: [u8; 16]) -> ContainerKeys {
    ContainerKeys::new(&header(algorithm, file_id), &dek()).unwrap()
}

//! Repeatable random bytes for tests (splitmix64), and the keys of a container.

#![allow(dead_code)] // each test takes what it needs

use pellucid::derive::commitment;
use pellucid::header::{DekRow, EncryptionState, Header};
use pellucid::keys::ContainerKeys;
use pellucid::secret::Secret32;
use pellucid::{Algorithm, Dek};

#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// The seed is `PELLUCID_TEST_SEED`, or 1; it is printed, and shown when the test fails.
    pub fn from_environment() -> Self {
        let seed = std::env::var("PELLUCID_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or(1);
        println!("PELLUCID_TEST_SEED={seed}");
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).take(length).collect()
    }

    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        self.bytes(N).try_into().unwrap()
    }
}

pub const FILE_ID: [u8; 16] = [6; 16];

pub fn dek() -> Dek {
    Dek::from_secret(Secret32::new(&mut [0x42; 32]))
}

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

pub fn container(algorithm: Algorithm, file_id: [u8; 16]) -> ContainerKeys {
    ContainerKeys::new(&header(algorithm, file_id), &dek()).unwrap()
}

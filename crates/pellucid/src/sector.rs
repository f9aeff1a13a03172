//! Sector 0 and the wear sectors of a container.
//!
//! Layout: docs/format.md, "Sector 0" and "Wear".

use aws_lc_rs::digest;

use crate::error::{Error, Result, Subject};
use crate::flags::check_zeros;
use crate::keys::HeaderKey;

/// Bytes of a sector.
pub const SECTOR_BYTES: usize = 512;
/// The offset of the wear count of database pages.
pub const WEAR_PAGES_OFFSET: u64 = 512;
/// The offset of the wear count of WAL frames and journal records.
pub const WEAR_LOG_OFFSET: u64 = 1024;
/// The first 16 bytes of an SQLite database (SQLite file format, 1.3).
pub const SQLITE_MAGIC: &[u8; 16] = b"SQLite format 3\0";

const MAGIC_SEALED: &[u8; 16] = b"Pellucid sealed\0";
const MAGIC_LAYING_PLAIN: &[u8; 16] = b"Pellucid laying\0";
/// The first 8 bytes of a wear sector.
pub const MAGIC_WEAR: &[u8; 8] = b"PELWEAR\0";
const SUM_AT: usize = SECTOR_BYTES - 32;
/// Ranges of a wear sector that are zero in version 1.
const WEAR_ZEROS: [std::ops::Range<usize>; 2] = [12..16, 24..32];

/// Whether a file begins as a database does, plain or sealed.
pub fn begins_as_database(bytes: &[u8]) -> bool {
    [SQLITE_MAGIC, MAGIC_SEALED, MAGIC_LAYING_PLAIN].iter().any(|magic| bytes.starts_with(*magic))
}

/// The kind of a file by its first sector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SectorZero {
    /// A container, or a file over which a container is being laid.
    Sealed {
        /// The container's random identity.
        file_id: [u8; 16],
    },
    /// A container over which a plain copy is being laid.
    LayingPlain {
        /// The container's identity.
        file_id: [u8; 16],
        /// Size in bytes of the plain copy beside the file.
        copy_bytes: u64,
        /// SHA-256 of the plain copy.
        copy_sha256: [u8; 32],
    },
}

impl SectorZero {
    /// Encodes the 512 bytes.
    ///
    /// Bytes 16 and 17 name a page size that is not the database's and byte 20 is zero, so that an
    /// SQLite without the shim neither reads nor trusts a page of it. Bytes 24 to 39 differ from
    /// any plain page 1, so that no cached one stays valid.
    pub fn encode(&self, page_size: u32) -> [u8; SECTOR_BYTES] {
        let mut sector = [0; SECTOR_BYTES];
        let (magic, file_id) = match self {
            SectorZero::Sealed { file_id } => (MAGIC_SEALED, file_id),
            SectorZero::LayingPlain { file_id, copy_bytes, copy_sha256 } => {
                sector[48..56].copy_from_slice(&copy_bytes.to_be_bytes());
                sector[56..88].copy_from_slice(copy_sha256);
                (MAGIC_LAYING_PLAIN, file_id)
            }
        };
        sector[..16].copy_from_slice(magic);
        let decoy: u16 = if page_size == 65536 { 32768 } else { 1 };
        sector[16..18].copy_from_slice(&decoy.to_be_bytes());
        sector[18] = 1;
        sector[24..40].copy_from_slice(file_id);
        let sum = digest::digest(&digest::SHA256, &sector[..SUM_AT]);
        sector[SUM_AT..].copy_from_slice(sum.as_ref());
        sector
    }

    /// Whether a sector begins as one of a laying of a plain copy. The rest of it may be damaged.
    pub fn begins_laying(sector: &[u8]) -> bool {
        sector.starts_with(MAGIC_LAYING_PLAIN)
    }

    /// Parses a sector. `None` if it is not a sector 0 of Pellucid.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is one and damaged, [`Error::Unsupported`] if it is whole and of a
    /// newer version.
    pub fn parse(sector: &[u8]) -> Result<Option<Self>> {
        if sector.len() < SECTOR_BYTES {
            return Ok(None);
        }
        let magic = &sector[..16];
        if magic != MAGIC_SEALED && magic != MAGIC_LAYING_PLAIN {
            return Ok(None);
        }
        let sum = digest::digest(&digest::SHA256, &sector[..SUM_AT]);
        if sum.as_ref() != &sector[SUM_AT..SECTOR_BYTES] {
            return Err(Error::corrupt(Subject::SectorZero, "its checksum does not match"));
        }
        let free_from = if magic == MAGIC_SEALED { 48 } else { 88 };
        check_zeros(sector, [19..24, 40..48, free_from..SUM_AT], || Subject::SectorZero)?;
        let mut file_id = [0; 16];
        file_id.copy_from_slice(&sector[24..40]);
        if magic == MAGIC_SEALED {
            return Ok(Some(SectorZero::Sealed { file_id }));
        }
        let mut copy_bytes = [0; 8];
        copy_bytes.copy_from_slice(&sector[48..56]);
        let mut copy_sha256 = [0; 32];
        copy_sha256.copy_from_slice(&sector[56..88]);
        let copy_bytes = u64::from_be_bytes(copy_bytes);
        Ok(Some(SectorZero::LayingPlain { file_id, copy_bytes, copy_sha256 }))
    }
}

/// The wear of a generation: its writes, counted over all processes in reserved blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wear {
    /// The generation that is counted.
    pub generation: u32,
    /// Writes reserved under it.
    pub reserved: u64,
}

impl Wear {
    /// Encodes the 64 bytes at a wear sector's offset.
    pub fn encode(&self, key: &HeaderKey, offset: u64) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..8].copy_from_slice(MAGIC_WEAR);
        bytes[8..12].copy_from_slice(&self.generation.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.reserved.to_be_bytes());
        let mac = key.sign(&[&offset.to_be_bytes(), &bytes[..32]]);
        bytes[32..].copy_from_slice(&mac);
        bytes
    }

    /// Parses and authenticates a wear count.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if it was not written with the key, [`Error::Unsupported`] if a newer
    /// version wrote it. The caller moves to a new generation then, because the count is lost.
    pub fn parse(bytes: &[u8; 64], key: &HeaderKey, offset: u64) -> Result<Self> {
        if !key.verify(&[&offset.to_be_bytes(), &bytes[..32]], &bytes[32..]) {
            return Err(Error::unauthentic(Subject::Wear, "authentication tag does not match"));
        }
        check_zeros(bytes, WEAR_ZEROS, || Subject::Wear)?;
        Ok(Self::fields(bytes))
    }

    /// Reads a wear count without a key, to show it. `None` if there is none. It is not
    /// authenticated.
    pub fn look(bytes: &[u8; 64]) -> Option<Self> {
        let known = check_zeros(bytes, WEAR_ZEROS, || Subject::Wear).is_ok();
        (known && bytes[..8] == MAGIC_WEAR[..]).then(|| Self::fields(bytes))
    }

    fn fields(bytes: &[u8; 64]) -> Self {
        let mut generation = [0; 4];
        generation.copy_from_slice(&bytes[8..12]);
        let mut reserved = [0; 8];
        reserved.copy_from_slice(&bytes[16..24]);
        Self { generation: u32::from_be_bytes(generation), reserved: u64::from_be_bytes(reserved) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::{Dek, Secret32};

    #[test]
    fn sector_zero_keeps_strangers_off_whatever_the_page_size() {
        for page_size in [512, 1024, 4096, 32768, 65536u32] {
            let sector = SectorZero::Sealed { file_id: [3; 16] }.encode(page_size);
            let named = match u16::from_be_bytes([sector[16], sector[17]]) {
                1 => 65536,
                n => u32::from(n),
            };
            assert!(named.is_power_of_two() && (512..=65536).contains(&named));
            assert_ne!(named, page_size);
            assert_eq!(sector[20], 0);
            assert_eq!(sector[24..40], [3; 16]);
            assert_ne!(&sector[..16], SQLITE_MAGIC);
        }
    }

    #[test]
    fn sectors_read_back_and_flips_are_seen() {
        let laying =
            SectorZero::LayingPlain { file_id: [3; 16], copy_bytes: 77, copy_sha256: [8; 32] };
        for sector in [laying, SectorZero::Sealed { file_id: [3; 16] }] {
            let mut bytes = sector.encode(4096);
            assert_eq!(SectorZero::parse(&bytes).unwrap(), Some(sector.clone()));
            for bit in 0..bytes.len() * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(!matches!(SectorZero::parse(&bytes), Ok(Some(_))), "bit {bit}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn wear_is_authentic_and_bound_to_its_sector() {
        let key =
            HeaderKey::derive(&Dek::from_secret(Secret32::new(&mut [1; 32])), &[9; 16]).unwrap();
        let wear = Wear { generation: 2, reserved: 4096 };
        let bytes = wear.encode(&key, WEAR_PAGES_OFFSET);
        assert_eq!(Wear::parse(&bytes, &key, WEAR_PAGES_OFFSET).unwrap(), wear);
        assert_eq!(Wear::look(&bytes), Some(wear));
        assert_eq!(Wear::look(&[0; 64]), None);
        assert!(Wear::parse(&bytes, &key, WEAR_LOG_OFFSET).is_err());
        assert!(Wear::parse(&[0; 64], &key, WEAR_LOG_OFFSET).is_err());
    }
}

//! Sector 0, with its own checksum and with one made right, and a wear sector.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pellucid::keys::HeaderKey;
use pellucid::sector::{SectorZero, Wear, SECTOR_BYTES, WEAR_PAGES_OFFSET};
use pellucid_fuzz::{checksum, dek, FILE_ID};

fuzz_target!(|bytes: &[u8]| {
    let _ = SectorZero::parse(bytes);
    let mut sector = [0; SECTOR_BYTES];
    let length = bytes.len().min(SECTOR_BYTES);
    sector[..length].copy_from_slice(&bytes[..length]);
    checksum(&mut sector);
    let _ = SectorZero::parse(&sector);
    if let (Some(wear), Ok(key)) = (bytes.first_chunk::<64>(), HeaderKey::derive(&dek(), &FILE_ID))
    {
        let _ = Wear::parse(wear, &key, WEAR_PAGES_OFFSET);
    }
});

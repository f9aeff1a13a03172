//! A header copy, as an opener reads it: with its own checksum, then with one made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pellucid::header::{Header, COPY_BYTES};
use pellucid::keys::ContainerKeys;
use pellucid::protector::{self, Binding, Protector, Purpose};
use pellucid_fuzz::{checksum, OneKeyFile};

fn open(bytes: &[u8]) {
    let Ok(header) = Header::parse(bytes, 0) else { return };
    let Ok(row) = header.current_dek() else { return };
    let binding = Binding {
        purpose: Purpose::Database,
        id: &header.file_id,
        algorithm: row.algorithm,
        commitment: &row.commitment,
    };
    let protectors: Vec<_> =
        header.protectors.iter().flat_map(|bytes| Protector::decode(bytes)).map(|p| p.0).collect();
    if let Ok(dek) = protector::unwrap(&protectors, &binding, &OneKeyFile::default()) {
        let _ = ContainerKeys::new(&header, &dek);
    }
}

fuzz_target!(|bytes: &[u8]| {
    open(bytes);
    // Short inputs are filled up, so that the fuzzer need not find 7 KiB.
    let mut copy = vec![0; COPY_BYTES];
    let length = bytes.len().min(COPY_BYTES);
    copy[..length].copy_from_slice(&bytes[..length]);
    checksum(&mut copy);
    open(&copy);
});

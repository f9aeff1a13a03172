//! A header copy, as an opener reads it: with its own checksum, then with one made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pellucid::header::{Header, COPY_BYTES};
use pellucid::keys::ContainerKeys;
use pellucid_fuzz::{checksum, OneKeyFile};

fn open(bytes: &[u8]) {
    let Ok(header) = Header::parse(bytes, 0) else { return };
    if let Ok(dek) = header.unwrap(&OneKeyFile::default()) {
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

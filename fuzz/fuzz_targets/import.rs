//! Certificate and private key files of other programs: PEM, DER, PKCS#8, PKCS#1, PFX, PVK. The first two bytes say where
//! the certificate's file ends and the key's begins; a file alone comes with neither.
//!
//! Whatever comes is taken or refused within the time that libFuzzer allows (`-timeout`), and within `-rss_limit_mb`: the
//! files name how much work a password costs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pellucid::protector::Passphrase;
use pellucid_exchange::import;

fuzz_target!(|bytes: &[u8]| {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_be_bytes(*length));
    let password = Some(Passphrase::new(b"password"));
    let (certificate, key) = match rest.split_at_checked(length) {
        Some((certificate, key)) => (certificate, Some(key)),
        None => (rest, None),
    };
    for password in [None, password.as_ref()] {
        let _ = import("fuzz", certificate, key, password);
    }
});

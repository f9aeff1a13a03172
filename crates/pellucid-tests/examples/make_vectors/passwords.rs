//! Vectors of password files, put together here from docs/format.md and not by the keyring's code.

use aws_lc_rs::digest;
use pellucid::cipher::Cipher;
use pellucid::protector::{Argon2Cost, Passphrase};
use pellucid::{Algorithm, Result};

use super::keyrings::derive;
use super::{flip, key_bytes, Case, NONCE};

const PASSPHRASE: &str = "correct horse battery staple";
const CHEAP: Argon2Cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };

fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = digest::digest(&digest::SHA256, &bytes);
    bytes.extend_from_slice(sum.as_ref());
    bytes
}

fn sealed(kind: u8, key: &[u8; 32]) -> Result<Vec<u8>> {
    let mut bytes = b"Pellucid secret\0".to_vec();
    bytes.extend_from_slice(&[0, 1, kind, 0]);
    bytes.extend_from_slice(&derive::<16>(key, b"", &[b"pellucid/1 key check"]));
    for number in [CHEAP.memory_kib, CHEAP.passes, CHEAP.lanes] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    let salt = *b"salt of password";
    bytes.extend_from_slice(&salt);
    bytes.extend_from_slice(&NONCE);
    let kek = CHEAP.stretch(&Passphrase::new(PASSPHRASE.as_bytes()), &salt)?;
    let (mut ciphertext, mut tag) = ([0; 32], [0; 16]);
    Cipher::new(Algorithm::Aes256, kek.expose())?.seal(
        &NONCE,
        &bytes,
        key,
        &mut ciphertext,
        &mut tag,
    )?;
    bytes.extend_from_slice(&ciphertext);
    bytes.extend_from_slice(&tag);
    Ok(summed(bytes))
}

pub fn cases() -> Result<Vec<Case>> {
    let key = key_bytes(96);
    let good = Case::new("password-file", "service-master-key")
        .with("expect", "success")
        .with("key", "service")
        .with("passphrase", PASSPHRASE)
        .with_bytes("master-key", &key)
        .with_body(&sealed(1, &key)?);
    let database = good
        .clone()
        .with("kind", "database-master-key")
        .with("key", "database")
        .with_body(&sealed(2, &key)?);
    // With the sum made right, which takes no password.
    let patched = |at: usize, value: &[u8]| {
        let mut bytes = good.body[..124].to_vec();
        bytes[at..at + value.len()].copy_from_slice(value);
        summed(bytes)
    };
    let corrupt = |kind: &str| good.failing(kind, "corrupt", "has invalid format");
    let dear = |kind: &str, kib: u32, passes: u32, error: &str| {
        let cost = [kib.to_be_bytes(), passes.to_be_bytes()].concat();
        good.failing(kind, "unsupported", error).with_body(&patched(36, &cost))
    };
    Ok(vec![
        good.failing("wrong-password", "missing-key", "password is invalid")
            .with("passphrase", "correct horse battery stable"),
        corrupt("torn").with_body(&good.body[..155]),
        flip(corrupt("flipped"), 80),
        corrupt("another-kind").with("key", "database"),
        good.failing("newer-version", "unsupported", "version 2 is newer than 1")
            .with_body(&patched(17, &[2])),
        good.failing("byte-in-use", "unsupported", "byte 19 is not zero")
            .with_body(&patched(19, &[1])),
        dear("dear", 524_288, 1, "its passphrase costs"),
        dear("dear-passes", 262_144, 7, "its passphrase costs"),
        dear("cost-too-high", 2_097_152, 1, "its passphrase costs"),
        database,
        good,
    ])
}

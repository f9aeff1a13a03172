//! The settings of a database of SQLite3 Multiple Ciphers.
//!
//! Its newer formats leave the bytes 16 to 23 of a database's header in clear; those that it took over do not.

use super::*;
use crate::cipher::aegis::AegisPages;
use crate::cipher::chacha20::ChaCha20Pages;
use crate::cipher::wx::{AesPages, Rc4Pages};
use crate::settings::Cipher;

/// Bytes of page 1 that the newer formats do not encrypt (`CIPHER_PAGE1_OFFSET`).
const CLEAR_BYTES: usize = 24;
/// Iterations of ChaCha20's key derivation, and of sqleet's.
const CHACHA20_ITERATIONS: u32 = 64_007;
const SQLEET_ITERATIONS: u32 = 12_345;
/// What AEGIS derives keys at (`AEGIS_MCOST_DEFAULT`, `AEGIS_TCOST_DEFAULT`), by one thread.
const ARGON2_KIB: u32 = 19 * 1024;
const ARGON2_PASSES: u32 = 2;

/// Finds the settings, cipher by cipher.
pub fn find(search: &mut Search<'_>) -> Result<Opener, NotFound> {
    let one = search.settings.cipher;
    let mut all_tried = Vec::new();
    for cipher in one.map_or(Cipher::ALL.to_vec(), |cipher| vec![cipher]) {
        let found = match cipher {
            Cipher::ChaCha20 => chacha20(search),
            Cipher::SqlCipher => both_sqlcipher(search),
            Cipher::Aes128Cbc | Cipher::Aes256Cbc | Cipher::Rc4 => without_salt(cipher, search),
            Cipher::Aegis => aegis(search),
            Cipher::Ascon128 if one.is_some() => Err(NotFound::Refused(cipher.name())),
            Cipher::Ascon128 => continue,
        };
        match found {
            Err(NotFound::NoneOpens { tried }) => {
                let named = tried.into_iter().map(|one| format!("{} ({one})", cipher.name()));
                all_tried.extend(named);
            }
            found => return found,
        }
    }
    Err(NotFound::NoneOpens { tried: all_tried })
}

/// The newer format first, then SQLCipher's own.
fn both_sqlcipher(search: &mut Search<'_>) -> Result<Opener, NotFound> {
    if search.settings.compatibility.is_none() {
        match sqlcipher::find_from(CLEAR_BYTES, search) {
            Err(NotFound::NoneOpens { .. }) => {}
            found => return found,
        }
    }
    sqlcipher::find(search)
}

fn chacha20(search: &mut Search<'_>) -> Result<Opener, NotFound> {
    search.salt()?;
    let (settings, secret) = (search.settings, search.secret);
    let header = settings.plaintext_header;
    let mut tried = Vec::new();
    let newer = settings.iterations.unwrap_or(CHACHA20_ITERATIONS);
    // sqleet's count cannot be changed.
    for (is_sqleet, iterations) in [(false, newer), (true, SQLEET_ITERATIONS)] {
        let is_wanted = is_sqleet == (settings.compatibility == Some(1));
        if settings.compatibility.is_some() && !is_wanted {
            continue;
        }
        let (key, kdf) = match secret {
            Secret::Raw(raw) => {
                let mut key = Zeroizing::new([0; 32]);
                key.copy_from_slice(raw.key.get(..32).unwrap_or(&[0; 32]));
                (key, "raw key".to_owned())
            }
            Secret::Passphrase(passphrase) => {
                let key = search.derive(passphrase, Hash::Sha256, iterations);
                let Some(key) = key else { continue };
                (key, format!("SHA256, {iterations} iterations"))
            }
        };
        tried.push(kdf.clone());
        let first = if is_sqleet { header } else { header.max(CLEAR_BYTES) };
        let has_tag = settings.tag != Some(Tag::None) && search.pass != Pass::Untagged;
        if is_sqleet && !has_tag {
            continue;
        }
        let pages = ChaCha20Pages { key, has_tag, first, begins_with_salt: header == 0 };
        let Some(bytes) = search.page_bytes(&pages, 4096) else { continue };
        let name = if is_sqleet { "sqleet" } else { "SQLite3 Multiple Ciphers" };
        let tag = if has_tag { "" } else { ", no tags" };
        let told = format!("{name} (chacha20{tag}, {kdf}, page size {bytes})");
        return Ok(Opener { pages: Box::new(pages), page_bytes: bytes, told });
    }
    Err(NotFound::NoneOpens { tried })
}

/// AEGIS-256, the default, and AEGIS-128L. The four wider variants are not read.
fn aegis(search: &Search<'_>) -> Result<Opener, NotFound> {
    let salt = search.salt()?;
    let header = search.settings.plaintext_header;
    let mut tried = Vec::new();
    for (name, key_bytes) in [("aegis-256", 32), ("aegis-128l", 16)] {
        let mut key = Zeroizing::new(vec![0; key_bytes]);
        let kdf = match search.secret {
            Secret::Raw(raw) if raw.key.len() == key_bytes => {
                key.copy_from_slice(&raw.key);
                "raw key"
            }
            Secret::Raw(_) => continue,
            Secret::Passphrase(passphrase) => {
                let params = argon2::Params::new(ARGON2_KIB, ARGON2_PASSES, 1, Some(key_bytes));
                let derived = params.and_then(|params| {
                    let version = argon2::Version::V0x13;
                    argon2::Argon2::new(argon2::Algorithm::Argon2id, version, params)
                        .hash_password_into(passphrase, &salt, &mut key)
                });
                if derived.is_err() {
                    continue;
                }
                "Argon2id"
            }
        };
        tried.push(format!("{name}, {kdf}"));
        let first = header.max(CLEAR_BYTES);
        let pages = AegisPages { key, first, begins_with_salt: header == 0 };
        if let Some(bytes) = search.page_bytes(&pages, 4096) {
            let told = format!("SQLite3 Multiple Ciphers ({name}, {kdf}, page size {bytes})");
            return Ok(Opener { pages: Box::new(pages), page_bytes: bytes, told });
        }
    }
    Err(NotFound::NoneOpens { tried })
}

/// Ciphers whose key depends on the password alone.
fn without_salt(cipher: Cipher, search: &Search<'_>) -> Result<Opener, NotFound> {
    let none = || NotFound::NoneOpens { tried: vec!["the password alone".to_owned()] };
    let Secret::Passphrase(password) = search.secret else {
        return Err(NotFound::NoneOpens { tried: vec!["it has no raw keys".to_owned()] });
    };
    let pages: Box<dyn Pages> = match cipher {
        Cipher::Aes128Cbc => Box::new(AesPages::aes128(password).ok_or_else(none)?),
        Cipher::Aes256Cbc => Box::new(AesPages::aes256(password)),
        _ => Box::new(Rc4Pages::new(password)),
    };
    let bytes = search.page_bytes(&*pages, 4096).ok_or_else(none)?;
    let told = format!("SQLite3 Multiple Ciphers ({}, no tags, page size {bytes})", cipher.name());
    Ok(Opener { pages, page_bytes: bytes, told })
}

//! The settings of a SQLCipher database.

use super::*;
use crate::cipher::sqlcipher as keys;
use crate::settings::Cipher;

/// A key derivation, and what goes with it unless something else was set.
#[derive(Debug, Clone, Copy)]
struct Derivation {
    kdf: Hash,
    iterations: u32,
    /// The version that had it by default.
    version: u8,
}

/// The defaults of the versions (`PRAGMA cipher_compatibility`).
const DEFAULTS: [Derivation; 4] = [
    Derivation { kdf: Hash::Sha512, iterations: 256_000, version: 4 },
    Derivation { kdf: Hash::Sha1, iterations: 64_000, version: 3 },
    Derivation { kdf: Hash::Sha1, iterations: 4_000, version: 2 },
    Derivation { kdf: Hash::Sha1, iterations: 4_000, version: 1 },
];

impl Derivation {
    fn page_bytes(self) -> u32 {
        if self.version == 4 {
            4096
        } else {
            1024
        }
    }
}

/// Derivations to try for a passphrase, each once.
fn derivations(settings: &Settings) -> Vec<Derivation> {
    let mut all: Vec<Derivation> = DEFAULTS
        .into_iter()
        .filter(|one| settings.compatibility.is_none_or(|version| version == one.version))
        .collect();
    if let Some(iterations) = settings.iterations {
        let hashes = match (settings.kdf, settings.compatibility) {
            (Some(kdf), _) => vec![kdf],
            (None, Some(_)) => all.iter().map(|one| one.kdf).collect(),
            (None, None) => Hash::ALL.to_vec(),
        };
        let version = settings.compatibility.unwrap_or(4);
        all = hashes.into_iter().map(|kdf| Derivation { kdf, iterations, version }).collect();
    } else if let Some(kdf) = settings.kdf {
        all.iter_mut().for_each(|one| one.kdf = kdf);
    }
    let mut seen: Vec<(Hash, u32)> = Vec::new();
    all.retain(|one| {
        let is_new = !seen.contains(&(one.kdf, one.iterations));
        seen.push((one.kdf, one.iterations));
        is_new
    });
    all
}

/// Tags to try under a derivation, those of its version first.
fn tags(search: &Search<'_>, kdf: Hash) -> Vec<Tag> {
    match (search.settings.tag, search.settings.compatibility) {
        (Some(tag), _) => vec![tag],
        (None, Some(1)) => vec![Tag::None],
        _ if search.pass == Pass::Untagged => vec![Tag::None],
        _ => {
            let others = Hash::ALL.into_iter().filter(|hash| *hash != kdf);
            std::iter::once(kdf).chain(others).map(Tag::Hmac).collect()
        }
    }
}

/// Finds the settings in SQLCipher's own format.
pub fn find(search: &mut Search<'_>) -> Result<Opener, NotFound> {
    find_from(SALT_BYTES, search)
}

/// The same where the ciphertext of page 1 begins at `first`, or behind a longer plaintext header.
pub fn find_from(first: usize, search: &mut Search<'_>) -> Result<Opener, NotFound> {
    if search.settings.cipher.is_some_and(|cipher| cipher != Cipher::SqlCipher) {
        return Err(NotFound::Setting(
            "SQLCipher has one cipher: leave out `--cipher`, or give `--from sqlite3mc`",
        ));
    }
    let salt = search.salt()?;
    let mut tried = Vec::new();
    match search.secret {
        Secret::Passphrase(passphrase) => {
            for one in derivations(search.settings) {
                let key = search.derive(passphrase, one.kdf, one.iterations);
                let Some(key) = key else { continue };
                tried.push(format!("{} with {} iterations", one.kdf.name(), one.iterations));
                let keys = keys::Keys::new(&key, None, &salt, one.kdf);
                let kdf = format!("{}, {} iterations", one.kdf.name(), one.iterations);
                if let Some(found) = with_keys(first, search, &keys, one, &kdf) {
                    return Ok(found);
                }
            }
        }
        Secret::Raw(raw) => {
            tried.push("the raw key".to_owned());
            let Ok(key) = <&[u8; 32]>::try_from(&raw.key[..]) else {
                return Err(NotFound::NoneOpens { tried });
            };
            let given = raw.hmac_key.as_deref();
            let hashes = search.settings.kdf.map_or(Hash::ALL.to_vec(), |kdf| vec![kdf]);
            for kdf in hashes {
                let keys = keys::Keys::new(key, given, &salt, kdf);
                let version = if kdf == Hash::Sha512 { 4 } else { 3 };
                let one = Derivation { kdf, iterations: 0, version };
                if let Some(found) = with_keys(first, search, &keys, one, "raw key") {
                    return Ok(found);
                }
            }
        }
    }
    Err(NotFound::NoneOpens { tried })
}

fn with_keys(
    first: usize,
    search: &Search<'_>,
    keys: &keys::Keys,
    one: Derivation,
    kdf: &str,
) -> Option<Opener> {
    let header = search.settings.plaintext_header;
    let is_newer = first > SALT_BYTES;
    let first = if is_newer || header == 0 { header.max(first) } else { header };
    for tag in tags(search, one.kdf) {
        let pages = SqlCipherPages::new(keys, tag, first, header > 0)?;
        let Some(bytes) = search.page_bytes(&pages, one.page_bytes()) else { continue };
        let described = described(kdf, bytes, tag, header);
        let told = format!("{} ({described})", name(is_newer, one, tag));
        return Some(Opener { pages: Box::new(pages), page_bytes: bytes, told });
    }
    None
}

/// `SQLCipher 4`: the version whose derivation and tag they are.
fn name(is_newer: bool, one: Derivation, tag: Tag) -> String {
    if is_newer {
        return "SQLite3 Multiple Ciphers, sqlcipher".to_owned();
    }
    let known = DEFAULTS.iter().find(|known| {
        let own = if known.version == 1 { Tag::None } else { Tag::Hmac(known.kdf) };
        (known.kdf, known.iterations, own) == (one.kdf, one.iterations, tag)
    });
    match known {
        Some(known) => format!("SQLCipher {}", known.version),
        None => "SQLCipher with other settings".to_owned(),
    }
}

fn described(kdf: &str, page_bytes: u32, tag: Tag, header: usize) -> String {
    let tag = match tag {
        Tag::Hmac(hash) => format!("HMAC {}", hash.name()),
        Tag::None => "no HMAC".to_owned(),
    };
    let header =
        if header > 0 { format!(", plaintext header of {header} bytes") } else { String::new() };
    format!("{kdf}, {tag}, page size {page_bytes}{header}")
}

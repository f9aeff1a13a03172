//! What `encrypt` takes about a database of another program.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use pellucid_foreign::settings::{Cipher, Hash, Program, Settings, Tag};
use pellucid_foreign::{RawKey, Secret};

use crate::keys;
use crate::output::{Failure, Id};

/// What is known of the old database. What is not given is tried.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for a database of another program")]
pub struct FromArgs {
    /// Program that encrypted the database; `--passphrase-file` or `--raw-key-file` is its old secret
    #[arg(long = "from", value_name = "PROGRAM", value_enum, requires = "to")]
    pub program: Option<Named<Program>>,
    /// Database to create; no file of that name may exist
    #[arg(long, value_name = "NEW", requires = "program")]
    pub to: Option<PathBuf>,
    /// File with the old raw key: `x'..'`, hexadecimal digits, or bytes; 32 bytes, 48 with the salt. `-` reads standard input
    #[arg(long, value_name = "FILE", requires = "program", conflicts_with = "passphrase_file")]
    raw_key_file: Option<PathBuf>,
    /// Old cipher
    #[arg(long, value_name = "CIPHER", value_enum, requires = "program")]
    cipher: Option<Named<Cipher>>,
    /// Version of SQLCipher whose defaults the old database has (1 to 4)
    #[arg(long, value_name = "VERSION", requires = "program")]
    compatibility: Option<u8>,
    /// Old page size in bytes
    #[arg(long, value_name = "BYTES", requires = "program")]
    page_size: Option<u32>,
    /// Iterations of the old key derivation
    #[arg(long, value_name = "COUNT", requires = "program")]
    kdf_iter: Option<u32>,
    /// Hash of the old key derivation
    #[arg(long, value_name = "HASH", value_enum, requires = "program")]
    kdf_algorithm: Option<Named<Hash>>,
    /// Hash of the old pages' tags; `none` for pages without tags
    #[arg(long, value_name = "HASH", value_enum, requires = "program")]
    hmac: Option<Named<Tag>>,
    /// Bytes at the beginning of the old database that are in clear; `--salt` is needed then
    #[arg(long, value_name = "BYTES", requires = "program")]
    plaintext_header: Option<usize>,
    /// Salt of the old database, where it does not begin with it: 32 hexadecimal digits
    #[arg(long, value_name = "HEX", requires = "program")]
    salt: Option<String>,
    /// File with a raw key for the new database
    #[arg(long, value_name = "FILE", requires = "program")]
    pub new_key_file: Option<PathBuf>,
    /// File with a passphrase for the new database
    #[arg(long, value_name = "FILE", requires = "program")]
    pub new_passphrase_file: Option<PathBuf>,
}

impl FromArgs {
    /// What is known.
    pub fn settings(&self) -> Result<Settings, Failure> {
        let salt = match &self.salt {
            None => None,
            Some(digits) => Some(pellucid_foreign::salt(digits).ok_or_else(|| {
                super::usage(
                    "`--salt` takes 32 hexadecimal digits",
                    "they are what `PRAGMA cipher_salt` shows",
                )
            })?),
        };
        Ok(Settings {
            cipher: self.cipher.map(|named| named.0),
            compatibility: self.compatibility,
            page_bytes: self.page_size,
            iterations: self.kdf_iter,
            kdf: self.kdf_algorithm.map(|named| named.0),
            tag: self.hmac.map(|named| named.0),
            plaintext_header: self.plaintext_header.unwrap_or(0),
            salt,
        })
    }

    /// The old secret.
    pub fn secret(&self, passphrase: Option<&Path>) -> Result<Secret, Failure> {
        match (&self.raw_key_file, passphrase) {
            (Some(path), _) => {
                let content = keys::secret(path, "Raw key: ")?;
                RawKey::parse(&content).map(Secret::Raw).ok_or_else(|| {
                    Failure::new(Id::NotARawKey,
                        "it is not a raw key",
                        "a raw key has 32 bytes, 48 with the salt, 80 with the key of the tags as well: as bytes, as \
                         hexadecimal digits, or as `x'..'`",
                    )
                    .about(path)
                })
            }
            (None, Some(path)) => {
                let content = keys::secret(path, "Passphrase: ")?;
                let content = without_line_end(&content);
                if content.is_empty() {
                    return Err(Failure::new(Id::OldPassphraseEmpty, "the passphrase is empty", "name the old passphrase")
                        .about(path));
                }
                Ok(Secret::of_passphrase(content))
            }
            (None, None) => Err(super::usage(
                "the old database's secret is not named",
                "name it with `--passphrase-file` or `--raw-key-file`; `--passphrase-file -` asks for it",
            )),
        }
    }
}

fn without_line_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// A value under the name that the old program gives it.
#[derive(Debug, Clone, Copy)]
pub struct Named<T>(pub T);

impl ValueEnum for Named<Program> {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(Program::SqlCipher), Self(Program::MultipleCiphers)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            Program::SqlCipher => PossibleValue::new("sqlcipher"),
            Program::MultipleCiphers => PossibleValue::new("sqlite3mc"),
        })
    }
}

impl ValueEnum for Named<Cipher> {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Named<Cipher>; Cipher::ALL.len()] = {
            let mut all = [Named(Cipher::ChaCha20); Cipher::ALL.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = Named(Cipher::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

impl ValueEnum for Named<Hash> {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(Hash::Sha512), Self(Hash::Sha256), Self(Hash::Sha1)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(hash(self.0))
    }
}

impl ValueEnum for Named<Tag> {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self(Tag::Hmac(Hash::Sha512)),
            Self(Tag::Hmac(Hash::Sha256)),
            Self(Tag::Hmac(Hash::Sha1)),
            Self(Tag::None),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            Tag::Hmac(of) => hash(of),
            Tag::None => PossibleValue::new("none"),
        })
    }
}

/// Also by the names that `PRAGMA cipher_kdf_algorithm` and `PRAGMA cipher_hmac_algorithm` take.
fn hash(hash: Hash) -> PossibleValue {
    let (name, pragmas) = match hash {
        Hash::Sha1 => ("sha1", ["PBKDF2_HMAC_SHA1", "HMAC_SHA1"]),
        Hash::Sha256 => ("sha256", ["PBKDF2_HMAC_SHA256", "HMAC_SHA256"]),
        Hash::Sha512 => ("sha512", ["PBKDF2_HMAC_SHA512", "HMAC_SHA512"]),
    };
    PossibleValue::new(name).aliases(pragmas)
}

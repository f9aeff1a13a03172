//! What the maker of a database chose: given by its owner, or found.

use crate::secret::SALT_BYTES;

/// The program that made a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// SQLCipher, versions 1 to 4.
    SqlCipher,
    /// SQLite3 Multiple Ciphers, and what it took over: sqleet, wxSQLite3, System.Data.SQLite.
    MultipleCiphers,
}

/// How a page is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cipher {
    /// AES-256-CBC with an HMAC, as SQLCipher does.
    SqlCipher,
    /// ChaCha20-Poly1305; by `legacy` what sqleet did.
    ChaCha20,
    /// AES-128-CBC of wxSQLite3.
    Aes128Cbc,
    /// AES-256-CBC of wxSQLite3.
    Aes256Cbc,
    /// RC4 of System.Data.SQLite.
    Rc4,
    /// Ascon-128 v1.2.
    Ascon128,
    /// AEGIS-256 and AEGIS-128L.
    Aegis,
}

impl Cipher {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 7] = [
        Self::ChaCha20,
        Self::SqlCipher,
        Self::Aes256Cbc,
        Self::Aes128Cbc,
        Self::Ascon128,
        Self::Aegis,
        Self::Rc4,
    ];

    /// The name that SQLite3 Multiple Ciphers gives it (`PRAGMA cipher`).
    pub fn name(self) -> &'static str {
        match self {
            Self::SqlCipher => "sqlcipher",
            Self::ChaCha20 => "chacha20",
            Self::Aes128Cbc => "aes128cbc",
            Self::Aes256Cbc => "aes256cbc",
            Self::Rc4 => "rc4",
            Self::Ascon128 => "ascon128",
            Self::Aegis => "aegis",
        }
    }
}

/// A hash function, for the derivation of keys and for tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    Sha1,
    Sha256,
    Sha512,
}

impl Hash {
    /// All of them, the strongest first.
    pub const ALL: [Self; 3] = [Self::Sha512, Self::Sha256, Self::Sha1];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
            Self::Sha512 => "SHA512",
        }
    }

    /// Bytes of the digest.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }
}

/// The tag of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// An HMAC.
    Hmac(Hash),
    /// None: nothing tells a changed page.
    None,
}

/// The most iterations of a key derivation that are computed: about ten seconds on one core for each try.
pub const ITERATIONS_MOST: u32 = 10_000_000;

/// The smallest and the largest page of SQLite.
pub const PAGE_BYTES: [u32; 8] = [4096, 1024, 8192, 2048, 16384, 32768, 65536, 512];

/// What the owner of a database knows of it. What is `None` is tried.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// `PRAGMA cipher`.
    pub cipher: Option<Cipher>,
    /// `PRAGMA cipher_compatibility`, or `legacy`: 1 to 4.
    pub compatibility: Option<u8>,
    /// `PRAGMA cipher_page_size`.
    pub page_bytes: Option<u32>,
    /// `PRAGMA kdf_iter`.
    pub iterations: Option<u32>,
    /// `PRAGMA cipher_kdf_algorithm`.
    pub kdf: Option<Hash>,
    /// `PRAGMA cipher_hmac_algorithm`, `PRAGMA cipher_use_hmac`.
    pub tag: Option<Tag>,
    /// `PRAGMA cipher_plaintext_header_size`.
    pub plaintext_header: usize,
    /// `PRAGMA cipher_salt`: where the file does not begin with it.
    pub salt: Option<[u8; SALT_BYTES]>,
}

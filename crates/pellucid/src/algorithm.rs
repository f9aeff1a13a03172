//! The four algorithms that seal a database, with their ids on disk and their names.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result, Subject};

/// The algorithm of a DEK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Algorithm {
    /// AES-128-GCM.
    Aes128,
    /// AES-192-GCM.
    Aes192,
    /// AES-256-GCM, the default.
    #[default]
    Aes256,
    /// Three-key triple DES in CBC mode, then HMAC-SHA256. It is deprecated, and there for parity
    /// with SQL Server.
    TripleDes3Key,
}

impl Algorithm {
    /// Every algorithm, in the order of their ids.
    pub const ALL: [Algorithm; 4] =
        [Algorithm::Aes128, Algorithm::Aes192, Algorithm::Aes256, Algorithm::TripleDes3Key];

    /// The id of the next algorithm. No version has given it a meaning; it is refused by name.
    pub const RESERVED_ID: u8 = 5;

    /// Returns the id on disk (docs/format.md, "Algorithms").
    pub const fn id(self) -> u8 {
        match self {
            Algorithm::Aes128 => 1,
            Algorithm::Aes192 => 2,
            Algorithm::Aes256 => 3,
            Algorithm::TripleDes3Key => 4,
        }
    }

    /// Returns the algorithm of an id on disk.
    ///
    /// # Errors
    /// [`Error::Unsupported`], which names an unknown id.
    pub fn from_id(id: u8) -> Result<Self> {
        Self::ALL.into_iter().find(|a| a.id() == id).ok_or_else(|| {
            Error::unknown(Subject::Container, "algorithm", id, &[Self::RESERVED_ID])
        })
    }

    /// Returns SQL Server's name of the algorithm.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Aes128 => "AES_128",
            Algorithm::Aes192 => "AES_192",
            Algorithm::Aes256 => "AES_256",
            Algorithm::TripleDes3Key => "TRIPLE_DES_3KEY",
        }
    }

    /// Whether the algorithm should seal no new database.
    pub const fn is_deprecated(self) -> bool {
        matches!(self, Algorithm::TripleDes3Key)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|a| a.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            Error::unsupported(
                Subject::Option("algorithm".into()),
                "not one of AES_128, AES_192, AES_256, TRIPLE_DES_3KEY",
            )
        })
    }
}

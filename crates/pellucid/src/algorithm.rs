//! The five algorithms that seal a database, with their ids on disk and their names.

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
    /// AEGIS-256X4, in containers of version 2 alone. SQL Server has none like it.
    Aegis256,
}

impl Algorithm {
    /// Every algorithm, in the order of their ids.
    pub const ALL: [Algorithm; 5] = [
        Algorithm::Aes128,
        Algorithm::Aes192,
        Algorithm::Aes256,
        Algorithm::TripleDes3Key,
        Algorithm::Aegis256,
    ];
    /// SQL Server's four, which seal backup sets as well.
    pub const OF_SETS: [Algorithm; 4] =
        [Algorithm::Aes128, Algorithm::Aes192, Algorithm::Aes256, Algorithm::TripleDes3Key];

    /// The id of the algorithm that containers of version 1 and backup sets refuse as reserved.
    pub const RESERVED_ID: u8 = Algorithm::Aegis256.id();

    /// Returns the id on disk (docs/format.md, "Algorithms").
    pub const fn id(self) -> u8 {
        match self {
            Algorithm::Aes128 => 1,
            Algorithm::Aes192 => 2,
            Algorithm::Aes256 => 3,
            Algorithm::TripleDes3Key => 4,
            Algorithm::Aegis256 => 5,
        }
    }

    /// Returns the algorithm of an id in a container's header of `version`.
    ///
    /// # Errors
    /// [`Error::Unsupported`], which names an unknown id, or one that is reserved in that version.
    pub fn of_container(id: u8, version: u32) -> Result<Self> {
        match version {
            1 => Self::among(&Self::OF_SETS, id, &[Self::RESERVED_ID]),
            _ => Self::among(&Self::ALL, id, &[]),
        }
    }

    /// Returns the algorithm of an id in the header of a backup set.
    ///
    /// # Errors
    /// [`Error::Unsupported`], which names an unknown or reserved id.
    pub fn of_set(id: u8) -> Result<Self> {
        Self::among(&Self::OF_SETS, id, &[Self::RESERVED_ID])
    }

    fn among(known: &[Self], id: u8, reserved: &[u8]) -> Result<Self> {
        let found = known.iter().find(|algorithm| algorithm.id() == id);
        found.copied().ok_or_else(|| Error::unknown(Subject::Container, "algorithm", id, reserved))
    }

    /// The version of a container's header that has the algorithm first.
    pub const fn first_version(self) -> u32 {
        match self {
            Algorithm::Aegis256 => 2,
            _ => 1,
        }
    }

    /// Whether the algorithm may seal a backup set.
    pub const fn is_of_sets(self) -> bool {
        !matches!(self, Algorithm::Aegis256)
    }

    /// Returns the algorithm's name: SQL Server's, where SQL Server has it.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Aes128 => "AES_128",
            Algorithm::Aes192 => "AES_192",
            Algorithm::Aes256 => "AES_256",
            Algorithm::TripleDes3Key => "TRIPLE_DES_3KEY",
            Algorithm::Aegis256 => "AEGIS_256",
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
                "not one of AES_128, AES_192, AES_256, TRIPLE_DES_3KEY, AEGIS_256",
            )
        })
    }
}

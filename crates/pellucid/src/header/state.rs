//! The encryption states: their numbers on disk, and their words.

use crate::error::{Error, Result, Subject};

/// The state of a database's pages, as SQL Server's `encryption_state` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum EncryptionState {
    /// All pages plain, each with a tag.
    Unencrypted = 1,
    /// A scan is sealing the pages.
    Encrypting = 2,
    /// All pages sealed.
    Encrypted = 3,
    /// A scan is moving the pages to a new DEK.
    KeyChange = 4,
    /// A scan is opening the pages.
    Decrypting = 5,
    /// The protectors are being changed.
    ProtectionChange = 6,
}

impl EncryptionState {
    pub(super) fn from_id(id: u8) -> Result<Self> {
        use EncryptionState::*;
        [Unencrypted, Encrypting, Encrypted, KeyChange, Decrypting, ProtectionChange]
            .into_iter()
            .find(|state| *state as u8 == id)
            .ok_or_else(|| {
                Error::unsupported(
                    Subject::Container,
                    format!("encryption state {id} is not known to this version"),
                )
            })
    }

    /// Lower-case words for people.
    pub const fn name(self) -> &'static str {
        match self {
            EncryptionState::Unencrypted => "unencrypted",
            EncryptionState::Encrypting => "encrypting",
            EncryptionState::Encrypted => "encrypted",
            EncryptionState::KeyChange => "key change",
            EncryptionState::Decrypting => "decrypting",
            EncryptionState::ProtectionChange => "protection change",
        }
    }

    /// SQL Server's `encryption_state_desc`.
    pub const fn description(self) -> &'static str {
        match self {
            EncryptionState::Unencrypted => "UNENCRYPTED",
            EncryptionState::Encrypting => "ENCRYPTION_IN_PROGRESS",
            EncryptionState::Encrypted => "ENCRYPTED",
            EncryptionState::KeyChange => "KEY_CHANGE_IN_PROGRESS",
            EncryptionState::Decrypting => "DECRYPTION_IN_PROGRESS",
            EncryptionState::ProtectionChange => "PROTECTION_CHANGE_IN_PROGRESS",
        }
    }
}

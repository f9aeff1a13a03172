//! What is there, told without a key.

use std::path::Path;

use super::{instance, master, provider, Keyring, Source};
use pellucid::error::Result;

/// The keys of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// Where the service master key comes from.
    pub service_key: Option<Source>,
    /// Whether the database master key opens by itself.
    pub encrypted_by_service_key: bool,
    /// Passwords that open the database master key.
    pub passwords: usize,
    /// Certificates in the keyring.
    pub certificates: usize,
}

impl Description {
    /// Whether there is a database master key.
    pub fn exists(&self) -> bool {
        self.encrypted_by_service_key || self.passwords > 0
    }

    /// What opens it, in words.
    pub fn opened_by(&self) -> String {
        let passwords = match self.passwords {
            0 => None,
            1 => Some("a password".to_owned()),
            n => Some(format!("{n} passwords")),
        };
        let service = self.encrypted_by_service_key.then(|| "the service master key".to_owned());
        let ways: Vec<String> = service.into_iter().chain(passwords).collect();
        if ways.is_empty() {
            "nothing".to_owned()
        } else {
            ways.join(" and ")
        }
    }
}

impl Keyring {
    /// Looks at an instance.
    ///
    /// # Errors
    /// [`pellucid::Error::Io`] if a directory cannot be read.
    pub fn describe(home: &Path) -> Result<Description> {
        let certificates = home.join("keyring/certificates");
        Ok(Description {
            service_key: provider::find(home)?.map(|(_, source)| source),
            encrypted_by_service_key: master::master_path(home).exists(),
            passwords: master::passwords(home)?.len(),
            certificates: match certificates.exists() {
                true => instance::names_in(&certificates)?.len(),
                false => 0,
            },
        })
    }
}

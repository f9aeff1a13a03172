//! The key of the instance's history (`msdb.db`), so that it depends on no certificate.
//!
//! Layout: docs/format.md, "Keyring".

use std::path::Path;

use zeroize::Zeroizing;

use super::sealed_file::{Kind, SealedFile};
use super::Keyring;
use pellucid::error::{Error, Result, Subject};
use pellucid::protector::KeyFile;
use pellucid::secret::Secret32;

const NAME: &str = "history";

pub(super) fn file(home: &Path) -> SealedFile {
    SealedFile::new(home.join("keyring").join(NAME), Kind::History, NAME)
}

/// The bytes of the key, for a bundle; none if no history was ever begun.
pub(super) fn key_bytes(keyring: &Keyring) -> Result<Option<Zeroizing<Vec<u8>>>> {
    // What is no key opens nothing elsewhere either.
    keyring.history_key()?;
    keyring.read(&file(keyring.home()))
}

impl Keyring {
    /// The key of the history; none if no history was ever begun.
    ///
    /// # Errors
    /// What is wrong with the file it is in.
    pub fn history_key(&self) -> Result<Option<KeyFile>> {
        let file = file(self.home());
        let Some(bytes) = self.read(&file)? else { return Ok(None) };
        let key = KeyFile::parse(&bytes);
        let subject = || Subject::File(file.path().to_owned());
        key.map(Some).ok_or_else(|| Error::corrupt(subject(), "not a key of 32 bytes"))
    }

    /// The key of the history, made where there is none.
    ///
    /// # Errors
    /// As [`Keyring::history_key`]; [`Error::Io`] if it cannot be written.
    pub fn ensure_history_key(&self) -> Result<KeyFile> {
        if let Some(key) = self.history_key()? {
            return Ok(key);
        }
        let (_change, now) = self.begin_change()?;
        file(self.home()).create(now.key(), Secret32::random()?.expose())?;
        let made = now.history_key()?;
        made.ok_or_else(|| Error::missing_key(Subject::Key("history"), "it vanished"))
    }

    /// Another key, because nothing opens under the one there is: the next history begins anew.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written.
    pub fn renew_history_key(&self) -> Result<()> {
        let (_change, now) = self.begin_change()?;
        file(self.home()).replace(now.key(), Secret32::random()?.expose())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_once_and_carried_over_to_another_master_key() {
        let home = tempfile::tempdir().unwrap();
        let (keyring, _) = Keyring::open_or_create(home.path()).unwrap();
        assert!(keyring.history_key().unwrap().is_none());
        let made = keyring.ensure_history_key().unwrap().identity();
        assert_eq!(keyring.ensure_history_key().unwrap().identity(), made);
        let change = super::super::Change::begin(home.path()).unwrap();
        change.replace_database_key(Some(&keyring), None, None, false).unwrap();
        drop(change);
        let keyring = Keyring::open(home.path()).unwrap();
        assert_eq!(keyring.history_key().unwrap().unwrap().identity(), made);
        keyring.renew_history_key().unwrap();
        assert_ne!(keyring.history_key().unwrap().unwrap().identity(), made);
    }
}

//! A protector made again for another DEK, so that the same key opens the database after a rekey.

use super::missing::Closed;
use super::{wrap, Argon2Cost, Binding, KeySource, PassphraseProtector, Protector, Wrapping};
use crate::error::{Error, Result, Subject};
use crate::secret::Dek;

impl Protector {
    /// Makes the same protector around `dek`, bound to `new`. A key file or a passphrase first has
    /// to open this protector, bound to `old`, to prove that it is the right one.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if its key is not at hand.
    pub fn again(
        &self,
        old: &Binding<'_>,
        new: &Binding<'_>,
        dek: &Dek,
        keys: &dyn KeySource,
    ) -> Result<Protector> {
        let missing = |what: String| Error::missing_key(Subject::Container, what);
        match self {
            Protector::KeyFile(own) => {
                let mut keys = keys.key_files().chunks(1);
                let key = keys.find(|key| own.unwrap(old, key).is_ok()).and_then(<[_]>::first);
                let key = key.ok_or_else(|| missing("its key file is not at hand".into()))?;
                wrap(dek, new, &Wrapping::KeyFile(key))
            }
            Protector::Passphrase(own) => {
                let mut keys = keys.passphrases().chunks(1);
                let key = keys.find(|key| own.unwrap(old, key).is_ok()).and_then(<[_]>::first);
                let key = key.ok_or_else(|| missing("its passphrase is not at hand".into()))?;
                // It was chosen before: its length is not for a rekey to judge.
                let again = PassphraseProtector::wrap(dek, new, key, Argon2Cost::default())?;
                Ok(Protector::Passphrase(again))
            }
            Protector::Certificate(own) if own.is_recovery() => {
                let public = keys.public_certificate(own.thumbprint())?;
                let public = public
                    .ok_or_else(|| missing(format!("{} is not in the keyring", own.describe())))?;
                wrap(dek, new, &Wrapping::Recovery(&public))
            }
            Protector::Certificate(own) => {
                let certificate = own.find_certificate(keys).map_err(|closed| match closed {
                    Closed::Missing(key) => missing(key.of_one(new.purpose)),
                    Closed::Trouble(error) | Closed::Failed(error) => error,
                })?;
                wrap(dek, new, &Wrapping::Certificate(&certificate))
            }
        }
    }
}

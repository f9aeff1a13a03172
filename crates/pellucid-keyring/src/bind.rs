//! Binding the service master key elsewhere than in clear beside what it protects: to a passphrase, to a credential of
//! systemd's, to a key that a plugin asks for; and back.
//!
//! Each way is written, synced and opened before the way before it is removed: whenever it is interrupted, one of them
//! opens. What is removed may stay in blocks of the medium until they are written over.

use std::path::{Path, PathBuf};

use pellucid::error::{Error, Result, Subject};
use pellucid::protector::{Argon2Cost, Passphrase};
use pellucid::secret::Secret32;
use pellucid::shown::Shown;

use super::instance::group;
use super::password_file::{self, MasterKey};
use super::sealed_file::{link_new, rename, sync_parent, write_temporary};
use super::{bound, master, plugin, provider, Action, Change, Event, Source};

const SMK: Subject = Subject::Key("service master key");

/// What seals a service master key in a file that this machine opens for a service: systemd-creds(1).
pub trait CredentialTool {
    /// Writes the sealed key to the new file `to`.
    ///
    /// # Errors
    /// Why it could not.
    fn seal(&self, key: &Secret32, to: &Path) -> Result<()>;

    /// The key in the file.
    ///
    /// # Errors
    /// Why it does not open.
    fn open(&self, from: &Path) -> Result<Secret32>;
}

impl Change {
    /// Seals the service master key under `passphrase`, also one that is under another passphrase; each other way goes.
    /// Returns the sealed file.
    ///
    /// # Errors
    /// Message 33062 for a passphrase that is too short; [`Error::Misuse`] for a key that does not lie in the instance.
    pub fn bind_to_passphrase(&self, passphrase: &Passphrase) -> Result<PathBuf> {
        passphrase.check_new()?;
        let key = self.key_of_the_instance()?;
        Event::new(Action::Changed, "place of the service master key")
            .of("passphrase")
            .record(self.home())?;
        let cost = Argon2Cost::default();
        let bytes = password_file::seal(MasterKey::Service, &key, passphrase, cost)?;
        let path = bound::path(self.home());
        let temporary = write_temporary(&path, &bytes, group(self.home()))?;
        rename(&temporary, &path)?;
        sync_parent(&path)?;
        prove(&path, bound::prove(self.home(), passphrase)?.as_ref(), &key)?;
        self.remove_clear_key()?;
        remove(&plugin::path(self.home()))?;
        Ok(path)
    }

    /// Wraps the service master key by the plugin's key `by`; each other way goes. Returns the file.
    ///
    /// # Errors
    /// Those of the plugin; [`Error::Misuse`] for a key that does not lie in the instance.
    pub fn bind_to_plugin(&self, name: &str, by: &str) -> Result<PathBuf> {
        let key = self.key_of_the_instance()?;
        // Before it takes the place of another one, it has come out again.
        let bytes = plugin::Place::make(name, by, &key)?;
        Event::new(Action::Changed, "place of the service master key")
            .of(format!("plugin {name}, key {}", by.shown()))
            .record(self.home())?;
        let path = plugin::path(self.home());
        let temporary = write_temporary(&path, &bytes, group(self.home()))?;
        rename(&temporary, &path)?;
        sync_parent(&path)?;
        prove(&path, plugin::prove(self.home(), &bytes)?.then_some(&key), &key)?;
        self.remove_clear_key()?;
        remove(&bound::path(self.home()))?;
        Ok(path)
    }

    /// Seals the service master key in a credential of systemd's, `file`; each other way goes.
    ///
    /// # Errors
    /// Those of `tool`; [`Error::Misuse`] for a key that does not lie in the instance.
    pub fn bind_to_credential(&self, file: &Path, tool: &dyn CredentialTool) -> Result<()> {
        let key = self.key_of_the_instance()?;
        super::sealed_file::check_new(file)?;
        Event::new(Action::Changed, "place of the service master key")
            .of(format!("credential {}", file.shown()))
            .record(self.home())?;
        tool.seal(&key, file)?;
        std::fs::File::open(file)
            .and_then(|sealed| sealed.sync_all())
            .map_err(|error| Error::io(Subject::File(file.to_owned()), error))?;
        sync_parent(file)?;
        prove(file, Some(&tool.open(file)?), &key)?;
        self.remove_clear_key()?;
        remove(&bound::path(self.home()))?;
        remove(&plugin::path(self.home()))
    }

    /// Puts the service master key back into `service.key`, in clear.
    ///
    /// # Errors
    /// [`Error::MissingKey`] without the passphrase that it is bound to; [`Error::Misuse`] if it is bound elsewhere.
    pub fn bind_here(&self) -> Result<PathBuf> {
        let key = self.key_of_the_instance()?;
        Event::new(Action::Changed, "place of the service master key")
            .of("service.key")
            .record(self.home())?;
        let path = clear_path(self.home());
        let temporary = write_temporary(&path, key.expose(), group(self.home()))?;
        link_new(&temporary, &path)?;
        prove(&path, provider::read_key(self.home(), path.clone())?.as_ref(), &key)?;
        remove(&bound::path(self.home()))?;
        remove(&plugin::path(self.home()))?;
        Ok(path)
    }

    /// The key, if it lies in the instance and opens what is below it.
    fn key_of_the_instance(&self) -> Result<Secret32> {
        let (key, source) = provider::find(self.home())?.ok_or_else(|| {
            Error::missing_key(
                SMK,
                format!("none in `{}`: there is nothing to bind", self.home().shown()),
            )
        })?;
        if let Source::Provider(_) | Source::Credential(_) = source {
            return Err(Error::misuse(SMK, format!("it is bound already: it comes from {source}")));
        }
        // What opens nothing is not to be the only one that is left.
        master::master_file(self.home()).read(&key)?;
        Ok(key)
    }

    fn remove_clear_key(&self) -> Result<()> {
        remove(&clear_path(self.home()))
    }
}

fn clear_path(home: &Path) -> PathBuf {
    home.join("service.key")
}

/// The new way opens, or the one before it stays.
fn prove(path: &Path, found: Option<&Secret32>, key: &Secret32) -> Result<()> {
    match found == Some(key) {
        true => Ok(()),
        false => Err(Error::misuse(
            Subject::File(path.to_owned()),
            "the service master key does not come out of it as it was put in; the key was left where it is",
        )),
    }
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Ok(()) => sync_parent(path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io(Subject::File(path.to_owned()), error)),
    }
}

#[cfg(test)]
mod tests;

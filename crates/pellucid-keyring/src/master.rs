//! The two master keys: passwords, backup, restore, and regeneration with everything below sealed anew.
//!
//! A new key lies beside the old one (`service.next`, `keyring/master.next`) until everything below is sealed under it;
//! then it takes the old one's name. At each moment every file opens under one of the two, so readers need no lock and
//! whoever changes the keyring next finishes what was interrupted. Described in docs/format.md, "Keyring".

use std::path::{Path, PathBuf};

use super::lock::Lock;
use super::making::Making;
use super::password_file::{self, MasterKey};
use super::pins::DIRECTORIES;
use super::sealed_file::{
    check_new, check_value, sync_parent, write_new, write_new_inside, Kind, SealedFile,
};
use super::{
    bound, events, history, instance, plugin, provider, providers, roles, service_key, settings,
    Action, Event, Keyring, Source,
};
use pellucid::error::{Error, Result, Subject};
use pellucid::message;
use pellucid::protector::{Argon2Cost, Passphrase};
use pellucid::secret::Secret32;
use pellucid::shown::Shown;

const PASSWORD: &str = "password of the database master key";
const SERVICE_ENCRYPTION: &str = "encryption of the database master key by the service master key";

/// What a regeneration or restoration cannot carry over: files that do not open under the present key.
pub type Lost = Vec<PathBuf>;

/// Whether anything is there that is sealed under the database master key.
pub(super) fn has_children(home: &Path) -> Result<bool> {
    let own = ["certificates", "databases"].into_iter();
    for directory in own.chain(DIRECTORIES.map(|(directory, _)| directory)) {
        if !instance::names_if_there(&home.join("keyring").join(directory))?.is_empty() {
            return Ok(true);
        }
    }
    let files =
        [settings::file(home), history::file(home), providers::file(home), roles::file(home)];
    Ok(files.iter().any(|file| file.path().exists()))
}

/// A keyring while nobody else changes it.
#[derive(Debug)]
pub struct Change {
    home: PathBuf,
    _lock: Lock,
}

impl Change {
    /// Waits for other changes to end, and finishes one that was interrupted.
    ///
    /// # Errors
    /// [`Error::Io`]; what is wrong with a file that has to be carried over.
    pub fn begin(home: &Path) -> Result<Self> {
        let change = Self { home: home.to_owned(), _lock: Lock::take(home)? };
        change.finish_service()?;
        change.finish_database()?;
        Ok(change)
    }

    /// The database master key under a password of its own as well.
    ///
    /// # Errors
    /// Message 33062 for a password that is too short.
    pub fn add_password(&self, keyring: &Keyring, password: &Passphrase) -> Result<()> {
        password.check_new()?;
        let bytes = password_file::seal(
            MasterKey::Database,
            &keyring.master_key,
            password,
            Argon2Cost::default(),
        )?;
        self.record_by(Some(keyring), Event::new(Action::Added, PASSWORD))?;
        self.put_password(&bytes)
    }

    fn put_password(&self, bytes: &[u8]) -> Result<()> {
        // Behind the last number there is none: then the file is there, and the error says so.
        let number =
            passwords(&self.home)?.last().map_or(1, |(number, _)| number.saturating_add(1));
        let directory = self.home.join("keyring/passwords");
        instance::make_directory(&directory)?;
        write_new_inside(&directory.join(number.to_string()), bytes)
    }

    /// Takes a password away.
    ///
    /// # Errors
    /// Message 15465 if it is none of them; [`Error::Misuse`] if nothing else would open the key.
    pub fn drop_password(&self, password: &Passphrase) -> Result<()> {
        let all = passwords(&self.home)?;
        let (_, path) = find_password(&all, password)?;
        if all.len() == 1 && !master_path(&self.home).exists() {
            return Err(only_way());
        }
        self.record(Event::new(Action::Dropped, PASSWORD))?;
        remove(&path)
    }

    /// The database master key no longer opens by itself: a password is needed.
    ///
    /// # Errors
    /// [`Error::Misuse`] if there is no password.
    pub fn drop_service_encryption(&self, keyring: &Keyring) -> Result<()> {
        let check = check_value(&keyring.master_key)?;
        let opens = |path: &PathBuf| {
            std::fs::read(path)
                .is_ok_and(|bytes| password_file::stated_check(&bytes) == Some(check))
        };
        if !passwords(&self.home)?.iter().any(|(_, path)| opens(path)) {
            return Err(only_way());
        }
        self.record_by(Some(keyring), Event::new(Action::Dropped, SERVICE_ENCRYPTION))?;
        remove(&master_path(&self.home))
    }

    /// The database master key opens by itself.
    ///
    /// # Errors
    /// As [`Keyring::open`] for the service master key.
    pub fn add_service_encryption(&self, keyring: &Keyring) -> Result<()> {
        let service = service_key::service_key(&self.home)?;
        master_file(&self.home).check_writable()?;
        self.record_by(Some(keyring), Event::new(Action::Added, SERVICE_ENCRYPTION))?;
        master_file(&self.home).replace(&service, keyring.master_key.expose())
    }

    /// What does not open under the present database master key, nor under the one that is to take its place.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn would_lose(&self, present: Option<&Keyring>, key: Option<&Secret32>) -> Result<Lost> {
        let mut lost = Lost::new();
        for file in children(&self.home)? {
            if !opens(&file, present.map(|keyring| &keyring.master_key), key)? {
                lost.push(file.path().to_owned());
            }
        }
        Ok(lost)
    }

    /// A new database master key, or `key` as it was backed up; everything below is sealed anew. Its old passwords go;
    /// `password` is the new one.
    ///
    /// # Errors
    /// Message 15329 naming what does not open under the present key, unless `force`; then that is lost and listed.
    pub fn replace_database_key(
        &self,
        present: Option<&Keyring>,
        key: Option<Secret32>,
        password: Option<&Passphrase>,
        force: bool,
    ) -> Result<Lost> {
        let action = if key.is_some() { Action::Restored } else { Action::Regenerated };
        let fresh = key.map_or_else(Secret32::random, Ok)?;
        let lost = self.would_lose(present, Some(&fresh))?;
        if !lost.is_empty() && !force {
            return Err(Error::message(message::CURRENT_KEY_UNREADABLE, ""));
        }
        if let Some(password) = password {
            password.check_new()?;
        }
        let service = service_key::service_key(&self.home)?;
        let own = [master_file(&self.home), events::file(&self.home)];
        for file in children(&self.home)?.iter().chain(&own) {
            file.check_writable()?;
        }
        self.record_by(present, Event::new(action, "database master key").forced(force))?;
        // Whoever finishes this after an interruption needs the present key, or has to know that there is none.
        match present {
            Some(present) => {
                master_file(&self.home).replace(&service, present.master_key.expose())?
            }
            None if master_path(&self.home).exists() => remove(&master_path(&self.home))?,
            None => {}
        }
        let next = next_file(&self.home);
        next.replace(&service, fresh.expose())?;
        if let Some(password) = password {
            let bytes =
                password_file::seal(MasterKey::Database, &fresh, password, Argon2Cost::default())?;
            self.put_password(&bytes)?;
        }
        if let Some(present) = present {
            self.carry_over(&present.master_key, &fresh)?;
        }
        self.put_in_place(&fresh)?;
        Ok(lost)
    }

    /// A new service master key, or `key` as it was backed up; the database master key is sealed under it.
    ///
    /// # Errors
    /// Message 15329 if the database master key does not open under the present or the new one, unless `force`; then
    /// the database master key opens by its passwords only, or is lost.
    pub fn replace_service_key(&self, key: Option<Secret32>, force: bool) -> Result<()> {
        let found = match provider::find(&self.home) {
            // A backup opens what is bound to a passphrase that was lost.
            Err(Error::MissingKey { .. }) if key.is_some() => None,
            // Nor can a plugin whose key is lost be asked.
            Err(_) if key.is_some() && plugin::is_there(&self.home) => None,
            found => found?,
        };
        let instead = match &found {
            Some((_, source @ (Source::Provider(_) | Source::Credential(_)))) => {
                Some(format!("it comes from {source}; change it there"))
            }
            Some((_, Source::Sealed(path))) => Some(format!(
                "it is bound to a passphrase (`{}`), and a new key is not: `pellucid key bind --here` puts it back into a file, then do \
                 this again, then `pellucid key bind --passphrase-file` binds the new one",
                path.shown()
            )),
            Some((_, Source::Plugin { path, plugin, .. })) => Some(format!(
                "it is bound to a key of the plugin {plugin} (`{}`), and a new key is not: `pellucid key bind --here` puts it back into a \
                 file, then do this again, then `pellucid key bind --plugin` binds the new one",
                path.shown()
            )),
            _ => None,
        };
        if let Some(instead) = instead {
            return Err(Error::misuse(Subject::Key("service master key"), instead));
        }
        let action = if key.is_some() { Action::Restored } else { Action::Regenerated };
        let fresh = key.map_or_else(Secret32::random, Ok)?;
        let file = master_file(&self.home);
        let present = found.map(|(key, _)| key);
        let content = match &present {
            Some(present) => file.read(present).or_else(|_| file.read(&fresh)),
            None => file.read(&fresh),
        };
        file.check_writable()?;
        let content = match content {
            Err(_) if force => None,
            Err(_) => return Err(Error::message(message::CURRENT_KEY_UNREADABLE, "")),
            Ok(content) => content,
        };
        self.record(Event::new(action, "service master key").forced(force))?;
        service_key::put_next_service_key(&self.home, &fresh)?;
        match content {
            Some(content) => file.replace(&fresh, &content)?,
            None if file.path().exists() => remove(file.path())?,
            None => {}
        }
        service_key::adopt_next_service_key(&self.home)?;
        let stale = [bound::path(&self.home), plugin::path(&self.home)];
        stale.iter().filter(|stale| stale.exists()).try_for_each(|stale| remove(stale))
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    fn record(&self, event: Event) -> Result<()> {
        event.record(&self.home)
    }

    /// Records it with the key of a keyring that may have been opened by a password, and opens no other way.
    fn record_by(&self, keyring: Option<&Keyring>, event: Event) -> Result<()> {
        match keyring {
            Some(keyring) => event.record_by(keyring),
            None => self.record(event),
        }
    }

    /// An interrupted change of the service master key: forward if the database master key is sealed under the new one,
    /// else back.
    fn finish_service(&self) -> Result<()> {
        let Some(next) = service_key::read_next_service_key(&self.home)? else { return Ok(()) };
        let file = master_file(&self.home);
        // Of a newer version's file it cannot be told which key it is under.
        file.check_writable()?;
        // What has no key at hand now may have been restored past, because its passphrase or its token was lost.
        let under_present = match service_key::read_service_key(&self.home) {
            Ok(Some(present)) => file.read(&present).is_ok_and(|content| content.is_some()),
            Ok(None) => false,
            Err(_) if file.read(&next).is_ok_and(|content| content.is_some()) => false,
            Err(error) => return Err(error),
        };
        match under_present || file.read(&next).is_err() {
            true => service_key::drop_next_service_key(&self.home),
            false => service_key::adopt_next_service_key(&self.home),
        }
    }

    /// An interrupted change of the database master key goes forward.
    fn finish_database(&self) -> Result<()> {
        let next = next_file(&self.home);
        if !next.path().exists() {
            return Ok(());
        }
        let service = service_key::service_key(&self.home)?;
        let Some(fresh) = next.read(&service)? else { return Ok(()) };
        let fresh = as_key(&next, &fresh)?;
        if let Some(present) = master_file(&self.home).read(&service)? {
            let present = as_key(&master_file(&self.home), &present)?;
            self.carry_over(&present, &fresh)?;
        }
        self.put_in_place(&fresh)
    }

    /// Seals everything below anew; what opens under neither key stays as it is.
    fn carry_over(&self, present: &Secret32, fresh: &Secret32) -> Result<()> {
        for file in children(&self.home)? {
            match file.read(present) {
                Ok(Some(content)) => file.replace(fresh, &content)?,
                Err(error @ Error::Unsupported { .. }) => return Err(error),
                _ => {}
            }
        }
        events::carry_over(&self.home, present, fresh)
    }

    fn put_in_place(&self, fresh: &Secret32) -> Result<()> {
        let path = master_path(&self.home);
        std::fs::rename(next_file(&self.home).path(), &path)
            .map_err(|error| Error::io(Subject::File(path.clone()), error))?;
        sync_parent(&path)?;
        let check = check_value(fresh)?;
        for (_, path) in passwords(&self.home)? {
            let stale = std::fs::read(&path)
                .is_ok_and(|bytes| password_file::stated_check(&bytes) != Some(check));
            if stale {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

impl Keyring {
    /// Whether the database master key opens by the present service master key, or by the one that is to take its place.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn opens_by_service_key(home: &Path, next: Option<&Secret32>) -> Result<bool> {
        let file = master_file(home);
        let present = service_key::read_service_key(home)?;
        Ok(file.path().exists() && opens(&file, present.as_ref(), next)?)
    }

    /// Opens a keyring by a password of its database master key.
    ///
    /// # Errors
    /// Messages 15465 and 15581.
    pub fn open_by_password(home: &Path, password: &Passphrase) -> Result<Self> {
        let all = passwords(home)?;
        if all.is_empty() {
            return Err(Error::message(message::MASTER_KEY_MISSING, ""));
        }
        let (master_key, _) = find_password(&all, password)?;
        Ok(Self { home: home.to_owned(), master_key })
    }

    /// Writes the database master key under a password to a new file. The keyring remembers that it was backed up.
    ///
    /// # Errors
    /// Messages 15240 and 33062.
    pub fn back_up_database_key(&self, path: &Path, password: &Passphrase) -> Result<()> {
        password.check_new()?;
        check_new(path)?;
        Event::new(Action::BackedUp, "database master key").record_by(self)?;
        let cost = Argon2Cost::default();
        let bytes = password_file::seal(MasterKey::Database, &self.master_key, password, cost)?;
        write_new(path, &bytes)?;
        settings::unless_forbidden(self.note_backup(MasterKey::Database, &self.master_key))
    }
}

/// Writes the service master key under a password to a new file. The keyring, if it opens, remembers that it was backed
/// up.
///
/// # Errors
/// Messages 15240 and 33062; as [`Keyring::open`] for the service master key.
pub fn back_up_service_key(home: &Path, path: &Path, password: &Passphrase) -> Result<()> {
    password.check_new()?;
    Making::wait_if_begun(home);
    let key = service_key::service_key(home)?;
    check_new(path)?;
    Event::new(Action::BackedUp, "service master key").record(home)?;
    let bytes = password_file::seal(MasterKey::Service, &key, password, Argon2Cost::default())?;
    write_new(path, &bytes)?;
    settings::note_service_backup(home, &key)
}

/// Reads a backup of a master key.
///
/// # Errors
/// Messages 15317 and 15465.
pub fn read_key_backup(kind: MasterKey, path: &Path, password: &Passphrase) -> Result<Secret32> {
    password_file::read(kind, path, password)
}

pub(super) fn master_path(home: &Path) -> PathBuf {
    home.join("keyring/master.key")
}

pub(super) fn master_file(home: &Path) -> SealedFile {
    SealedFile::new(master_path(home), Kind::MasterKey, "")
}

pub(super) fn next_file(home: &Path) -> SealedFile {
    SealedFile::new(home.join("keyring/master.next"), Kind::MasterKey, "")
}

pub(super) fn as_key(file: &SealedFile, bytes: &[u8]) -> Result<Secret32> {
    Secret32::from_slice(bytes)
        .ok_or_else(|| Error::corrupt(Subject::File(file.path().to_owned()), "wrong length"))
}

fn opens(file: &SealedFile, present: Option<&Secret32>, next: Option<&Secret32>) -> Result<bool> {
    for key in present.into_iter().chain(next) {
        match file.read(key) {
            Ok(_) => return Ok(true),
            // What only a newer version can read is not lost, and nobody's to lose.
            Err(error @ (Error::Io { .. } | Error::Unsupported { .. })) => return Err(error),
            Err(_) => {}
        }
    }
    Ok(false)
}

/// Everything sealed under the database master key.
pub(super) fn children(home: &Path) -> Result<Vec<SealedFile>> {
    let mut found = Vec::new();
    let own = [("certificates", Kind::Certificate), ("databases", Kind::Database)];
    for (directory, kind) in own.into_iter().chain(DIRECTORIES) {
        let directory = home.join("keyring").join(directory);
        for name in instance::names_if_there(&directory)? {
            found.push(SealedFile::new(directory.join(&name), kind, &name));
        }
    }
    let files =
        [settings::file(home), history::file(home), providers::file(home), roles::file(home)];
    found.extend(files.into_iter().filter(|file| file.path().exists()));
    Ok(found)
}

/// The passwords of the database master key, by number.
pub(super) fn passwords(home: &Path) -> Result<Vec<(u32, PathBuf)>> {
    let directory = home.join("keyring/passwords");
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let mut found: Vec<(u32, PathBuf)> = instance::names_in(&directory)?
        .into_iter()
        .filter_map(|name| Some((name.parse().ok()?, directory.join(name))))
        .collect();
    found.sort();
    Ok(found)
}

/// The key that `password` opens, and its file.
fn find_password(all: &[(u32, PathBuf)], password: &Passphrase) -> Result<(Secret32, PathBuf)> {
    let mut trouble = Error::message(message::PASSWORD_INVALID, "");
    // The newest first: a stale one may be left of a change that was interrupted.
    for (_, path) in all.iter().rev() {
        match password_file::read(MasterKey::Database, path, password) {
            Ok(key) => return Ok((key, path.clone())),
            Err(Error::Message { message: message::PASSWORD_INVALID, .. }) => {}
            Err(error) => trouble = error,
        }
    }
    Err(trouble)
}

fn only_way() -> Error {
    Error::misuse(
        Subject::Key("database master key"),
        "nothing else opens it: add a password, or encryption by the service master key, first",
    )
}

fn remove(path: &Path) -> Result<()> {
    std::fs::remove_file(path).map_err(|error| Error::io(Subject::File(path.to_owned()), error))?;
    sync_parent(path)
}

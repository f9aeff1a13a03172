//! An instance goes into a bundle, and a bundle into an instance: into an empty one as it is, into another one so that
//! nothing that is there changes.
//!
//! Everything is checked before anything is written. What was interrupted is finished by doing it again: what is there
//! already is left alone.

use std::io::Read;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::bundle::{seal, Bundle, Entry, EntryKind, BUNDLE_BYTES_MOST};
use super::certificates::{decode, encode};
use super::databases::DatabaseMemory;
use super::master::{self, as_key, Change};
use super::sealed_file::{check_new, check_value, write_new, Kind, SealedFile};
use super::{instance, password_file, Action, Event, Found, Keyring, Stored};
use crate::error::{Error, Result, Subject};
use crate::message;
use crate::protector::{KeySource, Wrapping};

/// A thing of an instance on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// What it is (`certificate`).
    pub what: &'static str,
    /// Its name; of a database where it lay.
    pub name: String,
    /// A certificate's SHA-256 thumbprint.
    pub thumbprint: Option<[u8; 32]>,
    /// What becomes of it.
    pub fate: Fate,
}

/// What becomes of an entry of a bundle in an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// It is not there yet, or as something older: it comes in.
    New,
    /// It is there already.
    Same,
    /// The same certificate is there under another name.
    SameAs(String),
    /// The instance has one of its own and keeps it.
    Kept,
    /// Something else has its name.
    Conflict,
}

impl Fate {
    /// For people.
    pub fn describe(&self) -> String {
        match self {
            Fate::New => "new".to_owned(),
            Fate::Same => "there already".to_owned(),
            Fate::SameAs(name) => format!("there already, as `{name}`"),
            Fate::Kept => "left out: the instance has its own".to_owned(),
            Fate::Conflict => "CONFLICT: another one has this name".to_owned(),
        }
    }
}

impl Keyring {
    /// Writes everything below the service master key into a new file: the database master key with its passwords, the
    /// certificates with their private keys, which count as backed up by it, and what is known of databases.
    ///
    /// # Errors
    /// Message 15240 if the file is there; what is wrong with a file of the keyring: a bundle has all of it or is not made.
    pub fn export_instance(&self, path: &Path, with: &Wrapping<'_>) -> Result<Vec<Carried>> {
        let (_change, now) = self.begin_change()?;
        let mut entries = vec![Entry {
            kind: EntryKind::MasterKey,
            name: String::new(),
            content: Zeroizing::new(now.master_key.expose().to_vec()),
        }];
        for (number, file) in master::passwords(&now.home)? {
            let bytes = std::fs::read(&file).map_err(|e| Error::io(Subject::File(file), e))?;
            let (kind, content) = (EntryKind::Password, Zeroizing::new(bytes));
            entries.push(Entry { kind, name: number.to_string(), content });
        }
        let mut backed_up = Vec::new();
        for stored in now.find_certificates()?.all()? {
            let stored = match stored {
                Stored::Whole(certificate) => {
                    let stored = Stored::Whole(certificate.backed_up_now());
                    backed_up.push(stored.clone());
                    stored
                }
                public => public,
            };
            let (kind, content) = (EntryKind::Certificate, encode(&stored));
            entries.push(Entry { kind, name: stored.public().name().to_owned(), content });
        }
        for (file, memory) in now.each_database()? {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (kind, content) = (EntryKind::Database, Zeroizing::new(memory?.encode()));
            entries.push(Entry { kind, name, content });
        }
        let made = u64::try_from(time::OffsetDateTime::now_utc().unix_timestamp()).unwrap_or(0);
        let bytes = seal(&entries, with, made)?;
        check_new(path)?;
        Event::new(Action::Exported, "instance").of(path.to_string_lossy()).record(&now.home)?;
        for stored in &backed_up {
            private_key(Action::BackedUp, stored).record(&now.home)?;
        }
        write_new(path, &bytes)?;
        for stored in &backed_up {
            let file = now.certificate_file(stored.public().name());
            file.replace(&now.master_key, &encode(stored))?;
        }
        entries.iter().map(|entry| carried(entry, Fate::New)).collect()
    }
}

fn private_key(action: Action, stored: &Stored) -> Event {
    let public = stored.public();
    Event::new(action, "private key").of(public.name()).thumbprint(public.thumbprint())
}

fn carried(entry: &Entry, fate: Fate) -> Result<Carried> {
    let mut thumbprint = None;
    let (what, name) = match entry.kind {
        EntryKind::MasterKey => ("database master key", String::new()),
        EntryKind::Password => ("password of the database master key", entry.name.clone()),
        EntryKind::Certificate => {
            thumbprint = Some(*certificate(entry)?.public().thumbprint());
            ("certificate", entry.name.clone())
        }
        EntryKind::Database => ("database", memory(entry)?.path.display().to_string()),
    };
    Ok(Carried { what, name, thumbprint, fate })
}

fn does_not_fit() -> Error {
    Error::corrupt(Subject::Key("bundle"), "its entries do not fit")
}

fn certificate(entry: &Entry) -> Result<Stored> {
    decode(&entry.name, &entry.content).ok_or_else(does_not_fit)?
}

fn memory(entry: &Entry) -> Result<DatabaseMemory> {
    DatabaseMemory::decode(&entry.content).ok_or_else(does_not_fit)
}

impl Bundle {
    /// Reads and opens the bundle at `path`.
    ///
    /// # Errors
    /// As [`Bundle::open`]; [`Error::Io`].
    pub fn read(path: &Path, keys: &dyn KeySource) -> Result<Self> {
        let mut bytes = Vec::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(BUNDLE_BYTES_MOST + 1).read_to_end(&mut bytes))
            .map_err(|error| Error::io(Subject::File(path.to_owned()), error))?;
        Self::open(&bytes, keys)
    }

    /// What would become of each entry in the instance at `home`; nothing is changed.
    ///
    /// # Errors
    /// What is wrong with the bundle or with the instance.
    pub fn plan(&self, home: &Path) -> Result<Vec<Carried>> {
        let keyring = match is_empty(home)? {
            true => None,
            false => Some(Keyring::open(home)?),
        };
        self.plan_for(keyring.as_ref())
    }

    fn plan_for(&self, keyring: Option<&Keyring>) -> Result<Vec<Carried>> {
        let own = keyring.map(Keyring::find_certificates).transpose()?.unwrap_or_default();
        let fate = |entry: &Entry| match (entry.kind, keyring) {
            (EntryKind::Certificate, _) => fate_of_certificate(&certificate(entry)?, &own),
            (_, None) => Ok(Fate::New),
            (EntryKind::MasterKey, Some(keyring)) => {
                let same = keyring.master_key.expose()[..] == entry.content[..];
                Ok(if same { Fate::Same } else { Fate::Kept })
            }
            (EntryKind::Password, Some(keyring)) => fate_of_password(entry, keyring),
            (EntryKind::Database, Some(keyring)) => {
                let known = keyring.recall(&entry.name)?;
                let newest = memory(entry)?.sequence;
                let behind = known.is_none_or(|known| known.sequence < newest);
                Ok(if behind { Fate::New } else { Fate::Same })
            }
        };
        self.entries.iter().map(|entry| carried(entry, fate(entry)?)).collect()
    }

    /// Takes all of it into the instance at `home`, which is made where there is none. `from` is the bundle's name, for the
    /// event log.
    ///
    /// # Errors
    /// Message 15232 naming the certificates whose names something else has; nothing was changed then. As
    /// [`Keyring::open`].
    pub fn import(&self, home: &Path, from: &Path) -> Result<Vec<Carried>> {
        // Once more under the lock, below: here nothing is made yet.
        refuse_conflicts(&self.plan(home)?)?;
        instance::make_directories(home)?;
        let _change = Change::begin(home)?;
        let keyring = match is_empty(home)? {
            true => None,
            false => Some(Keyring::open(home)?),
        };
        let plan = self.plan_for(keyring.as_ref())?;
        refuse_conflicts(&plan)?;
        let coming = || plan.iter().zip(&self.entries).filter(|(one, _)| one.fate == Fate::New);
        Event::new(Action::Imported, "instance").of(from.to_string_lossy()).record(home)?;
        for (one, _) in coming().filter(|(_, entry)| entry.kind != EntryKind::Database) {
            let event = Event::new(Action::Imported, one.what).of(one.name.clone());
            match &one.thumbprint {
                Some(thumbprint) => event.thumbprint(thumbprint).record(home)?,
                None => event.record(home)?,
            }
        }
        let keyring = match keyring {
            Some(keyring) => keyring,
            None => self.found(home)?,
        };
        for (_, entry) in coming() {
            keyring.take_in(entry)?;
        }
        Ok(plan)
    }

    /// The instance's own service master key, and the database master key of the bundle under it.
    fn found(&self, home: &Path) -> Result<Keyring> {
        if instance::read_service_key(home)?.is_none() {
            Event::new(Action::Created, "service master key").record(home)?;
            instance::make_service_key(home)?;
        }
        let service = instance::service_key(home)?;
        let file = master::master_file(home);
        let key = self.entries.iter().find(|entry| entry.kind == EntryKind::MasterKey);
        let master_key = as_key(&file, &key.ok_or_else(does_not_fit)?.content)?;
        file.create(&service, master_key.expose())?;
        Ok(Keyring { home: home.to_owned(), master_key })
    }
}

/// Nothing is below the service master key: neither a database master key nor anything that needs one.
fn is_empty(home: &Path) -> Result<bool> {
    if !Keyring::is_at(home) {
        return Ok(true);
    }
    let exists = |directory: &str| home.join("keyring").join(directory).exists();
    let children = exists("certificates") && exists("databases") && instance::has_children(home)?;
    Ok(!children && !master::master_path(home).exists() && master::passwords(home)?.is_empty())
}

fn fate_of_certificate(coming: &Stored, own: &Found<Stored>) -> Result<Fate> {
    let public = coming.public();
    let same = own.whole.iter().find(|own| own.public().thumbprint() == public.thumbprint());
    // A damaged one that has the name may be another one.
    let name_is_taken = own.whole.iter().any(|own| own.public().name() == public.name())
        || own.damaged.iter().any(|damaged| damaged.name() == public.name());
    if let Stored::Whole(certificate) = coming {
        certificate.check_pair()?;
    }
    Ok(match (same, name_is_taken) {
        (Some(same), _) if same.public().name() != public.name() => {
            Fate::SameAs(same.public().name().to_owned())
        }
        // What is there without its private key gets it.
        (Some(same), _) if same.has_private_key() || !coming.has_private_key() => Fate::Same,
        (Some(_), _) | (None, false) => Fate::New,
        (None, true) => Fate::Conflict,
    })
}

/// Passwords are the database master key's: of another one they open nothing here.
fn fate_of_password(entry: &Entry, keyring: &Keyring) -> Result<Fate> {
    if password_file::stated_check(&entry.content) != Some(check_value(&keyring.master_key)?) {
        return Ok(Fate::Kept);
    }
    let path = password_path(keyring.home(), &entry.name);
    match std::fs::read(&path) {
        Ok(bytes) if bytes == entry.content[..] => Ok(Fate::Same),
        Ok(_) => Ok(Fate::Kept),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Fate::New),
        Err(error) => Err(Error::io(Subject::File(path), error)),
    }
}

fn password_path(home: &Path, name: &str) -> PathBuf {
    home.join("keyring/passwords").join(name)
}

fn refuse_conflicts(plan: &[Carried]) -> Result<()> {
    let conflicts = plan.iter().filter(|one| one.fate == Fate::Conflict);
    let names: Vec<&str> = conflicts.map(|one| one.name.as_str()).collect();
    match names.is_empty() {
        true => Ok(()),
        false => Err(Error::message(message::CERTIFICATE_EXISTS, &names.join("', '"))),
    }
}

impl Keyring {
    /// One entry, under the lock, sealed under this instance's database master key.
    fn take_in(&self, entry: &Entry) -> Result<()> {
        match entry.kind {
            EntryKind::MasterKey => Ok(()),
            EntryKind::Password => {
                instance::make_directory(&self.home.join("keyring/passwords"))?;
                write_new(&password_path(&self.home, &entry.name), &entry.content)
            }
            EntryKind::Certificate => {
                self.certificate_file(&entry.name).replace(&self.master_key, &entry.content)
            }
            EntryKind::Database => {
                let path = self.home.join("keyring/databases").join(&entry.name);
                let file = SealedFile::new(path, Kind::Database, &entry.name);
                let mut coming = memory(entry)?;
                // One that is here lies where this instance knows it.
                if let Some(known) = self.recall(&entry.name)?.filter(|known| known.path.exists()) {
                    coming.path = known.path;
                }
                file.replace(&self.master_key, &coming.encode())
            }
        }
    }
}

#[cfg(test)]
mod tests;

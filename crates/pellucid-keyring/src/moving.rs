//! An instance goes into a bundle, and a bundle into an instance: into an empty one as it is, into another one so that
//! nothing that is there changes.
//!
//! Everything is checked before anything is written. What was interrupted is finished by doing it again: what is there
//! already is left alone.

use std::io::Read;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::bundle::{fits, seal, Bundle, Entry, EntryKind, BUNDLE_BYTES_MOST};
use super::certificates::{decode, encode, gets_companion};
use super::databases::DatabaseMemory;
use super::instance::{self, MADE_BY_SCRIPTS};
use super::making::{is_unmade, Making};
use super::master::{self, as_key, Change};
use super::sealed_file::{
    check_new, check_value, may_replace, write_new, write_new_inside, Kind, SealedFile,
};
use super::{history, password_file, service_key, Action, Event, Found, Keyring, Stored};
use pellucid::error::{Error, Result, Subject};
use pellucid::message;
use pellucid::protector::{KeySource, Wrapping};
use pellucid::shown::Shown;
use pellucid_files::new_file::NewFile;
use pellucid_files::paths::is_there;

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
    /// The same certificate is there under another name, without its private key, and gets it.
    KeyFor(String),
    /// The same certificate is there without its companion key, maybe under another name, and gets it.
    CompanionFor(String),
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
            Fate::KeyFor(name) => format!("there already, as `{name}`, which gets its private key"),
            Fate::CompanionFor(name) => {
                format!("there already, as `{name}`, which gets its companion key")
            }
            Fate::Kept => "left out: the instance has its own".to_owned(),
            Fate::Conflict => "CONFLICT: another one has this name".to_owned(),
        }
    }
}

impl Keyring {
    /// Writes what opens databases, but for the service master key, into a new file: the database master key with its
    /// passwords, the certificates with their private keys, the key of the history, and what is known of databases. Settings stay.
    ///
    /// The key of the history opens backups of `msdb` and `master`. It stays where scripts have made nothing there and no
    /// backup of them: what is on media says the history again.
    ///
    /// The private keys count as backed up by it, unless what opens it may be in it alone: the private key of the
    /// certificate it is sealed for never does, and no other does as long as that one has no backup elsewhere.
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
            let bytes =
                std::fs::read(&file).map_err(|e| Error::io(Subject::File(file.clone()), e))?;
            let (kind, content) = (EntryKind::Password, Zeroizing::new(bytes));
            let name = number.to_string();
            if !fits(kind, &name, &content) {
                return Err(Error::corrupt(Subject::File(file), "not a password file"));
            }
            entries.push(Entry { kind, name, content });
        }
        let mut backed_up = Vec::new();
        let certificates = now.find_certificates()?.all()?;
        let opener =
            opener(with, &certificates).map(|own| (*own.public().thumbprint(), own.backed_up()));
        for stored in certificates {
            let is_kept = match opener {
                None => true,
                Some((_, None)) => false,
                Some((opener, Some(_))) => *stored.public().thumbprint() != opener,
            };
            let stored = match stored {
                Stored::Whole(certificate) if is_kept => {
                    let stored = Stored::Whole(certificate.backed_up_now());
                    backed_up.push(stored.clone());
                    stored
                }
                stored => stored,
            };
            let (kind, content) = (EntryKind::Certificate, encode(&stored));
            entries.push(Entry { kind, name: stored.public().name().to_owned(), content });
        }
        for (file, memory) in now.each_database()? {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (kind, content) = (EntryKind::Database, Zeroizing::new(memory?.encode()));
            entries.push(Entry { kind, name, content });
        }
        // A bundle without it is one that 0.1.0 reads.
        let key = match is_there(&now.home.join(MADE_BY_SCRIPTS)) {
            true => history::key_bytes(&now)?,
            false => None,
        };
        if let Some(key) = key {
            entries.push(Entry { kind: EntryKind::History, name: String::new(), content: key });
        }
        // A bundle has contents and no flags: what a newer version says by them would be lost with it.
        for file in master::children(&now.home)? {
            file.check_writable()?;
        }
        let made = u64::try_from(time::OffsetDateTime::now_utc().unix_timestamp()).unwrap_or(0);
        let bytes = seal(&entries, with, made)?;
        check_new(path)?;
        for stored in &backed_up {
            may_replace(now.certificate_file(stored.public().name()).path())?;
        }
        Event::new(Action::Exported, "instance").of(path.to_string_lossy()).record_by(&now)?;
        for stored in &backed_up {
            private_key(Action::BackedUp, stored).record_by(&now)?;
        }
        let mut made = Some(write_new(path, &bytes)?);
        for stored in &backed_up {
            let file = now.certificate_file(stored.public().name());
            let marked = file.replace(&now.master_key, &encode(stored));
            marked.inspect_err(|_| made.take().into_iter().for_each(NewFile::take_back))?;
        }
        entries.iter().map(|entry| carried(entry, Fate::New)).collect()
    }
}

/// The certificate whose private key opens a bundle, where this keyring has that key.
fn opener<'a>(with: &Wrapping<'_>, certificates: &'a [Stored]) -> Option<&'a Stored> {
    let public = match with {
        Wrapping::Certificate(certificate) => certificate.public(),
        Wrapping::Recovery(public) => public,
        Wrapping::KeyFile(_) | Wrapping::Passphrase(..) => return None,
    };
    let is_it = |stored: &&Stored| stored.public().thumbprint() == public.thumbprint();
    certificates.iter().find(|stored| is_it(stored) && stored.has_private_key())
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
        EntryKind::History => ("key of the history", String::new()),
        EntryKind::Database => ("database", memory(entry)?.path.shown().to_string()),
    };
    Ok(Carried { what, name, thumbprint, fate })
}

fn does_not_fit() -> Error {
    Error::corrupt(Subject::Key("bundle"), "its entries do not fit")
}

fn certificate(entry: &Entry) -> Result<Stored> {
    let stored = decode(&entry.name, &entry.content).ok_or_else(does_not_fit)??;
    stored.public().check_given()?;
    Ok(stored)
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
        pellucid_files::regular::open_given(path)
            .and_then(|file| file.take(BUNDLE_BYTES_MOST + 1).read_to_end(&mut bytes))
            .map_err(|error| Error::io(Subject::File(path.to_owned()), error))?;
        Self::open(&bytes, keys)
    }

    /// What would become of each entry in the instance at `home`; nothing is changed.
    ///
    /// # Errors
    /// What is wrong with the bundle or with the instance.
    pub fn plan(&self, home: &Path) -> Result<Vec<Carried>> {
        let keyring = match is_unmade(home)? {
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
            (EntryKind::History, Some(keyring)) => Ok(match history::key_bytes(keyring)? {
                // Whoever has made the bundle knows the key: an instance that has keys takes it from nobody it cannot know.
                None if self.proves_origin() => Fate::New,
                None => Fate::Kept,
                Some(own) if own[..] == entry.content[..] => Fate::Same,
                // Its own history is under it.
                Some(_) => Fate::Kept,
            }),
            (EntryKind::Database, Some(keyring)) => {
                let known = keyring.recall(&entry.name)?;
                let same = known.as_ref() == Some(&together(known.clone(), memory(entry)?));
                Ok(if same { Fate::Same } else { Fate::New })
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
        if Keyring::is_at(home) {
            // An exchange of keys that was interrupted is finished first.
            drop(Change::begin(home)?);
        }
        // Once more under the locks, below: here nothing is made yet.
        refuse_conflicts(&self.plan(home)?)?;
        let _making = is_unmade(home)?.then(|| Making::begin(home)).transpose()?;
        instance::make_directories(home)?;
        let _change = Change::begin(home)?;
        let keyring = match is_unmade(home)? {
            true => None,
            false => Some(Keyring::open(home)?),
        };
        let plan = self.plan_for(keyring.as_ref())?;
        refuse_conflicts(&plan)?;
        let comes =
            |fate: &Fate| matches!(fate, Fate::New | Fate::KeyFor(_) | Fate::CompanionFor(_));
        let coming = || plan.iter().zip(&self.entries).filter(|(one, _)| comes(&one.fate));
        Event::new(Action::Imported, "instance").of(from.to_string_lossy()).record(home)?;
        for (one, _) in coming().filter(|(_, entry)| entry.kind != EntryKind::Database) {
            let name = match &one.fate {
                Fate::KeyFor(name) | Fate::CompanionFor(name) => name,
                _ => &one.name,
            };
            let event = Event::new(Action::Imported, one.what).of(name.clone());
            match &one.thumbprint {
                Some(thumbprint) => event.thumbprint(thumbprint).record(home)?,
                None => event.record(home)?,
            }
        }
        let keyring = match keyring {
            Some(keyring) => keyring,
            None => self.found(home)?,
        };
        for (one, entry) in coming() {
            let name = match &one.fate {
                Fate::KeyFor(name) | Fate::CompanionFor(name) => name,
                _ => &entry.name,
            };
            keyring.take_in(entry, name)?;
        }
        Ok(plan)
    }

    /// The instance's own service master key, and the database master key of the bundle under it.
    fn found(&self, home: &Path) -> Result<Keyring> {
        if service_key::read_service_key(home)?.is_none() {
            Event::new(Action::Created, "service master key").record(home)?;
            service_key::make_service_key(home)?;
        }
        let service = service_key::service_key(home)?;
        let file = master::master_file(home);
        let key = self.entries.iter().find(|entry| entry.kind == EntryKind::MasterKey);
        let master_key = as_key(&file, &key.ok_or_else(does_not_fit)?.content)?;
        match file.create(&service, master_key.expose())? {
            true => Ok(Keyring { home: home.to_owned(), master_key }),
            // Versions before `making.lock` took no lock.
            false => Err(Error::misuse(
                Subject::File(file.path().to_owned()),
                "another process has made it meanwhile; nothing was imported: import the bundle again",
            )),
        }
    }
}

fn fate_of_certificate(coming: &Stored, own: &Found<Stored>) -> Result<Fate> {
    let public = coming.public();
    let same = own.whole.iter().find(|own| own.public().thumbprint() == public.thumbprint());
    // A damaged one that has the name may be another one.
    let name_is_taken = own.whole.iter().any(|own| own.public().name() == public.name())
        || own.damaged.iter().any(|damaged| damaged.name() == public.name());
    // One that is elsewhere is asked when it is needed, not because a bundle names it.
    if let Stored::Whole(certificate) = coming {
        if certificate.place().is_none() {
            certificate.check_pair()?;
        }
    }
    Ok(match (same, name_is_taken) {
        // What is there without its private key gets it.
        (Some(same), _) => {
            let name = same.public().name();
            let gets_key = coming.has_private_key() && !same.has_private_key();
            if gets_companion(same, coming) {
                return Ok(Fate::CompanionFor(name.to_owned()));
            }
            if let Some(own) = same.public().companion() {
                match public.companion() {
                    Some(other) if own.key() != other.key() => return Ok(Fate::Conflict),
                    // With the private key alone it would have half of what opens its sets.
                    None if gets_key => return Ok(Fate::Kept),
                    _ => {}
                }
            }
            match (name == public.name(), gets_key) {
                (true, true) => Fate::New,
                (true, false) => Fate::Same,
                (false, true) => Fate::KeyFor(name.to_owned()),
                (false, false) => Fate::SameAs(name.to_owned()),
            }
        }
        (None, false) => Fate::New,
        (None, true) => Fate::Conflict,
    })
}

/// What is remembered of a database once another instance's memory of it, or of its copy there, has come. One that lies
/// here is what this instance knows of it, and the certificates that the other one named are needed as well; if both mean
/// the same path, the one that has seen the later header says how far that had come.
fn together(known: Option<DatabaseMemory>, coming: DatabaseMemory) -> DatabaseMemory {
    match known {
        Some(mut known) if known.path.exists() => {
            let needed = |print: &[u8; 32]| !known.certificates.contains(print);
            let more: Vec<_> = coming.certificates.into_iter().filter(needed).collect();
            known.certificates.extend(more);
            if known.path == coming.path && known.sequence < coming.sequence {
                (known.sequence, known.sealed) = (coming.sequence, coming.sealed);
            }
            known
        }
        Some(known) if known.sequence >= coming.sequence => known,
        _ => coming,
    }
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
    /// One entry as `name`, under the lock, sealed under this instance's database master key.
    fn take_in(&self, entry: &Entry, name: &str) -> Result<()> {
        match entry.kind {
            EntryKind::MasterKey => Ok(()),
            EntryKind::Password => {
                instance::make_directory(&self.home.join("keyring/passwords"))?;
                write_new_inside(&password_path(&self.home, name), &entry.content)
            }
            EntryKind::Certificate => {
                self.certificate_file(name).replace(&self.master_key, &entry.content)
            }
            EntryKind::History => {
                history::file(&self.home).create(&self.master_key, &entry.content).map(drop)
            }
            EntryKind::Database => {
                let path = self.home.join("keyring/databases").join(name);
                let file = SealedFile::new(path, Kind::Database, name);
                let memory = together(self.recall(name)?, memory(entry)?);
                file.replace(&self.master_key, &memory.encode())
            }
        }
    }
}

#[cfg(test)]
mod tests;

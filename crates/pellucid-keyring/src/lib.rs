//! The keyring: the only home of key material, one small sealed file for each key and certificate.
//!
//! Layout: docs/format.md, "Keyring". Reading never writes. Opening a database needs no other
//! database and no lock.
//!
//! # Where is what
//!
//! In the order in which to read it:
//!
//! 1. `instance.rs`: the instance directory, where it is and who may read it. `sealed_file.rs`: one
//!    sealed file, replaced atomically.
//! 2. `provider.rs` and `service_key.rs`: the service master key; `bound.rs` and `plugin.rs` where it lies under a passphrase or
//!    a key elsewhere, `bind.rs` its moves. `master.rs`: both master keys,
//!    their change, backup and passwords, with `password_file.rs`.
//! 3. `certificates.rs`: the certificates. `databases.rs`: what the keyring remembers of databases.
//!    `pins.rs`: what it expects at a path, and the keys that a rekey retired.
//! 4. `policy.rs` and `settings.rs`: policies, and the instance's other settings. `events.rs`: the
//!    event log; `events/chain.rs` its chain, `events/log.rs` who appends to it, `events/waiting.rs`
//!    what waits for it. `runs.rs`: the scans that run. `history.rs`: the key of the backup history.
//! 5. `roles.rs`: who may have what from the broker. `broker.rs` asks it, `broker_service.rs` answers.
//! 6. `bundle.rs` and `moving.rs`: an instance in one file, and its move to another instance.
//!    `description.rs` and `found.rs` show what is there.
//!
//! # A crash, and locks
//!
//! Each file is replaced by a rename, so a crash leaves the old file or the new one. While a master
//! key changes, the new key lies beside the old one until every file below is sealed under it, so
//! each file opens under one of the two.
//!
//! A change holds `keyring/lock` (`lock.rs`), so that there is one writer at a time. Readers take
//! no lock: they try the next key if a file does not open under the present one. Whoever makes a
//! keyring holds `making.lock` as well (`making.rs`), which readers of one without keys wait for.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

mod bind;
mod bound;
pub mod broker;
pub mod broker_service;
mod bundle;
mod certificates;
mod checks;
mod cost;
mod databases;
mod description;
mod events;
mod found;
mod history;
mod instance;
mod lock;
mod making;
mod master;
mod moving;
mod password_file;
mod pins;
mod plugin;
pub mod policy;
mod provider;
mod provider_key;
mod providers;
mod roles;
mod runs;
mod sealed_file;
mod service_key;
mod settings;
mod witnesses;

use std::path::{Path, PathBuf};

pub use bind::CredentialTool;
pub use bound::PASSPHRASE_FILE as SERVICE_PASSPHRASE_FILE;
pub use bundle::{Bundle, BUNDLE_BYTES_MOST};
pub use certificates::{Encoding, Stored};
pub use checks::{Check, CheckDamage, CheckFound};
pub use cost::{allow_cost, is_classical_allowed, is_cost_allowed, ALLOW_COST};
pub use databases::DatabaseMemory;
pub use description::Description;
pub use events::{
    check_events, read_events, restart_events, Action, Event, EventLog, LogBreak, Wrong,
};
pub use found::{Damaged, Found};
pub use making::Making;
pub use master::{back_up_service_key, read_key_backup, Change, Lost};
pub use moving::{Carried, Fate};
pub use password_file::MasterKey;
pub use pins::Pin;
pub use provider::{use_provider, ServiceKeyProvider, Source};
pub use providers::{Credential, Login, OwnedKey, Provider, Providers};
pub use roles::{Account, Pair, Role, Roles};
pub use runs::{ProcessId, Run, Stopped};
pub use witnesses::Witness;

use zeroize::Zeroizing;

use pellucid::error::{Error, Result, Subject};
use pellucid::message;
use pellucid::secret::Secret32;
use pellucid::shown::Shown;
use pellucid_files::paths::is_there;
use sealed_file::SealedFile;

/// The name of the certificate that is made if the keyring has none.
pub const DEFAULT_CERTIFICATE: &str = "pellucid";

const SMK: Subject = Subject::Key("service master key");
const DMK: Subject = Subject::Key("database master key");

/// What [`Keyring::open_or_create`] had to make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Made {
    /// The service master key's file.
    pub service_master_key: Option<PathBuf>,
    /// The database master key's file.
    pub database_master_key: Option<PathBuf>,
}

/// An opened keyring: the database master key is at hand.
#[derive(Debug)]
pub struct Keyring {
    home: PathBuf,
    master_key: Secret32,
}

impl Keyring {
    /// The instance directory: `$PELLUCID_HOME`; else `pellucid` in the XDG data directory, if the caller has a keyring
    /// there and is not root; else `home = PATH` in `/etc/pellucid.conf`; else `pellucid` in the XDG data directory. In
    /// place of an XDG data directory that others have a hand in, the one below the home of the caller's account.
    ///
    /// # Errors
    /// [`Error::Misuse`] if none of them is set, or others could exchange the one that is to be used.
    pub fn locate() -> Result<PathBuf> {
        instance::locate()
    }

    /// Where `HOME` or `XDG_DATA_HOME` leads to a place that somebody else has a hand in: the one that
    /// [`Keyring::locate`] takes instead, in the home directory of the caller's account, and what is wrong with the other.
    pub fn passed_over() -> Option<(PathBuf, Error)> {
        instance::passed_over()
    }

    /// Opens the keyring of an instance. While another process makes it, that is waited for.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if there is none, or the service master key is another one;
    /// [`Error::Misuse`] if others can read it; [`Error::Unauthentic`] if a file is damaged.
    pub fn open(home: &Path) -> Result<Self> {
        match Self::open_now(home) {
            Err(error) if Self::may_be_made_since(home, &error) => Self::open_now(home),
            opened => opened,
        }
    }

    /// Whether a keyring that did not open for want of a key may have it by now: whoever makes it is waited for. Nobody is asked twice for
    /// a service master key that lies elsewhere.
    fn may_be_made_since(home: &Path, error: &Error) -> bool {
        match error {
            _ if Making::wait_if_begun(home) => true,
            Error::MissingKey { .. } => is_there(&home.join("service.key")),
            Error::Message { message, .. } => *message == message::MASTER_KEY_MISSING,
            _ => false,
        }
    }

    /// The same without waiting, for whoever makes it.
    fn open_now(home: &Path) -> Result<Self> {
        let file = master::master_file(home);
        // A second look, because a service master key may be exchanged meanwhile.
        let mut opened = Self::read_master_key(home, &file);
        if matches!(opened, Err(Error::MissingKey { .. })) {
            opened = Self::read_master_key(home, &file);
        }
        let master_key = opened?.ok_or_else(|| Error::message(message::MASTER_KEY_MISSING, ""))?;
        Ok(Self { home: home.to_owned(), master_key })
    }

    fn read_master_key(home: &Path, file: &SealedFile) -> Result<Option<Secret32>> {
        let service_key = service_key::service_key(home)?;
        let read = match (file.read(&service_key), service_key::read_next_service_key(home)?) {
            (Err(Error::MissingKey { .. }), Some(next)) => file.read(&next),
            (read, _) => read,
        };
        read?.map(|bytes| master::as_key(file, &bytes)).transpose()
    }

    /// A file below the database master key. While that is exchanged some are sealed under the next one already.
    fn read(&self, file: &SealedFile) -> Result<Option<Zeroizing<Vec<u8>>>> {
        Ok(self.read_with_key(file)?.map(|(content, _)| content))
    }

    /// The same, with the key that it is sealed under: a writer who holds no `keyring/lock` seals under that one again.
    fn read_with_key(&self, file: &SealedFile) -> Result<Option<(Zeroizing<Vec<u8>>, Secret32)>> {
        let with = |key: &Secret32| {
            let key = key.clone();
            move |content: Option<_>| content.map(|content| (content, key))
        };
        let read = file.read(&self.master_key);
        if !matches!(read, Err(Error::MissingKey { .. })) {
            return read.map(with(&self.master_key));
        }
        let later = match master::next_file(&self.home).read(&service_key::service_key(&self.home)?)
        {
            Ok(Some(bytes)) => master::as_key(file, &bytes)?,
            _ => Self::open_now(&self.home)?.master_key,
        };
        file.read(&later).map(with(&later)).or_else(|_| read.map(with(&self.master_key)))
    }

    /// Opens the keyring, or makes what is missing. Of processes that do so at once one makes it, and the
    /// others wait for it.
    ///
    /// A key is only made where nothing is sealed under the one it would replace: keys are made from
    /// the top and never removed, so a child without its parent is a loss, not a beginning.
    ///
    /// # Errors
    /// As [`Keyring::open`], also for a lost key; [`Error::Io`] if a file cannot be written.
    pub fn open_or_create(home: &Path) -> Result<(Self, Made)> {
        if instance::has_keyring(home) {
            instance::make_directories(home)?;
            if Self::is_made(home)? {
                return Ok((Self::open(home)?, Made::default()));
            }
        }
        let _making = Making::begin(home)?;
        instance::make_directories(home)?;
        // Nor does a change of keys come in between, such as the restoration of one.
        let _lock = lock::Lock::take(home)?;
        let made = match Self::is_made(home)? {
            true => Made::default(),
            false => Self::make(home)?,
        };
        Ok((Self::open_now(home)?, made))
    }

    /// Whether both master keys are there. Looked at in this order, because another process makes the parent first.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if one is lost; message 15581 if only a password opens the database master key.
    fn is_made(home: &Path) -> Result<bool> {
        let path = master::master_path(home);
        let has_service_key = || service_key::read_service_key(home).map(|key| key.is_some());
        if !has_service_key()? {
            let has_below = is_there(&path)
                || is_there(master::next_file(home).path())
                || master::has_children(home)?
                || making::sealed_database(home).is_some();
            if !has_below {
                return Ok(false);
            }
            if !has_service_key()? {
                let hint = "; systemd may have it as a credential";
                let hint = if making::is_unmade(home)? { BUNDLE } else { hint };
                return Err(lost(SMK, home.join("service.key"), hint));
            }
        }
        Self::refuse_if_lost(home)?;
        Ok(is_there(&path))
    }

    /// Refuses to make a database master key where there was one.
    ///
    /// # Errors
    /// Message 15581 if only a password opens it; [`Error::MissingKey`] if it is lost.
    fn refuse_if_lost(home: &Path) -> Result<()> {
        let path = master::master_path(home);
        if !is_there(&path) && !master::passwords(home)?.is_empty() && !is_there(&path) {
            return Err(Error::message(message::MASTER_KEY_MISSING, ""));
        }
        let has_below =
            || Ok(master::has_children(home)? || making::sealed_database(home).is_some());
        if !is_there(&path) && has_below()? && !is_there(&path) {
            return Err(lost(DMK, path, if making::is_unmade(home)? { BUNDLE } else { "" }));
        }
        Ok(())
    }

    /// Makes the keys that are missing. No file that has the name of one is ever replaced.
    fn make(home: &Path) -> Result<Made> {
        let mut made = Made::default();
        if service_key::read_service_key(home)?.is_none() {
            Event::new(Action::Created, "service master key").record(home)?;
            made.service_master_key = service_key::make_service_key(home)?;
        }
        let service_key = service_key::read_service_key(home)?
            .ok_or_else(|| Error::missing_key(SMK, "it vanished after it was made"))?;
        Self::refuse_if_lost(home)?;
        let file = master::master_file(home);
        let fresh = Secret32::random()?;
        Event::new(Action::Created, "database master key").record(home)?;
        if file.create(&service_key, fresh.expose())? {
            made.database_master_key = Some(file.path().to_owned());
        }
        Ok(made)
    }

    /// Whether [`Keyring::open_or_create`] would make a keyring at `home`, or what is missing of one that was only begun, or would say
    /// that all of it is lost. One that the caller may not look into is there.
    pub fn is_to_be_made(home: &Path) -> bool {
        making::is_unmade(home).unwrap_or(false)
    }

    /// The machine's keyring, where this one is the caller's own and comes before it, and the caller may read that.
    pub fn behind(&self) -> Option<Self> {
        Self::open(&instance::behind(&self.home)?).ok()
    }

    /// Where the service master key of the instance at `home` comes from now; none if it is nowhere.
    ///
    /// # Errors
    /// As [`Keyring::open`] for the service master key.
    pub fn service_key_source(home: &Path) -> Result<Option<Source>> {
        Ok(provider::find(home)?.map(|(_, source)| source))
    }

    /// Waits until nobody else changes the keyring; the keyring as it is then.
    fn begin_change(&self) -> Result<(Change, Self)> {
        let change = Change::begin(&self.home)?;
        // Opened by its password only, it has no other way.
        let now = match master::master_path(&self.home).exists() {
            true => Self::open(&self.home)?,
            false => Self { home: self.home.clone(), master_key: self.master_key.clone() },
        };
        Ok((change, now))
    }

    /// Makes the directories of an instance that a group of service accounts may read.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn make_system_directories(home: &Path, group: u32) -> Result<()> {
        instance::make_system_directories(home, group)
    }

    /// Takes the instance at `home` away from its group: from now on accounts ask a broker. Whoever has a file of it open can hold up
    /// nobody by that.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn close_to_group(home: &Path) -> Result<()> {
        // First, so that nobody of the group keeps it open by holding the lock.
        instance::close_to_group(home)?;
        lock::Lock::take(home)?.renew(home)
    }

    /// Lets the group of the instance's directory read it again; the group.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open_to_group(home: &Path) -> Result<u32> {
        let _lock = lock::Lock::take(home)?;
        instance::open_to_group(home)
    }

    /// The file that names the system instance.
    pub fn config_path() -> PathBuf {
        instance::config_path()
    }

    /// The caller's own instance, if there is one, whether or not it is the one that is used.
    pub fn own() -> Option<PathBuf> {
        instance::own()
    }

    /// The group that may read the instance at `home` although nothing names it as the machine's.
    pub fn unnamed_group(home: &Path) -> Option<u32> {
        instance::unnamed_group(home)
    }

    /// The system instance, if this machine is configured to have one.
    pub fn configured() -> Option<PathBuf> {
        instance::configured()
    }

    /// Makes the instance's directories, where they are missing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn make_directories(home: &Path) -> Result<()> {
        instance::make_directories(home)
    }

    /// Whether there is a keyring in the instance `home`, whole or not. One that the caller may not look at counts.
    pub fn is_at(home: &Path) -> bool {
        instance::has_keyring(home)
    }

    fn key(&self) -> &Secret32 {
        &self.master_key
    }

    /// The instance directory.
    pub fn home(&self) -> &Path {
        &self.home
    }
}

/// Where nothing of the keyring is left to be put together with what comes.
const BUNDLE: &str = ", or bring the keys by `pellucid instance import`";

fn lost(key: Subject, path: PathBuf, hint: &str) -> Error {
    Error::missing_key(
        key,
        format!(
            "`{}` is not there, and what is sealed under it is; put back the file{hint}",
            path.shown()
        ),
    )
}

#[cfg(test)]
mod tests;

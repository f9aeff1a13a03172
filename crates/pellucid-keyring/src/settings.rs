//! What the keyring remembers of itself: the policies of the instance, and when its master keys were backed up.
//!
//! Layout: docs/format.md, "Keyring".

use std::path::Path;

use pellucid::error::{Error, Result, Subject};
use pellucid::hash::hex;
use pellucid::secret::Secret32;

use super::broker::{Broker, Query};
use super::instance;
use super::provider::{self, Source};
use super::sealed_file::{check_value, Kind, SealedFile};
use super::{Action, Event, Keyring, MasterKey};
use crate::policy::{Limit, MasterKeyFacts, Policies, Policy};

const NAME: &str = "settings";
/// Policies of which version 1 knows nothing: what they are about is of format version 2.
const OF_SECOND: [Policy; 3] = [Policy::FormatVersion, Policy::LogLimit, Policy::LogFull];
const BACKED_UP: [MasterKey; 2] = [MasterKey::Service, MasterKey::Database];

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Settings {
    policies: Policies,
    backups: Vec<Backup>,
    /// Lines of a newer version, kept as they are.
    others: Vec<String>,
}

/// A backup of the key with this check value: another key has none.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Backup {
    key: MasterKey,
    check: String,
    at: u64,
}

impl Settings {
    fn parse(text: &str) -> Self {
        let mut settings = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            if settings.parse_line(&words).is_none() {
                settings.others.push(line.to_owned());
            }
        }
        settings
    }

    fn parse_line(&mut self, words: &[&str]) -> Option<()> {
        match words {
            [name, limit] => {
                let policy = OF_SECOND.into_iter().find(|policy| policy.name() == *name)?;
                self.policies.set(policy, policy.parse(limit).ok()?);
            }
            ["policy", name, limit] => {
                let policy: Policy = name.parse().ok()?;
                self.policies.set(policy, policy.parse(limit).ok()?);
            }
            ["backup", name, check, at] => {
                let key = BACKED_UP.into_iter().find(|key| word(*key) == *name)?;
                self.backups.push(Backup { key, check: (*check).to_owned(), at: at.parse().ok()? });
            }
            _ => return None,
        }
        Some(())
    }

    fn encode(&self) -> String {
        let mut text = String::new();
        for (policy, limit) in self.policies.iter() {
            // A program of before refuses to run policies of which it does not know one, and keeps any other line.
            let word = if OF_SECOND.contains(&policy) { "" } else { "policy " };
            text += &format!("{word}{} {limit}\n", policy.name());
        }
        for Backup { key, check, at } in &self.backups {
            text += &format!("backup {} {check} {at}\n", word(*key));
        }
        self.others.iter().for_each(|line| text += &format!("{line}\n"));
        text
    }
}

fn word(key: MasterKey) -> &'static str {
    match key {
        MasterKey::Service => "service",
        MasterKey::Database => "master",
    }
}

pub(super) fn file(home: &Path) -> SealedFile {
    SealedFile::new(home.join("keyring").join(NAME), Kind::Settings, NAME)
}

impl Keyring {
    /// The policies of the instance.
    ///
    /// # Errors
    /// What is wrong with the file they are in; [`Error::Unsupported`] if one is not known to this version.
    pub fn policies(&self) -> Result<Policies> {
        let settings = self.settings()?;
        match settings.others.iter().find(|line| line.starts_with("policy ")) {
            None => Ok(settings.policies),
            Some(line) => Err(Error::unsupported(
                Subject::File(file(self.home()).path().to_owned()),
                format!("`{line}` is not known to this version"),
            )),
        }
    }

    /// The policies of the instance at `home`, for an account that opens databases by it, by a broker or by itself.
    ///
    /// # Errors
    /// As [`Keyring::open`] and [`Keyring::policies`]; those of a broker that does not answer.
    pub fn policies_at(home: &Path) -> Result<Policies> {
        let Some(broker) = Broker::of(home)? else { return Self::open(home)?.policies() };
        let mut policies = Policies::default();
        for (name, limit) in broker.recall(&Query { policies: true, ..Query::default() })?.policies
        {
            let policy: Policy = name.parse()?;
            policies.set(policy, policy.parse(&limit)?);
        }
        Ok(policies)
    }

    /// Sets a policy; none for its default.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written; what is wrong with the file.
    pub fn set_policy(&self, policy: Policy, limit: Option<Limit>) -> Result<()> {
        self.change_settings(|settings| {
            let said = limit.map_or_else(|| "default".to_owned(), |limit| limit.to_string());
            Event::new(Action::Changed, "policy")
                .of(format!("{} {said}", policy.name()))
                .record_by(self)?;
            match limit {
                Some(limit) => settings.policies.set(policy, limit),
                None => settings.policies.clear(policy),
            }
            Ok(())
        })
    }

    /// Every default holds again, also where the file that policies are in cannot be read any more.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written.
    pub fn clear_policies(&self) -> Result<()> {
        let (_change, now) = self.begin_change()?;
        let mut settings = match now.settings() {
            Err(error @ Error::Io { .. }) => return Err(error),
            read => read.unwrap_or_default(),
        };
        Event::new(Action::Changed, "policy").of("all default").record_by(self)?;
        settings.policies = Policies::default();
        settings.others.retain(|line| !line.starts_with("policy "));
        file(self.home()).replace(now.key(), settings.encode().as_bytes())
    }

    /// The master keys that are this instance's to keep, with the time of their last backup. One that a provider has is
    /// not among them.
    ///
    /// # Errors
    /// As [`Keyring::open`]; what is wrong with the file that knows.
    pub fn master_key_facts(&self) -> Result<Vec<MasterKeyFacts>> {
        let settings = self.settings()?;
        let service = match provider::find(self.home())? {
            Some((key, Source::File(_) | Source::Credential(_) | Source::Plugin { .. })) => {
                Some(key)
            }
            _ => None,
        };
        let keys =
            [(MasterKey::Service, service.as_ref()), (MasterKey::Database, Some(self.key()))];
        let mut facts = Vec::with_capacity(keys.len());
        for (key, secret) in keys {
            let Some(secret) = secret else { continue };
            let check = hex(&check_value(secret)?);
            let found = settings.backups.iter().find(|one| one.key == key && one.check == check);
            let backed_up = found.and_then(|found| i64::try_from(found.at).ok());
            facts.push(MasterKeyFacts { key, backed_up });
        }
        Ok(facts)
    }

    /// The keyring remembers that a master key was backed up just now.
    pub(super) fn note_backup(&self, key: MasterKey, secret: &Secret32) -> Result<()> {
        let check = hex(&check_value(secret)?);
        let now = time::OffsetDateTime::now_utc().unix_timestamp();
        self.change_settings(|settings| {
            settings.backups.retain(|backup| backup.key != key);
            settings.backups.push(Backup { key, check, at: u64::try_from(now).unwrap_or(0) });
            Ok(())
        })
    }

    fn settings(&self) -> Result<Settings> {
        let file = file(self.home());
        let Some(bytes) = self.read(&file)? else { return Ok(Settings::default()) };
        std::str::from_utf8(&bytes)
            .map(Settings::parse)
            .map_err(|_| Error::corrupt(Subject::File(file.path().to_owned()), "not UTF-8"))
    }

    fn change_settings(&self, change: impl FnOnce(&mut Settings) -> Result<()>) -> Result<()> {
        let (_change, now) = self.begin_change()?;
        let mut settings = now.settings()?;
        change(&mut settings)?;
        file(self.home()).replace(now.key(), settings.encode().as_bytes())
    }
}

/// Notes the backup of the service master key, if the keyring opens and may be written: neither is needed for a backup.
pub(super) fn note_service_backup(home: &Path, secret: &Secret32) -> Result<()> {
    match instance::has_keyring(home).then(|| Keyring::open(home)) {
        Some(Ok(keyring)) => unless_forbidden(keyring.note_backup(MasterKey::Service, secret)),
        _ => Ok(()),
    }
}

/// Whoever may read the instance and not write to it has made a backup all the same.
pub(super) fn unless_forbidden(noted: Result<()>) -> Result<()> {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    match noted {
        Err(Error::Io { source, .. })
            if matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem) =>
        {
            Ok(())
        }
        noted => noted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{back_up_service_key, Change};
    use pellucid::protector::Passphrase;

    fn keyring() -> (tempfile::TempDir, Keyring) {
        let home = tempfile::tempdir().unwrap();
        let (keyring, _) = Keyring::open_or_create(home.path()).unwrap();
        (home, keyring)
    }

    #[test]
    fn what_was_set_is_there_again_and_what_was_cleared_is_the_default() {
        let (home, keyring) = keyring();
        assert_eq!(keyring.policies().unwrap(), Policies::default());
        keyring.set_policy(Policy::RekeyAfter, Some(Limit::Days(365))).unwrap();
        keyring.set_policy(Policy::WarnBeforeExpiry, Some(Limit::Off)).unwrap();
        let read = || Keyring::open(home.path()).unwrap().policies().unwrap();
        assert_eq!(read().limit(Policy::RekeyAfter), Limit::Days(365));
        assert_eq!(read().limit(Policy::WarnBeforeExpiry), Limit::Off);
        keyring.set_policy(Policy::RekeyAfter, None).unwrap();
        assert!(!read().is_set(Policy::RekeyAfter) && read().is_set(Policy::WarnBeforeExpiry));
        assert_eq!(read().limit(Policy::RekeyAfter), Policy::RekeyAfter.default_limit());
    }

    #[test]
    fn the_file_is_authentic_or_an_error_and_another_file_does_not_pass_for_it() {
        let (home, keyring) = keyring();
        keyring.set_policy(Policy::RekeyAfter, Some(Limit::Days(365))).unwrap();
        let path = home.path().join("keyring/settings");
        let good = std::fs::read(&path).unwrap();
        for at in [20, 36, 48, good.len() - 1] {
            let mut damaged = good.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            assert!(keyring.policies().is_err(), "byte {at}");
            assert!(keyring.set_policy(Policy::RekeyAfter, None).is_err(), "byte {at}");
        }
        std::fs::copy(home.path().join("keyring/master.key"), &path).unwrap();
        assert!(keyring.policies().is_err());
        keyring.clear_policies().unwrap();
        assert_eq!(keyring.policies().unwrap(), Policies::default());
    }

    /// One that does not know this policy goes on with those that it knows.
    #[test]
    fn the_format_version_is_no_policy_to_a_program_of_before() {
        let (_home, keyring) = keyring();
        assert_eq!(keyring.policies().unwrap().format_version(), 1);
        keyring.set_policy(Policy::FormatVersion, Some(Limit::Version(2))).unwrap();
        keyring.set_policy(Policy::RekeyAfter, Some(Limit::Days(9))).unwrap();
        let text = file(keyring.home()).read(keyring.key()).unwrap().unwrap();
        let text = String::from_utf8(text.to_vec()).unwrap();
        assert_eq!(text, "policy rekey-after 9d\nformat-version 2\n");
        assert_eq!(keyring.policies().unwrap().format_version(), 2);
        keyring.clear_policies().unwrap();
        assert_eq!(keyring.policies().unwrap(), Policies::default());
    }

    #[test]
    fn a_line_of_a_newer_version_is_named_and_kept() {
        let (_home, keyring) = keyring();
        let write = |text: &str| file(keyring.home()).replace(keyring.key(), text.as_bytes());
        write("later word\npolicy rekey-after 5d\n").unwrap();
        assert_eq!(keyring.policies().unwrap().limit(Policy::RekeyAfter), Limit::Days(5));
        keyring.set_policy(Policy::RekeyAfter, Some(Limit::Days(6))).unwrap();
        assert_eq!(keyring.settings().unwrap().others, ["later word"]);
        for line in ["policy later 5d", "policy rekey-after 5y"] {
            write(line).unwrap();
            let told = keyring.policies().unwrap_err();
            assert!(matches!(told, Error::Unsupported { .. }), "{told}");
            assert!(told.to_string().contains(line), "{told}");
        }
        keyring.clear_policies().unwrap();
        assert_eq!(keyring.policies().unwrap(), Policies::default());
    }

    #[test]
    fn a_backup_is_of_one_key_and_goes_with_it() {
        let (home, keyring) = keyring();
        let password = Passphrase::new(b"long enough");
        let when = |keyring: &Keyring| -> Vec<bool> {
            let facts = keyring.master_key_facts().unwrap();
            facts.iter().map(|facts| facts.backed_up.is_some()).collect()
        };
        assert_eq!(when(&keyring), [false, false]);
        back_up_service_key(home.path(), &home.path().join("s"), &password).unwrap();
        assert_eq!(when(&keyring), [true, false]);
        keyring.back_up_database_key(&home.path().join("d"), &password).unwrap();
        assert_eq!(when(&keyring), [true, true]);
        keyring.set_policy(Policy::RekeyAfter, Some(Limit::Days(365))).unwrap();

        let change = Change::begin(home.path()).unwrap();
        change.replace_database_key(Some(&keyring), None, None, false).unwrap();
        drop(change);
        let keyring = Keyring::open(home.path()).unwrap();
        assert_eq!(when(&keyring), [true, false], "the new key has no backup");
        assert!(
            keyring.policies().unwrap().is_set(Policy::RekeyAfter),
            "sealed anew with the rest"
        );
        let change = Change::begin(home.path()).unwrap();
        change.replace_service_key(None, false).unwrap();
        drop(change);
        assert_eq!(when(&Keyring::open(home.path()).unwrap()), [false, false]);
    }
}

//! SERVICE MASTER KEY and MASTER KEY.

use pellucid::message as known;
use pellucid::protector::Passphrase;
use pellucid::Error;
use pellucid_keyring::{back_up_service_key, read_key_backup, Change, Keyring, MasterKey};
use pellucid_tsql::ast::{MasterKeyEncryption, MasterKeyStatement};
use pellucid_tsql::secret::Secret;

use super::Done;
use crate::instance::paths::Folder;
use crate::instance::MASTER;
use crate::message::product::not_written;
use crate::message::{table, Message};
use crate::session::Session;

const NAME: &str = "master key";

impl Session {
    pub(super) fn master_key(&mut self, statement: &MasterKeyStatement) -> Done {
        let home = self.databases.instance.home().to_owned();
        let service = matches!(
            statement,
            MasterKeyStatement::RegenerateService { .. }
                | MasterKeyStatement::BackupService { .. }
                | MasterKeyStatement::RestoreService { .. }
        );
        if !service && self.databases.current_id() != MASTER {
            return Err(Message::unsupported("a master key outside of master").into());
        }
        match statement {
            MasterKeyStatement::RegenerateService { force } => {
                Change::begin(&home)?.replace_service_key(None, *force)?;
            }
            MasterKeyStatement::BackupService { file, password } => {
                let file = self.databases.instance.file(&file.text, Folder::Backup)?;
                back_up_service_key(&home, &file, &passphrase(password)).map_err(not_written)?;
            }
            MasterKeyStatement::RestoreService { file, password, force } => {
                let file = self.databases.instance.file(&file.text, Folder::Backup)?;
                let key = read_key_backup(MasterKey::Service, &file, &passphrase(password))?;
                Change::begin(&home)?.replace_service_key(Some(key), *force)?;
            }
            MasterKeyStatement::Create { password } => self.create_master_key(password.as_ref())?,
            MasterKeyStatement::Open { password } => {
                self.declared("find")?;
                Keyring::open_by_password(&home, &passphrase(password)).map_err(not_by_it)?;
                self.open_master_key = Some(password.clone());
                self.databases.instance.open_msdb_if_closed()?;
            }
            MasterKeyStatement::Close => match self.open_master_key.take() {
                Some(_) => {}
                None => return Err(Message::of(table::MASTER_KEY_NOT_OPEN, []).into()),
            },
            MasterKeyStatement::Drop => self.drop_master_key()?,
            MasterKeyStatement::Regenerate { force, password } => {
                self.declared("alter")?;
                let present = self.master_keyring().ok();
                if present.is_none() && !force {
                    return Err(Message::from(known::CURRENT_KEY_UNREADABLE).into());
                }
                let change = Change::begin(&home)?;
                change.replace_database_key(
                    present.as_ref(),
                    None,
                    Some(&passphrase(password)),
                    *force,
                )?;
            }
            MasterKeyStatement::AddEncryption(how) => {
                self.declared("alter")?;
                let keyring = self.master_keyring()?;
                let change = Change::begin(&home)?;
                match how {
                    MasterKeyEncryption::Password(password) => {
                        change.add_password(&keyring, &passphrase(password))?
                    }
                    MasterKeyEncryption::ServiceMasterKey => {
                        change.add_service_encryption(&keyring)?;
                        drop(change);
                        self.databases.instance.open_msdb_if_closed()?;
                    }
                }
            }
            MasterKeyStatement::DropEncryption(how) => {
                self.declared("alter")?;
                let change = Change::begin(&home)?;
                match how {
                    MasterKeyEncryption::Password(password) => {
                        change.drop_password(&passphrase(password)).map_err(not_by_it)?;
                    }
                    MasterKeyEncryption::ServiceMasterKey => {
                        drop(change);
                        let keyring = self.master_keyring()?;
                        Change::begin(&home)?.drop_service_encryption(&keyring)?;
                    }
                }
            }
            MasterKeyStatement::Backup { file, password } => {
                self.declared("find")?;
                let file = self.databases.instance.file(&file.text, Folder::Backup)?;
                self.master_keyring()?
                    .back_up_database_key(&file, &passphrase(password))
                    .map_err(not_written)?;
            }
            MasterKeyStatement::Restore { file, decryption, encryption, force } => {
                let file = self.databases.instance.file(&file.text, Folder::Backup)?;
                let key = read_key_backup(MasterKey::Database, &file, &passphrase(decryption))?;
                Keyring::make_directories(&home)?;
                let present = self.master_keyring().ok();
                let change = Change::begin(&home)?;
                let password = passphrase(encryption);
                change.replace_database_key(
                    present.as_ref(),
                    Some(key),
                    Some(&password),
                    *force,
                )?;
                self.databases.instance.set_master_key_declared(true)?;
            }
        }
        Ok(())
    }

    fn create_master_key(&mut self, password: Option<&Secret>) -> Done {
        let home = self.databases.instance.home().to_owned();
        if self.databases.instance.is_master_key_declared()? {
            return Err(Message::from(known::MASTER_KEY_EXISTS).into());
        }
        let (keyring, _) = Keyring::open_or_create(&home)?;
        if let Some(password) = password {
            Change::begin(&home)?.add_password(&keyring, &passphrase(password))?;
        }
        Ok(self.databases.instance.set_master_key_declared(true)?)
    }

    /// The key itself goes on under another value: `msdb` and what is known of databases are sealed under it. Its
    /// passwords go.
    fn drop_master_key(&mut self) -> Done {
        self.declared("drop")?;
        let home = self.databases.instance.home().to_owned();
        let keyring = self.master_keyring()?;
        if let Some(stored) = keyring.find_certificates()?.whole.first() {
            let name = stored.public().name();
            return Err(Message::of(table::MASTER_KEY_ENCRYPTS, [&NAME, &name]).into());
        }
        Change::begin(&home)?.replace_database_key(Some(&keyring), None, None, false)?;
        self.open_master_key = None;
        Ok(self.databases.instance.set_master_key_declared(false)?)
    }

    /// Whether there is a database master key for statements.
    fn declared(&self, verb: &str) -> Done {
        match self.databases.instance.is_master_key_declared()? {
            true => Ok(()),
            false => Err(Message::does_not_exist(verb, "symmetric key", NAME).into()),
        }
    }

    /// The keyring, opened by the service master key or by the password that OPEN MASTER KEY gave.
    pub(super) fn master_keyring(&self) -> Done<Keyring> {
        let home = self.databases.instance.home();
        match (Keyring::open(home), &self.open_master_key) {
            (Ok(keyring), _) => Ok(keyring),
            (Err(_), Some(password)) => Ok(Keyring::open_by_password(home, &passphrase(password))?),
            (Err(error), None) => Err(error.into()),
        }
    }

    /// A certificate can be made or used only under a database master key.
    pub(super) fn keyring_for_certificates(&self) -> Done<Keyring> {
        match self.databases.instance.is_master_key_declared()? {
            true => self.master_keyring(),
            false => Err(Message::from(known::MASTER_KEY_MISSING).into()),
        }
    }
}

pub(super) fn passphrase(secret: &Secret) -> Passphrase {
    Passphrase::new(secret.reveal().as_bytes())
}

/// 15313 for a password that is not one of the key's.
fn not_by_it(error: Error) -> Message {
    match error.number() {
        Some(15465) => Message::of(table::WRONG_DECRYPTOR, []),
        _ => error.into(),
    }
}

//! DATABASE ENCRYPTION KEY and SET ENCRYPTION.
//!
//! A plain database has no place for a key. What CREATE DATABASE ENCRYPTION KEY asks for is kept in `msdb` until SET
//! ENCRYPTION ON makes the container, with a key of its own.

use std::time::Duration;

use pellucid::header::EncryptionState;
use pellucid::message as known;
use pellucid::protector::Protector;
use pellucid::scan::ScanState;
use pellucid::Algorithm;
use pellucid_engine::convert::decrypt::decrypt;
use pellucid_engine::inspect::{inspect, Kind, SealedHeader};
use pellucid_engine::protectors;
use pellucid_engine::scan;
use pellucid_engine::scan::Target;
use pellucid_host::{DatabaseError, Options};
use pellucid_tsql::ast::{
    DatabaseAlgorithm, DatabaseEncryptionKeyStatement, EncryptionAction, Encryptor,
};
use pellucid_vfs::seal_request::Protection;

use super::{state_of_process, Done, Raised};
use crate::instance::{Known, PendingKey};
use crate::message::{table, Message};
use crate::session::Session;

/// The compatibility level that still has TRIPLE_DES_3KEY for databases.
const LEVEL_OF_3DES: i64 = 120;
/// How long a change of keys waits for others.
const WAIT: Duration = Duration::from_secs(10);

/// The key of a database.
enum Key {
    None,
    Pending(PendingKey),
    Container(Box<SealedHeader>),
}

impl Session {
    fn key_of(&mut self, known: &Known) -> Done<Key> {
        if known.is_system() {
            return Err(Message::of(table::SYSTEM_NOT_ENCRYPTED, []).into());
        }
        self.databases.release(known)?;
        let pending = self.databases.instance.pending_key(known)?;
        let found = inspect(&known.path)?.kind;
        found.refuse_unexpected(&known.path).map_err(|error| error.of_file(&known.path))?;
        match found {
            Kind::Sealed(sealed) => {
                if pending.is_some() {
                    self.databases.instance.drop_pending_key(known)?;
                }
                Ok(Key::Container(sealed))
            }
            Kind::Damaged(error) => Err(Raised::from(error)),
            Kind::Unfinished => Err(Message::from(known::READ_ONLY).into()),
            _ => Ok(pending.map_or(Key::None, Key::Pending)),
        }
    }

    pub(super) fn encryption_key(&mut self, statement: &DatabaseEncryptionKeyStatement) -> Done {
        let known = self.databases.current()?;
        let verb = match statement {
            DatabaseEncryptionKeyStatement::Create { .. } => "CREATE DATABASE ENCRYPTION KEY",
            DatabaseEncryptionKeyStatement::Drop => "DROP DATABASE ENCRYPTION KEY",
            _ => "ALTER DATABASE ENCRYPTION KEY",
        };
        self.outside_transaction(verb)?;
        let key = self.key_of(&known)?;
        match statement {
            DatabaseEncryptionKeyStatement::Create { algorithm, encryptor } => {
                let certificate = self.certificate_of(encryptor)?;
                let algorithm = self.algorithm_of(&known, *algorithm)?;
                if !matches!(key, Key::None) {
                    return Err(Message::of(table::KEY_EXISTS, []).into());
                }
                self.keep_key(&known, algorithm, &certificate, None)?;
                self.warn_about_backup(&certificate)
            }
            DatabaseEncryptionKeyStatement::Regenerate { algorithm } => {
                let algorithm = self.algorithm_of(&known, *algorithm)?;
                match key {
                    Key::None => Err(Message::from(known::NO_KEY).into()),
                    Key::Pending(pending) => {
                        not_under_way(&pending, &known::KEY_DURING_SCAN, &[])?;
                        self.keep_key(&known, algorithm, &pending.certificate, Some(&pending))
                    }
                    Key::Container(_) => {
                        scan::rekey(&known.path, Some(algorithm))
                            .map_err(|error| locked(error, &known))?;
                        self.scan_of(&known)
                    }
                }
            }
            DatabaseEncryptionKeyStatement::EncryptBy(encryptor) => {
                let certificate = self.certificate_of(encryptor)?;
                match key {
                    Key::None => return Err(Message::from(known::NO_KEY).into()),
                    Key::Pending(pending) => {
                        not_under_way(&pending, &known::KEY_DURING_SCAN, &[])?;
                        let algorithm = pending.algorithm.parse::<Algorithm>()?;
                        self.keep_key(&known, algorithm, &certificate, Some(&pending))?;
                    }
                    Key::Container(sealed) => {
                        let old =
                            sealed.header.protectors.iter().find_map(
                                |bytes| match Protector::decode(bytes) {
                                    Ok((Protector::Certificate(found), _))
                                        if !found.is_recovery() =>
                                    {
                                        Some(*found.thumbprint())
                                    }
                                    _ => None,
                                },
                            );
                        let new = Protection::Certificate(Some(certificate.clone()));
                        protectors::exchange(&known.path, old.as_ref(), &new)
                            .map_err(|error| locked(error, &known))?;
                    }
                }
                self.warn_about_backup(&certificate)
            }
            DatabaseEncryptionKeyStatement::Drop => match key {
                Key::None => Err(Message::from(known::NO_KEY).into()),
                Key::Pending(pending) => {
                    if pending.process.is_some_and(state_of_process) {
                        return Err(in_use().into());
                    }
                    Ok(self.databases.instance.drop_pending_key(&known)?)
                }
                Key::Container(sealed) => {
                    if sealed.header.state != EncryptionState::Unencrypted {
                        return Err(in_use().into());
                    }
                    decrypt(&known.path, &Options::new(WAIT, self.load.clone()), &mut |_, _, _| {})
                        .map_err(|error| locked(error, &known))?;
                    Ok(())
                }
            },
        }
    }

    /// ALTER DATABASE .. SET ENCRYPTION
    pub(super) fn set_encryption(&mut self, known: &Known, action: EncryptionAction) -> Done {
        let key = self.key_of(known)?;
        if known.is_read_only {
            return Err(Message::from(known::READ_ONLY).into());
        }
        match (action, key) {
            (_, Key::None) => Err(Message::from(known::NO_KEY_SET).into()),
            (EncryptionAction::On, Key::Pending(mut pending)) => {
                not_under_way(&pending, &known::STATE_DURING_SCAN, &["enable"])?;
                pending.set = Some(now());
                pending.process =
                    self.start_encryption(&known.path, &pending.certificate, &pending.algorithm)?;
                Ok(self.databases.instance.keep_pending_key(known, &pending)?)
            }
            (EncryptionAction::Off, Key::Pending(pending)) => {
                not_under_way(&pending, &known::STATE_DURING_SCAN, &["disable"])?;
                Err(Message::from(known::OFF_ALREADY).into())
            }
            (EncryptionAction::Suspend | EncryptionAction::Resume, Key::Pending(_)) => {
                Err(Message::unsupported("SUSPEND and RESUME of a first encryption").into())
            }
            (EncryptionAction::On, Key::Container(sealed)) => {
                let algorithm = sealed.header.algorithm()?;
                scan::set(&known.path, Target::On(algorithm))?;
                self.scan_of(known)
            }
            (EncryptionAction::Off, Key::Container(_)) => {
                scan::set(&known.path, Target::Off)?;
                self.scan_of(known)
            }
            (EncryptionAction::Suspend, Key::Container(_)) => {
                scan::change_state(&known.path, ScanState::Suspended)?;
                Ok(())
            }
            (EncryptionAction::Resume, Key::Container(_)) => {
                scan::change_state(&known.path, ScanState::Running)?;
                self.scan_of(known)
            }
        }
    }

    fn scan_of(&mut self, known: &Known) -> Done {
        self.start_scan(&known.path)
    }

    fn keep_key(
        &mut self,
        known: &Known,
        algorithm: Algorithm,
        certificate: &str,
        before: Option<&PendingKey>,
    ) -> Done {
        let stored = self.databases.instance.keyring()?.stored_certificate(certificate)?;
        let key = PendingKey {
            algorithm: algorithm.name().to_owned(),
            certificate: certificate.to_owned(),
            thumbprint: pellucid::hash::hex(stored.public().thumbprint()),
            created: before.map_or_else(now, |before| before.created.clone()),
            process: None,
            set: before.and_then(|before| before.set.clone()),
        };
        Ok(self.databases.instance.keep_pending_key(known, &key)?)
    }

    /// The certificate's name, if it can be used.
    pub(super) fn certificate_of(&mut self, encryptor: &Encryptor) -> Done<String> {
        match encryptor {
            Encryptor::AsymmetricKey(name) => self.asymmetric_key(name.as_str()),
            Encryptor::Certificate(name) => {
                let keyring = self.keyring_for_certificates()?;
                let found = keyring.certificate(name.as_str())?;
                match found.place() {
                    None => Ok(found.public().name().to_owned()),
                    Some(_) => {
                        Err(Message::does_not_exist("find", "certificate", name.as_str()).into())
                    }
                }
            }
        }
    }

    fn algorithm_of(&self, known: &Known, algorithm: DatabaseAlgorithm) -> Done<Algorithm> {
        if algorithm == DatabaseAlgorithm::TripleDes3Key
            && known.compatibility_level > LEVEL_OF_3DES
        {
            return Err(Message::of(table::ALGORITHM_DEPRECATED, [&algorithm]).into());
        }
        Ok(algorithm.to_string().parse()?)
    }
}

fn not_under_way(pending: &PendingKey, message: &known::Message, arguments: &[&str]) -> Done {
    match pending.process.is_some_and(state_of_process) {
        true => Err(Message::known(message, arguments).into()),
        false => Ok(()),
    }
}

fn in_use() -> Message {
    Message::of(table::KEY_IN_USE, [])
}

fn locked(error: DatabaseError, known: &Known) -> Message {
    match error {
        DatabaseError::InUse { .. } => Message::known(&known::KEY_LOCKED, &[&known.name]),
        error => error.into(),
    }
}

/// UTC, as SQLite writes it.
pub(super) fn now() -> String {
    let now = time::OffsetDateTime::now_utc();
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:03}",
        now.year(),
        u8::from(now.month()),
        now.day(),
        now.hour(),
        now.minute(),
        now.second(),
        now.millisecond()
    )
}

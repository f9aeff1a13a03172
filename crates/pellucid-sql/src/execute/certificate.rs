//! CREATE, ALTER, BACKUP, DROP CERTIFICATE.

use std::io::Read;
use std::path::Path;

use pellucid::certificate::{CertificateRequest, PublicCertificate, VALID_DAYS_DEFAULT};
use pellucid::message as known;
use pellucid_backup::history::History;
use pellucid_engine::inspect::{inspect, Kind};
use pellucid_exchange::{import, FILE_BYTES_MOST, PEM};
use pellucid_keyring::{Keyring, Stored};
use pellucid_tsql::ast::{
    BackupCertificate, CertificateFormat, CertificateSource, CertificateStatement,
    CreateCertificate, PrivateKey, PrivateKeySource,
};
use zeroize::Zeroizing;

use super::master_key::passphrase;
use super::Done;
use crate::instance::paths::Folder;
use crate::instance::MASTER;
use crate::message::product::not_written;
use crate::message::{table, Message};
use crate::session::Session;
use crate::values::moment::{Moment, TICKS_SECOND};

const DAY_SECONDS: i64 = 86_400;
/// Days from 1900 to 1970.
const EPOCH_DAYS: i64 = 25_567;

impl Session {
    pub(super) fn certificate(&mut self, statement: &CertificateStatement) -> Done {
        if self.databases.current_id() != MASTER {
            return Err(Message::unsupported("a certificate outside of master").into());
        }
        match statement {
            CertificateStatement::Create(create) => self.create_certificate(create),
            CertificateStatement::Alter { name, .. } => {
                // Of one that is not there that is said.
                self.databases.instance.keyring()?.stored_certificate(name.as_str())?;
                Err(Message::unsupported("ALTER CERTIFICATE").into())
            }
            CertificateStatement::Backup(backup) => self.back_up_certificate(backup),
            CertificateStatement::Drop { name } => self.drop_certificate(name.as_str()),
        }
    }

    fn create_certificate(&mut self, create: &CreateCertificate) -> Done {
        if let Some(user) = &create.authorization {
            if !user.as_str().eq_ignore_ascii_case("dbo") {
                return Err(Message::unsupported("AUTHORIZATION").into());
            }
        }
        let name = create.name.as_str();
        let stored = match &create.source {
            CertificateSource::SelfSigned { password: Some(_), .. } => {
                return Err(Message::unsupported("ENCRYPTION BY PASSWORD of a certificate").into())
            }
            CertificateSource::SelfSigned { password: None, subject, start_date, expiry_date } => {
                let keyring = self.keyring_for_certificates()?;
                let mut request = CertificateRequest::new(&subject.text, VALID_DAYS_DEFAULT);
                if let Some(start) = start_date {
                    request.not_before = seconds(&start.text)?;
                    request.not_after = request.not_before + VALID_DAYS_DEFAULT * DAY_SECONDS;
                }
                if let Some(expiry) = expiry_date {
                    request.not_after = seconds(&expiry.text)?;
                }
                Stored::Whole(keyring.create_certificate(name, &request)?)
            }
            CertificateSource::File { executable: true, .. } => {
                return Err(Message::unsupported("CREATE CERTIFICATE FROM EXECUTABLE FILE").into())
            }
            CertificateSource::Assembly(_) => {
                return Err(Message::unsupported("CREATE CERTIFICATE FROM ASSEMBLY").into())
            }
            CertificateSource::File { executable: false, path, private_key, .. } => {
                let file = self.databases.instance.file(&path.text, Folder::Backup)?;
                self.take_in(name, &read(&file)?, private_key.as_ref())?
            }
            CertificateSource::Binary { bytes, private_key } => {
                self.take_in(name, bytes, private_key.as_ref())?
            }
        };
        self.warn_about_validity(stored.public());
        Ok(())
    }

    fn take_in(
        &mut self,
        name: &str,
        certificate: &[u8],
        private_key: Option<&PrivateKey>,
    ) -> Done<Stored> {
        let keyring = match private_key {
            Some(_) => self.keyring_for_certificates()?,
            None => self.databases.instance.keyring()?,
        };
        let mut key = None;
        let mut password = None;
        if let Some(private_key) = private_key {
            if private_key.encryption.is_some() {
                return Err(Message::unsupported("ENCRYPTION BY PASSWORD of a certificate").into());
            }
            password = private_key.decryption.as_ref().map(passphrase);
            key = match &private_key.source {
                Some(PrivateKeySource::File(path)) => Some(Zeroizing::new(read(
                    &self.databases.instance.file(&path.text, Folder::Backup)?,
                )?)),
                Some(PrivateKeySource::Binary(secret)) => {
                    let bytes =
                        crate::values::convert::from_hex(secret.reveal().trim_start_matches("0x"));
                    Some(Zeroizing::new(bytes.ok_or_else(|| Message::from(known::FILE_NOT_VALID))?))
                }
                // A PFX file has both.
                None => None,
            };
        }
        let imported =
            import(name, certificate, key.as_ref().map(|key| &key[..]), password.as_ref())?;
        Ok(keyring.add_certificate(imported)?)
    }

    fn warn_about_validity(&mut self, public: &PublicCertificate) {
        let (from, to) = public.validity();
        let now = time::OffsetDateTime::now_utc().unix_timestamp();
        if to < now {
            self.inform(known::CREATED_EXPIRED.into());
        } else if from > now {
            self.inform(known::CREATED_FUTURE.into());
        }
    }

    fn back_up_certificate(&mut self, backup: &BackupCertificate) -> Done {
        if backup.format == Some(CertificateFormat::Pfx) {
            return Err(Message::unsupported("FORMAT = 'PFX'").into());
        }
        let keyring = self.databases.instance.keyring()?;
        let name = backup.name.as_str();
        keyring.stored_certificate(name)?;
        let file = self.databases.instance.file(&backup.file.text, Folder::Backup)?;
        let Some(private_key) = &backup.private_key else {
            return Ok(keyring.export_certificate(name, &file, None, &PEM).map_err(not_written)?);
        };
        if private_key.decryption.is_some() {
            return Err(Message::from(known::PASSWORD_INVALID).into());
        }
        let (Some(PrivateKeySource::File(path)), Some(password)) =
            (&private_key.source, &private_key.encryption)
        else {
            return Err(Message::unsupported(
                "a private key without FILE and ENCRYPTION BY PASSWORD",
            )
            .into());
        };
        let key_file = self.databases.instance.file(&path.text, Folder::Backup)?;
        Ok(keyring
            .export_certificate(name, &file, Some((&key_file, &passphrase(password))), &PEM)
            .map_err(not_written)?)
    }

    fn drop_certificate(&mut self, name: &str) -> Done {
        let keyring = self.databases.instance.keyring()?;
        let stored = match keyring.stored_certificate(name) {
            Ok(stored) if stored.place().is_some() => {
                return Err(Message::does_not_exist("drop", "certificate", name).into())
            }
            Ok(stored) => stored,
            Err(error) if error.number() == Some(15151) => {
                return Err(Message::does_not_exist("drop", "certificate", name).into())
            }
            Err(error) => return Err(error.into()),
        };
        if self.is_in_use(&keyring, &stored)? {
            return Err(Message::known(&known::CERTIFICATE_IN_USE, &["certificate"]).into());
        }
        let lost = match History::open()? {
            Some(history) => history.sets_under(stored.public().thumbprint())?.len(),
            None => 0,
        };
        keyring.drop_certificate(name)?;
        if lost > 0 {
            let sets = if lost == 1 { "1 backup set" } else { &format!("{lost} backup sets") };
            self.inform(Message::of(table::SETS_LOST, [&sets, &name]));
        }
        Ok(())
    }

    /// Whether a database needs it, or will once its encryption is switched on.
    pub(super) fn is_in_use(&mut self, keyring: &Keyring, stored: &Stored) -> Done<bool> {
        let name = stored.public().name();
        for known in self.databases.instance.databases()? {
            if known.is_system() {
                continue;
            }
            // Looking at a file past SQLite drops the locks that it holds.
            self.databases.release(&known)?;
            if let Some(pending) = self.databases.instance.pending_key(&known)? {
                let is_plain = inspect(&known.path)
                    .is_ok_and(|found| matches!(found.kind, Kind::Plain | Kind::Empty));
                if is_plain && pending.certificate.eq_ignore_ascii_case(name) {
                    return Ok(true);
                }
            }
        }
        let thumbprint = stored.public().thumbprint();
        for memory in keyring.find_databases()?.all()? {
            let is_plain =
                || inspect(&memory.path).is_ok_and(|found| matches!(found.kind, Kind::Plain));
            if memory.certificates.contains(thumbprint) && !is_plain() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// 33091, for a certificate that only this keyring has.
    pub(super) fn warn_about_backup(&mut self, name: &str) -> Done {
        let certificate = self.databases.instance.keyring()?.certificate(name)?;
        if certificate.needs_backup() {
            self.inform(known::NOT_BACKED_UP.into());
        }
        Ok(())
    }
}

/// A file of a certificate or private key.
fn read(path: &Path) -> Done<Vec<u8>> {
    let mut bytes = Vec::new();
    pellucid_files::regular::open_given(path)
        .and_then(|file| file.take(FILE_BYTES_MOST as u64 + 1).read_to_end(&mut bytes))
        .map_err(|_| Message::from(known::FILE_NOT_VALID))?;
    Ok(bytes)
}

/// A date as microseconds since 1970.
pub(super) fn micros(text: &str) -> Done<u64> {
    let moment = Moment::parse(text, 0).ok_or_else(Message::not_a_date)?;
    let (.., ticks) = moment.hms();
    let parts = u64::try_from(ticks).unwrap_or(0) / (TICKS_SECOND as u64 / 1_000_000);
    let seconds = u64::try_from(seconds(text)?).unwrap_or(0);
    Ok(seconds.saturating_mul(1_000_000).saturating_add(parts))
}

/// A date as seconds since 1970.
pub(super) fn seconds(text: &str) -> Done<i64> {
    let moment = Moment::parse(text, 0).ok_or_else(Message::not_a_date)?;
    let (hour, minute, second, _) = moment.hms();
    Ok((moment.days() - EPOCH_DAYS) * DAY_SECONDS + hour * 3600 + minute * 60 + second)
}

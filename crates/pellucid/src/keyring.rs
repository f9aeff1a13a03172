//! The keyring: the only home of key material, one small sealed file for each key and certificate.
//!
//! Layout: docs/format.md, "Keyring". Reading never writes. Opening a database needs no other
//! database and no lock.

mod instance;
mod sealed_file;

use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::certificate::{Certificate, VALID_DAYS_DEFAULT};
use crate::error::{Error, Result, Subject};
use crate::secret::Secret32;
use sealed_file::{Kind, SealedFile};

/// SQL Server's message 33091.
pub const WARNING_33091: &str = "Warning: The certificate used for encrypting the database \
    encryption key has not been backed up. You should immediately back up the certificate and the \
    private key associated with the certificate. If the certificate ever becomes unavailable or if \
    you must restore or attach the database on another server, you must have backups of both the \
    certificate and the private key or you will not be able to open the database.";

/// The name of the certificate that is made when none is there.
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

/// What the keyring remembers of a database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatabaseMemory {
    /// The header sequence it was last seen at.
    pub sequence: u64,
    /// Whether it was encrypted.
    pub sealed: bool,
}

/// An opened keyring: the database master key is at hand.
#[derive(Debug)]
pub struct Keyring {
    home: PathBuf,
    master_key: Secret32,
}

impl Keyring {
    /// The instance directory: `$PELLUCID_HOME`, else `home = PATH` in `/etc/pellucid.conf`, else
    /// `pellucid` in the XDG data directory.
    ///
    /// # Errors
    /// [`Error::Misuse`] if none of them is set.
    pub fn locate() -> Result<PathBuf> {
        instance::locate()
    }

    /// Opens the keyring of an instance.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if there is none, or the service master key is another one;
    /// [`Error::Misuse`] if others can read it; [`Error::Unauthentic`] if a file is damaged.
    pub fn open(home: &Path) -> Result<Self> {
        let service_key = instance::read_service_key(home)?.ok_or_else(|| {
            Error::missing_key(
                SMK,
                format!(
                    "no keyring in `{}`; set `PELLUCID_HOME` to the one that has the keys",
                    home.display()
                ),
            )
        })?;
        let file = SealedFile::new(home.join("keyring/master.key"), Kind::MasterKey, "");
        let bytes = file.read(&service_key)?.ok_or_else(|| {
            Error::missing_key(DMK, format!("`{}` is not there", file.path().display()))
        })?;
        let master_key = Secret32::from_slice(&bytes)
            .ok_or_else(|| Error::corrupt(Subject::File(file.path().to_owned()), "wrong length"))?;
        Ok(Self { home: home.to_owned(), master_key })
    }

    /// Opens the keyring, or makes what is missing. Two processes that do so at once end with the
    /// same keys.
    ///
    /// A key is only made where nothing is sealed under the one it would replace: keys are made from
    /// the top and never removed, so a child without its parent is a loss, not a beginning.
    ///
    /// # Errors
    /// As [`Keyring::open`], also for a lost key; [`Error::Io`] if a file cannot be written.
    pub fn open_or_create(home: &Path) -> Result<(Self, Made)> {
        let mut made = Made::default();
        let path = home.join("keyring/master.key");
        instance::make_directories(home)?;
        let service_key = match instance::read_service_key(home)? {
            Some(key) => key,
            // Looked at in this order: another process makes the parent first.
            None if path.exists() || instance::has_children(home)? => {
                instance::read_service_key(home)?.ok_or_else(|| {
                    lost(SMK, home.join("service.key"), "; systemd may have it as a credential")
                })?
            }
            None => {
                made.service_master_key = instance::make_service_key(home)?;
                instance::read_service_key(home)?
                    .ok_or_else(|| Error::missing_key(SMK, "it vanished after it was made"))?
            }
        };
        if !path.exists() {
            if instance::has_children(home)? && !path.exists() {
                return Err(lost(DMK, path, ""));
            }
            let file = SealedFile::new(path.clone(), Kind::MasterKey, "");
            let fresh = Secret32::random()?;
            if file.create(&service_key, fresh.expose())? {
                made.database_master_key = Some(path);
            }
        }
        Ok((Self::open(home)?, made))
    }

    /// The instance directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The certificate `name`.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if it is not in the keyring.
    pub fn certificate(&self, name: &str) -> Result<Certificate> {
        check_name(name)?;
        self.read_certificate(name)?.ok_or_else(|| {
            Error::missing_key(
                Subject::Certificate(name.to_owned()),
                format!("not in the keyring `{}`", self.home.display()),
            )
        })
    }

    /// The certificate with this SHA-256 thumbprint.
    ///
    /// # Errors
    /// What is wrong with a file of the keyring, if the certificate is in no other: it may be the one.
    pub fn certificate_by_thumbprint(&self, thumbprint: &[u8; 32]) -> Result<Option<Certificate>> {
        let mut trouble = None;
        for name in self.certificate_names()? {
            match self.read_certificate(&name) {
                Ok(Some(found)) if found.public().thumbprint() == thumbprint => {
                    return Ok(Some(found));
                }
                Ok(_) => {}
                Err(error) => {
                    trouble.get_or_insert(error);
                }
            }
        }
        trouble.map_or(Ok(None), Err)
    }

    /// All certificates, by name.
    ///
    /// # Errors
    /// What is wrong with a file of the keyring.
    pub fn certificates(&self) -> Result<Vec<Certificate>> {
        let names = self.certificate_names()?;
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            found.extend(self.read_certificate(&name)?);
        }
        Ok(found)
    }

    fn certificate_names(&self) -> Result<Vec<String>> {
        let directory = self.home.join("keyring/certificates");
        let io = |error| Error::io(Subject::File(directory.clone()), error);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&directory).map_err(io)? {
            let name = entry.map_err(io)?.file_name();
            names.extend(name.into_string().ok().filter(|name| check_name(name).is_ok()));
        }
        names.sort();
        Ok(names)
    }

    /// Makes a certificate.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the name is taken or not possible.
    pub fn create_certificate(&self, name: &str, subject: &str, days: i64) -> Result<Certificate> {
        check_name(name)?;
        let certificate = Certificate::generate(name, subject, days)?;
        if self.certificate_file(name).create(&self.master_key, &encode(&certificate))? {
            return Ok(certificate);
        }
        Err(Error::misuse(
            Subject::Certificate(name.to_owned()),
            "there is one of that name already",
        ))
    }

    /// The certificate used when none is named, made when it is missing; the second value says so.
    ///
    /// # Errors
    /// As [`Keyring::certificate`] and [`Keyring::create_certificate`].
    pub fn ensure_default_certificate(&self) -> Result<(Certificate, bool)> {
        if let Some(found) = self.read_certificate(DEFAULT_CERTIFICATE)? {
            return Ok((found, false));
        }
        match self.create_certificate(DEFAULT_CERTIFICATE, "Pellucid", VALID_DAYS_DEFAULT) {
            Ok(made) => Ok((made, true)),
            // Another process was faster; its certificate is as good.
            Err(Error::Misuse { .. }) => self.certificate(DEFAULT_CERTIFICATE).map(|c| (c, false)),
            Err(error) => Err(error),
        }
    }

    fn read_certificate(&self, name: &str) -> Result<Option<Certificate>> {
        let file = self.certificate_file(name);
        let Some(bytes) = file.read(&self.master_key)? else { return Ok(None) };
        decode(name, &bytes)
            .ok_or_else(|| {
                Error::corrupt(Subject::File(file.path().to_owned()), "its fields do not fit")
            })?
            .map(Some)
    }

    fn certificate_file(&self, name: &str) -> SealedFile {
        let path = self.home.join("keyring/certificates").join(name);
        SealedFile::new(path, Kind::Certificate, name)
    }

    /// What is remembered of the database with this file id.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if the file is damaged.
    pub fn recall_database(&self, file_id: &[u8; 16]) -> Result<Option<DatabaseMemory>> {
        let file = self.database_file(file_id);
        let Some(bytes) = file.read(&self.master_key)? else { return Ok(None) };
        let (Some(sequence), Some(sealed)) = (bytes.first_chunk::<8>(), bytes.get(8)) else {
            return Err(Error::corrupt(Subject::File(file.path().to_owned()), "wrong length"));
        };
        Ok(Some(DatabaseMemory { sequence: u64::from_be_bytes(*sequence), sealed: *sealed == 1 }))
    }

    /// Remembers a database.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written.
    pub fn remember_database(&self, file_id: &[u8; 16], memory: DatabaseMemory) -> Result<()> {
        let mut bytes = memory.sequence.to_be_bytes().to_vec();
        bytes.push(u8::from(memory.sealed));
        self.database_file(file_id).replace(&self.master_key, &bytes)
    }

    fn database_file(&self, file_id: &[u8; 16]) -> SealedFile {
        let name = crate::certificate::hex(file_id);
        let path = self.home.join("keyring/databases").join(&name);
        SealedFile::new(path, Kind::Database, &name)
    }
}

fn lost(key: Subject, path: PathBuf, hint: &str) -> Error {
    Error::missing_key(
        key,
        format!(
            "`{}` is not there, and what is sealed under it is; put back the file{hint}",
            path.display()
        ),
    )
}

/// A certificate's name is a file's name: letters, digits, `-`, `_`, `.`, at most 63, not first a dot.
fn check_name(name: &str) -> Result<()> {
    let possible = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.is_empty() && name.len() <= 63 && !name.starts_with('.') && name.chars().all(possible)
    {
        return Ok(());
    }
    Err(Error::misuse(
        Subject::Certificate(name.to_owned()),
        "a name has 1 to 63 letters, digits, `-`, `_` or `.`, and does not begin with a dot",
    ))
}

/// `[backed up 8][DER length 4][DER][PKCS#8]`.
fn encode(certificate: &Certificate) -> Zeroizing<Vec<u8>> {
    let (der, key) = (certificate.public().der(), certificate.private_key());
    let mut bytes = Zeroizing::new(Vec::with_capacity(12 + der.len() + key.len()));
    bytes.extend_from_slice(&certificate.backed_up().unwrap_or(0).to_be_bytes());
    bytes.extend_from_slice(&(der.len() as u32).to_be_bytes());
    bytes.extend_from_slice(der);
    bytes.extend_from_slice(key);
    bytes
}

fn decode(name: &str, bytes: &[u8]) -> Option<Result<Certificate>> {
    let backed_up = u64::from_be_bytes(*bytes.first_chunk()?);
    let length = u32::from_be_bytes(bytes.get(8..12)?.try_into().ok()?) as usize;
    let (der, key) = bytes.get(12..)?.split_at_checked(length)?;
    Some(Certificate::from_parts(name, der, key, (backed_up != 0).then_some(backed_up)))
}

#[cfg(test)]
mod tests;

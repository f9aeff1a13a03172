//! What the keyring remembers of databases, so that an old header put back is noticed and no certificate is dropped
//! that one of them needs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::sealed_file::{Kind, SealedFile};
use super::{instance, Keyring};
use crate::error::{Error, Result, Subject};

const THUMBPRINT_BYTES: usize = 32;
/// Sequence and state; what follows is newer and may be missing.
const HEAD_BYTES: usize = 9;

/// What the keyring remembers of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseMemory {
    /// The header sequence it was last seen at.
    pub sequence: u64,
    /// Whether it was encrypted.
    pub sealed: bool,
    /// SHA-256 thumbprints of the certificates that open it.
    pub certificates: Vec<[u8; THUMBPRINT_BYTES]>,
    /// Where it lay; empty if that is not known.
    pub path: PathBuf,
}

impl DatabaseMemory {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.sequence.to_be_bytes().to_vec();
        bytes.push(u8::from(self.sealed));
        let certificates = &self.certificates[..self.certificates.len().min(255)];
        bytes.push(certificates.len() as u8);
        bytes.extend_from_slice(certificates.as_flattened());
        bytes.extend_from_slice(self.path.as_os_str().as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let mut memory = Self {
            sequence: u64::from_be_bytes(*head.first_chunk()?),
            sealed: head[8] == 1,
            ..Self::default()
        };
        let Some((count, rest)) = rest.split_first() else { return Some(memory) };
        let (prints, path) = rest.split_at_checked(usize::from(*count) * THUMBPRINT_BYTES)?;
        memory.certificates = prints
            .chunks_exact(THUMBPRINT_BYTES)
            .filter_map(|print| print.try_into().ok())
            .collect();
        memory.path = PathBuf::from(OsStr::from_bytes(path));
        Some(memory)
    }
}

impl Keyring {
    /// What is remembered of the database with this file id.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if the file is damaged.
    pub fn recall_database(&self, file_id: &[u8; 16]) -> Result<Option<DatabaseMemory>> {
        self.recall(&crate::certificate::hex(file_id))
    }

    fn recall(&self, name: &str) -> Result<Option<DatabaseMemory>> {
        let file = self.database_file(name);
        let Some(bytes) = self.read(&file)? else { return Ok(None) };
        DatabaseMemory::decode(&bytes)
            .map(Some)
            .ok_or_else(|| Error::corrupt(Subject::File(file.path().to_owned()), "wrong length"))
    }

    /// Remembers a database.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written.
    pub fn remember_database(&self, file_id: &[u8; 16], memory: &DatabaseMemory) -> Result<()> {
        let (_change, now) = self.begin_change()?;
        let file = self.database_file(&crate::certificate::hex(file_id));
        file.replace(&now.master_key, &memory.encode())
    }

    /// Forgets a database: it is gone, or not encrypted any more.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn forget_database(&self, file_id: &[u8; 16]) -> Result<()> {
        let _change = self.begin_change()?;
        let path = self.database_file(&crate::certificate::hex(file_id)).path().to_owned();
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io(Subject::File(path), error))
            }
            _ => Ok(()),
        }
    }

    /// All databases that are remembered.
    ///
    /// # Errors
    /// What is wrong with a file of the keyring.
    pub fn databases(&self) -> Result<Vec<DatabaseMemory>> {
        let names = instance::names_in(&self.home().join("keyring/databases"))?;
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            found.extend(self.recall(&name)?);
        }
        Ok(found)
    }

    /// Where the encrypted databases lie that a certificate opens, as far as they are still there.
    ///
    /// # Errors
    /// What is wrong with a file of the keyring.
    pub fn databases_under(&self, thumbprint: &[u8; 32]) -> Result<Vec<PathBuf>> {
        let mut found: Vec<PathBuf> = self
            .databases()?
            .into_iter()
            .filter(|memory| memory.sealed && memory.certificates.contains(thumbprint))
            .map(|memory| memory.path)
            .filter(|path| path.exists())
            .collect();
        found.sort();
        found.dedup();
        Ok(found)
    }

    fn database_file(&self, name: &str) -> SealedFile {
        let path = self.home().join("keyring/databases").join(name);
        SealedFile::new(path, Kind::Database, name)
    }
}

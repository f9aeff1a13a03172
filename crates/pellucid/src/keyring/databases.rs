//! What the keyring remembers of databases, so that an old header put back is noticed and no certificate is dropped
//! that one of them needs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::sealed_file::{Kind, SealedFile};
use super::{found, instance, Found, Keyring};
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
    /// With the header that was seen last, of this keyring's and another one's memory.
    fn seen_by_both(self, other: Option<Self>) -> Self {
        match other.filter(|other| other.sequence > self.sequence) {
            Some(Self { sequence, sealed, .. }) => Self { sequence, sealed, ..self },
            None => self,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.sequence.to_be_bytes().to_vec();
        bytes.push(u8::from(self.sealed));
        let certificates = &self.certificates[..self.certificates.len().min(255)];
        bytes.push(certificates.len() as u8);
        bytes.extend_from_slice(certificates.as_flattened());
        bytes.extend_from_slice(self.path.as_os_str().as_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
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
    /// What is remembered of the database with this file id: in this keyring, or in the machine's where this one is a
    /// user's own. How far its header had come is said by the one that saw it last.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if the file is damaged; one of the machine's only where there is no own.
    pub fn recall_database(&self, file_id: &[u8; 16]) -> Result<Option<DatabaseMemory>> {
        let name = crate::certificate::hex(file_id);
        let own = self.recall(&name)?;
        let machines = self.behind().map_or(Ok(None), |machine| machine.recall(&name));
        match own {
            Some(own) => Ok(Some(own.seen_by_both(machines.ok().flatten()))),
            None => machines,
        }
    }

    pub(super) fn recall(&self, name: &str) -> Result<Option<DatabaseMemory>> {
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

    /// The databases that are remembered, and what cannot be read of that.
    ///
    /// # Errors
    /// [`Error::Io`] if the directory cannot be read.
    pub fn find_databases(&self) -> Result<Found<DatabaseMemory>> {
        self.each_database().map(Found::from)
    }

    /// The same, each with its file: what is wrong with one hides no other.
    ///
    /// # Errors
    /// [`Error::Io`] if the directory cannot be read.
    pub fn each_database(&self) -> Result<Vec<(PathBuf, Result<DatabaseMemory>)>> {
        let directory = self.home().join("keyring/databases");
        let paths = instance::names_in(&directory)?.into_iter().map(|name| directory.join(name));
        Ok(found::each(paths, |name| self.recall(name)))
    }

    /// Where the databases lie that a certificate opens, as far as they are still there; one whose encryption is switched
    /// off needs it, too.
    ///
    /// # Errors
    /// What is wrong with a file of the keyring: the database it is about may be one of them.
    pub fn databases_under(&self, thumbprint: &[u8; 32]) -> Result<Vec<PathBuf>> {
        let mut found: Vec<PathBuf> = self
            .find_databases()?
            .all()?
            .into_iter()
            .filter(|memory| memory.certificates.contains(thumbprint))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_memories_the_later_one_says_how_far_the_header_was() {
        let memory = |sequence, sealed, path: &str| DatabaseMemory {
            sequence,
            sealed,
            certificates: vec![[1; 32]],
            path: path.into(),
        };
        let own = || memory(5, false, "/own.db");
        let seen = |other| own().seen_by_both(other);
        assert_eq!(seen(None), own());
        assert_eq!(seen(Some(memory(4, true, "/machine.db"))), own());
        assert_eq!(seen(Some(memory(6, true, "/machine.db"))), memory(6, true, "/own.db"));
    }
}

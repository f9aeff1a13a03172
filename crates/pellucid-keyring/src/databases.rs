//! What the keyring remembers of databases, so that an old header put back is noticed and no certificate is dropped
//! that one of them needs.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pellucid::error::{Error, Result, Subject};

use super::broker::{Broker, Query};
use super::sealed_file::{Kind, SealedFile};
use super::{found, instance, Found, Keyring};

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
    /// With the header that was seen last, of this memory and another one. Of two that came equally far one is an
    /// older header's that went another way: which, cannot be told.
    fn raised_by(self, other: Option<&Self>) -> Self {
        match other {
            Some(other) if other.sequence > self.sequence => {
                Self { sequence: other.sequence, sealed: other.sealed, ..self }
            }
            Some(other) if other.sequence == self.sequence => {
                Self { sealed: self.sealed || other.sealed, ..self }
            }
            _ => self,
        }
    }

    /// What is remembered once a header has been seen or written. An older one that came back adds what it needs, and
    /// lowers nothing.
    fn after(self, known: Option<Self>) -> Self {
        let Some(known) = known else { return self };
        let mut memory = self;
        if known.sequence > memory.sequence {
            let missing: Vec<_> = known
                .certificates
                .iter()
                .filter(|print| !memory.certificates.contains(print))
                .copied()
                .collect();
            memory.certificates.extend(missing);
        }
        memory.raised_by(Some(&known))
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
            sealed: match head[8] {
                0 => false,
                1 => true,
                // Taken for either, an old header put back might pass.
                _ => return None,
            },
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
    /// What is wrong with a file of either, unless it is the machine's and not the caller's to read.
    pub fn recall_database(&self, file_id: &[u8; 16]) -> Result<Option<DatabaseMemory>> {
        let own = self.recall(&pellucid::hash::hex(file_id))?;
        Self::with_machines(own, &self.home, file_id)
    }

    /// The same for the instance at `home`, which need not be there: nothing is remembered then, nor where it has no entry
    /// of the database. No key is needed for that answer, but the entry has to be readable for any other.
    ///
    /// # Errors
    /// As [`Keyring::recall_database`], and as [`Keyring::open`] where there is an entry.
    pub fn recall_at(home: &Path, file_id: &[u8; 16]) -> Result<Option<DatabaseMemory>> {
        Self::with_machines(Self::entry_at(home, file_id)?, home, file_id)
    }

    fn entry_at(home: &Path, file_id: &[u8; 16]) -> Result<Option<DatabaseMemory>> {
        if let Some(broker) = Broker::of(home)? {
            let query = Query { file_ids: vec![*file_id], ..Query::default() };
            let found = broker.recall(&query)?.databases.into_iter().next().unwrap_or_default();
            return match found.is_empty() {
                true => Ok(None),
                false => DatabaseMemory::decode(&found).map(Some).ok_or_else(|| broker.unfit()),
            };
        }
        let name = &pellucid::hash::hex(file_id);
        let path = home.join("keyring/databases").join(name);
        match path.symlink_metadata() {
            Ok(_) => Self::open(home)?.recall(name),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error)
                if error.kind() == ErrorKind::NotADirectory && !instance::has_keyring(home) =>
            {
                Ok(None)
            }
            Err(error) => Err(Error::io(Subject::File(path), error)),
        }
    }

    fn with_machines(
        own: Option<DatabaseMemory>,
        home: &Path,
        file_id: &[u8; 16],
    ) -> Result<Option<DatabaseMemory>> {
        let Some(machine) = instance::behind_surely(home)? else { return Ok(own) };
        let machines = match Self::entry_at(&machine, file_id) {
            // Whoever is not of the machine's group has a keyring of his own.
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::PermissionDenied => None,
            found => found?,
        };
        Ok(match own {
            Some(own) => Some(own.raised_by(machines.as_ref())),
            None => machines,
        })
    }

    pub(super) fn recall(&self, name: &str) -> Result<Option<DatabaseMemory>> {
        let file = self.database_file(name);
        let Some(bytes) = self.read(&file)? else { return Ok(None) };
        DatabaseMemory::decode(&bytes).map(Some).ok_or_else(|| {
            Error::corrupt(Subject::File(file.path().to_owned()), "its fields do not fit")
        })
    }

    /// Remembers a database. How far its header had come never goes down by that.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written; what is wrong with it if it cannot be read, since it is left alone then.
    pub fn remember_database(&self, file_id: &[u8; 16], memory: &DatabaseMemory) -> Result<()> {
        let (_change, now) = self.begin_change()?;
        let name = pellucid::hash::hex(file_id);
        let memory = memory.clone().after(now.recall(&name)?);
        self.database_file(&name).replace(&now.master_key, &memory.encode())
    }

    /// Forgets where a database lies and what opens it: it is gone, or not encrypted any more. How far its header had come
    /// stays, should an older one be put back.
    ///
    /// # Errors
    /// As [`Keyring::remember_database`].
    pub fn forget_database(&self, file_id: &[u8; 16]) -> Result<()> {
        let (_change, now) = self.begin_change()?;
        let name = pellucid::hash::hex(file_id);
        let Some(known) = now.recall(&name)? else { return Ok(()) };
        let memory = DatabaseMemory { certificates: Vec::new(), path: PathBuf::new(), ..known };
        self.database_file(&name).replace(&now.master_key, &memory.encode())
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

    fn memory(sequence: u64, sealed: bool, certificate: u8, path: &str) -> DatabaseMemory {
        DatabaseMemory {
            sequence,
            sealed,
            certificates: vec![[certificate; 32]],
            path: path.into(),
        }
    }

    #[test]
    fn of_two_memories_the_later_one_says_how_far_the_header_was() {
        let seen = |sealed, other: Option<(u64, bool)>| {
            let other = other.map(|(sequence, sealed)| memory(sequence, sealed, 2, "/machine.db"));
            let found = memory(5, sealed, 1, "/own.db").raised_by(other.as_ref());
            assert_eq!((&found.certificates[..], found.path), (&[[1; 32]][..], "/own.db".into()));
            (found.sequence, found.sealed)
        };
        assert_eq!(seen(false, None), (5, false));
        assert_eq!(seen(false, Some((4, true))), (5, false));
        assert_eq!(seen(false, Some((6, true))), (6, true));
        assert_eq!(seen(true, Some((6, false))), (6, false));
        assert_eq!([true, false].map(|own| seen(own, Some((5, !own)))), [(5, true); 2]);
    }

    #[test]
    fn what_is_remembered_never_goes_down() {
        let known = || Some(memory(5, true, 1, "/there.db"));
        let later = memory(6, false, 2, "/here.db");
        assert_eq!(later.clone().after(known()), later);
        assert_eq!(later.clone().after(None), later);
        let older = memory(4, false, 2, "/here.db").after(known());
        let both = vec![[2; 32], [1; 32]];
        assert_eq!(older, DatabaseMemory { certificates: both, ..memory(5, true, 2, "/here.db") });
        assert_eq!(memory(5, false, 2, "/here.db").after(known()), memory(5, true, 2, "/here.db"));
    }
}

//! How far the chain of log backups of a database had come, as a witness that its storage cannot change.
//!
//! One file for each path. A database or an archive that knows less than its witness was put back. Layout: docs/format.md, "Keyring".

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pellucid::error::{Error, Result, Subject};
use pellucid::log_archive::ArchiveState;
use pellucid::lsn::Lsn;
use pellucid_files::paths::original_path;

use super::broker::{Broker, Query};
use super::pins::name_of;
use super::sealed_file::{Kind, SealedFile};
use super::{instance, Keyring};

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 105;

/// What a chain of log backups had come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// Where the database lies: its whole path.
    pub path: PathBuf,
    /// Its file id.
    pub file_id: [u8; 16],
    /// The recovery fork of the chain.
    pub fork: [u8; 16],
    /// The sequence of the database's header.
    pub header_sequence: u64,
    /// The sequence of the archive's state.
    pub archive_sequence: u64,
    /// Log backups have every commit up to this one.
    pub lsn: Lsn,
    /// The snapshot of the last full backup.
    pub base: Lsn,
    /// SHA-256 of the manifest of the last set in the chain.
    pub last_set: [u8; 32],
    /// When that was, in seconds since 1970.
    pub at: u64,
}

impl Witness {
    /// Whether an archive knows less than the witness. One of another fork is no witness of it. An older header is known by what the
    /// keyring has of the database.
    ///
    /// The sequence of an older archive that goes on gets there again, without any backup. What backups have does not: until a full
    /// backup accepts it, an archive that is known as an older one is behind.
    pub fn is_ahead_of(&self, state: &ArchiveState) -> bool {
        let is_told = !state.broken_at.is_none() && state.highest > self.in_backups().epoch;
        // A full backup behind a break moves what log backups have, and else the base alone.
        let has_more = self.lsn > state.backed_up || self.base > state.in_backups();
        let knows_more = has_more && !is_told;
        self.fork == state.fork && (self.archive_sequence > state.sequence || knows_more)
    }

    /// Backups of any kind have every commit up to this one.
    pub fn in_backups(&self) -> Lsn {
        self.lsn.max(self.base)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.file_id);
        bytes.extend_from_slice(&self.fork);
        bytes.extend_from_slice(&self.header_sequence.to_be_bytes());
        bytes.extend_from_slice(&self.archive_sequence.to_be_bytes());
        bytes.extend_from_slice(&self.lsn.encode());
        bytes.extend_from_slice(&self.last_set);
        bytes.extend_from_slice(&self.at.to_be_bytes());
        bytes.extend_from_slice(&self.base.encode());
        bytes.extend_from_slice(self.path.as_os_str().as_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, path) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let number = |at: usize| Some(u64::from_be_bytes(*head[at..].first_chunk()?));
        if head[0] != VERSION {
            return None;
        }
        Some(Self {
            path: PathBuf::from(OsStr::from_bytes(path)),
            file_id: *head[1..].first_chunk()?,
            fork: *head[17..].first_chunk()?,
            header_sequence: number(33)?,
            archive_sequence: number(41)?,
            lsn: Lsn::decode(*head[49..].first_chunk()?),
            last_set: *head[57..].first_chunk()?,
            at: number(89)?,
            base: Lsn::decode(*head[97..].first_chunk()?),
        })
    }
}

/// What the broker knows of these names, and of the databases that the caller opens.
fn brokered(
    broker: &Broker,
    names: &[PathBuf],
    is_same: &dyn Fn(&Path) -> bool,
) -> Result<Vec<Witness>> {
    let query = Query { witnesses: Some(names.to_vec()), ..Query::default() };
    let found = broker.recall(&query)?.witnesses;
    let mut found = found
        .iter()
        .map(|bytes| Witness::decode(bytes).ok_or_else(|| broker.unfit()))
        .collect::<Result<Vec<_>>>()?;
    found.retain(|one| names.contains(&one.path) || is_same(&one.path));
    Ok(found)
}

impl Keyring {
    /// The witnesses of a database with these names, and those of paths that `is_same` says lead to it; of this keyring, and of the
    /// machine's that lies behind it.
    ///
    /// # Errors
    /// What is wrong with the file of one of the names: who cannot read it does not know whether something was put back. That of
    /// another database may be damaged.
    pub fn witnesses_at(
        &self,
        names: &[PathBuf],
        is_same: &dyn Fn(&Path) -> bool,
    ) -> Result<Vec<Witness>> {
        let names: Vec<String> = names.iter().map(|name| name_of(name)).collect();
        let mut found = Vec::new();
        let machine = self.behind();
        for keyring in std::iter::once(self).chain(&machine) {
            let directory = keyring.home.join("keyring/witnesses");
            for name in instance::names_if_there(&directory)? {
                let read = keyring.read_witness_file(&directory, &name);
                match (read, names.contains(&name)) {
                    (Err(error), true) => return Err(error),
                    (Ok(Some(witness)), is_own) if is_own || is_same(&witness.path) => {
                        found.push(witness);
                    }
                    _ => {}
                }
            }
        }
        Ok(found)
    }

    /// The same for an account that opens databases by the instance at `home`, by a broker or by itself.
    ///
    /// # Errors
    /// As [`Keyring::open`] and [`Keyring::witnesses_at`]; those of a broker that does not answer.
    pub fn witnesses_in(
        home: &Path,
        names: &[PathBuf],
        is_same: &dyn Fn(&Path) -> bool,
    ) -> Result<Vec<Witness>> {
        let mut found = match Broker::of(home)? {
            Some(broker) => brokered(&broker, names, is_same)?,
            None => Self::open(home)?.witnesses_at(names, is_same)?,
        };
        // The machine's, where this one is the caller's own.
        if let Some(machine) = instance::behind_surely(home)? {
            if let Some(broker) = Broker::of(&machine)? {
                found.extend(brokered(&broker, names, is_same)?);
            }
        }
        Ok(found)
    }

    fn read_witness_file(&self, directory: &Path, name: &str) -> Result<Option<Witness>> {
        let file = SealedFile::new(directory.join(name), Kind::Witness, name);
        let Some(bytes) = self.read(&file)? else { return Ok(None) };
        let witness = Witness::decode(&bytes).filter(|witness| name_of(&witness.path) == name);
        witness.map(Some).ok_or_else(|| {
            Error::corrupt(Subject::File(file.path().to_owned()), "its fields do not fit")
        })
    }

    /// Remembers how far a chain has come. It is on disk already: a witness is never ahead of what it tells of. Of one fork it never
    /// goes back.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written, or what is wrong with the one that is there.
    pub fn remember_witness(&self, witness: &Witness) -> Result<()> {
        let (_change, now) = self.begin_change()?;
        let whole = original_path(&witness.path);
        let known = now.read_witness(&whole)?.filter(|known| known.fork == witness.fork);
        let next = match known {
            Some(known) if known.archive_sequence > witness.archive_sequence => return Ok(()),
            Some(known) => Witness {
                header_sequence: known.header_sequence.max(witness.header_sequence),
                path: whole.clone(),
                ..witness.clone()
            },
            None => Witness { path: whole.clone(), ..witness.clone() },
        };
        instance::make_directory(&self.home.join("keyring/witnesses"))?;
        witness_file(&self.home, &whole).replace(&now.master_key, &next.encode())
    }

    /// Forgets it: the chain of the database at `path` has ended, or was put back on purpose.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn forget_witness(&self, path: &Path) -> Result<()> {
        let (_change, _) = self.begin_change()?;
        witness_file(&self.home, &original_path(path)).remove()
    }

    fn read_witness(&self, whole: &Path) -> Result<Option<Witness>> {
        let file = witness_file(&self.home, whole);
        let Some(bytes) = self.read(&file)? else { return Ok(None) };
        let witness = Witness::decode(&bytes).filter(|witness| witness.path == whole);
        witness.map(Some).ok_or_else(|| {
            Error::corrupt(Subject::File(file.path().to_owned()), "its fields do not fit")
        })
    }
}

fn witness_file(home: &Path, whole: &Path) -> SealedFile {
    let name = name_of(whole);
    SealedFile::new(home.join("keyring/witnesses").join(&name), Kind::Witness, &name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn witness(archive_sequence: u64) -> Witness {
        Witness {
            path: "/srv/a.db".into(),
            file_id: [1; 16],
            fork: [2; 16],
            header_sequence: 3,
            archive_sequence,
            lsn: Lsn::new(4, 5),
            base: Lsn::new(4, 3),
            last_set: [6; 32],
            at: 7,
        }
    }

    #[test]
    fn it_reads_back_and_nothing_else_is_taken_for_it() {
        let bytes = witness(9).encode();
        assert_eq!(Witness::decode(&bytes), Some(witness(9)));
        assert_eq!(Witness::decode(&bytes[..HEAD_BYTES - 1]), None);
        let mut newer = bytes.clone();
        newer[0] ^= 8;
        assert_eq!(Witness::decode(&newer), None);
        let of_before = Witness { base: Lsn::NONE, ..witness(9) };
        assert_eq!(of_before.encode()[97..HEAD_BYTES], [0; 8]);
    }

    #[test]
    fn it_is_ahead_of_what_knows_less_of_its_fork() {
        let known = witness(9);
        let state = |fork, sequence, backed_up| ArchiveState {
            fork: [fork; 16],
            sequence,
            backed_up,
            highest: 4,
            ..ArchiveState::default()
        };
        let ahead = |fork, archive| known.is_ahead_of(&state(fork, archive, known.lsn));
        assert!(ahead(2, 8) && !ahead(2, 9) && !ahead(2, 10) && !ahead(8, 0));
        // An older one that has gone on without a backup, and one that was told of.
        let older = state(2, 20, Lsn::new(4, 4));
        let of_older_epoch = ArchiveState { broken_at: Lsn::new(3, 1), ..older };
        let told = ArchiveState { highest: 5, ..of_older_epoch };
        assert!(known.is_ahead_of(&older) && known.is_ahead_of(&of_older_epoch));
        assert!(!known.is_ahead_of(&told));
        // What a full backup has that no log backup has, and the other way round.
        let full = Witness { base: Lsn::new(4, 9), ..known.clone() };
        let with = |base| ArchiveState { base, ..state(2, 20, known.lsn) };
        assert!(full.is_ahead_of(&with(Lsn::new(4, 3))) && !full.is_ahead_of(&with(full.base)));
        assert!(known.is_ahead_of(&ArchiveState { base: known.lsn, ..older }));
        let behind_a_break = state(2, 20, full.base);
        assert!(!full.is_ahead_of(&behind_a_break));
    }
}

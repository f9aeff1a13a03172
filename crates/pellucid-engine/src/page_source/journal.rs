//! A hot journal: the pages as they were before a transaction that was interrupted.

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pellucid::header::EncryptionState;
use pellucid::journal::{
    check_rest, is_in_clear, open_record, page_number, record_bytes, JournalHeader, MAGIC,
    SECTOR_PART_BYTES, SECTOR_READ_BYTES,
};
use pellucid::keys::ContainerKeys;
use pellucid::sector::SQLITE_MAGIC;
use pellucid::unit::TAIL_BYTES;
use pellucid::{Error, Result, Subject};
use pellucid_vfs::container::Container;
use pellucid_vfs::super_journal;
use pellucid_vfs::super_journal::Named;

const LOOK_BYTES: usize = 64 << 10;

/// Whether the journal at `path`, beside a database in `state`, has pages in clear that nothing plays back: it is a plain
/// database's, of before the encryption, or was ended while encryption was switched off. Once it was ended only its pages say so;
/// page 1 is one of them as a rule.
///
/// Never one that may count: a container's own journal, which begins with its mark, has pages in clear where encryption was
/// switched off when a program was killed, and the next opening plays it back.
///
/// # Errors
/// [`Error::Io`].
pub fn has_dead_pages_in_clear(path: &Path, state: EncryptionState) -> Result<bool> {
    if matches!(state, EncryptionState::Unencrypted | EncryptionState::Decrypting) {
        return Ok(false);
    }
    let failed = |error| Error::io(Subject::File(path.to_owned()), error);
    let file = match pellucid_files::regular::open_named(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    let mut buffer = vec![0; LOOK_BYTES];
    let (mut at, mut kept) = (0, 0);
    loop {
        let read = match file.read_at(&mut buffer[kept..], at) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read.map_err(failed)?,
        };
        let there = &buffer[..kept + read];
        if at == 0 && !is_dead(there) {
            return Ok(false);
        }
        if at == 0 && is_in_clear(there) || memchr::memmem::find(there, SQLITE_MAGIC).is_some() {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        // The magic may lie across two reads.
        let from = there.len().saturating_sub(SQLITE_MAGIC.len() - 1);
        let end = there.len();
        buffer.copy_within(from..end, 0);
        (at, kept) = (at + read as u64, end - from);
    }
}

/// Whether no container's journal begins so that it counts: it was ended, or is a plain database's.
fn is_dead(sector: &[u8]) -> bool {
    let begins = sector.first_chunk::<{ MAGIC.len() }>();
    begins.is_some_and(|begins| *begins == MAGIC || *begins == [0; MAGIC.len()])
}

/// A journal that has to be played back.
#[derive(Debug)]
pub struct HotJournal {
    file: File,
    id: [u8; 16],
    page_bytes: usize,
    pages: u32,
    records: HashMap<u32, u64>,
    damaged: Vec<(u32, String)>,
}

impl HotJournal {
    /// Reads the journal. `None` if there is none, if it was ended, if it is a plain database's, or if its transaction was
    /// committed: it names a super-journal that is gone (SQLite, "Atomic Commit", 5.3).
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Unauthentic`] for a damaged header, because then it is unknown
    /// which pages the transaction has changed.
    pub fn open(path: &Path, container: &Container) -> Result<Option<Self>> {
        let failed = |error| Error::io(Subject::File(path.to_owned()), error);
        let file = match pellucid_files::regular::open_named(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let size = file.metadata().map_err(failed)?.len();
        let mut sector = [0; SECTOR_PART_BYTES];
        if size < sector.len() as u64 {
            return Ok(None);
        }
        file.read_exact_at(&mut sector, 0).map_err(failed)?;
        if sector.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let named = super_journal::look(size, path, |bytes, at| file.read_exact_at(bytes, at));
        if matches!(named.map_err(failed)?, Named::Gone(_)) {
            return Ok(None);
        }
        let keys = container
            .keys()
            .map_err(|_| Error::misuse(Subject::File(path.to_owned()), "there is no key for it"))?;
        let (header, damaged) = match JournalHeader::open(&keys, &sector, 0) {
            // SQLite plays none of it back here.
            Err(_) if is_in_clear(&sector) => return Ok(None),
            opened => opened?,
        };
        let (Some(sector_bytes), Some(page_bytes)) = (header.sector_size(), header.page_size())
        else {
            return Err(Error::corrupt(Subject::JournalHeader(0), "its sizes are impossible"));
        };
        let mut journal = Self {
            file,
            id: header.id,
            page_bytes: page_bytes as usize,
            pages: header.pages_before(),
            records: HashMap::new(),
            damaged: Vec::new(),
        };
        if header.was_whole(damaged) {
            journal.look_at_rest(0);
        }
        journal.follow(&keys, header, u64::from(sector_bytes), size);
        Ok(Some(journal))
    }

    /// Checks the rest of a header's sector. Bytes there are damage, but no record depends on them.
    fn look_at_rest(&mut self, at: u64) {
        let mut sector = [0; SECTOR_READ_BYTES];
        let read = self.file.read_at(&mut sector, at).unwrap_or(0);
        if let Err(error) = check_rest(&sector[..read], at) {
            self.damaged.push((0, error.to_string()));
        }
    }

    /// Reads the segments, each a header and its records.
    fn follow(&mut self, keys: &ContainerKeys, first: JournalHeader, sector: u64, size: u64) {
        let record = record_bytes(self.page_bytes) as u64;
        let (mut header, mut at) = (first, 0u64);
        loop {
            let counted = header.records();
            let room = size.saturating_sub(at + sector) / record;
            for index in 0..counted.map_or(room, |counted| room.min(counted.into())) {
                let offset = at + sector + index * record;
                match self.record(keys, offset) {
                    Ok((page, _)) => {
                        self.records.entry(page).or_insert(offset);
                    }
                    Err(found) if counted.is_some() => self.damaged.push(found),
                    // A journal without a count of records ends with the first record that is not
                    // whole.
                    Err(_) => return,
                }
            }
            let Some(counted) = counted else { return };
            at = (at + sector + u64::from(counted) * record).next_multiple_of(sector);
            let mut bytes = [0; SECTOR_PART_BYTES];
            if self.file.read_exact_at(&mut bytes, at).is_err() {
                return;
            }
            match JournalHeader::open(keys, &bytes, at) {
                Ok((next, damaged)) if next.id == self.id => {
                    if next.was_whole(damaged) {
                        self.look_at_rest(at);
                    }
                    header = next;
                }
                _ => return,
            }
        }
    }

    /// Reads the page and record at `offset`. The error is the page number that it states and the
    /// cause.
    fn record(
        &self,
        keys: &ContainerKeys,
        offset: u64,
    ) -> std::result::Result<(u32, Vec<u8>), (u32, String)> {
        let mut sealed = vec![0; record_bytes(self.page_bytes)];
        let mut record = sealed.clone();
        if let Err(error) = self.file.read_exact_at(&mut sealed, offset) {
            return Err((0, format!("journal record at byte {offset}: {error}")));
        }
        let page = page_number(&sealed);
        match open_record(keys, &self.id, offset, &sealed, &mut record) {
            Ok(()) => Ok((page, record)),
            Err(error) => Err((page, error.to_string())),
        }
    }

    /// Returns the page as it was before the transaction. `None` if the transaction did not change
    /// it.
    pub fn page(
        &self,
        container: &Container,
        number: u32,
    ) -> Option<std::result::Result<Vec<u8>, String>> {
        if let Some((_, cause)) = self.damaged.iter().find(|(page, _)| *page == number) {
            return Some(Err(format!("page {number}: {cause}")));
        }
        let offset = self.records.get(&number)?;
        let keys = container.keys().ok()?;
        Some(match self.record(&keys, *offset) {
            Ok((_, record)) => Ok(record[4..4 + self.page_bytes - TAIL_BYTES].to_vec()),
            Err((_, cause)) => Err(format!("page {number}: {cause}")),
        })
    }

    /// The number of pages of the database before the transaction.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// The highest page number in the journal.
    pub fn last(&self) -> u32 {
        self.records.keys().copied().max().unwrap_or(0)
    }

    /// The number of records that open.
    pub fn records(&self) -> usize {
        self.records.len()
    }

    /// Remarks about damaged parts of the journal.
    pub fn remarks(&self) -> impl Iterator<Item = String> + '_ {
        self.damaged.iter().map(|(_, cause)| format!("{cause}: what it was before is lost"))
    }
}

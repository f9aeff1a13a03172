//! The sealed rollback journal: SQLite's layout and size, header sectors marked, records sealed.
//!
//! Layout: docs/format.md, "Rollback journal".

use crate::error::{Error, Result, Subject};
use crate::keys::ContainerKeys;
use crate::nonce::NonceSource;
use crate::unit::{FileKind, Place, TAIL_BYTES};

/// Bytes of SQLite's journal header that have information (SQLite file format, 3).
pub const FIELDS_BYTES: usize = 28;
/// The first 8 bytes of a journal header, and of the end of a super-journal record.
pub const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// Bytes at the start of a header sector that the shim reads and writes.
pub const SECTOR_PART_BYTES: usize = COPY_OFFSETS[1] + COPY_BYTES;

/// The mark at the start of a header sector. Its byte 0 is zero, which SQLite reads as "not hot"
/// (`hasHotJournal`).
const MARK: &[u8; 8] = b"\0PELJRNL";
/// Bytes of the smallest sector. Every header offset is a multiple of it.
pub const SECTOR_LEAST: u64 = 512;
/// Bytes of the largest sector to which SQLite pads a header (`MAX_SECTOR_SIZE` of its pager.c).
pub const SECTOR_MOST: u64 = 65536;

/// Bytes of a header sector that are checked when it is read, with those behind the second copy
/// that have to be zero.
pub const SECTOR_READ_BYTES: usize = SECTOR_LEAST as usize;

const COPY_OFFSETS: [usize; 2] = [32, 256];
/// The ranges of a header sector that are neither mark nor copy.
const ZEROS: [std::ops::Range<usize>; 3] = [
    MARK.len()..COPY_OFFSETS[0],
    COPY_OFFSETS[0] + COPY_BYTES..COPY_OFFSETS[1],
    SECTOR_PART_BYTES..SECTOR_READ_BYTES,
];
const ID_BYTES: usize = 16;
const COPY_BYTES: usize = ID_BYTES + FIELDS_BYTES + TAIL_BYTES;
/// Page numbers for the two copies of a header. No page has them: the last page is 2^32 - 2.
const COPY_PAGES: [u32; 2] = [0, u32::MAX];

/// A header as SQLite sees it, and the journal it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalHeader {
    /// Random identity, new with each header written at offset 0.
    pub id: [u8; 16],
    /// SQLite's 28 bytes.
    pub fields: [u8; FIELDS_BYTES],
}

impl JournalHeader {
    /// The sector size in bytes that the header states. `None` if it is not a possible one.
    pub fn sector_size(&self) -> Option<u32> {
        Some(self.word(20)).filter(|n| n.is_power_of_two() && (32..=65536).contains(n))
    }

    /// The page size in bytes. `None` if it is not a possible one.
    pub fn page_size(&self) -> Option<u32> {
        Some(self.word(24)).filter(|n| n.is_power_of_two() && (512..=65536).contains(n))
    }

    /// Whether SQLite syncs this journal. Without syncs (`synchronous=OFF`) SQLite does not count
    /// records and uses the length of the file instead.
    pub fn is_synced(&self) -> bool {
        self.word(8) != u32::MAX
    }

    /// The number of records behind the header. `None` if the length of the file says it.
    pub fn records(&self) -> Option<u32> {
        Some(self.word(8)).filter(|_| self.is_synced())
    }

    /// Whether the header's sector was once written completely, so that [`check_rest`] can be used.
    /// `damaged` is the second value of [`JournalHeader::open`].
    ///
    /// A header first counts no records. If that write fails in the middle, or a power cut tears
    /// it, its beginning lies over the old content. SQLite counts records only after that write was
    /// synced.
    pub fn was_whole(&self, damaged: bool) -> bool {
        !damaged && self.records() != Some(0)
    }

    /// The number of pages of the database before the transaction.
    pub fn pages_before(&self) -> u32 {
        self.word(16)
    }

    fn word(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.fields[at..at + 4]);
        u32::from_be_bytes(word)
    }

    /// Seals the first [`SECTOR_PART_BYTES`] of the header sector at `offset`: two copies, so that
    /// one damaged byte loses nothing.
    ///
    /// # Errors
    /// [`Error::Io`] if no nonce can be drawn.
    pub fn seal(
        &self,
        keys: &ContainerKeys,
        nonces: &mut dyn NonceSource,
        offset: u64,
    ) -> Result<[u8; SECTOR_PART_BYTES]> {
        let mut sector = [0; SECTOR_PART_BYTES];
        sector[..8].copy_from_slice(MARK);
        for (at, page) in COPY_OFFSETS.into_iter().zip(COPY_PAGES) {
            let place = Place::journal(keys.file_id(), &self.id, offset, page);
            let copy = &mut sector[at..at + COPY_BYTES];
            copy[..ID_BYTES].copy_from_slice(&self.id);
            keys.seal(FileKind::Journal, &place, nonces, &self.fields, &mut copy[ID_BYTES..])?;
        }
        Ok(sector)
    }

    /// Opens a header sector. The second value says whether one of its copies is damaged.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if no copy authenticates.
    pub fn open(keys: &ContainerKeys, sector: &[u8], offset: u64) -> Result<(Self, bool)> {
        let copies = COPY_OFFSETS.into_iter().zip(COPY_PAGES);
        let mut found = copies.map(|(at, page)| open_copy(keys, sector, offset, at, page));
        let (first, second) = (found.next().flatten(), found.next().flatten());
        match (first, second) {
            (Some(header), Some(other)) => {
                let damaged = header != other;
                Ok((header, damaged))
            }
            (Some(header), None) | (None, Some(header)) => Ok((header, true)),
            (None, None) => Err(Error::unauthentic(
                Subject::JournalHeader(offset),
                "authentication tag does not match",
            )),
        }
    }
}

/// Whether a header sector is one of a plain database's journal: with SQLite's magic, or before its first sync with zeros in its
/// place. A sealed one begins with a mark, and an ended one is zeros.
pub fn is_in_clear(sector: &[u8]) -> bool {
    let mut header = JournalHeader { id: [0; 16], fields: [0; FIELDS_BYTES] };
    let Some(fields) = sector.get(..FIELDS_BYTES) else { return false };
    header.fields.copy_from_slice(fields);
    let begins = fields.starts_with(&MAGIC) || fields[..MAGIC.len()].iter().all(|byte| *byte == 0);
    begins && header.sector_size().is_some() && header.page_size().is_some()
}

/// Checks that a header sector has zeros outside its mark and its copies.
///
/// Nothing authenticates those bytes. So the caller checks them only when the header has opened,
/// belongs to this journal and [`JournalHeader::was_whole`]; before, they may be of an earlier use
/// of the file.
///
/// # Errors
/// [`Error::Corrupt`], which names the byte: damage, or a newer version. SQLite gets an error then,
/// because not to play such a journal back would leave half a transaction in the database.
pub fn check_rest(sector: &[u8], offset: u64) -> Result<()> {
    let used =
        ZEROS.into_iter().flatten().find(|at| sector.get(*at).is_some_and(|byte| *byte != 0));
    match used {
        None => Ok(()),
        Some(at) => Err(Error::corrupt(
            Subject::JournalHeader(offset),
            format!(
                "byte {at} of its sector is not zero: it is damaged, or a newer version of \
                 pellucid wrote it"
            ),
        )),
    }
}

/// Reads the generations of the copies in a header sector, without a key. 0 for a missing copy.
pub fn header_generations(sector: &[u8]) -> [u32; 2] {
    COPY_OFFSETS.map(|at| {
        let copy = sector.get(at..at + COPY_BYTES);
        copy.and_then(crate::unit::generation).unwrap_or_default()
    })
}

fn open_copy(
    keys: &ContainerKeys,
    sector: &[u8],
    offset: u64,
    at: usize,
    page: u32,
) -> Option<JournalHeader> {
    let copy = sector.get(at..at + COPY_BYTES)?;
    let mut header = JournalHeader { id: [0; 16], fields: [0; FIELDS_BYTES] };
    header.id.copy_from_slice(&copy[..ID_BYTES]);
    let place = Place::journal(keys.file_id(), &header.id, offset, page);
    let unit = &copy[ID_BYTES..];
    keys.open(FileKind::Journal, &place, unit, &mut header.fields, || {
        Subject::JournalHeader(offset)
    })
    .ok()?;
    Some(header)
}

/// Bytes of a record: page number 4, page, checksum 4.
pub const fn record_bytes(page_size: usize) -> usize {
    4 + page_size + 4
}

/// Seals a record as SQLite wrote it, `[page number 4][page][checksum 4]`, into `sealed` of the same
/// length: `[page number 4][content and checksum, sealed][tail]`.
///
/// # Errors
/// [`Error::Io`] if no nonce can be drawn.
pub fn seal_record(
    keys: &ContainerKeys,
    nonces: &mut dyn NonceSource,
    journal_id: &[u8; 16],
    offset: u64,
    record: &mut [u8],
    sealed: &mut [u8],
) -> Result<()> {
    let page = page_number(record);
    let place = Place::journal(keys.file_id(), journal_id, offset, page);
    sealed[..4].copy_from_slice(&record[..4]);
    // The tail of the page is zero; the checksum moves into its place, next to the content.
    let content_end = record.len() - 4 - TAIL_BYTES;
    record.copy_within(record.len() - 4.., content_end);
    let plaintext = &record[4..content_end + 4];
    keys.seal(FileKind::Journal, &place, nonces, plaintext, &mut sealed[4..])
}

/// Opens a record from disk into `record` of the same length, as SQLite wrote it.
///
/// # Errors
/// [`Error::Unauthentic`], which names page and offset; `record` is zeroed behind its page number
/// then.
pub fn open_record(
    keys: &ContainerKeys,
    journal_id: &[u8; 16],
    offset: u64,
    sealed: &[u8],
    record: &mut [u8],
) -> Result<()> {
    let page = page_number(sealed);
    let place = Place::journal(keys.file_id(), journal_id, offset, page);
    let length = record.len();
    let content_end = length - 4 - TAIL_BYTES;
    record[..4].copy_from_slice(&sealed[..4]);
    record[content_end + 4..].fill(0);
    keys.open(FileKind::Journal, &place, &sealed[4..], &mut record[4..content_end + 4], || {
        Subject::JournalRecord { page, offset }
    })?;
    record.copy_within(content_end..content_end + 4, length - 4);
    record[content_end..length - 4].fill(0);
    Ok(())
}

/// Reads the page number at the start of a record.
pub fn page_number(record: &[u8]) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&record[..4]);
    u32::from_be_bytes(number)
}

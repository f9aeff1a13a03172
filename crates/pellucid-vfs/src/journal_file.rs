//! The rollback journal of a sealed database: header sectors are marked, each record is one sealed
//! unit.
//!
//! SQLite writes a record in three pieces and parts of headers alone. The shim gathers a record
//! before it seals it, and holds sealed records until a later call could make them needed. The
//! trailing super-journal record stays as SQLite writes it. Layout: docs/format.md, "Rollback
//! journal".

use std::ffi::c_int;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use pellucid::journal::{
    check_rest, open_record, page_number, record_bytes, seal_record, JournalHeader, FIELDS_BYTES,
    SECTOR_LEAST, SECTOR_PART_BYTES, SECTOR_READ_BYTES,
};
use pellucid::sqlite::lock_page;
use pellucid::unit::TAIL_BYTES;
use pellucid::{Error, Subject};

use pellucid_host::code::{Code, Outcome};
use pellucid_host::ffi;
use pellucid_host::folder::Folder;

use crate::container::Container;
use crate::held::Held;
use crate::lower::{Lower, ReadEnd};
use crate::pool::WearKind;
use crate::super_journal;
use crate::super_journal::{Named, END_BYTES};

/// The range of written records before the first one.
const NOTHING: Range<u64> = 0..0;

/// The sealed side of a rollback journal.
#[derive(Debug)]
pub struct JournalFile {
    container: Rc<Container>,
    lower: Lower,
    /// The headers that were written here or read, with their offsets, in ascending order.
    headers: Vec<(u64, JournalHeader)>,
    /// The identity of the header at offset 0; later headers and all records carry it.
    id: Option<[u8; 16]>,
    sector_bytes: u64,
    page_bytes: usize,
    /// The record that SQLite is writing piece by piece: its offset and the bytes that have come.
    gathering: Option<(u64, usize)>,
    record: Vec<u8>,
    /// The offset from which on SQLite writes the super-journal record, in clear.
    clear_from: Option<u64>,
    /// A checked super-journal record (the name and what follows it) and the offset where it ends.
    /// SQLite gets these very bytes, because those in the file may change after the check.
    super_journal: Option<(Vec<u8>, u64)>,
    held: Held,
    unit: Vec<u8>,
    /// The record opened last; `opened_at` is its offset.
    opened: Vec<u8>,
    opened_at: Option<u64>,
    /// The range of the records that this handle wrote. A record in it that does not open is an
    /// error. Records behind it may be of an earlier use of the file: a rollback in PERSIST mode
    /// reads on until a record does not match.
    written: Range<u64>,
    /// Whether the last write of the held records failed.
    failed: bool,
    /// The path of a journal that was found at open. `None` if this handle made the journal, or
    /// once its name is on disk.
    found: Option<PathBuf>,
    /// The tail of the journal's first record, if this handle wrote it.
    first_tail: Option<[u8; TAIL_BYTES]>,
    /// Whether zeros were written over the first header, which ends the journal.
    ended: bool,
}

impl JournalFile {
    /// Whether the journal was there when it was opened: an interrupted transaction's, which is played back.
    pub fn is_found(&self) -> bool {
        self.found.is_some()
    }

    /// Makes the sealed side of the journal that `lower` opened. `found` is its path, if this
    /// handle did not make it.
    pub fn new(container: Rc<Container>, lower: Lower, found: Option<PathBuf>) -> Self {
        Self {
            container,
            lower,
            headers: Vec::new(),
            id: None,
            sector_bytes: 0,
            page_bytes: 0,
            gathering: None,
            record: Vec::new(),
            clear_from: None,
            super_journal: None,
            held: Held::default(),
            unit: Vec::new(),
            opened: Vec::new(),
            opened_at: None,
            written: NOTHING,
            failed: false,
            found,
            first_tail: None,
            ended: false,
        }
    }

    /// Writes a piece of the journal.
    ///
    /// # Errors
    /// A code.
    pub fn write(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        if self.failed {
            match ends_or_begins(bytes, offset) {
                true => self.give_up_held(),
                false => self.flush()?,
            }
        }
        self.opened_at = None;
        self.super_journal = None;
        if self.clear_from.is_some_and(|from| offset >= from) {
            return self.lower.write(bytes, offset);
        }
        if self.gathering.is_some_and(|(at, filled)| offset == at + filled as u64) {
            return self.gather(bytes);
        }
        self.gathering = None;
        if self.is_record_start(bytes, offset) {
            return self.begin_record(bytes, offset);
        }
        self.flush()?;
        if offset % SECTOR_LEAST == 0 {
            return self.write_header(bytes, offset);
        }
        if self.headers.iter().any(|(at, _)| offset > *at && offset < at + self.sector_bytes) {
            // The rest of a header sector repeats the header (`writeJournalHdr`) and has no
            // information.
            return self.lower.write(&vec![0; bytes.len()], offset);
        }
        self.container
            .note(ffi::IOERR_WRITE, &format!("journal write of unknown shape at {offset}"));
        Err(Code(ffi::IOERR_WRITE))
    }

    /// Whether a write begins a record: 4 bytes right behind a header sector or another record.
    fn is_record_start(&self, bytes: &[u8], offset: u64) -> bool {
        bytes.len() == 4
            && self.segment(offset).is_some_and(|(at, _)| {
                let behind = offset.checked_sub(at + self.sector_bytes);
                let records = |b: u64| b % record_bytes(self.page_bytes) as u64 == 0;
                behind.is_some_and(|b| records(b) || offset % SECTOR_LEAST == 0)
            })
    }

    fn is_lock_page(&self, bytes: &[u8]) -> bool {
        self.page_bytes != 0 && page_number(bytes) == lock_page(self.page_bytes)
    }

    fn begin_record(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        self.record.resize(record_bytes(self.page_bytes), 0);
        self.record[..4].copy_from_slice(bytes);
        if self.is_lock_page(bytes) {
            // The lock page has no record: its number begins the super-journal record.
            return self.begin_clear(offset);
        }
        self.gathering = Some((offset, 4));
        Ok(())
    }

    /// Writes the page number that begins the super-journal record. It and all bytes behind it are
    /// in clear.
    fn begin_clear(&mut self, offset: u64) -> Outcome<()> {
        if let Some(over) = self.container.over() {
            let instead = "write to one of them at a time, or use the journal mode WAL";
            let error = over.refuse("a transaction over several databases", instead);
            self.container.report(&error);
            return Err(Code(ffi::IOERR_WRITE));
        }
        self.flush()?;
        self.clear_from = Some(offset);
        self.lower.write(&self.record[..4], offset)
    }

    fn gather(&mut self, bytes: &[u8]) -> Outcome<()> {
        let Some((at, filled)) = self.gathering else { return Err(Code(ffi::IOERR_WRITE)) };
        if filled == 4 && bytes.len() != self.page_bytes {
            // This is no page but a super-journal's name, under an SQLite whose lock page was moved
            // (SQLITE_TESTCTRL_PENDING_BYTE).
            self.gathering = None;
            self.begin_clear(at)?;
            return self.lower.write(bytes, at + 4);
        }
        let end = filled + bytes.len();
        let Some(place) = self.record.get_mut(filled..end) else {
            return Err(Code(ffi::IOERR_WRITE));
        };
        place.copy_from_slice(bytes);
        if end < self.record.len() {
            self.gathering = Some((at, end));
            return Ok(());
        }
        self.gathering = None;
        self.emit(at)
    }

    fn emit(&mut self, offset: u64) -> Outcome<()> {
        let length = self.record.len();
        let tail = length - 4 - TAIL_BYTES..length - 4;
        if self.record[tail].iter().any(|byte| *byte != 0) {
            self.container.note(ffi::PERM, "journal record: the reserved bytes of its page are in use; a plain database cannot be copied page by page into a sealed one");
            return Err(Code(ffi::PERM));
        }
        let id = self.id.ok_or(Code(ffi::IOERR_WRITE))?;
        if !self.held.takes(offset, length) {
            self.flush()?;
        }
        let (record, sealed) = (&mut self.record, self.held.add(offset, length));
        let outcome = self.container.seal_with(WearKind::Log, |keys, nonces| {
            seal_record(keys, nonces, &id, offset, record, sealed)
        });
        if let Err(code) = outcome {
            self.held.take_back(length);
            return Err(code);
        }
        if offset == self.sector_bytes {
            self.first_tail = sealed.last_chunk().copied();
        }
        let before = if self.written.is_empty() { offset..offset } else { self.written.clone() };
        self.written = before.start.min(offset)..before.end.max(offset + length as u64);
        Ok(())
    }

    /// Writes to a header sector: a whole header, its record count alone (12 bytes), or zeros that
    /// end the journal.
    fn write_header(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        let zeros = bytes.iter().all(|byte| *byte == 0);
        if zeros && bytes.len() <= FIELDS_BYTES {
            self.headers.retain(|(at, _)| *at != offset);
            self.ended |= offset == 0;
            return self.lower.write(&[0; SECTOR_PART_BYTES], offset);
        }
        let known = self.headers.iter().position(|(at, _)| *at == offset);
        if bytes.len() < FIELDS_BYTES {
            let Some(known) = known else { return Err(Code(ffi::IOERR_WRITE)) };
            self.headers[known].1.fields[..bytes.len()].copy_from_slice(bytes);
            return self.seal_header(known, SECTOR_PART_BYTES);
        }
        if known.is_none() && self.inside_header_sector(offset) {
            return self.lower.write(&vec![0; bytes.len()], offset);
        }
        let mut header = JournalHeader { id: [0; 16], fields: [0; FIELDS_BYTES] };
        header.fields.copy_from_slice(&bytes[..FIELDS_BYTES]);
        let sizes = (header.sector_size(), header.page_size());
        let (Some(sector_bytes), Some(page_bytes)) = sizes else {
            return Err(Code(ffi::IOERR_WRITE));
        };
        if u64::from(sector_bytes) < SECTOR_LEAST {
            self.container.note(ffi::IOERR_WRITE, "journal sectors below 512 bytes have no room");
            return Err(Code(ffi::IOERR_WRITE));
        }
        self.sector_bytes = u64::from(sector_bytes);
        self.page_bytes = page_bytes as usize;
        if offset == 0 {
            if header.is_synced() {
                self.settle_end()?;
            }
            let mut id = [0; 16];
            pellucid::secret::fill_random(&mut id)
                .map_err(|error| self.container.report(&error))?;
            self.id = Some(id);
            self.headers.clear();
            self.clear_from = None;
            self.written = NOTHING;
            self.first_tail = None;
            self.ended = false;
        }
        header.id = self.id.ok_or(Code(ffi::IOERR_WRITE))?;
        self.headers.retain(|(at, _)| *at < offset);
        self.headers.push((offset, header));
        self.seal_header(self.headers.len() - 1, bytes.len().max(SECTOR_PART_BYTES))
    }

    /// Forces the end of an ended journal (`journal_mode=PERSIST`) to disk before its records are
    /// overwritten.
    ///
    /// The process that ended the journal may have been killed before its sync. A power cut would
    /// then bring the old header back over a part of the old records, and undo a part of a commit,
    /// as with plain SQLite.
    ///
    /// If the first record's tail is the one that this connection ended and synced, no sync is
    /// needed.
    fn settle_end(&self) -> Outcome<()> {
        let settled = self.container.transaction.take_journal_end();
        let end = self.sector_bytes + record_bytes(self.page_bytes) as u64;
        if self.lower.size()? < end {
            return Ok(());
        }
        let mut tail = [0; TAIL_BYTES];
        self.lower.read(&mut tail, end - TAIL_BYTES as u64)?;
        if settled == Some(tail) {
            return Ok(());
        }
        self.lower.sync(ffi::SYNC_NORMAL)
    }

    fn inside_header_sector(&self, offset: u64) -> bool {
        self.headers.iter().any(|(at, _)| offset > *at && offset < at + self.sector_bytes)
    }

    fn seal_header(&mut self, known: usize, length: usize) -> Outcome<()> {
        let (offset, header) = &self.headers[known];
        let part = self
            .container
            .seal_with(WearKind::Log, |keys, nonces| header.seal(keys, nonces, *offset))?;
        let mut sector = vec![0; length];
        sector[..SECTOR_PART_BYTES].copy_from_slice(&part);
        self.lower.write(&sector, *offset)
    }

    /// Writes the held records. They stay held until they are written, and each call tries again: a
    /// connection that keeps its lock rolls back by this very journal once the file can be written.
    ///
    /// # Errors
    /// The lower VFS's code.
    pub fn flush(&mut self) -> Outcome<()> {
        if !self.held.is_empty() {
            let written = self.held.write(self.lower);
            self.failed = written.is_err();
            written?;
            self.held.clear();
        }
        Ok(())
    }

    /// Drops the held records, because their transaction is over.
    fn give_up_held(&mut self) {
        self.held.clear();
        self.gathering = None;
        self.failed = false;
    }

    /// Writes the held records, unless a write of them failed. After that a rollback reads them
    /// from memory: SQLite has changed those pages in its cache and has no other copy to restore.
    fn flush_unless_failed(&mut self) -> Outcome<()> {
        match self.failed {
            true => Ok(()),
            false => self.flush(),
        }
    }

    /// Reads a piece of the journal, as SQLite wrote it.
    ///
    /// # Errors
    /// `SQLITE_IOERR_DATA` if a record that this handle wrote does not authenticate. A record found
    /// at recovery comes out as page 0 instead, which ends the playback there, as a torn record
    /// does.
    pub fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        self.flush_unless_failed()?;
        if let Some(end) = self.read_clear(buffer, offset)? {
            return Ok(end);
        }
        if let Some(end) = self.read_record_part(buffer, offset)? {
            return Ok(end);
        }
        self.read_header_part(buffer, offset)
    }

    /// Reads from the super-journal record at the end, if there is a checked one. Gives zeros where
    /// SQLite looks for one that is not there.
    fn read_clear(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<Option<ReadEnd>> {
        let size = self.lower.size()?;
        let end_at = size.checked_sub(END_BYTES as u64).filter(|at| *at >= SECTOR_LEAST);
        let behind = self.clear_from.is_some_and(|from| offset >= from);
        let Some(end_at) = end_at else {
            return match behind {
                true => self.lower.read(buffer, offset).map(Some),
                false => Ok(None),
            };
        };
        if offset == end_at && (behind || self.headers.is_empty()) {
            // SQLite reads this part of the record first.
            self.super_journal = self.look_for_super_journal(size)?;
        }
        if let Some((record, _)) = self.super_journal.as_ref().filter(|(_, end)| *end == size) {
            let within =
                offset.checked_sub(size - record.len() as u64).map(|within| within as usize);
            let there = within.and_then(|within| record.get(within..within + buffer.len()));
            if let Some(there) = there {
                buffer.copy_from_slice(there);
                return Ok(Some(ReadEnd::Full));
            }
        } else if offset >= end_at && buffer.len() <= 8 && (behind || self.headers.is_empty()) {
            buffer.fill(0);
            return Ok(Some(ReadEnd::Full));
        }
        match behind {
            true => self.lower.read(buffer, offset).map(Some),
            false => Ok(None),
        }
    }

    fn look_for_super_journal(&self, size: u64) -> Outcome<Option<(Vec<u8>, u64)>> {
        let over = self.container.over();
        // None is written there (`begin_clear`), but one may have been by another way to the same file.
        let named = over.and_then(|over| over.name_at(self.container.path()));
        let path = named.as_deref().unwrap_or(self.container.path());
        let mut journal = path.as_os_str().to_owned();
        journal.push("-journal");
        let mut failed = None;
        let found = super_journal::look(size, Path::new(&journal), |bytes, at| {
            let read = self.lower.read(bytes, at).map(|_| ());
            read.map_err(|code| {
                failed = Some(code);
                std::io::ErrorKind::Other.into()
            })
        });
        match (found, failed) {
            (_, Some(code)) => Err(code),
            (Ok(Named::Nothing), _) => Ok(None),
            (Ok(Named::Gone(_) | Named::There(_)), _) if over.is_some() => {
                let line = "its journal is of a transaction over several databases, and whether that was committed cannot be told \
                            over a VFS that was named: open it once as a file of its machine";
                self.container.note(ffi::IOERR, line);
                Err(Code(ffi::IOERR))
            }
            (Ok(Named::Gone(record) | Named::There(record)), _) => Ok(Some((record, size))),
            (Ok(Named::Another(what)), _) => {
                let line =
                    format!("{what}; the journal is played back, and nothing else is touched");
                self.container.note(ffi::OK, &line);
                Ok(None)
            }
            (Err(error), _) => {
                let line = format!(
                    "whether the super-journal that its journal names is there, and so whether that transaction is \
                     committed, cannot be told: {error}; let this account look there"
                );
                self.container.note(ffi::IOERR, &line);
                Err(Code(ffi::IOERR))
            }
        }
    }

    fn segment(&self, offset: u64) -> Option<(u64, &JournalHeader)> {
        self.headers.iter().rev().find(|(at, _)| *at <= offset).map(|(at, header)| (*at, header))
    }

    /// Reads a piece of a record, if `offset` lies in one.
    fn read_record_part(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<Option<ReadEnd>> {
        let Some((segment, header)) = self.segment(offset) else { return Ok(None) };
        let Some(behind) = offset.checked_sub(segment + self.sector_bytes) else {
            return Ok(None);
        };
        let id = header.id;
        let length = record_bytes(self.page_bytes);
        let within = (behind % length as u64) as usize;
        let at = offset - within as u64;
        // No piece of a record is 8 bytes long: SQLite looks for another header here.
        let probes_header = offset % SECTOR_LEAST == 0 && buffer.len() == 8;
        if probes_header || within + buffer.len() > length {
            return Ok(None);
        }
        if self.opened_at != Some(at) {
            if self.read_unit(at, length)? == ReadEnd::Short {
                return self.logical_size().map(|size| {
                    // A part of a record is there: SQLite gets the short read that it expects.
                    buffer.fill(0);
                    Some(if size >= offset + buffer.len() as u64 {
                        ReadEnd::Full
                    } else {
                        ReadEnd::Short
                    })
                });
            }
            self.open_at(at, &id)?;
        }
        buffer.copy_from_slice(&self.opened[within..within + buffer.len()]);
        Ok(Some(ReadEnd::Full))
    }

    /// Reads a record as it lies on disk, or out of the held ones that could not be written.
    fn read_unit(&mut self, at: u64, length: usize) -> Outcome<ReadEnd> {
        self.unit.resize(length, 0);
        if let Some(held) = self.held.unit(at, length) {
            self.unit.copy_from_slice(held);
            return Ok(ReadEnd::Full);
        }
        self.lower.read(&mut self.unit, at)
    }

    fn open_at(&mut self, at: u64, id: &[u8; 16]) -> Outcome<()> {
        let keys = self.container.keys()?;
        self.opened.resize(self.unit.len(), 0);
        if let Err(error) = open_record(&keys, id, at, &self.unit, &mut self.opened) {
            if self.written.contains(&at) {
                return Err(self.container.report(&error));
            }
            // Behind its own records a handle always finds those of an earlier transaction, so only
            // a recovery logs it.
            if self.written.is_empty() {
                let line = format!("{error}; playback of the journal ends before it");
                self.container.note(ffi::OK, &line);
            }
            // Page number 0 ends the playback (`pager_playback_one_page`), as a wrong checksum
            // would.
            self.opened.fill(0);
        }
        self.opened_at = Some(at);
        Ok(())
    }

    /// Reads a piece of a header sector, or looks for a header at `offset`.
    fn read_header_part(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        let at = offset - offset % SECTOR_LEAST;
        let within = (offset - at) as usize;
        let size = self.lower.size()?;
        let short = size < offset + buffer.len() as u64;
        buffer.fill(0);
        let known = self.headers.iter().any(|(known, _)| *known == at);
        if !short && (known || self.probe(at, size)?) {
            let found = self.headers.iter().find(|(known, _)| *known == at);
            if let Some((_, header)) = found {
                let fields = header.fields.get(within..).unwrap_or_default();
                let there = fields.len().min(buffer.len());
                buffer[..there].copy_from_slice(&fields[..there]);
            }
        }
        Ok(if short { ReadEnd::Short } else { ReadEnd::Full })
    }

    /// Looks for a header at `at`. A header of an earlier use of the file has another identity and
    /// does not count.
    fn probe(&mut self, at: u64, size: u64) -> Outcome<bool> {
        if size < at + SECTOR_PART_BYTES as u64 {
            return Ok(false);
        }
        let mut sector = [0; SECTOR_READ_BYTES];
        self.lower.read(&mut sector, at)?;
        if sector[..SECTOR_PART_BYTES].iter().all(|byte| *byte == 0) {
            return Ok(false);
        }
        let keys = self.container.keys()?;
        let (header, damaged) = match JournalHeader::open(&keys, &sector, at) {
            Ok(found) => found,
            Err(error) if at == 0 => {
                self.container.note(ffi::OK, &format!("{error}; the journal counts as ended"));
                return Ok(false);
            }
            Err(_) => return Ok(false),
        };
        if at != 0 && self.id != Some(header.id) {
            return Ok(false);
        }
        if header.was_whole(damaged) {
            check_rest(&sector, at).map_err(|error| self.container.report(&error))?;
        }
        if damaged {
            self.container
                .note(ffi::OK, "a copy of the journal header is damaged; using the other");
        }
        let sizes = (header.sector_size(), header.page_size());
        if let (Some(sector_bytes), Some(page_bytes)) = sizes {
            self.sector_bytes = u64::from(sector_bytes);
            self.page_bytes = page_bytes as usize;
        }
        if at == 0 {
            self.id = Some(header.id);
            self.headers.clear();
        }
        let place = self.headers.partition_point(|(known, _)| *known < at);
        self.headers.insert(place, (at, header));
        Ok(true)
    }

    /// The size of the journal in bytes.
    ///
    /// # Errors
    /// A code.
    pub fn size(&mut self) -> Outcome<u64> {
        self.flush_unless_failed()?;
        self.logical_size()
    }

    /// The size of the journal in bytes, with the records that could not be written.
    fn logical_size(&self) -> Outcome<u64> {
        let held_to = match self.held.is_empty() {
            true => 0,
            false => self.held.end(),
        };
        Ok(self.lower.size()?.max(held_to))
    }

    /// Cuts the journal to `size` bytes.
    ///
    /// # Errors
    /// A code.
    pub fn truncate(&mut self, size: u64) -> Outcome<()> {
        self.gathering = None;
        self.opened_at = None;
        self.super_journal = None;
        if size == 0 {
            self.give_up_held();
        }
        self.flush_unless_failed()?;
        self.headers.retain(|(at, _)| *at < size);
        if self.clear_from.is_some_and(|from| from >= size) {
            self.clear_from = None;
        }
        self.lower.truncate(size)
    }

    /// Writes the held records and forces the journal to disk.
    ///
    /// # Errors
    /// A code.
    pub fn sync(&mut self, flags: c_int) -> Outcome<()> {
        self.flush()?;
        self.lower.sync(flags)?;
        if self.ended {
            self.container.transaction.journal_ended(self.first_tail);
        }
        self.sync_name()
    }

    /// Forces the name of a journal that was found at open to disk.
    ///
    /// SQLite syncs a hot journal before it plays it back, but not its directory, and the process
    /// that made the journal may have been killed before it did so. A playback of plain pages
    /// writes the bytes that were there before. A page that is sealed again has other bytes, and if
    /// a power cut tears it, only this journal can restore it.
    fn sync_name(&mut self) -> Outcome<()> {
        let Some(path) = self.found.take() else { return Ok(()) };
        // A directory that cannot be opened is no error, as in SQLite (`openDirectory`).
        let Ok(directory) = Folder::of(&path) else { return Ok(()) };
        directory.sync().map_err(|error| {
            let error = Error::io(Subject::File(path.clone()), error);
            self.found = Some(path);
            self.container.report(&error)
        })
    }
}

/// Whether a write ends the journal (zeros over its first header) or begins it again (a whole
/// header at 0).
fn ends_or_begins(bytes: &[u8], offset: u64) -> bool {
    let ends = bytes.len() <= FIELDS_BYTES && bytes.iter().all(|byte| *byte == 0);
    offset == 0 && (ends || bytes.len() >= FIELDS_BYTES)
}

//! The database file: pages shifted by the header region, each sealed.
//!
//! SQLite sees logical offsets; a page lies 16 KiB further on disk. Any range may be read: every page
//! it touches is opened whole and the part copied. Layout: docs/format.md, "Database page".

mod page_size;

use std::ffi::c_int;
use std::rc::Rc;

use pellucid::header::REGION_BYTES;
use pellucid::sqlite::lock_page;
use pellucid::unit::{FileKind, Place, TAIL_BYTES};
use pellucid::{Error, Subject};
use pellucid_host::code::{Code, Outcome};
use pellucid_host::ffi;

use crate::link::Link;
use crate::lower::{Lower, ReadEnd};
use crate::overlay::Overlay;
use crate::pool::WearKind;
use crate::read_ahead::ReadAhead;

/// SQLite's own view of page 1 that is read at each transaction: change counter and version.
const RESERVED_AT: usize = 20;

/// In WAL mode page 1 may be read while a checkpoint writes it; SQLite asks for 16 bytes, the shim
/// needs the whole page, so it looks again before it calls the page damaged.
const FIRST_PAGE_ATTEMPTS: usize = 16;

/// The sealed side of a database file.
#[derive(Debug)]
pub struct Database {
    link: Rc<Link>,
    lower: Lower,
    /// Bytes on disk, while a lock is held under which only this connection changes them.
    size: Option<u64>,
    /// One page as it lies on disk.
    unit: Vec<u8>,
    /// One page as SQLite sees it, for reads of a part.
    page: Vec<u8>,
    first: FirstPage,
    /// Dropped whenever a lock changes; of what is written, that page.
    ahead: ReadAhead,
    mapped: Mapped,
    overlay: Option<Overlay>,
}

/// Reads by way of the lower VFS's mapping, which saves a system call for each page.
#[derive(Debug, Default)]
struct Mapped {
    /// Reads that the mapping did not reach; so many and it is made anew.
    missed: u32,
    wanted: Option<bool>,
    /// How long the file was when it was last looked at.
    reach: u64,
    /// It was looked at under the present locks.
    looked: bool,
}

/// After so many reads beyond its end the mapping is made anew, as long as the file then is.
const MISSES_BEFORE_REMAP: u32 = 256;
/// As much as SQLite ever maps (SQLITE_MAX_MMAP_SIZE).
const MOST_MAPPED: i64 = 0x7fff_0000;

impl Mapped {
    /// Asked for with the first sealed page: a plain file is left as SQLite has it.
    fn begin(&mut self, lower: Lower) -> bool {
        let wanted = lower.version() >= 3;
        if wanted {
            lower.allow_mapping(MOST_MAPPED);
        }
        self.wanted = Some(wanted);
        wanted
    }

    /// Drops the mapping of a file that another program cut: what is mapped behind its end is a SIGBUS, and the platform's
    /// VFS reads by its mapping as well. Once under the same locks, which keep SQLite from cutting it.
    fn look(&mut self, lower: Lower) -> Outcome<()> {
        if self.wanted != Some(true) || self.looked {
            return Ok(());
        }
        let size = lower.size()?;
        if size < self.reach {
            lower.drop_mapping();
        }
        self.reach = size;
        self.looked = true;
        Ok(())
    }

    fn read(&mut self, lower: Lower, unit: &mut [u8], offset: u64) -> Outcome<bool> {
        if !self.wanted.unwrap_or_else(|| self.begin(lower)) {
            return Ok(false);
        }
        self.look(lower)?;
        if lower.read_mapped(unit, offset) {
            return Ok(true);
        }
        self.missed += 1;
        if self.missed == MISSES_BEFORE_REMAP {
            self.missed = 0;
            lower.drop_mapping();
        }
        Ok(false)
    }
}

/// Page 1, kept opened and keyed by its tail on disk: SQLite asks for 16 bytes of it at the start of
/// each read transaction.
#[derive(Debug, Default)]
struct FirstPage {
    tail: [u8; TAIL_BYTES],
    page: Vec<u8>,
}

impl Database {
    /// The sealed side of the file behind `lower`, which is mapped only if it may be.
    pub fn new(link: Rc<Link>, lower: Lower, may_map: bool) -> Self {
        Self {
            link,
            lower,
            size: None,
            unit: Vec::new(),
            page: Vec::new(),
            first: FirstPage::default(),
            ahead: ReadAhead::default(),
            mapped: Mapped { wanted: (!may_map).then_some(false), ..Mapped::default() },
            overlay: None,
        }
    }

    /// Reads `buffer` at the logical `offset`.
    ///
    /// # Errors
    /// `SQLITE_IOERR_DATA` for a page that does not authenticate, or the lower VFS's code.
    pub fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        if let Some(overlay) = self.overlay.take() {
            let read = self.read_overlaid(&overlay, buffer, offset);
            self.overlay = Some(overlay);
            return read;
        }
        self.read_base(buffer, offset)
    }

    fn read_overlaid(
        &mut self,
        overlay: &Overlay,
        buffer: &mut [u8],
        offset: u64,
    ) -> Outcome<ReadEnd> {
        let size = overlay.size();
        if offset >= size {
            buffer.fill(0);
            return Ok(ReadEnd::Short);
        }
        let (inside, behind) = buffer.split_at_mut(buffer.len().min((size - offset) as usize));
        behind.fill(0);
        overlay.read(inside, offset, |part, at| self.read_base(part, at).map(|_| ()))?;
        Ok(if behind.is_empty() { ReadEnd::Full } else { ReadEnd::Short })
    }

    fn read_base(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        let Some(page_bytes) = self.link.page_size() else {
            buffer.fill(0);
            return Ok(ReadEnd::Short);
        };
        self.fit(page_bytes);
        if buffer.len() == page_bytes && offset % page_bytes as u64 == 0 {
            return self.read_page((offset / page_bytes as u64) as u32 + 1, buffer);
        }
        if offset < page_bytes as u64 && offset as usize + buffer.len() <= 100 {
            return self.read_header_part(buffer, offset as usize);
        }
        self.read_parts(buffer, offset, page_bytes)
    }

    fn fit(&mut self, page_bytes: usize) {
        if self.unit.len() != page_bytes {
            self.unit.resize(page_bytes, 0);
            self.page.resize(page_bytes, 0);
            self.first.page.clear();
            self.ahead = ReadAhead::default();
        }
    }

    /// Reads a whole page into `page`, its tail zero.
    fn read_page(&mut self, number: u32, page: &mut [u8]) -> Outcome<ReadEnd> {
        let page_bytes = page.len();
        let content = page_bytes - TAIL_BYTES;
        self.mapped.look(self.lower)?;
        if self.ahead.unit(number.into()).is_none() {
            let pages = self.ahead.wants(number.into(), page_bytes);
            self.fill_ahead(number, pages, page_bytes)?;
        }
        if let Some(unit) = self.ahead.unit(number.into()) {
            page[content..].fill(0);
            self.open_unit(number, unit, &mut page[..content])?;
            self.ahead.took(number.into());
            return Ok(ReadEnd::Full);
        }
        let start = disk_offset(number, page_bytes);
        let there = start + page_bytes as u64 <= self.size_to_read()?;
        if !there {
            // Another connection may have cut the file since it was mapped. The lower VFS reads out of its
            // mapping too, and behind the end that is zeros, or SIGBUS. SQLite does read there: a page
            // that its transaction added, or page 1 in a page size that is no longer the file's.
            self.lower.drop_mapping();
        }
        if !(there && self.mapped.read(self.lower, &mut self.unit, start)?)
            && self.lower.read(&mut self.unit, start)? == ReadEnd::Short
            && !self.page_is_whole(number, page_bytes)?
        {
            page.fill(0);
            return Ok(ReadEnd::Short);
        }
        page[content..].fill(0);
        self.open_unit(number, &self.unit, &mut page[..content])?;
        if number == 1 {
            self.first.keep(&self.unit[content..], page);
        }
        Ok(ReadEnd::Full)
    }

    /// Opens a unit just read. Another process may have moved on to a generation we have not seen
    /// yet; then the header is read again first.
    fn open_unit(&self, number: u32, unit: &[u8], content: &mut [u8]) -> Outcome<()> {
        if number == lock_page(unit.len()) && unit.iter().all(|byte| *byte == 0) {
            content.fill(0);
            return Ok(());
        }
        let named = pellucid::unit::generation(unit).unwrap_or(0);
        if self.link.is_newer(named) {
            self.link.refresh()?;
        }
        self.link.open_page(number, unit, content)
    }

    /// After a short read: whether the page is there after all. Part of a page is damage.
    fn page_is_whole(&mut self, number: u32, page_bytes: usize) -> Outcome<bool> {
        let size = self.lower.size()?;
        let start = disk_offset(number, page_bytes);
        if size <= start {
            return Ok(false);
        }
        if size < start + page_bytes as u64 {
            return Err(self.link.report(&truncated(number, size - start, page_bytes)));
        }
        Ok(true)
    }

    /// Reads up to `most` pages ahead, from page `number` on; not if it is one.
    ///
    /// Never where the lower VFS may read out of its mapping. SQLite asks for no page behind the end of its transaction's
    /// state, and those stay; what lies behind that end another process's checkpoint may cut off at any moment, and
    /// then a read by the mapping is a SIGBUS.
    fn fill_ahead(&mut self, number: u32, most: usize, page_bytes: usize) -> Outcome<()> {
        let start = disk_offset(number, page_bytes);
        let mapped = self.mapped.wanted == Some(true) && start < MOST_MAPPED as u64;
        if most < 2 || mapped {
            return Ok(());
        }
        let there = self.disk_size()?.saturating_sub(start) / page_bytes as u64;
        let pages = most.min(usize::try_from(there).unwrap_or(most));
        if pages >= 2 {
            let lower = self.lower;
            let read = |units: &mut [u8]| Ok(lower.read(units, start)? == ReadEnd::Full);
            // The error of a page behind it is none of this one, which is then read alone.
            let _ = self.ahead.fill(number.into(), pages, page_bytes, read);
        }
        Ok(())
    }

    /// SQLite's reads of its file header: at open, before any lock (100 bytes at 0), and at each
    /// transaction (16 bytes at 24).
    fn read_header_part(&mut self, buffer: &mut [u8], offset: usize) -> Outcome<ReadEnd> {
        let page_bytes = self.unit.len();
        let content = page_bytes - TAIL_BYTES;
        let mut tail = [0; TAIL_BYTES];
        if !self.first.page.is_empty() {
            self.lower.read(&mut tail, disk_offset(1, page_bytes) + content as u64)?;
        }
        if self.first.page.is_empty() || tail != self.first.tail {
            let mut page = std::mem::take(&mut self.page);
            let read = self.read_first_page(&mut page);
            let end =
                read.inspect(|_| buffer.copy_from_slice(&page[offset..offset + buffer.len()]));
            self.page = page;
            return end;
        }
        buffer.copy_from_slice(&self.first.page[offset..offset + buffer.len()]);
        Ok(ReadEnd::Full)
    }

    fn read_first_page(&mut self, page: &mut [u8]) -> Outcome<ReadEnd> {
        let page_bytes = page.len();
        let unlocked = self.link.lock_level.get() == ffi::LOCK_NONE;
        let start = disk_offset(1, page_bytes);
        let content = page_bytes - TAIL_BYTES;
        page[content..].fill(0);
        for _ in 0..FIRST_PAGE_ATTEMPTS {
            if self.lower.read(&mut self.unit, start)? == ReadEnd::Short {
                // Without a lock part of a page may be what a hot journal is about to take back.
                if unlocked && self.lower.size()? > start {
                    continue;
                }
                return self.read_page(1, page);
            }
            if self.link.try_open_page(1, &self.unit, &mut page[..content]).is_ok() {
                self.first.keep(&self.unit[content..], page);
                return Ok(ReadEnd::Full);
            }
            std::thread::yield_now();
        }
        if !unlocked {
            return self.read_page(1, page);
        }
        // Without a lock the page may be half written, by a live writer or by one that was killed
        // and left a hot journal. SQLite reads it again under its lock; until then it gets a header
        // that says no more than the container's own.
        page.fill(0);
        page[..16].copy_from_slice(pellucid::sector::SQLITE_MAGIC);
        let size = if page_bytes == 65536 { 1 } else { page_bytes as u16 };
        page[16..18].copy_from_slice(&size.to_be_bytes());
        page[18..24].copy_from_slice(&[1, 1, TAIL_BYTES as u8, 64, 32, 32]);
        Ok(ReadEnd::Full)
    }

    fn read_parts(
        &mut self,
        buffer: &mut [u8],
        offset: u64,
        page_bytes: usize,
    ) -> Outcome<ReadEnd> {
        let mut end = ReadEnd::Full;
        let mut done = 0;
        let mut page = std::mem::take(&mut self.page);
        let mut read = || {
            while done < buffer.len() {
                let at = offset + done as u64;
                let within = (at % page_bytes as u64) as usize;
                let part = (page_bytes - within).min(buffer.len() - done);
                if self.read_page((at / page_bytes as u64) as u32 + 1, &mut page)? == ReadEnd::Short
                {
                    end = ReadEnd::Short;
                }
                buffer[done..done + part].copy_from_slice(&page[within..within + part]);
                done += part;
            }
            Ok(())
        };
        let outcome = read();
        self.page = page;
        outcome.map(|()| end)
    }

    /// Writes `bytes` at the logical `offset`: whole pages, or what a change of the page size brings.
    ///
    /// # Errors
    /// A code; a page that cannot be sealed is refused, never written plain.
    pub fn write(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        self.link.flush_journal()?;
        self.link.check_checkpoint(bytes, offset)?;
        self.prepare(bytes, offset)?;
        let page_bytes = self.link.page_size().ok_or(Code(ffi::IOERR_WRITE))?;
        self.fit(page_bytes);
        if self.overlay.is_none() && !self.fits_pages(bytes, offset, page_bytes)? {
            self.begin_overlay()?;
        }
        if let Some(overlay) = &mut self.overlay {
            self.ahead.drop_units();
            return overlay.write(bytes, offset);
        }
        let number = (offset / page_bytes as u64) as u32 + 1;
        self.fill_gap(number, page_bytes)?;
        self.write_page(number, bytes)
    }

    /// Birth, and a new page size while no page exists.
    fn prepare(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        let possible = bytes.len().is_power_of_two() && (512..=65536).contains(&bytes.len());
        let aligned = possible && offset % bytes.len() as u64 == 0;
        if self.link.is_unborn() {
            if !aligned {
                return Err(self.link.report(&Error::misuse(
                    Subject::Container,
                    "the first write of a new database is not a page",
                )));
            }
            self.size = None;
            return self.link.give_birth(bytes.len() as u32);
        }
        if self.link.lock_level.get() == ffi::LOCK_EXCLUSIVE {
            self.link.mend_header()?;
        }
        let another = self.link.page_size().is_some_and(|size| size != bytes.len());
        if another && aligned && self.overlay.is_none() && self.disk_size()? <= REGION_BYTES {
            let size = bytes.len() as u32;
            self.link.change_header(|header| header.page_size = size)?;
        }
        Ok(())
    }

    /// Whether the write is one sealable page. Page 1 must carry the reserve; a database that has
    /// none is refused, because SQLite would go on writing pages that have no room for a tail.
    fn fits_pages(&self, bytes: &[u8], offset: u64, page_bytes: usize) -> Outcome<bool> {
        if offset == 0 && bytes.len() > RESERVED_AT {
            let plain = bytes[..16] == pellucid::sector::SQLITE_MAGIC[..];
            if plain && bytes[RESERVED_AT] as usize != TAIL_BYTES {
                return Err(self.link.report(&Error::misuse(
                    Subject::Page(1),
                    format!(
                        "reserves {} bytes a page and not {TAIL_BYTES}: a plain database cannot be \
                         copied page by page into a sealed one; use `VACUUM INTO` or `pellucid \
                         encrypt`",
                        bytes[RESERVED_AT]
                    ),
                )));
            }
            if plain && stated_page_size(bytes) != page_bytes {
                return Ok(false);
            }
        }
        let whole = bytes.len() == page_bytes && offset % page_bytes as u64 == 0;
        Ok(whole && bytes[page_bytes - TAIL_BYTES..].iter().all(|byte| *byte == 0))
    }

    fn write_page(&mut self, number: u32, page: &[u8]) -> Outcome<()> {
        let content = page.len() - TAIL_BYTES;
        let unit = &mut self.unit;
        self.link.seal_with(WearKind::Pages, |keys, nonces| {
            let place = Place::page(keys.file_id(), number);
            keys.seal(FileKind::Database, &place, nonces, &page[..content], unit)
        })?;
        let start = disk_offset(number, page.len());
        self.ahead.changed(number.into(), u64::from(number) + 1);
        self.lower.write(&self.unit, start)?;
        if number == 1 {
            self.first.keep(&self.unit[content..], page);
        }
        if let Some(size) = &mut self.size {
            *size = (*size).max(start + page.len() as u64);
        }
        Ok(())
    }

    /// Sealed zero pages from the end of the file up to page `number`, so that every page that can be
    /// read was written by somebody who has the key. SQLite leaves such gaps (`sqlite3PagerDontWrite`).
    fn fill_gap(&mut self, number: u32, page_bytes: usize) -> Outcome<()> {
        let size = self.disk_size()?.saturating_sub(REGION_BYTES);
        let mut next = (size / page_bytes as u64) as u32 + 1;
        let lock_page = lock_page(page_bytes);
        if next >= number {
            return Ok(());
        }
        let zeros = vec![0; page_bytes];
        while next < number {
            if next != lock_page {
                self.write_page(next, &zeros)?;
            }
            next += 1;
        }
        Ok(())
    }

    /// Bytes on disk up to which pages can be there. A checkpoint by another connection may cut the file
    /// in the middle of this one's transaction, behind every page but those that the transaction added.
    fn size_to_read(&mut self) -> Outcome<u64> {
        if self.link.writes_wal() {
            self.size = None;
        }
        self.disk_size()
    }

    fn disk_size(&mut self) -> Outcome<u64> {
        if let Some(size) = self.size {
            return Ok(size);
        }
        let size = self.lower.size()?;
        self.size = Some(size);
        Ok(size)
    }

    /// Logical bytes of the file.
    ///
    /// # Errors
    /// The lower VFS's code.
    pub fn logical_size(&mut self) -> Outcome<u64> {
        match &self.overlay {
            Some(overlay) => Ok(overlay.size()),
            None => {
                let size = self.lower.size()?;
                self.size = Some(size);
                Ok(size.saturating_sub(REGION_BYTES))
            }
        }
    }

    /// Cuts or extends the file to `size` logical bytes.
    ///
    /// # Errors
    /// A code.
    pub fn truncate(&mut self, size: u64) -> Outcome<()> {
        self.link.flush()?;
        self.ahead.drop_units();
        self.first.page.clear();
        if self.link.is_unborn() {
            return Ok(());
        }
        let page_bytes = self.link.page_size().ok_or(Code(ffi::IOERR))?;
        if self.overlay.is_none() && size % page_bytes as u64 != 0 {
            self.begin_overlay()?;
        }
        if let Some(overlay) = &mut self.overlay {
            return overlay.truncate(size);
        }
        self.fit(page_bytes);
        let present = self.disk_size()?;
        if size + REGION_BYTES > present {
            return self.fill_gap((size / page_bytes as u64) as u32 + 1, page_bytes);
        }
        self.size = None;
        self.lower.truncate(size + REGION_BYTES)
    }

    /// Settles what is open and forces the file to disk.
    ///
    /// # Errors
    /// A code.
    pub fn sync(&mut self, flags: c_int) -> Outcome<()> {
        self.settle()?;
        self.lower.sync(flags)
    }

    /// A lock was taken or given back: what was read ahead and the size known may be stale.
    pub fn forget(&mut self) {
        self.size = None;
        self.ahead.drop_units();
        self.mapped.looked = false;
    }

    /// Looks at the header again, because a lock was taken; by way of the mapping where there is one.
    ///
    /// # Errors
    /// The lower VFS's code, and as [`Link::refresh`].
    pub fn refresh(&mut self) -> Outcome<()> {
        self.mapped.look(self.lower)?;
        let (lower, reach) = (self.lower, self.mapped.reach);
        let inside = |bytes: &[u8], at| self.mapped.looked && at + bytes.len() as u64 <= reach;
        self.link.refresh_mapped(|bytes, at| inside(bytes, at) && lower.read_mapped(bytes, at))
    }
}

impl FirstPage {
    fn keep(&mut self, tail: &[u8], page: &[u8]) {
        self.tail.copy_from_slice(tail);
        self.page.clear();
        self.page.extend_from_slice(page);
    }
}

/// The file ends inside the page.
pub fn truncated(number: u32, there: u64, page_bytes: usize) -> Error {
    Error::corrupt(
        Subject::Page(number),
        format!("truncated: {there} of its {page_bytes} bytes are there"),
    )
}

fn disk_offset(number: u32, page_bytes: usize) -> u64 {
    REGION_BYTES + u64::from(number - 1) * page_bytes as u64
}

/// The page size in SQLite's file header (SQLite file format, 1.3.2).
fn stated_page_size(page: &[u8]) -> usize {
    match u16::from_be_bytes([page[16], page[17]]) {
        1 => 65536,
        size => usize::from(size).max(512),
    }
}

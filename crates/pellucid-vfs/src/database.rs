//! The database file: the pages lie behind the header region, each one sealed.
//!
//! SQLite sees logical offsets; a page lies 16 KiB further on disk. Any range may be read: every
//! page that it touches is opened whole and the part copied. Layout: docs/format.md, "Database
//! page".

mod joined;
mod page_size;

use std::ffi::c_int;
use std::rc::Rc;
use std::time::{Duration, Instant};

use pellucid::header::REGION_BYTES;
use pellucid::sqlite::lock_page;
use pellucid::unit::{FileKind, Place, TAIL_BYTES};
use pellucid::{Error, Subject};
use pellucid_host::code::{Code, Outcome};
use pellucid_host::ffi;

use crate::container::Container;
use crate::files::Files;
use crate::lower::{Lower, ReadEnd};
use crate::newcomer;
use crate::newcomer::{RESERVED, RESERVED_AT};
use crate::overlay::Overlay;
use crate::pool::WearKind;
use crate::read_ahead::ReadAhead;
use joined::Joined;

/// Reads of page 1 before it counts as damaged. In WAL mode a checkpoint may write page 1 while it
/// is read; SQLite asks for 16 bytes of it, and the shim needs the whole page.
const FIRST_PAGE_ATTEMPTS: usize = 16;

/// The sealed side of a database file.
#[derive(Debug)]
pub struct Database {
    files: Rc<Files>,
    container: Rc<Container>,
    lower: Lower,
    /// The file's size on disk, if it was looked at and the locks answer for it since.
    size: Option<Size>,
    /// One page as it lies on disk.
    unit: Vec<u8>,
    /// One page as SQLite sees it, for reads of a part.
    page: Vec<u8>,
    first: FirstPage,
    /// Pages read ahead. Cleared when a lock changes. Writing a page removes that page.
    ahead: ReadAhead,
    mapped: Mapped,
    overlay: Option<Overlay>,
    joined: Joined,
}

/// The file's size as it was looked at.
#[derive(Debug, Clone, Copy)]
struct Size {
    bytes: u64,
    looked: Instant,
    /// Whether no read mark was taken or given back since.
    fresh: bool,
}

/// How long a look at the size serves the transactions of a reader of the log.
///
/// SQLite cuts the file at no page that a read mark protects, so no look is needed because of it.
/// Another program that cuts the file keeps no locks, and against that no look helps for sure, not
/// even one in each transaction.
const SIZE_SERVES: Duration = Duration::from_millis(1);

/// Reads through the lower VFS's mapping of the file, which saves a system call for each page.
#[derive(Debug, Default)]
struct Mapped {
    /// Reads that the mapping did not reach. After [`MISSES_BEFORE_REMAP`] of them the mapping is
    /// made again.
    missed: u32,
    /// Whether pages are read by the mapping. `None` until the first sealed page is read.
    wanted: Option<bool>,
    /// The file's size in bytes when it was looked at last.
    reach: u64,
}

/// Reads beyond the end of the mapping after which it is made again, in the length that the file
/// then has.
const MISSES_BEFORE_REMAP: u32 = 256;
/// The most bytes that SQLite ever maps (SQLITE_MAX_MMAP_SIZE).
const MOST_MAPPED: i64 = 0x7fff_0000;

impl Mapped {
    /// Asks the lower VFS for a mapping. Called at the first read of a sealed page, so that a plain
    /// file's mapping stays as SQLite set it.
    fn begin(&mut self, lower: Lower) -> bool {
        let wanted = lower.version() >= 3;
        if wanted {
            lower.allow_mapping(MOST_MAPPED);
        }
        self.wanted = Some(wanted);
        wanted
    }

    /// Drops the mapping if another program cut the file to `size`. An access behind the file's end
    /// is a SIGBUS, and the lower VFS reads by its mapping as well.
    fn saw(&mut self, lower: Lower, size: u64) {
        if self.wanted == Some(true) && size < self.reach {
            lower.drop_mapping();
        }
        self.reach = size;
    }

    /// Copies from the mapping what lies within the file's size.
    fn read(&mut self, lower: Lower, unit: &mut [u8], offset: u64) -> bool {
        if !self.wanted.unwrap_or_else(|| self.begin(lower)) {
            return false;
        }
        if lower.read_mapped(unit, offset) {
            return true;
        }
        self.missed += 1;
        if self.missed == MISSES_BEFORE_REMAP {
            self.missed = 0;
            lower.drop_mapping();
        }
        false
    }
}

/// Page 1, kept opened, with its tail on disk as the key. SQLite asks for 16 bytes of it at the
/// start of each read transaction.
#[derive(Debug, Default)]
struct FirstPage {
    tail: [u8; TAIL_BYTES],
    page: Vec<u8>,
}

impl Database {
    /// Makes the sealed side of the file that `lower` opened. It is mapped only if `may_map`.
    pub fn new(files: Rc<Files>, lower: Lower, may_map: bool) -> Self {
        Self {
            container: files.container.clone(),
            files,
            lower,
            size: None,
            unit: Vec::new(),
            page: Vec::new(),
            first: FirstPage::default(),
            ahead: ReadAhead::default(),
            mapped: Mapped { wanted: (!may_map).then_some(false), ..Mapped::default() },
            overlay: None,
            joined: Joined::default(),
        }
    }

    /// Reads `buffer` at the logical `offset`.
    ///
    /// # Errors
    /// `SQLITE_IOERR_DATA` for a page that does not authenticate, or the lower VFS's code.
    pub fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        if let Some(read) = self.read_joined(buffer, offset) {
            return read;
        }
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
        let Some(page_bytes) = self.container.page_size() else {
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

    /// Reads a whole page into `page`; its last 32 bytes, the tail's place, become zero.
    fn read_page(&mut self, number: u32, page: &mut [u8]) -> Outcome<ReadEnd> {
        let page_bytes = page.len();
        let content = page_bytes - TAIL_BYTES;
        self.look()?;
        if self.ahead.unit(number.into()).is_none() {
            let pages = self.ahead.wants(number.into(), page_bytes);
            self.fill_ahead(number, pages, page_bytes)?;
        }
        if let Some(unit) = self.ahead.unit(number.into()) {
            page[content..].fill(0);
            self.know_generation(unit)?;
            match is_blank_lock_page(number, unit) {
                true => page.fill(0),
                false => self.container.open_page(number, unit, &mut page[..content])?,
            }
            self.ahead.took(number.into());
            return Ok(ReadEnd::Full);
        }
        let read = self.read_alone(number, page);
        if read != Ok(ReadEnd::Full) {
            page.fill(0);
        }
        read
    }

    /// Reads a page that was not read ahead. It is copied once, into `page`, where nobody else can
    /// change it any more, and opened there.
    fn read_alone(&mut self, number: u32, page: &mut [u8]) -> Outcome<ReadEnd> {
        let page_bytes = page.len();
        let start = disk_offset(number, page_bytes);
        let end = start + page_bytes as u64;
        let mut there = end <= self.size_to_read(end, page_bytes)?;
        if !there {
            // A checkpoint may have lengthened the file since it was looked at.
            self.size = None;
            there = end <= self.disk_size()?;
        }
        if !there {
            // Another connection may have cut the file since it was mapped. The lower VFS reads by
            // its mapping too, and behind the file's end such a read gives zeros or a SIGBUS.
            // SQLite does read there: a page that its transaction added, or page 1 in a page size
            // that is no longer the file's.
            self.lower.drop_mapping();
        }
        if !(there && self.mapped.read(self.lower, page, start))
            && self.lower.read(page, start)? == ReadEnd::Short
            && !self.page_is_whole(number, page_bytes)?
        {
            return Ok(ReadEnd::Short);
        }
        if is_blank_lock_page(number, page) {
            return Ok(ReadEnd::Full);
        }
        self.know_generation(page)?;
        let mut tail = [0; TAIL_BYTES];
        tail.copy_from_slice(&page[page_bytes - TAIL_BYTES..]);
        self.container.open_page_in_place(number, page)?;
        if number == 1 {
            self.first.keep(&tail, page);
        }
        Ok(ReadEnd::Full)
    }

    /// Reads the header again if a unit that was just read is of a newer generation: another process
    /// changed it then.
    fn know_generation(&self, unit: &[u8]) -> Outcome<()> {
        let named = pellucid::unit::generation(unit).unwrap_or(0);
        match self.container.is_newer(named) {
            true => self.container.refresh(),
            false => Ok(()),
        }
    }

    /// Whether the page is in the file after all, after a short read. A part of a page is damage.
    fn page_is_whole(&mut self, number: u32, page_bytes: usize) -> Outcome<bool> {
        let size = self.lower.size()?;
        let start = disk_offset(number, page_bytes);
        if size <= start {
            return Ok(false);
        }
        if size < start + page_bytes as u64 {
            return Err(self.container.report(&truncated(number, size - start, page_bytes)));
        }
        Ok(true)
    }

    /// Reads up to `most` pages ahead, from page `number` on. Does nothing if that is only one
    /// page.
    ///
    /// Never reads ahead where the lower VFS may read by its mapping. SQLite asks for no page
    /// behind the end of its transaction's state, and the pages before that end stay. Another
    /// process's checkpoint may cut off the pages behind it at any moment, and a read of them by
    /// the mapping is then a SIGBUS.
    fn fill_ahead(&mut self, number: u32, most: usize, page_bytes: usize) -> Outcome<()> {
        let start = disk_offset(number, page_bytes);
        let mapped = self.mapped.wanted == Some(true) && start < MOST_MAPPED as u64;
        if most < 2 || mapped {
            return Ok(());
        }
        let there = self.disk_size()?.saturating_sub(start) / page_bytes as u64;
        let pages = most.min(usize::try_from(there).unwrap_or(most));
        // A page that waits is not in the file yet.
        if pages >= 2 && !self.joined.waits(start, pages * page_bytes) {
            let lower = self.lower;
            let read = |units: &mut [u8]| Ok(lower.read(units, start)? == ReadEnd::Full);
            // An error of a later page must not fail this one, which is then read alone.
            let _ = self.ahead.fill(number.into(), pages, page_bytes, read);
        }
        Ok(())
    }

    /// Reads a part of SQLite's file header. SQLite reads 100 bytes at 0 when it opens the file,
    /// before any lock, and 16 bytes at 24 at the start of each transaction.
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
        let unlocked = self.container.transaction.lock_level() == ffi::LOCK_NONE;
        let start = disk_offset(1, page_bytes);
        let content = page_bytes - TAIL_BYTES;
        page[content..].fill(0);
        for _ in 0..FIRST_PAGE_ATTEMPTS {
            if self.lower.read(&mut self.unit, start)? == ReadEnd::Short {
                // Without a lock a partial page may be one that a hot journal is about to restore.
                if unlocked && self.lower.size()? > start {
                    continue;
                }
                return self.read_page(1, page);
            }
            if self.container.try_open_page(1, &self.unit, &mut page[..content]).is_ok() {
                self.first.keep(&self.unit[content..], page);
                return Ok(ReadEnd::Full);
            }
            std::thread::yield_now();
        }
        if !unlocked {
            return self.read_page(1, page);
        }
        // Without a lock the page may be half written, by a live writer or by a killed one that
        // left a hot journal. SQLite reads it again under its lock. Until then it gets a header
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

    /// Writes `bytes` at the logical `offset`: one whole page, or a piece of a file whose page size
    /// changes.
    ///
    /// # Errors
    /// A code; a page that cannot be sealed is refused, and never written in clear.
    pub fn write(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        self.files.flush_journal()?;
        self.files.check_checkpoint(bytes, offset)?;
        let written = self.write_sealed(bytes, offset);
        self.told(written)
    }

    fn write_sealed(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        self.prepare(bytes, offset)?;
        let page_bytes = self.container.page_size().ok_or(Code(ffi::IOERR_WRITE))?;
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

    /// Prepares the header for a write: makes the container at the first one, mends a damaged
    /// header copy under EXCLUSIVE, and changes the page size while the file has no page.
    fn prepare(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        let possible = bytes.len().is_power_of_two() && (512..=65536).contains(&bytes.len());
        let aligned = possible && offset % bytes.len() as u64 == 0;
        if self.container.is_unborn() {
            if !aligned {
                return Err(self.container.report(&Error::misuse(
                    Subject::Container,
                    "the first write of a new database is not a page",
                )));
            }
            if offset == 0 {
                self.check_reserve(bytes)?;
            }
            self.size = None;
            self.begin_new();
            return self.container.give_birth(bytes.len() as u32);
        }
        if self.container.transaction.lock_level() == ffi::LOCK_EXCLUSIVE {
            self.container.mend_header()?;
        }
        let another = self.container.page_size().is_some_and(|size| size != bytes.len());
        if another && aligned && self.overlay.is_none() && self.disk_size()? <= REGION_BYTES {
            let size = bytes.len() as u32;
            self.container.change_header(|header| header.page_size = size)?;
        }
        Ok(())
    }

    /// Whether the write is one page that can be sealed. Refuses a page 1 without the reserved
    /// bytes.
    fn fits_pages(&self, bytes: &[u8], offset: u64, page_bytes: usize) -> Outcome<bool> {
        if offset == 0 && self.check_reserve(bytes)? && stated_page_size(bytes) != page_bytes {
            return Ok(false);
        }
        let whole = bytes.len() == page_bytes && offset % page_bytes as u64 == 0;
        Ok(whole && bytes[page_bytes - TAIL_BYTES..].iter().all(|byte| *byte == 0))
    }

    /// Whether `bytes`, written at 0, begin as page 1 does. Refuses a page 1 without the reserved
    /// bytes, because SQLite would then write pages that have no room for a tail.
    fn check_reserve(&self, bytes: &[u8]) -> Outcome<bool> {
        if bytes.len() <= RESERVED_AT || bytes[..16] != pellucid::sector::SQLITE_MAGIC[..] {
            return Ok(false);
        }
        match bytes[RESERVED_AT] {
            RESERVED => Ok(true),
            reserved => Err(self.container.report(&self.unreserved(reserved))),
        }
    }

    /// Makes the error for a database without room for tails that is copied over this one.
    fn unreserved(&self, reserved: u8) -> Error {
        if self.container.is_copy() {
            return newcomer::unreserved(reserved);
        }
        Error::misuse(
            Subject::Page(1),
            format!(
                "reserves {reserved} bytes a page and not {TAIL_BYTES}: a plain database cannot be copied page by page \
                 into a sealed one; use `VACUUM INTO` or `pellucid encrypt`"
            ),
        )
    }

    /// Seals one page and writes it.
    fn write_page(&mut self, number: u32, page: &[u8]) -> Outcome<()> {
        let content = page.len() - TAIL_BYTES;
        let start = disk_offset(number, page.len());
        let seal = |container: &Container, unit: &mut [u8]| {
            container.seal_with(WearKind::Pages, |keys, nonces| {
                let place = Place::page(keys.file_id(), number);
                keys.seal(FileKind::Database, &place, nonces, &page[..content], unit)
            })
        };
        self.ahead.changed(number.into(), u64::from(number) + 1);
        let mut tail = [0; TAIL_BYTES];
        if self.joins() {
            tail = self.seal_joined(number, start, page.len(), seal)?;
        } else {
            self.hand_over()?;
            seal(&self.container, &mut self.unit)?;
            self.lower.write(&self.unit, start)?;
            tail.copy_from_slice(&self.unit[content..]);
        }
        if number == 1 {
            self.first.keep(&tail, page);
        }
        if let Some(size) = &mut self.size {
            size.bytes = size.bytes.max(start + page.len() as u64);
        }
        Ok(())
    }

    /// Writes sealed zero pages from the end of the file up to page `number`, so that every page in
    /// the file was written under the key. SQLite leaves such gaps (`sqlite3PagerDontWrite`).
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

    /// The size on disk in bytes up to which a page that ends at `end` can be read. In a write
    /// transaction of a WAL it is looked at again for pages that this transaction added: another
    /// connection's checkpoint may cut the file behind the pages that the index counts, which nobody
    /// else changes meanwhile.
    fn size_to_read(&mut self, end: u64, page_bytes: usize) -> Outcome<u64> {
        if self.container.transaction.writes_wal() {
            let counted = u64::from(self.container.index.pages().unwrap_or(0));
            if end > REGION_BYTES + counted * page_bytes as u64 {
                self.size = None;
            }
        }
        self.disk_size()
    }

    fn disk_size(&mut self) -> Outcome<u64> {
        if let Some(size) = &mut self.size {
            size.fresh = size.fresh || size.looked.elapsed() < SIZE_SERVES;
            if size.fresh {
                return Ok(size.bytes);
            }
        }
        let bytes = self.lower.size()?;
        self.mapped.saw(self.lower, bytes);
        let bytes = bytes.max(self.joined.end());
        self.size = Some(Size { bytes, looked: Instant::now(), fresh: true });
        Ok(bytes)
    }

    /// Looks at the file's size if pages are read by the mapping. Once under the same locks is
    /// enough, because they keep SQLite from cutting the file.
    fn look(&mut self) -> Outcome<()> {
        match self.mapped.wanted {
            Some(true) => self.disk_size().map(|_| ()),
            _ => Ok(()),
        }
    }

    /// The size of the file in bytes as SQLite sees it.
    ///
    /// # Errors
    /// The lower VFS's code.
    pub fn logical_size(&mut self) -> Outcome<u64> {
        match &self.overlay {
            Some(overlay) => Ok(overlay.size()),
            None => {
                // Without a log others change the size under EXCLUSIVE alone, so SHARED answers.
                let locked = self.container.transaction.lock_level() >= ffi::LOCK_SHARED;
                if !locked || self.files.with_wal(|_| ()).is_some() {
                    self.size = None;
                }
                Ok(self.disk_size()?.saturating_sub(REGION_BYTES))
            }
        }
    }

    /// Cuts or extends the file to `size` logical bytes.
    ///
    /// # Errors
    /// A code.
    pub fn truncate(&mut self, size: u64) -> Outcome<()> {
        if self.container.page_size().is_some_and(|page_bytes| size % page_bytes as u64 == 0) {
            self.joined.cut(size + REGION_BYTES);
            self.size = None;
        }
        let cut = self.truncate_sealed(size);
        self.told(cut)
    }

    fn truncate_sealed(&mut self, size: u64) -> Outcome<()> {
        self.hand_over()?;
        self.files.flush()?;
        self.ahead.drop_units();
        self.first.page.clear();
        if self.container.is_unborn() {
            return Ok(());
        }
        let page_bytes = self.container.page_size().ok_or(Code(ffi::IOERR))?;
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

    /// Settles a change of the page size and forces the file to disk.
    ///
    /// # Errors
    /// A code.
    pub fn sync(&mut self, flags: c_int) -> Outcome<()> {
        self.settle()?;
        self.lower.sync(flags)
    }

    /// Drops the pages read ahead, because a read mark was taken or given back. What is known of the
    /// size serves on for [`SIZE_SERVES`].
    pub fn next_reader(&mut self) {
        self.ahead.drop_units();
        if let Some(size) = &mut self.size {
            size.fresh = false;
        }
    }

    /// Drops the pages read ahead, because a reader of the log became its writer, or one again.
    pub fn next_writer(&mut self) {
        self.ahead.drop_units();
    }

    /// Drops the pages read ahead and the known size. They may be stale after a lock was taken or
    /// released.
    pub fn forget(&mut self) {
        self.size = None;
        self.ahead.drop_units();
    }

    /// Reads the header again if it changed, because a lock was taken. Compares it by the mapping
    /// if there is one.
    ///
    /// # Errors
    /// The lower VFS's code, and as [`Container::refresh`].
    pub fn refresh(&mut self) -> Outcome<()> {
        self.look()?;
        let (lower, reach) = (self.lower, self.size.map_or(0, |size| size.bytes));
        let mapped = self.mapped.wanted == Some(true);
        let inside = |bytes: &[u8], at| mapped && at + bytes.len() as u64 <= reach;
        self.container.refresh_mapped(|bytes, at| inside(bytes, at) && lower.read_mapped(bytes, at))
    }
}

impl FirstPage {
    fn keep(&mut self, tail: &[u8], page: &[u8]) {
        self.tail.copy_from_slice(tail);
        self.page.clear();
        self.page.extend_from_slice(page);
    }
}

/// Makes the error for a file that ends inside page `number`.
pub fn truncated(number: u32, there: u64, page_bytes: usize) -> Error {
    Error::corrupt(
        Subject::Page(number),
        format!("truncated: {there} of its {page_bytes} bytes are there"),
    )
}

/// Whether `unit` is SQLite's lock page and blank. Nobody writes that page.
fn is_blank_lock_page(number: u32, unit: &[u8]) -> bool {
    number == lock_page(unit.len()) && unit.iter().all(|byte| *byte == 0)
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

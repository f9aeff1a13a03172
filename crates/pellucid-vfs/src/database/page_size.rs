//! A change of the page size: the database is sealed again from what SQLite wrote in pieces of the
//! old page size.
//!
//! Until SQLite's journal is gone, a crash or an error restores the old state from the journal and
//! from the file. `VACUUM` and the backup API journal the pages that they write. With larger pages
//! they do not journal the pages that they cut off, and they cut only after the commit. So the
//! pages behind the new database stay as they are until SQLite cuts them, and a rollback finds them
//! there, under the old page size.

use std::collections::BTreeSet;

use pellucid::header::REGION_BYTES;
use pellucid::sector::SQLITE_MAGIC;
use pellucid::sqlite::lock_page;
use pellucid::unit::TAIL_BYTES;
use pellucid::{Error, Subject};
use pellucid_host::code::{Code, Outcome};
use pellucid_host::ffi;

use super::{disk_offset, stated_page_size, Database, RESERVED_AT};
use crate::overlay::Overlay;

impl Database {
    /// Begins to gather what SQLite writes, because the writes are no pages of the present size.
    pub(super) fn begin_overlay(&mut self) -> Outcome<()> {
        self.hand_over()?;
        let size = self.disk_size()?.saturating_sub(REGION_BYTES);
        let overlay = Overlay::new(size).map_err(|error| self.container.report(&error))?;
        self.overlay = Some(overlay);
        Ok(())
    }

    /// Hands over the pages that wait, before a sync. Seals the gathered database under the page size that its page 1 states, if
    /// a change of the page size is under way.
    ///
    /// A crash in the middle leaves a hot journal with every page that SQLite wrote; its playback
    /// ends in this function too.
    ///
    /// # Errors
    /// A code.
    pub fn settle(&mut self) -> Outcome<()> {
        let settled = self.settle_pages();
        self.told(settled)?;
        self.end_new();
        Ok(())
    }

    fn settle_pages(&mut self) -> Outcome<()> {
        self.hand_over()?;
        let Some(mut overlay) = self.overlay.take() else { return Ok(()) };
        let (page_bytes, size) = self.stated_sizes(&overlay)?;
        // SQLite has cut the file or written behind the new end, so the old pages there are not
        // needed.
        let cut = overlay.size() <= size || overlay.is_written(size..overlay.size());
        overlay.truncate(size)?;
        let pages = (size / page_bytes as u64) as u32;
        let lock_page = lock_page(page_bytes);
        let mut lie_there = BTreeSet::new();
        for number in (1..=pages).filter(|number| *number != lock_page) {
            let start = u64::from(number - 1) * page_bytes as u64;
            let written = overlay.is_written(start..start + page_bytes as u64);
            if !written && self.lies_there(number, page_bytes)? {
                lie_there.insert(number);
            }
        }
        let image = self.complete(overlay, page_bytes, &lie_there)?;
        if self.container.page_size() != Some(page_bytes) {
            self.container.change_header(|header| header.page_size = page_bytes as u32)?;
        }
        self.fit(page_bytes);
        self.forget();
        self.first.page.clear();
        let mut page = vec![0; page_bytes];
        for number in (1..=pages).filter(|n| *n != lock_page && !lie_there.contains(n)) {
            let start = u64::from(number - 1) * page_bytes as u64;
            image.read(&mut page, start, |_, _| Err(Code(ffi::IOERR)))?;
            if page[page_bytes - TAIL_BYTES..].iter().any(|byte| *byte != 0) {
                return Err(self.container.report(&Error::misuse(
                    Subject::Page(number),
                    "its reserved bytes are in use; a plain database cannot be copied page by page into a sealed one",
                )));
            }
            self.write_page(number, &page)?;
        }
        self.hand_over()?;
        match cut {
            true => self.lower.truncate(size + REGION_BYTES),
            false => Ok(()),
        }
    }

    /// The page size and the size in bytes of the new database, as its page 1 states them.
    fn stated_sizes(&mut self, overlay: &Overlay) -> Outcome<(usize, u64)> {
        let size = overlay.size();
        if size == 0 {
            return Ok((self.container.page_size().unwrap_or(4096), 0));
        }
        let mut head = [0; 100];
        self.read_overlaid(overlay, &mut head, 0)?;
        let page_bytes = stated_page_size(&head);
        let refuse =
            |what: String| Err(self.container.report(&Error::corrupt(Subject::Page(1), what)));
        let possible = page_bytes.is_power_of_two() && (512..=65536).contains(&page_bytes);
        if head[..16] != SQLITE_MAGIC[..] || !possible {
            return refuse("a new page size was begun, but page 1 states none".to_owned());
        }
        if head[RESERVED_AT] as usize != TAIL_BYTES {
            return Err(self.container.report(&self.unreserved(head[RESERVED_AT])));
        }
        // If the lock page is the last one, SQLite did not write it in pieces of the old size; the
        // count has it.
        let counted = u64::from(u32::from_be_bytes([head[28], head[29], head[30], head[31]]));
        match counted * page_bytes as u64 {
            0 => Ok((page_bytes, size.next_multiple_of(page_bytes as u64))),
            counted => Ok((page_bytes, counted)),
        }
    }

    /// Whether the file holds page `number` sealed in this page size. It does where it was never
    /// overwritten, when a change to another size is rolled back.
    fn lies_there(&self, number: u32, page_bytes: usize) -> Outcome<bool> {
        let mut unit = vec![0; page_bytes];
        let mut content = vec![0; page_bytes - TAIL_BYTES];
        self.lower.read(&mut unit, disk_offset(number, page_bytes))?;
        Ok(self.container.try_open_page(number, &unit, &mut content).is_ok())
    }

    /// Copies into the overlay every byte that lies in the file alone, except the pages in
    /// `lie_there`, which stay as they are.
    fn complete(
        &mut self,
        mut overlay: Overlay,
        page_bytes: usize,
        lie_there: &BTreeSet<u32>,
    ) -> Outcome<Overlay> {
        let page_bytes = page_bytes as u64;
        for range in overlay.missing() {
            let mut at = range.start;
            while at < range.end {
                let number = at / page_bytes + 1;
                let end = range.end.min(number * page_bytes);
                if !lie_there.contains(&(number as u32)) {
                    let mut bytes = vec![0; (end - at) as usize];
                    self.read_base(&mut bytes, at)?;
                    overlay.write(&bytes, at)?;
                }
                at = end;
            }
        }
        Ok(overlay)
    }
}

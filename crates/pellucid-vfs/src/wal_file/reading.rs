//! Frames as SQLite reads them: opened, and compared with the wal-index by which SQLite found them.

use pellucid::wal::{
    open_frame, page_and_commit, unmark_header, Run, Stamp, WalHeader, FRAME_HEADER_BYTES,
    HEADER_BYTES,
};
use pellucid::{Error, Subject};
use pellucid_host::code::Outcome;
use pellucid_host::ffi;

use super::{is_of_run, salts_of, Salts, Spot, WalFile};
use crate::container::INDEX_CHANGED;
use crate::lower::ReadEnd;

/// The frame opened last.
#[derive(Debug, Default)]
pub struct Opened {
    /// As SQLite sees it.
    pub frame: Vec<u8>,
    /// Its number. Forgotten when a lock changes: another connection may overwrite the frame then.
    pub number: Option<u32>,
    /// Whether SQLite has read it. A checkpoint does so right before it writes the page.
    pub for_sqlite: bool,
}

impl Opened {
    /// Forgets which frame it is.
    pub fn forget(&mut self) {
        self.number = None;
        self.for_sqlite = false;
    }
}

impl WalFile {
    /// Reads a piece of the log, as SQLite wrote it.
    ///
    /// # Errors
    /// `SQLITE_IOERR_DATA` if a page's frame does not authenticate. A frame read together with its
    /// header is read by recovery; such a frame comes out as zeros, so that SQLite's recovery ends
    /// the log there, as it does at a torn frame.
    pub fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        match self.frames.failure() {
            // The frames are lost, and an older transaction's lie there. Once SQLite was given the
            // error, its wal-index has none of the lost ones.
            Some(failure) if !failure.told && offset + buffer.len() as u64 > failure.from => {
                return Err(failure.code)
            }
            // Frames committed before can still be read.
            Some(_) => {}
            None => {
                self.resolve_if_rewrite()?;
                self.flush_if_asked_for(offset, buffer.len())?;
            }
        }
        if offset < HEADER_BYTES as u64 {
            return self.read_header(buffer, offset);
        }
        self.know_page_size()?;
        let by_index = self.goes_by_index(self.spot(offset), buffer.len())?;
        let mut end = ReadEnd::Full;
        let mut done = 0;
        while done < buffer.len() {
            let spot = self.spot(offset + done as u64);
            let part = (self.frame_bytes() - spot.within).min(buffer.len() - done);
            let number = spot.number;
            if self.read_piece(spot, &mut buffer[done..done + part])? == ReadEnd::Short {
                end = ReadEnd::Short;
            } else if by_index {
                let checked = self.check_place(number, page_and_commit(&self.opened.frame).0);
                let checked = checked.and_then(|()| self.check_counts(number));
                checked.inspect_err(|_| self.opened.forget())?;
            }
            done += part;
        }
        Ok(end)
    }

    /// Whether SQLite found by the wal-index what it reads, as it does for a page alone. A read
    /// with the frame's header goes by the page number in that header, and a header alone has no
    /// content.
    fn goes_by_index(&self, spot: Spot, length: usize) -> Outcome<bool> {
        let whole = spot.within == 0 && length % self.frame_bytes() == 0;
        if !self.container.index.is_mapped() || whole || spot.within + length <= FRAME_HEADER_BYTES
        {
            return Ok(false);
        }
        self.container.check_index(self.page_bytes)?;
        if spot.within != FRAME_HEADER_BYTES || length > self.page_bytes {
            let cause = format!("read where no page of it begins: {INDEX_CHANGED}");
            let error = Error::unauthentic(Subject::Frame(spot.number), cause);
            return Err(self.container.report(&error));
        }
        Ok(true)
    }

    /// Compares the page number under the frame's tag with the one in the wal-index, by which
    /// SQLite found the frame.
    pub(super) fn check_place(&self, number: u32, page: u32) -> Outcome<()> {
        pellucid::sabotage!(FramePage => return Ok(()));
        if !self.container.index.is_mapped() || self.container.index.page_of(number) == Some(page) {
            return Ok(());
        }
        let cause = format!("of page {page}, and the wal-index says otherwise: {INDEX_CHANGED}");
        Err(self.container.report(&Error::unauthentic(Subject::Frame(number), cause)))
    }

    /// Refuses the frame opened last if it is of an earlier run of the log or of a transaction
    /// without a commit. A rolled-back frame stays in the log until it is overwritten.
    fn check_counts(&mut self, number: u32) -> Outcome<()> {
        let (salts, of_log) = (salts_of(&self.opened.frame), self.salts()?);
        if self.frames.has(number) && is_of_run(salts, of_log) {
            return Ok(());
        }
        if !is_of_run(salts, of_log) {
            let cause = format!("of an earlier run of the log: {INDEX_CHANGED}");
            return Err(self.container.report(&Error::unauthentic(Subject::Frame(number), cause)));
        }
        if self.committed.0 == of_log && number <= self.committed.1 {
            return Ok(());
        }
        if page_and_commit(&self.opened.frame).1 != 0 {
            self.committed = (of_log, number);
            return Ok(());
        }
        // `last` is no less than when SQLite looked: no connection restarts the log while another
        // one reads it.
        let last = self.container.index.frames().unwrap_or(0);
        if last > number && self.carries_commit(last)? {
            return Ok(());
        }
        Err(self.not_committed(number))
    }

    /// Whether the frame that SQLite read last is a committed one of page `number` with this
    /// content.
    pub fn opened_last(&self, number: u32, content: &[u8]) -> bool {
        pellucid::sabotage!(FramePage => return true);
        // Nothing was opened yet.
        if self.opened.frame.is_empty() {
            return false;
        }
        let of_it = self.opened.for_sqlite && page_and_commit(&self.opened.frame).0 == number;
        let (salts, last) = self.committed;
        let counts = !self.container.index.is_mapped()
            || (is_of_run(salts_of(&self.opened.frame), salts)
                && self.opened.number.is_some_and(|n| n <= last));
        of_it && counts && self.opened.frame[FRAME_HEADER_BYTES..] == *content
    }

    /// Writes the held frames if the read that follows overlaps them.
    pub(super) fn flush_if_asked_for(&mut self, offset: u64, length: usize) -> Outcome<()> {
        if self.frames.held.overlaps(offset, length) {
            return self.flush();
        }
        Ok(())
    }

    fn read_header(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        let mut header = [0; HEADER_BYTES];
        let end = self.lower.read(&mut header, 0)?;
        self.check_version(&header)?;
        if let Some(parsed) = WalHeader::parse_sealed(&header, self.version()) {
            self.set_page_size(parsed.page_size as usize);
        } else if end == ReadEnd::Full {
            self.container
                .note(ffi::IOERR_DATA, "WAL header: damaged or not sealed; the WAL is ignored");
            self.keep_lost(None)?;
        }
        unmark_header(&mut header, self.version());
        let from = offset as usize;
        let part = buffer.len().min(HEADER_BYTES - from);
        buffer[..part].copy_from_slice(&header[from..from + part]);
        if part == buffer.len() {
            return Ok(end);
        }
        let rest = self.read(&mut buffer[part..], HEADER_BYTES as u64)?;
        Ok(if end == ReadEnd::Short { end } else { rest })
    }

    fn read_piece(&mut self, spot: Spot, piece: &mut [u8]) -> Outcome<ReadEnd> {
        if !self.is_ahead(spot.number)? && self.read_unit(spot.number)? == ReadEnd::Short {
            piece.fill(0);
            return Ok(ReadEnd::Short);
        }
        self.opened.forget();
        let run = self.run()?;
        let unit = self.ahead.unit(spot.number.into()).unwrap_or(&self.unit);
        let keys = self.container.keys()?;
        self.opened.frame.resize(unit.len(), 0);
        let named = pellucid::unit::generation(unit).unwrap_or(0);
        let keys = if self.container.is_newer(named) {
            self.container.refresh()?;
            self.container.keys()?
        } else {
            keys
        };
        let opened = open_frame(&keys, &run, spot.number, unit, &mut self.opened.frame);
        let seen = opened.is_ok().then(|| Stamp::of(unit).count);
        let recovering = spot.within < FRAME_HEADER_BYTES && !self.frames.is_behind(spot.number);
        self.stamps.saw(seen.filter(|_| recovering));
        if recovering && (opened.is_err() || salts_of(&self.opened.frame) != run.salts()) {
            // SQLite's recovery ends before this frame.
            self.keep_lost(Some(spot.number))?;
        }
        if let Err(error) = opened {
            if !recovering {
                return Err(self.container.report(&error));
            }
            if !self.torn_noted {
                self.torn_noted = true;
                let line = format!("{error}; recovery treats the WAL as ending before it");
                self.container.note(ffi::OK, &line);
            }
            // Page number 0 is never valid (`walDecodeFrame`).
            self.opened.frame.fill(0);
        } else {
            self.opened.number = Some(spot.number);
            self.opened.for_sqlite = true;
        }
        piece.copy_from_slice(&self.opened.frame[spot.within..spot.within + piece.len()]);
        Ok(ReadEnd::Full)
    }

    /// Whether a frame is among those read ahead. Reads ahead first if SQLite reads the frames in
    /// their order.
    fn is_ahead(&mut self, number: u32) -> Outcome<bool> {
        if self.ahead.unit(number.into()).is_some() {
            self.ahead.took(number.into());
            return Ok(true);
        }
        let frame_bytes = self.frame_bytes();
        let wanted = self.ahead.wants(number.into(), frame_bytes);
        if wanted < 2 {
            return Ok(false);
        }
        let (lower, at) = (self.lower, self.offset(number));
        let there = lower.size()?.saturating_sub(at) / frame_bytes as u64;
        let count = wanted.min(usize::try_from(there).unwrap_or(wanted));
        if count < 2 {
            return Ok(false);
        }
        if self.frames.failure().is_none() {
            self.flush_if_asked_for(at, count * frame_bytes)?;
        }
        let read = |units: &mut [u8]| Ok(lower.read(units, at)? == ReadEnd::Full);
        // An error of a later frame must not fail this one, which is then read alone.
        Ok(self.ahead.fill(number.into(), count, frame_bytes, read).unwrap_or(false))
    }

    /// Drops frames and salts that were read. They may be stale after a lock was taken or released,
    /// or the log was cut.
    pub fn forget(&mut self) {
        self.ahead.drop_units();
        self.run.set(None);
        self.stamps.forget();
        self.opened.forget();
    }

    pub(super) fn read_unit(&mut self, number: u32) -> Outcome<ReadEnd> {
        let offset = self.offset(number);
        self.unit.resize(self.frame_bytes(), 0);
        self.lower.read(&mut self.unit, offset)
    }

    /// Whether a frame belongs to this run of the log and carries a commit. If so, `committed`
    /// remembers it.
    pub(super) fn carries_commit(&mut self, number: u32) -> Outcome<bool> {
        let run = self.run()?;
        let salts = run.salts();
        if self.read_unit(number)? == ReadEnd::Short {
            return Ok(false);
        }
        let named = pellucid::unit::generation(&self.unit).unwrap_or(0);
        if self.container.is_newer(named) {
            self.container.refresh()?;
        }
        self.look_at(number, &run)?;
        let frame = &self.looked_at;
        let carries = is_of_run(salts_of(frame), salts) && page_and_commit(frame).1 != 0;
        if carries {
            self.committed = (salts, number);
        }
        Ok(carries)
    }

    /// Opens the frame that was just read, for its commit size and its stamp.
    pub(super) fn look_at(&mut self, number: u32, run: &Run) -> Outcome<()> {
        let keys = self.container.keys()?;
        self.looked_at.resize(self.unit.len(), 0);
        let opened = open_frame(&keys, run, number, &self.unit, &mut self.looked_at);
        opened.map_err(|error| self.container.report(&error))?;
        self.stamps.knows(number, run, Stamp::of(&self.unit));
        Ok(())
    }

    /// The salts in the log's header.
    pub(super) fn salts(&self) -> Outcome<Salts> {
        self.run().map(|run| run.salts())
    }

    /// The present run of the log, by its header.
    pub(super) fn run(&self) -> Outcome<Run> {
        if let Some(run) = self.run.get() {
            return Ok(run);
        }
        let mut header = [0; HEADER_BYTES];
        self.lower.read(&mut header, 0)?;
        let run = Run::of(&header, self.version());
        self.run.set(Some(run));
        Ok(run)
    }
}

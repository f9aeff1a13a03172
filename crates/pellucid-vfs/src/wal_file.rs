//! The WAL of a sealed database: each frame, header and page, is one sealed unit.
//!
//! SQLite writes a frame in two or more pieces, rewrites pages in place, and rewrites frame headers
//! alone. The shim gathers a whole frame before it seals it. It holds the sealed frames of a
//! transaction and writes them with one call, up to the frame that carries the commit. Layout:
//! docs/format.md, "WAL".

use std::cell::Cell;
use std::ffi::c_int;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use pellucid::wal::{
    mark_header, open_frame, page_and_commit, refuse_newer, repeat_frame, seal_frame,
    unmark_header, WalHeader, FRAME_HEADER_BYTES, HEADER_BYTES,
};
use pellucid::{Error, Subject};
use pellucid_host::code::{Code, Outcome};
use pellucid_host::ffi;

use crate::frame_headers::FrameHeaders;
use crate::held::Held;
use crate::link::{Link, INDEX_CHANGED};
use crate::log_end::{Database, LogEnd, Lost};
use crate::lost_log;
use crate::lower::{Lower, ReadEnd, CALL_BYTES};
use crate::pool::WearKind;
use crate::read_ahead::ReadAhead;
use crate::write_out::WriteOut;

/// The sealed side of a WAL file.
#[derive(Debug)]
pub struct WalFile {
    link: Rc<Link>,
    lower: Lower,
    page_bytes: usize,
    /// The frame SQLite is writing piece by piece, as SQLite sees it.
    gathering: Option<Gathering>,
    /// The buffer of `gathering`, kept between frames.
    frame: Vec<u8>,
    /// Sealed frames that are not written yet, and their offset.
    held: Held,
    write_out: WriteOut,
    /// One frame as it lies on disk.
    unit: Vec<u8>,
    /// Frames read ahead, because a checkpoint of one long transaction reads the frames in their
    /// order. Cleared when a lock changes; until then the locks keep other connections from
    /// overwriting them. Writing a frame removes that frame.
    ahead: ReadAhead,
    /// The frame opened last, as SQLite sees it.
    opened: Vec<u8>,
    /// The number of the frame in `opened`. Cleared when a lock changes: another connection may
    /// overwrite the frame then.
    opened_number: Option<u32>,
    /// Whether SQLite has read the frame in `opened`. A checkpoint does so right before it writes
    /// the page.
    opened_for_sqlite: bool,
    /// Headers of the frames written in this transaction.
    headers: FrameHeaders,
    /// The frame whose header SQLite has just rewritten with the same page and salts. The page may
    /// follow.
    headed: Option<u32>,
    /// First frame written in this transaction. From it on, a frame that does not open is an error
    /// even at recovery.
    written_from: u32,
    /// Last frame written in this transaction.
    written_to: u32,
    /// The salts in the log's header. Cleared when a lock changes.
    salts: Cell<Option<Salts>>,
    /// The last frame known to carry a commit, and its salts. That frame and those before it are
    /// committed, whatever the wal-index says.
    committed: (Salts, u32),
    failed: Option<Failure>,
    torn_noted: bool,
}

/// The error of frames that could not be written.
#[derive(Debug, Clone, Copy)]
struct Failure {
    code: Code,
    /// The offset of the first lost frame.
    from: u64,
    /// SQLite was given the error and rolls the transaction back.
    told: bool,
}

impl Failure {
    /// Makes the failure, with a code for which SQLite ends the transaction. SQLite does so only
    /// for a full disk and an I/O error (`pager_error`), and a lower VFS may return any code.
    fn new(code: Code, from: u64) -> Self {
        let ends = matches!(code.0 & 0xff, ffi::IOERR | ffi::FULL);
        Self { code: if ends { code } else { Code(ffi::IOERR_WRITE) }, from, told: false }
    }
}

#[derive(Debug, Clone, Copy)]
struct Gathering {
    number: u32,
    filled: usize,
}

/// The salts of a log, which distinguish the frames of its present run from those of earlier runs
/// (SQLite file format, 4.1).
type Salts = [u8; 8];

/// A place in the log: a frame's number and an offset inside the frame.
struct Spot {
    number: u32,
    within: usize,
}

impl WalFile {
    /// Makes the sealed side of the WAL that `lower` opened.
    pub fn new(link: Rc<Link>, lower: Lower, path: PathBuf) -> Self {
        Self {
            link,
            lower,
            page_bytes: 0,
            gathering: None,
            frame: Vec::new(),
            held: Held::default(),
            write_out: WriteOut::new(path),
            unit: Vec::new(),
            ahead: ReadAhead::default(),
            opened: Vec::new(),
            opened_number: None,
            opened_for_sqlite: false,
            headers: FrameHeaders::default(),
            headed: None,
            written_from: u32::MAX,
            written_to: 0,
            salts: Cell::new(None),
            committed: (Salts::default(), 0),
            failed: None,
            torn_noted: false,
        }
    }

    /// The lower file.
    pub(crate) fn lower(&self) -> Lower {
        self.lower
    }

    /// Writes a piece of the log.
    ///
    /// # Errors
    /// A code; the code of an earlier frame's failed write in the same transaction is returned
    /// again.
    pub fn write(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        if self.failed.is_some_and(|failure| offset <= failure.from) && self.begins_frame(offset) {
            // SQLite appends at the failed offset or before it, so its wal-index has no lost frame
            // any more: the transaction is over. In an exclusive locking mode no change of a lock
            // says so.
            self.end_transaction();
        }
        let written = self.write_or_fail(bytes, offset);
        if written.is_err() {
            self.gathering = None;
            self.tell();
        }
        written
    }

    /// Records that SQLite was given the failed write's error. Until its next write it reads
    /// committed frames only.
    pub fn tell(&mut self) {
        if let Some(failure) = &mut self.failed {
            failure.told = true;
        }
    }

    fn write_or_fail(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        if let Some(failure) = self.failed {
            return Err(failure.code);
        }
        self.link.check_writable()?;
        if offset < HEADER_BYTES as u64 {
            return self.write_header(bytes, offset);
        }
        self.know_page_size()?;
        let mut done = 0;
        while done < bytes.len() {
            let spot = self.spot(offset + done as u64);
            let part = (self.frame_bytes() - spot.within).min(bytes.len() - done);
            self.write_piece(spot, &bytes[done..done + part])?;
            done += part;
        }
        Ok(())
    }

    fn write_header(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        self.resolve()?;
        self.flush()?;
        let mut header = [0; HEADER_BYTES];
        if offset != 0 || bytes.len() != HEADER_BYTES {
            return Err(Code(ffi::IOERR_WRITE));
        }
        header.copy_from_slice(bytes);
        let Some(parsed) = WalHeader::parse(&header).filter(|parsed| !parsed.sealed) else {
            return Err(self.link.report(&Error::misuse(
                Subject::WalHeader,
                "SQLite wrote a WAL header this version does not know",
            )));
        };
        self.refuse_newer()?;
        mark_header(&mut header);
        self.set_page_size(parsed.page_size as usize);
        self.forget_written();
        self.forget();
        self.committed.1 = 0;
        self.lower.write(&header, 0)
    }

    fn write_piece(&mut self, spot: Spot, piece: &[u8]) -> Outcome<()> {
        let headed = self.headed.take() == Some(spot.number);
        let continues =
            self.gathering.is_some_and(|g| g.number == spot.number && g.filled == spot.within);
        if !continues {
            self.resolve()?;
            let page_alone = (spot.within, piece.len()) == (FRAME_HEADER_BYTES, self.page_bytes);
            if spot.within == 0 {
                self.gathering = Some(Gathering { number: spot.number, filled: 0 });
            } else if let Some(header) = self.headers.get(spot.number).filter(|_| page_alone) {
                self.frame[..FRAME_HEADER_BYTES].copy_from_slice(header);
                if !headed {
                    // SQLite found the frame by the wal-index, so the index has to agree with the
                    // tag.
                    self.check_place(spot.number, page_and_commit(&self.frame).0)?;
                }
            } else {
                self.load_for_change(spot.number)?;
                if self.frame[spot.within..spot.within + piece.len()] == *piece {
                    // The piece is the rest of a frame that `complete_padding` has written.
                    return Ok(());
                }
                if !headed {
                    self.check_place(spot.number, page_and_commit(&self.frame).0)?;
                }
            }
        }
        self.frame[spot.within..spot.within + piece.len()].copy_from_slice(piece);
        if let Some(gathering) = &mut self.gathering {
            gathering.filled = spot.within + piece.len();
            if gathering.filled == FRAME_HEADER_BYTES && spot.number <= self.written_to {
                // A rewrite of checksums ends with the header that carries the commit, and no write
                // need follow it.
                self.resolve_if_rewrite()?;
                self.headed = self.gathering.is_none().then_some(spot.number);
                return Ok(());
            }
            if gathering.filled < self.frame.len() {
                return Ok(());
            }
        }
        self.gathering = None;
        self.emit(spot.number)
    }

    /// Opens a written frame into `frame`, so that a part of it can be changed.
    fn load_for_change(&mut self, number: u32) -> Outcome<()> {
        self.flush()?;
        self.read_unit(number)?;
        let keys = self.link.keys()?;
        let opened = open_frame(&keys, number, &self.unit, &mut self.frame);
        opened.map_err(|error| self.link.report(&error))
    }

    /// Seals a frame of which SQLite wrote only the header, if the frame is already in the log.
    ///
    /// SQLite writes a header alone in two cases. It rewrites the checksum of a frame in the log
    /// (`walRewriteChecksums`), or the rest of the frame comes after a sync (`walWriteToLog`). Any
    /// other write in between is an error.
    fn resolve(&mut self) -> Outcome<()> {
        let Some(gathering) = self.gathering else { return Ok(()) };
        if !self.is_rewrite(gathering)? {
            return Err(self.link.report(&Error::misuse(
                Subject::Frame(gathering.number),
                "SQLite left a frame incomplete",
            )));
        }
        self.gathering = None;
        self.emit(gathering.number)
    }

    /// Whether the frame being gathered is already in the log. If so, `frame` is filled with its
    /// page.
    fn is_rewrite(&mut self, gathering: Gathering) -> Outcome<bool> {
        if gathering.filled != FRAME_HEADER_BYTES {
            return Ok(false);
        }
        // SQLite reads each frame before it rewrites its checksum.
        if self.opened_number != Some(gathering.number) {
            self.flush()?;
            if self.read_unit(gathering.number)? == ReadEnd::Short {
                return Ok(false);
            }
            let keys = self.link.keys()?;
            self.forget_opened();
            self.opened.resize(self.frame.len(), 0);
            if open_frame(&keys, gathering.number, &self.unit, &mut self.opened).is_err() {
                return Ok(false);
            }
        }
        // Page and salts must be the same; the commit size and the checksum may change. While
        // checksums are put off SQLite writes zeros for the salts (`walEncodeFrame`).
        let same = |range: std::ops::Range<usize>| self.opened[range.clone()] == self.frame[range];
        let put_off = self.opened[8..16] == [0; 8];
        if !same(0..4) || !(same(8..16) || put_off) {
            return Ok(false);
        }
        self.frame[FRAME_HEADER_BYTES..].copy_from_slice(&self.opened[FRAME_HEADER_BYTES..]);
        Ok(true)
    }

    /// Completes and seals a padding frame whose beginning a sync has to force to disk.
    ///
    /// Without powersafe overwrite SQLite fills the sector in which a commit ends with frames that
    /// repeat the last one, and syncs up to the sector's border (`walWriteToLog`), so only the
    /// beginning of such a frame has come. A sealed unit cannot be written in part, and written
    /// after the sync it would change the commit's sector once more.
    fn complete_padding(&mut self) -> Outcome<()> {
        let Some(gathering) = self.gathering.filter(|gathering| gathering.number > 1) else {
            return Ok(());
        };
        self.flush()?;
        let mut header = [0; HEADER_BYTES];
        self.lower.read(&mut header, 0)?;
        if self.read_unit(gathering.number - 1)? == ReadEnd::Short {
            return Ok(());
        }
        let keys = self.link.keys()?;
        self.forget_opened();
        self.opened.resize(self.frame.len(), 0);
        if open_frame(&keys, gathering.number - 1, &self.unit, &mut self.opened).is_err() {
            return Ok(());
        }
        repeat_frame(&header, &mut self.opened);
        if self.opened[..gathering.filled] != self.frame[..gathering.filled] {
            return Ok(());
        }
        self.frame.copy_from_slice(&self.opened);
        self.gathering = None;
        self.emit(gathering.number)?;
        // SQLite's write of the rest is compared with this frame, and not written again.
        self.headers.forget_from(gathering.number);
        Ok(())
    }

    /// Seals the complete `frame` and holds it. Writes all held frames if it carries a commit or is
    /// large.
    fn emit(&mut self, number: u32) -> Outcome<()> {
        let frame_bytes = self.frame.len();
        let tail = &self.frame[frame_bytes - pellucid::unit::TAIL_BYTES..];
        if tail.iter().any(|byte| *byte != 0) {
            return Err(self.link.report(&Error::misuse(
                Subject::Frame(number),
                "the reserved bytes of its page are in use; a plain database cannot be copied page by page into a sealed one",
            )));
        }
        self.check_append(number)?;
        self.ahead.changed(number.into(), u64::from(number) + 1);
        self.forget_opened();
        self.committed.1 = self.committed.1.min(number - 1);
        let at = self.offset(number);
        if !self.held.takes(at, frame_bytes) {
            self.flush()?;
        }
        self.link.holds();
        let (frame, sealed) = (&self.frame, self.held.add(at, frame_bytes));
        let outcome = self.link.seal_with(WearKind::Log, |keys, nonces| {
            seal_frame(keys, nonces, number, frame, sealed)
        });
        if let Err(code) = outcome {
            let failure = Failure::new(code, self.held.at());
            self.failed = Some(failure);
            self.held.take_back(frame_bytes);
            return Err(failure.code);
        }
        self.written_from = self.written_from.min(number);
        self.written_to = self.written_to.max(number);
        if let Some(header) = self.frame.first_chunk() {
            self.headers.keep(number, header);
        }
        let commits = page_and_commit(&self.frame).1 != 0;
        if commits || frame_bytes >= CALL_BYTES {
            self.flush()?;
        }
        if commits {
            self.committed = (salts_of(&self.frame), number);
        }
        Ok(())
    }

    /// Checks that the frame before an appended one carries a commit. SQLite appends behind the
    /// frame that the wal-index names as the last; if that frame was rolled back, the new commit
    /// would commit it too.
    fn check_append(&mut self, number: u32) -> Outcome<()> {
        let of_this = self.written_from <= number && number <= self.written_to.saturating_add(1);
        let before = number - 1;
        let known = self.committed == (salts_of(&self.frame), before);
        if before == 0 || of_this || known || !self.link.index.is_mapped() {
            return Ok(());
        }
        match self.carries_commit(before)? {
            true => Ok(()),
            false => Err(self.not_committed(before)),
        }
    }

    fn not_committed(&self, number: u32) -> Code {
        let cause = format!("of no commit, and the wal-index says otherwise: {INDEX_CHANGED}");
        self.link.report(&Error::unauthentic(Subject::Frame(number), cause))
    }

    /// Whether a frame belongs to this run of the log and carries a commit. If so, `committed`
    /// remembers it.
    fn carries_commit(&mut self, number: u32) -> Outcome<bool> {
        let salts = self.salts()?;
        if self.read_unit(number)? == ReadEnd::Short {
            return Ok(false);
        }
        let named = pellucid::unit::generation(&self.unit).unwrap_or(0);
        if self.link.is_newer(named) {
            self.link.refresh()?;
        }
        let keys = self.link.keys()?;
        let mut frame = vec![0; self.frame_bytes()];
        let opened = open_frame(&keys, number, &self.unit, &mut frame);
        opened.map_err(|error| self.link.report(&error))?;
        let carries = is_of_run(salts_of(&frame), salts) && page_and_commit(&frame).1 != 0;
        if carries {
            self.committed = (salts, number);
        }
        Ok(carries)
    }

    /// The salts in the log's header.
    fn salts(&self) -> Outcome<Salts> {
        if let Some(salts) = self.salts.get() {
            return Ok(salts);
        }
        let mut header = [0; HEADER_BYTES];
        self.lower.read(&mut header, 0)?;
        let mut salts = Salts::default();
        salts.copy_from_slice(&header[16..24]);
        self.salts.set(Some(salts));
        Ok(salts)
    }

    /// Writes the held frames.
    ///
    /// # Errors
    /// The lower VFS's code. Writes return it until the transaction ends, other calls until SQLite
    /// was given the error.
    pub fn flush(&mut self) -> Outcome<()> {
        match self.failed {
            Some(failure) if failure.told => return Ok(()),
            Some(failure) => return Err(failure.code),
            None => {}
        }
        if self.held.is_empty() {
            return Ok(());
        }
        let written = self.held.write(self.lower);
        match written {
            Ok(()) => self.write_out.wrote(self.held.at(), self.held.end()),
            Err(code) => self.failed = Some(Failure::new(code, self.held.at())),
        }
        self.held.clear();
        self.failed.map_or(Ok(()), |failure| Err(failure.code))
    }

    /// Starts the kernel's write-out of the complete part of the log.
    pub fn begin_write_out(&mut self) {
        self.write_out.begin();
    }

    /// Ends the transaction: forgets its failed write and its frames.
    pub fn end_transaction(&mut self) {
        if self.failed.take().is_some() {
            self.held.clear();
            self.gathering = None;
        }
        self.forget_written();
    }

    fn forget_written(&mut self) {
        self.written_from = u32::MAX;
        self.written_to = 0;
        self.headers.forget_from(0);
    }

    /// Reads a piece of the log, as SQLite wrote it.
    ///
    /// # Errors
    /// `SQLITE_IOERR_DATA` if a page's frame does not authenticate. A frame read together with its
    /// header is read by recovery; such a frame comes out as zeros, so that SQLite's recovery ends
    /// the log there, as it does at a torn frame.
    pub fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        match self.failed {
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
                let checked = self.check_place(number, page_and_commit(&self.opened).0);
                let checked = checked.and_then(|()| self.check_counts(number));
                checked.inspect_err(|_| self.forget_opened())?;
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
        if !self.link.index.is_mapped() || whole || spot.within + length <= FRAME_HEADER_BYTES {
            return Ok(false);
        }
        self.link.check_index(self.page_bytes)?;
        if spot.within != FRAME_HEADER_BYTES || length > self.page_bytes {
            let cause = format!("read where no page of it begins: {INDEX_CHANGED}");
            let error = Error::unauthentic(Subject::Frame(spot.number), cause);
            return Err(self.link.report(&error));
        }
        Ok(true)
    }

    /// Compares the page number under the frame's tag with the one in the wal-index, by which
    /// SQLite found the frame.
    fn check_place(&self, number: u32, page: u32) -> Outcome<()> {
        pellucid::sabotage!(FramePage => return Ok(()));
        if !self.link.index.is_mapped() || self.link.index.page_of(number) == Some(page) {
            return Ok(());
        }
        let cause = format!("of page {page}, and the wal-index says otherwise: {INDEX_CHANGED}");
        Err(self.link.report(&Error::unauthentic(Subject::Frame(number), cause)))
    }

    /// Refuses the frame opened last if it is of an earlier run of the log or of a transaction
    /// without a commit. A rolled-back frame stays in the log until it is overwritten.
    fn check_counts(&mut self, number: u32) -> Outcome<()> {
        let (salts, of_log) = (salts_of(&self.opened), self.salts()?);
        if self.written_from <= number && number <= self.written_to && is_of_run(salts, of_log) {
            return Ok(());
        }
        if !is_of_run(salts, of_log) {
            let cause = format!("of an earlier run of the log: {INDEX_CHANGED}");
            return Err(self.link.report(&Error::unauthentic(Subject::Frame(number), cause)));
        }
        if self.committed.0 == of_log && number <= self.committed.1 {
            return Ok(());
        }
        if page_and_commit(&self.opened).1 != 0 {
            self.committed = (of_log, number);
            return Ok(());
        }
        // `last` is no less than when SQLite looked: no connection restarts the log while another
        // one reads it.
        let last = self.link.index.frames().unwrap_or(0);
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
        if self.opened.is_empty() {
            return false;
        }
        let of_it = self.opened_for_sqlite && page_and_commit(&self.opened).0 == number;
        let (salts, last) = self.committed;
        let counts = !self.link.index.is_mapped()
            || (is_of_run(salts_of(&self.opened), salts)
                && self.opened_number.is_some_and(|n| n <= last));
        of_it && counts && self.opened[FRAME_HEADER_BYTES..] == *content
    }

    /// Writes the held frames if the read that follows overlaps them.
    fn flush_if_asked_for(&mut self, offset: u64, length: usize) -> Outcome<()> {
        if self.held.overlaps(offset, length) {
            return self.flush();
        }
        Ok(())
    }

    fn resolve_if_rewrite(&mut self) -> Outcome<()> {
        let Some(gathering) = self.gathering else { return Ok(()) };
        if self.is_rewrite(gathering)? {
            self.gathering = None;
            self.emit(gathering.number)?;
        }
        Ok(())
    }

    fn read_header(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        let mut header = [0; HEADER_BYTES];
        let end = self.lower.read(&mut header, 0)?;
        refuse_newer(&header).map_err(|error| self.link.report(&error))?;
        if let Some(parsed) = WalHeader::parse(&header).filter(|parsed| parsed.sealed) {
            self.set_page_size(parsed.page_size as usize);
        } else if end == ReadEnd::Full {
            self.link
                .note(ffi::IOERR_DATA, "WAL header: damaged or not sealed; the WAL is ignored");
            self.keep_lost(None)?;
        }
        unmark_header(&mut header);
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
        self.forget_opened();
        let unit = self.ahead.unit(spot.number.into()).unwrap_or(&self.unit);
        let keys = self.link.keys()?;
        self.opened.resize(unit.len(), 0);
        let named = pellucid::unit::generation(unit).unwrap_or(0);
        let keys = if self.link.is_newer(named) {
            self.link.refresh()?;
            self.link.keys()?
        } else {
            keys
        };
        let opened = open_frame(&keys, spot.number, unit, &mut self.opened);
        let recovering = spot.within < FRAME_HEADER_BYTES && spot.number < self.written_from;
        if recovering && (opened.is_err() || salts_of(&self.opened) != self.salts()?) {
            // SQLite's recovery ends before this frame.
            self.keep_lost(Some(spot.number))?;
        }
        if let Err(error) = opened {
            if !recovering {
                return Err(self.link.report(&error));
            }
            if !self.torn_noted {
                self.torn_noted = true;
                let line = format!("{error}; recovery treats the WAL as ending before it");
                self.link.note(ffi::OK, &line);
            }
            // Page number 0 is never valid (`walDecodeFrame`).
            self.opened.fill(0);
        } else {
            self.opened_number = Some(spot.number);
            self.opened_for_sqlite = true;
        }
        piece.copy_from_slice(&self.opened[spot.within..spot.within + piece.len()]);
        Ok(ReadEnd::Full)
    }

    /// The same at the end of a recovery that met no damage, after which `counted` frames count: a frame that authenticates may
    /// have been put back in the place of a newer one.
    ///
    /// # Errors
    /// A code.
    pub fn keep_lost_behind(&mut self, counted: u32) -> Outcome<()> {
        let frames =
            |size: u64| size.saturating_sub(HEADER_BYTES as u64) / self.frame_bytes() as u64;
        match frames(self.lower.size()?) > u64::from(counted) {
            true => self.keep_lost_by(|end, header| end.lost_without_damage(header, counted)),
            false => Ok(()),
        }
    }

    /// Keeps the rest of the log aside if whole commits lie behind the frame `number`, or behind the header, where recovery ends.
    /// From then on SQLite writes over them.
    fn keep_lost(&mut self, number: Option<u32>) -> Outcome<()> {
        self.keep_lost_by(|end, header| match number {
            Some(number) => {
                let unpadded = end.is_unpadded(number - 1)?;
                end.lost(header, number - 1, unpadded)
            }
            None => end.lost_by_header(header),
        })
    }

    fn keep_lost_by(
        &mut self,
        find: impl FnOnce(&mut LogEnd<'_>, [u8; HEADER_BYTES]) -> Outcome<Option<Lost>>,
    ) -> Outcome<()> {
        pellucid::sabotage!(LostLog => return Ok(()));
        let Some(page_bytes) = self.link.page_size() else { return Ok(()) };
        let (lower, size) = (self.lower, self.lower.size()?);
        let read = |bytes: &mut [u8], at: u64| lower.read(bytes, at);
        let mut header = [0; HEADER_BYTES];
        if read(&mut header, 0)? == ReadEnd::Short {
            return Ok(());
        }
        let keys = self.link.keys()?;
        let frame_bytes = page_bytes + FRAME_HEADER_BYTES;
        let has_page = |page: u32, content: &[u8]| self.link.has_page(page, content);
        let database = Database { header: self.link.header(), keys: &keys, has_page: &has_page };
        let mut end = LogEnd::new(&read, size, database, frame_bytes);
        let Some(lost) = find(&mut end, header)? else { return Ok(()) };
        if self.link.is_strict_about_logs() {
            let cause = format!("{lost}; a damaged log is an error here (`strict_log`)");
            return Err(self.link.report(&Error::unauthentic(Subject::WalHeader, cause)));
        }
        let at = HEADER_BYTES as u64 + u64::from(lost.frame.saturating_sub(1)) * frame_bytes as u64;
        let kept = lost_log::keep(self.link.path(), &lost, &read, (at, size));
        let kept = kept.map_err(|error| self.link.report(&error))?;
        let line = format!("{lost}; kept in `{}`: {}", kept.display(), lost_log::TO_DO);
        self.link.note(ffi::IOERR_DATA, &line);
        Ok(())
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
        if self.failed.is_none() {
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
        self.salts.set(None);
        self.forget_opened();
    }

    fn forget_opened(&mut self) {
        self.opened_number = None;
        self.opened_for_sqlite = false;
    }

    fn read_unit(&mut self, number: u32) -> Outcome<ReadEnd> {
        let offset = self.offset(number);
        self.unit.resize(self.frame_bytes(), 0);
        self.lower.read(&mut self.unit, offset)
    }

    /// The size of the log in bytes.
    ///
    /// # Errors
    /// A code.
    pub fn size(&mut self) -> Outcome<u64> {
        if self.failed.is_none() {
            self.flush()?;
        }
        self.lower.size()
    }

    /// Cuts the log to `size` bytes.
    ///
    /// # Errors
    /// A code.
    pub fn truncate(&mut self, size: u64) -> Outcome<()> {
        self.gathering = None;
        self.link.check_writable()?;
        self.refuse_newer()?;
        self.flush()?;
        self.forget();
        self.headers.forget_from(0);
        self.lower.truncate(size)
    }

    /// Completes and writes the frames, then forces the log to disk.
    ///
    /// # Errors
    /// A code.
    pub fn sync(&mut self, flags: c_int) -> Outcome<()> {
        let completed = self.complete();
        if completed.is_err() {
            self.gathering = None;
            self.tell();
        }
        completed?;
        self.lower.sync(flags)
    }

    /// Completes the gathered frame if it can be, and writes all held frames.
    fn complete(&mut self) -> Outcome<()> {
        self.resolve_if_rewrite()?;
        self.complete_padding()?;
        self.flush()
    }

    /// Refuses to change the log of a later version.
    fn refuse_newer(&self) -> Outcome<()> {
        let mut header = [0; HEADER_BYTES];
        self.lower.read(&mut header, 0)?;
        refuse_newer(&header).map_err(|error| self.link.report(&error))
    }

    fn know_page_size(&mut self) -> Outcome<()> {
        if self.page_bytes != 0 {
            return Ok(());
        }
        let mut header = [0; HEADER_BYTES];
        self.lower.read(&mut header, 0)?;
        refuse_newer(&header).map_err(|error| self.link.report(&error))?;
        let parsed = WalHeader::parse(&header).filter(|parsed| parsed.sealed);
        let page_bytes = parsed.map(|parsed| parsed.page_size as usize);
        let page_bytes = page_bytes.or_else(|| self.link.page_size());
        self.set_page_size(page_bytes.ok_or(Code(ffi::IOERR))?);
        Ok(())
    }

    fn set_page_size(&mut self, page_bytes: usize) {
        self.page_bytes = page_bytes;
        self.frame.resize(page_bytes + FRAME_HEADER_BYTES, 0);
    }

    fn frame_bytes(&self) -> usize {
        self.page_bytes + FRAME_HEADER_BYTES
    }

    fn offset(&self, number: u32) -> u64 {
        HEADER_BYTES as u64 + u64::from(number - 1) * self.frame_bytes() as u64
    }

    /// Whether the log's header or a frame begins at `offset`.
    fn begins_frame(&self, offset: u64) -> bool {
        let behind = offset.checked_sub(HEADER_BYTES as u64);
        behind.map_or(offset == 0, |behind| behind % self.frame_bytes() as u64 == 0)
    }

    fn spot(&self, offset: u64) -> Spot {
        let offset = offset - HEADER_BYTES as u64;
        let frame_bytes = self.frame_bytes() as u64;
        Spot { number: (offset / frame_bytes) as u32 + 1, within: (offset % frame_bytes) as usize }
    }
}

/// Returns the salts of a frame: bytes 8 to 15, which its tag covers.
fn salts_of(frame: &[u8]) -> Salts {
    let mut salts = Salts::default();
    salts.copy_from_slice(&frame[8..16]);
    salts
}

/// Whether a frame with these salts is of the run of the log whose header has the salts `of_log`.
///
/// While checksums are put off SQLite writes zeros (`walEncodeFrame`), and it leaves them where a transaction went back to a savepoint
/// before the first frame that it had written over: committed frames can have zeros for good.
fn is_of_run(salts: Salts, of_log: Salts) -> bool {
    salts == of_log || salts == Salts::default()
}

/// Refuses if the file at `path` is the log of a later version. A file that cannot be read is no
/// log, nor is a FIFO. SQLite holds no locks on a WAL, so closing it here drops none.
///
/// # Errors
/// [`Error::Unsupported`], which names the version.
pub fn refuse_newer_at(path: &Path) -> pellucid::Result<()> {
    let mut header = [0; HEADER_BYTES];
    match pellucid_files::regular::open(path).and_then(|mut log| log.read_exact(&mut header)) {
        Ok(()) => refuse_newer(&header),
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use pellucid::wal::RESERVED_VERSION;

    use super::*;

    #[test]
    fn a_fifo_is_no_log() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db-wal");
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&0x377f_0682u32.to_be_bytes());
        header[4..8].copy_from_slice(&RESERVED_VERSION.to_be_bytes());
        std::fs::write(&path, header).unwrap();
        assert!(refuse_newer_at(&path).is_err());
        std::fs::remove_file(&path).unwrap();
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
        // A reader that takes the FIFO for a file would find a header in it and not wait.
        let mut held = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        held.write_all(&header).unwrap();
        refuse_newer_at(&path).unwrap();
    }

    #[test]
    fn a_failure_has_a_code_that_ends_the_transaction() {
        for (code, told) in [
            (ffi::FULL, ffi::FULL),
            (ffi::IOERR, ffi::IOERR),
            (ffi::IOERR_DATA, ffi::IOERR_DATA),
            (ffi::AUTH, ffi::IOERR_WRITE),
            (ffi::BUSY, ffi::IOERR_WRITE),
        ] {
            assert_eq!(Failure::new(Code(code), 0).code, Code(told));
        }
    }
}

//! Frames as SQLite writes them: gathered piece by piece, sealed whole, held until a commit, and what is known of a transaction
//! whose write failed.

use pellucid::wal::{
    mark_header, open_frame, page_and_commit, repeat_frame, seal_frame, Run, Stamp, Version,
    WalHeader, FRAME_HEADER_BYTES, HEADER_BYTES,
};
use pellucid::{Error, Subject};
use pellucid_host::code::{Code, Outcome};
use pellucid_host::ffi;

use super::{Spot, WalFile};
use crate::container::INDEX_CHANGED;
use crate::lower::{ReadEnd, CALL_BYTES};
use crate::pool::WearKind;

/// A frame that SQLite writes piece by piece.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gathering {
    number: u32,
    filled: usize,
}

impl WalFile {
    /// Writes a piece of the log.
    ///
    /// # Errors
    /// A code; the code of an earlier frame's failed write in the same transaction is returned
    /// again.
    pub fn write(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        if self.frames.failure().is_some_and(|failure| offset <= failure.from)
            && self.begins_frame(offset)
        {
            // SQLite appends at the failed offset or before it, so its wal-index has no lost frame
            // any more: the transaction is over. In an exclusive locking mode no change of a lock
            // says so.
            self.end_transaction();
        }
        let written = self.write_or_fail(bytes, offset);
        if written.is_err() {
            self.gathering = None;
            self.committed.1 = 0;
            self.stamps.take_back();
            self.tell();
        }
        written
    }

    /// Records that SQLite was given the failed write's error. Until its next write it reads
    /// committed frames only.
    pub fn tell(&mut self) {
        self.frames.tell();
    }

    fn write_or_fail(&mut self, bytes: &[u8], offset: u64) -> Outcome<()> {
        if let Some(failure) = self.frames.failure() {
            return Err(failure.code);
        }
        self.container.check_writable()?;
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
        let Some(parsed) = WalHeader::parse(&header).filter(|parsed| parsed.sealed.is_none())
        else {
            return Err(self.container.report(&Error::misuse(
                Subject::WalHeader,
                "SQLite wrote a WAL header this version does not know",
            )));
        };
        self.refuse_other()?;
        mark_header(&mut header, self.version());
        self.stamps.stays();
        let epoch = self.begin_epoch(&Run::of(&header, self.version()))?;
        self.set_page_size(parsed.page_size as usize);
        self.frames.forget();
        self.forget();
        if self.version() == Version::Second {
            self.begin_run(&Run::of(&header, Version::Second), epoch)?;
        }
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
            } else if let Some(header) = self.frames.header(spot.number).filter(|_| page_alone) {
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
            if gathering.filled == FRAME_HEADER_BYTES && self.frames.reach(spot.number) {
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
        let (keys, run) = (self.container.keys()?, self.run()?);
        let opened = open_frame(&keys, &run, number, &self.unit, &mut self.frame);
        opened.map_err(|error| self.container.report(&error))
    }

    /// Seals a frame of which SQLite wrote only the header, if the frame is already in the log.
    ///
    /// SQLite writes a header alone in two cases. It rewrites the checksum of a frame in the log
    /// (`walRewriteChecksums`), or the rest of the frame comes after a sync (`walWriteToLog`). Any
    /// other write in between is an error.
    fn resolve(&mut self) -> Outcome<()> {
        let Some(gathering) = self.gathering else { return Ok(()) };
        if !self.is_rewrite(gathering)? {
            return Err(self.container.report(&Error::misuse(
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
        if self.opened.number != Some(gathering.number) {
            self.flush()?;
            if self.read_unit(gathering.number)? == ReadEnd::Short {
                return Ok(false);
            }
            let (keys, run) = (self.container.keys()?, self.run()?);
            self.opened.forget();
            self.opened.frame.resize(self.frame.len(), 0);
            let (number, unit) = (gathering.number, &self.unit);
            if open_frame(&keys, &run, number, unit, &mut self.opened.frame).is_err() {
                return Ok(false);
            }
        }
        // Page and salts must be the same; the commit size and the checksum may change. While
        // checksums are put off SQLite writes zeros for the salts (`walEncodeFrame`).
        let same =
            |range: std::ops::Range<usize>| self.opened.frame[range.clone()] == self.frame[range];
        let put_off = match self.version() {
            Version::First => self.opened.frame[8..16] == [0; 8],
            // A frame of version 2 keeps no salts: it opens with those of its run.
            Version::Second => self.frame[8..16] == [0; 8],
        };
        if !same(0..4) || !(same(8..16) || put_off) {
            return Ok(false);
        }
        self.frame[FRAME_HEADER_BYTES..].copy_from_slice(&self.opened.frame[FRAME_HEADER_BYTES..]);
        Ok(true)
    }

    pub(super) fn resolve_if_rewrite(&mut self) -> Outcome<()> {
        let Some(gathering) = self.gathering else { return Ok(()) };
        if self.is_rewrite(gathering)? {
            self.gathering = None;
            self.emit(gathering.number)?;
        }
        Ok(())
    }

    /// Completes the gathered frame if it can be, and writes all held frames.
    pub(super) fn complete(&mut self) -> Outcome<()> {
        self.resolve_if_rewrite()?;
        self.complete_padding()?;
        self.flush()
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
        let (keys, run) = (self.container.keys()?, self.run()?);
        self.opened.forget();
        self.opened.frame.resize(self.frame.len(), 0);
        let (number, unit) = (gathering.number - 1, &self.unit);
        if open_frame(&keys, &run, number, unit, &mut self.opened.frame).is_err() {
            return Ok(());
        }
        repeat_frame(&header, &mut self.opened.frame);
        if self.opened.frame[..gathering.filled] != self.frame[..gathering.filled] {
            return Ok(());
        }
        self.frame.copy_from_slice(&self.opened.frame);
        self.gathering = None;
        self.emit(gathering.number)?;
        // SQLite's write of the rest is compared with this frame, and not written again.
        self.frames.forget_headers_from(gathering.number);
        Ok(())
    }

    /// Seals the complete `frame` and holds it. Writes all held frames if it carries a commit or is
    /// large.
    fn emit(&mut self, number: u32) -> Outcome<()> {
        let frame_bytes = self.frame.len();
        let tail = &self.frame[frame_bytes - pellucid::unit::TAIL_BYTES..];
        if tail.iter().any(|byte| *byte != 0) {
            return Err(self.container.report(&Error::misuse(
                Subject::Frame(number),
                "the reserved bytes of its page are in use; a plain database cannot be copied page by page into a sealed one",
            )));
        }
        self.check_append(number)?;
        let run = self.run()?;
        let stamp = match run.version() {
            Version::First => Stamp::default(),
            Version::Second => self.stamp(number, &run)?,
        };
        if stamp.mark_follows {
            self.keep_mark(number, &run, stamp)?;
        }
        self.ahead.changed(number.into(), u64::from(number) + 1);
        self.opened.forget();
        self.committed.1 = self.committed.1.min(number - 1);
        let at = self.offset(number);
        if !self.frames.held.takes(at, frame_bytes) {
            self.flush()?;
        }
        let (frame, sealed) = (&self.frame, self.frames.held.add(at, frame_bytes));
        let outcome = self.container.seal_with(WearKind::Log, |keys, nonces| {
            seal_frame(keys, nonces, (&run, stamp), number, frame, sealed)
        });
        if let Err(code) = outcome {
            let code = self.frames.fail(code);
            self.frames.held.take_back(frame_bytes);
            return Err(code);
        }
        self.frames.sealed(number, self.frame.first_chunk());
        let commits = page_and_commit(&self.frame).1 != 0;
        if commits || frame_bytes >= CALL_BYTES {
            self.flush()?;
        }
        if commits {
            self.committed = (run.salts_of(&self.frame), number);
            self.stamps.committed(number, &run, stamp, self.pads().then_some(&self.frame));
        }
        Ok(())
    }

    /// Checks that the frame before an appended one carries a commit. SQLite appends behind the
    /// frame that the wal-index names as the last; if that frame was rolled back, the new commit
    /// would commit it too.
    fn check_append(&mut self, number: u32) -> Outcome<()> {
        let of_this = self.frames.goes_on_at(number);
        let before = number - 1;
        let known = self.committed == (self.run()?.salts_of(&self.frame), before);
        if before == 0 || of_this || known || !self.container.index.is_mapped() {
            return Ok(());
        }
        match self.carries_commit(before)? {
            true => Ok(()),
            false => Err(self.not_committed(before)),
        }
    }

    pub(super) fn not_committed(&self, number: u32) -> Code {
        let cause = format!("of no commit, and the wal-index says otherwise: {INDEX_CHANGED}");
        self.container.report(&Error::unauthentic(Subject::Frame(number), cause))
    }

    /// Writes the held frames.
    ///
    /// # Errors
    /// The lower VFS's code. Writes return it until the transaction ends, other calls until SQLite
    /// was given the error.
    pub fn flush(&mut self) -> Outcome<()> {
        self.frames.flush(self.lower)
    }

    /// Starts the kernel's write-out of the complete part of the log.
    pub fn begin_write_out(&mut self) {
        self.frames.begin_write_out();
    }

    /// Ends the transaction: forgets its failed write and its frames.
    pub fn end_transaction(&mut self) {
        self.stamps.end();
        if self.frames.end() {
            self.gathering = None;
        }
    }
}

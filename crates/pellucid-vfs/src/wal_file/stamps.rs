//! What frames of version 2 are stamped with: transactions, the time of their commits, and how often the log was recovered.
//!
//! docs/design/format-2.md, "Log", says what the stamps prove.

use pellucid::log_sector::LogSector;
use pellucid::wal::{
    page_and_commit, Run, Stamp, Time, COUNT_MOST, FRAME_HEADER_BYTES, HEADER_BYTES,
};
use pellucid::{Error, Subject};
use pellucid_host::code::Outcome;

use super::{salts_of, Salts, WalFile};
use crate::container::INDEX_CHANGED;
use crate::lower::ReadEnd;

/// A frame of one run of a log.
type Spot = (Salts, u32);

/// What this connection knows for the stamps of its frames.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    /// How often the run was recovered. Read again when a lock changed.
    count: Option<u16>,
    /// The first frame of the transaction under way.
    first: Option<u32>,
    /// Whether a sync of the log had returned since the last commit when that transaction began.
    synced_before: bool,
    /// The commit frame of that transaction, once it is sealed. SQLite may still rewrite checksums before it.
    ended: Option<u32>,
    /// The last commit that is known, and its stamp.
    last: (Spot, Stamp),
    /// The last commit that a sync by this connection covers.
    synced: Spot,
    /// That commit's frame, where SQLite repeats it to the end of a sector.
    repeated: Vec<u8>,
    /// Whether this connection, which has the index in its own memory, has counted its recovery.
    counted_alone: bool,
    /// The highest count of the frames that a recovery has read.
    seen: u16,
    /// The last frame that counts, as SQLite counts in this connection: behind its last commit, or before its first one.
    counts: Spot,
    is_counting: bool,
    /// The same before the transaction that is being written, which SQLite takes back if a write or a sync of it fails.
    before: Option<Spot>,
}

impl Stamps {
    /// Forgets what another connection may have changed.
    pub fn forget(&mut self) {
        self.count = None;
    }

    /// Ends the transaction.
    pub fn end(&mut self) {
        self.first = None;
        self.ended = None;
        self.repeated.clear();
    }

    /// Notes the count of a frame that a recovery has read.
    pub fn saw(&mut self, count: Option<u16>) {
        self.seen = self.seen.max(count.unwrap_or(0));
    }

    /// The highest count seen, from now on of another recovery.
    pub fn take_seen(&mut self) -> u16 {
        std::mem::take(&mut self.seen)
    }

    /// Notes the stamp of a frame that opened.
    pub fn knows(&mut self, number: u32, run: &Run, stamp: Stamp) {
        self.last = ((run.salts(), number), stamp);
    }

    /// Notes a commit of this connection, and its frame where padding may follow.
    pub fn committed(&mut self, number: u32, run: &Run, stamp: Stamp, frame: Option<&Vec<u8>>) {
        self.knows(number, run, stamp);
        self.counts = (run.salts(), number);
        self.ended = Some(number);
        self.repeated.clear();
        if let Some(frame) = frame {
            self.repeated.extend_from_slice(frame);
        }
    }

    /// The last frame that counts of the run with these salts, if this connection has written to it.
    pub fn counted(&self, salts: Salts) -> Option<u32> {
        let (of, number) = self.counts;
        (of == salts && self.is_counting).then_some(number)
    }

    /// Takes the transaction that is being written back, because SQLite does: a write or its sync has failed.
    pub fn take_back(&mut self) {
        if let Some(before) = self.before.take() {
            self.counts = before;
        }
    }

    /// Notes that the last transaction stays, whatever fails next: it is synced, or a checkpoint or another run begins.
    pub fn stays(&mut self) {
        self.before = None;
    }

    /// Notes the first frame of a transaction. SQLite appends behind what counts. Where it only writes checksums again, the
    /// transaction is counted by now.
    fn begins(&mut self, number: u32, run: &Run) {
        let is_again = self.is_counting && self.counts.0 == run.salts() && self.counts.1 >= number;
        if !is_again {
            self.counts = (run.salts(), number - 1);
            self.before = Some(self.counts);
            self.is_counting = true;
        }
    }

    /// Notes that a sync of the log has returned, or has failed, after the commit `last`.
    pub fn synced(&mut self, last: Spot, succeeded: bool) {
        pellucid::sabotage!(LogSynced => return);
        self.synced = if succeeded { last } else { Spot::default() };
    }

    /// Whether a frame repeats the last commit's, as SQLite does without powersafe overwrite.
    fn repeats(&self, number: u32, frame: &[u8]) -> bool {
        self.ended == Some(number - 1)
            && self.repeated.len() == frame.len()
            && self.repeated[..8] == frame[..8]
            && self.repeated[FRAME_HEADER_BYTES..] == frame[FRAME_HEADER_BYTES..]
    }
}

impl WalFile {
    /// Whether SQLite may repeat a commit's last frame to the end of a sector.
    pub(super) fn pads(&self) -> bool {
        self.container.pads()
    }

    /// The stamp of the frame that SQLite has just written.
    ///
    /// # Errors
    /// A code after a line in the log, if the frame is not of the run that the log's header begins.
    pub(super) fn stamp(&mut self, number: u32, run: &Run) -> Outcome<Stamp> {
        let salts = salts_of(&self.frame);
        if salts != run.salts() && salts != Salts::default() {
            let cause = "SQLite writes it for another run of the log than the log's header names; close every connection to \
                         the database, and the next one reads the log again";
            let error = Error::unauthentic(Subject::Frame(number), cause);
            return Err(self.container.report(&error));
        }
        let count = match self.stamps.count {
            Some(count) => count,
            None => self.read_count(number, run)?,
        };
        let last = self.stamps.last.1;
        if self.stamps.repeats(number, &self.frame) {
            let padding = Stamp { first: false, synced_before: false, ..last };
            return Ok(Stamp { mark_follows: false, ..padding });
        }
        let stamps = &mut self.stamps;
        let goes_on = stamps.first.is_some_and(|first| first <= number)
            && stamps.ended.is_none_or(|ended| number <= ended);
        if !goes_on {
            stamps.first = Some(number);
            stamps.ended = None;
            stamps.synced_before = number > 1 && stamps.synced == (run.salts(), number - 1);
        }
        let first = stamps.first == Some(number);
        if first {
            // Written again from its first frame on: in an exclusive locking mode a transaction that was rolled back ends so.
            stamps.ended = None;
            stamps.begins(number, run);
        }
        let mut stamp = Stamp {
            time: last.time,
            count,
            first,
            synced_before: first && stamps.synced_before,
            reseals_only: self.container.reseals.get(),
            ..Stamp::default()
        };
        if page_and_commit(&self.frame).1 != 0 {
            let now = Time::now();
            stamp.stepped_back = now.units() + Time::STEP < last.time.units();
            stamp.time = if stamp.stepped_back { now } else { now.max(last.time) };
            stamp.mark_follows = self.is_marked();
        }
        Ok(stamp)
    }

    /// Reads how often the run was recovered, and when its last commit was. Counts a recovery that nobody has counted.
    fn read_count(&mut self, number: u32, run: &Run) -> Outcome<u16> {
        let (before, index) = (number - 1, &self.container.index);
        let is_mapped = index.is_mapped();
        if before > 0
            && is_mapped
            && index.frames() != Some(0)
            && index.salts() != Some(run.salts())
        {
            let cause = format!("its header is of another run of the log: {INDEX_CHANGED}");
            return Err(self.container.report(&Error::unauthentic(Subject::WalHeader, cause)));
        }
        let sector = self.container.log_sector()?;
        if before > 0 && self.stamps.last.0 != (run.salts(), before) {
            self.read_stamp(before, run)?;
        }
        let of_run = sector.filter(|sector| sector.run == *run.bytes());
        let count = match of_run {
            _ if before == 0 => {
                let (is_of_run, own) = (of_run.is_some(), self.stamps.last.1.time);
                let last = match sector {
                    Some(sector) if is_of_run || sector.has_ended => sector.before_ended,
                    Some(sector) => own.max(sector.before_ended),
                    None => own,
                };
                self.stamps.last = (Spot::default(), Stamp { time: last, ..Stamp::default() });
                self.stamps.counted_alone = true;
                of_run.map_or(0, |sector| sector.recoveries)
            }
            Some(sector) if !sector.under_way && (is_mapped || self.stamps.counted_alone) => {
                sector.recoveries
            }
            _ => {
                if is_mapped && sector.is_some_and(|sector| sector.under_way) {
                    // Who recovered the log was killed before it had looked behind the end.
                    self.keep_lost_behind(before)?;
                }
                let seen = self.stamps.last.1.count.max(self.stamps.take_seen());
                let seen = seen.max(self.highest_count_behind(before)?);
                let counted = self.recovered(run, sector, seen, before);
                self.container.write_log_sector(&counted)?;
                self.stamps.counted_alone = true;
                counted.recoveries
            }
        };
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        self.stamps.count = Some(count);
        Ok(count)
    }

    /// When the commit was that ends with a frame. None if there is no such frame any more, or it cannot be read.
    pub(super) fn time_of(&mut self, number: u32, run: &Run) -> Option<Time> {
        if number == 0 {
            return None;
        }
        if self.stamps.last.0 != (run.salts(), number) {
            let mut header = [0; HEADER_BYTES];
            let is_there = self.lower.read(&mut header, 0) == Ok(ReadEnd::Full)
                && Run::of(&header, self.version()) == *run
                && self.lower.size().is_ok_and(|bytes| bytes >= self.offset(number + 1));
            if !is_there {
                return None;
            }
            self.read_stamp(number, run).ok()?;
        }
        Some(self.stamps.last.1.time)
    }

    /// When the last commit was before the next run, as far as sector 2 and this connection know.
    pub(super) fn ended_before(&self, sector: &LogSector) -> Time {
        match sector.has_ended {
            true => sector.before_ended,
            false => self.stamps.last.1.time.max(sector.before_ended),
        }
    }

    /// Opens a frame for its stamp.
    fn read_stamp(&mut self, number: u32, run: &Run) -> Outcome<()> {
        if self.read_unit(number)? == ReadEnd::Short {
            let error = Error::corrupt(Subject::Frame(number), "the log ends before it");
            return Err(self.container.report(&error));
        }
        self.look_at(number, run)
    }

    /// Notes in sector 2 which run of the log begins. Written before the log's header; nothing waits for its sync.
    ///
    /// `epoch` is the one that the archive gave it, 0 if it gave none.
    pub(super) fn begin_run(&mut self, run: &Run, epoch: u32) -> Outcome<()> {
        let sector = self.container.log_sector()?.unwrap_or_else(|| self.container.worn_sector());
        if sector.under_way {
            // As above.
            self.keep_lost_behind(0)?;
        }
        let ended = self.ended_before(&sector);
        let begun = match sector.run == *run.bytes() {
            // SQLite writes the same header again where a recovery has found no frame, or the first transaction was rolled back.
            // What lies behind has lower counts.
            true => LogSector {
                recoveries: (sector.recoveries + 1).min(COUNT_MOST.into()),
                counted: 0,
                under_way: false,
                // Frames of this run that were kept may be gone.
                has_ended: false,
                kept: if sector.has_ended { 0 } else { sector.kept },
                ..sector
            },
            false => LogSector {
                wear: sector.wear,
                run: *run.bytes(),
                before: sector.run,
                before_ended: ended,
                epoch: sector.epoch,
                kept: if sector.has_ended { sector.kept } else { 0 },
                is_lost: sector.is_lost,
                ..LogSector::default()
            },
        };
        let begun = match self.container.chain() {
            Some(_) => LogSector { epoch: begun.epoch.max(epoch), ..begun },
            None => LogSector { epoch: 0, kept: 0, is_lost: false, ..begun },
        };
        self.stamps.end();
        self.stamps.synced = Spot::default();
        self.container.write_log_sector(&begun)
    }
}

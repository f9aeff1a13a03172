//! The end of a log of version 2: what its stamps say of commits that lie behind it.
//!
//! docs/design/format-2.md, "Log", has the rules and why no healthy log breaks them. In short: within one count of recoveries no
//! frame that begins a transaction outlives it behind the end, because the next transaction begins at the same frame.

use std::collections::BTreeMap;

use pellucid::log_sector::LogSector;
use pellucid::unit::generation;
use pellucid::wal::{
    page_and_commit, Chain, Run, Stamp, Version, WalHeader, COUNT_MOST, FRAME_HEADER_BYTES,
    HEADER_BYTES, RUN_BYTES,
};
use pellucid_host::code::Outcome;

use super::{Certainty, LogEnd, Lost};

/// The whole transactions of one run behind a log's end.
#[derive(Debug, Default)]
struct Behind {
    /// Those that had counted.
    commits: u32,
    /// The last of their frames, by page.
    pages: BTreeMap<u32, u32>,
    /// The number of pages of the database after the last of them.
    size: u32,
    /// A frame that does not open had been synced: one behind it says so.
    was_synced: bool,
    /// The frame at which the log breaks, and how.
    broken: Option<(u32, String)>,
    /// A frame does not open.
    is_damaged: bool,
    /// The highest recovery count of the frames that open.
    count: u16,
}

/// Which transactions behind the end had counted.
#[derive(Debug, Clone, Copy)]
struct Had {
    /// Also those before which the log does not break.
    all: bool,
    /// Those that end here or before.
    up_to: u32,
    /// Those with this recovery count, the highest that is known.
    count: u32,
}

/// A transaction that is being read.
struct Reading {
    first: Stamp,
    chain: Chain,
    pages: BTreeMap<u32, u32>,
}

impl Behind {
    fn breaks(&mut self, number: u32, cause: impl FnOnce() -> String) {
        self.broken.get_or_insert_with(|| (number, cause()));
    }

    fn add(&mut self, mut transaction: Reading, size: u32) {
        self.commits += 1;
        self.pages.append(&mut transaction.pages);
        self.size = size;
    }
}

impl LogEnd<'_> {
    /// Returns where a log of version 2 ends although commits of it follow. `counted` frames count.
    pub(super) fn lost_second(
        &mut self,
        header: [u8; HEADER_BYTES],
        counted: u32,
    ) -> Outcome<Option<Lost>> {
        let is_whole = WalHeader::parse_sealed(&header, Version::Second).is_some();
        self.run = Run::of(&header, Version::Second);
        let begins = is_whole && self.frames > 0 && self.open(1)?.is_none();
        if counted == 0 && !begins {
            if let Some(lost) = self.lost_by_sector(is_whole)? {
                return Ok(Some(lost));
            }
            self.run = Run::of(&header, Version::Second);
        }
        if !is_whole {
            return Ok(None);
        }
        let sector = self.sector.filter(|sector| sector.run == *self.run.bytes());
        let (chain, of_counted) = match counted {
            0 => (Chain::new(header), 0),
            // The last counted frame does not open; that was reported by itself.
            _ if self.open(counted)?.is_some() => return Ok(None),
            _ => (Chain::behind(header, &self.frame), Stamp::of(&self.unit).count),
        };
        let put_back = self.put_back(sector.as_ref(), counted)?.map(|frame| Lost {
            frame,
            cause: format!("WAL frame {frame}: older than the last recovery"),
            commits: 0,
            certainty: Certainty::PutBack,
            header: None,
        });
        // Nothing waits for the sector's sync, and somebody may have put an older one back: frames that are authentic say more.
        let of_frames = of_counted.max(self.highest_count_behind(header, counted)?);
        let had = Had {
            all: false,
            up_to: sector.map_or(0, |sector| sector.counted),
            count: sector.map_or(0, |sector| sector.recoveries).max(of_frames.into()),
        };
        let behind = self.behind(header, counted, Some(chain), had)?;
        let Some((frame, cause)) = behind.broken.clone() else { return Ok(put_back) };
        let attacked = behind.was_synced && had.count < COUNT_MOST.into();
        let is_lost = attacked || behind.commits > 0 && !self.are_in_database(&behind)?;
        let certainty = if attacked { Certainty::Attacked } else { Certainty::MayBe };
        // What lies before a frame that opens may be of the same transaction.
        let frame = if behind.is_damaged { frame } else { counted + 1 };
        let lost = Lost { frame, cause, commits: behind.commits, certainty, header: None };
        Ok(if is_lost { Some(lost) } else { put_back })
    }

    /// Returns the first frame behind those that the last recovery counted, if the whole transaction there was written before it.
    /// A transaction that was tried again, with the same content, may have one of its frames as it was at the first try.
    ///
    /// Whoever counts the frames has opened them.
    fn put_back(&mut self, sector: Option<&LogSector>, counted: u32) -> Outcome<Option<u32>> {
        pellucid::sabotage!(LogSector => return Ok(None));
        let Some(sector) = sector else { return Ok(None) };
        for number in sector.counted + 1..=counted {
            let clear = self.clear(number)?;
            if u32::from(Stamp::of(&clear).count) >= sector.recoveries {
                return Ok(None);
            }
            if page_and_commit(&clear).1 != 0 {
                return Ok(Some(sector.counted + 1));
            }
        }
        Ok(None)
    }

    /// The same where no frame opens under the log's header, and sector 2 names another one: the log's is damaged if commits of
    /// the run that the sector names are not in the database. That run is over, and all of it in the database, where the header
    /// is of the next one, whose first frame a power cut took.
    fn lost_by_sector(&mut self, is_whole: bool) -> Outcome<Option<Lost>> {
        pellucid::sabotage!(LogSector => return Ok(None));
        let Some(sector) = self.sector else { return Ok(None) };
        let run = Run::second(&sector.run);
        if sector.run == [0; RUN_BYTES] || is_whole && run == self.run {
            return Ok(None);
        }
        let Some(named) = run.header() else { return Ok(None) };
        self.run = run;
        let had = Had { all: true, up_to: sector.counted, count: sector.recoveries };
        let behind = self.behind(named, 0, None, had)?;
        if behind.commits == 0 || self.are_in_database(&behind)? {
            return Ok(None);
        }
        Ok(Some(Lost {
            frame: 0,
            cause: "WAL header: damaged".to_owned(),
            commits: behind.commits,
            certainty: Certainty::MayBe,
            header: Some(named),
        }))
    }

    /// The highest recovery count of the frames behind `counted` that are of the run of `header`.
    ///
    /// # Errors
    /// A code.
    pub fn highest_count_behind(
        &mut self,
        header: [u8; HEADER_BYTES],
        counted: u32,
    ) -> Outcome<u16> {
        self.run = Run::of(&header, Version::Second);
        let had = Had { all: false, up_to: 0, count: u32::MAX };
        self.behind(header, counted, None, had).map(|behind| behind.count)
    }

    /// Goes through the frames behind `counted`. `chain` continues those that count.
    fn behind(
        &mut self,
        header: [u8; HEADER_BYTES],
        counted: u32,
        mut chain: Option<Chain>,
        had: Had,
    ) -> Outcome<Behind> {
        let mut found = Behind::default();
        let mut reading: Option<Reading> = None;
        for number in counted + 1..=self.frames {
            if let Some(error) = self.open(number)? {
                found.breaks(number, || error.to_string());
                // What a scan has cut off comes back with a power cut, under a key that is gone; all of it is in the database.
                // Nothing authenticates the generation, so it makes less sure what was lost, and hides nothing.
                let named = generation(&self.unit).unwrap_or(0);
                found.is_damaged |= named == 0 || named >= self.oldest;
                reading = None;
                continue;
            }
            let stamp = Stamp::of(&self.unit);
            found.count = found.count.max(stamp.count);
            if chain.as_mut().is_some_and(|chain| !chain.goes_on(&self.frame)) {
                found.breaks(number, || format!("WAL frame {number}: of an earlier transaction"));
            }
            let is_present = u32::from(stamp.count) >= had.count;
            if stamp.first {
                found.was_synced |= found.is_damaged && stamp.synced_before && is_present;
                let chain = Chain::behind(header, &self.frame);
                reading = Some(Reading { first: stamp, chain, pages: BTreeMap::new() });
            } else if reading.as_mut().is_some_and(|read| !read.chain.goes_on(&self.frame)) {
                reading = None;
            }
            let (page, size) = page_and_commit(&self.frame);
            if let Some(read) = &mut reading {
                read.pages.insert(page, number);
            }
            let Some(read) = reading.take_if(|_| size != 0) else { continue };
            let had_counted = number <= had.up_to || u32::from(read.first.count) >= had.count;
            if had_counted && (had.all || found.broken.is_some()) {
                found.add(read, size);
            }
        }
        Ok(found)
    }

    /// Whether the database file has each page as these transactions left it: their loss is none then.
    fn are_in_database(&mut self, behind: &Behind) -> Outcome<bool> {
        for (page, number) in behind.pages.range(..=behind.size) {
            let opens = self.open(*number)?.is_none();
            if !opens || !(self.has_page)(*page, &self.frame[FRAME_HEADER_BYTES..])? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

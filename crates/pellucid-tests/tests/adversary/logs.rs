//! What SQLite makes of a log that lies beside a database, and what has to be told of commits behind its end: docs/format.md,
//! and docs/design/format-2.md, "Log".
//!
//! Of a frame the archive knows when it was written: in which run of which log, as which, behind which, after how many recoveries,
//! and whether what was before it had been synced. What its stamp says of that is not read.

use std::collections::BTreeMap;

use pellucid::wal::Version;

use crate::archive::{tail, Archive, Frame, Head, Unit, FRAME, LOG_HEADER, REGION, RUN_BYTES};
use crate::world::PAGE;

/// A log, as the oracle reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Log {
    /// The frames that count.
    pub counted: usize,
    /// What is told of the commits behind them.
    pub lost: Lost,
}

/// What is told of commits behind the end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    Nothing,
    /// They are told or not.
    Unsure,
    /// They may be lost.
    MayBe,
    /// Somebody has taken them.
    Attacked,
}

/// Whether a log is of another version than its database, and recognised as such: one of version 2 by its number alone, one of
/// version 1 if its header is whole.
pub fn is_of_other_version(archive: &Archive, log: &[u8], of_database: Version) -> bool {
    let word = |at: usize| log.get(at..at + 4).map(|word| word.try_into().map(u32::from_be_bytes));
    let (Some(Ok(magic)), Some(Ok(number))) = (word(0), word(4)) else { return false };
    if magic & !1 != 0x377f_0682 {
        return false;
    }
    match of_database {
        Version::First => number == 0x5045_4c02,
        Version::Second => {
            number == 0x5045_4c01
                && log.get(..LOG_HEADER).is_some_and(|it| archive.is_log_header(it))
        }
    }
}

impl Archive {
    /// What SQLite makes of a log beside a database `file` under `head`.
    pub fn log(&self, log: &[u8], head: &Head, file: &[u8]) -> Log {
        let frames = log.get(LOG_HEADER..).unwrap_or_default().chunks_exact(FRAME).collect();
        let header = log.get(..LOG_HEADER).filter(|header| self.is_log_header(header));
        let read = Read { archive: self, head, file, frames };
        match head.version {
            Version::First => read.first(header, log.get(16..24).unwrap_or_default()),
            Version::Second => read.second(header),
        }
    }
}

struct Read<'a> {
    archive: &'a Archive,
    head: &'a Head,
    file: &'a [u8],
    frames: Vec<&'a [u8]>,
}

impl<'a> Read<'a> {
    /// The frame at a place, counted from 0, if it is one of there under a key of the database.
    fn known(&self, at: usize) -> Option<(&'a Unit, &'a Frame)> {
        let unit = self.archive.frame(self.frames.get(at)?)?;
        let frame = unit.frame.as_ref()?;
        let opens = self.head.deks.contains(&unit.dek) && frame.number as usize == at + 1;
        opens.then_some((unit, frame))
    }

    /// Whether the frame at a place continues the one before it.
    fn goes_on(&self, at: usize, frame: &Frame) -> bool {
        match at {
            0 => frame.before.is_empty(),
            _ => frame.before == tail(self.frames[at - 1]),
        }
    }

    fn first(&self, header: Option<&[u8]>, salts: &[u8]) -> Log {
        let (frames, is_whole) = (&self.frames, header.is_some());
        let of_log = |at: usize| self.known(at).filter(|_| frames[at][8..16] == *salts);
        let mut good = 0;
        let mut counted = 0;
        while let Some((_, frame)) = of_log(good).filter(|_| is_whole) {
            if !self.goes_on(good, frame) {
                break;
            }
            good += 1;
            if frame.ends != 0 {
                counted = good;
            }
        }
        let salts = is_whole.then_some(salts);
        let commits = match is_whole {
            false => self.commits(0, salts).0,
            // A frame that opens and continues no other is what a rollback or a recovery leaves.
            true if of_log(good).is_some() => {
                let from = if good == counted { self.commits(good, salts).1 } else { good };
                match self.commits(from, salts).0 {
                    1 => 0,
                    commits => commits,
                }
            }
            true => self.commits(good + 1, salts).0,
        };
        let lost = match commits {
            0 => Lost::Nothing,
            1 => Lost::Unsure,
            _ => Lost::Attacked,
        };
        Log { counted, lost }
    }

    /// The commits of the first frames from a place on that open and continue one another, and the place behind these.
    fn commits(&self, from: usize, salts: Option<&[u8]>) -> (usize, usize) {
        let mut commits = 0;
        let mut run: Option<&[u8]> = None;
        for (at, bytes) in self.frames.iter().enumerate().skip(from) {
            let of_it = salts.is_none_or(|salts| bytes[8..16] == *salts);
            let opens = self.known(at).filter(|_| of_it);
            match (opens, run) {
                (None, None) => continue,
                (None, Some(_)) => return (commits, at),
                (Some((_, frame)), Some(salts))
                    if bytes[8..16] != *salts || !self.goes_on(at, frame) =>
                {
                    return (commits, at);
                }
                (Some((_, frame)), _) => {
                    run = Some(&bytes[8..16]);
                    commits += usize::from(frame.ends != 0);
                }
            }
        }
        (commits, self.frames.len())
    }

    /// The same with what a frame of version 2 is bound to: the salts and the checksum of the log's header.
    fn of_run(&self, at: usize, run: &[u8]) -> Option<(&'a Unit, &'a Frame)> {
        self.known(at).filter(|(_, frame)| frame.run[8..] == run[8..])
    }

    fn second(&self, header: Option<&[u8]>) -> Log {
        let sector = self.archive.log_sector(self.file, self.head);
        let named = sector.filter(|sector| sector.run != [0; RUN_BYTES]);
        let run = header.map(|header| &header[LOG_HEADER - RUN_BYTES..]);
        let mut counted = 0;
        let mut good = 0;
        while let Some((_, frame)) = run.and_then(|run| self.of_run(good, run)) {
            if !self.goes_on(good, frame) {
                break;
            }
            good += 1;
            if frame.ends != 0 {
                counted = good;
            }
        }
        let begins = run.is_some_and(|run| self.of_run(0, run).is_some());
        let other = named.filter(|sector| run.is_none_or(|run| *run != sector.run));
        if let Some(sector) = other.filter(|_| !begins) {
            // The log's header is damaged, if frames of the run that the sector names are not in the file.
            let behind = self.behind(&sector.run, 0, |_, _| true);
            if !behind.is_empty() && !self.has(&behind) {
                return Log { counted, lost: Lost::MayBe };
            }
        }
        let Some(run) = run else { return Log { counted, lost: Lost::Nothing } };
        let sector = named.filter(|sector| *run == sector.run);
        let (known, up_to) = sector.map_or((0, 0), |sector| sector.recovered);
        // Frames are authentic, and the sector may be an older one.
        let seen = (counted.saturating_sub(1)..self.frames.len())
            .filter_map(|at| self.of_run(at, run))
            .map(|(_, frame)| frame.count);
        let count = seen.max().unwrap_or(0).max(known);
        // A whole transaction behind the end has counted if the last recovery counted it, or if it is of later.
        let had = |number: u32, of: u32| number <= up_to || of == count;
        let behind = self.behind(run, counted, had);
        let damaged = (counted..self.frames.len()).find(|at| self.of_run(*at, run).is_none());
        // One that goes on behind the end, to be committed yet, breaks nothing.
        let is_broken = good < self.frames.len();
        let was_synced = |at: usize| {
            let of_it = self.of_run(at, run);
            of_it.is_some_and(|(_, it)| it.is_first && it.is_synced && it.count == count)
        };
        let attacked = damaged.is_some_and(|from| (from..self.frames.len()).any(was_synced));
        let lost = match (is_broken, attacked) {
            (true, true) => Lost::Attacked,
            (true, false) if !behind.is_empty() && !self.has(&behind) => Lost::MayBe,
            _ => Lost::Nothing,
        };
        Log { counted, lost }
    }

    /// The pages of the whole transactions of `run` behind `counted` frames that had counted, each with its last frame.
    fn behind(
        &self,
        run: &[u8],
        counted: usize,
        had: impl Fn(u32, u32) -> bool,
    ) -> BTreeMap<u32, &'a Unit> {
        let mut pages = BTreeMap::new();
        let mut size = 0;
        let mut reading: Option<(u32, BTreeMap<u32, &'a Unit>)> = None;
        for at in counted..self.frames.len() {
            let Some((unit, frame)) = self.of_run(at, run) else {
                reading = None;
                continue;
            };
            if frame.is_first {
                reading = Some((frame.count, BTreeMap::new()));
            } else if !self.goes_on(at, frame) {
                reading = None;
            }
            let Some((count, read)) = &mut reading else { continue };
            read.insert(unit.page, unit);
            if frame.ends != 0 {
                if had(frame.number, *count) {
                    size = frame.ends;
                    pages.append(read);
                }
                reading = None;
            }
        }
        pages.retain(|page, _| *page <= size);
        pages
    }

    /// Whether the database file has each of these pages as these frames do: it has the same content in some state.
    fn has(&self, pages: &BTreeMap<u32, &Unit>) -> bool {
        pages.iter().all(|(page, frame)| {
            let at = REGION + (*page as usize - 1) * PAGE;
            let there = self.file.get(at..at + PAGE).and_then(|bytes| self.archive.page(bytes));
            there.is_some_and(|unit| {
                let opens = self.head.deks.contains(&unit.dek) && unit.page == *page;
                opens && !unit.states.is_disjoint(&frame.states)
            })
        })
    }
}

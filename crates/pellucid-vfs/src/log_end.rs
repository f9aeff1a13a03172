//! Where a log ends although whole commits of it lie behind that place.

mod second;

use std::collections::BTreeMap;
use std::fmt;

use pellucid::header::Header;
use pellucid::keys::ContainerKeys;
use pellucid::log_sector::LogSector;
use pellucid::unit::generation;
use pellucid::wal::{
    open_frame, page_and_commit, Chain, Run, Version, FRAME_CLEAR_BYTES, FRAME_HEADER_BYTES,
    HEADER_BYTES,
};
use pellucid::Error;
use pellucid_host::code::Outcome;

use crate::lower::ReadEnd;

/// The part of a log behind the frames that SQLite counts.
///
/// A log ends in an ordinary way at a frame torn by a crash, at frames of an older run, or at
/// frames of this run that a rollback or an earlier recovery left and that do not continue the ones
/// before. A frame that does not open is no such end if whole successive commits lie behind it.
pub struct LogEnd<'a> {
    read: &'a Read<'a>,
    has_page: &'a HasPage<'a>,
    keys: &'a ContainerKeys,
    /// The run that frames are opened for. In version 1 they name it themselves.
    run: Run,
    /// What sector 2 of a database of version 2 says.
    sector: Option<LogSector>,
    /// The oldest generation that can still be read.
    oldest: u32,
    frames: u32,
    unit: Vec<u8>,
    frame: Vec<u8>,
}

impl fmt::Debug for LogEnd<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogEnd").field("frames", &self.frames).finish_non_exhaustive()
    }
}

/// Commits that SQLite does not count, because the log is damaged before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The damaged frame; 0 is the header.
    pub frame: u32,
    /// What is wrong with it.
    pub cause: String,
    /// The whole commits behind it.
    pub commits: u32,
    /// How sure that is.
    pub certainty: Certainty,
    /// The log's header as it should be, if that is what is damaged, and known.
    pub header: Option<[u8; HEADER_BYTES]>,
}

/// How sure it is that commits were taken out of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// A power cut can do it where commits are not synced, and somebody else, too.
    MayBe,
    /// The same in version 1, whose logs do not tell one from the other.
    Lost,
    /// What is damaged had been synced, so no power cut did it.
    Attacked,
    /// A commit that an earlier recovery had not counted counts again. Somebody can do that, and a failed commit, a kill and a
    /// power cut together.
    PutBack,
}

impl Lost {
    fn in_first(frame: u32, cause: String, commits: u32) -> Self {
        Self { frame, cause, commits, certainty: Certainty::Lost, header: None }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.certainty == Certainty::PutBack {
            let what =
                "what that had left out counts again, and a commit that was in its place does not";
            let how = "somebody has put it back, or a commit failed and a crash took the next one";
            return write!(f, "{}: {what}; {how}", self.cause);
        }
        let (commits, lie) = match self.commits {
            0 => ("what shows that it had counted".to_owned(), "lies"),
            1 => ("one whole commit".to_owned(), "lies"),
            count => (format!("{count} whole commits"), "lie"),
        };
        write!(f, "{}: {commits} {lie} behind it, and SQLite counts none of that; ", self.cause)?;
        f.write_str(match self.certainty {
            Certainty::Attacked => "what is damaged had been synced, so no crash did it",
            Certainty::MayBe | Certainty::Lost | Certainty::PutBack => {
                "it was damaged, or a crash took it before it was synced (synchronous=NORMAL, OFF)"
            }
        })
    }
}

/// Reads bytes of the log at an offset, as they lie on disk.
pub type Read<'a> = dyn Fn(&mut [u8], u64) -> Outcome<ReadEnd> + 'a;

/// Whether the database file has a page with this content, whose last bytes are those of the tail.
pub type HasPage<'a> = dyn Fn(u32, &[u8]) -> Outcome<bool> + 'a;

/// The database that a log belongs to.
pub struct Database<'a> {
    /// Its header.
    pub header: Option<Header>,
    /// Its keys.
    pub keys: &'a ContainerKeys,
    /// What its file has.
    pub has_page: &'a HasPage<'a>,
    /// What its sector 2 says, in version 2.
    pub sector: Option<LogSector>,
}

impl fmt::Debug for Database<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}

impl<'a> LogEnd<'a> {
    /// Looks at the log of `size` bytes that `read` reads, in frames of `frame_bytes`. `database` is what the log is
    /// beside.
    pub fn new(read: &'a Read<'a>, size: u64, database: Database<'a>, frame_bytes: usize) -> Self {
        let frames = size.saturating_sub(HEADER_BYTES as u64) / frame_bytes as u64;
        let frames = u32::try_from(frames).unwrap_or(u32::MAX - 1);
        let Database { header, keys, has_page, sector } = database;
        let version = header.as_ref().map_or(Version::First, Version::of_database);
        let run = Run::of(&[0; HEADER_BYTES], version);
        let rows = header.map(|header| header.deks).unwrap_or_default();
        let oldest = rows.iter().map(|row| row.first_generation).min().unwrap_or(0);
        let (unit, frame) = (vec![0; frame_bytes], vec![0; frame_bytes]);
        Self { read, has_page, keys, run, sector, oldest, frames, unit, frame }
    }

    /// Reads page number, commit size and salts of a frame, authentic or not.
    fn clear(&self, number: u32) -> Outcome<[u8; FRAME_CLEAR_BYTES]> {
        let mut clear = [0; FRAME_CLEAR_BYTES];
        (self.read)(&mut clear, self.at(number))?;
        Ok(clear)
    }

    fn at(&self, number: u32) -> u64 {
        HEADER_BYTES as u64 + u64::from(number - 1) * self.unit.len() as u64
    }

    /// Opens a frame into `frame`. Returns the error if it does not open.
    fn open(&mut self, number: u32) -> Outcome<Option<Error>> {
        let at = self.at(number);
        (self.read)(&mut self.unit, at)?;
        Ok(open_frame(self.keys, &self.run, number, &self.unit, &mut self.frame).err())
    }

    /// Whether the log up to frame `counted`, which SQLite counts, is known to have no padding.
    ///
    /// # Errors
    /// A code.
    pub fn is_unpadded(&mut self, counted: u32) -> Outcome<bool> {
        if self.run.version() == Version::Second {
            return Ok(true);
        }
        let mut padding = Padding::default();
        for number in 1..=counted {
            self.open(number)?;
            padding.is_commit(&self.frame);
        }
        Ok(padding.is_absent())
    }

    /// Returns the frame where the log ends although commits of it follow. `counted` frames count, and `unpadded` says that
    /// they have no padding.
    ///
    /// # Errors
    /// A code.
    pub fn lost(
        &mut self,
        header: [u8; HEADER_BYTES],
        counted: u32,
        unpadded: bool,
    ) -> Outcome<Option<Lost>> {
        if self.run.version() == Version::Second {
            return self.lost_second(header, counted);
        }
        let (number, cause) = match self.end(header, counted)? {
            End::Nothing => return Ok(None),
            End::Older(number) => return self.lost_behind_older(header, counted, number),
            End::Broken(number, cause) => (number, cause),
        };
        // Under a key that no page has after a scan, nor had the log, a frame comes back if a power cut restores what was cut
        // off, all of which the scan had brought into the file. But nothing authenticates the generation of a frame that does
        // not open.
        let named = generation(&self.unit);
        let of_older_key = counted == 0 && named.is_some_and(|named| named < self.oldest);
        let clear = self.clear(number)?;
        let commits = self.commits(header, number + 1, Some(&header[16..24]))?.0;
        // A transaction that was being written when the power went may lack any of its frames and
        // have its last one. So the commit behind the gap has to be another transaction's: either
        // there are two, or the torn frame says that it ends a transaction and is no padding behind
        // a commit.
        let of_this_log = clear[8..12] == header[16..20] || clear[12..16] == header[20..24];
        let ends_one = of_this_log && clear[4..8] != [0; 4];
        let mut is_lost = commits > 1 || commits == 1 && ends_one && unpadded;
        if is_lost && of_older_key {
            is_lost = !self.is_in_database(header, number + 1)?;
        }
        Ok(is_lost.then_some(Lost::in_first(number, cause, commits)))
    }

    /// Returns the frame where a recovery ended that met no damage, if commits follow all the same. `counted` frames count.
    ///
    /// # Errors
    /// A code.
    pub fn lost_without_damage(
        &mut self,
        header: [u8; HEADER_BYTES],
        counted: u32,
    ) -> Outcome<Option<Lost>> {
        if self.run.version() == Version::Second {
            return self.lost_second(header, counted);
        }
        match self.end(header, counted)? {
            End::Older(number) => self.lost_behind_older(header, counted, number),
            _ => Ok(None),
        }
    }

    /// How the log ends behind `counted` frames.
    fn end(&mut self, header: [u8; HEADER_BYTES], counted: u32) -> Outcome<End> {
        let mut chain = match counted {
            0 => Chain::new(header),
            // The last counted frame does not open; that was reported by itself.
            _ if self.open(counted)?.is_some() => return Ok(End::Nothing),
            _ => Chain::behind(header, &self.frame),
        };
        for number in counted + 1..=self.frames {
            let is_of_it = self.clear(number)?[8..16] == header[16..24];
            match self.open(number)? {
                _ if !is_of_it => {
                    return Ok(End::Broken(number, format!("WAL frame {number}: not of this log")))
                }
                Some(error) => return Ok(End::Broken(number, error.to_string())),
                None if chain.goes_on(&self.frame) && page_and_commit(&self.frame).1 == 0 => {}
                None => return Ok(End::Older(number)),
            }
        }
        Ok(End::Nothing)
    }

    /// Returns the header as the place where the log ends, if it is damaged and commits follow.
    ///
    /// # Errors
    /// A code.
    pub fn lost_by_header(&mut self, mut header: [u8; HEADER_BYTES]) -> Outcome<Option<Lost>> {
        if self.run.version() == Version::Second {
            return self.lost_second(header, 0);
        }
        header[3] = u8::from(cfg!(target_endian = "big"));
        // Without powersafe overwrite a write of the first transaction may tear the header's sector
        // too.
        let begins = self.frames > 0 && self.open(1)?.is_none();
        let commits = self.commits(header, 1, None)?.0;
        let is_lost = commits > 1 || commits == 1 && begins;
        let cause = "WAL header: damaged".to_owned();
        Ok(is_lost.then_some(Lost::in_first(0, cause, commits)))
    }

    /// Whether the database file has each page as the commits of this log from frame `first` on left it: their loss is none then.
    fn is_in_database(&mut self, header: [u8; HEADER_BYTES], first: u32) -> Outcome<bool> {
        let mut pages = BTreeMap::new();
        let mut since_commit = BTreeMap::new();
        for number in first..=self.frames {
            if self.clear(number)?[8..16] != header[16..24] || self.open(number)?.is_some() {
                continue;
            }
            let (page, commit) = page_and_commit(&self.frame);
            since_commit.insert(page, number);
            if commit != 0 {
                pages.append(&mut since_commit);
            }
        }
        for (page, number) in pages {
            let opens = self.open(number)?.is_none();
            if !opens || !(self.has_page)(page, &self.frame[FRAME_HEADER_BYTES..])? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same where frame `number` opens, but continues none of this log: a rollback or a recovery has left it. These leave
    /// frames that continue one another behind the log's end, and no commits behind those. Somebody may have put such a frame back
    /// in the place of a newer one.
    fn lost_behind_older(
        &mut self,
        header: [u8; HEADER_BYTES],
        counted: u32,
        number: u32,
    ) -> Outcome<Option<Lost>> {
        let salts = Some(&header[16..24]);
        // Behind a transaction without an end comes nothing but what a rollback left.
        let from = match number == counted + 1 {
            true => self.commits(header, number, salts)?.1,
            false => number,
        };
        let commits = self.commits(header, from, salts)?.0;
        let cause = format!("WAL frame {number}: of an earlier transaction");
        Ok((commits > 1).then_some(Lost::in_first(counted + 1, cause, commits)))
    }

    /// Counts the commits in the first run of successive frames from `first` on that open and
    /// continue one another. Returns the number of the frame behind the run, too.
    fn commits(
        &mut self,
        header: [u8; HEADER_BYTES],
        first: u32,
        salts: Option<&[u8]>,
    ) -> Outcome<(u32, u32)> {
        let mut chain: Option<Chain> = None;
        let mut commits = 0;
        let mut padding = Padding::default();
        for number in first..=self.frames {
            let of_it = match salts {
                Some(salts) => self.clear(number)?[8..16] == *salts,
                None => true,
            };
            let opens = of_it && self.open(number)?.is_none();
            let goes_on = chain.as_mut().map(|chain| opens && chain.goes_on(&self.frame));
            match goes_on {
                None if !opens => continue,
                None => chain = Some(Chain::behind(header, &self.frame)),
                Some(true) => {}
                Some(false) => return Ok((commits, number)),
            }
            commits += u32::from(padding.is_commit(&self.frame));
        }
        Ok((commits, self.frames + 1))
    }
}

/// How a log ends.
enum End {
    /// No frame follows, but for those of a transaction without an end.
    Nothing,
    /// This frame does not open, or names another log, for this reason.
    Broken(u32, String),
    /// This frame opens, and continues none of those before it.
    Older(u32),
}

/// The padding behind a commit: without powersafe overwrite SQLite repeats the commit's last frame
/// to the end of a sector.
#[derive(Debug, Default)]
pub struct Padding {
    /// The last frame, if it was a commit's.
    commit: Vec<u8>,
    repeated: bool,
    followed: bool,
}

impl Padding {
    /// Whether the next frame ends a transaction and is no repetition.
    pub fn is_commit(&mut self, frame: &[u8]) -> bool {
        let repeats = self.commit.len() == frame.len()
            && self.commit[..8] == frame[..8]
            && self.commit[FRAME_HEADER_BYTES..] == frame[FRAME_HEADER_BYTES..];
        self.repeated |= repeats;
        self.followed |= !repeats && !self.commit.is_empty();
        self.commit.clear();
        let ends = page_and_commit(frame).1 != 0;
        if ends {
            self.commit.extend_from_slice(frame);
        }
        ends && !repeats
    }

    /// Whether this log is known to have no padding.
    pub fn is_absent(&self) -> bool {
        self.followed && !self.repeated
    }
}

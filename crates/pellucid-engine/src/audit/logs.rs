//! The frames of the WAL that SQLite counts, and the records of a hot journal.

use std::path::Path;
use std::time::Duration;

use pellucid::keys::ContainerKeys;
use pellucid::unit::generation;
use pellucid::wal::{
    open_frame, page_and_commit, refuse_newer, Chain, WalHeader, FRAME_CLEAR_BYTES,
    FRAME_HEADER_BYTES, HEADER_BYTES,
};
use pellucid::{Error, Subject};
use pellucid_files::paths::beside;
use pellucid_host::code::Outcome;
use pellucid_host::connection::Handle;
use pellucid_host::DatabaseError;
use pellucid_vfs::link::{Link, INDEX_CHANGED};
use pellucid_vfs::open_file::OpenFile;
use pellucid_vfs::opened::{self, OpenWal};

use super::{io, Audit};
use crate::page_source::HotJournal;

const ATTEMPTS: usize = 5;
const PAUSE: Duration = Duration::from_millis(5);

/// Authenticates the records of a journal that no running writer holds.
pub fn check_journal(
    path: &Path,
    handle: &Handle<'_>,
    audit: &mut Audit,
) -> Result<(), DatabaseError> {
    let open = opened::sealed(handle)?;
    let Some((lower, link)) = open else { return Ok(()) };
    let name = beside(path, "-journal");
    for attempt in 0..ATTEMPTS {
        let (records, damaged) = match HotJournal::open(&name, &link) {
            Ok(None) => return Ok(()),
            Ok(Some(journal)) => (journal.records(), journal.remarks().collect()),
            Err(error @ (Error::Unauthentic { .. } | Error::Corrupt { .. })) => {
                (0, vec![error.to_string()])
            }
            Err(error) => return Err(error.into()),
        };
        // RESERVED is checked last: its holder may have begun or ended the journal while it was
        // read.
        if lower.is_reserved() {
            return Ok(());
        }
        if damaged.is_empty() || attempt == ATTEMPTS - 1 {
            audit.records = records as u64;
            audit.damaged_records = damaged;
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Authenticates the frames up to the last one that SQLite counts. Frames behind it are left over.
///
/// Once all of the log is in the database, another process may restart it during the check; then it
/// is read again.
pub fn check_frames(
    lower: OpenFile<'_>,
    wal: &OpenWal<'_>,
    link: &Link,
    audit: &mut Audit,
) -> Result<(), DatabaseError> {
    let header = |header: &mut [u8; HEADER_BYTES]| wal.read(header, 0).map_err(io);
    let keys = link.keys().map_err(io)?;
    let mut lost_before = None;
    for _ in 0..ATTEMPTS {
        let mut before = [0; HEADER_BYTES];
        header(&mut before)?;
        refuse_newer(&before)?;
        let Some(parsed) = WalHeader::parse(&before) else {
            let page_bytes = link.page_size().unwrap_or(4096);
            let mut log =
                Behind::new(wal, (link, &keys), page_bytes + FRAME_HEADER_BYTES).map_err(io)?;
            let lost = log.lost_by_header(before).map_err(io)?;
            if lost.is_none() || lost == lost_before {
                audit.damaged_frames.extend(lost);
                return Ok(());
            }
            lost_before = lost;
            std::thread::sleep(PAUSE);
            continue;
        };
        let frame_bytes = parsed.page_size as usize + FRAME_HEADER_BYTES;
        let (mut unit, mut frame) = (vec![0; frame_bytes], vec![0; frame_bytes]);
        let counted = lower.frames_counted().map_err(io)?;
        audit.damaged_frames.clear();
        let mut padding = Padding::default();
        for number in 1..=counted {
            let at = HEADER_BYTES as u64 + u64::from(number - 1) * frame_bytes as u64;
            wal.read(&mut unit, at).map_err(io)?;
            let opened = open_frame(&keys, number, &unit, &mut frame);
            let page = page_and_commit(&frame).0;
            padding.is_commit(&frame);
            if let Err(error) = opened {
                audit.damaged_frames.push((number, error.to_string()));
            } else if link.index.page_of(number).is_some_and(|said| said != page) {
                let cause =
                    format!("of page {page}, and the wal-index says otherwise: {INDEX_CHANGED}");
                let error = Error::unauthentic(Subject::Frame(number), cause);
                audit.damaged_frames.push((number, error.to_string()));
            }
        }
        audit.frames = u64::from(counted);
        let mut after = [0; HEADER_BYTES];
        header(&mut after)?;
        if !audit.damaged_frames.is_empty() {
            match after == before {
                true => break,
                false => continue,
            }
        }
        // An unfinished frame of a writer is another frame, or none, a moment later.
        let mut log = Behind::new(wal, (link, &keys), frame_bytes).map_err(io)?;
        let lost = log.lost(before, counted, padding.is_absent()).map_err(io)?;
        if lost.is_none() || lost == lost_before {
            audit.damaged_frames.extend(lost);
            break;
        }
        lost_before = lost;
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// The part of a log behind the frames that SQLite counts.
///
/// A log ends in an ordinary way at a frame torn by a crash, at frames of an older run, or at
/// frames of this run that a rollback or an earlier recovery left and that do not continue the ones
/// before. A frame that does not open is no such end if whole successive commits lie behind it.
struct Behind<'a> {
    wal: &'a OpenWal<'a>,
    keys: &'a ContainerKeys,
    /// The oldest generation that can still be read.
    oldest: u32,
    frames: u32,
    unit: Vec<u8>,
    frame: Vec<u8>,
}

/// A damaged frame and its cause. Number 0 is the header.
type Lost = (u32, String);

impl<'a> Behind<'a> {
    fn new(
        wal: &'a OpenWal<'a>,
        (link, keys): (&Link, &'a ContainerKeys),
        frame_bytes: usize,
    ) -> Outcome<Self> {
        let frames = wal.size()?.saturating_sub(HEADER_BYTES as u64) / frame_bytes as u64;
        let frames = u32::try_from(frames).unwrap_or(u32::MAX - 1);
        let rows = link.header().map(|header| header.deks).unwrap_or_default();
        let oldest = rows.iter().map(|row| row.first_generation).min().unwrap_or(0);
        let (unit, frame) = (vec![0; frame_bytes], vec![0; frame_bytes]);
        Ok(Self { wal, keys, oldest, frames, unit, frame })
    }

    /// Reads page number, commit size and salts of a frame, authentic or not.
    fn clear(&self, number: u32) -> Outcome<[u8; FRAME_CLEAR_BYTES]> {
        let mut clear = [0; FRAME_CLEAR_BYTES];
        self.wal.read(&mut clear, self.at(number))?;
        Ok(clear)
    }

    fn at(&self, number: u32) -> u64 {
        HEADER_BYTES as u64 + u64::from(number - 1) * self.unit.len() as u64
    }

    /// Opens a frame into `frame`. Returns the error if it does not open.
    fn open(&mut self, number: u32) -> Outcome<Option<Error>> {
        let at = self.at(number);
        self.wal.read(&mut self.unit, at)?;
        Ok(open_frame(self.keys, number, &self.unit, &mut self.frame).err())
    }

    /// Returns the frame where the log ends although commits of it follow.
    fn lost(
        &mut self,
        header: [u8; HEADER_BYTES],
        counted: u32,
        unpadded: bool,
    ) -> Outcome<Option<Lost>> {
        let mut chain = match counted {
            0 => Chain::new(header),
            // The last counted frame does not open; that was reported by itself.
            _ if self.open(counted)?.is_some() => return Ok(None),
            _ => Chain::behind(header, &self.frame),
        };
        let mut number = counted;
        let cause = loop {
            number += 1;
            if number > self.frames {
                return Ok(None);
            }
            if self.clear(number)?[8..16] != header[16..24] {
                break format!("WAL frame {number}: not of this log");
            }
            match self.open(number)? {
                // The frame is under a key that no page has after a scan, nor had the log: a power
                // cut has restored what was cut off.
                Some(_) if generation(&self.unit).is_some_and(|named| named < self.oldest) => {
                    return Ok(None)
                }
                Some(error) => break error.to_string(),
                None if chain.goes_on(&self.frame) && page_and_commit(&self.frame).1 == 0 => {}
                None => return Ok(None),
            }
        };
        let clear = self.clear(number)?;
        let commits = self.commits(header, number + 1, Some(&header[16..24]))?;
        // A transaction that was being written when the power went may lack any of its frames and
        // have its last one. So the commit behind the gap has to be another transaction's: either
        // there are two, or the torn frame says that it ends a transaction and is no padding behind
        // a commit.
        let of_this_log = clear[8..12] == header[16..20] || clear[12..16] == header[20..24];
        let ends_one = of_this_log && clear[4..8] != [0; 4];
        let is_lost = commits > 1 || commits == 1 && ends_one && unpadded;
        Ok(is_lost.then(|| (number, told(&cause, commits))))
    }

    /// Returns the frame where the log ends although commits of it follow, if the header is
    /// damaged.
    fn lost_by_header(&mut self, mut header: [u8; HEADER_BYTES]) -> Outcome<Option<Lost>> {
        header[3] = u8::from(cfg!(target_endian = "big"));
        // Without powersafe overwrite a write of the first transaction may tear the header's sector
        // too.
        let begins = self.frames > 0 && self.open(1)?.is_none();
        let commits = self.commits(header, 1, None)?;
        let is_lost = commits > 1 || commits == 1 && begins;
        Ok(is_lost.then(|| (0, told("WAL header: damaged", commits))))
    }

    /// Counts the commits in the first run of successive frames from `first` on that open and
    /// continue one another.
    fn commits(
        &mut self,
        header: [u8; HEADER_BYTES],
        first: u32,
        salts: Option<&[u8]>,
    ) -> Outcome<u32> {
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
                Some(false) => break,
            }
            commits += u32::from(padding.is_commit(&self.frame));
        }
        Ok(commits)
    }
}

/// The padding behind a commit: without powersafe overwrite SQLite repeats the commit's last frame
/// to the end of a sector.
#[derive(Default)]
struct Padding {
    /// The last frame, if it was a commit's.
    commit: Vec<u8>,
    repeated: bool,
    followed: bool,
}

impl Padding {
    /// Whether the next frame ends a transaction and is no repetition.
    fn is_commit(&mut self, frame: &[u8]) -> bool {
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
    fn is_absent(&self) -> bool {
        self.followed && !self.repeated
    }
}

fn told(cause: &str, commits: u32) -> String {
    let (commits, lie) = match commits {
        1 => ("one whole commit".to_owned(), "lies"),
        count => (format!("{count} whole commits"), "lie"),
    };
    format!(
        "{cause}: {commits} {lie} behind it, and SQLite counts none of that; it was damaged, or a crash took it before it was \
         synced (synchronous=NORMAL, OFF). Copy the database and its `-wal` before any program opens it: the next commit \
         writes over them"
    )
}

//! The commits that no log backup has yet: frames kept in the archive, in the order of the chain.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pellucid::hash::Sha256;
use pellucid::header::Header;
use pellucid::keys::ContainerKeys;
use pellucid::log_archive::{ArchiveState, Mark, MarkedFrame, Segment, SEGMENT_HEAD_BYTES};
use pellucid::lsn::Lsn;
use pellucid::shown::Shown;
use pellucid::unit::TAIL_BYTES;
use pellucid::wal::{
    open_frame, page_and_commit, Run, Stamp, Version as LogVersion, FRAME_HEADER_BYTES,
};
use pellucid::{Error, Result, Subject};
use pellucid_host::connection::{uri, Handle};
use pellucid_host::{ffi, DatabaseError};
use pellucid_vfs::log_archive::{other_frames, Archive};
use pellucid_vfs::{opened, witness};

use super::{no_archive, PATIENCE};
use crate::header_change::{cannot_write, in_use};

/// Bytes that are read with one call.
const PIECE_BYTES: usize = 1 << 20;

/// A commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// Its number.
    pub lsn: Lsn,
    /// When, in microseconds since 1970.
    pub time: u64,
    /// Pages of the database behind it.
    pub pages: u32,
    /// Its clock was behind that of an earlier commit.
    pub stepped_back: bool,
    /// It changes no page, but for the key that it is under: a scan's.
    pub reseals_only: bool,
}

/// What one commit made of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The page.
    pub page: u32,
    /// The commit, by its place among the commits.
    pub commit: u32,
    /// Where it is: which frames, and which of them.
    at: (u32, u32),
}

/// A commit that has a mark.
#[derive(Debug)]
pub struct Marked {
    /// The commit, by its place among the commits.
    pub commit: usize,
    /// Its mark, or why it cannot be read: the commit goes into the log backup without it.
    pub mark: Result<Mark>,
}

/// Frames of one epoch, in a file of the archive.
#[derive(Debug)]
struct Frames {
    segment: Segment,
    file: File,
    /// The last one that is of the chain. What is behind it was lost by a power cut, after it had been kept.
    last: u32,
    run: Run,
}

/// The commits behind the last log backup. Nobody else makes one while this is held.
#[derive(Debug)]
pub struct KeptLog {
    database: PathBuf,
    pub(super) archive: Archive,
    pub(super) keys: Arc<ContainerKeys>,
    header: Header,
    pub(super) state: ArchiveState,
    frames: Vec<Frames>,
    pub(super) behind: Lsn,
    pub(super) last: Lsn,
    pub(super) commits: Vec<Commit>,
    pub(super) versions: Vec<Version>,
    marked: Vec<Marked>,
    unit: Vec<u8>,
    frame: Vec<u8>,
}

impl KeptLog {
    /// Keeps what counts now, and opens all that no log backup has. Waits up to `timeout` for another log backup.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if commits of the chain are missing; [`DatabaseError`] else.
    pub fn open(path: &Path, timeout: Duration) -> std::result::Result<Self, DatabaseError> {
        let uri = uri(path, "vfs=pellucid&require=container");
        let handle = Handle::open(path, &uri, ffi::OPEN_READWRITE)?;
        handle.busy_timeout(timeout.as_millis() as std::ffi::c_int);
        // Recovers the log, and holds it open: a writer that begins it anew asks the archive first.
        handle
            .run("BEGIN")
            .and_then(|()| handle.run("SELECT 1 FROM sqlite_schema"))
            .map_err(|error| in_use(path, error))?;
        let none =
            || Error::misuse(Subject::File(path.to_owned()), "no chain of log backups has begun");
        let (_, container) = opened::sealed(&handle)?.ok_or_else(none)?;
        let header = container.header().ok_or_else(none)?;
        let log = opened::wal(&handle)?.ok_or_else(none)?;
        if container.chain().is_none() {
            return Err(none().into());
        }
        let keys = container.keys().map_err(|code| cannot_write(path, code))?;
        let archive = Archive::open(container.path()).map_err(|error| no_archive(path, error))?;
        if !archive.lock_backups(timeout)? {
            let what = "another log backup of it is being made";
            return Err(Error::limit(Subject::File(path.to_owned()), what).into());
        }
        let state = {
            let locked = archive.lock(PATIENCE)?;
            let state = log.keep_all(&locked)?.state;
            match witness::ahead(container.path(), &state)? {
                Some(known) => super::put_back(&container, &locked, (&known, &keys))?,
                None => state,
            }
        };
        handle.run("COMMIT")?;
        super::mend_header_copy(&handle, &container, &archive)?;
        Ok(Self::of(container.path(), archive, (header, keys), state)?)
    }

    /// Opens all that no log backup has, by the state of the archive. Its lock of log backups is held.
    pub(super) fn of(
        database: &Path,
        archive: Archive,
        (header, keys): (Header, Arc<ContainerKeys>),
        state: ArchiveState,
    ) -> Result<Self> {
        if !state.broken_at.is_none() {
            return Err(broken(database, state.broken_at));
        }
        let frame_bytes = header.page_size as usize + FRAME_HEADER_BYTES;
        let mut kept = Self {
            database: database.to_owned(),
            archive,
            keys,
            header,
            state,
            frames: Vec::new(),
            behind: state.backed_up,
            last: state.live.lsn(state.live.kept),
            commits: Vec::new(),
            versions: Vec::new(),
            marked: Vec::new(),
            unit: vec![0; frame_bytes],
            frame: vec![0; frame_bytes],
        };
        kept.find()?;
        kept.read_commits()?;
        Ok(kept)
    }

    /// The database's header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What the archive said when this was opened.
    pub fn state(&self) -> &ArchiveState {
        &self.state
    }

    /// The commit that the first of these follows.
    pub fn behind(&self) -> Lsn {
        self.behind
    }

    /// Where these end.
    pub fn last(&self) -> Lsn {
        self.last
    }

    /// The commits.
    pub fn commits(&self) -> &[Commit] {
        &self.commits
    }

    /// Those of the commits that have a mark.
    pub fn marked(&self) -> &[Marked] {
        &self.marked
    }

    /// What they made of pages: by page, then by commit.
    pub fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// Reads one of them, with zeros in the place of a tail.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if the frame is damaged; [`Error::Io`].
    pub fn read(&mut self, version: Version, page: &mut [u8]) -> Result<()> {
        let (segment, number) = version.at;
        let frames = self.frames.get(segment as usize).ok_or_else(|| gone(number))?;
        let at = offset(&frames.segment, number, self.unit.len());
        let unit = &mut self.unit;
        frames
            .file
            .read_exact_at(unit, at)
            .map_err(|error| Error::io(Subject::Frame(number), error))?;
        open_frame(&self.keys, &frames.run, number, unit, &mut self.frame)?;
        if page_and_commit(&self.frame).0 != version.page {
            return Err(Error::unauthentic(Subject::Frame(number), "it has another page by now"));
        }
        page.copy_from_slice(&self.frame[FRAME_HEADER_BYTES..]);
        let content = page.len() - TAIL_BYTES;
        page[content..].fill(0);
        Ok(())
    }

    /// Says that a log backup has all of it: `set` is the hash of its manifest. The frames are removed. Returns what the archive says
    /// then.
    ///
    /// # Errors
    /// [`Error::Io`]. The set is good all the same, and the next one has these commits once more.
    pub fn is_backed_up(self, set: [u8; 32]) -> Result<ArchiveState> {
        let last = self.last;
        self.is_backed_up_to(last, set)
    }

    /// The same of the commits up to `last`, which is one of them.
    ///
    /// # Errors
    /// As [`KeptLog::is_backed_up`].
    pub fn is_backed_up_to(self, last: Lsn, set: [u8; 32]) -> Result<ArchiveState> {
        let state = {
            let locked = self.archive.lock(PATIENCE)?;
            let mut state = self.archive.state(&self.keys)?;
            if state.fork != self.state.fork {
                let what = "another chain of log backups has begun meanwhile";
                return Err(Error::misuse(Subject::File(self.database.clone()), what));
            }
            // A full backup that ended a break meanwhile is further.
            // Before the state: what is listed and not said of is only more.
            let _ = super::changed::note(&self, &locked);
            (state.backed_up, state.last_set) = (state.backed_up.max(last), set);
            locked.write(&state, &self.keys)?
        };
        super::remember(&self.database, &self.header, &state);
        // Nobody waits for these.
        let is_done = |(epoch, first): &(u32, u32)| Lsn::new(*epoch, *first) <= last;
        for segment in self.archive.segments()?.into_iter().filter(is_done) {
            self.archive.remove_segment(segment)?;
        }
        if last < self.last {
            // Marks of the others are not backed up yet.
            return Ok(state);
        }
        // A mark behind what is kept of the live run may be that of a commit under way.
        let live = &self.state.live;
        for frame in self.archive.marked()? {
            let is_of = |frames: &Frames| frames.run.salts() == frame.salts;
            let is_done = frame.salts != live.salts || frame.frame <= live.kept;
            if is_done && self.frames.iter().any(is_of) {
                self.archive.remove_mark(&frame)?;
            }
        }
        Ok(state)
    }

    /// Finds the frames that lead from the last log backup to the last commit: each says what it goes on behind.
    fn find(&mut self) -> Result<()> {
        let names = self.archive.segments()?;
        let mut wanted = self.last;
        while wanted > self.state.backed_up {
            let mut found = None;
            for name in names
                .iter()
                .rev()
                .filter(|(epoch, first)| *epoch == wanted.epoch && *first <= wanted.frame)
            {
                let (segment, file) = self.archive.open_segment(*name, &self.keys)?;
                let ends = u64::from(segment.first) + u64::from(segment.count);
                if segment.fork == self.state.fork
                    && u64::from(wanted.frame) < ends
                    && segment.behind < wanted
                {
                    found = Some((segment, file));
                    break;
                }
            }
            let Some((segment, file)) = found else { return Err(self.broken(wanted)) };
            let run = Run::of(&segment.header, LogVersion::Second);
            self.frames.push(Frames { segment, file, last: wanted.frame, run });
            wanted = segment.behind;
        }
        // A branch that goes on before what was backed up begins there.
        self.behind = wanted;
        self.frames.reverse();
        Ok(())
    }

    fn broken(&self, at: Lsn) -> Error {
        Error::corrupt(
            Subject::LogArchive,
            format!(
                "`{}`: its chain of log backups is broken: the frames up to LSN {at} are not in `{}`, or not as they were kept",
                self.database.shown(),
                self.archive.path().shown()
            ),
        )
    }

    /// Goes through the frames for commits and the pages that they changed. Each is opened, and they are those that were kept: what a
    /// frame has in clear decides here which pages a backup has.
    fn read_commits(&mut self) -> Result<()> {
        let frame_bytes = self.unit.len();
        for (at, frames) in (0u32..).zip(&self.frames) {
            let segment = &frames.segment;
            let mut file = BufReader::with_capacity(PIECE_BYTES, &frames.file);
            let failed = |error| Error::io(Subject::LogArchive, error);
            file.seek(SeekFrom::Start(SEGMENT_HEAD_BYTES as u64)).map_err(failed)?;
            let mut tails = Sha256::new();
            let mut found = Found {
                commits: &mut self.commits,
                versions: &mut self.versions,
                marked: Vec::new(),
                pages: Vec::new(),
                is_first: true,
            };
            for number in (segment.first..).take(segment.count as usize) {
                file.read_exact(&mut self.unit).map_err(failed)?;
                tails.update(&self.unit[frame_bytes - TAIL_BYTES..]);
                if number > frames.last {
                    continue;
                }
                open_frame(&self.keys, &frames.run, number, &self.unit, &mut self.frame)?;
                found.frame(Lsn::new(segment.epoch, number), (at, number), &self.unit);
            }
            for (commit, number, stamp) in found.marked {
                let mark = read_mark(&self.archive, &self.keys, (&frames.run, stamp), number);
                self.marked.push(Marked { commit, mark });
            }
            if tails.finish() != segment.tails {
                return Err(other_frames(segment));
            }
        }
        self.versions.sort_unstable();
        Ok(())
    }
}

/// The commits of a stretch of frames, as they are found.
struct Found<'a> {
    commits: &'a mut Vec<Commit>,
    versions: &'a mut Vec<Version>,
    /// Commits that have a mark, with the number and the stamp of their last frames.
    marked: Vec<(usize, u32, Stamp)>,
    /// Pages and places of the frames of the transaction under way.
    pages: Vec<(u32, (u32, u32))>,
    is_first: bool,
}

impl Found<'_> {
    fn frame(&mut self, lsn: Lsn, at: (u32, u32), unit: &[u8]) {
        let stamp = Stamp::of(unit);
        let (page, size) = page_and_commit(unit);
        // Without powersafe overwrite a commit's last frame is repeated to the end of a sector. The commit has the number of that
        // frame, whatever comes of its repetitions.
        let is_repeated = self.is_first && !stamp.first;
        self.is_first = size != 0;
        if is_repeated {
            return;
        }
        self.pages.push((page, at));
        if size != 0 {
            self.commit(lsn, stamp, size);
        }
    }

    fn commit(&mut self, lsn: Lsn, stamp: Stamp, size: u32) {
        let commit = self.commits.len() as u32;
        if stamp.mark_follows {
            self.marked.push((self.commits.len(), lsn.frame, stamp));
        }
        let mut pages = std::mem::take(&mut self.pages);
        self.commits.push(Commit {
            lsn,
            time: stamp.time.micros(),
            pages: size,
            stepped_back: stamp.stepped_back,
            reseals_only: stamp.reseals_only,
        });
        // Pages that are sealed again have the content that they had.
        if stamp.reseals_only {
            return;
        }
        pages.sort_unstable();
        for (place, (page, at)) in pages.iter().enumerate() {
            let is_last = pages.get(place + 1).is_none_or(|(next, _)| next != page);
            // What a transaction wrote behind the end that it left is no page.
            if is_last && *page <= size {
                self.versions.push(Version { page: *page, commit, at: *at });
            }
        }
    }
}

fn read_mark(
    archive: &Archive,
    keys: &ContainerKeys,
    (run, stamp): (&Run, Stamp),
    number: u32,
) -> Result<Mark> {
    let gone = || Error::corrupt(Subject::LogArchive, "its mark is not in the archive");
    let sealed = archive.sealed_mark(&MarkedFrame::of(run, number, stamp))?.ok_or_else(gone)?;
    Mark::open(keys, (run, stamp), number, &sealed)
}

fn offset(segment: &Segment, number: u32, frame_bytes: usize) -> u64 {
    SEGMENT_HEAD_BYTES as u64 + u64::from(number - segment.first) * frame_bytes as u64
}

fn gone(number: u32) -> Error {
    Error::corrupt(Subject::Frame(number), "it is not in the archive")
}

fn broken(database: &Path, behind: Lsn) -> Error {
    let what = format!(
        "`{}`: commits behind LSN {behind} are missing from its chain of log backups; a full backup lets it go on",
        database.shown()
    );
    Error::corrupt(Subject::LogArchive, what)
}

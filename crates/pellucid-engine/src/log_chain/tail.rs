//! The tail of the log of a database whose file is gone or damaged: made of the log and its archive alone.
//!
//! The copy of the header that the archive has opens both. The frames that count are those that a recovery would count: nobody
//! has an index of the log any more.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pellucid::header::Header;
use pellucid::keys::ContainerKeys;
use pellucid::log_archive::{check_header, ArchiveState, LogRun};
use pellucid::shown::Shown;
use pellucid::unit::TAIL_BYTES;
use pellucid::wal::{
    open_frame, page_and_commit, Chain, Run, Stamp, Version, WalHeader, FRAME_CLEAR_BYTES,
    FRAME_HEADER_BYTES, HEADER_BYTES,
};
use pellucid::{Error, Result, Subject};
use pellucid_files::paths::beside;
use pellucid_files::way::Way;
use pellucid_host::code::{Code, Outcome};
use pellucid_host::ffi;
use pellucid_host::folder::{name_of, Folder};
use pellucid_vfs::log_archive::{path_of, Archive, Locked};
use pellucid_vfs::log_end::{Database, LogEnd, Lost};
use pellucid_vfs::pins::Expectation;
use pellucid_vfs::seal_request::Credentials;
use pellucid_vfs::{witness, ReadEnd};

use super::{KeptLog, PATIENCE};

/// The commits that no log backup has, of a database whose file is not looked at.
#[derive(Debug)]
pub struct Tail {
    /// The commits.
    pub kept: KeptLog,
    /// The log is damaged, and whole commits lie behind that place, which are not among them.
    pub gap: Option<Lost>,
}

impl Tail {
    /// Keeps what counts in the log, and opens all that no log backup has. Waits up to `timeout` for another log backup. None if
    /// there is no archive with a copy of the header.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if the copy of the header, the archive or the log is of another database or another fork, or was
    /// changed; [`Error::Corrupt`] if commits of the chain are missing, or, unless `go_on`, lie behind a damaged frame.
    pub fn open(
        database: &Path,
        credentials: &Credentials,
        timeout: Duration,
        go_on: bool,
    ) -> Result<Option<Self>> {
        let way = Way::of(database).map_err(|error| io(database, error))?;
        let database = way.path();
        let archive = match Archive::open(database) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(None)
            }
            opened => opened?,
        };
        let Some(copy) = archive.header_copy()? else { return Ok(None) };
        let of_copy = |error: Error| {
            let path = archive.header_path();
            Error::unauthentic(Subject::LogArchive, format!("`{}`: {error}", path.shown()))
        };
        let header = Header::parse(&copy[..], 0).map_err(of_copy)?;
        // Who put an older copy there, or another database's, is told as at the database itself.
        Expectation::at(database)
            .and_then(|expected| expected.check(&header))
            .map_err(|error| error.of_file(&archive.header_path()))?;
        let keys = match credentials.unlock(&header, &copy, 0, None) {
            Err(error @ Error::Unauthentic { .. }) => return Err(of_copy(error)),
            unlocked => unlocked?,
        };
        if !archive.lock_backups(timeout)? {
            let what = "another log backup of it is being made";
            return Err(Error::limit(Subject::File(database.to_owned()), what));
        }
        let mut log = Log::open(database, (&header, &keys))?;
        let (state, gap) = {
            let locked = archive.lock(PATIENCE)?;
            let state = archive.state(&keys)?;
            check_header(&header, &state)?;
            if let Some(known) = witness::ahead(database, &state)? {
                return Err(witness::put_back(database, &known));
            }
            (log.keep(&locked, state, go_on)?, log.gap)
        };
        let kept = KeptLog::of(database, archive, (header, keys), state)?;
        Ok(Some(Self { kept, gap }))
    }
}

/// The log as it lies on disk.
struct Log<'a> {
    path: PathBuf,
    archive: PathBuf,
    /// None if there is no log, or an empty one.
    file: Option<(File, [u8; HEADER_BYTES])>,
    header: &'a Header,
    keys: &'a Arc<ContainerKeys>,
    frame_bytes: usize,
    gap: Option<Lost>,
}

impl<'a> Log<'a> {
    fn open(database: &Path, (header, keys): (&'a Header, &'a Arc<ContainerKeys>)) -> Result<Self> {
        let path = beside(database, "-wal");
        let failed = |error| io(&path, error);
        let folder = Folder::of(&path).map_err(failed)?;
        let file = match folder.open(&name_of(&path)) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            opened => Some(opened.map_err(failed)?),
        };
        let file = match file {
            Some(file) => {
                let mut start = [0; HEADER_BYTES];
                let is_begun = read(&file, &mut start, 0).map_err(failed)? == ReadEnd::Full;
                is_begun.then_some((file, start))
            }
            None => None,
        };
        let frame_bytes = header.page_size as usize + FRAME_HEADER_BYTES;
        Ok(Self { path, archive: path_of(database), file, header, keys, frame_bytes, gap: None })
    }

    /// Copies what counts and is not kept into the archive, and returns the state that says so.
    fn keep(
        &mut self,
        locked: &Locked<'_>,
        mut state: ArchiveState,
        go_on: bool,
    ) -> Result<ArchiveState> {
        let Some((file, start)) = self.file.take() else {
            let is_whole = state.has_ended || state.live.handed_out <= state.live.kept;
            return if is_whole { Ok(state) } else { Err(self.missing(&state.live)) };
        };
        if WalHeader::parse_sealed(&start, Version::Second).is_none() {
            return Err(Error::unauthentic(
                Subject::File(self.path.clone()),
                "its header is damaged",
            ));
        }
        let run = Run::of(&start, Version::Second);
        self.find_run(&mut state, run.salts())?;
        let (all, counted) = self.count(&file, &start, &run)?;
        let live = state.live;
        let is_same = live.handed_out == 0
            || live.handed_out <= counted && self.tail_of(&file, live.handed_out)? == live.tail;
        if !is_same {
            return Err(self.missing(&live));
        }
        self.gap = self.lost(&file, start, all)?;
        if let Some(gap) = self.gap.as_ref().filter(|_| !go_on) {
            let cause = format!("{gap}; `--continue-after-error` leaves them out");
            return Err(Error::corrupt(Subject::File(self.path.clone()), cause));
        }
        if counted > live.kept {
            self.copy(locked, (&file, &start), &state, counted)?;
            state.live.kept = counted;
            state.has_ended = false;
            if counted > live.handed_out {
                let mut clear = [0; FRAME_CLEAR_BYTES];
                self.read_all(&file, &mut clear, counted, 0)?;
                state.live.handed_out = counted;
                state.live.count = Stamp::of(&clear).count.into();
                state.live.tail = self.tail_of(&file, counted)?;
            }
            state = locked.write(&state, self.keys)?;
        }
        Ok(state)
    }

    /// Makes the run of the log the live one. What only sector 2 of the database knows is known no more.
    fn find_run(&self, state: &mut ArchiveState, salts: [u8; 8]) -> Result<()> {
        if state.live.salts == salts {
            return Ok(());
        }
        if state.before.epoch != 0 && state.before.salts == salts {
            (state.live, state.has_ended) = (state.before, true);
            state.before = LogRun::default();
            return Ok(());
        }
        if state.live.salts == [0; 8] {
            state.begin_run(salts);
            return Ok(());
        }
        let cause = "it is a log that the archive does not know: commits between the two may be missing. Without it, moved away, \
                     the tail has what the archive has";
        Err(Error::corrupt(Subject::File(self.path.clone()), cause))
    }

    /// The last frame that a recovery would count, and the one with which the last commit ends: without powersafe overwrite SQLite
    /// repeats that one to the end of a sector.
    fn count(&self, file: &File, start: &[u8; HEADER_BYTES], run: &Run) -> Result<(u32, u32)> {
        let size = file.metadata().map_err(|error| io(&self.path, error))?.len();
        let frames = size.saturating_sub(HEADER_BYTES as u64) / self.frame_bytes as u64;
        let frames = u32::try_from(frames).unwrap_or(u32::MAX - 1);
        let (mut unit, mut frame) = (vec![0; self.frame_bytes], vec![0; self.frame_bytes]);
        let (mut chain, mut counted, mut unpadded) = (Chain::new(*start), 0, 0);
        for number in 1..=frames {
            self.read_all(file, &mut unit, number, 0)?;
            let opens = open_frame(self.keys, run, number, &unit, &mut frame).is_ok();
            if !opens || !chain.goes_on(&frame) {
                break;
            }
            if page_and_commit(&frame).1 != 0 {
                let is_repeated = counted == number - 1 && !Stamp::of(&unit).first;
                counted = number;
                unpadded = if is_repeated { unpadded } else { number };
            }
        }
        Ok((counted, unpadded))
    }

    /// Whole commits behind a place where the log is damaged.
    fn lost(&self, file: &File, start: [u8; HEADER_BYTES], counted: u32) -> Result<Option<Lost>> {
        let failed = |Code(code)| {
            let error = std::io::Error::other(format!("SQLite code {code}"));
            io(&self.path, error)
        };
        let read_at = |bytes: &mut [u8], at: u64| -> Outcome<ReadEnd> {
            read(file, bytes, at).map_err(|_| Code(ffi::IOERR_READ))
        };
        // No file says that it has them.
        let has_page = |_: u32, _: &[u8]| Ok(false);
        let header = Some(self.header.clone());
        let database = Database { header, keys: self.keys, has_page: &has_page, sector: None };
        let size = file.metadata().map_err(|error| io(&self.path, error))?.len();
        LogEnd::new(&read_at, size, database, self.frame_bytes)
            .lost_without_damage(start, counted)
            .map_err(failed)
    }

    /// Copies the frames behind what is kept, once they are on disk.
    fn copy(
        &self,
        locked: &Locked<'_>,
        (file, start): (&File, &[u8; HEADER_BYTES]),
        state: &ArchiveState,
        last: u32,
    ) -> Result<()> {
        file.sync_data().map_err(|error| io(&self.path, error))?;
        let (segment, count) = (state.segment(*start), last - state.live.kept);
        locked.keep(&segment, self.keys, (self.frame_bytes, count), |frames, first| {
            self.read_all(file, frames, first, 0)
        })
    }

    fn tail_of(&self, file: &File, frame: u32) -> Result<[u8; TAIL_BYTES]> {
        let mut tail = [0; TAIL_BYTES];
        self.read_all(file, &mut tail, frame, self.frame_bytes - TAIL_BYTES)?;
        Ok(tail)
    }

    /// Reads from byte `at` of a frame on.
    fn read_all(&self, file: &File, bytes: &mut [u8], frame: u32, at: usize) -> Result<()> {
        let start = HEADER_BYTES as u64 + u64::from(frame - 1) * self.frame_bytes as u64;
        file.read_exact_at(bytes, start + at as u64).map_err(|error| io(&self.path, error))
    }

    fn missing(&self, run: &LogRun) -> Error {
        Error::corrupt(
            Subject::LogArchive,
            format!(
                "commits up to LSN {} were handed out, and neither `{}` nor `{}` has them",
                run.lsn(run.handed_out),
                self.path.shown(),
                self.archive.shown()
            ),
        )
    }
}

fn read(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<ReadEnd> {
    match file.read_exact_at(bytes, at) {
        Ok(()) => Ok(ReadEnd::Full),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(ReadEnd::Short),
        Err(error) => Err(error),
    }
}

fn io(path: &Path, error: std::io::Error) -> Error {
    Error::io(Subject::File(path.to_owned()), error)
}

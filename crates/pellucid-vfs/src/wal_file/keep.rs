//! Frames go into the archive before the log begins anew, so that no commit is missing from the chain of log backups.
//!
//! SQLite asks for a lock before it writes over a log, and "busy" is an answer that harms nobody: it appends then. Where it asks for
//! none, in an exclusive locking mode and when the last connection closes, the write of the new header, the cut and the question
//! whether the log stays are the last moments.

use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use pellucid::log_archive::{ArchiveState, LogRun};
use pellucid::log_sector::LogSector;
use pellucid::lsn::Lsn;
use pellucid::unit::TAIL_BYTES;
use pellucid::wal::{
    open_frame, page_and_commit, Chain, Run, Stamp, WalHeader, FRAME_CLEAR_BYTES, HEADER_BYTES,
};
use pellucid::{Error, Result, Subject};
use pellucid_host::code::{note, Code, Outcome};
use pellucid_host::ffi;
use pellucid_host::folder::Folder;
use pellucid_keyring::policy::Limit;

use super::WalFile;
use crate::log_archive::{Archive, Locked};
use crate::lower::ReadEnd;

/// How long a new run of the log waits for whoever changes the archive.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a checkpoint that must end with an empty log does: writers wait for it.
const PATIENCE_OF_CHECKPOINT: Duration = Duration::from_millis(40);
/// How large the log may grow before its frames are copied into the archive: 8 MiB. A larger one falls out of the processor's cache, a
/// smaller one has more syncs (docs/design/speed.md).
const LIMIT_BYTES: u64 = 8 << 20;
const LIMIT: &str = "PELLUCID_LOG_LIMIT";

/// What is answered to whoever is about to begin the log anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// All of it is kept.
    Goes,
    /// It is the active log, and small enough to stay that.
    Waits,
    /// It cannot be kept now.
    Refused,
    /// The same, and it is as large as it may become: the transaction fails.
    Full,
}

/// How the archive stands to the log.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// The state, whose live run is that of the log.
    pub state: ArchiveState,
    /// The last frame of the log that counts.
    pub counted: u32,
}

impl WalFile {
    /// Answers whoever holds the write lock and is about to begin the log anew. `must` says that it is a checkpoint that ends with
    /// an empty log: its frames are kept then, however few they are.
    pub fn before_restart(&mut self, must: bool) -> Restart {
        pellucid::sabotage!(LogKept => return Restart::Goes);
        if self.container.chain().is_none() {
            return Restart::Goes;
        }
        match self.keep_for_restart(must) {
            Ok(answer) => answer,
            Err(error) => {
                self.tell_unkept(&error);
                match self.when_full() {
                    Some(Limit::Break) => Restart::Goes,
                    Some(_) if !must => Restart::Full,
                    _ => Restart::Refused,
                }
            }
        }
    }

    fn keep_for_restart(&mut self, must: bool) -> Result<Restart> {
        let archive = Archive::open(self.container.path())?;
        let locked = match must {
            // A checkpoint that must end with an empty log has the write lock meanwhile.
            true => archive.lock(PATIENCE_OF_CHECKPOINT).ok(),
            false => archive.try_lock()?,
        };
        let Some(locked) = locked else { return Ok(Restart::Waits) };
        let standing = self.stand(&locked)?;
        let is_small = self.offset(standing.counted + 1) <= limit();
        if standing.counted > standing.state.live.kept && is_small && !must {
            return Ok(Restart::Waits);
        }
        self.end_run(&locked, standing)?;
        Ok(Restart::Goes)
    }

    /// Keeps what is not kept, and says that the run has ended: whoever finds another log, or none, knows that nothing is missing. The
    /// state is written whatever it said: what an earlier failed sync has left may be in memory alone.
    fn end_run(&mut self, locked: &Locked<'_>, standing: Standing) -> Result<Standing> {
        let mut standing = self.keep(locked, standing)?;
        self.note_epoch(&standing.state)?;
        standing.state.has_ended = true;
        standing.state = locked.write(&standing.state, &*self.keys_to_keep()?)?;
        self.known_kept = (standing.state.live.salts, standing.counted);
        self.note_end(&standing.state);
        Ok(standing)
    }

    /// Makes sector 2 know the epoch of the live run before that ends, on disk: a power cut may have taken what was written when it
    /// began, and a recovery has made that anew, or the archive has given the epoch later.
    fn note_epoch(&self, state: &ArchiveState) -> Result<()> {
        let Some(sector) = self.container.log_sector().map_err(io_error)? else { return Ok(()) };
        let is_of_it = Run::second(&sector.run).salts() == state.live.salts;
        if !is_of_it || sector.epoch >= state.live.epoch {
            return Ok(());
        }
        let known = LogSector { epoch: state.highest, ..sector };
        self.container.write_log_sector(&known).map_err(io_error)?;
        self.container.lower().and_then(|lower| lower.sync(ffi::SYNC_NORMAL)).map_err(io_error)
    }

    /// Notes in sector 2 how much of the run is kept, so that an older state of the archive is known as one, and when its last commit
    /// was, so that no later one is before it. Who ends a run has the database for itself, or the write lock. A disk that cannot
    /// take it takes no more of the log either.
    fn note_end(&mut self, state: &ArchiveState) {
        let Ok(Some(sector)) = self.container.log_sector() else { return };
        let (run, last) = (Run::second(&sector.run), state.live.kept);
        if run.salts() != state.live.salts {
            return;
        }
        let epoch = sector.epoch.max(state.highest);
        let before_ended = self.time_of(last, &run).unwrap_or_else(|| self.ended_before(&sector));
        let ended = LogSector { epoch, kept: last, before_ended, has_ended: true, ..sector };
        if ended != sector {
            let _ = self.container.write_log_sector(&ended);
        }
    }

    /// Keeps all that counts, for whoever makes a log backup or a full one. Nothing is handed out that a sync has not returned for.
    ///
    /// # Errors
    /// [`Error`]; the log stays the active log.
    pub fn keep_all(&mut self, locked: &Locked<'_>) -> Result<Standing> {
        let standing = self.stand(locked)?;
        self.keep(locked, standing)
    }

    /// Notes that what counts now is handed out by a backup, and syncs it first. Nothing is copied.
    ///
    /// # Errors
    /// [`Error`].
    pub fn hand_out(&mut self, locked: &Locked<'_>) -> Result<Standing> {
        let mut standing = self.stand(locked)?;
        let counted = standing.counted;
        if counted > standing.state.live.handed_out {
            self.sync_to_hand_out(&standing.state.live)?;
            self.mark(&mut standing.state.live, counted)?;
            standing.state = locked.write(&standing.state, &*self.keys_to_keep()?)?;
        }
        Ok(standing)
    }

    /// The first state of an archive, by which the chain begins behind what counts now. That is synced first.
    ///
    /// # Errors
    /// [`Error`].
    pub fn begin_chain(&mut self, fork: [u8; 16]) -> Result<ArchiveState> {
        self.flush().map_err(io_error)?;
        let file_id = self.container.header().map(|header| header.file_id).unwrap_or_default();
        // An earlier chain of this database may have given epochs.
        let sector = self.container.log_sector().map_err(io_error)?;
        let epoch = sector.map_or(0, |sector| sector.epoch).saturating_add(1);
        let live = LogRun { epoch, first: 1, behind: Lsn::new(epoch, 0), ..LogRun::default() };
        let highest = epoch;
        let mut state = ArchiveState { file_id, fork, live, highest, ..ArchiveState::default() };
        if let Some((header, run)) = self.present_run()? {
            state.live.salts = run.salts();
            let counted = self.counted(&header, &run)?;
            // A run that is over has nothing of this chain.
            state.has_ended = counted.is_none();
            let counted = counted.unwrap_or(0);
            if counted > 0 {
                self.sync_to_hand_out(&state.live)?;
                state.live.kept = counted;
                self.mark(&mut state.live, counted)?;
            }
        }
        state.backed_up = state.live.lsn(state.live.kept);
        Ok(state)
    }

    /// Before the log goes or is cut to nothing: what counts is kept, or the log stays.
    ///
    /// # Errors
    /// `SQLITE_FULL` after a line in the log.
    pub fn keep_before_end(&mut self) -> Outcome<()> {
        pellucid::sabotage!(LogKept => return Ok(()));
        if self.container.chain().is_none() {
            return Ok(());
        }
        let kept = Archive::open(self.container.path()).and_then(|archive| {
            let locked = archive.lock(PATIENCE)?;
            let standing = self.stand(&locked)?;
            self.end_run(&locked, standing).map(|_| ())
        });
        self.unless_nothing_is_lost(kept)
    }

    /// Gives the run of the log that `run` begins its epoch, before its header is written over that of the run before. Returns it, or 0
    /// if the archive cannot be written.
    pub(super) fn begin_epoch(&mut self, run: &Run) -> Outcome<u32> {
        if self.container.chain().is_none() {
            return Ok(0);
        }
        let mut epoch = 0;
        let begun = Archive::open(self.container.path()).and_then(|archive| {
            let locked = archive.lock(PATIENCE)?;
            let standing = self.stand(&locked)?;
            let mut state = self.keep(&locked, standing)?.state;
            if state.live.salts != run.salts() {
                self.note_epoch(&state)?;
                if state.live.kept == 0 {
                    self.settle()?;
                }
                state.begin_run(run.salts());
                locked.write(&state, &*self.keys_to_keep()?)?;
            }
            epoch = state.highest;
            Ok(())
        });
        self.unless_nothing_is_lost(begun)?;
        Ok(epoch)
    }

    /// Makes the log on disk the one that is seen. A process may have been killed before it synced the header of a run, and the state
    /// knows no run before that one any more when the next one begins.
    fn settle(&self) -> Result<()> {
        self.lower.sync(ffi::SYNC_NORMAL).map_err(io_error)?;
        let path = self.container.path();
        let synced = Folder::of(path).and_then(|folder| folder.sync());
        synced.map_err(|error| Error::io(Subject::File(path.to_owned()), error))
    }

    /// Makes what is about to be handed out outlive a power cut: the frames, and the first time the log's name, which may be another
    /// process's to sync. So handed out frames that are gone are never a power cut's.
    fn sync_to_hand_out(&self, run: &LogRun) -> Result<()> {
        match run.handed_out {
            0 => self.settle(),
            _ => self.lower.sync(ffi::SYNC_NORMAL).map_err(io_error),
        }
    }

    /// Lets the log go on without the archive where it has nothing that nobody kept. The next one who can write to the archive
    /// knows the run by sector 2.
    fn unless_nothing_is_lost(&mut self, kept: Result<()>) -> Outcome<()> {
        let Err(error) = kept else { return Ok(()) };
        self.tell_unkept(&error);
        let mut header = [0; HEADER_BYTES];
        if self.lower.read(&mut header, 0)? == ReadEnd::Short {
            return Ok(());
        }
        let run = Run::of(&header, self.version());
        let is_known = self.known_kept.0 == run.salts();
        match self.counted(&header, &run) {
            // Another connection has begun it anew, which asked the archive before.
            Ok(None) => Ok(()),
            Ok(Some(counted)) if counted == if is_known { self.known_kept.1 } else { 0 } => Ok(()),
            _ if self.when_full() == Some(Limit::Break) => self.note_lost(),
            _ => {
                self.container.log_chain.is_refused_alone();
                Err(Code(ffi::FULL))
            }
        }
    }

    fn tell_unkept(&self, error: &Error) {
        let what = format!(
            "the log is not begun anew, because the archive cannot have its commits: {error}; see `pellucid status`"
        );
        self.container.note(ffi::IOERR_WRITE, &what);
    }

    /// Finds out how the archive stands to the log.
    fn stand(&mut self, locked: &Locked<'_>) -> Result<Standing> {
        self.flush().map_err(io_error)?;
        let keys = self.keys_to_keep()?;
        let mut state = locked.archive().state(&keys)?;
        self.assert_of_this(&state)?;
        let before = state;
        let present = self.present_run()?;
        let is_lost = self.is_lost()?;
        if is_lost {
            self.goes_on_behind_lost(&mut state, present.as_ref().map(|(_, run)| run.salts()));
        } else if self.is_older(&state)? {
            self.goes_on_behind_an_older(&mut state, present.as_ref().map(|(_, run)| run));
        } else {
            let salts = present.as_ref().map(|(_, run)| run.salts());
            if self.container.is_behind(&state, salts).map_err(io_error)? {
                self.goes_on_without_what_ended(&mut state, salts);
            }
        }
        let Some((header, run)) = present else {
            // The log is gone, or was never written.
            self.miss(&mut state);
            if state != before {
                state = locked.write(&state, &keys)?;
            }
            self.knows_lost(is_lost)?;
            return Ok(Standing { state, counted: state.live.kept });
        };
        let goes_back = self.find_run(&mut state, &run)?;
        let counted = self.counted(&header, &run)?.unwrap_or(state.live.kept);
        self.follow(locked, &mut state, (&header, counted))?;
        state.has_ended &= counted == state.live.kept;
        // Another process may be about to write the header of the next run, which the state knows already.
        if state != before && !(goes_back && state.has_ended) {
            state = locked.write(&state, &keys)?;
        }
        self.knows_lost(is_lost)?;
        Ok(Standing { state, counted })
    }

    /// The header of the log, and its run. None if there is no log.
    ///
    /// A header that is damaged is an error: SQLite goes on by the index, and the frames are there. But where the index counts none, a
    /// recovery found that header, as a power cut leaves it behind the first commit of a run: SQLite has no log.
    fn present_run(&mut self) -> Result<Option<([u8; HEADER_BYTES], Run)>> {
        let mut header = [0; HEADER_BYTES];
        if self.lower.read(&mut header, 0).map_err(io_error)? == ReadEnd::Short {
            return Ok(None);
        }
        if WalHeader::parse_sealed(&header, self.version()).is_none() {
            if matches!(self.container.index.run(), Some((_, 0))) {
                return Ok(None);
            }
            return Err(Error::corrupt(Subject::WalHeader, "damaged: its frames cannot be kept"));
        }
        self.know_page_size().map_err(io_error)?;
        Ok(Some((header, Run::of(&header, self.version()))))
    }

    /// Notes commits that are missing where there is no log and nobody said that its run ended: what was handed out was synced, and
    /// there may have been commits behind it. What was not handed out may be a crash's.
    fn miss(&self, state: &mut ArchiveState) {
        if !state.has_no_commit_left() {
            self.lose(state);
        }
    }

    /// Whether somebody put an older state back: the container knows of more.
    fn is_older(&self, state: &ArchiveState) -> Result<bool> {
        // A spoilt one says nothing: the chain of a damaged database is what is needed most.
        let Some(sector) = self.container.log_sector().map_err(io_error)? else { return Ok(false) };
        let of = match sector.has_ended {
            true => sector.run,
            false => sector.before,
        };
        // Behind a branch that the container does not know of yet, less is kept than before it.
        let knows_less = Run::second(&of).salts() == state.live.salts
            && state.live.epoch <= sector.epoch
            && state.live.kept < sector.kept;
        Ok(state.highest < sector.epoch || knows_less)
    }

    /// Breaks the chain behind what an older state knows. The run of the log gets an epoch that the newer one has not given.
    fn goes_on_behind_an_older(&self, state: &mut ArchiveState, present: Option<&Run>) {
        let known = self.container.log_sector().ok().flatten().map_or(0, |sector| sector.epoch);
        state.goes_on_behind_older(known, present.map_or([0; 8], Run::salts));
        let what = "its archive of logs is an older one: somebody put it back. The chain of log backups is broken, and goes on with the \
                    next full backup";
        self.container.note(ffi::CORRUPT, what);
    }

    /// Breaks the chain of a database that is older than its archive.
    fn goes_on_without_what_ended(&self, state: &mut ArchiveState, present: Option<[u8; 8]>) {
        let behind = state.live.lsn(state.live.kept);
        state.begin_run(present.unwrap_or_default());
        state.before = LogRun::default();
        state.is_broken(behind);
        let what = "it is older than its archive of logs: somebody put it back, or it was not synced. The chain of log backups is broken, \
                    and goes on with the next full backup";
        self.container.note(ffi::CORRUPT, what);
    }

    /// Breaks the chain behind what is kept.
    fn lose(&self, state: &mut ArchiveState) {
        let behind = state.live.lsn(state.live.kept);
        state.begin_run([0; 8]);
        state.is_broken(behind);
        self.tell_broken();
    }

    pub(super) fn tell_broken(&self) {
        let what = "commits are missing that the archive knows of: the chain of log backups is broken, and goes on with the next full \
                    backup";
        self.container.note(ffi::CORRUPT, what);
    }

    fn assert_of_this(&self, state: &ArchiveState) -> Result<()> {
        let header = self.container.header();
        let is_of_this = header.is_some_and(|header| {
            [Some(header.file_id), header.scan.older_id].contains(&Some(state.file_id))
        });
        match is_of_this && Some(state.fork) == self.container.chain() {
            true => Ok(()),
            false => Err(Error::unauthentic(
                Subject::LogArchive,
                "it is of another database, or of another recovery fork of this one",
            )),
        }
    }

    /// Makes the run of the log the live one. True if that is the one before the run that the state knows of.
    fn find_run(&self, state: &mut ArchiveState, run: &Run) -> Result<bool> {
        let salts = run.salts();
        if state.live.salts == salts {
            return Ok(false);
        }
        let is_unknown = state.live.kept == 0 && state.live.handed_out == 0;
        if state.before.epoch != 0 && state.before.salts == salts && is_unknown {
            // The run that the state knew of never came to the disk. The one before had ended.
            (state.live, state.has_ended) = (state.before, true);
            state.before = LogRun::default();
            return Ok(true);
        }
        let sector = self.container.log_sector().map_err(io_error)?;
        let is_whole = sector.is_some_and(|sector| {
            sector.run == *run.bytes() && Run::second(&sector.before).salts() == state.live.salts
        }) && state.has_no_commit_left();
        let behind = state.live.lsn(state.live.kept);
        let is_first = state.live.salts == [0; 8];
        state.begin_run(salts);
        if !is_whole && !is_first {
            state.is_broken(behind);
            self.tell_broken();
        }
        Ok(false)
    }

    /// Begins a new epoch where commits that were handed out are gone, so the frames behind what is left mean something else now, and
    /// breaks the chain: a backup has them, or the archive, and the database does not.
    fn follow(
        &mut self,
        locked: &Locked<'_>,
        state: &mut ArchiveState,
        (header, counted): (&[u8; HEADER_BYTES], u32),
    ) -> Result<()> {
        let run = state.live;
        let is_same = run.handed_out == 0
            || run.handed_out <= counted && self.tail_of(run.handed_out)? == run.tail;
        if is_same {
            return Ok(());
        }
        let mut left = 0;
        for number in 1..=counted.min(run.handed_out) {
            let mut clear = [0; FRAME_CLEAR_BYTES];
            self.lower.read(&mut clear, self.offset(number)).map_err(io_error)?;
            if u32::from(Stamp::of(&clear).count) > run.count {
                break;
            }
            if page_and_commit(&clear).1 != 0 {
                left = number;
            }
        }
        if left > 0 {
            left = self.unpadded(&Run::of(header, self.version()), left)?;
        }
        if left > run.kept {
            self.keep_segment(locked, state, header, left)?;
        }
        // Pages that the lost commits had changed are other ones again, and no commit wrote them.
        locked.remove_changed_pages()?;
        state.before = LogRun::default();
        state.highest += 1;
        state.has_ended = false;
        state.live = LogRun {
            salts: run.salts,
            epoch: state.highest,
            first: left + 1,
            behind: run.lsn(left),
            ..LogRun::default()
        };
        // It was synced before it was handed out: an older log was put back, or the disk has lied. A log that left this epoch and the
        // one before is broken behind that one: nothing says where it began.
        let behind = if left + 1 < run.first { run.behind } else { run.lsn(left) };
        state.is_broken(behind);
        self.tell_broken();
        state.live.kept = left;
        if left > 0 {
            self.mark(&mut state.live, left)?;
        }
        Ok(())
    }

    /// Copies what is not kept, and says so in the state.
    fn keep(&mut self, locked: &Locked<'_>, standing: Standing) -> Result<Standing> {
        let Standing { mut state, counted } = standing;
        if counted <= state.live.kept {
            return Ok(standing);
        }
        let mut header = [0; HEADER_BYTES];
        self.lower.read(&mut header, 0).map_err(io_error)?;
        self.keep_segment(locked, &state, &header, counted)?;
        state.live.kept = counted;
        if counted > state.live.handed_out {
            self.mark(&mut state.live, counted)?;
        }
        let state = locked.write(&state, &*self.keys_to_keep()?)?;
        Ok(Standing { state, counted })
    }

    /// Copies the frames behind what is kept, up to `last`. They are in the log, and synced there, before they are kept: none is
    /// handed out that a power cut takes.
    fn keep_segment(
        &self,
        locked: &Locked<'_>,
        state: &ArchiveState,
        header: &[u8; HEADER_BYTES],
        last: u32,
    ) -> Result<()> {
        locked.archive().remove_unfinished();
        self.sync_to_hand_out(&state.live)?;
        let (segment, count) = (state.segment(*header), last - state.live.kept);
        let sizes = (self.frame_bytes(), count);
        locked.keep(&segment, &*self.keys_to_keep()?, sizes, |frames, first| {
            match self.lower.read(frames, self.offset(first)).map_err(io_error)? {
                ReadEnd::Short => {
                    Err(Error::corrupt(Subject::Frame(last), "the log ends before it"))
                }
                ReadEnd::Full => Ok(()),
            }
        })
    }

    /// Notes that `frame` was handed out last.
    fn mark(&self, run: &mut LogRun, frame: u32) -> Result<()> {
        let mut clear = [0; FRAME_CLEAR_BYTES];
        self.lower.read(&mut clear, self.offset(frame)).map_err(io_error)?;
        run.handed_out = frame;
        run.count = Stamp::of(&clear).count.into();
        run.tail = self.tail_of(frame)?;
        Ok(())
    }

    fn tail_of(&self, frame: u32) -> Result<[u8; TAIL_BYTES]> {
        let mut tail = [0; TAIL_BYTES];
        let end = self.offset(frame) + self.frame_bytes() as u64;
        self.lower.read(&mut tail, end - TAIL_BYTES as u64).map_err(io_error)?;
        Ok(tail)
    }

    /// The last frame that counts, as SQLite counts: by its index, or, in an exclusive locking mode, by what this connection knows of it
    /// from before the index was made anew. None if the index was made anew under the lock that asks the archive: all that counted is
    /// kept, by whoever has that lock, who need not be this connection.
    ///
    /// What lies behind that is of transactions that were never committed, or taken back, however whole they look.
    fn counted(&mut self, header: &[u8; HEADER_BYTES], run: &Run) -> Result<Option<u32>> {
        let counted = self.counted_with_padding(header, run)?;
        counted.map(|counted| self.unpadded(run, counted)).transpose()
    }

    /// The frame with which the last of the commits ends that are in `counted` frames.
    ///
    /// Without powersafe overwrite SQLite repeats that frame to the end of a sector, and the next write may spoil what is synced of
    /// that. So no log backup counts on it. What only looks like a repeated frame does not open: it stays, and a log backup says so.
    fn unpadded(&mut self, run: &Run, mut counted: u32) -> Result<u32> {
        while counted > 1 {
            let clear = |number: u32| {
                let mut clear = [0; FRAME_CLEAR_BYTES];
                self.lower.read(&mut clear, self.offset(number)).map_err(io_error)?;
                Ok::<_, Error>(clear)
            };
            let is_first = Stamp::of(&clear(counted)?).first;
            if is_first || page_and_commit(&clear(counted - 1)?).1 == 0 {
                break;
            }
            let (keys, frame_bytes) = (self.keys_to_keep()?, self.frame_bytes());
            let (mut unit, mut frame) = (vec![0; frame_bytes], vec![0; frame_bytes]);
            for number in [counted - 1, counted] {
                self.lower.read(&mut unit, self.offset(number)).map_err(io_error)?;
                if open_frame(&keys, run, number, &unit, &mut frame).is_err() {
                    return Ok(counted);
                }
            }
            counted -= 1;
        }
        Ok(counted)
    }

    fn counted_with_padding(
        &mut self,
        header: &[u8; HEADER_BYTES],
        run: &Run,
    ) -> Result<Option<u32>> {
        let (index, salts) = (&self.container.index, run.salts());
        let by_index = index.run();
        match by_index {
            Some((of, counted)) if of == salts => return Ok(Some(counted)),
            _ => {}
        }
        let is_exclusive = self.container.transaction.lock_level() == ffi::LOCK_EXCLUSIVE;
        if index.is_mapped() && !is_exclusive {
            return by_index.map(|_| None).ok_or_else(index_is_torn);
        }
        let [alone, own] = [self.container.log_chain.alone(salts), self.stamps.counted(salts)];
        match alone.max(own) {
            Some(counted) => Ok(Some(counted)),
            None if index.is_mapped() => Ok(None),
            // An index in this connection's own memory, which has counted what it read, and nothing was written since.
            None => self.count(header, 0).map(Some),
        }
    }

    /// The last frame that counts behind frame `from`, which does, by what the log has.
    fn count(&mut self, header: &[u8; HEADER_BYTES], from: u32) -> Result<u32> {
        self.know_page_size().map_err(io_error)?;
        let frame_bytes = self.frame_bytes();
        let keys = self.keys_to_keep()?;
        let run = Run::of(header, self.version());
        let size = self.lower.size().map_err(io_error)?;
        let last = size.saturating_sub(HEADER_BYTES as u64) / frame_bytes as u64;
        let last = u32::try_from(last).unwrap_or(u32::MAX - 1);
        let (mut unit, mut frame) = (vec![0; frame_bytes], vec![0; frame_bytes]);
        let mut open = |number: u32, frame: &mut [u8]| {
            let read = self.lower.read(&mut unit, self.offset(number)).map_err(io_error)?;
            Ok::<_, Error>(
                read == ReadEnd::Full && open_frame(&keys, &run, number, &unit, frame).is_ok(),
            )
        };
        let mut counted = from;
        let mut chain = match counted {
            0 => Chain::new(*header),
            _ if open(counted, &mut frame)? => Chain::behind(*header, &frame),
            _ => return Err(Error::corrupt(Subject::Frame(counted), "it does not open")),
        };
        for number in counted + 1..=last {
            if !open(number, &mut frame)? || !chain.goes_on(&frame) {
                break;
            }
            if page_and_commit(&frame).1 != 0 {
                counted = number;
            }
        }
        Ok(counted)
    }

    fn keys_to_keep(&self) -> Result<std::sync::Arc<pellucid::keys::ContainerKeys>> {
        self.container.keys().map_err(io_error)
    }
}

/// Nothing is damaged: a writer was killed between the two copies of the header, or others keep it from the processor.
fn index_is_torn() -> Error {
    let cause = "its index is half written: the writer may have been killed. Try again: the next one who reads makes it anew";
    Error::io(Subject::WalHeader, io::Error::new(io::ErrorKind::WouldBlock, cause))
}

pub(super) fn io_error(Code(code): Code) -> Error {
    Error::io(Subject::WalHeader, io::Error::other(format!("SQLite code {code}")))
}

/// How large the log may grow, in bytes. The variable is read once; what says no number is told.
fn limit() -> u64 {
    static READ: OnceLock<u64> = OnceLock::new();
    *READ.get_or_init(|| {
        let Some(said) = std::env::var_os(LIMIT).filter(|said| !said.is_empty()) else {
            return LIMIT_BYTES;
        };
        said.to_str().and_then(|said| said.parse().ok()).unwrap_or_else(|| {
            let line =
                "says no number of bytes: the log grows to 8388608 before its frames are copied";
            note(ffi::MISUSE, Path::new(LIMIT), line);
            LIMIT_BYTES
        })
    })
}

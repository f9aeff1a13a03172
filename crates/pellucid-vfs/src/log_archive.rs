//! The archive of logs beside a database, `app.db-log/`: its state, its lock, and frames that are kept in it.
//!
//! Layout: docs/format.md, "Log archive". Frames get here before the log begins anew (`WalFile::keep`), and leave when a log
//! backup has them.
//!
//! The order of each change: the frames and their sync, the folder's sync, then the state and its sync. So a crash leaves
//! frames that are kept twice, and never some that are kept nowhere.

mod changed;
mod header;
mod marks;
mod past_cache;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::hash::Sha256;
use pellucid::keys::ContainerKeys;
use pellucid::log_archive::{
    ArchiveState, MarkedFrame, Segment, ARCHIVE_SECTORS, ARCHIVE_SECTOR_BYTES, SEGMENT_HEAD_BYTES,
};
use pellucid::nonce::SystemNonces;
use pellucid::secret::fill_random;
use pellucid::unit::TAIL_BYTES;
use pellucid::wal::{open_frame, seal_frame, Run, Stamp, Version};
use pellucid::{Error, Result, Subject};
use pellucid_files::paths::beside;
use pellucid_host::byte_lock;
use pellucid_host::folder::{give, name_of, Folder};
use pellucid_host::patience::Patience;

pub use header::keep_header;
use past_cache::PastCache;

/// Bytes of frames that are copied at a time: they stay in the processor's cache meanwhile.
const PIECE_BYTES: usize = 256 << 10;
/// The name behind the database's.
const SUFFIX: &str = "-log";
const STATE: &str = "state";
const HEADER: &str = "header";
const CHANGED: &str = "changed";
/// The end of the name of frames that are being written.
const UNFINISHED: &str = ".new";
/// Whoever changes the state holds this byte of its file, whoever makes a log backup the next one.
const STATE_LOCK: i64 = 1 << 62;
const BACKUP_LOCK: i64 = STATE_LOCK + 1;
/// How long the end of a chain waits for whoever changes the archive.
const PATIENCE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_micros(200);

/// The archive of one database.
#[derive(Debug)]
pub struct Archive {
    folder: Folder,
    path: PathBuf,
    state: File,
    /// Owner and mode of the database, which its archive has too: whoever writes the one writes the other.
    owner: (u32, u32),
    mode: u32,
}

/// The folder of the archive of the database at `database`.
pub fn path_of(database: &Path) -> PathBuf {
    beside(database, SUFFIX)
}

/// Removes the archive beside a database that has no chain any more. A folder of that name that is none is left as it is.
///
/// # Errors
/// [`Error::Io`].
pub fn remove(database: &Path) -> Result<()> {
    let path = path_of(database);
    let io = |error| Error::io(Subject::File(path.clone()), error);
    let archive = match Archive::open(database) {
        Ok(archive) => archive,
        Err(_) if !pellucid_files::paths::is_there(&path.join(STATE)) => return Ok(()),
        Err(error) => return Err(error),
    };
    if !archive.is_one() {
        return Ok(());
    }
    let locked = archive.lock(PATIENCE)?;
    for name in archive.folder.names().map_err(io)? {
        let is_own = name == STATE
            || name == HEADER
            || name == CHANGED
            || name.as_bytes().ends_with(UNFINISHED.as_bytes())
            || name.to_str().is_some_and(|name| Segment::of_file_name(name).is_some())
            || name.to_str().is_some_and(|name| MarkedFrame::of_file_name(name).is_some());
        if is_own {
            archive.folder.remove_name(&name).map_err(io)?;
        }
    }
    drop(locked);
    let beside = Folder::of(&path).map_err(io)?;
    match beside.remove_folder(&name_of(&path)) {
        // Somebody keeps something else in it.
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => removed.and_then(|()| beside.sync()).map_err(io),
    }
}

impl Archive {
    /// Opens the archive beside the database.
    ///
    /// # Errors
    /// [`Error::Io`], which names the file.
    pub fn open(database: &Path) -> Result<Self> {
        let path = path_of(database);
        let name = path.join(STATE);
        let io = |error| Error::io(Subject::File(name.clone()), error);
        let beside = Folder::of(&path).map_err(io)?;
        let folder = beside.folder(&name_of(&path)).map_err(io)?;
        let state = folder.open_to_write(OsStr::new(STATE)).map_err(io)?;
        let of = match beside.look(&name_of(database)) {
            // The archive outlives its database.
            Err(error) if error.kind() == io::ErrorKind::NotFound => File::metadata(&state),
            found => found,
        };
        let of = of.map_err(io)?;
        Ok(Self { folder, path, state, owner: (of.uid(), of.gid()), mode: of.mode() & 0o666 })
    }

    /// Makes the archive with its first state, or opens the one that is there and gives it that state. It belongs to whoever the
    /// database belongs to, and to nobody else.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::LimitReached`] if somebody else has it locked for longer than `timeout`.
    pub fn make(
        database: &Path,
        state: &ArchiveState,
        keys: &ContainerKeys,
        timeout: Duration,
    ) -> Result<Self> {
        let path = path_of(database);
        let io = |error: io::Error| Error::io(Subject::File(path.clone()), error);
        let beside = Folder::of(&path).map_err(io)?;
        match beside.make_folder(&name_of(&path), 0o700) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(io(error)),
            _ => beside.sync().map_err(io)?,
        }
        let folder = beside.folder(&name_of(&path)).map_err(io)?;
        let of = beside.look(&name_of(database)).map_err(io)?;
        let (owner, mode) = ((of.uid(), of.gid()), of.mode() & 0o666);
        folder.give(owner, mode | (mode & 0o444) >> 2).map_err(io)?;
        if !folder.has(OsStr::new(STATE)) {
            let file = folder.create(OsStr::new(STATE)).map_err(io)?;
            give(&file, owner, mode).map_err(io)?;
        }
        let archive = Self::open(database)?;
        let locked = archive.lock(timeout)?;
        // What is there is of a chain that has ended.
        archive.remove_unfinished();
        archive.segments()?.into_iter().try_for_each(|one| archive.remove_segment(one))?;
        archive.marked()?.iter().try_for_each(|one| archive.remove_mark(one))?;
        let known = [0, 1].map(|sequence| ArchiveState { sequence, ..*state });
        // Over both sectors, so that none of that chain is the newer one.
        for state in &known {
            locked.write(state, keys)?;
        }
        drop(locked);
        archive.folder.sync().map_err(io)?;
        Ok(archive)
    }

    /// Whether its state begins as one does, whoever's it is.
    fn is_one(&self) -> bool {
        ARCHIVE_SECTORS.iter().any(|at| {
            let mut start = [0; 8];
            self.state.read_exact_at(&mut start, *at).is_ok() && ArchiveState::begins(&start)
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the lock of its state.
    ///
    /// # Errors
    /// [`Error::LimitReached`] if somebody else has it for longer than `timeout`; [`Error::Io`].
    pub fn lock(&self, timeout: Duration) -> Result<Locked<'_>> {
        match self.wait_for(STATE_LOCK, timeout)? {
            true => Ok(Locked { archive: self }),
            false => Err(Error::limit(
                Subject::File(self.path.clone()),
                "another process changes it, and did not end",
            )),
        }
    }

    /// The same, at once. None if somebody else has it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn try_lock(&self) -> Result<Option<Locked<'_>>> {
        Ok(self.wait_for(STATE_LOCK, Duration::ZERO)?.then_some(Locked { archive: self }))
    }

    /// Takes the lock of whoever makes a log backup, until this archive is closed. False if somebody else has it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn lock_backups(&self, timeout: Duration) -> Result<bool> {
        self.wait_for(BACKUP_LOCK, timeout)
    }

    fn wait_for(&self, byte: i64, timeout: Duration) -> Result<bool> {
        let patience = Patience::new(timeout, RETRY);
        loop {
            // Without such locks two would write over each other's frames: it counts as an archive that cannot be written.
            match byte_lock::hold(&self.state, byte, true).map_err(|error| self.io(error))? {
                true => return Ok(true),
                false if patience.wait() => {}
                false => return Ok(false),
            }
        }
    }

    /// Its state, as whoever holds no lock finds it.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if neither sector is authentic under a key of the database's header; [`Error::Io`].
    pub fn state(&self, keys: &ContainerKeys) -> Result<ArchiveState> {
        let (sectors, keys) = (self.sectors()?, keys.header_keys()?);
        ArchiveState::newest(&sectors, &keys).map_err(|error| error.of_file(&self.path.join(STATE)))
    }

    /// Its state, as nobody has authenticated it: none if there is none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn look(&self) -> Result<Option<ArchiveState>> {
        Ok(ArchiveState::look(&self.sectors()?))
    }

    fn sectors(&self) -> Result<[[u8; ARCHIVE_SECTOR_BYTES]; 2]> {
        let mut sectors = [[0; ARCHIVE_SECTOR_BYTES]; 2];
        for (sector, at) in sectors.iter_mut().zip(ARCHIVE_SECTORS) {
            let mut done = 0;
            while done < sector.len() {
                match self.state.read_at(&mut sector[done..], at + done as u64) {
                    Ok(0) => break,
                    Ok(read) => done += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(self.io(error)),
                }
            }
        }
        Ok(sectors)
    }

    /// The kept frames, by epoch and first frame.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn segments(&self) -> Result<Vec<(u32, u32)>> {
        let names = self.folder.names().map_err(|error| self.io(error))?;
        let number = |name: &OsString| Segment::of_file_name(name.to_str()?);
        let mut found: Vec<_> = names.iter().filter_map(number).collect();
        found.sort_unstable();
        Ok(found)
    }

    /// Opens kept frames: their head, and the file.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if the head is not authentic, or of another file; [`Error::Io`].
    pub fn open_segment(
        &self,
        (epoch, first): (u32, u32),
        keys: &ContainerKeys,
    ) -> Result<(Segment, File)> {
        let name = format!("{epoch:08x}-{first:08x}.frames");
        let io = |error| Error::io(Subject::File(self.path.join(&name)), error);
        let mut file = self.folder.open(OsStr::new(&name)).map_err(io)?;
        let mut head = [0; SEGMENT_HEAD_BYTES];
        file.read_exact(&mut head).map_err(io)?;
        let keys = keys.header_keys()?;
        let segment =
            Segment::parse(&head, &keys).map_err(|error| error.of_file(&self.path.join(&name)))?;
        if (segment.epoch, segment.first) != (epoch, first) {
            let cause = format!("`{name}` has other frames than its name says");
            return Err(Error::unauthentic(Subject::LogArchive, cause));
        }
        Ok((segment, file))
    }

    /// Removes kept frames.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove_segment(&self, (epoch, first): (u32, u32)) -> Result<()> {
        let name = format!("{epoch:08x}-{first:08x}.frames");
        self.folder.remove_name(OsStr::new(&name)).map_err(|error| self.io(error))
    }

    /// Removes what processes left that were killed while they kept frames. Called under the lock.
    pub(crate) fn remove_unfinished(&self) {
        let names = self.folder.names().unwrap_or_default();
        for name in names.iter().filter(|name| name.as_bytes().ends_with(UNFINISHED.as_bytes())) {
            let _ = self.folder.remove_name(name);
        }
    }

    fn io(&self, error: io::Error) -> Error {
        Error::io(Subject::File(self.path.clone()), error)
    }
}

/// An archive whose lock is held.
#[derive(Debug)]
pub struct Locked<'a> {
    archive: &'a Archive,
}

impl Locked<'_> {
    /// The archive.
    pub fn archive(&self) -> &Archive {
        self.archive
    }

    /// Writes `state` as the next one, and syncs it.
    ///
    /// # Errors
    /// [`Error::Io`]. The state before counts then, or this one.
    pub fn write(&self, state: &ArchiveState, keys: &ContainerKeys) -> Result<ArchiveState> {
        let written = ArchiveState { sequence: state.sequence + 1, ..*state };
        let sector = written.encode(keys.header_key());
        let io = |error| self.archive.io(error);
        self.archive.state.write_all_at(&sector, written.place()).map_err(io)?;
        self.archive.state.sync_data().map_err(io)?;
        Ok(written)
    }

    /// Keeps `count` frames of `frame_bytes`: `read` gets a buffer for some of them, and the number of the first one, one piece after
    /// the other. Their tails come into the head. They are on disk with their name when this returns, and count when the state says so.
    ///
    /// # Errors
    /// [`Error::Io`]; those of `read`.
    pub fn keep(
        &self,
        segment: &Segment,
        keys: &ContainerKeys,
        (frame_bytes, count): (usize, u32),
        mut read: impl FnMut(&mut [u8], u32) -> Result<()>,
    ) -> Result<()> {
        let name = segment.file_name();
        let io = |error| Error::io(Subject::File(self.archive.path.join(&name)), error);
        self.put(&name, |file| {
            let most = (PIECE_BYTES / frame_bytes).max(1);
            let mut out = PastCache::new(file, most * frame_bytes);
            out.append(SEGMENT_HEAD_BYTES, io, |_| Ok(()))?;
            let (mut done, mut tails) = (0, Sha256::new());
            while done < count {
                let some = most.min((count - done) as usize);
                out.append(some * frame_bytes, io, |frames| {
                    read(frames, segment.first + done)?;
                    for frame in frames.chunks_exact(frame_bytes) {
                        tails.update(&frame[frame_bytes - TAIL_BYTES..]);
                    }
                    Ok(())
                })?;
                done += some as u32;
            }
            out.end().map_err(io)?;
            let head = Segment { count, tails: tails.finish(), ..*segment };
            file.write_all_at(&head.encode(keys.header_key()), 0).map_err(io)
        })
    }

    /// Makes the file `name`, or another one in its place. It is on disk with its name when this returns.
    fn put(&self, name: &str, write: impl FnOnce(&File) -> Result<()>) -> Result<()> {
        let mut random = [0; 8];
        fill_random(&mut random)?;
        let unfinished = format!("{}{UNFINISHED}", pellucid::hash::hex(&random));
        let folder = &self.archive.folder;
        let io = |error| Error::io(Subject::File(self.archive.path.join(name)), error);
        let put = || {
            let file = folder.create(OsStr::new(&unfinished)).map_err(io)?;
            // A member of a group that shares the database cannot give the file away, and need not.
            let Archive { owner, mode, .. } = self.archive;
            if give(&file, *owner, *mode).is_err() {
                let own = file.metadata().map_err(io)?;
                give(&file, (own.uid(), owner.1), *mode).map_err(io)?;
            }
            write(&file)?;
            file.sync_data().map_err(io)?;
            folder.rename(OsStr::new(&unfinished), OsStr::new(name), &file).map_err(io)?;
            folder.sync().map_err(io)
        };
        let written = put();
        if written.is_err() {
            let _ = folder.remove_name(OsStr::new(&unfinished));
        }
        written
    }
}

impl Locked<'_> {
    /// Seals kept frames anew that are under an older key than the present one. Each keeps its stamp and its place.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if a frame does not open; [`Error::Io`].
    pub fn renew(&self, name: (u32, u32), keys: &ContainerKeys, frame_bytes: usize) -> Result<()> {
        let (segment, file) = self.archive.open_segment(name, keys)?;
        let run = Run::of(&segment.header, Version::Second);
        let (mut unit, mut frame) = (vec![0; frame_bytes], vec![0; frame_bytes]);
        let (mut tails, mut done) = (Sha256::new(), 0);
        self.keep(&segment, keys, (frame_bytes, segment.count), |pieces, first| {
            for (number, sealed) in (first..).zip(pieces.chunks_exact_mut(frame_bytes)) {
                let at = u64::from(number - segment.first) * frame_bytes as u64;
                file.read_exact_at(&mut unit, SEGMENT_HEAD_BYTES as u64 + at)
                    .map_err(|error| self.archive.io(error))?;
                tails.update(&unit[frame_bytes - TAIL_BYTES..]);
                open_frame(keys, &run, number, &unit, &mut frame)?;
                let stamp = Stamp::of(&unit);
                if stamp.mark_follows {
                    self.renew_mark((&run, stamp), number, keys)?;
                }
                seal_frame(keys, &mut SystemNonces, (&run, stamp), number, &frame, sealed)?;
                done += 1;
                if done == segment.count && tails.clone().finish() != segment.tails {
                    return Err(other_frames(&segment));
                }
            }
            Ok(())
        })
    }
}

/// The error of a segment whose frames are not those that were kept in it.
pub fn other_frames(segment: &Segment) -> Error {
    let cause = format!("`{}` has other frames than were kept in it", segment.file_name());
    Error::unauthentic(Subject::LogArchive, cause)
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let _ = byte_lock::give_back(&self.archive.state, STATE_LOCK);
    }
}

//! The WAL of a sealed database: each frame, header and page, is one sealed unit.
//!
//! SQLite writes a frame in two or more pieces, rewrites pages in place, and rewrites frame headers
//! alone. The shim gathers a whole frame before it seals it. It holds the sealed frames of a
//! transaction and writes them with one call, up to the frame that carries the commit. Layout:
//! docs/format.md, "WAL".

mod frames;
mod full;
mod keep;
mod lost;
mod mark;
mod reading;
mod recovery;
mod stamps;
mod writing;

use std::cell::Cell;
use std::ffi::c_int;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use pellucid::wal::{
    refuse_newer, refuse_other, Run, Version, WalHeader, FRAME_HEADER_BYTES, HEADER_BYTES,
};
use pellucid_host::code::{Code, Outcome};
use pellucid_host::ffi;

use crate::container::Container;
use crate::lower::Lower;
use crate::read_ahead::ReadAhead;

use frames::Frames;
pub use keep::{Restart, Standing};
use reading::Opened;
use stamps::Stamps;
use writing::Gathering;

/// The sealed side of a WAL file.
#[derive(Debug)]
pub struct WalFile {
    container: Rc<Container>,
    lower: Lower,
    page_bytes: usize,
    /// The frame SQLite is writing piece by piece, as SQLite sees it.
    gathering: Option<Gathering>,
    /// The buffer of `gathering`, kept between frames.
    frame: Vec<u8>,
    /// The frames of the transaction under way.
    frames: Frames,
    /// One frame as it lies on disk.
    unit: Vec<u8>,
    /// A frame opened for its stamp or its commit alone.
    looked_at: Vec<u8>,
    /// Frames read ahead, because a checkpoint of one long transaction reads the frames in their
    /// order. Cleared when a lock changes; until then the locks keep other connections from
    /// overwriting them. Writing a frame removes that frame.
    ahead: ReadAhead,
    /// The frame opened last.
    opened: Opened,
    /// The frame whose header SQLite has just rewritten with the same page and salts. The page may
    /// follow.
    headed: Option<u32>,
    /// What the log's header says of its present run. Cleared when a lock changes.
    run: Cell<Option<Run>>,
    /// What frames of version 2 are stamped with.
    stamps: Stamps,
    /// The last frame known to carry a commit, and its salts. That frame and those before it are
    /// committed, whatever the wal-index says.
    committed: (Salts, u32),
    torn_noted: bool,
    /// Up to where the archive has a run of the log, as far as this connection knows.
    known_kept: (Salts, u32),
}

/// The salts of a log, which distinguish the frames of its present run from those of earlier runs
/// (SQLite file format, 4.1).
type Salts = [u8; 8];

/// A place in the log: a frame's number and an offset inside the frame.
struct Spot {
    number: u32,
    within: usize,
}
impl WalFile {
    /// Makes the sealed side of the WAL that `lower` opened.
    pub fn new(container: Rc<Container>, lower: Lower, path: PathBuf) -> Self {
        Self {
            container,
            lower,
            page_bytes: 0,
            gathering: None,
            frame: Vec::new(),
            frames: Frames::new(path),
            unit: Vec::new(),
            looked_at: Vec::new(),
            ahead: ReadAhead::default(),
            opened: Opened::default(),
            headed: None,
            run: Cell::new(None),
            stamps: Stamps::default(),
            committed: (Salts::default(), 0),
            torn_noted: false,
            known_kept: (Salts::default(), 0),
        }
    }

    /// The lower file.
    pub(crate) fn lower(&self) -> Lower {
        self.lower
    }

    /// The size of the log in bytes.
    ///
    /// # Errors
    /// A code.
    pub fn size(&mut self) -> Outcome<u64> {
        if self.frames.failure().is_none() {
            self.flush()?;
        }
        self.lower.size()
    }

    /// Cuts the log to `size` bytes.
    ///
    /// # Errors
    /// A code.
    pub fn truncate(&mut self, size: u64) -> Outcome<()> {
        self.gathering = None;
        self.container.check_writable()?;
        self.refuse_other()?;
        self.flush()?;
        if size == 0 {
            self.stamps.stays();
            self.keep_before_end()?;
        }
        self.forget();
        self.frames.forget_headers_from(0);
        self.lower.truncate(size)
    }

    /// Notes that a checkpoint begins: what it syncs was committed before.
    pub fn begin_checkpoint(&mut self) {
        self.stamps.stays();
    }

    /// Completes and writes the frames, then forces the log to disk.
    ///
    /// # Errors
    /// A code.
    pub fn sync(&mut self, flags: c_int) -> Outcome<()> {
        let completed = self.complete();
        if completed.is_err() {
            self.gathering = None;
            self.stamps.take_back();
            self.tell();
        }
        completed?;
        let synced = self.lower.sync(flags);
        self.stamps.synced(self.committed, synced.is_ok());
        match synced {
            Ok(()) => self.stamps.stays(),
            Err(_) => {
                // SQLite takes the transaction back.
                self.committed.1 = 0;
                self.stamps.take_back();
            }
        }
        synced
    }

    /// Refuses to change the log of another version than the database's.
    fn refuse_other(&self) -> Outcome<()> {
        let mut header = [0; HEADER_BYTES];
        self.lower.read(&mut header, 0)?;
        self.check_version(&header)
    }

    fn check_version(&self, header: &[u8; HEADER_BYTES]) -> Outcome<()> {
        refuse_other(header, self.version()).map_err(|error| self.container.report(&error))
    }

    fn version(&self) -> Version {
        self.container.version()
    }

    fn know_page_size(&mut self) -> Outcome<()> {
        if self.page_bytes != 0 {
            return Ok(());
        }
        let mut header = [0; HEADER_BYTES];
        self.lower.read(&mut header, 0)?;
        self.check_version(&header)?;
        let parsed = WalHeader::parse_sealed(&header, self.version());
        let page_bytes = parsed.map(|parsed| parsed.page_size as usize);
        let page_bytes = page_bytes.or_else(|| self.container.page_size());
        self.set_page_size(page_bytes.ok_or(Code(ffi::IOERR))?);
        Ok(())
    }

    fn set_page_size(&mut self, page_bytes: usize) {
        self.page_bytes = page_bytes;
        self.frame.resize(page_bytes + FRAME_HEADER_BYTES, 0);
    }

    fn frame_bytes(&self) -> usize {
        self.page_bytes + FRAME_HEADER_BYTES
    }

    fn offset(&self, number: u32) -> u64 {
        HEADER_BYTES as u64 + u64::from(number - 1) * self.frame_bytes() as u64
    }

    /// Whether the log's header or a frame begins at `offset`.
    fn begins_frame(&self, offset: u64) -> bool {
        let behind = offset.checked_sub(HEADER_BYTES as u64);
        behind.map_or(offset == 0, |behind| behind % self.frame_bytes() as u64 == 0)
    }

    fn spot(&self, offset: u64) -> Spot {
        let offset = offset - HEADER_BYTES as u64;
        let frame_bytes = self.frame_bytes() as u64;
        Spot { number: (offset / frame_bytes) as u32 + 1, within: (offset % frame_bytes) as usize }
    }
}

/// Returns the salts of a frame: bytes 8 to 15, which its tag covers.
fn salts_of(frame: &[u8]) -> Salts {
    let mut salts = Salts::default();
    salts.copy_from_slice(&frame[8..16]);
    salts
}

/// Whether a frame with these salts is of the run of the log whose header has the salts `of_log`.
///
/// While checksums are put off SQLite writes zeros (`walEncodeFrame`), and it leaves them where a transaction went back to a savepoint
/// before the first frame that it had written over: committed frames can have zeros for good.
fn is_of_run(salts: Salts, of_log: Salts) -> bool {
    salts == of_log || salts == Salts::default()
}

/// Refuses if the file at `path` is the log of a later version. A file that cannot be read is no
/// log, nor is a FIFO. SQLite holds no locks on a WAL, so closing it here drops none.
///
/// # Errors
/// [`Error::Unsupported`], which names the version.
pub fn refuse_newer_at(path: &Path) -> pellucid::Result<()> {
    let mut header = [0; HEADER_BYTES];
    match pellucid_files::regular::open(path).and_then(|mut log| log.read_exact(&mut header)) {
        Ok(()) => refuse_newer(&header),
        Err(_) => Ok(()),
    }
}

/// The same, and refuses the log of another version than its database.
///
/// # Errors
/// As [`refuse_other`].
pub fn refuse_other_at(path: &Path, of_database: Version) -> pellucid::Result<()> {
    let mut header = [0; HEADER_BYTES];
    match pellucid_files::regular::open(path).and_then(|mut log| log.read_exact(&mut header)) {
        Ok(()) => refuse_other(&header, of_database),
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use pellucid::wal::RESERVED_VERSION;

    use super::*;

    #[test]
    fn a_fifo_is_no_log() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db-wal");
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&0x377f_0682u32.to_be_bytes());
        header[4..8].copy_from_slice(&RESERVED_VERSION.to_be_bytes());
        std::fs::write(&path, header).unwrap();
        assert!(refuse_newer_at(&path).is_err());
        std::fs::remove_file(&path).unwrap();
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
        // A reader that takes the FIFO for a file would find a header in it and not wait.
        let mut held = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        held.write_all(&header).unwrap();
        refuse_newer_at(&path).unwrap();
    }
}

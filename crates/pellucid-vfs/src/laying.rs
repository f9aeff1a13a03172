//! Laying a copy over its database, and finishing a laying that was interrupted.
//!
//! The order of the writes makes it safe against a crash: sector 0, sync, the rest, sync, the bytes
//! that make the file whole again, sync; then the copy is removed. Layout: docs/format.md,
//! "Laying".

use std::os::unix::fs::FileExt;
use std::path::Path;

use pellucid::header::{Header, COPY_BYTES, COPY_OFFSETS, REGION_BYTES};
use pellucid::sector::{SectorZero, SECTOR_BYTES};
use pellucid::shown::Shown;
use pellucid::{Error, Result, Subject};
use pellucid_files::paths::{beside, copy_path, is_there, look_at_name};
use pellucid_host::code::{note, report, Code, Outcome};
use pellucid_host::ffi;

use crate::copy::CopyFile;
use crate::lower::{Lower, CALL_BYTES};
use crate::open_file::OpenFile;
use crate::pins::{Expectation, Lesser};

/// A copy that is to be laid over its database, and whether it is sealed.
#[derive(Debug)]
pub struct Laying {
    copy: CopyFile,
    bytes: u64,
    sealed: bool,
}

impl Laying {
    /// Makes the laying of a complete copy. A drop before [`Laying::begin`] removes a new copy, but
    /// never one that an interrupted conversion left.
    ///
    /// # Errors
    /// [`Error::Io`] if the copy cannot be read.
    pub fn of(copy: CopyFile, sealed: bool) -> Result<Self> {
        let io = |error| Error::io(Subject::File(copy.path().to_owned()), error);
        let bytes = copy.file().metadata().map_err(io)?.len();
        Ok(Self { copy, bytes, sealed })
    }

    /// Checks that the copy still has its name, by which another process finds it to finish an
    /// interrupted laying.
    ///
    /// # Errors
    /// [`Error::Misuse`].
    pub fn assert_named(&self) -> Result<()> {
        self.copy.assert_named()
    }

    /// Removes a rollback journal of the database `path` that nothing plays back: it was ended (`journal_mode=PERSIST`), or its
    /// process was killed before the first sync. Its pages are those of the file as it was, in clear if the file was.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove_dead_journal(&self, path: &Path) -> Result<()> {
        self.copy.remove_journal(&beside(path, "-journal"))
    }

    /// Keeps the copy on drop: from here on the database is in the copy alone.
    pub fn begin(&mut self) {
        self.copy.keep();
    }

    /// Lays everything behind sector 0, which was written before and says that a laying is under
    /// way.
    ///
    /// # Errors
    /// A code; [`roll_forward`] can finish the laying then.
    pub fn lay(&self, file: OpenFile<'_>, progress: &mut dyn FnMut(u64, u64)) -> Outcome<()> {
        let lower = file.lower();
        let last = if self.sealed { REGION_BYTES } else { SECTOR_BYTES as u64 };
        if self.sealed {
            self.copy_range(lower, SECTOR_BYTES as u64, COPY_OFFSETS[0], &mut |_, _| ())?;
        }
        self.copy_range(lower, last, self.bytes, progress)?;
        lower.truncate(self.bytes)?;
        lower.sync(ffi::SYNC_NORMAL)?;
        if self.sealed {
            for offset in COPY_OFFSETS {
                self.copy_range(lower, offset, offset + COPY_BYTES as u64, &mut |_, _| ())?;
                lower.sync(ffi::SYNC_NORMAL)?;
            }
        } else {
            let mut sector = [0; SECTOR_BYTES];
            self.copy.file().read_exact_at(&mut sector, 0).map_err(|_| Code(ffi::IOERR_READ))?;
            replace_sector_zero(file, &sector).map_err(|unwritten| unwritten.code)?;
            lower.sync(ffi::SYNC_NORMAL)?;
        }
        Ok(())
    }

    /// Removes the copy, which is no longer needed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove(self) -> Result<()> {
        self.copy.remove()
    }

    fn copy_range(
        &self,
        lower: Lower,
        from: u64,
        to: u64,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Outcome<()> {
        let mut buffer = vec![0; CALL_BYTES];
        let mut at = from;
        while at < to {
            let part = (to - at).min(CALL_BYTES as u64) as usize;
            let read = self.copy.file().read_exact_at(&mut buffer[..part], at);
            read.map_err(|_| Code(ffi::IOERR_READ))?;
            lower.write(&buffer[..part], at)?;
            at += part as u64;
            progress(at, to);
        }
        Ok(())
    }
}

/// The error of a sector 0 that could not be written.
#[derive(Debug)]
pub struct Unwritten {
    pub code: Code,
    /// Whether the old sector 0 was restored. If not, the sector may have a part of each.
    pub put_back: bool,
}

/// Writes another sector 0. Restores the old one if the write fails.
///
/// # Errors
/// [`Unwritten`], which says whether the old sector is there again.
pub fn replace_sector_zero(
    file: OpenFile<'_>,
    sector: &[u8; SECTOR_BYTES],
) -> std::result::Result<(), Unwritten> {
    let lower = file.lower();
    let mut before = [0; SECTOR_BYTES];
    lower.read(&mut before, 0).map_err(|code| Unwritten { code, put_back: true })?;
    lower.write(sector, 0).map_err(|code| {
        let put_back = lower.write(&before, 0).and_then(|()| lower.sync(ffi::SYNC_NORMAL));
        Unwritten { code, put_back: put_back.is_ok() }
    })
}

/// Makes the sector 0 that begins the laying of a plain copy: the file id, the copy's size and its
/// hash.
///
/// # Errors
/// [`Error::Io`] if the copy cannot be read.
pub fn plain_sector(file_id: [u8; 16], copy: &CopyFile) -> Result<SectorZero> {
    let (copy_bytes, copy_sha256) = digest(copy)?;
    Ok(SectorZero::LayingPlain { file_id, copy_bytes, copy_sha256 })
}

/// Size and SHA-256 of a copy.
///
/// # Errors
/// [`Error::Io`] if it cannot be read.
pub fn digest(copy: &CopyFile) -> Result<(u64, [u8; 32])> {
    let io = |error| Error::io(Subject::File(copy.path().to_owned()), error);
    let mut hash = pellucid::hash::Sha256::new();
    let mut buffer = vec![0; CALL_BYTES];
    let mut bytes = 0;
    loop {
        let read = match copy.file().read_at(&mut buffer, bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            read => read.map_err(io)?,
        };
        if read == 0 {
            return Ok((bytes, hash.finish()));
        }
        hash.update(&buffer[..read]);
        bytes += read as u64;
    }
}

/// The kind of an unfinished laying, with what its copy has to match.
enum Unfinished {
    Sealed([u8; 16]),
    Plain(SectorZero),
}

/// Whether a laying over the file was begun and not finished.
///
/// # Errors
/// The lower VFS's code.
pub fn is_unfinished(lower: Lower, path: &Path) -> Outcome<bool> {
    Ok(unfinished(lower)?.is_some_and(|kind| match kind {
        Unfinished::Plain(_) => true,
        Unfinished::Sealed(_) => is_there(&copy_path(path)) || may_be_laying(lower),
    }))
}

/// Whether the file is longer than an interrupted birth leaves it.
fn may_be_laying(lower: Lower) -> bool {
    lower.size().is_ok_and(|size| size > REGION_BYTES)
}

fn unfinished(lower: Lower) -> Outcome<Option<Unfinished>> {
    let mut region = vec![0; REGION_BYTES as usize];
    lower.read(&mut region, 0)?;
    match SectorZero::parse(&region[..SECTOR_BYTES]) {
        Ok(Some(SectorZero::Sealed { file_id })) => {
            let whole = COPY_OFFSETS.iter().enumerate().any(|(copy, offset)| {
                let bytes = &region[*offset as usize..*offset as usize + COPY_BYTES];
                !matches!(Header::parse(bytes, copy as u8), Err(Error::Corrupt { .. }))
            });
            Ok((!whole).then_some(Unfinished::Sealed(file_id)))
        }
        Ok(Some(sector @ SectorZero::LayingPlain { .. })) => Ok(Some(Unfinished::Plain(sector))),
        _ => Ok(None),
    }
}

/// Whether the copy of a conversion or a restore lies beside a database. If the database cannot be
/// read, the next process that opens it and may write finishes the laying first.
///
/// This opens no descriptor on the database, which another connection of this process may have
/// open.
pub fn is_copy_beside(path: &Path) -> bool {
    let copy = copy_path(&pellucid_files::paths::own_name(path));
    look_at_name(&copy).is_ok_and(|found| found.is_file())
}

/// Finishes an interrupted laying under EXCLUSIVE.
///
/// # Errors
/// `SQLITE_BUSY` while another connection finishes it. A code after a line in the log that names
/// the copy, if the copy is missing or another one, or may not be laid because the file is
/// read-only.
pub fn roll_forward(
    lower: Lower,
    path: &Path,
    read_only: bool,
    expected: &Expectation,
) -> Outcome<()> {
    if read_only {
        let error = match is_there(&copy_path(path)) {
            true => blocked(path, "by whoever opens it and may write; this connection may not"),
            false => headless(path),
        };
        return Err(report(path, &error));
    }
    lower.lock(ffi::LOCK_SHARED)?;
    let finished = lower
        .lock(ffi::LOCK_RESERVED)
        .and_then(|()| lower.lock(ffi::LOCK_EXCLUSIVE))
        .and_then(|()| finish(lower, path, expected));
    let unlocked = lower.unlock(ffi::LOCK_NONE);
    finished?;
    unlocked
}

fn finish(lower: Lower, path: &Path, expected: &Expectation) -> Outcome<()> {
    let typed = |error: Error| report(path, &error);
    // Another process may have finished it while this connection waited for the lock.
    let Some(kind) = unfinished(lower)? else { return Ok(()) };
    // The checked file itself is laid, by its descriptor, whichever file has its name by then.
    let copy = CopyFile::left(copy_path(path), path).map_err(typed)?;
    let (copy, sealed) = match kind {
        Unfinished::Sealed(file_id) => {
            let copy = copy.ok_or_else(|| typed(headless(path)))?;
            check_sealed_copy(path, &copy, file_id).map_err(typed)?;
            (copy, true)
        }
        Unfinished::Plain(sector) => {
            let copy = copy.ok_or_else(|| typed(blocked(path, "which is not there")))?;
            check_plain_copy(path, &copy, &sector).map_err(typed)?;
            // Anybody can begin such a laying, which has no key. A decryption or restore that was asked for has let the database
            // go.
            if !is_sealed(&copy) {
                let hash = match sector {
                    SectorZero::LayingPlain { copy_sha256, .. } => Some(copy_sha256),
                    _ => None,
                };
                expected.refuse_plain(Lesser::Plain, || hash).map_err(typed)?;
            }
            (copy, false)
        }
    };
    note(ffi::OK, path, "an encryption or decryption was interrupted; finishing it");
    // The process that wrote sector 0 may have been killed before its sync. Sector 0 has to be on
    // disk before anything is laid.
    lower.sync(ffi::SYNC_NORMAL)?;
    let laying = Laying::of(copy, sealed).map_err(typed)?;
    laying.lay(OpenFile::within(lower), &mut |_, _| ())?;
    laying.remove().map_err(typed)
}

fn check_sealed_copy(path: &Path, copy: &CopyFile, file_id: [u8; 16]) -> Result<()> {
    let mut sector = [0; SECTOR_BYTES];
    if copy.file().read_exact_at(&mut sector, 0).is_err() {
        return Err(headless(path));
    }
    match SectorZero::parse(&sector) {
        Ok(Some(SectorZero::Sealed { file_id: found })) if found == file_id => Ok(()),
        _ => Err(blocked(path, "and the one there belongs to another database")),
    }
}

fn is_sealed(copy: &CopyFile) -> bool {
    let mut sector = [0; SECTOR_BYTES];
    copy.file().read_exact_at(&mut sector, 0).is_ok()
        && matches!(SectorZero::parse(&sector), Ok(Some(SectorZero::Sealed { .. })))
}

fn check_plain_copy(path: &Path, copy: &CopyFile, sector: &SectorZero) -> Result<()> {
    let SectorZero::LayingPlain { copy_bytes, copy_sha256, .. } = sector else { return Ok(()) };
    match digest(copy) {
        Ok((bytes, sum)) if bytes == *copy_bytes && sum == *copy_sha256 => Ok(()),
        Ok(_) => Err(blocked(path, "and the one there is another or damaged")),
        Err(_) => Err(blocked(path, "which cannot be read")),
    }
}

/// Makes the error for a container without a whole header. Damage to both header copies and a
/// conversion whose copy was deleted look the same, so it names both.
fn headless(path: &Path) -> Error {
    Error::corrupt(
        Subject::Container,
        format!(
            "both copies of its header are damaged or missing, and there is no copy of an \
             interrupted conversion beside it (`{}`)",
            copy_path(path).shown()
        ),
    )
}

fn blocked(path: &Path, why: &str) -> Error {
    Error::corrupt(
        Subject::Container,
        format!(
            "its header is missing: an encryption or decryption was interrupted and is finished \
             from the copy `{}`, {why}",
            copy_path(path).shown()
        ),
    )
}

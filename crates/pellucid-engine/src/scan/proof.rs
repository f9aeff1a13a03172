//! The proof that no unit of an older key is left: every tail of the database file and of the WAL is read, and
//! no journal is there.
//!
//! It needs no lock. From the switch on no connection seals under an older key, so a tail that was
//! current stays so, and a new tail is current.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::header::{Header, REGION_BYTES};
use pellucid::journal;
use pellucid::shown::Shown;
use pellucid::unit;
use pellucid::wal::{FRAME_HEADER_BYTES, HEADER_BYTES};
use pellucid::{Error, Result, Subject};
use pellucid_files::paths::beside;
use pellucid_host::code::Outcome;
use pellucid_host::DatabaseError;
use pellucid_vfs::lost_log;
use pellucid_vfs::open_file::OpenFile;

use super::pages::{self, Stretch};
use super::{Doing, Survey, Watch};

const REST_ATTEMPTS: usize = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// The place of a unit under an older key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// A page of the database.
    Page(u32),
    /// Bytes behind the last whole page.
    Rest(u64),
    /// A frame of the WAL.
    Frame(u32),
    /// A rollback journal that should not have one.
    Journal,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Left::Page(number) => write!(f, "page {number}"),
            Left::Rest(bytes) => write!(f, "what lies in the last {bytes} bytes"),
            Left::Frame(number) => write!(f, "frame {number} of the WAL"),
            Left::Journal => f.write_str("the rollback journal"),
        }
    }
}

/// Returns the first unit that is not under the current DEK.
pub fn search(
    lower: OpenFile<'_>,
    path: &Path,
    header: &Header,
    watch: &mut Watch<'_>,
) -> std::result::Result<Option<Left>, DatabaseError> {
    let failed = |code: pellucid_host::code::Code| DatabaseError::Sqlite {
        file: path.shown().to_string(),
        code: code.0,
        message: "cannot be read for the proof".to_owned(),
    };
    let rest = rest(lower, header).map_err(failed)?;
    if rest != 0 {
        return Ok(Some(Left::Rest(rest)));
    }
    let last = pages::in_file(lower, header).map_err(failed)?;
    let mut stretch = Stretch::default();
    let mut next = 1;
    while next <= last {
        let (older, read) = stretch.older(lower, header, next, last).map_err(failed)?;
        if let Some(page) = older.first() {
            return Ok(Some(Left::Page(*page)));
        }
        next += read;
        watch(Doing::Proving, (next - 1) as u32, last as u32);
    }
    Ok(match search_wal(path, header)? {
        Some(frame) => Some(Left::Frame(frame)),
        None => has_older_journal(path, header)?.then_some(Left::Journal),
    })
}

/// Returns the number of bytes behind the last whole page. A page that is being written comes to
/// the file piece by piece, so only bytes that stay are a rest.
fn rest(lower: OpenFile<'_>, header: &Header) -> Outcome<u64> {
    let mut rest = 0;
    for _ in 0..REST_ATTEMPTS {
        rest = lower.size()?.saturating_sub(REGION_BYTES) % u64::from(header.page_size);
        if rest == 0 {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(rest)
}

/// Counts all units that [`search`] would find.
pub fn survey(
    lower: OpenFile<'_>,
    path: &Path,
    header: &Header,
    watch: &mut Watch<'_>,
) -> std::result::Result<Survey, DatabaseError> {
    let failed = |code: pellucid_host::code::Code| DatabaseError::Sqlite {
        file: path.shown().to_string(),
        code: code.0,
        message: "cannot be read".to_owned(),
    };
    let pages = pages::in_file(lower, header).map_err(failed)?;
    let mut survey = Survey { pages, older: 0, first: None, beside: false };
    let mut stretch = Stretch::default();
    let mut next = 1;
    while next <= pages {
        let (older, read) = stretch.older(lower, header, next, pages).map_err(failed)?;
        survey.first = survey.first.or(older.first().copied());
        survey.older += older.len() as u64;
        next += read;
        watch(Doing::Proving, (next - 1) as u32, pages as u32);
    }
    survey.beside = search_wal(path, header)?.is_some()
        || has_older_journal(path, header)?
        || older_copy(path, header)?.is_some();
    Ok(survey)
}

/// Returns a copy of a damaged log's rest that has a frame under an older key, accepted or not: who has that key reads the rows in it.
///
/// # Errors
/// [`Error::Io`].
pub fn older_copy(path: &Path, header: &Header) -> Result<Option<PathBuf>> {
    for copy in lost_log::all(path)? {
        if search_log(&copy, header)?.is_some() {
            return Ok(Some(copy));
        }
    }
    Ok(None)
}

/// Reads the WAL by a descriptor of its own. SQLite keeps no locks on a WAL, so closing it drops none.
fn search_wal(path: &Path, header: &Header) -> Result<Option<u32>> {
    search_log(&beside(path, "-wal"), header)
}

/// Returns the first frame of a log that is under an older DEK. A hole of a copy is none, nor is what a power cut left of a
/// frame: that it names one of the few older generations has a chance of some 2^-30.
fn search_log(name: &Path, header: &Header) -> Result<Option<u32>> {
    use std::os::unix::fs::FileExt;
    let wal = match pellucid_files::regular::open_named(name) {
        Ok(wal) => wal,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(Subject::File(name.to_owned()), error)),
    };
    let failed = |error| Error::io(Subject::File(name.to_owned()), error);
    let frame_bytes = (FRAME_HEADER_BYTES + header.page_size as usize) as u64;
    let size = wal.metadata().map_err(failed)?.len();
    let frames = size.saturating_sub(HEADER_BYTES as u64) / frame_bytes;
    let since = header.current_dek()?.first_generation;
    let mut tail = [0; unit::TAIL_BYTES];
    for number in 1..=frames {
        let end = HEADER_BYTES as u64 + number * frame_bytes;
        wal.read_exact_at(&mut tail, end - unit::TAIL_BYTES as u64).map_err(failed)?;
        if unit::generation(&tail).is_some_and(|generation| 0 < generation && generation < since) {
            return Ok(Some(number as u32));
        }
    }
    Ok(None)
}

/// Whether a journal has a header or a first record under an older key. The scan removed the
/// journal under EXCLUSIVE, so one that is there now was made since, and completely.
///
/// The header of an ended journal no longer says where the first record begins. It begins one
/// sector in, and each connection has its own sector size, so every size is tried. Bytes that are
/// no record may name any generation; that they name one of the few older ones has a chance of some
/// 2^-30.
fn has_older_journal(path: &Path, header: &Header) -> Result<bool> {
    let name = beside(path, "-journal");
    let failed = |error| Error::io(Subject::File(name.clone()), error);
    let journal = match pellucid_files::regular::open_named(&name) {
        Ok(journal) => journal,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    let record_bytes = journal::record_bytes(header.page_size as usize);
    let mut start = Vec::new();
    journal
        .take(journal::SECTOR_MOST + record_bytes as u64)
        .read_to_end(&mut start)
        .map_err(failed)?;
    let in_header = journal::header_generations(&start).into_iter();
    if in_header.filter(|generation| *generation != 0).any(|one| !header.is_current(one)) {
        return Ok(true);
    }
    let since = header.current_dek()?.first_generation;
    let sectors =
        (journal::SECTOR_LEAST.ilog2()..=journal::SECTOR_MOST.ilog2()).map(|bits| 1 << bits);
    let mut records = sectors.filter_map(|sector: usize| start.get(sector..sector + record_bytes));
    Ok(records.any(|record| unit::generation(record).is_some_and(|one| 0 < one && one < since)))
}

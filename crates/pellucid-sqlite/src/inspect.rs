//! What a file is, without a key and without SQLite.
//!
//! Reads the file directly, so it must not be called while this process has the file open through
//! SQLite: closing the descriptor would drop SQLite's locks (howtocorrupt.html, 2.2).

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use pellucid::header::{Header, REGION_BYTES};
use pellucid::scan::{Progress, PROGRESS_BYTES, PROGRESS_OFFSET};
use pellucid::sector::{SectorZero, SECTOR_BYTES, SQLITE_MAGIC};
use pellucid::{Error, Result, Subject};

use crate::convert::copy_path;
use crate::link::ReadHeader;
use crate::main_file::truncated;

/// What was found.
#[derive(Debug)]
pub struct Inspection {
    /// The file.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// What it is.
    pub kind: Kind,
    /// A copy of a conversion lies beside it.
    pub copy: Option<PathBuf>,
    /// A WAL or journal lies beside it, with its bytes.
    pub logs: Vec<(PathBuf, u64)>,
}

/// What a file is.
#[derive(Debug)]
#[non_exhaustive]
pub enum Kind {
    /// Nothing in it.
    Empty,
    /// A plain SQLite database.
    Plain,
    /// A container; the header is not authenticated.
    Sealed(Box<SealedHeader>),
    /// A conversion was interrupted; opening it for writing finishes it.
    Unfinished,
    /// Neither.
    NotADatabase,
    /// A container that cannot be read.
    Damaged(Error),
}

/// A container's header and how whole its copies are.
#[derive(Debug)]
pub struct SealedHeader {
    /// The header.
    pub header: Header,
    /// Copy 0 is damaged.
    pub first_copy_damaged: bool,
    /// Sector 0 is damaged.
    pub sector_damaged: bool,
    /// How far a scan says it is; not authenticated either.
    pub progress: Option<Progress>,
}

/// Looks at `path`.
///
/// # Errors
/// [`Error::Io`] if it cannot be read.
pub fn inspect(path: &Path) -> Result<Inspection> {
    let io = |error| Error::io(Subject::File(path.to_owned()), error);
    let mut file = File::open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    if !metadata.is_file() {
        return Err(io(std::io::Error::other("not a regular file")));
    }
    let mut region = Vec::with_capacity(REGION_BYTES as usize);
    file.by_ref().take(REGION_BYTES).read_to_end(&mut region).map_err(io)?;
    let copy = Some(copy_path(path)).filter(|copy| copy.exists());
    let logs = ["-wal", "-journal"]
        .iter()
        .filter_map(|suffix| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            let bytes = std::fs::metadata(&name).ok()?.len();
            (bytes > 0).then_some((PathBuf::from(name), bytes))
        })
        .collect();
    let is_whole = metadata.len() <= REGION_BYTES;
    let kind = kind_of(&region, copy.is_some(), is_whole);
    Ok(Inspection { path: path.to_owned(), bytes: metadata.len(), kind, copy, logs })
}

/// `is_whole`: nothing lies behind `region`.
fn kind_of(region: &[u8], has_copy: bool, is_whole: bool) -> Kind {
    // An interrupted birth leaves zeros in sector 0 and no page.
    let unborn = is_whole && region.iter().take(SECTOR_BYTES).all(|byte| *byte == 0);
    if region.is_empty() || unborn {
        return Kind::Empty;
    }
    if region.starts_with(SQLITE_MAGIC) {
        return Kind::Plain;
    }
    let ours = region.starts_with(b"Pellucid ");
    if region.len() < REGION_BYTES as usize {
        return if ours {
            Kind::Damaged(truncated(region.len() as u64))
        } else {
            Kind::NotADatabase
        };
    }
    let sector = SectorZero::parse(&region[..SECTOR_BYTES]);
    if matches!(sector, Ok(Some(SectorZero::LayingPlain { .. }))) {
        return Kind::Unfinished;
    }
    match ReadHeader::from_region(region) {
        Ok(read) => Kind::Sealed(Box::new(SealedHeader {
            header: read.header,
            first_copy_damaged: read.first_damaged,
            sector_damaged: read.sector_damaged,
            progress: region[PROGRESS_OFFSET as usize..]
                .first_chunk::<PROGRESS_BYTES>()
                .and_then(Progress::parse),
        })),
        Err(Error::Corrupt { .. }) if !ours && sector.is_ok() => Kind::NotADatabase,
        Err(Error::Corrupt { .. }) if has_copy => Kind::Unfinished,
        Err(error) => Kind::Damaged(error),
    }
}

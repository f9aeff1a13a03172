//! Finds out what a file is, without a key and without SQLite.
//!
//! Reads the file directly, so it must not be called while this process has the file open through
//! SQLite: closing the descriptor would drop SQLite's locks (howtocorrupt.html, 2.2).

use std::io::Read;
use std::path::{Path, PathBuf};

use pellucid::header::{Header, REGION_BYTES};
use pellucid::keys::GENERATION_WRITES;
use pellucid::log_sector::LogSector;
use pellucid::media::MediaHeader;
use pellucid::scan::{Progress, PROGRESS_BYTES, PROGRESS_OFFSET};
use pellucid::sector::{
    SectorZero, Wear, SECTOR_BYTES, SQLITE_MAGIC, WEAR_LOG_OFFSET, WEAR_PAGES_OFFSET,
};
use pellucid::wal::Version;
use pellucid::{Error, Result, Subject};
use pellucid_files::paths::{copy_path, over_of, own_name};
use pellucid_vfs::container::ReadHeader;
use pellucid_vfs::pins::{Expectation, Lesser};
use pellucid_vfs::truncated_file;

/// The result of an inspection.
#[derive(Debug)]
pub struct Inspection {
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// The kind of the file.
    pub kind: Kind,
    /// The copy of a conversion, if one lies beside it.
    pub copy: Option<PathBuf>,
    /// The WAL and journal that lie beside it, with their sizes in bytes.
    pub logs: Vec<(PathBuf, u64)>,
}

/// The kind of a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Kind {
    /// An empty file.
    Empty,
    /// A plain SQLite database.
    Plain,
    /// A container; the header is not authenticated.
    Sealed(Box<SealedHeader>),
    /// A conversion was interrupted; opening it for writing finishes it.
    Unfinished,
    /// None of these.
    NotADatabase,
    /// A container that cannot be read.
    Damaged(Error),
}

impl Kind {
    /// Refuses a file without a container at a path where the keyring expects one.
    ///
    /// # Errors
    /// What was expected, what is there, and the command that accepts it ([`Expectation::refuse_lesser`]).
    pub fn refuse_unexpected(&self, database: &Path) -> Result<()> {
        let lesser = match self {
            Self::Empty => Lesser::Empty,
            Self::Plain | Self::NotADatabase => Lesser::Plain,
            _ => return Ok(()),
        };
        Expectation::at(database).and_then(|expected| expected.refuse_lesser(lesser))
    }
}

/// A container's header, and which of its copies are damaged.
#[derive(Debug)]
pub struct SealedHeader {
    /// The header.
    pub header: Header,
    /// Whether copy 0 is damaged.
    pub first_copy_damaged: bool,
    /// Whether sector 0 is damaged.
    pub sector_damaged: bool,
    /// The progress that a scan wrote. It is not authenticated either.
    pub progress: Option<Progress>,
    /// The wear counts of database pages and of logs. They are not authenticated either.
    pub wear: [Option<Wear>; 2],
    /// Whether a process is scanning it. `None` if the system cannot say.
    pub is_scanned: Option<bool>,
}

impl SealedHeader {
    /// The units sealed under the present generation, of [`GENERATION_WRITES`]: the larger of its
    /// two counts.
    pub fn generation_writes(&self) -> u64 {
        self.reserved().max().unwrap_or(0)
    }

    /// The units sealed under the present DEK, rounded up: blocks are reserved, and an earlier
    /// generation counts as full.
    pub fn key_writes(&self) -> u64 {
        let first = self.header.current_dek().map_or(0, |row| row.first_generation);
        let left = u64::from(self.header.generation.saturating_sub(first));
        let present: u64 = self.reserved().fold(0, u64::saturating_add);
        left.saturating_mul(GENERATION_WRITES).saturating_add(present)
    }

    fn reserved(&self) -> impl Iterator<Item = u64> + '_ {
        let of_present = |wear: &&Wear| wear.generation == self.header.generation;
        self.wear.iter().flatten().filter(of_present).map(|wear| wear.reserved)
    }
}

impl SealedHeader {
    /// The progress of its scan in percent, if one is under way.
    pub fn percent(&self) -> Option<f32> {
        // A progress with an older generation is of an earlier scan.
        let own = self.progress.filter(|progress| progress.generation >= self.header.generation);
        let under_way = self.header.scan.state.is_under_way();
        under_way.then(|| own.map_or(0.0, |progress| progress.percent()))
    }
}

/// Inspects the file at `path`.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read.
pub fn inspect(path: &Path) -> Result<Inspection> {
    settled(|| look(path))
}

/// What `look` finds, once that is no damage or twice the same.
fn settled(mut look: impl FnMut() -> Result<(Inspection, Vec<u8>)>) -> Result<Inspection> {
    let (mut found, mut region) = look()?;
    // The beginning may have been read during a laying that was over, and its copy gone, a moment later. So a damaged file is
    // read until it is the same twice.
    for _ in 0..LOOKS {
        if !matches!(found.kind, Kind::Damaged(_)) {
            break;
        }
        let before = std::mem::take(&mut region);
        (found, region) = look()?;
        if region == before {
            break;
        }
    }
    Ok(found)
}

/// The most looks at a file that changes meanwhile.
const LOOKS: u32 = 100;

fn look(path: &Path) -> Result<(Inspection, Vec<u8>)> {
    if let Some(vfs) = over_of(path) {
        return Err(Error::misuse(Subject::Container, format!(
            "it lies over the VFS `{vfs}` and is no file of this machine: a program that has the VFS makes a copy that is one, or one \
             with a new key, by `VACUUM INTO`"
        )));
    }
    let io = |error| Error::io(Subject::File(path.to_owned()), error);
    let mut file = pellucid_files::regular::open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    let mut region = Vec::with_capacity(REGION_BYTES as usize);
    file.by_ref().take(REGION_BYTES).read_to_end(&mut region).map_err(io)?;
    let own = own_name(path);
    let copy = Some(copy_path(&own)).filter(|copy| copy.exists());
    let logs = ["-wal", "-journal"]
        .iter()
        .filter_map(|suffix| {
            let mut name = own.as_os_str().to_owned();
            name.push(suffix);
            let bytes = pellucid_files::paths::look(Path::new(&name)).ok()?.len();
            (bytes > 0).then_some((PathBuf::from(name), bytes))
        })
        .collect();
    let is_whole = metadata.len() <= REGION_BYTES;
    let mut kind = kind_of(&region, copy.is_some(), is_whole);
    if let Kind::Sealed(sealed) = &mut kind {
        sealed.is_scanned = crate::scan::is_taken(&file);
    }
    let found = Inspection { path: path.to_owned(), bytes: metadata.len(), kind, copy, logs };
    Ok((found, region))
}

/// Makes the error for the file at `path`, whose kind is [`Kind::NotADatabase`].
pub fn not_a_database(path: &Path) -> Error {
    let mut start = Vec::with_capacity(SECTOR_BYTES);
    let file = pellucid_files::regular::open(path);
    // Where it cannot be read any more, the general words are true as well.
    let _ = file.and_then(|file| file.take(SECTOR_BYTES as u64).read_to_end(&mut start));
    let what = match MediaHeader::begins(&start) {
        true => "a backup, not a database",
        false => "neither an SQLite database nor an encrypted one",
    };
    Error::wrong_kind(Subject::File(path.to_owned()), what)
}

/// The kind of a file that begins with `region`. With `is_whole` nothing lies behind the region.
pub fn kind_of(region: &[u8], has_copy: bool, is_whole: bool) -> Kind {
    // An interrupted birth leaves zeros in sector 0 and no page.
    let unborn = is_whole && region.iter().take(SECTOR_BYTES).all(|byte| *byte == 0);
    if region.is_empty() || unborn {
        return Kind::Empty;
    }
    if region.starts_with(SQLITE_MAGIC) {
        return Kind::Plain;
    }
    let ours = region.starts_with(b"Pellucid ") && !MediaHeader::begins(region);
    let sector = region.get(..SECTOR_BYTES).map_or(Ok(None), SectorZero::parse);
    if matches!(sector, Ok(Some(SectorZero::LayingPlain { .. }))) {
        return Kind::Unfinished;
    }
    if region.len() < REGION_BYTES as usize {
        // A small database has a container's first sector before it has become as long as a container.
        return match sector {
            Ok(Some(SectorZero::Sealed { .. })) if has_copy => Kind::Unfinished,
            _ if ours => Kind::Damaged(truncated_file(region.len() as u64)),
            _ => Kind::NotADatabase,
        };
    }
    match ReadHeader::from_region(region) {
        Ok(read) => Kind::Sealed(Box::new(SealedHeader {
            wear: [
                region[WEAR_PAGES_OFFSET as usize..].first_chunk().and_then(Wear::look),
                wear_of_log(&read.header, &region[WEAR_LOG_OFFSET as usize..]),
            ],
            header: read.header,
            first_copy_damaged: read.first_damaged,
            sector_damaged: read.sector_damaged,
            progress: region[PROGRESS_OFFSET as usize..]
                .first_chunk::<PROGRESS_BYTES>()
                .and_then(Progress::parse),
            is_scanned: None,
        })),
        Err(Error::Corrupt { .. }) if !ours && sector.is_ok() => Kind::NotADatabase,
        Err(Error::Corrupt { .. }) if has_copy => Kind::Unfinished,
        Err(error) => Kind::Damaged(error),
    }
}

/// The wear of log and journal, which sector 2 has in another form in each version.
fn wear_of_log(header: &Header, sector: &[u8]) -> Option<Wear> {
    match Version::of_database(header) {
        Version::First => sector.first_chunk().and_then(Wear::look),
        Version::Second => sector.first_chunk().and_then(LogSector::look).map(|sector| sector.wear),
    }
}

#[cfg(test)]
mod tests {
    use pellucid::header::{DekRow, EncryptionState, COPY_OFFSETS};
    use pellucid::keys::HeaderKey;
    use pellucid::scan::Scan;
    use pellucid::secret::Dek;
    use pellucid::Algorithm;

    use super::*;

    fn header() -> Header {
        let row = DekRow {
            first_generation: 3,
            last_generation: u32::MAX,
            algorithm: Algorithm::Aes256,
            plain: false,
            commitment: [0; 32],
            wrapped: None,
        };
        Header {
            sequence: 1,
            file_id: [1; 16],
            page_size: 4096,
            state: EncryptionState::Encrypted,
            generation: 3,
            created: 1,
            scan: Scan::default(),
            flags: pellucid::flags::Flags::default(),
            second: None,
            deks: vec![row],
            protectors: vec![],
        }
    }

    fn region() -> Vec<u8> {
        let header = header();
        let key = HeaderKey::derive(&Dek::random().unwrap(), &header.file_id).unwrap();
        let copy = header.encode(&key).unwrap();
        let mut region = vec![0; REGION_BYTES as usize];
        let sector = SectorZero::Sealed { file_id: header.file_id };
        region[..SECTOR_BYTES].copy_from_slice(&sector.encode(header.page_size));
        for offset in COPY_OFFSETS {
            region[offset as usize..][..copy.len()].copy_from_slice(&copy[..]);
        }
        region
    }

    /// Its beginning is read before the header is there, its copy looked for after that is gone.
    #[test]
    fn a_conversion_that_ends_while_it_is_looked_at_is_no_damage() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("app.db");
        let region = region();
        let mut laying = region.clone();
        laying[SECTOR_BYTES..].fill(0);
        std::fs::write(&path, &laying).unwrap();
        let mut looks = 0;
        let found = settled(|| {
            looks += 1;
            let found = look(&path)?;
            std::fs::write(&path, &region).unwrap();
            Ok(found)
        });
        assert!(matches!(found.unwrap().kind, Kind::Sealed(_)));
        assert_eq!(looks, 2);

        std::fs::write(&path, &laying).unwrap();
        assert!(matches!(inspect(&path).unwrap().kind, Kind::Damaged(_)), "and this one stays");
        std::fs::write(copy_path(&path), "").unwrap();
        assert!(matches!(inspect(&path).unwrap().kind, Kind::Unfinished));
    }

    /// A database of 8 KiB, when its first sector is a container's and the rest still lies in the copy.
    #[test]
    fn a_laying_over_a_database_that_is_smaller_than_a_header_is_unfinished() {
        let mut short = vec![0; 8192];
        short[..SECTOR_BYTES].copy_from_slice(&region()[..SECTOR_BYTES]);
        assert!(matches!(kind_of(&short, true, true), Kind::Unfinished));
        assert!(matches!(kind_of(&short, false, true), Kind::Damaged(_)), "nothing finishes it");
        let laying =
            SectorZero::LayingPlain { file_id: [3; 16], copy_bytes: 77, copy_sha256: [8; 32] };
        short[..SECTOR_BYTES].copy_from_slice(&laying.encode(4096));
        assert!(matches!(kind_of(&short, true, true), Kind::Unfinished));
        assert!(matches!(kind_of(&short[..700], false, true), Kind::Unfinished));
    }

    #[test]
    fn writes_are_counted_from_the_first_generation_of_the_key() {
        let counts = |generation, wear: [Option<(u32, u64)>; 2]| {
            let of = |(generation, reserved)| Wear { generation, reserved };
            let sealed = SealedHeader {
                header: Header { generation, ..header() },
                first_copy_damaged: false,
                sector_damaged: false,
                progress: None,
                is_scanned: None,
                wear: wear.map(|wear| wear.map(of)),
            };
            (sealed.generation_writes(), sealed.key_writes())
        };
        assert_eq!(counts(3, [None, None]), (0, 0));
        assert_eq!(counts(3, [Some((3, 64)), None]), (64, 64));
        assert_eq!(counts(3, [Some((3, 64)), Some((3, 192))]), (192, 256));
        assert_eq!(counts(3, [Some((2, 64)), Some((2, 192))]), (0, 0), "of the key before");
        assert_eq!(counts(5, [Some((5, 64)), Some((4, 9))]), (64, 2 * GENERATION_WRITES + 64));
        assert_eq!(counts(u32::MAX, [Some((u32::MAX, u64::MAX)), None]).1, u64::MAX);
    }
}

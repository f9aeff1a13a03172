//! The header region of a file, read without a key.

use std::path::Path;

use pellucid::header::{Header, COPY_BYTES, COPY_OFFSETS, REGION_BYTES};
use pellucid::sector::{SectorZero, SECTOR_BYTES, WEAR_LOG_OFFSET, WEAR_PAGES_OFFSET};
use pellucid::{Error, Result, Subject};
use pellucid_host::code::{report, Code, Outcome};

use super::HEAD_BYTES;
use crate::lower::Lower;

/// Whether a birth was interrupted before it wrote sector 0. The file has no page then.
///
/// # Errors
/// The lower VFS's code.
pub fn is_unfinished_birth(lower: Lower, first: &[u8]) -> Outcome<bool> {
    let blank = first[..SECTOR_BYTES].iter().all(|byte| *byte == 0);
    Ok(blank && (1..=REGION_BYTES).contains(&lower.size()?))
}

/// Whether a wear sector or a header copy follows the blank sector 0, as a birth leaves it. A plain
/// database can begin with zeros too, if a power cut tore its first page; its journal restores that
/// page.
///
/// # Errors
/// The lower VFS's code.
pub fn has_trace_of_birth(lower: Lower) -> Outcome<bool> {
    let mut region = vec![0; REGION_BYTES as usize];
    lower.read(&mut region, 0)?;
    let begins = |offset: u64, magic: &[u8]| region[offset as usize..].starts_with(magic);
    let wear = [WEAR_PAGES_OFFSET, WEAR_LOG_OFFSET];
    Ok(wear.iter().any(|offset| begins(*offset, pellucid::sector::MAGIC_WEAR))
        || COPY_OFFSETS.iter().any(|offset| begins(*offset, pellucid::header::MAGIC)))
}

fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. })
}

/// A code of the lower VFS, or a typed error of this project.
#[derive(Debug)]
pub enum Failure {
    /// The lower VFS returned this code.
    Code(Code),
    /// A typed error that is not in the log yet.
    Typed(Error),
}

impl Failure {
    /// The code for SQLite, after a line in the log about `path`.
    pub fn report(self, path: &Path) -> Code {
        match self {
            Failure::Code(code) => code,
            Failure::Typed(error) => report(path, &error),
        }
    }
}

impl From<Code> for Failure {
    fn from(code: Code) -> Self {
        Failure::Code(code)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Typed(error)
    }
}

/// The newest whole header copy of a file.
#[derive(Debug)]
pub struct ReadHeader {
    pub header: Header,
    pub bytes: Box<[u8; COPY_BYTES]>,
    pub copy: u8,
    pub first_damaged: bool,
    /// Copy 0 is the newest, and copy 1 is damaged or differs from it.
    pub second_behind: bool,
    pub sector_damaged: bool,
    pub head: [u8; HEAD_BYTES],
}

impl ReadHeader {
    /// Reads sector 0 and both header copies from the file.
    ///
    /// # Errors
    /// The fault of sector 0 or, if no copy is whole, of copy 0.
    pub fn read(lower: Lower) -> std::result::Result<Self, Failure> {
        let mut region = vec![0; REGION_BYTES as usize];
        lower.read(&mut region, 0)?;
        Ok(Self::from_region(&region)?)
    }

    /// Parses sector 0 and both header copies from the bytes of the header region.
    ///
    /// # Errors
    /// As [`ReadHeader::read`].
    pub fn from_region(region: &[u8]) -> Result<Self> {
        let sector = SectorZero::parse(&region[..SECTOR_BYTES]);
        let copies = COPY_OFFSETS.map(|at| &region[at as usize..at as usize + COPY_BYTES]);
        let parsed = [Header::parse(copies[0], 0), Header::parse(copies[1], 1)];
        let first_damaged = matches!(parsed[0], Err(Error::Corrupt { .. }));
        let (header, copy) = match parsed {
            [Ok(first), Ok(second)] if second.sequence > first.sequence => (second, 1),
            [Ok(first), Ok(_) | Err(Error::Corrupt { .. })] => (first, 0),
            [Err(Error::Corrupt { .. }), Ok(second)] => (second, 1),
            // A whole copy that this version cannot read is an error, whatever the other copy says.
            [Err(Error::Corrupt { .. }), Err(error)] if !is_damage(&error) => return Err(error),
            [Ok(_), Err(error)] | [Err(error), _] => return Err(error),
        };
        let sector_damaged = match sector {
            Ok(Some(SectorZero::Sealed { file_id })) => {
                // A scan that changes the file id names the older one in the header first.
                if file_id != header.file_id && Some(file_id) != header.scan.older_id {
                    return Err(Error::corrupt(
                        Subject::SectorZero,
                        "it names another file id than the header",
                    ));
                }
                false
            }
            Err(error @ Error::Unsupported { .. }) => return Err(error),
            _ => true,
        };
        let second_behind = copy == 0 && copies[0] != copies[1];
        let mut bytes = Box::new([0; COPY_BYTES]);
        bytes.copy_from_slice(copies[usize::from(copy)]);
        let mut head = [0; HEAD_BYTES];
        head.copy_from_slice(&copies[0][..HEAD_BYTES]);
        Ok(Self { header, bytes, copy, first_damaged, second_behind, sector_damaged, head })
    }
}

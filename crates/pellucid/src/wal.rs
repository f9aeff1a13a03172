//! The sealed WAL: SQLite's layout and size, its header marked, each frame one sealed unit.
//!
//! Layout: docs/format.md, "WAL" and "WAL of version 2". A frame keeps SQLite's place and length: 16 bytes in clear, then the
//! checksum and the content sealed, then the tail.

mod stamp;

use crate::error::{Error, Result};
use crate::keys::ContainerKeys;
use crate::nonce::NonceSource;
use crate::unit::{FileKind, Place, TAIL_BYTES};
use crate::Subject;

pub use stamp::{Stamp, Time, COUNT_MOST};

/// Bytes of a WAL header (SQLite file format, 4.1).
pub const HEADER_BYTES: usize = 32;
/// Bytes of a frame header (SQLite file format, 4.1).
pub const FRAME_HEADER_BYTES: usize = 24;
/// Bytes of a frame header that stay readable: page number, commit size, and 8 more: salts, or a [`Stamp`].
pub const FRAME_CLEAR_BYTES: usize = 16;
/// Bytes of a WAL header that tell the runs of a log apart: all behind SQLite's constants.
pub const RUN_BYTES: usize = 24;

const VERSION_SQLITE: u32 = 3_007_000;
/// The high bytes of the number in place of the WAL's version. SQLite answers CANTOPEN to it and deletes nothing.
const SEALED: u32 = 0x5045_4C00;
/// The number of the next version. Its log is refused and never taken for empty, because it has commits. No number of a
/// version is one bit away from another's.
pub const RESERVED_VERSION: u32 = SEALED | 4;
const MAGIC: u32 = 0x377f_0682;

/// The version of a log, which is that of its database's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Version {
    /// Frames have their salts in clear.
    First = 1,
    /// Frames have a [`Stamp`] in their place, and are bound to their run of the log.
    Second = 2,
}

impl Version {
    /// The version of the log of a database, by that of its header.
    pub fn of_database(header: &crate::header::Header) -> Self {
        match header.second {
            None => Self::First,
            Some(_) => Self::Second,
        }
    }

    fn number(self) -> u32 {
        SEALED | self as u32
    }

    fn of_number(number: u32) -> Option<Self> {
        [Self::First, Self::Second].into_iter().find(|version| version.number() == number)
    }
}

/// The parts of a WAL header the shim needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalHeader {
    /// Page size, in bytes.
    pub page_size: u32,
    /// Its version, if it is the header of a sealed WAL.
    pub sealed: Option<Version>,
}

impl WalHeader {
    /// Parses a header whose checksum is right. `None` for anything else.
    pub fn parse(header: &[u8; HEADER_BYTES]) -> Option<Self> {
        let magic = word(header, 0);
        let page_size = word(header, 8);
        let sized = page_size.is_power_of_two() && (512..=65536).contains(&page_size);
        if magic & !1 != MAGIC || !sized || checksum(header) != (word(header, 24), word(header, 28))
        {
            return None;
        }
        let sealed = Version::of_number(word(header, 4));
        if sealed.is_none() && word(header, 4) != VERSION_SQLITE {
            return None;
        }
        Some(Self { page_size, sealed })
    }

    /// Parses the header of a sealed WAL of this version. `None` for anything else.
    pub fn parse_sealed(header: &[u8; HEADER_BYTES], version: Version) -> Option<Self> {
        Self::parse(header).filter(|parsed| parsed.sealed == Some(version))
    }
}

/// Refuses the log of a later version. SQLite would take it for an empty log and overwrite it.
///
/// # Errors
/// [`Error::Unsupported`], which names the version. Nothing is known of the reserved version, not
/// even how its checksum is made, so its checksum is not checked. Any other version has to have a
/// right checksum, because damage to a header of this version is no later version.
pub fn refuse_newer(header: &[u8; HEADER_BYTES]) -> Result<()> {
    let version = word(header, 4);
    let newest = Version::Second.number();
    let later = version & !0xff == SEALED && version > newest;
    let whole = || checksum(header) == (word(header, 24), word(header, 28));
    if word(header, 0) & !1 == MAGIC && later && (version == RESERVED_VERSION || whole()) {
        return Err(Error::unsupported(
            Subject::WalHeader,
            format!(
                "version {version:#x} is newer than {newest:#x}, the newest this version reads: \
                 the WAL is left as it is"
            ),
        ));
    }
    Ok(())
}

/// Refuses the log of a later version, and one of another version than its database. Its commits belong to another state of
/// that file, and SQLite would take it for an empty log and overwrite it.
///
/// # Errors
/// [`Error::Unsupported`], as [`refuse_newer`] and for the log of a newer version than the database, whatever its checksum says:
/// no one flipped bit makes one version out of another. [`Error::Unauthentic`] for a whole log of an older version.
pub fn refuse_other(header: &[u8; HEADER_BYTES], of_database: Version) -> Result<()> {
    refuse_newer(header)?;
    crate::sabotage!(LogVersion => return Ok(()));
    let number = word(header, 4);
    let other = Version::of_number(number).filter(|version| *version != of_database);
    let Some(version) = other.filter(|_| word(header, 0) & !1 == MAGIC) else { return Ok(()) };
    let database = of_database.number();
    if version as u32 > of_database as u32 {
        return Err(Error::unsupported(
            Subject::WalHeader,
            format!(
                "version {number:#x} is newer than {database:#x}, that of its database: the WAL is left as it is"
            ),
        ));
    }
    match checksum(header) == (word(header, 24), word(header, 28)) {
        true => Err(Error::unauthentic(
            Subject::WalHeader,
            format!(
                "version {number:#x} is older than {database:#x}, that of its database: somebody has put it back, and the WAL \
                 is left as it is"
            ),
        )),
        false => Ok(()),
    }
}

/// What the frames of a log are sealed by, besides keys: its version, and its present run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    version: Version,
    header: [u8; RUN_BYTES],
}

impl Run {
    /// The run of a log with this header, as it is on disk. `version` is that of its database.
    pub fn of(header: &[u8; HEADER_BYTES], version: Version) -> Self {
        let mut run = [0; RUN_BYTES];
        run.copy_from_slice(&header[HEADER_BYTES - RUN_BYTES..]);
        Self { version, header: run }
    }

    /// The run of a log of version 2 whose header has these last bytes.
    pub fn second(header: &[u8; RUN_BYTES]) -> Self {
        Self { version: Version::Second, header: *header }
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The last bytes of the log's header: page size, number of checkpoints, salts, checksum.
    pub fn bytes(&self) -> &[u8; RUN_BYTES] {
        &self.header
    }

    /// The salts.
    pub fn salts(&self) -> [u8; 8] {
        let mut salts = [0; 8];
        salts.copy_from_slice(&self.header[8..16]);
        salts
    }

    /// The salts of a frame as SQLite wrote it. In version 2 a frame keeps none: they are those of the run.
    pub fn salts_of(&self, frame: &[u8]) -> [u8; 8] {
        match self.version {
            Version::First => {
                let mut salts = [0; 8];
                salts.copy_from_slice(&frame[8..16]);
                salts
            }
            Version::Second => self.salts(),
        }
    }

    /// The header of a log with this run, if its checksum is right in one of SQLite's two byte orders.
    pub fn header(&self) -> Option<[u8; HEADER_BYTES]> {
        [MAGIC, MAGIC | 1].into_iter().find_map(|magic| {
            let mut header = [0; HEADER_BYTES];
            header[..4].copy_from_slice(&magic.to_be_bytes());
            header[4..8].copy_from_slice(&self.version.number().to_be_bytes());
            header[HEADER_BYTES - RUN_BYTES..].copy_from_slice(&self.header);
            WalHeader::parse(&header).map(|_| header)
        })
    }

    fn place(&self, keys: &ContainerKeys, number: u32, clear: &[u8; FRAME_CLEAR_BYTES]) -> Place {
        match self.version {
            Version::First => Place::frame(keys.file_id(), number, clear),
            Version::Second => {
                let mut behind = [0; 16];
                behind.copy_from_slice(&self.header[8..]);
                crate::sabotage!(LogRun => behind = [0; 16]);
                Place::frame_of_run(keys.file_id(), number, clear, &behind)
            }
        }
    }
}

/// Turns SQLite's header into the one on disk.
pub fn mark_header(header: &mut [u8; HEADER_BYTES], version: Version) {
    set_version(header, version.number());
}

/// Turns the header on disk into SQLite's. A header without the mark or with a wrong checksum gets
/// a checksum that does not match, so that SQLite finds no frame behind it.
pub fn unmark_header(header: &mut [u8; HEADER_BYTES], version: Version) {
    if WalHeader::parse_sealed(header, version).is_some() {
        set_version(header, VERSION_SQLITE);
    } else if word(header, 0) & !1 == MAGIC {
        let (first, _) = checksum(header);
        header[24..28].copy_from_slice(&(!first).to_be_bytes());
    }
}

/// Seals a whole frame from `frame` into `sealed`, which has the same length and becomes the frame
/// on disk. A frame of version 2 has `stamp` in the place of its salts.
///
/// # Errors
/// [`crate::Error::Io`] if no nonce can be drawn.
pub fn seal_frame(
    keys: &ContainerKeys,
    nonces: &mut dyn NonceSource,
    (run, stamp): (&Run, Stamp),
    number: u32,
    frame: &[u8],
    sealed: &mut [u8],
) -> Result<()> {
    let mut clear = clear_part(frame);
    if run.version == Version::Second {
        clear[8..].copy_from_slice(&stamp.encode());
    }
    let place = run.place(keys, number, &clear);
    let content = frame.len() - TAIL_BYTES;
    sealed[..FRAME_CLEAR_BYTES].copy_from_slice(&clear);
    keys.seal(
        FileKind::Wal,
        &place,
        nonces,
        &frame[FRAME_CLEAR_BYTES..content],
        &mut sealed[FRAME_CLEAR_BYTES..],
    )
}

/// Opens a whole frame from disk into `frame` of the same length, as SQLite knows it. The tail
/// becomes zero. A frame of version 2 gets the salts of its run; [`Stamp::of`] reads what it has on disk in their place.
///
/// # Errors
/// [`crate::Error::Unauthentic`], which names the frame; `frame` is zeroed behind its clear bytes
/// then.
pub fn open_frame(
    keys: &ContainerKeys,
    run: &Run,
    number: u32,
    sealed: &[u8],
    frame: &mut [u8],
) -> Result<()> {
    let clear = clear_part(sealed);
    let place = run.place(keys, number, &clear);
    let content = frame.len() - TAIL_BYTES;
    frame[..FRAME_CLEAR_BYTES].copy_from_slice(&clear);
    if run.version == Version::Second {
        frame[8..FRAME_CLEAR_BYTES].copy_from_slice(&run.salts());
    }
    frame[content..].fill(0);
    keys.open(
        FileKind::Wal,
        &place,
        &sealed[FRAME_CLEAR_BYTES..],
        &mut frame[FRAME_CLEAR_BYTES..content],
        || Subject::Frame(number),
    )
}

fn clear_part(frame: &[u8]) -> [u8; FRAME_CLEAR_BYTES] {
    let mut clear = [0; FRAME_CLEAR_BYTES];
    clear.copy_from_slice(&frame[..FRAME_CLEAR_BYTES]);
    clear
}

fn set_version(header: &mut [u8; HEADER_BYTES], version: u32) {
    header[4..8].copy_from_slice(&version.to_be_bytes());
    let (first, second) = checksum(header);
    header[24..28].copy_from_slice(&first.to_be_bytes());
    header[28..32].copy_from_slice(&second.to_be_bytes());
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(word)
}

/// Turns a frame, as SQLite sees it, into the frame that repeats it right behind. Only the checksum
/// differs, which continues the frame's own (SQLite file format, 4.2).
pub fn repeat_frame(header: &[u8; HEADER_BYTES], frame: &mut [u8]) {
    let (first, second) = frame_checksum(header, (word(frame, 16), word(frame, 20)), frame);
    frame[16..20].copy_from_slice(&first.to_be_bytes());
    frame[20..24].copy_from_slice(&second.to_be_bytes());
}

/// Computes the checksum of a frame as SQLite sees it. It continues the checksum of the frame
/// before (SQLite file format, 4.2).
fn frame_checksum(header: &[u8; HEADER_BYTES], before: (u32, u32), frame: &[u8]) -> (u32, u32) {
    let summed = sum(header, before, &frame[..8]);
    sum(header, summed, &frame[FRAME_HEADER_BYTES..])
}

/// Decides which frames of a WAL count, as SQLite's recovery does (SQLite file format, 4.3): those
/// of one run of salts and checksums, from the first frame on.
#[derive(Debug)]
pub struct Chain {
    header: [u8; HEADER_BYTES],
    sum: (u32, u32),
}

impl Chain {
    /// Starts behind `header` as it is on disk.
    pub fn new(mut header: [u8; HEADER_BYTES]) -> Self {
        if let Some(version) = WalHeader::parse(&header).and_then(|parsed| parsed.sealed) {
            unmark_header(&mut header, version);
        }
        let sum = (word(&header, 24), word(&header, 28));
        Self { header, sum }
    }

    /// Starts behind an opened frame that is taken for one of the log. The frames before it may be
    /// lost.
    pub fn behind(mut header: [u8; HEADER_BYTES], frame: &[u8]) -> Self {
        header[16..24].copy_from_slice(&frame[8..16]);
        Self { header, sum: (word(frame, 16), word(frame, 20)) }
    }

    /// Whether an opened frame is the next one.
    pub fn goes_on(&mut self, frame: &[u8]) -> bool {
        let sum = frame_checksum(&self.header, self.sum, frame);
        let fits = frame[8..16] == self.header[16..24];
        let goes_on = fits && sum == (word(frame, 16), word(frame, 20));
        if goes_on {
            self.sum = sum;
        }
        goes_on
    }
}

/// Reads the page number and the commit size of a frame. The commit size is 0 unless the frame ends
/// a transaction.
pub fn page_and_commit(frame: &[u8]) -> (u32, u32) {
    (word(frame, 0), word(frame, 4))
}

/// Computes SQLite's WAL checksum over the first 24 bytes of a header.
fn checksum(header: &[u8; HEADER_BYTES]) -> (u32, u32) {
    sum(header, (0, 0), &header[..24])
}

/// Continues SQLite's WAL checksum over `bytes` (SQLite file format, 4.2). The last bit of the
/// header's magic number says in which byte order the words are read.
fn sum(header: &[u8; HEADER_BYTES], before: (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let big_endian = header[3] & 1 == 1;
    let read = |bytes: &[u8], at: usize| match big_endian {
        true => word(bytes, at),
        false => word(bytes, at).swap_bytes(),
    };
    bytes.chunks_exact(8).fold(before, |(first, second), pair| {
        let first = first.wrapping_add(read(pair, 0)).wrapping_add(second);
        (first, second.wrapping_add(read(pair, 4)).wrapping_add(first))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of a WAL that SQLite 3.40.1 wrote for a database of 4096-byte pages.
    fn sqlite_header() -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&(MAGIC).to_be_bytes());
        header[8..12].copy_from_slice(&4096u32.to_be_bytes());
        header[16..24].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        set_version(&mut header, VERSION_SQLITE);
        header
    }

    #[test]
    fn marking_is_undone_exactly_and_keeps_the_checksum_right() {
        for magic in [MAGIC, MAGIC | 1] {
            let mut header = sqlite_header();
            header[..4].copy_from_slice(&magic.to_be_bytes());
            set_version(&mut header, VERSION_SQLITE);
            let original = header;
            for version in [Version::First, Version::Second] {
                mark_header(&mut header, version);
                assert_ne!(header, original);
                let parsed = WalHeader::parse(&header).unwrap();
                assert_eq!(parsed, WalHeader { page_size: 4096, sealed: Some(version) });
                unmark_header(&mut header, version);
                assert_eq!(header, original);
            }
        }
    }

    #[test]
    fn a_later_version_is_refused_and_damage_to_this_one_is_not_a_later_one() {
        for version in [Version::First, Version::Second] {
            let mut sealed = sqlite_header();
            mark_header(&mut sealed, version);
            refuse_newer(&sealed).unwrap();
            refuse_newer(&sqlite_header()).unwrap();
            refuse_newer(&[0; HEADER_BYTES]).unwrap();
            for version in [RESERVED_VERSION, SEALED | 3, 0x5045_4CFF] {
                let mut later = sealed;
                set_version(&mut later, version);
                let told = refuse_newer(&later).unwrap_err().to_string();
                assert!(told.contains(&format!("{version:#x} is newer")), "{told}");
                later[31] ^= 1;
                assert_eq!(refuse_newer(&later).is_err(), version == RESERVED_VERSION);
            }
            for bit in 0..8 * HEADER_BYTES {
                let mut damaged = sealed;
                damaged[bit / 8] ^= 1 << (bit % 8);
                refuse_other(&damaged, version).unwrap();
            }
        }
    }

    #[test]
    fn a_log_of_another_version_than_its_database_is_refused_by_name() {
        for (of_log, of_database) in
            [(Version::First, Version::Second), (Version::Second, Version::First)]
        {
            let mut header = sqlite_header();
            refuse_other(&header, of_database).unwrap();
            mark_header(&mut header, of_log);
            refuse_other(&header, of_log).unwrap();
            let told = refuse_other(&header, of_database).unwrap_err().to_string();
            assert!(told.contains(&format!("version {:#x} is ", of_log.number())), "{told}");
        }
    }

    #[test]
    fn a_plain_header_beside_a_sealed_database_is_made_useless() {
        let mut header = sqlite_header();
        unmark_header(&mut header, Version::First);
        assert_eq!(WalHeader::parse(&header), None);
        for (of_log, other) in
            [(Version::First, Version::Second), (Version::Second, Version::First)]
        {
            let mut header = sqlite_header();
            mark_header(&mut header, of_log);
            unmark_header(&mut header, other);
            assert_eq!(WalHeader::parse(&header), None, "of another version");
        }
    }
}

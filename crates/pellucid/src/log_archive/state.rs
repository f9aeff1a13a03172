//! What the archive knows of the chain: two sectors that are written in turn.

use crate::error::{Error, Result, Subject};
use crate::fields::Fields;
use crate::flags::check_zeros;
use crate::keys::HeaderKey;
use crate::lsn::Lsn;
use crate::unit::TAIL_BYTES;
use crate::wal::HEADER_BYTES;

use super::Segment;

/// Bytes of a sector.
pub const ARCHIVE_SECTOR_BYTES: usize = 512;
/// Where the two sectors begin, so far apart that no physical sector has both.
pub const ARCHIVE_SECTORS: [u64; 2] = [0, 4096];

/// How many epochs are passed over behind an archive that was put back: more than a run of the log had branches that nobody knows of.
const BRANCHES: u32 = 1000;
const MAGIC: &[u8; 8] = b"PELLOGS\0";
const VERSION: u32 = 1;
const HAS_BASE: u32 = 1;
const HAS_ENDED: u32 = 2;
const FIELDS_END: usize = 256;
const MAC_AT: usize = ARCHIVE_SECTOR_BYTES - 32;
const ZEROS: std::ops::Range<usize> = FIELDS_END..MAC_AT;

/// One run of the log, or what of it belongs to one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogRun {
    /// The salts in the log's header.
    pub salts: [u8; 8],
    /// The epoch.
    pub epoch: u32,
    /// Its first frame: 1, but where commits that were handed out are gone.
    pub first: u32,
    /// The last frame that is kept elsewhere than in the log.
    pub kept: u32,
    /// The last frame that was handed out: told to somebody as durable.
    pub handed_out: u32,
    /// The recovery count of that frame.
    pub count: u32,
    /// The commit that its first frame follows.
    pub behind: Lsn,
    /// The tail of the frame that was handed out last, by which it is known again.
    pub tail: [u8; TAIL_BYTES],
}

impl LogRun {
    /// The number behind `frame`.
    pub fn lsn(&self, frame: u32) -> Lsn {
        match frame < self.first {
            true => self.behind,
            false => Lsn::new(self.epoch, frame),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.salts);
        for number in [self.epoch, self.first, self.kept, self.handed_out, self.count] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(&self.behind.encode());
        out.extend_from_slice(&self.tail);
    }

    fn parse(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            salts: fields.array()?,
            epoch: fields.u32()?,
            first: fields.u32()?,
            kept: fields.u32()?,
            handed_out: fields.u32()?,
            count: fields.u32()?,
            behind: Lsn::decode(fields.array()?),
            tail: fields.array()?,
        })
    }
}

/// The state of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArchiveState {
    /// How often it was written.
    pub sequence: u64,
    /// The file id of the database.
    pub file_id: [u8; 16],
    /// The recovery fork.
    pub fork: [u8; 16],
    /// Whether a full backup has begun the chain.
    pub has_base: bool,
    /// The present run of the log.
    pub live: LogRun,
    /// The run before, which still is the log's where a crash came between this state and the log's header.
    pub before: LogRun,
    /// Whether all of the live run is kept, and the log may have begun anew or be gone.
    pub has_ended: bool,
    /// The highest epoch that was ever given.
    pub highest: u32,
    /// The epoch behind the last break of the chain, 0 for none.
    pub broken_epoch: u32,
    /// Log backups have every commit up to this one.
    pub backed_up: Lsn,
    /// Commits behind this one are missing from the chain; none if it is whole.
    pub broken_at: Lsn,
    /// SHA-256 of the manifest of the last set in the chain.
    pub last_set: [u8; 32],
    /// The snapshot of the last full backup.
    pub base: Lsn,
}

impl ArchiveState {
    /// Begins another run of the log, behind what is kept.
    pub fn begin_run(&mut self, salts: [u8; 8]) {
        let run = self.live;
        self.before = run;
        self.highest += 1;
        let behind = run.lsn(run.kept);
        self.live = LogRun { salts, epoch: self.highest, first: 1, behind, ..LogRun::default() };
        self.has_ended = false;
    }

    /// Backups of any kind have every commit up to this one.
    pub fn in_backups(&self) -> Lsn {
        self.backed_up.max(self.base)
    }

    /// Whether the log may be gone: its run has ended, or no commit of it was handed out. What was not handed out may be a crash's.
    pub fn has_no_commit_left(&self) -> bool {
        self.has_ended || self.live.handed_out == 0
    }

    /// The head of the frames behind what is kept of the live run, in a log with this header. They are not counted yet.
    pub fn segment(&self, header: [u8; HEADER_BYTES]) -> Segment {
        let run = &self.live;
        Segment {
            file_id: self.file_id,
            fork: self.fork,
            epoch: run.epoch,
            first: run.kept + 1,
            behind: run.lsn(run.kept),
            header,
            count: 0,
            tails: [0; 32],
        }
    }

    /// Notes that commits behind `at` are missing: the live run goes on behind nothing.
    pub fn is_broken(&mut self, at: Lsn) {
        if self.broken_at.is_none() {
            self.broken_at = at;
        }
        self.broken_epoch = self.live.epoch;
        self.live.behind = Lsn::new(self.live.epoch, self.live.first - 1);
    }

    /// Breaks the chain behind what an older state knows, which somebody put back. `known` is the highest epoch that is known of
    /// elsewhere. The run of the log with these salts gets one that the newer state has not given.
    pub fn goes_on_behind_older(&mut self, known: u32, salts: [u8; 8]) {
        let behind = self.live.lsn(self.live.kept);
        self.highest = self.highest.max(known).saturating_add(BRANCHES);
        self.begin_run(salts);
        self.before = LogRun::default();
        self.is_broken(behind);
    }

    /// Whether a sector begins with these bytes.
    pub fn begins(start: &[u8; 8]) -> bool {
        start == MAGIC
    }

    /// Encodes the sector in which this state has its place.
    pub fn encode(&self, key: &HeaderKey) -> [u8; ARCHIVE_SECTOR_BYTES] {
        let mut out = Vec::with_capacity(ARCHIVE_SECTOR_BYTES);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_be_bytes());
        let flags =
            if self.has_base { HAS_BASE } else { 0 } | if self.has_ended { HAS_ENDED } else { 0 };
        out.extend_from_slice(&flags.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.file_id);
        out.extend_from_slice(&self.fork);
        self.live.encode(&mut out);
        self.before.encode(&mut out);
        out.extend_from_slice(&self.highest.to_be_bytes());
        out.extend_from_slice(&self.broken_epoch.to_be_bytes());
        out.extend_from_slice(&self.backed_up.encode());
        out.extend_from_slice(&self.broken_at.encode());
        out.extend_from_slice(&self.last_set);
        out.extend_from_slice(&self.base.encode());
        let mut sector = [0; ARCHIVE_SECTOR_BYTES];
        sector[..out.len()].copy_from_slice(&out);
        let mac = key.sign(&[&self.place().to_be_bytes(), &sector[..MAC_AT]]);
        sector[MAC_AT..].copy_from_slice(&mac);
        sector
    }

    /// Where in the file this state is written: not over the one before it.
    pub fn place(&self) -> u64 {
        ARCHIVE_SECTORS[(self.sequence % 2) as usize]
    }

    /// Returns the newer state of those in both sectors that are authentic under one of the keys.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if none is, [`Error::Unsupported`] if a newer version wrote it.
    pub fn newest<'a>(
        sectors: &[[u8; ARCHIVE_SECTOR_BYTES]; 2],
        keys: impl IntoIterator<Item = &'a HeaderKey> + Clone,
    ) -> Result<Self> {
        let parsed = |at: usize| Self::parse(&sectors[at], ARCHIVE_SECTORS[at], keys.clone());
        match [parsed(0), parsed(1)] {
            [Ok(first), Ok(second)] => {
                Ok(if first.sequence > second.sequence { first } else { second })
            }
            [Ok(one), Err(Error::Unauthentic { .. })]
            | [Err(Error::Unauthentic { .. }), Ok(one)] => Ok(one),
            [Err(error), _] | [_, Err(error)] => Err(error),
        }
    }

    /// The newer sector, read without a key, to show it. It is not authenticated.
    pub fn look(sectors: &[[u8; ARCHIVE_SECTOR_BYTES]; 2]) -> Option<Self> {
        let of = |bytes: &[u8; ARCHIVE_SECTOR_BYTES]| {
            let mut fields = Fields::new(bytes.strip_prefix(MAGIC)?);
            let (_version, flags) = (fields.u32()?, fields.u32()?);
            Self::parse_fields(&mut fields, flags)
        };
        sectors.iter().filter_map(of).max_by_key(|state| state.sequence)
    }

    fn parse<'a>(
        bytes: &[u8; ARCHIVE_SECTOR_BYTES],
        place: u64,
        keys: impl IntoIterator<Item = &'a HeaderKey>,
    ) -> Result<Self> {
        let signed = [&place.to_be_bytes()[..], &bytes[..MAC_AT]];
        let is_authentic = keys.into_iter().any(|key| key.verify(&signed, &bytes[MAC_AT..]));
        if !is_authentic || bytes[..8] != MAGIC[..] {
            return Err(Error::unauthentic(
                Subject::LogArchive,
                "authentication tag does not match",
            ));
        }
        let unknown = |what: String| Error::unsupported(Subject::LogArchive, what);
        let mut fields = Fields::new(&bytes[8..]);
        let (version, flags) = (fields.u32().unwrap_or(0), fields.u32().unwrap_or(0));
        if version != VERSION || flags & !(HAS_BASE | HAS_ENDED) != 0 {
            return Err(unknown(format!(
                "version {version} with flags {flags:#x} is not known to this version of pellucid"
            )));
        }
        check_zeros(bytes, std::iter::once(ZEROS), || Subject::LogArchive)?;
        Self::parse_fields(&mut fields, flags)
            .filter(|state| state.place() == place)
            .ok_or_else(|| Error::corrupt(Subject::LogArchive, "its fields are malformed"))
    }

    fn parse_fields(fields: &mut Fields<'_>, flags: u32) -> Option<Self> {
        let mut state = Self {
            sequence: fields.u64()?,
            file_id: fields.array()?,
            fork: fields.array()?,
            has_base: flags & HAS_BASE != 0,
            has_ended: flags & HAS_ENDED != 0,
            live: LogRun::parse(fields)?,
            before: LogRun::parse(fields)?,
            highest: fields.u32()?,
            broken_epoch: fields.u32()?,
            ..Self::default()
        };
        state.backed_up = Lsn::decode(fields.array()?);
        state.broken_at = Lsn::decode(fields.array()?);
        state.last_set = fields.array()?;
        state.base = Lsn::decode(fields.array()?);
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::{Dek, Secret32};

    fn key(byte: u8) -> HeaderKey {
        HeaderKey::derive(&Dek::from_secret(Secret32::new(&mut [byte; 32])), &[9; 16]).unwrap()
    }

    fn run(epoch: u32) -> LogRun {
        LogRun {
            salts: [epoch as u8; 8],
            epoch,
            first: 3,
            kept: 5,
            handed_out: 6,
            count: 2,
            behind: Lsn::new(epoch - 1, 70),
            tail: [4; TAIL_BYTES],
        }
    }

    fn state(sequence: u64) -> ArchiveState {
        ArchiveState {
            sequence,
            file_id: [1; 16],
            fork: [2; 16],
            has_base: true,
            has_ended: true,
            live: run(8),
            before: run(7),
            highest: 9,
            broken_epoch: 5,
            backed_up: Lsn::new(6, 1),
            broken_at: Lsn::new(5, 1),
            last_set: [3; 32],
            base: Lsn::new(4, 1),
        }
    }

    #[test]
    fn the_newer_whole_sector_counts_and_one_torn_write_loses_nothing() {
        let key = key(1);
        let (older, newer) = (state(6), state(7));
        let sectors = [older.encode(&key), newer.encode(&key)];
        let newest = |sectors: &_| ArchiveState::newest(sectors, [&key]);
        assert_eq!(newest(&sectors).unwrap(), newer);
        for (torn, left) in [(0, newer), (1, older)] {
            for at in [0, 9, 13, 17, 60, 200, 300, MAC_AT, 511] {
                let mut sectors = sectors;
                sectors[torn][at] ^= 1;
                assert_eq!(newest(&sectors).unwrap(), left, "byte {at} of sector {torn}");
            }
        }
        assert_eq!(ArchiveState::look(&sectors), Some(newer));
        let swapped = [sectors[1], sectors[0]];
        assert!(matches!(newest(&swapped), Err(Error::Unauthentic { .. })));
    }

    #[test]
    fn it_is_known_under_any_key_of_the_header_and_each_flip_is_seen() {
        let written = state(3);
        let mut sectors = [[0; ARCHIVE_SECTOR_BYTES], written.encode(&key(1))];
        let newest = |sectors: &_| ArchiveState::newest(sectors, [&key(2), &key(1)]);
        assert_eq!(newest(&sectors).unwrap(), written);
        assert!(ArchiveState::newest(&sectors, [&key(2)]).is_err());
        for bit in 0..8 * ARCHIVE_SECTOR_BYTES {
            sectors[1][bit / 8] ^= 1 << (bit % 8);
            assert!(newest(&sectors).is_err(), "bit {bit}");
            sectors[1][bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_frame_before_the_first_is_the_commit_that_it_follows() {
        let run = run(8);
        assert_eq!([run.lsn(2), run.lsn(3)], [Lsn::new(7, 70), Lsn::new(8, 3)]);
    }
}

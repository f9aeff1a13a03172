//! Sector 2 of a container of version 2: the wear of log and journal, and what has to be known of the log beside it.
//!
//! Layout: docs/format.md, "Sector 2 of version 2". Its first 24 bytes lie as in version 1.

use crate::error::{Error, Result, Subject};
use crate::header::Header;
use crate::keys::HeaderKey;
use crate::sector::{Wear, MAGIC_WEAR, WEAR_LOG_OFFSET};
use crate::wal::{Time, Version, RUN_BYTES};

/// Bytes of the sector that are used.
pub const LOG_SECTOR_BYTES: usize = 128;
const MAC_AT: usize = 96;
const UNDER_WAY: u32 = 1;
const HAS_ENDED: u32 = 2;
const IS_LOST: u32 = 4;

/// Encodes sector 2 of a new file, by the version of its header: the wear count, and no log.
pub fn encode_first(header: &Header, wear: Wear, key: &HeaderKey) -> Vec<u8> {
    match Version::of_database(header) {
        Version::First => wear.encode(key, WEAR_LOG_OFFSET).to_vec(),
        Version::Second => LogSector { wear, ..LogSector::default() }.encode(key).to_vec(),
    }
}

/// What sector 2 says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogSector {
    /// The wear of log and journal.
    pub wear: Wear,
    /// How often the present run of the log was recovered.
    pub recoveries: u32,
    /// Frames that the last recovery counted.
    pub counted: u32,
    /// A recovery began, and how it ended is not known.
    pub under_way: bool,
    /// Bytes 8 to 31 of the log's header; zeros where none was written yet.
    pub run: [u8; RUN_BYTES],
    /// The same of the run before.
    pub before: [u8; RUN_BYTES],
    /// When the last commit was: of this run if it was allowed to end, else of the one before.
    pub before_ended: Time,
    /// The highest epoch that the log's archive had given when a run began or ended, 0 without a chain of log backups. An archive that
    /// knows of none so high is an older one.
    pub epoch: u32,
    /// How many frames of a run the archive had when it was allowed to end: of the present run, or of the one before.
    pub kept: u32,
    /// It is of the present run.
    pub has_ended: bool,
    /// A run began although nobody had kept the one before: the archive does not know that its chain is broken yet.
    pub is_lost: bool,
}

impl LogSector {
    /// Encodes the bytes at [`WEAR_LOG_OFFSET`].
    pub fn encode(&self, key: &HeaderKey) -> [u8; LOG_SECTOR_BYTES] {
        let mut bytes = [0; LOG_SECTOR_BYTES];
        bytes[..8].copy_from_slice(MAGIC_WEAR);
        bytes[8..12].copy_from_slice(&self.wear.generation.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.recoveries.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.wear.reserved.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.counted.to_be_bytes());
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let flags = flag(self.under_way, UNDER_WAY)
            | flag(self.has_ended, HAS_ENDED)
            | flag(self.is_lost, IS_LOST);
        bytes[28..32].copy_from_slice(&flags.to_be_bytes());
        bytes[32..56].copy_from_slice(&self.run);
        bytes[56..80].copy_from_slice(&self.before);
        bytes[80..88].copy_from_slice(&self.before_ended.units().to_be_bytes());
        bytes[88..92].copy_from_slice(&self.epoch.to_be_bytes());
        bytes[92..96].copy_from_slice(&self.kept.to_be_bytes());
        let mac = key.sign(&[&WEAR_LOG_OFFSET.to_be_bytes(), &bytes[..MAC_AT]]);
        bytes[MAC_AT..].copy_from_slice(&mac);
        bytes
    }

    /// Parses the bytes, which have to be authentic under one of the keys: a change of the keys writes the header first.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if none of the keys wrote them, [`Error::Unsupported`] if a newer version did.
    pub fn parse<'a>(
        bytes: &[u8; LOG_SECTOR_BYTES],
        keys: impl IntoIterator<Item = &'a HeaderKey>,
    ) -> Result<Self> {
        let signed = [&WEAR_LOG_OFFSET.to_be_bytes()[..], &bytes[..MAC_AT]];
        if !keys.into_iter().any(|key| key.verify(&signed, &bytes[MAC_AT..])) {
            return Err(Error::unauthentic(Subject::Wear, "authentication tag does not match"));
        }
        match word(bytes, 28) {
            flags if flags & !(UNDER_WAY | HAS_ENDED | IS_LOST) == 0 => Ok(Self::fields(bytes)),
            other => Err(Error::unsupported(
                Subject::Wear,
                format!("state {other} of a log is not known to this version"),
            )),
        }
    }

    /// Reads the bytes without a key, to show them. `None` if there are none. They are not
    /// authenticated.
    pub fn look(bytes: &[u8; LOG_SECTOR_BYTES]) -> Option<Self> {
        (bytes[..8] == MAGIC_WEAR[..]).then(|| Self::fields(bytes))
    }

    fn fields(bytes: &[u8; LOG_SECTOR_BYTES]) -> Self {
        let long = |at| u64::from(word(bytes, at)) << 32 | u64::from(word(bytes, at + 4));
        let mut sector = Self {
            wear: Wear { generation: word(bytes, 8), reserved: long(16) },
            recoveries: word(bytes, 12),
            counted: word(bytes, 24),
            under_way: word(bytes, 28) & UNDER_WAY != 0,
            has_ended: word(bytes, 28) & HAS_ENDED != 0,
            is_lost: word(bytes, 28) & IS_LOST != 0,
            before_ended: Time::from_units(long(80)),
            epoch: word(bytes, 88),
            kept: word(bytes, 92),
            ..Self::default()
        };
        sector.run.copy_from_slice(&bytes[32..56]);
        sector.before.copy_from_slice(&bytes[56..80]);
        sector
    }
}

fn word(bytes: &[u8; LOG_SECTOR_BYTES], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::{Dek, Secret32};

    fn key(byte: u8) -> HeaderKey {
        HeaderKey::derive(&Dek::from_secret(Secret32::new(&mut [byte; 32])), &[9; 16]).unwrap()
    }

    #[test]
    fn it_reads_back_under_any_key_of_the_header_and_each_flip_is_seen() {
        let sector = LogSector {
            wear: Wear { generation: 2, reserved: 4096 },
            recoveries: 3,
            counted: 70,
            under_way: true,
            run: [1; RUN_BYTES],
            before: [2; RUN_BYTES],
            before_ended: Time::from_units(77),
            epoch: 9,
            kept: 60,
            has_ended: true,
            is_lost: true,
        };
        let mut bytes = sector.encode(&key(1));
        let parse = |bytes: &_| LogSector::parse(bytes, [&key(2), &key(1)]);
        assert_eq!(parse(&bytes).unwrap(), sector);
        assert_eq!(LogSector::look(&bytes), Some(sector));
        assert!(matches!(LogSector::parse(&bytes, [&key(2)]), Err(Error::Unauthentic { .. })));
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&bytes).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(LogSector::look(&[0; LOG_SECTOR_BYTES]), None);
    }

    #[test]
    fn version_1_finds_generation_and_writes_at_their_places() {
        let sector =
            LogSector { wear: Wear { generation: 7, reserved: 9 }, ..LogSector::default() };
        let bytes = sector.encode(&key(1));
        assert_eq!(Wear::look(bytes.first_chunk().unwrap()), Some(sector.wear));
    }
}

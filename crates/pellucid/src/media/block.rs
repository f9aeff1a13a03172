//! The block of a set header of version 2: the set's place in the chain of log backups, and what joins it to other sets.
//!
//! Layout: docs/format.md, "Set header". What lies in the first 72 bytes depends on the type of the set.

use std::ops::Range;

use super::header::check_known;
use super::set_header::{Kind, FIXED_BYTES};
use crate::error::{Error, Result, Subject};
use crate::fields::Fields;
use crate::flags::check_zeros;
use crate::lsn::Lsn;

/// Bytes of the block.
pub const BLOCK_BYTES: usize = 128;

const BEFORE_AT: usize = 72;
const PADDED_AT: usize = 104;
const PADDED_CLASSES: u8 = 1;
const FULL_LSN_AT: usize = 40;
const LOG_FLAGS_AT: usize = 68;
/// The place of a full set or a log set begins with the block, that of a differential behind the hash of its full set.
const BASE_BYTES: usize = 32;
const PLACE_BYTES: usize = 32;
const FLAG_BULK: u32 = 1;
const FLAG_TAIL: u32 = 2;
const FLAG_GAP: u32 = 4;

/// What a set of version 2 says besides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Version2 {
    /// SHA-256 of the manifest of the set before in the database's chain; zeros if none was known.
    pub before: [u8; 32],
    /// SHA-256 of the manifest of the full set that a differential is based on; zeros if it is not known, and in other sets.
    pub base: [u8; 32],
    /// Whether it is padded to a size class.
    pub padded: bool,
    /// Its place in the chain of log backups. A log set has one; another set of a database without such a chain has none.
    pub chain: Option<ChainPlace>,
    /// What only a log set says.
    pub log: Option<LogFacts>,
}

/// The place of a set in the chain of log backups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainPlace {
    /// The recovery fork, never zeros.
    pub fork: [u8; 16],
    /// Behind it a log set goes on, or the logs behind another set have to begin.
    pub first: Lsn,
    /// The last commit of a log set; of another set the moment that it has. Never none.
    pub last: Lsn,
}

/// What only a log set says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogFacts {
    /// The moment of the full set that the chain had last; none if that is not known.
    pub full: Lsn,
    /// When its first commit was, in microseconds since 1970; 0 without commits.
    pub first_time: u64,
    /// When its last commit was, likewise.
    pub last_time: u64,
    /// How many commits it has.
    pub commits: u32,
    /// Whether it has bulk changes, so that nothing can stop inside it.
    pub bulk: bool,
    /// Whether it is the tail of a log, behind which the database is restoring.
    pub tail: bool,
    /// Whether commits behind its end are lost.
    pub gap: bool,
}

impl Version2 {
    /// Appends the block of a set of type `kind`.
    pub(super) fn encode(&self, kind: Kind, out: &mut Vec<u8>) {
        let start = out.len();
        if kind == Kind::Differential {
            out.extend_from_slice(&self.base);
        }
        if let Some(place) = &self.chain {
            out.extend_from_slice(&place.fork);
            out.extend_from_slice(&place.first.encode());
            out.extend_from_slice(&place.last.encode());
        }
        if let (Kind::Log, Some(log)) = (kind, &self.log) {
            out.resize(start + FULL_LSN_AT, 0);
            out.extend_from_slice(&log.full.encode());
            out.extend_from_slice(&log.first_time.to_be_bytes());
            out.extend_from_slice(&log.last_time.to_be_bytes());
            out.extend_from_slice(&log.commits.to_be_bytes());
            out.extend_from_slice(&log.flags().to_be_bytes());
        }
        out.resize(start + BEFORE_AT, 0);
        out.extend_from_slice(&self.before);
        out.push(if self.padded { PADDED_CLASSES } else { 0 });
        out.resize(start + BLOCK_BYTES, 0);
    }

    /// Parses the block in `header`, which is the whole set header. `None` if its fields do not fit.
    pub(super) fn parse(header: &[u8], kind: Kind, position: u32) -> Result<Option<Self>> {
        let subject = || Subject::BackupSet(position);
        let Some(block) = header.get(FIXED_BYTES..FIXED_BYTES + BLOCK_BYTES) else {
            return Ok(None);
        };
        check_known(subject(), block[PADDED_AT], PADDED_CLASSES)?;
        let place_at = if kind == Kind::Differential { BASE_BYTES } else { 0 };
        let place_end = place_at + PLACE_BYTES;
        let unused = match kind {
            Kind::Log => place_end..FULL_LSN_AT,
            Kind::Full | Kind::Differential => place_end..BEFORE_AT,
        };
        check_zeros(header, [in_header(unused), in_header(PADDED_AT + 1..BLOCK_BYTES)], subject)?;
        let mut own = Self { padded: block[PADDED_AT] == PADDED_CLASSES, ..Self::default() };
        own.before.copy_from_slice(&block[BEFORE_AT..PADDED_AT]);
        if kind == Kind::Differential {
            own.base.copy_from_slice(&block[..BASE_BYTES]);
        }
        let Some(place) = ChainPlace::parse(&block[place_at..place_end]) else { return Ok(None) };
        if place.last.is_none() {
            // A set without a moment has no place.
            check_zeros(header, [in_header(place_at..place_end)], subject)?;
        } else if place.fork == [0; 16] || place.first > place.last {
            return Ok(None);
        } else {
            own.chain = Some(place);
        }
        if kind == Kind::Log {
            let Some(log) = LogFacts::parse(&block[FULL_LSN_AT..BEFORE_AT], position)? else {
                return Ok(None);
            };
            if !own.chain.is_some_and(|place| log.fits(&place)) {
                return Ok(None);
            }
            own.log = Some(log);
        }
        Ok(Some(own))
    }
}

fn in_header(of_block: Range<usize>) -> Range<usize> {
    FIXED_BYTES + of_block.start..FIXED_BYTES + of_block.end
}

impl ChainPlace {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(bytes);
        Some(Self {
            fork: fields.array()?,
            first: Lsn::of_word(fields.u64()?),
            last: Lsn::of_word(fields.u64()?),
        })
    }
}

impl LogFacts {
    fn flags(&self) -> u32 {
        [(self.bulk, FLAG_BULK), (self.tail, FLAG_TAIL), (self.gap, FLAG_GAP)]
            .into_iter()
            .filter_map(|(is, flag)| is.then_some(flag))
            .sum()
    }

    fn parse(bytes: &[u8], position: u32) -> Result<Option<Self>> {
        let mut fields = Fields::new(bytes);
        let mut read = || {
            let full = Lsn::of_word(fields.u64()?);
            Some((full, fields.u64()?, fields.u64()?, fields.u32()?, fields.u32()?))
        };
        let Some((full, first_time, last_time, commits, flags)) = read() else { return Ok(None) };
        let unknown = flags & !(FLAG_BULK | FLAG_TAIL | FLAG_GAP);
        if unknown != 0 {
            return Err(Error::unsupported(
                Subject::BackupSet(position),
                format!(
                    "log flags {unknown:#x} at byte {} are not known to this version: a newer version of pellucid made it",
                    FIXED_BYTES + LOG_FLAGS_AT
                ),
            ));
        }
        Ok(Some(Self {
            full,
            first_time,
            last_time,
            commits,
            bulk: flags & FLAG_BULK != 0,
            tail: flags & FLAG_TAIL != 0,
            gap: flags & FLAG_GAP != 0,
        }))
    }

    /// Whether a log set can say both: one without commits ends where it begins, and has no time.
    fn fits(&self, place: &ChainPlace) -> bool {
        match self.commits {
            0 => place.first == place.last && (self.first_time, self.last_time) == (0, 0),
            _ => place.first < place.last && self.first_time <= self.last_time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: ChainPlace = ChainPlace {
        fork: [6; 16],
        first: Lsn { epoch: 1, frame: 2 },
        last: Lsn { epoch: 1, frame: 9 },
    };

    fn log(facts: LogFacts, place: ChainPlace) -> Version2 {
        Version2 { chain: Some(place), log: Some(facts), ..Version2::default() }
    }

    fn header(own: &Version2, kind: Kind) -> Vec<u8> {
        let mut out = vec![0xee; FIXED_BYTES];
        own.encode(kind, &mut out);
        assert_eq!(out.len(), FIXED_BYTES + BLOCK_BYTES);
        out
    }

    #[test]
    fn each_type_of_set_reads_back_with_and_without_a_place() {
        let facts = LogFacts {
            full: Lsn::new(1, 1),
            first_time: 7,
            last_time: 8,
            commits: 3,
            bulk: true,
            tail: false,
            gap: true,
        };
        let empty = LogFacts { tail: true, ..LogFacts::default() };
        let at_its_end = ChainPlace { first: PLACE.last, ..PLACE };
        let chained =
            Version2 { before: [8; 32], padded: true, chain: Some(PLACE), ..Version2::default() };
        let based = Version2 { base: [9; 32], ..chained };
        for (kind, own) in [
            (Kind::Full, Version2::default()),
            (Kind::Full, chained),
            (Kind::Full, Version2 { chain: Some(at_its_end), ..chained }),
            (Kind::Differential, Version2 { chain: None, ..based }),
            (Kind::Differential, based),
            (Kind::Log, log(facts, PLACE)),
            (Kind::Log, log(empty, at_its_end)),
        ] {
            let bytes = header(&own, kind);
            assert_eq!(Version2::parse(&bytes, kind, 1).unwrap(), Some(own), "{kind:?}");
        }
    }

    #[test]
    fn a_set_outside_of_a_chain_is_what_it_was_before_there_were_log_sets() {
        let own = Version2 { before: [8; 32], base: [9; 32], padded: true, ..Version2::default() };
        let block = header(&own, Kind::Differential).split_off(FIXED_BYTES);
        let zeros = |bytes: usize| vec![0; bytes];
        assert_eq!(block, [&[9; 32][..], &zeros(40), &[8; 32], &[1], &zeros(23)].concat());
    }

    #[test]
    fn nonsense_is_refused() {
        let facts = LogFacts { first_time: 7, last_time: 8, commits: 3, ..LogFacts::default() };
        let backwards = ChainPlace { first: PLACE.last, last: PLACE.first, ..PLACE };
        let at_once = ChainPlace { first: PLACE.last, ..PLACE };
        let no_fork = ChainPlace { fork: [0; 16], ..PLACE };
        let chained = |place| Version2 { chain: Some(place), ..Version2::default() };
        for (kind, own) in [
            (Kind::Log, Version2::default()),
            (Kind::Log, log(facts, backwards)),
            (Kind::Log, log(facts, at_once)),
            (Kind::Log, log(facts, no_fork)),
            (Kind::Log, log(LogFacts { first_time: 9, ..facts }, PLACE)),
            (Kind::Log, log(LogFacts::default(), PLACE)),
            (Kind::Log, log(LogFacts { commits: 0, ..facts }, at_once)),
            (Kind::Full, chained(backwards)),
            (Kind::Differential, chained(no_fork)),
        ] {
            let bytes = header(&own, kind);
            assert_eq!(Version2::parse(&bytes, kind, 1).unwrap(), None, "{kind:?} {own:?}");
        }
        let lost = Version2 {
            chain: Some(ChainPlace { last: Lsn::NONE, ..PLACE }),
            ..Version2::default()
        };
        for kind in [Kind::Full, Kind::Differential, Kind::Log] {
            let told = Version2::parse(&header(&lost, kind), kind, 1).unwrap_err();
            assert!(matches!(told, Error::Unsupported { .. }), "{told}");
        }
    }

    #[test]
    fn a_byte_that_is_zero_and_a_flag_that_is_not_known_are_a_newer_versions() {
        let facts = LogFacts { first_time: 7, last_time: 8, commits: 3, ..LogFacts::default() };
        let kinds = [
            (Kind::Full, Version2::default(), [32..72, 105..128]),
            (Kind::Differential, Version2::default(), [64..72, 105..128]),
            (Kind::Log, log(facts, PLACE), [32..40, 105..128]),
        ];
        for (kind, own, zeros) in kinds {
            let bytes = header(&own, kind);
            let with = |at: usize, value: u8| {
                let mut changed = bytes.clone();
                changed[FIXED_BYTES + at] |= value;
                Version2::parse(&changed, kind, 1)
            };
            for at in zeros.into_iter().flatten() {
                assert!(matches!(with(at, 1), Err(Error::Unsupported { .. })), "{kind:?} {at}");
            }
            assert!(matches!(with(PADDED_AT, 2), Err(Error::Unsupported { .. })));
            if kind == Kind::Log {
                for bit in 3..32 {
                    let told = with(LOG_FLAGS_AT + 3 - bit / 8, 1 << (bit % 8));
                    assert!(matches!(told, Err(Error::Unsupported { .. })), "flag {bit}");
                }
            }
        }
    }
}

//! Log sequence numbers: a place in the chain of all commits of a database.
//!
//! Layout: docs/format.md, "Log archive". Frames of a log are counted anew with each of its runs, so that a number has the
//! epoch of the run before the frame.

use std::fmt;

/// Bytes of an encoded number.
pub const LSN_BYTES: usize = 8;

/// What an epoch and a frame are multiplied by in SQL Server's numeric(25,0).
const EPOCH_STEP: u128 = 1_000_000_000_000_000;
const FRAME_STEP: u128 = 100_000;

/// The place behind a frame of one epoch of a log. Later commits have higher ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Lsn {
    /// The epoch: counted up where the log begins anew, and where commits that were handed out are gone.
    pub epoch: u32,
    /// The frame of the log, from 1. 0 is before the first one.
    pub frame: u32,
}

impl Lsn {
    /// Before every commit. Where none is known.
    pub const NONE: Self = Self { epoch: 0, frame: 0 };

    /// The number behind `frame` of `epoch`.
    pub fn new(epoch: u32, frame: u32) -> Self {
        Self { epoch, frame }
    }

    /// Whether it is none.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The bytes on disk: epoch, then frame, so that they are ordered as the numbers are.
    pub fn encode(self) -> [u8; LSN_BYTES] {
        self.word().to_be_bytes()
    }

    /// Reads the bytes on disk.
    pub fn decode(bytes: [u8; LSN_BYTES]) -> Self {
        Self::of_word(u64::from_be_bytes(bytes))
    }

    /// Both parts in one word.
    pub fn word(self) -> u64 {
        u64::from(self.epoch) << 32 | u64::from(self.frame)
    }

    /// The number that has both parts in one word.
    pub fn of_word(word: u64) -> Self {
        Self { epoch: (word >> 32) as u32, frame: word as u32 }
    }

    /// The number as SQL Server's numeric(25,0). None is 0.
    pub fn numeric(self) -> u128 {
        match self.is_none() {
            true => 0,
            false => u128::from(self.epoch) * EPOCH_STEP + u128::from(self.frame) * FRAME_STEP + 1,
        }
    }

    /// Reads SQL Server's numeric(25,0).
    pub fn of_numeric(numeric: u128) -> Option<Self> {
        if numeric == 0 {
            return Some(Self::NONE);
        }
        let lsn = Self {
            epoch: u32::try_from(numeric / EPOCH_STEP).ok()?,
            frame: u32::try_from(numeric % EPOCH_STEP / FRAME_STEP).ok()?,
        };
        (lsn.numeric() == numeric).then_some(lsn)
    }

    /// Reads what [`fmt::Display`] writes, with or without SQL Server's `lsn:` before it.
    pub fn parse(text: &str) -> Option<Self> {
        let number = text.strip_prefix("lsn:").unwrap_or(text);
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| number.parse().ok().and_then(Self::of_numeric)).flatten()
    }
}

impl fmt::Display for Lsn {
    /// SQL Server's numeric(25,0).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.numeric())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_reads_back_and_keeps_the_order() {
        let (low, high) = ([0, 1, 7, u32::MAX - 1], [0, 1, 4095, u32::MAX]);
        let mut all: Vec<Lsn> =
            low.iter().flat_map(|epoch| high.map(|frame| Lsn::new(*epoch, frame))).collect();
        all.sort_unstable();
        for pair in all.windows(2) {
            assert!(pair[0].numeric() < pair[1].numeric() && pair[0].encode() < pair[1].encode());
        }
        for lsn in all {
            assert_eq!(Lsn::decode(lsn.encode()), lsn);
            assert_eq!(Lsn::parse(&lsn.to_string()), Some(lsn));
            assert_eq!(Lsn::parse(&format!("lsn:{lsn}")), Some(lsn));
            assert!(lsn.to_string().len() <= 25);
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", "lsn:", "-1", "+1", "2", "1.0", "100002", "10000000000000000000000000001"]
        {
            assert_eq!(Lsn::parse(text), None, "{text}");
        }
        assert_eq!(Lsn::parse("0"), Some(Lsn::NONE));
        assert_eq!(Lsn::parse("3000000000700001"), Some(Lsn::new(3, 7)));
    }
}

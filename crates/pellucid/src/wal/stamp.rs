//! What a frame of the second version of a log has in the place of its salts: when and in which circumstances it was written.
//!
//! Layout: docs/format.md, "WAL of version 2". The frame's tag covers it.

/// The highest recovery count.
pub const COUNT_MOST: u16 = (1 << COUNT_BITS) - 1;

const COUNT_BITS: u32 = 13;
const TIME_BITS: u32 = 46;
const TIME_MOST: u64 = (1 << TIME_BITS) - 1;
const FLAGS_AT: u32 = COUNT_BITS + TIME_BITS;
const MARK_FOLLOWS: u64 = 1 << FLAGS_AT;
const RESEALS_ONLY: u64 = 1 << (FLAGS_AT + 1);
const SYNCED_BEFORE: u64 = 1 << (FLAGS_AT + 2);
const FIRST: u64 = 1 << (FLAGS_AT + 3);
const STEPPED_BACK: u64 = 1 << (FLAGS_AT + 4);

/// A moment, in units of 64 us since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time(u64);

impl Time {
    /// A commit whose clock is further behind the last one's has [`Stamp::stepped_back`]: 2 s.
    pub const STEP: u64 = 2_000_000 / 64;

    /// The clock's time.
    pub fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let micros = since.map(|since| since.as_micros()).unwrap_or(0);
        Self::from_units(u64::try_from(micros / 64).unwrap_or(u64::MAX))
    }

    /// A moment by its number of units; the last one that there is, if that is greater.
    pub fn from_units(units: u64) -> Self {
        Self(units.min(TIME_MOST))
    }

    /// The number of units.
    pub fn units(self) -> u64 {
        self.0
    }

    /// The number of microseconds since 1970.
    pub fn micros(self) -> u64 {
        self.0 * 64
    }
}

/// The stamp of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// When its transaction was committed. Only a commit frame's counts.
    pub time: Time,
    /// How often the run of the log had been recovered.
    pub count: u16,
    /// The frame is the first of its transaction.
    pub first: bool,
    /// A sync of the log had returned since the last commit, when the transaction began. Only a first frame's counts.
    pub synced_before: bool,
    /// The clock was more than 2 s behind the last commit's.
    pub stepped_back: bool,
    /// The commit changes no content: a scan's.
    pub reseals_only: bool,
    /// A named mark belongs to the commit.
    pub mark_follows: bool,
}

impl Stamp {
    /// The 8 bytes on disk.
    pub fn encode(&self) -> [u8; 8] {
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        let word = self.time.0 << COUNT_BITS
            | u64::from(self.count.min(COUNT_MOST))
            | flag(self.first, FIRST)
            | flag(self.synced_before, SYNCED_BEFORE)
            | flag(self.stepped_back, STEPPED_BACK)
            | flag(self.reseals_only, RESEALS_ONLY)
            | flag(self.mark_follows, MARK_FOLLOWS);
        word.to_be_bytes()
    }

    /// Reads the stamp of a frame as it is on disk.
    pub fn of(sealed: &[u8]) -> Self {
        let mut word = [0; 8];
        word.copy_from_slice(&sealed[8..16]);
        let word = u64::from_be_bytes(word);
        Self {
            time: Time(word >> COUNT_BITS & TIME_MOST),
            count: (word & u64::from(COUNT_MOST)) as u16,
            first: word & FIRST != 0,
            synced_before: word & SYNCED_BEFORE != 0,
            stepped_back: word & STEPPED_BACK != 0,
            reseals_only: word & RESEALS_ONLY != 0,
            mark_follows: word & MARK_FOLLOWS != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_has_one_meaning() {
        for bit in 0..64 {
            let mut sealed = [0; 16];
            sealed[8..].copy_from_slice(&(1u64 << bit).to_be_bytes());
            let stamp = Stamp::of(&sealed);
            assert_ne!(stamp, Stamp::default(), "bit {bit}");
            assert_eq!(stamp.encode(), sealed[8..16]);
        }
        let highest = Stamp { stepped_back: true, ..Stamp::default() };
        assert_eq!(highest.encode()[0], 0x80);
    }

    #[test]
    fn time_goes_in_steps_of_64_us_and_does_not_run_over() {
        let now = Time::now();
        assert!(now.micros() > 1_700_000_000_000_000 && now < Time::from_units(u64::MAX));
        assert_eq!(Time::from_units(u64::MAX).units(), TIME_MOST);
        let stamp = Stamp { time: Time::from_units(u64::MAX), count: u16::MAX, ..Stamp::default() };
        assert_eq!(stamp.encode(), [0x07, 255, 255, 255, 255, 255, 255, 255]);
    }
}

//! Reading ahead: successive sealed units are read with one call if they are asked for in their
//! order.
//!
//! It does not know when its units are stale: the file that reads by it drops them then.

use pellucid_host::code::Outcome;

use crate::lower::CALL_BYTES;

/// Units that have to come in their order before any is read ahead.
const RUN_LEAST: u32 = 2;

/// The place of a forward scan, and the units read ahead for it.
#[derive(Debug, Default)]
pub struct ReadAhead {
    /// The unit that would continue a forward scan.
    next: u64,
    /// The number of units that came in their order so far.
    run: u32,
    first: u64,
    unit_bytes: usize,
    units: Vec<u8>,
    /// The first unit that is still fresh. The ones before it have changed, or come before one that
    /// has.
    fresh_from: u64,
}

impl ReadAhead {
    /// Unit `number`, if it was read ahead.
    pub fn unit(&self, number: u64) -> Option<&[u8]> {
        if number < self.fresh_from {
            return None;
        }
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let unit = self.units.get(index.checked_mul(self.unit_bytes)?..)?.get(..self.unit_bytes);
        unit.filter(|unit| !unit.is_empty())
    }

    /// Notes that unit `number` was used.
    pub fn took(&mut self, number: u64) {
        self.next = number + 1;
    }

    /// The number of units to read from `number` on, which is asked for now: one, or more if a
    /// forward scan is long enough.
    pub fn wants(&mut self, number: u64, unit_bytes: usize) -> usize {
        self.run = if number == self.next { self.run + 1 } else { 0 };
        self.next = number + 1;
        match self.run {
            0..RUN_LEAST => 1,
            run => (CALL_BYTES / unit_bytes).min(4 << run.min(8)).max(1),
        }
    }

    /// Lets `read` fill `count` units from `number` on. Keeps them only if `read` returns that all
    /// were there.
    ///
    /// # Errors
    /// The error of `read`.
    pub fn fill(
        &mut self,
        number: u64,
        count: usize,
        unit_bytes: usize,
        read: impl FnOnce(&mut [u8]) -> Outcome<bool>,
    ) -> Outcome<bool> {
        self.units.resize(count * unit_bytes, 0);
        let outcome = read(&mut self.units);
        if outcome != Ok(true) {
            // A scan that is long enough tries an unreadable range once, not at each of its units.
            self.run = 0;
            self.drop_units();
        }
        self.first = number;
        self.fresh_from = number;
        self.unit_bytes = unit_bytes;
        outcome
    }

    /// Drops the units from `from` to before `to`, which this connection overwrites. Later units
    /// are kept, because a scan that changes what it reads goes on there.
    pub fn changed(&mut self, from: u64, to: u64) {
        let end = self.first + (self.units.len() / self.unit_bytes.max(1)) as u64;
        if from < end && to > self.first {
            self.fresh_from = self.fresh_from.max(to);
        }
    }

    /// Drops all units that were read ahead.
    pub fn drop_units(&mut self) {
        self.units.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pellucid_host::code::Code;

    #[test]
    fn a_scan_is_read_ahead_for_and_nothing_else() {
        let mut ahead = ReadAhead::default();
        assert_eq!([9, 3, 7, 8].map(|number| ahead.wants(number, 4096)), [1; 4]);
        assert_eq!((ahead.wants(9, 4096), ahead.wants(10, 1024)), (16, 32));
        assert_eq!((ahead.wants(11, CALL_BYTES * 2), ahead.wants(13, 4096)), (1, 1));
        ahead.wants(14, 4096);
        ahead.took(40);
        assert_eq!(ahead.wants(41, 4096), 16, "what was taken is part of the scan");
    }

    #[test]
    fn what_was_read_is_found_by_its_number_until_it_is_dropped() {
        let mut ahead = ReadAhead::default();
        assert_eq!(ahead.unit(0), None);
        let read = |units: &mut [u8]| {
            units.copy_from_slice(b"aabbcc");
            Ok(true)
        };
        assert_eq!(ahead.fill(5, 3, 2, read), Ok(true));
        assert_eq!(
            [4, 5, 7, 8].map(|number| ahead.unit(number)),
            [None, Some(&b"aa"[..]), Some(&b"cc"[..]), None]
        );
        ahead.changed(8, 9);
        ahead.changed(3, 5);
        assert_eq!(ahead.unit(5), Some(&b"aa"[..]), "neither is among them");
        ahead.changed(6, 7);
        assert_eq!([5, 6, 7].map(|number| ahead.unit(number)), [None, None, Some(&b"cc"[..])]);
        ahead.changed(5, 6);
        assert_eq!(ahead.unit(6), None, "it has not become fresh again");
        ahead.changed(4, 9);
        assert_eq!(ahead.unit(7), None);
        assert_eq!(ahead.fill(5, 3, 2, read), Ok(true));
        assert_eq!(ahead.unit(5), Some(&b"aa"[..]), "read anew");
        ahead.drop_units();
        assert_eq!(ahead.unit(5), None);
        for end in [Ok(false), Err(Code(pellucid_host::ffi::IOERR_READ))] {
            assert_eq!(ahead.fill(5, 3, 2, |_| end), end);
            assert_eq!(ahead.unit(5), None, "what was not read whole is not kept");
        }
    }
}

//! Sealed units of a WAL, a journal or a temporary file that wait to be written with one call.

use pellucid_host::code::Outcome;

use crate::lower::{Lower, CALL_BYTES};

/// Units that lie one behind the other in the file.
#[derive(Debug, Default)]
pub struct Held {
    /// The units' bytes. The buffer never becomes shorter, so that no unit's room is filled with
    /// zeros before it is sealed.
    buffer: Vec<u8>,
    length: usize,
    at: u64,
}

impl Held {
    /// Whether no unit is held.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The offset of the first unit in the file.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The offset where the last unit ends.
    pub fn end(&self) -> u64 {
        self.at + self.length as u64
    }

    /// The bytes of all units.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    /// Whether any of `length` bytes at `offset` is held.
    pub fn overlaps(&self, offset: u64, length: usize) -> bool {
        !self.is_empty() && offset < self.end() && self.at < offset + length as u64
    }

    /// The unit of `length` bytes at `offset`, if it is held.
    pub fn unit(&self, offset: u64, length: usize) -> Option<&[u8]> {
        self.bytes().get(self.range(offset, length)?)
    }

    /// The unit of `length` bytes at `offset`, to be sealed again, if it is held.
    pub fn unit_mut(&mut self, offset: u64, length: usize) -> Option<&mut [u8]> {
        let range = self.range(offset, length)?;
        self.buffer[..self.length].get_mut(range)
    }

    fn range(&self, offset: u64, length: usize) -> Option<std::ops::Range<usize>> {
        let from = usize::try_from(offset.checked_sub(self.at)?).ok()?;
        Some(from..from.checked_add(length)?)
    }

    /// Whether a unit of `length` bytes at `offset` can be written by the same call.
    pub fn takes(&self, offset: u64, length: usize) -> bool {
        self.is_empty() || self.end() == offset && self.length + length <= CALL_BYTES
    }

    /// Returns the room for a unit that [`Held::takes`]. Its bytes have no meaning before it is
    /// sealed.
    pub fn add(&mut self, offset: u64, length: usize) -> &mut [u8] {
        if self.is_empty() {
            self.at = offset;
        }
        let start = self.length;
        self.length += length;
        if self.buffer.len() < self.length {
            self.buffer.resize(self.length, 0);
        }
        &mut self.buffer[start..self.length]
    }

    /// Removes the unit added last, which could not be sealed.
    pub fn take_back(&mut self, length: usize) {
        self.length -= length;
    }

    /// Forgets the units that begin at `end` or behind it.
    pub fn cut(&mut self, end: u64) {
        let left = end.saturating_sub(self.at);
        self.length = self.length.min(usize::try_from(left).unwrap_or(usize::MAX));
    }

    /// Forgets every unit.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// Writes every unit. They stay held until [`Held::clear`].
    ///
    /// # Errors
    /// The lower VFS's code.
    pub fn write(&self, lower: Lower) -> Outcome<()> {
        lower.write(self.bytes(), self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_held_while_one_call_can_write_them() {
        let mut held = Held::default();
        assert!(held.takes(7, CALL_BYTES + 1), "whatever comes first");
        held.add(512, 4).copy_from_slice(b"unit");
        assert!(held.takes(516, 4) && !held.takes(512, 4) && !held.takes(517, 4));
        assert!(!held.takes(516, CALL_BYTES - 3));
        held.add(516, 3).fill(1);
        held.take_back(3);
        assert_eq!((held.bytes(), held.at(), held.end()), (&b"unit"[..], 512, 516));
        assert_eq!(held.unit(514, 2), Some(&b"it"[..]));
        assert_eq!((held.unit(511, 2), held.unit(515, 2)), (None, None));
        assert!(held.overlaps(515, 9) && held.overlaps(0, 513));
        assert!(!held.overlaps(516, 9) && !held.overlaps(0, 512));
        assert!(held.unit_mut(516, 1).is_none());
        held.unit_mut(512, 1).unwrap().fill(b'U');
        assert_eq!(held.bytes(), b"Unit");
        held.cut(516);
        assert_eq!(held.bytes(), b"Unit");
        held.cut(514);
        assert_eq!(held.bytes(), b"Un");
        held.cut(0);
        assert!(held.is_empty());
        held.clear();
        assert!(held.is_empty() && held.takes(0, 1) && !held.overlaps(512, 4));
        assert_eq!(held.add(9, 2).len(), 2);
        assert_eq!((held.at(), held.end()), (9, 11));
    }
}

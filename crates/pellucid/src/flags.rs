//! Words of flags, by which a later version can mark an object.
//!
//! Layout: docs/format.md, "Flags". This version knows no flag and sets none.

use crate::error::{Error, Result, Subject};

/// Bytes of the three words.
pub const FLAGS_BYTES: usize = 6;

/// The incompatible bits of the single byte that a keyring file has for all three words.
const BYTE_INCOMPATIBLE: u8 = 0b0000_0111;
const BYTE_READ_ONLY: u8 = 0b0011_1000;
const BYTE_COMPATIBLE: u8 = 0b1100_0000;

/// The flags of an object that this version can read. None of them is incompatible, because such an
/// object is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    read_only: u16,
    compatible: u16,
}

impl Flags {
    /// Parses the words `incompatible ‖ read-only ‖ compatible`, 2 bytes each.
    ///
    /// # Errors
    /// [`Error::Unsupported`], which names the incompatible flags. This version knows none of them.
    pub fn parse(words: [u8; FLAGS_BYTES], subject: Subject) -> Result<Self> {
        let [a, b, c, d, e, f] = words;
        Self::known(u16::from_be_bytes([a, b]), subject)?;
        Ok(Self { read_only: u16::from_be_bytes([c, d]), compatible: u16::from_be_bytes([e, f]) })
    }

    /// Encodes the words, unknown flags included.
    pub fn encode(self) -> [u8; FLAGS_BYTES] {
        let ([a, b], [c, d]) = (self.read_only.to_be_bytes(), self.compatible.to_be_bytes());
        [0, 0, a, b, c, d]
    }

    /// Parses the byte of a keyring file: from the lowest bit on three incompatible flags, three
    /// read-only ones, two compatible ones.
    pub fn from_byte(byte: u8, subject: Subject) -> Result<Self> {
        Self::known((byte & BYTE_INCOMPATIBLE).into(), subject)?;
        let word = |bits: u8| u16::from((byte & bits) >> bits.trailing_zeros());
        Ok(Self { read_only: word(BYTE_READ_ONLY), compatible: word(BYTE_COMPATIBLE) })
    }

    /// Encodes the byte of a keyring file.
    pub fn to_byte(self) -> u8 {
        let bits = |word: u16, of: u8| (word as u8) << of.trailing_zeros() & of;
        bits(self.read_only, BYTE_READ_ONLY) | bits(self.compatible, BYTE_COMPATIBLE)
    }

    fn known(incompatible: u16, subject: Subject) -> Result<()> {
        match incompatible {
            0 => Ok(()),
            flags => Err(Error::unsupported(
                subject,
                format!(
                    "incompatible flags {flags:#06x} are not known to this version: a newer \
                     version of pellucid has to open it"
                ),
            )),
        }
    }

    /// Refuses to write an object with read-only flags.
    ///
    /// # Errors
    /// [`Error::Unsupported`], which names the read-only flags. This version knows none of them.
    pub fn check_writable(self, subject: Subject) -> Result<()> {
        match self.read_only {
            0 => Ok(()),
            flags => Err(Error::unsupported(
                subject,
                format!(
                    "read-only flags {flags:#06x} are not known to this version: it can be read, \
                     and only a newer version of pellucid may change it"
                ),
            )),
        }
    }
}

/// Refuses an object with a byte in `ranges` that is not zero. Version 1 has nothing there.
///
/// # Errors
/// [`Error::Unsupported`], which names the first such byte. The caller checks first that the bytes
/// are whole, because damage is no newer version.
pub fn check_zeros(
    bytes: &[u8],
    ranges: impl IntoIterator<Item = std::ops::Range<usize>>,
    subject: impl FnOnce() -> Subject,
) -> Result<()> {
    // A header has some 10 KiB of them: piece by piece, which compilers make wide.
    const PIECE: usize = 64;
    let first_used = |range: std::ops::Range<usize>| {
        let Some(all) = bytes.get(range.clone()) else {
            return range.into_iter().find(|at| bytes.get(*at) != Some(&0));
        };
        let is_used = |piece: &[u8]| piece.iter().fold(0, |any, byte| any | byte) != 0;
        let piece = all.chunks(PIECE).position(is_used)?;
        let at = range.start + piece * PIECE;
        (at..range.end).find(|at| bytes[*at] != 0)
    };
    match ranges.into_iter().find_map(first_used) {
        None => Ok(()),
        Some(at) => Err(Error::unsupported(
            subject(),
            format!(
                "byte {at} is not zero, as this version has it: a newer version of pellucid made it, or \
                 it is forged"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_named_or_kept() {
        let parse = |words| Flags::parse(words, Subject::Container);
        assert_eq!(parse([0; 6]).unwrap(), Flags::default());
        let kept = parse([0, 0, 0, 0, 0x80, 1]).unwrap();
        assert_eq!(kept.encode(), [0, 0, 0, 0, 0x80, 1]);
        kept.check_writable(Subject::Container).unwrap();
        let told = parse([0x40, 2, 0, 0, 0, 0]).unwrap_err().to_string();
        assert!(told.contains("incompatible flags 0x4002") && told.contains("newer"), "{told}");
        let read = parse([0, 0, 0x10, 0, 0, 4]).unwrap();
        assert_eq!(read.encode(), [0, 0, 0x10, 0, 0, 4]);
        let told = read.check_writable(Subject::Container).unwrap_err().to_string();
        assert!(told.contains("read-only flags 0x1000") && told.contains("newer"), "{told}");
    }

    #[test]
    fn a_byte_has_all_three() {
        for byte in 0..=u8::MAX {
            match Flags::from_byte(byte, Subject::Container) {
                Ok(flags) => {
                    assert_eq!(flags.to_byte(), byte);
                    let writable = flags.check_writable(Subject::Container).is_ok();
                    assert_eq!(writable, byte & 0b0011_1000 == 0, "{byte:#b}");
                }
                Err(error) => {
                    assert_ne!(byte & 7, 0, "{byte:#b}: {error}");
                    assert!(matches!(error, Error::Unsupported { .. }));
                }
            }
        }
    }

    #[test]
    fn each_byte_counts_and_those_that_are_not_there() {
        let ranges = || [3..150, 150..151, 160..161];
        for at in 0..200 {
            let mut bytes = [0; 200];
            bytes[at] = 1;
            let found = check_zeros(&bytes, ranges(), || Subject::Wear);
            match ranges().iter().any(|range| range.contains(&at)) {
                true => assert!(found.unwrap_err().to_string().contains(&format!("byte {at} "))),
                false => found.unwrap(),
            }
        }
        let told = check_zeros(&[0; 155], ranges(), || Subject::Wear).unwrap_err().to_string();
        assert!(told.contains("byte 160 "), "{told}");
    }

    #[test]
    fn a_byte_in_use_is_named() {
        let mut bytes = [1, 0, 0, 1, 0, 0];
        let check = |bytes: &[u8]| check_zeros(bytes, [1..3, 4..6], || Subject::Wear);
        check(&bytes).unwrap();
        bytes[5] = 7;
        let told = check(&bytes).unwrap_err().to_string();
        assert!(told.contains("byte 5 is not zero") && told.contains("newer version"), "{told}");
    }
}

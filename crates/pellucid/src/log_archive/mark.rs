//! The named mark of a commit, in a file of its own beside the kept frames, until a log backup has it.
//!
//! Layout: docs/format.md, "Mark". It is sealed as a frame of the log is, at the place of the commit's last frame, with the page
//! number 0, which no frame has, and in a length that no frame has.

use crate::error::{Error, Result, Subject};
use crate::fields::Fields;
use crate::keys::ContainerKeys;
use crate::media::{is_mark, is_readable, MOST_MARK_BYTES};
use crate::nonce::NonceSource;
use crate::unit::TAIL_BYTES;
use crate::wal::{open_frame, seal_frame, Run, Stamp, FRAME_CLEAR_BYTES};

/// Bytes of the file, whatever the mark's name.
pub const MARK_FILE_BYTES: usize = 2000;
/// The most characters of a description.
pub const MOST_DESCRIPTION_CHARACTERS: usize = 255;
const MOST_DESCRIPTION_BYTES: usize = 4 * MOST_DESCRIPTION_CHARACTERS;
const SUFFIX: &str = ".mark";

const _: () = assert!(
    4 + MOST_MARK_BYTES + MOST_DESCRIPTION_BYTES + FRAME_CLEAR_BYTES + TAIL_BYTES
        <= MARK_FILE_BYTES
);

/// What a user calls a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    name: String,
    description: String,
}

/// The frame with which a marked commit ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MarkedFrame {
    /// The salts of its run of the log.
    pub salts: [u8; 8],
    /// Its number.
    pub frame: u32,
    /// Its stamp, as it is on disk.
    pub stamp: [u8; 8],
}

impl MarkedFrame {
    /// The frame `frame` of `run`.
    pub fn of(run: &Run, frame: u32, stamp: Stamp) -> Self {
        Self { salts: run.salts(), frame, stamp: stamp.encode() }
    }

    /// The name of the file with its mark.
    pub fn file_name(&self) -> String {
        let [salts, stamp] = [self.salts, self.stamp].map(u64::from_be_bytes);
        format!("{salts:016x}-{:08x}-{stamp:016x}{SUFFIX}", self.frame)
    }

    /// The frame out of a file's name. None for the name of anything else.
    pub fn of_file_name(name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(SUFFIX)?.split('-');
        let mut number = |digits: usize| {
            let part = parts.next().filter(|part| part.len() == digits)?;
            let is_one = part.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_one.then(|| u64::from_str_radix(part, 16).ok()).flatten()
        };
        let (salts, frame, stamp) = (number(16)?, number(8)?, number(16)?);
        let frame = u32::try_from(frame).ok()?;
        let found = Self { salts: salts.to_be_bytes(), frame, stamp: stamp.to_be_bytes() };
        (found.file_name() == name).then_some(found)
    }
}

impl Mark {
    /// A mark of this name. The description may be empty.
    ///
    /// # Errors
    /// [`Error::Misuse`], which says what is wrong with one of them.
    pub fn new(name: &str, description: &str) -> Result<Self> {
        let misuse = |what: &'static str| Err(Error::misuse(Subject::Option("mark".into()), what));
        if !is_mark(name) {
            return misuse(
                "its name has 1 to 128 characters, and no control characters but line feed and tab",
            );
        }
        if description.chars().count() > MOST_DESCRIPTION_CHARACTERS || !is_readable(description) {
            return misuse(
                "its description has at most 255 characters, and no control characters but line feed and tab",
            );
        }
        Ok(Self { name: name.to_owned(), description: description.to_owned() })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is about; may be empty.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Seals it for the commit that ends with `frame` of `run` with this stamp.
    ///
    /// # Errors
    /// [`Error::Io`] if no nonce can be drawn.
    pub fn seal(
        &self,
        keys: &ContainerKeys,
        nonces: &mut dyn NonceSource,
        (run, stamp): (&Run, Stamp),
        frame: u32,
    ) -> Result<Vec<u8>> {
        let mut content = vec![0; FRAME_CLEAR_BYTES];
        for text in [&self.name, &self.description] {
            content.extend_from_slice(&(text.len() as u16).to_be_bytes());
            content.extend_from_slice(text.as_bytes());
        }
        content.resize(MARK_FILE_BYTES, 0);
        let mut sealed = vec![0; MARK_FILE_BYTES];
        seal_frame(keys, nonces, (run, stamp), frame, &content, &mut sealed)?;
        Ok(sealed)
    }

    /// Opens what [`Mark::seal`] made for this commit.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if it was made for another one, or is damaged.
    pub fn open(
        keys: &ContainerKeys,
        (run, stamp): (&Run, Stamp),
        frame: u32,
        sealed: &[u8],
    ) -> Result<Self> {
        let other = || Error::unauthentic(Subject::LogArchive, "a mark is of another commit");
        let mut clear = [0; FRAME_CLEAR_BYTES];
        clear[8..].copy_from_slice(&stamp.encode());
        if sealed.len() != MARK_FILE_BYTES || sealed[..FRAME_CLEAR_BYTES] != clear {
            return Err(other());
        }
        let mut content = vec![0; MARK_FILE_BYTES];
        open_frame(keys, run, frame, sealed, &mut content).map_err(|_| other())?;
        let (text, zeros) = Self::parse(&content[FRAME_CLEAR_BYTES..]).ok_or_else(|| {
            Error::corrupt(Subject::LogArchive, "the fields of a mark are malformed")
        })?;
        match zeros {
            true => Ok(text),
            false => Err(Error::corrupt(Subject::LogArchive, "a mark has more than its fields")),
        }
    }

    /// The mark, and whether there are zeros behind it.
    fn parse(content: &[u8]) -> Option<(Self, bool)> {
        let mut fields = Fields::new(content);
        let mut text = || {
            let bytes = usize::from(fields.u16()?);
            std::str::from_utf8(fields.take(bytes)?).ok()
        };
        let (name, description) = (text()?, text()?);
        let mark = Self::new(name, description).ok()?;
        Some((mark, fields.rest().iter().all(|byte| *byte == 0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::commitment;
    use crate::header::{DekRow, EncryptionState, Header};
    use crate::nonce::SystemNonces;
    use crate::secret::{Dek, Secret32};
    use crate::Algorithm;

    fn keys() -> ContainerKeys {
        let file_id = [9; 16];
        let dek = Dek::from_secret(Secret32::new(&mut [7; 32]));
        let row = DekRow {
            first_generation: 1,
            last_generation: u32::MAX,
            algorithm: Algorithm::Aes256,
            commitment: commitment(&dek, &file_id).unwrap(),
            plain: false,
            wrapped: None,
        };
        let header = Header {
            sequence: 1,
            file_id,
            page_size: 4096,
            state: EncryptionState::Encrypted,
            generation: 1,
            created: 0,
            scan: crate::scan::Scan::default(),
            flags: crate::flags::Flags::default(),
            second: None,
            deks: vec![row],
            protectors: vec![],
        };
        ContainerKeys::new(&header, &dek).unwrap()
    }

    fn run() -> Run {
        let mut header = [7; 24];
        header[8..16].copy_from_slice(&[0xa, 0xb, 0xc, 0xd, 1, 2, 3, 4]);
        Run::second(&header)
    }

    fn stamp() -> Stamp {
        Stamp { count: 3, mark_follows: true, ..Stamp::default() }
    }

    #[test]
    fn a_mark_opens_for_its_own_commit_alone_and_no_flip_of_it_is_missed() {
        let keys = keys();
        let mark = Mark::new("before deploy", "Änderung 4711").unwrap();
        let mut sealed = mark.seal(&keys, &mut SystemNonces, (&run(), stamp()), 9).unwrap();
        assert_eq!(sealed.len(), MARK_FILE_BYTES);
        assert!(!sealed.windows(6).any(|text| text == b"deploy"));
        assert_eq!(Mark::open(&keys, (&run(), stamp()), 9, &sealed).unwrap(), mark);
        assert!(Mark::open(&keys, (&run(), stamp()), 10, &sealed).is_err());
        let other = Stamp { count: 4, ..stamp() };
        assert!(Mark::open(&keys, (&run(), other), 9, &sealed).is_err());
        let of_other = Run::second(&[7; 24]);
        assert!(Mark::open(&keys, (&of_other, stamp()), 9, &sealed).is_err());
        assert!(Mark::open(&keys, (&run(), stamp()), 9, &sealed[1..]).is_err());
        for bit in 0..8 * sealed.len() {
            sealed[bit / 8] ^= 1 << (bit % 8);
            assert!(Mark::open(&keys, (&run(), stamp()), 9, &sealed).is_err(), "bit {bit}");
            sealed[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn names_say_which_frame_a_mark_is_of() {
        let marked = MarkedFrame::of(&run(), 0x1f, stamp());
        let name = marked.file_name();
        assert_eq!(name, "0a0b0c0d01020304-0000001f-0800000000000003.mark");
        assert_eq!(MarkedFrame::of_file_name(&name), Some(marked));
        for other in ["state", "00000001-00000001.frames", &name.to_uppercase(), &name[1..]] {
            assert_eq!(MarkedFrame::of_file_name(other), None, "{other}");
        }
        let more = name.replace(".mark", "-00.mark");
        assert_eq!(MarkedFrame::of_file_name(&more), None);
    }

    #[test]
    fn a_mark_is_text_that_a_terminal_can_show() {
        assert!(Mark::new(&"ä".repeat(128), &"😀".repeat(255)).is_ok());
        for (name, description) in [("", ""), ("a\u{1b}[2J", ""), ("a", "b\0")] {
            assert!(Mark::new(name, description).is_err());
        }
        assert!(Mark::new(&"a".repeat(129), "").is_err());
        assert!(Mark::new("a", &"b".repeat(256)).is_err());
    }
}

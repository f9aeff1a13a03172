//! The head of a spool segment: frames of one epoch, as they lay in the log.
//!
//! A frame is bound to its run of the log and its place there, and not to an epoch: what was lost and what came in its place open
//! alike. So the head says which frames these are.

use crate::error::{Error, Result, Subject};
use crate::fields::Fields;
use crate::flags::check_zeros;
use crate::keys::HeaderKey;
use crate::lsn::Lsn;
use crate::wal::HEADER_BYTES;

/// Bytes of a head. The frames follow.
pub const SEGMENT_HEAD_BYTES: usize = 512;

const MAGIC: &[u8; 8] = b"PELFRAM\0";
const VERSION: u32 = 1;
const FIELDS_END: usize = 132;
const MAC_AT: usize = SEGMENT_HEAD_BYTES - 32;

/// What a segment says of its frames. How many of them count is said by whatever goes on behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The file id of the database.
    pub file_id: [u8; 16],
    /// The recovery fork.
    pub fork: [u8; 16],
    /// The epoch.
    pub epoch: u32,
    /// The first frame.
    pub first: u32,
    /// The commit that it follows.
    pub behind: Lsn,
    /// The log's header as it is on disk.
    pub header: [u8; HEADER_BYTES],
    /// How many frames it has.
    pub count: u32,
    /// SHA-256 of the tails of all of them: which these are, of all that were ever at their places.
    pub tails: [u8; 32],
}

impl Segment {
    /// The name of the file, by which segments are found and ordered.
    pub fn file_name(&self) -> String {
        format!("{:08x}-{:08x}.frames", self.epoch, self.first)
    }

    /// Epoch and first frame out of a file's name. None for the name of anything else.
    pub fn of_file_name(name: &str) -> Option<(u32, u32)> {
        let (epoch, first) = name.strip_suffix(".frames")?.split_once('-')?;
        let number = |text: &str| {
            let is_one = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_one.then(|| u32::from_str_radix(text, 16).ok()).flatten()
        };
        Some((number(epoch)?, number(first)?))
    }

    /// The number behind `frame` of it.
    pub fn lsn(&self, frame: u32) -> Lsn {
        match frame < self.first {
            true => self.behind,
            false => Lsn::new(self.epoch, frame),
        }
    }

    /// Encodes the head.
    pub fn encode(&self, key: &HeaderKey) -> [u8; SEGMENT_HEAD_BYTES] {
        let mut out = Vec::with_capacity(SEGMENT_HEAD_BYTES);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.file_id);
        out.extend_from_slice(&self.fork);
        out.extend_from_slice(&self.epoch.to_be_bytes());
        out.extend_from_slice(&self.first.to_be_bytes());
        out.extend_from_slice(&self.behind.encode());
        out.extend_from_slice(&self.header);
        out.extend_from_slice(&self.count.to_be_bytes());
        out.extend_from_slice(&self.tails);
        let mut head = [0; SEGMENT_HEAD_BYTES];
        head[..out.len()].copy_from_slice(&out);
        let mac = key.sign(&[&head[..MAC_AT]]);
        head[MAC_AT..].copy_from_slice(&mac);
        head
    }

    /// Parses a head, which has to be authentic under one of the keys.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if it is not, [`Error::Unsupported`] if a newer version wrote it.
    pub fn parse<'a>(
        bytes: &[u8; SEGMENT_HEAD_BYTES],
        keys: impl IntoIterator<Item = &'a HeaderKey>,
    ) -> Result<Self> {
        let is_authentic =
            keys.into_iter().any(|key| key.verify(&[&bytes[..MAC_AT]], &bytes[MAC_AT..]));
        if !is_authentic || bytes[..8] != MAGIC[..] {
            return Err(Error::unauthentic(
                Subject::LogArchive,
                "a head of kept frames is not authentic",
            ));
        }
        let mut fields = Fields::new(&bytes[8..]);
        let version = fields.u32().unwrap_or(0);
        if version != VERSION {
            return Err(Error::unsupported(
                Subject::LogArchive,
                format!(
                    "version {version} of kept frames is not known to this version of pellucid"
                ),
            ));
        }
        check_zeros(bytes, [12..16, FIELDS_END..MAC_AT], || Subject::LogArchive)?;
        let mut read = || {
            fields.take(4)?;
            Some(Self {
                file_id: fields.array()?,
                fork: fields.array()?,
                epoch: fields.u32()?,
                first: fields.u32()?,
                behind: Lsn::decode(fields.array()?),
                header: fields.array()?,
                count: fields.u32()?,
                tails: fields.array()?,
            })
        };
        // Who holds an old key can make a head that says anything.
        let fits = |segment: &Self| segment.first.checked_add(segment.count).is_some();
        read()
            .filter(fits)
            .ok_or_else(|| Error::corrupt(Subject::LogArchive, "its fields are malformed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::{Dek, Secret32};

    #[test]
    fn a_head_reads_back_and_each_flip_of_it_is_seen() {
        let dek = Dek::from_secret(Secret32::new(&mut [7; 32]));
        let key = HeaderKey::derive(&dek, &[9; 16]).unwrap();
        let segment = Segment {
            file_id: [1; 16],
            fork: [2; 16],
            epoch: 0xab,
            first: 18,
            behind: Lsn::new(3, 4),
            header: [5; HEADER_BYTES],
            count: 7,
            tails: [6; 32],
        };
        let mut head = segment.encode(&key);
        assert_eq!(Segment::parse(&head, [&key]).unwrap(), segment);
        for bit in 0..8 * head.len() {
            head[bit / 8] ^= 1 << (bit % 8);
            assert!(Segment::parse(&head, [&key]).is_err(), "bit {bit}");
            head[bit / 8] ^= 1 << (bit % 8);
        }
        let beyond = Segment { first: u32::MAX, ..segment };
        let refused = Segment::parse(&beyond.encode(&key), [&key]).unwrap_err();
        assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
        assert_eq!(segment.file_name(), "000000ab-00000012.frames");
        assert_eq!(Segment::of_file_name(&segment.file_name()), Some((0xab, 18)));
        for name in
            ["state", "0-1.frames", "000000ab-+0000012.frames", "000000ab-00000012.frames.x"]
        {
            assert_eq!(Segment::of_file_name(name), None);
        }
    }
}

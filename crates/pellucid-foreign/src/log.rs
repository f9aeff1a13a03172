//! The committed frames of a write-ahead log (walformat.html, 2 to 4).
//!
//! Checksums are over what lies on disk, which is ciphertext: both programs encrypt a page before SQLite checksums its frame.
//! A torn tail is no damage: a crash leaves one. A damaged frame with commits behind it is: SQLite would drop those commits
//! without a word.

/// Bytes of the log's header.
pub const HEADER_BYTES: usize = 32;
/// Bytes of a frame's header.
pub const FRAME_HEADER_BYTES: usize = 24;

const MAGIC: u32 = 0x377f_0682;
const VERSION: u32 = 3_007_000;

/// Why a log cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The header is damaged, and commits lie behind it.
    Header,
    /// This frame, counted from 1, is damaged, and commits lie behind it.
    Frame(u64),
    /// The log is of pages of another size.
    PageSize(u32),
}

/// A frame to look at.
#[derive(Debug, Clone, Copy)]
struct Frame {
    page: u32,
    /// Pages of the database after a commit; 0 without one.
    commit: u32,
    salt: [u8; 8],
    checksum: (u32, u32),
    computed_after: (u32, u32),
}

/// Reads a log frame by frame, in order. The caller reads the bytes.
#[derive(Debug)]
pub struct Log {
    big_endian: bool,
    salt: [u8; 8],
    /// The checksum so far: of the last good frame.
    checksum: (u32, u32),
    /// Stored by the frame before, whether it was good or not.
    stored: (u32, u32),
    frames: u64,
    /// The first frame that is not good.
    broken: Option<u64>,
    damage: Option<Damage>,
    /// Since the last commit: page and frame.
    pending: Vec<(u32, u64)>,
}

/// What a commit brings: each page with the number of its frame, counted from 1, and the pages of the database.
#[derive(Debug, PartialEq, Eq)]
pub struct Commit {
    /// Page and frame.
    pub pages: Vec<(u32, u64)>,
    /// Pages of the database.
    pub size: u32,
}

impl Log {
    /// Begins with the header. `None` if nothing of it is a log's: SQLite does not look at such a file.
    ///
    /// # Errors
    /// [`Damage::PageSize`].
    pub fn begin(header: &[u8; HEADER_BYTES], page_bytes: u32) -> Result<Option<Self>, Damage> {
        let magic = be(header, 0);
        if magic & !1 != MAGIC {
            return Ok(None);
        }
        let big_endian = magic & 1 == 1;
        let checksum = sum(big_endian, (0, 0), &header[..24]);
        let is_header_good =
            checksum == (be(header, 24), be(header, 28)) && be(header, 4) == VERSION;
        let size = be(header, 8);
        if is_header_good && size != page_bytes {
            return Err(Damage::PageSize(size));
        }
        let mut salt = [0; 8];
        salt.copy_from_slice(&header[16..24]);
        Ok(Some(Self {
            big_endian,
            salt,
            checksum,
            stored: (be(header, 24), be(header, 28)),
            frames: 0,
            broken: (!is_header_good).then_some(0),
            damage: None,
            pending: Vec::new(),
        }))
    }

    /// Takes the next frame: its header and its page. Returns what is committed with it.
    pub fn next(&mut self, header: &[u8; FRAME_HEADER_BYTES], page: &[u8]) -> Option<Commit> {
        self.frames += 1;
        let from = if self.broken.is_some() { self.stored } else { self.checksum };
        let frame = self.parse(from, header, page);
        self.stored = frame.checksum;
        if self.broken == Some(0) && self.frames == 1 {
            // The header's own salts may be what is damaged.
            self.salt = frame.salt;
        }
        let is_good =
            frame.salt == self.salt && frame.page > 0 && frame.checksum == frame.computed_after;
        match (self.broken, is_good) {
            (None, true) => {
                self.checksum = frame.checksum;
                self.pending.push((frame.page, self.frames));
                if frame.commit == 0 {
                    return None;
                }
                let pages = std::mem::take(&mut self.pending);
                return Some(Commit { pages, size: frame.commit });
            }
            (None, false) => self.broken = Some(self.frames),
            // Behind the damage, and chained to the frame before it: it was written after that.
            (Some(at), true) if frame.commit > 0 && self.damage.is_none() => {
                self.damage = Some(if at == 0 { Damage::Header } else { Damage::Frame(at) });
            }
            _ => {}
        }
        None
    }

    fn parse(&self, from: (u32, u32), header: &[u8; FRAME_HEADER_BYTES], page: &[u8]) -> Frame {
        let mut salt = [0; 8];
        salt.copy_from_slice(&header[8..16]);
        let computed = sum(self.big_endian, from, &header[..8]);
        Frame {
            page: be(header, 0),
            commit: be(header, 4),
            salt,
            checksum: (be(header, 16), be(header, 20)),
            computed_after: sum(self.big_endian, computed, page),
        }
    }

    /// Ends the log.
    ///
    /// # Errors
    /// [`Damage`] if commits lie behind a damaged place.
    pub fn end(self) -> Result<(), Damage> {
        self.damage.map_or(Ok(()), Err)
    }
}

fn be(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// The checksum of a log (walformat.html, 4.2).
fn sum(big_endian: bool, (mut one, mut two): (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let word = |four: &[u8]| {
        let four = [four[0], four[1], four[2], four[3]];
        if big_endian {
            u32::from_be_bytes(four)
        } else {
            u32::from_le_bytes(four)
        }
    };
    for pair in bytes.chunks_exact(8) {
        one = one.wrapping_add(word(&pair[..4])).wrapping_add(two);
        two = two.wrapping_add(word(&pair[4..])).wrapping_add(one);
    }
    (one, two)
}

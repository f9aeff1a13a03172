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

impl Frame {
    fn is_summed(&self) -> bool {
        self.checksum == self.computed_after
    }
}

/// Reads a log frame by frame, in order. The caller reads the bytes.
#[derive(Debug)]
pub struct Log {
    big_endian: bool,
    salt: [u8; 8],
    /// The checksum so far: of the last good frame.
    checksum: (u32, u32),
    /// Where the checksum of the next frame may begin once one is not good: with what that stores, or, where that is what is
    /// damaged, with what it should.
    behind: [(u32, u32); 2],
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
    /// Begins with the header. SQLite does not look at a file whose header is not good; here its frames say whether it was a log
    /// with commits.
    ///
    /// # Errors
    /// [`Damage::PageSize`].
    pub fn begin(header: &[u8; HEADER_BYTES], page_bytes: u32) -> Result<Self, Damage> {
        let magic = be(header, 0);
        let big_endian = magic & 1 == 1;
        let checksum = sum(big_endian, (0, 0), &header[..24]);
        let is_header_good = magic & !1 == MAGIC
            && checksum == (be(header, 24), be(header, 28))
            && be(header, 4) == VERSION;
        let size = be(header, 8);
        if is_header_good && size != page_bytes {
            return Err(Damage::PageSize(size));
        }
        let mut salt = [0; 8];
        salt.copy_from_slice(&header[16..24]);
        Ok(Self {
            big_endian,
            salt,
            checksum,
            behind: [(be(header, 24), be(header, 28)), checksum],
            frames: 0,
            broken: (!is_header_good).then_some(0),
            damage: None,
            pending: Vec::new(),
        })
    }

    /// Takes the next frame: its header and its page. Returns what is committed with it.
    pub fn next(&mut self, header: &[u8; FRAME_HEADER_BYTES], page: &[u8]) -> Option<Commit> {
        self.frames += 1;
        let from = if self.broken.is_some() { self.behind[0] } else { self.checksum };
        let mut frame = self.parse(from, header, page);
        if self.broken.is_some() && !frame.is_summed() {
            frame = self.parse(self.behind[1], header, page);
        }
        if self.broken == Some(0) && !frame.is_summed() {
            // The order of bytes is in the header as well.
            self.big_endian = !self.big_endian;
            for from in self.behind {
                frame = self.parse(from, header, page);
                if frame.is_summed() {
                    break;
                }
            }
        }
        self.behind = [frame.checksum, frame.computed_after];
        if self.broken == Some(0) && self.frames == 1 {
            // The header's own salts may be what is damaged.
            self.salt = frame.salt;
        }
        let is_good = frame.salt == self.salt && frame.page > 0 && frame.is_summed();
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

    /// Whether a frame was not good: nothing behind it is committed.
    pub fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Passes over `frames` frames of zeros.
    pub fn skip(&mut self, frames: u64) {
        self.frames += frames;
        self.behind = [(0, 0); 2];
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

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 512;

    /// A log whose frames are `(page, size after the commit or 0)`.
    fn log(big_endian: bool, frames: &[(u32, u32)]) -> Vec<u8> {
        let mut log = Vec::new();
        for number in [MAGIC | u32::from(big_endian), VERSION, PAGE as u32, 1, 77, 78] {
            log.extend_from_slice(&number.to_be_bytes());
        }
        let mut at = sum(big_endian, (0, 0), &log);
        let put = |log: &mut Vec<u8>, (one, two): (u32, u32)| {
            log.extend_from_slice(&one.to_be_bytes());
            log.extend_from_slice(&two.to_be_bytes());
        };
        put(&mut log, at);
        for (number, (page, commit)) in frames.iter().enumerate() {
            let head = [page.to_be_bytes(), commit.to_be_bytes()].concat();
            let content = vec![number as u8 ^ 0x5a; PAGE];
            at = sum(big_endian, sum(big_endian, at, &head), &content);
            log.extend_from_slice(&head);
            put(&mut log, (77, 78));
            put(&mut log, at);
            log.extend_from_slice(&content);
        }
        log
    }

    /// The commits, and how the log ends.
    fn read(log: &[u8]) -> (Vec<Commit>, Result<(), Damage>) {
        let mut commits = Vec::new();
        let header = log.first_chunk().unwrap();
        let mut reader = match Log::begin(header, PAGE as u32) {
            Ok(reader) => reader,
            Err(damage) => return (commits, Err(damage)),
        };
        for frame in log[HEADER_BYTES..].chunks_exact(FRAME_HEADER_BYTES + PAGE) {
            commits.extend(reader.next(frame.first_chunk().unwrap(), &frame[FRAME_HEADER_BYTES..]));
        }
        (commits, reader.end())
    }

    const FRAMES: [(u32, u32); 6] = [(1, 0), (3, 3), (2, 4), (4, 0), (1, 4), (5, 0)];

    #[test]
    fn commits_have_the_frames_before_them_and_no_others() {
        for big_endian in [false, true] {
            let (commits, end) = read(&log(big_endian, &FRAMES));
            assert_eq!(end, Ok(()));
            let of = |pages: &[(u32, u64)], size| Commit { pages: pages.to_vec(), size };
            assert_eq!(
                commits,
                [of(&[(1, 1), (3, 2)], 3), of(&[(2, 3)], 4), of(&[(4, 4), (1, 5)], 4)]
            );
        }
    }

    /// Every byte of it, but those of the header that say nothing: the number of the checkpoint is in its checksum as well.
    #[test]
    fn a_changed_byte_is_damage_where_commits_lie_behind_it_and_a_tail_where_none_do() {
        let frame = FRAME_HEADER_BYTES + PAGE;
        let logs = [false, true].map(|big_endian| log(big_endian, &FRAMES));
        let flips = logs.iter().flat_map(|good| (0..good.len()).map(move |at| (good, at)));
        for (good, at) in flips {
            let mut changed = good.clone();
            changed[at] ^= 1;
            let (commits, end) = read(&changed);
            let number = at.checked_sub(HEADER_BYTES).map(|at| at / frame);
            match number {
                None => assert_eq!(end, Err(Damage::Header), "{at}"),
                // The commit of frame 5 is behind frames 1 to 4.
                Some(index @ 0..=3) => {
                    assert_eq!(end, Err(Damage::Frame(index as u64 + 1)), "{at}");
                }
                Some(4) => assert_eq!((commits.len(), end), (2, Ok(())), "{at}"),
                Some(_) => assert_eq!((commits.len(), end), (3, Ok(())), "{at}"),
            }
        }
    }

    #[test]
    fn frames_of_an_older_log_behind_the_new_one_are_none_of_it() {
        let (old, new) = (log(false, &FRAMES), log(false, &FRAMES[..2]));
        let mut older = old.clone();
        // Another salt: the log was begun anew.
        for frame in older[HEADER_BYTES..].chunks_exact_mut(FRAME_HEADER_BYTES + PAGE) {
            frame[8] ^= 1;
        }
        let joined = [&new[..], &older[new.len()..]].concat();
        let (commits, end) = read(&joined);
        assert_eq!((commits.len(), end), (1, Ok(())));
        assert_eq!(read(&[0; 2000]).1, Ok(()), "no log at all");
        let mut other = old;
        other[8..12].copy_from_slice(&1024u32.to_be_bytes());
        let again = sum(false, (0, 0), &other[..24]);
        other[24..28].copy_from_slice(&again.0.to_be_bytes());
        other[28..32].copy_from_slice(&again.1.to_be_bytes());
        assert_eq!(read(&other).1, Err(Damage::PageSize(1024)));
    }
}

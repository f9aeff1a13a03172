//! The wal-index as this connection has it mapped, to look up the page that SQLite takes a frame
//! for.
//!
//! The wal-index is a plain file, `-shm`. Any process that can write the storage can change it, and
//! SQLite believes it. The shim compares it with a frame's tag and never believes it instead of the
//! tag (SQLite's "WAL-mode file format", 2). An index in SQLite's own memory (an exclusive locking
//! mode from the start) is not here.

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a region.
pub const REGION_BYTES: usize = 32 * 1024;
/// Words before the first region's page numbers.
const HEADER_WORDS: usize = 34;
/// The header's word with the page size in its second half; the next word is the number of frames
/// that count.
const SIZE_WORD: usize = 3;
const FRAMES_WORD: usize = 4;
/// The word with the size of the database in pages.
const PAGES_WORD: usize = 5;
/// The first of the header's two words with the salts of the log.
const SALTS_WORD: usize = 8;
/// Words of one of the header's two copies, and the one that says in its first byte whether the header was made.
const COPY_WORDS: usize = 12;
const MADE_WORD: usize = 3;
/// The number of frames that are in the database file, `nBackfill`, behind both copies of the header.
const BROUGHT_IN_WORD: usize = 2 * COPY_WORDS;
/// The number that a checkpoint aims at, `nBackfillAttempted`, behind five read marks and two words of locks.
const TO_BRING_IN_WORD: usize = BROUGHT_IN_WORD + 8;
/// Page numbers in a region. In the first region the header takes the place of some.
const PAGES: u32 = 4096;
const PAGES_FIRST: u32 = PAGES - HEADER_WORDS as u32;

/// How long a writer may take between the two copies of the header, once its processor is taken from it there. Only one that was killed
/// takes longer: the next connection that reads makes the index anew.
const PATIENCE: Duration = Duration::from_secs(2);

/// The start of each region that SQLite has mapped, by number; null if it has not.
#[derive(Debug, Default)]
pub struct WalIndex(RefCell<Vec<*const AtomicU32>>);

impl WalIndex {
    /// Notes that SQLite has mapped a region.
    ///
    /// # Safety
    /// From `start` on [`REGION_BYTES`] can be read, until [`WalIndex::unmap`]; `start` is a multiple of four, as it is
    /// for SQLite, which has words there.
    pub unsafe fn map(&self, region: usize, start: *const c_void) {
        let mut regions = self.0.borrow_mut();
        if regions.len() <= region {
            regions.resize(region + 1, std::ptr::null());
        }
        regions[region] = start.cast();
    }

    /// Forgets the regions, because SQLite unmaps the index.
    pub fn unmap(&self) {
        self.0.borrow_mut().clear();
    }

    /// Whether SQLite uses an index that other processes can change.
    pub fn is_mapped(&self) -> bool {
        self.0.borrow().first().is_some_and(|first| !first.is_null())
    }

    /// The page of `frame` according to the index. `None` if that part of the index is not mapped.
    pub fn page_of(&self, frame: u32) -> Option<u32> {
        match frame.checked_sub(PAGES_FIRST + 1) {
            None => self.word(0, HEADER_WORDS + frame.checked_sub(1)? as usize),
            Some(behind) => self.word(1 + (behind / PAGES) as usize, (behind % PAGES) as usize),
        }
    }

    /// The pages of the frames behind `brought_in` up to `frames`, as far as the index is mapped: whoever changes its numbers makes
    /// nobody go through more.
    pub fn pages_behind(&self, brought_in: u32, frames: u32) -> impl Iterator<Item = u32> + '_ {
        (brought_in.saturating_add(1)..=frames).map_while(|frame| self.page_of(frame))
    }

    /// The page size of the log in bytes according to the index. `None` if the index counts no
    /// frame.
    pub fn page_bytes(&self) -> Option<usize> {
        let bytes = self.word(0, SIZE_WORD)?.to_ne_bytes();
        let stated = usize::from(u16::from_ne_bytes([bytes[2], bytes[3]]));
        let blank = stated == 0 && self.word(0, FRAMES_WORD)? == 0;
        // Decoded as in `sqlite3WalReadFrame`.
        (!blank).then_some((stated & 0xfe00) + ((stated & 1) << 16))
    }

    /// The last frame that counts according to the index. `None` if the index is not mapped.
    pub fn frames(&self) -> Option<u32> {
        self.word(0, FRAMES_WORD)
    }

    /// The number of pages of the database according to the index, 0 if it counts no frame yet. `None` if the index is not mapped.
    pub fn pages(&self) -> Option<u32> {
        self.word(0, PAGES_WORD)
    }

    /// The salts of the log according to the index, as the log's header has them. `None` if the index is not mapped.
    pub fn salts(&self) -> Option<[u8; 8]> {
        let words = [self.word(0, SALTS_WORD)?, self.word(0, SALTS_WORD + 1)?];
        let mut salts = [0; 8];
        for (part, word) in salts.chunks_exact_mut(4).zip(words) {
            part.copy_from_slice(&word.to_ne_bytes());
        }
        Some(salts)
    }

    /// Whether SQLite has written the header since [`WalIndex::take_back`]: a recovery that fails writes none.
    pub fn is_made(&self) -> bool {
        let made = |copy: usize| {
            let word = self.word(0, copy * COPY_WORDS + MADE_WORD);
            word.is_some_and(|word| word.to_ne_bytes()[0] == 1)
        };
        made(0) && made(1)
    }

    /// The salts of the log and the number of frames that count, out of one whole header. None if the index is not mapped, is being
    /// made, or keeps changing.
    pub fn run(&self) -> Option<([u8; 8], u32)> {
        let copy = self.whole(PATIENCE)?;
        if copy[MADE_WORD].to_ne_bytes()[0] != 1 {
            return None;
        }
        let mut salts = [0; 8];
        for (part, word) in salts.chunks_exact_mut(4).zip(&copy[SALTS_WORD..]) {
            part.copy_from_slice(&word.to_ne_bytes());
        }
        Some((salts, copy[FRAMES_WORD]))
    }

    /// The number of frames that SQLite counts, and the number of pages behind them, once both copies of the header say it (SQLite's
    /// WAL-mode file format, 2.1). `None` if the index is not mapped, or keeps changing. A checkpoint would return it too, but SQLite
    /// refuses every checkpoint to a connection in a transaction, even one that only counts.
    pub fn counted(&self) -> Option<(u32, u32)> {
        self.whole(Duration::ZERO).map(|copy| (copy[FRAMES_WORD], copy[PAGES_WORD]))
    }

    /// The header, once both of its copies are the same. They differ for a moment only, but a writer may lose its processor in that
    /// moment: `patience` is how long to wait for it.
    fn whole(&self, patience: Duration) -> Option<[u32; COPY_WORDS]> {
        let mut since = None;
        for round in 0_u32.. {
            let copy = |number: usize| -> Option<[u32; COPY_WORDS]> {
                let mut copy = [0; COPY_WORDS];
                for (at, word) in copy.iter_mut().enumerate() {
                    *word = self.word(0, number * COPY_WORDS + at)?;
                }
                std::sync::atomic::fence(Ordering::SeqCst);
                Some(copy)
            };
            let (first, second) = (copy(0)?, copy(1)?);
            if first == second {
                return Some(first);
            }
            if round < 1000 {
                std::thread::yield_now();
            } else if since.get_or_insert_with(Instant::now).elapsed() < patience {
                std::thread::sleep(Duration::from_millis(1));
            } else {
                break;
            }
        }
        None
    }

    /// Takes a recovery back: neither copy of the header says that it was made (`walIndexTryHdr`). The rest stays, for readers who
    /// go on by what they have read before.
    /// Called under the recovery lock, under which SQLite writes the header.
    pub fn take_back(&self) {
        let regions = self.0.borrow();
        let Some(start) = regions.first().copied().filter(|start| !start.is_null()) else { return };
        for at in [MADE_WORD, COPY_WORDS + MADE_WORD] {
            // SAFETY: the region is mapped (`map`), and SQLite has written to it under the lock that this connection holds.
            let word = unsafe { &*start.add(at) };
            let mut bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            bytes[0] = 0;
            word.store(u32::from_ne_bytes(bytes), Ordering::Relaxed);
        }
    }

    /// The number of frames that checkpoints have brought into the database. `None` if the index is not mapped.
    pub fn brought_in(&self) -> Option<u32> {
        self.word(0, BROUGHT_IN_WORD)
    }

    /// The number of frames that the present checkpoint is going to bring in. `None` if the index is not mapped.
    pub fn to_bring_in(&self) -> Option<u32> {
        self.word(0, TO_BRING_IN_WORD)
    }

    fn word(&self, region: usize, at: usize) -> Option<u32> {
        let regions = self.0.borrow();
        let start = regions.get(region).copied().filter(|start| !start.is_null())?;
        debug_assert!(at < REGION_BYTES / 4);
        // SAFETY: the region is mapped (`map`), and the word lies in it. Others write to it at any time: it is read once,
        // as an atomic, and decides nothing but whether to refuse.
        Some(unsafe { (*start.add(at)).load(Ordering::Relaxed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_has_its_word() {
        let regions: Vec<Vec<u32>> =
            (0..3).map(|n| (0..8192).map(|at| n * 10_000 + at).collect()).collect();
        let index = WalIndex::default();
        assert_eq!((index.is_mapped(), index.page_of(1), index.page_bytes()), (false, None, None));
        for (number, region) in regions.iter().enumerate().filter(|(number, _)| *number != 1) {
            // SAFETY: the words live until the index is unmapped.
            unsafe { index.map(number, region.as_ptr().cast()) };
        }
        let found =
            [0, 1, 4062, 4063, 8158, 8159, 12_254, 12_255].map(|frame| index.page_of(frame));
        let words = [None, Some(34), Some(4095), None, None, Some(20_000), Some(24_095), None];
        assert_eq!(found, words);
        let behind = |brought_in, frames| index.pages_behind(brought_in, frames).count();
        assert_eq!((behind(0, 7), behind(7, 7), behind(4000, u32::MAX)), (7, 0, 62));
        assert_eq!((behind(9, 7), behind(u32::MAX, u32::MAX), behind(0, u32::MAX)), (0, 0, 4062));
        index.unmap();
        assert_eq!((index.is_mapped(), index.page_of(1)), (false, None));
    }

    /// A writer may lose its processor between the two copies.
    #[test]
    fn a_header_that_is_being_written_is_waited_for() {
        let words: Vec<AtomicU32> = (0..REGION_BYTES / 4).map(|_| AtomicU32::new(0)).collect();
        for copy in [0, COPY_WORDS] {
            words[copy + MADE_WORD].store(u32::from_ne_bytes([1, 0, 0, 0]), Ordering::Relaxed);
            words[copy + FRAMES_WORD].store(7, Ordering::Relaxed);
        }
        let index = WalIndex::default();
        // SAFETY: the words live until the index is unmapped.
        unsafe { index.map(0, words.as_ptr().cast()) };
        assert_eq!(index.run(), Some(([0; 8], 7)));
        words[COPY_WORDS + FRAMES_WORD].store(8, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                words[FRAMES_WORD].store(8, Ordering::Relaxed);
            });
            assert_eq!(index.run(), Some(([0; 8], 8)));
        });
        words[COPY_WORDS + FRAMES_WORD].store(9, Ordering::Relaxed);
        assert_eq!((index.counted(), index.run()), (None, None), "a writer that was killed there");
        index.unmap();
    }

    #[test]
    fn the_page_size_is_read_as_sqlite_reads_it() {
        let index = WalIndex::default();
        for (stated, frames, bytes) in [
            (0, 0, None),
            (0, 1, Some(0)),
            (1, 7, Some(65536)),
            (512, 0, Some(512)),
            (4096, 7, Some(4096)),
            (32768, 7, Some(32768)),
        ] {
            let mut header = [0u32; REGION_BYTES / 4];
            let size = u16::to_ne_bytes(stated);
            header[SIZE_WORD] = u32::from_ne_bytes([1, 0, size[0], size[1]]);
            header[FRAMES_WORD] = frames;
            // SAFETY: the words live until the index is unmapped.
            unsafe { index.map(0, header.as_ptr().cast()) };
            assert_eq!(index.page_bytes(), bytes);
            index.unmap();
        }
    }
}

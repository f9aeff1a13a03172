use std::cell::Cell;
use std::rc::Rc;

use super::*;

/// Goal: the store behaves as a plain file for any offset, length and truncation. Method: the
/// same seeded operations on a `Vec`, with room in memory for none of the blocks, for some and for all.
#[test]
fn behaves_as_a_plain_file() {
    for room in [0, 20, 1000] {
        behaves_with(Budget::of(room));
    }
}

fn behaves_with(budget: &'static Budget) {
    let store = TempStore::within(budget, Scratch::create().unwrap()).unwrap();
    let mut model: Vec<u8> = Vec::new();
    let mut seed = 0x5eed_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % below
    };
    for step in 0..20_000u32 {
        let offset = random(300_000);
        let length = random(9_000) as usize;
        match random(10) {
            0 => {
                store.truncate(offset).unwrap();
                model.resize(offset as usize, 0);
            }
            1..=5 => {
                let bytes: Vec<u8> = (0..length).map(|i| (i as u32 ^ step) as u8).collect();
                let end = offset as usize + length;
                if model.len() < end {
                    model.resize(end, 0);
                }
                model[offset as usize..end].copy_from_slice(&bytes);
                store.write(&bytes, offset).unwrap();
            }
            _ => {
                let mut read = vec![1; length];
                store.read(&mut read, offset).unwrap();
                let expected: Vec<u8> = (offset as usize..offset as usize + length)
                    .map(|at| model.get(at).copied().unwrap_or(0))
                    .collect();
                assert!(read == expected, "seed 0x5eed, step {step}");
            }
        }
        assert_eq!(store.size(), model.len() as u64, "step {step}");
    }
    drop(store);
    assert_eq!(budget.used(), 0);
}

/// A store that counts its calls, and fails when it is told to.
#[derive(Clone, Default)]
struct Counted(Rc<Calls>);

#[derive(Default)]
struct Calls {
    bytes: RefCell<Vec<u8>>,
    reads: Cell<usize>,
    writes: Cell<usize>,
    full: Cell<bool>,
}

impl Store for Counted {
    fn read_units(&self, units: &mut [u8], offset: u64) -> Outcome<bool> {
        self.0.reads.set(self.0.reads.get() + 1);
        let (bytes, at) = (self.0.bytes.borrow(), offset as usize);
        let Some(there) = bytes.get(at..at + units.len()) else { return Ok(false) };
        units.copy_from_slice(there);
        Ok(true)
    }

    fn write_units(&self, units: &[u8], offset: u64) -> Outcome<()> {
        if self.0.full.get() {
            return Err(Code(ffi::FULL));
        }
        self.0.writes.set(self.0.writes.get() + 1);
        let (mut bytes, at) = (self.0.bytes.borrow_mut(), offset as usize);
        let end = bytes.len().max(at + units.len());
        bytes.resize(end, 0);
        bytes[at..at + units.len()].copy_from_slice(units);
        Ok(())
    }

    fn cut(&self, size: u64) -> Outcome<()> {
        self.0.bytes.borrow_mut().truncate(size as usize);
        Ok(())
    }
}

const BLOCKS: u64 = 150;

fn content(block: u64) -> Vec<u8> {
    (0..BLOCK_BYTES as u64).map(|at| (at * 7 + block) as u8).collect()
}

fn offset(block: u64) -> u64 {
    block * BLOCK_BYTES as u64
}

/// Goal: whole blocks in their order cost a call for each fifteen of them, written and read; a block that is
/// written again is read as it was written last, whether it was held, read ahead or neither.
#[test]
fn blocks_in_their_order_are_written_and_read_together() {
    let calls = Counted::default();
    let store = TempStore::within(Budget::of(0), calls.clone()).unwrap();
    for block in 0..BLOCKS {
        store.write(&content(block), offset(block)).unwrap();
    }
    assert_eq!(calls.0.writes.get(), (BLOCKS / 15 - 1) as usize, "the last run is still held");
    let mut read = vec![0; BLOCK_BYTES];
    for block in 0..BLOCKS {
        store.read(&mut read, offset(block)).unwrap();
        assert!(read == content(block), "block {block}");
        if block % 20 == 10 {
            // Two that were read ahead, and one held.
            for again in [block, block + 1, BLOCKS - 1] {
                store.write(&content(again + 1000), offset(again)).unwrap();
                store.read(&mut read, offset(again)).unwrap();
                assert!(read == content(again + 1000), "block {again}");
                store.write(&content(again), offset(again)).unwrap();
            }
        }
    }
    assert!(calls.0.reads.get() < 50, "{} calls", calls.0.reads.get());
}

/// Goal: what has room in memory costs the store no call, all files share the room, and whoever ends or is cut gives it back.
#[test]
fn files_share_the_room_in_memory() {
    let budget = Budget::of(300);
    let (first, second) = (Counted::default(), Counted::default());
    let store = TempStore::within(budget, first.clone()).unwrap();
    let other = TempStore::within(budget, second.clone()).unwrap();
    for block in 0..BLOCKS {
        store.write(&content(block), offset(block)).unwrap();
        other.write(&content(block + 7), offset(block)).unwrap();
    }
    assert_eq!((budget.used(), first.0.writes.get(), second.0.writes.get()), (300, 0, 0));
    // Both are full: what is behind goes to the store.
    for block in BLOCKS..2 * BLOCKS {
        store.write(&content(block), offset(block)).unwrap();
    }
    assert!(first.0.writes.get() >= BLOCKS as usize / 15 - 1);
    let mut read = vec![0; BLOCK_BYTES];
    for block in (0..2 * BLOCKS).rev() {
        store.read(&mut read, offset(block)).unwrap();
        assert!(read == content(block), "block {block}");
    }
    drop(other);
    assert_eq!(budget.used(), BLOCKS as usize);
    // A block that was sealed stays where it is, also if there is room now.
    store.write(&content(1), offset(BLOCKS)).unwrap();
    assert_eq!(budget.used(), BLOCKS as usize);
    store.truncate(offset(100) + 5).unwrap();
    assert_eq!(budget.used(), 101);
    store.write(&content(9)[..3], offset(120)).unwrap();
    assert_eq!(budget.used(), 102);
    for (block, expected) in [(99, content(99)), (110, vec![0; BLOCK_BYTES])] {
        store.read(&mut read, offset(block)).unwrap();
        assert!(read == expected, "block {block}");
    }
    store.read(&mut read, offset(100)).unwrap();
    assert!(read[..5] == content(100)[..5] && read[5..].iter().all(|byte| *byte == 0));
    store.truncate(0).unwrap();
    assert_eq!(budget.used(), 0);
    store.write(&content(3), offset(0)).unwrap();
    store.read(&mut read, offset(0)).unwrap();
    assert!(read == content(3));
}

/// Goal: an error of the store is told, and nothing that was written before is lost by it.
#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    let calls = Counted::default();
    let store = TempStore::within(Budget::of(0), calls.clone()).unwrap();
    store.write(&content(40)[..99], offset(40) + 1).unwrap();
    calls.0.full.set(true);
    let written =
        (0..BLOCKS).take_while(|block| match store.write(&content(*block), offset(*block)) {
            Ok(()) => true,
            Err(code) => {
                assert_eq!(code, Code(ffi::FULL));
                false
            }
        });
    let written = written.count() as u64;
    assert_eq!(written, 15);
    let mut read = vec![0; BLOCK_BYTES];
    for block in 0..written {
        store.read(&mut read, offset(block)).unwrap();
        assert!(read == content(block), "block {block}");
    }
    calls.0.full.set(false);
    store.write(&content(written), offset(written)).unwrap();
    for (block, from) in [(0, 0), (written, 0), (40, 1)] {
        store.read(&mut read[..99], offset(block) + from).unwrap();
        assert!(read[..99] == content(block)[..99], "block {block}");
    }
    assert_eq!(store.size(), offset(40) + 100);
}

/// Goal: a block that does not open is told, and read anew when it is asked for again.
#[test]
fn a_block_that_was_read_wrong_is_read_again() {
    let calls = Counted::default();
    let store = TempStore::within(Budget::of(0), calls.clone()).unwrap();
    for block in 0..BLOCKS {
        store.write(&content(block), offset(block)).unwrap();
    }
    let mut read = vec![0; BLOCK_BYTES];
    let flip = || calls.0.bytes.borrow_mut()[30 * UNIT_BYTES + 5] ^= 1;
    flip();
    for block in 0..30 {
        store.read(&mut read, offset(block)).unwrap();
    }
    assert_eq!(store.read(&mut read, offset(30)), Err(Code(ffi::IOERR_DATA)));
    assert!(read.iter().all(|byte| *byte == 0));
    flip();
    store.read(&mut read, offset(30)).unwrap();
    assert!(read == content(30));
}

thread_local! {
    static NOW: Cell<Algorithm> = const { Cell::new(Algorithm::Aegis256) };
}

/// Goal: from the moment that a database under AES is open nothing more goes under AEGIS, also in a file that was begun
/// under it, and its older blocks are read. Method: the tails that reach the store.
#[test]
fn a_file_that_was_begun_under_aegis_goes_on_under_aes() {
    let calls = Counted::default();
    let mut store = TempStore::within(Budget::of(0), calls.clone()).unwrap();
    store.algorithm = || NOW.get();
    let generation = |block: u64| {
        let bytes = calls.0.bytes.borrow();
        let unit = &bytes[(block as usize) * UNIT_BYTES..][..UNIT_BYTES];
        pellucid::unit::generation(unit).unwrap()
    };
    for block in 0..60 {
        store.write(&content(block), offset(block)).unwrap();
    }
    // Kept opened, and sealed when it has to make room.
    store.write(&[1, 2, 3], offset(7) + 5).unwrap();
    let before = calls.0.bytes.borrow().len() / UNIT_BYTES;
    assert!(before > 40 && (0..before as u64).all(|block| generation(block) == 2));
    NOW.set(Algorithm::Aes256);
    for block in [3, 4, 5].into_iter().chain(60..120) {
        store.write(&content(block + 1000), offset(block)).unwrap();
    }
    for block in 8..8 + KEPT_BLOCKS as u64 + 1 {
        store.write(&[9], offset(block)).unwrap();
    }
    store.flush(&mut store.inner.borrow_mut()).unwrap();
    assert!([3, 4, 5, 7, 8].into_iter().chain(60..120).all(|block| generation(block) == 1));
    assert_eq!((generation(0), generation(40)), (2, 2));
    let mut read = vec![0; BLOCK_BYTES];
    for block in 0..120 {
        let changed = matches!(block, 3..=5 | 60..);
        let mut expected = content(if changed { block + 1000 } else { block });
        match block {
            7 => expected[5..8].copy_from_slice(&[1, 2, 3]),
            8..25 => expected[0] = 9,
            _ => {}
        }
        store.read(&mut read, offset(block)).unwrap();
        assert!(read == expected, "block {block}");
    }
}

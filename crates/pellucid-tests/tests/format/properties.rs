//! For every page size and algorithm: what is sealed opens to the same bytes, and nowhere else.
//!
//! Content is random; the seed is printed.

use pellucid::journal::{self, JournalHeader};
use pellucid::keys::{ContainerKeys, TemporaryKey};
use pellucid::nonce::SystemNonces;
use pellucid::unit::{FileKind, Place, TAIL_BYTES};
use pellucid::wal::{self, Run, Stamp, Version};
use pellucid::{Algorithm, Error, Subject};
use pellucid_tests::container::{container, FILE_ID};
use pellucid_tests::random::Random;

const PAGE_SIZES: [usize; 8] = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];

fn each(mut test: impl FnMut(&ContainerKeys, usize, &mut Random)) {
    let mut random = Random::from_environment();
    for algorithm in Algorithm::ALL {
        let keys = container(algorithm, FILE_ID);
        for page_size in PAGE_SIZES {
            test(&keys, page_size, &mut random);
        }
    }
}

/// A page as SQLite has it: 32 zero bytes at the end.
fn page(random: &mut Random, page_size: usize) -> Vec<u8> {
    let mut page = random.bytes(page_size - TAIL_BYTES);
    page.resize(page_size, 0);
    page
}

fn refused(opened: pellucid::Result<()>, plain: &[u8], what: &str) {
    assert!(matches!(opened, Err(Error::Unauthentic { .. })), "{what}: {opened:?}");
    assert!(plain.iter().all(|byte| *byte == 0), "{what}: content of a refused unit");
}

/// Whether any 8 bytes of `content` stand at the same place in `sealed`.
fn leaks(content: &[u8], sealed: &[u8]) -> bool {
    content.windows(8).any(|window| sealed.windows(8).any(|found| found == window))
}

#[test]
fn a_page_opens_at_its_place_and_at_no_other() {
    let (other_file, other_key) = ([7; 16], container(Algorithm::Aes256, [7; 16]));
    each(|keys, page_size, random| {
        let number = random.draw() as u32 | 1;
        let place = Place::page(&FILE_ID, number);
        let plain = random.bytes(page_size - TAIL_BYTES);
        let (mut unit, mut opened) = (vec![0; page_size], vec![1; plain.len()]);
        keys.seal(FileKind::Database, &place, &mut SystemNonces, &plain, &mut unit).unwrap();
        let subject = || Subject::Page(number);
        keys.open(FileKind::Database, &place, &unit, &mut opened, subject).unwrap();
        assert_eq!(opened, plain);
        assert!(!leaks(&plain[..64], &unit));

        let mut salts = [0; 16];
        salts[..4].copy_from_slice(&number.to_be_bytes());
        let elsewhere = [
            (FileKind::Database, Place::page(&FILE_ID, number ^ 1), "another page"),
            (FileKind::Database, Place::page(&FILE_ID, number ^ (1 << 31)), "a far page"),
            (FileKind::Database, Place::page(&other_file, number), "another file"),
            (FileKind::Wal, place, "another kind of key"),
            (FileKind::Wal, Place::frame(&FILE_ID, number, &salts), "a frame"),
            (
                FileKind::Journal,
                Place::journal(&FILE_ID, &[0; 16], u64::from(number), 0),
                "a journal record",
            ),
        ];
        for (kind, place, what) in elsewhere {
            refused(keys.open(kind, &place, &unit, &mut opened, subject), &opened, what);
        }
        let kind = FileKind::Database;
        refused(other_key.open(kind, &place, &unit, &mut opened, subject), &opened, "another key");
        for _ in 0..16 {
            let bit = random.below(unit.len() * 8);
            unit[bit / 8] ^= 1 << (bit % 8);
            refused(keys.open(kind, &place, &unit, &mut opened, subject), &opened, "a flipped bit");
            unit[bit / 8] ^= 1 << (bit % 8);
        }
    });
}

#[test]
fn a_page_sealed_twice_never_looks_the_same() {
    each(|keys, page_size, random| {
        let place = Place::page(&FILE_ID, 2);
        let plain = random.bytes(page_size - TAIL_BYTES);
        let mut units = [vec![0; page_size], vec![0; page_size]];
        for unit in &mut units {
            keys.seal(FileKind::Database, &place, &mut SystemNonces, &plain, unit).unwrap();
        }
        assert!(!leaks(&units[0][..64], &units[1][..64]));
    });
}

#[test]
fn a_frame_comes_back_exactly_and_keeps_its_first_16_bytes_in_clear() {
    each(|keys, page_size, random| {
        let header: [u8; wal::HEADER_BYTES] = random.array();
        for version in [Version::First, Version::Second] {
            let run = Run::of(&header, version);
            let number = random.draw() as u32 | 1;
            let mut frame = random.bytes(wal::FRAME_HEADER_BYTES);
            frame.extend(page(random, page_size));
            let stamp = Stamp::of(&random.bytes(16));
            let mut sealed = vec![0; frame.len()];
            let place = (&run, stamp);
            wal::seal_frame(keys, &mut SystemNonces, place, number, &frame, &mut sealed).unwrap();
            assert_eq!(sealed[..8], frame[..8]);
            match version {
                Version::First => assert_eq!(sealed[8..16], frame[8..16]),
                Version::Second => {
                    assert_eq!(Stamp::of(&sealed), stamp);
                    frame[8..16].copy_from_slice(&header[16..24]);
                }
            }
            assert!(!leaks(&frame[16..96], &sealed), "checksum or content in clear");
            let mut opened = vec![1; frame.len()];
            wal::open_frame(keys, &run, number, &sealed, &mut opened).unwrap();
            assert_eq!(opened, frame);
            let tail = page_size + wal::FRAME_HEADER_BYTES - TAIL_BYTES;
            assert!(opened[tail..].iter().all(|b| *b == 0));

            let told = wal::open_frame(keys, &run, number ^ 1, &sealed, &mut opened);
            refused(told, &opened[16..], "another frame");
            for at in 0..16 {
                sealed[at] ^= 1;
                let told = wal::open_frame(keys, &run, number, &sealed, &mut opened);
                refused(told, &opened[16..], "a byte in clear");
                sealed[at] ^= 1;
            }
            for at in 16..wal::HEADER_BYTES {
                let mut other = header;
                other[at] ^= 1;
                let other = Run::of(&other, version);
                let told = wal::open_frame(keys, &other, number, &sealed, &mut opened);
                assert_eq!(told.is_ok(), version == Version::First, "byte {at} of another run");
            }
            let other = [Version::Second, Version::First][version as usize - 1];
            let run = Run::of(&header, other);
            let told = wal::open_frame(keys, &run, number, &sealed, &mut opened);
            refused(told, &opened[16..], "another version");
        }
    });
}

#[test]
fn a_record_comes_back_exactly_and_belongs_to_one_offset_and_journal() {
    each(|keys, page_size, random| {
        let (id, offset) = (random.array(), random.draw() >> 8);
        let mut record = random.bytes(4);
        record.extend(page(random, page_size));
        record.extend(random.bytes(4));
        assert_eq!(record.len(), journal::record_bytes(page_size));
        let mut sealed = vec![0; record.len()];
        let nonces = &mut SystemNonces;
        journal::seal_record(keys, nonces, &id, offset, &mut record.clone(), &mut sealed).unwrap();
        assert_eq!(sealed[..4], record[..4]);
        assert!(!leaks(&record[4..84], &sealed));
        let mut opened = vec![1; record.len()];
        journal::open_record(keys, &id, offset, &sealed, &mut opened).unwrap();
        assert_eq!(opened, record);
        assert!(opened[4 + page_size - TAIL_BYTES..4 + page_size].iter().all(|byte| *byte == 0));

        for (id, offset) in [(id, offset + 1), (random.array(), offset)] {
            let told = journal::open_record(keys, &id, offset, &sealed, &mut opened);
            refused(told, &opened[4..], "another offset or journal");
        }
        sealed[3] ^= 1;
        let told = journal::open_record(keys, &id, offset, &sealed, &mut opened);
        refused(told, &opened[4..], "another page");
    });
}

#[test]
fn a_journal_header_is_not_hot_to_sqlite_and_survives_one_flipped_bit() {
    each(|keys, _, random| {
        let header = JournalHeader { id: random.array(), fields: random.array() };
        let offset = random.draw() >> 8;
        let mut sector = header.seal(keys, &mut SystemNonces, offset).unwrap();
        assert_eq!(sector[0], 0, "SQLite would play it back");
        assert!(!leaks(&header.fields, &sector));
        assert_eq!(JournalHeader::open(keys, &sector, offset).unwrap(), (header.clone(), false));
        assert!(JournalHeader::open(keys, &sector, offset + 512).is_err());
        for _ in 0..16 {
            let bit = random.below(sector.len() * 8);
            sector[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(JournalHeader::open(keys, &sector, offset).unwrap().0, header);
            sector[bit / 8] ^= 1 << (bit % 8);
        }
    });
}

#[test]
fn a_temporary_block_opens_at_its_place_under_its_key() {
    let mut random = Random::from_environment();
    for algorithm in [Algorithm::Aes256, Algorithm::Aegis256] {
        let key = || TemporaryKey::random(algorithm).unwrap();
        let (key, other) = (key(), key());
        for _ in 0..64 {
            let block = random.draw() >> 8;
            let plain = random.bytes(4096);
            let (mut unit, mut opened) = (vec![0; 4096 + TAIL_BYTES], vec![1; 4096]);
            key.seal(algorithm, block, &mut SystemNonces, &plain, &mut unit).unwrap();
            key.open(block, &unit, &mut opened).unwrap();
            assert_eq!(opened, plain);
            refused(key.open(block + 1, &unit, &mut opened), &opened, "another block");
            refused(other.open(block, &unit, &mut opened), &opened, "another key");
        }
    }
    let key = TemporaryKey::random(Algorithm::Aes256).unwrap();
    let mut unit = [0; 40];
    for algorithm in [Algorithm::Aes128, Algorithm::Aes192, Algorithm::TripleDes3Key] {
        assert!(TemporaryKey::random(algorithm).is_err());
        assert!(key.seal(algorithm, 0, &mut SystemNonces, &[0; 8], &mut unit).is_err());
    }
}

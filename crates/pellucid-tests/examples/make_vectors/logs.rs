//! Vectors of whole logs, and of what a journal says at its end of the transaction's other databases.

use pellucid::memory_index::{object_name, record as record_of, Head, Place};
use pellucid::wal::{self, FRAME_HEADER_BYTES, HEADER_BYTES};
use pellucid::{Algorithm, Result};

use super::{case, container, flip, Case, Fixed, GENERATION};

const PAGE_BYTES: usize = 512;
const FRAME_BYTES: usize = FRAME_HEADER_BYTES + PAGE_BYTES;
const SALTS: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

pub fn cases() -> Result<Vec<Case>> {
    let mut cases = logs()?;
    cases.extend(super_journals());
    cases.extend(index_objects());
    Ok(cases)
}

/// The head of a wal-index in memory.
fn index_objects() -> Vec<Case> {
    let bytes = |from: u8| std::array::from_fn(|at| from + at as u8);
    let head = Head {
        token: bytes(0xa0),
        boot: bytes(0x10),
        database: Place { device: 2049, inode: 131_074 },
        index: Place { device: 2049, inode: 131_099 },
    };
    let named = |kind: &str, expect: &str, error: &[(&str, &str)], body: &[u8]| {
        let case = Case::new("index-object", kind).with("expect", expect);
        let case = error.iter().fold(case, |case, (key, value)| case.with(key, value));
        case.with_bytes("boot-id", &head.boot)
            .with("device", head.database.device.to_string())
            .with("inode", head.database.inode.to_string())
            .with("index-device", head.index.device.to_string())
            .with("index-inode", head.index.inode.to_string())
            .with_bytes("token", &head.token)
            .with("name", object_name(head.database, &head.boot))
            .with_bytes("record", &record_of(&head.token))
            .with_body(body)
    };
    let good = head.encode();
    let mut other = good;
    other[0] ^= 1;
    vec![
        named("in-memory", "success", &[], &good),
        named("another-magic", "corrupt", &[("error", "head")], &other),
    ]
}

/// SQLite's checksum over little-endian words (SQLite file format, 4.2).
pub(super) fn sum(before: (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let word = |at: usize, pair: &[u8]| u32::from_le_bytes(pair[at..at + 4].try_into().unwrap());
    bytes.chunks_exact(8).fold(before, |(first, second), pair| {
        let first = first.wrapping_add(word(0, pair)).wrapping_add(second);
        (first, second.wrapping_add(word(4, pair)).wrapping_add(first))
    })
}

/// The frames of a log as SQLite wrote them: page, commit size and salts of each; one may have another checksum.
fn log(frames: &[(u32, u32, [u8; 8])], broken: Option<usize>) -> Result<Vec<u8>> {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&0x377f_0682u32.to_be_bytes());
    header[4..8].copy_from_slice(&3_007_000u32.to_be_bytes());
    header[8..12].copy_from_slice(&(PAGE_BYTES as u32).to_be_bytes());
    header[16..24].copy_from_slice(&SALTS);
    let mut sums = sum((0, 0), &header[..24]);
    header[24..28].copy_from_slice(&sums.0.to_be_bytes());
    header[28..].copy_from_slice(&sums.1.to_be_bytes());
    wal::mark_header(&mut header, wal::Version::First);
    let keys = container(Algorithm::Aes256, GENERATION)?;
    let mut log = header.to_vec();
    for (at, (page, commit, salts)) in frames.iter().enumerate() {
        let mut frame = [page.to_be_bytes(), commit.to_be_bytes()].concat();
        frame.extend_from_slice(salts);
        frame.resize(FRAME_BYTES, 0);
        let content = 24..FRAME_BYTES - 32;
        frame[content].iter_mut().enumerate().for_each(|(byte, value)| *value = (byte + at) as u8);
        sums = sum(sum(sums, &frame[..8]), &frame[FRAME_HEADER_BYTES..]);
        if broken == Some(at) {
            sums.0 ^= 1;
        }
        frame[16..20].copy_from_slice(&sums.0.to_be_bytes());
        frame[20..24].copy_from_slice(&sums.1.to_be_bytes());
        let (number, mut sealed) = (at as u32 + 1, vec![0; FRAME_BYTES]);
        let run = (&wal::Run::of(&header, wal::Version::First), wal::Stamp::default());
        wal::seal_frame(&keys, &mut Fixed(at as u8), run, number, &frame, &mut sealed)?;
        log.extend_from_slice(&sealed);
    }
    Ok(log)
}

/// Four transactions: frames 1 and 2, then one each. All of the log counts, or it ends before a frame.
fn logs() -> Result<Vec<Case>> {
    let frames = [(1, 0, SALTS), (2, 3, SALTS), (3, 3, SALTS), (1, 3, SALTS), (2, 3, SALTS)];
    let good = case("wal", "committed", Algorithm::Aes256)
        .with("page-size", PAGE_BYTES)
        .with("frames", 5)
        .with("pages", 3)
        .with_body(&log(&frames, None)?);
    let counts = |kind: &str, frames: u32, body: &[u8]| {
        good.clone().with("kind", kind).with("frames", frames).with_body(body)
    };
    let at = |frame: usize| HEADER_BYTES + (frame - 1) * FRAME_BYTES;
    let with = |place: usize, frame| {
        let mut frames = frames;
        frames[place - 1] = frame;
        log(&frames, None)
    };
    let mut exchanged = good.body.clone();
    exchanged.copy_within(at(1)..at(2), at(3));
    let lost = |kind: &str, error: &str| good.failing(kind, "unauthentic", error);
    let flipped = |kind: &str, error: &str, at: usize| flip(lost(kind, error), at as isize);
    Ok(vec![
        counts("uncommitted-end", 4, &with(5, (2, 0, SALTS))?),
        counts("torn-end", 4, &good.body[..good.body.len() - 1]),
        flip(counts("flipped-end", 4, &good.body), at(5) as isize + 300),
        // By somebody who has the key: a writer gives each frame the salts of its log.
        counts("zero-salts-at-the-end", 4, &with(5, (2, 3, [0; 8]))?),
        // As a rollback leaves them, or an earlier recovery.
        counts("broken-chain", 2, &log(&frames, Some(2))?),
        flipped("commits-behind-a-flip", "WAL frame 1: authentication tag", at(1) + 300),
        flipped("commits-behind-another-page", "WAL frame 2: authentication tag", at(2) + 3),
        flipped("commits-behind-other-salts", "WAL frame 1: not of this log", at(1) + 8),
        lost("commits-behind-zero-salts", "WAL frame 3: not of this log")
            .with_body(&with(3, (3, 3, [0; 8]))?),
        lost("commits-behind-an-exchanged-frame", "WAL frame 3: authentication tag")
            .with_body(&exchanged),
        good,
    ])
}

/// What stands at the end of a journal when a transaction has written to several databases.
fn record(name: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0x20, 0, 1];
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(&(name.len() as u32).to_be_bytes());
    let sum = name.iter().fold(0u32, |sum, byte| sum.wrapping_add(u32::from(*byte)));
    bytes.extend_from_slice(&sum.to_be_bytes());
    bytes.extend_from_slice(&JOURNAL_MAGIC);
    bytes
}

/// Of names no file has; whether the transaction counts as committed.
fn super_journals() -> Vec<Case> {
    const NAME: &[u8] = b"/no-such-directory-of-vectors/app.db-mj01AB239CD";
    let named = |kind: &str, says: &str, name: &[u8]| {
        Case::new("super-journal", kind)
            .with("expect", "success")
            .with("says", says)
            .with_body(&record(name))
    };
    let own = |kind: &str, name: &[u8]| named(kind, "not committed", name);
    let good = named("gone", "committed", NAME);
    let changed = |kind: &str, at: isize| {
        flip(good.clone().with("kind", kind).with("says", "not committed"), at)
    };
    vec![
        own("another-name", b"/no-such-directory-of-vectors/app.db"),
        own("relative", &NAME[1..]),
        own("lower-case", b"/no-such-directory-of-vectors/app.db-mj01ab239CD"),
        own("without-the-nine", b"/no-such-directory-of-vectors/app.db-mj01AB238CD"),
        own("nothing-before-the-suffix", b"/no-such-directory-of-vectors/-mj01AB239CD"),
        own("zero-byte", b"/no-such-directory-of-vectors/\0app.db-mj01AB239CD"),
        changed("wrong-sum", -9),
        changed("longer-than-the-journal", -13),
        changed("another-magic", -1),
        good,
    ]
}

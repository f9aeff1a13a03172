//! What docs/format.md says of the log archive: LSNs, the state, segments.

use pellucid::keys::HeaderKey;
use pellucid::log_archive::{
    ArchiveState, ChangedPages, LogRun, MarkedFrame, Segment, ARCHIVE_SECTORS,
    ARCHIVE_SECTOR_BYTES, CHANGED_HEAD_BYTES, MARK_FILE_BYTES, MOST_DESCRIPTION_CHARACTERS,
    SEGMENT_HEAD_BYTES,
};
use pellucid::lsn::{Lsn, LSN_BYTES};
use pellucid::media::{MOST_MARK_BYTES, MOST_MARK_CHARACTERS};
use pellucid::unit::TAIL_BYTES;
use pellucid::wal::HEADER_BYTES;
use pellucid::Error;
use pellucid_tests::container::{dek, FILE_ID};

use super::doc::{literal, Doc};
use crate::reserved::each_byte;

fn key() -> HeaderKey {
    HeaderKey::derive(&dek(), &FILE_ID).unwrap()
}

fn run(first: u8) -> LogRun {
    let number = |at: u8| u32::from(first + at);
    LogRun {
        salts: [first; 8],
        epoch: number(1),
        first: number(2),
        kept: number(3),
        handed_out: number(4),
        count: number(5),
        behind: Lsn::new(number(6), number(7)),
        tail: [first + 8; TAIL_BYTES],
    }
}

fn state() -> ArchiveState {
    ArchiveState {
        sequence: 0x0102,
        file_id: FILE_ID,
        fork: [3; 16],
        has_base: true,
        has_ended: true,
        live: run(10),
        before: run(30),
        highest: 0x0405,
        broken_epoch: 0x0607,
        backed_up: Lsn::new(6, 7),
        broken_at: Lsn::new(8, 9),
        last_set: [50; 32],
        base: Lsn::new(51, 52),
    }
}

/// A sector with changed bytes, signed again.
fn signed(place: u64, mut sector: Vec<u8>) -> [u8; ARCHIVE_SECTOR_BYTES] {
    let at = ARCHIVE_SECTOR_BYTES - 32;
    let mac = key().sign(&[&place.to_be_bytes(), &sector[..at]]);
    sector[at..].copy_from_slice(&mac);
    sector.try_into().unwrap()
}

fn is_unsupported<T: std::fmt::Debug>(told: Result<T, Error>, what: &str) {
    assert!(matches!(told, Err(Error::Unsupported { .. })), "{what}: {told:?}");
}

#[test]
fn numbers() {
    let section = Doc::read().section("## Log archive").section("### LSN");
    section.says("It is epoch 4 ‖ frame 4");
    section.says("epoch · 10^15 + frame · 10^5 + 1, and 0 for none");
    let lsn = Lsn::new(0x0102, 0x0304);
    assert_eq!(lsn.encode(), [0, 0, 1, 2, 0, 0, 3, 4]);
    assert_eq!(lsn.encode().len(), LSN_BYTES);
    assert_eq!(lsn.numeric(), 0x0102 * 10u128.pow(15) + 0x0304 * 10u128.pow(5) + 1);
    assert_eq!((Lsn::NONE.numeric(), Lsn::NONE.encode()), (0, [0; 8]));
}

#[test]
fn states() {
    let section = Doc::read().section("### State of the archive");
    let [even, odd] = ARCHIVE_SECTORS;
    section.says(&format!("{ARCHIVE_SECTOR_BYTES} bytes at {even} and at {odd}"));
    section.says(&format!("The one at {even} has even sequences, the one at {odd} odd ones"));
    let layout = section.table(0);
    assert_eq!(layout.is_without_gaps(), ARCHIVE_SECTOR_BYTES);
    let state = state();
    assert_eq!((state.place(), ArchiveState { sequence: 7, ..state }.place()), (even, odd));
    let bytes = state.encode(&key());
    let of = |field: &str| layout.of(field, &bytes).to_vec();
    assert_eq!(of("`PELLOGS"), literal(layout.field("`PELLOGS")));
    assert_eq!(of("version: 1"), 1u32.to_be_bytes());
    assert_eq!(of("flags: 1 a full set"), 3u32.to_be_bytes());
    let flag = |has_base, has_ended| {
        let of = ArchiveState { has_base, has_ended, ..state }.encode(&key());
        layout.of("flags", &of)[3]
    };
    assert_eq!([flag(false, false), flag(true, false), flag(false, true)], [0, 1, 2]);
    assert!(layout.field("flags").contains("plus 2 the live run has ended"));
    assert_eq!(of("sequence"), 0x0102u64.to_be_bytes());
    assert_eq!(of("file id"), FILE_ID);
    assert_eq!(of("recovery fork"), [3; 16]);
    assert_eq!(of("highest epoch"), 0x0405u32.to_be_bytes());
    assert_eq!(of("epoch behind the last break"), 0x0607u32.to_be_bytes());
    assert_eq!(of("*backed up*"), Lsn::new(6, 7).encode());
    assert_eq!(of("*broken at*"), Lsn::new(8, 9).encode());
    assert_eq!(of("SHA-256 of the manifest"), [50; 32]);
    assert_eq!(of("LSN of the last full set"), Lsn::new(51, 52).encode());

    let rows = section.table(1);
    for (name, first) in [("the live run", 10u8), ("the run before", 30)] {
        let row = of(name);
        assert_eq!(rows.is_without_gaps(), row.len());
        let of = |field: &str| rows.of(field, &row).to_vec();
        let number = |at: u8| u32::from(first + at).to_be_bytes();
        assert_eq!(of("salts"), [first; 8]);
        assert_eq!(of("epoch"), number(1));
        assert_eq!(of("first frame"), number(2));
        assert_eq!(of("*kept*"), number(3));
        assert_eq!(of("*handed out*"), number(4));
        assert_eq!(of("recovery count"), number(5));
        assert_eq!(of("LSN of the commit"), [number(6), number(7)].concat());
        assert_eq!(of("tail"), [first + 8; 32]);
    }

    let mac = layout.at("HMAC-SHA256").start;
    assert!(layout.field("HMAC-SHA256").contains(&format!("bytes 0-{}", mac - 1)));
    assert_eq!(signed(even, bytes.to_vec()), bytes);
    let torn = [0; ARCHIVE_SECTOR_BYTES];
    let newest = |first, second| ArchiveState::newest(&[first, second], [&key()]);
    let older = ArchiveState { sequence: 0x0101, ..state };
    assert_eq!(newest(bytes, torn).unwrap(), state);
    assert_eq!(newest(bytes, older.encode(&key())).unwrap(), state);
    assert!(matches!(newest(torn, torn), Err(Error::Unauthentic { .. })));
    // Of a later version, whatever the other sector says.
    each_byte(&bytes, &layout.zeros(), |at, changed| {
        is_unsupported(newest(signed(even, changed), older.encode(&key())), &format!("byte {at}"));
    });
    for (at, value) in [(layout.at("version: 1").end - 1, 2), (layout.at("flags").end - 1, 7)] {
        let mut changed = bytes.to_vec();
        changed[at] = value;
        is_unsupported(newest(signed(even, changed), older.encode(&key())), "an unknown number");
    }
    let mut changed = bytes.to_vec();
    changed[layout.at("sequence").end - 1] ^= 1;
    let elsewhere = newest(signed(even, changed), torn);
    assert!(matches!(elsewhere, Err(Error::Corrupt { .. })), "{elsewhere:?}");
    let mut changed = bytes.to_vec();
    changed[0] ^= 1;
    assert_eq!(newest(signed(even, changed), older.encode(&key())).unwrap(), older);
}

#[test]
fn changed_pages() {
    let section = Doc::read().section("## Log archive");
    let section = section.section("### Changed pages");
    let layout = section.table(0);
    assert_eq!(layout.is_without_gaps(), CHANGED_HEAD_BYTES);
    section.says(&format!("{CHANGED_HEAD_BYTES} bytes, then"));
    let mut changed = ChangedPages::none(FILE_ID, [3; 16], [4; 32], Lsn::new(5, 6));
    changed.least = 0x0708;
    changed.upto = Lsn::new(10, 11);
    changed.add(9);
    let bytes = changed.encode(&key());
    let of = |field: &str| layout.of(field, &bytes).to_vec();
    assert_eq!(of("`PELPAGE"), literal(layout.field("`PELPAGE")));
    assert_eq!(of("version: 1"), 1u32.to_be_bytes());
    assert_eq!(of("number of bytes"), 2u32.to_be_bytes());
    assert_eq!(of("file id"), FILE_ID);
    assert_eq!(of("recovery fork"), [3; 16]);
    assert_eq!(of("SHA-256 of the manifest"), [4; 32]);
    assert_eq!(of("LSN up to which"), Lsn::new(10, 11).encode());
    assert_eq!(of("LSN behind which"), Lsn::new(5, 6).encode());
    assert_eq!(of("fewest pages"), 0x0708u32.to_be_bytes());
    assert_eq!(of("SHA-256 of the bytes"), sum_of(&[0, 0x80]));
    assert_eq!(bytes[CHANGED_HEAD_BYTES..], [0, 0x80]);
    let mac = layout.at("HMAC-SHA256").start;
    assert!(layout.field("HMAC-SHA256").contains(&format!("bytes 0-{}", mac - 1)));
    let signed = |mut all: Vec<u8>| {
        let tag = key().sign(&[&all[..mac]]);
        all[mac..mac + 32].copy_from_slice(&tag);
        ChangedPages::parse(&all, [&key()])
    };
    assert_eq!(signed(bytes.clone()).unwrap(), changed);
    each_byte(&bytes, &layout.zeros(), |at, changed| {
        is_unsupported(signed(changed), &format!("byte {at} of a list"));
    });
}

#[test]
fn segments() {
    let doc = Doc::read().section("## Log archive");
    let section = doc.section("### Segment");
    let layout = section.table(0);
    assert_eq!(layout.is_without_gaps(), SEGMENT_HEAD_BYTES);
    section.says(&format!("{SEGMENT_HEAD_BYTES} bytes, then frames"));
    let header: [u8; HEADER_BYTES] = std::array::from_fn(|at| at as u8);
    let segment = Segment {
        file_id: FILE_ID,
        fork: [3; 16],
        epoch: 0x0102,
        first: 0x0304,
        behind: Lsn::new(5, 6),
        header,
        count: 0x0708,
        tails: [9; 32],
    };
    let bytes = segment.encode(&key());
    let of = |field: &str| layout.of(field, &bytes).to_vec();
    assert_eq!(of("`PELFRAM"), literal(layout.field("`PELFRAM")));
    assert_eq!(of("version: 1"), 1u32.to_be_bytes());
    assert_eq!(of("file id"), FILE_ID);
    assert_eq!(of("recovery fork"), [3; 16]);
    assert_eq!(of("epoch"), 0x0102u32.to_be_bytes());
    assert_eq!(of("first frame"), 0x0304u32.to_be_bytes());
    assert_eq!(of("LSN of the commit"), Lsn::new(5, 6).encode());
    assert_eq!(of("the log's header"), header);
    assert_eq!(of("number of frames"), 0x0708u32.to_be_bytes());
    assert_eq!(of("SHA-256 of the tails"), [9; 32]);
    let mac = layout.at("HMAC-SHA256").start;
    assert!(layout.field("HMAC-SHA256").contains(&format!("bytes 0-{}", mac - 1)));
    let signed = |mut head: Vec<u8>| {
        let tag = key().sign(&[&head[..mac]]);
        head[mac..].copy_from_slice(&tag);
        Segment::parse(&head.try_into().unwrap(), [&key()])
    };
    assert_eq!(signed(bytes.to_vec()).unwrap(), segment);
    each_byte(&bytes, &layout.zeros(), |at, changed| {
        is_unsupported(signed(changed), &format!("byte {at} of a segment"));
    });
    let mut changed = bytes.to_vec();
    changed[layout.at("version: 1").end - 1] = 2;
    is_unsupported(signed(changed), "another version");
    let name = doc.table(0).rows[1][0].clone();
    let name = name.trim_matches('`');
    let name = name.replace("EEEEEEEE", "00000102").replace("FFFFFFFF", "00000304");
    assert_eq!(segment.file_name(), name);
}

#[test]
fn marks() {
    let doc = Doc::read().section("## Log archive");
    let section = doc.section("### Mark");
    section.says(&format!("a file of {MARK_FILE_BYTES} bytes"));
    section.says(&format!("24 + {} bytes", MARK_FILE_BYTES - 24));
    section.says(&format!("Bytes 16 to {}", MARK_FILE_BYTES - TAIL_BYTES - 1));
    section
        .says(&format!("1 to {MOST_MARK_CHARACTERS} characters, at most {MOST_MARK_BYTES} bytes"));
    section.says(&format!("at most {MOST_DESCRIPTION_CHARACTERS} characters"));
    let frame = MarkedFrame { salts: [1; 8], frame: 2, stamp: [3; 8] };
    let name =
        doc.table(0).rows[3][0].trim_matches('`').replace("SSSSSSSSSSSSSSSS", &"01".repeat(8));
    let name = name.replace("FFFFFFFF", "00000002").replace("TTTTTTTTTTTTTTTT", &"03".repeat(8));
    assert_eq!(frame.file_name(), name);
}

fn sum_of(bytes: &[u8]) -> [u8; 32] {
    let mut sum = pellucid::hash::Sha256::new();
    sum.update(bytes);
    sum.finish()
}

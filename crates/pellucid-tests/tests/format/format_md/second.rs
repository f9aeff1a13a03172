//! What docs/format.md says of version 2: the header's fields, sector 2, and the log.

use pellucid::header::{Header, RecoveryModel, Second, COPY_BYTES};
use pellucid::keys::HeaderKey;
use pellucid::log_sector::{LogSector, LOG_SECTOR_BYTES};
use pellucid::nonce::SystemNonces;
use pellucid::sector::{Wear, WEAR_LOG_OFFSET};
use pellucid::wal::{self, Run, Stamp, Time, Version};
use pellucid::Algorithm;
use pellucid_tests::container::{container, dek, header, FILE_ID};

use super::doc::{literal, numbered, Doc};
use super::opens_with;
use crate::reserved::{each_byte, is_newer, sum};

fn key() -> HeaderKey {
    HeaderKey::derive(&dek(), &FILE_ID).unwrap()
}

/// A copy with changed bytes, signed again.
fn signed(mut copy: Vec<u8>) -> Vec<u8> {
    let mac = key().sign(&[&copy[..COPY_BYTES - 64]]);
    copy[COPY_BYTES - 64..COPY_BYTES - 32].copy_from_slice(&mac);
    sum(&mut copy, COPY_BYTES - 32);
    copy
}

#[test]
fn headers() {
    let doc = Doc::read();
    let section = doc.section("### Header of version 2");
    let layout = section.table(0);
    let mut header = header(Algorithm::Aes256, FILE_ID);
    header.protectors = vec![vec![1, 0, 0, 3, 7, 8, 9]];
    let first = header.encode(&key()).unwrap();
    header.second = Some(Second::default());
    let copy = header.encode(&key()).unwrap().to_vec();
    let version = doc.section("### Header").table(0).at("format version");
    assert_eq!(copy[version], 2u32.to_be_bytes());
    let rows = layout.at("what a witness").end;
    section.says(&format!("The rows of DEKs begin at {rows} in the place of 128"));
    assert_eq!(copy[rows..rows + 111], first[128..128 + 111]);
    section.says("At birth the model is 3 and everything else zero");
    assert_eq!((copy[69], &copy[70..72], &copy[128..192]), (3, &[0; 2][..], &[0; 64][..]));

    let set = |change: &dyn Fn(&mut [u8])| {
        let mut changed = copy.clone();
        change(&mut changed);
        Header::parse(&signed(changed), 0).map(|header| header.second.unwrap())
    };
    let models = layout.field("recovery model").split(": ").nth(1).unwrap();
    let models = numbered(models.split(';').next().unwrap());
    assert_eq!(models.len(), 3);
    for (id, name) in &models {
        let at = layout.at("recovery model").start;
        let second = set(&|copy| copy[at] = *id).unwrap();
        assert_eq!(second.model.name(), name);
        assert!(!second.keeps_log());
        let chain = Second { has_chain: true, ..second };
        assert_eq!(chain.keeps_log(), chain.model != RecoveryModel::Simple);
    }
    for other in [0, 4, 255] {
        assert!(set(&|copy| copy[69] = other).is_err());
    }
    let marks = layout.field("marks").to_owned();
    let at = layout.at("marks").start;
    let of = |bit: u8| set(&|copy| copy[at] = bit);
    for (bit, says) in [
        (1, "1 the wal-index is in memory"),
        (2, "plus 2 a chain of log backups has begun"),
        (4, "plus 4 restoring"),
        (8, "plus 8 standby"),
    ] {
        assert!(marks.contains(says), "{says}");
        let second = of(bit).unwrap();
        let set =
            [second.index_in_memory, second.has_chain, second.is_restoring, second.is_standby];
        assert_eq!(set, [1, 2, 4, 8].map(|mark| mark == bit));
        assert_eq!(second.check_readable().is_err(), bit == 4);
        assert_eq!(second.check_writable().is_err(), bit == 8);
    }
    for bit in [16, 32, 64, 128] {
        assert!(of(bit).is_err());
    }
    let second =
        set(&|copy| copy[128..192].copy_from_slice(&std::array::from_fn::<u8, 64, _>(|n| n as u8)));
    let second = second.unwrap();
    let field = |says: &str| layout.at(says).map(|at| (at - 128) as u8).collect::<Vec<_>>();
    assert_eq!(second.fork.to_vec(), field("recovery fork"));
    assert_eq!(second.chain_begins.to_be_bytes().to_vec(), field("LSN at which"));
    assert_eq!(second.handed_out.to_be_bytes().to_vec(), field("an LSN below which"));
    assert_eq!(second.witness.to_vec(), field("what a witness"));

    let mut zeros = layout.zeros();
    assert_eq!(zeros.len(), 1);
    assert_eq!(zeros[0], 71..72);
    zeros.extend([55..56, 126..128, rows + 10..rows + 12, rows + 44..rows + 104]);
    zeros.push(rows + 111..COPY_BYTES - 64);
    each_byte(&copy, &zeros, |at, changed| {
        let told = Header::parse(&signed(changed), 0);
        is_newer(told, &format!("byte {at} is not zero"), "header of version 2");
    });
}

#[test]
fn sector_2() {
    let doc = Doc::read();
    let section = doc.section("### Sector 2 of version 2");
    section.says(&format!("The sector at {WEAR_LOG_OFFSET} has the wear"));
    let layout = section.table(0);
    assert_eq!(layout.is_without_gaps(), LOG_SECTOR_BYTES);
    let sector = LogSector {
        wear: Wear { generation: 0x0102, reserved: 0x0304 },
        recoveries: 0x0506,
        counted: 0x0708,
        under_way: true,
        run: [9; wal::RUN_BYTES],
        before: [10; wal::RUN_BYTES],
        before_ended: Time::from_units(0x0b0c),
        epoch: 0x0d0e,
        kept: 0x0f10,
        has_ended: true,
        is_lost: true,
    };
    let bytes = sector.encode(&key());
    let of = |field: &str| layout.of(field, &bytes);
    assert_eq!(of("`PELWEAR"), literal(layout.field("`PELWEAR")));
    assert_eq!(of("generation counted"), 0x0102u32.to_be_bytes());
    assert_eq!(of("recovery count"), 0x0506u32.to_be_bytes());
    assert_eq!(of("writes reserved"), 0x0304u64.to_be_bytes());
    assert_eq!(of("frames that the last recovery"), 0x0708u32.to_be_bytes());
    assert_eq!(of("flags: 1 a recovery is under way, plus 2"), 7u32.to_be_bytes());
    assert_eq!(of("the [run]"), [9; 24]);
    assert_eq!(of("the same of the run before"), [10; 24]);
    assert_eq!(of("time of the last commit"), 0x0b0cu64.to_be_bytes());
    assert_eq!(of("highest epoch"), 0x0d0eu32.to_be_bytes());
    assert_eq!(of("frames that were kept"), 0x0f10u32.to_be_bytes());
    let mac = layout.at("HMAC-SHA256").start;
    let signed = |bytes: &[u8]| key().sign(&[&WEAR_LOG_OFFSET.to_be_bytes(), &bytes[..mac]]);
    assert!(layout.field("HMAC-SHA256").contains(&format!("bytes 0-{}", mac - 1)));
    assert_eq!(of("HMAC-SHA256"), signed(&bytes));
    let container = doc.section("## Container").table(0);
    let field = container.field("wear of WAL frames").to_owned();
    assert!(field.contains(&format!("[{LOG_SECTOR_BYTES}]")), "{field}");
}

#[test]
fn logs() {
    let doc = Doc::read();
    let section = doc.section("## WAL of version 2");
    let mut wal_header = [0; wal::HEADER_BYTES];
    wal_header[..4].copy_from_slice(&0x377f_0682u32.to_be_bytes());
    wal_header[8..12].copy_from_slice(&512u32.to_be_bytes());
    wal_header[16..24].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    wal::mark_header(&mut wal_header, Version::Second);
    let version = u32::from_be_bytes(*wal_header[4..].first_chunk().unwrap());
    section.says(&format!("**Header**: version {version:#x}"));
    section.says(&format!("Its bytes {}-31 are the *run*", wal::HEADER_BYTES - wal::RUN_BYTES));
    section.says(&format!("**Frame**, {} + page size", wal::FRAME_HEADER_BYTES));

    let layout = section.table(0).with(&[("page size", 512)]);
    let mut frame: Vec<u8> = (0..536).map(|at| if at < 504 { at as u8 } else { 0 }).collect();
    frame[8..16].copy_from_slice(&wal_header[16..24]);
    assert_eq!(layout.is_without_gaps(), frame.len());
    let keys = container(Algorithm::Aes256, FILE_ID);
    let run = Run::of(&wal_header, Version::Second);
    let stamp = Stamp { time: Time::from_units(77), count: 3, first: true, ..Stamp::default() };
    let mut sealed = vec![0; frame.len()];
    let nonces = &mut SystemNonces;
    wal::seal_frame(&keys, nonces, (&run, stamp), 9, &frame, &mut sealed).unwrap();
    assert_eq!(layout.of("page number 4, commit size 4", &sealed), &frame[..8]);
    assert_eq!(layout.of("stamp", &sealed), stamp.encode());

    let unit = &sealed[layout.at("unit's ciphertext").start..layout.at("unit's tail").end];
    let more = section.table(1);
    let more = more.at("bytes 16-31 of the log's header");
    let mut aad = vec![2, 2, 0, 0];
    aad.extend_from_slice(&unit[unit.len() - 20..unit.len() - 16]);
    aad.extend_from_slice(&FILE_ID);
    aad.extend_from_slice(&9u64.to_be_bytes());
    aad.extend_from_slice(&sealed[..16]);
    aad.resize(more.start, 0);
    aad.extend_from_slice(&wal_header[16..32]);
    assert_eq!(aad.len(), more.end);
    section.says(&format!(
        "The AAD is {} bytes: {} as in version 1, but for a first byte of 2",
        more.end, more.start
    ));
    assert_eq!(opens_with(&doc, 2, &aad, unit), frame[16..504]);
}

#[test]
fn stamps() {
    let section = Doc::read().section("## WAL of version 2");
    let rows = section.table(2).rows;
    let stamp = |says: &str| match says {
        "*stepped back*" => Stamp { stepped_back: true, ..Stamp::default() },
        "*first*" => Stamp { first: true, ..Stamp::default() },
        "*synced before*" => Stamp { synced_before: true, ..Stamp::default() },
        "*reseals only*" => Stamp { reseals_only: true, ..Stamp::default() },
        "*mark follows*" => Stamp { mark_follows: true, ..Stamp::default() },
        "time, in units of 64 us" => Stamp { time: Time::from_units(u64::MAX), ..Stamp::default() },
        "recovery count" => Stamp { count: wal::COUNT_MOST, ..Stamp::default() },
        other => panic!("{other}"),
    };
    let mut left = 64u32;
    for row in &rows {
        let bits: u32 = row[0].parse().unwrap();
        let end = row[1].find([':', ',']).unwrap();
        let says = match row[1].starts_with("time") {
            true => "time, in units of 64 us",
            false => &row[1][..end],
        };
        left -= bits;
        let all = (u64::MAX >> (64 - bits)) << left;
        assert_eq!(u64::from_be_bytes(stamp(says).encode()), all, "{says}");
    }
    assert_eq!((left, rows.len()), (0, 7));
    section.says(&format!("recovery count, 0 to {}", wal::COUNT_MOST));
    section.says(&format!("but at most {}", wal::COUNT_MOST));
    section.says(&format!("the clock was more than {} s behind", Time::STEP * 64 / 1_000_000));
    assert_eq!(Time::from_units(1).micros(), 64);
}

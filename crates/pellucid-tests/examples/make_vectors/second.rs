//! Vectors of containers of version 2: headers, sector 2, the header of a log and its frames. Whole logs are in `second_logs.rs`.

use pellucid::header::{DekRow, Header, Second};
use pellucid::keys::{generation_cipher, HeaderKey};
use pellucid::log_sector::{LogSector, LOG_SECTOR_BYTES};
use pellucid::protector::{self, KeyFile, Wrapping};
use pellucid::secret::Secret32;
use pellucid::sector::{Wear, WEAR_LOG_OFFSET};
use pellucid::unit::{self, FileKind, Place};
use pellucid::wal::{self, Run, Stamp, Time, Version};
use pellucid::{Algorithm, Dek, Result};

use super::headers::{encoded, header_case, patched, with_checksum, wrapped};
use super::units::wal_header;
use super::{
    case, container, dek, flip, header, key_bytes, Case, Fixed, FILE_ID, GENERATION, NONCE,
    OTHER_ID,
};

const LITTLE_ENDIAN: u32 = 0x377f_0682;
const TAG: &str = "authentication tag does not match";

pub fn cases() -> Result<Vec<Case>> {
    let mut cases = headers()?;
    cases.extend(sectors()?);
    cases.extend(wal_headers());
    cases.extend(frames()?);
    cases.extend(super::second_logs::cases()?);
    Ok(cases)
}

fn with_fields(case: Case, model: &str, marks: &str) -> Case {
    case.with("recovery-model", model)
        .with("marks", marks)
        .with_bytes("fork", &[0; 16])
        .with("chain-begins", 0)
        .with("handed-out", 0)
        .with_bytes("witness", &[0; 32])
}

fn headers() -> Result<Vec<Case>> {
    let key_file = KeyFile::parse(&key_bytes(64)).unwrap();
    let by_key_file = wrapped(&dek(), &FILE_ID, &Wrapping::KeyFile(&key_file))?;
    let mut of = header(&dek(), FILE_ID, Algorithm::Aes256)?;
    of.second = Some(Second::default());
    of.protectors = vec![by_key_file];
    let body = encoded(&of)?;
    let good = with_fields(
        header_case("second").with_bytes("key-file", &key_bytes(64)).with_body(&body),
        "SIMPLE",
        "nothing",
    );
    let set = |at: usize, value: u8| patched(&body, |copy| copy[at] = value);
    let says = |kind: &str, model: &str, marks: &str, body: &[u8]| {
        with_fields(good.clone().with("kind", kind), model, marks).with_body(body)
    };
    let kept = |kind: &str, model: &str, marks: &str, at: usize, value: u8| -> Result<Case> {
        Ok(says(kind, model, marks, &set(at, value)?))
    };
    let refused = |kind: &str, error: &str, at: usize, value: u8| -> Result<Case> {
        Ok(good.failing(kind, "unsupported", error).with_body(&set(at, value)?))
    };
    let all = patched(&body, |copy| {
        (copy[69], copy[70]) = (1, 1 | 2);
        copy[128..144].copy_from_slice(&key_bytes(1)[..16]);
        copy[144..152].copy_from_slice(&0x0000_0002_0000_0003u64.to_be_bytes());
        copy[152..160].copy_from_slice(&0x0000_0004_0000_0005u64.to_be_bytes());
        copy[160..192].copy_from_slice(&key_bytes(100));
    })?;
    let mut forged = body.clone();
    forged[70] = 1;
    Ok(vec![
        says("second-index-in-memory", "SIMPLE", "index-in-memory", &set(70, 1)?),
        says("second-every-field", "FULL", "index-in-memory chain", &all)
            .with_bytes("fork", &key_bytes(1)[..16])
            .with("chain-begins", 0x0000_0002_0000_0003u64)
            .with("handed-out", 0x0000_0004_0000_0005u64)
            .with_bytes("witness", &key_bytes(100)),
        kept("second-full", "FULL", "nothing", 69, 1)?,
        kept("second-bulk-logged", "BULK_LOGGED", "nothing", 69, 2)?,
        kept("second-chain", "SIMPLE", "chain", 70, 2)?,
        kept("second-standby", "SIMPLE", "standby", 70, 8)?.with("writable", "no"),
        refused("second-restoring", "is being restored", 70, 4)?,
        refused("second-model-0", "recovery model 0 is not known", 69, 0)?,
        refused("second-model-4", "recovery model 4 is not known", 69, 4)?,
        refused("second-mark-16", "marks 0x10 are not known", 70, 16)?,
        refused("second-mark-128", "marks 0x81 are not known", 70, 128 | 1)?,
        refused("second-byte-in-use", "byte 71 is not zero", 71, 1)?,
        refused("second-flags-byte-in-use", "byte 127 is not zero", 127, 1)?,
        refused("second-row-in-use", "byte 202 is not zero", 192 + 10, 1)?,
        refused("second-padding-in-use", "byte 7103 is not zero", 7103, 9)?,
        refused("second-incompatible-flag", "incompatible flags 0x0100 are not known", 120, 1)?,
        refused("second-called-version-1", "byte 69 is not zero", 19, 1)?,
        refused("version-3", "format version 3 is newer than 2", 19, 3)?,
        good.failing("second-forged", "unauthentic", TAG).with_body(&with_checksum(forged)),
        older_dek(&good, &of)?,
        under_aegis(&good, &key_file)?,
        good,
    ])
}

/// Version 1 refuses the algorithm as reserved.
fn under_aegis(good: &Case, key_file: &KeyFile) -> Result<Case> {
    let mut of = header(&dek(), FILE_ID, Algorithm::Aegis256)?;
    of.second = Some(Second::default());
    let (binding, mut protector) = (of.current_dek()?.binding(&FILE_ID), Vec::new());
    protector::wrap(&dek(), &binding, &Wrapping::KeyFile(key_file))?.encode(&mut protector);
    of.protectors = vec![protector];
    let case = good.clone().with("kind", "second-AEGIS_256").with("algorithm", "AEGIS_256");
    Ok(case.with_body(&encoded(&of)?))
}

/// Its rows begin at another place than those of version 1.
fn older_dek(good: &Case, of: &Header) -> Result<Case> {
    let older = Dek::from_secret(Secret32::new(&mut key_bytes(32)));
    let mut nonces = Fixed(0);
    let row = DekRow::wrap_older(&older, 1..=2, Algorithm::Aes128, &dek(), &FILE_ID, &mut nonces)?;
    let mut of = of.clone();
    of.deks[0].first_generation = GENERATION;
    of.deks.insert(0, row);
    let cipher = generation_cipher(&older, &FILE_ID, 2, Algorithm::Aes128, FileKind::Database)?;
    let (mut page, plain) = ([0; 512], [0x5a; 480]);
    unit::seal(&cipher, 2, &NONCE, &Place::page(&FILE_ID, 7), &plain, &mut page)?;
    Ok(good
        .clone()
        .with("kind", "second-older-dek")
        .with_bytes("older-dek", &key_bytes(32))
        .with_bytes("nonce", &NONCE)
        .with_bytes("older-page", &page)
        .with_bytes("plaintext", &plain)
        .with_body(&encoded(&of)?))
}

fn sectors() -> Result<Vec<Case>> {
    let run: [u8; 24] = std::array::from_fn(|at| 0x40 + at as u8);
    let before: [u8; 24] = std::array::from_fn(|at| 0x60 + at as u8);
    let born =
        LogSector { wear: Wear { generation: GENERATION, reserved: 4096 }, ..LogSector::default() };
    let sector = LogSector {
        recoveries: 2,
        counted: 70,
        run,
        before,
        before_ended: Time::from_units(1_700_000_000 * 15_625),
        ..born
    };
    let key = HeaderKey::derive(&dek(), &FILE_ID)?;
    let of = |kind: &str, sector: &LogSector, key: &HeaderKey| {
        case("log-sector", kind, Algorithm::Aes256)
            .with("reserved", sector.wear.reserved)
            .with("recoveries", sector.recoveries)
            .with("counted", sector.counted)
            .with("under-way", if sector.under_way { "yes" } else { "no" })
            .with_bytes("run", &sector.run)
            .with_bytes("run-before", &sector.before)
            .with("ended", sector.before_ended.units())
            .with("epoch", sector.epoch)
            .with("kept", sector.kept)
            .with("has-ended", if sector.has_ended { "yes" } else { "no" })
            .with("is-lost", if sector.is_lost { "yes" } else { "no" })
            .with_body(&sector.encode(key))
    };
    let good = of("written", &sector, &key);
    let older = Dek::from_secret(Secret32::new(&mut key_bytes(32)));
    let by_older = HeaderKey::derive(&older, &FILE_ID)?;
    let under_older = of("older-key", &sector, &by_older);
    let refused = |kind: &str| good.failing(kind, "unauthentic", TAG);
    let mut first = born.wear.encode(&key, WEAR_LOG_OFFSET).to_vec();
    first.resize(LOG_SECTOR_BYTES, 0);
    let signed = |at: usize, value: u8| {
        let mut bytes = good.body.clone();
        bytes[at] = value;
        let mac = key.sign(&[&WEAR_LOG_OFFSET.to_be_bytes(), &bytes[..96]]);
        bytes[96..].copy_from_slice(&mac);
        bytes
    };
    Ok(vec![
        of("born", &born, &key),
        of("recovery-under-way", &LogSector { under_way: true, ..sector }, &key),
        under_older.clone().with_bytes("older-dek", &key_bytes(32)),
        under_older.failing("key-of-no-row", "unauthentic", TAG),
        flip(refused("flipped"), 33),
        flip(refused("forged"), -1),
        refused("of-another-file").with_bytes("file-id", &OTHER_ID),
        refused("wear-of-version-1").with_body(&first),
        of("chain-begun", &LogSector { epoch: 0x0102_0304, kept: 0x0506_0708, ..sector }, &key),
        of("chain-ended", &LogSector { epoch: 7, kept: 70, has_ended: true, ..sector }, &key),
        of("chain-lost", &LogSector { epoch: 7, is_lost: true, ..sector }, &key),
        good.failing("unknown-state", "unsupported", "state 8 of a log is not known")
            .with_body(&signed(31, 8)),
        good,
    ])
}

fn wal_headers() -> Vec<Case> {
    let mut cases = Vec::new();
    let of = |kind: &str, sqlite: &[u8], body: &[u8]| {
        Case::new("wal-header", kind)
            .with("expect", "success")
            .with("database-version", 2)
            .with_bytes("sqlite", sqlite)
            .with_body(body)
    };
    for (kind, magic) in [("second", LITTLE_ENDIAN), ("second-big-endian", LITTLE_ENDIAN | 1)] {
        let plain = wal_header(magic, 3_007_000);
        let mut marked = plain;
        wal::mark_header(&mut marked, Version::Second);
        cases.push(of(kind, &plain, &marked));
    }
    let useless = |kind: &str, expect: &str, error: &str, body: [u8; wal::HEADER_BYTES]| {
        let mut handed = body;
        wal::unmark_header(&mut handed, Version::Second);
        of("", &handed, &body).failing(kind, expect, error)
    };
    let second = wal_header(LITTLE_ENDIAN, 0x5045_4C02);
    let flipped = |mut header: [u8; wal::HEADER_BYTES], at: usize| {
        header[at] ^= 1;
        header
    };
    let first = wal_header(LITTLE_ENDIAN, 0x5045_4C01);
    let next = wal_header(LITTLE_ENDIAN, 0x5045_4C04);
    let plain = wal_header(LITTLE_ENDIAN, 3_007_000);
    cases.extend([
        useless("second-flipped", "corrupt", "WAL header", flipped(second, 17)),
        useless("second-plain", "corrupt", "WAL header", plain),
        useless("first-beside-second", "unauthentic", "version 0x50454c01 is older", first),
        useless("first-beside-second-flipped", "corrupt", "WAL header", flipped(first, 17)),
        useless("next-version", "unsupported", "version 0x50454c04 is newer", next),
        useless(
            "next-version-torn",
            "unsupported",
            "version 0x50454c04 is newer",
            flipped(next, 30),
        ),
    ]);
    cases
}

fn frames() -> Result<Vec<Case>> {
    let keys = container(Algorithm::Aes256, GENERATION)?;
    let header = wal_header(LITTLE_ENDIAN, 0x5045_4C02);
    let run = Run::of(&header, Version::Second);
    let mut frame = [&7u32.to_be_bytes()[..], &20u32.to_be_bytes(), &header[16..24]].concat();
    frame.extend_from_slice(b"checksum");
    frame.extend((0..480).map(|at| (at * 7 + at / 256) as u8));
    frame.resize(536, 0);
    let seal = |run: &Run, stamp: Stamp| -> Result<Vec<u8>> {
        let mut sealed = vec![0; frame.len()];
        wal::seal_frame(&keys, &mut Fixed(0), (run, stamp), 2, &frame, &mut sealed)?;
        Ok(sealed)
    };
    let time = Time::from_units(1_700_000_000 * 15_625);
    let first = Stamp { time, count: 3, first: true, synced_before: true, ..Stamp::default() };
    let all = Stamp {
        count: wal::COUNT_MOST,
        stepped_back: true,
        reseals_only: true,
        mark_follows: true,
        ..first
    };
    let of = |kind: &str, marks: &str, stamp: Stamp| -> Result<Case> {
        Ok(case("wal-frame", kind, Algorithm::Aes256)
            .with("frame", 2)
            .with_bytes("run", run.bytes())
            .with("time", stamp.time.units())
            .with("recoveries", stamp.count)
            .with("stamp", marks)
            .with_bytes("nonce", &NONCE)
            .with_bytes("sqlite", &frame)
            .with_body(&seal(&run, stamp)?))
    };
    let good = of("second", "first synced-before", first)?;
    let mut under_aegis = vec![0; frame.len()];
    let aegis = container(Algorithm::Aegis256, GENERATION)?;
    wal::seal_frame(&aegis, &mut Fixed(0), (&run, first), 2, &frame, &mut under_aegis)?;
    let refused = |kind: &str| good.failing(kind, "unauthentic", TAG);
    let with = |at: usize| {
        let mut run = *run.bytes();
        run[at] ^= 1;
        run
    };
    let of_first = Run::of(&header, Version::First);
    let sealed_as_first = seal(&of_first, Stamp::default())?;
    let in_first = case("wal-frame", "second-in-a-log-of-version-1", Algorithm::Aes256)
        .with("frame", 2)
        .with_bytes("sqlite", &frame)
        .with_body(&good.body);
    Ok(vec![
        of("second-every-mark", "first synced-before stepped-back reseals-only mark-follows", all)?,
        of("second-no-mark", "nothing", Stamp { first: false, synced_before: false, ..first })?,
        refused("second-other-salts").with_bytes("run", &with(9)),
        refused("second-other-checksum").with_bytes("run", &with(20)),
        refused("second-wrong-place").with("frame", 3),
        refused("second-wrong-file-id").with_bytes("file-id", &OTHER_ID),
        flip(refused("second-flipped-stamp"), 8),
        flip(refused("second-flipped-count"), 15),
        flip(refused("second-flipped-commit-size"), 7),
        flip(refused("second-flipped-tag"), -1),
        refused("first-in-a-log-of-version-2").with_body(&sealed_as_first),
        in_first.failing("second-in-a-log-of-version-1", "unauthentic", TAG),
        good.clone()
            .with("kind", "second-AEGIS_256")
            .with("algorithm", "AEGIS_256")
            .with_body(&under_aegis),
        good,
    ])
}

//! Vectors of what lies in databases, logs, journals and temporary files, and of the sectors.

use aws_lc_rs::{digest, hkdf};
use pellucid::cipher::Cipher;
use pellucid::journal::{self, JournalHeader};
use pellucid::keys::{generation_cipher, HeaderKey, TemporaryKey};
use pellucid::secret::Secret32;
use pellucid::sector::{SectorZero, Wear, SQLITE_MAGIC, WEAR_LOG_OFFSET, WEAR_PAGES_OFFSET};
use pellucid::unit::{self, FileKind, Place, TAIL_BYTES};
use pellucid::wal;
use pellucid::{Algorithm, Result};

use super::{
    case, container, dek, flip, key_bytes, Case, Fixed, FILE_ID, GENERATION, NONCE, OTHER_ID,
};

const TAG: &str = "authentication tag does not match";
const PAGE: u32 = 7;
const SALTS: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

pub fn cases() -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    pages(&mut cases)?;
    wal_headers(&mut cases);
    wal_frames(&mut cases)?;
    journals(&mut cases)?;
    temporary(&mut cases)?;
    sectors(&mut cases)?;
    Ok(cases)
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 256) as u8).collect()
}

fn page(object: &str, algorithm: Algorithm, length: usize) -> Result<Case> {
    let plain = pattern(length);
    let mut sealed = vec![0; length + TAIL_BYTES];
    container(algorithm, GENERATION)?.seal(
        FileKind::Database,
        &Place::page(&FILE_ID, PAGE),
        &mut Fixed(0),
        &plain,
        &mut sealed,
    )?;
    Ok(case(object, algorithm.name(), algorithm)
        .with("position", PAGE)
        .with_bytes("nonce", &NONCE)
        .with_bytes("plaintext", &plain)
        .with_body(&sealed))
}

/// A page sealed under a generation of its own, whatever the header lists.
fn page_of_generation(generation: u32) -> Result<Vec<u8>> {
    let mut sealed = vec![0; 512];
    let kind = FileKind::Database;
    let cipher = generation_cipher(&dek(), &FILE_ID, generation, Algorithm::Aes256, kind)?;
    let place = Place::page(&FILE_ID, PAGE);
    unit::seal(&cipher, generation, &NONCE, &place, &pattern(480), &mut sealed)?;
    Ok(sealed)
}

fn pages(cases: &mut Vec<Case>) -> Result<()> {
    for algorithm in Algorithm::ALL {
        let mut aad = vec![1, FileKind::Database as u8, 0, 0];
        aad.extend_from_slice(&GENERATION.to_be_bytes());
        aad.extend_from_slice(&FILE_ID);
        aad.extend_from_slice(&u64::from(PAGE).to_be_bytes());
        aad.resize(52, 0);
        let unit = page("unit", algorithm, 29)?
            .with_bytes("generation-key", &generation_key(algorithm))
            .with_bytes("aad", &aad);
        cases.extend([unit, page("page", algorithm, 480)?]);
    }
    let good = page("page", Algorithm::Aes256, 480)?;
    let refused = |kind, error| good.failing(kind, "unauthentic", error);
    cases.push(
        good.clone()
            .with("kind", "older-generation")
            .with_body(&page_of_generation(GENERATION - 1)?),
    );
    cases.push(flip(refused("flipped-tag", "page 7: authentication tag does not match"), -1));
    cases.push(flip(
        page("page", Algorithm::TripleDes3Key, 480)?.failing(
            "flipped-tag-triple-des",
            "unauthentic",
            TAG,
        ),
        -1,
    ));
    cases.push(flip(refused("flipped-nonce", TAG), 480));
    cases.push(flip(refused("flipped-ciphertext", TAG), 0));
    cases.push(refused("wrong-place", "page 8: authentication").with("position", PAGE + 1));
    cases.push(refused("wrong-file-id", TAG).with_bytes("file-id", &OTHER_ID));
    cases.push(refused("wrong-key", TAG).with_bytes("dek", &key_bytes(64)));
    cases.push(
        refused("generation-unlisted", "generation 4, which the header does not list")
            .with_body(&page_of_generation(GENERATION + 1)?),
    );
    cases.push(
        refused("generation-0", "generation 0, which the header does not list")
            .with_body(&page_of_generation(0)?),
    );
    cases.push(refused("all-zero", "all bytes are zero").with_body(&[0; 512]));
    Ok(())
}

fn generation_key(algorithm: Algorithm) -> Vec<u8> {
    struct Length(usize);
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let length = Cipher::key_bytes(algorithm);
    let mut key = vec![0; length];
    hkdf::Salt::new(hkdf::HKDF_SHA256, &FILE_ID)
        .extract(dek().expose())
        .expand(
            &[b"pellucid/1 unit", &GENERATION.to_be_bytes(), &[algorithm.id(), 1]],
            Length(length),
        )
        .and_then(|okm| okm.fill(&mut key))
        .unwrap();
    key
}

/// The header of a log, in words of either byte order, with a right checksum.
pub(super) fn wal_header(magic: u32, version: u32) -> [u8; wal::HEADER_BYTES] {
    let mut header = [0; wal::HEADER_BYTES];
    for (at, word) in [(0, magic), (4, version), (8, 512), (12, 9)] {
        header[at..at + 4].copy_from_slice(&word.to_be_bytes());
    }
    header[16..24].copy_from_slice(&SALTS);
    let (mut first, mut second) = (0u32, 0u32);
    for pair in header[..24].chunks_exact(8) {
        let word = |at: usize| {
            let bytes = [pair[at], pair[at + 1], pair[at + 2], pair[at + 3]];
            if magic & 1 == 1 {
                u32::from_be_bytes(bytes)
            } else {
                u32::from_le_bytes(bytes)
            }
        };
        first = first.wrapping_add(word(0)).wrapping_add(second);
        second = second.wrapping_add(word(4)).wrapping_add(first);
    }
    header[24..28].copy_from_slice(&first.to_be_bytes());
    header[28..].copy_from_slice(&second.to_be_bytes());
    header
}

fn wal_headers(cases: &mut Vec<Case>) {
    let header = wal_header;
    for (kind, magic) in [("little-endian", 0x377f_0682), ("big-endian", 0x377f_0683)] {
        let plain = header(magic, 3_007_000);
        let mut marked = plain;
        wal::mark_header(&mut marked, wal::Version::First);
        cases.push(
            Case::new("wal-header", kind)
                .with("expect", "success")
                .with_bytes("sqlite", &plain)
                .with_body(&marked),
        );
    }
    let useless = |kind: &str, body: [u8; wal::HEADER_BYTES]| {
        let mut handed = body;
        wal::unmark_header(&mut handed, wal::Version::First);
        Case::new("wal-header", kind)
            .with("expect", "corrupt")
            .with("error", "WAL header")
            .with_bytes("sqlite", &handed)
            .with_body(&body)
    };
    let plain = header(0x377f_0682, 3_007_000);
    let mut flipped = plain;
    wal::mark_header(&mut flipped, wal::Version::First);
    flipped[17] ^= 1;
    cases.extend([useless("plain", plain), useless("flipped", flipped)]);
    for (kind, version, error) in [
        ("reserved-version", 0x5045_4C02, "version 0x50454c02 is newer"),
        ("later-version", 0x5045_4c07, "version 0x50454c07 is newer"),
    ] {
        let case = useless(kind, header(0x377f_0682, version));
        cases.push(case.with("expect", "unsupported").with("error", error));
    }
    let mut torn = header(0x377f_0682, 0x5045_4C02);
    torn[30] ^= 1;
    let case = useless("reserved-version-torn", torn);
    cases.push(case.with("expect", "unsupported").with("error", "version 0x50454c02 is newer"));
}

fn wal_frames(cases: &mut Vec<Case>) -> Result<()> {
    let keys = container(Algorithm::Aes256, GENERATION)?;
    let mut frame = Vec::new();
    frame.extend_from_slice(&PAGE.to_be_bytes());
    frame.extend_from_slice(&20u32.to_be_bytes());
    frame.extend_from_slice(&SALTS);
    frame.extend_from_slice(b"checksum");
    frame.extend_from_slice(&pattern(480));
    frame.resize(536, 0);
    let seal = |generation| -> Result<Vec<u8>> {
        let mut sealed = frame[..16].to_vec();
        sealed.resize(536, 0);
        let kind = FileKind::Wal;
        let cipher = generation_cipher(&dek(), &FILE_ID, generation, Algorithm::Aes256, kind)?;
        let place = Place::frame(&FILE_ID, 2, frame.first_chunk().unwrap());
        unit::seal(&cipher, generation, &NONCE, &place, &frame[16..504], &mut sealed[16..])?;
        Ok(sealed)
    };
    let mut sealed = vec![0; 536];
    let run = wal::Run::of(&[0; wal::HEADER_BYTES], wal::Version::First);
    wal::seal_frame(&keys, &mut Fixed(0), (&run, wal::Stamp::default()), 2, &frame, &mut sealed)?;
    let good = case("wal-frame", "sealed", Algorithm::Aes256)
        .with("frame", 2)
        .with_bytes("nonce", &NONCE)
        .with_bytes("sqlite", &frame)
        .with_body(&sealed);
    let refused = |kind, error| good.failing(kind, "unauthentic", error);
    cases.push(good.clone());
    cases.push(flip(refused("flipped-tag", "WAL frame 2: authentication tag"), -1));
    cases.push(flip(refused("flipped-clear", TAG), 3));
    cases.push(refused("wrong-place", "WAL frame 3: authentication tag").with("frame", 3));
    cases.push(refused("wrong-file-id", TAG).with_bytes("file-id", &OTHER_ID));
    cases.push(
        refused("generation-unlisted", "generation 4, which the header does not list")
            .with_body(&seal(GENERATION + 1)?),
    );
    cases.push(
        refused("generation-0", "generation 0, which the header does not list")
            .with_body(&seal(0)?),
    );
    let page = [&frame[..16], &pattern(8), &page_of_generation(GENERATION)?[..]].concat();
    cases.push(refused("page-of-the-database", TAG).with_body(&page));
    Ok(())
}

fn journals(cases: &mut Vec<Case>) -> Result<()> {
    let keys = container(Algorithm::Aes256, GENERATION)?;
    let id = *b"this one journal";
    let mut fields = journal::MAGIC.to_vec();
    for word in [1u32, 0xdead_beef, 20, 512, 512] {
        fields.extend_from_slice(&word.to_be_bytes());
    }
    let header = JournalHeader { id, fields: fields.clone().try_into().unwrap() };
    let sealed = header.seal(&keys, &mut Fixed(0), 512)?;
    let mut second = NONCE;
    second[11] += 1;
    let good = case("journal-header", "sealed", Algorithm::Aes256)
        .with("offset", 512)
        .with_bytes("journal-id", &id)
        .with("damaged", "no")
        .with_bytes("nonce", &[NONCE, second].concat())
        .with_bytes("sqlite", &fields)
        .with_body(&sealed);
    let refused = |kind, error| good.failing(kind, "unauthentic", error);
    let both = flip(flip(refused("both-copies-damaged", "journal header at byte 512"), 50), -1);
    cases.extend([
        good.clone(),
        flip(good.clone().with("kind", "one-copy-damaged").with("damaged", "yes"), 50),
        both,
        good.failing("byte-in-use", "corrupt", "byte 31 of its sector is not zero")
            .with_body(&[&sealed[..31], &[1], &sealed[32..]].concat()),
        good.failing("rest-in-use", "corrupt", "byte 511 of its sector is not zero")
            .with_body(&[&sealed[..], &[0; 179], &[1]].concat()),
        refused("wrong-place", "journal header at byte 1024").with("offset", 1024),
    ]);

    let mut record = PAGE.to_be_bytes().to_vec();
    record.extend_from_slice(&pattern(480));
    record.resize(4 + 512, 0);
    record.extend_from_slice(b"sum!");
    let mut sealed = vec![0; journal::record_bytes(512)];
    journal::seal_record(&keys, &mut Fixed(0), &id, 1024, &mut record.clone(), &mut sealed)?;
    let good = case("journal-record", "sealed", Algorithm::Aes256)
        .with("offset", 1024)
        .with_bytes("journal-id", &id)
        .with_bytes("nonce", &NONCE)
        .with_bytes("sqlite", &record)
        .with_body(&sealed);
    let refused = |kind, error| good.failing(kind, "unauthentic", error);
    cases.extend([
        good.clone(),
        flip(refused("flipped-tag", "journal record of page 7 at byte 1024"), -1),
        flip(refused("flipped-page-number", "journal record of page 6"), 3),
        refused("wrong-place", TAG).with("offset", 1544),
        refused("wrong-journal", TAG).with_bytes("journal-id", &OTHER_ID),
    ]);
    Ok(())
}

fn temporary(cases: &mut Vec<Case>) -> Result<()> {
    let good = temporary_block(Algorithm::Aes256, "sealed")?;
    let refused = |kind, error| good.failing(kind, "unauthentic", error);
    let aegis = temporary_block(Algorithm::Aegis256, "AEGIS_256")?.with("algorithm", "AEGIS_256");
    cases.extend([
        good.clone(),
        flip(refused("flipped-tag", "temporary block 5: authentication tag"), -1),
        refused("wrong-place", "temporary block 6: authentication tag").with("position", 6),
        refused("wrong-key", TAG).with_bytes("key", &key_bytes(127)),
        aegis,
    ]);
    Ok(())
}

fn temporary_block(algorithm: Algorithm, kind: &str) -> Result<Case> {
    let key = TemporaryKey::from_secret(algorithm, &Secret32::new(&mut key_bytes(128)))?;
    let (plain, mut sealed) = (pattern(4096), vec![0; 4128]);
    key.seal(algorithm, 5, &mut Fixed(0), &plain, &mut sealed)?;
    Ok(Case::new("temporary-block", kind)
        .with("expect", "success")
        .with_bytes("key", &key_bytes(128))
        .with("position", 5)
        .with_bytes("nonce", &NONCE)
        .with_bytes("plaintext", &plain)
        .with_body(&sealed))
}

fn sectors(cases: &mut Vec<Case>) -> Result<()> {
    let sealed = SectorZero::Sealed { file_id: FILE_ID };
    let laying = SectorZero::LayingPlain {
        file_id: FILE_ID,
        copy_bytes: 123_456_789,
        copy_sha256: key_bytes(200),
    };
    let sector = |kind: &str, says: &str, page_size: u32, sector: &SectorZero| {
        Case::new("sector-0", kind)
            .with("expect", "success")
            .with("says", says)
            .with_bytes("file-id", &FILE_ID)
            .with("page-size", page_size)
            .with_body(&sector.encode(page_size))
    };
    let good = sector("sealed", "sealed", 512, &sealed);
    let with_sum = |case: &Case, at: usize| {
        let mut body = case.body.clone();
        body[at] = 1;
        let sum = digest::digest(&digest::SHA256, &body[..480]);
        body[480..].copy_from_slice(sum.as_ref());
        let kind = if at < 88 { "byte-in-use" } else { "laying-byte-in-use" };
        let says = format!("sector 0: byte {at} is not zero");
        case.failing(kind, "unsupported", &says).with_body(&body)
    };
    let half_laid = sector("laying", "laying", 512, &laying)
        .with("copy-bytes", 123_456_789)
        .with_bytes("copy-sha256", &key_bytes(200));
    let mut foreign = SQLITE_MAGIC.to_vec();
    foreign.resize(512, 0);
    cases.extend([
        good.clone(),
        sector("sealed-65536", "sealed", 65536, &sealed),
        with_sum(&good, 40),
        with_sum(&half_laid, 88),
        half_laid,
        good.clone().with("kind", "foreign").with("says", "nothing").with_body(&foreign),
        flip(good.failing("flipped", "corrupt", "sector 0: its checksum does not match"), 30),
    ]);

    let wear = Wear { generation: GENERATION, reserved: 4096 };
    let key = HeaderKey::derive(&dek(), &FILE_ID)?;
    let good = case("wear", "counted", Algorithm::Aes256)
        .with("offset", WEAR_PAGES_OFFSET)
        .with("reserved", 4096)
        .with_body(&wear.encode(&key, WEAR_PAGES_OFFSET));
    let refused = |kind| good.failing(kind, "unauthentic", "wear sector: authentication tag");
    let mut used = good.body.clone();
    used[24] = 1;
    let mac = key.sign(&[&WEAR_PAGES_OFFSET.to_be_bytes(), &used[..32]]);
    used[32..].copy_from_slice(&mac);
    cases.extend([
        good.failing("byte-in-use", "unsupported", "wear sector: byte 24 is not zero")
            .with_body(&used),
        good.clone(),
        flip(refused("flipped"), 23),
        refused("wrong-place").with("offset", WEAR_LOG_OFFSET),
    ]);
    Ok(())
}

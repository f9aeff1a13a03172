//! docs/format.md and the code say the same numbers.
//!
//! Goal: neither can change alone. Method: the byte tables, equations and magic strings of the page
//! are read, objects are made by the code, and each field is looked for where the page puts it; keys
//! are derived from the page's equations.

pub mod doc;
mod envelopes;
mod log_archive;
mod media;
mod second;

use aws_lc_rs::{digest, hmac};
use doc::{hkdf_sha256, literal, numbered, Doc, Table};
use pellucid::cipher::Cipher;
use pellucid::derive::commitment;
use pellucid::header::{self, DekRow, EncryptionState, Header};
use pellucid::journal::{self, JournalHeader};
use pellucid::keys::{ContainerKeys, HeaderKey, GENERATION_WRITES};
use pellucid::nonce::SystemNonces;
use pellucid::scan::{Progress, Scan, ScanState, PROGRESS_OFFSET};
use pellucid::sector::{self, SectorZero, Wear};
use pellucid::unit::{self, FileKind, Place, TAIL_BYTES, TEMPORARY_BLOCK_BYTES};
use pellucid::wal::{self, WalHeader};
use pellucid::{Algorithm, Dek, Subject};
use pellucid_tests::container::{container, dek, FILE_ID};

/// A unit's ciphertext opened with the key and AAD the page describes.
fn opens_as_described(doc: &Doc, kind: u8, position: u64, extra: &[u8], unit: &[u8]) -> Vec<u8> {
    let layout = doc.section("## Sealed unit").table(1);
    let mut aad = vec![0; layout.is_without_gaps()];
    doc.says(&format!("The AAD is {} bytes", aad.len()));
    aad[layout.at("1")].copy_from_slice(&[1]);
    aad[layout.at("file kind")].copy_from_slice(&[kind]);
    aad[layout.at("generation")].copy_from_slice(&unit[unit.len() - 20..unit.len() - 16]);
    aad[layout.at("file id")].copy_from_slice(&FILE_ID);
    aad[layout.at("position")].copy_from_slice(&position.to_be_bytes());
    aad[layout.at("extra")][..extra.len()].copy_from_slice(extra);
    opens_with(doc, kind, &aad, unit)
}

/// The same with another AAD.
fn opens_with(doc: &Doc, kind: u8, aad: &[u8], unit: &[u8]) -> Vec<u8> {
    let tail = doc.section("## Sealed unit").table(0).with(&[("n", unit.len() - TAIL_BYTES)]);
    assert_eq!(tail.is_without_gaps(), unit.len());
    let generation = tail.of("generation", unit);
    let info = doc.section("## Derivations").info("generation key");
    let algorithm = Algorithm::Aes256;
    let parts = [info.as_bytes(), generation, &[algorithm.id(), kind]];
    let key = hkdf_sha256(dek().expose(), &FILE_ID, &parts, 32);
    let ciphertext = tail.of("ciphertext", unit);
    let mut plain = vec![0; ciphertext.len()];
    Cipher::new(algorithm, &key)
        .unwrap()
        .open(
            tail.of("nonce", unit).try_into().unwrap(),
            aad,
            ciphertext,
            tail.of("tag", unit).try_into().unwrap(),
            &mut plain,
        )
        .expect("the page describes another key or AAD");
    plain
}

#[test]
fn algorithms() {
    let doc = Doc::read();
    let rows = doc.section("## Algorithms").table(0).rows;
    assert_eq!(rows.len(), Algorithm::ALL.len());
    for (row, algorithm) in rows.iter().zip(Algorithm::ALL) {
        assert_eq!(row[0], algorithm.id().to_string());
        assert_eq!(literal(&row[1]), algorithm.name().as_bytes());
        let key = format!("{}-byte key", Cipher::key_bytes(algorithm));
        assert!(row[2].contains(&key), "{key}");
        assert_eq!(row[2].contains("deprecated"), algorithm.is_deprecated());
        assert_eq!(row[2].contains("default"), algorithm == Algorithm::default());
    }
    let (first, newest) = (header::FORMAT_VERSION, header::NEWEST_VERSION);
    doc.says(&format!("Format versions: **{first}** and **{newest}**"));
}

#[test]
fn aegis_takes_the_nonce_that_the_page_describes() {
    let doc = Doc::read();
    let layout = doc.section("## Algorithms").table(1);
    let (place, mut unit) = (Place::page(&FILE_ID, 0x0102_0304), vec![0; 512]);
    let keys = container(Algorithm::Aegis256, FILE_ID);
    keys.seal(FileKind::Database, &place, &mut SystemNonces, &[7; 480], &mut unit).unwrap();
    let tail = doc.section("## Sealed unit").table(0).with(&[("n", 480)]);
    let mut nonce = vec![0; layout.is_without_gaps()];
    nonce[layout.at("nonce of the")].copy_from_slice(tail.of("nonce", &unit));
    nonce[layout.at("generation")].copy_from_slice(tail.of("generation", &unit));
    nonce[layout.at("file kind")].copy_from_slice(&[FileKind::Database as u8]);
    nonce[layout.at("position")].copy_from_slice(&0x0102_0304_u64.to_be_bytes());
    let (generation, kind) = (keys.generation().to_be_bytes(), FileKind::Database as u8);
    let info = [b"pellucid/1 unit".as_slice(), &generation, &[5, kind]];
    let key = hkdf_sha256(dek().expose(), &FILE_ID, &info, 32);
    let mut aad = vec![1, kind, 0, 0];
    aad.extend([&generation[..], &FILE_ID, &0x0102_0304_u64.to_be_bytes(), &[0; 20]].concat());
    let (ciphertext, tag) = (tail.of("ciphertext", &unit), tail.of("tag", &unit));
    let mut plain = vec![0; 480];
    pellucid_aegis::Key::new(&key)
        .unwrap()
        .open(&nonce.try_into().unwrap(), &aad, ciphertext, tag.try_into().unwrap(), &mut plain)
        .unwrap();
    assert_eq!(plain, [7; 480]);
}

#[test]
fn triple_des_keys_are_expanded_as_described() {
    let doc = Doc::read();
    doc.section("## Algorithms").says("of 24 + 8 + 32 bytes");
    doc.says("`k ‖ iv ‖ m = HKDF-Expand(generation key, \"pellucid/1 triple-des\" ‖ nonce)`");
    let key = [7; 32];
    let cipher = Cipher::new(Algorithm::TripleDes3Key, &key).unwrap();
    let (mut sealed, mut tag) = ([0; 29], [0; 16]);
    cipher.seal(&[3; 12], b"AAD", &[1; 29], &mut sealed, &mut tag).unwrap();
    // HKDF-Expand (RFC 5869, 2.3), written out: T(n) = HMAC(key, T(n-1) ‖ info ‖ n).
    let hmac_key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let info = [&b"pellucid/1 triple-des"[..], &[3; 12]].concat();
    let first = hmac::sign(&hmac_key, &[&info[..], &[1]].concat());
    let second = hmac::sign(&hmac_key, &[first.as_ref(), &info, &[2]].concat());
    let m = hmac::Key::new(hmac::HMAC_SHA256, second.as_ref());
    let message = [&3u64.to_be_bytes()[..], b"AAD", &sealed].concat();
    assert_eq!(hmac::sign(&m, &message).as_ref()[..16], tag);
}

#[test]
fn units() {
    let doc = Doc::read();
    let section = doc.section("## Sealed unit");
    section.says(&format!("The tail is {TAIL_BYTES} bytes"));
    section.says(&format!("2^30 ({GENERATION_WRITES})"));
    assert_eq!(GENERATION_WRITES, 1 << 30);
    let keys = container(Algorithm::Aes256, FILE_ID);
    let mut unit = vec![0; 61];
    let place = Place::page(&FILE_ID, 0x0102_0304);
    keys.seal(FileKind::Database, &place, &mut SystemNonces, &[5; 29], &mut unit).unwrap();
    assert_eq!(opens_as_described(&doc, 1, 0x0102_0304, &[], &unit), [5; 29]);
    let kinds = doc.section("## Derivations").from("File kinds: ");
    let text = "File kinds: 1 database, 2 WAL, 3 rollback journal, 4 temporary.";
    kinds.says(text);
    let kinds = numbered(text.strip_prefix("File kinds: ").unwrap());
    let codes = [FileKind::Database, FileKind::Wal, FileKind::Journal, FileKind::Temporary];
    assert!(kinds.iter().map(|(id, _)| *id).eq(codes.into_iter().map(|kind| kind as u8)));
    assert_eq!(unit::GENERATION_NONE, 0);
    section.says("A unit of generation 0 is refused");
}

#[test]
fn the_container_is_laid_out_as_the_code_has_it() {
    let doc = Doc::read();
    let section = doc.section("## Container");
    let layout = section.table(0);
    assert_eq!(layout.at("sector 0"), 0..sector::SECTOR_BYTES);
    assert_eq!(layout.at("wear of database pages").start as u64, sector::WEAR_PAGES_OFFSET);
    assert_eq!(layout.at("wear of WAL frames").start as u64, sector::WEAR_LOG_OFFSET);
    for copy in 0..2 {
        let at = layout.at(&format!("header copy {copy}"));
        assert_eq!(at.start as u64, header::COPY_OFFSETS[copy]);
        assert_eq!(at.len(), header::COPY_BYTES);
    }
    let mut parts = layout.clone();
    let pages = parts.rows.pop().unwrap();
    assert_eq!(pages[0], header::REGION_BYTES.to_string());
    assert_eq!(parts.is_without_gaps() as u64, header::REGION_BYTES);
    section.says(&format!("The header region is {} bytes", header::REGION_BYTES));
    section.says(&format!("lies at {} + *x*", header::REGION_BYTES));
    section.says(&format!("Two copies of {} bytes", header::COPY_BYTES));
}

/// The checksum field covers what the page says.
fn has_sum(table: &Table, object: &[u8], field: &str) {
    let at = table.at(field);
    assert!(table.field(field).contains(&format!("0-{}", at.start - 1)), "{field}");
    let sum = digest::digest(&digest::SHA256, &object[..at.start]);
    assert_eq!(sum.as_ref(), &object[at]);
}

#[test]
fn sector_zero() {
    let layout = Doc::read().section("### Sector 0").table(0);
    let magics = layout.field("`Pellucid sealed");
    let laying_magic = literal(magics.split("or ").nth(1).unwrap());
    let sealed = SectorZero::Sealed { file_id: FILE_ID }.encode(4096);
    let laying = SectorZero::LayingPlain {
        file_id: FILE_ID,
        copy_bytes: 0x0102_0304_0506,
        copy_sha256: [8; 32],
    }
    .encode(65536);
    assert_eq!(layout.of("`Pellucid sealed", &sealed), literal(magics));
    assert_eq!(layout.of("`Pellucid sealed", &laying), laying_magic);
    assert_eq!(layout.of("a page size that is not", &sealed), 1u16.to_be_bytes());
    assert_eq!(layout.of("a page size that is not", &laying), 32768u16.to_be_bytes());
    for sector in [sealed, laying] {
        assert_eq!(layout.of("1", &sector), [1]);
        assert!(layout.zeros().into_iter().flatten().all(|at| sector[at] == 0));
        assert_eq!(layout.of("file id", &sector), FILE_ID);
        has_sum(&layout, &sector, "SHA-256 of bytes");
        assert_eq!(layout.at("SHA-256 of bytes").end, sector.len());
    }
    assert_eq!(layout.of("`laying` only: bytes", &laying), 0x0102_0304_0506u64.to_be_bytes());
    assert_eq!(layout.of("`laying` only: SHA-256", &laying), [8; 32]);
}

fn older_row(nonce_of: &Dek) -> DekRow {
    let older = 1..=0x0a0b;
    let algorithm = Algorithm::Aes128;
    DekRow::wrap_older(nonce_of, older, algorithm, &dek(), &FILE_ID, &mut SystemNonces).unwrap()
}

#[test]
fn headers() {
    let doc = Doc::read();
    let section = doc.section("### Header");
    let layout = section.table(0);
    let older = Dek::random().unwrap();
    let mut header = pellucid_tests::container::header(Algorithm::Aes256, FILE_ID);
    header.sequence = 0x0102_0304_0506_0708;
    header.generation = 0x0a0b_0c0d;
    header.created = 0x1112_1314_1516_1718;
    header.deks[0].first_generation = 0x0a0c;
    header.deks.insert(0, older_row(&older));
    header.protectors = vec![vec![1, 0, 0, 3, 7, 8, 9]];
    header.scan = Scan {
        state: ScanState::Suspended,
        modified: 0x2101,
        regenerated: 0x2202,
        keys_modified: 0x2303,
        set: 0x2404,
        older_id: None,
    };
    let key = HeaderKey::derive(&dek(), &FILE_ID).unwrap();
    let copy = header.encode(&key).unwrap();
    let rows = layout.rows.iter().find(|row| row[2] == "DEKs").unwrap();
    let (rows_at, row_bytes) = (
        rows[0].parse::<usize>().unwrap(),
        rows[1].strip_suffix(" each").unwrap().parse::<usize>().unwrap(),
    );
    let (fixed, begin) = layout.before("DEKs");
    assert_eq!(fixed.is_without_gaps(), begin);
    let used = rows_at + 2 * row_bytes + 7;

    assert_eq!(layout.of("`Pellucid header", &copy[..]), literal(layout.field("`Pellucid header")));
    assert_eq!(layout.of("format version", &copy[..]), header::FORMAT_VERSION.to_be_bytes());
    assert_eq!(layout.of("bytes in use", &copy[..]), (used as u32).to_be_bytes());
    assert_eq!(layout.of("sequence", &copy[..]), header.sequence.to_be_bytes());
    assert_eq!(layout.of("file id", &copy[..]), FILE_ID);
    assert_eq!(layout.of("SQLite's page size", &copy[..]), 4096u32.to_be_bytes());
    assert_eq!(layout.of("number of protectors", &copy[..]), [1]);
    assert_eq!(layout.of("number of DEKs", &copy[..]), [2]);
    assert_eq!(layout.of("current generation", &copy[..]), header.generation.to_be_bytes());
    assert_eq!(layout.of("birth", &copy[..]), header.created.to_be_bytes());
    scan_fields(&layout, &header.scan, &copy[..]);
    assert_eq!(copy[layout.at("older file id").start..rows_at], [0; 24]);
    let mut renamed = header.clone();
    renamed.scan.older_id = Some([0xee; 16]);
    let renamed = renamed.encode(&key).unwrap();
    assert_eq!(layout.of("older file id", &renamed[..]), [0xee; 16]);
    section.says("plus 4 if they are bound to the older file id");
    assert_eq!((renamed[rows_at + 9], renamed[rows_at + row_bytes + 9]), (4, 1));
    let most = format!("at most {}", header::MAX_PROTECTORS);
    assert!(layout.field("number of protectors").contains(&most));
    let states = layout.field("state: ").strip_prefix("state: ").unwrap();
    for (id, name) in numbered(states) {
        let mut bytes = copy.clone();
        bytes[layout.at("state")].copy_from_slice(&[id]);
        let at = layout.at("SHA-256 of bytes").start;
        let sum = digest::digest(&digest::SHA256, &bytes[..at]);
        bytes[at..].copy_from_slice(sum.as_ref());
        assert_eq!(Header::parse(&bytes[..], 0).unwrap().state.name(), name);
    }
    assert_eq!(layout.of("state", &copy[..]), [EncryptionState::Encrypted as u8]);
    assert_eq!(numbered(states).len(), 6);

    has_sum(&layout, &copy[..], "SHA-256 of bytes");
    let mac = layout.at("HMAC-SHA256");
    assert!(layout.field("HMAC-SHA256").contains(&format!("0-{}", mac.start - 1)));
    let info = doc.section("## Derivations").info("header key");
    let header_key = hkdf_sha256(dek().expose(), &FILE_ID, &[info.as_bytes()], 32);
    let header_key = hmac::Key::new(hmac::HMAC_SHA256, &header_key);
    assert_eq!(hmac::sign(&header_key, &copy[..mac.start]).as_ref(), &copy[mac]);

    dek_rows(&doc, &older, &copy[rows_at..][..2 * row_bytes]);
    assert_eq!(copy[rows_at + 2 * row_bytes..used], header.protectors[0]);
}

/// A unit that is not sealed, made by the code and checked by what the page says.
#[test]
fn plain_units() {
    let doc = Doc::read();
    let section = doc.section("## Sealed unit");
    section.says("A DEK with the flag 2 in its row does not seal");
    section.says("AES-256-GCM over no plaintext, with AAD ‖ content as AAD");
    section.says("\"pellucid/1 plain\" instead of \"pellucid/1 unit\" and the algorithm 3");
    let mut header = pellucid_tests::container::header(Algorithm::Aes128, FILE_ID);
    header.deks[0].plain = true;
    header.state = EncryptionState::Unencrypted;
    header.check_state().unwrap();
    let keys = ContainerKeys::new(&header, &dek()).unwrap();
    let (content, mut unit) = ([5; 480], [0; 512]);
    let place = Place::page(&FILE_ID, 9);
    keys.seal(FileKind::Database, &place, &mut SystemNonces, &content, &mut unit).unwrap();
    assert_eq!(unit[..480], content);
    let generation = header.generation.to_be_bytes();
    let mut aad = vec![1, 1, 0, 0];
    aad.extend_from_slice(&generation);
    aad.extend_from_slice(&FILE_ID);
    aad.extend_from_slice(&9u64.to_be_bytes());
    aad.extend_from_slice(&[0; 20]);
    aad.extend_from_slice(&content);
    let key =
        hkdf_sha256(dek().expose(), &FILE_ID, &[b"pellucid/1 plain", &generation, &[3, 1]], 32);
    let (nonce, tag) = (unit[480..492].try_into().unwrap(), unit[496..].try_into().unwrap());
    Cipher::new(Algorithm::Aes256, &key).unwrap().open(nonce, &aad, &[], tag, &mut []).unwrap();
}

fn scan_fields(layout: &Table, scan: &Scan, copy: &[u8]) {
    let states = layout.field("scan: ").strip_prefix("scan: ").unwrap();
    let named: Vec<_> = numbered(states);
    assert_eq!(named.len(), ScanState::ALL.len());
    for ((id, name), state) in named.into_iter().zip(ScanState::ALL) {
        assert_eq!((id, name.as_ref()), (state as u8, state.name()));
    }
    assert_eq!(layout.of("scan: ", copy), [scan.state as u8]);
    for (field, time) in [
        ("when the scan's state changed", scan.modified),
        ("when the current DEK was made", scan.regenerated),
        ("when a DEK or a protector changed", scan.keys_modified),
        ("when encryption was switched", scan.set),
    ] {
        assert_eq!(layout.of(field, copy), time.to_be_bytes(), "{field}");
    }
}

#[test]
fn progress() {
    let layout = Doc::read().section("### Progress").table(0);
    let key = HeaderKey::derive(&dek(), &FILE_ID).unwrap();
    let progress = Progress { generation: 0x0102, done: 0x0304, pages: 0x0506, at: 0x0708 };
    let bytes = progress.encode(&key);
    assert_eq!(layout.is_without_gaps(), bytes.len());
    assert_eq!(layout.of("`PELSCAN", &bytes), literal(layout.field("`PELSCAN")));
    assert_eq!(layout.of("generation that the pages", &bytes), progress.generation.to_be_bytes());
    assert_eq!(layout.of("pages looked at", &bytes), progress.done.to_be_bytes());
    assert_eq!(layout.of("pages in all", &bytes), progress.pages.to_be_bytes());
    assert_eq!(layout.of("when it was written", &bytes), progress.at.to_be_bytes());
    let mac = key.sign(&[&PROGRESS_OFFSET.to_be_bytes(), &bytes[..32]]);
    assert_eq!(layout.of("HMAC-SHA256", &bytes), mac);
    let container = Doc::read().section("## Container").table(0);
    assert_eq!(container.at("progress of a scan").start as u64, PROGRESS_OFFSET);
}

fn dek_rows(doc: &Doc, older: &Dek, rows: &[u8]) {
    let layout = doc.section("### Header").table(1);
    let (row, current) = rows.split_at(layout.is_without_gaps());
    assert_eq!(row.len(), current.len());
    assert_eq!(layout.of("first generation", row), 1u32.to_be_bytes());
    assert_eq!(layout.of("last generation", row), 0x0a0bu32.to_be_bytes());
    assert_eq!(layout.of("last generation", current), u32::MAX.to_be_bytes());
    assert_eq!(layout.of("algorithm", row), [1]);
    assert_eq!(layout.of("1 if this is the current DEK", row), [0]);
    assert_eq!(layout.of("1 if this is the current DEK", current), [1]);
    assert!(layout.field("1 if this is the current DEK").contains("plus 2 if its units are plain"));
    let info = doc.section("## Derivations").info("key commitment");
    let committed = hkdf_sha256(older.expose(), &FILE_ID, &[info.as_bytes()], 32);
    assert_eq!(layout.of("key commitment", row), committed);
    assert_eq!(commitment(older, &FILE_ID).unwrap()[..], committed);
    let wrapped = layout.of("nonce 12, wrapped DEK 32, tag 16", row);
    assert_eq!(layout.of("nonce 12", current), [0; 60]);
    let info = doc.section("## Derivations").info("wrapping key of older DEKs");
    let kek = hkdf_sha256(dek().expose(), &FILE_ID, &[info.as_bytes()], 32);
    let (mut plain, first) = ([0; 32], layout.of("first generation", row));
    Cipher::new(Algorithm::Aes256, &kek)
        .unwrap()
        .open(
            wrapped.first_chunk().unwrap(),
            first,
            &wrapped[12..44],
            wrapped.last_chunk().unwrap(),
            &mut plain,
        )
        .unwrap();
    assert_eq!(&plain, older.expose());
}

#[test]
fn wear() {
    let layout = Doc::read().section("### Wear").table(0);
    let key = HeaderKey::derive(&dek(), &FILE_ID).unwrap();
    let bytes = Wear { generation: 0x0102_0304, reserved: 0x0506_0708_090a }.encode(&key, 1024);
    assert_eq!(layout.is_without_gaps(), bytes.len());
    assert_eq!(layout.of("`PELWEAR", &bytes), literal(layout.field("`PELWEAR")));
    assert_eq!(layout.of("generation counted", &bytes), 0x0102_0304u32.to_be_bytes());
    assert_eq!(layout.of("writes reserved", &bytes), 0x0506_0708_090au64.to_be_bytes());
    let mac = key.sign(&[&1024u64.to_be_bytes(), &bytes[..32]]);
    assert_eq!(layout.of("HMAC-SHA256", &bytes), mac);
    assert!(layout.field("HMAC-SHA256").contains("bytes 0-31"));
}

#[test]
fn database_pages() {
    let section = Doc::read().section("## Database page");
    section.says(&format!("SQLite's page with {TAIL_BYTES} reserved bytes"));
    section.says(&format!("page without its last {TAIL_BYTES} bytes"));
    section.says(&format!("byte 20 is not {TAIL_BYTES}"));
}

#[test]
fn wal_files() {
    let doc = Doc::read();
    let section = doc.section("## WAL");
    let mut wal_header = [0; wal::HEADER_BYTES];
    wal_header[..4].copy_from_slice(&0x377f_0682u32.to_be_bytes());
    wal_header[8..12].copy_from_slice(&512u32.to_be_bytes());
    wal::mark_header(&mut wal_header, wal::Version::First);
    assert_eq!(WalHeader::parse(&wal_header).unwrap().sealed, Some(wal::Version::First));
    let version = u32::from_be_bytes(*wal_header[4..].first_chunk().unwrap());
    section.says(&format!("version {version:#x} instead of 3007000"));
    section.says(&format!("**Header**, {} bytes", wal::HEADER_BYTES));
    section.says(&format!("**Frame**, {} + page size", wal::FRAME_HEADER_BYTES));

    let layout = section.table(0).with(&[("page size", 512)]);
    let frame: Vec<u8> = (0..536).map(|at| if at < 504 { at as u8 } else { 0 }).collect();
    assert_eq!(layout.is_without_gaps(), frame.len());
    let mut sealed = vec![0; frame.len()];
    let keys = container(Algorithm::Aes256, FILE_ID);
    let run = wal::Run::of(&wal_header, wal::Version::First);
    let place = (&run, wal::Stamp::default());
    wal::seal_frame(&keys, &mut SystemNonces, place, 9, &frame, &mut sealed).unwrap();
    let clear = layout.of("page number 4, commit size 4, salts 8", &sealed);
    assert_eq!(clear, &frame[..wal::FRAME_CLEAR_BYTES]);
    let unit = &sealed[layout.at("unit's ciphertext").start..layout.at("unit's tail").end];
    assert_eq!(opens_as_described(&doc, 2, 9, clear, unit), frame[16..504]);
    section.says("extra = bytes 0-15 of the frame, then 4 zeros");
}

#[test]
fn journals() {
    let doc = Doc::read();
    let section = doc.section("## Rollback journal");
    let keys = container(Algorithm::Aes256, FILE_ID);
    let header = JournalHeader { id: [3; 16], fields: [4; journal::FIELDS_BYTES] };
    let part = header.seal(&keys, &mut SystemNonces, 1024).unwrap();
    let layout = section.table(0);
    assert_eq!(layout.of("`\\0PELJRNL`", &part), literal(layout.field("`\\0PELJRNL`")));
    for (copy, page) in [("copy 1", 0), ("copy 2", u32::MAX)] {
        let (id, unit) = layout.of(copy, &part).split_at(16);
        assert_eq!(id, header.id);
        let extra = [id, &page.to_be_bytes()].concat();
        assert_eq!(opens_as_described(&doc, 3, 1024, &extra, unit), header.fields);
    }
    assert_eq!(layout.at("copy 2").end, journal::SECTOR_PART_BYTES);
    assert_eq!(layout.rows[5][0], journal::SECTOR_PART_BYTES.to_string());
    section.says(&format!("{} zero bytes end a journal", journal::SECTOR_PART_BYTES));
    section.says("u32(0) for copy 1, u32(2^32 − 1) for copy 2");

    let layout = section.table(1).with(&[("page size", 512)]);
    assert_eq!(layout.is_without_gaps(), journal::record_bytes(512));
    section.says(&format!("**Record**, page size + {}", journal::record_bytes(512) - 512));
    let mut record: Vec<u8> = (0..516).map(|at| if at < 484 { at as u8 } else { 0 }).collect();
    record.extend(*b"sum!");
    let (mut sealed, plain) = (vec![0; 520], record.clone());
    let nonces = &mut SystemNonces;
    journal::seal_record(&keys, nonces, &[3; 16], 2048, &mut record, &mut sealed).unwrap();
    let page = layout.of("page number", &sealed);
    assert_eq!(page, &plain[..4]);
    let unit = &sealed[layout.at("unit's ciphertext").start..layout.at("unit's tail").end];
    let extra = [&[3; 16], page].concat();
    let opened = opens_as_described(&doc, 3, 2048, &extra, unit);
    assert_eq!(opened, [&plain[4..484], b"sum!"].concat());
}

/// The value of a constant in another crate's source.
pub fn constant(file: &str, name: &str) -> String {
    let path = format!("{}/../{file}", env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(path).unwrap();
    let line = source.lines().find(|line| line.contains(&format!("const {name}:"))).expect(name);
    line.rsplit("= ").next().unwrap().trim_end_matches(';').to_owned()
}

#[test]
fn what_the_shim_decides() {
    let doc = Doc::read();
    let section = doc.section("## Temporary file");
    section.says(&format!("logical blocks of {TEMPORARY_BLOCK_BYTES} bytes"));
    let unit = TEMPORARY_BLOCK_BYTES + TAIL_BYTES;
    section.says(&format!("a unit of {unit} bytes at block number × {unit}"));
    let nonces: u32 = constant("pellucid-vfs/src/pool.rs", "AHEAD").parse().unwrap();
    doc.says(&format!(
        "counted up by one as a big-endian number (NIST SP 800-38D, 8.2.2), at most {} times",
        nonces - 1
    ));
    let (first, most) = (
        constant("pellucid-vfs/src/container/wear.rs", "RESERVE_FIRST"),
        constant("pellucid-vfs/src/container/wear.rs", "RESERVE_MOST"),
    );
    doc.says(&format!("blocks that start at {first} and double up to {most}"));
    let keys: ContainerKeys = container(Algorithm::Aes256, FILE_ID);
    let told =
        keys.open(FileKind::Database, &Place::page(&FILE_ID, 1), &[0; 64], &mut [0; 32], || {
            Subject::Page(1)
        });
    assert!(told.is_err(), "a unit of generation 0 is refused");
}

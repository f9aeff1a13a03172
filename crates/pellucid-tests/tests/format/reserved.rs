//! Goal: what docs/format.md calls zero stays free for later versions: nothing that version 1 reads passes over it.
//!
//! Method: each object is made by the code, one such byte after another is set, sums and tags are made right again with
//! the key, and the object is opened: it has to be refused as newer, not as damaged. Where the bytes lie is read from the
//! page's tables. Then the flags, word by word and bit by bit, and the page's reserved numbers against the code's.

use std::ops::Range;
use std::path::Path;

use aws_lc_rs::digest;
use pellucid::cipher::Cipher;
use pellucid::header::{DekRow, Header, COPY_BYTES};
use pellucid::journal::{self, JournalHeader};
use pellucid::keys::HeaderKey;
use pellucid::lsn::Lsn;
use pellucid::media::{
    ChainPlace, ChunkKind, ChunkPrefix, Compression, Entry, FamilyEnd, Index, Kind, LogFacts,
    Manifest, MediaHeader, MediaVersion, SetHeader, SetKeys, Stored, Version2, PREFIX_BYTES,
};
use pellucid::nonce::SystemNonces;
use pellucid::protector::{Argon2Cost, Passphrase, Wrapping};
use pellucid::scan::{Progress, PROGRESS_OFFSET};
use pellucid::sector::{SectorZero, Wear, SECTOR_BYTES};
use pellucid::{Algorithm, Dek, Error, Subject};
use pellucid_keyring::{read_key_backup, Change, DatabaseMemory, Keyring, MasterKey};
use pellucid_tests::container::{container, dek, header, FILE_ID};

use crate::format_md::constant;
use crate::format_md::doc::{hkdf_sha256, Doc, Table};

/// Refused as something newer, which is no damage.
#[track_caller]
pub fn is_newer<T: std::fmt::Debug>(told: Result<T, Error>, says: &str, what: &str) {
    match told {
        Err(error @ Error::Unsupported { .. }) => {
            let told = error.to_string();
            assert!(told.contains(says) && told.contains("newer version"), "{what}: {told}");
        }
        other => panic!("{what}: {other:?}"),
    }
}

/// Sets each byte of `ranges` in turn and hands the object over.
pub fn each_byte(object: &[u8], ranges: &[Range<usize>], mut open: impl FnMut(usize, Vec<u8>)) {
    assert!(!ranges.is_empty());
    for at in ranges.iter().cloned().flatten() {
        assert_eq!(object[at], 0, "byte {at} is not zero to begin with");
        let mut changed = object.to_vec();
        changed[at] = 1 << (at % 8);
        open(at, changed);
    }
}

pub fn sum(bytes: &mut [u8], at: usize) {
    let sum = digest::digest(&digest::SHA256, &bytes[..at]);
    bytes[at..at + 32].copy_from_slice(sum.as_ref());
}

fn header_key() -> HeaderKey {
    HeaderKey::derive(&dek(), &FILE_ID).unwrap()
}

/// A copy with an older DEK and two protectors, and where the last of those ends.
fn copy() -> (Vec<u8>, usize) {
    let older = Dek::random().unwrap();
    let mut header = header(Algorithm::Aes256, FILE_ID);
    header.generation = 9;
    header.deks[0].first_generation = 9;
    let nonces = &mut SystemNonces;
    let row = DekRow::wrap_older(&older, 1..=8, Algorithm::Aes128, &dek(), &FILE_ID, nonces);
    header.deks.insert(0, row.unwrap());
    header.protectors = vec![vec![1, 0, 0, 3, 7, 8, 9], vec![2, 0, 0, 1, 7]];
    let end = 128 + 2 * 104 + 7 + 5;
    (header.encode(&header_key()).unwrap().to_vec(), end)
}

fn signed(mut copy: Vec<u8>) -> Vec<u8> {
    let mac = header_key().sign(&[&copy[..COPY_BYTES - 64]]);
    copy[COPY_BYTES - 64..COPY_BYTES - 32].copy_from_slice(&mac);
    sum(&mut copy, COPY_BYTES - 32);
    copy
}

#[test]
fn headers() {
    let section = Doc::read().section("### Header");
    let layout = section.table(0);
    let (copy, end) = copy();
    Header::parse(&copy, 0).unwrap();
    let mut zeros = layout.zeros();
    assert_eq!(zeros, [55..56, 69..72, 126..128]);
    // The padding has no numbers of its own in the page.
    zeros.push(end..layout.at("HMAC-SHA256").start);
    let row = section.table(1);
    for (number, current) in [(0, false), (1, true)] {
        let at = 128 + number * row.is_without_gaps();
        let wrapped = row.at("nonce 12, wrapped DEK 32");
        let own = row.zeros().into_iter().chain(current.then_some(wrapped));
        zeros.extend(own.map(|range| range.start + at..range.end + at));
    }
    each_byte(&copy, &zeros, |at, changed| {
        is_newer(
            Header::parse(&signed(changed.clone()), 0),
            &format!("byte {at} is not zero"),
            "header",
        );
        // Damage stays damage.
        assert!(matches!(Header::parse(&changed, 0), Err(Error::Corrupt { .. })), "byte {at}");
    });
}

#[test]
fn flags_of_headers() {
    let doc = Doc::read();
    let at = doc.section("### Header").table(0).at("[flags]").start;
    let (copy, _) = copy();
    flags(
        &doc,
        at,
        &copy,
        signed,
        |bytes| Header::parse(&bytes, 0),
        |header| header.encode(&header_key()).map(|copy| copy.to_vec()),
    );
}

/// Each bit of each word, in an object that has the words at `at`.
fn flags<T: std::fmt::Debug>(
    doc: &Doc,
    at: usize,
    object: &[u8],
    signed: impl Fn(Vec<u8>) -> Vec<u8>,
    parse: impl Fn(Vec<u8>) -> Result<T, Error>,
    encode: impl Fn(&T) -> Result<Vec<u8>, Error>,
) {
    let words = doc.section("### Flags").table(0);
    assert_eq!(words.is_without_gaps(), pellucid::flags::FLAGS_BYTES);
    let with = |word: &str, bit: usize| {
        let mut changed = object.to_vec();
        let last = at + words.at(word).end - 1;
        changed[last - bit / 8] |= 1 << (bit % 8);
        signed(changed)
    };
    for bit in 0..16 {
        let named = format!("flags {:#06x}", 1 << bit);
        is_newer(parse(with("incompatible", bit)), &format!("incompatible {named}"), "flag");
        let read = parse(with("read-only", bit)).unwrap();
        is_newer(encode(&read), &format!("read-only {named}"), "a read-only flag");
        let bytes = with("compatible", bit);
        assert_eq!(encode(&parse(bytes.clone()).unwrap()).unwrap(), bytes, "kept");
    }
}

#[test]
fn sector_zero() {
    let layout = Doc::read().section("### Sector 0").table(0);
    assert_eq!(layout.is_without_gaps(), SECTOR_BYTES);
    let laying = SectorZero::LayingPlain { file_id: FILE_ID, copy_bytes: 9, copy_sha256: [8; 32] };
    let own: Vec<_> =
        ["`laying` only: bytes", "`laying` only: SHA-256"].map(|f| layout.at(f)).into();
    for (sector, more) in [(SectorZero::Sealed { file_id: FILE_ID }, own), (laying, vec![])] {
        let zeros = [layout.zeros(), more].concat();
        each_byte(&sector.encode(4096), &zeros, |at, mut changed| {
            assert!(matches!(SectorZero::parse(&changed), Err(Error::Corrupt { .. })), "{at}");
            sum(&mut changed, SECTOR_BYTES - 32);
            is_newer(SectorZero::parse(&changed), &format!("byte {at} is not zero"), "sector 0");
        });
    }
}

#[test]
fn wear_and_progress() {
    let doc = Doc::read();
    let signed = |mut bytes: [u8; 64], offset: u64| {
        let mac = header_key().sign(&[&offset.to_be_bytes(), &bytes[..32]]);
        bytes[32..].copy_from_slice(&mac);
        bytes
    };
    let wear = Wear { generation: 3, reserved: 64 }.encode(&header_key(), 512);
    each_byte(&wear, &doc.section("### Wear").table(0).zeros(), |at, changed| {
        let changed = signed(changed.try_into().unwrap(), 512);
        let told = Wear::parse(&changed, &header_key(), 512);
        is_newer(told, &format!("byte {at} is not zero"), "wear");
        assert_eq!(Wear::look(&changed), None);
    });
    let progress = Progress { generation: 3, done: 1, pages: 2, at: 9 }.encode(&header_key());
    each_byte(&progress, &doc.section("### Progress").table(0).zeros(), |at, changed| {
        let changed = signed(changed.try_into().unwrap(), PROGRESS_OFFSET);
        assert_eq!(Progress::parse(&changed), None, "byte {at}");
        assert_eq!(Progress::authentic(&changed, &header_key()), None, "byte {at}");
    });
}

/// No sum covers these: it may be damage, and is told as both.
#[test]
fn journal_headers() {
    let layout = Doc::read().section("## Rollback journal").table(0);
    assert_eq!(layout.is_without_gaps(), journal::SECTOR_READ_BYTES);
    let keys = container(Algorithm::Aes256, FILE_ID);
    let header = JournalHeader { id: [3; 16], fields: [4; journal::FIELDS_BYTES] };
    let mut sector = header.seal(&keys, &mut SystemNonces, 512).unwrap().to_vec();
    sector.resize(journal::SECTOR_READ_BYTES, 0);
    journal::check_rest(&sector, 512).unwrap();
    each_byte(&sector, &layout.zeros(), |at, changed| {
        assert_eq!(JournalHeader::open(&keys, &changed, 512).unwrap(), (header.clone(), false));
        let told = journal::check_rest(&changed, 512).unwrap_err();
        assert!(matches!(told, Error::Corrupt { .. }), "{told:?}");
        let told = told.to_string();
        assert!(told.contains(&format!("byte {at} of its sector is not zero")), "{told}");
    });
}

fn set_header(algorithm: Option<Algorithm>, kind: Kind) -> SetHeader {
    SetHeader {
        version2: None,
        media_set: [1; 16],
        set: SET,
        family: 1,
        families: 1,
        position: 1,
        kind,
        algorithm,
        compression: Compression::None,
        copy_only: false,
        sealed_source: false,
        page_size: 512,
        pages: 3,
        chunk_pages: 2,
        begun: 5,
        expires: 6,
        source: [0; 16],
        base: if kind == Kind::Full { [0; 16] } else { [3; 16] },
        commitment: if algorithm.is_some() { [4; 32] } else { [0; 32] },
        source_thumbprint: [0; 32],
        page_hash_key: if algorithm.is_some() { [0; 32] } else { [5; 32] },
        flags: pellucid::flags::Flags::default(),
        protectors: if algorithm.is_some() { vec![vec![1, 0, 0, 1, 7]] } else { vec![] },
        description: b"{}".to_vec(),
    }
}

const SET: [u8; 16] = [2; 16];

fn set_keys() -> SetKeys {
    SetKeys::derive(&dek(), &SET, Algorithm::Aes256).unwrap()
}

/// HMAC, if there is one, and SHA-256 at the end made right.
fn resigned(mut part: Vec<u8>, sealed: bool) -> Vec<u8> {
    let mac = part.len() - 64;
    if sealed {
        let own = set_keys().header().sign(&[&part[..mac]]);
        part[mac..mac + 32].copy_from_slice(&own);
    }
    sum(&mut part, mac + 32);
    part
}

#[test]
fn media_headers() {
    let table = Doc::read().section("### Media header").table(0).with(&[("n", 3), ("m", 2)]);
    let header = MediaHeader {
        name: "abc".into(),
        description: "de".into(),
        ..MediaHeader::single([1; 16], true, true, 9)
    };
    let bytes = header.encode().unwrap();
    // The padding has no length of its own in the page.
    let zeros = [27..32, 65..table.at("SHA-256 of bytes 0-4063").start];
    assert_eq!(table.zeros(), zeros[..1]);
    each_byte(&bytes, &zeros, |at, mut changed| {
        assert!(matches!(MediaHeader::parse(&changed), Err(Error::Corrupt { .. })), "{at}");
        sum(&mut changed, bytes.len() - 32);
        is_newer(MediaHeader::parse(&changed), &format!("byte {at} is not zero"), "media header");
    });
    for bit in 2..8 {
        let mut changed = bytes.clone();
        changed[26] |= 1 << bit;
        sum(&mut changed, bytes.len() - 32);
        is_newer(MediaHeader::parse(&changed), &format!("flags {}", 1 << bit), "media header");
    }
}

#[test]
fn set_headers() {
    let doc = Doc::read();
    let table = doc.section("### Set header").table(0);
    for algorithm in [None, Some(Algorithm::Aes256)] {
        for kind in [Kind::Full, Kind::Differential] {
            let header = set_header(algorithm, kind);
            let sealed = algorithm.is_some();
            let keys = set_keys();
            let encode = |header: &SetHeader| header.encode(sealed.then_some(&keys));
            let bytes = encode(&header).unwrap();
            let own = 256 + header.protectors.concat().len() + header.description.len();
            let mut zeros = table.zeros();
            assert_eq!(zeros, [80..84, 230..232, 242..256]);
            let mac = bytes.len() - 64;
            zeros.push(own..mac);
            match sealed {
                true => zeros.push(table.at("key of the page hashes")),
                false => zeros.extend([table.at("key commitment"), mac..mac + 32]),
            }
            if kind == Kind::Full {
                zeros.push(table.at("set id of the full set"));
            }
            each_byte(&bytes, &zeros, |at, changed| {
                let signs = sealed || !(mac..mac + 32).contains(&at);
                let changed = resigned(changed, sealed && signs);
                let told = SetHeader::parse(&changed, 1);
                is_newer(told, &format!("byte {at} is not zero"), "set header");
            });
            let signed = |bytes| resigned(bytes, sealed);
            let parse = |bytes: Vec<u8>| SetHeader::parse(&bytes, 1);
            let at = table.at("[flags]").start;
            // A set header is written once; who writes one again keeps what it said.
            for bit in 0..16 {
                let with = |word: usize| {
                    let mut changed = bytes.clone();
                    changed[at + word + 1 - bit / 8] |= 1 << (bit % 8);
                    signed(changed)
                };
                let named = format!("incompatible flags {:#06x}", 1 << bit);
                is_newer(parse(with(0)), &named, "set header");
                let read = parse(with(2)).unwrap();
                let told = read.flags.check_writable(Subject::BackupSet(1));
                is_newer(told, &format!("read-only flags {:#06x}", 1 << bit), "set header");
                let kept = parse(with(4)).unwrap();
                assert_eq!(encode(&kept).unwrap(), with(4));
            }
        }
    }
}

#[test]
fn set_headers_of_version_2() {
    let section = Doc::read().section("### Set header");
    let block = section.from("Version 2 has a block").table(0);
    let [logs, fulls, differentials] = [
        "In the 72 bytes of a log set",
        "In the 72 bytes of a full set",
        "In the 72 bytes of a differential",
    ]
    .map(|own| section.from(own).table(0));
    let keys = set_keys();
    let (first, last) = (Lsn::new(1, 2), Lsn::new(3, 4));
    let chained = Version2 {
        before: [7; 32],
        padded: true,
        chain: Some(ChainPlace { fork: [8; 16], first, last }),
        ..Version2::default()
    };
    let facts = LogFacts {
        full: Lsn::new(1, 1),
        first_time: 0x0102_0304_0506_0708,
        last_time: 0x1112_1314_1516_1718,
        commits: 0x2122_2324,
        bulk: true,
        tail: true,
        gap: true,
    };
    for (kind, own, table, zeros) in [
        (Kind::Full, chained, &fulls, 288..328),
        (Kind::Differential, Version2 { base: [9; 32], ..chained }, &differentials, 320..328),
        (Kind::Log, Version2 { log: Some(facts), ..chained }, &logs, 288..296),
    ] {
        let mut header =
            SetHeader { version2: Some(own), ..set_header(Some(Algorithm::Aes256), kind) };
        header.base = if kind == Kind::Differential { [3; 16] } else { [0; 16] };
        let bytes = header.encode(Some(&keys)).unwrap();
        assert_eq!(block.of("SHA-256 of the manifest of the set before", &bytes), [7; 32]);
        assert_eq!(block.of("padding: ", &bytes), [1]);
        assert_eq!(table.of("recovery fork", &bytes), [8; 16]);
        assert_eq!(table.of("first LSN", &bytes), first.encode());
        assert_eq!(table.of("last LSN", &bytes), last.encode());
        if kind == Kind::Differential {
            assert_eq!(table.of("SHA-256 of the manifest of the full set", &bytes), [9; 32]);
        }
        if kind == Kind::Log {
            assert_eq!(table.of("LSN of the full set", &bytes), facts.full.encode());
            assert_eq!(table.of("earliest time", &bytes), facts.first_time.to_be_bytes());
            assert_eq!(table.of("latest time", &bytes), facts.last_time.to_be_bytes());
            assert_eq!(table.of("number of commits", &bytes), facts.commits.to_be_bytes());
            assert_eq!(table.of("1 if nothing can stop inside", &bytes), [0, 0, 0, 7]);
        }
        assert_eq!(SetHeader::parse(&bytes, 1).unwrap(), header);
        assert_eq!(table.zeros(), [zeros]);
        let zeros = [table.zeros(), block.zeros()].concat();
        each_byte(&bytes, &zeros, |at, changed| {
            let told = SetHeader::parse(&resigned(changed, true), 1);
            is_newer(told, &format!("byte {at} is not zero"), "set header");
        });
        for padding in 2..=u8::MAX {
            let mut changed = bytes.clone();
            changed[360] = padding;
            is_newer(SetHeader::parse(&resigned(changed, true), 1), "flags", "set header");
        }
        for bit in 3..32 {
            let mut changed = bytes.clone();
            changed[327 - bit / 8] |= 1 << (bit % 8);
            if kind == Kind::Log {
                is_newer(SetHeader::parse(&resigned(changed, true), 1), "flags", "set header");
            }
        }
    }
    // Outside of a chain the place is zeros.
    let no_place = Version2 { chain: None, ..chained };
    for (kind, place) in [(Kind::Full, 256..288), (Kind::Differential, 288..320)] {
        let header =
            SetHeader { version2: Some(no_place), ..set_header(Some(Algorithm::Aes256), kind) };
        let bytes = header.encode(Some(&keys)).unwrap();
        assert_eq!(bytes[place.clone()], [0; 32]);
        assert_eq!(SetHeader::parse(&bytes, 1).unwrap(), header);
        // The last LSN says whether there is one.
        let before_last = place.start..place.end - 8;
        each_byte(&bytes, std::slice::from_ref(&before_last), |at, changed| {
            let told = SetHeader::parse(&resigned(changed, true), 1);
            is_newer(told, &format!("byte {at} is not zero"), "set header");
        });
    }
    // Version 1 refuses the type as reserved.
    let mut log = set_header(Some(Algorithm::Aes256), Kind::Full).encode(Some(&keys)).unwrap();
    log[64] = Kind::Log as u8;
    let told = SetHeader::parse(&resigned(log, true), 1);
    is_newer(told, "backup type 2 is reserved", "set header");
}

#[test]
fn manifests_and_indexes() {
    let doc = Doc::read();
    let manifest = Manifest {
        set: SET,
        damaged: false,
        finished: 1,
        content_bytes: 2,
        stored_bytes: 3,
        chunks: 4,
        index_chunks: 5,
        pages: 6,
        missing: 7,
        index_offset: 8,
        families: vec![FamilyEnd { bytes: 9, root: [1; 32] }],
        signing: pellucid::media::Signing::Version1,
    };
    let bytes = manifest.encode(Some(&set_keys())).unwrap();
    let table = doc.section("### Manifest").table(0).with(&[("n", bytes.len())]);
    each_byte(&bytes, &table.zeros(), |at, changed| {
        let told = Manifest::parse(&resigned(changed, true));
        is_newer(told, &format!("byte {at} is not zero"), "manifest");
    });
    let in_clear = manifest.encode(None).unwrap();
    let mac = in_clear.len() - 64;
    Manifest::check_unsealed(&in_clear).unwrap();
    each_byte(&in_clear, std::slice::from_ref(&(mac..mac + 32)), |at, changed| {
        let told = Manifest::check_unsealed(&resigned(changed, false));
        is_newer(told, &format!("byte {at} is not zero"), "manifest");
    });

    let entry =
        Entry { family: 1, offset: 9, stored_bytes: 8, first_page: 1, pages: 2, checksum: [3; 16] };
    let index = Index { chunks: vec![entry; 2], hashes: vec![entry], missing: vec![17] };
    let own = doc.section("### Index").from("An entry:").table(0).zeros();
    let zeros: Vec<_> = (0..3usize)
        .flat_map(|n| own.iter().map(move |r| 12 + n * 44 + r.start..12 + n * 44 + r.end))
        .collect();
    each_byte(&index.encode(), &zeros, |at, changed| {
        is_newer(Index::parse(&changed), &format!("byte {at} is not zero"), "index");
    });
}

#[test]
fn chunks() {
    let zeros = Doc::read().section("### Chunk").table(0).zeros();
    let mut prefix = ChunkPrefix {
        kind: ChunkKind::Pages,
        stored: Stored::Raw,
        without_tails: false,
        number: 7,
        first_page: 1,
        pages: 1,
        content_bytes: 16,
        stored_bytes: 0,
    };
    let mut body = vec![9; 16];
    let bytes = prefix.seal(None, &mut body).unwrap();
    let summed = |mut prefix: Vec<u8>| -> [u8; PREFIX_BYTES] {
        let hash = blake3::hash(&[&prefix[..32], &body].concat());
        prefix[32..].copy_from_slice(&hash.as_bytes()[..16]);
        prefix.try_into().unwrap()
    };
    let newer = |changed: Vec<u8>, says: &str| {
        let damaged: [u8; PREFIX_BYTES] = changed.clone().try_into().unwrap();
        assert_eq!(ChunkPrefix::parse(&damaged), None);
        let two = MediaVersion::Two;
        assert!(ChunkPrefix::newer(two, &damaged, &body).is_none(), "damage is no newer version");
        let changed = summed(changed);
        assert_eq!(ChunkPrefix::parse(&changed), None);
        assert_eq!(ChunkPrefix::newer_bytes(two, &changed), Some(16));
        is_newer::<()>(Err(ChunkPrefix::newer(two, &changed, &body).unwrap()), says, "chunk");
    };
    each_byte(&bytes, &zeros, |_, changed| newer(changed, "its prefix has values"));
    for kind in pellucid::media::RESERVED_CHUNK_KINDS {
        let mut changed = bytes.to_vec();
        changed[4] = kind;
        newer(changed, &format!("chunk 7: kind {kind} is reserved"));
    }
    // Version 1 has no log sets.
    for kind in [ChunkKind::LogPages, ChunkKind::Commits] {
        let mut changed = bytes.to_vec();
        changed[4] = kind as u8;
        let changed = summed(changed);
        assert!(ChunkPrefix::parse_in(MediaVersion::Two, &changed).is_some());
        assert_eq!(ChunkPrefix::newer_bytes(MediaVersion::Two, &changed), None);
        assert_eq!(ChunkPrefix::newer_bytes(MediaVersion::One, &changed), Some(16));
        let told = ChunkPrefix::newer(MediaVersion::One, &changed, &body).unwrap();
        is_newer::<()>(Err(told), &format!("kind {} is reserved", kind as u8), "chunk");
    }
}

/// A keyring whose file at `path` has a byte of flags, sealed again as the page says.
fn with_flags(home: &Path, path: &str, kind: u8, name: &str, flags: u8) {
    let parent: [u8; 32] = match kind {
        1 => std::fs::read(home.join("service.key")).unwrap().try_into().unwrap(),
        _ => {
            let service = std::fs::read(home.join("service.key")).unwrap();
            let file = std::fs::read(home.join("keyring/master.key")).unwrap();
            sealed(&service, 1, "", &file, None).try_into().unwrap()
        }
    };
    let file = std::fs::read(home.join(path)).unwrap();
    std::fs::write(home.join(path), sealed(&parent, kind, name, &file, Some(flags))).unwrap();
}

/// The content of a sealed file, or with flags the file with these.
fn sealed(parent: &[u8], kind: u8, name: &str, file: &[u8], flags: Option<u8>) -> Vec<u8> {
    let key = hkdf_sha256(parent, b"", &[b"pellucid/1 keyring", &[kind]], 32);
    let cipher = Cipher::new(Algorithm::Aes256, &key).unwrap();
    let (header, body) = file.split_at(48);
    let (ciphertext, tag) = body.split_last_chunk::<16>().unwrap();
    let nonce = header.last_chunk::<12>().unwrap();
    let mut content = vec![0; ciphertext.len()];
    let aad = [header, name.as_bytes()].concat();
    cipher.open(nonce, &aad, ciphertext, tag, &mut content).unwrap();
    let Some(flags) = flags else { return content };
    let mut made = [header, &vec![0; content.len()], &[0; 16]].concat();
    made[19] = flags;
    let aad = [&made[..48], name.as_bytes()].concat();
    let (mut ciphertext, mut tag) = (vec![0; content.len()], [0; 16]);
    cipher.seal(nonce, &aad, &content, &mut ciphertext, &mut tag).unwrap();
    made[48..48 + content.len()].copy_from_slice(&ciphertext);
    made[48 + content.len()..].copy_from_slice(&tag);
    made
}

#[test]
fn keyring_files() {
    let section = Doc::read().section("### Keyring").from("**Sealed file**");
    assert_eq!(section.table(0).at("[flags]"), 19..20);
    let home = tempfile::tempdir().unwrap();
    let id = pellucid::hash::hex(&FILE_ID);
    let path = format!("keyring/databases/{id}");
    let memory = |sequence| DatabaseMemory { sequence, sealed: true, ..Default::default() };
    let (keyring, _) = Keyring::open_or_create(home.path()).unwrap();
    let byte = || std::fs::read(home.path().join(&path)).unwrap()[19];
    for bit in 0..8 {
        keyring.remember_database(&FILE_ID, &memory(5)).unwrap();
        assert_eq!(byte(), 0);
        with_flags(home.path(), &path, 3, &id, 1 << bit);
        let read = keyring.recall_database(&FILE_ID);
        let before = std::fs::read(home.path().join(&path)).unwrap();
        let written = keyring.remember_database(&FILE_ID, &memory(6));
        let exchange = || {
            let change = Change::begin(home.path()).unwrap();
            change.replace_database_key(Some(&keyring), None, None, true)
        };
        let bundle = home.path().join("bundle");
        let password = Passphrase::new(b"a Pa55word");
        let cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };
        let export = || keyring.export_instance(&bundle, &Wrapping::Passphrase(&password, cost));
        let says = match bit {
            0..=2 => format!("incompatible flags {:#06x}", 1 << bit),
            3..=5 => format!("read-only flags {:#06x}", 1 << (bit - 3)),
            _ => String::new(),
        };
        match bit {
            0..=2 => is_newer(read, &says, "read"),
            _ => assert_eq!(read.unwrap(), Some(memory(5))),
        }
        if bit < 6 {
            is_newer(written, &says, "written");
            is_newer(exchange(), &says, "exchanged, forced");
            is_newer(export(), &says, "exported");
            assert!(!bundle.exists());
            assert_eq!(std::fs::read(home.path().join(&path)).unwrap(), before);
            assert!(!home.path().join("keyring/master.next").exists());
        } else {
            written.unwrap();
            assert_eq!(byte(), 1 << bit, "kept");
            assert_eq!(keyring.recall_database(&FILE_ID).unwrap(), Some(memory(6)));
        }
        std::fs::remove_file(home.path().join(&path)).unwrap();
    }
    // The key above all of it, and its exchange.
    for (flags, says) in [(1, "incompatible flags 0x0001"), (8, "read-only flags 0x0001")] {
        with_flags(home.path(), "keyring/master.key", 1, "", flags);
        let change = Change::begin(home.path()).unwrap();
        is_newer(change.replace_service_key(None, true), says, "the service master key");
        assert!(!home.path().join("service.next").exists());
        drop(change);
        assert_eq!(Keyring::open(home.path()).is_ok(), flags == 8);
        let mut file = std::fs::read(home.path().join("keyring/master.key")).unwrap();
        file[19] = 0;
        std::fs::write(home.path().join("keyring/master.key"), &file).unwrap();
        let told = Keyring::open(home.path()).unwrap_err();
        assert!(matches!(told, Error::Unauthentic { .. }), "the tag covers the flags: {told:?}");
        file[19] = flags;
        std::fs::write(home.path().join("keyring/master.key"), &file).unwrap();
        with_flags(home.path(), "keyring/master.key", 1, "", 0);
        Keyring::open(home.path()).unwrap();
    }
}

#[test]
fn password_files() {
    let zeros = Doc::read().section("### Keyring").from("**Password file**").table(0).zeros();
    let home = tempfile::tempdir().unwrap();
    let (keyring, _) = Keyring::open_or_create(home.path()).unwrap();
    let (path, password) = (home.path().join("backup"), Passphrase::new(b"a Pa55word"));
    keyring.back_up_database_key(&path, &password).unwrap();
    each_byte(&std::fs::read(&path).unwrap(), &zeros, |at, mut changed| {
        let end = changed.len() - 32;
        sum(&mut changed, end);
        std::fs::write(&path, changed).unwrap();
        let told = read_key_backup(MasterKey::Database, &path, &password).map(|_| ());
        is_newer(told, &format!("byte {at} is not zero"), "password file");
    });
}

/// The row of the table "Reserved" that begins with `what`: its numbers.
fn reserved(table: &Table, what: &str) -> Vec<u64> {
    let row = table.rows.iter().find(|row| row[0].starts_with(what)).expect(what);
    let number = |text: &str| match text.trim().strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.trim().parse().unwrap(),
    };
    row[1].split(',').map(number).collect()
}

#[test]
fn reserved_numbers_are_those_of_the_code() {
    let table = Doc::read().section("### Reserved").table(0);
    let header = u64::from(pellucid::header::RESERVED_VERSION);
    assert_eq!(reserved(&table, "format version of a [container's header]"), [header]);
    assert_eq!(reserved(&table, "[algorithm]"), [u64::from(Algorithm::RESERVED_ID)]);
    let log = u64::from(pellucid::wal::RESERVED_VERSION);
    assert_eq!(reserved(&table, "version of a [WAL]"), [log]);
    let chunks = pellucid::media::RESERVED_CHUNK_KINDS.map(u64::from);
    assert_eq!(reserved(&table, "kind of [chunk]"), chunks);
    let signature = u64::from(pellucid::media::RESERVED_SIGNATURE);
    assert_eq!(reserved(&table, "kind of [signature]"), [signature]);
    let lock = table.rows.iter().find(|row| row[0].starts_with("lock byte")).unwrap();
    assert_eq!(lock[1], "2^62 + 1");
    let own = |name| constant("pellucid-engine/src/scan/turn.rs", name);
    assert_eq!((own("BYTE"), own("RESERVED_BYTE")), ("1 << 62".into(), "BYTE + 1".into()));
    assert_eq!(table.rows.len(), 6, "each is compared");
}

//! "Backup media": each header, chunk, index and manifest lies as the page says.

use super::doc::{hkdf_sha256, literal, numbered, Doc, Table};
use aws_lc_rs::{digest, hmac};
use pellucid::certificate::{Certificate, CertificateRequest};
use pellucid::cipher::Cipher;
use pellucid::derive::commitment;
use pellucid::lsn::Lsn;
use pellucid::media::{
    page_hash, ChunkKind, ChunkPrefix, Compression, Compressor, Description, Entry, FamilyEnd,
    Index, Kind, LogCommit, Manifest, MediaHeader, Root, SetHeader, SetKeys, Signing, Stored,
    CHUNK_BYTES, ENTRY_BYTES, MEDIA_HEADER_BYTES, MOST_CHUNK_BYTES, MOST_FAMILIES, MOST_MARK_BYTES,
    MOST_MARK_CHARACTERS, MOST_MIRRORS, MOST_SET_HEADER_BYTES, PAGE_HASH_BYTES, PREFIX_BYTES,
};
use pellucid::secret::Secret32;
use pellucid::{header, Algorithm, Dek};

const SET: [u8; 16] = [0x5e; 16];
const SET_KEY: [u8; 32] = [0x42; 32];

fn chapter() -> Doc {
    Doc::read().section("## Backup media")
}

fn keys(algorithm: Algorithm) -> SetKeys {
    let key = Dek::from_secret(Secret32::new(&mut SET_KEY.clone()));
    SetKeys::derive(&key, &SET, algorithm).unwrap()
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA256, bytes).as_ref().to_vec()
}

/// The HMAC and the SHA-256 at the end, as the page has them.
fn sums_fit(section: &Doc, layout: &Table, bytes: &[u8], info: &str) {
    section.says(
        "32 | HMAC-SHA256 under the set's header key, of all bytes before; zeros if not sealed",
    );
    let mac = layout.at("HMAC-SHA256");
    let sum = layout.at("SHA-256 of all bytes before");
    assert_eq!(sum, bytes.len() - 32..bytes.len());
    assert_eq!(bytes[sum.clone()], sha256(&bytes[..sum.start]));
    let key = hkdf_sha256(&SET_KEY, &SET, &[info.as_bytes()], 32);
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    assert_eq!(bytes[mac.clone()], *hmac::sign(&key, &bytes[..mac.start]).as_ref());
}

#[test]
fn limits_are_those_of_the_code() {
    let chapter = chapter();
    chapter.says(&format!("A family never has more than {MOST_FAMILIES} siblings"));
    chapter.says(&format!("up to {MOST_MIRRORS} identical copies"));
    let header = chapter.section("### Media header");
    header.says(&format!("number of families, 1 to {MOST_FAMILIES}"));
    header.says(&format!("copies of each family, 1 to {MOST_MIRRORS}"));
    header.says(&format!("{MEDIA_HEADER_BYTES} bytes."));
    let set = chapter.section("### Set header");
    set.says(&format!("a multiple of 512, at most {MOST_SET_HEADER_BYTES}"));
    set.says(&format!("page size times this is at most {MOST_CHUNK_BYTES}"));
    set.says(&format!("number of protectors, at most {}", header::MAX_PROTECTORS));
    let chunk = chapter.section("### Chunk");
    chunk.says(&format!("bytes of its content, at most {MOST_CHUNK_BYTES}"));
    chunk.says(&format!("bytes stored behind the prefix, at most {MOST_CHUNK_BYTES}"));
    chapter.says("as `NAME.pellucid-new`");
    assert_eq!((CHUNK_BYTES, PAGE_HASH_BYTES), (1 << 20, 16));
}

#[test]
fn a_media_header() {
    let section = chapter().section("### Media header");
    let header = MediaHeader {
        version: pellucid::media::MediaVersion::One,
        media_set: [0xa1; 16],
        families: 0x0003,
        family: 0x0002,
        mirrors: 3,
        mirror: 2,
        compressed: true,
        encrypted: true,
        made: 0x0102_0304_0506_0708,
        name: "nightly".into(),
        description: "what the night brings".into(),
    };
    let bytes = header.encode().unwrap();
    let layout = section.table(0).with(&[("n", 7), ("m", 21)]);
    assert_eq!(layout.of("`Pellucid media", &bytes), literal(layout.field("`Pellucid media")));
    assert_eq!(layout.of("format version", &bytes), header::FORMAT_VERSION.to_be_bytes());
    assert_eq!(layout.of("number of families", &bytes), [0, 3]);
    assert_eq!(layout.of("which family", &bytes), [0, 2]);
    assert_eq!(layout.of("copies", &bytes), [3]);
    assert_eq!(layout.of("which copy", &bytes), [2]);
    let flags = "1 if its sets are compressed, plus 2 if they are sealed";
    assert_eq!(layout.of(flags, &bytes), [3]);
    for (compressed, encrypted, flag) in [(true, false, 1), (false, true, 2), (false, false, 0)] {
        let other = MediaHeader { compressed, encrypted, ..header.clone() }.encode().unwrap();
        assert_eq!(layout.of(flags, &other), [flag]);
    }
    assert_eq!(layout.of("media set id", &bytes), [0xa1; 16]);
    assert_eq!(layout.of("when it was made", &bytes), header.made.to_be_bytes());
    assert_eq!(layout.of("n, length", &bytes), [0, 7]);
    assert_eq!(layout.of("name, UTF-8", &bytes), b"nightly");
    assert_eq!(layout.of("m, length", &bytes), [0, 21]);
    assert_eq!(layout.of("description", &bytes), b"what the night brings");
    let sum = layout.at("SHA-256 of bytes 0-4063");
    assert_eq!(sum, 4064..bytes.len());
    assert_eq!(bytes[sum], sha256(&bytes[..4064]));
    for (longest, what) in [(512, "at most 512"), (1024, "at most 1024")] {
        section.says(what);
        let of = |bytes: usize| match longest {
            512 => MediaHeader { name: "x".repeat(bytes), ..header.clone() },
            _ => MediaHeader { description: "x".repeat(bytes), ..header.clone() },
        };
        assert!(of(longest).encode().is_ok() && of(longest + 1).encode().is_err());
    }
}

fn set_header() -> SetHeader {
    SetHeader {
        version2: None,
        media_set: [0xa1; 16],
        set: SET,
        family: 2,
        families: 3,
        position: 0x0102_0304,
        kind: Kind::Differential,
        algorithm: Some(Algorithm::Aes192),
        compression: Compression::Lz4,
        copy_only: true,
        sealed_source: true,
        page_size: 4096,
        pages: 0x0a0b_0c0d,
        chunk_pages: 256,
        begun: 0x1112_1314_1516_1718,
        expires: 0x2122_2324_2526_2728,
        source: [0xb2; 16],
        base: [0xc3; 16],
        commitment: commitment(&Dek::from_secret(Secret32::new(&mut SET_KEY.clone())), &SET)
            .unwrap(),
        source_thumbprint: [0xd4; 32],
        page_hash_key: [0; 32],
        flags: pellucid::flags::Flags::default(),
        protectors: vec![vec![1, 0, 0, 3, 7, 7, 7], vec![1, 0, 0, 1, 9]],
        description: Vec::new(),
    }
}

#[test]
fn a_set_header() {
    let section = chapter().section("### Set header");
    let keys = keys(Algorithm::Aes192);
    let mut header = set_header();
    let description = Description { database: "accounts".into(), ..Description::default() };
    header.describe(&description, Some(&keys)).unwrap();
    let bytes = header.encode(Some(&keys)).unwrap();
    let d = header.description.len();
    let table = section.table(0).with(&[("n", bytes.len())]);
    let (fixed, protectors_at) = table.before("protectors, see");
    assert_eq!(fixed.is_without_gaps(), protectors_at);
    let fields: &[(&str, &[u8])] = &[
        ("`Pellucid backup", b"Pellucid backup\0"),
        ("format version", &1u32.to_be_bytes()),
        ("bytes of this header", &(bytes.len() as u32).to_be_bytes()),
        ("media set id", &[0xa1; 16]),
        ("set id, random", &SET),
        ("family, from 1", &[0, 2]),
        ("number of families", &[0, 3]),
        ("position on the media", &[1, 2, 3, 4]),
        ("type: ", &[5]),
        ("algorithm; 0", &[Algorithm::Aes192.id()]),
        ("compression: ", &[2]),
        ("1 for copy-only, plus 2", &[3]),
        ("page size", &4096u32.to_be_bytes()),
        ("pages of the database", &[10, 11, 12, 13]),
        ("pages of a chunk", &256u32.to_be_bytes()),
        ("begun, microseconds", &header.begun.to_be_bytes()),
        ("expires, seconds", &header.expires.to_be_bytes()),
        ("file id of the database", &[0xb2; 16]),
        ("set id of the full set", &[0xc3; 16]),
        ("key commitment", &header.commitment),
        ("SHA-256 thumbprint", &[0xd4; 32]),
        ("key of the page hashes", &[0; 32]),
        ("number of protectors", &[0, 2]),
        ("d, length of the description", &(d as u32).to_be_bytes()),
    ];
    for (field, value) in fields {
        assert_eq!(fixed.of(field, &bytes), *value, "{field}");
    }
    let at = protectors_at + 12;
    assert_eq!(bytes[protectors_at..at], [1, 0, 0, 3, 7, 7, 7, 1, 0, 0, 1, 9]);
    assert_eq!(bytes[at..at + d], header.description);
    assert!(bytes[at + d..bytes.len() - 64].iter().all(|byte| *byte == 0));
    sums_fit(&section, &table, &bytes, &section.info("set's header key"));

    let kinds = numbered(fixed.field("type: ").strip_prefix("type: ").unwrap());
    assert_eq!(
        kinds,
        [Kind::Full, Kind::Log, Kind::Differential]
            .map(|kind| (kind as u8, kind.name().to_owned()))
    );
    let known = numbered(fixed.field("compression: ").strip_prefix("compression: ").unwrap());
    let all = [Compression::None, Compression::Zstd, Compression::Lz4];
    let all = all.map(|one| (one as u8, one.name().to_owned()));
    assert_eq!(known, all);
    section.says("`HKDF(set key, set id; \"pellucid/1 commitment\")`");
    assert_eq!(
        header.commitment.to_vec(),
        hkdf_sha256(&SET_KEY, &SET, &[b"pellucid/1 commitment"], 32)
    );

    // The description: sealed under its own key, at a nonce with the family, bound to the set.
    section.says("nonce = 10 zero bytes ‖ family as 2 bytes; AAD = set id");
    let info = section.info("key of the description");
    let key = hkdf_sha256(&SET_KEY, &SET, &[info.as_bytes(), &[Algorithm::Aes192.id()]], 24);
    let (sealed, tag) = header.description.split_last_chunk::<16>().unwrap();
    let mut json = vec![0; sealed.len()];
    let nonce = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    Cipher::new(Algorithm::Aes192, &key)
        .unwrap()
        .open(&nonce, &SET, sealed, tag, &mut json)
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["database"], "accounts");
    let members = section.from("with the members").literals_until("all strings");
    for member in &members {
        assert!(json[member].is_string(), "{member}");
    }
    assert_eq!(members.len(), json.as_object().unwrap().len());
}

#[test]
fn a_chunk() {
    let section = chapter().section("### Chunk");
    let layout = section.table(0);
    let (fixed, stored_at) = layout.before("what is stored");
    assert_eq!(fixed.is_without_gaps(), stored_at);
    assert_eq!(stored_at, PREFIX_BYTES);
    let kinds = numbered(fixed.field("kind: ").strip_prefix("kind: ").unwrap());
    let all = ChunkKind::ALL;
    assert!(kinds.iter().map(|(id, _)| *id).eq(all.map(|kind| kind as u8)), "{kinds:?}");
    let forms = numbered(fixed.field("stored: ").strip_prefix("stored: ").unwrap());
    let all_forms = [Stored::Raw, Stored::Zstd, Stored::Lz4];
    assert!(forms.iter().map(|(id, _)| *id).eq(all_forms.map(|form| form as u8)), "{forms:?}");
    for algorithm in Algorithm::OF_SETS {
        for kind in all {
            let content = vec![0x77; 100];
            let mut body = Vec::new();
            let stored = Compressor::new(Compression::Zstd, 1)
                .unwrap()
                .compress(&content, &mut body)
                .unwrap();
            let mut prefix = ChunkPrefix {
                kind,
                stored,
                without_tails: false,
                number: 0x0102_0304_0506_0708,
                first_page: 0x1112_1314,
                pages: 0x2122_2324,
                content_bytes: 100,
                stored_bytes: 0,
            };
            let clear = body.clone();
            let bytes = prefix.seal(Some(&keys(algorithm)), &mut body).unwrap();
            assert_eq!(fixed.of("`PCHK`", &bytes), b"PCHK");
            assert_eq!(fixed.of("kind: ", &bytes), [kind as u8]);
            assert_eq!(fixed.of("stored: ", &bytes), [stored as u8]);
            assert_eq!(fixed.of("1 if its pages are without their tails", &bytes), [0]);
            assert_eq!(fixed.of("zero", &bytes), [0]);
            assert_eq!(fixed.of("number", &bytes), prefix.number.to_be_bytes());
            assert_eq!(fixed.of("first page", &bytes), prefix.first_page.to_be_bytes());
            assert_eq!(fixed.of("pages", &bytes), prefix.pages.to_be_bytes());
            assert_eq!(fixed.of("bytes of its content", &bytes), 100u32.to_be_bytes());
            assert_eq!(fixed.of("bytes stored", &bytes), (body.len() as u32).to_be_bytes());
            let sum = blake3::hash(&[&bytes[..32], &body[..]].concat());
            assert_eq!(fixed.of("the first 16 bytes of BLAKE3", &bytes), &sum.as_bytes()[..16]);

            section.says(
                "the nonce is kind ‖ 3 zero bytes ‖ number, and the AAD is set id ‖ bytes 0-31",
            );
            let mut nonce = [0; 12];
            nonce[0] = kind as u8;
            nonce[4..].copy_from_slice(&prefix.number.to_be_bytes());
            let aad = [&SET[..], &bytes[..32]].concat();
            let what = if kind.has_pages() { "key of pages" } else { "key of the index" };
            let info = chapter().section("### Set header").info(what);
            let length = Cipher::key_bytes(algorithm);
            let key = hkdf_sha256(&SET_KEY, &SET, &[info.as_bytes(), &[algorithm.id()]], length);
            let (sealed, tag) = body.split_last_chunk::<16>().unwrap();
            let mut opened = vec![0; sealed.len()];
            let cipher = Cipher::new(algorithm, &key).unwrap();
            cipher.open(&nonce, &aad, sealed, tag, &mut opened).expect("another key, nonce or AAD");
            assert_eq!(opened, clear);
        }
    }
    section.says("the first 16 bytes of BLAKE3 of the page, keyed with the key of page hashes");
    let info = chapter().section("### Set header").info("key of page hashes");
    let key = hkdf_sha256(&SET_KEY, &SET, &[info.as_bytes()], 32);
    assert_eq!(keys(Algorithm::Aes256).page_hash()[..], key);
    let hash = blake3::keyed_hash(key.as_slice().try_into().unwrap(), b"a page");
    assert_eq!(page_hash(key.as_slice().try_into().unwrap(), b"a page"), hash.as_bytes()[..16]);
}

#[test]
fn the_commits_of_a_log_set() {
    let section = chapter().section("### Chunk").from("A commit:");
    let mark = "before the import";
    let layout = section.table(0).with(&[("m", mark.len())]);
    let commit = LogCommit {
        lsn: Lsn::new(0x0102_0304, 0x0506_0708),
        time: 0x1112_1314_1516_1718,
        pages: 0x2122_2324,
        stepped_back: true,
        mark: Some(mark.into()),
    };
    let (bytes, _) = LogCommit::encode_chunk(std::slice::from_ref(&commit)).unwrap();
    assert_eq!(layout.is_without_gaps(), bytes.len());
    assert_eq!(layout.of("LSN", &bytes), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(layout.of("time", &bytes), commit.time.to_be_bytes());
    assert_eq!(layout.of("pages of the database", &bytes), commit.pages.to_be_bytes());
    assert_eq!(layout.of("1 if the clock", &bytes), [1]);
    assert_eq!(layout.of("m, bytes", &bytes), (mark.len() as u16).to_be_bytes());
    assert_eq!(layout.of("name of its mark", &bytes), mark.as_bytes());
    section.says(&format!("at most {MOST_MARK_BYTES}; 0 if it has none"));
    section.says(&format!("at most {MOST_MARK_CHARACTERS} characters"));
}

#[test]
fn an_index() {
    let section = chapter().section("### Index");
    let entry = |number: u8| Entry {
        family: 0x0102,
        offset: 0x1112_1314_1516_1718,
        stored_bytes: 0x2122_2324,
        first_page: 0x3132_3334,
        pages: 0x4142_4344,
        checksum: [number; 16],
    };
    let index = Index {
        chunks: vec![entry(1), entry(2)],
        hashes: vec![entry(3)],
        missing: vec![0x5152_5354],
    };
    let bytes = index.encode();
    let (layout, entries_at) = section.table(0).before("c entries");
    assert_eq!(layout.is_without_gaps(), entries_at);
    assert_eq!(layout.of("c, chunks", &bytes), 2u32.to_be_bytes());
    assert_eq!(layout.of("h, chunks", &bytes), 1u32.to_be_bytes());
    assert_eq!(layout.of("x, pages", &bytes), 1u32.to_be_bytes());
    assert!(section.table(0).rows.iter().any(|row| row[1] == format!("{ENTRY_BYTES} each")));
    assert_eq!(bytes.len(), entries_at + 3 * ENTRY_BYTES + 4);
    assert_eq!(bytes[bytes.len() - 4..], [0x51, 0x52, 0x53, 0x54]);
    let layout = section.from("An entry:").table(0);
    assert_eq!(layout.is_without_gaps(), ENTRY_BYTES);
    for (number, bytes) in (1..).zip(bytes[entries_at..].chunks_exact(ENTRY_BYTES).take(3)) {
        assert_eq!(layout.of("family", bytes), [1, 2]);
        assert_eq!(layout.of("zero", bytes), [0; 6]);
        assert_eq!(layout.of("where its prefix begins", bytes), entry(0).offset.to_be_bytes());
        assert_eq!(layout.of("bytes stored", bytes), entry(0).stored_bytes.to_be_bytes());
        assert_eq!(layout.of("first page", bytes), entry(0).first_page.to_be_bytes());
        assert_eq!(layout.of("pages", bytes), entry(0).pages.to_be_bytes());
        assert_eq!(layout.of("bytes 32-47 of its prefix", bytes), [number; 16]);
    }
}

#[test]
fn a_manifest() {
    let section = chapter().section("### Manifest");
    let keys = keys(Algorithm::Aes256);
    let family =
        |number: u64| FamilyEnd { bytes: 0x0102_0304_0506_0700 + number, root: [number as u8; 32] };
    let manifest = Manifest {
        set: SET,
        damaged: true,
        finished: 0x1112_1314_1516_1718,
        content_bytes: 0x2122_2324_2526_2728,
        stored_bytes: 0x3132_3334_3536_3738,
        chunks: 0x4142_4344,
        index_chunks: 0x5152_5354,
        pages: 0x6162_6364,
        missing: 0x7172_7374,
        index_offset: 0x0807_0605_0403_0201,
        families: vec![family(1), family(2), family(3)],
        signing: pellucid::media::Signing::Version1,
    };
    let bytes = manifest.encode(Some(&keys)).unwrap();
    section.says("160 + 40 for each family");
    assert_eq!(bytes.len(), 160 + 40 * 3);
    let table = section.table(0).with(&[("n", bytes.len())]);
    let (layout, families_at) = table.before("families: ");
    assert_eq!(layout.is_without_gaps(), families_at);
    let fields: &[(&str, &[u8])] = &[
        ("`Pellucid set end`", b"Pellucid set end"),
        ("format version", &header::FORMAT_VERSION.to_be_bytes()),
        ("bytes of this manifest", &(bytes.len() as u32).to_be_bytes()),
        ("set id", &SET),
        ("number of families", &[0, 3]),
        ("1 if pages could not be read", &[1]),
        ("finished, microseconds", &manifest.finished.to_be_bytes()),
        ("bytes of the pages in the set", &manifest.content_bytes.to_be_bytes()),
        ("bytes in all families", &manifest.stored_bytes.to_be_bytes()),
        ("chunks of pages", &manifest.chunks.to_be_bytes()),
        ("index chunks", &manifest.index_chunks.to_be_bytes()),
        ("pages in the set", &manifest.pages.to_be_bytes()),
        ("pages that could not be read", &manifest.missing.to_be_bytes()),
        ("where the first index chunk begins", &manifest.index_offset.to_be_bytes()),
    ];
    for (field, value) in fields {
        assert_eq!(layout.of(field, &bytes), *value, "{field}");
    }
    for (number, row) in (1..).zip(bytes[families_at..].chunks_exact(40).take(3)) {
        assert_eq!(row[..8], family(number).bytes.to_be_bytes());
        assert_eq!(row[8..], [number as u8; 32]);
    }
    let info = chapter().section("### Set header").info("set's header key");
    sums_fit(&section, &table, &bytes, &info);

    section.says("A family's root is BLAKE3 of its set header ‖ the prefixes of its chunks in the order they lie in");
    let mut prefix = [0; PREFIX_BYTES];
    prefix[..4].copy_from_slice(b"PCHK");
    let mut root = Root::new(b"a set header");
    root.update(&prefix);
    let hash = blake3::hash(&[&b"a set header"[..], &prefix].concat());
    assert_eq!(root.finish(), *hash.as_bytes());
}

#[test]
fn a_signature() {
    let section = chapter().section("### Signature");
    let request = CertificateRequest { rsa_bits: 2048, ..CertificateRequest::new("signer", 10) };
    let signer = Certificate::generate("signer", &request).unwrap();
    let mut manifest = Manifest {
        set: SET,
        damaged: false,
        finished: 1,
        content_bytes: 2,
        stored_bytes: 3,
        chunks: 4,
        index_chunks: 5,
        pages: 6,
        missing: 0,
        index_offset: 7,
        families: vec![FamilyEnd { bytes: 8, root: [9; 32] }; 2],
        signing: Signing::Version1,
    };
    for (certificate, kind, s) in [(Some(&signer), 1, 256), (None, 0, 0)] {
        manifest.sign(certificate).unwrap();
        let bytes = manifest.encode(Some(&keys(Algorithm::Aes256))).unwrap();
        assert_eq!(bytes[16..20], [0, 0, 0, 2]);
        assert_eq!(bytes[20..24], (bytes.len() as u32).to_be_bytes());
        let at = 96 + 2 * 40;
        let block = &bytes[at..bytes.len() - 64];
        let layout = section.table(0).with(&[("s", s)]);
        assert_eq!(layout.is_without_gaps(), block.len());
        assert_eq!(layout.of("kind: ", block), [kind]);
        assert_eq!(layout.of("s, length", block), (s as u16).to_be_bytes());
        let thumbprint = certificate.map_or([0; 32], |own| *own.public().thumbprint());
        assert_eq!(layout.of("SHA-256 thumbprint", block), thumbprint);
        assert_eq!(layout.of("bytes of this block", block), (block.len() as u32).to_be_bytes());
        assert_eq!(layout.of("bytes of this manifest", block), (bytes.len() as u32).to_be_bytes());
        let Some(certificate) = certificate else { continue };
        section.says(
            "over `\"pellucid/2 set\"` ‖ SHA-256 of all bytes of the manifest before the signature",
        );
        let message = [&b"pellucid/2 set"[..], &sha256(&bytes[..at + 35])].concat();
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate.public().der()).unwrap();
        let key = aws_lc_rs::signature::UnparsedPublicKey::new(
            &aws_lc_rs::signature::RSA_PSS_2048_8192_SHA256,
            parsed.public_key().raw,
        );
        key.verify(&message, layout.of("signature", block)).unwrap();
    }
    section.says(&format!("at most {}", pellucid::media::MOST_SIGNATURE_BYTES));
    let set = chapter().section("### Set header");
    set.says(&format!("a block of {} bytes", pellucid::media::BLOCK_BYTES));
    chapter().section("### Chunk").says("Where no chunk fits in between (1 to 63 bytes)");
}

//! Backup media: sets of three pages of 512 bytes, as they are and put wrong.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pellucid::derive::commitment;
use pellucid::hash::Sha256;
use pellucid::media::{
    page_hash, Compression, Description, Kind, MediaHeader, Root, SetHeader, SetKeys,
    MEDIA_HEADER_BYTES,
};
use pellucid::protector::{wrap, KeyFile, Wrapping};
use pellucid::unit::TAIL_BYTES;
use pellucid::{Algorithm, Result};
use pellucid_backup::set::{write_set, Base, FamilyTarget, MediaSink, NewSet, Options, PageSource};

use crate::case::Case;
use crate::{dek, key_bytes};

const SET: [u8; 16] = *b"a backup set's 1";
const PAGE_BYTES: usize = 512;

struct Pages(Vec<u8>);

impl PageSource for Pages {
    fn read(&mut self, first: u32, into: &mut [u8]) -> Result<()> {
        let at = (first as usize - 1) * PAGE_BYTES;
        into.copy_from_slice(&self.0[at..at + into.len()]);
        Ok(())
    }
}

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl MediaSink for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn name(&self) -> PathBuf {
        "memory".into()
    }
}

/// Three pages; the second compresses.
fn database(more: u8) -> Vec<u8> {
    let mut state = 1u64;
    let mut bytes: Vec<u8> = (0..3 * PAGE_BYTES)
        .map(|at| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if at / PAGE_BYTES == 1 {
                b"again "[at % 6]
            } else {
                (state >> 33) as u8
            }
        })
        .collect();
    bytes[2 * PAGE_BYTES] = bytes[2 * PAGE_BYTES].wrapping_add(more);
    bytes
}

/// As SQLite reads a sealed one: zeros where pages have their tails.
fn without_tails(more: u8) -> Vec<u8> {
    let mut bytes = database(more);
    for page in bytes.chunks_exact_mut(PAGE_BYTES) {
        page[PAGE_BYTES - TAIL_BYTES..].fill(0);
    }
    bytes
}

struct Shape {
    algorithm: Option<Algorithm>,
    compression: Compression,
    families: u16,
    sealed_source: bool,
}

fn set_header(shape: &Shape, position: u32, kind: Kind) -> SetHeader {
    let mut set = SET;
    set[15] = b'0' + position as u8;
    SetHeader {
        media_set: *b"a media set's id",
        set,
        family: 1,
        families: shape.families,
        position,
        kind,
        algorithm: shape.algorithm,
        compression: shape.compression,
        copy_only: false,
        sealed_source: shape.sealed_source,
        page_size: PAGE_BYTES as u32,
        pages: 3,
        // So that there are two chunks of pages.
        chunk_pages: 2,
        begun: 1_700_000_000_000_000,
        expires: 1_800_000_000,
        source: if shape.sealed_source { *b"a database's id!" } else { [0; 16] },
        base: if kind == Kind::Full { [0; 16] } else { SET },
        commitment: [0; 32],
        source_thumbprint: [0; 32],
        page_hash_key: [0; 32],
        flags: pellucid::flags::Flags::default(),
        protectors: Vec::new(),
        description: Vec::new(),
    }
}

/// Sets of these databases, the first one full, the others differentials of it.
fn media(shape: &Shape, databases: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let sinks: Vec<Memory> = (0..shape.families).map(|_| Memory::default()).collect();
    for (family, sink) in (1..).zip(&sinks) {
        let header = MediaHeader {
            media_set: *b"a media set's id",
            families: shape.families,
            family,
            mirrors: 1,
            mirror: 0,
            compressed: shape.compression != Compression::None,
            encrypted: shape.algorithm.is_some(),
            made: 1_700_000_000_000_000,
            name: "vectors".into(),
            description: String::new(),
        };
        sink.clone().write(&header.encode()?).unwrap();
    }
    let mut base = None;
    for (position, database) in (1..).zip(databases) {
        let kind = if position == 1 { Kind::Full } else { Kind::Differential };
        let mut header = set_header(shape, position, kind);
        let keys = match shape.algorithm {
            None => {
                header.page_hash_key = key_bytes(32);
                None
            }
            Some(algorithm) => {
                header.commitment = commitment(&dek(), &header.set)?;
                let key = KeyFile::parse(&key_bytes(64)).unwrap();
                let protector = wrap(&dek(), &header.binding()?, &Wrapping::KeyFile(&key))?;
                header.protectors.push(protector.encoded());
                Some(SetKeys::derive(&dek(), &header.set, algorithm)?)
            }
        };
        let hash_key = keys.as_ref().map_or(header.page_hash_key, |keys| *keys.page_hash());
        let description = Description {
            database: "vectors".into(),
            path: "/srv/vectors.db".into(),
            ..Description::default()
        };
        let set = NewSet { header, description, keys: keys.as_ref() };
        let mut targets: Vec<FamilyTarget> =
            sinks.iter().map(|sink| FamilyTarget::new(vec![Box::new(sink.clone())])).collect();
        let options = Options { workers: 1, level: 1, continue_after_error: false };
        let mut source = Pages(database.clone());
        write_set(&mut source, &set, base.as_ref(), &mut targets, &options, &mut |_, _| ())?;
        if position == 1 {
            let pages = database.chunks_exact(PAGE_BYTES);
            let hashes = pages.flat_map(|page| page_hash(&hash_key, page)).collect();
            base = Some(Base { page_hash_key: hash_key, hashes });
        }
    }
    Ok(sinks.iter().map(|sink| sink.0.lock().unwrap().clone()).collect())
}

fn case(kind: &str, shape: &Shape, databases: &[Vec<u8>]) -> Result<Case> {
    let families = media(shape, databases)?;
    let mut case = Case::new("media", kind)
        .with("expect", "success")
        .with("algorithm", shape.algorithm.map_or("none".to_owned(), |own| own.to_string()))
        .with_bytes("key-file", &key_bytes(64))
        .with("position", databases.len())
        .with_bytes("database", databases.last().map_or(&[], |last| last))
        .with_body(&families[0]);
    for (number, family) in (2..).zip(&families[1..]) {
        case = case.with_bytes(&format!("family-{number}"), family);
    }
    Ok(case)
}

/// Where the chunk of pages `number` begins in the first family.
fn chunk_at(body: &[u8], number: u8) -> usize {
    let prefix = [b'P', b'C', b'H', b'K', 1];
    let found = |window: &[u8]| window[..5] == prefix && window[15] == number;
    body.windows(48).position(found).unwrap()
}

/// The checksum of the chunk at `at`, made right.
fn mend_chunk(body: &mut [u8], at: usize) {
    let stored = u32::from_be_bytes(body[at + 28..at + 32].try_into().unwrap()) as usize;
    let sum = blake3::hash(&[&body[at..at + 32], &body[at + 48..at + 48 + stored]].concat());
    body[at + 32..at + 48].copy_from_slice(&sum.as_bytes()[..16]);
}

/// The SHA-256 in the last 32 bytes of `part`, made right.
fn mend_sum(part: &mut [u8]) {
    let end = part.len() - 32;
    let mut hash = Sha256::new();
    hash.update(&part[..end]);
    part[end..].copy_from_slice(&hash.finish());
}

fn changed(case: &Case, change: impl FnOnce(&mut Vec<u8>)) -> Case {
    let mut body = case.body.clone();
    change(&mut body);
    case.clone().with_body(&body)
}

pub fn cases() -> Result<Vec<Case>> {
    let shape = |algorithm, compression| Shape {
        algorithm,
        compression,
        families: 1,
        sealed_source: false,
    };
    let aes = Some(Algorithm::Aes256);
    let full = [database(0)];
    let sealed = case("sealed", &shape(aes, Compression::None), &full)?;
    let mut cases = vec![
        case("in-clear", &shape(None, Compression::None), &full)?,
        case("sealed-zstd", &shape(aes, Compression::Zstd), &full)?,
        case("sealed-lz4", &shape(Some(Algorithm::Aes128), Compression::Lz4), &full)?,
        case("triple-des", &shape(Some(Algorithm::TripleDes3Key), Compression::None), &full)?,
        case("differential", &shape(aes, Compression::None), &[database(0), database(1)])?,
        case(
            "without-tails",
            &Shape { sealed_source: true, ..shape(aes, Compression::Zstd) },
            &[without_tails(0), without_tails(1)],
        )?,
        case("striped", &Shape { families: 2, ..shape(aes, Compression::None) }, &full)?,
    ];
    let chunk = chunk_at(&sealed.body, 0);
    let header = MEDIA_HEADER_BYTES;
    let manifest = sealed.body.len() - 200;
    cases.extend([
        changed(&sealed, |body| body[chunk + 60] ^= 1).failing(
            "flipped-chunk",
            "corrupt",
            "chunk 0: damaged",
        ),
        changed(&sealed, |body| {
            body[chunk + 60] ^= 1;
            mend_chunk(body, chunk);
        })
        .failing("forged-chunk", "corrupt", "not the one that the index names"),
        changed(&sealed, |body| {
            // Expired already, says somebody who has no key.
            let bytes = u32::from_be_bytes(body[header + 20..header + 24].try_into().unwrap());
            body[header + 92..header + 100].fill(0);
            mend_sum(&mut body[header..header + bytes as usize]);
        })
        .failing("forged-set-header", "unauthentic", "its header does not authenticate"),
        changed(&sealed, |body| {
            body[manifest + 48] ^= 1;
            mend_sum(&mut body[manifest..]);
        })
        .failing("forged-manifest", "unauthentic", "manifest"),
        changed(&sealed, |body| body.truncate(body.len() - 1)).failing(
            "interrupted",
            "corrupt",
            "interrupted after",
        ),
        changed(&sealed, |body| {
            body[16..20].copy_from_slice(&9u32.to_be_bytes());
            mend_sum(&mut body[..header]);
        })
        .failing("newer-version", "unsupported", "format version 9"),
        changed(&sealed, |body| body[0] ^= 1).failing(
            "first-bytes",
            "corrupt",
            "its first 16 bytes are damaged",
        ),
        changed(&sealed, |body| {
            let list = b"bread, milk, a dozen eggs, and a pencil\n";
            *body = list.iter().copied().cycle().take(5120).collect();
        })
        .failing("no-media", "wrong-kind", "no backup of Pellucid's"),
        sealed.clone().with_bytes("key-file", &key_bytes(65)).failing(
            "wrong-key",
            "missing-key",
            "wrong key",
        ),
        changed(&sealed, |body| {
            body[header + 66] = 9;
            let bytes = u32::from_be_bytes(body[header + 20..header + 24].try_into().unwrap());
            mend_sum(&mut body[header..header + bytes as usize]);
        })
        .failing("unknown-compression", "unsupported", "compression 9"),
    ]);
    cases.extend(newer(&sealed, &cases[0])?);
    cases.extend(clear(&sealed, &cases[0])?);
    cases.push(sealed);
    Ok(cases)
}

/// What a later version may write: sums made right, and tags where the set has a key.
fn newer(sealed: &Case, in_clear: &Case) -> Result<Vec<Case>> {
    let header = MEDIA_HEADER_BYTES;
    let mut set = SET;
    set[15] = b'1';
    let keys = SetKeys::derive(&dek(), &set, Algorithm::Aes256)?;
    let signed = |part: &mut [u8]| {
        let mac_at = part.len() - 64;
        let mac = keys.header().sign(&[&part[..mac_at]]);
        part[mac_at..mac_at + 32].copy_from_slice(&mac);
        mend_sum(part);
    };
    let in_set_header = |at: usize, value: u8| {
        changed(sealed, |body| {
            let bytes = u32::from_be_bytes(body[header + 20..header + 24].try_into().unwrap());
            let manifest = body.len() - 200;
            let end = header + bytes as usize;
            body[header + at] = value;
            signed(&mut body[header..end]);
            // The set header is in the family's root.
            let mut root = Root::new(&body[header..end]);
            let mut chunk = end;
            while chunk < manifest {
                root.update(body[chunk..].first_chunk().unwrap());
                let stored = u32::from_be_bytes(*body[chunk + 28..].first_chunk().unwrap());
                chunk += 48 + stored as usize;
            }
            body[manifest + 104..manifest + 136].copy_from_slice(&root.finish());
            signed(&mut body[manifest..]);
        })
    };
    let in_manifest = |at: usize, value: u8| {
        changed(sealed, |body| {
            let manifest = body.len() - 200;
            body[manifest + at] = value;
            signed(&mut body[manifest..]);
        })
    };
    let in_media_header = |at: usize, value: u8| {
        changed(sealed, |body| {
            body[at] = value;
            mend_sum(&mut body[..header]);
        })
    };
    // Of a set in clear, whose chunks need no key.
    let in_chunk = |at: usize, value: u8| {
        changed(in_clear, |body| {
            let chunk = chunk_at(body, 0);
            body[chunk + at] = value;
            mend_chunk(body, chunk);
        })
    };
    let unsupported =
        |case: Case, kind: &str, error: &str| case.failing(kind, "unsupported", error);
    Ok(vec![
        unsupported(in_media_header(31, 1), "media-byte-in-use", "byte 31 is not zero"),
        unsupported(in_media_header(4063, 1), "media-padding-in-use", "byte 4063 is not zero"),
        unsupported(in_media_header(26, 6), "media-unknown-flag", "flags 4 are not known"),
        unsupported(in_set_header(83, 1), "set-byte-in-use", "byte 83 is not zero"),
        unsupported(in_set_header(67, 4), "set-unknown-flag", "flags 4 are not known"),
        unsupported(in_set_header(237, 2), "incompatible-flag", "incompatible flags 0x0002"),
        in_set_header(239, 2)
            .with("kind", "read-only-flag")
            .with_bytes("flags", &[0, 0, 0, 2, 0, 0]),
        in_set_header(240, 2)
            .with("kind", "compatible-flag")
            .with_bytes("flags", &[0, 0, 0, 0, 2, 0]),
        unsupported(in_set_header(64, 2), "reserved-set-type", "backup type 2 is reserved"),
        unsupported(in_manifest(47, 1), "manifest-byte-in-use", "byte 47 is not zero"),
        unsupported(in_manifest(42, 2), "manifest-unknown-flag", "flags 2 are not known"),
        unsupported(in_chunk(4, 5), "reserved-chunk-5", "kind 5 is reserved"),
        unsupported(in_chunk(4, 6), "reserved-chunk-6", "kind 6 is reserved"),
        unsupported(in_chunk(7, 1), "chunk-byte-in-use", "its prefix has values"),
        changed(in_clear, |body| {
            let chunk = chunk_at(body, 0);
            body[chunk + 4] = 5;
        })
        .failing("damaged-chunk-kind", "corrupt", "neither a chunk nor its end"),
    ])
}

/// Sets in clear where sealed ones belong, and a media header for a terminal that does what it is told.
fn clear(sealed: &Case, in_clear: &Case) -> Result<Vec<Case>> {
    let shape = |sealed_source| Shape {
        algorithm: None,
        compression: Compression::None,
        families: 1,
        sealed_source,
    };
    let flagged = |case: &Case, flags: u8| {
        changed(case, |body| {
            body[26] = flags;
            mend_sum(&mut body[..MEDIA_HEADER_BYTES]);
        })
    };
    // The second set of media in clear, which is a differential of the first set's id.
    let two = case("", &shape(false), &[database(0), database(1)])?;
    let behind = changed(sealed, |body| body.extend(&two.body[in_clear.body.len()..]))
        .with("position", 2)
        .with_bytes("database", &database(1));
    let of_sealed = case("", &shape(true), &[without_tails(0)])?;
    let refused = |case: Case, kind: &str| case.failing(kind, "misuse", "it is NOT sealed");
    let in_header = |at: usize, value: u8| {
        changed(sealed, |body| {
            body[at] = value;
            mend_sum(&mut body[..MEDIA_HEADER_BYTES]);
        })
        .failing("", "corrupt", "media header")
    };
    Ok(vec![
        refused(flagged(in_clear, 2), "clear-where-the-media-header-says-sealed"),
        refused(behind.clone(), "clear-behind-sealed"),
        refused(flagged(&behind, 0), "clear-behind-sealed-unflagged"),
        refused(of_sealed, "clear-of-a-sealed-database"),
        in_header(60, 0x1b).with("kind", "control-character-in-name"),
        in_header(24, 5).with("kind", "copies-too-many"),
        in_header(25, 1).with("kind", "copy-beyond-its-number"),
    ])
}

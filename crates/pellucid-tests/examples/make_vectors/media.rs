//! Backup media: sets of three pages of 512 bytes, as they are and put wrong.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pellucid::certificate::{Certificate, CertificateRequest};
use pellucid::derive::commitment;
use pellucid::hash::Sha256;
use pellucid::media::{
    page_hash, ChainPlace, Compression, Description, Kind, Manifest, MediaHeader, MediaVersion,
    Root, SetHeader, SetKeys, Version2, MEDIA_HEADER_BYTES,
};
use pellucid::protector::{wrap, KeyFile, Wrapping};
use pellucid::unit::TAIL_BYTES;
use pellucid::{Algorithm, Result};
use pellucid_backup::set::{write_set, Base, FamilyTarget, MediaSink, NewSet, Options, PageSource};

use crate::case::Case;
use crate::{dek, key_bytes};

const SET: [u8; 16] = *b"a backup set's 1";
pub const PAGE_BYTES: usize = 512;

struct Pages(Vec<u8>);

impl PageSource for Pages {
    fn read(&mut self, first: u32, into: &mut [u8]) -> Result<()> {
        let at = (first as usize - 1) * PAGE_BYTES;
        into.copy_from_slice(&self.0[at..at + into.len()]);
        Ok(())
    }
}

#[derive(Clone, Default)]
pub struct Memory(pub Arc<Mutex<Vec<u8>>>);

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
pub fn database(more: u8) -> Vec<u8> {
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
pub fn without_tails(more: u8) -> Vec<u8> {
    let mut bytes = database(more);
    for page in bytes.chunks_exact_mut(PAGE_BYTES) {
        page[PAGE_BYTES - TAIL_BYTES..].fill(0);
    }
    bytes
}

#[derive(Clone, Default)]
pub struct Two {
    /// Protects each set beside the key file, and signs the first ones.
    pub certificate: Option<Certificate>,
    /// How many sets it signs.
    pub signs: usize,
    pub padded: bool,
    /// Whether a differential names the manifest of its full set.
    pub names_base: bool,
    /// The place of each set in the chain of log backups.
    pub chain: Option<ChainPlace>,
}

#[derive(Clone)]
pub struct Shape {
    pub two: Option<Two>,
    pub algorithm: Option<Algorithm>,
    pub compression: Compression,
    pub families: u16,
    pub sealed_source: bool,
}

pub fn set_header(shape: &Shape, position: u32, kind: Kind) -> SetHeader {
    let mut set = SET;
    set[15] = b'0' + position as u8;
    SetHeader {
        version2: shape.two.as_ref().map(|two| Version2 {
            padded: two.padded,
            chain: two.chain,
            ..Version2::default()
        }),
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
        base: if kind == Kind::Differential { SET } else { [0; 16] },
        commitment: [0; 32],
        source_thumbprint: [0; 32],
        page_hash_key: [0; 32],
        flags: pellucid::flags::Flags::default(),
        protectors: Vec::new(),
        description: Vec::new(),
    }
}

/// Gives the header of a sealed set its protectors.
pub fn protect(header: &mut SetHeader, shape: &Shape) -> Result<Option<SetKeys>> {
    let Some(algorithm) = shape.algorithm else { return Ok(None) };
    header.commitment = commitment(&dek(), &header.set)?;
    let key = KeyFile::parse(&key_bytes(64)).unwrap();
    let own = shape.two.as_ref().and_then(|two| two.certificate.as_ref());
    // A hybrid set opens by nothing else, so that it is seen to.
    if own.is_none_or(|own| own.public().companion().is_none()) {
        let protector = wrap(&dek(), &header.binding()?, &Wrapping::KeyFile(&key))?;
        header.protectors.push(protector.encoded());
    }
    if let Some(own) = own {
        let protector = wrap(&dek(), &header.binding()?, &Wrapping::Certificate(own))?;
        header.protectors.push(protector.encoded());
    }
    SetKeys::derive(&dek(), &header.set, algorithm).map(Some)
}

/// Sets of these databases, the first one full, the others differentials of it.
pub fn media(shape: &Shape, databases: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let sinks: Vec<Memory> = (0..shape.families).map(|_| Memory::default()).collect();
    for (family, sink) in (1..).zip(&sinks) {
        let header = MediaHeader {
            version: if shape.two.is_some() { MediaVersion::Two } else { MediaVersion::One },
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
    let (mut before, mut full) = ([0; 32], [0; 32]);
    for (position, database) in (1..).zip(databases) {
        let kind = if position == 1 { Kind::Full } else { Kind::Differential };
        let mut header = set_header(shape, position as u32, kind);
        let keys = protect(&mut header, shape)?;
        if keys.is_none() {
            header.page_hash_key = key_bytes(32);
        }
        let hash_key = keys.as_ref().map_or(header.page_hash_key, |keys| *keys.page_hash());
        let description = Description {
            database: "vectors".into(),
            path: "/srv/vectors.db".into(),
            ..Description::default()
        };
        if let Some(own) = &mut header.version2 {
            own.before = before;
            if shape.two.as_ref().is_some_and(|two| two.names_base) {
                own.base = full;
            }
        }
        let signs = shape.two.as_ref().filter(|two| position <= two.signs);
        let signer = signs.and_then(|two| two.certificate.as_ref());
        let set = NewSet { header, description, keys: keys.as_ref(), signer };
        let mut targets: Vec<FamilyTarget> =
            sinks.iter().map(|sink| FamilyTarget::new(vec![Box::new(sink.clone())])).collect();
        let options = Options { workers: 1, level: 1, continue_after_error: false };
        let mut source = Pages(database.clone());
        let written =
            write_set(&mut source, &set, base.as_ref(), &mut targets, &options, &mut |_, _| ())?;
        before = written.hash;
        if position == 1 {
            full = written.hash;
            let pages = database.chunks_exact(PAGE_BYTES);
            let hashes = pages.flat_map(|page| page_hash(&hash_key, page)).collect();
            base = Some(Base { page_hash_key: hash_key, hashes, only: None });
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
    if let Some(own) = shape.two.as_ref().and_then(|two| two.certificate.as_ref()) {
        case = case
            .with_bytes("certificate", own.public().der())
            .with_bytes("private-key", own.private_key().unwrap());
    }
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
pub fn mend_chunk(body: &mut [u8], at: usize) {
    let stored = u32::from_be_bytes(body[at + 28..at + 32].try_into().unwrap()) as usize;
    let sum = blake3::hash(&[&body[at..at + 32], &body[at + 48..at + 48 + stored]].concat());
    body[at + 32..at + 48].copy_from_slice(&sum.as_bytes()[..16]);
}

/// The SHA-256 in the last 32 bytes of `part`, made right.
pub fn mend_sum(part: &mut [u8]) {
    let end = part.len() - 32;
    let mut hash = Sha256::new();
    hash.update(&part[..end]);
    part[end..].copy_from_slice(&hash.finish());
}

pub fn changed(case: &Case, change: impl FnOnce(&mut Vec<u8>)) -> Case {
    let mut body = case.body.clone();
    change(&mut body);
    case.clone().with_body(&body)
}

pub fn cases() -> Result<Vec<Case>> {
    let shape = |algorithm, compression| Shape {
        two: None,
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
    cases.extend(version_2()?);
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
        unsupported(in_chunk(4, 8), "reserved-chunk-8", "kind 8 is reserved"),
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
        two: None,
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

/// Where the manifest of version 2 begins that ends the first family of `body`.
pub fn manifest_at(body: &[u8]) -> usize {
    body.len() - Manifest::length_by_end(body.last_chunk().unwrap()).unwrap()
}

/// Of the set at `position`: its keys, which are the same in each case.
pub fn keys_of(position: u8) -> Result<SetKeys> {
    let mut set = SET;
    set[15] = b'0' + position;
    SetKeys::derive(&dek(), &set, Algorithm::Aes256)
}

/// HMAC and SHA-256 of a set header or manifest, made right by somebody who has the set's key.
pub fn resigned(part: &mut [u8], keys: &SetKeys) {
    let mac_at = part.len() - 64;
    let mac = keys.header().sign(&[&part[..mac_at]]);
    part[mac_at..mac_at + 32].copy_from_slice(&mac);
    mend_sum(part);
}

/// Sets of version 2, and what somebody makes of them who has their key and no private key.
fn version_2() -> Result<Vec<Case>> {
    let request = CertificateRequest { rsa_bits: 2048, ..CertificateRequest::new("Vectors", 365) };
    let certificate = Certificate::generate("app", &request)?;
    let other = Certificate::generate("app", &request)?;
    let two = |signs, padded| Two {
        certificate: Some(certificate.clone()),
        signs,
        padded,
        names_base: false,
        chain: None,
    };
    let shape = |two| Shape {
        two: Some(two),
        algorithm: Some(Algorithm::Aes256),
        compression: Compression::None,
        families: 1,
        sealed_source: false,
    };
    let (full, both) = ([database(0)], [database(0), database(1)]);
    let signed = case("signed", &shape(two(1, false)), &full)?;
    let both_keys = super::hybrids::certificate(1_600_000_000)?;
    let hybrid = Two { certificate: Some(both_keys.clone()), ..two(1, false) };
    let hybrid = super::hybrids::with_keys(case("hybrid", &shape(hybrid), &full)?, &both_keys);
    let rsa_alone =
        Certificate::from_parts("app", both_keys.public().der(), both_keys.private_key()?, None)?;
    let classical = Two { certificate: Some(rsa_alone), ..two(1, false) };
    let downgrade = case("", &shape(classical), &full)?;
    let downgrade = super::hybrids::with_keys(downgrade, &both_keys);
    let unsigned = case("version-2-not-signed", &shape(two(0, false)), &full)?;
    // Compressed, so that there is room for some content in the padding.
    let compressed = Shape { compression: Compression::Lz4, ..shape(two(0, true)) };
    let padded = case("padded", &compressed, &full)?;
    let header = MEDIA_HEADER_BYTES;
    let own = keys_of(1)?;
    let in_manifest = |case: &Case, change: &dyn Fn(&mut [u8])| {
        changed(case, |body| {
            let at = manifest_at(body);
            change(&mut body[at..]);
            resigned(&mut body[at..], &own);
        })
    };
    // The set header alone: the root does not matter to who refuses it before.
    let in_header = |at: usize, value: u8| {
        changed(&unsigned, |body| {
            let bytes = u32::from_be_bytes(body[header + 20..header + 24].try_into().unwrap());
            body[header + at] = value;
            resigned(&mut body[header..header + bytes as usize], &own);
        })
    };
    let another = case("", &shape(two(1, false)), &[database(1)])?;
    let chunks = chunk_at(&signed.body, 0);
    let end = manifest_at(&signed.body);
    let by_another =
        case("", &shape(Two { certificate: Some(other.clone()), ..two(1, false) }), &full)?;
    let stripped = case("", &shape(two(1, false)), &both)?;
    let naming = |signs| Two { names_base: true, ..two(signs, false) };
    let of_its_full = case("signed-differential-of-its-full", &shape(naming(2)), &both)?;
    // Somebody who has the key makes another full set of the same id.
    let other_full = case("", &shape(naming(0)), &[database(1)])?;
    let full_bytes = case("", &shape(naming(1)), &full)?.body.len();
    let block = |body: &[u8]| body.len() - 64 - (256 + 43);
    let padding = {
        let prefix = [b'P', b'C', b'H', b'K', 7];
        padded.body.windows(5).position(|window| window == prefix).unwrap()
    };
    let mut not_zero = padded.body[padding + 48..manifest_at(&padded.body) - 16].to_vec();
    not_zero.fill(0);
    not_zero[0] = 1;
    let mut prefix =
        pellucid::media::ChunkPrefix::parse(padded.body[padding..].first_chunk().unwrap()).unwrap();
    let sealed_prefix = prefix.seal(Some(&own), &mut not_zero)?;
    let unauthentic =
        |case: Case, kind: &str, error: &str| case.failing(kind, "unauthentic", error);
    Ok(vec![
        // Opened by the key file, and signed by a certificate that should have wrapped it by both keys.
        downgrade.failing("hybrid-downgrade", "unauthentic", "wrapped by RSA alone after"),
        hybrid
            .failing("hybrid-without-companion", "missing-key", "whose companion key is not in")
            .with("companion-added", "none"),
        hybrid,
        case("signed-differential", &shape(two(2, false)), &both)?,
        unauthentic(
            changed(&of_its_full, |body| {
                body.splice(..full_bytes, other_full.body.iter().copied());
            }),
            "signed-differential-of-another-full",
            "has another manifest than the full set",
        ),
        of_its_full,
        case("signed-striped-padded", &Shape { families: 2, ..shape(two(1, true)) }, &full)?,
        case(
            "signed-without-its-certificate",
            &shape(Two { certificate: Some(other), ..two(1, false) }),
            &full,
        )?
        .with_bytes("certificate", certificate.public().der())
        .with_bytes("private-key", certificate.private_key().unwrap()),
        unauthentic(
            changed(&signed, |body| body[chunks..end].copy_from_slice(&another.body[chunks..end])),
            "signed-other-chunks",
            "not the ones that were signed",
        ),
        unauthentic(
            in_manifest(&signed, &|manifest| manifest[104] ^= 1),
            "signed-forged-root",
            "its signature is not one",
        ),
        unauthentic(
            in_manifest(&signed, &|manifest| manifest[48] ^= 1),
            "signed-forged-manifest",
            "its signature is not one",
        ),
        unauthentic(
            in_manifest(&signed, &|manifest| {
                let at = manifest.len() - 64 - 8 - 256;
                manifest[at] ^= 1;
            }),
            "forged-signature",
            "its signature is not one",
        ),
        unauthentic(
            changed(&signed, |body| {
                let (from, to) = (block(&by_another.body), block(body));
                let other = &by_another.body[from..from + 256 + 43];
                body[to..to + 256 + 43].copy_from_slice(other);
                let at = manifest_at(body);
                resigned(&mut body[at..], &own);
            }),
            "signed-by-another-certificate",
            "a certificate that does not protect it",
        ),
        stripped.failing("not-signed-behind-signed", "misuse", "it is NOT signed"),
        changed(&signed, |body| {
            // As 0.1.0 wrote them: the block before the protectors is gone.
            let bytes = u32::from_be_bytes(body[header + 20..header + 24].try_into().unwrap());
            let end = header + bytes as usize;
            body[header + 16..header + 20].copy_from_slice(&1u32.to_be_bytes());
            body.copy_within(header + 384..end - 64, header + 256);
            resigned(&mut body[header..end], &own);
        })
        .failing(
            "version-1-on-media-of-version-2",
            "corrupt",
            "another one than that of its media",
        ),
        changed(&signed, |body| {
            body[16..20].copy_from_slice(&1u32.to_be_bytes());
            mend_sum(&mut body[..header]);
        })
        .failing(
            "version-2-on-media-of-version-1",
            "corrupt",
            "another one than that of its media",
        ),
        in_manifest(&signed, &|manifest| {
            let at = manifest.len() - 64 - 8;
            manifest[at + 3] ^= 1;
        })
        .failing(
            "signature-block-of-another-length",
            "corrupt",
            "its fields are malformed",
        ),
        in_manifest(&signed, &|manifest| {
            let at = manifest.len() - 64 - 4;
            manifest[at + 3] ^= 1;
        })
        .failing("manifest-of-another-length", "corrupt", "its fields are malformed"),
        in_manifest(&signed, &|manifest| manifest[96 + 40 + 2] ^= 1).failing(
            "signature-of-another-length",
            "corrupt",
            "its length is not possible",
        ),
        in_manifest(&unsigned, &|manifest| manifest[96 + 40 + 3] = 1).failing(
            "no-signature-with-a-thumbprint",
            "corrupt",
            "its fields are malformed",
        ),
        in_manifest(&signed, &|manifest| manifest[96 + 40] = 2).failing(
            "reserved-signature",
            "unsupported",
            "signature kind 2 is reserved",
        ),
        in_manifest(&signed, &|manifest| manifest[96 + 40] = 3).failing(
            "unknown-signature",
            "unsupported",
            "signature kind 3 is not known",
        ),
        in_header(256, 1).failing("set-2-fork-in-use", "unsupported", "byte 256 is not zero"),
        in_header(383, 1).failing("set-2-byte-in-use", "unsupported", "byte 383 is not zero"),
        in_header(360, 2).failing("unknown-padding", "unsupported", "flags 2 are not known"),
        changed(&padded, |body| {
            body[padding..padding + 48].copy_from_slice(&sealed_prefix);
            body[padding + 48..padding + 48 + not_zero.len()].copy_from_slice(&not_zero);
        })
        .failing("padding-not-zeros", "corrupt", "something else than padding"),
        changed(&padded, |body| {
            let bytes = u32::from_be_bytes(body[header + 20..header + 24].try_into().unwrap());
            body[header + 360] = 0;
            resigned(&mut body[header..header + bytes as usize], &own);
        })
        .failing("padding-where-none-is-said", "corrupt", "padding and other chunks"),
        signed,
        unsigned,
        padded,
    ])
}

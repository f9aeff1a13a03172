//! Goal: media that were changed give an error at each of the three levels that claims to see it, and never a wrong byte;
//! without the key somebody who makes every checksum right is not seen, and with it is.
//!
//! Method: each byte of small media is flipped, they end after each byte, chunks are exchanged, left out, repeated and
//! taken from elsewhere, as they are and with all right that needs no key: checksums, lengths, offsets, roots.

use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;

use pellucid::certificate::{Certificate, CertificateRequest};
use pellucid::hash::Sha256;
use pellucid::media::{
    ChunkKind, ChunkPrefix, Compression, Index, Root, SetHeader, SetKeys, Stored, PREFIX_BYTES,
};
use pellucid::protector::{wrap, Binding, KeySource, Wrapping};
use pellucid::{Algorithm, Dek, Error, Result};
use pellucid_backup::restore::{
    restore_pages, verify_checksums, Family, FileSource, OpenSet, PageTarget, Tail,
};

use crate::media::{
    at_hand, back_up, back_up_under, file, forge, keys, open, pages, Shape, PLAINEST,
};

const SEALED: Shape = Shape { algorithm: Some(Algorithm::Aes256), ..PLAINEST };
const SIGNED: Shape = Shape { signed: true, ..SEALED };
const MEDIA_HEADER: usize = 4096;

/// What needs no key: the structure, then every checksum and root.
fn without_key(directory: &Path, shape: &Shape) -> [Result<()>; 2] {
    let structure = || {
        let media = open(directory, shape)?;
        media.last()?;
        media.set(1).map(|_| ())
    };
    let checksums = || {
        let media = open(directory, shape)?;
        for (family, set) in media.set(1)?.into_iter().flatten() {
            verify_checksums(family, set, &mut |_| ())?;
        }
        media.last().map(|_| ())
    };
    [structure(), checksums()]
}

/// A database in memory.
struct Memory(Mutex<Vec<u8>>, usize);

impl PageTarget for Memory {
    fn write(&self, first: u32, pages: &[u8]) -> Result<()> {
        let at = (first as usize - 1) * self.1;
        self.0.lock().unwrap()[at..at + pages.len()].copy_from_slice(pages);
        Ok(())
    }
}

fn restored(directory: &Path, shape: &Shape, keys: &dyn KeySource) -> Result<Vec<u8>> {
    let media = open(directory, shape)?;
    let set = OpenSet::open(&media, 1, keys)?;
    let (pages, bytes) = (set.header().pages as usize, set.header().page_size as usize);
    let target = Memory(Mutex::new(vec![0; pages * bytes]), bytes);
    restore_pages(&set, &target, 2, &mut |_| ())?;
    Ok(target.0.into_inner().unwrap())
}

/// Which levels see it: structure, checksums and roots, key. The restored bytes, if there are any, are the right ones.
fn seen(directory: &Path, shape: &Shape, content: &[u8]) -> ([bool; 3], String) {
    let [structure, checksums] = without_key(directory, shape);
    let restored = restored(directory, shape, &at_hand());
    let told = match &restored {
        Ok(bytes) => {
            assert!(bytes == content, "a wrong byte was restored");
            String::new()
        }
        Err(error) => error.to_string(),
    };
    ([structure.is_err(), checksums.is_err(), restored.is_err()], told)
}

#[test]
fn every_flipped_byte_is_seen_with_and_without_the_key() {
    let striped = Shape { compression: Compression::Zstd, families: 2, ..SEALED };
    for shape in [PLAINEST, SEALED, striped, Shape { families: 2, ..SIGNED }] {
        let directory = tempfile::tempdir().unwrap();
        let mut source = pages(512, 9);
        back_up(directory.path(), &mut source, &shape, None);
        for family in 1..=shape.families {
            let path = file(directory.path(), family, 0);
            let whole = std::fs::read(&path).unwrap();
            for byte in 0..whole.len() {
                let mut changed = whole.clone();
                changed[byte] ^= 1 << (byte % 8);
                std::fs::write(&path, &changed).unwrap();
                let (levels, told) = seen(directory.path(), &shape, &source.bytes);
                let what = format!("{:?}, family {family}, byte {byte}", shape.algorithm);
                assert!(levels[1] && levels[2], "{what}: {levels:?}");
                assert!(!told.is_empty(), "{what}");
            }
            std::fs::write(&path, &whole).unwrap();
        }
        let (levels, _) = seen(directory.path(), &shape, &source.bytes);
        assert_eq!(levels, [false; 3], "whole again");
    }
}

#[test]
fn ended_after_any_byte_it_is_interrupted_at_every_level() {
    for shape in [PLAINEST, SEALED, SIGNED] {
        let directory = tempfile::tempdir().unwrap();
        let mut source = pages(512, 9);
        back_up(directory.path(), &mut source, &shape, None);
        let path = file(directory.path(), 1, 0);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (levels, told) = seen(directory.path(), &shape, &source.bytes);
            assert_eq!(levels, [true; 3], "cut to {length}: {told}");
            let Ok(media) = open(directory.path(), &shape) else {
                assert!(length < MEDIA_HEADER, "{length}");
                continue;
            };
            let tail = &media.families()[0][0].tail;
            let begun = length > MEDIA_HEADER;
            assert!(matches!(tail, Tail::Interrupted { .. }) || !begun, "{length}: {tail:?}");
        }
    }
}

/// Where the parts of the only set in a family are.
struct Parts {
    header: Range<usize>,
    chunks: Vec<Range<usize>>,
    manifest: Range<usize>,
}

fn length_at(bytes: &[u8], at: usize) -> usize {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn parts(bytes: &[u8]) -> Parts {
    let header = MEDIA_HEADER..MEDIA_HEADER + length_at(bytes, MEDIA_HEADER + 20);
    let (mut at, mut chunks) = (header.end, Vec::new());
    while bytes[at..].starts_with(b"PCHK") {
        let end = at + PREFIX_BYTES + length_at(bytes, at + 28);
        chunks.push(at..end);
        at = end;
    }
    Parts { header, chunks, manifest: at..at + length_at(bytes, at + 20) }
}

fn sum(bytes: &mut [u8]) {
    let end = bytes.len() - 32;
    let mut hash = Sha256::new();
    hash.update(&bytes[..end]);
    bytes[end..].copy_from_slice(&hash.finish());
}

/// Puts a family together again and makes everything right that needs no key.
fn repaired(media: &[u8], header: &[u8], chunks: &[Vec<u8>], manifest: &[u8]) -> Vec<u8> {
    let mut header = header.to_vec();
    sum(&mut header);
    let mut root = Root::new(&header);
    let (mut body, mut index_offset) = (Vec::new(), None);
    for chunk in chunks {
        let mut chunk = chunk.clone();
        let mut hash = blake3::Hasher::new();
        hash.update(&chunk[..32]).update(&chunk[PREFIX_BYTES..]);
        chunk[32..PREFIX_BYTES].copy_from_slice(&hash.finalize().as_bytes()[..16]);
        let prefix: [u8; PREFIX_BYTES] = chunk[..PREFIX_BYTES].try_into().unwrap();
        let parsed = ChunkPrefix::parse(&prefix).unwrap();
        parsed.check(&prefix, &chunk[PREFIX_BYTES..]).unwrap();
        if chunk[4] == 3 && index_offset.is_none() {
            index_offset = Some((header.len() + body.len()) as u64);
        }
        root.update(&prefix);
        body.extend(chunk);
    }
    let mut manifest = manifest.to_vec();
    manifest[88..96].copy_from_slice(&index_offset.unwrap().to_be_bytes());
    manifest[96..104].copy_from_slice(&((header.len() + body.len()) as u64).to_be_bytes());
    manifest[104..136].copy_from_slice(&root.finish());
    sum(&mut manifest);
    [media, &header, &body, &manifest].concat()
}

/// Twelve chunks of pages that do not compress, and what else there is.
fn several(shape: &Shape) -> (tempfile::TempDir, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let mut source = pages(65536, 70);
    back_up(directory.path(), &mut source, shape, None);
    (directory, source.bytes)
}

#[test]
fn chunks_exchanged_left_out_repeated_and_from_elsewhere() {
    for shape in [PLAINEST, SEALED] {
        let (directory, content) = several(&shape);
        let (other, _) = several(&shape);
        let path = file(directory.path(), 1, 0);
        let whole = std::fs::read(&path).unwrap();
        let foreign = std::fs::read(file(other.path(), 1, 0)).unwrap();
        let (own, theirs) = (parts(&whole), parts(&foreign));
        let chunks: Vec<_> = own.chunks.iter().map(|chunk| whole[chunk.clone()].to_vec()).collect();
        assert!(chunks.len() > 5, "{}", chunks.len());
        let mut exchanged = chunks.clone();
        exchanged.swap(0, 2);
        let mut numbered = exchanged.clone();
        // Under each other's numbers and pages.
        for at in [0, 2] {
            numbered[at][..32].copy_from_slice(&chunks[at][..32]);
        }
        let mut left_out = chunks.clone();
        left_out.remove(1);
        let mut repeated = chunks.clone();
        repeated.insert(1, chunks[1].clone());
        let mut doubled = chunks.clone();
        doubled[1] = chunks[0].clone();
        let mut taken = chunks.clone();
        taken[1] = foreign[theirs.chunks[1].clone()].to_vec();
        let mut all_taken: Vec<_> =
            theirs.chunks.iter().map(|chunk| foreign[chunk.clone()].to_vec()).collect();
        all_taken[0] = chunks[0].clone();
        let mut changed = chunks.clone();
        *changed[1].last_mut().unwrap() ^= 1;
        let cases = [
            ("exchanged", exchanged),
            ("under another number", numbered),
            ("left out", left_out),
            ("repeated", repeated),
            ("in the place of another", doubled),
            ("of another set", taken),
            ("all but one of another set", all_taken),
            ("changed", changed),
        ];
        for (what, chunks) in cases {
            // A plain set has nothing but checksums, and its chunks are the same in another set of the same pages.
            let what = format!("{what}, {:?}", shape.algorithm);
            let body: Vec<u8> = chunks.concat();
            let clumsy = [&whole[..own.header.end], &body, &whole[own.manifest.clone()]].concat();
            if clumsy != whole {
                std::fs::write(&path, &clumsy).unwrap();
                let (levels, told) = seen(directory.path(), &shape, &content);
                let same = shape.algorithm.is_none() && what.contains("of another set");
                assert!((levels[1] && levels[2]) || same, "{what}: {levels:?}");
                assert!(!levels[2] || !told.is_empty(), "{what}");
            }
            if shape.algorithm.is_none() {
                continue;
            }
            let (media, header) = (&whole[..MEDIA_HEADER], &whole[own.header.clone()]);
            let skilled = repaired(media, header, &chunks, &whole[own.manifest.clone()]);
            std::fs::write(&path, &skilled).unwrap();
            let (levels, told) = seen(directory.path(), &shape, &content);
            // What claims only that nothing was damaged says so; with the key it is told.
            assert_eq!(levels, [false, false, true], "{what}, made right: {told}");
            assert!(told.contains("manifest"), "{what}: {told}");
        }
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(seen(directory.path(), &shape, &content).0, [false; 3]);
    }
}

/// Somebody who has the key of a set makes all tags of other chunks right. Who knows the manifest, as the history does, gets
/// nothing else for it.
#[test]
fn other_chunks_of_a_set_without_a_signature_do_not_fit_its_manifest() {
    let (directory, content) = several(&SEALED);
    let path = file(directory.path(), 1, 0);
    let whole = std::fs::read(&path).unwrap();
    let own = parts(&whole);
    let header = SetHeader::parse(&whole[own.header.clone()], 1).unwrap();
    let key = header.unwrap(&at_hand()).unwrap();
    let keys = SetKeys::derive(&key, &header.set, Algorithm::Aes256).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut others = pages(65536, 70);
    others.bytes[3 * 65536 + 100..][..64].fill(7);
    assert!(others.bytes != content);
    forge(elsewhere.path(), &mut others, &SEALED, header, &keys);
    let forged = std::fs::read(file(elsewhere.path(), 1, 0)).unwrap();
    let theirs = parts(&forged);
    let body = |bytes: &[u8], parts: &Parts| -> Vec<u8> {
        parts.chunks.iter().flat_map(|chunk| bytes[chunk.clone()].to_vec()).collect()
    };
    let exchanged = body(&forged, &theirs);
    assert_eq!(exchanged.len(), body(&whole, &own).len());
    let media = [&whole[..own.header.end], &exchanged, &whole[own.manifest.clone()]].concat();
    std::fs::write(&path, media).unwrap();
    let told = restored(directory.path(), &SEALED, &at_hand()).unwrap_err();
    assert!(matches!(told, Error::Corrupt { .. }), "{told}");
    assert!(told.to_string().contains("another root"), "{told}");
}

#[test]
fn a_set_header_changed_in_any_byte_with_all_checksums_made_right() {
    let directory = tempfile::tempdir().unwrap();
    let mut source = pages(512, 9);
    back_up(directory.path(), &mut source, &SEALED, None);
    let path = file(directory.path(), 1, 0);
    let whole = std::fs::read(&path).unwrap();
    let own = parts(&whole);
    let chunks: Vec<_> = own.chunks.iter().map(|chunk| whole[chunk.clone()].to_vec()).collect();
    let mut unseen = 0;
    // The last 32 bytes are the checksum itself.
    for byte in 0..own.header.len() - 32 {
        let mut header = whole[own.header.clone()].to_vec();
        header[byte] ^= 1 << (byte % 8);
        let manifest = &whole[own.manifest.clone()];
        std::fs::write(&path, repaired(&whole[..MEDIA_HEADER], &header, &chunks, manifest))
            .unwrap();
        let (levels, told) = seen(directory.path(), &SEALED, &source.bytes);
        assert!(levels[2] && !told.is_empty(), "byte {byte} of the header");
        unseen += u32::from(!levels[1]);
    }
    assert!(unseen > 100, "without the key most of them cannot be seen: {unseen}");
}

#[test]
fn stripes_that_say_they_are_each_other_are_told() {
    let shape = Shape { families: 2, ..SEALED };
    let (directory, content) = several(&shape);
    for family in [1, 2] {
        let path = file(directory.path(), family, 0);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[22..24].copy_from_slice(&(3 - family).to_be_bytes());
        sum(&mut bytes[..MEDIA_HEADER]);
        std::fs::write(&path, bytes).unwrap();
    }
    let (levels, told) = seen(directory.path(), &shape, &content);
    assert_eq!(levels, [true; 3], "{told}");
    assert!(told.contains("another one than that of the first family"), "{told}");
}

/// A keyring with one certificate.
struct Keyring(Certificate);

impl KeySource for Keyring {
    fn certificate(&self, thumbprint: &[u8; 32]) -> Result<Option<Certificate>> {
        Ok((thumbprint == self.0.public().thumbprint()).then(|| self.0.clone()))
    }
}

#[test]
fn a_set_made_under_our_public_half_is_refused() {
    let ours = Certificate::generate("app", &CertificateRequest::new("App", 10)).unwrap();
    let theirs = Certificate::generate("app", &CertificateRequest::new("App", 10)).unwrap();
    let keyring = Keyring(ours.clone());
    let made = |protector: &dyn Fn(&Dek, &Binding<'_>) -> Vec<u8>| {
        let directory = tempfile::tempdir().unwrap();
        back_up_under(directory.path(), &mut pages(512, 9), &SEALED, None, protector);
        // Whoever made it knows the key: everything fits, and only the protector says who it was.
        assert!(without_key(directory.path(), &SEALED).iter().all(Result::is_ok));
        restored(directory.path(), &SEALED, &keyring)
    };
    made(&|key, binding| wrap(key, binding, &Wrapping::Certificate(&ours)).unwrap().encoded())
        .unwrap();
    let with_public_half = |key: &Dek, binding: &Binding<'_>| {
        wrap(key, binding, &Wrapping::Recovery(ours.public())).unwrap().encoded()
    };
    let refused = made(&with_public_half).unwrap_err();
    assert!(matches!(refused, Error::MissingKey { .. }), "{refused}");
    let says = "no key for it. It opens with recovery certificate `app` (`--online` ";
    assert!(refused.to_string().contains(says), "{refused}");
    // With a signature of their own in the place of ours.
    let refused = made(&|key, binding| {
        let wrapped = with_public_half(key, binding);
        let mut signed = wrap(key, binding, &Wrapping::Certificate(&theirs)).unwrap().encoded();
        let at = |bytes: &[u8], thumbprint: &[u8; 32]| {
            bytes.windows(32).position(|window| window == thumbprint).unwrap()
        };
        let to = at(&signed, theirs.public().thumbprint());
        let from = at(&wrapped, ours.public().thumbprint());
        // Thumbprint, and the wrapped key with its length.
        let length = wrapped.len() - from - 2;
        signed[to..to + length].copy_from_slice(&wrapped[from..from + length]);
        signed
    })
    .unwrap_err();
    assert!(matches!(refused, Error::Unauthentic { .. }), "{refused}");
}

/// The same media with another index, all right that needs no key.
fn with_index(whole: &[u8], stored: Stored, change: impl FnOnce(&mut Index)) -> Vec<u8> {
    let source = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(source.path(), whole).unwrap();
    let family = Family::open(Box::new(FileSource::open(source.path()).unwrap())).unwrap();
    let set = &family.sets[0];
    let at = set.at as usize + set.manifest.index_offset as usize;
    let mut index = Index::parse(&whole[at + PREFIX_BYTES..set.manifest_at as usize]).unwrap();
    change(&mut index);
    let mut body = index.encode();
    let content_bytes = body.len() as u32;
    if stored == Stored::Zstd {
        body = zstd_of(&body);
    }
    let mut prefix = ChunkPrefix {
        kind: ChunkKind::Index,
        stored,
        without_tails: false,
        number: 0,
        first_page: 0,
        pages: 0,
        content_bytes,
        stored_bytes: 0,
    };
    let prefix = prefix.seal(None, &mut body).unwrap();
    let mut manifest = set.manifest.clone();
    let mut forged = [&whole[..at], &prefix[..], &body].concat();
    manifest.families[0].bytes = forged.len() as u64 - set.at;
    forged.extend_from_slice(&manifest.encode(None).unwrap());
    forged
}

fn zstd_of(content: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut compressor = pellucid::media::Compressor::new(Compression::Zstd, 1).unwrap();
    assert_eq!(compressor.compress(content, &mut packed).unwrap(), Stored::Zstd);
    packed
}

#[test]
fn media_in_clear_cannot_ask_for_more_memory_than_they_have_bytes() {
    let directory = tempfile::tempdir().unwrap();
    back_up(directory.path(), &mut pages(512, 9), &PLAINEST, None);
    let path = file(directory.path(), 1, 0);
    let whole = std::fs::read(&path).unwrap();
    let outcome = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let media = open(directory.path(), &PLAINEST)?;
        let set = OpenSet::open(&media, 1, &keys())?;
        let target = Memory(Mutex::new(vec![0; 9 * 512]), 512);
        let restored = restore_pages(&set, &target, 1, &mut |_| ());
        let hashes = set.page_hashes().map(|hashes| hashes.len());
        assert_eq!(restored.is_err(), hashes.is_err());
        hashes
    };
    assert_eq!(outcome(&with_index(&whole, Stored::Raw, |_| ())).unwrap(), 9 * 16);
    let told = |bytes: &[u8], says: &str| {
        let error = outcome(bytes).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    let hashes = "page hashes are not those";
    let again = |index: &mut Index| index.hashes = vec![index.hashes[0]; 1000];
    told(&with_index(&whole, Stored::Raw, again), hashes);
    told(&with_index(&whole, Stored::Raw, |index| index.hashes.clear()), hashes);
    let pages_instead = |index: &mut Index| index.hashes = vec![index.chunks[0]];
    told(&with_index(&whole, Stored::Raw, pages_instead), hashes);
    told(&with_index(&whole, Stored::Zstd, again), "never is");
}

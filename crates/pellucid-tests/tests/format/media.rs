//! Backup media written and read back: what was written comes back. What was changed: tampered_media.rs.

use std::path::{Path, PathBuf};

use pellucid::certificate::{Certificate, CertificateRequest};
use pellucid::derive::commitment;
use pellucid::media::{
    Compression, Description, Kind, MediaHeader, MediaVersion, SetHeader, SetKeys, Version2,
    CHUNK_BYTES,
};
use pellucid::protector::{wrap, Binding, KeyFile, KeySource, Wrapping};
use pellucid::{Algorithm, Dek, Error, Result};
use pellucid_backup::restore::{
    restore_pages, verify_checksums, Family, FileSource, Media, OpenSet, PlainTarget,
};
use pellucid_backup::set::{
    write_set, Base, FamilyTarget, FileSink, MediaSink, NewSet, Options, PageSource, Written,
};

/// A database in memory.
pub struct Pages {
    pub bytes: Vec<u8>,
    page_size: usize,
    /// A page that cannot be read.
    bad: Option<u32>,
}

impl PageSource for Pages {
    fn read(&mut self, first: u32, into: &mut [u8]) -> Result<()> {
        let pages = first..first + (into.len() / self.page_size) as u32;
        if let Some(bad) = self.bad.filter(|bad| pages.contains(bad)) {
            return Err(Error::unauthentic(pellucid::Subject::Page(bad), "damaged for the test"));
        }
        let at = (first as usize - 1) * self.page_size;
        into.copy_from_slice(&self.bytes[at..at + into.len()]);
        Ok(())
    }
}

/// Pages of which every second compresses well.
pub fn pages(page_size: usize, count: u32) -> Pages {
    let mut bytes = vec![0; page_size * count as usize];
    let mut state = 1u64;
    for (number, page) in bytes.chunks_exact_mut(page_size).enumerate() {
        if number % 2 == 0 {
            page.fill(number as u8);
            continue;
        }
        for byte in page {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (state >> 33) as u8;
        }
    }
    Pages { bytes, page_size, bad: None }
}

pub fn keys() -> Vec<KeyFile> {
    vec![KeyFile::parse(&[7; 32]).unwrap()]
}

/// The certificate that signs sets of version 2.
pub fn signer() -> &'static Certificate {
    static SIGNER: std::sync::OnceLock<Certificate> = std::sync::OnceLock::new();
    SIGNER.get_or_init(|| {
        let request = CertificateRequest { rsa_bits: 2048, ..CertificateRequest::new("App", 10) };
        Certificate::generate("signer", &request).unwrap()
    })
}

/// The key file and the certificate.
pub struct AtHand(Vec<KeyFile>);

pub fn at_hand() -> AtHand {
    AtHand(keys())
}

impl KeySource for AtHand {
    fn key_files(&self) -> &[KeyFile] {
        &self.0
    }

    fn certificate(&self, thumbprint: &[u8; 32]) -> Result<Option<Certificate>> {
        Ok((thumbprint == signer().public().thumbprint()).then(|| signer().clone()))
    }
}

#[derive(Clone)]
pub struct Shape {
    /// Of version 2: signed and padded.
    pub signed: bool,
    pub families: u16,
    pub mirrors: u8,
    pub algorithm: Option<Algorithm>,
    pub compression: Compression,
    pub position: u32,
    pub kind: Kind,
    pub base: [u8; 16],
    pub continue_after_error: bool,
}

pub const PLAINEST: Shape = Shape {
    signed: false,
    families: 1,
    mirrors: 1,
    algorithm: None,
    compression: Compression::None,
    position: 1,
    kind: Kind::Full,
    base: [0; 16],
    continue_after_error: false,
};

pub fn file(directory: &Path, family: u16, mirror: u8) -> PathBuf {
    directory.join(format!("media.{family}.{mirror}"))
}

/// Makes the files of a media set, or goes on behind the sets they have.
fn targets(directory: &Path, shape: &Shape) -> Vec<FamilyTarget> {
    let of_family = |family: u16| {
        let copies = (0..shape.mirrors).map(|mirror| {
            let path = file(directory, family, mirror);
            if shape.position > 1 {
                let end = Family::open(Box::new(FileSource::open(&path).unwrap())).unwrap().end;
                let mut sink = FileSink::open(&path).unwrap();
                sink.go_on_at(end).unwrap();
                return Box::new(sink) as Box<dyn MediaSink>;
            }
            let version = if shape.signed { MediaVersion::Two } else { MediaVersion::One };
            let header = MediaHeader {
                version,
                families: shape.families,
                family,
                mirrors: shape.mirrors,
                mirror,
                ..MediaHeader::single(
                    [1; 16],
                    shape.compression != Compression::None,
                    shape.algorithm.is_some(),
                    1,
                )
            };
            let mut sink = FileSink::create(&path).unwrap();
            sink.write(&header.encode().unwrap()).unwrap();
            Box::new(sink) as Box<dyn MediaSink>
        });
        FamilyTarget::new(copies.collect())
    };
    (1..=shape.families).map(of_family).collect()
}

pub fn back_up(
    directory: &Path,
    source: &mut Pages,
    shape: &Shape,
    base: Option<&Base>,
) -> Written {
    back_up_under(directory, source, shape, base, &|key, binding| {
        wrap(key, binding, &Wrapping::KeyFile(&keys()[0])).unwrap().encoded()
    })
}

/// The same with a protector that the caller makes.
pub fn back_up_under(
    directory: &Path,
    source: &mut Pages,
    shape: &Shape,
    base: Option<&Base>,
    protector: &dyn Fn(&Dek, &Binding<'_>) -> Vec<u8>,
) -> Written {
    let mut header = header(shape, source);
    let mut set_keys = None;
    if let Some(algorithm) = shape.algorithm {
        let key = Dek::random().unwrap();
        header.commitment = commitment(&key, &header.set).unwrap();
        let encoded = protector(&key, &header.binding().unwrap());
        header.protectors.push(encoded);
        if shape.signed {
            let by = Wrapping::Certificate(signer());
            let by = wrap(&key, &header.binding().unwrap(), &by).unwrap();
            header.protectors.push(by.encoded());
        }
        set_keys = Some(SetKeys::derive(&key, &header.set, algorithm).unwrap());
    } else {
        header.page_hash_key = [9; 32];
    }
    let description = Description { database: "marked-name".into(), ..Description::default() };
    let signer = shape.signed.then(signer);
    let set = NewSet { header, description, keys: set_keys.as_ref(), signer };
    let options =
        Options { workers: 2, level: 1, continue_after_error: shape.continue_after_error };
    let mut targets = targets(directory, shape);
    write_set(source, &set, base, &mut targets, &options, &mut |_, _| ()).unwrap()
}

/// Makes a set without a signature of other pages, as somebody does who has the key of the one with this header.
pub fn forge(
    directory: &Path,
    source: &mut Pages,
    shape: &Shape,
    header: SetHeader,
    keys: &SetKeys,
) {
    let description = Description { database: "marked-name".into(), ..Description::default() };
    let set = NewSet { header, description, keys: Some(keys), signer: None };
    let options = Options { workers: 2, level: 1, continue_after_error: false };
    let mut targets = targets(directory, shape);
    write_set(source, &set, None, &mut targets, &options, &mut |_, _| ()).unwrap();
}

fn header(shape: &Shape, source: &Pages) -> SetHeader {
    SetHeader {
        version2: shape.signed.then_some(Version2 { padded: true, ..Version2::default() }),
        media_set: [1; 16],
        set: [shape.position as u8 + 1; 16],
        family: 1,
        families: shape.families,
        position: shape.position,
        kind: shape.kind,
        algorithm: shape.algorithm,
        compression: shape.compression,
        copy_only: false,
        sealed_source: false,
        page_size: source.page_size as u32,
        pages: (source.bytes.len() / source.page_size) as u32,
        chunk_pages: (CHUNK_BYTES / source.page_size).max(1) as u32,
        begun: 1,
        expires: 0,
        source: [0; 16],
        base: shape.base,
        commitment: [0; 32],
        source_thumbprint: [0; 32],
        page_hash_key: [0; 32],
        flags: pellucid::flags::Flags::default(),
        protectors: Vec::new(),
        description: Vec::new(),
    }
}

pub fn open(directory: &Path, shape: &Shape) -> Result<Media> {
    let mut found = Vec::new();
    for family in (1..=shape.families).rev() {
        for mirror in 0..shape.mirrors {
            let source = FileSource::open(&file(directory, family, mirror))?;
            found.push(Family::open(Box::new(source))?);
        }
    }
    Media::assemble(found)
}

fn restore(directory: &Path, shape: &Shape, positions: &[u32]) -> Result<Vec<u8>> {
    let media = open(directory, shape)?;
    let target = directory.join("restored");
    let _ = std::fs::remove_file(&target);
    let mut out = None;
    let mut pages = 0;
    for position in positions {
        let set = OpenSet::open(&media, *position, &keys())?;
        assert_eq!(set.description().database, "marked-name");
        pages = set.header().pages;
        let page_size = set.header().page_size;
        let file = match out.take() {
            Some(file) => file,
            None => PlainTarget::create(&target, page_size)?,
        };
        restore_pages(&set, &file, 2, &mut |_| ())?;
        out = Some(file);
    }
    out.unwrap().finish(pages)?;
    Ok(std::fs::read(&target).unwrap())
}

#[test]
fn what_was_backed_up_comes_back_whatever_the_shape() {
    let shapes = [
        PLAINEST,
        Shape { algorithm: Some(Algorithm::Aes256), ..PLAINEST },
        Shape { compression: Compression::Lz4, families: 3, ..PLAINEST },
        Shape {
            algorithm: Some(Algorithm::TripleDes3Key),
            compression: Compression::Zstd,
            families: 2,
            mirrors: 2,
            ..PLAINEST
        },
    ];
    for shape in shapes {
        for (page_size, count) in [(512, 1), (512, 5000), (4096, 1000), (65536, 50)] {
            let directory = tempfile::tempdir().unwrap();
            let mut source = pages(page_size, count);
            let written = back_up(directory.path(), &mut source, &shape, None);
            assert_eq!(written.manifest.pages, count);
            assert_eq!(restore(directory.path(), &shape, &[1]).unwrap(), source.bytes);
            let media = open(directory.path(), &shape).unwrap();
            for (family, set) in media.set(1).unwrap().into_iter().flatten() {
                verify_checksums(family, set, &mut |_| ()).unwrap();
            }
        }
    }
}

#[test]
fn a_sealed_set_shows_nothing_of_what_is_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let shape = Shape { algorithm: Some(Algorithm::Aes256), ..PLAINEST };
    let mut source = pages(4096, 300);
    source.bytes[5000..5011].copy_from_slice(b"marked-page");
    back_up(directory.path(), &mut source, &shape, None);
    let media = std::fs::read(file(directory.path(), 1, 0)).unwrap();
    assert!(!media.windows(7).any(|window| window == b"marked-"));
    let plain = tempfile::tempdir().unwrap();
    back_up(plain.path(), &mut source, &PLAINEST, None);
    let media = std::fs::read(file(plain.path(), 1, 0)).unwrap();
    assert!(media.windows(7).any(|window| window == b"marked-"), "else the search finds nothing");
}

#[test]
fn a_differential_holds_what_changed_and_the_two_give_the_new_state() {
    for algorithm in [None, Some(Algorithm::Aes128)] {
        let directory = tempfile::tempdir().unwrap();
        let shape = Shape { algorithm, compression: Compression::Zstd, families: 2, ..PLAINEST };
        let mut source = pages(4096, 2000);
        back_up(directory.path(), &mut source, &shape, None);
        for (page, new_count) in [(3usize, 2000), (1999, 2100), (700, 1500)] {
            source.bytes.resize(new_count * 4096, 0x5a);
            if page <= new_count {
                source.bytes[(page - 1) * 4096 + 17] ^= 1;
            }
        }
        let (base, base_set) = {
            let media = open(directory.path(), &shape).unwrap();
            let full = OpenSet::open(&media, 1, &keys()).unwrap();
            let hashes = full.page_hashes().unwrap();
            assert_eq!(hashes.len(), 2000 * 16);
            (Base { page_hash_key: full.page_hash_key(), hashes, only: None }, full.header().set)
        };
        let second =
            Shape { position: 2, kind: Kind::Differential, base: base_set, ..shape.clone() };
        let written = back_up(directory.path(), &mut source, &second, Some(&base));
        assert_eq!(
            written.manifest.pages, 2,
            "pages 3 and 700 changed; those behind 1500 are gone"
        );
        assert_eq!(restore(directory.path(), &shape, &[1, 2]).unwrap(), source.bytes);
    }
}

#[test]
fn a_mirror_stands_in_for_what_is_damaged_in_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let shape = Shape { algorithm: Some(Algorithm::Aes256), mirrors: 2, families: 2, ..PLAINEST };
    let mut source = pages(4096, 1200);
    back_up(directory.path(), &mut source, &shape, None);
    for (family, mirror) in [(1, 0), (2, 1)] {
        let path = file(directory.path(), family, mirror);
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    assert_eq!(restore(directory.path(), &shape, &[1]).unwrap(), source.bytes);
}

#[test]
fn a_missing_stripe_and_one_of_another_set_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let shape = Shape { families: 2, ..PLAINEST };
    back_up(directory.path(), &mut pages(4096, 1200), &shape, None);
    let first = || FileSource::open(&file(directory.path(), 1, 0)).unwrap();
    let alone = Media::assemble(vec![Family::open(Box::new(first())).unwrap()]).unwrap_err();
    assert!(alone.to_string().contains("media family 2 of 2 is missing"), "{alone}");

    let other = tempfile::tempdir().unwrap();
    let changed = Shape { algorithm: Some(Algorithm::Aes256), ..shape.clone() };
    back_up(other.path(), &mut pages(4096, 1200), &changed, None);
    std::fs::copy(file(other.path(), 2, 0), file(directory.path(), 2, 0)).unwrap();
    let error = restore(directory.path(), &shape, &[1]).unwrap_err();
    assert!(error.to_string().contains("manifest"), "{error}");
}

#[test]
fn each_family_has_a_share_also_when_no_writer_is_ever_behind() {
    for _ in 0..8 {
        let directory = tempfile::tempdir().unwrap();
        let shape = Shape { families: 4, ..PLAINEST };
        let written = back_up(directory.path(), &mut pages(4096, 1200), &shape, None);
        let bytes: Vec<_> = written.manifest.families.iter().map(|family| family.bytes).collect();
        assert!(bytes.iter().all(|bytes| *bytes > 512 << 10), "{bytes:?}");
    }
}

#[test]
fn a_set_counts_as_soon_as_one_family_has_its_manifest() {
    let directory = tempfile::tempdir().unwrap();
    let shape = Shape { families: 3, algorithm: Some(Algorithm::Aes256), ..PLAINEST };
    let mut source = pages(4096, 2000);
    let written = back_up(directory.path(), &mut source, &shape, None);
    let manifest = written.manifest.encode(None).unwrap().len() as u64;
    for lost in [1, manifest / 2, manifest] {
        for family in [1, 3] {
            let path = file(directory.path(), family, 0);
            let whole = 4096 + written.manifest.families[usize::from(family) - 1].bytes + manifest;
            std::fs::OpenOptions::new()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(whole - lost)
                .unwrap();
        }
        assert_eq!(restore(directory.path(), &shape, &[1]).unwrap(), source.bytes, "{lost}");
    }
    // A chunk less, and the manifest does not name this family any more.
    let path = file(directory.path(), 3, 0);
    let bytes = std::fs::metadata(&path).unwrap().len() - 1;
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(bytes).unwrap();
    assert!(restore(directory.path(), &shape, &[1]).is_err());
    let second = Shape { position: 2, ..shape.clone() };
    let error = open(directory.path(), &second).unwrap().set(1).unwrap_err();
    assert!(error.to_string().contains("interrupted"), "{error}");
}

#[test]
fn a_database_without_pages_is_refused_before_anything_is_written() {
    let (mut source, keys) = (pages(4096, 0), None);
    let directory = tempfile::tempdir().unwrap();
    let mut targets = targets(directory.path(), &PLAINEST);
    let set = NewSet {
        header: header(&PLAINEST, &source),
        description: Default::default(),
        keys,
        signer: None,
    };
    let options = Options { workers: 1, level: 1, continue_after_error: false };
    let refused =
        write_set(&mut source, &set, None, &mut targets, &options, &mut |_, _| ()).unwrap_err();
    assert!(matches!(refused, Error::Misuse { .. }), "{refused}");
    assert_eq!(std::fs::metadata(file(directory.path(), 1, 0)).unwrap().len(), 4096);
}

/// Ends its thread with the third chunk.
struct Panics(usize);

impl MediaSink for Panics {
    fn write(&mut self, _: &[u8]) -> std::io::Result<()> {
        self.0 += 1;
        assert!(self.0 < 7, "panics for the test");
        Ok(())
    }

    fn sync(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn name(&self) -> PathBuf {
        "panics".into()
    }
}

#[test]
fn a_thread_that_panics_ends_the_backup_and_nobody_waits_for_it() {
    // Many more chunks than there are slots.
    let mut source = pages(4096, 256 * 40);
    let mut targets = [FamilyTarget::new(vec![Box::new(Panics(0))])];
    let header = header(&PLAINEST, &source);
    let set = NewSet { header, description: Default::default(), keys: None, signer: None };
    let options = Options { workers: 1, level: 1, continue_after_error: false };
    let failed =
        write_set(&mut source, &set, None, &mut targets, &options, &mut |_, _| ()).unwrap_err();
    assert!(failed.to_string().contains("unexpectedly"), "{failed}");
}

#[test]
fn a_page_that_cannot_be_read_ends_the_backup_or_is_listed() {
    let directory = tempfile::tempdir().unwrap();
    let shape = Shape { continue_after_error: true, ..PLAINEST };
    let mut source = pages(4096, 700);
    source.bad = Some(300);
    let written = back_up(directory.path(), &mut source, &shape, None);
    assert!(written.manifest.damaged);
    assert_eq!(written.missing[0].0, 300);
    let media = open(directory.path(), &shape).unwrap();
    assert_eq!(OpenSet::open(&media, 1, &keys()).unwrap().index().missing, [300]);
    source.bytes[299 * 4096..300 * 4096].fill(0);
    assert_eq!(restore(directory.path(), &shape, &[1]).unwrap(), source.bytes);
}

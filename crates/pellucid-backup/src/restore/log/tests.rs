//! Log sets written and read back: for each commit to stop at, the pages are those of a naive model. What was changed or made
//! wrong is refused.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use pellucid::certificate::{Certificate, CertificateRequest};
use pellucid::derive::commitment;
use pellucid::lsn::Lsn;
use pellucid::media::{
    ChainPlace, ChunkKind, ChunkPrefix, Compression, Description, Kind, LogCommit, LogFacts,
    MediaHeader, MediaVersion, SetHeader, SetKeys, Stored, Version2, MEDIA_HEADER_BYTES,
    PREFIX_BYTES,
};
use pellucid::protector::{wrap, KeyFile, KeySource, Wrapping};
use pellucid::unit::TAIL_BYTES;
use pellucid::{Algorithm, Dek, Error, Result};

use crate::restore::{
    restore_pages, verify_checksums, Family, LogSet, Media, MediaSource, OpenSet, PageTarget,
};
use crate::set::{
    write_chunks_as_given, write_log_set, write_set, FamilyTarget, LogSource, MediaSink, NewSet,
    Options, PageSource, Written,
};

/// A file in memory.
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

impl MediaSource for Memory {
    fn read_at(&self, into: &mut [u8], offset: u64) -> std::io::Result<usize> {
        let bytes = self.0.lock().unwrap();
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn bytes(&self) -> std::io::Result<u64> {
        Ok(self.0.lock().unwrap().len() as u64)
    }

    fn name(&self) -> PathBuf {
        "memory".into()
    }
}

/// A log: commits, and what they wrote.
struct Log {
    commits: Vec<LogCommit>,
    versions: Vec<(u32, u32)>,
    pages: BTreeMap<(u32, u32), Vec<u8>>,
    page_size: usize,
}

impl LogSource for Log {
    fn commits(&self) -> &[LogCommit] {
        &self.commits
    }

    fn versions(&self) -> &[(u32, u32)] {
        &self.versions
    }

    fn read(&mut self, at: usize, into: &mut [u8]) -> Result<()> {
        into.copy_from_slice(&self.pages[&self.versions[at]]);
        Ok(())
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as u32 % limit
    }
}

/// A log of so many commits that write a few pages each. Every other page compresses well; tails are zeros.
fn log(seed: u64, page_size: usize, commits: u32) -> Log {
    let mut random = Random(seed);
    let mut made = Log { commits: vec![], versions: vec![], pages: BTreeMap::new(), page_size };
    let mut pages = 9;
    for commit in 0..commits {
        pages = (pages + random.below(5)).saturating_sub(random.below(5)).max(2);
        made.commits.push(LogCommit {
            lsn: Lsn::new(1 + commit / 4, 10 + commit * 3),
            time: 1000 + u64::from(commit) * 64,
            pages,
            stepped_back: random.below(7) == 0,
            mark: (random.below(3) == 0).then(|| format!("mark {commit}")),
        });
        for _ in 0..1 + random.below(4) {
            let mut page = vec![commit as u8; page_size];
            if random.below(2) == 0 {
                page.iter_mut().for_each(|byte| *byte = random.below(256) as u8);
            }
            page[page_size - TAIL_BYTES..].fill(0);
            made.pages.insert((1 + random.below(pages), commit), page);
        }
    }
    made.versions = made.pages.keys().copied().collect();
    made
}

impl Log {
    /// What each page is behind the first `commits` commits.
    fn behind(&self, commits: u32) -> BTreeMap<u32, &Vec<u8>> {
        let kept = self.pages.iter().filter(|((_, commit), _)| *commit < commits);
        kept.map(|((page, _), content)| (*page, content)).collect()
    }

    fn own(&self, padded: bool) -> Version2 {
        let end = self.commits.last().map_or(Lsn::new(1, 2), |last| last.lsn);
        let time = |commit: Option<&LogCommit>| commit.map_or(0, |commit| commit.time);
        Version2 {
            before: [8; 32],
            padded,
            chain: Some(ChainPlace { fork: [6; 16], first: Lsn::new(1, 2), last: end }),
            log: Some(LogFacts {
                full: Lsn::new(1, 2),
                first_time: time(self.commits.first()),
                last_time: time(self.commits.last()),
                commits: self.commits.len() as u32,
                ..LogFacts::default()
            }),
            ..Version2::default()
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    families: u16,
    mirrors: u8,
    algorithm: Option<Algorithm>,
    compression: Compression,
    padded: bool,
    signed: bool,
}

const SEALED: Shape = Shape {
    families: 1,
    mirrors: 1,
    algorithm: Some(Algorithm::Aes256),
    compression: Compression::None,
    padded: false,
    signed: false,
};
const CLEAR: Shape = Shape { algorithm: None, ..SEALED };
const OPTIONS: Options = Options { workers: 2, level: 1, continue_after_error: false };

fn keys() -> Vec<KeyFile> {
    vec![KeyFile::parse(&[7; 32]).unwrap()]
}

fn signer() -> &'static Certificate {
    static SIGNER: OnceLock<Certificate> = OnceLock::new();
    SIGNER.get_or_init(|| {
        let request = CertificateRequest { rsa_bits: 2048, ..CertificateRequest::new("App", 10) };
        Certificate::generate("signer", &request).unwrap()
    })
}

/// The key file and the certificate.
struct Both(Vec<KeyFile>);

impl KeySource for Both {
    fn key_files(&self) -> &[KeyFile] {
        &self.0
    }

    fn certificate(&self, thumbprint: &[u8; 32]) -> Result<Option<Certificate>> {
        Ok((thumbprint == signer().public().thumbprint()).then(|| signer().clone()))
    }
}

fn header(log: &Log, shape: Shape) -> SetHeader {
    SetHeader {
        version2: Some(log.own(shape.padded)),
        media_set: [1; 16],
        set: [2; 16],
        family: 1,
        families: shape.families,
        position: 1,
        kind: Kind::Log,
        algorithm: shape.algorithm,
        compression: shape.compression,
        copy_only: false,
        sealed_source: true,
        page_size: log.page_size as u32,
        pages: log.commits.last().map_or(9, |last| last.pages),
        chunk_pages: 5,
        begun: 1,
        expires: 0,
        source: [3; 16],
        base: [0; 16],
        commitment: [0; 32],
        source_thumbprint: [0; 32],
        page_hash_key: [0; 32],
        flags: pellucid::flags::Flags::default(),
        protectors: Vec::new(),
        description: Vec::new(),
    }
}

/// Has a set written; gives the files of each family.
fn written(
    mut header: SetHeader,
    shape: Shape,
    write: impl FnOnce(&NewSet<'_>, &mut [FamilyTarget]) -> Result<Written>,
) -> Result<Vec<Memory>> {
    let mut set_keys = None;
    if let Some(algorithm) = shape.algorithm {
        let key = Dek::random()?;
        header.commitment = commitment(&key, &header.set)?;
        let wrapping = Wrapping::KeyFile(&keys()[0]);
        header.protectors = vec![wrap(&key, &header.binding()?, &wrapping)?.encoded()];
        if shape.signed {
            let by = wrap(&key, &header.binding()?, &Wrapping::Certificate(signer()))?;
            header.protectors.push(by.encoded());
        }
        set_keys = Some(SetKeys::derive(&key, &header.set, algorithm)?);
    }
    let mut files = Vec::new();
    let mut targets = Vec::new();
    for family in 1..=shape.families {
        let mut copies: Vec<Box<dyn MediaSink>> = Vec::new();
        for mirror in 0..shape.mirrors {
            let media = MediaHeader {
                version: MediaVersion::Two,
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
            let mut file = Memory::default();
            file.write(&media.encode()?).unwrap();
            files.push(file.clone());
            copies.push(Box::new(file));
        }
        targets.push(FamilyTarget::new(copies));
    }
    let description = Description { database: "marked-name".into(), ..Description::default() };
    let set =
        NewSet { header, description, keys: set_keys.as_ref(), signer: shape.signed.then(signer) };
    write(&set, &mut targets)?;
    Ok(files)
}

fn back_up(log: &mut Log, shape: Shape) -> Result<Vec<Memory>> {
    written(header(log, shape), shape, |set, targets| {
        let mut hash = None;
        let mut tell = |own| hash = Some(own);
        let done = write_log_set(log, set, targets, &OPTIONS, &mut |_, _| (), &mut tell)?;
        assert_eq!(hash, Some(done.hash));
        assert_eq!(done.manifest.pages as usize, log.versions.len());
        Ok(done)
    })
}

fn media(files: &[Memory]) -> Result<Media> {
    let open = |file: &Memory| Family::open(Box::new(file.clone()));
    Media::assemble(files.iter().map(open).collect::<Result<_>>()?)
}

/// Opens the set without a question of whether it is believed, and reads all of it.
fn read(files: &[Memory]) -> Result<BTreeMap<u32, Vec<u8>>> {
    let media = media(files)?;
    let set = OpenSet::open_as_it_is(&media, 1, &keys())?;
    let log = LogSet::open(&set)?;
    let mut pages = BTreeMap::new();
    let applied = log.apply(log.commits().len(), &mut |page, content| {
        pages.insert(page, content.to_vec());
        Ok(())
    });
    let on_threads = applied_on(&log, 2, log.commits().len());
    // Whether one or several threads do it, the same is taken and the same is refused.
    assert_eq!(on_threads.as_ref().err().map(kind), applied.as_ref().err().map(kind));
    applied?;
    assert!(on_threads? == pages);
    media.last().map(|_| pages)
}

fn kind(error: &Error) -> std::mem::Discriminant<Error> {
    std::mem::discriminant(error)
}

/// What the first `commits` commits made of each page, brought back on several threads. Each page is written once.
fn applied_on(
    log: &LogSet<'_, '_>,
    workers: usize,
    commits: usize,
) -> Result<BTreeMap<u32, Vec<u8>>> {
    let pages = Mutex::new(BTreeMap::new());
    log.apply_on(workers, commits, &|page, content| {
        let before = pages.lock().unwrap().insert(page, content.to_vec());
        assert!(before.is_none(), "page {page} is written twice");
        Ok(())
    })?;
    Ok(pages.into_inner().unwrap())
}

fn round_trip(log: &mut Log, shape: Shape) {
    let files = back_up(log, shape).unwrap();
    let media = media(&files).unwrap();
    for (family, set) in media.set(1).unwrap().into_iter().flatten() {
        verify_checksums(family, set, &mut |_| ()).unwrap();
    }
    let set = OpenSet::open_as_it_is(&media, 1, &keys()).unwrap();
    let opened = LogSet::open(&set).unwrap();
    assert_eq!(opened.commits(), log.commits, "{shape:?}");
    for commits in 0..=log.commits.len() {
        let mut found: Vec<(u32, Vec<u8>)> = Vec::new();
        opened
            .apply(commits, &mut |page, content| {
                found.push((page, content.to_vec()));
                Ok(())
            })
            .unwrap();
        let expected = log.behind(commits as u32);
        let is_same = found.iter().map(|(page, content)| (*page, content)).eq(expected);
        let on_threads = applied_on(&opened, 1 + commits % 3, commits).unwrap();
        assert!(on_threads.into_iter().eq(found), "{shape:?}, behind {commits} commits");
        assert!(is_same, "{shape:?}, behind {commits} commits");
    }
    opened.verify().unwrap();
    let beyond = opened.apply(log.commits.len() + 1, &mut |_, _| Ok(())).unwrap_err();
    assert!(matches!(beyond, Error::Misuse { .. }), "{beyond}");
}

#[test]
fn each_commit_can_be_gone_back_to_whatever_the_shape() {
    let compressions = [Compression::None, Compression::Zstd, Compression::Lz4];
    let algorithms = Algorithm::OF_SETS.into_iter().map(Some).chain([None]);
    for (seed, algorithm) in (1..).zip(algorithms) {
        for compression in compressions {
            for (page_size, commits) in [(512, 30), (4096, 12), (65536, 3)] {
                let mut log = log(seed, page_size, commits);
                let padded = algorithm.is_some();
                round_trip(&mut log, Shape { algorithm, compression, ..SEALED });
                let striped =
                    Shape { families: 3, mirrors: 2, algorithm, compression, padded, ..SEALED };
                round_trip(&mut log, striped);
            }
        }
    }
}

#[test]
fn commits_of_several_chunks_and_none_at_all_come_back() {
    let mut many = log(1, 512, 2);
    let (mark, last) = ("x".repeat(128), many.commits[1].clone());
    for number in 1..=9000 {
        let lsn = Lsn::new(last.lsn.epoch + number, 1);
        many.commits.push(LogCommit { lsn, mark: Some(mark.clone()), ..last.clone() });
    }
    let files = back_up(&mut many, Shape { families: 2, ..SEALED }).unwrap();
    let media = media(&files).unwrap();
    let set = OpenSet::open(&media, 1, &keys()).unwrap();
    assert_eq!(set.index().hashes.len(), 2);
    assert!(LogSet::open(&set).unwrap().commits() == many.commits);
    for shape in [SEALED, CLEAR, Shape { padded: true, families: 2, ..SEALED }] {
        round_trip(&mut log(1, 4096, 0), shape);
    }
}

#[test]
fn a_sealed_set_shows_nothing_of_what_is_in_it() {
    for (shape, is_shown) in [(SEALED, false), (CLEAR, true)] {
        let mut log = log(3, 4096, 9);
        let content = log.pages.values_mut().next().unwrap();
        content[100..111].copy_from_slice(b"marked-page");
        log.commits[4].mark = Some("marked-name".into());
        let file = &back_up(&mut log, shape).unwrap()[0];
        let bytes = file.0.lock().unwrap();
        for text in [b"marked-page", b"marked-name"] {
            assert_eq!(bytes.windows(11).any(|window| window == text), is_shown);
        }
    }
}

#[test]
fn each_flipped_byte_is_refused() {
    for shape in [SEALED, CLEAR, Shape { padded: true, ..SEALED }] {
        let mut log = log(5, 512, 3);
        let files = back_up(&mut log, shape).unwrap();
        let whole = files[0].0.lock().unwrap().clone();
        read(&files).unwrap();
        for at in MEDIA_HEADER_BYTES..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            let told = read(&[Memory(Arc::new(Mutex::new(changed)))]);
            assert!(told.is_err(), "byte {at} of {}, {shape:?}", whole.len());
        }
    }
}

#[test]
fn a_mirror_stands_in_for_what_is_damaged_in_the_other() {
    let mut log = log(5, 4096, 20);
    let shape = Shape { mirrors: 2, ..SEALED };
    let files = back_up(&mut log, shape).unwrap();
    let (first, second) = {
        let media = media(&files).unwrap();
        let set = OpenSet::open(&media, 1, &keys()).unwrap();
        let at = |chunk: usize| MEDIA_HEADER_BYTES + set.index().chunks[chunk].offset as usize;
        (at(0), at(2))
    };
    // The prefix of one chunk in the one, the body of another one in the other.
    files[0].0.lock().unwrap()[first + PREFIX_BYTES + 9] ^= 1;
    files[1].0.lock().unwrap()[second + 40] ^= 1;
    let expected = log.behind(20).into_iter().map(|(page, content)| (page, content.clone()));
    assert!(read(&files).unwrap().into_iter().eq(expected));
}

#[test]
fn chunks_that_were_exchanged_are_refused() {
    let mut log = log(5, 4096, 20);
    for shape in [SEALED, CLEAR] {
        let files = back_up(&mut log, shape).unwrap();
        let (first, second, bytes) = {
            let media = media(&files).unwrap();
            let set = OpenSet::open_as_it_is(&media, 1, &keys()).unwrap();
            let (first, second) = (set.index().chunks[0], set.index().chunks[1]);
            assert_eq!(first.stored_bytes, second.stored_bytes);
            (
                first.offset as usize,
                second.offset as usize,
                PREFIX_BYTES + first.stored_bytes as usize,
            )
        };
        {
            let mut file = files[0].0.lock().unwrap();
            let (head, tail) = file[MEDIA_HEADER_BYTES..].split_at_mut(second);
            head[first..first + bytes].swap_with_slice(&mut tail[..bytes]);
        }
        let told = read(&files).unwrap_err();
        assert!(matches!(told, Error::Corrupt { .. }), "{told}");
    }
}

#[test]
fn a_signed_one_is_proven_before_a_page_is_given_out() {
    let shape = Shape { signed: true, families: 2, padded: true, ..SEALED };
    let mut log = log(5, 4096, 20);
    round_trip(&mut log, shape);
    let files = back_up(&mut log, shape).unwrap();
    {
        let media = media(&files).unwrap();
        let set = OpenSet::open(&media, 1, &Both(keys())).unwrap();
        assert!(set.signer().is_known());
        LogSet::open(&set).unwrap().verify().unwrap();
    }
    // A page of it is exchanged with another one, and all checksums without the key are made right.
    let media = media(&files).unwrap();
    let set = OpenSet::open(&media, 1, &Both(keys())).unwrap();
    let entry = set.index().chunks[0];
    let file = &files[usize::from(entry.family) - 1];
    let at = MEDIA_HEADER_BYTES + entry.offset as usize;
    let opened = LogSet::open(&set).unwrap();
    {
        let mut bytes = file.0.lock().unwrap();
        let end = at + PREFIX_BYTES + entry.stored_bytes as usize;
        bytes[at + PREFIX_BYTES] ^= 1;
        let mut prefix = ChunkPrefix::parse(bytes[at..].first_chunk().unwrap()).unwrap();
        let mended = prefix.seal(None, &mut bytes[at + PREFIX_BYTES..end].to_vec()).unwrap();
        bytes[at..at + PREFIX_BYTES].copy_from_slice(&mended);
    }
    let told = opened.apply(20, &mut |_, _| panic!("a page of a chunk that was exchanged"));
    assert!(told.is_err());
    let told = OpenSet::open(&media, 1, &Both(keys())).map(|_| ()).unwrap_err();
    assert!(matches!(told, Error::Unauthentic { .. }), "{told}");
}

fn chunk(kind: ChunkKind, number: u64, first_page: u32, pages: usize) -> ChunkPrefix {
    ChunkPrefix {
        kind,
        stored: Stored::Raw,
        without_tails: false,
        number,
        first_page,
        pages: pages as u32,
        content_bytes: 0,
        stored_bytes: 0,
    }
}

type Chunk = (ChunkPrefix, Vec<u8>);

fn log_pages(log: &Log, number: u64, versions: &[(u32, u32)]) -> Chunk {
    let list =
        versions.iter().flat_map(|(page, commit)| [page.to_be_bytes(), commit.to_be_bytes()]);
    let mut body = list.flatten().collect::<Vec<u8>>();
    versions.iter().for_each(|_| body.extend(vec![7; log.page_size]));
    (
        chunk(
            ChunkKind::LogPages,
            number,
            versions.first().map_or(0, |(page, _)| *page),
            versions.len(),
        ),
        body,
    )
}

fn commits(number: u64, commits: &[LogCommit]) -> Chunk {
    let (body, count) = LogCommit::encode_chunk(commits).unwrap();
    (chunk(ChunkKind::Commits, number, 0, count), body)
}

#[test]
fn what_no_writer_makes_is_refused_by_a_typed_error() {
    let log = log(5, 512, 4);
    let end = log.commits[3].pages;
    let all = |number| commits(number, &log.commits);
    let pages = |number, versions: &[(u32, u32)]| log_pages(&log, number, versions);
    let good = || vec![pages(0, &[(1, 0), (1, 1), (2, 0)]), pages(1, &[(2, 2)]), all(0)];
    let with = |change: fn(&mut Chunk)| {
        let mut chunks = good();
        change(&mut chunks[0]);
        chunks
    };
    let cases: Vec<(&str, Vec<Chunk>)> = vec![
        ("no commits", vec![pages(0, &[(1, 0)])]),
        ("a commit less", vec![commits(0, &log.commits[..3])]),
        ("a chunk of commits less", vec![commits(1, &log.commits[2..])]),
        ("commits twice", vec![all(0), all(1)]),
        ("commits that begin with 1", vec![all(1)]),
        ("hashes for commits", vec![(chunk(ChunkKind::PageHashes, 0, 0, 4), all(0).1)]),
        ("a first page of commits", vec![(chunk(ChunkKind::Commits, 0, 1, 4), all(0).1)]),
        ("another count of commits", vec![(chunk(ChunkKind::Commits, 0, 0, 5), all(0).1)]),
        ("a list that goes back", vec![pages(0, &[(2, 0), (1, 0)]), all(0)]),
        ("commits of a page that go back", vec![pages(0, &[(1, 1), (1, 0)]), all(0)]),
        ("a version twice", vec![pages(0, &[(1, 1), (1, 1)]), all(0)]),
        ("a version twice, in two chunks", vec![pages(0, &[(1, 1)]), pages(1, &[(1, 1)]), all(0)]),
        ("chunks that go back", vec![pages(0, &[(2, 1)]), pages(1, &[(1, 1)]), all(0)]),
        ("page 0", vec![pages(0, &[(0, 1)]), all(0)]),
        ("a page behind the end", vec![pages(0, &[(end + 1, 3)]), all(0)]),
        ("a commit that there is not", vec![pages(0, &[(1, 4)]), all(0)]),
        ("an empty chunk", vec![pages(0, &[]), all(0)]),
        ("a number left out", vec![pages(1, &[(1, 0)]), all(0)]),
        ("pages without a list", with(|chunk| chunk.0.kind = ChunkKind::Pages)),
        ("a list without commits", with(|chunk| chunk.0.kind = ChunkKind::ListedPages)),
        ("another first page", with(|chunk| chunk.0.first_page += 1)),
        ("a page more than there is", with(|chunk| chunk.0.pages += 1)),
        ("a page less than there is", with(|chunk| chunk.0.pages -= 1)),
        ("a byte less", with(|chunk| chunk.1.truncate(700))),
        ("more pages than memory", with(|chunk| chunk.0.pages = u32::MAX)),
    ];
    let set = |chunks: Vec<Chunk>, shape| {
        written(header(&log, shape), shape, |set, to| write_chunks_as_given(chunks, set, to))
    };
    for shape in [SEALED, CLEAR] {
        read(&set(good(), shape).unwrap()).expect("else the cases show nothing");
        for (what, chunks) in &cases {
            // More pages than memory overflow the sum that the writer makes.
            let Ok(files) = std::panic::catch_unwind(|| set(chunks.clone(), shape)) else {
                continue;
            };
            let told = read(&files.unwrap()).unwrap_err();
            assert!(matches!(told, Error::Corrupt { .. }), "{what}: {told}");
        }
    }
}

#[test]
fn a_source_that_does_not_fit_is_refused_before_anything_is_written() {
    let refused = |change: &dyn Fn(&mut Log)| {
        let mut log = log(5, 512, 4);
        let header = header(&log, SEALED);
        change(&mut log);
        let told = written(header, SEALED, |set, targets| {
            write_log_set(&mut log, set, targets, &OPTIONS, &mut |_, _| (), &mut |_| ())
        });
        let told = told.map(|_| ()).unwrap_err();
        assert!(matches!(told, Error::Misuse { .. }), "{told}");
    };
    refused(&|log| drop(log.commits.pop()));
    refused(&|log| log.commits.swap(0, 1));
    refused(&|log| log.versions.swap(0, 1));
    refused(&|log| log.versions[0].0 = 0);
    refused(&|log| log.versions.push((u32::MAX, 0)));
    refused(&|log| log.versions.push((u32::MAX, 4)));
    let refused = |change: &dyn Fn(&mut SetHeader), shape: Shape| {
        let mut log = log(5, 512, 4);
        let mut header = header(&log, shape);
        change(&mut header);
        let told = written(header, shape, |set, targets| {
            write_log_set(&mut log, set, targets, &OPTIONS, &mut |_, _| (), &mut |_| ())
        });
        let told = told.map(|_| ()).unwrap_err();
        assert!(matches!(told, Error::Misuse { .. }), "{told}");
    };
    refused(&|header| header.version2 = None, SEALED);
    refused(&|header| header.kind = Kind::Full, SEALED);
    refused(&|header| header.pages = 0, SEALED);
    refused(&|header| header.base = [1; 16], SEALED);
    refused(&|header| header.page_hash_key = [1; 32], CLEAR);
    refused(
        &|header| header.version2.as_mut().unwrap().chain.as_mut().unwrap().fork = [0; 16],
        SEALED,
    );
}

struct Zeros;

impl PageSource for Zeros {
    fn read(&mut self, _: u32, into: &mut [u8]) -> Result<()> {
        into.fill(0);
        Ok(())
    }
}

struct Nowhere;

impl PageTarget for Nowhere {
    fn write(&self, _: u32, _: &[u8]) -> Result<()> {
        panic!("a page of a log set is no page of a database");
    }
}

#[test]
fn a_log_set_passes_for_no_other_and_no_other_for_one() {
    let mut log = log(5, 512, 4);
    let files = back_up(&mut log, SEALED).unwrap();
    let media = media(&files).unwrap();
    let set = OpenSet::open(&media, 1, &keys()).unwrap();
    let chain = crate::job::Chain::open(&media, &media, 1, &keys()).map(|_| ());
    for told in [
        restore_pages(&set, &Nowhere, 2, &mut |_| ()),
        set.page_hashes().map(|_| ()),
        set.verify_page_hashes(),
        chain,
    ] {
        let told = told.unwrap_err().to_string();
        assert!(told.contains("it is a log set"), "{told}");
    }
    let mut full = header(&log, SEALED);
    full.kind = Kind::Full;
    let refused = written(header(&log, SEALED), SEALED, |set, targets| {
        write_set(&mut Zeros, set, None, targets, &OPTIONS, &mut |_, _| ())
    });
    assert!(matches!(refused.map(|_| ()), Err(Error::Misuse { .. })));
    let files = written(full, SEALED, |set, targets| {
        write_set(&mut Zeros, set, None, targets, &OPTIONS, &mut |_, _| ())
    });
    let media = self::media(&files.unwrap()).unwrap();
    let set = OpenSet::open(&media, 1, &keys()).unwrap();
    assert!(set.header().version2.unwrap().chain.is_some());
    assert!(matches!(LogSet::open(&set), Err(Error::Misuse { .. })));
}

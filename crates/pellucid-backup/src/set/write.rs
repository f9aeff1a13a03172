//! One backup set, from the first page to the manifest that commits it.

use std::path::PathBuf;
use std::sync::mpsc::Sender;

use pellucid::certificate::Certificate;
use pellucid::clock::now_micros;
use pellucid::error::{Error, Result, Subject};
use pellucid::log_archive::ChangedPages;
use pellucid::media::{
    padding_of, ChunkKind, ChunkPrefix, Description, Index, Kind, Manifest, MediaVersion,
    SetHeader, SetKeys, Signing, Stored, CHUNK_BYTES, PAGE_HASH_BYTES,
};

use super::expected::Expected;
use super::families::{FamilyTarget, FamilyWriter};
use super::pipeline::{joined, start, write_chunks, Content};
use super::pool::{Pool, Slot};
use super::worker::unpanicked;
use super::PageSource;

/// The set that is to be written.
#[derive(Debug)]
pub struct NewSet<'a> {
    /// Its header; the family is filled in.
    pub header: SetHeader,
    /// What it is called.
    pub description: Description,
    /// Its keys; none for a set that is not sealed.
    pub keys: Option<&'a SetKeys>,
    /// Who signs it; only a set of version 2.
    pub signer: Option<&'a Certificate>,
}

impl NewSet<'_> {
    /// The key of its page hashes.
    pub(super) fn page_hash_key(&self) -> &[u8; 32] {
        self.keys.map_or(&self.header.page_hash_key, SetKeys::page_hash)
    }
}

/// What a differential is compared with.
#[derive(Debug)]
pub struct Base {
    /// The key of the full set's page hashes.
    pub page_hash_key: [u8; 32],
    /// The hashes from page 1 on, 16 bytes each.
    pub hashes: Vec<u8>,
    /// The pages that may be other ones, where the log says which: no other one is read.
    pub only: Option<ChangedPages>,
}

impl Base {
    /// Whether a page may be another one than in the full set.
    pub fn may_differ(&self, page: u32) -> bool {
        let known = self.hashes.len() / PAGE_HASH_BYTES;
        self.only.as_ref().is_none_or(|only| only.has(page)) || page as usize > known
    }
}

/// What pages are compared with on their way.
#[derive(Debug, Clone, Copy, Default)]
pub struct Against<'a> {
    /// The full set of a differential: pages that are the same are left out.
    pub base: Option<&'a Base>,
    /// What pages of a full set have to be.
    pub expected: Option<&'a Expected>,
}

/// How it is written.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads that compress and seal.
    pub workers: usize,
    /// Level of compression.
    pub level: i32,
    /// Pages that cannot be read become zeros and are listed, instead of ending the backup.
    pub continue_after_error: bool,
}

/// A set that was written.
#[derive(Debug)]
pub struct Written {
    /// What committed it.
    pub manifest: Manifest,
    /// The hash of its manifest, which the next set of the chain has.
    pub hash: [u8; 32],
    /// Mirrors that failed on the way, each with its error.
    pub fenced: Vec<(PathBuf, std::io::Error)>,
    /// Pages that could not be read, each with its error.
    pub missing: Vec<(u32, Error)>,
}

/// Writes one backup set behind what the families have already.
///
/// `progress` is told how many pages were read and how many bytes are stored.
///
/// # Errors
/// The first thing that went wrong. There is no manifest then, and nothing passes for a set.
pub fn write_set(
    source: &mut dyn PageSource,
    set: &NewSet<'_>,
    base: Option<&Base>,
    targets: &mut [FamilyTarget],
    options: &Options,
    progress: &mut dyn FnMut(u32, u64),
) -> Result<Written> {
    let against = Against { base, expected: None };
    write_set_telling(source, set, against, targets, options, progress, &mut |_| ())
}

/// The same. Before the manifest is anywhere, and everything else is, `commits` is told its hash. Pages that are not what they have to
/// be end it before that, as those that cannot be read do.
///
/// # Errors
/// As [`write_set`].
pub fn write_set_telling(
    source: &mut dyn PageSource,
    set: &NewSet<'_>,
    against: Against<'_>,
    targets: &mut [FamilyTarget],
    options: &Options,
    progress: &mut dyn FnMut(u32, u64),
    commits: &mut dyn FnMut([u8; 32]),
) -> Result<Written> {
    if set.header.kind == Kind::Log {
        return Err(Error::misuse(
            Subject::BackupSet(set.header.position),
            "it is a log set, which is not made of the pages of a database",
        ));
    }
    let mut families = begin(set, targets)?;
    let Against { base, expected } = against;
    let content = base.map_or(Content::Pages(expected), Content::Changed);
    let mut reading = |pool: &Pool, work: &Sender<Slot>, go_on: &mut dyn FnMut(u32) -> bool| {
        read_pages(source, (set, base), pool, work, options, go_on)
    };
    let missing = write_chunks(&mut reading, set, content, &mut families, options, progress)?;
    let unread: Vec<u32> = missing.iter().map(|(page, _)| *page).collect();
    let others = expected.map_or(Vec::new(), |expected| expected.others(&unread));
    if let Some(page) = others.first().filter(|_| !options.continue_after_error) {
        let what = "it is not what the full set before has, and no commit has changed it since";
        return Err(Error::corrupt(Subject::Page(*page), what));
    }
    let mut written = end(set, families, missing, commits)?;
    written.fenced = targets.iter_mut().flat_map(FamilyTarget::fenced).collect();
    Ok(written)
}

/// Writes what stands behind the chunks of pages, and the manifest.
///
/// # Errors
/// As [`write_set`].
pub(super) fn end(
    set: &NewSet<'_>,
    mut families: Vec<FamilyWriter<'_>>,
    missing: Missing,
    commits: &mut dyn FnMut([u8; 32]),
) -> Result<Written> {
    let index_offset = families.first().map_or(0, FamilyWriter::bytes);
    let index = index_of(&mut families, &missing);
    let index_chunks = write_index(&index, set, &mut families)?;
    if set.header.is_padded() {
        write_padding(set, &mut families)?;
    }
    let ends: Vec<_> = families.iter().map(FamilyWriter::end).collect();
    let pages: u32 = index.chunks.iter().map(|entry| entry.pages).sum();
    let mut manifest = Manifest {
        set: set.header.set,
        damaged: !missing.is_empty(),
        finished: now_micros(),
        content_bytes: u64::from(pages) * u64::from(set.header.page_size),
        stored_bytes: ends.iter().map(|end| end.bytes).sum(),
        chunks: index.chunks.len() as u32,
        index_chunks,
        pages,
        missing: missing.len() as u32,
        index_offset,
        families: ends,
        signing: Signing::Version1,
    };
    // A signature takes as long as to seal 8 MiB, and to wait for the disk takes no processor.
    std::thread::scope(|scope| {
        let sign = || match set.header.version() {
            MediaVersion::Two => manifest.sign(set.signer),
            MediaVersion::One => Ok(()),
        };
        let signing = start(scope, || unpanicked(sign))?;
        for family in &mut families {
            family.sync()?;
        }
        joined(signing)
    })?;
    let bytes = manifest.encode(set.keys)?;
    let hash = Manifest::hash(&bytes);
    commits(hash);
    for family in &mut families {
        family.commit(&bytes)?;
    }
    Ok(Written { manifest, hash, fenced: Vec::new(), missing })
}

/// Writes the set header to each family.
///
/// # Errors
/// [`Error::Misuse`] for a set that no reader takes; [`Error::Io`].
pub(super) fn begin<'a>(
    set: &NewSet<'_>,
    targets: &'a mut [FamilyTarget],
) -> Result<Vec<FamilyWriter<'a>>> {
    let sealed = set.header.algorithm.is_some();
    if sealed != set.keys.is_some() {
        return Err(Error::misuse(Subject::BackupSet(set.header.position), "keys do not fit"));
    }
    let needs_version2 = set.signer.is_some() || set.header.is_padded();
    if (needs_version2 && set.header.version() == MediaVersion::One)
        || (set.header.is_padded() && !sealed)
    {
        return Err(Error::misuse(
            Subject::BackupSet(set.header.position),
            "only a sealed set of version 2 is signed or padded",
        ));
    }
    if set.header.pages == 0 {
        // No reader takes such a set header.
        return Err(Error::misuse(
            Subject::BackupSet(set.header.position),
            "the database has no pages: there is nothing to back up",
        ));
    }
    let mut families = Vec::with_capacity(targets.len());
    for (family, target) in (1..).zip(targets) {
        let mut header = SetHeader { family, ..set.header.clone() };
        header.describe(&set.description, set.keys)?;
        let bytes = header.encode(set.keys)?;
        if header.kind == Kind::Log {
            let parsed = SetHeader::parse(&bytes, header.position);
            let misuse = |error: Error| {
                Error::misuse(Subject::BackupSet(header.position), error.to_string())
            };
            parsed.map_err(misuse)?;
        }
        families.push(FamilyWriter::begin(target, family, &bytes)?);
    }
    Ok(families)
}

/// Pages that could not be read, each with its error.
pub(super) type Missing = Vec<(u32, Error)>;

/// Reads all pages in order that may differ from the base, as many at a time as a chunk has. `go_on` gets the last page that was come
/// to, and says whether there is a point in more.
fn read_pages(
    source: &mut dyn PageSource,
    (set, base): (&NewSet<'_>, Option<&Base>),
    pool: &Pool,
    work: &Sender<Slot>,
    options: &Options,
    go_on: &mut dyn FnMut(u32) -> bool,
) -> Result<Missing> {
    let may_differ = |page: &u32| base.is_none_or(|base| base.may_differ(*page));
    let (pages, of_chunk) = (set.header.pages, set.header.chunk_pages as usize);
    let page_bytes = set.header.page_size as usize;
    let (mut missing, mut order) = (Vec::new(), 0);
    let mut left = (1..=pages).filter(may_differ).peekable();
    while left.peek().is_some() {
        let Some(mut slot) = pool.take() else { break };
        slot.order = order;
        slot.numbers.clear();
        slot.numbers.extend(left.by_ref().take(of_chunk));
        slot.content.resize(slot.numbers.len() * page_bytes, 0);
        if let Err(error) = read_runs(source, &slot.numbers, &mut slot.content, page_bytes) {
            if !options.continue_after_error {
                return Err(error);
            }
            for (number, page) in slot.numbers.iter().zip(slot.content.chunks_exact_mut(page_bytes))
            {
                if let Err(error) = source.read(*number, page) {
                    page.fill(0);
                    missing.push((*number, error));
                }
            }
        }
        let last = slot.numbers.last().copied().unwrap_or(pages);
        if work.send(slot).is_err() || !go_on(last) {
            return Ok(missing);
        }
        order += 1;
    }
    go_on(pages);
    Ok(missing)
}

/// Reads pages, as many as follow one another with one call.
fn read_runs(
    source: &mut dyn PageSource,
    numbers: &[u32],
    content: &mut [u8],
    page_bytes: usize,
) -> Result<()> {
    let mut rest = content;
    for run in numbers.chunk_by(|number, next| number + 1 == *next) {
        let (pages, behind) = rest.split_at_mut(run.len() * page_bytes);
        source.read(run[0], pages)?;
        rest = behind;
    }
    Ok(())
}

fn index_of(families: &mut [FamilyWriter<'_>], missing: &Missing) -> Index {
    let mut entries: Vec<_> =
        families.iter_mut().flat_map(|family| std::mem::take(&mut family.entries)).collect();
    entries.sort_by_key(|(prefix, _)| prefix.number);
    // Page hashes, or the commits of a log set, are what else there is by now.
    let of = |pages: bool| {
        let kind = |prefix: &ChunkPrefix| prefix.kind.has_pages() == pages;
        entries.iter().filter(|(prefix, _)| kind(prefix)).map(|(_, entry)| *entry).collect()
    };
    let missing = missing.iter().map(|(page, _)| *page).collect();
    Index { chunks: of(true), hashes: of(false), missing }
}

fn write_index(index: &Index, set: &NewSet<'_>, families: &mut [FamilyWriter<'_>]) -> Result<u32> {
    let Some(first) = families.first_mut() else { return Ok(0) };
    let bytes = index.encode();
    let mut count = 0;
    for part in bytes.chunks(CHUNK_BYTES) {
        let mut body = part.to_vec();
        let mut prefix = ChunkPrefix {
            kind: ChunkKind::Index,
            stored: Stored::Raw,
            without_tails: false,
            number: u64::from(count),
            first_page: 0,
            pages: 0,
            content_bytes: part.len() as u32,
            stored_bytes: 0,
        };
        let prefix_bytes = prefix.seal(set.keys, &mut body)?;
        first.chunk(&prefix, &prefix_bytes, &body)?;
        count += 1;
    }
    Ok(count)
}

/// Fills each family up to its size class. Numbers are those of the set, so that no nonce serves twice.
fn write_padding(set: &NewSet<'_>, families: &mut [FamilyWriter<'_>]) -> Result<()> {
    let mut number = 0;
    for family in families {
        for content_bytes in padding_of(family.bytes()) {
            let mut body = vec![0; content_bytes as usize];
            let mut prefix = ChunkPrefix {
                kind: ChunkKind::Padding,
                stored: Stored::Raw,
                without_tails: false,
                number,
                first_page: 0,
                pages: 0,
                content_bytes,
                stored_bytes: 0,
            };
            let prefix_bytes = prefix.seal(set.keys, &mut body)?;
            family.chunk(&prefix, &prefix_bytes, &body)?;
            number += 1;
        }
    }
    Ok(())
}

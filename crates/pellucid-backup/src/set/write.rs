//! One backup set, from the first page to the manifest that commits it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Mutex;

use pellucid::certificate::Certificate;
use pellucid::clock::now_micros;
use pellucid::error::{Error, Result, Subject};
use pellucid::media::{
    padding_of, ChunkKind, ChunkPrefix, Description, Index, Manifest, MediaVersion, SetHeader,
    SetKeys, Signing, Stored, CHUNK_BYTES, PAGE_HASH_BYTES,
};

use super::families::{FamilyTarget, FamilyWriter, FAILED};
use super::pool::{Pool, Slot};
use super::{worker, PageSource};

/// Hashes of so many pages go into one chunk: 1 MiB of them.
const HASHES_OF_CHUNK: usize = CHUNK_BYTES / PAGE_HASH_BYTES;

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
    write_set_telling(source, set, base, targets, options, progress, &mut |_| ())
}

/// The same. Before the manifest is anywhere, and everything else is, `commits` is told its hash.
///
/// # Errors
/// As [`write_set`].
pub fn write_set_telling(
    source: &mut dyn PageSource,
    set: &NewSet<'_>,
    base: Option<&Base>,
    targets: &mut [FamilyTarget],
    options: &Options,
    progress: &mut dyn FnMut(u32, u64),
    commits: &mut dyn FnMut([u8; 32]),
) -> Result<Written> {
    let mut families = begin(set, targets)?;
    let missing = write_pages(source, set, base, &mut families, options, progress)?;
    let index_offset = families.first().map_or(0, FamilyWriter::bytes);
    let index = index_of(&mut families, &missing);
    let index_chunks = write_index(&index, set, &mut families)?;
    if set.header.is_padded() {
        write_padding(set, &mut families)?;
    }
    for family in &mut families {
        family.sync()?;
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
    if set.header.version() == MediaVersion::Two {
        manifest.sign(set.signer)?;
    }
    let bytes = manifest.encode(set.keys)?;
    let hash = Manifest::hash(&bytes);
    commits(hash);
    for family in &mut families {
        family.commit(&bytes)?;
    }
    drop(families);
    let fenced = targets.iter_mut().flat_map(FamilyTarget::fenced).collect();
    Ok(Written { manifest, hash, fenced, missing })
}

fn begin<'a>(set: &NewSet<'_>, targets: &'a mut [FamilyTarget]) -> Result<Vec<FamilyWriter<'a>>> {
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
        families.push(FamilyWriter::begin(target, family, &bytes)?);
    }
    Ok(families)
}

type Missing = Vec<(u32, Error)>;

fn write_pages(
    source: &mut dyn PageSource,
    set: &NewSet<'_>,
    base: Option<&Base>,
    families: &mut [FamilyWriter<'_>],
    options: &Options,
    progress: &mut dyn FnMut(u32, u64),
) -> Result<Missing> {
    let workers = options.workers.max(1);
    let pool = Pool::new(2 * workers + 4);
    let stop = AtomicBool::new(false);
    let stored = AtomicU64::new(0);
    let waiting: Vec<AtomicU64> = families.iter().map(|_| AtomicU64::new(0)).collect();
    let (work, to_do) = channel::<Slot>();
    let to_do = Mutex::new(to_do);
    let (done, finished) = channel();
    std::thread::scope(|scope| {
        let mut writers = Vec::new();
        let mut queues = Vec::new();
        for (family, waiting) in families.iter_mut().zip(&waiting) {
            let (queue, chunks) = channel();
            let back = pool.back();
            queues.push(queue);
            writers.push(start(scope, move || family.run(&chunks, waiting, &back))?);
        }
        for _ in 0..workers {
            let (done, to_do) = (done.clone(), &to_do);
            start(scope, move || worker::run(set, base, options, to_do, &done))?;
        }
        drop(done);
        let dispatcher = {
            let (stop, back, wake) = (&stop, pool.back(), pool.back());
            let dispatch = Dispatch {
                set,
                keep_hashes: base.is_none(),
                queues,
                waiting: &waiting,
                given: vec![0; waiting.len()],
                stored: &stored,
                back,
                hashes: Vec::new(),
                hashed: 0,
            };
            start(scope, move || {
                let outcome = dispatch.run(&finished);
                if outcome.is_err() {
                    stop.store(true, Ordering::Relaxed);
                    // The slots that are lost with the error are not waited for.
                    let _ = wake.send(Slot::default());
                }
                outcome
            })?
        };
        let read = read_pages(source, set, &pool, &work, options, &mut |pages| {
            progress(pages, stored.load(Ordering::Relaxed));
            let failed = waiting.iter().any(|bytes| bytes.load(Ordering::Relaxed) >= FAILED);
            !failed && !stop.load(Ordering::Relaxed)
        });
        drop(work);
        let mut outcome = joined(dispatcher);
        for writer in writers {
            let written = joined(writer);
            outcome = outcome.and(written);
        }
        // What a writer says comes first: that is why the reader was stopped.
        outcome.and(read)
    })
}

/// Those that run already end when this fails: nobody sends to them any more.
fn start<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<std::thread::ScopedJoinHandle<'scope, T>> {
    std::thread::Builder::new()
        .spawn_scoped(scope, work)
        .map_err(|error| Error::io(Subject::Option("thread".into()), error))
}

fn joined(thread: std::thread::ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    thread.join().unwrap_or_else(|_| {
        Err(Error::misuse(Subject::MediaHeader, "a thread of the backup ended unexpectedly"))
    })
}

/// Reads all pages in order, a chunk at a time. `go_on` says whether there is a point in it.
fn read_pages(
    source: &mut dyn PageSource,
    set: &NewSet<'_>,
    pool: &Pool,
    work: &Sender<Slot>,
    options: &Options,
    go_on: &mut dyn FnMut(u32) -> bool,
) -> Result<Missing> {
    let (pages, of_chunk) = (set.header.pages, set.header.chunk_pages);
    let page_bytes = set.header.page_size as usize;
    let mut missing = Vec::new();
    let mut order = 0;
    let mut next = 1;
    while next <= pages {
        let Some(mut slot) = pool.take() else { break };
        let count = of_chunk.min(pages - next + 1);
        slot.order = order;
        slot.first_page = next;
        slot.pages = count;
        slot.content.resize(count as usize * page_bytes, 0);
        let read = source.read(next, &mut slot.content);
        if let Err(error) = read {
            if !options.continue_after_error {
                return Err(error);
            }
            for (number, page) in (next..).zip(slot.content.chunks_exact_mut(page_bytes)) {
                if let Err(error) = source.read(number, page) {
                    page.fill(0);
                    missing.push((number, error));
                }
            }
        }
        if work.send(slot).is_err() {
            break;
        }
        order += 1;
        // Not `next + count`: the last page may have the last number there is.
        match next.checked_add(count) {
            Some(following) if go_on(next + count - 1) => next = following,
            _ => break,
        }
    }
    Ok(missing)
}

/// Puts what workers have done back into order and gives it to the families.
struct Dispatch<'a> {
    set: &'a NewSet<'a>,
    keep_hashes: bool,
    queues: Vec<Sender<Slot>>,
    waiting: &'a [AtomicU64],
    /// What each family was given so far.
    given: Vec<u64>,
    stored: &'a AtomicU64,
    back: Sender<Slot>,
    hashes: Vec<u8>,
    hashed: u64,
}

impl Dispatch<'_> {
    fn run(mut self, finished: &Receiver<Result<Slot>>) -> Result<()> {
        let mut early = BTreeMap::new();
        let mut next = 0;
        while let Ok(slot) = finished.recv() {
            let slot = slot?;
            early.insert(slot.order, slot);
            while let Some(slot) = early.remove(&next) {
                next += 1;
                self.take(slot)?;
            }
        }
        self.send_hashes()
    }

    fn take(&mut self, slot: Slot) -> Result<()> {
        if self.keep_hashes {
            self.hashes.extend_from_slice(&slot.hashes);
        }
        match slot.prefix {
            Some(_) => self.send(slot),
            // Nothing of it changed. The reader may be gone.
            None => drop(self.back.send(slot)),
        }
        if self.hashes.len() >= CHUNK_BYTES {
            self.send_hashes()?;
        }
        Ok(())
    }

    /// To the family that has the least to do; of those that wait, to the one that has the least.
    fn send(&mut self, slot: Slot) {
        let least = self.waiting.iter().zip(&mut self.given).enumerate();
        let least =
            least.min_by_key(|(_, (waits, given))| (waits.load(Ordering::Relaxed), **given));
        let Some((family, (waiting, given))) = least else { return };
        let bytes = slot.body.len() as u64;
        *given += bytes;
        waiting.fetch_add(bytes, Ordering::Relaxed);
        self.stored.fetch_add(bytes, Ordering::Relaxed);
        // A writer only goes when this queue is closed.
        let _ = self.queues[family].send(slot);
    }

    /// Seals the hashes that have come together. Their slots are not the pool's.
    fn send_hashes(&mut self) -> Result<()> {
        while !self.hashes.is_empty() {
            let rest = self.hashes.split_off(self.hashes.len().min(CHUNK_BYTES));
            let mut body = std::mem::replace(&mut self.hashes, rest);
            let mut prefix = ChunkPrefix {
                kind: ChunkKind::PageHashes,
                stored: Stored::Raw,
                without_tails: false,
                number: self.hashed,
                first_page: (self.hashed as usize * HASHES_OF_CHUNK + 1) as u32,
                pages: (body.len() / PAGE_HASH_BYTES) as u32,
                content_bytes: body.len() as u32,
                stored_bytes: 0,
            };
            let bytes = prefix.seal(self.set.keys, &mut body)?;
            self.hashed += 1;
            self.send(Slot { body, prefix: Some((prefix, bytes)), ..Slot::default() });
        }
        Ok(())
    }
}

fn index_of(families: &mut [FamilyWriter<'_>], missing: &Missing) -> Index {
    let mut entries: Vec<_> =
        families.iter_mut().flat_map(|family| std::mem::take(&mut family.entries)).collect();
    entries.sort_by_key(|(prefix, _)| prefix.number);
    let of = |hashes: bool| {
        let kind = |prefix: &ChunkPrefix| (prefix.kind == ChunkKind::PageHashes) == hashes;
        entries.iter().filter(|(prefix, _)| kind(prefix)).map(|(_, entry)| *entry).collect()
    };
    let missing = missing.iter().map(|(page, _)| *page).collect();
    Index { chunks: of(false), hashes: of(true), missing }
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

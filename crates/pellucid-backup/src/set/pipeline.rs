//! The pipeline of a set: one thread reads, workers compress and seal, and each family has a writer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Mutex;

use pellucid::error::{Error, Result, Subject};
use pellucid::media::{ChunkKind, ChunkPrefix, Stored, CHUNK_BYTES, PAGE_HASH_BYTES};

use super::expected::Expected;
use super::families::{FamilyWriter, FAILED};
use super::pool::{Pool, Slot};
use super::worker;
use super::write::{Base, NewSet, Options};

/// Hashes of so many pages go into one chunk: 1 MiB of them.
const HASHES_OF_CHUNK: usize = CHUNK_BYTES / PAGE_HASH_BYTES;

/// What the chunks of a set are made of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Content<'a> {
    /// All pages, and what they have to be.
    Pages(Option<&'a Expected>),
    /// The pages that differ from a full set.
    Changed(&'a Base),
    /// Versions of pages behind their list, as a slot has them already.
    Log,
}

/// What reads and fills the slots of the pool, and sends them on. It is told by the last argument whether there is a point in
/// going on, and tells it how many pages it has read.
pub(super) type Reading<'a, T> =
    &'a mut dyn FnMut(&Pool, &Sender<Slot>, &mut dyn FnMut(u32) -> bool) -> Result<T>;

/// Writes all chunks of pages, and page hashes if it is all pages. Returns what `reading` does.
///
/// # Errors
/// The first thing that went wrong.
pub(super) fn write_chunks<T>(
    reading: Reading<'_, T>,
    set: &NewSet<'_>,
    content: Content<'_>,
    families: &mut [FamilyWriter<'_>],
    options: &Options,
    progress: &mut dyn FnMut(u32, u64),
) -> Result<T> {
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
            start(scope, move || worker::run(set, content, options, to_do, &done))?;
        }
        drop(done);
        let dispatcher = {
            let (stop, back, wake) = (&stop, pool.back(), pool.back());
            let dispatch = Dispatch {
                set,
                keep_hashes: matches!(content, Content::Pages(_)),
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
        let read = reading(&pool, &work, &mut |pages| {
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
/// Begins a thread.
///
/// # Errors
/// [`Error::Io`] where the system has none.
pub(super) fn start<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<std::thread::ScopedJoinHandle<'scope, T>> {
    std::thread::Builder::new()
        .spawn_scoped(scope, work)
        .map_err(|error| Error::io(Subject::Option("thread".into()), error))
}

/// What a thread came to, which may be a panic.
pub(super) fn joined(thread: std::thread::ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    thread.join().unwrap_or_else(|_| {
        Err(Error::misuse(Subject::MediaHeader, "a thread of the backup ended unexpectedly"))
    })
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

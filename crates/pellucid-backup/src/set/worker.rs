//! A worker: hashes, compresses and seals one chunk while it is in the processor's cache.

use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Mutex, PoisonError};

use pellucid::error::{Error, Result, Subject};
use pellucid::media::{
    cut_tails, page_hash, ChunkKind, ChunkPrefix, Compression, Compressor, PAGE_HASH_BYTES,
};

use super::pipeline::Content;
use super::pool::Slot;
use super::write::{Base, NewSet, Options};

/// Takes slots until there are no more; gives each back done, or its error.
pub fn run(
    set: &NewSet<'_>,
    content: Content<'_>,
    options: &Options,
    work: &Mutex<Receiver<Slot>>,
    done: &Sender<Result<Slot>>,
) {
    let mut compressor = Compressor::new(set.header.compression, options.level);
    loop {
        let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut slot) = next else { return };
        let outcome = match &mut compressor {
            Ok(compressor) => {
                unpanicked(|| make(set, content, compressor, &mut slot)).map(|()| slot)
            }
            Err(_) => Compressor::new(set.header.compression, options.level).map(|_| slot),
        };
        if done.send(outcome).is_err() {
            return;
        }
    }
}

/// What panics is an error: a thread that ended would keep its slot, and the reader would wait for that.
pub fn unpanicked(work: impl FnOnce() -> Result<()>) -> Result<()> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Error::misuse(Subject::MediaHeader, "a thread of the backup ended unexpectedly"))
    })
}

fn make(
    set: &NewSet<'_>,
    content: Content<'_>,
    compressor: &mut Compressor,
    slot: &mut Slot,
) -> Result<()> {
    slot.body.clear();
    slot.hashes.clear();
    slot.prefix = None;
    let page_bytes = set.header.page_size as usize;
    let (kind, pages) = match content {
        Content::Pages(expected) => {
            if let Some(expected) = expected {
                expected.look(&slot.numbers, &slot.content, page_bytes);
            }
            for page in slot.content.chunks_exact(page_bytes) {
                slot.hashes.extend_from_slice(&page_hash(set.page_hash_key(), page));
            }
            (ChunkKind::Pages, slot.content.len() / page_bytes)
        }
        Content::Changed(base) => match list_changed(base, slot, page_bytes) {
            0 => return Ok(()),
            changed => (ChunkKind::ListedPages, changed),
        },
        Content::Log => (ChunkKind::LogPages, slot.numbers.len()),
    };
    let cut = set.header.sealed_source && set.header.compression != Compression::None;
    let content = match kind {
        ChunkKind::ListedPages => &mut slot.listed,
        _ => &mut slot.content,
    };
    let without_tails = cut && cut_tails(kind, content, pages, page_bytes);
    let stored = compressor.compress(content, &mut slot.body)?;
    let mut prefix = ChunkPrefix {
        kind,
        stored,
        without_tails,
        number: slot.order,
        first_page: slot.numbers.first().copied().unwrap_or(0),
        pages: pages as u32,
        content_bytes: content.len() as u32,
        stored_bytes: 0,
    };
    let bytes = prefix.seal(set.keys, &mut slot.body)?;
    slot.prefix = Some((prefix, bytes));
    Ok(())
}

/// Lists the pages that differ from the base: their numbers, then these pages. Says how many.
fn list_changed(base: &Base, slot: &mut Slot, page_bytes: usize) -> usize {
    let mut pages = slot.content.chunks_exact(page_bytes);
    let differs = |number: &u32| {
        let at = (*number as usize - 1) * PAGE_HASH_BYTES;
        let known = base.hashes.get(at..at + PAGE_HASH_BYTES);
        let found = pages.next().map(|page| page_hash(&base.page_hash_key, page));
        known.zip(found).is_none_or(|(known, found)| *known != found)
    };
    let is_listed: Vec<bool> = slot.numbers.iter().map(differs).collect();
    let mut listed = is_listed.iter();
    slot.numbers.retain(|_| listed.next() == Some(&true));
    slot.listed.clear();
    for number in &slot.numbers {
        slot.listed.extend_from_slice(&number.to_be_bytes());
    }
    for (page, _) in slot.content.chunks_exact(page_bytes).zip(is_listed).filter(|(_, is)| *is) {
        slot.listed.extend_from_slice(page);
    }
    slot.numbers.len()
}

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
        Content::Pages => {
            for page in slot.content.chunks_exact(page_bytes) {
                slot.hashes.extend_from_slice(&page_hash(set.page_hash_key(), page));
            }
            (ChunkKind::Pages, slot.content.len() / page_bytes)
        }
        Content::Changed(base) => match keep_changed(base, slot, page_bytes) {
            0 => return Ok(()),
            changed => (ChunkKind::ListedPages, changed),
        },
        Content::Log => (ChunkKind::LogPages, slot.pages as usize),
    };
    let cut = set.header.sealed_source && set.header.compression != Compression::None;
    let without_tails = cut && cut_tails(kind, &mut slot.content, pages, page_bytes);
    let stored = compressor.compress(&slot.content, &mut slot.body)?;
    let mut prefix = ChunkPrefix {
        kind,
        stored,
        without_tails,
        number: slot.order,
        first_page: slot.first_page,
        pages: pages as u32,
        content_bytes: slot.content.len() as u32,
        stored_bytes: 0,
    };
    let bytes = prefix.seal(set.keys, &mut slot.body)?;
    slot.prefix = Some((prefix, bytes));
    Ok(())
}

/// Leaves the numbers of the pages that differ from the base, then these pages. Says how many.
fn keep_changed(base: &Base, slot: &mut Slot, page_bytes: usize) -> usize {
    let (mut list, mut pages) = (Vec::new(), Vec::new());
    for (number, page) in (slot.first_page..).zip(slot.content.chunks_exact(page_bytes)) {
        if !base.may_differ(number) {
            continue;
        }
        let at = (number as usize - 1) * PAGE_HASH_BYTES;
        let same = base
            .hashes
            .get(at..at + PAGE_HASH_BYTES)
            .is_some_and(|known| *known == page_hash(&base.page_hash_key, page));
        if !same {
            list.extend_from_slice(&number.to_be_bytes());
            pages.extend_from_slice(page);
        }
    }
    let changed = list.len() / 4;
    if let Some(first) = list.first_chunk::<4>() {
        slot.first_page = u32::from_be_bytes(*first);
    }
    list.append(&mut pages);
    slot.content = list;
    changed
}

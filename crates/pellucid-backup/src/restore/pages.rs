//! Brings the pages of a set back, on several cores.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Mutex, PoisonError};

use super::log::is_log_set;
use super::open::{Content, OpenSet};
use pellucid::error::{Error, Result, Subject};
use pellucid::media::{ChunkKind, ChunkPrefix, Kind};

/// Where pages go; several threads at once, each page once for each set.
pub trait PageTarget: Sync {
    /// Writes pages from number `first` on.
    ///
    /// # Errors
    /// What is wrong.
    fn write(&self, first: u32, pages: &[u8]) -> Result<()>;
}

/// Writes every page of the set to `target`. `progress` is told how many pages are written, now and then.
///
/// # Errors
/// The first thing that went wrong; the target is then good for nothing.
pub fn restore_pages(
    set: &OpenSet<'_>,
    target: &dyn PageTarget,
    workers: usize,
    progress: &mut dyn FnMut(u32),
) -> Result<()> {
    complete(set)?;
    // Nothing of the set that is damaged goes by unseen, although these are for differentials.
    set.verify_page_hashes()?;
    set.verify_padding()?;
    let chunks = &set.index().chunks;
    let restored = on_threads(
        workers,
        chunks.len(),
        &|at, content| {
            let Some(entry) = chunks.get(at) else { return Ok(0) };
            let prefix = set.read(entry, content)?;
            write(set, &prefix, &content.bytes, target).map(|()| entry.pages)
        },
        progress,
    );
    // What was written is what was signed, or the target is good for nothing.
    restored.and_then(|()| set.prove())
}

/// Does `each` for the numbers below `count`, on several threads, each with its room for a chunk. `progress` is told the sum of what it
/// has returned, now and then.
///
/// # Errors
/// The first one of `each`; no other number is begun then.
pub(super) fn on_threads(
    workers: usize,
    count: usize,
    each: &(dyn Fn(usize, &mut Content) -> Result<u32> + Sync),
    progress: &mut dyn FnMut(u32),
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    let (written, news) = channel();
    let work = |written: Sender<u32>| {
        let mut content = Content::default();
        while !stop.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return;
            }
            match each(at, &mut content) {
                // The receiver is there until all workers are gone.
                Ok(pages) => drop(written.send(pages)),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    return;
                }
            }
        }
    };
    let work = &work;
    std::thread::scope(|scope| {
        let start =
            |written| std::thread::Builder::new().spawn_scoped(scope, move || work(written));
        let started: Vec<_> = std::iter::repeat_n(written, workers.max(1)).map(start).collect();
        // With fewer than were wished for it takes longer; without any there would be no page.
        if !started.iter().any(|one| one.is_ok()) {
            let error = started.into_iter().find_map(|one| one.err()).map(thread_error);
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = error;
        }
        let mut pages = 0;
        for more in news {
            pages += more;
            progress(pages);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

fn thread_error(error: std::io::Error) -> Error {
    Error::io(Subject::Option("thread".into()), error)
}

/// Whether the index has every page of a full set, and once.
fn complete(set: &OpenSet<'_>) -> Result<()> {
    let header = set.header();
    if header.kind == Kind::Log {
        return Err(is_log_set(header.position));
    }
    let corrupt = || Error::corrupt(Subject::Index, "it does not name every page once");
    let mut next = 1u64;
    for entry in &set.index().chunks {
        let (first, pages) = (u64::from(entry.first_page), u64::from(entry.pages));
        let fits = first == next || (header.kind == Kind::Differential && first > next);
        if !fits || pages == 0 || first + pages - 1 > u64::from(header.pages) {
            return Err(corrupt());
        }
        next = first + pages;
    }
    let whole = header.kind != Kind::Full || next == u64::from(header.pages) + 1;
    if whole {
        Ok(())
    } else {
        Err(corrupt())
    }
}

fn write(
    set: &OpenSet<'_>,
    prefix: &ChunkPrefix,
    content: &[u8],
    target: &dyn PageTarget,
) -> Result<()> {
    let header = set.header();
    let (page_bytes, pages) = (header.page_size as usize, prefix.pages as usize);
    let corrupt = || Error::corrupt(prefix.subject(), "its pages do not fit");
    match prefix.kind {
        ChunkKind::Pages if content.len() == pages * page_bytes => {
            target.write(prefix.first_page, content)
        }
        ChunkKind::ListedPages if content.len() == pages * (page_bytes + 4) => {
            let (list, content) = content.split_at(pages * 4);
            let numbers =
                list.chunks_exact(4).map(|n| u32::from_be_bytes([n[0], n[1], n[2], n[3]]));
            let mut before = prefix.first_page.wrapping_sub(1);
            for (number, page) in numbers.zip(content.chunks_exact(page_bytes)) {
                let ascending = number > before || before == u32::MAX;
                if !ascending || number == 0 || number > header.pages {
                    return Err(corrupt());
                }
                target.write(number, page)?;
                before = number;
            }
            Ok(())
        }
        _ => Err(corrupt()),
    }
}

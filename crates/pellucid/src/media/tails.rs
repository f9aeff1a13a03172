//! Pages of a sealed database without their tails, which are zeros where SQLite reads them.
//!
//! A compressor uses a few bytes of each page for them, 0.3 % of common media. Left out, they cost
//! nothing.

use super::chunk::{ChunkKind, MOST_CHUNK_BYTES};
use crate::unit::TAIL_BYTES;

/// Bytes of a number in the list before listed pages.
const NUMBER_BYTES: usize = 4;
/// Bytes of a page's number and its commit's in the list before the pages of a log.
pub const VERSION_BYTES: usize = 8;

/// Leaves the tails of `pages` pages out of `content`, if all of them are zeros. Returns whether it
/// did.
pub fn cut(kind: ChunkKind, content: &mut Vec<u8>, pages: usize, page_bytes: usize) -> bool {
    let list = list_bytes(kind, pages);
    let kept = page_bytes.saturating_sub(TAIL_BYTES);
    let is_cuttable = content.len() == list + pages * page_bytes
        && content[list..]
            .chunks_exact(page_bytes)
            .all(|page| page[kept..].iter().all(|b| *b == 0));
    if !is_cuttable {
        return false;
    }
    for page in 1..pages {
        let from = list + page * page_bytes;
        content.copy_within(from..from + kept, list + page * kept);
    }
    content.truncate(list + pages * kept);
    true
}

/// Gives `pages` pages their tails back. Returns false and leaves `content` as it was if they do
/// not fit.
pub fn lay(kind: ChunkKind, content: &mut Vec<u8>, pages: usize) -> bool {
    let list = list_bytes(kind, pages);
    let Some(stored) = content.len().checked_sub(list).filter(|_| pages > 0) else { return false };
    let kept = stored / pages;
    let whole = list + pages.saturating_mul(kept + TAIL_BYTES);
    if stored % pages != 0 || whole > MOST_CHUNK_BYTES {
        return false;
    }
    content.resize(whole, 0);
    for page in (0..pages).rev() {
        let (from, to) = (list + page * kept, list + page * (kept + TAIL_BYTES));
        content.copy_within(from..from + kept, to);
        content[to + kept..to + kept + TAIL_BYTES].fill(0);
    }
    true
}

fn list_bytes(kind: ChunkKind, pages: usize) -> usize {
    match kind {
        ChunkKind::ListedPages => pages.saturating_mul(NUMBER_BYTES),
        ChunkKind::LogPages => pages.saturating_mul(VERSION_BYTES),
        ChunkKind::Pages
        | ChunkKind::Index
        | ChunkKind::PageHashes
        | ChunkKind::Commits
        | ChunkKind::Padding => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of 512 bytes; in the last byte of each `tail`.
    fn content(kind: ChunkKind, pages: usize, tail: u8) -> Vec<u8> {
        let mut content: Vec<u8> = (0..list_bytes(kind, pages)).map(|at| at as u8 + 1).collect();
        for page in 0..pages {
            content.extend((0..480).map(|at| (at + page) as u8));
            content.extend([0; 31]);
            content.push(tail);
        }
        content
    }

    #[test]
    fn tails_that_are_zeros_are_left_out_and_come_back() {
        for kind in [ChunkKind::Pages, ChunkKind::ListedPages, ChunkKind::LogPages] {
            for pages in 1..5 {
                let whole = content(kind, pages, 0);
                let mut cutting = whole.clone();
                assert!(cut(kind, &mut cutting, pages, 512));
                assert_eq!(cutting.len(), whole.len() - pages * TAIL_BYTES);
                assert!(lay(kind, &mut cutting, pages));
                assert_eq!(cutting, whole);
            }
        }
    }

    #[test]
    fn anything_else_in_a_tail_stays() {
        for kind in [ChunkKind::Pages, ChunkKind::ListedPages, ChunkKind::LogPages] {
            let whole = content(kind, 3, 7);
            let mut cutting = whole.clone();
            assert!(!cut(kind, &mut cutting, 3, 512));
            assert_eq!(cutting, whole);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (listed, pages) = (ChunkKind::ListedPages, ChunkKind::Pages);
        let most = usize::MAX;
        for (kind, bytes, count) in
            [(pages, 960, 0), (pages, 961, 2), (listed, 7, 2), (pages, 0, most), (listed, 9, most)]
        {
            assert!(!lay(kind, &mut vec![1; bytes], count), "{bytes} bytes, {count} pages");
        }
        let pages_of_most = MOST_CHUNK_BYTES / 512;
        assert!(lay(pages, &mut vec![1; 480 * pages_of_most], pages_of_most));
        assert!(!lay(pages, &mut vec![1; 480 * (pages_of_most + 1)], pages_of_most + 1));
    }
}

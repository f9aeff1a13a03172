//! The pointer map of a database with auto_vacuum: what refers to each page (SQLite file format, 1.8).

use super::{lock_page, word, Source};

/// Bytes of an entry: a type of 1 byte and a page number of 4.
const ENTRY_BYTES: usize = 5;

/// The entry of a page: its role, and the page that refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// The root of a tree.
    Root,
    /// A page on the freelist.
    Free,
    /// The first overflow page of a cell on this page.
    FirstOverflow(u32),
    /// The overflow page behind this one.
    NextOverflow(u32),
    /// A page of a tree, below this one.
    Child(u32),
}

/// Returns the page that has the entry of page `number`: for a page of the map, that page itself.
pub fn map_page(number: u32, page_bytes: usize, usable: usize) -> Option<u32> {
    let each = (usable / ENTRY_BYTES) as u32 + 1;
    let first = (number.checked_sub(2)? / each) * each + 2;
    Some(if first == lock_page(page_bytes) { first + 1 } else { first })
}

/// Returns the entry of page `number`. `None` if the page of the map is missing or the entry is
/// damaged.
pub fn entry(source: &dyn Source, usable: usize, number: u32) -> Option<Entry> {
    let at = map_page(number, source.page_bytes(), usable)?;
    let index = (number.checked_sub(at)?.checked_sub(1)?) as usize;
    let map = source.page(at)?;
    let parent = word(&map, index * ENTRY_BYTES + 1)?;
    Some(match map.get(index * ENTRY_BYTES)? {
        1 => Entry::Root,
        2 => Entry::Free,
        3 => Entry::FirstOverflow(parent),
        4 => Entry::NextOverflow(parent),
        5 => Entry::Child(parent),
        _ => return None,
    })
}

//! SQLite's own file format, as far as a walk over a damaged database needs it: b-tree pages,
//! records, and the owner of each page.
//!
//! Sections are those of SQLite's "Database File Format". All bytes read here may be damaged: a
//! field that does not fit gives `None`, never a panic. Pages come without their reserved bytes.

mod map;
mod orphans;
mod page;
mod pointer_map;
mod record;
mod schema;
mod walk;

pub use map::{Lost, Map, Orphan, Role};
pub use orphans::Possible;
pub use page::{BtreePage, Cell, Kind};
pub use record::{decode, Encoding, Value};
pub use schema::{Object, SCHEMA};
pub use walk::payload;

/// A source of authenticated pages.
pub trait Source {
    /// Returns the number of pages of the database.
    fn pages(&self) -> u32;

    /// Returns the bytes of a page, its reserved ones included.
    fn page_bytes(&self) -> usize;

    /// Returns a page without its reserved bytes. `None` if it is not there or does not
    /// authenticate.
    fn page(&self, number: u32) -> Option<Vec<u8>>;
}

/// Returns for each page, from number 0, the first byte of a b-tree page, or 0 for any other. Calls
/// `told` with each page number.
pub fn kinds(source: &dyn Source, told: &mut dyn FnMut(u32)) -> Vec<u8> {
    let mut kinds = vec![0];
    for number in 1..=source.pages() {
        let page = source.page(number).filter(|_| number != lock_page(source.page_bytes()));
        let tree = page.as_deref().and_then(|page| BtreePage::parse(page, number));
        kinds.push(tree.map_or(0, |tree| tree.kind() as u8));
        told(number);
    }
    kinds
}

/// The offset of the byte that SQLite locks, 1 GiB. SQLite never uses the page there (1.4).
const PENDING_BYTE: u64 = 0x4000_0000;

/// Returns the number of the page that SQLite never uses.
pub fn lock_page(page_bytes: usize) -> u32 {
    (PENDING_BYTE / page_bytes.max(512) as u64) as u32 + 1
}

/// Reads two bytes of a page.
fn half(page: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(page.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

/// Reads four bytes of a page.
fn word(page: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(page.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Reads a variable-length integer at `at`, and moves `at` behind it (1.6).
fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for index in 0..9 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if index == 8 {
            return Some(value << 8 | u64::from(byte));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

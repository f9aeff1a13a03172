//! What each page of a file is, and the cells of the page map.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::image::Image;
use crate::output::Failure;

/// At most so many cells; in larger files each stands for several pages.
const CELLS_MAX: u64 = 1500;
/// So many owners are named in a cell's tip.
const OWNERS_NAMED: usize = 3;

/// What a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Schema,
    Interior,
    Leaf,
    Index,
    Overflow,
    Free,
    Header,
    Sealed,
}

impl Kind {
    /// In the order of the legend.
    pub const ALL: [Kind; 8] = [
        Kind::Schema,
        Kind::Interior,
        Kind::Leaf,
        Kind::Index,
        Kind::Overflow,
        Kind::Free,
        Kind::Header,
        Kind::Sealed,
    ];

    /// Its class in the style sheet, and its name on the page.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Kind::Schema => ("schema", "schema, page 1"),
            Kind::Interior => ("interior", "table, inner page"),
            Kind::Leaf => ("leaf", "table rows"),
            Kind::Index => ("index", "index"),
            Kind::Overflow => ("overflow", "long values"),
            Kind::Free => ("free", "free or other"),
            Kind::Header => ("header", "header region"),
            Kind::Sealed => ("sealed", "sealed page"),
        }
    }
}

/// Kind and owner of each slot of an [`Image`].
#[derive(Debug)]
pub struct Kinds {
    slots: Vec<(Kind, usize)>,
    /// The first one is empty: no owner.
    owners: Vec<String>,
}

impl Kinds {
    /// Of a sealed file, whose pages do not tell.
    pub fn sealed(image: &Image) -> Self {
        let kind = |slot| if slot < image.header_slots { Kind::Header } else { Kind::Sealed };
        let slots = (0..image.slots).map(|slot| (kind(slot), 0)).collect();
        Self { slots, owners: vec![String::new()] }
    }

    /// Of a plain file: from SQLite, or from the first bytes of the pages where SQLite cannot tell.
    pub fn plain(path: &Path, image: &Image) -> Result<Self, Failure> {
        let mut kinds = match Self::from_dbstat(path, image) {
            Ok(kinds) => kinds,
            Err(_) => Self::from_first_bytes(image)?,
        };
        kinds.owners.push("sqlite_schema".to_owned());
        if let Some(first) = kinds.slots.first_mut() {
            *first = (Kind::Schema, kinds.owners.len() - 1);
        }
        Ok(kinds)
    }

    fn none(image: &Image) -> Self {
        let slots = (0..image.slots).map(|_| (Kind::Free, 0)).collect();
        Self { slots, owners: vec![String::new()] }
    }

    fn from_dbstat(path: &Path, image: &Image) -> rusqlite::Result<Self> {
        let mut kinds = Self::none(image);
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let mut statement = db.prepare(
            "SELECT pageno, s.name, pagetype,
                 EXISTS (SELECT 1 FROM sqlite_schema m WHERE m.type = 'index' AND m.name = s.name)
             FROM dbstat s",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let page: i64 = row.get(0)?;
            let name = String::from_utf8_lossy(row.get_ref(1)?.as_bytes_or_null()?.unwrap_or(b""))
                .into_owned();
            let kind = match row.get_ref(2)?.as_bytes_or_null()?.unwrap_or(b"") {
                b"overflow" => Kind::Overflow,
                _ if row.get(3)? => Kind::Index,
                b"internal" => Kind::Interior,
                _ => Kind::Leaf,
            };
            // dbstat goes from tree to tree, so an owner's pages come together.
            if kinds.owners.last() != Some(&name) {
                kinds.owners.push(name);
            }
            let slot = usize::try_from(page - 1).ok().and_then(|at| kinds.slots.get_mut(at));
            if let Some(slot) = slot {
                *slot = (kind, kinds.owners.len() - 1);
            }
        }
        Ok(kinds)
    }

    /// The types of b-tree pages: fileformat2.html, "B-tree Pages".
    fn from_first_bytes(image: &Image) -> Result<Self, Failure> {
        let mut kinds = Self::none(image);
        for slot in image.entropies.keys() {
            let kind = match image.read(image.place(*slot).0, 1)?.first() {
                Some(2 | 10) => Kind::Index,
                Some(5) => Kind::Interior,
                Some(13) => Kind::Leaf,
                _ => Kind::Overflow,
            };
            if let Some(known) = usize::try_from(*slot).ok().and_then(|at| kinds.slots.get_mut(at))
            {
                known.0 = kind;
            }
        }
        Ok(kinds)
    }

    fn range(&self, start: u64, end: u64) -> &[(Kind, usize)] {
        let at = |slot| usize::try_from(slot).unwrap_or(usize::MAX).min(self.slots.len());
        &self.slots[at(start)..at(end)]
    }
}

/// One cell of the page map.
#[derive(Debug)]
pub struct Cell {
    pub kind: Kind,
    pub bits_per_byte: f64,
    /// What it says when pointed at.
    pub tip: String,
}

/// So many pages a cell stands for.
pub fn group(image: &Image) -> u64 {
    image.slots.div_ceil(CELLS_MAX)
}

/// The page map.
pub fn cells(image: &Image, kinds: &Kinds) -> Vec<Cell> {
    let group = group(image);
    // Of a large file, page 1 or the header region has a cell of its own.
    let first = if group == 1 { 1 } else { image.header_slots.max(1) };
    let mut cells = Vec::new();
    let (mut start, mut end) = (0, first.min(image.slots));
    while start < end {
        cells.push(cell(image, kinds, start, end));
        (start, end) = (end, (end + group).min(image.slots));
    }
    cells
}

fn cell(image: &Image, kinds: &Kinds, start: u64, end: u64) -> Cell {
    let known: Vec<f64> = image.entropies.range(start..end).map(|(_, bits)| *bits).collect();
    let bits_per_byte = if known.is_empty() {
        image.entropies.range(..=start).next_back().map_or(0.0, |(_, bits)| *bits)
    } else {
        known.iter().sum::<f64>() / known.len() as f64
    };
    let inside = kinds.range(start, end);
    let count = |kind: &Kind| inside.iter().filter(|(other, _)| other == kind).count();
    let kind = Kind::ALL.into_iter().max_by_key(count).unwrap_or(Kind::Free);
    let mut owners: Vec<&str> =
        inside.iter().map(|(_, owner)| kinds.owners[*owner].as_str()).collect();
    owners.sort_unstable();
    owners.dedup();
    owners.retain(|owner| !owner.is_empty());
    let mut tip = String::new();
    if let Some(page) = (start + 1).checked_sub(image.header_slots).filter(|page| *page > 0) {
        let last = end - image.header_slots;
        let pages = if page == last { page.to_string() } else { format!("{page}-{last}") };
        tip = format!("page {pages} · ");
    }
    tip.push_str(kind.names().1);
    if !owners.is_empty() {
        let more = if owners.len() > OWNERS_NAMED { "…" } else { "" };
        owners.truncate(OWNERS_NAMED);
        tip.push_str(&format!(" · {}{more}", owners.join(", ")));
    }
    tip.push_str(&format!(" · {bits_per_byte:.2} bits/byte"));
    Cell { kind, bits_per_byte, tip }
}

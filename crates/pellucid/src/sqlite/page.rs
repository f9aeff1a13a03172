//! A b-tree page and its cells (SQLite file format, 1.6).

use super::{half, varint, word};

/// The kind of a b-tree page, by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Keys and children of an index, or of a table WITHOUT ROWID.
    IndexInterior = 2,
    /// Children of a table, by rowid.
    TableInterior = 5,
    /// Keys of an index, or rows of a table WITHOUT ROWID.
    IndexLeaf = 10,
    /// Rows of a table.
    TableLeaf = 13,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        use Kind::*;
        [IndexInterior, TableInterior, IndexLeaf, TableLeaf].into_iter().find(|k| *k as u8 == byte)
    }

    /// Whether a page of this kind has no children.
    pub fn is_leaf(self) -> bool {
        matches!(self, Kind::IndexLeaf | Kind::TableLeaf)
    }

    /// Whether a page of this kind is of a tree that goes by rowid.
    pub fn is_table(self) -> bool {
        matches!(self, Kind::TableLeaf | Kind::TableInterior)
    }
}

/// The longest row SQLite allows (limits.html, 1).
const PAYLOAD_MOST: u64 = 0x7fff_ffff;

/// The fewest bytes of a page, without its reserved ones (1.3.4).
const USABLE_LEAST: usize = 480;

/// A b-tree page whose header and cell pointers fit the page.
#[derive(Debug, Clone, Copy)]
pub struct BtreePage<'a> {
    page: &'a [u8],
    kind: Kind,
    /// The offset of the cell pointers.
    pointers: usize,
    cells: usize,
}

impl<'a> BtreePage<'a> {
    /// Parses page `number`. `None` if it is no b-tree page.
    pub fn parse(page: &'a [u8], number: u32) -> Option<Self> {
        if page.len() < USABLE_LEAST {
            return None;
        }
        let at = if number == 1 { 100 } else { 0 };
        let kind = Kind::from_byte(*page.get(at)?)?;
        let cells = usize::from(half(page, at + 3)?);
        let content = match half(page, at + 5)? {
            0 => 65536,
            content => usize::from(content),
        };
        let pointers = at + if kind.is_leaf() { 8 } else { 12 };
        let end = pointers + 2 * cells;
        if end > page.len() || content < end || (content > page.len() && cells > 0) {
            return None;
        }
        let found = Self { page, kind, pointers, cells };
        let within =
            |cell| found.start(cell).is_some_and(|at| at >= content && at + 3 < page.len());
        (0..cells).all(within).then_some(found)
    }

    /// Returns the kind of the page.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the number of cells of the page.
    pub fn len(&self) -> usize {
        self.cells
    }

    /// Whether the page has no cells.
    pub fn is_empty(&self) -> bool {
        self.cells == 0
    }

    fn start(&self, cell: usize) -> Option<usize> {
        half(self.page, self.pointers + 2 * cell).map(usize::from)
    }

    /// Returns the child behind the last cell. `None` for a leaf.
    pub fn right_child(&self) -> Option<u32> {
        (!self.kind.is_leaf()).then(|| word(self.page, self.pointers - 4)).flatten()
    }

    /// Returns the cells in order, and `None` for a damaged one.
    pub fn cells(&self) -> impl Iterator<Item = Option<Cell<'a>>> + 'a {
        let page = *self;
        (0..page.cells).map(move |cell| page.cell(cell))
    }

    fn cell(&self, cell: usize) -> Option<Cell<'a>> {
        let mut at = self.start(cell)?;
        let mut found = Cell { left: None, rowid: None, bytes: 0, local: &[], overflow: None };
        if !self.kind.is_leaf() {
            found.left = Some(word(self.page, at)?);
            at += 4;
        }
        if self.kind == Kind::TableInterior {
            found.rowid = Some(varint(self.page, &mut at)? as i64);
            return Some(found);
        }
        let bytes = varint(self.page, &mut at)?;
        if bytes > PAYLOAD_MOST {
            return None;
        }
        if self.kind == Kind::TableLeaf {
            found.rowid = Some(varint(self.page, &mut at)? as i64);
        }
        found.bytes = bytes as usize;
        let local = self.local_bytes(found.bytes);
        found.local = self.page.get(at..at + local)?;
        if local < found.bytes {
            found.overflow = Some(word(self.page, at + local)?);
        }
        Some(found)
    }

    /// Returns how many of the `bytes` of a payload lie on the page itself.
    fn local_bytes(&self, bytes: usize) -> usize {
        let usable = self.page.len();
        let most =
            if self.kind == Kind::TableLeaf { usable - 35 } else { (usable - 12) * 64 / 255 - 23 };
        if bytes <= most {
            return bytes;
        }
        let least = (usable - 12) * 32 / 255 - 23;
        let here = least + (bytes - least) % (usable - 4);
        if here <= most {
            here
        } else {
            least
        }
    }
}

/// A cell. The kind of its page says which of the fields it has.
#[derive(Debug, Clone, Copy)]
pub struct Cell<'a> {
    /// The child to the left of the cell.
    pub left: Option<u32>,
    /// The rowid of the row, or the highest one below the child.
    pub rowid: Option<i64>,
    /// The length of the whole payload, in bytes.
    pub bytes: usize,
    /// The part of the payload that lies on the page.
    pub local: &'a [u8],
    /// The first overflow page.
    pub overflow: Option<u32>,
}

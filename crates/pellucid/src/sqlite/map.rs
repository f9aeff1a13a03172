//! The owner of each page: found by a walk over all trees of a database, the freelist and the
//! pointer map, from the pages that are there.
//!
//! A page that no surviving pointer leads to is an orphan. It is given to a tree only if that is
//! certain: because the pointer map says so, or because no other tree can have lost it.

use std::collections::BTreeMap;

use super::pointer_map::{entry, map_page, Entry};
use super::record::Encoding;
use super::schema::{rows_of_page, Object, SCHEMA};
use super::walk::Step;
use super::{lock_page, word, Source};

/// The role of a page in its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A page of the tree. It is unknown whether it has children.
    Tree,
    /// A page of the tree, without children.
    Leaf,
    /// A page of the tree, with children.
    Interior,
    /// A page with the rest of a row, and the row's rowid if it has one.
    Overflow(Option<i64>),
    /// A page on the freelist, without content.
    Free,
    /// A page of the pointer map, which can be made again.
    PointerMap,
}

impl Role {
    /// Returns a word for people and machines.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Tree => "page",
            Role::Leaf => "leaf",
            Role::Interior => "interior",
            Role::Overflow(_) => "overflow",
            Role::Free => "free",
            Role::PointerMap => "pointer map",
        }
    }
}

/// A page that is missing or damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// The object that the page belongs to; `None` if no surviving page leads to the page.
    pub object: Option<usize>,
    /// The role of the page in that object.
    pub role: Role,
    /// The rowid that all rowids of the page are greater than.
    pub after: Option<i64>,
    /// The rowid that no rowid of the page is greater than.
    pub upto: Option<i64>,
    pub(super) depth: usize,
}

impl Lost {
    pub(super) fn overflow(object: usize, rowid: Option<i64>) -> Self {
        Self { object: Some(object), role: Role::Overflow(rowid), ..Self::NOTHING }
    }

    /// Returns the rowids that the page can have had. `None` if nothing is known of them.
    pub fn rowids(&self) -> Option<String> {
        match (self.role, self.after, self.upto) {
            (Role::Overflow(Some(rowid)), ..) => Some(format!("rowid {rowid}")),
            (_, Some(after), Some(upto)) => {
                Some(format!("rowids {} to {upto}", after.saturating_add(1)))
            }
            (_, Some(after), None) => Some(format!("rowids above {after}")),
            (_, None, Some(upto)) => Some(format!("rowids up to {upto}")),
            (_, None, None) => None,
        }
    }

    const NOTHING: Self =
        Self { object: None, role: Role::Tree, after: None, upto: None, depth: 0 };
}

/// A tree, or a part of one, that no surviving pointer leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// The topmost page of the tree.
    pub top: u32,
    /// The pages of the tree that have rows, in order.
    pub pages: Vec<u32>,
    /// The objects that the tree may belong to.
    pub candidates: Vec<usize>,
}

/// The owners of a database's pages.
#[derive(Debug)]
pub struct Map {
    /// The encoding of the database's text.
    pub encoding: Encoding,
    /// The schema, then the tables, indexes, views and triggers in it.
    pub objects: Vec<Object>,
    /// The pages of each object that have rows, in order.
    pub content: Vec<Vec<u32>>,
    /// Pages that are missing or damaged, or are no b-tree page where one should be.
    pub lost: BTreeMap<u32, Lost>,
    /// Pages that are authentic and no b-tree page, where one should be.
    pub malformed: Vec<u32>,
    /// Trees without an owner, which [`Map::adopt`] finds.
    pub orphans: Vec<Orphan>,
    /// Whether every row of the schema was read.
    pub schema_whole: bool,
    /// Whether every page on the freelist is known.
    pub free_known: bool,
    /// Bytes of a page, without its reserved ones.
    pub(super) usable: usize,
    auto_vacuum: bool,
    owner: Vec<u32>,
}

/// The value in `owner` of a page whose owner is not known.
const UNKNOWN: u32 = 0;
/// The value of a page that belongs to no object, or is one of an orphan.
const NOBODY: u32 = 1;
/// The value of a page on the freelist.
const FREE: u32 = 2;
/// The value of a page of object 0; later objects follow.
const FIRST: u32 = 3;

impl Map {
    /// Walks the database, and finds the owner of each page. `kinds` is the result of
    /// [`kinds`](super::kinds). Without it, pages of a damaged schema that no page leads to are not
    /// searched for.
    pub fn build(source: &dyn Source, kinds: Option<&[u8]>) -> Self {
        let first = source.page(1);
        let number = |at| first.as_ref().and_then(|page| word(page, at));
        let schema = Object {
            kind: "table".into(),
            name: "sqlite_schema".into(),
            table: "sqlite_schema".into(),
            root: 1,
            sql: None,
            is_table: Some(true),
            leaf_depth: None,
        };
        let mut map = Self {
            encoding: Encoding::from_number(number(56).unwrap_or(0)),
            objects: vec![schema],
            content: vec![Vec::new()],
            lost: BTreeMap::new(),
            malformed: Vec::new(),
            orphans: Vec::new(),
            schema_whole: true,
            free_known: true,
            usable: source.page_bytes().saturating_sub(crate::unit::TAIL_BYTES),
            auto_vacuum: number(52).map_or_else(|| looks_mapped(source), |root| root != 0),
            owner: vec![UNKNOWN; source.pages() as usize + 1],
        };
        map.mark(lock_page(source.page_bytes()));
        map.pointer_map(source);
        map.freelist(source, number(32), number(36));
        map.walk(source, SCHEMA, root(1));
        map.schema_whole = map.lost.values().all(|lost| lost.object != Some(SCHEMA));
        map.read_schema(source);
        if let (false, Some(kinds)) = (map.schema_whole, kinds) {
            super::schema::search(&mut map, source, kinds);
        }
        for object in 1..map.objects.len() {
            let at = map.objects[object].root;
            if at != 0 {
                map.walk(source, object, root(at));
            }
        }
        map.settle_roles();
        map
    }

    /// Makes `object` the owner of page `number`. Returns false if the page has an owner already, or
    /// is not in the database.
    pub(super) fn take(&mut self, number: u32, object: usize) -> bool {
        match self.owner.get_mut(number as usize) {
            Some(owner) if *owner == UNKNOWN && number != 0 => {
                *owner = object as u32 + FIRST;
                true
            }
            _ => false,
        }
    }

    pub(super) fn is_known(&self, number: u32) -> bool {
        self.owner.get(number as usize).is_none_or(|owner| *owner != UNKNOWN)
    }

    /// Returns the object that a page belongs to.
    pub fn object_of(&self, number: u32) -> Option<usize> {
        let owner = self.owner.get(number as usize)?;
        owner.checked_sub(FIRST).map(|object| object as usize)
    }

    pub(super) fn mark(&mut self, number: u32) {
        if let Some(owner) = self.owner.get_mut(number as usize) {
            *owner = NOBODY;
        }
    }

    fn pointer_map(&mut self, source: &dyn Source) {
        if !self.auto_vacuum {
            return;
        }
        let mut number = 3;
        while let Some(at) = map_page(number, source.page_bytes(), self.usable) {
            if at > source.pages() {
                break;
            }
            self.mark(at);
            if source.page(at).is_none() {
                self.lost.insert(at, Lost { role: Role::PointerMap, ..Lost::NOTHING });
            }
            let Some(next) = at.checked_add((self.usable / 5) as u32 + 2) else { break };
            number = next;
        }
    }

    /// Marks the pages of the freelist. Its trunk pages have the numbers of the others (1.5).
    fn freelist(&mut self, source: &dyn Source, first: Option<u32>, count: Option<u32>) {
        let mut next = first.unwrap_or(0);
        let mut found = 0u32;
        while next != 0 && next <= source.pages() && !self.is_known(next) {
            self.mark(next);
            found += 1;
            let Some(trunk) = source.page(next) else {
                self.lost.insert(next, Lost { role: Role::Free, ..Lost::NOTHING });
                break;
            };
            let leaves = word(&trunk, 4).unwrap_or(0) as usize;
            for index in 0..leaves.min(trunk.len() / 4) {
                let free = word(&trunk, 8 + 4 * index).unwrap_or(0);
                if free != 0 && !self.is_known(free) {
                    self.owner[free as usize] = FREE;
                    found += 1;
                }
            }
            next = word(&trunk, 0).unwrap_or(0);
        }
        self.free_known = count == Some(found) && first.is_some();
    }

    fn read_schema(&mut self, source: &dyn Source) {
        for number in self.content[SCHEMA].clone() {
            match rows_of_page(source, number, self.encoding) {
                Some(rows) => rows.into_iter().for_each(|object| self.add(object)),
                None => self.schema_whole = false,
            }
        }
    }

    pub(super) fn add(&mut self, object: Object) {
        self.objects.push(object);
        self.content.push(Vec::new());
    }

    /// Sets the role of each missing page of a tree. All leaves of a tree lie equally deep, so the
    /// depth of the page says whether it was a leaf.
    pub(super) fn settle_roles(&mut self) {
        for lost in self.lost.values_mut().filter(|lost| lost.role == Role::Tree) {
            let leaf = lost.object.and_then(|object| self.objects[object].leaf_depth);
            lost.role = match leaf {
                Some(depth) if lost.depth < depth => Role::Interior,
                Some(_) => Role::Leaf,
                None => Role::Tree,
            };
        }
    }

    /// Adds damaged pages that no page leads to. The pointer map names the role and the object of
    /// such a page, if the database has one.
    pub fn place(&mut self, source: &dyn Source, damaged: &[u32]) {
        for number in damaged {
            if self.lost.contains_key(number) {
                continue;
            }
            let named = match self.owner.get(*number as usize) {
                Some(&FREE) => Some(Entry::Free),
                _ if self.auto_vacuum => entry(source, self.usable, *number),
                _ => None,
            };
            let lost = match named {
                Some(Entry::Free) => Lost { role: Role::Free, ..Lost::NOTHING },
                Some(Entry::FirstOverflow(_) | Entry::NextOverflow(_)) => Lost {
                    object: self.above(source, *number),
                    role: Role::Overflow(None),
                    ..Lost::NOTHING
                },
                Some(_) => Lost { object: self.above(source, *number), ..Lost::NOTHING },
                None => Lost::NOTHING,
            };
            self.lost.insert(*number, lost);
        }
    }

    /// Follows the pointer map upwards from page `number`, and returns the object of the first page
    /// that has one.
    pub(super) fn above(&self, source: &dyn Source, number: u32) -> Option<usize> {
        const STEPS: usize = 10_000;
        let mut at = number;
        for _ in 0..STEPS {
            let next = match entry(source, self.usable, at)? {
                Entry::FirstOverflow(page) | Entry::NextOverflow(page) | Entry::Child(page) => page,
                Entry::Root | Entry::Free => return None,
            };
            if let Some(object) = self.object_of(next) {
                return Some(object);
            }
            at = next;
        }
        None
    }

    /// Whether the database has a pointer map.
    pub fn has_pointer_map(&self) -> bool {
        self.auto_vacuum
    }
}

fn root(number: u32) -> Step {
    Step { number, depth: 0, after: None, upto: None }
}

/// Whether page 2 can only be a page of a pointer map. It says whether the database has one if page
/// 1 is missing.
fn looks_mapped(source: &dyn Source) -> bool {
    let Some(page) = source.page(2) else { return false };
    let pages = source.pages();
    let entries = page.chunks_exact(5).take(pages.saturating_sub(2) as usize);
    let fits = |entry: &[u8]| {
        let parent = word(entry, 1).unwrap_or(0);
        match entry[0] {
            1 | 2 => parent == 0,
            3..=5 => parent != 0 && parent <= pages,
            _ => false,
        }
    };
    pages > 2 && entries.into_iter().all(fits)
}

#[cfg(test)]
mod tests;

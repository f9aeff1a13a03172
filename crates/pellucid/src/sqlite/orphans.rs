//! The owners of orphans: trees, and parts of trees, that no surviving pointer leads to.

use std::collections::HashSet;

use super::map::{Map, Orphan, Role};
use super::page::{BtreePage, Kind};
use super::pointer_map::{entry, Entry};
use super::record::{decode, Value};
use super::walk::{payload, Step};
use super::Source;

/// Says whether a row can belong to an object. The second argument says whether the row's tree goes by
/// rowid.
pub type Possible<'a> = dyn Fn(usize, bool, &[Value<'_>]) -> bool + 'a;

/// The facts found on an orphan's pages.
struct Found {
    pages: Vec<u32>,
    by_rowid: bool,
    /// The lowest and the highest rowid.
    rowids: Option<(i64, i64)>,
    /// The objects that every row can belong to.
    possible: Vec<usize>,
}

impl Map {
    /// Gives each orphan to the tree that must have lost it, and lists the orphans for which that is
    /// not certain in [`Map::orphans`]. `kinds` is as for [`Map::build`].
    pub fn adopt(&mut self, source: &dyn Source, kinds: &[u8], possible: &Possible<'_>) {
        for top in self.tops(source, kinds) {
            if self.is_known(top) {
                continue;
            }
            let named = self.has_pointer_map().then(|| entry(source, self.usable, top)).flatten();
            if named == Some(Entry::Free) {
                self.mark(top);
                continue;
            }
            let above = named.and_then(|_| self.above(source, top));
            let found = self.survey(source, top, above, possible);
            let candidates = match above {
                Some(object) => vec![object],
                None => self.candidates(&found),
            };
            let is_certain = above.is_some()
                || candidates.len() == 1
                    && self.schema_whole
                    && (self.free_known || named.is_some());
            if let (true, [object]) = (is_certain, &candidates[..]) {
                let leaves = self.objects[*object].leaf_depth;
                self.walk(source, *object, Step { number: top, depth: 0, after: None, upto: None });
                // The walk began in the middle of the tree, so its depths are not those of the tree.
                self.objects[*object].leaf_depth = leaves;
                // A missing root with pages below it had no rows.
                let root = self.objects[*object].root;
                if let Some(lost) = self.lost.get_mut(&root).filter(|lost| lost.role == Role::Tree)
                {
                    lost.role = Role::Interior;
                }
                continue;
            }
            // An index is made anew from its table, so an orphan of one has no rows to save.
            let no_rows = self.schema_whole
                && self.free_known
                && candidates.iter().all(|object| self.objects[*object].kind == "index");
            for number in &found.pages {
                self.mark(*number);
            }
            if !no_rows || found.by_rowid {
                self.orphans.push(Orphan { top, pages: found.pages, candidates });
            }
        }
    }

    /// Returns the pages of trees that have no owner and that no page of the same kind leads to, in
    /// order.
    fn tops(&self, source: &dyn Source, kinds: &[u8]) -> Vec<u32> {
        let unknown = |number: &u32| !self.is_known(*number);
        let trees = (0u32..).zip(kinds).filter(|(_, kind)| **kind != 0).map(|(number, _)| number);
        let trees: Vec<u32> = trees.filter(unknown).collect();
        let mut below = HashSet::new();
        for number in &trees {
            let Some(page) = source.page(*number) else { continue };
            let Some(tree) = BtreePage::parse(&page, *number) else { continue };
            let kind = tree.kind();
            let same = |child: &u32| {
                let kind_below = kinds.get(*child as usize).copied().unwrap_or(0);
                let leaf = if kind.is_table() { Kind::TableLeaf } else { Kind::IndexLeaf };
                kind_below == kind as u8 || kind_below == leaf as u8
            };
            let children =
                tree.cells().flatten().filter_map(|cell| cell.left).chain(tree.right_child());
            below.extend(children.filter(same));
        }
        trees.into_iter().filter(|number| !below.contains(number)).collect()
    }

    fn survey(
        &self,
        source: &dyn Source,
        top: u32,
        above: Option<usize>,
        possible: &Possible<'_>,
    ) -> Found {
        let mut found =
            Found { pages: Vec::new(), by_rowid: false, rowids: None, possible: Vec::new() };
        if above.is_none() {
            found.possible = (1..self.objects.len()).collect();
        }
        let mut seen = HashSet::new();
        let mut pages = vec![top];
        while let Some(number) = pages.pop() {
            if self.is_known(number) || !seen.insert(number) {
                continue;
            }
            let Some(page) = source.page(number) else { continue };
            let Some(tree) = BtreePage::parse(&page, number) else { continue };
            let kind = tree.kind();
            found.by_rowid |= kind.is_table();
            let first = pages.len();
            pages.extend(tree.cells().flatten().filter_map(|cell| cell.left));
            pages.extend(tree.right_child());
            pages[first..].reverse();
            if !kind.is_leaf() && kind.is_table() {
                continue;
            }
            found.pages.push(number);
            for cell in tree.cells().flatten() {
                if let Some(rowid) = cell.rowid {
                    let (low, high) = found.rowids.unwrap_or((rowid, rowid));
                    found.rowids = Some((low.min(rowid), high.max(rowid)));
                }
                if found.possible.is_empty() {
                    continue;
                }
                let Ok(payload) = payload(source, &cell) else { continue };
                let Some(values) = decode(&payload) else { continue };
                found.possible.retain(|object| possible(*object, kind.is_table(), &values));
            }
        }
        found
    }

    /// Returns the objects that have lost a page which can have led to the orphan.
    fn candidates(&self, found: &Found) -> Vec<usize> {
        let mut candidates: Vec<usize> = self
            .lost
            .values()
            .filter(|lost| matches!(lost.role, Role::Tree | Role::Interior))
            .filter(|lost| match (found.rowids, found.by_rowid) {
                (Some((low, high)), true) => {
                    lost.after.is_none_or(|after| after < low)
                        && lost.upto.is_none_or(|upto| high <= upto)
                }
                _ => true,
            })
            .filter_map(|lost| lost.object)
            .filter(|object| {
                self.objects[*object].is_table.is_none_or(|by_rowid| by_rowid == found.by_rowid)
                    && found.possible.contains(object)
            })
            .collect();
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }
}

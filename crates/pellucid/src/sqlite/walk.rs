//! The walk from the root of a tree down: each page with the rowids it may have, and the overflow
//! pages.

use super::map::{Lost, Map, Role};
use super::page::{BtreePage, Cell};
use super::{word, Source};

/// A page that the walk comes to: its depth, and the rowids it may have, above `after` and up to `upto`.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub number: u32,
    pub depth: usize,
    pub after: Option<i64>,
    pub upto: Option<i64>,
}

impl Map {
    /// Walks the tree of `object` from `root` on, and notes the owner and the role of every page. It
    /// passes over a page that has an owner, so that a damaged pointer leads to no page twice.
    pub(super) fn walk(&mut self, source: &dyn Source, object: usize, root: Step) {
        let mut steps = vec![root];
        while let Some(step) = steps.pop() {
            if !self.take(step.number, object) {
                continue;
            }
            let lost = Lost {
                object: Some(object),
                role: Role::Tree,
                after: step.after,
                upto: step.upto,
                depth: step.depth,
            };
            let Some(page) = source.page(step.number) else {
                self.lost.insert(step.number, lost);
                continue;
            };
            let Some(tree) = BtreePage::parse(&page, step.number) else {
                self.malformed.push(step.number);
                self.lost.insert(step.number, lost);
                continue;
            };
            let kind = tree.kind();
            let found = &mut self.objects[object];
            found.is_table.get_or_insert(kind.is_table());
            if kind.is_leaf() {
                found.leaf_depth.get_or_insert(step.depth);
            }
            if kind.is_leaf() || !kind.is_table() {
                self.content[object].push(step.number);
            }
            self.cells(source, object, step, &tree, &mut steps);
        }
    }

    fn cells(
        &mut self,
        source: &dyn Source,
        object: usize,
        step: Step,
        tree: &BtreePage<'_>,
        steps: &mut Vec<Step>,
    ) {
        let first = steps.len();
        let by_rowid = tree.kind().is_table();
        let mut after = step.after;
        let mut child = |number: u32, after: Option<i64>, upto: Option<i64>| {
            steps.push(Step { number, depth: step.depth + 1, after, upto });
        };
        for cell in tree.cells().flatten() {
            if let Some(left) = cell.left {
                child(left, after, cell.rowid.or(step.upto));
                after = if by_rowid { cell.rowid } else { after };
            }
            if cell.overflow.is_some() {
                self.overflow(source, object, &cell);
            }
        }
        if let Some(right) = tree.right_child() {
            child(right, after, step.upto);
        }
        // The first child comes off the end of the list first.
        steps[first..].reverse();
    }

    fn overflow(&mut self, source: &dyn Source, object: usize, cell: &Cell<'_>) {
        let usable = self.usable.saturating_sub(4).max(1);
        let mut left = cell.bytes.saturating_sub(cell.local.len());
        let mut next = cell.overflow;
        while let Some(number) = next.filter(|_| left > 0) {
            if !self.take(number, object) {
                return;
            }
            let Some(page) = source.page(number) else {
                self.lost.insert(number, Lost::overflow(object, cell.rowid));
                return;
            };
            left = left.saturating_sub(usable);
            next = word(&page, 0);
        }
    }
}

/// Joins the whole payload of a cell.
///
/// # Errors
/// The number of the overflow page that is missing, or 0 if the chain ends too early.
pub fn payload(source: &dyn Source, cell: &Cell<'_>) -> Result<Vec<u8>, u32> {
    // The length may be of a damaged page, so memory is allocated only as pages come.
    let most = u64::from(source.pages()) * source.page_bytes() as u64;
    if cell.bytes as u64 > most {
        return Err(0);
    }
    let mut payload = cell.local.to_vec();
    let mut next = cell.overflow;
    while payload.len() < cell.bytes {
        let number = next.filter(|number| *number != 0).ok_or(0u32)?;
        let page = source.page(number).ok_or(number)?;
        let content = page.get(4..).filter(|content| !content.is_empty()).ok_or(number)?;
        let part = content.len().min(cell.bytes - payload.len());
        payload.extend_from_slice(&content[..part]);
        next = word(&page, 0);
    }
    Ok(payload)
}

//! The table or index that a damaged page belongs to, and the rows that it can have had.

use std::path::Path;

use pellucid::sqlite::{Map, Role};

use super::Audit;
use crate::page_source::Pages;

/// The owner of a damaged page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// ``table `t` ``, or `the freelist`.
    pub name: String,
    /// `leaf`, `interior` and so on.
    pub role: &'static str,
    /// ``rowids 12 to 40`` for a page of a table.
    pub rowids: Option<String>,
    /// The rowids are greater than this one.
    pub after: Option<i64>,
    /// The rowids are not greater than this one.
    pub upto: Option<i64>,
}

/// Names the owner of each damaged page that can be reached from those that open.
pub fn name(path: &Path, audit: &mut Audit) {
    if audit.damaged_pages.is_empty() {
        return;
    }
    // The pages are reported already. If their owners cannot be found, they are left out.
    let Ok(pages) = Pages::open(path) else { return };
    let mut map = Map::build(&pages, None);
    let damaged: Vec<u32> = audit.damaged_pages.iter().map(|found| found.page).collect();
    map.place(&pages, &damaged);
    for found in &mut audit.damaged_pages {
        let Some(lost) = map.lost.get(&found.page) else { continue };
        let object = lost.object.map(|object| &map.objects[object]);
        let name = match (object, lost.role) {
            (Some(object), _) => object.describe(),
            (None, Role::Free) => "the freelist".to_owned(),
            (None, Role::PointerMap) => "the pointer map".to_owned(),
            (None, _) => continue,
        };
        let has_rowids =
            object.is_some_and(|object| object.kind == "table" && object.goes_by_rowid());
        found.owner = Some(Owner {
            name,
            role: lost.role.name(),
            rowids: has_rowids.then(|| lost.rowids()).flatten(),
            after: lost.after,
            upto: lost.upto,
        });
    }
}

//! The rows of the schema, and the search for them if page 1, or a page above them, is missing.
//!
//! The search takes a page for one of the schema only if three things hold. Each of its rows is a row of a schema. Each
//! root in it is a b-tree page that no other page leads to. No two rows of all such pages have the same name or root.
//! An old page of the schema on the freelist does not pass, because its roots have another owner by now.

use std::collections::HashSet;

use super::map::Map;
use super::page::{BtreePage, Kind};
use super::record::{decode, Encoding, Value};
use super::walk::payload;
use super::Source;

/// The object that is the schema itself.
pub const SCHEMA: usize = 0;

/// A table, index, view or trigger, by its row in the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// `table`, `index`, `view` or `trigger`.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// The table that the object belongs to.
    pub table: String,
    /// The root page; 0 for a view, a trigger or a virtual table, which have none.
    pub root: u32,
    /// The statement that made the object; `None` for an index that SQLite made itself.
    pub sql: Option<String>,
    /// Whether the tree goes by rowid; `None` if no page of it was read.
    pub(super) is_table: Option<bool>,
    /// The depth of the leaves; `None` if none was read.
    pub(super) leaf_depth: Option<usize>,
}

impl Object {
    /// Whether the tree goes by rowid, which that of an index or of a table WITHOUT ROWID does not.
    pub fn goes_by_rowid(&self) -> bool {
        self.is_table == Some(true)
    }

    /// Describes the object for people: ``table `t` ``.
    pub fn describe(&self) -> String {
        match self.name.as_str() {
            "sqlite_schema" => "the schema".to_owned(),
            name => format!("{} `{name}`", self.kind),
        }
    }
}

/// Searches the leaves that no page leads to for rows of the schema, and adds them to `map`.
pub fn search(map: &mut Map, source: &dyn Source, kinds: &[u8]) {
    let leaf = Kind::TableLeaf as u8;
    let leaves =
        (0u32..).zip(kinds).filter(|(number, kind)| **kind == leaf && !map.is_known(*number));
    let leaves: Vec<u32> = leaves.map(|(number, _)| number).collect();
    let encodings = match source.page(1).is_some() {
        true => vec![map.encoding],
        false => vec![Encoding::Utf8, Encoding::Utf16le, Encoding::Utf16be],
    };
    for encoding in encodings {
        let rows =
            |number: &u32| rows_of_page(source, *number, encoding).filter(|rows| !rows.is_empty());
        let found: Vec<(u32, Vec<Object>)> =
            leaves.iter().filter_map(|number| Some((*number, rows(number)?))).collect();
        if !found.is_empty() {
            map.encoding = encoding;
            accept(map, source, kinds, found);
            return;
        }
    }
}

fn accept(map: &mut Map, source: &dyn Source, kinds: &[u8], found: Vec<(u32, Vec<Object>)>) {
    let children = children(source, kinds);
    let is_root = |object: &Object| {
        let kind = kinds.get(object.root as usize);
        object.root == 0 || kind.is_some_and(|kind| *kind != 0) && !children.contains(&object.root)
    };
    let fits: Vec<_> = found.into_iter().filter(|(_, rows)| rows.iter().all(is_root)).collect();
    let (mut names, mut roots) = (HashSet::new(), HashSet::new());
    let known = map.objects.iter().skip(1);
    let all = known.chain(fits.iter().flat_map(|(_, rows)| rows));
    let mut twice = false;
    for object in all {
        twice |= !names.insert((object.kind.clone(), object.name.clone()));
        twice |= object.root != 0 && !roots.insert(object.root);
    }
    if twice {
        return;
    }
    for (number, rows) in fits {
        map.take(number, SCHEMA);
        map.content[SCHEMA].push(number);
        rows.into_iter().for_each(|object| map.add(object));
    }
}

/// Returns every page that an interior page leads to.
fn children(source: &dyn Source, kinds: &[u8]) -> HashSet<u32> {
    let interior =
        |kind: u8| kind == Kind::TableInterior as u8 || kind == Kind::IndexInterior as u8;
    let mut children = HashSet::new();
    for (number, _) in (0u32..).zip(kinds).filter(|(_, kind)| interior(**kind)) {
        let Some(page) = source.page(number) else { continue };
        let Some(tree) = BtreePage::parse(&page, number) else { continue };
        children.extend(tree.cells().flatten().filter_map(|cell| cell.left));
        children.extend(tree.right_child());
    }
    children
}

/// Returns the rows of a page of the schema. `None` if one of them is no such row.
pub fn rows_of_page(source: &dyn Source, number: u32, encoding: Encoding) -> Option<Vec<Object>> {
    let page = source.page(number)?;
    let tree = BtreePage::parse(&page, number)?;
    tree.cells()
        .map(|cell| {
            let payload = payload(source, &cell?).ok()?;
            schema_row(&decode(&payload)?, encoding)
        })
        .collect()
}

fn schema_row(values: &[Value<'_>], encoding: Encoding) -> Option<Object> {
    let [Value::Text(kind), Value::Text(name), Value::Text(table), root, sql] = values else {
        return None;
    };
    let root = match root {
        Value::Integer(root) => u32::try_from(*root).ok()?,
        Value::Null => 0,
        _ => return None,
    };
    let sql = match sql {
        Value::Text(sql) => Some(encoding.text(sql)),
        Value::Null => None,
        _ => return None,
    };
    let kind = encoding.text(kind);
    if !matches!(kind.as_str(), "table" | "index" | "view" | "trigger") {
        return None;
    }
    let (name, table) = (encoding.text(name), encoding.text(table));
    let is_table = (kind == "index").then_some(false);
    Some(Object { kind, name, table, root, sql, is_table, leaf_depth: None })
}

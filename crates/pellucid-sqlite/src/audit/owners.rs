//! Which table or index a damaged page belongs to: a walk over the b-trees, from the pages that open.
//!
//! B-tree pages: SQLite file format, 1.6. Only the database file is walked; a damaged page that is
//! reached from a parent keeps its owner although it cannot be read itself.

use std::collections::HashMap;

use pellucid::header::REGION_BYTES;
use pellucid::unit::TAIL_BYTES;

use super::Audit;
use crate::link::Link;
use crate::lower::Lower;

/// A walk never visits more pages than the file has; this bounds a damaged one.
const MOST_PAGES: usize = 50_000_000;

/// Names the owner of each damaged page that can be reached.
pub fn name(lower: Lower, link: &Link, audit: &mut Audit) {
    if audit.damaged_pages.is_empty() {
        return;
    }
    let walk = Walk { lower, link, page_bytes: link.page_size().unwrap_or(4096) };
    let wanted: Vec<u32> = audit.damaged_pages.iter().map(|(page, ..)| *page).collect();
    let mut found = HashMap::new();
    walk.tree(1, &wanted, "the schema", &mut found);
    for (root, owner) in walk.schema() {
        walk.tree(root, &wanted, &owner, &mut found);
    }
    for (page, _, owner) in &mut audit.damaged_pages {
        *owner = found.remove(page);
    }
}

struct Walk<'a> {
    lower: Lower,
    link: &'a Link,
    page_bytes: usize,
}

impl Walk<'_> {
    fn page(&self, number: u32) -> Option<Vec<u8>> {
        let mut unit = vec![0; self.page_bytes];
        let at = REGION_BYTES + u64::from(number.checked_sub(1)?) * self.page_bytes as u64;
        self.lower.read(&mut unit, at).ok()?;
        let mut page = vec![0; self.page_bytes];
        let content = self.page_bytes - TAIL_BYTES;
        self.link.try_open_page(number, &unit, &mut page[..content]).ok()?;
        Some(page)
    }

    fn tree(&self, root: u32, wanted: &[u32], owner: &str, found: &mut HashMap<u32, String>) {
        let mut queue = vec![root];
        let mut seen = std::collections::HashSet::new();
        while let Some(number) = queue.pop() {
            if number == 0 || !seen.insert(number) || seen.len() > MOST_PAGES {
                continue;
            }
            if wanted.contains(&number) {
                found.entry(number).or_insert_with(|| owner.to_owned());
            }
            let Some(page) = self.page(number) else { continue };
            queue.extend(self.children(&page, number));
        }
    }

    /// Child pages and the first overflow page of each cell; an overflow page's next one.
    fn children(&self, page: &[u8], number: u32) -> Vec<u32> {
        let at = if number == 1 { 100 } else { 0 };
        let kind = page[at];
        let interior = matches!(kind, 2 | 5);
        if !interior && !matches!(kind, 10 | 13) {
            // An overflow page begins with the number of the next one.
            return vec![word(page, 0)];
        }
        let mut children = Vec::new();
        let header = if interior { 12 } else { 8 };
        if interior {
            children.push(word(page, at + 8));
        }
        let cells = usize::from(half(page, at + 3));
        for cell in 0..cells {
            let start = usize::from(half(page, at + header + cell * 2));
            if interior {
                children.push(word(page, start));
            }
            children.extend(self.overflow(page, kind, start));
        }
        children
    }

    /// The first overflow page of a cell (SQLite file format, 1.6, "payload").
    fn overflow(&self, page: &[u8], kind: u8, start: usize) -> Option<u32> {
        let usable = self.page_bytes - TAIL_BYTES;
        let mut at = start + if kind == 2 { 4 } else { 0 };
        if kind == 5 {
            return None;
        }
        let payload = varint(page, &mut at)? as usize;
        if kind == 13 {
            varint(page, &mut at)?;
        }
        let most = if kind == 13 { usable - 35 } else { (usable - 12) * 64 / 255 - 23 };
        if payload <= most {
            return None;
        }
        let least = (usable - 12) * 32 / 255 - 23;
        let here = least + (payload - least) % (usable - 4);
        let here = if here <= most { here } else { least };
        Some(word(page, at + here))
    }

    /// Root pages and names, read from page 1's b-tree as far as it opens.
    fn schema(&self) -> Vec<(u32, String)> {
        let mut objects = Vec::new();
        let mut queue = vec![1];
        let mut seen = std::collections::HashSet::new();
        while let Some(number) = queue.pop() {
            if !seen.insert(number) {
                continue;
            }
            let Some(page) = self.page(number) else { continue };
            let at = if number == 1 { 100 } else { 0 };
            let cells = usize::from(half(&page, at + 3));
            match page[at] {
                5 => {
                    queue.push(word(&page, at + 8));
                    let starts = (0..cells).map(|cell| half(&page, at + 12 + cell * 2));
                    queue.extend(starts.map(|start| word(&page, usize::from(start))));
                }
                13 => {
                    for cell in 0..cells {
                        let start = usize::from(half(&page, at + 8 + cell * 2));
                        objects.extend(schema_row(&page, start));
                    }
                }
                _ => {}
            }
        }
        objects
    }
}

/// `(rootpage, "table `name`")` from a record of the schema table (SQLite file format, 2.1).
fn schema_row(page: &[u8], start: usize) -> Option<(u32, String)> {
    let mut at = start;
    varint(page, &mut at)?;
    varint(page, &mut at)?;
    let record = at;
    let header_bytes = varint(page, &mut at)? as usize;
    let mut body = record + header_bytes;
    let mut texts = Vec::new();
    for column in 0..4 {
        let serial = varint(page, &mut at)?;
        let bytes = match serial {
            0 | 8 | 9 => 0,
            1..=4 => serial as usize,
            5 => 6,
            6 | 7 => 8,
            n => (n as usize - 12) / 2,
        };
        let value = page.get(body..body + bytes)?;
        body += bytes;
        if column == 3 {
            let root = match serial {
                9 => 1,
                1..=4 => value.iter().fold(0, |all, byte| all << 8 | u32::from(*byte)),
                _ => return None,
            };
            return (root > 0).then(|| (root, format!("{} `{}`", texts[0], texts[1])));
        }
        texts.push(String::from_utf8_lossy(value).replace('\0', ""));
    }
    None
}

fn half(page: &[u8], at: usize) -> u16 {
    page.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]))
}

fn word(page: &[u8], at: usize) -> u32 {
    page.get(at..at + 4).map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}

/// A variable-length integer (SQLite file format, 1.6).
fn varint(page: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for index in 0..9 {
        let byte = *page.get(*at)?;
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

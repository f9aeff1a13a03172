//! Walks over pages that lead anywhere.

use super::*;
use crate::sqlite::kinds;

/// Pages of 512 bytes, of which 480 are SQLite's.
struct Pages(Vec<Option<Vec<u8>>>);

impl Source for Pages {
    fn pages(&self) -> u32 {
        self.0.len() as u32
    }
    fn page_bytes(&self) -> usize {
        512
    }
    fn page(&self, number: u32) -> Option<Vec<u8>> {
        self.0.get(number.checked_sub(1)? as usize)?.clone()
    }
}

/// Numbers that look random, always the same.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// A page that looks like one of a tree, and leads anywhere.
fn page(numbers: &mut Numbers, first: bool) -> Vec<u8> {
    let mut page: Vec<u8> = (0..480).map(|_| numbers.below(24) as u8).collect();
    let at = if first { 100 } else { 0 };
    page[at] = [2, 5, 10, 13, 0][numbers.below(5) as usize];
    let cells = numbers.below(20) as usize;
    page[at + 3..at + 7].copy_from_slice(&[0, cells as u8, 0, 200]);
    for cell in 0..cells {
        let start = 200 + numbers.below(270) as u16;
        page[at + 12 + 2 * cell..][..2].copy_from_slice(&start.to_be_bytes());
    }
    page
}

#[test]
fn no_pages_make_a_walk_panic_or_go_on_for_ever() {
    let mut numbers = Numbers(7);
    let (mut trees, mut orphans) = (0, 0);
    for _ in 0..3000 {
        let count = 1 + numbers.below(23);
        let pages = (0..count)
            .map(|n| (numbers.below(8) > 0).then(|| page(&mut numbers, n == 0)))
            .collect();
        let source = Pages(pages);
        let kinds = kinds(&source, &mut |_| ());
        let mut map = Map::build(&source, Some(&kinds));
        let damaged: Vec<u32> =
            (1..=source.pages()).filter(|n| source.page(*n).is_none()).collect();
        map.place(&source, &damaged);
        map.adopt(&source, &kinds, &|_, _, values| values.len() < 9);
        assert!(damaged.iter().all(|page| map.lost.contains_key(page)));
        trees += map.content.iter().map(Vec::len).sum::<usize>();
        orphans += map.orphans.len();
    }
    assert!(trees > 100 && orphans > 100, "{trees} {orphans}");
}

//! Brings the pages of a log set back on several cores.
//!
//! Versions lie by page, then by commit. So the last version of a page that counts is in one chunk or, where the next chunk begins with
//! the same page, perhaps in that one: then a page waits until all chunks that may have it were read.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use pellucid::error::{Error, Result, Subject};

use super::super::open::Content;
use super::super::pages::on_threads;
use super::LogSet;

/// Chunks after which no page waits but the one that goes on: what waits is at most a page for each.
const WINDOW: usize = if cfg!(test) { 3 } else { 256 };

/// A page and the place of a commit that wrote it.
type Version = (u32, u32);

/// What is called with each page and what it is; by several threads at once.
pub type WritePage<'a> = dyn Fn(u32, &[u8]) -> Result<()> + Sync + 'a;

/// What the chunks of a window have left.
#[derive(Default)]
struct Left {
    /// Of a page that lies in several chunks the last commit that counts, and what it made of the page. Nothing if that is written.
    waiting: HashMap<u32, (u32, Option<Vec<u8>>)>,
    /// The first and the last version of each chunk.
    ends: Vec<Option<[Version; 2]>>,
}

impl Left {
    fn note(&mut self, page: u32, commit: u32, bytes: Option<&[u8]>) {
        let known = self.waiting.get(&page).map(|(commit, _)| *commit);
        if known.is_none_or(|known| known < commit) {
            self.waiting.insert(page, (commit, bytes.map(<[u8]>::to_vec)));
        }
    }
}

impl LogSet<'_, '_> {
    /// Writes each page that the first `commits` commits wrote once, as it is behind them, on `workers` threads.
    ///
    /// # Errors
    /// As [`LogSet::apply`]: what was written is then good for nothing.
    pub fn apply_on(&self, workers: usize, commits: usize, write: &WritePage<'_>) -> Result<()> {
        self.assert_has(commits)?;
        self.set.verify_padding()?;
        let chunks = self.set.index().chunks.len();
        let (mut before, mut versions) = ((0, 0), 0u64);
        let mut left = Mutex::<Left>::default();
        let mut from = 0;
        while from < chunks {
            let window = from..chunks.min(from + WINDOW);
            from = window.end;
            unlocked(&mut left).ends = vec![None; window.len()];
            on_threads(
                workers,
                window.len(),
                &|at, content| self.apply_chunk((&window, at), commits, (content, &left), write),
                &mut |_| (),
            )?;
            let left = unlocked(&mut left);
            for [first, last] in std::mem::take(&mut left.ends).into_iter().flatten() {
                if first <= before {
                    return Err(out_of_order(Subject::Index));
                }
                before = last;
            }
            let entries = &self.set.index().chunks;
            versions += entries[window].iter().map(|entry| u64::from(entry.pages)).sum::<u64>();
            let goes_on = entries.get(from).map(|entry| entry.first_page);
            for (page, waits) in std::mem::take(&mut left.waiting) {
                match waits {
                    waits if Some(page) == goes_on => drop(left.waiting.insert(page, waits)),
                    (_, Some(bytes)) => write(page, &bytes)?,
                    (_, None) => {}
                }
            }
        }
        match versions == u64::from(self.set.manifest().pages) {
            true => Ok(()),
            false => Err(Error::corrupt(Subject::Index, "it does not name all pages of the log")),
        }
    }

    /// Writes what a chunk decides, and leaves the rest. Returns how many versions it has.
    fn apply_chunk(
        &self,
        (window, at): (&Range<usize>, usize),
        commits: usize,
        (content, left): (&mut Content, &Mutex<Left>),
        write: &WritePage<'_>,
    ) -> Result<u32> {
        let (number, entries) = (window.start + at, &self.set.index().chunks);
        let entry = entries.get(number).ok_or_else(|| out_of_order(Subject::Index))?;
        let prefix = self.set.read(entry, content)?;
        let (list, pages) =
            self.split(&prefix, number as u64, &content.bytes).ok_or_else(|| {
                Error::corrupt(prefix.subject(), "it has no pages of a log, or they do not fit")
            })?;
        let list: Vec<Version> = list.collect();
        let is_of_a_commit = |(page, commit): &Version| {
            let commit = self.commits.get(*commit as usize);
            *page > 0 && commit.is_some_and(|commit| *page <= commit.pages)
        };
        let (Some(first), Some(last)) = (list.first(), list.last()) else {
            return Err(out_of_order(prefix.subject()));
        };
        if !list.is_sorted_by(|one, next| one < next) || !list.iter().all(is_of_a_commit) {
            return Err(out_of_order(prefix.subject()));
        }
        let page_bytes = self.set.header().page_size as usize;
        let goes_on = entries.get(number + 1).map(|entry| entry.first_page);
        let leave = |leave: &dyn Fn(&mut Left)| {
            leave(&mut left.lock().unwrap_or_else(PoisonError::into_inner));
        };
        let mut behind = 0;
        for of_page in list.chunk_by(|one, next| one.0 == next.0) {
            let begins = behind;
            behind += of_page.len();
            let counts = of_page.iter().rposition(|(_, commit)| (*commit as usize) < commits);
            let Some(place) = counts else { continue };
            let (page, commit) = of_page[place];
            let bytes = &pages[(begins + place) * page_bytes..][..page_bytes];
            if behind == list.len() && goes_on == Some(page) {
                leave(&|left| left.note(page, commit, Some(bytes)));
                continue;
            }
            write(page, bytes)?;
            if begins == 0 {
                // The chunk before may have left an older one.
                leave(&|left| left.note(page, commit, None));
            }
        }
        leave(&|left| {
            if let Some(ends) = left.ends.get_mut(at) {
                *ends = Some([*first, *last]);
            }
        });
        Ok(prefix.pages)
    }
}

fn unlocked(left: &mut Mutex<Left>) -> &mut Left {
    left.get_mut().unwrap_or_else(PoisonError::into_inner)
}

fn out_of_order(subject: Subject) -> Error {
    Error::corrupt(subject, "its list of pages is out of order or names no page")
}

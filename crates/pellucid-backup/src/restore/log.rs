//! Brings back what a log set has: its commits, and the pages as they were behind any of them.

use pellucid::error::{Error, Result, Subject};
use pellucid::media::{check_commits, ChunkKind, ChunkPrefix, Kind, LogCommit, VERSION_BYTES};

use super::open::{Content, OpenSet};

mod apply;
#[cfg(test)]
mod tests;

/// What is called with each version of a page: the page, the place of its commit, and what it is.
pub type EachVersion<'a> = dyn FnMut(u32, u32, &[u8]) -> Result<()> + 'a;

/// A log set whose commits were read.
#[derive(Debug)]
pub struct LogSet<'s, 'a> {
    set: &'s OpenSet<'a>,
    commits: Vec<LogCommit>,
}

/// The error of a log set where the pages of a database are needed.
pub fn is_log_set(position: u32) -> Error {
    Error::misuse(
        Subject::BackupSet(position),
        "it is a log set, which has no database: it is applied behind a full backup",
    )
}

impl<'s, 'a> LogSet<'s, 'a> {
    /// Proves the set and reads its commits.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a set that is no log set; [`Error::Corrupt`] or [`Error::Unauthentic`] if something of it is not
    /// what was written.
    pub fn open(set: &'s OpenSet<'a>) -> Result<Self> {
        let header = set.header();
        let facts = header.version2.and_then(|own| own.chain.zip(own.log));
        let (Kind::Log, Some((place, facts))) = (header.kind, facts) else {
            return Err(Error::misuse(Subject::BackupSet(header.position), "it is no log set"));
        };
        let corrupt = |cause: &'static str| Err(Error::corrupt(Subject::Index, cause));
        if !set.index().missing.is_empty() || set.manifest().damaged {
            return corrupt("a log set with pages that could not be read: no writer makes it");
        }
        prove(set)?;
        let mut commits = Vec::new();
        let mut content = Content::default();
        for (number, entry) in (0..).zip(&set.index().hashes) {
            let prefix = set.read(entry, &mut content)?;
            let wanted = (ChunkKind::Commits, number, 0);
            if (prefix.kind, prefix.number, prefix.first_page) != wanted {
                return corrupt("it does not name the list of commits");
            }
            LogCommit::parse_chunk(&content.bytes, prefix.pages, &mut commits)?;
        }
        check_commits(&place, &facts, &commits)?;
        Ok(Self { set, commits })
    }

    /// Its commits, in their order.
    pub fn commits(&self) -> &[LogCommit] {
        &self.commits
    }

    /// Calls `each` once for each page that the first `commits` commits wrote, with what it is behind them, in the order of the
    /// page numbers. Pages behind the end of the database at that commit may be among them.
    ///
    /// # Errors
    /// As [`LogSet::open`], and those of `each`: what was written with the pages is then good for nothing.
    pub fn apply(
        &self,
        commits: usize,
        each: &mut dyn FnMut(u32, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.assert_has(commits)?;
        let mut held = Held::default();
        self.versions(&mut |at, commit, page| {
            if held.page != at {
                held.give(each)?;
            }
            if (commit as usize) < commits {
                held.keep(at, page);
            }
            Ok(())
        })?;
        held.give(each)
    }

    /// Calls `each` for each version of a page: the page, the place of its commit among the commits, and what it is. By page, then by
    /// commit.
    ///
    /// # Errors
    /// As [`LogSet::apply`].
    pub fn versions(&self, each: &mut EachVersion<'_>) -> Result<()> {
        self.set.verify_padding()?;
        let mut content = Content::default();
        let mut before = (0, 0);
        let mut versions = 0u64;
        for (number, entry) in (0..).zip(&self.set.index().chunks) {
            let prefix = self.set.read(entry, &mut content)?;
            let corrupt = |cause: &'static str| Error::corrupt(prefix.subject(), cause);
            let (list, pages) = self
                .split(&prefix, number, &content.bytes)
                .ok_or_else(|| corrupt("it has no pages of a log, or they do not fit"))?;
            let page_bytes = self.set.header().page_size as usize;
            for (version, page) in list.zip(pages.chunks_exact(page_bytes)) {
                let (at, commit) = version;
                let commit_of = self.commits.get(commit as usize);
                let fits = commit_of.is_some_and(|commit| at <= commit.pages);
                if version <= before || at == 0 || !fits {
                    return Err(corrupt("its list of pages is out of order or names no page"));
                }
                before = version;
                each(at, commit, page)?;
            }
            versions += u64::from(prefix.pages);
        }
        if versions != u64::from(self.set.manifest().pages) {
            return Err(Error::corrupt(Subject::Index, "it does not name all pages of the log"));
        }
        Ok(())
    }

    /// Reads and checks all of it.
    ///
    /// # Errors
    /// As [`LogSet::open`].
    pub fn verify(&self) -> Result<()> {
        self.apply(self.commits.len(), &mut |_, _| Ok(()))
    }

    fn assert_has(&self, commits: usize) -> Result<()> {
        if commits <= self.commits.len() {
            return Ok(());
        }
        Err(Error::misuse(
            Subject::BackupSet(self.set.header().position),
            format!("it has {} commits, not {commits}", self.commits.len()),
        ))
    }

    /// The list in a chunk, and its pages.
    fn split<'c>(
        &self,
        prefix: &ChunkPrefix,
        number: u64,
        content: &'c [u8],
    ) -> Option<(impl Iterator<Item = (u32, u32)> + 'c, &'c [u8])> {
        let (pages, page_bytes) = (prefix.pages as usize, self.set.header().page_size as usize);
        let (list, rest) = content.split_at_checked(pages.checked_mul(VERSION_BYTES)?)?;
        let fits = prefix.kind == ChunkKind::LogPages
            && prefix.number == number
            && Some(rest.len()) == pages.checked_mul(page_bytes)
            && list.starts_with(&prefix.first_page.to_be_bytes());
        let version = |row: &[u8]| {
            let half =
                |at: usize| u32::from_be_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]);
            (half(0), half(4))
        };
        fits.then(|| (list.chunks_exact(VERSION_BYTES).map(version), rest))
    }
}

/// The last version of a page so far. A later one may be in the next chunk.
#[derive(Default)]
struct Held {
    page: u32,
    bytes: Vec<u8>,
}

impl Held {
    fn keep(&mut self, page: u32, bytes: &[u8]) {
        self.page = page;
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
    }

    fn give(&mut self, each: &mut dyn FnMut(u32, &[u8]) -> Result<()>) -> Result<()> {
        match std::mem::take(&mut self.page) {
            0 => Ok(()),
            page => each(page, &self.bytes),
        }
    }
}

/// Proves the set before anything of it is used. Where a root does not match, each chunk is read: the damaged one is named, and
/// what is whole in any copy is taken from that.
fn prove(set: &OpenSet<'_>) -> Result<()> {
    if set.prove().is_ok() {
        return Ok(());
    }
    let mut content = Content::default();
    for entry in set.index().chunks.iter().chain(&set.index().hashes) {
        set.read(entry, &mut content)?;
    }
    set.verify_padding()?;
    set.prove()
}

//! The commits of a damaged log that SQLite did not count, read from a copy of its rest.
//!
//! A copy has the log's header, a hole for the frames that counted, and the frames from the damaged one on. Frames that open
//! with the database's key are taken in runs, each as long as the checksums follow one from another.

use std::path::{Path, PathBuf};

use pellucid::unit::TAIL_BYTES;
use pellucid::wal::{page_and_commit, Chain, WalHeader, HEADER_BYTES};
use pellucid::{Error, Result, Subject};
use pellucid_vfs::container::Container;

use super::log::Log;

/// The commits of such a log.
#[derive(Debug)]
pub struct LostLog {
    pub(super) log: Log,
    path: PathBuf,
    commits: u32,
    /// What the damaged frames cost.
    remarks: Vec<String>,
}

/// A commit that was taken out of a log that SQLite does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Transactions.
    pub commits: u32,
    /// Pages that they wrote.
    pub pages: usize,
}

impl LostLog {
    /// Reads the log at `path`, which is named by the caller.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Unsupported`] for the log of a later version; [`Error::Misuse`] if it has no commit that opens with
    /// the key of this database.
    pub fn open(path: &Path, container: &Container, page_bytes: usize) -> Result<Self> {
        let failed = |error| Error::io(Subject::File(path.to_owned()), error);
        let file = pellucid_files::regular::open_given(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let nothing = || {
            Error::misuse(
                Subject::File(path.to_owned()),
                "no commit in it opens with the key of this database: name the rest of a log that belongs to it",
            )
        };
        let Some(log) = Log::of(file, page_bytes).map_err(failed)? else { return Err(nothing()) };
        pellucid::wal::refuse_other(&log.header, container.version())?;
        let mut found = Self { log, path: path.to_owned(), commits: 0, remarks: Vec::new() };
        let frames = size.saturating_sub(HEADER_BYTES as u64) / found.log.frame_bytes() as u64;
        found.follow(container, u32::try_from(frames).unwrap_or(u32::MAX));
        if found.commits == 0 {
            return Err(nothing());
        }
        Ok(found)
    }

    fn follow(&mut self, container: &Container, frames: u32) {
        let is_whole =
            WalHeader::parse(&self.log.header).is_some_and(|header| header.sealed.is_some());
        let mut salts = is_whole.then(|| self.log.header[16..24].to_vec());
        let mut chain: Option<Chain> = None;
        let mut gap: Option<String> = None;
        let mut pending = Vec::new();
        for number in 1..=frames {
            let frame = match self.log.frame(container, number) {
                Ok(frame) if salts.as_ref().is_none_or(|salts| frame[8..16] == salts[..]) => frame,
                Ok(_) => {
                    gap.get_or_insert(format!("WAL frame {number}: not of this log"));
                    continue;
                }
                // A hole of the copy: that frame counted.
                Err(_) if self.log.is_hole(number) => continue,
                Err(cause) => {
                    gap.get_or_insert(cause);
                    continue;
                }
            };
            salts.get_or_insert_with(|| frame[8..16].to_vec());
            let damaged = gap.take();
            let goes_on = chain.as_mut().filter(|_| damaged.is_none());
            match goes_on.map(|chain| chain.goes_on(&frame)) {
                Some(true) => {}
                // As a rollback or an earlier recovery leaves it.
                Some(false) => break,
                None => {
                    let lost = "what it wrote, unless a later commit has that page, too";
                    self.remarks.extend(damaged.map(|cause| format!("{cause}: {lost}")));
                    chain = Some(Chain::behind(self.log.header, &frame));
                }
            }
            let (page, commit) = page_and_commit(&frame);
            pending.push((page, number));
            if commit != 0 {
                self.log.frames.extend(pending.drain(..));
                self.log.pages = Some(commit);
                self.commits += 1;
            }
        }
    }

    /// Returns the page as the last commit in this log has it. `None` if it has none of it.
    pub fn page(
        &self,
        container: &Container,
        number: u32,
    ) -> Option<std::result::Result<Vec<u8>, String>> {
        let frame = self.log.frames.get(&number)?;
        Some(self.log.frame(container, *frame).map(|frame| {
            let end = frame.len() - TAIL_BYTES;
            frame[pellucid::wal::FRAME_HEADER_BYTES..end].to_vec()
        }))
    }

    /// Says how much was taken.
    pub fn taken(&self) -> Taken {
        Taken { commits: self.commits, pages: self.log.frames.len() }
    }

    /// Says what the damage of this log costs.
    pub fn remarks(&self) -> impl Iterator<Item = String> + '_ {
        self.remarks.iter().map(|remark| format!("`{}`: {remark}", self.path.display()))
    }
}

//! The last full set, as what it says of pages that no commit has changed since: one that is another one was put back.
//!
//! The archive of a chain of log backups has a list of what log sets have, for differentials, and the log has the rest. The full set is
//! found by the history, if its files are still there. Nothing of that keeps a backup from being made, or a scan from ending, where it
//! cannot be had.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pellucid::shown::Shown;
use pellucid::{Error, Subject};
use pellucid_engine::log_chain;
use pellucid_files::paths::is_there;
use pellucid_host::DatabaseError;
use pellucid_vfs::log_archive::{path_of, Archive};
use pellucid_vfs::seal_request::{Credentials, Request};

use crate::history::History;
use crate::job::error::JobError;
use crate::job::media::open_media;
use crate::job::plan::Job;
use crate::job::store::url_of;
use crate::restore::OpenSet;
use crate::set::{Base, Expected, PageSource, Written};
use crate::snapshot::Snapshot;

/// So many pages are named.
const NAMED: usize = 20;

/// What a full backup is compared with.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) expected: Arc<Expected>,
    files: Vec<PathBuf>,
}

impl Before {
    /// Finds it for the database at `path`, with pages of that size and this file id. Called behind the snapshot: what is known to have
    /// changed has all of its commits then. `listed` is what [`base_of_list`] said before the snapshot.
    ///
    /// `to_store` says that a store may keep it waiting: not who makes a backup on this machine.
    pub(super) fn find(
        path: &Path,
        (page_size, source): (u32, [u8; 16]),
        listed: Option<[u8; 32]>,
        to_store: bool,
        credentials: &Credentials,
    ) -> Option<Self> {
        // Behind another full backup the list knows nothing of the commits between the snapshot and that.
        let changed = log_chain::changed(path).ok()??;
        if listed != Some(changed.base) {
            return None;
        }
        let history = History::open().ok()??;
        let known = history.own_set(&changed.base).ok()??;
        let is_at_hand = |path: &PathBuf| match url_of(path) {
            Some(_) => to_store,
            None => is_there(path),
        };
        let files: Vec<_> = known.files.iter().map(PathBuf::from).filter(is_at_hand).collect();
        if files.is_empty() {
            return None;
        }
        let media = open_media(&files).ok()?;
        let position = u32::try_from(known.position).ok()?;
        let full = OpenSet::open(&media, position, credentials).ok()?;
        if full.hash() != changed.base {
            return None;
        }
        if full.header().page_size != page_size || full.header().source != source {
            return None;
        }
        let mut only = changed;
        full.index().missing.iter().for_each(|page| only.add(*page));
        let (page_hash_key, hashes) = (full.page_hash_key(), full.page_hashes().ok()?);
        let base = Base { page_hash_key, hashes, only: Some(only) };
        Some(Self { expected: Arc::new(Expected::of(base)), files })
    }

    /// What is said in the place of an error of writing the set, if that is about pages that were put back.
    pub(super) fn in_place_of(&self, error: Error, job: &Job) -> JobError {
        let pages = self.expected.others(&[]);
        match &error {
            Error::Corrupt { subject: Subject::Page(page), .. } if pages.contains(page) => {
                let what = format!(
                    "{}; `--continue-after-error` backs up what is there",
                    self.what(&job.database, &pages)
                );
                Error::corrupt(Subject::File(job.database.clone()), what).into()
            }
            _ => error.into(),
        }
    }

    /// Such pages of a set that was written all the same.
    pub(super) fn older(&self, written: &Written) -> Vec<u32> {
        let unread: Vec<u32> = written.missing.iter().map(|(page, _)| *page).collect();
        self.expected.others(&unread)
    }

    /// What is told of them.
    pub(super) fn told(&self, job: &Job, pages: &[u32]) -> Option<String> {
        (!pages.is_empty())
            .then(|| format!("{}; the backup has what is there", self.what(&job.database, pages)))
    }

    /// What is wrong with them, and what to do.
    fn what(&self, database: &Path, pages: &[u32]) -> String {
        let named: Vec<_> = pages.iter().take(NAMED).map(u32::to_string).collect();
        let more = match pages.len() > NAMED {
            true => format!(" and {} more", pages.len() - NAMED),
            false => String::new(),
        };
        let files: Vec<_> = self.files.iter().map(|file| file.shown().to_string()).collect();
        let files = files.join(" ");
        format!(
            "page {}{more}: an older state of itself, or one of no commit: `{files}` has another one, and no commit of the chain of log \
             backups has changed it since. `pellucid check {} --against {files} LOG-BACKUPS` looks at each page, `pellucid restore {files} \
             LOG-BACKUPS --page {} --to {}` brings these back",
            named.join(", "),
            database.shown(),
            named.join(","),
            database.shown(),
        )
    }
}

/// Why the pages of the database at `path` are compared with no full set, where a whole chain of log backups has one.
pub(super) fn why_not(path: &Path) -> Option<String> {
    let state = Archive::open(path).and_then(|archive| archive.look()).ok()??;
    if !state.has_base
        || !state.broken_at.is_none()
        || matches!(log_chain::changed(path), Ok(Some(_)))
    {
        return None;
    }
    let list = path_of(path).join("changed");
    Some(format!(
        "its pages were not compared with the last full backup: `{}`, which says what commits have changed since, is not there, or not as \
         it was; `pellucid check {} --against MEDIA` compares them",
        list.shown(),
        path.shown()
    ))
}

/// The full set that the list of changed pages is of, in the archive of the database at `path`: the hash of its manifest.
pub(super) fn base_of_list(path: &Path) -> Option<[u8; 32]> {
    log_chain::changed(path).ok()?.map(|changed| changed.base)
}

/// Compares the pages that no commit has changed since the last full backup with what that has, where it is at hand: for whoever has
/// read every page, as a scan has. Writers go on meanwhile. Returns why they could not be compared, where they should have been.
///
/// # Errors
/// [`Error::Corrupt`] names the pages that are older states of themselves; [`DatabaseError`] if the database cannot be read.
pub fn compare_with_last(
    path: &Path,
    timeout: Duration,
    progress: &mut dyn FnMut(u32, u32),
) -> Result<Option<String>, DatabaseError> {
    let listed = base_of_list(path);
    let snapshot = Snapshot::begin(path, timeout)?;
    let Some(header) = snapshot.sealed_header()?.filter(log_chain::wants_chain) else {
        return Ok(None);
    };
    let credentials = Credentials::gather(&Request::default())?;
    let of = (snapshot.page_size(), header.file_id);
    let Some(before) = Before::find(path, of, listed, false, &credentials) else {
        return Ok(why_not(path));
    };
    let mut reader = snapshot.reader()?;
    let mut page = vec![0; snapshot.page_size() as usize];
    let mut unread = Vec::new();
    for number in 1..=snapshot.pages() {
        if number % 4096 == 1 {
            progress(number - 1, snapshot.pages());
        }
        match reader.read(number, &mut page) {
            Ok(()) => before.expected.look(&[number], &page, page.len()),
            Err(_) => unread.push(number),
        }
    }
    let older = before.expected.others(&unread);
    match older.is_empty() {
        true => Ok(None),
        false => {
            let what = before.what(path, &older);
            Err(Error::corrupt(Subject::File(path.to_owned()), what).into())
        }
    }
}

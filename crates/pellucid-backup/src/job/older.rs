//! Pages that are an older state of themselves: each opens, and the chain of log backups says which state it has to be.
//!
//! What a page has to be is its last version in the logs behind the full backup, or else what the full backup has. No write costs more
//! for that. A tag alone cannot tell: it says that a page is authentic, and not that it is the newest.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use pellucid::lsn::Lsn;
use pellucid::media::{page_hash, PAGE_HASH_BYTES};
use pellucid::{Error, Result, Subject};
use pellucid_engine::log_chain::{self, KeptLog, Version};
use pellucid_host::DatabaseError;
use pellucid_vfs::seal_request::{Credentials, Request};

use super::chain::Chain;
use super::clear::Believe;
use super::point::{Library, Plan, Point};
use crate::restore::{LogSet, OpenSet};
use crate::set::PageSource;
use crate::snapshot::Snapshot;

/// What is compared.
#[derive(Debug)]
pub struct Comparing {
    /// A database with a chain of log backups.
    pub database: PathBuf,
    /// A full backup of that chain, perhaps a differential, and the log backups behind it.
    pub media: Vec<PathBuf>,
    /// How long another log backup is waited for.
    pub timeout: Duration,
}

/// What was found.
#[derive(Debug)]
pub struct Compared {
    /// Pages that were compared.
    pub pages: u32,
    /// Up to which commit the media lead.
    pub covered: Lsn,
    /// Pages that no commit made what they are.
    pub older: Vec<u32>,
    /// Pages that could not be read: damaged ones.
    pub unread: Vec<u32>,
}

/// Compares the pages of a database with what its chain of log backups says of them. Writers go on meanwhile.
///
/// # Errors
/// [`Error::Misuse`] if the media do not lead to the commits that the archive has; what a restore from the media would say;
/// [`DatabaseError`].
pub fn compare(
    job: &Comparing,
    progress: &mut dyn FnMut(u32, u32),
) -> std::result::Result<Compared, DatabaseError> {
    let credentials = Credentials::gather(&Request::default())?.for_many();
    let path = &job.database;
    let misuse = |what: String| Error::misuse(Subject::File(path.clone()), what);
    let fork = log_chain::fork_at(path)?.ok_or_else(|| {
        misuse("no chain of log backups has begun: nothing says what its pages have to be".into())
    })?;
    let library = Library::open(&job.media)?;
    let plan = library.plan(&Point::Last, &credentials)?;
    if plan.fork != fork {
        let what = "the backups are of another database, or of another recovery fork of it";
        return Err(misuse(what.into()).into());
    }
    let mut expected = Expected::of(&library, &plan, &credentials)?;
    // What counts before the snapshot is in it, and what the log has behind it may be.
    let before = log_chain::moment(path)?.unwrap_or(Lsn::NONE);
    let snapshot = Snapshot::begin(path, job.timeout)?;
    let mut kept = KeptLog::open(path, job.timeout)?;
    if kept.behind() > plan.ends {
        return Err(misuse(format!(
            "the backups lead to LSN {}, and log backups have its commits up to LSN {}: name those too",
            plan.ends,
            kept.behind()
        ))
        .into());
    }
    let behind = kept.commits().iter().filter(|commit| commit.lsn > plan.ends);
    expected.least = behind.map(|commit| commit.pages).fold(expected.least, u32::min);
    let ends_on_it = |lsn: Lsn| kept.commits().iter().any(|commit| commit.lsn == lsn);
    if plan.ends > kept.behind() && plan.ends != kept.last() && !ends_on_it(plan.ends) {
        return Err(misuse(format!(
            "it has not the commit with LSN {}, where the backups end: it was put back to an older state, or a power cut took that \
             commit; a restore from the backups has it, a log backup of now what came in its place",
            plan.ends
        ))
        .into());
    }
    let least = least_behind(&kept);
    let own = own_versions(&kept, plan.ends);
    let (size, pages) = (snapshot.page_size() as usize, snapshot.pages());
    let mut reader = snapshot.reader()?;
    let (mut page, mut version_page) = (vec![0; size], vec![0; size]);
    let mut found = Compared { pages, covered: plan.ends, older: Vec::new(), unread: Vec::new() };
    for number in 1..=pages {
        if number % 4096 == 1 {
            progress(number - 1, pages);
        }
        if reader.read(number, &mut page).is_err() {
            found.unread.push(number);
            continue;
        }
        let own = own.get(&number).map_or(&[][..], Vec::as_slice);
        // The last one that is certainly in the snapshot, and those behind it.
        let first = own.iter().rposition(|(lsn, _)| *lsn <= before);
        let mut is_one = first.is_none() && expected.is(number, &page);
        // Cut off behind its last commit, it came back as zeros.
        let last = own.get(first.unwrap_or(0)).map(|(_, version)| version.commit as usize);
        is_one |=
            last.is_some_and(|commit| number > least[commit]) && page.iter().all(|byte| *byte == 0);
        for (_, version) in &own[first.unwrap_or(0)..] {
            if is_one {
                break;
            }
            kept.read(*version, &mut version_page)?;
            is_one = version_page == page;
        }
        if !is_one {
            found.older.push(number);
        }
    }
    progress(pages, pages);
    Ok(found)
}

/// What the commits behind `ends` made of pages, by page.
fn own_versions(kept: &KeptLog, ends: Lsn) -> HashMap<u32, Vec<(Lsn, Version)>> {
    let mut own: HashMap<u32, Vec<(Lsn, Version)>> = HashMap::new();
    for version in kept.versions() {
        let commit = kept.commits().get(version.commit as usize);
        if let Some(commit) = commit.filter(|commit| commit.lsn > ends) {
            own.entry(version.page).or_default().push((commit.lsn, *version));
        }
    }
    own
}

/// For each commit, the fewest pages that the database had behind a later one.
fn least_behind(kept: &KeptLog) -> Vec<u32> {
    let mut least = vec![u32::MAX; kept.commits().len()];
    for at in (1..least.len()).rev() {
        least[at - 1] = least[at].min(kept.commits()[at].pages);
    }
    least
}

/// What the media say of each page.
struct Expected {
    key: [u8; 32],
    hashes: Vec<u8>,
    /// The fewest pages that the database had behind a commit of the logs. Of pages behind these, SQLite may have written none since.
    least: u32,
}

impl Expected {
    fn of(library: &Library, plan: &Plan, credentials: &Credentials) -> Result<Self> {
        let believe = Believe::default();
        let about = |number: usize| move |error| library.about(number, error);
        let (media, full) = (library.media(plan.base.media), library.media(plan.full));
        let chain = Chain::open_with(media, full, plan.base.position, credentials, believe)
            .map_err(about(plan.base.media))?;
        if let Some(page) = chain.missing().first() {
            let what = format!("page {page} could not be read when it was backed up");
            return Err(library.about(
                plan.base.media,
                Error::corrupt(Subject::BackupSet(plan.base.position), what),
            ));
        }
        let (key, mut hashes) = chain.page_hashes().map_err(about(plan.base.media))?;
        // Of pages that no commit wrote behind the end that the database had, there are zeros.
        let mut least = u32::MAX;
        let zeros = page_hash(&key, &vec![0; chain.header().page_size as usize]);
        for (spot, commits) in &plan.logs {
            let media = library.media(spot.media);
            media.refuse_unsigned(spot.position, credentials).map_err(about(spot.media))?;
            media.refuse_clear(spot.position).map_err(about(spot.media))?;
            let set =
                OpenSet::open(media, spot.position, credentials).map_err(about(spot.media))?;
            let log = LogSet::open(&set).map_err(about(spot.media))?;
            let mut each = |number: u32, page: &[u8]| {
                let end = number as usize * PAGE_HASH_BYTES;
                while hashes.len() < end {
                    hashes.extend_from_slice(&zeros);
                }
                hashes[end - PAGE_HASH_BYTES..end].copy_from_slice(&page_hash(&key, page));
                Ok(())
            };
            let own = log.commits().iter().take(*commits).map(|commit| commit.pages);
            least = own.fold(least, u32::min);
            log.apply(*commits, &mut each).map_err(about(spot.media))?;
        }
        Ok(Self { key, hashes, least })
    }

    fn is(&self, number: u32, page: &[u8]) -> bool {
        let at = (number as usize - 1) * PAGE_HASH_BYTES;
        if number > self.least && page.iter().all(|byte| *byte == 0) {
            return true;
        }
        self.hashes.get(at..at + PAGE_HASH_BYTES) == Some(&page_hash(&self.key, page)[..])
    }
}

impl Compared {
    /// What is wrong, one line for each page.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.older.iter().map(|page| {
            format!("page {page} is an older state of itself: no commit of the chain of log backups made it so")
        })
    }
}

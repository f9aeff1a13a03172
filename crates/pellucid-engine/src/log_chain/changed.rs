//! The pages that commits have changed since the last full backup, so that a differential reads those and no other one.
//!
//! The archive has a list of what log sets have; the commits that none has are in the log. A list that is missing, not authentic or of
//! another full backup is none: every page is compared then.

use std::path::Path;

use pellucid::keys::ContainerKeys;
use pellucid::log_archive::{ArchiveState, ChangedPages};
use pellucid::lsn::Lsn;
use pellucid_host::DatabaseError;
use pellucid_vfs::log_archive::{Archive, Locked};

use super::{KeptLog, PATIENCE};

/// The pages that commits may have changed since the full backup whose manifest has the hash `base`. None if the chain does not say
/// it. Who has a snapshot that is older than this call knows all that its commits have changed.
///
/// # Errors
/// [`DatabaseError`]: nothing follows from that but that every page has to be compared.
pub fn changed_since(path: &Path, base: &[u8; 32]) -> Result<Option<ChangedPages>, DatabaseError> {
    Ok(changed(path)?.filter(|listed| listed.base == *base))
}

/// The same since whichever full backup the list is of.
///
/// # Errors
/// As [`changed_since`].
pub fn changed(path: &Path) -> Result<Option<ChangedPages>, DatabaseError> {
    let kept = KeptLog::open(path, PATIENCE)?;
    let listed = kept.archive.changed_pages(&kept.keys)?;
    let listed = listed.filter(|listed| goes_on(listed, &kept));
    Ok(listed.map(|mut changed| {
        add(&mut changed, &kept);
        changed
    }))
}

/// Notes in the list what a log set has.
///
/// # Errors
/// [`pellucid::Error`]. The list is behind the chain then, and counts no more.
pub(super) fn note(kept: &KeptLog, locked: &Locked<'_>) -> pellucid::Result<()> {
    let Ok(Some(mut changed)) = kept.archive.changed_pages(&kept.keys) else { return Ok(()) };
    if !goes_on(&changed, kept) {
        return locked.remove_changed_pages();
    }
    add(&mut changed, kept);
    changed.upto = changed.upto.max(kept.last);
    locked.write_changed_pages(&changed, &kept.keys)
}

/// Begins the list of a full backup: logs behind `first` are applied to it, and `set` is the hash of its manifest. `state` is that of
/// the archive before it.
///
/// # Errors
/// As [`note`].
pub(super) fn begin(
    (archive, locked): (&Archive, &Locked<'_>),
    keys: &ContainerKeys,
    state: &ArchiveState,
    (first, set): (Lsn, [u8; 32]),
) -> pellucid::Result<()> {
    let none = || ChangedPages::none(state.file_id, state.fork, set, first);
    if state.backed_up <= first {
        return locked.write_changed_pages(&none(), keys);
    }
    // A log backup was made meanwhile. What it has is in the list of before, if no other full backup has begun that anew since.
    match archive.changed_pages(keys) {
        Ok(Some(mut listed))
            if is_of(&listed, state) && listed.from <= first && listed.upto >= state.backed_up =>
        {
            listed.base = set;
            locked.write_changed_pages(&listed, keys)
        }
        _ => locked.remove_changed_pages(),
    }
}

fn is_of(listed: &ChangedPages, state: &ArchiveState) -> bool {
    (listed.file_id, listed.fork) == (state.file_id, state.fork)
}

/// Whether nothing lies between the list and the commits that no log backup has.
fn goes_on(listed: &ChangedPages, kept: &KeptLog) -> bool {
    is_of(listed, &kept.state) && listed.upto >= kept.behind
}

fn add(changed: &mut ChangedPages, kept: &KeptLog) {
    // What the full backup has is no change since.
    let from = changed.from;
    let of = |commit: u32| kept.commits.get(commit as usize).is_none_or(|one| one.lsn > from);
    let versions = kept.versions.iter().filter(|version| of(version.commit));
    versions.for_each(|version| changed.add(version.page));
    let commits = kept.commits.iter().filter(|commit| commit.lsn > from);
    changed.least = commits.map(|commit| commit.pages).fold(changed.least, u32::min);
}

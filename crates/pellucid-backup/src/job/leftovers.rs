//! Working files of backups that were stopped: a file has the name of its backup and `.pellucid-new` behind it until its set
//! is whole, and keeps that name where the process was killed.
//!
//! A stop near the end leaves files that are the backup, under this name: a set is whole as soon as one of its files has its
//! manifest. So a working file is dead only if every file of its media set lies here as a working file, and none of them has
//! a set that the file under the backup's own name lacks.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::media::MediaHeader;
use pellucid_files::paths::names_in;
use pellucid_files::regular;
use pellucid_host::folder::{name_of, Folder};
use rustix::fs::{flock, FlockOperation};

use super::targets::NEW;
use crate::restore::{Family, FamilySet, FileSource, Tail};

/// A file that was made a moment ago may be locked in the next one.
const LEAST_AGE: Duration = Duration::from_secs(1);

/// A working file that no backup writes to.
#[derive(Debug)]
pub struct Leftover {
    /// Its name.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Whether no backup is lost with it.
    pub is_dead: bool,
    /// Open and locked, so that no backup takes it up meanwhile.
    file: File,
}

impl Leftover {
    /// Removes it. It stays where somebody has given its name to another file meanwhile.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self) -> std::io::Result<()> {
        Folder::of(&self.path)?.remove(&name_of(&self.path), &self.file)
    }
}

/// Finds the working files in `directories` that backups of this account have left there. What cannot be looked at is none.
pub fn leftovers<'a>(directories: impl IntoIterator<Item = &'a Path>) -> Vec<Leftover> {
    let directories: BTreeSet<_> = directories.into_iter().collect();
    let names =
        |one: &'a Path| names_in(one).unwrap_or_default().into_iter().map(|name| one.join(name));
    let paths = directories.into_iter().flat_map(names);
    let mut found: Vec<_> = paths.filter_map(|path| left_over(&path)).collect();
    let mut here: BTreeMap<[u8; 16], BTreeSet<(u16, u8)>> = BTreeMap::new();
    for header in found.iter().filter_map(|(_, header)| header.as_ref()) {
        here.entry(header.media_set).or_default().insert((header.family, header.mirror));
    }
    for (one, header) in &mut found {
        let Some(header) = header else { continue };
        let all = usize::from(header.families) * usize::from(header.mirrors);
        one.is_dead &= here.get(&header.media_set).is_some_and(|files| files.len() == all);
    }
    // One file with a whole set keeps the others.
    let kept: BTreeSet<_> = found
        .iter()
        .filter(|(one, _)| !one.is_dead)
        .filter_map(|(_, header)| Some(header.as_ref()?.media_set))
        .collect();
    for (one, header) in &mut found {
        one.is_dead &= header.as_ref().is_none_or(|header| !kept.contains(&header.media_set));
    }
    let mut found: Vec<_> = found.into_iter().map(|(one, _)| one).collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// A working file, with its media header if it came so far.
fn left_over(path: &Path) -> Option<(Leftover, Option<MediaHeader>)> {
    let own = path.as_os_str().as_bytes().strip_suffix(NEW.as_bytes())?;
    let file = regular::open_named(path).ok()?;
    let metadata = file.metadata().ok()?;
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    let age = metadata.modified().ok()?.elapsed().ok()?;
    if !is_own || age < LEAST_AGE {
        return None;
    }
    // Where a file system has no locks a backup under way cannot be told from one that was stopped.
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let mut start = Vec::new();
    file.try_clone().ok()?.take(START_BYTES).read_to_end(&mut start).ok()?;
    let bytes = metadata.len();
    let one = |file, is_dead| Leftover { path: path.to_owned(), bytes, is_dead, file };
    if !MediaHeader::begins(&start) {
        return MediaHeader::may_begin(&start).then(|| (one(file, true), None));
    }
    let family = Family::open(Box::new(FileSource::of(file.try_clone().ok()?, path))).ok()?;
    let is_dead = matches!(family.tail, Tail::Interrupted { .. } | Tail::Clean)
        && has_all(Path::new(OsStr::from_bytes(own)), &family.sets);
    Some((one(file, is_dead), Some(family.header)))
}

/// Bytes that say whether a file is media.
const START_BYTES: u64 = 16;

/// Whether the file `own` has all of `sets`.
fn has_all(own: &Path, sets: &[FamilySet]) -> bool {
    let there = FileSource::open(own).and_then(|source| Family::open(Box::new(source)));
    let there: BTreeSet<_> =
        there.iter().flat_map(|family| &family.sets).map(|set| set.header.set).collect();
    sets.iter().all(|set| there.contains(&set.header.set))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    /// A file that was changed nine seconds ago.
    fn file(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
        dated(directory, name, bytes, SystemTime::now() - Duration::from_secs(9))
    }

    fn dated(directory: &Path, name: &str, bytes: &[u8], then: SystemTime) -> PathBuf {
        let path = directory.join(name);
        std::fs::write(&path, bytes).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(then).unwrap();
        path
    }

    #[test]
    fn only_begun_media_that_nobody_holds_are_left_over() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let names = || -> Vec<_> {
            leftovers([at]).iter().filter(|one| one.is_dead).map(|one| name_of(&one.path)).collect()
        };
        file(at, "empty.bak.pellucid-new", b"");
        file(at, "begun.bak.pellucid-new", b"Pelluc");
        // Fresh as long as this runs.
        let later = SystemTime::now() + Duration::from_secs(3600);
        dated(at, "fresh.bak.pellucid-new", b"", later);
        file(at, "text.pellucid-new", b"somebody's notes");
        file(at, "other.bak", b"");
        let held = file(at, "held.bak.pellucid-new", b"");
        let held = File::open(held).unwrap();
        flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
        std::os::unix::fs::symlink(at.join("other.bak"), at.join("link.pellucid-new")).unwrap();
        assert_eq!(names(), ["begun.bak.pellucid-new", "empty.bak.pellucid-new"]);
        for one in leftovers([at]).iter().filter(|one| one.is_dead) {
            one.remove().unwrap();
        }
        assert_eq!(names(), [""; 0]);
        assert_eq!(std::fs::read_dir(at).unwrap().count(), 5);
    }
}

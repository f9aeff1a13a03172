//! What files were when they were looked at, so that whoever keeps what they said knows whether they are the same still.
//!
//! Nothing is opened. Two changes within one step of a file system's clock look like one, so a file that has changed just now has no
//! stamp.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{lstat, FileType, Stat};

/// The longest step of a file system's times: FAT's.
pub const SETTLED: Duration = Duration::from_secs(2);

/// Device, inode, size, and the times of change in nanoseconds.
pub type Stamp = [i128; 5];

/// The stamps of a file and of those beside it that have these endings and are not empty; none if one of them has changed just now.
pub fn of_files<const N: usize>(
    path: &Path,
    endings: [&str; N],
) -> Option<(Option<Stamp>, [Option<Stamp>; N])> {
    let (place, own) = resolved(path)?;
    let stamps = endings.map(|ending| {
        let found = lstat(named(&place, ending)).ok();
        found.filter(|found| found.st_size > 0).as_ref().map(stamp)
    });
    let own = own.as_ref().map(stamp);
    are_settled(stamps.iter().chain([&own]).flatten()).then_some((own, stamps))
}

/// The stamps of a directory beside a file, which has this ending, and of what lies in it, by name; none if there is none, or if
/// something has changed just now.
pub fn of_folder(path: &Path, ending: &str) -> Option<Vec<(OsString, Stamp)>> {
    let name = named(&resolved(path)?.0, ending);
    let mut found = vec![(OsString::new(), stamp(&lstat(name.as_os_str()).ok()?))];
    for entry in std::fs::read_dir(&name).ok()? {
        let entry = entry.ok()?;
        found.push((entry.file_name(), stamp(&lstat(entry.path()).ok()?)));
    }
    found.sort();
    are_settled(found.iter().map(|(_, stamp)| stamp)).then_some(found)
}

/// The file that a symbolic link leads to, beside which SQLite has its other files.
fn resolved(path: &Path) -> Option<(Cow<'_, Path>, Option<Stat>)> {
    let own = lstat(path).ok();
    let is_link = |found: &Stat| FileType::from_raw_mode(found.st_mode) == FileType::Symlink;
    if !own.as_ref().is_some_and(is_link) {
        return Some((Cow::Borrowed(path), own));
    }
    let place = path.canonicalize().ok()?;
    let own = lstat(&place).ok();
    Some((Cow::Owned(place), own))
}

fn named(place: &Path, ending: &str) -> OsString {
    let mut name = place.as_os_str().to_owned();
    name.push(ending);
    name
}

fn stamp(found: &Stat) -> Stamp {
    let time = |seconds: i128, nanoseconds: i128| seconds * 1_000_000_000 + nanoseconds;
    [
        i128::from(found.st_dev),
        i128::from(found.st_ino),
        i128::from(found.st_size),
        time(found.st_mtime.into(), found.st_mtime_nsec.into()),
        time(found.st_ctime.into(), found.st_ctime_nsec.into()),
    ]
}

fn are_settled<'s>(mut stamps: impl Iterator<Item = &'s Stamp>) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let settled = i128::try_from(now.saturating_sub(SETTLED).as_nanos()).unwrap_or(0);
    stamps.all(|[.., modified, changed]| modified.max(changed) < &settled)
}

//! Finds plain SQLite databases that were not there before the program ran.
//!
//! A look, not a proof: the working directory and files named as arguments, no deeper.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// First bytes of a plain SQLite database.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Entries of the working directory that are looked at.
const ENTRIES_MAX: usize = 10_000;

/// The plain databases at one time, by device and inode.
#[derive(Debug)]
pub struct Seen(HashSet<(u64, u64)>);

impl Seen {
    /// Looks at the working directory and at `named`.
    pub fn now(named: &[&Path]) -> Self {
        Seen(databases(named).into_iter().map(|(id, _)| id).collect())
    }

    /// Those that have come since, sorted by name.
    pub fn newcomers(&self, named: &[&Path]) -> Vec<PathBuf> {
        let mut found = databases(named);
        found.retain(|(id, _)| !self.0.contains(id));
        found.sort_by(|one, other| one.1.cmp(&other.1));
        found.dedup_by_key(|(id, _)| *id);
        found.into_iter().map(|(_, path)| path).collect()
    }
}

fn databases(named: &[&Path]) -> Vec<((u64, u64), PathBuf)> {
    let entries = fs::read_dir(".")
        .into_iter()
        .flatten()
        .take(ENTRIES_MAX)
        .filter_map(Result::ok)
        .map(|entry| PathBuf::from(entry.file_name()));
    entries
        .chain(named.iter().map(|path| path.to_path_buf()))
        .filter_map(|path| Some((plain_database(&path)?, path)))
        .collect()
}

/// Device and inode of `path` if it is a regular file with SQLite's magic.
///
/// This process has no SQLite locks that closing a descriptor could drop.
fn plain_database(path: &Path) -> Option<(u64, u64)> {
    // Looked at before it is opened, because opening a device does something. A FIFO that has taken the name since is not
    // waited for.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let data = file.metadata().ok().filter(fs::Metadata::is_file)?;
    let mut first = [0; MAGIC.len()];
    file.read_exact(&mut first).ok()?;
    (first == *MAGIC).then(|| (data.dev(), data.ino()))
}

//! The names of a database: the paths that lead to it, as the keyring pins them.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pellucid_files::paths::OVER;

/// The paths that lead to a database.
#[derive(Debug, Default, Clone)]
pub struct Names {
    /// The path with its directory's links followed; then the paths that the caller took, where they differ.
    pub all: Vec<PathBuf>,
}

thread_local! {
    /// The name that was resolved last, and what it was resolved to: SQLite opens that next.
    static RESOLVED: RefCell<Option<(PathBuf, PathBuf)>> = const { RefCell::new(None) };
}

/// Notes that `name` leads to the path `resolved`, by symbolic links perhaps.
pub fn note_resolved(name: &Path, resolved: &Path) {
    RESOLVED.set(Some((name.to_owned(), resolved.to_owned())));
}

impl Names {
    /// The names of the file `path` that a connection opens.
    pub fn of_connection(path: &Path) -> Self {
        let mut names = Self::default();
        names.add(by_real_directory(path));
        let named = RESOLVED.take().filter(|(_, resolved)| resolved == path).map(|(name, _)| name);
        let named = named.as_deref().unwrap_or(path);
        names.add_as_taken(named);
        names.add_as_taken(path);
        names.add_of_platform(path);
        names
    }

    /// SQLite's other VFSes of the platform open its files: what is expected at a path holds whichever is named.
    fn add_of_platform(&mut self, place: &Path) {
        let Ok(rest) = place.strip_prefix(OVER) else { return };
        let name = rest.as_os_str().as_bytes();
        let at = name.iter().position(|byte| *byte == b'/').filter(|_| name.starts_with(b"unix"));
        if let Some(plain) = at.and_then(|at| name.get(at..)) {
            let plain = Self::of(Path::new(OsStr::from_bytes(plain)));
            plain.all.into_iter().for_each(|other| self.add(other));
        }
    }

    /// The names of the file at `path`, for a program that looks at it.
    pub fn of(path: &Path) -> Self {
        let mut names = Self::default();
        names.add(by_real_directory(path));
        names.add_as_taken(path);
        if let Ok(real) = path.canonicalize() {
            names.add(real);
        }
        names.add_of_platform(path);
        names
    }

    /// Adds those of `others` that lead to the file at `path` now.
    pub fn extend_by_those_of_the_same_file(
        &mut self,
        path: &Path,
        others: impl Iterator<Item = PathBuf>,
    ) {
        let Some(own) = identity_of(path) else { return };
        others.filter(|other| identity_of(other) == Some(own)).for_each(|other| self.add(other));
    }

    /// The path as the caller took it: absolute, by the directory's name in the environment where that leads to it, too.
    fn add_as_taken(&mut self, name: &Path) {
        let directory = std::env::var_os("PWD").map(PathBuf::from).filter(|_| name.is_relative());
        if let Some(directory) = directory {
            let is_here =
                directory.is_absolute() && identity_of(&directory) == identity_of(Path::new("."));
            if is_here {
                self.add_if_stable(std::path::absolute(directory.join(name)).ok());
            }
        }
        self.add_if_stable(std::path::absolute(name).ok());
    }

    /// A path below `/proc` or `/dev/fd` means another file in another process.
    fn add_if_stable(&mut self, name: Option<PathBuf>) {
        let of_a_process =
            |name: &PathBuf| name.starts_with("/proc") || name.starts_with("/dev/fd");
        if let Some(name) = name.filter(|name| !of_a_process(name)) {
            self.add(name);
        }
    }

    fn add(&mut self, name: PathBuf) {
        if !self.all.contains(&name) {
            self.all.push(name);
        }
    }
}

/// Whether `one` and `other` are there and are two files.
pub fn is_another_file(one: &Path, other: &Path) -> bool {
    match (identity_of(one), identity_of(other)) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    }
}

fn by_real_directory(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (whole.parent().and_then(|parent| parent.canonicalize().ok()), whole.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => whole,
    }
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    let identity = |found: Metadata| (found.dev(), found.ino());
    std::fs::metadata(path).ok().map(identity)
}

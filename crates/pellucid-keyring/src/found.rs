//! What a directory of the keyring holds: one damaged file does not hide the others.

use std::path::{Path, PathBuf};

use pellucid::error::{Error, Result};

/// The files of a directory.
#[derive(Debug)]
pub struct Found<T> {
    /// What could be read.
    pub whole: Vec<T>,
    /// What could not.
    pub damaged: Vec<Damaged>,
}

/// A file of the keyring that cannot be read.
#[derive(Debug)]
pub struct Damaged {
    /// Where it is; its name is the certificate's, or the database's file id.
    pub path: PathBuf,
    /// What is wrong with it.
    pub error: Error,
}

impl Damaged {
    /// Its name in its directory.
    pub fn name(&self) -> &str {
        name_of(&self.path)
    }
}

/// Each of the files `paths`, and what can be read of it; none for a file that vanished meanwhile.
pub(super) fn each<T>(
    paths: impl Iterator<Item = PathBuf>,
    read: impl Fn(&str) -> Result<Option<T>>,
) -> Vec<(PathBuf, Result<T>)> {
    paths
        .filter_map(|path| {
            let one = read(name_of(&path)).transpose()?;
            Some((path, one))
        })
        .collect()
}

/// A file's name in its directory; the names of the keyring's files are words.
pub(super) fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

impl<T> Default for Found<T> {
    fn default() -> Self {
        Self { whole: Vec::new(), damaged: Vec::new() }
    }
}

impl<T> From<Vec<(PathBuf, Result<T>)>> for Found<T> {
    fn from(each: Vec<(PathBuf, Result<T>)>) -> Self {
        let mut found = Self::default();
        for (path, one) in each {
            match one {
                Ok(one) => found.whole.push(one),
                Err(error) => found.damaged.push(Damaged { path, error }),
            }
        }
        found
    }
}

impl<T> Found<T> {
    /// All of them.
    ///
    /// # Errors
    /// What is wrong with the first that could not be read.
    pub fn all(self) -> Result<Vec<T>> {
        match self.damaged.into_iter().next() {
            Some(damaged) => Err(damaged.error),
            None => Ok(self.whole),
        }
    }
}

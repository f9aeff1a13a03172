//! Where sets are shipped to: a directory, or what has a URL in common in a store.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use pellucid::{Error, Result, Subject};
use pellucid_host::folder::{name_of, Folder};

use crate::job::{is_file, store_of};

/// Folders within each other: one for each database, in it one for each chain.
const MOST_DEPTH: usize = 3;

/// A directory, or a part of a store.
#[derive(Debug, Clone)]
pub struct Place {
    root: PathBuf,
}

impl Place {
    /// By its path or URL.
    ///
    /// # Errors
    /// [`Error::Misuse`] for what is neither, or for a URL without a store.
    pub fn of(path: &Path) -> Result<Self> {
        let text = path.to_str().map(|text| text.trim_end_matches('/'));
        let root = match (store_of(path)?, text) {
            (Some(_), Some(text)) => PathBuf::from(text),
            (None, _) if !is_file(path) || path.as_os_str().is_empty() => {
                let what = "it is neither a directory nor the URL of a store";
                return Err(Error::misuse(Subject::File(path.to_owned()), what));
            }
            _ => std::path::absolute(path).map_err(|error| io_of(path, error))?,
        };
        Ok(Self { root })
    }

    /// Its path or URL.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether it is in a store, where a set is put by one request.
    pub fn is_store(&self) -> bool {
        !is_file(&self.root)
    }

    /// What lies in it under `name`, which has no other letters than a URL may have.
    pub fn path_of(&self, name: &str) -> PathBuf {
        match self.is_store() {
            // Not `join`: a URL has one kind of slash.
            true => PathBuf::from(format!("{}/{name}", self.root.display())),
            false => self.root.join(name),
        }
    }

    /// Makes what `folder` needs. The directory itself has to be there: a disk that is not mounted has none.
    ///
    /// # Errors
    /// [`Error::Io`]; of a store also that it overwrites although it must not.
    pub fn prepare(&self, folder: &str) -> Result<()> {
        if let Some((store, url)) = store_of(&self.path_of(folder))? {
            return store.check(url).map_err(|error| io_of(&self.root, error));
        }
        let mut at = self.folder()?;
        for name in folder.split('/').map(OsStr::new) {
            match at.make_folder(name, 0o700) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(io_of(&self.path_of(folder), error))
                }
                Err(_) => {}
                Ok(()) => at.sync().map_err(|error| io_of(&self.root, error))?,
            }
            at = at.folder(name).map_err(|error| io_of(&self.path_of(folder), error))?;
        }
        Ok(())
    }

    /// The names of all that lies in it, or in a folder of it, with slashes.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn list(&self, folder: Option<&str>) -> Result<Vec<String>> {
        let path = folder.map_or_else(|| self.root.clone(), |folder| self.path_of(folder));
        let mut names = Vec::new();
        if let Some((store, url)) = store_of(&path)? {
            names = store.list(url).map_err(|error| io_of(&path, error))?;
        } else {
            let opened = Folder::of(&path.join("x"));
            match opened {
                Err(error) if error.kind() == io::ErrorKind::NotFound && folder.is_some() => {}
                opened => {
                    let opened = opened.map_err(|error| io_of(&path, error))?;
                    walk(&opened, "", 0, &mut names).map_err(|error| io_of(&path, error))?;
                }
            }
        }
        names.sort();
        Ok(names)
    }

    /// Removes one of them.
    ///
    /// # Errors
    /// [`Error::Io`]. It is no error if it is gone already.
    pub fn remove(&self, name: &str) -> Result<()> {
        let path = self.path_of(name);
        let removed = match store_of(&path)? {
            Some((store, url)) => store.remove(url),
            None => Folder::of(&path).and_then(|folder| {
                folder.remove_name(&name_of(&path))?;
                folder.sync()
            }),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_of(&path, error)),
            _ => Ok(()),
        }
    }

    fn folder(&self) -> Result<Folder> {
        Folder::of(&self.root.join("x")).map_err(|error| io_of(&self.root, error))
    }
}

/// All names in a folder and those within it.
fn walk(folder: &Folder, above: &str, depth: usize, names: &mut Vec<String>) -> io::Result<()> {
    for name in folder.names()? {
        // What is no text is nothing of the archiver's.
        let Some(text) = name.to_str() else { continue };
        let kind = match folder.look(&name) {
            Ok(found) => found.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let whole = format!("{above}{text}");
        if kind.is_file() {
            names.push(whole);
        } else if kind.is_dir() && depth < MOST_DEPTH {
            walk(&folder.folder(&name)?, &format!("{whole}/"), depth + 1, names)?;
        }
    }
    Ok(())
}

fn io_of(path: &Path, error: io::Error) -> Error {
    Error::io(Subject::File(path.to_owned()), error)
}

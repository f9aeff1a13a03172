//! Where sets are shipped to: a directory, or what has a URL in common in a store.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use pellucid::{Error, Result, Subject};
use pellucid_files::paths::look;
use pellucid_host::folder::{name_of, Folder};

use crate::job::{is_file, store_of, Content};
use crate::set::lock_media;

/// Folders within each other: one for each database, in it one for each chain.
const MOST_DEPTH: usize = 3;
/// Bytes of something small, with room for the protectors of many keys.
const MOST_SMALL_BYTES: u64 = 1 << 20;

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

    /// Whether something lies in it under `name`: one question to a store.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn has(&self, name: &str) -> Result<bool> {
        let path = self.path_of(name);
        let found = match store_of(&path)? {
            Some((store, url)) => store.exists(url),
            None => match look(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                found => found.map(|_| true),
            },
        };
        found.map_err(|error| io_of(&path, error))
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

    /// The bytes of something small there, and which content that is; none if there is none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn small(&self, name: &str) -> Result<Option<(Vec<u8>, Seen)>> {
        let path = self.path_of(name);
        let io = |error| io_of(&path, error);
        if let Some((store, url)) = store_of(&path)? {
            let found = store.content(url, MOST_SMALL_BYTES).map_err(io)?;
            return Ok(found.map(|(bytes, content)| (bytes, Seen::Object(content))));
        }
        let read = || {
            let mut bytes = Vec::new();
            let file = Folder::of(&path)?.open(&name_of(&path))?;
            file.take(MOST_SMALL_BYTES + 1).read_to_end(&mut bytes)?;
            match bytes.len() as u64 > MOST_SMALL_BYTES {
                true => Err(io::Error::new(io::ErrorKind::InvalidData, "it is too large")),
                false => Ok(bytes),
            }
        };
        match read() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(|bytes| Some((bytes.clone(), Seen::File(bytes)))).map_err(io),
        }
    }

    /// Puts something small in the place of what was seen there, or where nothing was. None if something else is there by now.
    ///
    /// # Errors
    /// [`Error::Io`], `Unsupported` where a store cannot be told that.
    pub fn replace(&self, name: &str, bytes: Vec<u8>, over: Option<&Seen>) -> Result<Option<Seen>> {
        let path = self.path_of(name);
        let replaced = match (store_of(&path)?, over) {
            (Some((store, url)), over) => {
                let over = over.map(|seen| match seen {
                    Seen::Object(content) => content.clone(),
                    Seen::File(_) => Content { tag: None, version: None },
                });
                store.replace(url, bytes, over.as_ref()).map(Seen::Object)
            }
            (None, over) => {
                let over = over.and_then(|seen| match seen {
                    Seen::File(bytes) => Some(&bytes[..]),
                    Seen::Object(_) => None,
                });
                replace_file(&path, &bytes, over).map(|()| Seen::File(bytes))
            }
        };
        match replaced {
            Ok(seen) => Ok(Some(seen)),
            Err(error) if is_conflict(&error) => Ok(None),
            Err(error) => Err(io_of(&path, error)),
        }
    }

    fn folder(&self) -> Result<Folder> {
        Folder::of(&self.root.join("x")).map_err(|error| io_of(&self.root, error))
    }
}

/// What was read or written under a name, so that nothing else is replaced.
#[derive(Debug, Clone)]
pub enum Seen {
    /// In a directory: all of it.
    File(Vec<u8>),
    /// In a store.
    Object(Content),
}

fn is_conflict(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::WouldBlock)
}

/// Gives the bytes the name of a file that has the content `over`, or one that nothing has. Two that do that at the same time lock the
/// file that there is; the one that comes second finds it without a name.
fn replace_file(path: &Path, bytes: &[u8], over: Option<&[u8]>) -> io::Result<()> {
    let (folder, name) = (Folder::of(path)?, name_of(path));
    let conflict = || io::Error::from(io::ErrorKind::AlreadyExists);
    let held = match over {
        None => None,
        Some(over) => {
            let mut file = match folder.open_to_write(&name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(conflict()),
                opened => opened?,
            };
            lock_media(&file)?;
            let mut found = Vec::new();
            Read::by_ref(&mut file).take(MOST_SMALL_BYTES + 1).read_to_end(&mut found)?;
            if found != over {
                return Err(conflict());
            }
            Some(file)
        }
    };
    let mut other = name.clone();
    other.push(".new");
    match folder.open_to_write(&other) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // What a killed process has left, or what another one is writing.
        left => {
            let left = left?;
            lock_media(&left)?;
            folder.remove(&other, &left)?;
        }
    }
    let mut file = folder.create(&other)?;
    lock_media(&file)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    match held {
        Some(_) => folder.rename(&other, &name, &file)?,
        None => folder.rename_new(&other, &name)?,
    }
    folder.sync()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_seen_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::of(directory.path()).unwrap();
        assert!(place.small("w").unwrap().is_none());
        let put = |bytes: &[u8], over: Option<&Seen>| place.replace("w", bytes.to_vec(), over);
        let first = put(b"one", None).unwrap().unwrap();
        assert!(put(b"another one", None).unwrap().is_none());
        let second = put(b"two", Some(&first)).unwrap().unwrap();
        assert!(put(b"three", Some(&first)).unwrap().is_none());
        assert_eq!(place.small("w").unwrap().unwrap().0, b"two");
        // Another process is at it.
        let held = std::fs::File::open(directory.path().join("w")).unwrap();
        lock_media(&held).unwrap();
        assert!(put(b"three", Some(&second)).unwrap().is_none());
        drop(held);
        // What a killed one has left is in nobody's way.
        std::fs::write(directory.path().join("w.new"), "half").unwrap();
        put(b"three", Some(&second)).unwrap().unwrap();
        assert_eq!(place.small("w").unwrap().unwrap().0, b"three");
        std::fs::remove_file(directory.path().join("w")).unwrap();
        assert!(put(b"four", Some(&second)).unwrap().is_none());
    }

    #[test]
    fn of_many_that_replace_one_file_at_the_same_time_one_does() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::of(directory.path()).unwrap();
        let mut seen = place.replace("w", vec![0], None).unwrap().unwrap();
        for round in 1..20u8 {
            let done: Vec<_> = std::thread::scope(|scope| {
                let each: Vec<_> = (0..4u8)
                    .map(|one| {
                        let (place, seen) = (&place, &seen);
                        scope.spawn(move || place.replace("w", vec![round, one], Some(seen)).ok())
                    })
                    .collect();
                each.into_iter().filter_map(|one| one.join().unwrap().flatten()).collect()
            });
            let [Seen::File(own)] = &done[..] else { panic!("{round}: {done:?}") };
            assert_eq!(&place.small("w").unwrap().unwrap().0, own);
            seen = Seen::File(own.clone());
        }
    }
}

//! The working files of the backups under way, so that one that is ended by a signal leaves none.
//!
//! A file whose set is whole, and which has not got its name yet, may be a backup to whoever finds it after a power cut
//! ([`super::leftovers`]). Somebody who stops a backup has said that it is none.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pellucid_host::folder::{name_of, Folder};

static UNNAMED: Mutex<Vec<Working>> = Mutex::new(Vec::new());

/// A file under its working name.
struct Working {
    folder: Folder,
    beside: PathBuf,
    file: File,
}

fn unnamed() -> MutexGuard<'static, Vec<Working>> {
    UNNAMED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a working file by `make` and notes it, with no moment between the two for a signal. One that cannot be noted stays if
/// a signal comes.
pub(super) fn add<T>(
    folder: &Folder,
    beside: &Path,
    make: impl FnOnce() -> std::io::Result<(File, T)>,
) -> std::io::Result<(File, T)> {
    let mut unnamed = unnamed();
    let made = make()?;
    if let (Ok(folder), Ok(file)) = (folder.try_clone(), made.0.try_clone()) {
        unnamed.push(Working { folder, beside: beside.to_owned(), file });
    }
    Ok(made)
}

/// Forgets these, because they are about to get their names, or are gone.
pub(super) fn forget<'a>(files: impl Iterator<Item = &'a PathBuf>) {
    let mut unnamed = unnamed();
    for beside in files {
        unnamed.retain(|working| working.beside != *beside);
    }
}

/// Removes the working files of this process, of whose backups none has a name. For a process that ends now: no backup of it
/// gets a name afterwards.
pub fn remove_working_files() {
    let unnamed = unnamed();
    for Working { folder, beside, file } in unnamed.iter() {
        let _ = folder.remove(&name_of(beside), file);
    }
    std::mem::forget(unnamed);
}

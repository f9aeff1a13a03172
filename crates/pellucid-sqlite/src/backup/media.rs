//! Media as files.

use std::path::{Path, PathBuf};

use pellucid::restore::{Family, FileSource, Media};
use pellucid::{Error, Result, Subject};

use super::store::store_of;
use super::targets::{new_name, STDIO};

/// Opens the files of a media set, mirrors among them, in any order.
///
/// A file that was written beside its old state and not renamed yet, because the machine stopped between two renames, is
/// taken where the others need it.
///
/// # Errors
/// [`Error::Io`], or what [`Media::assemble`] and [`Family::open`] say, about the file.
pub fn open_media(paths: &[PathBuf]) -> Result<Media> {
    let mut families = Vec::with_capacity(paths.len());
    for path in paths {
        families.push(open_family(path)?);
    }
    let newest = families.iter().filter_map(last_set).max();
    for (path, family) in paths.iter().zip(&mut families) {
        let beside = new_name(path);
        if last_set(family) == newest || !beside.exists() {
            continue;
        }
        // What is beside counts only if it is whole and belongs to the others.
        if let Ok(other) = open_family(&beside) {
            if last_set(&other) == newest && other.header.family == family.header.family {
                *family = other;
            }
        }
    }
    Media::assemble(families)
}

/// Opens one file of media: a file, an object by its URL, or standard input, of which a copy without a name is taken.
///
/// # Errors
/// [`Error::Io`], or what [`Family::open`] says, about the file.
pub fn open_family(path: &Path) -> Result<Family> {
    if path == Path::new(STDIO) {
        let mut input = std::io::stdin().lock();
        let source = FileSource::spooled(&mut input, &std::env::temp_dir(), path)?;
        return Family::open(Box::new(source)).map_err(|error| about(path, error));
    }
    if let Some((store, url)) = store_of(path)? {
        let source = store.open(url).map_err(|e| Error::io(Subject::File(path.to_owned()), e))?;
        return Family::open(source).map_err(|error| about(path, error));
    }
    let source = match FileSource::open(path) {
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            FileSource::open(&new_name(path)).or_else(|_| FileSource::open(path))?
        }
        opened => opened?,
    };
    Family::open(Box::new(source)).map_err(|error| about(path, error))
}

/// When the last set was begun, and which it is.
fn last_set(family: &Family) -> Option<(u64, [u8; 16])> {
    family.sets.last().map(|set| (set.header.begun, set.header.set))
}

/// The same error about a file.
pub fn about(path: &Path, error: Error) -> Error {
    let subject = || Subject::File(path.to_owned());
    match error {
        Error::Corrupt { subject: what, cause } => {
            Error::corrupt(subject(), format!("{what}: {cause}"))
        }
        Error::Unsupported { subject: what, cause } => {
            Error::unsupported(subject(), format!("{what}: {cause}"))
        }
        error => error,
    }
}

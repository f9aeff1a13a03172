//! Media as files.

use std::path::{Path, PathBuf};

use pellucid::{Error, Result, Subject};

use super::store::store_of;
use super::targets::{new_name, STDIO};
use crate::restore::{Family, FileSource, Media};

/// Opens the files of a media set, mirrors included, in any order.
///
/// If the machine stopped between two renames, a file may lie beside its old state under its
/// temporary name. It is used if the other files need it.
///
/// # Errors
/// [`Error::Io`], or what [`Media::assemble`] and [`Family::open`] say, about the file.
pub fn open_media(paths: &[PathBuf]) -> Result<Media> {
    Media::assemble(families_at(paths)?)
}

/// Like [`open_media`], to write to the media: mirrors may disagree.
///
/// # Errors
/// [`Error::Io`], or what [`Media::assemble_to_write`] and [`Family::open`] say, about the file.
pub fn open_media_to_write(paths: &[PathBuf]) -> Result<Media> {
    Media::assemble_to_write(families_at(paths)?)
}

fn families_at(paths: &[PathBuf]) -> Result<Vec<Family>> {
    let mut found: Vec<_> = paths.iter().map(|path| Found::at(path)).collect();
    if let Some(set) = under_way(&found) {
        for one in &mut found {
            let is_older = one.named.as_ref().ok().and_then(last_set) != Some(set);
            if let Some(beside) =
                one.beside.take_if(|other| is_older && last_set(other) == Some(set))
            {
                one.named = Ok(beside);
            }
        }
    }
    let of_file = |(one, path): (Found, &PathBuf)| {
        one.named.map_err(|error| match error {
            // One of several names is wrong.
            Error::WrongKind { cause, .. } => Error::wrong_kind(Subject::File(path.clone()), cause),
            error => error,
        })
    };
    found.into_iter().zip(paths).map(of_file).collect()
}

/// The forms of one file that were found.
struct Found {
    /// The file under its name, or under its temporary name if no file has its name yet.
    named: Result<Family>,
    /// The file under its temporary name. An unreadable one counts as none.
    beside: Option<Family>,
}

impl Found {
    fn at(path: &Path) -> Self {
        let named = open_family(path);
        let other = new_name(path);
        let is_other = named.as_ref().is_ok_and(|family| family.source.name() == other);
        let has_other = !is_other && pellucid_files::paths::is_there(&other);
        Self { named, beside: if has_other { open_family(&other).ok() } else { None } }
    }
}

/// Returns the set whose renames were interrupted: some files have it under their name, some beside
/// it, and together they have all of it. Dates are not used, because a clock may have been set
/// back.
fn under_way(found: &[Found]) -> Option<[u8; 16]> {
    let named = || found.iter().filter_map(|one| one.named.as_ref().ok());
    let beside = || found.iter().filter_map(|one| one.beside.as_ref());
    let has = |family: &&Family, set| last_set(family) == Some(set);
    named()
        .filter_map(|family| Some((last_set(family)?, family.header.families)))
        .filter(|(set, _)| beside().any(|family| has(&family, *set)))
        .find(|(set, families)| {
            (1..=*families).all(|number| {
                let mut of_set = named().chain(beside()).filter(|family| has(family, *set));
                of_set.any(|family| family.header.family == number)
            })
        })
        .map(|(set, _)| set)
}

/// Opens one file of media: a file, an object by its URL, or standard input, from which a copy
/// without a name is made.
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

/// Returns the id of the last set.
pub fn last_set(family: &Family) -> Option<[u8; 16]> {
    family.sets.last().map(|set| set.header.set)
}

/// Adds the file's name to an error.
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

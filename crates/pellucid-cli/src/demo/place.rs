//! The directory a demo works in.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::image::io;
use crate::output::{Failure, Id};

/// Tells a former demo from anything else.
const MARK_NAME: &str = "pellucid-demo.txt";
const MARK: &str =
    "Made by `pellucid demo`. The next demo in this directory removes everything in it.\n";

/// Makes `directory` empty: a new one, or one where a former demo was. Returns its absolute path.
///
/// # Errors
/// [`Failure`] if it holds anything else, or `keep`; nothing was removed then.
pub fn prepare(directory: &Path, keep: Option<&Path>) -> Result<PathBuf, Failure> {
    match directory.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .map_err(|error| io(directory, error))?;
        }
        Err(error) => return Err(io(directory, error)),
        Ok(_) if is_former(directory)? => {}
        Ok(_) => {
            return Err(Failure::new(
                Id::DemoDirectoryExists,
                format!("`{}` exists, and no demo made it", directory.display()),
                "name another with `--directory DIR`, or remove it",
            ))
        }
    }
    let directory = directory.canonicalize().map_err(|error| io(directory, error))?;
    if let Some(keep) = keep.filter(|keep| keep.starts_with(&directory)) {
        return Err(Failure::new(
            Id::DemoInItself,
            format!("`{}` is in the demo's own directory, which is emptied first", keep.display()),
            "copy it to another place, or name another `--directory DIR`",
        ));
    }
    empty(&directory).map_err(|error| io(&directory, error))?;
    let mark = directory.join(MARK_NAME);
    std::fs::write(&mark, MARK).map_err(|error| io(&mark, error))?;
    Ok(directory)
}

/// An empty directory will do as well: nothing is lost.
fn is_former(directory: &Path) -> Result<bool, Failure> {
    if !directory.is_dir() {
        return Ok(false);
    }
    if std::fs::read(directory.join(MARK_NAME)).is_ok_and(|mark| mark == MARK.as_bytes()) {
        return Ok(true);
    }
    let mut entries = std::fs::read_dir(directory).map_err(|error| io(directory, error))?;
    Ok(entries.next().is_none())
}

/// The mark goes last, so that what could not be finished is still known for a demo's.
fn empty(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() == MARK_NAME {
            continue;
        }
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

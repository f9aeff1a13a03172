//! The list of pages that log sets have since the last full backup, as it lies in the archive.

use std::ffi::OsStr;
use std::io::{self, Read, Write};

use pellucid::keys::ContainerKeys;
use pellucid::log_archive::{ChangedPages, CHANGED_HEAD_BYTES};
use pellucid::{Error, Result, Subject};

use super::{Archive, Locked, CHANGED};

/// A bit for each page that a database can have.
const MOST_BYTES: u64 = CHANGED_HEAD_BYTES as u64 + (1 << 29);

impl Archive {
    /// The pages that log sets have since the last full backup. None if nobody has listed them.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if the list is not authentic under a key of the database's header; [`Error::Io`].
    pub fn changed_pages(&self, keys: &ContainerKeys) -> Result<Option<ChangedPages>> {
        let path = self.path.join(CHANGED);
        let io = |error| Error::io(Subject::File(path.clone()), error);
        let file = match self.folder.open(OsStr::new(CHANGED)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(io)?,
        };
        let mut bytes = Vec::new();
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(io)?;
        let keys = keys.header_keys()?;
        ChangedPages::parse(&bytes, &keys).map(Some).map_err(|error| error.of_file(&path))
    }
}

impl Locked<'_> {
    /// Writes the list anew. It is on disk when this returns.
    ///
    /// # Errors
    /// [`Error::Io`]. The one that was there counts then.
    pub fn write_changed_pages(&self, changed: &ChangedPages, keys: &ContainerKeys) -> Result<()> {
        let io = |error| Error::io(Subject::File(self.archive.path.join(CHANGED)), error);
        let bytes = changed.encode(keys.header_key());
        self.put(CHANGED, |mut file| file.write_all(&bytes).map_err(io))
    }

    /// Removes the list: a differential compares every page then.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove_changed_pages(&self) -> Result<()> {
        match self.archive.folder.remove_name(OsStr::new(CHANGED)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.archive.io(error)),
            _ => Ok(()),
        }
    }
}

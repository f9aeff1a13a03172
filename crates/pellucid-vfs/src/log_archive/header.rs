//! The copy of the database's header in its archive: by it the log opens when the database file is gone.
//!
//! It is written before the header itself, so that no frame is under a key that it does not have.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use pellucid::header::COPY_BYTES;
use pellucid::{Error, Result, Subject};

use super::{Archive, HEADER, PATIENCE};

/// Writes the copy of the next header into the archive of the database at `database`, if another one is there.
///
/// # Errors
/// [`Error::Io`]; [`Error::LimitReached`] if somebody else has the archive locked for long.
pub fn keep_header(database: &Path, copy: &[u8; COPY_BYTES]) -> Result<()> {
    let archive = Archive::open(database)?;
    if matches!(archive.header_copy(), Ok(Some(there)) if *there == *copy) {
        return Ok(());
    }
    let io = |error| Error::io(Subject::File(archive.header_path()), error);
    let locked = archive.lock(PATIENCE)?;
    locked.put(HEADER, |mut file| file.write_all(copy).map_err(io))
}

impl Archive {
    /// The copy of the database's header, which nobody has authenticated. None if there is none.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is cut off or longer; [`Error::Io`].
    pub fn header_copy(&self) -> Result<Option<Box<[u8; COPY_BYTES]>>> {
        let io = |error| Error::io(Subject::File(self.header_path()), error);
        let file = match self.folder.open(OsStr::new(HEADER)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(io)?,
        };
        let mut copy = Vec::with_capacity(COPY_BYTES + 1);
        file.take(COPY_BYTES as u64 + 1).read_to_end(&mut copy).map_err(io)?;
        let wrong =
            |_| Error::corrupt(Subject::File(self.header_path()), "not as long as a header copy");
        Ok(Some(copy.into_boxed_slice().try_into().map_err(wrong)?))
    }

    /// Where that is.
    pub fn header_path(&self) -> PathBuf {
        self.path.join(HEADER)
    }
}

//! Named marks of commits, each in a file of its own, until a log backup has them.
//!
//! Layout: docs/format.md, "Mark". A mark is on disk before the frame with which its commit ends is written. One whose commit never
//! counted names a frame that nobody has: it is never read, and goes with the marks of its run.

use std::ffi::OsStr;
use std::io::{self, Read, Write};

use pellucid::keys::ContainerKeys;
use pellucid::log_archive::{Mark, MarkedFrame, MARK_FILE_BYTES};
use pellucid::nonce::SystemNonces;
use pellucid::wal::{Run, Stamp};
use pellucid::{Error, Result, Subject};

use super::{Archive, Locked};

impl Archive {
    /// Writes a mark for the commit that ends with `frame`, and syncs it and its name.
    ///
    /// # Errors
    /// [`Error::Io`]; nothing has the name then, or the whole mark.
    pub fn put_mark(&self, frame: &MarkedFrame, sealed: &[u8]) -> Result<()> {
        self.lock(super::PATIENCE)?.put_mark(frame, sealed)
    }

    /// The commits that have a mark here, in no order.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn marked(&self) -> Result<Vec<MarkedFrame>> {
        let names = self.folder.names().map_err(|error| self.io(error))?;
        Ok(names.iter().filter_map(|name| MarkedFrame::of_file_name(name.to_str()?)).collect())
    }

    /// The mark of the commit that ends with `frame`, as it lies here. None if there is none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sealed_mark(&self, frame: &MarkedFrame) -> Result<Option<Vec<u8>>> {
        let name = frame.file_name();
        let io = |error| Error::io(Subject::File(self.path.join(&name)), error);
        let file = match self.folder.open(OsStr::new(&name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(io)?,
        };
        let mut sealed = Vec::new();
        file.take(MARK_FILE_BYTES as u64 + 1).read_to_end(&mut sealed).map_err(io)?;
        Ok(Some(sealed))
    }

    /// Removes the mark of a commit that a log backup has, or that never counted.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove_mark(&self, frame: &MarkedFrame) -> Result<()> {
        match self.folder.remove_name(OsStr::new(&frame.file_name())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.io(error)),
            _ => Ok(()),
        }
    }
}

impl Locked<'_> {
    /// Seals the mark of the commit that ends with a frame of `run` anew under the present key. One that does not open stays as it is:
    /// a log backup says so.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn renew_mark(
        &self,
        (run, stamp): (&Run, Stamp),
        frame: u32,
        keys: &ContainerKeys,
    ) -> Result<()> {
        let marked = MarkedFrame::of(run, frame, stamp);
        let Some(sealed) = self.archive.sealed_mark(&marked)? else { return Ok(()) };
        let Ok(mark) = Mark::open(keys, (run, stamp), frame, &sealed) else { return Ok(()) };
        let sealed = mark.seal(keys, &mut SystemNonces, (run, stamp), frame)?;
        self.put_mark(&marked, &sealed)
    }

    fn put_mark(&self, frame: &MarkedFrame, sealed: &[u8]) -> Result<()> {
        let name = frame.file_name();
        let io = |error| Error::io(Subject::File(self.archive.path.join(&name)), error);
        self.put(&name, |mut file| file.write_all(sealed).map_err(io))
    }
}

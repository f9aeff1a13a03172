//! Where media are read from.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pellucid::error::{Error, Result, Subject};

/// One media family, or one mirror of it, that can be read anywhere.
pub trait MediaSource: Send + Sync {
    /// Reads what there is from byte `offset` on; less than asked for only at the end.
    ///
    /// # Errors
    /// The system's.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
    /// How many bytes there are.
    ///
    /// # Errors
    /// The system's.
    fn bytes(&self) -> io::Result<u64>;
    /// What people call it.
    fn name(&self) -> PathBuf;
    /// Whether each read is a request to another machine: then a reader does not look at each chunk only to find the end.
    fn is_far(&self) -> bool {
        false
    }
}

/// A file.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    path: PathBuf,
}

impl FileSource {
    /// Opens it.
    ///
    /// # Errors
    /// [`Error::Io`] naming it.
    pub fn open(path: &Path) -> Result<Self> {
        let file = pellucid_files::regular::open_given(path)
            .map_err(|error| Error::io(Subject::File(path.to_owned()), error))?;
        Ok(Self::of(file, path))
    }

    /// A file that is open, under a name for people.
    pub fn of(file: File, path: &Path) -> Self {
        Self { file, path: path.to_owned() }
    }

    /// Takes all of a stream, which can be read only once, into a file without a name in `directory`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn spooled(stream: &mut dyn io::Read, directory: &Path, name: &Path) -> Result<Self> {
        let mut file = crate::set::nameless(directory)?;
        io::copy(stream, &mut file)
            .map_err(|error| Error::io(Subject::File(name.to_owned()), error))?;
        Ok(Self { file, path: name.to_owned() })
    }
}

impl MediaSource for FileSource {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut read = 0;
        while read < into.len() {
            match self.file.read_at(&mut into[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(bytes) => read += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn bytes(&self) -> io::Result<u64> {
        self.file.metadata().map(|metadata| metadata.len())
    }

    fn name(&self) -> PathBuf {
        self.path.clone()
    }
}

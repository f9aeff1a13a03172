//! The store of a temporary file's sealed blocks: SQLite's own file, or one of the shim's.

use std::fs::File;
use std::os::unix::fs::FileExt;

use pellucid::{Error, Result, Subject};
use pellucid_host::code::{Code, Outcome};
use pellucid_host::ffi;

use crate::lower::{Lower, ReadEnd};

/// A store of sealed blocks.
pub trait Store {
    /// Reads units. False if the file ends before.
    ///
    /// # Errors
    /// The store's code.
    fn read_units(&self, units: &mut [u8], offset: u64) -> Outcome<bool>;
    /// Writes units.
    ///
    /// # Errors
    /// The store's code.
    fn write_units(&self, units: &[u8], offset: u64) -> Outcome<()>;
    /// Cuts the store to `size` bytes.
    ///
    /// # Errors
    /// The store's code.
    fn cut(&self, size: u64) -> Outcome<()>;
}

impl Store for Lower {
    fn read_units(&self, units: &mut [u8], offset: u64) -> Outcome<bool> {
        Ok(self.read(units, offset)? == ReadEnd::Full)
    }

    fn write_units(&self, units: &[u8], offset: u64) -> Outcome<()> {
        self.write(units, offset)
    }

    fn cut(&self, size: u64) -> Outcome<()> {
        self.truncate(size)
    }
}

/// An unlinked file of the shim's own.
#[derive(Debug)]
pub struct Scratch(File);

impl Scratch {
    /// Makes a file in the directory for temporary files and removes its name.
    ///
    /// # Errors
    /// [`Error::Io`] if that fails.
    pub fn create() -> Result<Self> {
        let directory = std::env::var_os("SQLITE_TMPDIR")
            .map(std::path::PathBuf::from)
            .unwrap_or_else(std::env::temp_dir);
        let mut random = [0; 8];
        pellucid::secret::fill_random(&mut random)?;
        let path = directory.join(format!("pellucid-{:016x}", u64::from_ne_bytes(random)));
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .and_then(|file| std::fs::remove_file(&path).map(|()| file));
        file.map(Self).map_err(|error| Error::io(Subject::File(path), error))
    }
}

impl Store for Scratch {
    fn read_units(&self, units: &mut [u8], offset: u64) -> Outcome<bool> {
        match self.0.read_exact_at(units, offset) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
            Err(_) => Err(Code(ffi::IOERR_READ)),
        }
    }

    fn write_units(&self, units: &[u8], offset: u64) -> Outcome<()> {
        self.0.write_all_at(units, offset).map_err(|error| {
            let full = error.raw_os_error() == Some(libc::ENOSPC);
            Code(if full { ffi::FULL } else { ffi::IOERR_WRITE })
        })
    }

    fn cut(&self, size: u64) -> Outcome<()> {
        self.0.set_len(size).map_err(|_| Code(ffi::IOERR))
    }
}

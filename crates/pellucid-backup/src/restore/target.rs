//! Database files that pages are restored to: plain ones and containers.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pellucid::error::{Error, Result, Subject};
use pellucid::header::{Header, COPY_OFFSETS, REGION_BYTES};
use pellucid::keys::ContainerKeys;
use pellucid::log_sector::encode_first;
use pellucid::nonce::SystemNonces;
use pellucid::sector::{SectorZero, Wear, WEAR_LOG_OFFSET, WEAR_PAGES_OFFSET};
use pellucid::sqlite::lock_page;
use pellucid::unit::{FileKind, Place, TAIL_BYTES};

use pellucid_host::folder::{name_of, Folder};

use super::pages::PageTarget;

/// A plain database file that was not there before.
#[derive(Debug)]
pub struct PlainTarget {
    file: File,
    path: PathBuf,
    page_bytes: u64,
}

/// A container that was not there before, sealed under a DEK of its own.
#[derive(Debug)]
pub struct SealedTarget {
    file: File,
    path: PathBuf,
    header: Header,
    keys: Arc<ContainerKeys>,
    /// Pages that were sealed, each as often as it was.
    sealed: AtomicU64,
}

/// Bytes of one write: the kernel caches a file in pieces as large as its writes, and each later write of a page costs more in a larger one.
const WRITE_BYTES: usize = 64 << 10;

/// The mode of a file that a restore has not given its name yet. No other file has it.
pub const UNFINISHED_MODE: u32 = 0o1600;

fn folder_of(path: &Path) -> Result<Folder> {
    Folder::of(path).map_err(|error| Error::io(Subject::File(path.to_owned()), error))
}

/// Locked, so that others know that somebody writes it.
fn create(folder: &Folder, path: &Path, mode: u32) -> Result<File> {
    use rustix::fs::{flock, FlockOperation};
    let io = |error| Error::io(Subject::File(path.to_owned()), error);
    let file = folder.create_with(&name_of(path), mode).map_err(io)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| io(error.into()))?;
    Ok(file)
}

impl PlainTarget {
    /// Makes the file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(path: &Path, page_size: u32) -> Result<Self> {
        Self::with_mode(&folder_of(path)?, path, page_size, 0o600)
    }

    /// Makes the file in `folder` with [`UNFINISHED_MODE`], which stays until somebody gives it another one.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create_unfinished(folder: &Folder, path: &Path, page_size: u32) -> Result<Self> {
        Self::with_mode(folder, path, page_size, UNFINISHED_MODE)
    }

    fn with_mode(folder: &Folder, path: &Path, page_size: u32, mode: u32) -> Result<Self> {
        let (file, path) = (create(folder, path, mode)?, path.to_owned());
        Ok(Self { file, path, page_bytes: u64::from(page_size) })
    }

    /// The file: its name may be another one's by the time that it is finished.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Cuts it to `pages` pages and forces it to disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(self, pages: u32) -> Result<()> {
        self.file
            .set_len(u64::from(pages) * self.page_bytes)
            .and_then(|()| self.file.sync_all())
            .map_err(|error| Error::io(Subject::File(self.path.clone()), error))
    }
}

impl PageTarget for PlainTarget {
    fn write(&self, first: u32, pages: &[u8]) -> Result<()> {
        self.file
            .write_all_at(pages, (u64::from(first) - 1) * self.page_bytes)
            .map_err(|error| Error::io(Subject::File(self.path.clone()), error))
    }
}

impl SealedTarget {
    /// Makes the file; its header is written when all pages are.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(path: &Path, header: Header, keys: Arc<ContainerKeys>) -> Result<Self> {
        let file = create(&folder_of(path)?, path, 0o600)?;
        Ok(Self { file, path: path.to_owned(), header, keys, sealed: AtomicU64::new(0) })
    }

    /// Makes the file in `folder` with [`UNFINISHED_MODE`], which stays until somebody gives it another one.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create_unfinished(
        folder: &Folder,
        path: &Path,
        header: Header,
        keys: Arc<ContainerKeys>,
    ) -> Result<Self> {
        let file = create(folder, path, UNFINISHED_MODE)?;
        Ok(Self { file, path: path.to_owned(), header, keys, sealed: AtomicU64::new(0) })
    }

    /// The file: its name may be another one's by the time that it is finished.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Cuts it to `pages` pages, writes wear, header and sector 0, and forces it to disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(self, pages: u32) -> Result<()> {
        let io = |error| Error::io(Subject::File(self.path.clone()), error);
        let page_bytes = u64::from(self.header.page_size);
        self.file.set_len(REGION_BYTES + u64::from(pages) * page_bytes).map_err(io)?;
        let key = self.keys.header_key();
        let wear = |reserved| Wear { generation: self.header.generation, reserved };
        let sealed = self.sealed.into_inner().max(u64::from(pages) * 2);
        let pages = wear(sealed).encode(key, WEAR_PAGES_OFFSET);
        self.file.write_all_at(&pages, WEAR_PAGES_OFFSET).map_err(io)?;
        let log = encode_first(&self.header, wear(0), key);
        self.file.write_all_at(&log, WEAR_LOG_OFFSET).map_err(io)?;
        let copy = self.header.encode(key)?;
        for offset in COPY_OFFSETS {
            self.file.write_all_at(&copy[..], offset).map_err(io)?;
        }
        self.file.sync_all().map_err(io)?;
        let sector = SectorZero::Sealed { file_id: self.header.file_id };
        self.file.write_all_at(&sector.encode(self.header.page_size), 0).map_err(io)?;
        self.file.sync_all().map_err(io)
    }
}

impl PageTarget for SealedTarget {
    fn write(&self, first: u32, pages: &[u8]) -> Result<()> {
        let io = |error| Error::io(Subject::File(self.path.clone()), error);
        let page_bytes = self.header.page_size as usize;
        let mut units = vec![0; pages.len()];
        self.sealed.fetch_add((pages.len() / page_bytes) as u64, Ordering::Relaxed);
        let places = (first..).zip(pages.chunks_exact(page_bytes));
        for ((number, page), unit) in places.zip(units.chunks_exact_mut(page_bytes)) {
            if number == lock_page(page_bytes) {
                continue;
            }
            let (content, tail) = page.split_at(page_bytes - TAIL_BYTES);
            if tail.iter().any(|byte| *byte != 0) {
                return Err(Error::misuse(
                    Subject::Page(number),
                    "it has no room for a tag: the database was not an encrypted one",
                ));
            }
            let place = Place::page(self.keys.file_id(), number);
            self.keys.seal(FileKind::Database, &place, &mut SystemNonces, content, unit)?;
        }
        let offset = REGION_BYTES + (u64::from(first) - 1) * page_bytes as u64;
        let pieces =
            (0..).map(|at| offset + at * WRITE_BYTES as u64).zip(units.chunks(WRITE_BYTES));
        pieces.into_iter().try_for_each(|(at, piece)| self.file.write_all_at(piece, at)).map_err(io)
    }
}

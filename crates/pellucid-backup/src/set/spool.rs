//! Pages set aside, sealed, so that a database need not be held while they are compressed.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{channel, sync_channel};
use std::thread::Builder;

use pellucid::cipher::{Cipher, TAG_BYTES};
use pellucid::error::{Error, Result, Subject};
use pellucid::media::CHUNK_BYTES;
use pellucid::secret::Secret32;
use pellucid::Algorithm;
use pellucid_host::folder::{name_of, Folder};

use super::PageSource;

/// So many blocks may be read that are not stored yet.
const BLOCKS_AHEAD: usize = 2;

/// A nameless file of sealed pages under a key that exists only in memory.
#[derive(Debug)]
pub struct Spool {
    file: File,
    cipher: Cipher,
    page_size: usize,
    of_block: u32,
    pages: u32,
    block: Vec<u8>,
    /// The block that is in `block`.
    loaded: Option<u32>,
    /// Pages that could not be read.
    missing: BTreeMap<u32, Error>,
}

impl Spool {
    /// Copies all pages of `source` into a nameless file in `directory`. With `continue_after_error` a page that cannot be
    /// read is none when it is asked for, with the same error.
    ///
    /// The database is held meanwhile: so this thread reads, and another one seals and writes what was read.
    ///
    /// # Errors
    /// What the source says, or [`Error::Io`] naming the directory.
    pub fn fill(
        source: &mut dyn PageSource,
        page_size: u32,
        pages: u32,
        directory: &Path,
        continue_after_error: bool,
        progress: &mut dyn FnMut(u32),
    ) -> Result<Self> {
        let page_bytes = page_size as usize;
        let mut spool = Self {
            file: nameless(directory)?,
            cipher: Cipher::new(Algorithm::Aes256, Secret32::random()?.expose())?,
            page_size: page_bytes,
            of_block: (CHUNK_BYTES / page_bytes).max(1) as u32,
            pages,
            block: Vec::new(),
            loaded: None,
            missing: BTreeMap::new(),
        };
        let mut missing = BTreeMap::new();
        let io = |error| Error::io(Subject::File(directory.to_owned()), error);
        std::thread::scope(|scope| {
            let (read, to_store) = sync_channel::<(u32, Vec<u8>)>(BLOCKS_AHEAD);
            let (stored, to_fill) = channel();
            for _ in 0..=BLOCKS_AHEAD {
                // The other end is here.
                let _ = stored.send(Vec::new());
            }
            let (spool, io) = (&spool, &io);
            let store = move || {
                for (block, mut content) in to_store {
                    let tag = spool.cipher.seal_in_place(&nonce(block), &[], &mut content)?;
                    content.extend_from_slice(&tag);
                    spool.file.write_all_at(&content, spool.offset(block)).map_err(io)?;
                    if stored.send(content).is_err() {
                        break;
                    }
                }
                Ok(())
            };
            let storing = Builder::new().name("spool".into()).spawn_scoped(scope, store);
            let no_thread = |error| Error::io(Subject::Option("thread".into()), error);
            let storing = storing.map_err(no_thread)?;
            let mut all = || {
                for block in 0..pages.div_ceil(spool.of_block) {
                    // Who stores has ended: it says why.
                    let Ok(mut content) = to_fill.recv() else { break };
                    let (first, count) = (block * spool.of_block + 1, spool.pages_of(block));
                    content.resize(count * page_bytes, 0);
                    if let Err(error) = source.read(first, &mut content) {
                        if !continue_after_error {
                            return Err(error);
                        }
                        for (number, page) in (first..).zip(content.chunks_exact_mut(page_bytes)) {
                            if let Err(error) = source.read(number, page) {
                                page.fill(0);
                                missing.insert(number, error);
                            }
                        }
                    }
                    if read.send((block, content)).is_err() {
                        break;
                    }
                    progress(first + count as u32 - 1);
                }
                Ok(())
            };
            let filled = all();
            drop(read);
            let ended = || io(std::io::Error::other("the thread that writes the spool has ended"));
            let stored = storing.join().unwrap_or_else(|_| Err(ended()));
            filled.and(stored)
        })?;
        spool.missing = missing;
        Ok(spool)
    }

    fn pages_of(&self, block: u32) -> usize {
        self.of_block.min(self.pages - block * self.of_block) as usize
    }

    fn offset(&self, block: u32) -> u64 {
        u64::from(block) * (self.of_block as usize * self.page_size + TAG_BYTES) as u64
    }

    fn load(&mut self, block: u32) -> Result<()> {
        if self.loaded == Some(block) {
            return Ok(());
        }
        self.loaded = None;
        let content = self.pages_of(block) * self.page_size;
        self.block.resize(content + TAG_BYTES, 0);
        let offset = self.offset(block);
        self.file
            .read_exact_at(&mut self.block, offset)
            .map_err(|error| Error::io(Subject::TempBlock(u64::from(block)), error))?;
        let unauthentic = || {
            Error::unauthentic(
                Subject::TempBlock(u64::from(block)),
                "authentication tag does not match",
            )
        };
        let tag = *self.block.last_chunk::<TAG_BYTES>().ok_or_else(unauthentic)?;
        self.block.truncate(content);
        self.cipher
            .open_in_place(&nonce(block), &[], &mut self.block, &tag)
            .map_err(|_| unauthentic())?;
        self.loaded = Some(block);
        Ok(())
    }
}

impl PageSource for Spool {
    fn read(&mut self, first: u32, into: &mut [u8]) -> Result<()> {
        for (number, page) in (first - 1..).zip(into.chunks_exact_mut(self.page_size)) {
            if let Some(error) = self.missing.get(&(number + 1)) {
                return Err(again(number + 1, error));
            }
            self.load(number / self.of_block)?;
            let at = (number % self.of_block) as usize * self.page_size;
            page.copy_from_slice(&self.block[at..at + self.page_size]);
        }
        Ok(())
    }
}

/// The key is used for this file alone, and for each block once.
fn nonce(block: u32) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[8..].copy_from_slice(&block.to_be_bytes());
    nonce
}

/// A file in `directory` that is gone when it is closed, whatever happens.
///
/// # Errors
/// [`Error::Io`] naming the directory.
pub fn nameless(directory: &Path) -> Result<File> {
    use pellucid_files::open_at::open_at;
    use rustix::fs::{Mode, OFlags, CWD};
    let io = |error: std::io::Error| Error::io(Subject::File(directory.to_owned()), error);
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match open_at(CWD, directory, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(file.into()),
        // A file system without nameless files: one that loses its name at once.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => {
            let mut random = [0; 8];
            pellucid::secret::fill_random(&mut random)?;
            let name = format!(".pellucid-spool-{:016x}", u64::from_ne_bytes(random));
            let path = directory.join(name);
            private(&path).map_err(io)
        }
        Err(error) => Err(io(error.into())),
    }
}

/// A file that only its owner may read, whatever the umask is, and that loses its name at once.
fn private(path: &Path) -> std::io::Result<File> {
    let (folder, name) = (Folder::of(path)?, name_of(path));
    let file = folder.create(&name)?;
    folder.remove(&name, &file)?;
    Ok(file)
}

/// The same error once more.
fn again(number: u32, error: &Error) -> Error {
    match error {
        Error::Corrupt { subject, cause } => Error::corrupt(subject.clone(), cause.clone()),
        Error::Unauthentic { subject, cause } => Error::unauthentic(subject.clone(), cause.clone()),
        Error::Unsupported { subject, cause } => Error::unsupported(subject.clone(), cause.clone()),
        error => Error::corrupt(Subject::Page(number), error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Count(usize);

    impl PageSource for Count {
        fn read(&mut self, first: u32, into: &mut [u8]) -> Result<()> {
            for (number, page) in (first..).zip(into.chunks_exact_mut(self.0)) {
                page.fill(number as u8);
            }
            Ok(())
        }
    }

    /// Page 300 is damaged.
    struct Holed;

    impl PageSource for Holed {
        fn read(&mut self, first: u32, into: &mut [u8]) -> Result<()> {
            match (first..first + (into.len() / 4096) as u32).contains(&300) {
                true => Err(Error::unauthentic(Subject::Page(300), "damaged for the test")),
                false => Count(4096).read(first, into),
            }
        }
    }

    #[test]
    fn a_page_that_cannot_be_read_ends_it_or_is_told_each_time_it_is_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let fill = |go_on| Spool::fill(&mut Holed, 4096, 600, directory.path(), go_on, &mut |_| ());
        assert!(matches!(fill(false), Err(Error::Unauthentic { .. })));
        let mut spool = fill(true).unwrap();
        let mut page = vec![0; 4096];
        for _ in 0..2 {
            let told = spool.read(300, &mut page).unwrap_err();
            assert!(matches!(told, Error::Unauthentic { subject: Subject::Page(300), .. }));
        }
        assert!(spool.read(257, &mut vec![0; 256 * 4096]).is_err(), "with others");
        spool.read(301, &mut page).unwrap();
        assert_eq!(page, vec![301u32 as u8; 4096]);
    }

    #[test]
    fn a_spool_where_files_need_names_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let file = private(&directory.path().join("spool")).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn it_gives_the_pages_back_in_any_order_and_keeps_none_in_clear() {
        let directory = tempfile::tempdir().unwrap();
        let mut spool =
            Spool::fill(&mut Count(4096), 4096, 600, directory.path(), false, &mut |_| ()).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "it has no name");
        let mut pages = vec![0; 3 * 4096];
        for first in [1, 598, 255, 256, 2] {
            spool.read(first, &mut pages).unwrap();
            for (number, page) in (first..).zip(pages.chunks_exact(4096)) {
                assert!(page.iter().all(|byte| *byte == number as u8), "page {number}");
            }
        }
        let mut stored = vec![0; 4096];
        spool.file.read_exact_at(&mut stored, 0).unwrap();
        assert!(stored.iter().any(|byte| *byte != stored[0]));
    }
}

//! The places of pages in the file, and which pages an older key sealed.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::header::{Header, REGION_BYTES};
use pellucid::sqlite::lock_page;
use pellucid::{journal, unit, Error, Result, Subject};
use pellucid_host::code::Outcome;
use pellucid_host::folder::{name_of, Folder};
use pellucid_vfs::container::Container;
use pellucid_vfs::open_file::OpenFile;
use pellucid_vfs::CALL_BYTES;

/// Reads of page 1 before it counts as unreadable: in WAL mode a checkpoint may write it meanwhile.
const FIRST_PAGE_ATTEMPTS: usize = 16;
const PAUSE: Duration = Duration::from_millis(2);

/// The number of pages that the file has room for. The last one may be there in part.
pub fn in_file(lower: OpenFile<'_>, header: &Header) -> Outcome<u64> {
    let bytes = lower.size()?.saturating_sub(REGION_BYTES);
    Ok(bytes.div_ceil(u64::from(header.page_size)))
}

/// A stretch of pages as they lie on disk.
#[derive(Debug, Default)]
pub struct Stretch {
    units: Vec<u8>,
}

impl Stretch {
    /// Reads pages from `first` to `last`, at most as many as one call takes. Returns those that
    /// are not under the current DEK, and how many were read.
    pub fn older(
        &mut self,
        lower: OpenFile<'_>,
        header: &Header,
        first: u64,
        last: u64,
    ) -> Outcome<(Vec<u32>, u64)> {
        let page_bytes = header.page_size as usize;
        let count = ((CALL_BYTES / page_bytes).max(1) as u64).min(last + 1 - first);
        self.units.resize(count as usize * page_bytes, 0);
        lower.read(&mut self.units, REGION_BYTES + (first - 1) * page_bytes as u64)?;
        let mut older = Vec::new();
        for (number, page) in (first..).zip(self.units.chunks_exact(page_bytes)) {
            let current = unit::generation(page).is_some_and(|g| header.is_current(g));
            if !current && number != u64::from(lock_page(header.page_size as usize)) {
                older.push(number as u32);
            }
        }
        Ok((older, count))
    }
}

/// Cuts off what lies behind page `pages`. The caller holds the locks that keep every other
/// connection from the file.
pub fn cut(lower: OpenFile<'_>, container: &Container, pages: u64) -> Outcome<()> {
    let Some(page_bytes) = container.page_size() else { return Ok(()) };
    let end = REGION_BYTES + pages * page_bytes as u64;
    if pages == 0 || lower.size()? <= end {
        return Ok(());
    }
    lower.truncate(end)?;
    lower.sync(pellucid_host::ffi::SYNC_NORMAL)
}

/// The number of pages that the file of a database in WAL mode has without its log. 0 if the log is
/// empty, because then the count does not matter; `None` if it cannot be found. The caller holds
/// the write lock.
///
/// Readers of an earlier state need no more pages either: a checkpoint brings no page 1 to the file
/// that is newer than theirs, and pages that a later commit added are in the log.
pub fn without_log(lower: OpenFile<'_>, container: &Container) -> Outcome<Option<u64>> {
    let mut log = container.path().as_os_str().to_owned();
    log.push("-wal");
    match pellucid_files::paths::look(Path::new(&log)) {
        Ok(found) if found.len() == 0 => return Ok(Some(0)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Some(0)),
        _ => {}
    }
    let Some(page_bytes) = container.page_size() else { return Ok(None) };
    let mut unit = vec![0; page_bytes];
    let mut first = vec![0; page_bytes - unit::TAIL_BYTES];
    for _ in 0..FIRST_PAGE_ATTEMPTS {
        lower.read(&mut unit, REGION_BYTES)?;
        if container.try_open_page(1, &unit, &mut first).is_ok() {
            let word = |at: usize| first.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            let number = |at| word(at).map_or(0, u32::from_be_bytes);
            // The size is valid with this change counter (SQLite file format, 1.3.8).
            return Ok((number(24) == number(92)).then(|| number(28).into()));
        }
        // A checkpoint is writing page 1.
        std::thread::sleep(PAUSE);
    }
    Ok(None)
}

/// Removes an ended journal, for which a database in WAL mode has no use.
pub fn remove_ended_journal(path: &Path) -> Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push("-journal");
    let name = PathBuf::from(name);
    let failed = |error| Error::io(Subject::File(name.clone()), error);
    let mut first = [0; journal::SECTOR_PART_BYTES];
    let folder = Folder::of(&name).map_err(failed)?;
    let read = folder.open(&name_of(&name)).and_then(|mut file| Ok((file.read(&mut first)?, file)));
    match read {
        Ok((_, file)) if first.iter().all(|byte| *byte == 0) => {
            folder.remove(&name_of(&name), &file).map_err(failed)
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

//! Authenticates every page of the file. Several threads read it in large pieces.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pellucid::header::REGION_BYTES;
use pellucid::sqlite::lock_page;
use pellucid::unit::TAIL_BYTES;
use pellucid_host::code::Code;
use pellucid_host::connection::{uri, Handle};
use pellucid_host::ffi;
use pellucid_host::DatabaseError;
use pellucid_vfs::container::Container;
use pellucid_vfs::open_file::OpenFile;
use pellucid_vfs::opened;
use pellucid_vfs::truncated_page;
use pellucid_vfs::ReadEnd;

use super::{io, Audit, DamagedPage, Doing, Watch};
use crate::units::catch_up;

/// Bytes that a thread takes at once. Its reads are as large as the lower VFS allows.
const PIECE_BYTES: u64 = 1 << 20;
/// Reads of a page that did not open before it counts as damaged, and the pause between them, in
/// which another process can finish a write.
const ATTEMPTS: usize = 4;
const PAUSE: Duration = Duration::from_millis(5);
/// The interval of the progress callback.
const TOLD_EVERY: Duration = Duration::from_millis(5);
/// The most threads.
const CORES_MOST: usize = 64;

/// A page that did not open at first, and why.
pub type Suspects = Vec<(u32, String)>;

/// The state that the threads share.
struct Work {
    page_bytes: usize,
    pages: u64,
    /// The next page that no thread has taken.
    next: AtomicU64,
    done: AtomicU64,
    suspects: Mutex<Suspects>,
    failed: Mutex<Option<DatabaseError>>,
}

/// Reads the file once. Each thread has a connection of its own, because a file object serves one
/// thread at a time. The connection has read nothing through SQLite, so that no mapping is used,
/// which another program could cut.
pub fn read(
    path: &Path,
    lower: OpenFile<'_>,
    container: &Container,
    cores: usize,
    audit: &mut Audit,
    watch: &mut Watch<'_>,
) -> Result<Suspects, DatabaseError> {
    let page_bytes = container.page_size().unwrap_or(4096);
    let size = lower.size().map_err(io)?.saturating_sub(REGION_BYTES);
    let work = Work {
        page_bytes,
        pages: size.div_ceil(page_bytes as u64),
        next: AtomicU64::new(1),
        done: AtomicU64::new(0),
        suspects: Mutex::default(),
        failed: Mutex::default(),
    };
    let bytes = work.pages * page_bytes as u64;
    std::thread::scope(|scope| {
        let go = || {
            if let Err(error) = work.go(path) {
                let mut failed = work.failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert(error);
            }
        };
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, go).ok();
        let threads: Vec<_> = (0..cores.clamp(1, CORES_MOST)).map_while(start).collect();
        if threads.is_empty() {
            // The system starts no thread, so this one does all the work and reports no progress.
            go();
        }
        let mut pause = Duration::from_micros(200);
        while !threads.iter().all(|thread| thread.is_finished()) {
            watch(Doing::Authenticating, work.done.load(Ordering::Relaxed), bytes);
            std::thread::sleep(pause);
            pause = (pause * 2).min(TOLD_EVERY);
        }
    });
    if let Some(error) = work.failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    audit.pages = work.pages;
    audit.page_bytes = page_bytes as u64;
    let mut suspects = work.suspects.into_inner().unwrap_or_else(PoisonError::into_inner);
    suspects.sort_unstable();
    Ok(suspects)
}

impl Work {
    fn go(&self, path: &Path) -> Result<(), DatabaseError> {
        let handle =
            Handle::open(path, &uri(path, "vfs=pellucid&require=container"), ffi::OPEN_READONLY)?;
        let found = opened::sealed(&handle)?;
        let (lower, container) = found.ok_or_else(|| io(Code(ffi::IOERR)))?;
        let each = (PIECE_BYTES / self.page_bytes as u64).max(1);
        let mut piece = vec![0; each as usize * self.page_bytes];
        let mut content = vec![0; self.page_bytes - TAIL_BYTES];
        loop {
            let first = self.next.fetch_add(each, Ordering::Relaxed);
            if first > self.pages {
                return Ok(());
            }
            let count = each.min(self.pages + 1 - first) as usize;
            let units = &mut piece[..count * self.page_bytes];
            let at = REGION_BYTES + (first - 1) * self.page_bytes as u64;
            // A disk that cannot read a part of the piece may still read the rest.
            let read = lower.read(units, at);
            for (index, unit) in units.chunks_exact_mut(self.page_bytes).enumerate() {
                let number = first as u32 + index as u32;
                let opened = match read {
                    Ok(_) => open(&container, number, unit, &mut content),
                    Err(_) => look(lower, &container, number, unit, &mut content),
                };
                if let Err(cause) = opened {
                    let mut suspects = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
                    suspects.push((number, cause));
                }
            }
            self.done.fetch_add(units.len() as u64, Ordering::Relaxed);
        }
    }
}

fn open(container: &Container, number: u32, unit: &[u8], content: &mut [u8]) -> Result<(), String> {
    if number == lock_page(unit.len()) {
        return Ok(());
    }
    catch_up(container, unit);
    container.try_open_page(number, unit, content).map_err(|error| error.to_string())
}

/// Reads and opens a single page.
fn look(
    lower: OpenFile<'_>,
    container: &Container,
    number: u32,
    unit: &mut [u8],
    content: &mut [u8],
) -> Result<(), String> {
    let page_bytes = unit.len();
    let start = REGION_BYTES + u64::from(number - 1) * page_bytes as u64;
    let unread = |Code(code)| format!("page {number}: cannot be read (SQLite code {code})");
    if lower.read(unit, start).map_err(unread)? == ReadEnd::Short {
        let there = lower.size().map_err(unread)?.saturating_sub(start);
        return match there {
            // The file was cut meanwhile, so this page does not exist any more.
            0 => Ok(()),
            there if there < page_bytes as u64 => {
                Err(truncated_page(number, there, page_bytes).to_string())
            }
            _ => Err(format!("page {number}: it is being written")),
        };
    }
    open(container, number, unit, content)
}

/// Reads the suspect pages again, under a read transaction. If none can be begun, no other
/// connection reads either.
pub fn confirm(
    handle: &Handle<'_>,
    lower: OpenFile<'_>,
    container: &Container,
    in_transaction: bool,
    mut suspects: Suspects,
    audit: &mut Audit,
) -> Result<(), DatabaseError> {
    let page_bytes = container.page_size().unwrap_or(4096);
    let mut unit = vec![0; page_bytes];
    let mut content = vec![0; page_bytes - TAIL_BYTES];
    // A checkpoint may cut the file, and a read behind the end of a mapping is a SIGBUS.
    lower.drop_mapping();
    for attempt in 0..ATTEMPTS {
        if suspects.is_empty() {
            return Ok(());
        }
        if attempt > 0 {
            std::thread::sleep(PAUSE);
        }
        let again = |(number, _): (u32, String)| {
            let opened = look(lower, container, number, &mut unit, &mut content);
            opened.err().map(|cause| (number, cause))
        };
        suspects = suspects.into_iter().filter_map(again).collect();
    }
    for (page, cause) in suspects {
        if !(in_transaction && log_has(handle, page)) {
            audit.damaged_pages.push(DamagedPage { page, cause, owner: None });
        }
    }
    Ok(())
}

/// Whether SQLite can read the page. An interrupted checkpoint leaves a torn page, and the log has
/// it whole.
fn log_has(handle: &Handle<'_>, page: u32) -> bool {
    let mut found = false;
    let sql = format!("SELECT data FROM sqlite_dbpage WHERE pgno = {page}");
    handle.rows(&sql, |_| found = true).is_ok() && found
}

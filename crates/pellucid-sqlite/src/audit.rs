//! Authenticates every page of a sealed database and of its WAL, then runs SQLite's own check.
//!
//! A read transaction is held meanwhile, so the file is one state; in WAL mode a checkpoint of
//! another process may rewrite pages under way, therefore a page is read again before it counts as
//! damaged.

mod owners;

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::path::Path;

use pellucid::header::REGION_BYTES;
use pellucid::unit::TAIL_BYTES;
use pellucid::wal::{open_frame, WalHeader, FRAME_HEADER_BYTES, HEADER_BYTES};

use crate::convert::connection::{uri, Handle};
use crate::convert::ConvertError;
use crate::database::truncated;
use crate::ffi;
use crate::file::{lower_of_open, wal_of_open};
use crate::link::Link;
use crate::lower::{Lower, ReadEnd, CALL_BYTES};

const ATTEMPTS: usize = 5;
const PENDING_BYTE: u64 = 0x4000_0000;

/// What was found.
#[derive(Debug, Default)]
pub struct Audit {
    /// Pages authenticated.
    pub pages: u64,
    /// Frames authenticated.
    pub frames: u64,
    /// Damaged pages: number, cause, and what they belong to if that can be told.
    pub damaged_pages: Vec<(u32, String, Option<String>)>,
    /// Damaged frames: number and cause.
    pub damaged_frames: Vec<(u32, String)>,
    /// What SQLite's check found; empty if it was left out or all is well.
    pub integrity: Vec<String>,
}

impl Audit {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.damaged_pages.is_empty() && self.damaged_frames.is_empty() && self.integrity.is_empty()
    }
}

/// Checks the sealed database at `path`; `progress` is told pages done and pages in all.
///
/// # Errors
/// [`ConvertError`] if it cannot be opened at all.
pub fn audit(
    path: &Path,
    physical_only: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Audit, ConvertError> {
    let (handle, began) = begin(path)?;
    let mut audit = Audit::default();
    let sealed = handle.file()?;
    // SAFETY: the file object of an open connection, used before that closes.
    let (lower, link) = unsafe { lower_of_open(sealed) }.ok_or_else(|| {
        pellucid::Error::misuse(
            pellucid::Subject::File(path.to_owned()),
            "not an encrypted database",
        )
    })?;
    check_pages(lower, &link, &mut audit, progress)?;
    // SAFETY: as above.
    if let Some(wal) = unsafe { wal_of_open(sealed) } {
        check_frames(lower, wal, &link, &mut audit)?;
    }
    owners::name(lower, &link, &mut audit);
    if physical_only {
        return Ok(audit);
    }
    if let Err(error) = began {
        audit.integrity.push(error.to_string());
        return Ok(audit);
    }
    let mut found = Vec::new();
    match handle.rows("PRAGMA integrity_check", |row| found.push(row.text(0))) {
        Ok(()) => audit.integrity.extend(found.into_iter().filter(|line| line != "ok")),
        Err(error) => audit.integrity.push(error.to_string()),
    }
    Ok(audit)
}

type Outcome = Result<(), ConvertError>;

/// A connection in a read transaction. The schema may be unreadable; its damage is found later, page by page.
///
/// A transaction that was interrupted is rolled back first, as by any program that opens the database.
fn begin(path: &Path) -> Result<(Handle<'static>, Outcome), ConvertError> {
    let open = |flags| -> Result<(Handle<'static>, Outcome), ConvertError> {
        let handle = Handle::open(path, &uri(path, "vfs=pellucid"), flags)?;
        handle.busy_timeout(10_000);
        let began = handle.run("BEGIN").and_then(|()| handle.run("SELECT 1 FROM sqlite_schema"));
        Ok((handle, began))
    };
    let interrupted = |began: &Outcome| matches!(began, Err(ConvertError::Sqlite { code, .. }) if code & 0xff == ffi::READONLY);
    let (handle, began) = open(ffi::OPEN_READONLY)?;
    if !interrupted(&began) {
        return Ok((handle, began));
    }
    drop(handle);
    let (handle, began) = open(ffi::OPEN_READWRITE)?;
    if interrupted(&began) {
        return Err(began.err().unwrap_or_else(|| io(crate::code::Code(ffi::READONLY))));
    }
    Ok((handle, began))
}

fn io(code: crate::code::Code) -> ConvertError {
    ConvertError::Sqlite { file: String::new(), code: code.0, message: "cannot be read".to_owned() }
}

fn check_pages(
    lower: Lower,
    link: &Link,
    audit: &mut Audit,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), ConvertError> {
    let page_bytes = link.page_size().unwrap_or(4096);
    let size = lower.size().map_err(io)?.saturating_sub(REGION_BYTES);
    let pages = size.div_ceil(page_bytes as u64);
    let lock_page = PENDING_BYTE / page_bytes as u64 + 1;
    let batch = (CALL_BYTES / page_bytes).max(1);
    let mut units = vec![0; batch * page_bytes];
    let mut content = vec![0; page_bytes - TAIL_BYTES];
    let mut next = 1;
    while next <= pages {
        let count = batch.min((pages - next + 1) as usize);
        let units = &mut units[..count * page_bytes];
        lower.read(units, REGION_BYTES + (next - 1) * page_bytes as u64).map_err(io)?;
        for (index, unit) in units.chunks_exact_mut(page_bytes).enumerate() {
            let number = next as u32 + index as u32;
            let there = size - u64::from(number - 1) * page_bytes as u64;
            if there < page_bytes as u64 {
                let cut = truncated(number, there, page_bytes);
                audit.damaged_pages.push((number, cut.to_string(), None));
            } else if u64::from(number) != lock_page {
                check_page(lower, link, number, unit, &mut content, audit)?;
            }
        }
        next += count as u64;
        audit.pages = next - 1;
        progress(audit.pages, pages);
    }
    Ok(())
}

fn check_page(
    lower: Lower,
    link: &Link,
    number: u32,
    unit: &mut [u8],
    content: &mut [u8],
    audit: &mut Audit,
) -> Result<(), ConvertError> {
    let at = REGION_BYTES + u64::from(number - 1) * unit.len() as u64;
    let mut opened = link.try_open_page(number, unit, content);
    for _ in 1..ATTEMPTS {
        if opened.is_ok() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
        if lower.read(unit, at).map_err(io)? == ReadEnd::Short {
            break;
        }
        opened = link.try_open_page(number, unit, content);
    }
    if let Err(error) = opened {
        audit.damaged_pages.push((number, error.to_string(), None));
    }
    Ok(())
}

/// Frames up to the last one SQLite counts have to open; what lies behind is left over.
///
/// Once all of it is in the database, another process may begin the WAL anew under way; then it is read again.
fn check_frames(
    lower: Lower,
    wal: Lower,
    link: &Link,
    audit: &mut Audit,
) -> Result<(), ConvertError> {
    let header = |header: &mut [u8; HEADER_BYTES]| wal.read(header, 0).map_err(io);
    let keys = link.keys().map_err(io)?;
    for _ in 0..ATTEMPTS {
        let mut before = [0; HEADER_BYTES];
        header(&mut before)?;
        let Some(parsed) = WalHeader::parse(&before) else { return Ok(()) };
        let frame_bytes = parsed.page_size as usize + FRAME_HEADER_BYTES;
        let (mut unit, mut frame) = (vec![0; frame_bytes], vec![0; frame_bytes]);
        let counted = frames_counted(lower)?;
        audit.damaged_frames.clear();
        for number in 1..=counted {
            let at = HEADER_BYTES as u64 + u64::from(number - 1) * frame_bytes as u64;
            wal.read(&mut unit, at).map_err(io)?;
            if let Err(error) = open_frame(&keys, number, &unit, &mut frame) {
                audit.damaged_frames.push((number, error.to_string()));
            }
        }
        audit.frames = u64::from(counted);
        let mut after = [0; HEADER_BYTES];
        header(&mut after)?;
        if audit.damaged_frames.is_empty() || after == before {
            break;
        }
    }
    Ok(())
}

/// How many frames of the WAL SQLite counts, from the index that all connections share (SQLite's WAL-mode file
/// format, 2.1). A connection in a transaction is refused every checkpoint, even one that only counts.
fn frames_counted(lower: Lower) -> Result<u32, ConvertError> {
    const REGION: c_int = 32 * 1024;
    const COPY_BYTES: usize = 48;
    const FRAMES: usize = 16;
    let mut index: *mut c_void = std::ptr::null_mut();
    // SAFETY: `index` takes a pointer. The connection is in a read transaction, so the region is there.
    let code = unsafe { lower.shm_map(0, REGION, 0, &mut index) };
    if index.is_null() || !matches!(code, ffi::OK | ffi::READONLY) {
        return Err(io(crate::code::Code(if code == ffi::OK { ffi::IOERR } else { code })));
    }
    for _ in 0..1000 {
        let mut copies = [[0u8; COPY_BYTES]; 2];
        for (number, copy) in copies.iter_mut().enumerate() {
            // SAFETY: both copies of the header lie in the mapped region, which stays mapped while the connection
            // reads. Others may write to it: bytes are read, and used only if both copies are the same.
            unsafe {
                let from = index.cast::<u8>().add(number * COPY_BYTES);
                for (at, byte) in copy.iter_mut().enumerate() {
                    *byte = from.add(at).read_volatile();
                }
            }
            lower.shm_barrier();
        }
        if copies[0] == copies[1] {
            let frames = &copies[0][FRAMES..FRAMES + 4];
            return Ok(u32::from_ne_bytes([frames[0], frames[1], frames[2], frames[3]]));
        }
        std::thread::yield_now();
    }
    Err(io(crate::code::Code(ffi::BUSY)))
}

/// Damaged pages by what they belong to, for a summary.
pub fn by_owner(audit: &Audit) -> BTreeMap<String, Vec<u32>> {
    let mut owners: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (page, _, owner) in &audit.damaged_pages {
        let owner = owner.clone().unwrap_or_else(|| "unknown".to_owned());
        owners.entry(owner).or_default().push(*page);
    }
    owners
}

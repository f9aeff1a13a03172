//! The frames of the WAL that SQLite counts, and the records of a hot journal.

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::time::Duration;

use pellucid::wal::{
    open_frame, page_and_commit, refuse_newer, WalHeader, FRAME_HEADER_BYTES, HEADER_BYTES,
};
use pellucid::{Error, Subject};

use super::{io, Audit};
use crate::code::Code;
use crate::convert::connection::Handle;
use crate::convert::ConvertError;
use crate::ffi;
use crate::file::lower_of_open;
use crate::link::{Link, INDEX_CHANGED};
use crate::lower::Lower;
use crate::page_source::{beside, is_reserved, HotJournal};

const ATTEMPTS: usize = 5;
const PAUSE: Duration = Duration::from_millis(5);

/// Authenticates a journal that no living writer has.
pub fn check_journal(
    path: &Path,
    handle: &Handle<'_>,
    audit: &mut Audit,
) -> Result<(), ConvertError> {
    // SAFETY: the file object of an open connection, used before that closes.
    let open = unsafe { lower_of_open(handle.file()?) };
    let Some((lower, link)) = open else { return Ok(()) };
    let name = beside(path, "-journal");
    for attempt in 0..ATTEMPTS {
        let (records, damaged) = match HotJournal::open(&name, &link) {
            Ok(None) => return Ok(()),
            Ok(Some(journal)) => (journal.records(), journal.remarks().collect()),
            Err(error @ (Error::Unauthentic { .. } | Error::Corrupt { .. })) => {
                (0, vec![error.to_string()])
            }
            Err(error) => return Err(error.into()),
        };
        // Looked at last: who has it now may have begun or ended it while it was read.
        if is_reserved(lower) {
            return Ok(());
        }
        if damaged.is_empty() || attempt == ATTEMPTS - 1 {
            audit.records = records as u64;
            audit.damaged_records = damaged;
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Frames up to the last one SQLite counts have to open; what lies behind is left over.
///
/// Once all of it is in the database, another process may begin the WAL anew under way; then it is read again.
pub fn check_frames(
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
        refuse_newer(&before)?;
        let Some(parsed) = WalHeader::parse(&before) else { return Ok(()) };
        let frame_bytes = parsed.page_size as usize + FRAME_HEADER_BYTES;
        let (mut unit, mut frame) = (vec![0; frame_bytes], vec![0; frame_bytes]);
        let counted = frames_counted(lower)?;
        audit.damaged_frames.clear();
        for number in 1..=counted {
            let at = HEADER_BYTES as u64 + u64::from(number - 1) * frame_bytes as u64;
            wal.read(&mut unit, at).map_err(io)?;
            let opened = open_frame(&keys, number, &unit, &mut frame);
            let page = page_and_commit(&frame).0;
            if let Err(error) = opened {
                audit.damaged_frames.push((number, error.to_string()));
            } else if link.index.page_of(number).is_some_and(|said| said != page) {
                let cause =
                    format!("of page {page}, and the wal-index says otherwise: {INDEX_CHANGED}");
                let error = Error::unauthentic(Subject::Frame(number), cause);
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
        return Err(io(Code(if code == ffi::OK { ffi::IOERR } else { code })));
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
    Err(io(Code(ffi::BUSY)))
}

//! The frames of the WAL that SQLite counts, and the records of a hot journal.

use std::path::Path;
use std::time::Duration;

use pellucid::wal::{
    open_frame, page_and_commit, refuse_other, Run, Version, WalHeader, FRAME_HEADER_BYTES,
    HEADER_BYTES,
};
use pellucid::{Error, Subject};
use pellucid_files::paths::beside;
use pellucid_host::code::Code;
use pellucid_host::connection::Handle;
use pellucid_host::{ffi, DatabaseError};
use pellucid_vfs::container::{Container, INDEX_CHANGED};
use pellucid_vfs::log_end::{Database, LogEnd, Lost, Padding};
use pellucid_vfs::opened::{self, OpenWal};

use super::{io, Audit};
use crate::page_source::{has_dead_pages_in_clear, HotJournal};

const ATTEMPTS: usize = 5;
const PAUSE: Duration = Duration::from_millis(5);

/// Authenticates the records of a journal that no running writer holds.
pub fn check_journal(
    path: &Path,
    handle: &Handle<'_>,
    audit: &mut Audit,
) -> Result<(), DatabaseError> {
    let open = opened::sealed(handle)?;
    let Some((lower, container)) = open else { return Ok(()) };
    let name = beside(path, "-journal");
    audit.journal_in_clear = match container.header() {
        Some(header) => has_dead_pages_in_clear(&name, header.state)?,
        None => false,
    };
    for attempt in 0..ATTEMPTS {
        let (records, damaged) = match HotJournal::open(&name, &container) {
            Ok(None) => return Ok(()),
            Ok(Some(journal)) => (journal.records(), journal.remarks().collect()),
            Err(error @ (Error::Unauthentic { .. } | Error::Corrupt { .. })) => {
                (0, vec![error.to_string()])
            }
            Err(error) => return Err(error.into()),
        };
        // RESERVED is checked last: its holder may have begun or ended the journal while it was
        // read.
        if lower.is_reserved() {
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

/// Authenticates the frames up to the last one that SQLite counts. Frames behind it are left over.
///
/// Once all of the log is in the database, another process may restart it during the check; then it
/// is read again.
pub fn check_frames(
    wal: &OpenWal<'_>,
    container: &Container,
    audit: &mut Audit,
) -> Result<(), DatabaseError> {
    let header = |header: &mut [u8; HEADER_BYTES]| wal.read(header, 0).map_err(io);
    let keys = container.keys().map_err(io)?;
    let read = |bytes: &mut [u8], at: u64| wal.read(bytes, at);
    let has_page = |page: u32, content: &[u8]| container.has_page(page, content);
    let version = container.version();
    let database = || -> Result<Database<'_>, DatabaseError> {
        let sector = match version {
            Version::First => None,
            Version::Second => container.log_sector().map_err(io)?,
        };
        Ok(Database { header: container.header(), keys: &keys, has_page: &has_page, sector })
    };
    let mut lost_before = None;
    for _ in 0..ATTEMPTS {
        let mut before = [0; HEADER_BYTES];
        header(&mut before)?;
        refuse_other(&before, version)?;
        let Some(parsed) = WalHeader::parse(&before) else {
            let page_bytes = container.page_size().unwrap_or(4096);
            let frame_bytes = page_bytes + FRAME_HEADER_BYTES;
            let size = wal.size().map_err(io)?;
            let mut log = LogEnd::new(&read, size, database()?, frame_bytes);
            let lost = log.lost_by_header(before).map_err(io)?.map(told);
            if lost.is_none() || lost == lost_before {
                audit.damaged_frames.extend(lost);
                return Ok(());
            }
            lost_before = lost;
            std::thread::sleep(PAUSE);
            continue;
        };
        let frame_bytes = parsed.page_size as usize + FRAME_HEADER_BYTES;
        let (mut unit, mut frame) = (vec![0; frame_bytes], vec![0; frame_bytes]);
        let run = Run::of(&before, version);
        let (counted, _) = container.index.counted().ok_or(io(Code(ffi::BUSY)))?;
        audit.damaged_frames.clear();
        let mut padding = Padding::default();
        for number in 1..=counted {
            let at = HEADER_BYTES as u64 + u64::from(number - 1) * frame_bytes as u64;
            wal.read(&mut unit, at).map_err(io)?;
            let opened = open_frame(&keys, &run, number, &unit, &mut frame);
            let page = page_and_commit(&frame).0;
            padding.is_commit(&frame);
            if let Err(error) = opened {
                audit.damaged_frames.push((number, error.to_string()));
            } else if container.index.page_of(number).is_some_and(|said| said != page) {
                let cause =
                    format!("of page {page}, and the wal-index says otherwise: {INDEX_CHANGED}");
                let error = Error::unauthentic(Subject::Frame(number), cause);
                audit.damaged_frames.push((number, error.to_string()));
            }
        }
        audit.frames = u64::from(counted);
        let mut after = [0; HEADER_BYTES];
        header(&mut after)?;
        if !audit.damaged_frames.is_empty() {
            match after == before {
                true => break,
                false => continue,
            }
        }
        // An unfinished frame of a writer is another frame, or none, a moment later.
        let size = wal.size().map_err(io)?;
        let mut log = LogEnd::new(&read, size, database()?, frame_bytes);
        let lost = log.lost(before, counted, padding.is_absent()).map_err(io)?.map(told);
        if lost.is_none() || lost == lost_before {
            audit.damaged_frames.extend(lost);
            break;
        }
        lost_before = lost;
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

fn told(lost: Lost) -> (u32, String) {
    let advice = "Copy the database and its `-wal` before any program opens it: the next one that does keeps that part of \
                  the log beside the database, and goes on";
    (lost.frame, format!("{lost}. {advice}"))
}

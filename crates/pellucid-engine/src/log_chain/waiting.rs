//! What of a chain no log backup has yet, for whoever only asks. Nothing is kept, synced or written.

use std::io::ErrorKind;
use std::path::Path;

use pellucid::header::Header;
use pellucid::keys::ContainerKeys;
use pellucid::log_archive::{check_header, ArchiveState};
use pellucid::lsn::Lsn;
use pellucid::wal::FRAME_HEADER_BYTES;
use pellucid::{Error, Subject};
use pellucid_files::paths::{beside, look_at_name};
use pellucid_files::way::Way;
use pellucid_host::connection::{uri, Handle};
use pellucid_host::{ffi, DatabaseError};
use pellucid_vfs::log_archive::Archive;
use pellucid_vfs::pins::Expectation;
use pellucid_vfs::seal_request::{Credentials, Request};
use pellucid_vfs::{opened, witness};

use crate::header_change::cannot_write;

/// Commits that no log backup has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The last commit that log backups have.
    pub backed_up: Lsn,
    /// The last commit.
    pub last: Lsn,
    /// Bytes of the frames in between.
    pub bytes: u64,
}

impl Waiting {
    /// Whether a log backup of now would have a commit.
    pub fn is_some(&self) -> bool {
        self.last > self.backed_up
    }
}

/// What waits for a log backup. None where there is no chain, or where its archive cannot say: its run of the log is another one.
/// Waits for nobody.
///
/// # Errors
/// [`DatabaseError`].
pub fn waiting(path: &Path) -> Result<Option<Waiting>, DatabaseError> {
    // A connection would be the last one as well, and end a run that was none.
    if let Ok(Some(found)) = at_rest(path) {
        return Ok(Some(found));
    }
    let handle =
        Handle::open(path, &uri(path, "vfs=pellucid&require=container"), ffi::OPEN_READWRITE)?;
    // Reads, so that the log is recovered.
    handle.run("BEGIN").and_then(|()| handle.number("SELECT count(*) FROM sqlite_schema"))?;
    let Some((_, container)) = opened::sealed(&handle)?.filter(|(_, own)| own.chain().is_some())
    else {
        return Ok(None);
    };
    let keys = container.keys().map_err(|code| cannot_write(path, code))?;
    let archive = Archive::open(container.path())?;
    let state = archive.state(&keys)?;
    let live = &state.live;
    let counted = match container.index.run() {
        Some((salts, counted)) if salts == live.salts => counted,
        Some((_, 0)) | None => live.kept,
        Some(_) if state.has_ended => live.kept,
        Some(_) => return Ok(None),
    };
    let page_bytes = container.page_size().unwrap_or(0);
    Ok(Some(behind(&archive, &state, &keys, counted, page_bytes)?))
}

/// The same of a database that nobody has open and whose run of the log has ended: its archive has all there is. None if it has a log
/// or is gone itself, and if its archive alone does not say.
fn at_rest(path: &Path) -> pellucid::Result<Option<Waiting>> {
    let way = Way::of(path).map_err(|error| Error::io(Subject::File(path.to_owned()), error))?;
    way.look().map_err(|error| Error::io(Subject::File(path.to_owned()), error))?;
    let log = look_at_name(&beside(way.path(), "-wal"));
    if log.map_or_else(|error| error.kind() != ErrorKind::NotFound, |found| found.len() > 0) {
        return Ok(None);
    }
    let archive = Archive::open(way.path())?;
    let Some(copy) = archive.header_copy()? else { return Ok(None) };
    let header = Header::parse(&copy[..], 0)?;
    Expectation::at(way.path())?.check(&header)?;
    let credentials = Credentials::gather(&Request::default())?;
    let keys = credentials.unlock(&header, &copy, 0, None)?;
    let state = archive.state(&keys)?;
    check_header(&header, &state)?;
    // Without its end, the log that is not there may have had more.
    if !state.has_ended || witness::ahead(way.path(), &state)?.is_some() {
        return Ok(None);
    }
    let page_bytes = header.page_size as usize;
    behind(&archive, &state, &keys, state.live.kept, page_bytes).map(Some)
}

/// What log backups do not have of an archive, and of the `counted` frames of its log.
fn behind(
    archive: &Archive,
    state: &ArchiveState,
    keys: &ContainerKeys,
    counted: u32,
    page_bytes: usize,
) -> pellucid::Result<Waiting> {
    let live = &state.live;
    let last = live.lsn(counted.max(live.kept));
    let frame_bytes = page_bytes + FRAME_HEADER_BYTES;
    let had = match state.backed_up.epoch == live.epoch {
        true => live.kept.max(state.backed_up.frame),
        false => live.kept,
    };
    let mut frames = u64::from(counted.saturating_sub(had));
    for name in archive.segments()? {
        if Lsn::new(name.0, name.1) > state.backed_up {
            frames += u64::from(archive.open_segment(name, keys)?.0.count);
        }
    }
    let bytes = frames * frame_bytes as u64;
    Ok(Waiting { backed_up: state.backed_up, last, bytes })
}

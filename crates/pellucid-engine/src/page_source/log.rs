//! The frames of a WAL that count, found as SQLite's recovery finds them.
//!
//! It is read by a descriptor of its own: SQLite keeps no locks on a WAL, so closing it drops none.

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pellucid::unit::TAIL_BYTES;
use pellucid::wal::{
    open_frame, page_and_commit, Chain, Run, WalHeader, FRAME_HEADER_BYTES, HEADER_BYTES,
};
use pellucid::{Error, Result, Subject};
use pellucid_vfs::container::Container;

use crate::units::catch_up;

/// A WAL as it was when it was opened.
#[derive(Debug)]
pub struct Log {
    file: File,
    pub(super) header: [u8; HEADER_BYTES],
    page_bytes: usize,
    /// The last committed frame of each page.
    pub(super) frames: HashMap<u32, u32>,
    pub(super) pages: Option<u32>,
    remark: Option<String>,
}

impl Log {
    /// Reads the WAL. `None` if there is none, or it is not of a sealed database.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Unsupported`] for the log of a later version.
    pub fn open(path: &Path, container: &Container, page_bytes: usize) -> Result<Option<Self>> {
        let failed = |error| Error::io(Subject::File(path.to_owned()), error);
        let file = match pellucid_files::regular::open_named(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let size = file.metadata().map_err(failed)?.len();
        let Some(mut log) = Self::of(file, page_bytes).map_err(failed)? else { return Ok(None) };
        let version = container.version();
        pellucid::wal::refuse_other(&log.header, version)?;
        let fits = |found: &WalHeader| {
            found.sealed == Some(version) && found.page_size as usize == page_bytes
        };
        if WalHeader::parse(&log.header).filter(fits).is_none() {
            // SQLite takes such a log for empty, and so does this function; it counts as none if no
            // frame of it opens.
            if log.frame(container, 1).is_err() {
                return Ok(None);
            }
            log.remark = Some("WAL header: damaged; commits in that log are lost".into());
            return Ok(Some(log));
        }
        let frames = (size - HEADER_BYTES as u64) / log.frame_bytes() as u64;
        log.follow(container, u32::try_from(frames).unwrap_or(u32::MAX));
        Ok(Some(log))
    }

    /// A log none of whose frames is counted yet. `None` if it has no header.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn of(file: File, page_bytes: usize) -> std::io::Result<Option<Self>> {
        let mut header = [0; HEADER_BYTES];
        match file.read_exact_at(&mut header, 0) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let (frames, pages, remark) = (HashMap::new(), None, None);
        Ok(Some(Self { file, header, page_bytes, frames, pages, remark }))
    }

    /// Takes frames as long as each continues the one before. Frames behind the last commit do not
    /// count.
    fn follow(&mut self, container: &Container, frames: u32) {
        let mut chain = Chain::new(self.header);
        let mut pending = Vec::new();
        for number in 1..=frames {
            let frame = match self.frame(container, number) {
                Ok(frame) => frame,
                Err(cause) => {
                    self.remark = self.goes_on_behind(container, number, frames).then_some(cause);
                    return;
                }
            };
            if !chain.goes_on(&frame) {
                return;
            }
            let (page, commit) = page_and_commit(&frame);
            pending.push((page, number));
            if commit != 0 {
                self.frames.extend(pending.drain(..));
                self.pages = Some(commit);
            }
        }
    }

    /// Whether a commit of the same log lies behind a frame that does not open. Then that frame is
    /// damaged, and is not the end that a crash left.
    fn goes_on_behind(&self, container: &Container, damaged: u32, frames: u32) -> bool {
        (damaged + 1..=frames)
            .map_while(|number| self.frame(container, number).ok())
            .take_while(|frame| frame[8..16] == self.header[16..24])
            .any(|frame| page_and_commit(&frame).1 != 0)
    }

    pub(super) fn frame_bytes(&self) -> usize {
        FRAME_HEADER_BYTES + self.page_bytes
    }

    /// Whether the header of a frame is zeros, as no frame's is.
    pub(super) fn is_hole(&self, number: u32) -> bool {
        let mut clear = [0; FRAME_HEADER_BYTES];
        let at = HEADER_BYTES as u64 + u64::from(number - 1) * self.frame_bytes() as u64;
        self.file.read_exact_at(&mut clear, at).is_ok() && clear == [0; FRAME_HEADER_BYTES]
    }

    pub(super) fn frame(
        &self,
        container: &Container,
        number: u32,
    ) -> std::result::Result<Vec<u8>, String> {
        let mut sealed = vec![0; self.frame_bytes()];
        let mut frame = sealed.clone();
        let at = HEADER_BYTES as u64 + u64::from(number - 1) * sealed.len() as u64;
        let unread = |error: &dyn std::fmt::Display| format!("WAL frame {number}: {error}");
        self.file.read_exact_at(&mut sealed, at).map_err(|error| unread(&error))?;
        catch_up(container, &sealed);
        let keys = container.keys().map_err(|_| unread(&"no keys"))?;
        let run = Run::of(&self.header, container.version());
        open_frame(&keys, &run, number, &sealed, &mut frame).map_err(|error| error.to_string())?;
        Ok(frame)
    }

    /// Returns the page from the log. `None` if the log does not have it.
    pub fn page(
        &self,
        container: &Container,
        number: u32,
    ) -> Option<std::result::Result<Vec<u8>, String>> {
        let frame = self.frames.get(&number)?;
        match self.frame(container, *frame) {
            Ok(frame) => {
                let end = frame.len() - TAIL_BYTES;
                Some(Ok(frame[FRAME_HEADER_BYTES..end].to_vec()))
            }
            // All of the log was in the database, and another process has restarted it.
            Err(_) if self.was_begun_anew() => None,
            Err(cause) => Some(Err(format!("page {number}: {cause}"))),
        }
    }

    fn was_begun_anew(&self) -> bool {
        let mut now = [0; HEADER_BYTES];
        self.file.read_exact_at(&mut now, 0).is_err() || now != self.header
    }

    /// The number of pages of the database after the last commit in the log. `None` if it has no
    /// commit.
    pub fn pages(&self) -> Option<u32> {
        self.pages
    }

    /// The highest page number in the log.
    pub fn last(&self) -> u32 {
        self.frames.keys().copied().max().unwrap_or(0)
    }

    /// A remark about damage that loses commits.
    pub fn remark(&self) -> Option<String> {
        self.remark.as_ref().map(|cause| match cause.starts_with("WAL frame") {
            true => format!("{cause}: that commit and those behind it are lost"),
            false => cause.clone(),
        })
    }
}

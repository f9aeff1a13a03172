//! Commits behind the end that a recovery finds: kept aside before SQLite writes over them.

use pellucid::log_sector::LogSector;
use pellucid::wal::{Version, FRAME_HEADER_BYTES, HEADER_BYTES};
use pellucid::{Error, Subject};
use pellucid_host::code::Outcome;
use pellucid_host::ffi;

use super::WalFile;
use crate::log_end::{Database, LogEnd, Lost};
use crate::lost_log;
use crate::lower::ReadEnd;

impl WalFile {
    /// The same at the end of a recovery that met no damage, after which `counted` frames count: a frame that authenticates may
    /// have been put back in the place of a newer one.
    ///
    /// # Errors
    /// A code.
    pub fn keep_lost_behind(&mut self, counted: u32) -> Outcome<()> {
        if self.version() == Version::Second {
            return self.keep_lost_by(|end, header| end.lost_without_damage(header, counted));
        }
        let frames =
            |size: u64| size.saturating_sub(HEADER_BYTES as u64) / self.frame_bytes() as u64;
        match frames(self.lower.size()?) > u64::from(counted) {
            true => self.keep_lost_by(|end, header| end.lost_without_damage(header, counted)),
            false => Ok(()),
        }
    }

    /// Keeps the rest of the log aside if whole commits lie behind the frame `number`, or behind the header, where recovery ends.
    /// From then on SQLite writes over them.
    ///
    /// In version 2 that is decided when the recovery is over, unless nothing says when, as where the index is in SQLite's own
    /// memory.
    pub(super) fn keep_lost(&mut self, number: Option<u32>) -> Outcome<()> {
        if self.version() == Version::Second && self.container.index.is_mapped() {
            return Ok(());
        }
        self.keep_lost_by(|end, header| match number {
            Some(number) => {
                let unpadded = end.is_unpadded(number - 1)?;
                end.lost(header, number - 1, unpadded)
            }
            None => end.lost_by_header(header),
        })
    }

    /// What sector 2 says, if the database has one.
    fn known_sector(&self) -> Outcome<Option<LogSector>> {
        match self.version() {
            Version::First => Ok(None),
            Version::Second => self.container.log_sector(),
        }
    }

    /// The highest recovery count of the frames behind `counted` that are of `run`.
    pub(super) fn highest_count_behind(&mut self, counted: u32) -> Outcome<u16> {
        let (lower, size) = (self.lower, self.lower.size()?);
        let frames = size.saturating_sub(HEADER_BYTES as u64) / self.frame_bytes() as u64;
        if frames <= u64::from(counted) {
            return Ok(0);
        }
        let read = |bytes: &mut [u8], at: u64| lower.read(bytes, at);
        let has_page = |page: u32, content: &[u8]| self.container.has_page(page, content);
        let mut header = [0; HEADER_BYTES];
        read(&mut header, 0)?;
        let (keys, of) = (self.container.keys()?, self.container.header());
        let database = Database { header: of, keys: &keys, has_page: &has_page, sector: None };
        LogEnd::new(&read, size, database, self.frame_bytes()).highest_count_behind(header, counted)
    }

    fn keep_lost_by(
        &mut self,
        find: impl FnOnce(&mut LogEnd<'_>, [u8; HEADER_BYTES]) -> Outcome<Option<Lost>>,
    ) -> Outcome<()> {
        pellucid::sabotage!(LostLog => return Ok(()));
        let Some(page_bytes) = self.container.page_size() else { return Ok(()) };
        let (lower, size) = (self.lower, self.lower.size()?);
        let read = |bytes: &mut [u8], at: u64| lower.read(bytes, at);
        let mut header = [0; HEADER_BYTES];
        if read(&mut header, 0)? == ReadEnd::Short {
            return Ok(());
        }
        let keys = self.container.keys()?;
        let frame_bytes = page_bytes + FRAME_HEADER_BYTES;
        let has_page = |page: u32, content: &[u8]| self.container.has_page(page, content);
        let sector = self.known_sector()?;
        let database =
            Database { header: self.container.header(), keys: &keys, has_page: &has_page, sector };
        let mut end = LogEnd::new(&read, size, database, frame_bytes);
        let Some(lost) = find(&mut end, header)? else { return Ok(()) };
        if self.container.is_strict_about_logs() {
            let cause = format!("{lost}; a damaged log is an error here (`strict_log`)");
            return Err(self.container.report(&Error::unauthentic(Subject::WalHeader, cause)));
        }
        if let Some(over) = self.container.over() {
            let instead =
                "copy the database and its log to a directory of this machine, and open it there";
            let error = over.refuse(&format!("{lost}; to keep them aside"), instead);
            return Err(self.container.report(&error));
        }
        let at = HEADER_BYTES as u64 + u64::from(lost.frame.saturating_sub(1)) * frame_bytes as u64;
        // What is kept opens by the header that it should have had.
        let read = |bytes: &mut [u8], at: u64| match &lost.header {
            Some(header) if at < HEADER_BYTES as u64 => {
                let end = (at as usize + bytes.len()).min(HEADER_BYTES);
                bytes[..end - at as usize].copy_from_slice(&header[at as usize..end]);
                Ok(ReadEnd::Full)
            }
            _ => read(bytes, at),
        };
        let kept = lost_log::keep(self.container.path(), &lost, &read, (at, size));
        let kept = kept.map_err(|error| self.container.report(&error))?;
        let line = format!("{lost}; kept in `{}`: {}", kept.display(), lost_log::TO_DO);
        self.container.note(ffi::IOERR_DATA, &line);
        Ok(())
    }
}

//! Sector 2 of a database of version 2: read under any key that the header lists, written under the current one.

use pellucid::keys::{ContainerKeys, GENERATION_WRITES};
use pellucid::log_archive::{ArchiveState, LogRun};
use pellucid::log_sector::{LogSector, LOG_SECTOR_BYTES};
use pellucid::sector::{Wear, WEAR_LOG_OFFSET};
use pellucid::wal::{Run, Version};
use pellucid_host::code::Outcome;
use pellucid_host::ffi;

use super::Container;
use crate::lower::Lower;

impl Container {
    /// The version of the database, of which its log is too.
    pub fn version(&self) -> Version {
        let state = self.state.borrow();
        state.header.as_ref().map_or(Version::First, Version::of_database)
    }

    /// Reads sector 2. `None` if it is not authentic, as where a power cut tore it: what it said is lost then.
    ///
    /// # Errors
    /// The lower VFS's code.
    pub fn log_sector(&self) -> Outcome<Option<LogSector>> {
        let keys = self.keys()?;
        self.log_sector_under(self.lower()?, &keys).map(|found| found.map(|(sector, _)| sector))
    }

    /// The same, with whether it is under the current key.
    pub(super) fn log_sector_under(
        &self,
        lower: Lower,
        keys: &ContainerKeys,
    ) -> Outcome<Option<(LogSector, bool)>> {
        let mut bytes = [0; LOG_SECTOR_BYTES];
        lower.read(&mut bytes, WEAR_LOG_OFFSET)?;
        {
            let known = self.sector.borrow();
            if let Some((_, sector)) = known.as_ref().filter(|(of, _)| *of == bytes) {
                return Ok(Some((*sector, true)));
            }
        }
        if let Ok(sector) = LogSector::parse(&bytes, [keys.header_key()]) {
            self.sector.replace(Some((bytes, sector)));
            return Ok(Some((sector, true)));
        }
        // An upgrade that was killed behind its header has left the sector of version 1. The log was
        // empty then, so there was no run of it and no recovery.
        let parse = |used| Wear::parse(used, keys.header_key(), WEAR_LOG_OFFSET).ok();
        if let Some(wear) = bytes.first_chunk().and_then(parse) {
            return Ok(Some((LogSector { wear, ..LogSector::default() }, true)));
        }
        let older = keys.header_keys().map_err(|error| self.report(&error))?;
        Ok(LogSector::parse(&bytes, &older).ok().map(|sector| (sector, false)))
    }

    /// Whether the database is older than its archive: that has commits of a run that began behind what sector 2 has, and is over.
    /// Before a run ends the database file is synced, with a sector that has the run's epoch or a later one; before that its log is
    /// there, which is the one of `present`.
    ///
    /// # Errors
    /// The lower VFS's code.
    pub fn is_behind(&self, state: &ArchiveState, present: Option<[u8; 8]>) -> Outcome<bool> {
        let Some(sector) = self.log_sector()? else { return Ok(false) };
        let has = Run::second(&sector.run).salts();
        // A recovery makes a sector anew that a power cut has torn: it is of the log's run then, and knows no epoch.
        if has == state.live.salts && sector.epoch == 0 {
            return Ok(false);
        }
        let is_older = |run: &LogRun| {
            let has_commits = run.kept > 0 || run.handed_out > 0;
            has_commits && sector.epoch < run.epoch && run.salts != has
        };
        let is_over = state.has_ended || present.is_none_or(|present| present != state.live.salts);
        // Runs without commits may have come behind the one that the live run follows.
        let behind = state.live.behind;
        let is_older_than_that =
            behind.frame > 0 && behind.epoch < state.live.epoch && sector.epoch < behind.epoch;
        Ok(is_over && is_older(&state.live) || is_older(&state.before) || is_older_than_that)
    }

    /// Writes sector 2 under the current key. Nothing waits for its sync.
    ///
    /// # Errors
    /// `SQLITE_READONLY` where nothing may be written; the lower VFS's code.
    pub fn write_log_sector(&self, sector: &LogSector) -> Outcome<()> {
        self.check_writable()?;
        let keys = self.keys()?;
        self.put_log_sector(self.lower()?, &keys, sector)
    }

    pub(super) fn put_log_sector(
        &self,
        lower: Lower,
        keys: &ContainerKeys,
        sector: &LogSector,
    ) -> Outcome<()> {
        let bytes = sector.encode(keys.header_key());
        self.sector.replace(None);
        lower.write(&bytes, WEAR_LOG_OFFSET)?;
        self.sector.replace(Some((bytes, *sector)));
        Ok(())
    }

    /// Writes sector 2 under the current key if it is under an older one, before the header drops that key's row.
    pub(super) fn renew_log_sector(&self, lower: Lower) -> Outcome<()> {
        if self.version() == Version::First {
            return Ok(());
        }
        let keys = self.keys()?;
        match self.log_sector_under(lower, &keys)? {
            Some((sector, false)) => {
                self.put_log_sector(lower, &keys, &sector)?;
                lower.sync(ffi::SYNC_NORMAL)
            }
            Some((_, true)) | None => Ok(()),
        }
    }

    /// What is written where the sector cannot be read: its wear count is lost, so the generation counts as worn out.
    pub fn worn_sector(&self) -> LogSector {
        let generation = self.state.borrow().keys.as_ref().map_or(0, |keys| keys.generation());
        let wear = Wear { generation, reserved: GENERATION_WRITES };
        LogSector { wear, ..LogSector::default() }
    }

    /// Forgets what was read, because the keys changed.
    pub(super) fn forget_log_sector(&self) {
        self.sector.replace(None);
    }
}

//! A log whose commits cannot go into the archive, and that is larger than the instance's policy `log-limit` lets it be.
//!
//! Without that policy it grows until the disk is full. `log-full` says what comes at the limit: commits fail, as with SQL Server's
//! 9002, or the log begins anew and the chain of log backups is broken. That cannot be said in the archive then, so sector 2 says it.

use pellucid::log_archive::{ArchiveState, LogRun};
use pellucid::log_sector::LogSector;
use pellucid::Result;
use pellucid_host::code::Outcome;
use pellucid_host::ffi;
use pellucid_keyring::policy::{Limit, Policy};
use pellucid_keyring::Keyring;

use super::keep::io_error;
use super::{Salts, WalFile};

const MIB: u64 = 1 << 20;

impl WalFile {
    /// What the policy `log-full` says, if the log is larger than `log-limit`. An account that cannot read the policies has none.
    pub(super) fn when_full(&self) -> Option<Limit> {
        let home = Keyring::locate().ok().filter(|home| Keyring::is_at(home))?;
        let policies = Keyring::policies_at(&home).ok()?;
        let Limit::Mebibytes(most) = policies.limit(Policy::LogLimit) else { return None };
        let is_larger = self.lower.size().ok()? > u64::from(most) * MIB;
        is_larger.then(|| policies.limit(Policy::LogFull))
    }

    /// Notes in sector 2 that the log goes on without what nobody kept.
    pub(super) fn note_lost(&self) -> Outcome<()> {
        let known = self.container.log_sector()?;
        let sector = known.unwrap_or_else(|| self.container.worn_sector());
        self.container.write_log_sector(&LogSector { is_lost: true, ..sector })?;
        let what = "the log is larger than `log-limit`, and its archive cannot be written: it begins anew by `log-full break`. The \
                    chain of log backups is broken, and goes on with the next full backup";
        self.container.note(ffi::FULL, what);
        Ok(())
    }

    /// Whether that was so, and the archive does not know it yet.
    pub(super) fn is_lost(&self) -> Result<bool> {
        let sector = self.container.log_sector().map_err(io_error)?;
        Ok(sector.is_some_and(|sector| sector.is_lost))
    }

    /// Breaks the chain there. The run of the log, with these salts, goes on behind nothing.
    pub(super) fn goes_on_behind_lost(&self, state: &mut ArchiveState, present: Option<Salts>) {
        let behind = state.live.lsn(state.live.kept);
        state.begin_run(present.unwrap_or_default());
        state.before = LogRun::default();
        state.is_broken(behind);
        self.tell_broken();
    }

    /// The archive knows it now.
    pub(super) fn knows_lost(&self, was_lost: bool) -> Result<()> {
        let known = self.container.log_sector().map_err(io_error)?;
        match known.filter(|sector| was_lost && sector.is_lost) {
            Some(sector) => self
                .container
                .write_log_sector(&LogSector { is_lost: false, ..sector })
                .map_err(io_error),
            None => Ok(()),
        }
    }
}

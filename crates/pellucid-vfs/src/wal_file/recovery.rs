//! Recoveries of a log of version 2: counted in sector 2, so that frames of before and of after tell apart.

use pellucid::log_sector::LogSector;
use pellucid::wal::{refuse_other, Run, Version, WalHeader, COUNT_MOST, HEADER_BYTES, RUN_BYTES};
use pellucid_host::code::Outcome;

use super::WalFile;
use crate::lower::ReadEnd;

impl WalFile {
    /// Notes in sector 2 that a recovery begins, before SQLite writes what it has found into the wal-index. A process that is
    /// killed in between leaves the mark, and the next one that writes counts the recovery. Where the sector cannot be
    /// written, the recovery does not count. The log of another version is not recovered, and nothing is noted of it.
    pub fn begin_recovery(&mut self) {
        pellucid::sabotage!(LogRecovery => return);
        let Version::Second = self.version() else { return };
        self.stamps.take_seen();
        // A log without a header has nothing to recover, and no frame behind.
        let mut header = [0; HEADER_BYTES];
        let is_there = self.lower.read(&mut header, 0) == Ok(ReadEnd::Full);
        if !is_there || refuse_other(&header, Version::Second).is_err() {
            return;
        }
        let Ok(Some(sector)) = self.container.log_sector() else { return };
        if !sector.under_way {
            let _ = self.container.write_log_sector(&LogSector { under_way: true, ..sector });
        }
    }

    /// Counts a recovery after which `counted` frames count. Nothing was written behind them yet.
    ///
    /// # Errors
    /// A code, if the log cannot be read.
    pub fn end_recovery(&mut self, counted: u32) -> Outcome<()> {
        pellucid::sabotage!(LogRecovery => return Ok(()));
        let Version::Second = self.version() else { return Ok(()) };
        let sector = self.container.log_sector()?;
        let mut header = [0; HEADER_BYTES];
        let is_short = self.lower.read(&mut header, 0)? == ReadEnd::Short;
        let recovered = match (is_short, WalHeader::parse_sealed(&header, Version::Second)) {
            (true, _) => LogSector { under_way: false, ..sector.unwrap_or_default() },
            // A damaged header is of no run. SQLite may write the right one again, with the same salts.
            (false, None) => {
                let sector = sector.unwrap_or_default();
                let recoveries = (sector.recoveries + 1).min(COUNT_MOST.into());
                LogSector { recoveries, counted: 0, under_way: false, ..sector }
            }
            (false, Some(_)) => {
                let run = self.run()?;
                self.know_page_size()?;
                let seen = self.stamps.take_seen().max(self.highest_count_behind(counted)?);
                self.recovered(&run, sector, seen, counted)
            }
        };
        // A recovery by a connection that may not write, or on a full disk, does not count.
        if sector.is_some_and(|sector| sector != recovered) {
            let _ = self.container.write_log_sector(&recovered);
        }
        Ok(())
    }

    /// What sector 2 says once a recovery of `run` is over.
    pub(super) fn recovered(
        &self,
        run: &Run,
        sector: Option<LogSector>,
        seen: u16,
        counted: u32,
    ) -> LogSector {
        let sector = sector.unwrap_or_else(|| self.container.worn_sector());
        let is_same = sector.run == *run.bytes();
        let (known, before) = match is_same {
            true => (sector.recoveries, sector.before),
            // Under a chain nobody vouches for what it went on behind: it may be a log of long ago that somebody put there.
            false if self.container.chain().is_some() => (0, [0; RUN_BYTES]),
            false => (0, sector.run),
        };
        LogSector {
            recoveries: (known.max(seen.into()) + 1).min(COUNT_MOST.into()),
            counted,
            under_way: false,
            run: *run.bytes(),
            before,
            has_ended: is_same && sector.has_ended,
            kept: if is_same { sector.kept } else { 0 },
            ..sector
        }
    }
}

//! Each unit is counted before it is sealed: writes are reserved on disk in blocks, and a generation of keys that is worn is
//! followed by the next.

use pellucid::keys::{ContainerKeys, GENERATION_WRITES};
use pellucid::log_sector::LogSector;
use pellucid::sector::{Wear, WEAR_LOG_OFFSET, WEAR_PAGES_OFFSET};
use pellucid::wal::Version;
use pellucid::{Error, Result, Subject};
use pellucid_host::code::{Code, Outcome};
use pellucid_host::ffi;

use super::Container;
use crate::lower::Lower;
use crate::pool::{Pool, WearKind};

pub(super) const RESERVE_FIRST: u64 = 64;
pub(super) const RESERVE_MOST: u64 = 65536;

impl Container {
    /// Counts one unit against its generation, then seals it with `seal`.
    ///
    /// # Errors
    /// A code; no unit was sealed then.
    pub fn seal_with<T>(
        &self,
        kind: WearKind,
        seal: impl FnOnce(&ContainerKeys, &mut Pool) -> Result<T>,
    ) -> Outcome<T> {
        if !self.transaction.pool().take_reserved(kind) {
            self.reserve(kind)?;
            self.transaction.pool().take_reserved(kind);
        }
        let state = self.state.borrow();
        let keys = state.keys.as_ref().ok_or(Code(ffi::IOERR))?;
        seal(keys, &mut self.transaction.pool()).map_err(|error| self.report(&error))
    }

    /// Reserves writes of the current generation in the wear count on disk. Moves to the next
    /// generation if this one is worn.
    fn reserve(&self, kind: WearKind) -> Outcome<()> {
        if !self.is_born() {
            // The birth writes the count that covers these.
            self.transaction.pool().add_reserved(kind, RESERVE_MOST);
            return Ok(());
        }
        let lower = self.lower()?;
        if self.state.borrow().behind {
            // The process that changed the header may have been killed before its sync. No unit may
            // be sealed under a generation that is not on disk.
            lower.sync(ffi::SYNC_NORMAL)?;
        }
        let keys = self.keys()?;
        let counted = self.read_wear(kind, lower, &keys)?;
        let mut next = self.reserve_next.get();
        let limit = generation_writes();
        let block = next[kind as usize].min((limit / 4).max(1));
        // A count that cannot be read counts as worn out. A count of a later generation means that
        // an older header came back: a disk lost a write, or somebody put the header back. No
        // generation that was in use is used again from its start.
        let (reserved, known) = match counted {
            Some(wear) if wear.generation == keys.generation() => (wear.reserved, wear.generation),
            Some(wear) if wear.generation < keys.generation() => (0, keys.generation()),
            Some(wear) => (limit, wear.generation),
            None => (limit, keys.generation()),
        };
        let worn = reserved.saturating_add(block) > limit;
        let rolled = worn && self.with_header_locks(lower, || self.roll_generation(known))?;
        let (keys, used) = if rolled { (self.keys()?, 0) } else { (keys, reserved) };
        let wear = Wear { generation: keys.generation(), reserved: used + block };
        self.write_wear(kind, lower, &keys, wear)?;
        next[kind as usize] = (block * 2).min(RESERVE_MOST);
        self.reserve_next.set(next);
        self.transaction.pool().add_reserved(kind, block);
        Ok(())
    }

    /// Reads a wear count. `None` if it cannot be read.
    fn read_wear(
        &self,
        kind: WearKind,
        lower: Lower,
        keys: &ContainerKeys,
    ) -> Outcome<Option<Wear>> {
        if kind == WearKind::Log && self.version() == Version::Second {
            let sector = self.log_sector_under(lower, keys)?;
            return Ok(sector.map(|(sector, _)| sector.wear));
        }
        let (mut bytes, offset) = ([0; 64], offset_of(kind));
        lower.read(&mut bytes, offset)?;
        Ok(Wear::parse(&bytes, keys.header_key(), offset).ok())
    }

    /// Writes a wear count. What else the sector says stays.
    fn write_wear(
        &self,
        kind: WearKind,
        lower: Lower,
        keys: &ContainerKeys,
        wear: Wear,
    ) -> Outcome<()> {
        if kind == WearKind::Log && self.version() == Version::Second {
            let sector = self.log_sector_under(lower, keys)?;
            let sector = sector.map(|(sector, _)| sector).unwrap_or_default();
            return self.put_log_sector(lower, keys, &LogSector { wear, ..sector });
        }
        let offset = offset_of(kind);
        lower.write(&wear.encode(keys.header_key(), offset), offset)
    }

    fn roll_generation(&self, from: u32) -> Outcome<()> {
        if from >= u32::MAX - 1 {
            return Err(self.report(&Error::limit(Subject::Container, "no generation is left")));
        }
        self.note(ffi::OK, "moving to the next generation of keys");
        self.change_header(|header| header.generation = from + 1)
    }

    /// Writes both wear counts as 0 for a new DEK. The old counts do not authenticate under it, and
    /// each would cost a generation.
    pub(super) fn begin_wear(&self, lower: Lower, keys: &ContainerKeys) -> Outcome<()> {
        let wear = Wear { generation: keys.generation(), reserved: 0 };
        for kind in [WearKind::Pages, WearKind::Log] {
            self.write_wear(kind, lower, keys, wear)?;
        }
        Ok(())
    }
}

fn offset_of(kind: WearKind) -> u64 {
    match kind {
        WearKind::Pages => WEAR_PAGES_OFFSET,
        WearKind::Log => WEAR_LOG_OFFSET,
    }
}

/// Writes allowed under one generation. `PELLUCID_GENERATION_WRITES` can only lower the number.
fn generation_writes() -> u64 {
    std::env::var("PELLUCID_GENERATION_WRITES")
        .ok()
        .and_then(|limit| limit.parse::<u64>().ok())
        .map_or(GENERATION_WRITES, |limit| limit.min(GENERATION_WRITES))
}

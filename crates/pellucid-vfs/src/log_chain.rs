//! What one connection to a database with a chain of log backups is refused: to begin the log anew, and the checkpoints that this
//! would cause.
//!
//! SQLite checkpoints after every commit while the log has more frames than `wal_autocheckpoint` says, with two syncs each time. A log
//! that may not begin anew has them for long. So its automatic checkpoints wait until enough frames have come.

use std::cell::Cell;

use pellucid_host::ffi;

/// Frames that an automatic checkpoint waits for: as many as SQLite waits for by itself.
const FRAMES: u32 = 1000;
/// What ends a checkpoint without asking its busy handler once more: SQLite asks on at `SQLITE_BUSY` alone.
const BUSY_FOR_GOOD: i32 = ffi::BUSY | 3 << 8;

/// The refusals of one connection.
#[derive(Debug, Default)]
pub struct LogChain {
    /// The run of the log that may not begin anew, as far as this connection was told.
    refused: Cell<Option<[u8; 8]>>,
    /// A transaction has ended, and nothing was asked for since: SQLite checkpoints by itself then.
    has_committed: Cell<bool>,
    /// What the index counted when this connection took the database for itself alone: the salts of the log, and its last frame.
    alone: Cell<Option<([u8; 8], u32)>>,
    /// The log was not allowed to begin anew, and the index was made anew already, in an exclusive locking mode.
    refused_alone: Cell<bool>,
    /// The present checkpoint was told once that the log does not begin anew.
    was_told: Cell<bool>,
}

impl LogChain {
    /// Notes what the index counts when this connection takes the database for itself alone: SQLite asks for no lock any more before
    /// it makes the index anew.
    pub fn is_alone(&self, counted: Option<([u8; 8], u32)>) {
        self.alone.set(counted);
    }

    /// What that was, for the run with these salts.
    pub fn alone(&self, salts: [u8; 8]) -> Option<u32> {
        self.alone.get().filter(|(of, _)| *of == salts).map(|(_, counted)| counted)
    }

    /// Notes that the log was not allowed to begin anew where SQLite had asked for no lock.
    pub fn is_refused_alone(&self) {
        self.refused_alone.set(true);
    }

    /// Whether that was so. Told once.
    pub fn take_refused_alone(&self) -> bool {
        self.refused_alone.replace(false)
    }

    /// Notes that a transaction begins, or that somebody asks for a checkpoint.
    pub fn begins_write(&self) {
        self.has_committed.set(false);
    }

    /// Notes that a transaction has ended.
    pub fn ended_write(&self) {
        self.has_committed.set(true);
    }

    /// Notes that a checkpoint has ended.
    pub fn ended_checkpoint(&self) {
        self.was_told.set(false);
    }

    /// Whether a checkpoint is SQLite's own, of a log that may not begin anew, and has little to bring in. `frames` are those that
    /// count and those that are brought in.
    pub fn is_checkpoint_of_nothing(
        &self,
        salts: Option<[u8; 8]>,
        frames: Option<(u32, u32)>,
    ) -> bool {
        let is_own = self.has_committed.replace(false);
        let is_refused = salts.is_some() && self.refused.get() == salts;
        let few =
            frames.is_some_and(|(counted, brought_in)| counted.saturating_sub(brought_in) < FRAMES);
        is_own && is_refused && few
    }

    /// Notes that the log was not allowed to begin anew, and gives the code that says so. A checkpoint that must end with an empty log
    /// is told once to wait, so that writers do not stand still for as long as its patience lasts.
    pub fn refused(&self, salts: Option<[u8; 8]>, by_checkpoint: bool) -> i32 {
        self.refused.set(salts);
        match by_checkpoint && self.was_told.replace(true) {
            true => BUSY_FOR_GOOD,
            false => ffi::BUSY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sqlites_own_checkpoints_of_a_refused_run_wait_and_only_for_a_thousand_frames() {
        let (run, other) = (Some([1; 8]), Some([2; 8]));
        let chain = LogChain::default();
        let own = |salts, frames| {
            chain.ended_write();
            chain.is_checkpoint_of_nothing(salts, frames)
        };
        assert!(!own(run, Some((1001, 1000))), "nothing was refused yet");
        assert_eq!(chain.refused(run, false), ffi::BUSY);
        assert!(own(run, Some((1999, 1000))));
        assert!(!own(run, Some((2000, 1000))) && !own(other, Some((1, 0))) && !own(None, None));
        chain.ended_write();
        assert!(chain.is_checkpoint_of_nothing(run, Some((1, 0))));
        assert!(!chain.is_checkpoint_of_nothing(run, Some((1, 0))), "the second one is asked for");
        chain.ended_write();
        chain.begins_write();
        assert!(!chain.is_checkpoint_of_nothing(run, Some((1, 0))), "a statement asks for it");
    }

    #[test]
    fn a_checkpoint_that_must_is_told_to_wait_once() {
        let chain = LogChain::default();
        assert_eq!(
            [(); 3].map(|()| chain.refused(None, true)),
            [ffi::BUSY, BUSY_FOR_GOOD, BUSY_FOR_GOOD]
        );
        chain.ended_checkpoint();
        assert_eq!(chain.refused(None, true), ffi::BUSY);
        assert_eq!(chain.refused(None, false), ffi::BUSY);
    }
}

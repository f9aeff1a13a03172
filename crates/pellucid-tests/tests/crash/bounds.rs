//! Which commits a power cut may take.

use crate::class::Role;
use crate::cuts::Recorded;
use crate::disk::Loss;
use crate::scenario::{Level, Mode, Scenario, Theme};
use crate::trace::{Event, Trace};

/// Whether there is no journal on disk, and so nothing to go back by.
pub fn is_unprotected(scenario: &Scenario) -> bool {
    matches!(scenario.mode, Mode::Memory | Mode::Off)
}

/// Which states a power cut may leave: not older than the last durable commit, not newer than the one
/// that was begun.
#[derive(Clone, Copy)]
pub struct Bounds {
    pub scenario: Scenario,
    pub floor: usize,
    pub acknowledged: usize,
    pub begun: usize,
    /// Whether the present transaction has removed a rollback journal: a conversion that failed may have left its database in
    /// that mode, if the call by which it is put back fails as well.
    by_journal: bool,
}

impl Bounds {
    /// Of a whole record.
    pub fn new(scenario: Scenario, recorded: &Recorded) -> Self {
        let first = recorded.trace.events.iter().find_map(|event| match event {
            Event::Begun(number) => Some(number - 1),
            _ => None,
        });
        let start = first.unwrap_or(recorded.states.len() - 1);
        Self::from(scenario, start)
    }

    /// With commits up to `start` durable.
    pub fn from(scenario: Scenario, start: usize) -> Self {
        Self { scenario, floor: start, acknowledged: start, begun: start, by_journal: false }
    }

    /// The oldest commit that may be the last one after a cut.
    pub fn least(&self, loss: Loss) -> usize {
        if loss == Loss::Nothing {
            self.acknowledged
        } else {
            self.floor
        }
    }

    /// Whether a cut now has to leave anything whole.
    pub fn promises_anything(&self) -> bool {
        self.scenario.level != Level::Off && !is_unprotected(&self.scenario)
    }

    pub fn follow(&mut self, event: &Event, trace: &Trace) {
        match event {
            Event::Begun(number) => {
                self.begun = *number;
                self.by_journal = false;
            }
            Event::Unlink { name } if name.ends_with("-journal") => self.by_journal = true,
            Event::Acknowledged(number) => {
                // A commit that failed has a number too, so the one before is not always one less.
                let durable = match self.lag() {
                    Lag::None => *number,
                    Lag::One => self.acknowledged,
                    Lag::Any => self.floor,
                };
                self.floor = self.floor.max(durable);
                self.acknowledged = *number;
            }
            // The removal of the journal is durable with the directory, that of its content with itself.
            Event::SyncDirectory { folder } if folder.is_empty() => {
                self.floor = self.floor.max(self.acknowledged_if_rollback());
            }
            Event::Sync { file } if Role::of(&trace.files[*file]) == Role::Wal => {
                self.floor = self.acknowledged;
            }
            _ => {}
        }
    }

    fn acknowledged_if_rollback(&self) -> usize {
        match self.scenario.mode {
            Mode::Delete => self.acknowledged,
            _ => self.floor,
        }
    }

    /// How many commits may be undone: pragma.html, "synchronous"; only EXTRA syncs the directory after
    /// a journal's deletion, NORMAL does not sync a journal cut to nothing, nor a WAL at a commit.
    fn lag(&self) -> Lag {
        let level = self.scenario.level;
        let mode = match self.scenario.theme {
            // The journal mode changes on the way.
            Theme::Rebuild => Mode::Delete,
            _ if self.by_journal && self.scenario.mode == Mode::Wal => Mode::Delete,
            _ => self.scenario.mode,
        };
        match mode {
            _ if level == Level::Off => Lag::None,
            Mode::Delete if level < Level::Extra => Lag::One,
            Mode::Truncate if level < Level::Full => Lag::One,
            Mode::Wal if level < Level::Full => Lag::Any,
            _ => Lag::None,
        }
    }
}

/// How many acknowledged commits a power cut may undo.
enum Lag {
    None,
    One,
    Any,
}

//! Reads records back: the sessions and cells of several files.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::record::{self, once, Account, Alone, CellResult, Observation, Phase, Session};
use crate::verdict::Loads;

/// Sessions of several files with what was measured in them.
#[derive(Debug, Default)]
pub struct Recorded {
    pub sessions: Vec<Session>,
    pub cells: Vec<CellResult>,
    pub loads: Loads,
    pub observations: Vec<Observation>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Line {
    Session(Box<Session>),
    Cell(Box<CellResult>),
    Phase(Box<Phase>),
    Alone(Box<Alone>),
    Account(Box<Account>),
    Observation(Box<Observation>),
    #[serde(other)]
    Other,
}

impl Recorded {
    /// The sessions of `files` that `chosen` names, all if it is empty, with their cells. A session
    /// without cells or phases, one that was interrupted in its first, is left out.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Invalid`] for a line that is no record of this schema, what is there twice, or a name that
    /// no session has.
    pub fn read(files: &[PathBuf], chosen: &[String]) -> Result<Self> {
        let mut recorded = Self::default();
        for file in files {
            recorded.add(file)?;
        }
        once(&recorded.sessions, &recorded.observations)?;
        for name in chosen {
            if !recorded.sessions.iter().any(|session| session.session == *name) {
                return Err(Error::invalid(format!("no session {name} in these records")));
            }
        }
        let Self { sessions, cells, loads, observations } = &mut recorded;
        let wanted = |session: &str| chosen.is_empty() || chosen.iter().any(|name| name == session);
        cells.retain(|cell| wanted(&cell.session));
        loads.retain(wanted);
        observations.retain(|observation| wanted(&observation.session));
        sessions.retain(|session| {
            cells.iter().any(|cell| cell.session == session.session)
                || loads.phases.iter().any(|phase| phase.session == session.session)
                || observations.iter().any(|one| one.session == session.session)
        });
        Ok(recorded)
    }

    fn add(&mut self, file: &Path) -> Result<()> {
        record::read(file, |line| {
            match line {
                Line::Session(session) => self.sessions.push(*session),
                Line::Cell(cell) => self.cells.push(*cell),
                Line::Phase(phase) => self.loads.phases.push(*phase),
                Line::Alone(alone) => self.loads.alone.push(*alone),
                Line::Account(account) => self.loads.accounts.push(*account),
                Line::Observation(one) => self.observations.push(*one),
                Line::Other => {}
            }
            Ok(())
        })
    }
}

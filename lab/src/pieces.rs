//! Reads records back: the sessions and cells of several files.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::record::{CellResult, Session, SCHEMA};

#[derive(Debug, Default)]
pub struct Pieces {
    pub sessions: Vec<Session>,
    pub cells: Vec<CellResult>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Line {
    Session(Box<Session>),
    Cell(Box<CellResult>),
    #[serde(other)]
    Other,
}

impl Pieces {
    /// The sessions of `files` that `chosen` names, all if it is empty, with their cells. A session
    /// without cells, one that was interrupted in its first, is left out.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Invalid`] for a line that is no record of this schema, or a name
    /// that no session has.
    pub fn read(files: &[PathBuf], chosen: &[String]) -> Result<Self> {
        let mut pieces = Self::default();
        for file in files {
            pieces.add(file)?;
        }
        for name in chosen {
            if !pieces.sessions.iter().any(|session| session.session == *name) {
                return Err(Error::invalid(format!("no session {name} in these records")));
            }
        }
        let Self { sessions, cells } = &mut pieces;
        cells.retain(|cell| chosen.is_empty() || chosen.contains(&cell.session));
        sessions.retain(|session| cells.iter().any(|cell| cell.session == session.session));
        Ok(pieces)
    }

    fn add(&mut self, file: &Path) -> Result<()> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(Error::io(name.clone()))?;
        for (place, line) in text.lines().enumerate() {
            let wrong = |what: String| Error::invalid(format!("{name}:{}: {what}", place + 1));
            let value: serde_json::Value =
                serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
            let schema = value.get("schema");
            if schema.is_some_and(|schema| *schema != SCHEMA) {
                return Err(wrong(format!("a session of another schema than {SCHEMA}")));
            }
            match serde_json::from_value(value).map_err(|error| wrong(error.to_string()))? {
                Line::Session(session) => self.sessions.push(*session),
                Line::Cell(cell) => self.cells.push(*cell),
                Line::Other => {}
            }
        }
        Ok(())
    }
}

//! What is done with files that somebody exchanged, and what came of it.

use std::fs;
use std::path::Path;

use pellucid_backup::job::{self, Files, Restoring};
use pellucid_engine::audit;
use pellucid_host::code::{last_report, take_notices};
use pellucid_host::DatabaseError;
use rusqlite::Connection;

use crate::rows;
use crate::storage;
use crate::world::{open, World};

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    Read,
    Write,
    Check,
    Checkpoint,
    Backup,
    /// Written and read by a connection that was open before.
    Idle,
}

impl Action {
    /// Each with its weight.
    pub const WEIGHTS: [(usize, Self); 6] = [
        (3, Self::Idle),
        (8, Self::Read),
        (8, Self::Write),
        (5, Self::Check),
        (4, Self::Checkpoint),
        (1, Self::Backup),
    ];
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was read, up to an error.
    pub lines: Vec<String>,
    /// The error: SQLite's extended code, or 0 for one of a command, and its text.
    pub error: Option<(i32, String)>,
    /// What openings told.
    pub notices: Vec<String>,
    /// What a check found wrong.
    pub damage: Vec<String>,
}

impl Outcome {
    /// With its end.
    pub fn end<T>(mut self, result: Result<T, impl Into<Failure>>) -> Self {
        if let Err(error) = result {
            let Failure(code, text) = error.into();
            let logged = last_report().map_or_else(String::new, |report| report.line);
            self.error = Some((code, format!("{text} [{logged}]")));
        }
        self.notices = take_notices();
        self
    }
}

/// SQLite's extended code, or 0, and the text.
pub struct Failure(i32, String);

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error().map_or(1, |error| error.extended_code);
        Self(code, error.to_string())
    }
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        let code = match &error {
            DatabaseError::Sqlite { code, .. } => *code,
            _ => 0,
        };
        Self(code, error.to_string())
    }
}

impl From<job::JobError> for Failure {
    fn from(error: job::JobError) -> Self {
        Self(0, error.to_string())
    }
}

/// Does it. `secret` is what is written.
pub fn act(world: &World, path: &Path, action: Action, secret: &str) -> Outcome {
    take_notices();
    last_report();
    let mut outcome = Outcome::default();
    match action {
        Action::Read => {
            let result = connect(path).and_then(|it| rows::read(&it, &mut outcome.lines));
            outcome.end(result)
        }
        Action::Write | Action::Idle => {
            let result = connect(path).and_then(|it| {
                rows::write(&it, secret)?;
                rows::read(&it, &mut outcome.lines)
            });
            outcome.end(result)
        }
        Action::Checkpoint => {
            let result = connect(path).and_then(|it| {
                it.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
                rows::read(&it, &mut outcome.lines)
            });
            let result = result.and_then(|()| {
                outcome.lines.clear();
                connect(path).and_then(|it| rows::read(&it, &mut outcome.lines))
            });
            outcome.end(result)
        }
        Action::Check => {
            let options = audit::Options { physical_only: false, cores: 1 };
            let result = audit::audit(path, options, &mut |_, _, _| ());
            if let Ok(found) = &result {
                outcome.damage.extend(found.damaged_pages.iter().map(|page| page.cause.clone()));
                outcome.damage.extend(found.damaged_frames.iter().map(|(_, cause)| cause.clone()));
                outcome.damage.extend(found.damaged_records.iter().cloned());
                outcome.damage.extend(found.integrity.iter().cloned());
            }
            outcome.end(result)
        }
        Action::Backup => {
            let files =
                Files { families: vec![world.folder("out").join("case.bak")], mirrors: Vec::new() };
            let made = job::back_up(
                &job::Job { workers: 1, ..job::Job::new(path.into(), files.clone()) },
                &mut |_| (),
            );
            if let Err(error) = made {
                return outcome.end(Err::<(), _>(error));
            }
            let to = world.folder("out").join("case.db");
            let restored = job::restore(&restoring(files.families, &to), &mut |_, _| ());
            if let Err(error) = restored {
                return outcome.end(Err::<(), _>(error));
            }
            let result = connect(&to).and_then(|it| rows::read(&it, &mut outcome.lines));
            outcome.end(result)
        }
    }
}

/// A connection that has read everything, and holds no lock.
pub struct Idle {
    connection: rusqlite::Result<Connection>,
}

impl Idle {
    /// Opens and reads the database.
    pub fn new(path: &Path) -> Self {
        let mut lines = Vec::new();
        let connection = connect(path).and_then(|it| {
            it.execute_batch("PRAGMA wal_autocheckpoint=0")?;
            rows::read(&it, &mut lines).map(|()| it)
        });
        Self { connection }
    }

    /// Writes and reads, without what it has in its cache.
    pub fn go_on(&mut self, secret: &str) -> Outcome {
        take_notices();
        last_report();
        let mut outcome = Outcome::default();
        let connection =
            std::mem::replace(&mut self.connection, Err(rusqlite::Error::InvalidQuery));
        let result = connection.and_then(|it| {
            it.execute_batch("PRAGMA shrink_memory")?;
            rows::write(&it, secret)?;
            rows::read(&it, &mut outcome.lines)
        });
        outcome.end(result)
    }
}

/// A restore as a user asks for it who names only media and place.
pub fn restoring(media: Vec<std::path::PathBuf>, to: &Path) -> Restoring {
    Restoring {
        media,
        base: None,
        point: None,
        only: Vec::new(),
        position: None,
        to: to.to_owned(),
        protections: Vec::new(),
        algorithm: pellucid::Algorithm::Aes256,
        decrypted: false,
        plain_differential: false,
        allow_clear: false,
        allow_unsigned: false,
        leave: Default::default(),
        replace: false,
        timeout: std::time::Duration::from_secs(1),
        workers: 1,
    }
}

/// Opens a sealed database, and reads its first page.
pub fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = open(path, "vfs=pellucid")?;
    // Without a statement nothing was opened yet.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

/// The files below the run's folders in which `word` lies in clear.
pub fn in_clear(world: &World, word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["live", "elsewhere", "out"] {
        for entry in fs::read_dir(world.folder(folder)).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap_or_default();
            if storage::has(&bytes, word) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

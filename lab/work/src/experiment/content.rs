//! The databases that are backed up: made by `CREATE DATABASE`, so that their files have names, and filled by a worker.

use std::path::Path;

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{copy_whole, holds};
use pellucid_lab_measure::program::Program;
use pellucid_lab_measure::side::{Kind, Recovery, Side};
use pellucid_lab_report::plan;
use pellucid_lab_report::record::Engine;

use crate::pool;
use crate::scenario::whole;
use crate::worker::{Order, Report, Task};

/// What was put into a database.
#[derive(Debug, Clone)]
pub struct Content {
    pub rows: u64,
    pub engine: Engine,
}

/// Fills the new, plain database at `path` until it has about `bytes`; `home` is for temporary files.
///
/// # Errors
/// Of the worker.
pub fn fill(path: &Path, bytes: u64, seed: u64, home: &Path) -> Result<Content> {
    ordered(path, Task::PrepareWhole { bytes, seed }, home)
}

/// Fills the tables of WideWorldImporters, which are in the plain database at `path`; the rows are its order lines.
///
/// # Errors
/// Of the worker.
pub fn fill_world(path: &Path, bytes: u64, seed: u64, home: &Path) -> Result<Content> {
    ordered(path, Task::FillWorld { bytes, seed }, home)
}

fn ordered(path: &Path, task: Task, home: &Path) -> Result<Content> {
    let side =
        Side { name: "plain".into(), kind: Kind::Plain, library: None, recovery: Recovery::Simple };
    let order = Order { side, path: path.into(), setting: plan::STANDARD, task };
    match pool::single(&order, home)? {
        Report::Rows { rows, engine } => Ok(Content { rows, engine }),
        other => Err(Error::invalid(format!("a new database answers {other:?}"))),
    }
}

/// Makes a copy of the plain database at `from` and has `program` seal it, as `side` opens it.
///
/// # Errors
/// [`Error::Invalid`] if the program fails, or if the copy is not sealed afterwards.
pub fn seal(program: &Program, side: &Side, from: &Path, to: &Path) -> Result<()> {
    copy_whole(from, to)?;
    let mut words = vec!["encrypt"];
    if let Kind::Sealed { algorithm, .. } = &side.kind {
        words.extend(["--algorithm", algorithm]);
    }
    program.run(&words, to)?;
    side.check_magic(to)
}

/// Whether the file at `path` shows a row's text.
///
/// # Errors
/// [`Error::Io`]
pub fn is_readable(path: &Path) -> Result<bool> {
    holds(path, whole::MARKER)
}

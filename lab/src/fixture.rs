//! Databases for runs: one template for each side, and a fresh copy of it for each run.
//!
//! A copy is written out in full (never a shared extent), so it lies in the page cache; then it is
//! synced, and the machine is given a moment to write what is left, so that no run pays for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::files::{copy_whole, length, remove};
use crate::machine::dirty_kib;
use crate::plan::Setting;
use crate::pool;
use crate::record::SideDescription;
use crate::scenario::purchase::MARKER;
use crate::side::{Engine, Side};
use crate::worker::{Order, Report, Task};

/// Unwritten data that a quiet machine may have.
const QUIET_KIB: u64 = 1024;
/// A shared machine may never be quiet; the record says how much was left.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// The template of one side.
#[derive(Debug)]
pub struct Fixture {
    pub side: Side,
    pub setting: Setting,
    pub file_bytes: u64,
    pub page_size_bytes: u32,
    engine: Engine,
    dir: PathBuf,
    template: PathBuf,
}

impl Fixture {
    /// Makes the template in `dir`, an absolute path, and makes sure that it is what `side` claims.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is not; whatever else kept it from being made.
    pub fn prepare(side: Side, setting: Setting, seed: u64, dir: PathBuf) -> Result<Self> {
        fs::create_dir(&dir).map_err(Error::io(dir.display().to_string()))?;
        let template = dir.join("template.db");
        let order = |task| Order { side: side.clone(), path: template.clone(), setting, task };
        pool::single(&order(Task::Prepare { seed }), &dir)?;
        side.check_file(&template, MARKER)?;
        match pool::single(&order(Task::Check), &dir)? {
            Report::Checked { purchases, page_size_bytes, engine }
                if (purchases, page_size_bytes)
                    == (setting.size.purchases, setting.page_size_bytes) =>
            {
                let file_bytes = length(&template)?;
                Ok(Self { side, setting, file_bytes, page_size_bytes, engine, dir, template })
            }
            other => {
                Err(Error::invalid(format!("{}: the new database answers {other:?}", side.name)))
            }
        }
    }

    /// The record's words for it.
    ///
    /// # Errors
    /// [`Error::Io`] if the extension cannot be read.
    pub fn describe(&self) -> Result<SideDescription> {
        Ok(SideDescription {
            engine: Some(self.engine.clone()),
            file_bytes: Some(self.file_bytes),
            page_size_bytes: Some(self.page_size_bytes),
            ..self.side.describe()?
        })
    }

    /// Instance directory of the workers.
    pub fn home(&self) -> &Path {
        &self.dir
    }

    /// A fresh copy, warm and synced, and how much unwritten data the machine had then, in KiB.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn copy(&self) -> Result<(PathBuf, u64)> {
        let path = self.dir.join("run.db");
        remove(&path)?;
        copy_whole(&self.template, &path)?;
        Ok((path, settle()))
    }

    /// Makes sure that the database of a finished run is sound and holds the purchases it started
    /// with and `inserted` more, and gives its length.
    ///
    /// # Errors
    /// [`Error::Invalid`] if not.
    pub fn verify(&self, path: &Path, inserted: u64) -> Result<u64> {
        let expected = self.setting.size.purchases + inserted;
        match self.single(path, Task::Check)? {
            Report::Checked { purchases, .. } if purchases == expected => length(path),
            other => Err(Error::invalid(format!(
                "{}: {expected} purchases were acknowledged, the database answers {other:?}",
                self.side.name
            ))),
        }
    }

    fn single(&self, path: &Path, task: Task) -> Result<Report> {
        let order =
            Order { side: self.side.clone(), path: path.into(), setting: self.setting, task };
        pool::single(&order, &self.dir)
    }
}

/// Gives the machine a moment to write what waits, and says how much is left, in KiB.
pub fn settle() -> u64 {
    let start = Instant::now();
    let mut dirty = dirty_kib();
    while dirty > QUIET_KIB && start.elapsed() < LONGEST_WAIT {
        std::thread::sleep(Duration::from_millis(20));
        dirty = dirty_kib();
    }
    dirty
}

//! Databases for runs: one template for each side, and a fresh copy of it for each run.
//!
//! A copy is written out in full (never a shared extent), so it lies in the page cache; then it is
//! synced, and the machine writes what else waits, so that no run pays for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{copy_whole, length, remove};
use pellucid_lab_measure::machine::dirty_kib;
use pellucid_lab_measure::side::Side;
use pellucid_lab_report::plan::Setting;
use pellucid_lab_report::record::{Engine, SideDescription};

use crate::pool;
use crate::scenario::purchase::MARKER;
use crate::worker::{Order, Report, Task};

/// Unwritten data that a quiet machine may have.
const QUIET_KIB: u64 = 1024;
/// For all that waits to be written, on a disk that others may keep busy.
const LONGEST_SYNC: Duration = Duration::from_secs(10);
/// After that, for what others write anew: a shared machine may never be quiet.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(5);

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

/// Has the machine write what waits, and says how much is left, in KiB.
///
/// To wait alone is no use: the kernel writes a page half a minute after it was changed
/// (kernel documentation, sysctl/vm, dirty_expire_centisecs).
pub fn settle() -> u64 {
    let dirty = dirty_kib();
    if dirty <= QUIET_KIB {
        return dirty;
    }
    // On a thread, for a disk that does not answer.
    let sync = std::thread::spawn(rustix::fs::sync);
    wait_until(LONGEST_SYNC, || sync.is_finished());
    wait_until(LONGEST_WAIT, || dirty_kib() <= QUIET_KIB);
    dirty_kib()
}

fn wait_until(longest: Duration, is_done: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_done() && start.elapsed() < longest {
        std::thread::sleep(POLL);
    }
}

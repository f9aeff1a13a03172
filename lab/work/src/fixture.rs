//! Databases for runs: one template for each side, and a fresh copy of it for each run.
//!
//! A copy is written out in full (never a shared extent), so it lies in the page cache; then it is
//! synced, and the machine writes what else waits, so that no run pays for it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{beside, copy_whole, length, remove};
use pellucid_lab_measure::machine::dirty_kib;
use pellucid_lab_measure::program::{Program, Running};
use pellucid_lab_measure::side::{Recovery, Side};
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
/// For the first commits of a run, which an archiver ships after a second.
const LONGEST_SHIPPING: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

/// The name of a copy.
const RUN: &str = "run.db";
/// Behind a database's name, its archive of logs.
const LOGS: &str = "-log";
/// What an instance remembers of log backups.
const WITNESSES: &str = "keyring/witnesses";

/// The template of one side.
#[derive(Debug)]
pub struct Fixture {
    pub side: Side,
    /// Of a side under the recovery model FULL.
    program: Option<Program>,
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
        let program = Program::of(&side, &dir)?.filter(|_| side.recovery != Recovery::Simple);
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
                if let Some(program) = &program {
                    begin_chain(program, &template)?;
                }
                Ok(Self {
                    side,
                    program,
                    setting,
                    file_bytes,
                    page_size_bytes,
                    engine,
                    dir,
                    template,
                })
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
        let path = self.dir.join(RUN);
        remove(&path)?;
        copy_whole(&self.template, &path)?;
        if self.program.is_some() {
            self.copy_archive(&path)?;
        }
        Ok((path, settle()))
    }

    /// Gives the copy at `path` the template's archive of logs. What the instance and the place of the archiver know is of the run
    /// before: to them the copy is a database that was put back.
    fn copy_archive(&self, path: &Path) -> Result<()> {
        let (from, to) = (beside(&self.template, LOGS), beside(path, LOGS));
        for old in [&to, &self.dir.join(WITNESSES), &self.shipped()] {
            match fs::remove_dir_all(old) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Error::io(old.display().to_string())(error));
                }
                _ => {}
            }
        }
        let io = || Error::io(to.display().to_string());
        for new in [&to, &self.shipped()] {
            fs::create_dir(new).map_err(io())?;
        }
        for file in fs::read_dir(&from).map_err(io())? {
            let name = file.map_err(io())?.file_name();
            copy_whole(&from.join(&name), &to.join(&name))?;
        }
        Ok(())
    }

    /// Starts the archiver of a side that has one, for the copy at `path`.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn archiver(&self, path: &Path) -> Result<Option<Running>> {
        let archived = self.program.as_ref().filter(|_| self.side.recovery == Recovery::Archived);
        let place = self.shipped();
        let words = ["archive", "--every", "1s", "--to", &place.display().to_string()];
        archived.map(|program| program.start(&words, path)).transpose()
    }

    /// Ends the archiver once it has shipped something.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it ended before, or ships nothing.
    pub fn end(&self, archiver: Option<Running>) -> Result<()> {
        let Some(mut running) = archiver else { return Ok(()) };
        let has_shipped =
            || fs::read_dir(self.shipped()).is_ok_and(|mut places| places.next().is_some());
        wait_until(LONGEST_SHIPPING, has_shipped);
        if running.has_ended()? {
            running.end()?;
            return Err(Error::invalid("the archiver ended by itself"));
        }
        drop(running);
        match has_shipped() {
            true => Ok(()),
            false => Err(Error::invalid("the archiver shipped nothing")),
        }
    }

    /// Where the archiver ships to.
    fn shipped(&self) -> PathBuf {
        self.dir.join("shipped")
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

/// Puts the database under the recovery model FULL, whose chain begins with a full backup.
fn begin_chain(program: &Program, database: &Path) -> Result<()> {
    let (name, set) = (database.display().to_string(), database.with_extension("bak"));
    program.run(&["recovery", &name], Path::new("full"))?;
    let to = set.display().to_string();
    program.run(&["backup", "--to", &to], database)?;
    Ok(())
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

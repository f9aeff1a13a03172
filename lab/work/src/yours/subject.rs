//! The user's database on each side, and one run of the SQL on a fresh copy of it.

use std::path::{Path, PathBuf};

use pellucid_lab_measure::cold::{self, ColdOptions};
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{beside, copy_whole, length, read_through, remove};
use pellucid_lab_measure::machine::Load;
use pellucid_lab_measure::program::Program;
use pellucid_lab_measure::side::Side;
use pellucid_lab_report::plan::{self, Setting};
use pellucid_lab_report::record::{Engine, SideDescription};

use super::original::Original;
use crate::experiment::content;
use crate::fixture::settle;
use crate::pool;
use crate::scenario::statements;
use crate::scenario::whole::Cache;
use crate::worker::{Order, Performed, Report, Task};

/// What encryption does to the file, too.
const BUILD_ANEW: &str = "VACUUM";

/// The copies of the user's database, one for each side.
#[derive(Debug)]
pub struct Subject {
    templates: Vec<(Side, PathBuf)>,
    engine: Engine,
    page_size_bytes: u32,
    cache: Cache,
    cold: ColdOptions,
    home: PathBuf,
}

/// One run.
#[derive(Debug)]
pub struct Ran {
    pub performed: Performed,
    /// What came from the device, of the file's length.
    pub read_share: Option<f64>,
    /// Of others and stolen, as [`Load::shares`] has them.
    pub shares: (f64, f64),
    pub dirty_kib: u64,
}

impl Subject {
    /// Copies the original and makes a template of it for each side; the first is plain.
    ///
    /// # Errors
    /// Of whatever kept it from being copied, built anew or sealed.
    pub fn prepare(
        original: &Original,
        sides: &[Side],
        home: &Path,
        (cache, cold): (Cache, ColdOptions),
    ) -> Result<Self> {
        let plain = sides.first().ok_or_else(|| Error::invalid("yours: no side"))?;
        let copied = home.join("original.db");
        let (from, wal) = (original.path.clone(), original.wal);
        let order = order(plain, &copied, Task::Adopt { from, wal });
        let engine = match pool::single(&order, home)? {
            Report::Adopted(engine) => engine,
            other => return Err(Error::invalid(format!("a copy answers {other:?}"))),
        };
        let mut templates = Vec::new();
        for side in sides {
            let template = home.join(format!("{}-template.db", side.name));
            if side.kind.is_plain() {
                copy_whole(&copied, &template)?;
                let task = Task::Statements(statements::Task::of(BUILD_ANEW));
                pool::single(&self::order(side, &template, task), home)?;
                side.check_magic(&template)?;
            } else {
                let program = Program::of(side, home)?
                    .ok_or_else(|| Error::invalid(format!("{}: nothing seals it", side.name)))?;
                content::seal(&program, side, &copied, &template)?;
            }
            if beside(&template, "-wal").exists() {
                let name = template.display();
                return Err(Error::invalid(format!("`{name}`: its log was not emptied")));
            }
            templates.push((side.clone(), template));
        }
        remove(&copied)?;
        let (page_size_bytes, home) = (original.page_size_bytes, home.to_path_buf());
        Ok(Self { templates, engine, page_size_bytes, cache, cold, home })
    }

    /// The record's words for each side.
    ///
    /// # Errors
    /// [`Error::Io`] if an extension cannot be read.
    pub fn describe(&self) -> Result<Vec<SideDescription>> {
        let one = |(side, template): &(Side, PathBuf)| {
            Ok(SideDescription {
                engine: Some(self.engine.clone()),
                file_bytes: Some(length(template)?),
                page_size_bytes: Some(self.page_size_bytes),
                ..side.describe()?
            })
        };
        self.templates.iter().map(one).collect()
    }

    /// Executes `sql` on a fresh copy; with `each`, processor time of each statement.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a statement fails, or if a file was not cold that should be.
    pub fn run(&self, side: usize, sql: &str, each: bool) -> Result<Ran> {
        let (side, template) = &self.templates[side];
        // The same name on all sides: some statements return it.
        let copy = self.home.join("run.db");
        remove(&copy)?;
        copy_whole(template, &copy)?;
        let dirty_kib = settle();
        match self.cache {
            Cache::Warm => read_through(&copy)?,
            Cache::Cold => self.cold.make_cold(&copy)?,
        }
        let load = Load::begin();
        let task = statements::Task { each, ..statements::Task::of(sql) };
        let report = pool::single(&order(side, &copy, Task::Statements(task)), &self.home)?;
        let Report::Statements(performed) = report else {
            return Err(Error::invalid(format!("{}: it answers {report:?}", side.name)));
        };
        let shares = load.end().shares(performed.cpu_s);
        if matches!(self.cache, Cache::Cold) {
            check_cold(performed.read_bytes)?;
        }
        let file_bytes = length(template)? as f64;
        let read_share = performed.read_bytes.map(|bytes| bytes as f64 / file_bytes);
        remove(&copy)?;
        Ok(Ran { performed, read_share, shares, dirty_kib })
    }
}

/// How much of the file the SQL reads nobody knows: it has to be something.
fn check_cold(read_bytes: Option<u64>) -> Result<()> {
    match read_bytes {
        None => Err(Error::invalid(cold::UNTOLD)),
        Some(0) => Err(Error::invalid(
            "the file was not cold: nothing came from the device; --dir on a disk, or --cache warm",
        )),
        Some(_) => Ok(()),
    }
}

/// The setting is of no account: journal mode and page size are those of the file.
fn order(side: &Side, path: &Path, task: Task) -> Order {
    let setting: Setting = plan::STANDARD;
    Order { side: side.clone(), path: path.into(), setting, task }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cold_run_that_fetched_nothing_or_nobody_knows_what_is_none() {
        assert!(check_cold(Some(4096)).is_ok());
        let told = |read_bytes| check_cold(read_bytes).unwrap_err().to_string();
        assert!(told(Some(0)).contains("was not cold"));
        assert!(told(None).contains("does not tell"));
    }
}

//! One session: a directory of its own, the sides, the records, and the table at the end.

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use pellucid_lab_report::goals::Goals;
use pellucid_lab_report::plan::Setting;
use pellucid_lab_report::record::parameter::UNTIL_PERCENT;
use pellucid_lab_report::record::{
    Account, Alone, CellResult, Limit, Observation, Parameters, Phase, Session, SideDescription,
};
use pellucid_lab_report::table;
use pellucid_lab_report::verdict::{Loads, Verdict};

use crate::blocks::{Rounds, Sample, Turn};
use crate::common::Common;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::machine;
use crate::side::{self, Recovery, Side};
use crate::sink::{Record, Sink};

/// The scenario whose databases may be under the recovery model FULL.
const OF_RECOVERY_MODELS: &str = "purchase";

/// Where a session takes place; its directory goes when it is dropped, or when a signal ends the lab.
#[derive(Debug)]
pub struct Place {
    pub sides: Vec<Side>,
    scenario: &'static str,
    common: Common,
    dir: tempfile::TempDir,
    sink: Sink,
    progress: ProgressBar,
    session: Option<Session>,
    cells: Vec<CellResult>,
    loads: Loads,
    observations: Vec<Observation>,
}

/// What is special to a scenario, in the words of its record.
#[derive(Debug, Default)]
pub struct Conditions {
    pub sides: Vec<SideDescription>,
    pub warm_up_rounds: usize,
    pub limit: Option<Limit>,
    /// As [`Rounds::until`], in percent.
    pub until_percent: Option<f64>,
    pub setting: Option<Setting>,
    pub size: Option<u64>,
    pub parameters: Parameters,
}

impl Place {
    /// Opens a place for a session of `scenario`; a signal that asks the lab to stop ends it, and leaves nothing but its
    /// records.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Invalid`] for sides that are not to be had.
    pub fn open(scenario: &'static str, common: &Common) -> Result<Self> {
        interrupt::listen()?;
        Self::open_deaf(scenario, common)
    }

    /// As [`Place::open`], for a scenario that goes by the signals itself, since it has to count what was done.
    ///
    /// # Errors
    /// As [`Place::open`].
    pub fn open_deaf(scenario: &'static str, common: &Common) -> Result<Self> {
        let dir = common.dir();
        let dir = dir.canonicalize().map_err(Error::io(dir.display().to_string()))?;
        let dir = interrupt::directory("pellucid-lab-", &dir)?;
        let key_file = dir.path().join("key");
        let sides = common.sides.sides(&key_file)?;
        let is_under_full = |side: &Side| side.recovery != Recovery::Simple;
        if scenario != OF_RECOVERY_MODELS && sides.iter().any(is_under_full) {
            return Err(Error::invalid(format!(
                "{scenario}: sides full and archived are of `lab {OF_RECOVERY_MODELS}` alone"
            )));
        }
        let sink = Sink::open(&common.records(scenario), common.json)?;
        side::write_key_file(&key_file)?;
        let (common, progress) = (common.clone(), ProgressBar::hidden());
        let (session, cells, loads, observations) =
            (None, Vec::new(), Loads::default(), Vec::new());
        Ok(Self {
            sides,
            scenario,
            common,
            dir,
            sink,
            progress,
            session,
            cells,
            loads,
            observations,
        })
    }

    /// The session's directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes the session's record; `cells` will be measured.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn begin(&mut self, mut conditions: Conditions, cells: usize) -> Result<Rounds> {
        if let Some(percent) = conditions.until_percent {
            conditions.parameters.insert(UNTIL_PERCENT.into(), percent.into());
        }
        let (schema, name, started_unix_s) = Session::stamp();
        let session = Session {
            schema,
            session: name.clone(),
            started_unix_s,
            scenario: self.scenario.into(),
            sides: conditions.sides,
            rounds: self.common.rounds,
            warm_up_rounds: conditions.warm_up_rounds,
            seed: self.common.seed,
            limit: conditions.limit,
            setting: conditions.setting,
            size: conditions.size,
            parameters: conditions.parameters,
            machine: machine::describe(self.path())?,
        };
        self.sink.write(&Record::Session(&session))?;
        let rounds = Rounds {
            session: name,
            sides: session.sides.iter().map(|side| side.side.clone()).collect(),
            rounds: session.rounds,
            warm_up_rounds: session.warm_up_rounds,
            seed: session.seed,
            until: conditions.until_percent.map(|percent| 1.0 + percent / 100.0),
        };
        self.progress = progress(rounds.runs(cells));
        self.session = Some(session);
        Ok(rounds)
    }

    /// Measures one cell and writes its records; `run` writes that of its run.
    ///
    /// # Errors
    /// As [`Rounds::measure`].
    pub fn measure(
        &mut self,
        rounds: &Rounds,
        cell: &str,
        mut run: impl FnMut(Turn, &mut Sink) -> Result<Sample>,
    ) -> Result<()> {
        self.progress.set_message(cell.to_string());
        let of_cell = rounds.measure(cell, |turn| {
            let sample = run(turn, &mut self.sink)?;
            self.progress.inc(1);
            Ok(sample)
        })?;
        // What a narrow interval spared.
        let left =
            of_cell.first().map_or(0, |cell| rounds.rounds.saturating_sub(cell.ratios.len()));
        self.progress.inc((left * rounds.sides.len()) as u64);
        of_cell.iter().try_for_each(|result| self.sink.write(&Record::Cell(result)))?;
        self.cells.extend(of_cell);
        Ok(())
    }

    /// Writes one number of a run of an experiment.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn observe(&mut self, observation: Observation) -> Result<()> {
        self.sink.write(&Record::Observation(&observation))?;
        self.observations.push(observation);
        Ok(())
    }

    /// One run of an experiment is done; `next` is what comes.
    pub fn step(&mut self, next: &str) {
        self.progress.inc(1);
        self.progress.set_message(next.to_string());
    }

    /// Writes the record of a phase.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn phase(&mut self, phase: Phase) -> Result<()> {
        self.progress.set_message(phase.phase.clone());
        self.progress.inc(1);
        self.sink.write(&Record::Phase(&phase))?;
        self.loads.phases.push(phase);
        Ok(())
    }

    /// Writes the record of what was done with nobody else there.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn alone(&mut self, alone: Alone) -> Result<()> {
        self.sink.write(&Record::Alone(&alone))?;
        self.loads.alone.push(alone);
        Ok(())
    }

    /// Writes the record of the count at the end.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn account(&mut self, account: Account) -> Result<()> {
        self.sink.write(&Record::Account(&account))?;
        self.loads.accounts.push(account);
        Ok(())
    }

    /// Judges, and prints the table.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn finish(mut self) -> Result<Vec<CellResult>> {
        let (sessions, verdict) = self.judge()?;
        if !self.common.json {
            println!(
                "{}",
                table::render(&sessions, &self.cells, &self.loads, &self.observations, &verdict)
            );
        }
        Ok(self.cells)
    }

    /// Judges without a word.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn end(mut self) -> Result<Vec<CellResult>> {
        self.judge()?;
        Ok(self.cells)
    }

    fn judge(&mut self) -> Result<(Vec<Session>, Verdict)> {
        self.progress.finish_and_clear();
        let sessions: Vec<Session> = self.session.take().into_iter().collect();
        let verdict = Verdict::of(&sessions, &self.cells, &Goals::read())?.with(
            &sessions,
            &self.loads,
            &self.observations,
        );
        self.sink.write(&Record::Verdict(&verdict))?;
        Ok((sessions, verdict))
    }
}

/// On standard error, and only on a terminal.
fn progress(runs: usize) -> ProgressBar {
    let progress = ProgressBar::new(runs as u64);
    if let Ok(style) = ProgressStyle::with_template(
        "{bar:30} run {pos} of {len}  {msg}  {elapsed_precise}, {eta} left",
    ) {
        progress.set_style(style);
    }
    progress.enable_steady_tick(Duration::from_millis(500));
    progress
}

//! One side of a load: its database, its clients, and what is done to it while they go on.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{copy_whole, length, remove};
use pellucid_lab_measure::machine::Load;
use pellucid_lab_measure::program::{Program, Said};
use pellucid_lab_measure::side::{Kind, Side};
use pellucid_lab_report::plan::Setting;
use pellucid_lab_report::record::{Account, Alone, Phase, Scanned, SideDescription};

use super::LoadOptions;
use crate::crew::Crew;
use crate::fixture::settle;
use crate::pool;
use crate::scenario::application;
use crate::scenario::rewrite;
use crate::scenario::step::Step;
use crate::scenario::whole::MARKER;
use crate::worker::{Order, Report, Task};

const MB: f64 = 1e6;
/// Changes of the certificate; each is one process.
const REWRAPS: usize = 10;
/// Of load before the first phase, in no figure.
const WARM_UP: Duration = Duration::from_secs(3);
/// How often a scan is asked how far it is.
const POLL: Duration = Duration::from_millis(200);
/// How often the log's length is looked at.
const LOG_POLL: Duration = Duration::from_millis(10);
/// Of load before and after what a phase is about.
const AROUND: Duration = Duration::from_millis(300);

/// The database of one side, and its clients.
#[derive(Debug)]
pub struct Arm {
    side: Side,
    setting: Setting,
    /// What scans a sealed database.
    program: Option<Program>,
    /// What makes backups, of either kind.
    backups: Option<Program>,
    dir: PathBuf,
    path: PathBuf,
    crew: Option<Crew>,
    acknowledged: Vec<u64>,
}

impl Arm {
    /// A copy of the template. A sealed one is encrypted for the first time, its certificates changed, and its encryption
    /// switched off again, so that the first scan under load switches it on.
    pub fn prepare(
        side: Side,
        sealed: Option<&Side>,
        steps: &[Step],
        (setting, orders): (Setting, u64),
        template: &Path,
        dir: PathBuf,
    ) -> Result<(Self, Vec<Alone>)> {
        std::fs::create_dir(&dir).map_err(Error::io(dir.display().to_string()))?;
        let path = dir.join("run.db");
        copy_whole(template, &path)?;
        let program = Program::of(&side, &dir)?;
        let backups = match sealed {
            Some(sealed) => Program::of(sealed, &dir)?,
            None => None,
        };
        let (crew, acknowledged) = (None, Vec::new());
        let arm = Self { side, setting, program, backups, dir, path, crew, acknowledged };
        let mut noted = Vec::new();
        if let Some(program) = arm.program.clone() {
            noted.push(arm.alone("first encryption", &[program.run(&arm.encrypt(), &arm.path)?])?);
            arm.side.check_file(&arm.path, MARKER)?;
            if steps.contains(&Step::Encrypt) {
                noted.push(arm.rewraps(&program)?);
                let off = program.run(&Step::Off.words(), &arm.path)?;
                noted.push(arm.alone("switching off", &[off])?);
            }
        }
        match arm.single(&arm.side, Task::Rows)? {
            Report::Rows { rows, .. } if rows == orders => Ok((arm, noted)),
            other => Err(Error::invalid(format!("{}: of {orders} rows, {other:?}", arm.side.name))),
        }
    }

    fn encrypt(&self) -> Vec<&str> {
        let mut words = Step::Encrypt.words();
        if let Kind::Sealed { algorithm, .. } = &self.side.kind {
            words.extend(["--algorithm", algorithm]);
        }
        words
    }

    /// Another certificate, again and again; at the end the key file that the clients have.
    fn rewraps(&self, program: &Program) -> Result<Alone> {
        for name in ["one", "two"] {
            program.run_bare(&["cert", "create"], Path::new(name))?;
        }
        program.run(&["rewrap", "--certificate", "one"], &self.path)?;
        let said = (0..REWRAPS)
            .map(|turn| {
                settle();
                let name = ["two", "one"][turn % 2];
                program.run_bare(&["rewrap", "--certificate", name], &self.path)
            })
            .collect::<Result<Vec<_>>>()?;
        let key_file = program.key_file().display().to_string();
        program.run_bare(&["rewrap", "--new-key-file", &key_file], &self.path)?;
        self.alone("rewrap", &said)
    }

    fn alone(&self, what: &str, said: &[Said]) -> Result<Alone> {
        Ok(Alone {
            session: String::new(),
            side: self.side.name.clone(),
            what: what.into(),
            bytes: length(&self.path)?,
            wall_s: said.iter().map(|said| said.wall_s).collect(),
            work_s: said.iter().map(|said| said.seconds()).collect(),
        })
    }

    /// The record's words for it.
    ///
    /// # Errors
    /// As [`Side::describe`].
    pub fn describe(&self, steps: &[Step]) -> Result<SideDescription> {
        let change = match self.program {
            _ if !steps.contains(&Step::Encrypt) => "a full backup, others go on",
            Some(_) => "a scan in short transactions, others go on",
            None => "a plain rewrite through sqlite_dbpage at the scan's pace, others go on",
        };
        Ok(SideDescription {
            change: Some(change.into()),
            file_bytes: Some(length(&self.path)?),
            page_size_bytes: Some(self.setting.page_size_bytes),
            ..self.side.describe()?
        })
    }

    /// Connects the clients, and lets them work a little before the first phase.
    ///
    /// # Errors
    /// Of a client that failed.
    pub fn employ(&mut self, tasks: &[application::Task]) -> Result<()> {
        let mut crew = Crew::start(&self.side, &self.path, self.setting, tasks, &self.dir)?;
        // What making the database left unwritten, and cold caches, are no part of the first phase.
        rustix::fs::sync();
        crew.go()?;
        std::thread::sleep(WARM_UP);
        crew.stop(|| WARM_UP.as_secs_f64())?;
        self.crew = Some(crew);
        Ok(())
    }

    /// Runs one phase.
    ///
    /// # Errors
    /// Of what was done beside the clients; their failed statements are none.
    pub fn run(&mut self, step: &Step, options: &LoadOptions) -> Result<Phase> {
        settle();
        let load = Load::begin();
        let crew = self.crew.as_mut().ok_or_else(|| Error::invalid("a phase without clients"))?;
        crew.go()?;
        let start = Instant::now();
        std::thread::sleep(AROUND);
        let mut log_bytes = None;
        let scan = match step {
            Step::Quiet(_) => {
                std::thread::sleep(Duration::from_secs_f64(options.quiet_s));
                None
            }
            Step::Backup(compression) => {
                let (scan, longest) = self.backup(compression)?;
                log_bytes = Some(longest);
                Some(scan)
            }
            _ => Some(self.scan(step, options)?),
        };
        std::thread::sleep(AROUND);
        let crew = self.crew.as_mut().ok_or_else(|| Error::invalid("a phase without clients"))?;
        let mut wall_s = 0.0;
        let noticed = crew.stop(|| {
            wall_s = start.elapsed().as_secs_f64();
            wall_s
        })?;
        let (others_share, stolen_share) = load.end().shares(None);
        self.acknowledged = noticed.acknowledged;
        Ok(Phase {
            session: String::new(),
            phase: step.name(),
            place: 0,
            side: self.side.name.clone(),
            wall_s,
            scan,
            log_bytes,
            write: noticed.write,
            read: noticed.read,
            others_share,
            stolen_share,
        })
    }

    fn scan(&self, step: &Step, options: &LoadOptions) -> Result<Scanned> {
        let (wall_s, cpu_s, share) = match &self.program {
            Some(program) => self.sealed_scan(program, step, options)?,
            None => self.plain_rewrite(step, options)?,
        };
        let mb_per_s = length(&self.path)? as f64 * share / MB / wall_s;
        Ok(Scanned { wall_s, cpu_s, share, mb_per_s })
    }

    /// A full backup; and how long the log was at its longest.
    fn backup(&self, compression: &str) -> Result<(Scanned, u64)> {
        let program = self
            .backups
            .as_ref()
            .ok_or_else(|| Error::invalid("backups are the program's of a sealed side"))?;
        let media = self.dir.join("media.bak");
        remove(&media)?;
        let to = format!("--to={}", media.display());
        let words = ["backup", "--compression", compression, &to];
        let bytes = length(&self.path)?;
        let mut running = match self.side.kind {
            Kind::Sealed { .. } => program.start(&words, &self.path)?,
            _ => program.start_bare(&[&words[..], &["--no-encryption"]].concat(), &self.path)?,
        };
        let log = pellucid_lab_measure::files::beside(&self.path, "-wal");
        let mut longest = 0;
        while !running.has_ended()? {
            longest = longest.max(log.metadata().map_or(0, |found| found.len()));
            std::thread::sleep(LOG_POLL);
        }
        let Said { wall_s, cpu_s, .. } = running.end()?;
        let mb_per_s = bytes as f64 / MB / wall_s;
        Ok((Scanned { wall_s, cpu_s, share: 1.0, mb_per_s }, longest))
    }

    fn sealed_scan(
        &self,
        program: &Program,
        step: &Step,
        options: &LoadOptions,
    ) -> Result<(f64, Option<f64>, f64)> {
        if *step != Step::Encrypt {
            let said = program.run(&step.words(), &self.path)?;
            said.scan_is("complete")?;
            let share = if *step == Step::Resume { 1.0 - options.suspend_at } else { 1.0 };
            return Ok((said.wall_s, said.cpu_s, share));
        }
        let mut running = program.start(&self.encrypt(), &self.path)?;
        loop {
            std::thread::sleep(POLL);
            if running.has_ended()? {
                return Err(Error::invalid(
                    "the scan ended before it could be suspended: a larger --size-mib, an earlier --suspend-at",
                ));
            }
            if program.scanned(&self.path)?.is_some_and(|share| share >= options.suspend_at) {
                break;
            }
        }
        program.run(&["scan", "suspend"], &self.path)?;
        let said = running.end()?;
        said.scan_is("suspended")?;
        let share = program.scanned(&self.path)?.unwrap_or(options.suspend_at);
        Ok((said.wall_s, said.cpu_s, share))
    }

    fn plain_rewrite(&self, step: &Step, options: &LoadOptions) -> Result<(f64, Option<f64>, f64)> {
        let (from, to) = match step {
            Step::Encrypt => (0.0, options.suspend_at),
            Step::Resume => (options.suspend_at, 1.0),
            _ => (0.0, 1.0),
        };
        let task = rewrite::Task { from, to, hold_us: Some(options.hold_us) };
        match self.single(&self.side, Task::Rewrite(task))? {
            Report::Worked(worked) => Ok((worked.wall_s, worked.cpu_s, to - from)),
            other => Err(Error::invalid(format!("a rewrite answers {other:?}"))),
        }
    }

    /// Sends the clients home, makes a sealed database a plain one again, and looks whether every row is there.
    pub fn account(mut self, plain: &Side, orders: u64) -> Result<(Account, Vec<Alone>)> {
        if let Some(crew) = self.crew.take() {
            crew.end()?;
        }
        self.check_backup(plain, orders)?;
        let mut noted = Vec::new();
        if let Some(program) = &self.program {
            let said = program.run(&["decrypt"], &self.path)?;
            noted.push(self.alone("decrypt", &[said])?);
        }
        let acknowledged = self.acknowledged.clone();
        match self.single(plain, Task::Account { orders, acknowledged })? {
            Report::Accounted { wrong, integrity } => {
                let acknowledged = self.acknowledged.iter().sum();
                let (session, side) = (String::new(), self.side.name);
                Ok((Account { session, side, acknowledged, wrong, integrity }, noted))
            }
            other => Err(Error::invalid(format!("{}: {other:?}", self.side.name))),
        }
    }

    /// Restores the last backup, if there is one: every order is in it.
    fn check_backup(&self, plain: &Side, orders: u64) -> Result<()> {
        let (media, restored) = (self.dir.join("media.bak"), self.dir.join("restored.db"));
        let Some(program) = self.backups.as_ref().filter(|_| media.exists()) else { return Ok(()) };
        let to = format!("--to={}", restored.display());
        let algorithm = match &self.side.kind {
            Kind::Sealed { algorithm, .. } => {
                program.run(&["restore", "--decrypted", &to], &media)?;
                Some(algorithm.as_str())
            }
            _ => {
                program.run_bare(&["restore", &to], &media)?;
                None
            }
        };
        program.check_media(std::slice::from_ref(&media), algorithm, MARKER)?;
        let (side, setting) = (plain.clone(), self.setting);
        let order = Order { side, path: restored.clone(), setting, task: Task::Rows };
        match pool::single(&order, &self.dir)? {
            Report::Rows { rows, .. } if rows == orders => {
                remove(&media)?;
                remove(&restored)
            }
            other => Err(Error::invalid(format!("a backup of {orders} rows: {other:?}"))),
        }
    }

    fn single(&self, side: &Side, task: Task) -> Result<Report> {
        let order =
            Order { side: side.clone(), path: self.path.clone(), setting: self.setting, task };
        pool::single(&order, &self.dir)
    }
}

//! Encryption switched on and off, keys and algorithms changed, while four writers and four readers go on.
//!
//! Every side has the same database under the same load, and its clients stay connected from the first phase to the last.
//! Where the sealed side scans, the plain one has each page rewritten through `sqlite_dbpage` at the same pace: what an
//! application notices of that, it would notice of any rewrite. A phase runs on one side after the other, in an order drawn
//! from the seed. First encryption and the way back rebuild the file and need it for themselves; they are timed without a
//! load.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::arguments::ScanLoadOptions;
use crate::blocks::shuffled;
use crate::crew::Crew;
use crate::error::{Error, Result};
use crate::fixture::{copy_whole, length, settle};
use crate::machine::Load;
use crate::plan::{self, Setting};
use crate::pool;
use crate::program::Program;
use crate::random::Random;
use crate::record::{Account, Alone, Phase, Scanned, SideDescription};
use crate::scenario::application;
use crate::scenario::rewrite;
use crate::scenario::step::Step;
use crate::scenario::whole::MARKER;
use crate::session::{Conditions, Place};
use crate::side::{Kind, Side};
use crate::whole::room;
use crate::worker::{Order, Report, Task};

const MIB: u64 = 1 << 20;
const MB: f64 = 1e6;
/// Beside the databases: the copies of a first encryption, WAL and journal.
const FILES_BESIDE: u64 = 2;
/// Changes of the certificate; each is one process.
const REWRAPS: usize = 10;
/// Of load before the first phase, in no figure.
const WARM_UP: Duration = Duration::from_secs(3);
/// How often a scan is asked how far it is.
const POLL: Duration = Duration::from_millis(200);
/// Of load before and after what a phase is about.
const AROUND: Duration = Duration::from_millis(300);
/// For an estimate: MB/s of filling, copying, encrypting and checking together, and of a scan under load.
const MB_PER_S_AROUND: f64 = 30.0;
const MB_PER_S_OF_SCAN: f64 = 45.0;

/// Measures every phase on every side.
///
/// # Errors
/// Of the first thing that went wrong; failed statements of the load are no error.
pub fn measure(options: &ScanLoadOptions) -> Result<bool> {
    let steps = Step::all(&options.algorithms);
    let mut common = options.common.clone();
    // Each phase is once on each side.
    common.rounds = 1;
    if common.estimate {
        println!("{:.0}", estimate(options, &steps, common.sides.sides.len()));
        return Ok(true);
    }
    let mut place = Place::open("scan-load", &common)?;
    if !matches!(place.sides.first(), Some(Side { kind: Kind::Plain, .. })) {
        return Err(Error::invalid("scan-load: the first side is the control, plain"));
    }
    let bytes = options.size_mib * MIB;
    room(place.path(), (place.sides.len() as u64 + FILES_BESIDE) * bytes)?;
    let setting = Setting { journal: options.journal, ..plan::STANDARD };

    let sides = place.sides.clone();
    let (template, orders) = fill(&sides[0], setting, bytes, common.seed, place.path())?;
    let (mut arms, mut alone) = (Vec::new(), Vec::new());
    for side in &sides {
        let dir = place.path().join(&side.name);
        let (arm, noted) = Arm::prepare(side.clone(), setting, orders, &template, dir)?;
        arms.push(arm);
        alone.extend(noted);
    }
    std::fs::remove_file(&template).map_err(Error::io(template.display().to_string()))?;
    let conditions = Conditions {
        sides: arms.iter().map(Arm::describe).collect::<Result<_>>()?,
        warm_up_rounds: 0,
        limit: None,
        setting: Some(setting),
        size: Some(options.size_mib),
        ..Conditions::default()
    };
    let session = place.begin(conditions, steps.len())?.session;
    alone
        .into_iter()
        .try_for_each(|alone| place.alone(Alone { session: session.clone(), ..alone }))?;

    for arm in &mut arms {
        arm.employ(&options.tasks(orders))?;
    }
    for (number, step) in steps.iter().enumerate() {
        let order = shuffled(arms.len(), &mut Random::of(&[common.seed, number as u64]));
        for (drawn, arm) in order.into_iter().enumerate() {
            let phase = arms[arm].run(step, options)?;
            place.phase(Phase { session: session.clone(), place: drawn, ..phase })?;
        }
    }
    for arm in arms {
        let (account, noted) = arm.account(&sides[0], orders)?;
        noted
            .into_iter()
            .try_for_each(|alone| place.alone(Alone { session: session.clone(), ..alone }))?;
        place.account(Account { session: session.clone(), ..account })?;
    }
    place.finish()?;
    Ok(true)
}

fn estimate(options: &ScanLoadOptions, steps: &[Step], sides: usize) -> f64 {
    let quiet = steps.iter().filter(|step| matches!(step, Step::Quiet(_))).count();
    // Two of the others do one scan between them.
    let scans = steps.len() - quiet - 1;
    let megabytes = options.size_mib as f64 * MIB as f64 / MB;
    let around = megabytes / MB_PER_S_AROUND;
    sides as f64
        * (quiet as f64 * options.quiet_s + around + scans as f64 * megabytes / MB_PER_S_OF_SCAN)
}

/// The plain database that every side gets a copy of, and its orders.
fn fill(
    side: &Side,
    setting: Setting,
    bytes: u64,
    seed: u64,
    dir: &Path,
) -> Result<(PathBuf, u64)> {
    let path = dir.join("template.db");
    let task = Task::PrepareApplication { bytes, seed };
    match pool::single(&Order { side: side.clone(), path: path.clone(), setting, task }, dir)? {
        Report::Rows { rows, .. } => Ok((path, rows)),
        other => Err(Error::invalid(format!("the new database answers {other:?}"))),
    }
}

/// The database of one side, and its clients.
#[derive(Debug)]
struct Arm {
    side: Side,
    setting: Setting,
    program: Option<Program>,
    dir: PathBuf,
    path: PathBuf,
    crew: Option<Crew>,
    acknowledged: Vec<u64>,
}

impl Arm {
    /// A copy of the template. A sealed one is encrypted for the first time, its certificates changed, and its encryption
    /// switched off again, so that the first scan under load switches it on.
    fn prepare(
        side: Side,
        setting: Setting,
        orders: u64,
        template: &Path,
        dir: PathBuf,
    ) -> Result<(Self, Vec<Alone>)> {
        std::fs::create_dir(&dir).map_err(Error::io(dir.display().to_string()))?;
        let path = dir.join("run.db");
        copy_whole(template, &path).map_err(Error::io(path.display().to_string()))?;
        let program = Program::of(&side, &dir)?;
        let (crew, acknowledged) = (None, Vec::new());
        let arm = Self { side, setting, program, dir, path, crew, acknowledged };
        let mut noted = Vec::new();
        if let Some(program) = arm.program.clone() {
            noted.push(arm.alone("first encryption", &[program.run(&arm.encrypt(), &arm.path)?])?);
            arm.side.check_file(&arm.path, MARKER)?;
            noted.push(arm.rewraps(&program)?);
            let off = program.run(&Step::Off.words(), &arm.path)?;
            noted.push(arm.alone("switching off", &[off])?);
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

    fn alone(&self, what: &str, said: &[crate::program::Said]) -> Result<Alone> {
        Ok(Alone {
            session: String::new(),
            side: self.side.name.clone(),
            what: what.into(),
            bytes: length(&self.path)?,
            wall_s: said.iter().map(|said| said.wall_s).collect(),
            work_s: said.iter().map(|said| said.seconds()).collect(),
        })
    }

    fn describe(&self) -> Result<SideDescription> {
        let change = match self.program {
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

    fn employ(&mut self, tasks: &[application::Task]) -> Result<()> {
        let mut crew = Crew::start(&self.side, &self.path, self.setting, tasks, &self.dir)?;
        // What making the database left unwritten, and cold caches, are no part of the first phase.
        rustix::fs::sync();
        crew.go()?;
        std::thread::sleep(WARM_UP);
        crew.stop(|| WARM_UP.as_secs_f64())?;
        self.crew = Some(crew);
        Ok(())
    }

    fn run(&mut self, step: &Step, options: &ScanLoadOptions) -> Result<Phase> {
        settle();
        let load = Load::begin();
        let crew = self.crew.as_mut().ok_or_else(|| Error::invalid("a phase without clients"))?;
        crew.go()?;
        let start = Instant::now();
        std::thread::sleep(AROUND);
        let scan = match step {
            Step::Quiet(_) => {
                std::thread::sleep(Duration::from_secs_f64(options.quiet_s));
                None
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
            write: noticed.write,
            read: noticed.read,
            others_share,
            stolen_share,
        })
    }

    fn scan(&self, step: &Step, options: &ScanLoadOptions) -> Result<Scanned> {
        let (wall_s, cpu_s, share) = match &self.program {
            Some(program) => self.sealed_scan(program, step, options)?,
            None => self.plain_rewrite(step, options)?,
        };
        let mb_per_s = length(&self.path)? as f64 * share / MB / wall_s;
        Ok(Scanned { wall_s, cpu_s, share, mb_per_s })
    }

    fn sealed_scan(
        &self,
        program: &Program,
        step: &Step,
        options: &ScanLoadOptions,
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

    fn plain_rewrite(
        &self,
        step: &Step,
        options: &ScanLoadOptions,
    ) -> Result<(f64, Option<f64>, f64)> {
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
    fn account(mut self, plain: &Side, orders: u64) -> Result<(Account, Vec<Alone>)> {
        if let Some(crew) = self.crew.take() {
            crew.end()?;
        }
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

    fn single(&self, side: &Side, task: Task) -> Result<Report> {
        let order =
            Order { side: side.clone(), path: self.path.clone(), setting: self.setting, task };
        pool::single(&order, &self.dir)
    }
}

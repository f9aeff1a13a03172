//! One run: a fresh database, the processes, a look at the processors each second, and the count at the end.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};

use pellucid_lab_measure::blocks::Turn;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{copy_whole, length, remove};
use pellucid_lab_measure::histogram::Histogram;
use pellucid_lab_measure::machine::Load;
use pellucid_lab_measure::session::Place;
use pellucid_lab_measure::side::Side;
use pellucid_lab_report::plan::{Journal, Setting, Size};
use pellucid_lab_report::record::SideDescription;

use crate::fixture::settle;
use crate::pool::{self, Worker};
use crate::scenario::hummer::{Answer, Change, Kind, Loop, Ran, Task, MARKER};
use crate::worker::{self, Order, Report};

use super::plan::{Cell, Piece, Scenario};
use super::processor::{self, Sampler};

/// Of a run, the last number that is written: with it, the run is complete.
pub const LAST: &str = "elapsed_s";

const PERCENTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)];

/// The sides, each with its prepared databases.
#[derive(Debug)]
pub struct Ground<'a> {
    scenario: &'a Scenario,
    seed: u64,
    arms: Vec<Arm>,
}

#[derive(Debug)]
struct Arm {
    side: Side,
    dir: PathBuf,
    description: SideDescription,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Complete,
    /// Somebody changed its control table: it is not what its cell says.
    Changed,
    Stopped,
}

/// How a run ended, and what was measured in it.
#[derive(Debug)]
pub struct Done {
    pub end: End,
    /// What, with its unit as the last word; and how much.
    pub numbers: Vec<(String, f64)>,
}

impl End {
    /// Of the cell's name: what is not as asked for stays apart.
    pub fn suffix(self) -> &'static str {
        match self {
            End::Complete => "",
            End::Changed => "-changed",
            End::Stopped => "-stopped",
        }
    }
}

impl<'a> Ground<'a> {
    /// Makes the databases that the runs of `cells` begin with, and makes sure that they are what each side claims.
    ///
    /// # Errors
    /// [`Error::Invalid`] if one is not.
    pub fn prepare(
        scenario: &'a Scenario,
        cells: &[Cell],
        place: &Place,
        seed: u64,
    ) -> Result<Self> {
        let mut arms = Vec::new();
        for side in &place.sides {
            let dir = place.path().join(&side.name);
            std::fs::create_dir(&dir).map_err(Error::io(dir.display().to_string()))?;
            let mut description = side.describe()?;
            for cell in cells {
                let template = template(&dir, cell);
                if template.exists() {
                    continue;
                }
                let setting = scenario.setting(cell, scenario.size(cell));
                let task = worker::Task::Hummer(Task::Prepare { seed });
                let order = Order { side: side.clone(), path: template.clone(), setting, task };
                match pool::single(&order, &dir)? {
                    Report::Hummer(Answer::Prepared { engine }) => {
                        description.engine = Some(engine)
                    }
                    other => return Err(unexpected(side, &other)),
                }
                side.check_file(&template, MARKER)?;
                description.file_bytes = Some(length(&template)?);
                description.page_size_bytes = Some(scenario.page_size_bytes);
            }
            arms.push(Arm { side: side.clone(), dir, description });
        }
        Ok(Self { scenario, seed, arms })
    }

    /// The record's words for the sides.
    pub fn describe(&self) -> Vec<SideDescription> {
        self.arms.iter().map(|arm| arm.description.clone()).collect()
    }

    /// Name of a side, and the words with which its running database is reached.
    pub fn shown(&self, side: usize) -> (&str, String) {
        let arm = &self.arms[side];
        let database = format!("--database {}", arm.database().display());
        let key = match &arm.side.kind {
            pellucid_lab_measure::side::Kind::Sealed { key_file, .. } => {
                format!(" --key-file {}", key_file.display())
            }
            _ => String::new(),
        };
        (&arm.side.name, database + &key)
    }

    /// Runs a cell on one side, and counts its rows afterwards.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a row that was acknowledged is not there, or one more.
    pub fn run(&self, cell: &Cell, turn: Turn, interrupted: &AtomicBool) -> Result<Done> {
        let arm = &self.arms[turn.side];
        let size = self.scenario.size(cell);
        let setting = self.scenario.setting(cell, size);
        let delay_ms = if cell.piece == Piece::Elapsed { self.scenario.delay_ms } else { 0 };
        let (path, dirty_kib) = arm.fresh(cell, setting, delay_ms)?;
        let mut workers = self.start(arm, cell, turn, setting)?;
        let start_delay = std::time::Duration::from_millis(self.start_delay_ms(cell));
        let start = pool::start(&mut workers)? + start_delay;
        let load = Load::begin();
        let mut sampler = Sampler::new(workers.iter().map(Worker::id), start);

        let (tell, told) = mpsc::channel();
        let reports = std::thread::scope(|scope| {
            let workers = &mut workers;
            scope.spawn(move || {
                let reports: Result<Vec<Report>> = workers.iter_mut().map(Worker::report).collect();
                // Nobody listens only if the lab is about to end with an error.
                let _ = tell.send(reports);
            });
            let mut stopped = false;
            loop {
                match told.recv_timeout(sampler.wait()) {
                    Ok(reports) => break reports,
                    Err(RecvTimeoutError::Disconnected) => {
                        break Err(Error::invalid("nobody reads what the workers report"));
                    }
                    Err(RecvTimeoutError::Timeout) => sampler.look(),
                }
                if interrupted.load(Ordering::Relaxed) && !stopped {
                    let stop = Change { finished: Some(true), live: true, ..Change::default() };
                    // The workers go on if nobody tells them: it is tried again.
                    match arm.control(&path, setting, stop) {
                        Ok(()) => stopped = true,
                        Err(error) => eprintln!("lab: hummer is not stopped yet: {error}"),
                    }
                }
            }
        })?;
        let load = load.end();
        drop(workers);
        let ran = reports
            .into_iter()
            .map(|report| match report {
                Report::Hummer(Answer::Ran(ran)) => Ok(*ran),
                other => Err(unexpected(&arm.side, &other)),
            })
            .collect::<Result<Vec<Ran>>>()?;

        let cpu_s: Option<f64> = ran.iter().map(|ran| ran.cpu_s).sum();
        let shares = load.shares(cpu_s);
        let samples = sampler.end(cpu_s.unwrap_or_default());

        let sum = |of: fn(&Ran) -> u64| ran.iter().map(of).sum::<u64>();
        let expected = Size {
            vendors: size.vendors + sum(|ran| ran.vendors),
            cards: size.cards + sum(|ran| ran.cards),
            purchases: size.purchases + sum(|ran| ran.purchases),
        };
        let file_bytes = arm.count(&path, setting, expected)?;
        let end = if ran.iter().any(|ran| ran.stopped) {
            End::Stopped
        } else if ran.iter().any(|ran| !ran.effects_ms.is_empty()) {
            End::Changed
        } else {
            End::Complete
        };
        let mut numbers = Numbers::default();
        numbers.work(&ran);
        numbers.add("others_percent_cpu", shares.0 * 100.0);
        numbers.add("stolen_percent_cpu", shares.1 * 100.0);
        numbers.add("dirty_kib", dirty_kib as f64);
        numbers.add("file_bytes", file_bytes as f64);
        let series = (1..=self.scenario.cpu_series_rounds).contains(&turn.round);
        numbers.processors(&ran, &samples, series);
        numbers.latencies(&ran);
        numbers.times(&ran);
        Ok(Done { end, numbers: numbers.0 })
    }

    /// The processes, ready to begin.
    fn start(&self, arm: &Arm, cell: &Cell, turn: Turn, setting: Setting) -> Result<Vec<Worker>> {
        let scenario = self.scenario;
        let rate = cell.piece == Piece::Rate;
        let loops = scenario.loops(cell);
        let mark_loop = match rate {
            // The same share of what there is to do.
            true => loops * scenario.cpu_at_loop / scenario.loops,
            false => scenario.cpu_at_loop,
        };
        let interval_ns = scenario.processes as f64 * 1e9 / scenario.rate.loops_per_s;
        let mut workers = (0..scenario.processes)
            .map(|worker| {
                let task = Loop {
                    synchronous: cell.synchronous,
                    loops,
                    creating_loops: if rate { 0 } else { scenario.creating_loops },
                    start_delay_ms: self.start_delay_ms(cell),
                    delay_every_loops: scenario.delay_every_loops,
                    mark_loop,
                    interval_ns: rate.then_some(interval_ns as u64),
                    processes: scenario.processes,
                    worker,
                    seed: vec![self.seed, turn.round as u64],
                };
                Worker::start(&arm.order(&arm.database(), setting, Task::Loop(task)), &arm.dir)
            })
            .collect::<Result<Vec<_>>>()?;
        workers.iter_mut().try_for_each(Worker::ready)?;
        Ok(workers)
    }

    fn start_delay_ms(&self, cell: &Cell) -> u64 {
        if cell.piece == Piece::Elapsed {
            self.scenario.start_delay_ms
        } else {
            0
        }
    }
}

impl Arm {
    /// Of the run that is under way.
    fn database(&self) -> PathBuf {
        self.dir.join("run.db")
    }

    fn order(&self, path: &Path, setting: Setting, task: Task) -> Order {
        let (side, path) = (self.side.clone(), path.to_path_buf());
        Order { side, path, setting, task: worker::Task::Hummer(task) }
    }

    /// A copy whose control table says what `cell` asks for; nothing of it waits to be written. And how much else does.
    fn fresh(&self, cell: &Cell, setting: Setting, delay_ms: u64) -> Result<(PathBuf, u64)> {
        let path = self.database();
        remove(&path)?;
        copy_whole(&template(&self.dir, cell), &path)?;
        let (mix, delay_ms) = (Some(cell.mix), Some(delay_ms));
        self.control(&path, setting, Change { mix, delay_ms, ..Change::default() })?;
        Ok((path, settle()))
    }

    fn control(&self, path: &Path, setting: Setting, change: Change) -> Result<()> {
        match pool::single(&self.order(path, setting, Task::Control(change)), &self.dir)? {
            Report::Hummer(Answer::Control(_)) => Ok(()),
            other => Err(unexpected(&self.side, &other)),
        }
    }

    /// Makes sure that exactly `expected` is there in a sound file of this side, gives its length, and removes it.
    fn count(&self, path: &Path, setting: Setting, expected: Size) -> Result<u64> {
        match pool::single(&self.order(path, setting, Task::Count), &self.dir)? {
            Report::Hummer(Answer::Counted(found)) if found == expected => {}
            Report::Hummer(Answer::Counted(found)) => {
                return Err(Error::invalid(format!(
                    "{}: {expected:?} was acknowledged, {found:?} is there",
                    self.side.name
                )));
            }
            other => return Err(unexpected(&self.side, &other)),
        }
        self.side.check_magic(path)?;
        let bytes = length(path)?;
        remove(path)?;
        Ok(bytes)
    }
}

/// The database that runs of `cell` begin with: empty, or filled for the fixed rate.
fn template(dir: &Path, cell: &Cell) -> PathBuf {
    let filled = if cell.piece == Piece::Rate { "filled" } else { "empty" };
    let journal = if cell.journal == Journal::Wal { "wal" } else { "delete" };
    dir.join(format!("{filled}-{journal}.db"))
}

fn unexpected(side: &Side, report: &Report) -> Error {
    Error::invalid(format!("{}: a worker answers {report:?}", side.name))
}

/// What a run comes to.
#[derive(Debug, Default)]
struct Numbers(Vec<(String, f64)>);

impl Numbers {
    fn add(&mut self, what: impl Into<String>, value: f64) {
        self.0.push((what.into(), value));
    }

    fn work(&mut self, ran: &[Ran]) {
        let sum = |of: fn(&Ran) -> u64| ran.iter().map(of).sum::<u64>() as f64;
        self.add("done_loops", sum(|ran| ran.loops));
        self.add("vendor_rows", sum(|ran| ran.vendors));
        self.add("card_rows", sum(|ran| ran.cards));
        self.add("purchase_rows", sum(|ran| ran.purchases));
        self.add("late_locks", sum(|ran| ran.busy));
        let effects = || ran.iter().flat_map(|ran| &ran.effects_ms).copied();
        if effects().next().is_some() {
            self.add("seen_changes", effects().count() as f64);
            self.add("longest_effect_ms", effects().fold(0.0, f64::max));
        }
    }

    /// Percent of all processors together: over the run, when the middle process passed its loop, and each second.
    fn processors(&mut self, ran: &[Ran], samples: &[processor::Sample], series: bool) {
        if let Some((workers, machine)) = processor::mean(samples) {
            self.add("workers_percent_cpu", workers);
            self.add("machine_percent_cpu", machine);
        }
        let mut passed: Vec<f64> = ran.iter().filter_map(|ran| ran.mark_s).collect();
        passed.sort_by(f64::total_cmp);
        if let Some(middle) = passed.get(passed.len() / 2) {
            self.add("loop_passed_s", *middle);
            if let Some(sample) = processor::at(samples, *middle) {
                self.add("workers_at_loop_percent_cpu", sample.workers_percent);
                self.add("machine_at_loop_percent_cpu", sample.machine_percent);
            }
        }
        if series {
            for sample in samples {
                let second = sample.from_s.round();
                self.add(format!("workers_second_{second}_percent_cpu"), sample.workers_percent);
                self.add(format!("machine_second_{second}_percent_cpu"), sample.machine_percent);
            }
        }
    }

    fn latencies(&mut self, ran: &[Ran]) {
        for (kind, name) in Kind::ALL {
            let mut all = Histogram::default();
            ran.iter().for_each(|ran| all.merge_sparse(&ran.latencies[kind as usize]));
            if all.count() == 0 {
                continue;
            }
            let sum_ns: u64 = ran.iter().map(|ran| ran.sums_ns[kind as usize]).sum();
            self.add(format!("{name}_operations"), all.count() as f64);
            self.add(format!("{name}_mean_us"), sum_ns as f64 / all.count() as f64 / 1e3);
            for (percentile, q) in PERCENTILES {
                self.add(format!("{name}_{percentile}_us"), all.percentile_ns(q) / 1e3);
            }
            self.add(format!("{name}_max_us"), all.latency().max_us);
        }
    }

    fn times(&mut self, ran: &[Ran]) {
        let mean = |of: fn(&Ran) -> f64| ran.iter().map(of).sum::<f64>() / ran.len() as f64;
        let longest = ran.iter().map(|ran| ran.elapsed_s).fold(0.0, f64::max);
        if let Some(cpu_s) = ran.iter().map(|ran| ran.cpu_s).sum::<Option<f64>>() {
            self.add("cpu_s", cpu_s);
        }
        self.add("delay_s", mean(|ran| ran.delayed_s));
        self.add("busy_s", mean(|ran| ran.elapsed_s - ran.delayed_s));
        self.add("mean_elapsed_s", mean(|ran| ran.elapsed_s));
        self.add(LAST, longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hummer::processor::Sample;

    fn ran(elapsed_s: f64, delayed_s: f64) -> Ran {
        let mut read = Histogram::default();
        read.add(1000);
        read.add(3000);
        Ran {
            latencies: [
                read.sparse(),
                Default::default(),
                Default::default(),
                Default::default(),
                Default::default(),
            ],
            sums_ns: [4000, 0, 0, 0, 0],
            loops: 2,
            elapsed_s,
            delayed_s,
            cpu_s: Some(0.5),
            mark_s: Some(elapsed_s / 2.0),
            ..Ran::default()
        }
    }

    #[test]
    fn a_run_comes_to_what_its_processes_did() {
        let mut numbers = Numbers::default();
        let ran = [ran(10.0, 4.0), ran(12.0, 4.0)];
        let sample = |from_s: f64| Sample {
            from_s,
            to_s: from_s + 1.0,
            workers_percent: 10.0 * from_s,
            machine_percent: 50.0,
        };
        let samples: Vec<_> = (0..10).map(|second| sample(f64::from(second))).collect();
        numbers.work(&ran);
        numbers.processors(&ran, &samples, true);
        numbers.latencies(&ran);
        numbers.times(&ran);
        let found = |what: &str| {
            let of_name: Vec<_> = numbers.0.iter().filter(|(name, _)| name == what).collect();
            assert!(of_name.len() < 2, "{what} is there twice");
            of_name.first().map(|(_, value)| *value)
        };
        assert_eq!(numbers.0.last().unwrap(), &(LAST.to_string(), 12.0));
        assert_eq!((found("busy_s"), found("mean_elapsed_s")), (Some(7.0), Some(11.0)));
        assert_eq!((found("delay_s"), found("cpu_s")), (Some(4.0), Some(1.0)));
        assert_eq!((found("read_operations"), found("read_mean_us")), (Some(4.0), Some(2.0)));
        assert_eq!((found("done_loops"), found("insert_p99_us")), (Some(4.0), None));
        assert_eq!(found("loop_passed_s"), Some(6.0));
        assert_eq!(found("workers_at_loop_percent_cpu"), Some(50.0));
        assert_eq!(found("workers_second_9_percent_cpu"), Some(90.0));
        assert_eq!(found("longest_effect_ms"), None);
    }
}

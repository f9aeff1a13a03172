//! Worker processes: start them, let them begin at one moment, collect what they report.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pellucid_lab_measure::blocks::shuffled;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::machine::as_ns;
use pellucid_lab_measure::random::Random;

use crate::worker::{Order, Report};

/// Long enough for every worker to read its line before the moment comes.
const START_DELAY: Duration = Duration::from_millis(20);

/// One worker; dropped, it is stopped.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// Has one worker do `order`, which is not a run.
///
/// # Errors
/// [`Error::Invalid`] if the worker failed; it has then said why on standard error.
pub fn single(order: &Order, home: &Path) -> Result<Report> {
    Worker::start(order, home)?.report()
}

/// Has a worker for each of `orders` run at the same time; `at_start` is called right before.
///
/// # Errors
/// As [`single`]; the other workers are stopped.
pub fn together(orders: &[Order], home: &Path, at_start: impl FnOnce()) -> Result<Vec<Report>> {
    let mut workers =
        orders.iter().map(|order| Worker::start(order, home)).collect::<Result<Vec<_>>>()?;
    for worker in &mut workers {
        worker.ready()?;
    }
    at_start();
    start(&mut workers)?;
    workers.iter_mut().map(Worker::report).collect()
}

/// Has groups of workers take turns, `turns` of each, in an order that is drawn each time; `at_start` is called right before.
/// The reports are in the order of the groups.
///
/// # Errors
/// As [`single`]; the other workers are stopped.
pub fn in_turns(
    groups: &[(Vec<Order>, &Path)],
    turns: usize,
    random: &mut Random,
    at_start: impl FnOnce(),
) -> Result<Vec<Vec<Report>>> {
    let mut workers = Vec::new();
    for (orders, home) in groups {
        workers.push(
            orders.iter().map(|order| Worker::start(order, home)).collect::<Result<Vec<_>>>()?,
        );
    }
    workers.iter_mut().flatten().try_for_each(Worker::ready)?;
    at_start();
    for _ in 0..turns {
        for group in shuffled(workers.len(), random) {
            workers[group].iter_mut().try_for_each(|worker| worker.tell("go"))?;
            workers[group].iter_mut().try_for_each(|worker| worker.expect("rest"))?;
        }
    }
    let report = |worker: &mut Worker| {
        worker.tell("end")?;
        worker.report()
    };
    workers.iter_mut().map(|group| group.iter_mut().map(report).collect()).collect()
}

/// Lets workers that are ready begin at one moment, and says when that is.
///
/// # Errors
/// [`Error::Io`] if one is gone.
pub fn start(workers: &mut [Worker]) -> Result<Instant> {
    let (moment, start) = (Instant::now() + START_DELAY, SystemTime::now() + START_DELAY);
    let start = as_ns(start.duration_since(UNIX_EPOCH).unwrap_or_default());
    workers.iter_mut().try_for_each(|worker| worker.tell(&format!("start {start}")))?;
    Ok(moment)
}

impl Worker {
    /// `home` becomes Pellucid's instance directory, so that a run neither reads nor changes the
    /// user's keyring, and the place of SQLite's temporary files, so that they are on the same file
    /// system.
    pub fn start(order: &Order, home: &Path) -> Result<Self> {
        let program = std::env::current_exe().map_err(Error::io("the lab's own program"))?;
        let mut command = Command::new(program);
        if let Some(library) = &order.side.library {
            command.env("LD_LIBRARY_PATH", library);
        }
        let mut child = command
            .arg("worker")
            .env("PELLUCID_HOME", home)
            .env("SQLITE_TMPDIR", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::io("starting a worker"))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (orders, answers) = pipes.ok_or_else(|| Error::invalid("a worker without pipes"))?;
        let mut worker = Self { child, orders, answers: BufReader::new(answers) };
        let order = serde_json::to_string(order)
            .map_err(|error| Error::invalid(format!("an order: {error}")))?;
        worker.tell(&order)?;
        Ok(worker)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to the worker.
    ///
    /// # Errors
    /// [`Error::Io`] if it is gone.
    pub fn tell(&mut self, line: &str) -> Result<()> {
        writeln!(self.orders, "{line}")
            .and_then(|()| self.orders.flush())
            .map_err(Error::io("a worker's standard input"))
    }

    /// Reads a line of the worker.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it ended instead.
    pub fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        let bytes =
            self.answers.read_line(&mut line).map_err(Error::io("a worker's standard output"))?;
        if bytes > 0 {
            return Ok(line.trim_end().to_string());
        }
        let status = self.child.wait().map_err(Error::io("a worker's end"))?;
        Err(Error::invalid(format!("a worker ended without an answer ({status})")))
    }

    /// Waits until the worker says that it is ready.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it says anything else.
    pub fn ready(&mut self) -> Result<()> {
        self.expect("ready")
    }

    fn expect(&mut self, expected: &str) -> Result<()> {
        match self.answer()?.as_str() {
            answer if answer == expected => Ok(()),
            answer => Err(Error::invalid(format!("worker: `{answer}` instead of `{expected}`"))),
        }
    }

    /// The report, after the worker has ended well: closing the database is part of its work.
    pub fn report(&mut self) -> Result<Report> {
        let report = serde_json::from_str(&self.answer()?)
            .map_err(|error| Error::invalid(format!("a worker's report: {error}")))?;
        let status = self.child.wait().map_err(Error::io("a worker's end"))?;
        if status.success() {
            Ok(report)
        } else {
            Err(Error::invalid(format!("a worker reported and then failed ({status})")))
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // An error means that it has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

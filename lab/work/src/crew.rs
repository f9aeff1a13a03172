//! The clients of a constant load: processes that stay from the first phase to the last, and work between `go` and
//! `stop`.

use std::path::Path;

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::histogram::Histogram;
use pellucid_lab_measure::side::Side;
use pellucid_lab_report::plan::Setting;
use pellucid_lab_report::record::Calls;

use crate::pool::Worker;
use crate::scenario::application::{self, Role, Stretch};
use crate::worker::{Order, Report, Task};

/// The clients of one side, connected from the first phase to the last.
#[derive(Debug)]
pub struct Crew {
    /// Writers first.
    workers: Vec<Worker>,
    writers: usize,
}

/// What both kinds of clients noticed in one phase.
#[derive(Debug)]
pub struct Noticed {
    pub write: Calls,
    pub read: Calls,
    /// Commits of each writer, since it began.
    pub acknowledged: Vec<u64>,
}

impl Crew {
    /// Starts the clients on the database at `path`; they wait.
    ///
    /// # Errors
    /// [`Error::Invalid`] if one cannot open it.
    pub fn start(
        side: &Side,
        path: &Path,
        setting: Setting,
        tasks: &[application::Task],
        home: &Path,
    ) -> Result<Self> {
        let mut workers = Vec::new();
        for &task in tasks {
            let task = Task::Application(task);
            let order = Order { side: side.clone(), path: path.into(), setting, task };
            let mut worker = Worker::start(&order, home)?;
            worker.ready()?;
            workers.push(worker);
        }
        let writers = tasks.iter().filter(|task| task.role == Role::Writer).count();
        Ok(Self { workers, writers })
    }

    /// Lets all clients work.
    ///
    /// # Errors
    /// As [`Crew::stop`].
    pub fn go(&mut self) -> Result<()> {
        self.workers.iter_mut().try_for_each(|worker| worker.tell("go"))
    }

    /// Stops them after what they are doing; `seconds` is how long they worked.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a client met something else than an error of SQLite's; it has said what.
    pub fn stop(&mut self, seconds: impl FnOnce() -> f64) -> Result<Noticed> {
        self.workers.iter_mut().try_for_each(|worker| worker.tell("stop"))?;
        let seconds = seconds();
        let mut stretches = Vec::new();
        for worker in &mut self.workers {
            let stretch: Stretch = serde_json::from_str(&worker.answer()?)
                .map_err(|error| Error::invalid(format!("a client's answer: {error}")))?;
            stretches.push(stretch);
        }
        let (write, read) = stretches.split_at(self.writers);
        Ok(Noticed {
            write: together(write, seconds),
            read: together(read, seconds),
            acknowledged: write.iter().map(|stretch| stretch.acknowledged).collect(),
        })
    }

    /// Lets them close the database.
    ///
    /// # Errors
    /// [`Error::Invalid`] if one cannot.
    pub fn end(mut self) -> Result<()> {
        for worker in &mut self.workers {
            worker.tell("end")?;
            match worker.report()? {
                Report::Ended => {}
                other => return Err(Error::invalid(format!("a client's end is {other:?}"))),
            }
        }
        Ok(())
    }
}

fn together(stretches: &[Stretch], seconds: f64) -> Calls {
    let mut latencies = Histogram::default();
    let mut calls = Calls::default();
    for stretch in stretches {
        latencies.merge_sparse(&stretch.latencies);
        calls.longest_call_us = calls.longest_call_us.max(stretch.longest_call_ns as f64 / 1e3);
        for (what, count) in &stretch.failed {
            *calls.failed.entry(what.clone()).or_default() += count;
        }
    }
    calls.latency = latencies.latency();
    calls.per_s = calls.latency.operations as f64 / seconds;
    calls
}

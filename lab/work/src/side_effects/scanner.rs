//! Encryption scans in a row, at their ordinary pace: so that one goes on from the beginning of what is measured beside
//! them to its end.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::program::Program;

/// How often is looked whether a scan has ended.
const POLL: Duration = Duration::from_millis(2);
const GONE: &str = "scans: their thread is gone";

/// Scans that go on until they are told to stop.
#[derive(Debug)]
pub struct Scanner {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Scanned>>>,
}

/// What was scanned, the last one to its end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scanned {
    pub scans: u64,
    /// Of all of them together, from the start of a process to its end.
    pub wall_s: f64,
}

impl Scanner {
    /// Begins, and comes back when the first scan is under way.
    ///
    /// # Errors
    /// Of the first scan, if it fails at once.
    pub fn start(program: &Program, database: &Path) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = mpsc::channel();
        let task = Task {
            program: program.clone(),
            database: database.to_path_buf(),
            stop: Arc::clone(&stop),
        };
        let thread = std::thread::spawn(move || task.run(&tell));
        let mut scanner = Self { stop, thread: Some(thread) };
        if told.recv().is_ok() {
            return Ok(scanner);
        }
        scanner.end()?;
        Err(Error::invalid(GONE))
    }

    /// Lets the scan that is under way end, and begins no other.
    ///
    /// # Errors
    /// Of the first scan that failed.
    pub fn stop(mut self) -> Result<Scanned> {
        self.end()
    }

    fn end(&mut self) -> Result<Scanned> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().ok_or_else(|| Error::invalid(GONE))?;
        thread.join().map_err(|_| Error::invalid(GONE))?
    }
}

impl Drop for Scanner {
    /// Where what is beside it failed: nobody waits for its answer, but its database is about to go.
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.end();
        }
    }
}

#[derive(Debug)]
struct Task {
    program: Program,
    database: PathBuf,
    stop: Arc<AtomicBool>,
}

impl Task {
    fn run(&self, tell: &Sender<()>) -> Result<Scanned> {
        let mut scanned = Scanned::default();
        while !self.stop.load(Ordering::Relaxed) {
            let mut running = self.program.start(&["rekey"], &self.database)?;
            if scanned.scans == 0 {
                // A small database may be done before it can be asked.
                while !running.has_ended()? && self.program.scanned(&self.database)?.is_none() {
                    std::thread::sleep(POLL);
                }
                // Nobody waits any more if the measurement was broken off.
                let _ = tell.send(());
            }
            while !running.has_ended()? {
                std::thread::sleep(POLL);
            }
            let said = running.end()?;
            said.scan_is("complete")?;
            scanned.scans += 1;
            scanned.wall_s += said.wall_s;
        }
        Ok(scanned)
    }
}

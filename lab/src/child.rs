//! One measurement as a process of its own: in a group and a directory of its own, so that nothing is left of it when it
//! is stopped.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{kill_process, kill_process_group, Pid, Signal};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::{Error, Result};

const POLL: Duration = Duration::from_millis(100);
/// For a measurement that ends well when it is asked to: hummer ends its loops, counts and removes its files.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a measurement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Done,
    Failed(ExitStatus),
    /// By a signal to the lab.
    Stopped,
    /// By its deadline.
    Late,
}

/// The signals that ask the lab to stop, from now on: the first lets a measurement end well, the second does not.
#[derive(Debug)]
pub struct Stop {
    signals: Signals,
    asked: usize,
}

/// What is to be run, and where.
#[derive(Debug)]
pub struct Measurement<'a> {
    pub lab: &'a Path,
    pub words: &'a [String],
    /// Its databases lie in a directory below, which goes with it.
    pub dir: &'a Path,
    /// Whether its table is printed.
    pub shown: bool,
    pub deadline: Option<Instant>,
}

impl Stop {
    /// # Errors
    /// [`Error::Io`]
    pub fn listen() -> Result<Self> {
        let signals = Signals::new([SIGINT, SIGTERM]).map_err(Error::io("waiting for signals"))?;
        Ok(Self { signals, asked: 0 })
    }

    /// How often the lab was asked to stop.
    pub fn asked(&mut self) -> usize {
        self.asked += self.signals.pending().count();
        self.asked
    }
}

impl Measurement<'_> {
    /// Runs it to its end, or until it is stopped.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn run(&self, stop: &mut Stop) -> Result<End> {
        let place = tempfile::Builder::new()
            .prefix("pellucid-lab-")
            .tempdir_in(self.dir)
            .map_err(Error::io(self.dir.display().to_string()))?;
        let child = Command::new(self.lab)
            .args(self.words)
            .args(["--dir".as_ref(), place.path().as_os_str()])
            .stdin(Stdio::null())
            .stdout(if self.shown { Stdio::inherit() } else { Stdio::null() })
            .process_group(0)
            .spawn()
            .map_err(Error::io(self.lab.display().to_string()))?;
        let mut running = Running { child };
        loop {
            if let Some(status) = running.ended()? {
                return Ok(if status.success() { End::Done } else { End::Failed(status) });
            }
            if stop.asked() > 0 {
                running.stop(stop)?;
                return Ok(End::Stopped);
            }
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                running.stop(stop)?;
                return Ok(End::Late);
            }
            std::thread::sleep(POLL);
        }
    }
}

/// Dropped, it is killed with all that it started.
#[derive(Debug)]
struct Running {
    child: Child,
}

impl Running {
    fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().map_err(Error::io("a measurement's end"))
    }

    /// Asks it to end, and waits; a further signal to the lab is the end of all patience.
    fn stop(mut self, stop: &mut Stop) -> Result<()> {
        let (since, asked) = (Instant::now(), stop.asked());
        // An error means that it has ended, which is what is wanted.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        while self.ended()?.is_none() && since.elapsed() < PATIENCE && stop.asked() == asked {
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // As above. Its workers may outlive it by one run, so the group is killed also where it has ended.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Where the lab's databases go: the given directory, else `target` of a source tree, else the system's.
///
/// # Errors
/// [`Error::Io`] if it is not there.
pub fn base(given: Option<&PathBuf>) -> Result<PathBuf> {
    let dir = crate::arguments::base(given);
    dir.canonicalize().map_err(Error::io(dir.display().to_string()))
}

/// This program.
///
/// # Errors
/// [`Error::Io`]
pub fn lab() -> Result<PathBuf> {
    std::env::current_exe().map_err(Error::io("the lab's own program"))
}

//! One measurement as a process of its own: in a group and a directory of its own, so that nothing is left of it when it
//! is stopped.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{kill_process, kill_process_group, Pid, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
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
pub struct Run<'a> {
    pub lab: &'a Path,
    pub words: &'a [String],
    /// Its databases lie in a directory below, which goes with it.
    pub dir: &'a Path,
    /// Whether its table is printed.
    pub shown: bool,
    pub deadline: Option<Instant>,
}

impl Stop {
    /// Begins to wait for the signals.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn listen() -> Result<Self> {
        let signals = Signals::new(stop_signals()).map_err(Error::io("waiting for signals"))?;
        Ok(Self { signals, asked: 0 })
    }

    /// How often the lab was asked to stop.
    pub fn asked(&mut self) -> usize {
        self.asked += self.signals.pending().count();
        self.asked
    }
}

impl Run<'_> {
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

/// The signals that ask the lab to stop.
pub fn stop_signals() -> Vec<i32> {
    let mut wanted = vec![SIGINT, SIGTERM];
    // Under nohup(1) it stays ignored.
    if !ignores(SIGHUP) {
        wanted.push(SIGHUP);
    }
    wanted
}

/// As proc(5) tells it of this process, /proc/pid/status.
fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| (mask >> (signal - 1)) & 1 == 1)
}

/// Where the lab's databases go: the given directory, else `target` of a source tree, else the system's.
///
/// # Errors
/// [`Error::Io`] if it is not there.
pub fn base(given: Option<&PathBuf>) -> Result<PathBuf> {
    let dir = crate::common::base(given);
    dir.canonicalize().map_err(Error::io(dir.display().to_string()))
}

/// This program.
///
/// # Errors
/// [`Error::Io`]
pub fn lab() -> Result<PathBuf> {
    std::env::current_exe().map_err(Error::io("the lab's own program"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use signal_hook::consts::{SIGPIPE, SIGUSR2};

    #[test]
    fn what_is_ignored_is_known() {
        // Every Rust program ignores it from its start.
        assert!(ignores(SIGPIPE) && !ignores(SIGUSR2));
    }

    #[test]
    fn one_that_is_late_or_fails_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut stop = Stop::listen().unwrap();
        let script = dir.path().join("script");
        let mut run = |text: &str, deadline| {
            std::fs::write(&script, text).unwrap();
            let words = [script.display().to_string()];
            let lab = Path::new("/bin/sh");
            let one = Run { lab, words: &words, dir: dir.path(), shown: false, deadline };
            one.run(&mut stop).unwrap()
        };
        // With a process of its own, which would go on. $2 is its directory. It is given time to get as far as that.
        let text = "sleep 1000 & echo $! >\"$2/../sleeper\"; touch \"$2/file\"; wait";
        assert_eq!(run(text, Some(Instant::now() + Duration::from_secs(20))), End::Late);
        let sleeper = std::fs::read_to_string(dir.path().join("sleeper")).unwrap();
        let command = || std::fs::read(format!("/proc/{}/cmdline", sleeper.trim()));
        let since = Instant::now();
        // A killed process has no command line, even where nobody collects it.
        while command().is_ok_and(|command| !command.is_empty()) {
            assert!(since.elapsed() < Duration::from_secs(120), "the process goes on");
            std::thread::yield_now();
        }
        assert!(matches!(run("exit 3", None), End::Failed(status) if status.code() == Some(3)));
        assert_eq!(run("exit 0", None), End::Done);
        let mut left: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["script", "sleeper"]);
    }
}

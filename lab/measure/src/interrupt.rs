//! A session that somebody ends: nothing of it stays but its records.
//!
//! The first signal kills what the lab started, takes away the directories that it made, and ends the lab. Hummer, `quick`
//! and `full` end in their own way and do not listen here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{getpid, kill_process, set_child_subreaper, Pid, Signal};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::{exit, signal_name};
use tempfile::TempDir;

use crate::child::stop_signals;
use crate::error::{Error, Result};

/// A shell's status of what a signal ended is this and the signal.
const STATUS: i32 = 128;
const POLL: Duration = Duration::from_millis(10);
/// For processes to die and files to go.
const LONGEST: Duration = Duration::from_secs(10);

/// Directories of this process; some may be gone.
static MADE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Set as soon as a signal is there, so that nothing is said of what it breaks.
static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// A directory below `parent` that goes when it is dropped, or when a signal ends the lab.
///
/// # Errors
/// [`Error::Io`]
pub fn directory(prefix: &str, parent: &Path) -> Result<TempDir> {
    // Whoever cleans up keeps the lock: nothing is made from then on.
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::Builder::new()
        .prefix(prefix)
        .tempdir_in(parent)
        .map_err(Error::io(parent.display().to_string()))?;
    made.push(dir.path().to_path_buf());
    Ok(dir)
}

/// From now on a signal that asks the lab to stop cleans up before it ends the lab.
///
/// # Errors
/// [`Error::Io`]
pub fn listen() -> Result<()> {
    static LISTENS: AtomicBool = AtomicBool::new(false);
    if LISTENS.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let wanted = stop_signals();
    let io = || Error::io("waiting for signals");
    for signal in &wanted {
        flag::register(*signal, Arc::clone(&ASKED)).map_err(io())?;
    }
    let mut signals = Signals::new(wanted).map_err(io())?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            end(signal);
        }
    });
    Ok(())
}

/// Does not return once a signal has come: what failed since then failed because of it, and the lab is about to end.
pub fn give_way() {
    while ASKED.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

fn end(signal: i32) {
    let made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    // What a killed process had started becomes a child of this one, and is found too.
    let _ = set_child_subreaper(Some(getpid()));
    let start = Instant::now();
    // Again: the rest of the lab goes on meanwhile, and may start a process or make a file.
    loop {
        let running = below(getpid(), &processes());
        for process in &running {
            // An error means that it has ended, which is what is wanted.
            let _ = kill_process(*process, Signal::KILL);
        }
        let gone = made.iter().filter(|dir| is_gone(dir)).count();
        if running.is_empty() && gone == made.len() || start.elapsed() >= LONGEST {
            break;
        }
        std::thread::sleep(POLL);
    }
    eprintln!("lab: stopped by {}", signal_name(signal).unwrap_or("a signal"));
    exit(STATUS + signal);
}

fn is_gone(dir: &Path) -> bool {
    match fs::remove_dir_all(dir) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// A process and its parent.
type Process = (Pid, Option<Pid>);

/// Those that have not ended.
fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let stat = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("stat")).ok();
    entries.filter_map(|entry| process(&stat(entry)?)).collect()
}

/// Fields: pid (command) state ppid (proc(5), /proc/pid/stat); a command may have brackets and spaces.
fn process(stat: &str) -> Option<Process> {
    let pid = stat.split(' ').next()?.parse().ok()?;
    let mut rest = stat.rsplit_once(") ")?.1.split(' ');
    let (state, parent) = (rest.next()?, rest.next()?.parse().ok()?);
    let has_ended = matches!(state, "Z" | "X");
    (!has_ended).then_some((Pid::from_raw(pid)?, Pid::from_raw(parent)))
}

/// What `parent` started, and what that did.
fn below(parent: Pid, all: &[Process]) -> Vec<Pid> {
    let mut found = vec![parent];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(all.iter().filter(|(_, of)| *of == Some(parent)).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_started_is_found_and_what_has_ended_is_not() {
        let pid = |raw| Pid::from_raw(raw).unwrap();
        assert_eq!(process("12 (a) R b) S 7 12 12 0"), Some((pid(12), Some(pid(7)))));
        assert_eq!(process("12 (lab) Z 7 12 12 0"), None);
        assert_eq!(process("2 (kthreadd) S 0 0 0 0"), Some((pid(2), None)));
        assert_eq!(process(""), None);
        let of = |raw, parent| (pid(raw), Pid::from_raw(parent));
        let all = [of(1, 0), of(9, 7), of(7, 5), of(5, 1), of(8, 5), of(6, 1)];
        assert_eq!(below(pid(5), &all), [pid(7), pid(8), pid(9)]);
        assert!(below(pid(6), &all).is_empty());
        assert!(processes().iter().any(|(found, _)| *found == getpid()));
    }

    #[test]
    fn a_directory_is_known_and_goes() {
        let parent = tempfile::tempdir().unwrap();
        let dir = directory("pellucid-lab-", parent.path()).unwrap();
        let path = dir.path().to_path_buf();
        fs::write(path.join("file"), "x").unwrap();
        assert!(MADE.lock().unwrap().contains(&path));
        assert!(is_gone(&path) && is_gone(&path) && !path.exists());
    }
}

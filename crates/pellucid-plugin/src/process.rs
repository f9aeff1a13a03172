//! One run of a plugin: a line in, a line out, within 10 s.
//!
//! The host that asks may ignore SIGCHLD, reap all children itself, die of SIGPIPE, have many threads, and fork at any
//! moment. So the question lies in the pipe before the program starts, nothing waits without a limit, and no lock is held.
//!
//! posix_spawn(3) by nix, not `std::process`: signals are put back as they were at first, descriptors are closed, and a library
//! that is loaded everywhere stays small.

use std::ffi::CString;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use nix::spawn::{posix_spawn, PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags};
use nix::sys::signal::{SigSet, Signal as Number};
use pellucid::error::{Error, Result};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::{fcntl_dupfd_cloexec, Errno};
use rustix::pipe::{pipe_with, PipeFlags};
use rustix::process::{
    kill_process_group, pidfd_open, waitpid, Pid, PidfdFlags, Signal, WaitOptions, WaitStatus,
};
use zeroize::Zeroizing;

use crate::wire::{shortened, Exchange, Question, ANSWER_BYTES_MOST};
use crate::Plugin;

/// What a killed program has to be gone.
const GONE: Duration = Duration::from_secs(1);
/// Without a descriptor of the process, which kernels before 5.3 do not have, it is looked at that often.
const LOOK: Duration = Duration::from_millis(5);
/// The most that it may say on standard error; the last line is told.
const COMPLAINT_BYTES_MOST: usize = 1 << 20;
const COMPLAINT_BYTES_KEPT: usize = 4096;
const READ_BYTES: usize = 4096;
/// The first descriptor behind the standard streams.
const FIRST_FREE: i32 = 3;

/// Asks `question`.
pub(crate) fn exchange<'a>(plugin: &'a Plugin, question: Question<'a>) -> Result<Exchange<'a>> {
    let io = |error| Error::io(plugin.subject(), error);
    let limit = question.limit();
    let (asked, line) = question.line();
    let line = line.ok_or_else(|| plugin.trouble("the question is too long"))?;
    let mut run = Run::start(plugin, line.as_bytes()).map_err(io)?;
    let stopped = run.read_all(Instant::now() + limit);
    let complaint = run.complaint.last_line();
    let status = run.end(stopped.is_some());
    let told = match complaint.as_str() {
        "" => String::new(),
        told => format!(" (it says: {told})"),
    };
    let mut exchange = Exchange { plugin, asked, line: run.answer };
    let ended = match (stopped, status) {
        (Some(Stop::Limit), _) => {
            let cause = format!(
                "{}no answer within {} s, and it was killed{told}; `pellucid plugin test` tries it alone",
                exchange.asked.about(),
                limit.as_secs()
            );
            return Err(io(std::io::Error::new(ErrorKind::TimedOut, cause)));
        }
        (Some(Stop::Io(error)), _) => return Err(io(error)),
        (Some(Stop::TooLong), _) => "it writes more than an answer has".to_owned(),
        // A host that reaps its children itself has the status; the answer is what counts.
        (None, None) => String::new(),
        (None, Some(status)) => match (status.exit_status(), status.terminating_signal()) {
            (Some(0), _) => String::new(),
            (Some(code), _) => format!("it ended with exit status {code}"),
            (None, signal) => format!("it ended by signal {}", signal.unwrap_or_default()),
        },
    };
    if !ended.is_empty() {
        return Err(exchange.trouble(&format!("{ended}{told}")));
    }
    if exchange.line.last() == Some(&b'\n') {
        exchange.line.pop();
    }
    match exchange.line.is_empty() || exchange.line.contains(&b'\n') {
        true => Err(exchange.trouble(&format!("it has to answer with one line{told}"))),
        false => Ok(exchange),
    }
}

/// Standard input, with the question in it. Its reader is open, so that no SIGPIPE comes of writing to it.
fn given(line: &[u8]) -> std::io::Result<OwnedFd> {
    let (reader, writer) = pipe()?;
    let mut writer = File::from(writer);
    // A user with very many pipes has small ones (pipe(7)): an error then, no waiting.
    nonblocking(&writer)?;
    writer.write_all(line)?;
    Ok(reader)
}

/// A pipe that is none of the standard streams, also where the host has closed those.
fn pipe() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((fcntl_dupfd_cloexec(reader, FIRST_FREE)?, fcntl_dupfd_cloexec(writer, FIRST_FREE)?))
}

/// The program in a process group of its own, with the three streams and no other descriptor, signal handling as at first,
/// and next to no environment.
fn start(plugin: &Plugin, streams: [&OwnedFd; 3]) -> std::io::Result<Pid> {
    let program = CString::new(plugin.file().as_os_str().as_bytes())?;
    let mut actions = PosixSpawnFileActions::init()?;
    for (stream, number) in streams.into_iter().zip(0..) {
        actions.add_dup2(stream.as_raw_fd(), number)?;
    }
    // Those that the host leaves open across exec(2). One that another thread opens just now may get through.
    for entry in std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(number) = number.filter(|number| *number >= FIRST_FREE) {
            // EBADF: glibc takes no number above a limit that was lowered since.
            match actions.add_close(number) {
                Ok(()) | Err(nix::errno::Errno::EBADF) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(
        PosixSpawnFlags::POSIX_SPAWN_SETPGROUP
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK,
    )?;
    attributes.set_pgroup(nix::unistd::Pid::from_raw(0))?;
    let mut usual = SigSet::all();
    usual.remove(Number::SIGKILL);
    usual.remove(Number::SIGSTOP);
    attributes.set_sigdefault(&usual)?;
    attributes.set_sigmask(&SigSet::empty())?;
    let environment = [c"PATH=/usr/sbin:/usr/bin:/sbin:/bin", c"LANG=C"];
    let started = posix_spawn(
        program.as_c_str(),
        &actions,
        &attributes,
        &[program.as_c_str()],
        &environment,
    )?;
    Pid::from_raw(started.as_raw()).ok_or_else(|| ErrorKind::NotFound.into())
}

fn nonblocking(file: impl AsFd) -> std::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&file)?;
    Ok(rustix::fs::fcntl_setfl(&file, flags | OFlags::NONBLOCK)?)
}

enum Stop {
    Limit,
    TooLong,
    Io(std::io::Error),
}

/// A program, and what it writes until it has ended.
struct Run {
    pid: Pid,
    stdout: Option<File>,
    stderr: Option<File>,
    /// Readable when the program has ended, whoever reaps it.
    process: Option<OwnedFd>,
    answer: Zeroizing<Vec<u8>>,
    complaint: Complaint,
}

impl Run {
    fn start(plugin: &Plugin, line: &[u8]) -> std::io::Result<Self> {
        let stdin = given(line)?;
        let ((stdout, to_stdout), (stderr, to_stderr)) = (pipe()?, pipe()?);
        let answer = Zeroizing::new(Vec::with_capacity(ANSWER_BYTES_MOST + READ_BYTES));
        for file in [&stdout, &stderr] {
            nonblocking(file)?;
        }
        let pid = start(plugin, [&stdin, &to_stdout, &to_stderr])?;
        Ok(Self {
            pid,
            stdout: Some(stdout.into()),
            stderr: Some(stderr.into()),
            process: pidfd_open(pid, PidfdFlags::empty()).ok(),
            answer,
            complaint: Complaint::default(),
        })
    }

    fn read_all(&mut self, until: Instant) -> Option<Stop> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(Stop::Limit);
            }
            let ended = match self.wait(left) {
                Ok(ended) => ended,
                Err(error) => return Some(Stop::Io(error)),
            };
            // What it wrote before it ended is there by then.
            if let Err(stop) = self.take_what_is_there() {
                return Some(stop);
            }
            if ended || (self.process.is_none() && self.stdout.is_none()) {
                return None;
            }
        }
    }

    /// Waits until there is something to read; whether the program has ended.
    fn wait(&self, left: Duration) -> std::io::Result<bool> {
        let left = if self.process.is_some() { left } else { left.min(LOOK) };
        let time = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        let mut watched: Vec<PollFd<'_>> = Vec::with_capacity(3);
        if let Some(process) = &self.process {
            watched.push(PollFd::new(process, PollFlags::IN));
        }
        for file in [&self.stdout, &self.stderr].into_iter().flatten() {
            watched.push(PollFd::new(file, PollFlags::IN));
        }
        match poll(&mut watched, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let first = watched.first().is_some_and(|first| !first.revents().is_empty());
        Ok(self.process.is_some() && first)
    }

    /// Ends the program with what it started, and reaps it; none if somebody else did, or it does not go.
    fn end(&mut self, is_stopped: bool) -> Option<WaitStatus> {
        // Without a descriptor of it, it may still be on its way to its end.
        let mut status = if is_stopped || self.process.is_some() { None } else { self.reap() };
        // The group keeps its number while anything of it is there, and the program does until it is reaped.
        let _ = kill_process_group(self.pid, Signal::KILL);
        if status.is_none() {
            status = self.reap();
        }
        status
    }

    /// Its status within 1 s; none for one that somebody else reaped (ECHILD).
    fn reap(&self) -> Option<WaitStatus> {
        let until = Instant::now() + GONE;
        loop {
            match waitpid(Some(self.pid), WaitOptions::NOHANG) {
                Ok(None) | Err(Errno::INTR) if Instant::now() < until => std::thread::sleep(LOOK),
                found => return found.ok().flatten().map(|(_, status)| status),
            }
        }
    }

    fn take_what_is_there(&mut self) -> std::result::Result<(), Stop> {
        let mut part = Zeroizing::new([0; READ_BYTES]);
        while let Some(bytes) = read(&mut self.stdout, &mut part[..])? {
            if self.answer.len() + bytes > ANSWER_BYTES_MOST {
                return Err(Stop::TooLong);
            }
            self.answer.extend_from_slice(&part[..bytes]);
        }
        while let Some(bytes) = read(&mut self.stderr, &mut part[..])? {
            if !self.complaint.add(&part[..bytes]) {
                return Err(Stop::TooLong);
            }
        }
        Ok(())
    }
}

/// How many bytes came; none if there are none now, or never more: then the file is closed.
fn read(file: &mut Option<File>, to: &mut [u8]) -> std::result::Result<Option<usize>, Stop> {
    let Some(open) = file else { return Ok(None) };
    loop {
        return match open.read(to) {
            Ok(0) => {
                *file = None;
                Ok(None)
            }
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(Stop::Io(error)),
        };
    }
}

/// The end of what it says on standard error.
#[derive(Default)]
struct Complaint {
    kept: Vec<u8>,
    bytes: usize,
}

impl Complaint {
    /// False if that is too much.
    fn add(&mut self, part: &[u8]) -> bool {
        self.bytes += part.len();
        self.kept.extend_from_slice(part);
        let over = self.kept.len().saturating_sub(COMPLAINT_BYTES_KEPT);
        self.kept.drain(..over);
        self.bytes <= COMPLAINT_BYTES_MOST
    }

    fn last_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.kept);
        shortened(text.trim_end().rsplit('\n').next().unwrap_or_default())
    }
}

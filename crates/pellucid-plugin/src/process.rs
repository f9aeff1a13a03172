//! One run of a plugin: a line in, a line out, within 10 s.
//!
//! The host that asks may ignore SIGCHLD, reap all children itself, die of SIGPIPE, have many threads, and fork at any
//! moment. So the question lies in the pipe before the program starts, nothing waits without a limit, and no lock is held.
//!
//! Descriptors of the host that it leaves open across exec(2) are the program's as well, which root has installed.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pellucid::error::{Error, Result};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{kill_process_group, pidfd_open, Pid, PidfdFlags, Signal};
use zeroize::Zeroizing;

use crate::wire::{about, shortened, Exchange, Question, ANSWER_BYTES_MOST, QUESTION_BYTES_MOST};
use crate::Plugin;

/// What a plugin has for its answer.
const LIMIT: Duration = Duration::from_secs(10);
/// What a killed program has to be gone.
const GONE: Duration = Duration::from_secs(1);
/// Without a descriptor of the process, which kernels before 5.3 do not have, it is looked at that often.
const LOOK: Duration = Duration::from_millis(5);
/// The most that it may say on standard error; the last line is told.
const COMPLAINT_BYTES_MOST: usize = 1 << 20;
const COMPLAINT_BYTES_KEPT: usize = 4096;
const READ_BYTES: usize = 4096;

/// Asks `question`.
pub(crate) fn exchange<'a>(plugin: &'a Plugin, question: &'a Question<'a>) -> Result<Exchange<'a>> {
    let trouble = |cause: String| plugin.trouble(format!("{}{cause}", about(question)));
    let io = |error| Error::io(plugin.subject(), error);
    let stdin = given(question).map_err(io)?;
    let mut child = start(plugin, stdin).map_err(io)?;
    let mut run = Run::new(&mut child).map_err(io)?;
    let stopped = run.read_all(Instant::now() + LIMIT);
    let complaint = run.complaint.last_line();
    // Killed, or known to have ended by its own.
    let is_over = stopped.is_some() || run.process.is_some();
    let status = end(&mut child, is_over);
    let told = match complaint.as_str() {
        "" => String::new(),
        told => format!(" (it says: {told})"),
    };
    match stopped {
        Some(Stop::Limit) => {
            return Err(Error::io(
                plugin.subject(),
                std::io::Error::new(
                    ErrorKind::TimedOut,
                    format!(
                        "{}no answer within {} s, and it was killed{told}; `pellucid plugin test` tries it alone",
                        about(question),
                        LIMIT.as_secs()
                    ),
                ),
            ))
        }
        Some(Stop::TooLong) => return Err(trouble(format!("it writes more than an answer has{told}"))),
        Some(Stop::Io(error)) => return Err(io(error)),
        None => {}
    }
    match status {
        Some(status) if !status.success() => Err(trouble(format!("it ended with {status}{told}"))),
        // A host that reaps its children itself has the status; the answer is what counts.
        _ => {
            let mut line = run.answer;
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            match line.is_empty() || line.contains(&b'\n') {
                true => Err(trouble(format!("it has to answer with one line{told}"))),
                false => Ok(Exchange { plugin, question, line }),
            }
        }
    }
}

/// Standard input, with the question in it. Its reader is open, so that no SIGPIPE comes of writing to it.
fn given(question: &Question<'_>) -> std::io::Result<OwnedFd> {
    let line = question.line().ok_or_else(|| std::io::Error::other("the question is too long"))?;
    debug_assert!(line.len() <= QUESTION_BYTES_MOST);
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let mut writer = File::from(writer);
    // A user with very many pipes has small ones (pipe(7)): an error then, no waiting.
    nonblocking(&writer)?;
    writer.write_all(&line)?;
    Ok(reader)
}

fn start(plugin: &Plugin, stdin: OwnedFd) -> std::io::Result<Child> {
    Command::new(plugin.file())
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LANG", "C")
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
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

/// What a program writes until it has ended.
struct Run {
    stdout: Option<File>,
    stderr: Option<File>,
    /// Readable when the program has ended, whoever reaps it.
    process: Option<OwnedFd>,
    answer: Zeroizing<Vec<u8>>,
    complaint: Complaint,
}

impl Run {
    fn new(child: &mut Child) -> std::io::Result<Self> {
        let stdout = child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let stderr = child.stderr.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        for file in [&stdout, &stderr].into_iter().flatten() {
            nonblocking(file)?;
        }
        Ok(Self {
            stdout,
            stderr,
            process: pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok(),
            answer: Zeroizing::new(Vec::with_capacity(ANSWER_BYTES_MOST + READ_BYTES)),
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

/// Ends the program with what it started, and reaps it; none if somebody else did, or it does not go.
fn end(child: &mut Child, is_over: bool) -> Option<ExitStatus> {
    // Without a descriptor of it, it may still be on its way to its end.
    let mut status = if is_over { None } else { wait(child) };
    // The group keeps its number while anything of it is there, and the program does until it is reaped.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    if status.is_none() {
        status = wait(child);
    }
    status
}

/// Its status within 1 s; none for one that somebody else reaped (ECHILD).
fn wait(child: &mut Child) -> Option<ExitStatus> {
    let until = Instant::now() + GONE;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
            found => return found.ok().flatten(),
        }
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

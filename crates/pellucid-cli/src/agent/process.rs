//! Steps as processes: one for each, which ends with the agent and is asked to end before it is killed.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pellucid_sql::agent::{Executed, Host, Step};
use rustix::process::{kill_process, Pid, Signal};
use zeroize::Zeroizing;

use crate::sql::step::{Answer, Asked};

/// How often a process is looked at, and the jobs behind it.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How long a batch that is cancelled may take to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// From this severity on it is an error.
const ERROR: u8 = 11;

/// Executes the steps of a job.
#[derive(Debug)]
pub struct Processes {
    program: PathBuf,
    job: String,
}

impl Processes {
    /// Of a job, by this program.
    pub fn new(program: PathBuf, job: &str) -> Self {
        Self { program, job: job.to_owned() }
    }

    fn start(&self, step: &Step) -> std::io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(["--quiet", "agent", "--step"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C goes to the agent, which asks its steps to end.
        command.process_group(0);
        let mut child = command.spawn()?;
        let asked = Asked {
            command: step.command.clone(),
            database: step.database.clone(),
            application: format!("SQLAgent - TSQL JobStep (Job {} : Step {})", self.job, step.id),
            with_rows: step.with_rows,
            agent: std::process::id(),
        };
        let text = Zeroizing::new(serde_json::to_vec(&asked)?);
        drop(Zeroizing::new(asked.command));
        // A process that has ended already says so by its status.
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(&text);
        }
        Ok(child)
    }
}

impl Host for Processes {
    fn execute(&mut self, step: &Step, is_asked_to_stop: &dyn Fn() -> bool) -> Executed {
        let failed = |why: String| Executed { severity: ERROR, told: why, ..Executed::default() };
        let mut child = match self.start(step) {
            Ok(child) => child,
            Err(error) => return failed(format!("The step could not be started: {error}.")),
        };
        // Read beside the wait: an answer may be longer than a pipe.
        let stdout = child.stdout.take();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            stdout.map(|mut stdout| stdout.read_to_string(&mut text));
            text
        });
        let was_asked = end(&mut child, is_asked_to_stop);
        let text = reader.join().unwrap_or_default();
        match serde_json::from_str::<Answer>(&text) {
            Ok(answer) => Executed {
                has_succeeded: !answer.is_stopped && answer.severity < ERROR,
                is_stopped: answer.is_stopped,
                number: answer.number,
                severity: answer.severity,
                told: answer.told,
            },
            Err(_) if was_asked => Executed { is_stopped: true, ..Executed::default() },
            Err(_) => failed("The step's process has ended without an answer.".to_owned()),
        }
    }

    fn wait(&mut self, time: Duration, is_asked_to_stop: &dyn Fn() -> bool) {
        let until = Instant::now() + time;
        while Instant::now() < until && !is_asked_to_stop() {
            std::thread::sleep(ASK_EVERY.min(until.saturating_duration_since(Instant::now())));
        }
    }
}

/// Waits for a process to end; whether it was asked to.
fn end(child: &mut Child, is_asked_to_stop: &dyn Fn() -> bool) -> bool {
    let mut looked = Instant::now();
    let mut asked: Option<Instant> = None;
    while let Ok(None) = child.try_wait() {
        std::thread::sleep(LOOK_EVERY);
        if looked.elapsed() < ASK_EVERY {
            continue;
        }
        looked = Instant::now();
        match asked {
            None if is_asked_to_stop() => {
                asked = Some(Instant::now());
                // The batch is cancelled, and the process ends by itself.
                let _ = kill_process(Pid::from_child(child), Signal::INT);
            }
            Some(since) if since.elapsed() > PATIENCE => {
                let _ = child.kill();
            }
            _ => {}
        }
    }
    asked.is_some()
}

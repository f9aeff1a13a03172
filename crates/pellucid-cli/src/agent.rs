//! `agent`: runs the jobs of the instance that are due, each step in a process of its own.

mod process;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pellucid_sql::agent::{Agent, Outcome, Run};
use pellucid_sql::message::Message;
use serde_json::{json, Value};
use signal_hook::consts::signal::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

use crate::exit;
use crate::output::{Failure, Id, Output};
use crate::sql::step;
use process::Processes;

/// How often the jobs are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What `agent` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid agent\n  pellucid agent --once\n\nIt runs the jobs of its own account and no others: \
                  root's agent runs root's jobs."
)]
pub struct AgentArgs {
    /// Run what is due now and end, for cron or a timer; status 1 if a job failed
    #[arg(long)]
    once: bool,
    /// Execute the step of a job that standard input has
    #[arg(long, hide = true)]
    step: bool,
}

/// How a job has ended: its name, and what kept it from being run.
type Ended = (String, Result<Outcome, Message>);

/// Runs jobs until it is told to end.
pub fn run(args: &AgentArgs, output: &Output) -> Result<ExitCode, Failure> {
    if args.step {
        return step::run();
    }
    let ending = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The second one ends it at once, and its steps with it.
        let watched = register_conditional_shutdown(signal, exit::FAILED.into(), ending.clone())
            .and_then(|_| register(signal, ending.clone()));
        watched.map_err(|error| {
            Failure::new(Id::InterruptsUnwatched, format!("Ctrl-C: {error}"), "try again")
        })?;
    }
    let agent = Agent::open().map_err(failure)?;
    // By its name now: an upgrade takes the file away under which an agent began.
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(Id::OwnPathUnknown, format!("the program's own path: {error}"), "try again")
    })?;
    let agents = Agents { ending, program };
    let mut told = Told { output, others: BTreeSet::new(), facts: Vec::new(), has_failed: false };
    match args.once {
        true => agents.once(&agent, &mut told)?,
        false => agents.forever(&agent, &mut told)?,
    }
    if args.once {
        let others: Vec<Value> = told
            .others
            .iter()
            .map(|(name, account)| json!({ "name": name, "account": account }))
            .collect();
        output.facts(&json!({ "jobs": told.facts, "of_others": others }));
    }
    Ok(match args.once && told.has_failed {
        true => ExitCode::from(exit::FAILED),
        false => ExitCode::SUCCESS,
    })
}

/// What every job is run with.
struct Agents {
    /// A signal has asked for the end.
    ending: Arc<AtomicBool>,
    program: PathBuf,
}

impl Agents {
    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    fn once(&self, agent: &Agent, told: &mut Told<'_>) -> Result<(), Failure> {
        // Nothing is written where there is nothing to do.
        if !agent.has_due().map_err(failure)? {
            return Ok(());
        }
        agent.begin().map_err(failure)?;
        let due = agent.due(false).map_err(failure)?;
        told.of_others(due.of_others);
        let (sender, ended) = channel();
        for run in due.runs {
            self.start(run, &sender);
        }
        drop(sender);
        for one in ended {
            told.ended(one);
        }
        Ok(())
    }

    fn forever(&self, agent: &Agent, told: &mut Told<'_>) -> Result<(), Failure> {
        agent.begin().map_err(failure)?;
        told.output.line("The agent runs the jobs of this account; Ctrl-C ends it.");
        let (sender, ended): (Sender<Ended>, Receiver<Ended>) = channel();
        let mut running = 0_u32;
        let mut is_start = true;
        while running > 0 || !self.is_ending() {
            if !self.is_ending() {
                match agent.due(is_start) {
                    Ok(due) => {
                        is_start = false;
                        told.of_others(due.of_others);
                        for run in due.runs {
                            running += 1;
                            self.start(run, &sender);
                        }
                    }
                    // Somebody holds `msdb`, or its disk is full: the next look may find it otherwise.
                    Err(message) => told.wrong(&message),
                }
            }
            match ended.recv_timeout(LOOK_EVERY) {
                Ok(one) => {
                    running -= 1;
                    told.ended(one);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
        Ok(())
    }

    /// Runs a job on a thread of its own, with its own connection to `msdb`.
    fn start(&self, run: Run, sender: &Sender<Ended>) {
        let (name, to) = (run.name().to_owned(), sender.clone());
        let (ending, program) = (self.ending.clone(), self.program.clone());
        let work = move || {
            let done = Agent::open().and_then(|agent| {
                let mut host = Processes::new(program, run.name());
                agent.run(&run, &mut host, &|| ending.load(Ordering::SeqCst))
            });
            // Nobody listens only when the process ends.
            let _ = to.send((run.name().to_owned(), done));
        };
        if let Err(error) = std::thread::Builder::new().name("job".to_owned()).spawn(work) {
            let _ = sender.send((name, Err(Message::new(0, 16, format!("a thread: {error}")))));
        }
    }
}

/// What was told, and what machines are told at the end.
struct Told<'o> {
    output: &'o Output,
    others: BTreeSet<(String, String)>,
    facts: Vec<Value>,
    has_failed: bool,
}

impl Told<'_> {
    /// Once of each job.
    fn of_others(&mut self, jobs: Vec<(String, String)>) {
        for (name, account) in jobs {
            if self.others.insert((name.clone(), account.clone())) {
                self.output.warning(format_args!(
                    "job `{name}` is left alone: it belongs to the account `{account}`, whose agent runs it"
                ));
            }
        }
    }

    fn ended(&mut self, (name, done): Ended) {
        let outcome = match done {
            Ok(Outcome::Succeeded) => "succeeded",
            Ok(Outcome::Failed) => "failed",
            Ok(Outcome::Stopped) => "stopped",
            Err(message) => {
                self.wrong(&message);
                "failed"
            }
        };
        self.facts.push(json!({ "name": name, "outcome": outcome }));
        match outcome {
            "succeeded" => self.output.line(format_args!("{name}: succeeded")),
            _ => {
                self.has_failed = true;
                self.output.warning(format_args!(
                    "job `{name}` {outcome}: `msdb.dbo.sysjobhistory` says why"
                ));
            }
        }
    }

    fn wrong(&mut self, message: &Message) {
        self.output.warning(format_args!("{} ({})", message.text, message.number));
    }
}

fn failure(message: Message) -> Failure {
    let hint = "`pellucid doctor` examines the instance";
    let failure = Failure::new(Id::Message, message.text, hint);
    Failure { number: u16::try_from(message.number).ok(), ..failure }
}

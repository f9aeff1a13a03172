//! A step of a job, executed by a process of its own: the command comes by standard input, what became of it goes to
//! standard output. Neither stands in an argument or in the environment.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::rc::Rc;

use pellucid_sql::session::{Options, Report, Session, Sink};
use pellucid_sql::translate::ResultColumn;
use pellucid_sql::values::convert::{to_hex, Value};
use pellucid_tsql::batch::{Item, NoFiles, Script, Variables};
use pellucid_tsql::secret::redact;
use rustix::process::{getppid, set_parent_process_death_signal, Signal};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::files::{verbatim, DOLLAR};
use super::interrupt::Interrupts;
use crate::output::{Failure, Id};

/// From this severity on it is an error.
const ERROR: u8 = 11;
/// Bytes that are kept of what a step says: the history takes fewer.
const TOLD_BYTES_MOST: usize = 32_768;

/// What the agent gives. The command may hold secrets: it is not shown.
#[derive(Serialize, Deserialize)]
pub struct Asked {
    /// The statements, with `GO` between batches.
    pub command: String,
    /// The database to begin in.
    pub database: String,
    /// What APP_NAME() gives.
    pub application: String,
    /// Whether rows belong to what is told.
    pub with_rows: bool,
    /// The agent's process: without it nobody would know of the step.
    pub agent: u32,
}

/// What it gets back.
#[derive(Default, Serialize, Deserialize)]
pub struct Answer {
    /// The last error's number; 0 without one.
    pub number: u32,
    /// Its severity.
    pub severity: u8,
    /// Whether it was asked to end.
    pub is_stopped: bool,
    /// Messages, secrets masked.
    pub told: String,
}

/// Executes what standard input asks for.
///
/// # Errors
/// What keeps it from being read or answered.
pub fn run() -> Result<ExitCode, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(Id::Failed, format!("a job step: {error}"), "`pellucid agent` starts it")
    };
    let mut text = Zeroizing::new(String::new());
    std::io::stdin().read_to_string(&mut text).map_err(|error| failed(&error))?;
    let asked: Asked = serde_json::from_str(&text).map_err(|_| failed(&"nothing to execute"))?;
    // An agent that is gone would have it run beside the next agent's.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    let parent = getppid().and_then(|parent| u32::try_from(parent.as_raw_nonzero().get()).ok());
    if parent != Some(asked.agent) {
        return Err(failed(&"its agent has ended"));
    }
    let answer = execute(asked);
    let answer = serde_json::to_string(&answer).map_err(|error| failed(&error))?;
    std::io::stdout().write_all(answer.as_bytes()).map_err(|error| failed(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn execute(asked: Asked) -> Answer {
    let command = Zeroizing::new(asked.command);
    let told = Rc::new(RefCell::new(Answer::default()));
    let fail = |number: u32, severity: u8, text: &str| {
        told.borrow_mut().note(number, severity, text);
    };
    let drives = match super::environment_drives() {
        Ok(drives) => drives,
        Err(failure) => {
            fail(0, ERROR, &failure.message);
            Vec::new()
        }
    };
    let options = Options {
        program: std::env::current_exe().ok(),
        drives,
        database: Some(asked.database),
        application: asked.application,
        ..Options::default()
    };
    let listener = Listener { answer: told.clone(), with_rows: asked.with_rows };
    let interrupts = Interrupts::watch(false);
    match (Session::open(options, Box::new(listener)), interrupts) {
        (Ok(mut session), Ok(interrupts)) => {
            interrupts.cancels_by(session.cancel());
            batches(&mut session, &interrupts, &command, &told);
        }
        (Err(message), _) => fail(message.number, message.severity, &message.text),
        (_, Err(error)) => fail(0, ERROR, &error.to_string()),
    }
    Rc::try_unwrap(told).map(RefCell::into_inner).unwrap_or_default()
}

/// Executes batch by batch, to the first one with an error. Commands of sqlcmd are none of a step's.
fn batches(session: &mut Session, interrupts: &Interrupts, command: &str, told: &RefCell<Answer>) {
    // `$(` begins no variable here: what is one was replaced by the agent.
    let mut variables = Variables::new();
    variables.set(DOLLAR, Some(Zeroizing::new("$".to_owned())));
    let lines = verbatim(std::io::Cursor::new(command.as_bytes().to_vec()));
    let mut script = Script::new("step", lines, NoFiles, variables);
    loop {
        let batch = match script.next() {
            None => return,
            Some(Ok(Item::Batch(batch))) => batch,
            Some(Ok(_)) => {
                return told.borrow_mut().note(0, ERROR, "A command of sqlcmd is no statement.");
            }
            Some(Err(error)) => return told.borrow_mut().note(0, ERROR, &error.to_string()),
        };
        for _ in 0..batch.repeat {
            interrupts.begin();
            let outcome = session.execute(batch.text());
            let is_stopped = interrupts.end() || outcome.cancelled;
            told.borrow_mut().is_stopped |= is_stopped;
            if is_stopped || outcome.severity >= ERROR {
                return;
            }
        }
    }
}

impl Answer {
    fn note(&mut self, number: u32, severity: u8, text: &str) {
        let kind = match severity >= ERROR {
            true => {
                (self.number, self.severity) = (number, severity);
                format!("[SQLSTATE 42000] (Error {number})")
            }
            false => format!("[SQLSTATE 01000] (Message {number})"),
        };
        self.say(&format!("{} {kind}", redact(text)));
    }

    fn say(&mut self, text: &str) {
        let room = TOLD_BYTES_MOST.saturating_sub(self.told.len());
        let text: String = text.chars().take(room).collect();
        if !self.told.is_empty() {
            self.told.push_str("  ");
        }
        self.told.push_str(&text);
    }
}

/// Takes what a session says.
struct Listener {
    answer: Rc<RefCell<Answer>>,
    with_rows: bool,
}

impl Sink for Listener {
    fn columns(&mut self, columns: &[ResultColumn]) {
        if self.with_rows {
            let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            self.answer.borrow_mut().say(&names.join(" "));
        }
    }

    fn row(&mut self, values: Vec<Value>) {
        if self.with_rows {
            let shown: Vec<String> = values.into_iter().map(shown).collect();
            self.answer.borrow_mut().say(&redact(&shown.join(" ")));
        }
    }

    fn done(&mut self, rows: Option<u64>) {
        if let Some(rows) = rows.filter(|_| self.with_rows) {
            self.answer.borrow_mut().say(&format!("({rows} rows affected)"));
        }
    }

    fn message(&mut self, report: &Report) {
        let message = &report.message;
        self.answer.borrow_mut().note(message.number, message.severity, &message.text);
    }
}

fn shown(value: Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text,
        Value::Blob(bytes) => format!("0x{}", to_hex(&bytes)),
    }
}

//! Scripts, executed: batch by batch, until an error that counts, `:quit` or the end.

use std::cell::RefCell;
use std::rc::Rc;

use pellucid::shown::printable;
use pellucid_sql::session::Session;
use pellucid_tsql::batch::{Batch, Files, Item, Script, ScriptError};
use pellucid_tsql::secret::redact;
use serde_json::json;

use super::argument::Given;
use super::interrupt::Interrupts;
use super::screen::Screen;
use crate::output::{tell, Id};

/// From this severity on it is an error.
const ERROR: u8 = 11;

/// Why a script is left.
#[derive(Debug)]
pub enum End {
    /// There is no more of it.
    Over,
    /// `:quit`.
    Left,
    /// An error that counts: -b, `:on error exit`, state 127.
    Error,
    /// Ctrl-C.
    Cancelled,
    /// Nobody reads what it says.
    Unread,
    /// A password of it stands in an argument.
    Secret,
    /// Its own commands are wrong.
    Wrong(ScriptError),
}

/// Executes scripts in one session.
pub struct Runner {
    /// The session; completion looks into it, too.
    pub session: Rc<RefCell<Session>>,
    /// Where it talks to.
    pub screen: Rc<RefCell<Screen>>,
    /// Ctrl-C.
    pub interrupts: Interrupts,
    /// -e
    pub echo: bool,
    /// -b and `:on error`
    pub stop: bool,
    /// -V: the severity from which on an error counts.
    pub level: Option<u8>,
    /// Under -V the severity of the last error that counted.
    pub counted: Option<u8>,
    /// Values that arguments give to variables.
    pub given: Given,
    /// JSON has no lines for people.
    pub json: bool,
}

impl Runner {
    /// Executes what `script` still holds.
    pub fn script<F: Files>(&mut self, script: &mut Script<F>) -> End {
        loop {
            if let Some(end) = self.step(script.next()) {
                return end;
            }
        }
    }

    /// Executes one item of a script; why it is to be left, if it is.
    pub fn step(&mut self, item: Option<Result<Item, ScriptError>>) -> Option<End> {
        match item {
            None => Some(End::Over),
            Some(Err(error)) => Some(End::Wrong(error)),
            Some(Ok(Item::Quit)) => Some(End::Left),
            Some(Ok(Item::OnError { exit })) => {
                self.stop = exit;
                None
            }
            Some(Ok(Item::Batch(batch))) => self.batch(&batch),
        }
    }

    fn batch(&mut self, batch: &Batch) -> Option<End> {
        if self.given.is_secret_of(batch.text()) {
            return Some(End::Secret);
        }
        if self.echo {
            self.screen.borrow_mut().remark(redact(batch.text()).trim_end());
        }
        let loops = batch.repeat > 1;
        if loops {
            self.screen.borrow_mut().remark("Beginning execution loop");
        }
        for _ in 0..batch.repeat {
            let end = self.execute(batch.text());
            if end.is_some() {
                return end;
            }
        }
        if loops {
            let line = format!("Batch execution completed {} times.", batch.repeat);
            self.screen.borrow_mut().remark(&line);
        }
        None
    }

    fn execute(&mut self, text: &str) -> Option<End> {
        self.interrupts.begin();
        let outcome = self.session.borrow_mut().execute(text);
        let is_cancelled = self.interrupts.end();
        let mut screen = self.screen.borrow_mut();
        screen.end();
        if is_cancelled && outcome.cancelled {
            let line = "Query was cancelled by user.";
            match self.json {
                true => screen.raw(&format!("{}\n", told(line, Id::Cancelled))),
                false => screen.remark(line),
            }
            return Some(End::Cancelled);
        }
        // What is no error never counts.
        let counts = outcome.severity >= self.level.unwrap_or(ERROR).max(ERROR);
        if counts && self.level.is_some() {
            self.counted = Some(outcome.severity);
        }
        match () {
            () if screen.is_gone() => Some(End::Unread),
            () if screen.asks_to_leave() => Some(End::Error),
            () if self.stop && counts => Some(End::Error),
            () => None,
        }
    }

    /// Says what is wrong with a script.
    pub fn tell_wrong(&self, error: &ScriptError) {
        if self.json {
            let told = told(&error.to_string(), Id::Script);
            self.screen.borrow_mut().raw(&format!("{told}\n"));
        }
        tell(format_args!("{}\n", printable(&error.to_string())));
    }
}

/// What stopped a script, for machines.
fn told(error: &str, id: Id) -> serde_json::Value {
    json!({"error": error, "id": id.word(), "kind": id.kind()})
}

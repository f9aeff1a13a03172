//! Scripts, executed: batch by batch, until an error that counts, `:quit` or the end.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use pellucid::shown::printable;
use pellucid_sql::session::Session;
use pellucid_tsql::batch::{
    Batch, Files, Item, Redirect, Script, ScriptError, Shown, Stream, Variables,
};
use pellucid_tsql::secret::redact;
use serde_json::json;

use super::aligned::Layout;
use super::argument::Given;
use super::clock::{Alarm, Statistics};
use super::commands;
use super::files::Disk;
use super::interrupt::Interrupts;
use super::screen::Screen;
use super::settings::{self, Fixed};
use super::sheet::Sheet;
use crate::output::{tell, Failure, Id};

/// From this severity on it is an error.
const ERROR: u8 = 11;

/// Why a script is left.
#[derive(Debug)]
pub enum End {
    /// There is no more of it.
    Over,
    /// `:quit`.
    Left,
    /// `EXIT(..)`, with its value.
    Returned(u8),
    /// The session, the clock or a file of it failed.
    Failed(Failure),
    /// An error that counts: -b, `:on error exit`, state 127.
    Error,
    /// An error of severity 20 or more has ended the session.
    Closed,
    /// Ctrl-C.
    Cancelled,
    /// Nobody reads what it says.
    Unread,
    /// A password of it stands in an argument.
    Secret,
    /// Its own commands are wrong.
    Wrong(ScriptError),
}

/// Opens a session that talks to the screen.
type Reopen = dyn Fn(&Rc<RefCell<Screen>>, &Interrupts) -> Result<Session, Failure>;

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
    /// Where its files lie.
    pub disk: Disk,
    /// How rows stand, as far as variables do not say so.
    pub fixed: Fixed,
    /// Whether the last batch had an error.
    pub has_failed: bool,
    /// `:xml on`
    pub stream: bool,
    /// -p
    pub statistics: Option<Statistics>,
    /// `:perftrace`; none: where results go.
    pub traced: Option<Sheet>,
    /// Opens another session.
    pub reopen: Box<Reopen>,
}

impl Runner {
    /// Executes what `script` still holds.
    pub fn script<F: Files>(&mut self, script: &mut Script<F>) -> End {
        loop {
            let item = script.next();
            if let Some(end) = self.step(item, &script.variables) {
                return end;
            }
        }
    }

    /// Executes one item of a script; why it is to be left, if it is.
    pub fn step(
        &mut self,
        item: Option<Result<Item, ScriptError>>,
        variables: &Variables,
    ) -> Option<End> {
        match item {
            None => Some(End::Over),
            Some(Err(error)) => Some(End::Wrong(error)),
            Some(Ok(Item::Quit)) => Some(End::Left),
            Some(Ok(Item::OnError { exit })) => {
                self.stop = exit;
                None
            }
            Some(Ok(Item::Batch(batch))) => self.batch(&batch, variables),
            Some(Ok(Item::Exit { batch, returns })) => {
                let end = batch.and_then(|batch| self.batch(&batch, variables));
                Some(end.unwrap_or_else(|| match returns {
                    true => {
                        let first = self.screen.borrow_mut().take_first();
                        End::Returned(commands::status(&first, self.has_failed))
                    }
                    false => End::Left,
                }))
            }
            Some(Ok(Item::Redirect(redirect))) => self.redirect(redirect).err().map(End::Wrong),
            Some(Ok(Item::Xml { on })) => {
                self.stream = on;
                None
            }
            Some(Ok(Item::Connect)) => match (self.reopen)(&self.screen, &self.interrupts) {
                Ok(session) => {
                    *self.session.borrow_mut() = session;
                    None
                }
                Err(failure) => Some(End::Failed(failure)),
            },
            Some(Ok(Item::List(text))) => self.show(&text),
            Some(Ok(Item::Show(Shown::Help))) => self.show(commands::HELP),
            Some(Ok(Item::Show(Shown::Servers))) => self.show(&commands::servers(true)),
            Some(Ok(Item::Show(Shown::Variables))) => self.show(&commands::variables(variables)),
            Some(Ok(Item::PassedOver { command })) => {
                tell(format_args!(
                    "Sqlcmd: Warning: `{command}` is passed over: -X disables the commands that start programs\n"
                ));
                None
            }
        }
    }

    fn show(&self, text: &str) -> Option<End> {
        self.screen.borrow_mut().remark(text.trim_end_matches('\n'));
        None
    }

    fn redirect(&mut self, redirect: Redirect) -> Result<(), ScriptError> {
        let sheet = match Sheet::named(&redirect.to, &self.disk) {
            Ok(sheet) => sheet,
            Err(error) => return Err(redirect.error(error)),
        };
        match redirect.stream {
            Stream::Out => self.screen.borrow_mut().to(sheet),
            Stream::Error => self.screen.borrow_mut().errors_to(sheet),
            Stream::Statistics => self.traced = Some(sheet),
        }
        Ok(())
    }

    fn batch(&mut self, batch: &Batch, variables: &Variables) -> Option<End> {
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
        let layout = Layout { stream: self.stream, ..self.fixed.layout(variables) };
        self.screen.borrow_mut().set_layout(&layout);
        let limit = settings::timeout(variables);
        for _ in 0..batch.repeat {
            let since = Instant::now();
            let end = self.execute(batch.text(), limit);
            self.trace(since, variables);
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

    fn trace(&mut self, since: Instant, variables: &Variables) {
        let Some(statistics) = self.statistics else { return };
        let size = variables.get("SQLCMDPACKETSIZE").unwrap_or_default();
        let text = statistics.of(since, &size);
        match &mut self.traced {
            // Nobody reads it: no reason to stop.
            Some(sheet) => {
                let _ = sheet.write(&format!("{text}\n")).and_then(|()| sheet.flush());
            }
            None => self.screen.borrow_mut().remark(&text),
        }
    }

    fn execute(&mut self, text: &str, limit: Option<Duration>) -> Option<End> {
        self.screen.borrow_mut().take_first();
        let cancel = self.session.borrow().cancel();
        let alarm = match limit.map(|limit| Alarm::set(limit, cancel)).transpose() {
            Ok(alarm) => alarm,
            Err(error) => {
                let hint = "leave out -t";
                return Some(End::Failed(Failure::new(Id::of_system(&error), error, hint)));
            }
        };
        self.interrupts.begin();
        let outcome = self.session.borrow_mut().execute(text);
        let is_cancelled = self.interrupts.end();
        let is_late = alarm.is_some_and(Alarm::end) && outcome.cancelled && !is_cancelled;
        self.has_failed = is_late || outcome.severity >= ERROR;
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
        if is_late {
            let line = "Timeout expired";
            match self.json {
                true => screen.raw(&format!("{}\n", told(line, Id::Cancelled))),
                false => screen.remark(line),
            }
            return self.stop.then_some(End::Error);
        }
        // What is no error never counts.
        let counts = outcome.severity >= self.level.unwrap_or(ERROR).max(ERROR);
        if counts && self.level.is_some() {
            self.counted = Some(outcome.severity);
        }
        match () {
            () if screen.is_gone() => Some(End::Unread),
            () if outcome.ended => Some(End::Closed),
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

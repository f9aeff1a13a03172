//! Executes statements: one module for each family.

mod absent;
mod backup;
mod certificate;
mod checks;
mod constraint;
mod control;
mod cursor;
mod database;
mod dbcc;
mod device;
mod encryption;
mod function;
mod insert_execute;
mod inspect;
mod into;
mod labels;
mod maintenance;
mod master_key;
mod media_option;
mod module;
mod object;
mod output;
mod pending;
mod procedure;
mod provider;
mod query;
mod referenced;
mod request;
mod restore;
mod restore_log;
mod restore_system;
mod set;
mod statistics;
mod steps;
mod trace;
mod transaction;
mod view;
mod violation;
mod worker;

use std::sync::Arc;

use pellucid_tsql::ast::{
    Control, CursorStatement, SessionStatement, SessionSwitch, Statement, StatementKind,
    TransactionStatement,
};
use pellucid_tsql::parse_as;

use crate::message::{table, Message};
use crate::session::{Frame, Session};

pub(crate) use backup::recovery_model;
pub(crate) use constraint::unquoted;
pub(crate) use database::is_refused_access;
pub(crate) use insert_execute::Kept;
pub(crate) use maintenance::{DBCC_COMMANDS, DBCC_WITHOUT_EFFECT};
pub(crate) use module::Ready;
pub(crate) use object::{constraints as key_constraints, first_name as first_name_of, Constraint};
pub(crate) use procedure::{access, job_procedures, log_path, size_kb, PROCEDURES};
pub(crate) use set::state_of_switch;
pub(crate) use violation::Violation;
pub(crate) use worker::state_of_process;

/// Where execution goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// With the next statement.
    Next,
    /// Behind the WHILE.
    Break,
    /// With the WHILE's condition.
    Continue,
    /// Behind the batch.
    Return,
    /// With the label that the session is told.
    Goto,
}

/// What ended a statement.
#[derive(Debug, Clone)]
pub(crate) struct Raised {
    /// Its messages; the last one is what CATCH sees.
    pub messages: Vec<Message>,
    /// The line of the batch; none until a statement has put its own.
    pub line: Option<u32>,
    /// The procedure it was raised in.
    pub procedure: Option<Arc<str>>,
    /// Whether the sink has them.
    pub is_told: bool,
    /// The batch was cancelled: nothing is told, nothing caught.
    pub is_cancelled: bool,
    /// It ends the batch, and the batches around it: THROW, and what ends a transaction.
    pub is_thrown: bool,
    /// RAISERROR, for which XACT_ABORT does not count.
    pub is_raised: bool,
    /// How many frames there were when a statement could not be compiled: the TRY blocks of the last one do not catch it.
    pub uncompiled: Option<usize>,
    /// The constraint that SQLite has told of, until its message has its name.
    pub violation: Option<Violation>,
    /// The statement alone was ended: 3621 follows where nothing catches it.
    pub is_terminated: bool,
}

/// What executing gives.
pub(crate) type Done<T = ()> = Result<T, Raised>;

impl From<crate::values::Error> for Raised {
    fn from(error: crate::values::Error) -> Self {
        Message::from(error).into()
    }
}

impl From<Message> for Raised {
    fn from(message: Message) -> Self {
        Self::of(vec![message])
    }
}

impl From<rusqlite::Error> for Raised {
    fn from(error: rusqlite::Error) -> Self {
        let violation = Violation::of(&error);
        Self { violation, ..Message::from(error).into() }
    }
}

impl From<pellucid::Error> for Raised {
    fn from(error: pellucid::Error) -> Self {
        Message::from(error).into()
    }
}

impl From<pellucid_host::DatabaseError> for Raised {
    fn from(error: pellucid_host::DatabaseError) -> Self {
        Message::from(error).into()
    }
}

impl Raised {
    /// With several messages.
    pub fn of(messages: Vec<Message>) -> Self {
        Self {
            messages,
            line: None,
            procedure: None,
            is_told: false,
            is_cancelled: false,
            is_thrown: false,
            is_raised: false,
            uncompiled: None,
            violation: None,
            is_terminated: false,
        }
    }

    /// Nothing more is executed.
    pub fn cancelled() -> Self {
        Self { is_cancelled: true, ..Self::of(Vec::new()) }
    }

    /// Nothing more is executed, as the session has ended. It is told.
    pub fn ended() -> Self {
        Self { is_told: true, is_thrown: true, ..Self::of(Vec::new()) }
    }

    /// The same, said of the call of a procedure, before its first line.
    pub fn at_call(self, procedure: &str) -> Self {
        Self { line: Some(0), procedure: Some(procedure.into()), ..self }
    }

    /// The same with a message behind.
    #[must_use]
    pub fn and(mut self, message: Message) -> Self {
        if !self.is_cancelled {
            self.messages.push(message);
        }
        self
    }

    /// Whether SQL Server rolls back for it: a value does not convert.
    fn aborts_transaction(&self) -> bool {
        const ABORTING: [u32; 4] = [241, 242, 245, 295];
        let is_kept_wrongly = |message: &Message| message.is_of_insert_execute();
        self.messages.iter().any(|message| {
            message.ends_session()
                || ABORTING.contains(&message.number)
                || is_of_xml(message)
                || is_kept_wrongly(message)
        })
    }

    /// Whether the batch ends with it, as SQL Server's does: it never got as far as this statement, a name in it is
    /// not known, or a value does not convert.
    fn ends_batch(&self) -> bool {
        const ENDING: [u32; 13] =
            [102, 137, 156, 207, 208, 241, 242, 245, 295, 1087, 4104, 4121, 10704];
        self.is_thrown
            || self.uncompiled.is_some()
            || self.messages.iter().any(|message| {
                message.ends_session()
                    || message.severity == 15
                    || ENDING.contains(&message.number)
                    || is_of_xml(message)
            })
    }
}

/// Whether SQL Server finds it when it compiles a statement, so that a TRY block around does not catch it. Source:
/// Microsoft's "TRY...CATCH", errors unaffected by it.
fn is_of_compilation(message: &Message) -> bool {
    const NAMES: [u32; 9] = [107, 195, 207, 208, 209, 4104, 4121, 4413, 8154];
    const COUNTS: [u32; 6] = [109, 110, 120, 121, 213, 10709];
    NAMES.contains(&message.number) || COUNTS.contains(&message.number)
}

fn is_change(statement: &StatementKind) -> bool {
    matches!(
        statement,
        StatementKind::Insert(_) | StatementKind::Update(_) | StatementKind::Delete(_)
    )
}

/// Whether SQL Server says behind it that the statement has been terminated: rows were changed and are taken back.
fn terminates(message: &Message) -> bool {
    const VALUES: [u32; 12] = [220, 232, 512, 515, 517, 535, 547, 2601, 2627, 2628, 8115, 8134];
    VALUES.contains(&message.number)
}

/// A text is no xml, which is a value that does not convert.
fn is_of_xml(message: &Message) -> bool {
    matches!(message.number, 6335 | 9400..=9499)
}

/// Statements behind which `@@ROWCOUNT` is 0. Source: Microsoft's "@@ROWCOUNT".
fn resets_row_count(statement: &StatementKind) -> bool {
    match statement {
        StatementKind::Session(session) => !matches!(session, SessionStatement::SetVariable { .. }),
        StatementKind::Cursor(cursor) => {
            matches!(cursor, CursorStatement::Close(_) | CursorStatement::Deallocate(_))
        }
        StatementKind::Control(control) => {
            matches!(control, Control::Print(_) | Control::RaiseError(_))
        }
        StatementKind::Transaction(transaction) => matches!(
            transaction,
            TransactionStatement::Begin { .. } | TransactionStatement::Commit { .. }
        ),
        _ => false,
    }
}

/// What reads, and what ends the transaction.
fn is_allowed_when_doomed(statement: &StatementKind) -> bool {
    match statement {
        StatementKind::Control(_)
        | StatementKind::Execute(_)
        | StatementKind::Select(_)
        | StatementKind::Declare(_)
        | StatementKind::Cursor(_)
        | StatementKind::Session(_)
        | StatementKind::Inspect(_) => true,
        StatementKind::Transaction(transaction) => {
            matches!(transaction, pellucid_tsql::ast::TransactionStatement::Rollback { name: None })
        }
        _ => false,
    }
}

impl Session {
    /// Executes a text: a batch, or what `sp_executesql` is given.
    pub(crate) fn run_text(&mut self, text: &str) -> Done<Flow> {
        let (statements, undeclared) = match parse_as(text, !self.settings.quotes_are_strings) {
            Ok(parsed) => {
                self.settings.quotes_are_strings = !parsed.quoted_identifier;
                (parsed.statements, parsed.undeclared)
            }
            Err(error) => {
                let line = Some(error.line);
                return Err(Raised { line, ..Message::from(error).into() });
            }
        };
        // It counts from the batch that says it, before anything of that is executed.
        for statement in &statements {
            if let StatementKind::Session(SessionStatement::SetSwitches { switches, on }) =
                &statement.kind
            {
                if switches.contains(&SessionSwitch::ParseOnly) {
                    self.settings.parse_only = *on;
                }
            }
        }
        if self.settings.parse_only {
            return Ok(Flow::Next);
        }
        let declarations = control::declarations(&statements, [])?;
        self.check_declared(&undeclared)?;
        labels::check(&statements)?;
        self.frame().text = text.into();
        self.announce(&declarations);
        self.run_block(&statements)
    }

    /// The same in a frame of its own, which is given back.
    pub(crate) fn run_nested(&mut self, text: &str, frame: Frame) -> (Done<Flow>, Frame) {
        self.nested(frame, |session| session.run_text(text))
    }

    /// Runs something in a frame of its own, which is given back.
    pub(crate) fn nested(
        &mut self,
        frame: Frame,
        run: impl FnOnce(&mut Self) -> Done<Flow>,
    ) -> (Done<Flow>, Frame) {
        const NESTED_MOST: usize = 32;
        if self.frames.len() > NESTED_MOST {
            // It ends the batch around all of them: what they would go on with is half done.
            let raised = Raised::from(Message::of(table::TOO_DEEP, []));
            return (Err(Raised { is_thrown: true, ..raised }), frame);
        }
        self.frames.push(frame);
        self.shared.set_nesting(self.frames.len() - 1);
        let (settings, database) = (self.settings, self.databases.current_name());
        let tables = self.databases.temporary_tables();
        self.databases.identity_insert.enter();
        let done = run(self);
        // Told while its frame is there, so that lines are its own.
        let done = match done {
            Err(raised) if self.tries == 0 && !raised.is_told => {
                self.tell_raised(&raised);
                Err(Raised { is_told: true, ..raised })
            }
            done => done,
        };
        let frame = self.frames.pop().unwrap_or_default();
        self.shared.set_nesting(self.frames.len() - 1);
        // What it has set, where it has gone and what it has made for itself ends with it.
        self.settings = settings;
        self.databases.identity_insert.leave();
        self.databases.drop_temporary_tables_but(&tables);
        if let Ok(Some(known)) = self.databases.instance.find(&database) {
            self.databases.enter(&known);
        }
        (done, frame)
    }

    pub(crate) fn run_block(&mut self, statements: &[Statement]) -> Done<Flow> {
        // A GOTO leads into it.
        let mut at = self.sought_in(statements).unwrap_or(0);
        while let Some(statement) = statements.get(at) {
            at += 1;
            match self.run_statement(statement)? {
                Flow::Next => {}
                Flow::Goto => match self.sought_in(statements) {
                    Some(label) => at = label,
                    None => return Ok(Flow::Goto),
                },
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    pub(crate) fn run_statement(&mut self, statement: &Statement) -> Done<Flow> {
        if self.cancel.is_asked() {
            return Err(Raised::cancelled());
        }
        if self.is_ended {
            return Err(Raised::ended());
        }
        if self.stack.is_spent() {
            // As 217: what the batches around would go on with is half done.
            let raised = Raised::from(Message::of(table::STACK_SPENT, []));
            return Err(Raised { is_thrown: true, ..raised });
        }
        let is_control = matches!(statement.kind, StatementKind::Control(_));
        let is_set = matches!(statement.kind, StatementKind::Session(_));
        if self.settings.no_execution && !is_set {
            return Ok(Flow::Next);
        }
        self.frame().line = statement.line;
        self.frame().span = statement.span.clone();
        self.shared.begin_statement();
        self.databases.begin_statement();
        let watch = self.settings.statistics_time.then(statistics::Watch::start);
        let done = self.perform(statement).and_then(|flow| self.fits_kept().map(|()| flow));
        self.frame().line = statement.line;
        self.warn_of_nulls();
        if self.settings.statistics_time && !is_control {
            // The statement that switches it on has taken no time that anybody asked for.
            self.inform(watch.unwrap_or_else(statistics::Watch::start).message());
        }
        let mut raised = match done {
            Ok(flow) => {
                if resets_row_count(&statement.kind) {
                    self.shared.set_row_count(0);
                }
                // What a string has said last is what EXECUTE says.
                let is_execute = matches!(statement.kind, StatementKind::Execute(_));
                if !is_control && !is_execute {
                    self.shared.end_statement(None, 0);
                }
                self.watch_transaction();
                return Ok(flow);
            }
            Err(raised) => raised,
        };
        if raised.line.is_none() {
            raised.line = Some(statement.line);
            raised.procedure = raised.procedure.or(self.frame().procedure.clone());
        }
        if self.cancel.is_asked() {
            raised = Raised::cancelled();
        }
        let number = raised.messages.last().map_or(0, |message| message.number);
        // A statement that failed has changed no row.
        self.shared.end_statement(Some(0), number);
        self.watch_transaction();
        let aborts = raised.aborts_transaction() || (self.settings.abort && !raised.is_raised);
        raised.is_terminated |=
            is_change(&statement.kind) && raised.messages.iter().any(terminates);
        raised.is_terminated &= !aborts && !raised.ends_batch();
        if raised.is_cancelled || raised.is_told || self.tries > 0 {
            // Caught or not, such a transaction only ends by ROLLBACK.
            self.is_doomed |= aborts && self.transactions > 0 && !raised.is_cancelled;
            self.shared.set_transactions(self.transactions, self.is_doomed);
            return Err(raised);
        }
        self.tell_raised(&raised);
        if aborts {
            if self.transactions > 0 {
                self.rollback_all();
                self.drop_cursors_of_batch();
            }
            return Err(Raised { is_told: true, is_thrown: true, ..raised });
        }
        match raised.ends_batch() {
            true => Err(Raised { is_told: true, ..raised }),
            false => Ok(Flow::Next),
        }
    }

    /// Gives the messages to the sink.
    pub(crate) fn tell_raised(&mut self, raised: &Raised) {
        if raised.is_told || raised.is_cancelled {
            return;
        }
        let procedure = self.frame().procedure.clone();
        self.frame().procedure = raised.procedure.clone().or_else(|| procedure.clone());
        for message in &raised.messages {
            self.tell(message.clone(), raised.line.unwrap_or(1));
        }
        if raised.is_terminated {
            let message = Message::of(table::STATEMENT_TERMINATED, []);
            self.tell(Message { severity: 0, ..message }, raised.line.unwrap_or(1));
        }
        self.frame().procedure = procedure;
    }

    fn perform(&mut self, statement: &Statement) -> Done<Flow> {
        if self.is_doomed && !is_allowed_when_doomed(&statement.kind) {
            return Err(Message::of(table::DOOMED, []).into());
        }
        match &statement.kind {
            StatementKind::Control(control) => return self.control(control),
            StatementKind::Execute(execute) => return self.execute_procedure(execute),
            StatementKind::Select(query) => self.select(query),
            StatementKind::Insert(insert) => self.insert(insert),
            StatementKind::Update(update) => self.update(update),
            StatementKind::Delete(delete) => self.delete(delete),
            StatementKind::Declare(declarations) => self.declare(declarations),
            StatementKind::Cursor(statement) => self.cursor(statement),
            StatementKind::Session(statement) => self.set(statement),
            StatementKind::Transaction(statement) => self.transaction(statement),
            StatementKind::MasterKey(statement) => self.master_key(statement),
            StatementKind::Certificate(statement) => self.certificate(statement),
            StatementKind::DatabaseEncryptionKey(statement) => self.encryption_key(statement),
            StatementKind::Provider(statement) => self.provider(statement),
            StatementKind::Backup(backup) => self.backup(backup),
            StatementKind::Restore(restore) => self.restore(restore),
            StatementKind::Inspect(inspect) => self.inspect(inspect),
            StatementKind::Database(statement) => self.database_statement(statement),
            StatementKind::Object(statement) => self.object(statement),
            StatementKind::Maintenance(statement) => self.maintenance(statement),
        }?;
        Ok(Flow::Next)
    }

    /// Rows were changed or given.
    pub(crate) fn count(&mut self, rows: u64) {
        self.shared.set_row_count(rows);
        if self.ends_kept_result() {
            return;
        }
        self.warn_of_nulls();
        let shown = (!self.settings.no_count).then_some(rows);
        self.sink.done(shown);
    }

    /// 8153, once for a statement.
    pub(crate) fn warn_of_nulls(&mut self) {
        if self.shared.take_met_null() && !self.settings.no_warnings {
            self.inform(Message::of(table::NULL_ELIMINATED, []));
        }
    }

    /// Refused within a transaction.
    pub(crate) fn outside_transaction(&self, statement: &str) -> Done {
        match self.transactions {
            0 => Ok(()),
            _ => Err(Message::not_in_transaction(statement).into()),
        }
    }
}

//! A session: who is connected, to which database, with which settings; executes batches.
//!
//! ```no_run
//! use pellucid_sql::session::{Options, Session};
//! # struct Terminal;
//! # impl pellucid_sql::session::Sink for Terminal {
//! #     fn columns(&mut self, _: &[pellucid_sql::translate::ResultColumn]) {}
//! #     fn row(&mut self, _: Vec<pellucid_sql::values::convert::Value>) {}
//! #     fn done(&mut self, _: Option<u64>) {}
//! #     fn message(&mut self, _: &pellucid_sql::session::Report) {}
//! # }
//!
//! let mut session = Session::open(Options::default(), Box::new(Terminal))?;
//! session.execute("BACKUP DATABASE sales TO DISK = 'sales.bak' WITH INIT, STATS = 5");
//! # Ok::<(), pellucid_sql::message::Message>(())
//! ```
//!
//! What statements say goes to a [`Sink`] as it happens. One connection of SQLite's serves a session; databases are
//! attached to it when a name of them is met, and let go for whatever opens files by itself.

mod calculator;
mod cancel;
mod catalog;
mod cursor;
mod facts;
mod frame;
mod glances;
mod identity;
mod modules;
mod names;
mod narrowed;
mod objects;
mod programs;
mod properties;
mod recovery;
mod server;
mod server_view;
mod stack;
mod translations;
mod types;

use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use crate::execute::Ready;
use crate::instance::Instance;
use crate::message::{Message, Result};
use crate::translate::ResultColumn;

pub(crate) use calculator::Calculator;
pub use cancel::Cancel;
pub(crate) use catalog::{is_internal, row_name, shown, sqlite_name, without_literals, Databases};
pub(crate) use cursor::{Cursor, CursorHandle, OpenCursor};
pub(crate) use frame::{Frame, TableVariable};
pub(crate) use identity::On as IdentityInsertOn;
pub(crate) use names::Names;
pub(crate) use objects::{object_id, split};
pub(crate) use properties::{bytes_most, CertificateFacts};
pub(crate) use recovery::Recovery;
pub(crate) use server::{Caught, Shared};
pub(crate) use translations::{Recorder, SourceRef, Translated, Translations};
pub(crate) use types::{
    catalog_type, declaration, declared_type, identity_seed, identity_type, written_declaration,
    IDENTITY_FROM, IDENTITY_IS,
};

use crate::values::convert::Value;

/// How a session is opened.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The program that scans and encrypts in processes of its own; none: what needs one is refused.
    pub program: Option<PathBuf>,
    /// Folders for drives, before those that the instance knows.
    pub drives: Vec<(char, PathBuf)>,
    /// The database to begin in; `master` if none is named.
    pub database: Option<String>,
    /// What `APP_NAME()` gives.
    pub application: String,
    /// QUOTED_IDENTIFIER at the beginning: `".."` is a name. OFF, as sqlcmd has it, unless asked for.
    pub quoted_identifier: bool,
    /// What `HOST_NAME()` gives; the machine's name if none is given.
    pub workstation: Option<String>,
    /// SQLite extensions with the collations and functions that the schemas of databases need.
    pub load: Vec<PathBuf>,
    /// Bytes of the executing thread's stack that statements may use; a batch that needs more ends with 8631. Without it 1 MiB,
    /// which the stack of any thread has twice.
    pub stack_bytes: Option<usize>,
}

/// Whoever takes what statements give.
pub trait Sink {
    /// A result begins.
    fn columns(&mut self, columns: &[ResultColumn]);
    /// A row of it: values in the forms of [`crate::values::types`].
    fn row(&mut self, values: Vec<Value>);
    /// A result has ended, or a statement has changed so many rows; nothing is counted under NOCOUNT.
    fn done(&mut self, rows: Option<u64>);
    /// A message.
    fn message(&mut self, report: &Report);
}

/// A message and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The message.
    pub message: Message,
    /// The line of the batch, from 1.
    pub line: u32,
    /// The procedure that said it.
    pub procedure: Option<Arc<str>>,
    /// The server's name.
    pub server: String,
}

/// How a batch has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The highest severity of its messages, 0 if there were none.
    pub severity: u8,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Whether an error of severity 20 or more has ended the session, which executes nothing from then on.
    pub ended: bool,
}

/// Settings that SET changes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Settings {
    /// STATISTICS TIME
    pub statistics_time: bool,
    /// NOCOUNT
    pub no_count: bool,
    /// XACT_ABORT
    pub abort: bool,
    /// NOEXEC
    pub no_execution: bool,
    /// PARSEONLY
    pub parse_only: bool,
    /// ROWCOUNT; 0: all.
    pub row_count: u64,
    /// ANSI_WARNINGS OFF
    pub no_warnings: bool,
    /// ANSI_NULLS OFF
    pub nulls_are_equal: bool,
    /// QUOTED_IDENTIFIER OFF
    pub quotes_are_strings: bool,
}

/// A session.
pub struct Session {
    pub(crate) databases: Databases,
    pub(crate) shared: Arc<Shared>,
    pub(crate) sink: Box<dyn Sink>,
    pub(crate) frames: Vec<Frame>,
    /// Cursors that are GLOBAL, by name in lower case.
    pub(crate) cursors: HashMap<String, CursorHandle>,
    /// The number of the batch that is executed.
    pub(crate) batch: u64,
    pub(crate) translations: Translations,
    /// Procedures that were read.
    pub(crate) modules: Vec<Rc<Ready>>,
    /// What RETURN of the procedure at hand has said.
    pub(crate) returned: Option<i64>,
    /// The label that a GOTO goes to, until it is there.
    pub(crate) label: Option<String>,
    pub(crate) settings: Settings,
    pub(crate) cancel: Cancel,
    pub(crate) stack: stack::Stack,
    pub(crate) program: Option<PathBuf>,
    /// Extensions for every connection to a database.
    pub(crate) load: Vec<PathBuf>,
    /// How many TRY blocks are around.
    pub(crate) tries: u32,
    pub(crate) severity: u8,
    /// An error of severity 20 or more was told: nothing more is executed.
    pub(crate) is_ended: bool,
    /// BEGIN TRANSACTION so many times.
    pub(crate) transactions: u32,
    /// An error has left the transaction so that only ROLLBACK ends it.
    pub(crate) is_doomed: bool,
    /// The name of the outermost one, and of savepoints.
    pub(crate) savepoints: Vec<String>,
    /// The mark of its commit: name and description.
    pub(crate) mark: Option<(String, String)>,
    /// The results that INSERT .. EXECUTE keeps, while it executes.
    pub(crate) kept: Option<crate::execute::Kept>,
    /// What OPEN MASTER KEY was given.
    pub(crate) open_master_key: Option<pellucid_tsql::secret::Secret>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("databases", &self.databases).finish_non_exhaustive()
    }
}

impl Session {
    /// Opens the instance of this process, made if there is none, and a session on it.
    ///
    /// # Errors
    /// What keeps the instance from being opened; 911 for an unknown database.
    pub fn open(options: Options, sink: Box<dyn Sink>) -> Result<Self> {
        pellucid_bundled::register()?;
        let instance = Instance::open(options.drives)?;
        let shared = Arc::new(Shared::new(options.application, options.workstation));
        let connection = calculator::connect(&options.load, &shared)?;
        let calculator = Calculator::open(&options.load, &shared)?;
        let cancel = Cancel::new(connection.get_interrupt_handle());
        let databases = Databases::new(connection, calculator, instance, shared.clone())?;
        let session = Self {
            databases,
            shared,
            sink,
            frames: vec![Frame::default()],
            cursors: HashMap::new(),
            batch: 0,
            translations: Translations::default(),
            modules: Vec::new(),
            returned: None,
            label: None,
            settings: Settings {
                quotes_are_strings: !options.quoted_identifier,
                ..Settings::default()
            },
            cancel,
            stack: stack::Stack::new(options.stack_bytes),
            program: options.program,
            load: options.load,
            tries: 0,
            severity: 0,
            is_ended: false,
            transactions: 0,
            is_doomed: false,
            savepoints: Vec::new(),
            mark: None,
            kept: None,
            open_master_key: None,
        };
        let database = options.database.as_deref().unwrap_or("master");
        session.databases.use_database(database)?;
        Ok(session)
    }

    /// Executes a batch. What goes wrong goes to the sink.
    pub fn execute(&mut self, batch: &str) -> Outcome {
        if self.is_ended {
            return Outcome { severity: self.severity, cancelled: false, ended: true };
        }
        self.cancel.begin();
        self.stack.begin();
        self.batch += 1;
        self.severity = 0;
        self.tries = 0;
        self.kept = None;
        self.frames = vec![Frame::default()];
        self.label = None;
        self.shared.begin_batch();
        if let Err(raised) = self.run_text(batch) {
            self.tell_raised(&raised);
        }
        self.end_of_batch();
        self.databases.forget_table_variables();
        // What stands in them is of this batch, and may be secret.
        self.databases.connection.flush_prepared_statement_cache();
        self.databases.calculator.forget();
        self.translations.forget();
        Outcome { severity: self.severity, cancelled: self.cancel.is_asked(), ended: self.is_ended }
    }

    /// What cancels the batch that is being executed, from another thread or a signal handler.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// The names of the databases, for completion.
    pub fn database_names(&self) -> Vec<String> {
        let databases = self.databases.instance.databases().unwrap_or_default();
        databases.into_iter().map(|known| known.name).collect()
    }

    /// The names of the certificates, for completion.
    pub fn certificate_names(&self) -> Vec<String> {
        let found =
            self.databases.instance.keyring().and_then(|keyring| Ok(keyring.find_certificates()?));
        let names = |found: pellucid_keyring::Found<pellucid_keyring::Stored>| {
            found.whole.iter().map(|stored| stored.public().name().to_owned()).collect()
        };
        found.map(names).unwrap_or_default()
    }

    /// The database that the session is in.
    pub fn database(&self) -> String {
        self.databases.current_name()
    }

    /// How many transactions are open.
    pub fn open_transactions(&self) -> u32 {
        self.transactions
    }

    /// A message that informs, about the statement at hand.
    pub(crate) fn inform(&mut self, message: Message) {
        let line = self.frame().line;
        self.tell(message, line);
    }

    pub(crate) fn tell(&mut self, message: Message, line: u32) {
        self.severity = self.severity.max(message.severity);
        self.is_ended |= message.ends_session();
        let procedure = self.frame().procedure.clone();
        let server = self.shared.server_name().to_owned();
        self.sink.message(&Report { message, line, procedure, server });
    }

    /// The text of the statement that is being executed, with `***` for secrets.
    pub(crate) fn statement_text(&mut self) -> String {
        self.frame().statement()
    }

    /// The frame of the batch, procedure or string that is being executed.
    pub(crate) fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }
}

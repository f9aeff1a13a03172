//! What functions of SQLite ask the session for: the clock, names, counters, the error that CATCH has caught.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::cursor::CursorStatus;
use super::objects::Object;
use super::programs::Programs;
use super::properties::{
    bytes_most, connection_property, type_id, type_name, CertificateFacts, ColumnFacts, FileFacts,
};
use crate::functions::Server;
use crate::instance::paths::{look_at, Places};
use crate::jobs::accounts;
use crate::message::{Message, Result};
use crate::values::convert::Value;
use crate::values::moment::Moment;
use crate::values::types::SqlType;

/// The version of SQL Server whose statements are spoken; its build is nobody's.
const VERSION: (i64, &str) = (16, "16.0.0.0");

/// Microseconds of one tick of SQL Server's.
const TICK_MICROSECONDS: i64 = 31_250;

/// Folders that are remembered, at most.
const ASKED_MOST: usize = 1000;

/// The processor time of this process, in ticks.
fn busy_ticks() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    (time.tv_sec * 1_000_000 + time.tv_nsec / 1000) / TICK_MICROSECONDS
}

/// An error within a CATCH block.
#[derive(Debug, Clone)]
pub(crate) struct Caught {
    pub message: Message,
    /// The errors before it of the same statement: `ERROR_NUMBER()` does not know them, THROW raises them again.
    pub before: Vec<Message>,
    pub line: u32,
    pub procedure: Option<Arc<str>>,
}

/// What is shared with the functions of a connection.
pub(crate) struct Shared {
    server_name: String,
    user: String,
    application: String,
    workstation: Option<String>,
    session_id: i64,
    begun: (Moment, Instant),
    has_met_null: AtomicBool,
    state: Mutex<State>,
    /// Those of scalar functions that statements call.
    pub programs: Programs,
}

/// What DATABASEPROPERTYEX asks for.
#[derive(Debug)]
pub(crate) struct DatabaseProperties {
    pub name: String,
    pub status: &'static str,
    pub access: &'static str,
    pub recovery: &'static str,
    pub is_read_only: bool,
    pub is_in_standby: bool,
    /// When the last CHECKDB that found nothing ended.
    pub good_check: Moment,
    pub collation: String,
}

#[derive(Debug)]
struct State {
    database: (i64, String),
    databases: Vec<(i64, String)>,
    objects: Vec<Object>,
    columns: Vec<ColumnFacts>,
    files: Vec<FileFacts>,
    certificates: Vec<String>,
    certificate_facts: Vec<CertificateFacts>,
    keys: Vec<(String, i64)>,
    context: BTreeMap<String, (Value, bool)>,
    /// Each with whether it was set for the whole server.
    trace_flags: BTreeMap<i64, bool>,
    folders: [String; 3],
    places: Places,
    /// Folders that `sys.dm_os_file_exists` has found.
    asked_for: Vec<PathBuf>,
    properties: Vec<DatabaseProperties>,
    row_count: i64,
    error: u32,
    transactions: u32,
    doomed: bool,
    caught: Vec<Caught>,
    identity: Option<i64>,
    now: Moment,
    nesting: i64,
    procedure_id: i64,
    fetch_status: i64,
    cursor_rows: i64,
    cursors: Vec<CursorStatus>,
}

impl Shared {
    /// What a session has that begins now: the names of this machine and user, and its number.
    pub fn new(application: String, workstation: Option<String>) -> Self {
        let uname = rustix::system::uname();
        let user = nix::unistd::User::from_uid(nix::unistd::Uid::effective()).ok().flatten();
        Self {
            server_name: uname.nodename().to_string_lossy().into_owned(),
            user: user
                .map_or_else(|| format!("#{}", nix::unistd::Uid::effective()), |user| user.name),
            application,
            workstation,
            // As SQL Server's, a smallint above those of its own sessions.
            session_id: 51 + i64::from(std::process::id() % 32_000),
            begun: (now(), Instant::now()),
            programs: Programs::default(),
            has_met_null: AtomicBool::new(false),
            state: Mutex::new(State {
                database: (1, "master".to_owned()),
                databases: Vec::new(),
                objects: Vec::new(),
                columns: Vec::new(),
                files: Vec::new(),
                certificates: Vec::new(),
                certificate_facts: Vec::new(),
                keys: Vec::new(),
                context: BTreeMap::new(),
                trace_flags: BTreeMap::new(),
                folders: Default::default(),
                places: Places::default(),
                asked_for: Vec::new(),
                properties: Vec::new(),
                row_count: 0,
                error: 0,
                transactions: 0,
                doomed: false,
                caught: Vec::new(),
                identity: None,
                now: now(),
                nesting: 0,
                procedure_id: 0,
                fetch_status: 0,
                cursor_rows: 0,
                cursors: Vec::new(),
            }),
        }
    }

    /// The name of this machine: `@@SERVERNAME`.
    pub fn server_name(&self) -> &str {
        &self.server_name
    }

    /// The name of the user who runs the process: `SUSER_SNAME()`.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The number of the session: `@@SPID`.
    pub fn session_id(&self) -> i64 {
        self.session_id
    }

    /// What `APP_NAME()` gives.
    pub fn application(&self) -> &str {
        &self.application
    }

    /// When the session began, UTC.
    pub fn begun(&self) -> Moment {
        self.begun.0
    }

    /// How long ago that is.
    pub fn age(&self) -> Duration {
        self.begun.1.elapsed()
    }

    /// `@@TRANCOUNT`
    pub fn transactions(&self) -> u32 {
        self.state().transactions
    }

    /// A panic while it was held has left it whole: every change is one assignment.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Forgets what CATCH blocks and procedures of the last batch left.
    pub fn begin_batch(&self) {
        let mut state = self.state();
        state.caught.clear();
        state.nesting = 0;
    }

    /// Takes the time, which is the same for all of a statement.
    pub fn begin_statement(&self) {
        self.state().now = now();
    }

    /// Takes what a statement leaves: `@@ROWCOUNT`, if it counts rows, and `@@ERROR`.
    pub fn end_statement(&self, rows: Option<u64>, error: u32) {
        let mut state = self.state();
        if let Some(rows) = rows {
            state.row_count = i64::try_from(rows).unwrap_or(i64::MAX);
        }
        state.error = error;
    }

    /// `@@ERROR`
    pub fn last_error(&self) -> u32 {
        self.state().error
    }

    /// Sets `@@ROWCOUNT`.
    pub fn set_row_count(&self, rows: u64) {
        self.state().row_count = i64::try_from(rows).unwrap_or(i64::MAX);
    }

    /// Sets `@@IDENTITY`.
    pub fn set_identity(&self, identity: i64) {
        self.state().identity = Some(identity);
    }

    /// Sets `@@TRANCOUNT`, and whether the transaction can only be rolled back (`XACT_STATE()`).
    pub fn set_transactions(&self, transactions: u32, doomed: bool) {
        let mut state = self.state();
        state.transactions = transactions;
        state.doomed = doomed;
    }

    /// Sets the database that the session is in: `DB_ID()` and `DB_NAME()`.
    pub fn set_database(&self, id: i64, name: &str) {
        self.state().database = (id, name.to_owned());
    }

    /// Sets `@@PROCID`; what it was.
    pub fn set_procedure_id(&self, id: i64) -> i64 {
        std::mem::replace(&mut self.state().procedure_id, id)
    }

    /// `@@PROCID`
    pub fn procedure_id(&self) -> i64 {
        self.state().procedure_id
    }

    /// Sets `@@FETCH_STATUS`.
    pub fn set_fetch_status(&self, status: i64) {
        self.state().fetch_status = status;
    }

    /// Sets `@@CURSOR_ROWS`.
    pub fn set_cursor_rows(&self, rows: usize) {
        self.state().cursor_rows = i64::try_from(rows).unwrap_or(i64::MAX);
    }

    /// Sets what CURSOR_STATUS finds.
    pub fn set_cursors(&self, cursors: Vec<CursorStatus>) {
        self.state().cursors = cursors;
    }

    /// Sets `@@NESTLEVEL`.
    pub fn set_nesting(&self, nesting: usize) {
        self.state().nesting = nesting as i64;
    }

    /// Whether an aggregate has left out a NULL since this was asked last.
    pub fn take_met_null(&self) -> bool {
        self.has_met_null.swap(false, Ordering::Relaxed)
    }

    /// Sets what functions find by name: databases, certificates, and the folders that SERVERPROPERTY gives, if it asks
    /// for them.
    pub fn set_names(
        &self,
        databases: Vec<(i64, String)>,
        certificates: Vec<String>,
        folders: Option<[String; 3]>,
    ) {
        let mut state = self.state();
        state.databases = databases;
        state.certificates = certificates;
        if let Some(folders) = folders {
            state.folders = folders;
        }
    }

    /// Sets what paths stand for, for `sys.dm_os_file_exists`.
    pub fn set_places(&self, places: Places) {
        self.state().places = places;
    }

    /// The folders that the session has asked for and found.
    pub fn folders_asked_for(&self) -> Vec<PathBuf> {
        self.state().asked_for.clone()
    }

    /// Sets what DATABASEPROPERTYEX gives.
    pub fn set_properties(&self, properties: Vec<DatabaseProperties>) {
        self.state().properties = properties;
    }

    /// Sets the objects and files that OBJECT_ID, FILE_NAME and their like find.
    pub fn set_objects(&self, objects: Vec<Object>, files: Vec<FileFacts>) {
        let mut state = self.state();
        state.objects = objects;
        state.files = files;
    }

    /// Sets the columns that COL_LENGTH and COL_NAME find.
    pub fn set_columns(&self, columns: Vec<ColumnFacts>) {
        self.state().columns = columns;
    }

    /// Sets what CERTPROPERTY and CERTENCODED give.
    pub fn set_certificate_facts(&self, certificates: Vec<CertificateFacts>) {
        self.state().certificate_facts = certificates;
    }

    /// Sets the keys that KEY_ID finds.
    pub fn set_keys(&self, keys: Vec<(String, i64)>) {
        self.state().keys = keys;
    }

    /// Sets a trace flag, which changes nothing.
    pub fn set_trace_flag(&self, flag: i64, is_global: bool, on: bool) {
        let mut state = self.state();
        match on {
            true => state.trace_flags.insert(flag, is_global),
            false => state.trace_flags.remove(&flag),
        };
    }

    /// The trace flags that are on, each with whether it is so for the whole server.
    pub fn trace_flags(&self) -> Vec<(i64, bool)> {
        self.state().trace_flags.iter().map(|(flag, is_global)| (*flag, *is_global)).collect()
    }

    /// Sets what SESSION_CONTEXT gives for a key; whether that was allowed.
    pub fn set_context(&self, key: &str, value: Value, is_read_only: bool) -> bool {
        let mut state = self.state();
        let key = key.to_lowercase();
        if state.context.get(&key).is_some_and(|(_, is_read_only)| *is_read_only) {
            return false;
        }
        state.context.insert(key, (value, is_read_only));
        true
    }

    /// The error of the innermost CATCH block: `ERROR_NUMBER()` and its like.
    pub fn caught(&self) -> Option<Caught> {
        self.state().caught.last().cloned()
    }

    /// Enters a CATCH block.
    pub fn push_caught(&self, caught: Caught) {
        self.state().caught.push(caught);
    }

    /// Leaves a CATCH block.
    pub fn pop_caught(&self) {
        self.state().caught.pop();
    }

    /// The time of the statement, UTC.
    pub fn statement_time(&self) -> Moment {
        self.state().now
    }

    fn property(&self, name: &str) -> Value {
        let state = self.state();
        match name.to_lowercase().as_str() {
            "productversion" | "resourceversion" => text(VERSION.1),
            "productmajorversion" => text(&VERSION.0.to_string()),
            "productminorversion" => text("0"),
            "productbuild" => text("0"),
            "productlevel" => text("RTM"),
            "edition" => text(concat!("Pellucid ", env!("CARGO_PKG_VERSION"))),
            "engineedition" => Value::Integer(3),
            "servername" | "machinename" | "computernamephysicalnetbios" => text(&self.server_name),
            "processid" => Value::Integer(std::process::id().into()),
            // As SQL Server has them: a name is put behind these two, and after a separator behind the third.
            "instancedefaultdatapath" => text(&with_separator(&state.folders[0])),
            "instancedefaultlogpath" => text(&with_separator(&state.folders[1])),
            "instancedefaultbackuppath" => text(&state.folders[2]),
            // Those of this collation.
            "collation" => text("SQL_Latin1_General_CP1_CI_AS"),
            "collationid" => Value::Integer(872_468_488),
            "comparisonstyle" => Value::Integer(196_609),
            "lcid" => Value::Integer(1033),
            "sqlcharset" => Value::Integer(1),
            "sqlcharsetname" => text("iso_1"),
            "sqlsortorder" => Value::Integer(52),
            "sqlsortordername" => text("nocase_iso"),
            "pathseparator" => text("/"),
            // It is not used any more, in SQL Server either.
            "licensetype" => text("DISABLED"),
            "filestreamconfiguredlevel"
            | "filestreameffectivelevel"
            | "isadvancedanalyticsinstalled"
            | "isbigdatacluster"
            | "isexternalauthenticationonly"
            | "isexternalgovernanceenabled"
            | "isserversuspendedforsnapshotbackup"
            | "istempdbmetadatamemoryoptimized"
            | "suspendeddatabasecount"
            | "isclustered"
            | "ishadrenabled"
            | "issingleuser"
            | "isfulltextinstalled"
            | "isxtpsupported"
            | "isintegratedsecurityonly"
            | "islocaldb"
            | "ispolybaseinstalled" => Value::Integer(0),
            _ => Value::Null,
        }
    }

    fn database(&self, state: &State, arguments: &[Value]) -> (Option<i64>, Option<String>) {
        match arguments.first() {
            None => (Some(state.database.0), Some(state.database.1.clone())),
            Some(Value::Integer(id)) => (
                Some(*id),
                state.databases.iter().find(|(other, _)| other == id).map(|(_, name)| name.clone()),
            ),
            Some(Value::Text(name)) => {
                let found = state
                    .databases
                    .iter()
                    .find(|(_, other)| other.eq_ignore_ascii_case(name.trim_end()));
                (found.map(|(id, _)| *id), found.map(|(_, name)| name.clone()))
            }
            Some(_) => (None, None),
        }
    }
}

impl DatabaseProperties {
    /// Source: Microsoft's "DATABASEPROPERTYEX"; NULL for what is not known here.
    fn get(&self, property: &str) -> Value {
        match property.to_lowercase().as_str() {
            "status" => text(self.status),
            "useraccess" => text(self.access),
            "recovery" => text(self.recovery),
            "updateability" => text(if self.is_read_only { "READ_ONLY" } else { "READ_WRITE" }),
            "collation" => text(&self.collation),
            "isinstandby" => Value::Integer(i64::from(self.is_in_standby)),
            "lastgoodcheckdbtime" => Value::Text(self.good_check.to_iso(SqlType::DateTime)),
            _ => Value::Null,
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

fn now() -> Moment {
    let now = time::OffsetDateTime::now_utc();
    let now = time::PrimitiveDateTime::new(now.date(), now.time());
    Moment::of_time(now).unwrap_or_else(Moment::epoch)
}

/// A folder with the separator behind it.
fn with_separator(folder: &str) -> String {
    match folder.is_empty() || folder.ends_with('/') {
        true => folder.to_owned(),
        false => format!("{folder}/"),
    }
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

fn number(value: Option<i64>) -> Value {
    value.map_or(Value::Null, Value::Integer)
}

fn name(value: Option<String>) -> Value {
    value.map_or(Value::Null, Value::Text)
}

impl Server for Shared {
    fn meet_null(&self) {
        self.has_met_null.store(true, Ordering::Relaxed);
    }

    /// The server's clock is UTC, as every time that it keeps.
    fn now(&self) -> Moment {
        self.statement_time()
    }

    fn utc_now(&self) -> Moment {
        self.statement_time()
    }

    fn look(&self, path: &str) -> [bool; 3] {
        let mut state = self.state();
        let Some(place) = state.places.file(path) else { return [false; 3] };
        let found = look_at(&place);
        if found[1] && state.asked_for.len() < ASKED_MOST && !state.asked_for.contains(&place) {
            state.asked_for.push(place);
        }
        found
    }

    fn run(
        &self,
        connection: &rusqlite::Connection,
        number: usize,
        arguments: Vec<Value>,
    ) -> Result<Value> {
        // `@@ROWCOUNT` within is the function's own.
        let before = self.state().row_count;
        let given =
            self.programs.run(connection, number, arguments, &|rows| self.set_row_count(rows));
        self.state().row_count = before;
        given
    }

    fn call(&self, function: &str, arguments: &[Value]) -> Result<Value> {
        let argument = |at: usize| match arguments.get(at) {
            Some(Value::Text(text)) => text.as_str(),
            _ => "",
        };
        let integer = |at: usize| match arguments.get(at) {
            Some(Value::Integer(number)) => Some(*number),
            _ => None,
        };
        if function == "SERVERPROPERTY" {
            return Ok(self.property(argument(0)));
        }
        let state = self.state();
        let caught = state.caught.last();
        Ok(match function {
            "APP_NAME" => text(&self.application),
            "HOST_NAME" => text(self.workstation.as_ref().unwrap_or(&self.server_name)),
            "@@SERVERNAME" => text(&self.server_name),
            "@@SERVICENAME" => text("MSSQLSERVER"),
            "@@VERSION" => Value::Text(format!(
                "Pellucid {} - statements of Microsoft SQL Server 2022 ({}) over SQLite {} on {}",
                env!("CARGO_PKG_VERSION"),
                VERSION.1,
                rusqlite::version(),
                std::env::consts::OS
            )),
            "@@MICROSOFTVERSION" => Value::Integer(VERSION.0 << 24),
            "DB_ID" => number(self.database(&state, arguments).0),
            "DB_NAME" | "ORIGINAL_DB_NAME" => name(self.database(&state, arguments).1),
            // Of a database in no availability group it is true.
            "FN_HADR_BACKUP_IS_PREFERRED_REPLICA" => Value::Integer(1),
            "HAS_DBACCESS" => number(self.database(&state, arguments).0.map(|_| 1)),
            "DATABASEPROPERTYEX" => state
                .properties
                .iter()
                .find(|one| one.name.eq_ignore_ascii_case(argument(0).trim_end()))
                .map_or(Value::Null, |one| one.get(argument(1))),
            "CERT_ID" => {
                let found =
                    state.certificates.iter().find(|other| other.eq_ignore_ascii_case(argument(0)));
                number(found.map(|name| super::object_id("certificate", name)))
            }
            // This machine is in no domain of Windows.
            "ASYMKEY_ID" | "KEY_GUID" | "DEFAULT_DOMAIN" => Value::Null,
            "KEY_ID" => number(
                state
                    .keys
                    .iter()
                    .find(|(other, _)| other.eq_ignore_ascii_case(argument(0).trim_end()))
                    .map(|(_, id)| *id),
            ),
            "CERTPROPERTY" => state
                .certificate_facts
                .iter()
                .find(|one| Some(one.id) == integer(0))
                .map_or(Value::Null, |one| one.get(argument(1))),
            "CERTENCODED" => state
                .certificate_facts
                .iter()
                .find(|one| Some(one.id) == integer(0))
                .map_or(Value::Null, |one| Value::Blob(one.der.clone())),
            "CONNECTIONPROPERTY" => connection_property(argument(0)),
            "DATABASEPROPERTY" => match state
                .properties
                .iter()
                .find(|one| one.name.eq_ignore_ascii_case(argument(0).trim_end()))
            {
                Some(one) => one.get_old(argument(1))?,
                None => Value::Null,
            },
            "FILEPROPERTY" => state
                .files
                .iter()
                .find(|file| file.name.eq_ignore_ascii_case(argument(0).trim_end()))
                .map_or(Value::Null, |file| file.get(argument(1))),
            "COL_LENGTH" => {
                let object =
                    super::objects::find(&state.objects, &state.database.1, argument(0), "");
                let found = state.columns.iter().find(|column| {
                    Some(column.object) == object
                        && column.name.eq_ignore_ascii_case(argument(1).trim_end())
                });
                number(found.map(|column| bytes_most(column.data_type)))
            }
            "COL_NAME" => {
                let found = state.columns.iter().find(|column| {
                    Some(column.object) == integer(0) && Some(column.number) == integer(1)
                });
                name(found.map(|column| column.name.clone()))
            }
            "TYPE_NAME" => name(type_name(integer(0)).map(str::to_owned)),
            "TYPE_ID" => number(type_id(argument(0))),
            "SESSION_CONTEXT" => state
                .context
                .get(&argument(0).to_lowercase())
                .map_or(Value::Null, |(value, _)| value.clone()),
            // SET CONTEXT_INFO is refused, so that there is none.
            "CONTEXT_INFO" => Value::Null,
            "ERROR_NUMBER" => number(caught.map(|caught| caught.message.number.into())),
            "ERROR_MESSAGE" => name(caught.map(|caught| caught.message.text.clone())),
            "ERROR_SEVERITY" => number(caught.map(|caught| caught.message.severity.into())),
            "ERROR_STATE" => number(caught.map(|caught| caught.message.state.into())),
            "ERROR_LINE" => number(caught.map(|caught| caught.line.into())),
            "ERROR_PROCEDURE" => {
                name(caught.and_then(|caught| caught.procedure.as_deref()).map(str::to_owned))
            }
            "FILE_ID" | "FILE_IDEX" => number(
                state
                    .files
                    .iter()
                    .find(|file| file.name.eq_ignore_ascii_case(argument(0)))
                    .map(|file| file.id),
            ),
            "FILE_NAME" => name(
                state
                    .files
                    .iter()
                    .find(|file| Some(file.id) == integer(0))
                    .map(|file| file.name.clone()),
            ),
            "OBJECT_ID" => number(super::objects::find(
                &state.objects,
                &state.database.1,
                argument(0),
                argument(1),
            )),
            "OBJECT_NAME" => name(
                state
                    .objects
                    .iter()
                    .find(|object| Some(object.id) == integer(0))
                    .map(|object| object.name.clone()),
            ),
            "OBJECT_DEFINITION" => name(
                state
                    .objects
                    .iter()
                    .find(|object| Some(object.id) == integer(0))
                    .and_then(|object| object.definition.clone()),
            ),
            "OBJECT_SCHEMA_NAME" => name(
                state
                    .objects
                    .iter()
                    .find(|object| Some(object.id) == integer(0))
                    .map(|object| object.schema.clone()),
            ),
            "SESSIONPROPERTY" | "HOST_ID" => return Err(Message::unsupported(function)),
            "SCHEMA_ID" => match arguments.first() {
                None => Value::Integer(1),
                _ if argument(0).eq_ignore_ascii_case("dbo") => Value::Integer(1),
                _ if argument(0).eq_ignore_ascii_case("INFORMATION_SCHEMA") => Value::Integer(3),
                _ if argument(0).eq_ignore_ascii_case("sys") => Value::Integer(4),
                _ => Value::Null,
            },
            "SCHEMA_NAME" => match integer(0).unwrap_or(1) {
                1 => text("dbo"),
                3 => text("INFORMATION_SCHEMA"),
                4 => text("sys"),
                _ => Value::Null,
            },
            "FILEGROUP_ID" => number(argument(0).eq_ignore_ascii_case("PRIMARY").then_some(1)),
            "FILEGROUP_NAME" => name((integer(0) == Some(1)).then(|| "PRIMARY".to_owned())),
            "IS_SRVROLEMEMBER" | "IS_MEMBER" | "IS_ROLEMEMBER" | "HAS_PERMS_BY_NAME" => {
                Value::Integer(1)
            }
            "SUSER_SNAME" if !arguments.is_empty() => match &arguments[0] {
                Value::Blob(sid) => name(accounts::name_of_sid(sid)),
                _ => Value::Null,
            },
            "ORIGINAL_LOGIN" | "SUSER_NAME" | "SUSER_SNAME" | "SYSTEM_USER" => text(&self.user),
            "SUSER_ID" | "DATABASE_PRINCIPAL_ID" | "USER_ID" => Value::Integer(1),
            "SUSER_SID" => Value::Blob(vec![1]),
            "USER_NAME" | "CURRENT_USER" | "SESSION_USER" | "USER" => text("dbo"),
            "SCOPE_IDENTITY" | "@@IDENTITY" => number(state.identity),
            "XACT_STATE" => Value::Integer(match (state.transactions, state.doomed) {
                (0, _) => 0,
                (_, true) => -1,
                _ => 1,
            }),
            "@@TRANCOUNT" => Value::Integer(state.transactions.into()),
            "@@ROWCOUNT" => Value::Integer(state.row_count),
            "@@ERROR" => Value::Integer(state.error.into()),
            "@@SPID" => Value::Integer(self.session_id),
            "@@NESTLEVEL" => Value::Integer(state.nesting),
            "@@DATEFIRST" => Value::Integer(7),
            "@@LANGUAGE" => text("us_english"),
            "@@LANGID" | "@@OPTIONS" => Value::Integer(0),
            "@@PROCID" => Value::Integer(state.procedure_id),
            "@@CURSOR_ROWS" => Value::Integer(state.cursor_rows),
            "@@FETCH_STATUS" => Value::Integer(state.fetch_status),
            "@@LOCK_TIMEOUT" => Value::Integer(-1),
            "CURSOR_STATUS" => {
                let (scope, name) = (argument(0).to_lowercase(), argument(1).to_lowercase());
                let found = state.cursors.iter().find(|c| c.scope == scope && c.name == name);
                // There is none of that name.
                Value::Integer(found.map_or(-3, |cursor| cursor.status))
            }
            "@@MAX_PRECISION" => Value::Integer(38),
            "@@MAX_CONNECTIONS" => Value::Integer(32_767),
            // The server is this process: one session, and no network.
            "@@CONNECTIONS" => Value::Integer(1),
            "@@PACK_RECEIVED" | "@@PACK_SENT" | "@@PACKET_ERRORS" => Value::Integer(0),
            "@@REMSERVER" => Value::Null,
            "@@TIMETICKS" => Value::Integer(TICK_MICROSECONDS),
            "@@CPU_BUSY" => Value::Integer(busy_ticks()),
            "@@TEXTSIZE" => Value::Integer(2_147_483_647),
            // What SQL Server counts and nobody counts here.
            other => return Err(Message::unsupported(other)),
        })
    }
}

//! What names stand for: databases attached on demand, their tables, views of the server, temporary tables.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use pellucid::header::Standing;
use pellucid_engine::inspect::{inspect, Kind};
use pellucid_tsql::ast::{Name, ObjectName};
use pellucid_vfs::pins::{Expectation, Lesser};
use pellucid_vfs::seal_request::{Credentials, Request};
use rusqlite::{Connection, OptionalExtension};

use super::glances::{Glances, Stamp};
use super::identity::IdentityInsert;
use super::modules::{ReadFunction, ReadView};
use super::narrowed::Narrowed;
use super::{declared_type, identity_type, Calculator, Shared};
use crate::instance::files::{self, DatabaseFile, FILES_TABLE};
use crate::instance::registry::text;
use crate::instance::{own_uri, uri, Instance, Known, Module, State, MASTER, MSDB, TEMPDB};
use crate::message::{table, Message, Result};
use crate::translate::{quoted, Stored, Table, TableColumn};
use crate::values::types::Family;

/// Databases attached at once: SQLite's limit is 10, and `msdb` is one.
const ATTACHED_MOST: usize = 8;
/// Expressions of a batch that are kept as SQLite has read them.
const STATEMENTS_MOST: usize = 128;
/// How long a statement waits for a lock of another connection's.
const WAIT: std::time::Duration = std::time::Duration::from_secs(30);

/// The databases of a session.
pub(crate) struct Databases {
    pub connection: Connection,
    pub calculator: Calculator,
    pub instance: Instance,
    pub shared: Arc<Shared>,
    current: RefCell<(i64, String)>,
    /// By number, the one used last at the end.
    pub(super) attached: RefCell<Vec<(i64, PathBuf)>>,
    /// Those that the statement at hand names, or the transaction around it: nobody else's name takes their place.
    used: RefCell<Vec<i64>>,
    /// What the files of attached databases were seen to be.
    seen: RefCell<HashMap<i64, Rc<Kind>>>,
    has_msdb: Cell<bool>,
    has_master: Cell<bool>,
    table_variables: Cell<u32>,
    /// Whether the session has made any.
    pub has_temporary_tables: Cell<bool>,
    pub(super) read_views: RefCell<Vec<ReadView>>,
    pub(super) read_functions: RefCell<Vec<ReadFunction>>,
    pub(super) glances: Glances,
    pub(super) narrowed: Narrowed,
    /// What was put into the temporary tables of the server's views, outside of transactions: a digest of each.
    pub(super) view_rows: RefCell<HashMap<String, [u8; 32]>>,
    /// The table to whose identity SET IDENTITY_INSERT lets statements give values, by [`Table::sqlite`].
    pub(crate) identity_insert: IdentityInsert,
    /// Procedures that end with the session.
    pub(super) temporary_procedures: RefCell<Vec<Module>>,
    /// Whether the columns of views are being listed.
    pub(super) lists_views: Cell<bool>,
    /// The views of a translation that could not be used, the innermost first.
    pub failed_views: RefCell<Vec<String>>,
}

impl std::fmt::Debug for Databases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Databases").field("current", &self.current_name()).finish_non_exhaustive()
    }
}

impl Databases {
    /// Sets up the connection: what waits and what is checked. The session is in master.
    pub fn new(
        connection: Connection,
        calculator: Calculator,
        instance: Instance,
        shared: Arc<Shared>,
    ) -> Result<Self> {
        connection.busy_timeout(WAIT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MOST);
        connection.execute_batch("PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = OFF")?;
        Ok(Self {
            connection,
            calculator,
            instance,
            shared,
            current: RefCell::new((MASTER, "master".to_owned())),
            attached: RefCell::default(),
            used: RefCell::default(),
            seen: RefCell::default(),
            has_msdb: Cell::new(false),
            has_master: Cell::new(false),
            table_variables: Cell::new(0),
            has_temporary_tables: Cell::new(false),
            read_views: RefCell::default(),
            read_functions: RefCell::default(),
            glances: Glances::default(),
            narrowed: Narrowed::default(),
            view_rows: RefCell::default(),
            identity_insert: IdentityInsert::default(),
            temporary_procedures: RefCell::default(),
            lists_views: Cell::new(false),
            failed_views: RefCell::default(),
        })
    }

    /// The name of the database that the session is in.
    pub fn current_name(&self) -> String {
        self.current.borrow().1.clone()
    }

    /// The number of it.
    pub fn current_id(&self) -> i64 {
        self.current.borrow().0
    }

    /// The database that the session is in.
    ///
    /// # Errors
    /// 911 if somebody has dropped it meanwhile.
    pub fn current(&self) -> Result<Known> {
        self.instance.database(&self.current_name())
    }

    /// USE
    ///
    /// # Errors
    /// 911; 927 and 942 for one that is not online; what keeps it from being opened.
    pub fn use_database(&self, name: &str) -> Result<()> {
        let known = self.instance.database(name)?;
        if !known.is_system() {
            self.attach(&known)?;
        }
        self.enter(&known);
        Ok(())
    }

    /// The session is in `known` from now on.
    pub fn enter(&self, known: &Known) {
        *self.current.borrow_mut() = (known.id, known.name.clone());
        self.shared.set_database(known.id, &known.name);
    }

    /// The name in SQLite of a database, attached if it is not yet.
    ///
    /// # Errors
    /// As [`Self::use_database`].
    pub fn attach(&self, known: &Known) -> Result<String> {
        if known.id == MSDB {
            return self.attach_msdb();
        }
        if known.id == TEMPDB {
            return Ok("temp".to_owned());
        }
        if known.is_system() {
            return Err(Message::unsupported(format!("tables in {}", known.name)));
        }
        match known.state {
            State::Online => {}
            State::Restoring => return Err(Message::restoring(&known.name)),
            State::Offline => return Err(Message::offline(&known.name)),
        }
        let schema = format!("d{}", known.id);
        let mut attached = self.attached.borrow_mut();
        if let Some(at) = attached.iter().position(|(id, _)| *id == known.id) {
            let found = attached.remove(at);
            // A restore may have put it elsewhere meanwhile.
            if found.1 == known.path {
                attached.push(found);
                return Ok(schema);
            }
            self.connection.execute_batch(&format!("DETACH {}", quoted(&schema)))?;
        }
        if attached.len() >= ATTACHED_MOST {
            let used = self.used.borrow();
            let Some(at) = attached.iter().position(|(id, _)| !used.contains(id)) else {
                let what = match self.connection.is_autocommit() {
                    true => "more than 8 databases in one statement",
                    false => "more than 8 databases in one transaction",
                };
                return Err(Message::unsupported(what));
            };
            let (oldest, _) = attached.remove(at);
            self.connection.execute_batch(&format!("DETACH \"d{oldest}\""))?;
        }
        if !known.path.is_file() {
            Expectation::at(&known.path)
                .and_then(|expected| expected.refuse_lesser(Lesser::Missing))
                .map_err(|error| error.of_file(&known.path))?;
            return Err(Message::inaccessible(&known.path, "the file is not there"));
        }
        // Looked at before it is open here, so that no lock of this process is lost.
        if let Ok(found) = inspect(&known.path) {
            if matches!(&found.kind, Kind::Sealed(one) if one.header.standing() == Standing::Restoring)
            {
                return Err(Message::restoring(&known.name));
            }
            self.seen.borrow_mut().insert(known.id, Rc::new(found.kind));
        }
        let attach = format!("ATTACH ?1 AS {}", quoted(&schema));
        if let Err(error) = self.connection.execute(&attach, [uri(&known.path)]) {
            return Err(refusal(&known.path, error.into()));
        }
        // Attaching reads nothing where the shim has nothing to look at.
        let look = format!("SELECT count(*) FROM {}.sqlite_schema", quoted(&schema));
        if let Err(error) = self.connection.query_row(&look, [], |_| Ok(())) {
            self.connection.execute_batch(&format!("DETACH {}", quoted(&schema)))?;
            return Err(refusal(&known.path, error.into()));
        }
        attached.push((known.id, known.path.clone()));
        Ok(schema)
    }

    /// The same for a database that the statement at hand names.
    ///
    /// # Errors
    /// As [`Self::attach`]; 50001 for one too many.
    pub(super) fn attach_named(&self, known: &Known) -> Result<String> {
        let schema = self.attach(known)?;
        let mut used = self.used.borrow_mut();
        if !known.is_system() && !used.contains(&known.id) {
            used.push(known.id);
        }
        Ok(schema)
    }

    /// A statement begins. What a transaction has used stays in use.
    pub fn begin_statement(&self) {
        self.begin_translation();
        if self.connection.is_autocommit() {
            self.used.borrow_mut().clear();
        }
    }

    /// A statement is translated anew, or part of one.
    pub fn begin_translation(&self) {
        self.narrowed.begin();
    }

    /// The databases that the statement at hand names, by number.
    pub fn in_use(&self) -> Vec<i64> {
        self.used.borrow().clone()
    }

    /// Those that an earlier statement named: others may have taken their place meanwhile.
    ///
    /// # Errors
    /// As [`Self::attach`]; 911 for one that is gone.
    pub fn attach_again(&self, numbers: &[i64]) -> Result<()> {
        let all = self.instance.databases()?;
        for number in numbers {
            let known = all.iter().find(|known| known.id == *number);
            let gone = || Message::of(table::UNKNOWN_DATABASE, [number]);
            self.attach_named(known.ok_or_else(gone)?)?;
        }
        Ok(())
    }

    /// The numbers of the databases that are attached, the one used last at the end.
    pub fn attached_ids(&self) -> Vec<i64> {
        self.attached.borrow().iter().map(|(id, _)| *id).collect()
    }

    /// Whether SQLite opens the database for reading alone, as it does a standby. One that does not open is not.
    pub fn is_opened_read_only(&self, known: &Known) -> bool {
        let Ok(schema) = self.attach(known) else { return false };
        self.connection.is_readonly(schema.as_str()).unwrap_or(false)
    }

    /// Lets go of a database, for whoever opens its file past this connection: closing a file drops this process's
    /// locks on it (howtocorrupt.html, 2.2).
    ///
    /// # Errors
    /// SQLite's, within a transaction that uses it.
    pub fn release(&self, known: &Known) -> Result<()> {
        let system = match known.id {
            MASTER => Some((&self.has_master, "DETACH master")),
            MSDB => Some((&self.has_msdb, "DETACH msdb")),
            _ => None,
        };
        if let Some((is_attached, detach)) = system {
            if is_attached.get() {
                self.connection.execute_batch(detach)?;
                is_attached.set(false);
            }
            return Ok(());
        }
        let mut attached = self.attached.borrow_mut();
        if let Some(at) = attached.iter().position(|(id, _)| *id == known.id) {
            self.connection.execute_batch(&format!("DETACH \"d{}\"", known.id))?;
            attached.remove(at);
        }
        Ok(())
    }

    /// Lets go of every database, for whoever puts another `msdb` there: which database has which number is another one then.
    ///
    /// # Errors
    /// As [`Self::release`].
    pub fn release_all(&self) -> Result<()> {
        for known in self.instance.databases()? {
            self.release(&known)?;
        }
        Ok(())
    }

    /// What the file of a database is, looked at past SQLite; within a transaction, as it was when it was attached.
    ///
    /// # Errors
    /// What keeps it from being attached again.
    pub fn look(&self, known: &Known) -> Result<pellucid::Result<Rc<Kind>>> {
        let is_attached = self.attached.borrow().iter().any(|(id, _)| *id == known.id);
        let seen = self.seen.borrow().get(&known.id).cloned();
        if let Some(seen) = seen.filter(|_| is_attached && !self.connection.is_autocommit()) {
            return Ok(Ok(seen));
        }
        let stamp = self.glances.stamp(known);
        if let Some(kind) = stamp.as_ref().and_then(|now| self.glances.kind(known.id, now)) {
            return Ok(Ok(kind));
        }
        self.release(known)?;
        let found = inspect(&known.path).map(|found| Rc::new(found.kind));
        if let (Some(stamp), Ok(kind)) = (stamp, &found) {
            if Stamp::of(&known.path).as_ref() == Some(&stamp) {
                self.glances.keep_kind(known.id, stamp, kind);
            }
        }
        if is_attached {
            self.attach(known)?;
        }
        Ok(found)
    }

    /// The tables of `master`, if anybody has made one.
    ///
    /// # Errors
    /// What keeps their file from being opened.
    pub fn attach_master(&self) -> Result<Option<String>> {
        match self.has_master.get() || self.instance.master_path().exists() {
            true => self.make_master().map(Some),
            false => Ok(None),
        }
    }

    /// The same, made if it is not there.
    fn make_master(&self) -> Result<String> {
        if !self.has_master.get() {
            let path = pellucid_backup::history::History::master_file()?;
            let attached = self.connection.execute("ATTACH ?1 AS master", [own_uri(&path)]);
            attached.map_err(|error| {
                let why = pellucid_backup::history::why_not_own(&path);
                why.map_or_else(|| Message::from(error), Message::from)
            })?;
            self.has_master.set(true);
        }
        Ok("master".to_owned())
    }

    fn attach_msdb(&self) -> Result<String> {
        if !self.has_msdb.get() {
            let msdb = own_uri(&self.instance.msdb_path());
            self.connection.execute("ATTACH ?1 AS msdb", [msdb])?;
            self.has_msdb.set(true);
        }
        Ok("msdb".to_owned())
    }

    /// The name in SQLite of the database that a statement's own objects lie in.
    ///
    /// # Errors
    /// As [`Self::attach`].
    pub fn schema_of(&self, database: Option<&Name>) -> Result<(Known, String)> {
        let known = match database {
            Some(name) => self.instance.database(name.as_str())?,
            None => self.current()?,
        };
        let schema = match known.id {
            MASTER => self.make_master()?,
            _ => self.attach_named(&known)?,
        };
        if known.id == MSDB {
            return Err(Message::unsupported("tables in msdb"));
        }
        Ok((known, schema))
    }

    /// The logical files of a database.
    ///
    /// # Errors
    /// As [`Self::attach`].
    pub fn files(&self, known: &Known) -> Result<Vec<DatabaseFile>> {
        if known.is_system() {
            return Ok(DatabaseFile::defaults(&known.name).into());
        }
        let stamp = self.glances.stamp(known);
        if let Some(files) = stamp.as_ref().and_then(|now| self.glances.files(known.id, now)) {
            return Ok(files);
        }
        let schema = self.attach(known)?;
        let files = files::read(&self.connection, &schema, known)?;
        // Within a transaction it is what that sees, and maybe not what the file has by now.
        if let Some(stamp) = stamp.filter(|_| self.connection.is_autocommit()) {
            if Stamp::of(&known.path).as_ref() == Some(&stamp) {
                self.glances.keep_files(known.id, stamp, &files);
            }
        }
        Ok(files)
    }

    /// What SQLite calls a table or view of an attached database, in its own spelling, and whether it is a view.
    ///
    /// # Errors
    /// SQLite's.
    pub fn find_object(&self, schema: &str, name: &ObjectName) -> Result<Option<(String, bool)>> {
        let wanted = sqlite_name(name);
        if wanted.eq_ignore_ascii_case(FILES_TABLE) || (schema == "temp" && is_internal(&wanted)) {
            return Ok(None);
        }
        let sql = format!(
            "SELECT name, type = 'view' FROM {}.sqlite_schema \
             WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE",
            quoted(schema)
        );
        let found = self.connection.query_row(&sql, [wanted], |row| Ok((row.get(0)?, row.get(1)?)));
        Ok(found.optional()?)
    }

    /// A table variable's or temporary table's number.
    pub fn next_temporary(&self) -> u32 {
        self.table_variables.set(self.table_variables.get() + 1);
        self.table_variables.get()
    }

    /// The temporary tables that there are and that end with the string that has made them: not `##t`.
    pub fn temporary_tables(&self) -> Vec<String> {
        if !self.has_temporary_tables.get() {
            return Vec::new();
        }
        let all = self.tables_and_views("temp").unwrap_or_default();
        all.into_iter().map(|(name, _)| name).filter(|name| is_local(name)).collect()
    }

    /// Drops those that a string has made for itself.
    pub fn drop_temporary_tables_but(&self, kept: &[String]) {
        for name in self.temporary_tables().iter().filter(|name| !kept.contains(name)) {
            // One that is in use by nobody; left behind, it is in nobody's way but a namesake's.
            let _ = self.connection.execute_batch(&format!("DROP TABLE temp.{}", quoted(name)));
        }
    }

    /// Drops the tables behind the table variables of a batch.
    pub fn forget_table_variables(&self) {
        for number in 1..=self.table_variables.replace(0) {
            // Left behind, it is in nobody's way: the next batch replaces it.
            let _ =
                self.connection.execute_batch(&format!("DROP TABLE IF EXISTS temp.\"@{number}\""));
        }
    }

    /// Columns and row identity of an object of SQLite's.
    ///
    /// # Errors
    /// SQLite's.
    pub fn table_of(&self, schema: &str, sqlite: &str, is_view: bool) -> Result<Table> {
        let mut statement = self.connection.prepare_cached(
            "SELECT name, type, dflt_value, hidden, \"notnull\" FROM pragma_table_xinfo(?1, ?2)",
        )?;
        let mut columns = Vec::new();
        let mut rows = statement.query([sqlite, schema])?;
        while let Some(row) = rows.next()? {
            let (name, declared): (String, Option<String>) = (row.get(0)?, row.get(1)?);
            let hidden: i64 = row.get(3)?;
            columns.push(TableColumn {
                sqlite: name.clone(),
                name,
                data_type: declared_type(declared.as_deref().unwrap_or_default()),
                declared,
                stored: Stored::Plain,
                default: row.get(2)?,
                writable: hidden == 0,
                identity: false,
                nullable: !row.get::<_, bool>(4)?,
                derived: false,
                sensitive: false,
                is_row: false,
            });
        }
        let place = format!("{}.{}", quoted(schema), quoted(sqlite));
        let own = self.row_column(schema, sqlite)?;
        for column in &mut columns {
            column.is_row = own.as_deref() == Some(&column.sqlite);
        }
        let text: Option<String> = self
            .connection
            .query_row(
                &format!("SELECT sql FROM {}.sqlite_schema WHERE name = ?1", quoted(schema)),
                [sqlite],
                |row| row.get(0),
            )
            .optional()?
            .flatten();
        let text = text.unwrap_or_default();
        let lower = without_literals(&text).to_ascii_lowercase();
        if lower.contains("collate binary") {
            for column in &mut columns {
                column.sensitive = is_sensitive(&lower, &column.sqlite);
            }
        }
        if lower.contains("autoincrement") {
            if let Some(identity) = identity_column(&lower, &columns) {
                columns[identity].writable = self.identity_insert.is_on(&place);
                columns[identity].identity = true;
                if let Some(known) = identity_type(&lower, &columns[identity].name) {
                    columns[identity].data_type = known;
                }
            }
        }
        let row = match is_view || !self.has_rowid(schema, sqlite)? {
            true => None,
            false => row_name(columns.iter().map(|column| column.sqlite.as_str())),
        };
        Ok(Table { sqlite: place, columns, row })
    }

    /// Whether SQLite numbers the rows of a table.
    ///
    /// # Errors
    /// SQLite's.
    pub fn has_rowid(&self, schema: &str, sqlite: &str) -> Result<bool> {
        let sql = "SELECT NOT wr FROM pragma_table_list(?1) WHERE schema = ?2";
        let found = self.connection.query_row(sql, [sqlite, schema], |row| row.get(0));
        Ok(found.optional()?.unwrap_or(false))
    }

    /// The column that SQLite may know the rows of a table by (lang_createtable.html, "ROWIDs and the INTEGER PRIMARY KEY").
    ///
    /// # Errors
    /// SQLite's.
    pub fn row_column(&self, schema: &str, sqlite: &str) -> Result<Option<String>> {
        let sql = "SELECT max(name) FROM pragma_table_xinfo(?1, ?2) WHERE pk > 0 \
                   HAVING count(*) = 1 AND max(type) = 'INTEGER' COLLATE NOCASE";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row([sqlite, schema], |row| row.get(0)).optional()?)
    }

    /// The names in SQLite of what people have made in an attached database.
    ///
    /// # Errors
    /// SQLite's.
    pub fn tables_and_views(&self, schema: &str) -> Result<Vec<(String, bool)>> {
        let sql = format!(
            "SELECT name, type = 'view' FROM {}.sqlite_schema WHERE type IN ('table', 'view') \
             AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> '{FILES_TABLE}' ORDER BY name",
            quoted(schema)
        );
        let mut statement = self.connection.prepare(&sql)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut found: Vec<(String, bool)> = rows.collect::<rusqlite::Result<_>>()?;
        found.retain(|(name, _)| schema != "temp" || !is_internal(name));
        Ok(found)
    }
}

/// Whether a name in SQLite's `temp` is one of the session's own: of a table variable, or of a view of the server.
pub(crate) fn is_internal(sqlite: &str) -> bool {
    sqlite.starts_with(|first: char| first == '@' || first.is_ascii_digit())
}

fn is_local(name: &str) -> bool {
    name.starts_with('#') && !name.starts_with("##")
}

/// The name that SQLite has for a table: `Schema.Table`, bare for dbo.
pub(crate) fn sqlite_name(name: &ObjectName) -> String {
    match &name.schema {
        Some(schema) if !schema.as_str().eq_ignore_ascii_case("dbo") => {
            format!("{}.{}", schema.as_str(), name.object.as_str())
        }
        _ => name.object.as_str().to_owned(),
    }
}

/// The text of a table with its literals empty: words within them are not its own.
pub(crate) fn without_literals(text: &str) -> String {
    let mut quote = None;
    let is_kept = |next: &char| {
        let was_literal = quote == Some('\'');
        quote = match (quote, *next) {
            (Some(close), next) => Some(close).filter(|close| next != *close),
            (None, '"' | '`' | '\'') => Some(*next),
            (None, '[') => Some(']'),
            (None, _) => None,
        };
        !was_literal || quote.is_none()
    };
    text.chars().filter(is_kept).collect()
}

/// Whether the text of a table that CREATE TABLE has made gives a column the collation of a `_CS` or `_BIN`.
fn is_sensitive(lower: &str, column: &str) -> bool {
    let name = quoted(&column.to_ascii_lowercase());
    let rest = lower.find(&name).map(|at| &lower[at + name.len()..]);
    rest.is_some_and(|rest| {
        // What stands behind the type, whose precision has commas, too.
        let own = rest.split(" collate ").nth(1).zip(rest.split(" collate ").next());
        own.is_some_and(|(collation, before)| {
            collation.starts_with("binary") && !before.contains('"')
        })
    })
}

/// The name that SQLite's number of a row goes by in a table of these columns; none where each of its names is a column's
/// (<https://sqlite.org/lang_createtable.html#rowid>).
pub(crate) fn row_name<'c>(columns: impl Iterator<Item = &'c str> + Clone) -> Option<String> {
    let is_free = |name: &&str| columns.clone().all(|column| !column.eq_ignore_ascii_case(name));
    ["rowid", "_rowid_", "oid"].into_iter().find(is_free).map(str::to_owned)
}

/// The column that the text of a table numbers by itself.
fn identity_column(lower: &str, columns: &[TableColumn]) -> Option<usize> {
    columns.iter().position(|column| {
        let name = quoted(&column.name.to_ascii_lowercase());
        let bare = format!("{} integer", column.name.to_ascii_lowercase());
        column.data_type.family() == Family::Integer
            && (lower.contains(&format!("{name} integer")) || lower.contains(&bare))
    })
}

/// Why a database did not open: with its own words where a key or the header is the reason.
fn refusal(path: &Path, error: Message) -> Message {
    let why = || -> pellucid::Result<()> {
        match inspect(path)?.kind {
            Kind::Sealed(sealed) => {
                sealed.header.unwrap(&Credentials::gather(&Request::default())?)?;
                Ok(())
            }
            Kind::Damaged(error) => Err(error),
            _ => Ok(()),
        }
    };
    match why() {
        Err(error) => error.into(),
        Ok(()) => error,
    }
}

/// A path as it is shown.
pub(crate) fn shown(path: &Path) -> rusqlite::types::Value {
    match text(path) {
        rusqlite::types::Value::Text(text) => rusqlite::types::Value::Text(text),
        _ => rusqlite::types::Value::Text(path.to_string_lossy().into_owned()),
    }
}

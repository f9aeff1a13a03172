//! DBCC, ALTER INDEX, UPDATE STATISTICS, CHECKPOINT, RECONFIGURE.

use pellucid::shown::Shown;
use pellucid_engine::audit::{
    audit_with, is_told_of_the_application, Audit, Options as AuditOptions, OrphanRow,
};
use pellucid_engine::checked::{self, Begun};
use pellucid_engine::inspect::{inspect, Kind};
use pellucid_files::paths::is_there;
use pellucid_keyring::CheckFound;
use pellucid_tsql::ast::{
    DbccArgument, DbccOption, IndexAction, Literal, MaintenanceStatement, Name, ObjectName,
    Partition,
};
use pellucid_vfs::seal_request::{Credentials, Request};
use rusqlite::OptionalExtension;

use super::dbcc::variable_of;
use super::{Done, Raised};
use crate::instance::{Known, State, MASTER, MSDB};
use crate::known;
use crate::message::{table, Message};
use crate::savepoint::in_savepoint;
use crate::session::{row_name, sqlite_name, Session};
use crate::translate::quoted;
use crate::values::convert::Value;

/// The commands that [`Session::dbcc`] knows.
pub(crate) const DBCC_COMMANDS: &[&str] = &[
    "CHECKALLOC",
    "CHECKCATALOG",
    "CHECKDB",
    "CHECKFILEGROUP",
    "CHECKTABLE",
    "DBINFO",
    "DROPCLEANBUFFERS",
    "FREEPROCCACHE",
    "FREESESSIONCACHE",
    "FREESYSTEMCACHE",
    "INPUTBUFFER",
    "LOGINFO",
    "OPENTRAN",
    "SQLPERF",
    "TRACEOFF",
    "TRACEON",
    "TRACESTATUS",
    "USEROPTIONS",
];

/// Those that change nothing.
pub(crate) const DBCC_WITHOUT_EFFECT: [&str; 4] =
    ["DROPCLEANBUFFERS", "FREEPROCCACHE", "FREESESSIONCACHE", "FREESYSTEMCACHE"];

/// Findings that are told, at most.
const SHOWN: usize = 200;

impl Session {
    pub(super) fn maintenance(&mut self, statement: &MaintenanceStatement) -> Done {
        match statement {
            MaintenanceStatement::Dbcc { command, arguments, options } => {
                self.dbcc(command, arguments, options)
            }
            MaintenanceStatement::AlterIndex { index, table, action } => {
                self.alter_index(index.as_ref(), table, action)
            }
            MaintenanceStatement::UpdateStatistics { table, targets, .. } => {
                self.update_statistics(table, targets)
            }
            MaintenanceStatement::Checkpoint(_) => {
                let known = self.databases.current()?;
                if !known.is_system() {
                    let schema = self.databases.attach(&known)?;
                    self.databases.connection.query_row(
                        &format!("PRAGMA {}.wal_checkpoint(TRUNCATE)", quoted(&schema)),
                        [],
                        |_| Ok(()),
                    )?;
                }
                Ok(())
            }
            MaintenanceStatement::Reconfigure { .. } => {
                Ok(self.databases.instance.reconfigure()?)
            }
        }
    }

    fn dbcc(&mut self, command: &Name, arguments: &[DbccArgument], options: &[DbccOption]) -> Done {
        match command.as_str().to_uppercase().as_str() {
            "CHECKDB" => self.check_database(arguments, options),
            "CHECKTABLE" => self.check_table(arguments, options),
            "CHECKFILEGROUP" => self.check_filegroup(arguments, options),
            "CHECKALLOC" => self.check_allocation(arguments, options),
            "CHECKCATALOG" => self.check_catalog(arguments, options),
            "TRACEON" => self.trace_on_or_off(arguments, options, true),
            "TRACEOFF" => self.trace_on_or_off(arguments, options, false),
            "TRACESTATUS" => self.trace_status(arguments, options),
            "DBINFO" => self.database_info(arguments, options),
            "OPENTRAN" => self.open_transaction(arguments, options),
            "INPUTBUFFER" => self.input_buffer(arguments, options),
            "LOGINFO" => self.log_pieces(arguments, options),
            "USEROPTIONS" => self.user_options(options),
            "SQLPERF" => self.log_space(arguments, options),
            name if DBCC_WITHOUT_EFFECT.contains(&name) => {
                self.no_cache(options);
                Ok(())
            }
            name if known::is_dbcc(name) => {
                Err(Message::unsupported(format!("DBCC {name}")).into())
            }
            name => Err(Message::of(table::UNKNOWN_DBCC, [&name]).into()),
        }
    }

    /// The database that an argument of DBCC names.
    pub(super) fn database_of_dbcc(&mut self, argument: Option<&DbccArgument>) -> Done<Known> {
        let by_number = |session: &Self, number: i64| -> Done<Known> {
            let all = session.databases.instance.databases()?;
            match all.into_iter().find(|known| known.id == number) {
                _ if number == 0 => Ok(session.databases.current()?),
                Some(known) => Ok(known),
                None => Err(Message::of(table::UNKNOWN_DATABASE, [&number]).into()),
            }
        };
        Ok(match argument {
            None => self.databases.current()?,
            Some(DbccArgument::Name(name)) => {
                self.databases.instance.database(name.object.as_str())?
            }
            Some(DbccArgument::Literal { value: Literal::String(text), .. }) => {
                self.databases.instance.database(&text.text)?
            }
            Some(DbccArgument::Literal { value: Literal::Integer(number), .. }) => {
                by_number(self, number.parse().unwrap_or(0))?
            }
            Some(argument @ (DbccArgument::Variable(_) | DbccArgument::SystemVariable(_))) => {
                let value = variable_of(argument);
                match self.value(&value, None)? {
                    Value::Integer(number) => by_number(self, number)?,
                    Value::Text(name) => self.databases.instance.database(&name)?,
                    _ => self.databases.current()?,
                }
            }
            Some(DbccArgument::Literal { .. }) => {
                return Err(Message::unsupported("DBCC of a constant that is no name").into())
            }
        })
    }

    fn check_database(&mut self, arguments: &[DbccArgument], options: &[DbccOption]) -> Done {
        let known = self.database_of_dbcc(arguments.first())?;
        self.check_known("CHECKDB", known, arguments.get(1), options)
    }

    /// The second argument of a check is NOINDEX or a repair.
    pub(super) fn refuse_repair(&self, command: &str, second: Option<&DbccArgument>) -> Done {
        let is_no_index = |other: &DbccArgument| matches!(other, DbccArgument::Name(name) if name.object.as_str().eq_ignore_ascii_case("NOINDEX"));
        match second {
            Some(other) if !is_no_index(other) => Err(Message::unsupported(format!(
                "repair by DBCC {command}: 'pellucid salvage' writes what is whole"
            ))
            .into()),
            _ => Ok(()),
        }
    }

    /// The check of a whole database, by the command that asks for it.
    pub(super) fn check_known(
        &mut self,
        command: &str,
        known: Known,
        second: Option<&DbccArgument>,
        options: &[DbccOption],
    ) -> Done {
        self.refuse_repair(command, second)?;
        if options.iter().any(|option| option.name.as_str().eq_ignore_ascii_case("ESTIMATEONLY")) {
            return Err(Message::unsupported(format!("DBCC {command} WITH ESTIMATEONLY")).into());
        }
        let has = |wanted: &str| {
            options.iter().any(|option| option.name.as_str().eq_ignore_ascii_case(wanted))
        };
        if known.is_system() {
            return self.check_system(command, &known, has("PHYSICAL_ONLY"), has("NO_INFOMSGS"));
        }
        let begun = Begun::now(&known.path);
        let attached = self.databases.attach(&known);
        let kind = self.databases.look(&known)?;
        if !matches!(kind.as_deref(), Ok(Kind::Sealed(_))) {
            let schema = attached?;
            let found = self.check_plain(&schema, has("PHYSICAL_ONLY"))?;
            if let Some(identity) = kind.as_deref().ok().and_then(checked::identity) {
                remember(begun, &known, &identity, &checked::found(&found, has("PHYSICAL_ONLY")));
            }
            return self.tell_found(command, &known, &found, has("NO_INFOMSGS"));
        }
        // One whose first page is damaged cannot be attached, and is checked all the same.
        if known.state != State::Online {
            attached?;
        }
        self.databases.release(&known)?;
        let look = AuditOptions {
            physical_only: has("PHYSICAL_ONLY"),
            cores: pellucid_backup::job::processors(),
        };
        let found = audit_with(&known.path, look, &self.load, &mut |_, _, _| ())?;
        remember(begun, &known, &found.file_id, &checked::found(&found, has("PHYSICAL_ONLY")));
        self.tell_found(command, &known, &found, has("NO_INFOMSGS"))
    }

    /// `master` and `msdb` are sealed files of the instance; nothing lies in the others.
    fn check_system(
        &mut self,
        command: &str,
        known: &Known,
        physical_only: bool,
        quiet: bool,
    ) -> Done {
        if ![MASTER, MSDB].contains(&known.id) || !is_there(&known.path) {
            self.end_of_dbcc(quiet);
            return Ok(());
        }
        self.databases.release(known)?;
        let name = known.path.shown();
        let trouble = match inspect(&known.path)?.kind {
            Kind::Sealed(sealed) => {
                let opened = sealed.header.unwrap(&Credentials::gather(&Request::default())?);
                opened.err().map(|error| format!("'{name}': {error}"))
            }
            Kind::Damaged(error) => Some(format!("'{name}': {error}")),
            _ => Some(format!("'{name}' is not the sealed file that it was")),
        };
        if let Some(told) = trouble {
            return Err(Message::of(table::DATABASE_DAMAGED, [&known.name, &told]).into());
        }
        let look = AuditOptions { physical_only, cores: pellucid_backup::job::processors() };
        let found = audit_with(&known.path, look, &[], &mut |_, _, _| ())?;
        self.tell_found(command, known, &found, quiet)
    }

    /// A plain database has no tags: SQLite's own checks are all there is.
    fn check_plain(&self, schema: &str, physical: bool) -> Done<Audit> {
        let check = if physical { "quick_check" } else { "integrity_check" };
        let mut found = Audit::default();
        let whole = format!("PRAGMA {}.{check}({SHOWN})", quoted(schema));
        match self.rows_of_check(&whole, &mut found.integrity) {
            Err(error) if what_the_application_has(&error).is_some() => {
                self.check_plain_tables(schema, check, &mut found)?;
            }
            whole => whole?,
        }
        if !physical {
            match self.orphans(schema) {
                Ok(orphans) => found.orphans = orphans,
                Err(error) => match what_the_application_has(&error) {
                    Some(told) => found.unchecked.push(format!("foreign keys: {told}")),
                    None => return Err(error.into()),
                },
            }
        }
        Ok(found)
    }

    /// Checks table by table: where one needs what only an application has, the check of all does not begin.
    fn check_plain_tables(&self, schema: &str, check: &str, found: &mut Audit) -> Done {
        let all = format!("SELECT name FROM {}.sqlite_schema WHERE type = 'table'", quoted(schema));
        let mut tables = Vec::new();
        self.rows_of_check(&all, &mut tables)?;
        for table in tables {
            let name = table.replace('\'', "''");
            let one = format!("PRAGMA {}.{check}('{name}')", quoted(schema));
            if let Err(error) = self.rows_of_check(&one, &mut found.integrity) {
                match what_the_application_has(&error) {
                    Some(told) => found.unchecked.push(format!("table `{table}`: {told}")),
                    None => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// The first column of what a statement gives, but `ok`.
    pub(super) fn rows_of_check(&self, sql: &str, found: &mut Vec<String>) -> rusqlite::Result<()> {
        let mut statement = self.databases.connection.prepare(sql)?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
        for told in rows {
            found.extend(Some(told?).filter(|told| told != "ok"));
        }
        Ok(())
    }

    fn orphans(&self, schema: &str) -> rusqlite::Result<Vec<OrphanRow>> {
        let check = format!("PRAGMA {}.foreign_key_check", quoted(schema));
        let mut statement = self.databases.connection.prepare(&check)?;
        let rows = statement.query_map([], |row| {
            Ok(OrphanRow { table: row.get(0)?, rowid: row.get(1)?, parent: row.get(2)? })
        })?;
        rows.take(SHOWN).collect()
    }

    fn tell_found(&mut self, command: &str, known: &Known, found: &Audit, quiet: bool) -> Done {
        let mut errors = Vec::new();
        for page in &found.damaged_pages {
            errors.push(Message::of(table::PAGE_DAMAGED, [&page.page, &known.name, &page.cause]));
        }
        let frames = found
            .damaged_frames
            .iter()
            .map(|(frame, told)| format!("frame {frame} of the log: {told}"));
        let records =
            found.damaged_records.iter().map(|told| format!("a record of the journal: {told}"));
        for told in frames.chain(records).chain(found.integrity.iter().cloned()) {
            errors.push(Message::of(table::DATABASE_DAMAGED, [&known.name, &told]));
        }
        for row in &found.orphans {
            errors.push(Message::of(table::ORPHAN_ROW, [&row.table, &row.parent]));
        }
        for told in &found.unchecked {
            self.inform(Message::of(table::NOT_CHECKED, [&known.name, &told]));
        }
        let count = errors.len();
        if !quiet || count > 0 {
            self.inform(Message::of(table::CHECK_FOUND, [&command, &count, &known.name]));
        }
        if count > 0 {
            return Err(Raised::of(errors));
        }
        self.end_of_dbcc(quiet);
        Ok(())
    }

    pub(super) fn end_of_dbcc(&mut self, quiet: bool) {
        if !quiet {
            self.inform(Message::of(table::DBCC_ENDS, []));
        }
    }

    fn alter_index(
        &mut self,
        index: Option<&Name>,
        table: &ObjectName,
        action: &IndexAction,
    ) -> Done {
        let (schema, sqlite) = self.table_to_maintain(table)?;
        match action {
            IndexAction::Rebuild { partition, .. } => {
                if let Some(Partition::Number(number)) = partition {
                    if *number != 1 {
                        return Err(Message::unsupported(format!("PARTITION = {number}")).into());
                    }
                }
            }
            // REORGANIZE has the same result for a b-tree, and is online: readers go on.
            IndexAction::Reorganize { .. } => {}
            IndexAction::Disable => return Err(Message::unsupported("ALTER INDEX DISABLE").into()),
            IndexAction::Set(_) => return Ok(()),
        }
        match index {
            None => {
                self.rebuild_table(&schema, &sqlite)?;
                let sql = format!("REINDEX {}.{}", quoted(&schema), quoted(&sqlite));
                Ok(self.databases.connection.execute_batch(&sql)?)
            }
            Some(index) => match self.find_index(&schema, &sqlite, index.as_str())? {
                Some(found) => {
                    // A primary key is clustered there: the table's own b-tree, and here an index beside it.
                    if self.is_of_the_table(&schema, &sqlite, index.as_str())? {
                        self.rebuild_table(&schema, &sqlite)?;
                    }
                    let sql = format!("REINDEX {}.{}", quoted(&schema), quoted(&found));
                    Ok(self.databases.connection.execute_batch(&sql)?)
                }
                None if self.is_of_the_table(&schema, &sqlite, index.as_str())? => {
                    self.rebuild_table(&schema, &sqlite)
                }
                None => Err(Message::of(table::UNKNOWN_INDEX, [&index.as_str()]).into()),
            },
        }
    }

    /// The attached schema and SQLite's name of a table.
    fn table_to_maintain(&mut self, table: &ObjectName) -> Done<(String, String)> {
        let (_, schema) = self.databases.schema_of(table.database.as_ref())?;
        match self.databases.find_object(&schema, table)? {
            Some((sqlite, false)) => Ok((schema, sqlite)),
            _ => Err(Message::unknown_target(&crate::translate::object_text(table)).into()),
        }
    }

    /// What SQLite calls an index: its own name, or the one that it made for a constraint of that name.
    fn find_index(&self, schema: &str, table: &str, index: &str) -> Done<Option<String>> {
        let connection = &self.databases.connection;
        let sql = format!(
            "SELECT name FROM {}.sqlite_schema WHERE type = 'index' AND tbl_name = ?1 COLLATE NOCASE \
             AND name = ?2 COLLATE NOCASE",
            quoted(schema)
        );
        let found: Option<String> =
            connection.query_row(&sql, [table, index], |row| row.get(0)).optional()?;
        if found.is_some() {
            return Ok(found);
        }
        let constraints = super::object::constraints(&self.table_sql(schema, table)?);
        let Some(constraint) = constraints.iter().find(|one| one.name.eq_ignore_ascii_case(index))
        else {
            return Ok(None);
        };
        // SQLite numbers the indexes of PRIMARY KEY and UNIQUE as they come in the text.
        let mut statement = connection
            .prepare("SELECT name FROM pragma_index_list(?1, ?2) WHERE origin IN ('u', 'pk')")?;
        let rows = statement.query_map([table, schema], |row| row.get::<_, String>(0))?;
        let names: Vec<String> = rows.collect::<rusqlite::Result<_>>()?;
        for name in names {
            let mut columns =
                connection.prepare("SELECT name FROM pragma_index_info(?1, ?2) ORDER BY seqno")?;
            let rows = columns
                .query_map([name.as_str(), schema], |row| row.get::<_, Option<String>>(0))?;
            let found: Vec<String> =
                rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect();
            let same = found.len() == constraint.columns.len()
                && found
                    .iter()
                    .zip(&constraint.columns)
                    .all(|(left, right)| left.eq_ignore_ascii_case(right));
            if same {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Whether a name is that of the table's own b-tree: a primary key of rowids, or a columnstore that was left out.
    fn is_of_the_table(&self, schema: &str, table: &str, index: &str) -> Done<bool> {
        let constraints = super::object::constraints(&self.table_sql(schema, table)?);
        let is_key =
            constraints.iter().any(|one| one.is_primary && one.name.eq_ignore_ascii_case(index));
        let sql = format!(
            "SELECT 1 FROM {}.sqlite_schema WHERE type = 'table' AND name = '{}'",
            quoted(schema),
            super::object::INDEXES_TABLE
        );
        let connection = &self.databases.connection;
        if is_key || connection.query_row(&sql, [], |_| Ok(())).optional()?.is_none() {
            return Ok(is_key);
        }
        let sql = format!(
            "SELECT 1 FROM {}.{} WHERE name = ?1 COLLATE NOCASE AND table_name = ?2 COLLATE NOCASE",
            quoted(schema),
            super::object::INDEXES_TABLE
        );
        Ok(connection.query_row(&sql, [index, table], |_| Ok(())).optional()?.is_some())
    }

    pub(super) fn table_sql(&self, schema: &str, table: &str) -> Done<String> {
        let sql = format!(
            "SELECT sql FROM {}.sqlite_schema WHERE type = 'table' AND name = ?1",
            quoted(schema)
        );
        let found: Option<Option<String>> =
            self.databases.connection.query_row(&sql, [table], |row| row.get(0)).optional()?;
        Ok(found.flatten().unwrap_or_default())
    }

    /// Rewrites the b-tree of a table: every row in the order of its key, into new pages.
    pub(super) fn rebuild_table(&mut self, schema: &str, table: &str) -> Done {
        let (table_name, copy) = (quoted(table), quoted(&format!("{table} rebuilt")));
        let schema_name = quoted(schema);
        let mut columns = Vec::new();
        {
            let mut statement = self.databases.connection.prepare(
                "SELECT name FROM pragma_table_xinfo(?1, ?2) WHERE hidden = 0 ORDER BY cid",
            )?;
            let rows = statement.query_map([table, schema], |row| row.get::<_, String>(0))?;
            for name in rows {
                columns.push(quoted(&name?));
            }
        }
        let number = match self.databases.has_rowid(schema, table)? {
            true => row_name(columns.iter().map(|name| name.trim_matches('"'))),
            false => None,
        };
        let all = columns.join(", ");
        // An alias of the rowid is one of the columns; where there is none rows keep theirs.
        let has_own = number.is_some() && !has_alias(&self.databases.connection, schema, table)?;
        let number = number.as_deref();
        let own = match number.filter(|_| has_own) {
            Some(number) => format!("{number}, "),
            None => String::new(),
        };
        let order = number.unwrap_or("1");
        let rebuilt = format!(
            "CREATE TABLE {schema_name}.{copy} AS SELECT {own_as}{all} FROM {schema_name}.{table_name} ORDER BY {order};
             DELETE FROM {schema_name}.{table_name};
             INSERT INTO {schema_name}.{table_name}({own}{all}) SELECT {own_from}{all} FROM {schema_name}.{copy} ORDER BY {copy}.rowid;
             DROP TABLE {schema_name}.{copy}",
            own_as = match number.filter(|_| has_own) {
                Some(number) => format!("{number} AS \"pellucid rowid\", "),
                None => String::new(),
            },
            own_from = if own.is_empty() { "" } else { "\"pellucid rowid\", " },
        );
        let connection = &self.databases.connection;
        if self.transactions > 0 {
            // Foreign keys cannot be left aside then, and their actions would follow the rows that are moved.
            return Err(
                Message::unsupported("a rebuild of the table itself within a transaction").into()
            );
        }
        if self.has_triggers(schema, table)? {
            return Err(Message::unsupported("a rebuild of a table with triggers").into());
        }
        let foreign: i64 = connection.query_row("PRAGMA foreign_keys", [], |row| row.get(0))?;
        connection.execute_batch("PRAGMA foreign_keys = OFF")?;
        let done = in_savepoint(connection, |connection| connection.execute_batch(&rebuilt));
        connection.execute_batch(&format!("PRAGMA foreign_keys = {foreign}"))?;
        Ok(done?)
    }

    pub(super) fn has_triggers(&self, schema: &str, table: &str) -> Done<bool> {
        let sql = format!(
            "SELECT 1 FROM {}.sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE",
            quoted(schema)
        );
        Ok(self.databases.connection.query_row(&sql, [table], |_| Ok(())).optional()?.is_some())
    }

    fn update_statistics(&mut self, table: &ObjectName, targets: &[Name]) -> Done {
        let (schema, sqlite) = self.table_to_maintain(table)?;
        let connection = &self.databases.connection;
        // Every row, whatever sample is asked for.
        connection.execute_batch("PRAGMA analysis_limit = 0")?;
        if targets.is_empty() {
            let sql = format!("ANALYZE {}.{}", quoted(&schema), quoted(&sqlite));
            return Ok(connection.execute_batch(&sql)?);
        }
        for target in targets {
            let Some(found) = self.find_index(&schema, &sqlite, target.as_str())? else {
                return Err(Message::of(
                    table::INDEX_OF_TABLE_UNKNOWN,
                    [&target.as_str(), &sqlite_name(table)],
                )
                .into());
            };
            let sql = format!("ANALYZE {}.{}", quoted(&schema), quoted(&found));
            self.databases.connection.execute_batch(&sql)?;
        }
        Ok(())
    }
}

/// Whether a column is another name of the rowid (rowidtable.html).
fn has_alias(connection: &rusqlite::Connection, schema: &str, table: &str) -> Done<bool> {
    let mut statement =
        connection.prepare("SELECT upper(type) FROM pragma_table_info(?1, ?2) WHERE pk > 0")?;
    let rows = statement.query_map([table, schema], |row| row.get::<_, String>(0))?;
    let keys: Vec<String> = rows.collect::<rusqlite::Result<_>>()?;
    Ok(keys.len() == 1 && keys[0] == "INTEGER")
}

/// For LastGoodCheckDbTime, `status` and `doctor`. A keyring that cannot be written is no reason for DBCC CHECKDB to fail.
fn remember(begun: Begun, known: &Known, identity: &[u8; 16], found: &CheckFound) {
    let _ = begun.remember(&known.path, identity, found);
}

/// SQLite's message, if it does not know a name that the schema uses: nothing is wrong with the content then.
fn what_the_application_has(error: &rusqlite::Error) -> Option<&str> {
    let (code, text) = match error {
        rusqlite::Error::SqliteFailure(code, Some(text)) => (code, text),
        rusqlite::Error::SqlInputError { error, msg, .. } => (error, msg),
        _ => return None,
    };
    is_told_of_the_application(code.extended_code, text).then_some(text)
}

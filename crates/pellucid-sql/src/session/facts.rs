//! What functions of the server answer by: facts of databases, files, objects and columns, gathered before a statement.

use pellucid::header::Standing;
use pellucid_engine::checked;

use super::objects::{object_id, Object};
use super::properties::{ColumnFacts, FileFacts};
use super::server::DatabaseProperties;
use super::Databases;
use crate::execute::{access, recovery_model, size_kb};
use crate::instance::files::{self, DatabaseFile};
use crate::instance::paths::Folder;
use crate::instance::{Known, MASTER};
use crate::message::Result;
use crate::translate::{quoted, table_functions};
use crate::values::moment::{Moment, TICKS_SECOND};
use crate::values::types::SqlType;
use crate::views;

impl Databases {
    /// Before a statement that asks the session for names: what there is now.
    ///
    /// # Errors
    /// SQLite's.
    pub fn refresh(&self, sql: &str) -> Result<()> {
        if !sql.contains("tsql_server(") {
            return Ok(());
        }
        let has = |word: &str| sql.contains(word);
        if has("'DB_")
            || has("'HAS_DB")
            || has("'CERT_ID")
            || has("'SERVERPROPERTY")
            || has("'ORIGINAL_DB")
        {
            let names = match self.narrowed.databases() {
                Some(names) => names,
                None => {
                    let all = self.instance.databases()?.into_iter();
                    all.map(|known| (known.id, known.name)).collect()
                }
            };
            let certificates = match has("'CERT_ID") {
                true => self.instance.keyring()?.find_certificates()?.whole,
                false => Vec::new(),
            };
            let certificates =
                certificates.iter().map(|stored| stored.public().name().to_owned()).collect();
            let folder =
                |folder| self.instance.folder(folder).map(|path| path.display().to_string());
            let folders = match has("'SERVERPROPERTY") {
                true => {
                    Some([folder(Folder::Data)?, folder(Folder::Log)?, folder(Folder::Backup)?])
                }
                false => None,
            };
            self.shared.set_names(names, certificates, folders);
        }
        if has("'DATABASEPROPERTY") {
            let properties = self.glances.while_rows_are_made(|| self.properties())?;
            self.shared.set_properties(properties);
        }
        let has_columns = has("'COL_");
        if has("'OBJECT") || has("'FILE_") || has("'FILEPROPERTY") || has_columns {
            let objects = self.objects()?;
            if has_columns {
                self.shared.set_columns(self.columns(&objects)?);
            }
            self.shared.set_objects(objects, self.file_facts()?);
        }
        if has("'CERTPROPERTY") || has("'CERTENCODED") {
            self.shared.set_certificate_facts(views::certificate_facts(self)?);
        }
        if has("'KEY_ID") {
            self.shared.set_keys(views::key_ids(self)?);
        }
        Ok(())
    }

    fn properties(&self) -> Result<Vec<DatabaseProperties>> {
        let mut properties = Vec::new();
        for known in self.instance.databases()? {
            let recovery = self.recovery(&known)?;
            properties.push(DatabaseProperties {
                good_check: self.good_check(&known),
                status: known.shown_state(recovery.standing).name(),
                access: access(&known),
                recovery: recovery_model(recovery.model),
                is_in_standby: recovery.standing == Standing::Standby,
                is_read_only: known.is_read_only || recovery.standing == Standing::Standby,
                collation: known.collation().to_owned(),
                name: known.name,
            });
        }
        Ok(properties)
    }

    /// When the last CHECKDB of a database ended that found nothing; 1900-01-01 if none did, as SQL Server has it.
    pub fn good_check(&self, known: &Known) -> Moment {
        /// 1970-01-01.
        const DAYS_TO_1970: i64 = 25_567;
        let checks =
            self.instance.keyring().and_then(|keyring| Ok(keyring.recall_checks(&known.path)?));
        let checks = checks.unwrap_or_default();
        // Looked at only where it matters: that gives a connection to the database up for a moment.
        let identity = match checks.is_empty() {
            true => None,
            false => self.look(known).ok().and_then(|kind| checked::identity(kind.ok()?.as_ref())),
        };
        let about = checks.iter().filter(|check| Some(check.file_id) == identity);
        let seconds = about.map(|check| check.good_at).max().filter(|at| *at > 0);
        seconds
            .and_then(|at| {
                Moment::of_days(DAYS_TO_1970, i64::try_from(at).ok()?.checked_mul(TICKS_SECOND)?)
            })
            .unwrap_or_else(Moment::epoch)
    }

    /// The pages of 8 KB that the current database's file has, and those in use; none of a system database.
    pub fn pages(&self) -> Result<(i64, i64)> {
        const PAGE_BYTES: i64 = 8192;
        let known = self.current()?;
        if known.is_system() {
            return Ok((0, 0));
        }
        let schema = quoted(&self.attach(&known)?);
        let pragma = |name: &str| -> rusqlite::Result<i64> {
            let sql = format!("PRAGMA {schema}.{name}");
            self.connection.query_row(&sql, [], |row| row.get(0))
        };
        let (count, free, bytes) =
            (pragma("page_count")?, pragma("freelist_count")?, pragma("page_size")?);
        let whole = |count: i64| (count.saturating_mul(bytes) + PAGE_BYTES - 1) / PAGE_BYTES;
        Ok((whole(count), whole(count - free)))
    }

    fn file_facts(&self) -> Result<Vec<FileFacts>> {
        const PAGE_KB: i64 = 8;
        let known = self.current()?;
        let files = self.files(&known)?;
        let (_, used) = self.pages()?;
        let facts = |file: DatabaseFile| {
            let is_log = file.kind == files::FileKind::Log;
            let log_pages = (size_kb(&known, &file) + PAGE_KB - 1) / PAGE_KB;
            FileFacts {
                id: file.id,
                is_log,
                is_read_only: known.is_read_only,
                used_pages: if is_log { log_pages } else { used },
                name: file.name,
            }
        };
        Ok(files.into_iter().map(facts).collect())
    }

    fn columns(&self, objects: &[Object]) -> Result<Vec<ColumnFacts>> {
        let mut columns = Vec::new();
        let mut add = |object, all: Vec<(String, SqlType)>| {
            for (number, (name, data_type)) in (1..).zip(all) {
                columns.push(ColumnFacts { object, number, name, data_type });
            }
        };
        for object in objects.iter().filter(|object| !object.sqlite.is_empty()) {
            let found = self.table_of(&object.attached, &object.sqlite, object.kind == "V")?;
            let found = found.columns.into_iter().map(|one| (one.name, one.data_type));
            add(object.id, found.collect());
        }
        let known = self.current()?;
        for (view, found) in self.columns_of_views(&known)? {
            let found = found.into_iter().map(|one| (one.name, one.data_type));
            add(object_id(&known.name, &view), found.collect());
        }
        Ok(columns)
    }

    /// Tables and views of the databases that are attached, and of the current one.
    fn objects(&self) -> Result<Vec<Object>> {
        let current = self.current()?;
        if !current.is_system() {
            self.attach(&current)?;
        }
        let mut objects = Vec::new();
        let master = match self.attach_master() {
            // It is in nobody else's way: whoever is in `master`, or names it, is told.
            Err(_) if current.id != MASTER => None,
            found => found?,
        };
        if let Some(schema) = master {
            self.objects_of("master", &schema, &mut objects)?;
        }
        let attached = self.attached.borrow().clone();
        for known in self.instance.databases()? {
            if attached.iter().any(|(id, _)| *id == known.id) {
                self.objects_of(&known.name, &format!("d{}", known.id), &mut objects)?;
            }
            for module in self.instance.modules(&known)? {
                let object = Object::new(&known.name, "", &module.name, module.kind.letter());
                // Its columns are none of SQLite's.
                let sqlite = String::new();
                objects.push(Object { definition: Some(module.definition), sqlite, ..object });
            }
        }
        self.objects_of("tempdb", "temp", &mut objects)?;
        for module in self.temporary_procedures.borrow().iter() {
            let object = Object::new("tempdb", "", &module.name, module.kind.letter());
            let (definition, sqlite) = (Some(module.definition.clone()), String::new());
            objects.push(Object { definition, sqlite, ..object });
        }
        objects
            .extend(views::msdb_tables().map(|name| Object::of_server("msdb", "dbo", name, "U")));
        for database in [current.name.as_str(), "master"] {
            let of_server = |kind| move |name| Object::of_server(database, "sys", name, kind);
            objects.extend(views::sys_views().map(of_server("V")));
            objects.extend(table_functions().map(|(name, _)| name).map(of_server("IF")));
        }
        Ok(objects)
    }

    fn objects_of(&self, database: &str, schema: &str, objects: &mut Vec<Object>) -> Result<()> {
        for (name, is_view) in self.tables_and_views(schema)? {
            let kind = if is_view { "V" } else { "U" };
            objects.push(Object::new(database, schema, &name, kind));
        }
        for constraint in views::named_constraints(self, database, schema)? {
            let of_table = Object::new(database, "", &constraint.table, constraint.kind);
            let (id, name) = (constraint.id, constraint.name);
            objects.push(Object { id, name, sqlite: String::new(), ..of_table });
        }
        Ok(())
    }
}

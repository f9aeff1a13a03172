//! Tables and indexes: CREATE, ALTER, DROP, TRUNCATE.
//!
//! They become SQLite's own, readable by every program: only what SQLite says as well is taken, the rest is 50001.

mod index;
mod made;
mod read;

use pellucid_tsql::ast::{
    AlterTable, CreateTable, Name, ObjectName, ObjectStatement, TableElement,
};
use rusqlite::OptionalExtension;

use super::view::of_another_kind;
use super::Done;
use crate::instance::MSDB;
use crate::message::{table, Message};
use crate::savepoint::in_savepoint;
use crate::session::{identity_seed, is_internal, sqlite_name, without_literals, Session};
use crate::translate::{object_text, quoted, TableColumn};

pub(super) use index::found_twice;
use made::{begin_at, column_text, has_key, seed, Place};
pub(super) use made::{constraint_text, default_text, refuse_default_of_xml, table_text};
pub(crate) use read::{constraints, first_name, Constraint};
pub(super) use read::{is_of_xml, reference_names};

/// Indexes that SQLite has no need for, so that their names are known: a clustered columnstore is the table itself.
pub(super) const INDEXES_TABLE: &str = "pellucid_indexes";

/// A column as it was made: name, declared type, whether INSERT gives it a value.
pub(super) type MadeColumn = (String, String, bool);

impl Session {
    pub(super) fn object(&mut self, statement: &ObjectStatement) -> Done {
        for name in targets(statement) {
            self.check_writable_table(name)?;
        }
        match statement {
            ObjectStatement::CreateTable(create) => self.create_table(create),
            ObjectStatement::AlterTable { table, action } => self.alter_table(table, action),
            ObjectStatement::DropTables { if_exists, tables } => {
                self.drop_tables(tables, *if_exists)
            }
            ObjectStatement::TruncateTable(table) => {
                let Some((schema, sqlite, false)) = self.find(table)? else {
                    let shown = object_text(table);
                    return Err(Message::of(table::UNKNOWN_TABLE_TO_EMPTY, [&shown]).into());
                };
                if self.is_referenced(&schema, &sqlite)? {
                    return Err(
                        Message::of(table::TRUNCATE_REFERENCED, [&table.object.as_str()]).into()
                    );
                }
                self.truncate(&schema, &sqlite)
            }
            ObjectStatement::CreateIndex(create) => self.create_index(create),
            ObjectStatement::DropIndexes { if_exists, indexes } => {
                indexes.iter().try_for_each(|index| self.drop_index(index, *if_exists))
            }
            ObjectStatement::Procedure(procedure) => self.create_procedure(procedure),
            ObjectStatement::Function(function) => self.create_function(function),
            ObjectStatement::DropFunctions { if_exists, functions } => {
                self.drop_functions(functions, *if_exists)
            }
            ObjectStatement::DropProcedures { if_exists, procedures } => {
                self.drop_procedures(procedures, *if_exists)
            }
            ObjectStatement::View(view) => self.create_view(view),
            ObjectStatement::DropViews { if_exists, views } => self.drop_views(views, *if_exists),
            // A schema is a part of a table's name: it is there as soon as a table has it.
            ObjectStatement::CreateSchema { .. } | ObjectStatement::DropSchema { .. } => Ok(()),
            ObjectStatement::DropAbsent { what, if_exists, names, on } => {
                self.drop_absent(what, *if_exists, names, on.as_ref())
            }
            ObjectStatement::SwitchTriggers { enable, names, on } => {
                self.switch_triggers(*enable, names, on)
            }
        }
    }

    /// Attached schema, SQLite's name, and whether it is a view.
    pub(in crate::execute) fn find(
        &self,
        name: &ObjectName,
    ) -> Done<Option<(String, String, bool)>> {
        let schema = match name.object.as_str().starts_with('#') {
            true => "temp".to_owned(),
            false => self.databases.schema_of(name.database.as_ref())?.1,
        };
        let bare = match name.object.as_str().starts_with('#') {
            true => name.object.clone().into(),
            false => name.clone(),
        };
        let found = self.databases.find_object(&schema, &bare)?;
        Ok(found.map(|(sqlite, is_view)| (schema, sqlite, is_view)))
    }

    /// Whether a name is one of a table that msdb shows.
    fn is_table_of_msdb(&self, name: &ObjectName) -> bool {
        let is_msdb = match &name.database {
            Some(database) => database.as_str().eq_ignore_ascii_case("msdb"),
            None => self.databases.current_id() == MSDB,
        };
        let is_dbo = |schema: &Name| schema.as_str().eq_ignore_ascii_case("dbo");
        is_msdb
            && name.server.is_none()
            && name.schema.as_ref().is_none_or(is_dbo)
            && crate::views::find("msdb", name.object.as_str()).is_some()
    }

    /// Whether a foreign key of another table refers to it.
    pub(super) fn is_referenced(&self, schema: &str, table: &str) -> Done<bool> {
        let sql = format!(
            "SELECT 1 FROM {}.sqlite_schema m, pragma_foreign_key_list(m.name, ?2) f WHERE m.type = 'table' \
             AND f.\"table\" = ?1 COLLATE NOCASE AND m.name <> ?1 COLLATE NOCASE LIMIT 1",
            quoted(schema)
        );
        let found = self.databases.connection.query_row(&sql, [table, schema], |_| Ok(()));
        Ok(found.optional()?.is_some())
    }

    /// Every row goes, and identities begin again.
    fn truncate(&mut self, schema: &str, table: &str) -> Done {
        let seed = self.seed_of(schema, table)?;
        let schema = quoted(schema);
        in_savepoint(&self.databases.connection, |connection| {
            connection.execute_batch(&format!("DELETE FROM {schema}.{}", quoted(table)))?;
            let numbered =
                format!("SELECT 1 FROM {schema}.sqlite_schema WHERE name = 'sqlite_sequence'");
            if connection.query_row(&numbered, [], |_| Ok(())).optional()?.is_none() {
                return Ok(());
            }
            let sequence = format!("DELETE FROM {schema}.sqlite_sequence WHERE name = ?1");
            connection.execute(&sequence, [table])?;
            match seed {
                1 => Ok(()),
                seed => begin_at(connection, &schema, table, seed),
            }
        })
    }

    /// The first number of a table's identity.
    fn seed_of(&self, schema: &str, table: &str) -> Done<i64> {
        let sql = format!("SELECT sql FROM {}.sqlite_schema WHERE name = ?1", quoted(schema));
        let text = self.databases.connection.query_row(&sql, [table], |row| row.get(0));
        let text: Option<String> = text.optional()?.flatten();
        let lower = without_literals(&text.unwrap_or_default()).to_ascii_lowercase();
        let found = self.databases.table_of(schema, table, false)?;
        let identity = found.columns.iter().find(|column| column.identity);
        Ok(identity.map_or(1, |column| identity_seed(&lower, &column.name)))
    }

    /// Attached schema and SQLite's name of a table that is about to be made.
    pub(super) fn new_table(&self, name: &ObjectName) -> Done<(String, String)> {
        if let Some(database) = &name.database {
            if self.databases.instance.find(database.as_str())?.is_none() {
                return Err(Message::of(table::NO_DATABASE_OF_TABLE, [&database.as_str()]).into());
            }
        }
        let is_there = self.find(name)?.is_some();
        if is_there && name.object.as_str().starts_with('#') && self.frames.len() > 1 {
            // It would be the caller's, of which there is one.
            let what = format!("a second table {} within a procedure", name.object.as_str());
            return Err(Message::unsupported(what).into());
        }
        if is_there || self.is_own_table(name) {
            return Err(Message::object_exists(name.object.as_str()).into());
        }
        if name.object.as_str().starts_with('#') {
            self.databases.has_temporary_tables.set(true);
            let sqlite = name.object.as_str().to_owned();
            self.databases.identity_insert.forget(&format!("\"temp\".{}", quoted(&sqlite)));
            return Ok(("temp".to_owned(), sqlite));
        }
        let (known, schema) = self.databases.schema_of(name.database.as_ref())?;
        let sqlite = sqlite_name(name);
        if self.databases.instance.module(&known, &sqlite)?.is_some() {
            return Err(Message::object_exists(name.object.as_str()).into());
        }
        if schema == "temp" && is_internal(&sqlite) {
            return Err(Message::unsupported(format!("the name {sqlite} in tempdb")).into());
        }
        let place = format!("{}.{}", quoted(&schema), quoted(&sqlite));
        self.databases.identity_insert.forget(&place);
        Ok((schema, sqlite))
    }

    fn create_table(&mut self, create: &CreateTable) -> Done {
        let (schema, sqlite) = self.new_table(&create.name)?;
        let (sql, _) = table_text(&schema, &sqlite, &create.elements)?;
        self.check_referenced(&schema, &sqlite, &create.elements)?;
        self.make_table(&schema, &sqlite, &sql, &create.elements)
    }

    fn alter_table(&mut self, table: &ObjectName, action: &AlterTable) -> Done {
        let Some((schema, sqlite, false)) = self.find(table)? else {
            return Err(Message::of(table::UNKNOWN_TABLE, [&object_text(table)]).into());
        };
        let target = format!("{}.{}", quoted(&schema), quoted(&sqlite));
        match action {
            AlterTable::Add { elements, .. } => {
                let (mut columns, mut constraints) = (String::new(), Vec::new());
                // All of them are looked at before one is added.
                for (number, element) in (1..).zip(elements) {
                    match element {
                        TableElement::Column(column) => {
                            if has_key(column) {
                                return Err(
                                    Message::unsupported("ADD of a column with a key").into()
                                );
                            }
                            let (text, _) = column_text(column, &Place::added(number))?;
                            columns += &format!("ALTER TABLE {target} ADD COLUMN {text};");
                        }
                        TableElement::Constraint(constraint) => constraints.push(constraint),
                        TableElement::Computed { .. } => {
                            return Err(Message::unsupported("ADD of a computed column").into());
                        }
                        TableElement::Index(_) => {
                            return Err(Message::unsupported("ADD INDEX").into());
                        }
                    }
                }
                self.check_referenced(&schema, &sqlite, elements)?;
                let done = in_savepoint(&self.databases.connection, |connection| {
                    connection.execute_batch(&columns)?;
                    if !constraints.is_empty() {
                        self.add_constraints(&schema, &sqlite, &constraints)?;
                    }
                    self.check_referenced_keys(&schema, &sqlite, elements)
                });
                done.map_err(|raised| {
                    self.not_referenced(raised, table, (&schema, &sqlite), elements)
                })
            }
            AlterTable::DropColumns { if_exists, columns } => {
                let found = self.databases.table_of(&schema, &sqlite, false)?;
                let mut sql = String::new();
                for column in columns {
                    let name = column.as_str();
                    let is_it = |other: &&TableColumn| other.name.eq_ignore_ascii_case(name);
                    match found.columns.iter().find(is_it) {
                        Some(known) => {
                            let column = quoted(&known.sqlite);
                            sql += &format!("ALTER TABLE {target} DROP COLUMN {column};");
                        }
                        None if *if_exists => {}
                        None => {
                            let places: [&dyn std::fmt::Display; 2] =
                                [&name, &table.object.as_str()];
                            return Err(Message::of(table::UNKNOWN_COLUMN_TO_DROP, places).into());
                        }
                    }
                }
                in_savepoint(&self.databases.connection, |connection| {
                    Ok(connection.execute_batch(&sql)?)
                })
            }
            AlterTable::AlterColumn(_) => {
                Err(Message::unsupported("ALTER TABLE ALTER COLUMN").into())
            }
            AlterTable::DropConstraints { .. } => {
                Err(Message::unsupported("ALTER TABLE DROP CONSTRAINT").into())
            }
            AlterTable::CheckConstraints { .. } => {
                Err(Message::unsupported("ALTER TABLE CHECK CONSTRAINT").into())
            }
            AlterTable::Rebuild(_) => {
                self.rebuild_table(&schema, &sqlite)?;
                Ok(self.databases.connection.execute_batch(&format!("REINDEX {target}"))?)
            }
        }
    }

    fn drop_tables(&mut self, names: &[ObjectName], if_exists: bool) -> Done {
        for name in names {
            match self.find(name)? {
                Some((schema, sqlite, false)) => {
                    // SQLite would delete the rows first, and with them those of other tables.
                    if self.is_referenced(&schema, &sqlite)? {
                        return Err(
                            Message::of(table::DROP_REFERENCED, [&name.object.as_str()]).into()
                        );
                    }
                    let place = format!("{}.{}", quoted(&schema), quoted(&sqlite));
                    self.databases.connection.execute_batch(&format!("DROP TABLE {place}"))?;
                    self.databases.identity_insert.forget(&place);
                }
                Some(_) => return Err(of_another_kind("TABLE", name, "view")),
                None => {
                    if !name.object.as_str().starts_with('#') {
                        let (known, _) = self.databases.schema_of(name.database.as_ref())?;
                        self.refuse_drop_of_module(&known, None, name)?;
                    }
                    if !if_exists {
                        return Err(Message::cannot_drop("table", &object_text(name)).into());
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes a table of that text, with its identity's seed and the indexes among its columns: all of it or nothing.
    pub(super) fn make_table(
        &self,
        schema: &str,
        table: &str,
        sql: &str,
        elements: &[TableElement],
    ) -> Done {
        in_savepoint(&self.databases.connection, |connection| {
            connection.execute_batch(sql)?;
            if let Some(identity) = seed(elements).filter(|identity| identity.seed != 1) {
                begin_at(connection, &quoted(schema), table, identity.seed)?;
            }
            elements.iter().try_for_each(|element| match element {
                TableElement::Index(index) => {
                    let (name, columns) = (index.name.as_str(), &index.columns);
                    self.put_index(schema, table, name, index.unique, columns, &index.include)
                }
                _ => Ok(()),
            })?;
            self.check_referenced_keys(schema, table, elements)
        })
    }
}

/// What a statement changes.
fn targets(statement: &ObjectStatement) -> Vec<&ObjectName> {
    match statement {
        ObjectStatement::CreateTable(create) => vec![&create.name],
        ObjectStatement::AlterTable { table, .. } | ObjectStatement::TruncateTable(table) => {
            vec![table]
        }
        ObjectStatement::DropTables { tables: names, .. }
        | ObjectStatement::DropViews { views: names, .. } => names.iter().collect(),
        // Kept in `msdb`.
        ObjectStatement::Procedure(_)
        | ObjectStatement::DropProcedures { .. }
        | ObjectStatement::Function(_)
        | ObjectStatement::DropFunctions { .. } => Vec::new(),
        ObjectStatement::CreateIndex(create) => vec![&create.table],
        ObjectStatement::DropIndexes { indexes, .. } => {
            indexes.iter().map(|index| &index.table).collect()
        }
        ObjectStatement::View(view) => vec![&view.name],
        ObjectStatement::CreateSchema { .. }
        | ObjectStatement::DropSchema { .. }
        | ObjectStatement::DropAbsent { .. }
        | ObjectStatement::SwitchTriggers { .. } => Vec::new(),
    }
}

//! Tables and indexes: CREATE, ALTER, DROP, TRUNCATE.
//!
//! They become SQLite's own, readable by every program: only what SQLite says as well is taken, the rest is 50001.

use pellucid_tsql::ast::{
    AlterTable, Column, ColumnConstraint, ColumnProperty, CreateIndex, CreateTable, DropIndex,
    Expression, FunctionArguments, Identity, IndexColumn, Key, Literal, Name, Niladic, ObjectName,
    ObjectStatement, References, ReferentialAction, TableConstraint, TableElement, TableRule,
    UnaryOperator,
};
use rusqlite::{Connection, OptionalExtension};

use super::view::of_another_kind;
use super::{Done, Raised, Violation};
use crate::instance::MSDB;
use crate::message::{table, Message};
use crate::savepoint::in_savepoint;
use crate::session::{
    identity_seed, is_internal, split, sqlite_name, written_declaration, Session, IDENTITY_FROM,
    IDENTITY_IS,
};
use crate::translate::{object_text, quoted, TableColumn};
use crate::values::convert::to_hex;
use crate::values::types::{Family, SqlType};

/// Indexes that SQLite has no need for, so that their names are known: a clustered columnstore is the table itself.
pub(super) const INDEXES_TABLE: &str = "pellucid_indexes";

/// A column as it was made: name, declared type, whether INSERT gives it a value.
pub(super) type MadeColumn = (String, String, bool);

/// A PRIMARY KEY or UNIQUE in the text of a table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Constraint {
    pub name: String,
    pub is_primary: bool,
    pub columns: Vec<String>,
}

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
        let lower = text.unwrap_or_default().to_ascii_lowercase();
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
                            let (text, _) =
                                column_text(column, &Place { number, ..Place::default() })?;
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

    fn create_index(&mut self, create: &CreateIndex) -> Done {
        if self.is_table_of_msdb(&create.table) {
            let told = format!(
                "No index '{}' is made: what '{}' shows has indexes of its own.",
                create.name.as_str(),
                object_text(&create.table)
            );
            self.inform(Message::text(told));
            return Ok(());
        }
        let Some((schema, table, false)) = self.find(&create.table)? else {
            return Err(Message::unknown_target(&object_text(&create.table)).into());
        };
        let name = create.name.as_str();
        if create.columnstore {
            return self.remember_index(&schema, &table, name);
        }
        if create.filter.is_some() {
            return Err(Message::unsupported("WHERE of CREATE INDEX").into());
        }
        self.put_index(&schema, &table, name, create.unique, &create.columns, &create.include)
    }

    fn put_index(
        &self,
        schema: &str,
        of_table: &str,
        name: &str,
        unique: bool,
        columns: &[IndexColumn],
        include: &[Name],
    ) -> Done {
        // SQLite takes a name of no column as a text.
        let known = self.databases.table_of(schema, of_table, false)?;
        let is_known = |name: &&Name| {
            known.columns.iter().any(|column| column.name.eq_ignore_ascii_case(name.as_str()))
        };
        let named = columns.iter().map(|column| &column.name).chain(include);
        if let Some(unknown) = named.into_iter().find(|name| !is_known(name)) {
            return Err(Message::of(table::UNKNOWN_COLUMN_OF_KEY, [&unknown.as_str()]).into());
        }
        let mut columns: Vec<String> = columns.iter().map(index_column).collect();
        if !unique {
            columns.extend(include.iter().map(|column| quoted(column.as_str())));
        }
        let own = self.index_name(schema, of_table, name)?;
        let sql = format!(
            "CREATE {}INDEX {}.{} ON {}({})",
            if unique { "UNIQUE " } else { "" },
            quoted(schema),
            quoted(&own),
            quoted(of_table),
            columns.join(", ")
        );
        let made = self.databases.connection.execute_batch(&sql);
        made.map_err(|error| found_twice(error.into(), of_table, name))
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

    /// SQLite's indexes have one name in a database, SQL Server's one of each table: a second one gets the table's before
    /// its own.
    fn index_name(&self, schema: &str, table: &str, name: &str) -> Done<String> {
        let sql = format!(
            "SELECT tbl_name FROM {}.sqlite_schema WHERE name = ?1 COLLATE NOCASE",
            quoted(schema)
        );
        let found: Option<String> =
            self.databases.connection.query_row(&sql, [name], |row| row.get(0)).optional()?;
        match found {
            None => Ok(name.to_owned()),
            Some(other) if other.eq_ignore_ascii_case(table) => {
                Err(Message::of(table::INDEX_EXISTS, [&name, &table]).into())
            }
            Some(_) => Ok(format!("{table}.{name}")),
        }
    }

    fn remember_index(&mut self, schema: &str, table: &str, name: &str) -> Done {
        let schema = quoted(schema);
        in_savepoint(&self.databases.connection, |connection| {
            connection.execute_batch(&format!(
                "CREATE TABLE IF NOT EXISTS {schema}.{INDEXES_TABLE}(name TEXT NOT NULL COLLATE NOCASE, \
                 table_name TEXT NOT NULL COLLATE NOCASE, PRIMARY KEY(table_name, name))"
            ))?;
            connection.execute(
                &format!("INSERT INTO {schema}.{INDEXES_TABLE} VALUES (?1, ?2)"),
                (name, table),
            )?;
            Ok(())
        })
    }

    fn drop_index(&mut self, index: &DropIndex, if_exists: bool) -> Done {
        let (name, table) = (index.name.as_str(), &index.table);
        let missing = || Message::cannot_drop("index", &format!("{}.{name}", object_text(table)));
        let Some((schema, sqlite, false)) = self.find(table)? else {
            return if if_exists { Ok(()) } else { Err(missing().into()) };
        };
        let sql = format!(
            "SELECT name FROM {}.sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?1 COLLATE NOCASE \
             AND (name = ?2 COLLATE NOCASE OR name = ?3 COLLATE NOCASE)",
            quoted(&schema)
        );
        let connection = &self.databases.connection;
        let found: Option<String> = connection
            .query_row(&sql, (&sqlite, name, format!("{sqlite}.{name}")), |row| row.get(0))
            .optional()?;
        match found {
            Some(found) => {
                let sql = format!("DROP INDEX {}.{}", quoted(&schema), quoted(&found));
                Ok(connection.execute_batch(&sql)?)
            }
            None if if_exists => Ok(()),
            None => Err(missing().into()),
        }
    }
}

/// 1505, with 3621 behind it, where rows have a key twice that an index is to be made of.
pub(super) fn found_twice(raised: Raised, of_table: &str, index: &str) -> Raised {
    if !matches!(raised.violation, Some(Violation::Unique(_))) {
        return raised;
    }
    let (schema, name) = split(of_table);
    let shown = format!("{schema}.{name}");
    let message = Message::of(table::INDEX_OF_DUPLICATES, [&shown, &index]);
    Raised { is_terminated: true, ..message.into() }
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

/// CREATE TABLE in SQLite's words, and the columns it makes.
pub(super) fn table_text(
    schema: &str,
    sqlite: &str,
    elements: &[TableElement],
) -> Done<(String, Vec<MadeColumn>)> {
    let identity = elements.iter().find_map(|element| match element {
        TableElement::Column(column) if identity_of(column).is_some() => Some(column.name.as_str()),
        _ => None,
    });
    let mut parts = Vec::new();
    let mut columns = Vec::new();
    let mut constraints = Vec::new();
    for element in elements {
        match element {
            TableElement::Column(column) => {
                let is_identity = identity == Some(column.name.as_str());
                let place = Place {
                    number: columns.len() + 1,
                    key: is_identity.then(|| key_name(column, elements)),
                    is_beside_identity: identity.is_some() && !is_identity,
                    is_of_key: is_of_key(column, elements),
                };
                if place.is_of_key && is_said_nullable(column) {
                    let named = Message::of(table::NULLABLE_KEY, [&split(sqlite).1]);
                    let not_made = Message::of(table::CONSTRAINT_NOT_MADE, []);
                    return Err(Raised::from(named).and(not_made));
                }
                let (text, made) = column_text(column, &place)?;
                parts.push(text);
                columns.push(made);
            }
            TableElement::Computed { name, .. } => {
                return Err(
                    Message::unsupported(format!("the computed column {}", name.as_str())).into()
                )
            }
            TableElement::Constraint(constraint) => {
                constraints.extend(constraint_text(constraint, identity)?);
            }
            // It is made behind the table.
            TableElement::Index(_) => {}
        }
    }
    parts.extend(constraints);
    let sql = format!("CREATE TABLE {}.{}({})", quoted(schema), quoted(sqlite), parts.join(", "));
    Ok((sql, columns))
}

fn identity_of(column: &Column) -> Option<Identity> {
    column.properties.iter().find_map(|property| match property {
        ColumnProperty::Identity(identity) => {
            Some(identity.unwrap_or(Identity { seed: 1, increment: 1 }))
        }
        _ => None,
    })
}

/// Lets an identity begin at `seed`.
fn begin_at(connection: &Connection, schema: &str, table: &str, seed: i64) -> Done {
    let sequence = format!("INSERT INTO {schema}.sqlite_sequence(name, seq) VALUES (?1, ?2)");
    connection.execute(&sequence, (table, seed - 1))?;
    Ok(())
}

fn seed(elements: &[TableElement]) -> Option<Identity> {
    elements.iter().find_map(|element| match element {
        TableElement::Column(column) => identity_of(column),
        _ => None,
    })
}

/// The name of the primary key over an identity column alone, if it has one.
fn key_name(column: &Column, elements: &[TableElement]) -> Option<String> {
    let own = column.properties.iter().find_map(|property| match property {
        ColumnProperty::Constraint {
            name,
            constraint: ColumnConstraint::Key(Key { primary: true, .. }),
        } => name.as_ref().map(|name| name.as_str().to_owned()),
        _ => None,
    });
    let of_table = elements.iter().find_map(|element| match element {
        TableElement::Constraint(TableConstraint {
            name: Some(name),
            rule: TableRule::Key { key: Key { primary: true, .. }, columns },
        }) if is_only(columns, column.name.as_str()) => Some(name.as_str().to_owned()),
        _ => None,
    });
    own.or(of_table)
}

/// Whether the primary key has the column, which makes it NOT NULL: SQLite takes NULL in each key but the rowid.
fn is_of_key(column: &Column, elements: &[TableElement]) -> bool {
    let name = column.name.as_str();
    let is_key = |key: &Key| key.primary;
    let own = column.properties.iter().any(|property| {
        matches!(property, ColumnProperty::Constraint { constraint: ColumnConstraint::Key(key), .. } if is_key(key))
    });
    let of_table = elements.iter().any(|element| match element {
        TableElement::Constraint(TableConstraint {
            rule: TableRule::Key { key, columns }, ..
        }) => is_key(key) && columns.iter().any(|one| one.name.as_str().eq_ignore_ascii_case(name)),
        _ => false,
    });
    own || of_table
}

/// SQLite adds no column with an index of its own.
fn has_key(column: &Column) -> bool {
    column.properties.iter().any(|property| {
        matches!(property, ColumnProperty::Constraint { constraint: ColumnConstraint::Key(_), .. })
    })
}

fn is_said_nullable(column: &Column) -> bool {
    column.properties.iter().any(|property| matches!(property, ColumnProperty::Nullable(true)))
}

fn is_only(columns: &[IndexColumn], name: &str) -> bool {
    matches!(columns, [only] if only.name.as_str().eq_ignore_ascii_case(name))
}

/// Where a column stands in its table.
#[derive(Default)]
struct Place {
    /// From 1.
    number: usize,
    /// Of the identity, with the name of its primary key.
    key: Option<Option<String>>,
    /// Another column is the identity, and with it SQLite's own key.
    is_beside_identity: bool,
    /// It is of the primary key.
    is_of_key: bool,
}

fn column_text(column: &Column, place: &Place) -> Done<(String, MadeColumn)> {
    let key = &place.key;
    let name = column.name.as_str();
    let data_type = SqlType::of_declaration(&column.data_type, place.number)?;
    let mut declared = written_declaration(&column.data_type, data_type);
    let known = declared.clone();
    let mut text = String::new();
    if let Some(key) = key {
        let identity = identity_of(column);
        if identity.is_some_and(|identity| identity.increment != 1) {
            return Err(Message::unsupported("an IDENTITY that does not grow by 1").into());
        }
        // SQLite numbers rows from 1 on, whatever it is told to have given before.
        if identity.is_some_and(|identity| identity.seed < 1) {
            return Err(Message::unsupported("an IDENTITY that begins below 1").into());
        }
        if data_type.family() != Family::Integer {
            return Err(
                Message::unsupported(format!("an IDENTITY of type {}", data_type.name())).into()
            );
        }
        // SQLite numbers the rows of an INTEGER alone: the type itself stands beside it.
        let from = match identity.map_or(1, |identity| identity.seed) {
            1 => String::new(),
            seed => format!("{IDENTITY_FROM}{seed}"),
        };
        declared = format!("INTEGER {IDENTITY_IS}{declared}{from}*/");
        let named =
            key.as_ref().map_or_else(String::new, |key| format!("CONSTRAINT {} ", quoted(key)));
        text = format!(" {named}PRIMARY KEY AUTOINCREMENT NOT NULL");
    }
    if let Some(collation) = &column.collation {
        let upper = collation.as_str().to_uppercase();
        if upper.contains("_AI") {
            return Err(Message::unsupported(format!("COLLATE {}", collation.as_str())).into());
        }
        if upper.contains("_CS") || upper.contains("_BIN") {
            text.push_str(" COLLATE BINARY");
        } else {
            text.push_str(" COLLATE NOCASE");
        }
    } else if data_type.family() == Family::Text {
        text.push_str(" COLLATE NOCASE");
    }
    let says_null = |property: &ColumnProperty| matches!(property, ColumnProperty::Nullable(_));
    let is_sysname = column.data_type.name.object.as_str().eq_ignore_ascii_case("sysname");
    let is_not_null = is_sysname || place.is_of_key;
    if is_not_null && key.is_none() && !column.properties.iter().any(says_null) {
        text.push_str(" NOT NULL");
    }
    for property in &column.properties {
        match property {
            ColumnProperty::Nullable(true)
            | ColumnProperty::Identity(_)
            | ColumnProperty::RowGuid
            | ColumnProperty::Sparse => {}
            ColumnProperty::Nullable(false) => {
                if key.is_none() {
                    text.push_str(" NOT NULL");
                }
            }
            ColumnProperty::Constraint { name, constraint } => {
                if let (SqlType::Xml, ColumnConstraint::Default(value)) = (data_type, constraint) {
                    refuse_default_of_xml(value)?;
                }
                if let Some(part) = column_constraint(constraint, place)? {
                    if let Some(name) = name {
                        text.push_str(&format!(" CONSTRAINT {}", quoted(name.as_str())));
                    }
                    text.push(' ');
                    text.push_str(&part);
                }
            }
        }
    }
    let made = (name.to_owned(), known, key.is_none());
    Ok((format!("{} {declared}{text}", quoted(name)), made))
}

fn column_constraint(constraint: &ColumnConstraint, place: &Place) -> Done<Option<String>> {
    Ok(match constraint {
        ColumnConstraint::Default(value) => Some(format!("DEFAULT {}", default_text(value)?)),
        // An identity has its own already.
        ColumnConstraint::Key(Key { primary: true, .. }) if place.key.is_some() => None,
        // The identity is the table's own key; this one is as good.
        ColumnConstraint::Key(Key { primary: true, .. }) if place.is_beside_identity => {
            Some("UNIQUE".to_owned())
        }
        ColumnConstraint::Key(Key { primary: true, .. }) => Some("PRIMARY KEY".to_owned()),
        ColumnConstraint::Key(Key { primary: false, .. }) => Some("UNIQUE".to_owned()),
        ColumnConstraint::Check(_) => return Err(Message::unsupported("CHECK").into()),
        ColumnConstraint::References(references) => Some(references_text(references)),
    })
}

pub(super) fn constraint_text(
    constraint: &TableConstraint,
    identity: Option<&str>,
) -> Done<Option<String>> {
    let named = |text: String| match &constraint.name {
        Some(name) => format!("CONSTRAINT {} {text}", quoted(name.as_str())),
        None => text,
    };
    Ok(match &constraint.rule {
        TableRule::Key { key, columns } => {
            let list: Vec<_> = columns.iter().map(index_column).collect();
            let list = list.join(", ");
            match (key.primary, identity) {
                (true, Some(identity)) if is_only(columns, identity) => None,
                // The identity is the table's own key; this one is as good.
                (true, Some(_)) | (false, _) => Some(named(format!("UNIQUE ({list})"))),
                (true, None) => Some(named(format!("PRIMARY KEY ({list})"))),
            }
        }
        TableRule::ForeignKey { columns, references } => {
            let list: Vec<_> = columns.iter().map(|column| quoted(column.as_str())).collect();
            Some(named(format!(
                "FOREIGN KEY ({}) {}",
                list.join(", "),
                references_text(references)
            )))
        }
        TableRule::Check(_) => return Err(Message::unsupported("CHECK").into()),
        TableRule::Default { .. } => {
            return Err(Message::unsupported("a DEFAULT that is a table's constraint").into())
        }
    })
}

fn references_text(references: &References) -> String {
    let mut text = format!("REFERENCES {}", quoted(&sqlite_name(&references.table)));
    if !references.columns.is_empty() {
        let list: Vec<_> =
            references.columns.iter().map(|column| quoted(column.as_str())).collect();
        text.push_str(&format!("({})", list.join(", ")));
    }
    for (event, action) in [("DELETE", references.on_delete), ("UPDATE", references.on_update)] {
        let action = match action {
            None => continue,
            Some(ReferentialAction::NoAction) => "NO ACTION",
            Some(ReferentialAction::Cascade) => "CASCADE",
            Some(ReferentialAction::SetNull) => "SET NULL",
            Some(ReferentialAction::SetDefault) => "SET DEFAULT",
        };
        text.push_str(&format!(" ON {event} {action}"));
    }
    text
}

fn index_column(column: &IndexColumn) -> String {
    let direction = if column.descending { " DESC" } else { "" };
    format!("{}{direction}", quoted(column.name.as_str()))
}

/// What is not NULL would have to be xml, as it is written there.
pub(super) fn refuse_default_of_xml(value: &Expression) -> Done {
    match value {
        Expression::Literal(Literal::Null) => Ok(()),
        _ => Err(Message::unsupported("a DEFAULT of a column of xml").into()),
    }
}

/// A DEFAULT that every program can evaluate.
pub(super) fn default_text(value: &Expression) -> Done<String> {
    const NOW: &str = "(strftime('%Y-%m-%d %H:%M:%f', 'now'))";
    let refused = || Message::unsupported("a DEFAULT that is neither a literal nor the time");
    Ok(match value {
        Expression::Literal(literal) => match literal {
            Literal::Null => "NULL".to_owned(),
            Literal::String(text) if !text.text.contains('\0') => {
                format!("'{}'", text.text.replace('\'', "''"))
            }
            Literal::Integer(text) | Literal::Decimal(text) | Literal::Float(text) => text.clone(),
            Literal::Binary(bytes) => format!("X'{}'", to_hex(bytes)),
            _ => return Err(refused().into()),
        },
        Expression::Unary { operator: UnaryOperator::Minus, operand } => match &**operand {
            Expression::Literal(
                Literal::Integer(text) | Literal::Decimal(text) | Literal::Float(text),
            ) => {
                format!("-{text}")
            }
            _ => return Err(refused().into()),
        },
        Expression::Function(call) => {
            let name = call.name.object.as_str().to_uppercase();
            let is_bare =
                matches!(&call.arguments, FunctionArguments::Values(list) if list.is_empty());
            match name.as_str() {
                "GETDATE" | "GETUTCDATE" | "SYSDATETIME" | "SYSUTCDATETIME" if is_bare => {
                    NOW.to_owned()
                }
                _ => return Err(refused().into()),
            }
        }
        Expression::Niladic(Niladic::CurrentTimestamp) => NOW.to_owned(),
        _ => return Err(refused().into()),
    })
}

/// The named PRIMARY KEY and UNIQUE constraints in the text of a table, as SQLite keeps it.
pub(crate) fn constraints(sql: &str) -> Vec<Constraint> {
    let tokens = tokens(sql);
    let mut found = Vec::new();
    // A constraint of a column is about the column whose definition it is in.
    let mut column: Option<String> = None;
    let (mut depth, mut starts) = (0_u32, false);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            "(" => {
                depth += 1;
                starts = depth == 1;
            }
            ")" => depth = depth.saturating_sub(1),
            "," if depth == 1 => starts = true,
            word if depth == 1 && word.eq_ignore_ascii_case("CONSTRAINT") => {
                let name = tokens.get(at + 1).map(|token| name_of(token)).unwrap_or_default();
                let kind = tokens.get(at + 2).map(|token| token.to_uppercase()).unwrap_or_default();
                let is_primary = kind == "PRIMARY";
                if is_primary || kind == "UNIQUE" {
                    let open = at + if is_primary { 4 } else { 3 };
                    let columns = match tokens.get(open).map(String::as_str) {
                        Some("(") if starts => list(&tokens[open + 1..]),
                        _ => column.clone().into_iter().collect(),
                    };
                    found.push(Constraint { name, is_primary, columns });
                }
                starts = false;
                at += 2;
            }
            word if depth == 1 && starts => {
                column = Some(name_of(word));
                starts = false;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The names of the foreign keys in the text of a table, in its order; none of one without.
pub(super) fn reference_names(sql: &str) -> Vec<Option<String>> {
    let tokens = tokens(sql);
    let (mut names, mut name, mut depth) = (Vec::new(), None, 0_u32);
    for (at, token) in tokens.iter().enumerate() {
        match token.to_ascii_uppercase().as_str() {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            "," if depth == 1 => name = None,
            "CONSTRAINT" if depth == 1 => name = tokens.get(at + 1).map(|token| name_of(token)),
            "PRIMARY" | "UNIQUE" | "CHECK" | "DEFAULT" | "NOT" | "COLLATE" if depth == 1 => {
                name = None;
            }
            "REFERENCES" if depth == 1 => names.push(name.take()),
            _ => {}
        }
    }
    names
}

/// The names up to the closing bracket; directions and collations aside.
fn list(tokens: &[String]) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_first = true;
    for token in tokens {
        match token.as_str() {
            ")" => break,
            "," => is_first = true,
            name if is_first => {
                names.push(name_of(name));
                is_first = false;
            }
            _ => {}
        }
    }
    names
}

/// The name that a column or constraint begins with.
pub(crate) fn first_name(part: &str) -> Option<String> {
    tokens(part).first().map(|token| name_of(token))
}

/// Whether a column's text declares it so.
pub(super) fn is_of_xml(part: &str) -> bool {
    let is_xml =
        |token: &String| ["xml", "xmltext"].iter().any(|xml| token.eq_ignore_ascii_case(xml));
    tokens(part).get(1).is_some_and(is_xml)
}

fn name_of(token: &str) -> String {
    let mut chars = token.chars();
    match (chars.next(), token.chars().last()) {
        (Some('"'), Some('"')) if token.len() > 1 => {
            token[1..token.len() - 1].replace("\"\"", "\"")
        }
        (Some('\''), Some('\'')) if token.len() > 1 => token[1..token.len() - 1].replace("''", "'"),
        (Some('['), Some(']')) if token.len() > 1 => token[1..token.len() - 1].to_owned(),
        (Some('`'), Some('`')) if token.len() > 1 => token[1..token.len() - 1].replace("``", "`"),
        _ => token.to_owned(),
    }
}

/// Words, quoted names and strings, and signs.
fn tokens(sql: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut chars = sql.char_indices().peekable();
    while let Some((start, next)) = chars.next() {
        let close = match next {
            '"' | '`' | '\'' => Some(next),
            '[' => Some(']'),
            _ => None,
        };
        let mut end = start + next.len_utf8();
        if let Some(close) = close {
            while let Some((at, other)) = chars.next() {
                end = at + other.len_utf8();
                if other == close {
                    match chars.peek() {
                        Some((_, again)) if *again == close && close != ']' => {
                            chars.next();
                        }
                        _ => break,
                    }
                }
            }
        } else if next.is_alphanumeric() || next == '_' {
            while let Some((at, other)) = chars.peek().copied() {
                if !(other.is_alphanumeric() || other == '_' || other == '$') {
                    break;
                }
                end = at + other.len_utf8();
                chars.next();
            }
        } else if next.is_whitespace() {
            continue;
        }
        tokens.push(sql[start..end].to_owned());
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_are_found_in_the_text_of_a_table() {
        let sql = "CREATE TABLE \"Application.People\"(\"PersonID\" int NOT NULL CONSTRAINT \"PK_People\" PRIMARY KEY, \
                   name nvarchar(50) COLLATE NOCASE CONSTRAINT [UQ one] UNIQUE, a int, b int, \
                   CONSTRAINT \"UQ \"\"two\"\"\" UNIQUE (\"a\" DESC, b), CONSTRAINT fk FOREIGN KEY (a) REFERENCES t(x), \
                   CHECK (a > 1))";
        let found = constraints(sql);
        let of = |name: &str, is_primary, columns: &[&str]| Constraint {
            name: name.to_owned(),
            is_primary,
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
        };
        let expected = [
            of("PK_People", true, &["PersonID"]),
            of("UQ one", false, &["name"]),
            of("UQ \"two\"", false, &["a", "b"]),
        ];
        assert_eq!(found, expected);
        assert_eq!(reference_names(sql), [Some("fk".to_owned())]);
        let sql = "CREATE TABLE t(\"references\" int CONSTRAINT d DEFAULT 1 REFERENCES p(a) ON DELETE SET DEFAULT, \
                   b int CONSTRAINT \"of b\" REFERENCES p, CONSTRAINT c FOREIGN KEY (a, b) REFERENCES p(a, b))";
        let names = [None, Some("of b".to_owned()), Some("c".to_owned())];
        assert_eq!(reference_names(sql), names);
        assert_eq!(constraints("CREATE TABLE t(x)"), []);
        assert_eq!(constraints("CREATE TABLE t(x 'unfinished"), []);
    }
}

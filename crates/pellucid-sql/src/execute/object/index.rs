//! Indexes: CREATE and DROP, by themselves and among the columns of a table.

use pellucid_tsql::ast::{CreateIndex, DropIndex, IndexColumn, Name};
use rusqlite::OptionalExtension;

use super::INDEXES_TABLE;
use crate::execute::{Done, Raised, Violation};
use crate::message::{table, Message};
use crate::savepoint::in_savepoint;
use crate::session::{split, Session};
use crate::translate::{object_text, quoted};

impl Session {
    pub(super) fn create_index(&mut self, create: &CreateIndex) -> Done {
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

    pub(super) fn put_index(
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

    pub(super) fn drop_index(&mut self, index: &DropIndex, if_exists: bool) -> Done {
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
pub(in crate::execute) fn found_twice(raised: Raised, of_table: &str, index: &str) -> Raised {
    if !matches!(raised.violation, Some(Violation::Unique(_))) {
        return raised;
    }
    let (schema, name) = split(of_table);
    let shown = format!("{schema}.{name}");
    let message = Message::of(table::INDEX_OF_DUPLICATES, [&shown, &index]);
    Raised { is_terminated: true, ..message.into() }
}

pub(super) fn index_column(column: &IndexColumn) -> String {
    let direction = if column.descending { " DESC" } else { "" };
    format!("{}{direction}", quoted(column.name.as_str()))
}

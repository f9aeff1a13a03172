//! Logical file names, sizes and growth: a table of the database itself, so that they travel with it and its backups.
//!
//! Without the table a database `sales` has the files `sales` and `sales_log`. Sizes and growth are kept, not allocated.

use rusqlite::{Connection, OptionalExtension};

use super::Known;
use crate::message::Result;
use crate::savepoint::in_savepoint;
use crate::translate::quoted;

/// The table's name; hidden from `sys` views.
pub(crate) const FILES_TABLE: &str = "pellucid_files";

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// The database.
    Data = 0,
    /// Its log, which SQLite keeps beside the file.
    Log = 1,
}

/// A file of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatabaseFile {
    /// 1 for the data, 2 for the log, more for those that are only remembered.
    pub id: i64,
    pub kind: FileKind,
    /// Its logical name.
    pub name: String,
    /// As it was written; for the data file the registry knows better.
    pub physical: Option<String>,
    /// KB that were asked for.
    pub size_kb: Option<i64>,
    /// KB at most; none: unlimited.
    pub most_kb: Option<i64>,
    /// KB, or per cent.
    pub growth: i64,
    pub is_percent: bool,
}

impl DatabaseFile {
    /// What a database without a table has: SQL Server's defaults, which are others for its own databases.
    pub fn defaults(name: &str) -> [Self; 2] {
        let (data, log) = match name {
            "master" => ("master", "mastlog".to_owned()),
            "tempdb" => ("tempdev", "templog".to_owned()),
            "model" => ("modeldev", "modellog".to_owned()),
            "msdb" => ("MSDBData", "MSDBLog".to_owned()),
            other => (other, format!("{other}_log")),
        };
        let of = |id, kind, name: String| Self {
            id,
            kind,
            name,
            physical: None,
            size_kb: None,
            most_kb: None,
            growth: 65_536,
            is_percent: false,
        };
        [of(1, FileKind::Data, data.to_owned()), of(2, FileKind::Log, log)]
    }
}

/// The files of the database that is attached as `schema`.
///
/// # Errors
/// SQLite's.
pub(crate) fn read(
    connection: &Connection,
    schema: &str,
    known: &Known,
) -> Result<Vec<DatabaseFile>> {
    let schema = quoted(schema);
    let sql = format!(
        "SELECT 1 FROM {schema}.sqlite_schema WHERE type = 'table' AND name = '{FILES_TABLE}'"
    );
    if connection.query_row(&sql, [], |_| Ok(())).optional()?.is_none() {
        let stem = known.path.file_stem().unwrap_or_default().to_string_lossy();
        return Ok(DatabaseFile::defaults(&stem).into());
    }
    let sql = format!(
        "SELECT file_id, type, name, physical_name, size_kb, max_size_kb, growth, is_percent_growth \
         FROM {schema}.{FILES_TABLE} ORDER BY file_id"
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([], |row| {
        Ok(DatabaseFile {
            id: row.get(0)?,
            kind: if row.get::<_, i64>(1)? == 1 { FileKind::Log } else { FileKind::Data },
            name: row.get(2)?,
            physical: row.get(3)?,
            size_kb: row.get(4)?,
            most_kb: row.get(5)?,
            growth: row.get(6)?,
            is_percent: row.get(7)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Writes them, in one transaction with whatever is open.
///
/// # Errors
/// SQLite's.
pub(crate) fn write(connection: &Connection, schema: &str, files: &[DatabaseFile]) -> Result<()> {
    let schema = quoted(schema);
    in_savepoint(connection, |connection| {
        connection.execute_batch(&format!(
            "CREATE TABLE IF NOT EXISTS {schema}.{FILES_TABLE}(
               file_id INTEGER PRIMARY KEY, type INTEGER NOT NULL, name TEXT NOT NULL, physical_name TEXT,
               size_kb INTEGER, max_size_kb INTEGER, growth INTEGER NOT NULL, is_percent_growth INTEGER NOT NULL);
             DELETE FROM {schema}.{FILES_TABLE}"
        ))?;
        let sql =
            format!("INSERT INTO {schema}.{FILES_TABLE} VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
        for file in files {
            connection.execute(
                &sql,
                (
                    file.id,
                    file.kind as i64,
                    &file.name,
                    &file.physical,
                    file.size_kb,
                    file.most_kb,
                    file.growth,
                    file.is_percent,
                ),
            )?;
        }
        Ok(())
    })
}

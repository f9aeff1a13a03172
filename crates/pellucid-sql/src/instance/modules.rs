//! Procedures: what is kept of them in `msdb`, which is sealed.

use rusqlite::{OptionalExtension, Row};

use super::{Instance, Known};
use crate::message::Result;

/// A procedure as it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Module {
    /// `Name`, or `Schema.Name` outside dbo.
    pub name: String,
    /// The batch that made it.
    pub definition: String,
    /// UTC, as SQLite writes times.
    pub created: String,
    pub modified: String,
    /// ANSI_NULLS as it was then.
    pub ansi_nulls: bool,
    /// QUOTED_IDENTIFIER as it was then.
    pub quoted_identifier: bool,
}

const COLUMNS: &str = "name, definition, create_date, modify_date, ansi_nulls, quoted_identifier";

impl Module {
    fn of_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            name: row.get(0)?,
            definition: row.get(1)?,
            created: row.get(2)?,
            modified: row.get(3)?,
            ansi_nulls: row.get(4)?,
            quoted_identifier: row.get(5)?,
        })
    }
}

impl Instance {
    /// The procedure of that name in a database.
    ///
    /// # Errors
    /// SQLite's.
    pub fn module(&self, known: &Known, name: &str) -> Result<Option<Module>> {
        let sql =
            format!("SELECT {COLUMNS} FROM pellucid_module WHERE database_id = ?1 AND name = ?2");
        let mut statement = self.msdb.prepare_cached(&sql)?;
        Ok(statement.query_row((known.id, name), Module::of_row).optional()?)
    }

    /// Those of a database, by name.
    ///
    /// # Errors
    /// SQLite's.
    pub fn modules(&self, known: &Known) -> Result<Vec<Module>> {
        let sql =
            format!("SELECT {COLUMNS} FROM pellucid_module WHERE database_id = ?1 ORDER BY name");
        let mut statement = self.msdb.prepare_cached(&sql)?;
        let rows = statement.query_map([known.id], Module::of_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Keeps one, in the place of another one of its name.
    ///
    /// # Errors
    /// SQLite's.
    pub fn keep_module(
        &self,
        known: &Known,
        name: &str,
        definition: &str,
        (ansi_nulls, quoted_identifier): (bool, bool),
    ) -> Result<()> {
        let sql = "INSERT INTO pellucid_module VALUES \
                   (?1, ?2, ?3, strftime('%Y-%m-%d %H:%M:%f'), strftime('%Y-%m-%d %H:%M:%f'), ?4, ?5) \
                   ON CONFLICT(database_id, name) DO UPDATE SET definition = excluded.definition, \
                   modify_date = excluded.modify_date, ansi_nulls = excluded.ansi_nulls, \
                   quoted_identifier = excluded.quoted_identifier";
        self.msdb.execute(sql, (known.id, name, definition, ansi_nulls, quoted_identifier))?;
        Ok(())
    }

    /// Forgets one; whether there was one.
    ///
    /// # Errors
    /// SQLite's.
    pub fn drop_module(&self, known: &Known, name: &str) -> Result<bool> {
        let sql = "DELETE FROM pellucid_module WHERE database_id = ?1 AND name = ?2";
        Ok(self.msdb.execute(sql, (known.id, name))? > 0)
    }
}

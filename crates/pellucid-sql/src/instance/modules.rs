//! Procedures, views and functions of scripts: what is kept of them in `msdb`, which is sealed.

use pellucid_backup::history::History;
use rusqlite::{Connection, OptionalExtension, Row};

use super::{Instance, Known};
use crate::message::Result;

/// What a module is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModuleKind {
    Procedure,
    View,
    /// A scalar function.
    Function,
    /// A function of one query, which gives a table.
    TableFunction,
}

impl ModuleKind {
    /// `sys.objects.type`, as it is kept.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Procedure => "P",
            Self::View => "V",
            Self::Function => "FN",
            Self::TableFunction => "IF",
        }
    }

    /// Whether it is one that queries call.
    pub fn is_function(self) -> bool {
        matches!(self, Self::Function | Self::TableFunction)
    }

    /// What messages call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Procedure => "procedure",
            Self::View => "view",
            Self::Function | Self::TableFunction => "function",
        }
    }
}

/// A procedure, view or function as it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Module {
    pub kind: ModuleKind,
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

impl Module {
    fn of_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            name: row.get("name")?,
            definition: row.get("definition")?,
            created: row.get("create_date")?,
            modified: row.get("modify_date")?,
            ansi_nulls: row.get("ansi_nulls")?,
            quoted_identifier: row.get("quoted_identifier")?,
            // An instance of before, opened by an account that may only read it, does not say.
            kind: match row.get_ref("kind").map(|kind| kind.as_str().ok()) {
                Ok(Some("V")) => ModuleKind::View,
                Ok(Some("FN")) => ModuleKind::Function,
                Ok(Some("IF")) => ModuleKind::TableFunction,
                _ => ModuleKind::Procedure,
            },
        })
    }
}

/// Whether the table says what a module is: in an instance of before there are procedures only.
///
/// # Errors
/// SQLite's.
pub(super) fn tells_kinds(msdb: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM pragma_table_info('pellucid_module') WHERE name = 'kind'";
    msdb.query_row(sql, [], |row| row.get(0))
}

/// Makes it say so.
///
/// # Errors
/// SQLite's.
pub(super) fn tell_kinds(msdb: &Connection) -> rusqlite::Result<()> {
    if !tells_kinds(msdb)? {
        msdb.execute_batch(
            "ALTER TABLE pellucid_module ADD COLUMN kind TEXT NOT NULL DEFAULT 'P'",
        )?;
    }
    Ok(())
}

impl Instance {
    /// The one of that name in a database.
    ///
    /// # Errors
    /// SQLite's.
    pub fn module(&self, known: &Known, name: &str) -> Result<Option<Module>> {
        let sql = "SELECT * FROM pellucid_module WHERE database_id = ?1 AND name = ?2";
        let mut statement = self.msdb.prepare_cached(sql)?;
        Ok(statement.query_row((known.id, name), Module::of_row).optional()?)
    }

    /// Those of a database, by name.
    ///
    /// # Errors
    /// SQLite's.
    pub fn modules(&self, known: &Known) -> Result<Vec<Module>> {
        let sql = "SELECT * FROM pellucid_module WHERE database_id = ?1 ORDER BY name";
        let mut statement = self.msdb.prepare_cached(sql)?;
        let rows = statement.query_map([known.id], Module::of_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Those of such names.
    ///
    /// # Errors
    /// SQLite's.
    pub fn modules_called(
        &self,
        known: &Known,
        is_it: impl Fn(&str) -> bool,
    ) -> Result<Vec<Module>> {
        // Their texts are read of those alone.
        let sql = "SELECT name FROM pellucid_module WHERE database_id = ?1 ORDER BY name";
        let mut statement = self.msdb.prepare_cached(sql)?;
        let names = statement.query_map([known.id], |row| row.get::<_, String>(0))?;
        let mut all = Vec::new();
        for name in names {
            let name = name?;
            if is_it(&name) {
                all.extend(self.module(known, &name)?);
            }
        }
        Ok(all)
    }

    /// Keeps one, in the place of another one of its name.
    ///
    /// # Errors
    /// SQLite's.
    pub fn keep_module(
        &self,
        known: &Known,
        (kind, name): (ModuleKind, &str),
        definition: &str,
        (ansi_nulls, quoted_identifier): (bool, bool),
    ) -> Result<()> {
        let sql = "INSERT INTO pellucid_module(database_id, name, definition, create_date, modify_date, ansi_nulls, \
                   quoted_identifier, kind) \
                   VALUES (?1, ?2, ?3, strftime('%Y-%m-%d %H:%M:%f'), strftime('%Y-%m-%d %H:%M:%f'), ?4, ?5, ?6) \
                   ON CONFLICT(database_id, name) DO UPDATE SET definition = excluded.definition, \
                   modify_date = excluded.modify_date, ansi_nulls = excluded.ansi_nulls, \
                   quoted_identifier = excluded.quoted_identifier, kind = excluded.kind";
        // By that file `instance export` knows that somebody has made something here.
        History::master_file()?;
        let values = (known.id, name, definition, ansi_nulls, quoted_identifier, kind.letter());
        self.msdb.execute(sql, values)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_an_instance_of_before_are_procedures() {
        let msdb = Connection::open_in_memory().unwrap();
        msdb.execute_batch(
            "CREATE TABLE pellucid_module(database_id INTEGER NOT NULL, name TEXT NOT NULL COLLATE NOCASE, \
             definition TEXT NOT NULL, create_date TEXT NOT NULL, modify_date TEXT NOT NULL, \
             ansi_nulls INTEGER NOT NULL, quoted_identifier INTEGER NOT NULL, PRIMARY KEY(database_id, name)); \
             INSERT INTO pellucid_module VALUES (5, 'p', 'CREATE PROC p AS RETURN', '', '', 1, 1)",
        )
        .unwrap();
        let found = |msdb: &Connection| {
            msdb.query_row("SELECT * FROM pellucid_module", [], Module::of_row).unwrap()
        };
        assert_eq!(found(&msdb).kind, ModuleKind::Procedure);
        tell_kinds(&msdb).unwrap();
        tell_kinds(&msdb).unwrap();
        assert_eq!((found(&msdb).kind, found(&msdb).name.as_str()), (ModuleKind::Procedure, "p"));
        msdb.execute_batch("UPDATE pellucid_module SET kind = 'V'").unwrap();
        assert_eq!(found(&msdb).kind, ModuleKind::View);
    }
}

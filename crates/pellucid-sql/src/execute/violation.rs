//! Constraints that a change violates: SQLite says which table and columns they have, SQL Server how they are called.
//!
//! Source: <https://www.sqlite.org/rescode.html#constraint>, and Microsoft's table of messages.

mod key_value;
mod reference;

use std::fmt::Display;

use pellucid_tsql::ast::{ChangeTarget, ObjectName, TableSource};
use rusqlite::ffi::ErrorCode;
use rusqlite::OptionalExtension;

use super::object::constraints;
use super::{Done, Raised};
use crate::message::{table, Message};
use crate::session::{split, Session};
use crate::translate::{changed_table, quoted, Statement};

/// What SQLite says of a constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Violation {
    /// A key is there already: `t.a, t.b`, or `index 'ix'`.
    Unique(String),
    /// No NULL for `t.a`.
    Null(String),
    /// Any foreign key.
    Reference,
    /// A CHECK by its name, or by its condition.
    Check(String),
}

impl Violation {
    /// What an error says of one.
    pub fn of(error: &rusqlite::Error) -> Option<Self> {
        use rusqlite::ffi;
        let rusqlite::Error::SqliteFailure(code, Some(text)) = error else { return None };
        if code.code != ErrorCode::ConstraintViolation {
            return None;
        }
        let behind = |prefix: &str| text.strip_prefix(prefix).map(str::to_owned);
        match code.extended_code {
            ffi::SQLITE_CONSTRAINT_NOTNULL => {
                behind("NOT NULL constraint failed: ").map(Self::Null)
            }
            ffi::SQLITE_CONSTRAINT_UNIQUE
            | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
            | ffi::SQLITE_CONSTRAINT_ROWID => {
                behind("UNIQUE constraint failed: ").map(Self::Unique)
            }
            ffi::SQLITE_CONSTRAINT_FOREIGNKEY => Some(Self::Reference),
            ffi::SQLITE_CONSTRAINT_CHECK => behind("CHECK constraint failed: ").map(Self::Check),
            _ => None,
        }
    }
}

/// A statement that changes a table.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    /// INSERT, UPDATE or DELETE.
    pub verb: &'static str,
    pub target: &'a ChangeTarget,
    pub from: &'a [TableSource],
    /// What SQLite executes for it, where that is one statement.
    pub statement: Option<&'a Statement>,
}

impl<'a> Change<'a> {
    /// Of more than one statement of SQLite's, until somebody says which one it is.
    pub fn of(verb: &'static str, target: &'a ChangeTarget, from: &'a [TableSource]) -> Self {
        Self { verb, target, from, statement: None }
    }
}

/// The table that is changed.
struct Changed {
    /// As which its database is attached.
    schema: String,
    sqlite: String,
    database: String,
    /// `dbo.t`
    shown: String,
}

/// The index that does not take a key.
struct Key {
    /// Of what kind the constraint is; none of an index.
    kind: Option<&'static str>,
    name: String,
    columns: Vec<String>,
}

impl Session {
    /// The error with the message that SQL Server has for the constraint, as far as it can be found.
    pub(super) fn with_constraint(&self, mut raised: Raised, change: Change<'_>) -> Raised {
        let Some(violation) = raised.violation.take() else { return raised };
        // What cannot be looked up leaves the message as it is.
        let named = match self.changed_by(&change) {
            Ok(Some(changed)) => {
                self.constraint_message(&violation, &changed, change).unwrap_or_default()
            }
            _ => None,
        };
        if let (Some(named), Some(last)) = (named, raised.messages.last_mut()) {
            *last = named;
        }
        raised
    }

    fn constraint_message(
        &self,
        violation: &Violation,
        changed: &Changed,
        change: Change<'_>,
    ) -> Done<Option<Message>> {
        Ok(match violation {
            Violation::Unique(columns) => match self.violated_key(changed, columns)? {
                Some(key) => {
                    // Without it the message is right, too.
                    let value = self.duplicate_value(changed, &key.columns, change);
                    let value = value.unwrap_or_default();
                    Some(key.violated(&changed.shown, value.as_deref()))
                }
                None => None,
            },
            Violation::Null(column) => changed.column(column).map(|column| {
                let place = changed.place();
                Message::null_refused(column, &place, change.verb)
            }),
            Violation::Reference => Some(self.violated_reference(changed, change)?),
            Violation::Check(name) => Some(Message::conflict(
                [change.verb, "CHECK", name],
                &changed.database,
                &changed.shown,
                None,
            )),
        })
    }

    fn changed_by(&self, change: &Change<'_>) -> Done<Option<Changed>> {
        let name = match change.target {
            ChangeTarget::Variable(variable) => {
                let table = self.frames.last().and_then(|frame| frame.table(&variable.0));
                return Ok(table.and_then(|found| found.table.sqlite.split('"').nth(1)).map(
                    |sqlite| Changed {
                        schema: "temp".to_owned(),
                        sqlite: sqlite.to_owned(),
                        database: "tempdb".to_owned(),
                        shown: format!("dbo.@{}", variable.0),
                    },
                ));
            }
            ChangeTarget::Table { name, .. } => changed_table(name, change.from),
        };
        let Some((schema, sqlite, false)) = self.find(name)? else { return Ok(None) };
        let database = self.database_of(name, &schema)?;
        let (owner, table) = split(&sqlite);
        let shown = format!("{owner}.{table}");
        Ok(Some(Changed { schema, sqlite, database, shown }))
    }

    pub(super) fn database_of(&self, name: &ObjectName, schema: &str) -> Done<String> {
        match schema {
            "temp" => Ok("tempdb".to_owned()),
            _ => Ok(self.databases.schema_of(name.database.as_ref())?.0.name),
        }
    }

    fn violated_key(&self, changed: &Changed, violated: &str) -> Done<Option<Key>> {
        let connection = &self.databases.connection;
        let by_name = violated.strip_prefix("index '").and_then(|name| name.strip_suffix('\''));
        let sql = "SELECT name, origin FROM pragma_index_list(?1, ?2) WHERE \"unique\"";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([&changed.sqlite, &changed.schema])?;
        while let Some(row) = rows.next()? {
            let (name, origin): (String, String) = (row.get(0)?, row.get(1)?);
            let columns = self.columns_of_index(&changed.schema, &name)?;
            let is_it = by_name
                .map_or_else(|| changed.listed(&columns) == violated, |wanted| wanted == name);
            if !is_it {
                continue;
            }
            return Ok(Some(match &*origin {
                "c" => {
                    // A second one of a name has the table's before it.
                    let own = name.strip_prefix(&format!("{}.", changed.sqlite));
                    Key { kind: None, name: own.unwrap_or(&name).to_owned(), columns }
                }
                origin => self.constraint_of(changed, columns, origin == "pk")?,
            }));
        }
        // The key that SQLite numbers the rows by has no index.
        let Some(own) = self.databases.row_column(&changed.schema, &changed.sqlite)? else {
            return Ok(None);
        };
        let columns = vec![own];
        match changed.listed(&columns) == violated {
            true => Ok(Some(self.constraint_of(changed, columns, true)?)),
            false => Ok(None),
        }
    }

    pub(super) fn columns_of_index(&self, schema: &str, index: &str) -> Done<Vec<String>> {
        let sql = "SELECT coalesce(name, '') FROM pragma_index_info(?1, ?2) ORDER BY seqno";
        let mut statement = self.databases.connection.prepare_cached(sql)?;
        let names = statement.query_map([index, schema], |row| row.get(0))?;
        Ok(names.collect::<rusqlite::Result<_>>()?)
    }

    /// With the name that the text of the table has for it, else one that is made of the table's.
    fn constraint_of(
        &self,
        changed: &Changed,
        columns: Vec<String>,
        is_primary: bool,
    ) -> Done<Key> {
        let text = self.text_of(&changed.schema, &changed.sqlite)?;
        let is_same = |others: &[String]| {
            others.len() == columns.len()
                && others.iter().zip(&columns).all(|(one, other)| one.eq_ignore_ascii_case(other))
        };
        let mut named = constraints(&text).into_iter();
        let found = named.find(|one| one.is_primary == is_primary && is_same(&one.columns));
        let (kind, prefix) = match is_primary {
            true => ("PRIMARY KEY", "PK"),
            false => ("UNIQUE KEY", "UQ"),
        };
        let made = || format!("{prefix}_{}", split(&changed.shown).1);
        Ok(Key { kind: Some(kind), name: found.map_or_else(made, |one| one.name), columns })
    }

    /// The text that made a table.
    fn text_of(&self, schema: &str, sqlite: &str) -> Done<String> {
        let sql = format!(
            "SELECT sql FROM {}.sqlite_schema WHERE type = 'table' AND name = ?1",
            quoted(schema)
        );
        let found = self.databases.connection.query_row(&sql, [sqlite], |row| row.get(0));
        Ok(found.optional()?.flatten().unwrap_or_default())
    }
}

impl Changed {
    /// The column that SQLite names with the table before it.
    fn column<'t>(&self, named: &'t str) -> Option<&'t str> {
        named.strip_prefix(&self.sqlite)?.strip_prefix('.')
    }

    /// As SQLite lists columns.
    fn listed(&self, columns: &[String]) -> String {
        let all: Vec<_> =
            columns.iter().map(|column| format!("{}.{column}", self.sqlite)).collect();
        all.join(", ")
    }

    /// With its database.
    fn place(&self) -> String {
        match self.shown.strip_prefix("dbo.@") {
            Some(variable) => format!("@{variable}"),
            None => format!("{}.{}", self.database, self.shown),
        }
    }
}

impl Key {
    fn violated(&self, shown: &str, value: Option<&str>) -> Message {
        let value = value
            .map_or_else(String::new, |value| format!(" The duplicate key value is ({value})."));
        match self.kind {
            Some(kind) => {
                let places: [&dyn Display; 4] = [&kind, &self.name, &shown, &value];
                Message::of(table::DUPLICATE_KEY, places)
            }
            None => Message::of(table::DUPLICATE_IN_INDEX, [&shown, &self.name, &value]),
        }
    }
}

//! The foreign key that a change violates: SQLite does not say which one it is.

use rusqlite::Connection;

use super::{Change, Changed};
use crate::execute::object::reference_names;
use crate::execute::Done;
use crate::message::Message;
use crate::savepoint::in_savepoint;
use crate::session::{object_id, split, Session};
use crate::translate::quoted;

/// Of a database with more pages nobody waits until each key in it was looked at, for the sake of a name.
const PAGES_MOST: i64 = 10_000;

/// A foreign key.
struct Reference {
    /// The table that has it, and its number there.
    child: String,
    number: i64,
    parent: String,
    name: String,
    /// Its own columns, and those that they refer to.
    columns: Vec<(String, String)>,
}

impl Session {
    /// 547, with the one key that it can be; without names where it can be several.
    pub(super) fn violated_reference(
        &self,
        changed: &Changed,
        change: Change<'_>,
    ) -> Done<Message> {
        let is_changed = |table: &str| table.eq_ignore_ascii_case(&changed.sqlite);
        let mut keys = self.references_of(&changed.schema, &changed.sqlite, &changed.database)?;
        keys.retain(|key| match change.verb {
            "INSERT" => is_changed(&key.child),
            "DELETE" => is_changed(&key.parent),
            _ => is_changed(&key.child) || is_changed(&key.parent),
        });
        if keys.len() > 1 {
            if let Some((child, number)) = self.violated_when_done(changed, change)? {
                keys.retain(|key| key.child == child && key.number == number);
            }
        }
        let [key] = &keys[..] else {
            return Ok(Message::unknown_conflict(change.verb, &changed.database, &changed.shown));
        };
        let is_child =
            is_changed(&key.child) && (change.verb == "INSERT" || !is_changed(&key.parent));
        let kind = match (is_child, key.child.eq_ignore_ascii_case(&key.parent)) {
            (true, false) => "FOREIGN KEY",
            (true, true) => "FOREIGN KEY SAME TABLE",
            (false, false) => "REFERENCE",
            (false, true) => "SAME TABLE REFERENCE",
        };
        let (owner, table) = split(if is_child { &key.parent } else { &key.child });
        let column = match &key.columns[..] {
            [(own, referenced)] => Some(if is_child { referenced } else { own }),
            _ => None,
        };
        let shown = format!("{owner}.{table}");
        let column = column.map(String::as_str);
        Ok(Message::conflict([change.verb, kind, &key.name], &changed.database, &shown, column))
    }

    /// Those of the table, and those of others that refer to it.
    fn references_of(&self, schema: &str, sqlite: &str, database: &str) -> Done<Vec<Reference>> {
        let sql = format!(
            "SELECT m.name, m.sql, f.id, f.\"table\", f.\"from\", f.\"to\" FROM {}.sqlite_schema m, \
             pragma_foreign_key_list(m.name, ?2) f WHERE m.type = 'table' \
             AND ?1 COLLATE NOCASE IN (m.name, f.\"table\") ORDER BY m.name, f.id DESC, f.seq",
            quoted(schema)
        );
        let mut statement = self.databases.connection.prepare(&sql)?;
        let mut rows = statement.query([sqlite, schema])?;
        let mut keys: Vec<Reference> = Vec::new();
        while let Some(row) = rows.next()? {
            let (child, text): (String, String) = (row.get(0)?, row.get(1)?);
            let (number, parent): (i64, String) = (row.get(2)?, row.get(3)?);
            let (own, to): (String, Option<String>) = (row.get(4)?, row.get(5)?);
            let to = match to {
                Some(to) => to,
                // Without a name it is the key.
                None => self.databases.row_column(schema, &parent)?.unwrap_or_default(),
            };
            match keys.last_mut() {
                Some(key) if key.child == child && key.number == number => {
                    key.columns.push((own, to));
                }
                _ => {
                    let name = name(database, &child, number, &text);
                    keys.push(Reference { child, number, parent, name, columns: vec![(own, to)] });
                }
            }
        }
        Ok(keys)
    }

    /// The table and the number of the key that is violated when the statement has been carried out. It is, and taken back.
    fn violated_when_done(
        &self,
        changed: &Changed,
        change: Change<'_>,
    ) -> Done<Option<(String, i64)>> {
        let (Some(statement), Some(frame)) = (change.statement, self.frames.last()) else {
            return Ok(None);
        };
        let connection = &self.databases.connection;
        let pages = format!("PRAGMA {}.page_count", quoted(&changed.schema));
        let pages: i64 = connection.query_row(&pages, [], |row| row.get(0))?;
        if pages > PAGES_MOST {
            return Ok(None);
        }
        let looked: Result<(), Looked> = in_savepoint(connection, |connection| {
            connection.execute_batch("PRAGMA defer_foreign_keys = ON")?;
            let mut prepared =
                statement.prepare(connection, frame).map_err(|_| Looked::default())?;
            prepared.raw_execute()?;
            Err(Looked(first_violated(connection, &changed.schema)?))
        });
        connection.execute_batch("PRAGMA defer_foreign_keys = OFF")?;
        Ok(looked.err().and_then(|looked| looked.0))
    }
}

/// What was found, as an error: nothing of the statement stays. A key of ON DELETE RESTRICT is looked at during the
/// statement, and is not found.
#[derive(Default)]
struct Looked(Option<(String, i64)>);

impl From<rusqlite::Error> for Looked {
    fn from(_: rusqlite::Error) -> Self {
        Self::default()
    }
}

fn first_violated(
    connection: &Connection,
    schema: &str,
) -> rusqlite::Result<Option<(String, i64)>> {
    let mut check = connection.prepare(&format!("PRAGMA {}.foreign_key_check", quoted(schema)))?;
    let mut rows = check.query([])?;
    match rows.next()? {
        Some(row) => Ok(Some((row.get(0)?, row.get(3)?))),
        None => Ok(None),
    }
}

/// The name in the text of the table, else the one that `sys.foreign_keys` has.
fn name(database: &str, child: &str, number: i64, text: &str) -> String {
    let names = reference_names(text);
    // SQLite numbers them from the last of the text.
    let at = usize::try_from(number).ok().and_then(|number| names.len().checked_sub(number + 1));
    let at = at.unwrap_or_default();
    names.get(at).cloned().flatten().unwrap_or_else(|| {
        let id = object_id(database, &format!("{child}.foreign key.{at}"));
        format!("FK__{}__{id:08X}", split(child).1)
    })
}

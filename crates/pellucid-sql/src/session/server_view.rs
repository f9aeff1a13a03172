//! Views of the server: what they show now, as rows of a temporary table.

use pellucid::hash::Sha256;
use rusqlite::types::Value;
use zeroize::Zeroizing;

use super::narrowed::{Shown, Sought};
use super::Databases;
use crate::message::Result;
use crate::savepoint::in_savepoint;
use crate::translate::{quoted, Table, TableColumn};
use crate::views::{Row, View};

impl Databases {
    /// The temporary table of a view, with its rows as they are now; those alone that are sought, if a statement asks for some.
    ///
    /// # Errors
    /// Those of the view; SQLite's.
    pub(super) fn server_view(
        &self,
        view: &'static View,
        sought: Option<&Sought>,
    ) -> Result<Table> {
        // Of each database its own: a statement may name the same view of two.
        let name = format!("{}.{}.{}", self.current_id(), view.schema, view.name);
        let name = quoted(&match sought {
            Some(_) => format!("{name}.{}", self.narrowed.next_table()),
            None => name,
        });
        if view.name == "databases" {
            self.instance.register_known()?;
        }
        let make = || {
            let shown = match sought {
                Some(sought) => self.find_sought(sought)?,
                None => Shown::default(),
            };
            self.narrowed
                .while_shown(shown, || self.glances.while_rows_are_made(|| (view.rows)(self)))
        };
        let rows = self.instance.as_of_now(make)?;
        let temporary = format!("temp.{name}");
        let digest = digest(&rows);
        // What a transaction has put there may be rolled back behind it.
        let lasts = self.connection.is_autocommit();
        let is_there = self.view_rows.borrow().get(&name) == Some(&digest);
        if !is_there {
            self.view_rows.borrow_mut().remove(&name);
            self.put_rows(&temporary, view, rows)?;
            if lasts {
                self.view_rows.borrow_mut().insert(name, digest);
            }
        }
        let columns = view.columns.iter();
        let columns = columns.map(|(name, data_type)| TableColumn::new(name, *data_type)).collect();
        // What never has a row may be changed: there is nothing that would change.
        let row = view.is_always_empty().then(|| "rowid".to_owned());
        Ok(Table { sqlite: temporary, columns, row })
    }

    fn put_rows(&self, temporary: &str, view: &View, rows: Vec<Row>) -> rusqlite::Result<()> {
        let columns: Vec<String> = view.columns.iter().map(|(name, _)| quoted(name)).collect();
        // One step for all of them: each statement by itself would be a transaction.
        in_savepoint(&self.connection, |connection| {
            connection.execute_batch(&format!(
                "CREATE TABLE IF NOT EXISTS {temporary}({}); DELETE FROM {temporary}",
                columns.join(", ")
            ))?;
            let places = vec!["?"; columns.len()].join(", ");
            let sql = format!("INSERT INTO {temporary} VALUES ({places})");
            let mut insert = connection.prepare_cached(&sql)?;
            for row in rows {
                insert.execute(rusqlite::params_from_iter(row))?;
            }
            Ok(())
        })
    }
}

/// Of all values, their kinds, and the lengths of those that have one.
fn digest(rows: &[Row]) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut bytes = Zeroizing::new(Vec::new());
    for row in rows {
        bytes.push(u8::MAX);
        for value in row {
            let (kind, content): (u8, &[u8]) = match value {
                Value::Null => (0, &[]),
                Value::Integer(number) => (1, &number.to_le_bytes()),
                Value::Real(number) => (2, &number.to_bits().to_le_bytes()),
                Value::Text(text) => (3, text.as_bytes()),
                Value::Blob(bytes) => (4, bytes),
            };
            bytes.push(kind);
            if kind > 2 {
                bytes.extend_from_slice(&(content.len() as u64).to_le_bytes());
            }
            bytes.extend_from_slice(content);
        }
        hash.update(&bytes);
        bytes.clear();
    }
    hash.finish()
}

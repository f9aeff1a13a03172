//! How the values of a stored row belong to the columns of its table.

use pellucid::sqlite::Value;
use rusqlite::{Connection, OptionalExtension};

/// A stored value's column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// A column of that name.
    Column(String),
    /// The column that is the rowid; NULL is stored.
    Rowid(String),
    /// A column that SQLite computes.
    Generated,
}

/// A table that was made in the new database.
#[derive(Debug)]
pub struct Layout {
    /// Its name.
    pub table: String,
    /// In the order in which they are stored.
    pub stored: Vec<Stored>,
    /// A name that stands for the rowid; none if it has none, or a column stands for it.
    pub rowid: Option<&'static str>,
    /// Whether its rows lie in the tree of its primary key.
    pub without_rowid: bool,
}

impl Layout {
    /// Reads it off the table that was made.
    ///
    /// # Errors
    /// SQLite's.
    pub fn read(db: &Connection, table: &str) -> rusqlite::Result<Self> {
        let without_rowid = db.query_row(
            "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?1",
            [table],
            |row| row.get(0),
        )?;
        let mut statement = db.prepare(
            "SELECT name, upper(type), pk, hidden FROM pragma_table_xinfo(?1) ORDER BY cid",
        )?;
        let columns: Vec<(String, String, i64, i64)> = statement
            .query_map([table], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let key_index: Option<String> = db
            .query_row(
                "SELECT name FROM pragma_index_list(?1) WHERE origin = 'pk'",
                [table],
                |row| row.get(0),
            )
            .optional()?;
        let column = |name: &str, hidden: i64| match hidden {
            0 => Stored::Column(name.to_owned()),
            _ => Stored::Generated,
        };
        if let (true, Some(index)) = (without_rowid, &key_index) {
            let mut statement =
                db.prepare("SELECT cid FROM pragma_index_xinfo(?1) ORDER BY seqno")?;
            let order: Vec<i64> =
                statement.query_map([index], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            let stored = order.iter().filter_map(|at| columns.get(usize::try_from(*at).ok()?));
            let stored = stored.map(|(name, _, _, hidden)| column(name, *hidden)).collect();
            return Ok(Self { table: table.to_owned(), stored, rowid: None, without_rowid });
        }
        let keys = columns.iter().filter(|(_, _, key, _)| *key > 0).count();
        let is_rowid = |kind: &str, key: i64| {
            keys == 1 && key == 1 && kind == "INTEGER" && key_index.is_none()
        };
        // Columns that are computed when they are read are not stored.
        let stored: Vec<Stored> = columns
            .iter()
            .filter(|(_, _, _, hidden)| *hidden != 2)
            .map(|(name, kind, key, hidden)| match is_rowid(kind, *key) {
                true => Stored::Rowid(name.clone()),
                false => column(name, *hidden),
            })
            .collect();
        let named =
            |name: &&str| !columns.iter().any(|(column, ..)| column.eq_ignore_ascii_case(name));
        let own = stored.iter().any(|stored| matches!(stored, Stored::Rowid(_)));
        let rowid = ["rowid", "_rowid_", "oid"].into_iter().find(|name| !own && named(name));
        Ok(Self { table: table.to_owned(), stored, rowid, without_rowid })
    }

    /// The statement that puts in a row of which so many values are stored: later columns were added since, and have
    /// their defaults.
    pub fn insert(&self, values: usize) -> String {
        let mut names: Vec<String> = self.rowid.iter().map(|name| (*name).to_owned()).collect();
        names.extend(self.stored.iter().take(values).filter_map(|stored| match stored {
            Stored::Column(name) | Stored::Rowid(name) => Some(quoted(name)),
            Stored::Generated => None,
        }));
        let table = quoted(&self.table);
        // What the table says of conflicts (`UNIQUE ON CONFLICT REPLACE`) would take back other rows, or all.
        if names.is_empty() {
            return format!("INSERT OR ABORT INTO main.{table} DEFAULT VALUES");
        }
        let marks = vec!["?"; names.len()].join(",");
        format!("INSERT OR ABORT INTO main.{table}({}) VALUES({marks})", names.join(","))
    }
}

/// Whether a stored row can be one of an object, by what cannot be otherwise: it has no more values than columns, and
/// NULL where the rowid stands for a column.
pub fn is_possible(
    layouts: &[Option<Layout>],
    object: usize,
    by_rowid: bool,
    values: &[Value<'_>],
) -> bool {
    let Some(Some(layout)) = layouts.get(object) else { return true };
    by_rowid != layout.without_rowid
        && values.len() <= layout.stored.len()
        && values.iter().zip(&layout.stored).all(|(value, stored)| match stored {
            Stored::Rowid(_) => *value == Value::Null,
            _ => true,
        })
}

/// A name as SQL quotes it.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

//! A table for rows of which it cannot be told whose they are, or which their table did not take.

use pellucid::sqlite::{Encoding, Map, Value};
use rusqlite::ToSql;

use super::rows::Bound;
use super::target::{sqlite, Target};
use crate::output::Failure;

/// SQLite allows 2000 columns (limits.html, 2), and there are five besides the values.
const VALUES_MOST: usize = 1995;

/// The table; made with its first row, and wider with one that has more values.
pub struct LostAndFound<'a> {
    target: &'a Target,
    encoding: Encoding,
    name: String,
    values: Option<usize>,
    /// Rows in it.
    pub rows: u64,
}

/// A row for it.
pub struct Found<'a> {
    /// The page it lay on.
    pub page: u32,
    /// The topmost page above that.
    pub root: u32,
    /// The tables it may be of.
    pub guess: Option<String>,
    pub rowid: Option<i64>,
    pub values: &'a [Value<'a>],
}

impl<'a> LostAndFound<'a> {
    /// For rows that go into `target`, under a name that nothing of `map` has.
    pub fn new(target: &'a Target, map: &Map) -> Self {
        let name = Target::free_name(map, "lost_and_found");
        Self { target, encoding: map.encoding, name, values: None, rows: 0 }
    }

    /// Its name, if there is anything in it.
    pub fn name(&self) -> Option<String> {
        self.values.map(|_| self.name.clone())
    }

    /// Puts a row in.
    pub fn add(&mut self, found: &Found<'_>) -> Result<(), Failure> {
        let values = &found.values[..found.values.len().min(VALUES_MOST)];
        self.widen(values.len())?;
        let marks = vec![",?"; values.len()].concat();
        let names: String = (0..values.len()).map(|value| format!(",c{value}")).collect();
        let sql = format!(
            "INSERT INTO {}(guess, root, page, id, fields{names}) VALUES(?,?,?,?,?{marks})",
            self.name
        );
        let bound: Vec<Bound<'_>> = values.iter().map(|v| Bound::new(*v, self.encoding)).collect();
        let fields = found.values.len() as i64;
        let mut row: Vec<&dyn ToSql> =
            vec![&found.guess, &found.root, &found.page, &found.rowid, &fields];
        row.extend(bound.iter().map(|value| value as &dyn ToSql));
        let mut statement = self.target.db.prepare_cached(&sql).map_err(sqlite)?;
        statement.execute(&row[..]).map_err(sqlite)?;
        self.rows += 1;
        Ok(())
    }

    fn widen(&mut self, values: usize) -> Result<(), Failure> {
        let run = |sql: String| self.target.db.execute_batch(&sql).map_err(sqlite);
        if self.values.is_none() {
            run(format!(
                "CREATE TABLE {}(guess TEXT, root INTEGER, page INTEGER, id INTEGER, fields INTEGER)",
                self.name
            ))?;
        }
        for value in self.values.unwrap_or(0)..values {
            run(format!("ALTER TABLE {} ADD COLUMN c{value}", self.name))?;
        }
        self.values = Some(self.values.unwrap_or(0).max(values));
        Ok(())
    }
}

//! Rows whose content follows from their id and version.

use std::collections::BTreeMap;

use rusqlite::{params, Connection};

use crate::scenario::{Change, State};
use crate::Random;

/// Makes the table and its index, in the open transaction.
pub fn create(connection: &Connection, schema: &str) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "CREATE TABLE IF NOT EXISTS {schema}.t(id INTEGER PRIMARY KEY, version INT, payload BLOB);
         CREATE INDEX IF NOT EXISTS {schema}.t_version ON t(version, id);"
    ))
}

/// The content of a row; some have overflow pages, most do not.
pub fn payload(id: i64, version: i64, scale: usize) -> Vec<u8> {
    let mut random = Random((id as u64) << 32 ^ version as u64);
    let mut bytes = vec![0; scale / 16 + random.below(scale as u64 / 2) as usize];
    random.fill(&mut bytes);
    bytes
}

/// Puts one row, or takes it away.
pub fn change(
    connection: &Connection,
    schema: &str,
    (id, version): Change,
    scale: usize,
) -> rusqlite::Result<()> {
    if version == 0 {
        let sql = format!("DELETE FROM {schema}.t WHERE id = ?1");
        return connection.prepare_cached(&sql)?.execute([id]).map(|_| ());
    }
    let sql = format!("INSERT OR REPLACE INTO {schema}.t VALUES(?1, ?2, ?3)");
    let payload = payload(id, version, scale);
    connection.prepare_cached(&sql)?.execute(params![id, version, payload]).map(|_| ())
}

/// Why rows are not what they should be.
#[derive(Debug)]
pub enum Wrong {
    /// SQLite refused.
    Refused(rusqlite::Error),
    /// A row has content that nobody wrote.
    Content(i64),
}

impl From<rusqlite::Error> for Wrong {
    fn from(error: rusqlite::Error) -> Self {
        Self::Refused(error)
    }
}

/// All rows, each proved.
pub fn read(connection: &Connection, schema: &str, scale: usize) -> Result<State, Wrong> {
    let known = format!("SELECT count(*) FROM {schema}.sqlite_schema WHERE name = 't'");
    if connection.query_row(&known, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(None);
    }
    let sql = format!("SELECT id, version, payload FROM {schema}.t ORDER BY id");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut found = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (id, version): (i64, i64) = (row.get(0)?, row.get(1)?);
        let content = row.get_ref(2)?.as_blob().map_err(|_| Wrong::Content(id))?;
        if content != payload(id, version, scale) {
            return Err(Wrong::Content(id));
        }
        found.insert(id, version);
    }
    Ok(Some(found))
}

/// What `integrity_check` says; none if all is well.
pub fn damage(connection: &Connection, schema: &str) -> rusqlite::Result<Option<String>> {
    let mut statement = connection.prepare(&format!("PRAGMA {schema}.integrity_check(3)"))?;
    let mut rows = statement.query([])?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        lines.push(row.get::<_, String>(0)?);
    }
    Ok(if lines == ["ok"] { None } else { Some(lines.join("; ")) })
}

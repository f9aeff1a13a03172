//! A table whose every row follows from its id and version, and carries a sum of itself.

use rusqlite::{params, Connection};

use super::Random;

/// Makes the table and its index.
pub fn create(connection: &Connection) {
    connection
        .execute_batch(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, version INT, payload BLOB, sum INT);
             CREATE INDEX t_sum ON t(sum);",
        )
        .unwrap();
}

/// The content of a row.
pub fn payload(id: i64, version: i64) -> Vec<u8> {
    let mut random = Random((id as u64) << 20 ^ version as u64);
    let length = 100 + random.below(900usize);
    (0..length).map(|_| random.draw() as u8).collect()
}

/// FNV-1a over id, version and payload.
pub fn sum(id: i64, version: i64, payload: &[u8]) -> i64 {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    let numbers = [id.to_le_bytes(), version.to_le_bytes()].concat();
    for byte in numbers.iter().chain(payload) {
        sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    sum as i64
}

/// Puts a row, in place of another with its id.
pub fn put(connection: &Connection, id: i64, version: i64) -> rusqlite::Result<()> {
    let payload = payload(id, version);
    let sum = sum(id, version, &payload);
    connection
        .prepare_cached("INSERT OR REPLACE INTO t VALUES(?1, ?2, ?3, ?4)")?
        .execute(params![id, version, payload, sum])
        .map(|_| ())
}

/// Every row proved; (id, version) in order.
pub fn read(connection: &Connection) -> rusqlite::Result<Vec<(i64, i64)>> {
    let mut statement =
        connection.prepare("SELECT id, version, payload, sum FROM t ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, version): (i64, i64) = (row.get(0)?, row.get(1)?);
        let content: Vec<u8> = row.get(2)?;
        let stated: i64 = row.get(3)?;
        assert_eq!(content, payload(id, version), "row {id} version {version} has other content");
        assert_eq!(stated, sum(id, version, &content), "row {id} version {version}: wrong sum");
        found.push((id, version));
    }
    Ok(found)
}

/// Panics unless SQLite finds the database whole.
pub fn check_integrity(connection: &Connection) {
    let mut statement = connection.prepare("PRAGMA integrity_check").unwrap();
    let lines: Vec<String> =
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(lines, ["ok"]);
}

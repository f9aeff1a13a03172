//! The rows of the databases: each says whose it is and which version, so that a row of another database is known as such.

use std::fmt::Write;

use rusqlite::Connection;

/// What each row of a sealed database begins with. It lies nowhere in clear.
pub const MARK: &str = "ROW-";

/// What reads all rows, by the tables and by the index.
pub const READS: [&str; 4] = [
    "SELECT 'counter ' || whose || ' ' || n FROM counter",
    "SELECT 'item ' || id || ' ' || version || ' ' || body FROM item ORDER BY id",
    "SELECT 'index ' || body FROM item INDEXED BY by_body ORDER BY body",
    "SELECT 'schema ' || type || ' ' || name FROM sqlite_schema ORDER BY rowid",
];
/// What writes a row.
pub const WRITE: &str = "INSERT INTO item(version, body) VALUES(0, ?)";

/// The text of a row: always the same for the same database, number and version. All have the same length, and the number
/// comes first, so that the index keeps its order and no page becomes free.
pub fn body(whose: &str, id: i64, version: i64) -> String {
    let mut body = format!("{MARK}{id:05}-{whose:>10}-{version:05}-");
    for part in 0..10 {
        let _ = write!(body, "{:012x}", (id * 7919 + version * 104_729 + part) % 0xffff_ffff_ffff);
    }
    body
}

/// Makes the tables, with the counter at 0.
pub fn make(connection: &Connection, page_bytes: usize, mode: &str) {
    connection
        .execute_batch(&format!(
            "PRAGMA page_size={page_bytes}; PRAGMA journal_mode={mode};
             CREATE TABLE item(id INTEGER PRIMARY KEY, version INTEGER, body TEXT);
             CREATE INDEX by_body ON item(body);
             CREATE TABLE counter(whose TEXT, n INTEGER);"
        ))
        .unwrap();
}

/// Adds the rows from `first` to `last`.
pub fn add(connection: &Connection, whose: &str, first: i64, last: i64) {
    connection.execute_batch("BEGIN").unwrap();
    for id in first..=last {
        let row = (id, 0, body(whose, id, 0));
        connection.execute("INSERT INTO item VALUES(?, ?, ?)", row).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
}

/// One transaction: the counter goes to `n`, and some rows get that version.
pub fn commit(connection: &Connection, whose: &str, n: i64) {
    connection.execute_batch("BEGIN; DELETE FROM counter").unwrap();
    change(connection, whose, n);
    connection.execute_batch("COMMIT").unwrap();
}

/// What a transaction does, without its end.
pub fn change(connection: &Connection, whose: &str, n: i64) {
    connection.execute("INSERT INTO counter VALUES(?, ?)", (whose, n)).unwrap();
    let all: i64 = connection.query_row("SELECT max(id) FROM item", [], |row| row.get(0)).unwrap();
    for id in (1..=all).filter(|id| (id + n) % 9 == 0) {
        let row = (n, body(whose, id, n), id);
        connection.execute("UPDATE item SET version = ?, body = ? WHERE id = ?", row).unwrap();
    }
}

/// The row that a case writes. Its text lies nowhere in clear.
pub fn write(connection: &Connection, secret: &str) -> rusqlite::Result<()> {
    connection.execute(WRITE, [secret]).map(|_| ())
}

/// Reads everything, by the tables and by the index, so that no page is left out. The lines read before an error are in
/// `lines`, too.
pub fn read(connection: &Connection, lines: &mut Vec<String>) -> rusqlite::Result<()> {
    for sql in READS {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            // Of damaged pages that SQLite takes for sound, any value may come.
            let line = row.get::<_, Option<String>>(0)?.unwrap_or_else(|| "nothing".to_owned());
            lines.push(line);
        }
    }
    Ok(())
}

//! Work on a whole database: what maintenance does, one statement each, in a process of its own.
//!
//! One table of orders as a shop keeps them, and two indexes. The rows come in the order of the
//! table, the indexes after them, so that making a gigabyte takes seconds.

use std::fmt;

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::random::Random;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::purchase::{date, two_words};

/// One operation on a whole database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    Scan,
    IntegrityCheck,
    Reindex,
    Analyze,
    Vacuum,
    VacuumInto,
    CreateIndex,
}

/// What the system's page cache holds of the file when the work begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Cache {
    Warm,
    Cold,
}

/// A text of a row that every database holds: for telling sealed files from plain ones.
pub const MARKER: &str = "Marker Order 1 of the Lab";

const ROWS_PER_TRANSACTION: u64 = 50_000;

const TABLE: &str = "
    CREATE TABLE CustomerOrder (
        OrderID INTEGER PRIMARY KEY,
        Customer TEXT NOT NULL,
        Article TEXT NOT NULL,
        Amount INTEGER NOT NULL,
        Note TEXT NOT NULL,
        DateCreated TEXT NOT NULL)";
const INDEXES: &str = "
    CREATE INDEX CustomerOrder_Customer ON CustomerOrder (Customer);
    CREATE INDEX CustomerOrder_DateCreated ON CustomerOrder (DateCreated, Amount)";
const INSERT: &str = "INSERT INTO CustomerOrder VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
/// Every column of every row; no index has them.
const SCAN: &str = "SELECT count(*), total(Amount), total(length(Customer)), \
     total(length(Article)), total(length(Note)), total(length(DateCreated)) FROM CustomerOrder";

impl Operation {
    /// All of them, in their order.
    pub const ALL: [Operation; 7] = [
        Operation::Scan,
        Operation::IntegrityCheck,
        Operation::Reindex,
        Operation::Analyze,
        Operation::Vacuum,
        Operation::VacuumInto,
        Operation::CreateIndex,
    ];

    /// Whether it needs a copy of its own.
    pub fn changes_file(self) -> bool {
        match self {
            Operation::Scan | Operation::IntegrityCheck | Operation::VacuumInto => false,
            Operation::Reindex
            | Operation::Analyze
            | Operation::Vacuum
            | Operation::CreateIndex => true,
        }
    }

    /// At least this share of a cold file has to come from the device: a tenth less than the pages that the operation
    /// reads. The table has two thirds of them, the indexes a third.
    pub fn cold_share(self) -> f64 {
        match self {
            Operation::Scan | Operation::CreateIndex => 0.6,
            Operation::Analyze => 0.3,
            Operation::IntegrityCheck
            | Operation::Reindex
            | Operation::Vacuum
            | Operation::VacuumInto => 0.9,
        }
    }

    /// Does the work; `into` is the name of the file that VACUUM INTO makes.
    ///
    /// # Errors
    /// [`Error::Sqlite`], and [`Error::Invalid`] if the check finds something.
    pub fn perform(self, connection: &Connection, into: &str) -> Result<()> {
        let text = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0));
        let done = match self {
            Operation::Scan => connection.query_row(SCAN, [], |_| Ok(())),
            Operation::IntegrityCheck => match text("PRAGMA integrity_check") {
                Ok(found) if found != "ok" => {
                    return Err(Error::invalid(format!("integrity_check: {found}")));
                }
                answer => answer.map(drop),
            },
            Operation::Reindex => connection.execute_batch("REINDEX"),
            Operation::Analyze => connection.execute_batch("ANALYZE"),
            Operation::Vacuum => connection.execute_batch("VACUUM"),
            Operation::VacuumInto => connection.execute("VACUUM INTO ?1", [into]).map(drop),
            Operation::CreateIndex => connection.execute_batch(
                "CREATE INDEX CustomerOrder_Article ON CustomerOrder (Article, OrderID)",
            ),
        };
        done.map_err(Error::sqlite(self.to_string()))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Scan => "scan",
            Operation::IntegrityCheck => "integrity-check",
            Operation::Reindex => "reindex",
            Operation::Analyze => "analyze",
            Operation::Vacuum => "vacuum",
            Operation::VacuumInto => "vacuum-into",
            Operation::CreateIndex => "create-index",
        })
    }
}

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cache::Warm => "warm",
            Cache::Cold => "cold",
        })
    }
}

/// Makes the table, fills it until the database has `bytes`, and gives the number of rows.
///
/// # Errors
/// [`Error::Sqlite`]
pub fn fill(connection: &mut Connection, bytes: u64, seed: u64) -> Result<u64> {
    let mut fill = || -> rusqlite::Result<u64> {
        connection.execute_batch(TABLE)?;
        let random = &mut Random::of(&[seed]);
        // The indexes come to about three fifths of the table.
        let table_bytes = bytes / 8 * 5;
        let mut rows = 0;
        while rows == 0 || length(connection)? < table_bytes {
            let transaction = connection.transaction()?;
            {
                let mut insert = transaction.prepare(INSERT)?;
                for _ in 0..ROWS_PER_TRANSACTION.min(table_bytes / 1000 + 1) {
                    rows += 1;
                    let note = if rows == 1 { MARKER.into() } else { note(random) };
                    insert.execute((
                        rows as i64,
                        format!("{} {:06}", two_words(random), random.below(100_000)),
                        format!("{:08x}", random.draw() >> 32),
                        random.below(50_000) as i64,
                        note,
                        date(random),
                    ))?;
                }
            }
            transaction.commit()?;
        }
        connection.execute_batch(INDEXES)?;
        Ok(rows)
    };
    fill().map_err(Error::sqlite("filling CustomerOrder"))
}

/// Counts the rows of the database.
///
/// # Errors
/// [`Error::Sqlite`]
pub fn rows(connection: &Connection) -> Result<u64> {
    connection
        .query_row("SELECT count(*) FROM CustomerOrder", [], |row| row.get::<_, i64>(0))
        .map(i64::unsigned_abs)
        .map_err(Error::sqlite("counting orders"))
}

fn length(connection: &Connection) -> rusqlite::Result<u64> {
    let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
}

/// Two to thirteen words.
fn note(random: &mut Random) -> String {
    let pairs = random.id(6);
    (0..pairs).map(|_| two_words(random)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_has_the_length_that_was_asked_for_and_every_operation_works_on_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut connection = Connection::open(dir.path().join("whole.db")).unwrap();
        let bytes = 4 << 20;
        let made = fill(&mut connection, bytes, 1).unwrap();
        assert_eq!(rows(&connection).unwrap(), made);
        let found = length(&connection).unwrap();
        assert!((bytes * 85 / 100..bytes * 115 / 100).contains(&found), "{found} of {bytes}");

        let into = dir.path().join("into.db");
        for operation in Operation::ALL {
            let version = |connection: &Connection| {
                let sql = "SELECT (SELECT data_version FROM pragma_data_version), \
                     (SELECT count(*) FROM sqlite_schema), (SELECT page_count FROM pragma_page_count)";
                connection.query_row(sql, [], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
                })
            };
            let before = version(&connection).unwrap();
            operation.perform(&connection, into.to_str().unwrap()).unwrap();
            if !operation.changes_file() {
                assert_eq!(version(&connection).unwrap(), before, "{operation}");
            }
        }
        assert_eq!(rows(&Connection::open(&into).unwrap()).unwrap(), made);
        let schema: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema WHERE type = 'index'", [], |r| r.get(0))
            .unwrap();
        assert_eq!(schema, 3);
    }
}

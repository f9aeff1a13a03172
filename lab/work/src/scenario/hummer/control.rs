//! The control table: the parameters of a test that is under way, in its database, as the article's are.

use std::time::{SystemTime, UNIX_EPOCH};

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::machine::as_ns;
use pellucid_lab_report::plan::Mix;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use serde::{Deserialize, Serialize};

/// A text that every database holds: for telling sealed files from plain ones.
pub const MARKER: &str = "Marker Control of the Lab's Hummer";
pub(super) const TABLE: &str = "
    CREATE TABLE Control (
        ControlID INTEGER PRIMARY KEY CHECK (ControlID = 1),
        Name TEXT NOT NULL,
        Finished INTEGER NOT NULL,
        Reads INTEGER NOT NULL,
        Updates INTEGER NOT NULL,
        Inserts INTEGER NOT NULL,
        DelayMs INTEGER NOT NULL,
        Changes INTEGER NOT NULL,
        WrittenUnixNs INTEGER NOT NULL)";
pub(super) const FIRST: &str = "INSERT INTO Control VALUES (1, ?1, 0, 1, 0, 0, 0, 0, 0)";
pub(super) const READ: &str =
    "SELECT Finished, Reads, Updates, Inserts, DelayMs, Changes, WrittenUnixNs \
     FROM Control WHERE ControlID = 1";
const WRITE: &str = "UPDATE Control SET Finished = coalesce(?1, Finished), \
     Reads = coalesce(?2, Reads), Updates = coalesce(?3, Updates), Inserts = coalesce(?4, Inserts), \
     DelayMs = coalesce(?5, DelayMs), Changes = Changes + ?6, WrittenUnixNs = ?7 WHERE ControlID = 1";

/// The control parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    pub finished: bool,
    pub mix: Mix,
    pub delay_ms: u64,
    /// Times that somebody changed them while processes could read them.
    pub changes: u64,
    pub written_unix_ns: u64,
}

/// What becomes of the control parameters; `None` leaves one as it is.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Change {
    pub finished: Option<bool>,
    pub mix: Option<Mix>,
    pub delay_ms: Option<u64>,
    /// Not before a run, but during one.
    pub live: bool,
}

/// Changes the control parameters, and says what they are now.
///
/// # Errors
/// [`Error::Sqlite`], and [`Error::Invalid`] if the database has no control table.
pub fn change(connection: &mut Connection, change: Change) -> Result<Control> {
    let has_table = connection
        .query_row("SELECT 1 FROM sqlite_schema WHERE name = 'Control'", [], |_| Ok(()))
        .optional()
        .map_err(Error::sqlite("looking for the control table"))?;
    if has_table.is_none() {
        return Err(Error::invalid("the database has no control table: it is not hummer's"));
    }
    let [reads, updates, inserts] = change.mix.map_or([None; 3], |mix| mix.parts().map(Some));
    let mut write = || {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Under the lock: how long somebody waits for it says nothing about the processes.
        let written_unix_ns = if change.live { unix_ns() } else { 0 };
        transaction.execute(
            WRITE,
            (
                change.finished,
                reads,
                updates,
                inserts,
                change.delay_ms.map(|ms| ms as i64),
                i64::from(change.live),
                written_unix_ns as i64,
            ),
        )?;
        let control = transaction.query_row(READ, [], control_of)?;
        transaction.commit()?;
        Ok(control)
    };
    write().map_err(Error::sqlite("writing the control table"))
}

pub(super) fn control_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Control> {
    let number = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
    let part = |column| row.get::<_, u32>(column);
    let parts = [part(1)?, part(2)?, part(3)?];
    let mix = Mix::new(parts).ok_or_else(|| {
        rusqlite::Error::FromSqlConversionFailure(
            1,
            rusqlite::types::Type::Integer,
            format!("{parts:?} is no mix").into(),
        )
    })?;
    Ok(Control {
        finished: number(0)? != 0,
        mix,
        delay_ms: number(4)?,
        changes: number(5)?,
        written_unix_ns: number(6)?,
    })
}

pub(super) fn unix_ns() -> u64 {
    as_ns(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

//! Which standbys this instance keeps up to date, and how far each is.

use std::path::{Path, PathBuf};

use pellucid::lsn::Lsn;
use pellucid_host::connection::literal;
use pellucid_host::DatabaseError;

use super::{whole_name, History};

/// A commit that a standby has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reached {
    /// Its number, or that of the moment where its set ends.
    pub lsn: Lsn,
    /// What the log set that has it goes on behind; none where it is a full backup's.
    pub behind: Lsn,
    /// Its time, in microseconds since 1970; 0 where nothing is known.
    pub committed: u64,
}

/// A standby.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StandbyRecord {
    /// The database.
    pub database: PathBuf,
    /// Its file id, in hexadecimal: another file under its name is another database.
    pub file_id: String,
    /// The file id of the database that it follows.
    pub source: String,
    /// Where that is archived.
    pub place: String,
    /// The recovery fork that it follows.
    pub fork: String,
    /// The sets that it was made of are signed, so that others are to be.
    pub is_signed: bool,
    /// Where it is, while page 1 has the change counter `counter`.
    pub at: Reached,
    /// Its change counter there.
    pub counter: u32,
    /// Where it is, if the change counter is the next one: a transaction is about to be committed, or was.
    pub next: Option<Reached>,
    /// The last commit that the witness of the place knew of.
    pub witnessed: Lsn,
    /// How often the place is looked at.
    pub every_seconds: u64,
    /// A timer does that, and no process goes on.
    pub is_once: bool,
    /// All that was in the place at this moment is here, in microseconds since 1970; 0 where nothing is known.
    pub until: u64,
    /// When its follower was there last, likewise.
    pub alive: u64,
    /// Since when it fails; 0 if it does not.
    pub failing_since: u64,
    /// Why.
    pub error: String,
}

impl History {
    /// Writes it down, in the place of what was known.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn note_standby(&self, record: &StandbyRecord) -> Result<(), DatabaseError> {
        let next = record.next.unwrap_or_default();
        let text = |lsn: Lsn| literal(&lsn.to_string());
        let values = [
            literal(&whole_name(&record.database).display().to_string()),
            literal(&record.file_id),
            literal(&record.source),
            literal(&record.place),
            literal(&record.fork),
            u8::from(record.is_signed).to_string(),
            text(record.at.lsn),
            text(record.at.behind),
            record.counter.to_string(),
            number(record.at.committed),
            text(next.lsn),
            text(next.behind),
            number(next.committed),
            text(record.witnessed),
            number(record.every_seconds),
            u8::from(record.is_once).to_string(),
            number(record.until),
            number(record.alive),
            number(record.failing_since),
            literal(&record.error),
        ];
        let values = values.join(", ");
        self.handle.run(&format!("INSERT OR REPLACE INTO pellucid_standby VALUES ({values})"))
    }

    /// What is known of the standby at `database`.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn standby(&self, database: &Path) -> Result<Option<StandbyRecord>, DatabaseError> {
        let mut found = None;
        let path = literal(&whole_name(database).display().to_string());
        let query = format!("SELECT * FROM pellucid_standby WHERE database_path = {path}");
        self.handle.rows(&query, |row| {
            let number = |at| u64::try_from(row.number(at)).unwrap_or(0);
            let lsn = |at| Lsn::parse(&row.text(at)).unwrap_or(Lsn::NONE);
            let reached = |at, behind, committed| Reached {
                lsn: lsn(at),
                behind: lsn(behind),
                committed: number(committed),
            };
            found = Some(StandbyRecord {
                database: PathBuf::from(row.text(0)),
                file_id: row.text(1),
                source: row.text(2),
                place: row.text(3),
                fork: row.text(4),
                is_signed: row.number(5) != 0,
                at: reached(6, 7, 9),
                counter: u32::try_from(row.number(8)).unwrap_or(0),
                next: Some(reached(10, 11, 12)).filter(|next| !next.lsn.is_none()),
                witnessed: lsn(13),
                every_seconds: number(14),
                is_once: row.number(15) != 0,
                until: number(16),
                alive: number(17),
                failing_since: number(18),
                error: row.text(19),
            });
        })?;
        Ok(found)
    }

    /// Forgets it: it is a database like any other.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn forget_standby(&self, database: &Path) -> Result<(), DatabaseError> {
        let path = literal(&whole_name(database).display().to_string());
        self.handle.run(&format!("DELETE FROM pellucid_standby WHERE database_path = {path}"))
    }
}

fn number(value: u64) -> String {
    i64::try_from(value).unwrap_or(i64::MAX).to_string()
}

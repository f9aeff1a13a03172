//! How far the archivers of this instance are: what `status`, `doctor` and metrics say of them.

use std::path::PathBuf;

use pellucid_host::connection::literal;
use pellucid_host::DatabaseError;

use super::{whole_name, History};

/// How far a database is archived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiverRecord {
    /// The database.
    pub database: PathBuf,
    /// Where it goes.
    pub place: String,
    /// How long commits wait at most.
    pub every_seconds: u64,
    /// A timer ships it, and no process goes on.
    pub is_once: bool,
    /// All that was committed before is in the place, in microseconds since 1970; 0 where nothing is known.
    pub until: u64,
    /// When the archiver was there last, likewise.
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
    pub fn note_archiver(&self, record: &ArchiverRecord) -> Result<(), DatabaseError> {
        self.handle.run(&format!(
            "INSERT INTO pellucid_archiver VALUES ({}, {}, {}, {}, {}, {}, {}, {}) ON CONFLICT(database_path) DO UPDATE SET \
             place = excluded.place, every_seconds = excluded.every_seconds, is_once = excluded.is_once, complete_until = \
             max(complete_until, excluded.complete_until), alive = excluded.alive, failing_since = excluded.failing_since, \
             error = excluded.error",
            literal(&whole_name(&record.database).display().to_string()),
            literal(&record.place),
            number(record.every_seconds),
            u8::from(record.is_once),
            number(record.until),
            number(record.alive),
            number(record.failing_since),
            literal(&record.error),
        ))
    }

    /// What is known of all archivers.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn archivers(&self) -> Result<Vec<ArchiverRecord>, DatabaseError> {
        let mut found = Vec::new();
        let query = "SELECT database_path, place, every_seconds, is_once, complete_until, alive, failing_since, error FROM \
                     pellucid_archiver ORDER BY database_path";
        self.handle.rows(query, |row| {
            let number = |at| u64::try_from(row.number(at)).unwrap_or(0);
            found.push(ArchiverRecord {
                database: PathBuf::from(row.text(0)),
                place: row.text(1),
                every_seconds: number(2),
                is_once: number(3) != 0,
                until: number(4),
                alive: number(5),
                failing_since: number(6),
                error: row.text(7),
            });
        })?;
        Ok(found)
    }

    /// Forgets that a database was archived.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn forget_archiver(&self, database: &std::path::Path) -> Result<(), DatabaseError> {
        let path = literal(&whole_name(database).display().to_string());
        self.handle.run(&format!("DELETE FROM pellucid_archiver WHERE database_path = {path}"))
    }

    /// Forgets sets of the archiver's that are gone, their manifests among them: a merged set has what they had, and of a database that
    /// is shipped every second there are thousands.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn forget_archived(&self, sets: &[String]) -> Result<(), DatabaseError> {
        self.transaction(|| {
            for set in sets {
                let set = literal(set);
                let id = format!("(SELECT backup_set_id FROM backupset WHERE backup_set_uuid = {set})");
                for table in ["pellucid_log", "pellucid_manifest"] {
                    self.handle.run(&format!("DELETE FROM {table} WHERE backup_set_uuid = {set}"))?;
                }
                for table in ["backupfile", "pellucid_encryptor", "pellucid_gone", "backupset"] {
                    self.handle.run(&format!("DELETE FROM {table} WHERE backup_set_id = {id}"))?;
                }
            }
            for table in ["backupmediaset", "backupmediafamily"] {
                self.handle.run(&format!(
                    "DELETE FROM {table} WHERE media_set_id NOT IN (SELECT media_set_id FROM backupset)"
                ))?;
            }
            Ok(())
        })
    }
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

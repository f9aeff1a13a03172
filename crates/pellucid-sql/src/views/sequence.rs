//! The sequence numbers of backup sets whose database keeps no log that is backed up: their order.
//!
//! SQL Server has an LSN for every set, and scripts find by it which differential belongs to which full backup. Without a log
//! there is none here. The number of the set in the history stands for it: it grows from set to set as an LSN does, and is
//! below each that a log has.

use std::collections::HashMap;

use rusqlite::OptionalExtension;

use super::backup::{as_kept, SETS};
use super::Row;
use crate::instance::Known;
use crate::message::Result;
use crate::session::Databases;
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// Where the columns are that this needs.
struct Places {
    set: usize,
    uuid: usize,
    name: usize,
    kind: usize,
    copy_only: usize,
    first: usize,
    last: usize,
    checkpoint: usize,
    full: usize,
    base: usize,
    base_uuid: usize,
}

impl Places {
    fn find() -> Option<Self> {
        let place = |wanted: &str| SETS.iter().position(|(name, _)| *name == wanted);
        Some(Self {
            set: place("backup_set_id")?,
            uuid: place("backup_set_uuid")?,
            name: place("database_name")?,
            kind: place("type")?,
            copy_only: place("is_copy_only")?,
            first: place("first_lsn")?,
            last: place("last_lsn")?,
            checkpoint: place("checkpoint_lsn")?,
            full: place("database_backup_lsn")?,
            base: place("differential_base_lsn")?,
            base_uuid: place("differential_base_guid")?,
        })
    }
}

/// Gives numbers to the sets without any; the rows are in the order of their sets afterwards.
pub(super) fn number(rows: &mut [Row]) {
    let Some(at) = Places::find() else { return };
    let of = |row: &Row| if let Value::Integer(id) = row[at.set] { id } else { 0 };
    rows.sort_by_key(of);
    // By set its checkpoint, by database that of its last full backup.
    let mut checkpoints: HashMap<String, Value> = HashMap::new();
    let mut full: HashMap<String, Value> = HashMap::new();
    for row in rows {
        let name = match &row[at.name] {
            Value::Text(name) => name.to_lowercase(),
            _ => String::new(),
        };
        if row[at.checkpoint] == Value::Null {
            let number = Value::Text(of(row).to_string());
            for place in [at.first, at.last, at.checkpoint] {
                row[place] = number.clone();
            }
            row[at.full] = full.get(&name).cloned().unwrap_or(Value::Text("0".to_owned()));
            if let Value::Text(base) = &row[at.base_uuid] {
                row[at.base] = checkpoints.get(base).cloned().unwrap_or(Value::Null);
            }
        }
        let checkpoint = row[at.checkpoint].clone();
        if let Value::Text(uuid) = &row[at.uuid] {
            checkpoints.insert(uuid.clone(), checkpoint.clone());
        }
        let is_full = matches!(&row[at.kind], Value::Text(kind) if kind == "D");
        if is_full && row[at.copy_only] != Value::Integer(1) {
            full.insert(name, checkpoint);
        }
    }
}

/// The checkpoint of the database's last full backup, which a differential of now would build on; NULL if there is none since it
/// was made.
pub(super) fn base_of(databases: &Databases, known: &Known) -> Result<Value> {
    const TO_THE_SECOND: usize = 19;
    let sql = "SELECT backup_finish_date, coalesce(checkpoint_lsn, cast(backup_set_id AS TEXT)) FROM backupset \
               WHERE database_name = ?1 COLLATE NOCASE AND type = 'D' AND is_copy_only IS NOT 1 \
               AND backup_finish_date IS NOT NULL ORDER BY backup_set_id DESC LIMIT 1";
    let mut statement = databases.instance.msdb().prepare_cached(sql)?;
    let found =
        statement.query_row([&known.name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let second = |time: &str| time.get(..TO_THE_SECOND).unwrap_or(time).to_owned();
    let found: Option<(String, Value)> = found;
    let found = found.filter(|(finished, _)| second(finished) >= second(&known.created));
    Ok(found.map_or(Value::Null, |(_, base)| as_kept(base, SqlType::numeric(25, 0))))
}

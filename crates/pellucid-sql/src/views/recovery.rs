//! sys.database_recovery_status, sys.dm_db_log_stats, sys.dm_db_log_info

use std::path::Path;

use pellucid::lsn::Lsn;
use pellucid_files::paths::{beside, look, names_in};

use super::lists::arranged;
use super::{text, Column, Row};
use crate::execute::recovery_model;
use crate::instance::Known;
use crate::message::Result;
use crate::session::{Databases, Recovery};
use crate::values::convert::Value;
use crate::values::types::SqlType;

const LSN: SqlType = SqlType::numeric(25, 0);
const GUID: SqlType = SqlType::UniqueIdentifier;
const LSN_TEXT: SqlType = SqlType::nvarchar(24);

/// Source: Microsoft's "sys.database_recovery_status".
pub(super) const STATUS: [Column; 7] = [
    ("database_id", SqlType::Int),
    ("database_guid", GUID),
    ("family_guid", GUID),
    ("last_log_backup_lsn", LSN),
    ("recovery_fork_guid", GUID),
    ("first_recovery_fork_guid", GUID),
    ("fork_point_lsn", LSN),
];

/// Source: Microsoft's "sys.dm_db_log_stats", a function there.
pub(super) const LOG_STATS: [Column; 19] = [
    ("database_id", SqlType::Int),
    ("recovery_model", SqlType::nvarchar(60)),
    ("log_min_lsn", LSN_TEXT),
    ("log_end_lsn", LSN_TEXT),
    ("current_vlf_sequence_number", SqlType::BigInt),
    ("current_vlf_size_mb", SqlType::Float),
    ("total_vlf_count", SqlType::BigInt),
    ("total_log_size_mb", SqlType::Float),
    ("active_vlf_count", SqlType::BigInt),
    ("active_log_size_mb", SqlType::Float),
    ("log_truncation_holdup_reason", SqlType::nvarchar(60)),
    ("log_backup_time", SqlType::DateTime),
    ("log_backup_lsn", LSN_TEXT),
    ("log_since_last_log_backup_mb", SqlType::Float),
    ("log_checkpoint_lsn", LSN_TEXT),
    ("log_since_last_checkpoint_mb", SqlType::Float),
    ("log_recovery_lsn", LSN_TEXT),
    ("log_recovery_size_mb", SqlType::Float),
    ("recovery_vlf_count", SqlType::BigInt),
];

/// Source: Microsoft's "sys.dm_db_log_info", a function there.
pub(super) const LOG_INFO: &[Column] = columns!(
    database_id INT, file_id SMALL, vlf_begin_offset BIGINT, vlf_size_mb FLOAT, vlf_sequence_number BIGINT,
    vlf_active BIT, vlf_status INT, vlf_parity BYTE, vlf_first_lsn N64, vlf_create_lsn N24,
    vlf_encryptor_thumbprint BIN20
);

/// The log's number among the files of a database.
pub(crate) const LOG_FILE: i64 = 2;
/// Its state where it is in use.
pub(crate) const IN_USE: i64 = 2;

/// The log is one piece, as it lies on the disk.
pub(super) fn log_info(databases: &Databases) -> Result<Vec<Row>> {
    let known = [
        ("database_id", SqlType::Int),
        ("file_id", SqlType::SmallInt),
        ("vlf_begin_offset", SqlType::BigInt),
        ("vlf_size_mb", SqlType::Float),
        ("vlf_sequence_number", SqlType::BigInt),
        ("vlf_active", SqlType::Bit),
        ("vlf_status", SqlType::Int),
    ];
    let row = |database: &Known| {
        let megabytes = log_bytes(database) as f64 / (1024.0 * 1024.0);
        vec![
            Value::Integer(database.id),
            Value::Integer(LOG_FILE),
            Value::Integer(0),
            Value::Real(megabytes),
            Value::Integer(1),
            Value::Integer(1),
            Value::Integer(IN_USE),
        ]
    };
    let rows = databases.instance.databases()?.iter().map(row).collect();
    Ok(arranged(LOG_INFO, &known, &[], rows))
}

pub(super) fn status(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for known in databases.shown()? {
        let recovery = databases.recovery(&known)?;
        let fork = recovery.fork.map_or(Value::Null, |fork| super::backup::guid_of(&fork));
        let last = last_log_backup(databases, &recovery)?;
        rows.push(vec![
            Value::Integer(known.id),
            Value::Null,
            Value::Null,
            last.map_or(Value::Null, |(lsn, _)| Value::Text(lsn.to_string())),
            fork.clone(),
            fork,
            Value::Null,
        ]);
    }
    Ok(rows)
}

pub(super) fn log_stats(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for known in databases.shown()? {
        let recovery = databases.recovery(&known)?;
        let last = last_log_backup(databases, &recovery)?;
        let megabytes = |bytes: u64| Value::Real(bytes as f64 / (1024.0 * 1024.0));
        let waiting = databases.waits_for_backup(&known, &recovery);
        let mut row = vec![Value::Null; LOG_STATS.len()];
        row[0] = Value::Integer(known.id);
        row[1] = text(recovery_model(recovery.model));
        row[7] = megabytes(log_bytes(&known));
        let holds = databases.holds_log(&recovery, waiting);
        row[10] = text(if holds { "LOG_BACKUP" } else { "NOTHING" });
        if let Some(waiting) = waiting {
            (row[2], row[3]) = (text(in_parts(waiting.backed_up)), text(in_parts(waiting.last)));
            // What no log backup has is what cannot be written over.
            (row[9], row[13]) = (megabytes(waiting.bytes), megabytes(waiting.bytes));
        }
        if let Some((lsn, time)) = last {
            row[11] = time.map_or(Value::Null, Value::Text);
            row[12] = text(in_parts(lsn));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The end of the last log backup of the chain and when it was finished, as far as the history knows; where it knows none, where
/// the chain begins.
fn last_log_backup(
    databases: &Databases,
    recovery: &Recovery,
) -> Result<Option<(Lsn, Option<String>)>> {
    let Some(fork) = recovery.fork else { return Ok(None) };
    let mut statement = databases.instance.msdb().prepare(
        "SELECT CAST(s.last_lsn AS TEXT), s.backup_finish_date FROM backupset s JOIN pellucid_log l ON \
         l.backup_set_uuid = s.backup_set_uuid WHERE l.fork = ?1 AND s.type = 'L' AND s.is_copy_only = 0 \
         ORDER BY s.backup_set_id DESC LIMIT 1",
    )?;
    let mut rows = statement.query([pellucid::hash::hex(&fork)])?;
    let Some(row) = rows.next()? else { return Ok(Some((recovery.begins, None))) };
    let (lsn, time): (Option<String>, Option<String>) = (row.get(0)?, row.get(1)?);
    Ok(lsn.and_then(|lsn| Lsn::parse(&lsn)).map(|lsn| (lsn, time)))
}

/// Bytes of the log beside the file, and of what the archive has kept of it.
pub(super) fn log_bytes(known: &Known) -> u64 {
    if known.is_system() {
        return 0;
    }
    let bytes = |path: &Path| look(path).map_or(0, |found| found.len());
    let archive = pellucid_vfs::log_archive::path_of(&known.path);
    let kept = names_in(&archive).unwrap_or_default();
    let kept: u64 = kept.iter().map(|name| bytes(&archive.join(name))).sum();
    bytes(&beside(&known.path, "-wal")) + kept
}

/// As the functions of SQL Server's that show a log write a number: its parts in hexadecimal.
fn in_parts(lsn: Lsn) -> String {
    format!("{:08x}:{:08x}:0001", lsn.epoch, lsn.frame)
}

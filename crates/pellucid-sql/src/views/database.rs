//! sys.databases, sysdatabases, sys.master_files, sys.database_files

use super::sequence::Bases;
use super::{flag, text, Column, Row};
use pellucid::header::Standing;

use crate::execute::{access, log_path, recovery_model, size_kb};
use crate::instance::{DatabaseFile, FileKind, Known, MASTER};
use crate::message::Result;
use crate::session::{shown, Databases};
use crate::values::convert::Value;
use crate::values::types::{Length, SqlType};

const DESC: SqlType = SqlType::nvarchar(60);

/// Source: Microsoft's "sys.databases".
pub(super) const DATABASES: [Column; 33] = [
    ("name", SqlType::SYSNAME),
    ("database_id", SqlType::Int),
    ("source_database_id", SqlType::Int),
    ("owner_sid", SqlType::VarBinary(Length::Of(85))),
    ("create_date", SqlType::DateTime),
    ("compatibility_level", SqlType::TinyInt),
    ("collation_name", SqlType::SYSNAME),
    ("user_access", SqlType::TinyInt),
    ("user_access_desc", DESC),
    ("is_read_only", SqlType::Bit),
    ("is_auto_close_on", SqlType::Bit),
    ("is_auto_shrink_on", SqlType::Bit),
    ("state", SqlType::TinyInt),
    ("state_desc", DESC),
    ("is_in_standby", SqlType::Bit),
    ("is_cleanly_shutdown", SqlType::Bit),
    ("snapshot_isolation_state", SqlType::TinyInt),
    ("is_read_committed_snapshot_on", SqlType::Bit),
    ("recovery_model", SqlType::TinyInt),
    ("recovery_model_desc", DESC),
    ("page_verify_option", SqlType::TinyInt),
    ("page_verify_option_desc", DESC),
    ("is_auto_create_stats_on", SqlType::Bit),
    ("is_auto_update_stats_on", SqlType::Bit),
    ("is_master_key_encrypted_by_server", SqlType::Bit),
    ("is_published", SqlType::Bit),
    ("is_distributor", SqlType::Bit),
    ("log_reuse_wait", SqlType::TinyInt),
    ("log_reuse_wait_desc", DESC),
    ("is_encrypted", SqlType::Bit),
    ("replica_id", SqlType::UniqueIdentifier),
    ("group_database_id", SqlType::UniqueIdentifier),
    ("physical_database_name", SqlType::SYSNAME),
];

/// Source: Microsoft's "sys.sysdatabases".
pub(super) const SYSDATABASES: [Column; 7] = [
    ("name", SqlType::SYSNAME),
    ("dbid", SqlType::SmallInt),
    ("crdate", SqlType::DateTime),
    ("status", SqlType::Int),
    ("cmptlevel", SqlType::TinyInt),
    ("filename", SqlType::nvarchar(260)),
    ("version", SqlType::SmallInt),
];

/// Source: Microsoft's "sys.master_files" and "sys.database_files".
pub(super) const FILES: [Column; 18] = [
    ("database_id", SqlType::Int),
    ("file_id", SqlType::Int),
    ("file_guid", SqlType::UniqueIdentifier),
    ("type", SqlType::TinyInt),
    ("type_desc", DESC),
    ("data_space_id", SqlType::Int),
    ("name", SqlType::SYSNAME),
    ("physical_name", SqlType::nvarchar(260)),
    ("state", SqlType::TinyInt),
    ("state_desc", DESC),
    ("size", SqlType::Int),
    ("max_size", SqlType::Int),
    ("growth", SqlType::Int),
    ("is_media_read_only", SqlType::Bit),
    ("is_read_only", SqlType::Bit),
    ("is_percent_growth", SqlType::Bit),
    ("is_sparse", SqlType::Bit),
    ("differential_base_lsn", SqlType::numeric(25, 0)),
];

pub(super) fn databases(databases: &Databases) -> Result<Vec<Row>> {
    let instance = &databases.instance;
    instance.register_known()?;
    let keys = super::key::states(databases)?;
    let by_server = pellucid_keyring::Keyring::opens_by_service_key(instance.home(), None)?;
    let mut rows = Vec::new();
    for known in instance.databases()? {
        let option = |name: &str| instance.option(&known, name);
        let state = keys.iter().find(|state| state.id == known.id);
        let declared = known.id == MASTER && instance.is_master_key_declared()? && by_server;
        let recovery = databases.recovery(&known)?;
        let waiting = databases.waits_for_backup(&known, &recovery);
        let (wait, waits_for) = match databases.holds_log(&recovery, waiting) {
            true => (2, "LOG_BACKUP"),
            false => (0, "NOTHING"),
        };
        let verify = match known.page_verify {
            0 => "NONE",
            1 => "TORN_PAGE_DETECTION",
            _ => "CHECKSUM",
        };
        rows.push(vec![
            text(&known.name),
            Value::Integer(known.id),
            Value::Null,
            Value::Null,
            text(&known.created),
            Value::Integer(known.compatibility_level),
            text("SQL_Latin1_General_CP1_CI_AS"),
            Value::Integer(known.access),
            text(access(&known)),
            flag(known.is_read_only || recovery.standing == Standing::Standby),
            Value::Integer(option("AUTO_CLOSE")?.unwrap_or(0)),
            Value::Integer(option("AUTO_SHRINK")?.unwrap_or(0)),
            Value::Integer(known.shown_state(recovery.standing) as i64),
            text(known.shown_state(recovery.standing).name()),
            flag(recovery.standing == Standing::Standby),
            Value::Null,
            Value::Integer(option("ALLOW_SNAPSHOT_ISOLATION")?.unwrap_or(0)),
            Value::Integer(option("READ_COMMITTED_SNAPSHOT")?.unwrap_or(0)),
            Value::Integer(recovery.model),
            text(recovery_model(recovery.model)),
            Value::Integer(known.page_verify),
            text(verify),
            Value::Integer(option("AUTO_CREATE_STATISTICS")?.unwrap_or(1)),
            Value::Integer(option("AUTO_UPDATE_STATISTICS")?.unwrap_or(1)),
            flag(declared),
            flag(false),
            flag(false),
            Value::Integer(wait),
            text(waits_for),
            flag(state.is_some_and(|state| state.is_on)),
            Value::Null,
            Value::Null,
            text(&known.name),
        ]);
    }
    Ok(rows)
}

pub(super) fn sysdatabases(databases: &Databases) -> Result<Vec<Row>> {
    let row = |known: Known| {
        vec![
            text(&known.name),
            Value::Integer(known.id),
            text(&known.created),
            Value::Null,
            Value::Integer(known.compatibility_level),
            shown(&known.path),
            Value::Null,
        ]
    };
    Ok(databases.instance.databases()?.into_iter().map(row).collect())
}

pub(super) fn master_files(databases: &Databases) -> Result<Vec<Row>> {
    let bases = Bases::of(databases)?;
    let mut rows = Vec::new();
    for known in databases.instance.databases()? {
        // What cannot be opened now has its own names all the same.
        let files = databases.files(&known).unwrap_or_else(|_| {
            let stem = known.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            DatabaseFile::defaults(&stem).into()
        });
        rows.extend(files.iter().map(|file| file_row(&known, file, &bases)));
    }
    Ok(rows)
}

pub(super) fn database_files(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let bases = Bases::of(databases)?;
    Ok(databases.files(&known)?.iter().map(|file| file_row(&known, file, &bases)).collect())
}

fn file_row(known: &Known, file: &DatabaseFile, bases: &Bases) -> Row {
    const PAGE_KB: i64 = 8;
    let is_log = file.kind == FileKind::Log;
    let physical = match is_log {
        // tempdb and model are no files.
        _ if known.path.as_os_str().is_empty() => Value::Null,
        false => shown(&known.path),
        true => file.physical.clone().map_or_else(|| shown(&log_path(known)), Value::Text),
    };
    vec![
        Value::Integer(known.id),
        Value::Integer(file.id),
        Value::Null,
        Value::Integer(file.kind as i64),
        text(if is_log { "LOG" } else { "ROWS" }),
        Value::Integer(i64::from(!is_log)),
        text(&file.name),
        physical,
        Value::Integer(known.state as i64),
        text(known.state.name()),
        Value::Integer((size_kb(known, file) / PAGE_KB).min(i64::from(i32::MAX))),
        Value::Integer(file.most_kb.map_or(-1, |kb| (kb / PAGE_KB).min(i64::from(i32::MAX)))),
        Value::Integer(match file.is_percent {
            true => file.growth,
            false => (file.growth / PAGE_KB).min(i64::from(i32::MAX)),
        }),
        flag(false),
        flag(known.is_read_only),
        flag(file.is_percent),
        flag(false),
        if is_log { Value::Null } else { bases.get(known) },
    ]
}

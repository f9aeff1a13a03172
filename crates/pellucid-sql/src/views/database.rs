//! sys.databases, sysdatabases, sys.master_files, sys.database_files

use super::lists::{arranged, Same};
use super::sequence::base_of;
use super::{flag, text, Column, Row};
use pellucid::header::Standing;

use crate::execute::{access, log_path, recovery_model, size_kb};
use crate::instance::{DatabaseFile, FileKind, Known, MASTER, MODEL, TEMPDB};
use crate::message::Result;
use crate::session::{shown, Databases};
use crate::values::convert::Value;
use crate::values::types::{Length, SqlType};

const DESC: SqlType = SqlType::nvarchar(60);

/// What is known of a database; then come the columns of [`SWITCHES`].
const DATABASES_FIRST: [Column; 41] = [
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
    ("snapshot_isolation_state_desc", DESC),
    ("containment", SqlType::TinyInt),
    ("containment_desc", DESC),
    ("target_recovery_time_in_seconds", SqlType::Int),
    ("delayed_durability", SqlType::Int),
    ("delayed_durability_desc", DESC),
    ("service_broker_guid", SqlType::UniqueIdentifier),
    ("resource_pool_id", SqlType::Int),
];

/// What is on or off, and the option that says it; without one it is what no database is here.
const SWITCHES: [(&str, Option<&str>); 33] = [
    ("is_fulltext_enabled", None),
    ("is_trustworthy_on", Some("TRUSTWORTHY")),
    ("is_db_chaining_on", Some("DB_CHAINING")),
    ("is_parameterization_forced", None),
    ("is_query_store_on", None),
    ("is_subscribed", None),
    ("is_merge_published", None),
    ("is_sync_with_backup", None),
    ("is_broker_enabled", None),
    ("is_honor_broker_priority_on", None),
    ("is_cdc_enabled", None),
    ("is_ansi_null_default_on", Some("ANSI_NULL_DEFAULT")),
    ("is_ansi_nulls_on", Some("ANSI_NULLS")),
    ("is_ansi_padding_on", Some("ANSI_PADDING")),
    ("is_ansi_warnings_on", Some("ANSI_WARNINGS")),
    ("is_arithabort_on", Some("ARITHABORT")),
    ("is_concat_null_yields_null_on", Some("CONCAT_NULL_YIELDS_NULL")),
    ("is_numeric_roundabort_on", Some("NUMERIC_ROUNDABORT")),
    ("is_quoted_identifier_on", Some("QUOTED_IDENTIFIER")),
    ("is_recursive_triggers_on", Some("RECURSIVE_TRIGGERS")),
    ("is_cursor_close_on_commit_on", Some("CURSOR_CLOSE_ON_COMMIT")),
    ("is_local_cursor_default", None),
    ("is_supplemental_logging_enabled", None),
    ("is_date_correlation_on", Some("DATE_CORRELATION_OPTIMIZATION")),
    ("is_auto_update_stats_async_on", Some("AUTO_UPDATE_STATISTICS_ASYNC")),
    ("is_auto_create_stats_incremental_on", None),
    ("is_federation_member", None),
    ("is_remote_data_archive_enabled", None),
    ("is_mixed_page_allocation_on", Some("MIXED_PAGE_ALLOCATION")),
    ("is_accelerated_database_recovery_on", None),
    ("is_ledger_on", None),
    ("is_memory_optimized_elevate_to_snapshot_on", None),
    ("is_temporal_history_retention_enabled", None),
];

/// Source: Microsoft's "sys.databases".
pub(super) const DATABASES: &[Column] = columns!(
    name NAME, database_id INT, source_database_id INT, owner_sid SID, create_date TIME, compatibility_level BYTE,
    collation_name NAME, user_access BYTE, user_access_desc DESC, is_read_only BIT, is_auto_close_on BIT,
    is_auto_shrink_on BIT, state BYTE, state_desc DESC, is_in_standby BIT, is_cleanly_shutdown BIT,
    is_supplemental_logging_enabled BIT, snapshot_isolation_state BYTE, snapshot_isolation_state_desc DESC,
    is_read_committed_snapshot_on BIT, recovery_model BYTE, recovery_model_desc DESC, page_verify_option BYTE,
    page_verify_option_desc DESC, is_auto_create_stats_on BIT, is_auto_create_stats_incremental_on BIT,
    is_auto_update_stats_on BIT, is_auto_update_stats_async_on BIT, is_ansi_null_default_on BIT,
    is_ansi_nulls_on BIT, is_ansi_padding_on BIT, is_ansi_warnings_on BIT, is_arithabort_on BIT,
    is_concat_null_yields_null_on BIT, is_numeric_roundabort_on BIT, is_quoted_identifier_on BIT,
    is_recursive_triggers_on BIT, is_cursor_close_on_commit_on BIT, is_local_cursor_default BIT,
    is_fulltext_enabled BIT, is_trustworthy_on BIT, is_db_chaining_on BIT, is_parameterization_forced BIT,
    is_master_key_encrypted_by_server BIT, is_query_store_on BIT, is_published BIT, is_subscribed BIT,
    is_merge_published BIT, is_distributor BIT, is_sync_with_backup BIT, service_broker_guid GUID,
    is_broker_enabled BIT, log_reuse_wait BYTE, log_reuse_wait_desc DESC, is_date_correlation_on BIT,
    is_cdc_enabled BIT, is_encrypted BIT, is_honor_broker_priority_on BIT, replica_id GUID, group_database_id GUID,
    resource_pool_id INT, default_language_lcid SMALL, default_language_name N128,
    default_fulltext_language_lcid INT, default_fulltext_language_name N128, is_nested_triggers_on BIT,
    is_transform_noise_words_on BIT, two_digit_year_cutoff SMALL, containment BYTE, containment_desc DESC,
    target_recovery_time_in_seconds INT, delayed_durability INT, delayed_durability_desc DESC,
    is_memory_optimized_elevate_to_snapshot_on BIT, is_federation_member BIT, is_remote_data_archive_enabled BIT,
    is_mixed_page_allocation_on BIT, is_temporal_history_retention_enabled BIT, catalog_collation_type INT,
    catalog_collation_type_desc DESC, physical_database_name N128, is_result_set_caching_on BIT,
    is_accelerated_database_recovery_on BIT, is_tempdb_spill_to_remote_store BIT, is_stale_page_detection_on BIT,
    is_memory_optimized_enabled BIT, is_data_retention_enabled BIT, is_ledger_on BIT, is_change_feed_enabled BIT
);

/// NULL is what contained databases alone have.
const OF_DATABASES: [(&str, Same); 4] = [
    ("is_nested_triggers_on", Same::Unknown),
    ("is_transform_noise_words_on", Same::Unknown),
    ("catalog_collation_type", Same::Number(0)),
    ("catalog_collation_type_desc", Same::Text("DATABASE_DEFAULT")),
];

/// Source: Microsoft's "sys.sysdatabases".
pub(super) const SYSDATABASES: &[Column] = columns!(
    name NAME, dbid SMALL, sid SID, mode SMALL, status INT, status2 INT, crdate TIME, reserved TIME, category INT,
    cmptlevel BYTE, filename N260, version SMALL
);

/// Source: Microsoft's "sys.master_files".
pub(super) const MASTER_FILES: &[Column] = columns!(
    database_id INT, file_id INT, file_guid GUID, type BYTE, type_desc DESC, data_space_id INT, name NAME,
    physical_name N260, state BYTE, state_desc DESC, size INT, max_size INT, growth INT, is_media_read_only BIT,
    is_read_only BIT, is_sparse BIT, is_percent_growth BIT, is_name_reserved BIT, create_lsn LSN, drop_lsn LSN,
    read_only_lsn LSN, read_write_lsn LSN, differential_base_lsn LSN, differential_base_guid GUID,
    differential_base_time TIME, redo_start_lsn LSN, redo_start_fork_guid GUID, redo_target_lsn LSN,
    redo_target_fork_guid GUID, backup_lsn LSN, credential_id INT
);

/// Source: Microsoft's "sys.database_files".
pub(super) const DATABASE_FILES: &[Column] = columns!(
    file_id INT, file_guid GUID, type BYTE, type_desc DESC, data_space_id INT, name NAME, physical_name N260,
    state BYTE, state_desc DESC, size INT, max_size INT, growth INT, is_media_read_only BIT, is_read_only BIT,
    is_sparse BIT, is_percent_growth BIT, is_name_reserved BIT, is_persistent_log_buffer BIT, create_lsn LSN,
    drop_lsn LSN, read_only_lsn LSN, read_write_lsn LSN, differential_base_lsn LSN, differential_base_guid GUID,
    differential_base_time TIME, redo_start_lsn LSN, redo_start_fork_guid GUID, redo_target_lsn LSN,
    redo_target_fork_guid GUID, backup_lsn LSN
);

/// What is known of a file.
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

/// When SQL Server's own `master` and `model` were made, in every server.
const SHIPPED: &str = "2003-04-08 09:13:36.390";

pub(super) fn databases(databases: &Databases) -> Result<Vec<Row>> {
    let instance = &databases.instance;
    let keys = super::key::states(databases)?;
    let shown = databases.shown()?;
    let opens = || pellucid_keyring::Keyring::opens_by_service_key(instance.home(), None);
    let is_declared = instance.is_master_key_declared()?;
    // Only `master` shows it.
    let by_server = shown.iter().any(|known| known.id == MASTER) && opens()?;
    let options = instance.options()?;
    let mut rows = Vec::new();
    for known in shown {
        let options = options.get(&known.id);
        let option = |name: &str| options.and_then(|all| all.get(name)).copied();
        let state = keys.iter().find(|state| state.id == known.id);
        let declared = known.id == MASTER && is_declared && by_server;
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
        let snapshots = option("ALLOW_SNAPSHOT_ISOLATION").unwrap_or(0);
        let mut row = vec![
            text(&known.name),
            Value::Integer(known.id),
            Value::Null,
            Value::Null,
            match known.id {
                // It begins with the server.
                TEMPDB => text(databases.shared.begun().to_iso(SqlType::DateTime)),
                MASTER | MODEL => text(SHIPPED),
                _ => text(&known.created),
            },
            Value::Integer(known.compatibility_level),
            text(known.collation()),
            Value::Integer(known.access),
            text(access(&known)),
            flag(known.is_read_only || recovery.standing == Standing::Standby),
            Value::Integer(option("AUTO_CLOSE").unwrap_or(0)),
            Value::Integer(option("AUTO_SHRINK").unwrap_or(0)),
            Value::Integer(known.shown_state(recovery.standing) as i64),
            text(known.shown_state(recovery.standing).name()),
            flag(recovery.standing == Standing::Standby),
            Value::Null,
            Value::Integer(snapshots),
            Value::Integer(option("READ_COMMITTED_SNAPSHOT").unwrap_or(0)),
            Value::Integer(recovery.model),
            text(recovery_model(recovery.model)),
            Value::Integer(known.page_verify),
            text(verify),
            Value::Integer(option("AUTO_CREATE_STATISTICS").unwrap_or(1)),
            Value::Integer(option("AUTO_UPDATE_STATISTICS").unwrap_or(1)),
            flag(declared),
            flag(false),
            flag(false),
            Value::Integer(wait),
            text(waits_for),
            flag(state.is_some_and(|state| state.is_on)),
            Value::Null,
            Value::Null,
            text(&known.name),
            text(if snapshots == 0 { "OFF" } else { "ON" }),
            Value::Integer(0),
            text("NONE"),
            Value::Integer(0),
            Value::Integer(0),
            text("DISABLED"),
            Value::Null,
            Value::Null,
        ];
        for (_, switch) in SWITCHES {
            row.push(Value::Integer(switch.and_then(option).unwrap_or(0)));
        }
        rows.push(row);
    }
    let switches = SWITCHES.iter().map(|(name, _)| (*name, SqlType::Bit));
    let known: Vec<Column> = DATABASES_FIRST.into_iter().chain(switches).collect();
    Ok(arranged(DATABASES, &known, &OF_DATABASES, rows))
}

pub(super) fn sysdatabases(databases: &Databases) -> Result<Vec<Row>> {
    let row = |known: Known| {
        vec![
            text(&known.name),
            Value::Integer(known.id),
            text(&known.created),
            Value::Integer(known.compatibility_level),
            shown(&known.path),
        ]
    };
    let known = ["name", "dbid", "crdate", "cmptlevel", "filename"];
    let known = known.map(|name| (name, SqlType::Int));
    let same = ["mode", "status2", "category"].map(|name| (name, Same::Number(0)));
    let rows = databases.instance.databases()?.into_iter().map(row).collect();
    Ok(arranged(SYSDATABASES, &known, &same, rows))
}

pub(super) fn master_files(databases: &Databases) -> Result<Vec<Row>> {
    Ok(arranged(MASTER_FILES, &FILES, &[], all_files(databases)?))
}

pub(super) fn database_files(databases: &Databases) -> Result<Vec<Row>> {
    Ok(arranged(DATABASE_FILES, &FILES, &[], own_files(databases)?))
}

/// Those of every database, with the columns [`FILES`].
pub(super) fn all_files(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for known in databases.shown()? {
        // What cannot be opened now has its own names all the same.
        let files = databases.files(&known).unwrap_or_else(|_| {
            let stem = known.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            DatabaseFile::defaults(&stem).into()
        });
        let base = base_of(databases, &known)?;
        rows.extend(files.iter().map(|file| file_row(&known, file, &base)));
    }
    Ok(rows)
}

/// Those of the current database.
pub(super) fn own_files(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let base = base_of(databases, &known)?;
    Ok(databases.files(&known)?.iter().map(|file| file_row(&known, file, &base)).collect())
}

fn file_row(known: &Known, file: &DatabaseFile, base: &Value) -> Row {
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
        if is_log { Value::Null } else { base.clone() },
    ]
}

//! Views of what a server without availability groups and mirroring does not have: their columns, and no rows.

pub(super) mod broker;
pub(super) mod counted;
pub(super) mod database;
pub(super) mod msdb;
pub(super) mod server;

use super::{flag, Column, Row};
use crate::message::Result;
use crate::session::Databases;
use crate::values::convert::Value;
use crate::values::types::{Length, SqlType};

const NAME: SqlType = SqlType::SYSNAME;
const DESC: SqlType = SqlType::nvarchar(60);
const GUID: SqlType = SqlType::UniqueIdentifier;
const LSN: SqlType = SqlType::numeric(25, 0);
const INT: SqlType = SqlType::Int;
const BIGINT: SqlType = SqlType::BigInt;
const BIT: SqlType = SqlType::Bit;
const BYTE: SqlType = SqlType::TinyInt;
const TIME: SqlType = SqlType::DateTime;
const SID: SqlType = SqlType::VarBinary(Length::Of(85));

/// Nothing of it is here. One function, so that [`super::View::is_always_empty`] knows it by its address.
#[inline(never)]
pub(super) fn none(_: &Databases) -> Result<Vec<Row>> {
    Ok(Vec::new())
}

/// Source: Microsoft's "sys.availability_groups"; `sys.availability_groups_cluster` has the first ten.
pub(super) const GROUPS: [Column; 17] = [
    ("group_id", GUID),
    ("name", NAME),
    ("resource_id", SqlType::nvarchar(40)),
    ("resource_group_id", SqlType::nvarchar(40)),
    ("failure_condition_level", INT),
    ("health_check_timeout", INT),
    ("automated_backup_preference", BYTE),
    ("automated_backup_preference_desc", DESC),
    ("version", SqlType::SmallInt),
    ("basic_features", BIT),
    ("dtc_support", BIT),
    ("db_failover", BIT),
    ("is_distributed", BIT),
    ("cluster_type", BYTE),
    ("cluster_type_desc", DESC),
    ("required_synchronized_secondaries_to_commit", INT),
    ("sequence_number", BIGINT),
];

/// Source: Microsoft's "sys.availability_replicas".
pub(super) const REPLICAS: [Column; 23] = [
    ("replica_id", GUID),
    ("group_id", GUID),
    ("replica_metadata_id", INT),
    ("replica_server_name", SqlType::nvarchar(256)),
    ("owner_sid", SID),
    ("endpoint_url", SqlType::nvarchar(128)),
    ("availability_mode", BYTE),
    ("availability_mode_desc", DESC),
    ("failover_mode", BYTE),
    ("failover_mode_desc", DESC),
    ("session_timeout", INT),
    ("primary_role_allow_connections", BYTE),
    ("primary_role_allow_connections_desc", DESC),
    ("secondary_role_allow_connections", BYTE),
    ("secondary_role_allow_connections_desc", DESC),
    ("create_date", TIME),
    ("modify_date", TIME),
    ("backup_priority", INT),
    ("read_only_routing_url", SqlType::nvarchar(256)),
    ("seeding_mode", BYTE),
    ("seeding_mode_desc", DESC),
    ("read_write_routing_url", SqlType::nvarchar(256)),
    ("is_read_only_routing_enabled", BIT),
];

/// Source: Microsoft's "sys.availability_databases_cluster".
pub(super) const CLUSTER_DATABASES: [Column; 4] = [
    ("group_id", GUID),
    ("group_database_id", GUID),
    ("database_name", NAME),
    ("truncation_lsn", LSN),
];

/// Source: Microsoft's "sys.availability_group_listeners".
pub(super) const LISTENERS: [Column; 7] = [
    ("group_id", GUID),
    ("listener_id", SqlType::nvarchar(36)),
    ("dns_name", SqlType::nvarchar(63)),
    ("port", INT),
    ("is_conformant", BIT),
    ("ip_configuration_string_from_cluster", SqlType::NVARCHAR_MAX),
    ("is_distributed_network_name", BIT),
];

/// Source: Microsoft's "sys.dm_hadr_availability_group_states".
pub(super) const GROUP_STATES: [Column; 8] = [
    ("group_id", GUID),
    ("primary_replica", SqlType::nvarchar(128)),
    ("primary_recovery_health", BYTE),
    ("primary_recovery_health_desc", DESC),
    ("secondary_recovery_health", BYTE),
    ("secondary_recovery_health_desc", DESC),
    ("synchronization_health", BYTE),
    ("synchronization_health_desc", DESC),
];

/// Source: Microsoft's "sys.dm_hadr_availability_replica_states".
pub(super) const REPLICA_STATES: [Column; 17] = [
    ("replica_id", GUID),
    ("group_id", GUID),
    ("is_local", BIT),
    ("role", BYTE),
    ("role_desc", DESC),
    ("operational_state", BYTE),
    ("operational_state_desc", DESC),
    ("connected_state", BYTE),
    ("connected_state_desc", DESC),
    ("recovery_health", BYTE),
    ("recovery_health_desc", DESC),
    ("synchronization_health", BYTE),
    ("synchronization_health_desc", DESC),
    ("last_connect_error_number", INT),
    ("last_connect_error_description", SqlType::nvarchar(1024)),
    ("last_connect_error_timestamp", TIME),
    ("write_lease_remaining_ticks", BIGINT),
];

/// Source: Microsoft's "sys.dm_hadr_availability_replica_cluster_states".
pub(super) const REPLICA_CLUSTER_STATES: [Column; 5] = [
    ("replica_id", GUID),
    ("replica_server_name", SqlType::nvarchar(256)),
    ("group_id", GUID),
    ("join_state", BYTE),
    ("join_state_desc", DESC),
];

/// Source: Microsoft's "sys.dm_hadr_availability_replica_cluster_nodes".
pub(super) const REPLICA_CLUSTER_NODES: [Column; 3] = [
    ("group_name", SqlType::nvarchar(256)),
    ("replica_server_name", SqlType::nvarchar(256)),
    ("node_name", SqlType::nvarchar(256)),
];

/// Source: Microsoft's "sys.dm_hadr_database_replica_states".
pub(super) const DATABASE_REPLICA_STATES: [Column; 35] = [
    ("database_id", INT),
    ("group_id", GUID),
    ("replica_id", GUID),
    ("group_database_id", GUID),
    ("is_local", BIT),
    ("is_primary_replica", BIT),
    ("synchronization_state", BYTE),
    ("synchronization_state_desc", DESC),
    ("is_commit_participant", BIT),
    ("synchronization_health", BYTE),
    ("synchronization_health_desc", DESC),
    ("database_state", BYTE),
    ("database_state_desc", DESC),
    ("is_suspended", BIT),
    ("suspend_reason", BYTE),
    ("suspend_reason_desc", DESC),
    ("recovery_lsn", LSN),
    ("truncation_lsn", LSN),
    ("last_sent_lsn", LSN),
    ("last_sent_time", TIME),
    ("last_received_lsn", LSN),
    ("last_received_time", TIME),
    ("last_hardened_lsn", LSN),
    ("last_hardened_time", TIME),
    ("last_redone_lsn", LSN),
    ("last_redone_time", TIME),
    ("log_send_queue_size", BIGINT),
    ("log_send_rate", BIGINT),
    ("redo_queue_size", BIGINT),
    ("redo_rate", BIGINT),
    ("end_of_log_lsn", LSN),
    ("last_commit_lsn", LSN),
    ("last_commit_time", TIME),
    ("low_water_mark_for_ghosts", BIGINT),
    ("secondary_lag_seconds", BIGINT),
];

/// Source: Microsoft's "sys.dm_hadr_database_replica_cluster_states".
pub(super) const DATABASE_CLUSTER_STATES: [Column; 8] = [
    ("replica_id", GUID),
    ("group_database_id", GUID),
    ("database_name", NAME),
    ("is_failover_ready", BIT),
    ("is_pending_secondary_suspend", BIT),
    ("is_database_joined", BIT),
    ("recovery_lsn", LSN),
    ("truncation_lsn", LSN),
];

/// Source: Microsoft's "sys.dm_hadr_cluster".
pub(super) const CLUSTER: [Column; 5] = [
    ("cluster_name", SqlType::nvarchar(128)),
    ("quorum_type", BYTE),
    ("quorum_type_desc", SqlType::varchar(50)),
    ("quorum_state", BYTE),
    ("quorum_state_desc", SqlType::varchar(50)),
];

/// Source: Microsoft's "sys.dm_hadr_cluster_members".
pub(super) const CLUSTER_MEMBERS: [Column; 6] = [
    ("member_name", SqlType::nvarchar(128)),
    ("member_type", BYTE),
    ("member_type_desc", SqlType::nvarchar(50)),
    ("member_state", BYTE),
    ("member_state_desc", DESC),
    ("number_of_quorum_votes", INT),
];

/// Source: Microsoft's "sys.database_mirroring".
pub(super) const MIRRORING: [Column; 21] = [
    ("database_id", INT),
    ("mirroring_guid", GUID),
    ("mirroring_state", BYTE),
    ("mirroring_state_desc", DESC),
    ("mirroring_role", BYTE),
    ("mirroring_role_desc", DESC),
    ("mirroring_role_sequence", INT),
    ("mirroring_safety_level", BYTE),
    ("mirroring_safety_level_desc", DESC),
    ("mirroring_safety_sequence", INT),
    ("mirroring_partner_name", SqlType::nvarchar(128)),
    ("mirroring_partner_instance", SqlType::nvarchar(128)),
    ("mirroring_witness_name", SqlType::nvarchar(128)),
    ("mirroring_witness_state", BYTE),
    ("mirroring_witness_state_desc", DESC),
    ("mirroring_failover_lsn", LSN),
    ("mirroring_connection_timeout", INT),
    ("mirroring_redo_queue", INT),
    ("mirroring_redo_queue_type", DESC),
    ("mirroring_end_of_log_lsn", LSN),
    ("mirroring_replication_lsn", LSN),
];

/// A row for each database; the others are NULL, as SQL Server has them for one that is not mirrored.
pub(super) fn mirroring(databases: &Databases) -> Result<Vec<Row>> {
    let row = |id: i64| {
        let mut row = vec![Value::Null; MIRRORING.len()];
        row[0] = Value::Integer(id);
        row
    };
    Ok(databases.instance.databases()?.iter().map(|known| row(known.id)).collect())
}

/// Source: Microsoft's "sys.dm_hadr_physical_seeding_stats".
pub(super) const SEEDING: [Column; 22] = [
    ("local_physical_seeding_id", GUID),
    ("remote_physical_seeding_id", GUID),
    ("local_database_id", INT),
    ("local_database_name", NAME),
    ("remote_machine_name", SqlType::nvarchar(128)),
    ("role_desc", SqlType::nvarchar(60)),
    ("internal_state_desc", DESC),
    ("transfer_rate_bytes_per_second", BIGINT),
    ("transferred_size_bytes", BIGINT),
    ("database_size_bytes", BIGINT),
    ("start_time_utc", TIME),
    ("end_time_utc", TIME),
    ("estimate_time_complete_utc", TIME),
    ("total_disk_io_wait_time_ms", BIGINT),
    ("total_network_wait_time_ms", BIGINT),
    ("failure_code", INT),
    ("failure_message", SqlType::nvarchar(2048)),
    ("failure_time_utc", TIME),
    ("is_compression_enabled", BIT),
    ("is_encryption_enabled", BIT),
    ("is_forced", BIT),
    ("seeding_mode", INT),
];

/// Source: Microsoft's "log_shipping_primary_databases".
pub(super) const SHIPPED_PRIMARIES: [Column; 12] = [
    ("primary_id", GUID),
    ("primary_database", NAME),
    ("backup_directory", SqlType::nvarchar(500)),
    ("backup_share", SqlType::nvarchar(500)),
    ("backup_retention_period", INT),
    ("backup_job_id", GUID),
    ("monitor_server", NAME),
    ("user_specified_monitor", BIT),
    ("monitor_server_security_mode", BIT),
    ("last_backup_file", SqlType::nvarchar(500)),
    ("last_backup_date", TIME),
    ("backup_compression", BYTE),
];

/// Source: Microsoft's "log_shipping_secondary_databases".
pub(super) const SHIPPED_SECONDARIES: [Column; 11] = [
    ("secondary_database", NAME),
    ("secondary_id", GUID),
    ("restore_delay", INT),
    ("restore_all", BIT),
    ("restore_mode", BIT),
    ("disconnect_users", BIT),
    ("block_size", INT),
    ("buffer_count", INT),
    ("max_transfer_size", INT),
    ("last_restored_file", SqlType::nvarchar(500)),
    ("last_restored_date", TIME),
];

/// Source: Microsoft's "sys.dm_db_persisted_sku_features".
pub(super) const SKU_FEATURES: [Column; 2] = [("feature_name", NAME), ("feature_id", INT)];

/// Source: Microsoft's "sys.dm_server_audit_status".
pub(super) const AUDITS: [Column; 7] = [
    ("audit_id", INT),
    ("name", NAME),
    ("status", SqlType::SmallInt),
    ("status_desc", SqlType::nvarchar(256)),
    ("status_time", SqlType::DateTime2(7)),
    ("audit_file_path", SqlType::nvarchar(256)),
    ("audit_file_size", BIGINT),
];

/// Source: Microsoft's "sys.change_tracking_databases".
pub(super) const TRACKED: [Column; 6] = [
    ("database_id", INT),
    ("is_auto_cleanup_on", BIT),
    ("retention_period", INT),
    ("retention_period_units", BYTE),
    ("retention_period_units_desc", DESC),
    ("max_cleanup_version", BIGINT),
];

/// Source: Microsoft's "sys.resource_governor_configuration".
pub(super) const GOVERNOR: [Column; 3] =
    [("classifier_function_id", INT), ("is_enabled", BIT), ("max_outstanding_io_per_volume", INT)];

/// Source: Microsoft's "sys.dm_resource_governor_configuration".
pub(super) const GOVERNOR_NOW: [Column; 3] = [
    ("classifier_function_id", INT),
    ("is_reconfiguration_pending", BIT),
    ("max_outstanding_io_per_volume", INT),
];

/// It is off.
pub(super) fn governor(_: &Databases) -> Result<Vec<Row>> {
    Ok(vec![vec![Value::Integer(0), flag(false), Value::Integer(0)]])
}

pub(super) fn governor_now(databases: &Databases) -> Result<Vec<Row>> {
    governor(databases)
}

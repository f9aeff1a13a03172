//! The server's views and the tables of `msdb`, with the columns and types of SQL Server's.
//!
//! A column without a source here is NULL; docs/statements.md lists them. Rows are made when a statement names the view.

#[macro_use]
mod lists;
mod absent;
mod backup;
mod catalog;
mod clause;
mod constraint;
mod database;
mod index;
mod jobs;
mod key;
mod machine;
mod memory;
mod message;
mod physical;
mod principal;
mod provider;
mod recovery;
mod request;
mod sequence;
mod session;
mod shipped;
mod space;
mod system;
mod table;

pub(crate) use key::{certificate_facts, key_ids};
pub(crate) use recovery::{IN_USE as LOG_IN_USE, LOG_FILE};

use crate::message::Result;
use crate::session::Databases;
use crate::translate::is_table_function;
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// A column: name and type.
pub(crate) type Column = (&'static str, SqlType);
/// Values as SQLite keeps them: numerics and dates as text.
pub(crate) type Row = Vec<Value>;

/// A view.
pub(crate) struct View {
    /// `sys`, `msdb` or `information_schema`
    pub schema: &'static str,
    pub name: &'static str,
    pub columns: &'static [Column],
    pub rows: fn(&Databases) -> Result<Vec<Row>>,
    /// Also without a schema: `sysdatabases`.
    pub is_compatibility: bool,
}

impl View {
    /// Whether it shows the database that the session is in, whatever database is named before it.
    pub fn is_of_sessions(&self) -> bool {
        matches!(self.name, "dm_exec_sessions" | "sysprocesses")
    }

    /// Whether it has rows of each database that [`Databases::shown`] gives, or of [`Databases::shown_object`], and no other.
    pub fn shows_what_is_sought(&self) -> bool {
        const NAMES: [&str; 7] = [
            "databases",
            "master_files",
            "database_recovery_status",
            "dm_database_encryption_keys",
            "dm_db_index_physical_stats",
            "dm_db_log_stats",
            "sql_modules",
        ];
        self.schema == "sys" && NAMES.contains(&self.name)
    }

    /// Whether it is one of what there never is here.
    pub fn is_always_empty(&self) -> bool {
        std::ptr::fn_addr_eq(self.rows, absent::none as fn(&Databases) -> Result<Vec<Row>>)
    }
}

const fn sys(
    name: &'static str,
    columns: &'static [Column],
    rows: fn(&Databases) -> Result<Vec<Row>>,
) -> View {
    View { schema: "sys", name, columns, rows, is_compatibility: false }
}

/// A view of SQL Server 2000, which is found without its schema, too.
const fn old(
    name: &'static str,
    columns: &'static [Column],
    rows: fn(&Databases) -> Result<Vec<Row>>,
) -> View {
    View { is_compatibility: true, ..sys(name, columns, rows) }
}

const fn msdb(
    name: &'static str,
    columns: &'static [Column],
    rows: fn(&Databases) -> Result<Vec<Row>>,
) -> View {
    View { schema: "msdb", name, columns, rows, is_compatibility: false }
}

const fn information(
    name: &'static str,
    columns: &'static [Column],
    rows: fn(&Databases) -> Result<Vec<Row>>,
) -> View {
    View { schema: "information_schema", name, columns, rows, is_compatibility: false }
}

static VIEWS: &[View] = &[
    sys("databases", database::DATABASES, database::databases),
    old("sysdatabases", database::SYSDATABASES, database::sysdatabases),
    sys("master_files", database::MASTER_FILES, database::master_files),
    sys("database_files", database::DATABASE_FILES, database::database_files),
    sys("certificates", &key::CERTIFICATES, key::certificates),
    sys("symmetric_keys", &key::SYMMETRIC_KEYS, key::symmetric_keys),
    sys("asymmetric_keys", key::ASYMMETRIC_KEYS, key::asymmetric_keys),
    sys("cryptographic_providers", &provider::PROVIDERS, provider::providers),
    sys("credentials", &provider::CREDENTIALS, provider::credentials),
    sys("dm_cryptographic_provider_properties", &provider::PROPERTIES, provider::properties),
    sys("key_encryptions", &key::KEY_ENCRYPTIONS, key::key_encryptions),
    sys("dm_database_encryption_keys", &key::ENCRYPTION_KEYS, key::encryption_keys),
    sys("database_recovery_status", &recovery::STATUS, recovery::status),
    sys("dm_db_log_stats", &recovery::LOG_STATS, recovery::log_stats),
    sys("dm_db_log_info", recovery::LOG_INFO, recovery::log_info),
    sys("server_principals", &principal::SERVER, principal::server),
    sys("database_principals", &principal::DATABASE, principal::database),
    sys("server_role_members", &principal::SERVER_MEMBERS, principal::server_members),
    sys("database_role_members", &principal::DATABASE_MEMBERS, principal::database_members),
    sys("server_permissions", &principal::PERMISSIONS, absent::none),
    sys("database_permissions", &principal::PERMISSIONS, absent::none),
    sys("sql_logins", principal::SQL_LOGINS, principal::sql_logins),
    old("syslogins", principal::SYSLOGINS, principal::syslogins),
    old("sysusers", principal::SYSUSERS, principal::sysusers),
    old("sysmembers", &principal::SYSMEMBERS, principal::sysmembers),
    sys("servers", machine::SERVERS, machine::servers),
    old("sysservers", machine::SYSSERVERS, machine::sysservers),
    sys("dm_server_services", machine::SERVICES, machine::services),
    old("sysaltfiles", &machine::SYSALTFILES, machine::sysaltfiles),
    old("sysfiles", &machine::SYSALTFILES, machine::sysfiles),
    sys("dm_db_log_space_usage", &machine::LOG_SPACE, machine::log_space),
    sys("dm_db_persisted_sku_features", &absent::SKU_FEATURES, absent::none),
    sys("dm_server_audit_status", &absent::AUDITS, absent::none),
    sys("change_tracking_databases", &absent::TRACKED, absent::none),
    sys("dm_exec_requests", request::REQUESTS, request::requests),
    sys("dm_exec_sessions", session::SESSIONS, session::sessions),
    old("sysprocesses", session::PROCESSES, session::processes),
    sys("dm_exec_connections", &session::CONNECTIONS, session::connections),
    sys("dm_exec_sql_text", &session::SQL_TEXT, session::sql_text),
    sys("fn_get_sql", &session::GET_SQL, session::get_sql),
    sys("dm_os_volume_stats", &system::VOLUMES, system::volumes),
    sys("dm_os_performance_counters", &system::COUNTERS, system::counters),
    old("sysperfinfo", &system::COUNTERS, system::old_counters),
    sys("dm_os_sys_info", system::SYSTEM, system::system),
    sys("dm_os_host_info", &system::HOST, system::host),
    sys("dm_os_schedulers", memory::SCHEDULERS, memory::schedulers),
    sys("dm_os_nodes", memory::NODES, memory::nodes),
    sys("dm_os_sys_memory", memory::SYSTEM, memory::system),
    sys("dm_os_process_memory", memory::PROCESS, memory::process),
    sys("dm_os_file_exists", &system::FILE_EXISTS, system::file_exists),
    sys("filegroups", &space::FILEGROUPS, space::filegroups),
    sys("resource_governor_configuration", &absent::GOVERNOR, absent::governor),
    sys("dm_resource_governor_configuration", &absent::GOVERNOR_NOW, absent::governor_now),
    sys("data_spaces", space::FILEGROUPS.split_at(6).0, space::data_spaces),
    sys("dm_db_file_space_usage", &space::USAGE, space::usage),
    sys("database_mirroring", &absent::MIRRORING, absent::mirroring),
    sys("availability_groups", &absent::GROUPS, absent::none),
    sys("availability_groups_cluster", absent::GROUPS.split_at(10).0, absent::none),
    sys("availability_replicas", &absent::REPLICAS, absent::none),
    sys("availability_databases_cluster", &absent::CLUSTER_DATABASES, absent::none),
    sys("availability_group_listeners", &absent::LISTENERS, absent::none),
    sys("dm_hadr_availability_group_states", &absent::GROUP_STATES, absent::none),
    sys("dm_hadr_availability_replica_states", &absent::REPLICA_STATES, absent::none),
    sys(
        "dm_hadr_availability_replica_cluster_states",
        &absent::REPLICA_CLUSTER_STATES,
        absent::none,
    ),
    sys("dm_hadr_availability_replica_cluster_nodes", &absent::REPLICA_CLUSTER_NODES, absent::none),
    sys("dm_hadr_database_replica_states", &absent::DATABASE_REPLICA_STATES, absent::none),
    sys("dm_hadr_database_replica_cluster_states", &absent::DATABASE_CLUSTER_STATES, absent::none),
    sys("dm_hadr_physical_seeding_stats", &absent::SEEDING, absent::none),
    sys("dm_hadr_cluster", &absent::CLUSTER, absent::none),
    sys("dm_hadr_cluster_members", &absent::CLUSTER_MEMBERS, absent::none),
    sys("configurations", &catalog::CONFIGURATIONS, catalog::configurations),
    sys("backup_devices", &catalog::BACKUP_DEVICES, catalog::backup_devices),
    sys("schemas", &catalog::SCHEMAS, catalog::schemas),
    sys("objects", &catalog::OBJECTS, catalog::objects),
    old("sysobjects", catalog::SYSOBJECTS, catalog::sysobjects),
    sys("tables", catalog::TABLES, catalog::tables),
    sys("views", catalog::VIEWS, catalog::views),
    sys("procedures", catalog::PROCEDURES, catalog::procedures),
    sys("sql_modules", &catalog::MODULES, catalog::modules),
    sys("all_objects", &catalog::OBJECTS, shipped::all_objects),
    sys("all_views", catalog::VIEWS, shipped::all_views),
    sys("system_objects", &catalog::OBJECTS, shipped::system_objects),
    sys("system_views", catalog::VIEWS, shipped::system_views),
    sys("types", &shipped::TYPES, shipped::types),
    sys("columns", table::COLUMNS, table::columns),
    old("syscolumns", table::SYSCOLUMNS, table::syscolumns),
    sys("all_columns", table::COLUMNS, table::all_columns),
    sys("system_columns", table::COLUMNS, table::system_columns),
    sys("indexes", index::INDEXES, index::indexes),
    sys("index_columns", index::COLUMNS, index::columns),
    sys("key_constraints", index::KEYS, index::keys),
    sys("partitions", index::PARTITIONS, index::partitions),
    sys("dm_db_partition_stats", index::STATS, index::stats),
    sys("foreign_keys", constraint::FOREIGN_KEYS, constraint::foreign_keys),
    sys("foreign_key_columns", constraint::FOREIGN_KEY_COLUMNS, constraint::foreign_key_columns),
    sys("check_constraints", constraint::CHECKS, constraint::checks),
    sys("default_constraints", constraint::DEFAULTS, constraint::defaults),
    sys("identity_columns", constraint::IDENTITIES, constraint::identities),
    sys("stats", constraint::STATS, constraint::stats),
    sys("stats_columns", constraint::STATS_COLUMNS, constraint::stats_columns),
    sys("dm_db_index_physical_stats", physical::STATS, physical::stats),
    sys("allocation_units", index::UNITS, index::units),
    old("sysindexes", index::SYSINDEXES, index::sysindexes),
    sys("messages", &message::MESSAGES, message::messages),
    old("sysmessages", &message::SYSMESSAGES, message::sysmessages),
    old("syscacheobjects", message::CACHE, absent::none),
    information("tables", &catalog::INFORMATION_TABLES, catalog::information_tables),
    information("schemata", &shipped::SCHEMATA, shipped::schemata),
    information("columns", table::INFORMATION_COLUMNS, table::information_columns),
    information("views", &catalog::INFORMATION_VIEWS, catalog::information_views),
    information("routines", &catalog::ROUTINES, catalog::routines),
    msdb("backupset", backup::SETS, backup::sets),
    msdb("backupmediaset", &backup::MEDIA, backup::media),
    msdb("backupmediafamily", &backup::FAMILIES, backup::families),
    msdb("backupfile", backup::FILES, backup::files),
    msdb("backupfilegroup", backup::FILEGROUPS, backup::filegroups),
    msdb("logmarkhistory", &backup::MARKS, backup::marks),
    msdb("restorehistory", &backup::RESTORES, backup::restores),
    msdb("restorefile", &backup::RESTORE_FILES, backup::restore_files),
    msdb("restorefilegroup", backup::RESTORE_FILEGROUPS, backup::restore_filegroups),
    msdb("log_shipping_primary_databases", &absent::SHIPPED_PRIMARIES, absent::none),
    msdb("log_shipping_secondary_databases", &absent::SHIPPED_SECONDARIES, absent::none),
    msdb("sysjobs", &jobs::JOBS, jobs::jobs),
    msdb("sysjobs_view", &jobs::JOBS_VIEW, jobs::jobs_view),
    msdb("sysjobhistory", &jobs::JOB_HISTORY, jobs::history),
    msdb("sysjobsteps", &jobs::JOB_STEPS, jobs::steps),
    msdb("sysjobactivity", &jobs::JOB_ACTIVITY, jobs::activity),
    msdb("sysjobservers", &jobs::JOB_SERVERS, jobs::servers),
    msdb("sysjobschedules", &jobs::JOB_SCHEDULES, jobs::job_schedules),
    msdb("sysschedules", &jobs::SCHEDULES, jobs::schedules),
    msdb("syscategories", &jobs::CATEGORIES, jobs::categories),
    msdb("syssessions", &jobs::SESSIONS, jobs::sessions),
    msdb("sysoperators", &jobs::OPERATORS, jobs::operators),
];

/// All of them.
pub(crate) fn every() -> impl Iterator<Item = &'static View> {
    [
        VIEWS,
        absent::broker::VIEWS,
        absent::counted::VIEWS,
        absent::counted::STATISTICS,
        absent::database::VIEWS,
        absent::msdb::VIEWS,
        absent::server::VIEWS,
    ]
    .into_iter()
    .flatten()
}

pub(crate) use constraint::named as named_constraints;

/// The names of the tables of `msdb`.
pub(crate) fn msdb_tables() -> impl Iterator<Item = &'static str> {
    every().filter(|view| view.schema == "msdb").map(|view| view.name)
}

/// The names of the views of `sys`, without those that are functions.
pub(crate) fn sys_views() -> impl Iterator<Item = &'static str> {
    let is_view = |view: &&View| view.schema == "sys" && !is_table_function(view.name);
    every().filter(is_view).map(|view| view.name)
}

/// The view of that name.
pub(crate) fn find(schema: &str, name: &str) -> Option<&'static View> {
    every().find(|view| {
        view.schema.eq_ignore_ascii_case(schema) && view.name.eq_ignore_ascii_case(name)
    })
}

fn text(value: impl Into<String>) -> Value {
    Value::Text(value.into())
}

fn flag(value: bool) -> Value {
    Value::Integer(value.into())
}

fn optional(value: Option<String>) -> Value {
    value.map_or(Value::Null, Value::Text)
}

/// Seconds since 1970 as SQLite writes a time; NULL for 0.
fn time(seconds: u64) -> Value {
    match i64::try_from(seconds)
        .ok()
        .and_then(|at| time::OffsetDateTime::from_unix_timestamp(at).ok())
    {
        Some(at) if seconds > 0 => Value::Text(format!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute(),
            at.second()
        )),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_view_is_found_by_its_name() {
        for view in every() {
            let found = find(view.schema, &view.name.to_uppercase()).unwrap();
            assert!(std::ptr::eq(found, view), "{}.{}", view.schema, view.name);
        }
        assert!(find("sys", "nothing").is_none());
    }
}

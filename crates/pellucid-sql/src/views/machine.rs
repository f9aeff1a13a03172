//! sys.servers, sys.dm_server_services and the old views of servers and files: this machine is the one server.

use super::lists::{arranged, Same};
use super::{flag, text, Column, Row};
use crate::message::Result;
use crate::session::Databases;
use crate::values::convert::Value;
use crate::values::types::SqlType;

const NAME: SqlType = SqlType::SYSNAME;
const INT: SqlType = SqlType::Int;

/// Source: Microsoft's "sys.servers".
pub(super) const SERVERS: &[Column] = columns!(
    server_id INT, name NAME, product NAME, provider NAME, data_source N4000, location N4000, provider_string N4000,
    catalog NAME, connect_timeout INT, query_timeout INT, is_linked BIT, is_remote_login_enabled BIT,
    is_rpc_out_enabled BIT, is_data_access_enabled BIT, is_collation_compatible BIT, uses_remote_collation BIT,
    collation_name NAME, lazy_schema_validation BIT, is_system BIT, is_publisher BIT, is_subscriber BIT,
    is_distributor BIT, is_nonsql_subscriber BIT, is_remote_proc_transaction_promotion_enabled BIT,
    modify_date TIME, is_rda_server BIT
);

/// What is known of the server.
const SERVERS_KNOWN: [Column; 10] = [
    ("server_id", INT),
    ("name", NAME),
    ("product", NAME),
    ("provider", NAME),
    ("data_source", SqlType::nvarchar(4000)),
    ("is_linked", SqlType::Bit),
    ("is_remote_login_enabled", SqlType::Bit),
    ("is_rpc_out_enabled", SqlType::Bit),
    ("is_data_access_enabled", SqlType::Bit),
    ("modify_date", SqlType::DateTime),
];

/// Source: Microsoft's "sys.sysservers".
pub(super) const SYSSERVERS: &[Column] = columns!(
    srvid SMALL, srvstatus SMALL, srvname NAME, srvproduct N128, providername N128, datasource N4000,
    location N4000, providerstring N4000, schemadate TIME, topologyx INT, topologyy INT, catalog NAME,
    srvcollation NAME, connecttimeout INT, querytimeout INT, srvnetname N30, isremote BIT, rpc BIT, pub BIT,
    sub BIT, dist BIT, dpub BIT, rpcout BIT, dataaccess BIT, collationcompatible BIT, system BIT,
    useremotecollation BIT, lazyschemavalidation BIT, collation NAME, nonsqlsub BIT
);

/// Source: Microsoft's "sys.dm_server_services".
pub(super) const SERVICES: &[Column] = columns!(
    servicename N256, startup_type INT, startup_type_desc N256, status INT, status_desc N256, process_id INT,
    last_startup_time TIME, service_account N256, filename N256, is_clustered N1, cluster_nodename N256,
    instant_file_initialization_enabled N1
);

/// Source: Microsoft's "sys.sysaltfiles" and "sys.sysfiles", without `dbid` there.
pub(super) const SYSALTFILES: [Column; 10] = [
    ("fileid", SqlType::SmallInt),
    ("groupid", SqlType::SmallInt),
    ("size", INT),
    ("maxsize", INT),
    ("growth", INT),
    ("status", INT),
    ("perf", INT),
    ("dbid", SqlType::SmallInt),
    ("name", NAME),
    ("filename", SqlType::nvarchar(260)),
];

/// Source: Microsoft's "sys.dm_db_log_space_usage".
pub(super) const LOG_SPACE: [Column; 5] = [
    ("database_id", SqlType::SmallInt),
    ("total_log_size_in_bytes", SqlType::BigInt),
    ("used_log_space_in_bytes", SqlType::BigInt),
    ("used_log_space_in_percent", SqlType::Real),
    ("log_space_in_bytes_since_last_backup", SqlType::BigInt),
];

pub(super) fn servers(databases: &Databases) -> Result<Vec<Row>> {
    let name = databases.shared.server_name();
    let rows = vec![vec![
        Value::Integer(0),
        text(name),
        text("SQL Server"),
        text("SQLNCLI"),
        text(name),
        flag(false),
        flag(false),
        flag(false),
        flag(false),
        Value::Text(databases.shared.begun().to_iso(SqlType::DateTime)),
    ]];
    let same = [
        ("connect_timeout", Same::Number(0)),
        ("query_timeout", Same::Number(0)),
        ("uses_remote_collation", Same::Number(1)),
    ];
    Ok(arranged(SERVERS, &SERVERS_KNOWN, &same, rows))
}

pub(super) fn sysservers(databases: &Databases) -> Result<Vec<Row>> {
    let name = databases.shared.server_name();
    let rows = vec![vec![
        Value::Integer(0),
        text(name),
        text("SQL Server"),
        text("SQLOLEDB"),
        text(name),
        text(name),
    ]];
    let known = ["srvid", "srvname", "srvproduct", "providername", "datasource", "srvnetname"];
    let known = known.map(|name| (name, INT));
    let same = [
        ("srvstatus", Same::Number(0)),
        ("topologyx", Same::Number(0)),
        ("topologyy", Same::Number(0)),
        ("connecttimeout", Same::Number(0)),
        ("querytimeout", Same::Number(0)),
        ("useremotecollation", Same::Number(1)),
    ];
    Ok(arranged(SYSSERVERS, &known, &same, rows))
}

/// The service is this process, which somebody has begun.
pub(super) fn services(databases: &Databases) -> Result<Vec<Row>> {
    let shared = &databases.shared;
    Ok(vec![vec![
        text("SQL Server (MSSQLSERVER)"),
        Value::Integer(3),
        text("Manual"),
        Value::Integer(4),
        text("Running"),
        Value::Integer(std::process::id().into()),
        Value::Text(shared.begun().to_iso(SqlType::DateTime)),
        text(shared.user()),
        Value::Null,
        text("N"),
        Value::Null,
        text("N"),
    ]])
}

pub(super) fn sysaltfiles(databases: &Databases) -> Result<Vec<Row>> {
    Ok(super::database::all_files(databases)?.into_iter().map(old_row).collect())
}

pub(super) fn sysfiles(databases: &Databases) -> Result<Vec<Row>> {
    Ok(super::database::own_files(databases)?.into_iter().map(old_row).collect())
}

/// A row of `sys.master_files` in the order of the old view.
fn old_row(file: Row) -> Row {
    let of = |wanted: &str| {
        let at = super::database::FILES.iter().position(|(name, _)| *name == wanted);
        at.and_then(|at| file.get(at)).cloned().unwrap_or(Value::Null)
    };
    vec![
        of("file_id"),
        of("data_space_id"),
        of("size"),
        of("max_size"),
        of("growth"),
        // A file that may grow; 64 is a log's.
        Value::Integer(if of("type") == Value::Integer(1) { 66 } else { 2 }),
        Value::Integer(0),
        of("database_id"),
        of("name"),
        of("physical_name"),
    ]
}

/// Of the current database the log as it lies on the disk; all of it is in use.
pub(super) fn log_space(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let bytes = super::recovery::log_bytes(&known);
    let bytes = Value::Integer(i64::try_from(bytes).unwrap_or(i64::MAX));
    let since = databases
        .recovery(&known)
        .ok()
        .and_then(|recovery| databases.waits_for_backup(&known, &recovery))
        .map_or(0, |waiting| i64::try_from(waiting.bytes).unwrap_or(i64::MAX));
    Ok(vec![vec![
        Value::Integer(known.id),
        bytes.clone(),
        bytes,
        Value::Real(100.0),
        Value::Integer(since),
    ]])
}

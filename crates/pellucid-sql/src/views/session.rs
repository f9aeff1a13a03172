//! sys.dm_exec_sessions, sys.dm_exec_connections, sys.dm_exec_sql_text
//!
//! A session is a process, and none knows of the others until one backs up or restores: there is this session, and each that
//! has a request.

use std::collections::BTreeSet;

use super::lists::{arranged, Same};
use super::request::{asking, Asking};
use super::{flag, optional, text, Column, Row};
use crate::message::Result;
use crate::session::Databases;
use crate::values::convert::Value;
use crate::values::types::{Length, SqlType};

const N128: SqlType = SqlType::nvarchar(128);

/// Source: Microsoft's "sys.dm_exec_sessions".
pub(super) const SESSIONS: &[Column] = columns!(
    session_id SMALL, login_time TIME, host_name N128, program_name N128, host_process_id INT, client_version INT,
    client_interface_name N32, security_id SID, login_name N128, nt_domain N128, nt_user_name N128, status N30,
    context_info BIN128, cpu_time INT, memory_usage INT, total_scheduled_time INT, total_elapsed_time INT,
    endpoint_id INT, last_request_start_time TIME, last_request_end_time TIME, reads BIGINT, writes BIGINT,
    logical_reads BIGINT, is_user_process BIT, text_size INT, language N128, date_format N3, date_first SMALL,
    quoted_identifier BIT, arithabort BIT, ansi_null_dflt_on BIT, ansi_defaults BIT, ansi_warnings BIT,
    ansi_padding BIT, ansi_nulls BIT, concat_null_yields_null BIT, transaction_isolation_level SMALL,
    lock_timeout INT, deadlock_priority INT, row_count BIGINT, prev_error INT, original_security_id SID,
    original_login_name N128, last_successful_logon TIME, last_unsuccessful_logon TIME, unsuccessful_logons BIGINT,
    group_id INT, database_id SMALL, authenticating_database_id INT, open_transaction_count INT,
    page_server_reads BIGINT, contained_availability_group_id GUID
);

/// What every session has; its other settings are unknown.
const OF_SESSIONS: [(&str, Same); 16] = [
    ("language", Same::Text("us_english")),
    ("date_format", Same::Text("mdy")),
    ("date_first", Same::Number(7)),
    ("quoted_identifier", Same::Unknown),
    ("arithabort", Same::Unknown),
    ("ansi_null_dflt_on", Same::Unknown),
    ("ansi_defaults", Same::Unknown),
    ("ansi_warnings", Same::Unknown),
    ("ansi_padding", Same::Unknown),
    ("ansi_nulls", Same::Unknown),
    ("concat_null_yields_null", Same::Unknown),
    ("lock_timeout", Same::Number(-1)),
    ("deadlock_priority", Same::Number(0)),
    ("prev_error", Same::Number(0)),
    ("authenticating_database_id", Same::Number(1)),
    ("endpoint_id", Same::Unknown),
];

/// What is known of a session.
const KNOWN: [Column; 21] = [
    ("session_id", SqlType::SmallInt),
    ("login_time", SqlType::DateTime),
    ("host_name", N128),
    ("program_name", N128),
    ("host_process_id", SqlType::Int),
    ("client_interface_name", SqlType::nvarchar(32)),
    ("login_name", N128),
    ("nt_domain", N128),
    ("nt_user_name", N128),
    ("status", SqlType::nvarchar(30)),
    ("cpu_time", SqlType::Int),
    ("memory_usage", SqlType::Int),
    ("reads", SqlType::BigInt),
    ("writes", SqlType::BigInt),
    ("logical_reads", SqlType::BigInt),
    ("is_user_process", SqlType::Bit),
    ("transaction_isolation_level", SqlType::SmallInt),
    ("original_login_name", N128),
    ("database_id", SqlType::SmallInt),
    ("open_transaction_count", SqlType::Int),
    ("contained_availability_group_id", SqlType::UniqueIdentifier),
];

/// Source: Microsoft's "sys.dm_exec_connections".
pub(super) const CONNECTIONS: [Column; 13] = [
    ("session_id", SqlType::Int),
    ("most_recent_session_id", SqlType::Int),
    ("connect_time", SqlType::DateTime),
    ("net_transport", SqlType::nvarchar(40)),
    ("protocol_type", SqlType::nvarchar(40)),
    ("encrypt_option", SqlType::nvarchar(40)),
    ("auth_scheme", SqlType::nvarchar(40)),
    ("client_net_address", SqlType::varchar(48)),
    ("client_tcp_port", SqlType::Int),
    ("local_net_address", SqlType::varchar(48)),
    ("local_tcp_port", SqlType::Int),
    ("connection_id", SqlType::UniqueIdentifier),
    ("most_recent_sql_handle", SqlType::VarBinary(Length::Of(64))),
];

/// Source: Microsoft's "sys.dm_exec_sql_text". The last column is the argument.
pub(super) const SQL_TEXT: [Column; 6] = [
    ("dbid", SqlType::SmallInt),
    ("objectid", SqlType::Int),
    ("number", SqlType::SmallInt),
    ("encrypted", SqlType::Bit),
    ("text", SqlType::NVARCHAR_MAX),
    ("sql_handle", SqlType::VarBinary(Length::Of(64))),
];

/// Source: Microsoft's "sys.fn_get_sql", a function there.
pub(super) const GET_SQL: [Column; 6] = SQL_TEXT;

/// SERIALIZABLE
const ISOLATION: i64 = 4;

/// Source: Microsoft's "sys.sysprocesses".
pub(super) const PROCESSES: &[Column] = columns!(
    spid SMALL, kpid SMALL, blocked SMALL, waittype BIN2, waittime BIGINT, lastwaittype NC32, waitresource NC256,
    dbid SMALL, uid SMALL, cpu INT, physical_io BIGINT, memusage INT, login_time TIME, last_batch TIME, ecid SMALL,
    open_tran SMALL, status NC30, sid BIN86, hostname NC128, program_name NC128, hostprocess NC10, cmd NC26,
    nt_domain NC128, nt_username NC128, net_address NC12, net_library NC12, loginame NC128, context_info BIN128,
    sql_handle BIN20, stmt_start INT, stmt_end INT, request_id INT, page_resource BIN8
);

pub(super) fn sessions(databases: &Databases) -> Result<Vec<Row>> {
    Ok(arranged(SESSIONS, &KNOWN, &OF_SESSIONS, rows(databases)?))
}

/// The same sessions by their old names.
pub(super) fn processes(databases: &Databases) -> Result<Vec<Row>> {
    // In the place of each column of KNOWN.
    const OLD_NAMES: [&str; 21] = [
        "spid",
        "login_time",
        "hostname",
        "program_name",
        "hostprocess",
        "",
        "loginame",
        "nt_domain",
        "nt_username",
        "status",
        "cpu",
        "memusage",
        "",
        "",
        "",
        "",
        "",
        "",
        "dbid",
        "open_tran",
        "",
    ];
    let same = [
        ("blocked", Same::Number(0)),
        ("waittime", Same::Number(0)),
        ("waittype", Same::Unknown),
        ("lastwaittype", Same::Text("")),
        ("waitresource", Same::Text("")),
        ("uid", Same::Number(1)),
        ("ecid", Same::Number(0)),
        ("request_id", Same::Number(0)),
        ("net_library", Same::Text("LPC")),
    ];
    let known = OLD_NAMES.map(|name| (name, SqlType::Int));
    Ok(arranged(PROCESSES, &known, &same, rows(databases)?))
}

/// With the columns [`KNOWN`].
fn rows(databases: &Databases) -> Result<Vec<Row>> {
    let shared = &databases.shared;
    let user = Value::Text(shared.user().to_owned());
    let mut rows = vec![vec![
        Value::Integer(shared.session_id()),
        Value::Text(shared.begun().to_iso(SqlType::DateTime)),
        text(shared.server_name()),
        text(shared.application()),
        Value::Integer(std::process::id().into()),
        Value::Null,
        user.clone(),
        Value::Null,
        Value::Null,
        text("running"),
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        flag(true),
        Value::Integer(ISOLATION),
        user,
        Value::Integer(databases.current_id()),
        Value::Integer(shared.transactions().into()),
        Value::Null,
    ]];
    for one in others(databases)? {
        let mut row = vec![Value::Null; KNOWN.len()];
        row[0] = Value::Integer(one.session_id);
        row[2] = text(shared.server_name());
        row[4] = Value::Integer(one.pid.into());
        row[9] = text("running");
        row[15] = flag(true);
        row[16] = Value::Integer(ISOLATION);
        rows.push(row);
    }
    Ok(rows)
}

/// No connection leads to a session: it lies in the process that asks, as a local one of SQL Server's does nearly.
pub(super) fn connections(databases: &Databases) -> Result<Vec<Row>> {
    let row = |session_id: i64, since: Value, handle: Value| {
        vec![
            Value::Integer(session_id),
            Value::Integer(session_id),
            since,
            text("Shared memory"),
            text("TSQL"),
            text("FALSE"),
            Value::Null,
            text("<local machine>"),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            handle,
        ]
    };
    let begun = Value::Text(databases.shared.begun().to_iso(SqlType::DateTime));
    let mut rows = vec![row(databases.shared.session_id(), begun, Value::Null)];
    for one in others(databases)? {
        rows.push(row(one.session_id, Value::Null, Value::Blob(one.handle())));
    }
    Ok(rows)
}

/// Those of other sessions, one for each.
fn others(databases: &Databases) -> Result<Vec<Asking>> {
    let mut met = BTreeSet::from([databases.shared.session_id()]);
    let mut all = asking(databases)?;
    all.retain(|one| met.insert(one.session_id));
    Ok(all)
}

pub(super) fn get_sql(databases: &Databases) -> Result<Vec<Row>> {
    sql_text(databases)
}

pub(super) fn sql_text(databases: &Databases) -> Result<Vec<Row>> {
    let row = |one: Asking| {
        let handle = Value::Blob(one.handle());
        vec![Value::Null, Value::Null, Value::Null, flag(false), optional(one.statement), handle]
    };
    Ok(asking(databases)?.into_iter().map(row).collect())
}

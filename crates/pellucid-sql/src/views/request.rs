//! sys.dm_exec_requests: backups, restores and scans of every process of the instance.

use pellucid_keyring::Run;
use sha2::{Digest, Sha256};

use super::lists::{arranged, Same};
use super::{text, Column, Row};
use crate::execute::state_of_process;
use crate::message::Result;
use crate::session::Databases;
use crate::values::convert::Value;
use crate::values::types::{Length, SqlType};

/// Source: Microsoft's "sys.dm_exec_requests".
pub(super) const REQUESTS: &[Column] = columns!(
    session_id SMALL, request_id INT, start_time TIME, status N30, command N32, sql_handle BIN64,
    statement_start_offset INT, statement_end_offset INT, plan_handle BIN64, database_id SMALL, user_id INT,
    connection_id GUID, blocking_session_id SMALL, wait_type DESC, wait_time INT, last_wait_type DESC,
    wait_resource N256, open_transaction_count INT, open_resultset_count INT, transaction_id BIGINT,
    context_info BIN128, percent_complete REAL, estimated_completion_time BIGINT, cpu_time INT,
    total_elapsed_time INT, scheduler_id INT, task_address BIN8, reads BIGINT, writes BIGINT, logical_reads BIGINT,
    text_size INT, language N128, date_format N3, date_first SMALL, quoted_identifier BIT, arithabort BIT,
    ansi_null_dflt_on BIT, ansi_defaults BIT, ansi_warnings BIT, ansi_padding BIT, ansi_nulls BIT,
    concat_null_yields_null BIT, transaction_isolation_level SMALL, lock_timeout INT, deadlock_priority INT,
    row_count BIGINT, prev_error INT, nest_level INT, granted_query_memory INT, executing_managed_code BIT,
    group_id INT, query_hash BIN8, query_plan_hash BIN8, statement_sql_handle BIN64, statement_context_id BIGINT,
    dop INT, parallel_worker_count INT, external_script_request_id GUID, is_resumable BIT, page_resource BIN8,
    page_server_reads BIGINT, dist_statement_id GUID
);

/// What every request has; the settings of its session are unknown.
const OF_REQUESTS: [(&str, Same); 23] = [
    ("user_id", Same::Number(1)),
    ("last_wait_type", Same::Text("")),
    ("wait_resource", Same::Text("")),
    ("open_transaction_count", Same::Number(0)),
    ("open_resultset_count", Same::Number(1)),
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
    ("transaction_isolation_level", Same::Number(4)),
    ("lock_timeout", Same::Number(-1)),
    ("deadlock_priority", Same::Number(0)),
    ("prev_error", Same::Number(0)),
    ("nest_level", Same::Number(0)),
    ("granted_query_memory", Same::Number(0)),
    ("dop", Same::Number(1)),
];

/// What is known of a request.
const KNOWN: [Column; 20] = [
    ("session_id", SqlType::SmallInt),
    ("request_id", SqlType::Int),
    ("start_time", SqlType::DateTime),
    ("status", SqlType::nvarchar(30)),
    ("command", SqlType::nvarchar(32)),
    ("sql_handle", SqlType::VarBinary(Length::Of(64))),
    ("statement_start_offset", SqlType::Int),
    ("statement_end_offset", SqlType::Int),
    ("plan_handle", SqlType::VarBinary(Length::Of(64))),
    ("database_id", SqlType::SmallInt),
    ("blocking_session_id", SqlType::SmallInt),
    ("wait_type", SqlType::nvarchar(60)),
    ("wait_time", SqlType::Int),
    ("percent_complete", SqlType::Real),
    ("estimated_completion_time", SqlType::BigInt),
    ("cpu_time", SqlType::Int),
    ("total_elapsed_time", SqlType::Int),
    ("reads", SqlType::BigInt),
    ("writes", SqlType::BigInt),
    ("logical_reads", SqlType::BigInt),
];

/// A backup or restore of a session.
pub(super) struct Asking {
    pub pid: u32,
    started: i64,
    pub session_id: i64,
    command: String,
    start_time: Value,
    database: Option<String>,
    percent: Value,
    left_ms: Value,
    elapsed_ms: Value,
    /// The text of the statement, secrets masked.
    pub statement: Option<String>,
}

impl Asking {
    /// The bytes that `sys.dm_exec_sql_text` finds the statement by. SQL Server's begin with 2 for a text of a client's, too.
    pub fn handle(&self) -> Vec<u8> {
        let mut hash = Sha256::new();
        hash.update(format!("{} {} {}", self.pid, self.started, self.session_id));
        let mut handle = vec![2, 0, 0, 0];
        handle.extend_from_slice(&hash.finalize());
        handle
    }
}

/// The backups and restores of processes that are there.
pub(super) fn asking(databases: &Databases) -> Result<Vec<Asking>> {
    let msdb = databases.instance.msdb();
    let mut found = Vec::new();
    let mut gone = Vec::new();
    {
        let mut statement = msdb.prepare(
            "SELECT pid, started, session_id, command, start_time, database_name, percent_complete, estimated_ms, \
             cast((julianday('now') - julianday(start_time)) * 86400000 AS INTEGER), \
             (SELECT statement FROM pellucid_request_text AS t WHERE t.pid = r.pid AND t.started = r.started \
              AND t.session_id = r.session_id) FROM pellucid_request AS r",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let one = Asking {
                pid: row.get(0)?,
                started: row.get(1)?,
                session_id: row.get(2)?,
                command: row.get(3)?,
                start_time: row.get(4)?,
                database: row.get(5)?,
                percent: row.get(6)?,
                left_ms: row.get(7)?,
                elapsed_ms: row.get(8)?,
                statement: row.get(9)?,
            };
            match state_of_process((one.pid, u64::try_from(one.started).unwrap_or(0))) {
                true => found.push(one),
                false => gone.push(one.pid),
            }
        }
    }
    for pid in gone {
        // Killed before it could take its row away. What keeps it from being taken now does so until the next look.
        let _ = msdb.execute("DELETE FROM pellucid_request WHERE pid = ?1", [pid]);
        let _ = msdb.execute("DELETE FROM pellucid_request_text WHERE pid = ?1", [pid]);
    }
    Ok(found)
}

pub(super) fn requests(databases: &Databases) -> Result<Vec<Row>> {
    let instance = &databases.instance;
    let all = instance.databases()?;
    let mut rows = Vec::new();
    for one in asking(databases)? {
        let known = one
            .database
            .as_ref()
            .and_then(|name| all.iter().find(|known| known.name.eq_ignore_ascii_case(name)));
        rows.push(vec![
            Value::Integer(one.session_id),
            Value::Integer(0),
            one.start_time.clone(),
            text("running"),
            text(&one.command),
            Value::Blob(one.handle()),
            // The text is the statement itself, to its end.
            Value::Integer(0),
            Value::Integer(-1),
            Value::Null,
            known.map_or(Value::Null, |known| Value::Integer(known.id)),
            Value::Integer(0),
            Value::Null,
            Value::Integer(0),
            one.percent,
            one.left_ms,
            Value::Null,
            one.elapsed_ms,
            Value::Null,
            Value::Null,
            Value::Null,
        ]);
    }
    let now = u64::try_from(time::OffsetDateTime::now_utc().unix_timestamp()).unwrap_or(0);
    for known in &all {
        let Some(run) = Run::find(instance.home(), &known.path) else { continue };
        if run.stopped.is_some() || !run.process.is_alive() {
            continue;
        }
        let percent = f64::from(run.done) * 100.0 / f64::from(run.pages.max(1));
        let left = (run.rate > 0.0)
            .then(|| (f64::from(run.pages.saturating_sub(run.done)) / run.rate * 1000.0) as i64);
        rows.push(vec![
            Value::Integer(i64::from(run.process.pid % 32_768)),
            Value::Integer(0),
            super::time(run.started),
            text("background"),
            text("ALTER DATABASE ENCRYPTION"),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Integer(known.id),
            Value::Integer(0),
            Value::Null,
            Value::Integer(0),
            Value::Real(percent.min(100.0)),
            left.map_or(Value::Null, Value::Integer),
            Value::Null,
            Value::Integer(
                i64::try_from(now.saturating_sub(run.started).saturating_mul(1000)).unwrap_or(0),
            ),
            Value::Null,
            Value::Null,
            Value::Null,
        ]);
    }
    Ok(arranged(REQUESTS, &KNOWN, &OF_REQUESTS, rows))
}

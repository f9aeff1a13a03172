//! sys.dm_exec_requests: backups, restores and scans of every process of the instance.

use pellucid_keyring::Run;

use super::{text, Column, Row};
use crate::execute::state_of_process;
use crate::message::Result;
use crate::session::Databases;
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// Source: Microsoft's "sys.dm_exec_requests".
pub(super) const REQUESTS: [Column; 11] = [
    ("session_id", SqlType::SmallInt),
    ("request_id", SqlType::Int),
    ("start_time", SqlType::DateTime),
    ("status", SqlType::nvarchar(30)),
    ("command", SqlType::nvarchar(32)),
    ("database_id", SqlType::SmallInt),
    ("blocking_session_id", SqlType::SmallInt),
    ("wait_type", SqlType::nvarchar(60)),
    ("percent_complete", SqlType::Real),
    ("estimated_completion_time", SqlType::BigInt),
    ("total_elapsed_time", SqlType::Int),
];

pub(super) fn requests(databases: &Databases) -> Result<Vec<Row>> {
    let instance = &databases.instance;
    let all = instance.databases()?;
    let mut rows = Vec::new();
    let mut gone = Vec::new();
    {
        let mut statement = instance.msdb().prepare(
            "SELECT pid, started, session_id, command, start_time, database_name, percent_complete, estimated_ms, \
             cast((julianday('now') - julianday(start_time)) * 86400000 AS INTEGER) FROM pellucid_request",
        )?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            let (pid, started): (u32, i64) = (row.get(0)?, row.get(1)?);
            if !state_of_process((pid, u64::try_from(started).unwrap_or(0))) {
                gone.push(pid);
                continue;
            }
            let name: Option<String> = row.get(5)?;
            let known = name
                .and_then(|name| all.iter().find(|known| known.name.eq_ignore_ascii_case(&name)));
            rows.push(vec![
                row.get(2)?,
                Value::Integer(0),
                row.get(4)?,
                text("running"),
                row.get(3)?,
                known.map_or(Value::Null, |known| Value::Integer(known.id)),
                Value::Integer(0),
                Value::Null,
                row.get(6)?,
                row.get(7)?,
                row.get(8)?,
            ]);
        }
    }
    for pid in gone {
        // Killed before it could take its row away.
        instance.msdb().execute("DELETE FROM pellucid_request WHERE pid = ?1", [pid])?;
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
            Value::Integer(known.id),
            Value::Integer(0),
            Value::Null,
            Value::Real(percent.min(100.0)),
            left.map_or(Value::Null, Value::Integer),
            Value::Integer(
                i64::try_from(now.saturating_sub(run.started).saturating_mul(1000)).unwrap_or(0),
            ),
        ]);
    }
    Ok(rows)
}

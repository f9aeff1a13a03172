//! The tables of SQL Server Agent in `msdb`: jobs, steps, schedules, history, what runs, categories, operators.

use super::{Column, Row};
use crate::jobs::accounts;
use crate::message::Result;
use crate::session::Databases;
use crate::values::convert::Value;
use crate::values::types::{Length, SqlType};

const NAME: SqlType = SqlType::SYSNAME;
const GUID: SqlType = SqlType::UniqueIdentifier;
const INT: SqlType = SqlType::Int;
const BYTE: SqlType = SqlType::TinyInt;
const TIME: SqlType = SqlType::DateTime;
const ADDRESS: SqlType = SqlType::nvarchar(100);
const SID: SqlType = SqlType::VarBinary(Length::Of(85));

/// Source: Microsoft's "dbo.sysjobs".
pub(super) const JOBS: [Column; 19] = [
    ("job_id", GUID),
    ("originating_server_id", INT),
    ("name", NAME),
    ("enabled", BYTE),
    ("description", SqlType::nvarchar(512)),
    ("start_step_id", INT),
    ("category_id", INT),
    ("owner_sid", SID),
    ("notify_level_eventlog", INT),
    ("notify_level_email", INT),
    ("notify_level_netsend", INT),
    ("notify_level_page", INT),
    ("notify_email_operator_id", INT),
    ("notify_netsend_operator_id", INT),
    ("notify_page_operator_id", INT),
    ("delete_level", INT),
    ("date_created", TIME),
    ("date_modified", TIME),
    ("version_number", INT),
];

/// Source: Microsoft's "dbo.sysjobhistory".
pub(super) const JOB_HISTORY: [Column; 16] = [
    ("instance_id", INT),
    ("job_id", GUID),
    ("step_id", INT),
    ("step_name", NAME),
    ("sql_message_id", INT),
    ("sql_severity", INT),
    ("message", SqlType::nvarchar(4000)),
    ("run_status", INT),
    ("run_date", INT),
    ("run_time", INT),
    ("run_duration", INT),
    ("operator_id_emailed", INT),
    ("operator_id_netsent", INT),
    ("operator_id_paged", INT),
    ("retries_attempted", INT),
    ("server", NAME),
];

/// Source: Microsoft's "dbo.sysjobsteps".
pub(super) const JOB_STEPS: [Column; 26] = [
    ("job_id", GUID),
    ("step_id", INT),
    ("step_name", NAME),
    ("subsystem", SqlType::nvarchar(40)),
    ("command", SqlType::NVARCHAR_MAX),
    ("flags", INT),
    ("additional_parameters", SqlType::NVARCHAR_MAX),
    ("cmdexec_success_code", INT),
    ("on_success_action", BYTE),
    ("on_success_step_id", INT),
    ("on_fail_action", BYTE),
    ("on_fail_step_id", INT),
    ("server", NAME),
    ("database_name", NAME),
    ("database_user_name", NAME),
    ("retry_attempts", INT),
    ("retry_interval", INT),
    ("os_run_priority", INT),
    ("output_file_name", SqlType::nvarchar(200)),
    ("last_run_outcome", INT),
    ("last_run_duration", INT),
    ("last_run_retries", INT),
    ("last_run_date", INT),
    ("last_run_time", INT),
    ("proxy_id", INT),
    ("step_uid", GUID),
];

/// Source: Microsoft's "dbo.sysjobactivity".
pub(super) const JOB_ACTIVITY: [Column; 11] = [
    ("session_id", INT),
    ("job_id", GUID),
    ("run_requested_date", TIME),
    ("run_requested_source", NAME),
    ("queued_date", TIME),
    ("start_execution_date", TIME),
    ("last_executed_step_id", INT),
    ("last_executed_step_date", TIME),
    ("stop_execution_date", TIME),
    ("job_history_id", INT),
    ("next_scheduled_run_date", TIME),
];

/// Source: Microsoft's "dbo.sysjobservers".
pub(super) const JOB_SERVERS: [Column; 7] = [
    ("job_id", GUID),
    ("server_id", INT),
    ("last_run_outcome", BYTE),
    ("last_outcome_message", SqlType::nvarchar(4000)),
    ("last_run_date", INT),
    ("last_run_time", INT),
    ("last_run_duration", INT),
];

/// Source: Microsoft's "dbo.sysjobschedules".
pub(super) const JOB_SCHEDULES: [Column; 4] =
    [("schedule_id", INT), ("job_id", GUID), ("next_run_date", INT), ("next_run_time", INT)];

/// Source: Microsoft's "dbo.sysschedules".
pub(super) const SCHEDULES: [Column; 19] = [
    ("schedule_id", INT),
    ("schedule_uid", GUID),
    ("originating_server_id", INT),
    ("name", NAME),
    ("owner_sid", SID),
    ("enabled", INT),
    ("freq_type", INT),
    ("freq_interval", INT),
    ("freq_subday_type", INT),
    ("freq_subday_interval", INT),
    ("freq_relative_interval", INT),
    ("freq_recurrence_factor", INT),
    ("active_start_date", INT),
    ("active_end_date", INT),
    ("active_start_time", INT),
    ("active_end_time", INT),
    ("date_created", TIME),
    ("date_modified", TIME),
    ("version_number", INT),
];

/// Source: Microsoft's "dbo.sysjobs", and its view.
pub(super) const JOBS_VIEW: [Column; 21] = [
    ("job_id", GUID),
    ("originating_server", SqlType::nvarchar(128)),
    ("name", NAME),
    ("enabled", BYTE),
    ("description", SqlType::nvarchar(512)),
    ("start_step_id", INT),
    ("category_id", INT),
    ("owner_sid", SID),
    ("notify_level_eventlog", INT),
    ("notify_level_email", INT),
    ("notify_level_netsend", INT),
    ("notify_level_page", INT),
    ("notify_email_operator_id", INT),
    ("notify_netsend_operator_id", INT),
    ("notify_page_operator_id", INT),
    ("delete_level", INT),
    ("date_created", TIME),
    ("date_modified", TIME),
    ("version_number", INT),
    ("originating_server_id", INT),
    ("master_server", SqlType::Bit),
];

/// Source: Microsoft's "dbo.syscategories".
pub(super) const CATEGORIES: [Column; 4] =
    [("category_id", INT), ("category_class", INT), ("category_type", BYTE), ("name", NAME)];

/// Source: Microsoft's "dbo.syssessions".
pub(super) const SESSIONS: [Column; 2] = [("session_id", INT), ("agent_start_date", TIME)];

/// Source: Microsoft's "dbo.sysoperators".
pub(super) const OPERATORS: [Column; 20] = [
    ("id", INT),
    ("name", NAME),
    ("enabled", BYTE),
    ("email_address", ADDRESS),
    ("last_email_date", INT),
    ("last_email_time", INT),
    ("pager_address", ADDRESS),
    ("last_pager_date", INT),
    ("last_pager_time", INT),
    ("weekday_pager_start_time", INT),
    ("weekday_pager_end_time", INT),
    ("saturday_pager_start_time", INT),
    ("saturday_pager_end_time", INT),
    ("sunday_pager_start_time", INT),
    ("sunday_pager_end_time", INT),
    ("pager_days", BYTE),
    ("netsend_address", ADDRESS),
    ("last_netsend_date", INT),
    ("last_netsend_time", INT),
    ("category_id", INT),
];

pub(super) fn jobs(databases: &Databases) -> Result<Vec<Row>> {
    let own = [("originating_server_id", "0"), ("owner_sid", "owner_uid")];
    read(databases, &JOBS, &own, "pellucid_job")
}

pub(super) fn jobs_view(databases: &Databases) -> Result<Vec<Row>> {
    let server = literal(databases.shared.server_name());
    let own = [
        ("originating_server_id", "0"),
        ("originating_server", server.as_str()),
        ("owner_sid", "owner_uid"),
        ("master_server", "0"),
    ];
    read(databases, &JOBS_VIEW, &own, "pellucid_job")
}

pub(super) fn steps(databases: &Databases) -> Result<Vec<Row>> {
    let own = [("proxy_id", "NULL"), ("step_uid", "NULL")];
    let mut rows = read(databases, &JOB_STEPS, &own, "pellucid_job_step ORDER BY job_id, step_id")?;
    let sql = "SELECT j.owner_uid FROM pellucid_job_step AS s LEFT JOIN pellucid_job AS j ON j.job_id = s.job_id ORDER BY \
               s.job_id, s.step_id";
    let mut statement = databases.instance.msdb().prepare(sql)?;
    let owners = statement.query_map([], |row| row.get::<_, Option<i64>>(0))?;
    let owners = owners.collect::<rusqlite::Result<Vec<_>>>()?;
    let here = rustix::process::geteuid();
    let command = JOB_STEPS.iter().position(|(name, _)| *name == "command");
    for (row, owner) in rows.iter_mut().zip(owners) {
        let is_own = here.is_root() || owner == Some(i64::from(here.as_raw()));
        // Members of the instance's group see jobs of others, without what is secret in them.
        if let (false, Some(Value::Text(text))) = (is_own, command.and_then(|at| row.get_mut(at))) {
            *text = pellucid_tsql::secret::redact(text).into_owned();
        }
    }
    Ok(rows)
}

pub(super) fn servers(databases: &Databases) -> Result<Vec<Row>> {
    read(databases, &JOB_SERVERS, &[], "pellucid_job WHERE server_id IS NOT NULL")
}

pub(super) fn history(databases: &Databases) -> Result<Vec<Row>> {
    read(databases, &JOB_HISTORY, &[], "pellucid_job_history ORDER BY instance_id")
}

pub(super) fn schedules(databases: &Databases) -> Result<Vec<Row>> {
    let own = [("originating_server_id", "0"), ("owner_sid", "owner_uid")];
    read(databases, &SCHEDULES, &own, "pellucid_schedule ORDER BY schedule_id")
}

/// Without a next run it has 0 and 0, as there.
pub(super) fn job_schedules(databases: &Databases) -> Result<Vec<Row>> {
    let own = [
        (
            "next_run_date",
            "coalesce(CAST(strftime('%Y%m%d', next_run, 'unixepoch') AS INTEGER), 0)",
        ),
        (
            "next_run_time",
            "coalesce(CAST(strftime('%H%M%S', next_run, 'unixepoch') AS INTEGER), 0)",
        ),
    ];
    read(databases, &JOB_SCHEDULES, &own, "pellucid_job_schedule ORDER BY schedule_id, job_id")
}

/// A row of each job, in the session of the agent that was begun last: whichever ran it, that one goes on.
pub(super) fn activity(databases: &Databases) -> Result<Vec<Row>> {
    let own = [
        ("session_id", "(SELECT max(session_id) FROM pellucid_agent_session)"),
        ("job_id", "j.job_id"),
        ("queued_date", "NULL"),
        (
            "next_scheduled_run_date",
            "(SELECT strftime('%Y-%m-%d %H:%M:%S', min(next_run), 'unixepoch') FROM pellucid_job_schedule AS s \
             JOIN pellucid_schedule AS t USING (schedule_id) WHERE s.job_id = j.job_id AND t.enabled AND j.enabled)",
        ),
    ];
    let from = "pellucid_job AS j LEFT JOIN pellucid_job_activity AS a USING (job_id) \
                WHERE EXISTS (SELECT 1 FROM pellucid_agent_session)";
    read(databases, &JOB_ACTIVITY, &own, from)
}

pub(super) fn categories(databases: &Databases) -> Result<Vec<Row>> {
    read(databases, &CATEGORIES, &[], "pellucid_job_category ORDER BY category_id")
}

pub(super) fn sessions(databases: &Databases) -> Result<Vec<Row>> {
    read(databases, &SESSIONS, &[], "pellucid_agent_session ORDER BY session_id")
}

/// Nothing was ever sent to any of them.
pub(super) fn operators(databases: &Databases) -> Result<Vec<Row>> {
    let own = [
        ("last_email_date", "0"),
        ("last_email_time", "0"),
        ("last_pager_date", "0"),
        ("last_pager_time", "0"),
        ("last_netsend_date", "0"),
        ("last_netsend_time", "0"),
    ];
    read(databases, &OPERATORS, &own, "pellucid_operator ORDER BY id")
}

/// The columns from where they are kept, each by its name unless `own` says otherwise.
fn read(
    databases: &Databases,
    columns: &[Column],
    own: &[(&str, &str)],
    from: &str,
) -> Result<Vec<Row>> {
    let of = |name: &str| {
        let found = own.iter().find(|(column, _)| *column == name);
        found.map_or_else(|| name.to_owned(), |(_, expression)| (*expression).to_owned())
    };
    let list: Vec<String> = columns.iter().map(|(name, _)| of(name)).collect();
    let msdb = databases.instance.msdb();
    let mut statement = msdb.prepare(&format!("SELECT {} FROM {from}", list.join(", ")))?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let mut values = Vec::with_capacity(columns.len());
        for (at, (_, data_type)) in columns.iter().enumerate() {
            values.push(match (row.get(at)?, *data_type) {
                // An owner is kept as the number of the account.
                (Value::Integer(uid), SqlType::VarBinary(_)) => {
                    Value::Blob(accounts::sid(u32::try_from(uid).unwrap_or(u32::MAX)))
                }
                (value, _) => value,
            });
        }
        found.push(values);
    }
    Ok(found)
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

//! sp_help_job

use super::{not_one_of, Call, Outputs, Procedure};
use crate::execute::Done;
use crate::jobs::accounts;
use crate::jobs::schedule::{date_number, time_number};
use crate::jobs::store::{self, Job};
use crate::message::Message;
use crate::session::Session;
use crate::values::convert::Value;
use crate::values::types::SqlType;

pub(super) const JOB: Procedure = Procedure {
    name: "sp_help_job",
    parameters: &[
        "job_id",
        "job_name",
        "job_aspect",
        "job_type",
        "owner_login_name",
        "subsystem",
        "category_name",
        "enabled",
        "execution_status",
        "date_comparator",
        "date_created",
        "date_last_modified",
        "description",
    ],
    run: job,
};

const NAME: SqlType = SqlType::SYSNAME;
const INT: SqlType = SqlType::Int;
const BYTE: SqlType = SqlType::TinyInt;
const TIME: SqlType = SqlType::DateTime;
const GUID: SqlType = SqlType::UniqueIdentifier;

const JOBS: [(&str, SqlType); 32] = [
    ("job_id", GUID),
    ("originating_server", SqlType::nvarchar(30)),
    ("name", NAME),
    ("enabled", BYTE),
    ("description", SqlType::nvarchar(512)),
    ("start_step_id", INT),
    ("category", NAME),
    ("owner", NAME),
    ("notify_level_eventlog", INT),
    ("notify_level_email", INT),
    ("notify_level_netsend", INT),
    ("notify_level_page", INT),
    ("notify_email_operator", NAME),
    ("notify_netsend_operator", NAME),
    ("notify_page_operator", NAME),
    ("delete_level", INT),
    ("date_created", TIME),
    ("date_modified", TIME),
    ("version_number", INT),
    ("last_run_date", INT),
    ("last_run_time", INT),
    ("last_run_outcome", INT),
    ("next_run_date", INT),
    ("next_run_time", INT),
    ("next_run_schedule_id", INT),
    ("current_execution_status", INT),
    ("current_execution_step", NAME),
    ("current_retry_attempt", INT),
    ("has_step", INT),
    ("has_schedule", INT),
    ("has_target", INT),
    ("type", INT),
];
const STEPS: [(&str, SqlType); 22] = [
    ("step_id", INT),
    ("step_name", NAME),
    ("subsystem", SqlType::nvarchar(40)),
    ("command", SqlType::NVARCHAR_MAX),
    ("flags", INT),
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
];
const SCHEDULES: [(&str, SqlType); 17] = [
    ("schedule_id", INT),
    ("schedule_name", NAME),
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
    ("next_run_date", INT),
    ("next_run_time", INT),
    ("schedule_uid", GUID),
];
const TARGETS: [(&str, SqlType); 7] = [
    ("server_id", INT),
    ("server_name", SqlType::nvarchar(30)),
    ("last_run_outcome", BYTE),
    ("last_outcome_message", SqlType::nvarchar(4000)),
    ("last_run_date", INT),
    ("last_run_time", INT),
    ("last_run_duration", INT),
];

/// `current_execution_status`
const EXECUTING: i64 = 1;
const IDLE: i64 = 4;

fn job(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    for parameter in
        ["subsystem", "date_comparator", "date_created", "date_last_modified", "description"]
    {
        if call.text(parameter)?.is_some() {
            return Err(Message::unsupported(format!("sp_help_job @{parameter}")).into());
        }
    }
    let is_multi_server =
        call.name("job_type")?.is_some_and(|kind| kind.eq_ignore_ascii_case("MULTI-SERVER"));
    let is_one = call.guid("job_id")?.is_some() || call.name("job_name")?.is_some();
    let aspect = call.name("job_aspect")?.map(|aspect| aspect.to_uppercase());
    let aspect = aspect.unwrap_or_else(|| if is_one { "ALL" } else { "JOB" }.to_owned());
    if !["ALL", "JOB", "STEPS", "SCHEDULES", "TARGETS"].contains(&aspect.as_str()) {
        return Err(not_one_of("job_aspect", "ALL, JOB, STEPS, SCHEDULES, TARGETS"));
    }
    let jobs = match is_one {
        true => vec![call.job(session.databases.instance.msdb())?],
        false => all(session)?,
    };
    let mut rows = Vec::new();
    for job in jobs.iter().filter(|_| !is_multi_server) {
        let row = job_row(session, job)?;
        if is_wanted(call, &row)? {
            rows.push(row);
        }
    }
    let shows = |which: &str| aspect == which || aspect == "ALL";
    if shows("JOB") {
        session.give_rows(&JOBS, rows)?;
    }
    let Some(one) = jobs.first().filter(|_| is_one) else {
        return match shows("JOB") {
            true => Ok(Outputs::new()),
            false => {
                Err(Message::of(crate::message::table::WHICH_JOB, [&"@job_id", &"@job_name"])
                    .into())
            }
        };
    };
    let sql = |columns: &[(&str, SqlType)], from: &str| {
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        format!("SELECT {} FROM {from}", names.join(", "))
    };
    if shows("STEPS") {
        let from = "pellucid_job_step WHERE job_id = ?1 ORDER BY step_id";
        let rows = select(session, &sql(&STEPS, from), one, STEPS.len())?;
        session.give_rows(&STEPS, rows)?;
    }
    if shows("SCHEDULES") {
        let from = "(SELECT s.*, s.name AS schedule_name, a.next_run AS next_run_date, a.next_run AS next_run_time, \
                    a.job_id FROM pellucid_schedule AS s JOIN pellucid_job_schedule AS a USING (schedule_id)) \
                    WHERE job_id = ?1 ORDER BY schedule_id";
        let mut rows = select(session, &sql(&SCHEDULES, from), one, SCHEDULES.len())?;
        for row in &mut rows {
            let next = next_numbers(row.get(14));
            row[14] = Value::Integer(next.0);
            row[15] = Value::Integer(next.1);
        }
        session.give_rows(&SCHEDULES, rows)?;
    }
    if shows("TARGETS") {
        let from = "pellucid_job WHERE job_id = ?1 AND server_id IS NOT NULL";
        let columns = sql(&TARGETS, from).replace("server_name", "?2");
        let server = session.shared.server_name().to_owned();
        let msdb = session.databases.instance.msdb();
        let mut statement = msdb.prepare(&columns)?;
        let row = |row: &rusqlite::Row<'_>| (0..TARGETS.len()).map(|at| row.get(at)).collect();
        let rows: Vec<Vec<Value>> =
            statement.query_map([&one.id, &server], row)?.collect::<rusqlite::Result<_>>()?;
        drop(statement);
        session.give_rows(&TARGETS, rows)?;
    }
    Ok(Outputs::new())
}

fn all(session: &Session) -> Done<Vec<Job>> {
    let msdb = session.databases.instance.msdb();
    let mut statement = msdb.prepare("SELECT job_id FROM pellucid_job ORDER BY name")?;
    let ids = statement.query_map([], |row| row.get::<_, String>(0))?;
    let ids = ids.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut jobs = Vec::new();
    for id in ids {
        jobs.extend(store::job_of(msdb, &id)?);
    }
    Ok(jobs)
}

fn select(session: &Session, sql: &str, job: &Job, count: usize) -> Done<Vec<Vec<Value>>> {
    let mut statement = session.databases.instance.msdb().prepare(sql)?;
    let row = |row: &rusqlite::Row<'_>| (0..count).map(|at| row.get(at)).collect();
    let rows = statement.query_map([&job.id], row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Whether a row is one of those that the call asks for.
fn is_wanted(call: &Call<'_>, row: &[Value]) -> Done<bool> {
    let is = |at: usize, name: Option<String>| match (name, &row[at]) {
        (None, _) => true,
        (Some(name), Value::Text(text)) => name.eq_ignore_ascii_case(text),
        (Some(_), _) => false,
    };
    let number = |at: usize, number: Option<i64>| {
        number.is_none_or(|number| row[at] == Value::Integer(number))
    };
    Ok(is(6, call.name("category_name")?)
        && is(7, call.name("owner_login_name")?)
        && number(3, call.one_of("enabled", &[0, 1])?)
        && number(25, call.within("execution_status", 1, 7)?))
}

fn job_row(session: &Session, job: &Job) -> Done<Vec<Value>> {
    let msdb = session.databases.instance.msdb();
    let operator = |way: &str| {
        format!("coalesce((SELECT name FROM pellucid_operator WHERE id = notify_{way}_operator_id), '(unknown)')")
    };
    let sql = format!(
        "SELECT job_id, ?2, name, enabled, description, start_step_id, \
         (SELECT name FROM pellucid_job_category AS c WHERE c.category_id = j.category_id), owner_uid, \
         notify_level_eventlog, notify_level_email, notify_level_netsend, notify_level_page, {}, {}, {}, delete_level, \
         date_created, date_modified, version_number, last_run_date, last_run_time, last_run_outcome, \
         (SELECT min(next_run) FROM pellucid_job_schedule AS a JOIN pellucid_schedule AS s USING (schedule_id) \
          WHERE a.job_id = j.job_id AND s.enabled), NULL, \
         (SELECT a.schedule_id FROM pellucid_job_schedule AS a JOIN pellucid_schedule AS s USING (schedule_id) \
          WHERE a.job_id = j.job_id AND s.enabled AND next_run IS NOT NULL ORDER BY next_run LIMIT 1), \
         {IDLE}, '0 (unknown)', 0, (SELECT count(*) FROM pellucid_job_step AS t WHERE t.job_id = j.job_id), \
         (SELECT count(*) FROM pellucid_job_schedule AS a WHERE a.job_id = j.job_id), server_id IS NOT NULL, server_id IS NOT NULL \
         FROM pellucid_job AS j WHERE job_id = ?1",
        operator("email"),
        operator("netsend"),
        operator("page")
    );
    let server = session.shared.server_name();
    let mut row: Vec<Value> = msdb.query_row(&sql, [job.id.as_str(), server], |row| {
        (0..JOBS.len()).map(|at| row.get(at)).collect()
    })?;
    row[7] = Value::Text(accounts::name(job.owner));
    let next = next_numbers(row.get(22));
    row[22] = Value::Integer(next.0);
    row[23] = Value::Integer(next.1);
    if row[24] == Value::Null {
        row[24] = Value::Integer(0);
    }
    if store::is_running(msdb, job)? {
        row[25] = Value::Integer(EXECUTING);
        let sql = "SELECT step_id || ' (' || step_name || ')' FROM pellucid_job_step AS t \
                   JOIN pellucid_job_activity AS a USING (job_id) \
                   WHERE job_id = ?1 AND step_id = a.last_executed_step_id";
        if let Ok(step) = msdb.query_row(sql, [&job.id], |row| row.get::<_, String>(0)) {
            row[26] = Value::Text(step);
        }
    }
    Ok(row)
}

/// Seconds since 1970 as `yyyymmdd` and `hhmmss`; 0 and 0 where there is no next run.
fn next_numbers(next: Option<&Value>) -> (i64, i64) {
    match next {
        Some(Value::Integer(seconds)) => store::moment(*seconds)
            .map_or((0, 0), |at| (date_number(at.date()), time_number(at.time()))),
        _ => (0, 0),
    }
}

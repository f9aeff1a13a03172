//! Jobs and schedules as they are kept in `msdb`.

use pellucid_keyring::ProcessId;
use rusqlite::{Connection, OptionalExtension, Row};
use time::{OffsetDateTime, PrimitiveDateTime};

use super::schedule::{next_run, Schedule};

/// Now, as `msdb` keeps times.
pub(crate) const NOW: &str = "strftime('%Y-%m-%d %H:%M:%f', 'now')";

/// What identifies a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    pub id: String,
    pub name: String,
    pub owner: u32,
    pub is_enabled: bool,
    /// Whether sp_add_jobserver was called.
    pub has_server: bool,
}

const JOB: &str = "job_id, name, owner_uid, enabled, server_id IS NOT NULL";

fn job(row: &Row<'_>) -> rusqlite::Result<Job> {
    Ok(Job {
        id: row.get(0)?,
        name: row.get(1)?,
        owner: row.get(2)?,
        is_enabled: row.get(3)?,
        has_server: row.get(4)?,
    })
}

/// The job of a name.
pub(crate) fn job_named(msdb: &Connection, name: &str) -> rusqlite::Result<Option<Job>> {
    let sql = format!("SELECT {JOB} FROM pellucid_job WHERE name = ?1");
    msdb.query_row(&sql, [name], job).optional()
}

/// The job of a number.
pub(crate) fn job_of(msdb: &Connection, id: &str) -> rusqlite::Result<Option<Job>> {
    let sql = format!("SELECT {JOB} FROM pellucid_job WHERE job_id = ?1");
    msdb.query_row(&sql, [id], job).optional()
}

/// A job was changed.
pub(crate) fn touch(msdb: &Connection, job: &Job) -> rusqlite::Result<()> {
    let sql = format!(
        "UPDATE pellucid_job SET version_number = version_number + 1, date_modified = {NOW} WHERE job_id = ?1"
    );
    msdb.execute(&sql, [&job.id]).map(drop)
}

/// How many steps it has.
pub(crate) fn steps(msdb: &Connection, job: &Job) -> rusqlite::Result<i64> {
    let sql = "SELECT count(*) FROM pellucid_job_step WHERE job_id = ?1";
    msdb.query_row(sql, [&job.id], |row| row.get(0))
}

const SCHEDULE: &str = "freq_type, freq_interval, freq_subday_type, freq_subday_interval, freq_relative_interval, \
                        freq_recurrence_factor, active_start_date, active_end_date, active_start_time, active_end_time";

/// A schedule.
pub(crate) fn schedule_of(msdb: &Connection, id: i64) -> rusqlite::Result<Schedule> {
    let sql = format!("SELECT {SCHEDULE} FROM pellucid_schedule WHERE schedule_id = ?1");
    msdb.query_row(&sql, [id], |row| {
        Ok(Schedule {
            freq_type: row.get(0)?,
            freq_interval: row.get(1)?,
            freq_subday_type: row.get(2)?,
            freq_subday_interval: row.get(3)?,
            freq_relative_interval: row.get(4)?,
            freq_recurrence_factor: row.get(5)?,
            active_start_date: row.get(6)?,
            active_end_date: row.get(7)?,
            active_start_time: row.get(8)?,
            active_end_time: row.get(9)?,
        })
    })
}

/// A new schedule; its number.
pub(crate) fn add_schedule(
    msdb: &Connection,
    (name, uid, owner, is_enabled): (&str, &str, u32, bool),
    schedule: &Schedule,
) -> rusqlite::Result<i64> {
    let sql = format!(
        "INSERT INTO pellucid_schedule(name, schedule_uid, owner_uid, enabled, {SCHEDULE}, date_created, date_modified) \
         VALUES (?1, ?2, ?3, ?4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, {NOW}, {NOW})"
    );
    msdb.execute(&sql, (name, uid, owner, is_enabled))?;
    let id = msdb.last_insert_rowid();
    write(msdb, id, schedule)?;
    Ok(id)
}

/// Changes a schedule, and when the jobs of it run next.
pub(crate) fn change_schedule(
    msdb: &Connection,
    id: i64,
    (name, is_enabled): (&str, bool),
    schedule: &Schedule,
) -> rusqlite::Result<()> {
    let sql = format!(
        "UPDATE pellucid_schedule SET name = ?2, enabled = ?3, version_number = version_number + 1, date_modified = {NOW} \
         WHERE schedule_id = ?1"
    );
    msdb.execute(&sql, (id, name, is_enabled))?;
    write(msdb, id, schedule)?;
    let next = next_from_now(schedule);
    msdb.execute(
        "UPDATE pellucid_job_schedule SET next_run = ?2 WHERE schedule_id = ?1",
        (id, next),
    )
    .map(drop)
}

fn write(msdb: &Connection, id: i64, schedule: &Schedule) -> rusqlite::Result<()> {
    let sql = "UPDATE pellucid_schedule SET freq_type = ?2, freq_interval = ?3, freq_subday_type = ?4, \
               freq_subday_interval = ?5, freq_relative_interval = ?6, freq_recurrence_factor = ?7, \
               active_start_date = ?8, active_end_date = ?9, active_start_time = ?10, active_end_time = ?11 \
               WHERE schedule_id = ?1";
    let values = [
        id,
        schedule.freq_type,
        schedule.freq_interval,
        schedule.freq_subday_type,
        schedule.freq_subday_interval,
        schedule.freq_relative_interval,
        schedule.freq_recurrence_factor,
        schedule.active_start_date,
        schedule.active_end_date,
        schedule.active_start_time,
        schedule.active_end_time,
    ];
    msdb.execute(sql, values).map(drop)
}

/// A job runs by a schedule from now on.
pub(crate) fn attach(msdb: &Connection, job: &Job, schedule: i64) -> rusqlite::Result<()> {
    let next = next_from_now(&schedule_of(msdb, schedule)?);
    let sql = "INSERT OR IGNORE INTO pellucid_job_schedule(schedule_id, job_id, next_run) VALUES (?1, ?2, ?3)";
    msdb.execute(sql, (schedule, &job.id, next)).map(drop)
}

/// A job that was disabled has missed nothing.
pub(crate) fn reschedule(msdb: &Connection, job: &Job) -> rusqlite::Result<()> {
    for schedule in schedules(msdb, job)? {
        let next = next_from_now(&schedule_of(msdb, schedule)?);
        let sql =
            "UPDATE pellucid_job_schedule SET next_run = ?3 WHERE schedule_id = ?1 AND job_id = ?2";
        msdb.execute(sql, (schedule, &job.id, next))?;
    }
    Ok(())
}

/// The schedules of a job.
pub(crate) fn schedules(msdb: &Connection, job: &Job) -> rusqlite::Result<Vec<i64>> {
    let sql =
        "SELECT schedule_id FROM pellucid_job_schedule WHERE job_id = ?1 ORDER BY schedule_id";
    let mut statement = msdb.prepare(sql)?;
    let rows = statement.query_map([&job.id], |row| row.get(0))?;
    rows.collect()
}

/// Takes a job away, with its steps, activity and, unless it is to stay, its history; schedules that no other job has go
/// with it if they are to.
pub(crate) fn delete_job(
    msdb: &Connection,
    job: &Job,
    with_history: bool,
    with_schedules: bool,
) -> rusqlite::Result<()> {
    let attached = schedules(msdb, job)?;
    let mut tables = vec![
        "pellucid_job_step",
        "pellucid_job_schedule",
        "pellucid_job_request",
        "pellucid_job_activity",
        "pellucid_job",
    ];
    if with_history {
        tables.push("pellucid_job_history");
    }
    for table in tables {
        msdb.execute(&format!("DELETE FROM {table} WHERE job_id = ?1"), [&job.id])?;
    }
    for schedule in attached.into_iter().filter(|_| with_schedules) {
        delete_unused(msdb, schedule)?;
    }
    Ok(())
}

/// Takes a schedule away that no job runs by.
pub(crate) fn delete_unused(msdb: &Connection, schedule: i64) -> rusqlite::Result<()> {
    let sql = "DELETE FROM pellucid_schedule WHERE schedule_id = ?1 AND schedule_id NOT IN \
               (SELECT schedule_id FROM pellucid_job_schedule)";
    msdb.execute(sql, [schedule]).map(drop)
}

/// The next run behind now, in seconds since 1970.
pub(crate) fn next_from_now(schedule: &Schedule) -> Option<i64> {
    next_from(schedule, OffsetDateTime::now_utc().unix_timestamp())
}

/// The next run behind a moment, both in seconds since 1970.
pub(crate) fn next_from(schedule: &Schedule, after: i64) -> Option<i64> {
    let next = next_run(schedule, moment(after)?)?;
    Some(next.assume_utc().unix_timestamp())
}

/// Seconds since 1970 as a date and time.
pub(crate) fn moment(seconds: i64) -> Option<PrimitiveDateTime> {
    let at = OffsetDateTime::from_unix_timestamp(seconds).ok()?;
    Some(PrimitiveDateTime::new(at.date(), at.time()))
}

/// Whether an agent runs it now.
pub(crate) fn is_running(msdb: &Connection, job: &Job) -> rusqlite::Result<bool> {
    let sql = "SELECT pid, started FROM pellucid_job_activity WHERE job_id = ?1 AND stop_execution_date IS NULL";
    let found: Option<(u32, i64)> =
        msdb.query_row(sql, [&job.id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(found.is_some_and(is_alive))
}

/// Whether any agent of the instance is there.
pub(crate) fn has_agent(msdb: &Connection) -> rusqlite::Result<bool> {
    let mut statement = msdb.prepare("SELECT pid, started FROM pellucid_agent_session")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for row in rows {
        if is_alive(row?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether that process is still there.
pub(crate) fn is_alive((pid, started): (u32, i64)) -> bool {
    let began = u64::try_from(started).unwrap_or(0);
    ProcessId { pid, began, boot: ProcessId::own().boot }.is_alive()
}

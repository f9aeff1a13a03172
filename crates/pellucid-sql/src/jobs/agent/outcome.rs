//! How steps and jobs went, as `sysjobhistory` has it.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use time::OffsetDateTime;

use super::{accounts, schedule, store, Executed, Job, Step, NOW};
use crate::message::Result;

/// `run_status`
pub(super) const FAILED: i64 = 0;
pub(super) const SUCCEEDED: i64 = 1;
const RETRY: i64 = 2;
pub(super) const CANCELED: i64 = 3;

/// Characters of a message.
const MESSAGE_MOST: usize = 4000;
/// Rows of the history, of one job and of all of them: what SQL Server's agent keeps.
const ROWS_OF_JOB: i64 = 100;
const ROWS: i64 = 1000;

/// How a job went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Its last step ended it so.
    Succeeded,
    /// The same.
    Failed,
    /// Somebody stopped it.
    Stopped,
}

impl Outcome {
    pub(super) fn of(status: i64) -> Self {
        match status {
            SUCCEEDED => Self::Succeeded,
            CANCELED => Self::Stopped,
            _ => Self::Failed,
        }
    }
}

/// When something began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    at: i64,
    clock: Option<Instant>,
    lasted: Duration,
}

impl Begun {
    /// Now.
    pub fn now() -> Self {
        let at = OffsetDateTime::now_utc().unix_timestamp();
        Self { at, clock: Some(Instant::now()), lasted: Duration::ZERO }
    }

    /// At a time in seconds since 1970; it lasted so long.
    pub fn at(at: i64, lasted: Duration) -> Self {
        Self { at, clock: None, lasted }
    }

    /// `yyyymmdd` and `hhmmss`
    pub fn numbers(&self) -> (i64, i64) {
        let at = store::moment(self.at);
        at.map_or((0, 0), |at| (schedule::date_number(at.date()), schedule::time_number(at.time())))
    }

    fn seconds(&self) -> i64 {
        let lasted = self.clock.map_or(self.lasted, |clock| clock.elapsed());
        i64::try_from(lasted.as_secs()).unwrap_or(i64::MAX)
    }
}

/// A row of the history.
pub(super) struct Row {
    /// 0: of the whole job.
    step: i64,
    name: String,
    number: u32,
    severity: u8,
    message: String,
    status: i64,
    retries: i64,
}

impl Row {
    /// Of a job.
    pub fn of_job(message: String, status: i64) -> Self {
        Self {
            step: 0,
            name: "(Job outcome)".to_owned(),
            number: 0,
            severity: 0,
            message,
            status,
            retries: 0,
        }
    }

    /// Of a step that was executed.
    pub fn of_step(step: &Step, executed: &Executed, tried: i64, is_last: bool) -> Self {
        let (status, end) = match executed {
            Executed { is_stopped: true, .. } => (CANCELED, "The step was cancelled."),
            Executed { has_succeeded: true, .. } => (SUCCEEDED, "The step succeeded."),
            _ if is_last => (FAILED, "The step failed."),
            _ => (RETRY, "The step failed."),
        };
        // A path that a statement has named is none that the agent writes to.
        let end = match step.has_output_file && !executed.is_stopped {
            true => format!("The output file was not written: the agent writes none.  {end}"),
            false => end.to_owned(),
        };
        let user = accounts::name(accounts::own());
        let told = executed.told.trim();
        let start = match told.is_empty() {
            true => format!("Executed as user: {user}."),
            false => format!("Executed as user: {user}. {told}"),
        };
        let room = MESSAGE_MOST - end.len() - 2;
        let start: String = start.chars().take(room).collect();
        Self {
            step: step.id,
            name: step.name.clone(),
            number: executed.number,
            severity: executed.severity,
            message: format!("{start}  {end}"),
            status,
            retries: tried,
        }
    }

    /// Writes it, and what the job, or the step, shows of its last run.
    pub fn write(&self, msdb: &Connection, job: &Job, begun: Begun, server: &str) -> Result<()> {
        // One that was deleted while it ran leaves nothing behind.
        if store::job_of(msdb, &job.id)?.is_none() {
            return Ok(());
        }
        let (date, time) = begun.numbers();
        let duration = duration_number(begun.seconds());
        let sql = "INSERT INTO pellucid_job_history(job_id, step_id, step_name, sql_message_id, sql_severity, message, \
                   run_status, run_date, run_time, run_duration, operator_id_emailed, operator_id_netsent, operator_id_paged, \
                   retries_attempted, server) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, 0, 0, ?11, ?12)";
        msdb.execute(
            sql,
            rusqlite::params![
                job.id,
                self.step,
                self.name,
                self.number,
                self.severity,
                self.message,
                self.status,
                date,
                time,
                duration,
                self.retries,
                server
            ],
        )?;
        let row = msdb.last_insert_rowid();
        if self.step > 0 {
            let sql = "UPDATE pellucid_job_step SET last_run_outcome = ?3, last_run_duration = ?4, last_run_retries = ?5, \
                       last_run_date = ?6, last_run_time = ?7 WHERE job_id = ?1 AND step_id = ?2";
            msdb.execute(
                sql,
                (&job.id, self.step, self.status, duration, self.retries, date, time),
            )?;
            return Ok(());
        }
        let sql = "UPDATE pellucid_job SET last_run_outcome = ?2, last_outcome_message = ?3, last_run_date = ?4, \
                   last_run_time = ?5, last_run_duration = ?6 WHERE job_id = ?1";
        msdb.execute(sql, (&job.id, self.status, &self.message, date, time, duration))?;
        let sql = format!(
            "UPDATE pellucid_job_activity SET stop_execution_date = {NOW}, job_history_id = ?2 WHERE job_id = ?1"
        );
        msdb.execute(&sql, (&job.id, row))?;
        let sql = "DELETE FROM pellucid_job_history WHERE job_id = ?1 AND instance_id NOT IN \
                   (SELECT instance_id FROM pellucid_job_history WHERE job_id = ?1 ORDER BY instance_id DESC LIMIT ?2)";
        msdb.execute(sql, (&job.id, ROWS_OF_JOB))?;
        let sql = "DELETE FROM pellucid_job_history WHERE instance_id NOT IN \
                   (SELECT instance_id FROM pellucid_job_history ORDER BY instance_id DESC LIMIT ?1)";
        msdb.execute(sql, [ROWS])?;
        Ok(())
    }
}

/// A job that is to go when it has run goes, if it ended so: `delete_level`.
pub(super) fn delete_if_done(msdb: &Connection, job: &Job, status: i64) -> Result<()> {
    let sql = "SELECT coalesce((SELECT delete_level FROM pellucid_job WHERE job_id = ?1), 0)";
    let level: i64 = msdb.query_row(sql, [&job.id], |row| row.get(0))?;
    let is_done = match status {
        SUCCEEDED => level & 1 != 0,
        _ => level & 2 != 0,
    };
    if is_done {
        store::delete_job(msdb, job, true, true)?;
    }
    Ok(())
}

/// Seconds as `hhmmss`, with as many hours as there are.
fn duration_number(seconds: i64) -> i64 {
    seconds / 3600 * 10_000 + seconds / 60 % 60 * 100 + seconds % 60
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_written_in_hours_minutes_and_seconds() {
        assert_eq!(duration_number(3 * 3600 + 62), 30_102);
        assert_eq!(duration_number(100 * 3600), 1_000_000);
    }
}

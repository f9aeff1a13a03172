//! The agent: which jobs are due, and how one runs from step to step.
//!
//! It runs the jobs of its own account and no others. A job belongs to the process that runs it, by a row of `msdb` that is
//! taken in one transaction with the schedules that brought it: two agents never run the same job, and a time that was
//! missed is made up for once. It executes nothing by itself: a [`Host`] does, in a process of its own.

mod outcome;
mod run;

use std::time::{Duration, Instant};

use pellucid_keyring::{Keyring, ProcessId};
use rusqlite::{Connection, OptionalExtension};
use time::OffsetDateTime;

use super::schedule::AT_AGENT_START;
use super::store::{self, Job, NOW};
use super::{accounts, schedule};
use crate::instance::Instance;
use crate::message::{Message, Result};

pub use outcome::Outcome;
use outcome::{Begun, Row};

/// `run_requested_source`
const BY_SCHEDULE: i64 = 1;
const AT_START: i64 = 3;
const BY_USER: i64 = 4;
/// How long another session may hold `msdb`; each try waits for seconds by itself.
const PATIENCE: Duration = Duration::from_secs(600);
/// Sessions of agents that are remembered.
const SESSIONS_MOST: i64 = 100;

/// What executes a step, and waits.
pub trait Host {
    /// Executes the command; `is_asked_to_stop` says whether somebody wants the job to end.
    fn execute(&mut self, step: &Step, is_asked_to_stop: &dyn Fn() -> bool) -> Executed;
    /// Waits for so long, or until it is asked to stop.
    fn wait(&mut self, time: Duration, is_asked_to_stop: &dyn Fn() -> bool);
}

/// A step that is to be executed. Its command may hold secrets: it is not shown.
pub struct Step {
    /// The job's uniqueidentifier.
    pub job_id: String,
    /// From 1.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Statements, tokens replaced.
    pub command: String,
    /// The database to begin in.
    pub database: String,
    /// Whether rows of results go into the history.
    pub with_rows: bool,
    retries: i64,
    retry_minutes: i64,
    on_success: (i64, i64),
    on_fail: (i64, i64),
    has_output_file: bool,
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Step")
            .field("id", &self.id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// How a command has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Executed {
    /// Without an error.
    pub has_succeeded: bool,
    /// It was ended because somebody asked for it.
    pub is_stopped: bool,
    /// The last error's number and severity; 0 without one.
    pub number: u32,
    /// 0 without an error.
    pub severity: u8,
    /// What it said, secrets masked.
    pub told: String,
}

/// A job that this process has taken.
#[derive(Debug)]
pub struct Run {
    job: Job,
    first_step: i64,
    /// Who or what brought it, in words.
    invoked_by: String,
}

impl Run {
    /// The job's name.
    pub fn name(&self) -> &str {
        &self.job.name
    }
}

/// What a look at the jobs has found.
#[derive(Debug, Default)]
pub struct Due {
    /// Jobs that this process has taken: each is to be run.
    pub runs: Vec<Run>,
    /// Jobs of other accounts that would run now: their names and accounts.
    pub of_others: Vec<(String, String)>,
}

/// An agent.
#[derive(Debug)]
pub struct Agent {
    instance: Instance,
    server: String,
}

impl Agent {
    /// Opens the instance of this process.
    ///
    /// # Errors
    /// That there is none; what keeps it from being opened.
    pub fn open() -> Result<Self> {
        pellucid_bundled::register()?;
        let home = Keyring::locate()?;
        if !Keyring::is_at(&home) {
            let missing = pellucid::Error::missing_key(
                pellucid::Subject::Key("service master key"),
                "there is no instance, and so no jobs",
            );
            return Err(missing.into());
        }
        let instance = Instance::open(Vec::new())?;
        if instance.is_closed() {
            return Err(pellucid::message::MASTER_KEY_MISSING.into());
        }
        let server = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Ok(Self { instance, server })
    }

    fn msdb(&self) -> &Connection {
        self.instance.msdb()
    }

    /// Notes that this process is an agent from now on, and which jobs ended with an agent that is gone.
    ///
    /// # Errors
    /// SQLite's.
    pub fn begin(&self) -> Result<()> {
        let own = ProcessId::own();
        self.changed(|msdb| {
            let sql = format!(
                "INSERT INTO pellucid_agent_session(agent_start_date, pid, started) VALUES ({NOW}, ?1, ?2)"
            );
            msdb.execute(&sql, (own.pid, ticks(&own)))?;
            let oldest = msdb.last_insert_rowid() - SESSIONS_MOST;
            msdb.execute("DELETE FROM pellucid_agent_session WHERE session_id <= ?1", [oldest])?;
            self.close_abandoned(msdb)
        })
    }

    /// Gives the jobs their end that an agent has left when it was killed.
    fn close_abandoned(&self, msdb: &Connection) -> Result<()> {
        let sql = "SELECT job_id, pid, started, unixepoch(start_execution_date) FROM pellucid_job_activity \
                   WHERE stop_execution_date IS NULL";
        let mut statement = msdb.prepare(sql)?;
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?), row.get(3)?)))?;
        let found = rows.collect::<rusqlite::Result<Vec<(String, (u32, i64), Option<i64>)>>>()?;
        for (id, process, begun) in found {
            let Some(job) = store::job_of(msdb, &id)?.filter(|_| !store::is_alive(process)) else {
                continue;
            };
            let message =
                "The job was stopped prior to completion: the agent that ran it has ended.";
            let begun = Begun::at(begun.unwrap_or(0), Duration::ZERO);
            let row = Row::of_job(message.to_owned(), outcome::CANCELED);
            row.write(msdb, &job, begun, &self.server)?;
        }
        Ok(())
    }

    /// Whether any job is to run now.
    ///
    /// # Errors
    /// SQLite's.
    pub fn has_due(&self) -> Result<bool> {
        Ok(!self.waiting(OffsetDateTime::now_utc().unix_timestamp())?.is_empty())
    }

    /// The jobs that are to run now, taken; at the agent's start those, too, that run then.
    ///
    /// # Errors
    /// SQLite's.
    pub fn due(&self, is_start: bool) -> Result<Due> {
        let now = OffsetDateTime::now_utc().unix_timestamp();
        // Looked at without a lock: nearly always there is nothing.
        let mut ids = self.waiting(now)?;
        if is_start {
            ids.extend(
                self.of_start()?.into_iter().filter(|id| !ids.contains(id)).collect::<Vec<_>>(),
            );
        }
        let mut due = Due::default();
        for id in ids {
            let Some(job) = store::job_of(self.msdb(), &id)? else { continue };
            if job.owner != accounts::own() {
                due.of_others.push((job.name, accounts::name(job.owner)));
                continue;
            }
            due.runs.extend(self.taken(&job, now, is_start)?);
        }
        Ok(due)
    }

    fn waiting(&self, now: i64) -> Result<Vec<String>> {
        let sql = "SELECT job_id FROM pellucid_job AS j WHERE server_id IS NOT NULL AND \
                   (EXISTS (SELECT 1 FROM pellucid_job_request AS r WHERE r.job_id = j.job_id) OR j.enabled AND EXISTS \
                    (SELECT 1 FROM pellucid_job_schedule AS a JOIN pellucid_schedule AS s USING (schedule_id) \
                     WHERE a.job_id = j.job_id AND s.enabled AND a.next_run <= ?1)) ORDER BY name";
        self.ids(sql, now)
    }

    fn of_start(&self) -> Result<Vec<String>> {
        let sql = "SELECT job_id FROM pellucid_job AS j WHERE server_id IS NOT NULL AND j.enabled AND EXISTS \
                   (SELECT 1 FROM pellucid_job_schedule AS a JOIN pellucid_schedule AS s USING (schedule_id) \
                    WHERE a.job_id = j.job_id AND s.enabled AND s.freq_type = ?1) ORDER BY name";
        self.ids(sql, AT_AGENT_START)
    }

    fn ids(&self, sql: &str, value: i64) -> Result<Vec<String>> {
        let mut statement = self.msdb().prepare_cached(sql)?;
        let rows = statement.query_map([value], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Takes a job for this process; none if another one was faster or runs it. The schedules that brought it go on to their
    /// next time in the same transaction, whichever it is.
    fn taken(&self, job: &Job, now: i64, is_start: bool) -> Result<Option<Run>> {
        self.changed(|msdb| {
            let request = msdb
                .query_row(
                    "SELECT step_id, login, requested FROM pellucid_job_request WHERE job_id = ?1",
                    [&job.id],
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
                )
                .optional()?;
            let by_schedule = self.passed(msdb, job, now, is_start)?;
            if store::is_running(msdb, job)? {
                // What a user asked for waits; a time of a schedule goes by, as there.
                return Ok(None);
            }
            let request: Option<(i64, String, String)> = request;
            let (source, first_step, invoked_by) = match (request, by_schedule) {
                (Some((step, login, _)), _) => (BY_USER, step, format!("User {login}")),
                (None, Some((id, name))) => {
                    let sql = "SELECT start_step_id FROM pellucid_job WHERE job_id = ?1";
                    let step = msdb.query_row(sql, [&job.id], |row| row.get(0))?;
                    let source = if is_start { AT_START } else { BY_SCHEDULE };
                    (source, step, format!("Schedule {id} ({name})"))
                }
                (None, None) => return Ok(None),
            };
            let own = ProcessId::own();
            let sql = format!(
                "INSERT OR REPLACE INTO pellucid_job_activity(job_id, session_id, pid, started, run_requested_date, \
                 run_requested_source, start_execution_date) VALUES (?1, (SELECT coalesce(max(session_id), 0) FROM \
                 pellucid_agent_session), ?2, ?3, coalesce((SELECT requested FROM pellucid_job_request WHERE job_id = ?1), \
                 {NOW}), ?4, {NOW})"
            );
            msdb.execute(&sql, (&job.id, own.pid, ticks(&own), source))?;
            msdb.execute("DELETE FROM pellucid_job_request WHERE job_id = ?1", [&job.id])?;
            Ok(Some(Run { job: job.clone(), first_step, invoked_by }))
        })
    }

    /// The schedule that brings a job, all that are due gone on to their next time.
    fn passed(
        &self,
        msdb: &Connection,
        job: &Job,
        now: i64,
        is_start: bool,
    ) -> Result<Option<(i64, String)>> {
        let sql = "SELECT schedule_id, name, freq_type FROM pellucid_job_schedule JOIN pellucid_schedule \
                   USING (schedule_id) JOIN pellucid_job AS j USING (job_id) WHERE job_id = ?1 AND pellucid_schedule.enabled \
                   AND j.enabled AND (next_run <= ?2 OR ?3 AND freq_type = ?4) ORDER BY schedule_id";
        let sql = sql.replace("name, freq_type", "pellucid_schedule.name, freq_type");
        let mut statement = msdb.prepare(&sql)?;
        let rows = statement.query_map((&job.id, now, is_start, AT_AGENT_START), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        let found = rows.collect::<rusqlite::Result<Vec<(i64, String)>>>()?;
        for (id, _) in &found {
            let next = store::next_from(&store::schedule_of(msdb, *id)?, now);
            let sql = "UPDATE pellucid_job_schedule SET next_run = ?3 WHERE schedule_id = ?1 AND job_id = ?2";
            msdb.execute(sql, (id, &job.id, next))?;
        }
        Ok(found.into_iter().next())
    }

    /// Changes `msdb`, all or nothing. A session may hold it for as long as its transaction takes.
    fn changed<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let msdb = self.msdb();
        let begun = Instant::now();
        while let Err(error) = msdb.execute_batch("BEGIN IMMEDIATE") {
            let is_busy = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy);
            if !is_busy || begun.elapsed() > PATIENCE {
                return Err(error.into());
            }
        }
        let done = work(msdb)
            .and_then(|value| msdb.execute_batch("COMMIT").map(|()| value).map_err(Message::from));
        if done.is_err() && !msdb.is_autocommit() {
            let _ = msdb.execute_batch("ROLLBACK");
        }
        done
    }
}

fn ticks(process: &ProcessId) -> i64 {
    i64::try_from(process.began).unwrap_or(0)
}

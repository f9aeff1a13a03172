//! One job, from its first step to its last one.

use std::time::Duration;

use rusqlite::OptionalExtension;

use super::outcome::{self, Begun, Row};
use super::{Agent, Executed, Host, Job, Outcome, Run, Step, NOW};
use crate::jobs::tokens::{replaced, Values};
use crate::message::Result;

impl Agent {
    /// Runs a job that was taken, to its end; how it went. `is_ending` says whether the agent itself is to end.
    ///
    /// # Errors
    /// SQLite's. Then it has failed, and is given back so that it can run again.
    pub fn run(
        &self,
        run: &Run,
        host: &mut dyn Host,
        is_ending: &dyn Fn() -> bool,
    ) -> Result<Outcome> {
        let begun = Begun::now();
        let done = self.run_to_its_end(run, begun, host, is_ending);
        if let Err(error) = &done {
            let message = format!(
                "The job failed.  The Job was invoked by {}.  {}",
                run.invoked_by, error.text
            );
            let row = Row::of_job(message, outcome::FAILED);
            let _ = self.changed(|msdb| row.write(msdb, &run.job, begun, &self.server));
        }
        done
    }

    fn run_to_its_end(
        &self,
        run: &Run,
        begun: Begun,
        host: &mut dyn Host,
        is_ending: &dyn Fn() -> bool,
    ) -> Result<Outcome> {
        let is_asked = || is_ending() || self.is_asked_to_stop(&run.job);
        let mut next = run.first_step;
        let (mut last, mut status) = (None, outcome::FAILED);
        while let Some(step) = self.step(run, next, &begun)? {
            let executed = self.run_step(run, &step, host, &is_asked)?;
            let id = step.id;
            last = Some((id, step.name.clone()));
            if executed.is_stopped {
                status = outcome::CANCELED;
                break;
            }
            let (action, target) =
                if executed.has_succeeded { step.on_success } else { step.on_fail };
            match action {
                1 => status = outcome::SUCCEEDED,
                2 => status = outcome::FAILED,
                3 => {
                    next = id + 1;
                    // As there, a step that has nothing behind it ends the job.
                    status =
                        if executed.has_succeeded { outcome::SUCCEEDED } else { outcome::FAILED };
                    continue;
                }
                _ => {
                    (next, status) = (target, outcome::FAILED);
                    continue;
                }
            }
            break;
        }
        let end = match status {
            outcome::SUCCEEDED => "The job succeeded.",
            outcome::CANCELED => "The job was stopped prior to completion.",
            _ => "The job failed.",
        };
        let which = last.map_or_else(String::new, |(id, name)| {
            format!("  The last step to run was step {id} ({name}).")
        });
        let message = format!("{end}  The Job was invoked by {}.{which}", run.invoked_by);
        let row = Row::of_job(message, status);
        self.changed(|msdb| {
            row.write(msdb, &run.job, begun, &self.server)?;
            outcome::delete_if_done(msdb, &run.job, status)
        })?;
        Ok(Outcome::of(status))
    }

    /// Executes a step as often as it may be tried.
    fn run_step(
        &self,
        run: &Run,
        step: &Step,
        host: &mut dyn Host,
        is_asked: &dyn Fn() -> bool,
    ) -> Result<Executed> {
        let sql = format!(
            "UPDATE pellucid_job_activity SET last_executed_step_id = ?2, last_executed_step_date = {NOW} WHERE job_id = ?1"
        );
        self.changed(|msdb| Ok(msdb.execute(&sql, (&run.job.id, step.id))?))?;
        let mut tried = 0;
        loop {
            let begun = Begun::now();
            let mut executed = match is_asked() {
                true => Executed { is_stopped: true, ..Executed::default() },
                false => host.execute(step, is_asked),
            };
            let is_last = executed.has_succeeded || executed.is_stopped || tried >= step.retries;
            let row = Row::of_step(step, &executed, tried, is_last);
            self.changed(|msdb| row.write(msdb, &run.job, begun, &self.server))?;
            if is_last {
                return Ok(executed);
            }
            tried += 1;
            host.wait(minutes(step.retry_minutes), is_asked);
            if is_asked() {
                executed.is_stopped = true;
                return Ok(executed);
            }
        }
    }

    fn is_asked_to_stop(&self, job: &Job) -> bool {
        let sql = "SELECT stop_asked FROM pellucid_job_activity WHERE job_id = ?1";
        let asked = self.msdb().query_row(sql, [&job.id], |row| row.get::<_, bool>(0)).optional();
        // A job that is gone is to end, too.
        matches!(asked, Ok(Some(true) | None))
    }

    /// The step of that number; none behind the last one.
    fn step(&self, run: &Run, id: i64, begun: &Begun) -> Result<Option<Step>> {
        let sql = "SELECT step_name, coalesce(command, ''), database_name, flags, retry_attempts, retry_interval, \
                   on_success_action, on_success_step_id, on_fail_action, on_fail_step_id, \
                   coalesce(output_file_name, '') <> '' FROM pellucid_job_step WHERE job_id = ?1 AND step_id = ?2";
        let found = self.msdb().query_row(sql, (&run.job.id, id), |row| {
            Ok(Step {
                job_id: run.job.id.clone(),
                id,
                name: row.get(0)?,
                command: row.get(1)?,
                database: row.get(2)?,
                with_rows: row.get::<_, i64>(3)? & 4 != 0,
                retries: row.get(4)?,
                retry_minutes: row.get(5)?,
                on_success: (row.get(6)?, row.get(7)?),
                on_fail: (row.get(8)?, row.get(9)?),
                has_output_file: row.get(10)?,
            })
        });
        let Some(mut step) = found.optional()? else { return Ok(None) };
        let values = Values {
            job_id: &run.job.id,
            job_name: &run.job.name,
            step_id: id,
            step_name: &step.name,
            server: &self.server,
            now: Begun::now().numbers(),
            begun: begun.numbers(),
        };
        // A token that there is not fails the step, which says so by itself.
        step.command = replaced(&step.command, &values).unwrap_or_else(|token| {
            format!("RAISERROR(N'Unable to start execution of step {id} (reason: Variable {token} not found).', 16, 1)")
        });
        Ok(Some(step))
    }
}

fn minutes(count: i64) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or(0).saturating_mul(60))
}

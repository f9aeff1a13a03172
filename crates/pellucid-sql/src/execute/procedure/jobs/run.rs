//! sp_add_jobserver, sp_delete_jobserver, sp_start_job, sp_stop_job, sp_purge_jobhistory

use rusqlite::{Connection, OptionalExtension};

use super::{not_in_list, Call, Outputs, Procedure};
use crate::execute::Done;
use crate::jobs::accounts;
use crate::jobs::store::{self, Job};
use crate::message::table::{self, Row};
use crate::message::Message;
use crate::session::Session;
use crate::values::moment::Moment;
use crate::values::types::SqlType;

pub(super) const ADD_SERVER: Procedure = Procedure {
    name: "sp_add_jobserver",
    parameters: &["job_id", "job_name", "server_name", "automatic_post"],
    run: add_server,
};
pub(super) const DELETE_SERVER: Procedure = Procedure {
    name: "sp_delete_jobserver",
    parameters: &["job_id", "job_name", "server_name"],
    run: delete_server,
};
pub(super) const START: Procedure = Procedure {
    name: "sp_start_job",
    parameters: &["job_name", "job_id", "error_flag", "server_name", "step_name", "output_flag"],
    run: start,
};
pub(super) const STOP: Procedure = Procedure {
    name: "sp_stop_job",
    parameters: &["job_name", "job_id", "originating_server", "server_name"],
    run: stop,
};
pub(super) const PURGE_HISTORY: Procedure = Procedure {
    name: "sp_purge_jobhistory",
    parameters: &["job_name", "job_id", "oldest_date"],
    run: purge_history,
};

/// The server that a call names, which is this one.
fn server(session: &Session, call: &Call<'_>) -> Done<String> {
    let here = session.shared.server_name().to_owned();
    match call.name("server_name")? {
        Some(name)
            if !name.eq_ignore_ascii_case("(local)") && !name.eq_ignore_ascii_case(&here) =>
        {
            Err(super::does_not_exist("@server_name", &name).into())
        }
        _ => Ok(here),
    }
}

fn add_server(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    let server = server(session, call)?;
    session.change_msdb(|msdb| {
        let job = call.own_job(msdb)?;
        if job.has_server {
            return Err(Message::of(table::TARGETED_ALREADY, [&job.name, &server]).into());
        }
        set_server(msdb, &job, Some(0))
    })
}

fn delete_server(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    let server = server(session, call)?;
    session.change_msdb(|msdb| {
        let job = call.own_job(msdb)?;
        if !job.has_server {
            return Err(Message::of(table::NOT_TARGETED, [&job.name, &server]).into());
        }
        set_server(msdb, &job, None)
    })
}

fn set_server(msdb: &Connection, job: &Job, server: Option<i64>) -> Done<Outputs> {
    msdb.execute("UPDATE pellucid_job SET server_id = ?2 WHERE job_id = ?1", (&job.id, server))?;
    store::touch(msdb, job)?;
    Ok(Outputs::new())
}

fn start(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    server(session, call)?;
    let is_told = call.integer("output_flag")?.unwrap_or(1) != 0;
    let step_name = call.name("step_name")?;
    let user = session.shared.user().to_owned();
    let (job, has_agent) = session.change_msdb(|msdb| {
        let job = to_start(msdb, call, table::JOB_WITHOUT_SERVER_TO_START)?;
        if store::steps(msdb, &job)? == 0 {
            return Err(Message::of(table::JOB_WITHOUT_STEPS, [&job.name]).into());
        }
        let step: i64 = match &step_name {
            None => {
                let sql = "SELECT start_step_id FROM pellucid_job WHERE job_id = ?1";
                msdb.query_row(sql, [&job.id], |row| row.get(0))?
            }
            Some(name) => {
                let sql = "SELECT step_id FROM pellucid_job_step WHERE job_id = ?1 AND step_name = ?2";
                let found = msdb.query_row(sql, [&job.id, name], |row| row.get(0)).optional()?;
                found.ok_or_else(|| super::does_not_exist("@step_name", name))?
            }
        };
        let refused = |why: &str| {
            let reason = format!(
                "Request to run job {} (from User {user}) refused because the job {why}",
                job.name
            );
            Message::of(table::AGENT_REFUSES, [&reason])
        };
        if store::is_running(msdb, &job)? {
            return Err(refused("is already running").into());
        }
        let sql = format!(
            "INSERT OR IGNORE INTO pellucid_job_request(job_id, requested, step_id, login) VALUES (?1, {}, ?2, ?3)",
            store::NOW
        );
        if msdb.execute(&sql, (&job.id, step, &user))? == 0 {
            return Err(refused(&format!("already has a pending request from User {user}")).into());
        }
        Ok((job, store::has_agent(msdb)?))
    })?;
    match has_agent {
        true if is_told => session.inform(Message::of(table::JOB_STARTED, [&job.name])),
        true => {}
        false => session.inform(Message::of(table::NO_AGENT_RUNS, [&job.name])),
    }
    Ok(Outputs::new())
}

fn stop(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    if call.name("originating_server")?.is_some() {
        return Err(Message::unsupported("sp_stop_job @originating_server").into());
    }
    server(session, call)?;
    let user = session.shared.user().to_owned();
    let job = session.change_msdb(|msdb| {
        let job = to_start(msdb, call, table::JOB_WITHOUT_SERVER_TO_STOP)?;
        let waiting = msdb.execute("DELETE FROM pellucid_job_request WHERE job_id = ?1", [&job.id])?;
        let is_running = store::is_running(msdb, &job)?;
        if is_running {
            let sql = "UPDATE pellucid_job_activity SET stop_asked = 1 WHERE job_id = ?1";
            msdb.execute(sql, [&job.id])?;
        }
        if waiting == 0 && !is_running {
            let reason = format!(
                "Request to stop job {} (from User {user}) refused because the job is not currently running",
                job.name
            );
            return Err(Message::of(table::AGENT_REFUSES, [&reason]).into());
        }
        Ok(job)
    })?;
    session.inform(Message::of(table::JOB_STOPPED, [&job.name]));
    Ok(Outputs::new())
}

/// The job of a call that is to start or to stop.
fn to_start(msdb: &Connection, call: &Call<'_>, without_server: Row<2>) -> Done<Job> {
    let job = call.job(msdb)?;
    if ![0, job.owner].contains(&accounts::own()) {
        return Err(Message::of(table::JOB_OF_ANOTHER_TO_START, []).into());
    }
    match job.has_server {
        true => Ok(job),
        false => Err(Message::of(without_server, [&job.name, &job.id]).into()),
    }
}

fn purge_history(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    let oldest = match call.text("oldest_date")? {
        None => None,
        Some(text) => {
            let moment = Moment::parse(&text, 0).ok_or_else(Message::not_a_date)?;
            let digits: String = moment
                .to_iso(SqlType::SmallDateTime)
                .chars()
                .filter(char::is_ascii_digit)
                .collect();
            Some(digits.parse::<i64>().map_err(|_| not_in_list("oldest_date", "dates"))?)
        }
    };
    let is_one = call.guid("job_id")?.is_some() || call.name("job_name")?.is_some();
    let count = session.change_msdb(|msdb| {
        let job = is_one.then(|| call.job(msdb)).transpose()?;
        if job.as_ref().is_some_and(|job| ![0, job.owner].contains(&accounts::own())) {
            return Err(Message::of(table::HISTORY_OF_ANOTHER, []).into());
        }
        let sql = "DELETE FROM pellucid_job_history WHERE (?1 IS NULL OR job_id = ?1) \
                   AND (?2 IS NULL OR run_date * 1000000 + run_time < ?2)";
        Ok(msdb.execute(sql, (job.map(|job| job.id), oldest))?)
    })?;
    session.inform(Message::of(table::HISTORY_PURGED, [&count]));
    Ok(Outputs::new())
}

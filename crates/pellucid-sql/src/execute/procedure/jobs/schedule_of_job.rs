//! sp_attach_schedule, sp_detach_schedule, sp_add_jobschedule, sp_update_jobschedule, sp_delete_jobschedule

use rusqlite::Connection;

use super::{schedule, Call, Outputs, Procedure};
use crate::execute::Done;
use crate::functions::new_guid;
use crate::jobs::accounts;
use crate::jobs::store::{self, Job};
use crate::message::table::{self, Row};
use crate::message::Message;
use crate::session::Session;

pub(super) const ATTACH: Procedure = Procedure {
    name: "sp_attach_schedule",
    parameters: &["job_id", "job_name", "schedule_id", "schedule_name", "automatic_post"],
    run: attach,
};
pub(super) const DETACH: Procedure = Procedure {
    name: "sp_detach_schedule",
    parameters: &[
        "job_id",
        "job_name",
        "schedule_id",
        "schedule_name",
        "delete_unused_schedule",
        "automatic_post",
    ],
    run: detach,
};
pub(super) const ADD: Procedure = Procedure {
    name: "sp_add_jobschedule",
    parameters: &[
        "job_id",
        "job_name",
        "name",
        "enabled",
        "freq_type",
        "freq_interval",
        "freq_subday_type",
        "freq_subday_interval",
        "freq_relative_interval",
        "freq_recurrence_factor",
        "active_start_date",
        "active_end_date",
        "active_start_time",
        "active_end_time",
        "schedule_id",
        "automatic_post",
        "schedule_uid",
    ],
    run: add,
};
pub(super) const UPDATE: Procedure = Procedure {
    name: "sp_update_jobschedule",
    parameters: &[
        "job_id",
        "job_name",
        "name",
        "new_name",
        "enabled",
        "freq_type",
        "freq_interval",
        "freq_subday_type",
        "freq_subday_interval",
        "freq_relative_interval",
        "freq_recurrence_factor",
        "active_start_date",
        "active_end_date",
        "active_start_time",
        "active_end_time",
        "automatic_post",
    ],
    run: update,
};
pub(super) const DELETE: Procedure = Procedure {
    name: "sp_delete_jobschedule",
    parameters: &["job_id", "job_name", "name", "keep_schedule", "automatic_post"],
    run: delete,
};

fn attach(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    session.change_msdb(|msdb| {
        let job = call.own_job(msdb)?;
        let id = schedule::find(msdb, call, "schedule_name")?;
        store::attach(msdb, &job, id)?;
        store::touch(msdb, &job)?;
        Ok(Outputs::new())
    })
}

fn detach(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    let with_schedule = call.integer("delete_unused_schedule")?.unwrap_or(0) != 0;
    session.change_msdb(|msdb| {
        let job = call.own_job(msdb)?;
        let id = schedule::find(msdb, call, "schedule_name")?;
        if !store::schedules(msdb, &job)?.contains(&id) {
            let sql = "SELECT name FROM pellucid_schedule WHERE schedule_id = ?1";
            let name: String = msdb.query_row(sql, [id], |row| row.get(0))?;
            return Err(Message::of(table::NOT_A_SCHEDULE_OF, [&name, &job.name]).into());
        }
        detach_from(msdb, &job, id, with_schedule)
    })
}

fn detach_from(msdb: &Connection, job: &Job, id: i64, with_schedule: bool) -> Done<Outputs> {
    let sql = "DELETE FROM pellucid_job_schedule WHERE schedule_id = ?1 AND job_id = ?2";
    msdb.execute(sql, (id, &job.id))?;
    if with_schedule {
        store::delete_unused(msdb, id)?;
    }
    store::touch(msdb, job)?;
    Ok(Outputs::new())
}

fn add(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    let name = call.required("name")?;
    schedule::check_name("name", &name)?;
    let is_enabled = call.one_of("enabled", &[0, 1])? != Some(0);
    let found = schedule::of_call(call, None)?;
    let uid = call.guid("schedule_uid")?.map_or_else(new_guid, Ok)?;
    let id = session.change_msdb(|msdb| {
        let job = call.own_job(msdb)?;
        let new = (name.as_str(), uid.as_str(), accounts::own(), is_enabled);
        // Like there, a job whose script names a schedule that is there already shares it.
        let id = match schedule::with_uid(msdb, &uid)? {
            Some(id) => id,
            None => store::add_schedule(msdb, new, &found)?,
        };
        store::attach(msdb, &job, id)?;
        store::touch(msdb, &job)?;
        Ok(id)
    })?;
    Ok(schedule::made(id, uid))
}

fn update(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    session.change_msdb(|msdb| {
        let job = call.own_job(msdb)?;
        let id = of_job(msdb, call, &job, table::SEVERAL_SCHEDULES_OF_JOB_TO_UPDATE)?;
        schedule::change(msdb, call, id)?;
        store::touch(msdb, &job)?;
        Ok(Outputs::new())
    })
}

fn delete(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    let is_kept = call.integer("keep_schedule")?.unwrap_or(0) != 0;
    session.change_msdb(|msdb| {
        let job = call.own_job(msdb)?;
        if call.name("name")?.is_some_and(|name| name.eq_ignore_ascii_case("ALL")) {
            for id in store::schedules(msdb, &job)? {
                detach_from(msdb, &job, id, !is_kept)?;
            }
            return Ok(Outputs::new());
        }
        let id = of_job(msdb, call, &job, table::SEVERAL_SCHEDULES_OF_JOB)?;
        detach_from(msdb, &job, id, !is_kept)
    })
}

/// The schedule of a job that `@name` names; `several` for more than one.
fn of_job(msdb: &Connection, call: &Call<'_>, job: &Job, several: Row<2>) -> Done<i64> {
    let name = call.required("name")?;
    let attached = store::schedules(msdb, job)?;
    let all = schedule::named(msdb, &name)?;
    let of_job: Vec<i64> = all.iter().copied().filter(|id| attached.contains(id)).collect();
    match (of_job.as_slice(), all.as_slice()) {
        ([one], _) => Ok(*one),
        ([], []) => Err(super::does_not_exist("Schedule Name", &name).into()),
        ([], _) => Err(Message::of(table::NOT_A_SCHEDULE_OF, [&name, &job.name]).into()),
        _ => Err(Message::of(several, [&name, &job.name]).into()),
    }
}

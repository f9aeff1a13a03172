//! sp_add_jobstep, sp_update_jobstep, sp_delete_jobstep

use rusqlite::{Connection, OptionalExtension};

use super::{exists_already, not_in_list, not_one_of, Call, Outputs, Procedure};
use crate::execute::Done;
use crate::functions::new_guid;
use crate::jobs::store::{self, Job};
use crate::message::{table, Message};
use crate::session::Session;
use crate::values::convert::Value;
use crate::values::types::SqlType;

pub(super) const ADD: Procedure = Procedure {
    name: "sp_add_jobstep",
    parameters: &[
        "job_id",
        "job_name",
        "step_id",
        "step_name",
        "subsystem",
        "command",
        "additional_parameters",
        "cmdexec_success_code",
        "on_success_action",
        "on_success_step_id",
        "on_fail_action",
        "on_fail_step_id",
        "server",
        "database_name",
        "database_user_name",
        "retry_attempts",
        "retry_interval",
        "os_run_priority",
        "output_file_name",
        "flags",
        "proxy_id",
        "proxy_name",
        "step_uid",
    ],
    run: add,
};
pub(super) const UPDATE: Procedure = Procedure {
    name: "sp_update_jobstep",
    parameters: &[
        "job_id",
        "job_name",
        "step_id",
        "step_name",
        "subsystem",
        "command",
        "additional_parameters",
        "cmdexec_success_code",
        "on_success_action",
        "on_success_step_id",
        "on_fail_action",
        "on_fail_step_id",
        "server",
        "database_name",
        "database_user_name",
        "retry_attempts",
        "retry_interval",
        "os_run_priority",
        "output_file_name",
        "flags",
        "proxy_id",
        "proxy_name",
    ],
    run: update,
};
pub(super) const DELETE: Procedure = Procedure {
    name: "sp_delete_jobstep",
    parameters: &["job_id", "job_name", "step_id"],
    run: delete,
};

/// What SQL Server's agent runs besides statements: refused by name when the step is made.
const OTHER_SUBSYSTEMS: [&str; 13] = [
    "ACTIVESCRIPTING",
    "ANALYSISCOMMAND",
    "ANALYSISQUERY",
    "CMDEXEC",
    "DISTRIBUTION",
    "DTS",
    "LOGREADER",
    "MERGE",
    "POWERSHELL",
    "QUEUEREADER",
    "SNAPSHOT",
    "SSIS",
    "WEBTASK",
];
const GOTO_STEP: i64 = 4;
const COUNT_MOST: i64 = 9999;
const OUTPUT_FILE_MOST: usize = 200;

/// What both procedures set; none where it stays.
struct Settings {
    name: Option<String>,
    command: Option<String>,
    additional_parameters: Option<String>,
    success_code: Option<i64>,
    on_success: (Option<i64>, Option<i64>),
    on_fail: (Option<i64>, Option<i64>),
    database: Option<String>,
    database_user: Option<String>,
    retries: Option<i64>,
    retry_minutes: Option<i64>,
    priority: Option<i64>,
    output_file: Option<String>,
    flags: Option<i64>,
}

impl Settings {
    /// Refuses what is not done before anything is changed.
    fn of(call: &Call<'_>) -> Done<Self> {
        if let Some(subsystem) = call.name("subsystem")? {
            let upper = subsystem.to_uppercase();
            match upper.as_str() {
                "TSQL" => {}
                other if OTHER_SUBSYSTEMS.contains(&other) => {
                    return Err(Message::unsupported(format!("subsystem {other}")).into());
                }
                _ => return Err(not_in_list("subsystem", "sp_enum_sqlagent_subsystems")),
            }
        }
        if call.integer("proxy_id")?.is_some() || call.name("proxy_name")?.is_some() {
            return Err(Message::of(table::PROXY_OF_TSQL, []).into());
        }
        if let Some(user) = call.name("database_user_name")? {
            if !user.eq_ignore_ascii_case("dbo") {
                return Err(Message::unsupported("@database_user_name").into());
            }
        }
        let flags = call.within("flags", 0, 114)?;
        match flags.unwrap_or(0) {
            // 2 appends to the output file, which is not written.
            0 | 2 | 4 | 6 => {}
            flags if flags & 64 != 0 => {
                return Err(Message::of(table::NOT_FOR_STEP_TYPE, [&"@flags", &"TSQL"]).into());
            }
            flags => return Err(Message::unsupported(format!("@flags = {flags}")).into()),
        }
        Ok(Self {
            name: call.name("step_name")?,
            command: call.text("command")?,
            additional_parameters: call.text("additional_parameters")?,
            success_code: call.integer("cmdexec_success_code")?,
            on_success: (
                call.one_of("on_success_action", &[1, 2, 3, 4])?,
                call.integer("on_success_step_id")?,
            ),
            on_fail: (
                call.one_of("on_fail_action", &[1, 2, 3, 4])?,
                call.integer("on_fail_step_id")?,
            ),
            database: call.name("database_name")?,
            database_user: call.name("database_user_name")?,
            retries: call.within("retry_attempts", 0, COUNT_MOST)?,
            retry_minutes: call.within("retry_interval", 0, COUNT_MOST)?,
            priority: call.one_of("os_run_priority", &[-15, -1, 0, 1, 15])?,
            output_file: call.text("output_file_name")?.map(|name| {
                // As it is declared there.
                name.trim_matches(' ').chars().take(OUTPUT_FILE_MOST).collect()
            }),
            flags,
        })
    }

    /// Writes what is set.
    fn write(&self, msdb: &Connection, job: &Job, step: i64) -> Done {
        let set = |column: &str, value: Option<&dyn rusqlite::ToSql>| -> Done {
            let Some(value) = value else { return Ok(()) };
            let sql = format!(
                "UPDATE pellucid_job_step SET {column} = ?3 WHERE job_id = ?1 AND step_id = ?2"
            );
            msdb.execute(&sql, rusqlite::params![job.id, step, value])?;
            Ok(())
        };
        let number = |column: &str, value: Option<i64>| match value {
            Some(value) => set(column, Some(&value)),
            None => Ok(()),
        };
        let text = |column: &str, value: &Option<String>| match value {
            Some(value) => set(column, Some(value)),
            None => Ok(()),
        };
        text("step_name", &self.name)?;
        text("command", &self.command)?;
        text("additional_parameters", &self.additional_parameters)?;
        text("database_name", &self.database)?;
        text("database_user_name", &self.database_user)?;
        text("output_file_name", &self.output_file)?;
        number("cmdexec_success_code", self.success_code)?;
        number("on_success_action", self.on_success.0)?;
        number("on_success_step_id", self.on_success.1)?;
        number("on_fail_action", self.on_fail.0)?;
        number("on_fail_step_id", self.on_fail.1)?;
        number("retry_attempts", self.retries)?;
        number("retry_interval", self.retry_minutes)?;
        number("os_run_priority", self.priority)?;
        number("flags", self.flags)
    }
}

/// 14235 for a step that goes to itself or to none.
fn check_targets(msdb: &Connection, job: &Job, step: i64) -> Done {
    let sql = "SELECT on_success_action, on_success_step_id, on_fail_action, on_fail_step_id FROM pellucid_job_step \
               WHERE job_id = ?1 AND step_id = ?2";
    let found: [i64; 4] = msdb.query_row(sql, (&job.id, step), |row| {
        Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
    })?;
    let targets =
        [("@on_success_step", found[0], found[1]), ("@on_failure_step", found[2], found[3])];
    for (parameter, action, target) in targets {
        if action == GOTO_STEP && (target < 1 || target == step) {
            return Err(Message::of(table::BAD_STEP_REFERENCE, [&parameter, &step]).into());
        }
    }
    Ok(())
}

/// 14236 for steps that are not there yet; a script adds them behind.
fn warn_of_later_steps(session: &mut Session, call: &Call<'_>, count: i64) -> Done {
    for way in ["success", "fail"] {
        let action = call.integer(&format!("on_{way}_action"))?;
        let target = call.integer(&format!("on_{way}_step_id"))?;
        if action == Some(GOTO_STEP) && target.is_some_and(|target| target > count) {
            let parameter = format!("@on_{way}_step_id");
            session.inform(Message::of(table::STEP_NOT_THERE_YET, [&parameter]));
        }
    }
    Ok(())
}

fn check_database(session: &Session, settings: &Settings) -> Done {
    match &settings.database {
        Some(name) if session.databases.instance.find(name)?.is_none() => {
            Err(super::does_not_exist("@database_name", name).into())
        }
        _ => Ok(()),
    }
}

fn check_server(session: &Session, call: &Call<'_>) -> Done {
    let here = session.shared.server_name();
    match call.name("server")? {
        Some(name) if !name.eq_ignore_ascii_case("(local)") && !name.eq_ignore_ascii_case(here) => {
            Err(not_in_list("srv", "sp_helpserver"))
        }
        _ => Ok(()),
    }
}

fn check_name(msdb: &Connection, job: &Job, step: i64, name: Option<&str>) -> Done {
    let sql = "SELECT step_id FROM pellucid_job_step WHERE job_id = ?1 AND step_name = ?2 AND step_id <> ?3";
    let found: Option<i64> =
        msdb.query_row(sql, (&job.id, name, step), |row| row.get(0)).optional()?;
    match (found, name) {
        (Some(_), Some(name)) => Err(exists_already("@step_name", name).into()),
        _ => Ok(()),
    }
}

fn add(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    let name = call.required("step_name")?;
    let settings = Settings::of(call)?;
    check_server(session, call)?;
    check_database(session, &settings)?;
    let wanted = call.integer("step_id")?;
    let uid = new_guid()?;
    let count = session.change_msdb(|msdb| {
        let job = call.own_job(msdb)?;
        let count = store::steps(msdb, &job)?;
        let step = wanted.unwrap_or(count + 1);
        if !(1..=count + 1).contains(&step) {
            return Err(not_one_of("step_id", format!("1..{}", count + 1)));
        }
        check_name(msdb, &job, 0, Some(&name))?;
        // One at the end moves none: what goes to it is meant to.
        if step <= count {
            move_steps(msdb, &job, step, 1)?;
        }
        let sql = "INSERT INTO pellucid_job_step(job_id, step_id, step_name, subsystem, flags, cmdexec_success_code, \
                   on_success_action, on_success_step_id, on_fail_action, on_fail_step_id, database_name, retry_attempts, \
                   retry_interval, os_run_priority, step_uid) \
                   VALUES (?1, ?2, ?3, 'TSQL', 0, 0, 1, 0, 2, 0, 'master', 0, 0, 0, ?4)";
        msdb.execute(sql, (&job.id, step, &name, &uid))?;
        settings.write(msdb, &job, step)?;
        check_targets(msdb, &job, step)?;
        store::touch(msdb, &job)?;
        Ok(count)
    })?;
    warn_of_later_steps(session, call, count)?;
    Ok(vec![("step_uid", Value::Text(uid), SqlType::UniqueIdentifier)])
}

fn update(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    call.0.required(call.at("step_id"))?;
    let step = call.integer("step_id")?.unwrap_or(0);
    let settings = Settings::of(call)?;
    check_server(session, call)?;
    check_database(session, &settings)?;
    let count = session.change_msdb(|msdb| {
        let job = call.own_job(msdb)?;
        let count = store::steps(msdb, &job)?;
        check_step(&job, step, (1, count))?;
        check_name(msdb, &job, step, settings.name.as_deref())?;
        settings.write(msdb, &job, step)?;
        check_targets(msdb, &job, step)?;
        store::touch(msdb, &job)?;
        Ok(count)
    })?;
    warn_of_later_steps(session, call, count)?;
    Ok(Outputs::new())
}

fn delete(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    call.0.required(call.at("step_id"))?;
    let step = call.integer("step_id")?.unwrap_or(-1);
    session.change_msdb(|msdb| {
        let job = call.own_job(msdb)?;
        check_step(&job, step, (0, store::steps(msdb, &job)?))?;
        match step {
            0 => {
                msdb.execute("DELETE FROM pellucid_job_step WHERE job_id = ?1", [&job.id])?;
                let first = "UPDATE pellucid_job SET start_step_id = 1 WHERE job_id = ?1";
                msdb.execute(first, [&job.id])?;
            }
            step => {
                let sql = "DELETE FROM pellucid_job_step WHERE job_id = ?1 AND step_id = ?2";
                msdb.execute(sql, (&job.id, step))?;
                forget_targets(msdb, &job, step)?;
                move_steps(msdb, &job, step, -1)?;
            }
        }
        store::touch(msdb, &job)?;
        Ok(Outputs::new())
    })
}

/// 14528 for a job without steps, 14266 for a step that is none of its own.
fn check_step(job: &Job, step: i64, (least, count): (i64, i64)) -> Done {
    match count {
        0 => Err(Message::of(table::JOB_WITHOUT_STEPS, [&job.name]).into()),
        _ if !(least..=count).contains(&step) => {
            Err(not_one_of("step_id", format!("{least}..{count}")))
        }
        _ => Ok(()),
    }
}

/// Nobody goes to a step that is gone: such a one quits.
fn forget_targets(msdb: &Connection, job: &Job, step: i64) -> Done {
    for (way, quits) in [("success", 1), ("fail", 2)] {
        let sql = format!(
            "UPDATE pellucid_job_step SET on_{way}_action = ?3, on_{way}_step_id = 0 \
             WHERE job_id = ?1 AND on_{way}_action = 4 AND on_{way}_step_id = ?2"
        );
        msdb.execute(&sql, (&job.id, step, quits))?;
    }
    let first =
        "UPDATE pellucid_job SET start_step_id = 1 WHERE job_id = ?1 AND start_step_id = ?2";
    msdb.execute(first, (&job.id, step))?;
    Ok(())
}

/// Numbers the steps from `from` on one up or down, with what goes to them.
fn move_steps(msdb: &Connection, job: &Job, from: i64, by: i64) -> Done {
    // By way of negative numbers: each number is one step's at any moment.
    let sql = "UPDATE pellucid_job_step SET step_id = -(step_id + ?3) WHERE job_id = ?1 AND step_id >= ?2";
    msdb.execute(sql, (&job.id, from, by))?;
    let sql = "UPDATE pellucid_job_step SET step_id = -step_id WHERE job_id = ?1 AND step_id < 0";
    msdb.execute(sql, [&job.id])?;
    for way in ["success", "fail"] {
        let sql = format!(
            "UPDATE pellucid_job_step SET on_{way}_step_id = on_{way}_step_id + ?3 \
             WHERE job_id = ?1 AND on_{way}_action = 4 AND on_{way}_step_id >= ?2"
        );
        msdb.execute(&sql, (&job.id, from, by))?;
    }
    let sql = "UPDATE pellucid_job SET start_step_id = start_step_id + ?3 WHERE job_id = ?1 AND start_step_id >= ?2 \
               AND start_step_id > 1";
    msdb.execute(sql, (&job.id, from, by))?;
    Ok(())
}

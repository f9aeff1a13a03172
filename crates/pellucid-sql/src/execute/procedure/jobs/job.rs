//! sp_add_job, sp_update_job, sp_delete_job

use rusqlite::{Connection, OptionalExtension};

use super::{category, exists_already, not_in_list, not_one_of, Call, Outputs, Procedure};
use crate::execute::Done;
use crate::functions::new_guid;
use crate::jobs::accounts;
use crate::jobs::store::{self, Job};
use crate::message::{table, Message};
use crate::session::Session;
use crate::values::convert::Value;
use crate::values::types::SqlType;

pub(super) const ADD: Procedure = Procedure {
    name: "sp_add_job",
    parameters: &[
        "job_name",
        "enabled",
        "description",
        "start_step_id",
        "category_name",
        "category_id",
        "owner_login_name",
        "notify_level_eventlog",
        "notify_level_email",
        "notify_level_netsend",
        "notify_level_page",
        "notify_email_operator_name",
        "notify_netsend_operator_name",
        "notify_page_operator_name",
        "delete_level",
        "job_id",
        "originating_server",
    ],
    run: add,
};
pub(super) const UPDATE: Procedure = Procedure {
    name: "sp_update_job",
    parameters: &[
        "job_id",
        "job_name",
        "new_name",
        "enabled",
        "description",
        "start_step_id",
        "category_name",
        "owner_login_name",
        "notify_level_eventlog",
        "notify_level_email",
        "notify_level_netsend",
        "notify_level_page",
        "notify_email_operator_name",
        "notify_netsend_operator_name",
        "notify_page_operator_name",
        "delete_level",
        "automatic_post",
    ],
    run: update,
};
pub(super) const DELETE: Procedure = Procedure {
    name: "sp_delete_job",
    parameters: &[
        "job_id",
        "job_name",
        "originating_server",
        "delete_history",
        "delete_unused_schedule",
    ],
    run: delete,
};

/// never, on success, on failure, always
const LEVELS: [i64; 4] = [0, 1, 2, 3];
/// Characters of a description.
const DESCRIPTION_MOST: usize = 512;
/// The ways in which an operator is told: none of them is sent, all of them are kept.
const WAYS: [&str; 3] = ["email", "netsend", "page"];

/// What both procedures set; none where it stays.
struct Settings {
    enabled: Option<i64>,
    description: Option<String>,
    category: Option<String>,
    event_log: Option<i64>,
    notified: [Notified; 3],
    delete_level: Option<i64>,
}

/// One way in which an operator is told.
struct Notified {
    way: &'static str,
    level: Option<i64>,
    /// An empty name: nobody any more.
    operator: Option<String>,
}

impl Settings {
    fn of(call: &Call<'_>) -> Done<Self> {
        call.check_owner()?;
        let description = call.text("description")?;
        if description.as_ref().is_some_and(|text| text.chars().count() > DESCRIPTION_MOST) {
            let values: [&dyn std::fmt::Display; 2] = [&"@description", &DESCRIPTION_MOST];
            return Err(Message::of(table::NAME_TOO_LONG, values).into());
        }
        let notified = |way| -> Done<Notified> {
            let level = call.one_of(&format!("notify_level_{way}"), &LEVELS)?;
            let operator = call.text(&format!("notify_{way}_operator_name"))?;
            let operator = operator.map(|name| name.trim_matches(' ').to_owned());
            Ok(Notified { way, level, operator })
        };
        let [email, netsend, page] = WAYS.map(notified);
        Ok(Self {
            enabled: call.one_of("enabled", &[0, 1])?,
            description,
            category: call.name("category_name")?,
            event_log: call.one_of("notify_level_eventlog", &LEVELS)?,
            notified: [email?, netsend?, page?],
            delete_level: call.one_of("delete_level", &LEVELS)?,
        })
    }

    /// Writes what is set.
    fn write(&self, msdb: &Connection, job: &str) -> Done {
        let category = category::of_job(msdb, self.category.as_deref())?;
        let numbers = [
            ("enabled", self.enabled),
            ("category_id", category),
            ("notify_level_eventlog", self.event_log),
            ("delete_level", self.delete_level),
        ];
        for (column, value) in numbers {
            if let Some(value) = value {
                set(msdb, job, column, &value)?;
            }
        }
        if let Some(description) = &self.description {
            set(msdb, job, "description", description)?;
        }
        self.notified.iter().try_for_each(|notified| notified.write(msdb, job))
    }
}

impl Notified {
    fn write(&self, msdb: &Connection, job: &str) -> Done {
        let Self { way, level, operator } = self;
        let sql = format!(
            "SELECT notify_level_{way}, notify_{way}_operator_id FROM pellucid_job WHERE job_id = ?1"
        );
        let (kept_level, kept_id): (i64, i64) =
            msdb.query_row(&sql, [job], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut level = level.unwrap_or(kept_level);
        let id = match operator.as_deref() {
            None => kept_id,
            Some("") => 0,
            Some(name) => {
                let sql = "SELECT id FROM pellucid_operator WHERE name = ?1";
                let found = msdb.query_row(sql, [name], |row| row.get(0)).optional()?;
                let parameter = format!("notify_{way}_operator_name");
                found.ok_or_else(|| not_in_list(&parameter, "sp_help_operator"))?
            }
        };
        // Like there: an operator wants a level, and without one there is nobody to tell.
        match (id, level) {
            (0, _) => level = 0,
            (_, 0) => return Err(not_one_of(&format!("notify_level_{way}"), "1, 2, 3")),
            _ => {}
        }
        set(msdb, job, &format!("notify_level_{way}"), &level)?;
        set(msdb, job, &format!("notify_{way}_operator_id"), &id)
    }
}

/// Changes a column, whose name is one of ours.
fn set(msdb: &Connection, job: &str, column: &str, value: &dyn rusqlite::ToSql) -> Done {
    let sql = format!("UPDATE pellucid_job SET {column} = ?2 WHERE job_id = ?1");
    msdb.execute(&sql, rusqlite::params![job, value])?;
    Ok(())
}

fn add(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    let name = call.required("job_name")?;
    check_local(session, call)?;
    if call.guid("job_id")?.is_some() {
        return Err(Message::of(table::NEW_JOB_WITH_ID, []).into());
    }
    if call.integer("start_step_id")?.is_some_and(|step| step != 1) {
        return Err(not_one_of("start_step_id", "1"));
    }
    let mut settings = Settings::of(call)?;
    let category_id = call.integer("category_id")?;
    if category_id.is_some() && settings.category.is_some() {
        let values: [&dyn std::fmt::Display; 2] = [&"@category_id", &"@category_name"];
        return Err(Message::of(table::ONE_OF_TWO, values).into());
    }
    // What sp_add_job has where it is given nothing.
    settings.event_log.get_or_insert(2);
    settings.description.get_or_insert_with(|| "No description available.".to_owned());
    let id = new_guid()?;
    session.change_msdb(|msdb| {
        if store::job_named(msdb, &name)?.is_some() {
            return Err(exists_already("@job_name", &name).into());
        }
        if let Some(number) = category_id {
            let unknown = || super::does_not_exist("@category_id", &number.to_string());
            settings.category = Some(category::named(msdb, number)?.ok_or_else(unknown)?);
        }
        let sql = format!(
            "INSERT INTO pellucid_job(job_id, name, owner_uid, enabled, start_step_id, category_id, notify_level_eventlog, \
             notify_level_email, notify_level_netsend, notify_level_page, notify_email_operator_id, \
             notify_netsend_operator_id, notify_page_operator_id, delete_level, date_created, date_modified) \
             VALUES (?1, ?2, ?3, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, {NOW}, {NOW})",
            NOW = store::NOW
        );
        msdb.execute(&sql, (&id, &name, accounts::own()))?;
        settings.write(msdb, &id)
    })?;
    Ok(vec![("job_id", Value::Text(id), SqlType::UniqueIdentifier)])
}

fn update(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    let settings = Settings::of(call)?;
    let new_name = call.name("new_name")?;
    let start_step = call.integer("start_step_id")?;
    session.change_msdb(|msdb| {
        let job = call.own_job(msdb)?;
        if let Some(name) = new_name.filter(|name| *name != job.name) {
            if store::job_named(msdb, &name)?.is_some_and(|other| other.id != job.id) {
                return Err(exists_already("@new_name", &name).into());
            }
            set(msdb, &job.id, "name", &name)?;
        }
        if let Some(step) = start_step {
            let most = store::steps(msdb, &job)? + 1;
            if !(1..=most).contains(&step) {
                return Err(not_one_of("start_step_id", format!("1..{most}")));
            }
            set(msdb, &job.id, "start_step_id", &step)?;
        }
        settings.write(msdb, &job.id)?;
        if settings.enabled == Some(1) && !job.is_enabled {
            store::reschedule(msdb, &job)?;
        }
        store::touch(msdb, &job)?;
        Ok(Outputs::new())
    })
}

fn delete(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    if call.name("originating_server")?.is_some() {
        return Err(Message::unsupported("sp_delete_job @originating_server").into());
    }
    let with_history = call.integer("delete_history")?.unwrap_or(1) != 0;
    let with_schedules = call.integer("delete_unused_schedule")?.unwrap_or(1) != 0;
    session.change_msdb(|msdb| {
        let job: Job = call.own_job(msdb)?;
        store::delete_job(msdb, &job, with_history, with_schedules)?;
        Ok(Outputs::new())
    })
}

/// Jobs of other servers are refused.
pub(super) fn check_local(session: &Session, call: &Call<'_>) -> Done {
    let here = session.shared.server_name();
    match call.name("originating_server")? {
        Some(name) if !name.eq_ignore_ascii_case("(local)") && !name.eq_ignore_ascii_case(here) => {
            Err(Message::unsupported("@originating_server of another server").into())
        }
        _ => Ok(()),
    }
}

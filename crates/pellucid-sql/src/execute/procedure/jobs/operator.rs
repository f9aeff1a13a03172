//! sp_add_operator, sp_update_operator, sp_delete_operator: kept and shown; nothing is sent to anybody.

use rusqlite::{Connection, OptionalExtension};

use super::{category, exists_already, Call, Outputs, Procedure};
use crate::execute::Done;
use crate::jobs::schedule::time_of;
use crate::message::{table, Message};
use crate::session::Session;

pub(super) const ADD: Procedure = Procedure {
    name: "sp_add_operator",
    parameters: &[
        "name",
        "enabled",
        "email_address",
        "pager_address",
        "weekday_pager_start_time",
        "weekday_pager_end_time",
        "saturday_pager_start_time",
        "saturday_pager_end_time",
        "sunday_pager_start_time",
        "sunday_pager_end_time",
        "pager_days",
        "netsend_address",
        "category_name",
    ],
    run: add,
};
pub(super) const UPDATE: Procedure = Procedure {
    name: "sp_update_operator",
    parameters: &[
        "name",
        "new_name",
        "enabled",
        "email_address",
        "pager_address",
        "weekday_pager_start_time",
        "weekday_pager_end_time",
        "saturday_pager_start_time",
        "saturday_pager_end_time",
        "sunday_pager_start_time",
        "sunday_pager_end_time",
        "pager_days",
        "netsend_address",
        "category_name",
    ],
    run: update,
};
pub(super) const DELETE: Procedure = Procedure {
    name: "sp_delete_operator",
    parameters: &["name", "reassign_to_operator"],
    run: delete,
};

const ADDRESSES: [&str; 3] = ["email_address", "pager_address", "netsend_address"];
const ADDRESS_MOST: usize = 100;
const TIMES: [&str; 6] = [
    "weekday_pager_start_time",
    "weekday_pager_end_time",
    "saturday_pager_start_time",
    "saturday_pager_end_time",
    "sunday_pager_start_time",
    "sunday_pager_end_time",
];

fn add(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    let name = call.required("name")?;
    session.change_msdb(|msdb| {
        if find(msdb, &name)?.is_some() {
            return Err(exists_already("@name", &name).into());
        }
        let sql = "INSERT INTO pellucid_operator(name, enabled, weekday_pager_start_time, weekday_pager_end_time, \
                   saturday_pager_start_time, saturday_pager_end_time, sunday_pager_start_time, sunday_pager_end_time, \
                   pager_days, category_id) VALUES (?1, 1, 90000, 180000, 90000, 180000, 90000, 180000, 0, ?2)";
        msdb.execute(sql, (&name, category::OF_OPERATORS.1))?;
        write(msdb, call, msdb.last_insert_rowid())
    })
}

fn update(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    let name = call.required("name")?;
    session.change_msdb(|msdb| {
        let id = existing(msdb, &name)?;
        if let Some(new) = call.name("new_name")? {
            if find(msdb, &new)?.is_some_and(|other| other != id) {
                return Err(exists_already("@new_name", &new).into());
            }
            set(msdb, id, "name", &new)?;
        }
        write(msdb, call, id)
    })
}

fn delete(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    let name = call.required("name")?;
    let heir = call.name("reassign_to_operator")?;
    session.change_msdb(|msdb| {
        let id = existing(msdb, &name)?;
        let heir = match &heir {
            Some(heir) => {
                let unknown = || super::does_not_exist("@reassign_to_operator", heir);
                find(msdb, heir)?.ok_or_else(unknown)?
            }
            None => 0,
        };
        for way in ["email", "netsend", "page"] {
            let sql = format!(
                "UPDATE pellucid_job SET notify_{way}_operator_id = ?2, \
                 notify_level_{way} = CASE WHEN ?2 = 0 THEN 0 ELSE notify_level_{way} END \
                 WHERE notify_{way}_operator_id = ?1"
            );
            msdb.execute(&sql, [id, heir])?;
        }
        msdb.execute("DELETE FROM pellucid_operator WHERE id = ?1", [id])?;
        Ok(Outputs::new())
    })
}

/// Writes what the call sets.
fn write(msdb: &Connection, call: &Call<'_>, id: i64) -> Done<Outputs> {
    if let Some(enabled) = call.one_of("enabled", &[0, 1])? {
        set(msdb, id, "enabled", &enabled)?;
    }
    for parameter in ADDRESSES {
        let Some(address) = call.text(parameter)? else { continue };
        if address.chars().count() > ADDRESS_MOST {
            let parameter = format!("@{parameter}");
            return Err(Message::of(table::NAME_TOO_LONG, [&parameter, &ADDRESS_MOST]).into());
        }
        set(msdb, id, parameter, &address)?;
    }
    for parameter in TIMES {
        let Some(time) = call.integer(parameter)? else { continue };
        if time_of(time).is_none() {
            let parameter = format!("@{parameter}");
            return Err(Message::of(table::INVALID_PART, [&parameter, &"time"]).into());
        }
        set(msdb, id, parameter, &time)?;
    }
    if let Some(days) = call.within("pager_days", 0, 127)? {
        set(msdb, id, "pager_days", &days)?;
    }
    if let Some(name) = call.name("category_name")? {
        set(msdb, id, "category_id", &category::of_operator(msdb, &name)?)?;
    }
    Ok(Outputs::new())
}

/// Changes a column, whose name is one of ours.
fn set(msdb: &Connection, id: i64, column: &str, value: &dyn rusqlite::ToSql) -> Done {
    let sql = format!("UPDATE pellucid_operator SET {column} = ?2 WHERE id = ?1");
    msdb.execute(&sql, rusqlite::params![id, value])?;
    Ok(())
}

fn existing(msdb: &Connection, name: &str) -> Done<i64> {
    Ok(find(msdb, name)?.ok_or_else(|| super::does_not_exist("@name", name))?)
}

fn find(msdb: &Connection, name: &str) -> Done<Option<i64>> {
    let sql = "SELECT id FROM pellucid_operator WHERE name = ?1";
    Ok(msdb.query_row(sql, [name], |row| row.get(0)).optional()?)
}

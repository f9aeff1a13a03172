//! sp_add_category, sp_delete_category

use rusqlite::{Connection, OptionalExtension};

use super::{exists_already, not_one_of, Call, Outputs, Procedure};
use crate::execute::Done;
use crate::message::{table, Message};
use crate::session::Session;

pub(super) const ADD: Procedure =
    Procedure { name: "sp_add_category", parameters: &["class", "type", "name"], run: add };
pub(super) const DELETE: Procedure =
    Procedure { name: "sp_delete_category", parameters: &["class", "name"], run: delete };

/// `category_class` of jobs.
pub(super) const OF_JOBS: i64 = 1;
/// The category of a job that names none.
pub(super) const UNCATEGORIZED: i64 = 0;
/// `category_class` and default category of operators.
pub(super) const OF_OPERATORS: (i64, i64) = (3, 99);
/// `category_type`
const MULTI_SERVER: i64 = 2;
/// Below it are those that each server has.
const FIRST_OF_USERS: i64 = 100;

fn add(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    let class = call.text("class")?.unwrap_or_else(|| "JOB".to_owned());
    let number = class_of(&class)?;
    let kind = call.text("type")?.unwrap_or_else(|| "LOCAL".to_owned());
    let name = call.required("name")?;
    if name.eq_ignore_ascii_case("[DEFAULT]") {
        return Err(Message::of(table::INVALID_PARAMETER, [&"@name"]).into());
    }
    let is = |word: &str| kind.trim_matches(' ').eq_ignore_ascii_case(word);
    let kind = match number {
        OF_JOBS if is("LOCAL") => 1,
        OF_JOBS if is("MULTI-SERVER") => MULTI_SERVER,
        OF_JOBS => return Err(not_one_of("type", "LOCAL, MULTI-SERVER")),
        _ if is("NONE") => 3,
        _ => return Err(not_one_of("type", "NONE")),
    };
    session.change_msdb(|msdb| {
        if find(msdb, number, &name)?.is_some() {
            return Err(exists_already("@name", &name).into());
        }
        let sql = "INSERT INTO pellucid_job_category(category_class, category_type, name) VALUES (?1, ?2, ?3)";
        msdb.execute(sql, (number, kind, &name))?;
        Ok(Outputs::new())
    })
}

fn delete(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    let class = call.text("class")?.unwrap_or_else(|| "JOB".to_owned());
    let number = class_of(&class)?;
    let name = call.required("name")?;
    session.change_msdb(|msdb| {
        let Some((id, _)) = find(msdb, number, &name)? else {
            let class = class.trim_matches(' ').to_uppercase();
            return Err(Message::of(table::UNKNOWN_CATEGORY, [&name, &class]).into());
        };
        if id < FIRST_OF_USERS {
            let class = class.trim_matches(' ').to_lowercase();
            return Err(Message::of(table::PERMANENT_CATEGORY, [&name, &class]).into());
        }
        // Like there, what was in it is uncategorized.
        let moved = "UPDATE pellucid_job SET category_id = ?2 WHERE category_id = ?1";
        msdb.execute(moved, [id, UNCATEGORIZED])?;
        let moved = "UPDATE pellucid_operator SET category_id = ?2 WHERE category_id = ?1";
        msdb.execute(moved, [id, OF_OPERATORS.1])?;
        msdb.execute("DELETE FROM pellucid_job_category WHERE category_id = ?1", [id])?;
        Ok(Outputs::new())
    })
}

fn class_of(class: &str) -> Done<i64> {
    let is = |word: &str| class.trim_matches(' ').eq_ignore_ascii_case(word);
    match () {
        () if is("JOB") => Ok(OF_JOBS),
        () if is("ALERT") => Ok(2),
        () if is("OPERATOR") => Ok(OF_OPERATORS.0),
        () => Err(not_one_of("class", "JOB, ALERT, OPERATOR")),
    }
}

/// Number and type of a category.
fn find(msdb: &Connection, class: i64, name: &str) -> rusqlite::Result<Option<(i64, i64)>> {
    let sql = "SELECT category_id, category_type FROM pellucid_job_category WHERE category_class = ?1 AND name = ?2";
    msdb.query_row(sql, (class, name), |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

/// The category that a job is to have; none if the call names none.
pub(super) fn of_job(msdb: &Connection, name: Option<&str>) -> Done<Option<i64>> {
    match name {
        None => Ok(None),
        Some(name) if name.eq_ignore_ascii_case("[DEFAULT]") => Ok(Some(UNCATEGORIZED)),
        Some(name) => match find(msdb, OF_JOBS, name)? {
            None => Err(super::not_in_list("category_name", "sp_help_category")),
            Some((_, MULTI_SERVER)) => Err(Message::of(table::MULTISERVER_CATEGORY, []).into()),
            Some((id, _)) => Ok(Some(id)),
        },
    }
}

/// The category that an operator is to have.
pub(super) fn of_operator(msdb: &Connection, name: &str) -> Done<i64> {
    match find(msdb, OF_OPERATORS.0, name)? {
        Some((id, _)) => Ok(id),
        None => Err(super::not_in_list("category_name", "sp_help_category")),
    }
}

/// The name of a category of jobs by its number.
pub(super) fn named(msdb: &Connection, id: i64) -> Done<Option<String>> {
    let sql =
        "SELECT name FROM pellucid_job_category WHERE category_id = ?1 AND category_class = ?2";
    Ok(msdb.query_row(sql, [id, OF_JOBS], |row| row.get(0)).optional()?)
}

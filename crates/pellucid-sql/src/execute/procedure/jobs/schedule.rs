//! sp_add_schedule, sp_update_schedule, sp_delete_schedule

use rusqlite::{Connection, OptionalExtension};
use time::OffsetDateTime;

use super::{not_one_of, Call, Outputs, Procedure};
use crate::execute::{Done, Raised};
use crate::functions::new_guid;
use crate::jobs::schedule::{
    date_number, date_of, time_of, Schedule, AT_AGENT_START, DAILY, MONTHLY, MONTHLY_RELATIVE,
    ONCE, WEEKLY, WHEN_IDLE,
};
use crate::jobs::{accounts, store};
use crate::message::{table, Message};
use crate::session::Session;
use crate::values::convert::Value;
use crate::values::types::SqlType;

pub(super) const ADD: Procedure = Procedure {
    name: "sp_add_schedule",
    parameters: &[
        "schedule_name",
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
        "owner_login_name",
        "schedule_uid",
        "schedule_id",
        "originating_server",
    ],
    run: add,
};
pub(super) const UPDATE: Procedure = Procedure {
    name: "sp_update_schedule",
    parameters: &[
        "schedule_id",
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
        "owner_login_name",
        "automatic_post",
    ],
    run: update,
};
pub(super) const DELETE: Procedure = Procedure {
    name: "sp_delete_schedule",
    parameters: &["schedule_id", "schedule_name", "force_delete", "automatic_post"],
    run: delete,
};

/// 9999-12-31
const LAST_DATE: i64 = 99_991_231;
/// 23:59:59
const LAST_TIME: i64 = 235_959;
/// Seconds between two runs at least.
const SECONDS_LEAST: i64 = 10;

/// A schedule as a call has it, over what it was or would be without.
pub(super) fn of_call(call: &Call<'_>, before: Option<Schedule>) -> Done<Schedule> {
    let number = |parameter: &str, before: Option<i64>, default: i64| -> Done<i64> {
        Ok(call.integer(parameter)?.or(before).unwrap_or(default))
    };
    let old = before.as_ref();
    let schedule = Schedule {
        freq_type: number("freq_type", old.map(|s| s.freq_type), 0)?,
        freq_interval: number("freq_interval", old.map(|s| s.freq_interval), 0)?,
        freq_subday_type: number("freq_subday_type", old.map(|s| s.freq_subday_type), 0)?,
        freq_subday_interval: number(
            "freq_subday_interval",
            old.map(|s| s.freq_subday_interval),
            0,
        )?,
        freq_relative_interval: number(
            "freq_relative_interval",
            old.map(|s| s.freq_relative_interval),
            0,
        )?,
        freq_recurrence_factor: number(
            "freq_recurrence_factor",
            old.map(|s| s.freq_recurrence_factor),
            0,
        )?,
        active_start_date: number("active_start_date", old.map(|s| s.active_start_date), 0)?,
        active_end_date: number("active_end_date", old.map(|s| s.active_end_date), LAST_DATE)?,
        active_start_time: number("active_start_time", old.map(|s| s.active_start_time), 0)?,
        active_end_time: number("active_end_time", old.map(|s| s.active_end_time), LAST_TIME)?,
    };
    checked(schedule, OffsetDateTime::now_utc())
}

/// The schedule with what it leaves out, or what is wrong with it.
fn checked(mut schedule: Schedule, now: OffsetDateTime) -> Done<Schedule> {
    match schedule.freq_type {
        2 => return Err(Message::of(table::ON_DEMAND, []).into()),
        ONCE | DAILY | WEEKLY | MONTHLY | MONTHLY_RELATIVE | AT_AGENT_START => {}
        WHEN_IDLE => return Err(Message::unsupported("@freq_type = 128 (when idle)").into()),
        _ => return Err(not_one_of("freq_type", "1, 4, 8, 16, 32, 64, 128")),
    }
    if ![0, 1, 2, 4, 8].contains(&schedule.freq_subday_type) {
        return Err(not_one_of("freq_subday_type", "0x1, 0x2, 0x4, 0x8"));
    }
    if schedule.active_start_date == 0 {
        schedule.active_start_date = date_number(now.date());
    }
    if schedule.active_end_date == 0 {
        schedule.active_end_date = LAST_DATE;
    }
    if schedule.active_end_time == 0 {
        schedule.active_end_time = LAST_TIME;
    }
    let invalid = |parameter: &str, part: &str| -> Raised {
        Message::of(table::INVALID_PART, [&parameter, &part]).into()
    };
    for (parameter, date) in [
        ("@active_end_date", schedule.active_end_date),
        ("@active_start_date", schedule.active_start_date),
    ] {
        date_of(date).ok_or_else(|| invalid(parameter, "date"))?;
    }
    if schedule.active_end_date < schedule.active_start_date {
        let names: [&dyn std::fmt::Display; 2] = [&"@active_end_date", &"@active_start_date"];
        return Err(Message::of(table::BEFORE, names).into());
    }
    for (parameter, time) in [
        ("@active_end_time", schedule.active_end_time),
        ("@active_start_time", schedule.active_start_time),
    ] {
        time_of(time).ok_or_else(|| invalid(parameter, "time"))?;
    }
    if schedule.active_start_time == schedule.active_end_time && schedule.freq_subday_type > 1 {
        return Err(not_one_of("active_end_time", "not equal to @active_start_time"));
    }
    if [ONCE, AT_AGENT_START].contains(&schedule.freq_type) {
        return Ok(Schedule {
            freq_interval: 0,
            freq_subday_type: 0,
            freq_subday_interval: 0,
            freq_relative_interval: 0,
            freq_recurrence_factor: 0,
            ..schedule
        });
    }
    if schedule.freq_subday_type == 0 {
        schedule.freq_subday_type = 1;
    }
    match reason(&schedule) {
        Some(reason) => Err(Message::of(table::INVALID_SCHEDULE, [&reason]).into()),
        None if schedule.freq_type == DAILY => {
            Ok(Schedule { freq_recurrence_factor: 0, ..schedule })
        }
        None => Ok(schedule),
    }
}

/// Why a recurring one is none: messages 14572 to 14577.
fn reason(schedule: &Schedule) -> Option<&'static str> {
    let Schedule { freq_type, freq_interval: interval, .. } = *schedule;
    let often = schedule.freq_subday_interval;
    let is_too_often = match schedule.freq_subday_type {
        1 => false,
        2 => often < SECONDS_LEAST,
        _ => often < 1,
    };
    if is_too_often {
        return Some("The specified '@freq_subday_interval' is invalid.");
    }
    match freq_type {
        DAILY if interval < 1 => Some("@freq_interval must be at least 1 for a daily job."),
        WEEKLY if !(1..=127).contains(&interval) => Some(
            "@freq_interval must be a valid day of the week bitmask [Sunday = 1 .. Saturday = 64] for a weekly job.",
        ),
        MONTHLY if !(1..=31).contains(&interval) => {
            Some("@freq_interval must be between 1 and 31 for a monthly job.")
        }
        MONTHLY_RELATIVE if ![1, 2, 4, 8, 16].contains(&schedule.freq_relative_interval) => Some(
            "@freq_relative_interval must be one of 1st (0x1), 2nd (0x2), 3rd [0x4], 4th (0x8) or Last (0x10).",
        ),
        MONTHLY_RELATIVE if !(1..=10).contains(&interval) => Some(
            "@freq_interval must be between 1 and 10 (1 = Sunday .. 7 = Saturday, 8 = Day, 9 = Weekday, 10 = Weekend-day) \
             for a monthly-relative job.",
        ),
        WEEKLY | MONTHLY | MONTHLY_RELATIVE if schedule.freq_recurrence_factor < 1 => {
            Some("@freq_recurrence_factor must be at least 1.")
        }
        _ => None,
    }
}

/// A name that a schedule may have: `ALL` means something else.
pub(super) fn check_name(parameter: &str, name: &str) -> Done {
    match name.eq_ignore_ascii_case("ALL") {
        true => Err(Message::of(table::INVALID_PARAMETER, [&format!("@{parameter}")]).into()),
        false => Ok(()),
    }
}

fn add(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    let name = call.required("schedule_name")?;
    check_name("name", &name)?;
    call.check_owner()?;
    super::job::check_local(session, call)?;
    let is_enabled = call.one_of("enabled", &[0, 1])? != Some(0);
    let schedule = of_call(call, None)?;
    let uid = call.guid("schedule_uid")?.map_or_else(new_guid, Ok)?;
    let id = session.change_msdb(|msdb| {
        if with_uid(msdb, &uid)?.is_some() {
            return Err(super::exists_already("@schedule_uid", &uid).into());
        }
        Ok(store::add_schedule(msdb, (&name, &uid, accounts::own(), is_enabled), &schedule)?)
    })?;
    Ok(made(id, uid))
}

/// What goes back for a new one.
pub(super) fn made(id: i64, uid: String) -> Outputs {
    vec![
        ("schedule_id", Value::Integer(id), SqlType::Int),
        ("schedule_uid", Value::Text(uid), SqlType::UniqueIdentifier),
    ]
}

/// Changes what a call sets of a schedule.
pub(super) fn change(msdb: &Connection, call: &Call<'_>, id: i64) -> Done {
    let (name, owner, is_enabled): (String, u32, bool) = msdb.query_row(
        "SELECT name, owner_uid, enabled FROM pellucid_schedule WHERE schedule_id = ?1",
        [id],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    super::assert_may_change(owner)?;
    let name = call.name("new_name")?.unwrap_or(name);
    check_name("new_name", &name)?;
    let is_enabled = call.one_of("enabled", &[0, 1])?.map_or(is_enabled, |given| given == 1);
    let schedule = of_call(call, Some(store::schedule_of(msdb, id)?))?;
    Ok(store::change_schedule(msdb, id, (&name, is_enabled), &schedule)?)
}

fn update(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    call.check_owner()?;
    session.change_msdb(|msdb| {
        let id = find(msdb, call, "name")?;
        change(msdb, call, id)?;
        Ok(Outputs::new())
    })
}

fn delete(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    let is_forced = call.integer("force_delete")?.unwrap_or(0) != 0;
    session.change_msdb(|msdb| {
        let id = find(msdb, call, "schedule_name")?;
        let owner = "SELECT owner_uid FROM pellucid_schedule WHERE schedule_id = ?1";
        super::assert_may_change(msdb.query_row(owner, [id], |row| row.get(0))?)?;
        let sql = "SELECT count(*) FROM pellucid_job_schedule WHERE schedule_id = ?1";
        let jobs: i64 = msdb.query_row(sql, [id], |row| row.get(0))?;
        if jobs > 0 && !is_forced {
            return Err(Message::of(table::SCHEDULE_IN_USE, []).into());
        }
        msdb.execute("DELETE FROM pellucid_job_schedule WHERE schedule_id = ?1", [id])?;
        msdb.execute("DELETE FROM pellucid_schedule WHERE schedule_id = ?1", [id])?;
        Ok(Outputs::new())
    })
}

/// The schedule that `@schedule_id` or a name names.
pub(super) fn find(msdb: &Connection, call: &Call<'_>, parameter: &str) -> Done<i64> {
    let by_name = format!("@{parameter}");
    let (id, name) = (call.integer("schedule_id")?, call.name(parameter)?);
    match (id, name) {
        (Some(id), None) => {
            let sql = "SELECT count(*) FROM pellucid_schedule WHERE schedule_id = ?1";
            let found: i64 = msdb.query_row(sql, [id], |row| row.get(0))?;
            match found {
                0 => Err(super::does_not_exist("@schedule_id", &id.to_string()).into()),
                _ => Ok(id),
            }
        }
        (None, Some(name)) => match named(msdb, &name)?.as_slice() {
            [] => Err(super::does_not_exist(&by_name, &name).into()),
            [one] => Ok(*one),
            _ => {
                let values: [&dyn std::fmt::Display; 3] = [&name, &"@schedule_id", &by_name];
                Err(Message::of(table::SEVERAL_SCHEDULES, values).into())
            }
        },
        _ => Err(Message::of(table::WHICH_SCHEDULE, [&"@schedule_id", &by_name]).into()),
    }
}

/// The schedule of a uniqueidentifier.
pub(super) fn with_uid(msdb: &Connection, uid: &str) -> Done<Option<i64>> {
    let sql = "SELECT schedule_id FROM pellucid_schedule WHERE schedule_uid = ?1";
    Ok(msdb.query_row(sql, [uid], |row| row.get(0)).optional()?)
}

/// The schedules of a name: it need not be one's alone.
pub(super) fn named(msdb: &Connection, name: &str) -> Done<Vec<i64>> {
    let mut statement = msdb.prepare(
        "SELECT schedule_id FROM pellucid_schedule WHERE name = ?1 ORDER BY schedule_id",
    )?;
    let rows = statement.query_map([name], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

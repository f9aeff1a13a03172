//! The procedures of `msdb`: SQL Server Agent's of jobs, their steps and schedules, categories and operators; Database Mail's.
//!
//! Source: Microsoft's "SQL Server Agent stored procedures", and its messages 14200 to 14599.

mod category;
mod help;
mod job;
mod mail;
mod operator;
mod run;
mod schedule;
mod schedule_of_job;
mod step;

use rusqlite::Connection;

use super::{Arguments, Given};
use crate::execute::{Done, Flow};
use crate::jobs::accounts;
use crate::jobs::store::{self, Job};
use crate::message::{table, Message};
use crate::session::Session;
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// Characters of a sysname.
const NAME_MOST: usize = 128;

/// What goes back to OUTPUT parameters: which one, and its value.
type Outputs = Vec<(&'static str, Value, SqlType)>;

/// A procedure: its name, its parameters in order, and what it does.
pub(super) struct Procedure {
    name: &'static str,
    parameters: &'static [&'static str],
    run: fn(&mut Session, &Call<'_>) -> Done<Outputs>,
}

static PROCEDURES: [Procedure; 57] = [
    category::ADD,
    category::DELETE,
    job::ADD,
    job::UPDATE,
    job::DELETE,
    step::ADD,
    step::UPDATE,
    step::DELETE,
    schedule::ADD,
    schedule::UPDATE,
    schedule::DELETE,
    schedule_of_job::ATTACH,
    schedule_of_job::DETACH,
    schedule_of_job::ADD,
    schedule_of_job::UPDATE,
    schedule_of_job::DELETE,
    run::ADD_SERVER,
    run::DELETE_SERVER,
    run::START,
    run::STOP,
    run::PURGE_HISTORY,
    help::JOB,
    operator::ADD,
    operator::UPDATE,
    operator::DELETE,
    mail::SEND,
    mail::DELETE_MAILS,
    mail::DELETE_LOG,
    mail::STATUS,
    mail::PROFILES,
    mail::ACCOUNTS,
    mail::PROFILE_ACCOUNTS,
    mail::PRINCIPAL_PROFILES,
    refused("sp_add_alert"),
    refused("sp_update_alert"),
    refused("sp_delete_alert"),
    refused("sp_add_notification"),
    refused("sp_update_notification"),
    refused("sp_delete_notification"),
    refused("sp_add_proxy"),
    refused("sp_apply_job_to_targets"),
    refused("sp_help_alert"),
    refused("sp_help_category"),
    refused("sp_help_jobactivity"),
    refused("sp_help_jobcount"),
    refused("sp_help_jobhistory"),
    refused("sp_help_jobs_in_schedule"),
    refused("sp_help_jobschedule"),
    refused("sp_help_jobserver"),
    refused("sp_help_jobstep"),
    refused("sp_help_jobsteplog"),
    refused("sp_help_operator"),
    refused("sp_help_schedule"),
    refused("sp_manage_jobs_by_login"),
    refused("sp_notify_operator"),
    refused("sp_remove_job_from_targets"),
    refused("sp_update_category"),
];

/// One that is refused by its name, whatever it is given.
const fn refused(name: &'static str) -> Procedure {
    Procedure { name, parameters: &[], run: refuse }
}

/// Never run: one function, so that [`Procedure::is_refused`] knows it by its address.
#[inline(never)]
fn refuse(session: &mut Session, _: &Call<'_>) -> Done<Outputs> {
    let name = session.frame().procedure.clone();
    Err(Message::unsupported(name.as_deref().unwrap_or_default()).into())
}

impl Procedure {
    fn is_refused(&self) -> bool {
        std::ptr::fn_addr_eq(self.run, refuse as fn(&mut Session, &Call<'_>) -> Done<Outputs>)
    }
}

/// Their names, and whether they are more than refused.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, bool)> {
    PROCEDURES.iter().map(|procedure| (procedure.name, !procedure.is_refused()))
}

/// The procedure of that name.
pub(super) fn find(name: &str) -> Option<&'static Procedure> {
    PROCEDURES.iter().find(|procedure| procedure.name.eq_ignore_ascii_case(name))
}

impl Session {
    pub(super) fn job_procedure(
        &mut self,
        procedure: &'static Procedure,
        given: &mut [Given],
    ) -> Done<Flow> {
        if procedure.is_refused() {
            return Err(Message::unsupported(procedure.name).into());
        }
        let outputs = {
            let arguments = Arguments::new(procedure.name, given, procedure.parameters)?;
            // What is told is told by the procedure.
            let before = self.frame().procedure.replace(procedure.name.into());
            let done = (procedure.run)(self, &Call(arguments));
            self.frame().procedure = before;
            done.map_err(|raised| raised.in_procedure(procedure.name))?
        };
        for (parameter, value, data_type) in outputs {
            let place = procedure.parameters.iter().position(|name| *name == parameter);
            let is_it = |(at, one): (usize, &Given)| match one.parameter.as_deref() {
                Some(name) => name.eq_ignore_ascii_case(parameter),
                None => Some(at) == place,
            };
            if let Some(at) = (0..given.len()).find(|at| is_it((*at, &given[*at]))) {
                given[at].give_back(value, data_type);
            }
        }
        Ok(Flow::Next)
    }
}

/// What a procedure was called with, by the names of its parameters.
pub(super) struct Call<'a>(Arguments<'a>);

impl Call<'_> {
    fn at(&self, parameter: &str) -> usize {
        let place = self.0.parameters.iter().position(|name| *name == parameter);
        debug_assert!(place.is_some(), "{parameter}");
        place.unwrap_or(usize::MAX)
    }

    /// Text as it is; none where it is NULL or not given.
    fn text(&self, parameter: &str) -> Done<Option<String>> {
        self.0.text(self.at(parameter))
    }

    /// A name: without spaces around it; none where nothing is left of it.
    fn name(&self, parameter: &str) -> Done<Option<String>> {
        let Some(text) = self.text(parameter)? else { return Ok(None) };
        let name = text.trim_matches(' ');
        if name.chars().count() > NAME_MOST {
            let parameter = format!("@{parameter}");
            return Err(Message::of(table::NAME_TOO_LONG, [&parameter, &NAME_MOST]).into());
        }
        Ok(Some(name.to_owned()).filter(|name| !name.is_empty()))
    }

    /// A name that has to be given.
    fn required(&self, parameter: &str) -> Done<String> {
        self.0.required(self.at(parameter))?;
        let invalid = || Message::of(table::INVALID_PARAMETER, [&format!("@{parameter}")]);
        Ok(self.name(parameter)?.ok_or_else(invalid)?)
    }

    fn integer(&self, parameter: &str) -> Done<Option<i64>> {
        self.0.integer(self.at(parameter))
    }

    /// A number that is one of `values`, which a message names.
    fn one_of(&self, parameter: &str, values: &[i64]) -> Done<Option<i64>> {
        let given = self.integer(parameter)?;
        if given.is_some_and(|given| !values.contains(&given)) {
            let all: Vec<String> = values.iter().map(i64::to_string).collect();
            return Err(not_one_of(parameter, all.join(", ")));
        }
        Ok(given)
    }

    /// A number within a range.
    fn within(&self, parameter: &str, least: i64, most: i64) -> Done<Option<i64>> {
        let given = self.integer(parameter)?;
        if given.is_some_and(|given| !(least..=most).contains(&given)) {
            return Err(not_one_of(parameter, format!("{least}..{most}")));
        }
        Ok(given)
    }

    /// A uniqueidentifier, or its 16 bytes.
    fn guid(&self, parameter: &str) -> Done<Option<String>> {
        let Some(given) = self.0.find(self.at(parameter)) else { return Ok(None) };
        match given.converted(SqlType::UniqueIdentifier)? {
            Value::Text(guid) => Ok(Some(guid)),
            _ => Ok(None),
        }
    }

    /// The job that `@job_id` or `@job_name` names.
    fn job(&self, msdb: &Connection) -> Done<Job> {
        let found = match (self.guid("job_id")?, self.name("job_name")?) {
            (Some(id), None) => {
                store::job_of(msdb, &id)?.ok_or_else(|| does_not_exist("@job_id", &id))
            }
            (None, Some(name)) => {
                store::job_named(msdb, &name)?.ok_or_else(|| does_not_exist("@job_name", &name))
            }
            _ => Err(Message::of(table::WHICH_JOB, [&"@job_id", &"@job_name"])),
        };
        Ok(found?)
    }

    /// The same, which the caller may change.
    fn own_job(&self, msdb: &Connection) -> Done<Job> {
        let job = self.job(msdb)?;
        assert_may_change(job.owner)?;
        Ok(job)
    }

    /// Refuses the name of an owner that is not the caller: whoever makes a job is its owner. `sa` is the caller, too, as
    /// each script has it.
    fn check_owner(&self) -> Done {
        let Some(name) = self.name("owner_login_name")? else { return Ok(()) };
        let is_own = |other: &str| name.eq_ignore_ascii_case(other);
        if is_own("sa") || is_own(&accounts::name(accounts::own())) {
            return Ok(());
        }
        Err(match accounts::is_known(&name) {
            true => Message::unsupported("@owner_login_name of another account").into(),
            false => not_in_list("owner_login_name", "sp_helplogins [excluding Windows NT groups]"),
        })
    }
}

/// 14525: only the account that owns a job, and root, change it.
fn assert_may_change(owner: u32) -> Done {
    match [0, owner].contains(&accounts::own()) {
        true => Ok(()),
        false => Err(Message::of(table::JOB_OF_ANOTHER, []).into()),
    }
}

/// 14266
fn not_one_of(parameter: &str, values: impl std::fmt::Display) -> crate::execute::Raised {
    Message::of(table::NOT_ONE_OF, [&format!("@{parameter}"), &values]).into()
}

/// 14234
fn not_in_list(parameter: &str, procedure: &str) -> crate::execute::Raised {
    Message::of(table::NOT_IN_LIST_OF, [&format!("@{parameter}"), &procedure]).into()
}

/// 14261
fn exists_already(parameter: &str, name: &str) -> Message {
    Message::of(table::EXISTS_ALREADY, [&parameter, &name])
}

/// 14262
fn does_not_exist(what: &str, name: &str) -> Message {
    Message::of(table::DOES_NOT_EXIST, [&what, &name])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_procedure_is_found_and_has_no_parameter_twice() {
        for procedure in &PROCEDURES {
            let found = find(&procedure.name.to_uppercase()).unwrap();
            assert!(std::ptr::eq(found, procedure), "{}", procedure.name);
            let mut names = procedure.parameters.to_vec();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), procedure.parameters.len(), "{}", procedure.name);
        }
    }
}

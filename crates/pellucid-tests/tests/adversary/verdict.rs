//! Compares what came of a case with what the oracle said of it.

use crate::act::{Action, Outcome};
use crate::oracle::{kin_of, Class, Content, Verdict};
use crate::world::{Name, World};

/// SQLite's codes for an error that says nothing of the file: it was read as if it were sound.
const NOT_TYPED: [i32; 1] = [rusqlite::ffi::SQLITE_ERROR];

/// What is wrong with the outcome, if anything is.
///
/// # Errors
/// What the outcome should have been.
pub fn compare(
    world: &World,
    target: Name,
    verdict: &Verdict,
    action: Action,
    (outcome, secret): (&Outcome, &str),
) -> Result<(), String> {
    authentic(world, target, verdict, action, (outcome, secret))?;
    let is_mixture = verdict.content == Content::Mixture;
    if action == Action::Idle && !(verdict.by_header && verdict.also_idle) {
        // What the connection has seen of the file, the log and the wal-index is of before: any error that says so, and any
        // rows that these databases had.
        return match &outcome.error {
            Some((code, text)) if NOT_TYPED.contains(code) => {
                Err(format!("read as if empty: {text}"))
            }
            _ => Ok(()),
        };
    }
    if action == Action::Check {
        return check(verdict, outcome, is_mixture);
    }
    match (&outcome.error, verdict.class) {
        (Some((code, text)), Class::Refused) => match NOT_TYPED.contains(code) {
            true => Err(format!("refused, but not because of the file: {text}")),
            false => Ok(()),
        },
        (None, Class::Refused) => Err("it had to be refused, and it works".to_owned()),
        (Some(_), _) if is_mixture || verdict.may_fail => Ok(()),
        (Some((_, text)), _) => Err(format!("it had to work: {text}")),
        (None, class) => {
            told(class, verdict, outcome)?;
            read(world, verdict, outcome, secret)
        }
    }
}

fn check(verdict: &Verdict, outcome: &Outcome, is_mixture: bool) -> Result<(), String> {
    let is_clean = outcome.error.is_none() && outcome.damage.is_empty();
    match verdict.class {
        Class::Refused if is_clean => Err("`check` calls it clean".to_owned()),
        Class::Lost if is_clean => Err("`check` calls a log that lost commits clean".to_owned()),
        Class::Refused | Class::Lost => Ok(()),
        _ if is_mixture || verdict.may_fail || verdict.check_may_fail || is_clean => Ok(()),
        _ => Err(format!("`check` finds damage: {:?} {:?}", outcome.error, outcome.damage)),
    }
}

/// Each row that was read is one that these databases had; none was, where the header has to be refused.
fn authentic(
    world: &World,
    target: Name,
    verdict: &Verdict,
    action: Action,
    (outcome, secret): (&Outcome, &str),
) -> Result<(), String> {
    let mut whose = verdict.whose.clone();
    if action == Action::Idle {
        // It may still read what it has open.
        whose.push(target);
        whose.extend(kin_of(world, target));
    }
    for line in outcome.lines.iter().filter(|line| !line.contains(secret) && *line != "nothing") {
        let has = |name: &Name| world.known.get(name).is_some_and(|rows| rows.contains(line));
        if !whose.iter().any(has) {
            return Err(format!("a row that {whose:?} never had: {line}"));
        }
    }
    Ok(())
}

fn told(class: Class, verdict: &Verdict, outcome: &Outcome) -> Result<(), String> {
    let says = |word: &str| outcome.notices.iter().any(|line| line.contains(word));
    match class {
        Class::Told if !says("another encrypted database") => {
            Err(format!("{:?} is there, and nothing was told", verdict.whose))
        }
        Class::Remains | Class::Harmless if says("another encrypted database") => {
            Err("it was told that another database is there".to_owned())
        }
        _ => Ok(()),
    }
}

fn read(world: &World, verdict: &Verdict, outcome: &Outcome, secret: &str) -> Result<(), String> {
    let Content::One(states) = &verdict.content else { return Ok(()) };
    let lines: Vec<&String> = outcome.lines.iter().filter(|line| !line.contains(secret)).collect();
    let is_it = |state: &usize| world.states[*state].lines.iter().eq(lines.iter().copied());
    match states.iter().any(is_it) {
        true => Ok(()),
        false => Err(format!(
            "not the content of {states:?}: {} lines, the first {:?}",
            lines.len(),
            lines.first()
        )),
    }
}

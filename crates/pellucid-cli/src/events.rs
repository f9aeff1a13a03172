//! `events`: the event log of the instance, for people, and whether it is as it was written.

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use pellucid::shown::Shown;
use pellucid_keyring::{check_events, read_events, restart_events, EventLog, Keyring};
use serde_json::Value;

use crate::event_log as told;
use crate::exit;
use crate::known::{event_log_damage as damage, EVENT_LOG, EVENT_LOG_REMEDY as REMEDY};
use crate::output::{self, Failure, Id, Output};

/// What `events` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid events --last 10\n  pellucid --json events\n  pellucid events verify"
)]
pub struct EventsArgs {
    /// Show only the newest so many events
    #[arg(long, value_name = "COUNT")]
    last: Option<usize>,
    #[command(subcommand)]
    command: Option<EventsCommand>,
}

#[derive(Debug, Subcommand)]
enum EventsCommand {
    /// Check that no line of the log was changed, moved, put in or taken away; names the first that was
    Verify,
    /// After a line that is not right: begin the chain of the log anew, over the log as it is now
    Restart,
}

/// Shows the log, checks it, or begins its chain anew.
pub fn run(args: &EventsArgs, output: &Output) -> Result<ExitCode, Failure> {
    let home = Keyring::locate()?;
    match args.command {
        None => show(args, &home, output),
        Some(EventsCommand::Verify) => verify(&home, output),
        Some(EventsCommand::Restart) => restart(&home, output),
    }
}

/// Shows it; the newest event last.
fn show(args: &EventsArgs, home: &Path, output: &Output) -> Result<ExitCode, Failure> {
    let lines = read_events(home)?;
    let skipped = lines.len().saturating_sub(args.last.unwrap_or(usize::MAX));
    // A line cut by a full disk is shown as it is.
    let events: Vec<Value> = lines
        .into_iter()
        .skip(skipped)
        .map(|line| serde_json::from_str(&line).unwrap_or(Value::String(line)))
        .collect();
    // Whoever has no key here sees the log all the same.
    let wrong = damage(home);
    if let Some(wrong) = &wrong {
        output.warning(format!("{EVENT_LOG}: {} ({})", wrong.told, wrong.todo));
    }
    if events.is_empty() {
        output.line(format!("no events in `{}`", home.shown()));
    } else {
        output.line(table(&events, home));
    }
    output.facts(&serde_json::json!({
        "home": output::name(home), "events": events, "wrong": wrong.as_ref().map(|one| &one.told),
    }));
    Ok(if wrong.is_some() { ExitCode::from(exit::ATTENTION) } else { ExitCode::SUCCESS })
}

fn verify(home: &Path, output: &Output) -> Result<ExitCode, Failure> {
    if !Keyring::is_at(home) {
        let told = format!("there is no keyring in `{}`, and no event log", home.shown());
        return Err(Failure::new(Id::NoKeyring, told, "`PELLUCID_HOME` names another one"));
    }
    let path = home.join("events.log");
    let found = check_events(home)?;
    if let Some(told) = told::wrong(&path, &found) {
        return Err(Failure::new(Id::EventLog, told, REMEDY));
    }
    for line in told::remarks(&found) {
        output.warning(line);
    }
    output.line(told::right(&path, &found));
    output.facts(&facts(home, &found));
    Ok(ExitCode::SUCCESS)
}

fn facts(home: &Path, found: &EventLog) -> Value {
    serde_json::json!({
        "home": output::name(home),
        "lines": found.lines,
        "closed_parts": found.closed.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "holds_from_line": found.holds_from,
        "last_number": found.last_number,
        "unfinished_lines": found.unfinished,
        "left_behind_lines": found.left_behind.iter().map(|one| one.line).collect::<Vec<_>>(),
        "waiting": found.waiting,
    })
}

fn restart(home: &Path, output: &Output) -> Result<ExitCode, Failure> {
    if !Keyring::is_at(home) {
        let told = format!("there is no keyring in `{}`, and no event log", home.shown());
        return Err(Failure::new(Id::NoKeyring, told, "`PELLUCID_HOME` names another one"));
    }
    let found = check_events(home)?;
    let Some(wrong) = told::wrong(&home.join("events.log"), &found) else {
        return Err(Failure::new(
            Id::EventLogWhole,
            "the event log is as it was written: nothing was changed",
            "`pellucid events verify` says from which line on its chain holds",
        ));
    };
    output.confirm(&format!("{wrong}. Begin its chain anew, over the log as it is now?"))?;
    restart_events(home)?;
    let now = check_events(home)?;
    output.line(told::right(&home.join("events.log"), &now));
    output.facts(&facts(home, &now));
    Ok(ExitCode::SUCCESS)
}

fn table(events: &[Value], home: &Path) -> output::Grid {
    let mut table = output::table(["time (UTC)", "who", "what"]);
    for event in events {
        table.add_row(told::row(event, home).map(|text| text.shown().to_string()));
    }
    table
}

//! `events`: the event log of the instance, for people.

use std::process::ExitCode;

use clap::Args;
use comfy_table::Table;
use pellucid::shown::Shown;
use pellucid_keyring::{read_events, Keyring};
use serde_json::Value;

use crate::output::{self, Failure, Output};

/// What `events` takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid events --last 10\n  pellucid --json events")]
pub struct EventsArgs {
    /// Show only the newest so many events
    #[arg(long, value_name = "COUNT")]
    last: Option<usize>,
}

/// Shows it; the newest event last.
pub fn run(args: &EventsArgs, output: &Output) -> Result<ExitCode, Failure> {
    let home = Keyring::locate()?;
    let lines = read_events(&home)?;
    let skipped = lines.len().saturating_sub(args.last.unwrap_or(usize::MAX));
    // A line cut by a full disk is shown as it is.
    let events: Vec<Value> = lines
        .into_iter()
        .skip(skipped)
        .map(|line| serde_json::from_str(&line).unwrap_or(Value::String(line)))
        .collect();
    if events.is_empty() {
        output.line(format!("no events in `{}`", home.shown()));
    } else {
        output.line(table(&events));
    }
    output.facts(&serde_json::json!({"home": crate::output::name(&home), "events": events}));
    Ok(ExitCode::SUCCESS)
}

fn table(events: &[Value]) -> Table {
    let mut table = output::table(["time (UTC)", "who", "what"]);
    for event in events {
        let text = |key: &str| event[key].as_str().unwrap_or_default();
        let time = text("time").get(..19).unwrap_or_default().replace('T', " ");
        let program = text("program").rsplit('/').next().unwrap_or_default();
        let login = match &event["login_uid"] {
            Value::Null => String::new(),
            login if *login == event["uid"] => String::new(),
            login => format!(", logged in as {login}"),
        };
        let who = format!("uid {}{login}, {program} [{}]", event["uid"], event["pid"]);
        let forced = if event["forced"] == true { ", with FORCE" } else { "" };
        let what = match event {
            Value::String(line) => line.clone(),
            _ => {
                let name = match text("name") {
                    "" => String::new(),
                    name => format!(" `{name}`"),
                };
                format!("{}{name} {}{forced}", text("subject"), text("action"))
            }
        };
        table.add_row([time, who, what].map(|text| text.shown().to_string()));
    }
    table
}

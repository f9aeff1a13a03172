//! `scan status`, and what `status` says about scans: states, dates, how far, and which process.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pellucid::scan::ScanState;
use pellucid::shown::Shown;
use pellucid_engine::inspect::SealedHeader;
use pellucid_keyring::Keyring;
use serde_json::{json, Value};

use super::entry::{find, Found};
use crate::container::sealed;
use crate::known::Known;
use crate::output::{date, moment, table, word, Failure, Output};

/// Shows the scans of `databases`, or of all that the keyring knows if none is named.
pub fn run(databases: &[PathBuf], output: &Output) -> Result<ExitCode, Failure> {
    let known = match databases.is_empty() {
        true => Known::open(&Keyring::locate()?)?.databases,
        false => Vec::new(),
    };
    let mut table = table(["database", "state", "scan", "done", "since", "process"]);
    let mut facts = Vec::new();
    for database in databases.iter().chain(&known) {
        let found = match sealed(database) {
            Ok(found) => found,
            // One that cannot be read hides none of the others.
            Err(failure) if databases.is_empty() => {
                output.warning(failure.line());
                continue;
            }
            Err(failure) => return Err(failure),
        };
        let scan = &found.header.scan;
        let percent = found.percent();
        let done = percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.1} %"));
        let since = if scan.modified == 0 { "-".to_owned() } else { date(scan.modified) };
        let process = find(database, &found);
        table.add_row([
            database.shown().to_string(),
            found.header.state.name().to_owned(),
            scan.state.name().to_owned(),
            done,
            since,
            process.as_ref().map_or_else(|| "-".to_owned(), |one| words(one, database)),
        ]);
        let mut row = json!({
            "database": crate::output::name(database), "state": found.header.state.name(), "scan": scan.state.name(),
            "percent_complete": percent, "modified": scan.modified,
        });
        if let Some(process) = &process {
            row["process"] = facts_of(process);
        }
        facts.push(row);
    }
    match facts.is_empty() {
        true => output.line("The keyring knows no encrypted database: name one"),
        false => output.line(table),
    }
    output.facts(&json!({"scans": facts}));
    Ok(ExitCode::SUCCESS)
}

/// Which process scans, or why none does and what to do.
fn words(found: &Found, database: &Path) -> String {
    let resume = format!("`pellucid scan resume {}`", word(database));
    match found {
        Found::Running(None) => "running in a process that is not seen from here".to_owned(),
        Found::Running(Some(run)) => {
            let mut words = format!("running as process {}: {}", run.process.pid, run.doing);
            if run.rate >= 1.0 && run.held_by.is_empty() {
                words += &format!(", {:.0} pages a second", run.rate);
            }
            if !run.held_by.is_empty() {
                words += &format!(", held up by {}", run.held_by);
            }
            words
        }
        Found::Stopped(stopped) => format!("stopped: {}; then {resume}", stopped.error),
        Found::Gone(None) => format!("not running: {resume}"),
        Found::Gone(Some(run)) => {
            format!("not running, process {} is gone: {resume}", run.process.pid)
        }
    }
}

/// A scan that does not go on: what is so, and what to do.
pub fn stands(database: &Path, sealed: &SealedHeader) -> Option<(String, String)> {
    let name = database.shown();
    let resume = format!("`pellucid scan resume {}` goes on with it", word(database));
    let state = sealed.header.scan.state;
    let (told, todo) = match (find(database, sealed)?, state) {
        (Found::Running(_), ScanState::Running) => return None,
        (Found::Stopped(stopped), _) => {
            let todo = match stopped.hint.as_str() {
                "" => resume,
                hint => format!("{hint}; {resume}"),
            };
            let what = if state == ScanState::Aborted { "was aborted" } else { "has stopped" };
            (format!("{what}: {}", stopped.error), todo)
        }
        (_, ScanState::Suspended | ScanState::Aborted) => (format!("is {}", state.name()), resume),
        (Found::Gone(_), _) => ("is not running".to_owned(), resume),
        _ => return None,
    };
    Some((format!("`{name}`: its scan {told}"), todo))
}

/// The process's number for a table, where one is scanning.
pub fn process(database: &Path, sealed: &SealedHeader) -> Option<u32> {
    match find(database, sealed)? {
        Found::Running(run) => Some(run?.process.pid),
        _ => None,
    }
}

/// The same for machines, or why none is scanning; nothing if there is nothing to scan.
pub fn process_facts(database: &Path, sealed: &SealedHeader) -> Option<Value> {
    find(database, sealed).as_ref().map(facts_of)
}

fn facts_of(found: &Found) -> Value {
    match found {
        Found::Running(None) => json!({"running": true}),
        Found::Running(Some(run)) => {
            let left = f64::from(run.pages.saturating_sub(run.done)) / run.rate;
            json!({
                "running": true, "pid": run.process.pid, "started": moment(run.started),
                "doing": run.doing, "held_by": run.held_by, "pages_done": run.done, "pages": run.pages,
                "pages_per_second": run.rate, "seconds_left": left.is_finite().then_some(left),
            })
        }
        Found::Stopped(stopped) => {
            json!({"running": false, "error": stopped.error, "hint": stopped.hint})
        }
        Found::Gone(run) => {
            json!({"running": false, "gone": run.as_ref().map(|run| run.process.pid)})
        }
    }
}

//! Events, and what is not right with the log that has them, in words.

use std::path::Path;

use pellucid_keyring::{EventLog, Keyring, LogBreak, Wrong};
use serde_json::Value;

/// What is not right, if something is; by the first line that is not.
pub fn wrong(path: &Path, found: &EventLog) -> Option<String> {
    let name = path.display();
    let LogBreak { line, wrong } = found.wrong.as_ref()?;
    Some(match wrong {
        Wrong::End(0, known) if found.lines == 0 => format!(
            "`{name}` is missing or empty, and the keyring knows of its lines up to number {known}"
        ),
        Wrong::End(last, known) => format!(
            "`{name}` was cut: it ends with number {last}, and number {known} is missing at its end, which the keyring \
             knows of"
        ),
        Wrong::Unknown(why) => format!(
            "`{name}`: nobody can say whether it was changed, because what the keyring holds of it cannot be had: {why}"
        ),
        wrong => {
            let (part, line) = found.place(*line);
            format!("`{}`: line {line}: {}", path.with_file_name(part).display(), what(wrong))
        }
    })
}

fn what(wrong: &Wrong) -> String {
    match wrong {
        Wrong::Changed => "it was changed".to_owned(),
        Wrong::Inserted => {
            "it was put in: no writer of the chain made it, unless it is a version of pellucid from before there was a chain"
                .to_owned()
        }
        Wrong::Moved => "it is not at the place it was written at: lines were moved".to_owned(),
        Wrong::Missing(first, last) if first == last => {
            format!("number {first} is missing before it: a line was taken out")
        }
        Wrong::Missing(first, last) => {
            format!("numbers {first} to {last} are missing before it: lines were taken out")
        }
        Wrong::Beginning => {
            "a line before it was changed or taken out: the chain does not begin with it".to_owned()
        }
        Wrong::End(last, known) => {
            format!("the end is missing: number {last} is the last one of {known}")
        }
        Wrong::Unknown(why) => why.clone(),
        _ => "it is not right".to_owned(),
    }
}

/// What is to be known of a log that is as it was written.
pub fn remarks(found: &EventLog) -> Vec<String> {
    let mut lines = Vec::new();
    for one in &found.left_behind {
        lines.push(format!(
            "{}: {}; the chain was begun anew after that",
            place(found, one.line),
            what(&one.wrong)
        ));
    }
    for line in &found.unfinished {
        lines.push(format!(
            "{} was not finished by its writer, in a crash or on a full disk; what it tells of was not done",
            place(found, *line)
        ));
    }
    lines
}

/// A line, with its part where that is a closed one.
fn place(found: &EventLog, line: usize) -> String {
    match found.place(line) {
        ("events.log", line) => format!("line {line}"),
        (part, line) => format!("`{part}`, line {line}"),
    }
}

/// From where on it is as it was written.
pub fn right(path: &Path, found: &EventLog) -> String {
    let name = path.display();
    let waiting = match found.waiting {
        0 => String::new(),
        count => {
            format!("; {count} events wait to be taken in, which their accounts can still change")
        }
    };
    let parts = match found.closed.len() {
        0 => String::new(),
        1 => " with the part before it".to_owned(),
        count => format!(" with the {count} parts before it"),
    };
    match found.holds_from {
        Some(line) => format!(
            "`{name}`{parts} is as it was written: the chain holds from line {line} to line {}, number {}{waiting}",
            found.lines, found.last_number
        ),
        None => format!(
            "`{name}` has no chain yet: {} lines, for which nothing answers before the next event{waiting}",
            found.lines
        ),
    }
}

/// Time, who, what.
pub fn row(event: &Value, home: &Path) -> [String; 3] {
    // Other accounts wrote some of it, and it goes to a terminal.
    let text = |key: &str| printable(event[key].as_str().unwrap_or_default());
    let time = text("time").get(..19).unwrap_or_default().replace('T', " ");
    let program = text("program").rsplit('/').next().unwrap_or_default().to_owned();
    let login = match &event["login_uid"] {
        Value::Null => String::new(),
        login if *login == event["uid"] => String::new(),
        login => format!(", logged in as {}", number(login)),
    };
    let noted = match &event["noted_by_uid"] {
        Value::Null => String::new(),
        uid if *uid == event["uid"] => String::new(),
        uid => format!(", says uid {}", number(uid)),
    };
    let who = format!(
        "uid {}{login}{noted}, {program} [{}]",
        number(&event["uid"]),
        number(&event["pid"])
    );
    let forced = if event["forced"] == true { ", with FORCE" } else { "" };
    let clear = if event["in_clear"] == true { " in clear" } else { "" };
    let what = match event {
        Value::String(line) => printable(line),
        _ => {
            let name = match (text("name"), text("file_id")) {
                (name, id) if name.is_empty() && id.is_empty() => String::new(),
                (name, id) if name.is_empty() => format!(" {}", path_of(home, &id)),
                (name, _) => format!(" `{name}`"),
            };
            format!("{}{name} {}{clear}{forced}", text("subject"), text("action"))
        }
    };
    [time, who, what]
}

fn number(value: &Value) -> String {
    value.as_u64().map_or_else(|| "?".to_owned(), |number| number.to_string())
}

/// Where the database of that file id lies, as far as the keyring knows; else the file id.
fn path_of(home: &Path, id: &str) -> String {
    let digits: Option<Vec<u8>> =
        (0..16).map(|at| u8::from_str_radix(id.get(2 * at..2 * at + 2)?, 16).ok()).collect();
    let file_id = digits.and_then(|digits| <[u8; 16]>::try_from(digits).ok());
    let memory = file_id.and_then(|file_id| Keyring::recall_at(home, &file_id).ok().flatten());
    match memory.map(|memory| memory.path).filter(|path| !path.as_os_str().is_empty()) {
        Some(path) => format!("`{}`", printable(&path.to_string_lossy())),
        None => format!("with file id {id}"),
    }
}

fn printable(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect()
}

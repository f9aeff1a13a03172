//! An experiment run from the command line, and what it wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

pub fn lab(dir: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(line.split_whitespace())
        .args(["--dir".as_ref(), dir.as_os_str()])
        .args(["--records".as_ref(), dir.join("records.jsonl").as_os_str()])
        .output()
        .unwrap()
}

pub fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// One session.
#[derive(Debug, Default)]
pub struct Session {
    pub line: Value,
    /// Values by cell, side, quantity and round.
    observed: BTreeMap<(String, String, String, u64), f64>,
}

impl Session {
    pub fn value(&self, cell: &str, side: &str, what: &str, round: u64) -> f64 {
        let key = (cell.to_owned(), side.to_owned(), what.to_owned(), round);
        *self.observed.get(&key).unwrap_or_else(|| panic!("no {key:?}"))
    }

    pub fn cells(&self) -> BTreeSet<&str> {
        self.observed.keys().map(|(cell, ..)| &**cell).collect()
    }

    pub fn sides(&self) -> Vec<&str> {
        let sides = self.line["sides"].as_array().unwrap();
        sides.iter().map(|side| side["side"].as_str().unwrap()).collect()
    }

    pub fn parameter(&self, name: &str) -> &Value {
        let value = &self.line["parameters"][name];
        assert!(!value.is_null(), "no {name}");
        value
    }
}

/// The sessions of a run that succeeds and leaves nothing but its records in `dir`, in their order.
pub fn sessions(dir: &Path, line: &str) -> Vec<Session> {
    let output = lab(dir, line);
    let (out, err) = said(&output);
    assert!(output.status.success(), "{out}{err}");
    let left: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["records.jsonl"]);
    let mut sessions: Vec<Session> = Vec::new();
    let text = std::fs::read_to_string(dir.join("records.jsonl")).unwrap();
    for line in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let word = |name: &str| line[name].as_str().unwrap().to_owned();
        match line["record"].as_str().unwrap() {
            "session" => sessions.push(Session { line, ..Session::default() }),
            "observation" => {
                let session = sessions.last_mut().unwrap();
                assert_eq!(line["session"], session.line["session"]);
                let key =
                    (word("cell"), word("side"), word("what"), line["round"].as_u64().unwrap());
                let value = line["value"].as_f64().unwrap();
                assert_eq!(session.observed.insert(key, value), None, "twice: {line}");
            }
            _ => {}
        }
    }
    sessions
}

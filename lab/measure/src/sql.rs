//! Scripts of T-SQL, executed by `pellucid sql` as an administrator does, in an instance of their own.
//!
//! Neither the user's instance nor any variable that steers Pellucid is seen by it. A script comes by standard input, so
//! that no password of it is an argument. Times are taken from outside: from the start of the process to its end.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::machine::children_cpu_seconds;
use crate::program::{in_instance, Variable};

/// From this severity on a message is an error.
const ERROR: u8 = 11;

/// An instance, with folders for the drives that its scripts name.
#[derive(Debug, Clone)]
pub struct Server {
    program: PathBuf,
    home: PathBuf,
    drives: Vec<(char, PathBuf)>,
    environment: Vec<Variable>,
}

/// What a script gave, and what it took.
#[derive(Debug)]
pub struct Answer {
    pub tables: Vec<Table>,
    pub messages: Vec<Message>,
    /// Rows that each statement without a result changed.
    pub changed: Vec<u64>,
    pub wall_s: f64,
    /// Of the process and those that it waited for.
    pub cpu_s: Option<f64>,
}

/// One result.
#[derive(Debug, Deserialize)]
pub struct Table {
    columns: Vec<Column>,
    pub rows: Vec<Vec<Value>>,
}

#[derive(Debug, Deserialize)]
struct Column {
    name: String,
}

/// A message of the server, such as an error or what a statement took.
#[derive(Debug, Deserialize)]
pub struct Message {
    pub number: i64,
    pub severity: u8,
    pub text: String,
}

impl Server {
    /// The instance in `home`, which is made, with the program at `program`.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn new(program: &Path, home: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&home).map_err(Error::io(home.display().to_string()))?;
        let (drives, environment) = (Vec::new(), Vec::new());
        Ok(Self { program: program.into(), home, drives, environment })
    }

    /// The same instance, whose paths on these drives are in these folders.
    pub fn with_drives(&self, drives: &[(char, &Path)]) -> Self {
        let drives = drives.iter().map(|(letter, folder)| (*letter, folder.to_path_buf()));
        Self { drives: drives.collect(), ..self.clone() }
    }

    /// The same instance, whose processes have these variables, or lack them.
    pub fn with_environment(&self, environment: &[Variable]) -> Self {
        Self { environment: environment.to_vec(), ..self.clone() }
    }

    /// The instance's directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Executes `script` to its end.
    ///
    /// # Errors
    /// [`Error::Invalid`] at the first message of severity 11 or more, with its text.
    pub fn run(&self, script: &str) -> Result<Answer> {
        let mut command = Command::new(&self.program);
        command.args(["--json", "sql", "-b"]);
        for (letter, folder) in &self.drives {
            let mut drive = std::ffi::OsString::from(format!("{letter}="));
            drive.push(folder);
            command.arg("--drive").arg(drive);
        }
        in_instance(&mut command, &self.home, &self.environment);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (started, cpu_s) = (Instant::now(), children_cpu_seconds());
        let mut child = command.spawn().map_err(Error::io("pellucid sql"))?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(script.as_bytes()).map_err(Error::io("the script of pellucid sql"))?;
        }
        let output = child.wait_with_output().map_err(Error::io("pellucid sql"))?;
        let wall_s = started.elapsed().as_secs_f64();
        let cpu_s = children_cpu_seconds().zip(cpu_s).map(|(end, start)| end - start);
        let answer = Answer { wall_s, cpu_s, ..Answer::parse(&output.stdout)? };
        if let Some(wrong) = answer.messages.iter().find(|message| message.severity >= ERROR) {
            return Err(Error::invalid(format!(
                "pellucid sql: message {}: {}",
                wrong.number, wrong.text
            )));
        }
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Error::invalid(format!("pellucid sql ({}): {said}", output.status)));
        }
        Ok(answer)
    }
}

impl Answer {
    /// What `--json` prints: a result, a message or a count on each line.
    fn parse(lines: &[u8]) -> Result<Self> {
        let (mut tables, mut messages, mut changed) = (Vec::new(), Vec::new(), Vec::new());
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let wrong = |error| Error::invalid(format!("pellucid sql: what it says: {error}"));
            let value: Value = serde_json::from_slice(line).map_err(wrong)?;
            if value.get("columns").is_some() {
                tables.push(serde_json::from_value(value).map_err(wrong)?);
            } else if value.get("number").is_some() {
                messages.push(serde_json::from_value(value).map_err(wrong)?);
            } else {
                changed.extend(value["rows_affected"].as_u64());
            }
        }
        Ok(Self { tables, messages, changed, wall_s: 0.0, cpu_s: None })
    }

    /// The last result.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is none.
    pub fn table(&self) -> Result<&Table> {
        self.tables.last().ok_or_else(|| Error::invalid("pellucid sql: no result"))
    }
}

impl Table {
    /// What stands in this row and column.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such row or column.
    pub fn value(&self, row: usize, column: &str) -> Result<&Value> {
        let place = self.columns.iter().position(|found| found.name == column);
        place
            .and_then(|place| self.rows.get(row)?.get(place))
            .ok_or_else(|| Error::invalid(format!("pellucid sql: no `{column}` in row {row}")))
    }

    /// The number that stands there.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is none.
    pub fn number(&self, row: usize, column: &str) -> Result<f64> {
        let value = self.value(row, column)?;
        value.as_f64().ok_or_else(|| {
            Error::invalid(format!("pellucid sql: `{column}` is no number: {value}"))
        })
    }

    /// The text that stands there.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is none.
    pub fn text(&self, row: usize, column: &str) -> Result<&str> {
        let value = self.value(row, column)?;
        value
            .as_str()
            .ok_or_else(|| Error::invalid(format!("pellucid sql: `{column}` is no text: {value}")))
    }
}

/// A text of T-SQL.
pub fn quoted(text: &str) -> String {
    format!("N'{}'", text.replace('\'', "''"))
}

/// A path as a text of T-SQL.
///
/// # Errors
/// [`Error::Invalid`] for one that is not UTF-8.
pub fn quoted_path(path: &Path) -> Result<String> {
    let text = path.to_str();
    text.map(quoted)
        .ok_or_else(|| Error::invalid(format!("`{}`: a name that is not UTF-8", path.display())))
}

/// The batches of a script without commands.
pub fn batches(script: &str) -> Vec<String> {
    let mut batches = vec![String::new()];
    for line in script.lines() {
        if line.trim().eq_ignore_ascii_case("GO") {
            batches.push(String::new());
        } else if let Some(batch) = batches.last_mut() {
            batch.push_str(line);
            batch.push('\n');
        }
    }
    batches.retain(|batch| !batch.trim().is_empty());
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_results_and_messages() {
        let lines = br#"{"number":5701,"severity":0,"text":"Changed"}
{"rows_affected":3}
{"columns":[{"name":"name","type":"sysname"},{"name":"size","type":"numeric(20,0)"}],"rows":[["a",12.500000000000],["b",null]],"rows_affected":2}
"#;
        let answer = Answer::parse(lines).unwrap();
        assert_eq!((answer.tables.len(), answer.messages[0].number), (1, 5701));
        assert_eq!(answer.changed, [3]);
        let table = answer.table().unwrap();
        assert_eq!((table.text(0, "name").unwrap(), table.number(0, "size").unwrap()), ("a", 12.5));
        assert!(table.number(1, "size").is_err() && table.text(2, "name").is_err());
        assert!(table.text(0, "other").is_err());
        assert!(Answer::parse(b"no JSON\n").is_err());
        assert!(Answer::parse(b"").unwrap().table().is_err());
    }

    #[test]
    fn a_script_is_cut_where_its_batches_end() {
        let script = include_str!("../../../crates/pellucid-sql/tests/articles/1-backup.sql");
        let batches = batches(script);
        assert_eq!(batches.len(), 4);
        let last = batches[3].trim_start();
        assert!(last.starts_with("BACKUP DATABASE [IndexDemo]"), "{last}");
        assert_eq!(quoted("it's"), "N'it''s'");
    }
}

//! The demo's commands: real programs, shown as a person would type them.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use pellucid::hash::Sha256;

use super::image::io;
use super::words::{typed, visible};
use crate::extension;
use crate::output::{Failure, Id, Output};

/// Prints every row of a query; what an application in Python would do.
const QUERY_PY: &str = "\
import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]):
    print(*row, sep=\"|\")
";
/// Where there is no `sqlite3` to do it.
const DUMP_PY: &str = "\
import sqlite3, sys
for line in sqlite3.connect(sys.argv[1]).iterdump():
    sys.stdout.buffer.write(line.encode('utf-8', 'surrogatepass') + b'\\n')
";

const LINES_MAX: usize = 14;

/// An unmodified program over the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    Sqlite3,
    Python3,
}

impl Program {
    /// Each of them.
    pub const ALL: [Program; 2] = [Program::Sqlite3, Program::Python3];

    /// Its name; also that of the Debian package that brings it.
    pub fn name(self) -> &'static str {
        match self {
            Program::Sqlite3 => "sqlite3",
            Program::Python3 => "python3",
        }
    }

    /// The command line that asks `database` for `query`.
    pub fn query<'a>(self, database: &'a str, query: &'a str) -> Vec<&'a str> {
        match self {
            Program::Sqlite3 => vec!["sqlite3", database, query],
            Program::Python3 => vec!["python3", "query.py", database, query],
        }
    }

    fn dump(self, database: &str) -> Vec<&str> {
        match self {
            Program::Sqlite3 => vec!["sqlite3", database, ".dump"],
            Program::Python3 => vec!["python3", "-c", DUMP_PY, database],
        }
    }
}

/// What a command said on both streams.
#[derive(Debug)]
pub struct Said {
    pub status: i32,
    pub text: String,
}

impl Said {
    /// The first lines: what is said about a damaged database can be long.
    pub fn shortened(&self) -> String {
        let mut lines: Vec<&str> = self.text.trim_end().lines().collect();
        let more = lines.len().saturating_sub(LINES_MAX);
        lines.truncate(LINES_MAX);
        let rest = if more > 0 {
            format!("\n(and {more} more line{})", if more == 1 { "" } else { "s" })
        } else {
            String::new()
        };
        lines.join("\n") + &rest
    }
}

/// Runs commands in the demo's directory, with its own keys and nobody's settings.
#[derive(Debug)]
pub struct Commands<'a> {
    output: &'a Output,
    directory: PathBuf,
    pellucid: PathBuf,
    extension: PathBuf,
    path: OsString,
}

impl<'a> Commands<'a> {
    /// # Errors
    /// [`Failure`] if the program cannot find itself or the extension.
    pub fn new(directory: PathBuf, output: &'a Output) -> Result<Self, Failure> {
        let pellucid = std::env::current_exe().map_err(|error| {
            Failure::new(
                Id::OwnPathUnknown,
                format!("this program's own path: {error}"),
                "try again",
            )
        })?;
        let extension = extension::locate()
            .map_err(|missing| Failure::new(Id::LibraryMissing, &missing, missing.hint()))?;
        // The distribution's own programs first: they are what has to work unchanged.
        let mut path = OsString::from("/usr/bin:/bin");
        if let Some(own) = std::env::var_os("PATH").filter(|own| !own.is_empty()) {
            path.push(":");
            path.push(own);
        }
        Ok(Self { output, directory, pellucid, extension, path })
    }

    /// Puts the script beside the database.
    pub fn write_scripts(&self) -> Result<(), Failure> {
        let path = self.directory.join("query.py");
        std::fs::write(&path, QUERY_PY).map_err(|error| io(&path, error))
    }

    /// Whether it is there, with an SQLite.
    pub fn has(&self, program: Program) -> bool {
        match program {
            Program::Sqlite3 => self.find("sqlite3").is_some(),
            Program::Python3 => self
                .quietly(&["python3", "-c", "import sqlite3"])
                .is_ok_and(|said| said.status == 0),
        }
    }

    /// A command that has to succeed, and what it said.
    pub fn show(&self, words: &[&str]) -> Result<Said, Failure> {
        let said = self.show_any(words)?;
        self.succeeded(words, said)
    }

    /// A command that has to fail.
    pub fn show_failing(&self, words: &[&str]) -> Result<Said, Failure> {
        let said = self.show_any(words)?;
        if said.status == 0 {
            let message = format!("`{}` had to fail", typed(words));
            return Err(Failure::new(Id::NotAsShown, message, self.look()));
        }
        Ok(said)
    }

    /// A command that has to succeed; nothing is shown.
    pub fn ask(&self, words: &[&str]) -> Result<Said, Failure> {
        let said = self.quietly(words)?;
        self.succeeded(words, said)
    }

    fn show_any(&self, words: &[&str]) -> Result<Said, Failure> {
        self.typed(&typed(words));
        let said = self.quietly(words)?;
        self.say(&said.shortened());
        Ok(said)
    }

    /// A command line as one would type it.
    pub fn typed(&self, line: &str) {
        self.output.line(self.output.dim(visible(&format!("$ {line}"))));
    }

    /// Lines for the person; nothing in them can steer the terminal.
    pub fn say(&self, text: &str) {
        if !text.is_empty() {
            self.output.line(visible(text));
        }
    }

    fn succeeded(&self, words: &[&str], said: Said) -> Result<Said, Failure> {
        if said.status == 0 {
            return Ok(said);
        }
        let line = |prefix| said.text.lines().find_map(|line: &str| line.strip_prefix(prefix));
        let last = said.text.lines().next_back().unwrap_or("no message");
        let cause = line("pellucid: error: ").unwrap_or(last);
        let hint = line("pellucid: hint: ").map_or_else(|| self.look(), str::to_owned);
        let message = format!("`{}` failed with status {}: {cause}", typed(words), said.status);
        Err(Failure::new(Id::DemoCommandFailed, visible(&message), hint))
    }

    /// Where somebody goes on by hand.
    pub fn look(&self) -> String {
        format!("its files are left in `{}` to look at", self.directory.display())
    }

    fn quietly(&self, words: &[&str]) -> Result<Said, Failure> {
        let started = || -> std::io::Result<(ExitStatus, Vec<u8>)> {
            // One file for both streams keeps their order.
            let mut file = tempfile::tempfile_in(&self.directory)?;
            let status = self
                .command(words)?
                .stdout(file.try_clone()?)
                .stderr(file.try_clone()?)
                .status()?;
            let mut bytes = Vec::new();
            file.rewind()?;
            file.read_to_end(&mut bytes)?;
            Ok((status, bytes))
        };
        let (status, bytes) = started().map_err(|error| not_started(words, &error))?;
        Ok(Said { status: code(status), text: String::from_utf8_lossy(&bytes).into_owned() })
    }

    /// SHA-256 of the whole dump of `database`, through `pellucid run` if it is sealed.
    pub fn dump(
        &self,
        program: Program,
        database: &str,
        sealed: bool,
    ) -> Result<[u8; 32], Failure> {
        let mut words = if sealed { vec!["pellucid", "run", "--"] } else { Vec::new() };
        words.extend(program.dump(database));
        let errors = self.directory.join("dump-errors.txt");
        let mut hash = Sha256::new();
        let mut started = || -> std::io::Result<ExitStatus> {
            let mut child = self
                .command(&words)?
                .stdout(Stdio::piped())
                .stderr(File::create(&errors)?)
                .spawn()?;
            let mut chunk = vec![0; 1 << 16];
            while let Some(stdout) = child.stdout.as_mut() {
                match stdout.read(&mut chunk)? {
                    0 => break,
                    length => hash.update(&chunk[..length]),
                }
            }
            child.wait()
        };
        let status = started().map_err(|error| not_started(&words, &error))?;
        let text =
            String::from_utf8_lossy(&std::fs::read(&errors).unwrap_or_default()).into_owned();
        let _ = std::fs::remove_file(&errors);
        self.succeeded(&words, Said { status: code(status), text })?;
        Ok(hash.finish())
    }

    fn command(&self, words: &[&str]) -> std::io::Result<Command> {
        let not_found = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let (name, arguments) = words.split_first().ok_or_else(not_found)?;
        let path = if *name == "pellucid" {
            self.pellucid.clone()
        } else {
            self.find(name).ok_or_else(not_found)?
        };
        let mut command = Command::new(path);
        command.arg0(name).args(arguments).current_dir(&self.directory).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let name_text = name.to_string_lossy();
            // SQLite's shell looks for its settings there too, and the preload may be in force outside.
            if name_text.starts_with("PELLUCID_")
                || ["XDG_CONFIG_HOME", "SQLITE_HISTORY", "LD_PRELOAD"].contains(&name_text.as_ref())
            {
                command.env_remove(&name);
            }
        }
        command.env("PATH", &self.path).env("HOME", &self.directory);
        command.env("PELLUCID_HOME", self.directory.join("keys"));
        command.env("PELLUCID_EXTENSION", &self.extension);
        Ok(command)
    }

    fn find(&self, name: &str) -> Option<PathBuf> {
        std::env::split_paths(&self.path)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(name))
            .find(|candidate| executable(candidate))
    }
}

fn executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// As a shell reports it.
fn code(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

fn not_started(words: &[&str], error: &std::io::Error) -> Failure {
    let hint = "look at the program and at the room on the disk";
    Failure::new(Id::DemoCommandFailed, format!("`{}`: {error}", typed(words)), hint)
}

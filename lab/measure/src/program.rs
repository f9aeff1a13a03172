//! The program `pellucid`, run as an administrator runs it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::files::holds;
use crate::machine::children_cpu_seconds;
use crate::side::{Kind, Side};

/// A variable of a process: set to this, or taken away.
pub type Variable = (&'static str, Option<&'static str>);

/// Variables that steer the program: those of whoever started the lab are not meant for what it measures.
const STEERING: &str = "PELLUCID_";

/// The program `pellucid` with an instance and a key file.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    home: PathBuf,
    key_file: PathBuf,
    environment: Vec<Variable>,
}

/// One that is at work; dropped, it is stopped.
#[derive(Debug)]
pub struct Running {
    child: Option<Child>,
    what: String,
    started: Instant,
    cpu_s: Option<f64>,
}

/// What it said, and what it took from start to end.
#[derive(Debug)]
pub struct Said {
    pub facts: Value,
    pub wall_s: f64,
    pub cpu_s: Option<f64>,
}

impl Program {
    /// The one beside the extension of a sealed side; none of any other. `home` becomes its instance directory.
    ///
    /// # Errors
    /// [`Error::Io`] if it is not there.
    pub fn of(side: &Side, home: &Path) -> Result<Option<Self>> {
        let Kind::Sealed { extension, key_file, .. } = &side.kind else { return Ok(None) };
        let path = beside(extension)?;
        let (key_file, environment) = (key_file.clone(), Vec::new());
        Ok(Some(Self { path, home: home.into(), key_file, environment }))
    }

    /// The one at `path`, without a key file, for the instance in `home`; it has these variables, or lacks them.
    pub fn bare(path: &Path, home: &Path, environment: &[Variable]) -> Self {
        let environment = environment.to_vec();
        Self { path: path.into(), home: home.into(), key_file: PathBuf::new(), environment }
    }

    /// Starts it with `words`, the side's key file and `last`, the databases or what else there is.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn start(&self, words: &[&str], last: &Path) -> Result<Running> {
        let mut command = self.command(words);
        command.arg("--key-file").arg(&self.key_file).arg(last);
        Self::spawn(command, words)
    }

    /// The same to its end.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it fails; it has then said why on standard error.
    pub fn run(&self, words: &[&str], last: &Path) -> Result<Said> {
        self.start(words, last)?.end()
    }

    /// The same without a key file: for what needs none.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn run_bare(&self, words: &[&str], last: &Path) -> Result<Said> {
        self.start_bare(words, last)?.end()
    }

    /// Starts it without a key file.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn start_bare(&self, words: &[&str], last: &Path) -> Result<Running> {
        let mut command = self.command(words);
        command.arg(last);
        Self::spawn(command, words)
    }

    /// Share of the database that a scan has done, 0 to 1; none if no scan is under way.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn scanned(&self, database: &Path) -> Result<Option<f64>> {
        let said = self.run_bare(&["scan", "status"], database)?;
        let scan = &said.facts["scans"][0];
        Ok(scan["percent_complete"].as_f64().map(|percent| percent / 100.0))
    }

    /// The file of the program.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The key file that each call is given; empty for a program without one.
    pub fn key_file(&self) -> &Path {
        &self.key_file
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(words).arg("--json");
        in_instance(&mut command, &self.home, &self.environment);
        command
    }

    /// Makes sure that `media` are sealed with `algorithm`, or with nothing, and that sealed ones do not show `text`, which a
    /// row holds.
    ///
    /// # Errors
    /// [`Error::Invalid`] if not.
    pub fn check_media(
        &self,
        media: &[PathBuf],
        algorithm: Option<&str>,
        text: &str,
    ) -> Result<()> {
        let Some((last, others)) = media.split_last() else {
            return Err(Error::invalid("a backup without media"));
        };
        let mut words = vec!["header".to_string()];
        words.extend(others.iter().map(|path| path.display().to_string()));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let facts = self.run_bare(&words, last)?.facts;
        let found = facts["key_algorithm"].as_str();
        if facts.get("backup_set").is_none() || found != algorithm {
            return Err(Error::invalid(format!("media that should have {algorithm:?}: {facts}")));
        }
        for path in media.iter().filter(|_| algorithm.is_some()) {
            if holds(path, text)? {
                return Err(Error::invalid(format!("sealed `{}` shows a text", path.display())));
            }
        }
        Ok(())
    }

    fn spawn(mut command: Command, words: &[&str]) -> Result<Running> {
        let what = format!("pellucid {}", words.join(" "));
        let (started, cpu_s) = (Instant::now(), children_cpu_seconds());
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Error::io(what.clone()))?;
        Ok(Running { child: Some(child), what, started, cpu_s })
    }
}

/// The program `pellucid` that belongs to the library or program at `file`: beside it, as it is built, or in `bin` where
/// that lies in `lib/pellucid`, as it is installed.
///
/// # Errors
/// [`Error::Io`] if it is in neither place.
pub fn beside(file: &Path) -> Result<PathBuf> {
    let built = file.with_file_name("pellucid");
    let installed = file.with_file_name("../../bin/pellucid");
    let found = [&built, &installed].into_iter().find(|path| path.is_file()).unwrap_or(&built);
    found.canonicalize().map_err(Error::io(format!(
        "program `{}` (build it with `cargo build --release`, or install it with the lab)",
        built.display()
    )))
}

impl Running {
    /// Whether it has ended.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn has_ended(&mut self) -> Result<bool> {
        let Some(child) = &mut self.child else { return Ok(true) };
        let status = child.try_wait().map_err(Error::io(self.what.clone()))?;
        Ok(status.is_some())
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it fails.
    pub fn end(mut self) -> Result<Said> {
        let child = self.child.take();
        let child = child.ok_or_else(|| Error::invalid(format!("{}: ended twice", self.what)))?;
        let output = child.wait_with_output().map_err(Error::io(self.what.clone()))?;
        let wall_s = self.started.elapsed().as_secs_f64();
        let cpu_s = children_cpu_seconds().zip(self.cpu_s).map(|(end, start)| end - start);
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Error::invalid(format!("{} ({}): {said}", self.what, output.status)));
        }
        let last = output.stdout.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty());
        let facts = serde_json::from_slice(last.unwrap_or_default())
            .map_err(|error| Error::invalid(format!("{}: its facts: {error}", self.what)))?;
        Ok(Said { facts, wall_s, cpu_s })
    }
}

impl Said {
    /// Seconds that it says the work itself took.
    pub fn seconds(&self) -> f64 {
        self.facts["seconds"].as_f64().unwrap_or(self.wall_s)
    }

    /// Makes sure that the scan ended in the state `expected`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the scan did not end so.
    pub fn scan_is(&self, expected: &str) -> Result<()> {
        match self.facts["scan"].as_str() {
            Some(found) if found == expected => Ok(()),
            _ => Err(Error::invalid(format!("a scan that is not {expected}: {}", self.facts))),
        }
    }
}

/// Gives a process the instance in `home` and `variables`, and nothing else that steers the program.
pub fn in_instance(command: &mut Command, home: &Path, variables: &[Variable]) {
    without_steering(command);
    command.env("PELLUCID_HOME", home).env("SQLITE_TMPDIR", home);
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// Takes what steers the program out of a process's environment.
pub fn without_steering(command: &mut Command) {
    let steers = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(STEERING);
    for (name, _) in std::env::vars_os().filter(|(name, _)| steers(name)) {
        command.env_remove(name);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // An error means that it has ended, which is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

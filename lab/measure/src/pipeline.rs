//! Programs run one after the other, each fed by the one before, and what they took together.
//!
//! They run below a process of their own, so that its children's processor time and peak memory (getrusage(2)) are theirs
//! alone. What they leave is synced before the clock stops: a copy that a power cut can take is none.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{getrusage, Usage, UsageWho};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::machine::used_cpu_seconds;
use crate::program::without_steering;

const KIB: u64 = 1024;

/// One program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Step {
    pub program: PathBuf,
    pub words: Vec<String>,
    pub environment: Vec<(String, String)>,
}

/// Programs that run at once, each reading what the one before it writes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pipeline {
    pub steps: Vec<Step>,
    /// Standard input of the first, and standard output of the last; nothing without.
    pub input: Option<PathBuf>,
    pub output: Option<PathBuf>,
}

/// Pipelines in their order, and the files or directories that they leave.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Recipe {
    pub pipelines: Vec<Pipeline>,
    pub leaves: Vec<PathBuf>,
}

/// What a recipe took, from the start of its first program to the synced end of the last.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Took {
    pub wall_s: f64,
    /// Of all programs, user and system.
    pub cpu_s: f64,
    /// Resident memory of the largest program at its largest, mapped files included.
    pub peak_bytes: u64,
}

impl Step {
    /// Runs `program` with these words, and no variable of its own.
    pub fn new(program: impl Into<PathBuf>, words: &[&str]) -> Self {
        let words = words.iter().map(|word| (*word).to_string()).collect();
        Self { program: program.into(), words, environment: Vec::new() }
    }

    /// The same step, whose process has this variable.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }
}

impl From<Step> for Pipeline {
    fn from(step: Step) -> Self {
        Self { steps: vec![step], input: None, output: None }
    }
}

impl Recipe {
    /// Has a fresh process of this program run it.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a program fails; it has then said why on standard error.
    pub fn run(&self) -> Result<Took> {
        let program = std::env::current_exe().map_err(Error::io("the lab's own program"))?;
        let text = serde_json::to_string(self)
            .map_err(|error| Error::invalid(format!("a recipe: {error}")))?;
        let mut child = Command::new(program)
            .arg("pipeline")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::io("starting a pipeline"))?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(text.as_bytes()).map_err(Error::io("a pipeline's standard input"))?;
        }
        let output = child.wait_with_output().map_err(Error::io("a pipeline's end"))?;
        if !output.status.success() {
            return Err(Error::invalid(format!("a pipeline ended ({})", output.status)));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| Error::invalid(format!("a pipeline's answer: {error}")))
    }
}

/// Runs the recipe on standard input and says what it took.
///
/// # Errors
/// Of the first program that failed.
pub fn serve() -> Result<()> {
    let recipe: Recipe = serde_json::from_reader(std::io::stdin().lock())
        .map_err(|error| Error::invalid(format!("pipeline: not a recipe: {error}")))?;
    let start = Instant::now();
    recipe.pipelines.iter().try_for_each(perform)?;
    recipe.leaves.iter().try_for_each(|path| sync(path))?;
    let wall_s = start.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_err(|error| Error::io("getrusage")(error.into()))?;
    let took = Took { wall_s, cpu_s: used_cpu_seconds(&usage), peak_bytes: peak_bytes(&usage) };
    let line = serde_json::to_string(&took)
        .map_err(|error| Error::invalid(format!("pipeline: {error}")))?;
    println!("{line}");
    Ok(())
}

fn peak_bytes(usage: &Usage) -> u64 {
    usage.max_rss().unsigned_abs() * KIB
}

fn perform(pipeline: &Pipeline) -> Result<()> {
    let mut children: Vec<(String, Child)> = Vec::new();
    // What they say is of interest if they fail.
    let mut said = tempfile::tempfile().map_err(Error::io("a temporary file"))?;
    let last = pipeline.steps.len().saturating_sub(1);
    let open = |path: &PathBuf| File::open(path).map_err(Error::io(path.display().to_string()));
    let create = |path: &PathBuf| File::create(path).map_err(Error::io(path.display().to_string()));
    for (place, step) in pipeline.steps.iter().enumerate() {
        let before = children.last_mut().and_then(|(_, child)| child.stdout.take());
        let input = match (before, &pipeline.input) {
            (Some(output), _) => Stdio::from(output),
            (None, Some(path)) => Stdio::from(open(path)?),
            (None, None) => Stdio::null(),
        };
        let output = match &pipeline.output {
            _ if place < last => Stdio::piped(),
            Some(path) => Stdio::from(create(path)?),
            None => Stdio::null(),
        };
        let name = step.program.display().to_string();
        let errors = said.try_clone().map_err(Error::io("a temporary file"))?;
        let mut command = Command::new(&step.program);
        without_steering(&mut command);
        let child = command
            .args(&step.words)
            .envs(step.environment.iter().map(|(name, value)| (name, value)))
            .stdin(input)
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(Error::io(name.clone()))?;
        children.push((name, child));
    }
    for (name, mut child) in children {
        let status = child.wait().map_err(Error::io(name.clone()))?;
        if !status.success() {
            let mut text = String::new();
            said.rewind().map_err(Error::io("a temporary file"))?;
            said.read_to_string(&mut text).map_err(Error::io(name.clone()))?;
            return Err(Error::invalid(format!("{name}: {status}: {text}")));
        }
    }
    Ok(())
}

/// Syncs a file, or every file below a directory.
fn sync(path: &Path) -> Result<()> {
    let io = || Error::io(path.display().to_string());
    if path.is_dir() {
        for entry in path.read_dir().map_err(io())? {
            sync(&entry.map_err(io())?.path())?;
        }
    }
    File::open(path).and_then(|file| file.sync_all()).map_err(io())
}

/// Bytes of a file, or of every file below a directory.
///
/// # Errors
/// [`Error::Io`]
pub fn bytes(path: &Path) -> Result<u64> {
    let io = || Error::io(path.display().to_string());
    if !path.is_dir() {
        return path.metadata().map(|found| found.len()).map_err(io());
    }
    let mut sum = 0;
    for entry in path.read_dir().map_err(io())? {
        sum += bytes(&entry.map_err(io())?.path())?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_writes_the_next_reads() {
        let dir = tempfile::tempdir().unwrap();
        let (input, output) = (dir.path().join("in"), dir.path().join("out"));
        std::fs::write(&input, "b\na\n").unwrap();
        let steps = vec![Step::new("cat", &[]), Step::new("sort", &[])];
        perform(&Pipeline { steps, input: Some(input), output: Some(output.clone()) }).unwrap();
        assert_eq!(std::fs::read_to_string(&output).unwrap(), "a\nb\n");
        sync(dir.path()).unwrap();
        assert_eq!(bytes(dir.path()).unwrap(), 8);
    }

    #[test]
    fn a_program_that_fails_fails_the_pipeline() {
        let steps = vec![Step::new("false", &[]), Step::new("cat", &[])];
        let error = perform(&Pipeline { steps, input: None, output: None }).unwrap_err();
        assert!(error.to_string().starts_with("false: "), "{error}");
        assert!(perform(&Step::new("no-such-program", &[]).into()).is_err());
    }
}

//! SQLite's own speedtest1, plain and over the shim, which its `sqlite3_initialize` loads and makes
//! the default VFS (`lab/speedtest1.sh` builds it so). Each run makes a database of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use pellucid_lab_measure::common::Common;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::remove;
use pellucid_lab_measure::machine::{children_cpu_seconds, Load};
use pellucid_lab_measure::session::{Conditions, Place};
use pellucid_lab_measure::side::{Kind, Side};
use pellucid_lab_measure::work::Done;

use crate::estimate::Estimate;
use crate::fixture::settle;
use crate::measurement::Measurement;
use crate::piece::{Needs, Piece, Scaled};

/// Names the command and the sessions.
const NAME: &str = "speedtest1";
/// What `lab full` runs of it.
const PIECES: &[Piece] =
    &[Piece::new(NAME, NAME, Scaled::Speedtest1(100), &["--sides", "plain,again,sealed"])
        .with(Needs::Speedtest1)];
const WARM_UP_ROUNDS: usize = 1;
/// For an estimate: seconds of a run with `--size 100`, and what its files may have at once.
const RUN_S: f64 = 15.0;
const RUN_BYTES: u64 = 512 << 20;

/// SQLite's own speedtest1, plain and over the shim.
#[derive(Debug, Clone, Args)]
pub struct Speedtest1 {
    #[command(flatten)]
    pub common: Common,
    /// speedtest1, as lab/speedtest1.sh builds it; by default speedtest1/speedtest1 in `target`.
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Its own --size.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub size: u64,
}

impl Measurement for Speedtest1 {
    fn name() -> &'static str {
        NAME
    }

    fn pieces() -> &'static [Piece] {
        PIECES
    }

    fn only_estimates(&self) -> bool {
        self.common.estimate
    }

    fn estimate(&self) -> Result<Estimate> {
        let runs = self.common.sides.sides.len() * (self.common.rounds + WARM_UP_ROUNDS);
        Ok(Estimate {
            seconds: runs as f64 * RUN_S * self.size as f64 / 100.0,
            bytes: RUN_BYTES * self.size.div_ceil(100),
        })
    }

    fn run(&self) -> Result<bool> {
        let common = &self.common;
        let program = program(self.program.clone())?;
        let mut place = Place::open(NAME, common)?;
        let sides = place.sides.clone();
        let runs: Vec<Test> = sides
            .into_iter()
            .map(|side| {
                let dir = place.path().join(&side.name);
                std::fs::create_dir(&dir).map_err(Error::io(dir.display().to_string()))?;
                Ok(Test { side, dir, program: program.clone(), size: self.size })
            })
            .collect::<Result<_>>()?;
        let conditions = Conditions {
            sides: runs.iter().map(|run| run.side.describe()).collect::<Result<_>>()?,
            warm_up_rounds: WARM_UP_ROUNDS,
            limit: None,
            setting: None,
            size: Some(self.size),
            ..Conditions::default()
        };
        let rounds = place.begin(conditions, 1)?;
        let cell = if self.size == 100 { "total".into() } else { format!("total-{}", self.size) };
        place.measure_work(&rounds, &cell, |side| {
            let dirty_kib = settle();
            let (load, cpu) = (Load::begin(), children_cpu_seconds());
            let wall_s = runs[side].run()?;
            let cpu_s = children_cpu_seconds().zip(cpu).map(|(end, start)| end - start);
            let shares = load.end().shares(cpu_s);
            Ok(Done { operations: 1.0, wall_s, cpu_s, read_bytes: None, shares, dirty_kib })
        })?;
        place.finish()?;
        Ok(true)
    }
}

#[derive(Debug)]
struct Test {
    side: Side,
    dir: PathBuf,
    program: PathBuf,
    size: u64,
}

impl Test {
    /// Runs it once; seconds of all its tests, as it counts them itself.
    fn run(&self) -> Result<f64> {
        let database = self.dir.join("speedtest1.db");
        remove(&database)?;
        let mut command = Command::new(&self.program);
        command.args(["--size", &self.size.to_string()]).arg(&database);
        command.env_remove("PELLUCID_TCL_EXTENSION").env("SQLITE_TMPDIR", &self.dir);
        match &self.side.kind {
            Kind::Plain => {}
            // Under a certificate, which the first run of all makes.
            Kind::Sealed { extension, algorithm, .. } if algorithm == "AES_256" => {
                command
                    .env("PELLUCID_TCL_EXTENSION", extension)
                    .env("PELLUCID_ENCRYPT_NEW", "1")
                    .env("PELLUCID_HOME", self.dir.join("home"));
            }
            _ => return Err(Error::invalid("speedtest1: sides are plain, again and sealed")),
        }
        let output = command
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(Error::io(self.program.display().to_string()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let seconds = total_seconds(&said).filter(|_| output.status.success());
        let seconds = seconds.ok_or_else(|| {
            let last = said.lines().last().unwrap_or_default();
            Error::invalid(format!("speedtest1 ended ({}): {last}", output.status))
        })?;
        self.side.check_magic(&database)?;
        remove(&database)?;
        Ok(seconds)
    }
}

/// Of its last line: `       TOTAL.......   12.345s`.
fn total_seconds(said: &str) -> Option<f64> {
    let line = said.lines().rev().find(|line| line.trim_start().starts_with("TOTAL"))?;
    let number = line.trim_end().strip_suffix('s')?.rsplit(' ').next()?;
    number.parse().ok().filter(|seconds: &f64| *seconds > 0.0)
}

/// The program at `given`, else in `target`, whose `release` this program lies in.
///
/// # Errors
/// [`Error::Io`] if it is not there.
pub fn program(given: Option<PathBuf>) -> Result<PathBuf> {
    let built = || {
        let lab = std::env::current_exe().unwrap_or_default();
        let target = lab.parent().and_then(Path::parent).map(Path::to_path_buf);
        target.unwrap_or_default().join("speedtest1/speedtest1")
    };
    let path = given.unwrap_or_else(built);
    path.canonicalize().map_err(Error::io(format!(
        "speedtest1 `{}` (lab/speedtest1.sh builds it, or name it with `--program`)",
        path.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found_in_its_last_line() {
        let said =
            " 990 - ANALYZE......................    0.083s\n       TOTAL.......   11.620s\n";
        assert_eq!(total_seconds(said), Some(11.62));
        assert_eq!(total_seconds(" 990 - ANALYZE....    0.083s\n"), None);
        assert_eq!(total_seconds("TOTAL...  s"), None);
    }
}

//! Everything that the lab measures, piece by piece: each with a file of records of its own, each can be stopped and gone
//! on with. At the end one page of all of them.

mod choice;
mod kept;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use pellucid_lab_measure::child::{self, End, Run, Stop};
use pellucid_lab_measure::choice::extension;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::free;
use pellucid_lab_measure::machine;
use pellucid_lab_measure::program;
use pellucid_lab_report::clock::{clock_after, length_of};
use pellucid_lab_report::record::Machine;
use pellucid_lab_report::report::{Records, Report};

use crate::estimate::Estimate;
use crate::piece::{Needs, Piece};
use crate::registry;
use crate::speedtest1;

use kept::{Conditions, Hashes, Kept};

pub use choice::PEERS;

const PAGE: &str = "report.html";
const LIBRARY: &str = "libpellucid.so";
const MIB: u64 = 1 << 20;
/// What lab/peers/build.sh makes.
const BUILT: [(&str, &str); 4] = [
    ("plain/libsqlite3.so.0", "SQLite"),
    ("sqlcipher/libsqlite3.so.0", "SQLCipher"),
    ("aegis/libsqlite3.so.0", "SQLite3 Multiple Ciphers (AEGIS, ChaCha20)"),
    ("lab", "a lab that is linked with none of them"),
];

/// Which pieces are run, and how.
#[derive(Debug, Clone, Args)]
pub struct FullOptions {
    /// Only these pieces, by the names that --estimate prints; `measurements`, `peers` and `experiments` stand for several.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub pieces: Vec<String>,
    #[command(flatten)]
    pub run: RunOptions,
}

/// How the pieces are run.
#[derive(Debug, Clone, Args)]
pub struct RunOptions {
    /// Directory of the records, a file for each piece, and of the page [default: lab/records/full-UTC; with --resume the
    /// newest of those].
    #[arg(long, value_name = "DIR")]
    pub records: Option<PathBuf>,
    /// Leave out the pieces whose records are complete, of the same tree, machine, build and options.
    #[arg(long)]
    pub resume: bool,
    /// Print how long each piece takes and how much disk, and do nothing.
    #[arg(long)]
    pub estimate: bool,
    /// Where the databases are made, and removed again; its file system is part of the answer.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Rounds of every piece, instead of its own number.
    #[arg(long, value_name = "N", value_parser = pellucid_lab_measure::common::rounds)]
    pub rounds: Option<usize>,
    /// Share of the sizes: 1 is the articles', and the goals'.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = crate::experiment::scale)]
    pub scale: f64,
    /// Directory of scenario files like those in lab/scenarios: an experiment takes its NAME.toml, if it is there, instead of
    /// the article's parameters.
    #[arg(long, value_name = "DIR")]
    pub scenarios: Option<PathBuf>,
    /// libpellucid.so; by default the one beside this program.
    #[arg(long, value_name = "FILE", env = "PELLUCID_EXTENSION")]
    pub extension: Option<PathBuf>,
}

/// A piece on this machine.
#[derive(Debug)]
struct Planned {
    piece: &'static Piece,
    lab: PathBuf,
    words: Vec<String>,
    estimate: Estimate,
    state: State,
}

#[derive(Debug)]
enum State {
    /// With the conditions that its record will be of.
    ToDo(Conditions),
    /// The records are there.
    Complete,
    /// Why it cannot be run.
    Refused(String),
}

/// Measures the pieces that `names` name, or all; false if one of them is missing at the end.
///
/// # Errors
/// [`Error::Io`]; [`Error::Invalid`] for what cannot be begun at all. A piece that fails is told, and the next one is run.
pub fn measure<S: AsRef<str>>(names: &[S], options: &RunOptions) -> Result<bool> {
    let chosen = choice::choose(names)?;
    let dir = child::base(options.dir.as_ref())?;
    let mut kept = Kept::open(options.records.as_ref(), options.resume)?;
    let machine =
        machine::describe(tempfile::tempdir_in(&dir).map_err(Error::io("--dir"))?.path())?;
    let mut here = Here { options, machine, dir, hashes: Hashes::default() };
    let plan =
        chosen.into_iter().map(|piece| here.plan(piece, &kept)).collect::<Result<Vec<_>>>()?;
    let Here { machine, dir, .. } = here;
    print_plan(&plan, &dir);
    if options.estimate {
        return Ok(true);
    }
    let mut stop = Stop::listen()?;
    let mut missing = Vec::new();
    for at in 0..plan.len() {
        let left_s: f64 = plan[at..].iter().map(Planned::seconds).sum();
        let Planned { piece, state, estimate, .. } = &plan[at];
        let State::ToDo(conditions) = state else {
            if let State::Refused(why) = state {
                missing.push((piece.name, why.clone()));
            }
            continue;
        };
        if let Err(error) = room(&dir, *estimate) {
            missing.push((piece.name, error.to_string()));
            continue;
        }
        let resumes = piece.resumes() && machine.tree.is_some();
        let goes_on = kept.begin(piece.name, conditions, resumes)?;
        eprintln!(
            "lab: full: {}, {} of {}, {}; {} left in all",
            piece.name,
            at + 1,
            plan.len(),
            length_of(estimate.seconds),
            length_of(left_s)
        );
        let began = Instant::now();
        match plan[at].run(options, &kept, &dir, goes_on, &mut stop)? {
            End::Done => {
                kept.complete(piece.name, conditions)?;
                let took = length_of(began.elapsed().as_secs_f64());
                eprintln!("lab: full: {}: done in {took}", piece.name);
            }
            End::Failed(status) => missing.push((piece.name, format!("failed ({status})"))),
            End::Stopped | End::Late => {
                eprintln!(
                    "lab: full: stopped in {}; the same command with `--resume --records {}` goes on with it",
                    piece.name,
                    kept.dir().display()
                );
                return Ok(false);
            }
        }
    }
    finish(&kept, &machine, &missing)
}

/// Where pieces would be run.
#[derive(Debug)]
struct Here<'a> {
    options: &'a RunOptions,
    machine: Machine,
    dir: PathBuf,
    hashes: Hashes,
}

impl Here<'_> {
    fn plan(&mut self, piece: &'static Piece, kept: &Kept) -> Result<Planned> {
        let mut words = piece.words(self.options.scale, self.options.rounds);
        let scenario = self.scenario(piece);
        if let Some(scenario) = &scenario {
            words.extend(["--scenario".into(), scenario.display().to_string()]);
        }
        let estimate = registry::estimate(&words)?;
        let own = child::lab()?;
        let lab = match piece.needs() {
            Needs::Peers => own.with_file_name("../peers/lab"),
            Needs::Nothing | Needs::Speedtest1 => own,
        };
        let conditions = self.artefacts(piece, &lab).and_then(|mut artefacts| {
            artefacts.extend(scenario);
            Conditions::of(&words, &self.machine, &artefacts, &mut self.hashes)
        });
        let state = match conditions {
            Ok(conditions) if kept.has(piece.name, &conditions) => State::Complete,
            Ok(conditions) => match room(&self.dir, estimate) {
                Ok(()) => State::ToDo(conditions),
                Err(error) => State::Refused(error.to_string()),
            },
            Err(error) => State::Refused(error.to_string()),
        };
        Ok(Planned { piece, lab, words, estimate, state })
    }

    /// Another one than the article's.
    fn scenario(&self, piece: &Piece) -> Option<PathBuf> {
        let dir = self.options.scenarios.as_ref().filter(|_| piece.is_experiment())?;
        Some(dir.join(format!("{}.toml", piece.name))).filter(|file| file.is_file())
    }

    /// What is measured with, and what is measured.
    fn artefacts(&self, piece: &Piece, lab: &Path) -> Result<Vec<PathBuf>> {
        if piece.needs() == Needs::Peers {
            all_built(lab)?;
        }
        let given = self.options.extension.clone();
        let beside = || (piece.needs() == Needs::Peers).then(|| lab.with_file_name(LIBRARY));
        let extension = extension(given.or_else(beside).as_ref())?;
        let mut artefacts = vec![lab.to_path_buf(), extension.clone()];
        match piece.needs() {
            Needs::Nothing => artefacts.push(program::beside(&extension)?),
            Needs::Speedtest1 => artefacts.push(speedtest1::program(None)?),
            Needs::Peers => {
                let libraries = BUILT.iter().filter(|(file, _)| *file != "lab");
                artefacts.extend(libraries.map(|(file, _)| lab.with_file_name(file)));
                // Not all of them take it.
                artefacts.extend(program::beside(&extension));
            }
        }
        Ok(artefacts)
    }
}

impl Planned {
    /// That it will still take.
    fn seconds(&self) -> f64 {
        match self.state {
            State::ToDo(_) => self.estimate.seconds,
            State::Complete | State::Refused(_) => 0.0,
        }
    }

    fn run(
        &self,
        options: &RunOptions,
        kept: &Kept,
        dir: &Path,
        goes_on: bool,
        stop: &mut Stop,
    ) -> Result<End> {
        let mut words = self.words.clone();
        words.extend(["--records".into(), kept.records(self.piece.name).display().to_string()]);
        if let Some(extension) = &options.extension {
            words.extend(["--extension".into(), extension.display().to_string()]);
        }
        if goes_on {
            words.push("--resume".into());
        }
        Run { lab: &self.lab, words: &words, dir, shown: true, deadline: None }.run(stop)
    }
}

/// That all peers lie beside their `lab`.
fn all_built(lab: &Path) -> Result<()> {
    let missing = BUILT.iter().filter(|(file, _)| !lab.with_file_name(file).is_file());
    let missing: Vec<&str> = missing.map(|(_, name)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "not built here: {}; `make peers` (lab/peers/build.sh) in Pellucid's source tree builds them",
        missing.join(", ")
    )))
}

fn room(dir: &Path, estimate: Estimate) -> Result<()> {
    let free = free(dir)?;
    if free >= estimate.bytes {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "does not fit: {} MiB are needed in {} and {} MiB are free",
        estimate.bytes.div_ceil(MIB),
        dir.display(),
        free / MIB
    )))
}

fn print_plan(plan: &[Planned], dir: &Path) {
    let line = |name: &str, seconds: f64, bytes: u64, note: &str| {
        let (time, mib) = (length_of(seconds), bytes.div_ceil(MIB));
        println!("{}", format!("{name:<20} {time:>12} {mib:>8} MiB  {note}").trim_end());
    };
    for planned in plan {
        let Planned { piece, estimate, state, .. } = planned;
        let note = match state {
            State::ToDo(_) => "",
            State::Complete => "complete: left out",
            State::Refused(why) => why,
        };
        line(piece.name, estimate.seconds, estimate.bytes, note);
    }
    let to_do = || plan.iter().filter(|planned| matches!(planned.state, State::ToDo(_)));
    let seconds = to_do().map(|planned| planned.estimate.seconds).sum();
    let bytes = to_do().map(|planned| planned.estimate.bytes).max().unwrap_or(0);
    let until = format!("in {}, until {}", dir.display(), clock_after(seconds));
    line("all", seconds, bytes, &until);
}

/// The page of all pieces that are complete, and what is not.
fn finish(kept: &Kept, machine: &Machine, missing: &[(&str, String)]) -> Result<bool> {
    // What a missing piece has is of other conditions.
    let stale: Vec<&str> = missing.iter().map(|(piece, _)| *piece).collect();
    let files = kept.complete_records(&machine.identity(), &stale);
    if !files.is_empty() {
        let report = Report::of(&Records::read(&files)?)?;
        let page = kept.dir().join(PAGE);
        std::fs::write(&page, report.page()?).map_err(Error::io(page.display().to_string()))?;
        println!("{}\n{}", report.said(), page.display());
    }
    for (piece, why) in missing {
        eprintln!("lab: full: not measured: {piece}: {why}");
    }
    Ok(missing.is_empty())
}

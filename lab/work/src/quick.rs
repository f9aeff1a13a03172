//! A first answer in three minutes: few measurements, small and short, into one file, and what they say.
//!
//! The same code measures as elsewhere; only its options are small. Rounds are as many as the time allows, by the
//! estimates of what is left; nothing is decided by what the rounds say.

mod preset;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use pellucid_lab_measure::child::{self, End, Run, Stop};
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::room;
use pellucid_lab_report::clock::{length_of, stamp};
use pellucid_lab_report::report::{wrapped, Records, Report};

use preset::{Part, Preset, LEAST_ROUNDS, MIB, MOST_ROUNDS};

const BUDGET_S: f64 = 180.0;
/// The report, and what the estimates do not know of.
const RESERVE_S: f64 = 5.0;
/// Of the budget: what is not done then is left out.
const LATEST: f64 = 1.15;
const SCENARIO: &str = include_str!("../../scenarios/quick-backups.toml");

/// Where a first answer is measured and kept.
#[derive(Debug, Clone, Args)]
pub struct QuickOptions {
    /// File of the records; the page lies beside it [default: lab/records/quick-UTC.jsonl].
    #[arg(long, value_name = "FILE")]
    pub records: Option<PathBuf>,
    /// Where the databases are made, and removed again; its file system is part of the answer.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// libpellucid.so; by default the one beside this program.
    #[arg(long, value_name = "FILE", env = "PELLUCID_EXTENSION")]
    pub extension: Option<PathBuf>,
    /// Print about how many seconds it takes, and do nothing.
    #[arg(long)]
    pub estimate: bool,
    /// Seconds; for the lab's tests.
    #[arg(long, hide = true, default_value_t = BUDGET_S, value_parser = pellucid_lab_measure::common::seconds)]
    pub budget_s: f64,
    /// The most rounds; for the lab's tests.
    #[arg(long, hide = true, default_value_t = MOST_ROUNDS, value_parser = pellucid_lab_measure::common::rounds)]
    pub rounds: usize,
    /// Of sizes and lengths; for the lab's tests.
    #[arg(long, hide = true, default_value_t = 1.0, value_parser = crate::experiment::scale)]
    pub scale: f64,
}

/// One `lab quick` that is under way.
#[derive(Debug)]
struct Course<'a> {
    options: &'a QuickOptions,
    preset: &'a Preset<'a>,
    dir: PathBuf,
    records: PathBuf,
    began: Instant,
    stop: Stop,
    /// How much longer than estimated: a machine that is slow in one part is so in the next.
    pace: f64,
    /// And why.
    left_out: Vec<String>,
}

/// Measures, and says what came out; false if somebody stopped it or a part is missing.
///
/// # Errors
/// [`Error::Invalid`] if there is no room, or the budget is too small for anything.
pub fn measure(options: &QuickOptions) -> Result<bool> {
    let began = Instant::now();
    let scenario =
        tempfile::NamedTempFile::with_suffix(".toml").map_err(Error::io("a scenario"))?;
    std::fs::write(scenario.path(), SCENARIO)
        .map_err(Error::io(scenario.path().display().to_string()))?;
    let (scale, most_rounds) = (options.scale, options.rounds);
    let preset = Preset { scale, scenario: scenario.path(), most_rounds };
    let Some(rounds) = preset.rounds(&Part::ALL, options.seconds())? else {
        return Err(Error::invalid(format!(
            "{:.0} s are too few: {LEAST_ROUNDS} rounds take about {:.0} s",
            options.seconds(),
            preset.seconds(&Part::ALL, LEAST_ROUNDS)?
        )));
    };
    if options.estimate {
        println!("{:.0}", preset.seconds(&Part::ALL, rounds)?);
        return Ok(true);
    }
    let dir = child::base(options.dir.as_ref())?;
    for part in Part::ALL {
        room(&dir, preset.estimate(part, rounds)?.bytes)?;
    }
    let default = || Path::new("lab/records").join(format!("quick-{}.jsonl", stamp()));
    let records = options.records.clone().unwrap_or_else(default);
    if records.exists() {
        return Err(Error::invalid(format!("{}: is there already", records.display())));
    }
    announce(&preset, rounds, &dir)?;
    let (stop, left_out) = (Stop::listen()?, Vec::new());
    let mut course =
        Course { options, preset: &preset, dir, records, began, stop, pace: 1.0, left_out };
    for at in 0..Part::ALL.len() {
        if !course.run(at)? {
            return Ok(false);
        }
    }
    tell(&course.records, &course.left_out, scale)?;
    Ok(course.left_out.is_empty())
}

impl QuickOptions {
    /// For the measurements.
    fn seconds(&self) -> f64 {
        self.budget_s - RESERVE_S.min(self.budget_s / 4.0)
    }
}

impl Course<'_> {
    /// Runs one part; false if somebody stopped it.
    fn run(&mut self, at: usize) -> Result<bool> {
        let (part, rest) = (Part::ALL[at], &Part::ALL[at..]);
        let left_s = (self.options.seconds() - self.began.elapsed().as_secs_f64()) / self.pace;
        // Where not all that comes fits any more, this part has what it needs.
        let rounds = match self.preset.rounds(rest, left_s)? {
            None => self.preset.rounds(&[part], left_s)?.map(|_| LEAST_ROUNDS),
            rounds => rounds,
        };
        let Some(rounds) = rounds else {
            self.left_out.push(format!("{}: no time left for it", part.name()));
            return Ok(true);
        };
        eprintln!(
            "lab: quick: {}, {} of {}, {rounds} rounds; {} left",
            part.name(),
            at + 1,
            Part::ALL.len(),
            length_of(self.preset.seconds(rest, rounds)? * self.pace + RESERVE_S)
        );
        let mut words = self.preset.words(part, rounds);
        words.extend(["--records".into(), self.records.display().to_string()]);
        if let Some(extension) = &self.options.extension {
            words.extend(["--extension".into(), extension.display().to_string()]);
        }
        let latest = Duration::from_secs_f64(self.options.budget_s * LATEST);
        let deadline = Some(self.began + latest);
        let (lab, since) = (child::lab()?, Instant::now());
        let one = Run { lab: &lab, words: &words, dir: &self.dir, shown: false, deadline };
        match one.run(&mut self.stop)? {
            End::Done => {}
            End::Failed(status) => {
                self.left_out.push(format!("{}: failed ({status})", part.name()))
            }
            End::Late => {
                self.left_out.push(format!("{}: not to its end, the time was over", part.name()));
            }
            End::Stopped => {
                eprintln!("lab: quick: stopped in {}", part.name());
                return Ok(false);
            }
        }
        let estimate = self.preset.estimate(part, rounds)?;
        self.pace = (since.elapsed().as_secs_f64() / estimate.seconds).max(1.0);
        Ok(true)
    }
}

/// Before anything is done.
fn announce(preset: &Preset<'_>, rounds: usize, dir: &Path) -> Result<()> {
    let seconds = preset.seconds(&Part::ALL, rounds)? + RESERVE_S;
    println!("About {}, {rounds} rounds of each, in {}:", length_of(seconds), dir.display());
    for part in Part::ALL {
        let estimate = preset.estimate(part, rounds)?;
        println!("{:>8}  {}", length_of(estimate.seconds), part.name());
    }
    Ok(())
}

/// The summary, the page, and what this length cannot say.
fn tell(records: &Path, left_out: &[String], scale: f64) -> Result<()> {
    if !records.exists() {
        return Err(Error::invalid("nothing was measured"));
    }
    let report = Report::of(&Records::read(&[records.to_path_buf()])?)?;
    let page = records.with_extension("html");
    std::fs::write(&page, report.page()?).map_err(Error::io(page.display().to_string()))?;
    println!("{}", report.first_screen());
    for what in left_out {
        println!("{}", wrapped(&format!("Not measured: {what}.")));
    }
    let open = report.not_resolved();
    let told = match open.is_empty() {
        true => "Resolved: each kind of work that was measured, on databases this small.".to_owned(),
        false => format!(
            "Not resolved at this length: {}. Their intervals are too wide to say whether there is a \
             difference; that is no sign that there is none.",
            open.join(", ")
        ),
    };
    println!("{}", wrapped(&told));
    let told = format!(
        "Databases had {:.0} MiB and less, and rounds were as many as the time allowed. `lab full` measures everything, \
         at full size; `lab full --estimate` says how long that takes.",
        (MIB * scale).ceil()
    );
    println!("{}", wrapped(&told));
    println!("Records: {} (`lab report --all` prints all their tables)", records.display());
    println!("Page: {}", page.display());
    Ok(())
}

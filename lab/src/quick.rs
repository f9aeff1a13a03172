//! A first answer in three minutes: few measurements, small and short, into one file, and what they say.
//!
//! The same code measures as elsewhere; only its options are small. Rounds are as many as the time allows, by the
//! estimates of what is left; nothing is decided by what the rounds say.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;

use crate::child::{self, End, Measurement, Stop};
use crate::error::{Error, Result};
use crate::estimate::{length_of, stamp, Estimate};
use crate::files::room;
use crate::full;
use crate::report::{Records, Report};

const BUDGET_S: f64 = 180.0;
/// The report, and what the estimates do not know of.
const RESERVE_S: f64 = 5.0;
/// Of the budget: what is not done then is left out.
const LATEST: f64 = 1.15;
/// An interval of fewer says little; of more than the most, `lab full` is the better way.
const ROUNDS: std::ops::RangeInclusive<usize> = 5..=30;
const SCENARIO: &str = include_str!("../scenarios/quick-backups.toml");
/// Of the databases; and what share of the article's that is.
const MIB: f64 = 64.0;
const SHARE: f64 = 65_536.0 / 1_553_408.0;

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
    #[arg(long, hide = true, default_value_t = BUDGET_S)]
    pub budget_s: f64,
    /// The most rounds; for the lab's tests.
    #[arg(long, hide = true, default_value_t = *ROUNDS.end(), value_parser = crate::arguments::rounds)]
    pub rounds: usize,
    /// Of sizes and lengths; for the lab's tests.
    #[arg(long, hide = true, default_value_t = 1.0, value_parser = crate::experiment::scale)]
    pub scale: f64,
}

/// One measurement of the few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Oltp,
    Backups,
    Whole,
    Opening,
}

/// What was asked for, and the scenario's file.
#[derive(Debug)]
struct Preset<'a> {
    scale: f64,
    scenario: &'a Path,
    most_rounds: usize,
}

/// Measures, and says what came out; false if somebody stopped it or a part failed.
///
/// # Errors
/// [`Error::Invalid`] if there is no room, or the budget is too small for anything.
pub fn measure(options: &QuickOptions) -> Result<bool> {
    let began = Instant::now();
    let dir = child::base(options.dir.as_ref())?;
    let scenario =
        tempfile::NamedTempFile::with_suffix(".toml").map_err(Error::io("a scenario"))?;
    let name = || scenario.path().display().to_string();
    std::fs::write(scenario.path(), SCENARIO).map_err(Error::io(name()))?;
    let (scale, most_rounds) = (options.scale, options.rounds);
    let preset = Preset { scale, scenario: scenario.path(), most_rounds };

    let left_s = options.budget_s - RESERVE_S.min(options.budget_s / 4.0);
    let Some(rounds) = preset.rounds(&Part::ALL, left_s)? else {
        let least = preset.seconds(&Part::ALL, *ROUNDS.start())?;
        return Err(Error::invalid(format!(
            "{left_s:.0} s are too few: {} rounds take about {least:.0} s",
            ROUNDS.start()
        )));
    };
    if options.estimate {
        println!("{:.0}", preset.seconds(&Part::ALL, rounds)?);
        return Ok(true);
    }
    let bytes = Part::ALL.iter().map(|part| preset.estimate(*part, rounds).map(|one| one.bytes));
    room(&dir, bytes.collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or(0))?;
    let records = options
        .records
        .clone()
        .unwrap_or_else(|| Path::new("lab/records").join(format!("quick-{}.jsonl", stamp())));
    if records.exists() {
        return Err(Error::invalid(format!("{}: is there already", records.display())));
    }
    preset.announce(rounds, &dir)?;

    let mut stop = Stop::listen()?;
    let deadline = began + Duration::from_secs_f64(options.budget_s * LATEST);
    let (mut left_out, mut pace) = (Vec::new(), 1.0_f64);
    for (at, part) in Part::ALL.into_iter().enumerate() {
        let left_s = left_s - began.elapsed().as_secs_f64();
        let rest = &Part::ALL[at..];
        let rounds = match preset.rounds(rest, left_s / pace)? {
            Some(rounds) => rounds,
            // What comes later may still fit, or be left out too.
            None => match preset.rounds(&[part], left_s / pace)? {
                Some(_) => *ROUNDS.start(),
                None => {
                    left_out.push(format!("{}: no time left for it", part.name()));
                    continue;
                }
            },
        };
        let rest_s = preset.seconds(rest, rounds)? * pace;
        eprintln!(
            "lab: quick: {}, {} of {}, {rounds} rounds; {} left",
            part.name(),
            at + 1,
            Part::ALL.len(),
            length_of(rest_s + RESERVE_S)
        );
        let mut words = preset.words(part, rounds);
        words.extend(["--records".into(), records.display().to_string()]);
        if let Some(extension) = &options.extension {
            words.extend(["--extension".into(), extension.display().to_string()]);
        }
        let lab = child::lab()?;
        let since = Instant::now();
        let measurement = Measurement {
            lab: &lab,
            words: &words,
            dir: &dir,
            shown: false,
            deadline: Some(deadline),
        };
        match measurement.run(&mut stop)? {
            End::Done => {}
            End::Failed(status) => left_out.push(format!("{}: failed ({status})", part.name())),
            End::Late => {
                left_out.push(format!("{}: not to its end, the time was over", part.name()));
            }
            End::Stopped => {
                eprintln!("lab: quick: stopped in {}", part.name());
                return Ok(false);
            }
        }
        // A machine that is slower than the estimates is so in what comes, too.
        pace = (since.elapsed().as_secs_f64() / preset.estimate(part, rounds)?.seconds).max(1.0);
    }
    tell(&records, &left_out, options.scale)?;
    Ok(left_out.is_empty())
}

impl Part {
    /// What is asked most comes first: what the time is too short for is at the end.
    const ALL: [Self; 4] = [Self::Oltp, Self::Backups, Self::Whole, Self::Opening];

    fn name(self) -> &'static str {
        match self {
            Self::Oltp => "OLTP, one process and ten",
            Self::Backups => "backups and restores, encrypted and not",
            Self::Whole => "scan, check, index and statistics of a whole database",
            Self::Opening => "opening",
        }
    }
}

impl Preset<'_> {
    fn words(&self, part: Part, rounds: usize) -> Vec<String> {
        let mib = (MIB * self.scale).ceil();
        let line = match part {
            Part::Oltp => format!(
                "purchase --sides plain,again,sealed --cells 1-NORMAL-4/3/3,10-NORMAL-4/3/3 --seconds {}",
                self.scale.max(0.05)
            ),
            Part::Backups => format!("backup-matrix --scale {:.5}", SHARE * self.scale),
            Part::Whole => format!(
                "whole --sides plain,sealed --size-mib {mib} --cache warm \
                 --operations scan,integrity-check,reindex,analyze"
            ),
            Part::Opening => "opening --opens 5".to_string(),
        };
        let mut words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        words.extend(["--rounds".into(), rounds.to_string()]);
        if part == Part::Backups {
            words.extend(["--scenario".into(), self.scenario.display().to_string()]);
        }
        words
    }

    fn estimate(&self, part: Part, rounds: usize) -> Result<Estimate> {
        full::estimate_of(&self.words(part, rounds))
    }

    fn seconds(&self, parts: &[Part], rounds: usize) -> Result<f64> {
        parts.iter().map(|part| self.estimate(*part, rounds).map(|one| one.seconds)).sum()
    }

    /// The most rounds of all `parts` that fit `left_s`; none if not even the fewest do.
    fn rounds(&self, parts: &[Part], left_s: f64) -> Result<Option<usize>> {
        let mut most = None;
        for rounds in *ROUNDS.start()..=self.most_rounds {
            if self.seconds(parts, rounds)? > left_s {
                break;
            }
            most = Some(rounds);
        }
        Ok(most)
    }

    fn announce(&self, rounds: usize, dir: &Path) -> Result<()> {
        let seconds = self.seconds(&Part::ALL, rounds)? + RESERVE_S;
        println!("About {}, {rounds} rounds of each, in {}:", length_of(seconds), dir.display());
        for part in Part::ALL {
            let estimate = self.estimate(part, rounds)?;
            println!("{:>8}  {}", length_of(estimate.seconds), part.name());
        }
        Ok(())
    }
}

/// The summary, the page, and what this length cannot say.
fn tell(records: &Path, left_out: &[String], scale: f64) -> Result<()> {
    if !records.exists() {
        return Err(Error::invalid("nothing was measured"));
    }
    let report = Report::of(&Records::read(&[records.to_path_buf()])?)?;
    let page = records.with_extension("html");
    std::fs::write(&page, report.page()?).map_err(Error::io(page.display().to_string()))?;
    println!("{}\n", report.summary());
    for what in left_out {
        println!("Not measured: {what}.");
    }
    let open = report.not_resolved();
    match open.is_empty() {
        true => println!("Resolved: each kind of work that was measured, on databases this small."),
        false => println!(
            "Not resolved at this length: {}. Their intervals are too wide to say whether there is a \
             difference; that is no sign that there is none.",
            open.join(", ")
        ),
    }
    println!(
        "Databases had {:.0} MiB and less, and rounds were as many as the time allowed. `lab full` measures everything, \
         at full size; `lab full --estimate` says how long that takes.",
        (MIB * scale).ceil()
    );
    println!("Records: {}\nPage: {}", records.display(), page.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimates_add_up_to_the_budget_and_no_further() {
        let scenario = Path::new("scenarios/quick-backups.toml");
        let preset = Preset { scale: 1.0, scenario, most_rounds: *ROUNDS.end() };
        let rounds = preset.rounds(&Part::ALL, BUDGET_S - RESERVE_S).unwrap().unwrap();
        assert!(preset.seconds(&Part::ALL, rounds).unwrap() <= BUDGET_S - RESERVE_S);
        assert!(preset.seconds(&Part::ALL, rounds + 1).unwrap() > BUDGET_S - RESERVE_S);
        let fewer = preset.rounds(&Part::ALL, (BUDGET_S - RESERVE_S) * 0.9).unwrap();
        assert!(fewer.is_none_or(|fewer| fewer < rounds));
        assert_eq!(preset.rounds(&Part::ALL, 10.0).unwrap(), None);
        // Of one part alone more rounds fit.
        assert!(preset.rounds(&[Part::Opening], 60.0).unwrap() > Some(rounds));
    }
}

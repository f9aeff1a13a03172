//! Article 0's announced test: log backups, by encryption, compression, source and target, each ten times; and restores by them.
//!
//! The article's generator writes the statements, with LOG in the place of DATABASE, and its query reads sizes and durations
//! from msdb. Before each backup the same rows are written anew, so that all logs of a round have the same pages.

mod cells;
mod chain;
mod logged;

use clap::Args;
use pellucid_lab_measure::blocks::plan;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::room;
use pellucid_lab_measure::session::{Conditions, Place};
use serde::Deserialize;
use serde_json::json;

use self::cells::{cells, By, Cell, Kind, Media};
use self::chain::Chain;
use self::logged::{rehearse, Logged, SEALED_WITH, UNNAMED};
use crate::article_0::disks::{self, Disks, Named};
use crate::article_0::scripts::STATEMENTS;
use crate::estimate::Estimate;
use crate::experiment::medium::{self, seconds, CHOICES, COMPRESSION};
use crate::experiment::notes::{Notes, Turn};
use crate::experiment::Options;
use crate::measurement::Measurement;
use crate::piece::Piece;

/// Names the command and the sessions.
const NAME: &str = "log-backups";
/// What `lab full` runs of it.
const PIECES: &[Piece] = &[Piece::experiment(NAME)];
const SCENARIO: &str = include_str!("../../scenarios/log-backups.toml");
/// Fewer pages than this show nothing but what a statement takes.
const LEAST_LOG_BYTES: u64 = 64 << 10;

/// Article 0's announced test: log backups by encryption, compression, source and target; restores by them.
///
/// Example: lab log-backups --source hdd=/mnt/a --source ssd=/mnt/b --target hdd=/mnt/a --target ssd=/mnt/b
#[derive(Debug, Clone, Args)]
pub struct LogBackups {
    #[command(flatten)]
    pub options: Options,
    /// Where the database lies, at most twice: the article's HDD and SSD [default: disk, in --dir]
    #[arg(long, value_name = "NAME=DIR")]
    pub source: Vec<Named>,
    /// Where the backups go, at most twice.
    #[arg(long, value_name = "NAME=DIR")]
    pub target: Vec<Named>,
}

/// Parameters, as lab/scenarios/log-backups.toml has them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    rounds: usize,
    choices: Vec<String>,
    compression: Vec<String>,
    database_kib: u64,
    log_kib: u64,
    log_commits: u64,
    restores: bool,
    restore_logs: Vec<usize>,
    restore_log_kib: u64,
    restore_choices: Vec<String>,
    restore_by: Vec<By>,
}

/// What a scenario and the options come to.
#[derive(Debug)]
struct Asked {
    scenario: Scenario,
    /// The choices.
    sides: Vec<&'static str>,
    /// Of the restores.
    restored: Vec<&'static str>,
    compressions: Vec<&'static str>,
    rounds: usize,
    bytes: u64,
    log_bytes: u64,
    chain_log_bytes: u64,
}

impl LogBackups {
    fn asked(&self) -> Result<Asked> {
        let options = &self.options;
        let scenario: Scenario = options.scenario(SCENARIO)?;
        let choices = medium::checked(&scenario.choices)?;
        let restored = medium::checked(&scenario.restore_choices)?;
        if let Some(other) = restored.iter().find(|one| !choices.contains(one)) {
            return Err(Error::invalid(format!("restore_choices: `{other}` is not in choices")));
        }
        if scenario.log_commits == 0 {
            return Err(Error::invalid("log_commits: at least 1"));
        }
        let logs = &scenario.restore_logs;
        if logs.contains(&0) || (1..logs.len()).any(|at| logs[at] <= logs[at - 1]) {
            return Err(Error::invalid(
                "restore_logs: numbers of log backups, each above the last",
            ));
        }
        if scenario.restores && (logs.is_empty() || scenario.restore_by.is_empty()) {
            return Err(Error::invalid("restores: restore_logs and restore_by say which"));
        }
        let bytes = options.bytes(scenario.database_kib);
        // A log that has every row is as long as the table, five eighths of the database.
        let of = |kib| options.bytes(kib).clamp(LEAST_LOG_BYTES, (bytes / 2).max(LEAST_LOG_BYTES));
        let sides = |choices: Vec<&'static str>| -> Vec<&'static str> {
            let side = |choice| if choice == CHOICES[0] { UNNAMED } else { choice };
            choices.into_iter().map(side).collect()
        };
        Ok(Asked {
            compressions: medium::compressions(&scenario.compression)?,
            rounds: options.rounds(scenario.rounds),
            log_bytes: of(scenario.log_kib),
            chain_log_bytes: of(scenario.restore_log_kib),
            sides: sides(choices),
            restored: sides(restored),
            bytes,
            scenario,
        })
    }

    fn named(&self) -> Result<[Vec<Named>; 2]> {
        disks::chosen(&self.source, &self.target, self.options.common(0).dir())
    }
}

impl Asked {
    fn cells(&self, sources: &[Named], targets: &[Named]) -> Vec<Cell> {
        let restores = self.scenario.restores.then_some(&self.scenario);
        let by = |scenario: &Scenario| (scenario.restore_logs.clone(), scenario.restore_by.clone());
        cells(&self.compressions, sources, targets, restores.map(by))
    }

    /// The log backups of the chain that is restored.
    fn steps(&self) -> usize {
        let longest = self.scenario.restore_logs.last().copied();
        longest.filter(|_| self.scenario.restores).unwrap_or(0)
    }

    fn is_run(&self, cell: &Cell, side: &str) -> bool {
        matches!(cell.kind, Kind::Log { .. }) || self.restored.contains(&side)
    }

    /// About how many seconds one run takes.
    fn seconds(&self, cell: &Cell, side: &str) -> f64 {
        match &cell.kind {
            Kind::Log { compression, .. } => {
                seconds::written(self.log_bytes)
                    + seconds::backup(side, compression, self.log_bytes)
            }
            Kind::Restore { media, by, .. } => {
                let logs = match media {
                    Media::Logs(count) => *count as f64,
                    Media::Full | Media::Differential => 0.0,
                };
                let set = match by {
                    By::Statements => seconds::SET_BY_STATEMENT,
                    By::Command => seconds::SET,
                };
                let log = seconds::copied(self.chain_log_bytes) + set;
                let full = seconds::restore(side, COMPRESSION, self.bytes);
                // Statements make the database of the full backup, and again of all sets.
                let times = if *by == By::Statements && *media != Media::Full { 2.0 } else { 1.0 };
                times * full + logs * log
            }
        }
    }
}

impl Measurement for LogBackups {
    fn name() -> &'static str {
        NAME
    }

    fn pieces() -> &'static [Piece] {
        PIECES
    }

    fn only_estimates(&self) -> bool {
        self.options.estimate
    }

    fn check(&self) -> Result<()> {
        self.asked().map(drop)
    }

    fn estimate(&self) -> Result<Estimate> {
        let asked = self.asked()?;
        let [sources, targets] = self.named()?;
        let cells = asked.cells(&sources, &targets);
        let mut round = 0.0;
        for (cell, side) in
            cells.iter().flat_map(|cell| asked.sides.iter().map(move |side| (cell, side)))
        {
            if asked.is_run(cell, side) {
                round += asked.seconds(cell, side);
            }
        }
        let restored = if asked.scenario.restores { asked.restored.len() } else { 0 };
        let (steps, kept) = (asked.steps() as f64, restored as f64);
        let restores = cells.iter().filter(|cell| matches!(cell.kind, Kind::Restore { .. }));
        // What the database holds at each point, and once what each restore of the warm-up has.
        let looks = match restored {
            0 => 0,
            _ => 1 + 2 * asked.scenario.restore_logs.len() + restores.count() * restored,
        };
        let step = seconds::written(asked.chain_log_bytes) + kept * seconds::SET;
        let whole = seconds::backup("none", COMPRESSION, asked.bytes);
        let made = seconds::made(asked.bytes) + 6.0 * seconds::copied(asked.bytes) + whole;
        // Databases with their archives; full backups, differentials and logs that are kept; a restored database.
        let databases = (2 * sources.len() + 3) as u64 * asked.bytes;
        let logs = 4 * asked.log_bytes + steps as u64 * restored as u64 * asked.chain_log_bytes;
        Ok(Estimate {
            seconds: made
                + kept * 2.0 * whole
                + looks as f64 * seconds::checked(asked.bytes)
                + steps * step
                + (asked.rounds + 1) as f64 * round
                + 10.0,
            bytes: databases + logs + 2 * restored as u64 * asked.bytes,
        })
    }

    fn run(&self) -> Result<bool> {
        let options = &self.options;
        let asked = self.asked()?;
        let [sources, targets] = self.named()?;
        let cells = asked.cells(&sources, &targets);
        let estimate = self.estimate()?;
        let program = options.program()?;
        let mut place = Place::open(NAME, &options.common(asked.rounds))?;
        room(place.path(), estimate.bytes)?;
        let disks = Disks::open(sources, targets, place.path())?;
        let kept = if asked.scenario.restores { 2 * asked.restored.len() as u64 } else { 0 };
        for (dir, files) in disks.needs(2 + kept) {
            room(&dir, files * asked.bytes)?;
        }
        rehearse(&program, place.path(), options.seed)?;
        let logged = Logged::prepare(&program, place.path(), disks, asked.bytes, options.seed)?;
        let chain = match asked.steps() {
            0 => None,
            steps => Some(Chain::make(
                &logged,
                &asked.restored,
                (steps, &asked.scenario.restore_logs),
                asked.chain_log_bytes,
            )?),
        };
        let parameters = [
            ("scale", json!(options.scale)),
            ("estimate_s", json!(estimate.seconds.round())),
            ("article", json!(0)),
            ("database_kib", json!(logged.bytes / 1024)),
            ("article_database_kib", json!(asked.scenario.database_kib)),
            ("database_rows", json!(logged.content.rows)),
            ("database_encryption", json!(SEALED_WITH)),
            ("padding", json!("none")),
            ("compression", json!(asked.compressions)),
            ("sources", json!(logged.disks.sources())),
            ("targets", json!(logged.disks.targets())),
            ("same_device", json!(logged.disks.are_one())),
            ("statements_in_msdb", json!(STATEMENTS)),
            ("log_kib", json!(asked.log_bytes / 1024)),
            ("log_commits", json!(asked.scenario.log_commits)),
            ("restores", json!(asked.scenario.restores)),
            ("restore_logs", json!(asked.scenario.restore_logs)),
            ("restore_log_kib", json!(asked.chain_log_bytes / 1024)),
            ("restore_choices", json!(asked.restored)),
            ("cache", json!("as the program leaves it")),
        ];
        let mut sides = medium::describe(&asked.sides, &program, &logged.content, logged.bytes)?;
        sides[0].algorithm = Some(SEALED_WITH.into());
        let conditions = Conditions {
            sides,
            warm_up_rounds: 1,
            size: Some(logged.bytes >> 20),
            parameters: parameters.map(|(name, value)| (name.into(), value)).into(),
            ..Conditions::default()
        };
        let session = place.begin(conditions, cells.len())?;
        let mut notes = Notes::new(place, session.session);
        let log = (asked.log_bytes, asked.scenario.log_commits);
        let mut pages = None;
        let mut last_round = 0;
        for run in plan(cells.len(), asked.sides.len(), asked.rounds, options.seed) {
            let (cell, side) = (&cells[run.group], asked.sides[run.side]);
            notes.place.step(&format!("round {}: {}, {side}", run.round, cell.name));
            if run.round != last_round {
                (pages, last_round) = (None, run.round);
            }
            if !asked.is_run(cell, side) {
                continue;
            }
            let turn = Turn { cell: &cell.name, round: run.round, place: run.place, side };
            match &cell.kind {
                Kind::Log { .. } => {
                    logged.back_up(&mut notes, turn, &cell.kind, log, &mut pages)?
                }
                Kind::Restore { media, to_point, by } => {
                    if let Some(chain) = &chain {
                        chain.restore(&logged, &mut notes, turn, (*media, *to_point, *by))?;
                    }
                }
            }
        }
        logged.ask(&mut notes, &cells, &asked.sides, asked.rounds)?;
        notes.finish()?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_is_the_articles_and_what_it_announced() {
        let scenario: Scenario = toml::from_str(SCENARIO).unwrap();
        assert_eq!((scenario.rounds, scenario.database_kib), (10, 1_553_408));
        assert_eq!(scenario.choices, medium::CHOICES);
        assert_eq!(scenario.restore_logs, [1, 10, 100]);
        let named = |name: &str| Named { name: name.into(), dir: "/".into() };
        let both = [named("HDD"), named("SSD")];
        let compressions = medium::compressions(&scenario.compression).unwrap();
        let by = (scenario.restore_logs, scenario.restore_by);
        let cells = cells(&compressions, &both, &both, Some(by));
        let logs = cells.iter().filter(|cell| matches!(cell.kind, Kind::Log { .. })).count();
        assert_eq!(logs * medium::CHOICES.len(), STATEMENTS);
        // Alone, with a differential, three logs to the end and to a point; twice.
        assert_eq!(cells.len() - logs, 2 * 8);
    }
}

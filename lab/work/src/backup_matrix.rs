//! Article 0's matrix: encryption, compression, source and target, each backup ten times; and what it left open, restores
//! and differentials.
//!
//! The scripts of the article are the instrument. Its generator writes the 40 statements, each of which is a run here, in
//! an order that is drawn, not in the article's; its query reads sizes and durations from msdb. Beforehand all of it is
//! run on a tiny database as its author ran it, to see that the 40 backups are in msdb.

mod matrix;

use clap::Args;
use pellucid_lab_measure::blocks::plan;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::room;
use pellucid_lab_measure::session::{Conditions, Place};
use serde::Deserialize;
use serde_json::json;

use self::matrix::{rehearse, Matrix};
use crate::article_0::disks::{self, Disks, Named};
use crate::article_0::scripts::STATEMENTS;
use crate::estimate::Estimate;
use crate::experiment::medium::{self, seconds};
use crate::experiment::notes::{Notes, Turn};
use crate::experiment::Options;
use crate::measurement::Measurement;
use crate::piece::Piece;

/// Names the command and the sessions.
const NAME: &str = "backup-matrix";
/// What `lab full` runs of it.
const PIECES: &[Piece] = &[Piece::experiment(NAME)];
const SCENARIO: &str = include_str!("../../scenarios/backup-matrix.toml");

/// At once on the disk of the lab: of each of the two databases that are changed itself, its log and its full backup.
const FILES_OF_DIFFERENTIALS: u64 = 6;

/// Article 0: backups by encryption, compression, source and target; restores and differentials beside them.
///
/// Example: lab backup-matrix --source hdd=/mnt/a --source ssd=/mnt/b --target hdd=/mnt/a --target ssd=/mnt/b
#[derive(Debug, Clone, Args)]
pub struct BackupMatrix {
    #[command(flatten)]
    pub options: Options,
    /// Where the database lies, at most twice: the article's HDD and SSD [default: disk, in --dir]
    #[arg(long, value_name = "NAME=DIR")]
    pub source: Vec<Named>,
    /// Where the backups go, at most twice.
    #[arg(long, value_name = "NAME=DIR")]
    pub target: Vec<Named>,
}

/// Parameters, as lab/scenarios/backup-matrix.toml has them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    rounds: usize,
    choices: Vec<String>,
    compression: Vec<String>,
    database_kib: u64,
    restores: bool,
    differentials: bool,
    changed_rows_percent: f64,
}

/// What a block of a round is about.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Numbers of source and target.
    Full(usize, usize),
    Differential,
}

#[derive(Debug)]
struct Cell {
    kind: Kind,
    compression: &'static str,
    name: String,
    /// Of the restores, if there are any.
    restore: Option<String>,
}

impl Measurement for BackupMatrix {
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
        let scenario: Scenario = self.options.scenario(SCENARIO)?;
        medium::checked(&scenario.choices)?;
        medium::compressions(&scenario.compression)?;
        match (0.0..=100.0).contains(&scenario.changed_rows_percent) {
            true => Ok(()),
            false => Err(Error::invalid("changed_rows_percent: not 0 to 100")),
        }
    }

    fn estimate(&self) -> Result<Estimate> {
        let options = &self.options;
        let scenario: Scenario = options.scenario(SCENARIO)?;
        let choices = medium::checked(&scenario.choices)?;
        let (rounds, bytes) =
            (options.rounds(scenario.rounds), options.bytes(scenario.database_kib));
        let [sources, targets] =
            disks::chosen(&self.source, &self.target, options.common(0).dir())?;
        let cells =
            cells(&scenario, &medium::compressions(&scenario.compression)?, &sources, &targets);
        let share = scenario.changed_rows_percent / 100.0;
        let mut round = 0.0;
        let choices = choices.as_slice();
        for (cell, choice) in
            cells.iter().flat_map(|cell| choices.iter().map(move |one| (cell, one)))
        {
            round += match cell.kind {
                Kind::Full(..) => seconds::backup(choice, cell.compression, bytes),
                Kind::Differential => seconds::differential(choice, cell.compression, bytes, share),
            };
            round += seconds::copied(bytes);
            if cell.restore.is_some() {
                round += seconds::restore(choice, cell.compression, bytes);
            }
        }
        let copies = 5.0 * seconds::copied(bytes);
        let files = 2 * sources.len() + targets.len();
        Ok(Estimate {
            seconds: seconds::made(bytes) + copies + (rounds + 1) as f64 * round + 10.0,
            bytes: (files as u64 + FILES_OF_DIFFERENTIALS) * bytes,
        })
    }

    fn run(&self) -> Result<bool> {
        let options = &self.options;
        let scenario: Scenario = options.scenario(SCENARIO)?;
        let choices = medium::checked(&scenario.choices)?;
        let compressions = medium::compressions(&scenario.compression)?;
        let (rounds, bytes) =
            (options.rounds(scenario.rounds), options.bytes(scenario.database_kib));
        let [sources, targets] =
            disks::chosen(&self.source, &self.target, options.common(0).dir())?;
        let cells = cells(&scenario, &compressions, &sources, &targets);
        let estimate = self.estimate()?;
        let program = options.program()?;
        let mut place = Place::open(NAME, &options.common(rounds))?;
        room(place.path(), bytes)?;
        let disks = Disks::open(sources, targets, place.path())?;
        for (dir, files) in disks.needs(FILES_OF_DIFFERENTIALS) {
            room(&dir, files * bytes)?;
        }
        rehearse(&program, place.path(), options.seed)?;
        let matrix = Matrix::prepare(&program, place.path(), disks, bytes, options.seed)?;
        let parameters = [
            ("scale", json!(options.scale)),
            ("estimate_s", json!(estimate.seconds.round())),
            ("article", json!(0)),
            ("database_kib", json!(matrix.bytes / 1024)),
            ("article_database_kib", json!(scenario.database_kib)),
            ("database_rows", json!(matrix.content.rows)),
            ("compression", json!(compressions)),
            ("sources", json!(matrix.disks.sources())),
            ("targets", json!(matrix.disks.targets())),
            ("same_device", json!(matrix.disks.are_one())),
            ("statements_in_msdb", json!(STATEMENTS)),
            ("restores", json!(scenario.restores)),
            ("differentials", json!(scenario.differentials)),
            ("differential_base", json!("none, COMPRESSION")),
            ("changed_rows_percent", json!(scenario.changed_rows_percent)),
            ("cache", json!("warm")),
        ];
        let conditions = Conditions {
            sides: medium::describe(&choices, &program, &matrix.content, matrix.bytes)?,
            warm_up_rounds: 1,
            size: Some(matrix.bytes >> 20),
            parameters: parameters.map(|(name, value)| (name.into(), value)).into(),
            ..Conditions::default()
        };
        if scenario.differentials {
            matrix.change(scenario.changed_rows_percent / 100.0)?;
        }
        let session = place.begin(conditions, cells.len())?;
        let mut notes = Notes::new(place, session.session);
        let plan = plan(cells.len(), choices.len(), rounds, options.seed);
        for (at, run) in plan.iter().enumerate() {
            let cell = &cells[run.group];
            let (round, place, side) = (run.round, run.place, choices[run.side]);
            let turn = Turn { cell: &cell.name, round, place, side };
            match cell.kind {
                Kind::Full(source, target) => {
                    matrix.full(&mut notes, turn, cell, source, target)?
                }
                Kind::Differential => matrix.differential(&mut notes, turn, cell)?,
            }
            let Some(next) = plan.get(at + 1) else { continue };
            if run.round == 0 && next.round > 0 {
                // The warm-up is in no figure of the article's query either.
                matrix.forget()?;
            }
            let (cell, side) = (&cells[next.group].name, choices[next.side]);
            notes.place.step(&format!("round {}: {cell}, {side}", next.round));
        }
        matrix.ask(&mut notes, &cells, &choices, rounds)?;
        notes.finish()?;
        Ok(true)
    }
}

fn cells(
    scenario: &Scenario,
    compressions: &[&'static str],
    sources: &[Named],
    targets: &[Named],
) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &compression in compressions {
        for (from, source) in sources.iter().enumerate() {
            for (to, target) in targets.iter().enumerate() {
                let name = format!("{compression}, {} to {}", source.name, target.name);
                let restore = format!("restore, {compression}, {} to {}", target.name, source.name);
                let restore = scenario.restores.then_some(restore);
                cells.push(Cell { kind: Kind::Full(from, to), compression, name, restore });
            }
        }
    }
    let from_to = sources.first().zip(targets.first()).filter(|_| scenario.differentials);
    if let Some((source, target)) = from_to {
        for &compression in compressions {
            let name = format!("differential, {compression}, {} to {}", source.name, target.name);
            cells.push(Cell { kind: Kind::Differential, compression, name, restore: None });
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_is_the_articles() {
        let scenario: Scenario = toml::from_str(SCENARIO).unwrap();
        assert_eq!((scenario.rounds, scenario.database_kib), (10, 1_553_408));
        assert_eq!(scenario.choices, medium::CHOICES);
        let named = |name: &str| Named { name: name.into(), dir: "/".into() };
        let both = [named("HDD"), named("SSD")];
        let compressions = medium::compressions(&scenario.compression).unwrap();
        let cells = cells(&scenario, &compressions, &both, &both);
        let full = cells.iter().filter(|cell| matches!(cell.kind, Kind::Full(..))).count();
        assert_eq!(full * medium::CHOICES.len(), STATEMENTS);
        assert_eq!(cells[1].name, "COMPRESSION, HDD to SSD");
        assert_eq!(cells[1].restore.as_deref(), Some("restore, COMPRESSION, SSD to HDD"));
        assert_eq!(cells[9].name, "differential, NO_COMPRESSION, HDD to HDD");
    }
}

//! What encryption adds to a backup: article 1's database, statement and runs.
//!
//! The script of the article is the instrument: its first batches make key and certificate, its last one is run with each
//! of the algorithms that its comment names, and without its line of ENCRYPTION.

use clap::Args;
use pellucid_lab_measure::blocks::plan;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{length, read_through, room};
use pellucid_lab_measure::session::{Conditions, Place};
use pellucid_lab_measure::sql::{batches, Server};
use serde::Deserialize;
use serde_json::json;

use crate::estimate::Estimate;
use crate::experiment::medium::{self, seconds, Timed};
use crate::experiment::notes::{Notes, Turn};
use crate::experiment::{content, Options};
use crate::measurement::Measurement;
use crate::piece::Piece;

/// Names the command and the sessions.
const NAME: &str = "backup-overhead";
/// What `lab full` runs of it.
const PIECES: &[Piece] = &[Piece::experiment(NAME)];
const SCENARIO: &str = include_str!("../../scenarios/backup-overhead.toml");
/// Word for word; crates/pellucid-cli/tests/cli/sql_articles.rs runs it, too.
const SCRIPT: &str = include_str!("../../../crates/pellucid-sql/tests/articles/1-backup.sql");
/// That the script names.
const ALGORITHM: &str = "ALGORITHM = TRIPLE_DES_3KEY";
/// The script says nothing of it, and so nothing is compressed.
const COMPRESSION: &str = medium::NO_COMPRESSION;
const CELL: &str = "backup";
/// For msdb: the script gives its backup no name.
const NO_NAME: &str = "";
/// The database, its medium, and a little of everything.
const FILES: u64 = 3;

/// Parameters, as lab/scenarios/backup-overhead.toml has them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    rounds: usize,
    choices: Vec<String>,
    database_kib: u64,
}

/// Article 1: what four algorithms add to the time of a backup.
///
/// Example: lab backup-overhead --rounds 10
#[derive(Debug, Clone, Args)]
pub struct BackupOverhead {
    #[command(flatten)]
    options: Options,
}

impl Measurement for BackupOverhead {
    fn name() -> &'static str {
        NAME
    }

    fn pieces() -> &'static [Piece] {
        PIECES
    }

    fn only_estimates(&self) -> bool {
        self.options.estimate
    }

    fn estimate(&self) -> Result<Estimate> {
        let options = &self.options;
        let scenario: Scenario = options.scenario(SCENARIO)?;
        let choices = medium::checked(&scenario.choices)?;
        let (rounds, bytes) =
            (options.rounds(scenario.rounds), options.bytes(scenario.database_kib));
        let of =
            |choice: &&str| seconds::backup(choice, COMPRESSION, bytes) + seconds::copied(bytes);
        let round: f64 = choices.iter().map(of).sum();
        Ok(Estimate {
            seconds: seconds::made(bytes) + (rounds + 1) as f64 * round,
            bytes: FILES * bytes,
        })
    }

    fn run(&self) -> Result<bool> {
        let options = &self.options;
        let scenario: Scenario = options.scenario(SCENARIO)?;
        let choices = medium::checked(&scenario.choices)?;
        let (rounds, bytes) =
            (options.rounds(scenario.rounds), options.bytes(scenario.database_kib));
        let estimate = self.estimate()?;
        let program = options.program()?;
        let mut place = Place::open(NAME, &options.common(rounds))?;
        room(place.path(), estimate.bytes)?;
        let (setup, backup) = script()?;
        let server = Server::new(&program, place.path().join("instance"))?;
        server.run("CREATE DATABASE IndexDemo")?;
        let database = server.home().join("data/IndexDemo.db");
        let made = content::fill(&database, bytes, options.seed, place.path())?;
        server.run(&setup)?;
        let file_bytes = length(&database)?;
        let sides = medium::describe(&choices, &program, &made, file_bytes)?;
        let parameters = [
            ("scale", json!(options.scale)),
            ("estimate_s", json!(estimate.seconds.round())),
            ("article", json!(1)),
            ("database_kib", json!(file_bytes / 1024)),
            ("article_database_kib", json!(scenario.database_kib)),
            ("database_rows", json!(made.rows)),
            ("compression", json!(COMPRESSION)),
            ("cache", json!("warm")),
        ];
        let conditions = Conditions {
            sides,
            warm_up_rounds: 1,
            size: Some(file_bytes >> 20),
            parameters: parameters.map(|(name, value)| (name.into(), value)).into(),
            ..Conditions::default()
        };
        let session = place.begin(conditions, 1)?;
        let mut notes = Notes::new(place, session.session);
        let media = server.home().join("backup/IndexDemoDB.bak");
        let plan = plan(1, choices.len(), rounds, options.seed);
        for (at, run) in plan.iter().enumerate() {
            let turn =
                Turn { cell: CELL, round: run.round, place: run.place, side: choices[run.side] };
            read_through(&database)?;
            let timed = Timed::run(&server, &statement(&backup, turn.side))?;
            timed.write(&mut notes, turn, file_bytes)?;
            medium::remember(&server, &mut notes, turn, NO_NAME, &media)?;
            medium::discard(turn, false, &media)?;
            if let Some(next) = plan.get(at + 1) {
                notes.place.step(&format!("round {}: {}", next.round, choices[next.side]));
            }
        }
        notes.finish()?;
        Ok(true)
    }
}

/// The article's script: what comes before the backup, and the backup.
fn script() -> Result<(String, String)> {
    let mut batches = batches(SCRIPT);
    let backup = batches.pop().filter(|batch| batch.contains(ALGORITHM));
    let backup = backup.ok_or_else(|| Error::invalid("article 1's script has no backup"))?;
    Ok((batches.join("GO\n"), backup))
}

/// The article's statement with another algorithm, or without its line of ENCRYPTION.
fn statement(backup: &str, choice: &str) -> String {
    if choice != medium::CHOICES[0] {
        return backup.replace(ALGORITHM, &format!("ALGORITHM = {choice}"));
    }
    let kept = backup.lines().filter(|line| !line.contains("ENCRYPTION"));
    kept.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_is_the_articles_but_for_its_algorithm() {
        let (setup, backup) = script().unwrap();
        assert!(setup.contains("CREATE CERTIFICATE TestBackupCert") && !setup.contains("BACKUP D"));
        let slow = statement(&backup, "TRIPLE_DES_3KEY");
        assert_eq!(slow, backup);
        assert!(slow.contains("WITH FORMAT, STATS=5"), "{slow}");
        let fast = statement(&backup, "AES_192");
        assert_eq!(fast.matches("ALGORITHM = AES_192").count(), 1);
        assert_eq!(fast.replace("ALGORITHM = AES_192", ALGORITHM), backup);
        let plain = statement(&backup, "none");
        assert!(plain.contains("WITH FORMAT, STATS=5") && !plain.contains("ENCRYPTION"), "{plain}");
    }

    #[test]
    fn the_scenario_is_the_articles() {
        let scenario: Scenario = toml::from_str(SCENARIO).unwrap();
        assert_eq!(scenario.rounds, 3);
        assert_eq!(scenario.choices, medium::CHOICES);
        assert_eq!(scenario.database_kib * 4, 7 * 1024 * 1024);
    }
}

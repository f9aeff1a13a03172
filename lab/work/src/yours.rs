//! Any database and any SQL of the user's: plain against sealed, statement by statement.
//!
//! The database is copied and never written to. Every side's copy is built anew once, as encryption does it, so that none
//! is packed better than another; each run has a fresh copy of that, under one name on all sides, and executes the whole
//! SQL in a process of its own.

mod answers;
mod original;
mod subject;

use std::path::PathBuf;

use clap::Args;
use pellucid_lab_measure::blocks::plan;
use pellucid_lab_measure::cold::ColdOptions;
use pellucid_lab_measure::common::Common;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::room;
use pellucid_lab_measure::interrupt;
use pellucid_lab_measure::machine::sha256;
use pellucid_lab_measure::session::{Conditions, Place};
use pellucid_lab_measure::side::Kind;
use pellucid_lab_report::record::{parameter, Parameters};
use serde_json::json;

use self::answers::Answers;
use self::original::Original;
use self::subject::Subject;
use crate::estimate::Estimate;
use crate::experiment::medium::seconds;
use crate::experiment::notes::{Notes, Turn};
use crate::measurement::Measurement;
use crate::scenario::statements::{brief, Done};
use crate::scenario::whole::Cache;
use crate::worker::Performed;

/// Names the command and the sessions.
const NAME: &str = "yours";
/// The whole SQL, closing included.
const ALL: &str = "all";
/// With more statements than that, only the whole is measured.
const MOST_CELLS: usize = 200;
/// Beside the sides' copies: the original's, one that is worked on, its log, and temporary files.
const FILES_BESIDE: u64 = 4;

/// Your database and your SQL: each statement, plain against sealed. The database is copied.
///
/// Example: lab yours --database app.db --sql report.sql --sides plain,again,sealed
#[derive(Debug, Clone, Args)]
pub struct Yours {
    #[command(flatten)]
    pub common: Common,
    /// A plain database; it is copied, with what its WAL holds, and never written to.
    #[arg(long, value_name = "FILE")]
    pub database: PathBuf,
    /// Statements; all of them are executed in each run, on a fresh copy.
    #[arg(long, value_name = "FILE")]
    pub sql: PathBuf,
    /// With the copy in the system's page cache, or with none of it there.
    #[arg(long, default_value = "warm")]
    pub cache: Cache,
    #[command(flatten)]
    pub cold: ColdOptions,
}

impl Measurement for Yours {
    fn name() -> &'static str {
        NAME
    }

    fn only_estimates(&self) -> bool {
        self.common.estimate
    }

    /// From one run on a copy of the database: nobody else knows how long the SQL takes.
    fn estimate(&self) -> Result<Estimate> {
        let (original, sql) = self.read()?;
        let dir = self.common.dir();
        let dir = dir.canonicalize().map_err(Error::io(dir.display().to_string()))?;
        room(&dir, FILES_BESIDE * original.bytes)?;
        interrupt::listen()?;
        let home = interrupt::directory("pellucid-lab-", &dir)?;
        let sides = self.common.sides.sides(&home.path().join("key"))?;
        let plain = sides.iter().find(|side| matches!(side.kind, Kind::Plain)).cloned();
        let plain = plain.ok_or_else(|| Error::invalid("yours: --sides: plain first"))?;
        let cache = (self.cache, self.cold);
        let subject = Subject::prepare(&original, &[plain], home.path(), cache)?;
        let performed = subject.run(0, &sql, false)?.performed;
        Ok(Estimate {
            seconds: seconds_of(&self.common, original.bytes, performed.wall_s),
            bytes: (sides.len() as u64 + FILES_BESIDE) * original.bytes,
        })
    }

    fn run(&self) -> Result<bool> {
        let common = &self.common;
        let (original, sql) = self.read()?;
        let mut place = Place::open(NAME, common)?;
        let is_known = |kind: &Kind| kind.is_plain() || matches!(kind, Kind::Sealed { .. });
        if !matches!(place.sides.first().map(|side| &side.kind), Some(Kind::Plain))
            || !place.sides.iter().all(|side| is_known(&side.kind))
        {
            return Err(Error::invalid(
                "yours: --sides: plain first, then again, loaded or sealed ones",
            ));
        }
        room(place.path(), (place.sides.len() as u64 + FILES_BESIDE) * original.bytes)?;
        let cache = (self.cache, self.cold);
        let subject = Subject::prepare(&original, &place.sides, place.path(), cache)?;
        // The first look: what statements there are, and whether they can be executed.
        let looked = subject.run(0, &sql, true)?.performed;
        let names = names(&looked.statements)?;
        let each = names.len() <= MOST_CELLS;
        if !each {
            let count = names.len();
            eprintln!(
                "lab: {count} statements are more than {MOST_CELLS}: only the whole is measured"
            );
        }
        let estimate_s = seconds_of(common, original.bytes, looked.wall_s);
        let conditions = Conditions {
            sides: subject.describe()?,
            warm_up_rounds: 1,
            size: Some(original.bytes >> 20),
            parameters: parameters(self, &original, names.len(), estimate_s)?,
            ..Conditions::default()
        };
        let session = place.begin(conditions, 1)?;
        let mut notes = Notes::new(place, session.session);
        let mut answers = Answers::new(&names, &session.sides);
        for run in plan(1, session.sides.len(), common.rounds, common.seed) {
            let side = &session.sides[run.side];
            notes.place.step(&format!("round {}: {side}", run.round));
            let done = subject.run(run.side, &sql, each)?;
            let turn = |cell| Turn { cell, round: run.round, place: run.place, side };
            let Performed { statements, wall_s, cpu_s, read_bytes } = &done.performed;
            let rows: u64 = statements.iter().map(|one| one.rows).sum();
            let numbers = [
                ("elapsed_s", Some(*wall_s)),
                ("cpu_s", *cpu_s),
                ("returned_rows", Some(rows as f64)),
                ("read_bytes", read_bytes.map(|bytes| bytes as f64)),
                ("read_share", done.read_share),
                ("others_percent_cpu", Some(done.shares.0 * 100.0)),
                ("stolen_percent_cpu", Some(done.shares.1 * 100.0)),
                ("dirty_kib", Some(done.dirty_kib as f64)),
            ];
            let known = numbers.into_iter().filter_map(|(what, value)| Some((what, value?)));
            notes.write(turn(ALL), known)?;
            for (name, one) in names.iter().zip(statements).take(if each { names.len() } else { 0 })
            {
                let numbers = [
                    ("elapsed_s", Some(one.wall_s)),
                    ("cpu_s", one.cpu_s),
                    ("returned_rows", Some(one.rows as f64)),
                    ("changed_rows", Some(one.changed_rows as f64)),
                ];
                let known = numbers.into_iter().filter_map(|(what, value)| Some((what, value?)));
                notes.write(turn(name.as_str()), known)?;
            }
            answers.take(run.side, statements, |side| {
                Ok(subject.run(side, &sql, false)?.performed.statements)
            })?;
        }
        notes.finish()?;
        Ok(true)
    }
}

impl Yours {
    /// The database, looked at, and the statements.
    fn read(&self) -> Result<(Original, String)> {
        let original = Original::look(&self.database)?;
        let sql = std::fs::read_to_string(&self.sql)
            .map_err(Error::io(self.sql.display().to_string()))?;
        Ok((original, sql))
    }
}

/// `1: SELECT count(*) FROM t`, for each statement.
fn names(statements: &[Done]) -> Result<Vec<String>> {
    if statements.is_empty() {
        return Err(Error::invalid("--sql: no statement in it"));
    }
    let name = |(number, one): (usize, &Done)| format!("{number}: {}", brief(&one.text));
    Ok((1..).zip(statements).map(name).collect())
}

fn seconds_of(common: &Common, bytes: u64, run_s: f64) -> f64 {
    const EACH_S: f64 = 0.6;
    let sides = common.sides.sides.len() as f64;
    let prepared = (1.0 + 4.0 * sides) * seconds::copied(bytes);
    let each = run_s + 2.0 * seconds::copied(bytes) + EACH_S;
    prepared + (common.rounds + 1) as f64 * sides * each
}

fn parameters(
    options: &Yours,
    original: &Original,
    statements: usize,
    estimate_s: f64,
) -> Result<Parameters> {
    let all = [
        ("estimate_s", json!(estimate_s.round())),
        ("database_bytes", json!(original.bytes)),
        ("page_size_bytes", json!(original.page_size_bytes)),
        ("journal", json!(if original.wal { "WAL" } else { "rollback" })),
        ("sql_sha256", json!(sha256(&options.sql)?)),
        ("statements", json!(statements)),
        ("cache", json!(options.cache.to_string())),
        ("databases", json!("built anew once on every side, as encryption does it")),
    ];
    let cold =
        (options.cache == Cache::Cold).then(|| (parameter::COLD, json!(options.cold.name())));
    Ok(all.into_iter().chain(cold).map(|(name, value)| (name.into(), value)).collect())
}

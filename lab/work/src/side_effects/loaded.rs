//! What a plain database pays in a process that has loaded the library: sorts and temporary tables that do not fit in
//! memory, whose files the shim seals for every database, and ordinary reads and writes, which go through it.

use pellucid_lab_measure::blocks;
use pellucid_lab_measure::blocks::{plan, Planned};
use pellucid_lab_measure::choice::SideChoice;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{read_through, room};
use pellucid_lab_measure::machine::Load;
use pellucid_lab_measure::session::Conditions;
use pellucid_lab_measure::side::Kind;
use pellucid_lab_report::plan::{self, Cell, Mix, Synchronous};
use pellucid_lab_report::record::Limit;
use serde::Deserialize;
use serde_json::json;

use super::Asked;
use crate::experiment::content;
use crate::experiment::medium::seconds;
use crate::experiment::notes::{Notes, Turn};
use crate::experiment::Options;
use crate::fixture::{settle, Fixture};
use crate::pool;
use crate::purchase::Workload;
use crate::scenario::statements;
use crate::scenario::temporary::Temporary;
use crate::worker::{Order, Performed, Report, Task};

/// Less is sorted in memory.
const LEAST_BYTES: u64 = 16 << 20;
/// The database, its temporary files, and those of the mixes.
const FILES: u64 = 4;
const MIX_BYTES: u64 = 256 << 20;
const SHORTEST_S: f64 = 0.05;

const FILE: &str = "PRAGMA temp_store = FILE";
/// A word that rows and index entries hold, about every second one.
const WORD: &str = "Lantern";
/// What needs temporary files, by name.
const TEMPORARY: [(&str, &str); 4] = [
    ("sort that spills", "SELECT OrderID, Note FROM CustomerOrder ORDER BY Note, OrderID"),
    ("GROUP BY that spills", "SELECT Note, count(*), sum(Amount) FROM CustomerOrder GROUP BY Note"),
    (
        "DISTINCT that spills",
        "SELECT count(*) FROM (SELECT DISTINCT Note, Article FROM CustomerOrder)",
    ),
    (
        "temp table",
        "CREATE TEMP TABLE t AS SELECT OrderID, Customer, Note FROM CustomerOrder;
         CREATE INDEX temp.t_Note ON t (Note);
         UPDATE t SET Note = Note || '.' WHERE OrderID % 10 = 0;
         SELECT count(*), sum(length(Note)) FROM t",
    ),
];

/// Parameters of `[loaded]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    database_kib: u64,
    mixes: Vec<Mix>,
    processes: usize,
    synchronous: Synchronous,
    seconds: f64,
}

#[derive(Debug, Clone, Copy)]
enum Work {
    /// Its place in [`TEMPORARY`].
    Temporary(usize),
    Mix(Mix),
}

impl Scenario {
    /// What lies on the disk at once.
    pub fn needed_bytes(&self, options: &Options) -> u64 {
        FILES * self.bytes(options) + MIX_BYTES
    }

    /// Seconds of the piece.
    pub fn estimate(&self, options: &Options, rounds: usize) -> f64 {
        /// Of the database, in a statement that writes temporary files.
        const MB_PER_S: f64 = 20.0;
        const EACH_S: f64 = 0.8;
        let bytes = self.bytes(options);
        let sorted = TEMPORARY.len() as f64 * (bytes as f64 / 1e6 / MB_PER_S + EACH_S);
        let mixed = self.mixes.len() as f64 * (self.run_s(options) + EACH_S);
        seconds::made(bytes) + 4.0 + (rounds + 1) as f64 * 2.0 * (sorted + mixed)
    }

    fn bytes(&self, options: &Options) -> u64 {
        options.bytes(self.database_kib).max(LEAST_BYTES)
    }

    fn run_s(&self, options: &Options) -> f64 {
        (self.seconds * options.scale).max(SHORTEST_S)
    }

    fn works(&self) -> Vec<(String, Work)> {
        let temporary = (0..TEMPORARY.len())
            .map(|place| (TEMPORARY[place].0.to_string(), Work::Temporary(place)));
        let mixes = self.mixes.iter().map(|mix| (mix.to_string(), Work::Mix(*mix)));
        temporary.chain(mixes).collect()
    }
}

/// Measures plain databases, in processes with the library and without.
///
/// # Errors
/// Of the first run that failed; [`Error::Invalid`] too for parameters that mean nothing.
pub fn measure(asked: &Asked<'_>, scenario: &Scenario) -> Result<()> {
    if scenario.processes == 0 || !scenario.seconds.is_finite() {
        return Err(Error::invalid("side-effects: [loaded]: processes or seconds are none"));
    }
    let Asked { options, rounds, .. } = *asked;
    let mut place = asked.place(vec![SideChoice::Plain, SideChoice::Loaded])?;
    let bytes = scenario.bytes(options);
    room(place.path(), scenario.needed_bytes(options))?;
    let database = place.path().join("large.db");
    let made = content::fill(&database, bytes, options.seed, place.path())?;
    let (setting, limit) = (plan::STANDARD, Limit::Seconds(scenario.run_s(options)));
    let fixtures: Vec<Fixture> = place
        .sides
        .iter()
        .map(|side| {
            let dir = place.path().join(&side.name);
            Fixture::prepare(side.clone(), setting, options.seed, dir)
        })
        .collect::<Result<_>>()?;
    let parameters = asked.parameters([
        ("database_kib", json!(pellucid_lab_measure::files::length(&database)? / 1024)),
        ("database_rows", json!(made.rows)),
        ("processes", json!(scenario.processes)),
        ("synchronous", json!(scenario.synchronous)),
        ("seconds", json!(scenario.run_s(options))),
        ("before", json!(FILE)),
        ("statements", json!(TEMPORARY.map(|(_, sql)| sql))),
    ]);
    let works = scenario.works();
    let conditions = Conditions {
        sides: fixtures.iter().map(Fixture::describe).collect::<Result<_>>()?,
        warm_up_rounds: 1,
        limit: Some(limit),
        until_percent: None,
        setting: Some(setting),
        size: Some(bytes >> 20),
        parameters,
    };
    let session = place.begin(conditions, works.len())?;
    let (seed, name) = (options.seed, session.session.clone());
    let purchase = Workload { session: name, fixtures, setting, limit, seed };
    let mut notes = Notes::new(place, session.session);
    let mut answers: Vec<Option<Vec<(u64, u64)>>> = vec![None; works.len()];
    for run in plan(works.len(), purchase.fixtures.len(), rounds, options.seed) {
        let (cell, work) = &works[run.group];
        let side = &purchase.fixtures[run.side].side;
        notes.place.step(&format!("round {}: {cell}, {}", run.round, side.name));
        let turn = Turn { cell, round: run.round, place: run.place, side: &side.name };
        match *work {
            Work::Mix(mix) => mixed(&purchase, scenario, mix, run, &mut notes, turn)?,
            Work::Temporary(place) => {
                read_through(&database)?;
                let task = statements::Task {
                    before: FILE.into(),
                    looks_for: Some(WORD.into()),
                    ..statements::Task::of(TEMPORARY[place].1)
                };
                let order = Order {
                    side: side.clone(),
                    path: database.clone(),
                    setting,
                    task: Task::Statements(task),
                };
                let home = purchase.fixtures[run.side].home();
                let done = sorted(&order, home, &mut notes, turn)?;
                check_temporary(&side.kind, cell, &done)?;
                let answer: Vec<_> = done.iter().map(|one| (one.rows, one.hash)).collect();
                if *answers[run.group].get_or_insert_with(|| answer.clone()) != answer {
                    let side = &side.name;
                    return Err(Error::invalid(format!("{cell}: {side} answers differently")));
                }
            }
        }
    }
    notes.finish()
}

/// Statements that write temporary files, in a process of their own.
fn sorted(
    order: &Order,
    home: &std::path::Path,
    notes: &mut Notes,
    turn: Turn<'_>,
) -> Result<Vec<statements::Done>> {
    let dirty_kib = settle();
    let load = Load::begin();
    let report = pool::single(order, home)?;
    let Report::Statements(Performed { statements, wall_s, cpu_s, .. }) = report else {
        return Err(Error::invalid(format!("{}: it answers {report:?}", turn.cell)));
    };
    let (others, stolen) = load.end().shares(cpu_s);
    let written = seen(&statements).bytes;
    let rows: u64 = statements.iter().map(|one| one.rows).sum();
    let numbers = [
        ("elapsed_s", wall_s),
        ("temporary_bytes", written as f64),
        ("returned_rows", rows as f64),
        ("others_percent_cpu", others * 100.0),
        ("stolen_percent_cpu", stolen * 100.0),
        ("dirty_kib", dirty_kib as f64),
    ];
    notes.write(turn, numbers)?;
    notes.write(turn, cpu_s.map(|seconds| ("cpu_s", seconds)))?;
    Ok(statements)
}

/// The article's operations on a fresh copy, for a set time.
fn mixed(
    purchase: &Workload,
    scenario: &Scenario,
    mix: Mix,
    run: Planned,
    notes: &mut Notes,
    turn: Turn<'_>,
) -> Result<()> {
    let (processes, synchronous) = (scenario.processes, scenario.synchronous);
    let Planned { round, place, side, .. } = run;
    let cell = Cell { processes, synchronous, mix };
    let (ran, _) = purchase.run(cell, blocks::Turn { round, place, side })?;
    let numbers = [
        ("ops_per_s", ran.ops_per_s),
        ("p50_us", ran.all.p50_us),
        ("p99_us", ran.all.p99_us),
        ("others_percent_cpu", ran.others_share * 100.0),
        ("stolen_percent_cpu", ran.stolen_share * 100.0),
        ("dirty_kib", ran.dirty_kib as f64),
    ];
    notes.write(turn, numbers)?;
    notes.write(turn, ran.cpu_us_per_op.map(|us| ("cpu_us_per_op", us)))
}

fn seen(statements: &[statements::Done]) -> Temporary {
    statements.iter().fold(Temporary::default(), |sum, one| sum.and(one.temporary))
}

/// Plain SQLite's temporary files can be read, and the shim's cannot, or have nothing where all of it stays in memory: so it was
/// in the way, and only there.
fn check_temporary(kind: &Kind, cell: &str, statements: &[statements::Done]) -> Result<()> {
    let Temporary { bytes, is_readable } = seen(statements);
    let is_loaded = matches!(kind, Kind::Loaded { .. });
    if is_readable != is_loaded && (bytes > 0 || is_loaded) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{cell}, {}: {bytes} bytes of temporary files, a row's text {}",
        kind.name(),
        if is_readable { "seen" } else { "not seen" }
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_tell_whether_the_shim_was_there() {
        let done = |bytes, is_readable| statements::Done {
            text: String::new(),
            wall_s: 1.0,
            cpu_s: None,
            rows: 1,
            changed_rows: 0,
            hash: 0,
            first: None,
            temporary: Temporary { bytes, is_readable },
        };
        let loaded = Kind::Loaded { extension: "/x.so".into() };
        let good = |kind: &Kind, bytes, is_readable| {
            check_temporary(kind, "sort", &[done(0, false), done(bytes, is_readable)]).is_ok()
        };
        assert!(good(&Kind::Plain, 9, true) && good(&loaded, 9, false) && good(&loaded, 0, false));
        assert!(!good(&Kind::Plain, 9, false) && !good(&loaded, 9, true));
        assert!(!good(&Kind::Plain, 0, true));
    }
}

//! Maintenance of a sealed database while a scan changes its key, against the same with no scan: article 3 reports that
//! it cannot be done at all there.

use std::path::{Path, PathBuf};

use pellucid_lab_measure::blocks::plan;
use pellucid_lab_measure::choice::SideChoice;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{copy_whole, length, read_through, remove, room};
use pellucid_lab_measure::machine::Load;
use pellucid_lab_measure::program::Program;
use pellucid_lab_measure::session::Conditions;
use pellucid_lab_measure::side::Side;
use pellucid_lab_report::plan;
use pellucid_lab_report::record::SideDescription;
use serde::Deserialize;
use serde_json::json;

use super::scanner::{Scanned, Scanner};
use super::{backups, program, Asked};
use crate::experiment::content;
use crate::experiment::medium::seconds;
use crate::experiment::notes::{Notes, Turn};
use crate::experiment::Options;
use crate::fixture::settle;
use crate::pool;
use crate::scenario::statements;
use crate::worker::{Order, Report, Task};

const MB: f64 = 1e6;
/// The plain one that it is made from, the template, a copy with a log as long, and a medium.
const FILES: u64 = 5;
const COMPRESSION: &str = "zstd";
const CHECK: &str = "PRAGMA integrity_check";

/// Both are sealed; beside the second one a scan goes on.
const SIDES: [&str; 2] = ["sealed", "scanned"];

#[derive(Debug, Clone, Copy)]
enum Work {
    Statement(&'static str),
    Backup,
}

const WORKS: [(&str, Work); 3] = [
    ("integrity_check", Work::Statement(CHECK)),
    ("ANALYZE", Work::Statement("ANALYZE")),
    ("backup", Work::Backup),
];

/// Parameters of `[scans]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    database_kib: u64,
}

impl Scenario {
    /// What lies on the disk at once.
    pub fn needed_bytes(&self, options: &Options) -> u64 {
        FILES * options.bytes(self.database_kib)
    }

    /// Seconds of the piece.
    pub fn estimate(&self, options: &Options, rounds: usize) -> f64 {
        /// A copy, the work, and on the average half a scan to wait for.
        const MB_PER_S: f64 = 60.0;
        const EACH_S: f64 = 1.0;
        let bytes = options.bytes(self.database_kib);
        let runs = ((rounds + 1) * SIDES.len() * WORKS.len()) as f64;
        seconds::made(bytes) + runs * (bytes as f64 / MB / MB_PER_S + EACH_S)
    }
}

/// Measures maintenance of a sealed database, with a scan beside it and without.
///
/// # Errors
/// Of the first run that failed.
pub fn measure(asked: &Asked<'_>, scenario: &Scenario) -> Result<()> {
    let Asked { options, rounds, .. } = *asked;
    let mut place = asked.place(vec![SideChoice::Plain, SideChoice::Sealed(None)])?;
    let bytes = options.bytes(scenario.database_kib);
    room(place.path(), scenario.needed_bytes(options))?;
    let sealed = place.sides.iter().find(|side| !side.kind.is_plain());
    let sealed = sealed.ok_or_else(|| Error::invalid("scans of a database that is not sealed"))?;
    let subject = Subject::prepare(sealed.clone(), place.path(), bytes, options.seed)?;
    let parameters = asked.parameters([
        ("database_kib", json!(length(&subject.template)? / 1024)),
        ("database_rows", json!(subject.rows)),
        ("scan", json!("pellucid rekey, one behind the other, from before the work to after it")),
        ("compression", json!(COMPRESSION)),
    ]);
    let conditions = Conditions {
        sides: SIDES.map(|name| subject.describe(name)).into(),
        warm_up_rounds: 1,
        setting: Some(plan::STANDARD),
        size: Some(bytes >> 20),
        parameters,
        ..Conditions::default()
    };
    let session = place.begin(conditions, WORKS.len())?;
    let mut notes = Notes::new(place, session.session);
    for run in plan(WORKS.len(), SIDES.len(), rounds, options.seed) {
        let ((cell, work), side) = (WORKS[run.group], SIDES[run.side]);
        notes.place.step(&format!("round {}: {cell}, {side}", run.round));
        let turn = Turn { cell, round: run.round, place: run.place, side };
        subject.run(work, &mut notes, turn)?;
    }
    notes.finish()
}

/// The sealed database.
#[derive(Debug)]
struct Subject {
    side: Side,
    template: PathBuf,
    description: SideDescription,
    program: Program,
    rows: u64,
    home: PathBuf,
}

impl Subject {
    fn prepare(side: Side, home: &Path, bytes: u64, seed: u64) -> Result<Self> {
        let program = program(&side, home)?;
        let (plain, template) = (home.join("plain.db"), home.join("template.db"));
        let made = content::fill(&plain, bytes, seed, home)?;
        content::seal(&program, &side, &plain, &template)?;
        remove(&plain)?;
        if content::is_readable(&template)? {
            return Err(Error::invalid("a sealed database shows a row's text"));
        }
        let description = SideDescription {
            engine: Some(made.engine),
            file_bytes: Some(length(&template)?),
            page_size_bytes: Some(plan::PAGE_SIZE_BYTES),
            ..side.describe()?
        };
        let (rows, home) = (made.rows, home.to_path_buf());
        Ok(Self { side, template, description, program, rows, home })
    }

    fn describe(&self, name: &str) -> SideDescription {
        let change = match name == SIDES[0] {
            true => "none",
            false => "a scan in short transactions, others go on",
        };
        let (side, change) = (name.into(), Some(change.into()));
        SideDescription { side, change, ..self.description.clone() }
    }

    fn run(&self, work: Work, notes: &mut Notes, turn: Turn<'_>) -> Result<()> {
        let copy = self.home.join("run.db");
        remove(&copy)?;
        copy_whole(&self.template, &copy)?;
        read_through(&copy)?;
        let dirty_kib = settle();
        let scanner = match turn.side == SIDES[1] {
            true => Some(Scanner::start(&self.program, &copy)?),
            false => None,
        };
        let load = Load::begin();
        let (wall_s, cpu_s) = match work {
            Work::Statement(sql) => self.statement(sql, &copy)?,
            Work::Backup => self.backup(&copy)?,
        };
        let (others, stolen) = load.end().shares(cpu_s);
        let numbers = [
            ("elapsed_s", wall_s),
            ("others_percent_cpu", others * 100.0),
            ("stolen_percent_cpu", stolen * 100.0),
            ("dirty_kib", dirty_kib as f64),
        ];
        notes.write(turn, numbers)?;
        notes.write(turn, cpu_s.map(|seconds| ("cpu_s", seconds)))?;
        if let Some(scanner) = scanner {
            let Scanned { scans, wall_s } = scanner.stop()?;
            let bytes = length(&copy)? as f64 * scans as f64;
            let numbers = [("done_scans", scans as f64), ("scan_mb_per_s", bytes / MB / wall_s)];
            notes.write(turn, numbers)?;
        }
        self.check(&copy)?;
        if turn.round == 0 && matches!(work, Work::Backup) {
            // Whatever the scan had done by then: each page opens, and the database that they make is sound.
            self.program.run(&["verify", "--open", "--check"], &self.media())?;
        }
        remove(&self.media())?;
        remove(&copy)
    }

    fn statement(&self, sql: &str, copy: &Path) -> Result<(f64, Option<f64>)> {
        match self.single(copy, Task::Statements(statements::Task::of(sql)))? {
            Report::Statements(done) => {
                let said = done.statements.first().and_then(|one| one.first.as_deref());
                if sql == CHECK && said != Some("ok") {
                    return Err(Error::invalid(format!("integrity_check: {said:?}")));
                }
                Ok((done.wall_s, done.cpu_s))
            }
            other => Err(Error::invalid(format!("{sql}: it answers {other:?}"))),
        }
    }

    /// Seen from outside, as in [`backups`].
    fn backup(&self, copy: &Path) -> Result<(f64, Option<f64>)> {
        let media = self.media();
        remove(&media)?;
        let paths = [copy, media.as_path()];
        let took =
            backups::recipe(&self.program, &self.side, COMPRESSION, &self.home, paths).run()?;
        Ok((took.wall_s, Some(took.cpu_s)))
    }

    fn media(&self) -> PathBuf {
        self.home.join("media.bak")
    }

    /// Every row is there, and nothing of it in clear.
    fn check(&self, copy: &Path) -> Result<()> {
        self.side.check_magic(copy)?;
        match self.single(copy, Task::Rows)? {
            Report::Rows { rows, .. } if rows == self.rows => Ok(()),
            other => Err(Error::invalid(format!("of {} rows, {other:?} are left", self.rows))),
        }
    }

    fn single(&self, path: &Path, task: Task) -> Result<Report> {
        let (side, setting) = (self.side.clone(), plan::STANDARD);
        pool::single(&Order { side, path: path.into(), setting, task }, &self.home)
    }
}

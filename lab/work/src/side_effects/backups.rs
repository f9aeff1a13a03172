//! Backups of a sealed database beside those of the same plain one, compressed and not: time, processor time, length.

use std::path::{Path, PathBuf};

use pellucid_lab_measure::blocks::plan;
use pellucid_lab_measure::choice::SideChoice;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{length, read_through, remove, room};
use pellucid_lab_measure::machine::Load;
use pellucid_lab_measure::pipeline::{Recipe, Step, Took};
use pellucid_lab_measure::program::Program;
use pellucid_lab_measure::session::Conditions;
use pellucid_lab_measure::side::{Kind, Side};
use pellucid_lab_report::plan;
use pellucid_lab_report::record::SideDescription;
use serde::Deserialize;
use serde_json::json;

use super::{program, Asked};
use crate::experiment::content;
use crate::experiment::medium::seconds;
use crate::experiment::notes::{Notes, Turn};
use crate::experiment::Options;
use crate::fixture::settle;
use crate::pool;
use crate::worker::{Order, Report, Task};

const MB: f64 = 1e6;
/// Both databases, a medium, what is restored of it, and a little of everything.
const FILES: u64 = 5;

/// Parameters of `[backups]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    database_kib: u64,
    /// As `pellucid backup --compression` has it.
    compression: Vec<String>,
}

impl Scenario {
    /// What lies on the disk at once.
    pub fn needed_bytes(&self, options: &Options) -> u64 {
        FILES * options.bytes(self.database_kib)
    }

    /// Seconds of the piece.
    pub fn estimate(&self, options: &Options, rounds: usize) -> f64 {
        const MB_PER_S: f64 = 150.0;
        const EACH_S: f64 = 0.8;
        let bytes = options.bytes(self.database_kib);
        let each = bytes as f64 / MB / MB_PER_S + seconds::copied(bytes) + EACH_S;
        let runs = (rounds + 1) * 2 * self.compression.len();
        seconds::made(bytes) + 4.0 * seconds::copied(bytes) + runs as f64 * each
    }
}

/// `backup zstd`, `backup none`: the same on both sides.
pub fn cell(compression: &str) -> String {
    format!("backup {compression}")
}

/// The backup of a database to one medium, to its synced end.
pub fn recipe(
    program: &Program,
    side: &Side,
    compression: &str,
    home: &Path,
    [database, media]: [&Path; 2],
) -> Recipe {
    let text = |path: &Path| path.display().to_string();
    let mut words: Vec<String> =
        ["backup", "-q", "--compression", compression].map(String::from).into();
    match &side.kind {
        Kind::Sealed { key_file, .. } => words.extend(["--key-file".into(), text(key_file)]),
        _ => words.push("--no-encryption".into()),
    }
    // The database before the media: `--to` takes all that follow it.
    words.extend([text(database), "--to".into(), text(media)]);
    let step = Step { program: program.path().into(), words, environment: Vec::new() }
        .with("PELLUCID_HOME", text(home))
        .with("SQLITE_TMPDIR", text(home));
    Recipe { pipelines: vec![step.into()], leaves: vec![media.into()] }
}

/// Measures backups of both sides with each compression.
///
/// # Errors
/// Of the first run that failed; [`Error::Invalid`] too if no compression is named.
pub fn measure(asked: &Asked<'_>, scenario: &Scenario) -> Result<()> {
    if scenario.compression.is_empty() {
        return Err(Error::invalid("side-effects: [backups]: no compression is named"));
    }
    let Asked { options, rounds, .. } = *asked;
    let mut place = asked.place(vec![SideChoice::Plain, SideChoice::Sealed(None)])?;
    let bytes = options.bytes(scenario.database_kib);
    room(place.path(), scenario.needed_bytes(options))?;
    let sources = Sources::prepare(&place.sides, place.path(), bytes, options.seed)?;
    let parameters = asked.parameters([
        ("database_kib", json!(length(&sources.databases[0])? / 1024)),
        ("database_rows", json!(sources.rows)),
        ("compression", json!(scenario.compression)),
    ]);
    let conditions = Conditions {
        sides: sources.descriptions.clone(),
        warm_up_rounds: 1,
        setting: Some(plan::STANDARD),
        size: Some(bytes >> 20),
        parameters,
        ..Conditions::default()
    };
    let cells: Vec<String> = scenario.compression.iter().map(|how| cell(how)).collect();
    let session = place.begin(conditions, cells.len())?;
    let mut notes = Notes::new(place, session.session);
    for run in plan(cells.len(), sources.sides.len(), rounds, options.seed) {
        let (cell, side) = (&cells[run.group], &sources.sides[run.side].name);
        notes.place.step(&format!("round {}: {cell}, {side}", run.round));
        let turn = Turn { cell, round: run.round, place: run.place, side };
        sources.run(&scenario.compression[run.group], run.side, &mut notes, turn)?;
    }
    notes.finish()
}

/// The same database, plain and sealed.
#[derive(Debug)]
struct Sources {
    sides: Vec<Side>,
    databases: [PathBuf; 2],
    descriptions: Vec<SideDescription>,
    program: Program,
    rows: u64,
    home: PathBuf,
}

impl Sources {
    fn prepare(sides: &[Side], home: &Path, bytes: u64, seed: u64) -> Result<Self> {
        let [plain, sealed] = sides else {
            return Err(Error::invalid("backups of two sides are compared"));
        };
        let program = program(sealed, home)?;
        let databases = [home.join("plain.db"), home.join("sealed.db")];
        let made = content::fill(&databases[0], bytes, seed, home)?;
        content::seal(&program, sealed, &databases[0], &databases[1])?;
        let mut descriptions = Vec::new();
        for (side, database) in [plain, sealed].into_iter().zip(&databases) {
            if content::is_readable(database)? != side.kind.is_plain() {
                let name = database.display();
                return Err(Error::invalid(format!("`{name}`: a row's text is seen, or missing")));
            }
            descriptions.push(SideDescription {
                engine: Some(made.engine.clone()),
                file_bytes: Some(length(database)?),
                page_size_bytes: Some(plan::PAGE_SIZE_BYTES),
                ..side.describe()?
            });
        }
        let (sides, home, rows) = (sides.to_vec(), home.to_path_buf(), made.rows);
        Ok(Self { sides, databases, descriptions, program, rows, home })
    }

    fn run(&self, compression: &str, side: usize, notes: &mut Notes, turn: Turn<'_>) -> Result<()> {
        let database = &self.databases[side];
        let media = self.home.join("media.bak");
        remove(&media)?;
        read_through(database)?;
        let dirty_kib = settle();
        let load = Load::begin();
        let paths = [database.as_path(), media.as_path()];
        let Took { wall_s, cpu_s, .. } =
            recipe(&self.program, &self.sides[side], compression, &self.home, paths).run()?;
        let (others, stolen) = load.end().shares(Some(cpu_s));
        let source_bytes = length(database)?;
        let numbers = [
            ("elapsed_s", wall_s),
            ("cpu_s", cpu_s),
            ("media_bytes", length(&media)? as f64),
            ("source_bytes", source_bytes as f64),
            ("speed_mb_per_s", source_bytes as f64 / MB / wall_s),
            ("others_percent_cpu", others * 100.0),
            ("stolen_percent_cpu", stolen * 100.0),
            ("dirty_kib", dirty_kib as f64),
        ];
        notes.write(turn, numbers)?;
        if turn.round == 0 {
            self.check(side, compression, &media)?;
        }
        remove(&media)
    }

    /// A medium holds every row, and a sealed one shows none.
    fn check(&self, side: usize, compression: &str, media: &Path) -> Result<()> {
        let kind = &self.sides[side].kind;
        let is_readable = content::is_readable(media)?;
        // Of a plain one that is compressed a text may be left as it is.
        let shows_text = kind.is_plain() && compression == "none";
        if is_readable && !kind.is_plain() || !is_readable && shows_text {
            let seen = if is_readable { "seen" } else { "not seen" };
            let name = kind.name();
            return Err(Error::invalid(format!(
                "backup {compression}, {name}: a row's text {seen}"
            )));
        }
        let restored = self.home.join("restored.db");
        let to = format!("--to={}", restored.display());
        match kind {
            Kind::Sealed { .. } => self.program.run(&["restore", "--decrypted", &to], media)?,
            _ => self.program.run_bare(&["restore", &to], media)?,
        };
        let (side, setting) = (self.sides[0].clone(), plan::STANDARD);
        let order = Order { side, path: restored.clone(), setting, task: Task::Rows };
        match pool::single(&order, &self.home)? {
            Report::Rows { rows, .. } if rows == self.rows => remove(&restored),
            other => Err(Error::invalid(format!("a backup of {} rows: {other:?}", self.rows))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pellucid_lab_measure::side::Recovery;

    #[test]
    fn a_plain_source_is_backed_up_in_clear_and_a_sealed_one_under_its_key() {
        let program = Program::bare(Path::new("/p"), Path::new("/h"), &[]);
        let words = |kind| {
            let side = Side { name: "x".into(), kind, library: None, recovery: Recovery::Simple };
            let paths = [Path::new("/a.db"), Path::new("/b.bak")];
            let recipe = recipe(&program, &side, "zstd", Path::new("/h"), paths);
            recipe.pipelines[0].steps[0].words.join(" ")
        };
        let end = "/a.db --to /b.bak";
        assert_eq!(
            words(Kind::Plain),
            format!("backup -q --compression zstd --no-encryption {end}")
        );
        let sealed = Kind::Sealed {
            extension: "/x.so".into(),
            key_file: "/k".into(),
            algorithm: "AES_256".into(),
        };
        assert_eq!(words(sealed), format!("backup -q --compression zstd --key-file /k {end}"));
    }
}

//! Article 0's matrix: encryption, compression, source and target, each backup ten times; and what it left open, restores
//! and differentials.
//!
//! The scripts of the article are the instrument. Its generator writes the 40 statements, each of which is a run here, in
//! an order that is drawn, not in the article's; its query reads sizes and durations from msdb. Beforehand all of it is
//! run on a tiny database as its author ran it, to see that the 40 backups are in msdb.

mod disks;

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use self::disks::{Disks, Named};
use crate::blocks::plan;
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::experiment::content::Content;
use crate::experiment::medium::{self, seconds, Timed, CHOICES, COMPRESSION, NO_COMPRESSION};
use crate::experiment::notes::{Notes, Turn};
use crate::experiment::{content, Options};
use crate::files::{copy_whole, length, read_through, room};
use crate::session::{Conditions, Place};
use crate::sql::{quoted, quoted_path, Server, Table};
use crate::statistics::mean;

const SCENARIO: &str = include_str!("../../scenarios/backup-matrix.toml");

/// Word for word; crates/pellucid-cli/tests/cli/sql_articles.rs runs them, too.
const ATTACH: &str = include_str!("../../../crates/pellucid-sql/tests/articles/0-attach.sql");
const KEYS: &str = include_str!("../../../crates/pellucid-sql/tests/articles/0-keys.sql");
const BACKUP_KEYS: &str =
    include_str!("../../../crates/pellucid-sql/tests/articles/0-backup-keys.sql");
const GENERATE: &str = include_str!("../../../crates/pellucid-sql/tests/articles/0-generate.sql");
const DURATIONS: &str = include_str!("../../../crates/pellucid-sql/tests/articles/0-durations.sql");

/// Backups that the generator writes.
const STATEMENTS: usize = 40;
/// What the scripts call the two disks, as sources and as targets, and the drives of both.
const ARTICLE_DISKS: [&str; 2] = ["HDD", "SSD"];
const DRIVES: [char; 2] = ['D', 'E'];
/// Of the database of the rehearsal.
const TINY_BYTES: u64 = 256 << 10;
/// Logical names of the files, which the scripts name.
const FILES: [&str; 2] = ["AdventureWorks2012_Data", "AdventureWorks2012_Log"];
/// The database that is changed and backed up differentially, and its full backup.
const CHANGED: &str = "awChanged";
const BASE: &str = "base";
/// At once on the disk of the lab: the database that is changed and its log, its full backup.
const FILES_OF_DIFFERENTIALS: u64 = 3;
/// The one of the last decimal in which the article's query rounds a mean.
const ROUNDED_S: f64 = 1e-5;

/// Article 0's backups; five encryption choices, with and without compression, between disks; restores, differentials.
#[derive(Debug, Clone, Args)]
pub struct MatrixOptions {
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

/// One backup of the article, for one choice.
#[derive(Debug)]
struct Statement {
    name: String,
    text: String,
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

/// Measures the matrix.
///
/// # Errors
/// Of the first run that failed; [`Error::Invalid`] too if there is no room for the files, and if msdb and its query do
/// not agree.
pub fn measure(given: &MatrixOptions) -> Result<bool> {
    let options = &given.options;
    let scenario: Scenario = options.scenario(SCENARIO)?;
    let choices = medium::checked(&scenario.choices)?;
    let compressions = compressions(&scenario.compression)?;
    if !(0.0..=100.0).contains(&scenario.changed_rows_percent) {
        return Err(Error::invalid("changed_rows_percent: not 0 to 100"));
    }
    let (rounds, bytes) = (options.rounds(scenario.rounds), options.bytes(scenario.database_kib));
    let [sources, targets] = named(given)?;
    let cells = cells(&scenario, &compressions, &sources, &targets);
    let estimate = estimate(given)?;
    if options.estimate {
        return estimate.print();
    }
    let program = options.program()?;
    let mut place = Place::open("backup-matrix", &options.common(rounds))?;
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
        ("log_backups", json!("not built yet")),
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
            Kind::Full(source, target) => matrix.full(&mut notes, turn, cell, source, target)?,
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

fn compressions(names: &[String]) -> Result<Vec<&'static str>> {
    let known = |name: &String| [COMPRESSION, NO_COMPRESSION].into_iter().find(|one| one == name);
    let found: Vec<_> = names.iter().filter_map(known).collect();
    let twice = (1..found.len()).any(|at| found[..at].contains(&found[at]));
    match found.len() == names.len() && !found.is_empty() && !twice {
        true => Ok(found),
        false => Err(Error::invalid("compression: COMPRESSION, NO_COMPRESSION or both")),
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

/// The disks that were given, else the one of the lab.
fn named(given: &MatrixOptions) -> Result<[Vec<Named>; 2]> {
    let default = Named { name: "disk".into(), dir: given.options.common(0).dir() };
    let chosen = [&given.source, &given.target].map(|named| match named.is_empty() {
        true => vec![default.clone()],
        false => named.clone(),
    });
    disks::apart(chosen)
}

/// What it will take; its bytes as if all disks were one.
///
/// # Errors
/// Of the scenario and the disks.
pub fn estimate(given: &MatrixOptions) -> Result<Estimate> {
    let options = &given.options;
    let scenario: Scenario = options.scenario(SCENARIO)?;
    let choices = medium::checked(&scenario.choices)?;
    let (rounds, bytes) = (options.rounds(scenario.rounds), options.bytes(scenario.database_kib));
    let [sources, targets] = named(given)?;
    let cells = cells(&scenario, &compressions(&scenario.compression)?, &sources, &targets);
    let share = scenario.changed_rows_percent / 100.0;
    let mut round = 0.0;
    let choices = choices.as_slice();
    for (cell, choice) in cells.iter().flat_map(|cell| choices.iter().map(move |one| (cell, one))) {
        round += match cell.kind {
            Kind::Full(..) => seconds::backup(choice, cell.compression, bytes),
            Kind::Differential => seconds::differential(choice, cell.compression, bytes, share),
        };
        round += seconds::copied(bytes);
        if cell.restore.is_some() {
            round += seconds::restore(choice, cell.compression, bytes);
        }
    }
    let copies = 4.0 * seconds::copied(bytes);
    let files = 2 * sources.len() + targets.len();
    Ok(Estimate {
        seconds: seconds::made(bytes) + copies + (rounds + 1) as f64 * round + 10.0,
        bytes: (files as u64 + FILES_OF_DIFFERENTIALS) * bytes,
    })
}

/// The article from beginning to end on a tiny database: 40 backups, 40 rows of its query.
fn rehearse(program: &Path, dir: &Path, seed: u64) -> Result<()> {
    let dir = dir.join("rehearsal");
    let server = instance(program, &dir)?;
    let made = make(&server, &dir, "tiny", TINY_BYTES, seed)?.0;
    let drives = DRIVES.map(|drive| dir.join(drive.to_string()));
    for (disk, drive) in ARTICLE_DISKS.iter().zip(&drives) {
        folder(&drive.join("backup"))?;
        copy_whole(&made, &folder(&drive.join("CTP2_Data"))?.join(format!("aw{disk}.mdf")))?;
    }
    let server = with_drives(&server, &dir, &drives);
    for script in [ATTACH, KEYS, BACKUP_KEYS] {
        server.run(script)?;
    }
    server.run(&GENERATE.replace("--EXEC", "EXEC"))?;
    let rows = server.run(DURATIONS)?.table()?.rows.len();
    if rows != STATEMENTS {
        return Err(Error::invalid(format!(
            "article 0's query finds {rows} of its {STATEMENTS} backups in msdb"
        )));
    }
    std::fs::remove_dir_all(&dir).map_err(Error::io(dir.display().to_string()))
}

/// An instance in a directory of its own, with a drive C.
fn instance(program: &Path, dir: &Path) -> Result<Server> {
    folder(&dir.join("C/temp"))?;
    let server = Server::new(program, dir.join("instance"))?;
    Ok(server.with_drives(&[('C', &dir.join("C"))]))
}

fn with_drives(server: &Server, dir: &Path, drives: &[PathBuf; 2]) -> Server {
    let [first, second] = drives;
    server.with_drives(&[('C', &dir.join("C")), (DRIVES[0], first), (DRIVES[1], second)])
}

/// A database with the logical names of AdventureWorks2012, in drive C.
fn make(
    server: &Server,
    dir: &Path,
    name: &str,
    bytes: u64,
    seed: u64,
) -> Result<(PathBuf, Content)> {
    let [data, log] = FILES.map(quoted);
    server.run(&format!(
        "CREATE DATABASE {name} ON (NAME = {data}, FILENAME = 'C:\\temp\\{name}.mdf') \
         LOG ON (NAME = {log}, FILENAME = 'C:\\temp\\{name}_log.ldf')"
    ))?;
    let path = dir.join("C/temp").join(format!("{name}.mdf"));
    let content = content::fill(&path, bytes, seed, dir)?;
    Ok((path, content))
}

fn folder(dir: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(dir).map_err(Error::io(dir.display().to_string()))?;
    Ok(dir.to_path_buf())
}

/// The instance that is measured, with its databases and the article's statements.
#[derive(Debug)]
struct Matrix {
    /// Its drives are the targets.
    server: Server,
    disks: Disks,
    statements: Vec<Statement>,
    content: Content,
    /// Of the database.
    bytes: u64,
}

impl Matrix {
    fn prepare(program: &Path, dir: &Path, disks: Disks, bytes: u64, seed: u64) -> Result<Self> {
        let server = instance(program, dir)?;
        let (made, content) = make(&server, dir, "made", bytes, seed)?;
        let bytes = length(&made)?;
        copy_whole(&made, &disks.source(0).join(format!("{CHANGED}.mdf")))?;
        // Where there is one source, the article's other database is there and not used.
        let (spare, _) = make(&server, dir, "spare", TINY_BYTES, seed)?;
        let mut sources = [0, 1].map(|at| disks.source(at).to_path_buf());
        if !disks.has_source(1) {
            sources[1] = folder(&dir.join("spare"))?;
        }
        for (at, source) in sources.iter().enumerate() {
            let data = folder(&source.join("CTP2_Data"))?;
            let from = if disks.has_source(at) { &made } else { &spare };
            copy_whole(from, &data.join(format!("aw{}.mdf", ARTICLE_DISKS[at])))?;
        }
        for database in ["made", "spare"] {
            server.run(&format!("DROP DATABASE {database}"))?;
        }
        // The scripts have source and target on one drive; here drives are sources while databases are attached, and
        // targets from then on.
        let attaching = with_drives(&server, dir, &sources);
        for script in [ATTACH, KEYS, BACKUP_KEYS] {
            attaching.run(script)?;
        }
        let targets = [0, 1].map(|at| disks.target(at).to_path_buf());
        for target in &targets {
            folder(&target.join("backup"))?;
        }
        let server = with_drives(&server, dir, &targets);
        let answer = server.run(GENERATE)?;
        let statements = statements(answer.table()?.text(0, "")?)?;
        Ok(Self { server, disks, statements, content, bytes })
    }

    fn database(&self, source: usize) -> PathBuf {
        let name = format!("CTP2_Data/aw{}.mdf", ARTICLE_DISKS[source]);
        self.disks.source(source).join(name)
    }

    fn changed(&self) -> PathBuf {
        self.disks.source(0).join(format!("{CHANGED}.mdf"))
    }

    fn statement(&self, choice: &str, cell: &Cell) -> Result<&Statement> {
        let Kind::Full(source, target) = cell.kind else {
            return Err(Error::invalid("the article has no differentials"));
        };
        let choice = if choice == CHOICES[0] { "NO_ENCRYPTION" } else { choice };
        let (from, to) = (ARTICLE_DISKS[source], ARTICLE_DISKS[target]);
        let end = format!("-{choice}-{from}-to-{to}-{}", cell.compression);
        let found = self.statements.iter().find(|one| one.name.ends_with(&end));
        found.ok_or_else(|| Error::invalid(format!("article 0 has no backup `{end}`")))
    }

    /// A statement of the article, and the restore of what it made.
    fn full(
        &self,
        notes: &mut Notes,
        turn: Turn<'_>,
        cell: &Cell,
        source: usize,
        target: usize,
    ) -> Result<()> {
        let Statement { name, text } = self.statement(turn.side, cell)?;
        let media = self.disks.target(target).join(format!("backup/{name}.bak"));
        read_through(&self.database(source))?;
        Timed::run(&self.server, text)?.write(notes, turn, self.bytes)?;
        medium::remember(&self.server, notes, turn, name, &media)?;
        if let Some(restore) = &cell.restore {
            let turn = Turn { cell: restore, ..turn };
            let timed = Timed::run(&self.server, &self.restore(&media, source)?)?;
            timed.write(notes, turn, self.bytes)?;
            self.check_restored(turn)?;
        }
        medium::discard(turn, cell.compression == COMPRESSION, &media)
    }

    fn restore(&self, media: &Path, source: usize) -> Result<String> {
        let [data, log] = ["mdf", "ldf"].map(|end| format!("restored.{end}"));
        let path = |name: &str| quoted_path(&self.disks.source(source).join(name));
        Ok(format!(
            "RESTORE DATABASE restored FROM DISK = {} WITH MOVE {} TO {}, MOVE {} TO {}",
            quoted_path(media)?,
            quoted(FILES[0]),
            path(&data)?,
            quoted(FILES[1]),
            path(&log)?
        ))
    }

    /// A restore is worth nothing if rows are missing; the first of each is checked whole. The database is dropped.
    fn check_restored(&self, turn: Turn<'_>) -> Result<()> {
        let counted =
            self.server.run("SELECT COUNT_BIG(*) AS n FROM restored.dbo.CustomerOrder")?;
        let rows = counted.table()?.number(0, "n")?;
        if rows != self.content.rows as f64 {
            let expected = self.content.rows;
            return Err(Error::invalid(format!("of {expected} rows, {rows} were restored")));
        }
        if turn.round == 0 {
            self.server.run("DBCC CHECKDB(restored) WITH NO_INFOMSGS")?;
        }
        self.server.run("DROP DATABASE restored").map(drop)
    }

    /// The database that is changed: a full backup, and then `share` of its rows written anew.
    fn change(&self, share: f64) -> Result<()> {
        let attach = format!(
            "CREATE DATABASE {CHANGED} ON (FILENAME = {}) FOR ATTACH",
            quoted_path(&self.changed())?
        );
        self.server.run(&attach)?;
        let base = self.disks.target(0).join(format!("{BASE}.bak"));
        self.server.run(&format!(
            "BACKUP DATABASE {CHANGED} TO DISK = {} WITH INIT, COMPRESSION, NAME = '{BASE}'",
            quoted_path(&base)?
        ))?;
        // No index has the column, and its length stays.
        let last = (self.content.rows as f64 * share).ceil();
        self.server.run(&format!(
            "UPDATE {CHANGED}.dbo.CustomerOrder SET Article = REVERSE(Article) WHERE OrderID <= {last}
             USE {CHANGED}
             CHECKPOINT"
        ))?;
        Ok(())
    }

    fn differential(&self, notes: &mut Notes, turn: Turn<'_>, cell: &Cell) -> Result<()> {
        let media = self.disks.target(0).join("differential.bak");
        let name = format!("differential-{}-{}", turn.side, cell.compression);
        let encryption = match turn.side == CHOICES[0] {
            true => String::new(),
            false => {
                format!("ENCRYPTION (ALGORITHM = {}, SERVER CERTIFICATE = TestCert), ", turn.side)
            }
        };
        let statement = format!(
            "BACKUP DATABASE {CHANGED} TO DISK = {} WITH DIFFERENTIAL, INIT, {}, {encryption}NAME = '{name}'",
            quoted_path(&media)?,
            cell.compression
        );
        read_through(&self.changed())?;
        Timed::run(&self.server, &statement)?.write(notes, turn, self.bytes)?;
        medium::remember(&self.server, notes, turn, &name, &media)?;
        if turn.round == 0 {
            self.check_differential(turn, &media)?;
        }
        medium::discard(turn, cell.compression == COMPRESSION, &media)
    }

    /// Restores base and differential: every row is as it is in the database that was changed.
    fn check_differential(&self, turn: Turn<'_>, media: &Path) -> Result<()> {
        let base = self.disks.target(0).join(format!("{BASE}.bak"));
        self.server.run(&format!("{}, NORECOVERY", self.restore(&base, 0)?))?;
        let differential = quoted_path(media)?;
        self.server.run(&format!("RESTORE DATABASE restored FROM DISK = {differential}"))?;
        let same = self.server.run(&format!(
            "SELECT COUNT_BIG(*) AS n FROM restored.dbo.CustomerOrder AS a
             INNER JOIN {CHANGED}.dbo.CustomerOrder AS b ON a.OrderID = b.OrderID AND a.Article = b.Article"
        ))?;
        let (rows, expected) = (same.table()?.number(0, "n")?, self.content.rows);
        if rows != expected as f64 {
            return Err(Error::invalid(format!(
                "{}: a differential on its base restores {rows} of {expected} rows",
                turn.side
            )));
        }
        self.check_restored(turn)
    }

    /// The history of the article's databases.
    fn forget(&self) -> Result<()> {
        for disk in ARTICLE_DISKS {
            let name = quoted(&format!("aw{disk}"));
            self.server.run(&format!("EXEC msdb.dbo.sp_delete_database_backuphistory {name}"))?;
        }
        Ok(())
    }

    /// The article's query over all rounds: a row for each cell and choice, told of the last round.
    fn ask(
        &self,
        notes: &mut Notes,
        cells: &[Cell],
        choices: &[&'static str],
        rounds: usize,
    ) -> Result<()> {
        let answer = self.server.run(DURATIONS)?;
        let table = answer.table()?;
        let full = || cells.iter().filter(|cell| matches!(cell.kind, Kind::Full(..)));
        if table.rows.len() != full().count() * choices.len() {
            return Err(Error::invalid(format!(
                "article 0's query gives {} rows of {}",
                table.rows.len(),
                full().count() * choices.len()
            )));
        }
        for cell in full() {
            for (place, side) in choices.iter().enumerate() {
                let row = row_of(table, &self.statement(side, cell)?.name)?;
                let number = |column| table.number(row, column);
                let average = number("avg_duration")?;
                // The same from the runs, one by one.
                let found = mean(&notes.values(&cell.name, side, "msdb_whole_s"));
                if !found.is_some_and(|found| (found - average).abs() < ROUNDED_S) {
                    return Err(Error::invalid(format!(
                        "{}, {side}: msdb's runs have a mean of {found:?} s, the article's query {average} s",
                        cell.name
                    )));
                }
                let numbers = [
                    ("article_natural_size_mb", number("natural_size")?),
                    ("article_compressed_size_mb", number("compressed_size")?),
                    ("article_min_duration_s", number("min_duration")?),
                    ("article_max_duration_s", number("max_duration")?),
                    ("article_avg_duration_s", average),
                ];
                notes.write(Turn { cell: &cell.name, round: rounds, place, side }, numbers)?;
            }
        }
        Ok(())
    }
}

fn row_of(table: &Table, name: &str) -> Result<usize> {
    let is_it = |row: &usize| table.text(*row, "name").is_ok_and(|found| found == name);
    let found = (0..table.rows.len()).find(is_it);
    found.ok_or_else(|| Error::invalid(format!("article 0's query does not know `{name}`")))
}

/// The statements that the generator has written, by the names of their backups.
fn statements(script: &str) -> Result<Vec<Statement>> {
    const START: &str = "\nBACKUP DATABASE ";
    let name = |text: &str| {
        let (_, rest) = text.split_once("NAME = '")?;
        Some(rest.split_once('\'')?.0.to_string())
    };
    let statements: Vec<_> = script
        .split(START)
        .skip(1)
        .map(|rest| format!("{}{rest}", START.trim_start()))
        .filter_map(|text| Some(Statement { name: name(&text)?, text }))
        .collect();
    match statements.len() {
        STATEMENTS => Ok(statements),
        other => {
            Err(Error::invalid(format!("article 0's generator gives {other} of {STATEMENTS}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = include_str!("../../../crates/pellucid-sql/tests/articles/0-backups.sql");

    #[test]
    fn the_statements_are_those_that_the_article_prints() {
        let statements = statements(&format!("\n{PRINTED}")).unwrap();
        assert_eq!(statements[0].name, "test01-NO_ENCRYPTION-HDD-to-HDD-COMPRESSION");
        assert!(statements[0].text.starts_with("BACKUP DATABASE awHDD TO DISK = 'D:"));
        assert!(statements[2].text.trim_end().ends_with(';'), "{}", statements[2].text);
        assert!(super::statements("\nBACKUP DATABASE a NAME = 'x'").is_err());
    }

    #[test]
    fn the_scenario_is_the_articles() {
        let scenario: Scenario = toml::from_str(SCENARIO).unwrap();
        assert_eq!((scenario.rounds, scenario.database_kib), (10, 1_553_408));
        assert_eq!(scenario.choices, CHOICES);
        let named = |name: &str| Named { name: name.into(), dir: "/".into() };
        let both = [named("HDD"), named("SSD")];
        let compressions = compressions(&scenario.compression).unwrap();
        let cells = cells(&scenario, &compressions, &both, &both);
        let full = cells.iter().filter(|cell| matches!(cell.kind, Kind::Full(..))).count();
        assert_eq!(full * CHOICES.len(), STATEMENTS);
        assert_eq!(cells[1].name, "COMPRESSION, HDD to SSD");
        assert_eq!(cells[1].restore.as_deref(), Some("restore, COMPRESSION, SSD to HDD"));
        assert_eq!(cells[9].name, "differential, NO_COMPRESSION, HDD to HDD");
    }
}

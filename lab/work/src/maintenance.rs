//! What maintenance costs on a sealed database: article 2's statements on a database in the shape of WideWorldImporters,
//! and what it left out, SELECT and DML.
//!
//! The scripts of the article are the instrument: its keys, and each statement that it times, cut out of its script, with
//! the times that SET STATISTICS TIME prints. Both databases are restored before each round.

mod script;

use std::path::{Path, PathBuf};

use clap::Args;
use pellucid_lab_measure::blocks::plan;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{length, read_through, remove, room};
use pellucid_lab_measure::machine;
use pellucid_lab_measure::session::{Conditions, Place};
use pellucid_lab_measure::sql::{quoted_path, Answer, Server};
use pellucid_lab_report::plan::PAGE_SIZE_BYTES;
use pellucid_lab_report::record::SideDescription;
use serde::Deserialize;
use serde_json::json;

use self::script::{groups, Cell, Kind, DATABASES};
use crate::estimate::Estimate;
use crate::experiment::content::{self, Content};
use crate::experiment::medium::{processed, seconds, Timed, COMPRESSION};
use crate::experiment::notes::{Notes, Turn};
use crate::experiment::Options;
use crate::measurement::Measurement;
use crate::piece::Piece;

/// Names the command and the sessions.
const NAME: &str = "maintenance";
/// What `lab full` runs of it.
const PIECES: &[Piece] = &[Piece::experiment(NAME)];
const SCENARIO: &str = include_str!("../../scenarios/maintenance.toml");
/// Word for word; crates/pellucid-cli/tests/cli/sql_articles.rs runs them, too.
const KEYS: &str = include_str!("../../../crates/pellucid-sql/tests/articles/2-keys.sql");

const SIDES: [&str; 2] = ["plain", "sealed"];
/// In the article's script of keys, and in the words of the view.
const ALGORITHM: &str = "AES_128";
const IN_VIEW: (&str, f64) = ("AES", 128.0);
/// The article's drive of backups.
const DRIVE: char = 'D';
/// At once: both databases, what a restore and a sealing write beside them, the media that both are restored from, one
/// more, and a log.
const FILES: u64 = 6;

const TABLES: &str = "
CREATE DATABASE WideWorldImporters
GO
USE WideWorldImporters
CREATE TABLE Warehouse.StockItemTransactions(StockItemTransactionID INT NOT NULL CONSTRAINT
  PK_Warehouse_StockItemTransactions PRIMARY KEY NONCLUSTERED, StockItemID INT NOT NULL, TransactionTypeID INT NOT NULL,
  CustomerID INT, InvoiceID INT, SupplierID INT, PurchaseOrderID INT, TransactionOccurredWhen DATETIME2(7) NOT NULL,
  Quantity DECIMAL(18,3) NOT NULL, LastEditedBy INT NOT NULL, LastEditedWhen DATETIME2(7) NOT NULL)
CREATE TABLE Sales.OrderLines(OrderLineID INT NOT NULL CONSTRAINT PK_Sales_OrderLines PRIMARY KEY, OrderID INT NOT NULL,
  StockItemID INT NOT NULL, Description NVARCHAR(100) NOT NULL, Quantity INT NOT NULL, UnitPrice DECIMAL(18,2),
  PickedQuantity INT NOT NULL, PickingCompletedWhen DATETIME2(7), LastEditedBy INT NOT NULL,
  LastEditedWhen DATETIME2(7) NOT NULL)
CREATE TABLE Warehouse.StockItems(StockItemID INT NOT NULL CONSTRAINT PK_Warehouse_StockItems PRIMARY KEY,
  StockItemName NVARCHAR(100) NOT NULL, UnitPrice DECIMAL(18,2) NOT NULL,
  CONSTRAINT UQ_Warehouse_StockItems_StockItemName UNIQUE (StockItemName))
CREATE TABLE Application.People(PersonID INT NOT NULL, FullName NVARCHAR(50) NOT NULL, EmailAddress NVARCHAR(256),
  CONSTRAINT PK_Application_People PRIMARY KEY CLUSTERED (PersonID))
CREATE TABLE Purchasing.PurchaseOrderLines(PurchaseOrderLineID INT NOT NULL CONSTRAINT
  PK_Purchasing_PurchaseOrderLines PRIMARY KEY, PurchaseOrderID INT NOT NULL, StockItemID INT NOT NULL,
  OrderedOuters INT NOT NULL, Description NVARCHAR(100) NOT NULL, LastEditedWhen DATETIME2(7) NOT NULL)
";
const INDEXES: &str = "
USE WideWorldImporters
CREATE CLUSTERED COLUMNSTORE INDEX CCX_Warehouse_StockItemTransactions ON Warehouse.StockItemTransactions
CREATE INDEX IX_Sales_OrderLines_Perf_20160301_01 ON Sales.OrderLines(PickingCompletedWhen, OrderID, OrderLineID)
  INCLUDE (Quantity, StockItemID)
CREATE INDEX FK_Purchasing_PurchaseOrderLines_StockItemID ON Purchasing.PurchaseOrderLines(StockItemID)
";
const SEALED: &str = "
WHILE EXISTS (SELECT 1 FROM sys.dm_database_encryption_keys WHERE encryption_state <> 3) WAITFOR DELAY '00:00:00.05'
SELECT DB_NAME(database_id) AS name, encryption_state, key_algorithm, key_length FROM sys.dm_database_encryption_keys";

/// Parameters, as lab/scenarios/maintenance.toml has them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    rounds: usize,
    database_kib: u64,
    select: bool,
    dml: bool,
    range_percent: f64,
}

/// Article 2: CHECKDB, backup, restore, index rebuilds, statistics, and SELECT and DML, plain against sealed.
///
/// Example: lab maintenance --scale 0.1
#[derive(Debug, Clone, Args)]
pub struct Maintenance {
    #[command(flatten)]
    options: Options,
}

impl Measurement for Maintenance {
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
        match scenario.range_percent > 0.0 && scenario.range_percent <= 50.0 {
            true => Ok(()),
            false => Err(Error::invalid("range_percent: not above 0 and up to 50")),
        }
    }

    fn estimate(&self) -> Result<Estimate> {
        let options = &self.options;
        /// Of one side in one round, as a rate over the whole database: all that the article times, and what it left out.
        const ARTICLE_MB_PER_S: f64 = 24.0;
        const SELECT_MB_PER_S: f64 = 400.0;
        const DML_MB_PER_S: f64 = 150.0;
        /// Of each statement: its process, and waiting for a quiet machine.
        const EACH_S: f64 = 0.3;
        const STATEMENTS: f64 = 19.0;
        let scenario: Scenario = options.scenario(SCENARIO)?;
        let (rounds, bytes) =
            (options.rounds(scenario.rounds), options.bytes(scenario.database_kib));
        let mb = bytes as f64 / 1e6;
        let mut side = mb / ARTICLE_MB_PER_S + STATEMENTS * EACH_S;
        side += seconds::restore(ALGORITHM, COMPRESSION, bytes) + 16.0 * mb / 2500.0;
        side += if scenario.select { mb / SELECT_MB_PER_S } else { 0.0 };
        side += if scenario.dml { mb / DML_MB_PER_S } else { 0.0 };
        let prepared = seconds::made(bytes) + 6.0 * seconds::copied(bytes) + 10.0;
        Ok(Estimate { seconds: prepared + (rounds + 1) as f64 * 2.0 * side, bytes: FILES * bytes })
    }

    fn run(&self) -> Result<bool> {
        let options = &self.options;
        let scenario: Scenario = options.scenario(SCENARIO)?;
        let (rounds, bytes) =
            (options.rounds(scenario.rounds), options.bytes(scenario.database_kib));
        let estimate = self.estimate()?;
        let program = options.program()?;
        let mut place = Place::open(NAME, &options.common(rounds))?;
        room(place.path(), estimate.bytes)?;
        let world = World::prepare(&program, place.path(), bytes, options.seed)?;
        let lines = world.content.rows;
        let range = (lines as f64 * scenario.range_percent / 100.0).ceil() as u64;
        let groups = groups(lines, range, scenario.select, scenario.dml)?;
        let cells: usize = groups.iter().map(Vec::len).sum();
        let parameters = [
            ("scale", json!(options.scale)),
            ("estimate_s", json!(estimate.seconds.round())),
            ("article", json!(2)),
            ("database_kib", json!(length(&world.databases[0])? / 1024)),
            ("article_database_kib", json!(scenario.database_kib)),
            ("algorithm", json!(ALGORITHM)),
            ("order_lines", json!(lines)),
            ("range_rows", json!(range)),
            ("range_percent", json!(scenario.range_percent)),
            ("select", json!(scenario.select)),
            ("dml", json!(scenario.dml)),
            ("compression", json!(COMPRESSION)),
            ("databases", json!("restored before each round")),
            (
                "times",
                json!(
                "elapsed_s and cpu_s by SET STATISTICS TIME, wall_s and process_cpu_s from outside"
            ),
            ),
            ("cache", json!("warm")),
        ];
        let conditions = Conditions {
            sides: world.describe(&program)?,
            warm_up_rounds: 1,
            size: Some(bytes >> 20),
            parameters: parameters.map(|(name, value)| (name.into(), value)).into(),
            ..Conditions::default()
        };
        let session = place.begin(conditions, cells)?;
        let mut notes = Notes::new(place, session.session);
        let mut of_round = None;
        // A run is one group of cells on one side: what it does is done one behind the other.
        for run in plan(groups.len(), SIDES.len(), rounds, options.seed) {
            if of_round != Some(run.round) {
                of_round = Some(run.round);
                world.restore()?;
            }
            read_through(&world.databases[run.side])?;
            for cell in &groups[run.group] {
                let side = SIDES[run.side];
                notes.place.step(&format!("round {}: {}, {side}", run.round, cell.name));
                let turn = Turn { cell: &cell.name, round: run.round, place: run.place, side };
                world.run(&mut notes, turn, cell, run.side)?;
            }
        }
        world.count()?;
        notes.finish()?;
        Ok(true)
    }
}

/// The two databases, in an instance of their own.
#[derive(Debug)]
struct World {
    server: Server,
    /// Files: plain, sealed.
    databases: [PathBuf; 2],
    /// Media that both are restored from before each round.
    bases: [PathBuf; 2],
    content: Content,
}

impl World {
    /// Makes one, and of its backup the other, which is then sealed as the article does it.
    fn prepare(program: &Path, dir: &Path, bytes: u64, seed: u64) -> Result<Self> {
        let drive = dir.join(DRIVE.to_string());
        std::fs::create_dir_all(&drive).map_err(Error::io(drive.display().to_string()))?;
        let server = Server::new(program, dir.join("instance"))?.with_drives(&[(DRIVE, &drive)]);
        server.run(TABLES)?;
        let databases = DATABASES.map(|name| server.home().join(format!("data/{name}.db")));
        let bases = SIDES.map(|side| dir.join(format!("base-{side}.bak")));
        let content = content::fill_world(&databases[0], bytes, seed, dir)?;
        server.run(INDEXES)?;
        let world = Self { server, databases, bases, content };
        world.back_up(0)?;
        let log = world.databases[1].with_extension("ldf");
        world.server.run(&format!(
            "RESTORE DATABASE {} FROM DISK = {} WITH MOVE '{}' TO {}, MOVE '{}_log' TO {}",
            DATABASES[1],
            quoted_path(&world.bases[0])?,
            DATABASES[0],
            quoted_path(&world.databases[1])?,
            DATABASES[0],
            quoted_path(&log)?
        ))?;
        world.server.run(KEYS)?;
        let answer = world.server.run(SEALED)?;
        let table = answer.table()?;
        let found = (
            table.text(0, "name")?,
            table.number(0, "encryption_state")?,
            (table.text(0, "key_algorithm")?, table.number(0, "key_length")?),
        );
        if table.rows.len() != 1 || found != (DATABASES[1], 3.0, IN_VIEW) {
            return Err(Error::invalid(format!("the sealed database is {found:?}")));
        }
        world.back_up(1)?;
        for (side, path) in world.databases.iter().enumerate() {
            if content::is_readable(path)? != (side == 0) {
                let name = path.display();
                return Err(Error::invalid(format!("`{name}`: a row's text is seen, or missing")));
            }
        }
        world.count()?;
        Ok(world)
    }

    fn back_up(&self, side: usize) -> Result<()> {
        let (name, base) = (DATABASES[side], quoted_path(&self.bases[side])?);
        self.server
            .run(&format!("BACKUP DATABASE {name} TO DISK = {base} WITH INIT, COMPRESSION"))
            .map(drop)
    }

    /// Both databases as they were.
    fn restore(&self) -> Result<()> {
        for (name, base) in DATABASES.iter().zip(&self.bases) {
            let base = quoted_path(base)?;
            self.server.run(&format!("RESTORE DATABASE {name} FROM DISK = {base} WITH REPLACE"))?;
        }
        self.count()
    }

    /// Makes sure that both have their rows, and that one of them is encrypted.
    fn count(&self) -> Result<()> {
        for (side, name) in DATABASES.iter().enumerate() {
            let counted = self.server.run(&format!(
                "SELECT CONVERT(INT, is_encrypted) AS is_encrypted FROM sys.databases WHERE name = '{name}'
                 SELECT COUNT_BIG(*) AS n FROM {name}.Sales.OrderLines"
            ))?;
            let encrypted = counted.tables.first().map(|table| table.number(0, "is_encrypted"));
            let found = (counted.table()?.number(0, "n")?, encrypted.transpose()?.unwrap_or(-1.0));
            if found != (self.content.rows as f64, side as f64) {
                return Err(Error::invalid(format!("{name}: rows and encryption are {found:?}")));
            }
        }
        Ok(())
    }

    fn describe(&self, program: &Path) -> Result<Vec<SideDescription>> {
        let hash = machine::sha256(program)?;
        let mut sides = Vec::new();
        for (side, path) in SIDES.iter().zip(&self.databases) {
            let is_plain = *side == SIDES[0];
            sides.push(SideDescription {
                side: side.to_string(),
                kind: side.to_string(),
                algorithm: (!is_plain).then(|| ALGORITHM.into()),
                extension: Some("pellucid".into()),
                extension_sha256: Some(hash.clone()),
                library: None,
                change: None,
                engine: Some(self.content.engine.clone()),
                file_bytes: Some(length(path)?),
                page_size_bytes: Some(PAGE_SIZE_BYTES),
            });
        }
        Ok(sides)
    }

    /// One statement, timed.
    fn run(&self, notes: &mut Notes, turn: Turn<'_>, cell: &Cell, side: usize) -> Result<()> {
        let medium =
            self.server.home().with_file_name(DRIVE.to_string()).join(script::medium(side));
        if cell.kind == Kind::Backup {
            // The article appends; each of its backups is the first here.
            remove(&medium)?;
        }
        let timed = Timed::run(&self.server, &script::timed(&cell.statements[side]))?;
        let answer = &timed.answer;
        let (cpu_s, elapsed_s) = statistics(answer)?;
        let numbers = [
            ("elapsed_s", elapsed_s),
            ("cpu_s", cpu_s),
            ("wall_s", answer.wall_s),
            ("others_percent_cpu", timed.shares.0 * 100.0),
            ("stolen_percent_cpu", timed.shares.1 * 100.0),
            ("dirty_kib", timed.dirty_kib as f64),
        ];
        notes.write(turn, numbers)?;
        notes.write(turn, answer.cpu_s.map(|seconds| ("process_cpu_s", seconds)))?;
        match cell.kind {
            Kind::Other => Ok(()),
            Kind::Backup | Kind::Restore => {
                let (pages, said_s) = processed(answer)?;
                let numbers = [
                    ("processed_pages", pages),
                    ("said_s", said_s),
                    ("said_mb_per_s", speed(answer)?),
                    ("media_bytes", length(&medium)? as f64),
                ];
                notes.write(turn, numbers)?;
                if cell.kind == Kind::Backup && turn.round == 0 && side == 1 {
                    return match content::is_readable(&medium)? {
                        false => Ok(()),
                        true => Err(Error::invalid("a sealed backup shows a row's text")),
                    };
                }
                // Nobody needs it after the restore.
                if cell.kind == Kind::Restore {
                    remove(&medium)?;
                    self.count()
                } else {
                    Ok(())
                }
            }
            Kind::Rows(expected) => {
                let rows = match answer.tables.last() {
                    Some(table) => table.number(0, "n")?,
                    None => answer.changed.iter().sum::<u64>() as f64,
                };
                if rows != expected as f64 {
                    let name = &cell.name;
                    return Err(Error::invalid(format!("{name}: {rows} rows of {expected}")));
                }
                notes.write(turn, [("done_rows", rows)])
            }
        }
    }
}

/// Seconds of processor and seconds elapsed, as SET STATISTICS TIME prints them of the last statement.
fn statistics(answer: &Answer) -> Result<(f64, f64)> {
    let told = answer.messages.iter().rfind(|message| message.text.contains("Execution Times"));
    let text = told.map(|message| message.text.as_str()).unwrap_or_default();
    let number = |before: &str| {
        let (_, rest) = text.split_once(before)?;
        rest.split_once(" ms")?.0.trim().parse::<f64>().ok()
    };
    let found = number("CPU time = ").zip(number("elapsed time = "));
    found
        .map(|(cpu_ms, elapsed_ms)| (cpu_ms / 1000.0, elapsed_ms / 1000.0))
        .ok_or_else(|| Error::invalid(format!("SET STATISTICS TIME says `{text}`")))
}

/// In the words of the message that a backup or a restore ends with.
fn speed(answer: &Answer) -> Result<f64> {
    let told = answer.messages.iter().rfind(|message| message.text.contains(" MB/sec)"));
    let text = told.map(|message| message.text.as_str()).unwrap_or_default();
    let number = || {
        let (before, _) = text.split_once(" MB/sec)")?;
        before.rsplit_once('(')?.1.parse().ok()
    };
    number().ok_or_else(|| Error::invalid(format!("not told how fast it was: `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pellucid_lab_measure::sql::Message;

    #[test]
    fn times_and_speeds_are_those_that_are_printed() {
        let message = |text: &str| Message { number: 0, severity: 0, text: text.into() };
        let times = "\n SQL Server Execution Times:\n   CPU time = 24 ms,  elapsed time = 1840 ms.";
        let said =
            "BACKUP DATABASE successfully processed 16 pages in 0.139 seconds (0.449 MB/sec).";
        let messages = vec![message(&times.replace("24", "0")), message(said), message(times)];
        let mut answer =
            Answer { tables: Vec::new(), messages, changed: Vec::new(), wall_s: 2.0, cpu_s: None };
        assert_eq!(statistics(&answer).unwrap(), (0.024, 1.84));
        assert_eq!(speed(&answer).unwrap(), 0.449);
        answer.messages.clear();
        assert!(statistics(&answer).is_err() && speed(&answer).is_err());
    }

    #[test]
    fn the_scenario_is_the_articles() {
        let scenario: Scenario = toml::from_str(SCENARIO).unwrap();
        assert_eq!((scenario.rounds, scenario.database_kib), (10, 3_355_443));
        assert!(KEYS.contains(&format!("ALGORITHM = {ALGORITHM} ")) && KEYS.contains(DATABASES[1]));
    }
}

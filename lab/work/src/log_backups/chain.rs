//! A chain of log backups, kept with each choice of encryption, and the restores by it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::machine::Load;
use pellucid_lab_measure::program::Program;
use pellucid_lab_measure::sql::{quoted_path, Answer, Table};
use serde_json::Value;

use super::cells::{By, Media};
use super::logged::{Logged, UNNAMED};
use crate::article_0::instance::{self, restored, ARTICLE_DISKS};
use crate::experiment::medium::Timed;
use crate::experiment::notes::{Notes, Turn};
use crate::fixture::settle;

/// The source whose database it is of.
const SOURCE: usize = 0;
/// Rows, and a sum in which each has a part; the second one of what the logs change.
const ROWS: &str = "SELECT COUNT_BIG(*) AS n, \
     SUM(CAST(CONVERT(VARBINARY(4), Article, 2) AS BIGINT) * (OrderID % 101)) AS changed \
     FROM {database}.dbo.CustomerOrder\nGO\n";
/// A sum of hashes of whole rows, of each eighth one.
const HASHED: &str = "SELECT SUM(CAST(SUBSTRING(HASHBYTES('MD5', CONCAT(OrderID, '|', Customer, '|', Article, '|', Amount, '|', \
     Note, '|', DateCreated)), 1, 4) AS BIGINT)) AS hashed FROM {database}.dbo.CustomerOrder \
     WHERE OrderID % 8 = 1\nGO\n";
/// Between a commit and a moment that is behind it for sure, and before the next one.
const PAUSE: &str = "WAITFOR DELAY '00:00:00.02'\nGO\n";

/// What a database holds.
#[derive(Debug, Clone, PartialEq)]
struct Held {
    rows: Value,
    changed: Value,
    hashed: Value,
}

impl Held {
    /// Of the answers of [`ROWS`] and [`HASHED`].
    fn read(counted: &Table, hashed: &Table) -> Result<Self> {
        let of = |table: &Table, column| table.value(0, column).cloned();
        let [rows, changed] = ["n", "changed"].map(|column| of(counted, column));
        Ok(Self { rows: rows?, changed: changed?, hashed: of(hashed, "hashed")? })
    }

    fn asked(database: &str) -> String {
        format!("{ROWS}{HASHED}").replace("{database}", database)
    }
}

/// Where the log backups of a number lead to.
#[derive(Debug)]
struct Reached {
    /// Between the two transactions of the last one, in UTC.
    moment: String,
    at_moment: Held,
    at_end: Held,
}

/// The backups of one database with several choices of encryption, and what it held.
#[derive(Debug)]
pub struct Chain {
    dir: PathBuf,
    at_full: Held,
    reached: BTreeMap<usize, Reached>,
    /// The differential has it.
    last: usize,
}

impl Chain {
    /// Makes it: a full backup with each choice of encryption, so many log backups of each, and a differential behind them. `logs` are the
    /// numbers of them that will be restored, `bytes` is about the length of each.
    pub fn make(
        logged: &Logged,
        sides: &[&'static str],
        (steps, logs): (usize, &[usize]),
        bytes: u64,
    ) -> Result<Self> {
        let dir = logged.disks.target(0).join("chain");
        std::fs::create_dir_all(&dir).map_err(Error::io(dir.display().to_string()))?;
        let database = format!("aw{}", ARTICLE_DISKS[SOURCE]);
        let ask = Held::asked(&database);
        let server = &logged.server;
        let mut full = String::new();
        for side in sides {
            let file = quoted_path(&media(&dir, side, "full"))?;
            full.push_str(&format!(
                "BACKUP DATABASE {database} TO DISK = {file} WITH INIT, COMPRESSION, {}NAME = 'full-{side}'\n",
                encryption(side)
            ));
        }
        let answer = server.run(&format!("{full}GO\n{ask}"))?;
        let at_full = Held::read(table(&answer, 0)?, table(&answer, 1)?)?;
        let mut reached = BTreeMap::new();
        for step in 1..=steps {
            let changes = logged.changes(SOURCE, (bytes, 2), 1000 + step as u64);
            let [before, after] = &changes[..] else {
                return Err(Error::invalid("a log of two transactions has others"));
            };
            let backups = backups(&dir, &database, sides, step)?;
            if !logs.contains(&step) {
                server.run(&format!("{before}{after}{backups}"))?;
                continue;
            }
            let moment = "SELECT CONVERT(VARCHAR(26), SYSUTCDATETIME(), 126) AS moment\nGO\n";
            let script = format!("{before}{PAUSE}{moment}{PAUSE}{ask}{after}{ask}{backups}");
            let answer = server.run(&script)?;
            let moment = table(&answer, 0)?.text(0, "moment")?.to_owned();
            let at_moment = Held::read(table(&answer, 1)?, table(&answer, 2)?)?;
            let at_end = Held::read(table(&answer, 3)?, table(&answer, 4)?)?;
            if at_moment == at_end {
                return Err(Error::invalid(format!("log {step} changes nothing")));
            }
            reached.insert(step, Reached { moment, at_moment, at_end });
        }
        let command = Program::bare(&logged.program, server.home(), &[]);
        for side in sides {
            differential(logged, &command, &dir, side)?;
        }
        Ok(Self { dir, at_full, reached, last: steps })
    }

    /// Restores the database of these media, notes what it took, and compares what it holds with what it held.
    pub fn restore(
        &self,
        logged: &Logged,
        notes: &mut Notes,
        turn: Turn<'_>,
        (of, to_point, by): (Media, bool, By),
    ) -> Result<()> {
        let side = turn.side;
        let mut media = vec![media(&self.dir, side, "full")];
        let reached = match of {
            Media::Full => None,
            Media::Differential => {
                media.push(self::media(&self.dir, side, "differential"));
                self.reached.get(&self.last)
            }
            Media::Logs(count) => {
                let logs = (1..=count).map(|step| self::media(&self.dir, side, &log(step)));
                media.extend(logs);
                self.reached.get(&count)
            }
        };
        let (moment, expected) = match (reached, to_point) {
            (None, _) => (None, &self.at_full),
            (Some(reached), true) => (Some(reached.moment.as_str()), &reached.at_moment),
            (Some(reached), false) => (None, &reached.at_end),
        };
        if of != Media::Full && reached.is_none() {
            return Err(Error::invalid(format!("{}: nobody knows what it held", turn.cell)));
        }
        match by {
            By::Statements => by_statements(logged, notes, turn, &media, moment)?,
            By::Command => by_command(logged, notes, turn, &media, moment)?,
        }
        check(logged, turn, expected)
    }
}

/// The options of a statement for a choice of encryption.
fn encryption(side: &str) -> String {
    match side == UNNAMED {
        true => String::new(),
        false => format!("ENCRYPTION (ALGORITHM = {side}, SERVER CERTIFICATE = TestCert), "),
    }
}

fn media(dir: &Path, side: &str, what: &str) -> PathBuf {
    dir.join(format!("{what}-{}.bak", side.replace(' ', "-")))
}

fn log(step: usize) -> String {
    format!("log-{step}")
}

/// Backs the same log up with each choice; the last one takes it.
fn backups(dir: &Path, database: &str, sides: &[&'static str], step: usize) -> Result<String> {
    let mut script = String::new();
    for (at, side) in sides.iter().enumerate() {
        let file = quoted_path(&media(dir, side, &log(step)))?;
        let copy = if at + 1 < sides.len() { "COPY_ONLY, " } else { "" };
        script.push_str(&format!(
            "BACKUP LOG {database} TO DISK = {file} WITH INIT, COMPRESSION, {copy}{}NAME = 'log-{side}'\n",
            encryption(side)
        ));
    }
    Ok(script)
}

/// A differential of each full backup: a statement would make it of the last one.
fn differential(logged: &Logged, command: &Program, dir: &Path, side: &str) -> Result<()> {
    let database = instance::database(&logged.disks, SOURCE);
    let [base, to] = ["full", "differential"].map(|what| text(&media(dir, side, what)));
    let (base, to) = (base?, to?);
    let mut words = vec!["backup", "--differential", "--compression", "zstd:1"];
    words.extend(["--base", base.as_str(), "--to", to.as_str()]);
    if side != UNNAMED {
        words.extend(["--certificate", "TestCert", "--algorithm", side]);
    }
    command.run_bare(&words, &database).map(drop)
}

fn by_statements(
    logged: &Logged,
    notes: &mut Notes,
    turn: Turn<'_>,
    media: &[PathBuf],
    moment: Option<&str>,
) -> Result<()> {
    let Some((full, more)) = media.split_first() else {
        return Err(Error::invalid("a restore without media"));
    };
    let mut script = restored(full, logged.disks.source(SOURCE))?;
    if !more.is_empty() {
        script.push_str(", NORECOVERY");
    }
    for (at, file) in more.iter().enumerate() {
        let is_log = !file.to_string_lossy().contains("differential-");
        let kind = if is_log { "LOG" } else { "DATABASE" };
        let file = quoted_path(file)?;
        let option = match (at + 1 < more.len(), moment) {
            (true, _) => "NORECOVERY".to_string(),
            (false, Some(moment)) => format!("RECOVERY, STOPAT = '{moment}'"),
            (false, None) => "RECOVERY".to_string(),
        };
        script.push_str(&format!("\nRESTORE {kind} restored FROM DISK = {file} WITH {option}"));
    }
    Timed::run(&logged.server, &script)?.write_all(notes, turn, logged.bytes)
}

fn by_command(
    logged: &Logged,
    notes: &mut Notes,
    turn: Turn<'_>,
    media: &[PathBuf],
    moment: Option<&str>,
) -> Result<()> {
    let Some((last, others)) = media.split_last() else {
        return Err(Error::invalid("a restore without media"));
    };
    let to = logged.disks.source(SOURCE).join("restored.mdf");
    let mut words = vec!["restore".to_string(), "--at".into()];
    words.push(moment.map_or("last".into(), |moment| moment.replace('T', " ")));
    words.extend(["--to".to_string(), text(&to)?]);
    for file in others {
        words.push(text(file)?);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let command = Program::bare(&logged.program, logged.server.home(), &[]);
    let dirty_kib = settle();
    let load = Load::begin();
    let said = command.run_bare(&words, last)?;
    let shares = load.end().shares(said.cpu_s);
    let fact = |name: &str| {
        said.facts[name]
            .as_f64()
            .ok_or_else(|| Error::invalid(format!("pellucid restore: no {name}: {}", said.facts)))
    };
    let numbers = [
        ("elapsed_s", said.wall_s),
        ("said_s", fact("seconds")?),
        ("processed_pages", fact("pages")?),
        ("speed_mb_per_s", logged.bytes as f64 / 1e6 / said.wall_s),
        ("others_percent_cpu", shares.0 * 100.0),
        ("stolen_percent_cpu", shares.1 * 100.0),
        ("dirty_kib", dirty_kib as f64),
    ];
    notes.write(turn, numbers)?;
    // The instance knows the database by its file's name from then on.
    notes.write(turn, said.cpu_s.map(|seconds| ("cpu_s", seconds)))
}

/// A restore is worth nothing if it is another moment's; the first of each is checked whole. The database is dropped.
fn check(logged: &Logged, turn: Turn<'_>, expected: &Held) -> Result<()> {
    let is_first = turn.round == 0;
    let ask = match is_first {
        true => Held::asked("restored"),
        false => ROWS.replace("{database}", "restored"),
    };
    let answer = logged.server.run(&ask)?;
    let counted = table(&answer, 0)?;
    let found = match is_first {
        true => Held::read(counted, table(&answer, 1)?)?,
        false => {
            let [rows, changed] = ["n", "changed"].map(|column| counted.value(0, column).cloned());
            Held { rows: rows?, changed: changed?, hashed: expected.hashed.clone() }
        }
    };
    if found != *expected {
        return Err(Error::invalid(format!(
            "{}, {}: it holds {found:?}, where the database held {expected:?}",
            turn.cell, turn.side
        )));
    }
    if is_first {
        logged.server.run("DBCC CHECKDB(restored) WITH NO_INFOMSGS")?;
    }
    logged.server.run("DROP DATABASE restored").map(drop)
}

fn table(answer: &Answer, at: usize) -> Result<&Table> {
    answer.tables.get(at).ok_or_else(|| Error::invalid(format!("pellucid sql: no result {at}")))
}

fn text(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Error::invalid(format!("`{}`: a name that is not UTF-8", path.display())))
}

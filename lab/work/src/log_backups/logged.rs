//! The databases whose logs are backed up, what is committed in them, and the log backups.

use std::path::{Path, PathBuf};

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::remove;
use pellucid_lab_measure::program::Program;
use pellucid_lab_measure::random::Random;
use pellucid_lab_measure::sql::{quoted_path, Server};

use super::cells::{Cell, Kind};
use crate::article_0::disks::Disks;
use crate::article_0::instance::{attached, tiny, Attached, ARTICLE_DISKS};
use crate::article_0::scripts::{
    ask, find, statements, Statement, DURATIONS, GENERATE, STATEMENTS,
};
use crate::experiment::content::{is_readable, Content};
use crate::experiment::medium::{self, processed, Timed, CHOICES};
use crate::experiment::notes::{Notes, Turn};

/// The side whose statement does not encrypt. An encrypted database is never backed up in clear.
pub const UNNAMED: &str = "no ENCRYPTION";
/// The algorithm of the databases, and so of that side's backups.
pub const SEALED_WITH: &str = "AES_256";
/// What the article calls its backups, and what those of the warm-up are called, which are in no figure of its query.
const NAMED: [&str; 2] = ["test", "warm"];
/// Bytes of a page.
const PAGE_BYTES: u64 = pellucid_lab_report::plan::PAGE_SIZE_BYTES as u64;

/// The article with LOG in the place of DATABASE, from beginning to end on tiny databases: 40 log backups, 40 rows of its query.
pub fn rehearse(program: &Path, dir: &Path, seed: u64) -> Result<()> {
    let dir = dir.join("rehearsal");
    let server = tiny(program, &dir, seed)?;
    seal(program, &server, &ARTICLE_DISKS, &dir)?;
    server.run(&of_logs().replace("--EXEC", "EXEC"))?;
    let rows = server.run(DURATIONS)?.table()?.rows.len();
    if rows != STATEMENTS {
        return Err(Error::invalid(format!(
            "article 0's query finds {rows} of {STATEMENTS} log backups in msdb"
        )));
    }
    std::fs::remove_dir_all(&dir).map_err(Error::io(dir.display().to_string()))
}

/// The article's generator, for log backups.
fn of_logs() -> String {
    GENERATE.replace("BACKUP DATABASE", "BACKUP LOG").replace(".bak", ".trn")
}

/// Encrypts the databases of these disks, in format version 2, and begins their chains of log backups.
fn seal(program: &Path, server: &Server, disks: &[&str], dir: &Path) -> Result<()> {
    let policy = Program::bare(program, server.home(), &[]);
    policy.run_bare(&["policy", "set", "format-version"], Path::new("2"))?;
    let media = dir.join("begins.bak");
    for disk in disks {
        server.run(&format!(
            "USE aw{disk}
             CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = {SEALED_WITH} ENCRYPTION BY SERVER CERTIFICATE TestCert
             ALTER DATABASE aw{disk} SET ENCRYPTION ON
             WHILE EXISTS (SELECT 1 FROM sys.dm_database_encryption_keys WHERE encryption_state IN (2, 5))
               WAITFOR DELAY '00:00:00.05'
             GO
             BACKUP DATABASE aw{disk} TO DISK = {} WITH INIT, COMPRESSION, NAME = 'begins'",
            quoted_path(&media)?
        ))?;
        remove(&media)?;
    }
    Ok(())
}

/// The instance that is measured, with its databases and the article's statements.
#[derive(Debug)]
pub struct Logged {
    /// Its drives are the targets.
    pub server: Server,
    pub program: PathBuf,
    pub disks: Disks,
    statements: Vec<Statement>,
    pub content: Content,
    /// Of a database.
    pub bytes: u64,
    seed: u64,
}

impl Logged {
    /// Makes the instance and its databases, encrypts them, and has the article's generator write the statements.
    pub fn prepare(
        program: &Path,
        dir: &Path,
        disks: Disks,
        bytes: u64,
        seed: u64,
    ) -> Result<Self> {
        let Attached { server, content, bytes } = attached(program, dir, &disks, bytes, seed, &[])?;
        let used = if disks.has_source(1) { 2 } else { 1 };
        seal(program, &server, &ARTICLE_DISKS[..used], disks.target(0))?;
        let answer = server.run(&of_logs())?;
        let statements = statements(answer.table()?.text(0, "")?, "BACKUP LOG")?;
        let program = program.to_path_buf();
        Ok(Self { server, program, disks, statements, content, bytes, seed })
    }

    /// Statements that write about so many `bytes` of rows anew in the database of a source, each a transaction. Of the same `number`
    /// they are always the same rows, of 0 the first ones.
    pub fn changes(&self, source: usize, (bytes, commits): (u64, u64), number: u64) -> Vec<String> {
        let all = self.content.rows;
        // The table has five eighths of a database.
        let table = (self.bytes * 5 / 8).max(1);
        let rows = (all * bytes / table).clamp(commits.min(all), all);
        let first = match number {
            0 => 0,
            _ => Random::of(&[self.seed, number]).below(all - rows + 1),
        };
        let end = |commit: u64| first + rows * commit / commits;
        let change = |commit| {
            // No index has the column, its length stays, and its content is as hard to compress either way.
            format!(
                "UPDATE aw{}.dbo.CustomerOrder SET Article = REVERSE(Article) \
                 WHERE OrderID > {} AND OrderID <= {}\nGO\n",
                ARTICLE_DISKS[source],
                end(commit),
                end(commit + 1)
            )
        };
        (0..commits).map(change).collect()
    }

    fn statement(&self, side: &str, kind: &Kind) -> Result<&Statement> {
        match kind {
            Kind::Log { source, target, compression } => {
                let choice = if side == UNNAMED { CHOICES[0] } else { side };
                find(&self.statements, choice, (*source, *target), compression)
            }
            Kind::Restore { .. } => Err(Error::invalid("article 0 has no statements that restore")),
        }
    }

    /// Commits a log of so many bytes and transactions, and runs the article's statement for it. `pages` are those that the other
    /// logs of the round had.
    pub fn back_up(
        &self,
        notes: &mut Notes,
        turn: Turn<'_>,
        kind: &Kind,
        log: (u64, u64),
        pages: &mut Option<f64>,
    ) -> Result<()> {
        let Kind::Log { source, target, .. } = *kind else {
            return Err(Error::invalid("article 0 has no statements that restore"));
        };
        let Statement { name, text } = self.statement(turn.side, kind)?;
        let called = match turn.round {
            0 => name.replace(NAMED[0], NAMED[1]),
            _ => name.clone(),
        };
        let text = text.replace(name, &called);
        let media = self.disks.target(target).join(format!("backup/{called}.trn"));
        self.server.run(&self.changes(source, log, turn.round as u64).concat())?;
        let timed = Timed::run(&self.server, &text)?;
        let (found, _) = processed(&timed.answer)?;
        if found == 0.0 || pages.is_some_and(|pages| pages != found) {
            return Err(Error::invalid(format!(
                "{}, {}: a log of {found} pages, where others of the round have {pages:?}",
                turn.cell, turn.side
            )));
        }
        *pages = Some(found);
        timed.write(notes, turn, found as u64 * PAGE_BYTES)?;
        let wanted = if turn.side == UNNAMED { SEALED_WITH } else { turn.side };
        medium::remember_sealed(&self.server, notes, turn, &called, &media, Some(wanted))?;
        if turn.round == 0 {
            let file = quoted_path(&media)?;
            self.server.run(&format!("RESTORE VERIFYONLY FROM DISK = {file}"))?;
            // Every one is sealed, whatever its statement said.
            if is_readable(&media)? {
                return Err(Error::invalid(format!("{} log backup: a row's text seen", turn.side)));
            }
        }
        remove(&media)
    }

    /// The article's query over all rounds: a row for each cell and choice, told of the last round.
    pub fn ask(
        &self,
        notes: &mut Notes,
        cells: &[Cell],
        sides: &[&'static str],
        rounds: usize,
    ) -> Result<()> {
        let mut asked = Vec::new();
        for cell in cells.iter().filter(|cell| matches!(cell.kind, Kind::Log { .. })) {
            for (place, side) in sides.iter().enumerate() {
                let turn = Turn { cell: &cell.name, round: rounds, place, side };
                asked.push((turn, self.statement(side, &cell.kind)?.name.as_str()));
            }
        }
        ask(&self.server, notes, &asked)
    }
}

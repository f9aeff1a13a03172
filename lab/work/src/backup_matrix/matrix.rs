//! The databases of the matrix, and what is done with them.

use std::path::{Path, PathBuf};

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::read_through;
use pellucid_lab_measure::sql::{quoted, quoted_path, Server};

use super::{Cell, Kind};
use crate::article_0::disks::Disks;
use crate::article_0::instance::{attached, database, restored, tiny, Attached, ARTICLE_DISKS};
use crate::article_0::scripts::{
    ask, find, statements, Statement, DURATIONS, GENERATE, STATEMENTS,
};
use crate::experiment::content::Content;
use crate::experiment::medium::{self, Timed, CHOICES, COMPRESSION};
use crate::experiment::notes::{Notes, Turn};

/// The databases that are changed and backed up differentially, and their full backups: one without encryption and one with
/// it, since the two kinds are not mixed in a chain.
const CHANGED: [&str; 2] = ["awChanged", "awChangedSealed"];
const BASE: [&str; 2] = ["base", "baseSealed"];
/// Of the sealed one's full backup.
const BASE_ENCRYPTION: [&str; 2] =
    ["", "ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = TestCert), "];

/// The article from beginning to end on a tiny database: 40 backups, 40 rows of its query.
pub fn rehearse(program: &Path, dir: &Path, seed: u64) -> Result<()> {
    let dir = dir.join("rehearsal");
    let server = tiny(program, &dir, seed)?;
    server.run(&GENERATE.replace("--EXEC", "EXEC"))?;
    let rows = server.run(DURATIONS)?.table()?.rows.len();
    if rows != STATEMENTS {
        return Err(Error::invalid(format!(
            "article 0's query finds {rows} of its {STATEMENTS} backups in msdb"
        )));
    }
    std::fs::remove_dir_all(&dir).map_err(Error::io(dir.display().to_string()))
}

/// The instance that is measured, with its databases and the article's statements.
#[derive(Debug)]
pub struct Matrix {
    /// Its drives are the targets.
    server: Server,
    pub disks: Disks,
    statements: Vec<Statement>,
    pub content: Content,
    /// Of the database.
    pub bytes: u64,
}

impl Matrix {
    /// Makes the instance and its databases, and has the article's generator write the statements.
    pub fn prepare(
        program: &Path,
        dir: &Path,
        disks: Disks,
        bytes: u64,
        seed: u64,
    ) -> Result<Self> {
        let Attached { server, content, bytes } =
            attached(program, dir, &disks, bytes, seed, &CHANGED)?;
        let answer = server.run(GENERATE)?;
        let statements = statements(answer.table()?.text(0, "")?, "BACKUP DATABASE")?;
        Ok(Self { server, disks, statements, content, bytes })
    }

    fn changed(&self, name: &str) -> PathBuf {
        self.disks.source(0).join(format!("{name}.mdf"))
    }

    fn statement(&self, choice: &str, cell: &Cell) -> Result<&Statement> {
        let Kind::Full(source, target) = cell.kind else {
            return Err(Error::invalid("the article has no differentials"));
        };
        find(&self.statements, choice, (source, target), cell.compression)
    }

    /// A statement of the article, and the restore of what it made.
    pub fn full(
        &self,
        notes: &mut Notes,
        turn: Turn<'_>,
        cell: &Cell,
        source: usize,
        target: usize,
    ) -> Result<()> {
        let Statement { name, text } = self.statement(turn.side, cell)?;
        let media = self.disks.target(target).join(format!("backup/{name}.bak"));
        read_through(&database(&self.disks, source))?;
        Timed::run(&self.server, text)?.write(notes, turn, self.bytes)?;
        medium::remember(&self.server, notes, turn, name, &media)?;
        if let Some(restore) = &cell.restore {
            let turn = Turn { cell: restore, ..turn };
            let timed = Timed::run(&self.server, &restored(&media, self.disks.source(source))?)?;
            timed.write(notes, turn, self.bytes)?;
            self.check_restored(turn)?;
        }
        medium::discard(turn, cell.compression == COMPRESSION, &media)
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

    /// The databases that are changed: a full backup, and then `share` of their rows written anew.
    pub fn change(&self, share: f64) -> Result<()> {
        // No index has the column, and its length stays.
        let last = (self.content.rows as f64 * share).ceil();
        for ((name, base), encryption) in CHANGED.iter().zip(BASE).zip(BASE_ENCRYPTION) {
            let file = quoted_path(&self.changed(name))?;
            self.server
                .run(&format!("CREATE DATABASE {name} ON (FILENAME = {file}) FOR ATTACH"))?;
            let media = quoted_path(&self.disks.target(0).join(format!("{base}.bak")))?;
            self.server.run(&format!(
                "BACKUP DATABASE {name} TO DISK = {media} WITH INIT, COMPRESSION, {encryption}NAME = '{base}'"
            ))?;
            self.server.run(&format!(
                "UPDATE {name}.dbo.CustomerOrder SET Article = REVERSE(Article) WHERE OrderID <= {last}
                 USE {name}
                 CHECKPOINT"
            ))?;
        }
        Ok(())
    }

    /// Runs one differential backup, and notes what it took.
    pub fn differential(&self, notes: &mut Notes, turn: Turn<'_>, cell: &Cell) -> Result<()> {
        let media = self.disks.target(0).join("differential.bak");
        let changed = CHANGED[usize::from(turn.side != CHOICES[0])];
        let name = format!("differential-{}-{}", turn.side, cell.compression);
        let encryption = match turn.side == CHOICES[0] {
            true => String::new(),
            false => {
                format!("ENCRYPTION (ALGORITHM = {}, SERVER CERTIFICATE = TestCert), ", turn.side)
            }
        };
        let statement = format!(
            "BACKUP DATABASE {changed} TO DISK = {} WITH DIFFERENTIAL, INIT, {}, {encryption}NAME = '{name}'",
            quoted_path(&media)?,
            cell.compression
        );
        read_through(&self.changed(changed))?;
        Timed::run(&self.server, &statement)?.write(notes, turn, self.bytes)?;
        medium::remember(&self.server, notes, turn, &name, &media)?;
        if turn.round == 0 {
            self.check_differential(turn, &media)?;
        }
        medium::discard(turn, cell.compression == COMPRESSION, &media)
    }

    /// Restores base and differential: every row is as it is in the database that was changed.
    fn check_differential(&self, turn: Turn<'_>, media: &Path) -> Result<()> {
        let of = usize::from(turn.side != CHOICES[0]);
        let (changed, base) = (CHANGED[of], BASE[of]);
        let base = self.disks.target(0).join(format!("{base}.bak"));
        self.server.run(&format!("{}, NORECOVERY", restored(&base, self.disks.source(0))?))?;
        let differential = quoted_path(media)?;
        self.server.run(&format!("RESTORE DATABASE restored FROM DISK = {differential}"))?;
        let same = self.server.run(&format!(
            "SELECT COUNT_BIG(*) AS n FROM restored.dbo.CustomerOrder AS a
             INNER JOIN {changed}.dbo.CustomerOrder AS b ON a.OrderID = b.OrderID AND a.Article = b.Article"
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
    pub fn forget(&self) -> Result<()> {
        for disk in ARTICLE_DISKS {
            let name = quoted(&format!("aw{disk}"));
            self.server.run(&format!("EXEC msdb.dbo.sp_delete_database_backuphistory {name}"))?;
        }
        Ok(())
    }

    /// The article's query over all rounds: a row for each cell and choice, told of the last round.
    pub fn ask(
        &self,
        notes: &mut Notes,
        cells: &[Cell],
        choices: &[&'static str],
        rounds: usize,
    ) -> Result<()> {
        let mut asked = Vec::new();
        for cell in cells.iter().filter(|cell| matches!(cell.kind, Kind::Full(..))) {
            for (place, side) in choices.iter().enumerate() {
                let turn = Turn { cell: &cell.name, round: rounds, place, side };
                asked.push((turn, self.statement(side, cell)?.name.as_str()));
            }
        }
        ask(&self.server, notes, &asked)
    }
}

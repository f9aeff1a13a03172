//! The databases of the matrix, and what is done with them.

use std::path::{Path, PathBuf};

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{copy_whole, length, read_through};
use pellucid_lab_measure::sql::{quoted, quoted_path, Server};
use pellucid_lab_report::statistics::mean;

use super::disks::Disks;
use super::scripts::{
    row_of, statements, Statement, ATTACH, BACKUP_KEYS, DURATIONS, GENERATE, KEYS, STATEMENTS,
};
use super::{Cell, Kind};
use crate::experiment::content::{self, Content};
use crate::experiment::medium::{self, Timed, CHOICES, COMPRESSION};
use crate::experiment::notes::{Notes, Turn};

/// What the scripts call the two disks, as sources and as targets, and the drives of both.
const ARTICLE_DISKS: [&str; 2] = ["HDD", "SSD"];
const DRIVES: [char; 2] = ['D', 'E'];
/// Of the database of the rehearsal.
const TINY_BYTES: u64 = 256 << 10;
/// Logical names of the files, which the scripts name.
const FILES: [&str; 2] = ["AdventureWorks2012_Data", "AdventureWorks2012_Log"];
/// The databases that are changed and backed up differentially, and their full backups: one without encryption and one with
/// it, since the two kinds are not mixed in a chain.
const CHANGED: [&str; 2] = ["awChanged", "awChangedSealed"];
const BASE: [&str; 2] = ["base", "baseSealed"];
/// Of the sealed one's full backup.
const BASE_ENCRYPTION: [&str; 2] =
    ["", "ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = TestCert), "];
/// The one of the last decimal in which the article's query rounds a mean.
const ROUNDED_S: f64 = 1e-5;

/// The article from beginning to end on a tiny database: 40 backups, 40 rows of its query.
pub fn rehearse(program: &Path, dir: &Path, seed: u64) -> Result<()> {
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
        let server = instance(program, dir)?;
        let (made, content) = make(&server, dir, "made", bytes, seed)?;
        let bytes = length(&made)?;
        for name in CHANGED {
            copy_whole(&made, &disks.source(0).join(format!("{name}.mdf")))?;
        }
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

    fn changed(&self, name: &str) -> PathBuf {
        self.disks.source(0).join(format!("{name}.mdf"))
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
        self.server.run(&format!("{}, NORECOVERY", self.restore(&base, 0)?))?;
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

//! Runs the steps of a scenario on a database, tells the record what was committed, and keeps the model.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::protector::KeyFile;
use pellucid::Algorithm;
use pellucid_engine::convert;
use pellucid_engine::protectors;
use pellucid_engine::scan;
use pellucid_engine::scan::Target;
use pellucid_engine::version::{change, Refused, Unchanged};
use pellucid_host::{DatabaseError, Options};
use pellucid_vfs::seal_request::{Birth, Protection};
use rusqlite::{Connection, OpenFlags};

use crate::chained::Chained;
use crate::rows;
use crate::scans;
use crate::scenario::{changed, Level, Mode, Over, Scenario, State, Step, Theme};
use crate::trace::Event;
use crate::watch::tell;

/// The key of every sealed database here; the environment names it too.
pub const KEY: [u8; 32] = [7; 32];
const OTHER_KEY: [u8; 32] = [8; 32];

/// What a step may say.
#[derive(Debug)]
pub enum Failed {
    Sqlite(rusqlite::Error),
    Convert(DatabaseError),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Failed {
    /// SQLite's primary result code; none for an error of the shim's own.
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Sqlite(rusqlite::Error::SqliteFailure(error, _)) => {
                Some(error.extended_code & 0xff)
            }
            Self::Convert(DatabaseError::Sqlite { code, .. }) => Some(code & 0xff),
            _ => None,
        }
    }
}

/// A database being worked on.
pub struct Work {
    pub scenario: Scenario,
    directory: PathBuf,
    connection: Option<Connection>,
    mode: Mode,
    page_bytes: usize,
    sealed: bool,
    /// What the database may hold: one state, or two while it is not known whether a commit that failed
    /// is in.
    pub candidates: Vec<State>,
    /// Every state it ever may have held.
    pub history: Vec<State>,
    /// Commits begun so far; the number of the last one.
    pub begun: usize,
    /// What log backups have.
    pub chained: Chained,
}

/// Whether nothing is there but, at most, an interrupted birth, which asks for its key by name.
fn is_unborn(path: &Path) -> bool {
    std::fs::read(path).map_or(true, |file| file.iter().take(16).all(|byte| *byte == 0))
}

/// Opens a database for work or for a check.
pub fn open(scenario: &Scenario, path: &Path, sealed: bool) -> rusqlite::Result<Connection> {
    let converts = matches!(scenario.theme, Theme::Encrypt | Theme::Decrypt);
    let vfs = match sealed || converts {
        true => "pellucid",
        false => "unix",
    };
    // In a conversion either kind may be there, and naming a key would insist on one. A plain one is
    // plain whatever other tests of this process have open.
    let key = match sealed && (!converts || is_unborn(path)) {
        true => format!("&key_file={}", std::env::var("PELLUCID_KEY_FILE").unwrap()),
        false => "&plain_copies=1".to_owned(),
    };
    let overwrite = u8::from(scenario.powersafe);
    let uri = format!("file:{}?vfs={vfs}&psow={overwrite}{key}", path.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(uri, flags)?;
    connection.busy_timeout(Duration::ZERO)?;
    if scenario.theme == Theme::Pair {
        let beside = path.with_file_name("b.db");
        let attach =
            format!("ATTACH 'file:{}?vfs={vfs}&psow={overwrite}{key}' AS b", beside.display());
        connection.execute_batch(&attach)?;
    }
    Ok(connection)
}

impl Work {
    /// On the database `a.db` of `directory`, which may not be there yet.
    pub fn new(scenario: Scenario, directory: &Path, state: State) -> Self {
        Self {
            scenario,
            directory: directory.to_owned(),
            connection: None,
            mode: scenario.mode,
            page_bytes: scenario.page_bytes,
            sealed: scenario.over == Over::Sealed && scenario.theme != Theme::Encrypt,
            begun: state.as_ref().map_or(0, |rows| rows[&0] as usize),
            history: vec![state.clone()],
            candidates: vec![state],
            chained: Chained::default(),
        }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.join("a.db")
    }

    fn schemas(&self) -> &'static [&'static str] {
        match self.scenario.theme {
            Theme::Pair => &["main", "b"],
            _ => &["main"],
        }
    }

    /// The connection, opened if it is not.
    pub fn connection(&mut self) -> rusqlite::Result<&Connection> {
        if self.connection.is_none() {
            let connection = open(&self.scenario, &self.path(), self.sealed)?;
            self.settle(&connection)?;
            self.connection = Some(connection);
        }
        Ok(self.connection.as_ref().unwrap())
    }

    /// The connection, if it is open.
    pub fn open_connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }

    fn settle(&self, connection: &Connection) -> rusqlite::Result<()> {
        let level = match self.scenario.level {
            Level::Off => "OFF",
            Level::Normal => "NORMAL",
            Level::Full => "FULL",
            Level::Extra => "EXTRA",
        };
        for schema in self.schemas() {
            let exclusive = match self.scenario.theme {
                Theme::Exclusive => "PRAGMA main.locking_mode = EXCLUSIVE;",
                _ => "",
            };
            let (page, mode) = (self.page_bytes, self.mode.name());
            connection.execute_batch(&format!(
                "{exclusive}
                 PRAGMA {schema}.page_size = {page};
                 PRAGMA {schema}.synchronous = {level};
                 PRAGMA {schema}.journal_mode = {mode};
                 PRAGMA {schema}.wal_autocheckpoint = 0;"
            ))?;
        }
        Ok(())
    }

    /// Closes the connection.
    pub fn close(&mut self) {
        self.connection = None;
    }

    /// Does one step.
    ///
    /// # Errors
    /// What SQLite or the shim told; the model knows then what may have come of it.
    pub fn step(&mut self, step: &Step) -> Result<(), Failed> {
        match step {
            Step::Commit { changes, spill } => self.commit(changes, *spill),
            Step::TakenBack(changes) => self.take_back(changes),
            Step::Savepoint(changes) => self.savepoint(changes),
            Step::Temporary => self.temporary(),
            Step::Checkpoint(kind) => self.batch(&format!("PRAGMA wal_checkpoint({kind})")),
            Step::Reopen => {
                self.close();
                self.connection()?;
                Ok(())
            }
            Step::Vacuum => self.batch("VACUUM"),
            Step::PageSize(size) => self.page_size(*size),
            Step::Journal(mode) => self.journal(*mode),
            Step::AddProtector => {
                self.close();
                let other = KeyFile::parse(&OTHER_KEY).unwrap();
                let added = protectors::add(&self.path(), &Protection::KeyFile(other));
                added.map_err(Failed::Convert)
            }
            Step::DropProtector => {
                self.close();
                // The key at hand is the first; what was added lies behind it.
                protectors::drop(&self.path(), 1).map_err(Failed::Convert)
            }
            Step::Version(version) => {
                self.close();
                match change(&self.path(), *version, Duration::from_millis(200)) {
                    Ok(_) => Ok(()),
                    Err(Unchanged::Failed(error)) => Err(Failed::Convert(error)),
                    // A power cut under NORMAL may leave the rest of a log.
                    Err(Unchanged::Refused(Refused::LostLog(_))) => Ok(()),
                    Err(Unchanged::Refused(why)) => panic!("{why}"),
                }
            }
            Step::BeginChain => {
                self.close();
                self.chained.begin(&self.path(), self.begun).map_err(Failed::Convert)
            }
            Step::LogBackup => self.chained.back_up(&self.path()).map_err(Failed::Convert),
            Step::Encrypt => self.encrypt(),
            Step::Switch(target) => {
                let switched = match target {
                    Target::NewKey(algorithm) => scan::rekey(&self.path(), Some(*algorithm)),
                    target => scan::set(&self.path(), *target),
                };
                switched.map(drop).map_err(Failed::Convert)
            }
            Step::Scan { commits, stop } => scans::scan(self, commits, *stop),
            Step::Decrypt => {
                self.close();
                let options = Options::new(Duration::from_millis(200), Vec::new());
                let done = convert::decrypt::decrypt(&self.path(), &options, &mut |_, _, _| ());
                self.sealed = self.sealed && done.is_err();
                done.map(|_| ()).map_err(Failed::Convert)
            }
        }
    }

    fn batch(&mut self, sql: &str) -> Result<(), Failed> {
        self.connection()?.execute_batch(sql)?;
        Ok(())
    }

    fn encrypt(&mut self) -> Result<(), Failed> {
        self.close();
        let key = KeyFile::parse(&KEY).unwrap();
        let birth = Birth::new(Algorithm::Aes256, &[Protection::KeyFile(key)])
            .map_err(|error| Failed::Convert(error.into()))?;
        let options = Options::new(Duration::from_millis(200), Vec::new());
        let done =
            convert::encrypt::encrypt(&self.path(), || Ok(birth), &options, &mut |_, _, _| ());
        self.sealed = self.sealed || done.is_ok();
        done.map(|_| ()).map_err(Failed::Convert)
    }

    pub fn commit(&mut self, changes: &[(i64, i64)], spill: bool) -> Result<(), Failed> {
        let number = self.begun + 1;
        let schemas = self.schemas();
        let scale = self.scenario.page_bytes;
        let connection = self.connection()?;
        let pages = if spill { 4 } else { 200 };
        connection.execute_batch(&format!("PRAGMA cache_size={pages}; PRAGMA cache_spill=4;"))?;
        // The tables come with the first commit.
        self.begun = number;
        tell(Event::Begun(number));
        let connection = self.connection()?;
        let mut committing = false;
        let done = (|| {
            connection.execute_batch("BEGIN IMMEDIATE")?;
            for schema in schemas {
                rows::create(connection, schema)?;
                rows::change(connection, schema, (0, number as i64), scale)?;
                for change in changes {
                    rows::change(connection, schema, *change, scale)?;
                }
            }
            committing = true;
            connection.execute_batch("COMMIT")
        })();
        let after: Vec<State> =
            self.candidates.iter().map(|state| changed(state, changes, number)).collect();
        match done {
            Ok(()) => {
                tell(Event::Acknowledged(number));
                self.candidates = after;
                self.history.extend(self.candidates.iter().cloned());
                if let (Theme::LogChain, Some(connection)) = (self.scenario.theme, &self.connection)
                {
                    self.chained.committed(number, connection)?;
                }
                Ok(())
            }
            Err(error) => {
                let connection = self.connection.as_ref().unwrap();
                if !connection.is_autocommit() {
                    let _ = connection.execute_batch("ROLLBACK");
                }
                if committing {
                    self.history.extend(after.iter().cloned());
                    self.candidates.extend(after);
                }
                Err(error.into())
            }
        }
    }

    fn take_back(&mut self, changes: &[(i64, i64)]) -> Result<(), Failed> {
        let schemas = self.schemas();
        let scale = self.scenario.page_bytes;
        let connection = self.connection()?;
        connection.execute_batch("PRAGMA cache_size=4; PRAGMA cache_spill=4;")?;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let done = (|| {
            for schema in schemas {
                for change in changes {
                    rows::change(connection, schema, *change, scale)?;
                }
            }
            Ok::<(), rusqlite::Error>(())
        })();
        let back = match connection.is_autocommit() {
            true => Ok(()),
            false => connection.execute_batch("ROLLBACK"),
        };
        done?;
        Ok(back?)
    }

    fn savepoint(&mut self, changes: &[(i64, i64)]) -> Result<(), Failed> {
        let scale = self.scenario.page_bytes;
        let connection = self.connection()?;
        connection.execute_batch("PRAGMA cache_size=4; PRAGMA cache_spill=4; SAVEPOINT s")?;
        let done = (|| {
            // Written before the savepoint, taken back with it: the statement journal spills.
            connection.execute_batch("UPDATE main.t SET version = version; SAVEPOINT inner")?;
            for change in changes {
                rows::change(connection, "main", *change, scale)?;
            }
            connection.execute_batch("ROLLBACK TO inner; RELEASE inner")
        })();
        let back = match connection.is_autocommit() {
            true => Ok(()),
            false => connection.execute_batch("ROLLBACK TO s; RELEASE s"),
        };
        if back.is_err() && !connection.is_autocommit() {
            let _ = connection.execute_batch("ROLLBACK");
        }
        done?;
        Ok(back?)
    }

    fn temporary(&mut self) -> Result<(), Failed> {
        self.batch(
            "PRAGMA cache_size=4; PRAGMA temp.cache_size=4;
             CREATE TEMP TABLE IF NOT EXISTS s(a, b);
             WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 60)
             INSERT INTO s SELECT x * 7919 % 61, randomblob(1500) FROM c;
             CREATE INDEX temp.s_b ON s(b);
             SELECT count(*) FROM (SELECT DISTINCT b FROM s ORDER BY b);
             DROP TABLE s;",
        )
    }

    fn page_size(&mut self, size: usize) -> Result<(), Failed> {
        self.batch(&format!("PRAGMA page_size = {size}; VACUUM"))?;
        self.page_bytes = size;
        Ok(())
    }

    fn journal(&mut self, mode: Mode) -> Result<(), Failed> {
        self.batch(&format!("PRAGMA journal_mode = {}", mode.name()))?;
        self.mode = mode;
        Ok(())
    }

    /// Whether a conversion is still to be done.
    pub fn is_to_convert(&self) -> bool {
        let begins =
            |magic: &[u8]| std::fs::read(self.path()).is_ok_and(|file| file.starts_with(magic));
        match self.scenario.theme {
            Theme::Encrypt => begins(b"SQLite format 3"),
            Theme::Decrypt => begins(b"Pellucid sealed"),
            _ => false,
        }
    }
}

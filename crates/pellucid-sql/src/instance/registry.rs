//! The databases behind their names.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension, Row};

use super::Instance;
use pellucid::header::Standing;

use crate::message::{table, Message, Result};

/// The number of `master`.
pub(crate) const MASTER: i64 = 1;
/// The number of `model`.
pub(crate) const MODEL: i64 = 3;
/// The number of `msdb`.
pub(crate) const MSDB: i64 = 4;
/// The session's own, as SQLite's `temp`.
pub(crate) const TEMPDB: i64 = 2;
const SYSTEM: [(i64, &str); 4] =
    [(MASTER, "master"), (TEMPDB, "tempdb"), (MODEL, "model"), (MSDB, "msdb")];

/// What can be done with a database: `sys.databases.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Everything.
    Online = 0,
    /// It waits for the next backup.
    Restoring = 1,
    /// Nothing.
    Offline = 6,
}

impl State {
    fn of(number: i64) -> Self {
        match number {
            1 => Self::Restoring,
            6 => Self::Offline,
            _ => Self::Online,
        }
    }

    /// `state_desc`
    pub fn name(self) -> &'static str {
        match self {
            Self::Online => "ONLINE",
            Self::Restoring => "RESTORING",
            Self::Offline => "OFFLINE",
        }
    }
}

/// A database that has a name.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub id: i64,
    pub name: String,
    pub path: PathBuf,
    /// UTC, as SQLite writes times.
    pub created: String,
    /// 1 FULL, 2 BULK_LOGGED, 3 SIMPLE
    pub recovery_model: i64,
    pub compatibility_level: i64,
    pub state: State,
    /// 0 MULTI_USER, 1 SINGLE_USER, 2 RESTRICTED_USER
    pub access: i64,
    pub is_read_only: bool,
    /// 0 NONE, 1 TORN_PAGE_DETECTION, 2 CHECKSUM
    pub page_verify: i64,
    /// WITH NORECOVERY and STANDBY: media and position that the next differential is based on.
    pub restored_from: Option<String>,
    /// What COLLATE of CREATE DATABASE says.
    pub collation: Option<String>,
}

impl Known {
    /// The collation that it shows; every one that is taken compares alike.
    pub fn collation(&self) -> &str {
        self.collation.as_deref().unwrap_or("SQL_Latin1_General_CP1_CI_AS")
    }

    /// Its state, where its header may say that it is restoring.
    pub fn shown_state(&self, standing: Standing) -> State {
        match (self.state, standing) {
            (State::Online, Standing::Restoring) => State::Restoring,
            (state, _) => state,
        }
    }

    /// Whether it is one of SQL Server's own.
    pub fn is_system(&self) -> bool {
        self.id <= MSDB
    }

    fn system(id: i64, name: &str, path: PathBuf) -> Self {
        Self {
            id,
            name: name.to_owned(),
            path,
            created: "2022-10-08 06:30:00".to_owned(),
            recovery_model: 3,
            compatibility_level: 160,
            state: State::Online,
            access: 0,
            is_read_only: false,
            page_verify: 2,
            restored_from: None,
            collation: None,
        }
    }

    fn of_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        use std::os::unix::ffi::OsStringExt;
        let path: Vec<u8> = match row.get_ref(2)? {
            rusqlite::types::ValueRef::Text(bytes) | rusqlite::types::ValueRef::Blob(bytes) => {
                bytes.to_vec()
            }
            _ => Vec::new(),
        };
        Ok(Self {
            id: row.get(0)?,
            name: row.get(1)?,
            path: PathBuf::from(std::ffi::OsString::from_vec(path)),
            created: row.get(3)?,
            recovery_model: row.get(4)?,
            compatibility_level: row.get(5)?,
            state: State::of(row.get(6)?),
            access: row.get(7)?,
            is_read_only: row.get(8)?,
            page_verify: row.get(9)?,
            restored_from: row.get(10)?,
            collation: row.get(11)?,
        })
    }
}

/// A DEK that was asked for while the database is still plain.
#[derive(Debug, Clone)]
pub(crate) struct PendingKey {
    /// AES_256 and so on.
    pub algorithm: String,
    /// The certificate's name.
    pub certificate: String,
    /// Its SHA-256 thumbprint in hexadecimal.
    pub thumbprint: String,
    /// UTC.
    pub created: String,
    /// The process that encrypts, and when it was begun, in clock ticks since the machine started.
    pub process: Option<(u32, u64)>,
    /// When SET ENCRYPTION ON was last said.
    pub set: Option<String>,
}

const COLUMNS: &str =
    "database_id, name, path, create_date, recovery_model, compatibility_level, state, access, \
                       is_read_only, page_verify, restored_from, collation";

impl Instance {
    /// Every database, SQL Server's own first.
    ///
    /// # Errors
    /// SQLite's.
    pub fn databases(&self) -> Result<Vec<Known>> {
        let mut all: Vec<Known> = SYSTEM
            .iter()
            .map(|(id, name)| Known::system(*id, name, self.system_path(*id)))
            .collect();
        let sql = format!("SELECT {COLUMNS} FROM pellucid_database ORDER BY database_id");
        let mut statement = self.msdb.prepare_cached(&sql)?;
        let rows = statement.query_map([], Known::of_row)?;
        for known in rows {
            all.push(known?);
        }
        Ok(all)
    }

    fn system_path(&self, id: i64) -> PathBuf {
        match id {
            MSDB => self.msdb_path(),
            MASTER => self.master_path(),
            _ => PathBuf::new(),
        }
    }

    /// The database of that name, if there is one.
    ///
    /// # Errors
    /// SQLite's.
    pub fn find(&self, name: &str) -> Result<Option<Known>> {
        if let Some((id, name)) =
            SYSTEM.iter().find(|(_, system)| system.eq_ignore_ascii_case(name))
        {
            return Ok(Some(Known::system(*id, name, self.system_path(*id))));
        }
        if self.is_closed {
            // Which databases there are cannot be seen.
            return Err(pellucid::message::MASTER_KEY_MISSING.into());
        }
        let sql = format!("SELECT {COLUMNS} FROM pellucid_database WHERE name = ?1");
        Ok(self.msdb.prepare_cached(&sql)?.query_row([name], Known::of_row).optional()?)
    }

    /// The database of that name.
    ///
    /// # Errors
    /// 911.
    pub fn database(&self, name: &str) -> Result<Known> {
        self.find(name)?.ok_or_else(|| Message::of(table::UNKNOWN_DATABASE, [&name]))
    }

    /// The database in that file, if it has a name.
    ///
    /// # Errors
    /// SQLite's.
    pub fn of_path(&self, path: &Path) -> Result<Option<Known>> {
        let sql = format!("SELECT {COLUMNS} FROM pellucid_database WHERE path = ?1");
        Ok(self.msdb.prepare_cached(&sql)?.query_row([text(path)], Known::of_row).optional()?)
    }

    /// The database in that file, by whatever name the file goes.
    ///
    /// # Errors
    /// SQLite's.
    pub fn of_file(&self, path: &Path) -> Result<Option<Known>> {
        use std::os::unix::fs::MetadataExt;
        let identity =
            |path: &Path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
        let wanted = identity(path);
        let same = |known: &Known| {
            known.path == path || (wanted.is_some() && identity(&known.path) == wanted)
        };
        Ok(self.databases()?.into_iter().filter(|known| !known.is_system()).find(same))
    }

    /// Gives a file a name.
    ///
    /// # Errors
    /// 1801 if another database has it; 5173 if the file has a name already.
    pub fn register(&self, name: &str, path: &Path) -> Result<Known> {
        if self.find(name)?.is_some() {
            return Err(Message::database_exists(name));
        }
        if let Some(other) = self.of_file(path)? {
            return Err(Message::file_in_use(path, &other.name));
        }
        let sql = "INSERT INTO pellucid_database(name, path, create_date) \
                   VALUES (?1, ?2, strftime('%Y-%m-%d %H:%M:%f', 'now'))";
        self.msdb.execute(sql, (name, text(path)))?;
        self.forget_setting(&detached(path))?;
        self.database(name)
    }

    /// Forgets a name, although the keyring goes on knowing the database.
    ///
    /// # Errors
    /// SQLite's.
    pub fn detach(&self, known: &Known) -> Result<()> {
        self.set_text(&detached(&known.path), &known.name)?;
        self.unregister(known)
    }

    /// Forgets a name, with what is kept of it.
    ///
    /// # Errors
    /// SQLite's.
    pub fn unregister(&self, known: &Known) -> Result<()> {
        let transaction = self.msdb.unchecked_transaction()?;
        for table in
            ["pellucid_database", "pellucid_option", "pellucid_pending_key", "pellucid_module"]
        {
            transaction
                .execute(&format!("DELETE FROM {table} WHERE database_id = ?1"), [known.id])?;
        }
        Ok(transaction.commit()?)
    }

    /// Gives it another name.
    ///
    /// # Errors
    /// 1801.
    pub fn rename(&self, known: &Known, name: &str) -> Result<()> {
        let taken = self.find(name)?.is_some_and(|other| other.id != known.id);
        if taken {
            return Err(Message::database_exists(name));
        }
        self.set(known, "name", &name)
    }

    /// Changes a column of [`Known`].
    ///
    /// # Errors
    /// SQLite's.
    pub fn set(
        &self,
        known: &Known,
        column: &'static str,
        value: &dyn rusqlite::ToSql,
    ) -> Result<()> {
        let sql = format!("UPDATE pellucid_database SET {column} = ?2 WHERE database_id = ?1");
        self.msdb.execute(&sql, rusqlite::params![known.id, value])?;
        Ok(())
    }

    /// An option that is only remembered.
    ///
    /// # Errors
    /// SQLite's.
    pub fn set_option(&self, known: &Known, name: &str, value: i64) -> Result<()> {
        let sql = "INSERT INTO pellucid_option VALUES (?1, ?2, ?3) \
                   ON CONFLICT(database_id, name) DO UPDATE SET value = excluded.value";
        self.msdb.execute(sql, (known.id, name, value))?;
        Ok(())
    }

    /// What was set of it.
    ///
    /// # Errors
    /// SQLite's.
    pub fn option(&self, known: &Known, name: &str) -> Result<Option<i64>> {
        let sql = "SELECT value FROM pellucid_option WHERE database_id = ?1 AND name = ?2";
        let mut statement = self.msdb.prepare_cached(sql)?;
        Ok(statement.query_row((known.id, name), |row| row.get(0)).optional()?)
    }

    /// What was set of all of them, by the numbers of the databases.
    ///
    /// # Errors
    /// SQLite's.
    pub fn options(&self) -> Result<HashMap<i64, HashMap<String, i64>>> {
        let mut options: HashMap<i64, HashMap<String, i64>> = HashMap::new();
        let mut statement =
            self.msdb.prepare_cached("SELECT database_id, name, value FROM pellucid_option")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            options.entry(row.get(0)?).or_default().insert(row.get(1)?, row.get(2)?);
        }
        Ok(options)
    }

    /// The DEK that was asked for.
    ///
    /// # Errors
    /// SQLite's.
    pub fn pending_key(&self, known: &Known) -> Result<Option<PendingKey>> {
        Ok(self.pending_keys()?.remove(&known.id))
    }

    /// Those of all databases, by number.
    ///
    /// # Errors
    /// SQLite's.
    pub fn pending_keys(&self) -> Result<HashMap<i64, PendingKey>> {
        let sql = "SELECT algorithm, certificate, thumbprint, create_date, pid, started, set_date, database_id \
                   FROM pellucid_pending_key";
        let of = |row: &Row<'_>| {
            let (pid, started): (Option<u32>, Option<i64>) = (row.get(4)?, row.get(5)?);
            let key = PendingKey {
                algorithm: row.get(0)?,
                certificate: row.get(1)?,
                thumbprint: row.get(2)?,
                created: row.get(3)?,
                process: pid.zip(started.and_then(|at| u64::try_from(at).ok())),
                set: row.get(6)?,
            };
            Ok((row.get(7)?, key))
        };
        let mut statement = self.msdb.prepare_cached(sql)?;
        let rows = statement.query_map([], of)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Keeps what was asked for.
    ///
    /// # Errors
    /// SQLite's.
    pub fn keep_pending_key(&self, known: &Known, key: &PendingKey) -> Result<()> {
        let sql =
            "INSERT OR REPLACE INTO pellucid_pending_key VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let (pid, started) =
            key.process.map_or((None, None), |(pid, at)| (Some(pid), i64::try_from(at).ok()));
        self.msdb.execute(
            sql,
            (
                known.id,
                &key.algorithm,
                &key.certificate,
                &key.thumbprint,
                &key.created,
                pid,
                started,
                &key.set,
            ),
        )?;
        Ok(())
    }

    /// Forgets it.
    ///
    /// # Errors
    /// SQLite's.
    pub fn drop_pending_key(&self, known: &Known) -> Result<()> {
        self.msdb.execute("DELETE FROM pellucid_pending_key WHERE database_id = ?1", [known.id])?;
        Ok(())
    }

    /// Names for the databases that the keyring knows and nobody has named: their files' names, with `_2` behind where
    /// that is taken.
    ///
    /// # Errors
    /// SQLite's; what the keyring cannot read is left out.
    pub fn register_known(&self) -> Result<()> {
        let Ok(keyring) = self.keyring() else { return Ok(()) };
        let Ok(found) = keyring.find_databases() else { return Ok(()) };
        let named: HashSet<PathBuf> = self.databases()?.into_iter().map(|one| one.path).collect();
        for memory in found.whole {
            if named.contains(&memory.path) {
                continue;
            }
            let is_there = !memory.path.as_os_str().is_empty() && memory.path.is_file();
            let own = [self.msdb_path(), self.master_path()];
            if !is_there || own.contains(&memory.path) || self.of_path(&memory.path)?.is_some() {
                continue;
            }
            if self.text_setting(&detached(&memory.path))?.is_some() {
                continue;
            }
            let stem = memory.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            // Another process may be faster; then it has its name.
            match self.register(&self.free_name(&stem)?, &memory.path) {
                Err(error) if ![1801, 5173].contains(&error.number) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// `stem`, or `stem_2` and so on if that is taken.
    ///
    /// # Errors
    /// SQLite's.
    pub fn free_name(&self, stem: &str) -> Result<String> {
        let mut name = stem.to_owned();
        for number in 2_u32.. {
            if self.find(&name)?.is_none() {
                break;
            }
            name = format!("{stem}_{number}");
        }
        Ok(name)
    }
}

/// The setting of a database that was detached and gets no name by itself.
fn detached(path: &Path) -> String {
    format!("detached:{}", path.display())
}

/// A path as it is kept: its bytes, as text where they are.
pub(crate) fn text(path: &Path) -> rusqlite::types::Value {
    use std::os::unix::ffi::OsStrExt;
    match path.to_str() {
        Some(text) => rusqlite::types::Value::Text(text.to_owned()),
        None => rusqlite::types::Value::Blob(path.as_os_str().as_bytes().to_vec()),
    }
}

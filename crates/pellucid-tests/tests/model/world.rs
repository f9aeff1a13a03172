//! One side: a directory of databases, plain or sealed, and the connections a script has opened.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::alike;
use crate::connection::{Backup, Connection, Outcome, Value};
use crate::script::{Step, CONNECTIONS, PLAIN};

/// Bytes of each page that are not SQLite's on the sealed side (docs/format.md, "Database page").
const RESERVED_BYTES: i32 = 32;

/// What happens when a script runs on one side.
pub struct World {
    directory: PathBuf,
    /// The URI's query of a database: its VFS, and its key.
    query: String,
    /// Whether SQLite has to be asked for the reserved bytes of this side's databases.
    reserves: bool,
    same_pages: bool,
    connections: [Option<Seat>; CONNECTIONS],
    undefined: bool,
}

struct Seat {
    connection: Connection,
    /// The backup under way into this connection.
    backup: Option<Backup>,
    /// Has been without a rollback journal since it was opened.
    unjournaled: bool,
    /// Has had its rollback journal in memory, or none, since it was opened.
    volatile: bool,
    /// The first `data_version` of each schema.
    versions: BTreeMap<String, i64>,
}

impl Seat {
    /// Only a change of `data_version` means something (pragma.html). Where it begins tells whether a journal
    /// had a record to play back, and the shim holds records back until somebody may need them: what a
    /// kill leaves of a transaction that wrote nothing to the database has records on the plain side only.
    fn count_versions(&mut self, sql: &str, outcome: &mut Outcome) {
        if sql.starts_with("ATTACH") || sql.starts_with("DETACH") {
            self.versions.clear();
        }
        let Some(schema) =
            sql.strip_prefix("PRAGMA ").and_then(|s| s.strip_suffix(".data_version"))
        else {
            return;
        };
        if let Some(Value::Integer(version)) =
            outcome.rows.first_mut().and_then(|row| row.first_mut())
        {
            *version -= *self.versions.entry(schema.to_owned()).or_insert(*version);
        }
    }
}

impl World {
    /// The plain side.
    pub fn plain(directory: PathBuf, same_pages: bool) -> Self {
        let vfs = if same_pages { alike::NAME } else { "unix" };
        Self::new(directory, format!("vfs={vfs}"), same_pages, same_pages)
    }

    /// The sealed side, over the VFS named; a second plain one where that is asked for as a control.
    pub fn sealed(directory: PathBuf, vfs: &str, key: &Path, same_pages: bool) -> Self {
        if std::env::var_os("PELLUCID_MODEL_CONTROL").is_some() {
            return Self::plain(directory, same_pages);
        }
        let query = format!("vfs={vfs}&key_file={}", key.display());
        Self::new(directory, query, false, same_pages)
    }

    fn new(directory: PathBuf, query: String, reserves: bool, same_pages: bool) -> Self {
        fs::create_dir_all(&directory).unwrap();
        let connections = Default::default();
        Self { directory, query, reserves, same_pages, connections, undefined: false }
    }

    /// Does one step; what it says has this side's paths taken out.
    pub fn run(&mut self, step: &Step) -> Outcome {
        let mut outcome = self.perform(step);
        self.note_undefined(step, &outcome);
        outcome.message = self.without_paths(&outcome.message);
        for value in outcome.rows.iter_mut().flatten() {
            if let Value::Text(text) = value {
                // A path is short, and text.
                if let Some(short) = std::str::from_utf8(text).ok().filter(|text| text.len() < 4096)
                {
                    *text = self.without_paths(short).into_bytes();
                }
            }
        }
        outcome
    }

    fn without_paths(&self, text: &str) -> String {
        let directory = self.directory.display().to_string();
        text.replace(&format!("?{}", self.query), "").replace(&directory, "@")
    }

    fn perform(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Open(on, file) => return self.open(*on, file),
            Step::Kill => return self.kill(),
            Step::Backup { to, to_schema, from, from_schema } => {
                return self.backup((*to, to_schema), (*from, from_schema))
            }
            _ => {}
        }
        let on = match step {
            Step::Close(on) | Step::Sql(on, _) | Step::Interrupt(on, ..) | Step::Cursor(on, _) => {
                *on
            }
            Step::Fetch(on, _) | Step::Drop(on) | Step::Copy(on, _) | Step::Finish(on) => *on,
            Step::Blob { on, .. } | Step::Serialize(on, _) => *on,
            Step::Open(..) | Step::Kill | Step::Backup { .. } => unreachable!("done above"),
        };
        if self.connections[on].is_none() {
            return Outcome::skipped("not open");
        }
        let backs_up = matches!(step, Step::Close(_) | Step::Copy(..) | Step::Finish(_));
        if self.seat(on).backup.is_some() && !backs_up {
            return Outcome::skipped(
                "the target of a backup is not used meanwhile (backup_finish.html)",
            );
        }
        match step {
            Step::Close(_) => self.close(on),
            Step::Sql(_, sql) => self.sql(on, sql, Connection::run),
            Step::Interrupt(_, after, sql) => {
                self.sql(on, sql, |connection, sql| connection.run_interrupted(sql, *after))
            }
            Step::Cursor(_, sql) => {
                let sql = self.with_paths(sql);
                self.seat(on).connection.begin_cursor(&sql)
            }
            Step::Fetch(_, rows) => self.seat(on).connection.fetch(*rows),
            Step::Drop(_) => self.seat(on).connection.end_cursor(),
            Step::Copy(_, pages) => match &self.seat(on).backup {
                Some(backup) => backup.copy(*pages),
                None => Outcome::skipped("no backup"),
            },
            Step::Finish(_) => match self.seat(on).backup.take() {
                Some(backup) => {
                    let code = backup.finish();
                    self.seat(on).connection.told(code, Vec::new())
                }
                None => Outcome::skipped("no backup"),
            },
            Step::Blob { schema, table, row, offset, length, write, .. } => {
                let part = (*offset, *length);
                self.seat(on).connection.blob(schema, table, *row, part, *write)
            }
            Step::Serialize(_, schema) => {
                let connection = &self.seat(on).connection;
                // `sqlite3_serialize` takes the page size as the connection last knew it.
                let looked =
                    connection.run(&format!("SELECT count(*) FROM {schema}.sqlite_schema"));
                if !looked.is_ok() {
                    return looked;
                }
                let bytes = connection.serialize(schema).unwrap_or_default();
                Outcome { rows: vec![vec![Value::Blob(bytes)]], ..looked }
            }
            Step::Open(..) | Step::Kill | Step::Backup { .. } => unreachable!("done above"),
        }
    }

    fn seat(&mut self, on: usize) -> &mut Seat {
        self.connections[on].as_mut().expect("the connection is open")
    }

    /// The whole URI in place of `'@b.db'`.
    fn with_paths(&self, sql: &str) -> String {
        let mut parts = sql.split("'@");
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (file, rest) = part.split_once('\'').unwrap_or((part, ""));
            whole.push_str(&format!("'{}'{rest}", self.uri(file)));
        }
        whole
    }

    fn uri(&self, file: &str) -> String {
        let query = if file == PLAIN { "vfs=unix" } else { &self.query };
        format!("file:{}/{file}?{query}", self.directory.display())
    }

    fn open(&mut self, on: usize, file: &str) -> Outcome {
        if self.connections[on].is_some() {
            return Outcome::skipped("open already");
        }
        let (connection, outcome) = Connection::open(&self.uri(file));
        if self.reserves || (self.same_pages && file == PLAIN) {
            connection.reserve("main", RESERVED_BYTES);
        }
        let versions = BTreeMap::new();
        let seat = Seat { connection, backup: None, unjournaled: false, volatile: false, versions };
        self.connections[on] = Some(seat);
        outcome
    }

    fn close(&mut self, on: usize) -> Outcome {
        for seat in self.connections.iter_mut().flatten() {
            if let Some(backup) = seat.backup.take_if(|backup| backup.from == on) {
                backup.finish();
            }
        }
        if self.rest(on) {
            let seat = self.connections[on].take();
            self.undefined |=
                seat.is_some_and(|s| s.unjournaled && s.connection.is_in_transaction());
        }
        Outcome::default()
    }

    fn sql(&mut self, on: usize, sql: &str, run: impl Fn(&Connection, &str) -> Outcome) -> Outcome {
        let whole = self.with_paths(sql);
        let same_pages = self.same_pages;
        let file = sql.strip_prefix("ATTACH '@").and_then(|rest| rest.split_once('\''));
        if !same_pages && file.is_some_and(|(file, _)| self.has_file(on, file)) {
            return Outcome::skipped("how soon one's other handle is locked depends on the pages");
        }
        if same_pages && sql.contains("mmap_size=") {
            // Nor has a page the same unused bytes then: plain differs from plain.
            return Outcome::skipped(
                "a mapped page takes no room in the cache, which spills later",
            );
        }
        let seat = self.seat(on);
        if same_pages && sql.starts_with("ATTACH") && seat.connection.is_in_transaction() {
            return Outcome::skipped("it would be too late to ask SQLite for reserved bytes");
        }
        let mut outcome = run(&seat.connection, &whole);
        seat.count_versions(sql, &mut outcome);
        if sql.contains("journal_mode") {
            let is = |mode: &str| outcome.rows == [[Value::Text(mode.as_bytes().to_vec())]];
            seat.unjournaled |= is("off");
            seat.volatile |= is("off") || is("memory");
        }
        if sql.starts_with("ATTACH") && outcome.is_ok() {
            self.reserve_attached(on);
        }
        outcome
    }

    fn has_file(&mut self, on: usize, file: &str) -> bool {
        let end = format!("/{file}").into_bytes();
        let list = self.seat(on).connection.run("PRAGMA database_list").rows;
        list.iter()
            .flatten()
            .any(|value| matches!(value, Value::Text(path) if path.ends_with(&end)))
    }

    fn reserve_attached(&mut self, on: usize) {
        let (reserves, same_pages) = (self.reserves, self.same_pages);
        let connection = &self.seat(on).connection;
        for row in connection.run("PRAGMA database_list").rows {
            let [_, Value::Text(schema), Value::Text(path)] = &row[..] else { continue };
            // In memory, too: it may become the source of a file.
            let plain = path.is_empty() || path.ends_with(format!("/{PLAIN}").as_bytes());
            let attached = schema != b"main" && schema != b"temp";
            if attached && (reserves || (same_pages && plain)) {
                connection.reserve(&String::from_utf8_lossy(schema), RESERVED_BYTES);
            }
        }
    }

    fn backup(&mut self, to: (usize, &str), from: (usize, &str)) -> Outcome {
        if to.0 == from.0 {
            return Outcome::skipped("a connection does not back itself up here");
        }
        let (Some(target), Some(source)) = (&self.connections[to.0], &self.connections[from.0])
        else {
            return Outcome::skipped("not open");
        };
        if from.1 == "temp" || to.1 == "temp" {
            // SQLite keeps what it knows of the old temp database after it was overwritten, too.
            return Outcome::skipped(
                "a sealed database does not take pages without reserved bytes",
            );
        }
        if target.backup.is_some() || source.backup.is_some() || target.unjournaled {
            return Outcome::skipped("a backup is under way, or could not be taken back");
        }
        let (backup, outcome) =
            target.connection.begin_backup((to.1, from.1), &source.connection, from.0);
        self.seat(to.0).backup = backup;
        outcome
    }

    /// Whether what SQLite has left behind is undefined: a connection without a journal could not take
    /// back what it had begun (pragma.html, `journal_mode`).
    pub fn is_undefined(&self) -> bool {
        self.undefined
    }

    fn note_undefined(&mut self, step: &Step, outcome: &Outcome) {
        let (on, takes_back) = match step {
            Step::Sql(on, sql) | Step::Interrupt(on, _, sql) => (*on, sql.starts_with("ROLLBACK")),
            Step::Cursor(on, _) | Step::Fetch(on, _) | Step::Blob { on, .. } => (*on, false),
            _ => return,
        };
        let unjournaled = self.connections[on].as_ref().is_some_and(|seat| seat.unjournaled);
        // 1 is an ordinary mistake, found before anything was done.
        let failed = outcome.code > rusqlite::ffi::SQLITE_ERROR;
        self.undefined |= unjournaled && (failed || (takes_back && outcome.is_ok()));
    }

    /// Puts the files back as they lay at this moment, after all connections were closed.
    fn kill(&mut self) -> Outcome {
        let lost = |seat: &Seat| seat.volatile && seat.connection.is_in_transaction();
        if self.connections.iter().flatten().any(lost) {
            return Outcome::skipped(
                "what a kill leaves of a transaction without a file is undefined",
            );
        }
        let names = self.files();
        let left: Vec<Vec<u8>> =
            names.iter().map(|name| fs::read(self.path(name)).unwrap()).collect();
        (0..CONNECTIONS).for_each(|on| drop(self.close(on)));
        self.files().iter().for_each(|name| fs::remove_file(self.path(name)).unwrap());
        names.iter().zip(left).for_each(|(name, bytes)| fs::write(self.path(name), bytes).unwrap());
        Outcome::default()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The names of all files, in order.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Bytes of all files.
    pub fn size(&self) -> u64 {
        let entries = fs::read_dir(&self.directory).unwrap();
        entries.map(|entry| entry.unwrap().metadata().map_or(0, |data| data.len())).sum()
    }

    /// Ends what is under way on a connection; false if it is not open.
    pub fn rest(&mut self, on: usize) -> bool {
        let Some(seat) = &mut self.connections[on] else { return false };
        seat.connection.end_cursor();
        if let Some(backup) = seat.backup.take() {
            backup.finish();
        }
        true
    }
}

impl Drop for World {
    /// Backups end before the connections they use close.
    fn drop(&mut self) {
        (0..CONNECTIONS).for_each(|on| drop(self.close(on)));
    }
}

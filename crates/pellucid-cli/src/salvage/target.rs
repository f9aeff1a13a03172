//! The new database: made beside its name and given it when it is whole.

use std::path::{Path, PathBuf};

use pellucid::shown::Shown;
use pellucid::sqlite::{Map, Object, Source, SCHEMA};
use pellucid_engine::convert::encrypt::AS_COPY;
use pellucid_engine::inspect::{inspect, Kind};
use pellucid_engine::page_source::Pages;
use pellucid_files::way::Way;
use pellucid_host::folder::{name_of, Folder};
use pellucid_vfs::copy::{CopyFile, Lent};
use pellucid_vfs::pins::Expectation;
use pellucid_vfs::seal_request::{prepare_birth, remember, Birth};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, OpenFlags};

use super::layout::Layout;
use super::report::Report;
use crate::output::{no_folder_hint, Failure, Id};

/// A database that is being made.
#[derive(Debug)]
pub struct Target {
    pub db: Connection,
    /// What SQLite opened by its name is this file. It is removed on drop.
    file: CopyFile,
    lent: Lent,
    sealed: bool,
}

/// A table of SQLite's own that it makes with the first table that needs it.
pub const SEQUENCE: &str = "sqlite_sequence";

impl Target {
    /// Refuses to write over anything.
    pub fn refuse_existing(to: &Path) -> Result<(), Failure> {
        let io = |error: std::io::Error| {
            let hint = match error.kind() {
                std::io::ErrorKind::NotFound => no_folder_hint(to),
                _ => "look at the permissions of the directory".into(),
            };
            Failure::new(Id::of_system(&error), &error, hint).about(to)
        };
        let folder = Folder::of(to).map_err(io)?;
        if folder.has(&name_of(to)) {
            return Err(Failure::new(
                Id::Exists,
                "the file exists already",
                "name a file that does not exist",
            )
            .about(to));
        }
        let building = building(to);
        if folder.has(&name_of(&building)) {
            return Err(Failure::new(
                Id::SalvageUnfinished,
                "another salvage is writing this file, or was interrupted",
                "remove the file if no salvage is running",
            )
            .about(&building));
        }
        Ok(())
    }

    /// An empty database for what is salvaged of `from`, whose owner it gets; plain without a birth.
    pub fn create(to: &Path, from: &Path, birth: Option<Birth>) -> Result<Self, Failure> {
        let path = building(to);
        let io = |error: std::io::Error| {
            Failure::new(
                Id::of_system(&error),
                &error,
                "look at the permissions of the directory, and at the disk",
            )
            .about(&path)
        };
        // SQLite calls it so, and it is lent under this name.
        let path = match Way::to_name(&path) {
            Ok(way) => way.path().to_owned(),
            Err(error) => return Err(io(error)),
        };
        let folder = Folder::of(&path).map_err(io)?;
        let file = folder.create(&name_of(&path)).map_err(io)?;
        let original = Way::of(from).and_then(|way| way.look());
        let file = CopyFile::made(file, folder, path.clone());
        original.map_or(Ok(()), |original| file.permit_as(&original))?;
        let sealed = birth.is_some();
        let lent = file.lend(!sealed);
        let name = match birth {
            Some(birth) => {
                format!("{}?{AS_COPY}&pellucid_birth={}", uri(&path), prepare_birth(birth)?)
            }
            None => format!("{}?{AS_COPY}", uri(&path)),
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI;
        let db = Connection::open_with_flags(name, flags).map_err(sqlite)?;
        Ok(Self { db, file, lent, sealed })
    }

    /// Gives it what page 1 says of the old one.
    ///
    /// With a journal, though nobody needs the file after a crash: a statement that fails, as an index over values that
    /// are not unique does, has to leave nothing behind.
    pub fn prepare(&self, pages: &Pages, map: &Map) -> Result<(), Failure> {
        let first = pages.page(1);
        let number = |at: usize| {
            let bytes = first.as_ref().and_then(|page| page.get(at..at + 4)?.try_into().ok());
            bytes.map_or(0, i32::from_be_bytes)
        };
        let auto_vacuum = match (map.has_pointer_map(), number(64)) {
            (false, _) => 0,
            (true, 0) => 1,
            (true, _) => 2,
        };
        let statements = format!(
            "PRAGMA page_size={}; PRAGMA encoding='{}'; PRAGMA auto_vacuum={auto_vacuum};
             PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;
             PRAGMA cache_size=-65536; PRAGMA foreign_keys=OFF; PRAGMA ignore_check_constraints=ON;
             PRAGMA writable_schema=ON; PRAGMA application_id={}; PRAGMA user_version={}; BEGIN",
            pages.page_bytes(),
            map.encoding.name(),
            number(68),
            number(60),
        );
        self.db.set_prepared_statement_cache_capacity(64);
        self.db.execute_batch(&statements).map_err(sqlite)
    }

    /// Makes the tables; none for an object that is no table, or could not be made.
    pub fn make_tables(
        &mut self,
        map: &Map,
        report: &mut Report,
    ) -> Result<Vec<Option<Layout>>, Failure> {
        let mut layouts = Vec::with_capacity(map.objects.len());
        for (index, object) in map.objects.iter().enumerate() {
            let is_table = index != SCHEMA && object.kind == "table" && object.root != 0;
            let made = is_table.then(|| self.make_table(object));
            layouts.push(match made {
                None => None,
                Some(Ok(layout)) => Some(layout),
                Some(Err(error)) if self.is_undone() => return Err(sqlite(error)),
                Some(Err(error)) => {
                    report.not_made(object, &error);
                    None
                }
            });
        }
        // Made with the first AUTOINCREMENT table, which may come behind it in the schema.
        for (object, layout) in map.objects.iter().zip(&mut layouts) {
            if object.name == SEQUENCE && layout.is_none() {
                *layout = Layout::read(&self.db, SEQUENCE).ok();
            }
        }
        Ok(layouts)
    }

    /// Whether an error has taken back everything, not its statement alone (lang_transaction.html, 3).
    fn is_undone(&self) -> bool {
        self.db.is_autocommit()
    }

    fn make_table(&mut self, object: &Object) -> rusqlite::Result<Layout> {
        if object.name != SEQUENCE {
            self.make_object(object.sql.as_deref().unwrap_or_default())?;
        }
        Layout::read(&self.db, &object.name)
    }

    /// Runs one statement of the old schema, and only as far as it makes something of this database: whoever could write to the
    /// old one has chosen its text.
    fn make_object(&mut self, sql: &str) -> rusqlite::Result<()> {
        self.db.authorizer(Some(only_what_makes))?;
        let made = self.db.prepare(sql).and_then(|mut statement| statement.execute([]));
        self.db.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
        made.map(|_| ())
    }

    /// Indexes, views and triggers, and virtual tables, whose content lies in tables of their own.
    pub fn make_the_rest(&mut self, map: &Map, report: &mut Report) -> Result<(), Failure> {
        for kind in ["index", "view", "trigger"] {
            for object in map.objects.iter().filter(|object| object.kind == kind) {
                let Some(sql) = &object.sql else { continue };
                match self.make_object(sql) {
                    Ok(()) => {}
                    Err(error) if self.is_undone() => return Err(sqlite(error)),
                    Err(error) => report.not_made(object, &error),
                }
            }
        }
        let is_virtual = |object: &&Object| object.kind == "table" && object.root == 0;
        for object in map.objects.iter().filter(is_virtual) {
            // By its row alone: making it would make its tables again.
            self.db
                .execute(
                    "INSERT INTO sqlite_schema(type, name, tbl_name, rootpage, sql) VALUES('table', ?1, ?1, 0, ?2)",
                    (&object.name, &object.sql),
                )
                .map_err(sqlite)?;
        }
        self.db.execute_batch("COMMIT").map_err(sqlite)
    }

    /// Forces it to disk and gives it its name; its bytes.
    pub fn finish(self, to: &Path, wal: bool) -> Result<u64, Failure> {
        // From here on its log is a file beside it.
        drop(self.lent);
        if wal {
            self.db.pragma_update(None, "journal_mode", "WAL").map_err(sqlite)?;
        }
        self.db.close().map_err(|(_, error)| sqlite(error))?;
        let io = |error: std::io::Error| {
            Failure::new(
                Id::of_system(&error),
                &error,
                "look at the permissions of the directory, and at the disk",
            )
        };
        self.file.file().sync_all().map_err(io)?;
        let bytes = self.file.file().metadata().map_err(io)?.len();
        self.file.become_file(to).map_err(|error| {
            let hint = format!("`{}` is whole: rename it to a free name", building(to).shown());
            Failure::new(Id::SalvageNotRenamed, error, hint)
        })?;
        if let (true, Ok(whole)) = (self.sealed, std::path::absolute(to)) {
            if let Kind::Sealed(found) = inspect(to)?.kind {
                remember(&found.header, &whole);
                Expectation::at(&whole)?.put_if_writable(&whole, &found.header);
            }
        }
        Ok(bytes)
    }

    /// A name for a table that no object has.
    pub fn free_name(map: &Map, wanted: &str) -> String {
        let taken = |name: &str| map.objects.iter().any(|o| o.name.eq_ignore_ascii_case(name));
        let numbered = (0u32..).map(|number| format!("{wanted}_{number}"));
        let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
        names.find(|name| !taken(name)).unwrap_or_default()
    }
}

/// What a statement needs that makes a table, index, view or trigger: nothing outside this database, and no setting of the
/// connection.
fn only_what_makes(asked: AuthContext<'_>) -> Authorization {
    use AuthAction::*;
    let is_here = asked.database_name.is_none_or(|database| database == "main");
    match asked.action {
        CreateIndex { .. }
        | CreateTable { .. }
        | CreateTrigger { .. }
        | CreateView { .. }
        | Reindex { .. }
        | Insert { .. }
        | Update { .. }
        | Delete { .. }
        | Read { .. }
        | Select
        | Function { .. }
        | Recursive
            if is_here =>
        {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }
}

fn building(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push("-salvage");
    PathBuf::from(name)
}

/// A path as the `file:` part of a URI, a whole one with an empty authority.
fn uri(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/.-_".contains(&byte);
    let bytes = path.as_os_str().as_bytes().iter();
    let part = |byte: &u8| match plain(*byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02x}"),
    };
    let begin = if path.is_absolute() { "file://" } else { "file:" };
    format!("{begin}{}", bytes.map(part).collect::<String>())
}

/// An error of the new database.
pub fn sqlite(error: rusqlite::Error) -> Failure {
    let full = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull);
    let (id, hint) = match full {
        true => (Id::Full, "make room on the disk and try again"),
        false => (Id::Sqlite, "nothing was changed"),
    };
    Failure::new(id, error, hint)
}

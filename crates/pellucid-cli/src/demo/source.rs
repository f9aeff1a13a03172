//! The database that is shown: Northwind, or a copy of one's own.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use pellucid_engine::audit::is_told_of_the_application;
use pellucid_engine::inspect::{inspect, Kind};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::image::{io, Encoding, Image};
use crate::output::{Failure, Id};

/// Its licence is beside it.
const NORTHWIND: &str = include_str!("../../../../demo/northwind.sql");
/// Tables, rows of each, and texts that are tried to find one to look for.
const TABLES_TRIED: usize = 200;
const ROWS_TRIED: usize = 200;
const TEXTS_TRIED: usize = 16;

/// What is asked of the database, and looked for on the disk.
#[derive(Debug)]
pub struct Choice {
    pub table: String,
    pub text: String,
    pub query: String,
}

/// Northwind as a new file.
pub fn northwind(to: &Path) -> Result<Choice, Failure> {
    let make = || -> rusqlite::Result<()> {
        let db = Connection::open(to)?;
        db.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")?;
        db.execute_batch(NORTHWIND)
    };
    make().map_err(|error| about(to, error, "is the disk full?"))?;
    Ok(Choice {
        table: "Customers".to_owned(),
        text: "Alfreds Futterkiste".to_owned(),
        query: "SELECT CompanyName, ContactName, City FROM Customers ORDER BY CustomerID LIMIT 3"
            .to_owned(),
    })
}

/// A database can be shown that is plain and whole.
pub fn require_plain(from: &Path) -> Result<(), Failure> {
    let (message, hint) = match inspect(from)?.kind {
        Kind::Plain => return Ok(()),
        Kind::Empty => ("it is empty: there is nothing to show", "name a database with a table"),
        Kind::Sealed(_) | Kind::Unfinished => (
            "it is encrypted already, and the demo begins with a plain one",
            "`pellucid decrypt` turns a copy of it back",
        ),
        _ => ("not an SQLite database", "look at the path"),
    };
    Err(Failure::new(Id::DemoSource, message, hint).about(from))
}

/// Copies `from`, which is not written to, and leaves nothing beside it.
pub fn copy(from: &Path, to: &Path, load: &[String]) -> Result<(), Failure> {
    let wal = with_suffix(from, "-wal");
    // A read-only connection would make the WAL's files where they are not there; then nobody has it open either.
    if is_wal(from)? && !(wal.exists() && with_suffix(from, "-shm").exists()) {
        copy_files(from, to, "-wal")?;
    } else if let Err(error) = back_up(from, to) {
        // A hot journal cannot be rolled back without writing, so this is done on the copy.
        if !with_suffix(from, "-journal").exists() {
            return Err(about(from, error, "is it whole, and not in use?"));
        }
        copy_files(from, to, "-journal")?;
    }
    // Ends what was copied unfinished, and shows that it can be read.
    let whole = || -> rusqlite::Result<String> {
        let db = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        for extension in load {
            pellucid_bundled::load(&db, Path::new(extension))?;
        }
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
    };
    for extension in load {
        pellucid_files::trusted::check_extension(Path::new(extension))?;
    }
    let said = whole().map_err(|error| {
        let hint = match load.is_empty() && needs_its_application(&error) {
            true => "`--load FILE` loads an extension that has the collations and functions of its application",
            false => "`PRAGMA integrity_check` says more",
        };
        about(from, error, hint)
    })?;
    if said == "ok" {
        return Ok(());
    }
    let message = format!("`{}` is damaged: {}", from.display(), said.replace('\n', " "));
    Err(Failure::new(Id::DemoSource, message, "`PRAGMA integrity_check` says more"))
}

/// Whether SQLite only does not know a name that the schema uses.
fn needs_its_application(error: &rusqlite::Error) -> bool {
    let (code, text) = match error {
        rusqlite::Error::SqliteFailure(code, Some(text)) => (code, text),
        rusqlite::Error::SqlInputError { error, msg, .. } => (error, msg),
        _ => return false,
    };
    is_told_of_the_application(code.extended_code, text)
}

fn back_up(from: &Path, to: &Path) -> rusqlite::Result<()> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    source.busy_timeout(std::time::Duration::from_secs(10))?;
    let mut target = Connection::open(to)?;
    let step = Backup::new(&source, &mut target)?.step(-1)?;
    match step {
        StepResult::Done => Ok(()),
        _ => Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
            Some("another program is writing to it".to_owned()),
        )),
    }
}

/// The read version of the file format: 2 is WAL (fileformat2.html, 1.3.3).
fn is_wal(path: &Path) -> Result<bool, Failure> {
    let mut start = [0; 20];
    let mut file = File::open(path).map_err(|error| io(path, error))?;
    file.read_exact(&mut start).map_err(|error| io(path, error))?;
    Ok(start[19] == 2)
}

fn copy_files(from: &Path, to: &Path, suffix: &str) -> Result<(), Failure> {
    let pairs =
        [(from.to_owned(), to.to_owned()), (with_suffix(from, suffix), with_suffix(to, suffix))];
    for (from, to) in pairs.iter().filter(|(from, _)| from.exists()) {
        // Contents only: the original may be read-only.
        let copied =
            File::open(from).and_then(|mut from| std::io::copy(&mut from, &mut File::create(to)?));
        copied.map_err(|error| io(from, error))?;
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A table, and a text in it that can be recognised on the disk; at worst the statement that made the table.
pub fn choose(path: &Path, image: &Image, encoding: Encoding) -> Result<Choice, Failure> {
    let failed = |error| about(path, error, "`PRAGMA integrity_check` says more");
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    let tables = tables(&db).map_err(failed)?;
    // A table whose columns need a program's own functions is left out.
    let rows = tables.iter().flat_map(|table| {
        let texts = texts(&db, &table.name).unwrap_or_default();
        texts.into_iter().map(move |text| (table, text))
    });
    let statements = tables.iter().map(|table| {
        (table, table.sql.chars().take_while(|c| is_plain(*c)).take(40).collect::<String>())
    });
    for (table, text) in rows.take(TEXTS_TRIED).chain(statements.take(TEXTS_TRIED)) {
        if text.len() >= 8 && image.search(&encoding.bytes(&text))?.count > 0 {
            return Ok(choice(table, text));
        }
    }
    let what = if tables.is_empty() { "table" } else { "text of plain characters to look for" };
    Err(Failure::new(
        Id::DemoSource,
        format!("the database has no {what}"),
        "name another one, or none for Northwind",
    ))
}

struct Table {
    name: String,
    sql: String,
    indexed: bool,
}

fn choice(table: &Table, text: String) -> Choice {
    // Through an index the count would not come to the page that is changed later.
    let indexed = if table.indexed { " NOT INDEXED" } else { "" };
    Choice {
        table: table.name.clone(),
        text,
        query: format!("SELECT count(*) FROM {}{indexed}", quote(&table.name)),
    }
}

/// Ordinary tables, by names that can be typed.
fn tables(db: &Connection) -> rusqlite::Result<Vec<Table>> {
    let mut statement = db.prepare(
        "SELECT name, sql,
             EXISTS (SELECT 1 FROM sqlite_schema i WHERE i.type = 'index' AND i.tbl_name = t.name)
         FROM sqlite_schema t
         WHERE type = 'table' AND rootpage > 1 AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
         LIMIT ?1",
    )?;
    let rows = statement.query_map([TABLES_TRIED as i64], |row| {
        let text = |column| -> rusqlite::Result<String> {
            Ok(row.get_ref(column)?.as_str().unwrap_or_default().to_owned())
        };
        Ok(Table { name: text(0)?, sql: text(1)?, indexed: row.get(2)? })
    })?;
    let mut tables = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    tables.retain(|table| !table.name.is_empty() && !table.name.contains(char::is_control));
    Ok(tables)
}

/// Texts of 8 to 40 plain characters, of which more than five are different.
fn texts(db: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut texts = Vec::new();
    let mut statement =
        db.prepare(&format!("SELECT * FROM {} LIMIT {ROWS_TRIED}", quote(table)))?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            let ValueRef::Text(text) = row.get_ref(column)? else { continue };
            let Ok(text) = std::str::from_utf8(text) else { continue };
            let mut different: Vec<char> = text.chars().take(41).collect();
            let fits = (8..=40).contains(&different.len()) && text.chars().all(is_plain);
            different.sort_unstable();
            different.dedup();
            if fits && different.len() > 5 {
                texts.push(text.to_owned());
            }
            if texts.len() == TEXTS_TRIED {
                return Ok(texts);
            }
        }
    }
    Ok(texts)
}

fn is_plain(character: char) -> bool {
    matches!(character, ' '..='~')
}

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn about(path: &Path, error: rusqlite::Error, hint: &str) -> Failure {
    Failure::new(Id::DemoSource, format!("`{}`: {error}", path.display()), hint)
}

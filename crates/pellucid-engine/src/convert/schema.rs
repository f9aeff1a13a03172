//! The parts of a schema that a conversion depends on: names that only the application has, and the
//! order of the schema's rows, which `VACUUM INTO` changes and dumps show.

use std::path::Path;

use pellucid::shown::Shown;
use pellucid_host::connection::Handle;
use pellucid_host::ffi;
use pellucid_host::{DatabaseError, Options};

/// Builds the schema's tables and indexes in memory, where SQLite resolves every name in them.
///
/// # Errors
/// [`DatabaseError::Schema`] with SQLite's words for each object that cannot be built.
pub fn check(path: &Path, source: &Handle<'_>, options: &Options) -> Result<(), DatabaseError> {
    let trial = Handle::open(path, ":memory:", ffi::OPEN_READWRITE | ffi::OPEN_CREATE)?;
    options.equip(&trial)?;
    let encoding = source.text("PRAGMA encoding")?;
    trial.run(&format!("PRAGMA encoding={}", pellucid_host::connection::literal(&encoding)))?;
    let mut objects = Vec::new();
    source.rows(
        "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND rootpage > 0 \
         AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type DESC",
        |row| objects.push((row.text(0), row.text(1), row.text(2))),
    )?;
    let mut missing = Vec::new();
    for (kind, name, sql) in objects {
        // SQLite names one missing name at a time. Each is made up, so that SQLite names the next
        // one.
        while let Err(DatabaseError::Sqlite { message, .. }) = trial.run(&sql) {
            let Some(need) = Need::of(&message) else { break };
            let told = format!("{message} ({kind} `{name}`)");
            if missing.contains(&told) {
                break;
            }
            missing.push(told);
            need.make_up(&trial)?;
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(DatabaseError::Schema { file: path.shown().to_string(), missing })
}

/// Whether the error means only that SQLite does not know a name that the schema uses. It says
/// nothing about the database's content.
pub(crate) fn is_of_the_application(error: &DatabaseError) -> bool {
    let DatabaseError::Sqlite { code, message, .. } = error else { return false };
    is_told_of_the_application(*code, message)
}

/// The same of SQLite's result code and message.
pub fn is_told_of_the_application(code: i32, message: &str) -> bool {
    // Virtual tables have modules, and those of full-text search tokenizers, as well (src/vtab.c, ext/fts3, ext/fts5).
    let names = ["no such module: ", "no such tokenizer: ", "unknown tokenizer: "];
    code & 0xff == ffi::ERROR
        && (Need::of(message).is_some() || names.iter().any(|name| message.starts_with(name)))
}

/// A name that SQLite does not know.
enum Need {
    Collation(String),
    Function(String),
}

impl Need {
    /// Reads the name from SQLite's message (src/build.c, src/resolve.c).
    fn of(message: &str) -> Option<Self> {
        let after = |prefix| message.strip_prefix(prefix).map(str::to_owned);
        let collation = after("no such collation sequence: ").map(Self::Collation);
        let function = after("no such function: ")
            .or_else(|| after("unknown function: ")?.strip_suffix("()").map(str::to_owned));
        collation.or(function.map(Self::Function))
    }

    fn make_up(&self, trial: &Handle<'_>) -> Result<(), DatabaseError> {
        match self {
            Self::Collation(name) => trial.make_up_collation(name),
            Self::Function(name) => trial.make_up_function(name),
        }
    }
}

/// A number greater than any rowid of the schema table.
const ASIDE: i64 = 1 << 40;

/// The schema's rows in their order: `(rowid, type, name)`.
pub type Order = Vec<(i64, String, String)>;

/// Reads the order of the schema's rows.
///
/// # Errors
/// SQLite's.
pub fn order(source: &Handle<'_>) -> Result<Order, DatabaseError> {
    let mut order = Vec::new();
    source.rows("SELECT rowid, type, name FROM sqlite_schema", |row| {
        order.push((row.number(0), row.text(1), row.text(2)));
    })?;
    Ok(order)
}

/// Puts the rows of the copy under `uri` into that order: `VACUUM INTO` writes virtual tables, views
/// and triggers last.
///
/// # Errors
/// SQLite's.
pub fn restore_order(
    path: &Path,
    uri: &str,
    order: &Order,
    options: &Options,
) -> Result<(), DatabaseError> {
    use pellucid_host::connection::literal;
    let copy = Handle::open(path, uri, ffi::OPEN_READWRITE)?;
    options.equip(&copy)?;
    copy.run("PRAGMA synchronous=OFF")?;
    copy.run("PRAGMA journal_mode=MEMORY")?;
    copy.run("PRAGMA writable_schema=ON")?;
    copy.run("BEGIN")?;
    for (rowid, kind, name) in order {
        copy.run(&format!(
            "UPDATE sqlite_schema SET rowid={} WHERE type={} AND name={}",
            rowid + ASIDE,
            literal(kind),
            literal(name)
        ))?;
    }
    copy.run(&format!("UPDATE sqlite_schema SET rowid=rowid-{ASIDE} WHERE rowid>{ASIDE}"))?;
    copy.run("COMMIT")
}

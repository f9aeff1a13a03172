//! Statements of SQL one after the other: each timed, what it returns counted and hashed.
//!
//! Rows are read to the last column, as a client reads them. The hash is there to tell whether two databases answer
//! alike, not to keep anybody from making them seem to.

use std::time::Instant;

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::machine::own_cpu_seconds;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, Rows, Statement};
use serde::{Deserialize, Serialize};

use super::temporary::Temporary;

/// Of what a statement returned first, for messages.
const FIRST_CHARS: usize = 100;

/// Which statements a worker executes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Task {
    /// Executed before anything is timed.
    pub before: String,
    pub sql: String,
    /// Takes the processor time of each statement, which costs microseconds.
    pub each: bool,
    /// Looks for this text in temporary files.
    pub looks_for: Option<String>,
}

impl Task {
    /// `sql`, with the processor time of each statement.
    pub fn of(sql: &str) -> Self {
        Self { before: String::new(), sql: sql.into(), each: true, looks_for: None }
    }
}

/// One statement that was executed to its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Done {
    /// As SQLite has it.
    pub text: String,
    /// Compiling included.
    pub wall_s: f64,
    pub cpu_s: Option<f64>,
    /// That it returned.
    pub rows: u64,
    /// That it inserted, updated or deleted, triggers' included.
    pub changed_rows: u64,
    /// Of all values, in their order.
    pub hash: u64,
    /// The beginning of the first value.
    pub first: Option<String>,
    pub temporary: Temporary,
}

/// Seconds since it began, without pauses.
#[derive(Debug)]
struct Clock {
    cpu: bool,
    wall_s: f64,
    cpu_s: Option<f64>,
    since: (Instant, Option<f64>),
}

impl Clock {
    fn start(cpu: bool) -> Self {
        let mut clock = Self { cpu, wall_s: 0.0, cpu_s: Some(0.0), since: (Instant::now(), None) };
        clock.go_on();
        clock
    }

    fn go_on(&mut self) {
        let cpu_s = if self.cpu { own_cpu_seconds() } else { None };
        self.since = (Instant::now(), cpu_s);
    }

    fn pause(&mut self) {
        self.wall_s += self.since.0.elapsed().as_secs_f64();
        let cpu_s = if self.cpu { own_cpu_seconds() } else { None };
        let spent = cpu_s.zip(self.since.1).map(|(end, start)| end - start);
        self.cpu_s = self.cpu_s.zip(spent).map(|(sum, spent)| sum + spent);
    }
}

/// Executes every statement of the task.
///
/// # Errors
/// [`Error::Invalid`] for the first that fails, with its number and text.
pub fn perform(connection: &Connection, task: &Task) -> Result<Vec<Done>> {
    connection.execute_batch(&task.before).map_err(Error::sqlite(task.before.clone()))?;
    let mut batch = Batch::new(connection, &task.sql);
    let mut all: Vec<Done> = Vec::new();
    loop {
        let number = all.len() + 1;
        let wrong = |error: rusqlite::Error| {
            Error::invalid(format!("statement {number} of the SQL: {error}"))
        };
        let changes = connection.total_changes();
        let mut clock = Clock::start(task.each);
        let Some(mut statement) = batch.next().map_err(wrong)? else { return Ok(all) };
        clock.pause();
        let text = text_of(&statement);
        let wrong = |error: rusqlite::Error| {
            Error::invalid(format!("statement {number} of the SQL, `{}`: {error}", brief(&text)))
        };
        let mut temporary = Temporary::default();
        let mut answer = Answer::default();
        clock.go_on();
        let columns = statement.column_count();
        let mut rows = statement.query([]).map_err(wrong)?;
        while answer.take(&mut rows, columns).map_err(wrong)? {
            // What is sorted has been written by now, and goes with the last row. The clock stands still.
            if let (1, Some(looks_for)) = (answer.rows, &task.looks_for) {
                clock.pause();
                temporary = Temporary::look(looks_for)?;
                clock.go_on();
            }
        }
        drop(rows);
        clock.pause();
        if let Some(looks_for) = &task.looks_for {
            temporary = temporary.and(Temporary::look(looks_for)?);
        }
        let Answer { rows, hash, first } = answer;
        let changed_rows = connection.total_changes() - changes;
        let (wall_s, cpu_s) = (clock.wall_s, clock.cpu_s);
        all.push(Done { text, wall_s, cpu_s, rows, changed_rows, hash: hash.0, first, temporary });
    }
}

/// The text of a statement, in one line and without comments.
fn text_of(statement: &Statement<'_>) -> String {
    let text = statement.expanded_sql().unwrap_or_default();
    one_line(&text)
}

/// Its beginning, as far as a message or a name of a cell goes.
pub fn brief(text: &str) -> String {
    const CHARS: usize = 60;
    let mut brief: String = text.chars().take(CHARS).collect();
    if text.chars().nth(CHARS).is_some() {
        brief.truncate(brief.trim_end().len());
        brief.push('…');
    }
    brief
}

/// Without the comments before it, and with one space for each run of blanks.
fn one_line(sql: &str) -> String {
    let mut rest = sql.trim_start();
    loop {
        let after = if rest.starts_with("--") {
            rest.split_once('\n').map_or("", |(_, after)| after)
        } else if rest.starts_with("/*") {
            rest.split_once("*/").map_or("", |(_, after)| after)
        } else {
            break;
        };
        rest = after.trim_start();
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    words.join(" ").trim_end_matches(';').trim_end().to_string()
}

/// What a statement returned so far.
#[derive(Debug, Default)]
struct Answer {
    rows: u64,
    hash: Hash,
    first: Option<String>,
}

impl Answer {
    /// Reads the next row; false after the last one.
    fn take(&mut self, rows: &mut Rows<'_>, columns: usize) -> rusqlite::Result<bool> {
        let Some(row) = rows.next()? else { return Ok(false) };
        for column in 0..columns {
            let value = row.get_ref(column)?;
            self.hash.add(value);
            if self.rows == 0 && column == 0 {
                self.first = Some(shown(value));
            }
        }
        self.rows += 1;
        Ok(true)
    }
}

fn shown(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".into(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).chars().take(FIRST_CHARS).collect(),
        ValueRef::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}

/// FNV-1a over 64 bits (draft-eastlake-fnv), of each value its type, its length and its bytes.
#[derive(Debug)]
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn add(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => self.bytes(0, &[]),
            ValueRef::Integer(number) => self.bytes(1, &number.to_be_bytes()),
            ValueRef::Real(number) => self.bytes(2, &number.to_bits().to_be_bytes()),
            ValueRef::Text(text) => self.bytes(3, text),
            ValueRef::Blob(bytes) => self.bytes(4, bytes),
        }
    }

    fn bytes(&mut self, kind: u8, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_be_bytes();
        for byte in [kind].iter().chain(&length).chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILL: &str = "-- rows\nCREATE TABLE t(a, b);
        INSERT INTO t VALUES (1, 'x'), (2, NULL), (3, x'00');
        /* all */ SELECT a,\n  b FROM t ORDER BY a;";

    fn done(before: &str, sql: &str) -> Result<Vec<Done>> {
        let connection = Connection::open_in_memory().unwrap();
        perform(&connection, &Task { before: before.into(), ..Task::of(sql) })
    }

    #[test]
    fn each_statement_is_told_with_what_it_did() {
        let all = done("", FILL).unwrap();
        let found: Vec<_> =
            all.iter().map(|one| (&*one.text, one.rows, one.changed_rows)).collect();
        assert_eq!(
            found,
            [
                ("CREATE TABLE t(a, b)", 0, 0),
                ("INSERT INTO t VALUES (1, 'x'), (2, NULL), (3, x'00')", 0, 3),
                ("SELECT a, b FROM t ORDER BY a", 3, 0),
            ]
        );
        assert_eq!(all[2].first.as_deref(), Some("1"));
        assert!(all.iter().all(|one| one.wall_s > 0.0), "{all:?}");
    }

    #[test]
    fn answers_that_differ_in_a_value_its_type_or_their_order_have_another_hash() {
        let hash = |sql: &str| done("", sql).unwrap().remove(0).hash;
        let same = "VALUES (1, 'ab'), (2, NULL)";
        assert_eq!(hash(same), hash(same));
        for other in [
            "VALUES (1, 'ac'), (2, NULL)",
            "VALUES (1, 'ab'), (2, '')",
            "VALUES ('1', 'ab'), (2, NULL)",
            "VALUES (2, NULL), (1, 'ab')",
            "VALUES (1.0, 'ab'), (2, NULL)",
            "VALUES (1, x'6162'), (2, NULL)",
        ] {
            assert_ne!(hash(same), hash(other), "{other}");
        }
        assert_ne!(hash("VALUES ('ab', 'c')"), hash("VALUES ('a', 'bc')"));
    }

    #[test]
    fn a_statement_that_fails_is_named() {
        let error = done("CREATE TABLE t(a)", "SELECT 1; SELECT b FROM t").unwrap_err().to_string();
        assert!(error.contains("statement 2") && error.contains("no such column: b"), "{error}");
        let error = done("CREATE TABLE t(a PRIMARY KEY)", "INSERT INTO t VALUES (1), (1)")
            .unwrap_err()
            .to_string();
        assert!(error.contains("statement 1") && error.contains("`INSERT INTO t"), "{error}");
        assert!(done("", "SELECT ?1").is_err(), "a parameter that nobody gives");
        assert!(done("", " -- nothing\n").unwrap().is_empty());
    }

    #[test]
    fn a_sort_in_a_temporary_file_is_seen_and_one_in_memory_is_not() {
        let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) \
             SELECT hex(i * 2654435761 % 4294967296) || ' a text that can be read ' || i FROM n ORDER BY 1";
        let seen = |store: &str| {
            let connection = Connection::open_in_memory().unwrap();
            let before = format!("PRAGMA temp_store = {store}; PRAGMA cache_size = -500");
            let looks_for = Some("a text that can be read".into());
            let task = Task { before, looks_for, ..Task::of(sql) };
            perform(&connection, &task).unwrap().remove(0)
        };
        let file = seen("FILE");
        assert!(file.temporary.bytes > 1 << 20 && file.temporary.is_readable, "{file:?}");
        assert_eq!(file.rows, 50_000);
        // Other tests of this process have files of their own.
        assert!(!seen("MEMORY").temporary.is_readable);
    }

    #[test]
    fn a_name_is_short() {
        assert_eq!(brief("SELECT 1"), "SELECT 1");
        let long = brief(&"x ".repeat(100));
        assert!(long.ends_with("x…") && long.chars().count() <= 61, "{long}");
    }
}

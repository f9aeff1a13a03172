//! A script: what is done, step by step, to the plain and to the sealed database; and its text form.
//!
//! One step a line. In SQL, `'@b.db'` stands for the database `b.db` of whichever side runs it, and
//! `p.db` is plain on both sides.

use std::fmt;
use std::str::FromStr;

/// This file is plain on both sides.
pub const PLAIN: &str = "p.db";
/// Connections a script may have.
pub const CONNECTIONS: usize = 4;

/// One thing that is done on both sides. The first number of each is that of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Open(usize, String),
    Close(usize),
    /// A statement, to its end.
    Sql(usize, String),
    /// A statement that is interrupted after so many operations of SQLite's virtual machine.
    Interrupt(usize, u32, String),
    /// A query that is begun and kept open, with the locks it holds.
    Cursor(usize, String),
    /// So many rows more of the open query.
    Fetch(usize, u32),
    /// Ends the open query.
    Drop(usize),
    /// Begins a backup of a schema to a connection's schema.
    Backup {
        to: usize,
        to_schema: String,
        from: usize,
        from_schema: String,
    },
    /// Copies so many pages, all if negative.
    Copy(usize, i32),
    /// Ends the backup, finished or not.
    Finish(usize),
    /// Reads, or overwrites, part of a value without SQL.
    Blob {
        on: usize,
        schema: String,
        table: String,
        row: i64,
        offset: u32,
        length: u32,
        write: bool,
    },
    /// The bytes of a database as `sqlite3_serialize` gives them.
    Serialize(usize, String),
    /// All connections are gone from one moment to the next, as under kill -9.
    Kill,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(on, file) => write!(f, "open {on} {file}"),
            Self::Close(on) => write!(f, "close {on}"),
            Self::Sql(on, sql) => write!(f, "sql {on} {sql}"),
            Self::Interrupt(on, after, sql) => write!(f, "interrupt {on} {after} {sql}"),
            Self::Cursor(on, sql) => write!(f, "cursor {on} {sql}"),
            Self::Fetch(on, rows) => write!(f, "fetch {on} {rows}"),
            Self::Drop(on) => write!(f, "drop {on}"),
            Self::Backup { to, to_schema, from, from_schema } => {
                write!(f, "backup {to} {to_schema} {from} {from_schema}")
            }
            Self::Copy(to, pages) => write!(f, "copy {to} {pages}"),
            Self::Finish(to) => write!(f, "finish {to}"),
            Self::Blob { on, schema, table, row, offset, length, write } => {
                write!(f, "blob {on} {schema} {table} {row} {offset} {length} {write}")
            }
            Self::Serialize(on, schema) => write!(f, "serialize {on} {schema}"),
            Self::Kill => write!(f, "kill"),
        }
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        parse(line).ok_or_else(|| format!("no step: {line}"))
    }
}

fn parse(line: &str) -> Option<Step> {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let words: Vec<&str> = rest.split(' ').collect();
    let on = || words[0].parse().ok().filter(|on| *on < CONNECTIONS);
    let word = |n: usize| words.get(n).map(|word| (*word).to_owned());
    let sql = |skip: usize| rest.splitn(skip + 1, ' ').nth(skip).map(str::to_owned);
    Some(match verb {
        "open" => Step::Open(on()?, word(1)?),
        "close" => Step::Close(on()?),
        "sql" => Step::Sql(on()?, sql(1)?),
        "interrupt" => Step::Interrupt(on()?, word(1)?.parse().ok()?, sql(2)?),
        "cursor" => Step::Cursor(on()?, sql(1)?),
        "fetch" => Step::Fetch(on()?, word(1)?.parse().ok()?),
        "drop" => Step::Drop(on()?),
        "backup" => Step::Backup {
            to: on()?,
            to_schema: word(1)?,
            from: word(2)?.parse().ok().filter(|from| *from < CONNECTIONS)?,
            from_schema: word(3)?,
        },
        "copy" => Step::Copy(on()?, word(1)?.parse().ok()?),
        "finish" => Step::Finish(on()?),
        "blob" => Step::Blob {
            on: on()?,
            schema: word(1)?,
            table: word(2)?,
            row: word(3)?.parse().ok()?,
            offset: word(4)?.parse().ok()?,
            length: word(5)?.parse().ok()?,
            write: word(6)?.parse().ok()?,
        },
        "serialize" => Step::Serialize(on()?, word(1)?),
        "kill" => Step::Kill,
        _ => return None,
    })
}

/// Steps, and how the plain side is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Whether the plain side's pages leave the same bytes unused as sealed pages do. Then both sides
    /// have the same pages, and even numbers of pages, of WAL frames and `SQLITE_FULL` have to agree.
    pub same_pages: bool,
    pub steps: Vec<Step>,
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "pages {}", if self.same_pages { "same" } else { "ordinary" })?;
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl FromStr for Script {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let same_pages = match lines.next() {
            Some("pages same") => true,
            Some("pages ordinary") => false,
            other => return Err(format!("`pages same` or `pages ordinary`, not {other:?}")),
        };
        let steps = lines.map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { same_pages, steps })
    }
}

#[test]
fn a_script_survives_its_text() {
    let text =
        "pages same\nopen 0 a.db\nsql 0 SELECT 'a  b' || 1\ninterrupt 1 50 VACUUM INTO '@v.db'\n\
                cursor 0 SELECT 1\nfetch 0 3\ndrop 0\nbackup 1 main 0 x\ncopy 1 -1\nfinish 1\n\
                blob 0 main r0 5 7 100 true\nserialize 0 main\nkill\nclose 0\n";
    assert_eq!(text.parse::<Script>().unwrap().to_string(), text);
}

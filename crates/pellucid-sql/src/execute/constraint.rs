//! ALTER TABLE ADD of constraints: SQLite adds none to a table, so the table is made anew, with its rows, in one savepoint.

use pellucid_tsql::ast::{Expression, IndexColumn, Name, TableConstraint, TableRule};
use rusqlite::OptionalExtension;

use super::object::{
    constraint_text, default_text, first_name, found_twice, is_of_xml, refuse_default_of_xml,
};
use super::{Done, Raised};
use crate::message::{table, Message};
use crate::session::{row_name, Session, IDENTITY_IS};
use crate::translate::quoted;

/// Behind the type of an identity, which is the key of its table.
const IDENTITY: &str = " PRIMARY KEY AUTOINCREMENT";

/// What SQLite says of a column.
struct Found {
    name: String,
    is_key: bool,
    is_nullable: bool,
    has_default: bool,
    is_generated: bool,
}

/// The text of a table, taken apart.
struct Text {
    /// Up to the bracket.
    head: String,
    /// Columns and constraints.
    parts: Vec<String>,
}

impl Session {
    /// Adds all of them, or none. The caller has a savepoint around it.
    pub(super) fn add_constraints(
        &self,
        schema: &str,
        sqlite: &str,
        constraints: &[&TableConstraint],
    ) -> Done {
        let sql = self.table_sql(schema, sqlite)?;
        let Some(mut text) = Text::of(&sql) else {
            return Err(Message::unsupported("ADD CONSTRAINT to a table of this form").into());
        };
        let columns = self.columns_found(schema, sqlite)?;
        for constraint in constraints {
            text.add(constraint, sqlite, &columns)?;
        }
        if self.has_triggers(schema, sqlite)? {
            return Err(Message::unsupported("ADD CONSTRAINT to a table with triggers").into());
        }
        let (own, copy) = (
            format!("{}.{}", quoted(schema), quoted(sqlite)),
            format!("{}.{}", quoted(schema), quoted(&format!("{sqlite} before"))),
        );
        let connection = &self.databases.connection;
        let any = format!("SELECT 1 FROM {own} LIMIT 1");
        let has_rows = connection.query_row(&any, [], |_| Ok(())).optional()?.is_some();
        if has_rows && self.is_referenced(schema, sqlite)? {
            // SQLite would take the rows of the other table along.
            let what = "ADD CONSTRAINT to a table with rows that a foreign key refers to";
            return Err(Message::unsupported(what).into());
        }
        let list: Vec<String> = columns
            .iter()
            .filter(|column| !column.is_generated)
            .map(|column| quoted(&column.name))
            .collect();
        let list = list.join(", ");
        let number = match self.databases.has_rowid(schema, sqlite)? {
            true => row_name(columns.iter().map(|column| column.name.as_str())),
            false => None,
        };
        let order = number.map_or_else(String::new, |number| format!(" ORDER BY {number}"));
        let indexes = self.indexes_of(schema, sqlite)?;
        let number = self.number_of(schema, sqlite)?;
        let mut made = String::new();
        if has_rows {
            made += &format!("CREATE TABLE {copy} AS SELECT {list} FROM {own}{order};\n");
        }
        made += &format!("DROP TABLE {own};\n{};\n", text.sql(schema));
        if has_rows {
            made += &format!(
                "INSERT INTO {own}({list}) SELECT {list} FROM {copy} ORDER BY {};\n",
                row_name(columns.iter().map(|column| column.name.as_str()))
                    .unwrap_or_else(|| "1".to_owned())
            );
            made += &format!("DROP TABLE {copy};\n");
        }
        for index in indexes {
            made += &format!("{index};\n");
        }
        let connection = &self.databases.connection;
        let done = connection.execute_batch(&made);
        done.map_err(|error| violated(error.into(), sqlite, constraints))?;
        if let Some(number) = number {
            let sequence = format!("{}.sqlite_sequence", quoted(schema));
            connection.execute(&format!("DELETE FROM {sequence} WHERE name = ?1"), [sqlite])?;
            let sql = format!("INSERT INTO {sequence}(name, seq) VALUES (?1, ?2)");
            connection.execute(&sql, (sqlite, number))?;
        }
        Ok(())
    }

    fn columns_found(&self, schema: &str, sqlite: &str) -> Done<Vec<Found>> {
        let sql = "SELECT name, pk > 0, \"notnull\" = 0, dflt_value IS NOT NULL, hidden > 0 FROM pragma_table_xinfo(?1, ?2)";
        let mut statement = self.databases.connection.prepare(sql)?;
        let rows = statement.query_map([sqlite, schema], |row| {
            Ok(Found {
                name: row.get(0)?,
                is_key: row.get(1)?,
                is_nullable: row.get(2)?,
                has_default: row.get(3)?,
                is_generated: row.get(4)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The statements that made its indexes, with the database in front of their names.
    fn indexes_of(&self, schema: &str, sqlite: &str) -> Done<Vec<String>> {
        let sql = format!(
            "SELECT sql FROM {}.sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?1 COLLATE NOCASE",
            quoted(schema)
        );
        let mut statement = self.databases.connection.prepare(&sql)?;
        let rows = statement.query_map([sqlite], |row| row.get::<_, String>(0))?;
        let mut found = Vec::new();
        for sql in rows {
            let sql = sql?;
            let start = ["CREATE INDEX ", "CREATE UNIQUE INDEX "]
                .into_iter()
                .find_map(|start| Some((start, sql.strip_prefix(start)?)));
            let Some((start, rest)) = start else {
                return Err(
                    Message::unsupported("ADD CONSTRAINT to a table with this index").into()
                );
            };
            found.push(format!("{start}{}.{rest}", quoted(schema)));
        }
        Ok(found)
    }

    /// The last number of its identity.
    fn number_of(&self, schema: &str, sqlite: &str) -> Done<Option<i64>> {
        let schema = quoted(schema);
        let there = format!("SELECT 1 FROM {schema}.sqlite_schema WHERE name = 'sqlite_sequence'");
        let connection = &self.databases.connection;
        if connection.query_row(&there, [], |_| Ok(())).optional()?.is_none() {
            return Ok(None);
        }
        let sql = format!("SELECT seq FROM {schema}.sqlite_sequence WHERE name = ?1");
        Ok(connection.query_row(&sql, [sqlite], |row| row.get(0)).optional()?)
    }
}

impl Text {
    /// None of a text with comments, but for those that give an identity its type, or with options behind its bracket.
    fn of(sql: &str) -> Option<Self> {
        let head = sql.strip_prefix("CREATE TABLE ")?;
        let (mut depth, mut parts, mut open) = (0_u32, Vec::new(), None);
        let mut start = 0;
        let mut end_of_comment = 0;
        for (at, next) in unquoted(head) {
            if at < end_of_comment {
                continue;
            }
            match next {
                '-' if head[at..].starts_with("--") => return None,
                '/' if head[at..].starts_with(IDENTITY_IS) => {
                    if !head[..at].ends_with(" INTEGER ") {
                        return None;
                    }
                    end_of_comment = at + head[at..].find("*/")? + 2;
                }
                '(' => {
                    depth += 1;
                    if depth == 1 {
                        open = Some(at);
                        start = at + 1;
                    }
                }
                ',' if depth == 1 => {
                    parts.push(head[start..at].to_owned());
                    start = at + 1;
                }
                ')' => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        parts.push(head[start..at].to_owned());
                        let is_end = head[at + 1..].trim().is_empty();
                        let head = head[..open?].to_owned();
                        return is_end.then_some(Self { head, parts });
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn sql(&self, schema: &str) -> String {
        format!("CREATE TABLE {}.{}({})", quoted(schema), self.head, self.parts.join(","))
    }

    fn column(&mut self, name: &str) -> Option<&mut String> {
        let is_it = |part: &&mut String| {
            first_name(part).is_some_and(|first| first.eq_ignore_ascii_case(name))
        };
        self.parts.iter_mut().find(is_it)
    }

    fn add(&mut self, constraint: &TableConstraint, table: &str, columns: &[Found]) -> Done {
        match &constraint.rule {
            TableRule::Default { value, column } => {
                self.add_default(constraint.name.as_ref(), value, column, table, columns)
            }
            TableRule::Key { key, columns: of_key } if key.primary => {
                self.add_primary_key(constraint, of_key, table, columns)
            }
            _ => {
                self.parts.extend(constraint_text(constraint, None)?);
                Ok(())
            }
        }
    }

    fn add_default(
        &mut self,
        name: Option<&Name>,
        value: &Expression,
        column: &Name,
        table: &str,
        columns: &[Found],
    ) -> Done {
        let is_it = |found: &&Found| found.name.eq_ignore_ascii_case(column.as_str());
        let (Some(found), Some(part)) = (columns.iter().find(is_it), self.column(column.as_str()))
        else {
            let unknown = Message::of(table::UNKNOWN_COLUMN_OF, [&column.as_str(), &table]);
            return Err(super::Raised::from(unknown).and(not_made()));
        };
        if found.has_default {
            return Err(super::Raised::from(Message::of(table::DEFAULT_TWICE, [])).and(not_made()));
        }
        if is_of_xml(part) {
            refuse_default_of_xml(value)?;
        }
        if let Some(name) = name {
            *part += &format!(" CONSTRAINT {}", quoted(name.as_str()));
        }
        *part += &format!(" DEFAULT {}", default_text(value)?);
        Ok(())
    }

    /// A column that takes NULL takes it no more: SQLite would in a primary key.
    fn add_primary_key(
        &mut self,
        constraint: &TableConstraint,
        of_key: &[IndexColumn],
        table: &str,
        columns: &[Found],
    ) -> Done {
        let of_identity = |part: &&String| find(part, IDENTITY).is_some();
        let identity = self.parts.iter().find(of_identity).and_then(|part| first_name(part));
        if identity.is_none() && columns.iter().any(|column| column.is_key) {
            let twice = Message::of(table::PRIMARY_KEY_TWICE, [&table]);
            return Err(super::Raised::from(twice).and(not_made()));
        }
        for column in of_key {
            let name = column.name.as_str();
            let found = columns.iter().find(|found| found.name.eq_ignore_ascii_case(name));
            let (Some(found), Some(part)) = (found, self.column(name)) else {
                let unknown = Message::of(table::UNKNOWN_COLUMN_OF_KEY, [&name]);
                return Err(super::Raised::from(unknown).and(not_made()));
            };
            if found.is_nullable && !found.is_key {
                *part += " NOT NULL";
            }
        }
        let text = constraint_text(constraint, identity.as_deref())?;
        match (text, &constraint.name, identity) {
            (Some(text), ..) => self.parts.push(text),
            // The identity is the table's key already: it gets the name.
            (None, Some(name), Some(identity)) => {
                if let Some(part) = self.column(&identity) {
                    if find(part, " CONSTRAINT ").is_some() {
                        let twice = Message::of(table::PRIMARY_KEY_TWICE, [&table]);
                        return Err(super::Raised::from(twice).and(not_made()));
                    }
                    if let Some(at) = find(part, IDENTITY) {
                        part.insert_str(at, &format!(" CONSTRAINT {}", quoted(name.as_str())));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The characters that are in no literal and in no name between quotes.
pub(crate) fn unquoted(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let mut quote = None;
    text.char_indices().filter(move |&(_, next)| {
        let was_open = quote.is_some();
        quote = match (quote, next) {
            (Some(close), _) => Some(close).filter(|close| next != *close),
            (None, '"' | '`' | '\'') => Some(next),
            (None, '[') => Some(']'),
            (None, _) => None,
        };
        !was_open && quote.is_none()
    })
}

/// Where words are that stand in no literal and in no name.
fn find(text: &str, words: &str) -> Option<usize> {
    unquoted(text).map(|(at, _)| at).find(|at| text[*at..].starts_with(words))
}

/// What the rows of a table do not fulfil, by the name of the one constraint that it can be.
fn violated(raised: Raised, sqlite: &str, constraints: &[&TableConstraint]) -> Raised {
    let is_key = |rule: &TableRule| matches!(rule, TableRule::Key { .. });
    let mut keys = constraints.iter().filter(|constraint| is_key(&constraint.rule));
    match (keys.next(), keys.next()) {
        (Some(TableConstraint { name: Some(name), .. }), None) => {
            let twice = found_twice(raised, sqlite, name.as_str());
            match twice.is_terminated {
                true => twice.and(not_made()),
                false => twice,
            }
        }
        _ => raised,
    }
}

/// 1750
fn not_made() -> Message {
    Message::of(table::CONSTRAINT_NOT_MADE, [])
}

//! The value of the key that an INSERT would have had twice.

use std::collections::HashSet;

use super::{Change, Changed};
use crate::execute::query::owned;
use crate::execute::Done;
use crate::session::Session;
use crate::translate::{quoted, Statement};
use crate::values::convert::{convert, Value};
use crate::values::types::SqlType;

/// Rows that are looked at for it.
const ROWS_MOST: usize = 10_000;

impl Session {
    /// What the first row that meets another one has in `key`; none where the statement does not say all of it.
    pub(super) fn duplicate_value(
        &self,
        changed: &Changed,
        key: &[String],
        change: Change<'_>,
    ) -> Done<Option<String>> {
        let Some((places, statement)) = change.statement.and_then(|whole| source(whole, key))
        else {
            return Ok(None);
        };
        let Some(frame) = self.frames.last() else { return Ok(None) };
        let connection = &self.databases.connection;
        let table = self.databases.table_of(&changed.schema, &changed.sqlite, false)?;
        let compared: Vec<String> =
            (1..).zip(key).map(|(at, column)| format!("{} = ?{at}", quoted(column))).collect();
        let sql = format!(
            "SELECT 1 FROM {}.{} WHERE {}",
            quoted(&changed.schema),
            quoted(&changed.sqlite),
            compared.join(" AND ")
        );
        let mut there = connection.prepare(&sql)?;
        let mut prepared = statement.prepare(connection, frame)?;
        // The text may have been cut within a string: what changes anything is not it.
        if !prepared.readonly() {
            return Ok(None);
        }
        let mut rows = prepared.raw_query();
        let mut seen = HashSet::new();
        for _ in 0..ROWS_MOST {
            let Some(row) = rows.next()? else { break };
            let mut values = Vec::new();
            for at in &places {
                values.push(owned(row.get_ref(*at)?));
            }
            if values.contains(&Value::Null) {
                continue;
            }
            let is_there = there.exists(rusqlite::params_from_iter(&values))?;
            let is_new = seen.insert(format!("{values:?}").to_ascii_lowercase());
            if is_there || !is_new {
                let mut shown = Vec::new();
                for (value, name) in values.into_iter().zip(key) {
                    let column = table.columns.iter().find(|column| column.sqlite == *name);
                    let data_type = column.map_or(SqlType::NVARCHAR_MAX, |column| column.data_type);
                    match convert(value, data_type, SqlType::NVARCHAR_MAX, None)? {
                        Value::Text(text) => shown.push(text),
                        _ => return Ok(None),
                    }
                }
                return Ok(Some(shown.join(", ")));
            }
        }
        Ok(None)
    }
}

/// The query whose rows an INSERT of SQLite's puts in, and where the columns of `key` are among its own.
fn source(whole: &Statement, key: &[String]) -> Option<(Vec<usize>, Statement)> {
    let (with, rest) = whole.sql.split_once("INSERT INTO ")?;
    let (mut columns, mut rest) = (Vec::new(), rest.split_once(" (")?.1);
    loop {
        let (name, behind) = first_quoted(rest)?;
        columns.push(name);
        match behind.strip_prefix(", ") {
            Some(next) => rest = next,
            None => {
                rest = behind.strip_prefix(") ")?;
                break;
            }
        }
    }
    let place = |wanted: &String| columns.iter().position(|column| column == wanted);
    let places = key.iter().map(place).collect::<Option<Vec<_>>>()?;
    let sql = format!("{with}{rest}");
    // A name in a foreign file may have been cut: COMMIT only reads, too.
    let is_query = ["SELECT ", "VALUES ", "WITH "].iter().any(|word| sql.starts_with(word));
    is_query.then(|| (places, Statement { sql, ..whole.clone() }))
}

/// A name in quotes, and what is behind it.
fn first_quoted(text: &str) -> Option<(String, &str)> {
    let within = text.strip_prefix('"')?;
    let mut name = String::new();
    let mut chars = within.char_indices().peekable();
    while let Some((at, next)) = chars.next() {
        match (next, chars.peek()) {
            ('"', Some((_, '"'))) => {
                chars.next();
                name.push('"');
            }
            ('"', _) => return Some((name, &within[at + 1..])),
            (next, _) => name.push(next),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sql: &str, key: &[&str]) -> Option<(Vec<usize>, String)> {
        let whole = Statement { sql: sql.to_owned(), ..Statement::default() };
        let key: Vec<String> = key.iter().map(|&name| name.to_owned()).collect();
        source(&whole, &key).map(|(places, statement)| (places, statement.sql))
    }

    #[test]
    fn the_rows_of_an_insert_are_a_query() {
        let sql =
            "WITH \"c\" AS (SELECT 1) INSERT INTO \"d\".\"t\" (\"a\", \"b \"\") c\") VALUES (1, 2)";
        let query = "WITH \"c\" AS (SELECT 1) VALUES (1, 2)".to_owned();
        assert_eq!(of(sql, &["b \") c", "a"]), Some((vec![1, 0], query)));
        assert_eq!(of(sql, &["b"]), None);
        assert_eq!(of("INSERT INTO \"d\".\"t\" DEFAULT VALUES", &["a"]), None);
        assert_eq!(of("INSERT INTO \"d\".\"x (\"\") COMMIT --\" (\"\") VALUES (1)", &[""]), None);
        assert_eq!(of("DELETE FROM \"d\".\"t\"", &["a"]), None);
    }
}

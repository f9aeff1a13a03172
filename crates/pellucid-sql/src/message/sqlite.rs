//! Messages through SQLite and back, and what SQLite's own errors are called.

use rusqlite::ffi::ErrorCode;

use super::{table, Message};

/// What a marked text begins with and its fields are divided by.
const MARK: char = '\u{1f}';

impl Message {
    /// As an error of a function that SQLite called.
    pub(crate) fn raise(self) -> rusqlite::Error {
        rusqlite::Error::UserFunctionError(Box::new(Marked(self)))
    }

    fn of_marked(text: &str) -> Option<Self> {
        let mut fields = text.strip_prefix(MARK)?.splitn(4, MARK);
        let number = fields.next()?.parse().ok()?;
        let severity = fields.next()?.parse().ok()?;
        let state = fields.next()?.parse().ok()?;
        Some(Self { number, severity, state, text: fields.next()?.to_owned() })
    }

    fn of_sqlite(code: rusqlite::ffi::Error, text: Option<&str>) -> Self {
        let text = text.unwrap_or_default();
        if let Some(message) = Self::of_marked(text) {
            return message;
        }
        match code.code {
            ErrorCode::ConstraintViolation => constraint(code.extended_code, text),
            _ if text == "integer overflow" => Self::overflow("expression", "bigint"),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
                Self::of(table::LOCK_TIMEOUT, [])
            }
            _ => super::product::replaced(code.extended_code)
                .unwrap_or_else(|| Self::of(table::SQLITE_CODE, [&text, &code.extended_code])),
        }
    }
}

fn constraint(extended: i32, text: &str) -> Message {
    let after = |prefix: &str| text.strip_prefix(prefix).unwrap_or(text).to_owned();
    match extended {
        rusqlite::ffi::SQLITE_CONSTRAINT_NOTNULL => {
            let column = after("NOT NULL constraint failed: ");
            let (table, column) = column.rsplit_once('.').unwrap_or(("", &column));
            Message::null_refused(column, table, "INSERT")
        }
        rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE
        | rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY
        | rusqlite::ffi::SQLITE_CONSTRAINT_ROWID => {
            let columns = after("UNIQUE constraint failed: ");
            let table = columns.split('.').next().unwrap_or_default().to_owned();
            Message::of(table::DUPLICATE_KEY, [&"UNIQUE KEY", &columns, &table, &""])
        }
        // SQL Server names the constraint and its table; SQLite does not.
        _ => Message::of(table::SQLITE_CODE, [&text, &extended]),
    }
}

impl From<rusqlite::Error> for Message {
    fn from(error: rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::SqliteFailure(code, text) => Self::of_sqlite(code, text.as_deref()),
            rusqlite::Error::SqlInputError { error, msg, .. } => {
                Self::of_sqlite(error, Some(msg.as_str()))
            }
            rusqlite::Error::UserFunctionError(error) => match error.downcast::<Marked>() {
                Ok(marked) => marked.0,
                Err(other) => Self::of(table::SQLITE_ERROR, [&other]),
            },
            other => Self::of(table::SQLITE_ERROR, [&other]),
        }
    }
}

/// A message on its way through SQLite.
#[derive(Debug)]
struct Marked(Message);

impl std::fmt::Display for Marked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Message { number, severity, state, text } = &self.0;
        // SQLite's texts end at a zero byte.
        let text = text.replace('\0', "\u{fffd}");
        write!(f, "{MARK}{number}{MARK}{severity}{MARK}{state}{MARK}{text}")
    }
}

impl std::error::Error for Marked {}

#[cfg(test)]
mod tests {
    use super::super::OF_SQLITE;
    use super::*;

    /// A text as SQLite hands it back: cut at nothing, marked, with fields of its own.
    #[test]
    fn a_message_survives_sqlite() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let sent =
            Message { number: 245, severity: 16, state: 3, text: "a 'b'\u{1f}c\nd".to_owned() };
        let raised = sent.clone();
        let flags = rusqlite::functions::FunctionFlags::SQLITE_UTF8;
        connection
            .create_scalar_function("f", 0, flags, move |_| -> rusqlite::Result<i64> {
                Err(raised.clone().raise())
            })
            .unwrap();
        let error = connection.query_row("SELECT f()", [], |row| row.get::<_, i64>(0)).unwrap_err();
        assert_eq!(Message::from(error), sent);
    }

    #[test]
    fn what_sqlite_says_itself() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE t(a NOT NULL UNIQUE); INSERT INTO t VALUES (1)")
            .unwrap();
        let number = |sql: &str| Message::from(connection.execute_batch(sql).unwrap_err()).number;
        assert_eq!(number("INSERT INTO t VALUES (NULL)"), 515);
        assert_eq!(number("INSERT INTO t VALUES (1)"), 2627);
        assert_eq!(number("SELECT nonsense("), OF_SQLITE);
    }
}

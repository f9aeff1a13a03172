//! Several statements of SQLite as one: all of them or nothing.

use rusqlite::Connection;

/// Runs it, and takes back what it has done if it fails. Without a transaction around, its end is a commit, which fails
/// where somebody reads a database with a rollback journal: then nothing stays either, and no transaction is left open.
///
/// # Errors
/// What `run` says; SQLite's, of the commit.
///
/// Source: <https://www.sqlite.org/lang_savepoint.html>
pub(crate) fn in_savepoint<T, E: From<rusqlite::Error>>(
    connection: &Connection,
    run: impl FnOnce(&Connection) -> Result<T, E>,
) -> Result<T, E> {
    let is_whole = connection.is_autocommit();
    connection.execute_batch("SAVEPOINT \"one step\"")?;
    let done = run(connection);
    // With some errors SQLite rolls back by itself.
    if connection.is_autocommit() {
        return done;
    }
    let undo = match is_whole {
        true => "ROLLBACK",
        false => "ROLLBACK TO \"one step\"; RELEASE \"one step\"",
    };
    let done = done.and_then(|value| {
        connection.execute_batch("RELEASE \"one step\"").map(|()| value).map_err(E::from)
    });
    if done.is_err() && !connection.is_autocommit() {
        // The first error is the one to tell.
        let _ = connection.execute_batch(undo);
    }
    done
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn count(connection: &Connection) -> i64 {
        connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    }

    fn insert(connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
    }

    fn fail(connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch("INSERT INTO t VALUES (1); INSERT INTO nothing VALUES (2)")
    }

    #[test]
    fn all_or_nothing_with_and_without_a_transaction_around() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t(a)").unwrap();
        in_savepoint(&connection, insert).unwrap();
        assert_eq!((count(&connection), connection.is_autocommit()), (2, true));
        in_savepoint(&connection, fail).unwrap_err();
        assert_eq!((count(&connection), connection.is_autocommit()), (2, true));

        connection.execute_batch("BEGIN; INSERT INTO t VALUES (3)").unwrap();
        in_savepoint(&connection, fail).unwrap_err();
        in_savepoint(&connection, |connection| in_savepoint(connection, insert)).unwrap();
        in_savepoint(&connection, |connection| {
            insert(connection)?;
            in_savepoint(connection, fail)
        })
        .unwrap_err();
        assert_eq!((count(&connection), connection.is_autocommit()), (5, false));
        connection.execute_batch("COMMIT").unwrap();
        assert_eq!(count(&connection), 5);
    }

    /// A reader keeps the commit away: nothing stays, and what comes next is a transaction of its own.
    #[test]
    fn a_commit_that_fails_leaves_no_transaction() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let connection = Connection::open(file.path()).unwrap();
        connection.busy_timeout(std::time::Duration::ZERO).unwrap();
        connection.execute_batch("PRAGMA journal_mode = DELETE; CREATE TABLE t(a)").unwrap();
        let reader = Connection::open(file.path()).unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM t").unwrap();
        in_savepoint(&connection, insert).unwrap_err();
        assert!(connection.is_autocommit());
        reader.execute_batch("COMMIT").unwrap();
        assert_eq!(count(&connection), 0);
        insert(&connection).unwrap();
        drop(connection);
        assert_eq!(count(&reader), 2);
    }

    /// As with ON CONFLICT ROLLBACK.
    #[test]
    fn what_sqlite_rolls_back_itself_is_told_by_its_error() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t(a UNIQUE ON CONFLICT ROLLBACK)").unwrap();
        connection.execute_batch("BEGIN; INSERT INTO t VALUES (3)").unwrap();
        let twice = |connection: &Connection| {
            connection.execute_batch("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)")
        };
        in_savepoint(&connection, twice).unwrap_err();
        assert_eq!((count(&connection), connection.is_autocommit()), (0, true));
    }
}

//! A copy of somebody's database as it is at one moment, by SQLite's backup interface: what its WAL holds is in it.
//!
//! Nothing is written to the database. In rollback mode it is opened for reading alone. In WAL mode that would leave
//! its files behind or fail; it is opened as any reader opens it, and a log that is there is left as it is.

use std::path::Path;
use std::time::{Duration, Instant};

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::beside;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

/// For whoever keeps others out.
const PATIENCE: Duration = Duration::from_secs(60);
const EACH: Duration = Duration::from_millis(100);
/// SQLITE_READONLY_ROLLBACK (sqlite.org/rescode.html).
const HOT_JOURNAL: i32 = 776;

/// Copies the plain database at `from`, which `uri` names; `wal` is its mode.
///
/// # Errors
/// [`Error::Sqlite`], and [`Error::Invalid`] if somebody keeps everybody out, or if a journal has to be rolled back.
pub fn adopt(from: &Path, uri: &str, wal: bool, to: &mut Connection) -> Result<()> {
    let name = from.display();
    let what = || format!("copying database `{name}`");
    let mut flags = OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags |= if wal { OpenFlags::SQLITE_OPEN_READ_WRITE } else { OpenFlags::SQLITE_OPEN_READ_ONLY };
    let source = Connection::open_with_flags(uri, flags).map_err(Error::sqlite(what()))?;
    let log = beside(from, "-wal").metadata().map_or(0, |found| found.len());
    if log > 0 {
        source
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .map_err(Error::sqlite(what()))?;
    }
    let backup = Backup::new(&source, to).map_err(Error::sqlite(what()))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        // All pages in one step are of one moment.
        match backup.step(-1) {
            Ok(StepResult::Done) => return Ok(()),
            Ok(_) if Instant::now() > deadline => {
                return Err(Error::invalid(format!(
                    "`{name}`: another program has kept everybody out for {} s; end it, or give a copy",
                    PATIENCE.as_secs()
                )));
            }
            Ok(_) => std::thread::sleep(EACH),
            Err(rusqlite::Error::SqliteFailure(error, _)) if error.extended_code == HOT_JOURNAL => {
                return Err(Error::invalid(format!(
                    "`{name}`: a transaction was broken off, and its journal has to be rolled back first: open the \
                     database once with the program that it belongs to, or with sqlite3"
                )));
            }
            Err(error) => return Err(Error::sqlite(what())(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn rows(connection: &Connection) -> i64 {
        connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    }

    fn copy(from: &Path, wal: bool) -> Result<Connection> {
        let mut to = Connection::open_in_memory().unwrap();
        adopt(from, &format!("file:{}", from.display()), wal, &mut to).map(|()| to)
    }

    #[test]
    fn what_the_log_holds_is_copied_and_nothing_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.db");
        let open = Connection::open(&path).unwrap();
        open.execute_batch(
            "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t(a);
             INSERT INTO t VALUES (1), (2)",
        )
        .unwrap();
        // As after a crash: nobody has it open, and the log is all that holds the table.
        for name in ["lost.db", "lost.db-wal"] {
            let from = dir.path().join(name.replace("lost", "app"));
            fs::copy(from, dir.path().join(name)).unwrap();
        }
        for name in ["app.db", "lost.db"] {
            let path = dir.path().join(name);
            let content = || (fs::read(&path).unwrap(), fs::read(beside(&path, "-wal")).unwrap());
            let before = content();
            assert!(before.1.len() > 4096);
            assert_eq!(rows(&copy(&path, true).unwrap()), 2, "{name}");
            assert!(before == content(), "{name} was written to");
        }
        assert_eq!(rows(&open), 2);
    }

    #[test]
    fn a_log_of_nothing_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.db");
        let made = Connection::open(&path).unwrap();
        made.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES (1)")
            .unwrap();
        drop(made);
        let before = fs::read(&path).unwrap();
        assert_eq!(rows(&copy(&path, true).unwrap()), 1);
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_broken_off_transaction_is_told_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.db");
        let open = Connection::open(&path).unwrap();
        open.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(100000))").unwrap();
        // Pages are written before the commit: the cache is too small.
        open.execute_batch("PRAGMA cache_size=1; BEGIN; UPDATE t SET a = randomblob(200000)")
            .unwrap();
        let lost = dir.path().join("lost.db");
        fs::copy(&path, &lost).unwrap();
        fs::copy(beside(&path, "-journal"), beside(&lost, "-journal")).unwrap();
        let before = fs::read(&lost).unwrap();
        let error = copy(&lost, false).unwrap_err().to_string();
        assert!(error.contains("rolled back"), "{error}");
        assert_eq!(fs::read(&lost).unwrap(), before);
        assert!(beside(&lost, "-journal").exists());
    }
}

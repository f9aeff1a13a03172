//! Goal: pages SQLite never wrote are sealed like all others, and a page of zeros put there by hand is
//! damage, not emptiness.
//!
//! Method: BEGIN; fill a table; fill another; empty and DROP the first; COMMIT leaves pages that SQLite
//! does not write (`sqlite3PagerDontWrite`; a DROP alone runs under a statement journal, which writes
//! them after all unless pages are zeroed on deletion). The backup API reads every page, also free ones. Then one page
//! after the other is overwritten with zeros, and reading all of them must fail, naming that page.
//! The same over plain SQLite leaves holes of zeros in DELETE mode, which shows that the transaction
//! makes them; a WAL of SQLite 3.40 and newer has frames for them.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::Connection;

use crate::processes::{extension, key_beside, rows, scratch, Over};

const PAGE: u64 = 4096;
const REGION: u64 = 16384;

/// A database with pages nobody wrote; its journal mode.
fn make(over: Over, mode: &str, database: &Path) -> Connection {
    std::fs::create_dir_all(database.parent().unwrap()).unwrap();
    let connection = over.open(database);
    connection
        .execute_batch(&format!("PRAGMA page_size=4096; PRAGMA journal_mode={mode}"))
        .unwrap();
    rows::create(&connection);
    connection
        .execute_batch(
            "BEGIN;
             CREATE TABLE gone(x);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<400)
             INSERT INTO gone SELECT randomblob(900) FROM n;",
        )
        .unwrap();
    for id in 1..=400 {
        rows::put(&connection, id, 1).unwrap();
    }
    connection.execute_batch("DELETE FROM gone; DROP TABLE gone; COMMIT").unwrap();
    if mode == "WAL" {
        let busy: i64 =
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
        assert_eq!(busy, 0);
    }
    connection
}

fn pages(connection: &Connection) -> u64 {
    connection.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0)).unwrap() as u64
}

/// Reads every page there is.
fn back_up(connection: &Connection) -> rusqlite::Result<Connection> {
    let mut copy = Connection::open_in_memory()?;
    {
        let backup = Backup::new(connection, &mut copy)?;
        while backup.step(64)? == StepResult::More {}
    }
    Ok(copy)
}

/// Pages of the file that hold nothing but zeros.
fn blank_pages(database: &Path, from: u64) -> usize {
    let file = std::fs::read(database).unwrap();
    let pages = file[from as usize..].chunks(PAGE as usize);
    pages.filter(|page| page.iter().all(|byte| *byte == 0)).count()
}

fn whole(connection: &Connection) {
    rows::check_integrity(connection);
    let expected: Vec<(i64, i64)> = (1..=400).map(|id| (id, 1)).collect();
    assert_eq!(rows::read(connection).unwrap(), expected);
}

#[test]
fn never_written_pages_are_sealed() {
    for mode in ["DELETE", "WAL"] {
        for over in Over::BOTH {
            let scratch = scratch();
            let database = scratch.path().join("live/x.db");
            let connection = make(over, mode, &database);
            let region = if over == Over::Sealed { REGION } else { 0 };
            let blank = blank_pages(&database, region);
            println!("{mode} {}: {} pages, {blank} blank", over.name(), pages(&connection));
            match over {
                Over::Plain => {
                    assert!(mode == "WAL" || blank > 10, "the transaction left no holes")
                }
                Over::Sealed => assert_eq!(blank, 0, "pages of zeros in a sealed file"),
            }
            let length = std::fs::metadata(&database).unwrap().len();
            assert_eq!(length, region + pages(&connection) * PAGE);
            whole(&connection);
            whole(&back_up(&connection).unwrap());
            let into = database.with_file_name("into.db");
            let name = match over {
                Over::Plain => format!("file:{}?vfs=unix", into.display()),
                Over::Sealed => format!(
                    "file:{}?vfs=pellucid&key_file={}",
                    into.display(),
                    key_beside(&database).display()
                ),
            };
            connection.execute("VACUUM INTO ?1", [name]).unwrap();
            whole(&over.open(&into));
            assert_eq!(blank_pages(&into, region), 0);
            connection.execute_batch("VACUUM").unwrap();
            whole(&connection);
            drop(connection);
            let connection = over.open(&database);
            whole(&connection);
            whole(&back_up(&connection).unwrap());
        }
    }
}

/// Each page in turn becomes zeros: reading all of them fails and says which page.
#[test]
fn a_page_of_zeros_is_damage() {
    let scratch = scratch();
    let database = scratch.path().join("live/x.db");
    let count = pages(&make(Over::Sealed, "DELETE", &database));
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&database).unwrap();
    for page in 1..=count {
        let at = REGION + (page - 1) * PAGE;
        let mut kept = [0; PAGE as usize];
        file.read_exact_at(&mut kept, at).unwrap();
        file.write_all_at(&[0; PAGE as usize], at).unwrap();
        let connection = Over::Sealed.open(&database);
        let failed = back_up(&connection).map(drop).unwrap_err();
        let rusqlite::Error::SqliteFailure(error, _) = failed else { panic!("{failed}") };
        assert_eq!(error.extended_code, rusqlite::ffi::SQLITE_IOERR_DATA, "page {page}: {error}");
        drop(connection);
        file.write_all_at(&kept, at).unwrap();
    }
    // The line that names the page, as a stock sqlite3 shows it.
    let page = count - 3;
    file.write_all_at(&[0; PAGE as usize], REGION + (page - 1) * PAGE).unwrap();
    let output = Command::new("sqlite3")
        .arg("-cmd")
        .arg(format!(".load {}", extension().display()))
        .arg("-cmd")
        .arg(format!(".open {}", database.display()))
        .args([":memory:", ".backup /dev/null"])
        .env("PELLUCID_KEY_FILE", key_beside(&database))
        .env("PELLUCID_LOG", "stderr")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("page {page}:")), "page {page} is not named: {said}");
}
